"""Checks that the text of a figure fits: on the canvas, beside other text, and on a page."""

import itertools
import math
import re
import textwrap
import warnings
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox

# The text of ACL's page of A4 is 9.7 inches high; a caption of two lines takes the rest.
MAX_HEIGHT_INCHES = 9.2
SLACK_POINTS = 1.0  # a box has some air around the ink of its text
MIN_PANEL_WIDTH = 0.35  # inches of a panel
MIN_PANEL_HEIGHT = 0.25  # two rows of dots
LOWER_CASE_SHARE = 0.7  # the share of a box's height that lower-case letters take


def misfits(fig: Figure) -> list[str]:
    """List what is wrong with a figure's text at the figure's size.

    Parameters
    ----------
    fig : Figure
        A figure as it will be saved.

    Returns
    -------
    list of str
        One phrase per text that leaves the canvas, per pair of texts that overlap, per panel that
        its labels squeeze, and one if the figure and a caption are taller than the text of a page.
        Only one if the labels leave no room for the panels. Empty if all fits.
    """
    if not lay_out(fig):
        return ["its labels leave no room for the panels or their points"]

    # All extents are in pixels, and a point is 1/72 of an inch.
    point = fig.dpi / 72
    width = fig.bbox.width
    height = fig.bbox.height

    problems = []
    if fig.get_figheight() > MAX_HEIGHT_INCHES:
        problems.append(
            f"it is {fig.get_figheight():.1f} in tall, and a page has {MAX_HEIGHT_INCHES:g}"
        )
    problems += _squeezed_panels(fig)

    slack = SLACK_POINTS * point
    outlines = []
    for text in _texts(fig):
        outline = _outline(text, point)
        left, bottom = outline.min(axis=0)
        right, top = outline.max(axis=0)
        is_beyond_x = left < -slack or right > width + slack
        is_beyond_y = bottom < -slack or top > height + slack
        if is_beyond_x or is_beyond_y:
            problems.append(f"{_quoted(text)} leaves the canvas")
        outlines.append((text, outline))

    for (text, outline), (other, other_outline) in itertools.combinations(outlines, 2):
        if _overlap(outline, other_outline):
            problems.append(f"{_quoted(text)} overlaps {_quoted(other)}")
    return problems


def _squeezed_panels(fig: Figure) -> list[str]:
    """Name the panels without the least width or height."""
    problems = []
    for ax in fig.axes:
        # Colour bars, which have no place in the grid, may be narrow.
        if ax.get_subplotspec() is None:
            continue
        width = ax.bbox.width / fig.dpi
        height = ax.bbox.height / fig.dpi
        if width < MIN_PANEL_WIDTH:
            problems.append(f"a panel is only {width:.2f} in wide")
        if height < MIN_PANEL_HEIGHT:
            problems.append(f"a panel is only {height:.2f} in high")
    return problems


def lay_out(fig: Figure) -> bool:
    """Give the panels and texts of a figure their places, as they are when it is saved.

    Parameters
    ----------
    fig : Figure
        The figure.

    Returns
    -------
    bool
        Whether its labels leave room for the panels, and the panels for their points. If not, the
        panels stay where they were.
    """
    with warnings.catch_warnings():
        # The caller says in a sentence what matplotlib only warns of.
        for message in ("constrained_layout not applied", ".* of the points cannot be placed"):
            warnings.filterwarnings("error", message=message)
        try:
            # Only a drawn figure knows where its panels and texts lie.
            fig.draw_without_rendering()
        except UserWarning:
            return False
    return True


def wrap(text: Text, pixels: float) -> None:
    """Break a text into lines no longer than some pixels, at blanks and after hyphens.

    Parameters
    ----------
    text : Text
        The text of a figure, level or turned; it is changed.
    pixels : float
        The length that a line may have. A single word may be longer.
    """
    length = _level_box(text).width
    if length <= pixels:
        return

    lines = text.get_text().split("\n")
    # The longest line has the length of the text; its letters are taken as equally wide.
    n_letters = max(len(line) for line in lines)
    n_fitting = max(int(n_letters * pixels / length), 1)
    wrapper = _LineWrapper(width=n_fitting, break_long_words=False)
    wrapped = [wrapper.fill(line) for line in lines]
    text.set_text("\n".join(wrapped))


class _LineWrapper(textwrap.TextWrapper):
    """Break lines at blanks and after every hyphen.

    textwrap itself breaks after a hyphen only between letters, but names of models have digits
    there.
    """

    # The pattern splits a text into pieces that stay whole: blanks, and what stands between them
    # up to a hyphen.
    wordsep_re = re.compile(r"(\s+)|(?<=-)")


def wrap_titles(fig: Figure) -> None:
    """Break titles and labels that would reach beyond the figure or into the next panel's.

    Parameters
    ----------
    fig : Figure
        A figure of its final width; its texts are changed.
    """
    lay_out(fig)
    # The title of the figure, and its note.
    for text in fig.texts:
        wrap(text, 0.97 * fig.bbox.width)
    for ax in fig.axes:
        # A colour bar has no place in the grid, and no neighbours beside it.
        if ax.get_subplotspec() is None:
            continue
        with_title = [other for other in fig.axes if other.get_title()]
        wrap(ax.title, _width_for_text(ax, with_title))
        with_label = [other for other in fig.axes if other.get_xlabel()]
        wrap(ax.xaxis.label, _width_for_text(ax, with_label))


def _width_for_text(ax: Axes, others: Sequence[Axes]) -> float:
    """Return the width in pixels of a panel's centred text, beside texts of other panels."""
    middle = _middle(ax)
    # A centred text grows to both sides alike, so the nearer edge limits it.
    to_edge = min(middle, ax.figure.bbox.width - middle)
    widths = [2 * to_edge]
    for other in others:
        is_beside = other.get_subplotspec() and _rows(other) == _rows(ax)
        if is_beside and other is not ax:
            # Two centred texts, both as wide as the distance of their middles, just touch.
            distance = abs(_middle(other) - middle)
            widths.append(distance)
    return 0.97 * min(widths)


def _middle(ax: Axes) -> float:
    """Return the middle of a panel, in pixels from the left edge of the figure."""
    return (ax.bbox.x0 + ax.bbox.x1) / 2


def _rows(ax: Axes) -> range:
    """Return the rows of the grid that a panel covers."""
    return ax.get_subplotspec().rowspan


def _texts(fig: Figure) -> list[Text]:
    """List the texts that are drawn, without labels of ticks beyond the ends of an axis."""
    undrawn: set[Text] = set()
    for ax in fig.axes:
        for axis in (ax.xaxis, ax.yaxis):
            # A panel whose axes are switched off has none of their texts.
            hidden = _labels_beyond(axis) if ax.axison else axis.findobj(Text)
            undrawn.update(hidden)

    texts = []
    for text in fig.findobj(Text):
        has_letters = text.get_visible() and text.get_text().strip()
        if has_letters and text not in undrawn:
            texts.append(text)
    return texts


def _labels_beyond(axis: Axis) -> list[Text]:
    """List labels of ticks that matplotlib does not draw, because they lie outside the view."""
    low, high = sorted(axis.get_view_interval())
    # A tick on the very end is drawn, even if rounding puts it beyond the end.
    slack = 1e-6 * (high - low)
    hidden = []
    for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
        location = tick.get_loc()
        if not low - slack <= location <= high + slack:
            hidden += [tick.label1, tick.label2]
    return hidden


def _outline(text: Text, point: float) -> np.ndarray:
    """Return the (4, 2) corners of a text's box in pixels, turned as the text is."""
    # The class's method is called, because an annotation's own would include its arrow.
    around = Text.get_window_extent(text)
    centre_x = (around.x0 + around.x1) / 2
    centre_y = (around.y0 + around.y1) / 2
    # The box before the text is turned has the same centre.
    box = _level_box(text)

    # Lines of text may stand close: only the ink counts.
    n_lines = text.get_text().count("\n") + 1
    air = box.height / n_lines * (1 - LOWER_CASE_SHARE)
    half_width = max(box.width - SLACK_POINTS * point, 0) / 2
    half_height = (box.height - air) / 2
    signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    corners = signs * (half_width, half_height)

    angle = math.radians(text.get_rotation())
    cos = math.cos(angle)
    sin = math.sin(angle)
    # Corners are rows, so they are multiplied by the transpose of the usual matrix.
    turn = np.array([[cos, sin], [-sin, cos]])
    return (centre_x, centre_y) + corners @ turn


def _level_box(text: Text) -> Bbox:
    """Return the box of a text in pixels as it would be without the text's rotation."""
    rotation = text.get_rotation()
    text.set_rotation(0)
    # The class's method is called, because an annotation's own would include its arrow.
    box = Text.get_window_extent(text)
    text.set_rotation(rotation)
    return box


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether two outlines share an area."""
    # Outlines that only touch share no area, but paths that touch would intersect.
    is_before = one.max(axis=0) <= other.min(axis=0)
    is_behind = other.max(axis=0) <= one.min(axis=0)
    if is_before.any() or is_behind.any():
        return False
    return Path(one).intersects_path(Path(other), filled=True)


def _quoted(text: Text) -> str:
    """Quote the beginning of a text, on one line."""
    line = " ".join(text.get_text().split())
    if len(line) > 30:
        line = f"{line[:29]}…"
    return repr(line)
