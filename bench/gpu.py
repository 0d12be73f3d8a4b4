"""What one GPU takes for the first study: ``make bench-gpu``; without a GPU it says so.

The model is a Llama of the 8B shape with random weights in bfloat16: nothing is downloaded, and a
card is as busy with it as with the real one. Its tokenizer is the calibrant's. It reads real
prompts of the study, four shards spread over the full design, through the vllm engine where vLLM is
installed and the transformers engine where not, and writes three tokens each, as an answer has.

Measured twice: as they are, and without shared prefixes (the same prompts with a first token each
of their own), which is what a prefix cache is worth. The card's peak is measured as well, as its
fastest product of two matrices in bfloat16.
"""

import json
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scale
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ingroup import paths
from ingroup.design import Design
from ingroup.inference import Sampling, make_engine
from ingroup.inference.engine import LocalEngine
from ingroup.inference.generation import SHARD_SIZE
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials

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
PARTS = 4  # shards of the design that are asked
SAMPLING = Sampling(max_tokens=3)


def random_model(folder: Path, shape: dict, device: str) -> int:
    """Write random weights and the calibrant's tokenizer; returns the parameters of the layers."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    with torch.device(device):
        model = LlamaForCausalLM(LlamaConfig(**shape, **ends, dtype="bfloat16")).bfloat16()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return sum(weights.numel() for weights in model.model.layers.parameters())


def prompts_of(plan: Design, engine: LocalEngine, size: int) -> list[list[int]]:
    """Token ids of shards that lie evenly in the design, prefixes shared as in a real run."""
    starts = np.linspace(0, len(plan) - size, PARTS).astype(int)
    chats = [plan[int(start) + i].messages for start in starts for i in range(size)]
    return engine.prompter.batch(chats)


def measured(engine: LocalEngine, prompts: list[list[int]]) -> dict[str, float]:
    """Seconds, and tokens that were read, found in the cache and written."""
    started = time.perf_counter()
    replies = engine.complete(prompts, SAMPLING)
    seconds = time.perf_counter() - started
    tokens = {
        name: sum(getattr(reply, f"{name}_tokens") for reply in replies)
        for name in ("prompt", "cached", "output")
    }
    return {"seconds": seconds, **tokens}


def peak(size: int = 8192, rounds: int = 20) -> float:
    """Operations a second of the card's fastest bfloat16 matrix product: 2 n^3 / seconds."""
    one, other = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    fastest = np.inf
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        one @ other
        torch.cuda.synchronize()
        fastest = min(fastest, time.perf_counter() - started)
    return 2 * size**3 / fastest


def operations(found: dict[str, float], layers: int, shape: dict) -> float:
    """Floating-point operations of the tokens that were computed, attention (under 1 %) left out.

    Two a parameter of the layers for each token, and of the output layer for each token written.
    """
    computed = found["prompt"] - found["cached"] + found["output"]
    head = shape["vocab_size"] * shape["hidden_size"]
    return 2 * layers * computed + 2 * head * found["output"]


def bench(shape: dict = SHAPE, size: int = SHARD_SIZE, device: str = "cuda") -> list[dict]:
    """A row with shared prefixes and one without."""
    plan = empathy_gap_trials(scale.corpus(1.0), list(stimuli.settings()))
    name = "vllm" if find_spec("vllm") else "transformers"
    best = peak() if device == "cuda" else np.nan
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        layers = random_model(Path(folder), shape, device)
        torch.cuda.empty_cache()
        engine = make_engine(name, folder, batch_size=256)
        prompts = prompts_of(plan, engine, size)
        alone = [[number, *ids[1:]] for number, ids in enumerate(prompts, start=len(prompts))]
        engine.complete(prompts[:64], SAMPLING)  # loads the weights and warms up
        for cache, asked in (("off", alone), ("on", prompts)):
            found = measured(engine, asked)
            rate = len(asked) / found["seconds"]
            rows.append(
                {
                    "engine": name,
                    "prefix_cache": cache,
                    "prompts": len(asked),
                    **found,
                    "prompts_per_second": rate,
                    "tokens_per_second": (found["prompt"] + found["output"]) / found["seconds"],
                    "share_of_peak": operations(found, layers, shape) / found["seconds"] / best,
                    "hours_for_all": len(plan) / rate / 3600,
                    "trials_of_all": len(plan),
                }
            )
        engine.close()
    return rows


def main() -> int:
    if not torch.cuda.is_available():
        print("No GPU here: make bench-gpu needs one with CUDA. Nothing was measured.")
        return 0
    card = torch.cuda.get_device_name()
    rows = bench()
    paths.BUILD.mkdir(exist_ok=True)
    text = json.dumps({"card": card, "rows": rows}, indent=1)
    (paths.BUILD / "bench_gpu.json").write_text(text + "\n", "utf8")
    for row in rows:
        print(
            f"{card}, {row['engine']}, prefix cache {row['prefix_cache']}: "
            f"{row['prompts_per_second']:,.0f} prompts and {row['tokens_per_second']:,.0f} tokens "
            f"a second, {row['share_of_peak']:.0%} of the card's peak (of what was computed), "
            f"{row['hours_for_all']:,.1f} hours for {row['trials_of_all']:,} trials"
        )
    print("Written to build/bench_gpu.json (random weights, 8B shape, bfloat16)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
