"""Four papers on how language models see social groups, re-run from prompt to figure."""

import warnings

# tqdm asks for widgets of Jupyter. Its bars are plain text here.
warnings.filterwarnings("ignore", message="IProgress not found")
