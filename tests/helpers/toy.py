"""Small designs, an engine that says what a function says, and a run of both."""

from collections import Counter
from dataclasses import replace

from ingroup.design import Block, Design
from ingroup.inference import Engine, Reply, Sampling, fill, open_store
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.stimuli import load_events

SAMPLING = Sampling()
# Of the first study: two events, each about all pairs of religions.
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
    """36 trials an event."""
    return trials(load_events("sample", events), [setting], ["Religion"])


def numbers(trials):
    """Trials whose prompt is their number."""

    def render(condition):
        return [{"role": "user", "content": str(condition["number"])}]

    return Design([Block({}, {"number": range(trials)}, render, "")])


def rendered_otherwise(design):
    """The same texts and levels, put into chats by other code."""

    def of(block):
        def render(condition):
            (turn,) = block.render(condition)
            return [{"role": "system", "content": "hello"}, turn]

        return replace(block, render=render)

    return Design(map(of, design.blocks))


class Toy(Engine):
    """Answers what ``say`` makes of a chat, and of how often it and anything were asked before.

    A text is a whole reply, None a failed call. ``batches`` are how many came together. Without an
    ``identity``, its stores can stand for those of any model and engine.
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
    """A toy that gives each reply as it comes, as an engine does whose replies cost money."""

    keeps_each = True
    costs = True


def run(plan, folder, engine, shard_size=50, sampling=SAMPLING):
    store = open_store(folder, plan, engine, sampling, shard_size)
    fill(plan, engine, store, sampling)
    return store.read()
