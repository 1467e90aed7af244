"""`evaluate` where judgments are uncertain: intervals of means, and how much of them topics and judgments each add."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.data.records import records_of
from judged.errors import InputError
from judged.online.clicks.judgments import ClickJudgments
from judged.online.log import FieldAnswer
from judged.results import CHANGE, NUMBER, SHARE, TEXT, Column, Sentences, Table, columns_of, counted
from judged.results.blocks import Note
from judged.scoring.evaluation.evaluate import evaluate_without_warnings
from judged.scoring.evaluation.inputs import runs_of
from judged.scoring.judging import judge
from judged.stats.inputs import check_resampling, check_share
from judged.stats.interval import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results import Block
    from judged.results.types import Floats

_Limits = tuple[float, float] | None
_NOISE = 0.5  # of the spread of values, up to which intervals hold what they promise


class UncertainMean(NamedTuple):
    """A mean over topics whose judgments are uncertain."""

    run: str
    measure: str
    plain: float  # by the grades as they stand
    value: float  # by values without their noise
    ci: _Limits
    by_topics: float  # standard errors that topics and judgments add
    by_judgments: float
    share: float  # of the variance, by judgments
    difference: float  # from the first run
    difference_ci: _Limits
    difference_share: float


@dataclass(frozen=True, eq=False, repr=False)
class UncertainScores(FieldAnswer):
    """What `evaluate_uncertain` returns."""

    kind: ClassVar[str] = "uncertain-scores"
    answers: ClassVar[str] = "Scores by {qrels}, whose judgments are uncertain"
    asked: ClassVar[tuple[str, ...]] = ("qrels", "n", "judgments", "level", "resamples", "seed")

    qrels: str
    n: int
    judgments: int
    level: float
    resamples: int
    seed: int
    rows: tuple[UncertainMean, ...]
    topic_scores: tuple[tuple[str, str, str, float, float], ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What adds to the intervals, and which differences they leave."""
        shares = sorted(row.share for row in self.rows)
        rest = [row for row in self.rows if row.run != self.rows[0].run]
        clear = sum(
            row.difference_ci is not None and not row.difference_ci[0] <= 0 <= row.difference_ci[1] for row in rest
        )
        drawn = f"{counted(self.n, 'topic')}, {counted(self.resamples, 'draw')} of all grades"
        part = f"Of the variance of the means {shares[0]:.0%} to {shares[-1]:.0%} comes from judgments"
        told = (f"{part}, the rest from the choice of topics ({drawn}).",)
        if not rest:
            return told
        said = f"{clear} of {counted(len(rest), 'difference')} from {self.rows[0].run} are clear of 0 with both."
        return (*told, said)

    def blocks(self) -> tuple[Block, ...]:
        """Give means and differences, each with what adds to its interval."""
        rows, ends = self.rows, [row.difference_ci for row in self.rows]
        table = (
            *columns_of(rows, ("run", TEXT), ("measure", TEXT), "plain", ("value", NUMBER, "mean")),
            *columns_of(rows, ("by_topics", NUMBER, "error by topics"), ("by_judgments", NUMBER, "by judgments")),
            *columns_of(rows, ("share", SHARE, "share")),
            Column("difference", [row.difference for row in rows], CHANGE, f"less {rows[0].run}", ends),
            *columns_of(rows, ("difference_share", SHARE, "share")),
        )
        names = ("run", "measure", "query_id", "value", "sd")
        topics = tuple(
            Column(name, list(part)) for name, part in zip(names, zip(*self.topic_scores, strict=True), strict=True)
        )
        return (
            Sentences(self.sentences),
            Table("runs", table, labels=2, note="share: of the variance, by judgments; the rest is by topics"),
            Table("topics", topics, only="data", labels=3),
        )


def evaluate_uncertain(
    qrels: Any,
    runs: Any,
    measures: Any = None,
    *,
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> UncertainScores:
    """Score runs by judgments that are uncertain, and allow for that beside the choice of topics.

    Parameters
    ----------
    qrels
        `ClickJudgments`; a `Qrels` whose table has ``value`` and ``se``; or a file or table with these beside
        ``query_id``, ``doc_id`` and ``grade``: what was measured of a pair, without bias, and its standard error.
    runs, measures
        As `evaluate` takes them.
    level
        Of the intervals.
    resamples
        How often grades are drawn.
    seed
        Of the draws; runs share them.

    Raises
    ------
    InputError
        If a judgment has no ``value`` and ``se``, or one is below 0.

    Notes
    -----
    A noisy value is no grade: the best of ten noisy ones is rarely the best, and an ideal ranking of them promises too
    much. Noise of the given size is added to the values once more and twice more (gamma distributions, independent),
    every measure is computed on the same hits, and the scores of a topic are extrapolated to no noise by the parabola
    through the three: ``3 s(0) - 3 s(1) + s(2)`` (simulation and extrapolation: Cook and Stefanski, JASA 1994). The
    interval is that over topics of these scores, whose spread holds that of topics and what judgments add; of this
    the variance over draws tells the part of judgments, by the law of total variance.

    Judgments that are wrong together (a position bias that is still there, clicks that follow looks) are not in it. By
    simulation intervals of 95 % cover in 92 % to 98 % where no more than half of the values' spread is noise; with more
    the parabola corrects too little, and a note says so.

    Examples
    --------
    >>> grades = [{"query_id": f"q{at}", "doc_id": doc, "grade": g, "value": g, "se": 0.2} for at in range(4)
    ...           for doc, g in (("a", 2.0), ("b", 1.0 + at))]
    >>> made = evaluate_uncertain(grades, {f"q{at}": ["a", "b"] for at in range(4)}, "DCG@2")
    >>> round(made.rows[0].plain, 3), 0 < made.rows[0].share < 1
    (3.577, True)
    """
    check_share("level", level)
    check_resampling(resamples, seed)
    judgments, given = measured_qrels(qrels), runs_of(runs)
    plain = evaluate_without_warnings(judgments, given, measures)
    # Rows of the index, which hits refer to, are not those of the table: the index of row numbers tells them apart.
    row = judgments.regraded(np.arange(len(judgments))).index.grade.astype(np.int64)
    value, se = (judgments.table[name].to_numpy() for name in ("value", "se"))
    scale = np.divide(se**2, value, out=np.zeros(len(se)), where=value > 0)
    noisy, rng = scale > 0, np.random.default_rng(seed)
    lists = [judge(judgments, run) for run in given]

    def scores(values: Floats) -> Floats:
        regraded, made = judgments.regraded(values), np.empty((len(given), len(plain.measures), len(plain.query_ids)))
        for r, hits in enumerate(lists):
            labels = values[row][hits.label_row]
            changed = replace(hits, label_grade=labels, grade=labels[hits.row], qrels=regraded)
            made[r] = [measure(changed) for measure in plain.measures]
        return made

    def noised(values: Floats) -> Floats:
        drawn = values.copy()
        drawn[noisy] = rng.standard_gamma(values[noisy] / scale[noisy]) * scale[noisy]
        return drawn

    shape = (resamples, len(given), len(plain.measures), len(plain.query_ids))
    once, twice = np.empty(shape), np.empty(shape)
    for at in range(resamples):
        drawn = noised(value)
        once[at], twice[at] = scores(drawn), scores(noised(drawn))
    found = scores(value), once, twice
    rows = tuple(_rows(plain, found, level))
    exact, spread = _extrapolated(*found), once.std(axis=0, ddof=1)
    each = tuple(
        (run, measure, topic, float(exact[r, m, t]), float(spread[r, m, t]))
        for r, run in enumerate(plain.run_names)
        for m, measure in enumerate(plain.measure_names)
        for t, topic in enumerate(plain.query_ids)
    )
    notes = (*_little(value, se), *plain.notes)
    return UncertainScores(
        judgments.name, len(plain.query_ids), len(judgments), level, resamples, seed, rows, each, notes
    )


def _extrapolated(scores: Floats, once: Floats, twice: Floats) -> Floats:
    """Give the scores without noise, of those with what there is, and those with as much more once and twice."""
    return 3 * scores - 3 * once.mean(axis=0) + twice.mean(axis=0)


def _rows(plain: Any, found: tuple[Floats, Floats, Floats], level: float) -> Iterator[UncertainMean]:
    """Take means over topics apart, of (R, M, T) and twice (draws, R, M, T)."""
    values = plain.aggregate()
    for r, run in enumerate(plain.run_names):
        for m, measure in enumerate(plain.measures):
            exact, once, twice = (part[..., r, m, :] for part in found)
            first = [part[..., 0, m, :] for part in found]
            value, ci, topics, judged, share = _mean(exact, once, twice, measure.properties.bounds, level)
            gap = _mean(exact - first[0], once - first[1], twice - first[2], (np.nan, np.nan), level)
            yield UncertainMean(
                run, str(measure), values[run][str(measure)], value, ci, topics, judged, share, gap[0],
                gap[1] if r else None, gap[4],
            )  # fmt: skip


def _mean(
    scores: Floats, once: Floats, twice: Floats, bounds: tuple[float, float], level: float
) -> tuple[float, _Limits, float, float, float]:
    """Give a mean over topics, its interval, the errors that topics and judgments add, and the part of the latter."""
    known = ~np.isnan(scores)
    exact, within = _extrapolated(scores, once, twice)[known], once.var(axis=0, ddof=1)[known]
    n = len(exact)
    if n < 2:
        return (float(exact.mean()) if n else np.nan), None, np.nan, np.nan, np.nan
    judged, total = float(within.sum()) / n**2, float(exact.var(ddof=1)) / n
    low, high = mean_intervals(exact[None], IntervalMethod("adjusted", level), bounds)[0].tolist()
    part = min(judged / total, 1.0) if total else 0.0
    errors = math.sqrt(max(total - judged, 0.0)), math.sqrt(judged)
    ci = None if math.isnan(low) else (float(np.fmax(low, bounds[0])), float(np.fmin(high, bounds[1])))
    return float(exact.mean()), ci, *errors, part


def measured_qrels(given: Any) -> Qrels:
    """Give judgments with ``value`` and ``se``.

    Raises
    ------
    InputError
        If they have none.
    """
    if isinstance(given, ClickJudgments):
        given = given.qrels
    fix = "give query_id, doc_id, grade, value and se, of which predicted grades have none"
    if not isinstance(given, Qrels):
        where = str(given) if isinstance(given, (str, Path)) else "<judgments>"
        rows = [row for _, row in records_of(given, where, "judgments", fix)]
        qrels = Qrels.of(given if isinstance(given, (str, Path)) else rows)
        pairs = list(zip(*(qrels.table[name].to_pylist() for name in ("query_id", "doc_id")), strict=True))
        for name in ("value", "se"):
            try:
                known = {(str(row["query_id"]), str(row["doc_id"])): float(row[name]) for row in rows}
                column = pa.array([known[pair] for pair in pairs], pa.float64())
            except (KeyError, TypeError, ValueError, OverflowError):
                raise InputError(f"a judgment has no {name}", fix=fix, path=where) from None
            qrels = replace(qrels, table=qrels.table.append_column(name, column))
        given = qrels
    for name in ("value", "se"):
        if name not in given.table.column_names:
            raise InputError(f"the judgments have no {name}", fix=fix, path=given.where)
        if not (given.table[name].to_numpy() >= 0).all():
            raise InputError(f"a {name} is below 0, or not known", fix=fix, path=given.where)
    return given


def _little(value: Floats, se: Floats) -> Iterator[Note]:
    """Warn where values are mostly noise."""
    spread = float(np.var(value))
    if spread and (part := float(np.mean(se**2)) / spread) > _NOISE:
        text = f"{min(part, 1):.0%} of the spread of values is noise: means are corrected for it too little"
        yield Note("little-evidence", text)
