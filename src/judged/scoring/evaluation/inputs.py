"""Inputs of `evaluate`: named runs, measures, and topics selected by an expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data.objects import is_database_table, is_id_list, rows_of_object
from judged.data.run import Run, name_runs, read_runs, rename_duplicates, single_run, split_runs
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.spelling import use_one_of
from judged.scoring.default_measures import DEFAULT_MEASURES
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import list_measures, parse_many, split_condition

if TYPE_CHECKING:
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.results.types import Bools
    from judged.scoring.evaluation.scores import Scores


_WRITTEN_LEVEL = re.compile(r"\brel=|-l[0-9]")


def runs_of(data: Any, *, format: str | None = None) -> list[Run]:
    """Convert one or several runs: a list of runs, ``{name: run}``, or a table with a column `run_id`.

    A run is a `Run`, a path, a dict of dicts, a data frame, named tuples or ranked lists of ids. A path may be
    ``NAME=FILE``, a folder, a pattern, or ``-`` for standard input. Runs with the same name get their folder's name as
    a prefix, or else a number as a suffix; they are never merged.

    Parameters
    ----------
    data
        One or several runs.
    format
        Format of the files; None: detected.

    Raises
    ------
    InputError
        If there is no run in `data`, or one cannot be read.

    Examples
    --------
    >>> [run.name for run in runs_of({"old": {"q1": {"d1": 1.0}}, "new": {"q1": {"d2": 1.0}}})]
    ['old', 'new']
    """
    if isinstance(data, Mapping) and _is_named(data):
        named = ((str(name), _read_runs(run_data, str(name), format)) for name, run_data in data.items())
        runs = [run for name, named_runs in named for run in name_runs(named_runs, name)]
    elif isinstance(data, (list, tuple)) and data and all(_is_run(run_data) for run_data in data):
        runs = [
            run
            for number, run_data in enumerate(data, 1)
            for run in _read_runs(run_data, f"run{number}" if len(data) > 1 else "run", format)
        ]
    else:
        runs = _read_runs(data, "run", format)
    if not runs:
        raise InputError("at least one run is required", fix="use a run, a list of runs, or {name: run}")
    return rename_duplicates(runs)


def run_pair(baseline: Any, candidate: Any, roles: tuple[str, str] = ("baseline", "candidate")) -> tuple[Run, Run]:
    """Convert two runs to compare; they get different names.

    Raises
    ------
    InputError
        If one of them is not a single run, or cannot be read.

    Examples
    --------
    >>> [run.name for run in run_pair({"q": ["d"]}, {"new": {"q": ["d"]}})]
    ['baseline', 'new']
    """
    runs = [single_run(runs_of(data), f"`{role}`") for data, role in zip((baseline, candidate), roles, strict=True)]
    # "run" is the default name of a run without a name.
    named = [Run(run.rows, role) if run.name == "run" else run for run, role in zip(runs, roles, strict=True)]
    first, second = rename_duplicates(named)
    return first, second


def measures_of(
    data: Any, parse_names: Callable[[Any], Iterable[Measure]] = parse_many, rel: float | None = None
) -> tuple[Measure, ...]:
    """Convert one or several measures or names, without duplicates; a name may stand for a series of measures.

    `rel` is the lowest relevant grade, for measures that have such a level and whose name has none.

    Parameters
    ----------
    data
        Measure or name, or several.
    parse_names
        Function that parses a name.
    rel
        Lowest relevant grade, or None.

    Raises
    ------
    InputError
        If there is no measure.
    MeasureError
        If a name is unknown or a parameter is invalid.

    Examples
    --------
    >>> measures_of(["AP,P@5", "RR(rel=1)", "nDCG"], rel=2)
    (AP(rel=2), P(rel=2)@5, RR, nDCG)
    """
    measures = [with_rel(measure, rel, written=name) for name in list_measures(data) for measure in parse_names(name)]
    if not measures:
        raise InputError("at least one measure is required", fix=f"use names such as {', '.join(DEFAULT_MEASURES[:3])}")
    return tuple(dict.fromkeys(measures))


def with_rel(measure: Measure, rel: float | None, written: Any = None) -> Measure:
    """Set the level of a measure to `rel`, unless it has no level or its level was written explicitly."""
    text = str(measure if written is None else written)
    is_fixed = rel is None or not hasattr(measure, "rel") or _WRITTEN_LEVEL.search(text)
    return measure if is_fixed else measure.replace(rel=rel)


def index_of_measure(measure: Measure, evaluated: Sequence[Measure]) -> int:
    """Return the index of a measure among the evaluated ones, which must have the same parameters.

    >>> from judged import AP, RR
    >>> index_of_measure(RR(rel=2), (AP(rel=2), RR(rel=2)))
    1

    Raises
    ------
    InputError
        If the measure was not evaluated.
    """
    if measure not in evaluated:
        fix = f"evaluate this measure, or {use_one_of(map(str, evaluated))}"
        raise InputError(f"{measure} was not evaluated", fix=fix)
    return evaluated.index(measure)


def _is_run(data: Any) -> bool:
    """Return whether an element of a list is a run, not a list of ids of one topic or a record."""
    if isinstance(data, Mapping):
        return all(isinstance(docs, Mapping) or is_id_list(docs) for docs in data.values())
    return isinstance(data, (Run, str, Path)) or hasattr(data, "__arrow_c_stream__") or is_database_table(data)


def _is_named(data: Mapping[Any, Any]) -> bool:
    """Return whether a dict is ``{name: run}``, not ``{query_id: {doc_id: score}}``."""
    first = next(iter(data.values()), None)
    if isinstance(first, Mapping):
        non_empty = next((rows for rows in data.values() if isinstance(rows, Mapping) and rows), {})
        return isinstance(next(iter(non_empty.values()), 0), (Mapping, list, tuple))
    return first is not None and not is_id_list(first)


def _read_runs(data: Any, name: str, format: str | None) -> list[Run]:
    if isinstance(data, Run):
        return split_runs(data.rows, data.name)
    if isinstance(data, (str, Path)):
        return read_runs(data, format)
    return split_runs(rows_of_object(data, "run"), name)


def measures_with_level(data: Any, parse_names: Callable[[Any], Iterable[Measure]] = measures_of) -> frozenset[Measure]:
    """Return the measures whose `rel` the caller wrote, which need no note about their level.

    >>> from judged import AP, RR
    >>> measures_with_level(["AP(rel=1)", "P@5", "mrr@5-l2"]) == {AP(), RR(rel=2) @ 5}
    True
    """
    names = (name for name in list_measures(data) if _WRITTEN_LEVEL.search(str(name)))
    return frozenset(measure for name in names for measure in parse_names(name))


def attributes_of(measures: Any) -> tuple[str, ...]:
    """Return the names of the attributes in the conditions of measures.

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


def filter_topics(qrels: Qrels, where: str | None, attributes: Any = None) -> tuple[Qrels, tuple[Note, ...]]:
    """Select judgments of topics that satisfy an expression; return notes on topics without an attribute.

    >>> from judged import Qrels
    >>> qrels = Qrels.of({"q1": {"d": 1}, "q2": {"d": 1}})
    >>> filter_topics(qrels, "kind == 'law'", {"q1": {"kind": "law"}})[0].topics, filter_topics(qrels, None)[0] is qrels
    (('q1',), True)

    Raises
    ------
    InputError
        If `where` is not a valid expression, an attribute is unknown, or no topic satisfies it.
    """
    if where is None:
        return qrels, ()
    topics, notes = select_topics(qrels.topics, where, attributes)
    combined = f"({qrels.selected_by}) and ({where})" if qrels.selected_by else where
    return replace(qrels.over(topics), selected_by=combined), notes


def select_topics(topics: Sequence[str], where: str, attributes: Any = None) -> tuple[list[str], tuple[Note, ...]]:
    """Select topics that satisfy an expression; return notes on topics without an attribute.

    Raises
    ------
    InputError
        If `where` is not a valid expression, an attribute is unknown, or no topic satisfies it.
    """
    if not where.strip():
        raise InputError("`where` is empty", fix="write an expression, or omit `where`")
    table = _attributes_of_topics(topics, attributes)
    mask = _evaluate_condition(where, table, has_attributes=attributes is not None)
    selected = [query_id for query_id, matches in zip(topics, mask.tolist(), strict=True) if matches]
    return selected, tuple(_missing_attribute_notes([where], table))


def _attributes_of_topics(query_ids: Sequence[str], attributes: Any) -> Attributes:
    """Return the attributes of topics; without `attributes`, only their ids."""
    from judged.data.attributes import Attributes  # few calls need them

    return Attributes.of({query: {} for query in query_ids} if attributes is None else attributes).over(query_ids)


def apply_conditions(scores: Scores, measures: tuple[Measure, ...], attributes: Any) -> Scores:
    """Apply the conditions of measures: scores of topics that do not satisfy the condition become NaN."""
    if scores.measures == measures:
        return scores
    table = _attributes_of_topics(scores.query_ids, attributes)
    rows = [scores.measures.index(measure.without_condition) for measure in measures]
    left_out = np.stack(
        [
            ~_evaluate_condition(measure.where, table, has_attributes=attributes is not None, prefix=f"{measure}: ")
            for measure in measures
        ]
    )

    def select(values: Any) -> Any:
        return np.where(left_out, np.nan, values[:, rows])

    ranges = (
        replace(
            part, low=select(part.low), high=select(part.high), kind=part.kind[:, rows], judged=part.judged[:, rows]
        )
        for part in scores.ranges
    )
    notes = (*scores.notes, *_missing_attribute_notes([measure.where for measure in measures], table))
    return replace(scores, measures=measures, values=select(scores.values), ranges=tuple(ranges), notes=notes)


def _evaluate_condition(where: str, table: Attributes, *, has_attributes: bool, prefix: str = "") -> Bools:
    """Return which topics satisfy a condition, (T,). `prefix` is that of error messages."""
    from judged.data.expression import Expression

    try:
        mask = Expression(where).mask(table)
    except InputError as error:
        fix = error.fix if has_attributes else f"{error.fix}; or pass attributes= (--attributes FILE)"
        raise InputError(f"{prefix}{error.problem}", fix=fix, path=error.path) from None
    if not mask.any():
        fix = "check that the attributes have these values and belong to topics of the qrels"
        raise InputError(f"{prefix}no topic satisfies {where!r}", fix=fix)
    return mask


def _missing_attribute_notes(conditions: Sequence[str], table: Attributes) -> list[Note]:
    """Return notes on topics that lack an attribute: they satisfy no comparison with it."""
    from judged.data.expression import Expression

    names = dict.fromkeys(name for where in conditions for name in Expression(where).compared)
    counts = {name: table.column(name).null_count for name in names}
    return [
        Note(
            "topics-without-attribute",
            f"{missing} of {len(table)} topics have no {name}, so every comparison with {name} is false for these"
            " topics",
        )
        for name, missing in counts.items()
        if missing
    ]
