"""Columns of the facts of pages: meaning, scale, and SQL of each.

All facts are integers, because their sums are the same in any order, with any number of threads, and on any database.
Fractions are scaled to integers (`SCALES`): seconds are counted in milliseconds, and reciprocals of ranks in a unit in
which those of small ranks are whole. If a column does not apply it is 0, and so is the column it is divided by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from judged.online.engine import Relation, identifier, sql_list
from judged.online.facts.reformulation import REFORMULATIONS
from judged.online.metrics import format_parameter

_Sql: TypeAlias = "str | Callable[[str], str]"

# 2^6 3^4 5^2 7 11 13 17 19 23, so that reciprocals of ranks 1 to 28 are integers, and most of their means.
RECIPROCAL_SCALE = 963_761_198_400
AMOUNT_SCALE = 10_000  # units per unit of money, and per rating
MAX_PACKED_RANK = 50  # clicks down to this rank are bits of one integer: a column for each rank would be slow
RANK_BITS = 16  # bits of a rank that is packed with a time into one integer, so that the first click is a minimum
PLAUSIBLE = "BETWEEN -1e12 AND 1e12"  # amounts and milliseconds; it is false for NaN and infinity


def flag(condition: str) -> str:
    """Return SQL of 1 if a condition is true, else 0, also if it is null."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def has_rank_sql(rank: str, page: str = "") -> str:
    """Return SQL that tests whether the page has a result at a rank."""
    contiguous = f"{rank} >= {page}first_rank AND {rank} < {page}first_rank + {page}n_shown"
    return f"CASE WHEN {page}ranks IS NULL THEN {contiguous} ELSE list_contains({page}ranks, {rank}) END"


def reciprocal(rank: str) -> str:
    """Return SQL of 1 / rank in units of 1 / `RECIPROCAL_SCALE`."""
    return f"CAST(round(CAST({RECIPROCAL_SCALE} AS DOUBLE) / {rank}) AS BIGINT)"


def sql_words(sql: Iterable[str]) -> set[str]:
    """Return the names and other words in SQL.

    >>> sorted(sql_words(['"satisfied_2.5" > 0', "opened"]))
    ['0', 'opened', 'satisfied_2.5']
    """
    return {word.strip('"') for expression in sql for word in re.findall(r'"[^"]+"|\w+', expression)}


def _ranks_where(condition: str) -> str:
    return f"array_length(list_filter(ranks, lambda rank: rank {condition}))"


def _or_zero(name: str) -> str:
    return f"coalesce({name}, 0)"


def _count_of(name: str) -> Callable[[str], str]:
    return lambda value: _or_zero(identifier(f"{name}_{value}"))


def _shown_to(k: str) -> str:
    contiguous = f"greatest(least(first_rank + n_shown - 1, {k}) - first_rank + 1, 0)"
    return f"CASE WHEN ranks IS NULL THEN {contiguous} ELSE {_ranks_where(f'<= {k}')} END"


def _opened_to(k: str) -> str:
    if int(k) <= MAX_PACKED_RANK:
        return f"coalesce(bit_count(ranks_opened & {2 ** int(k) - 1}), 0)"
    return _or_zero(f"deep_to_{k}")


def _opened_at(r: str) -> str:
    return f"(ranks_opened & {2 ** (int(r) - 1)}) <> 0" if int(r) <= MAX_PACKED_RANK else f"deep_at_{r} > 0"


_EMPTY = "(coalesce(zero_results, false) AND n_shown = 0 AND opened IS NULL)"  # a page with a click had results
_HAS_COUNT, _NO_RESULTS = "zero_results IS NOT NULL", "coalesce(zero_results, false)"  # used for first pages only
_ABOVE_DEEPEST = f"CASE WHEN ranks IS NULL THEN deepest - first_rank ELSE {_ranks_where('< deepest')} END"
_PASSED = f"coalesce(greatest({_ABOVE_DEEPEST}, 0), 0)"
_HAS_CLICK_DELAY = "first_ms >= time_ms"
_LAST_RANK = f"(last_packed & {2**RANK_BITS - 1})"
_KIND = "coalesce(kind, '')"
_IS_QUERY = f"page = 1 AND {_KIND} <> 'same'"
_REFORMULATED = f"{_KIND} IN {sql_list(REFORMULATIONS)}"
_ABANDONED = "(opened IS NULL AND sale_ms IS NULL)"
_FAILED = f"({_EMPTY} OR {_REFORMULATED})"
_NO_SUCCESS_LATER = "NOT coalesce(last_success_ms > time_ms, false)"


def _was_read(look: str) -> str:
    # The page itself may have answered: a text was copied, or the user was still active on it after `look` seconds.
    return f"(coalesce(copies, 0) > 0 OR coalesce(read_ms - time_ms >= {round(float(look) * 1000)}, false))"


_COLUMNS: dict[str, tuple[str, _Sql]] = {
    "page": ("1", "1"),
    "answered": ("1 if the page was not empty", flag(f"NOT {_EMPTY}")),
    "shown": ("results on the page", "CAST(n_shown AS BIGINT)"),
    "shown_to_{k}": ("results on the page at ranks 1 to k", _shown_to),
    "shown_at_{r}": ("1 if there was a result at rank r", lambda r: flag(has_rank_sql(r))),
    "opened": ("distinct results that were opened", _or_zero("opened")),
    "opened_of_shown": ("opened results that the page shows", "least(coalesce(inside, 0), n_shown)"),
    "opened_of_shown_to_{k}": ("results shown at ranks 1 to k that were opened", _opened_to),
    "opened_at_{r}": ("1 if the result at rank r was shown and opened", lambda r: flag(_opened_at(r))),
    "last_at_{r}": ("1 if the result at rank r was opened by the last click on the page",
        lambda r: flag(f"{_LAST_RANK} = {r} AND {_opened_at(r)}")),
    "clicked": ("1 if any result was opened", flag("opened IS NOT NULL")),
    "clicked_to_{k}": ("1 if any result at ranks 1 to k was opened", lambda k: flag(f"topmost <= {k}")),
    "answered_to_{k}": ("1 if the page was not empty and the rank of its first result is at most k",
        lambda k: flag(f"NOT {_EMPTY} AND first_rank <= {k}")),
    "click_events": ("clicks, including repeated ones", _or_zero("click_events")),
    "first_rr": ("1 / rank of the first click in time, 0 without a click",
        _or_zero(reciprocal(f"(first_packed & {2**RANK_BITS - 1})"))),
    "topmost_rr": ("1 / the smallest rank opened, 0 without a click", _or_zero(reciprocal("topmost"))),
    "mean_rr": ("mean of 1 / rank over opened results, 0 without a click",
        "coalesce(CAST(round(CAST(rr_sum AS DOUBLE) / nullif(ranked, 0)) AS BIGINT), 0)"),
    "deepest": ("the largest rank opened", _or_zero("deepest")),
    "ranked": ("1 if a result with a known rank was opened", flag("ranked > 0")),
    "rank_sum": ("sum of the ranks of opened results", _or_zero("rank_sum")),
    "opened_ranked": ("opened results with a known rank", _or_zero("ranked")),
    "passed": ("results above the deepest opened result", _PASSED),
    "skipped": ("results above the deepest opened result that were not opened",
        f"CASE WHEN ranked > 0 THEN greatest({_PASSED} - (ranked - 1), 0) ELSE 0 END"),
    "first_click_s": ("seconds from the page to its first click",
        f"CASE WHEN {_HAS_CLICK_DELAY} THEN first_ms - time_ms ELSE 0 END"),
    "timed": ("1 if the time to the first click is known and not negative", flag(_HAS_CLICK_DELAY)),
    "hovered": ("1 if the pointer rested on a result", flag("hovers > 0")),
    "satisfied_{t}": ("results opened for at least t seconds, or opened last in the session", _count_of("satisfied")),
    "satisfied_page_{t}": ("1 if any result was opened for at least t seconds, or opened last in the session",
        lambda t: flag(f"{identifier(f'satisfied_{t}')} > 0")),
    "satisfied_events_{t}": (
        "clicks that begin a visit of at least t seconds, or the last visit of the session",
        _count_of("satisfied_events")),
    "dissatisfied_events_{t}": ("clicks whose visit ended before t seconds", _count_of("dissatisfied_events")),
    "observed": ("clicks with an observed end of the visit", _or_zero("observed")),
    "abandoned": ("1 if nothing on the page was opened, added to the cart, or bought", flag(_ABANDONED)),
    "abandoned_bad_{look}": (
        "bad abandonment: 1 if abandoned, and (empty, or reformulated, or neither read nor followed by a success)",
        lambda look: flag(f"{_ABANDONED} AND ({_FAILED} OR (NOT {_was_read(look)} AND {_NO_SUCCESS_LATER}))")),
    "abandoned_good_{look}": (
        "good abandonment: 1 if abandoned, not empty, not reformulated, and read (copied, or active after `look` s)",
        lambda look: flag(f"{_ABANDONED} AND NOT {_FAILED} AND {_was_read(look)}")),
    "abandoned_unknown_{look}": ("1 if abandoned, but neither bad nor good abandonment",
        lambda look: flag(f"{_ABANDONED} AND NOT {_FAILED} AND NOT {_was_read(look)} AND NOT {_NO_SUCCESS_LATER}")),
    "exited": ("1 if the page has no click, cart, purchase or copy, and is the last of its session",
        flag(f"{_ABANDONED} AND coalesce(copies, 0) = 0 AND session_last_ms <= time_ms")),
    "first_page": ("1 if the page is the first page of its result list", flag("page = 1")),
    "turned": ("1 if the page is a first page, and the user requested a later page of the same result list",
        flag("page = 1 AND turned")),
    "filter_set": ("1 if a filter was set", flag("filtered")),
    "suggested": ("1 if the query of a first page was a suggestion", flag("page = 1 AND suggested")),
    "suggested_known": ("1 if the page is a first page, and the log records whether the query was a suggestion",
        flag("page = 1 AND suggested IS NOT NULL")),
    "distinct_query": (
        "1 if the page is the first page of a query, unless the next query of the session has the same text",
        flag(_IS_QUERY)),
    "repeated": ("1 if the page is the first page of a query, and the next query of the session has the same text",
        flag(f"page = 1 AND {_KIND} = 'same'")),
    "reformulated": ("1 if the next query of the session is a reformulation within the time limit",
        flag(f"{_IS_QUERY} AND {_REFORMULATED}")),
    "reformulated_{kind}": ("1 if the next query of the session is a reformulation of the type `kind`",
        lambda kind: flag(f"page = 1 AND {_KIND} = '{kind}'")),
    "zero": ("1 if the page is an unfiltered first page without results",
        flag(f"{_NO_RESULTS} AND page = 1 AND NOT filtered")),
    "zero_known": ("1 if the page is an unfiltered first page and the log records the number of results",
        flag(f"{_HAS_COUNT} AND page = 1 AND NOT filtered")),
    "zero_query": ("1 if `zero` is 1, unless the next unfiltered first page of the session has the same query text",
        flag(f"{_NO_RESULTS} AND page = 1 AND NOT filtered AND NOT again")),
    "zero_query_known": (
        "1 if `zero_known` is 1, unless the next unfiltered first page of the session has the same query text",
        flag(f"{_HAS_COUNT} AND page = 1 AND NOT filtered AND NOT again")),
    "zero_filtered": ("1 if the page is a filtered first page without results",
        flag(f"{_NO_RESULTS} AND page = 1 AND filtered")),
    "zero_filtered_known": ("1 if the page is a filtered first page and the log records the number of results",
        flag(f"{_HAS_COUNT} AND page = 1 AND filtered")),
    "rescued": ("1 if the engine replaced the query because the query had no results",
        flag("coalesce(rescued, false) AND page = 1")),
    "zero_or_rescued": ("1 if the query as typed had zero results",
        flag(f"(coalesce(rescued, false) OR {_NO_RESULTS}) AND page = 1")),
    "cart": ("1 if a cart event occurred", flag("carts > 0")),
    "carts": ("number of cart events", _or_zero("carts")),
    "purchased": ("1 if a purchase occurred", flag("purchases > 0")),
    "purchases": ("number of purchases", _or_zero("purchases")),
    "money": ("revenue of the page, winsorized", _or_zero("money")),
    "likes": ("number of likes of the page or its results", _or_zero("likes")),
    "thumbs": ("number of likes and dislikes", "coalesce(likes + dislikes, 0)"),
    "rating": ("sum of the ratings on the page", _or_zero("rating")),
    "ratings": ("number of ratings", _or_zero("ratings")),
    "latency_s": ("seconds until the engine responded",
        f"CASE WHEN latency_ms {PLAUSIBLE} THEN CAST(round(latency_ms * 1000) AS BIGINT) ELSE 0 END"),
    "latency_known": ("1 if the latency is logged", flag(f"latency_ms {PLAUSIBLE}")),
}  # fmt: skip

COLUMNS = {name: meaning for name, (meaning, _) in _COLUMNS.items()}
"""Meaning of each column. Parameters are in braces."""

SCALES = {
    **dict.fromkeys(("first_rr", "topmost_rr", "mean_rr"), RECIPROCAL_SCALE),
    "first_click_s": 1000,
    "latency_s": 1_000_000,
    **dict.fromkeys(("money", "rating"), AMOUNT_SCALE),
}
"""Factor by which a column is larger than in its unit, if not 1."""

_PATTERNS = [(re.compile(re.sub(r"\{\w+\}", r"([^_]+)", name)), name) for name in _COLUMNS]
NEXT_QUERY = {"kind", "again", "last_success_ms"}


def _definition(column: str) -> tuple[str, str]:
    """Return the meaning and the SQL of a column."""
    for pattern, name in _PATTERNS:
        if match := pattern.fullmatch(column):
            meaning, sql = _COLUMNS[name]
            return meaning, sql if isinstance(sql, str) else sql(match[1])
    raise KeyError(column)


def column_sql(column: str) -> str:
    """Return the SQL of a column, with values for its parameters, over pages joined with their events.

    >>> column_sql("clicked_to_3")
    'CASE WHEN topmost <= 3 THEN 1 ELSE 0 END'
    """
    return _definition(column)[1]


def is_flag(column: str) -> bool:
    """Whether a column has only the values 0 and 1.

    >>> is_flag("clicked_to_3"), is_flag("opened_of_shown_to_3"), is_flag("first_rr")
    (True, False, False)
    """
    meaning = _definition(column)[0]
    return meaning == "1" or meaning.startswith("1 if ")


# Columns of the facts of a session, other than session_count, which is 1:
#   clicked: 1 if any result was opened; queries: pages with `distinct_query`; money: revenue of its pages, winsorized;
#   succeeded_{t}: 1 if a page had a success: a click with a dwell time of at least t seconds, a cart, a purchase;
#   time_to_success_{t}: seconds from the first page to the first success, in milliseconds;
#   queries_to_success_{t}: queries up to the first success
_TOTALS = {
    "clicked": "max(clicked)",
    "queries": "CAST(sum(distinct_query) AS BIGINT)",
    "money": "CAST(sum(money) AS BIGINT)",
}


def needed_page_columns(columns: Collection[str]) -> tuple[str, ...]:
    """Return the facts of pages from which facts of sessions are computed, other than times.

    >>> needed_page_columns({"clicked", "succeeded_30"}), needed_page_columns({"queries_to_success_30"})
    (('clicked',), ('distinct_query', 'repeated'))
    """
    repeats = any(name.startswith("queries_to_success") for name in columns)
    needed = {
        "clicked": "clicked" in columns, "distinct_query": repeats or "queries" in columns, "repeated": repeats,
        "money": "money" in columns,
    }  # fmt: skip
    return tuple(name for name, is_needed in needed.items() if is_needed)


def session_facts(
    pages: Relation, columns: Collection[str], thresholds: Sequence[float], *, sliced: bool = False
) -> Relation:
    """Return one row for each session, or for each session and slice. A session counts in each slice of its pages.

    Parameters
    ----------
    pages
        `PageFacts.select` of `needed_page_columns`.
    columns
        Names of facts of sessions.
    thresholds
        Dwell times in seconds that make a success.
    sliced
        Whether `pages` has a column ``slice`` to group by.

    Returns
    -------
    Relation
        ``session, user``, the slice, the columns, and ``session_count``, 1.
    """
    keys = "session, slice" if sliced else "session"
    needs_repeats = "repeated" in needed_page_columns(columns)
    aggregates = [f"{sql} AS {name}" for name, sql in _TOTALS.items() if name in columns]
    page_columns, facts = list[str](), [name for name in _TOTALS if name in columns]
    for t in map(format_parameter, thresholds):
        first_success = identifier(f"first_success_{t}")
        names = ("success", "queries", "last_query_ms", "last_repeat_ms", "queries_to_success")
        success, queries, query_ms, repeat_ms, queries_to_success = (identifier(f"{name}_{t}") for name in names)
        page_columns.append(f"min({identifier(f'success_ms_{t}')}) OVER this_session AS {first_success}")
        aggregates.append(f"min({first_success}) AS {success}")
        facts += [
            f"CASE WHEN {success} IS NOT NULL THEN 1 ELSE 0 END AS {identifier(f'succeeded_{t}')}",
            f"coalesce(greatest({success} - start_ms, 0), 0) AS {identifier(f'time_to_success_{t}')}",
        ]
        if not needs_repeats:
            continue
        aggregates += [
            f"sum(CASE WHEN time_ms <= {first_success} THEN distinct_query ELSE 0 END) AS {queries}",
            f"max(CASE WHEN time_ms <= {first_success} AND distinct_query > 0 THEN time_ms END) AS {query_ms}",
            f"max(CASE WHEN time_ms <= {first_success} AND repeated > 0 THEN time_ms END) AS {repeat_ms}",
        ]
        # Of consecutive repeats only the last has `distinct_query`. If the success is before it, add the query here.
        pending = f"CASE WHEN {repeat_ms} >= coalesce({query_ms}, {repeat_ms}) THEN 1 ELSE 0 END"
        count = f"greatest({queries} + {pending}, 1)"
        facts.append(f"CASE WHEN {success} IS NULL THEN 0 ELSE {count} END AS {queries_to_success}")
    page = f"{pages}"
    if page_columns:
        page = f"(SELECT *, {', '.join(page_columns)} FROM {pages} WINDOW this_session AS (PARTITION BY {keys}))"
    return pages.engine.query(f"""
        WITH session AS (
            SELECT {keys}, min("user") AS "user", min(time_ms) AS start_ms{"".join(f", {sql}" for sql in aggregates)}
            FROM {page} GROUP BY {keys})
        SELECT {keys}, "user"{"".join(f", {sql}" for sql in facts)}, 1 AS session_count
        FROM session""")
