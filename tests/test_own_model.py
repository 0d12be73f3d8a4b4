"""A model of one's own is a folder: its name goes into tables, and its place stays here."""

import hashlib

import pandas as pd
import pytest

from ingroup import figures, models, paths
from ingroup.commands.run_parameters import merged_parameters
from ingroup.inference import Job, Reply, Sampling, StoreError, ask, job, stored
from ingroup.inference.job import rated_by
from ingroup.tables import InputError
from toy import Toy, numbers
from weights import NO_TENSORS

TEXT = Sampling()


@pytest.fixture
def net(tmp_path):
    """The folder of a model."""
    folder = tmp_path / "my nets" / "net_2"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "name", ["calibrant", "org/name", "openai/gpt-4o", "org/name@vllm", "an@unknown", "all"]
)
def test_a_name_that_is_no_folder_stays(name):
    assert models.without_place(name) == name


def test_a_folder_is_named_by_its_last_part(net, monkeypatch):
    assert models.without_place(str(net)) == "net_2"
    assert models.without_place(f"{net}/") == "net_2"
    assert models.without_place(f"{net}@transformers") == "net_2@transformers"
    assert models.without_place("/gone/net_2") == "net_2"
    monkeypatch.chdir(net.parents[1])
    assert models.without_place("my nets/net_2") == "net_2"


def test_a_table_names_a_folder_without_its_place(net, tmp_path):
    index = pd.MultiIndex.from_tuples([(str(net), "ID"), ("all", "")], names=["model", "plan"])
    figures.write_table(pd.DataFrame({"n": [1, 2]}, index=index), tmp_path, "usage", index=True)
    assert (tmp_path / "usage.csv").read_text() == "model,plan,n\nnet_2,ID,1\nall,,2\n"

    pair = {"model": [f"{net}@vllm", None], "other_model": ["org/name", str(net)]}
    figures.write_table(pd.DataFrame(pair), tmp_path, "differences")
    written = (tmp_path / "differences.csv").read_text()
    assert written == "model,other_model\nnet_2@vllm,org/name\n,net_2\n"


def test_a_figure_of_some_models_finds_a_folder_in_a_table(net, tmp_path, monkeypatch):
    table = pd.DataFrame({"model": [str(net), "other"], "n": [1, 2]})
    figures.write_table(table, tmp_path, "counts")
    monkeypatch.setitem(figures.OPTIONS_GIVEN, "models", str(net))
    assert figures.read_table(tmp_path, "counts").n.tolist() == [1]


def test_a_job_is_named_as_tables_are_and_asks_the_folder(net, monkeypatch, tmp_path):
    """Its address has a checksum of the whole place, so two folders never share answers."""
    for name in ("RESPONSES", "RECORDINGS", "MADE"):
        monkeypatch.setattr(paths, name, tmp_path / name)
    asked = []

    def engine(name, model, **options):
        asked.append(model)
        return Toy(lambda *_: Reply("1", "stop", 10, 4, 1), engine=name, model=net.name)

    monkeypatch.setattr(job, "make_engine", engine)
    one = Job("giebench", "sample", str(net), "toy", "ID", numbers(4), TEXT, {"plan": "ID"})
    other = Job("giebench", "sample", "org/name", "toy", "ID", numbers(4), TEXT, {"plan": "ID"})
    assert one.key == ("net_2", "ID")
    assert one.title == "net_2 ID"
    checksum = hashlib.sha256(str(net).encode()).hexdigest()[:10]
    assert one.address.parts == ("giebench", "sample", f"net_2-{checksum}@toy", "ID")
    with pytest.raises(StoreError, match=rf"^giebench/sample/net_2-{checksum}@toy/ID holds no "):
        stored(one)
    assert ask([one], {}) == [one]
    assert asked == [str(net)]
    assert rated_by(str(net), [one, other]) == [one]
    assert rated_by("net_2", [one, other]) == [one]


def test_answers_of_a_folder_have_one_address_however_its_path_is_written(net, monkeypatch):
    address = models.answer_folder(str(net))
    monkeypatch.chdir(net.parent)
    for path in (f"{net}/", "../my nets/net_2", f"{net.parent}/./net_2"):
        assert models.answer_folder(path) == address
    assert models.answer_folder(str(net.with_name("net_3"))) != address

    for name in ("calibrant", "org/name", "openai/gpt-4o"):
        assert models.answer_folder(name) == name


def test_a_folder_without_tensors_is_refused_before_anything_runs(net):
    (net / "config.json").write_text("{}")
    (net / "pytorch_model.bin").touch()
    (net / "older").mkdir()
    (net / "older" / "model.safetensors").touch()

    sentence = f"MODELS: the folder '{net}' has a config.json and no weights: expected model.safe"
    with pytest.raises(InputError, match=f"^{sentence}tensors, or several files that end in"):
        merged_parameters("30_giebench", "demo", {"MODELS": str(net)})

    (net / "model-00001-of-00002.safetensors").write_bytes(NO_TENSORS)
    (net / "tokenizer.json").touch()
    (net / "chat_template.jinja").touch()
    parameters = merged_parameters("30_giebench", "demo", {"MODELS": str(net)})
    assert parameters["MODELS"] == [str(net)]


@pytest.mark.parametrize("file", ["tokenizer.model", "vocab.txt", "tekken.json"])
def test_a_folder_without_tokenizer_or_with_half_a_configuration_is_refused(net, file):
    (net / "config.json").write_text('{"model_type": ')
    (net / "model.safetensors").write_bytes(NO_TENSORS)
    with pytest.raises(
        InputError, match=f"^MODELS: the folder '{net}' has no tokenizer: expected "
    ):
        merged_parameters("30_giebench", "demo", {"MODELS": str(net)})

    (net / file).touch()
    with pytest.raises(InputError, match=r"config.json, line 1, column 16: found a mistake"):
        merged_parameters("30_giebench", "demo", {"MODELS": str(net)})


def test_a_folder_without_a_chat_template_is_refused(net):
    (net / "config.json").write_text("{}")
    (net / "model.safetensors").write_bytes(NO_TENSORS)
    settings = net / "tokenizer_config.json"
    settings.write_text('{"model_max_length": 2048}')
    with pytest.raises(
        InputError, match=f"^MODELS: the folder '{net}' has no chat template: an instruct"
    ):
        merged_parameters("30_giebench", "demo", {"MODELS": str(net)})
    assert merged_parameters("30_giebench", "demo", {"MODELS": str(net), "TEMPLATE": "none"})

    settings.write_text('{"chat_template": "{{ messages }}"}')
    assert merged_parameters("30_giebench", "demo", {"MODELS": str(net)})["MODELS"] == [str(net)]


@pytest.mark.parametrize("length", [0, 4, 100, -1])
def test_weights_that_were_cut_are_refused_by_name_before_anything_runs(net, length):
    calibrant = paths.MODELS / "calibrant"
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (calibrant / name).exists():
            (net / name).write_bytes((calibrant / name).read_bytes())
    whole = (calibrant / "model.safetensors").read_bytes()
    (net / "model-00001-of-00002.safetensors").write_bytes(whole)
    second = net / "model-00002-of-00002.safetensors"
    second.write_bytes(whole[:length])

    for notebook in ("10_empathy_gap", "30_giebench"):
        with pytest.raises(InputError) as refused:
            merged_parameters(notebook, "demo", {"MODELS": str(net)})
        size = second.stat().st_size
        sentence = f"MODELS: the weights in '{second}' are not whole: found {size:,} bytes ("
        assert str(refused.value).startswith(sentence)
        assert str(refused.value).endswith("); copy or fetch this file again")

    second.write_bytes(whole)
    assert merged_parameters("30_giebench", "demo", {"MODELS": str(net)})["MODELS"] == [str(net)]


def test_a_folder_with_an_adapter_alone_says_what_to_do_with_it(net):
    (net / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    sentence = (
        f"^MODELS: the folder '{net}' has an adapter alone: merge it into the model that it was "
    )
    with pytest.raises(InputError, match=sentence):
        merged_parameters("30_giebench", "demo", {"MODELS": str(net)})


def test_two_folders_with_one_name_are_refused_and_told_apart_from_one_model_twice(net, tmp_path):
    other = tmp_path / "older" / "net_2"
    other.mkdir(parents=True)
    for folder in (net, other):
        (folder / "config.json").write_text("{}")

    with pytest.raises(InputError, match=r"^MODELS has two folders called 'net_2', which tables"):
        merged_parameters("30_giebench", "demo", {"MODELS": f"{net};{other}"})
    with pytest.raises(InputError, match=r"^MODELS names 'net_2' twice, expected each model once"):
        merged_parameters("30_giebench", "demo", {"MODELS": f"{net}@vllm;{net}/@transformers"})
