"""Answers over choices by their definition: answer by answer, with nothing kept or shared."""

import numpy as np
import torch
from scipy.special import logsumexp, softmax


def defined(logits, spelt, ends):
    """At each token, and at the end, what may come is renormalised.

    ``logits`` are the model: for each beginning those of the whole vocabulary.
    """
    found = []
    for answer in spelt:
        total = 0.0
        for place in range(len(answer) + 1):
            path = answer[:place]
            after = {other[place] for other in spelt if other[:place] == path and other[place:]}
            ways = {token: logits(path)[token] for token in after}
            if path in spelt:
                ways["end"] = logsumexp([logits(path)[end] for end in set(ends)])
            way = answer[place] if place < len(answer) else "end"
            total += ways[way] - logsumexp(list(ways.values()))
        found.append(np.exp(total))
    return np.array(found)


def over_choices(model, ids, spelt, ends):
    """Probabilities and mass, with a forward pass over the whole prompt for every choice."""
    known = {}
    for answer in spelt:
        with torch.inference_mode():
            logits = model(torch.tensor([[*ids, *answer]])).logits[0, len(ids) - 1 :].double()
        known |= {answer[:place]: logits[place].numpy() for place in range(len(answer) + 1)}
    mass = softmax(known[()])[list({answer[0] for answer in spelt})].sum()
    return defined(known.__getitem__, spelt, ends), mass


def replies(engine, model, chats, sampling):
    """Texts, probabilities and mass of :class:`ingroup.inference.Reply`, lead by lead."""
    spell = engine.tokenizer.encode
    for chat in chats:
        text, probabilities, mass = "", [], []
        for lead in sampling.leads:
            text += lead
            ids = engine.prompter.batch([chat])[0] + spell(text, add_special_tokens=False)
            spelt = [tuple(spell(one, add_special_tokens=False)) for one in sampling.choices]
            found, first = over_choices(model, ids, spelt, engine._end_tokens)
            text += sampling.choices[found.argmax()]
            probabilities += found.tolist()
            mass.append(first)
        yield text, probabilities, mass
