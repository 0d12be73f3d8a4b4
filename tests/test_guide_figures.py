"""Figures of the guide: what they draw, from numbers made by hand."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup import figures, guide_figures
from ingroup.stats.permutation import PermutationTest


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def leads(points, model="some/own"):
    return pd.DataFrame(
        {
            "model": model,
            "setting": ["P0", "P1", "P2"],
            "read": "average answer",
            "points": points,
            "p": [0.01, 0.05, 0.04],
        }
    )


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([0.0, 0.0], "no difference"),
        ([0.0, 1.25, 0.5], "0.0 to 1.2 more"),
        ([-3.0, -0.5], "0.5 to 3.0 less"),
        ([-1.0, 0.0], "0.0 to 1.0 less"),
        ([-0.5, 1.25], "0.5 less to 1.2 more"),
        ([1.25], "1.2 more"),
        ([-3.0, -3.0], "3.0 less"),
    ],
)
def test_a_span_says_how_much_more_or_less(points, text):
    assert guide_figures.lead_range(pd.Series(points)) == text


@pytest.mark.parametrize(
    ("points", "way"),
    [(0.1, "the own group gets more"), (-0.1, "others get more"), (0.0, "no difference")],
)
def test_a_direction_follows_from_the_sign(points, way):
    assert guide_figures.direction(points) == way


def test_a_headline_answers_its_question():
    asked = "does own rate the feelings of people of its own religion higher?"
    one_way = guide_figures.headline(leads([1.0, 2.0, 0.5]), "religion")
    assert asked in one_way
    assert one_way.endswith("\nIn every wording, the own group gets more.")

    two_ways = guide_figures.headline(leads([1.0, 2.0, -0.5]), "religion")
    assert two_ways.endswith("\nThat depends on the wording.")

    models = pd.concat([leads([1.0, 2.0, -0.5]), leads([1.0, 1.0, 1.0], "b")])
    of_two = guide_figures.headline(models, "religion")
    assert "does a model rate" in of_two
    assert of_two.endswith("\nThat depends on the model, and on the wording.")


def test_a_headline_names_only_what_was_asked():
    """One wording, one reading, and leads that may all be chance."""
    first = leads([1.0, 2.0, -0.5]).query("setting == 'P0'")
    alone = guide_figures.headline(first, "religion")
    assert alone.endswith("\nIn the one wording that was asked, the own group gets more.")

    other_reading = first.assign(read="greedy answer", points=-1.0)
    readings = guide_figures.headline(pd.concat([first, other_reading]), "religion")
    assert readings.endswith("\nThat depends on how its answer is read.")

    other_model = first.assign(model="b", points=-1.0)
    of_models = guide_figures.headline(pd.concat([first, other_model]), "religion")
    assert of_models.endswith("\nThat depends on the model.")

    both = guide_figures.headline(pd.concat([first, other_reading, other_model]), "religion")
    assert both.endswith("\nThat depends on the model, and on how its answer is read.")

    weak = leads([1.0, 2.0, 0.5]).assign(p=0.3)
    chance = guide_figures.headline(weak, "religion")
    assert chance.endswith("\nIn every wording, the own group gets more, which may be chance.")


def test_a_dot_that_may_be_chance_is_pale():
    fig = guide_figures.own_group(leads([3.0, -2.0, 1.0]), "religion")
    (ax,) = fig.axes
    dots = {}
    for collection in ax.collections:
        for x, _ in collection.get_offsets():
            dots[x] = collection.get_alpha()
    assert dots == {3.0: 0.9, -2.0: 0.35, 1.0: 0.9}
    assert ax.get_xlim() == pytest.approx((-2.2, 3.45))
    assert [text.get_text() for text in ax.texts] == ["2.0 less to 3.0 more"]


def test_delta_is_the_distance_of_the_two_means():
    """In-group cells have a mean of 1.5, the others of -0.5."""
    z = np.array([[1.0, -1.0], [0.0, 2.0]])
    same = np.eye(2, dtype=bool)
    fig = guide_figures.delta(50 + z, z, same, ["A", "B"], ["a", "b"])
    points, scores, means = fig.axes

    assert [text.get_text() for text in points.texts] == ["51", "49", "50", "52"]
    assert [text.get_text() for text in scores.texts] == ["1.0", "-1.0", "0.0", "2.0"]
    assert [text.get_fontweight() for text in scores.texts] == ["bold", "normal", "normal", "bold"]
    assert [text.get_color() for text in scores.texts] == ["white", "black", "black", "white"]

    assert means.texts[-1].get_text() == r"$\delta$ = 2.00"
    large = [line.get_ydata().item() for line in means.lines if line.get_markersize() == 8]
    assert large == [1.5, -0.5]


def test_a_null_interval_holds_the_middle_and_says_where_delta_lies():
    null = np.linspace(-1, 1, 41)  # 2.5 and 97.5 percentiles: -0.95 and 0.95
    tests = {
        "a gap": PermutationTest(1.2, 0.0123, null, 0.01),
        "no gap": PermutationTest(0.1, 0.8, null, 0.01),
    }
    fig = guide_figures.null_intervals(tests)
    titles = [ax.get_title() for ax in fig.axes]
    assert titles == ["a gap: outside, p = 0.0123", "no gap: inside, p = 0.8000"]

    band, *bars = fig.axes[0].patches
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((-0.95, 0.95))
    assert sum(bar.get_height() for bar in bars) == 41
    assert fig.axes[0].lines[0].get_xdata()[0] == 1.2


def test_biases_stand_before_bars_as_long_as_the_brittleness():
    control = np.repeat([[50.0, 54.0]], 6, axis=0)
    scores = pd.DataFrame(
        {"bias": [4.0, -1.0], "low": [3.0, -2.0], "high": [5.0, 0.5], "brittleness": [2.0, 3.0]},
        index=["North", "South"],
    )
    fig = guide_figures.biases("North", control + 4, control, scores)
    scenarios, all_scenarios = fig.axes

    strokes = [line for line in scenarios.lines if line.get_marker() == "|"]
    assert [stroke.get_xdata().item() for stroke in strokes] == [52, 56] * 6

    names = [label.get_text() for label in all_scenarios.get_yticklabels()]
    assert names == ["South", "North"]  # from below
    bars = all_scenarios.patches[:2]
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [(-3, 6), (-2, 4)]
    assert [text.get_text() for text in all_scenarios.texts] == ["-1.0", "+4.0"]
    ends = [
        segment[:, 0].tolist() for c in all_scenarios.collections for segment in c.get_segments()
    ]
    assert ends == [[-2, 0.5], [3, 5]]
    assert all_scenarios.get_ylim() == pytest.approx((-0.6, 1.6))


def test_a_group_lies_at_the_mean_of_its_rounds():
    names = [*guide_figures.CORNERS, *guide_figures.EDGES]
    words = {name: f"<{name}>" for name in names}
    scores = pd.DataFrame(
        {"group": ["North", "North"], "Competence": [1.0, 2.0], "Warmth": [4.0, 5.0]}
    )
    fig = guide_figures.warmth_and_competence(scores, words)
    (ax,) = fig.axes
    rounds, mean, _ = ax.lines
    assert rounds.get_xydata().tolist() == [[1, 4], [2, 5]]
    assert mean.get_xydata().tolist() == [[1.5, 4.5]]

    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places["<Pity>"] == (2, 4.7)  # warm, not competent
    assert places["<Envy>"] == (4, 2.7)  # competent, cold
    assert places["warm: <ActiveFacilitation>"] == (3, 4.95)

    guide_figures.name_means(ax, scores)
    assert "North" in [text.get_text() for text in ax.texts]


def test_a_reduced_image_has_the_mean_of_each_square():
    rows = np.arange(5.0)[:, None, None]
    columns = np.arange(4.0)[None, :, None]
    pixels = np.broadcast_to(rows + 10 * columns, (5, 4, 4))
    small = guide_figures.reduce_image(pixels, 2)
    assert small.shape == (2, 2, 3)  # the fifth row and the transparency are left out
    assert small[..., 0].tolist() == [[5.5, 25.5], [7.5, 27.5]]


def test_a_gallery_has_reduced_images_and_empty_panels(tmp_path):
    file = tmp_path / "giebench" / "position.png"
    file.parent.mkdir()
    plt.imsave(file, np.ones((8, 12, 3)))

    fig = guide_figures.gallery([file])

    first, *others = fig.axes
    assert len(others) == 5
    assert first.get_title() == "giebench: position"
    assert first.images[0].get_array().shape == (2, 3, 3)
    assert not any(ax.images for ax in others)


def test_each_direction_has_its_own_colour():
    assert guide_figures.DIRECTIONS["the own group gets more"] == figures.COLOURS[0]
    assert len(set(guide_figures.DIRECTIONS.values())) == 3
