"""Writing, reading and size of a store against tables as the released scripts write them.

49,152 trials of the first study, twelve shards, with the made-up answers of ``scale.py``. The
released script of Hou et al. writes prompt and reply of every trial to a TSV file; a store has the
reply, its token counts and a checksum, and waits until the disk has each shard.
"""

import tempfile
import time
from itertools import islice
from pathlib import Path

import pandas as pd

import scale
from ingroup.inference import Reply, Sampling, Store, open_store
from ingroup.inference.generate import SHARD_SIZE
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials

SETTING, N_SHARDS = "P0,S0,T0", 12
COLUMNS = ["system_prompt", "user_input", "response"]


def rows() -> list[dict[str, str | float]]:
    """Three rows, ``store_write``, ``store_read`` (s) and ``store_size`` (MB)."""
    plan = empathy_gap_trials(scale.corpus(0.03), [SETTING], ["Nationality"])
    number = N_SHARDS * SHARD_SIZE
    replies = list(islice(scale.answers(plan, stimuli.setting(SETTING), {}), number))
    chats = [[turn["content"] for turn in plan[place].messages] for place in range(number)]
    table = pd.DataFrame(chats, columns=COLUMNS[:2])
    table["response"] = [reply.text for reply in replies]
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder), plan, scale.MadeUp(), Sampling())
        file = Path(folder) / "results.tsv"
        took = {
            "store_write": (_timed(_fill, store, replies), _timed(_write, table, file)),
            "store_read": (
                _timed(store.read, 0, number),
                _timed(pd.read_csv, file, sep="\t", keep_default_na=False),
            ),
        }
        shards = sum(part.stat().st_size for part in Path(folder).glob("part-*")) / 1e6
        assert store.read(0, number).text.astype(str).tolist() == table.response.tolist()
        took["store_size"] = shards, file.stat().st_size / 1e6
    baselines = {
        "store_write": "DataFrame.to_csv of prompts and replies to a TSV file, as released",
        "store_read": "pandas.read_csv of that TSV file",
        "store_size": f"that TSV file, {number:,} trials",
    }
    return [
        {
            "name": name,
            "ours": ours,
            "baseline": baseline,
            "unit": "MB" if name == "store_size" else "s",
            "ratio": baseline / ours,
            "baseline_is": baselines[name],
        }
        for name, (ours, baseline) in took.items()
    ]


def _fill(store: Store, replies: list[Reply]) -> None:
    with store.writing():
        for shard in range(N_SHARDS):
            store.write(shard, replies[slice(*store.bounds(shard))])


def _write(table: pd.DataFrame, file: Path) -> None:
    table.to_csv(file, sep="\t", index=False)


def _timed(function, *arguments, **options) -> float:
    start = time.perf_counter()
    function(*arguments, **options)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(rows())
