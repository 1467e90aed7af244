"""Definitions of metrics of user behavior, each a ratio of two sums over rows, and the parsing of their names."""

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
from judged.results.spelling import use_one_of

Row: TypeAlias = Literal["page", "query", "click", "session", "user", "purchase", "rating"]
Kind: TypeAlias = Literal["ratio", "total", "quantile", "survival", "survival mean", "survival quantile"]
Unit: TypeAlias = Literal["share", "count", "seconds", "rank", "reciprocal rank", "money", "rating"]
# A parameter q changes the aggregation from a ratio or mean to a quantile of the same rows.
_QUANTILE: dict[Kind, Kind] = {"ratio": "quantile", "survival mean": "survival quantile"}


@dataclass(frozen=True)
class OnlineMetric:
    """Definition of a metric.

    Its value is ``sum(numerator) / sum(denominator)`` over the rows (kind ``ratio``), the sum of the numerator
    (``total``), a quantile of the numerator over rows whose denominator is not 0 (``quantile``), or a share, a mean up
    to a time, or a quantile of the Kaplan-Meier curve (``survival``, ``survival mean``, ``survival quantile``).

    Parameters
    ----------
    name
        Name without parameters.
    title
        Short description.
    row
        Row type: result page, first page of a query, opened result, session, user, purchase, or rating.
    numerator, denominator
        Columns of the facts (`judged.online.facts`), with parameters in braces: ``clicked_to_{k}``.
    unit
        Unit of the value.
    better
        1: higher is better, -1: lower is better, 0: it depends.
    formula
        Formula in words.
    window
        Time window of a row.
    attribution
        Rule that attributes events to a page.
    source
        Publication.
    misleads
        Conditions under which it misleads.
    parameters
        Names and default values; ``k`` is the cutoff, written behind an ``@``.
    needs
        Required data: of `InteractionLog.has`.
    biased
        Whether the value depends on rank, so that it must be read together with CTR by rank.
    kind
        Aggregation, see above.
    changed
        Parameters that were set explicitly, which are part of the name.

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

    def required_data(self) -> tuple[str, ...]:
        """Return the data that the log must contain for this metric with its parameters."""
        return self.needs if self.parameters.get("k") is None else (*self.needs, "ranks")

    def columns(self) -> tuple[str, str]:
        """Return the numerator and denominator columns with parameters; a cutoff k selects those of ranks 1 to k."""
        values = {name: format_parameter(value) for name, value in self.parameters.items()}
        suffix = "" if self.parameters.get("k") is None else f"_to_{values['k']}"
        return self.numerator.format(**values) + suffix, self.denominator.format(**values) + suffix

    def with_parameters(self, **values: float) -> OnlineMetric:
        """Return a copy with other parameters."""
        kind = _QUANTILE.get(self.kind, self.kind) if "q" in values else self.kind
        changed = tuple(dict.fromkeys((*self.changed, *values)))
        return replace(self, parameters={**self.parameters, **values}, changed=changed, kind=kind)

    def __str__(self) -> str:
        explicit = ",".join(f"{name}={format_parameter(self.parameters[name])}" for name in self.changed if name != "k")
        cutoff = self.parameters.get("k")
        suffix = "" if cutoff is None else f"@{format_parameter(cutoff)}"
        return f"{self.name}{f'({explicit})' if explicit else ''}{suffix}"

    def __hash__(self) -> int:
        return hash(str(self))


def format_parameter(value: float | None) -> str:
    """Format a parameter; integers have no decimals.

    >>> format_parameter(30.0), format_parameter(0.95), format_parameter(None)
    ('30', '0.95', 'all')
    """
    if value is None:
        return "all"
    return str(int(value)) if float(value).is_integer() else repr(float(value))


_DEFINITIONS = tomllib.loads((resources.files("judged.online") / "metrics.toml").read_text(encoding="utf-8"))
SYNONYM_ROWS: tuple[tuple[str, str, str], ...] = tuple(map(tuple, _DEFINITIONS.pop("synonyms")))
"""Synonyms (comma-separated), the metric, and a note on another metric with the same name."""

_NEEDS: dict[str, dict[str, str]] = _DEFINITIONS.pop("needs")
CAPABILITIES = {need: words["supports"] for need, words in _NEEDS.items() if "supports" in words}
"""Kinds of data in a log (of `InteractionLog.has`), and the metrics that need them."""


def _metric(name: str, definition: dict[str, Any], shared_texts: Mapping[str, str]) -> OnlineMetric:
    texts = {key: Template(text).substitute(shared_texts) for key, text in definition.items() if isinstance(text, str)}
    numerator, denominator = definition.pop("ratio")
    parameters = definition.pop("parameters", {}) | dict.fromkeys(definition.pop("optional", ()))
    columns = {"numerator": numerator, "denominator": denominator, "parameters": parameters}
    fields: dict[str, Any] = {**definition, **texts, **columns, "needs": tuple(definition["needs"])}
    return OnlineMetric(name, **fields)


def _families(shared_texts: dict[str, str]) -> dict[str, tuple[OnlineMetric, ...]]:
    # A shared text may contain another shared text.
    shared_texts = {key: Template(text).safe_substitute(shared_texts) for key, text in shared_texts.items()}
    return {
        family: tuple(_metric(name, definition, shared_texts) for name, definition in members.items())
        for family, members in _DEFINITIONS.items()
    }


FAMILIES = _families(_DEFINITIONS.pop("shared"))
"""Metrics by family, in display order."""

ONLINE_METRICS: dict[str, OnlineMetric] = {metric.name: metric for family in FAMILIES.values() for metric in family}
"""Metrics with default parameters, by name."""

DEFAULT_NAMES = (
    *(name for name in ONLINE_METRICS if name not in {"CTRAtRank", "LastClickAtRank"}),
    *("ImpressionCTR@3", "ImpressionCTR@10", "PageCTR@1", "PageCTR@3"),
    *("LastClickAtRank(r=1)", "LastClickAtRank(r=2)", "LastClickAtRank(r=3)"),
    *("TimeToFirstClick(q=0.5)", "DwellTime(q=0.5)", "Latency(q=0.5)", "Latency(q=0.95)"),
)
"""Metrics that are computed by default: all metrics, and common cutoffs and quantiles."""


def normalize_name(name: str) -> str:
    """Normalize a name: lower case, without blanks, hyphens, and underscores.

    >>> normalize_name("Click-Through Rate"), normalize_name("add_to_cart")
    ('clickthroughrate', 'addtocart')
    """
    return re.sub(r"[\s_-]", "", name).lower()


SYNONYMS: Mapping[str, tuple[str, str]] = {
    normalize_name(name): (metric, note) for names, metric, note in SYNONYM_ROWS for name in names.split(", ")
}
"""Metric, and note on another metric with the same name, by normalized synonym."""


def synonyms_of(metric: str) -> tuple[str, ...]:
    """Return the synonyms of a metric.

    >>> synonyms_of("PageCTR")[:2]
    ('CTR', 'click-through rate')
    """
    return tuple(name for names, target, _ in SYNONYM_ROWS if target == metric for name in names.split(", "))


# NAME, optionally with (PARAMETERS) and @CUTOFF
_NAME = re.compile(r"\s*(?P<name>[A-Za-z][\w -]*?)\s*(?:\((?P<parameters>[^()]*)\))?\s*(?:@\s*(?P<k>\d{1,4}))?\s*")
_KEYS = {normalize_name(name): name for name in ONLINE_METRICS}


def online_metric(name: str | OnlineMetric) -> OnlineMetric:
    """Parse the name of a metric: ``PageCTR``, ``ImpressionCTR@5``, ``SatisfiedClicks(t=20)``, ``Latency(q=0.95)``.

    Synonyms (``CTR``, ``zero result rate``) are accepted. A metric is returned unchanged.

    Raises
    ------
    MeasureError
        If the metric or parameter is unknown; the message suggests similar names.

    Examples
    --------
    >>> str(online_metric("satisfiedclicks( t = 20 )"))
    'SatisfiedClicks(t=20)'
    >>> str(online_metric("CTR@3")), str(online_metric("median dwell time"))
    ('PageCTR@3', 'DwellTime(q=0.5)')
    >>> online_metric("Latenzy")
    Traceback (most recent call last):
    judged.errors.MeasureError: unknown online metric 'Latenzy'. Fix: did you mean Latency?
    """
    if isinstance(name, OnlineMetric):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MeasureError(
            f"the name of an online metric must be a string, got {name!r:.60}. Fix: use a name such as 'PageCTR'"
        )
    match = _NAME.fullmatch(name)
    metric = _find_metric(match["name"]) if match else None
    if match is None or metric is None:
        suggestion = _similar_names(match["name"] if match else name)
        raise MeasureError(f"unknown online metric {name!r:.60}. Fix: {suggestion}")
    parameters = dict(_parse_parameter(text, metric) for text in (match["parameters"] or "").split(",") if text.strip())
    if match["k"] is not None:
        parameters["k"] = float(match["k"])
    unknown = [key for key in parameters if key not in metric.parameters]
    if unknown:
        possible = ", ".join("@k" if key == "k" else key for key in metric.parameters) or "none"
        raise MeasureError(f"{metric.name} has no parameter {unknown[0]!r}. Fix: use one of its parameters: {possible}")
    return _check_parameters(metric.with_parameters(**parameters)) if parameters else metric


def _find_metric(name: str) -> OnlineMetric | None:
    key = normalize_name(name)
    if key in _KEYS:
        return ONLINE_METRICS[_KEYS[key]]
    return online_metric(SYNONYMS[key][0]) if key in SYNONYMS else find("online_metrics", name)


def resolved_synonyms(names: Iterable[str | OnlineMetric]) -> tuple[tuple[str, str], ...]:
    """Return for each synonym in `names` the metric, with a note on other metrics of that name.

    >>> resolved_synonyms(["CTR", "PageCTR", "abandonment rate"])
    (('CTR', 'PageCTR (for shown results, use ImpressionCTR)'),
     ('abandonment rate', 'Abandonment (to exclude pages that may have given the answer, use BadAbandonment)'))
    """
    resolved = dict[str, str]()
    for name in names:
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is not None and (key := normalize_name(match["name"])) in SYNONYMS:
            resolved[match[0].strip()] = f"{online_metric(name)} ({SYNONYMS[key][1]})".removesuffix(" ()")
    return tuple(resolved.items())


def online_metrics_named(names: Iterable[str | OnlineMetric]) -> tuple[OnlineMetric, ...]:
    """Parse several names and remove duplicates.

    >>> [str(metric) for metric in online_metrics_named(["PageCTR", "PageCTR@1", "pagectr"])]
    ['PageCTR', 'PageCTR@1']
    """
    return tuple({str(metric): metric for metric in map(online_metric, names)}.values())


def default_metrics() -> tuple[OnlineMetric, ...]:
    """Return the metrics of `DEFAULT_NAMES` in the order of the registry, variants after their metric."""
    order = {name: i for i, name in enumerate(ONLINE_METRICS)}
    return tuple(sorted(online_metrics_named(DEFAULT_NAMES), key=lambda metric: order[metric.name]))


def lacking_data(metric: OnlineMetric, has: frozenset[str]) -> str:
    """Describe the data that a log misses for a metric; empty if it has all.

    >>> lacking_data(online_metric("HoverRate"), frozenset({"clicks"}))
    'the log has no hovers'
    """
    return next((_NEEDS[need]["missing"] for need in metric.required_data() if need not in has), "")


def _parse_parameter(text: str, metric: OnlineMetric) -> tuple[str, float]:
    key, _, value = (side.strip() for side in text.partition("="))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise MeasureError(
            f"{metric.name}: invalid parameter {text.strip()!r}. Fix: write the parameter as in SatisfiedClicks(t=30)"
        )
    return key, number


_PARAMETER_RULES: dict[str, tuple[Callable[[float], bool], str]] = {
    "r": (lambda r: r >= 1 and r.is_integer(), "r must be a positive integer, got {:g}. Fix: use a rank, as in r=1"),
    "k": (lambda k: k >= 1, "the cutoff must be 1 or more, got {:g}. Fix: use a cutoff such as @10"),
    "t": (lambda t: t >= 0, "t must be 0 or more, got {:g}. Fix: use a number of seconds"),
    "look": (lambda look: look >= 0, "look must be 0 or more, got {:g}. Fix: use a number of seconds"),
    "d": (lambda d: 0 < d <= 3650, "d must be above 0 and at most 3650, got {:g}. Fix: use a number of days"),
    "q": (lambda q: 0 < q < 1, "q must be between 0 and 1, got {:g}. Fix: use a quantile such as q=0.95"),
}


def _check_parameters(metric: OnlineMetric) -> OnlineMetric:
    for name, (is_valid, problem) in _PARAMETER_RULES.items():
        value = metric.parameters.get(name)
        if value is not None and not is_valid(float(value)):
            raise MeasureError(f"{metric.name}: {problem.format(value)}")
    if metric.kind == "survival mean" and not metric.parameters["t"]:
        raise MeasureError(f"{metric.name}: t must be above 0, got 0. Fix: set t to a maximum dwell time in seconds")
    return metric


def _similar_names(name: str) -> str:
    for names_by_key in (_KEYS, {key: metric for key, (metric, _) in SYNONYMS.items()}):
        if keys := difflib.get_close_matches(normalize_name(name), names_by_key, n=3, cutoff=0.5):
            return f"did you mean {' or '.join(dict.fromkeys(names_by_key[key] for key in keys))}?"
    return use_one_of(ONLINE_METRICS)
