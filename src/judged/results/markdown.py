"""Blocks as Markdown. Text from files cannot become markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from judged.results.blocks import Chart, Code, Lists, Section, Sentences
from judged.results.escaping import Table as Grid
from judged.results.escaping import markdown_list, markdown_prose, markdown_text, visible
from judged.results.table import Table, asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.blocks import Block, Ranking


def markdown(blocks: Sequence[Block], unfold: Iterable[str] = (), level: int = 3, *, charts: bool = False) -> str:
    """Write all blocks; titles are headings of this level and below. With ``charts``, what they say."""
    unfold = tuple(unfold)
    shown = {id(block) for block in asked(blocks, unfold)}
    parts: list[str] = []
    for block in blocks:
        if id(block) in shown and (charts or not isinstance(block, Chart)):
            parts += _block(block, unfold, level, charts=charts)
        elif isinstance(block, Sentences) and block.folded:
            head = f"<details><summary>{markdown_text(block.title or block.name)}</summary>"
            parts.append(f"{head}\n\n{markdown_list(block.texts)}\n\n</details>")
    return "\n\n".join(part for part in parts if part)


def _block(block: Block, unfold: tuple[str, ...], level: int, *, charts: bool) -> list[str]:
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


def ranking_grid(ranking: Ranking) -> Grid:
    """Lay out a ranked list as rows of text."""
    texts = any(item.text for item in ranking.items)
    header = ("rank", "grade", "document", "other list", *(("text",) if texts else ()))
    rows = tuple(
        (item.rank, item.grade or "-", item.doc_id, item.change, *((item.text,) if texts else ()))
        for item in ranking.items
    )
    return Grid(header, rows, labels=len(header))


def _fenced(text: str) -> str:
    """Fence a text by more backticks than stand in it."""
    most = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, most + 1)
    shown = "\n".join(map(visible, text.split("\n")))
    return f"{fence}sh\n{shown}\n{fence}"
