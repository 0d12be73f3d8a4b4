"""The same figure gives the same bytes, and a demonstration says what it is."""

import json
import runpy
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.layout_engine import ConstrainedLayoutEngine
from PIL import Image

from ingroup import canvas, figures, paths
from ingroup.tables import InputError


def draw():
    figures.use_style()
    fig, ax = plt.subplots(figsize=(figures.ONE_COLUMN, 2))
    ax.plot([0, 1], [0, 1])
    ax.set_title("text stays text")
    return fig


def test_two_saves_give_identical_bytes_with_embedded_fonts(tmp_path):
    for name in ("a", "b"):
        figures.save(draw(), tmp_path, name)

    for suffix in ("pdf", "png"):
        first = (tmp_path / f"a.{suffix}").read_bytes()
        second = (tmp_path / f"b.{suffix}").read_bytes()
        assert first == second

    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_noise_in_the_last_digits_of_the_layout_changes_no_byte(tmp_path, monkeypatch):
    def save(name):
        figures.use_style()
        fig, axes = plt.subplots(2, 2, figsize=(3, 2))
        axes[0, 0].set(title="A title", ylabel="A label")
        figures.save(fig, tmp_path, name)
        return (tmp_path / f"{name}.pdf").read_bytes()

    as_solved = save("solved")
    solve = ConstrainedLayoutEngine.execute

    def solve_with_noise(engine, fig):
        grids = solve(engine, fig)
        for ax in fig.axes:
            ax._set_position(ax.get_position(original=True).translated(3e-11, 3e-11))
        return grids

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", solve_with_noise)

    assert save("noisy") == as_solved


def test_a_figure_says_which_of_its_models_are_real():
    assert figures.models_note(["organisation/name", "another"]) == ""
    assert figures.models_note(["calibrant", "calibrant-null"]) == figures.DEMONSTRATION_NOTE
    assert figures.models_note(["calibrant", "organisation/name"]) == (
        "Real: name. Demonstration, trained by this project: calibrant."
    )


def test_only_a_demonstration_says_so(tmp_path):
    real = draw()
    demonstration = draw()
    figures.save(real, tmp_path, "real", figures.models_note(["organisation/name"]))
    figures.save(demonstration, tmp_path, "shown", figures.models_note(["calibrant"]))

    assert real._supxlabel is None
    note = demonstration._supxlabel
    assert note.get_text().replace("\n", " ") == figures.DEMONSTRATION_NOTE
    inches = note.get_window_extent().width / plt.rcParams["savefig.dpi"]
    assert 1 < inches < demonstration.get_figwidth()


def test_only_the_chosen_figure_is_written_in_the_chosen_formats(tmp_path, monkeypatch):
    """Twice the same bytes; the committed one, and every other figure, stays."""
    committed = tmp_path / "study"
    paper = tmp_path / "paper"
    options = {
        "only": "study/one study/two",
        "out": str(paper),
        "format": "svg,pdf",
        "font": 14,
        "width": "5",
        "panel": "text stays text",
    }
    monkeypatch.setattr(figures, "OPTIONS_GIVEN", {})
    figures.use_style(**options)
    assert (figures.ONE_COLUMN, figures.TWO_COLUMNS) == (5, 5)

    writings = []
    for _ in range(2):
        fig = draw()
        fig.add_subplot(222).set_title("another panel")
        tick = fig.axes[0].xaxis.get_ticklabels()[0]
        assert tick.get_size() == 12  # of 6, with 14 of 7

        figures.save(fig, committed, "one")
        assert [ax.get_title() for ax in fig.axes] == ["text stays text"]
        assert fig.get_figwidth() == 5

        figures.save(draw(), committed, "three")
        files = (paper / "study").iterdir()
        writings.append({file.name: file.read_bytes() for file in files})

    assert writings[0] == writings[1]
    assert sorted(writings[0]) == ["one.pdf", "one.svg"]
    assert b">text stays text<" in writings[0]["one.svg"]
    assert not committed.exists()

    monkeypatch.setattr(figures, "OPTIONS_GIVEN", options | {"panel": "another"})
    with pytest.raises(InputError, match="PANEL: one has no 'another'; there are text stays text"):
        figures.save(draw(), committed, "one")

    monkeypatch.undo()
    figures.use_style()
    assert (figures.ONE_COLUMN, figures.TWO_COLUMNS) == (3.03, 6.30)
    tick = draw().axes[0].xaxis.get_ticklabels()[0]
    assert tick.get_size() == 6


def test_a_figure_of_chosen_models_reads_only_their_rows(tmp_path, monkeypatch):
    here = pd.DataFrame({"model": ["a", "b", "c"], "x": [1, 2, 3]})
    printed = pd.DataFrame({"model": ["GPT-4", "PaLM"], "x": [4, 5]})
    figures.write_table(here, tmp_path, "here")
    figures.write_table(printed, tmp_path, "printed")
    figures.write_table(here[["x"]], tmp_path, "plain")

    monkeypatch.setattr(figures, "OPTIONS_GIVEN", {"models": "c;a"})

    chosen = figures.read_table(tmp_path, "here")
    assert chosen.to_dict("list") == {"model": ["a", "c"], "x": [1, 3]}
    assert figures.read_table(tmp_path, "printed").equals(printed)
    assert figures.read_table(tmp_path, "plain").x.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("WIDTH", "3in", "a number of inches"),
        ("WIDTH", "-1", "a number of inches"),
        ("FONT", "large", "a number of points"),
        ("CMAP", "magme", r"a colour map of matplotlib; did you mean magma\?$"),
        ("FORMAT", "pdf,bmp", "one of .*pdf, .*svg"),
    ],
)
def test_a_wrong_option_of_a_figure_is_one_sentence(monkeypatch, name, value, expected):
    monkeypatch.setenv(f"FIGURE_{name}", value)
    module = runpy.run_path(figures.__file__)  # reads the environment

    with pytest.raises(InputError, match=f"^{name}: found '.*{value[-3:]}', expected {expected}"):
        module["use_style"]()


def test_a_heatmap_hides_masked_cells_and_divides_groups():
    _, ax = plt.subplots()
    matrix = np.arange(16.0).reshape(4, 4)
    shown = ~np.eye(4, dtype=bool)

    image = figures.heatmap(ax, matrix, shown, ["x", "x", "y", "z"], list("abcd"))

    assert np.array_equal(image.get_array().mask, ~shown)
    assert image.get_clim() == tuple(np.percentile(np.arange(16), [1, 99]))
    dividers = [line.get_ydata()[0] for line in ax.lines[::2]]
    assert dividers == [2, 3]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == list("abcd")


def test_a_heatmap_takes_another_colour_map():
    _, ax = plt.subplots()
    image = figures.heatmap(ax, np.eye(3), np.eye(3, dtype=bool), cmap="YlGnBu")

    assert image.cmap.name == "YlGnBu"
    masked_colour = image.cmap(np.ma.masked_all(1))[0]
    assert tuple(masked_colour) == (1, 1, 1, 1)  # white

    default = figures.heatmap(ax, np.eye(3))
    assert default.cmap.name == figures.HEAT_CMAP.name


def test_no_dividers_where_every_identity_is_its_own_group():
    _, ax = plt.subplots()
    figures.heatmap(ax, np.eye(3), groups=["x", "y", "z"])
    assert len(ax.lines) == 0


NAMES = [f"name {i}" for i in range(30)]
MARKED = (1.0, 1.0)  # a point that names have to leave free


def named_points():
    """Thirty names of points that touch."""
    figures.use_style()
    fig, ax = plt.subplots(figsize=(4, 4), dpi=50)
    ax.set(xlim=(-4, 4), ylim=(-4, 4))
    x, y = np.random.default_rng(1).normal(0, 0.4, (2, 30))
    ax.plot(x, y, ".", markersize=2)
    figures.label_points(ax, x, y, NAMES, 4.5, [MARKED])
    fig.canvas.draw()
    return fig


def test_crowded_names_do_not_overlap_and_are_placed_the_same_each_time():
    fig = named_points()
    (ax,) = fig.axes
    texts = sorted(text.get_text() for text in ax.texts)
    assert texts == sorted(NAMES)
    assert ax.get_xlim() == (-4, 4)
    assert ax.get_ylim() == (-4, 4)

    boxes = [text.get_window_extent() for text in ax.texts]
    for box, other in combinations(boxes, 2):
        assert not box.overlaps(other)

    points = ax.transData.transform([*ax.lines[0].get_xydata(), MARKED])
    for box, point in product(boxes, points):
        assert not box.contains(*point)

    again = named_points()
    assert bytes(fig.canvas.buffer_rgba()) == bytes(again.canvas.buffer_rgba())


def test_numbers_that_differ_in_the_last_bits_are_written_the_same(tmp_path):
    """So much differs between processors: the order in which a sum is taken."""
    values = np.random.default_rng(2).normal(0, 1e3, 99) ** 3
    nearly = np.nextafter(values, 0) * (1 - 1e-15)
    assert not np.array_equal(values, nearly)

    figures.write_table(pd.DataFrame({"x": values}), tmp_path, "a")
    figures.write_table(pd.DataFrame({"x": nearly}), tmp_path, "b")

    read = figures.read_table(tmp_path, "a").x
    assert read.equals(figures.read_table(tmp_path, "b").x)
    np.testing.assert_allclose(read, values, rtol=1e-9)


def test_a_text_that_a_spreadsheet_would_run_is_marked_and_read_back(tmp_path):
    texts = [
        "=cmd|' /C calc'!A0",
        "@SUM(1)",
        "+Coverage",
        "-x",
        "'quoted",
        "\t=1",
        "\n=1",
        "",
        None,
    ]
    numbers = [-0.1, np.nan, *[1 / 3] * 7]
    table = pd.DataFrame({"=model": texts, "n": range(9), "x": numbers})
    figures.write_table(table, tmp_path, "t")

    written = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)
    for cell in [*written.columns, *written.iloc[:, 0]]:
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))

    read = figures.read_table(tmp_path, "t")
    assert read.columns.tolist() == table.columns.tolist()
    assert read["=model"].fillna("").tolist() == table["=model"].fillna("").tolist()
    assert read.x.equals(table.x.round(10))

    harmless = ["-0.5", "+1e-3", "-3", "0", "+", "-"]
    figures.write_table(pd.DataFrame({"a": harmless}), tmp_path, "n")
    assert (tmp_path / "n.csv").read_text().split() == ["a", *harmless]

    index = pd.MultiIndex.from_tuples([("=a", "b"), ("c", "@d")])
    named = pd.DataFrame({"x": [1, 2]}, index)
    figures.write_table(named, tmp_path, "i", index=True)
    assert (tmp_path / "i.csv").read_text() == ",,x\n'=a,b,1\nc,'@d,2\n"

    figures.write_table(pd.DataFrame(), tmp_path, "e")

    # A carriage return would end the row, and begin another with the formula.
    broken = pd.DataFrame({"reply": ["good\r=cmd|'/C calc'!A0", "b"], "n": [1, 2]})
    figures.write_table(broken, tmp_path, "b")
    assert b"\r" not in (tmp_path / "b.csv").read_bytes()
    assert figures.read_table(tmp_path, "b").n.tolist() == [1, 2]


def effects():
    """Two lines of effects of three models, one a calibrant."""
    rows = [
        ("calibrant", "Religion", 5.0, 4.0, 6.0, True),
        ("calibrant", "Nationality", 8.0, 7.0, 9.0, True),
        ("organisation/small", "Religion", 0.1, -0.1, 0.3, False),
        ("organisation/small", "Nationality", 0.2, 0.1, 0.3, True),
        ("organisation/large", "Religion", 1.0, 0.5, 1.5, True),
    ]
    return pd.DataFrame(rows, columns=["model", "line", "effect", "low", "high", "is_sure"])


def test_intervals_have_a_panel_per_model_and_one_scale_for_real_models():
    figures.use_style()
    fig = figures.intervals(effects(), "effect", "line", filled="is_sure", xlabel="effect (points)")
    fig.draw_without_rendering()

    calibrant, small, large = fig.axes
    assert [ax.get_title() for ax in fig.axes] == ["calibrant", "small", "large"]
    assert [ax.get_xlabel() for ax in fig.axes] == ["", "effect (points)", ""]
    labels = [tick.get_text() for tick in calibrant.get_yticklabels()]
    assert labels == ["Religion", "Nationality"]

    assert small.get_xlim() == large.get_xlim()
    end = small.get_xlim()[1]
    end_of_calibrant = calibrant.get_xlim()[1]
    assert end < 2
    assert end_of_calibrant > 9

    # Dots at the effects, hollow where the table says so.
    dots = small.collections[-1]
    np.testing.assert_allclose(dots.get_offsets(), [(0.1, 0), (0.2, 1)])
    opacity = dots.get_facecolors()[:, 3]
    assert opacity.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("n", "index", "x"),
    [(1, 0, 0.5), (2, 1, 0), (3, 1, 0.5), (4, 2, 0), (5, 4, 0)],
)
def test_one_label_stands_below_the_middle_of_the_last_row(n, index, x):
    """With an even number it is at the left end of a panel, between the two in the middle."""
    fig, axes = figures.panels(n, 1, columns=n if n < 5 else 3)
    figures.label_below(axes, "effect")

    labels = [ax.get_xlabel() for ax in axes]
    assert labels[index] == "effect"
    assert sum(map(bool, labels)) == 1
    assert axes[index].xaxis.label.get_position()[0] == x
    plt.close(fig)


def test_a_panel_above_an_empty_place_keeps_its_horizontal_labels():
    fig, axes = figures.panels(5, 1, sharex=True, sharey=True)
    for ax in axes:
        ax.set(xlabel="letter", ylabel="share")

    figures.label_outer(axes)
    fig.draw_without_rendering()

    has_numbers = []
    for ax in axes:
        across = any(tick.get_visible() for tick in ax.get_xticklabels())
        down = any(tick.get_visible() for tick in ax.get_yticklabels())
        has_numbers.append((across, down))
    assert has_numbers == [
        (False, True),
        (False, False),
        (True, False),
        (True, True),
        (True, False),
    ]
    assert [ax.get_xlabel() for ax in axes] == ["", "", "letter", "letter", "letter"]
    assert [ax.get_ylabel() for ax in axes] == ["share", "", "", "share", ""]
    plt.close(fig)


@pytest.mark.parametrize("n_lines", [2, 20])
def test_few_and_many_lines_of_readings_have_the_same_air(n_lines):
    rows = []
    for line, reading in product(range(n_lines), ("greedy", "expected")):
        rows.append(("own", f"line {line}", reading, "turn", 1.0))
    table = pd.DataFrame(rows, columns=["model", "line", "reading", "ending", "gap"])

    fig = figures.by_reading(table, "gap", "gap (points)")

    assert fig.axes[0].get_ylim() == (-0.7, n_lines - 0.3)
    plt.close(fig)


def test_the_legend_explains_two_intervals_and_hollow_dots():
    figures.use_style()
    table = effects().query("model == 'calibrant'").assign(prompt="Raw")
    key = figures.scopes_key("identities", "grey", hollow="not significant")

    fig = figures.intervals(
        table, "effect", "line", hue="prompt", colours={"Raw": "C0"}, further=key
    )

    (legend,) = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "Raw",
        "for these identities",
        "for identities like these",
        "not significant",
    ]
    plt.close(fig)


def test_coloured_intervals_stand_side_by_side_with_a_legend():
    figures.use_style()
    table = effects().query("model == 'calibrant'")
    both = pd.concat([table.assign(prompt="Raw"), table.assign(prompt="COT")])
    colours = {"COT": figures.COLOURS[1], "Raw": figures.COLOURS[0]}

    fig = figures.intervals(
        both,
        "effect",
        "line",
        hue="prompt",
        facet=None,
        colours=colours,
        reference_name="none",
    )

    (ax,) = fig.axes
    heights = ax.collections[-1].get_offsets()[:, 1]
    assert sorted(np.round(heights, 1)) == [-0.2, 0.2, 0.8, 1.2]
    (legend,) = fig.legends
    entries = [text.get_text() for text in legend.get_texts()]
    assert entries == ["COT", "Raw", "none"]


def test_panels_and_legends_take_as_many_columns_as_the_width_allows(monkeypatch):
    monkeypatch.setattr(figures, "OPTIONS_GIVEN", {})
    explanations = [f"a rather long explanation {i}" for i in range(4)]

    rows_of_panels = []
    for width in (6.3, 3.03):
        figures.use_style(width=width, font=8)
        fig = figures.intervals(effects(), "effect", "line", step=0.4)
        line = plt.Line2D([], [])
        figures.legend(fig, [line] * 4, explanations)
        figures.finish(fig, "made up", figures.DEMONSTRATION_NOTE)
        assert canvas.misfits(fig) == []

        grid = fig.axes[0].get_subplotspec().get_gridspec()
        rows_of_panels.append(grid.nrows)
        plt.close(fig)

    assert rows_of_panels == [1, 2]
    monkeypatch.undo()
    figures.use_style()


def test_a_figure_that_does_not_fit_says_so_and_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "OPTIONS_GIVEN", {})
    figures.use_style(only="study/wide", width=3.03, out=str(tmp_path / "paper"))
    fig = draw()
    fig.axes[0].set_xticks([0, 0.02], ["a label", "over another"])

    needs_width = r"^study/wide needs two columns: WIDTH=6\.3; at 3\.03 in "
    with pytest.raises(InputError, match=needs_width):
        figures.save(fig, tmp_path / "study", "wide")
    assert not (tmp_path / "paper").exists()

    figures.OPTIONS_GIVEN["width"] = 6.3
    fig = draw()
    fig.axes[0].set_xticks([0, 0.001], ["a label", "over another"])

    needs_less = r"^study/wide needs a smaller FONT, fewer MODELS or one PANEL; at 6\.3 "
    with pytest.raises(InputError, match=needs_less):
        figures.save(fig, tmp_path / "study", "wide")

    monkeypatch.undo()
    figures.use_style()


def test_the_first_model_has_the_papers_name_for_a_figure():
    names = figures.own_names("figure6", ["first", "somebody/second", "third"])
    assert names == {
        "first": "figure6",
        "somebody/second": "figure6_second",
        "third": "figure6_third",
    }
    assert figures.own_names("figure6", []) == {}


def test_type_follows_the_font_and_is_at_least_six_points_at_eight():
    figures.use_style(font=8)
    assert figures.points(7) == 8
    assert figures.points(4.5) == 6
    assert plt.rcParams["figure.titlesize"] == pytest.approx(8 * 8 / 7)
    # A line of a note has fewer letters where these are larger.
    assert figures.note_letters(3) == 57

    del figures.OPTIONS_GIVEN["font"]
    figures.use_style()
    assert figures.points(4.5) == 4.5
    assert figures.points(7) == 7
    assert figures.note_letters(3) == 66


def test_make_figures_records_what_was_written_and_goes_on_after_a_misfit(tmp_path, monkeypatch):
    record = tmp_path / "record"
    options = {
        "only": "study/wide study/fits study/panel",
        "width": 3.03,
        "out": str(tmp_path / "paper"),
        "format": "pdf",
        "record": str(record),
    }
    monkeypatch.setattr(figures, "OPTIONS_GIVEN", {})
    figures.use_style(**options)

    wide = draw()
    wide.axes[0].set_xticks([0, 0.02], ["a label", "over another"])
    figures.save(wide, tmp_path / "study", "wide")
    figures.save(draw(), tmp_path / "study", "fits")
    figures.save(draw(), tmp_path / "study", "other")

    misfit, written = map(json.loads, record.read_text().splitlines())
    assert misfit["figure"] == "study/wide"
    assert misfit["problem"].startswith("study/wide needs two columns: WIDTH=6.3; at 3.03 in ")
    assert written == {
        "figure": "study/fits",
        "file": str(tmp_path / "paper/study/fits.pdf"),
        "inches": [3.03, 2],
    }
    files = [file.name for file in (tmp_path / "paper/study").iterdir()]
    assert files == ["fits.pdf"]

    monkeypatch.undo()
    figures.use_style()


def test_rows_that_would_be_higher_than_a_page_move_closer_together():
    """Only in a paper: a screen has room for many models."""
    heights = []
    for options in ({}, {"font": 8}):
        figures.OPTIONS_GIVEN.update(options)
        figures.use_style()
        of_lines = figures.intervals(effects(), "effect", "line", step=5)
        of_panels, _ = figures.panels(6, 5)
        few, _ = figures.panels(6, 2)
        heights.append([fig.get_figheight() for fig in (of_lines, of_panels, few)])
        plt.close("all")

    del figures.OPTIONS_GIVEN["font"]
    figures.use_style()
    assert heights == [[10.75, 10, 4], [9.2, 9.2, 4]]


def test_points_without_room_for_names_stay_unnamed():
    """The figure may be one that nobody asked for; if it is asked for, its panel is too narrow."""
    figures.use_style()
    fig, axes = plt.subplots(1, 12, figsize=(2, 2))
    figures.label_points(axes[0], [0, 1], [0, 1], ["one", "two"])
    assert len(axes[0].texts) == 0
    assert canvas.misfits(fig) != []
    plt.close(fig)


def test_every_committed_figure_leaves_room_for_a_caption():
    too_high = {}
    for file in paths.FIGURES.glob("*/*.png"):
        # These are of the simulations of `make calibration`, and no paper's.
        if file.parent.name == "calibration":
            continue
        with Image.open(file) as image:
            inches = image.height / plt.rcParams["savefig.dpi"]
        if inches > canvas.MAX_HEIGHT_INCHES + 0.01:
            too_high[file.name] = inches
    assert too_high == {}
