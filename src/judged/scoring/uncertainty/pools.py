"""Whether a pool is fair to a run that did not contribute to it: each run is scored as if it had not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run, run_named
from judged.errors import InputError, MeasureError
from judged.results import COUNT, NUMBER, TEXT, Answer, Table, columns_of
from judged.results.blocks import Note, first_few
from judged.results.decimals import percent
from judged.results.spelling import hinting
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import withdrawn
from judged.scoring.measures.aggregates import aggregate
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import list_measures, parse_many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results import Block
    from judged.results.types import Bools
    from judged.scoring.judging import Judged, Precision, TiePolicy

_LEAST_RUNS = 2
_LEAST_JUDGED = 0.95  # a pool of this depth would have all judged; some qrels lack a few


@dataclass(frozen=True)
class LeftOut:
    """What becomes of one number of a run, if its own contributions to the pool are not judged."""

    run: str
    group: str
    measure: str
    # old, new: the aggregate over the topics with all judgments, and without those that only this group contributed
    old: float
    new: float
    # lost, relevant_lost: how many judgments are taken away, and how many of these have a grade above 0
    lost: int
    relevant_lost: int
    # old_place, new_place: the place among the runs, 1 for the best, all scored with the same judgments; runs with the
    # same number share a place. None for a measure that is neither better high nor low, and for a run that has no
    # number.
    old_place: int | None
    new_place: int | None

    @property
    def difference(self) -> float:
        """New minus old."""
        return self.new - self.old


@dataclass(frozen=True, repr=False)
class LeaveOneOut(Answer):
    """Every run without the judgments that are owed to it alone."""

    kind: ClassVar[str] = "pool"

    pool_depth: int
    rows: tuple[LeftOut, ...]  # run by run, measure by measure
    judgments: int  # the judged pairs of the qrels
    outside: int  # those that no run has among its first `pool_depth`: they came from elsewhere, and stay
    # the share of the runs' first `pool_depth` documents that is judged; a pool of this depth has 1
    judged_share: float
    notes: tuple[Note, ...]  # what to know before the numbers are read

    @property
    def title(self) -> str:
        """What is tried."""
        return f"Each run without its own judgments, in a pool of depth {self.pool_depth}"

    def blocks(self) -> tuple[Block, ...]:
        """Give a row for each run and measure."""
        grouped = any(row.group != row.run for row in self.rows)
        run, group, *rest = columns_of(
            self.rows,
            ("run", TEXT),
            ("group", TEXT),
            ("measure", TEXT),
            ("old", NUMBER),
            ("new", NUMBER),
            ("difference", NUMBER),
            ("lost", COUNT),
            ("relevant_lost", COUNT, "relevant lost"),
            ("old_place", COUNT, "place"),
            ("new_place", COUNT, "new place"),
        )
        group = replace(group, only="" if grouped else "data")
        return (Table("rows", (run, group, *rest), labels=2 + grouped),)

    def facts(self) -> dict[str, Any]:
        """Give what the pool is like."""
        names = ("pool_depth", "judgments", "outside", "judged_share")
        return {name: getattr(self, name) for name in names}


@hinting
def leave_one_out(
    qrels: Any,
    runs: Mapping[str, Any] | Sequence[Any],
    measures: str | Measure | Sequence[str | Measure],
    *,
    pool_depth: int = 100,
    groups: Mapping[str, str] | None = None,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
    documents: Any = None,
) -> LeaveOneOut:
    """Score each run as if it had not contributed to the pool (Zobel 1998; Buckley et al. 2007).

    The judgments of documents that this run alone has among its first ``pool_depth`` are taken away: they become
    unjudged. A run whose score falls much owes it to its own contributions; a new run, which made none, would be
    as much undervalued. All topics of the qrels count, also those that lose all judgments.

    Parameters
    ----------
    qrels
        A `Qrels`, or anything that `Qrels.of` takes.
    runs
        ``{name: run}``, or a list of runs or paths. The pool is taken to consist of these.
    measures
        One or several, as names or measures.
    pool_depth
        How many documents of each run and topic were judged.
    groups
        Who sent each run, by its name. Runs of one group find the same documents, so a group is left out as a whole.
        A run that is not named is a group by itself.
    ties, depth, precision, documents
        As in `judge`.

    Returns
    -------
    LeaveOneOut
        Its notes say where the experiment means little: runs without documents of their own, judged documents
        that no run has, a pool that was not so deep.

    Raises
    ------
    InputError
        If there is one group only, a run has no ranking, or a name is unknown.
    MeasureError
        If a measure looks at the judgments of other topics (Hole).

    Examples
    --------
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 0}}
    >>> runs = {"one": {"q": {"a": 2.0, "c": 1.0}}, "two": {"q": {"b": 2.0, "c": 1.0}}}
    >>> leave_one_out(qrels, runs, "P@1", pool_depth=2)
    run  measure     old     new  difference  lost  relevant lost  place  new place
    one  P@1      1.0000  0.0000     -1.0000     1              1      1          2
    two  P@1      1.0000  0.0000     -1.0000     1              1      1          2
    """
    if pool_depth < 1:
        raise InputError(f"the pool depth {pool_depth} makes no sense", fix="give a whole number from 1")
    wanted = _measures(measures)
    known = Qrels.of(qrels)
    policies: dict[str, Any] = {"ties": ties, "depth": depth, "precision": precision, "documents": documents}
    lists = {name: judge(known, run, **policies) for name, run in _named(runs).items()}
    group = _groups(lists, groups or {})
    pooled = {name: _pooled(one, pool_depth) for name, one in lists.items()}
    by_group = {
        one: np.logical_or.reduce([pooled[run] for run in lists if group[run] == one]) for one in group.values()
    }
    times = np.sum(list(by_group.values()), axis=0)
    old, rows = {one: _values(lists, one) for one in wanted}, dict[tuple[str, Measure], LeftOut]()
    for name, mine in by_group.items():
        gone = mine & (times == 1)
        left = {run: withdrawn(one, gone) for run, one in lists.items()}
        lost = int(gone.sum()), int((known.index.grade[gone] > 0).sum())
        for one in wanted:
            new = _values(left, one) if lost[0] else old[one]
            for run in lists:
                if group[run] == name:
                    places = (_place(values, run, one) for values in (old[one], new))
                    rows[run, one] = LeftOut(run, name, str(one), old[one][run], new[run], *lost, *places)
    share = _judged_share(lists, pool_depth)
    ordered = tuple(rows[run, one] for run in lists for one in wanted)
    outside = int((times == 0).sum())
    notes = tuple(_notes(ordered, outside, len(times), share, pool_depth))
    return LeaveOneOut(pool_depth, ordered, len(times), outside, share, notes)


def _measures(measures: str | Measure | Sequence[str | Measure]) -> tuple[Measure, ...]:
    several = list_measures(measures)
    found = tuple(dict.fromkeys(one for text in several for one in parse_many(text)))
    if not found:
        raise InputError("no measure is given", fix="give names such as AP, nDCG@10")
    for one in found:
        if not one.properties.topics_independent:
            raise MeasureError(f"{one} looks at the judgments of all topics. Fix: leave it out here")
    return found


def _named(runs: Mapping[str, Any] | Sequence[Run]) -> dict[str, Run]:
    if isinstance(runs, Mapping):
        return {str(name): Run.of(run, name=str(name)) for name, run in runs.items()}
    named = {run.name: run for run in map(Run.of, runs)}
    if len(named) < len(runs):
        raise InputError("two runs have the same name", fix="give {name: run}")
    return named


def _groups(lists: Mapping[str, Judged], groups: Mapping[str, str]) -> dict[str, str]:
    groups = {run_named(name, lists): group for name, group in groups.items()}
    for name, one in lists.items():
        if not one.ranked:
            raise InputError(f"the run {name} has no scores, so no first documents", fix="leave it out")
    found = {name: groups.get(name, name) for name in lists}
    if len(set(found.values())) < _LEAST_RUNS:
        raise InputError("one run, or group, has no others to be left out from", fix="give the other runs of the pool")
    return found


def _pooled(judged: Judged, depth: int) -> Bools:
    """Mark the judged pairs that a run has among its first: (P,)."""
    marks = np.zeros(len(judged.qrels.index.topic), dtype=np.bool_)
    marks[judged.label_row[judged.row[judged.rank <= depth]]] = True
    return marks


def _judged_share(lists: Mapping[str, Judged], depth: int) -> float:
    seen = sum(int(np.minimum(one.returned, depth).sum()) for one in lists.values())
    judged = sum(int((one.rank <= depth).sum()) for one in lists.values())
    return judged / seen if seen else 0.0


def _values(lists: Mapping[str, Judged], measure: Measure) -> dict[str, float]:
    scores = {name: measure(judged) for name, judged in lists.items()}
    return {name: aggregate(measure.entry.aggregate, row[~np.isnan(row)]) for name, row in scores.items()}


def _place(values: Mapping[str, float], run: str, measure: Measure) -> int | None:
    better = measure.properties.higher_is_better
    if better is None or math.isnan(values[run]):
        return None
    sign = 1.0 if better else -1.0
    return 1 + sum(sign * value > sign * values[run] for value in values.values())


def _notes(rows: Sequence[LeftOut], outside: int, judgments: int, share: float, depth: int) -> Iterator[Note]:
    if none := list(dict.fromkeys(row.run for row in rows if not row.lost)):
        text = f"{len(none)} runs have no judged document of their own, and cannot change: {first_few(none)}"
        yield Note("nothing-of-its-own", text)
    if outside:
        yield Note(
            "judged-from-elsewhere",
            f"{outside} of {judgments} judgments are of documents that no run has among its first {depth}: they came"
            " from elsewhere and stay, so a run that is really new may lose more than is seen here",
        )
    if share < _LEAST_JUDGED:
        yield Note(
            "shallow-pool",
            f"of the runs' first {depth} documents {percent(share)} are judged: the pool was not so deep, or not all of"
            " these runs contributed. Documents that were judged because of one run alone then count as shared",
        )
