"""What the fields of a file's first lines look like: ranks, grades, a run, qrels.

Each function takes lines cut into fields. They tell apart what has the same number of fields, so that
a file is refused where its meaning would have to be guessed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from judged.results.decimals import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

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
