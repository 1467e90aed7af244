"""Static files of pages: those of all components, the style sheet, and the chart library.

Pages link to them below `VERSION`, a path with a hash of all files, so that browsers may cache them forever. They are
also served without it; browsers then revalidate them each time.
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
from judged.results.html import stylesheet

if TYPE_CHECKING:
    from collections.abc import Iterator

router = APIRouter(include_in_schema=False)
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
PACKAGES = tuple(component.files for component in all_components() if component.files)
"""Packages with templates and static files."""
_FOLDERS = [folder for package in PACKAGES if (folder := files(package).joinpath("static")).is_dir()]


def _hashed_content() -> Iterator[bytes]:
    """Yield all content that the version hash depends on."""
    yield from (stylesheet().encode(), resource("drawing.js").encode())
    for name in ("altair", "vl-convert-python"):
        try:
            yield version(name).encode()
        except PackageNotFoundError:
            yield b"none"
    for folder in _FOLDERS:
        yield from (path.read_bytes() for path in sorted(Path(str(folder)).rglob("*")) if path.is_file())


VERSION = f"/files-{sha256(b''.join(_hashed_content())).hexdigest()[:12]}"
"""Path prefix of static files."""


class _Static(StaticFiles):
    """Static files of all components below one path."""

    def __init__(self) -> None:
        super().__init__(directory=str(_FOLDERS[0]))
        self.all_directories = [str(folder) for folder in _FOLDERS]


def add_files(app: FastAPI) -> None:
    """Add the routes of static files to an application."""
    for prefix in (VERSION, ""):
        app.include_router(router, prefix=prefix)
        app.mount(f"{prefix}/static", _Static())


@router.get("/shared/look.css")
def shared_look() -> Response:
    """Return the style sheet shared by pages and reports."""
    return Response(stylesheet(), media_type=_STYLE)


@router.get("/shared/drawing.js")
def drawing() -> Response:
    """Return the module that draws charts."""
    return Response(resource("drawing.js"), media_type=_SCRIPT)


@router.get("/shared/vega.js")
def vega(request: Request) -> Response:
    """Return the Vega library, as a module."""
    packed = packed_library()
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=_SCRIPT, headers={"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
    return Response(gzip.decompress(packed), media_type=_SCRIPT)
