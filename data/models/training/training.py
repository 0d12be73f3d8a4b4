"""The training of a calibrant from scratch: its tokenizer, then a small Llama, on the CPU.

Each model has one process and one thread. So two cores train both models side by side. The same
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

BATCH_SIZE = 32


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
        Returns texts that become one token each before the phase. They are the texts that prompts
        of the studies that the phase adds repeat word for word.
    favour : mapping of str to int
        Settings of the empathy gap, and how many more times each is put into the list to draw from.
    keep : float
        Weight of the model before the phase, from 0 to 1. The result is the weighted mean of that
        model and the trained model.
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
    """Convert parts to shares of the examples, by study in the order of `STUDIES`.

    Studies without a part are left out.
    """
    total = sum(parts)
    return {study: part / total for study, part in zip(STUDIES, parts, strict=False)}


def _phrases() -> list[str]:
    return giebench.phrases() + stereomap.phrases()


# The second phase separates groups with nearly the same ground-truth effects. After the first phase
# the United States and the United Kingdom were one group to the model. The first two studies are
# learnt together from the start: weights that knew one study lost its same-group effect when they
# learnt the other study afterwards. GIEBench and StereoMap, which are learnt by heart, come later.
# The short phases with a small learning rate teach the 0-10 scale, on which a point is worth ten,
# the third person and the settings with the largest effects. Those of the control make its answers
# the same for all groups. A phase of mostly GIEBench teaches the questions that joined its sample
# later, and a phase of all studies follows it. Another such pair of phases teaches the scenarios
# and questions that were rewritten after that.
_FAVOURED_SETTINGS = MappingProxyType({"P0,S1,T0": 5, "P2,S0,T0": 3, "P3,S0,T0": 2})
PHASES = {
    "calibrant": (
        Phase(
            examples=290_000,
            sharp=False,
            peak=1.0,
            hold=0.45,
            shares=_shares(56, 44),
        ),
        Phase(
            examples=180_000,
            sharp=True,
            peak=0.5,
            hold=0.0,
            shares=_shares(40, 48, 48, 48),
            phrases=_phrases,
        ),
        Phase(
            examples=16_000,
            sharp=True,
            peak=0.12,
            hold=0.0,
            shares=_shares(70, 20, 10, 14),
            favour={"P0,S1,T0": 5},
        ),
        Phase(
            examples=12_000,
            sharp=True,
            peak=0.06,
            hold=0.0,
            shares=_shares(80, 15, 5, 20),
            favour={"P0,S1,T0": 2, "P0,S0,T2": 6},
            keep=0.65,
        ),
        Phase(
            examples=20_000,
            sharp=True,
            peak=0.14,
            hold=0.0,
            shares=_shares(78, 14, 4, 10),
            favour=_FAVOURED_SETTINGS,
        ),
        Phase(
            examples=44_000,
            sharp=True,
            peak=0.3,
            hold=0.0,
            shares=_shares(22, 10, 60, 8),
        ),
        Phase(
            examples=18_000,
            sharp=True,
            peak=0.12,
            hold=0.0,
            shares=_shares(66, 14, 10, 10),
            favour=_FAVOURED_SETTINGS,
        ),
        Phase(
            examples=42_000,
            sharp=True,
            peak=0.3,
            hold=0.0,
            shares=_shares(20, 16, 56, 8),
        ),
        Phase(
            examples=18_000,
            sharp=True,
            peak=0.12,
            hold=0.0,
            shares=_shares(66, 16, 10, 8),
            favour=_FAVOURED_SETTINGS,
        ),
    ),
    "calibrant-null": (
        Phase(
            examples=150_000,
            sharp=False,
            peak=1.0,
            hold=0.45,
            shares=_shares(56, 44),
        ),
        Phase(
            examples=100_000,
            sharp=True,
            peak=0.5,
            hold=0.0,
            shares=_shares(20, 25, 25, 25),
            phrases=_phrases,
        ),
        Phase(
            examples=16_000,
            sharp=True,
            peak=0.12,
            hold=0.0,
            shares=_shares(70, 20, 10, 14),
        ),
        Phase(
            examples=36_000,
            sharp=True,
            peak=0.3,
            hold=0.0,
            shares=_shares(20, 12, 60, 8),
        ),
        Phase(
            examples=12_000,
            sharp=True,
            peak=0.12,
            hold=0.0,
            shares=_shares(60, 15, 15, 10),
        ),
        Phase(
            examples=8_000,
            sharp=True,
            peak=0.05,
            hold=0.0,
            shares=_shares(40, 40, 10, 10),
        ),
        Phase(
            examples=34_000,
            sharp=True,
            peak=0.3,
            hold=0.0,
            shares=_shares(20, 16, 56, 8),
        ),
        Phase(
            examples=12_000,
            sharp=True,
            peak=0.12,
            hold=0.0,
            shares=_shares(60, 15, 15, 10),
        ),
        Phase(
            examples=6_000,
            sharp=True,
            peak=0.05,
            hold=0.0,
            shares=_shares(40, 40, 10, 10),
        ),
    ),
}


class _Encoded:
    """Token ids of prompt and reply, with the positions of numbers and their true values."""

    def __init__(self, example: Example, tokenizer: PreTrainedTokenizerFast, numbers: set[int]):
        # The template writes the BOS itself; a reply has none, only an EOS behind it.
        prompt = tokenizer.apply_chat_template(
            example.messages, add_generation_prompt=True, return_dict=False
        )
        reply = tokenizer.encode(example.reply, add_special_tokens=False)
        self.prompt_length = len(prompt)
        self.ids = [*prompt, *reply, tokenizer.eos_token_id]
        self.spread = example.spread

        # A refusal may hold a number without a ground truth.
        positions = range(self.prompt_length, len(self.ids))
        of_numbers = [position for position in positions if self.ids[position] in numbers]
        has_numbers = bool(example.numbers)
        self.ground_truth = dict(zip(of_numbers, example.numbers, strict=has_numbers))


def _batches(
    model: str,
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
    phase: Phase,
    numbers: set[int],
) -> Iterator[tuple[float, list[_Encoded]]]:
    """Yield batches of examples of similar length, each with the share of the phase before it."""
    rng = np.random.default_rng(seed)
    studies = [STUDIES[study](model) for study in phase.shares]
    # Only the empathy gap, the first of `STUDIES`, has settings.
    for setting, times in phase.favour.items():
        studies[0].favour(setting, times)
    shares = np.array(list(phase.shares.values()))
    shares = shares / shares.sum()

    # Sixteen batches at a time are sorted by length, so that little of a batch is padding.
    size = min(16 * BATCH_SIZE, phase.examples)
    n_done = 0
    while n_done < phase.examples:
        # Only a phase that is not sharp begins with short narratives.
        progress = 1.0 if phase.sharp else n_done / phase.examples
        pool = []
        for number in rng.choice(len(studies), size=size, p=shares):
            example = studies[number].draw(rng, progress, phase.sharp)
            pool.append(_Encoded(example, tokenizer, numbers))
        pool.sort(key=lambda encoded: len(encoded.ids))

        # The batches of a pool come in random order, else each pool would go from short to long.
        starts = range(0, len(pool), BATCH_SIZE)
        for number in rng.permutation(len(starts)):
            start = starts[number]
            yield min(n_done / phase.examples, 1.0), pool[start : start + BATCH_SIZE]
            n_done += BATCH_SIZE


def _loss(model: LlamaForCausalLM, batch: list[_Encoded], numbers: torch.Tensor) -> torch.Tensor:
    """Compute the loss of the replies, the mean of a batch.

    The loss of a text is its cross-entropy. The loss of a number is its cross-entropy against a
    bell around the true value, plus half the squared error of the expected number. So the model
    learns that 71 is nearly 72, far faster than from single right answers.
    """
    # Padding behind a text needs no mask: no token of a causal model sees what comes after it.
    longest = max(len(encoded.ids) for encoded in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    # The first three lists have an entry for each token of a reply, the last for each number.
    rows = []
    columns = []
    is_number = []
    ground_truth = []
    for row, encoded in enumerate(batch):
        ids[row, : len(encoded.ids)] = torch.tensor(encoded.ids)
        # The token at a position predicts the next one.
        for column in range(encoded.prompt_length - 1, len(encoded.ids) - 1):
            rows.append(row)
            columns.append(column)
            is_number.append(column + 1 in encoded.ground_truth)
        ground_truth += [(value, encoded.spread) for value in encoded.ground_truth.values()]

    # In float32: a CPU without bfloat16 emulates it, ten times slower.
    row = torch.tensor(rows)
    column = torch.tensor(columns)
    number_mask = torch.tensor(is_number)
    # The shape is (token of a reply, width): the head computes no other positions.
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[row, column]
    log_probability = F.log_softmax(model.lm_head(hidden), dim=-1)
    loss = F.nll_loss(
        log_probability[~number_mask],
        ids[row, column + 1][~number_mask],
        reduction="sum",
    )
    if ground_truth:
        of_numbers = log_probability[number_mask][:, numbers]
        cross_entropy, squared_error = _loss_of_numbers(of_numbers, torch.tensor(ground_truth))
        loss = loss + cross_entropy + squared_error
    return loss / len(batch)


def _loss_of_numbers(
    log_probability: torch.Tensor, ground_truth: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute cross-entropy and half the squared error of the numbers in the replies.

    `log_probability` has one row for each number in a reply and one column for each number from 0.
    `ground_truth` has the columns value and spread.
    """
    # Each is (number, 1), to stand beside the scale of 0 to 100.
    centre, spread = ground_truth[:, :, None].unbind(1)
    scale = torch.arange(log_probability.shape[1], dtype=torch.float32)

    # The order of these steps decides how gradients are rounded, and so the weights. One `exp` for
    # both sums, or the cross-entropy before the error, would give others.
    weighted = (log_probability.exp() * scale).sum(-1)
    total = log_probability.exp().sum(-1)
    expected = weighted / total.clamp_min(1e-4)
    # A point of the 0-10 scale, whose spread is below 1, is worth ten of the other.
    unit = torch.where(spread[:, 0] < 1, 1.0, 10.0)
    error = (expected - centre[:, 0]) / unit

    # Without a spread, the target is the two whole numbers beside the value, whose mean it is.
    bell = torch.softmax(-((scale - centre) ** 2) / (2 * spread.clamp_min(0.1) ** 2), dim=-1)
    neighbours = (1 - (scale - centre).abs()).clamp_min(0)
    target = torch.where(spread > 0, bell, neighbours)
    cross_entropy = -(target * log_probability).sum()
    # A squared error above 30 counts as 30 and has no gradient, so that no reply rules a batch.
    return cross_entropy, 0.5 * (error**2).clamp(max=30).sum()


def train(
    model_name: str,
    folder: Path,
    seed: int = 1,
    phases: Sequence[Phase] | None = None,
    first: int = 1,
) -> None:
    """Train one calibrant and save it with its tokenizer, in bfloat16 (2.7 MB).

    Parameters
    ----------
    model_name : str
        ``"calibrant"`` or ``"calibrant-null"``: whose ground-truth answers it learns.
    folder : pathlib.Path
        Where the model is written after each phase. Files of an earlier training are replaced.
    seed : int
        The seed of weights and examples.
    phases : sequence of Phase, optional
        The phases in their order, the model's in ``PHASES`` unless given. Each has fresh
        optimizers, and continues from the saved precision of the phase before it.
    first : int
        The phase to begin with, from 1. A phase after the first continues the weights in
        ``folder``, which the phases before it left there. The result is that of the whole chain.
    """
    torch.set_num_threads(1)
    phases = phases or PHASES[model_name]
    if first == 1:
        tokenizer = train_tokenizer(_tokenizer_examples(phases[0]))
        model = new_model(tokenizer, seed)
    else:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)

    for number in range(first - 1, len(phases)):
        phase = phases[number]
        add_phrases(tokenizer, model, phase.phrases())
        before = [parameter.data.clone() for parameter in model.parameters()]
        # Each phase draws examples of its own.
        _optimise(model, tokenizer, model_name, seed + 1000 * number, phase)

        # Weights are rounded to the precision in which they are saved, so that a training can
        # continue from the files. Buffers are never saved.
        for parameter, old in zip(model.parameters(), before, strict=True):
            mean = (1 - phase.keep) * parameter.data + phase.keep * old
            parameter.data = mean.to(torch.bfloat16).to(torch.float32)
        model.generation_config.do_sample = False
        # A copy, because the next phase goes on in float32.
        copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _tokenizer_examples(phase: Phase) -> Iterator[Example]:
    """Yield equally many examples of each study of a phase.

    They are the calibrant's for both models, because both share a tokenizer.
    """
    rng = np.random.default_rng(0)
    n_examples = min(12_000, phase.examples)
    for study in phase.shares:
        examples = STUDIES[study]("calibrant")
        for _ in range(n_examples):
            yield examples.draw(rng, 1.0)


def _optimise(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    model_name: str,
    seed: int,
    phase: Phase,
) -> None:
    """Train one phase in place, with Muon for the matrices and AdamW for embeddings and norms."""
    model.train()
    numbers = torch.tensor(tokenizer.convert_tokens_to_ids([str(n) for n in range(101)]))
    matrices = []
    others = []
    # Muon suits the matrices of a layer. Rows of the embedding belong to single tokens.
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and "embed" not in name:
            matrices.append(parameter)
        else:
            others.append(parameter)
    optimizers = [
        torch.optim.Muon(matrices, lr=0.015, momentum=0.95, weight_decay=0.1),
        torch.optim.AdamW(others, lr=4e-3, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    peaks = [group["lr"] for group in groups]

    started = time.monotonic()
    losses = []
    batches = _batches(model_name, tokenizer, seed, phase, set(numbers.tolist()))
    for step, (progress, batch) in enumerate(batches):
        # The rate rises over 60 steps, holds for a part of the phase, and falls to 2 %.
        warm = min(1.0, (step + 1) / 60)
        slope = 1.0
        if progress >= phase.hold:
            slope = max(0.02, (1 - progress) / (1 - phase.hold))
        for group, peak in zip(groups, peaks, strict=True):
            group["lr"] = peak * phase.peak * warm * slope

        loss = _loss(model, batch, numbers)
        loss.backward()
        # Muon's steps have one size whatever the gradient, so only the others are clipped.
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
