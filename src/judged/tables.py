"""A table of text, and the forms in which it is shown: terminal, Markdown, LaTeX, CSV, HTML."""

from __future__ import annotations

import csv
import io
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = "  "
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Rows of text under a header. The first ``labels`` columns name the row and stand left; the others are numbers.

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
        widths = [max(map(_shown, column)) for column in zip(self.header, *self.rows, strict=True)]
        blocks = self._blocks(widths, width)
        return "\n\n".join(self._draw(block, widths, colour=colour) for block in blocks)

    def markdown(self) -> str:
        """Write as a Markdown table."""
        marks = [":--" if at < self.labels else "--:" for at in range(len(self.header))]
        lines = [self.header, tuple(marks), *self.rows]
        return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)

    def latex(self) -> str:
        """Write as a LaTeX tabular (package booktabs)."""
        columns = "l" * self.labels + "r" * (len(self.header) - self.labels)
        lines = [" & ".join(map(_latex, line)) + r" \\" for line in (self.header, *self.rows)]
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
        return f'<{tag} style="text-align:{side}">{_escaped(text)}</{tag}>'

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


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in text)


def _escaped(text: str) -> str:
    from html import escape  # its table of entities takes a while to import

    return escape(text)
