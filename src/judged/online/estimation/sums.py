"""Sums of facts by unit, so that users, not clicks, are the independent observations; and quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.online.engine import Relation, identifier, literal
from judged.online.facts.columns import SCALES, is_flag, needed_page_columns, session_facts
from judged.online.facts.pages import FactSettings, PageFacts, page_facts
from judged.online.layout import OnlineEstimate
from judged.online.metrics import OnlineMetric
from judged.stats.ratio import ratio_error, student_quantiles, woodruff

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Floats


_KINDS_OF_SUMS = ("ratio", "total", "quantile")
_SESSION_ROWS = ("session", "user")
_COUNTED = {"session": "n_sessions", "user": "n_users"}


def is_session_metric(metric: OnlineMetric) -> bool:
    """Whether the columns of a metric are facts of sessions; all others are facts of pages."""
    return metric.row in _SESSION_ROWS


def numerator_scale(metric: OnlineMetric) -> float:
    """Return the factor by which the stored integer numerators of a metric exceed its unit."""
    return 1000.0 if metric.numerator.startswith("time_to_success") else float(SCALES.get(metric.numerator, 1))


def sum_column(name: str) -> str:
    """Return the name of the column with the sums of a fact; sessions and users are counted."""
    return _COUNTED.get(name, name)


_BITS = 62  # of a BIGINT, without its sign


@dataclass(frozen=True)
class Packing:
    """Layout of 0/1 columns in bit fields of integer columns, so that the database sums several with one addition.

    Parameters
    ----------
    flags
        Columns that hold 0 or 1.
    bits
        Bits per flag, enough for the largest sum.

    Examples
    --------
    >>> packing = Packing(("a", "b", "c"), bits=10)
    >>> packing.bits, packing.columns
    (10, ('packed_0',))
    >>> packing.unpacked()["b"]
    '(packed_0 >> 10) & 1023'
    """

    flags: tuple[str, ...]
    bits: int

    @property
    def _capacity(self) -> int:
        return max(1, _BITS // self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the packed columns."""
        return tuple(f"packed_{i}" for i in range(-(-len(self.flags) // self._capacity)))

    def packed(self, facts: Mapping[str, str]) -> dict[str, str]:
        """Return the SQL of the packed columns, from the SQL of each flag."""
        sql: dict[str, str] = {}
        for i, name in enumerate(self.columns):
            flags = self.flags[i * self._capacity : (i + 1) * self._capacity]
            shifted = [f"({facts[flag]}) * CAST({1 << (j * self.bits)} AS BIGINT)" for j, flag in enumerate(flags)]
            sql[name] = " + ".join(shifted)
        return sql

    def unpacked(self) -> dict[str, str]:
        """Return the SQL of the sum of each flag, from sums of the packed columns."""
        mask = (1 << self.bits) - 1
        return {
            flag: f"({self.columns[i // self._capacity]} >> {i % self._capacity * self.bits}) & {mask}"
            for i, flag in enumerate(self.flags)
        }


@dataclass(frozen=True)
class UnitSums:
    """Sums of facts, one row per unit, or per unit and slice.

    Parameters
    ----------
    table
        The unit, ``slice`` if sliced, and one column per fact.
    sliced
        Whether there is a column ``slice``.
    packing
        Layout of the flags that are packed in the table.
    limits
        Winsorization limits of sums, by fact.
    """

    table: Relation
    sliced: bool
    packing: Packing | None = None
    limits: Mapping[str, int] = field(default_factory=dict[str, int])

    def column(self, name: str) -> str:
        """Return the SQL of the sum of a fact."""
        unpacked = self.packing.unpacked() if self.packing is not None else {}
        sql = unpacked.get(name) or identifier(name)
        return f"least({sql}, {self.limits[name]})" if name in self.limits else sql


def metric_pages(
    log: InteractionLog, metrics: Sequence[OnlineMetric], settings: FactSettings, **filters: Any
) -> PageFacts:
    """Return the page facts that metrics need; `filters`: slices and selected pages, see `page_facts`."""
    summed = [metric for metric in metrics if metric.kind in _KINDS_OF_SUMS]
    page_columns = {"page", *(name for metric in summed if not is_session_metric(metric) for name in metric.columns())}
    session_columns = {name for metric in summed if is_session_metric(metric) for name in metric.columns()}
    columns = sorted({*page_columns, *needed_page_columns(session_columns)})
    return page_facts(log, columns, settings, successes=_success_dwell_times(metrics), **filters)


def _success_dwell_times(metrics: Iterable[OnlineMetric]) -> list[float]:
    """Return the dwell times, in seconds, that define success for metrics of sessions."""
    parameters = [metric.parameters for metric in metrics if is_session_metric(metric)]
    return sorted({float(values["t"] or 0) for values in parameters if "t" in values})


def unit_sums(
    pages: PageFacts, metrics: Sequence[OnlineMetric], unit: str, *, sliced: bool
) -> list[tuple[UnitSums, list[OnlineMetric]]]:
    """Sum the facts behind ratios by unit, and slice: those of pages, and those of sessions, each with its metrics."""
    sums_and_metrics: list[tuple[UnitSums, list[OnlineMetric]]] = []
    if page_metrics := [metric for metric in metrics if not is_session_metric(metric)]:
        sums_and_metrics.append((_page_sums(pages, page_metrics, unit, sliced=sliced), page_metrics))
    if session_metrics := [metric for metric in metrics if is_session_metric(metric)]:
        sums_and_metrics.append((_session_sums(pages, session_metrics, unit, sliced=sliced), session_metrics))
    return sums_and_metrics


def sums_over_slices(pages: PageFacts, sums: UnitSums, metrics: Sequence[OnlineMetric], unit: str) -> UnitSums:
    """Sum over all slices; sessions with pages in several slices are counted again, each once."""
    # Sums of slices count a session once per slice in which it has a page.
    if "n_sessions" in sums.table.columns:
        totals = f"(SELECT sum(n_sessions) FROM {sums.table}) AS slices, count(DISTINCT session) AS sessions"
        counted = pages.joined.engine.rows(f"SELECT {totals} FROM {pages.joined}")[0]
        if counted["slices"] != counted["sessions"]:
            return _session_sums(pages, metrics, unit, sliced=False)
    return _over_slices(sums, unit)


def _page_sums(pages: PageFacts, metrics: Sequence[OnlineMetric], unit: str, *, sliced: bool) -> UnitSums:
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    columns = sorted({name for metric in metrics for name in metric.columns()})
    # No flag can be set more often than a unit has pages, so this many bits suffice.
    counts = f"SELECT count(*) AS pages FROM {pages.log.serp} GROUP BY {identifier(unit)}"
    max_pages = pages.log.engine.rows(f"SELECT max(pages) AS most FROM ({counts})")[0]["most"] or 0
    packing = Packing(tuple(filter(is_flag, columns)), max(1, int(max_pages).bit_length()))
    facts = {name: pages.columns[name] for name in columns if not is_flag(name)} | packing.packed(pages.columns)
    sums = ", ".join(f"CAST(sum({fact}) AS BIGINT) AS {identifier(name)}" for name, fact in facts.items())
    table = pages.joined.engine.keep(f"SELECT {keys}, {sums} FROM {pages.joined} GROUP BY {keys}", "sums")
    return UnitSums(table, sliced, packing)


def _session_sums(pages: PageFacts, metrics: Sequence[OnlineMetric], unit: str, *, sliced: bool) -> UnitSums:
    """Sum facts of sessions by unit, and slice; ``n_sessions`` counts sessions, ``n_users`` is 1."""
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    names = sorted({name for metric in metrics for name in metric.columns()} - set(_COUNTED))
    sums = "".join(f", CAST(sum({identifier(name)}) AS BIGINT) AS {identifier(name)}" for name in names)
    facts = session_facts(pages.select(needed_page_columns(names)), names, _success_dwell_times(metrics), sliced=sliced)
    table = pages.joined.engine.keep(
        f"""
        SELECT {keys}, CAST(sum(session_count) AS BIGINT) AS n_sessions, 1 AS n_users{sums}
        FROM {facts} GROUP BY {keys}""",
        "sums",
    )
    return UnitSums(table, sliced)


def _over_slices(sums: UnitSums, unit: str) -> UnitSums:
    """Sum over the slices of each unit; each page or session is in exactly one slice."""
    names = [name for name in sums.table.columns if name not in {unit, "slice", "n_users"}]
    sums_sql = [f"CAST(sum({identifier(name)}) AS BIGINT) AS {identifier(name)}" for name in names]
    sums_sql += ["1 AS n_users"] if "n_users" in sums.table.columns else []
    key = identifier(unit)
    table = sums.table.engine.keep(f"SELECT {key}, {', '.join(sums_sql)} FROM {sums.table} GROUP BY {key}", "sums")
    return UnitSums(table, sliced=False, packing=sums.packing)


def quantiles(
    facts: Relation, metrics: Sequence[OnlineMetric], unit: str, level: float, *, sliced: bool
) -> list[OnlineEstimate]:
    """Estimate the smallest value that a share q of the rows does not exceed, over all rows and by slice.

    Rows are counted by value in the database, without interpolation. The interval is that of Woodruff (JASA 1952): the
    interval of the share of rows at or below the estimate, as a ratio over units, mapped to quantiles. The standard
    error is half its width divided by Student's quantile. Errors from the values at one standard error of the share
    depend on few rows: tests of differences then rejected in 6 to 8% of samples instead of 5%.
    """
    if not metrics:
        return []
    distributions = {metric.columns(): _distributions(facts, *metric.columns(), sliced=sliced) for metric in metrics}
    by_metric = [distributions[metric.columns()] for metric in metrics]
    values = [
        {slice_name: distribution.quantile(_q(metric)) for slice_name, distribution in by_slice.items()}
        for metric, by_slice in zip(metrics, by_metric, strict=True)
    ]
    moments = _moments_by_slice(facts, metrics, values, unit, sliced=sliced)
    return [
        _estimate(metric, slice_name, distribution, moments.get(slice_name), i, level)
        for i, (metric, by_slice) in enumerate(zip(metrics, by_metric, strict=True))
        for slice_name, distribution in by_slice.items()
    ]


def _q(metric: OnlineMetric) -> float:
    return float(metric.parameters["q"] or 0.5)


def _distributions(
    facts: Relation, numerator: str, denominator: str, *, sliced: bool
) -> dict[str | None, _Distribution]:
    """Count rows by value, over all rows (None) and by slice."""
    keys = "slice, value" if sliced else "value"
    counted = facts.engine.arrow(f"""
        SELECT {keys}, count(*) AS rows FROM (
            SELECT *, {identifier(numerator)} AS value FROM {facts} WHERE {identifier(denominator)} <> 0)
        GROUP BY {keys} ORDER BY value""")
    slices = sorted(set(counted["slice"].to_pylist())) if sliced else []
    return {name: _Distribution(*_select_counts(counted, name)) for name in (None, *slices)}


@dataclass(frozen=True)
class _Distribution:
    """Empirical distribution: distinct values in increasing order, and the number of rows with each."""

    values: Floats
    rows: Floats

    def quantile(self, q: float) -> float:
        """Return the smallest value that a share q of the rows does not exceed, with a tolerance for rounding."""
        if not len(self.values):
            return math.nan
        # The tolerance must be relative: q times the number of rows may be off by rounding.
        cumulative = np.cumsum(self.rows)
        i = int(np.searchsorted(cumulative, q * cumulative[-1] * (1.0 - 1e-12)))
        return float(self.values[min(i, len(self.values) - 1)])


def _estimate(
    metric: OnlineMetric, slice_name: str | None, distribution: _Distribution, moments: dict[str, Any] | None, i: int,
    level: float,
) -> OnlineEstimate:  # fmt: skip
    """Return the quantile of one slice with Woodruff's interval; `i`: index of the metric in `moments`."""
    if moments is None or not moments[f"units_{i}"]:
        return OnlineEstimate(metric, slice_name, math.nan, math.nan, math.nan, math.nan, 0.0, 0.0, 0, "none")
    units, n, d, nn, dd, nd = (float(moments[f"{moment}_{i}"]) for moment in ("units", "n", "d", "nn", "dd", "nd"))
    error = ratio_error(units, n, d, nn, dd, nd)
    low, high = woodruff(_q(metric), error, units, level, effective=d**2 / dd)
    has_interval, scale = not math.isnan(low), numerator_scale(metric)
    limits = [distribution.quantile(share) / scale if has_interval else math.nan for share in (low, high)]
    # Fewer effective units than units: the degrees of freedom follow the effective number.
    student = float(student_quantiles((1.0 + level) / 2.0, np.array(d**2 / dd - 1.0)))
    return OnlineEstimate(
        metric=metric, slice=slice_name, value=distribution.quantile(_q(metric)) / scale, low=limits[0],
        high=limits[1], error=(limits[1] - limits[0]) / 2.0 / student, numerator=float(n), denominator=float(d),
        units=int(units), method="woodruff" if has_interval else "none", effective_units=d**2 / dd,
    )  # fmt: skip


def _select_counts(counted: Any, slice_name: str | None) -> tuple[Floats, Floats]:
    values, rows = (counted[name].to_numpy().astype(np.float64) for name in ("value", "rows"))
    if slice_name is not None:
        in_slice = np.array([name == slice_name for name in counted["slice"].to_pylist()])
        return values[in_slice], rows[in_slice]
    distinct, code = np.unique(values, return_inverse=True)
    return distinct, np.bincount(code, weights=rows, minlength=len(distinct)).astype(np.float64)


def _moments_by_slice(
    facts: Relation,
    metrics: Sequence[OnlineMetric],
    values: Sequence[Mapping[str | None, float]],
    unit: str,
    *,
    sliced: bool,
) -> dict[str | None, dict[str, Any]]:
    """Return, by slice, the moments over units of rows at or below the values (one mapping per metric), and of rows."""
    limits = [_limit(by_slice[None]) for by_slice in values]
    moments: dict[str | None, dict[str, Any]] = {None: _moments(facts, metrics, limits, unit, sliced=False)[0]}
    if not sliced:
        return moments
    slice_limits: list[str] = []
    for by_slice in values:
        cases = [f"WHEN {literal(name)} THEN {_limit(value)}" for name, value in by_slice.items() if name is not None]
        slice_limits.append(f"CASE slice {' '.join(cases)} END" if cases else "NULL")
    return moments | {row["slice"]: row for row in _moments(facts, metrics, slice_limits, unit, sliced=True)}


def _limit(value: float) -> str:
    return "NULL" if math.isnan(value) else str(int(value))


def _moments(
    facts: Relation, metrics: Sequence[OnlineMetric], limits: Sequence[str], unit: str, *, sliced: bool
) -> list[dict[str, Any]]:
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    sums, columns = list[str](), list[str]()
    for i, (metric, limit) in enumerate(zip(metrics, limits, strict=True)):
        numerator, denominator = map(identifier, metric.columns())
        sums.append(f"sum(CASE WHEN {denominator} <> 0 AND {numerator} <= {limit} THEN 1 ELSE 0 END) AS n_{i}")
        sums.append(f"sum(CASE WHEN {denominator} <> 0 THEN 1 ELSE 0 END) AS d_{i}")
        columns.append(f"sum(CASE WHEN d_{i} > 0 THEN 1 ELSE 0 END) AS units_{i}, sum(n_{i}) AS n_{i}")
        columns.append(f"sum(d_{i}) AS d_{i}, sum(n_{i} * n_{i}) AS nn_{i}, sum(d_{i} * d_{i}) AS dd_{i}")
        columns.append(f"sum(n_{i} * d_{i}) AS nd_{i}")
    group = "slice, " if sliced else ""
    return facts.engine.rows(
        f"SELECT {group}{', '.join(columns)} FROM (SELECT {keys}, {', '.join(sums)} FROM {facts} GROUP BY {keys})"
        + (" GROUP BY slice" if sliced else "")
    )
