"""The typed tables of a log: what every reader is turned into, and all that metrics ever see.

A *page* is one result page that somebody saw: one row of `serp`. Keys are whole numbers, given when the log is made:
joins on numbers are several times faster than joins on the texts that logs carry. Times are whole milliseconds since
1970 UTC. Ranks start at 1 and go on over pages: the second page of ten begins at rank 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Type: TypeAlias = Literal[
    "int64", "int32", "float64", "string", "boolean", "array<string>", "array<int32>", "array<float64>"
]


@dataclass(frozen=True)
class Column:
    """A column of a typed table: its name, its type, whether it may be null, and what it means."""

    name: str
    type: Type
    null: bool
    meaning: str


def arrow_type(type: Type) -> Any:
    """Give one of our types in Arrow's words."""
    import pyarrow as pa

    inner = pa.type_for_alias(type.removeprefix("array<").removesuffix(">"))
    return pa.list_(inner) if type.startswith("array<") else inner


SERP = (
    Column("serp", "int64", False, "key of the page"),
    Column("query_id", "string", False, "the log's own name of the page"),
    Column("session", "int64", False, "key of the session"),
    Column("user", "int64", False, "key of the user: the unit that intervals are made over"),
    Column("time_ms", "int64", False, "when the page was asked for"),
    Column("application", "string", True, "where it was asked: primary-search, type-ahead"),
    Column("query", "string", True, "the text as typed"),
    Column("query_norm", "string", True, "the text in lower case, blanks made one: texts are compared by it"),
    Column("language", "string", True, "of the user or the page"),
    Column("device", "string", True, "desktop, mobile, ..."),
    Column("filtered", "boolean", False, "a filter or facet was set"),
    Column("page", "int32", False, "1 for the first page of a result list"),
    Column("first_rank", "int32", False, "rank of the first result on the page"),
    Column("ranks", "array<int32>", True, "ranks of its results where they do not count up by one from first_rank"),
    Column("n_total", "int64", True, "results that the engine found"),
    Column("n_returned", "int32", True, "results that it sent for this page"),
    Column("n_shown", "int32", False, "results on the page: the ids sent, or else those with an impression"),
    Column(
        "zero_results",
        "boolean",
        True,
        "nothing was found: by n_total, or else n_returned; null where neither is logged",
    ),
    Column("rescued", "boolean", True, "what is shown answers a changed query, since the typed one found nothing"),
    Column("suggested", "boolean", True, "the text was taken from a suggestion; null where that is not logged"),
    Column("latency_ms", "float64", True, "how long the engine took"),
    Column("experiment", "string", True, "name of the experiment"),
    Column("variant", "string", True, "arm of the experiment"),
    Column("assign_p", "float64", True, "probability of being assigned to that arm"),
    Column("ranker", "string", True, "what ranked: a name or a hash of the configuration"),
    Column("trace_id", "string", True, "of the trace of this request"),
)
"""One row a page. More columns may follow: attributes of the log's own, to slice by."""

SHOWN = (
    Column("serp", "int64", False, "the page"),
    Column("rank", "int32", False, "from 1"),
    Column("object_id", "string", False, "what was shown: a document, a product"),
    Column("team", "string", True, "the ranker that an interleaved result counts for"),
    Column("propensity", "float64", True, "probability with which the logging policy put it here"),
    Column("seen", "boolean", True, "it came into view; null where impressions are not logged"),
)
"""One row a result on a page whose rank and id are known."""

EVENT = (
    Column("event", "int64", False, "key of the event"),
    Column("serp", "int64", True, "the page it belongs to; null where it belongs to none"),
    Column("session", "int64", False, "key of the session"),
    Column("user", "int64", False, "key of the user"),
    Column("time_ms", "int64", False, "when"),
    Column("action", "string", False, "one of ACTIONS"),
    Column("object_id", "string", True, "what it was done to"),
    Column("rank", "int32", True, "rank of that on the page, from 1; null where it is not known"),
    Column("dwell_ms", "int64", True, "how long the visit lasted, where the log says so itself"),
    Column("value", "float64", True, "money, of a purchase or a product put into the cart; points of a rating"),
)
"""One row an event."""

SESSION = (
    Column("session", "int64", False, "key"),
    Column("session_id", "string", True, "the log's own name, null where sessions are cut by inactivity"),
    Column("user", "int64", False, "key of the user"),
    Column("user_id", "string", True, "the log's own name of the user"),
    Column("start_ms", "int64", False, "first page or event"),
    Column("end_ms", "int64", False, "last page or event"),
    Column("n_serps", "int64", False, "pages in it"),
    Column("n_events", "int64", False, "events in it"),
)
"""One row a session."""

ACTIONS = (
    "click",  # a result was opened
    "impression",  # a result came into view
    "hover",
    "heartbeat",  # the opened result is still being looked at
    "page_exit",  # the result page, or what was opened from it, was left
    "add_to_cart",
    "purchase",
    "copy",  # something was copied from the result page: an answer without a click
    "scroll",  # the result page was scrolled
    "like",  # a thumb up: for the page, or a result of it
    "dislike",  # a thumb down
    "rating",  # stars or points, as the value
    "search",  # the page itself, as the front end logs it
    "other",  # anything else: kept, and never counted as one of the above
)
"""The actions that metrics know. Readers map the log's own names onto them."""

AFTER_THE_CLICK = ("heartbeat", "add_to_cart", "purchase")
"""What a user does on an opened result: none of it ends the visit."""

RETURNS = ("click", "impression", "hover", "copy", "search")
"""What shows that a user is back from an opened result; so does a ``page_exit`` that names what was opened."""

ATTRIBUTE_LIMIT = 50
"""So many columns of a log's own are kept for slicing."""
