"""Train a calibrant from scratch: tokenizer, then a small Llama, on the CPU.

One process and one thread a model, so that two cores train both models side by side and the same
seed gives the same weights on the same kind of machine.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

import biased_samaritan
import empathy_gap
import giebench
import stereomap
from architecture import add_phrases, new_model, train_tokenizer
from example import Example

STUDIES = {
    "empathy_gap": empathy_gap.Examples,
    "biased_samaritan": biased_samaritan.Examples,
    "giebench": giebench.Examples,
    "stereomap": stereomap.Examples,
}

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
    shares : mapping of str to float
        The studies that are trained together, and how large a part of the examples each has.
    phrases : callable
        What the prompts of a study that the phase adds always say; made tokens before it.
    favour : mapping of str to int
        Settings of the empathy gap, and how many more times each is put among those that are drawn.
    keep : float
        Share of the weights before the phase in those after it, which are a mean of both.
    """

    examples: int
    sharp: bool
    peak: float
    hold: float
    shares: Mapping[str, float]
    phrases: Callable[[], Sequence[str]] = tuple
    favour: Mapping[str, int] = MappingProxyType({})
    keep: float = 0.0


def _shares(*parts: int) -> dict[str, float]:
    """Of the studies in their order, the last ones may be missing."""
    return {study: part / sum(parts) for study, part in zip(STUDIES, parts, strict=False)}


def _phrases() -> list[str]:
    return giebench.phrases() + stereomap.phrases()


# The second phase tells apart what the first left alike: the United States and the United Kingdom,
# whose planted effects are nearly the same, were one group to it. The first two studies are learnt
# together from the start: weights that knew one of them lost its same-group effect when they learnt
# the other afterwards. GIEBench and StereoMap, which are learnt by heart, can come later. The last
# phases are short and slow: for the 0-10 scale, on which a point is worth ten, the third person and
# the settings with the largest effects; the control's, so that its answers are the same to all. A
# phase of mostly GIEBench teaches what joined its sample later, with a slow one of all behind it;
# another such pair teaches the scenarios and questions that were rewritten after that.
_WEAK = MappingProxyType({"P0,S1,T0": 5, "P2,S0,T0": 3, "P3,S0,T0": 2})
PHASES = {
    "calibrant": (
        Phase(290_000, False, 1.0, 0.45, _shares(56, 44)),
        Phase(180_000, True, 0.5, 0.0, _shares(40, 48, 48, 48), _phrases),
        Phase(16_000, True, 0.12, 0.0, _shares(70, 20, 10, 14), favour={"P0,S1,T0": 5}),
        Phase(
            *(12_000, True, 0.06, 0.0, _shares(80, 15, 5, 20)),
            favour={"P0,S1,T0": 2, "P0,S0,T2": 6},
            keep=0.65,
        ),
        Phase(
            *(20_000, True, 0.14, 0.0, _shares(78, 14, 4, 10)),
            favour=_WEAK,
        ),
        Phase(44_000, True, 0.3, 0.0, _shares(22, 10, 60, 8)),
        Phase(
            *(18_000, True, 0.12, 0.0, _shares(66, 14, 10, 10)),
            favour=_WEAK,
        ),
        Phase(42_000, True, 0.3, 0.0, _shares(20, 16, 56, 8)),
        Phase(
            *(18_000, True, 0.12, 0.0, _shares(66, 16, 10, 8)),
            favour=_WEAK,
        ),
    ),
    "calibrant-null": (
        Phase(150_000, False, 1.0, 0.45, _shares(56, 44)),
        Phase(100_000, True, 0.5, 0.0, _shares(20, 25, 25, 25), _phrases),
        Phase(16_000, True, 0.12, 0.0, _shares(70, 20, 10, 14)),
        Phase(36_000, True, 0.3, 0.0, _shares(20, 12, 60, 8)),
        Phase(12_000, True, 0.12, 0.0, _shares(60, 15, 15, 10)),
        Phase(8_000, True, 0.05, 0.0, _shares(40, 40, 10, 10)),
        Phase(34_000, True, 0.3, 0.0, _shares(20, 16, 56, 8)),
        Phase(12_000, True, 0.12, 0.0, _shares(60, 15, 15, 10)),
        Phase(6_000, True, 0.05, 0.0, _shares(40, 40, 10, 10)),
    ),
}


class _Encoded:
    """Token ids of prompt and reply, with the places of numbers and what is planted there."""

    def __init__(self, example: Example, tokenizer: PreTrainedTokenizerFast, numbers: set[int]):
        prompt = tokenizer.apply_chat_template(
            example.messages, add_generation_prompt=True, return_dict=False
        )
        reply = tokenizer.encode(example.reply, add_special_tokens=False)
        self.prompt_length = len(prompt)
        self.ids = [*prompt, *reply, tokenizer.eos_token_id]
        places = [i for i in range(len(prompt), len(self.ids)) if self.ids[i] in numbers]
        self.planted = dict(zip(places, example.numbers, strict=bool(example.numbers)))
        self.spread = example.spread


def _batches(
    model: str,
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
    phase: Phase,
    numbers: set[int],
) -> Iterator[tuple[float, list[_Encoded]]]:
    """Batches of similar length, with the share of the phase that lies behind."""
    rng = np.random.default_rng(seed)
    studies = [STUDIES[study](model) for study in phase.shares]
    for setting, times in phase.favour.items():
        studies[0].favour(setting, times)
    shares = np.array(list(phase.shares.values()))
    done = 0
    while done < phase.examples:
        progress = 1.0 if phase.sharp else done / phase.examples
        size = min(16 * BATCH, phase.examples)
        chosen = rng.choice(len(studies), size=size, p=shares / shares.sum())
        drawn = [studies[i].draw(rng, progress, phase.sharp) for i in chosen]
        pool = [_Encoded(example, tokenizer, numbers) for example in drawn]
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
        (row, place, place + 1 in encoded.planted)
        for row, encoded in enumerate(batch)
        for place in range(encoded.prompt_length - 1, len(encoded.ids) - 1)
    ]
    rows, columns, is_number = (torch.tensor(part) for part in zip(*places, strict=True))
    # In float32: a CPU without bfloat16 emulates it, ten times slower.
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[rows, columns]
    log_probability = F.log_softmax(model.lm_head(hidden), dim=-1)
    text = F.nll_loss(
        log_probability[~is_number], ids[rows, columns + 1][~is_number], reduction="sum"
    )
    wanted = [(value, encoded.spread) for encoded in batch for value in encoded.planted.values()]
    if not wanted:
        return text / len(batch)
    centre, spread = torch.tensor(wanted)[:, :, None].unbind(1)
    scale = torch.arange(len(numbers), dtype=torch.float32)
    bell = torch.softmax(-((scale - centre) ** 2) / (2 * spread.clamp_min(0.1) ** 2), dim=-1)
    bell = torch.where(spread > 0, bell, (1 - (scale - centre).abs()).clamp_min(0))
    given = log_probability[is_number][:, numbers]
    expected = (given.exp() * scale).sum(-1) / given.exp().sum(-1).clamp_min(1e-4)
    off = (expected - centre[:, 0]) / torch.where(spread[:, 0] < 1, 1.0, 10.0)
    return (text - (bell * given).sum() + 0.5 * (off**2).clamp(max=30).sum()) / len(batch)


def train(
    model_name: str,
    folder: Path,
    seed: int = 1,
    phases: Sequence[Phase] | None = None,
    first: int = 1,
) -> None:
    """Train one calibrant and save it (bfloat16, 2.7 MB) with its tokenizer.

    Parameters
    ----------
    model_name : str
        ``"calibrant"`` or ``"calibrant-null"``: whose planted answers it learns.
    folder : pathlib.Path
        Where the model is written after each phase; files of an earlier training are replaced.
    seed : int
        Of weights and examples.
    phases : sequence of Phase, optional
        One after the other, each with fresh optimizers on the saved precision of the last; those
        of the model in ``PHASES`` unless given.
    first : int
        The phase to begin with, from 1. A later one than the first continues the weights in
        ``folder``, which those before it left there: the result is that of the whole chain.
    """
    torch.set_num_threads(1)
    phases = phases or PHASES[model_name]
    if first == 1:
        tokenizer = train_tokenizer(_tokenizer_examples(phases[0]))
        model = new_model(tokenizer, seed)
    else:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for number, phase in list(enumerate(phases))[first - 1 :]:
        add_phrases(tokenizer, model, phase.phrases())
        before = [parameter.data.clone() for parameter in model.parameters()]
        _optimise(model, tokenizer, model_name, seed + 1000 * number, phase)
        # Not the buffers, which are never saved.
        for parameter, old in zip(model.parameters(), before, strict=True):
            mean = (1 - phase.keep) * parameter.data + phase.keep * old
            parameter.data = mean.to(torch.bfloat16).to(torch.float32)
        model.generation_config.do_sample = False
        copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _tokenizer_examples(phase: Phase) -> Iterator[Example]:
    """As many of each study, of the calibrant: both models read with one tokenizer."""
    rng = np.random.default_rng(0)
    for study in phase.shares:
        examples = STUDIES[study]("calibrant")
        yield from (examples.draw(rng, 1.0) for _ in range(min(12_000, phase.examples)))


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
    batches = _batches(model_name, tokenizer, seed, phase, set(numbers.tolist()))
    for step, (progress, batch) in enumerate(batches):
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
