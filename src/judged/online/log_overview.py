"""The five numbers of a log that matter, each against the period before, with what moved them."""

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
    comparable,
    compared,
    difference_columns,
    in_metric,
    periods,
)
from judged.online.engine import Relation, identifier
from judged.online.estimation.online_metrics import Unit
from judged.online.estimation.sums import is_session_metric, metric_pages, numerator_scale
from judged.online.facts.pages import FactSettings, PageFacts
from judged.online.findings import are_of_nobody
from judged.online.layout import percent, values
from judged.online.log import LogAnswer, about, need, need_column
from judged.online.metrics import OnlineMetric
from judged.online.slicing import pages_where
from judged.online.statistics.changes import decomposition, part_interval
from judged.results import TEXT, Column, Sentences, Table, counted, truncated
from judged.stats.ratio import RatioDifference
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats

_FEWEST = 20  # of a denominator in both periods, from which on a query is a stratum of its own
_FIRST = 3  # queries named for each number
_PARTS = 2**30  # in which influences are counted: sums of whole numbers are the same in any order
_REST = "all others"


@dataclass(frozen=True)
class Movement:
    """What moved one number.

    Parameters
    ----------
    change
        The number before and since, and its difference.
    mix, within
        The parts of the difference: other queries were asked, or queries fared otherwise; None of numbers of sessions.
    queries
        Those whose faring moved it most, with by how much, the largest first.
    """

    change: MetricDifference
    mix: RatioDifference | None
    within: RatioDifference | None
    queries: tuple[tuple[str, float], ...]

    def changed(self, alpha: float) -> bool:
        """Return whether the change is significant; never with too few units on either side for a verdict."""
        units = min(self.change.baseline.units, self.change.other.units)
        return self.change.p <= alpha and insufficiency(units, "verdict") is None


@dataclass(frozen=True, eq=False, repr=False)
class Overview(LogAnswer):
    """The numbers of a log that matter, and what moved them.

    Parameters
    ----------
    periods
        What is compared.
    counts
        Pages and users before, and since.
    movements
        The numbers.
    alpha
        As asked for.
    """

    kind: ClassVar[str] = "overview"
    answers: ClassVar[str] = "What changed: {log}"
    asked: ClassVar[tuple[str, ...]] = ("alpha",)

    periods: Periods
    counts: tuple[tuple[str, int, int], ...]
    movements: tuple[Movement, ...]
    alpha: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which numbers changed, and which part of that can be told."""
        changed = [one for one in self.movements if one.changed(self.alpha)]
        way = {True: "higher", False: "lower"}
        said = (f"{one.change.metric} is {way[one.change.difference.value > 0]}{_why(one)}." for one in changed)
        return tuple(said) or ("None of these numbers can be told to have changed.",)

    def blocks(self) -> tuple[Block, ...]:
        """Give the numbers, what moved them, and what it rests on."""
        moved = self.movements
        changes = [one.change for one in moved]
        table = Table(
            "numbers",
            (
                Column("metric", [str(one.metric) for one in changes], TEXT),
                values([one.other for one in changes], "value", "since"),
                values([one.baseline for one in changes], "before"),
                *difference_columns([(one.other, one.difference) for one in changes]),
                Column("p", [one.p for one in changes], title="p"),
            ),
            note=f"{percent(self.level)} intervals over {self.unit}s;"
            f" p adjusted by holm for {counted(len(moved), 'number')}",
        )
        parted = [one for one in moved if one.mix is not None]
        parts = Table(
            "parts",
            (
                Column("metric", [str(one.change.metric) for one in parted], TEXT),
                *(
                    difference_columns([(one.change.other, getattr(one, name)) for one in parted], name, title)[0]
                    for name, title in (("mix", "by which queries are asked"), ("within", "by how queries fare"))
                ),
            ),
            "What moved them",
            note="both parts add up to the difference (Kitagawa 1955)",
        )
        rows = [(one.change, query, value) for one in parted for query, value in one.queries]
        queries = Table(
            "queries",
            (
                Column("metric", [str(change.metric) for change, _, _ in rows], TEXT),
                Column("query", [query for _, query, _ in rows], truncated(60)),
                Column(
                    "moved", [value for _, _, value in rows], each=[in_metric(change.other) for change, _, _ in rows]
                ),
            ),
            "Queries that moved them most by how they fare",
            note="the largest of many: none of them is tested",
            labels=2,
            folded=True,
        )
        seen = ", ".join(f"{since:,} {name} (before: {before:,})" for name, before, since in self.counts)
        said = Sentences((*self.sentences, f"{seen}."))
        return (said, table, *([parts, queries] if parted else []), self.made(self.periods.compared))

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for."""
        counts = {name: {"before": before, "since": since} for name, before, since in self.counts}
        return {**super().facts(), "periods": vars(self.periods), "counts": counts}


def _why(one: Movement) -> str:
    """Say which part of a change can be told."""
    if one.mix is None or one.within is None:
        return ""
    parts = {"other queries are asked": one.mix, "queries fare otherwise than before": one.within}
    told = [why for why, part in parts.items() if part.low > 0 or part.high < 0]
    unknown = ", and whether other queries are asked or queries fare otherwise cannot be told"
    return f": {' and '.join(told)}" if told else unknown


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
    """Compare the numbers that matter with the period before, and say what moved them.

    A number over pages moves for two reasons: other queries are asked (the mix), or the same queries fare otherwise
    (within). Queries with fewer than 20 in the denominator in one of the periods are one stratum together.

    Parameters
    ----------
    log
        The log.
    metrics
        Ratios; None: the five first of `judged.online.difference.HEADLINES` that the log can tell.
    since
        When the later period begins, a date (UTC): see `judged.online.difference.periods`.
    by
        What tells queries apart: ``query_norm`` or another column.
    where
        Only pages that meet this condition count: see `judged.online.online_metrics`.
    unit
        What intervals are made over.
    level
        Of the intervals.
    alpha
        Significance: which changes sentences speak of.
    settings
        What counts as belonging together.

    Raises
    ------
    MeasureError
        If there is no metric of that name.
    InputError
        If the log has no dates, or an option makes no sense.
    """
    need(log=log, since=since, by=by, where=where, unit=unit, level=level, alpha=alpha)
    need_column(log, by)
    settings = settings or FactSettings()
    span = periods(log, since)
    told, refused = comparable(metrics, log, unit)
    with log.engine.scratch():
        chosen, said = (None, "") if where is None else pages_where(log, where)
        pages = metric_pages(log, told, settings, slices=span.slices(log), chosen=chosen)
        changes = compared(pages, told, (BEFORE, AFTER), BEFORE, unit, level, "holm")
        of_pages = [one for one in told if not is_session_metric(one)]
        parts = _parts(pages, of_pages, by, unit, level) if of_pages else {}
        of = f'SELECT slice, count(*) AS pages, count(DISTINCT "user") AS users FROM {pages.joined} GROUP BY slice'
        counts = {row["slice"]: row for row in log.engine.rows(of)}

    def count(period: str, name: str) -> int:
        return int(counts.get(period, {}).get(name, 0))

    left_out = {str(one): f"not here: {why}" for one, why in refused.items()}
    counted = ("pages", *([] if are_of_nobody(log.findings) else ["users"]))
    return Overview(
        periods=span,
        counts=tuple((name, count(BEFORE, name), count(AFTER, name)) for name in counted),
        movements=tuple(Movement(one, *parts.get(one.metric, (None, None, ()))) for one in changes),
        alpha=alpha,
        **about(log, unit, level, {"where": said, **left_out}, settings),
    )


_Parts = tuple[RatioDifference, RatioDifference, tuple[tuple[str, float], ...]]


def _parts(
    pages: PageFacts, metrics: Sequence[OnlineMetric], by: str, unit: Unit, level: float
) -> dict[OnlineMetric, _Parts]:
    """Part each change into mix and within, over queries."""
    columns = sorted({name for one in metrics for name in one.columns()})
    sums = ", ".join(f"CAST(sum({pages.columns[name]}) AS BIGINT) AS {identifier(name)}" for name in columns)
    text = f"coalesce(CAST(t.{identifier(by)} AS VARCHAR), '')"
    keyed = pages.log.engine.keep(
        f"""
        SELECT p.{identifier(unit)} AS unit, p.slice, {text} AS text, {sums}
        FROM {pages.joined} AS p JOIN (SELECT serp, {identifier(by)} FROM {pages.log.serp}) AS t ON t.serp = p.serp
        GROUP BY p.{identifier(unit)}, p.slice, {text}""",
        "asked",
    )
    return {metric: _part(keyed, metric, level) for metric in metrics}


def _part(keyed: Relation, metric: OnlineMetric, level: float) -> _Parts:
    """Part the change of one metric; its influences are added up by unit in the database."""
    engine, (numerator, denominator) = keyed.engine, map(identifier, metric.columns())
    sides = [(what, of, when) for what, of in (("n", numerator), ("d", denominator)) for when in (BEFORE, AFTER)]
    sums = (
        f"CAST(sum(CASE WHEN slice = '{when}' THEN {of} ELSE 0 END) AS BIGINT) AS {what}_{when}"
        for what, of, when in sides
    )
    by_text = engine.keep(f"SELECT text, {', '.join(sums)} FROM {keyed} GROUP BY text", "texts")
    alone = f"CASE WHEN least(d_{BEFORE}, d_{AFTER}) >= {_FEWEST} THEN text END"
    strata = engine.arrow(f"""
        SELECT {alone} AS text, {", ".join(f"CAST(sum({name}) AS DOUBLE) AS {name}" for name in by_text.columns[1:])}
        FROM {by_text} GROUP BY {alone} ORDER BY text NULLS LAST""")
    numerators, denominators = (
        np.stack([strata[f"{what}_{period}"].to_numpy() for period in (BEFORE, AFTER)]) for what in "nd"
    )
    scale, texts = numerator_scale(metric), strata["text"].to_pylist()
    if not (denominators.sum(axis=1) > 0).all():
        nothing = RatioDifference(math.nan, math.nan, math.nan, math.nan)
        return nothing, nothing, ()
    made = decomposition(numerators / scale, denominators)
    of = {"mix": made.mix_weights, "within": made.within_weights}
    parts = float(denominators.sum()) * _PARTS
    weights = {name: np.rint(part * parts / np.array([scale, 1.0])[None, :, None]) for name, part in of.items()}
    effective, units, squares = _influences(keyed, metric, texts, weights, by_text, alone)
    found = {
        name: RatioDifference(value, *part_interval(value, squares[name] / parts**2, units, effective, level), math.nan)
        for name, value in (("mix", made.mix), ("within", made.within))
    }
    order = np.argsort(-np.abs(made.by_stratum), kind="stable")[:_FIRST]
    moved = tuple((texts[at] or _REST, float(made.by_stratum[at])) for at in order.tolist() if made.by_stratum[at])
    return found["mix"], found["within"], moved


def _influences(
    keyed: Relation,
    metric: OnlineMetric,
    texts: list[str | None],
    weights: Mapping[str, Floats],
    by_text: Relation,
    alone: str,
) -> tuple[float, float, dict[str, float]]:
    """Give effective units of the smaller period, units, and the squares of their influences on mix and within."""
    engine, (numerator, denominator) = keyed.engine, map(identifier, metric.columns())
    columns: dict[str, Any] = {"text": pa.array([one for _ in range(2) for one in texts], pa.string())}
    columns["slice"] = [period for period in (BEFORE, AFTER) for _ in texts]
    for name, part in weights.items():
        for at, what in enumerate("nd"):
            columns[f"{name}_{what}"] = pa.array(part[:, at].reshape(-1).astype(np.int64))
    given = engine.register(pa.table(columns))
    moved = ", ".join(
        f"sum(CAST(k.{numerator} AS HUGEINT) * w.{name}_n + CAST(k.{denominator} AS HUGEINT) * w.{name}_d) AS {name}"
        for name in weights
    )
    row = engine.rows(f"""
        WITH stratum AS (SELECT text, {alone} AS alone FROM {by_text}),
        unit AS (
            SELECT k.unit, {moved},
                CAST(sum(CASE WHEN k.slice = '{BEFORE}' THEN k.{denominator} ELSE 0 END) AS HUGEINT) AS d_before,
                CAST(sum(CASE WHEN k.slice = '{AFTER}' THEN k.{denominator} ELSE 0 END) AS HUGEINT) AS d_after
            FROM {keyed} AS k JOIN stratum AS s ON s.text = k.text
            JOIN {given} AS w ON w.slice = k.slice AND w.text IS NOT DISTINCT FROM s.alone
            GROUP BY k.unit)
        SELECT count(*) AS units, {", ".join(f"CAST(sum({name} * {name}) AS VARCHAR) AS {name}" for name in weights)},
            CAST(sum(d_before) AS DOUBLE) * sum(d_before) / nullif(sum(d_before * d_before), 0) AS before,
            CAST(sum(d_after) AS DOUBLE) * sum(d_after) / nullif(sum(d_after * d_after), 0) AS after
        FROM unit WHERE d_before + d_after > 0""")[0]
    effective = min(float(row["before"] or 0), float(row["after"] or 0))
    return effective, float(row["units"]), {name: float(int(row[name] or 0)) for name in weights}
