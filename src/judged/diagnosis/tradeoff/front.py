"""`tradeoff`: what runs gain against what they cost, and which of them are worth their cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.tradeoff.answer import Tradeoff, TradeoffRow
from judged.diagnosis.tradeoff.costs import Costs
from judged.diagnosis.tradeoff.pareto import dominators
from judged.errors import InputError, MeasureError
from judged.evaluation import Scores
from judged.measures import parse
from judged.notes import Note, first_few
from judged.stats.paired import paired_tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged._types import Floats
    from judged.measures import Measure
    from judged.stats.results import Difference


def tradeoff(
    scores: Scores | str | Path,
    costs: Any,
    *,
    measure: str | Measure | None = None,
    baseline: str | None = None,
    cost: str | Iterable[str] | None = None,
    more_is_better: str | Iterable[str] = (),
    level: float = 0.95,
    test: str = "randomisation",
    resamples: int = 10_000,
    seed: int = 0,
) -> Tradeoff:
    """Set what runs score against what they cost.

    Parameters
    ----------
    scores
        What `evaluate` returned, or a file that `Scores.save` wrote.
    costs
        ``{run: {"latency_ms": 12.5, ...}}``, a data frame, a list of dicts, or a file with a column ``run``.
        What is not known is left out of the comparison, and never taken for 0.
    measure
        One of the scores' measures; None: the first.
    baseline
        The run that gains and costs are compared with; None: the cheapest by the first cost.
    cost
        Which costs count; None: all.
    more_is_better
        Those of them of which more is better, such as requests a second.
    level
        Of intervals.
    test
        Which paired test's interval a difference has: ``randomisation``, ``t``, ``bootstrap``, ``bca`` or
        ``studentised``.
    resamples, seed
        Of intervals by resampling.

    Returns
    -------
    Tradeoff

    Raises
    ------
    InputError
        If costs cannot be read, none is of a run that was scored, or a name is unknown.
    MeasureError
        If the measure is no mean over topics, or neither better high nor low.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> fast, slow = ({topic: docs for topic in qrels} for docs in (["x", "d"], ["d"]))
    >>> scores = evaluate(qrels, {"fast": fast, "slow": slow}, "RR")
    >>> found = tradeoff(scores, {"fast": {"ms": 10, "rps": 90}, "slow": {"ms": 35, "rps": 40}}, more_is_better="rps")
    >>> found.front, found.baseline
    (('fast', 'slow'), 'fast')
    >>> slow = found.row("slow")
    >>> slow.gain, slow.cost_change, slow.per_unit  # 0.5 for 25 ms, and for 50 requests a second given up
    (0.5, {'ms': 25.0, 'rps': -50.0}, {'ms': 0.02, 'rps': 0.01})
    """
    table = scores if isinstance(scores, Scores) else Scores.load(scores)
    at = _measure(table, measure)
    known = Costs.of(costs)
    names, more = _named(cost, known.names, known.where), _named(more_is_better or (), known.names, known.where)
    names = names or known.names
    runs = table.run_names
    matrix = np.array([[known.by_run.get(run, {}).get(name, math.nan) for name in names] for run in runs])
    if np.isnan(matrix).all():
        some = ", ".join(list(known.by_run)[:5])
        problem = f"no run that was scored has a {' or '.join(names)}: the costs are of {some}"
        raise InputError(problem, fix=f"call them as the scores do: {', '.join(runs[:5])}", path=known.where)
    dearer = matrix * np.array([-1.0 if name in more else 1.0 for name in names])
    base = _baseline(runs, baseline, dearer)
    pairs = [(one, two) for one in range(len(runs)) for two in range(len(runs)) if one < two]
    found = _differences(table.values[:, at], pairs, test, level, resamples, seed)
    estimates = {
        one.run: one for one in table.estimates(level=level, seed=seed) if one.measure == table.measure_names[at]
    }
    values = np.array([estimates[run].value for run in runs])
    sign = 1.0 if table.measures[at].properties.higher_is_better else -1.0
    order = np.lexsort((values * -sign, dearer[:, 0]))  # what has no cost comes last
    rows = [
        TradeoffRow(
            run=runs[row],
            value=float(values[row]),
            interval=estimates[runs[row]].ci,
            topics=estimates[runs[row]].topics,
            costs={name: _known(value) for name, value in zip(names, matrix[row].tolist(), strict=True)},
            **_against(row, base, found, matrix, dearer, names, sign),
            **_place(row, values * sign, dearer, found, sign, runs),
        )
        for row in order.tolist()
    ]
    return Tradeoff(
        measure=table.measure_names[at],
        higher_is_better=sign > 0,
        costs=names,
        more_is_better=tuple(name for name in names if name in more),
        baseline=runs[base],
        level=level,
        rows=tuple(rows),
        provenance=table.provenance,
        notes=(*table.notes, *_notes(known, runs, rows)),
    )


def _measure(table: Scores, measure: str | Measure | None) -> int:
    """Find the place of a measure, and refuse one that has no mean to compare."""
    name = table.measure_names[0] if measure is None else str(parse(measure))
    if name not in table.measure_names:
        raise InputError(f"{name} was not evaluated", fix=f"one of {', '.join(table.measure_names)}")
    at = table.measure_names.index(name)
    known = table.measures[at]
    if known.entry.aggregate != "mean" or known.properties.higher_is_better is None:
        why = "is neither better high nor low" if known.entry.aggregate == "mean" else "is no mean over topics"
        raise MeasureError(f"{name} {why}. Fix: take another measure, such as nDCG@10 or AP")
    return at


def _named(given: str | Iterable[str] | None, known: Sequence[str], where: str) -> tuple[str, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in known:
            raise InputError(f"no cost {name!r}", fix=f"one of {', '.join(known)}", path=where)
    return tuple(dict.fromkeys(names))


def _baseline(runs: Sequence[str], baseline: str | None, dearer: Floats) -> int:
    if baseline is None:
        first = next(column for column in dearer.T if not np.isnan(column).all())
        return int(np.nanargmin(first))
    if baseline not in runs:
        raise InputError(f"no run {baseline!r} to be the baseline", fix=f"one of {', '.join(runs)}")
    return list(runs).index(baseline)


Differences = dict[tuple[int, int], "Difference"]


def _differences(
    values: Floats, pairs: list[tuple[int, int]], test: str, level: float, resamples: int, seed: int
) -> Differences:
    """Compare every two runs; (one, two) is the second minus the first."""
    found = paired_tests(values, pairs, test, level=level, resamples=resamples, seed=seed)
    if pairs and all(one.interval is None for one in found) and found[0].n > 1:
        raise InputError(f"the test {test!r} gives no interval", fix="take randomisation, t or bootstrap")
    return dict(zip(pairs, found, strict=True))


def _between(found: Differences, one: int, two: int) -> tuple[float, tuple[float, float] | None]:
    """Give the mean of the second run minus that of the first, and its interval."""
    known = found[min(one, two), max(one, two)]
    limits = known.interval
    if one < two:
        return known.difference, limits
    return 0.0 - known.difference, None if limits is None else (0.0 - limits[1], 0.0 - limits[0])


def _against(
    row: int, base: int, found: Differences, matrix: Floats, dearer: Floats, names: Sequence[str], sign: float
) -> dict[str, Any]:
    """Set one run against the baseline."""
    if row == base:
        nothing = dict.fromkeys(names)
        return {"gain": None, "gain_interval": None, "cost_change": nothing, "per_unit": nothing}
    gain, limits = _between(found, base, row)
    change = (matrix[row] - matrix[base]).tolist()
    worse = (dearer[row] - dearer[base]).tolist()
    ratio = [abs(gain / one) if sign * gain * one > 0 else math.nan for one in worse]
    return {
        "gain": gain,
        "gain_interval": limits,
        "cost_change": {name: _known(value) for name, value in zip(names, change, strict=True)},
        "per_unit": {name: _known(value) for name, value in zip(names, ratio, strict=True)},
    }


def _place(
    row: int, values: Floats, dearer: Floats, found: Differences, sign: float, runs: Sequence[str]
) -> dict[str, Any]:
    """Tell whether a run is on the front, and how sure that is."""
    if np.isnan(dearer[row]).any() or math.isnan(values[row]):
        return {"front": None, "sure": False, "rivals": ()}
    best_first = np.argsort(-values, kind="stable")
    cheaper = (dearer <= dearer[row]).all(axis=1)  # a cost that is not known is no lower one
    cheaper[row] = False
    ruling = best_first[(cheaper & dominators(row, values, dearer))[best_first]].tolist()
    if ruling:
        surely = [one for one in ruling if _surely(row, one, found, sign)]
        return {"front": False, "sure": bool(surely), "rivals": tuple(runs[one] for one in surely or ruling)}
    close = [
        one for one in best_first[cheaper[best_first]].tolist() if not _surely(one, row, found, sign, strictly=True)
    ]
    return {"front": True, "sure": not close, "rivals": tuple(runs[one] for one in close)}


def _surely(worse: int, better: int, found: Differences, sign: float, *, strictly: bool = False) -> bool:
    """Whether the interval of the paired difference leaves no doubt; the same scores on every topic are no doubt."""
    _, limits = _between(found, worse, better)
    if limits is None or any(map(math.isnan, limits)):
        return False
    low = limits[0] if sign > 0 else -limits[1]
    return low > 0 or (not strictly and limits == (0.0, 0.0))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _notes(known: Costs, runs: Sequence[str], rows: Sequence[TradeoffRow]) -> tuple[Note, ...]:
    without = [row.run for row in rows if row.front is None]
    others = [run for run in known.by_run if run not in runs]
    said = (
        ("costs-missing", without, "without all costs, and so not on the front"),
        ("costs-unused", others, "costs of runs that were not scored"),
        ("costs-no-number", known.left_out, "columns without a number are no costs"),
    )
    return tuple(Note(rule, f"{text}: {first_few(names)}") for rule, names, text in said if names)
