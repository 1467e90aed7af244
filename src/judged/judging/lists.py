"""A judged list typed by hand: grades in rank order. For teaching, tests and pages with examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from judged.errors import InputError
from judged.judging.join import judge
from judged.judging.judged import Judged

Grades: TypeAlias = Sequence[float | None]


def judge_list(grades: Grades, *, missing: Sequence[float] = ()) -> Judged:
    """Make the judged list of one topic from its grades.

    Parameters
    ----------
    grades
        One grade a returned document, in rank order; None for a document without a judgment.
    missing
        The grades of judged documents that were not returned.

    Raises
    ------
    InputError
        If nothing at all is judged.

    Examples
    --------
    >>> j = judge_list([3, None, 1], missing=[2])
    >>> j.rank.tolist(), j.grade.tolist(), j.returned.tolist(), j.ideal.grade.tolist()
    ([1, 3], [3.0, 1.0], [3], [3.0, 2.0, 1.0])
    """
    labels = {f"d{at}": grade for at, grade in enumerate(grades, 1) if grade is not None}
    labels |= {f"m{at}": grade for at, grade in enumerate(missing, 1)}
    if not labels:
        raise InputError("no grade is given", fix="give at least one grade, in the list or as missing")
    return judge({"list": labels}, {"list": {f"d{at}": -float(at) for at in range(1, len(grades) + 1)}})
