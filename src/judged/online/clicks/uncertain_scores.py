"""`evaluate` with uncertain judgments: intervals of means, split into the variance of topics and judgments."""

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

_Interval = tuple[float, float] | None
_MAX_NOISE_SHARE = 0.5  # of the variance of values; above it, intervals have too low coverage


class UncertainMean(NamedTuple):
    """Mean over topics with uncertain judgments."""

    run: str
    measure: str
    uncorrected: float  # from uncorrected grades
    value: float  # corrected for the noise of judgments
    ci: _Interval
    topic_se: float  # standard error due to topics, and due to judgments
    judgment_se: float
    judgment_share: float  # of the variance, due to judgments
    difference: float  # from the first run
    difference_ci: _Interval
    difference_judgment_share: float


@dataclass(frozen=True, eq=False, repr=False)
class UncertainScores(FieldAnswer):
    """Result of `evaluate_uncertain`."""

    kind: ClassVar[str] = "uncertain-scores"
    title_format: ClassVar[str] = "Scores with uncertain judgments: {qrels}"
    fact_fields: ClassVar[tuple[str, ...]] = ("qrels", "n", "judgments", "level", "resamples", "seed")

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
        """Sources of variance, and significant differences."""
        shares = sorted(row.judgment_share for row in self.rows)
        other_rows = [row for row in self.rows if row.run != self.rows[0].run]
        n_clear = sum(
            row.difference_ci is not None and not row.difference_ci[0] <= 0 <= row.difference_ci[1]
            for row in other_rows
        )
        sample_size = f"n = {counted(self.n, 'topic')}, {counted(self.resamples, 'simulation')}"
        start = f"Errors of the judgments cause {shares[0]:.0%} to {shares[-1]:.0%} of the variance of the means"
        variance_sentences = (f"{start}. The sample of topics causes the rest of the variance ({sample_size}).",)
        if not other_rows:
            return variance_sentences
        n_differences = counted(len(other_rows), "difference")
        difference_sentence = (
            f"The {self.level:.0%} CI excludes 0 for {n_clear} of {n_differences} from the run {self.rows[0].run}."
        )
        return (*variance_sentences, difference_sentence)

    def blocks(self) -> tuple[Block, ...]:
        """Return means and differences with the sources of their variance."""
        rows, intervals = self.rows, [row.difference_ci for row in self.rows]
        run_columns = (
            *columns_of(rows, ("run", TEXT), ("measure", TEXT), "uncorrected", ("value", NUMBER, "mean")),
            *columns_of(rows, ("topic_se", NUMBER, "SE from topics"), ("judgment_se", NUMBER, "SE from judgments")),
            *columns_of(rows, ("judgment_share", SHARE, "variance from judgments")),
            Column("difference", [row.difference for row in rows], CHANGE, f"difference from {rows[0].run}", intervals),
            *columns_of(rows, ("difference_judgment_share", SHARE, "variance from judgments")),
        )
        topic_names = ("run", "measure", "query_id", "value", "sd")
        scores = zip(topic_names, zip(*self.topic_scores, strict=True), strict=True)
        topic_columns = tuple(Column(name, list(values)) for name, values in scores)
        return (
            Sentences(self.sentences),
            Table(
                "runs",
                run_columns,
                labels=2,
                note="SE: standard error. The rest of the variance comes from the sample of topics. CIs include the"
                " variance from judgments and the variance from topics.",
            ),
            Table("topics", topic_columns, only="data", labels=3),
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
    """Score runs with uncertain judgments. Intervals include the errors of judgments.

    Parameters
    ----------
    qrels
        `ClickJudgments`; a `Qrels` whose table has ``value`` and ``se``; or a file or table with ``query_id``,
        ``doc_id``, ``grade``, ``value`` (unbiased measurement of the pair), and ``se`` (its standard error).
    runs, measures
        As in `evaluate`.
    level
        Confidence level of the intervals.
    resamples
        Number of simulations of noise.
    seed
        Seed of the simulations, which all runs share.

    Raises
    ------
    InputError
        If a judgment has no ``value`` or ``se``, or one is negative.

    Notes
    -----
    Scores from noisy values are biased: the best of ten noisy values is rarely the best document, and the ideal ranking
    scores too high. SIMEX (simulation extrapolation: Cook and Stefanski, JASA 1994) adds independent gamma noise of the
    same size once and twice, and extrapolates the scores of each topic to no noise by a parabola: ``3 s(0) - 3 s(1) +
    s(2)``. The interval over topics includes the variance of topics and judgments. The variance over simulations is the
    part of judgments (law of total variance).

    Correlated errors of judgments (residual position bias) are not included. In simulations, 95% intervals have a
    coverage of 92% to 98% if at most half of the variance of values is noise. With more noise, the correction is too
    small, and a note reports it.

    Examples
    --------
    >>> grades = [{"query_id": f"q{i}", "doc_id": doc, "grade": g, "value": g, "se": 0.2} for i in range(4)
    ...           for doc, g in (("a", 2.0), ("b", 1.0 + i))]
    >>> scores = evaluate_uncertain(grades, {f"q{i}": ["a", "b"] for i in range(4)}, "DCG@2")
    >>> round(scores.rows[0].uncorrected, 3), 0 < scores.rows[0].judgment_share < 1
    (3.577, True)
    """
    check_share("level", level)
    check_resampling(resamples, seed)
    judgments, selected_runs = measured_qrels(qrels), runs_of(runs)
    plain = evaluate_without_warnings(judgments, selected_runs, measures)
    # Hits refer to rows of the index, which has another order than the table: grades of row numbers map them.
    label_rows = judgments.regraded(np.arange(len(judgments))).index.grade.astype(np.int64)
    value, se = (judgments.table[name].to_numpy() for name in ("value", "se"))
    # Gamma noise with mean `value` and variance se**2: shape value / scale, scale se**2 / value. It stays positive.
    scale = np.divide(se**2, value, out=np.zeros(len(se)), where=value > 0)
    has_noise, rng = scale > 0, np.random.default_rng(seed)
    hits_by_run = [judge(judgments, run) for run in selected_runs]

    shape = (resamples, len(selected_runs), len(plain.measures), len(plain.query_ids))

    def score_all(values: Floats) -> Floats:
        regraded, measure_scores = judgments.regraded(values), np.empty(shape[1:])
        for r, hits in enumerate(hits_by_run):
            label_grades = values[label_rows][hits.label_row]
            noisy_hits = replace(hits, label_grade=label_grades, grade=label_grades[hits.row], qrels=regraded)
            measure_scores[r] = [measure(noisy_hits) for measure in plain.measures]
        return measure_scores

    def add_noise(values: Floats) -> Floats:
        noisy_values = values.copy()
        noisy_values[has_noise] = rng.standard_gamma(values[has_noise] / scale[has_noise]) * scale[has_noise]
        return noisy_values

    noise_1, noise_2 = np.empty(shape), np.empty(shape)
    for i in range(resamples):
        noisy_values = add_noise(value)
        # The second draw adds noise to the first, so that its variance is twice as large.
        noise_1[i], noise_2[i] = score_all(noisy_values), score_all(add_noise(noisy_values))
    simulations = score_all(value), noise_1, noise_2
    rows = tuple(_mean_rows(plain, simulations, level))
    scores_without_noise, topic_sd = _extrapolate(*simulations), noise_1.std(axis=0, ddof=1)
    topic_scores = tuple(
        (run, measure, topic, float(scores_without_noise[r, m, t]), float(topic_sd[r, m, t]))
        for r, run in enumerate(plain.run_names)
        for m, measure in enumerate(plain.measure_names)
        for t, topic in enumerate(plain.query_ids)
    )
    notes = (*_noise_notes(value, se), *plain.notes)
    sizes = len(plain.query_ids), len(judgments)
    return UncertainScores(judgments.name, *sizes, level, resamples, seed, rows, topic_scores, notes)


def _extrapolate(scores: Floats, noise_1: Floats, noise_2: Floats) -> Floats:
    """Return the SIMEX extrapolation of scores with noise added 0, 1, and 2 times."""
    # Parabola through lambda = 0, 1, and 2 (added noise variance in units of se**2), evaluated at lambda = -1.
    return 3 * scores - 3 * noise_1.mean(axis=0) + noise_2.mean(axis=0)


def _mean_rows(plain: Any, simulations: tuple[Floats, Floats, Floats], level: float) -> Iterator[UncertainMean]:
    """Yield means over topics from scores, (R, M, T), and two arrays of simulations, (B, R, M, T)."""
    plain_means = plain.aggregate()
    for r, run in enumerate(plain.run_names):
        for m, measure in enumerate(plain.measures):
            scores, noise_1, noise_2 = (simulation[..., r, m, :] for simulation in simulations)
            baseline = [simulation[..., 0, m, :] for simulation in simulations]
            mean = _decompose_mean(scores, noise_1, noise_2, measure.properties.bounds, level)
            differences = scores - baseline[0], noise_1 - baseline[1], noise_2 - baseline[2]
            difference, difference_ci, _, _, share = _decompose_mean(*differences, (np.nan, np.nan), level)
            plain_mean = plain_means[run][str(measure)]
            yield UncertainMean(run, str(measure), plain_mean, *mean, difference, difference_ci if r else None, share)


def _decompose_mean(
    scores: Floats, noise_1: Floats, noise_2: Floats, bounds: tuple[float, float], level: float
) -> tuple[float, _Interval, float, float, float]:
    """Return a mean, its interval, standard errors due to topics and judgments, and the share of judgments."""
    is_defined = ~np.isnan(scores)
    means = _extrapolate(scores, noise_1, noise_2)[is_defined]
    judgment_variances = noise_1.var(axis=0, ddof=1)[is_defined]
    n = len(means)
    if n < 2:
        return (float(means.mean()) if n else np.nan), None, np.nan, np.nan, np.nan
    # Law of total variance: the rest of the variance over topics is that of true scores.
    judgment_variance, total_variance = float(judgment_variances.sum()) / n**2, float(means.var(ddof=1)) / n
    low, high = mean_intervals(means[None], IntervalMethod("adjusted", level), bounds)[0].tolist()
    share = min(judgment_variance / total_variance, 1.0) if total_variance else 0.0
    errors = math.sqrt(max(total_variance - judgment_variance, 0.0)), math.sqrt(judgment_variance)
    ci = None if math.isnan(low) else (float(np.fmax(low, bounds[0])), float(np.fmin(high, bounds[1])))
    return float(means.mean()), ci, *errors, share


def measured_qrels(judgments: Any) -> Qrels:
    """Read judgments with ``value`` and ``se``.

    Raises
    ------
    InputError
        If they are missing or negative.
    """
    if isinstance(judgments, ClickJudgments):
        judgments = judgments.qrels
    fix = "provide query_id, doc_id, grade, value, and se (predicted human grades have no se)"
    if not isinstance(judgments, Qrels):
        path = str(judgments) if isinstance(judgments, (str, Path)) else "<judgments>"
        rows = [row for _, row in records_of(judgments, path, "judgments", fix)]
        qrels = Qrels.of(judgments if isinstance(judgments, (str, Path)) else rows)
        pairs = list(zip(*(qrels.table[name].to_pylist() for name in ("query_id", "doc_id")), strict=True))
        for name in ("value", "se"):
            try:
                value_by_pair = {(str(row["query_id"]), str(row["doc_id"])): float(row[name]) for row in rows}
                column = pa.array([value_by_pair[pair] for pair in pairs], pa.float64())
            except (KeyError, TypeError, ValueError, OverflowError):
                raise InputError(f"each judgment must have a number in the column {name}", fix=fix, path=path) from None
            qrels = replace(qrels, table=qrels.table.append_column(name, column))
        judgments = qrels
    for name in ("value", "se"):
        if name not in judgments.table.column_names:
            raise InputError(f"the judgments have no column {name}", fix=fix, path=judgments.where)
        if not (judgments.table[name].to_numpy() >= 0).all():
            raise InputError(f"each {name} must be a number of at least 0", fix=fix, path=judgments.where)
    return judgments


def _noise_notes(value: Floats, se: Floats) -> Iterator[Note]:
    variance = float(np.var(value))
    if variance and (noise_share := float(np.mean(se**2)) / variance) > _MAX_NOISE_SHARE:
        text = (
            f"{min(noise_share, 1):.0%} of the variance of judgment values is noise, so the bias correction of the mean"
            " scores is too small"
        )
        yield Note("little-evidence", text)
