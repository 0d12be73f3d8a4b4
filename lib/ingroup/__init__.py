"""Ingroup: four papers on how language models see social groups, from prompt to figure."""
