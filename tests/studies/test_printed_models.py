"""Every printed model's own numbers, of the committed tables, through the cells of the notebooks.

A notebook's own function says which numbers it sets beside which table, and under which names. Here
they get the very values that the table prints: all of them agree, and none does once it is moved.
"""

from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from ingroup import dictionary, models, published
from ingroup.studies.biased_samaritan import printed as samaritan_tables
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import printed as gap_tables
from ingroup.studies.empathy_gap import stimuli as identities
from ingroup.studies.giebench import design
from ingroup.studies.giebench import printed as giebench_tables
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.stereomap import printed as printed_tables
from ingroup.studies.stereomap import statistics as axes
from ingroup.studies.stereomap import stimuli as groups

REGISTRY = models.registry().rows
PRINTED = REGISTRY[REGISTRY.study != ""]
ENDS = ["Traditional", "Conservative", "Wealthy", "High-status"]
SETTINGS = identities.prompts()["settings"]


@pytest.fixture(autouse=True, scope="module")
def loaded_once():
    """Each table is asked for hundreds of times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "load", cache(published.load))
        yield


# ---- what each notebook sets beside the print, with any numbers ----------------------------------


def of_empathy_gap(name, printed):
    """Every block of a model, with the columns of the released code."""
    blocks = list(product([name], SETTINGS, identities.categories()))
    index = pd.MultiIndex.from_tuples(blocks, names=["model", "setting", "category"])
    gaps = [
        "delta_released",
        "null_low_released",
        "null_high_released",
        "null_low_spread",
        "null_high_spread",
    ]
    spreads = ["mean_released", "std_released", "z_min_released", "z_max_released"]
    sources = gap_tables.numbers_of(
        pd.DataFrame(0.0, index, gaps).reset_index(),
        pd.DataFrame(0.0, index, ["percent_of_events"]).reset_index(),
        pd.DataFrame(0.0, index, spreads),
    )
    # The ends of the null come with their spread, which the printed numbers do not need.
    return [(table, column, here) for table, column, here, *_ in sources[name]]


def of_biased_samaritan(name, printed):
    """Two runs of every group and of the control."""
    rows = []
    for run, category in product((1, 2), scenarios.categories()):
        for group in scenarios.phrasings(category).group.unique():
            rows.append((run, category, group, 50.0))

    table = pd.DataFrame(rows, columns=["round", "category", "group", "mean"])
    return list(samaritan_tables.numbers_of(table, table))


def of_giebench(name, printed):
    """The items under each prompt, of every category, and every tuple, which one model has."""
    rows = []
    for prompt, item in product(design.PROMPTS, questions.load_questions()):
        rows.append((prompt, item.category, item.identity, item.key, "A", "A", "ok"))

    columns = ["prompt", "category", "identity", "key", "correct", "letter", "status"]
    answers = pd.DataFrame(rows, columns=columns)
    swapped = None

    if printed == "gpt-4-turbo":
        conditions = ["cot_prompt_mismatch", "id_prompt_mismatch", "no_mismatch"]
        swapped = questions.tuples()[["identity_i", "identity_j"]]
        swapped = swapped.assign(**dict.fromkeys(conditions, 50.0))

    return list(giebench_tables.numbers_of(answers, swapped))


def clusters(version):
    """Every group of a version in a cluster of its own."""
    names = groups.names("EXTENDED" if version == "EXTENDED" else "paper")
    labels = pd.Series(range(len(names)), names)
    centroids = pd.DataFrame(1.0, range(len(names)), axes.AXES)
    return SimpleNamespace(labels=labels, centroids=centroids)


def of_stereomap(name, printed):
    """The sources of notebooks 40 and 41."""
    extended = groups.words("EXTENDED")
    predictors = [*axes.AXES, "Contempt", "Admire", "Pity", "Envy"]
    behaviours = extended.dimension[extended.family == "Behavior"].unique()
    rhos = pd.DataFrame(product(predictors, behaviours), columns=["predictor", "outcome"])
    rhos["rho"] = 0.0
    of_words = pd.DataFrame({"group": groups.names("EXTENDED") * 2})
    of_words[ENDS] = 3
    found = {
        (name, "ORIGINAL"): clusters("ORIGINAL"),
        (name, "EXTENDED"): clusters("EXTENDED"),
    }

    of_maps = printed_tables.numbers_of(name, found, {name: rhos}, {name: of_words})
    return of_maps + of_keywords(name)


def of_keywords(name):
    """Those of notebook 41: coverage, sensitivity, and what one model has in the ablations."""
    paper, *reduced = groups.ablations()
    variation = [f"{axis} CV {end}" for axis in axes.AXES for end in ("mean", "max")]
    over_all_rounds = [f"{column}, all rounds" for column in variation]
    diversity = ["self BLEU", "entropy 2", "entropy 3", "refuse to answer"]
    index = pd.MultiIndex.from_product([[name], [paper, *reduced]], names=["model", "prompt"])
    averages = [(name, ablation, 0.1) for ablation in reduced]
    stages = pd.DataFrame({"printed_stage": list(dictionary.PRINTED_STAGES.values())})
    half_covered = SimpleNamespace(
        lemmatizer=lambda way: None,
        find=lambda keywords, *_, **__: keywords.to_frame(),
        coverage=lambda table, by: stages.assign(coverage_pct=50.0),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printed_tables, "dictionary", half_covered)
        return printed_tables.numbers_of_words(
            name,
            traits=pd.DataFrame({"model": [name], "keyword": ["kind"]}),
            lexicon=None,
            mappings={},
            sensitivity=pd.DataFrame(0.1, index, [*variation, *diversity, *over_all_rounds]),
            between_prompts=pd.DataFrame(averages, columns=["model", "prompt", "cv_mean"]),
            ablated="GPT-3.5",
        )


SOURCES = {
    "empathy_gap": of_empathy_gap,
    "biased_samaritan": of_biased_samaritan,
    "giebench": of_giebench,
    "stereomap": of_stereomap,
}


# ---- the same with the numbers that the paper prints ---------------------------------------------


def rows_of_model(study, table, printed):
    """The rows of a printed table that are of a model; all, where it names none."""
    rows = published.load(study, table)
    for column in ("model", "source"):
        if column in rows:
            return rows[rows[column] == printed]

    return rows


def joined_names(frame):
    """One name of each row of an index or of keys, as `published.beside` joins them."""
    return frame.astype(str).agg(", ".join, axis=1)


def printed_numbers(study, table, column, keys, printed):
    """A column of these rows, by what tells them apart."""
    rows = rows_of_model(study, table, printed)
    rows = rows[rows[f"{column}_printed"] != ""]
    numbers = pd.Series(rows[column].to_numpy(float), joined_names(rows[keys]))

    is_repeated = numbers.index.duplicated()
    first = numbers[~is_repeated]
    repeated = numbers[is_repeated]
    assert (repeated == first[repeated.index]).all()
    return first


def with_numbers(here, numbers):
    """Numbers under the names of a source, NaN for what is not printed."""
    names = joined_names(here.index.to_frame())
    return pd.Series(numbers.reindex(names).to_numpy(), here.index)


class Column(NamedTuple):
    """A printed column of a model, and the notebook's column beside it."""

    study: str
    printed: str
    table: int | str
    name: str
    here: pd.Series  # the notebook's, whose index is taken
    numbers: pd.Series  # the table's

    def beside(self, numbers):
        """The comparison with some numbers, of those that are printed."""
        source = (self.table, self.name, with_numbers(self.here, numbers))
        versus = published.beside(self.study, self.printed, [source])
        return versus[versus.printed.notna()].set_index("row")


@pytest.fixture(
    params=PRINTED.index,
    ids=lambda line: f"{PRINTED.study[line]}-{PRINTED.name[line]}",
    scope="module",
)
def columns(request, loaded_once):
    """The printed columns of a model that its notebooks set beside a run."""
    row = PRINTED.loc[request.param]

    printed_columns = []
    for table, column, here in SOURCES[row.study](row["name"], row.printed):
        keys = list(here.index.names)
        numbers = printed_numbers(row.study, table, column, keys, row.printed)
        if len(numbers):
            printed_columns.append(Column(row.study, row.printed, table, column, here, numbers))

    assert printed_columns
    return printed_columns


def test_printed_numbers_agree_and_none_is_left_out(columns):
    for column in columns:
        versus = column.beside(column.numbers)
        assert sorted(versus.index) == sorted(column.numbers.index), column
        assert set(versus.verdict) == {"agrees within rounding"}, column


def test_numbers_that_are_moved_by_more_than_their_rounding_differ(columns):
    """All at once, by turns up and down."""
    for column in columns:
        numbers = column.numbers
        tolerance = column.beside(numbers).tolerance[numbers.index]
        signs = np.resize([1, -1], len(numbers))

        versus = column.beside(numbers + 1.01 * signs * tolerance)

        assert len(versus) == len(numbers)
        assert set(versus.verdict) == {"differs"}, column


def test_one_number_that_is_moved_differs_alone(columns):
    for column in columns:
        numbers = column.numbers
        tolerance = column.beside(numbers).tolerance[numbers.index]
        last = numbers.index[-1]
        moved = numbers.copy()
        moved[last] += 1.01 * tolerance[last]

        versus = column.beside(moved)

        assert versus.index[versus.verdict == "differs"].tolist() == [last]


def test_every_printed_model_is_among_them():
    """Counted by hand."""
    assert PRINTED.study.value_counts().to_dict() == {
        "giebench": 23,
        "biased_samaritan": 10,
        "empathy_gap": 4,
        "stereomap": 3,
    }


@pytest.mark.parametrize(
    ("study", "model", "tables"),
    [
        ("empathy_gap", "llama-3.1-8b", {2, 3, 6, 7, 8, 9, 10, 11, 12, 13}),
        ("biased_samaritan", "gpt-4o-mini", {1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14}),
        ("giebench", "gpt-4-turbo", {1, 2, 3, 4, 5, 6, 7}),
        ("giebench", "yi-large", {1, 2, 4, 5, 6}),
        ("stereomap", "gpt-3.5-turbo", {2, 5, 8, 9, 13, 14, 15, "appendix_l"}),
        ("stereomap", "bard", {2, 5, 8, 9, 13, 15}),
    ],
)
def test_notebooks_compare_these_tables(study, model, tables):
    """Counted by hand: the tables that notebooks compare."""
    is_model = (PRINTED.study == study) & (PRINTED.name == model)
    (row,) = PRINTED[is_model].itertuples()

    compared = SOURCES[study](model, row.printed)

    assert {table for table, *_ in compared} == tables
