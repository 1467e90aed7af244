"""`check_collection`: quality and limits of a test collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.agreement import agree
from judged.comparison.plans import power_of_scores
from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.labels.labels import Labels
from judged.results import COUNT, NUMBER, TEXT, Answer, Sentences, Table, columns_of
from judged.results.decimals import counted, percent
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.evaluate import score_lists
from judged.scoring.evaluation.notes import origin_notes
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import parse
from judged.scoring.uncertainty.pools import leave_one_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.comparison.agreement.answer import JudgeAgreement
    from judged.comparison.plans import Plans
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.pools import LeaveOneOut, LeaveOneOutRow


@dataclass(frozen=True)
class RunCoverage:
    """Coverage of a run by judgments."""

    run: str
    judged_share: float  # share of judged documents up to the cutoff, mean over topics
    full_depth: int  # last rank down to which all documents of all topics are judged
    unjudged: int  # number of unjudged documents up to the cutoff, all topics


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Answer):
    """Quality and limits of a test collection."""

    kind: ClassVar[str] = "collection"

    measure: str
    n: int  # number of topics
    judgments: int
    without_relevant: tuple[str, ...]  # topics without relevant documents
    cutoff: int
    coverage: tuple[RunCoverage, ...]
    pool: LeaveOneOut | None  # None for one run, or one group of runs
    plans: Plans | None  # None for one run
    agreement: JudgeAgreement | None  # None without labels of several judges
    seconds: float | None  # median time per label; None if not measured
    hours: float | None  # total time of labels with a known time
    notes: tuple[Note, ...] = ()

    @property
    def judged_share(self) -> float:
        """Mean judged share over runs."""
        return float(np.mean([row.judged_share for row in self.coverage]))

    @property
    def largest_loss(self) -> tuple[LeaveOneOutRow, LeaveOneOutRow] | None:
        """Runs with the largest loss of score, and with the largest loss of rank, if left out of the pool."""
        rows = () if self.pool is None else self.pool.rows
        ranked_rows = [row for row in rows if row.old_rank and row.new_rank]
        if not ranked_rows:
            return None
        largest_rank_loss = max(ranked_rows, key=lambda row: (row.new_rank or 0) - (row.old_rank or 0))
        return min(ranked_rows, key=lambda row: row.difference), largest_rank_loss

    def facts(self) -> dict[str, Any]:
        """Return the measure, the counts, and the times."""
        names = ("measure", "n", "judgments", "without_relevant", "cutoff", "judged_share", "seconds", "hours")
        return {name: getattr(self, name) for name in names}

    def blocks(self) -> tuple[Block, ...]:
        """Return sentences, coverage of runs, and results of leaving runs out of the pool."""
        share = ("judged_share", NUMBER, f"judged@{self.cutoff}")
        counts = (("full_depth", COUNT, "fully judged depth"), ("unjudged", COUNT))
        coverage = Table("coverage", columns_of(self.coverage, ("run", TEXT), share, *counts))
        pool = () if self.pool is None else self.pool.blocks()
        return Sentences(self.sentences), coverage, *pool

    @property
    def sentences(self) -> tuple[str, ...]:
        """Conclusions and limits."""
        size = f"{counted(self.n, 'topic')}, {counted(self.judgments, 'judgment')}"
        sentences = [f"{percent(self.judged_share)} of the runs' top-{self.cutoff} documents are judged ({size})."]
        if self.without_relevant:
            topics = counted(len(self.without_relevant), "topic has", "topics have")
            sentences.append(f"{topics} no relevant document, so {self.measure} cannot distinguish runs there.")
        if self.pool and not any(row.lost for row in self.pool.rows):
            sentences.append(
                "No judged document was contributed by only one run or group, so the loss of score of a run outside the"
                " pool cannot be estimated."
            )
        elif self.largest_loss and self.pool:
            largest, most_fallen = self.largest_loss
            rank_loss = max(0, (most_fallen.new_rank or 0) - (most_fallen.old_rank or 0))
            unit = "group" if any(row.group != row.run for row in self.pool.rows) else "run"
            run_name = f" ({most_fallen.run})" if rank_loss else ""
            run = "run" if unit == "run" else "group's runs"
            sentences.append(
                f"If the documents that only one {unit} contributed were unjudged, that {run} would lose at most"
                f" {max(0.0, -largest.difference):.4f} of {self.measure} ({largest.run}) and at most"
                f" {counted(rank_loss, 'place')} in the ranking of runs{run_name}. A new run that is similar to the"
                " pooled runs may lose the same amount; a very different run may lose more."
            )
        if self.plans:
            sentences += [f"{name}: {plan.sentence}" for name, plan in self.plans.plans.items()]
        if self.agreement:
            sentences += [self.agreement.alpha.sentence, *(effect.sentence for effect in self.agreement.systems)]
        if self.seconds is not None and self.hours is not None:
            sentences.append(
                f"The median time per label is {self.seconds:.0f} seconds. The labels with a recorded time took"
                f" {self.hours:.1f} hours in total."
            )
        return tuple(sentences)


@with_parameter_hints
def check_collection(
    qrels: Any,
    runs: Any,
    *,
    measure: str | Measure = "nDCG@10",
    cutoff: int = 10,
    pool_depth: int = 10,
    groups: Mapping[str, str] | None = None,
    labels: Any = None,
) -> Collection:
    """Check a test collection: coverage of runs, fairness to runs outside the pool, and detectable differences.

    Parameters
    ----------
    qrels, runs
        As in `evaluate`; the runs should be those of the pool.
    measure
        Measure to compare runs by.
    cutoff
        Number of documents of each run that should be judged.
    pool_depth, groups
        As in `leave_one_out`.
    labels
        Labels of the judges, for their agreement and time, as `Labels.of` accepts them.

    Returns
    -------
    Collection

    Raises
    ------
    InputError
        If an input cannot be read, or a run has no ranking.

    Examples
    --------
    >>> runs = {"one": {"q": {"a": 2.0, "c": 1.0}}, "two": {"q": {"b": 2.0, "c": 1.0}}}
    >>> result = check_collection({"q": {"a": 1, "b": 1}, "r": {"c": 0}}, runs, measure="P@1", cutoff=2, pool_depth=1)
    >>> result.judged_share, result.without_relevant, [row.full_depth for row in result.coverage]
    (0.5, ('r',), [1, 1])
    """
    if cutoff < 1:
        raise InputError(f"`cutoff` must be a positive integer, got {cutoff}", fix="use cutoff=10")
    qrels, run_list, measure = Qrels.of(qrels), runs_of(runs), parse(measure)
    runs_by_name = {run.name: run for run in run_list}
    lists = {name: judge(qrels, run) for name, run in runs_by_name.items()}
    coverage: list[RunCoverage] = []
    for name, judged_list in lists.items():
        top_counts = np.minimum(judged_list.returned, cutoff)
        judged_counts = np.bincount(judged_list.topic[judged_list.rank <= cutoff], minlength=len(judged_list))
        expected_rank = np.arange(len(judged_list.topic)) - judged_list.starts[judged_list.topic] + 1
        # Number of documents before the first unjudged one: judged documents with rank = position.
        prefix_lengths = np.bincount(judged_list.topic[judged_list.rank == expected_rank], minlength=len(judged_list))
        is_incomplete = prefix_lengths < judged_list.returned
        longest = judged_list.returned.max(initial=0)
        # Fully judged lists do not limit the depth.
        depth = int(prefix_lengths[is_incomplete].min(initial=longest))
        share = float((judged_counts[top_counts > 0] / top_counts[top_counts > 0]).mean()) if top_counts.any() else 0.0
        coverage.append(RunCoverage(name, share, depth, int((top_counts - judged_counts).sum())))
    relevant = np.bincount(qrels.index.topic[qrels.index.grade > 0], minlength=len(qrels.topics))
    without_relevant = tuple(topic for topic, count in zip(qrels.topics, relevant.tolist(), strict=True) if not count)
    # Leaving one group out needs another one.
    has_groups = len({(groups or {}).get(name, name) for name in runs_by_name}) > 1
    pool = leave_one_out(qrels, runs_by_name, measure, pool_depth=pool_depth, groups=groups) if has_groups else None
    is_mean = len(runs_by_name) > 1 and measure.entry.aggregate == "mean"
    plans = power_of_scores(score_lists([*lists.values()], (measure,))) if is_mean else None
    agreement, seconds, hours = None, None, None
    if labels is not None:
        graded = Labels.of(labels).graded
        label_seconds = graded["seconds"].drop_null().to_numpy()
        if len(label_seconds):
            seconds, hours = float(np.median(label_seconds)), float(label_seconds.sum()) / 3600
        # Repeats measure the consistency of one judge, not agreement.
        first = graded.filter(pc.equal(graded["repeat"], 0))
        columns = {"query_id": "query_id", "doc_id": "doc_id", "grade": "relevance"}
        by_judge = {
            judge_: Qrels.of(first.filter(pc.equal(first["judge"], judge_)).select([*columns]).rename_columns(columns))
            for judge_ in first["judge"].unique().to_pylist()
        }
        agreement = agree(by_judge, runs=runs_by_name, measures=(measure,)) if len(by_judge) > 1 else None
    notes = (*origin_notes(qrels.origin), *(() if pool is None else pool.notes))
    summary = str(measure), len(qrels.topics), len(qrels.index.topic), without_relevant, cutoff, tuple(coverage)
    return Collection(*summary, pool, plans, agreement, seconds, hours, notes)
