"""Speed of one GPU on the first study: ``make bench-gpu``.

Nothing is measured without a GPU. The model is a Llama of the 8B shape with random weights in
bfloat16. Nothing is downloaded, and a card is as busy with random weights as with real ones. The
tokenizer is a calibrant's. The prompts are real prompts of the study, in four shards spread over
the full design. Each answer has three tokens, as in the study. The unchanged prompts are compared
with the same prompts under different first tokens, which share no prefix. The difference is the
gain of a prefix cache.
"""

import sys
import tempfile
import time
from importlib.util import find_spec

import numpy as np
import pandas as pd
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

import scale
from ingroup import models, paths
from ingroup.design import Design
from ingroup.inference import Sampling, make_engine
from ingroup.inference.weights import LocalEngine
from ingroup.studies.empathy_gap.design import trials

SHAPE = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "max_position_embeddings": 4096,
    "rope_theta": 500_000.0,
}
# Several shards, as prompts differ in length from one part of the design to another.
N_SHARDS = 4
SHARD_SIZE = 4096
SAMPLING = Sampling(max_tokens=3)


def random_model(folder: str) -> None:
    """Write random weights and a calibrant's tokenizer to a folder."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / models.calibrants()[0])
    config = LlamaConfig(
        **SHAPE,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        dtype="bfloat16",
    )
    # Eight billion weights are drawn on the card. On the CPU this takes minutes.
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).bfloat16()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

    # The engine plans with the memory of the card that is free.
    del model
    torch.cuda.empty_cache()


def chats_of(design: Design) -> list:
    """Return the chats of four shards that are spread over a design."""
    starts = np.linspace(0, len(design) - SHARD_SIZE, N_SHARDS).astype(int)
    chats = []
    for start in starts.tolist():
        for number in range(start, start + SHARD_SIZE):
            chats.append(design[number].messages)
    return chats


def speed(engine: LocalEngine, prompts: list[list[int]]) -> dict[str, float]:
    """Time an engine on some prompts.

    Parameters
    ----------
    engine : LocalEngine
        An engine that takes token ids.
    prompts : list of list of int
        Token ids of each prompt.

    Returns
    -------
    dict of str to float
        Columns of gpu.csv: counts of prompts and tokens, seconds, and counts per second.
    """
    started = time.perf_counter()
    replies = pd.DataFrame(engine.complete(prompts, SAMPLING))
    seconds = time.perf_counter() - started

    n_tokens = replies.prompt_tokens.sum() + replies.output_tokens.sum()
    return {
        "prompts": len(prompts),
        "seconds": seconds,
        "prompt_tokens": replies.prompt_tokens.sum(),
        "cached_tokens": replies.cached_tokens.sum(),
        "prompts_per_second": len(prompts) / seconds,
        "tokens_per_second": n_tokens / seconds,
    }


def bench() -> pd.DataFrame:
    """Measure an engine on prompts of the first study.

    Returns
    -------
    DataFrame
        One row without shared prefixes and one with them.
    """
    design = trials(scale.corpus(1.0))
    name = "vllm" if find_spec("vllm") else "transformers"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        random_model(folder)
        engine = make_engine(name, folder, batch_size=256)
        prompts = engine.prompter.batch(chats_of(design))
        # A cache would find the shared beginnings, so the comparison needs prompts without any.
        different = []
        for number, ids in enumerate(prompts):
            # Each prompt gets a first token of its own, so that no two share a prefix.
            different.append([len(prompts) + number, *ids[1:]])

        # This loads the weights and warms up.
        engine.complete(prompts[:64], SAMPLING)
        for shared, asked in ((False, different), (True, prompts)):
            measured = speed(engine, asked)
            # The four shards stand for all, so their speed is taken for that of the design.
            hours = len(design) * measured["seconds"] / len(asked) / 3600
            rows.append(
                {
                    "engine": name,
                    "shared_prefixes": shared,
                    **measured,
                    "hours_for_all": hours,
                }
            )
        engine.close()
    return pd.DataFrame(rows)


def main() -> int:
    """Measure and write the table, where there is a GPU."""
    if not torch.cuda.is_available():
        print("No GPU here: make bench-gpu needs one with CUDA. Nothing was measured.")
        return 0

    table = bench()
    table["card"] = torch.cuda.get_device_name()
    file = paths.BUILD / "bench" / "gpu.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False)
    print(table.round(3).T.to_string(header=False))
    print("Written to build/bench/gpu.csv (random weights, 8B shape, bfloat16)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
