"""Files of pages: those of this package, and what stands elsewhere: the look, and the library that draws charts.

Pages name them below `VERSION`, an address that is another one as soon as any of them changes: so a browser may keep
them for good. Without it they are there as well, and a browser asks each time whether they changed.
"""

from __future__ import annotations

import gzip
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

from judged.components import all_components
from judged.results.charts import packed_library, resource
from judged.results.html import look

if TYPE_CHECKING:
    from collections.abc import Iterator

router = APIRouter(include_in_schema=False)
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
PACKAGES = tuple(component.files for component in all_components() if component.files)
"""Packages with the templates of pages and the files that these name."""
_FOLDERS = [folder for package in PACKAGES if (folder := files(package).joinpath("static")).is_dir()]


def _parts() -> Iterator[bytes]:
    """Give all that files are made of."""
    yield from (look().encode(), resource("drawing.js").encode())
    for name in ("altair", "vl-convert-python"):
        try:
            yield version(name).encode()
        except PackageNotFoundError:
            yield b"none"
    for folder in _FOLDERS:
        yield from (path.read_bytes() for path in sorted(Path(str(folder)).rglob("*")) if path.is_file())


VERSION = f"/files-{sha256(b''.join(_parts())).hexdigest()[:12]}"
"""Where pages find their files."""


class _Static(StaticFiles):
    """The files of all components below one address."""

    def __init__(self) -> None:
        super().__init__(directory=str(_FOLDERS[0]))
        self.all_directories = [str(folder) for folder in _FOLDERS]


def add_files(app: FastAPI) -> None:
    """Make an application give the files of pages."""
    for prefix in (VERSION, ""):
        app.include_router(router, prefix=prefix)
        app.mount(f"{prefix}/static", _Static())


@router.get("/shared/look.css")
def shared_look() -> Response:
    """Give all sizes and colours, and the look of the blocks of answers."""
    return Response(look(), media_type=_STYLE)


@router.get("/shared/drawing.js")
def drawing() -> Response:
    """Give the module that draws charts."""
    return Response(resource("drawing.js"), media_type=_SCRIPT)


@router.get("/shared/vega.js")
def vega(request: Request) -> Response:
    """Give the library that it uses, as a module."""
    packed = packed_library()
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=_SCRIPT, headers={"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
    return Response(gzip.decompress(packed), media_type=_SCRIPT)
