"""Metrics of user behavior, each a ratio of two sums over rows, written down as data; and how their names are read."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from string import Template
from typing import Any, Literal, TypeAlias

from judged.components import find
from judged.errors import MeasureError

Row: TypeAlias = Literal["page", "query", "click", "session", "user", "purchase", "rating"]
Kind: TypeAlias = Literal["ratio", "total", "quantile", "survival", "survival mean", "survival quantile"]
Unit: TypeAlias = Literal["share", "count", "seconds", "rank", "reciprocal rank", "money", "rating"]
_QUANTILE: dict[Kind, Kind] = {"ratio": "quantile", "survival mean": "survival quantile"}


@dataclass(frozen=True)
class OnlineMetric:
    """A metric: what is counted, of what, over which rows, and when it misleads.

    Its value is ``sum(numerator) / sum(denominator)`` over the rows (kind ``ratio``), the sum of the numerator
    (``total``), a quantile of the numerator over rows whose denominator is not 0 (``quantile``), or a share, a mean up
    to a time, or a quantile of the Kaplan-Meier curve (``survival``, ``survival mean``, ``survival quantile``).

    Parameters
    ----------
    name
        Its name, without parameters.
    title
        What it is, in a few words.
    row
        What a row is: a page of results, the first page of a query, an opened result, a session, a user, a purchase, a
        rating.
    numerator, denominator
        Columns of the facts (`judged.online.facts`), with parameters in braces: ``clicked_to_{k}``.
    unit
        Of the value.
    better
        1: more is better, -1: less is, 0: it depends.
    formula
        The formula in words.
    window
        What time a row looks at.
    attribution
        What counts as belonging to a page.
    source
        Where it is from.
    misleads
        When it misleads.
    parameters
        Names and default values; ``k`` is the cutoff, written behind an ``@``.
    needs
        What the log must tell: of `InteractionLog.has`.
    biased
        Clicks depend on rank: the value must not be read as quality without CTR by rank beside it.
    kind
        As above.
    changed
        The parameters that were given: they stand in the name.

    Examples
    --------
    >>> from judged.online import online_metric
    >>> str(online_metric("ImpressionCTR@5")), online_metric("SatisfiedClicks(t=20)").parameters["t"]
    ('ImpressionCTR@5', 20.0)
    """

    name: str
    title: str
    row: Row
    numerator: str
    denominator: str
    unit: Unit
    better: Literal[-1, 0, 1]
    formula: str
    window: str
    attribution: str
    source: str
    misleads: str
    parameters: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    needs: tuple[str, ...] = ()
    biased: bool = False
    kind: Kind = "ratio"
    changed: tuple[str, ...] = ()

    def needed(self) -> tuple[str, ...]:
        """Name what the log must tell, with these parameters: of `InteractionLog.has`."""
        return self.needs if self.parameters.get("k") is None else (*self.needs, "ranks")

    def columns(self) -> tuple[str, str]:
        """Name the two columns, parameters filled in; a cutoff counts what is at ranks 1 to k."""
        values = {name: written(value) for name, value in self.parameters.items()}
        behind = "" if self.parameters.get("k") is None else f"_to_{values['k']}"
        return self.numerator.format(**values) + behind, self.denominator.format(**values) + behind

    def given(self, **values: float) -> OnlineMetric:
        """Give the same metric with other parameters."""
        kind = _QUANTILE.get(self.kind, self.kind) if "q" in values else self.kind
        changed = tuple(dict.fromkeys((*self.changed, *values)))
        return replace(self, parameters={**self.parameters, **values}, changed=changed, kind=kind)

    def __str__(self) -> str:
        inside = ",".join(f"{name}={written(self.parameters[name])}" for name in self.changed if name != "k")
        cutoff = self.parameters.get("k")
        return f"{self.name}{f'({inside})' if inside else ''}{'' if cutoff is None else f'@{written(cutoff)}'}"

    def __hash__(self) -> int:
        return hash(str(self))


def written(value: float | None) -> str:
    """Write a parameter: whole numbers whole.

    >>> written(30.0), written(0.95), written(None)
    ('30', '0.95', 'all')
    """
    if value is None:
        return "all"
    return str(int(value)) if float(value).is_integer() else repr(float(value))


_FILE = tomllib.loads((resources.files("judged.online") / "metrics.toml").read_text(encoding="utf-8"))
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
    metric = _named(match["name"]) if match else None
    if match is None or metric is None:
        raise MeasureError(f"there is no online metric {name!r:.60}. Fix: {_nearest(match['name'] if match else name)}")
    given = dict(_parameter(one, metric) for one in (match["inside"] or "").split(",") if one.strip())
    if match["k"] is not None:
        given["k"] = float(match["k"])
    unknown = [key for key in given if key not in metric.parameters]
    if unknown:
        possible = ", ".join("@k" if key == "k" else key for key in metric.parameters) or "none"
        raise MeasureError(f"{metric.name} has no parameter {unknown[0]!r}. Fix: it has {possible}")
    return _checked(metric.given(**given)) if given else metric


def _named(name: str) -> OnlineMetric | None:
    key = plain(name)
    if key in _KEYS:
        return ONLINE_METRICS[_KEYS[key]]
    return online_metric(MEANT[key][0]) if key in MEANT else find("online_metrics", name)


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
