"""Blocks as a text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.answer.blocks import Chart, Code, Lists, Section, Sentences, asked
from judged.answer.markdown import ranking_grid
from judged.answer.table import Table
from judged.decimals import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.answer.blocks import Block


def text(blocks: Iterable[Block], width: int | None = None, unfold: Iterable[str] = (), *, colour: bool = False) -> str:
    """Write tables, notes and sentences one below the other."""
    unfold = tuple(unfold)
    parts = (_block(block, width, unfold, colour=colour) for block in asked(blocks, unfold))
    return "\n\n".join(part for part in parts if part)


def _block(block: Block, width: int | None, unfold: tuple[str, ...], *, colour: bool) -> str:
    title = f"== {block.title} ==" if block.title else ""
    match block:
        case Table():
            drawn = block.text(width, colour=colour)
            parts = [title, drawn, wrapped(block.note, width)] if block.note else [title, drawn]
        case Sentences():
            parts = [title, "\n".join(wrapped(sentence, width) for sentence in block.texts)]
        case Code():
            parts = [title, "\n".join(block.texts)]
        case Lists():
            said = "\n".join(wrapped(sentence, width) for sentence in block.sentences)
            tables = (f"{ranking.name} {ranking.sentence}".rstrip() + f"\n{ranking_grid(ranking).text(width=width)}"
                      for ranking in block.rankings)  # fmt: skip
            parts = [title, said, *tables]
        case Section():
            parts = [title, text(block.blocks, width, unfold, colour=colour)]
        case Chart():
            parts = []
    return "\n\n".join(part for part in parts if part)
