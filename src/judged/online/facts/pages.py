"""Facts of pages: numbers only, made of what comes of each page; and the choices behind them that no metric names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from judged.online.engine import Relation, identifier, listed
from judged.online.facts.columns import (
    AMOUNT,
    BITS,
    NEXT_QUERY,
    RANK_BITS,
    SENSIBLE,
    flag,
    reciprocal,
    shows,
    sql_of,
    words,
)
from judged.online.facts.reformulation import begin_next_queries, click_facts
from judged.online.log import need
from judged.online.metrics import written

if TYPE_CHECKING:
    from judged.online.log import InteractionLog


@dataclass(frozen=True)
class FactSettings:
    """What counts as belonging together.

    Parameters
    ----------
    reformulation_gap
        Seconds within which the next query of a session may be a reformulation.
    attribution_window
        Seconds within which a cart or purchase that names no page counts for the last page of its session.
    winsorize
        Money of a page above this quantile, of the pages that brought any, counts as that quantile.
    success
        Seconds of dwell that make a session successful, where a metric does not say so itself (`t`).

    Raises
    ------
    InputError
        If one is no number, a time is negative or too long, or the quantile is not above 0 and at most 1.
    """

    reformulation_gap: float = 300.0
    attribution_window: float = 1800.0
    winsorize: float = 0.999
    success: float = 30.0

    def __post_init__(self) -> None:
        need(**vars(self))

    def policies(self) -> tuple[tuple[str, str], ...]:
        """Name them for a result."""
        return (
            ("reformulation gap", f"{self.reformulation_gap:g} s"),
            ("attribution", f"same page, or else the last of the session within {self.attribution_window:g} s"),
            ("money", f"winsorized at {100 * self.winsorize:g} % of the pages that brought any"),
        )


_OF_A_PAGE = (
    "page", "filtered", "first_rank", "n_shown", "ranks", "zero_results", "rescued", "suggested", "latency_ms",
)  # fmt: skip
"""Columns of `serp` that facts are made of, beside keys and the time."""

_SALES = ("add_to_cart", "purchase")


@dataclass(frozen=True)
class PageFacts:
    """Facts of pages, one row each: not made before they are asked for, from what is joined to the pages once and kept.

    Parameters
    ----------
    log, clicks
        What they are of, and its `click_facts`.
    joined
        Pages beside what comes of clicks, of what is done beside them, and of the next query.
    columns
        The SQL of each column over `joined`, by its name.
    beside
        What every selection has too: ``serp, session, user, time_ms``; ``success_ms_{t}``, when the page first came to
        a success (null: never); ``slice`` where there is one.
    """

    log: InteractionLog
    clicks: Relation
    joined: Relation
    columns: dict[str, str]
    beside: tuple[str, ...]

    def select(self, columns: Collection[str]) -> Relation:
        """Give some of the columns behind `beside`."""
        made = [f"{self.columns[name]} AS {identifier(name)}" for name in columns]
        return self.joined.engine.query(f"SELECT {', '.join((*self.beside, *made))} FROM {self.joined}")

    def sliced(self, slices: Relation) -> PageFacts:
        """Give the facts of pages that have a slice by other slices, ``serp`` and ``slice``: nothing is made anew."""
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
    """Join to each page what came of it.

    Parameters
    ----------
    log
        The log.
    columns
        Names of facts (`judged.online.facts.columns`), parameters filled in.
    settings
        What belongs together.
    successes
        Seconds of dwell that make a success, for ``success_ms_{t}``.
    slices
        ``serp`` and ``slice``: then the facts have the column ``slice``, for the pages that are in it.
    chosen
        ``serp`` of the pages that facts are made of; None: all. What comes of them is looked for in the whole log.
    """
    made = {name: sql_of(name) for name in columns}
    used = words(made.values())
    # texts are told apart beside all that the database does until it asks for them
    soon_ms = round(settings.reformulation_gap * 1000)
    followed = begin_next_queries(log.serp, within_ms=soon_ms) if NEXT_QUERY & used else None
    clicks = click_facts(log)
    success = {
        f"success_ms_{t}": f"least(o.{identifier(f'satisfied_ms_{t}')}, a.sale_ms)"
        for t in map(written, sorted(set(successes)))
    }
    of_sessions = [name for name in ("last_success_ms", "session_last_ms") if name in used]
    parts = words(success.values()) | used | ({"last_sale_ms", "copied_ms"} if of_sessions else set())
    opened, beside = _opened(log.serp, clicks, parts), _beside_clicks(log, settings, parts)
    wanted = [f"p.{name}" for name in _OF_A_PAGE if name in used]
    joins = list[str]()
    for alias, names, relation in (("o", *opened), ("a", *beside)):
        wanted += [f"{alias}.{identifier(name)}" for name in names if name in used]
        joins += [f"LEFT JOIN {relation} AS {alias} ON {alias}.serp = p.serp"] if names else []
    wanted += [f"{sql} AS {identifier(name)}" for name, sql in success.items()]
    if of_sessions:
        joins.append(f"LEFT JOIN ({_in_sessions(log, clicks, beside[1], settings)}) AS e ON e.session = p.session")
        wanted += [f"e.{name}" for name in of_sessions]
    if "turned" in used:
        joins.append(f"LEFT JOIN ({_turned(log.serp)}) AS t ON t.serp = p.serp")
        wanted.append("t.serp IS NOT NULL AS turned")
    if followed is not None:
        joins.append(f"LEFT JOIN {followed()} AS n ON n.serp = p.serp")
        wanted += ["n.kind", "coalesce(n.again, false) AS again"]
    if slices is not None:
        joins.append(f"JOIN {slices} AS c ON c.serp = p.serp")
        wanted.append("c.slice")
    if chosen is not None:
        joins.append(f"JOIN {chosen} AS w ON w.serp = p.serp")
    keys = ["p.serp", "p.session", 'p."user"', "p.time_ms"]
    joined = log.engine.keep(f"SELECT {', '.join((*keys, *wanted))} FROM {log.serp} AS p {' '.join(joins)}", "page")
    also = [*success, *(["slice"] if slices is not None else [])]
    return PageFacts(log, clicks, joined, made, ("serp", "session", '"user"', "time_ms", *map(identifier, also)))


def _by_name(names: Collection[str], known: dict[str, str]) -> dict[str, str]:
    """Choose the SQL of those names that are known.

    In it ``{v}`` is the parameter that a name ends in, ``{ms}`` the same in thousandths, and ``{name}`` the name.
    """
    patterns = [(re.compile(name.replace("{v}", "([^_]+)")), sql) for name, sql in known.items()]
    found = dict[str, str]()
    for name in sorted(names):
        for pattern, sql in patterns:
            if match := pattern.fullmatch(name):
                for value in match.groups():
                    sql = sql.replace("{v}", value).replace("{ms}", str(round(float(value) * 1000)))  # noqa: PLW2901
                found[name] = sql.replace("{name}", identifier(name))
    return found


_ENOUGH = "(dwell_ms >= {ms} OR ended = 0)"
_RESULT = {
    "events": "count(*)",
    "observed": "sum(ended)",
    "first_ms": "min(time_ms)",
    "first_packed": f"min(CASE WHEN rank IS NOT NULL THEN time_ms * {2**RANK_BITS} + least(rank, {2**RANK_BITS - 1}) "
    "END)",
    "last_packed": f"max(time_ms * {2**RANK_BITS} + coalesce(least(rank, {2**RANK_BITS - 1}), 0))",
    "satisfied_{v}": f"max({flag(_ENOUGH)})",
    "satisfied_events_{v}": f"sum({flag(_ENOUGH)})",
    "satisfied_ms_{v}": f"min(CASE WHEN {_ENOUGH} THEN time_ms END)",
    "dissatisfied_events_{v}": f"sum({flag('dwell_ms < {ms} AND ended = 1')})",
}
"""What is added up of the clicks on one result of a page."""

_INSIDE = shows("r.rank", "p.")
_BIT = f"CAST(power(2, least(r.rank, {BITS}) - 1) AS BIGINT)"
_OPENED = {
    "opened": "CAST(count(*) AS BIGINT)",
    "click_events": "CAST(sum(r.events) AS BIGINT)",
    "observed": "CAST(sum(r.observed) AS BIGINT)",
    "deepest": "CAST(max(r.rank) AS BIGINT)",
    "topmost": "min(r.rank)",
    "ranked": "CAST(count(r.rank) AS BIGINT)",
    "rank_sum": "CAST(sum(r.rank) AS BIGINT)",
    "rr_sum": f"CAST(sum({reciprocal('r.rank')}) AS BIGINT)",
    # what has no rank is shown if the page has no list of results in which it could have one
    "inside": f"CAST(sum({flag(f'{_INSIDE} OR (r.rank IS NULL AND p.n_returned IS NULL)')}) AS BIGINT)",
    "ranks_opened": f"CAST(sum(CASE WHEN {_INSIDE} AND r.rank <= {BITS} THEN {_BIT} ELSE 0 END) AS BIGINT)",
    "deep_to_{v}": f"CAST(sum({flag(f'{_INSIDE} AND r.rank <= {{v}}')}) AS BIGINT)",
    "deep_at_{v}": f"CAST(sum({flag(f'{_INSIDE} AND r.rank = {{v}}')}) AS BIGINT)",
    "first_ms": "min(r.first_ms)",
    "first_packed": "min(r.first_packed)",
    "last_packed": "max(r.last_packed)",
    "satisfied_{v}": "CAST(sum(r.{name}) AS BIGINT)",
    "satisfied_events_{v}": "CAST(sum(r.{name}) AS BIGINT)",
    "dissatisfied_events_{v}": "CAST(sum(r.{name}) AS BIGINT)",
    "satisfied_ms_{v}": "min(r.{name})",
}
"""What is added up of the opened results of a page."""


def _opened(serp: Relation, clicks: Relation, wanted: Collection[str]) -> tuple[Collection[str], str]:
    """Make one row of each page with clicks, of its opened results.

    A result is what stands at one rank, or, without a rank, one object. Opened twice it counts once: rates must not
    grow when somebody comes back to it.
    """
    sums = _by_name(wanted, _OPENED)
    of_results = _by_name(words(sums.values()), _RESULT)
    thing = "CASE WHEN rank IS NULL THEN object_id END"
    facts = "".join(f", {sql} AS {identifier(name)}" for name, sql in of_results.items())
    results = f"""
        SELECT serp, rank, {thing} AS thing{facts}
        FROM {clicks} GROUP BY serp, rank, {thing}"""
    join = f"JOIN {serp} AS p ON p.serp = r.serp" if any("p." in sql for sql in sums.values()) else ""
    columns = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in sums.items())
    return sums, f"(SELECT r.serp, {columns} FROM ({results}) AS r {join} GROUP BY r.serp)"


def _count_of(*actions: str) -> str:
    return f"CAST(sum({flag(f'action IN {listed(actions)}')}) AS BIGINT)"


def _time_of(end: str, *actions: str) -> str:
    return f"{end}(CASE WHEN action IN {listed(actions)} THEN time_ms END)"


def _amount_of(action: str) -> str:
    value = f"CAST(round(value * {AMOUNT}) AS BIGINT)"
    return f"CAST(sum(CASE WHEN action = '{action}' AND value {SENSIBLE} THEN {value} ELSE 0 END) AS BIGINT)"


_READING = ("hover", "scroll", "copy")
_BESIDE: dict[str, tuple[tuple[str, ...], str]] = {
    "hovers": (("hover",), _count_of("hover")),
    "copies": (("copy",), _count_of("copy")),
    "carts": (_SALES[:1], _count_of("add_to_cart")),
    "purchases": (_SALES[1:], _count_of("purchase")),
    "money": (_SALES[1:], _amount_of("purchase")),
    "likes": (("like",), _count_of("like")),
    "dislikes": (("dislike",), _count_of("dislike")),
    "rating": (("rating",), _amount_of("rating")),
    "ratings": (("rating",), "CAST(sum(" + flag(f"action = 'rating' AND value {SENSIBLE}") + ") AS BIGINT)"),
    "sale_ms": (_SALES, _time_of("min", *_SALES)),
    "last_sale_ms": (_SALES, _time_of("max", *_SALES)),
    "copied_ms": (("copy",), _time_of("max", "copy")),
    "read_ms": (_READING, _time_of("max", *_READING)),
}
"""What is added up of what is done on a page beside clicks, and of which actions."""


def _beside_clicks(
    log: InteractionLog, settings: FactSettings, wanted: Collection[str]
) -> tuple[Collection[str], Relation]:
    """Make one row of each page on which something was done beside clicks.

    Carts and purchases that name no page fall to the last page of their session, if it is recent enough; of two at once
    to the one logged last.
    """
    sums = {name: sql for name, (_, sql) in _BESIDE.items() if name in wanted}
    if not sums:
        return (), log.serp
    actions = listed(sorted({action for name in sums for action in _BESIDE[name][0]}))
    done = log.engine.keep(
        f"""
        WITH loose AS (
            SELECT event, session, time_ms, action, value FROM {log.event}
            WHERE action IN {listed(_SALES)} AND action IN {actions} AND serp IS NULL),
        recent AS (
            SELECT l.event, max(p.time_ms) AS page_ms FROM loose AS l JOIN {log.serp} AS p ON p.session = l.session
            WHERE p.time_ms <= l.time_ms GROUP BY l.event),
        touched AS (
            SELECT max(p.serp) AS serp, l.time_ms, l.action, l.value
            FROM recent AS r JOIN loose AS l ON l.event = r.event
            JOIN {log.serp} AS p ON p.session = l.session AND p.time_ms = r.page_ms
            WHERE l.time_ms - r.page_ms <= {round(settings.attribution_window * 1000)}
            GROUP BY l.event, l.time_ms, l.action, l.value),
        done AS (
            SELECT serp, time_ms, action, value FROM {log.event} WHERE action IN {actions} AND serp IS NOT NULL
            UNION ALL SELECT serp, time_ms, action, value FROM touched)
        SELECT serp, {", ".join(f"{sql} AS {name}" for name, sql in sums.items())} FROM done GROUP BY serp""",
        "beside",
    )
    if "money" not in sums:
        return sums, done
    made = [f"least(money, {_most_money(done, settings)}) AS money" if name == "money" else name for name in sums]
    return sums, log.engine.query(f"SELECT serp, {', '.join(made)} FROM {done}")


def _in_sessions(log: InteractionLog, clicks: Relation, beside: Relation, settings: FactSettings) -> str:
    """Make one row of each session: when it last came to a success, and when anything was last asked for or done."""
    enough = _ENOUGH.replace("{ms}", str(round(settings.success * 1000)))
    return f"""
        SELECT session, max(success_ms) AS last_success_ms, max(time_ms) AS session_last_ms FROM (
            SELECT session, CASE WHEN {enough} THEN time_ms END AS success_ms, time_ms FROM {clicks}
            UNION ALL
            SELECT p.session, a.last_sale_ms, greatest(a.last_sale_ms, a.copied_ms) FROM {beside} AS a
            JOIN {log.serp} AS p ON p.serp = a.serp
            UNION ALL SELECT session, NULL, time_ms FROM {log.serp})
        GROUP BY session"""


def _most_money(done: Relation, settings: FactSettings) -> int:
    """Find the money of a page that counts at most."""
    paid = done.engine.rows(
        f"SELECT money, count(*) AS pages FROM {done} WHERE money > 0 GROUP BY money ORDER BY money"
    )
    wanted = settings.winsorize * sum(row["pages"] for row in paid) * (1.0 - 1e-12)  # rounding must not pass one over
    below, most = 0, 0
    for row in paid:
        below, most = below + row["pages"], row["money"]
        if below >= wanted:
            break
    return most


def _turned(serp: Relation) -> str:
    """Name the first pages behind which a page of the same list was asked for: the last ones of that text before it."""
    return f"""
        SELECT DISTINCT opening AS serp FROM (
            SELECT page, last_value(CASE WHEN page = 1 THEN serp END IGNORE NULLS) OVER (
                PARTITION BY session, query_norm ORDER BY time_ms, page, serp
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS opening
            FROM {serp} WHERE session IN (SELECT session FROM {serp} WHERE page > 1))
        WHERE page > 1 AND opening IS NOT NULL"""
