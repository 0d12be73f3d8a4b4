"""A text comes back as it was written, or one sentence says what is wrong with its file."""

import pytest

from ingroup.texts import decoded


class OwnError(ValueError):
    pass


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    file = tmp_path / "a.csv"
    for encoding in ("utf-8", "utf-8-sig"):
        file.write_bytes("ä,\r\nb".encode(encoding))
        assert decoded(file, OwnError) == "ä,\r\nb"


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(OwnError, match=r"none\.csv cannot be read: No such file or directory\."):
        decoded(tmp_path / "none.csv", OwnError)
    (tmp_path / "latin.csv").write_bytes(b"a\nb\n\xe4\n")
    with pytest.raises(OwnError, match=r"latin\.csv, line 3: found a byte that is not UTF-8"):
        decoded(tmp_path / "latin.csv", OwnError)
