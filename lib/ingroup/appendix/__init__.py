"""The appendix of a run: what it holds, read from what the run stored, and how it is written.

Its sections and their order are `ingroup.commands.appendix.SECTIONS`.
"""
