"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from judged.errors import InputError, OutputError, is_full

if TYPE_CHECKING:
    from collections.abc import Generator


_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE, of renameat2
_NO_FAULT_OF_THE_NAME = {errno.EFBIG, errno.EIO, errno.EPIPE}


@contextmanager
def replaced(path: str | Path, *, new: bool = False) -> Generator[Path]:
    """Give a temporary path in the same folder, which takes the place of ``path`` if all goes well.

    `new`: a file that another process has made meanwhile stays.

    A failure leaves an old file as it was, and nothing new beside it.
    """
    path = Path(path)
    part: Path | None = None
    if "\0" in str(path):
        raise InputError("this cannot be the name of a file", fix="remove the zero byte", path=repr(str(path)))
    try:
        if path.is_dir():
            raise InputError("this is a folder", fix="name a file in it", path=str(path))
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced, it is written to
            import shutil  # they are seldom needed, and import much
            import tempfile

            with tempfile.TemporaryDirectory() as folder:
                whole = Path(folder) / "whole"
                yield whole
                with whole.open("rb") as source, path.open("wb") as special:
                    shutil.copyfileobj(source, special)
            return
        target = path.resolve()  # a link stays, the file that it leads to is replaced
        part = target.with_name(f".{os.urandom(8).hex()}.part")  # a name of its own: the target's may be the longest
        part.touch(exist_ok=False)
        yield part
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        if new:
            with suppress(OSError):  # it has been made meanwhile, or the file system has no links
                os.link(part, target)
        if not (new and target.exists()):
            part.replace(target)
    except OSError as error:
        unwritten(path, error)
    finally:
        if part is not None:
            with suppress(OSError):  # it was renamed, or could not be made
                part.unlink()


@contextmanager
def replaced_folder(path: str | Path, *, new: bool = False) -> Generator[Path]:
    """Give a temporary folder beside ``path``, which takes its place if all goes well.

    `new`: what is there already is refused.

    A folder that is there is exchanged and then removed, in one step on Linux: whenever the process ends, even killed,
    the old or the new folder is there, whole.
    """
    try:
        target = Path(path).resolve()
        exists = InputError("this exists already", fix="name a new folder", path=str(path))
        if new and target.exists():
            raise exists
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        unwritten(path, error)
    part = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        part.mkdir()
        yield part
        try:
            part.replace(target)  # nothing, or an empty folder
        except OSError:
            if not target.is_dir():
                raise
            if new:  # another process has made it meanwhile
                raise exists from None
            _exchange(part, target)
    except OSError as error:
        unwritten(path, error)
    finally:
        remove_folder(part)


def remove_folder(path: str | Path) -> None:
    """Remove a folder, if it exists, also when Ctrl-C interrupts this."""
    import shutil  # seldom needed, and imports much

    try:
        shutil.rmtree(path, ignore_errors=True)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders: at once where the system can (renameat2), or else one after the other."""
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None or rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        between = one.with_name(f".{os.urandom(8).hex()}.part")
        other.rename(between)
        one.rename(other)
        between.rename(one)


@contextmanager
def disk_of(path: str | Path) -> Generator[None]:
    """Name a file or folder where what is written there fails because its disk is full."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise OutputError(str(path), error) from None
        raise


def unwritten(path: str | Path, error: OSError) -> NoReturn:
    """Say that nothing could be written: for the name, which was given, or for the place, which fails."""
    if is_full(error) or error.errno in _NO_FAULT_OF_THE_NAME:
        raise OutputError(str(path), error) from None
    raise InputError(
        f"this file cannot be written ({error.strerror or error})",
        fix="choose a folder that you may write to",
        path=str(path),
    ) from None


def cache_folder() -> Path | None:
    """Give the folder, which is made if it is not there; None where nothing can be kept."""
    known = next(filter(None, map(os.environ.get, ("XDG_CACHE_HOME", "LOCALAPPDATA"))), None)
    with suppress(RuntimeError, OSError):  # who runs in a container may have no home, or may not write there
        folder = Path(known or Path.home() / ".cache") / "judged"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    return None
