"""A table of text, and the forms in which it is shown: terminal, Markdown, LaTeX, CSV, HTML."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_GAP = "  "
_MINUS = re.compile(r"(?<!\w)-(?=\d)")
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
          "<": r"\textless{}", ">": r"\textgreater{}"}  # fmt: skip


class Cell(str):
    r"""A text of a table with what a paper sets off: the best number bold, a mark raised, an interval behind it.

    In plain text, as in CSV, the parts follow one another: number, interval, mark.

    >>> cell = Cell("0.4240", rest="[0.34, 0.52]", mark="bc", best=True)
    >>> cell, cell.latex(), cell.markdown()
    ('0.4240 [0.34, 0.52] bc', '\\textbf{0.4240}$^{bc}$ [0.34, 0.52]', '**0.4240**<sup>bc</sup> [0.34, 0.52]')
    """

    __slots__ = ("best", "mark", "number", "rest")

    number: str
    rest: str
    mark: str
    best: bool

    def __new__(cls, number: str, *, rest: str = "", mark: str = "", best: bool = False) -> Self:
        """Join the parts, and keep them."""
        made = super().__new__(cls, " ".join(part for part in (number, rest, mark) if part))
        made.number, made.rest, made.mark, made.best = number, rest, mark, best
        return made

    def latex(self) -> str:
        """Write for LaTeX; letters of a mark stand in italics, as mathematics has them."""
        number, rest = (_MINUS.sub("$-$", latex_text(part)) for part in (self.number, self.rest))
        number = rf"\textbf{{{number}}}" if self.best else number
        mark = "".join({"†": r"\dagger", "‡": r"\ddagger", "-": "{-}"}.get(char, char) for char in self.mark)
        raised = f"$^{{{mark}}}$" if mark else ""
        return number + raised + (f" {rest}" if rest else "")

    def markdown(self) -> str:
        """Write for Markdown."""
        return self._written("**", "**", str)

    def html(self) -> str:
        """Write for HTML."""
        return self._written("<b>", "</b>", _escaped)

    def _written(self, opened: str, closed: str, escaped: Callable[[str], str]) -> str:
        number = f"{opened}{escaped(self.number)}{closed}" if self.best else escaped(self.number)
        raised = f"<sup>{escaped(self.mark)}</sup>" if self.mark else ""
        return number + raised + (f" {escaped(self.rest)}" if self.rest else "")


@dataclass(frozen=True)
class Table:
    """Rows of text under a header. The first ``labels`` columns name the row and stand left; the others are numbers.

    A `Cell` in place of a text is set off as the form allows.

    >>> print(Table(("run", "AP"), (("bm25", "0.31"), ("rrf", "0.4"))).text())
    run     AP
    bm25  0.31
    rrf    0.4
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """Draw for a terminal. A table that is wider than ``width`` is drawn in several blocks."""
        if any(isinstance(cell, Cell) for row in self.rows for cell in row):
            return self._aligned().text(width=width, colour=colour)
        widths = [max(map(_shown, column)) for column in zip(self.header, *self.rows, strict=True)]
        blocks = self._blocks(widths, width)
        return "\n\n".join(self._draw(block, widths, colour=colour) for block in blocks)

    def markdown(self) -> str:
        """Write as a Markdown table."""
        marks = [":--" if at < self.labels else "--:" for at in range(len(self.header))]
        lines = [self.header, tuple(marks), *self.rows]
        return "\n".join("| " + " | ".join(_markdown(cell) for cell in line) + " |" for line in lines)

    def latex(self) -> str:
        """Write as a LaTeX tabular (package booktabs)."""
        columns = "l" * self.labels + "r" * (len(self.header) - self.labels)
        lines = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in (self.header, *self.rows)]
        body = [lines[0], r"\midrule", *lines[1:]]
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}"])

    def csv(self) -> str:
        """Write as comma-separated values."""
        target = io.StringIO()
        csv.writer(target, lineterminator="\n").writerows([self.header, *self.rows])
        return target.getvalue().rstrip("\n")

    def html(self, notes: Sequence[str] = ()) -> str:
        """Write as an HTML table that needs no style sheet."""
        head = "".join(self._cell("th", at, text) for at, text in enumerate(self.header))
        body = "".join(
            "<tr>" + "".join(self._cell("td", at, text) for at, text in enumerate(row)) + "</tr>" for row in self.rows
        )
        listed = "".join(f"<li>{_escaped(note)}</li>" for note in notes)
        below = f"<ul>{listed}</ul>" if notes else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"

    def _cell(self, tag: str, at: int, text: str) -> str:
        side = "left" if at < self.labels else "right"
        shown = text.html() if isinstance(text, Cell) else _escaped(text)
        return f'<{tag} style="text-align:{side}">{shown}</{tag}>'

    def _aligned(self) -> Table:
        """Make plain texts of cells, with numbers under numbers where marks are of different length."""
        columns = [_plain(column) for column in zip(*self.rows, strict=True)]
        return Table(self.header, tuple(zip(*columns, strict=True)), self.labels)

    def _blocks(self, widths: list[int], width: int | None) -> list[list[int]]:
        """Deal the columns out to blocks that fit; each block repeats the labels."""
        labels = list(range(self.labels))
        blocks: list[list[int]] = [list(labels)]
        for at in range(self.labels, len(self.header)):
            used = sum(widths[column] + len(_GAP) for column in [*blocks[-1], at]) - len(_GAP)
            if width is not None and used > width and len(blocks[-1]) > len(labels):
                blocks.append(list(labels))
            blocks[-1].append(at)
        return blocks

    def _draw(self, columns: list[int], widths: list[int], *, colour: bool) -> str:
        lines = [
            _GAP.join(self._padded(line[at], at, widths[at]) for at in columns) for line in (self.header, *self.rows)
        ]
        lines = [line.rstrip() for line in lines]
        return "\n".join([f"\x1b[1m{lines[0]}\x1b[0m" if colour else lines[0], *lines[1:]])

    def _padded(self, text: str, at: int, width: int) -> str:
        space = " " * (width - _shown(text))
        return text + space if at < self.labels else space + text


def _shown(text: str) -> int:
    """Count the terminal cells of a text: wide East Asian characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _plain(column: tuple[str, ...]) -> list[str]:
    """Pad the marks of a column to one width."""
    width = max((len(cell.mark) for cell in column if isinstance(cell, Cell)), default=0)
    marks = [cell.mark if isinstance(cell, Cell) else "" for cell in column]
    bare = [cell.removesuffix(f" {mark}") if mark else str(cell) for cell, mark in zip(column, marks, strict=True)]
    return [f"{cell} {mark.ljust(width)}" if width else cell for cell, mark in zip(bare, marks, strict=True)]


def latex_text(text: str) -> str:
    """Write a text so that LaTeX shows its characters as they are."""
    return "".join(_LATEX.get(char, char) for char in text)


def _latex(text: str) -> str:
    return text.latex() if isinstance(text, Cell) else latex_text(text)


def _markdown(text: str) -> str:
    return (text.markdown() if isinstance(text, Cell) else text).replace("|", r"\|")


def _escaped(text: str) -> str:
    from html import escape  # its table of entities takes a while to import

    return escape(text)
