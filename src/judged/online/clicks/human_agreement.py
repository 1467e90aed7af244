"""Agreement of click judgments with human judgments: document order, ranks, system order, and value."""

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
from judged.online.offline.concordance import count_pairs
from judged.results import CHANGE, COUNT, TEXT, Axis, Column, Headline, Sentences, Table, columns_of, counted, number
from judged.scoring.evaluation import runs_of
from judged.stats.inputs import check_share
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.headline import Status
    from judged.results.types import Bools, Floats, Ints

_Interval = tuple[float, float] | None
_THREE, _TWO = number(3), number(2)
_RANK_BANDS = ((1, 1), (2, 3), (4, 5), (6, 10), (11, math.inf))  # of rounded mean ranks
_SOURCES = ("click judgments", "click-through rate", "logged rank")
_MIN_TOPICS = 10  # for an interval


class DocumentOrderAgreement(NamedTuple):
    """Share of document pairs that people and a source order the same way."""

    source: str
    slice: str  # empty for all topics
    n: int  # topics with different human grades
    document_pairs: int  # pairs of documents with different grades
    value: float  # concordant share; ties of the source count half
    ci: _Interval
    gain: float  # over the click-through rate
    gain_ci: _Interval

    @property
    def status(self) -> Status:
        """Whether the source agrees with people significantly more (``better``) or less often than CTR."""
        if self.gain_ci is None:
            return "unknown"
        return "better" if self.gain_ci[0] > 0 else "worse" if self.gain_ci[1] < 0 else "same"


class RankBand(NamedTuple):
    """Mean grades and click-through rate of documents in a range of ranks."""

    ranks: str
    documents: int
    human_grade: float  # mean
    click_grade: float  # mean
    ctr: float


class FeedbackTest(NamedTuple):
    """Correlation of a source with the logged rank, and its part beyond human grades."""

    source: str
    tau: float  # within topics; positive if higher ranks have higher values
    partial: float  # partial tau, given human grades
    ci: _Interval

    @property
    def is_failure(self) -> bool:
        """Whether the partial tau is significantly positive."""
        return self.ci is not None and self.ci[0] > 0


@dataclass(frozen=True, eq=False, repr=False)
class ClickAgreement(FieldAnswer):
    """Result of `against_people`."""

    kind: ClassVar[str] = "click-agreement"
    title_format: ClassVar[str] = "Click judgments ({by}) and human judgments: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = (
        "log", "by", "level", "shared_pairs", "measure", "systems", "tau", "within_topics", "worth", "worth_ci",
        "clicks_per_label",
    )  # fmt: skip

    log: str
    by: str
    level: float
    shared_pairs: int
    orders: tuple[DocumentOrderAgreement, ...]
    ranks: tuple[RankBand, ...]
    feedback: tuple[FeedbackTest, ...]
    measure: str
    systems: int
    tau: float  # of the order of systems
    within_topics: float  # tau of topic scores minus the mean of the topic
    worth: float  # value of click judgments of other topics, in human-judged topics
    worth_ci: _Interval
    clicks_per_label: float  # clicks that replace one human label; NaN if the value is not significant
    notes: tuple[Note, ...] = field(default=())

    @property
    def headline(self) -> Headline:
        """Feedback failure, or the agreement with people compared with that of raw click-through rates."""
        order, feedback = self.orders[0], self.feedback[0]
        if feedback.is_failure:
            sentence = "Click judgments correlate with the logged rank even among documents with the same human grade."
            label = "partial tau with the logged rank"
            return Headline(
                "worse",
                "feedback failure",
                sentence,
                label,
                feedback.partial,
                CHANGE,
                feedback.ci,
                self.level,
                reference=0.0,
            )
        words: dict[Status, str] = {
            "better": "better than CTR",
            "worse": "worse than CTR",
            "unknown": "not enough data",
        }
        sentence = (
            f"Click judgments order {order.value:.1%} of {counted(order.document_pairs, 'document pair')} like people,"
            f" and raw click-through rates {order.value - order.gain:.1%}."
        )
        label = "agreement, click judgments - CTR"
        word = words.get(order.status, "no significant difference")
        return Headline(
            order.status, word, sentence, label, order.gain, CHANGE, order.gain_ci, self.level, reference=0.0
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Agreement on document order, residual position bias, system order, and value."""
        all_topics, (judgment, raw, *_) = self.orders[0], self.feedback
        comparison = (
            "The agreement with human judgments does not differ significantly between click judgments and raw"
            " click-through rates"
        )
        if all_topics.status in {"better", "worse"}:
            more = "more" if all_topics.gain > 0 else "less"
            comparison = (
                f"Click judgments agree with human judgments significantly {more} often than raw click-through rates do"
            )
        sample = f"n = {counted(all_topics.document_pairs, 'document pair')} in {counted(all_topics.n, 'topic')}"
        sentences = [
            (
                f"Share of document pairs with the same order by click judgments and by human judgments:"
                f" {all_topics.value:.3f}"
                f" ({sample})."
            ),
            f"{comparison}: difference {all_topics.gain:+.3f}{_interval_text(all_topics.gain_ci, self.level)}.",
        ]
        if judgment.ci is not None:
            _, high = judgment.ci
            direction = (
                "Feedback failure: positive" if judgment.is_failure else "Negative" if high < 0 else "No significant"
            )
            interval = _interval_text(judgment.ci, self.level)
            sentences.append(
                f"{direction} correlation of click judgments with the logged rank, given human grades: partial tau"
                f" {judgment.partial:+.3f}{interval}. For raw click-through rates"
                f" instead of click judgments, the partial tau is {raw.partial:+.3f}."
            )
        if self.systems > 1 and not math.isnan(self.tau):
            systems = counted(self.systems, "system")
            sentences.append(
                f"Kendall's tau between the orders of {systems} by {self.measure} with click judgments and with human"
                f" judgments: {self.tau:.3f}."
            )
        if not math.isnan(self.clicks_per_label):
            sentences.append(
                f"For estimates of the mean scores of these systems, {self.clicks_per_label:.0f} clicks can replace"
                f" one human label."
            )
        return tuple(sentences)

    def blocks(self) -> tuple[Block, ...]:
        """Return document order agreement, residual position bias, and rank bands."""
        has_slices = any(row.slice for row in self.orders)
        gains, partials = [row.gain for row in self.orders], [row.partial for row in self.feedback]
        intervals = [row.gain_ci for row in self.orders], [row.ci for row in self.feedback]
        order_columns = (
            *columns_of(
                self.orders, ("source", TEXT), ("slice", TEXT) if has_slices else "slice", ("n", COUNT, "topics")
            ),
            *columns_of(self.orders, ("document_pairs", COUNT, "pairs"), ("value", _THREE, "agreement")),
            Column(
                "gain",
                gains,
                CHANGE,
                "difference from CTR",
                intervals[0],
                axis=Axis.over(gains, intervals[0], "CI", 0.0),
            ),
        )
        rank_columns = columns_of(
            self.ranks, ("ranks", TEXT), ("documents", COUNT), ("human_grade", _TWO, ("human"
            " grade")), ("click_grade", _TWO, "click grade"),
            ("ctr", _THREE, "CTR"),
        )  # fmt: skip
        feedback_columns = (
            *columns_of(self.feedback, ("source", TEXT), ("tau", _THREE, "tau")),
            Column(
                "partial",
                partials,
                _THREE,
                "partial tau",
                intervals[1],
                axis=Axis.over(partials, intervals[1], "CI", 0.0),
            ),
        )
        return (
            Sentences(self.sentences),
            Table("orders", order_columns, "Agreement on document order", labels=2 if has_slices else 1),
            Table("feedback", feedback_columns, "Correlation with the logged rank"),
            Table("ranks", rank_columns, "Grades and CTR by mean logged rank"),
        )


def _interval_text(ci: _Interval, level: float) -> str:
    return "" if ci is None else f", {level:.0%} CI [{ci[0]:+.3f}, {ci[1]:+.3f}]"


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
    """Compare click judgments with human judgments.

    Parameters
    ----------
    judgments
        Result of `judge_clicks`.
    gold
        Human judgments.
    runs, measure
        Runs to score with both kinds of judgments, and the measure.
    slicing
        Slices of topics, or a table with one attribute of topics.
    level, resamples, seed
        Confidence level, and bootstrap for the value of clicks. Other intervals use a jackknife over topics.

    Raises
    ------
    InputError
        If no topic has two documents with different human grades and click judgments.

    Notes
    -----
    ``orders`` compares pairs of documents of a topic with different human grades, by source: click judgments, raw
    click-through rate, and logged rank. ``grading="human"`` does not change the order of documents.

    A *feedback failure* is a positive partial tau with the logged rank: of two documents with the same human grade, the
    higher-ranked one has the better click judgment in spite of debiasing. Human grades may also miss something that the
    ranker uses; inspect some documents before you reject the log.

    The value of clicks (`judged.labels.calibrate`) is the number of human-judged topics that click judgments of other
    topics replace. It is NaN without runs, or if it is not significantly above 0.
    """
    check_share("level", level)
    people = Qrels.of(gold, name="people")
    human = human_grades(judgments.pairs, people)
    is_graded = ~np.isnan(human)
    topic_ids = np.array(judgments.pairs["query_id"].to_pylist(), dtype=object)
    topic_names, topic = np.unique(topic_ids[is_graded], return_inverse=True)
    values = judgments.values
    sources = (judgments.grade[is_graded], (values.clicks / values.impressions)[is_graded], -values.rank[is_graded])
    grade, topic = np.maximum(human[is_graded], 0), topic.ravel()
    slices = [("", np.ones(len(topic), dtype=np.bool_))]
    if slicing is not None:
        slices += list(rows_by_slice(as_slicing(slicing), topic_names.tolist(), topic))
    orders = [row for name, rows in slices for row in _order_agreements(sources, grade, topic, rows, name, level)]
    if not orders or not orders[0].document_pairs:
        problem = "no topic has two documents with click judgments and different human grades"
        raise InputError(problem, fix="check that topic and document ids match", path=people.where)
    selected_runs = runs_of(runs) if hasattr(runs, "__len__") and len(runs) else []
    system_values: dict[str, Any] = {"tau": math.nan, "within_topics": math.nan, "worth": math.nan, "worth_ci": None}
    clicks_per_label, notes = math.nan, [*judgments.notes]
    if selected_runs:
        highest_grade = max(float(people.grades.max()), float(judgments.grade.max()))
        options: dict[str, Any] = {"highest": highest_grade, "level": level, "resamples": resamples, "seed": seed}
        with warnings.catch_warnings():  # otherwise repeated for each judge: topics that a run lacks
            warnings.simplefilter("ignore", JudgedWarning)
            calibration = calibrate(people, {judgments.by: judgments.qrels}, selected_runs, measure, **options)
        (click_judge,) = calibration.judges
        system_values = {
            "tau": click_judge.tau, "within_topics": click_judge.within_topics,
            "worth": click_judge.added_topics, "worth_ci": click_judge.added_topics_ci,
        }  # fmt: skip
        notes += calibration.notes
        if click_judge.added_topics_ci is not None and click_judge.added_topics_ci[0] > 0:
            is_other_topic = np.isnan(human) & ~np.isin(judgments.pairs["query_id"].to_pylist(), people.topics)
            # The value is in topics; a human-judged topic has len(people) / topics labels.
            n_labels = click_judge.added_topics * len(people) / len(people.topics)
            clicks_per_label = float(values.clicks[is_other_topic].sum()) / n_labels
    return ClickAgreement(
        judgments.log, judgments.by, level, int(is_graded.sum()), tuple(orders),
        tuple(_rank_bands(judgments, human, is_graded)), tuple(_feedback_tests(sources, grade, topic, level)), measure,
        len(selected_runs), **system_values, clicks_per_label=clicks_per_label, notes=tuple(notes),
    )  # fmt: skip


def _pair_sums(first: Floats, second: Floats, topic: Ints) -> Floats:
    """Return pair counts by topic, (T, 3): concordant minus discordant, untied in the first, untied in the second."""
    pairs = count_pairs(first, second, topic)
    columns = (pairs.net, pairs.untied_first, pairs.untied_second)
    return np.stack([np.bincount(topic, counts) for counts in columns], axis=1).astype(np.float64)


def _jackknife(sums: Floats, statistic: Callable[[Floats], Floats], level: float) -> tuple[float, _Interval]:
    """Return a statistic of sums over topics, (T, ...) to (...), with its jackknife interval."""
    value = float(statistic(sums.sum(axis=0)[None])[0])
    n = len(sums)
    if n < _MIN_TOPICS:
        return value, None
    # Delete-one jackknife over topics.
    leave_one_out = statistic(sums.sum(axis=0) - sums)
    error = math.sqrt((n - 1) / n * float(((leave_one_out - leave_one_out.mean()) ** 2).sum()))
    half_width = error * student_quantile((1 + level) / 2, n - 1)
    return value, None if math.isnan(half_width) else (value - half_width, value + half_width)


def _concordant_share(sums: Floats) -> Floats:
    """Return the concordant share of pairs: (N, ..., 3) to (N, ...)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        # (1 + net / untied) / 2: ties of the source count half.
        return 0.5 + sums[..., 0] / sums[..., 2] / 2


def _gain(sums: Floats) -> Floats:
    shares = _concordant_share(sums)
    return shares[:, 0] - shares[:, 1]


def _order_agreements(
    sources: tuple[Floats, ...], grade: Floats, topic: Ints, rows: Bools, name: str, level: float
) -> Iterator[DocumentOrderAgreement]:
    _, topic_index = np.unique(topic[rows], return_inverse=True)
    sums = np.stack([_pair_sums(source[rows], grade[rows], topic_index.ravel()) for source in sources], axis=1)
    sums = sums[sums[:, 0, 2] > 0]  # only topics with different grades
    for i, source in enumerate(_SOURCES):
        share, ci = _jackknife(sums[:, i], _concordant_share, level)
        gain, gain_ci = _jackknife(sums[:, [i, 1]], _gain, level)
        n_pairs = int(sums[:, i, 2].sum()) // 2
        yield DocumentOrderAgreement(source, name, len(sums), n_pairs, share, ci, gain, gain_ci if i != 1 else None)


def _rank_bands(judgments: ClickJudgments, human: Floats, is_graded: Bools) -> Iterator[RankBand]:
    values, rank = judgments.values, np.round(judgments.values.rank)
    for low, high in _RANK_BANDS:
        rows = is_graded & (rank >= low) & (rank <= high)
        if rows.any():
            name = f"{low}" if low == high else f"{low} or deeper" if math.isinf(high) else f"{low} to {high}"
            ctr = float(values.clicks[rows].sum() / values.impressions[rows].sum())
            grades = float(np.maximum(human[rows], 0).mean()), float(judgments.grade[rows].mean())
            yield RankBand(name, int(rows.sum()), *grades, ctr)


def _feedback_tests(sources: tuple[Floats, ...], grade: Floats, topic: Ints, level: float) -> Iterator[FeedbackTest]:
    """Compute Kendall's tau with the logged rank within topics, and partial tau given grades."""
    # Negative rank: higher is closer to the top.
    negative_rank = sources[2]
    rank_grade_sums = _pair_sums(negative_rank, grade, topic)

    def tau(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])

    def partial(sums: Floats) -> Floats:
        tau_rank, tau_grade, tau_rank_grade = (tau(sums[:, i]) for i in range(3))
        with np.errstate(invalid="ignore", divide="ignore"):
            # Kendall (Biometrika 1942): (tau_12 - tau_13 tau_23) / sqrt((1 - tau_13**2) (1 - tau_23**2)).
            return (tau_rank - tau_grade * tau_rank_grade) / np.sqrt((1 - tau_grade**2) * (1 - tau_rank_grade**2))

    for source, values in zip(_SOURCES[:2], sources, strict=False):
        rank_sums, grade_sums = _pair_sums(values, negative_rank, topic), _pair_sums(values, grade, topic)
        sums = np.stack([rank_sums, grade_sums, rank_grade_sums], axis=1)
        yield FeedbackTest(source, float(tau(sums[:, 0].sum(axis=0))), *_jackknife(sums, partial, level))
