"""Asking again: what differs is counted, and a sample is whole events in an order of its own."""

import numpy as np
import pandas as pd
import pytest

from ingroup import corpora, design, paths, permutation, ratings, repeat, stimuli
from ingroup.inference import Reply

NOTEBOOK = "10_empathy_gap"


@pytest.fixture(scope="module")
def plan():
    return design.empathy_gap(corpora.load_events("sample", 12), ["P0,S0,T0"])


def answers(numbers, texts):
    return pd.DataFrame({"trial": numbers, "text": pd.Categorical(texts), "finish_reason": "stop"})


def test_a_sample_is_every_cell_of_some_events_shuffled(plan):
    sample = repeat.of_events(plan, 3, np.random.default_rng(0))
    assert len(sample) == 3 * (19**2 + 22**2 + 6**2)
    conditions = [sample[i].condition for i in range(len(sample))]
    cells = {(c["category"], c["perceiver"], c["experiencer"]) for c in conditions}
    assert len(cells) == 19**2 + 22**2 + 6**2
    assert len({c["event"] for c in conditions}) == 3
    assert sorted(sample.numbers) != sample.numbers.tolist()
    assert [sample[i].index for i in range(9)] == sample.numbers[:9].tolist()


def test_more_events_than_there_are_gives_all(plan):
    assert len(repeat.of_events(plan, 99, np.random.default_rng(0))) == len(plan)


def test_another_selection_has_another_fingerprint(plan):
    one, same, other = (design.Selection(plan, [5, 3, x]) for x in (1, 1, 2))
    assert one.fingerprint == same.fingerprint != other.fingerprint != plan.fingerprint
    assert [trial.index for trial in one.slice(1, 3)] == [3, 1]


def test_differences_are_counted_by_category(plan):
    """Of the 2 x 36 religion trials one text changes with its rating, one changes alone, one is
    refused the second time; race and nationality stay."""
    rng = np.random.default_rng(0)
    sample = repeat.of_events(plan, 2, rng)
    numbers = np.sort(sample.numbers)
    texts = rng.integers(0, 101, len(numbers)).astype(str).astype(object)
    again = texts.copy()
    _, religion = plan.block_of(category="Religion")
    first = int(np.searchsorted(numbers, religion.start))
    texts[first], again[first] = "60", "66"
    texts[first + 1], again[first + 1] = "50", "50."
    texts[first + 5], again[first + 5] = "40", "I cannot answer that."
    shuffled = rng.permutation(len(numbers))
    table = repeat.compared(
        answers(numbers, texts), answers(numbers[shuffled], again[shuffled]), plan
    ).set_index("category")
    row = table.loc["Religion"]
    assert row.trials == 72
    assert row.texts_differ == pytest.approx(100 * 3 / 72)
    assert row.ratings_differ == pytest.approx(100 * 2 / 72)
    assert row.mean_change == pytest.approx(6 / 71)
    wanted = []
    for side in (texts, again):
        values = pd.to_numeric(pd.Series(side[first : first + 72]).str.rstrip("."), "coerce")
        means = np.nanmean(values.to_numpy().reshape(6, 6, 2), axis=2)
        same = permutation.same_group(stimuli.identities("Religion").group[1:])
        wanted.append(permutation.empathy_gap(ratings.zscore(means)[1:, 1:], same))
    assert [row.delta, row.delta_again] == pytest.approx(wanted)
    assert row.change == pytest.approx(wanted[1] - wanted[0])
    rest = table.drop("Religion")
    assert (rest[["texts_differ", "ratings_differ", "mean_change", "change"]] == 0).all().all()


def test_where_no_cell_differs_there_is_no_delta(plan):
    numbers = np.arange(len(plan))
    flat = answers(numbers, ["50"] * len(plan))
    table = repeat.compared(flat, flat, plan)
    assert table.delta.isna().all()
    assert (table.ratings_differ == 0).all()


class Moody:
    """Answers by the prompt, but every tenth question of a sample one point higher."""

    asks_again, count, mood = False, 0, 0

    def answer(self, conversations, sampling):
        replies = []
        for chat in conversations:
            self.count += 1
            value = sum(map(ord, chat[0]["content"] + chat[1]["content"])) % 90
            replies.append(Reply(str(value + (self.mood and self.count % 10 == 0)), "stop"))
        return replies

    def identity(self):
        return {"engine": "moody"}

    def close(self):
        pass


@pytest.fixture
def engine(tmp_path, monkeypatch):
    engine = Moody()
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(repeat, "make_engine", lambda *_, **__: engine)
    return engine


def ask_first(engine, n_events):
    from ingroup.inference import Sampling, generate, open_store, response_folder

    plan = design.empathy_gap(corpora.load_events("sample", n_events), ["P0,S0,T0"])
    folder = response_folder(
        "empathy_gap", f"sample-{n_events}", "calibrant", "transformers", "P0,S0,T0"
    )
    sampling = Sampling(max_tokens=128)
    generate(plan, engine, open_store(folder, plan, engine, sampling), sampling)


ARGUMENTS = [NOTEBOOK, "--run", "moody", "--set", "N_EVENTS=4", "--events", "2"]


def test_the_command_reports_flips_and_asks_only_once(engine, capsys):
    ask_first(engine, 4)
    engine.mood, engine.count = 1, 0
    assert repeat.main(ARGUMENTS) == 0
    assert engine.count == 2 * 881
    table = pd.read_csv(paths.BUILD / "runs" / "moody" / "tables" / "empathy_gap" / "repeat.csv")
    differ = (table.trials * table.ratings_differ / 100).sum()
    assert differ == pytest.approx(2 * 881 // 10)
    assert repeat.main(ARGUMENTS) == 0
    assert engine.count == 2 * 881
    assert "flip rates" in capsys.readouterr().out


def test_what_cannot_be_repeated_is_one_sentence(engine, capsys):
    assert repeat.main(ARGUMENTS) == 1
    assert "has not all first answers yet; run make 10" in capsys.readouterr().err
    assert repeat.main([NOTEBOOK, "--events", "0"]) == 2
    assert repeat.main([NOTEBOOK, "--set", "N_EVENTS=x"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    assert engine.count == 0
