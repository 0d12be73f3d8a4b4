"""The same figure gives the same bytes, and a demonstration says what it is."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.text import Text

from ingroup import figures


def draw():
    figures.use_style()
    fig, ax = plt.subplots(figsize=(figures.ONE_COLUMN, 2))
    ax.plot([0, 1], [0, 1])
    ax.set_title("text stays text")
    return fig


@pytest.mark.parametrize("suffix", ["pdf", "png"])
def test_two_saves_are_the_same_bytes(tmp_path, suffix):
    for name in ("a", "b"):
        figures.save(draw(), tmp_path, name)
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_fonts_are_embedded(tmp_path):
    figures.save(draw(), tmp_path, "a")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_only_a_demonstration_says_so(tmp_path):
    real, shown = draw(), draw()
    figures.save(real, tmp_path, "real")
    figures.save(shown, tmp_path, "shown", demonstration=True)
    assert real._supxlabel is None
    assert shown._supxlabel.get_text().replace("\n", " ") == figures.DEMONSTRATION
    inches = shown._supxlabel.get_window_extent().width / plt.rcParams["savefig.dpi"]
    assert 1 < inches < shown.get_figwidth()


def test_a_heatmap_masks_and_divides():
    _, ax = plt.subplots()
    matrix = np.arange(16.0).reshape(4, 4)
    shown = ~np.eye(4, dtype=bool)
    image = figures.heatmap(ax, matrix, shown, ["x", "x", "y", "z"], list("abcd"))
    assert np.array_equal(image.get_array().mask, ~shown)
    assert image.get_clim() == tuple(np.percentile(np.arange(16), [1, 99]))
    assert [line.get_ydata()[0] for line in ax.lines[::2]] == [1.5, 2.5]
    assert [label.get_text() for label in ax.get_yticklabels()] == list("abcd")


def test_no_dividers_where_every_identity_is_its_own_group():
    _, ax = plt.subplots()
    figures.heatmap(ax, np.eye(3), groups=["x", "y", "z"])
    assert len(ax.lines) == 0


def test_names_of_points_do_not_cover_each_other():
    figures.use_style()
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 3.5))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 25))
    ax.scatter(x, y)
    figures.label_points(ax, x, y, [f"a name {i}" for i in range(25)])
    fig.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 25
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_crowded_names_find_room_further_out():
    """Sixty names of points that touch: none covers another, a point, or what is kept free."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(0, 0.4, (2, 60))
    fig, ax = plt.subplots(figsize=(6, 6))
    ax.set(xlim=(-4, 4), ylim=(-4, 4))
    ax.plot(x, y, ".", markersize=2)
    figures.label_points(ax, x, y, [f"name {i}" for i in range(60)], 4.5, [(1.0, 1.0)])
    fig.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # of the name, without its line
    assert len(boxes) == 60
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    free = ax.transData.transform([(1.0, 1.0)])[0]
    assert not any(box.contains(*free) for box in boxes)
    plt.close(fig)
