"""The folder of this user for what can be made again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path | None:
    """Give the folder, which is made if it is not there; None where nothing can be kept."""
    known = next(filter(None, map(os.environ.get, ("XDG_CACHE_HOME", "LOCALAPPDATA"))), None)
    with suppress(RuntimeError, OSError):  # who runs in a container may have no home, or may not write there
        folder = Path(known or Path.home() / ".cache") / "judged"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    return None
