"""All metrics of user behaviour, and how their names are read."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable

from judged.errors import MeasureError
from judged.online.metrics import abandonment, clicks, outcomes, visits
from judged.online.metrics.metric import OnlineMetric
from judged.online.metrics.names import MEANT, plain

FAMILIES: dict[str, tuple[OnlineMetric, ...]] = {
    "Clicks": clicks.METRICS,
    "Visits": visits.METRICS,
    "Abandonment and reformulation": abandonment.METRICS,
    "Outcomes": outcomes.METRICS,
}
"""The metrics by family, in the order in which they are shown."""

ONLINE_METRICS: dict[str, OnlineMetric] = {one.name: one for family in FAMILIES.values() for one in family}
"""Name to metric, with its default parameters."""

USUAL = (
    *(name for name in ONLINE_METRICS if name not in {"CTRAtRank", "LastClickAtRank"}),
    *("ImpressionCTR@3", "ImpressionCTR@10", "PageCTR@1", "PageCTR@3"),
    *("LastClickAtRank(r=1)", "LastClickAtRank(r=2)", "LastClickAtRank(r=3)"),
    *("TimeToFirstClick(q=0.5)", "DwellTime(q=0.5)", "Latency(q=0.5)", "Latency(q=0.95)"),
)
"""What is computed when nothing is asked for: every metric, and the cutoffs and quantiles that people look at."""

_NAME = re.compile(r"\s*(?P<name>[A-Za-z][\w -]*?)\s*(?:\((?P<inside>[^()]*)\))?\s*(?:@\s*(?P<k>\d{1,4}))?\s*")
_KEYS = {plain(name): name for name in ONLINE_METRICS}


def online_metric(name: str | OnlineMetric) -> OnlineMetric:
    """Read the name of a metric: ``PageCTR``, ``ImpressionCTR@5``, ``SatisfiedClicks(t=20)``, ``Latency(q=0.95)``.

    What a metric is called elsewhere (``CTR``, ``zero result rate``) is understood. A metric is given back as it is.

    Raises
    ------
    MeasureError
        If it is no name, there is no such metric, or it has no such parameter; the message names the nearest.

    Examples
    --------
    >>> str(online_metric("satisfiedclicks( t = 20 )"))
    'SatisfiedClicks(t=20)'
    >>> str(online_metric("CTR@3")), str(online_metric("median dwell time"))
    ('PageCTR@3', 'DwellTime(q=0.5)')
    >>> online_metric("Latenzy")
    Traceback (most recent call last):
    judged.errors.MeasureError: there is no online metric 'Latenzy'. Fix: did you mean Latency?
    """
    if isinstance(name, OnlineMetric):
        return name
    _need_name(name)
    match = _NAME.fullmatch(name)
    key = plain(match["name"]) if match else ""
    if match is None or (key not in _KEYS and key not in MEANT):
        raise MeasureError(f"there is no online metric {name!r:.60}. Fix: {_nearest(match['name'] if match else name)}")
    metric = ONLINE_METRICS[_KEYS[key]] if key in _KEYS else online_metric(MEANT[key][0])
    given = dict(_parameter(one, metric) for one in (match["inside"] or "").split(",") if one.strip())
    if match["k"] is not None:
        given["k"] = float(match["k"])
    unknown = [key for key in given if key not in metric.parameters]
    if unknown:
        possible = ", ".join("@k" if key == "k" else key for key in metric.parameters) or "none"
        raise MeasureError(f"{metric.name} has no parameter {unknown[0]!r}. Fix: it has {possible}")
    return _checked(metric.given(**given)) if given else metric


def understood(names: Iterable[str | OnlineMetric]) -> tuple[tuple[str, str], ...]:
    """Say of each name that is another one here which metric was meant, and what else is called so.

    >>> understood(["CTR", "PageCTR", "abandonment rate"])
    (('CTR', 'PageCTR; of shown results it is ImpressionCTR'),
     ('abandonment rate', 'Abandonment; in vain alone it is BadAbandonment'))
    """
    said = dict[str, str]()
    for name in names:
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is not None and (key := plain(match["name"])) in MEANT:
            said[match[0].strip()] = "; ".join(filter(None, (str(online_metric(name)), MEANT[key][1])))
    return tuple(said.items())


def online_metrics_named(names: Iterable[str | OnlineMetric]) -> tuple[OnlineMetric, ...]:
    """Read several names, each once.

    >>> [str(one) for one in online_metrics_named(["PageCTR", "PageCTR@1", "pagectr"])]
    ['PageCTR', 'PageCTR@1']
    """
    return tuple({str(one): one for one in map(online_metric, names)}.values())


def usual_metrics() -> tuple[OnlineMetric, ...]:
    """Give the metrics of `USUAL` in the order of the registry, variants behind their metric."""
    order = {name: at for at, name in enumerate(ONLINE_METRICS)}
    return tuple(sorted(online_metrics_named(USUAL), key=lambda one: order[one.name]))


def missing(metric: OnlineMetric, has: frozenset[str]) -> str:
    """Say what a log lacks for a metric, in words; empty where nothing.

    >>> missing(online_metric("HoverRate"), frozenset({"clicks"}))
    'the log holds no hovers'
    """
    return next((_LACKING[need] for need in metric.needed() if need not in has), "")


_LACKING = {
    "shown": "the log does not say which results were on a page",
    "clicks": "the log holds no click that names its page",
    "unclicked": "every page of the log has a click: those that were left without one did not come into it",
    "ranks": "the log does not say at which rank what was clicked stood",
    "clock": "the log has no clock",
    "dwell": "the log cannot tell how long visits lasted: it has no clock, or nothing follows a click",
    "hovers": "the log holds no hovers",
    "queries": "the log holds no texts of queries",
    "zero_results": "the log does not say how many results were found, or pages without any do not come into it",
    "rescues": "the log does not say where a changed query was answered",
    "carts": "the log holds no carts",
    "purchases": "the log holds no purchases",
    "values": "the log holds no money",
    "latency": "the log does not say how long the engine took",
    "users": "the log does not say who asked, or not of most pages",
    "sessions": "the log has no sessions",
    "next_pages": "no session of the log has a second page",
    "reading": "the log holds no copies, hovers or scrolling: nothing tells a page that answered by itself",
    "second_pages": "no page of the log is behind the first one of its list",
    "filters": "no page of the log has a filter",
    "suggestions": "the log does not say which queries were suggestions",
    "thumbs": "the log holds no thumbs, up or down",
    "ratings": "the log holds no ratings",
    "dates": "the log has no dates",
}


def _need_name(name: object) -> None:
    if not isinstance(name, str):
        raise MeasureError(f"{name!r:.60} names no online metric. Fix: give a name such as 'PageCTR'")


def _parameter(text: str, metric: OnlineMetric) -> tuple[str, float]:
    key, _, value = (part.strip() for part in text.partition("="))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise MeasureError(
            f"{metric.name}: {text.strip()!r} is no parameter. Fix: write it as in SatisfiedClicks(t=30)"
        )
    return key, number


def _checked(metric: OnlineMetric) -> OnlineMetric:
    """Refuse values that make no sense."""
    values = metric.parameters
    k, t, q, r, d, look = (values.get(name) for name in ("k", "t", "q", "r", "d", "look"))
    if r is not None and not (r >= 1 and float(r).is_integer()):
        raise MeasureError(f"{metric.name}: a rank is a whole number from 1, not {r:g}. Fix: give one such as r=1")
    if k is not None and k < 1:
        raise MeasureError(f"{metric.name}: a cutoff is 1 or more, not {k:g}. Fix: give one such as @10")
    if t is not None and t < 0:
        raise MeasureError(f"{metric.name}: t is {t:g}. Fix: give seconds, 0 or more")
    if look is not None and look < 0:
        raise MeasureError(f"{metric.name}: look is {look:g}. Fix: give seconds, 0 or more")
    if d is not None and not 0 < d <= 3650:
        raise MeasureError(f"{metric.name}: d is {d:g}. Fix: give days, above 0 and at most 3650")
    if metric.kind == "survival mean" and not t:
        raise MeasureError(f"{metric.name}: t is {t:g}. Fix: give seconds above 0, up to which the mean is taken")
    if q is not None and not 0 < q < 1:
        raise MeasureError(f"{metric.name}: q is {q:g}. Fix: give a quantile between 0 and 1, such as q=0.95")
    return metric


def _nearest(name: str) -> str:
    for known in (_KEYS, {key: metric for key, (metric, _) in MEANT.items()}):
        if near := difflib.get_close_matches(plain(name), known, n=3, cutoff=0.5):
            return f"did you mean {' or '.join(dict.fromkeys(known[one] for one in near))}?"
    return f"there are {', '.join(ONLINE_METRICS)}"
