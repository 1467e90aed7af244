"""Which topics: judgments of some (``where=``), and measures over some: ``P@5 where kind == 'law'``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.results.notes import Note
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import condition_of, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.scoring.evaluation.scores import Scores


def attributes_of(measures: Any) -> tuple[str, ...]:
    """Name the attributes that measures, or their names, ask for.

    >>> attributes_of(["AP", "P@5 where kind == 'law' and words < 5"])
    ('kind', 'words')
    """
    conditions = [
        measure.where if isinstance(measure, Measure) else condition_of(str(measure))[1] for measure in listed(measures)
    ]
    if not any(conditions):
        return ()
    from judged.data.expression import Expression

    return tuple(dict.fromkeys(name for where in conditions for name in Expression(where).compared))


def narrowed(qrels: Qrels, where: str | None, attributes: Any = None) -> tuple[Qrels, tuple[Note, ...]]:
    """Leave the judgments of the topics that satisfy an expression, and say of how many this is not known.

    >>> from judged import Qrels
    >>> qrels = Qrels.of({"q1": {"d": 1}, "q2": {"d": 1}})
    >>> narrowed(qrels, "kind == 'law'", {"q1": {"kind": "law"}})[0].topics, narrowed(qrels, None)[0] is qrels
    (('q1',), True)

    Raises
    ------
    InputError
        If it is not an expression, an attribute is not known, or no topic satisfies it.
    """
    if where is None:
        return qrels, ()
    kept, notes = topics_where(qrels.topics, where, attributes)
    both = f"({qrels.chosen_by}) and ({where})" if qrels.chosen_by else where
    return replace(qrels.over(kept), chosen_by=both), notes


def topics_where(topics: Sequence[str], where: str, attributes: Any = None) -> tuple[list[str], tuple[Note, ...]]:
    """Name the topics that satisfy an expression, and say of how many this is not known.

    Raises
    ------
    InputError
        If it is not an expression, an attribute is not known, or no topic satisfies it.
    """
    if not where.strip():
        raise InputError("where is empty", fix="say which topics, or leave it out")
    known = _known(topics, attributes)
    mask = _holds(where, known, given=attributes is not None)
    kept = [query for query, chosen in zip(topics, mask.tolist(), strict=True) if chosen]
    return kept, tuple(_lacking([where], known))


def _known(query_ids: Sequence[str], attributes: Any) -> Attributes:
    """Give the attributes of these topics: at least their ids."""
    from judged.data.attributes import Attributes  # few calls need them

    return Attributes.of({query: {} for query in query_ids} if attributes is None else attributes).over(query_ids)


def where_asked(scores: Scores, measures: tuple[Measure, ...], attributes: Any) -> Scores:
    """Make scores by measures over all topics into those by measures with conditions: NaN where one does not hold."""
    if scores.measures == measures:
        return scores
    known = _known(scores.query_ids, attributes)
    rows = [scores.measures.index(measure.everywhere) for measure in measures]
    left_out = np.stack([~_holds(m.where, known, given=attributes is not None, of=f"{m}: ") for m in measures])

    def chosen(values: Any) -> Any:
        return np.where(left_out, np.nan, values[:, rows])

    ranges = (
        replace(
            span, low=chosen(span.low), high=chosen(span.high), kind=span.kind[:, rows], judged=span.judged[:, rows]
        )
        for span in scores.ranges
    )
    notes = (*scores.notes, *_lacking([measure.where for measure in measures], known))
    return replace(scores, measures=measures, values=chosen(scores.values), ranges=tuple(ranges), notes=notes)


def _holds(where: str, known: Attributes, *, given: bool, of: str = "") -> Bools:
    """Mark the topics of which a condition holds, that of a measure or of the call: (T,)."""
    from judged.data.expression import Expression

    try:
        mask = Expression(where).mask(known)
    except InputError as error:
        fix = error.fix if given else f"{error.fix}; or give attributes= with it (--attributes FILE)"
        raise InputError(f"{of}{error.problem}", fix=fix, path=error.path) from None
    if not mask.any():
        fix = "check the values of its attributes, and that they are of the topics of the qrels"
        raise InputError(f"{of}no topic satisfies {where!r}", fix=fix)
    return mask


def _lacking(conditions: Sequence[str], known: Attributes) -> list[Note]:
    """Say of how many topics an attribute is not known: they satisfy no comparison with it."""
    from judged.data.expression import Expression

    names = dict.fromkeys(name for where in conditions for name in Expression(where).compared)
    counts = {name: known.column(name).null_count for name in names}
    return [
        Note(
            "topics-without-attribute",
            f"{lacking} of {len(known)} topics have no {name}: they satisfy no comparison with it",
        )
        for name, lacking in counts.items()
        if lacking
    ]
