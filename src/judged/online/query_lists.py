"""Lists of queries that somebody should look at: those that find nothing, are left, are asked again, rise, fall."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.online.differences import AFTER, BEFORE, Periods, periods
from judged.online.engine import Relation, identifier, listed
from judged.online.facts.columns import SCALES
from judged.online.facts.pages import FactSettings, page_facts
from judged.online.facts.reformulation import REFORMULATIONS, begin_next_queries
from judged.online.log import LogAnswer, about, need, need_column
from judged.online.metrics import missing, online_metric
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
    "zero": "found nothing",
    "left": "left without a click",
    "again": "asked again in other words",
    "low-ctr": "clicked less than is usual at their ranks",
    "slow": "answered slowly",
    "new": "not asked before",
    "rising": "asked more than before",
    "falling": "asked less than before",
}
"""The lists, and what is said of queries in them."""

_CHANGES = ("new", "rising", "falling")
_METRIC = {"zero": "ZeroResults", "left": "PageCTR", "low-ctr": "CTRAtRank", "slow": "Latency"}  # need the same
_DEEPEST = 20  # ranks whose CTR is expected
_PARTS = 1_000_000_000  # in which the CTR of a rank is counted: sums of whole numbers are the same in any order
_SLOW = 0.9  # share of the first answers that come sooner than a slow one
_TEXT = truncated(60)


@dataclass(frozen=True, eq=False, repr=False)
class QueryLists(LogAnswer):
    """Lists of queries; each is a table of its name, worst first, with a row a query.

    Parameters
    ----------
    by
        What tells queries apart: a column of the log.
    sections
        The lists.
    refused
        Lists that this log cannot tell, with the reason.
    periods
        What was compared for lists of change; None where the log has no dates.
    fdr, min_users
        As asked for.
    """

    kind: ClassVar[str] = "queries"
    answers: ClassVar[str] = "Queries to look at: {log}"
    asked: ClassVar[tuple[str, ...]] = ("by", "fdr", "min_users")

    by: str
    sections: tuple[Section, ...]
    refused: tuple[tuple[str, str], ...]
    periods: Periods | None
    fdr: float
    min_users: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """How long each list is."""
        return tuple(f"{section.title}: {text}" for section in self.sections for text in section.sentences)

    def blocks(self) -> tuple[Block, ...]:
        """Give the lists, and how they were made."""
        who = f"A user counts once a query, with the first session that asked it; of {self.min_users} or more"
        if self.unit == "session":
            who = f"No page names its user: each session counts as one; {self.min_users} or more"
        said = [
            f"{who}; exact {self.level:.0%} intervals; of lists that are tested on average {self.fdr:.0%} may be false."
        ]
        if self.periods is not None:
            said.append(f"Compared in time: {self.periods.compared}.")
        said += [f"Only pages with {value}." for name, value in self.policies if name == "where"]
        said += [f"Not listed, {name}: {why}." for name, why in self.refused]
        return (*self.sections, Sentences(tuple(said), "rules", "How this was made"))

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for, and which lists there are not."""
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
    """List the queries that somebody should look at.

    =============  ====================================================================================================
    list           queries
    =============  ====================================================================================================
    ``zero``       that found nothing, by users who met that
    ``left``       more often left without a click, though something was found, than other queries
    ``again``      pairs: the query, what it was changed to, and the kind of the change
    ``low-ctr``    with fewer clicks than the same ranks get over all queries
    ``slow``       more often among the slowest tenth of answers than other queries
    ``new``        ``rising`` ones that were not asked before
    ``rising``     with a larger share of what is asked than in the period before
    ``falling``    with a smaller one
    =============  ====================================================================================================

    A user counts once for each query, with the first session in which he asked it, so that one who asks a hundred times
    is not a hundred. All lists but ``zero`` and ``again``, which say what happened, are restricted to what can be told:
    exact tests against all other queries (Fisher's; for ``low-ctr`` a Poisson count, as much wider as clicks vary),
    with at most the share `fdr` of false ones on average among those listed. Queries of fewer than six users are not
    tested.

    Parameters
    ----------
    log
        The log.
    lists
        Some of the above; None: all that the log can tell.
    by
        What tells queries apart: ``query_norm``, the text in lower case with blanks made one, or a column of the log.
    since
        When the later period begins, a date (UTC): see `judged.online.difference.periods`.
    where
        Only pages that meet this condition count: see `judged.online.online_metrics`.
    min_users
        Queries of fewer users are not listed.
    limit
        So many rows of each list; None: all.
    level
        Of the intervals.
    fdr
        The rate of false discoveries.
    settings
        What counts as belonging together.

    Raises
    ------
    InputError
        If there is no such list or column, the log has no texts, or an option makes no sense.
    """
    need(log=log, by=by, since=since, where=where, level=level, fdr=fdr, min_users=min_users)
    given = [lists] if isinstance(lists, str) else LISTS if lists is None else lists
    wanted = tuple(dict.fromkeys(one_of("list of queries", name, LISTS) for name in given))
    need_column(log, by)
    why = {name: missing(online_metric(_METRIC[name]), log.has) for name in wanted if name in _METRIC}
    refused = {name: reason for name, reason in why.items() if reason}
    span, changing = None, [name for name in wanted if name in _CHANGES]
    if changing:
        try:
            span = periods(log, since)
        except InputError as error:
            if since is not None:
                raise
            refused |= dict.fromkeys(changing, error.problem)
    names = [name for name in wanted if name not in refused]
    with log.engine.scratch():
        text = f"nullif(CAST({identifier(by)} AS VARCHAR), '')"
        only, said = (None, "") if where is None else pages_where(log, where)
        chosen = _Chosen(only, min_users, limit, level, fdr)
        some = "" if only is None else f" AND serp IN (FROM {only})"
        texts = log.engine.query(f"SELECT serp, {text} AS text FROM {log.serp} WHERE {text} IS NOT NULL{some}")
        made = dict(_tables(log, texts, names, span, settings or FactSettings(), chosen))
    return QueryLists(
        by=by,
        sections=tuple(_section(name, *made[name]) for name in names),
        refused=tuple(refused.items()),
        periods=span,
        fdr=fdr,
        min_users=min_users,
        **about(log, "user", level, {"where": said}, settings),
    )


def _section(name: str, table: Table, count: int) -> Section:
    of = counted(count, "change", "changes") if name == "again" else counted(count, "query", "queries")
    some = f", the first {len(table)} here" if len(table) < count else ""
    said = Sentences((f"{of}{some}." if count else "None that can be told.",), f"{table.name}_sentences")
    return Section(
        name, f"{LISTS[name].capitalize()} ({name})", (said, table if count else replace(table, only="data"))
    )


@dataclass(frozen=True)
class _Chosen:
    """What is listed of all that there is."""

    pages: Relation | None
    min_users: int
    limit: int | None
    level: float
    fdr: float

    def table(self, name: str, mask: Bools, weight: Floats, *columns: Column) -> tuple[Table, int]:
        """Lay out the rows of a mask, the heaviest first, ties in the order of the texts; and count all of them."""
        rows = np.flatnonzero(mask)
        rows = rows[np.argsort(-weight[rows], kind="stable")]
        return Table(name, columns, labels=2 if name == "again" else 1).take(rows[: self.limit].tolist()), len(rows)

    def told(self, chance: Floats, least: Floats, users: Ints) -> tuple[Bools, Column]:
        """Choose what can be told, and lay out the p-values; of fewer than six users nothing can."""
        few = users < MIN_UNITS["verdict"]
        mask, adjusted = select_discoveries(np.where(few, 1.0, chance), np.where(few, 1.0, least), self.fdr)
        return mask, Column("p", adjusted.tolist(), NUMBER, only="data")


def _tables(
    log: InteractionLog,
    texts: Relation,
    names: Sequence[str],
    span: Periods | None,
    settings: FactSettings,
    chosen: _Chosen,
) -> Iterator[tuple[str, tuple[Table, int]]]:
    """Make the tables of the lists, each with how many rows it has without the limit."""
    if "again" in names:
        yield "again", _again(log, texts, settings, chosen)
    if span is not None:
        yield from _changes(log, texts, span, chosen)
    if set(names) & set(_METRIC):
        found, all_of = _first_sessions(log, texts, settings, chosen, ranked="low-ctr" in names)
        yield from _troubles(found, all_of, chosen)


def _first_sessions(
    log: InteractionLog, texts: Relation, settings: FactSettings, chosen: _Chosen, *, ranked: bool
) -> tuple[ArrowTable, dict[str, int]]:
    """Count of each query the first session of each user that asked it; and add these up over all queries."""
    engine = log.engine
    ranks = range(1, _DEEPEST + 1) if ranked else ()
    asked = ["answered", "abandoned", "zero", "zero_known", "latency_s", "latency_known"]
    asked += [f"{what}_at_{r}" for r in ranks for what in ("shown", "opened")]
    pages = page_facts(log, asked, settings, chosen=chosen.pages)
    made = pages.columns
    at_ranks = ", ".join(f"sum({made[f'{what}_at_{r}']}) AS {what}_{r}" for r in ranks for what in ("shown", "opened"))
    usual = engine.rows(f"SELECT {at_ranks} FROM {pages.joined}")[0] if ranks else {}
    ctr = {r: round(_PARTS * int(usual[f"opened_{r}"] or 0) / int(usual[f"shown_{r}"] or 1)) for r in ranks}
    expected = " + ".join(f"{ctr[r]} * ({made[f'shown_at_{r}']})" for r in ranks) or "0"
    opened = " + ".join(f"({made[f'opened_at_{r}']})" for r in ranks) or "0"
    facts = ", ".join(f"{made[name]} AS {name}" for name in asked[:4])
    sums = ("answered", "abandoned", "zero", "zero_known", "clicks", "expected", "slow", "timed")
    counts = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in sums)
    kept = engine.keep(f"""
        WITH page AS (
            SELECT p."user", p.session, p.time_ms, t.text, {facts}, {opened} AS clicks, {expected} AS expected,
                CASE WHEN ({made["latency_known"]}) = 1 THEN {made["latency_s"]} END AS latency
            FROM {pages.joined} AS p JOIN {texts} AS t ON t.serp = p.serp),
        visit AS (
            SELECT "user", text, session, min(time_ms) AS time_ms, max(answered) AS answered,
                max(answered) * min(abandoned) AS abandoned, max(zero) AS zero, max(zero_known) AS zero_known,
                sum(clicks) AS clicks, sum(expected) AS expected, arg_min(latency, time_ms) AS latency
            FROM page GROUP BY "user", text, session),
        numbered AS (
            SELECT *, row_number() OVER (PARTITION BY "user", text ORDER BY time_ms, session) AS nth FROM visit),
        first AS (SELECT * FROM numbered WHERE nth = 1),
        usual AS (SELECT quantile_disc(latency, {_SLOW}) AS latency FROM first)
        SELECT f.text, f.answered, f.abandoned, f.zero, f.zero_known, f.clicks, f.expected, f.latency,
            CASE WHEN f.latency > u.latency THEN 1 ELSE 0 END AS slow,
            CASE WHEN f.latency IS NOT NULL THEN 1 ELSE 0 END AS timed
        FROM first AS f CROSS JOIN usual AS u""", "first")  # fmt: skip
    apart = f"CAST({_PARTS} * clicks - expected AS HUGEINT)"
    total = engine.rows(f"SELECT {counts}, CAST(sum({apart} * {apart}) AS VARCHAR) AS squares FROM {kept}")[0]
    found = engine.arrow(f"""
        SELECT text, count(*) AS users, {counts}, median(latency) / {SCALES["latency_s"]}.0 AS seconds FROM {kept}
        GROUP BY text HAVING count(*) >= {chosen.min_users} ORDER BY text""")
    return found, {name: int(value or 0) for name, value in total.items()}


def _troubles(found: ArrowTable, all_of: Mapping[str, int], chosen: _Chosen) -> Iterator[tuple[str, tuple[Table, int]]]:
    """Make the lists of queries that find nothing, are left, get few clicks, or are slow."""
    column = {name: found[name].to_numpy() for name in found.column_names if name != "text"}
    query = Column("query", found["text"].to_pylist(), _TEXT)
    users = _numbers("users", column["users"])

    zero, known = column["zero"], column["zero_known"]
    share = _share("share", zero, known, chosen.level)
    yield "zero", chosen.table("zero", zero > 0, zero, query, users, _numbers("zero", zero, "found nothing"), share)

    for name, counts, sizes in (("left", "abandoned", "answered"), ("slow", "slow", "timed")):
        hits, of = column[counts], column[sizes]
        mask, p = chosen.told(*hypergeometric_p_values(hits, of, all_of[counts], all_of[sizes]), of)
        excess = hits - of * all_of[counts] / max(all_of[sizes], 1)
        columns = [query, _numbers("users", of), _numbers(name, hits, name), _share("share", hits, of, chosen.level)]
        if name == "slow":
            columns.append(Column("seconds", column["seconds"].tolist(), number(3), "median s"))
        yield name, chosen.table(name, mask, excess, *columns, p)

    from scipy.special import gammaincc

    clicks, expected = column["clicks"], column["expected"] / _PARTS
    spread = max(1.0, all_of["squares"] / _PARTS / max(all_of["expected"], 1))  # a Poisson count has 1
    rows = expected > 0
    chance, least = np.ones(len(clicks)), np.ones(len(clicks))
    chance[rows] = gammaincc(clicks[rows] / spread + 1.0, expected[rows] / spread)
    least[rows] = np.exp(-expected[rows] / spread)
    mask, p = chosen.told(chance, least, column["users"])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rows, clicks / expected, np.nan)
        limits = poisson_rate_intervals(clicks / spread, expected / spread, chosen.level)
    yield "low-ctr", chosen.table(
        "low_ctr", mask, expected - clicks, query, users, _numbers("clicks", clicks),
        Column("expected", expected.tolist(), number(1)),
        Column("ratio", ratio.tolist(), number(3), "clicks / expected", ci=_ends(*limits)), p,
    )  # fmt: skip


def _again(log: InteractionLog, texts: Relation, settings: FactSettings, chosen: _Chosen) -> tuple[Table, int]:
    """Make the list of changes: from, to, the kind, and how many of the users of the one went to the other."""
    followed = begin_next_queries(log.serp, within_ms=round(settings.reformulation_gap * 1000))()
    found = log.engine.arrow(f"""
        WITH asked AS (
            SELECT p.serp, p."user", t.text FROM {log.serp} AS p JOIN {texts} AS t ON t.serp = p.serp
            WHERE p.page = 1),
        users AS (SELECT text, count(DISTINCT "user") AS users FROM asked GROUP BY text)
        SELECT a.text, b.text AS changed, n.kind, count(DISTINCT a."user") AS again, count(*) AS times,
            any_value(u.users) AS users
        FROM {followed} AS n JOIN asked AS a ON a.serp = n.serp JOIN {texts} AS b ON b.serp = n.next_serp
        JOIN users AS u ON u.text = a.text
        WHERE n.kind IN {listed(REFORMULATIONS)}
        GROUP BY a.text, b.text, n.kind HAVING count(DISTINCT a."user") >= {chosen.min_users}
        ORDER BY a.text, b.text, n.kind""")
    again, users = found["again"].to_numpy(), found["users"].to_numpy()
    columns = (
        Column("query", found["text"].to_pylist(), truncated(50)),
        Column("changed_to", found["changed"].to_pylist(), truncated(50), "changed to"),
        Column("change", found["kind"].to_pylist()),
        _numbers("users", users),
        _numbers("again", again, "asked again"),
        _share("share", again, users, chosen.level),
        Column("times", found["times"].to_pylist(), COUNT, only="data"),
    )
    return chosen.table("again", np.ones(len(again), dtype=np.bool_), again, *columns)


def _changes(
    log: InteractionLog, texts: Relation, span: Periods, chosen: _Chosen
) -> Iterator[tuple[str, tuple[Table, int]]]:
    """Make the lists of queries that are a larger or smaller part of what is asked than in the period before."""
    counts = log.engine.keep(f"""
        WITH page AS (
            SELECT p."user", t.text, {span.sql} AS period FROM {log.serp} AS p JOIN {texts} AS t ON t.serp = p.serp)
        SELECT text, count(DISTINCT CASE WHEN period = '{BEFORE}' THEN "user" END) AS before,
            count(DISTINCT CASE WHEN period = '{AFTER}' THEN "user" END) AS after
        FROM page WHERE period IS NOT NULL GROUP BY text""", "asked")  # fmt: skip
    totals = log.engine.rows(f"SELECT sum(before) AS before, sum(after) AS after FROM {counts}")[0]
    all_before, all_after = int(totals["before"] or 0), int(totals["after"] or 0)
    found = log.engine.arrow(f"FROM {counts} WHERE before + after >= {chosen.min_users} ORDER BY text")
    before, after = found["before"].to_numpy(), found["after"].to_numpy()
    query = Column("query", found["text"].to_pylist(), _TEXT)
    low, high = clopper_pearson_intervals(after, before + after, chosen.level)
    times = max(all_before, 1) / max(all_after, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, ends = times * after / before, (times * low / (1.0 - low), times * high / (1.0 - high))
    expected = (before + after) * all_after / max(all_before + all_after, 1)
    columns = (
        query,
        _numbers("before", before, "users before"),
        _numbers("after", after, "users since"),
        Column("ratio", [value if math.isfinite(value) else None for value in ratio.tolist()], number(3),
               "share since / before", ci=_ends(*ends)),
    )  # fmt: skip
    for name, hits, all_hits in (("rising", after, all_after), ("falling", before, all_before)):
        mask, p = chosen.told(
            *hypergeometric_p_values(hits, before + after, all_hits, all_before + all_after), before + after
        )
        weight = np.abs(after - expected)
        if name == "rising":
            yield "new", chosen.table("new", mask & (before == 0), weight, *columns[:3], p)
        yield name, chosen.table(name, mask, weight, *columns, p)


def _numbers(name: str, values: Any, title: str | None = None) -> Column:
    return Column(name, values.tolist(), COUNT, title)


def _share(name: str, counts: Any, sizes: Any, level: float) -> Column:
    with np.errstate(divide="ignore", invalid="ignore"):
        return Column(
            name, (counts / sizes).tolist(), SHARE, ci=_ends(*clopper_pearson_intervals(counts, sizes, level))
        )


def _ends(low: Floats, high: Floats) -> list[tuple[float, float]]:
    return list(zip(low.tolist(), high.tolist(), strict=True))
