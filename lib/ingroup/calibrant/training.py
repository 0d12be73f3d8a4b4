"""Train a calibrant from scratch: tokenizer, then a small Llama, on the CPU.

One process and one thread a model, so that two cores train both models side by side and the same
seed gives the same weights on the same kind of machine.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ingroup.calibrant import Example, empathy_gap

# One entry a study: all are trained together, in these shares.
STUDIES = {"empathy_gap": (empathy_gap.Examples, 1.0)}

BATCH = 32


class Phase(NamedTuple):
    """A stretch of the training with a schedule of its own.

    Attributes
    ----------
    examples : int
        Prompts seen, each once.
    sharp : bool
        Whether the studies draw the examples that are easily confused.
    peak : float
        Learning rate, in parts of the optimizers' own.
    hold : float
        Share of the phase before the rate falls.
    """

    examples: int
    sharp: bool
    peak: float
    hold: float


# The second phase tells apart identities that the first left alike (the United States and the
# United Kingdom, whose planted effects are nearly the same, were one group to it).
PHASES = (Phase(160_000, False, 1.0, 0.45), Phase(40_000, True, 0.5, 0.0))

SPECIAL = ["<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{{ message['content'] }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def train_tokenizer(model: str, seed: int = 0, n_examples: int = 12_000) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 3,072 tokens in which 0 to 100 are one token each.

    Any text can be encoded: bytes that were never seen stay bytes.
    """
    rng = np.random.default_rng(seed)
    studies = [(make(model), share) for make, share in STUDIES.values()]
    texts = [str(number) for number in range(101)] * 400
    for examples, share in studies:
        for _ in range(int(n_examples * share)):
            example = examples.draw(rng, progress=1.0)
            texts += [message["content"] for message in example.messages] + [example.reply]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=3072,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    # As Llama's tokenizer does: plain text gets a BOS, which is why text of a chat template,
    # tokenized once more, has two.
    bos = SPECIAL[1]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[0],
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[2],
        additional_special_tokens=SPECIAL[3:],
        padding_side="left",
        model_max_length=2048,
    )
    fast.chat_template = TEMPLATE
    return fast


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """A Llama of 1.2 million parameters: 4 layers, width 128, embeddings shared with the head."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=352,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


class _Encoded:
    """Token ids of prompt and reply, with the number target where there is one."""

    def __init__(self, example: Example, tokenizer: PreTrainedTokenizerFast):
        prompt = tokenizer.apply_chat_template(
            example.messages, add_generation_prompt=True, return_dict=False
        )
        reply = tokenizer.encode(example.reply, add_special_tokens=False)
        self.prompt_length = len(prompt)
        self.ids = [*prompt, *reply, tokenizer.eos_token_id]
        self.number, self.spread = example.number, example.spread


def _batches(
    model: str, tokenizer: PreTrainedTokenizerFast, seed: int, phase: Phase
) -> Iterator[tuple[float, list[_Encoded]]]:
    """Batches of similar length, with the share of the phase that lies behind."""
    rng = np.random.default_rng(seed)
    studies = [make(model) for make, _ in STUDIES.values()]
    shares = np.array([share for _, share in STUDIES.values()])
    done = 0
    while done < phase.examples:
        progress = 1.0 if phase.sharp else done / phase.examples
        size = min(16 * BATCH, phase.examples)
        chosen = rng.choice(len(studies), size=size, p=shares / shares.sum())
        pool = [_Encoded(studies[i].draw(rng, progress, phase.sharp), tokenizer) for i in chosen]
        pool.sort(key=lambda encoded: len(encoded.ids))
        groups = [pool[i : i + BATCH] for i in range(0, len(pool), BATCH)]
        for place in rng.permutation(len(groups)):
            yield min(done / phase.examples, 1.0), groups[place]
            done += BATCH


def _loss(model: LlamaForCausalLM, batch: list[_Encoded], numbers: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the replies; numbers against a bell around the planted value.

    The bell (and the squared error of the expected number) tells the model that 71 is nearly 72,
    which it learns far faster than from single right answers.
    """
    longest = max(len(encoded.ids) for encoded in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, encoded in enumerate(batch):
        ids[row, : len(encoded.ids)] = torch.tensor(encoded.ids)
    places = [
        (row, place, encoded.number is not None and place == encoded.prompt_length - 1)
        for row, encoded in enumerate(batch)
        for place in range(encoded.prompt_length - 1, len(encoded.ids) - 1)
    ]
    rows, columns, is_number = (torch.tensor(part) for part in zip(*places, strict=True))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[rows, columns]
        logits = model.lm_head(hidden)
    log_probability = F.log_softmax(logits.float(), dim=-1)
    text = F.nll_loss(
        log_probability[~is_number], ids[rows, columns + 1][~is_number], reduction="sum"
    )
    wanted = [encoded for encoded in batch if encoded.number is not None]
    if not wanted:
        return text / len(batch)
    centre = torch.tensor([encoded.number for encoded in wanted])[:, None]
    spread = torch.tensor([encoded.spread for encoded in wanted])[:, None]
    scale = torch.arange(len(numbers), dtype=torch.float32)
    bell = torch.softmax(-((scale - centre) ** 2) / (2 * spread**2), dim=-1)
    given = log_probability[is_number][:, numbers]
    expected = (given.exp() * scale).sum(-1) / given.exp().sum(-1).clamp_min(1e-4)
    off = (expected - centre[:, 0]) / torch.where(spread[:, 0] < 1, 1.0, 10.0)
    return (text - (bell * given).sum() + 0.5 * (off**2).clamp(max=30).sum()) / len(batch)


def train(model_name: str, folder: Path, seed: int = 1, phases: Sequence[Phase] = PHASES) -> None:
    """Train one calibrant and save it (bfloat16, 2.4 MB) with its tokenizer.

    Parameters
    ----------
    model_name : str
        ``"calibrant"`` or ``"calibrant-null"``: whose planted answers it learns.
    folder : pathlib.Path
        Where the model is written; files of an earlier training there are replaced.
    seed : int
        Of weights and examples.
    phases : sequence of Phase
        One after the other, each with fresh optimizers on the saved precision of the last.
    """
    torch.set_num_threads(1)
    tokenizer = train_tokenizer("calibrant", n_examples=min(12_000, phases[0].examples))
    model = new_model(tokenizer, seed)
    for number, phase in enumerate(phases):
        _optimise(model, tokenizer, model_name, seed + 1000 * number, phase)
        for parameter in model.parameters():  # not the buffers, which are never saved
            parameter.data = parameter.data.to(torch.bfloat16).to(torch.float32)
    model.generation_config.do_sample = False
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _optimise(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    model_name: str,
    seed: int,
    phase: Phase,
) -> None:
    """One phase, in place: Muon for the matrices, AdamW for embeddings and norms."""
    model.train()
    numbers = torch.tensor([tokenizer.convert_tokens_to_ids(str(n)) for n in range(101)])
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    optimizers = [
        torch.optim.Muon(matrices, lr=0.015, momentum=0.95, weight_decay=0.1),
        torch.optim.AdamW(others, lr=4e-3, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    peaks = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    started, losses = time.monotonic(), []
    for step, (progress, batch) in enumerate(_batches(model_name, tokenizer, seed, phase)):
        warm = min(1.0, (step + 1) / 60)
        slope = 1.0 if progress < phase.hold else max(0.02, (1 - progress) / (1 - phase.hold))
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        for group, peak in zip(groups, peaks, strict=True):
            group["lr"] = peak * phase.peak * warm * slope
        loss = _loss(model, batch, numbers)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step % 200 == 199:
            minutes = (time.monotonic() - started) / 60
            print(
                f"{model_name}: {progress:4.0%} of {phase.examples:,} after {minutes:.1f} min, "
                f"loss {np.mean(losses[-200:]):.3f}",
                flush=True,
            )
