"""What `make ask` stores is what the notebook would ask."""

import pytest

from ingroup import paths
from ingroup.commands import run
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import EngineError, Reply, answered_jobs, count_stored, job
from ingroup.inference.cost import shared_budget
from ingroup.tables import InputError
from toy import Server, Toy

GIVEN = ["--ask", "30_giebench", "--set", "MODELS=calibrant", "--set", "MISMATCH=false"]


@pytest.fixture
def engines(tmp_path, only_real_recordings, monkeypatch):
    """The arguments with which engines were made; each answers [[A]]."""
    shared_budget.cache_clear()  # each test is a run of its own
    arguments = []

    def make(*given, **_):
        arguments.append(given)
        return Toy(lambda *_: "[[A]]")

    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(job, "make_engine", make)
    return arguments


def test_a_study_is_asked_once_without_its_notebook(engines, capsys):
    assert run.main(GIVEN) == 0
    assert engines == [("transformers", "calibrant")]
    assert capsys.readouterr().out == (
        "948 of 948 prompts are answered and stored, 0 failed\n"
        "this run took 9,480 prompt tokens and 948 reply tokens\n"
    )
    stored = [file.parent.name for file in paths.RESPONSES.rglob("part-00000.parquet")]
    assert sorted(stored) == ["COT-rotate", "ID-rotate", "Raw-rotate+uncued"]


def test_failed_prompts_are_not_counted_as_answered(engines, capsys, monkeypatch):
    toy = Toy(lambda chat, again, before: None if before < 100 else "[[A]]")
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: toy)

    assert run.main(GIVEN) == 0

    first_line, *_ = capsys.readouterr().out.splitlines()
    assert first_line == "848 of 948 prompts are answered and stored, 100 failed"


# ---- what a server's replies cost ----------------------------------------------------------------


@pytest.fixture
def server(engines, monkeypatch):
    """Each reply took 200 prompt tokens and 100 reply tokens."""
    reply = Reply("[[A]]", "stop", 200, 0, 100)
    engine = Server(lambda *_: reply, asks_again=True, engine="inspect")
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: engine)
    return engine


def given(**more):
    """The parameters of a run that asks 948 prompts of a server, at 2 and 10 for a million."""
    typed = {
        "MODELS": "m@openai",
        "MISMATCH": "false",
        "MAX_TOKENS": "100",
        "PRICE_IN": "2",
        "PRICE_OUT": "10",
    }
    return merged_parameters("30_giebench", "demo", typed) | more


def last_line(**more):
    """The last line that a run with these parameters prints."""
    return run.ask_notebook("30_giebench", given(**more)).splitlines()[-1]


def test_the_last_line_has_what_a_server_cost(server):
    """One prompt costs 0.0014; a second run of the same asks nothing, and costs nothing."""
    assert last_line() == (
        "this run took 189,600 prompt tokens and 94,800 reply tokens, and cost 1.33; all that is "
        "stored cost 1.33"
    )

    shared_budget.cache_clear()
    assert last_line() == (
        "this run took 0 prompt tokens and 0 reply tokens, and cost 0.00; all that is stored "
        "cost 1.33"
    )


def test_without_prices_the_line_says_so(server):
    assert last_line(PRICE_IN=0.0, PRICE_OUT=0.0) == (
        "this run took 189,600 prompt tokens and 94,800 reply tokens; prices not given: set "
        "PRICE_IN and PRICE_OUT (per million tokens)"
    )


def test_a_limit_stops_a_run_over_all_its_jobs_and_a_higher_one_goes_on(server):
    """Of 1.3272 that the whole run costs; stored replies of the first are not counted again."""
    first = given(COST_LIMIT=1.0)
    with pytest.raises(EngineError) as caught:
        run.ask_notebook("30_giebench", first)

    stored = count_stored(jobs_of("30_giebench", first))
    assert sum(server.batches) == stored
    assert server.asked["all"] == stored
    cost = stored * 0.0014
    assert 1.0 - 2 * 0.0014 < cost <= 1.0

    sentence = str(caught.value)
    assert sentence.startswith(
        f"COST_LIMIT=1 stops this run: {cost:.4f} spent, and a further call "
    )
    assert sentence.endswith(
        f"; {stored:,} replies are stored, which cost {cost:.4f} in all runs, and the same command "
        "with a higher COST_LIMIT goes on"
    )

    line = last_line(COST_LIMIT=1.2)
    assert server.asked["all"] == 948
    cost_of_rest = (948 - stored) * 0.0014
    assert line.endswith(f"cost {cost_of_rest:.4f}; all that is stored cost 1.33")


def test_a_limit_without_prices_starts_nothing(server, monkeypatch, capsys):
    unpriced = given(COST_LIMIT=5.0, PRICE_IN=0.0)
    with pytest.raises(InputError, match="COST_LIMIT needs the prices of a million tokens: set "):
        run.ask_notebook("30_giebench", unpriced)

    monkeypatch.setattr(run, "parameters_of", lambda *_: unpriced)
    assert run.main(GIVEN) == 2
    assert capsys.readouterr().err.startswith("COST_LIMIT needs the prices of a million tokens")
    assert server.asked["all"] == 0


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [["--ask"], []])
def test_a_missing_key_is_reported_before_anything_is_made(more, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(run, "execute", None)  # no kernel is started

    assert run.main(["10_empathy_gap", "--set", "MODELS=some@inspect", *more]) == 2

    assert capsys.readouterr().err.startswith("openai/some: ")


def test_a_mistake_is_one_sentence(engines, capsys):
    assert run.main([*GIVEN, "--set", "ORDER=any"]) == 2
    assert capsys.readouterr().err == "ORDER 'any' is unknown; expected given or rotate\n"
    assert engines == []
    assert answered_jobs([]) == []
