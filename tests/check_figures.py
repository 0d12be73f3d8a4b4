"""Every figure of the default run at one and at two columns: ``make test-figures``.

Does the text fit, has it 6 points or more, and is the figure no higher than a page?

Plain pytest passes this file by (its name does not begin with test_): it takes minutes, and needs
the tables of a run. Where a notebook has not run, its test says so.
"""

from fnmatch import fnmatch

import pytest

from canvases import NOTEBOOKS, figures_of
from ingroup import figures, paths

# Figures that one column cannot show; make figures says so instead of drawing them.
NEEDS_TWO_COLUMNS = [
    "audit/printed_numbers",
    "biased_samaritan/printed_landscape",
    "empathy_gap/figure[235]*",
    "giebench/figure3_printed",
    "giebench/mismatch",
    "map/how_to_read_delta",
    "map/own_group",
    "stereomap/figure[24678]*",  # in figure 6 the groups of real models lie close together
    "synthesis/*",
]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_text_fits_two_columns(notebook):
    broken = {name: why for name, why in drawn(notebook, figures.PAGE_INCHES) if why}
    assert not broken


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_text_fits_one_column_or_the_figure_is_known_to_need_two(notebook):
    broken = {name: why for name, why in drawn(notebook, figures.COLUMN_INCHES) if why}
    unexpected = {name: why for name, why in broken.items() if not needs_two_columns(name)}
    assert not unexpected


def drawn(notebook, width):
    """A notebook's figures with 8 pt type, and what is wrong with each."""
    if not paths.executed(notebook).exists():
        pytest.skip(f"{notebook} has not run: make all")
    return figures_of(notebook, width, font=8)


def needs_two_columns(name):
    """Whether a figure, or the figure of another model, is known to need two columns."""
    return any(fnmatch(name, pattern) for pattern in NEEDS_TWO_COLUMNS)
