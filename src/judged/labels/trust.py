"""Quality of labels: agreement, and for each judge bias, self-consistency, accuracy, drift, and time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.agreement import agree
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.labels.corrected_systems import rows_by_slice, topic_interval, topic_means
from judged.labels.exchange import is_store
from judged.labels.labels import ADJUDICATOR, Labels
from judged.labels.store import LabelStore
from judged.results import COUNT, SHARE, TEXT, Answer, Axis, Headline, Sentences, Table, columns_of, counted, number
from judged.results.blocks import Note
from judged.results.decimals import decimal, p_text, percent
from judged.stats.agreement import MIN_GROUPS, krippendorff_alpha
from judged.stats.correction import adjust, clopper_pearson_intervals
from judged.stats.inputs import spread
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.comparison.agreement import JudgeAgreement
    from judged.results import Block, Status
    from judged.results.types import Floats, Ints
    from judged.stats.agreement import Agreement, Scale

FAST = 1.0
"""Labels that took fewer seconds are fast: too short to read a document."""
_MAX_COMPARED_JUDGES = 10  # without runs; the number of pairs grows with the square
_THREE_DECIMALS, _SIGNED = number(3), number(3, "+")
_VERDICTS: dict[str, tuple[Status, str]] = {
    "unknown": ("unknown", "not enough data"),
    "chance": ("same", "no agreement beyond chance"),
    "less": ("worse", "less agreement than by chance"),
    "more": ("better", "agreement beyond chance"),
}
_OPTIONAL_COLUMNS = (
    ("consistency", SHARE, "self-consistency", ("repeats", "consistency_ci")),
    ("accuracy", SHARE, "accuracy", ("gold", "accuracy_ci")),
    ("drift", _SIGNED, "drift", ()),
    ("drift_p", number(3), "p (drift)", ()),
    ("seconds", number(1), "median seconds", ("fast",)),
)


@dataclass(frozen=True)
class JudgeQuality:
    """Quality of one judge's labels."""

    judge: str
    kind: str
    labels: int  # valid grades that count, without repeats
    invalid: int  # labels without a valid grade: undone, postponed, or an answer that is not a grade
    shared: int  # pairs that another judge also graded
    same: float  # share of the others' grades that equal the judge's, on shared pairs
    shift: float  # mean over topics of the judge's grade minus the mean of the others
    shift_ci: tuple[float, float] | None
    alpha_without: float  # alpha of all other judges
    repeats: int  # pairs that were graded again
    consistency: float  # share of these with the same grade
    consistency_ci: tuple[float, float] | None
    gold: int  # pairs with a known correct grade
    accuracy: float  # share of these with the correct grade
    accuracy_ci: tuple[float, float] | None
    drift: float  # shift of the later half of the labels minus that of the earlier half
    drift_p: float  # Welch's t-test over topics, Holm-corrected over judges; NaN if not tested
    seconds: float  # median time per label
    fast: float  # share of labels that took less than `FAST` seconds


@dataclass(frozen=True)
class AgreementSummary:
    """Agreement on a topic, a slice, or a grade."""

    name: str
    pairs: int  # graded by several judges
    same: float  # share of equal grades among all pairs of labels of a document
    distance: float  # mean absolute difference of two labels
    alpha: float = math.nan
    alpha_ci: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class LabelQuality(Answer):
    """Result of `quality`: agreement overall, by judge, topic, slice, and grade, and its effect on systems."""

    kind: ClassVar[str] = "label-quality"
    main: ClassVar[str] = "judges"

    alpha: Agreement
    pairs: int
    judges: tuple[JudgeQuality, ...]
    topics: tuple[AgreementSummary, ...]
    slices: tuple[AgreementSummary, ...]
    grades: tuple[AgreementSummary, ...]
    systems: JudgeAgreement | None
    threshold: float = 0.05
    notes: tuple[Note, ...] = ()
    counts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # as in `Labels.counts`

    @property
    def title(self) -> str:
        """Title of the result."""
        return "Quality of labels"

    @property
    def headline(self) -> Headline:
        """Agreement of the judges, compared with chance."""
        status, word = _VERDICTS[self.alpha.verdict]
        alpha, documents = self.alpha, counted(self.pairs, "shared document")
        sentence = f"{alpha.judges} judges graded {documents}; 1 is full agreement, 0 is chance."
        axis = Axis(min((-0.2, *(alpha.interval or ()))), 1.0, reference=0.0)
        options: dict[str, Any] = {"ci": alpha.interval, "level": alpha.level, "reference": 0.0, "axis": axis}
        return Headline(status, word, sentence, alpha.name, alpha.value, _THREE_DECIMALS, **options)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Findings, the overall agreement first."""
        sentences = [self.alpha.sentence]
        for judge in self.judges:
            if judge.drift_p < self.threshold:
                direction = f"{decimal(abs(judge.drift), 2)} {'higher' if judge.drift > 0 else 'lower'}"
                p = p_text(judge.drift_p, self.threshold)
                head = f"Relative to other judges, the later labels of {judge.judge} are {direction}"
                sentences.append(f"{head} than the earlier labels (p {p}, Holm-corrected).")
        best_share = max((judge.accuracy for judge in self.judges if judge.gold), default=0.0)
        sentences += [
            f"{judge.judge} graded {percent(judge.accuracy)} of {counted(judge.gold, 'gold document')} correctly."
            for judge in self.judges
            if judge.accuracy_ci and judge.accuracy_ci[1] < best_share and insufficiency(judge.gold, "verdict") is None
        ]
        if self.systems is not None and self.systems.systems:
            most_changed = max(self.systems.systems, key=lambda judge: judge.largest_change)
            sentences.append(most_changed.sentence)
        if self.counts:
            sentences.append(_describe_counts(self.counts))
        return tuple(sentences)

    def blocks(self) -> tuple[Block, ...]:
        """Return agreement in words, judges, slices, grades, topics, and systems under each pair of judges."""
        rows = self.judges
        columns: list[Any] = [
            ("judge", TEXT),
            ("kind", TEXT),
            ("labels", COUNT),
            ("invalid", COUNT),
            ("shared", COUNT, "shared pairs"),
        ]
        columns += [("same", SHARE, "same grade"), ("shift", _SIGNED, "mean difference"), "shift_ci"]
        columns.append(("alpha_without", _THREE_DECIMALS, "alpha without judge"))
        for name, formatter, title, data_columns in _OPTIONAL_COLUMNS:
            is_known = any(not math.isnan(getattr(judge, name)) for judge in rows)
            columns += [(name, formatter, title) if is_known else name, *data_columns]
        judges = columns_of(rows, *columns)
        blocks: list[Block] = [Sentences(self.sentences), Table("judges", judges, labels=2)]
        if self.slices:
            blocks.append(Table("slices", _agreement_columns(self.slices, "slice", alpha=True), title="By slice"))
        blocks.append(Table("grades", _agreement_columns(self.grades, "grade"), title="By grade"))
        blocks.append(Table("topics", _agreement_columns(self.topics, "query_id"), title="By topic", folded=True))
        if self.systems is not None:
            pairs = replace(self.systems.table("pairs"), name="judge_pairs", title="Agreement by pair of judges")
            blocks += [
                pairs,
                replace(
                    self.systems.table("systems"), title="Agreement of each pair of judges on the order of systems"
                ),
            ]
        return tuple(blocks)

    def facts(self) -> dict[str, Any]:
        """Return the overall agreement."""
        alpha = {"name": self.alpha.name, "value": self.alpha.value, "interval": self.alpha.interval}
        counts = {"n" if name == "topics" else name: count for name, count in self.counts.items()}
        return {"pairs": self.pairs, "alpha": alpha, "counts": counts}


def _describe_counts(counts: Mapping[str, Any]) -> str:
    names = {"judges": "judge", "topics": "topic", "pairs": "pair", "judgments": "judgment"}
    judges, topics, pairs, judgments = (counted(counts[name], noun) for name, noun in names.items())
    both, equal = " and ".join(counts["both"]), percent(counts["agreement_of_both"])
    shared = f"{both} both judged {counted(counts['judged_by_both'], 'pair')}, with the same grade for {equal} of them"
    return f"The labels of {judges} have {judgments} of {pairs} in {topics}. {shared}."


def _agreement_columns(rows: tuple[AgreementSummary, ...], name: str, *, alpha: bool = False) -> tuple[Any, ...]:
    title = "topic" if name == "query_id" else name
    records = [{**vars(row), name: row.name} for row in rows]
    numbers = (("pairs", COUNT), ("same", SHARE, "same grade"), ("distance", _THREE_DECIMALS, "mean abs. difference"))
    return columns_of(
        records, (name, TEXT, title), *numbers, *((("alpha", _THREE_DECIMALS), "alpha_ci") if alpha else ())
    )


def quality(
    labels: Any,
    runs: Any = (),
    measure: str = "nDCG@10",
    *,
    gold: Any = None,
    slicing: Any = None,
    scale: Scale = "ordinal",
    level: float = 0.95,
    alpha: float = 0.05,
) -> LabelQuality:
    """Measure the quality of labels from several judges.

    Parameters
    ----------
    labels
        As `Labels.of` accepts them. The first of repeated labels counts, except for self-consistency. Labels of the
        judge ``adjudicator`` do not count.
    runs, measure
        Systems to score with the grades of each pair of judges, as in `agree`.
    gold
        Judgments known to be correct, as `Qrels.of` accepts them. None: the gold grades of the store's tasks, if any.
    slicing
        Slices of topics, or a table with one attribute to slice by.
    scale
        Scale of Krippendorff's alpha.
    level
        Confidence level of intervals: over topics; for repeats and gold grades over documents.
    alpha
        Significance level for drift, corrected over judges.

    Returns
    -------
    LabelQuality

    Raises
    ------
    InputError
        If no document has grades from two judges.

    Examples
    --------
    >>> ann = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "d": 1}}
    >>> bob = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 0, "d": 1}}
    >>> result = quality({"ann": ann, "bob": bob})
    >>> round(result.alpha.value, 3), [(judge.judge, judge.same, judge.shift) for judge in result.judges]
    (0.794, [('ann', 0.8, -0.16666666666666666), ('bob', 0.8, 0.16666666666666666)])
    """
    all_labels = Labels.of(labels)
    if set(all_labels.judges) > {ADJUDICATOR}:  # not independent: adjudicators see the other labels
        all_labels = all_labels.of_judges([judge for judge in all_labels.judges if judge != ADJUDICATOR])
    grades, topic = all_labels.grades, all_labels.topic
    is_shared = (~np.isnan(grades)).sum(axis=1) > 1
    if not is_shared.any():
        fix = "have two judges grade some of the same documents"
        raise InputError("at least one document must have grades from two judges", fix=fix, path=all_labels.where)
    # Topics are the independent units of the interval: labels of the same topic are not independent.
    overall = krippendorff_alpha(grades, scale, groups=topic, level=level)
    query_ids = all_labels.pairs["query_id"].unique().to_pylist()
    topics = [_summarize_agreement(str(name), grades[topic == i]) for i, name in enumerate(query_ids)]
    systems = None
    has_runs = len(runs) if hasattr(runs, "__len__") else runs is not None
    if has_runs or len(all_labels.judges) <= _MAX_COMPARED_JUDGES:
        by_judge = {judge: all_labels.of_judges([judge]) for judge in all_labels.judges}
        qrels = {judge: _to_qrels(part) for judge, part in by_judge.items() if part.graded.num_rows}
        systems = agree(qrels, runs=runs if has_runs else None, measures=measure, scale=scale, level=level)
    gold_rows = [] if gold is None else Qrels.of(gold).table.to_pylist()
    gold_grades = _gold_grades(labels) if gold is None else _column_by_pair(gold_rows, "relevance")
    judges = _assess_judges(all_labels, gold_grades, scale, level)
    notes: list[Note] = []
    if overall.groups < MIN_GROUPS and overall.interval is not None:
        text = f"there are only {counted(overall.groups, 'topic')}, so the confidence intervals may be too narrow"
        notes.append(Note("few-topics", text))
    return LabelQuality(
        overall,
        int(is_shared.sum()),
        tuple(judges),
        tuple(sorted((agreement for agreement in topics if agreement.pairs), key=attrgetter("same", "name"))),
        () if slicing is None else tuple(_slices(slicing, query_ids, grades, topic, scale, level)),
        tuple(_by_grade(grades)),
        systems,
        alpha,
        tuple(notes),
        all_labels.counts(),
    )


def _to_qrels(labels: Labels) -> Qrels:
    table = labels.graded.filter(pc.equal(labels.graded["repeat"], 0)).select(["query_id", "doc_id", "grade"])
    return Qrels(table.rename_columns(["query_id", "doc_id", "relevance"]), labels.judges[0])


def _shared_grades(grades: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield the grades of each two judges on the pairs that both graded."""
    for first in range(grades.shape[1]):
        for second in range(first + 1, grades.shape[1]):
            is_shared = ~np.isnan(grades[:, first]) & ~np.isnan(grades[:, second])
            yield grades[is_shared, first], grades[is_shared, second]


def _summarize_agreement(name: str, grades: Floats) -> AgreementSummary:
    pairs = int(((~np.isnan(grades)).sum(axis=1) > 1).sum())
    first, second = (np.concatenate(column) for column in zip(*_shared_grades(grades), strict=True))
    if not len(first):
        return AgreementSummary(name, pairs, math.nan, math.nan)
    return AgreementSummary(name, pairs, float((first == second).mean()), float(np.abs(first - second).mean()))


def _by_grade(grades: Floats) -> Iterator[AgreementSummary]:
    """Yield the specific agreement of each grade: the share of equal grades in its pairs of labels (Cicchetti 1990)."""
    first, second = (np.concatenate(column) for column in zip(*_shared_grades(grades), strict=True))
    left_grades, right_grades = np.concatenate([first, second]), np.concatenate([second, first])
    for grade in np.unique(left_grades):
        rows = left_grades == grade
        distances = np.abs(right_grades[rows] - grade)
        yield AgreementSummary(f"{grade:g}", len(distances), float((distances == 0).mean()), float(distances.mean()))


def _slices(
    slicing: Any, query_ids: list[str], grades: Floats, topic: Ints, scale: Scale, level: float
) -> Iterator[AgreementSummary]:
    for name, rows in rows_by_slice(as_slicing(slicing), query_ids, topic):
        alpha = krippendorff_alpha(grades[rows], scale, groups=topic[rows], level=level)
        yield replace(_summarize_agreement(name, grades[rows]), alpha=alpha.value, alpha_ci=alpha.interval)


def _assess_judges(
    labels: Labels, gold: Mapping[tuple[str, str], float], scale: Scale, level: float
) -> Iterator[JudgeQuality]:
    grades, topic = labels.grades, labels.topic
    kinds = dict(zip(labels.table["judge"].to_pylist(), labels.table["kind"].to_pylist(), strict=True))
    # Holm over the tested judges only: untested judges have NaN.
    drifts = [_drift(labels, i) for i in range(len(labels.judges))]
    tested = np.array([p_value for _, p_value in drifts])
    corrected = np.full(len(tested), np.nan)
    corrected[~np.isnan(tested)] = adjust(tested[~np.isnan(tested)])
    for i, judge in enumerate(labels.judges):
        judge_labels = labels.of_judges([judge])
        judge_grades, others = grades[:, i], np.delete(grades, i, axis=1)
        shared = ~np.isnan(judge_grades) & (~np.isnan(others)).any(axis=1)
        is_graded = ~np.isnan(others[shared])
        equal_count = (others[shared] == judge_grades[shared, None]).sum()
        shift = judge_grades[shared] - np.nanmean(others[shared], axis=1)
        means = topic_means(shift, topic[shared])
        # Alpha of the others is undefined if no two of them share a document.
        is_single = not ((~np.isnan(others)).sum(axis=1) > 1).any()
        repeats, equal = _count_repeats(judge_labels)
        gold_count, right = _count_right(judge_labels, gold)
        seconds = judge_labels.graded["seconds"].drop_null().to_numpy()
        yield JudgeQuality(
            judge=judge,
            kind=kinds[judge],
            labels=int((~np.isnan(judge_grades)).sum()),
            invalid=int(pc.sum(pc.invert(judge_labels.last["valid"])).as_py() or 0),
            shared=int(shared.sum()),
            same=float(equal_count / is_graded.sum()) if shared.any() else math.nan,
            shift=float(means.mean()) if len(means) else math.nan,
            shift_ci=topic_interval(means, level),
            alpha_without=math.nan if is_single else krippendorff_alpha(others, scale, groups=topic, level=level).value,
            repeats=repeats,
            consistency=equal / repeats if repeats else math.nan,
            consistency_ci=_share_interval(equal, repeats, level),
            gold=gold_count,
            accuracy=right / gold_count if gold_count else math.nan,
            accuracy_ci=_share_interval(right, gold_count, level),
            drift=drifts[i][0],
            drift_p=float(corrected[i]),
            seconds=float(np.median(seconds)) if len(seconds) else math.nan,
            fast=float((seconds < FAST).mean()) if len(seconds) else math.nan,
        )


def _share_interval(count: int, size: int, level: float) -> tuple[float, float] | None:
    if insufficiency(size):
        return None
    low, high = clopper_pearson_intervals(np.array([count]), np.array([size]), level)
    return float(low[0]), float(high[0])


def _count_repeats(labels: Labels) -> tuple[int, int]:
    """Return the number of pairs that a judge graded again, and of those with the same grade."""
    grades: dict[tuple[str, str], list[float]] = {}
    for row in labels.graded.select(["query_id", "doc_id", "repeat", "grade"]).sort_by("repeat").to_pylist():
        grades.setdefault((row["query_id"], row["doc_id"]), []).append(row["grade"])
    repeated = [pair_grades for pair_grades in grades.values() if len(pair_grades) > 1]
    return len(repeated), sum(pair_grades[0] == pair_grades[1] for pair_grades in repeated)


def _gold_grades(labels: Any) -> Mapping[tuple[str, str], float]:
    """Return the gold grades of a store's tasks; empty if `labels` is not a store."""
    if isinstance(labels, (str, Path)) and is_store(labels):
        with LabelStore.open(labels, new=False) as store:
            return _gold_grades(store)
    tasks = labels.all_tasks() if isinstance(labels, LabelStore) else ()
    return _column_by_pair([task._asdict() for task in tasks if task.gold is not None], "gold")


def _column_by_pair(rows: list[dict[str, Any]], column: str) -> Mapping[tuple[str, str], float]:
    return {(row["query_id"], row["doc_id"]): row[column] for row in rows}


def _count_right(labels: Labels, gold_grades: Mapping[tuple[str, str], float]) -> tuple[int, int]:
    """Return the number of labels with a known correct grade, and how many of them are correct."""
    first_labels = [row for row in labels.graded.to_pylist() if not row["repeat"]]
    # Repeats would count an error of the same judge twice.
    grades = _column_by_pair(first_labels, "grade")
    pairs = grades.keys() & gold_grades.keys()
    return len(pairs), sum(grades[pair] == gold_grades[pair] for pair in pairs)


def _drift(labels: Labels, judge: int) -> tuple[float, float]:
    """Return the shift of the later half of a judge's labels minus that of the earlier half, and its p-value."""
    grades, topic = labels.grades, labels.topic
    timed = labels.of_judges([labels.judges[judge]]).graded
    timed = timed.filter(pc.and_(pc.equal(timed["repeat"], 0), pc.not_equal(timed["time"], "")))
    other_grades = np.delete(grades, judge, axis=1)
    # Times are normalized to UTC, so they sort as text.
    order = np.argsort(np.array(timed["time"].to_pylist(), dtype=str), kind="stable")
    rows = labels.row_of(timed)[order]
    rows = rows[~np.isnan(other_grades[rows]).all(axis=1)]
    shift = grades[rows, judge] - np.nanmean(other_grades[rows], axis=1)
    half = len(rows) // 2
    # Means by topic first: labels of a topic are not independent.
    first, second = topic_means(shift[:half], topic[rows[:half]]), topic_means(shift[half:], topic[rows[half:]])
    if not min(len(first), len(second)):
        return math.nan, math.nan
    if insufficiency(min(len(first), len(second)), "verdict", variance=np.nansum([spread(first), spread(second)])):
        return float(second.mean() - first.mean()), math.nan
    from scipy import stats

    test: Any = stats.ttest_ind(second, first, equal_var=False)
    return float(second.mean() - first.mean()), float(test.pvalue)
