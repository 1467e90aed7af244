"""`show`, `bisect`, and `compare`: the history of a system, where a change began, and two evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.history.detection import MIN_EVALUATIONS
from judged.history.series import (
    FALSE_ALARMS,
    MARGIN_RELATIVE,
    JudgmentChange,
    ScoreChange,
    ScoreSeries,
    detect_changes,
    judgment_changes,
    read_series,
)
from judged.results import (
    CHANGE,
    COUNT,
    NUMBER,
    P_VALUE,
    SHARE,
    TEXT,
    Answer,
    Chart,
    Column,
    Headline,
    Section,
    Sentences,
    Table,
    columns_of,
    counted,
    listed,
)
from judged.results.blocks import Note, ReferenceLine
from judged.results.decimals import percent
from judged.scoring.evaluation.inputs import index_of_measure, measures_of
from judged.stats.interval import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison import Comparison
    from judged.comparison.slicing.comparison import SliceComparison
    from judged.history.detection import Detection
    from judged.history.store import HistoryStore, StoredEvaluation
    from judged.results import Block, Status
    from judged.scoring.evaluation.scores import Scores

_STATUSES: dict[str, Status] = {"better": "better", "worse": "worse", "too few topics": "unknown"}
_LIKELY = 0.9  # probability of the evaluations that are listed
_COMMIT = 10  # shown characters of a commit
_MAX_ROWS = 10  # of a table in a terminal


@dataclass(frozen=True, eq=False, repr=False)
class ScoreHistory(Answer):
    """Scores of a system over time, their changes, and changes of the judgments."""

    kind: ClassVar[str] = "history"
    main: ClassVar[str] = "evaluations"

    series: ScoreSeries
    detections: tuple[Detection, ...]  # one per measure
    changes: tuple[ScoreChange, ...]  # of all measures, in order of time
    judgments: tuple[JudgmentChange, ...]
    false_alarms: float
    margin_relative: float
    others: tuple[str, ...]  # other systems of the store
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the answer."""
        return f"History of {self.series.system}"

    @property
    def headline(self) -> Headline:
        """Last change of the first measure, or that there is none."""
        measure, n = self.series.measures[0], len(self.series.evaluations)
        if n <= MIN_EVALUATIONS:
            sentence = f"{counted(n, 'evaluation')}: changes after the first {MIN_EVALUATIONS} can be detected."
            return Headline("unknown", "too few evaluations", sentence)
        changes = [change for change in self.changes if change.measure == measure]
        if not changes:
            detection = self.detections[0]
            sentence = f"No change of {measure} was detected after the first {MIN_EVALUATIONS} of {n} evaluations."
            low, high = measure.properties.bounds
            if math.isfinite(detection.delay) and 0.0 < detection.detectable <= high - low:
                change, within = f"{detection.detectable:.2g}", counted(int(detection.delay), "evaluation")
                sentence += f" A change of {change} is detected within {within} (80% power)."
            return Headline("same", "no change", sentence)
        last = changes[-1]
        verb = "rose" if last.difference.difference > 0 else "fell"
        first = self.series.evaluations[last.shift.start]
        return Headline(
            _STATUSES.get(last.verdict, "info"),
            last.verdict if last.verdict in _STATUSES else "changed",
            f"{measure} {verb} with evaluation {first.label}, by more than evaluations usually vary.",
            f"{measure}, change of the mean",
            last.difference.difference,
            CHANGE,
            last.difference.interval,
            reference=0.0,
        )

    def blocks(self) -> tuple[Block, ...]:
        """Return the curves, the changes, the changes of judgments, and the evaluations."""
        curves = [self._curve(i) for i in range(len(self.series.measures))]
        return (
            Sentences((self.headline.sentence, *self._others())),
            *(chart for chart, _ in curves),
            *((self._changes_table(),) if self.changes else ()),
            *((self._judgments_table(),) if self.judgments else ()),
            *(table for _, table in curves),
            Sentences(self._method(), "method"),
        )

    def facts(self) -> dict[str, Any]:
        """Return the options and the noise of each measure."""
        return {
            "system": self.series.system,
            "false_alarms": self.false_alarms,
            "margin_relative": self.margin_relative,
            "n": len(self.series.query_ids),
            "deviation": {str(m): d.deviation for m, d in zip(self.series.measures, self.detections, strict=True)},
        }

    def _others(self) -> tuple[str, ...]:
        return (f"Other systems: {listed(self.others)}.",) if self.others else ()

    def _method(self) -> tuple[str, ...]:
        n, margin = len(self.series.query_ids), percent(self.margin_relative)
        alarms = f"On average at most one false alarm in {self.false_alarms:g} evaluations, if nothing changes"
        return (
            f"Means by the judgments and settings of the last evaluation, over the {n} topics of all evaluations.",
            f"{alarms} (self-starting CUSUM).",
            f"Not detected: changes within the first {MIN_EVALUATIONS} evaluations, and below {margin} of the mean.",
            "Intervals and p-values of changes are over topics (paired t-test of the mean scores before and after).",
        )

    def _curve(self, index: int) -> tuple[Chart, Table]:
        """Return the chart of a measure over time, and its table."""
        series, measure = self.series, str(self.series.measures[index])
        rows, means = series.evaluations[::-1], series.values[::-1, index].mean(axis=1)
        bounds = np.array([series.measures[index].properties.bounds] * len(rows))
        limits = mean_intervals(series.values[::-1, index], IntervalMethod(), bounds)
        missing = [len(scores.runs[0].missing_topics) for scores in series.scores_then[::-1]]
        then = [_mean_then(scores, measure) for scores in series.scores_then[::-1]]
        name = "evaluations" if not index else f"evaluations{index + 1}"
        table = Table(
            name,
            (
                *_evaluation_columns(rows),
                Column("time_ms", [_milliseconds(row.time) for row in rows], COUNT, only="data"),
                Column("mean", means.tolist(), NUMBER, measure, ci=[(low, high) for low, high in limits.tolist()]),
                Column("then", then, NUMBER, "as evaluated"),
                Column("missing", missing, COUNT, "topics without results", only="" if any(missing) else "data"),
            ),
            f"Evaluations by {measure}, latest first",
            note="interval over topics; as evaluated: by the judgments, settings, and topics of that evaluation",
            folded=index > 0,
            terminal_rows=_MAX_ROWS,
        )  # fmt: skip
        shifts = [change.shift.start for change in self.changes if str(change.measure) == measure]
        lines = tuple(ReferenceLine("x", _milliseconds(series.evaluations[start].time)) for start in shifts)
        sentence = f"{measure} over {counted(len(rows), 'evaluation')}, with {counted(len(shifts), 'change')}."
        chart = Chart(
            f"history{index + 1}", measure, table, sentence, kind="points", x="time_ms", x_title="time (UTC)", y="mean",
            y_title=measure, band="mean", lines=lines, spread="time", height=180,
            subtitle="band: interval over topics; dashed lines: changes",
        )  # fmt: skip
        return chart, table

    def _changes_table(self) -> Table:
        rows = [self.series.evaluations[change.shift.start] for change in self.changes]
        differences = [change.difference for change in self.changes]
        verdicts = [change.verdict for change in self.changes]
        statuses: list[Status] = [_STATUSES.get(verdict, "info") for verdict in verdicts]
        return Table(
            "changes",
            (
                Column("measure", [str(change.measure) for change in self.changes], TEXT),
                *_evaluation_columns(rows, "first evaluation"),
                *columns_of(self.changes, ("mean_before", NUMBER, "before"), ("mean_after", NUMBER, "after")),
                Column("difference", [row.difference for row in differences], CHANGE,
                       ci=[row.interval for row in differences]),
                Column("p", [row.p for row in differences], P_VALUE),
                Column("verdict", verdicts, TEXT, statuses=statuses),
                Column("detected", [self.series.evaluations[change.shift.detected].number for change in self.changes],
                       COUNT, "detected at"),
                Column("likely", [_likely_text(self.series, change) for change in self.changes], TEXT,
                       f"began at ({percent(_LIKELY)})"),
            ),
            "Changes larger than the usual variation between evaluations",
            labels=2,
        )  # fmt: skip

    def _judgments_table(self) -> Table:
        rows, main = [change.evaluation for change in self.judgments], str(self.series.measures[0])
        return Table(
            "judgments",
            (
                *_evaluation_columns(rows, "first evaluation"),
                *columns_of(self.judgments, ("added", COUNT), ("removed", COUNT), ("changed", COUNT, "grade changed")),
                *columns_of(self.judgments, ("n_change", COUNT, "topics"), ("effect", CHANGE, main)),
            ),
            "Changes of the judgments",
            note=f"topics: change of their number; {main}: change of the mean score of the previous run with the new"
            " judgments, without a change of the system",
        )  # fmt: skip


def _evaluation_columns(rows: Sequence[StoredEvaluation], heading: str = "evaluation") -> tuple[Column, ...]:
    """Return the number, time, tag, and commit of evaluations; tags and commits are hidden if there are none."""
    texts = {"tag": [row.tag for row in rows], "commit": [row.commit[:_COMMIT] for row in rows]}
    return (
        Column("number", [row.number for row in rows], COUNT, heading),
        Column("time", [row.time[:16].replace("T", " ") for row in rows], TEXT),
        *(Column(name, values, TEXT, only="" if any(values) else "data") for name, values in texts.items()),
    )


def _mean_then(scores: Scores, measure: str) -> float:
    """Return the mean of a measure as it was evaluated; NaN if it was not."""
    return scores.value(measure) if measure in scores.measure_names else math.nan


def _likely_text(series: ScoreSeries, change: ScoreChange) -> str:
    likely = change.shift.likely(_LIKELY)
    numbers = [series.evaluations[i].number for i in (likely[0], likely[-1])]
    return f"#{numbers[0]}" if len(likely) == 1 else f"#{numbers[0]} to #{numbers[1]}"


def _milliseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000)


def show(
    store: HistoryStore,
    system: str = "",
    measures: Any = None,
    *,
    false_alarms: float = FALSE_ALARMS,
    margin_relative: float = MARGIN_RELATIVE,
) -> ScoreHistory:
    """Show the scores of a system over time, and the changes that are larger than their usual variation.

    All evaluations are scored by the judgments and settings of the last one, so changes of the judgments are no changes
    of the system; they are reported separately.

    Parameters
    ----------
    store
        The history.
    system
        Name of the system. Default: that of the last evaluation.
    measures
        Measures, also others than were evaluated. Default: those of the last evaluation.
    false_alarms
        Number of evaluations per false alarm, over all measures, if nothing changes. It assumes normal noise of the
        mean score; autocorrelation is estimated.
    margin_relative
        Smallest change that is reported, as a share of the mean score.

    Raises
    ------
    InputError
        If there are no evaluations, no topic is in all of them, or an option is out of range.
    """
    series = read_series(store, system, measures)
    results = detect_changes(series, false_alarms, margin_relative)
    changes = sorted(
        (change for _, of_measure in results for change in of_measure), key=lambda change: change.shift.start
    )
    others = sorted({row.system for row in store.evaluations()} - {series.system})
    return ScoreHistory(
        series, tuple(detection for detection, _ in results), tuple(changes), tuple(judgment_changes(store, series)),
        false_alarms, margin_relative, tuple(others), tuple(_notes(series)),
    )  # fmt: skip


def _notes(series: ScoreSeries) -> list[Note]:
    left_out = len({query for scores in series.scores_then for query in scores.query_ids}) - len(series.query_ids)
    text = f"{counted(left_out, 'topic')} not in all evaluations: left out of changes"
    return [Note("left-out", text)] if left_out else []


@dataclass(frozen=True, eq=False, repr=False)
class ChangeLocation(Answer):
    """Evaluations with which a change may have begun, and the topics and slices that changed."""

    kind: ClassVar[str] = "bisect"
    main: ClassVar[str] = "evaluations"

    series: ScoreSeries
    change: ScoreChange
    slices: SliceComparison | None = None

    @property
    def title(self) -> str:
        """Title of the answer."""
        return f"Where {self.change.measure} of {self.series.system} changed"

    @property
    def headline(self) -> Headline:
        """Most likely first evaluation of the change."""
        start = self.change.shift.start
        before, first = self.series.evaluations[start - 1 : start + 1]
        probability = float(self.change.shift.probabilities[start - self.change.shift.offset])
        difference = f"{self.change.measure} changed by {self.change.difference.difference:+.4f}"
        sentence = f"{difference}. It began with evaluation {first.label}; the last one before is {before.label}."
        return Headline("info", f"#{first.number}", sentence, "probability", probability, SHARE)

    def blocks(self) -> tuple[Block, ...]:
        """Return the likely evaluations, the topics, and the slices."""
        slices = () if self.slices is None else (Section("slices", "Slices", self.slices.blocks()),)
        return (
            Sentences((self.headline.sentence,)),
            *self._commits(),
            self._evaluations_table(),
            self._topics_table(),
            *slices,
        )

    def _commits(self) -> tuple[Sentences, ...]:
        """Return the Git command that lists the commits between the likely evaluations, if they are recorded."""
        likely = self.change.shift.likely(_LIKELY)
        before, last = self.series.evaluations[likely[0] - 1].commit, self.series.evaluations[likely[-1]].commit
        if not before or not last or before == last:
            return ()
        return (Sentences((f"Commits: git log {before[:10]}..{last[:10]}",), "commits"),)

    def _evaluations_table(self) -> Table:
        likely = self.change.shift.likely(_LIKELY)
        shift = self.change.shift
        rows = [self.series.evaluations[i] for i in likely]
        return Table(
            "evaluations",
            (
                *_evaluation_columns(rows),
                Column("probability", [float(shift.probabilities[i - shift.offset]) for i in likely], SHARE),
            ),
            f"Evaluations with which the change began ({percent(_LIKELY)})",
            labels=4,
        )

    def _topics_table(self) -> Table:
        index = self.series.measures.index(self.change.measure)
        before, after = (
            self.series.values[part, index].mean(axis=0) for part in (self.change.before, self.change.after)
        )
        order = np.argsort(-np.abs(after - before), kind="stable")
        columns = {"before": before, "after": after, "difference": after - before}
        shows = {"difference": CHANGE}
        return Table(
            "topics",
            (
                Column("query_id", [self.series.query_ids[i] for i in order], TEXT, "topic"),
                *(Column(name, part[order].tolist(), shows.get(name, NUMBER)) for name, part in columns.items()),
            ),
            f"Mean {self.change.measure} of the topics, largest differences first",
            terminal_rows=_MAX_ROWS,
        )


def bisect(
    store: HistoryStore,
    system: str = "",
    measure: Any = None,
    *,
    evaluation: str = "",
    slicing: Any = None,
    false_alarms: float = FALSE_ALARMS,
    margin_relative: float = MARGIN_RELATIVE,
) -> ChangeLocation:
    """Find the evaluation with which a change began, with its topics and slices.

    Parameters
    ----------
    store, system, false_alarms, margin_relative
        As for `show`.
    measure
        Measure of the last evaluation. Default: its first one.
    evaluation
        Evaluation that `show` lists as the beginning of the change: a number, a tag, or a commit. Default: the last
        change.
    slicing
        Slices from `slice_topics`. Default: none.

    Raises
    ------
    InputError
        If no change was detected, or none began at this evaluation.
    """
    series = read_series(store, system)
    # All measures share the false alarms, as in `show`.
    index = index_of_measure(measures_of(measure)[0], series.measures) if measure else 0
    changes = detect_changes(series, false_alarms, margin_relative)[index][1]
    if evaluation:
        matches = store.matching(evaluation, series.system)
        changes = [change for change in changes if series.evaluations[change.shift.start] in matches]
    if not changes:
        where = f" that begins at {evaluation}" if evaluation else ""
        fix = "list the changes: judged history show"
        raise InputError(f"no change of {series.measures[index]} was detected{where}", fix=fix, path=store.where)
    change = changes[-1]
    slices = None
    if slicing is not None:
        scores = series.segment_scores(change.before, change.after, ("before", "after"))
        slices = scores.compare_slices(slicing, measures=[change.measure])
    return ChangeLocation(series, change, slices)


def compare(store: HistoryStore, first: str | int, second: str | int, system: str = "", **options: Any) -> Comparison:
    """Compare two evaluations by the judgments and settings of the second one.

    Parameters
    ----------
    store
        The history.
    first, second
        Evaluations as for `HistoryStore.find`.
    system
        Name of the system of both. Default: that of `second`, for both unless `first` names another one.
    options
        As for `Scores.compare`.
    """
    row = store.find(second, system)
    evaluations = [store.find(first, "" if "/" in str(first) else system or row.system), row]
    if evaluations[0] == row:
        fix = "name two different evaluations"
        raise InputError(f"both references are evaluation #{row.number}", fix=fix, path=store.where)
    parts = [store.scores(row, evaluations[1]) for row in evaluations]
    names = [f"{row.system} #{row.number}" for row in evaluations]
    evaluated = [store.scores(row).query_ids for row in evaluations]
    named = [  # the same judgments, which may have been read from a file or from the store
        replace(scores, runs=(replace(scores.runs[0], name=name),), qrels=parts[1].qrels)
        for scores, name in zip(parts, names, strict=True)
    ]
    # A topic that one of them did not have would score 0.
    scores = named[0].join(named[1])
    scores = scores.over_topics(np.isin(scores.query_ids, sorted(set(evaluated[0]) & set(evaluated[1]))))
    if evaluations[0].qrels != evaluations[1].qrels:
        note = Note("other-judgments", f"{names[0]} was scored by the judgments of {names[1]}")
        scores = replace(scores, notes=(*scores.notes, note))
    return scores.compare(baseline=names[0], **options)
