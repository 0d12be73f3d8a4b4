"""The corpora: the sample as written, reading and its sentences, fetching by hash."""

import hashlib
import re
import shutil
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup import corpora, paths
from ingroup.corpora import COLUMNS, CORPORA, EMOTIONS, Corpus, fetch, load_events
from ingroup.tables import InputError

HEADER = "\t".join(COLUMNS)
CONTENTS = {"one.tsv": b"first file\n", "two words.tsv": b"second file\n"}
BLOBS = {  # git hash-object's id of each, and of a file that is none of them
    "data/a.json": (b"{}\n", "0967ef424bce6791893e9a57bb952f80fd536e93"),
    "results/a.json": (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
    "results/b.json": (
        "caf\u00e9 \u2028\r\n".encode() * 1000,
        "916e18b3108e2ab5c8d657b237ee2eb5b6a47aff",
    ),
}


def event(emotion: str, text_id: str = "1", text: str = "it rained") -> str:
    return f"{emotion}\t{text_id}\t{text}\tI felt when {text}\tThe person felt when {text}"


def write(place: Path, *lines: str, header: str = HEADER) -> str:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return str(place)


# --- the sample


def test_sample_has_six_narratives_for_each_emotion_in_order():
    events = load_events()
    assert list(events.columns) == list(COLUMNS)
    assert events["emotion"].tolist() == [emotion for emotion in EMOTIONS for _ in range(6)]
    assert events["text_id"].tolist() == [str(number) for number in range(1, 73)]
    assert events["generated_text"].is_unique
    assert not events.isna().to_numpy().any()
    assert sorted(EMOTIONS) == list(EMOTIONS)
    assert len(EMOTIONS) == 12


def test_sample_file_is_plain_tsv():
    content = (paths.SAMPLE / "narratives.tsv").read_bytes()
    assert content.isascii()
    assert b"\r" not in content
    assert b'"' not in content
    assert content.endswith(b".\n")
    assert {line.count(b"\t") for line in content.splitlines()} == {4}


def test_sample_forms_tell_the_same_event():
    shift = dict.fromkeys(("i", "we"), "they") | dict.fromkeys(("me", "us"), "them")
    shift |= dict.fromkeys(("my", "our"), "their") | {"mine": "theirs", "myself": "themselves"}
    shift |= {"was": "were"}

    def words(text: str) -> list[str]:
        return re.findall(r"[\w-]+", text.lower())

    for _, emotion, own, first, third in load_events()[["emotion", *COLUMNS[2:]]].itertuples():
        assert 8 <= len(own.split()) <= 20, own
        assert first.startswith(f"I felt {emotion} when "), first
        assert third.startswith(f"The person felt {emotion} when "), third
        assert first.endswith("."), first
        assert third.endswith("."), third
        # The first person adds only the words that a terse text left out.
        assert set(words(own)) <= set(words(first)), first
        # The third person differs only in pronouns and in the verbs that agree with them.
        said, told = ([shift.get(w, w) for w in words(form)] for form in (first, third))
        assert said[1:] == told[2:], third
        assert not {"i", "me", "my", "mine", "myself", "we", "us", "our", "am"} & set(words(third))


def test_sample_spreads_the_words_that_the_calibrant_refuses():
    refused = r"\b(?:died|hospital|police|stolen|accident|funeral|weapon|threatened)\b"
    for size in (12, 24, 36, 48, 60, 72):
        events = load_events(n_events=size)
        hit = events["generated_text"].str.contains(refused)
        assert 1 / 8 < hit.mean() < 1 / 5
    assert set(events["emotion"][hit]) == set(EMOTIONS)


# --- samples of a corpus


def uneven(folder: Path, sizes: dict[str, int]) -> str:
    """A corpus whose emotions take turns in the file until they run out."""
    turns = range(max(sizes.values()))
    lines = [event(emotion, str(i)) for i in turns for emotion in sizes if i < sizes[emotion]]
    return write(folder / "events.tsv", *lines)


def dealt(sizes: dict[str, int], n_events: int) -> dict[str, int]:
    """Cards dealt one by one, as slowly as at a table."""
    hands = dict.fromkeys(sorted(sizes), 0)
    while sum(hands.values()) < n_events:
        for emotion in hands:
            if hands[emotion] < sizes[emotion] and sum(hands.values()) < n_events:
                hands[emotion] += 1
    return {emotion: size for emotion, size in hands.items() if size}


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_sample_is_balanced_and_keeps_the_order(tmp_path_factory, data):
    sizes = data.draw(st.dictionaries(st.sampled_from(EMOTIONS), st.integers(1, 7), min_size=1))
    n_events = data.draw(st.integers(1, sum(sizes.values())))
    corpus = uneven(tmp_path_factory.mktemp("uneven"), sizes)
    events = load_events(corpus, n_events)
    assert events.index.tolist() == list(range(n_events))
    assert events["emotion"].is_monotonic_increasing
    assert events.groupby("emotion").size().to_dict() == dealt(sizes, n_events)
    for _, own in events.groupby("emotion"):
        assert own["text_id"].tolist() == [str(i) for i in range(len(own))]


def test_a_small_sample_by_hand():
    assert load_events(n_events=14)["text_id"].tolist() == [
        *("1", "2", "7", "8"),  # the first two emotions give one more
        *("13", "19", "25", "31", "37", "43", "49", "55", "61", "67"),
    ]


@pytest.mark.parametrize("n_events", [0, -3, 73, 2.5, "12"])
def test_a_sample_size_out_of_range_is_refused(n_events):
    with pytest.raises(InputError, match=f"n_events is {n_events!r}; .* from 1 to 72"):
        load_events(n_events=n_events)


def test_a_numpy_integer_is_a_sample_size():
    assert len(load_events(n_events=np.int64(5))) == 5


# --- a corpus of one's own


def test_files_of_a_folder_are_read_by_name_whatever_was_written_first(tmp_path):
    write(tmp_path / "b.tsv", event("joy", "3"), event("anger", "4"))
    write(tmp_path / "a.tsv", event("joy", "9"), event("anger", "8"), event("joy", "1"))
    (tmp_path / "notes.txt").write_text("no corpus")
    events = load_events(str(tmp_path))
    assert events["text_id"].tolist() == ["8", "4", "9", "1", "3"]
    assert events["emotion"].tolist() == ["anger", "anger", "joy", "joy", "joy"]


def test_quotes_and_odd_separators_are_part_of_a_text(tmp_path):
    text = 'they said "go\u2028home", it\u0085rained, NA'
    events = load_events(write(tmp_path / "a.tsv", event("fear", "NA", text), event("joy")))
    assert events.loc[0, "generated_text"] == text
    assert events.loc[0, "text_id"] == "NA"


def test_a_quoted_text_is_unquoted_as_pandas_wrote_it(tmp_path):
    text = 'they called it ""fair"", and left'
    events = load_events(write(tmp_path / "a.tsv", event("joy", "1", f'"{text}"')))
    assert events.loc[0, "generated_text"] == 'they called it "fair", and left'


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_it(tmp_path):
    place = tmp_path / "a.tsv"
    place.write_bytes(f"\ufeff{HEADER}\r\n{event('joy')}\r\n".encode())
    assert load_events(str(place)).loc[0, "third_person_text"] == "The person felt when it rained"


def test_forms_without_a_column_are_missing_and_other_columns_left_out(tmp_path):
    header = "text_id\temotion\tage\tgenerated_text"
    events = load_events(write(tmp_path / "a.tsv", "7\tjoy\t\tit rained", header=header))
    assert events.loc[0, ["emotion", "text_id", "generated_text"]].tolist() == [
        *("joy", "7", "it rained")
    ]
    assert list(events.columns) == list(COLUMNS)
    assert events[["first_person_text", "third_person_text"]].isna().to_numpy().all()


GOOD = event("joy", "0")
WRONG_LINES = {
    "unknown emotion": ([GOOD, event("glee")], "line 3: unknown emotion 'glee'"),
    "capital": ([event("Joy")], "line 2: unknown emotion 'Joy'"),
    "empty narrative": ([GOOD, GOOD.replace("0", "1"), event("joy", "2", " ")], "line 4: .*text"),
    "empty id": ([event("joy", "")], "line 2: text_id is empty"),
    "empty third": ([GOOD, "joy\t1\ta\tb\t"], "line 3: third_person_text is empty"),
    "empty first": ([GOOD, "joy\t1\ta\t \tb"], "line 3: first_person_text is empty"),
    "too few": ([GOOD, "joy\t1\ta\tb"], "line 3: 4 fields, expected 5"),
    "too many": ([GOOD + "\tmore"], "line 2: 6 fields, expected 5"),
    "blank line": ([GOOD, "", event("joy")], "line 3: 0 fields, expected 5"),
    "duplicate": ([GOOD, event("joy"), GOOD], "line 4: joy 0 is there already, in .*a.tsv, line 2"),
    "open quote": ([GOOD, event("joy", "1", '"never closed')], "line 3: a quote is opened and"),
    "header only": ([], "line 2: expected an event"),
}


@pytest.mark.parametrize(("lines", "sentence"), WRONG_LINES.values(), ids=WRONG_LINES)
def test_a_wrong_line_is_named(tmp_path, lines, sentence):
    with pytest.raises(InputError, match=f"a.tsv, {sentence}") as problem:
        load_events(write(tmp_path / "a.tsv", *lines))
    assert "\n" not in str(problem.value)


def test_the_same_id_under_two_emotions_is_two_events(tmp_path):
    assert len(load_events(write(tmp_path / "a.tsv", event("joy"), event("fear")))) == 2


def test_a_duplicate_in_another_file_is_named_with_both_places(tmp_path):
    write(tmp_path / "a.tsv", event("fear"), event("joy"))
    write(tmp_path / "b.tsv", event("joy"))
    with pytest.raises(InputError, match=r"b.tsv, line 2: joy 1 .* in .*a.tsv, line 3"):
        load_events(str(tmp_path))


@pytest.mark.parametrize("column", ["emotion", "text_id", "generated_text"])
def test_a_missing_column_is_named(tmp_path, column):
    header = HEADER.replace(column, "x")
    with pytest.raises(InputError, match=f"a.tsv, line 1: no column '{column}', found .*x"):
        load_events(write(tmp_path / "a.tsv", GOOD, header=header))


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_text_that_is_not_utf8_is_named(tmp_path, start):
    place = tmp_path / "a.tsv"
    place.write_bytes(start + f"{HEADER}\n{GOOD}\n{event('joy', '1', 'café')}".encode("latin-1"))
    with pytest.raises(InputError, match=r"a.tsv, line 3: the text is not UTF-8"):
        load_events(str(place))


@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_named(tmp_path, content):
    place = tmp_path / "a.tsv"
    place.write_bytes(content)
    with pytest.raises(InputError, match=r"a.tsv, line 1: the file is empty"):
        load_events(str(place))


def test_a_corpus_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="'crowd-envant' is neither sample nor crowd-envent"):
        load_events("crowd-envant")
    with pytest.raises(InputError, match=r"holds no .tsv file"):
        load_events(str(tmp_path))
    with pytest.raises(InputError, match=r"crowd-enVent_anger.tsv is not there; `make data`"):
        load_events("crowd-envent", folder=tmp_path)


# --- fetching


def register(monkeypatch, address: str) -> None:
    """Two corpora, one known by SHA-256 and one by git's ids."""
    tiny = {name: f"sha256:{hashlib.sha256(text).hexdigest()}" for name, text in CONTENTS.items()}
    blobs = {name: f"git:{blob}" for name, (_, blob) in BLOBS.items()}
    registry = {"tiny": Corpus("nobody", address, tiny), "blobs": Corpus("git", address, blobs)}
    monkeypatch.setattr(corpora, "CORPORA", registry)


@pytest.fixture
def mirror(tmp_path, monkeypatch) -> Path:
    """A good mirror of the tiny corpus, whose own address refuses every connection."""
    register(monkeypatch, "http://127.0.0.1:1")
    place = tmp_path / "mirror"
    (place / "tiny").mkdir(parents=True)
    for name, content in CONTENTS.items():
        (place / "tiny" / name).write_bytes(content)
    for name, (content, _) in BLOBS.items():
        (place / "blobs" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "blobs" / name).write_bytes(content)
    return place


def held(folder: Path) -> dict[str, bytes]:
    """What lies below the folder of a corpus, by its name in the registry; no folder is left."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert not list(folder.rglob("tmp*"))
    return {
        file.relative_to(folder).as_posix().partition("/")[2]: file.read_bytes() for file in files
    }


def test_the_registry_pins_a_commit_and_a_hash_for_each_file():
    assert sorted(CORPORA["crowd-envent"].files) == [f"crowd-enVent_{e}.tsv" for e in EMOTIONS]
    prompts = ("COT", "ID", "Raw")
    assert list(CORPORA["giebench"].files) == [
        *(f"data/{prompt}-Prompt.json" for prompt in prompts),
        *(f"results/{m}-{p}-Prompt.json" for m in ("GPT-4", "Qwen-1.5-110b") for p in prompts),
    ]
    assert list(CORPORA["stereotype-content-dictionary"].files) == ["Full Dictionaries.csv"]
    for corpus in CORPORA.values():
        assert re.search(r"/[0-9a-f]{40}(/|$)", corpus.address)
        digest = "sha256:[0-9a-f]{64}|git:[0-9a-f]{40}"
        assert all(re.fullmatch(digest, expected) for expected in corpus.files.values())
        assert len(set(corpus.files.values())) == len(corpus.files)


@pytest.mark.parametrize(("content", "blob"), BLOBS.values(), ids=BLOBS)
def test_a_blob_id_is_the_one_that_git_gives(tmp_path, content, blob):
    (tmp_path / "file").write_bytes(content)
    assert corpora.digest(tmp_path / "file", "git") == f"git:{blob}"


def test_a_sha256_is_the_one_that_sha256sum_gives(tmp_path):
    (tmp_path / "file").write_bytes(CONTENTS["one.tsv"])
    assert corpora.digest(tmp_path / "file", "sha256") == (
        "sha256:7ca46ed8705ae80e983715aa2d60e4c49c87465c9d9467cafddf02bfadf6fc77"
    )


def test_fetch_copies_from_a_mirror(mirror, tmp_path):
    files = fetch("tiny", mirror, tmp_path / "raw")
    assert files == [tmp_path / "raw" / "tiny" / name for name in CONTENTS]
    assert held(tmp_path / "raw") == CONTENTS


def test_what_is_there_is_left_alone(mirror, tmp_path):
    before = [file.stat().st_mtime_ns for file in fetch("tiny", mirror, tmp_path / "raw")]
    # Neither the mirror nor the address would answer now.
    for name in CONTENTS:
        (mirror / "tiny" / name).unlink()
    assert [file.stat().st_mtime_ns for file in fetch("tiny", mirror, tmp_path / "raw")] == before
    assert len(fetch("tiny", folder=tmp_path / "raw")) == 2


def test_a_damaged_file_is_fetched_again(mirror, tmp_path):
    damaged = fetch("tiny", mirror, tmp_path / "raw")[1]
    damaged.write_bytes(b"second fi")
    with pytest.raises(InputError, match=r"two words.tsv was changed; `make data`"):
        load_events("tiny", folder=tmp_path / "raw")
    fetch("tiny", mirror, tmp_path / "raw")
    assert held(tmp_path / "raw") == CONTENTS


def test_a_wrong_hash_in_the_mirror_leaves_nothing_behind(mirror, tmp_path):
    (mirror / "tiny" / "two words.tsv").write_bytes(b"forged\n")
    found = hashlib.sha256(b"forged\n").hexdigest()[:12]
    expected = hashlib.sha256(CONTENTS["two words.tsv"]).hexdigest()[:12]
    with pytest.raises(InputError, match=f"two words.tsv .* {found}.*, expected {expected}"):
        fetch("tiny", mirror, tmp_path / "raw")
    assert held(tmp_path / "raw") == {"one.tsv": CONTENTS["one.tsv"]}


def test_a_mirror_without_the_file_or_no_folder_is_named(mirror, tmp_path):
    (mirror / "tiny" / "one.tsv").unlink()
    with pytest.raises(InputError, match=r"mirror '.*mirror' has no tiny/one.tsv"):
        fetch("tiny", mirror, tmp_path / "raw")
    with pytest.raises(InputError, match=r"nowhere' is not a folder"):
        fetch("tiny", tmp_path / "nowhere", tmp_path / "raw")
    with pytest.raises(InputError, match="'huge' is no corpus to fetch; there is tiny, blobs"):
        fetch("huge", mirror)
    assert held(tmp_path / "raw") == {}


def test_a_place_that_cannot_be_written_is_named(mirror, tmp_path):
    (tmp_path / "raw").write_text("a file where a folder should be")
    with pytest.raises(InputError, match=r"one.tsv cannot be written"):
        fetch("tiny", mirror, tmp_path / "raw")


def test_no_net_names_the_other_way(mirror, tmp_path):
    with pytest.raises(InputError, match=r"one.tsv could not be fetched .*DATA_MIRROR=<folder>"):
        fetch("tiny", folder=tmp_path / "raw")
    assert held(tmp_path / "raw") == {}


class Site(BaseHTTPRequestHandler):
    """Serves the contents it is given, counts, and can break off in the middle of a file."""

    def __init__(self, contents, asked, promised, *rest):
        self.contents, self.asked, self.promised = contents, asked, promised
        super().__init__(*rest)

    def do_GET(self):
        name = unquote(self.path).removeprefix("/pinned/")
        self.asked.append(name)
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
        asked: list[str] = []
        site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, contents, asked, promised))
        threading.Thread(target=site.serve_forever, args=(0.01,), daemon=True).start()
        sites.append(site)
        register(monkeypatch, f"http://127.0.0.1:{site.server_port}/pinned")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "127.0.0.1")
        return asked

    yield start
    for site in sites:
        site.shutdown()
        site.server_close()


def test_fetch_downloads_once(serve, tmp_path):
    asked = serve(CONTENTS)
    fetch("tiny", folder=tmp_path)
    assert held(tmp_path) == CONTENTS
    fetch("tiny", folder=tmp_path)
    assert asked == list(CONTENTS)


@pytest.mark.parametrize(
    ("second", "promised", "sentence"),
    [
        (b"another file\n", 0, r"two words.tsv from http://.* has SHA-256 .*, expected"),
        (None, 0, r"two words.tsv could not be fetched \(HTTP 404\)"),
    ],
    ids=["wrong hash", "not found"],
)
def test_a_failed_download_leaves_nothing_behind(serve, tmp_path, second, promised, sentence):
    contents = {"one.tsv": CONTENTS["one.tsv"]} | ({"two words.tsv": second} if second else {})
    serve(contents, promised)
    with pytest.raises(InputError, match=sentence):
        fetch("tiny", folder=tmp_path)
    assert held(tmp_path) == {"one.tsv": CONTENTS["one.tsv"]}


def test_a_download_that_breaks_off_leaves_nothing_behind(serve, tmp_path):
    serve(CONTENTS, promised=100)
    with pytest.raises(InputError, match=r"one.tsv could not be fetched"):
        fetch("tiny", folder=tmp_path)
    assert held(tmp_path) == {}


def test_files_in_folders_are_fetched_and_checked_by_blob_id(serve, tmp_path):
    contents = {name: content for name, (content, _) in BLOBS.items()}
    asked = serve(contents)
    assert fetch("blobs", folder=tmp_path) == [tmp_path / "blobs" / name for name in BLOBS]
    assert held(tmp_path) == contents
    fetch("blobs", folder=tmp_path)  # what is there is not asked again
    assert asked == list(BLOBS)


def test_a_wrong_blob_is_not_kept_and_named_with_both_ids(serve, tmp_path):
    contents = {name: content for name, (content, _) in BLOBS.items()}
    serve(contents | {"results/a.json": b'{"forged": 1}\n'})
    ids = "git blob id b33090e7f021..., expected e69de29bb2d1..."
    with pytest.raises(InputError, match=rf"results/a.json from http://.* has {ids}; it was not"):
        fetch("blobs", folder=tmp_path)
    assert held(tmp_path) == {"data/a.json": b"{}\n"}
    serve(contents)
    fetch("blobs", folder=tmp_path)
    assert held(tmp_path) == contents


def test_a_reader_gets_a_verified_file_or_a_sentence(mirror, tmp_path):
    def path(corpus: str, name: str) -> Path:
        return corpora.file(corpus, name, tmp_path)

    with pytest.raises(InputError, match=r"results/a.json is not there; `make data` fetches blobs"):
        path("blobs", "results/a.json")
    fetch("blobs", mirror, tmp_path)
    assert path("blobs", "results/a.json") == tmp_path / "blobs" / "results" / "a.json"
    (tmp_path / "blobs" / "results" / "a.json").write_bytes(b"\n")
    with pytest.raises(InputError, match=r"results/a.json was changed; `make data` fetches the"):
        path("blobs", "results/a.json")
    with pytest.raises(InputError, match=r"blobs has no file 'c'; there is data/a.json, results/"):
        path("blobs", "c")
    with pytest.raises(InputError, match="'huge' is no corpus"):
        path("huge", "c")


def test_a_corpus_without_tables_has_no_events():
    with pytest.raises(InputError, match="'giebench' is neither sample nor crowd-envent nor a fi"):
        load_events("giebench")


def test_the_command_prints_a_line_a_corpus(mirror, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "RAW", tmp_path / "raw")
    assert corpora.main(["--mirror", str(mirror)]) == 0
    assert corpora.main([]) == 0
    lines = (
        f"tiny: 2 files verified in {tmp_path / 'raw' / 'tiny'}\n"
        f"blobs: 3 files verified in {tmp_path / 'raw' / 'blobs'}\n"
    )
    assert capsys.readouterr() == (lines * 2, "")


def test_a_corpus_that_fails_keeps_no_other_one_away(mirror, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "RAW", tmp_path / "raw")
    shutil.rmtree(mirror / "tiny")
    assert corpora.main(["--mirror", str(mirror)]) == 1
    assert capsys.readouterr() == (
        f"blobs: 3 files verified in {tmp_path / 'raw' / 'blobs'}\n",
        f"tiny: The mirror '{mirror}' has no tiny/one.tsv.\n",
    )
    assert corpora.main([]) == 1  # the address refuses, and what is there need not ask
    out, err = capsys.readouterr()
    assert out.startswith("blobs: 3 files verified")
    assert re.fullmatch(r"tiny: http://127.0.0.1:1/one.tsv could not be fetched .*\n", err)


def test_the_command_ends_in_sentences_on_stderr(mirror, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "RAW", tmp_path / "raw")
    assert corpora.main(["--mirror", str(tmp_path / "nowhere")]) == 1
    sentence = f"The mirror '{tmp_path / 'nowhere'}' is not a folder.\n"
    assert capsys.readouterr() == ("", f"tiny: {sentence}blobs: {sentence}")
