"""Metrics of pages that were left without a click, and of what was asked next."""

from __future__ import annotations

from judged.online.metrics.metric import OnlineMetric
from judged.online.metrics.words import ONCE, OWN, SATISFIED

_LI = "Li, Huffman and Tokuda, Good abandonment in mobile and PC internet search (SIGIR 2009)"
_HUANG = "Huang and Efthimiadis, Analyzing and evaluating query reformulation strategies in web search logs (CIKM 2009)"
_AFTER = "the page, and what follows in its session"
_SHARES = "Only the three shares together say something, and they differ between devices: slice by device."
_NEXT = "the next first page of the session, soon enough (policy: reformulation gap)"
_BY_SUCCESS = ("abandoned_bad", "abandoned_unknown")
_KINDS = {
    "spelling": "differs by a letter or two",
    "specialise": "adds words",
    "generalise": "drops words",
    "substitute": "changes some of the words",
}


def _abandonment(name: str, title: str, column: str, better: int, formula: str, *needs: str) -> OnlineMetric:
    """Make a metric of abandoned pages; `needs` is what it needs beside clicks and pages without any."""
    return OnlineMetric(
        name,
        title,
        "page",
        column,
        "page",
        "share",
        -1 if better < 0 else 0,
        f"{formula} / pages" + (f"; {SATISFIED}, t by policy" if column in _BY_SUCCESS else ""),
        _AFTER,
        ONCE,
        _LI,
        _SHARES,
        needs=("clicks", "unclicked", *needs),
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
    _abandonment(
        "Abandonment",
        "Pages left without a click",
        "abandoned",
        0,
        "pages on which nothing was opened, put into the cart or bought",
    ),
    _abandonment(
        "BadAbandonment",
        "Abandoned in vain",
        "abandoned_bad",
        -1,
        "abandoned pages, of whatever number, that were empty, reformulated, or (nothing copied) followed by no "
        "success in the session (satisfied click, cart, purchase)",
        "dwell",
    ),
    _abandonment(
        "GoodAbandonment",
        "Abandoned, perhaps answered",
        "abandoned_good",
        0,
        "abandoned pages, neither empty nor reformulated, from which something was copied",
        "dwell",
        "copies",
    ),
    _abandonment(
        "UnknownAbandonment", "Abandoned, not known why", "abandoned_unknown", 0, "the other abandoned pages", "dwell"
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
