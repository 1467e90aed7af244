"""Puts what was sent on disk, unpacked, under a name of ours: only then does a reader see it."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from judged.data import files
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 16  # bytes; fewer where lines may not be as long
_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".xml", ".txt")  # those by which readers tell formats
_XZ_MEMORY = 256 << 20  # bytes; what xz files ask for, when no one had harm in mind, is less
_BY_NAME = "open it by name: judged serve QRELS RUN"
_FOREIGN = (  # the first bytes of what is not text, once it is unpacked
    ((b"PK\x03\x04",), "this is a zip archive or an Excel workbook", "unpack it, or save the sheet as CSV"),
    ((b"PK\x05\x06",), "this is an empty zip archive", "choose the file that should be in it"),
    ((b"PAR1", b"ARROW1"), "Parquet and Arrow are not read here, as their size cannot be known beforehand", _BY_NAME),
    ((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"), "it is packed twice", "unpack it once"),
    ((b"\xff\xfe", b"\xfe\xff"), "this is UTF-16 (Windows PowerShell writes it)", "save it as UTF-8"),
)


@dataclass(frozen=True)
class Limits:
    """How much may be opened in the browser; there is no limit for files that are named on the command line."""

    runs: int = 50
    file: int = 512 << 20  # bytes of one file as it is sent
    total: int = 1 << 30  # bytes of all that is sent at once
    unpacked: int = 2 << 30  # bytes of all files after they are unpacked
    whole: int = 128 << 20  # bytes of a file that is read at once: topics, attributes, JSON
    line: int = 1 << 20  # bytes of a line of text
    long_line: int = 64 << 20  # the same for documents, and for JSON, all of which may stand in one line
    name: int = 80  # characters of a name


@dataclass(frozen=True)
class Stored:
    """A file that was sent."""

    path: Path  # where it stands, under a name of ours
    shown: str  # what it is called
    size: int  # its bytes, unpacked


def shown_name(given: str | None, otherwise: str, most: int = Limits.name) -> str:
    """Make a name that can be shown of what a browser says: no folders, nothing that does not print, not too long.

    >>> shown_name("../../etc/passwd", "qrels"), shown_name(None, "qrels"), shown_name("a" * 200, "")[35:45]
    ('passwd', 'qrels', 'aaaaa...aa')
    """
    base = (given or "").replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(char for char in base if char.isprintable()).strip()
    if not name.strip("."):
        return otherwise
    return name if len(name) <= most else f"{name[: most // 2]}...{name[-(most - most // 2 - 3) :]}"


def store(sent: IO[bytes], shown: str, place: Path, limits: Limits, *, room: int, documents: bool = False) -> Stored:
    """Write a file that was sent to disk, unpacked."""
    plain = Path(f"{place}{_ending(shown)}")
    packed = Path(f"{place}.sent")
    try:
        step = min(_CHUNK, limits.line)  # so that only the ends of chunks need to be looked at
        _copied(iter(partial(sent.read, step), b""), packed, limits.file, shown, "as it is sent")
        _refuse_greedy(packed, shown)
        with files.opened(packed) as unpacked:
            lines = _checked(iter(partial(unpacked.read, step), b""), shown, limits, documents=documents)
            size = _copied(lines, plain, room, shown, "unpacked")
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=shown) from None
    except OSError as error:
        fix = "make room in the folder of temporary files"
        raise InputError(f"it cannot be kept ({error.strerror or error})", fix=fix, path=shown) from None
    finally:
        packed.unlink(missing_ok=True)
    return Stored(plain, shown, size)


def _ending(shown: str) -> str:
    suffixes = [suffix.lower() for suffix in PurePosixPath(shown).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix in _ENDINGS), "")


def _copied(chunks: Iterator[bytes], place: Path, most: int, shown: str, how: str) -> int:
    """Write chunks to a new file as long as there is room, and count their bytes."""
    size = 0
    with place.open("xb") as out:
        for chunk in chunks:
            size += len(chunk)
            if size > most:
                fix = f"choose smaller files, or {_BY_NAME}"
                raise InputError(f"it has more than {most:,} bytes {how}", fix=fix, path=shown)
            out.write(chunk)
    return size


def _checked(chunks: Iterator[bytes], shown: str, limits: Limits, *, documents: bool) -> Iterator[bytes]:
    """Pass chunks on as long as they look like lines of text."""
    longest, most, line, size = limits.line, 0, 0, 0
    for chunk in chunks:
        if not size:
            _refuse_foreign(chunk, shown)
            start = chunk.removeprefix(files.BOM).lstrip()[:1]
            longest = limits.long_line if documents or start in {b"{", b"["} else limits.line
            most = limits.whole if start == b"[" or (start == b"{" and not documents) else 0
        size += len(chunk)
        if 0 < most < size:
            fix = f"write one record a line of text, or {_BY_NAME}"
            raise InputError(f"JSON of more than {most:,} bytes", fix=fix, path=shown)
        if b"\0" in chunk:
            raise InputError("this is not text: it holds zero bytes", fix="choose text, CSV or JSON", path=shown)
        ends = [chunk.find(b"\n"), chunk.find(b"\r")]
        begins = min((end for end in ends if end >= 0), default=len(chunk))
        if line + begins > longest:
            raise InputError(f"a line has more than {longest:,} bytes", fix="choose a file of lines", path=shown)
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        line = line + len(chunk) if last < 0 else len(chunk) - last - 1
        yield chunk
    if not size:
        raise InputError("the file is empty", fix="choose a file with at least one line", path=shown)


def _refuse_foreign(head: bytes, shown: str) -> None:
    for marks, problem, fix in _FOREIGN:
        if head.startswith(marks):
            raise InputError(problem, fix=fix, path=shown)
    if head[257:262] == b"ustar":
        raise InputError("this is a tar archive", fix="unpack it and choose the files in it", path=shown)


def _refuse_greedy(packed: Path, shown: str) -> None:
    """Refuse xz data that wants much memory before the first byte comes out."""
    if files.compression(packed) != "xz":
        return
    with packed.open("rb") as file:
        try:
            lzma.LZMADecompressor(memlimit=_XZ_MEMORY).decompress(file.read(_CHUNK), max_length=1)
        except lzma.LZMAError as error:
            raise InputError(f"it cannot be unpacked ({error})", fix="pack it anew", path=shown) from None
