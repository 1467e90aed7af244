"""Blocks as LaTeX: each table in an environment with a caption of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.results.blocks import Section
from judged.results.escaping import latex_text
from judged.results.table import Table, asked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.results.blocks import Block

_SIGNS = {"†": r"$\dagger$", "‡": r"$\ddagger$", "\N{MULTIPLICATION SIGN}": r"$\times$"}


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
    for sign, command in _SIGNS.items():
        text = text.replace(sign, command)
    return text
