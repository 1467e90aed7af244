"""What metrics are called elsewhere: names that people type, and the metric that is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES: tuple[tuple[str, str, str], ...] = (
    ("CTR, click-through rate, click rate, search CTR", "PageCTR", "of shown results it is ImpressionCTR"),
    ("result CTR, item CTR", "ImpressionCTR", ""),
    ("MRR, mean reciprocal rank", "TopmostClickRR", "of the first click in time FirstClickRR, over all clicks MeanRR"),
    ("max reciprocal rank", "TopmostClickRR", ""),
    ("average click position, mean click position, average click rank, ACP", "MeanClickRank", ""),
    ("pSkip", "SkipRate", ""),
    ("time to click", "TimeToFirstClick", ""),
    ("session click rate", "SessionCTR", ""),
    ("satisfied click rate, SAT click rate, SAT clicks, long click rate", "SatisfiedClicks", ""),
    ("pogo-sticking rate, quick back rate, short click rate", "DissatisfiedClicks", ""),
    ("mean dwell time, average dwell time", "DwellTime", ""),
    ("median dwell time", "DwellTime(q=0.5)", ""),
    ("abandonment rate, no-click rate", "Abandonment", "in vain alone it is BadAbandonment"),
    ("bad abandonment rate", "BadAbandonment", ""),
    ("good abandonment rate", "GoodAbandonment", ""),
    ("search exit rate, exits", "ExitRate", ""),
    ("pagination rate, next page rate", "SecondPageRate", ""),
    ("reformulation rate, refinement rate, query reformulation rate", "Reformulation", ""),
    (
        "zero result rate, zero results rate, no result rate, no results rate, null search rate, ZRR",
        "ZeroResults",
        "with repeats of a query counted once it is ZeroResultQueries",
    ),
    ("add to cart rate, ATC rate, ATCR, cart rate", "AddToCart", "of clicks it is CartsPerClick"),
    ("conversion rate, CVR, purchase rate", "Conversion", ""),
    ("RPS", "RevenuePerSearch", ""),
    ("average order value, AOV", "OrderValue", ""),
    ("ARPU, average revenue per user", "RevenuePerUser", ""),
    ("total revenue, GMV, sales", "Revenue", ""),
    ("success rate, session success rate", "SessionSuccess", ""),
    ("searches per session", "QueriesPerSession", ""),
    ("retention, retention rate, repeat user rate", "ReturnRate", ""),
    ("thumbs up rate, positive feedback rate", "PositiveFeedback", ""),
    ("average rating", "MeanRating", ""),
    ("filter usage, filter rate, facet use, facet usage", "FilterUse", ""),
    ("suggestion usage, suggestion rate, autocomplete use, autocomplete usage", "SuggestionUse", ""),
    ("response time, query time, mean latency", "Latency", ""),
    ("median latency, p50 latency", "Latency(q=0.5)", ""),
    ("p95 latency", "Latency(q=0.95)", ""),
    ("p99 latency", "Latency(q=0.99)", ""),
)
"""Names, the metric, and what another metric of that name is called here."""


def plain(name: str) -> str:
    """Give a name without what people write differently: case, blanks, hyphens, underscores.

    >>> plain("Click-Through Rate"), plain("add_to_cart")
    ('clickthroughrate', 'addtocart')
    """
    return re.sub(r"[\s_-]", "", name).lower()


MEANT: Mapping[str, tuple[str, str]] = {
    plain(name): (metric, other) for names, metric, other in NAMES for name in names.split(", ")
}
"""The metric that is meant, and what another one of that name is called, by the plain name."""


def called(metric: str) -> tuple[str, ...]:
    """Name what people call a metric.

    >>> called("PageCTR")[:2]
    ('CTR', 'click-through rate')
    """
    return tuple(name for names, meant, _ in NAMES if meant == metric for name in names.split(", "))
