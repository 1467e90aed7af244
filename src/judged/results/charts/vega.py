"""The JavaScript that draws charts in a page: Vega with all that it needs, made at the first use and kept on disk."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from threading import Lock

from judged.errors import JudgedError, MissingExtraError
from judged.results.atomic import replaced
from judged.results.cache import cache_folder
from judged.results.charts.pictures import language

_BUILD = """
import gzip, sys, vl_convert
made = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;", vl_version=sys.argv[1])
sys.stdout.buffer.write(gzip.compress(made.encode()))
"""
_MADE: dict[str, bytes] = {}
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
    if find_spec("vl_convert") is None:  # it is not imported here: it takes 11 MB
        raise MissingExtraError("vl-convert-python", "plots")
    with _MAKING:
        name = f"charts-{language()}-{version('vl-convert-python')}.js.gz"
        if name not in _MADE:
            _MADE[name] = _read_or_made(name)
        return _MADE[name]


def _read_or_made(name: str) -> bytes:
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError, EOFError, zlib.error):  # it was not made before, or is damaged
            packed = (folder / name).read_bytes()
            if gzip.decompress(packed):
                return packed
    # Another process makes it: here the seconds that it takes would hold up every page, and its memory would stay.
    command = [sys.executable, "-P", "-c", _BUILD, language()]
    made = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
    if folder is not None:
        with suppress(OSError, JudgedError), replaced(folder / name) as part:  # the disk is full: again next time
            part.write_bytes(made)
    return made
