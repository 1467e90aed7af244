"""Rendering of an answer as the output of a notebook cell: in the colors of the notebook, and without effect on it."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from html import escape, unescape
from importlib.resources import files
from typing import TYPE_CHECKING

from judged.errors import MissingExtraError
from judged.results.blocks import Chart, RankedLists, Section, flat
from judged.results.charts import picture, resource
from judged.results.escaping import isolate_directions
from judged.results.html import html, notes, specifications
from judged.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.results.blocks import Block, Note
    from judged.results.headline import Headline

MAX_ROWS = 50
"""Rows of a table in a notebook, which stores the outputs of all cells."""

_HEADING = re.compile(r"<(/?)h[1-6]>")
_ANCHOR = re.compile(r' (?:id|aria-labelledby)="[^"]*"')
_PLACEHOLDER = re.compile(r'(<div class="chart" data-chart="([^"]*)"[^>]*>)')
_CLIP = re.compile(r'(?<=id=")clip\d+(?=")|(?<=url\(#)clip\d+(?=\))')


def cell_html(blocks: Iterable[Block], cell_notes: Sequence[Note] = (), headline: Headline | None = None) -> str:
    """Render the output of a cell.

    Folded blocks, ranked lists, and all sections but the first one are closed. Folded charts are omitted, because
    drawing takes time. Charts are pictures without scripts; if altair or vl-convert is not installed, they are tables.
    """
    blocks = tuple(_prepared(blocks))
    drawings = _drawings(blocks)
    tables = [block.name for block in flat(blocks) if isinstance(block, Table)]
    first_section = next((block for block in blocks if isinstance(block, Section)), None)
    parts = [f'<div class="headline">\n{headline.content()}\n</div>'] if headline else []
    for block in blocks:
        if isinstance(block, Section):
            summary = f"<details{' open' * (block is first_section)}>\n<summary>{escape(block.title)}</summary>"
            parts += [summary, html(block.blocks, drawings), "</details>"]
        else:
            parts.append(html([block], drawings, tables))
    parts += [notes(cell_notes)] if cell_notes else []
    # Notebooks list headings of outputs among their own, and anchors are not unique if a cell is copied.
    content = _ANCHOR.sub("", _HEADING.sub(r"<\1strong>", "\n".join(parts)))
    content = _PLACEHOLDER.sub(lambda match: match[1] + drawings[unescape(match[2])], content)
    style = files("judged.results").joinpath("notebook.css").read_text(encoding="utf-8")
    style = style.replace("/* charts.css */", resource("charts.css") if drawings else "")
    return isolate_directions(f'<div class="judged-result">\n<style>\n{style}</style>\n{content}\n</div>')


def _prepared(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks with closed ranked lists and the first rows of tables."""
    for block in blocks:
        match block:
            case Section():
                yield replace(block, blocks=tuple(_prepared(block.blocks)))
            case RankedLists():
                yield replace(block, folded=True)
            case Table():
                yield _first_rows(block)
            case Chart():
                if not block.folded:
                    yield replace(block, numbers=_first_rows(block.numbers or block.table))
            case _:
                yield block


def _first_rows(table: Table) -> Table:
    if len(table) <= MAX_ROWS or table.only == "data":
        return table
    source = f'text(unfold=["{table.name}"])' if table.only else f'to_pandas("{table.name}")'
    note = f"{MAX_ROWS} of {len(table):,} rows; `{source}` has all"
    return replace(table.take(range(MAX_ROWS)), note="; ".join(filter(None, [table.note, note])))


def _drawings(blocks: Iterable[Block]) -> dict[str, str]:
    """Draw charts as SVG with clip paths of unique names, by the name of the chart."""
    try:
        specs = specifications(blocks)
        clear = {"background": "transparent", "padding": 2}
        pictures = {name: picture(spec | {"config": spec["config"] | clear}, "svg") for name, spec in specs.items()}
    except MissingExtraError:
        return {}
    return {name: _with_own_names(svg.decode()) for name, svg in pictures.items()}


def _with_own_names(svg: str) -> str:
    """Rename clip paths, which vl-convert numbers by process, so that no other picture of the notebook has them."""
    clips = list(dict.fromkeys(_CLIP.findall(svg)))
    picture_name = zlib.crc32(_CLIP.sub("", svg).encode())
    return _CLIP.sub(lambda match: f"clip-{picture_name}-{clips.index(match[0])}", svg)
