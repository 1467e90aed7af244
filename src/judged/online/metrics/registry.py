"""All metrics of user behaviour, and how their names are read."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from string import Template
from typing import Any

from judged.errors import MeasureError
from judged.online.metrics.metric import OnlineMetric

_FILE = tomllib.loads((resources.files("judged.online.metrics") / "metrics.toml").read_text(encoding="utf-8"))
NAMES: tuple[tuple[str, str, str], ...] = tuple(map(tuple, _FILE.pop("called")))
"""Names that people type, the metric, and what another metric of that name is called here."""

_NEEDS: dict[str, dict[str, str]] = _FILE.pop("needs")
TELLS = {need: words["tells"] for need, words in _NEEDS.items() if "tells" in words}
"""What a log can tell, and what for: of `InteractionLog.has`."""


def _metric(name: str, given: dict[str, Any], said: Mapping[str, str]) -> OnlineMetric:
    """Make a metric of its table: sentences that several share stand there by name."""
    texts = {key: Template(text).substitute(said) for key, text in given.items() if isinstance(text, str)}
    numerator, denominator = given.pop("ratio")
    parameters = given.pop("parameters", {}) | dict.fromkeys(given.pop("optional", ()))
    columns = {"numerator": numerator, "denominator": denominator, "parameters": parameters}
    fields: dict[str, Any] = {**given, **texts, **columns, "needs": tuple(given["needs"])}
    return OnlineMetric(name, **fields)


def _families(said: dict[str, str]) -> dict[str, tuple[OnlineMetric, ...]]:
    said = {key: Template(text).safe_substitute(said) for key, text in said.items()}
    return {
        family: tuple(_metric(name, given, said) for name, given in members.items())
        for family, members in _FILE.items()
    }


FAMILIES = _families(_FILE.pop("said"))
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
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MeasureError(f"{name!r:.60} names no online metric. Fix: give a name such as 'PageCTR'")
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
    return next((_NEEDS[need]["lacking"] for need in metric.needed() if need not in has), "")


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


_SENSIBLE: dict[str, tuple[Callable[[float], bool], str]] = {
    "r": (lambda r: r >= 1 and r.is_integer(), "a rank is a whole number from 1, not {:g}. Fix: give one such as r=1"),
    "k": (lambda k: k >= 1, "a cutoff is 1 or more, not {:g}. Fix: give one such as @10"),
    "t": (lambda t: t >= 0, "t is {:g}. Fix: give seconds, 0 or more"),
    "look": (lambda look: look >= 0, "look is {:g}. Fix: give seconds, 0 or more"),
    "d": (lambda d: 0 < d <= 3650, "d is {:g}. Fix: give days, above 0 and at most 3650"),
    "q": (lambda q: 0 < q < 1, "q is {:g}. Fix: give a quantile between 0 and 1, such as q=0.95"),
}


def _checked(metric: OnlineMetric) -> OnlineMetric:
    """Refuse values that make no sense."""
    for name, (is_sensible, problem) in _SENSIBLE.items():
        value = metric.parameters.get(name)
        if value is not None and not is_sensible(float(value)):
            raise MeasureError(f"{metric.name}: {problem.format(value)}")
    if metric.kind == "survival mean" and not metric.parameters["t"]:
        raise MeasureError(f"{metric.name}: t is 0. Fix: give seconds above 0, up to which the mean is taken")
    return metric


def _nearest(name: str) -> str:
    for known in (_KEYS, {key: metric for key, (metric, _) in MEANT.items()}):
        if near := difflib.get_close_matches(plain(name), known, n=3, cutoff=0.5):
            return f"did you mean {' or '.join(dict.fromkeys(known[one] for one in near))}?"
    return f"there are {', '.join(ONLINE_METRICS)}"
