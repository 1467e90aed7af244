"""Metrics of a log, with intervals over users: the path from typed tables to numbers, and metrics that are withheld."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.engine import Relation, identifier, literal
from judged.online.estimation.sums import (
    UnitSums,
    column_of,
    is_of_sessions,
    pages_of,
    quantiles,
    scale_of,
    unit_sums,
    whole_sums,
)
from judged.online.facts.pages import FactSettings, PageFacts
from judged.online.findings import bias, doubts, unequal_users, unfit
from judged.online.layout import OnlineEstimate
from judged.online.log import need, taken_as_users
from judged.online.metrics import OnlineMetric, missing, online_metric, online_metrics_named, understood, usual_metrics
from judged.online.scores import OnlineScores
from judged.online.statistics.users import bootstrap_intervals
from judged.stats.ratio import RatioSums, ratio_errors, ratio_intervals

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Floats


_BOUNDED = ("share", "reciprocal rank")  # every row lies between 0 and 1
_COUNTS = ("count", "rank")
_SIGNED = ("money", "rating")  # money can be given back, and ratings below 0


def ratios(sums: UnitSums, metrics: Sequence[OnlineMetric], level: float) -> list[OnlineEstimate]:
    """Estimate ratios over units, by slice where the sums are sliced, in the order of the metrics.

    Units with neither a numerator nor a denominator tell nothing of the ratio and are not counted.
    """
    if not metrics:
        return []
    found = moments(sums, metrics)
    return [
        estimate
        for metric in metrics
        for estimate in _estimates(metric, [row["slice"] for row in found], _parts(found, metric), level)
    ]


def moments(sums: UnitSums, metrics: Sequence[OnlineMetric]) -> list[dict[str, Any]]:
    """Add numerators, denominators, their squares and products over units: one row a slice, whole numbers.

    What several metrics share is added up once.
    """
    pairs = list(dict.fromkeys(_pair(metric) for metric in metrics))
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    code = {name: f"f{at}" for at, name in enumerate(names)}
    facts = ", ".join(f"{sums.column(name)} AS {code[name]}" for name in names)
    wanted: dict[str, str] = {}
    for name in names:
        fact = code[name]
        wanted |= {
            f"sum {name}": f"sum({fact})",
            f"square {name}": f"sum({_product(sums, (name, fact), (name, fact))})",
        }
    for name, other in pairs:
        n, d = code[name], code[other]
        wanted[f"product {name} {other}"] = f"sum({_product(sums, (name, n), (other, d))})"
        wanted[f"units {name} {other}"] = f"sum(CASE WHEN {n} <> 0 OR {d} <> 0 THEN 1 ELSE 0 END)"
    slices, group = ("slice, ", "GROUP BY slice ORDER BY slice") if sums.sliced else ("", "")
    columns = ", ".join(f"CAST({total} AS VARCHAR) AS m{at}" for at, total in enumerate(wanted.values()))
    found = sums.table.engine.rows(f"SELECT {slices}{columns} FROM (SELECT {slices}{facts} FROM {sums.table}) {group}")
    return [
        {"slice": row.get("slice"), **{name: int(row[f"m{at}"] or 0) for at, name in enumerate(wanted)}}
        for row in found
    ]


def _product(sums: UnitSums, *facts: tuple[str, str]) -> str:
    """Multiply two sums in a type that the product fits into: that of two counts of pages fits into 64 bits."""
    few = sums.packing is not None and all(name in sums.packing.flags for name, _ in facts)
    product = " * ".join(fact if few else f"CAST({fact} AS HUGEINT)" for _, fact in facts)
    return f"CAST({product} AS HUGEINT)" if few else product


def ratio_sums(found: Sequence[dict[str, Any]], metric: OnlineMetric) -> dict[str | None, RatioSums]:
    """Give the sums of one metric by slice, in its unit, out of `moments`."""
    made = _parts(found, metric)
    order = ("units", "n", "d", "nn", "dd", "nd")
    return {row["slice"]: RatioSums(*(float(made[part][at]) for part in order)) for at, row in enumerate(found)}


def shared_products(
    sums: UnitSums, metrics: Sequence[OnlineMetric], unit: str, first: str, second: str
) -> dict[OnlineMetric, tuple[float, float, float, float]]:
    """Add over the units that two slices share the products of a metric's sums: nn, nd, dn, dd of `correlation`."""
    pairs = list(dict.fromkeys(map(_pair, metrics)))
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    facts = ", ".join(f"{sums.column(name)} AS f{at}" for at, name in enumerate(names))
    of = {name: f"f{at}" for at, name in enumerate(names)}
    products = [(x, y) for n, d in pairs for x in (n, d) for y in (n, d)]
    added = ", ".join(
        f"CAST(sum(CAST(a.{of[x]} AS HUGEINT) * b.{of[y]}) AS VARCHAR) AS m{at}" for at, (x, y) in enumerate(products)
    )
    sides = (
        f"(SELECT {identifier(unit)} AS unit, {facts} FROM {sums.table} WHERE slice = {literal(name)})"
        for name in (first, second)
    )
    a, b = sides
    row = sums.table.engine.rows(f"SELECT {added} FROM {a} AS a JOIN {b} AS b ON a.unit = b.unit")[0]
    found = dict(zip(products, (int(value or 0) for value in row.values()), strict=True))
    made: dict[OnlineMetric, tuple[float, float, float, float]] = {}
    for metric in metrics:
        (n, d), scale = _pair(metric), scale_of(metric)
        made[metric] = (found[n, n] / scale**2, found[n, d] / scale, found[d, n] / scale, float(found[d, d]))
    return made


def interval_kind(metric: OnlineMetric) -> dict[str, bool]:
    """Say how the interval of a metric's ratio is made, as `judged.stats.ratio.ratio_interval` asks."""
    return {"share": metric.unit in _BOUNDED, "counted": metric.unit in _COUNTS}


def _pair(metric: OnlineMetric) -> tuple[str, str]:
    numerator, denominator = metric.columns()
    return column_of(numerator), column_of(denominator)


def _parts(found: Sequence[dict[str, Any]], metric: OnlineMetric) -> dict[str, Floats]:
    """Give the moments of one metric as arrays over slices, in its unit."""
    name, other = _pair(metric)
    scale = scale_of(metric)
    columns = {"n": (f"sum {name}", scale), "d": (f"sum {other}", 1), "nn": (f"square {name}", scale**2)}
    columns |= {"dd": (f"square {other}", 1), "nd": (f"product {name} {other}", scale)}
    columns |= {"units": (f"units {name} {other}", 1)}
    return {part: np.array([row[column] / by for row in found]) for part, (column, by) in columns.items()}


def _estimates(
    metric: OnlineMetric, slices: Sequence[str | None], made: dict[str, Floats], level: float
) -> list[OnlineEstimate]:
    """Give the estimates of one metric over slices."""
    units, n, d, dd = made["units"], made["n"], made["d"], made["dd"]
    errors = ratio_errors(units, n, d, made["nn"], dd, made["nd"])
    with np.errstate(divide="ignore", invalid="ignore"):
        values, effective = np.where(d != 0, n / d, np.nan), d**2 / dd
    share, counted = np.array(metric.unit in _BOUNDED), np.array(metric.unit in _COUNTS)
    low, high = ratio_intervals(
        values, errors, units, effective, level, share=share, counted=counted, signed=metric.unit == "rating"
    )
    low = low if metric.unit in _SIGNED else np.maximum(low, 0.0)
    return [
        OnlineEstimate(
            metric=metric,
            slice=slices[at],
            value=float(values[at]),
            low=float(low[at]),
            high=float(high[at]),
            error=float(errors[at]),
            numerator=float(n[at]),
            denominator=float(d[at]),
            units=int(units[at]),
            method=_method(metric, float(values[at]), float(low[at])),
            effective_units=float(effective[at]),
        )
        for at in range(len(slices))
    ]


def _method(metric: OnlineMetric, value: float, low: float) -> Any:
    if np.isnan(low):
        return "none"
    return "exact" if metric.unit in _BOUNDED and value in {0.0, 1.0} else "delta"


def with_bootstrap(
    estimates: Sequence[OnlineEstimate], sums: UnitSums, level: float, *, resamples: int, seed: int
) -> list[OnlineEstimate]:
    """Give the same estimates with intervals of the bootstrap over units, one slice at a time.

    Shares that are 0 or 1 for all units keep their exact interval: drawing equal units anew says nothing. What the
    draws cannot bound keeps its interval of the delta method.
    """
    drawn: dict[tuple[str, str | None], OnlineEstimate] = {}
    for value in dict.fromkeys(one.slice for one in estimates):
        chosen = [one for one in estimates if one.slice == value and one.method == "delta"]
        if not chosen:
            continue
        drawn_from = sums_of_units(sums, [one.metric for one in chosen], value)
        limits = bootstrap_intervals(*drawn_from, level=level, resamples=resamples, seed=seed)
        for one, (low, high) in zip(chosen, limits.tolist(), strict=True):
            # 0, 1 and infinity are what draws are cut at, unless the value is it
            cut = (low == 0.0 and one.value != 0.0) or (high == 1.0 and one.value != 1.0)
            if math.isfinite(low) and math.isfinite(high) and not cut:
                drawn[str(one.metric), value] = replace(one, low=low, high=high, method="bootstrap")
    return [drawn.get((str(one.metric), one.slice), one) for one in estimates]


def sums_of_units(sums: UnitSums, metrics: Sequence[OnlineMetric], group: str | None = None) -> tuple[Floats, Floats]:
    """Fetch the sums of each unit, of one slice if it is named: (units, metrics) numerators and denominators."""
    names = sorted({column_of(name) for metric in metrics for name in metric.columns()})
    columns = ", ".join(f"{sums.column(name)} AS f{at}" for at, name in enumerate(names))
    where = "" if group is None else f"WHERE slice = {literal(group)}"
    found = sums.table.engine.arrow(f"SELECT {columns} FROM {sums.table} {where} ORDER BY ALL")
    facts = {name: found[f"f{at}"].to_numpy().astype(np.float64) for at, name in enumerate(names)}
    pairs = [(metric, *_pair(metric)) for metric in metrics]
    numerators = np.stack([facts[name] / scale_of(metric) for metric, name, _ in pairs], axis=1)
    return numerators, np.stack([facts[name] for _, _, name in pairs], axis=1)


_Found: TypeAlias = Mapping[str, Sequence["OnlineEstimate"]]
_ALL_0 = {
    "first_click_s": "clicks have the time of their page",
    "latency_s": "the log says of every page that the engine took no time",
}
"""Durations that are 0 wherever they are known, by their column: their clock is not that of what they measure."""


def tellable(
    wanted: Sequence[OnlineMetric], log: InteractionLog, unit: str
) -> tuple[tuple[OnlineMetric, ...], tuple[tuple[OnlineMetric, str], ...]]:
    """Part the metrics that this log can tell from those that it cannot, with the reason."""
    has = log.has | ({"clock"} if log.has_time else set()) | ({"dates"} if log.has_time and log.dated else set())
    reasons = {
        one: missing(one, has)
        or ("sessions are the unit here, not users" if (unit, one.row) == ("session", "user") else "")
        for one in wanted
    }
    told = tuple(one for one in wanted if not reasons[one])
    return told, tuple((one, why) for one, why in reasons.items() if why)


def not_there(told: Sequence[OnlineMetric], found: _Found) -> dict[OnlineMetric, str]:
    """Find what nobody asked for and this log has nothing of."""
    empty = [one for one in told if all(each.denominator == 0 for each in found.get(str(one), ()))]
    short = [one for one in told if all(math.isnan(each.value) for each in found.get(str(one), ()))]
    return {
        **dict.fromkeys(short, "nothing of it was watched for so long"),
        **dict.fromkeys(empty, "the log has nothing that it could be counted of"),
    }


def not_measured(told: Sequence[OnlineMetric], found: _Found) -> dict[OnlineMetric, str]:
    """Find durations that are 0 on every row: they were not measured."""
    of = {one: [each for each in found.get(str(one), ()) if each.slice is None] for one in told}
    return {
        one: _ALL_0[one.columns()[0]]
        for one, whole in of.items()
        if one.columns()[0] in _ALL_0 and whole and all(map(_is_0_everywhere, whole))
    }


def _is_0_everywhere(one: OnlineEstimate) -> bool:
    """Whether a duration is 0 on all rows: its sum is; or its quantile, and no row exceeds it."""
    if one.metric.kind == "quantile":
        return one.value == 0 and one.numerator == one.denominator
    return one.numerator == 0 and one.denominator > 0


Unit: TypeAlias = Literal["user", "session"]
Progress: TypeAlias = Callable[[str, float | None], None]
RANKS = tuple(range(1, 11))
"""The ranks of CTR by rank."""


_RANKED = tuple(online_metric(f"CTRAtRank(r={rank})") for rank in RANKS)


def online_metrics(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric | None = None,
    *,
    by: str | None = None,
    objects: Any = None,
    where: str | None = None,
    unit: Unit = "user",
    level: float = 0.95,
    interval: Literal["delta", "bootstrap"] = "delta",
    resamples: int = 2000,
    seed: int = 0,
    settings: FactSettings | None = None,
    progress: Progress | None = None,
) -> OnlineScores:
    """Compute metrics of user behavior, with intervals that respect users.

    Parameters
    ----------
    log
        The log.
    metrics
        Names such as ``PageCTR`` or ``SatisfiedClicks(t=20)``, or what they are called elsewhere (``CTR``; the policies
        of the result say which metric was meant); None: every metric that the log can tell.
    by
        What to slice by: see `slice_pages`.
    objects
        When results were made, to slice by ``freshness``: see `slice_pages`.
    where
        A condition on what is logged of pages, such as ``device == 'mobile' and page == 1``: only pages that meet it
        count, and sessions and users by these. How long a visit lasts, and what is asked next, is that of the whole
        log.
    unit
        What intervals are made over. Clicks of one user resemble one another; a plain binomial interval of clicks
        is too short, and is not offered.
    level
        Of the intervals, above 0 and below 1.
    interval
        ``delta``: the delta method over sums by unit (Deng, Knoblich and Lu, KDD 2018). ``bootstrap``: units are drawn
        anew, `resamples` times; where so few have any event that the draws bound nothing, the interval of the delta
        method stays. Quantiles and survival have their own either way.
    resamples, seed
        Of the bootstrap.
    settings
        What counts as belonging together.
    progress
        Called with what is being done and the share that is done.

    Returns
    -------
    OnlineScores
        Estimates by metric and slice, CTR by rank beside them, and what was refused.

    Raises
    ------
    MeasureError
        If there is no metric of that name.
    InputError
        If an option makes no sense, or there is no such slice.
    """
    names = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    need(log=log, metrics=names, by=by, where=where, unit=unit, level=level)
    need(interval=interval, resamples=resamples, seed=seed)
    if not isinstance(settings, FactSettings | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"settings is {settings!r:.60}", fix="give FactSettings(...)")
    settings = settings or FactSettings()
    resampling = (resamples, seed) if interval == "bootstrap" else None
    names = None if names is None else list(names)
    told, refused = tellable(usual_metrics() if names is None else online_metrics_named(names), log, unit)
    tell = progress or (lambda *_: None)
    with log.engine.scratch():
        slices, chosen, said = None, None, ""
        if by is not None or where is not None:
            from judged.online import slicing  # imports a third of all modules

            slices = None if by is None else slicing.slice_pages(log, by, objects=objects)
            chosen, said = (None, "") if where is None else slicing.pages_where(log, where)
        tell("pages", 0.1)
        by_rank = _RANKED if {"shown", "clicks", "ranks"} <= log.has else ()
        metrics = tuple({str(one): one for one in (*told, *by_rank)}.values())
        pages = pages_of(log, metrics, settings, slices=slices and slices.table, chosen=chosen)
        counts = _counts(log, chosen)
        tell("users", 0.6)
        sliced = slices is not None
        sizes = f"SELECT slice, count(*) AS pages FROM {pages.joined} GROUP BY slice"
        pages_by = {row["slice"]: row["pages"] for row in log.engine.rows(sizes)} if sliced else {}
        order = {None: 0} | {value: at for at, value in enumerate(slices.values if slices else (), 1)}
        found = _ratios(pages, metrics, unit, level, resampling, sliced=sliced)
        found += _others(pages, metrics, unit, level, slices=slices and slices.table, chosen=chosen)
    by_metric: dict[str, list[OnlineEstimate]] = {}
    for one in sorted(found, key=lambda one: order.get(one.slice, len(order))):
        by_metric.setdefault(str(one.metric), []).append(one)
    withheld = not_measured(told, by_metric) | (not_there(told, by_metric) if names is None else {})
    told, refused = tuple(one for one in told if one not in withheld), (*refused, *withheld.items())
    policies = {
        **dict(understood(names or ())), **({"where": said} if said else {}), **dict(log.policies),
        **dict(settings.policies()), **dict(taken_as_users(log)),
        **({"bootstrap": f"{resamples:,} resamples, seed {seed}"} if resampling else {}),
        **({"slices": slices.note} if slices and slices.note else {}),
    }  # fmt: skip
    estimates = tuple(one for metric in told for one in by_metric.get(str(metric), []))
    return OnlineScores(
        log=log.name,
        layout=log.layout,
        estimates=estimates,
        by=by,
        slices=tuple((value, pages_by[value]) for value in (slices.values if slices else ()) if value in pages_by),
        unit=unit,
        level=level,
        interval=interval,
        counts=counts,
        ranks=tuple(
            replace(one, rank=int(metric.parameters["r"] or 0))
            for metric in _RANKED
            for one in by_metric.get(str(metric), [])
            if one.denominator > 0
        ),
        refused=refused,
        policies=tuple(policies.items()),
        findings=log.findings,
        notes=(
            *unfit(log.name, doubts(log.accounts, log.findings)),
            *bias(told),
            *unequal_users(estimates, unit),
        ),
    )


def _ratios(
    pages: PageFacts,
    metrics: Sequence[OnlineMetric],
    unit: Unit,
    level: float,
    resampling: tuple[int, int] | None,
    *,
    sliced: bool,
) -> list[OnlineEstimate]:
    """Estimate ratios and totals by the delta method, or draw units anew."""
    found: list[OnlineEstimate] = []
    for sums, of in unit_sums(pages, [one for one in metrics if one.kind in {"ratio", "total"}], unit, sliced=sliced):
        for part in (whole_sums(pages, sums, of, unit), sums) if sliced else (sums,):
            estimates = ratios(part, of, level)
            if resampling is not None:
                from judged.online.estimation.online_metrics import with_bootstrap

                estimates = with_bootstrap(estimates, part, level, resamples=resampling[0], seed=resampling[1])
            found += [_total(one) if one.metric.kind == "total" else one for one in estimates]
    return found


def _total(one: OnlineEstimate) -> OnlineEstimate:
    """Make the sum of what is a ratio to the units: as many of them taken for granted."""
    n = one.denominator
    return replace(one, value=one.numerator, low=one.low * n, high=one.high * n, error=one.error * n)


def _others(
    pages: PageFacts,
    metrics: Sequence[OnlineMetric],
    unit: Unit,
    level: float,
    *,
    slices: Relation | None,
    chosen: Relation | None,
) -> list[OnlineEstimate]:
    """Estimate quantiles, and read metrics off the Kaplan-Meier curves of visits and of how long users stay away."""
    of_quantiles = [one for one in metrics if one.kind == "quantile"]
    timed = pages.select({name for one in of_quantiles for name in one.columns()})
    found = quantiles(timed, of_quantiles, unit, level, sliced=slices is not None)
    lasting = [one for one in metrics if one.kind.startswith("survival")]
    if lasting:
        from judged.online.estimation.survival import absences, read_off, visits

        how: Any = {"level": level, "sliced": slices is not None}
        if of_visits := [one for one in lasting if not is_of_sessions(one)]:
            found += read_off(visits(pages.clicks, slices, chosen), of_visits, unit=unit, **how)
        if of_users := [one for one in lasting if is_of_sessions(one)]:
            found += read_off(absences(pages.log, slices, chosen), of_users, unit="user", **how)
    return found


def _counts(log: InteractionLog, chosen: Relation | None) -> tuple[tuple[str, int], ...]:
    among = "" if chosen is None else f"WHERE serp IN (SELECT serp FROM {chosen})"
    found = log.engine.rows(f"""
        SELECT count(*) AS pages, (SELECT count(*) FROM {log.event} {among}) AS events,
            count(DISTINCT session) AS sessions, count(DISTINCT "user") AS users
        FROM {log.serp} {among}""")[0]
    return tuple(found.items())
