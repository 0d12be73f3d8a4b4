"""Recorded answers in files: one recording for each row, key or sample."""

import ast
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import pandas as pd

from ingroup.inference.engine import FAILED, LENGTH, STOP, EngineError, Reply, without_surrogates
from ingroup.tables import at, check, read_json, read_table, wrong

NO_ANSWER = Reply(None, FAILED, error="the recorded call gave no answer")

# Columns of the system turn (may be missing), of the user turn and of the response.
HOU = ("system_prompt", "user_input", "response")
STEREOMAP = ("no system turn", "Questionnaire", "Answer")
PLAIN = ("system", "prompt", "response")
LAYOUTS = (HOU, STEREOMAP, PLAIN)

DELIMITERS = {".tsv": "\t", ".csv": ","}
LOG = ".eval"  # of inspect_ai
LARGEST_LOG = 2**30  # bytes of an unpacked log, which is read as a whole
ZIP_ZSTANDARD = 93  # inspect_ai teaches it to zipfile
_ENTRY = b"PK\x01\x02"  # begins each entry of an archive's list of members
# Packed bytes of an archive that are read at a time. A zip bomb unpacks 128 MB from them.
_BLOCK_SIZE = 4096
KINDS = (*DELIMITERS, ".json", LOG)
ROUNDS = ("round", "run")  # columns
CATEGORY = "category"
DRAFT = "choice_"  # StereoMap's columns of Bard's drafts, Choice_0 and so on, in lower case
_COLUMNS = (*HOU, *STEREOMAP, *PLAIN, *ROUNDS, CATEGORY)


class Recording(NamedTuple):
    """One recorded answer, and its place: the file and the line, key or sample."""

    where: str
    prompt: str
    reply: Reply
    round: int = 1
    category: str = ""  # as its row says
    draft: int = 0  # of the answer's further drafts, from 1


def as_text(*turns: str) -> str:
    """Join the turns of a chat, one to a line.

    Parameters
    ----------
    *turns : str
        The texts of the turns. Empty texts are left out.

    Returns
    -------
    str
        The text that prompts are compared by.
    """
    return "\n".join(turn for turn in turns if turn)


def find_files(place: Path) -> list[Path]:
    """List the files of a place, in the order of their names.

    Parameters
    ----------
    place : Path
        A file, a pattern, or a folder, whose folders are searched, too.

    Returns
    -------
    list of Path
        Files of one of the `KINDS`, at least one.

    Raises
    ------
    EngineError
        If there is none, the place cannot be read, or it holds a store of this project.
    """
    try:
        candidates = sorted(place.rglob("*") if place.is_dir() else place.parent.glob(place.name))
    except OSError as problem:  # a name is too long, or a folder is closed
        raise EngineError(f"{place} cannot be read: {problem.strerror}") from problem

    files = []
    for file in candidates:
        if file.name == "manifest.json":
            raise EngineError(
                f"{file.parent} is a store of this project, which needs no replay: copy its folder "
                "<study>/<stimuli>/<name>@<engine> to build/responses, and set MODELS=<name>@stored"
            )
        if file.suffix.lower() in KINDS and not file.name.startswith("."):
            files.append(file)

    if not files or not files[0].is_file():
        expected = "a .tsv, .csv, .json or .eval file, or a folder of them"
        raise EngineError(f"{place} holds no recordings; expected {expected}")
    return files


def read_recordings(file: Path, round_of_file: int | None = None) -> Iterator[Recording]:
    """Read the recordings of one file, in their order.

    Parameters
    ----------
    file : Path
        A file of one of the `KINDS`.
    round_of_file : int, optional
        The round that the file's name gives (see :func:`rounds_of_files`).

    Returns
    -------
    iterator of Recording
        The recordings. A fault in the file is raised when it is reached.

    Raises
    ------
    InputError
        If the content of the file does not fit its name. The error names the line or key.
    EngineError
        If it is a log of inspect_ai, and inspect_ai is not installed.
    """
    suffix = file.suffix.lower()
    if suffix in DELIMITERS:
        return _table_recordings(file, DELIMITERS[suffix], round_of_file)
    if suffix == ".json":
        return _result_recordings(file)
    return _log_recordings(file)


def rounds_of_files(files: Sequence[Path]) -> dict[Path, int]:
    """Find StereoMap's files that are one round each.

    The names of such files differ in one number alone, which counts from 0 or 1 without a gap. A
    prompt of one file is also in another of these files.

    Parameters
    ----------
    files : sequence of Path
        The files of a place.

    Returns
    -------
    dict
        The number of the round, from 1, of each such file.

    Raises
    ------
    InputError
        As :func:`read_recordings`.
    """
    round_of: dict[Path, int] = {}
    for numbered in _numbered_files(files):
        first = min(numbered)
        consecutive = list(range(first, first + len(numbered)))
        if first > 1 or sorted(numbered) != consecutive:
            continue

        if _share_a_prompt(numbered.values()):
            for number, file in numbered.items():
                round_of[file] = number - first + 1
    return round_of


def _numbered_files(files: Sequence[Path]) -> list[dict[int, Path]]:
    """Group the files whose names differ in one number alone, each file by its number."""
    by_rest: dict[tuple, dict[int, Path]] = {}
    for file in files:
        parts = re.split(r"(\d+)", str(file))
        # Splitting by a group puts the numbers at the odd indices, between the texts.
        for index in range(1, len(parts), 2):
            rest_of_name = (*parts[:index], None, *parts[index + 1 :])
            numbered = by_rest.setdefault(rest_of_name, {})
            number = int(parts[index])
            numbered[number] = file
    return list(by_rest.values())


def _share_a_prompt(files: Iterable[Path]) -> bool:
    """Tell whether any two of these tables of StereoMap share a prompt."""
    seen: set[str] = set()
    for file in files:
        prompts = _questionnaires(file)
        if prompts & seen:
            return True
        seen |= prompts
    return False


def _questionnaires(file: Path) -> set[str]:
    """Read the prompts of a table of StereoMap. Any other file gives an empty set."""
    suffix = file.suffix.lower()
    if suffix not in DELIMITERS:
        return set()

    user = STEREOMAP[1]
    with file.open(encoding="utf8", errors="replace") as stream:
        if user.lower() not in stream.readline().lower():
            return set()
    table = _read_table(file, DELIMITERS[suffix])
    return set(table[user]) if user in table else set()


def _table_recordings(file: Path, delimiter: str, round_of_file: int | None) -> Iterator[Recording]:
    """Read the recordings of a table, in one of three layouts."""
    table = _read_table(file, delimiter)
    layout = _layout(file, table)
    system, user, response = layout
    # A table without system turns, as StereoMap's, has empty ones.
    if system not in table:
        table[system] = ""
    rounds = _rounds(file, table, layout, round_of_file)

    for line, row in table.to_dict("index").items():
        reply = Reply(row[response], STOP)
        if layout is STEREOMAP and not row[response]:
            # pandas writes the answer of a call that failed, None, as an empty cell.
            reply = NO_ANSWER
        recording = Recording(
            where=at(file, line),
            prompt=as_text(row[system], row[user]),
            reply=reply,
            round=int(rounds[line]),
            category=row.get(CATEGORY, ""),
        )
        yield recording

        drafts = _drafts(row) if layout is STEREOMAP else []
        for number, text in enumerate(drafts, 1):
            yield recording._replace(reply=Reply(text, STOP), draft=number)


def _read_table(file: Path, delimiter: str) -> pd.DataFrame:
    """Read a table, and spell its columns as in the layouts, regardless of case."""
    table = read_table(file, (), delimiter)
    new_names = {}
    for name in _COLUMNS:
        alike = [column for column in table if column.lower() == name.lower()]
        # Of two columns that differ in case alone, neither is renamed.
        if name not in alike and len(alike) == 1:
            new_names[alike[0]] = name
    return table.rename(columns=new_names)


def _drafts(row: Mapping[str, str]) -> list[str]:
    """Read the drafts in a row of StereoMap, except a first draft that repeats the answer."""
    drafts = []
    for column, cell in row.items():
        is_draft = column.lower().startswith(DRAFT) and column[len(DRAFT) :].isdecimal()
        if is_draft and cell:
            drafts.append(_draft_text(cell))

    answer = row[STEREOMAP[2]].strip()
    if drafts and drafts[0].strip() == answer:
        return drafts[1:]
    return drafts


def _draft_text(cell: str) -> str:
    """Return the text of a draft, which the authors' script writes as a Python list of one text."""
    if not re.fullmatch(r"""\[(['"]).*\1\]""", cell, re.DOTALL):
        return cell

    try:
        texts = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return cell
    if len(texts) == 1 and isinstance(texts[0], str):
        return without_surrogates(texts[0])
    return cell


def _layout(file: Path, table: pd.DataFrame) -> tuple[str, str, str]:
    """Find the first layout whose user turn and response a table has."""
    for layout in LAYOUTS:
        _, user, response = layout
        if user in table and response in table:
            return layout

    needed = [f"{user} and {response}" for _, user, response in LAYOUTS]
    raise wrong(at(file, 1), f"the columns {', '.join(table)}", "; or ".join(needed))


def _rounds(file: Path, table: pd.DataFrame, layout: tuple, round_of_file: int | None) -> pd.Series:
    """Find the round of each row.

    A column of rounds decides, if there is one. Without it, all rows are of round 1 except in a
    table of StereoMap. Rows of such a table have the round of their file, or else count the rows of
    their prompt.
    """
    for name in ROUNDS:
        if name in table:
            # pandas wrote 1 as 1.0 where the column lacked a number somewhere.
            is_whole = table[name].str.fullmatch(r"0*[1-9]\d{0,5}(\.0*)?").astype(bool)
            check(file, table[name], is_whole, "a whole number from 1")
            return table[name].str.partition(".")[0]

    # Only StereoMap's authors ask a prompt several times without a column of rounds. In the other
    # layouts, equal prompts are different trials of one round.
    if layout is not STEREOMAP:
        return pd.Series(1, table.index)
    if round_of_file is not None:
        return pd.Series(round_of_file, table.index)
    return table.groupby("Questionnaire").cumcount() + 1


def _result_recordings(file: Path) -> Iterator[Recording]:
    """Read the recordings of GIEBench's results. An item without an answer is a failed call.

    A file without any answer holds only the prompts, and gives no recordings.
    """
    items = read_json(file)
    if not isinstance(items, dict):
        raise wrong(file, f"a {type(items).__name__}", "an object with items by key")

    recorded = []
    for key, item in items.items():
        where = f"{file}, key {key!r}"
        if not isinstance(item, dict) or not isinstance(item.get("prompt"), str):
            raise wrong(where, reprlib.repr(item), "an item with a text 'prompt'")

        prompt = without_surrogates(item["prompt"])
        answer = item.get("answer")
        if answer is None:
            recorded.append(Recording(where, prompt, NO_ANSWER))
        elif isinstance(answer, str):
            reply = Reply(without_surrogates(answer), STOP)
            recorded.append(Recording(where, prompt, reply))
        else:
            raise wrong(where, f"answer {reprlib.repr(answer)}", "a text")

    if any(recording.reply != NO_ANSWER for recording in recorded):
        yield from recorded


def _log_recordings(file: Path) -> Iterator[Recording]:
    """Read the recordings of a log of inspect_ai: chats up to the model's turn, epochs as rounds.

    Samples without a reply are skipped, and so are scored answers, which `make view` shows as text.
    The model of a reply is the model that the log names.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise EngineError(
            f"{file} is a log of inspect_ai, which is not in this environment: make 10 "
            "ENGINE=replay RECORDINGS=<file.eval> makes one that has it, or pip install inspect-ai"
        ) from error

    _check_archive(file)
    try:
        log = read_eval_log(file, resolve_attachments=True)
    except Exception as error:  # inspect_ai raises whatever a text that is no log makes it meet
        raise wrong(file, type(error).__name__, "a log of inspect_ai") from error

    for sample in log.samples or ():
        metadata = sample.metadata
        # Logs that earlier versions of `make view` wrote say the mode in other words.
        is_scored = metadata.get("mode") == "scored" or metadata.get("asked") == "over choices"
        if sample.output.choices and not is_scored:
            yield _sample_recording(file, sample)


def _check_archive(file: Path) -> None:
    """Raise an InputError if a log's archive is damaged, or larger than `LARGEST_LOG` unpacked.

    inspect_ai checks neither. It accepts a changed reply, skips a sample that the archive no longer
    lists, and reads a packed terabyte until the memory is full.
    """
    expected = f"a log of inspect_ai, at most {LARGEST_LOG:,} bytes of text"
    try:
        with file.open("rb") as stream, ZipFile(stream) as archive:
            members = archive.infolist()
            # The list of members is all that stands from here to the archive's end.
            stream.seek(archive.start_dir)
            n_listed = stream.read().count(_ENTRY)
            # Where the length in an entry has changed, zipfile skips the entries behind it.
            if len(members) != n_listed:
                raise BadZipFile(f"it lists {len(members)} of {n_listed} members")

            n_bytes = sum(member.file_size for member in members)
            for member in members:
                # A log that is too large already is refused below, without unpacking more of it.
                if n_bytes > LARGEST_LOG:
                    break
                n_bytes += _unstated_bytes(archive, member)
    except Exception as error:  # of the archive, or of any of the ways to pack
        raise wrong(file, f"a damaged archive ({error})", expected) from error
    if n_bytes > LARGEST_LOG:
        raise wrong(file, "a larger archive", expected)


def _unstated_bytes(archive: ZipFile, member: ZipInfo) -> int:
    """Unpack a member of an archive, and count the bytes beyond the size that the archive states.

    Raise a BadZipFile if its checksum does not fit. Unpacking stops after `LARGEST_LOG` bytes.
    """
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED, ZIP_ZSTANDARD):
        raise BadZipFile("inspect_ai packs otherwise")

    stated = member.file_size
    # zipfile would read no further than the archive states.
    member.file_size = LARGEST_LOG + 1
    n_bytes = 0
    # zipfile compares the checksum when it reaches the end of a member.
    with archive.open(member) as stream:
        while n_bytes <= LARGEST_LOG and (block := stream.read(_BLOCK_SIZE)):
            n_bytes += len(block)
    return n_bytes - stated


def _sample_recording(file: Path, sample: Any) -> Recording:
    """Make the recording of one sample of a log."""
    # The prompt ends where the model's turn begins, which the log holds, too.
    turns = takewhile(lambda message: message.role != "assistant", sample.messages)
    output = sample.output
    content = output.message.content_list
    thoughts = [part.reasoning for part in content if part.type == "reasoning"]
    was_cut = output.stop_reason in ("max_tokens", "model_length")

    reply = Reply(
        output.completion,
        LENGTH if was_cut else STOP,
        model=output.model,
        reasoning="\n".join(thoughts),
    )
    return Recording(
        f"{file}, sample {sample.id}",
        as_text(*(turn.text for turn in turns)),
        reply,
        sample.epoch,
        _category(sample.metadata),
    )


def _category(metadata: Mapping) -> str:
    """Return the category that a sample of a log names, "" if it is not a text."""
    category = metadata.get(CATEGORY, "")
    return category if isinstance(category, str) else ""
