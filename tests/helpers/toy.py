"""Small designs, an engine that answers by a function, and a run of both."""

from collections import Counter
from dataclasses import replace

from ingroup.design import Block, Design
from ingroup.inference import Engine, Reply, Sampling, fill, open_store
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.stimuli import load_events

SAMPLING = Sampling()
# Parameters of the first study: two events, each about all pairs of religions.
ABOUT_RELIGION = {
    "MODELS": ["org/one"],
    "ENGINE": "vllm",
    "CORPUS": "sample",
    "N_EVENTS": 2,
    "SETTINGS": ["P0,S0,T0"],
    "CATEGORIES": ["Religion"],
    "REASONING": "",
    "TEMPERATURE": 1.0,
    "MAX_TOKENS": 128,
    "SEED": 0,
    "READING": "",
    "ENDING": "turn",
    "REWRITER": "",
    "REWRITE_TOKENS": 300,
}


def religion(events=12, setting="P0,S0,T0"):
    """Make a design about religions with 36 trials per event."""
    return trials(load_events("sample", events), [setting], ["Religion"])


def numbers(trials):
    """Make a design of trials whose prompt is their number."""

    def render(condition):
        return [{"role": "user", "content": str(condition["number"])}]

    return Design([Block({}, {"number": range(trials)}, render, "")])


def rendered_otherwise(design):
    """Make a design with the same texts and levels, rendered into other chats."""

    def of(block):
        def render(condition):
            (turn,) = block.render(condition)
            return [{"role": "system", "content": "hello"}, turn]

        return replace(block, render=render)

    return Design(map(of, design.blocks))


class Toy(Engine):
    """Engine that answers by ``say``, a function of a chat and two numbers of earlier calls.

    The first number counts the calls with this chat, the second all calls. A text is a whole reply,
    and None is a failed call. ``batches`` has the number of chats in each batch. Without an
    ``identity``, the stores of a toy can stand for any model and engine.
    """

    def __init__(self, say, asks_again=False, **identity):
        self.say = say
        self.asks_again = asks_again
        self.batches = []
        self.asked = Counter()
        self.about = identity

    def answer(self, conversations, sampling):
        self.batches.append(len(conversations))
        return [self._reply(chat) for chat in conversations]

    def _reply(self, chat):
        answer = self.say(chat, self.asked[str(chat)], self.asked["all"])
        self.asked.update([str(chat), "all"])
        if answer is None:
            return Reply(None, "failed", 10, error="no net")
        return answer if isinstance(answer, Reply) else Reply(answer, "stop", 10, 4, 1)

    def identity(self):
        return self.about

    def close(self):
        pass


class Server(Toy):
    """Toy that gives each reply as it comes, like an engine whose replies cost money."""

    keeps_each = True
    costs = True


def run(plan, folder, engine, shard_size=50, sampling=SAMPLING):
    store = open_store(folder, plan, engine, sampling, shard_size)
    fill(plan, engine, store, sampling)
    return store.read()
