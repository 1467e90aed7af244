"""Bytes of a file: opened whatever its compression, and cut into blocks that end at a line's end."""

from __future__ import annotations

import atexit
import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from judged.errors import NO_CONTENT, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

BLOCK = 1 << 20
"""Bytes read at a time: enough for the parser to work in bulk, few enough to keep memory small."""

LONGEST = 1 << 26
"""Bytes of the longest line that is read: a document on a line of JSON may be long."""

STDIN = "<stdin>"
BOM = b"\xef\xbb\xbf"
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zXZ": "xz"}


@dataclass(frozen=True)
class FileHash:
    """SHA-256 of the bytes of files, one after the other, computed when it is first asked for.

    Hashing takes a seventh of the time of evaluating a large run, and most results do not show the hash.

    Parameters
    ----------
    files
        Path, size in bytes, time of the last change in nanoseconds, and inode of each file before it was read.
    known
        The hash, where it was computed before.
    """

    files: tuple[tuple[Path, int, int, int], ...] = ()
    known: str | None = None

    @classmethod
    def of(cls, paths: Iterable[Path]) -> FileHash:
        """Record the state of files that are about to be read; a file that does not exist has none."""
        return cls(tuple((path.absolute(), *state) for path in paths if (state := _state(path))))

    @cached_property
    def hexdigest(self) -> str | None:
        """The hash; None without files, and where a file has changed since it was read."""
        if self.known or not self.files:
            return self.known
        sha256 = hashlib.sha256()
        try:
            for path, *_ in self.files:
                with path.open("rb", buffering=0) as file:
                    while chunk := file.read(BLOCK):
                        sha256.update(chunk)
        except OSError:
            return None
        changed = any(_state(path) != tuple(state) for path, *state in self.files)
        return None if changed else sha256.hexdigest()


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return size, time of the last change, and inode; None if the file cannot be read."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


class _Counted(io.RawIOBase):
    """A raw file that reports how many bytes each read took."""

    def __init__(self, raw: io.FileIO, progress: Callable[[int], None]) -> None:
        self._raw = raw
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        count = self._raw.readinto(buffer) or 0
        self._progress(count)
        return count


def compression(path: str | Path) -> str:
    """Name the compression of a file by its first bytes; ``""`` for none."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(6)
    except ValueError:  # a zero byte in it, or half a character
        raise InputError("this cannot be the name of a file", fix="check the path", path=ascii(str(path))) from None
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


@contextmanager
def opened(path: str | Path, progress: Callable[[int], None] | None = None) -> Generator[IO[bytes]]:
    """Open a file for reading its decompressed bytes; ``progress`` is called with the number of bytes of each read."""
    packed = ""
    try:
        packed = compression(path)
        with Path(path).open("rb", buffering=0) as plain:
            raw = io.BufferedReader(_Counted(plain, progress), BLOCK) if progress else plain
            with _decompressed(raw, packed) as file:
                yield file
    except FileNotFoundError:
        raise InputError("there is no such file", fix="check the path", path=str(path), rule=NO_CONTENT) from None
    except IsADirectoryError:
        raise InputError("this is a folder", fix="name a file in it", path=str(path), rule=NO_CONTENT) from None
    except PermissionError:
        raise InputError(
            "this file may not be read", fix="check its permissions", path=str(path), rule=NO_CONTENT
        ) from None
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        what = "the compressed data is cut short or damaged" if packed else "it cannot be read"
        raise InputError(
            f"{what} ({error})", fix="make or fetch the file again", path=str(path), rule="truncated" if packed else ""
        ) from None


def _decompressed(raw: Any, packed: str) -> Any:
    if packed == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if packed == "bz2":
        return bz2.BZ2File(raw)
    if packed == "xz":
        return lzma.LZMAFile(raw)
    if packed == "zstd":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
    return raw


def blocks(
    path: str | Path,
    progress: Callable[[int], None] | None = None,
    size: int = BLOCK,
    *,
    longest: int = LONGEST,
    returns: bool = False,
) -> Iterator[bytes]:
    """Yield a file's bytes in blocks of about ``size``, each ending where a line ends."""
    # A byte order mark is left out. The last line may lack its newline. With `returns` lines may also end with a
    # carriage return, as on very old machines.
    with opened(path, progress) as file:
        rest: list[bytes] = []  # joined once: a line of many blocks would be copied with each of them
        length, first, before = 0, True, 0
        while chunk := file.read(size):
            if first:
                chunk, first = chunk.removeprefix(BOM), False
            end = chunk.rfind(b"\n") + 1
            if returns and not end:
                end = chunk.rfind(b"\r", 0, -1) + 1  # not the last byte: a newline may follow
            if end:
                before += length + end
                yield b"".join((*rest, memoryview(chunk)[:end]))
                rest, length = [], 0
            rest.append(chunk[end:])
            length += len(rest[-1])
            if length > longest:
                raise _too_long(path, longest, before)
        if length:
            yield b"".join(rest)


def _too_long(path: str | Path, longest: int, before: int) -> InputError:
    """Name the line that begins after so many bytes."""
    line = 1
    with opened(path) as file:
        while before > 0 and (chunk := file.read(min(before, BLOCK))):
            line += chunk.count(b"\n")
            before -= len(chunk)
    problem = f"a line of more than {longest:,} bytes"
    return InputError(
        problem, fix="check that this is the right file, and that its lines end", path=str(path), line=line
    )


def head(path: str | Path, size: int = 1 << 16) -> bytes:
    """Give the first bytes of a file, decompressed, without a byte order mark."""
    with opened(path) as file:
        return file.read(size).removeprefix(BOM)


def text(path: str | Path, where: str, *, longest: int = LONGEST) -> str:
    """Give a whole file as text, each line ended by a newline."""
    data = b"".join(blocks(path, longest=longest, returns=True))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("this is UTF-16 (Windows PowerShell writes it)", fix="save it as UTF-8", path=where)
    try:
        return data.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError("this file is not UTF-8", fix="save the file as UTF-8", path=where, line=line) from None


def exists(path: str | Path) -> bool:
    r"""Whether there is such a file; for a name that no file can have, pathlib would raise.

    >>> exists("a" * 300), exists("no\0file")
    (False, False)
    """
    return os.path.exists(path)  # noqa: PTH110


def local(path: str | Path) -> Path:
    """Give a path that can be read twice: standard input (``-``) or a pipe is kept in a temporary file."""
    path = Path(path)
    if str(path) == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  it is where it was closed (<&-)
            raise InputError("it is closed", fix="name a file, or send one", path=STDIN)
        return _copied(sys.stdin.buffer)
    if exists(path) and path.is_fifo():
        with path.open("rb") as pipe:
            return _copied(pipe)
    return path


def _copied(stream: IO[bytes]) -> Path:
    import shutil  # what is no file is seldom read, and both import much
    import tempfile

    if os.path.isdir("/proc/self/fd"):  # noqa: PTH112  a file without a name can be opened again: a kill leaves nothing
        nameless = tempfile.TemporaryFile()  # noqa: SIM115  open as long as this process is
        atexit.register(nameless.close)
        shutil.copyfileobj(stream, nameless, BLOCK)
        nameless.flush()
        return Path(f"/proc/{os.getpid()}/fd/{nameless.fileno()}")
    with tempfile.NamedTemporaryFile(prefix="judged-stdin-", delete=False) as copy:
        shutil.copyfileobj(stream, copy, BLOCK)
    kept = Path(copy.name)
    atexit.register(kept.unlink, missing_ok=True)
    return kept
