"""The JavaScript that draws charts in a page: Vega with all that it needs, made at the first use and kept on disk."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock

from judged.atomic import replaced
from judged.charts.pictures import language
from judged.errors import JudgedError, MissingExtraError

_BUILD = """
import gzip, sys, vl_convert
made = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;", vl_version=sys.argv[1])
sys.stdout.buffer.write(gzip.compress(made.encode()))
"""
_MADE: dict[Path, bytes] = {}
_MAKING = Lock()


def library() -> str:
    """Give it as text, some 900 kB: it sets ``window.vegaEmbed``, and names its variables at the top level.

    Raises
    ------
    MissingExtraError
        If altair or vl-convert is not installed.
    """
    return gzip.decompress(packed_library()).decode()


def packed_library() -> bytes:
    """Give it packed by gzip, some 300 kB."""
    try:
        made_by = version("vl-convert-python")  # which is not imported here: it takes 11 MB
    except PackageNotFoundError:
        raise MissingExtraError("vl-convert-python", "plots") from None
    with _MAKING:
        cached = _cache_folder() / f"charts-{language()}-{made_by}.js.gz"
        if cached not in _MADE:
            _MADE[cached] = _read_or_made(cached)
        return _MADE[cached]


def _read_or_made(cached: Path) -> bytes:
    with suppress(OSError, EOFError, zlib.error):  # it was not made before, or is damaged
        packed = cached.read_bytes()
        if gzip.decompress(packed):
            return packed
    # Another process makes it: here the seconds that it takes would hold up every page, and its memory would stay.
    command = [sys.executable, "-P", "-c", _BUILD, language()]
    made = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
    with suppress(OSError, JudgedError):  # nothing may be written there: it is made again next time
        cached.parent.mkdir(parents=True, exist_ok=True)
        with replaced(cached) as part:
            part.write_bytes(made)
    return made


def _cache_folder() -> Path:
    """Give the folder of this user for what can be made again."""
    known = next(filter(None, map(os.environ.get, ("XDG_CACHE_HOME", "LOCALAPPDATA"))), None)
    with suppress(RuntimeError):  # who runs in a container may have no home
        return Path(known or Path.home() / ".cache") / "judged"
    return Path(os.devnull) / "judged"  # nothing is read or written there
