"""Answers over choices by their definition: answer by answer, with nothing kept or shared."""

import numpy as np
import torch
from scipy.special import logsumexp, softmax


def ways_on(logits, spelt, path, ends, newlines=(), ending="turn"):
    """Logits of the tokens that may follow a beginning, and of its end.

    ``logits`` are the model: for each beginning those of the whole vocabulary.
    """
    place = len(path)
    after = {other[place] for other in spelt if other[:place] == path and other[place:]}
    ways = {token: logits(path)[token] for token in after}
    if path in spelt:
        everything_else = set(range(len(logits(path)))) - after
        ending_tokens = {
            "turn": set(ends),
            "newline": {*ends, *newlines},
            "any": everything_else,
        }
        ways["end"] = logsumexp([logits(path)[token] for token in ending_tokens[ending]])
    return ways


def defined(logits, spelt, ends, newlines=(), ending="turn"):
    """At each token, and at the end, what may come is renormalised."""
    found = []
    for answer in spelt:
        total = 0.0
        for place in range(len(answer) + 1):
            ways = ways_on(logits, spelt, answer[:place], ends, newlines, ending)
            way = answer[place] if place < len(answer) else "end"
            total += ways[way] - logsumexp(list(ways.values()))
        found.append(np.exp(total))
    return np.array(found)


def greedy(logits, spelt, ends, newlines=(), ending="turn"):
    """The place of the answer that is written when the most probable way is taken each time."""
    path = ()
    while True:
        ways = ways_on(logits, spelt, path, ends, newlines, ending)
        way = max(ways, key=ways.get) if ways else "end"
        if way == "end":
            return spelt.index(path)
        path = (*path, way)


def known(model, ids, spelt):
    """Logits behind each beginning of an answer, with a pass over the whole prompt for each."""
    found = {}
    for answer in spelt:
        with torch.inference_mode():
            logits = model(torch.tensor([[*ids, *answer]])).logits[0, len(ids) - 1 :].double()
        found |= {answer[:place]: logits[place].numpy() for place in range(len(answer) + 1)}
    return found


def over_choices(model, ids, spelt, ends):
    """Probabilities, mass and greedy answer."""
    known_logits = known(model, ids, spelt)
    mass = softmax(known_logits[()])[list({answer[0] for answer in spelt})].sum()
    logits = known_logits.get
    return defined(logits, spelt, ends), mass, greedy(logits, spelt, ends)


def replies(engine, model, chats, sampling):
    """Texts, probabilities and mass of :class:`ingroup.inference.Reply`, lead by lead."""
    spell = engine.tokenizer.encode
    for chat in chats:
        text, probabilities, mass = "", [], []
        for lead in sampling.leads:
            text += lead
            ids = engine.prompter.batch([chat])[0] + spell(text, add_special_tokens=False)
            spelt = [tuple(spell(one, add_special_tokens=False)) for one in sampling.choices]
            found, first, taken = over_choices(model, ids, spelt, engine._end_tokens)
            text += sampling.choices[taken]
            probabilities += found.tolist()
            mass.append(first)
        yield text, probabilities, mass
