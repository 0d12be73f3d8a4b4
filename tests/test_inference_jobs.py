"""Jobs: recorded answers first, the others asked, and a budget over all that is stored."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from ingroup import RECORDINGS
from ingroup.inference import generate, jobs, weights
from ingroup.inference.answers import Engine, EngineError, Reply, Sampling
from ingroup.inference.design import Block, Design
from ingroup.inference.jobs import Job, answers, ask, plan
from ingroup.inference.models import Model
from ingroup.inference.parameters import Parameters
from ingroup.inference.store import StoreError
from ingroup.run import defaults
from ingroup.tables import InputError

SMALL = str(Path(__file__).parent / "model")
LETTERS = Sampling(choices=("A", "B"))
WORDS = ["joy", "fear", "pride", "shame"]


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Give each test folders of its own for recordings and responses."""
    monkeypatch.setattr(jobs, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(generate, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(jobs, "RECORDINGS", tmp_path / "recordings")
    monkeypatch.setattr(weights, "available", lambda name: None)
    jobs._manifests.cache_clear()
    jobs._read_recording.cache_clear()
    return tmp_path


def chat(condition):
    """Ask about a word."""
    return [{"role": "user", "content": f"Do you feel {condition['word']}?"}]


def job(words, engine="transformers", part="part", sampling=LETTERS, name="small"):
    """Make a job of the small model."""
    model = Model(name, name.capitalize(), engine, SMALL, "expected")
    return Job("study", part, model, Design([Block({}, {"word": words}, chat)]), sampling)


def parameters(**changes):
    """Make the parameters of a run."""
    return Parameters(MODELS=[SMALL], **changes)


def record(folder, words, part="part", sampling=LETTERS, name="small"):
    """Ask the small model, and move the store to where recordings are."""
    asked = job(words, part=part, sampling=sampling, name=name)
    ask([asked], parameters())
    target = folder / "recordings" / name / "study" / asked.name
    target.parent.mkdir(parents=True, exist_ok=True)
    asked.folder.rename(target)
    jobs._manifests.cache_clear()


def test_any_subset_and_order_of_recorded_prompts_is_answered(folders):
    record(folders, WORDS)
    everything = answers(job(WORDS, "recorded"), ["probabilities"])
    some = answers(job(["shame", "joy"], "recorded", part="another"), ["probabilities"])
    assert some.trial.tolist() == [0, 1]
    assert some.probabilities.tolist() == everything.probabilities.iloc[[3, 0]].tolist()


def test_the_recording_of_the_same_part_is_preferred(folders):
    record(folders, ["joy"], part="b")
    record(folders, ["joy"], part="a")
    file = next((folders / "recordings/small/study/a+choices").glob("*.parquet"))
    found = job(["joy"], "recorded", part="b").recordings("small")
    assert found[0].name == "b+choices"
    assert file.parent in found


def test_answers_asked_otherwise_are_no_answers(folders):
    record(folders, WORDS)
    free = answers(job(WORDS, "recorded", sampling=Sampling()))
    assert set(free.finish_reason) == {"missing"}
    folded = replace(job(WORDS, "recorded"), options={"system": "fold"})
    assert set(answers(folded).finish_reason) == {"missing"}


def test_a_recorded_run_asks_nothing(folders, monkeypatch):
    record(folders, WORDS)
    monkeypatch.setattr(jobs, "make_engine", lambda *options: pytest.fail("an engine started"))
    ask([job(WORDS, "recorded")], parameters())
    assert not (folders / "responses" / "study" / "small@recorded").exists()


def test_another_file_of_replies_is_noticed_where_all_is_answered(folders):
    written = job(["joy"], "replay", sampling=Sampling())
    for name, text in (("first", "yes"), ("second", "no")):
        table = pd.DataFrame({"prompt": ["Do you feel joy?"], "answer": [text]})
        table.to_csv(folders / f"{name}.csv", index=False)
    ask([written], parameters(RECORDINGS=str(folders / "first.csv")))
    ask([written], parameters(RECORDINGS=str(folders / "first.csv")))
    with pytest.raises(StoreError, match=r"second\.csv"):
        ask([written], parameters(RECORDINGS=str(folders / "second.csv")))
    assert answers(written).text.tolist() == ["yes"]


def test_prompts_that_are_not_recorded_are_asked_live(folders, monkeypatch, capsys):
    record(folders, WORDS[:2])
    monkeypatch.setattr(weights, "available", lambda name: Path(SMALL))
    whole = job(WORDS, "recorded")
    ask([whole], parameters())
    captured = capsys.readouterr().err
    assert "Small: 2 prompts are not recorded, so the model itself is asked" in captured
    assert set(answers(whole).finish_reason) == {"stop"}

    live = jobs.Store(whole.folder, jobs.read_manifest(whole.folder)).read()
    assert live.finish_reason.tolist() == ["missing", "missing", "stop", "stop"]
    asked = job(WORDS)
    ask([asked], parameters())
    capsys.readouterr()
    expected = answers(asked, ["probabilities"]).probabilities.tolist()
    assert answers(whole, ["probabilities"]).probabilities.tolist() == expected

    ask([whole], parameters())
    assert capsys.readouterr().err.count("so the model itself is asked") == 0


def test_what_a_model_was_not_asked_on_purpose_is_left_out_in_every_run(
    folders, monkeypatch, capsys
):
    """Another model has recorded its prompts. A new prompt of such a job is left out, too."""
    record(folders, WORDS[:1])
    record(folders, WORDS[:3], name="other")
    monkeypatch.setattr(weights, "available", lambda name: Path(SMALL))
    started = []
    monkeypatch.setattr(jobs, "make_engine", lambda *given: started.append(given))
    for words, n_left in ((WORDS[:3], 2), (WORDS, 3)):
        partly = job(words, "recorded")
        capsys.readouterr()
        ask([partly], parameters(RUN="lab"))
        sentence = f"Small: {n_left} prompts are not recorded and are left out. To ask the model"
        assert sentence in capsys.readouterr().err
        assert answers(partly).finish_reason.tolist() == ["stop"] + ["missing"] * n_left
        assert plan([partly], parameters()).left.tolist() == [0]
        assert not partly.folder.exists()
    assert not started


@pytest.mark.parametrize(
    "notebook", ["10_empathy_gap", "20_biased_samaritan", "30_giebench", "40_stereomap"]
)
def test_no_notebook_asks_a_model_live_as_it_stands(notebook, monkeypatch):
    """The machine has all weights, and the notebook is run in JupyterLab."""
    monkeypatch.setattr(jobs, "RECORDINGS", RECORDINGS)
    monkeypatch.setattr(weights, "available", lambda name: Path(SMALL))
    monkeypatch.setattr(jobs, "make_engine", lambda job, options: pytest.fail(job.title))
    study = import_module(f"ingroup.{notebook[3:]}.answers")
    usual = study.Parameters.of(defaults(notebook))
    assert usual.RUN == "lab"
    ask([*study.jobs(usual), *study.written(usual)], usual)


def test_a_run_with_more_tokens_leaves_the_recorded_answers_as_they_are(folders, monkeypatch):
    free = Sampling(max_tokens=4)
    record(folders, WORDS, sampling=free)
    monkeypatch.setattr(weights, "available", lambda name: Path(SMALL))
    usual = job(WORDS, "recorded", sampling=free)
    before = answers(usual)
    ask([replace(usual, sampling=Sampling(max_tokens=8))], parameters())
    ask([usual], parameters())
    pd.testing.assert_frame_equal(answers(usual), before)


def test_prompts_without_weights_are_left_out_with_a_sentence(folders, capsys):
    record(folders, WORDS[:2])
    whole = job(WORDS, "recorded")
    ask([whole], parameters())
    assert (
        "2 prompts are not recorded and are left out. To ask them, type `make model` first.\n"
        in capsys.readouterr().err
    )
    assert answers(whole).finish_reason.tolist() == ["stop", "stop", "missing", "missing"]


def test_another_engine_asks_for_what_is_recorded(folders):
    record(folders, WORDS)
    assert set(answers(job(WORDS)).finish_reason) == {"missing"}


class Priced(Engine):
    """Answers with 80 tokens a prompt, in pieces of 256 as a server's engine does."""

    piece_size = 256
    n_asked = 0

    def identity(self):
        return {"engine": "inspect", "model": "m"}

    def answer(self, chats, sampling):
        Priced.n_asked += len(chats)
        return [Reply("no", prompt_tokens=50, output_tokens=30)] * len(chats)


def test_the_cost_limit_counts_what_is_stored_by_any_run(monkeypatch):
    monkeypatch.setattr(jobs, "make_engine", lambda *options: Priced())
    many = job(range(600), "inspect", "one notebook", Sampling())
    # 256 answers cost 2.048.
    limited = parameters(PRICE_IN=100, PRICE_OUT=100, COST_LIMIT=4.5)
    with pytest.raises(EngineError, match=r"COST_LIMIT=4\.5 stops this run, as 4\.096 is"):
        ask([many], limited)
    assert Priced.n_asked == 512

    with pytest.raises(EngineError, match=r"COST_LIMIT=4\.5"):
        ask([replace(many, study="another study")], limited)
    assert Priced.n_asked == 512
    ask([many], parameters())
    assert Priced.n_asked == 600


def test_a_limit_needs_prices():
    with pytest.raises(InputError, match="COST_LIMIT needs PRICE_IN and PRICE_OUT"):
        Parameters.of({"MODELS": [SMALL], "COST_LIMIT": 1})


def test_the_plan_counts_what_is_left(folders, monkeypatch):
    record(folders, WORDS[:2])
    assert plan([job(WORDS, "recorded")], parameters()).left.item() == 0  # there are no weights
    monkeypatch.setattr(weights, "available", lambda name: Path(SMALL))
    free = replace(job(WORDS, sampling=Sampling(max_tokens=10)), part="free")
    planned = plan([job(WORDS, "recorded"), free], parameters(PRICE_IN=2.0, PRICE_OUT=10.0))
    assert planned.prompts.tolist() == [4, 4]
    assert planned.left.tolist() == [2, 4]
    characters = sum(len(f"Do you feel {word}?") for word in WORDS)
    assert planned.prompt_tokens.iloc[1] == round(characters / 4)
    assert planned.reply_tokens.tolist() == [2, 40]
    assert planned.price.iloc[1] == pytest.approx((characters / 4 * 2 + 40 * 10) / 1e6)
    assert "price" not in plan([free], parameters())


def test_names_of_models_choose_their_engine():
    def engines(names, **changes):
        return [model.engine for model in Parameters(MODELS=names, **changes).models]

    assert engines("smollm2-135m-instruct; openai/gpt-5; google/gemma-3-4b-it") == [
        "recorded",
        "inspect",
        "transformers",
    ]
    assert engines("qwen/some-model@vllm") == ["vllm"]
    assert engines("qwen/some-model", ENGINE="vllm") == ["vllm"]
    with pytest.raises(InputError, match="expected name@engine"):
        Parameters.of({"MODELS": "a/b@telepathy"})
    with pytest.raises(InputError, match="names 'SmolLM2-135M' twice"):
        Parameters.of({"MODELS": "smollm2-135m-instruct;HuggingFaceTB/SmolLM2-135M-Instruct"})
    with pytest.raises(InputError, match=r"expected a name in data/models/models\.csv"):
        Parameters.of({"MODELS": "nobody"})


def test_jobs_of_a_model_share_its_engine_and_a_second_run_starts_none(monkeypatch):
    started = []
    make = jobs.make_engine

    def counted(*given):
        started.append(given[0].part)
        return make(*given)

    monkeypatch.setattr(jobs, "make_engine", counted)
    two = [job(WORDS, part="a"), job(WORDS[:2], part="b")]
    ask(two, parameters())
    ask(two, parameters())
    assert started == ["a"]


def test_replies_that_were_cut_are_asked_again_with_more_tokens():
    short = job(WORDS, sampling=Sampling(max_tokens=1, temperature=2.0))
    ask([short], parameters())
    assert "length" in set(answers(short).finish_reason)
    longer = replace(short, sampling=Sampling(max_tokens=64, temperature=2.0))
    ask([longer], parameters())
    assert longer.folder == short.folder
    assert set(answers(longer, ["max_tokens"]).max_tokens) == {64}
