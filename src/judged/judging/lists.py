"""A judged list typed by hand: grades in rank order. For teaching, tests and pages with examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from judged.data import Qrels
from judged.errors import InputError
from judged.judging.join import judge
from judged.judging.judged import Judged

Grade: TypeAlias = float | Sequence[float]
Grades: TypeAlias = Sequence[Grade | None]


def judge_list(
    grades: Grades, *, missing: Sequence[Grade] = (), facts: Mapping[str, Sequence[Any]] | None = None
) -> Judged:
    """Make the judged list of one topic from its grades.

    Parameters
    ----------
    grades
        One grade a returned document, in rank order; None for a document without a judgment. A document that
        was judged for several subtopics has a tuple with a grade for each.
    missing
        The grades of judged documents that were not returned.
    facts
        What is known of the returned documents, such as ``{"length": [120, 80]}``: a value for each.

    Raises
    ------
    InputError
        If nothing at all is judged, or there are fewer facts than documents.

    Examples
    --------
    >>> j = judge_list([3, None, 1], missing=[2])
    >>> j.rank.tolist(), j.grade.tolist(), j.returned.tolist(), j.ideal.grade.tolist()
    ([1, 3], [3.0, 1.0], [3], [3.0, 2.0, 1.0])
    >>> judge_list([(1, 0), (0, 1)]).aspects
    Labels(of=array([0, 0, 1, 1]), aspect=array([0, 1, 0, 1]), grade=array([1., 0., 0., 1.]))
    """
    named = [(f"d{at}", grade) for at, grade in enumerate(grades, 1) if grade is not None]
    named += [(f"m{at}", grade) for at, grade in enumerate(missing, 1)]
    if not named:
        raise InputError("no grade is given", fix="give at least one grade, in the list or as missing")
    run = {"list": {f"d{at}": -float(at) for at in range(1, len(grades) + 1)}}
    if not facts:
        return judge(_qrels(named), run)
    if any(len(values) != len(grades) for values in facts.values()):
        raise InputError(f"there are {len(grades)} documents", fix="give as many values of each fact")
    known = {doc: {name: values[at] for name, values in facts.items()} for at, doc in enumerate(run["list"])}
    return judge(_qrels(named), run, documents=known)


def _qrels(named: Sequence[tuple[str, Grade]]) -> Any:
    if not any(isinstance(grade, Sequence) for _, grade in named):
        return {"list": dict(named)}
    rows = [(doc, aspect, value) for doc, grade in named for aspect, value in _by_aspect(grade)]
    docs, aspects, values = zip(*rows, strict=True)
    names = ["list"] * len(rows)
    return Qrels(pa.table({"query_id": names, "doc_id": docs, "iteration": aspects, "relevance": values}))


def _by_aspect(grade: Grade) -> Iterator[tuple[str, float]]:
    for at, value in enumerate(grade if isinstance(grade, Sequence) else (grade,), 1):
        yield str(at), float(value)
