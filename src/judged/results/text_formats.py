"""Rendering of blocks as LaTeX, Markdown, and terminal text."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from judged.results.blocks import Chart, Code, RankedLists, Section, Sentences
from judged.results.decimals import wrapped
from judged.results.escaping import (
    TextTable,
    cells_of,
    escape_controls,
    latex_text,
    markdown_list,
    markdown_prose,
    markdown_text,
)
from judged.results.table import Table, select_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.blocks import Block, RankedDocument, RankedList


_LATEX_SIGNS = {"†": r"$\dagger$", "‡": r"$\ddagger$", "\N{MULTIPLICATION SIGN}": r"$\times$"}


def latex(blocks: Iterable[Block], unfold: Iterable[str] = ()) -> str:
    """Render all tables; sentences are omitted."""
    unfold = tuple(unfold)
    parts = [
        latex(block.blocks, unfold) if isinstance(block, Section) else _environment(block)
        for block in select_visible(blocks, unfold)
        if isinstance(block, (Section, Table))
    ]
    return "\n\n".join(part for part in parts if part)


def _environment(table: Table) -> str:
    """Render a table environment with a caption."""
    caption_text = "; ".join(part for part in (table.title, table.note.rstrip(".")) if part)
    caption = [rf"\caption{{{_signs(latex_text(caption_text))}.}}"] if caption_text else []
    return "\n".join([r"\begin{table}", r"\centering", *caption, _signs(table.latex()), r"\end{table}"])


def _signs(text: str) -> str:
    for sign, command in _LATEX_SIGNS.items():
        text = text.replace(sign, command)
    return text


def markdown(blocks: Sequence[Block], unfold: Iterable[str] = (), level: int = 3, *, charts: bool = False) -> str:
    """Render all blocks; titles are headings of `level` and below. With ``charts``, including charts as tables."""
    unfold = tuple(unfold)
    visible_ids = {id(block) for block in select_visible(blocks, unfold)}
    parts: list[str] = []
    for block in blocks:
        if id(block) in visible_ids and (charts or not isinstance(block, Chart)):
            parts += _markdown_block(block, unfold, level, charts=charts)
        elif isinstance(block, Sentences) and block.folded:
            summary = f"<details><summary>{markdown_text(block.title or block.name)}</summary>"
            parts.append(f"{summary}\n\n{markdown_list(block.texts)}\n\n</details>")
    return "\n\n".join(part for part in parts if part)


def _markdown_block(block: Block, unfold: tuple[str, ...], level: int, *, charts: bool) -> list[str]:
    title = f"{'#' * level} {markdown_text(block.title)}" if block.title else ""
    match block:
        case Table():
            return [title, block.markdown(), full_stop(markdown_prose(block.note))]
        case Sentences():
            content = markdown_list(block.texts) if len(block.texts) > 1 else markdown_prose(" ".join(block.texts))
            return [title, content]
        case Code():
            return [title, *map(_fenced, block.texts)]
        case Chart():
            return [title, markdown_prose(block.sentence), (block.numbers or block.table).markdown()]
        case RankedLists():
            lists = [part for ranking in block.rankings for part in _markdown_ranking(ranking)]
            return [title, *map(markdown_prose, block.sentences), *lists]
        case Section():
            return [title, markdown(block.blocks, unfold, level + 1, charts=charts)]


def full_stop(note: str) -> str:
    """End a note with exactly one full stop."""
    return f"{note.rstrip('.')}." if note else ""


def _markdown_ranking(ranking: RankedList) -> list[str]:
    title = f"**{markdown_text(ranking.name)}** {markdown_text(ranking.sentence)}".rstrip()
    return [title, ranking_grid(ranking).markdown()]


def ranking_grid(ranking: RankedList) -> TextTable:
    """Build a table of text from a ranked list."""
    has_texts = any(item.text for item in ranking.items)
    header = ("rank", "grade", "document", "other list", *(("text",) if has_texts else ()))
    rows = tuple(
        (item.rank, item.grade or "-", item.doc_id, item.change, *((item.text,) if has_texts else ()))
        for item in ranking.items
    )
    return TextTable(header, rows, labels=len(header))


def _fenced(text: str) -> str:
    """Fence a code block with more backticks than occur in it."""
    longest = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    content = "\n".join(map(escape_controls, text.split("\n")))
    return f"{fence}sh\n{content}\n{fence}"


_WIDTH = 100  # default width of lists
_MIN_LIST_WIDTH = 28  # minimum width of a list next to another one
_COLORS = {"↑": "32", "+": "36", "↓": "31", "x": "35"}
_TERMINAL_SIGNS = (
    "columns: rank, change of rank, grade (-: unjudged), document; ↑n: up n ranks, ↓n: down n ranks, +: new, x: gone,"
    " =: same rank; in the left list, only documents that are not in the right list are marked"
)


def text(blocks: Iterable[Block], width: int | None = None, unfold: Iterable[str] = (), *, color: bool = False) -> str:
    """Render tables, notes, and sentences one below the other."""
    unfold = tuple(unfold)
    visible_blocks = select_visible(blocks, unfold)
    parts = [_terminal_block(block, width, unfold, color=color) for block in visible_blocks]
    lists = [ranking for block in visible_blocks if isinstance(block, RankedLists) for ranking in block.rankings]
    parts += [wrapped(_TERMINAL_SIGNS, width)] if any(item.sign for ranking in lists for item in ranking.items) else []
    return "\n\n".join(part for part in parts if part)


def _terminal_block(block: Block, width: int | None, unfold: tuple[str, ...], *, color: bool) -> str:
    title = f"== {escape_controls(block.title)} ==" if block.title else ""
    match block:
        case Table():
            content = block.text(width, color=color)
            parts = [title, content, _wrap_sentence(block.note, width)] if block.note else [title, content]
        case Sentences():
            parts = [title, "\n".join(_wrap_sentence(sentence, width) for sentence in block.texts)]
        case Code():
            parts = [title, "\n".join(escape_controls(line) for code in block.texts for line in code.split("\n"))]
        case RankedLists():
            sentences = "\n".join(_wrap_sentence(sentence, width) for sentence in block.sentences)
            parts = [title, sentences, _ranked_lists(block.rankings, width or _WIDTH, color=color)]
        case Section():
            parts = [title, text(block.blocks, width, unfold, color=color)]
        case Chart():
            parts = []
    return "\n\n".join(part for part in parts if part)


def _wrap_sentence(sentence: str, width: int | None) -> str:
    """Wrap a sentence into lines with control characters escaped."""
    return "\n".join(map(escape_controls, wrapped(sentence, width).split("\n")))


def _ranked_lists(rankings: Sequence[RankedList], width: int, *, color: bool) -> str:
    """Render two ranked lists side by side, rank by rank, or one below the other if the terminal is narrow."""
    side_by_side = len(rankings) == 2 and (width - 3) // 2 >= _MIN_LIST_WIDTH
    list_width = (width - 3) // 2 if side_by_side else width
    items = [item for ranking in rankings for item in ranking.items]
    parts = zip(*((item.rank, item.sign, item.grade or "-") for item in items), strict=True)
    rank, sign, grade = (max(map(len, part)) for part in parts) if items else (0, 0, 0)

    def painted(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if color and code else text

    def line(item: RankedDocument) -> str:
        label = item.text if item.text.startswith(item.doc_id) else f"{item.doc_id}  {item.text}".rstrip()
        name = _fit(escape_controls(label), max(list_width - rank - sign - grade - 4, 1))
        kind = "2" if item.relevant is None else "1;32" if item.best else "33" if item.relevant else "31"
        change = painted(f"{item.sign:<{sign}}", _COLORS.get(item.sign[:1], "2"))
        grade_text = painted(f"{item.grade or '-':>{grade}}", kind)
        return f"{item.rank:>{rank}} {change} {grade_text}  {painted(name, kind if item.relevant else '')}"

    heads = [_fit(escape_controls(f"{ranking.name} {ranking.sentence}".rstrip()), list_width) for ranking in rankings]
    columns = [[painted(head, "1"), *map(line, ranking.items)] for head, ranking in zip(heads, rankings, strict=True)]
    if not side_by_side:
        return "\n".join(line.rstrip() for column in columns for line in column)
    return "\n".join(" │ ".join(pair).rstrip() for pair in zip_longest(*columns, fillvalue=" " * list_width))


def _fit(text: str, width: int) -> str:
    """Truncate or pad a text to `width` terminal cells."""
    if cells_of(text) > width:
        while cells_of(text) > width - 1:
            text = text[:-1]
        text = f"{text.rstrip()}…"
    return text + " " * (width - cells_of(text))
