"""The rules in words: what is wrong, what was done about it, and what whoever writes the log can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from judged.online.findings import Done


class Wording(NamedTuple):
    """One rule in words; ``$more`` is filled in with what was counted."""

    done: Done
    problem: str
    fix: str


QUERY = {
    "no-query-id": Wording(
        "excluded",
        "queries without a query_id: no event can name them, so each would look abandoned",
        "log a query_id with every query",
    ),
    "odd-time": Wording(
        "excluded",
        "queries whose time is missing or cannot be read",
        "log times as ISO 8601 with an offset, or as milliseconds since 1970",
    ),
    "future-time": Wording(
        "excluded",
        "queries more than a day in the future",
        "check the clock, and whether times are milliseconds or microseconds",
    ),
    "facet-request": Wording(
        "excluded",
        "requests that ask for no results$more: facets and counts, logged like searches; as pages they would be pages"
        " with zero results",
        "do not log sub-requests, or log them without a query_id",
    ),
    "repeated-query-id": Wording(
        "excluded",
        "further queries under a query_id that has a page already$more; the first with results stays",
        "make a query_id for every page",
    ),
    "bot": Wording(
        "excluded",
        "pages of users who are programs$more",
        "nothing, if that is right; --bots keep counts them",
    ),
    "no-user": Wording(
        "kept",
        "pages of nobody: neither query nor events name a user, so each session, or page, counts as a user, and"
        " intervals are too narrow if one person has several",
        "log a client_id with every query",
    ),
    "first-rank-from-positions": Wording(
        "kept",
        "pages that do not say where they begin, and begin behind rank 1 by the positions of what was done on them;"
        " others like them, on which nothing was done, count as first pages",
        "log the page, or the rank of the first result, with every query",
    ),
    "session-of-two-users": Wording(
        "repaired",
        "session ids that several users have$more; each user's part is a session",
        "make session ids that are unique",
    ),
}
"""Rules of the queries."""

EVENT = {
    "odd-time": QUERY["odd-time"]._replace(problem="events whose time is missing or cannot be read"),
    "future-time": QUERY["future-time"]._replace(problem="events more than a day in the future"),
    "bot": QUERY["bot"]._replace(problem="events of users who are programs"),
    "duplicate-event": Wording(
        "excluded",
        "events that stand in the log twice: the same event_id, or equal in all that is logged; the first stays",
        "send events once, or give each an event_id that a repeated sending keeps",
    ),
    "no-query-id": Wording(
        "kept",
        "events that name no page; they are in their session, on no page",
        "log the query_id with what happens on a page",
    ),
    "unknown-query-id": Wording(
        "kept",
        "events on pages that were not logged; they are in their session, on no page, so clicks among them are missing"
        " from every metric of pages",
        "log the query of every page, and read all files of the same time",
    ),
    "excluded-page": Wording(
        "kept",
        "events on pages that another rule leaves out; they are in their session, on no page",
        "see the rules of the queries",
    ),
    "zero-based-ranks": Wording(
        "repaired",
        "positions counted from 0$more; 1 was added",
        "count positions from 1, or say so: --rank-base 0",
    ),
    "mixed-rank-base": Wording(
        "repaired",
        "positions counted from 0 in some applications and from 1 in others$more; 1 was added to the former",
        "count positions from 1 everywhere",
    ),
    "negative-rank": Wording(
        "repaired",
        "positions before the first result; their rank is unknown",
        "log the position in the list of results",
    ),
    "rank-beyond-list": Wording(
        "kept",
        "positions behind the end of the logged list, of objects that are not in it",
        "log the query of every page that is loaded, with its list",
    ),
    "rank-disagrees": Wording(
        "repaired",
        "positions at which the logged list has something else; the place in the list counts",
        "log the list as it is shown, after the last reordering",
    ),
    "clock-skew": Wording(
        "kept",
        "events before their page$more; no time to first click comes from them",
        "take all times from one clock, the server's",
    ),
    "click-without-impression": Wording(
        "kept",
        "clicks on what was not shown as far as the log tells$more",
        "log impressions when results come into view, and before clicks",
    ),
    "unknown-action": Wording(
        "kept",
        "actions that mean nothing here$more; they count as activity and as nothing else",
        "say what they mean in a mapping (actions), if it is one of ours",
    ),
    "dwell-on-every-event": Wording(
        "repaired",
        "dwell times on most events, also where nothing was opened: the age of a page and no visit; dwell is taken"
        " from the next event instead",
        "log dwell with the click or the return only",
    ),
    "no-user": QUERY["no-user"]._replace(
        problem="events of nobody: neither they nor their page or session name a user"
    ),
}
"""Rules of the events."""
