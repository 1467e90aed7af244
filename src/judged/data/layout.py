"""Layout of the lines of a text file, and splitting a line into fields."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.errors import JudgedError
from judged.results.decimals import counted, is_number, read_grade, read_number

if TYPE_CHECKING:
    from collections.abc import Sequence


NUMERIC_COLUMNS = frozenset({"score", "relevance", "rank"})
"""Names of the numeric columns."""

MAX_EXACT_INTEGER = 2.0**53
"""Largest number up to which all integers are exact as float64."""

COMMENT_FIX = "write a space after the # of a comment, or use another topic id"

_FIELD = re.compile(rb"""(?:[ \t]*"((?:[^"]|"")*)"[ \t]*|([ \t]*[^", \t][^,]*|[ \t]*))(?=,|$)""")
_ESCAPED = re.compile(rb"'(?=[=+\-@'\t\r])")
_DESCRIPTION = b"<SYSDESC>"  # first line of the runs of NTCIR
_HEADER = re.compile(rb"(?:[ \t\v\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*([^\r\n]*)(?:\r\n|\r|\n)?")


class LineError(ValueError):
    """Error in one line, with the name of the rule in `judged check`."""

    def __init__(self, rule: str, problem: str) -> None:
        self.rule = rule
        super().__init__(problem)

    __reduce__ = JudgedError.__reduce__


@dataclass(frozen=True)
class Layout:
    """Layout of the lines of a text file.

    >>> print(Layout(("query_id", "", "doc_id", "relevance"), " "))
    query_id _ doc_id relevance
    """

    names: tuple[str, ...]  # canonical name of the column of each field, `""` for a field that is not used
    delimiter: str  # `" "` and `"\t"` mean any white space unless `strict`; a comma is always strict
    strict: bool = False  # the delimiter is exactly one character, so that fields may be empty or contain blanks
    header: bool = False  # the first line that is neither blank nor a comment names the columns
    optional: int = 0  # number of fields at the end that may be missing, such as the tag of a run
    fields: int = 0  # number of fields of a line, if there are more fields than names
    open_ended: bool = False  # any number of fields may follow
    unused: tuple[str, ...] = ()  # columns of the header that are not read

    @property
    def width(self) -> int:
        """Expected number of fields."""
        return max(self.fields, len(self.names))

    def __str__(self) -> str:
        separator = {",": ", ", "\t": " <tab> " if self.strict else " "}.get(self.delimiter, " ")
        return separator.join(name or "_" for name in self.names)


def is_data(raw: bytes) -> bool:
    """Whether a line is neither blank nor a ``#`` comment."""
    text = raw.strip()
    return bool(text) and not text.startswith((b"#", _DESCRIPTION))


def without_header(block: bytes) -> tuple[bytes, bool]:
    """Remove the header line and everything above it; also return whether the block has a header line."""
    match = _HEADER.match(block)
    return (block[match.end() :], is_data(match[1])) if match else (block, False)


def split_line(raw: bytes, layout: Layout) -> dict[str, str] | None:
    """Split one line into its fields by column name; None for a blank line or a ``#`` comment.

    >>> split_line(b"q1 Q0  d7 1 0.5 tag", Layout(("query_id", "", "doc_id", "rank", "score", ""), " "))
    {'query_id': 'q1', 'doc_id': 'd7', 'rank': '1', 'score': '0.5'}
    """
    # In a strict layout a complete line that starts with `#` is a row and not a comment.
    text = raw.decode().strip(" \t\v\f\r\n")
    is_comment = text.startswith("#")
    if is_comment and not layout.strict and _is_row(raw.split(), layout):
        raise LineError(
            "comment-or-row", f"this may be a comment, or a row of a topic that begins with #: {text[:80]!r}"
        )
    if not text or (is_comment and not layout.strict) or raw.startswith(_DESCRIPTION):
        return None
    fields = split_fields(raw, layout.delimiter, strict=layout.strict)
    required = len(layout.names) - layout.optional
    if len(fields) < required:
        if is_comment:
            return None
        raise LineError(
            "too-few-fields", f"{counted(len(fields), 'field')}, expected at least {required}: {text[:80]!r}"
        )
    if not layout.open_ended and any(fields[layout.width :]):
        problem = f"{counted(len(fields), 'field')}, expected {layout.width}: {text[:80]!r}"
        raise LineError("too-many-fields", problem)
    by_name = {name: field.decode() for name, field in zip(layout.names, fields, strict=False) if name}
    for name in ("query_id", "doc_id"):
        if not by_name[name]:
            raise LineError("empty-id", f"the {name} is empty: {text[:80]!r}")
    return by_name


def _is_row(fields: list[bytes], layout: Layout) -> bool:
    """Whether a comment without a blank after the # has the fields and numbers of a row."""
    if fields[0] == b"#" or not len(layout.names) - layout.optional <= len(fields) <= layout.width:
        return False
    numbers = [field for name, field in zip(layout.names, fields, strict=False) if name in NUMERIC_COLUMNS]
    try:
        return all(map(math.isfinite, map(read_number, map(bytes.decode, numbers)))) and bool(numbers)
    except ValueError:
        return False


def split_fields(raw: bytes, delimiter: str, *, strict: bool) -> list[bytes]:
    r"""Split a line at its delimiters; only commas support quoted fields, in which blanks are preserved.

    >>> split_fields(b"q1\t d 1", " ", strict=False), split_fields(b'1, "a, b " ,5', ",", strict=True)
    ([b'q1', b'd', b'1'], [b'1', b'a, b ', b'5'])
    """
    if not strict:
        return raw.split()
    if delimiter != ",":
        return [field.strip() for field in raw.rstrip(b"\r\n").split(delimiter.encode())]
    if b'"' not in raw:
        return [_unescape(field.strip()) for field in raw.split(b",")]
    fields: list[bytes] = []
    line, start = raw.strip(b"\r\n"), 0
    while start <= len(line):
        match = _FIELD.match(line, start)
        if match is None:
            text = raw.strip()[:80].decode(errors="replace")
            raise LineError("bad-quote", f"a double quote is not closed, or is followed by text: {text!r}")
        quoted, bare = match.groups()
        fields.append(_unescape(bare.strip() if quoted is None else quoted.replace(b'""', b'"')))
        start = match.end() + 1
    return fields


def _unescape(field: bytes) -> bytes:
    """Remove the apostrophe that `judged.results.escaping.csv_cell` writes before text that looks like a formula."""
    return field[1:] if _ESCAPED.match(field) else field


def parse_field(name: str, text: str) -> str | float | int:
    """Parse one field. Numbers must be decimal and in the range of float64: no hex, NaN, or decimal comma.

    >>> parse_field("score", "1e-05"), parse_field("doc_id", "007"), parse_field("rank", "3")
    (1e-05, '007', 3)
    """
    if name not in NUMERIC_COLUMNS:
        return text
    try:
        number = read_grade(text) if name == "relevance" else read_number(text)
    except ValueError as error:
        rule = "nan-score" if text.lower().lstrip("+-") == "nan" else f"bad-{name}"
        raise LineError(rule, f"the {name} {text[:80]!r} {error}") from None
    if name != "rank":
        return number
    if not (abs(number) <= MAX_EXACT_INTEGER and number.is_integer()):
        raise LineError("bad-rank", f"the rank {text!r} is not an integer")
    return int(number)


_ITERATIONS = frozenset({"0", "Q0", "q0"})
_GRADES = frozenset(map(str, range(-2, 5)))
_MAX_GRADE = 10  # a column that counts up to a larger number holds ranks
_MAX_RATINGS = 21  # distinct ratings: half stars from 0 to 10
_MAX_ITERATIONS = 50  # distinct values of an iteration
_MIN_TIMESTAMP = 1e8  # seconds since 1970: a date in 1973


def looks_like_qrels(rows: Sequence[Sequence[str]]) -> str:
    """Describe why the lines of a run look like qrels; ``""`` if they do not.

    >>> looks_like_qrels([["q1", "0", "d1", "1"], ["q1", "0", "d2", "0"]])
    "4 fields, the second of them '0'"
    >>> looks_like_qrels([["q1", "d1", "12.5"], ["q1", "d2", "11.5"]])
    ''
    """
    width = common_width(rows)
    rows = [row for row in rows if len(row) == width]
    if width < 3:
        return ""
    if looks_like_smart(rows):
        return "4 fields, the last two of them 0 in every line"
    if width == 4:
        iteration = _most_common(rows, 1)
        if iteration in _ITERATIONS:
            return f"4 fields, the second of them {iteration!r}"
        if not any(_is_whole(row[2]) for row in rows) and all(is_number(row[3]) for row in rows):
            return "4 fields, the third of them not a rank and the last a number"
        if _has_repeated_pairs(rows) and all(row[3] in _GRADES for row in rows):
            return "4 fields, the last of them a small whole number"
    if width == 3 and all(row[2] in _GRADES for row in rows) and not ranks_count_up(rows) and _has_ties(rows):
        return "the last field has small whole numbers that repeat often, as grades do"
    if width == 5 and all(row[2] in _GRADES and _is_probability(row[4]) for row in rows) and _has_ties(rows):
        return "5 fields: a grade, a method and a probability"
    return ""


def looks_like_run(rows: Sequence[Sequence[str]]) -> str:
    """Describe why the lines of qrels look like a run; ``""`` if they do not.

    >>> looks_like_run([["q1", "Q0", "d1", "1", "9.5"], ["q1", "Q0", "d2", "2", "8.5"]])
    "5 fields, the second of them 'Q0'"
    """
    width = common_width(rows)
    rows = [row for row in rows if len(row) == width]
    if width < 3:
        return ""
    if width > 5 and all(_is_whole(row[3]) and is_number(row[4]) for row in rows):
        return f"{width} fields, the fourth of them a rank and the fifth a number"
    if width == 5:
        iteration = _most_common(rows, 1)
        if iteration in _ITERATIONS:
            return f"5 fields, the second of them {iteration!r}"
        if not all(is_number(row[4]) for row in rows) and all(_is_whole(row[2]) for row in rows):
            return "5 fields, the third of them a rank and the last a name"
    has_distinct_docs = _most_common(rows, 1) not in _ITERATIONS and not _has_repeated_pairs(rows)
    is_sampled = width == 5 and all(_is_probability(row[4]) for row in rows)
    if width in (4, 5) and has_distinct_docs and not is_sampled and ranks_count_up(rows):
        return "the third field counts up within each topic, as ranks do"
    if width == 3 and ranks_count_up(rows) and max(int(row[2]) for row in rows) >= _MAX_GRADE:
        return "the last field counts up within each topic, as ranks do"
    return ""


def looks_like_smart(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the lines are qrels of the SMART collections: ``query doc 0 0.000000``.

    >>> looks_like_smart([["1", "28", "0", "0.000000"], ["1", "35", "0", "0.000000"]])
    True
    """
    if common_width(rows) != 4 or len({tuple(row[2:]) for row in rows}) > 1:
        return False
    return len({row[1] for row in rows}) > 1 and is_number(rows[0][3]) and float(rows[0][3]) == 0


def has_iteration_last(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the lines are ``query document grade 0``, as ir_datasets exports them.

    >>> has_iteration_last([["q1", "d1", "2", "0"], ["q1", "d2", "0", "0"]])
    True
    >>> has_iteration_last([["q1", "0", "d1", "0"], ["q1", "0", "d2", "0"]])
    False
    """
    if len(rows) < 2 or not all(len(row) == 4 and row[3] in _ITERATIONS for row in rows):
        return False
    # If the third field is the grade, it has few values, and each document occurs once for a query.
    docs, grades, pairs = {row[1] for row in rows}, {row[2] for row in rows}, {tuple(row[:2]) for row in rows}
    are_grades = all(map(is_number, grades)) and grades != {"0"} and len(grades) <= min(_MAX_RATINGS, len(docs))
    return are_grades and len(pairs) == len(rows) and not docs & _ITERATIONS


def looks_like_ratings(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the lines are ``user item rating time`` rather than ``topic iteration document grade``.

    Timestamps are above 1e8. Read as qrels, ratings would be few documents with dozens of iterations each.

    >>> looks_like_ratings([["196", "242", "3", "881250949"], ["186", "302", "3", "891717742"]])
    True
    >>> looks_like_ratings([["1", "0", "10", "3"], ["1", "0", "7", "0"]])
    False
    """
    rows = [row for row in rows if len(row) == 4]
    ratings, items = {row[2] for row in rows}, {row[1] for row in rows}
    if not rows or len(ratings) > _MAX_RATINGS or not all(map(is_number, ratings)):
        return False
    return has_timestamps(rows) or len(items) > _MAX_ITERATIONS


def has_timestamps(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the fourth field of all lines is a time in seconds."""
    return all(len(row) > 3 and is_number(row[3]) and float(row[3]) > _MIN_TIMESTAMP for row in rows)


def ranks_count_up(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the third field is 1, 2, 3... (or 0, 1, 2...) in each topic, and some topic has two lines.

    >>> ranks_count_up([["q1", "d4", "1"], ["q1", "d2", "2"], ["q2", "d4", "1"]])
    True
    """
    topics = _third_fields(rows)
    return any(len(ranks) > 1 for ranks in topics) and all(_is_rank_sequence(ranks) for ranks in topics)


def ranks_shuffled(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the third field holds 1 to n in each topic, but not in descending order in all topics.

    >>> ranks_shuffled([["q1", "d4", "2"], ["q1", "d2", "3"], ["q1", "d1", "1"]])
    True
    """
    # If so, the field could be a rank or a score. If it descends in all topics, it is a score.
    topics = [ranks for ranks in _third_fields(rows) if len(ranks) > 1]
    if not topics or not all(_is_rank_sequence(sorted(ranks)) for ranks in topics):
        return False
    return any(ranks != sorted(ranks, reverse=True) for ranks in topics)


def _third_fields(rows: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the third fields of each topic; empty if any of them is not an integer."""
    topics: dict[str, list[int]] = {}
    for row in rows:
        if len(row) < 3 or not _is_whole(row[2]):
            return []
        topics.setdefault(row[0], []).append(int(row[2]))
    return list(topics.values())


def _is_rank_sequence(ranks: list[int]) -> bool:
    return ranks[0] in (0, 1) and ranks == list(range(ranks[0], ranks[0] + len(ranks)))


def _has_ties(rows: Sequence[Sequence[str]]) -> bool:
    """Whether two lines of a topic have the same third field, or all lines of the file do."""
    pairs = {(row[0], row[2]) for row in rows}
    return len(pairs) < len(rows) or (len(rows) > 1 and len({row[2] for row in rows}) == 1)


def _has_repeated_pairs(rows: Sequence[Sequence[str]]) -> bool:
    return len({(row[0], row[1]) for row in rows}) < len(rows)


def _most_common(rows: Sequence[Sequence[str]], position: int) -> str:
    return Counter(row[position] for row in rows).most_common(1)[0][0]


def common_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the most common number of fields per line."""
    return Counter(map(len, rows)).most_common(1)[0][0] if rows else 0


def _is_whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) < 16


def _is_probability(text: str) -> bool:
    return is_number(text) and 0 <= float(text) <= 1
