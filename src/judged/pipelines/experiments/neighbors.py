"""Approximate nearest neighbors: their recall, the loss of effectiveness against exact search, and their speed."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.pipelines.experiments.configurations import format_levels
from judged.results import Chart, Section, Sentences, Table
from judged.results.decimals import counted, decimal
from judged.results.table import NUMBER, TEXT, YES_NO, Column, significant
from judged.stats.bounded import bounded_mean
from judged.stats.effect import share_bound
from judged.stats.inputs import paired_differences
from judged.stats.interval import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.results import Block
    from judged.results.table import IntervalLimits
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores

MARGIN = 0.01
"""Default largest difference from exact search that does not matter."""
_EF = "ef_query"


class NeighborSearch(NamedTuple):
    """Results of an engine of vectors, compared with exact search over the same vectors."""

    k: int  # number of neighbors
    vectors: str  # hash of the vectors: configurations with the same hash have the same exact results
    is_exact: bool
    recall: tuple[float, ...]  # by query
    inverse_ratio: tuple[float, ...]  # by query
    queries_per_second: float | None  # of one thread, median over rounds; None without measurements

    @classmethod
    def read(cls, measurements: Mapping[str, Any]) -> NeighborSearch | None:
        """Read the measurements of a configuration; None if it does not search vectors."""
        fields = measurements.get("neighbors")
        milliseconds = np.array(measurements["rounds_ms"], dtype=np.float64)
        per_second = float(1000 / np.median(milliseconds.mean(axis=1))) if milliseconds.size else None
        return fields and cls(
            fields["k"], fields["vectors"], fields["exact"], tuple(fields["recall"]), tuple(fields["inverse_ratio"]),
            per_second,
        )  # fmt: skip


class NeighborRow(NamedTuple):
    """A configuration that searches vectors."""

    run: str
    index_name: str  # levels of all factors except ef_query
    ef_query: int | None  # None if it is no factor
    search: NeighborSearch
    exact: str  # configuration with exact search over the same vectors; empty if there is none
    p: float | None  # of the equivalence test against exact search; None without exact search
    # whether this test and all tests with a higher ef_query of the same index show equivalence
    is_equivalent: bool | None


def neighbor_rows(
    searches: Mapping[str, NeighborSearch],
    levels: Mapping[str, Mapping[str, Any]],
    scores: Scores,
    margin: float,
    level: float,
) -> tuple[NeighborRow, ...]:
    """Compare approximate with exact searches.

    Approximate search loses much on few topics, and a sample may contain none of them, so that a t-test would find
    equivalence too often. The equivalence tests are two one-sided tests of bounded means, which are valid for every
    distribution (`judged.stats.bounded_mean`). The tests of an index are in a fixed sequence, from the highest
    `ef_query` down to the first that does not show equivalence, so they need no correction (Maurer, Hothorn and
    Lehmacher 1995). Their significance level is ``1 - level``, divided by the number of indexes.

    Parameters
    ----------
    searches
        By configuration.
    levels
        Level of each factor, by configuration.
    scores
        Scores of one measure.
    margin
        Largest difference from exact search that does not matter, above 0, in the unit of the measure.
    level
        1 - alpha of all equivalence tests together.

    Returns
    -------
    tuple of NeighborRow
        By index, with descending `ef_query`; exact searches first.
    """
    exact_runs = {search.vectors: run for run, search in searches.items() if search.is_exact}

    def index_of(run: str) -> str:
        return format_levels({factor: value for factor, value in levels[run].items() if factor != _EF})

    runs = sorted(
        (run for run in searches if run in scores.run_names),
        key=lambda run: (not searches[run].is_exact, index_of(run), -levels[run].get(_EF, 0)),
    )
    tested = [run for run in runs if not searches[run].is_exact and searches[run].vectors in exact_runs]
    alpha = (1 - level) / max(len(set(map(index_of, tested))), 1)
    score_range = scores.measures[0].properties.score_range
    values = dict(zip(scores.run_names, scores.values[:, 0], strict=True))
    rows: list[NeighborRow] = []
    for index, index_runs in groupby(runs, index_of):
        are_equivalent = True
        for run in index_runs:
            exact, p = exact_runs.get(searches[run].vectors, ""), None
            if run in tested and math.isfinite(score_range):
                p = equivalence_p(values[exact], values[run], margin, score_range)
                are_equivalent = are_equivalent and p <= alpha
            is_equivalent = None if p is None else are_equivalent
            rows.append(NeighborRow(run, index, levels[run].get(_EF), searches[run], exact, p, is_equivalent))
    return tuple(rows)


def equivalence_p(first: Floats, second: Floats, margin: float, score_range: float) -> float:
    """Test whether the means of two systems differ by less than a margin, for every distribution of differences.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN for missing scores.
    margin
        Above 0, in the unit of the scores.
    score_range
        Highest minus lowest possible score.

    Returns
    -------
    float
        The larger p-value of two one-sided tests of a bounded mean. It is 1 without topics, and 0 for a margin above
        the range, which no difference can exceed.

    Raises
    ------
    InputError
        If the margin is not positive and finite.

    Examples
    --------
    >>> scores = np.full(400, 0.5)
    >>> equivalence_p(scores, scores, 0.01, 1.0) < 0.05, equivalence_p(scores[:200], scores[:200], 0.01, 1.0) < 0.05
    (True, False)
    """
    if not 0 < margin < math.inf:
        raise InputError(f"`margin` must be a positive number, got {margin}", fix="use 0.01, for example")
    differences, _ = paired_differences(first, second)
    if not len(differences) or margin > score_range:
        return float(margin <= score_range or not len(differences))
    bounds = -score_range, score_range
    above = bounded_mean(differences, *bounds, null=-margin, alternative="greater").p
    return max(above, bounded_mean(differences, *bounds, null=margin, alternative="less").p)


def neighbor_section(
    rows: Sequence[NeighborRow], scores: Scores, costs: Mapping[str, Mapping[str, Any]], margin: float, level: float
) -> Section:
    """Return the table, the verdicts, and the charts of speed against recall and effectiveness."""
    sentences = Sentences(tuple(_sentences(rows, scores, margin, level)))
    table = _table(rows, scores, costs, level)
    recall, measure = table.column("recall"), table.column("value")
    charts = [_chart(name, table, column) for name, column in (("recall", recall), ("measure", measure))]
    blocks: tuple[Block, ...] = (sentences, table, *charts)
    return Section("neighbors", "Approximate nearest neighbors", blocks)


def _means(rows: Sequence[NeighborRow], name: str, level: float) -> tuple[list[float], list[IntervalLimits]]:
    """Return means over queries with intervals; exact searches have none."""
    means: list[float] = []
    intervals: list[IntervalLimits] = []
    for row in rows:  # an engine may refuse queries that another one accepts, so the numbers of queries differ
        values = np.array(getattr(row.search, name), dtype=np.float64)
        means.append(float(values.mean()))
        ((low, high),) = mean_intervals(values[np.newaxis], IntervalMethod(level=level), (0, 1)).tolist()
        intervals.append(None if row.search.is_exact or np.isnan(low) else (low, high))
    return means, intervals


def _table(rows: Sequence[NeighborRow], scores: Scores, costs: Mapping[str, Mapping[str, Any]], level: float) -> Table:
    """Return a table with one row per configuration that searches vectors."""
    k, names = rows[0].search.k, [row.run for row in rows]
    estimates = {estimate.run: estimate for estimate in scores.estimates(level=level)}
    recalls, recall_limits = _means(rows, "recall", level)
    ratios, ratio_limits = _means(rows, "inverse_ratio", level)
    cost_columns = [
        Column(name, [costs.get(run, {}).get(name) for run in names], significant(3))
        for name in ("p50_ms", "p95_ms", "p99_ms", "index_seconds", "index_mb")
    ]
    columns = (
        Column("run", names, TEXT, "configuration"),
        Column("index", [row.index_name for row in rows], TEXT, only="data"),
        Column("recall", recalls, NUMBER, f"recall@{k}", ci=recall_limits),
        Column("inverse_ratio", ratios, NUMBER, f"1/ratio@{k}", ci=ratio_limits),
        Column("value", [estimates[run].value for run in names], NUMBER, scores.measure_names[0],
               ci=[estimates[run].ci for run in names]),
        Column("equivalent", [row.is_equivalent for row in rows], YES_NO, "equivalence shown"),
        Column("equivalence_p", [row.p for row in rows], only="data"),
        Column("queries_per_second", [row.search.queries_per_second for row in rows], significant(3), "queries/s"),
        *cost_columns,
    )  # fmt: skip
    note = (
        f"recall@{k}: share of the exact {k} nearest documents that were returned; 1/ratio@{k}: inverse mean ratio of"
        f" the distances of returned and exact documents; {level:.0%} CIs over queries; queries/s: one thread;"
        " index_seconds includes the embedding of documents; equivalence: two one-sided tests that are valid for every"
        f" distribution, from the highest {_EF} down, alpha = {1 - level:.3g} divided by the number of indexes"
    )
    return Table("neighbors", columns, note=note, one_piece=True)


def _chart(name: str, table: Table, column: Column) -> Chart:
    """Return the chart of queries per second over recall or effectiveness, with the Pareto front."""
    speeds = [np.nan if value is None else value for value in table.column("queries_per_second").values]
    points = np.array([column.values, speeds], dtype=np.float64)
    is_front = [
        not ((points >= point[:, np.newaxis]).all(axis=0) & (points > point[:, np.newaxis]).any(axis=0)).any()
        for point in points.T
    ]
    indexes = [index or "all" for index in table.column("index").values]
    columns = (
        Column("run", table.column("run").values, TEXT),
        Column("index", indexes, TEXT),
        Column("quality", column.values, NUMBER, column.heading),
        Column("speed", table.column("queries_per_second").values, significant(3), "queries per second, one thread"),
        Column("front", is_front, only="data"),
    )
    return Chart(
        name=f"speed_{name}",
        title=f"Queries per second against {column.heading}",
        subtitle="upper right is better; dashed: Pareto front",
        table=Table(f"speed_{name}", columns, only="people"),
        sentence=f"Queries per second of each configuration over its {column.heading}, with the Pareto front.",
        kind="points",
        x="quality",
        y="speed",
        color="index",
        label="run",
        path="front",
        steps="step-before",
        logarithmic=True,
    )


def _sentences(rows: Sequence[NeighborRow], scores: Scores, margin: float, level: float) -> Iterator[str]:
    """Yield the verdict on each index."""
    measure = scores.measure_names[0]
    approximate = [row for row in rows if not row.search.is_exact]
    indexes = {index: list(group) for index, group in groupby(approximate, lambda row: row.index_name)}
    n_tested = sum(group[0].p is not None for group in indexes.values())
    n = int((~np.isnan(scores.values[:, 0]).any(axis=0)).sum())
    for index, group in indexes.items():
        name, first = index or group[0].run, group[0]
        if first.p is None:
            yield (
                f"{name}: the loss of {measure} was not tested, because no configuration has exact search over the same"
                " vectors (engine dense), or because the measure has no bounds."
            )
            continue
        equivalent = [row for row in group if row.is_equivalent]
        difference = f"the mean {measure} differs from exact search ({first.exact}) by less than {margin:g}"
        if equivalent:
            lowest_ef = equivalent[-1].ef_query
            condition = "" if lowest_ef is None else f"at {_EF} >= {lowest_ef}, "
            yield f"{name}: {condition}{difference}."
        else:
            yield f"{name}: it is not shown that {difference}. This does not show a loss."
    score_range = scores.measures[0].properties.score_range
    if n_tested and math.isfinite(score_range):
        least = score_range * share_bound(0, n, 1 - (1 - level) / n_tested)
        if least > margin:
            yield (
                f"With {counted(n, 'topic')}, no test can show a difference of less than {decimal(least, 2)}, even with"
                " equal scores on all topics: a large loss on rare topics could be missing from the sample."
            )
