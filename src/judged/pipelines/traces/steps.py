"""What a pipeline still holds behind each of its steps, and which relevant documents it has lost by then."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.records import records_of
from judged.data.run import Run
from judged.diagnosis.stages.trace import ORDER
from judged.errors import InputError
from judged.scoring.judging import judge
from judged.stats.inputs import spread
from judged.stats.interval import mean_intervals
from judged.stats.slice_differences import against_rest
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.data.qrels import Qrels
    from judged.pipelines.traces.traces import Stage, Traces
    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.stats.interval import IntervalMethod
    from judged.stats.slice_differences import AgainstRest


CORPUS = "corpus"
"""The part of the loss by what the corpus does not hold."""
UNRECORDED = "unrecorded"
"""The step of documents that were lost where the trace does not tell."""


def stages_to(traces: Traces, last: Stage) -> tuple[Stage, ...]:
    """Give the stages whose documents may come to the last one, and that one, those nearer to the query first."""
    wanted = {last.name}
    for stage in reversed(traces.stages):
        wanted |= set(stage.parents) if stage.name in wanted else set()
    return tuple(stage for stage in traces.stages if stage.name in wanted)


class StepSet(NamedTuple):
    """What all branches of a pipeline together still hold behind a step."""

    name: str
    documents: Judged  # as far as they are recorded
    known: Bools  # (T,): whether they are all recorded


def held_behind(
    traces: Traces, path: Sequence[Stage], judgments: Qrels, lists: Mapping[str, Judged], *, join: bool
) -> Iterator[StepSet]:
    """Yield the documents that all branches still hold behind each step; a step is named after its stages.

    With `join`, a step behind which nothing is known of any topic is joined with the next one: what both lose together
    is known, though not which of them.
    """
    topics = lists[path[-1].name].query_ids
    waiting: list[str] = []
    for step in range(1, path[-1].step + 1):
        waiting += [stage.name for stage in path if stage.step == step]
        passed = {stage.name for stage in path if stage.step <= step}
        needed = {parent for stage in path if stage.step > step for parent in stage.parents}
        held = [stage.name for stage in path if stage.name in passed & (needed | {path[-1].name})]
        known = recorded(traces, held, topics)
        if join and step < path[-1].step and not known.any():
            continue
        name, waiting = " + ".join(waiting), []
        documents = lists[held[0]] if len(held) == 1 else judge(judgments, traces.union(held))
        yield StepSet(f"{name} (stage)" if name in (CORPUS, ORDER, UNRECORDED) else name, documents, known)


def recorded(traces: Traces, stages: Iterable[str], query_ids: Sequence[str]) -> Bools:
    """Return for which queries the documents of all these stages are recorded: (T,)."""
    names = list(stages)
    return np.array([all(traces.documents(query, name) is not None for name in names) for query in query_ids], np.bool_)


def inside(judgments: Qrels, corpus: Iterable[str]) -> Run:
    """Give the judged documents that the corpus holds as a run."""
    known = set(corpus)
    pairs = zip(*(judgments.table[name].to_pylist() for name in ("query_id", "doc_id")), strict=True)
    kept = list(dict.fromkeys(pair for pair in pairs if pair[1] in known))
    columns = {"query_id": [query for query, _ in kept], "doc_id": [doc for _, doc in kept]}
    return Run.of(pa.table({**columns, "score": [-float(at) for at in range(len(kept))]}), name=CORPUS)


def relevant_in(shown: Judged, rel: float) -> Iterator[tuple[str, str, int, float]]:
    """Give topic, document, rank and grade of the relevant documents of a list."""
    names = shown.qrels.index.row_names
    for hit in np.flatnonzero(shown.relevant(rel)).tolist():
        yield shown.query_ids[shown.topic[hit]], names[shown.row[hit]], int(shown.rank[hit]), float(shown.grade[hit])


def lost_of(shown: Judged, sets: Sequence[StepSet], rel: float) -> Iterator[tuple[str, str, str, float]]:
    """Yield the relevant documents that the last set is not known to hold, with the step that lost each.

    That is the step behind the last set that holds it. If a set between it and the next one that is known to lack the
    document is not recorded, or there is no such set, the step is `UNRECORDED`.
    """
    labels = np.flatnonzero(shown.relevant_labels(rel))
    rows, topics = shown.label_row[labels], shown.label_topic[labels]
    holds = np.stack([np.isin(rows, one.documents.row) for one in sets])
    lacks = ~holds & np.stack([one.known[topics] for one in sets])
    names = shown.qrels.index.row_names
    for at in np.flatnonzero(~holds[-1]).tolist():
        held = np.flatnonzero(holds[:, at])
        behind = int(held[-1]) + 1 if len(held) else 0
        told = lacks[behind:, at].all() or sets[behind].name == CORPUS  # what is not in the corpus cannot come later
        step = sets[behind].name if told else UNRECORDED
        label = labels[at]
        yield shown.query_ids[topics[at]], names[rows[at]], step, float(shown.label_grade[label])


def sufficient_intervals(values: Floats, method: IntervalMethod, bounds: ArrayLike = (np.nan, np.nan)) -> Floats:
    """Return an interval for the mean of each row, (S, T) to (S, 2); NaN where there is not enough data for one."""
    limits = mean_intervals(values, method, bounds)
    for row, known in enumerate([row[~np.isnan(row)] for row in values]):
        if insufficiency(len(known), variance=spread(known)):
            limits[row] = np.nan
    return limits


def compare_with_rest(
    values: Floats, members: Bools | Sequence[Bools], *, level: float, seed: int = 0, min_units: int = 0
) -> list[AgainstRest | None]:
    """Test the mean of each group of topics against that of all others; None where there is not enough data.

    Both sides need enough topics for a verdict, `min_units` if that is more. One side may be constant.
    """
    known = ~np.isnan(values)
    masks = np.asarray(members, dtype=np.bool_).reshape(-1, len(values)) & known
    sizes = masks.sum(axis=1)
    variance = spread(values[known])
    enough = [
        insufficiency(min(size, int(known.sum()) - size), "verdict", variance=variance, min_units=min_units) is None
        for size in sizes.tolist()
    ]
    tests = iter(against_rest(values, masks[enough], level=level, seed=seed) if any(enough) else ())
    return [next(tests) if some else None for some in enough]


def clicks_of(traces: Traces, stage: str) -> dict[str, dict[str, float]]:
    """Take the clicks that were recorded with the list that people saw: ids in the fact ``clicks``."""
    found: dict[str, dict[str, float]] = {}
    for span in traces.spans:
        given = span.facts.get("clicks") if span.stage == stage else None
        if isinstance(given, Mapping):
            found[span.query_id] = {str(doc): float(times) for doc, times in given.items()}
        elif isinstance(given, (list, tuple)):
            found[span.query_id] = dict(Counter(map(str, given)))
    return found


def read_clicks(clicks: Any) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Read clicks: rows of ``query_id``, ``doc_id`` and, where it is not 1, ``clicks``; a row without a document: none.

    Where rows have ``expected`` too, the clicks that ranks let expect as `judged.online.clicks.coec` counts them, the
    second are these; a document without any was not shown.

    Raises
    ------
    InputError
        If they cannot be read so.

    >>> read_clicks([{"query_id": "q", "doc_id": "a", "clicks": 2}, {"query_id": "left", "doc_id": None}])
    ({'q': {'a': 2.0}, 'left': {}}, {})
    """
    where = str(clicks) if isinstance(clicks, (str, Path)) else "<clicks>"
    fix = "give columns query_id, doc_id and clicks"
    found: dict[str, dict[str, float]] = {}
    expected: dict[str, dict[str, float]] = {}
    for line, row in records_of(clicks, where, "clicks", fix):
        query, doc, times = row.get("query_id", row.get("query")), row.get("doc_id"), row.get("clicks", 1)
        try:
            count, hoped = float(1 if times is None else times), float(row.get("expected") or 0)
        except (TypeError, ValueError, OverflowError):
            count = hoped = math.nan
        if query is None or "doc_id" not in row or not (0 <= count < math.inf and 0 <= hoped < math.inf):
            problem = "a row without query_id or doc_id, or whose clicks or expected clicks are not a count"
            raise InputError(problem, fix=fix, path=where, line=line)
        known = found.setdefault(str(query), {})
        if doc is not None and doc != "":
            known[str(doc)] = known.get(str(doc), 0.0) + count
            if hoped:
                own = expected.setdefault(str(query), {})
                own[str(doc)] = own.get(str(doc), 0.0) + hoped
    return found, expected
