"""Judgments made of clicks against those of people: by slice, by rank, in what they say of systems, and their price."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.errors import InputError, JudgedWarning
from judged.labels.calibration import calibrate
from judged.labels.corrected_systems import rows_by_slice
from judged.online.clicks.judgments import ClickJudgments, human_grades
from judged.online.log import FieldAnswer
from judged.online.offline.concordance import pairs_of
from judged.results import CHANGE, COUNT, TEXT, Column, Sentences, Table, columns_of, counted, number
from judged.scoring.evaluation import runs_of
from judged.stats.inputs import check_share
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats, Ints

_Limits = tuple[float, float] | None
_THREE, _TWO = number(3), number(2)
_BANDS = ((1, 1), (2, 3), (4, 5), (6, 10), (11, math.inf))  # of mean ranks, rounded
_SOURCES = ("judgments", "clicks an impression", "rank alone")
_FEW = 10  # topics


class OrderAgreement(NamedTuple):
    """How often people and a source order two documents of one topic alike."""

    source: str
    slice: str  # empty for all topics
    n: int  # topics in which people gave different grades
    compared: int  # pairs of documents with different grades
    value: float  # the share that the source orders as people do; what it ties counts half
    ci: _Limits
    gain: float  # over clicks an impression
    gain_ci: _Limits


class AtRanks(NamedTuple):
    """What people and clicks say of what stood at some ranks."""

    ranks: str
    documents: int
    people: float  # mean grades
    judgments: float
    ctr: float  # clicks an impression


class FeedbackTest(NamedTuple):
    """Whether a source follows the logged rank beyond what people's grades explain."""

    source: str
    tau: float  # with the rank, within topics: above 0 where what stood higher has more
    partial: float  # the same with people's grades held fast
    ci: _Limits


@dataclass(frozen=True, eq=False, repr=False)
class ClickAgreement(FieldAnswer):
    """What `against_people` returns."""

    kind: ClassVar[str] = "click-agreement"
    answers: ClassVar[str] = "{log}: judgments made of clicks ({by}) against people's"
    asked: ClassVar[tuple[str, ...]] = (
        "log", "by", "level", "shared", "measure", "systems", "tau", "within_topics", "worth", "worth_ci",
        "clicks_a_label",
    )  # fmt: skip

    log: str
    by: str
    level: float
    shared: int
    orders: tuple[OrderAgreement, ...]
    ranks: tuple[AtRanks, ...]
    feedback: tuple[FeedbackTest, ...]
    measure: str
    systems: int
    tau: float  # of the order of systems
    within_topics: float  # of their topic scores, each less the topic's mean
    worth: float  # of the click judgments of the other topics, in topics that people judge
    worth_ci: _Limits
    clicks_a_label: float  # clicks that are worth one label by people; NaN where it is not shown that they are any
    notes: tuple[Note, ...] = field(default=())

    @property
    def sentences(self) -> tuple[str, ...]:
        """Whether clicks are nearer to people once debiased, whether position is still in them, and their price."""
        first, (own, raw, *_) = self.orders[0], self.feedback
        gain = "nothing is shown to be gained"
        if first.gain_ci is not None and (first.gain_ci[0] > 0 or first.gain_ci[1] < 0):
            gain = f"{abs(first.gain):.3f} {'more' if first.gain > 0 else 'less'}"
        pairs = counted(first.compared, "pair")
        share = f"{first.value:.3f} of {pairs} of documents that people grade differently"
        told = [f"The judgments order {share} as people do; against clicks an impression {gain}."]
        if own.ci is not None:
            still = (
                "Feedback failure: they" if own.ci[0] > 0 else "They" if own.ci[1] < 0 else "It is not shown that they"
            )
            way = "against" if own.ci[1] < 0 else "with"
            told.append(
                f"{still} go {way} the logged rank beyond what grades explain: partial tau {own.partial:+.3f}, of raw"
                f" clicks {raw.partial:+.3f}."
            )
        if self.systems > 1 and not math.isnan(self.tau):
            told.append(
                f"Over {counted(self.systems, 'system')} both orders by {self.measure} have a tau of {self.tau:.3f}."
            )
        if not math.isnan(self.clicks_a_label):
            told.append(
                f"{self.clicks_a_label:.0f} clicks are worth one label by people, for the means of these systems."
            )
        return tuple(told)

    def blocks(self) -> tuple[Block, ...]:
        """Give orders, ranks, and what is left of position."""
        sliced = any(row.slice for row in self.orders)
        gain, partial = [row.gain for row in self.orders], [row.partial for row in self.feedback]
        ends = [row.gain_ci for row in self.orders], [row.ci for row in self.feedback]
        orders = (
            *columns_of(self.orders, ("source", TEXT), ("slice", TEXT) if sliced else "slice", ("n", COUNT, "topics")),
            *columns_of(self.orders, ("compared", COUNT, "pairs"), ("value", _THREE, "ordered alike")),
            Column("gain", gain, CHANGE, "more than clicks an impression", ends[0]),
        )
        counts, means = (("ranks", TEXT), ("documents", COUNT)), (("people", _TWO), ("judgments", _TWO))
        ranks = columns_of(self.ranks, *counts, *means, ("ctr", _THREE, "clicks an impression"))
        feedback = (
            *columns_of(self.feedback, ("source", TEXT), ("tau", _THREE, "tau with the rank")),
            Column("partial", partial, _THREE, "with grades held fast", ends[1]),
        )
        return (
            Sentences(self.sentences),
            Table("orders", orders, "Order of documents", labels=2 if sliced else 1),
            Table("feedback", feedback, "What follows the logged rank"),
            Table("ranks", ranks, "By mean logged rank"),
        )


def against_people(
    judgments: ClickJudgments,
    gold: Any,
    runs: Any = (),
    measure: str = "nDCG@10",
    *,
    slicing: Any = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> ClickAgreement:
    """Set judgments that were made of clicks against those of people.

    Parameters
    ----------
    judgments
        What `judge_clicks` returned.
    gold
        People's judgments.
    runs, measure
        Systems, to be scored by both, and a mean over topics.
    slicing
        Slices of topics, or a table with the one attribute by which to slice.
    level, resamples, seed
        Of intervals: by a jackknife over topics, and for what clicks are worth by a bootstrap over topics.

    Raises
    ------
    InputError
        If no topic has two documents that were judged by both and that people graded differently.

    Notes
    -----
    ``orders`` compares documents of one topic only: the share of pairs with different grades that a source orders as
    people do. Beside it stand clicks an impression, which nothing was taken out of, and the logged rank alone. What
    `grading` ``people`` learned from the same grades orders documents as before.

    A *feedback failure* is a partial tau with the logged rank above 0: of two documents of one grade the one that was
    shown higher comes out better, after all debiasing. It may be that people's grades miss what the ranker knows: look
    at some before a log is thrown away.

    What clicks are worth is what `judged.labels.calibrate` finds on topics that people did not judge, in topics that
    they did; NaN without runs, or where that is not clear of 0.
    """
    check_share("level", level)
    people = Qrels.of(gold, name="people")
    known = human_grades(judgments.pairs, people)
    both = ~np.isnan(known)
    names, topic = np.unique(np.array(judgments.pairs["query_id"].to_pylist(), dtype=object)[both], return_inverse=True)
    values = judgments.values
    sources = (judgments.grade[both], (values.clicks / values.shown)[both], -values.rank[both])
    grade, topic = np.maximum(known[both], 0), topic.ravel()
    parts = [("", np.ones(len(topic), dtype=np.bool_))]
    if slicing is not None:
        parts += list(rows_by_slice(as_slicing(slicing), names.tolist(), topic))
    orders = [row for name, rows in parts for row in _orders(sources, grade, topic, rows, name, level)]
    if not orders or not orders[0].compared:
        problem = "no topic has two documents with clicks that people grade differently"
        raise InputError(problem, fix="check that both call topics and documents alike", path=people.where)
    given = runs_of(runs) if hasattr(runs, "__len__") and len(runs) else []
    systems: dict[str, Any] = {"tau": math.nan, "within_topics": math.nan, "worth": math.nan, "worth_ci": None}
    price, notes = math.nan, [*judgments.notes]
    if given:
        top = max(float(people.grades.max()), float(judgments.grade.max()))
        options: dict[str, Any] = {"highest": top, "level": level, "resamples": resamples, "seed": seed}
        with warnings.catch_warnings():  # of topics that a run lacks, once for each kind of judge
            warnings.simplefilter("ignore", JudgedWarning)
            found = calibrate(people, {judgments.by: judgments.qrels}, given, measure, **options)
        (own,) = found.judges
        systems = {name: getattr(own, name) for name in systems}
        notes += found.notes
        if own.worth_ci is not None and own.worth_ci[0] > 0:
            others = np.isnan(known) & ~np.isin(judgments.pairs["query_id"].to_pylist(), people.topics)
            labels = own.worth * len(people) / len(people.topics)
            price = float(values.clicks[others].sum()) / labels
    return ClickAgreement(
        judgments.log, judgments.by, level, int(both.sum()), tuple(orders),
        tuple(_by_rank(judgments, known, both)), tuple(_feedback(sources, grade, topic, level)), measure, len(given),
        **systems, clicks_a_label=price, notes=tuple(notes),
    )  # fmt: skip


def _sums(first: Floats, second: Floats, topic: Ints) -> Floats:
    """Count pairs of one topic: in one order or the other, differing in the first, in the second: (T, 3)."""
    pairs = pairs_of(first, second, topic)
    counts = (pairs.net, pairs.first, pairs.second)
    return np.stack([np.bincount(topic, count) for count in counts], axis=1).astype(np.float64)


def _jackknife(sums: Floats, statistic: Callable[[Floats], Floats], level: float) -> tuple[float, _Limits]:
    """Give a statistic of sums over topics, (T, ...) to (...), with its interval by leaving out one topic each."""
    value = float(statistic(sums.sum(axis=0)[None])[0])
    n = len(sums)
    if n < _FEW:
        return value, None
    left = statistic(sums.sum(axis=0) - sums)
    error = math.sqrt((n - 1) / n * float(((left - left.mean()) ** 2).sum()))
    half = error * student_quantile((1 + level) / 2, n - 1)
    return value, None if math.isnan(half) else (value - half, value + half)


def _alike(sums: Floats) -> Floats:
    """Give the share of pairs in the same order: (N, ..., 3) to (N, ...)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return 0.5 + sums[..., 0] / sums[..., 2] / 2


def _orders(
    sources: tuple[Floats, ...], grade: Floats, topic: Ints, rows: Bools, name: str, level: float
) -> Iterator[OrderAgreement]:
    """Compare orders on some rows."""
    _, own = np.unique(topic[rows], return_inverse=True)
    sums = np.stack([_sums(source[rows], grade[rows], own.ravel()) for source in sources], axis=1)
    sums = sums[sums[:, 0, 2] > 0]  # topics in which grades differ
    for at, source in enumerate(_SOURCES):
        share, ci = _jackknife(sums[:, at], _alike, level)
        gain, gain_ci = _jackknife(
            sums, lambda all_sums, at=at: _alike(all_sums)[:, at] - _alike(all_sums)[:, 1], level
        )
        yield OrderAgreement(
            source, name, len(sums), int(sums[:, at, 2].sum()) // 2, share, ci, gain, None if at == 1 else gain_ci
        )


def _by_rank(judgments: ClickJudgments, known: Floats, both: Bools) -> Iterator[AtRanks]:
    """Average over bands of mean logged ranks."""
    values, rank = judgments.values, np.round(judgments.values.rank)
    for low, high in _BANDS:
        rows = both & (rank >= low) & (rank <= high)
        if rows.any():
            name = f"{low}" if low == high else f"{low} and below" if math.isinf(high) else f"{low} to {high}"
            ctr = float(values.clicks[rows].sum() / values.shown[rows].sum())
            grades = float(np.maximum(known[rows], 0).mean()), float(judgments.grade[rows].mean())
            yield AtRanks(name, int(rows.sum()), *grades, ctr)


def _feedback(sources: tuple[Floats, ...], grade: Floats, topic: Ints, level: float) -> Iterator[FeedbackTest]:
    """Correlate with the logged rank, and with grades held fast (Kendall's partial tau, within topics)."""
    high = sources[2]
    with_grade = _sums(high, grade, topic)

    def tau(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])

    def partial(sums: Floats) -> Floats:
        of_rank, of_grade, between = (tau(sums[:, at]) for at in range(3))
        with np.errstate(invalid="ignore", divide="ignore"):
            return (of_rank - of_grade * between) / np.sqrt((1 - of_grade**2) * (1 - between**2))

    for source, values in zip(_SOURCES[:2], sources, strict=False):
        sums = np.stack([_sums(values, high, topic), _sums(values, grade, topic), with_grade], axis=1)
        yield FeedbackTest(source, float(tau(sums[:, 0].sum(axis=0))), *_jackknife(sums, partial, level))
