"""Ingroup: four papers on how language models see social groups, from prompt to figure."""

import warnings

# tqdm warns in every notebook that it has no widgets. They are left out on purpose, because they
# fill an executed notebook with states that no viewer can show.
warnings.filterwarnings("ignore", message="IProgress not found")
