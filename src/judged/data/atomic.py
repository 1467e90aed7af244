"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def replaced(path: str | Path) -> Generator[Path]:
    """Give a temporary path in the same folder, which takes the place of ``path`` if all goes well.

    A failure leaves an old file as it was, and nothing new beside it.

    Raises
    ------
    InputError
        If the folder is missing or may not be written to.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError("this is a folder", fix="name a file in it", path=str(path))
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced, it is written to
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "whole"
            yield part
            with part.open("rb") as whole, path.open("wb") as special:
                shutil.copyfileobj(whole, special)
        return
    target = path.resolve()  # a link stays, the file that it leads to is replaced
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        part.touch(exist_ok=False)
        yield part
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    except OSError as error:
        raise InputError(
            f"it cannot be written ({error.strerror or error})",
            fix="name a file in a folder that you may write to, on a disk with room",
            path=str(path),
        ) from None
    finally:
        part.unlink(missing_ok=True)
