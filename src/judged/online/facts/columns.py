"""The columns of the facts of pages: what each one means, in which parts it is counted, and its SQL.

Whole numbers add up to the same sum in whatever order, so that no thread and no database changes a digit. What is not
whole by nature is counted in parts (`SCALES`): seconds in milliseconds, reciprocals of ranks in parts of which those of
small ranks are whole. A column is 0 where it does not apply, and then the column that it is divided by is 0 too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from judged.online.engine import Relation, identifier, listed
from judged.online.facts.reformulation import REFORMULATIONS
from judged.online.metrics import written

_Sql: TypeAlias = "str | Callable[[str], str]"

RECIPROCAL = 963_761_198_400  # 2^6 3^4 5^2 7 11 13 17 19 23: of ranks 1 to 28 whole, and so are most means of a few
AMOUNT = 10_000  # parts of the log's unit of money, and of a rating
BITS = 50  # ranks down to here stand in one number: a column each would be most of the cost
RANK_BITS = 16  # a time and a rank are packed into one number, so that "the first click" is a minimum
SENSIBLE = "BETWEEN -1e12 AND 1e12"  # money and milliseconds: no other number, and not what is none


def flag(condition: str) -> str:
    """Write a condition as 1 or 0; what is not known is 0."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def shows(rank: str, page: str = "") -> str:
    """Say whether the page has a result at a rank."""
    contiguous = f"{rank} >= {page}first_rank AND {rank} < {page}first_rank + {page}n_shown"
    return f"CASE WHEN {page}ranks IS NULL THEN {contiguous} ELSE list_contains({page}ranks, {rank}) END"


def reciprocal(rank: str) -> str:
    """Write 1 / rank in its parts."""
    return f"CAST(round(CAST({RECIPROCAL} AS DOUBLE) / {rank}) AS BIGINT)"


def words(sql: Iterable[str]) -> set[str]:
    """Give the names that stand in SQL, and its other words.

    >>> sorted(words(['"satisfied_2.5" > 0', "opened"]))
    ['0', 'opened', 'satisfied_2.5']
    """
    return {word.strip('"') for one in sql for word in re.findall(r'"[^"]+"|\w+', one)}


def _listed(condition: str) -> str:
    """Count the ranks of a page whose ranks have gaps that meet a condition."""
    return f"array_length(list_filter(ranks, lambda rank: rank {condition}))"


def _count(name: str) -> str:
    return f"coalesce({name}, 0)"


def _named(name: str) -> Callable[[str], str]:
    """Give a count whose name holds a parameter."""
    return lambda value: _count(identifier(f"{name}_{value}"))


def _shown_to(k: str) -> str:
    contiguous = f"greatest(least(first_rank + n_shown - 1, {k}) - first_rank + 1, 0)"
    return f"CASE WHEN ranks IS NULL THEN {contiguous} ELSE {_listed(f'<= {k}')} END"


def _opened_to(k: str) -> str:
    shallow = int(k) <= BITS
    return f"coalesce(bit_count(ranks_opened & {2 ** int(k) - 1}), 0)" if shallow else _count(f"deep_to_{k}")


def _opened_at(r: str) -> str:
    return f"(ranks_opened & {2 ** (int(r) - 1)}) <> 0" if int(r) <= BITS else f"deep_at_{r} > 0"


_EMPTY = "(coalesce(zero_results, false) AND n_shown = 0 AND opened IS NULL)"  # what was clicked on was not empty
_KNOWN, _NOTHING = "zero_results IS NOT NULL", "coalesce(zero_results, false)"  # failures of the engine: first pages
_ABOVE = f"CASE WHEN ranks IS NULL THEN deepest - first_rank ELSE {_listed('< deepest')} END"
_PASSED = f"coalesce(greatest({_ABOVE}, 0), 0)"
_WAITED = "first_ms >= time_ms"
_LAST_RANK = f"(last_packed & {2**RANK_BITS - 1})"
_KIND = "coalesce(kind, '')"
_ASKED = f"page = 1 AND {_KIND} <> 'same'"
_REFORMULATED = f"{_KIND} IN {listed(REFORMULATIONS)}"
_ABANDONED = "(opened IS NULL AND sale_ms IS NULL)"
_FAILED = f"({_EMPTY} OR {_REFORMULATED})"
_IN_VAIN = "NOT coalesce(last_success_ms > time_ms, false)"


def _read(look: str) -> str:
    """Say that the page itself may have answered: something was copied, or it was still being looked at."""
    return f"(coalesce(copies, 0) > 0 OR coalesce(read_ms - time_ms >= {round(float(look) * 1000)}, false))"


_COLUMNS: dict[str, tuple[str, _Sql]] = {
    "page": ("1", "1"),
    "answered": ("1 if the page was not empty", flag(f"NOT {_EMPTY}")),
    "shown": ("results on the page", "CAST(n_shown AS BIGINT)"),
    "shown_to_{k}": ("results on the page at ranks 1 to k", _shown_to),
    "shown_at_{r}": ("1 if there was a result at rank r", lambda r: flag(shows(r))),
    "opened": ("results that were opened, each once", _count("opened")),
    "opened_of_shown": ("of those, the ones that the page shows", "least(coalesce(inside, 0), n_shown)"),
    "opened_of_shown_to_{k}": ("results shown at ranks 1 to k that were opened", _opened_to),
    "opened_at_{r}": ("1 if the result at rank r was shown and opened", lambda r: flag(_opened_at(r))),
    "last_at_{r}": (
        "1 if it was, and by the last click on the page",
        lambda r: flag(f"{_LAST_RANK} = {r} AND {_opened_at(r)}"),
    ),
    "clicked": ("1 if any result was opened", flag("opened IS NOT NULL")),
    "clicked_to_{k}": ("1 if any at ranks 1 to k was", lambda k: flag(f"topmost <= {k}")),
    "answered_to_{k}": (
        "1 if the page was not empty and holds a rank up to k",
        lambda k: flag(f"NOT {_EMPTY} AND first_rank <= {k}"),
    ),
    "click_events": ("clicks, repeated ones too", _count("click_events")),
    "first_rr": (
        "1 / rank of the first click in time, 0 without a click",
        _count(reciprocal(f"(first_packed & {2**RANK_BITS - 1})")),
    ),
    "topmost_rr": ("1 / the smallest rank opened, 0 without a click", _count(reciprocal("topmost"))),
    "mean_rr": (
        "mean of 1 / rank over opened results, 0 without a click",
        "coalesce(CAST(round(CAST(rr_sum AS DOUBLE) / nullif(ranked, 0)) AS BIGINT), 0)",
    ),
    "deepest": ("the largest rank opened", _count("deepest")),
    "ranked": ("1 if a result with a known rank was opened", flag("ranked > 0")),
    "rank_sum": ("sum of the ranks of opened results", _count("rank_sum")),
    "opened_ranked": ("opened results with a known rank", _count("ranked")),
    "passed": ("results above the deepest one opened", _PASSED),
    "skipped": (
        "of those, not opened",
        f"CASE WHEN ranked > 0 THEN greatest({_PASSED} - (ranked - 1), 0) ELSE 0 END",
    ),
    "first_click_s": (
        "seconds from the page to its first click",
        f"CASE WHEN {_WAITED} THEN first_ms - time_ms ELSE 0 END",
    ),
    "timed": ("1 if that time is known and not negative", flag(_WAITED)),
    "hovered": ("1 if the pointer rested on a result", flag("hovers > 0")),
    "satisfied_{t}": ("results opened for t seconds or longer, or last in the session", _named("satisfied")),
    "satisfied_page_{t}": ("1 if there is such a result", lambda t: flag(f"{identifier(f'satisfied_{t}')} > 0")),
    "satisfied_events_{t}": ("such clicks", _named("satisfied_events")),
    "dissatisfied_events_{t}": ("clicks whose visit was seen to end before t seconds", _named("dissatisfied_events")),
    "observed": ("clicks whose visit was seen to end", _count("observed")),
    "abandoned": ("1 if nothing on the page was opened, put into the cart or bought", flag(_ABANDONED)),
    "abandoned_bad_{look}": (
        "1 if abandoned, and empty, reformulated (a page behind the first too), or neither read nor before a success",
        lambda look: flag(f"{_ABANDONED} AND ({_FAILED} OR (NOT {_read(look)} AND {_IN_VAIN}))"),
    ),
    "abandoned_good_{look}": (
        "1 if abandoned, neither empty nor reformulated, and read: copied from, or looked at for so many seconds",
        lambda look: flag(f"{_ABANDONED} AND NOT {_FAILED} AND {_read(look)}"),
    ),
    "abandoned_unknown_{look}": (
        "1 if abandoned and neither",
        lambda look: flag(f"{_ABANDONED} AND NOT {_FAILED} AND NOT {_read(look)} AND NOT {_IN_VAIN}"),
    ),
    "exited": (
        "1 if nothing was done on the page, and no page, click, cart, purchase or copy of the session came later",
        flag(f"{_ABANDONED} AND coalesce(copies, 0) = 0 AND session_last_ms <= time_ms"),
    ),
    "first_page": ("1 if it is the first page of its list", flag("page = 1")),
    "turned": ("1 if it is, and a page behind it in the list was asked for", flag("page = 1 AND turned")),
    "filter_set": ("1 if a filter was set", flag("filtered")),
    "suggested": ("1 if the text of a first page was a suggestion", flag("page = 1 AND suggested")),
    "suggested_known": ("1 if a first page says whether it was", flag("page = 1 AND suggested IS NOT NULL")),
    "asked": ("1 if it is the first page of a query, the last one of consecutive repeats", flag(_ASKED)),
    "repeated": (
        "1 if it is the first page of a query, and consecutive repeats of it follow",
        flag(f"page = 1 AND {_KIND} = 'same'"),
    ),
    "reformulated": (
        "1 if the next query of the session, soon enough, is a reformulation",
        flag(f"{_ASKED} AND {_REFORMULATED}"),
    ),
    "reformulated_{kind}": ("1 if it is one of that kind", lambda kind: flag(f"page = 1 AND {_KIND} = '{kind}'")),
    "zero": ("1 if nothing was found for an unfiltered first page", flag(f"{_NOTHING} AND page = 1 AND NOT filtered")),
    "zero_known": (
        "1 if it is an unfiltered first page and the log says how much was found",
        flag(f"{_KNOWN} AND page = 1 AND NOT filtered"),
    ),
    "zero_asked": (
        "1 if zero, unless the next unfiltered first page of the session has the same text",
        flag(f"{_NOTHING} AND page = 1 AND NOT filtered AND NOT again"),
    ),
    "zero_asked_known": (
        "1 if zero_known, unless the next unfiltered first page of the session has the same text",
        flag(f"{_KNOWN} AND page = 1 AND NOT filtered AND NOT again"),
    ),
    "zero_filtered": (
        "1 if nothing was found for a filtered first page",
        flag(f"{_NOTHING} AND page = 1 AND filtered"),
    ),
    "zero_filtered_known": (
        "1 if it is a filtered first page and the log says how much was found",
        flag(f"{_KNOWN} AND page = 1 AND filtered"),
    ),
    "rescued": (
        "1 if the page answers a changed query, since the typed one found nothing",
        flag("coalesce(rescued, false) AND page = 1"),
    ),
    "zero_or_rescued": (
        "1 if the typed query found nothing",
        flag(f"(coalesce(rescued, false) OR {_NOTHING}) AND page = 1"),
    ),
    "cart": ("1 if something was put into the cart", flag("carts > 0")),
    "carts": ("how often", _count("carts")),
    "purchased": ("1 if something was bought", flag("purchases > 0")),
    "purchases": ("how often", _count("purchases")),
    "money": ("money that came of the page, winsorized", _count("money")),
    "likes": ("how often the page or a result of it was called good", _count("likes")),
    "thumbs": ("how often it was called good or bad", "coalesce(likes + dislikes, 0)"),
    "rating": ("sum of the ratings given on the page", _count("rating")),
    "ratings": ("how many there are", _count("ratings")),
    "latency_s": (
        "seconds until the engine answered",
        f"CASE WHEN latency_ms {SENSIBLE} THEN CAST(round(latency_ms * 1000) AS BIGINT) ELSE 0 END",
    ),
    "latency_known": ("1 if they are logged", flag(f"latency_ms {SENSIBLE}")),
}

COLUMNS = {name: meaning for name, (meaning, _) in _COLUMNS.items()}
"""What each column means; those with a parameter in braces are made for each value that is asked for."""

SCALES = {
    **dict.fromkeys(("first_rr", "topmost_rr", "mean_rr"), RECIPROCAL),
    "first_click_s": 1000,
    "latency_s": 1_000_000,
    **dict.fromkeys(("money", "rating"), AMOUNT),
}
"""In how many parts of its unit a column is counted, where not in ones."""

_PATTERNS = [(re.compile(re.sub(r"\{\w+\}", r"([^_]+)", name)), name) for name in _COLUMNS]
NEXT_QUERY = {"kind", "again", "last_success_ms"}


def _definition(column: str) -> tuple[str, str]:
    """Give the meaning of a column and its SQL."""
    for pattern, name in _PATTERNS:
        if match := pattern.fullmatch(column):
            meaning, sql = _COLUMNS[name]
            return meaning, sql if isinstance(sql, str) else sql(match[1])
    raise KeyError(column)


def sql_of(column: str) -> str:
    """Give the SQL of one of `COLUMNS`, parameters filled in, over what is joined to a page.

    >>> sql_of("clicked_to_3")
    'CASE WHEN topmost <= 3 THEN 1 ELSE 0 END'
    """
    return _definition(column)[1]


def is_flag(column: str) -> bool:
    """Tell whether a column holds only 0 and 1.

    >>> is_flag("clicked_to_3"), is_flag("opened_of_shown_to_3"), is_flag("first_rr")
    (True, False, False)
    """
    meaning = _definition(column)[0]
    return meaning == "1" or meaning.startswith("1 if ")


# Columns of the facts of a session, beside session_count, which is 1:
#   clicked: 1 if any result was opened; queries: pages that count as asked; money: of its pages, winsorized;
#   succeeded_{t}: 1 if a page came to a success: a click of t seconds dwell or more, a cart, a purchase;
#   time_to_success_{t}: seconds from the first page to the first success, counted in milliseconds;
#   queries_to_success_{t}: queries up to the first success
_TOTALS = {
    "clicked": "max(clicked)",
    "queries": "CAST(sum(asked) AS BIGINT)",
    "money": "CAST(sum(money) AS BIGINT)",
}


def of_pages(columns: Collection[str]) -> tuple[str, ...]:
    """Name the facts of pages that some of `COLUMNS` are made of, beside the times of pages and successes.

    >>> of_pages({"clicked", "succeeded_30"}), of_pages({"queries_to_success_30"})
    (('clicked',), ('asked', 'repeated'))
    """
    repeats = any(name.startswith("queries_to_success") for name in columns)
    needed = {
        "clicked": "clicked" in columns, "asked": repeats or "queries" in columns, "repeated": repeats,
        "money": "money" in columns,
    }  # fmt: skip
    return tuple(name for name, is_needed in needed.items() if is_needed)


def session_facts(
    pages: Relation, columns: Collection[str], thresholds: Sequence[float], *, sliced: bool = False
) -> Relation:
    """Give one row a session, or a session and slice: a session counts in each slice that it has a page in, by these.

    Parameters
    ----------
    pages
        `PageFacts.select` of `of_pages`.
    columns
        Some of `COLUMNS`.
    thresholds
        Seconds of dwell that make a success.
    sliced
        By their column ``slice``.

    Returns
    -------
    Relation
        ``session, user``, the slice, the columns, and ``session_count``, 1.
    """
    keys = "session, slice" if sliced else "session"
    repeats = "repeated" in of_pages(columns)
    totals = [f"{sql} AS {name}" for name, sql in _TOTALS.items() if name in columns]
    made, ready = list[str](), [name for name in _TOTALS if name in columns]
    for t in map(written, thresholds):
        first, until = f"min({identifier(f'success_ms_{t}')}) OVER own", identifier(f"until_{t}")
        names = ("first", "ended", "ended_ms", "open_ms", "queries_to_success")
        end, ended, ended_ms, open_ms, queries = (identifier(f"{name}_{t}") for name in names)
        made.append(f"{first} AS {until}")
        totals.append(f"min({until}) AS {end}")
        ready += [
            f"CASE WHEN {end} IS NOT NULL THEN 1 ELSE 0 END AS {identifier(f'succeeded_{t}')}",
            f"coalesce(greatest({end} - start_ms, 0), 0) AS {identifier(f'time_to_success_{t}')}",
        ]
        if not repeats:
            continue
        totals += [
            f"sum(CASE WHEN time_ms <= {until} THEN asked ELSE 0 END) AS {ended}",
            f"max(CASE WHEN time_ms <= {until} AND asked > 0 THEN time_ms END) AS {ended_ms}",
            f"max(CASE WHEN time_ms <= {until} AND repeated > 0 THEN time_ms END) AS {open_ms}",
        ]
        # a repeat counts when it ends: among the pages until the success, it has not
        going_on = f"CASE WHEN {open_ms} >= coalesce({ended_ms}, {open_ms}) THEN 1 ELSE 0 END"
        ready.append(f"CASE WHEN {end} IS NULL THEN 0 ELSE greatest({ended} + {going_on}, 1) END AS {queries}")
    page = f"(SELECT *, {', '.join(made)} FROM {pages} WINDOW own AS (PARTITION BY {keys}))" if made else f"{pages}"
    return pages.engine.query(f"""
        WITH session AS (
            SELECT {keys}, min("user") AS "user", min(time_ms) AS start_ms{"".join(f", {sql}" for sql in totals)}
            FROM {page} GROUP BY {keys})
        SELECT {keys}, "user"{"".join(f", {sql}" for sql in ready)}, 1 AS session_count
        FROM session""")
