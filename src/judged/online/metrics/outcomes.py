"""Metrics of what came of it: empty pages, sales, sessions, waiting."""

from __future__ import annotations

from judged.online.metrics.metric import OnlineMetric
from judged.online.metrics.words import OWN, PAGE, SATISFIED, SESSION

_SALE = "names the page, or else falls to the last page of the session (policy: attribution)"
_RETURNED = "Where only the ids sent are logged, nothing sent counts as nothing found."
_KOHAVI = "Kohavi, Deng, Frasca, Longbotham, Walker and Xu, Trustworthy online controlled experiments (KDD 2012)"
_SUCCESS = (
    "A session that ends with a click succeeds, however large t is: read it beside ObservedVisits. Pages that answer "
    "by themselves are missed."
)


def _empty(name: str, title: str, stem: str, formula: str, row: str = "page") -> OnlineMetric:
    return OnlineMetric(
        name,
        title,
        "query" if row == "query" else "page",
        stem,
        f"{stem}_known",
        "share",
        -1,
        formula,
        PAGE,
        OWN,
        "Wikimedia Foundation, Zero results rate (definitions of its search analysts, 2015)",
        f"{_RETURNED} Requests for facets alone must not be counted: see the log's findings.",
        needs=("zero_results",),
    )


def _rate(name: str, title: str, numerator: str, denominator: str, formula: str, need: str) -> OnlineMetric:
    return OnlineMetric(
        name,
        title,
        "click" if denominator == "click_events" else "page",
        numerator,
        denominator,
        "share" if denominator == "page" else "count",
        1,
        formula,
        PAGE,
        _SALE,
        "the usual rate of shops",
        "Attribution decides it: users search, leave, and buy another day.",
        needs=(need, "clicks") if denominator == "click_events" else (need,),
    )


METRICS = (
    _empty("ZeroResults", "Pages without results", "zero", "unfiltered first pages with nothing found / those known"),
    _empty(
        "ZeroResultQueries",
        "Queries without results",
        "zero_asked",
        "as ZeroResults, consecutive repeats of a query counted once; a repeat with a filter is none",
        "query",
    ),
    _empty(
        "FilteredZeroResults",
        "Filtered pages without results",
        "zero_filtered",
        "filtered first pages with nothing found / those known",
    ),
    OnlineMetric(
        "RescuedZeroResults",
        "Empty queries that were rescued",
        "page",
        "rescued",
        "zero_or_rescued",
        "share",
        1,
        "first pages that show the results of a changed query / first pages whose typed query found nothing",
        PAGE,
        OWN,
        "Wikimedia Foundation (as ZeroResults)",
        "Any rescue counts, a bad one too.",
        needs=("rescues",),
    ),
    _rate("AddToCart", "Pages with a cart", "cart", "page", "pages that led to a cart / pages", "carts"),
    _rate("CartsPerClick", "Carts a click", "carts", "click_events", "carts / clicks", "carts"),
    _rate(
        "Conversion", "Pages with a purchase", "purchased", "page", "pages that led to a purchase / pages", "purchases"
    ),
    OnlineMetric(
        "RevenuePerSearch",
        "Money a page",
        "page",
        "money",
        "page",
        "money",
        1,
        "money that came of pages, winsorised / pages",
        PAGE,
        _SALE,
        _KOHAVI,
        "A few large orders carry it: that is why it is winsorised (policy: money).",
        needs=("values",),
    ),
    OnlineMetric(
        "SessionSuccess",
        "Sessions that succeeded",
        "session",
        "succeeded_{t}",
        "session",
        "share",
        1,
        f"sessions with a satisfied click, a cart or a purchase / sessions; {SATISFIED}",
        SESSION,
        _SALE,
        "Hassan, Jones and Klinkner, Beyond DCG: user behavior as a predictor of a successful search (WSDM 2010)",
        _SUCCESS,
        parameters={"t": 30.0},
        needs=("sessions", "clicks", "unclicked", "dwell"),
    ),
    OnlineMetric(
        "QueriesPerSuccess",
        "Queries until a success",
        "session",
        "queries_to_success_{t}",
        "succeeded_{t}",
        "count",
        -1,
        f"queries up to the first success (satisfied click, cart, purchase) / sessions that succeeded; {SATISFIED}",
        SESSION,
        _SALE,
        _KOHAVI,
        "Sessions that fail are not in it: read it beside SessionSuccess. By slice, a query whose repeats stand in "
        "several slices counts in one of them or two, by their order.",
        parameters={"t": 30.0},
        needs=("sessions", "clicks", "dwell", "queries"),
    ),
    OnlineMetric(
        "TimeToSuccess",
        "Time to a success",
        "session",
        "time_to_success_{t}",
        "succeeded_{t}",
        "seconds",
        -1,
        "seconds from the first page of a session to its first success (satisfied click, cart, purchase) / sessions "
        f"that succeeded; {SATISFIED}",
        SESSION,
        _SALE,
        "Xu and Mease, Evaluating web search using task completion time (SIGIR 2009)",
        "Sessions that fail are not in it: read it beside SessionSuccess.",
        parameters={"t": 30.0},
        needs=("sessions", "clicks", "dwell"),
    ),
    OnlineMetric(
        "QueriesPerSession",
        "Queries a session",
        "session",
        "queries",
        "session",
        "count",
        0,
        "queries, consecutive repeats counted once / sessions",
        SESSION,
        OWN,
        _KOHAVI,
        "It rises when results get worse: users must ask again.",
        needs=("sessions", "queries"),
    ),
    OnlineMetric(
        "SessionsPerUser",
        "Sessions a user",
        "user",
        "session",
        "user",
        "count",
        1,
        "sessions / users",
        "the whole log",
        OWN,
        _KOHAVI,
        "It moves slowly, and grows with the time that the log spans.",
        needs=("users",),
    ),
    OnlineMetric(
        "Latency",
        "Time until the engine answered",
        "page",
        "latency_s",
        "latency_known",
        "seconds",
        -1,
        "sum of seconds / pages that log them; with q: the quantile",
        PAGE,
        OWN,
        "Arapakis, Bai and Cambazoglu, Impact of response latency on user behavior in web search (SIGIR 2014)",
        "The mean hides the slow tail: see Latency(q=0.95).",
        parameters={"q": None},
        needs=("latency",),
    ),
)
"""The metrics of this file."""
