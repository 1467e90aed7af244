"""Files of a log: files in folders and archives, their layouts, and files that are no logs."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from judged.data import files
from judged.errors import InputError
from judged.online.readers.raw import MAX_PLACES, ReadFinding

if TYPE_CHECKING:
    from judged.online.engine import Database

FileFormat: TypeAlias = Literal["lines", "csv", "parquet"]
"""JSON lines, a table as text, or Parquet."""

ProgressCallback: TypeAlias = "Callable[[str, float | None], None] | None"
"""Function called with a description and the fraction done (None: unknown)."""

_TABLES = files.packaged_toml("online/readers/layouts.toml")
LAYOUTS: dict[str, str] = _TABLES["descriptions"]
"""Description of each layout that can be read."""

UBI_NAMES = ("action_name", "user_query", "query_response_hit_ids", "query_response_object_ids", "query_id")
_RECORD_LISTS = ("events", "records", "rows", "data", "logs", "queries")  # members with the records of a log
_JSON_HEAD = 1 << 16  # bytes in which a file of JSON lines has a second line
_ZIP = b"PK\x03\x04"
_UTF16 = ("this is UTF-16 (Windows PowerShell writes it)", "save the file as UTF-8")
_UNSUPPORTED = {
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"SQLite format 3": ("this is an SQLite database", "export its tables as CSV or Parquet"),
    b"ARROW1": ("this is an Arrow file", "write the table as Parquet"),
}
# UTF-16 without a byte order mark: ASCII characters with zero bytes between them.
_UTF16_CHARACTERS = re.compile(rb"[\t -~]\0[\t -~]\0|\0[\t -~]\0[\t -~]")
_BULK = re.compile(rb'\s*\{\s*"(index|create)"\s*:\s*\{')
_RECORD = re.compile(rb"\s*([\w.:-]+\s)?\s*\{")
# The last known extension of a name, so that log.json.csv.gz is CSV.
_EXTENSION = re.compile(
    r"\.(csv|tsv|jsonl|ndjson|json|parquet)\b(?!.*\.(csv|tsv|jsonl|ndjson|json|parquet)\b)", re.IGNORECASE
)
_WSCD = re.compile(rb"\d+\t(M\t\d+|\d+\t[QTC]\t|\d+\t\d+\t[QTC]\t)")
_HIDDEN_PREFIXES = (".", "_")
NON_LOG_NAME = re.compile(
    r"(readme|licen[cs]e|copying|notice|changelog|makefile)(\.txt)?|thumbs\.db|desktop\.ini|"
    r".*\.(md|rst|html?|pdf|png|jpe?g|gif|svg|webp|ico|crc|md5|sha1|sha256|toml|ya?ml|py|ipynb|sh|sql|docx?|xlsx?)",
    re.IGNORECASE,
)
"""Names of files that accompany data: texts, pictures, checksums, settings, programs."""


@dataclass(frozen=True)
class LogFile:
    """A file, or a member of an archive.

    Parameters
    ----------
    name
        Name in messages.
    path
        Path of the file or archive.
    member
        Name in the archive; empty if it is in none.
    discovered
        Whether it was found in a folder or archive, not named by the user.
    hidden
        Whether it was found, and is a file that programs put next to data: ``_SUCCESS``, ``.part.crc``, ``__MACOSX/``.
    """

    name: str
    path: Path
    member: str = ""
    discovered: bool = False
    hidden: bool = False


def find_log_files(paths: Sequence[str | Path | LogFile]) -> list[LogFile]:
    """Return the files of paths: of folders and archives all files, ``-`` is standard input.

    A `LogFile` is returned unchanged, because a pipe can be read only once. Hidden files are included.

    Raises
    ------
    InputError
        If a path does not exist, or a folder or archive has no files.
    """
    if not paths:
        raise InputError("no log files", fix="name at least one file")
    return [file for path in paths for file in ([path] if isinstance(path, LogFile) else _expand_path(path))]


def _expand_path(path: str | Path) -> list[LogFile]:
    name = files.STDIN if str(path) == "-" else str(path)
    root = files.local(path)
    if not root.is_dir():
        return _expand_archive(LogFile(name, root))
    paths = sorted(file for file in root.rglob("*") if file.is_file())
    log_files = [log_file for file in paths for log_file in _discover(file, root)]
    if all(log_file.hidden for log_file in log_files):
        raise InputError("no files in this folder", fix="name a folder that has log files", path=name)
    return log_files


def _discover(file: Path, folder: Path) -> list[LogFile]:
    log_file = LogFile(str(file), file, discovered=True, hidden=_is_hidden(str(file.relative_to(folder))))
    return [log_file] if log_file.hidden or NON_LOG_NAME.fullmatch(file.name) else _expand_archive(log_file)


def _expand_archive(file: LogFile) -> list[LogFile]:
    if read_head(file, 4) != _ZIP:
        return [file]
    try:
        with zipfile.ZipFile(file.path) as archive:
            names = [member.filename for member in archive.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        problem = f"the archive is damaged ({error})"
        raise InputError(problem, fix="create or download the file again", path=file.name) from None
    if all(map(_is_hidden, names)):
        raise InputError("no files in this archive", fix="name an archive that has log files", path=file.name)
    return [LogFile(f"{file.name}/{name}", file.path, name, discovered=True, hidden=_is_hidden(name)) for name in names]


def _is_hidden(name: str) -> bool:
    return any(step.startswith(_HIDDEN_PREFIXES) for step in name.split("/"))


@contextmanager
def opened(log_file: LogFile) -> Generator[IO[bytes]]:
    """Open a file to read its decompressed bytes.

    Raises
    ------
    InputError
        If it does not exist, or is damaged.
    """
    if not log_file.member:
        try:
            with files.opened(log_file.path) as file:
                yield file
        except InputError as error:
            path = error.path if error.line else log_file.name
            raise InputError(error.problem, fix=error.fix, path=path, line=error.line) from None
        return
    try:
        with zipfile.ZipFile(log_file.path) as archive, archive.open(log_file.member) as file:
            yield file
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        problem = f"the archive cannot be read ({error})"
        raise InputError(problem, fix="create or download the file again", path=log_file.name) from None


def read_head(log_file: LogFile, size: int = 1 << 18) -> bytes:
    """Return the first bytes of a file, decompressed, without a byte order mark."""
    with opened(log_file) as file:
        return file.read(size).removeprefix(files.BOM)


def unpacked_path(log_file: LogFile, engine: Database) -> Path:
    """Return the path of the decompressed file. The reader of Parquet needs random access."""
    if not log_file.member and not files.compression(log_file.path):
        return log_file.path
    copy = engine.folder / f"unpacked-{sum(1 for _ in engine.folder.glob('unpacked-*'))}"
    with opened(log_file) as file, copy.open("wb") as target:
        shutil.copyfileobj(file, target, files.BLOCK)
    return copy


def split_json(log_file: LogFile, engine: Database) -> LogFile:
    """Return a file with a record per line, if this file is one JSON list, or one object with a list of records."""
    head = b"" if log_file.hidden else read_head(log_file, _JSON_HEAD).lstrip()
    # In a file with a record per line, the second line begins with a brace, too.
    if not head.startswith((b"[", b"{")) or re.search(rb"\n[ \t]*[^\n]*\}\s*\n\{", b"\n" + head):
        return log_file
    with opened(log_file) as file:
        try:
            document = json.load(file)
        except (ValueError, RecursionError):
            return log_file
    lists = [document.get(name) for name in _RECORD_LISTS] if isinstance(document, dict) else [document]
    records = next((value for value in lists if isinstance(value, list) and value and isinstance(value[0], dict)), None)
    if records is None:
        return log_file
    copy = engine.folder / f"unpacked-{sum(1 for _ in engine.folder.glob('unpacked-*'))}"
    copy.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return replace(log_file, path=copy, member="")


def json_objects(log_file: LogFile, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the objects in the first lines of a file, of search results their ``_source``; skip other lines."""
    with opened(log_file) as file:
        for line in islice(file, limit):
            with suppress(ValueError, RecursionError):  # RecursionError: thousands of nested objects
                record = json.loads(line[max(line.find(b"{"), 0) :])
                if isinstance(record, dict):
                    yield record.get("_source", record)


class UnknownLayoutError(InputError):
    """A file that is probably no log. Logs in unsupported formats raise a plain InputError."""


def detect_layout(log_files: Sequence[LogFile]) -> str:
    """Detect the layout of a log.

    Raises
    ------
    InputError
        If a layout is unknown, or the files have different layouts.
    """
    first_files: dict[str, LogFile] = {}
    for log_file in log_files:
        if layout := detect_file_layout(log_file):
            first_files.setdefault(layout, log_file)
    if len(first_files) > 1:
        (layout, log_file), (other_layout, other_file) = list(first_files.items())[:2]
        problem = f"the layout of this file is {other_layout}, but the layout of {log_file.name} is {layout}"
        raise InputError(problem, fix="read logs of one layout at a time", path=other_file.name)
    return next(iter(first_files), "ubi")


def detect_file_layout(log_file: LogFile) -> str:
    """Detect the layout of a file. Return an empty text for an empty file.

    Raises
    ------
    UnknownLayoutError
        If the layout is unknown.
    InputError
        If the format is not supported.
    """
    head = read_head(log_file)
    if not head.strip():
        return ""
    if head.lstrip().startswith(b"<"):
        if b"<sessiontrack" in head or b"<session " in head:
            return "trec-session"
        raise _unknown_layout(log_file, "XML that is not a TREC Session log")
    # Layouts with an unmistakable first line come first. UBI has the most varied formats, so it is last.
    if _WSCD.match(head):
        return "wscd"
    header = set(_header_names(head))
    if {"item_id", "position", "click", "propensity_score"} <= header:
        return "open-bandit"
    if unsupported := _unsupported_format(head):
        raise InputError(unsupported[0], fix=unsupported[1], path=log_file.name)
    has_query_names = {"query_id", "user_query"} <= header or bool(set(UBI_NAMES[2:4]) & header)
    if head.startswith(b"PAR1") or _has_ubi_records(head) or "action_name" in header or has_query_names:
        return "ubi"
    if layout := _event_layout(head):
        return layout
    if _RECORD.match(head):
        raise _unknown_layout(log_file, "JSON without the fields of UBI (action_name, user_query, query_id)")
    line = head.lstrip().split(b"\n", 1)[0][:80].decode(errors="replace").strip()
    raise _unknown_layout(log_file, f"a file that begins with {line!r}")


def detect_format(log_file: LogFile, names: Collection[str], head: bytes | None = None) -> FileFormat | None:
    """Detect the format of a file. Return None if it is unknown.

    Parameters
    ----------
    log_file, head
        The file, and its first bytes if they were read already.
    names
        Column names of which the header of a table has at least one.

    Raises
    ------
    InputError
        If the format is not supported.
    """
    head = read_head(log_file) if head is None else head
    if head.startswith(b"PAR1"):
        return "parquet"
    if unsupported := head.strip() and _unsupported_format(head):
        raise InputError(unsupported[0], fix=unsupported[1], path=log_file.name)
    lines = head.split(b"\n", 200)[:200]
    extension = _EXTENSION.search(log_file.name)
    if not head.strip() or _RECORD.match(head):
        return "lines"
    if extension:
        return "csv" if extension[1].lower() in {"csv", "tsv"} else "lines"
    if set(names) & set(_header_names(head)):
        return "csv"
    return "lines" if any(map(_RECORD.match, lines)) else None


def unreadable_reason(head: bytes) -> tuple[str, str] | None:
    """Return problem and fix if a file is not readable as text, else None."""
    reason = next((reason for magic, reason in _UNSUPPORTED.items() if head.startswith(magic)), None)
    return reason or (_UTF16 if _UTF16_CHARACTERS.match(head) else None)


def _unsupported_format(head: bytes) -> tuple[str, str] | None:
    if reason := unreadable_reason(head):
        return reason
    # Old Mac OS line ends.
    if b"\n" not in head and b"\r" in head.strip():
        return "the lines end with carriage returns, so the file would be read as a single line", "use newlines"
    return None


def _event_layout(head: bytes) -> str:
    records = [line for line in head.split(b"\n", 200)[:200] if _RECORD.match(line)]
    for layout, names in _TABLES["members"].items():
        if any(all(f'"{name}"'.encode() in record for name in names) for record in records):
            return layout
    return ""


def _has_ubi_records(head: bytes) -> bool:
    # Broken lines can precede the first record. Other logs have a query_id, too.
    for line in head.split(b"\n", 200)[:200]:
        if _BULK.match(line):
            return True
        if _RECORD.match(line) and any(f'"{name}"'.encode() in line for name in UBI_NAMES[:-1]):
            return True
    return False


def _header_names(head: bytes) -> list[str]:
    header = head.split(b"\n", 1)[0].decode(errors="replace").strip()
    delimiter = max(",;\t", key=header.count)
    return [name.strip().strip("\"'") for name in header.split(delimiter)]


def _unknown_layout(log_file: LogFile, description: str) -> UnknownLayoutError:
    layouts = "; ".join(f"{name}: {layout}" for name, layout in LAYOUTS.items())
    problem, fix = f"{description} has no known log layout", f"use one of these layouts. {layouts}"
    return UnknownLayoutError(problem, fix=fix, path=log_file.name)


def skip_non_logs(log_files: Sequence[LogFile], *, has_layout: bool) -> tuple[list[LogFile], tuple[ReadFinding, ...]]:
    """Skip files of folders and archives that are clearly no logs.

    Parameters
    ----------
    log_files
        Result of `find_log_files`. Files that the user named are never skipped.
    has_layout
        Whether the user named the layout. Then only file names and zero bytes show that a file is no log.

    Returns
    -------
    tuple
        The log files, and findings about skipped files.

    Raises
    ------
    UnknownLayoutError
        If all files are skipped.
    """
    logs: list[LogFile] = []
    hidden: list[str] = []
    non_logs: dict[str, UnknownLayoutError] = {}
    for log_file in log_files:
        if log_file.hidden:
            hidden.append(log_file.name)
        elif log_file.discovered and (error := _non_log_error(log_file, has_layout=has_layout)):
            non_logs[log_file.name] = error
        else:
            logs.append(log_file)
    if non_logs and not logs:
        raise next(iter(non_logs.values()))
    findings: list[ReadFinding] = []
    if hidden:
        places = hidden[:MAX_PLACES]
        findings.append(ReadFinding.from_rule("mapping", "hidden-file", "folder", *places, rows=len(hidden)))
    if non_logs:
        places = list(non_logs)[:MAX_PLACES]
        reasons = [f"{PurePath(name).name}: {non_logs[name].problem}" for name in places]
        more = "; ".join([*reasons, *(["..."] if len(non_logs) > MAX_PLACES else [])])
        rows = len(non_logs)
        findings.append(ReadFinding.from_rule("mapping", "skipped-file", "folder", *places, rows=rows, more=more))
    return logs, tuple(findings)


def _non_log_error(log_file: LogFile, *, has_layout: bool) -> UnknownLayoutError | None:
    name = PurePath(log_file.member or log_file.path).name
    if NON_LOG_NAME.fullmatch(name):
        return UnknownLayoutError("files with this name are not read as logs", fix="use a log file", path=log_file.name)
    if has_layout:
        is_binary = b"\0" in (head := read_head(log_file)) and not head.startswith(b"PAR1")
        return (
            UnknownLayoutError(
                "it contains NUL characters, so it is not text", fix="use a log file", path=log_file.name
            )
            if is_binary
            else None
        )
    try:
        detect_file_layout(log_file)
    except UnknownLayoutError as error:
        return error
    return None
