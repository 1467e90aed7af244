"""Metrics of a log with intervals over users: from typed tables to estimates, and metrics that are withheld."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.engine import Relation, identifier, literal
from judged.online.estimation.sums import (
    UnitSums,
    is_session_metric,
    metric_pages,
    numerator_scale,
    quantiles,
    sum_column,
    sums_over_slices,
    unit_sums,
)
from judged.online.facts.pages import FactSettings, PageFacts
from judged.online.findings import (
    estimated_dwell_notes,
    position_bias_notes,
    unequal_activity_notes,
    unfit_log_notes,
    unfit_reasons,
)
from judged.online.layout import OnlineEstimate
from judged.online.log import user_substitute_policy, validate
from judged.online.metrics import (
    OnlineMetric,
    default_metrics,
    lacking_data,
    online_metric,
    online_metrics_named,
    resolved_synonyms,
)
from judged.online.scores import OnlineScores
from judged.online.statistics.users import bootstrap_intervals
from judged.stats.ratio import RatioSums, ratio_errors, ratio_intervals

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Floats


# Units of metrics, by the range of their values.
_BOUNDED = ("share", "reciprocal rank")  # between 0 and 1
_COUNTS = ("count", "rank")
_SIGNED = ("money", "rating")  # refunds and ratings may be negative


def ratios(sums: UnitSums, metrics: Sequence[OnlineMetric], level: float) -> list[OnlineEstimate]:
    """Estimate ratios over units, by slice if the sums are sliced, in the order of the metrics.

    Units whose numerator and denominator are both 0 carry no information on the ratio, and are not counted.
    """
    if not metrics:
        return []
    rows = moments(sums, metrics)
    return [
        estimate
        for metric in metrics
        for estimate in _estimates(metric, [row["slice"] for row in rows], _moments_of_metric(rows, metric), level)
    ]


def moments(sums: UnitSums, metrics: Sequence[OnlineMetric]) -> list[dict[str, Any]]:
    """Sum numerators, denominators, their squares, and products over units: one row per slice, exact integers.

    Sums that several metrics share are computed once.
    """
    pairs = list(dict.fromkeys(_pair(metric) for metric in metrics))
    columns = {name: f"f{i}" for i, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    facts = ", ".join(f"{sums.column(name)} AS {column}" for name, column in columns.items())
    totals: dict[str, str] = {}
    for name, column in columns.items():
        square = _product(sums, (name, column), (name, column))
        totals |= {f"sum {name}": f"sum({column})", f"square {name}": f"sum({square})"}
    for numerator, denominator in pairs:
        n, d = columns[numerator], columns[denominator]
        pair = f"{numerator} {denominator}"
        totals[f"product {pair}"] = f"sum({_product(sums, (numerator, n), (denominator, d))})"
        totals[f"units {pair}"] = f"sum(CASE WHEN {n} <> 0 OR {d} <> 0 THEN 1 ELSE 0 END)"
    slices, group = ("slice, ", "GROUP BY slice ORDER BY slice") if sums.sliced else ("", "")
    # As text: clients read 128-bit integers as floats, which would round them.
    texts = ", ".join(f"CAST({total} AS VARCHAR) AS m{i}" for i, total in enumerate(totals.values()))
    rows = sums.table.engine.rows(f"SELECT {slices}{texts} FROM (SELECT {slices}{facts} FROM {sums.table}) {group}")
    names = list(totals)
    return [
        {"slice": row.get("slice"), **{name: int(row[f"m{i}"] or 0) for i, name in enumerate(names)}} for row in rows
    ]


def _product(sums: UnitSums, *facts: tuple[str, str]) -> str:
    """Return SQL for the product of two sums, in a type that cannot overflow."""
    # The product of two counts of pages fits into 64 bits; that of other sums may not.
    are_flags = sums.packing is not None and all(name in sums.packing.flags for name, _ in facts)
    product = " * ".join(fact if are_flags else f"CAST({fact} AS HUGEINT)" for _, fact in facts)
    return f"CAST({product} AS HUGEINT)" if are_flags else product


def ratio_sums(rows: Sequence[dict[str, Any]], metric: OnlineMetric) -> dict[str | None, RatioSums]:
    """Return the sums of one metric by slice, in its unit, from the rows of `moments`."""
    moments = _moments_of_metric(rows, metric)
    order = ("units", "n", "d", "nn", "dd", "nd")
    return {row["slice"]: RatioSums(*(float(moments[name][i]) for name in order)) for i, row in enumerate(rows)}


def shared_products(
    sums: UnitSums, metrics: Sequence[OnlineMetric], unit: str, first_slice: str, second_slice: str
) -> dict[OnlineMetric, tuple[float, float, float, float]]:
    """Sum the products of a metric's sums over the units that two slices share: nn, nd, dn, dd of `correlation`."""
    pairs = list(dict.fromkeys(map(_pair, metrics)))
    columns = {name: f"f{i}" for i, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    facts = ", ".join(f"{sums.column(name)} AS {column}" for name, column in columns.items())
    factors = [(x, y) for n, d in pairs for x in (n, d) for y in (n, d)]
    products = [f"sum(CAST(a.{columns[x]} AS HUGEINT) * b.{columns[y]})" for x, y in factors]
    totals = ", ".join(f"CAST({product} AS VARCHAR) AS m{i}" for i, product in enumerate(products))
    a, b = (
        f"(SELECT {identifier(unit)} AS unit, {facts} FROM {sums.table} WHERE slice = {literal(name)})"
        for name in (first_slice, second_slice)
    )
    # An inner join: units with only one of the slices contribute 0 to every product.
    row = sums.table.engine.rows(f"SELECT {totals} FROM {a} AS a JOIN {b} AS b ON a.unit = b.unit")[0]
    product = dict(zip(factors, (int(value or 0) for value in row.values()), strict=True))
    scaled: dict[OnlineMetric, tuple[float, float, float, float]] = {}
    for metric in metrics:
        (n, d), scale = _pair(metric), numerator_scale(metric)
        scaled[metric] = (product[n, n] / scale**2, product[n, d] / scale, product[d, n] / scale, float(product[d, d]))
    return scaled


def interval_options(metric: OnlineMetric) -> dict[str, bool]:
    """Return the options of `judged.stats.ratio.ratio_interval` for a metric."""
    return {"share": metric.unit in _BOUNDED, "counted": metric.unit in _COUNTS}


def _pair(metric: OnlineMetric) -> tuple[str, str]:
    numerator, denominator = metric.columns()
    return sum_column(numerator), sum_column(denominator)


def _moments_of_metric(rows: Sequence[dict[str, Any]], metric: OnlineMetric) -> dict[str, Floats]:
    """Return the moments of one metric as arrays over slices, in its unit."""
    n, d = _pair(metric)
    scale = numerator_scale(metric)
    columns = {"n": (f"sum {n}", scale), "d": (f"sum {d}", 1), "nn": (f"square {n}", scale**2)}
    columns |= {"dd": (f"square {d}", 1), "nd": (f"product {n} {d}", scale), "units": (f"units {n} {d}", 1)}
    return {moment: np.array([row[column] / divisor for row in rows]) for moment, (column, divisor) in columns.items()}


def _estimates(
    metric: OnlineMetric, slices: Sequence[str | None], moments: dict[str, Floats], level: float
) -> list[OnlineEstimate]:
    units, n, d, dd = moments["units"], moments["n"], moments["d"], moments["dd"]
    errors = ratio_errors(units, n, d, moments["nn"], dd, moments["nd"])
    with np.errstate(divide="ignore", invalid="ignore"):
        values, effective = np.where(d != 0, n / d, np.nan), d**2 / dd
    share, counted = np.array(metric.unit in _BOUNDED), np.array(metric.unit in _COUNTS)
    low, high = ratio_intervals(
        values, errors, units, effective, level, share=share, counted=counted, signed=metric.unit == "rating"
    )
    # The delta method does not know that counts and durations are not negative.
    low = low if metric.unit in _SIGNED else np.maximum(low, 0.0)
    return [
        OnlineEstimate(
            metric=metric,
            slice=slices[i],
            value=float(values[i]),
            low=float(low[i]),
            high=float(high[i]),
            error=float(errors[i]),
            numerator=float(n[i]),
            denominator=float(d[i]),
            units=int(units[i]),
            method=_method(metric, float(values[i]), float(low[i])),
            effective_units=float(effective[i]),
        )
        for i in range(len(slices))
    ]


def _method(metric: OnlineMetric, value: float, low: float) -> Any:
    if np.isnan(low):
        return "none"
    return "exact" if metric.unit in _BOUNDED and value in {0.0, 1.0} else "delta"


def with_bootstrap(
    estimates: Sequence[OnlineEstimate], sums: UnitSums, level: float, *, resamples: int, seed: int
) -> list[OnlineEstimate]:
    """Replace the intervals of estimates by bootstrap intervals over units.

    Shares that are 0 or 1 for all units keep their exact interval: resamples of equal units do not vary. If the
    resamples do not bound a ratio, it keeps its interval of the delta method.
    """
    resampled: dict[tuple[str, str | None], OnlineEstimate] = {}
    for slice_name in dict.fromkeys(estimate.slice for estimate in estimates):
        in_slice = [estimate for estimate in estimates if (estimate.slice, estimate.method) == (slice_name, "delta")]
        if not in_slice:
            continue
        numerators, denominators = sums_of_units(sums, [estimate.metric for estimate in in_slice], slice_name)
        limits = bootstrap_intervals(numerators, denominators, level=level, resamples=resamples, seed=seed)
        for estimate, (low, high) in zip(in_slice, limits.tolist(), strict=True):
            # A limit of 0, 1, or infinity that is not the value itself is a bound of the range: too few resamples vary.
            is_clipped = (low == 0.0 and estimate.value != 0.0) or (high == 1.0 and estimate.value != 1.0)
            if math.isfinite(low) and math.isfinite(high) and not is_clipped:
                resampled[str(estimate.metric), slice_name] = replace(estimate, low=low, high=high, method="bootstrap")
    return [resampled.get((str(estimate.metric), estimate.slice), estimate) for estimate in estimates]


def sums_of_units(
    sums: UnitSums, metrics: Sequence[OnlineMetric], slice_name: str | None = None
) -> tuple[Floats, Floats]:
    """Return the numerators and denominators of each unit, of one slice if given; both of shape (units, metrics)."""
    names = sorted({sum_column(name) for metric in metrics for name in metric.columns()})
    columns = ", ".join(f"{sums.column(name)} AS f{i}" for i, name in enumerate(names))
    where = "" if slice_name is None else f"WHERE slice = {literal(slice_name)}"
    table = sums.table.engine.arrow(f"SELECT {columns} FROM {sums.table} {where} ORDER BY ALL")
    facts = {name: table[f"f{i}"].to_numpy().astype(np.float64) for i, name in enumerate(names)}
    pairs = [(metric, *_pair(metric)) for metric in metrics]
    numerators = np.stack([facts[name] / numerator_scale(metric) for metric, name, _ in pairs], axis=1)
    return numerators, np.stack([facts[name] for _, _, name in pairs], axis=1)


_EstimatesByMetric: TypeAlias = Mapping[str, Sequence["OnlineEstimate"]]
# Durations that are 0 if their clock is too coarse, or is that of the page, with the reason to withhold them.
_ALL_0 = {
    "first_click_s": "each click has the same time as its page",
    "time_to_success": "each success has the same time as the first page of its session",
    "latency_s": "the latency is 0 on every page",
}


def split_supported(
    metrics: Sequence[OnlineMetric], log: InteractionLog, unit: str
) -> tuple[tuple[OnlineMetric, ...], tuple[tuple[OnlineMetric, str], ...]]:
    """Split metrics into those the log supports, and those it does not, with the reasons."""
    has = log.has | ({"clock"} if log.has_time else set()) | ({"dates"} if log.has_time and log.dated else set())
    wrong_unit = "it requires unit=user"
    wrong = {metric: wrong_unit for metric in metrics if (unit, metric.row) == ("session", "user")}
    reasons = {metric: lacking_data(metric, has) or wrong.get(metric, "") for metric in metrics}
    supported = tuple(metric for metric in metrics if not reasons[metric])
    return supported, tuple((metric, reason) for metric, reason in reasons.items() if reason)


def metrics_without_data(metrics: Sequence[OnlineMetric], estimates: _EstimatesByMetric) -> dict[OnlineMetric, str]:
    """Return the metrics without any data, with the reason."""
    rows = {metric: estimates.get(str(metric), ()) for metric in metrics}
    short = [metric for metric in metrics if all(math.isnan(row.value) for row in rows[metric])]
    empty = [metric for metric in metrics if all(row.denominator == 0 for row in rows[metric])]
    return {
        **dict.fromkeys(short, "no observation lasts long enough for this value"),
        **dict.fromkeys(empty, "its denominator is 0 in this log"),
    }


def unmeasured_durations(metrics: Sequence[OnlineMetric], estimates: _EstimatesByMetric) -> dict[OnlineMetric, str]:
    """Return the metrics whose durations are 0 on every row, which means that they were not measured."""
    reasons: dict[OnlineMetric, str] = {}
    for metric in metrics:
        reason = _ALL_0.get(re.sub(r"_[\d.]+$", "", metric.columns()[0]))  # without the value of a parameter
        overall = [row for row in estimates.get(str(metric), ()) if row.slice is None]
        if reason and overall and all(map(_is_always_0, overall)):
            reasons[metric] = reason
    return reasons


def _is_always_0(estimate: OnlineEstimate) -> bool:
    # A quantile of 0 does not suffice: no row may exceed it.
    if estimate.metric.kind == "quantile":
        return estimate.value == 0 and estimate.numerator == estimate.denominator
    return estimate.numerator == 0 and estimate.denominator > 0


Unit: TypeAlias = Literal["user", "session"]
Progress: TypeAlias = Callable[[str, float | None], None]
RANKS = tuple(range(1, 11))
"""Ranks for which CTR by rank is computed."""


_RANKED = tuple(online_metric(f"CTRAtRank(r={rank})") for rank in RANKS)


def online_metrics(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric | None = None,
    *,
    by: str | None = None,
    documents: Any = None,
    where: str | None = None,
    unit: Unit = "user",
    level: float = 0.95,
    interval: Literal["delta", "bootstrap"] = "delta",
    resamples: int = 2000,
    seed: int = 0,
    settings: FactSettings | None = None,
    progress: Progress | None = None,
) -> OnlineScores:
    """Compute metrics of user behavior, with intervals over users.

    Parameters
    ----------
    log
        The log.
    metrics
        Names such as ``PageCTR`` or ``SatisfiedClicks(t=20)``, or common synonyms (``CTR``; the policies of the result
        name the metric). None: every metric that the log supports.
    by
        Slicing attribute; see `slice_pages`.
    documents
        Documents with dates, to slice by ``freshness``; see `judged.online.slicing.slice_pages`.
    where
        Condition on attributes of pages, such as ``device == 'mobile' and page == 1``. Only matching pages count, and
        sessions and users with such pages. Dwell times and following queries are those of the whole log.
    unit
        Unit of independence. Clicks of the same user are correlated, so a binomial interval over clicks would be too
        narrow; it is not offered.
    level
        Level of the intervals, above 0 and below 1.
    interval
        ``delta``: delta method over sums by unit (Deng, Knoblich, and Lu, KDD 2018). ``bootstrap``: resampling of
        units; where so few units have an event that the resamples do not bound the metric, the delta method is used.
        Quantiles and survival have their own intervals in both cases.
    resamples, seed
        Number of bootstrap resamples, and their seed.
    settings
        Definitions of visits, sessions, and reformulations.
    progress
        Called with the current step and the completed share.

    Returns
    -------
    OnlineScores
        Estimates by metric and slice, CTR by rank, and the metrics that are not supported.

    Raises
    ------
    MeasureError
        If there is no metric of that name.
    InputError
        If an option is out of range, or the slicing attribute does not exist.
    """
    names = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    validate(log=log, metrics=names, by=by, where=where, unit=unit, level=level)
    validate(interval=interval, resamples=resamples, seed=seed)
    if not isinstance(settings, FactSettings | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"`settings` must be FactSettings, got {settings!r:.60}", fix="pass FactSettings(...)")
    settings = settings or FactSettings()
    resampling = (resamples, seed) if interval == "bootstrap" else None
    names = None if names is None else list(names)
    supported, refused = split_supported(default_metrics() if names is None else online_metrics_named(names), log, unit)
    report_progress = progress or (lambda *_: None)
    with log.engine.scratch():
        slices, matching_pages, where_text = None, None, ""
        if by is not None or where is not None:
            from judged.online import slicing  # imports a third of all modules

            slices = None if by is None else slicing.slice_pages(log, by, documents=documents)
            matching_pages, where_text = (None, "") if where is None else slicing.pages_where(log, where)
        report_progress("pages", 0.1)
        # CTR by rank is always reported, where the log has what it takes.
        rank_metrics = _RANKED if {"shown", "clicks", "ranks"} <= log.has else ()
        metrics = tuple({str(metric): metric for metric in (*supported, *rank_metrics)}.values())
        pages = metric_pages(log, metrics, settings, slices=slices and slices.table, chosen=matching_pages)
        counts = _counts(log, matching_pages)
        report_progress("users", 0.6)
        sliced = slices is not None
        sizes = f"SELECT slice, count(*) AS pages FROM {pages.joined} GROUP BY slice"
        pages_by_slice = {row["slice"]: row["pages"] for row in log.engine.rows(sizes)} if sliced else {}
        order = {None: 0} | {name: i for i, name in enumerate(slices.values if slices else (), 1)}
        rows = _ratios(pages, metrics, unit, level, resampling, sliced=sliced)
        slice_table = slices and slices.table
        rows += _quantiles_and_survival(pages, metrics, unit, level, slice_table, matching_pages)
    by_metric: dict[str, list[OnlineEstimate]] = {}
    for row in sorted(rows, key=lambda row: order.get(row.slice, len(order))):
        by_metric.setdefault(str(row.metric), []).append(row)
    withheld = unmeasured_durations(supported, by_metric)
    if names is None:  # a metric that the caller named is reported without data too
        withheld |= metrics_without_data(supported, by_metric)
    supported, refused = tuple(metric for metric in supported if metric not in withheld), (*refused, *withheld.items())
    policies = {
        **dict(resolved_synonyms(names or ())), **({"where": where_text} if where_text else {}), **dict(log.policies),
        **dict(settings.policies()), **dict(user_substitute_policy(log)),
        **({"bootstrap": f"{resamples:,} resamples, seed {seed}"} if resampling else {}),
        **({"slices": slices.note} if slices and slices.note else {}),
    }  # fmt: skip
    estimates = tuple(row for metric in supported for row in by_metric.get(str(metric), []))
    slice_names = [name for name in (slices.values if slices else ()) if name in pages_by_slice]
    sized_slices = tuple((name, pages_by_slice[name]) for name in slice_names)
    ranks = tuple(
        replace(row, rank=int(metric.parameters["r"] or 0))
        for metric in _RANKED
        for row in by_metric.get(str(metric), [])
        if row.denominator > 0
    )
    notes = (
        *unfit_log_notes(log.name, unfit_reasons(log.accounts, log.findings)),
        *position_bias_notes(supported),
        *estimated_dwell_notes(log, supported),
        *unequal_activity_notes(estimates, unit),
        *(slices.warnings if slices else ()),
    )
    return OnlineScores(
        log=log.name, layout=log.layout, estimates=estimates, by=by, slices=sized_slices, unit=unit, level=level,
        interval=interval, counts=counts, ranks=ranks, refused=refused, policies=tuple(policies.items()),
        findings=log.findings, notes=notes,
    )  # fmt: skip


def _ratios(
    pages: PageFacts,
    metrics: Sequence[OnlineMetric],
    unit: Unit,
    level: float,
    resampling: tuple[int, int] | None,
    *,
    sliced: bool,
) -> list[OnlineEstimate]:
    estimates: list[OnlineEstimate] = []
    summed = [metric for metric in metrics if metric.kind in {"ratio", "total"}]
    for sliced_sums, group in unit_sums(pages, summed, unit, sliced=sliced):
        tables = (sums_over_slices(pages, sliced_sums, group, unit), sliced_sums) if sliced else (sliced_sums,)
        for sums in tables:
            rows = ratios(sums, group, level)
            if resampling is not None:
                rows = with_bootstrap(rows, sums, level, resamples=resampling[0], seed=resampling[1])
            estimates += [_total(row) if row.metric.kind == "total" else row for row in rows]
    return estimates


def _total(estimate: OnlineEstimate) -> OnlineEstimate:
    """Return the estimate of a total from that of the mean per unit; the number of units is treated as fixed."""
    units = estimate.denominator
    low, high, error = (units * number for number in (estimate.low, estimate.high, estimate.error))
    return replace(estimate, value=estimate.numerator, low=low, high=high, error=error)


def _quantiles_and_survival(
    pages: PageFacts,
    metrics: Sequence[OnlineMetric],
    unit: Unit,
    level: float,
    slices: Relation | None,
    matching_pages: Relation | None,
) -> list[OnlineEstimate]:
    """Estimate quantiles, and metrics from the Kaplan-Meier curves of visits and of times until users return."""
    quantile_metrics = [metric for metric in metrics if metric.kind == "quantile"]
    rows = pages.select({name for metric in quantile_metrics for name in metric.columns()})
    estimates = quantiles(rows, quantile_metrics, unit, level, sliced=slices is not None)
    survival_metrics = [metric for metric in metrics if metric.kind.startswith("survival")]
    if survival_metrics:
        from judged.online.estimation.survival import estimate_survival_metrics, read_absences, select_visits

        options: Any = {"level": level, "sliced": slices is not None}
        if visit_metrics := [metric for metric in survival_metrics if not is_session_metric(metric)]:
            visits = select_visits(pages.clicks, slices, matching_pages)
            estimates += estimate_survival_metrics(visits, visit_metrics, unit=unit, **options)
        if user_metrics := [metric for metric in survival_metrics if is_session_metric(metric)]:
            absences = read_absences(pages.log, slices, matching_pages)
            estimates += estimate_survival_metrics(absences, user_metrics, unit="user", **options)
    return estimates


def _counts(log: InteractionLog, matching_pages: Relation | None) -> tuple[tuple[str, int], ...]:
    where_sql = "" if matching_pages is None else f"WHERE serp IN (SELECT serp FROM {matching_pages})"
    row = log.engine.rows(f"""
        SELECT count(*) AS pages, (SELECT count(*) FROM {log.event} {where_sql}) AS events,
            count(DISTINCT session) AS sessions, count(DISTINCT "user") AS users
        FROM {log.serp} {where_sql}""")[0]
    return tuple(row.items())
