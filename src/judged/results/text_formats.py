"""Blocks as LaTeX: each table in an environment with a caption of its own."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from judged.results.blocks import Chart, Code, Lists, Section, Sentences
from judged.results.decimals import wrapped
from judged.results.escaping import (
    TextTable,
    cells_of,
    latex_text,
    markdown_list,
    markdown_prose,
    markdown_text,
    visible,
)
from judged.results.table import Table, asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.blocks import Block, Item, Ranking


_LATEX_SIGNS = {"†": r"$\dagger$", "‡": r"$\ddagger$", "\N{MULTIPLICATION SIGN}": r"$\times$"}


def latex(blocks: Iterable[Block], unfold: Iterable[str] = ()) -> str:
    """Write all tables; sentences have no place in it."""
    unfold = tuple(unfold)
    parts = [
        latex(block.blocks, unfold) if isinstance(block, Section) else _environment(block)
        for block in asked(blocks, unfold)
        if isinstance(block, (Section, Table))
    ]
    return "\n\n".join(part for part in parts if part)


def _environment(table: Table) -> str:
    """Put a table into an environment with its caption above it."""
    said = "; ".join(part for part in (table.title, table.note.rstrip(".")) if part)
    caption = [rf"\caption{{{_signs(latex_text(said))}.}}"] if said else []
    return "\n".join([r"\begin{table}", r"\centering", *caption, _signs(table.latex()), r"\end{table}"])


def _signs(text: str) -> str:
    for sign, command in _LATEX_SIGNS.items():
        text = text.replace(sign, command)
    return text


def markdown(blocks: Sequence[Block], unfold: Iterable[str] = (), level: int = 3, *, charts: bool = False) -> str:
    """Write all blocks; titles are headings of this level and below. With ``charts``, what they say."""
    unfold = tuple(unfold)
    shown = {id(block) for block in asked(blocks, unfold)}
    parts: list[str] = []
    for block in blocks:
        if id(block) in shown and (charts or not isinstance(block, Chart)):
            parts += _markdown_block(block, unfold, level, charts=charts)
        elif isinstance(block, Sentences) and block.folded:
            head = f"<details><summary>{markdown_text(block.title or block.name)}</summary>"
            parts.append(f"{head}\n\n{markdown_list(block.texts)}\n\n</details>")
    return "\n\n".join(part for part in parts if part)


def _markdown_block(block: Block, unfold: tuple[str, ...], level: int, *, charts: bool) -> list[str]:
    title = f"{'#' * level} {markdown_text(block.title)}" if block.title else ""
    match block:
        case Table():
            return [title, block.markdown(), full_stop(markdown_prose(block.note))]
        case Sentences():
            said = markdown_list(block.texts) if len(block.texts) > 1 else markdown_prose(" ".join(block.texts))
            return [title, said]
        case Code():
            return [title, *map(_fenced, block.texts)]
        case Chart():
            return [title, markdown_prose(block.sentence), (block.numbers or block.table).markdown()]
        case Lists():
            lists = [part for ranking in block.rankings for part in _ranking(ranking)]
            return [title, *map(markdown_prose, block.sentences), *lists]
        case Section():
            return [title, markdown(block.blocks, unfold, level + 1, charts=charts)]


def full_stop(note: str) -> str:
    """End a note as a sentence ends."""
    return f"{note.rstrip('.')}." if note else ""


def _ranking(ranking: Ranking) -> list[str]:
    said = f"**{markdown_text(ranking.name)}** {markdown_text(ranking.sentence)}".rstrip()
    return [said, ranking_grid(ranking).markdown()]


def ranking_grid(ranking: Ranking) -> TextTable:
    """Lay out a ranked list as rows of text."""
    texts = any(item.text for item in ranking.items)
    header = ("rank", "grade", "document", "other list", *(("text",) if texts else ()))
    rows = tuple(
        (item.rank, item.grade or "-", item.doc_id, item.change, *((item.text,) if texts else ()))
        for item in ranking.items
    )
    return TextTable(header, rows, labels=len(header))


def _fenced(text: str) -> str:
    """Fence a text by more backticks than stand in it."""
    most = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, most + 1)
    shown = "\n".join(map(visible, text.split("\n")))
    return f"{fence}sh\n{shown}\n{fence}"


_WIDTH = 100  # of lists, where none is given
_LEAST = 28  # of a list beside another one
_COLOURS = {"↑": "32", "+": "36", "↓": "31", "x": "35"}
_TERMINAL_SIGNS = (
    "rank, how it moved, grade (- is unjudged), document; ↑n rose by n ranks, ↓n fell, + new, x gone, = same rank; on"
    " the left only what the right list does not show"
)


def text(blocks: Iterable[Block], width: int | None = None, unfold: Iterable[str] = (), *, colour: bool = False) -> str:
    """Write tables, notes and sentences one below the other."""
    unfold = tuple(unfold)
    shown = asked(blocks, unfold)
    parts = [_terminal_block(block, width, unfold, colour=colour) for block in shown]
    lists = [ranking for block in shown if isinstance(block, Lists) for ranking in block.rankings]
    parts += [wrapped(_TERMINAL_SIGNS, width)] if any(item.sign for ranking in lists for item in ranking.items) else []
    return "\n\n".join(part for part in parts if part)


def _terminal_block(block: Block, width: int | None, unfold: tuple[str, ...], *, colour: bool) -> str:
    title = f"== {visible(block.title)} ==" if block.title else ""
    match block:
        case Table():
            drawn = block.text(width, colour=colour)
            parts = [title, drawn, _said(block.note, width)] if block.note else [title, drawn]
        case Sentences():
            parts = [title, "\n".join(_said(sentence, width) for sentence in block.texts)]
        case Code():
            parts = [title, "\n".join(visible(line) for code in block.texts for line in code.split("\n"))]
        case Lists():
            said = "\n".join(_said(sentence, width) for sentence in block.sentences)
            parts = [title, said, _lists(block.rankings, width or _WIDTH, colour=colour)]
        case Section():
            parts = [title, text(block.blocks, width, unfold, colour=colour)]
        case Chart():
            parts = []
    return "\n\n".join(part for part in parts if part)


def _said(sentence: str, width: int | None) -> str:
    """Break a sentence into lines in which nothing takes effect."""
    return "\n".join(map(visible, wrapped(sentence, width).split("\n")))


def _lists(rankings: Sequence[Ranking], width: int, *, colour: bool) -> str:
    """Write two ranked lists beside each other, rank by rank; one below the other where there is no room."""
    beside = len(rankings) == 2 and (width - 3) // 2 >= _LEAST
    room = (width - 3) // 2 if beside else width
    items = [item for ranking in rankings for item in ranking.items]
    parts = zip(*((item.rank, item.sign, item.grade or "-") for item in items), strict=True)
    rank, sign, grade = (max(map(len, part)) for part in parts) if items else (0, 0, 0)

    def painted(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text

    def line(item: Item) -> str:
        named = item.text if item.text.startswith(item.doc_id) else f"{item.doc_id}  {item.text}".rstrip()
        name = _fitted(visible(named), max(room - rank - sign - grade - 4, 1))
        kind = "2" if item.relevant is None else "1;32" if item.best else "33" if item.relevant else "31"
        moved = painted(f"{item.sign:<{sign}}", _COLOURS.get(item.sign[:1], "2"))
        judged = painted(f"{item.grade or '-':>{grade}}", kind)
        return f"{item.rank:>{rank}} {moved} {judged}  {painted(name, kind if item.relevant else '')}"

    heads = [_fitted(visible(f"{ranking.name} {ranking.sentence}".rstrip()), room) for ranking in rankings]
    columns = [[painted(head, "1"), *map(line, ranking.items)] for head, ranking in zip(heads, rankings, strict=True)]
    if not beside:
        return "\n".join(line.rstrip() for column in columns for line in column)
    return "\n".join(" │ ".join(pair).rstrip() for pair in zip_longest(*columns, fillvalue=" " * room))


def _fitted(text: str, room: int) -> str:
    """Cut or fill a text to so many cells."""
    if cells_of(text) > room:
        while cells_of(text) > room - 1:
            text = text[:-1]
        text = f"{text.rstrip()}…"
    return text + " " * (room - cells_of(text))
