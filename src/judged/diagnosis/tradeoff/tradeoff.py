"""`tradeoff`: what runs gain against what they cost, and which of them are worth their cost."""

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
from judged.data.run import run_named
from judged.data.topic_files import refuse_wide
from judged.diagnosis.tradeoff.answer import Tradeoff, TradeoffRow
from judged.errors import InputError, MeasureError
from judged.results.blocks import Note, first_few
from judged.results.decimals import meant_as_number, read_number
from judged.scoring.evaluation.evaluate import of_runs
from judged.scoring.evaluation.inputs import place_of
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

_RUN = ("run", "run_id", "run_name", "system", "system_id", "name")
_FIX = "give a column run, and a column of numbers for each cost"


@dataclass(frozen=True)
class Costs:
    """Costs by run. Immutable.

    >>> costs = Costs.of({"bm25": {"latency_ms": 12.5, "memory_gb": 1}, "rrf": {"latency_ms": 30, "memory_gb": None}})
    >>> costs.names, costs.by_run["rrf"]
    (('latency_ms', 'memory_gb'), {'latency_ms': 30.0})
    """

    names: tuple[str, ...]  # the costs, in the order in which they were given
    # `{run: {cost: number}}`; an unknown cost of a run is not in it
    by_run: Mapping[str, Mapping[str, float]] = field(repr=False)
    left_out: tuple[str, ...] = ()  # columns without a number, which are not costs
    where: str = "<costs>"

    @classmethod
    def of(cls, data: Any) -> Costs:
        """Take ``{run: {cost: number}}``, a data frame, a list of dicts, or a CSV, TSV, JSON, JSONL or Parquet file."""
        # A table has a column `run`; what is empty, None or NaN is not known.
        if isinstance(data, cls):
            return data
        where = str(data) if isinstance(data, (str, Path)) else "<costs>"
        if isinstance(data, Mapping):
            runs = cast("Mapping[Any, Any]", data).items()
            data = [{"run": run, **costs} if isinstance(costs, Mapping) else costs for run, costs in runs]
        given: dict[str, dict[str, Any]] = {}
        try:
            for _, row in records_of(data, where, "costs", _FIX, key="run"):
                costs = {str(name).strip(): value for name, value in row.items() if not _empty(value)}
                column = next((name for usual in _RUN for name in costs if name.lower() == usual), None)
                if column is None:
                    raise InputError(f"no column run among {', '.join(map(str, row))[:80]}", fix=_FIX, path=where)
                run = id_text(costs.pop(column), "run", path=where).strip()
                if given.setdefault(run, costs) is not costs:
                    raise InputError(f"run {run} appears in it twice", fix="keep one row per run", path=where)
        except pa.ArrowException as error:
            raise InputError(f"costs cannot be read from it ({error})", fix=_FIX, path=where) from None
        return cls._of(given, where)

    @classmethod
    def _of(cls, given: Mapping[str, Mapping[str, Any]], where: str) -> Costs:
        """Take the columns that hold a number; whatever else stands in one of these is refused."""
        names = list(dict.fromkeys(name for costs in given.values() for name in costs))
        refuse_wide(len(names), where)
        by_run: dict[str, dict[str, float]] = {run: {} for run in given}
        costly: list[str] = []
        for name in names:
            numbers = {run: _number(costs[name]) for run, costs in given.items() if name in costs}
            costly += [name] if any(isinstance(number, float) for number in numbers.values()) else []
            for run, number in numbers.items():
                value = given[run][name]
                if isinstance(number, float) and math.isfinite(number):
                    by_run[run][name] = number
                elif name in costly or meant_as_number(str(value)):
                    why = number if isinstance(number, str) else "is not finite"
                    problem = f"the {name} of run {run}, {value!r}, {why}"
                    raise InputError(problem, fix="write a finite number, or nothing where it is not known", path=where)
        if not costly:
            raise InputError("there is no column of costs", fix=_FIX, path=where)
        return cls(tuple(costly), by_run, tuple(name for name in names if name not in costly), where)


def _empty(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in {"", "-"}
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(value: Any) -> float | str:
    """Give a number, or why it is none."""
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
    test: str = "randomisation",
    resamples: int = 10_000,
    seed: int = 0,
    cost_intervals: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
    empty_score: float | None = None,
) -> Tradeoff:
    """Set what runs score against what they cost.

    A run dominates another one if it is better on the measure beyond chance (paired test over at least six topics,
    corrected by Holm for all pairs of runs), or cheaper beyond the noise of costs, and on all others no worse: its mean
    is at least as high, and no cost is higher beyond the noise. A run that scores no more than an empty result is never
    on the front.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    costs
        ``{run: {"latency_ms": 12.5, ...}}``, a data frame, a list of dicts, or a file with a column ``run``.
        What is not known is left out of the comparison, and never taken for 0.
    measure
        One of the scores' measures; None: the first.
    baseline
        The run that gains and costs are compared with; None: the cheapest by the first cost.
    cost
        Which costs count; None: all.
    higher_is_better
        The costs of which more is better, such as requests a second.
    level
        Of intervals.
    test
        Which paired test's interval a difference has: ``randomisation``, ``t``, ``bootstrap``, ``bca`` or
        ``studentised``.
    resamples, seed
        Of intervals and tests by resampling; of many runs, as many more as corrected p-values take.
    cost_intervals
        ``{run: {cost: (low, high)}}``: how far a cost may vary when it is measured again. Costs whose intervals overlap
        count as equal; a cost without an interval is taken as exact.
    empty_score
        Mean score of runs that return nothing relevant; None: the measure's lowest value, if more is better.

    Returns
    -------
    Tradeoff

    Raises
    ------
    InputError
        If costs cannot be read, none is of a run that was scored, or a name is unknown.
    MeasureError
        If the measure is not a mean over topics, or neither better high nor low.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> fast, slow = ({topic: docs for topic in qrels} for docs in (["x", "d"], ["d"]))
    >>> scores = evaluate(qrels, {"fast": fast, "slow": slow}, "RR")
    >>> costs = {"fast": {"ms": 10, "rps": 90}, "slow": {"ms": 35, "rps": 40}}
    >>> found = scores.tradeoff(costs, higher_is_better="rps")
    >>> found.front, found.baseline
    (('fast', 'slow'), 'fast')
    >>> slow = found.row("slow")
    >>> slow.gain, slow.cost_change, slow.per_unit  # 0.5 for 25 ms, and for 50 requests a second given up
    (0.5, {'ms': 25.0, 'rps': -50.0}, {'ms': 0.02, 'rps': 0.01})
    """
    column = _measure(scores, measure)
    known = Costs.of(costs)
    names, more = _named(cost, known.names, known.where), _named(higher_is_better or (), known.names, known.where)
    names = names or known.names
    runs = scores.run_names
    matrix = np.array([[known.by_run.get(run, {}).get(name, math.nan) for name in names] for run in runs])
    if np.isnan(matrix).all():
        some = ", ".join(list(known.by_run)[:5])
        problem = f"no run that was scored has a {' or '.join(names)}: the costs are of {some}"
        raise InputError(problem, fix=f"use the names in the scores: {', '.join(runs[:5])}", path=known.where)
    dearer = matrix * np.array([-1.0 if name in more else 1.0 for name in names])
    base = _baseline(runs, baseline, dearer)
    sign = 1.0 if scores.measures[column].properties.higher_is_better else -1.0
    estimates = [row for row in scores.estimates(level=level, seed=seed) if row.measure == scores.measure_names[column]]
    found = _differences(scores.values[:, column], test, level, resamples, seed)
    lowest = scores.measures[column].properties.bounds[0] if sign > 0 else math.nan
    values = np.array([row.value for row in estimates]) * sign
    floor = lowest if empty_score is None or sign < 0 else empty_score
    sides = _Sides(
        values,
        found.better if sign > 0 else found.better.T,
        found.same,
        *_cost_ends(matrix, cost_intervals or {}, runs, names, [name in more for name in names]),
        values <= floor + ROUNDING * max(1.0, abs(floor)),  # none where the floor is NaN
    )
    rows = _rows(estimates, found.gaps, sides, matrix, dearer, names, base, sign)
    return Tradeoff(
        measure=scores.measure_names[column],
        higher_is_better=sign > 0,
        costs=names,
        benefits=tuple(name for name in names if name in more),
        baseline=runs[base],
        level=level,
        rows=rows,
        provenance=scores.provenance,
        notes=(*scores.notes, *_notes(known, runs, rows)),
    )


tradeoff = of_runs(
    tradeoff_of_scores,
    "tradeoff",
    examples="""
    >>> from judged import tradeoff
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> fast, slow = ({topic: docs for topic in qrels} for docs in (["x", "d"], ["d"]))
    >>> tradeoff(qrels, {"fast": fast, "slow": slow}, {"fast": {"ms": 10}, "slow": {"ms": 35}}, "RR").front
    ('fast', 'slow')
    """,
)


def _measure(scores: Scores, measure: str | Measure | None) -> int:
    """Find the place of a measure, and refuse one that has no mean to compare."""
    at = 0 if measure is None else place_of(parse(measure), scores.measures)
    known = scores.measures[at]
    if known.entry.aggregate != "mean" or known.properties.higher_is_better is None:
        why = "is neither better high nor low" if known.entry.aggregate == "mean" else "is not a mean over topics"
        raise MeasureError(f"{known} {why}. Fix: take another measure, such as nDCG@10 or AP")
    return at


def _named(given: str | Iterable[str] | None, known: Sequence[str], where: str) -> tuple[str, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in known:
            raise InputError(f"no cost {name!r}", fix=f"use one of {', '.join(known)}", path=where)
    return tuple(dict.fromkeys(names))


def _baseline(runs: Sequence[str], baseline: str | None, dearer: Floats) -> int:
    if baseline is None:
        first = next(column for column in dearer.T if not np.isnan(column).all())
        return int(np.nanargmin(first))
    return list(runs).index(run_named(baseline, runs, "to use as the baseline"))


class _Differences(NamedTuple):
    """Differences of every two runs, the second (column) minus the first (row)."""

    gaps: Floats  # (3, R, R): mean and ends of the interval
    better: Bools  # (R, R): the second is higher beyond chance
    same: Bools  # (R, R): the same scores on every topic


@dataclass(frozen=True, eq=False)
class _Sides:
    """What decides which run dominates which: (R,) or (R, R), where a row is dominated by a column."""

    values: Floats  # more is better
    better: Bools
    same: Bools
    low: Floats  # (R, C): ends of costs, less is better; NaN: not known
    high: Floats
    useless: Bools  # (R,): scores no more than an empty result

    def no_dearer(self, row: int, costs: Any = slice(None)) -> Bools:
        """Mark the runs that cost no more than this one, but for noise; an unknown cost is no lower one."""
        marked = np.all(self.low[:, costs] <= self.high[row, costs], axis=1)
        marked[row] = False
        return marked

    def dominators(self, row: int, costs: Any = slice(None)) -> Bools:
        """Mark the runs that are better or cheaper than this one beyond the noise, and no worse on all others."""
        cheaper = np.any(self.high[:, costs] < self.low[row, costs], axis=1)
        behind = self.values[row] - self.values > ROUNDING * np.maximum(np.abs(self.values), abs(self.values[row]))
        return self.no_dearer(row, costs) & ~behind & (self.better[row] | cheaper) & ~self.useless


def _differences(values: Floats, test: str, level: float, resamples: int, seed: int) -> _Differences:
    """Compare every two runs."""
    size = len(values)
    pairs = list(combinations(range(size), 2))
    most = max(resamples, math.ceil(2 * len(pairs) / (1 - level)))  # else no corrected p-value could be small
    tests = paired_tests(values, pairs, test, level=level, resamples=most, seed=seed)
    if test in ("sign", "wilcoxon"):
        raise InputError(f"the test {test!r} gives no interval", fix="take randomisation, t or bootstrap")
    gaps, better, same = np.zeros((3, size, size)), np.eye(size) < 0, np.eye(size) > 0
    enough = [insufficiency(difference.n, "verdict") is None for difference in tests]
    # Of 12 equal runs, uncorrected tests of 66 pairs called some run dominated in 9 of 10 samples.
    corrected = adjust([found.p if known else math.nan for found, known in zip(tests, enough, strict=True)], "holm")
    for (first, second), difference, p in zip(pairs, tests, corrected.tolist(), strict=True):
        low, high = difference.interval or (math.nan, math.nan)
        gaps[:, first, second] = difference.difference, low, high
        gaps[:, second, first] = 0.0 - difference.difference, 0.0 - high, 0.0 - low
        significant = p <= round(1 - level, 12)  # NaN is not
        better[first, second] = significant and difference.difference > 0
        better[second, first] = significant and difference.difference < 0
        same[first, second] = same[second, first] = difference.n > 0 and not difference.differing
    return _Differences(gaps, better, same)


def _cost_ends(
    matrix: Floats,
    intervals: Mapping[str, Mapping[str, tuple[float, float]]],
    runs: Sequence[str],
    names: Sequence[str],
    more_is_better: Sequence[bool],
) -> tuple[Floats, Floats]:
    """Return the ends of each cost, (R, C), turned so that less is better; both are the cost where it is exact."""
    low, high = matrix.copy(), matrix.copy()
    for row, run in enumerate(runs):
        for column, name in enumerate(names):
            if (ends := intervals.get(run, {}).get(name)) is not None and not math.isnan(matrix[row, column]):
                low[row, column], high[row, column] = ends
    turned = np.array(more_is_better)
    return np.where(turned, -high, low), np.where(turned, -low, high)


def _rows(
    estimates: Sequence[Estimate],  # R
    gaps: Floats,  # (3, R, R)
    sides: _Sides,
    matrix: Floats,  # (R, C): costs, and the same with less always better
    dearer: Floats,
    names: Sequence[str],
    base: int,
    sign: float,
) -> tuple[TradeoffRow, ...]:
    """Set each run against the baseline, and tell whether it is on the front: cheapest first."""
    values, (difference, low, high) = sides.values, gaps
    best_first = np.argsort(-values, kind="stable")
    rows: list[TradeoffRow] = []
    for row in np.lexsort((-values, dearer[:, 0])).tolist():  # what has no cost comes last
        estimate, gain, own = estimates[row], float(difference[base, row]), row == base
        no_dearer, useless = sides.no_dearer(row), bool(sides.useless[row])
        ruling = best_first[sides.dominators(row)[best_first]]
        sure = ruling[(sides.better | sides.same)[row, ruling]]
        alike = no_dearer & np.array([sides.no_dearer(other)[row] for other in range(len(values))]) & sides.same[row]
        rivals = (
            (sure if len(sure) else ruling)
            if len(ruling)
            else best_first[(no_dearer & ~sides.better[:, row] & ~alike & ~sides.useless)[best_first]]
        )
        placed = not np.isnan([*dearer[row], values[row]]).any()
        change, worse = (costs[row] - (math.nan if own else costs[base]) for costs in (matrix, dearer))
        per_unit = [abs(gain / by) if sign * gain * by > 0 else math.nan for by in worse.tolist()]
        interval = float(low[base, row]), float(high[base, row])
        rows.append(
            TradeoffRow(
                run=estimate.run,
                value=estimate.value,
                interval=estimate.ci,
                n=estimate.n,
                costs=_known(names, matrix[row].tolist()),
                gain=None if own else gain,
                gain_interval=None if own or math.isnan(interval[0]) else interval,
                cost_change=_known(names, change.tolist()),
                per_unit=_known(names, per_unit),
                front=not len(ruling) and not useless if placed else None,
                sure=placed and (useless or bool(len(sure) if len(ruling) else not len(rivals))),
                rivals=tuple(estimates[at].run for at in rivals.tolist()) if placed and not useless else (),
                equivalent=tuple(estimates[at].run for at in best_first[alike[best_first]].tolist()) if placed else (),
                useless=useless,
                fronts={name: not useless and not sides.dominators(row, [at]).any() for at, name in enumerate(names)},
            )
        )
    return tuple(rows)


def _known(names: Sequence[str], values: Iterable[float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in zip(names, values, strict=True)}


def _notes(known: Costs, runs: Sequence[str], rows: Sequence[TradeoffRow]) -> tuple[Note, ...]:
    without = [row.run for row in rows if row.front is None]
    others = [run for run in known.by_run if run not in runs]
    said = (
        ("costs-missing", without, "without all costs, and so not on the front"),
        ("costs-unused", others, "costs of runs that were not scored"),
        ("costs-no-number", known.left_out, "columns without a number are not costs"),
    )
    return tuple(Note(rule, f"{text}: {first_few(names)}") for rule, names, text in said if names)
