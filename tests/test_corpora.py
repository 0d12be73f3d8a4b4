"""The corpora: fetched from a site or a mirror, and verified by hash."""

import errno
import hashlib
import re
import shutil
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from ingroup import corpora, paths
from ingroup.corpora import CORPORA, fetch
from ingroup.studies.empathy_gap.stimuli import EMOTIONS
from ingroup.tables import InputError

CONTENTS = {"one.tsv": b"first file\n", "two words.tsv": b"second file\n"}
SHA256 = {  # sha256sum's
    "one.tsv": "7ca46ed8705ae80e983715aa2d60e4c49c87465c9d9467cafddf02bfadf6fc77",
    "two words.tsv": hashlib.sha256(CONTENTS["two words.tsv"]).hexdigest(),
}
BLOBS = {"data/a.json": b"{}\n", "results/a.json": b""}
BLOBS["results/b.json"] = "caf\u00e9 \u2028\r\n".encode() * 1000
IDS = {  # git hash-object's
    "data/a.json": "0967ef424bce6791893e9a57bb952f80fd536e93",
    "results/a.json": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "results/b.json": "916e18b3108e2ab5c8d657b237ee2eb5b6a47aff",
}


def register(monkeypatch, address: str) -> None:
    """Two corpora, one known by SHA-256 and one by git's ids."""
    tiny = {name: f"sha256:{hash_}" for name, hash_ in SHA256.items()}
    blobs = {name: f"git:{id_}" for name, id_ in IDS.items()}
    registry = {
        "tiny": SimpleNamespace(address=address, files=tiny, needed_by="CORPUS=tiny (notebook 10)"),
        "blobs": SimpleNamespace(address=address, files=blobs, needed_by=""),
    }
    monkeypatch.setattr(corpora, "CORPORA", registry)


@pytest.fixture(autouse=True)
def raw(tmp_path, monkeypatch) -> Path:
    """Where fetched files go."""
    monkeypatch.setattr(paths, "RAW", tmp_path / "raw")
    return tmp_path / "raw"


@pytest.fixture
def mirror(tmp_path, monkeypatch) -> Path:
    """A good mirror of the tiny corpus, whose own address refuses every connection."""
    register(monkeypatch, "http://127.0.0.1:1")
    folder = tmp_path / "mirror"
    for corpus, contents in (("tiny", CONTENTS), ("blobs", BLOBS)):
        for name, content in contents.items():
            file = folder / corpus / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return folder


def contents_of(folder: Path) -> dict[str, bytes]:
    """What lies below the folder of a corpus, by its name in the registry; no folder is left."""
    assert not list(folder.rglob("tmp*"))

    contents = {}
    for file in folder.glob("*/**/*"):
        if file.is_file():
            _, *parts = file.relative_to(folder).parts
            contents["/".join(parts)] = file.read_bytes()
    return contents


def test_the_registry_pins_a_commit_and_a_hash_for_each_file():
    events = sorted(CORPORA["crowd-envent"].files)
    assert events == [f"crowd-enVent_{emotion}.tsv" for emotion in EMOTIONS]
    assert list(CORPORA["giebench"].files) == [
        "data/COT-Prompt.json",
        "data/ID-Prompt.json",
        "data/Raw-Prompt.json",
        "results/GPT-4-COT-Prompt.json",
        "results/GPT-4-ID-Prompt.json",
        "results/GPT-4-Raw-Prompt.json",
        "results/Qwen-1.5-110b-COT-Prompt.json",
        "results/Qwen-1.5-110b-ID-Prompt.json",
        "results/Qwen-1.5-110b-Raw-Prompt.json",
    ]
    assert list(CORPORA["stereotype-content-dictionary"].files) == ["Full Dictionaries.csv"]

    for corpus in CORPORA.values():
        assert re.search(r"/[0-9a-f]{40}(/|$)", corpus.address)
        digests = corpus.files.values()
        for digest in digests:
            assert re.fullmatch("sha256:[0-9a-f]{64}|git:[0-9a-f]{40}", digest)
        assert len(set(digests)) == len(digests)


def test_fetch_copies_from_a_mirror_and_leaves_alone_what_is_there(mirror, raw):
    files = fetch("tiny", mirror)
    assert files == [raw / "tiny" / name for name in CONTENTS]
    assert contents_of(raw) == CONTENTS

    before = [file.stat().st_mtime_ns for file in files]
    shutil.rmtree(mirror / "tiny")  # neither the mirror nor the address would answer now
    for source in (mirror, None):
        again = fetch("tiny", source)
        assert [file.stat().st_mtime_ns for file in again] == before


def test_a_wrong_hash_in_the_mirror_leaves_nothing_behind(mirror, raw):
    forged = b"forged\n"
    (mirror / "tiny" / "two words.tsv").write_bytes(forged)

    digest = hashlib.sha256(forged).hexdigest()[:12]
    expected = SHA256["two words.tsv"][:12]
    with pytest.raises(InputError, match=f"two words.tsv .* {digest}.*, expected {expected}"):
        fetch("tiny", mirror)
    assert contents_of(raw) == {"one.tsv": CONTENTS["one.tsv"]}


def test_a_mirror_without_the_file_or_no_folder_is_named(mirror, raw, tmp_path):
    (mirror / "tiny" / "one.tsv").unlink()
    with pytest.raises(InputError, match=r"mirror '.*mirror' has no tiny/one.tsv"):
        fetch("tiny", mirror)

    with pytest.raises(InputError, match=r"nowhere' is not a folder"):
        fetch("tiny", tmp_path / "nowhere")

    assert not raw.exists()  # nor is an empty folder left


def test_a_folder_that_cannot_be_written_is_named(mirror, raw):
    raw.write_text("a file where a folder should be")
    with pytest.raises(InputError, match=r"one.tsv cannot be written"):
        fetch("tiny", mirror)


class Site(BaseHTTPRequestHandler):
    """Serves the contents it is given, counts, and can break off in the middle of a file."""

    def __init__(self, contents, requests, promised, *rest):
        self.contents = contents
        self.requests = requests
        self.promised = promised
        super().__init__(*rest)

    def do_GET(self):
        name = unquote(self.path).removeprefix("/pinned/")
        self.requests.append(name)
        content = self.contents.get(name)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"") + self.promised))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def serve(monkeypatch):
    """Start a site on this machine and register both corpora there."""
    sites = []

    def start(contents: dict[str, bytes], promised: int = 0) -> list[str]:
        requests: list[str] = []
        handler = partial(Site, contents, requests, promised)
        site = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=site.serve_forever, args=(0.01,), daemon=True).start()
        sites.append(site)

        register(monkeypatch, f"http://127.0.0.1:{site.server_port}/pinned")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "127.0.0.1")
        return requests

    yield start
    for site in sites:
        site.shutdown()
        site.server_close()


@pytest.mark.parametrize(("corpus", "contents"), [("tiny", CONTENTS), ("blobs", BLOBS)])
def test_fetch_downloads_once(serve, raw, corpus, contents):
    requests = serve(contents)
    for _ in range(2):  # what is there is not asked again
        assert fetch(corpus) == [raw / corpus / name for name in contents]
        assert contents_of(raw) == contents
        assert requests == list(contents)


FIRST = {"one.tsv": CONTENTS["one.tsv"]}
FORGED = BLOBS | {"results/a.json": b'{"forged": 1}\n'}


@pytest.mark.parametrize(
    ("corpus", "served", "promised", "sentence", "kept"),
    [
        (
            "tiny",
            FIRST | {"two words.tsv": b"x"},
            0,
            "two words.tsv from http://.* has SHA-256 .*, exp",
            FIRST,
        ),
        ("tiny", FIRST, 0, r"two words.tsv could not be fetched \(HTTP 404\)", FIRST),
        ("tiny", CONTENTS, 100, "one.tsv could not be fetched", {}),  # it breaks off
        (
            "blobs",
            FORGED,
            0,
            "results/a.json from http://.* has git blob id b33090e7f021..., "
            "expected e69de29bb2d1...; it was not",
            {"data/a.json": b"{}\n"},
        ),
    ],
)
def test_a_failed_download_leaves_nothing_behind(
    serve, raw, corpus, served, promised, sentence, kept
):
    serve(served, promised)

    with pytest.raises(InputError, match=sentence):
        fetch(corpus)

    assert contents_of(raw) == kept
    assert raw.exists() == bool(kept)
    for path in raw.rglob("*"):
        is_empty_folder = path.is_dir() and not list(path.iterdir())
        assert not is_empty_folder, path


@pytest.mark.parametrize(
    ("corpus", "name"), [("tiny", "two words.tsv"), ("blobs", "results/a.json")]
)
def test_a_reader_gets_a_verified_file_or_a_sentence(mirror, raw, corpus, name):
    with pytest.raises(InputError, match=f"{name} is not there; `make data` fetches {corpus}"):
        corpora.file(corpus, name)

    fetch(corpus, mirror)
    file = corpora.file(corpus, name)
    assert file == raw / corpus / name

    file.write_bytes(b"\n")
    sentence = f"{name} has .*, expected .*`make data` fet"
    with pytest.raises(InputError, match=sentence):
        corpora.file(corpus, name)

    fetch(corpus, mirror)  # a damaged file is fetched again
    assert corpora.file(corpus, name) == file


def test_a_file_that_cannot_be_read_is_not_called_changed(mirror, raw, monkeypatch):
    fetch("tiny", mirror)

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(corpora.pooch, "file_hash", refuse)

    with pytest.raises(
        InputError, match=r"one\.tsv cannot be read: Permission denied; `make data`"
    ):
        corpora.file("tiny", "one.tsv")


def test_the_command_prints_one_line_per_corpus(mirror, raw, tmp_path, capsys):
    assert corpora.main(["--mirror", str(mirror)]) == 0
    assert corpora.main([]) == 0
    lines = f"tiny: 2 files verified in {raw / 'tiny'}\n"
    lines += f"blobs: 3 files verified in {raw / 'blobs'}\n"
    assert capsys.readouterr() == (lines * 2, "")

    nowhere = tmp_path / "nowhere"
    assert corpora.main(["--mirror", str(nowhere)]) == 1
    sentence = f"The mirror '{nowhere}' is not a folder.\n"
    assert capsys.readouterr() == ("", f"tiny: {sentence}blobs: {sentence}")


def test_a_corpus_that_fails_does_not_stop_the_others(mirror, raw, capsys):
    (mirror / "tiny" / "one.tsv").unlink()
    assert corpora.main(["--mirror", str(mirror)]) == 1
    assert capsys.readouterr() == (
        f"blobs: 3 files verified in {raw / 'blobs'}\n",
        f"tiny: The mirror '{mirror}' has no tiny/one.tsv.\n",
    )

    assert corpora.main([]) == 1  # the address refuses, and what is there need not ask
    out, err = capsys.readouterr()
    assert out.startswith("blobs: 3 files verified")
    sentence = "tiny: http://127.0.0.1:1/one.tsv could not be fetched .*DATA_MIRROR=<folder>.*\n"
    assert re.fullmatch(sentence, err)  # no net: it names the other way


def test_a_mirror_may_lack_a_corpus_that_the_run_does_not_need(
    mirror, raw, tmp_path, monkeypatch, capsys
):
    for name in CONTENTS:
        (mirror / "tiny" / name).unlink()  # a folder with other files is as good as none
    (mirror / "tiny" / "notes.txt").write_text("mine")
    lacking = ["--mirror", str(mirror)]

    assert corpora.main(lacking) == 0
    sentence = f"tiny: The mirror '{mirror}' lacks it; CORPUS=tiny (notebook 10) needs it.\n"
    fetched = f"blobs: 3 files verified in {raw / 'blobs'}\n"
    assert capsys.readouterr() == (fetched, sentence)

    monkeypatch.setenv("CORPUS", "tiny")  # as make gives it
    assert corpora.main(lacking) == 1
    monkeypatch.setenv("CORPUS", "sample")
    assert corpora.main(lacking) == 0

    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    for name, corpus in (("demo", "sample"), ("full", "tiny")):
        (tmp_path / f"{name}.yaml").write_text(
            f"10_empathy_gap:\n  CORPUS: {corpus}  # a remark\n  N: 3\n"
        )
    assert corpora.main(lacking) == 0
    monkeypatch.setenv("PROFILE", "full")
    assert corpora.main(lacking) == 1

    assert capsys.readouterr() == (fetched * 4, sentence * 4)


def test_every_corpus_says_what_needs_it():
    """A parameter that a notebook takes, with the name of the corpus."""
    for name, corpus in CORPORA.items():
        needed_by = re.fullmatch(rf"([A-Z]+)={name} \(notebook (\d\d)\)", corpus.needed_by)
        parameter, notebook = needed_by.groups()
        (file,) = paths.NOTEBOOKS.glob(f"{notebook}_*.ipynb")
        assert re.search(rf"\"{parameter} = ", file.read_text("utf8"))
