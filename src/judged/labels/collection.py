"""`check_collection`: what a test collection can tell, and what it cannot."""

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
    """How far the judgments reach into a run."""

    run: str
    judged_share: float  # of its first documents up to the cutoff, the mean over topics
    full_depth: int  # down to this rank every document of every topic is judged
    unjudged: int  # documents among the first of all topics without a judgment


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Answer):
    """What a test collection can tell."""

    kind: ClassVar[str] = "collection"

    measure: str
    n: int  # topics
    judgments: int
    without_relevant: tuple[str, ...]  # topics in which nothing is relevant
    cutoff: int
    coverage: tuple[RunCoverage, ...]
    pool: LeaveOneOut | None  # None for one run, or one group of runs
    plans: Plans | None  # None for one run
    agreement: JudgeAgreement | None  # None without labels of several judges
    seconds: float | None  # the median of a label; None where nobody measured
    hours: float | None  # all labels of which the time is known
    notes: tuple[Note, ...] = ()

    @property
    def judged_share(self) -> float:
        """The mean of the runs."""
        return float(np.mean([row.judged_share for row in self.coverage]))

    @property
    def largest_loss(self) -> tuple[LeaveOneOutRow, LeaveOneOutRow] | None:
        """The run that loses most of its score, and the one that falls by most places, if it is left out."""
        rows = () if self.pool is None else self.pool.rows
        placed = [row for row in rows if row.old_place and row.new_place]
        if not placed:
            return None
        fallen = max(placed, key=lambda row: (row.new_place or 0) - (row.old_place or 0))
        return min(placed, key=lambda row: row.difference), fallen

    def facts(self) -> dict[str, Any]:
        """Give what is known of the collection as a whole."""
        names = ("measure", "n", "judgments", "without_relevant", "cutoff", "judged_share", "seconds", "hours")
        return {name: getattr(self, name) for name in names}

    def blocks(self) -> tuple[Block, ...]:
        """Give what may be concluded, how far judgments reach, and what becomes of runs that are left out."""
        share = ("judged_share", NUMBER, f"judged@{self.cutoff}")
        rest = (("full_depth", COUNT, "all judged to rank"), ("unjudged", COUNT))
        coverage = Table("coverage", columns_of(self.coverage, ("run", TEXT), share, *rest))
        pool = () if self.pool is None else self.pool.blocks()
        return Sentences(self.sentences), coverage, *pool

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        topics, judgments = counted(self.n, "topic"), counted(self.judgments, "judgment")
        share = percent(self.judged_share)
        said = [f"{topics}, {judgments}; of the runs' first {self.cutoff} documents {share} are judged."]
        if self.without_relevant:
            without = counted(len(self.without_relevant), "topic")
            said.append(f"In {without} nothing is relevant: they tell no runs apart by {self.measure}.")
        if self.pool and not any(row.lost for row in self.pool.rows):
            said.append(
                "No judgment is owed to one run or group alone: what one that was not pooled would lose is not seen."
            )
        elif self.largest_loss and self.pool:
            most, fallen = self.largest_loss
            places = max(0, (fallen.new_place or 0) - (fallen.old_place or 0))
            whom = "group" if any(row.group != row.run for row in self.pool.rows) else "run"
            by = f" ({fallen.run})" if places else ""
            said.append(
                f"Without the judgments that are owed to one {whom} alone, a run loses up to"
                f" {max(0.0, -most.difference):.4f} of {self.measure} ({most.run}), and falls by up to"
                f" {counted(places, 'place')}{by}: so much a run of such a kind that was not pooled may be undervalued."
                " Runs of another kind may lose more."
            )
        if self.plans:
            said += [f"{name}: {plan.sentence}" for name, plan in self.plans.plans.items()]
        if self.agreement:
            said += [self.agreement.alpha.sentence, *(effect.sentence for effect in self.agreement.systems)]
        if self.seconds is not None and self.hours is not None:
            said.append(f"A label took {self.seconds:.0f} seconds in the median; all together {self.hours:.1f} hours.")
        return tuple(said)


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
    """Say what a test collection can tell: how far judgments reach, to whom they are fair, and what it can detect.

    Parameters
    ----------
    qrels, runs
        As for `evaluate`; the runs are those that were pooled.
    measure
        By which runs are compared.
    cutoff
        Of the documents of each run that should be judged.
    pool_depth, groups
        As for `leave_one_out`.
    labels
        Who gave the judgments, for the noise of judges and the time that labels take: what `Labels.of` takes.

    Returns
    -------
    Collection

    Raises
    ------
    InputError
        If something cannot be read, or a run has no ranking.

    Examples
    --------
    >>> runs = {"one": {"q": {"a": 2.0, "c": 1.0}}, "two": {"q": {"b": 2.0, "c": 1.0}}}
    >>> found = check_collection({"q": {"a": 1, "b": 1}, "r": {"c": 0}}, runs, measure="P@1", cutoff=2, pool_depth=1)
    >>> found.judged_share, found.without_relevant, [row.full_depth for row in found.coverage]
    (0.5, ('r',), [1, 1])
    """
    if cutoff < 1:
        raise InputError(f"the cutoff {cutoff} makes no sense", fix="give a whole number from 1")
    qrels, given, measure = Qrels.of(qrels), runs_of(runs), parse(measure)
    named = {run.name: run for run in given}
    lists = {name: judge(qrels, run) for name, run in named.items()}
    coverage: list[RunCoverage] = []
    for name, one in lists.items():
        shown = np.minimum(one.returned, cutoff)
        inside = np.bincount(one.topic[one.rank <= cutoff], minlength=len(one))
        place = np.arange(len(one.topic)) - one.starts[one.topic] + 1
        whole = np.bincount(one.topic[one.rank == place], minlength=len(one))
        short = whole < one.returned
        depth = int(whole[short].min()) if short.any() else int(one.returned.max(initial=0))
        share = float((inside[shown > 0] / shown[shown > 0]).mean()) if shown.any() else 0.0
        coverage.append(RunCoverage(name, share, depth, int((shown - inside).sum())))
    relevant = np.bincount(qrels.index.topic[qrels.index.grade > 0], minlength=len(qrels.topics))
    without = tuple(topic for topic, count in zip(qrels.topics, relevant.tolist(), strict=True) if not count)
    several = len({(groups or {}).get(name, name) for name in named}) > 1
    pool = leave_one_out(qrels, named, measure, pool_depth=pool_depth, groups=groups) if several else None
    mean = len(named) > 1 and measure.entry.aggregate == "mean"
    plans = power_of_scores(score_lists([*lists.values()], (measure,))) if mean else None
    agreement, seconds, hours = None, None, None
    if labels is not None:
        graded = Labels.of(labels).graded
        took = graded["seconds"].drop_null().to_numpy()
        seconds, hours = (float(np.median(took)), float(took.sum()) / 3600) if len(took) else (None, None)
        first = graded.filter(pc.equal(graded["repeat"], 0))
        columns = {"query_id": "query_id", "doc_id": "doc_id", "grade": "relevance"}
        by_judge = {
            judge_: Qrels.of(first.filter(pc.equal(first["judge"], judge_)).select([*columns]).rename_columns(columns))
            for judge_ in first["judge"].unique().to_pylist()
        }
        agreement = agree(by_judge, runs=named, measures=(measure,)) if len(by_judge) > 1 else None
    notes = (*origin_notes(qrels.origin), *(() if pool is None else pool.notes))
    about = str(measure), len(qrels.topics), len(qrels.index.topic), without, cutoff, tuple(coverage)
    return Collection(*about, pool, plans, agreement, seconds, hours, notes)
