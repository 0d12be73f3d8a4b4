"""The groups that several studies ask."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import stats

from ingroup import figures, paths, synthesis, synthesis_figures
from ingroup.inference import Sampling
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.printed import group_labels
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.tables import InputError


def test_shared_groups_are_identities_of_the_studies():
    """Every name is one that the study's own files have, and every group is of two studies."""
    table = synthesis.shared_groups()
    people = pd.concat(
        stimuli.identities(category).assign(category=category) for category in stimuli.categories()
    )
    phrasings = pd.concat(
        scenarios.phrasings(category, True) for category in scenarios.categories()
    )
    giebench = pd.read_csv(paths.STIMULI / "giebench/identities.csv")
    known = {
        "empathy_gap": set(people.identity),
        "biased_samaritan": set(phrasings.text),
        "giebench": set(giebench.identity),
        "stereomap": set(social_groups.names("EXTENDED")),
    }
    for study, rows in table.groupby("study"):
        assert set(rows.identity) <= known[study]

    studies_of_group = table.groupby("group").study.nunique()
    assert (studies_of_group >= 2).all()
    assert set(table.category) == {"race_or_ethnicity", "gender", "age", "religion", "nationality"}

    # The identities of a group of the first study belong to one group there too, all of them.
    of_study = table[table.study == "empathy_gap"]
    for _, identities in people.groupby("category"):
        sizes = identities[["group", "identity"]].merge(of_study).groupby("group").size()
        whole = identities.groupby("group").size()
        assert (sizes == whole[sizes.index]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study,category,identity\n", "line 1: the column 'group' is missing, found"),
        ("study,category,group,identity\na,age,Old,\n", "line 2, column 'identity': found '', exp"),
        (
            "study,category,group,identity\na,c,X,x\na,c,Y,x\n",
            "line 3: found .* 'x' again, expected",
        ),
        ("study,category,group,identity\na,c,X,x\nb,d,X,x\n", "line 3: found 'X' in 'd' and 'c'"),
    ],
)
def test_a_table_of_groups_that_is_wrong_says_where(tmp_path, text, message):
    file = tmp_path / "groups.csv"
    file.write_text(text, "utf8")

    with pytest.raises(InputError, match=message):
        synthesis.shared_groups(file)


def test_a_reversed_claim_differs_from_one_that_stands_nowhere():
    outcome = synthesis_figures.outcome

    all_reversed = pd.DataFrame({"stands": [False] * 4, "reversed": [True] * 4})
    all_reversed = all_reversed.assign(claim="x", testable=True, p=0.1, estimate=1)
    assert outcome(all_reversed) == "reversed on 100 %"

    nowhere = all_reversed.assign(reversed=False)
    assert outcome(nowhere) == "stands on no path"

    mixed = nowhere.assign(
        stands=[True, False, False, False],
        reversed=[False, True, True, False],
    )
    assert outcome(mixed) == "stands on 25 %,\nreversed on 50 %"

    # A path that could show nothing does not count.
    with_one_unable = mixed.assign(testable=[True, True, True, False])
    assert outcome(with_one_unable) == "stands on 33 %,\nreversed on 67 %"
    all_unable = mixed.assign(testable=False)
    assert outcome(all_unable) == "cannot be told"


def test_neighbouring_paths_share_a_mark():
    """320 paths of two options in turn: an even grey and no stripes thinner than a printer's."""
    rows = pd.DataFrame({"rule": ["a", "b"] * 160, "side": ["x"] * 160 + ["y"] * 160})
    _, ax = plt.subplots()

    synthesis_figures.draw_marks(ax, rows, {"rule": ["a", "b"], "side": ["x", "y"]}, True)

    pixels = ax.images[0].get_array()
    plt.close()
    assert pixels.shape == (4, 40, 3)
    even_grey = (1 + 0x33 / 255) / 2
    np.testing.assert_allclose(pixels[:2], even_grey)
    assert (pixels[2, 20:] == 1).all()
    assert (pixels[3, :20] == 1).all()
    is_marked = (pixels[2, :20] < 1).any(axis=-1)
    assert is_marked.all()


def test_answers_are_read_only_in_ways_that_all_stores_allow(monkeypatch):
    """Two stores keep the steps of digits, one has its probabilities alone, texts are texts."""
    digits = {"": [[1], [1, 0], [2]]}
    stores = {
        "digits": SimpleNamespace(manifest={"spelling": digits}),
        "mean": SimpleNamespace(manifest={}),
    }

    def job(part, temperature=0.0, choices=("1", "10", "2")):
        sampling = Sampling(temperature, choices=choices)
        return SimpleNamespace(part=part, is_scored=bool(choices), sampling=sampling)

    monkeypatch.setattr(synthesis, "stored", lambda job: stores[job.part])

    of_digits = synthesis.ways_to_read([job("digits"), job("digits")])
    assert list(of_digits) == [
        "greedy, turn",
        "expected, turn",
        "greedy, newline",
        "expected, newline",
        "greedy, any",
        "expected, any",
    ]

    of_both = synthesis.ways_to_read([job("digits"), job("mean")])
    assert list(of_both) == ["expected, turn"]

    of_draws = synthesis.ways_to_read([job("digits", temperature=1.0)])
    assert len(of_draws) == 9

    of_texts = synthesis.ways_to_read([job("no", choices=())])
    assert list(of_texts) == ["free"]


def test_two_models_are_compared_over_the_items_that_both_answered():
    first = pd.DataFrame({"gap": [1.0, 3.0, 5.0, np.nan], "own": 0.0}, index=list("abcd"))
    second = pd.DataFrame({"gap": [0.0, 1.0, 1.0, 9.0], "else": 1.0}, index=list("bcad"))

    (row,) = synthesis.compare_models(first, second).itertuples(index=False)

    # The items a, b and c: 1 and 1, 3 and 0, 5 and 1.
    assert row.effect == "gap"
    assert row.items == 3
    assert row.one == 3
    assert row.other == pytest.approx(2 / 3)
    assert row.difference == pytest.approx(7 / 3)

    expected = stats.ttest_rel([1, 3, 5], [1, 0, 1])
    interval = expected.confidence_interval()
    assert row.p == pytest.approx(expected.pvalue)
    assert row.low == pytest.approx(interval.low)
    assert row.high == pytest.approx(interval.high)

    assert synthesis.compare_models(first, second.iloc[:0]).empty


def two_views():
    """Groups A and B in four events and in four scenarios; C is no shared group."""
    events = pd.DataFrame({"A": [1.0, 3, 1, 3], "B": [0.0, 0, 1, 1], "C": 5.0})
    scenarios_of_groups = pd.DataFrame({"A": [4.0, 4, 8, 8], "D": [2.0, 0, 2, 0]})
    return {
        ("m", "first"): [synthesis.View("gap", events, 2.0)],
        ("m", "second"): [
            synthesis.View("help", scenarios_of_groups, 3.0),
            synthesis.View("help", pd.DataFrame(), 3.0),
        ],
    }


SHARED = pd.DataFrame(
    {
        "study": ["first", "second", "first", "second"],
        "category": ["age", "age", "gender", "gender"],
        "group": ["B", "A", "A", "D"],
        "identity": ["b", "a", "A", "d"],
    }
)


def test_effects_are_means_divided_by_the_sd_of_single_answers():
    ground_truth = pd.DataFrame({"A": [4.0, 4.0], "B": 1.0, "C": 0.0})
    # Of the second study this calibrant has no ground-truth view, as with questions of one's own.
    taught = {("m", "first"): [synthesis.View("gap", ground_truth, 99.0)], ("m", "second"): []}

    measured = synthesis.measure_effects(two_views(), taught, seed=1, n_resamples=50)

    effects = measured.effects.set_index(["measure", "group"])
    assert effects.effect.to_dict() == {
        ("gap", "A"): 1,
        ("gap", "B"): 0.25,
        ("gap", "C"): 2.5,
        ("help", "A"): 2,
        ("help", "D"): pytest.approx(1 / 3),
    }
    # What was taught is divided by the SD of the model's answers.
    assert effects.ground_truth["gap"].tolist() == [2, 0.5, 0]
    assert effects.ground_truth["help"].isna().all()
    assert list(measured.draws) == [("m", "gap"), ("m", "help")]
    assert measured.draws["m", "help"].shape == (50, 2)

    nothing = synthesis.measure_effects({}, {}, seed=1, n_resamples=50)
    assert synthesis.group_profiles(nothing.effects, SHARED).empty


def test_group_profiles_have_the_groups_that_two_studies_asked():
    effects = pd.DataFrame(
        {
            "model": "m",
            "study": ["first", "first", "second", "second", "first", "second"],
            "measure": ["gap", "gap", "help", "help", "gap", "help"],
            "group": ["A", "B", "A", "B", "D", "X"],
            "effect": [1.0, 0.5, 2.0, 0.2, 1.0, 1.0],
            "low": [0.5, 0.1, 1.0, 0.1, 0.0, 0.0],
            "high": [1.5, 0.9, 3.0, 0.3, 2.0, 2.0],
            "items": 4,
            "ground_truth": [1.2, 1.0, np.nan, np.nan, 1.0, 1.0],
        }
    )

    table = synthesis.group_profiles(effects, SHARED)

    # D is asked by one study, X is in no row of the shared groups, B stands first in them.
    assert table.group.tolist() == ["B", "B", "A", "A"]
    assert table.measure.tolist() == ["gap", "help", "gap", "help"]
    assert table.category.tolist() == ["age"] * 4
    assert table.verdict.tolist() == ["misses the ground truth", "", "covers the ground truth", ""]
    assert table.model_error.iloc[[0, 2]].tolist() == pytest.approx([-0.5, -0.2])

    errors = synthesis.own_errors(table)
    assert errors.index.tolist() == [("m", "gap")]
    assert errors.own_error.tolist() == pytest.approx([((0.5**2 + 0.2**2) / 2) ** 0.5])
    assert errors.effects.tolist() == [2]
    assert errors.covers.tolist() == [1]
    assert synthesis.own_errors(table.assign(verdict="")).empty


def test_measures_are_correlated_beside_their_ground_truth():
    """Five groups: both measures agree in all but one pair, and were taught opposite orders.

    A sixth group has no gap, so what it was taught does not count.
    """
    groups = list("ABCDEF")
    effects = pd.DataFrame(
        {
            "model": "m",
            "measure": ["warmth"] * 6 + ["gap"] * 6,
            "group": groups * 2,
            "effect": [1.0, 2, 3, 4, 5, 6, 1.0, 2, 3, 5, 4, np.nan],
            "ground_truth": [1.0, 2, 3, 4, 5, 6, 5.0, 4, 3, 2, 1, 6],
        }
    )
    alone = effects[effects.measure == "gap"].assign(model="alone")
    effects = pd.concat([effects, alone])
    draw = pd.DataFrame([[1.0, 2, 3, 4, 5, 6]] * 3, columns=groups)
    draws = {("m", "warmth"): draw, ("m", "gap"): draw, ("alone", "gap"): draw}

    table = synthesis.agreement(effects, draws, ["alone", "m"], 0, 5_040)

    (row,) = table.itertuples(index=False)
    assert (row.model, row.one, row.other, row.n) == ("m", "warmth", "gap", 5)
    assert row.rho == pytest.approx(0.9)
    assert row.ground_truth_rho == pytest.approx(-1)
    assert row.model_error == pytest.approx(1.9)
    assert row.verdict == "misses the ground truth"
    assert synthesis.agreement(effects, draws, ["alone"], 0, 5_040).empty


def test_paths_are_summed_up_by_model_and_option():
    paths_of_claim = pd.DataFrame(
        {
            "model": ["a", "a", "b", "b"],
            "claim": "x",
            "unit": ["item", "group"] * 2,
            "correction": "none",
            "estimate": [1.0, 2.0, 3.0, 4.0],
            "p": 0.01,
            "testable": True,
            "stands": [True, False, True, True],
            "reversed": False,
        }
    )

    shares, options = synthesis.sum_up_paths({"s": paths_of_claim})

    assert shares.stands.to_dict() == {("a", "s", "x"): 50, ("b", "s", "x"): 100}
    of_unit = options.xs("unit", level="choice").stands.to_dict()
    assert of_unit["a", "s", "x", "item"] == 100
    assert of_unit["a", "s", "x", "group"] == 0
    assert options.xs("correction", level="choice").stands.to_dict()["a", "s", "x", "none"] == 50


def test_the_decisive_choice_is_the_one_whose_options_lie_furthest_apart():
    """Claim x stands on half of its paths, y on all: only x depends on a choice."""
    names = ["model", "study", "claim"]
    claims = pd.MultiIndex.from_tuples([("m", "s", "x"), ("m", "s", "y")], names=names)
    shares = pd.DataFrame({"stands": [50.0, 100.0], "reversed": 0.0}, claims)
    rows = [
        ("m", "s", "x", "unit", "item", 60.4, 0),
        ("m", "s", "x", "unit", "group", 40, 0),
        ("m", "s", "x", "reading", "free", 90, 5),
        ("m", "s", "x", "reading", "drawn", 10, 0),
        ("m", "s", "y", "reading", "free", 100, 0),
        ("m", "s", "y", "reading", "drawn", 100, 0),
    ]
    columns = [*names, "choice", "option", "stands", "reversed"]
    options = pd.DataFrame(rows, columns=columns).set_index(columns[:5])
    table = synthesis.decisive_choices(shares, options)
    assert table.index.tolist() == [("m", "s", "x", "stands", "reading")]
    assert table.apart.tolist() == [80]
    assert table["share of the paths under each option (%)"].tolist() == ["free: 90; drawn: 10"]
    assert synthesis.decisive_choices(shares.assign(stands=100.0), options).empty


def test_an_option_that_could_not_show_a_claim_cannot_be_told():
    """By hand: greedy answers do not vary, so that reading has no share."""
    names = ["model", "study", "claim"]
    claims = pd.MultiIndex.from_tuples([("m", "s", "x")], names=names)
    shares = pd.DataFrame({"stands": [50.0], "reversed": 0.0}, claims)
    rows = [
        ("m", "s", "x", "reading", "greedy, turn", np.nan, np.nan),
        ("m", "s", "x", "reading", "drawn, turn", 0, 0),
        ("m", "s", "x", "reading", "expected, turn", 100, 0),
    ]
    columns = [*names, "choice", "option", "stands", "reversed"]
    options = pd.DataFrame(rows, columns=columns).set_index(columns[:5])

    table = synthesis.decisive_choices(shares, options)

    assert table.apart.tolist() == [100]
    shown = table["share of the paths under each option (%)"].tolist()
    assert shown == ["greedy, turn: cannot be told; drawn, turn: 0; expected, turn: 100"]


def profile_rows():
    """Two measures of two groups for a calibrant, and one for the control."""
    rows = pd.DataFrame(
        {
            "model": ["own"] * 4 + ["control"] * 2,
            "measure": ["warmth", "warmth", "gap", "gap", "warmth", "warmth"],
            "category": ["religion", "age"] * 3,
            "group": ["Hindus", "Older people"] * 3,
            "effect": [0.5, -0.2, 0.1, np.nan, 0.0, 0.1],
            "low": [0.4, -0.3, 0.0, np.nan, 0, 0],
            "high": [0.6, -0.1, 0.2, np.nan, 0.1, 0.2],
            "items": [9, 1, 9, np.nan, 9, 9],
            "ground_truth": [0.45, -0.4, np.nan, np.nan, np.nan, np.nan],
        }
    )
    rows["model_error"] = rows.effect - rows.ground_truth
    rows["verdict"] = ["covers the ground truth", "misses the ground truth", None, None, None, None]
    return rows


@pytest.fixture
def closed():
    yield
    plt.close("all")


def test_group_profiles_have_a_panel_per_measure_and_the_calibrants_own_error(closed):
    fig = synthesis_figures.group_profile(profile_rows(), ["gap", "warmth"], ["own", "control"])
    gap, warmth = fig.axes
    assert [ax.get_title() for ax in fig.axes] == ["gap", "warmth"]
    own, control = warmth.collections[1], warmth.collections[3]
    assert own.get_offsets()[:, 0].tolist() == [0.5, -0.2]
    assert control.get_offsets()[:, 0].tolist() == [0.0, 0.1]
    texts = [text.get_text() for text in warmth.texts]
    error = ((0.05**2 + 0.2**2) / 2) ** 0.5
    assert f"own error {error:.2f}\n1 of 2 inside" in texts
    assert "–" in [text.get_text() for text in gap.texts]
    (legend,) = fig.legends
    assert legend.get_title().get_text() == "Group profiles of own"
    assert [text.get_text() for text in legend.get_texts()] == [
        "own",
        "control",
        "a single item",
        "not in the design",
        "ground truth",
    ]


def test_a_pair_without_a_correlation_says_why(closed):
    table = pd.DataFrame(
        {
            "model": ["a", "a", "a", "b"],
            "one": "gap",
            "other": ["x", "y", "z", "z"],
            "n": [5, 3, 6, 6],
            "rho": [0.5, np.nan, np.nan, 0.2],
            "low": 0.1,
            "high": 0.9,
            "p_holm": [0.01, np.nan, np.nan, 0.5],
            "ground_truth_rho": np.nan,
            "model_error": np.nan,
            "verdict": None,
        }
    )
    fig = synthesis_figures.agreement(table)
    first, second = fig.axes
    assert [tick.get_text() for tick in first.get_yticklabels()] == [
        "gap and x",
        "gap and y",
        "gap and z",
    ]
    said = [text.get_text() for text in first.texts]
    assert said[:3] == ["5", "3 groups, too few", "no difference between groups"]
    assert [text.get_text() for text in second.texts][:2] == ["not asked", "not asked"]
    dots = first.collections[1].get_offsets()
    assert np.ma.filled(dots[:, 0], np.nan)[0] == 0.5


def test_every_model_has_a_panel_however_many_there_are(closed):
    """Nine models, one more than there are colours."""
    row = {"one": "x", "other": "y", "n": 5, "rho": 0.5, "low": 0.1, "high": 0.9, "p_holm": 0.01}
    rows = [row | {"model": f"model {number}"} for number in range(9)]
    table = pd.DataFrame(rows).assign(ground_truth_rho=np.nan, model_error=np.nan, verdict=None)

    fig = synthesis_figures.agreement(table)

    titles = [ax.get_title().strip() for ax in fig.axes if ax.axison]
    assert titles == [f"model {number}" for number in range(9)]


def test_curves_are_sorted_and_marks_stand_below_them(closed):
    rows = pd.DataFrame(
        {
            "model": ["own", "own", "control"],
            "claim": "a_claim",
            "unit": ["x", "y", "x"],
            "estimate": [0.5, -0.5, 0.1],
            "low": -1.0,
            "high": 1.0,
            "p": 0.01,
            "reason": "",
            "least": 0.0,
            "p_corrected": 0.01,
            "testable": True,
            "stands": [True, False, False],
            "reversed": [False, True, False],
        }
    )
    fig = synthesis_figures.specification_curves(rows, "own", "control", 1, "points")
    curve, marks = fig.axes
    assert curve.get_title() == "A Claim\nstands on 50 %,\nreversed on 50 %"
    assert curve.collections[1].get_offsets()[:, 1].tolist() == [-0.5, 0.5]
    assert curve.lines[0].get_ydata().tolist() == [0.1]
    assert [tick.get_text() for tick in marks.get_yticklabels()] == ["unit:  x", "y"]
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names[-1] == "control, the negative control"


def test_claims_at_a_glance_stand_right_and_are_reversed_left(closed):
    shares = pd.DataFrame(
        {
            "model": ["own", "own", "control"],
            "study": "s",
            "claim": ["x", "y", "x"],
            "stands": [80.0, 0.0, 0.0],
            "reversed": [0.0, 100.0, 0.0],
        }
    )
    fig = synthesis_figures.claims_at_a_glance(
        shares, ["own", "control"], "control", {"s": "it is"}
    )
    (ax,) = fig.axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["X", "Y"]
    stands, is_reversed = ax.lines[:2]
    np.testing.assert_array_equal(stands.get_xdata(), [80, np.nan])
    np.testing.assert_array_equal(is_reversed.get_xdata(), [np.nan, -100])
    assert is_reversed.get_label() == "own"
    assert [text.get_text() for text in ax.texts] == ["it is"]


def walked(n_claims):
    """Paths of a model, each claim with eight options of two choices."""
    rows = []
    for claim in range(n_claims):
        for path in range(4):
            choices = {"rule": f"r{path}", "side": f"s{path}"}
            rows.append({"claim": f"Claim {claim}", "estimate": 1.0 * path, **choices})
    table = pd.DataFrame(rows).assign(model="own", low=0.0, high=4.0, p=0.01, reason="")
    return table.assign(least=0.0, p_corrected=0.01, testable=True, stands=True, reversed=False)


def type_and_height(n_claims):
    fig = synthesis_figures.specification_curves(walked(n_claims), "own", None, 1, "points")
    (marks, *_) = (ax for ax in fig.axes if ax.images)
    size = marks.get_yticklabels()[0].get_size()
    plt.close(fig)
    return size, fig.get_figheight()


def test_curves_are_no_higher_than_a_page_and_their_options_follow_the_font(monkeypatch):
    """Eight options: rows of 1.25 + 8 * 0.085 in, and 0.3 in for the legend."""
    figures.use_style()
    assert type_and_height(2) == (5, pytest.approx(4.16))
    assert type_and_height(6) == (5, 9.2)

    monkeypatch.setitem(figures.OPTIONS_GIVEN, "font", 8)
    figures.use_style()
    larger = type_and_height(2)
    crowded = type_and_height(6)
    monkeypatch.undo()
    figures.use_style()
    assert larger == (6, pytest.approx(0.3 + 2 * (1.25 + 8 * 0.085 * 6 / 5)))
    assert crowded == (5, 9.2)


@pytest.mark.parametrize(("label", "n_lines"), [("warmth − competence", 2), ("gap", 1)])
def test_the_label_of_a_curve_is_no_longer_than_its_axis(closed, label, n_lines):
    figures.use_style()
    fig = synthesis_figures.specification_curves(walked(1), "own", None, 1, label)
    fig.draw_without_rendering()
    curve = fig.axes[0]

    ylabel = curve.yaxis.label
    assert ylabel.get_text().replace("\n", " ") == label
    assert len(ylabel.get_text().splitlines()) == n_lines
    assert ylabel.get_window_extent().height <= curve.get_window_extent().height


def test_a_group_has_one_spelling_in_all_figures():
    """That of the paper's tables, also where a key stands for it."""
    labels = group_labels()
    del labels["latino"]  # no table prints it
    for key, label in labels.items():
        assert synthesis_figures.claim_name(key) == label
    assert labels["non_binary"] == "Non-Binary"
    assert synthesis_figures.claim_name("LGBT people") == "LGBT people"
