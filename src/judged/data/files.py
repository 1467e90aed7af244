"""Read the bytes of compressed or uncompressed files, also in blocks that end at line ends."""

from __future__ import annotations

import atexit
import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import tomllib
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from judged.errors import NO_CONTENT, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

BLOCK = 1 << 20
"""Bytes of a block: many enough for fast parsing, few enough to need little memory."""

LONGEST = 1 << 26
"""Maximum bytes of a line. Documents in JSON Lines may be long."""

STDIN = "<stdin>"
BOM = b"\xef\xbb\xbf"
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zXZ": "xz"}


@cache
def packaged_toml(name: str) -> dict[str, Any]:
    """Parse a TOML file of judged, such as ``data/tool_layouts.toml``."""
    return tomllib.loads((Path(__file__).parents[1] / name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class FileHash:
    """SHA-256 of the concatenated bytes of files, computed when it is first used.

    Hashing takes a seventh of the time of evaluating a large run, and most results do not show the hash.

    Parameters
    ----------
    files
        Path, size in bytes, modification time in nanoseconds, and inode of each file before it was read.
    digest
        The hash, if it is already known.
    """

    files: tuple[tuple[Path, int, int, int], ...] = ()
    digest: str | None = None

    @classmethod
    def of(cls, paths: Iterable[Path]) -> FileHash:
        """Record the state of files before they are read; files that do not exist are skipped."""
        return cls(tuple((path.absolute(), *state) for path in paths if (state := _file_state(path))))

    @cached_property
    def hexdigest(self) -> str | None:
        """Hexadecimal digest; None if there are no files, or a file has changed since it was read."""
        if self.digest or not self.files:
            return self.digest
        sha256 = hashlib.sha256()
        try:
            for path, *_ in self.files:
                with path.open("rb", buffering=0) as file:
                    while chunk := file.read(BLOCK):
                        sha256.update(chunk)
        except OSError:
            return None
        changed = any(_file_state(path) != tuple(state) for path, *state in self.files)
        return None if changed else sha256.hexdigest()


def _file_state(path: Path) -> tuple[int, int, int] | None:
    """Return size, modification time, and inode; None if the file cannot be read."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    # The inode shows a replacement that has the same size and time.
    return status.st_size, status.st_mtime_ns, status.st_ino


class _CountingFile(io.RawIOBase):
    """Raw file that reports the number of bytes of each read."""

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
    """Detect the compression of a file from its first bytes; ``""`` if it is not compressed."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(6)
    except ValueError:  # a zero byte, or an unpaired surrogate
        raise InputError("this is not a valid file name", fix="check the path", path=ascii(str(path))) from None
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


@contextmanager
def opened(path: str | Path, progress: Callable[[int], None] | None = None) -> Generator[IO[bytes]]:
    """Open a file for reading decompressed bytes; ``progress`` is called with the number of bytes of each read."""
    method = ""
    try:
        method = compression(path)
        with Path(path).open("rb", buffering=0) as plain:
            raw = io.BufferedReader(_CountingFile(plain, progress), BLOCK) if progress else plain
            with _decompress(raw, method) as file:
                yield file
    except FileNotFoundError:
        raise InputError("there is no such file", fix="check the path", path=str(path), rule=NO_CONTENT) from None
    except IsADirectoryError:
        raise InputError("this is a folder", fix="use a file in this folder", path=str(path), rule=NO_CONTENT) from None
    except PermissionError:
        raise InputError(
            "permission to read this file is denied", fix="check its permissions", path=str(path), rule=NO_CONTENT
        ) from None
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        problem = "the compressed data is truncated or damaged" if method else "it cannot be read"
        rule = "truncated" if method else ""
        raise InputError(
            f"{problem} ({error})", fix="create or download the file again", path=str(path), rule=rule
        ) from None


def _decompress(raw: Any, method: str) -> Any:
    if method == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if method == "bz2":
        return bz2.BZ2File(raw)
    if method == "xz":
        return lzma.LZMAFile(raw)
    if method == "zstd":
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
    """Yield the bytes of a file in blocks of about ``size`` bytes that end at a line end."""
    # A byte order mark is removed. The last line may lack a newline. With `returns`, a carriage return is also a line
    # end, as in files of classic Mac OS.
    with opened(path, progress) as file:
        pending: list[bytes] = []  # joined only once, as a line of many blocks would be copied for each block
        pending_length, is_start, yielded_length = 0, True, 0
        while chunk := file.read(size):
            if is_start:
                chunk, is_start = chunk.removeprefix(BOM), False
            end = chunk.rfind(b"\n") + 1
            if returns and not end:
                end = chunk.rfind(b"\r", 0, -1) + 1  # not the last byte, as a newline may follow
            if end:
                yielded_length += pending_length + end
                yield b"".join((*pending, memoryview(chunk)[:end]))
                pending, pending_length = [], 0
            pending.append(chunk[end:])
            pending_length += len(pending[-1])
            if pending_length > longest:
                raise _long_line_error(path, longest, yielded_length)
        if pending_length:
            yield b"".join(pending)


def _long_line_error(path: str | Path, longest: int, offset: int) -> InputError:
    """Return the error for a line that starts at a byte offset, with its line number."""
    line = 1
    with opened(path) as file:
        while offset > 0 and (chunk := file.read(min(offset, BLOCK))):
            line += chunk.count(b"\n")
            offset -= len(chunk)
    problem = f"this line has more than {longest:,} bytes"
    return InputError(problem, fix="check that this is the right file and has line ends", path=str(path), line=line)


def head(path: str | Path, size: int = 1 << 16) -> bytes:
    """Return the first decompressed bytes of a file without a byte order mark."""
    with opened(path) as file:
        return file.read(size).removeprefix(BOM)


def text(path: str | Path, where: str, *, longest: int = LONGEST) -> str:
    """Return the text of a file with newlines as line ends."""
    data = b"".join(blocks(path, longest=longest, returns=True))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("this is UTF-16 (Windows PowerShell writes it)", fix="save the file as UTF-8", path=where)
    try:
        return data.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError("this file is not UTF-8", fix="save the file as UTF-8", path=where, line=line) from None


def exists(path: str | Path) -> bool:
    r"""Whether a file exists; False for invalid names, for which pathlib may raise an error.

    >>> exists("a" * 300), exists("no\0file")
    (False, False)
    """
    return os.path.exists(path)  # noqa: PTH110


def local(path: str | Path) -> Path:
    """Return a path that can be read several times: standard input (``-``) and pipes are copied to temporary files."""
    path = Path(path)
    if str(path) == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  None if it was closed (<&-)
            raise InputError("standard input is closed", fix="use a file, or pipe a file to standard input", path=STDIN)
        return _copy_to_file(sys.stdin.buffer)
    if exists(path) and path.is_fifo():
        with path.open("rb") as pipe:
            return _copy_to_file(pipe)
    return path


def _copy_to_file(stream: IO[bytes]) -> Path:
    import shutil  # slow to import and rarely needed
    import tempfile

    # On Linux an unnamed file can be opened again through /proc, and is removed even if the process is killed.
    if os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        unnamed_file = tempfile.TemporaryFile()  # noqa: SIM115  closed when the process exits
        atexit.register(unnamed_file.close)
        shutil.copyfileobj(stream, unnamed_file, BLOCK)
        unnamed_file.flush()
        return Path(f"/proc/{os.getpid()}/fd/{unnamed_file.fileno()}")
    with tempfile.NamedTemporaryFile(prefix="judged-stdin-", delete=False) as temporary_file:
        shutil.copyfileobj(stream, temporary_file, BLOCK)
    path = Path(temporary_file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path
