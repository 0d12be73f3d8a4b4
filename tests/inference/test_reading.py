"""A store in parts against the same store read whole."""

import pandas as pd
import pytest

from ingroup.inference import Reply, Store, StoreError
from ingroup.inference.reading import parts
from ingroup.studies.empathy_gap import ratings

TRIALS, SIZE = 2 * 3 * 7, 4
TEXTS = ["85", "I can't answer that.", "7", "85\n\nbecause", "!!!!![]!!", "70"]


def reply(trial: int) -> Reply:
    if trial % 11 == 5:
        return Reply(None, "failed", error="no net")
    return Reply(TEXTS[trial * trial % len(TEXTS)], "stop", 10 + trial, 4, 1)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path, {"trials": TRIALS, "shard_size": SIZE})
    for shard in range(store.shards):
        store.write(shard, [reply(trial) for trial in range(*store.bounds(shard))])
    store.write_again([5], [Reply("99", "stop", 10, 4, 1)])
    return store


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Categories as text: a part has those of its own shards."""
    names = ["text", "finish_reason", "error"]
    return table.astype(dict.fromkeys(names, "str")).reset_index(drop=True)


@pytest.mark.parametrize("shards", [1, 2, 16])
@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 4), (3, 9), (5, 6), (8, 41)])
def test_the_parts_are_the_whole(store, start, stop, shards):
    found = list(parts(store, start, stop, shards))
    whole = store.read(start, stop)
    pd.testing.assert_frame_equal(plain(pd.concat(found)), plain(whole))
    edges = {start + part.trial.iloc[0] for part in found} - {start}
    assert all(edge % (shards * SIZE) == 0 for edge in edges)  # no shard is read twice


def test_ratings_of_the_parts_are_those_of_the_whole(store):
    shape = (2, 3, 7)
    found = ratings.from_parts(parts(store, shards=2), shape, 0, 100)
    whole = ratings.from_responses(store.read(), shape, 0, 100)
    pd.testing.assert_series_equal(found.counts, whole.counts)
    assert whole.counts["failed"] == 3
    assert found.values[0, 0, 5] == 99
    assert ((found.values == whole.values) | (found.status > 0)).all()
    assert (found.status == whole.status).all()


def test_the_parts_before_a_damaged_shard_come_and_it_is_named(store):
    file = store.path(7)
    file.write_bytes(file.read_bytes()[:-20] + bytes(20))
    found = parts(store, shards=2)
    assert [len(next(found)) for _ in range(3)] == [8, 8, 8]
    with pytest.raises(StoreError, match=r"part-00007.parquet is damaged"):
        next(found)
