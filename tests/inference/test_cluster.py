"""Which worker takes which shard, and what is said without Ray; check_ray.py has the rest."""

import re
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup.inference import EngineError, Share
from ingroup.inference.backlog import LEAST, SLOW, Backlog
from ingroup.inference.cluster import Cluster


def test_parts_go_out_in_order_and_one_to_each():
    backlog = Backlog(3)
    assert [backlog.take(worker, 0.0) for worker in "abcd"] == [0, 1, 2, None]
    assert [backlog.finish(worker, 1.0) for worker in "cab"] == [2, 0, 1]
    assert backlog.done


def test_what_a_lost_worker_had_waits_behind_the_others():
    backlog = Backlog(3)
    assert backlog.take("a", 0.0) == 0
    backlog.lose("a")
    assert [backlog.take(worker, 1.0) for worker in "bcd"] == [1, 2, 0]


def test_the_slowest_is_asked_a_second_time_and_the_first_answer_counts():
    backlog = Backlog(4)
    for worker, begun in zip("abcd", (0.0, 2.0, 4.0, 6.0), strict=True):
        backlog.take(worker, begun)
    assert backlog.take("e", 99.0) is None, "nobody knows yet how long a part takes"
    assert [backlog.finish("a", 8.0), backlog.finish("b", 10.0)] == [0, 1]  # 8 s each
    assert backlog.take("a", 4.0 + 8 * SLOW) is None, "not slow yet"
    assert backlog.take("a", 5.0 + 8 * SLOW) == 2, "begun before the other"
    assert backlog.take("b", 6.0 + 8 * SLOW) is None, "asked of two, that is enough"
    assert backlog.take("b", 7.0 + 8 * SLOW) == 3
    assert backlog.finish("a", 24.0) == 2
    assert backlog.finish("c", 28.0) is None, "too late"
    backlog.lose("d")
    assert backlog.take("c", 32.0) is None, "its part is with b"
    assert backlog.finish("b", 56.0) == 3
    assert backlog.done


def test_what_takes_a_moment_is_not_asked_again_for_a_moment():
    backlog = Backlog(2)
    backlog.take("a", 0.0), backlog.take("b", 0.0)
    backlog.finish("a", 0.01)
    assert backlog.take("a", LEAST) is None
    assert backlog.take("a", LEAST + 0.5) == 1


def test_of_two_that_had_a_part_the_last_to_die_gives_it_back():
    backlog = Backlog(2)
    backlog.take("a", 0.0), backlog.take("b", 0.0)
    backlog.finish("a", 1.0)
    assert backlog.take("a", 9.0) == 1
    backlog.lose("b")
    backlog.lose("a")
    assert backlog.take("c", 9.0) == 1


STEPS = st.tuples(st.integers(0, 3), st.booleans(), st.sampled_from([0.0, 4.0, 30.0]))


@settings(deadline=None)
@given(st.integers(0, 9), st.lists(STEPS, max_size=60))
def test_whatever_happens_each_part_is_finished_once(parts, steps):
    """Workers take, finish and die in any order, then those that live finish all."""
    backlog, finished, busy, now = Backlog(parts), [], {}, 0.0
    ends = [(step % 4, False, 30.0) for step in range(100)]
    for worker, dies, later in [*steps, *ends]:
        now += later
        if worker not in busy:
            part = backlog.take(worker, now)
            if part is not None:
                busy[worker] = part
                assert part not in finished
                assert Counter(busy.values())[part] <= 2
        elif dies:
            backlog.lose(worker)
            del busy[worker]
        else:
            part = busy.pop(worker)
            assert backlog.finish(worker, now) == (None if part in finished else part)
            finished = sorted({*finished, part})
        assert backlog.done == (len(finished) == parts)
    assert finished == list(range(parts))


@given(st.integers(0, 10_000), st.integers(1, 600))
def test_shares_divide_the_shards(total, of):
    parts = [Share(number, of).shards(total) for number in range(1, of + 1)]
    assert [shard for part in parts for shard in part] == list(range(total))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_share_is_read_as_it_is_typed():
    assert Share.parse("3/8") == (3, 8)
    assert str(Share.parse("3/8")) == "3/8"
    assert Share.parse("") == (1, 1)
    for text in ("0/8", "9/8", "3", "3/", "-1/8", "3/8 ", "a/b", "1/0", "٣/٨"):
        with pytest.raises(ValueError, match=re.escape(f"or 8/8, found {text!r}")):
            Share.parse(text)


def test_without_ray_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError) as caught:
        Cluster(lambda: None, 2)
    assert str(caught.value) == (
        "ENGINE_WORKERS and RAY_ADDRESS need Ray, which is not installed: "
        ".venv/bin/uv pip install -e '.[ray]'"
    )
