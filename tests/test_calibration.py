"""The committed calibration: documented shares follow from the simulated ones."""

import numpy as np
import pandas as pd

from ingroup import paths

FILE = paths.ROOT / "figures/calibration/coverage.csv"
TABLE = pd.read_csv(FILE, keep_default_na=False)


def test_documented_shares_equal_the_simulated_ones():
    """Within two points and what chance leaves; a test may reject less often than its level."""
    claimed = TABLE.claimed.clip(0.01, 0.99)
    chance = 2.5 * np.sqrt(claimed * (1 - claimed) / TABLE.draws)
    distance = (TABLE.actual - TABLE.claimed).abs()
    is_far = distance > 0.02 + chance

    is_interval = TABLE.what.str.startswith("interval")
    is_above = TABLE.actual > TABLE.claimed
    is_below = TABLE.actual < TABLE.claimed
    is_safe = np.where(is_interval, is_above, is_below)
    is_safe &= TABLE.claimed == TABLE.nominal

    wrong = TABLE[is_far & ~is_safe]
    assert wrong.empty, wrong[["what", "condition", "claimed", "actual"]]


def test_a_condition_stands_beside_its_other_scope():
    """Each condition of phrasings and pairs of groups has a row of either scope."""
    conditions = TABLE[TABLE.module == "conditions"]
    scopes = conditions.groupby(["study", "condition"]).scope.unique()
    for study, kind in (("biased_samaritan", "^phrasings of SD"), ("empathy_gap", "groups differ")):
        of_study = scopes[study]
        of_kind = of_study[of_study.index.str.contains(kind)]
        assert len(of_kind) >= 4
        for condition_scopes in of_kind:
            assert set(condition_scopes) == {"these", "like these"}

    is_like = conditions.scope == "like these"
    like = conditions[is_like].set_index("condition")
    assert like.loc["phrasings of SD 3, ratings of SD 5"].actual > 0.93
