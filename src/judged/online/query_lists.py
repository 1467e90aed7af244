"""Lists of queries with problems or changes in frequency: zero results, abandonment, reformulation, rise, and fall."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.differences import AFTER, BEFORE, Periods, periods
from judged.online.engine import Relation, identifier, sql_list
from judged.online.facts.columns import SCALES
from judged.online.facts.pages import FactSettings, page_facts
from judged.online.facts.reformulation import REFORMULATIONS, begin_next_queries
from judged.online.log import LogAnswer, answer_fields, check_column, validate
from judged.online.metrics import lacking_data, online_metric
from judged.online.slicing import pages_where
from judged.results import COUNT, NUMBER, SHARE, Column, Section, Sentences, Table, counted, number, truncated
from judged.results.spelling import one_of
from judged.stats.correction import (
    clopper_pearson_intervals,
    hypergeometric_p_values,
    poisson_rate_intervals,
    select_discoveries,
)
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Bools, Floats, Ints
    from judged.results.types import Table as ArrowTable

LISTS = {
    "zero": "with zero results",
    "abandoned": "that users abandon more often than other queries",
    "reformulated": "that users reformulate",
    "low-ctr": "with fewer clicks than expected from the ranks of the shown results",
    "slow": "with slow responses more often than other queries",
    "new": "that are new in the later period",
    "rising": "that are more frequent than before",
    "falling": "that are less frequent than before",
}
"""Descriptions of the queries in each list."""
_UNTESTED = ("zero", "reformulated")

_CHANGES = ("new", "rising", "falling")
_METRIC = {
    "zero": "ZeroResults",
    "abandoned": "PageCTR",
    "low-ctr": "CTRAtRank",
    "slow": "Latency",
}  # with the same needs
_MAX_RANK = 20  # deepest rank that contributes to expected clicks
_RESOLUTION = 1_000_000_000  # CTRs are rounded to integers, so that sums do not depend on the order of rows.
_SLOW_QUANTILE = 0.9  # of latency; slower pages are slow
_TEXT = truncated(60)


_TablesByName: TypeAlias = "Iterator[tuple[str, tuple[Table, int]]]"


@dataclass(frozen=True, eq=False, repr=False)
class QueryLists(LogAnswer):
    """Lists of queries; each is a table of its name, worst first, with one row per query.

    Parameters
    ----------
    by
        Column of the log that identifies queries.
    sections
        The lists.
    refused
        Lists that the log does not support, with the reason.
    periods
        Compared periods of lists of changes; None if the log has no dates.
    fdr, min_users
        False discovery rate, and minimum number of users of a listed query.
    """

    kind: ClassVar[str] = "queries"
    title_format: ClassVar[str] = "Queries that need attention: {log}"
    fact_fields: ClassVar[tuple[str, ...]] = ("by", "fdr", "min_users")

    by: str
    sections: tuple[Section, ...]
    refused: tuple[tuple[str, str], ...]
    periods: Periods | None
    fdr: float
    min_users: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """Number of queries in each list."""
        return tuple(f"{section.title}: {text}" for section in self.sections for text in section.sentences)

    def blocks(self) -> tuple[Block, ...]:
        """Return the lists and the block about the method."""
        unit = "For each query, a user counts once, with the first session that contains the query."
        if self.unit == "session":
            unit = "The log has no user IDs: each session counts as a user."
        sentences = [
            f"{unit} Queries with fewer than {self.min_users} {self.unit}s are not listed.",
            (
                f"Confidence intervals are exact and have a level of {self.level:.0%}. All lists except 'zero' and"
                " 'reformulated' contain only queries with a significant test, at a false discovery rate of"
                f" {self.fdr:.0%}."
            ),
        ]
        if self.periods is not None:
            sentences.append(f"Periods: {self.periods.compared}.")
        sentences += [f"Pages are filtered by {value}." for name, value in self.policies if name == "where"]
        sentences += [f"The list {name} is not available: {reason}." for name, reason in self.refused]
        return (*self.sections, Sentences(tuple(sentences), "method", "Method"))

    def facts(self) -> Mapping[str, Any]:
        """Return the options, periods, and unsupported lists."""
        times = vars(self.periods) if self.periods is not None else None
        return {**super().facts(), "periods": times, "refused": dict(self.refused)}


def queries(
    log: InteractionLog,
    lists: Sequence[str] | str | None = None,
    *,
    by: str = "query_norm",
    since: str | None = None,
    where: str | None = None,
    min_users: int = 2,
    limit: int | None = 20,
    level: float = 0.95,
    fdr: float = 0.1,
    settings: FactSettings | None = None,
) -> QueryLists:
    """List queries that need attention.

    ================  ================================================================================================
    list              queries
    ================  ================================================================================================
    ``zero``          with zero results, by number of users
    ``abandoned``     with results, and abandoned more often than other queries
    ``reformulated``  pairs of a query and its reformulation, with the type of reformulation
    ``low-ctr``       with fewer clicks than expected from the CTR of their ranks over all queries
    ``slow``          more often among the slowest 10% than other queries
    ``new``           ``rising`` queries that did not occur in the previous period
    ``rising``        with a larger share of all queries than in the previous period
    ``falling``       with a smaller share of all queries than in the previous period
    ================  ================================================================================================

    A user counts once per query, with the first session that contains it, so that active users have no larger weight.
    ``zero`` and ``reformulated`` are descriptive. The other lists contain queries with a significant test at the
    false discovery rate `fdr`, by Fisher's exact test against all other queries (``low-ctr``: quasi-Poisson test).
    Queries of fewer than six users are not tested.

    Parameters
    ----------
    log
        The log.
    lists
        Names of lists; None: all that the log supports.
    by
        Column that identifies queries, such as ``query_norm``, the text in lower case with single blanks.
    since
        Start of the second period, a date (UTC): see `judged.online.differences.periods`.
    where
        Condition for pages: see `judged.online.online_metrics`.
    min_users
        Minimum number of users of a listed query.
    limit
        Maximum number of rows of each list; None: all.
    level
        Confidence level.
    fdr
        False discovery rate.
    settings
        Gaps and windows that define sessions, visits, and reformulations.

    Raises
    ------
    InputError
        If a list or column is unknown, the log has no query texts, or an option is invalid.
    """
    validate(log=log, by=by, since=since, where=where, level=level, fdr=fdr, min_users=min_users)
    requested = [lists] if isinstance(lists, str) else LISTS if lists is None else lists
    requested = tuple(dict.fromkeys(one_of("list of queries", name, LISTS) for name in requested))
    check_column(log, by)
    reasons = {name: lacking_data(online_metric(_METRIC[name]), log.has) for name in requested if name in _METRIC}
    refused = {name: reason for name, reason in reasons.items() if reason}
    span, change_lists = None, [name for name in requested if name in _CHANGES]
    if change_lists:
        try:
            span = periods(log, since)
        except InputError as error:
            if since is not None:
                raise
            refused |= dict.fromkeys(change_lists, error.problem)
    names = [name for name in requested if name not in refused]
    with log.engine.scratch():
        # Pages without a text are in no list.
        text = f"nullif(CAST({identifier(by)} AS VARCHAR), '')"
        selection, condition = (None, "") if where is None else pages_where(log, where)
        options = _ListOptions(selection, min_users, limit, level, fdr)
        filter_sql = "" if selection is None else f" AND serp IN (FROM {selection})"
        texts = log.engine.query(f"SELECT serp, {text} AS text FROM {log.serp} WHERE {text} IS NOT NULL{filter_sql}")
        tables = dict(_tables(log, texts, names, span, settings or FactSettings(), options))
    return QueryLists(
        by=by,
        sections=tuple(_section(name, *tables[name]) for name in names),
        refused=tuple(refused.items()),
        periods=span,
        fdr=fdr,
        min_users=min_users,
        **answer_fields(log, "user", level, {"where": condition}, settings),
    )


def _section(name: str, table: Table, count: int) -> Section:
    total = counted(count, "reformulation") if name == "reformulated" else counted(count, "query", "queries")
    selection = f"; the first {len(table)} are listed" if len(table) < count else ""
    sentence = (
        f"{total}{selection}." if count else "No queries." if name in _UNTESTED else "No query has a significant test."
    )
    sentences = Sentences((sentence,), f"{table.name}_sentences")
    title = f"Queries {LISTS[name]} ({name})"
    return Section(name, title, (sentences, table if count else replace(table, only="data")))


@dataclass(frozen=True)
class _ListOptions:
    """Options that select and order the listed queries."""

    pages: Relation | None
    min_users: int
    limit: int | None
    level: float
    fdr: float

    def table(self, name: str, mask: Bools, weight: Floats, *columns: Column) -> tuple[Table, int]:
        """Build the table of the selected rows by decreasing weight (ties by text), and count them."""
        rows = np.flatnonzero(mask)
        # Rows are sorted by text in SQL; a stable sort keeps this order for ties.
        rows = rows[np.argsort(-weight[rows], kind="stable")]
        return Table(name, columns, labels=2 if name == "reformulated" else 1).take(rows[: self.limit].tolist()), len(
            rows
        )

    def discoveries(self, p_values: Floats, min_p_values: Floats, users: Ints) -> tuple[Bools, Column]:
        """Select significant rows at the false discovery rate; queries with too few users are not tested."""
        is_untested = users < MIN_UNITS["verdict"]
        tested, min_tested = (np.where(is_untested, 1.0, p) for p in (p_values, min_p_values))
        mask, adjusted = select_discoveries(tested, min_tested, self.fdr)
        return mask, Column("p", adjusted.tolist(), NUMBER, only="data")


def _tables(
    log: InteractionLog,
    texts: Relation,
    names: Sequence[str],
    span: Periods | None,
    settings: FactSettings,
    options: _ListOptions,
) -> _TablesByName:
    """Yield the table of each list, with its number of rows before the limit."""
    if "reformulated" in names:
        yield "reformulated", _reformulations(log, texts, settings, options)
    if span is not None:
        yield from _change_lists(log, texts, span, options)
    if set(names) & set(_METRIC):
        queries, totals = _first_sessions(log, texts, settings, options, ranked="low-ctr" in names)
        yield from _problem_lists(queries, totals, options)


def _first_sessions(
    log: InteractionLog, texts: Relation, settings: FactSettings, options: _ListOptions, *, ranked: bool
) -> tuple[ArrowTable, dict[str, int]]:
    """Aggregate the first session of each user with a query, by query and over all queries."""
    engine = log.engine
    ranks = range(1, _MAX_RANK + 1) if ranked else ()
    facts = ["answered", "abandoned", "zero", "zero_known", "latency_s", "latency_known"]
    facts += [f"{count}_at_{rank}" for rank in ranks for count in ("shown", "opened")]
    pages = page_facts(log, facts, settings, chosen=options.pages)
    sql = pages.columns
    rank_sums = (f"sum({sql[f'{count}_at_{r}']}) AS {count}_{r}" for r in ranks for count in ("shown", "opened"))
    rank_totals = engine.rows(f"SELECT {', '.join(rank_sums)} FROM {pages.joined}")[0] if ranks else {}
    # Expected clicks of a query: its impressions times the CTR of their ranks over all queries.
    ctr = {
        r: round(_RESOLUTION * int(rank_totals[f"opened_{r}"] or 0) / int(rank_totals[f"shown_{r}"] or 1))
        for r in ranks
    }
    expected = " + ".join(f"{ctr[r]} * ({sql[f'shown_at_{r}']})" for r in ranks) or "0"
    opened = " + ".join(f"({sql[f'opened_at_{r}']})" for r in ranks) or "0"
    outcomes = ", ".join(f"{sql[name]} AS {name}" for name in facts[:4])
    sums = ("answered", "abandoned", "zero", "zero_known", "clicks", "expected", "slow", "timed")
    counts = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in sums)
    visits = engine.keep(f"""
        WITH page AS (
            SELECT p."user", p.session, p.time_ms, t.text, {outcomes}, {opened} AS clicks, {expected} AS expected,
                CASE WHEN ({sql["latency_known"]}) = 1 THEN {sql["latency_s"]} END AS latency
            FROM {pages.joined} AS p JOIN {texts} AS t ON t.serp = p.serp),
        visit AS (
            SELECT "user", text, session, min(time_ms) AS time_ms, max(answered) AS answered,
                max(answered) * min(abandoned) AS abandoned, max(zero) AS zero, max(zero_known) AS zero_known,
                sum(clicks) AS clicks, sum(expected) AS expected, arg_min(latency, time_ms) AS latency
            FROM page GROUP BY "user", text, session),
        numbered AS (
            SELECT *, row_number() OVER (PARTITION BY "user", text ORDER BY time_ms, session) AS nth FROM visit),
        first AS (SELECT * FROM numbered WHERE nth = 1),
        usual AS (SELECT quantile_disc(latency, {_SLOW_QUANTILE}) AS latency FROM first)
        SELECT f.text, f.answered, f.abandoned, f.zero, f.zero_known, f.clicks, f.expected, f.latency,
            CASE WHEN f.latency > u.latency THEN 1 ELSE 0 END AS slow,
            CASE WHEN f.latency IS NOT NULL THEN 1 ELSE 0 END AS timed
        FROM first AS f CROSS JOIN usual AS u""", "first")  # fmt: skip
    residual = f"CAST({_RESOLUTION} * clicks - expected AS HUGEINT)"
    totals = engine.rows(f"SELECT {counts}, CAST(sum({residual} * {residual}) AS VARCHAR) AS squares FROM {visits}")[0]
    queries = engine.arrow(f"""
        SELECT text, count(*) AS users, {counts}, median(latency) / {SCALES["latency_s"]}.0 AS seconds FROM {visits}
        GROUP BY text HAVING count(*) >= {options.min_users} ORDER BY text""")
    return queries, {name: int(value or 0) for name, value in totals.items()}


def _problem_lists(queries: ArrowTable, totals: Mapping[str, int], options: _ListOptions) -> _TablesByName:
    """Yield the lists of queries with zero results, abandonment, few clicks, or slow answers."""
    column = {name: queries[name].to_numpy() for name in queries.column_names if name != "text"}
    query = Column("query", queries["text"].to_pylist(), _TEXT)
    users = _numbers("users", column["users"])

    zero, pages = column["zero"], column["zero_known"]
    share = _share("share", zero, pages, options.level)
    yield "zero", options.table("zero", zero > 0, zero, query, users, _numbers("zero", zero, "zero results"), share)

    for name, counts, sizes in (("abandoned", "abandoned", "answered"), ("slow", "slow", "timed")):
        hits, sample = column[counts], column[sizes]
        # Fisher's exact test of the query against all other queries.
        p_values = hypergeometric_p_values(hits, sample, totals[counts], totals[sizes])
        mask, p = options.discoveries(*p_values, sample)
        excess = hits - sample * totals[counts] / max(totals[sizes], 1)
        share = _share("share", hits, sample, options.level)
        columns = [query, _numbers("users", sample), _numbers(name, hits, name), share]
        if name == "slow":
            columns.append(Column("seconds", column["seconds"].tolist(), number(3), "median latency (s)"))
        yield name, options.table(name, mask, excess, *columns, p)

    from scipy.special import gammaincc

    # Quasi-Poisson: variances are multiplied by the dispersion, at least 1, since clicks of a session are correlated.
    clicks, expected = column["clicks"], column["expected"] / _RESOLUTION
    dispersion = max(1.0, totals["squares"] / _RESOLUTION / max(totals["expected"], 1))
    rows = expected > 0
    # Queries without expected clicks cannot be significant.
    p_values, min_p_values = np.ones(len(clicks)), np.ones(len(clicks))
    p_values[rows] = gammaincc(clicks[rows] / dispersion + 1.0, expected[rows] / dispersion)
    min_p_values[rows] = np.exp(-expected[rows] / dispersion)
    mask, p = options.discoveries(p_values, min_p_values, column["users"])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rows, clicks / expected, np.nan)
        limits = poisson_rate_intervals(clicks / dispersion, expected / dispersion, options.level)
    yield "low-ctr", options.table(
        "low_ctr", mask, expected - clicks, query, users, _numbers("clicks", clicks),
        Column("expected", expected.tolist(), number(1)),
        Column("ratio", ratio.tolist(), number(3), "clicks / expected", ci=_intervals(*limits)), p,
    )  # fmt: skip


def _reformulations(
    log: InteractionLog, texts: Relation, settings: FactSettings, options: _ListOptions
) -> tuple[Table, int]:
    """Build the list of reformulations, with the share of the users of a query who used each."""
    next_queries = begin_next_queries(log.serp, within_ms=round(settings.reformulation_gap * 1000))()
    changes = log.engine.arrow(f"""
        WITH issued AS (
            SELECT p.serp, p."user", t.text FROM {log.serp} AS p JOIN {texts} AS t ON t.serp = p.serp
            WHERE p.page = 1),
        users AS (SELECT text, count(DISTINCT "user") AS users FROM issued GROUP BY text)
        SELECT a.text, b.text AS changed, n.kind, count(DISTINCT a."user") AS reformulated, count(*) AS times,
            any_value(u.users) AS users
        FROM {next_queries} AS n JOIN issued AS a ON a.serp = n.serp JOIN {texts} AS b ON b.serp = n.next_serp
        JOIN users AS u ON u.text = a.text
        WHERE n.kind IN {sql_list(REFORMULATIONS)}
        GROUP BY a.text, b.text, n.kind HAVING count(DISTINCT a."user") >= {options.min_users}
        ORDER BY a.text, b.text, n.kind""")
    reformulated, users = changes["reformulated"].to_numpy(), changes["users"].to_numpy()
    columns = (
        Column("query", changes["text"].to_pylist(), truncated(50)),
        Column("next_query", changes["changed"].to_pylist(), truncated(50), "next query"),
        Column("type", changes["kind"].to_pylist()),
        _numbers("users", users),
        _numbers("reformulated", reformulated, "reformulated"),
        _share("share", reformulated, users, options.level),
        Column("times", changes["times"].to_pylist(), COUNT, only="data"),
    )
    return options.table("reformulated", np.ones(len(users), dtype=np.bool_), reformulated, *columns)


def _change_lists(log: InteractionLog, texts: Relation, span: Periods, options: _ListOptions) -> _TablesByName:
    """Yield the lists of queries whose share of all queries differs from the previous period."""
    counts = log.engine.keep(f"""
        WITH page AS (
            SELECT p."user", t.text, {span.sql} AS period FROM {log.serp} AS p JOIN {texts} AS t ON t.serp = p.serp)
        SELECT text, count(DISTINCT CASE WHEN period = '{BEFORE}' THEN "user" END) AS before,
            count(DISTINCT CASE WHEN period = '{AFTER}' THEN "user" END) AS after
        FROM page WHERE period IS NOT NULL GROUP BY text""", "issued")  # fmt: skip
    totals = log.engine.rows(f"SELECT sum(before) AS before, sum(after) AS after FROM {counts}")[0]
    all_before, all_after = int(totals["before"] or 0), int(totals["after"] or 0)
    changes = log.engine.arrow(f"FROM {counts} WHERE before + after >= {options.min_users} ORDER BY text")
    before, after = changes["before"].to_numpy(), changes["after"].to_numpy()
    query = Column("query", changes["text"].to_pylist(), _TEXT)
    low, high = clopper_pearson_intervals(after, before + after, options.level)
    scale = max(all_before, 1) / max(all_after, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, limits = scale * after / before, (scale * low / (1.0 - low), scale * high / (1.0 - high))
    # Expected users after, if the share of the query had not changed.
    expected = (before + after) * all_after / max(all_before + all_after, 1)
    columns = (
        query,
        _numbers("before", before, "users before"),
        _numbers("after", after, "users after"),
        Column("ratio", [value if math.isfinite(value) else None for value in ratio.tolist()], number(3),
               "share after / before", ci=_intervals(*limits)),
    )  # fmt: skip
    for name, hits, all_hits in (("rising", after, all_after), ("falling", before, all_before)):
        p_values = hypergeometric_p_values(hits, before + after, all_hits, all_before + all_after)
        mask, p = options.discoveries(*p_values, before + after)
        weight = np.abs(after - expected)
        if name == "rising":
            yield "new", options.table("new", mask & (before == 0), weight, *columns[:3], p)
        yield name, options.table(name, mask, weight, *columns, p)


def _numbers(name: str, values: Any, title: str | None = None) -> Column:
    return Column(name, values.tolist(), COUNT, title)


def _share(name: str, counts: Any, sizes: Any, level: float) -> Column:
    with np.errstate(divide="ignore", invalid="ignore"):
        intervals = _intervals(*clopper_pearson_intervals(counts, sizes, level))
        return Column(name, (counts / sizes).tolist(), SHARE, ci=intervals)


def _intervals(low: Floats, high: Floats) -> list[tuple[float, float]]:
    return list(zip(low.tolist(), high.tolist(), strict=True))
