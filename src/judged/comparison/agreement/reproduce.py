"""`reproduce`: comparison of the run of a reproduced system with the original run."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, JudgedWarning
from judged.results import NUMBER, P_VALUE, TEXT, Answer, Column, Sentences, Table, columns_of
from judged.results.decimals import decimal, percent
from judged.results.types import ReadOnly
from judged.scoring.evaluation import evaluate
from judged.scoring.judging.align import align
from judged.stats.rank_biased_overlap import overlap_at, rbo, union_tau
from judged.stats.rankings import delta_relative_improvement, effect_ratio, rmse, t_test_p

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.types import Floats
    from judged.scoring.judging import Precision, TiePolicy


@dataclass(frozen=True)
class Closeness:
    """Closeness of the scores of two runs by one measure."""

    measure: str
    original: float  # mean over topics, as is `reproduced`
    reproduced: float
    rmse: float  # root mean square error over topics
    p: float  # paired t-test
    # both compare the improvements over baselines (Breuer et al. 2020); None without baselines
    effect_ratio: float | None
    delta_relative_improvement: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Reproduction(Answer, ReadOnly):
    """Closeness of a run to the run that it reproduces (Breuer et al. 2020).

    Attributes
    ----------
    original, reproduced : str
        Names of the runs.
    query_ids : tuple of T str
        Topics of both runs. The arrays below are NaN if a ranking is too short.
    tau, overlap, rbo : (T,) float64
        For each topic: Kendall's tau of the union, share of top documents in common, and RBO.
    cutoff : int
        Depth of tau and overlap.
    rbo_p : float
        Persistence of RBO.
    scores : tuple of Closeness
    """

    kind: ClassVar[str] = "reproduction"

    original: str
    reproduced: str
    query_ids: tuple[str, ...]
    tau: Floats
    overlap: Floats
    rbo: Floats
    cutoff: int
    rbo_p: float
    scores: tuple[Closeness, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Overlap, RBO, and tau in one sentence."""
        sentence = (
            f"{self.reproduced} and {self.original} share {percent(_mean(self.overlap))} of their top {self.cutoff}"
            f" documents on average over {len(self.query_ids)} topics; RBO (p = {self.rbo_p:g}) is"
            f" {decimal(_mean(self.rbo), 3)}, and tau of the union is"
            f" {decimal(_mean(self.tau), 3)}. A large p-value does"
            " not show that the scores are equal."
        )
        return (sentence,)

    def facts(self) -> dict[str, Any]:
        """Return the names of the runs, the options, and the means over topics."""
        names = {"original": self.original, "reproduced": self.reproduced, "cutoff": self.cutoff, "rbo_p": self.rbo_p}
        return {**names, "means": {name: _mean(getattr(self, name)) for name in ("tau", "overlap", "rbo")}}

    def blocks(self) -> tuple[Block, ...]:
        """Return a table of measures, the sentence, and a data table of topics."""
        numbers = [Column(name, getattr(self, name).tolist(), NUMBER) for name in ("tau", "overlap", "rbo")]
        scores = columns_of(
            self.scores,
            ("measure", TEXT),
            *(("original", NUMBER), ("reproduced", NUMBER), ("rmse", NUMBER, "RMSE"), ("p", P_VALUE)),
            *(("effect_ratio", NUMBER, "effect ratio"), ("delta_relative_improvement", NUMBER, "delta RI")),
        )
        topics = Table("topics", (Column("query_id", self.query_ids, TEXT), *numbers), only="data")
        return (Table("scores", scores), Sentences(self.sentences), topics)


def reproduce(
    qrels: Any,
    original: Any,
    reproduced: Any,
    measures: Any = ("nDCG@10",),
    *,
    baseline: Any = None,
    baseline_reproduced: Any = None,
    cutoff: int = 100,
    rbo_p: float = 0.8,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
) -> Reproduction:
    """Compare a run with the original run that it reproduces: documents, scores, and overall effect.

    Parameters
    ----------
    qrels
        A `Qrels`, or input of `Qrels.of`.
    original, reproduced
        Runs of the original and of the reproduced system: `Run`s, or input of `Run.of`.
    measures
        One or several measures.
    baseline, baseline_reproduced
        Baselines of both runs, for the effect ratio; both or neither.
    cutoff
        Depth of tau and overlap.
    rbo_p
        Persistence of RBO, which handles ties (variant a).
    ties, depth, precision
        As in `judge`.

    Returns
    -------
    Reproduction

    Raises
    ------
    InputError
        If input is invalid, the runs have no topic in common, or only one baseline is given.

    Examples
    --------
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    >>> original = {"q1": {"a": 3.0, "b": 2.0, "x": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
    >>> reproduced = {"q1": {"a": 3.0, "b": 2.0, "y": 1.0}, "q2": {"d": 2.0, "c": 1.0}}
    >>> result = reproduce(qrels, original, reproduced, "RR")
    >>> result.tau.tolist(), result.overlap.round(3).tolist()
    ([1.0, -1.0], [0.667, 1.0])
    >>> result.scores[0].reproduced, round(result.scores[0].rmse, 4)
    (0.75, 0.3536)
    """
    if (baseline is None) != (baseline_reproduced is None):
        raise InputError("two baselines are required, got 1", fix="pass baseline and baseline_reproduced")
    first, second = Run.of(original, name="original"), Run.of(reproduced, name="reproduced")
    aligned = align(first, second, ties=ties, depth=depth, precision=precision)
    # rankings are comparable only on topics that both runs returned
    topic_rows = [
        rows
        for rows in map(aligned.rows, aligned.query_ids)
        if aligned.first[rows].any() and aligned.second[rows].any()
    ]
    if not topic_rows:
        raise InputError("the runs have no topic in common", fix="use the same query ids in both runs")
    policies: dict[str, Any] = {"ties": ties, "depth": depth, "precision": precision}
    return Reproduction(
        original=first.name,
        reproduced=second.name,
        query_ids=tuple(aligned.query_ids[int(aligned.topic[rows.start])] for rows in topic_rows),
        tau=np.array([union_tau(aligned.first[rows], aligned.second[rows], cutoff) for rows in topic_rows]),
        overlap=np.array([overlap_at(aligned.first[rows], aligned.second[rows], cutoff) for rows in topic_rows]),
        rbo=np.array([rbo(aligned.first_tie[rows], aligned.second_tie[rows], rbo_p).value for rows in topic_rows]),
        cutoff=cutoff,
        rbo_p=rbo_p,
        scores=_compute_closeness(Qrels.of(qrels), [first, second, baseline, baseline_reproduced], measures, policies),
    )


def _compute_closeness(qrels: Qrels, runs: list[Any], measures: Any, policies: dict[str, Any]) -> tuple[Closeness, ...]:
    names = ("original", "reproduced", "baseline", "baseline reproduced")
    named_runs = [Run(Run.of(run).rows, name) for name, run in zip(names, runs, strict=True) if run is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        scores = evaluate(qrels, named_runs, measures, **policies)
    result: list[Closeness] = []
    for column, measure in enumerate(scores.measure_names):
        original, reproduced, *baselines = scores.values[:, column]
        error, p, gains = rmse(original, reproduced), t_test_p(original, reproduced), (None, None)
        if baselines:
            effect = (baselines[0], original, baselines[1], reproduced)
            # both compare the gain over the baseline, which may be right although single scores are off
            gains = effect_ratio(*effect), delta_relative_improvement(*effect)
        result.append(Closeness(measure, _mean(original), _mean(reproduced), error, p, *gains))
    return tuple(result)


def _mean(values: Floats) -> float:
    valid = values[~np.isnan(values)]
    return float(valid.mean()) if len(valid) else math.nan
