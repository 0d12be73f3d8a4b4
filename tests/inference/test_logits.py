"""Drawing tokens, each prompt with a stream of its own."""

import numpy as np
import torch
from scipy import stats

from ingroup.inference import Sampling
from ingroup.inference.engine import trial_seed
from ingroup.inference.transformers_engine import Draw


def test_draws_follow_the_probabilities():
    """A chi-squared test of 4,000 draws, each with a prompt and so a stream of its own."""
    p = np.array([0.5, 0.3, 0.15, 0.05])
    logits = torch.tensor(np.log(p), dtype=torch.float32).repeat(4000, 1)
    prompts = [[number] for number in range(4000)]

    def share(**options):
        draw = Draw(prompts, Sampling(seed=5, **options), "cpu")
        return np.bincount(draw(None, logits).argmax(-1), minlength=4)

    assert stats.chisquare(share(temperature=1.0), 4000 * p).pvalue > 0.01
    flat = p**0.5 / (p**0.5).sum()  # a temperature of 2
    assert stats.chisquare(share(temperature=2.0), 4000 * flat).pvalue > 0.01
    nucleus = share(temperature=1.0, top_p=0.7)  # the first two, 0.8 together
    assert nucleus[2:].sum() == 0
    assert stats.chisquare(nucleus[:2], 4000 * p[:2] / p[:2].sum()).pvalue > 0.01


def test_a_trial_has_a_seed_of_its_own():
    seeds = {trial_seed(seed, [prompt]) for seed in range(10) for prompt in range(100)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert trial_seed(1, [{"role": "user", "content": "a"}]) == trial_seed(
        1, [{"role": "user", "content": "a"}]
    )
