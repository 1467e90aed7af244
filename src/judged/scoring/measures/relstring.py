"""The grades of the first documents as a string, as trec_eval shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judged.scoring.judging import Judged


def relstring(judged: Judged, length: int = 10) -> list[str]:
    """Write the grades of the first documents of each topic, one character each.

    >>> from judged.scoring.judging import judge_list
    >>> relstring(judge_list([3, None, 0, -1, 12, 1]))
    ['3-0.>1']
    >>> relstring(judge_list([3, None, 0]), 2)
    ['3-']
    """
    # A digit is the grade (its whole part), `>` a grade of 10 or more, `.` a negative grade, `-` a document without a
    # judgment.
    shown = [["-"] * min(int(returned), max(length, 0)) for returned in judged.returned]
    kept = judged.rank <= length
    hits = zip(judged.topic[kept].tolist(), judged.rank[kept].tolist(), judged.grade[kept].tolist(), strict=True)
    for topic, rank, grade in hits:
        shown[topic][rank - 1] = _character(grade)
    return ["".join(characters) for characters in shown]


def _character(grade: float) -> str:
    if grade < 0:
        return "."
    return ">" if grade >= 10 else str(int(grade))
