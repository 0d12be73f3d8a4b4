"""Scored answers by their definition: answer by answer, with nothing kept or shared."""

import numpy as np
import torch
from scipy.special import logsumexp, softmax


def ways_on(logits, spelt, path, ends, newlines=(), ending="turn"):
    """Return the logits of the tokens that may follow a beginning, and of its end.

    ``logits`` is the model: a function from a beginning to the logits of the whole vocabulary.
    """
    length = len(path)
    continuations = set()
    for answer in spelt:
        if answer[:length] == path and len(answer) > length:
            continuations.add(answer[length])
    ways = {token: logits(path)[token] for token in continuations}

    if path in spelt:
        everything_else = set(range(len(logits(path)))) - continuations
        ending_tokens = {
            "turn": set(ends),
            "newline": {*ends, *newlines},
            "any": everything_else,
        }
        ways["end"] = logsumexp([logits(path)[token] for token in ending_tokens[ending]])
    return ways


def defined(logits, spelt, ends, newlines=(), ending="turn"):
    """Compute the probability of each answer from the admissible tokens alone.

    The probabilities of the tokens that may follow, and of the end, are renormalised at each step.
    """
    probabilities = []
    for answer in spelt:
        total = 0.0
        for length in range(len(answer) + 1):
            ways = ways_on(logits, spelt, answer[:length], ends, newlines, ending)
            way = answer[length] if length < len(answer) else "end"
            total += ways[way] - logsumexp(list(ways.values()))
        probabilities.append(np.exp(total))
    return np.array(probabilities)


def greedy(logits, spelt, ends, newlines=(), ending="turn"):
    """Return the position of the answer that the most probable token at each step leads to."""
    path = ()
    while True:
        ways = ways_on(logits, spelt, path, ends, newlines, ending)
        way = max(ways, key=ways.get) if ways else "end"
        if way == "end":
            return spelt.index(path)
        path = (*path, way)


def known(model, ids, spelt):
    """Compute the logits behind each beginning of an answer, with a whole pass for each answer."""
    logits_of = {}
    for answer in spelt:
        tokens = torch.tensor([[*ids, *answer]])
        with torch.inference_mode():
            logits = model(tokens).logits[0, len(ids) - 1 :].double()
        for length in range(len(answer) + 1):
            logits_of[answer[:length]] = logits[length].numpy()
    return logits_of


def scored(model, ids, spelt, ends):
    """Compute the probabilities of the answers, their mass and the greedy answer's position."""
    logits_of = known(model, ids, spelt)
    first_tokens = list({answer[0] for answer in spelt})
    mass = softmax(logits_of[()])[first_tokens].sum()
    logits = logits_of.get
    return defined(logits, spelt, ends), mass, greedy(logits, spelt, ends)


def replies(engine, model, chats, sampling):
    """Yield the texts, probabilities and masses of `ingroup.inference.Reply`, by definition."""

    def spell(text):
        return engine.tokenizer.encode(text, add_special_tokens=False)

    for chat in chats:
        text = ""
        probabilities = []
        masses = []
        for lead in sampling.leads:
            text += lead
            (prompt,) = engine.prompter.batch([chat])
            spelt = [tuple(spell(choice)) for choice in sampling.choices]
            of_lead, mass, chosen = scored(model, prompt + spell(text), spelt, engine._end_tokens)

            text += sampling.choices[chosen]
            probabilities += of_lead.tolist()
            masses.append(mass)
        yield text, probabilities, masses
