"""What `evaluate` is given, made into named `Run`s and measures."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data.objects import in_database, is_ids, rows_of_object
from judged.data.run import Run, split_runs
from judged.data.sources import files_of, source_name
from judged.errors import InputError
from judged.results.blocks import Note
from judged.scoring.default_measures import DEFAULT_MEASURES
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import list_measures, parse_many, split_condition

if TYPE_CHECKING:
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.results.types import Bools
    from judged.scoring.evaluation.scores import Scores


_LEVEL = re.compile(r"\brel=|-l[0-9]")


def runs_of(data: Any) -> list[Run]:
    """Take one run or several: a list of them, ``{name: run}``, or a table that `run_id` divides.

    A run is a `Run`, a path, a dict of dicts, a data frame, named tuples or ranked lists of ids. Runs of
    one name are told apart by their folder, then by a number; they are never merged.

    >>> [run.name for run in runs_of({"old": {"q1": {"d1": 1.0}}, "new": {"q1": {"d2": 1.0}}})]
    ['old', 'new']

    Raises
    ------
    InputError
        If there is no run in it, or one cannot be read.
    """
    if isinstance(data, Mapping) and _is_named(data):
        runs = [run for name, run_data in data.items() for run in _named(run_data, str(name))]
    elif isinstance(data, (list, tuple)) and data and all(_is_run(run_data) for run_data in data):
        runs = [
            run for at, run_data in enumerate(data, 1) for run in _one(run_data, f"run{at}" if len(data) > 1 else "run")
        ]
    else:
        runs = _one(data, "run")
    if not runs:
        raise InputError("no run is given", fix="give a run, a list of runs, or {name: run}")
    return _distinct(runs)


def measures_of(
    data: Any, read: Callable[[Any], Iterable[Measure]] = parse_many, rel: float | None = None
) -> tuple[Measure, ...]:
    """Take measures or names, one or several, series expanded; each counts once.

    With `rel`, this is the lowest grade that is relevant wherever a measure has a level, and its name says none.

    >>> measures_of(["AP,P@5", "RR(rel=1)", "nDCG"], rel=2)
    (AP(rel=2), P(rel=2)@5, RR, nDCG)
    """
    chosen = [with_rel(measure, rel, written=name) for name in list_measures(data) for measure in read(name)]
    if not chosen:
        raise InputError("no measure is given", fix=f"give names such as {', '.join(DEFAULT_MEASURES[:3])}")
    return tuple(dict.fromkeys(chosen))


def with_rel(measure: Measure, rel: float | None, written: Any = None) -> Measure:
    """Let a measure have the level of the call, unless it has none, or its own was written."""
    own = rel is None or not hasattr(measure, "rel") or _LEVEL.search(str(measure if written is None else written))
    return measure if own else measure.replace(rel=rel)


def place_of(measure: Measure, known: Sequence[Measure]) -> int:
    """Find a measure among those that were evaluated: with all its parameters, a level that was not written among them.

    >>> from judged import AP, RR
    >>> place_of(RR(rel=2), (AP(rel=2), RR(rel=2)))
    1

    Raises
    ------
    InputError
        If it is not among them.
    """
    if measure not in known:
        raise InputError(
            f"{measure} was not evaluated", fix=f"evaluate it, or take one of {', '.join(map(str, known))}"
        )
    return known.index(measure)


def _is_run(data: Any) -> bool:
    """Whether an element of a list is a run by itself, and not one topic's list of ids or one record."""
    if isinstance(data, Mapping):
        return all(isinstance(docs, Mapping) or is_ids(docs) for docs in data.values())
    return isinstance(data, (Run, str, Path)) or hasattr(data, "__arrow_c_stream__") or in_database(data)


def _is_named(data: Mapping[Any, Any]) -> bool:
    """Whether a dict is ``{name: run}`` and not ``{query_id: {doc_id: score}}``."""
    first = next(iter(data.values()), None)
    if isinstance(first, Mapping):
        full = next((rows for rows in data.values() if isinstance(rows, Mapping) and rows), {})
        return isinstance(next(iter(full.values()), 0), (Mapping, list, tuple))
    return first is not None and not is_ids(first)


def _one(data: Any, name: str) -> list[Run]:
    if isinstance(data, Run):
        return split_runs(data.rows, data.name)
    if isinstance(data, (str, Path)):
        scanned = [Run.scan(path) for path in files_of(data)]
        return [run for each in scanned for run in split_runs(each.rows, each.name)]
    return split_runs(rows_of_object(data, "run"), name)


def _named(data: Any, name: str) -> list[Run]:
    """Read what stands under a name; several runs in one table keep their own names behind it."""
    runs = _one(data, name)
    return [Run(runs[0].rows, name)] if len(runs) == 1 else [Run(run.rows, f"{name}/{run.name}") for run in runs]


def _distinct(runs: list[Run]) -> list[Run]:
    """Give every run a name of its own; a name that was given stays, one that is a file's stem makes room."""
    if len(runs) == 1:
        return runs
    given = {run.name for run in runs if run.name != source_name(run.where)}
    names = [run.name for run in runs]
    times = Counter(names)
    names = [
        f"{Path(run.where).parent.name}/{run.name}"
        if times[run.name] > 1 and run.name not in given and "/" in run.where
        else run.name
        for run in runs
    ]
    taken, made = {*names, *given}, dict[str, Run]()
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for run, name in zip(runs, names, strict=True):
        free = (other for at in numbers[name] if (other := f"{name}#{at}") not in taken and other not in made)
        clash = name in made or (name in given and run.name == source_name(run.where))
        own = next(free) if clash else name
        made[own] = Run(run.rows, own)
    return list(made.values())


def chosen_levels(data: Any, read: Callable[[Any], Iterable[Measure]] = measures_of) -> frozenset[Measure]:
    """Give the measures for which the caller wrote `rel`, so that no warning about it is due.

    >>> from judged import AP, RR
    >>> chosen_levels(["AP(rel=1)", "P@5", "mrr@5-l2"]) == {AP(), RR(rel=2) @ 5}
    True
    """
    return frozenset(measure for name in list_measures(data) if _LEVEL.search(str(name)) for measure in read(name))


def attributes_of(measures: Any) -> tuple[str, ...]:
    """Name the attributes that measures, or their names, ask for.

    >>> attributes_of(["AP", "P@5 where kind == 'law' and words < 5"])
    ('kind', 'words')
    """
    conditions = [
        measure.where if isinstance(measure, Measure) else split_condition(str(measure))[1]
        for measure in list_measures(measures)
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
    rows = [scores.measures.index(measure.without_condition) for measure in measures]
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
