"""What a plan counts is what a run asks: tokens, savings, shards, folders."""

import json
import math
import re
import tracemalloc
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

import ingroup.inference
from events import paper_size_events
from ingroup import corpora, paths
from ingroup.commands import plan
from ingroup.commands.parameters import merged
from ingroup.inference import Reply, Sampling, open_store, prefix
from ingroup.inference.prompts import Prompter
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials

NOTEBOOK = "10_empathy_gap"


@pytest.fixture(scope="module")
def prompter():
    return Prompter(AutoTokenizer.from_pretrained(paths.MODELS / "calibrant"))


@pytest.fixture(autouse=True)
def responses(tmp_path, monkeypatch):
    """An empty place for responses; tokens are counted on few trials, for speed."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(plan, "SAMPLE", 40)
    return tmp_path / "responses"


def parameters(**given):
    return merged(NOTEBOOK, "demo", {"CONTROL": ""} | given)


class Words:
    """Prompts whose tokens are the words of their text."""

    def ids(self, messages):
        return " ".join(message["content"] for message in messages).split()

    def identity(self):
        return {}


# ---- tokens ------------------------------------------------------------------------------------


def whole_blocks(prompts, size):
    """Tokens that a cache which forgets nothing saves: for each prompt the longest prefix in
    whole blocks that any earlier prompt has, leaving at least one token to compute."""
    seen, saved = set(), 0
    for ids in prompts:
        cuts = [tuple(ids[:end]) for end in range(size, len(ids), size)]
        saved += max([len(cut) for cut in cuts if cut in seen], default=0)
        seen.update(tuple(ids[:end]) for end in range(size, len(ids) + 1, size))
    return saved


def by_predecessor(prompts, size):
    return sum(
        prefix.savable(ids, before, size)
        for ids, before in zip(prompts, [[], *prompts], strict=False)
    )


def test_savable_by_hand():
    before = [1, 1, 2, 2, 3]
    assert prefix.savable([1, 1, 2, 2, 4], before, 2) == 4
    assert prefix.savable([1, 1, 2, 4], before, 2) == 2
    assert prefix.savable([1, 1, 2, 2], before, 2) == 2  # one token at least is computed
    assert prefix.savable([1, 3], before, 2) == prefix.savable([1, 1, 2], [], 2) == 0
    assert prefix.savable(list(range(40)), list(range(33))) == 32


PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), max_size=12)


@given(PROMPTS, st.integers(1, 3))
def test_the_predecessor_suffices_in_prefix_order_and_promises_too_much_in_none(prompts, size):
    assert by_predecessor(sorted(prompts), size) == whole_blocks(sorted(prompts), size)
    assert by_predecessor(prompts, size) <= whole_blocks(prompts, size)


@pytest.mark.parametrize("block_size", [1, 16])
def test_a_whole_block_is_counted_exactly(prompter, block_size):
    asked = empathy_gap_trials(corpora.load_events("sample", 12), ["P0,S0,T0"], ["Religion"])
    prompts = [prompter.ids(trial.messages) for trial in asked]
    rng = np.random.default_rng(0)
    counted = prefix.tokens(asked, prompter, len(asked) + 1, rng, block_size)
    assert counted["tokens"] == pytest.approx(sum(map(len, prompts)))
    assert counted["error"] == 0
    assert counted["saved"] == pytest.approx(by_predecessor(prompts, block_size))
    everything = whole_blocks(prompts, block_size)
    assert everything > 0.4 * sum(map(len, prompts))
    assert 0.99 * everything < counted["saved"] <= everything * (1 + 1e-12)


def test_the_error_is_the_spread_of_repeated_samples():
    trials = list(empathy_gap_trials(corpora.load_events("sample", 12), None, ["Religion"]))[:300]
    rng = np.random.default_rng(0)
    drawn = [prefix.tokens(trials, Words(), 100, rng, 16) for _ in range(300)]
    estimates = [counted["tokens"] for counted in drawn]
    exact = sum(len(Words().ids(trial.messages)) for trial in trials)
    error = np.mean([counted["error"] for counted in drawn])
    assert np.std(estimates) == pytest.approx(error, rel=0.12)
    assert np.mean(estimates) == pytest.approx(exact, abs=4 * error / math.sqrt(300))


def test_errors_of_rows_add_as_squares():
    rows = [
        plan.Row("a", 10, 6, 3, 2, tokens=100.0, error=3.0, saved=50.0),
        plan.Row("b", 20, 0, 5, 0, tokens=300.0, error=4.0, saved=70.0),
    ]
    assert plan.total(rows) == plan.Row("total", 30, 6, 8, 2, 400.0, 5.0, 120.0)
    unknown = plan.total([*rows, plan.Row("c", 1, 1, 1, 1)])
    assert unknown.trials == 31
    assert all(map(math.isnan, (unknown.tokens, unknown.error, unknown.saved)))


def test_every_setting_draws_its_own_trials():
    settings = ["P0,S0,T0", "P0,S1,T0"]  # as long as each other, with this tokenizer
    text = plan.plan(NOTEBOOK, parameters(SETTINGS=";".join(settings)))
    first, second = (re.search(rf"{name} .* (\S+ ± \S+)  +\d+%", text)[1] for name in settings)
    assert first != second


# ---- shards ------------------------------------------------------------------------------------


class Engine:
    """What pins the answers of transformers, without a model."""

    def __init__(self, prompter):
        self.prompter = prompter

    def identity(self):
        return {"engine": "transformers", "dtype": "float32", **self.prompter.identity()}


@pytest.fixture
def part(prompter, monkeypatch):
    """A part of 7,048 trials in shards of 1,000, three of which are stored."""
    monkeypatch.setattr(plan, "SHARD_SIZE", 1000)
    ((part,), _) = plan.empathy_gap(parameters(SETTINGS="P0,S0,T0"))
    store = open_store(part.folder, part.design, Engine(prompter), Sampling(), 1000)
    for shard in (0, 3, 7):
        first, stop = store.bounds(shard)
        store.write(shard, [Reply("50", "stop")] * (stop - first))
    for name in (".part-00001.parquet.9.tmp", "part-00001.parquet.damaged"):
        (part.folder / name).write_text("")
    (part.folder / "part-00003.again-1.parquet").write_text("")
    (part.folder / "part-00099.parquet").write_text("")
    return part


def counts(part, prompter):
    line, problem = plan.row(part, "transformers", prompter, 5, np.random.default_rng(0))
    return (line.trials, line.trials_to_do, line.shards, line.shards_to_do), problem


def test_a_half_done_store_is_counted_and_not_touched(part, prompter):
    def listing():
        return {file: file.stat().st_mtime_ns for file in part.folder.parent.rglob("*")}

    before = listing()
    assert counts(part, prompter) == ((7048, 5000, 8, 5), "")
    assert counts(part, None) == ((7048, 5000, 8, 5), "")
    assert listing() == before


def test_planning_makes_no_folder(responses):
    plan.plan(NOTEBOOK, parameters(SETTINGS="P0,S0,T0"))
    assert not responses.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chat_template": "0123"}, "holds answers with chat_template '0123', this run would ask"),
        ({"shard_size": 500}, "holds answers with shard_size 500, .* shard_size 1000 and be refu"),
        ({"prompts": "abc"}, "holds answers with prompts 'abc', this run"),
        ({"engine": "vllm"}, "holds answers with engine 'vllm', this run would .* 'transformers'"),
        ({"format": None}, "holds answers with format None, this run would ask with format"),
    ],
)
def test_a_store_of_something_else_is_said_so(part, prompter, change, message):
    file = part.folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    numbers, problem = counts(part, prompter)
    assert numbers == (7048, 7048, 8, 8)
    assert re.search(message, problem)
    assert str(part.folder) in problem
    assert "\n" not in problem


def test_what_is_not_known_yet_is_not_compared(part, prompter):
    file = part.folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"prompts": "abc"}))
    assert counts(part._replace(settled=False), prompter) == ((7048, 5000, 8, 5), "")


def test_a_store_without_a_readable_manifest_is_said_so(part, prompter):
    file = part.folder / "manifest.json"
    file.write_text("{")
    assert counts(part, prompter)[1] == f"{file} is not readable as JSON; move its folder away."
    file.unlink()
    numbers, problem = counts(part, prompter)
    assert numbers == (7048, 7048, 8, 8)
    assert problem == f"{part.folder} holds shards but no manifest.json; move it away."


# ---- the first study ---------------------------------------------------------------------------


def notebook_asks(values, tmp_path, monkeypatch):
    """Folder to design of every store that the notebook opens, its cells run one by one."""
    opened = {}

    class Silent:
        def close(self):
            pass

    replacements = {
        "make_engine": lambda *rest, **options: Silent(),
        "open_store": lambda folder, asked, *rest, **share: opened.update({folder: asked}),
        "generate": lambda *rest: [],
        "fill": lambda *rest: SimpleNamespace(trials=0),
        "with_rewrites": lambda events, replies: events.assign(
            third_person_text=events.first_person_text
        ),
    }
    for name, function in replacements.items():
        monkeypatch.setattr(ingroup.inference, name, function)
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    names = {}
    for cell in nbformat.read(paths.NOTEBOOKS / f"{NOTEBOOK}.ipynb", 4).cells:
        if cell.cell_type == "code" and "stores" not in names:
            exec(cell.source, names)
            if "parameters" in cell.metadata.get("tags", []):
                names |= values
    return opened


@pytest.mark.parametrize(
    ("changed", "lacks", "parts"),
    [
        ({"CONTROL": "calibrant-null"}, [], 8),
        ({"RATING": "expected", "ENGINE": "openai", "SETTINGS": "P1,S1,T1;P0,S0,T0"}, [], 2),
        ({}, ["third_person_text"], 6),
        ({}, ["third_person_text", "first_person_text"], 5),
        ({"REWRITER": "calibrant-null", "ENGINE": "vllm"}, ["third_person_text"], 8),
    ],
)
def test_the_plan_has_what_the_notebook_asks(changed, lacks, parts, tmp_path, monkeypatch):
    corpus = tmp_path / "my.words.tsv"
    corpora.load_events("sample", 12).drop(columns=lacks).to_csv(corpus, sep="\t", index=False)
    values = parameters(CORPUS=str(corpus), **changed)
    planned, notes = plan.empathy_gap(values)
    asked = notebook_asks(values, tmp_path, monkeypatch)
    assert {part.folder: len(part.design) for part in planned} == {
        folder: len(trials) for folder, trials in asked.items()
    }
    assert len(planned) == parts
    for part in planned:
        assert part.design.fingerprint == asked[part.folder].fingerprint
    unsettled = [part.name for part in planned if not part.settled]
    assert unsettled == (["P0,S0,T2"] if "REWRITER" in changed else [])
    assert len(notes) == bool(lacks)


def test_the_full_study_is_planned_in_constant_memory(monkeypatch):
    values, events = parameters(), paper_size_events()
    monkeypatch.setattr(corpora, "load_events", lambda *rest: events)
    monkeypatch.setattr(plan, "load_prompter", lambda *rest: Words())
    tracemalloc.start()
    text = plan.plan(NOTEBOOK, values)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 37_310_350  # two bytes a trial; 30 MiB, most of it the events in every block
    lines = text.split("\n")
    assert re.fullmatch(r"total  +37,310,350 .* 0  9,114  10 h 22 min", lines[8])
    assert lines[10].startswith("37,310,350 prompts are to be asked: 10 h 22 min at 1,000 prompts")


# ---- text --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.4, "under 1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3599.7, "1 h"),
        (6 * 3600 + 20 * 60 + 20, "6 h 20 min"),
        (86_399, "1 d"),
        (26 * 3600, "1 d 2 h"),
        (37_310_350 / 1000, "10 h 22 min"),
        (1_865_517, "21 d 14 h"),
    ],
)
def test_time_in_two_units(seconds, text):
    assert plan.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (4_742_123_456, 44_712_345, "4,742,000,000 ± 45,000,000"),
        (746_712, 1_893, "746,700 ± 1,900"),
        (1234.4, 7.6, "1,234 ± 8"),
        (1234.4, 0.0, "1,234 ± 0"),
    ],
)
def test_a_number_is_not_more_exact_than_its_error(value, error, text):
    assert plan.with_error(value, error) == text


def test_the_table_is_aligned_and_whole():
    rows = [
        plan.Row("m P0", 2_000, 1_000, 3, 1, tokens=200_000.0, error=2_000.0, saved=50_000.0),
        plan.Row("n P0", 10, 10, 1, 1),
    ]
    assert plan.table(rows, 10.0).split("\n") == [
        "       trials  tokens a prompt    prompt tokens  cache saves  shards done  to do"
        "  time to go",
        "m P0    2,000      100.0 ± 1.0  200,000 ± 2,000          25%            2      1"
        "  1 min 40 s",
        "n P0       10          unknown          unknown      unknown            0      1"
        "         1 s",
        "total   2,010          unknown          unknown      unknown            2      2"
        "  1 min 41 s",
    ]


def test_the_command_line_prints_a_plan(capsys):
    arguments = [NOTEBOOK, "--set", "SETTINGS=P0,S0,T0", "--set", "CONTROL="]
    assert plan.main(arguments) == 0
    head, first, total, empty, left, how = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"calibrant P0,S0,T0   7,048 .* ± .*%            0      2         7 s", first
    )
    assert (len(head), empty) == (len(total), "")
    assert left == (
        "7,048 prompts are to be asked: 7 s at 1,000 prompts a second (an assumption; "
        "RATE=<number> sets another)."
    )
    assert how.startswith("Tokens are counted on up to 40 random trials a line")
    assert plan.main([*arguments, "--rate", "0.5"]) == 0
    text = capsys.readouterr().out
    assert "7,048 prompts are to be asked: 3 h 55 min at 0.5 prompts a second.\n" in text


def test_what_is_stored_is_not_asked(part, capsys, monkeypatch):
    arguments = [NOTEBOOK, "--set", "SETTINGS=P0,S0,T0", "--set", "CONTROL="]
    assert plan.main(arguments) == 0
    assert "\n5,000 of 7,048 prompts are to be asked: 5 s at" in capsys.readouterr().out
    for shard in range(8):
        (part.folder / f"part-{shard:05d}.parquet").touch()
    assert plan.main(arguments) == 0
    assert "\nNothing is left to ask: all 8 shards are stored.\n" in capsys.readouterr().out
    (part.folder / "manifest.json").unlink()
    assert plan.main(arguments) == 0
    assert f"\n{part.folder} holds shards but no manifest.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ENGINE": "openai", "MODEL": "gpt-x"}, "with ENGINE=openai the server makes the tokens."),
        (
            {"ENGINE": "replay", "RECORDINGS": str(paths.DATA)},
            "with ENGINE=replay no model is asked.",
        ),
        (
            {"MODEL": "nobody/nothing"},
            "the model 'nobody/nothing' cannot be loaded, and there is .*",
        ),
    ],
)
def test_without_a_tokenizer_the_rest_is_planned(given, reason, capsys):
    pairs = [f"{name}={value}" for name, value in {"CONTROL": "", **given}.items()]
    assert plan.main([NOTEBOOK, *(word for pair in pairs for word in ("--set", pair))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"total  +49,336  +unknown  +unknown  +unknown +0 +14 +49 s", lines[8])
    assert lines[10].startswith("49,336 prompts are to be asked: 49 s at")
    assert [bool(re.fullmatch(f"Prompt tokens are unknown: {reason}", x)) for x in lines[11:]] == [
        True
    ]
    assert not lines[11].endswith("..")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rate", "fast"], "RATE must be a number, found 'fast'"),
        (["--rate", "0"], "RATE must be above 0 prompts a second, found '0'"),
        (["--rate", "nan"], "RATE must be above 0 prompts a second, found 'nan'"),
        (["--set", "N_EVENTS=x"], "N_EVENTS must be a whole number, found 'x'"),
        (["--profile", "fast"], "there is no PROFILE 'fast'; there are demo, full"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence, capsys):
    assert plan.main([NOTEBOOK, *arguments]) == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_what_cannot_be_asked_is_one_sentence(tmp_path, capsys):
    assert plan.main(["50_audit"]) == 2
    assert capsys.readouterr().err == "50_audit has no plan; there are plans for 10_empathy_gap\n"
    events = corpora.load_events("sample", 12)[["emotion", "text_id", "generated_text"]]
    events.to_csv(tmp_path / "few.tsv", sep="\t", index=False)
    arguments = [NOTEBOOK, "--set", f"CORPUS={tmp_path / 'few.tsv'}", "--set", "SETTINGS=P0,S0,T1"]
    assert plan.main([*arguments, "--set", "CONTROL="]) == 2
    assert capsys.readouterr().err == (
        "nothing is left to ask. This corpus lacks a form of the narrative; settings left: none.\n"
    )
    assert plan.main([*arguments, "--set", "REWRITER=calibrant"]) == 2
    assert "does not have the column 'first_person_text'" in capsys.readouterr().err
