"""Files of pages that stand elsewhere in the package: the look, and the library that draws charts."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from judged.answer.html import look
from judged.charts import library, resource

router = APIRouter(include_in_schema=False)
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"


@router.get("/shared/look.css")
def shared_look() -> Response:
    """Give all sizes and colours, and the look of the blocks of answers."""
    return Response(look(), media_type=_STYLE)


@router.get("/shared/drawing.js")
def drawing() -> Response:
    """Give the module that draws charts."""
    return Response(resource("drawing.js"), media_type=_SCRIPT)


@router.get("/shared/vega.js")
def vega() -> Response:
    """Give the library that it uses, as a module."""
    return Response(library(), media_type=_SCRIPT, headers={"Cache-Control": "max-age=86400"})
