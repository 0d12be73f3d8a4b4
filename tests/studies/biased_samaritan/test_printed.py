"""Answers that the paper could have printed, by equation 1 term by term: nothing differs here."""

import random
from functools import partial
from itertools import product
from statistics import fmean, pstdev, stdev

import numpy as np
import pandas as pd
import pytest

from ingroup import paths, published
from ingroup.inference import ask, call
from ingroup.studies.biased_samaritan import design, printed, statistics, stimuli
from ingroup.studies.biased_samaritan.answers import cubes, load
from reprint import reprint
from toy import Toy

NUMBERS = printed.numbers_of
MODEL = "gpt-4o-mini"  # printed in two runs
TABLES = {"Age": (1, 6, 10, 14), "Gender": (2, 7, 9, 13), "Race": (3, 8, 11, 12)}
SPREADS = {"sample": stdev, "population": pstdev}


def rater():
    """Any number, with or without a decimal; now and then a refusal."""
    chance = random.Random(2)

    def say(chat, before, asked):
        number = f"{chance.uniform(20, 90):.{chance.choice((0, 0, 1))}f}"
        return "I cannot say." if chance.random() < 0.05 else number

    return Toy(say, model=MODEL)


@pytest.fixture(params=["full", "totals"])
def rated(request, tmp_path, monkeypatch):
    """The crossing, and what was answered to every prompt of two runs: tables of `load`."""
    told = stimuli.load_scenarios()
    told[told.scenario <= 12].to_csv(tmp_path / "twelve.csv", index=False)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(call, "make_engine", lambda *_, **__: rater())
    parameters = {
        "MODELS": [MODEL],
        "ENGINE": "openai",
        "READING": "",
        "ENDING": "turn",
        "RUNS": 2,
        "LATINO": False,
    }
    parameters |= {"SCENARIOS": str(tmp_path / "twelve.csv"), "CROSSING": request.param}
    parameters |= {"TEMPERATURE": -1.0, "TOP_P": -1.0, "MAX_TOKENS": 8, "REASONING": "", "SEED": 0}
    parameters |= {"REQUEST": "sample"}
    asked = ask(design.calls(parameters), parameters)
    return request.param, {one.key[1:]: load(one) for one in asked}


def by_scenario(prompts, group):
    """The rows with a rating that are of a group, scenario by scenario."""
    own = [row for row in prompts if row.group == group and row.rating == row.rating]
    return [[row for row in own if row.scenario == n] for n in sorted({r.scenario for r in own})]


def means(inside, by):
    """Mean of the ratings in each value of a column, of rows of one scenario."""
    values = {getattr(row, by) for row in inside}
    return [fmean(r.rating for r in inside if getattr(r, by) == one) for one in sorted(values)]


def slow_score(prompts, group):
    return fmean(fmean(means(inside, "wording")) for inside in by_scenario(prompts, group))


def slow_spread(prompts, group, pooling, spread):
    """Standard deviation over wordings: of each name apart, or of the means over names."""
    found = []
    for inside in by_scenario(prompts, group):
        names = [[row.rating for row in inside if row.phrasing == name]
                 for name in {row.phrasing for row in inside}]  # fmt: skip
        names = [means(inside, "wording")] if pooling == "averaged" else names
        spreads = [spread(ratings) for ratings in names if len(ratings) > 1]
        found += [fmean(spreads)] if spreads else []
    return fmean(found) if len(found) > 1 else None


def cells(prompts, spread):
    """What every cell of the paper's tables would be."""

    def score(category, row):
        return f"{slow_score(prompts[int(row.get('run', 1)), category], row['group']):.2f}"

    def bias(category, row):
        own = prompts[1, category]
        return f"{slow_score(own, row['group']) - slow_score(own, stimuli.CONTROL):.2f}"

    def brittleness(category, row):
        found = spread(prompts[int(row.get("run", 1)), category], row["group"])
        return "0.00" if found is None else f"{found:.2f}"

    return {
        (table, column): partial(of, category)
        for category, tables in TABLES.items()
        for table, column, of in zip(
            tables,
            ("score_difference", "mean_score", "mean_sd", "mean_score"),
            (bias, score, brittleness, score),
            strict=True,
        )
    }


def beside(prompts, **options):
    def brittle(cube):
        try:
            return statistics.brittleness(cube, **options)
        except ValueError:  # a lone name in the crossing "totals"
            return statistics.ScenarioMean(np.nan, np.nan, np.nan, 0, cube.shape[1])

    ratings = {key: cubes(table) for key, table in prompts.items()}
    tables = [
        statistics.by_group(ratings, f, ["run", "category"])
        for f in (statistics.helpfulness, brittle)
    ]
    return published.beside("biased_samaritan", MODEL, NUMBERS(*tables))


@pytest.mark.parametrize(("spread", "pooling"), [*product(SPREADS, ("within", "averaged"))])
def test_nothing_differs_from_what_the_same_answers_print(
    rated, spread, pooling, tmp_path, monkeypatch
):
    crossing, prompts = rated
    slow = partial(slow_spread, pooling=pooling, spread=SPREADS[spread])
    plain = {key: [*table.itertuples()] for key, table in prompts.items()}
    numbers = cells(plain, slow)
    written = reprint(tmp_path / "print", monkeypatch, "biased_samaritan", MODEL, numbers)
    table = beside(prompts, ddof={"sample": 1, "population": 0}[spread], phrasings=pooling)
    assert len(table) == written
    none = table.verdict == "nothing to compare"  # a lone name has one wording a scenario
    spreads = table.number == "mean_sd"
    assert not (none & ~spreads).any()
    assert none.any() == (crossing == "totals")
    assert table.verdict[~none].eq("agrees within rounding").all(), table[~none]
    other = beside(prompts, ddof={"sample": 0, "population": 1}[spread], phrasings=pooling)
    assert other.verdict[spreads & ~none].eq("differs").all()


def test_the_printed_score_is_a_difference_of_two_means_with_missing_ratings_too(rated):
    """Of scenarios 1 and 2 for the group, 2 and 3 for the control: 60 - 40, not 70 - 50."""
    group, control = np.array([[50.0], [70], [np.nan]]), np.array([[np.nan], [50.0], [30]])
    ratings = {(1, "Age"): {"control": control, "senior": group}}
    table = statistics.by_group(ratings, statistics.helpfulness, ["run", "category"])
    empty = table.head(0)
    (score,) = (n for t, _, n in NUMBERS(table, empty) if t == 1)
    assert score.to_dict() == {"senior": 60 - 40}
    assert pd.Series(score).index.name == "group"
