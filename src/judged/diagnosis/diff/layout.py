"""A diff as two columns for a terminal, as Markdown, and as tables."""

from __future__ import annotations

import itertools
import math
import textwrap
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.diagnosis.diff.sentences import sentences, topic_sentence
from judged.tables import Table, markdown_prose, markdown_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.diff.rows import DiffRow, DiffTable, TopicRows

_WIDTH = 100  # where none is given
_LEAST = 28  # of one column; what is narrower is shown as a table
_PROSE = 100
_SIGNS = {"up": "↑", "down": "↓", "new": "+", "gone": "x", "same": "="}  # "-" is for what is not judged
_ASCII = {"up": "^", "down": "v", "new": "+", "gone": "x", "same": "="}
_SHORT = 70  # characters of a text in a table


@dataclass(frozen=True)
class _Style:
    """How a terminal is written to."""

    colour: bool
    ascii_only: bool
    grades: tuple[float, float]

    def mark(self, row: DiffRow) -> str:
        """Write how a document moved: ``↑3``, ``+``."""
        sign = (_ASCII if self.ascii_only else _SIGNS)[row.moved]
        return f"{sign}{abs(row.places) or ''}"

    def painted(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code else text

    def graded(self, row: DiffRow, text: str) -> str:
        """Paint by grade: dim where there is none, red for 0 and less, yellow, and green for the highest."""
        if row.grade is None:
            return self.painted(text, "2")
        return self.painted(text, "31" if row.grade <= 0 else "1;32" if row.grade >= self.grades[1] else "33")

    def moved(self, row: DiffRow, text: str) -> str:
        return self.painted(text, {"up": "32", "new": "36", "down": "31", "gone": "35"}.get(row.moved, "2"))

    def plain(self, text: str) -> str:
        return text.encode("ascii", "replace").decode() if self.ascii_only else text


def text(found: DiffTable, *, width: int | None, colour: bool, ascii_only: bool) -> str:
    """Write a block a topic: scores, sentence, and the lists in two columns."""
    style = _Style(colour, ascii_only, found.grades)
    wide = width or _WIDTH
    blocks = ["\n".join(_wrapped(style.plain(one), wide) for one in sentences(found))]
    if len(found.topics) > 1:
        blocks.append(topics_table(found).text(width=wide))
    blocks += [_topic_block(one, style, wide) for one in found.topics]
    if found.topics:
        blocks.append(_wrapped(style.plain(_legend(style)), wide))
    return "\n\n".join(blocks)


def _legend(style: _Style) -> str:
    signs = _ASCII if style.ascii_only else _SIGNS
    return (
        f"rank, how it moved, grade (- is unjudged), document; {signs['up']}n rose by n ranks, {signs['down']}n fell,"
        f" {signs['new']} new, {signs['gone']} gone, {signs['same']} same rank; on the left only what the right list"
        " does not show"
    )


def _topic_block(one: TopicRows, style: _Style, width: int) -> str:
    head = f"topic {one.query_id}" + (f": {one.query}" if one.query else "")
    lines = [style.painted(_cut(style.plain(head), width, style), "1")]
    lines += [_score_line(one, at) for at in range(len(one.scores))]
    lines.append(_wrapped(style.plain(topic_sentence(one)), width))
    if one.rows:
        lines += _columns(one, style, width)
    return "\n".join(lines)


def _score_line(one: TopicRows, at: int) -> str:
    pair, (first, second) = one.scores[at], one.runs
    if math.isnan(pair.difference):
        return f"{pair.measure}: no score"
    change = decimal(pair.difference, 4, "+")
    return f"{pair.measure}: {first} {decimal(pair.first)}, {second} {decimal(pair.second)} ({change})"


def _columns(one: TopicRows, style: _Style, width: int) -> list[str]:
    """Write both lists beside each other, rank by rank; one below the other where there is no room."""
    beside = (width - 3) // 2 >= _LEAST
    column = (width - 3) // 2 if beside else width
    left, right = one.side(0), one.side(1)
    shown = {row.doc_id for row in right}
    widths = (
        len(str(max(len(left), len(right)))),
        max(len(style.mark(row)) for row in one.rows),
        max(len(row.shown_grade) for row in one.rows),
    )
    cells = (
        [_cell(row, row.first_rank, row.doc_id not in shown, widths, column, style) for row in left],
        [_cell(row, row.second_rank, True, widths, column, style) for row in right],
    )
    heads = [_cut(style.plain(name), column, style) for name in one.runs]
    if not beside:
        return [line.rstrip() for at, head in enumerate(heads) for line in (style.painted(head, "1"), *cells[at])]
    bar = " | " if style.ascii_only else " │ "
    pairs = [(_padded(heads[0], column), heads[1]), *itertools.zip_longest(*cells, fillvalue="")]
    return [bar.join((pair[0] or " " * column, pair[1])).rstrip() for pair in pairs]


def _cell(
    row: DiffRow, rank: int | None, marked: bool, widths: tuple[int, int, int], column: int, style: _Style
) -> str:
    ranks, marks, grades = widths
    mark = style.moved(row, f"{style.mark(row):<{marks}}") if marked else " " * marks
    room = max(column - ranks - marks - grades - 4, 1)
    body = _padded(_cut(style.plain(_name(row)), room, style), room)
    grade = style.graded(row, f"{row.shown_grade:>{grades}}")
    return f"{rank:>{ranks}} {mark} {grade}  {style.graded(row, body) if row.grade else body}"


def _name(row: DiffRow) -> str:
    """Write id and text; a text that begins with the id says both."""
    if not row.text or row.text == row.doc_id:
        return row.doc_id
    return row.text if row.text.startswith(row.doc_id) else f"{row.doc_id}  {row.text}"


def topics_table(found: DiffTable) -> Table:
    """Lay out a row a topic: both scores by the first measure, and what moved."""
    queries = any(one.query for one in found.topics)
    header = ("query_id", *(("query",) if queries else ()), *found.runs, "difference", "up/down/new/gone")
    rows = tuple(
        (
            one.query_id,
            *((_short(one.query, 40),) if queries else ()),
            *(_number(value) for value in (one.scores[0].first, one.scores[0].second)),
            "-" if math.isnan(one.scores[0].difference) else decimal(one.scores[0].difference, 4, "+"),
            "/".join(str(one.counts[way]) for way in ("up", "down", "new", "gone")),
        )
        for one in found.topics
    )
    return Table(header, rows, labels=2 if queries else 1)


def documents_table(one: TopicRows) -> Table:
    """Lay out a row a document: both ranks, how it moved, grade, and what it adds to the difference."""
    adds = bool(one.rows) and one.rows[0].changes[:1] != (None,)
    texts = any(row.text for row in one.rows)
    header = ["document", *(["text"] if texts else []), "grade", *one.runs, "moved", *(["adds"] if adds else [])]
    rows = tuple(
        (
            row.doc_id,
            *((_short(row.text, _SHORT),) if texts else ()),
            row.shown_grade,
            *("-" if rank is None else str(rank) for rank in (row.first_rank, row.second_rank)),
            row.movement,
            *((_signed(row.changes[0]),) if adds else ()),
        )
        for row in one.rows
    )
    return Table(tuple(header), rows, labels=2 if texts else 1)


def long_table(found: DiffTable) -> Table:
    """Lay out a row a topic and document, in full precision."""
    header = ("query_id", "doc_id", "first_rank", "second_rank", "moved", "places", "grade")
    rows = tuple(
        (
            one.query_id,
            row.doc_id,
            *("" if rank is None else str(rank) for rank in (row.first_rank, row.second_rank)),
            row.moved,
            str(row.places),
            "" if row.grade is None else repr(row.grade),
            *("" if change is None else repr(change) for change in row.changes),
        )
        for one in found.topics
        for row in one.rows
    )
    return Table((*header, *(f"adds to {name}" for name in found.measures)), rows, labels=2)


def markdown(found: DiffTable) -> str:
    """Write a table of topics, and a table of documents for each."""
    blocks = [f"## {markdown_text(f'{found.runs[0]} and {found.runs[1]}, side by side')}"]
    blocks += map(markdown_prose, sentences(found))
    if len(found.topics) > 1:
        blocks.append(topics_table(found).markdown())
    for one in found.topics:
        blocks.append("### " + markdown_text(f"Topic {one.query_id}" + (f": {one.query}" if one.query else "")))
        blocks += ["  \n".join(markdown_prose(_score_line(one, at)) for at in range(len(one.scores)))]
        blocks.append(markdown_prose(topic_sentence(one)))
        if one.rows:
            blocks.append(documents_table(one).markdown())
    return "\n\n".join(blocks)


def _wrapped(sentence: str, width: int) -> str:
    return textwrap.fill(sentence, min(width, _PROSE), break_long_words=False, break_on_hyphens=False)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else decimal(value)


def _signed(value: float | None) -> str:
    return "-" if value is None else decimal(value, 4, "+") if value else "0"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _cut(text: str, room: int, style: _Style) -> str:
    """Cut a text to so many terminal cells."""
    if _cells(text) <= room:
        return text
    end = "..." if style.ascii_only else "…"
    kept, used = list[str](), len(end)
    for char in text:
        used += _cells(char)
        if used > room:
            break
        kept.append(char)
    return "".join(kept).rstrip() + end


def _padded(text: str, room: int) -> str:
    return text + " " * (room - _cells(text))


def _cells(text: str | Sequence[str]) -> int:
    """Count the terminal cells of a text: wide characters take two, marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
