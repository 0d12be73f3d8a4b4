"""What happens to logits on their way to a token: listening, drawing, and a token's own text."""

from collections.abc import Callable
from functools import cache, lru_cache

import torch
from transformers import PreTrainedTokenizerBase, TemperatureLogitsWarper, TopPLogitsWarper

from ingroup.inference.engine import Sampling, trial_seed


class FirstToken:
    """Listens to a generation: the most probable first tokens of each prompt.

    To let ``generate`` return its logits would keep those of every token, gigabytes of them.
    It is called before temperature and top_p are applied. ``top`` are, for each prompt, the ids of
    the ``number`` most probable tokens with the natural logarithm of their probability, most
    probable first.
    """

    def __init__(self, number: int):
        self.number = number
        self.top: list[list[tuple[int, float]]] = []

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        if not self.top:
            logprobs = torch.log_softmax(logits.float(), dim=-1)
            values, ids = logprobs.topk(min(self.number, logprobs.shape[-1]))
            self.top = [
                list(zip(*row, strict=True))
                for row in zip(ids.tolist(), values.tolist(), strict=True)
            ]
        return logits


class Draw:
    """Draws the tokens of each prompt with a random generator of its own.

    ``generate`` draws a whole batch from one stream, so that a reply depends on its neighbours.
    Here Gumbel noise is added to the logits after temperature and top_p, and the largest sum is a
    draw from their softmax (the Gumbel-max trick): greedy decoding then takes it.
    ``prompts`` are token ids, a list a row of the batch; the temperature is above 0.
    """

    def __init__(self, prompts: list[list[int]], sampling: Sampling, device: str):
        self.streams = [
            torch.Generator(device).manual_seed(trial_seed(sampling.seed, ids)) for ids in prompts
        ]
        self.warpers = [TemperatureLogitsWarper(sampling.temperature)]
        if sampling.top_p < 1:
            self.warpers.append(TopPLogitsWarper(sampling.top_p))

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        logits = logits.float()
        for warp in self.warpers:
            logits = warp(input_ids, logits)
        noise = torch.empty_like(logits)
        for row, stream in zip(noise, self.streams, strict=True):
            row.exponential_(generator=stream)
        return logits - noise.log()  # minus the logarithm of an exponential draw is Gumbel


def reply_text(tokenizer: PreTrainedTokenizerBase) -> Callable[[tuple[int, ...]], str]:
    """Token ids of a reply to its text, special tokens left out; most replies come many times."""
    return lru_cache(1 << 16)(lambda ids: tokenizer.decode(ids, skip_special_tokens=True))


def token_text(tokenizer: PreTrainedTokenizerBase) -> Callable[[int], str]:
    """Token id to its text alone, special tokens as they are written; each decoded once."""
    return cache(lambda token: tokenizer.decode([token]))
