"""The facts about judgments and runs that advice rests on."""

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

_COMPARED = ("judged_10", "judged_100", "tied_10", "missing", "returned.median")
_DEPTHS: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 500, 1000)
_WELL_JUDGED = 0.8  # of the first k: as deep as that the judgments go
_FOUR_LEVELS = (1.0, 2.0, 3.0)
_MOST_BARREN = 0.1  # of the topics may lose all their relevant documents to the higher grade


@dataclass(frozen=True)
class Spread:
    """How a count differs from topic to topic.

    >>> print(Spread.of([1, 2, 9]), "/", Spread.of([1, 1]))
    median 2, from 1 to 9 / always 1
    """

    least: int
    median: float
    most: int

    @classmethod
    def of(cls, counts: Sequence[float] | Floats | Ints) -> Spread:
        """Summarise the counts; zeros for none."""
        if not len(counts):
            return cls(0, 0.0, 0)
        return cls(int(np.min(counts)), float(np.median(counts)), int(np.max(counts)))

    def __str__(self) -> str:
        if self.least == self.most:
            return f"always {self.least:,}"
        return f"median {self.median:,g}, from {self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class RunProfile:
    """The facts about one run."""

    # name, path: how it is called, and where it comes from
    name: str
    path: str
    ranked: bool  # whether it has scores; if not it is a set, and the shares below are 0
    missing: int  # for how many topics of the qrels it returned nothing
    returned: Spread  # documents returned, over the topics for which there are any
    # judged_10, judged_100: mean share of the first 10 and 100 that have a judgment, over all topics of the qrels
    judged_10: float
    judged_100: float
    # down to which of the ranks 5, 10, 20, 50, ..., 1000, or the end of the longest list, at least 80% of the ranking
    # is judged; 0 for none
    judged_depth: int
    tied_10: float  # share of the judged documents of the first 10 whose score another document of the topic has too


@dataclass(frozen=True)
class Profile:
    """The facts that the rules look at. Counts are of judged pairs, the highest grade where one has several."""

    n: int  # how many there are
    judgments: int  # how many there are
    grades: tuple[float, ...]  # the distinct grades, rising
    rel: float  # the grade from which a document is relevant to the measures that ask for relevant or not
    rel_given: bool  # whether the caller chose that grade
    # relevant, judged: relevant and judged documents a topic
    relevant: Spread
    judged: Spread
    # barren, single: topics with no relevant document, and with exactly one
    barren: int
    single: int
    # under_10, over_10, over_100: topics with 1 to 9 relevant documents, with more than 10, with more than 100
    under_10: int
    over_10: int
    over_100: int
    # best_p10, best_r10, best_r100: what P@10, R@10 and R@100 of the best possible ranking come to, as means over the
    # topics
    best_p10: float
    best_r10: float
    best_r100: float
    lost: int  # topics that have a document of some grade above 0, and none that reaches `rel`
    one_sided: int  # topics that have relevant documents and none judged not relevant
    # not_relevant, negative: pairs of a grade from 0 up to `rel`, and of a grade below 0
    not_relevant: int
    negative: int
    weakest: float  # share of the documents above grade 0 that have the lowest such grade
    below_best: int  # topics with something above grade 0, and nothing of the highest grade of all
    labels: str  # what the iterations of the qrels seem to be: subtopics, assessors, preferences, rounds, or nothing
    # iterations, repeated: distinct iterations, and pairs that several of them judge
    iterations: int
    repeated: int
    runs: tuple[RunProfile, ...] = ()  # the facts about each run

    @property
    def positive(self) -> tuple[float, ...]:
        """The grades above 0, rising."""
        return tuple(grade for grade in self.grades if grade > 0)

    @property
    def worth(self) -> dict[Gain, float]:
        """How many documents of the lowest grade above 0 one of the highest is worth, by how grades become gains."""
        ends = np.array([self.positive[0], self.positive[-1]])
        worths: dict[Gain, Floats] = {"linear": gains(ends, "linear"), "exp2": gains(ends, "exp2")}
        return {gain: float(most / least) for gain, (least, most) in worths.items()}

    @property
    def with_relevant(self) -> int:
        """How many topics have a relevant document."""
        return self.n - self.barren

    @property
    def ranked(self) -> tuple[RunProfile, ...]:
        """The runs that have scores."""
        return tuple(run for run in self.runs if run.ranked)

    @property
    def sets(self) -> tuple[RunProfile, ...]:
        """The runs that have none."""
        return tuple(run for run in self.runs if not run.ranked)

    @property
    def lacking(self) -> tuple[RunProfile, ...]:
        """The runs that lack topics."""
        return tuple(run for run in self.runs if run.missing)

    @property
    def longest(self) -> int | None:
        """How many documents the longest list of all runs holds; None without runs."""
        return max((run.returned.most for run in self.runs), default=None)

    @property
    def judged_depth(self) -> int:
        """Down to which rank the lists of every run are judged to 80% at least."""
        return min((run.judged_depth for run in self.runs), default=0)

    @property
    def least(self) -> dict[str, RunProfile]:
        """The run that has least of each of these fields."""
        return {name: min(self.runs, key=attrgetter(name)) for name in _COMPARED}

    @property
    def most(self) -> dict[str, RunProfile]:
        """The run that has most of each of these fields."""
        return {name: max(self.runs, key=attrgetter(name)) for name in _COMPARED}


def profile_of(qrels: Any, runs: Iterable[Run | Judged] = (), *, rel: float | None = None) -> Profile:
    """Collect the facts about judgments and runs, or lists that are judged already.

    >>> facts = profile_of({"q1": {"a": 2, "b": 0}, "q2": {"c": 1}})
    >>> facts.n, facts.positive, facts.rel, str(facts.relevant)
    (2, (1.0, 2.0), 1.0, 'always 1')
    """
    qrels = Qrels.of(qrels)
    if rel is not None and not 0 < rel < np.inf:
        raise InputError(f"the lowest relevant grade {rel} makes no sense", fix="give a grade above 0")
    known = judge(qrels, {})  # an empty run: what there is to find
    highest = float(known.label_grade.max(initial=0.0))
    if rel is not None and rel > max(highest, 0.0):
        raise InputError(f"no grade reaches {rel:g}", fix=f"the highest is {highest:g}")
    given, rel = rel is not None, _lowest_relevant(known) if rel is None else float(rel)
    relevant, judged = known.num_relevant(rel), known.sum_labels(np.ones(len(known.label_grade), dtype=np.bool_))
    not_relevant = (known.label_grade >= 0) & ~known.relevant_labels(rel)
    above = known.label_grade > 0
    best = np.zeros(len(known))
    np.maximum.at(best, known.label_topic, known.label_grade)
    positive = known.label_grade[above]
    names, repeated = qrels.aspects.names, _count(np.diff(qrels.aspects.starts) > 1)
    return Profile(
        n=len(known),
        judgments=len(qrels),
        grades=tuple(np.unique(known.label_grade).tolist()),
        rel=rel,
        rel_given=given,
        relevant=Spread.of(relevant),
        judged=Spread.of(judged),
        barren=_count(relevant == 0),
        single=_count(relevant == 1),
        under_10=_count((relevant > 0) & (relevant < 10)),
        over_10=_count(relevant > 10),
        over_100=_count(relevant > 100),
        best_p10=_mean("P@10", known.ideal, rel),
        best_r10=_mean("R@10", known.ideal, rel),
        best_r100=_mean("R@100", known.ideal, rel),
        lost=_count((best > 0) & (relevant == 0)),
        one_sided=_count((relevant > 0) & (known.sum_labels(not_relevant) == 0)),
        not_relevant=_count(not_relevant),
        negative=_count(known.label_grade < 0),
        weakest=float(np.mean(positive == positive.min())) if len(positive) else 0.0,
        below_best=_count((best > 0) & (best < best.max())),
        labels=_labels(names, repeated),
        iterations=len(names),
        repeated=repeated,
        runs=tuple(_run_profile(qrels, run) for run in runs),
    )


def _lowest_relevant(known: Judged) -> float:
    """Choose the grade from which a document is relevant, where the caller did not."""
    positive = np.unique(known.label_grade[known.label_grade > 0])
    if not len(positive):
        return 1.0
    if tuple(positive.tolist()) == _FOUR_LEVELS:
        lost = (known.num_relevant(1.0) > 0) & (known.num_relevant(2.0) == 0)
        return 2.0 if np.mean(lost) <= _MOST_BARREN else 1.0
    return 1.0 if positive[-1] >= 1 else float(positive[0])


def _mean(measure: str, judged: Judged, rel: float) -> float:
    return float(np.mean(parse(measure).replace(rel=rel)(judged)))


def _count(which: Bools) -> int:
    return int(np.count_nonzero(which))


def _labels(names: Sequence[str], repeated: int) -> str:
    """Guess what the iterations are: the file does not say."""
    if len(names) < 2:
        return ""
    if not repeated:
        return "rounds"
    if all(" " in name for name in names):  # user and subgroup, as the reader of preferences writes them
        return "preferences"
    return "subtopics" if all(name.isdecimal() for name in names) else "assessors"


def _run_profile(qrels: Qrels, run: Run | Judged) -> RunProfile:
    judged = judge(qrels, run) if isinstance(run, Run) else run
    check_common_topics(judged)
    returned = judged.returned[judged.returned > 0]
    shares = dict.fromkeys(_DEPTHS, 0.0)
    if judged.ranked:  # over all topics, as evaluate has it
        shares = {depth: float(np.mean(parse(f"Judged@{depth}")(judged))) for depth in _DEPTHS}
    reached = list(takewhile(lambda depth: shares[depth] >= _WELL_JUDGED, _DEPTHS))
    first = judged.within(10)
    tied = (judged.tie_last > judged.tie_first)[first]
    return RunProfile(
        name=judged.run.name,
        path=judged.run.where,
        ranked=judged.ranked,
        missing=len(judged) - len(returned),
        returned=Spread.of(returned),
        judged_10=shares[10],
        judged_100=shares[100],
        judged_depth=min(max(reached, default=0), int(returned.max())),
        tied_10=float(np.mean(tied)) if judged.ranked and len(tied) else 0.0,
    )
