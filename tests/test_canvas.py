"""Text that leaves the canvas, text over text, and titles that are too wide."""

import pytest
from matplotlib import pyplot as plt

from ingroup import canvas, figures


@pytest.fixture
def panel():
    """A figure of 3 by 2 inches with one empty panel."""
    figures.use_style()
    fig, ax = plt.subplots(figsize=(3, 2))
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    yield fig, ax
    plt.close(fig)


def test_text_beside_text_fits(panel):
    fig, ax = panel
    ax.text(0.2, 0.5, "left", ha="center")
    ax.text(0.8, 0.5, "right", ha="center")
    ax.text(0.2, 0.4, "below", ha="center")

    assert canvas.misfits(fig) == []


def test_text_over_text_is_named(panel):
    fig, ax = panel
    ax.text(0.5, 0.5, "one text", ha="center")
    ax.text(0.55, 0.5, "another", ha="center")

    assert canvas.misfits(fig) == ["'one text' overlaps 'another'"]


def test_text_that_leaves_the_canvas_is_named(panel):
    fig, _ = panel
    fig.text(0.9, 0.5, "wider than the room on the right")

    assert canvas.misfits(fig) == ["'wider than the room on the ri…' leaves the canvas"]


def test_turned_texts_are_compared_as_they_are_turned(panel):
    """Their upright boxes overlap; the texts themselves do not, until one is moved."""
    fig, ax = panel
    first = ax.text(0.3, 0.3, "a long diagonal", rotation=45)
    second = ax.text(0.45, 0.3, "a long diagonal", rotation=45)
    assert first.get_window_extent().overlaps(second.get_window_extent())
    assert canvas.misfits(fig) == []

    second.set_position((0.32, 0.3))
    assert len(canvas.misfits(fig)) == 1


def test_labels_of_ticks_outside_the_view_and_of_axes_that_are_off_do_not_count(panel):
    fig, ax = panel
    ax.set_xticks([0.5, 40], ["seen", "not drawn, and far off"])
    assert canvas.misfits(fig) == []

    ax.set_xticks([0.5, 0.52], ["first label", "second label"])
    assert canvas.misfits(fig) == ["'first label' overlaps 'second label'"]

    ax.axis("off")
    assert canvas.misfits(fig) == []


def test_a_panel_without_room_is_named():
    figures.use_style()
    fig, _ = plt.subplots(1, 12, figsize=(3, 2), subplot_kw={"xticks": [], "yticks": []})

    problems = canvas.misfits(fig)
    plt.close(fig)
    assert len(problems) == 12
    assert problems[0].startswith("a panel is only 0.")


def test_a_figure_taller_than_a_page_is_named(panel):
    fig, _ = panel
    fig.set_figheight(12.5)

    assert canvas.misfits(fig) == ["it is 12.5 in tall, and a page has 9.2"]

    fig.set_figheight(9.2)
    assert canvas.misfits(fig) == []


def test_labels_that_leave_no_room_for_the_panels_are_named_without_a_warning(panel, recwarn):
    fig, ax = panel
    ax.set_ylabel("a label\n" * 40)

    assert canvas.misfits(fig) == ["its labels leave no room for the panels or their points"]
    assert len(recwarn) == 0


def test_a_panel_that_is_too_flat_is_named():
    figures.use_style()
    fig, ax = plt.subplots(figsize=(3, 0.25))
    ax.set(xticks=[], yticks=[])

    (problem,) = canvas.misfits(fig)
    plt.close(fig)
    assert problem.startswith("a panel is only 0.1")
    assert problem.endswith(" in high")


def test_a_title_is_broken_at_blanks_and_after_hyphens_to_fit_its_panel():
    figures.use_style()
    fig, axes = plt.subplots(1, 3, figsize=(3, 2))
    for ax in axes:
        ax.set_title("Qwen2.5-Coder-1.5B as printed")
    assert len(canvas.misfits(fig)) > 0

    canvas.wrap_titles(fig)
    title = axes[1].get_title()
    assert title.replace("\n", " ").replace("- ", "-") == "Qwen2.5-Coder-1.5B as printed"
    assert title.startswith("Qwen2.5-Coder-\n1.5B")
    assert canvas.misfits(fig) == []


def test_a_title_that_fits_stays_as_it_is(panel):
    fig, ax = panel
    ax.set_title("a short title")
    canvas.wrap_titles(fig)

    assert ax.get_title() == "a short title"


@pytest.mark.parametrize("rotation", [0, 90])
def test_a_broken_line_is_no_longer_than_allowed_level_or_turned(panel, rotation):
    fig, _ = panel
    monospaced = {"family": "DejaVu Sans Mono", "size": 6}
    nine_letters = fig.text(0.5, 0.5, "aaaa bbbb", **monospaced).get_window_extent().width
    text = fig.text(0.5, 0.5, "aaaa bbbb cc-1", rotation=rotation, **monospaced)

    # A text that fits stays whole.
    canvas.wrap(text, 2 * nine_letters)
    assert text.get_text() == "aaaa bbbb cc-1"

    # Nine letters do not fit into the width of eight.
    canvas.wrap(text, 8.5 / 9 * nine_letters)
    assert text.get_text() == "aaaa\nbbbb cc-\n1"
