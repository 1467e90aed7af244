"""Measures over some of the topics: ``P@5 where kind == 'law'`` has no score for the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.measures.base import Measure
from judged.measures.grammar import condition_of, listed
from judged.notes import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools
    from judged.data.attributes import Attributes
    from judged.evaluation.scores import Scores


def attributes_of(measures: Any) -> tuple[str, ...]:
    """Name the attributes that measures, or their names, ask for.

    >>> attributes_of(["AP", "P@5 where kind == 'law' and words < 5"])
    ('kind', 'words')
    """
    conditions = [one.where if isinstance(one, Measure) else condition_of(str(one))[1] for one in listed(measures)]
    if not any(conditions):
        return ()
    from judged.data.expression import Expression

    return tuple(dict.fromkeys(name for where in conditions for name in Expression(where).names))


def where_asked(scores: Scores, measures: tuple[Measure, ...], attributes: Any) -> Scores:
    """Make scores by measures over all topics into those by measures with conditions: NaN where one does not hold."""
    if scores.measures == measures:
        return scores
    from judged.data.attributes import Attributes  # few calls need them

    known = Attributes.of({query: {} for query in scores.query_ids} if attributes is None else attributes)
    known = known.over(scores.query_ids)
    rows = [scores.measures.index(measure.everywhere) for measure in measures]
    left_out = np.stack([~_holds(measure, known, given=attributes is not None) for measure in measures])

    def chosen(values: Any) -> Any:
        return np.where(left_out, np.nan, values[:, rows])

    ranges = (
        replace(one, low=chosen(one.low), high=chosen(one.high), kind=one.kind[:, rows], judged=one.judged[:, rows])
        for one in scores.ranges
    )
    notes = (*scores.notes, *_lacking(measures, known))
    return replace(scores, measures=measures, values=chosen(scores.values), ranges=tuple(ranges), notes=notes)


def _holds(measure: Measure, known: Attributes, *, given: bool) -> Bools:
    """Mark the topics of which a measure's condition holds: (T,)."""
    from judged.data.expression import Expression

    try:
        mask = Expression(measure.where).mask(known)
    except InputError as error:
        fix = error.fix if given else f"{error.fix}; or give attributes= with it (--attributes FILE)"
        raise InputError(f"{measure}: {error.problem}", fix=fix, path=error.path) from None
    if not mask.any():
        raise InputError(f"{measure}: this holds of no topic", fix="check the values of its attributes")
    return mask


def _lacking(measures: Sequence[Measure], known: Attributes) -> list[Note]:
    """Say of how many topics an attribute is not known: they satisfy no comparison with it."""
    from judged.data.expression import Expression

    names = dict.fromkeys(name for measure in measures for name in Expression(measure.where).names)
    counts = {name: known.column(name).null_count for name in names}
    return [
        Note(
            "topics-without-attribute",
            f"{lacking} of {len(known)} topics have no {name}: they satisfy no comparison with it",
        )
        for name, lacking in counts.items()
        if lacking
    ]
