"""Keywords by cluster and by group, by hand with a dictionary of two words."""

import pandas as pd
import pytest

from ingroup import dictionary
from ingroup.studies.stereomap import clustering, dimensions

KEYWORDS = pd.DataFrame(
    [
        ("m", "Men", "caring"),
        ("m", "Men", "lazy"),
        ("m", "Women", "caring"),
        ("silent", "Men", "blorp"),
    ],
    columns=["model", "group", "keyword"],
)


@pytest.fixture(scope="module")
def lexicon():
    return dictionary.load_lexicon()


@pytest.fixture(scope="module")
def traits(lexicon):
    found = dictionary.find(KEYWORDS.keyword, lexicon, lambda word: [], {})
    return KEYWORDS.join(found.word)


def clusters_of(labels):
    centroids = pd.DataFrame({"name": ["Men", "near Women"]}, pd.Index([0, 1], name="cluster"))
    return clustering.Clusters(pd.Series(labels), centroids, [])


def test_keywords_are_one_row_each_and_repetitions_stay():
    replies = pd.DataFrame(
        {
            "model": "m",
            "group": ["Men", "Women", "Nurses"],
            "round": 1,
            "list": ["ok", "unparsable", ""],
            "keywords": [("kind", "old", "kind"), (), ("not asked",)],
        }
    )
    table = dimensions.list_keywords(replies)
    assert table.keyword.tolist() == ["kind", "old", "kind"]
    assert table.index.tolist() == [0, 1, 2]
    assert table.columns.tolist() == ["model", "group", "round", "keyword"]


def test_rows_of_groups_in_no_cluster_are_left_out(traits):
    placed = clustering.with_clusters(traits, {"m": clusters_of({"Men": 1})})
    assert placed[["group", "cluster"]].values.tolist() == [["Men", 1], ["Men", 1]]
    assert placed.cluster.dtype == int


def test_a_cluster_is_scored_in_both_ways(traits, lexicon):
    """Men: half of the keywords are Morality, high; Women: all. Their mean is 0.75."""
    labels = {"Men": 0, "Women": 0}
    placed = clustering.with_clusters(
        traits, {"m": clusters_of(labels), "silent": clusters_of(labels)}
    )
    table = dimensions.cluster_dimensions(placed, lexicon)
    assert set(table.index) == {("m", "sound"), ("m", "released")}
    (high,) = lexicon.members.columns[lexicon.members.loc["caring"]][:1]
    of_caring = table[table.dimension == high]
    assert of_caring.loc[("m", "sound")].share == pytest.approx(0.75)
    assert of_caring.loc[("m", "released")].n == 2

    layout = dimensions.strongest_dimensions(table)
    assert layout.loc[("m", "sound", 0), 1] == f"{high} +"


def test_without_a_word_of_the_dictionary_tables_have_no_row(traits, lexicon):
    silent = traits[traits.model == "silent"]
    placed = clustering.with_clusters(silent, {"silent": clusters_of({"Men": 0})})
    assert len(placed) == 1
    assert dimensions.cluster_dimensions(placed, lexicon).empty
    assert dimensions.group_dimensions(silent, lexicon).empty


def test_the_sum_of_a_group_grows_with_its_keywords(traits, lexicon):
    table = dimensions.group_dimensions(traits, lexicon)
    assert set(table.model) == {"m"}
    (high,) = lexicon.members.columns[lexicon.members.loc["caring"]][:1]
    of_caring = table[table.dimension == high].set_index("group")
    assert of_caring.n.to_dict() == {"Men": 2, "Women": 1}
    assert of_caring.score.to_dict() == {"Men": 0.5, "Women": 1}
    assert of_caring["sum"].to_dict() == {"Men": 1, "Women": 1}


def test_clusters_have_the_names_of_their_centroids():
    table = dimensions.cluster_names({"m": clusters_of({"Men": 0})})
    assert table.values.tolist() == [["m", 0, "Men"], ["m", 1, "near Women"]]
