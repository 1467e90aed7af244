"""The files of a log: what is in folders and archives, what layout they have, and what is no log among them."""

from __future__ import annotations

import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

from judged.data import files
from judged.errors import InputError
from judged.online.readers.raw import PLACES, Trouble

if TYPE_CHECKING:
    from judged.online.engine import Engine

Form: TypeAlias = Literal["lines", "csv", "parquet"]
"""JSON lines, a table as text, Parquet."""

Opener: TypeAlias = "Callable[[str, float | None], None] | None"
"""Told what is being done, and how much of it is done already (0 to 1, None where that is not known)."""

LAYOUTS = {
    "ubi": "User Behavior Insights: JSON lines, OpenSearch bulk files, CSV or Parquet with action_name or user_query",
    "wscd": "Yandex' challenges: lines of numbers with tabs between them",
    "trec-session": "the TREC Session track: XML that begins with <sessiontrack",
    "open-bandit": "the Open Bandit Dataset: CSV with item_id, position, click, propensity_score",
    "clickmodels": "a line a page, with lists of urls and of clicks, tabs between; only when it is asked for",
    "mapping": "any CSV, JSON lines or Parquet, with a mapping file that names the columns",
}
"""The layouts that are read, and how they are known."""

UBI_NAMES = ("action_name", "user_query", "query_response_hit_ids", "query_response_object_ids", "query_id")
_ZIP = b"PK\x03\x04"
_UTF16 = ("this is UTF-16 (Windows PowerShell writes it)", "save it as UTF-8")
_FOREIGN = {
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"SQLite format 3": ("this is an SQLite database", "export its tables as CSV or Parquet"),
    b"ARROW1": ("this is an Arrow file", "write the table as Parquet"),
}
_WIDE = re.compile(rb"[\t -~]\0[\t -~]\0|\0[\t -~]\0[\t -~]")
_BULK = re.compile(rb'\s*\{\s*"(index|create)"\s*:\s*\{')
_RECORD = re.compile(rb"\s*([\w.:-]+\s)?\s*\{")
_ENDING = re.compile(
    r"\.(csv|tsv|jsonl|ndjson|json|parquet)\b(?!.*\.(csv|tsv|jsonl|ndjson|json|parquet)\b)", re.IGNORECASE
)
_LIST = re.compile(rb"\s*\[\s*\{")
_WSCD = re.compile(rb"\d+\t(M\t\d+|\d+\t[QTC]\t|\d+\t\d+\t[QTC]\t)")
_SKIPPED = (".", "_")
ABOUT = re.compile(
    r"(readme|licen[cs]e|copying|notice|changelog|makefile)(\.txt)?|thumbs\.db|desktop\.ini|"
    r".*\.(md|rst|html?|pdf|png|jpe?g|gif|svg|webp|ico|crc|md5|sha1|sha256|toml|ya?ml|py|ipynb|sh|sql|docx?|xlsx?)",
    re.IGNORECASE,
)
"""Names of files about data: texts, pictures, checksums, settings, programs."""


@dataclass(frozen=True)
class Part:
    """One file, or one file of an archive.

    Parameters
    ----------
    name
        What messages call it.
    path
        Where it is.
    member
        Which file of the archive; empty where it is none.
    found
        It was found in a folder or an archive, and not named by anybody.
    hidden
        It was found, and programs put such files beside data: ``_SUCCESS``, ``.part.crc``, ``__MACOSX/``.
    """

    name: str
    path: Path
    member: str = ""
    found: bool = False
    hidden: bool = False


def parts_of(paths: Sequence[str | Path | Part]) -> list[Part]:
    """Give the files that paths stand for: folders are searched, archives opened, ``-`` is standard input.

    What is a part already stays as it is: a pipe can be read only once. Hidden files are
    among the parts too: see `judged.online.readers.files`.

    Raises
    ------
    InputError
        If a path does not exist, or a folder or archive holds no file.
    """
    if not paths:
        raise InputError("no files are given", fix="name at least one log")
    return [part for path in paths for part in ([path] if isinstance(path, Part) else _parts(path))]


def _parts(path: str | Path) -> list[Part]:
    where = files.STDIN if str(path) == "-" else str(path)
    file = files.local(path)
    if file.is_dir():
        found = [part for one in sorted(file.rglob("*")) if one.is_file() for part in _in_folder(one, file)]
        if all(one.hidden for one in found):
            raise InputError("no file in this folder", fix="name a folder that holds the log", path=where)
        return found
    return _in_file(Part(where, file))


def _in_folder(file: Path, folder: Path) -> list[Part]:
    inside = str(file.relative_to(folder))
    part = Part(str(file), file, found=True, hidden=_is_beside(inside))
    return [part] if part.hidden or ABOUT.fullmatch(file.name) else _in_file(part)


def _in_file(part: Part) -> list[Part]:
    """Give the part; the parts of an archive in its place."""
    if first_bytes(part, 4) != _ZIP:
        return [part]
    try:
        with zipfile.ZipFile(part.path) as archive:
            names = [one.filename for one in archive.infolist() if not one.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise InputError(f"the archive is damaged ({error})", fix="make or fetch it again", path=part.name) from None
    if all(map(_is_beside, names)):
        raise InputError("no file in this archive", fix="give an archive that holds the log", path=part.name)
    return [Part(f"{part.name}/{name}", part.path, name, found=True, hidden=_is_beside(name)) for name in names]


def _is_beside(name: str) -> bool:
    return any(step.startswith(_SKIPPED) for step in name.split("/"))


@contextmanager
def opened(part: Part) -> Generator[IO[bytes]]:
    """Open a part for reading its bytes, unpacked.

    Raises
    ------
    InputError
        If it is not there, or damaged.
    """
    if not part.member:
        try:
            with files.opened(part.path) as file:
                yield file
        except InputError as error:
            raise InputError(
                error.problem, fix=error.fix, path=error.path if error.line else part.name, line=error.line
            ) from None
        return
    try:
        with zipfile.ZipFile(part.path) as archive, archive.open(part.member) as file:
            yield file
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"the archive cannot be read ({error})", fix="make it again", path=part.name) from None


def first_bytes(part: Part, size: int = 1 << 18) -> bytes:
    """Give the first bytes of a part, unpacked, without a byte order mark."""
    with opened(part) as file:
        return file.read(size).removeprefix(files.BOM)


def plain_path(part: Part, engine: Engine) -> Path:
    """Give a file that is not packed: Parquet is read here and there in it. It lies in the engine's folder."""
    if not part.member and not files.compression(part.path):
        return part.path
    copy = engine.folder / f"unpacked-{sum(1 for _ in engine.folder.glob('unpacked-*'))}"
    with opened(part) as file, copy.open("wb") as out:
        shutil.copyfileobj(file, out, files.BLOCK)
    return copy


class UnknownLayoutError(InputError):
    """A file that is no log, as far as can be told; what is a log in a form that is not read is another error."""


def layout_of(parts: Sequence[Part]) -> str:
    """Find the layout of a log.

    Raises
    ------
    InputError
        If it is none that is known, or the files have different ones.
    """
    found: dict[str, Part] = {}
    for part in parts:
        if layout := known_layout(part):
            found.setdefault(layout, part)
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        problem = f"it looks like {other}, and {first.name} like {one}"
        raise InputError(problem, fix="read logs of one layout at a time", path=second.name)
    return next(iter(found), "ubi")


def known_layout(part: Part) -> str:
    """Find the layout of a file; empty where nothing stands in it.

    Raises
    ------
    UnknownLayoutError
        If it is none that is known.
    InputError
        If it is in a form that is not read.
    """
    head = first_bytes(part)
    if not head.strip():
        return ""
    if head.lstrip().startswith(b"<"):
        if b"<sessiontrack" in head or b"<session " in head:
            return "trec-session"
        raise _unknown(part, "XML that is no TREC Session log")
    if _WSCD.match(head):
        return "wscd"
    header = set(_names(head))
    if {"item_id", "position", "click", "propensity_score"} <= header:
        return "open-bandit"
    if why := _foreign(head):
        raise InputError(why[0], fix=why[1], path=part.name)
    of_queries = {"query_id", "user_query"} <= header or bool(set(UBI_NAMES[2:4]) & header)
    if head.startswith(b"PAR1") or _is_ubi_lines(head) or "action_name" in header or of_queries:
        return "ubi"
    if _RECORD.match(head):
        raise _unknown(part, "JSON without the names of UBI (action_name, user_query, query_id)")
    line = head.lstrip().split(b"\n", 1)[0][:80].decode(errors="replace").strip()
    raise _unknown(part, f"a file that begins with {line!r}")


def form_of(part: Part, names: Collection[str], head: bytes | None = None) -> Form | None:
    """Say how a log is written; None where nothing tells.

    Parameters
    ----------
    part, head
        The file and, where they were read already, its first bytes.
    names
        Of columns, one of which the header of a table has.

    Raises
    ------
    InputError
        If it is in a form that is not read.
    """
    head = first_bytes(part) if head is None else head
    if head.startswith(b"PAR1"):
        return "parquet"
    if why := head.strip() and _foreign(head):
        raise InputError(why[0], fix=why[1], path=part.name)
    lines = head.split(b"\n", 200)[:200]
    ending = _ENDING.search(part.name)
    if not head.strip() or _RECORD.match(head):
        return "lines"
    if ending:
        return "csv" if ending[1].lower() in {"csv", "tsv"} else "lines"
    if set(names) & set(_names(head)):
        return "csv"
    return "lines" if any(map(_RECORD.match, lines)) else None


def unreadable(head: bytes) -> tuple[str, str] | None:
    """Say what a file is and what to do about it, if no reader of text can read it."""
    words = next((words for magic, words in _FOREIGN.items() if head.startswith(magic)), None)
    return words or (_UTF16 if _WIDE.match(head) else None)


def _foreign(head: bytes) -> tuple[str, str] | None:
    """Say what a file is and what to do about it, if it may be a log in a form that is not read."""
    if why := unreadable(head):
        return why
    if b"\n" not in head and b"\r" in head.strip():
        return "its lines end with carriage returns alone, so that it is a single line", "write newlines"
    if _LIST.match(head):
        return "this is one JSON list", "write one record a line, without brackets"
    return None


def _is_ubi_lines(head: bytes) -> bool:
    """Whether one of the first lines is a record of UBI: broken ones may stand before it."""
    for line in head.split(b"\n", 200)[:200]:
        if _BULK.match(line):
            return True
        if _RECORD.match(line) and any(f'"{name}"'.encode() in line for name in UBI_NAMES):
            return True
    return False


def _names(head: bytes) -> list[str]:
    first = head.split(b"\n", 1)[0].decode(errors="replace").strip()
    delimiter = max(",;\t", key=first.count)
    return [name.strip().strip("\"'") for name in first.split(delimiter)]


def _unknown(part: Part, what: str) -> UnknownLayoutError:
    known = "; ".join(f"{name}: {how}" for name, how in LAYOUTS.items())
    problem = f"{what} is no layout of a log that is known"
    return UnknownLayoutError(problem, fix=f"give one of these. {known}", path=part.name)


def without_strangers(parts: Sequence[Part], *, said: bool) -> tuple[list[Part], tuple[Trouble, ...]]:
    """Leave out what was found in a folder or an archive and is clearly no log.

    Parameters
    ----------
    parts
        What `parts_of` gives. What was named stays, whatever it is.
    said
        The user says which layout it is: then only names and zero bytes tell that a file is no log.

    Returns
    -------
    tuple
        The log's files, and what was left out.

    Raises
    ------
    UnknownLayoutError
        If nothing would be left.
    """
    kept: list[Part] = []
    hidden: list[str] = []
    strange: dict[str, UnknownLayoutError] = {}
    for part in parts:
        if part.hidden:
            hidden.append(part.name)
        elif part.found and (why := _stranger(part, said=said)):
            strange[part.name] = why
        else:
            kept.append(part)
    if strange and not kept:
        raise next(iter(strange.values()))
    beside: list[Trouble] = []
    if hidden:
        beside.append(Trouble.of("mapping", "hidden-file", "folder", *hidden[:PLACES], rows=len(hidden)))
    if strange:
        told = [f"{PurePath(name).name}: {error.problem}" for name, error in list(strange.items())[:PLACES]]
        more = "; ".join([*told, *(["..."] if len(strange) > PLACES else [])])
        named = list(strange)[:PLACES]
        beside.append(Trouble.of("mapping", "skipped-file", "folder", *named, rows=len(strange), more=more))
    return kept, tuple(beside)


def _stranger(part: Part, *, said: bool) -> UnknownLayoutError | None:
    """Say why a file is no log; nothing where it may be one."""
    name = PurePath(part.member or part.path).name
    if ABOUT.fullmatch(name):
        return UnknownLayoutError("its name is that of a file about data", fix="name a log", path=part.name)
    if said:
        binary = b"\0" in (head := first_bytes(part)) and not head.startswith(b"PAR1")
        return UnknownLayoutError("it holds zero bytes", fix="name a log", path=part.name) if binary else None
    try:
        known_layout(part)
    except UnknownLayoutError as error:
        return error
    return None
