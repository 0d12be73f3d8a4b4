"""The one or two words on a whole paper, by cases worked by hand."""

import pytest

from ingroup.stats.multiverse import paper_verdict


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({}, "not asked"),
        ({"stands": 1}, "holds"),
        ({"stands": 7, "depends": 5}, "holds"),  # 7 of 12
        ({"stands": 6, "depends": 6}, "mixed"),  # half is not more than half
        ({"stands": 6, "mostly stands": 6}, "mostly holds"),
        ({"mostly stands": 2, "depends": 1}, "mostly holds"),
        ({"mostly stands": 1, "depends": 1}, "mixed"),
        ({"depends": 11, "mostly reversed": 1}, "depends"),
        ({"depends": 1, "not shown": 1}, "mixed"),
        ({"stands": 1, "not shown": 1}, "mixed"),
        ({"reversed": 2, "stands": 1}, "reversed"),
        ({"reversed": 1, "mostly reversed": 1, "depends": 1}, "mostly reversed"),
        ({"differs": 2, "mostly differs": 1, "stands": 2}, "mostly reversed"),
        ({"not shown": 1, "reversed": 1, "stands": 1}, "mixed"),  # nothing is no reversal
        ({"not shown": 2, "stands": 1}, "not shown"),
        ({"not shown": 1, "mostly not shown": 1, "stands": 1}, "mostly not shown"),
        ({"not shown": 2, "stands": 2}, "mixed"),
        ({"cannot be told": 2, "stands": 1}, "cannot be told"),
        ({"cannot be told": 1, "undefined": 1, "not shown": 1}, "cannot be told"),
        ({"cannot be told": 1, "not shown": 1}, "mixed"),
    ],
)
def test_the_word_is_that_of_more_than_half_of_the_claims(counts, word):
    verdict_of_claim = []
    for verdict, number in counts.items():
        verdict_of_claim += [verdict] * number
    assert paper_verdict(verdict_of_claim) == word
    assert paper_verdict(verdict_of_claim[::-1]) == word
