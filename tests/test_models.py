"""The registry of models, and the calibrants: small, their tokenizers know what the studies say."""

from contextlib import suppress

import pandas as pd
import pytest
import yaml
from transformers import AutoTokenizer

import training
from ingroup import models, paths, published
from ingroup.inference import EngineError, make_engine
from ingroup.models import calibrants, find, is_calibrant, split_entry
from ingroup.tables import InputError

PEOPLE = {"Fiske et al. (2002)", "Cuddy et al. (2007)"}
ROWS = models.registry().rows


def printed_models():
    """The study and the name of every model in the printed tables."""
    models_of_studies = set()
    for file in paths.PUBLISHED.glob("*/*.csv"):
        table = pd.read_csv(file, dtype=str)
        for column in table.columns.intersection(["model", "source"]):
            names = set(table[column]) - PEOPLE
            models_of_studies |= {(file.parent.name, name) for name in names}
    return models_of_studies


PRINTED = printed_models()


def test_every_printed_model_has_its_row_and_every_row_is_printed():
    rows = set(zip(ROWS["study"], ROWS["printed"], strict=True))
    assert rows - {("", "")} == PRINTED
    for study, name in PRINTED:
        assert published.model_of(study, name) == name

    assert ROWS["name"].nunique() == 42
    for row in ROWS.itertuples():
        for spelling in (row.name, row.hub_id.upper(), row.printed.lower()):
            if spelling:
                assert find(spelling).name == row.name


SPELLINGS = {
    "mistral-large": ["mistral-large-latest", "mistralai/Mistral-Large-Instruct-2411"],
    "mistral-nemo": ["mistralai/mistral-nemo"],
    "gemini-1.5-flash": ["gemini-1.5-flash-002", "models/gemini-1.5-flash-latest"],
    "gpt-4o": ["gpt-4o-2024-08-06"],
    "gpt-4o-mini": ["openai/gpt-4o-mini-2024-07-18", "gpt-4o-mini"],
    "gpt-4-turbo": ["GPT-4-Turbo-2024-04-09", "gpt-4-turbo-preview", "gpt-4-0125-preview"],
    "gpt-3.5-turbo": ["gpt-3.5-turbo-0613", "GPT-3.5"],
    "text-davinci-003": ["text-davinci-003", "DAVINCI"],
    "claude-3.5-haiku": ["claude-3-5-haiku-20241022"],
    "claude-3.5-sonnet": ["anthropic/claude-3.5-sonnet"],
    "llama-3-8b": ["llama-3-8b"],
    "llama-3-70b": ["llama-3-70b"],
    "llama-3.1-8b": [
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "meta-llama/llama-3.1-8b-instruct",
        "weights/llama-3.1-8b",
    ],
    "llama-3.1-70b": ["build/models/Llama-3.1-70B-Instruct/"],
    "deepseek-r1": ["deepseek-ai/DeepSeek-R1"],
    "smollm2-135m-instruct": ["HuggingFaceTB/SmolLM2-135M-Instruct"],
    "gemma-3-270m": ["google/gemma-3-270m"],
    "qwen2.5-coder-1.5b-instruct": ["Qwen/Qwen2.5-Coder-1.5B-Instruct"],
    "calibrant": ["data/models/calibrant", " Calibrant "],
    "calibrant-null": ["calibrant-null"],
    "qwen-2-7b": ["Qwen/Qwen2-7B-Instruct"],
    # sister models, base models, and no name at all
    None: [
        "gemini-1.5-flash-8b-001",
        "gpt-4o-audio-preview",
        "gpt-4-0613",
        "gpt-3.5-turbo-instruct",
        "text-davinci-002",
        "davinci-002",
        "claude-3-7-sonnet-20250219",
        "google/gemma-2b",
        "meta-llama/Llama-3.1-8B",
        "google/gemma-3-270m-it",
        "HuggingFaceTB/SmolLM2-135M",
        "Qwen/Qwen2-7B",
        "-latest",
        "/",
        "",
    ],
}


NAMES = {}
for name, texts in SPELLINGS.items():
    NAMES |= dict.fromkeys(texts, name)


@pytest.mark.parametrize("text", NAMES)
def test_a_model_is_found_by_its_dated_forms_and_never_for_its_sister(text):
    model = find(text)

    name = None if model is None else model.name
    assert name == NAMES[text]


@pytest.mark.parametrize(
    ("requested", "served", "expected"),
    [
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18", True),
        ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", True),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini", True),
        ("openai-api/local/claude-3.5-haiku", "claude-3-5-haiku-20241022", True),
        ("gpt-4o", "gpt-4o-2024-11-20", True),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", False),
        ("gpt-4-1106-preview", "gpt-4-0125-preview", False),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o", "gpt-4o-audio-preview", False),
        ("gemma-2b", "google/gemma-2b", False),
        ("own/model", "own/model", True),
        ("openai-api/local/own/model", "own/model", True),
        ("openai/Own-Model", "own-model", True),
        ("own/model", "other/model", False),
        ("own-model", "del", False),
        ("own-model", "own-model-0324", True),
        ("", "own-model", False),
    ],
)
def test_a_dated_alias_is_the_same_model_and_another_date_is_not(requested, served, expected):
    assert models.is_same_checkpoint(requested, served) is expected


@pytest.mark.parametrize(
    ("relation", "texts"),
    [
        ("is a later", ["gpt-4o-2024-11-20", "openai/gpt-4o-2025-01-01"]),
        ("is an earlier", ["gpt-4o-2024-05-13", "claude-3-5-sonnet-20240620"]),
        (
            "is another",
            [
                "deepseek-ai/DeepSeek-V3-0324",
                "DeepSeek-R1-0528",
                "mistral-large-2411",
                "gemini-1.5-flash-001",
            ],
        ),
        ("may be another", ["mistral-large-latest", "gpt-3.5-turbo-0613", "gpt-4-turbo-preview"]),
    ],
)
def test_another_checkpoint_than_the_papers_is_one_sentence(relation, texts):
    for text in texts:
        assert find(text)
        sentence = models.checkpoint_caution(text)
        name = text.split("/")[-1]
        assert sentence.startswith(f"{name} {relation} checkpoint than the paper's: ")
        assert sentence.endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        "gpt-4o",
        "gpt-4o-2024-08-06",
        "openai/gpt-4o-mini-2024-07-18",
        "deepseek-ai/DeepSeek-V3",
        "mistral-large-2407",
        "mistralai/Mistral-Nemo-Instruct-2407",
        "claude-3-5-haiku-20241022",
        "gpt-4-0125-preview",
        "gpt-4-turbo-2024-04-09",
        "gemini-1.5-flash-002",
        "calibrant",
        "nobody/knows-2024-01-01",
        "",
    ],
)
def test_the_papers_own_checkpoint_and_an_unknown_name_say_nothing(text):
    assert models.checkpoint_caution(text) == ""


REASON = """o1 openai/o1-mini o3-2025-04-16 o4-mini gpt-5 openai/gpt-5-mini-2025-08-07 GPT-5.1
    openai/gpt-oss-20b gpt-oss:120b deepseek-ai/DeepSeek-R1 deepseek-reasoner deepseek-r1:7b
    deepseek-ai/DeepSeek-R1-Distill-Qwen-7B Qwen/QwQ-32B Qwen/Qwen3-8B ollama/qwen3:4b
    Qwen/Qwen3-4B-Thinking-2507 mistralai/Magistral-Small-2506 google/gemini-2.5-pro
    gemini-2.5-flash gemini-3-pro-preview grok/grok-3-mini grok-4-0709 grok-4-fast-reasoning
    microsoft/Phi-4-reasoning-plus microsoft/Phi-4-mini-reasoning
    nvidia/NVIDIA-Nemotron-Nano-9B-v2 zai-org/GLM-4.5-Air kimi-k2-thinking
    openai-api/local/Qwen/Qwen3-0.6B build/models/Qwen3-8B/ claude-opus-4-7 claude-opus-4.8
    anthropic/claude-sonnet-5 claude-haiku-5-5 claude-opus-5-20260601 claude-mythos-preview"""
ANSWER = """gpt-4o openai/gpt-4o-mini-2024-07-18 gpt-4.1 gpt-3.5-turbo gpt-5-chat-latest
    gpt-5.1-chat-latest Qwen/Qwen2.5-7B-Instruct qwen2.5-coder-1.5b-instruct gemma-3-270m
    google/gemma-3-27b-it HuggingFaceTB/SmolLM2-135M-Instruct calibrant calibrant-null
    Qwen/Qwen3-4B-Instruct-2507 Qwen/Qwen3-Coder-30B-A3B-Instruct Qwen/Qwen3-8B-Base
    anthropic/claude-sonnet-4-5 claude-3-5-haiku-20241022 claude-opus-4-6
    claude-sonnet-4-20250514 claude-3-7-sonnet-20250219 anthropic/claude-haiku-4.5
    meta-llama/Llama-3.1-8B-Instruct
    mistralai/Mistral-7B-Instruct-v0.3 gemini-1.5-flash gemini-2.0-flash gemini-2.5-flash-lite
    grok-3 grok-4-fast-non-reasoning microsoft/phi-4 deepseek-ai/DeepSeek-V3 deepseek-chat
    nvidia/Llama-3.1-Nemotron-70B-Instruct-HF 01-ai/Yi-1.5-34B-Chat ollama/llama3.2 o1ympic
    pro1-large"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [(name, True) for name in REASON.split()] + [(name, False) for name in ANSWER.split()],
)
def test_models_that_reason_before_they_answer_are_known_by_their_family(name, expected):
    assert models.is_reasoning_model(name) is expected
    assert models.is_reasoning_model(f"openai-api/any/{name.upper()}") is expected


def test_every_family_says_why_and_none_is_listed_twice():
    families = yaml.safe_load((paths.MODELS / "reasoning.yaml").read_text("utf8"))
    patterns = [family["pattern"] for family in families]
    assert len(set(patterns)) == len(patterns)
    for family in families:
        assert family["why"].strip()


def test_the_registry_has_engine_reading_and_access_of_a_model():
    null = find("calibrant-null")
    assert null.control
    assert null.engine == "transformers"
    assert null.reading == "free"
    assert null.access == "open"

    real = find("smollm2-135m-instruct")
    assert not real.control
    assert real.engine == "stored"
    assert real.reading == "expected"

    assert find("llama-3-8b").engine == "vllm"
    assert find("yi-large")[:5] == ("yi-large", "Yi-large", "Yi", "closed", "")
    assert set(models.local_models()) <= set(ROWS["name"])


def test_closed_models_are_asked_of_servers_and_packaged_ones_read_as_means():
    controls = ROWS[ROWS["control"] == "yes"]
    assert set(controls["name"]) == {"calibrant-null"}
    expected = ROWS[ROWS["reading"] == "expected"]
    assert set(expected["name"]) == set(models.packaged_models())

    for row in ROWS.itertuples():
        is_closed = row.access == "closed"
        has_no_weights = not row.hub_id and not is_calibrant(row.name)
        assert (row.engine == "inspect") == is_closed
        assert has_no_weights == is_closed


def test_printed_sampling_is_that_of_table_5():
    table = published.load("biased_samaritan", 5).set_index("model")
    of_study = ROWS[ROWS["study"] == "biased_samaritan"].set_index("printed")
    rows = of_study.loc[table.index]
    for name in ("temperature", "top_p"):
        assert list(rows[name]) == list(table[f"{name}_printed"])


@pytest.mark.parametrize(
    ("study", "model", "temperature", "top_p"),
    [
        ("biased_samaritan", "claude-3-5-haiku-20241022", 1, 0.999),
        ("biased_samaritan", "mistral-large-latest", 0.7, 1),
        ("biased_samaritan", "deepseek-ai/DeepSeek-R1", 1, 1),
        ("biased_samaritan", "calibrant", 1, 1),
        ("biased_samaritan", "nobody/knows-it", 1, 1),
        ("stereomap", "text-davinci-003", 0.5, 1),
        ("stereomap", "gpt-3.5-turbo", 1, 1),
        ("giebench", "mistral-7b", 1, 1),
        ("empathy_gap", "mistral-7b", 0, 1),
    ],
)
def test_a_model_is_sampled_as_the_paper_says(study, model, temperature, top_p):
    assert published.sampling(study, model) == {"temperature": temperature, "top_p": top_p}


@pytest.mark.parametrize(
    ("text", "model", "engine"),
    [
        ("calibrant", "calibrant", "transformers"),
        ("calibrant@vllm", "calibrant", "vllm"),
        (" smollm2-135m-instruct ", "smollm2-135m-instruct", "stored"),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06", "inspect"),
        ("Qwen/Qwen2-7B-Instruct", "Qwen/Qwen2-7B-Instruct", "vllm"),
        ("deepseek-r1 @ openai", "deepseek-r1", "inspect"),
        ("my/own-model", "my/own-model", "transformers"),
        ("a@folder/own-model", "a@folder/own-model", "transformers"),
    ],
)
def test_an_entry_of_models_is_a_model_and_its_engine(text, model, engine):
    assert split_entry(text) == (model, engine)


def test_recordings_have_a_place_for_each_model():
    """By any of a model's names; a place of one model may hold the mark itself."""
    several = " gpt-4-turbo-2024-04-09 = a/b*; own model=c/t=0.csv ;"
    assert models.recorded_place(several, "openai/gpt-4-turbo") == "a/b*"
    assert models.recorded_place(several, "own model") == "c/t=0.csv"
    assert models.recorded_place(several, "gpt-4o") == ""
    assert models.recorded_place("results/temperature=0", "gpt-4o") == "results/temperature=0"
    assert models.recorded_place("gpt-4o=results/*", "gpt-4o") == "results/*"
    assert models.recorded_place("gpt-4o=results/*", "calibrant") == ""


def test_a_model_that_is_only_read_says_so():
    entries = ["a@stored", " b @ stored ", "c", "d@vllm", "a b/d@e@stored", "stored"]
    assert models.read_only_models(entries) == {"a", "b", "a b/d@e"}


@pytest.mark.parametrize("text", ["calibrant@gpu", "calibrant@", "@vllm", "", " @ ", "a@VLLM"])
def test_an_unknown_engine_or_an_empty_name_is_one_sentence(text):
    with pytest.raises(InputError, match=r"^MODELS: found .*, expected a name, or name@engine.*"):
        split_entry(text)


def test_the_engines_are_those_that_can_be_made_and_stored():
    for name in models.ENGINES[:-1]:
        with suppress(EngineError):  # as far as its own library or key
            make_engine(name, "calibrant", recordings="none")
    with pytest.raises(ValueError, match="'stored' is unknown; expected transformers, vllm"):
        make_engine(models.ENGINES[-1], "calibrant")


@pytest.mark.parametrize(
    ("line", "column", "cell", "message"),
    [
        (2, "name", "Calibrant", "line 2, column 'name': found 'Calibrant', expected a name"),
        (3, "access", "free", "line 3, column 'access': found 'free', expected open or closed"),
        (3, "engine", "gpu", "line 3, column 'engine': found 'gpu', expected one of transf"),
        (4, "reading", "", "line 4, column 'reading': found '', expected free, greedy or exp"),
        (4, "control", "no", "line 4, column 'control': found 'no', expected yes or nothing"),
        (5, "top_p", "high", "line 5, column 'top_p': found 'high', expected a number, or"),
        (3, "name", "calibrant", "line 3: found name 'calibrant', study '' again, expected it o"),
        (8, "label", "Other", "line 8, column 'name': found 'gpt-3.5-turbo' with other facts ab"),
        (9, "ids", "bard", "line 9, column 'ids': found 'bard' with other facts above, expected"),
    ],
)
def test_a_malformed_row_is_one_sentence(tmp_path, line, column, cell, message):
    rows = pd.read_csv(paths.MODELS / "models.csv", dtype=str, keep_default_na=False)
    rows.loc[line - 2, column] = cell
    rows.to_csv(tmp_path / "models.csv", index=False)
    with pytest.raises(InputError) as problem:
        models.registry(tmp_path / "models.csv")
    assert message in str(problem.value)
    assert str(tmp_path / "models.csv") in str(problem.value)


def test_a_registry_without_a_column_is_one_sentence(tmp_path):
    (tmp_path / "models.csv").write_text("name,study\ncalibrant,\n", "utf8")
    with pytest.raises(
        InputError, match=r"models\.csv, line 1: the column 'label' is missing, found name"
    ):
        models.registry(tmp_path / "models.csv")


@pytest.mark.parametrize("name", calibrants())
def test_the_models_are_small_and_say_what_they_are(name):
    folder = paths.MODELS / name
    files = [file for file in folder.iterdir() if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    assert size < 6_000_000
    assert not [file for file in files if file.suffix in (".bin", ".pt", ".pkl")]
    assert is_calibrant(name)
    assert not is_calibrant("meta-llama/Llama-3.1-8B-Instruct")
    assert "demonstration" in (folder / "README.md").read_text("utf8")


def test_numbers_of_the_scale_and_words_of_every_study_are_single_tokens():
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")
    texts = [*map(str, range(101)), " Hindu", " geriatric", " supermarket", " Palestine"]

    ids = tokenizer(texts, add_special_tokens=False).input_ids

    assert {len(tokens) for tokens in ids} == {1}
    first_tokens = {tokens[0] for tokens in ids}
    assert len(first_tokens) == len(texts)


def test_every_study_is_in_the_training_of_each_model():
    for phases in training.PHASES.values():
        studies = set()
        for phase in phases:
            studies |= set(phase.shares)
        assert studies == set(training.STUDIES)
