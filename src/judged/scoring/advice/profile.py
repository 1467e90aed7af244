"""Profile of judgments and runs, which the rules of advice use."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError
from judged.scoring.evaluation.facts import check_common_topics
from judged.scoring.judging import judge
from judged.scoring.measures.gain import gains
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import Gain

_RUN_FIELDS = ("judged_10", "judged_100", "tied_10", "missing", "returned.median")
_DEPTHS: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 500, 1000)
_MIN_JUDGED_SHARE = 0.8  # of the top-k documents, for the judged depth
_FOUR_LEVELS = (1.0, 2.0, 3.0)
_MAX_WITHOUT_RELEVANT = 0.1  # share of topics that may lose all their relevant documents by the higher `rel`


@dataclass(frozen=True)
class CountSummary:
    """Minimum, median, and maximum of a count over topics.

    >>> print(CountSummary.of([1, 2, 9]), "/", CountSummary.of([1, 1]))
    median 2, from 1 to 9 / always 1
    """

    least: int
    median: float
    most: int

    @classmethod
    def of(cls, counts: Sequence[float] | Floats | Ints) -> CountSummary:
        """Create the summary of these counts; all zeros if there are none."""
        if not len(counts):
            return cls(0, 0.0, 0)
        return cls(int(np.min(counts)), float(np.median(counts)), int(np.max(counts)))

    def __str__(self) -> str:
        if self.least == self.most:
            return f"always {self.least:,}"
        return f"median {self.median:,g}, from {self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class RunProfile:
    """Profile of one run."""

    name: str
    path: str
    ranked: bool  # whether it has scores; otherwise it is a set, and the shares below are 0
    missing: int  # topics of the qrels without results
    returned: CountSummary  # documents per topic, over topics with results
    # judged_10, judged_100: mean share of judged documents in the top 10 and top 100, over all topics of the qrels
    judged_10: float
    judged_100: float
    # deepest of the cutoffs 5, 10, 20, 50, ..., 1000, limited to the longest list, at which 80% of the documents are
    # judged; 0 if there is none
    judged_depth: int
    tied_10: float  # share of the judged top-10 documents whose score equals that of another document of the topic


@dataclass(frozen=True)
class Profile:
    """Facts about judgments and runs. A pair with several judgments counts once, with its highest grade."""

    n: int  # topics
    judgments: int  # number of judged pairs
    grades: tuple[float, ...]  # distinct grades in ascending order
    rel: float  # lowest relevant grade, for binary measures
    has_explicit_rel: bool  # whether the caller set it
    # relevant, judged: documents per topic
    relevant: CountSummary
    judged: CountSummary
    # without_relevant, one_relevant: topics with no relevant document and with exactly one
    without_relevant: int
    one_relevant: int
    # under_10, over_10, over_100: topics with 1 to 9, more than 10, and more than 100 relevant documents
    under_10: int
    over_10: int
    over_100: int
    # best_p10, best_r10, best_r100: mean P@10, R@10, and R@100 of the ideal ranking
    best_p10: float
    best_r10: float
    best_r100: float
    below_rel: int  # topics with a positive grade, but none of `rel` or above
    without_nonrelevant: int  # topics with relevant documents and no document judged not relevant
    # not_relevant, negative: pairs with 0 <= grade < `rel`, and with grade < 0
    not_relevant: int
    negative: int
    lowest_grade_share: float  # share of documents with the lowest positive grade among those with a positive grade
    without_highest_grade: int  # topics with a positive grade, but without the highest grade of the collection
    labels: str  # meaning of the iterations, guessed: subtopics, assessors, preferences, rounds, or empty
    # iterations, repeated: distinct iterations, and pairs with judgments in several iterations
    iterations: int
    repeated: int
    runs: tuple[RunProfile, ...] = ()

    @property
    def positive(self) -> tuple[float, ...]:
        """Grades above 0 in ascending order."""
        return tuple(grade for grade in self.grades if grade > 0)

    @property
    def gain_ratio(self) -> dict[Gain, float]:
        """Gain of the highest grade divided by that of the lowest positive grade, by gain function."""
        limits = np.array([self.positive[0], self.positive[-1]])
        gains_by_name: dict[Gain, Floats] = {"linear": gains(limits, "linear"), "exp2": gains(limits, "exp2")}
        return {name: float(highest / lowest) for name, (lowest, highest) in gains_by_name.items()}

    @property
    def with_relevant(self) -> int:
        """Number of topics with a relevant document."""
        return self.n - self.without_relevant

    @property
    def ranked_runs(self) -> tuple[RunProfile, ...]:
        """Runs with scores."""
        return tuple(run for run in self.runs if run.ranked)

    @property
    def set_runs(self) -> tuple[RunProfile, ...]:
        """Runs without scores."""
        return tuple(run for run in self.runs if not run.ranked)

    @property
    def incomplete_runs(self) -> tuple[RunProfile, ...]:
        """Runs without results for some topic."""
        return tuple(run for run in self.runs if run.missing)

    @property
    def max_list_length(self) -> int | None:
        """Number of documents in the longest list of all runs; None without runs."""
        return max((run.returned.most for run in self.runs), default=None)

    @property
    def judged_depth(self) -> int:
        """Deepest cutoff at which 80% of the documents of every run are judged."""
        return min((run.judged_depth for run in self.runs), default=0)

    @property
    def min_run(self) -> dict[str, RunProfile]:
        """Run with the smallest value, by field."""
        return {name: min(self.runs, key=attrgetter(name)) for name in _RUN_FIELDS}

    @property
    def max_run(self) -> dict[str, RunProfile]:
        """Run with the largest value, by field."""
        return {name: max(self.runs, key=attrgetter(name)) for name in _RUN_FIELDS}


def build_profile(qrels: Any, runs: Iterable[Run | Judged] = (), *, rel: float | None = None) -> Profile:
    """Compute the profile of judgments and of runs, which may be judged already.

    Parameters
    ----------
    qrels
        Judgments, as in `evaluate`.
    runs
        Runs, judged or not.
    rel
        Lowest relevant grade. None: 1.

    Raises
    ------
    InputError
        If the judgments are empty or cannot be read.

    Examples
    --------
    >>> profile = build_profile({"q1": {"a": 2, "b": 0}, "q2": {"c": 1}})
    >>> profile.n, profile.positive, profile.rel, str(profile.relevant)
    (2, (1.0, 2.0), 1.0, 'always 1')
    """
    qrels = Qrels.of(qrels)
    if rel is not None and not 0 < rel < np.inf:
        raise InputError(f"`rel` must be a finite grade above 0, got {rel:g}", fix="use --rel 1")
    hits = judge(qrels, {})  # an empty run: only the judgments matter here
    highest = float(hits.label_grade.max(initial=0.0))
    if rel is not None and rel > max(highest, 0.0):
        raise InputError(f"`rel` must be at most the highest grade {highest:g}, got {rel:g}", fix="use a lower grade")
    has_explicit_rel, rel = rel is not None, _default_rel(hits) if rel is None else float(rel)
    relevant, judged = hits.num_relevant(rel), hits.sum_labels(np.ones(len(hits.label_grade), dtype=np.bool_))
    not_relevant = (hits.label_grade >= 0) & ~hits.relevant_labels(rel)
    is_positive = hits.label_grade > 0
    best_grade = np.zeros(len(hits))
    np.maximum.at(best_grade, hits.label_topic, hits.label_grade)
    positive = hits.label_grade[is_positive]
    iterations, repeated = qrels.aspects.names, _count(np.diff(qrels.aspects.starts) > 1)
    return Profile(
        n=len(hits),
        judgments=len(qrels),
        grades=tuple(np.unique(hits.label_grade).tolist()),
        rel=rel,
        has_explicit_rel=has_explicit_rel,
        relevant=CountSummary.of(relevant),
        judged=CountSummary.of(judged),
        without_relevant=_count(relevant == 0),
        one_relevant=_count(relevant == 1),
        under_10=_count((relevant > 0) & (relevant < 10)),
        over_10=_count(relevant > 10),
        over_100=_count(relevant > 100),
        best_p10=_mean("P@10", hits.ideal, rel),
        best_r10=_mean("R@10", hits.ideal, rel),
        best_r100=_mean("R@100", hits.ideal, rel),
        below_rel=_count((best_grade > 0) & (relevant == 0)),
        without_nonrelevant=_count((relevant > 0) & (hits.sum_labels(not_relevant) == 0)),
        not_relevant=_count(not_relevant),
        negative=_count(hits.label_grade < 0),
        lowest_grade_share=float(np.mean(positive == positive.min())) if len(positive) else 0.0,
        without_highest_grade=_count((best_grade > 0) & (best_grade < best_grade.max())),
        labels=_iteration_kind(iterations, repeated),
        iterations=len(iterations),
        repeated=repeated,
        runs=tuple(_run_profile(qrels, run) for run in runs),
    )


def _default_rel(hits: Judged) -> float:
    # With grades 0 to 3, TREC's passage tracks count grade 2 and above: grade 1 is "related", not an answer.
    positive = np.unique(hits.label_grade[hits.label_grade > 0])
    if not len(positive):
        return 1.0
    if tuple(positive.tolist()) == _FOUR_LEVELS:
        is_without_relevant = (hits.num_relevant(1.0) > 0) & (hits.num_relevant(2.0) == 0)
        return 2.0 if np.mean(is_without_relevant) <= _MAX_WITHOUT_RELEVANT else 1.0
    return 1.0 if positive[-1] >= 1 else float(positive[0])


def _mean(measure: str, judged: Judged, rel: float) -> float:
    return float(np.mean(parse(measure).replace(rel=rel)(judged)))


def _count(mask: Bools) -> int:
    return int(np.count_nonzero(mask))


def _iteration_kind(names: Sequence[str], repeated: int) -> str:
    # The file does not state the meaning of the iteration column: guess it from the names.
    if len(names) < 2:
        return ""
    if not repeated:
        return "rounds"
    if all(" " in name for name in names):  # the reader of preferences writes "user subgroup"
        return "preferences"
    return "subtopics" if all(name.isdecimal() for name in names) else "assessors"


def _run_profile(qrels: Qrels, run: Run | Judged) -> RunProfile:
    judged = judge(qrels, run) if isinstance(run, Run) else run
    check_common_topics(judged)
    returned = judged.returned[judged.returned > 0]
    shares = dict.fromkeys(_DEPTHS, 0.0)
    if judged.ranked:  # over all topics of the qrels, as in `evaluate`
        shares = {depth: float(np.mean(parse(f"Judged@{depth}")(judged))) for depth in _DEPTHS}
    judged_depths = list(takewhile(lambda depth: shares[depth] >= _MIN_JUDGED_SHARE, _DEPTHS))
    top_10 = judged.within(10)
    tied = (judged.tie_last > judged.tie_first)[top_10]
    return RunProfile(
        name=judged.run.name,
        path=judged.run.where,
        ranked=judged.ranked,
        missing=len(judged) - len(returned),
        returned=CountSummary.of(returned),
        judged_10=shares[10],
        judged_100=shares[100],
        judged_depth=min(max(judged_depths, default=0), int(returned.max())),
        tied_10=float(np.mean(tied)) if judged.ranked and len(tied) else 0.0,
    )
