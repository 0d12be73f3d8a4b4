"""``python -m ingroup.calibrant NAME``: train a calibrant anew (``make calibrant``)."""

import argparse

from ingroup import paths
from ingroup.calibrant import NAMES, training

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", choices=NAMES)
parser.add_argument("--seed", type=int, default=1)
arguments = parser.parse_args()
training.train(arguments.name, paths.MODELS / arguments.name, arguments.seed)
