"""Logs of inspect_ai: their archives are damaged, packed bombs, or lie about their size."""

import random
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import pytest

import inspect_logs
from ingroup.inference import EngineError, recordings
from ingroup.tables import InputError

MEMBER = "samples/1_epoch_1.json"


@pytest.fixture
def log(tmp_path):
    """A log of two samples."""
    file = tmp_path / "good.eval"
    inspect_logs.write(file, 2)
    return file


def replies(file):
    return [recording.reply.text for recording in recordings.read_recordings(file)]


def test_a_place_whose_name_is_too_long_is_one_sentence():
    with pytest.raises(EngineError, match="cannot be read: File name too long"):
        recordings.find_files(Path("x" * 5000))


def test_a_log_is_read(log):
    assert replies(log) == ["50", "51"]


def damaged(content, draw):
    """A log with a flipped bit, cut short, or with zeros in place of nine bytes."""
    start = draw.randrange(len(content))
    how = draw.choice(["flip", "cut", "zero"])
    if how == "cut":
        return content[:start]

    spoilt = bytearray(content)
    if how == "flip":
        spoilt[start] ^= 1 << draw.randrange(8)
    else:
        stop = min(start + 9, len(spoilt))
        spoilt[start:stop] = bytes(stop - start)

    return bytes(spoilt)


def outcome_of(file):
    """What becomes of a log that may be damaged: its replies, or one sentence."""
    try:
        texts = replies(file)
    except InputError as error:
        sentence = str(error)
        assert str(file) in sentence
        assert "\n" not in sentence
        return "refused"

    assert texts == ["50", "51"]
    return "right"


def test_a_damaged_log_is_one_sentence_and_never_other_replies(log, tmp_path):
    draw = random.Random(4)
    content = log.read_bytes()
    file = tmp_path / "damaged.eval"
    outcomes = Counter()

    for _ in range(200):
        file.write_bytes(damaged(content, draw))
        outcomes[outcome_of(file)] += 1

    assert outcomes["refused"] > 150
    assert outcomes["right"] > 0  # the time of a member, for example, says nothing


@pytest.mark.parametrize("bit", range(1, 8))
def test_a_list_of_members_that_hides_some_is_one_sentence(log, bit):
    """The length of a member's comment, changed, takes the entries that follow for a comment."""
    content = bytearray(log.read_bytes())
    content[content.index(b"PK\x01\x02") + 33] ^= 1 << bit
    log.write_bytes(content)

    with pytest.raises(InputError, match=r"found a damaged archive \(it lists 1 of 6 members\)"):
        replies(log)


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, recordings.ZIP_ZSTANDARD])
def test_a_bomb_is_one_sentence(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(recordings, "LARGEST_LOG", 2**20)
    file = tmp_path / "bomb.eval"
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr(MEMBER, b" " * 2**21)

    assert file.stat().st_size < 10_000

    with pytest.raises(InputError, match=r"bomb.eval: found a larger archive, expected a log of"):
        replies(file)


def test_a_bomb_that_states_ten_bytes_is_one_sentence(tmp_path, monkeypatch):
    """Both headers state the size and checksum of its beginning, which zipfile then reads alone."""
    monkeypatch.setattr(recordings, "LARGEST_LOG", 2**20)
    file = tmp_path / "liar.eval"
    with zipfile.ZipFile(file, "w", recordings.ZIP_ZSTANDARD) as archive:
        archive.writestr(MEMBER, b" " * 2**21)

    content = bytearray(file.read_bytes())
    directory = content.rfind(b"PK\x01\x02")
    for header in (14, directory + 16):
        struct.pack_into("<I", content, header, zlib.crc32(b" " * 10))
        struct.pack_into("<I", content, header + 8, 10)

    file.write_bytes(content)

    assert zipfile.ZipFile(file).testzip() is None

    with pytest.raises(InputError, match=r"liar.eval: found a damaged archive \(Bad CRC"):
        replies(file)


def test_an_archive_that_is_packed_in_another_way_is_one_sentence(tmp_path):
    file = tmp_path / "other.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr(MEMBER, b" ")

    with pytest.raises(InputError, match=r"found a damaged archive \(inspect_ai packs otherwise"):
        replies(file)


@pytest.mark.parametrize("text", ["[" * 100_000, "7", '{"eval": []}', '"\\ud800"'])
def test_an_archive_that_is_no_log_is_one_sentence(tmp_path, text):
    file = tmp_path / "other.eval"
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("header.json", "_journal/start.json", MEMBER):
            archive.writestr(name, text)

    with pytest.raises(InputError, match=r"other.eval: found \w+Error, expected a log of inspect"):
        replies(file)
