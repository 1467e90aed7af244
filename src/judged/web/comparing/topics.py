"""The topics of a comparison as a table: filtered, searched, sorted, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.web.paging import Paging

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from judged._types import Bools, Floats
    from judged.measures import Measure
    from judged.web.comparing.asked import Asked
    from judged.web.comparing.two import Two
    from judged.web.workspace import Workspace

_CUTOFF = 10


@dataclass(frozen=True)
class TopicRow:
    """Both runs on one topic."""

    query_id: str
    query: str
    # first, second: the scores; NaN where the measure leaves the topic out
    first: float
    second: float
    difference: float  # second minus first; NaN where one has no score
    # first_judged, second_judged: the share of judged documents among the first ones
    first_judged: float
    second_judged: float
    # first_has, second_has: whether the run returned anything for the topic
    first_has: bool
    second_has: bool


@dataclass(frozen=True)
class Counts:
    """How many topics there are of each kind."""

    all: int
    # wins, losses, ties: on which the second run is better, worse, equal
    wins: int
    losses: int
    ties: int
    left_out: int  # without a score for one of the two


@dataclass(frozen=True)
class TopicTable:
    """One page of the topics."""

    rows: tuple[TopicRow, ...]
    paging: Paging  # over the topics that the filters leave
    counts: Counts  # over all that were compared
    sort: str  # what the rows are sorted by; falling with `-` before it
    judged: str  # the measure of the share of judged documents


def topic_table(workspace: Workspace, two: Two, asked: Asked) -> TopicTable:
    """Filter, sort and cut the topics."""
    gains = two.side * two.differences
    kinds = {"wins": gains > 0, "losses": gains < 0, "ties": gains == 0, "all": np.ones(len(gains), dtype=np.bool_)}
    sort = asked.sort or ("-difference" if two.side > 0 else "difference")
    judged_measure = _judged_measure(two.measure)
    judged = _judged(workspace, two, judged_measure)
    found = np.flatnonzero(kinds[asked.show] & _matching(workspace, two, asked.q))
    order = found[_order(_keys(workspace, two, judged, sort)[found], falling=sort.startswith("-"))]
    paging = Paging.at(asked.page, len(order))
    has = [_has(workspace, two, run) for run in (two.first, two.second)]
    return TopicTable(
        rows=tuple(_row(workspace, two, judged, has, at) for at in paging.of(order.tolist())),
        paging=paging,
        counts=Counts(
            all=len(gains),
            wins=int(kinds["wins"].sum()),
            losses=int(kinds["losses"].sum()),
            ties=int(kinds["ties"].sum()),
            left_out=int(np.isnan(gains).sum()),
        ),
        sort=sort,
        judged=judged_measure,
    )


def _row(workspace: Workspace, two: Two, judged: Sequence[Floats], has: Sequence[Bools], at: int) -> TopicRow:
    query_id = two.query_ids[at]
    first, second = two.values
    return TopicRow(
        query_id=query_id,
        query=workspace.query(query_id),
        first=float(first[at]),
        second=float(second[at]),
        difference=float(two.differences[at]),
        first_judged=float(judged[0][at]),
        second_judged=float(judged[1][at]),
        first_has=bool(has[0][at]),
        second_has=bool(has[1][at]),
    )


def _judged_measure(measure: Measure) -> str:
    """Name the share of judged documents down to the cutoff of a measure."""
    cutoff = getattr(measure, "cutoff", None)
    return f"Judged@{cutoff if isinstance(cutoff, int) else _CUTOFF}"


def _judged(workspace: Workspace, two: Two, name: str) -> tuple[Floats, Floats]:
    """Give the share of judged documents for both runs: (T,) each."""

    def made() -> tuple[Floats, Floats]:
        scores = workspace.scores((name,), (two.first, two.second))
        place = {query_id: at for at, query_id in enumerate(scores.query_ids)}
        chosen = np.array([place[query_id] for query_id in two.query_ids], dtype=np.intp)
        return scores.values[0, 0, chosen], scores.values[1, 0, chosen]

    found: tuple[Floats, Floats] = workspace.remember((*two.key, name), made)
    return found


def _has(workspace: Workspace, two: Two, run: str) -> Bools:
    """Mark the topics for which a run returned anything: (T,)."""

    def made() -> Bools:
        judged = workspace.judged(run)
        known = {query_id for query_id, is_in in zip(judged.query_ids, judged.present.tolist(), strict=True) if is_in}
        return np.array([query_id in known for query_id in two.query_ids], dtype=np.bool_)

    found: Bools = workspace.remember((*two.key, "has", run), made)
    return found


def _texts(workspace: Workspace, two: Two) -> tuple[str, ...]:
    """Give the queries of the topics, in the small letters in which they are searched and sorted."""
    found: tuple[str, ...] = workspace.remember(
        (*two.key, "texts"), lambda: tuple(workspace.query(one).casefold() for one in two.query_ids)
    )
    return found


def _matching(workspace: Workspace, two: Two, text: str) -> Bools:
    """Mark the topics with a text in their id or their query: (T,)."""
    wanted = " ".join(text.casefold().split())
    if not wanted:
        return np.ones(len(two.query_ids), dtype=np.bool_)
    pairs = zip(two.query_ids, _texts(workspace, two), strict=True)
    return np.array([wanted in query_id.casefold() or wanted in query for query_id, query in pairs], dtype=np.bool_)


def _keys(workspace: Workspace, two: Two, judged: Sequence[Floats], sort: str) -> Floats:
    """Give the numbers that topics are sorted by: (T,)."""
    name = sort.removeprefix("-")
    if name == "topic":
        return np.arange(len(two.query_ids), dtype=np.float64)  # they come in byte order
    if name == "query":
        places: Any = np.unique(np.array(_texts(workspace, two), dtype=object), return_inverse=True)[1]
        return places.astype(np.float64)
    first, second = two.values
    return {
        "first": first, "second": second, "difference": two.differences,
        "first_judged": judged[0], "second_judged": judged[1],
    }[name]  # fmt: skip


def _order(keys: Floats, *, falling: bool) -> Any:
    """Order by numbers, equal ones as they come, those without one last."""
    return np.argsort(-keys if falling else keys, kind="stable")
