"""Metrics of pages that were left without a click, and of what was asked next."""

from __future__ import annotations

from typing import Literal

from judged.online.metrics.metric import OnlineMetric
from judged.online.metrics.words import ONCE, OWN, SATISFIED

_LI = "Li, Huffman and Tokuda, Good abandonment in mobile and PC internet search (SIGIR 2009)"
_HUANG = "Huang and Efthimiadis, Analyzing and evaluating query reformulation strategies in web search logs (CIKM 2009)"
_AFTER = "the page, and what follows in its session"
_SHARES = "Only the three shares together say something, and they differ between devices: slice by device."
_NEXT = "the next first page of the session, soon enough (policy: reformulation gap)"
_READ = "read: something was copied, or the user still hovered over it or scrolled `look` seconds after it came"
_WILLIAMS = (
    "Williams, Kiseleva, Crook, Zitouni, Awadallah and Khabsa, Detecting good abandonment in mobile search (WWW 2016): "
    "attention to the page itself"
)
_KINDS = {
    "spelling": "differs by a letter or two",
    "specialise": "adds words",
    "generalise": "drops words",
    "substitute": "changes some of the words",
}


def _abandonment(name: str, title: str, column: str, better: Literal[-1, 0], formula: str) -> OnlineMetric:
    """Make one of the three shares of abandoned pages."""
    return OnlineMetric(
        name,
        title,
        "page",
        f"{column}_{{look}}",
        "page",
        "share",
        better,
        f"{formula} / pages; {_READ}",
        _AFTER,
        ONCE,
        f"{_LI}; {_WILLIAMS}",
        f"Being looked at is not answering: `look` is a choice, so compare several. {_SHARES}",
        parameters={"look": 30.0},
        needs=("clicks", "unclicked", "dwell", *(("reading",) if column == "abandoned_good" else ())),
    )


def _reformulation(kind: str, what: str) -> OnlineMetric:
    return OnlineMetric(
        f"{kind.capitalize()}Reformulation",
        f"Queries whose next wording {what}",
        "query",
        f"reformulated_{kind}",
        "asked",
        "share",
        -1 if kind == "spelling" else 0,
        f"queries followed by one that {what} / queries, consecutive repeats counted once",
        _NEXT,
        OWN,
        _HUANG,
        "Wording alone does not tell a failed query from a user who has learned something.",
        needs=("sessions", "next_pages", "queries"),
    )


METRICS = (
    OnlineMetric(
        "Abandonment",
        "Pages left without a click",
        "page",
        "abandoned",
        "page",
        "share",
        0,
        "pages on which nothing was opened, put into the cart or bought / pages",
        _AFTER,
        ONCE,
        _LI,
        "A page that answers by itself is left as one that fails: read it beside the three shares that it parts into.",
        needs=("clicks", "unclicked"),
    ),
    _abandonment(
        "BadAbandonment",
        "Abandoned in vain",
        "abandoned_bad",
        -1,
        "abandoned pages, of whatever number, that were empty, reformulated, or not read and followed by no success in "
        f"the session (satisfied click, cart, purchase; {SATISFIED}, t by policy)",
    ),
    _abandonment(
        "GoodAbandonment",
        "Abandoned, perhaps answered",
        "abandoned_good",
        0,
        "abandoned pages, neither empty nor reformulated, that were read",
    ),
    _abandonment(
        "UnknownAbandonment",
        "Abandoned, not known why",
        "abandoned_unknown",
        0,
        "the other abandoned pages",
    ),
    OnlineMetric(
        "ExitRate",
        "Pages after which nothing follows",
        "page",
        "exited",
        "page",
        "share",
        0,
        "pages on which nothing was opened, put into the cart, bought or copied, and after which no page was asked for "
        "and none of these was done in the session / pages",
        _AFTER,
        ONCE,
        "Google Analytics, Site search: % search exits",
        "Who leaves may have found the answer on the page: an exit is no failure. Where sessions are cut by a time "
        "without activity, so are exits.",
        needs=("sessions", "clicks", "unclicked"),
    ),
    OnlineMetric(
        "SecondPageRate",
        "Lists of which a further page was asked for",
        "page",
        "turned",
        "first_page",
        "share",
        0,
        "first pages behind which, before the query is asked again, a page of the same text and session with a higher "
        "number was asked for / first pages",
        "the session",
        OWN,
        "Jansen and Spink, How are we searching the World Wide Web? (Information Processing and Management 2006)",
        "Turning the page means that the first was not enough, and also that the list was worth going on. Where lists "
        "go on by scrolling, pages behind the first are logged without a decision of the user.",
        needs=("second_pages",),
    ),
    OnlineMetric(
        "Reformulation",
        "Queries that were worded anew",
        "query",
        "reformulated",
        "asked",
        "share",
        -1,
        "queries followed by a reformulation / queries, consecutive repeats counted once",
        _NEXT,
        OWN,
        _HUANG,
        "Exploring users reformulate while they succeed; a new topic is no reformulation, and wording cannot always "
        "tell one from the other.",
        needs=("sessions", "next_pages", "queries"),
    ),
    *(_reformulation(kind, what) for kind, what in _KINDS.items()),
)
"""The metrics of this file."""
