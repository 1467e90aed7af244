"""Headline metrics of a log compared with the previous period, with a decomposition of each change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from judged.online.differences import (
    AFTER,
    BEFORE,
    MetricDifference,
    Periods,
    comparable_metrics,
    difference_columns,
    difference_format,
    periods,
    slice_differences,
)
from judged.online.engine import Relation, identifier
from judged.online.estimation.online_metrics import Unit
from judged.online.estimation.sums import is_session_metric, metric_pages, numerator_scale
from judged.online.facts.pages import FactSettings, PageFacts
from judged.online.findings import has_no_user_ids
from judged.online.layout import estimate_column, percent
from judged.online.log import LogAnswer, answer_fields, check_column, validate
from judged.online.metrics import OnlineMetric
from judged.online.slicing import pages_where
from judged.online.statistics.changes import decomposition, part_interval
from judged.results import P_VALUE, TEXT, Column, Sentences, Table, counted, truncated
from judged.stats.ratio import RatioDifference
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats

_MIN_DENOMINATOR = 20  # in both periods; queries with less share one stratum
_MAX_QUERIES = 3  # listed for each metric
_RESOLUTION = 2**30  # Influences are rounded to integers, so that sums do not depend on the order of rows.
_OTHER_QUERIES = "all other queries"


@dataclass(frozen=True)
class MetricChange:
    """Change of a metric and its causes.

    Parameters
    ----------
    change
        Difference between the two periods.
    mix, within
        Parts of the difference due to another mix of queries, and to changes within queries; None for metrics of
        sessions.
    queries
        Queries with the largest contribution to `within`, and their contribution.
    """

    change: MetricDifference
    mix: RatioDifference | None
    within: RatioDifference | None
    queries: tuple[tuple[str, float], ...]

    def is_significant(self, alpha: float) -> bool:
        """Return whether the change is significant, and both periods have enough units for a verdict."""
        units = min(self.change.baseline.units, self.change.other.units)
        return self.change.p <= alpha and insufficiency(units, "verdict") is None


@dataclass(frozen=True, eq=False, repr=False)
class Overview(LogAnswer):
    """Changes of the headline metrics of a log, and their causes.

    Parameters
    ----------
    periods
        Compared periods.
    counts
        Pages and users in the first and second period.
    changes
        Changes of the metrics.
    alpha
        Significance level.
    """

    kind: ClassVar[str] = "overview"
    title_format: ClassVar[str] = "Changes of online metrics: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("alpha",)

    periods: Periods
    counts: tuple[tuple[str, int, int], ...]
    changes: tuple[MetricChange, ...]
    alpha: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """Significant changes, and their causes."""
        changes = [row for row in self.changes if row.is_significant(self.alpha)]
        rows = (f"{_describe_change(row.change, self.level, self.unit)}{_cause(row)}" for row in changes)
        return tuple(rows) or ("No significant change in any of these metrics.",)

    def blocks(self) -> tuple[Block, ...]:
        """Return the tables of changes, parts, and queries, and the block about the method."""
        differences = [row.change for row in self.changes]
        table = Table(
            "changes",
            (
                Column("metric", [str(row.metric) for row in differences], TEXT),
                estimate_column([row.other for row in differences], "value", "after"),
                estimate_column([row.baseline for row in differences], "before"),
                *difference_columns([(row.other, row.difference) for row in differences]),
                Column("p", [row.p for row in differences], title="p"),
            ),
            note=f"{percent(self.level)} confidence intervals over {self.unit}s;"
            f" p adjusted by Holm for {counted(len(differences), 'metric')}",
        )
        decomposed = [row for row in self.changes if row.mix is not None]
        parts = Table(
            "parts",
            (
                Column("metric", [str(row.change.metric) for row in decomposed], TEXT),
                *(
                    difference_columns([(row.change.other, getattr(row, name)) for row in decomposed], name, title)[0]
                    for name, title in (("mix", "query mix"), ("within", "within queries"))
                ),
            ),
            "Decomposition of the differences",
            note="the two components add up to the difference (Kitagawa 1955)",
        )
        rows = [(row.change, query, value) for row in decomposed for query, value in row.queries]
        queries = Table(
            "queries",
            (
                Column("metric", [str(change.metric) for change, _, _ in rows], TEXT),
                Column("query", [query for _, query, _ in rows], truncated(60)),
                Column(
                    "contribution",
                    [value for _, _, value in rows],
                    each=[difference_format(change.other) for change, _, _ in rows],
                ),
            ),
            "Queries with the largest contributions to the component 'within queries'",
            note="contributions are not tested for significance",
            labels=2,
            folded=True,
        )
        counts = ", ".join(f"{after:,} {name} (before: {before:,})" for name, before, after in self.counts)
        sentences = Sentences((*self.sentences, f"{counts}."))
        return sentences, table, *([parts, queries] if decomposed else []), self.method_block(self.periods.compared)

    def facts(self) -> Mapping[str, Any]:
        """Return the options, periods, and counts."""
        counts = {name: {"before": before, "after": after} for name, before, after in self.counts}
        return {**super().facts(), "periods": vars(self.periods), "counts": counts}


def _describe_change(change: MetricDifference, level: float, unit: str) -> str:
    show = difference_format(change.other)
    value, *limits = change.difference.value, change.difference.low, change.difference.high
    low, high = map(show.limit or show.write, limits)
    direction = "higher" if value > 0 else "lower"
    return (
        f"{change.metric} is {direction} than before: {show.write(value)}, {percent(level)} CI [{low}, {high}],"
        f" p = {P_VALUE.write(change.p)}, n = {change.baseline.units:,} {unit}s before and {change.other.units:,}"
        f" {unit}s after."
    )


def _cause(change: MetricChange) -> str:
    """Describe which part of a change is significant."""
    if change.mix is None or change.within is None:
        return ""
    parts = {"a different mix of queries": change.mix, "changes of the metric within queries": change.within}
    causes = [cause for cause, part in parts.items() if part.low > 0 or part.high < 0]
    if len(causes) == 1:
        return f" Of the two parts of the difference, only the part due to {causes[0]} is significant."
    quantifier, verb = ("Both", "are") if causes else ("Neither", "is")
    both_parts = f"{quantifier} {'parts' if causes else 'part'} of the difference"
    return f" {both_parts} (due to {' and due to '.join(parts)}) {verb} significant on its own."


def overview(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric | None = None,
    *,
    since: str | None = None,
    by: str = "query_norm",
    where: str | None = None,
    unit: Unit = "user",
    level: float = 0.95,
    alpha: float = 0.05,
    settings: FactSettings | None = None,
) -> Overview:
    """Compare headline metrics with the previous period, and decompose each change.

    A metric over pages changes because the mix of queries changes, or because it changes within queries. Queries with
    a denominator below 20 in one of the periods form one stratum.

    Parameters
    ----------
    log
        The log.
    metrics
        Ratios; None: the first five of `judged.online.differences.HEADLINES` that the log supports.
    since
        Start of the second period, a date (UTC): see `judged.online.differences.periods`.
    by
        Column that identifies queries, such as ``query_norm``.
    where
        Condition for pages: see `judged.online.online_metrics`.
    unit
        Independent unit of the confidence intervals.
    level
        Confidence level.
    alpha
        Significance level of the changes in the sentences.
    settings
        Gaps and windows that define sessions, visits, and reformulations.

    Raises
    ------
    MeasureError
        If a metric is unknown.
    InputError
        If the log has no dates, or an option is invalid.
    """
    validate(log=log, since=since, by=by, where=where, unit=unit, level=level, alpha=alpha)
    check_column(log, by)
    settings = settings or FactSettings()
    span = periods(log, since)
    supported, refused = comparable_metrics(metrics, log, unit)
    with log.engine.scratch():
        selection, condition = (None, "") if where is None else pages_where(log, where)
        pages = metric_pages(log, supported, settings, slices=span.slices(log), chosen=selection)
        differences = slice_differences(pages, supported, (BEFORE, AFTER), BEFORE, unit, level, "holm")
        page_metrics = [metric for metric in supported if not is_session_metric(metric)]
        parts = _decompose(pages, page_metrics, by, unit, level) if page_metrics else {}
        sql = f'SELECT slice, count(*) AS pages, count(DISTINCT "user") AS users FROM {pages.joined} GROUP BY slice'
        counts = {row["slice"]: row for row in log.engine.rows(sql)}

    def count(period: str, name: str) -> int:
        return int(counts.get(period, {}).get(name, 0))

    unsupported = {str(metric): f"not available: {reason}" for metric, reason in refused.items()}
    names = ("pages", *([] if has_no_user_ids(log.findings) else ["users"]))
    return Overview(
        periods=span,
        counts=tuple((name, count(BEFORE, name), count(AFTER, name)) for name in names),
        changes=tuple(MetricChange(row, *parts.get(row.metric, (None, None, ()))) for row in differences),
        alpha=alpha,
        **answer_fields(log, unit, level, {"where": condition, **unsupported}, settings),
    )


_MetricParts = tuple[RatioDifference, RatioDifference, tuple[tuple[str, float], ...]]


def _decompose(
    pages: PageFacts, metrics: Sequence[OnlineMetric], by: str, unit: Unit, level: float
) -> dict[OnlineMetric, _MetricParts]:
    columns = sorted({name for metric in metrics for name in metric.columns()})
    sums = ", ".join(f"CAST(sum({pages.columns[name]}) AS BIGINT) AS {identifier(name)}" for name in columns)
    text = f"coalesce(CAST(t.{identifier(by)} AS VARCHAR), '')"
    by_query = pages.log.engine.keep(
        f"""
        SELECT p.{identifier(unit)} AS unit, p.slice, {text} AS text, {sums}
        FROM {pages.joined} AS p JOIN (SELECT serp, {identifier(by)} FROM {pages.log.serp}) AS t ON t.serp = p.serp
        GROUP BY p.{identifier(unit)}, p.slice, {text}""",
        "queries",
    )
    return {metric: _decompose_metric(by_query, metric, level) for metric in metrics}


def _decompose_metric(by_query: Relation, metric: OnlineMetric, level: float) -> _MetricParts:
    """Decompose the change of a metric into mix and within (Kitagawa 1955)."""
    engine, (numerator, denominator) = by_query.engine, map(identifier, metric.columns())
    sums = (
        f"CAST(sum(CASE WHEN slice = '{period}' THEN {column} ELSE 0 END) AS BIGINT) AS {side}_{period}"
        for side, column in (("n", numerator), ("d", denominator))
        for period in (BEFORE, AFTER)
    )
    by_text = engine.keep(f"SELECT text, {', '.join(sums)} FROM {by_query} GROUP BY text", "texts")
    stratum = f"CASE WHEN least(d_{BEFORE}, d_{AFTER}) >= {_MIN_DENOMINATOR} THEN text END"
    strata = engine.arrow(f"""
        SELECT {stratum} AS text, {", ".join(f"CAST(sum({name}) AS DOUBLE) AS {name}" for name in by_text.columns[1:])}
        FROM {by_text} GROUP BY {stratum} ORDER BY text NULLS LAST""")
    numerators, denominators = (
        np.stack([strata[f"{side}_{period}"].to_numpy() for period in (BEFORE, AFTER)]) for side in "nd"
    )
    scale, texts = numerator_scale(metric), strata["text"].to_pylist()
    if not (denominators.sum(axis=1) > 0).all():
        undefined = RatioDifference(math.nan, math.nan, math.nan, math.nan)
        return undefined, undefined, ()
    # Kitagawa (1955): mix = changes of shares at mean rates, within = changes of rates at mean shares.
    parts = decomposition(numerators / scale, denominators)
    resolution = float(denominators.sum()) * _RESOLUTION
    scales = np.array([scale, 1.0])[None, :, None]
    part_weights = {"mix": parts.mix_weights, "within": parts.within_weights}
    weights = {name: np.rint(weight * resolution / scales) for name, weight in part_weights.items()}
    effective, units, squares = _influences(by_query, metric, texts, weights, by_text, stratum)
    mix, within = (
        RatioDifference(value, *part_interval(value, squares[name] / resolution**2, units, effective, level), math.nan)
        for name, value in (("mix", parts.mix), ("within", parts.within))
    )
    order = np.argsort(-np.abs(parts.by_stratum), kind="stable")[:_MAX_QUERIES]
    largest = ((texts[row] or _OTHER_QUERIES, float(parts.by_stratum[row])) for row in order.tolist())
    return mix, within, tuple((query, value) for query, value in largest if value)


def _influences(
    by_query: Relation,
    metric: OnlineMetric,
    texts: list[str | None],
    weights: Mapping[str, Floats],
    by_text: Relation,
    stratum: str,
) -> tuple[float, float, dict[str, float]]:
    """Return effective units of the smaller period, units, and sums of squared influences on mix and within."""
    engine, (numerator, denominator) = by_query.engine, map(identifier, metric.columns())
    columns: dict[str, Any] = {"text": pa.array([*texts, *texts], pa.string())}
    columns["slice"] = [period for period in (BEFORE, AFTER) for _ in texts]
    for name, weight in weights.items():
        for i, side in enumerate("nd"):
            columns[f"{name}_{side}"] = pa.array(weight[:, i].reshape(-1).astype(np.int64))
    weight_table = engine.register(pa.table(columns))
    # HUGEINT: sums of products of 64-bit integers overflow BIGINT.
    influences = ", ".join(
        f"sum(CAST(k.{numerator} AS HUGEINT) * w.{name}_n + CAST(k.{denominator} AS HUGEINT) * w.{name}_d) AS {name}"
        for name in weights
    )
    row = engine.rows(f"""
        WITH stratum AS (SELECT text, {stratum} AS stratum FROM {by_text}),
        unit AS (
            SELECT k.unit, {influences},
                CAST(sum(CASE WHEN k.slice = '{BEFORE}' THEN k.{denominator} ELSE 0 END) AS HUGEINT) AS d_before,
                CAST(sum(CASE WHEN k.slice = '{AFTER}' THEN k.{denominator} ELSE 0 END) AS HUGEINT) AS d_after
            FROM {by_query} AS k JOIN stratum AS s ON s.text = k.text
            JOIN {weight_table} AS w ON w.slice = k.slice AND w.text IS NOT DISTINCT FROM s.stratum
            GROUP BY k.unit)
        SELECT count(*) AS units, {", ".join(f"CAST(sum({name} * {name}) AS VARCHAR) AS {name}" for name in weights)},
            CAST(sum(d_before) AS DOUBLE) * sum(d_before) / nullif(sum(d_before * d_before), 0) AS before,
            CAST(sum(d_after) AS DOUBLE) * sum(d_after) / nullif(sum(d_after * d_after), 0) AS after
        FROM unit WHERE d_before + d_after > 0""")[0]
    # The smaller period limits the precision of the difference.
    effective = min(float(row["before"] or 0), float(row["after"] or 0))
    return effective, float(row["units"]), {name: float(int(row[name] or 0)) for name in weights}
