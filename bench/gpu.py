"""What one GPU takes for the first study: ``make bench-gpu``; without a GPU it says so.

The model is a Llama of the 8B shape with random weights in bfloat16: nothing is downloaded, and a
card is as busy with it as with the real one. Its tokenizer is a calibrant's. It reads real prompts
of the study, four shards spread over the full design, and writes three tokens each, as an answer
has: as they are, and without shared prefixes (the same prompts with a first token each of their
own), which is what a prefix cache is worth.
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
from ingroup.inference import Sampling, make_engine
from ingroup.studies.empathy_gap.design import trials

SHAPE = {
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
    "max_position_embeddings": 4096, "rope_theta": 500_000.0,
}  # fmt: skip
SHARDS, SHARD = 4, 4096
SAMPLING = Sampling(max_tokens=3)


def random_model(folder: str) -> None:
    """Write random weights and a calibrant's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / models.calibrants()[0])
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(**SHAPE, **ends, dtype="bfloat16")).bfloat16()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def bench() -> pd.DataFrame:
    """A row without shared prefixes and one with."""
    design, rows = trials(scale.corpus(1.0)), []
    name = "vllm" if find_spec("vllm") else "transformers"
    with tempfile.TemporaryDirectory() as folder:
        random_model(folder)
        engine = make_engine(name, folder, batch_size=256)
        starts = np.linspace(0, len(design) - SHARD, SHARDS).astype(int).tolist()
        chats = [design[start + n].messages for start in starts for n in range(SHARD)]
        prompts = engine.prompter.batch(chats)
        alone = [[number, *ids[1:]] for number, ids in enumerate(prompts, start=len(prompts))]
        engine.complete(prompts[:64], SAMPLING)  # loads the weights and warms up
        for shared, asked in ((False, alone), (True, prompts)):
            started = time.perf_counter()
            replies = pd.DataFrame(engine.complete(asked, SAMPLING))
            seconds, tokens = time.perf_counter() - started, replies.filter(like="tokens").sum()
            rows.append({
                "engine": name, "shared_prefixes": shared, "prompts": len(asked),
                "seconds": seconds, **tokens[["prompt_tokens", "cached_tokens"]],
                "prompts_per_second": len(asked) / seconds,
                "tokens_per_second": tokens[["prompt_tokens", "output_tokens"]].sum() / seconds,
                "hours_for_all": len(design) * seconds / len(asked) / 3600,
            })  # fmt: skip
        engine.close()
    return pd.DataFrame(rows)


def main() -> int:
    if not torch.cuda.is_available():
        print("No GPU here: make bench-gpu needs one with CUDA. Nothing was measured.")
        return 0
    table = bench().assign(card=torch.cuda.get_device_name())
    file = paths.BUILD / "bench" / "gpu.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False)
    print(table.round(3).T.to_string(header=False))
    print("Written to build/bench/gpu.csv (random weights, 8B shape, bfloat16)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
