"""From a number of the design to token ids, on one core, against the bare tokenizer.

All identities of the first study in its first setting, so that a turn stands in as many prompts as
it does there; 36 events of the sample, prompts of about a hundred tokens, the calibrant's
tokenizer. Each round starts with nothing remembered.
"""

import os
import time

from transformers import AutoTokenizer

from ingroup import paths
from ingroup.inference.generate import SHARD_SIZE
from ingroup.inference.prompts import Prompter
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.empathy_gap.stimuli import load_events

ROUNDS = 3
RATE = 50_000  # trials a second that a fast GPU must not wait for


def rows() -> list[dict[str, str | float]]:
    """Two rows, ``render_overhead`` and ``render_rate``; the ids are compared before the times."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core
    try:
        return _rows()
    finally:
        os.environ.pop("TOKENIZERS_PARALLELISM")
        if before is not None:
            os.environ["TOKENIZERS_PARALLELISM"] = before


def _rows() -> list[dict[str, str | float]]:
    plan = empathy_gap_trials(load_events("sample", 36), ["P0,S0,T0"])
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")
    chats = [trial.messages for trial in plan]
    texts = tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
    tokenizer(texts[:1])  # the first call is slow
    batches = [range(i, min(i + SHARD_SIZE, len(plan))) for i in range(0, len(plan), SHARD_SIZE)]

    def bare() -> list[list[int]]:
        return [
            ids
            for batch in batches
            for ids in tokenizer(
                texts[batch.start : batch.stop],
                add_special_tokens=False,
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
        ]

    def ours() -> list[list[int]]:
        prompter = Prompter(tokenizer)
        return [
            ids
            for batch in batches
            for ids in prompter.batch([plan[number].messages for number in batch])
        ]

    (ours_seconds, prompts), (bare_seconds, expected) = (_best(way) for way in (ours, bare))
    assert prompts == expected
    trials = f"{len(plan):,} prompts of {sum(map(len, prompts)) / len(prompts):.0f} tokens"
    rate = {"ours": ours_seconds, "baseline": len(plan) / RATE}
    return [
        {
            "name": "render_overhead",
            "ours": ours_seconds,
            "baseline": bare_seconds,
            "ratio": bare_seconds / ours_seconds,
            "baseline_is": f"the bare tokenizer on the same {trials}, one core",
        },
        {
            "name": "render_rate",
            **rate,
            "ratio": rate["baseline"] / rate["ours"],
            "baseline_is": f"{RATE:,} trials a second through design, template and tokenizer",
        },
    ]


def _best(way) -> tuple[float, list[list[int]]]:
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = way()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


if __name__ == "__main__":
    print(rows())
