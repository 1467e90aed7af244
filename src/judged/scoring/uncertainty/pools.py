"""Leave-one-run-out test of a pool: each run is scored as if it had not contributed to the pool."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run, find_run_name
from judged.errors import InputError, MeasureError
from judged.results import COUNT, NUMBER, TEXT, Answer, Table, columns_of
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted, percent
from judged.results.spelling import with_parameter_hints
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import remove_judgments
from judged.scoring.measures.aggregates import aggregate
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import list_measures, parse_many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results import Block
    from judged.results.types import Bools
    from judged.scoring.judging import Judged, Precision, TiePolicy

_MIN_RUNS = 2
_MIN_JUDGED_SHARE = 0.95  # a pool of this depth would have all judged; some qrels lack a few


@dataclass(frozen=True)
class LeaveOneOutRow:
    """Change of one aggregate of a run if the judgments that only its group contributed are removed."""

    run: str
    group: str
    measure: str
    # old, new: aggregate over the topics with all judgments, and without those that only this group contributed
    old: float
    new: float
    # lost, relevant_lost: number of judgments that are removed, and of those with a grade above 0
    lost: int
    relevant_lost: int
    # old_rank, new_rank: rank among the runs, 1 for the best, all scored with the same judgments; equal numbers share
    # a rank. None for a measure that is neither better high nor low, and for a run without a number.
    old_rank: int | None
    new_rank: int | None

    @property
    def difference(self) -> float:
        """Change of the aggregate: new minus old."""
        return self.new - self.old


@dataclass(frozen=True, repr=False)
class LeaveOneOut(Answer):
    """Every run, scored without the judgments that only its group contributed."""

    kind: ClassVar[str] = "pool"

    pool_depth: int
    rows: tuple[LeaveOneOutRow, ...]  # ordered by run, then measure
    judgments: int  # number of judged pairs in the qrels
    outside: int  # judged pairs that no run has among its first `pool_depth`: they came from elsewhere, and stay
    # share of the runs' first `pool_depth` documents that are judged; 1 for a pool of this depth
    judged_share: float
    notes: tuple[Note, ...]  # limitations of the test on these data

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"Scores of each run without the judgments that only this run contributed, pool depth {self.pool_depth}"

    def blocks(self) -> tuple[Block, ...]:
        """Return a table with one row per run and measure."""
        has_groups = any(row.group != row.run for row in self.rows)
        run, group, *columns = columns_of(
            self.rows,
            ("run", TEXT),
            ("group", TEXT),
            ("measure", TEXT),
            ("old", NUMBER),
            ("new", NUMBER),
            ("difference", NUMBER),
            ("lost", COUNT, "judgments lost"),
            ("relevant_lost", COUNT, "relevant lost"),
            ("old_rank", COUNT, "rank"),
            ("new_rank", COUNT, "new rank"),
        )
        group = replace(group, only="" if has_groups else "data")
        return (Table("rows", (run, group, *columns), labels=2 + has_groups),)

    def facts(self) -> dict[str, Any]:
        """Return the depth, number of judgments and judged share of the pool."""
        names = ("pool_depth", "judgments", "outside", "judged_share")
        return {name: getattr(self, name) for name in names}


@with_parameter_hints
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

    The judgments of documents that only this run has among its first ``pool_depth`` are removed: the documents become
    unjudged. If the score of a run drops, it depends on the run's own contributions; a new run, which made none, would
    be underestimated as much. All topics of the qrels count, including those that lose all judgments.

    Parameters
    ----------
    qrels
        A `Qrels`, or any input of `Qrels.of`.
    runs
        ``{name: run}``, or a list of runs or paths. The pool is assumed to consist of these.
    measures
        One or several, as names or measures.
    pool_depth
        Number of documents of each run and topic that were judged.
    groups
        Group (team) of each run, by name. Runs of a group return similar documents, so the group is left out as a
        whole. Default: each run is a group.
    ties, depth, precision, documents
        As in `judge`.

    Returns
    -------
    LeaveOneOut
        Its notes name limitations: runs without judged documents of their own, judged documents that no run has, a
        pool that was less deep.

    Raises
    ------
    InputError
        If there is only one group, a run has no ranking, a name is unknown, or `pool_depth` is below 1.
    MeasureError
        If a measure uses the judgments of other topics (Hole).

    Examples
    --------
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 0}}
    >>> runs = {"one": {"q": {"a": 2.0, "c": 1.0}}, "two": {"q": {"b": 2.0, "c": 1.0}}}
    >>> leave_one_out(qrels, runs, "P@1", pool_depth=2)
    run  measure     old     new  difference  judgments lost  relevant lost  rank  new rank
    one  P@1      1.0000  0.0000     -1.0000               1              1     1         2
    two  P@1      1.0000  0.0000     -1.0000               1              1     1         2
    """
    if pool_depth < 1:
        raise InputError(f"`pool_depth` must be a positive integer, got {pool_depth}", fix="use pool_depth=100")
    parsed_measures = _measures(measures)
    judgments = Qrels.of(qrels)
    policies: dict[str, Any] = {"ties": ties, "depth": depth, "precision": precision, "documents": documents}
    lists = {name: judge(judgments, run, **policies) for name, run in _runs_by_name(runs).items()}
    group_of = _groups(lists, groups or {})
    pooled = {name: _pooled(judged, pool_depth) for name, judged in lists.items()}
    pooled_by_group = {
        group: np.logical_or.reduce([pooled[run] for run in lists if group_of[run] == group])
        for group in group_of.values()
    }
    contributors = np.sum(list(pooled_by_group.values()), axis=0)  # number of groups that pooled each judged pair
    old = {measure: _aggregates(lists, measure) for measure in parsed_measures}
    rows: dict[tuple[str, Measure], LeaveOneOutRow] = {}
    for group, is_pooled in pooled_by_group.items():
        removed = is_pooled & (contributors == 1)
        remaining = {run: remove_judgments(judged, removed) for run, judged in lists.items()}
        lost = int(removed.sum()), int((judgments.index.grade[removed] > 0).sum())
        for measure in parsed_measures:
            new = _aggregates(remaining, measure) if lost[0] else old[measure]
            for run in lists:
                if group_of[run] == group:
                    values = old[measure][run], new[run]
                    ranks = (_rank(aggregates, run, measure) for aggregates in (old[measure], new))
                    rows[run, measure] = LeaveOneOutRow(run, group, str(measure), *values, *lost, *ranks)
    share = _judged_share(lists, pool_depth)
    ordered = tuple(rows[run, measure] for run in lists for measure in parsed_measures)
    outside = int((contributors == 0).sum())
    notes = tuple(_notes(ordered, outside, len(contributors), share, pool_depth))
    return LeaveOneOut(pool_depth, ordered, len(contributors), outside, share, notes)


def _measures(measures: str | Measure | Sequence[str | Measure]) -> tuple[Measure, ...]:
    names = list_measures(measures)
    parsed = tuple(dict.fromkeys(measure for name in names for measure in parse_many(name)))
    if not parsed:
        raise InputError("at least one measure is required", fix="use names such as AP, nDCG@10")
    for measure in parsed:
        if not measure.properties.topics_independent:
            raise MeasureError(f"{measure} uses the judgments of all topics. Fix: use other measures")
    return parsed


def _runs_by_name(runs: Mapping[str, Any] | Sequence[Run]) -> dict[str, Run]:
    if isinstance(runs, Mapping):
        return {str(name): Run.of(run, name=str(name)) for name, run in runs.items()}
    by_name = {run.name: run for run in map(Run.of, runs)}
    if len(by_name) < len(runs):
        raise InputError("run names must be unique, got two runs with the same name", fix="use {name: run}")
    return by_name


def _groups(lists: Mapping[str, Judged], groups: Mapping[str, str]) -> dict[str, str]:
    groups = {find_run_name(name, lists): group for name, group in groups.items()}
    for name, judged in lists.items():
        if not judged.ranked:
            raise InputError(
                f"run {name} must have scores, because the pool contains its first documents", fix="omit this run"
            )
    group_of = {name: groups.get(name, name) for name in lists}
    if len(set(group_of.values())) < _MIN_RUNS:
        raise InputError("at least two runs or groups of runs are required", fix="add the other runs of the pool")
    return group_of


def _pooled(judged: Judged, depth: int) -> Bools:
    """Mark the judged pairs whose document a run ranks within the depth: (P,)."""
    marks = np.zeros(len(judged.qrels.index.topic), dtype=np.bool_)
    marks[judged.label_row[judged.row[judged.rank <= depth]]] = True
    return marks


def _judged_share(lists: Mapping[str, Judged], depth: int) -> float:
    returned = sum(int(np.minimum(judged.returned, depth).sum()) for judged in lists.values())
    judged_count = sum(int((judged.rank <= depth).sum()) for judged in lists.values())
    return judged_count / returned if returned else 0.0


def _aggregates(lists: Mapping[str, Judged], measure: Measure) -> dict[str, float]:
    scores = {name: measure(judged) for name, judged in lists.items()}
    return {name: aggregate(measure.entry.aggregate, row[~np.isnan(row)]) for name, row in scores.items()}


def _rank(values: Mapping[str, float], run: str, measure: Measure) -> int | None:
    higher_is_better = measure.properties.higher_is_better
    if higher_is_better is None or math.isnan(values[run]):
        return None
    sign = 1.0 if higher_is_better else -1.0
    return 1 + sum(sign * value > sign * values[run] for value in values.values())


def _notes(rows: Sequence[LeaveOneOutRow], outside: int, judgments: int, share: float, depth: int) -> Iterator[Note]:
    if unchanged := list(dict.fromkeys(row.run for row in rows if not row.lost)):
        text = (
            f"{counted(len(unchanged), 'run')} without a unique contribution: another run also contributed each judged"
            f" document, so the scores of these runs cannot change: {first_few(unchanged)}"
        )
        yield Note("no-unique-judgments", text)
    if outside:
        yield Note(
            "judgments-outside-pool",
            f"{outside} of {judgments} judgments are for documents that no run has in its top {depth}. Leaving"
            " out a run does not remove these judgments, so a new run may lose more than this result shows",
        )
    if share < _MIN_JUDGED_SHARE:
        yield Note(
            "shallow-pool",
            f"only {percent(share)} of the runs' first {depth} documents are judged: the pool was less deep, or some"
            " runs did not contribute. A document that only one run contributed may then count as contributed by"
            " several runs",
        )
