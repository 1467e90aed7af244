"""Compare the scores of runs with their costs, and find the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from judged.data.index import id_text
from judged.data.records import records_of
from judged.data.run import find_run_name
from judged.data.topic_files import check_column_count
from judged.diagnosis.tradeoff.answer import Tradeoff, TradeoffRow
from judged.errors import InputError, MeasureError
from judged.results.blocks import Note, first_few
from judged.results.decimals import read_number, resembles_number
from judged.results.spelling import use_one_of
from judged.scoring.evaluation.evaluate import build_run_function
from judged.scoring.evaluation.inputs import index_of_measure
from judged.scoring.measures.grammar import parse
from judged.stats.correction import adjust
from judged.stats.inputs import ROUNDING
from judged.stats.paired import paired_tests
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation import Estimate, Scores
    from judged.scoring.measures.base import Measure

_RUN_COLUMNS = ("run", "run_id", "run_name", "system", "system_id", "name")
_FIX = "use a column 'run', and a column of numbers for each cost"


@dataclass(frozen=True)
class Costs:
    """Costs of runs.

    >>> costs = Costs.of({"bm25": {"latency_ms": 12.5, "memory_gb": 1}, "rrf": {"latency_ms": 30, "memory_gb": None}})
    >>> costs.names, costs.by_run["rrf"]
    (('latency_ms', 'memory_gb'), {'latency_ms': 30.0})
    """

    names: tuple[str, ...]  # names of the costs, in input order
    # `{run: {cost: number}}`, without unknown costs
    by_run: Mapping[str, Mapping[str, float]] = field(repr=False)
    left_out: tuple[str, ...] = ()  # columns without a number, which are not costs
    where: str = "<costs>"

    @classmethod
    def of(cls, data: Any) -> Costs:
        """Read ``{run: {cost: number}}``, a data frame, a list of dicts, or a CSV, TSV, JSON, JSONL or Parquet file."""
        # A table has a column `run`. Empty cells, None and NaN are unknown costs.
        if isinstance(data, cls):
            return data
        source = str(data) if isinstance(data, (str, Path)) else "<costs>"
        if isinstance(data, Mapping):
            runs = cast("Mapping[Any, Any]", data).items()
            data = [{"run": run, **costs} if isinstance(costs, Mapping) else costs for run, costs in runs]
        rows: dict[str, dict[str, Any]] = {}
        try:
            for _, row in records_of(data, source, "costs", _FIX, key="run"):
                costs = {str(name).strip(): value for name, value in row.items() if not _is_empty(value)}
                run_column = next((name for label in _RUN_COLUMNS for name in costs if name.lower() == label), None)
                if run_column is None:
                    raise InputError(f"no column 'run' among {', '.join(map(str, row))[:80]}", fix=_FIX, path=source)
                run = id_text(costs.pop(run_column), "run", path=source).strip()
                if rows.setdefault(run, costs) is not costs:
                    raise InputError(f"run {run} has two rows", fix="keep one row per run", path=source)
        except pa.ArrowException as error:
            raise InputError(f"costs cannot be read ({error})", fix=_FIX, path=source) from None
        return cls._of(rows, source)

    @classmethod
    def _of(cls, rows: Mapping[str, Mapping[str, Any]], source: str) -> Costs:
        """Select the columns with numbers. Raise InputError if such a column also has other values."""
        names = list(dict.fromkeys(name for costs in rows.values() for name in costs))
        check_column_count(len(names), source)
        by_run: dict[str, dict[str, float]] = {run: {} for run in rows}
        costly: list[str] = []
        for name in names:
            numbers = {run: _parse_number(costs[name]) for run, costs in rows.items() if name in costs}
            costly += [name] if any(isinstance(number, float) for number in numbers.values()) else []
            for run, number in numbers.items():
                value = rows[run][name]
                if isinstance(number, float) and math.isfinite(number):
                    by_run[run][name] = number
                elif name in costly or resembles_number(str(value)):
                    reason = number if isinstance(number, str) else "is not finite"
                    problem = f"the {name} of run {run}, {value!r}, {reason}"
                    raise InputError(
                        problem, fix="use a finite number, or leave the cell empty if the cost is unknown", path=source
                    )
        if not costly:
            raise InputError("no column has numbers", fix=_FIX, path=source)
        return cls(tuple(costly), by_run, tuple(name for name in names if name not in costly), source)


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in {"", "-"}
    return value is None or (isinstance(value, float) and math.isnan(value))


def _parse_number(value: Any) -> float | str:
    """Parse a number. Return the problem as text if it is not one."""
    try:
        return read_number(value)
    except ValueError as error:
        return str(error)


def tradeoff_of_scores(
    scores: Scores,
    costs: Any,
    *,
    measure: str | Measure | None = None,
    baseline: str | None = None,
    cost: str | Iterable[str] | None = None,
    higher_is_better: str | Iterable[str] = (),
    level: float = 0.95,
    test: str = "randomization",
    resamples: int = 10_000,
    seed: int = 0,
    cost_intervals: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
    empty_score: float | None = None,
) -> Tradeoff:
    """Compare the scores of runs with their costs.

    A run dominates another one if it is significantly better (paired test over at least six topics, corrected by Holm
    for all pairs of runs) or cheaper beyond the noise of costs, and not worse otherwise: its mean is at least as high,
    and no cost is higher beyond the noise. A run that does not score above an empty result is never on the front.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    costs
        ``{run: {"latency_ms": 12.5, ...}}``, a data frame, a list of dicts, or a file with a column ``run``.
        Unknown costs are excluded from comparisons; they are not 0.
    measure
        One of the evaluated measures. None: the first.
    baseline
        Run that gains and costs are relative to. None: the cheapest by the first cost.
    cost
        Costs to use. None: all.
    higher_is_better
        Costs for which higher is better, such as requests per second.
    level
        Confidence level of the intervals.
    test
        Paired test that defines the interval of a difference: ``randomization``, ``t``, ``bootstrap``, ``bca`` or
        ``studentized``.
    resamples, seed
        Settings of resampling. With many runs, the number is increased so that corrected p-values can be significant.
    cost_intervals
        ``{run: {cost: (low, high)}}``: variation of a cost between measurements. Costs with overlapping intervals
        are equal; a cost without an interval is exact.
    empty_score
        Mean score of runs that return no relevant document. None: the lowest value of the measure, if higher is better.

    Returns
    -------
    Tradeoff

    Raises
    ------
    InputError
        If costs cannot be read, no scored run has a cost, or a name is unknown.
    MeasureError
        If the measure is not a mean over topics, or neither higher nor lower is better.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> fast, slow = ({topic: docs for topic in qrels} for docs in (["x", "d"], ["d"]))
    >>> scores = evaluate(qrels, {"fast": fast, "slow": slow}, "RR")
    >>> costs = {"fast": {"ms": 10, "rps": 90}, "slow": {"ms": 35, "rps": 40}}
    >>> result = scores.tradeoff(costs, higher_is_better="rps")
    >>> result.front, result.baseline
    (('fast', 'slow'), 'fast')
    >>> slow = result.row("slow")
    >>> slow.gain, slow.cost_change, slow.per_unit  # 0.5 for 25 ms, and for the loss of 50 requests per second
    (0.5, {'ms': 25.0, 'rps': -50.0}, {'ms': 0.02, 'rps': 0.01})
    """
    row = _measure_row(scores, measure)
    known_costs = Costs.of(costs)
    cost_names = _select_costs(cost, known_costs) or known_costs.names
    benefits = _select_costs(higher_is_better or (), known_costs)
    runs, by_run = scores.run_names, known_costs.by_run
    cost_matrix = np.array([[by_run.get(run, {}).get(name, math.nan) for name in cost_names] for run in runs])
    if np.isnan(cost_matrix).all():
        cost_runs = ", ".join(list(by_run)[:5])
        problem = f"no scored run has a value of {' or '.join(cost_names)}: the costs are of the runs {cost_runs}"
        raise InputError(problem, fix=f"use the run names of the scores: {', '.join(runs[:5])}", path=known_costs.where)
    signed_costs = cost_matrix * np.array([-1.0 if name in benefits else 1.0 for name in cost_names])
    baseline_row = _baseline_row(runs, baseline, signed_costs)
    sign = 1.0 if scores.measures[row].properties.higher_is_better else -1.0
    all_estimates = scores.estimates(level=level, seed=seed)
    estimates = [estimate for estimate in all_estimates if estimate.measure == scores.measure_names[row]]
    tests = _pairwise_tests(scores.values[:, row], test, level, resamples, seed)
    lowest = scores.measures[row].properties.bounds[0] if sign > 0 else math.nan
    values = np.array([estimate.value for estimate in estimates]) * sign
    floor = lowest if empty_score is None or sign < 0 else empty_score
    dominance = _DominanceData(
        values,
        tests.better if sign > 0 else tests.better.T,
        tests.same,
        *_cost_limits(cost_matrix, cost_intervals or {}, runs, cost_names, [name in benefits for name in cost_names]),
        values <= floor + ROUNDING * max(1.0, abs(floor)),  # all False if the floor is NaN
    )
    rows = _rows(estimates, tests.differences, dominance, cost_matrix, signed_costs, cost_names, baseline_row, sign)
    return Tradeoff(
        measure=scores.measure_names[row],
        higher_is_better=sign > 0,
        costs=cost_names,
        benefits=tuple(name for name in cost_names if name in benefits),
        baseline=runs[baseline_row],
        level=level,
        rows=rows,
        provenance=scores.provenance,
        notes=(*scores.notes, *_notes(known_costs, runs, rows)),
    )


tradeoff = build_run_function(
    tradeoff_of_scores,
    "tradeoff",
    examples="""
    >>> from judged import tradeoff
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> fast, slow = ({topic: docs for topic in qrels} for docs in (["x", "d"], ["d"]))
    >>> tradeoff(qrels, {"fast": fast, "slow": slow}, {"fast": {"ms": 10}, "slow": {"ms": 35}}, "RR").front
    ('fast', 'slow')
    """,
)


def _measure_row(scores: Scores, measure: str | Measure | None) -> int:
    """Return the row of a measure. Raise MeasureError if it has no mean, or no better direction."""
    row = 0 if measure is None else index_of_measure(parse(measure), scores.measures)
    selected = scores.measures[row]
    if selected.entry.aggregate != "mean" or selected.properties.higher_is_better is None:
        is_mean = selected.entry.aggregate == "mean"
        reason = "does not define whether higher is better" if is_mean else "is not a mean over topics"
        raise MeasureError(f"{selected} {reason}. Fix: use another measure, such as nDCG@10 or AP")
    return row


def _select_costs(selection: str | Iterable[str] | None, costs: Costs) -> tuple[str, ...]:
    names = () if selection is None else (selection,) if isinstance(selection, str) else tuple(selection)
    for name in names:
        if name not in costs.names:
            raise InputError(f"no cost {name!r}", fix=use_one_of(costs.names), path=costs.where)
    return tuple(dict.fromkeys(names))


def _baseline_row(runs: Sequence[str], baseline: str | None, signed_costs: Floats) -> int:
    if baseline is None:
        first_known = next(cost for cost in signed_costs.T if not np.isnan(cost).all())
        return int(np.nanargmin(first_known))
    return list(runs).index(find_run_name(baseline, runs, "to use as the baseline"))


class _PairwiseTests(NamedTuple):
    """Differences of all pairs of runs, second (column) minus first (row)."""

    differences: Floats  # (3, R, R): mean and limits of the interval
    better: Bools  # (R, R): whether the second is significantly higher
    same: Bools  # (R, R): whether all topics have the same scores


@dataclass(frozen=True, eq=False)
class _DominanceData:
    """Data for the dominance of runs: (R,), or (R, R), where the row may be dominated by the column."""

    values: Floats  # higher is better
    better: Bools
    same: Bools
    low: Floats  # low, high: (R, C): limits of costs, lower is better; NaN if unknown
    high: Floats
    scores_as_empty: Bools  # (R,): whether the score is not above that of an empty result

    def not_dearer(self, row: int, costs: Any = slice(None)) -> Bools:
        """Return a mask of the other runs that are not dearer beyond the noise; False if a cost is unknown."""
        mask = np.all(self.low[:, costs] <= self.high[row, costs], axis=1)
        mask[row] = False
        return mask

    def dominators(self, row: int, costs: Any = slice(None)) -> Bools:
        """Return a mask of the runs that are better or cheaper beyond the noise, and not worse otherwise."""
        is_cheaper = np.any(self.high[:, costs] < self.low[row, costs], axis=1)
        is_worse = self.values[row] - self.values > ROUNDING * np.maximum(np.abs(self.values), abs(self.values[row]))
        return self.not_dearer(row, costs) & ~is_worse & (self.better[row] | is_cheaper) & ~self.scores_as_empty


def _pairwise_tests(values: Floats, test: str, level: float, resamples: int, seed: int) -> _PairwiseTests:
    num_runs = len(values)
    pairs = list(combinations(range(num_runs), 2))
    # With fewer resamples, even the smallest p-value would not be significant after Holm's correction.
    resamples = max(resamples, math.ceil(2 * len(pairs) / (1 - level)))
    tests = paired_tests(values, pairs, test, level=level, resamples=resamples, seed=seed)
    if test in ("sign", "wilcoxon"):
        raise InputError(f"the test {test!r} has no confidence interval", fix="use randomization, t or bootstrap")
    differences, better, same = np.zeros((3, num_runs, num_runs)), np.eye(num_runs) < 0, np.eye(num_runs) > 0
    is_testable = [insufficiency(difference.n, "verdict") is None for difference in tests]
    # Without correction, the 66 tests of 12 equal runs found a dominated run in 9 of 10 simulated samples.
    p_values = [difference.p if ok else math.nan for difference, ok in zip(tests, is_testable, strict=True)]
    corrected = adjust(p_values, "holm")
    for (first, second), difference, p in zip(pairs, tests, corrected.tolist(), strict=True):
        low, high = difference.interval or (math.nan, math.nan)
        differences[:, first, second] = difference.difference, low, high
        differences[:, second, first] = 0.0 - difference.difference, 0.0 - high, 0.0 - low
        significant = p <= round(1 - level, 12)  # False for NaN
        better[first, second] = significant and difference.difference > 0
        better[second, first] = significant and difference.difference < 0
        same[first, second] = same[second, first] = difference.n > 0 and not difference.differing
    return _PairwiseTests(differences, better, same)


def _cost_limits(
    matrix: Floats,
    intervals: Mapping[str, Mapping[str, tuple[float, float]]],
    runs: Sequence[str],
    names: Sequence[str],
    more_is_better: Sequence[bool],
) -> tuple[Floats, Floats]:
    """Return both limits of each cost, (R, C), with the sign so that lower is better; equal for exact costs."""
    low, high = matrix.copy(), matrix.copy()
    for row, run in enumerate(runs):
        for column, name in enumerate(names):
            if (limits := intervals.get(run, {}).get(name)) is not None and not math.isnan(matrix[row, column]):
                low[row, column], high[row, column] = limits
    # A changed sign exchanges the limits of a cost.
    sign_changed = np.array(more_is_better)
    return np.where(sign_changed, -high, low), np.where(sign_changed, -low, high)


def _rows(
    estimates: Sequence[Estimate],  # R
    differences: Floats,  # (3, R, R)
    dominance: _DominanceData,
    cost_matrix: Floats,  # (R, C)
    signed_costs: Floats,  # (R, C): with the sign so that lower is better
    cost_names: Sequence[str],
    baseline: int,
    sign: float,
) -> tuple[TradeoffRow, ...]:
    """Compare each run with the baseline, and decide whether it is on the front. Cheapest first."""
    values, (difference, low, high) = dominance.values, differences
    best_first = np.argsort(-values, kind="stable")
    rows: list[TradeoffRow] = []
    for row in np.lexsort((-values, signed_costs[:, 0])).tolist():  # runs with an unknown cost (NaN) are last
        estimate, gain, is_base = estimates[row], float(difference[baseline, row]), row == baseline
        not_dearer, scores_as_empty = dominance.not_dearer(row), bool(dominance.scores_as_empty[row])
        dominators = best_first[dominance.dominators(row)[best_first]]
        confirmed = dominators[(dominance.better | dominance.same)[row, dominators]]
        as_cheap = np.array([dominance.not_dearer(other)[row] for other in range(len(values))])
        equivalent = not_dearer & as_cheap & dominance.same[row]
        rivals = (
            (confirmed if len(confirmed) else dominators)
            if len(dominators)
            else best_first[
                (not_dearer & ~dominance.better[:, row] & ~equivalent & ~dominance.scores_as_empty)[best_first]
            ]
        )
        is_placed = not np.isnan([*signed_costs[row], values[row]]).any()
        matrices = cost_matrix, signed_costs
        change, increase = (costs[row] - (math.nan if is_base else costs[baseline]) for costs in matrices)
        per_unit = [abs(gain / cost) if sign * gain * cost > 0 else math.nan for cost in increase.tolist()]
        interval = float(low[baseline, row]), float(high[baseline, row])
        equals = best_first[equivalent[best_first]].tolist()
        on_fronts = [not scores_as_empty and not dominance.dominators(row, [i]).any() for i in range(len(cost_names))]
        rows.append(
            TradeoffRow(
                run=estimate.run,
                value=estimate.value,
                interval=estimate.ci,
                n=estimate.n,
                costs=_none_for_nan(cost_names, cost_matrix[row].tolist()),
                gain=None if is_base else gain,
                gain_interval=None if is_base or math.isnan(interval[0]) else interval,
                cost_change=_none_for_nan(cost_names, change.tolist()),
                per_unit=_none_for_nan(cost_names, per_unit),
                front=not len(dominators) and not scores_as_empty if is_placed else None,
                certain=is_placed and (scores_as_empty or bool(len(confirmed) if len(dominators) else not len(rivals))),
                rivals=tuple(estimates[i].run for i in rivals.tolist()) if is_placed and not scores_as_empty else (),
                equivalent=tuple(estimates[i].run for i in equals) if is_placed else (),
                scores_as_empty=scores_as_empty,
                fronts=dict(zip(cost_names, on_fronts, strict=True)),
            )
        )
    return tuple(rows)


def _none_for_nan(names: Sequence[str], values: Iterable[float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in zip(names, values, strict=True)}


def _notes(costs: Costs, runs: Sequence[str], rows: Sequence[TradeoffRow]) -> tuple[Note, ...]:
    unplaced = [row.run for row in rows if row.front is None]
    unscored = [run for run in costs.by_run if run not in runs]
    messages = (
        ("costs-missing", unplaced, "runs not compared with the Pareto front, because a cost or the score is unknown"),
        ("costs-unused", unscored, "costs of runs that were not scored"),
        ("costs-no-number", costs.left_out, "ignored cost columns without numbers"),
    )
    return tuple(Note(rule, f"{text}: {first_few(names)}") for rule, names, text in messages if names)
