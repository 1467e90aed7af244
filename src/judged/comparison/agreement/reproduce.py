"""`reproduce`: how close the run of a rebuilt system comes to the original."""

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
    """How close the scores by one measure are."""

    measure: str
    original: float  # the means over the topics
    again: float  # the means over the topics
    rmse: float  # root mean square error of the topic scores
    p: float  # of a paired t-test
    # effect_ratio, delta_relative_improvement: how much of the improvement over a baseline came back; None without
    # baselines
    effect_ratio: float | None
    delta_relative_improvement: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Reproduction(Answer, ReadOnly):
    """How close a run comes to the one that it reproduces (Breuer et al. 2020).

    Attributes
    ----------
    original, again : str
        The names of the runs.
    query_ids : tuple of T str
        The topics that both have; NaN below where a ranking is too short.
    tau, overlap, rbo : (T,) float64
        For each topic: Kendall's tau of the union, the share of the first documents in common, and RBO.
    cutoff : int
        How many documents count for tau and overlap.
    rbo_p : float
        The persistence of RBO.
    scores : tuple of Closeness
    """

    kind: ClassVar[str] = "reproduction"

    original: str
    again: str
    query_ids: tuple[str, ...]
    tau: Floats
    overlap: Floats
    rbo: Floats
    cutoff: int
    rbo_p: float
    scores: tuple[Closeness, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found."""
        said = (
            f"{self.again} and {self.original} share {percent(_mean(self.overlap))} of their first {self.cutoff}"
            f" documents over {len(self.query_ids)} topics; RBO (p = {self.rbo_p:g}) is {decimal(_mean(self.rbo), 3)},"
            f" tau of the union {decimal(_mean(self.tau), 3)}. A large p-value does not show that the"
            " scores are the same."
        )
        return (said,)

    def facts(self) -> dict[str, Any]:
        """Give the names of the runs, the options, and the means over topics."""
        names = {"original": self.original, "again": self.again, "cutoff": self.cutoff, "rbo_p": self.rbo_p}
        return {**names, "means": {name: _mean(getattr(self, name)) for name in ("tau", "overlap", "rbo")}}

    def blocks(self) -> tuple[Block, ...]:
        """Give a row per measure, and what may be concluded; and for data a row per topic."""
        numbers = [Column(name, getattr(self, name).tolist(), NUMBER) for name in ("tau", "overlap", "rbo")]
        scores = columns_of(
            self.scores,
            ("measure", TEXT),
            *(("original", NUMBER), ("again", NUMBER), ("rmse", NUMBER, "RMSE"), ("p", P_VALUE)),
            *(("effect_ratio", NUMBER, "effect ratio"), ("delta_relative_improvement", NUMBER, "delta RI")),
        )
        topics = Table("topics", (Column("query_id", self.query_ids, TEXT), *numbers), only="data")
        return (Table("scores", scores), Sentences(self.sentences), topics)


def reproduce(
    qrels: Any,
    original: Any,
    again: Any,
    measures: Any = ("nDCG@10",),
    *,
    baseline: Any = None,
    baseline_again: Any = None,
    cutoff: int = 100,
    rbo_p: float = 0.8,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
) -> Reproduction:
    """Compare a run with the original that it was meant to reproduce, from documents to the overall effect.

    Parameters
    ----------
    qrels
        A `Qrels`, or anything that `Qrels.of` takes.
    original, again
        Each a `Run`, or anything that `Run.of` takes: of the original system, and of the rebuilt one.
    measures
        One or several.
    baseline, baseline_again
        The runs over which both are improvements, for the effect ratio; both or neither.
    cutoff
        How many documents of each topic count for tau and overlap.
    rbo_p
        The persistence of RBO, which knows ties (variant a).
    ties, depth, precision
        As for `judge`.

    Returns
    -------
    Reproduction

    Raises
    ------
    InputError
        If something cannot be read, the runs have no topic in common, or only one baseline is given.

    Examples
    --------
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    >>> original = {"q1": {"a": 3.0, "b": 2.0, "x": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
    >>> again = {"q1": {"a": 3.0, "b": 2.0, "y": 1.0}, "q2": {"d": 2.0, "c": 1.0}}
    >>> found = reproduce(qrels, original, again, "RR")
    >>> found.tau.tolist(), found.overlap.round(3).tolist()
    ([1.0, -1.0], [0.667, 1.0])
    >>> found.scores[0].again, round(found.scores[0].rmse, 4)
    (0.75, 0.3536)
    """
    if (baseline is None) != (baseline_again is None):
        raise InputError("only one baseline is given", fix="give that of the original and that of the reproduction")
    known, one, two = Qrels.of(qrels), Run.of(original, name="original"), Run.of(again, name="again")
    both = align(one, two, ties=ties, depth=depth, precision=precision)
    parts = map(both.rows, both.query_ids)
    rows = [part for part in parts if both.first[part].any() and both.second[part].any()]
    if not rows:
        raise InputError("the runs have no topic in common", fix="check that both use the same query ids")
    policies: dict[str, Any] = {"ties": ties, "depth": depth, "precision": precision}
    return Reproduction(
        original=one.name,
        again=two.name,
        query_ids=tuple(both.query_ids[int(both.topic[part.start])] for part in rows),
        tau=np.array([union_tau(both.first[part], both.second[part], cutoff) for part in rows]),
        overlap=np.array([overlap_at(both.first[part], both.second[part], cutoff) for part in rows]),
        rbo=np.array([rbo(both.first_tie[part], both.second_tie[part], rbo_p).value for part in rows]),
        cutoff=cutoff,
        rbo_p=rbo_p,
        scores=_closeness(known, [one, two, baseline, baseline_again], measures, policies),
    )


def _closeness(qrels: Qrels, runs: list[Any], measures: Any, policies: dict[str, Any]) -> tuple[Closeness, ...]:
    names = ("original", "again", "baseline", "baseline again")
    given = [Run(Run.of(run).rows, name) for name, run in zip(names, runs, strict=True) if run is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        found = evaluate(qrels, given, measures, **policies)
    made: list[Closeness] = []
    for at, measure in enumerate(found.measure_names):
        original, again, *baselines = found.values[:, at]
        error, p, gains = rmse(original, again), t_test_p(original, again), (None, None)
        if baselines:
            effect = (baselines[0], original, baselines[1], again)
            gains = effect_ratio(*effect), delta_relative_improvement(*effect)
        made.append(Closeness(measure, _mean(original), _mean(again), error, p, *gains))
    return tuple(made)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
