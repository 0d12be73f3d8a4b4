"""Every printed model's own numbers, of the committed tables, through the cells of the notebooks.

A notebook's own function says which numbers it sets beside which table, and under which names. Here
they get the very values that the table prints: all of them agree, and none does once it is moved.
"""

from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import nbformat
import numpy as np
import pandas as pd
import pytest

from cells import defined
from ingroup import dictionary, models, paths, published
from ingroup.studies.biased_samaritan import printed as samaritan_tables
from ingroup.studies.biased_samaritan import stimuli as scenarios
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
    """The rows that the cell gives to `published.beside`."""
    blocks = list(product([name], SETTINGS, identities.categories()))
    index = pd.MultiIndex.from_tuples(blocks, names=["model", "setting", "category"])
    tables = {
        "table02": ["delta_released", "null_low_released", "null_high_released",
                    "null_low_spread", "null_high_spread"],
        "table06": ["percent_of_events"],
        "spread": ["mean_released", "std_released", "z_min_released", "z_max_released"],
    }  # fmt: skip
    names = {of: pd.DataFrame(0.0, index, columns) for of, columns in tables.items()}
    names["table02"] = names["table02"].reset_index()
    names["table06"] = names["table06"].reset_index()
    given = []

    def beside_each(study, sources):
        given.extend(sources[name])
        return published.beside_each(study, sources)

    names |= {"KEY": list(index.names), "pd": pd, "display": lambda *_: None}
    names["published"] = SimpleNamespace(beside_each=beside_each)
    names["out"] = SimpleNamespace(write_any=lambda table, *_: table)
    notebook = nbformat.read(paths.NOTEBOOKS / "10_empathy_gap.ipynb", as_version=4)
    start = "numbers = table02.merge("
    (cell,) = [cell.source for cell in notebook.cells if cell.source.startswith(start)]
    exec(cell, names)
    return [(table, column, here) for table, column, here, *_ in given]


def of_biased_samaritan(name, printed):
    """Two runs of every group and of the control."""
    rows = []
    for run, category in product((1, 2), scenarios.categories()):
        for group in scenarios.phrasings(category).group.unique():
            rows.append((run, category, group, 50.0))
    table = pd.DataFrame(rows, columns=["run", "category", "group", "mean"])
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
    of_words = pd.DataFrame({"group": groups.names("EXTENDED") * 2}).assign(
        **dict.fromkeys(ENDS, 3)
    )
    found = {(name, version): clusters(version) for version in ("ORIGINAL", "EXTENDED")}
    numbers = printed_tables.numbers_of(name, found, {name: rhos.assign(rho=0.0)}, {name: of_words})
    return numbers + of_keywords(name, printed)


def of_keywords(name, printed):
    """Those of notebook 41: coverage, sensitivity, and what one model has in the ablations."""
    paper, *reduced = groups.ablations()
    variation = [f"{axis} CV {end}" for axis in axes.AXES for end in ("mean", "max")]
    columns = [*variation, "self BLEU", "entropy 2", "entropy 3", "refuse to answer"]
    columns += [f"{column}, all rounds" for column in variation]
    index = pd.MultiIndex.from_product([[name], [paper, *reduced]], names=["model", "prompt"])
    stages = pd.DataFrame({"printed_stage": [*dictionary.PRINTED_STAGES.values()]})
    found = SimpleNamespace(
        lemmatizer=lambda way: None,
        find=lambda keywords, *_, **__: keywords.to_frame(),
        coverage=lambda table, by: stages.assign(coverage_pct=50.0),
    )
    averages = [(name, ablation, 0.1) for ablation in reduced]
    names = {
        "pd": pd, "PAPER": paper, "axes_of": axes.AXES, "lexicon": None, "dictionary": found,
        "traits": pd.DataFrame({"model": [name], "keyword": ["kind"]}),
        "how": {"mappings": {}, "way": "sound"},
        "table13_14": pd.DataFrame(0.1, index, columns),
        "averages": pd.DataFrame(averages, columns=["model", "prompt", "cv_mean"]),
        # The cell goes on behind the function, with the models of its run.
        "published": SimpleNamespace(
            model_of=lambda *_: None, beside_each=lambda *_: published.beside_each("stereomap", {})
        ),
        "out": SimpleNamespace(write_any=lambda *_: None),
        "display": lambda *_: None,
    }  # fmt: skip
    return defined("41_stereomap_keywords", "sources_of", **names)(name, printed)


SOURCES = {
    "empathy_gap": of_empathy_gap,
    "biased_samaritan": of_biased_samaritan,
    "giebench": of_giebench,
    "stereomap": of_stereomap,
}


# ---- the same with the numbers that the paper prints ---------------------------------------------


def own_rows(study, table, printed):
    """The rows of a printed table that are of a model; all, where it names none."""
    rows = published.load(study, table)
    for column in ("model", "source"):
        if column in rows:
            return rows[rows[column] == printed]
    return rows


def own_numbers(study, table, column, keys, printed):
    """A column of these rows, by what tells them apart, as `published.beside` joins it."""
    rows = own_rows(study, table, printed)
    rows = rows[rows[f"{column}_printed"] != ""]
    names = rows[keys].astype(str).agg(", ".join, axis=1)
    numbers = pd.Series(rows[column].to_numpy(float), names)
    twice = numbers.index.duplicated()
    first = numbers[~twice]
    assert (numbers[twice] == first[numbers.index[twice]]).all()  # what is repeated is the same
    return first


def fed(here, numbers):
    """Numbers under the names of a source, NaN for what is not printed."""
    names = here.index.to_frame().astype(str).agg(", ".join, axis=1)
    return pd.Series(numbers.reindex(names).to_numpy(), here.index)


class Column(NamedTuple):
    """A printed column of a model, and what the comparison says of its own numbers."""

    study: str
    printed: str
    table: int | str
    name: str
    here: pd.Series  # the notebook's, whose index is taken
    numbers: pd.Series  # the table's
    own: pd.DataFrame

    def beside(self, numbers):
        """The comparison with some numbers, of those that are printed."""
        sources = [(self.table, self.name, fed(self.here, numbers))]
        versus = published.beside(self.study, self.printed, sources)
        return versus[versus.printed.notna()].set_index("row")


@pytest.fixture(
    params=PRINTED.index, ids=lambda line: f"{PRINTED.study[line]}-{PRINTED.name[line]}",
    scope="module",
)  # fmt: skip
def columns(request, loaded_once):
    """The printed columns of a model that its notebooks set beside a run."""
    row = PRINTED.loc[request.param]
    found = []
    for table, column, here in SOURCES[row.study](row["name"], row.printed):
        numbers = own_numbers(row.study, table, column, list(here.index.names), row.printed)
        if len(numbers):
            told = Column(row.study, row.printed, table, column, here, numbers, None)
            found.append(told._replace(own=told.beside(numbers)))
    assert found
    return found


def test_own_numbers_agree_and_none_is_left_out(columns):
    for column in columns:
        assert sorted(column.own.index) == sorted(column.numbers.index), column
        assert set(column.own.verdict) == {"agrees within rounding"}, column


def test_a_number_that_is_moved_by_more_than_its_rounding_differs(columns):
    """All at once, by turns up and down; then one alone, and the others still agree."""
    for column in columns:
        numbers = column.numbers
        steps = 1.01 * column.own.tolerance[numbers.index]
        ways = np.resize([1, -1], len(numbers))
        moved = column.beside(numbers + ways * steps)
        assert len(moved) == len(numbers)
        assert set(moved.verdict) == {"differs"}, column

        last = numbers.index[-1]
        one = column.beside(numbers.where(numbers.index != last, numbers + steps))
        assert one.index[one.verdict == "differs"].tolist() == [last]


def test_every_printed_model_and_number_is_among_them():
    """Counted by hand: models by study, and the tables that notebooks compare."""
    assert PRINTED.study.value_counts().to_dict() == {
        "giebench": 23, "biased_samaritan": 10, "empathy_gap": 4, "stereomap": 3
    }  # fmt: skip
    for study, model, tables in (
        ("empathy_gap", "llama-3.1-8b", {2, 3, 6, 7, 8, 9, 10, 11, 12, 13}),
        ("biased_samaritan", "gpt-4o-mini", {1, 2, 3, *range(6, 15)}),
        ("giebench", "gpt-4-turbo", set(range(1, 8))),
        ("giebench", "yi-large", {1, 2, 4, 5, 6}),
        ("stereomap", "gpt-3.5-turbo", {2, 5, 8, 9, 13, 14, 15, "appendix_l"}),
        ("stereomap", "bard", {2, 5, 8, 9, 13, 15}),
    ):
        (row,) = PRINTED[(PRINTED.study == study) & (PRINTED.name == model)].itertuples()
        assert {table for table, *_ in SOURCES[study](model, row.printed)} == tables
