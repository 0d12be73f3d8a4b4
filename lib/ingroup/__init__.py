"""Four papers on how language models see social groups, re-run from prompt to figure."""
