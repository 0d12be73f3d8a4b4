"""The committed calibration: documented shares follow from the simulated ones."""

import numpy as np
import pandas as pd

from ingroup import paths

FILE = paths.ROOT / "figures/calibration/coverage.csv"
TABLE = pd.read_csv(FILE, keep_default_na=False)


def test_documented_shares_are_those_simulated():
    """Within two points and what chance leaves; a test may reject less often than its level."""
    claimed = TABLE.claimed.clip(0.01, 0.99)
    chance = 2.5 * np.sqrt(claimed * (1 - claimed) / TABLE.draws)
    off = (TABLE.actual - TABLE.claimed).abs()
    is_interval = TABLE.what.str.startswith("interval")
    safe = np.where(is_interval, TABLE.actual > TABLE.claimed, TABLE.actual < TABLE.claimed)
    safe = safe & (TABLE.claimed == TABLE.nominal)
    wrong = TABLE[(off > 0.02 + chance) & ~safe]
    assert wrong.empty, wrong[["what", "condition", "claimed", "actual"]]


def test_a_condition_stands_beside_its_other_scope():
    """Each condition of phrasings and pairs of groups has a row of either scope."""
    conditions = TABLE[TABLE.module == "conditions"]
    scopes = conditions.groupby(["study", "condition"]).scope.unique()
    for study, kind in (("biased_samaritan", "^phrasings of SD"), ("empathy_gap", "groups differ")):
        of_study = scopes[study]
        both = of_study[of_study.index.str.contains(kind)]
        assert len(both) >= 4
        assert all(set(scope) == {"these", "like these"} for scope in both)
    like = conditions[conditions.scope == "like these"].set_index("condition")
    word = like.loc["phrasings of SD 3, ratings of SD 5"]
    assert word.actual > 0.93
