"""A table of text, and the forms in which it is shown: terminal, Markdown, LaTeX, CSV."""

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
_TURNING = re.compile(rf"[^\s(]*{_BIDI.pattern}\S*?(?=[.,:!?)]*(?:\s|$))")  # a word, without what follows it
_PIECES = re.compile(r"<(title|textarea|option|script|style)\b.*?</\1|<[^>]*>|[^<]+", re.DOTALL)
_OURS = re.compile(r"([\t\n]|\x1b\[(?:[01]|(?:1;)?[39]\d)m)")
_ACTIVE = re.compile(r"[\\`*&~|]|<(?! )|(?<!\w )>|>(?! )|\](?=[(:\[])|(?<!\w)_|_(?!\w)")
_CODE = re.compile(r"(`[^`\r\n]+`)")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_START = re.compile(r"^(\s*(?:\d+(?=[.)]\s))?)([#+.)-])(?=[\s#]|$)")
_LINES = re.compile(r"[\t\r\n\v\f\x85\u2028\u2029]+")
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
        number = f"**{_inline(self.number)}**" if self.best else _inline(self.number)
        raised = f"<sup>{_escaped(self.mark)}</sup>" if self.mark else ""
        return number + raised + (f" {_inline(self.rest)}" if self.rest else "")


@dataclass(frozen=True)
class TextTable:
    """Rows of text under a header. The first ``labels`` columns name the row and stand left; the others are numbers.

    A `Cell` in place of a text is set off as the form allows.

    >>> print(TextTable(("run", "AP"), (("bm25", "0.31"), ("rrf", "0.4"))).text())
    run     AP
    bm25  0.31
    rrf    0.4
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """Draw for a terminal. A table that is wider than ``width`` is drawn in several blocks."""
        if any(_CONTROL.search(cell) for line in (self.header, *self.rows) for cell in line):
            return self._each(_visible).text(width=width, colour=colour)
        if any(isinstance(cell, Cell) for row in self.rows for cell in row):
            return self._aligned().text(width=width, colour=colour)
        widths = [max(map(cells_of, column)) for column in zip(self.header, *self.rows, strict=True)]
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
        return csv_lines([self.header, *self.rows])

    def _each(self, change: Callable[[str], str]) -> TextTable:
        """Change every text."""
        rows = tuple(tuple(map(change, row)) for row in self.rows)
        return TextTable(tuple(map(change, self.header)), rows, self.labels)

    def _aligned(self) -> TextTable:
        """Make plain texts of cells, with numbers under numbers where marks are of different length."""
        columns = [_plain(column) for column in zip(*self.rows, strict=True)]
        return TextTable(self.header, tuple(zip(*columns, strict=True)), self.labels)

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
        space = " " * (width - cells_of(text))
        return text + space if at < self.labels else space + text


def cells_of(text: str) -> int:
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


def visible(text: str) -> str:
    r"""Write control characters, and those that turn the direction of what follows, as escapes.

    >>> print(visible("a\x1b[31m\u202eb\nc"))
    a\x1b[31m\u202eb\nc
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def on_terminal(text: str) -> str:
    """Make control characters visible but for ends of lines, tabs and the colours that we write."""
    return "".join(part if at % 2 else visible(part) for at, part in enumerate(_OURS.split(text)))


def _visible(text: str) -> str:
    if not isinstance(text, Cell):
        return visible(text)
    return Cell(visible(text.number), rest=visible(text.rest), mark=visible(text.mark), best=text.best)


def latex_text(text: str) -> str:
    """Write a text so that LaTeX shows its characters as they are."""
    return "".join(_LATEX.get(char, char) for char in visible(text))


def _latex(text: str) -> str:
    if isinstance(text, Cell):
        return text.latex()
    return _MINUS.sub("$-$", latex_text(text)) if _NUMBER.fullmatch(text) else latex_text(text)


def markdown_text(text: str) -> str:
    r"""Write a text in one line so that Markdown shows its characters as they are.

    >>> print(markdown_text("<b> & a_b *c* _d_ |"))
    &lt;b&gt; &amp; a_b \*c\* \_d\_ \|
    """
    return _START.sub(r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Write a text so that Markdown shows it as it is inside of a line."""
    flat = visible(_LINES.sub(" ", text))
    return _ACTIVE.sub(lambda found: _NAMED.get(found[0], "\\" + found[0]), flat)


def markdown_prose(text: str) -> str:
    r"""Escape a sentence; what stands in backticks stays code, in which nothing is active.

    >>> print(markdown_prose("`a*b` is *not* c"))
    `a*b` is \*not\* c
    """
    parts = enumerate(_CODE.split(text))
    return "".join(visible(part) if at % 2 else markdown_text(part) for at, part in parts)


def markdown_list(sentences: Iterable[str]) -> str:
    """Write sentences as a list."""
    return "\n".join(f"- {markdown_prose(one)}" for one in sentences)


def _markdown(text: str) -> str:
    return text.markdown() if isinstance(text, Cell) else _inline(text)


def csv_cell(value: object, delimiter: str = ",") -> str:
    """Write a value as a cell that a spreadsheet takes for what it is, and that `csv_text` and every reader gives back.

    A text that begins with ``=``, ``+``, ``-``, ``@``, ``'``, a tab, or a carriage return gets an apostrophe before it;
    a number does not, whether it is one or looks like one. Texts with blanks at an end are quoted.

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
    """Write rows as comma-separated values (`csv_cell`), without a line feed at the end."""
    return "\n".join(csv_row(row, delimiter) for row in rows)


def csv_row(row: Iterable[object], delimiter: str = ",") -> str:
    """Write one row; of a single empty cell, so that it is not an empty line."""
    return delimiter.join(csv_cell(value, delimiter) for value in row) or '""'


def csv_text(cell: str) -> str:
    """Return the text of which `csv_cell` made a cell, once quotes are removed.

    >>> [csv_text(cell) for cell in ("'=x", "''=x", "''x", "'x", "-1")]
    ['=x', "'=x", "'x", "'x", '-1']
    """
    return cell[1:] if _ESCAPED.match(cell) else cell


def isolated(page: str) -> str:
    r"""Keep characters that turn the direction of text in HTML from turning more than the words that they stand in.

    >>> isolated("<p title='\u202e'>\u202eb: 0.5</p>").count("<bdi>\u202eb</bdi>: 0.5")
    1
    """
    if not _BIDI.search(page):
        return page
    return _PIECES.sub(lambda found: _with_bdi(found[0]), page)


def _with_bdi(piece: str) -> str:
    return piece if piece[0] == "<" else _TURNING.sub(r"<bdi>\g<0></bdi>", piece)


def _escaped(text: str) -> str:
    from html import escape  # its table of entities takes a while to import

    return escape(text)
