"""Answers that the paper could have printed, by equation 1 term by term: nothing differs here."""

import random
from collections import defaultdict
from functools import partial
from statistics import fmean, pstdev, stdev

import numpy as np
import pandas as pd
import pytest

from ingroup import paths, published
from ingroup.inference import ask, job
from ingroup.studies.biased_samaritan import design, printed, statistics, stimuli
from ingroup.studies.biased_samaritan.answers import cubes, load
from reprint import reprint
from toy import Toy

NUMBERS = printed.numbers_of
MODEL = "gpt-4o-mini"  # printed in two runs
TABLES = {
    "Age": (1, 6, 10, 14),
    "Gender": (2, 7, 9, 13),
    "Race": (3, 8, 11, 12),
}


def rater():
    """Any number, with or without a decimal; now and then a refusal."""
    chance = random.Random(2)

    def say(chat, before, asked):
        decimals = chance.choice((0, 0, 1))
        number = f"{chance.uniform(20, 90):.{decimals}f}"
        return "I cannot say." if chance.random() < 0.05 else number

    return Toy(say, model=MODEL)


@pytest.fixture(params=["full", "totals"])
def rated(request, tmp_path, monkeypatch):
    """The crossing, and what was answered to every prompt of two runs: tables of `load`."""
    scenarios = stimuli.load_scenarios()
    file = tmp_path / "twelve.csv"
    scenarios[scenarios.scenario <= 12].to_csv(file, index=False)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: rater())
    parameters = {
        "MODELS": [MODEL],
        "ENGINE": "openai",
        "READING": "",
        "ENDING": "turn",
        "ROUNDS": 2,
        "LATINO": False,
        "SCENARIOS": str(file),
        "CROSSING": request.param,
        "TEMPERATURE": -1.0,
        "TOP_P": -1.0,
        "MAX_TOKENS": 8,
        "REASONING": "",
        "SEED": 0,
        "REQUEST": "sample",
    }

    asked_jobs = ask(design.jobs(parameters), parameters)
    return request.param, {one_job.key[1:]: load(one_job) for one_job in asked_jobs}


def by_scenario(prompts, group):
    """The rows with a rating that are of a group, scenario by scenario."""
    rows_of = defaultdict(list)
    for row in prompts:
        if row.group == group and not np.isnan(row.rating):
            rows_of[row.scenario].append(row)

    return [rows_of[scenario] for scenario in sorted(rows_of)]


def wording_means(rows):
    """Mean of the ratings in each wording, of rows of one scenario."""
    ratings_of = defaultdict(list)
    for row in rows:
        ratings_of[row.wording].append(row.rating)

    return [fmean(ratings_of[wording]) for wording in sorted(ratings_of)]


def slow_score(prompts, group):
    """Equation 1 term by term."""
    return fmean(fmean(wording_means(rows)) for rows in by_scenario(prompts, group))


def ratings_by_name(rows):
    """The ratings of each phrasing, of rows of one scenario."""
    ratings_of = defaultdict(list)
    for row in rows:
        ratings_of[row.phrasing].append(row.rating)

    return list(ratings_of.values())


def slow_spread(prompts, group, pooling, spread):
    """Standard deviation over wordings: of each name apart, or of the means over names."""
    of_scenarios = []
    for rows in by_scenario(prompts, group):
        samples = [wording_means(rows)] if pooling == "averaged" else ratings_by_name(rows)
        spreads = [spread(ratings) for ratings in samples if len(ratings) > 1]
        if spreads:
            of_scenarios.append(fmean(spreads))

    return fmean(of_scenarios) if len(of_scenarios) > 1 else None


def cells(prompts, spread):
    """What every cell of the paper's tables would be."""

    def rows_of(category, row):
        run = int(row.get("run", 1))
        return prompts[run, category]

    def score(category, row):
        value = slow_score(rows_of(category, row), row["group"])
        return f"{value:.2f}"

    def bias(category, row):
        first_round = prompts[1, category]
        difference = slow_score(first_round, row["group"]) - slow_score(
            first_round, stimuli.CONTROL
        )
        return f"{difference:.2f}"

    def brittleness(category, row):
        value = spread(rows_of(category, row), row["group"])
        return "0.00" if value is None else f"{value:.2f}"

    texts = {}
    for category, (table_bias, table_score, table_spread, table_runs) in TABLES.items():
        texts[table_bias, "score_difference"] = partial(bias, category)
        texts[table_score, "mean_score"] = partial(score, category)
        texts[table_spread, "mean_sd"] = partial(brittleness, category)
        texts[table_runs, "mean_score"] = partial(score, category)
    return texts


def beside(prompts, **options):
    """The printed tables beside what the library computes."""
    # A lone name in the crossing "totals" has no brittleness.
    brittleness = partial(statistics.brittleness_or_missing, **options)
    ratings = {key: cubes(table) for key, table in prompts.items()}
    keys = ["round", "category"]
    scores = statistics.by_group(ratings, statistics.helpfulness, keys)
    spreads = statistics.by_group(ratings, brittleness, keys)
    return published.beside("biased_samaritan", MODEL, NUMBERS(scores, spreads))


@pytest.mark.parametrize("pooling", ["within", "averaged"])
@pytest.mark.parametrize(
    ("spread", "ddof", "other_ddof"),
    [
        (stdev, 1, 0),
        (pstdev, 0, 1),
    ],
)
def test_nothing_differs_from_what_the_same_answers_print(
    rated, spread, ddof, other_ddof, pooling, tmp_path, monkeypatch
):
    crossing, prompts = rated
    rows = {key: list(table.itertuples()) for key, table in prompts.items()}
    texts = cells(rows, partial(slow_spread, pooling=pooling, spread=spread))
    n_cells = reprint(tmp_path / "print", monkeypatch, "biased_samaritan", MODEL, texts)

    table = beside(prompts, ddof=ddof, phrasings=pooling)
    other = beside(prompts, ddof=other_ddof, phrasings=pooling)

    is_spread = table.number == "mean_sd"
    is_empty = table.verdict == "nothing to compare"  # a lone name has one wording per scenario
    assert len(table) == n_cells
    assert not (is_empty & ~is_spread).any()
    assert is_empty.any() == (crossing == "totals")
    assert table.verdict[~is_empty].eq("agrees within rounding").all(), table[~is_empty]
    assert other.verdict[is_spread & ~is_empty].eq("differs").all()


def test_the_printed_score_is_a_difference_of_two_means_with_missing_ratings_too():
    """Of scenarios 1 and 2 for the group, 2 and 3 for the control: 60 - 40, not 70 - 50."""
    group = np.array([[50.0], [70], [np.nan]])
    control = np.array([[np.nan], [50.0], [30]])
    ratings = {(1, "Age"): {"control": control, "senior": group}}
    scores = statistics.by_group(ratings, statistics.helpfulness, ["round", "category"])
    no_spreads = scores.head(0)

    of_table_1 = [numbers for table, _, numbers in NUMBERS(scores, no_spreads) if table == 1]

    (differences,) = of_table_1
    assert differences.to_dict() == {"senior": 60 - 40}
    assert pd.Series(differences).index.name == "group"
