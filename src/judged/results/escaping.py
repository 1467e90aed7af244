"""Escaping of texts for terminal, Markdown, LaTeX, CSV, and HTML; tables of text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_GAP = "  "
_MINUS = re.compile(r"(?<!\w)-(?=\d)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?%?|[-+]?(?:inf|nan)|[-+]", re.IGNORECASE)
_FORMULA = re.compile(r"[=+\-@'\t\r]")
_ESCAPED = re.compile(r"'(?=[=+\-@'\t\r])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BIDI_WORD = re.compile(rf"[^\s(]*{_BIDI.pattern}\S*?(?=[.,:!?)]*(?:\s|$))")  # a word, without punctuation after it
_HTML_PIECES = re.compile(r"<(title|textarea|option|script|style)\b.*?</\1|<[^>]*>|[^<]+", re.DOTALL)
_ALLOWED_CONTROLS = re.compile(r"([\t\n]|\x1b\[(?:[01]|(?:1;)?[39]\d)m)")
_ACTIVE = re.compile(r"[\\`*&~|]|<(?! )|(?<!\w )>|>(?! )|\](?=[(:\[])|(?<!\w)_|_(?!\w)")
_CODE = re.compile(r"(`[^`\r\n]+`)")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LINE_START = re.compile(r"^(\s*(?:\d+(?=[.)]\s))?)([#+.)-])(?=[\s#]|$)")
_LINE_BREAKS = re.compile(r"[\t\r\n\v\f\x85\u2028\u2029]+")
_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


class Cell(str):
    r"""Text of a table cell with a highlighted best number, a superscript mark, and a detail such as an interval.

    As plain text, it is the number, the detail, and the mark.

    >>> cell = Cell("0.4240", detail="[0.34, 0.52]", mark="bc", best=True)
    >>> cell, cell.latex(), cell.markdown()
    ('0.4240 [0.34, 0.52] bc', '\\textbf{0.4240}$^{bc}$ [0.34, 0.52]', '**0.4240**<sup>bc</sup> [0.34, 0.52]')
    """

    __slots__ = ("best", "detail", "mark", "number")

    number: str
    detail: str
    mark: str
    best: bool

    def __new__(cls, number: str, *, detail: str = "", mark: str = "", best: bool = False) -> Self:
        """Create the plain text and store its parts."""
        cell = super().__new__(cls, " ".join(part for part in (number, detail, mark) if part))
        cell.number, cell.detail, cell.mark, cell.best = number, detail, mark, best
        return cell

    def latex(self) -> str:
        """Render for LaTeX; the mark is in math italics."""
        number, detail = (_MINUS.sub("$-$", latex_text(part)) for part in (self.number, self.detail))
        number = rf"\textbf{{{number}}}" if self.best else number
        mark = "".join({"†": r"\dagger", "‡": r"\ddagger", "-": "{-}"}.get(char, char) for char in self.mark)
        superscript = f"$^{{{mark}}}$" if mark else ""
        return number + superscript + (f" {detail}" if detail else "")

    def markdown(self) -> str:
        """Render for Markdown."""
        number = f"**{_inline(self.number)}**" if self.best else _inline(self.number)
        superscript = f"<sup>{_escaped(self.mark)}</sup>" if self.mark else ""
        return number + superscript + (f" {_inline(self.detail)}" if self.detail else "")


@dataclass(frozen=True)
class TextTable:
    """Table of texts. The first ``labels`` columns name the row and are left-aligned; the others are numbers.

    A `Cell` is highlighted if the format supports it.

    >>> print(TextTable(("run", "AP"), (("bm25", "0.31"), ("rrf", "0.4"))).text())
    run     AP
    bm25  0.31
    rrf    0.4
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1

    def text(self, *, width: int | None = None, color: bool = False) -> str:
        """Render for a terminal. A table that is wider than ``width`` is split into several blocks."""
        if any(_CONTROL.search(cell) for line in (self.header, *self.rows) for cell in line):
            return self._map_texts(_escape_cell).text(width=width, color=color)
        if any(isinstance(cell, Cell) for row in self.rows for cell in row):
            return self._with_aligned_marks().text(width=width, color=color)
        widths = [max(map(cells_of, column)) for column in zip(self.header, *self.rows, strict=True)]
        blocks = self._blocks(widths, width)
        return "\n\n".join(self._draw(block, widths, color=color) for block in blocks)

    def markdown(self) -> str:
        """Render as a Markdown table."""
        marks = [":--" if column < self.labels else "--:" for column in range(len(self.header))]
        lines = [self.header, tuple(marks), *self.rows]
        return "\n".join("| " + " | ".join(_markdown(cell) for cell in line) + " |" for line in lines)

    def latex(self) -> str:
        """Render as a LaTeX tabular (package booktabs)."""
        columns = "l" * self.labels + "r" * (len(self.header) - self.labels)
        lines = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in (self.header, *self.rows)]
        body = [lines[0], r"\midrule", *lines[1:]]
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}"])

    def csv(self) -> str:
        """Render as comma-separated values."""
        return csv_lines([self.header, *self.rows])

    def _map_texts(self, change: Callable[[str], str]) -> TextTable:
        rows = tuple(tuple(map(change, row)) for row in self.rows)
        return TextTable(tuple(map(change, self.header)), rows, self.labels)

    def _with_aligned_marks(self) -> TextTable:
        """Return the table with plain texts, in which marks are padded so that numbers align."""
        columns = [_pad_marks(column) for column in zip(*self.rows, strict=True)]
        return TextTable(self.header, tuple(zip(*columns, strict=True)), self.labels)

    def _blocks(self, widths: list[int], width: int | None) -> list[list[int]]:
        """Distribute the columns to blocks that fit; each block repeats the labels."""
        labels = list(range(self.labels))
        blocks: list[list[int]] = [list(labels)]
        for new_column in range(self.labels, len(self.header)):
            used = sum(widths[column] + len(_GAP) for column in [*blocks[-1], new_column]) - len(_GAP)
            if width is not None and used > width and len(blocks[-1]) > len(labels):
                blocks.append(list(labels))
            blocks[-1].append(new_column)
        return blocks

    def _draw(self, columns: list[int], widths: list[int], *, color: bool) -> str:
        lines = [
            _GAP.join(self._pad(line[column], column, widths[column]) for column in columns)
            for line in (self.header, *self.rows)
        ]
        lines = [line.rstrip() for line in lines]
        return "\n".join([f"\x1b[1m{lines[0]}\x1b[0m" if color else lines[0], *lines[1:]])

    def _pad(self, text: str, column: int, width: int) -> str:
        space = " " * (width - cells_of(text))
        return text + space if column < self.labels else space + text


def cells_of(text: str) -> int:
    """Count the terminal cells of a text: wide East Asian characters have two, combining characters none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _pad_marks(column: tuple[str, ...]) -> list[str]:
    """Pad the marks of a column to the same width."""
    width = max((len(cell.mark) for cell in column if isinstance(cell, Cell)), default=0)
    marks = [cell.mark if isinstance(cell, Cell) else "" for cell in column]
    bare = [cell.removesuffix(f" {mark}") if mark else str(cell) for cell, mark in zip(column, marks, strict=True)]
    return [f"{cell} {mark.ljust(width)}" if width else cell for cell, mark in zip(bare, marks, strict=True)]


def escape_controls(text: str) -> str:
    r"""Replace control characters, including those that change the text direction, by escape sequences.

    >>> print(escape_controls("a\x1b[31m\u202eb\nc"))
    a\x1b[31m\u202eb\nc
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def on_terminal(text: str) -> str:
    """Replace control characters except line feeds, tabs, and our color codes by escape sequences."""
    return "".join(part if i % 2 else escape_controls(part) for i, part in enumerate(_ALLOWED_CONTROLS.split(text)))


def _escape_cell(text: str) -> str:
    if not isinstance(text, Cell):
        return escape_controls(text)
    return Cell(
        escape_controls(text.number),
        detail=escape_controls(text.detail),
        mark=escape_controls(text.mark),
        best=text.best,
    )


def latex_text(text: str) -> str:
    """Escape a text for LaTeX."""
    return "".join(_LATEX.get(char, char) for char in escape_controls(text))


def _latex(text: str) -> str:
    if isinstance(text, Cell):
        return text.latex()
    return _MINUS.sub("$-$", latex_text(text)) if _NUMBER.fullmatch(text) else latex_text(text)


def markdown_text(text: str) -> str:
    r"""Escape a text for one line of Markdown.

    >>> print(markdown_text("<b> & a_b *c* _d_ |"))
    &lt;b&gt; &amp; a_b \*c\* \_d\_ \|
    """
    return _LINE_START.sub(r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Escape a text for Markdown inside of a line."""
    flat = escape_controls(_LINE_BREAKS.sub(" ", text))
    return _ACTIVE.sub(lambda match: _ENTITIES.get(match[0], "\\" + match[0]), flat)


def markdown_prose(text: str) -> str:
    r"""Escape a sentence for Markdown; text in backticks stays code.

    >>> print(markdown_prose("`a*b` is *not* c"))
    `a*b` is \*not\* c
    """
    parts = enumerate(_CODE.split(text))
    return "".join(escape_controls(part) if i % 2 else markdown_text(part) for i, part in parts)


def markdown_list(sentences: Iterable[str]) -> str:
    """Render sentences as a Markdown list."""
    return "\n".join(f"- {markdown_prose(sentence)}" for sentence in sentences)


def _markdown(text: str) -> str:
    return text.markdown() if isinstance(text, Cell) else _inline(text)


def csv_cell(value: object, delimiter: str = ",") -> str:
    """Format a value as a CSV cell that spreadsheets do not execute as a formula; `csv_text` reverses it.

    A text that begins with ``=``, ``+``, ``-``, ``@``, ``'``, a tab, or a carriage return gets an apostrophe before it,
    unless it is or looks like a number. Texts with leading or trailing blanks are quoted.

    >>> [csv_cell(value) for value in ("=1+1", "-0.12", -0.12, "-x", "'x", " a", 'a "b" c', None)]
    ["'=1+1", '-0.12', '-0.12', "'-x", "''x", '" a"', '"a ""b"" c"', '']
    """
    text = "" if value is None else str(value)
    plain = value.number if isinstance(value, Cell) else text
    if _FORMULA.match(text) and not _NUMBER.fullmatch(plain):
        text = f"'{text}"
    special = delimiter in text or '"' in text or "\n" in text or "\r" in text or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if special else text


def csv_lines(rows: Iterable[Iterable[object]], delimiter: str = ",") -> str:
    """Format rows as comma-separated values (`csv_cell`), without a line feed at the end."""
    return "\n".join(csv_row(row, delimiter) for row in rows)


def csv_row(row: Iterable[object], delimiter: str = ",") -> str:
    """Format one row; a single empty cell is quoted so that the line is not empty."""
    return delimiter.join(csv_cell(value, delimiter) for value in row) or '""'


def csv_text(cell: str) -> str:
    """Return the original text of a `csv_cell` without quotes.

    >>> [csv_text(cell) for cell in ("'=x", "''=x", "''x", "'x", "-1")]
    ['=x', "'=x", "'x", "'x", '-1']
    """
    return cell[1:] if _ESCAPED.match(cell) else cell


def isolate_directions(page: str) -> str:
    r"""Isolate words with directional control characters in HTML, so that they do not affect other text.

    >>> isolate_directions("<p title='\u202e'>\u202eb: 0.5</p>").count("<bdi>\u202eb</bdi>: 0.5")
    1
    """
    if not _BIDI.search(page):
        return page
    return _HTML_PIECES.sub(lambda match: _with_bdi(match[0]), page)


def _with_bdi(piece: str) -> str:
    return piece if piece[0] == "<" else _BIDI_WORD.sub(r"<bdi>\g<0></bdi>", piece)


def _escaped(text: str) -> str:
    from html import escape  # slow to import

    return escape(text)
