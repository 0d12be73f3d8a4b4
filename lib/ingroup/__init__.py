"""Four papers on how language models see social groups. Here are the paths of all files."""

import warnings
from pathlib import Path

# tqdm asks for widgets of Jupyter. Its bars are plain text here.
warnings.filterwarnings("ignore", message="IProgress not found")

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "lib" / "ingroup"
DATA = ROOT / "data"
STIMULI = DATA / "stimuli"
PUBLISHED = DATA / "published"
RECORDINGS = DATA / "recordings"
SAMPLE = DATA / "sample"
RAW = DATA / "raw"
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "build"
RESPONSES = BUILD / "responses"
FIGURES = ROOT / "figures"


def run_folder(run: str) -> Path:
    """Return the folder of a run: ``build``, or ``build/runs/<run>``."""
    return BUILD if run == "default" else BUILD / "runs" / run
