"""Facts of pages: one row a result page, whole numbers only. Every metric is a ratio of two sums of these columns.

Whole numbers add up to the same sum in whatever order, so that no thread and no database changes a digit. What is not
whole by nature is counted in parts (`SCALES`): seconds in milliseconds, reciprocals of ranks in parts of which those of
small ranks are whole. A column is 0 where it does not apply, and then the column that it is divided by is 0 too.
`COLUMNS` says what each one means; those with a parameter in braces are made for the cutoffs (k), ranks (r) and
thresholds (t) that are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.online.engine import Relation, identifier, listed
from judged.online.facts.reformulation import REFORMULATIONS
from judged.online.facts.settings import FactSettings
from judged.online.metrics.metric import written

if TYPE_CHECKING:
    from judged.online.log import InteractionLog

COLUMNS = {
    "page": "1",
    "answered": "1 if the page was not empty",
    "shown": "results on the page",
    "shown_to_{k}": "results on the page at ranks 1 to k",
    "shown_at_{r}": "1 if there was a result at rank r",
    "opened": "results that were opened, each once",
    "opened_of_shown": "of those, the ones that the page shows",
    "opened_of_shown_to_{k}": "results shown at ranks 1 to k that were opened",
    "opened_at_{r}": "1 if the result at rank r was shown and opened",
    "clicked": "1 if any result was opened",
    "clicked_to_{k}": "1 if any at ranks 1 to k was",
    "answered_to_{k}": "1 if the page was not empty and holds a rank up to k",
    "click_events": "clicks, repeated ones too",
    "first_rr": "1 / rank of the first click in time, 0 without a click",
    "topmost_rr": "1 / rank of the topmost result opened, the smallest, 0 without a click",
    "mean_rr": "mean of 1 / rank over opened results, 0 without a click",
    "deepest": "rank of the deepest result opened, the largest",
    "ranked": "1 if a result with a known rank was opened",
    "passed": "results above the deepest one opened",
    "skipped": "of those, not opened",
    "first_click_s": "seconds from the page to its first click",
    "timed": "1 if that time is known and not negative",
    "hovered": "1 if the pointer rested on a result",
    "satisfied_{t}": "results opened for t seconds or longer, or last in the session",
    "satisfied_page_{t}": "1 if there is such a result",
    "satisfied_events_{t}": "such clicks",
    "dissatisfied_events_{t}": "clicks whose visit was seen to end before t seconds",
    "observed": "clicks whose visit was seen to end",
    "abandoned": "1 if nothing on the page was opened, put into the cart or bought",
    "abandoned_bad": "1 if abandoned, and empty, reformulated (a page behind the first one too), or the end of a "
    "session in which nothing later succeeds",
    "abandoned_good": "1 if abandoned, not bad by being empty or reformulated, and something was copied from the page",
    "abandoned_unknown": "1 if abandoned and neither",
    "asked": "1 if it is the first page of a query, the last one of consecutive repeats",
    "repeated": "1 if it is the first page of a query, and consecutive repeats of it follow",
    "reformulated": "1 if the next query of the session, soon enough, is a reformulation",
    "reformulated_{kind}": "1 if it is one of that kind",
    "zero": "1 if nothing was found for an unfiltered first page",
    "zero_known": "1 if it is an unfiltered first page and the log says how much was found",
    "zero_asked": "1 if zero, unless the next unfiltered first page of the session has the same text",
    "zero_asked_known": "1 if zero_known, unless the next unfiltered first page of the session has the same text",
    "zero_filtered": "1 if nothing was found for a filtered first page",
    "zero_filtered_known": "1 if it is a filtered first page and the log says how much was found",
    "rescued": "1 if the page answers a changed query, since the typed one found nothing",
    "zero_or_rescued": "1 if the typed query found nothing",
    "cart": "1 if something was put into the cart",
    "carts": "how often",
    "purchased": "1 if something was bought",
    "purchases": "how often",
    "money": "money that came of the page, winsorised",
    "latency_s": "seconds until the engine answered",
    "latency_known": "1 if they are logged",
}
"""The columns of the facts of a page, and what they mean."""

RECIPROCAL = 963_761_198_400  # 2^6 3^4 5^2 7 11 13 17 19 23: of ranks 1 to 28 whole, and so are most means of a few
MONEY = 10_000  # parts of the log's unit of money
SCALES = {
    **dict.fromkeys(("first_rr", "topmost_rr", "mean_rr"), RECIPROCAL),
    "first_click_s": 1000,
    "latency_s": 1_000_000,
    "money": MONEY,
}
"""In how many parts of its unit a column is counted, where not in ones."""

_FLAGS = re.compile(
    "|".join(
        re.sub(r"\{\w+\}", r"[\\w.]+", name) for name, what in COLUMNS.items() if what == "1" or what[:5] == "1 if "
    )
)
_BITS = 50  # ranks down to here stand in one number: a column each would be most of the cost
_SENSIBLE = "BETWEEN -1e12 AND 1e12"  # money and milliseconds: no other number, and not what is none
_RANK_BITS = 16  # a time and a rank are packed into one number, so that "the first click" is a minimum

_LEFT = {"abandoned_bad", "abandoned_good", "abandoned_unknown"}
"""Facts that hang on the pages behind it too."""

_NEXT_QUERY = re.compile("asked|repeated|reformulated.*|zero_asked.*|" + "|".join(sorted(_LEFT)))


def is_flag(column: str) -> bool:
    """Tell whether a column holds only 0 and 1.

    >>> is_flag("clicked_to_3"), is_flag("opened_of_shown_to_3"), is_flag("first_rr")
    (True, False, False)
    """
    return _FLAGS.fullmatch(column) is not None


def need_the_next_query(columns: Iterable[str]) -> bool:
    """Tell whether some of `COLUMNS` hang on the kind of the next query: it costs as much as all else.

    >>> need_the_next_query(["clicked", "reformulated_spelling"]), need_the_next_query(["clicked", "abandoned"])
    (True, False)
    """
    return any(_NEXT_QUERY.fullmatch(column) for column in columns)


@dataclass(frozen=True)
class Wanted:
    """Which columns with parameters are made."""

    cutoffs: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    satisfied: tuple[float, ...] = (30.0,)
    dissatisfied: tuple[float, ...] = ()


@dataclass(frozen=True)
class PageFacts:
    """Facts of pages, one row each: not made before they are asked for, from what is joined to the pages once and kept.

    Parameters
    ----------
    joined
        Pages beside what comes of clicks, sales and the next query.
    columns
        The column names of `COLUMNS` that can be had, and the SQL of each over `joined`.
    beside
        What every selection has too: ``serp, session, user, time_ms``; ``success_ms_{t}``, when the page first came to
        a success (null: never); ``slice`` where there is one.
    """

    joined: Relation
    columns: dict[str, str]
    beside: tuple[str, ...]

    def select(self, columns: Collection[str]) -> Relation:
        """Give some of `COLUMNS` behind `beside`."""
        made = [f"{self.columns[name]} AS {identifier(name)}" for name in columns]
        return self.joined.engine.query(f"SELECT {', '.join((*self.beside, *made))} FROM {self.joined}")


def page_facts(
    log: InteractionLog,
    clicks: Relation,
    wanted: Wanted,
    settings: FactSettings,
    *,
    followed: Callable[[], Relation] | None = None,
    slices: Relation | None = None,
) -> PageFacts:
    """Join to each page what came of it.

    Parameters
    ----------
    log
        The log.
    clicks
        Its `click_facts`.
    wanted
        Cutoffs, ranks and thresholds.
    settings
        What belongs together.
    followed
        Gives what `begin_next_queries` began; None: no fact is asked for that needs it.
    slices
        ``serp`` and ``slice``: then the facts have the column ``slice``, for the pages that are in it.
    """
    engine = log.engine
    thresholds = tuple(sorted({*wanted.satisfied, settings.success}))
    names = [written(t) for t in thresholds]
    sold = _sold(log, settings)
    opened = ["opened", "click_events", "observed", "first_ms", "first_packed", "deepest", "topmost", "ranked",
              "rr_sum", "inside", "ranks_opened"]  # fmt: skip
    opened += [f"deep_to_{k}" for k in wanted.cutoffs if k > _BITS] + [
        f"deep_at_{r}" for r in wanted.ranks if r > _BITS
    ]
    opened += [f"{name}_{t}" for t in names for name in ("satisfied", "satisfied_events")]
    opened += [f"dissatisfied_events_{written(t)}" for t in wanted.dissatisfied]
    beside = [
        f"least(o.{identifier(f'satisfied_ms_{t}')}, a.sale_ms) AS {identifier(f'success_ms_{t}')}" for t in names
    ]
    last = f"greatest(o.{identifier(f'satisfied_last_ms_{written(settings.success)}')}, a.last_sale_ms)"
    columns = [*map(identifier, opened), "hovers", "copies", "carts", "purchases", "money", "sale_ms", *beside]
    joins = ["LEFT JOIN opened AS o ON o.serp = p.serp", f"LEFT JOIN {sold} AS a ON a.serp = p.serp"]
    if followed is not None:
        joins.append(f"LEFT JOIN {followed()} AS n ON n.serp = p.serp")
        columns += ["n.kind", "coalesce(n.again, false) AS again"]
        columns.append(f"max({last}) OVER (PARTITION BY p.session) AS last_success_ms")
    if slices is not None:
        joins.append(f"JOIN {slices} AS c ON c.serp = p.serp")
        columns.append("c.slice")
    joined = engine.keep(
        f"""
        WITH result AS ({_results(clicks, thresholds, wanted.dissatisfied, timed=log.has_time)}),
        opened AS ({_opened(log.serp, wanted, names)})
        SELECT p.serp, p.session, p."user", p.time_ms, p.page, p.filtered, p.first_rank, p.n_shown, p.n_returned,
            p.ranks, p.zero_results, p.rescued, p.latency_ms, {", ".join(columns)}
        FROM {log.serp} AS p {" ".join(joins)}""",
        "page",
    )
    also = [f"success_ms_{t}" for t in names] + (["slice"] if slices is not None else [])
    made = dict(_columns(wanted, names, timed=log.has_time, followed=followed is not None))
    return PageFacts(joined, made, ("serp", "session", '"user"', "time_ms", *map(identifier, also)))


def _results(clicks: Relation, satisfied: Iterable[float], dissatisfied: Iterable[float], *, timed: bool) -> str:
    """Make one row of each opened result of a page: what stands at one rank, or, without a rank, one object."""
    sums: list[str] = []
    for seconds in satisfied:
        t, enough = written(seconds), f"(dwell_ms >= {round(seconds * 1000)} OR ended = 0)" if timed else "false"
        sums += [
            f"max({_flag(enough)}) AS {identifier(f'satisfied_{t}')}",
            f"sum({_flag(enough)}) AS {identifier(f'satisfied_events_{t}')}",
            f"min(CASE WHEN {enough} THEN time_ms END) AS {identifier(f'satisfied_ms_{t}')}",
            f"max(CASE WHEN {enough} THEN time_ms END) AS {identifier(f'satisfied_last_ms_{t}')}",
        ]
    for seconds in dissatisfied:
        short = f"(dwell_ms < {round(seconds * 1000)} AND ended = 1)" if timed else "false"
        sums.append(f"sum({_flag(short)}) AS {identifier(f'dissatisfied_events_{written(seconds)}')}")
    return f"""
        SELECT serp, rank, CASE WHEN rank IS NULL THEN object_id END AS thing, count(*) AS events,
            sum(ended) AS observed, min(time_ms) AS first_ms,
            min(CASE WHEN rank IS NOT NULL THEN time_ms * {2**_RANK_BITS} + least(rank, {2**_RANK_BITS - 1}) END)
                AS first_packed, {", ".join(sums)}
        FROM {clicks} GROUP BY serp, rank, CASE WHEN rank IS NULL THEN object_id END"""


def _opened(serp: Relation, wanted: Wanted, thresholds: Iterable[str]) -> str:
    """Make one row of each page with clicks, out of ``result``.

    A result opened twice is one opened result: rates must not grow when somebody comes back to it. What has no rank is
    shown if the page has no list of results in which it could have one.
    """
    inside = _shows("r.rank", "p.")
    unlisted = "(r.rank IS NULL AND p.n_returned IS NULL)"
    bit = f"CAST(power(2, least(r.rank, {_BITS}) - 1) AS BIGINT)"
    sums = {
        "opened": "count(*)",
        "click_events": "sum(r.events)",
        "observed": "sum(r.observed)",
        "deepest": "max(r.rank)",
        "ranked": "count(r.rank)",
        "rr_sum": f"sum({_reciprocal('r.rank')})",
        "inside": f"sum({_flag(f'{inside} OR {unlisted}')})",
        "ranks_opened": f"sum(CASE WHEN {inside} AND r.rank <= {_BITS} THEN {bit} ELSE 0 END)",
    }
    sums |= {f"deep_to_{k}": f"sum({_flag(f'{inside} AND r.rank <= {k}')})" for k in wanted.cutoffs if k > _BITS}
    sums |= {f"deep_at_{r}": f"sum({_flag(f'{inside} AND r.rank = {r}')})" for r in wanted.ranks if r > _BITS}
    for t in thresholds:
        sums |= {f"{name}_{t}": f"sum(r.{identifier(f'{name}_{t}')})" for name in ("satisfied", "satisfied_events")}
    for t in map(written, wanted.dissatisfied):
        sums[f"dissatisfied_events_{t}"] = f"sum(r.{identifier(f'dissatisfied_events_{t}')})"
    made = {name: f"CAST({total} AS BIGINT)" for name, total in sums.items()}
    made |= {"first_ms": "min(r.first_ms)", "first_packed": "min(r.first_packed)", "topmost": "min(r.rank)"}
    for t in thresholds:
        made[f"satisfied_ms_{t}"] = f"min(r.{identifier(f'satisfied_ms_{t}')})"
        made[f"satisfied_last_ms_{t}"] = f"max(r.{identifier(f'satisfied_last_ms_{t}')})"
    columns = ", ".join(f"{total} AS {identifier(name)}" for name, total in made.items())
    return f"SELECT r.serp, {columns} FROM result AS r JOIN {serp} AS p ON p.serp = r.serp GROUP BY r.serp"


def _sold(log: InteractionLog, settings: FactSettings) -> Relation:
    """Give one row a page on which something was done beside clicks: counts, money, when it first came to a sale.

    Carts and purchases that name no page fall to the last page of their session, if it is recent enough; of two at once
    to the one logged last.
    """
    sale = "action IN ('add_to_cart', 'purchase')"
    counted = {"hovers": "hover", "copies": "copy", "carts": "add_to_cart", "purchases": "purchase"}
    counts = ", ".join(
        f"CAST(sum(CASE WHEN action = '{action}' THEN 1 ELSE 0 END) AS BIGINT) AS {name}"
        for name, action in counted.items()
    )
    sold = log.engine.keep(
        f"""
        WITH loose AS (
            SELECT event, session, time_ms, action, value FROM {log.event} WHERE {sale} AND serp IS NULL),
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
            SELECT serp, time_ms, action, value FROM {log.event}
            WHERE (action IN ('hover', 'copy') OR {sale}) AND serp IS NOT NULL
            UNION ALL SELECT serp, time_ms, action, value FROM touched)
        SELECT serp, {counts},
            CAST(sum(CASE WHEN action = 'purchase' AND value {_SENSIBLE} THEN CAST(round(value * {MONEY}) AS BIGINT)
                ELSE 0 END) AS BIGINT) AS money,
            min(CASE WHEN {sale} THEN time_ms END) AS sale_ms, max(CASE WHEN {sale} THEN time_ms END) AS last_sale_ms
        FROM done GROUP BY serp""",
        "sold",
    )
    paid = log.engine.rows(f"SELECT money, count(*) AS pages FROM {sold} WHERE money > 0 GROUP BY money ORDER BY money")
    wanted = settings.winsorise * sum(row["pages"] for row in paid) * (1.0 - 1e-12)  # rounding must not pass one over
    below, most = 0, 0
    for row in paid:
        below, most = below + row["pages"], row["money"]
        if below >= wanted:
            break
    return log.engine.query(
        f"SELECT serp, hovers, copies, carts, purchases, sale_ms, last_sale_ms, least(money, {most}) AS money "
        f"FROM {sold}"
    )


def _columns(wanted: Wanted, thresholds: list[str], *, timed: bool, followed: bool) -> Iterator[tuple[str, str]]:
    """Give the SQL of the columns over what is joined."""
    empty = "(coalesce(zero_results, false) AND n_shown = 0 AND opened IS NULL)"  # what was clicked on was not empty
    yield "page", "1"
    yield "answered", _flag(f"NOT {empty}")
    yield "shown", "CAST(n_shown AS BIGINT)"
    for k in wanted.cutoffs:
        last = f"least(first_rank + n_shown - 1, {k})"
        contiguous = f"greatest({last} - first_rank + 1, 0)"
        yield f"shown_to_{k}", f"CASE WHEN ranks IS NULL THEN {contiguous} ELSE {_listed(f'<= {k}')} END"
        yield f"answered_to_{k}", _flag(f"NOT {empty} AND first_rank <= {k}")
    for r in wanted.ranks:
        yield f"shown_at_{r}", _flag(_shows(str(r)))
    yield from _of_the_clicks(wanted, timed=timed)
    for t in thresholds:
        satisfied, events = identifier(f"satisfied_{t}"), identifier(f"satisfied_events_{t}")
        yield f"satisfied_{t}", f"coalesce({satisfied}, 0)"
        yield f"satisfied_page_{t}", _flag(f"{satisfied} > 0")
        yield f"satisfied_events_{t}", f"coalesce({events}, 0)"
    for t in map(written, wanted.dissatisfied):
        yield f"dissatisfied_events_{t}", f"coalesce({identifier(f'dissatisfied_events_{t}')}, 0)"
    yield from {"hovered": _flag("hovers > 0"), "cart": _flag("carts > 0"), "purchased": _flag("purchases > 0")}.items()
    for name in ("carts", "purchases", "money"):
        yield name, f"coalesce({name}, 0)"
    yield "latency_s", f"CASE WHEN latency_ms {_SENSIBLE} THEN CAST(round(latency_ms * 1000) AS BIGINT) ELSE 0 END"
    yield "latency_known", _flag(f"latency_ms {_SENSIBLE}")
    abandoned = "(opened IS NULL AND sale_ms IS NULL)"
    yield "abandoned", _flag(abandoned)
    known, nothing = "zero_results IS NOT NULL", "coalesce(zero_results, false)"  # failures of the engine: first pages
    yield "zero", _flag(f"{nothing} AND page = 1 AND NOT filtered")
    yield "zero_known", _flag(f"{known} AND page = 1 AND NOT filtered")
    yield "zero_filtered", _flag(f"{nothing} AND page = 1 AND filtered")
    yield "zero_filtered_known", _flag(f"{known} AND page = 1 AND filtered")
    yield "rescued", _flag("coalesce(rescued, false) AND page = 1")
    yield "zero_or_rescued", _flag(f"(coalesce(rescued, false) OR {nothing}) AND page = 1")
    if not followed:
        return
    kind = "coalesce(kind, '')"
    asked, reformulated = f"page = 1 AND {kind} <> 'same'", f"{kind} IN {listed(REFORMULATIONS)}"
    yield "asked", _flag(asked)
    yield "repeated", _flag(f"page = 1 AND {kind} = 'same'")
    yield "reformulated", _flag(f"{asked} AND {reformulated}")
    for name in REFORMULATIONS:
        yield f"reformulated_{name}", _flag(f"page = 1 AND {kind} = '{name}'")
    yield "zero_asked", _flag(f"{nothing} AND page = 1 AND NOT filtered AND NOT again")
    yield "zero_asked_known", _flag(f"{known} AND page = 1 AND NOT filtered AND NOT again")
    failed, copied = f"({empty} OR {reformulated})", "coalesce(copies, 0) > 0"
    in_vain = "NOT coalesce(last_success_ms > time_ms, false)"
    yield "abandoned_bad", _flag(f"{abandoned} AND ({failed} OR (NOT {copied} AND {in_vain}))")
    yield "abandoned_good", _flag(f"{abandoned} AND NOT {failed} AND {copied}")
    yield "abandoned_unknown", _flag(f"{abandoned} AND NOT {failed} AND NOT {copied} AND NOT {in_vain}")


def _of_the_clicks(wanted: Wanted, *, timed: bool) -> Iterator[tuple[str, str]]:
    """Give what was opened on a page."""
    above = f"CASE WHEN ranks IS NULL THEN deepest - first_rank ELSE {_listed('< deepest')} END"
    passed = f"coalesce(greatest({above}, 0), 0)"
    waited = f"{_flag('first_ms >= time_ms')}" if timed else "0"
    yield "opened", "coalesce(opened, 0)"
    yield "opened_of_shown", "least(coalesce(inside, 0), n_shown)"
    yield "clicked", _flag("opened IS NOT NULL")
    yield "click_events", "coalesce(click_events, 0)"
    yield "observed", "coalesce(observed, 0)"
    yield "first_rr", f"coalesce({_reciprocal(f'(first_packed & {2**_RANK_BITS - 1})')}, 0)"
    yield "topmost_rr", f"coalesce({_reciprocal('topmost')}, 0)"
    yield "mean_rr", "coalesce(CAST(round(CAST(rr_sum AS DOUBLE) / nullif(ranked, 0)) AS BIGINT), 0)"
    yield "deepest", "coalesce(deepest, 0)"
    yield "ranked", _flag("ranked > 0")
    yield "passed", passed
    yield "skipped", f"CASE WHEN ranked > 0 THEN greatest({passed} - (ranked - 1), 0) ELSE 0 END"
    yield "first_click_s", f"CASE WHEN {waited} = 1 THEN first_ms - time_ms ELSE 0 END"
    yield "timed", waited
    for k in wanted.cutoffs:
        within = f"coalesce(bit_count(ranks_opened & {2**k - 1}), 0)" if k <= _BITS else f"coalesce(deep_to_{k}, 0)"
        yield f"opened_of_shown_to_{k}", within
        yield f"clicked_to_{k}", _flag(f"topmost <= {k}")
    for r in wanted.ranks:
        here = f"(ranks_opened & {2 ** (r - 1)}) <> 0" if r <= _BITS else f"deep_at_{r} > 0"
        yield f"opened_at_{r}", _flag(here)


def _shows(rank: str, page: str = "") -> str:
    """Say whether the page has a result at a rank."""
    contiguous = f"{rank} >= {page}first_rank AND {rank} < {page}first_rank + {page}n_shown"
    return f"CASE WHEN {page}ranks IS NULL THEN {contiguous} ELSE list_contains({page}ranks, {rank}) END"


def _listed(condition: str) -> str:
    """Count the ranks of a page whose ranks have gaps that meet a condition."""
    return f"array_length(list_filter(ranks, lambda rank: rank {condition}))"


def _reciprocal(rank: str) -> str:
    return f"CAST(round(CAST({RECIPROCAL} AS DOUBLE) / {rank}) AS BIGINT)"


def _flag(condition: str) -> str:
    """Write a condition as 1 or 0; what is not known is 0."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"
