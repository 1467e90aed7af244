"""Atomic writing of files and folders, and the cache folder."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from judged.errors import InputError, OutputError, is_full

if TYPE_CHECKING:
    from collections.abc import Generator


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # constants of renameat2
_DEVICE_ERRORS = {errno.EFBIG, errno.EIO, errno.EPIPE}


@contextmanager
def atomic_write(path: str | Path, *, new: bool = False) -> Generator[Path]:
    """Yield a temporary path in the same folder, which replaces ``path`` if no error occurs.

    `new`: do not replace a file that another process has created in the meantime. An error leaves an old file unchanged
    and no new files.
    """
    path = Path(path)
    temporary: Path | None = None
    if "\0" in str(path):
        raise InputError("a file name must not contain a zero byte", fix="remove the zero byte", path=repr(str(path)))
    try:
        if path.is_dir():
            raise InputError("expected a file, got a folder", fix="use the path of a file", path=str(path))
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            import shutil  # rarely needed and slow to import
            import tempfile

            with tempfile.TemporaryDirectory() as folder:
                complete = Path(folder) / "complete"
                yield complete
                with complete.open("rb") as source, path.open("wb") as device:
                    shutil.copyfileobj(source, device)
            return
        target = path.resolve()  # a link stays, and its target is replaced
        temporary = target.with_name(
            f".{os.urandom(8).hex()}.part"
        )  # not derived from the target's name, which may have the maximum length
        temporary.touch(exist_ok=False)
        yield temporary
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        if new:
            with suppress(OSError):  # created in the meantime, or no links on this file system
                os.link(temporary, target)
        if not (new and target.exists()):
            temporary.replace(target)
    except OSError as error:
        raise_write_error(path, error)
    finally:
        if temporary is not None:
            with suppress(OSError):  # renamed, or never created
                temporary.unlink()


@contextmanager
def atomic_folder(path: str | Path, *, new: bool = False) -> Generator[Path]:
    """Yield a temporary folder in the same parent folder, which replaces ``path`` if no error occurs.

    `new`: raise an error if the folder exists. An existing folder is exchanged, in one step on Linux, and then removed:
    whenever the process ends, even if it is killed, the old or the new folder is complete.
    """
    try:
        target = Path(path).resolve()
        exists = InputError("the folder exists already", fix="use a new folder", path=str(path))
        if new and target.exists():
            raise exists
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise_write_error(path, error)
    temporary = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        temporary.mkdir()
        yield temporary
        try:
            temporary.replace(target)  # no folder, or an empty one
        except OSError:
            if not target.is_dir():
                raise
            if new:  # created by another process in the meantime
                raise exists from None
            _exchange(temporary, target)
    except OSError as error:
        raise_write_error(path, error)
    finally:
        remove_folder(temporary)


def remove_folder(path: str | Path) -> None:
    """Remove a folder, if it exists, even if Ctrl-C interrupts the removal."""
    import shutil  # rarely needed and slow to import

    try:
        shutil.rmtree(path, ignore_errors=True)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _exchange(first: Path, second: Path) -> None:
    """Exchange the names of two folders: in one step if the system supports it (renameat2), otherwise in three."""
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None or rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE):
        temporary = first.with_name(f".{os.urandom(8).hex()}.part")
        second.rename(temporary)
        first.rename(second)
        temporary.rename(first)


@contextmanager
def named_disk_errors(path: str | Path) -> Generator[None]:
    """Add the path to the error of a full disk, in a with statement."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise OutputError(str(path), error) from None
        raise


def raise_write_error(path: str | Path, error: OSError) -> NoReturn:
    """Raise OutputError for a failing device, or InputError for a path that cannot be written."""
    if is_full(error) or error.errno in _DEVICE_ERRORS:
        raise OutputError(str(path), error) from None
    raise InputError(
        f"the file cannot be written ({error.strerror or error})",
        fix="choose a folder with write permission",
        path=str(path),
    ) from None


def cache_folder() -> Path | None:
    """Return the cache folder, which is created if necessary; None if there can be none."""
    base = next(filter(None, map(os.environ.get, ("XDG_CACHE_HOME", "LOCALAPPDATA"))), None)
    with suppress(RuntimeError, OSError):  # a container may have no home folder, or a read-only one
        folder = Path(base or Path.home() / ".cache") / "judged"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    return None
