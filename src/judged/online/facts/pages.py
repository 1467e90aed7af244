"""Facts of pages: numeric columns computed from a page and its events, and settings that no metric names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from judged.online.engine import Relation, identifier, sql_list
from judged.online.facts.columns import (
    AMOUNT_SCALE,
    MAX_PACKED_RANK,
    NEXT_QUERY,
    PLAUSIBLE,
    RANK_BITS,
    column_sql,
    flag,
    has_rank_sql,
    reciprocal,
    sql_words,
)
from judged.online.facts.reformulation import begin_next_queries, click_facts
from judged.online.log import validate
from judged.online.metrics import format_parameter

if TYPE_CHECKING:
    from judged.online.log import InteractionLog


@dataclass(frozen=True)
class FactSettings:
    """Settings that attribute events and queries to pages.

    Parameters
    ----------
    reformulation_gap
        Longest gap in seconds between a query and its reformulation.
    attribution_window
        Longest time in seconds from the last page of a session to a cart or purchase event that names no page, if the
        event is attributed to that page.
    winsorize
        Quantile of the positive revenue per page. Larger revenues are replaced by it.
    success
        Dwell time in seconds that makes a session successful, unless a metric has a parameter `t`.

    Raises
    ------
    InputError
        If a value is not a number, a time is negative or too long, or the quantile is not above 0 and at most 1.
    """

    reformulation_gap: float = 300.0
    attribution_window: float = 1800.0
    winsorize: float = 0.999
    success: float = 30.0

    def __post_init__(self) -> None:
        validate(**vars(self))

    def policies(self) -> tuple[tuple[str, str], ...]:
        """Return names and values for results."""
        last_page = f"the previous page of the session, if the page is at most {self.attribution_window:g} s earlier"
        return (
            ("reformulation gap", f"{self.reformulation_gap:g} s"),
            ("attribution", f"carts and purchases without a page ID are assigned to {last_page}"),
            (
                "winsorization",
                f"revenue of a page is limited to the {100 * self.winsorize:g}% quantile of pages with revenue",
            ),
        )


_PAGE_COLUMNS = (
    "page", "filtered", "first_rank", "n_shown", "ranks", "zero_results", "rescued", "suggested", "latency_ms",
)  # fmt: skip
"""Columns of `serp` that facts use, other than keys and the time."""

_SALES = ("add_to_cart", "purchase")


@dataclass(frozen=True)
class PageFacts:
    """Facts of pages, one row each. Pages are joined with their events once. Facts are computed when they are selected.

    Parameters
    ----------
    log, clicks
        The log and its `click_facts`.
    joined
        Pages, joined with sums of their clicks and other events, and with the next query.
    columns
        SQL of each fact over `joined`, by name.
    key_columns
        Columns of every selection: ``serp, session, user, time_ms``; ``success_ms_{t}``, the time of the first success
        of the page (null: none); ``slice`` if there are slices.
    """

    log: InteractionLog
    clicks: Relation
    joined: Relation
    columns: dict[str, str]
    key_columns: tuple[str, ...]

    def select(self, columns: Collection[str]) -> Relation:
        """Return the key columns and some facts."""
        facts = [f"{self.columns[name]} AS {identifier(name)}" for name in columns]
        return self.joined.engine.query(f"SELECT {', '.join((*self.key_columns, *facts))} FROM {self.joined}")

    def with_slices(self, slices: Relation) -> PageFacts:
        """Return the facts with other slices, a table of ``serp`` and ``slice``. The facts are not computed again."""
        joined = self.joined.engine.query(
            f"SELECT j.* EXCLUDE (slice), c.slice FROM {self.joined} AS j JOIN {slices} AS c ON c.serp = j.serp"
        )
        return replace(self, joined=joined)


def page_facts(
    log: InteractionLog,
    columns: Iterable[str],
    settings: FactSettings,
    *,
    successes: Iterable[float] = (),
    slices: Relation | None = None,
    chosen: Relation | None = None,
) -> PageFacts:
    """Join each page with its events.

    Parameters
    ----------
    log
        The log.
    columns
        Names of facts (`judged.online.facts.columns`), with values for their parameters.
    settings
        Attribution of events and queries to pages.
    successes
        Dwell times in seconds that make a success, for ``success_ms_{t}``.
    slices
        Table of ``serp`` and ``slice``. The facts get a column ``slice`` and have only these pages.
    chosen
        Table of ``serp``: the pages to return. None: all. Their events are taken from the whole log.
    """
    facts = {name: column_sql(name) for name in columns}
    used = sql_words(facts.values())
    # Texts are compared in a thread while the database runs the queries below.
    within_ms = round(settings.reformulation_gap * 1000)
    next_queries = begin_next_queries(log.serp, within_ms=within_ms) if NEXT_QUERY & used else None
    clicks = click_facts(log)
    success_columns = {
        f"success_ms_{seconds}": f"least(o.{identifier(f'satisfied_ms_{seconds}')}, a.sale_ms)"
        for seconds in map(format_parameter, sorted(set(successes)))
    }
    session_columns = [name for name in ("last_success_ms", "session_last_ms") if name in used]
    needed = sql_words(success_columns.values()) | used | ({"last_sale_ms", "copied_ms"} if session_columns else set())
    click_sums, other_events = _click_sums(log.serp, clicks, needed), _other_event_sums(log, settings, needed)
    selected = [f"p.{name}" for name in _PAGE_COLUMNS if name in used]
    joins = list[str]()
    for alias, names, relation in (("o", *click_sums), ("a", *other_events)):
        selected += [f"{alias}.{identifier(name)}" for name in names if name in used]
        joins += [f"LEFT JOIN {relation} AS {alias} ON {alias}.serp = p.serp"] if names else []
    selected += [f"{sql} AS {identifier(name)}" for name, sql in success_columns.items()]
    if session_columns:
        session_times = _session_times(log, clicks, other_events[1], settings)
        joins.append(f"LEFT JOIN ({session_times}) AS e ON e.session = p.session")
        selected += [f"e.{name}" for name in session_columns]
    if "turned" in used:
        joins.append(f"LEFT JOIN ({_first_pages_turned(log.serp)}) AS t ON t.serp = p.serp")
        selected.append("t.serp IS NOT NULL AS turned")
    if next_queries is not None:
        joins.append(f"LEFT JOIN {next_queries()} AS n ON n.serp = p.serp")
        selected += ["n.kind", "coalesce(n.again, false) AS again"]
    if slices is not None:
        joins.append(f"JOIN {slices} AS c ON c.serp = p.serp")
        selected.append("c.slice")
    if chosen is not None:
        joins.append(f"JOIN {chosen} AS w ON w.serp = p.serp")
    keys = ["p.serp", "p.session", 'p."user"', "p.time_ms"]
    joined = log.engine.keep(f"SELECT {', '.join((*keys, *selected))} FROM {log.serp} AS p {' '.join(joins)}", "page")
    extra = [*success_columns, *(["slice"] if slices is not None else [])]
    return PageFacts(log, clicks, joined, facts, ("serp", "session", '"user"', "time_ms", *map(identifier, extra)))


def _by_name(names: Collection[str], sql_by_name: dict[str, str]) -> dict[str, str]:
    """Return the SQL of the names that match.

    In the SQL ``{v}`` is the parameter at the end of a name, ``{ms}`` its thousandfold, and ``{name}`` the name.
    """
    patterns = [(re.compile(name.replace("{v}", "([^_]+)")), sql) for name, sql in sql_by_name.items()]
    selected = dict[str, str]()
    for name in sorted(names):
        for pattern, sql in patterns:
            if match := pattern.fullmatch(name):
                for value in match.groups():
                    sql = sql.replace("{v}", value).replace("{ms}", str(round(float(value) * 1000)))  # noqa: PLW2901
                selected[name] = sql.replace("{name}", identifier(name))
    return selected


# A censored visit counts as satisfied: its user did not come back.
_IS_SATISFIED = "(dwell_ms >= {ms} OR ended = 0)"
_RESULT_SUMS = {
    "events": "count(*)",
    "observed": "sum(ended)",
    "first_ms": "min(time_ms)",
    "first_packed": f"min(CASE WHEN rank IS NOT NULL THEN time_ms * {2**RANK_BITS} + least(rank, {2**RANK_BITS - 1}) "
    "END)",
    "last_packed": f"max(time_ms * {2**RANK_BITS} + coalesce(least(rank, {2**RANK_BITS - 1}), 0))",
    "satisfied_{v}": f"max({flag(_IS_SATISFIED)})",
    "satisfied_events_{v}": f"sum({flag(_IS_SATISFIED)})",
    "satisfied_ms_{v}": f"min(CASE WHEN {_IS_SATISFIED} THEN time_ms END)",
    "dissatisfied_events_{v}": f"sum({flag('dwell_ms < {ms} AND ended = 1')})",
}
"""Aggregates of the clicks on one result of a page."""

_SHOWN = has_rank_sql("r.rank", "p.")
_BIT = f"CAST(power(2, least(r.rank, {MAX_PACKED_RANK}) - 1) AS BIGINT)"
_PAGE_SUMS = {
    "opened": "CAST(count(*) AS BIGINT)",
    "click_events": "CAST(sum(r.events) AS BIGINT)",
    "observed": "CAST(sum(r.observed) AS BIGINT)",
    "deepest": "CAST(max(r.rank) AS BIGINT)",
    "topmost": "min(r.rank)",
    "ranked": "CAST(count(r.rank) AS BIGINT)",
    "rank_sum": "CAST(sum(r.rank) AS BIGINT)",
    "rr_sum": f"CAST(sum({reciprocal('r.rank')}) AS BIGINT)",
    # An object without a rank counts as shown if the page has no list of results.
    "inside": f"CAST(sum({flag(f'{_SHOWN} OR (r.rank IS NULL AND p.n_returned IS NULL)')}) AS BIGINT)",
    "ranks_opened": f"CAST(sum(CASE WHEN {_SHOWN} AND r.rank <= {MAX_PACKED_RANK} THEN {_BIT} ELSE 0 END) AS BIGINT)",
    "deep_to_{v}": f"CAST(sum({flag(f'{_SHOWN} AND r.rank <= {{v}}')}) AS BIGINT)",
    "deep_at_{v}": f"CAST(sum({flag(f'{_SHOWN} AND r.rank = {{v}}')}) AS BIGINT)",
    "first_ms": "min(r.first_ms)",
    "first_packed": "min(r.first_packed)",
    "last_packed": "max(r.last_packed)",
    "satisfied_{v}": "CAST(sum(r.{name}) AS BIGINT)",
    "satisfied_events_{v}": "CAST(sum(r.{name}) AS BIGINT)",
    "dissatisfied_events_{v}": "CAST(sum(r.{name}) AS BIGINT)",
    "satisfied_ms_{v}": "min(r.{name})",
}
"""Aggregates of the opened results of a page."""


def _click_sums(serp: Relation, clicks: Relation, names: Collection[str]) -> tuple[Collection[str], str]:
    """Return one row of each page with clicks, with aggregates of its opened results.

    A result is identified by its rank, or by its object if it has no rank. Repeated clicks on it count once: a rate
    must not grow when a user returns to it.
    """
    sums = _by_name(names, _PAGE_SUMS)
    result_sums = _by_name(sql_words(sums.values()), _RESULT_SUMS)
    object_sql = "CASE WHEN rank IS NULL THEN object_id END"
    facts = "".join(f", {sql} AS {identifier(name)}" for name, sql in result_sums.items())
    results = f"""
        SELECT serp, rank, {object_sql} AS unranked_object{facts}
        FROM {clicks} GROUP BY serp, rank, {object_sql}"""
    join = f"JOIN {serp} AS p ON p.serp = r.serp" if any("p." in sql for sql in sums.values()) else ""
    columns = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in sums.items())
    return sums, f"(SELECT r.serp, {columns} FROM ({results}) AS r {join} GROUP BY r.serp)"


def _count_of(*actions: str) -> str:
    return f"CAST(sum({flag(f'action IN {sql_list(actions)}')}) AS BIGINT)"


def _time_of(aggregate: str, *actions: str) -> str:
    return f"{aggregate}(CASE WHEN action IN {sql_list(actions)} THEN time_ms END)"


def _amount_of(action: str) -> str:
    value = f"CAST(round(value * {AMOUNT_SCALE}) AS BIGINT)"
    return f"CAST(sum(CASE WHEN action = '{action}' AND value {PLAUSIBLE} THEN {value} ELSE 0 END) AS BIGINT)"


_READING = ("hover", "scroll", "copy")
_OTHER_EVENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "hovers": (("hover",), _count_of("hover")),
    "copies": (("copy",), _count_of("copy")),
    "carts": (_SALES[:1], _count_of("add_to_cart")),
    "purchases": (_SALES[1:], _count_of("purchase")),
    "money": (_SALES[1:], _amount_of("purchase")),
    "likes": (("like",), _count_of("like")),
    "dislikes": (("dislike",), _count_of("dislike")),
    "rating": (("rating",), _amount_of("rating")),
    "ratings": (("rating",), "CAST(sum(" + flag(f"action = 'rating' AND value {PLAUSIBLE}") + ") AS BIGINT)"),
    "sale_ms": (_SALES, _time_of("min", *_SALES)),
    "last_sale_ms": (_SALES, _time_of("max", *_SALES)),
    "copied_ms": (("copy",), _time_of("max", "copy")),
    "read_ms": (_READING, _time_of("max", *_READING)),
}
"""Aggregates of the other events of a page, with the actions that they use."""


def _other_event_sums(
    log: InteractionLog, settings: FactSettings, names: Collection[str]
) -> tuple[Collection[str], Relation]:
    """Return one row of each page with other events than clicks, with aggregates of them.

    Carts and purchases without a page are attributed to the last page of their session, if it is recent enough; of two
    pages at the same time, to the one that was logged last.
    """
    sums = {name: sql for name, (_, sql) in _OTHER_EVENTS.items() if name in names}
    if not sums:
        return (), log.serp
    actions = sql_list(sorted({action for name in sums for action in _OTHER_EVENTS[name][0]}))
    event_sums = log.engine.keep(
        f"""
        WITH no_page AS (
            SELECT event, session, time_ms, action, value FROM {log.event}
            WHERE action IN {sql_list(_SALES)} AND action IN {actions} AND serp IS NULL),
        recent AS (
            SELECT l.event, max(p.time_ms) AS page_ms FROM no_page AS l JOIN {log.serp} AS p ON p.session = l.session
            WHERE p.time_ms <= l.time_ms GROUP BY l.event),
        attributed AS (
            SELECT max(p.serp) AS serp, l.time_ms, l.action, l.value
            FROM recent AS r JOIN no_page AS l ON l.event = r.event
            JOIN {log.serp} AS p ON p.session = l.session AND p.time_ms = r.page_ms
            WHERE l.time_ms - r.page_ms <= {round(settings.attribution_window * 1000)}
            GROUP BY l.event, l.time_ms, l.action, l.value),
        all_events AS (
            SELECT serp, time_ms, action, value FROM {log.event} WHERE action IN {actions} AND serp IS NOT NULL
            UNION ALL SELECT serp, time_ms, action, value FROM attributed)
        SELECT serp, {", ".join(f"{sql} AS {name}" for name, sql in sums.items())} FROM all_events GROUP BY serp""",
        "other_events",
    )
    if "money" not in sums:
        return sums, event_sums
    limit = _revenue_limit(event_sums, settings)
    columns = [f"least(money, {limit}) AS money" if name == "money" else name for name in sums]
    return sums, log.engine.query(f"SELECT serp, {', '.join(columns)} FROM {event_sums}")


def _session_times(log: InteractionLog, clicks: Relation, other_events: Relation, settings: FactSettings) -> str:
    """Return SQL of one row of each session: the times of its last success and of its last page or event."""
    is_satisfied = _IS_SATISFIED.replace("{ms}", str(round(settings.success * 1000)))
    return f"""
        SELECT session, max(success_ms) AS last_success_ms, max(time_ms) AS session_last_ms FROM (
            SELECT session, CASE WHEN {is_satisfied} THEN time_ms END AS success_ms, time_ms FROM {clicks}
            UNION ALL
            SELECT p.session, a.last_sale_ms, greatest(a.last_sale_ms, a.copied_ms) FROM {other_events} AS a
            JOIN {log.serp} AS p ON p.serp = a.serp
            UNION ALL SELECT session, NULL, time_ms FROM {log.serp})
        GROUP BY session"""


def _revenue_limit(event_sums: Relation, settings: FactSettings) -> int:
    """Return the winsorization limit: the quantile `settings.winsorize` of positive revenue per page."""
    revenues = event_sums.engine.rows(
        f"SELECT money, count(*) AS pages FROM {event_sums} WHERE money > 0 GROUP BY money ORDER BY money"
    )
    # The factor keeps a rounding error from passing over the revenue that is exactly at the quantile.
    needed = settings.winsorize * sum(row["pages"] for row in revenues) * (1.0 - 1e-12)
    pages, limit = 0, 0
    for row in revenues:
        pages, limit = pages + row["pages"], row["money"]
        if pages >= needed:
            break
    return limit


def _first_pages_turned(serp: Relation) -> str:
    """Return SQL of the first pages after which a later page of the same list was opened."""
    # A later page belongs to the last first page with the same query before it.
    return f"""
        SELECT DISTINCT first_page AS serp FROM (
            SELECT page, last_value(CASE WHEN page = 1 THEN serp END IGNORE NULLS) OVER (
                PARTITION BY session, query_norm ORDER BY time_ms, page, serp
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS first_page
            FROM {serp} WHERE session IN (SELECT session FROM {serp} WHERE page > 1))
        WHERE page > 1 AND first_page IS NOT NULL"""
