"""``python data/models/training/train.py NAME``: train a calibrant anew (``make calibrant``).

``--from-phase 2`` continues from the weights in the folder, which phase 1 must have left.
"""

import argparse
from pathlib import Path

import training
from ingroup import paths
from ingroup.models import calibrants

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", choices=calibrants())
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--folder", type=Path, help="of the weights (default: data/models/NAME)")
parser.add_argument("--from-phase", type=int, default=1, dest="first")
arguments = parser.parse_args()

last = len(training.PHASES[arguments.name])
if not 1 <= arguments.first <= last:
    parser.error(f"--from-phase must be 1 to {last} for {arguments.name}")

folder = arguments.folder or paths.MODELS / arguments.name
training.train(
    arguments.name,
    folder,
    seed=arguments.seed,
    first=arguments.first,
)
