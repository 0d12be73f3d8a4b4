"""The appendix of a run: its content, read from the files of the run, and its writing.

Its sections and their order are `ingroup.commands.appendix.SECTIONS`.
"""
