"""`explain`: how the score of one topic comes about, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, overload

import numpy as np

from judged.errors import InputError
from judged.explanation.explanation import Explanation
from judged.explanation.sheets import bare, sheets
from judged.judging import Judged, judge
from judged.judging.working import Step, Working
from judged.measures import Measure, parse


@overload
def explain(judged: Judged, topic: str | None, measure: str | Measure, /) -> Explanation: ...
@overload
def explain(qrels: Any, run: Any, measure: str | Measure, /, *, topic: str | None = None) -> Explanation: ...
def explain(given: Any, chosen: Any, measure: str | Measure, /, *, topic: str | None = None) -> Explanation:
    """Show how a measure comes to its score for one topic.

    The measure itself writes down its intermediate numbers while it computes: what is shown is what was computed,
    and the last number is the score, to the last bit.

    Parameters
    ----------
    given, chosen
        What `judge` or `judge_list` gave, and the query id, None where there is only one topic; or qrels and a run,
        as `evaluate` takes them.
    measure
        A measure or its name.
    topic
        The query id where qrels and a run are given.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        If there is no such topic, or several and none was named.
    MeasureError
        If there is no such measure, or it needs a ranking where the run is a set.

    Examples
    --------
    >>> from judged import judge_list
    >>> explain(judge_list([3, 0, 2, 1, 0]), None, "nDCG(gain=exp2)@5")
    == nDCG(gain=exp2)@5 ==
    <BLANKLINE>
    == ranking ==
    <BLANKLINE>
    rank  document  grade  gain  discount  gain / discount  so far
    1     d1            3     7         1                7       7
    2     d2            0     0    1.5850                0       7
    3     d3            2     3         2           1.5000  8.5000
    4     d4            1     1    2.3219           0.4307  8.9307
    5     d5            0     0    2.5850                0  8.9307
    <BLANKLINE>
    gain = 2^grade - 1
    discount = log2(rank + 1)
    DCG(gain=exp2)@5 = sum of gain / discount = 8.9307
    <BLANKLINE>
    == ideal ranking ==
    <BLANKLINE>
    rank  document  grade  gain  discount  gain / discount  so far
    1     d1            3     7         1                7       7
    2     d3            2     3    1.5850           1.8928  8.8928
    3     d4            1     1         2           0.5000  9.3928
    4     d2            0     0    2.3219                0  9.3928
    5     d5            0     0    2.5850                0  9.3928
    <BLANKLINE>
    gain = 2^grade - 1
    discount = log2(rank + 1)
    IdealDCG(gain=exp2)@5 = sum of gain / discount = 9.3928
    nDCG(gain=exp2)@5 = DCG / IdealDCG = 8.9307 / 9.3928 = 0.9508
    """
    judged, topic = (given, chosen) if isinstance(given, Judged) else (judge(given, chosen), topic)
    if topic is None and len(judged) != 1:
        some = ", ".join(judged.query_ids[:5])
        raise InputError(f"there are {len(judged)} topics", fix=f"name one of {some}, and so on")
    one = judged.only(judged.query_ids[0] if topic is None else topic)
    wanted = parse(measure)
    working = Working()
    score = float(wanted(replace(one, working=working))[0])
    written = bool(working.entries)
    last = working.entries[-1] if written else None
    if not (isinstance(last, Step) and last.name == str(wanted)):  # a measure that writes nothing down, or not all
        working.entries.append(Step(str(wanted), np.array([score]), "", {}, one))
    shown = sheets(working, _cutoff(wanted))
    return Explanation(
        measure=wanted,
        query_id=one.query_ids[0],
        run=one.run.name,
        ranking=one.ranking,
        sheets=shown if written else (bare(one), *shown),
        score=score,
    )


def _cutoff(measure: Measure) -> int | None:
    cutoff = getattr(measure, "cutoff", None)
    return cutoff if isinstance(cutoff, int) else None
