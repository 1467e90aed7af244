"""How the lines of a text file are made, and how one line is split into its fields."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from judged.errors import InputError, JudgedError
from judged.results.decimals import is_number, read_grade, read_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


NUMBERS = frozenset({"score", "relevance", "rank"})
"""The columns that hold numbers."""

WHOLE_TO = 2.0**53
"""Beyond it not every whole number is a double."""

COMMENT_FIX = "write a blank behind the # of a comment, or give the topic another id"

_FIELD = re.compile(rb"""(?:[ \t]*"((?:[^"]|"")*)"[ \t]*|([ \t]*[^", \t][^,]*|[ \t]*))(?=,|$)""")
_ESCAPED = re.compile(rb"'(?=[=+\-@'\t\r])")
_HEADER = re.compile(rb"(?:[ \t\v\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*([^\r\n]*)(?:\r\n|\r|\n)?")


class LineError(ValueError):
    """What is wrong with one line, and the rule that `judged check` gives it."""

    def __init__(self, rule: str, problem: str) -> None:
        self.rule = rule
        super().__init__(problem)

    __reduce__ = JudgedError.__reduce__


@dataclass(frozen=True)
class Layout:
    """How the lines of a text file are made.

    >>> print(Layout(("query_id", "", "doc_id", "relevance"), " "))
    query_id _ doc_id relevance
    """

    names: tuple[str, ...]  # our column name for each field, `""` for a field that is not used
    delimiter: str  # `" "` or `"\t"` stand for any white space unless `strict`; a comma is always strict
    strict: bool = False  # a delimiter is exactly one character, so fields may be empty or hold blanks
    header: bool = False  # the first line that is neither blank nor a comment names the columns
    optional: int = 0  # how many fields at the end may be missing (a run's tag, say)
    fields: int = 0  # how many fields the lines have, where that is more than there are names
    open_ended: bool = False  # any number of fields may follow

    @property
    def width(self) -> int:
        """How many fields the parser is told to expect."""
        return max(self.fields, len(self.names))

    def __str__(self) -> str:
        between = {",": ", ", "\t": " <tab> " if self.strict else " "}.get(self.delimiter, " ")
        return between.join(name or "_" for name in self.names)


def is_data(raw: bytes) -> bool:
    """Whether a line is neither blank nor a ``#`` comment."""
    text = raw.strip()
    return bool(text) and not text.startswith(b"#")


def without_header(block: bytes) -> tuple[bytes, bool]:
    """Leave out the first line that holds data, with the blank lines and comments above it, and say if there is one."""
    match = _HEADER.match(block)
    return (block[match.end() :], is_data(match[1])) if match else (block, False)


def split_line(raw: bytes, layout: Layout) -> dict[str, str] | None:
    """Split one line into its fields by column name; None for a blank line or a ``#`` comment.

    >>> split_line(b"q1 Q0  d7 1 0.5 tag", Layout(("query_id", "", "doc_id", "rank", "score", ""), " "))
    {'query_id': 'q1', 'doc_id': 'd7', 'rank': '1', 'score': '0.5'}
    """
    # Where fields are strictly delimited, a line that starts with `#` and is complete is a row.
    text = raw.decode().strip(" \t\v\f\r\n")
    comment = text.startswith("#")
    if comment and not layout.strict and _is_row(raw.split(), layout):
        raise LineError(
            "comment-or-row", f"this may be a comment, or a row of a topic that begins with #: {text[:80]!r}"
        )
    if not text or (comment and not layout.strict):
        return None
    found = split_fields(raw, layout.delimiter, strict=layout.strict)
    needed = len(layout.names) - layout.optional
    if len(found) < needed:
        if comment:
            return None
        raise LineError("too-few-fields", f"{len(found)} fields where {needed} are needed: {text[:80]!r}")
    if not layout.open_ended and any(found[layout.width :]):
        problem = f"{len(found)} fields where {layout.width} are expected: {text[:80]!r}"
        raise LineError("too-many-fields", problem)
    fields = {name: part.decode() for name, part in zip(layout.names, found, strict=False) if name}
    for name in ("query_id", "doc_id"):
        if not fields[name]:
            raise LineError("empty-id", f"the {name} is empty: {text[:80]!r}")
    return fields


def _is_row(found: list[bytes], layout: Layout) -> bool:
    """Whether a comment without a blank behind its # has the fields and numbers of a row."""
    if found[0] == b"#" or not len(layout.names) - layout.optional <= len(found) <= layout.width:
        return False
    numbers = [part for name, part in zip(layout.names, found, strict=False) if name in NUMBERS]
    try:
        return all(map(math.isfinite, map(read_number, map(bytes.decode, numbers)))) and bool(numbers)
    except ValueError:
        return False


def split_fields(raw: bytes, delimiter: str, *, strict: bool) -> list[bytes]:
    r"""Cut one line at its delimiters; a comma obeys double quotes, in which blanks are kept, a tab does not.

    >>> split_fields(b"q1\t d 1", " ", strict=False), split_fields(b'1, "a, b " ,5', ",", strict=True)
    ([b'q1', b'd', b'1'], [b'1', b'a, b ', b'5'])
    """
    if not strict:
        return raw.split()
    if delimiter != ",":
        return [part.strip() for part in raw.rstrip(b"\r\n").split(delimiter.encode())]
    if b'"' not in raw:
        return [_unescaped(part.strip()) for part in raw.split(b",")]
    parts: list[bytes] = []
    line, at = raw.strip(b"\r\n"), 0
    while at <= len(line):
        found = _FIELD.match(line, at)
        if found is None:
            text = raw.strip()[:80].decode(errors="replace")
            raise LineError("bad-quote", f"a double quote that is not closed, or text behind one: {text!r}")
        quoted, bare = found.groups()
        parts.append(_unescaped(bare.strip() if quoted is None else quoted.replace(b'""', b'"')))
        at = found.end() + 1
    return parts


def _unescaped(field: bytes) -> bytes:
    """Remove the apostrophe that `judged.results.escaping.csv_cell` puts before what looks like a formula."""
    return field[1:] if _ESCAPED.match(field) else field


def value(name: str, text: str) -> str | float | int:
    """Read one field: ids stay text, numbers must be numbers (no hex, no NaN, no decimal comma, none out of range).

    >>> value("score", "1e-05"), value("doc_id", "007"), value("rank", "3")
    (1e-05, '007', 3)
    """
    if name not in NUMBERS:
        return text
    try:
        number = read_grade(text) if name == "relevance" else read_number(text)
    except ValueError as error:
        rule = "nan-score" if text.lower().lstrip("+-") == "nan" else f"bad-{name}"
        raise LineError(rule, f"the {name} {text[:80]!r} {error}") from None
    if name != "rank":
        return number
    if not (abs(number) <= WHOLE_TO and number.is_integer()):
        raise LineError("bad-rank", f"the rank {text!r} is not a whole number")
    return int(number)


Kind = Literal["qrels", "run"]

_ALIASES: dict[str, tuple[str, ...]] = {
    "query_id": ("qid", "query", "q_id", "topic", "topic_id", "query_number", "query_no"),
    "doc_id": (
        "docid",
        "docno",
        "doc",
        "did",
        "pid",
        "corpus_id",
        "document_id",
        "passage_id",
        "item_id",
        "doc_number",
    ),
    "relevance": ("rel", "label", "grade", "judgment", "judgement", "relevance_grade"),
    "score": ("sim", "similarity", "rsv", "retrieval_score"),
    "rank": ("position", "rank_of_doc"),
    "run_id": ("run", "system", "system_id", "system_number", "run_name", "tag"),
    "iteration": ("iter", "subtopic", "subtopic_id", "assessor", "q0"),
}

_CANONICAL = {alias: name for name, aliases in _ALIASES.items() for alias in (name, *aliases)}
_USED = {
    "qrels": {"query_id", "doc_id", "relevance", "iteration"},
    "run": {"query_id", "doc_id", "score", "rank", "run_id"},
}
ONCE = "leave one of them out, or give it another name"
_GIVES_WAY = frozenset({"query", "docid"})
_NEEDED = {"qrels": {"query_id", "doc_id", "relevance"}, "run": {"query_id", "doc_id"}}


def canonical(names: Iterable[str], kind: Kind) -> tuple[str, ...]:
    """Translate a table's column names; a name that means nothing here becomes ``""``.

    >>> canonical(["query-id", "corpus-id", "score"], "qrels")
    ('query_id', 'doc_id', 'relevance')
    >>> canonical(["qid", "Docno", "sim", "comment"], "run")
    ('query_id', 'doc_id', 'score', '')

    ``query`` is its text beside another column of ids, and ``docid`` a number inside of an index beside ``docno``:
    PyTerrier writes both.

    >>> canonical(["qid", "docid", "docno", "rank", "score", "query"], "run")
    ('query_id', '', 'doc_id', 'rank', 'score', '')
    """
    # In qrels a column called `score` is the relevance (BEIR writes it so).
    plain = [name.strip().lower().replace("-", "_").replace(" ", "_") for name in names]
    found = [_CANONICAL.get(name, "") for name in plain]
    if kind == "qrels" and "relevance" not in found:
        found = ["relevance" if name == "score" else name for name in found]
    same = defaultdict[str, set[str]](set)
    for given, name in zip(plain, found, strict=True):
        same[name].add(given)
    for at, name in enumerate(found):
        if name and plain[at] in _GIVES_WAY and len(same[name]) > 1:
            found[at] = ""
    return tuple(found)


def clash(names: Iterable[str], given: Iterable[str], kind: Kind) -> str:
    """Say which two columns mean the same, as neither may be dropped in silence; ``""`` where none do.

    >>> clash(["doc_id", "relevance", "relevance"], ["doc_id", "relevance", "label"], "qrels")
    "the columns 'relevance' and 'label' both mean the relevance"
    """
    first: dict[str, str] = {}
    for name, column in zip(names, given, strict=True):
        if name in first:
            if first[name] == column:
                return f"two columns are called {column!r}"
            return f"the columns {first[name]!r} and {column!r} both mean the {name}"
        if name in _USED[kind]:
            first[name] = column
    return ""


def missing(found: Iterable[str], kind: Kind) -> set[str]:
    """Which columns a table of this kind still lacks."""
    return _NEEDED[kind] - set(found)


def refuse_same_names(names: Sequence[str], where: str, line: int | None = None) -> None:
    """Refuse columns of which two have one name: records would keep the last."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"two columns are called {twice!r}", fix="name each once", path=where, line=line)


_ITERATIONS = frozenset({"0", "Q0", "q0"})
_GRADES = frozenset(map(str, range(-2, 5)))
_MOST_GRADES = 10  # a column that counts up further than this holds ranks
_MOST_RATINGS, _MOST_ITERATIONS, _SECONDS = 21, 50, 1e8  # half stars up to ten; values that an iteration has; in 1973


def looks_like_qrels(rows: Sequence[Sequence[str]]) -> str:
    """Say why lines that should be a run look like qrels; ``""`` if they do not.

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
        second = _mostly(rows, 1)
        if second in _ITERATIONS:
            return f"4 fields, the second of them {second!r}"
        if not any(_is_whole(row[2]) for row in rows) and all(is_number(row[3]) for row in rows):
            return "4 fields, the third of them no rank and the last a number"
        if _repeated_pairs(rows) and all(row[3] in _GRADES for row in rows):
            return "4 fields, the last of them a small whole number"
    if width == 3 and all(row[2] in _GRADES for row in rows) and not ranks_count_up(rows) and _tied(rows):
        return "the last field is a small whole number with many ties"
    if width == 5 and all(row[2] in _GRADES and _is_share(row[4]) for row in rows) and _tied(rows):
        return "5 fields: a grade, a method and a probability"
    return ""


def looks_like_run(rows: Sequence[Sequence[str]]) -> str:
    """Say why lines that should be qrels look like a run; ``""`` if they do not.

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
        second = _mostly(rows, 1)
        if second in _ITERATIONS:
            return f"5 fields, the second of them {second!r}"
        if not all(is_number(row[4]) for row in rows) and all(_is_whole(row[2]) for row in rows):
            return "5 fields, the third of them a rank and the last a name"
    distinct = _mostly(rows, 1) not in _ITERATIONS and not _repeated_pairs(rows)
    sampled = width == 5 and all(_is_share(row[4]) for row in rows)
    if width in (4, 5) and distinct and not sampled and ranks_count_up(rows):
        return "the third field counts up within each topic, as ranks do"
    if width == 3 and ranks_count_up(rows) and max(int(row[2]) for row in rows) >= _MOST_GRADES:
        return "the last field counts up within each topic, as ranks do"
    return ""


def looks_like_smart(rows: Sequence[Sequence[str]]) -> bool:
    """Whether 4 fields are those of the SMART collections, ``query doc 0 0.000000``, with documents second.

    >>> looks_like_smart([["1", "28", "0", "0.000000"], ["1", "35", "0", "0.000000"]])
    True
    """
    if common_width(rows) != 4 or len({tuple(row[2:]) for row in rows}) > 1:
        return False
    return len({row[1] for row in rows}) > 1 and is_number(rows[0][3]) and float(rows[0][3]) == 0


def looks_like_ratings(rows: Sequence[Sequence[str]]) -> bool:
    """Whether 4 fields are user, item, rating, and time, rather than topic, iteration, document, and grade.

    Times in seconds are above 1e8. Ratings are few, and would be documents of which each has dozens of iterations.

    >>> looks_like_ratings([["196", "242", "3", "881250949"], ["186", "302", "3", "891717742"]])
    True
    >>> looks_like_ratings([["1", "0", "10", "3"], ["1", "0", "7", "0"]])
    False
    """
    rows = [row for row in rows if len(row) == 4]
    ratings, items = {row[2] for row in rows}, {row[1] for row in rows}
    if not rows or len(ratings) > _MOST_RATINGS or not all(map(is_number, ratings)):
        return False
    timed = all(is_number(row[3]) and float(row[3]) > _SECONDS for row in rows)
    return timed or len(items) > _MOST_ITERATIONS


def ranks_count_up(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the third field counts 1, 2, 3... (or from 0) within each topic, and some topic has two lines.

    >>> ranks_count_up([["q1", "d4", "1"], ["q1", "d2", "2"], ["q2", "d4", "1"]])
    True
    """
    topics = _thirds(rows)
    return any(len(ranks) > 1 for ranks in topics) and all(_counts(ranks) for ranks in topics)


def ranks_shuffled(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the third field holds 1 to n in each topic, neither counting up nor down.

    >>> ranks_shuffled([["q1", "d4", "2"], ["q1", "d2", "3"], ["q1", "d1", "1"]])
    True
    """
    # Then it could be a rank as well as a score.
    topics = [ranks for ranks in _thirds(rows) if len(ranks) > 1]
    if not topics or not all(_counts(sorted(ranks)) for ranks in topics):
        return False
    return any(ranks != sorted(ranks, reverse=True) for ranks in topics)


def _thirds(rows: Sequence[Sequence[str]]) -> list[list[int]]:
    """Give the third field of each topic's lines; nothing if one of them is not a whole number."""
    topics: dict[str, list[int]] = {}
    for row in rows:
        if len(row) < 3 or not _is_whole(row[2]):
            return []
        topics.setdefault(row[0], []).append(int(row[2]))
    return list(topics.values())


def _counts(ranks: list[int]) -> bool:
    return ranks[0] in (0, 1) and ranks == list(range(ranks[0], ranks[0] + len(ranks)))


def _tied(rows: Sequence[Sequence[str]]) -> bool:
    """Whether two lines of a topic share their third field, or all lines of the file do."""
    pairs = {(row[0], row[2]) for row in rows}
    return len(pairs) < len(rows) or (len(rows) > 1 and len({row[2] for row in rows}) == 1)


def _repeated_pairs(rows: Sequence[Sequence[str]]) -> bool:
    return len({(row[0], row[1]) for row in rows}) < len(rows)


def _mostly(rows: Sequence[Sequence[str]], at: int) -> str:
    return Counter(row[at] for row in rows).most_common(1)[0][0]


def common_width(rows: Sequence[Sequence[str]]) -> int:
    """Give how many fields most lines have."""
    return Counter(map(len, rows)).most_common(1)[0][0] if rows else 0


def _is_whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) < 16


def _is_share(text: str) -> bool:
    return is_number(text) and 0 <= float(text) <= 1
