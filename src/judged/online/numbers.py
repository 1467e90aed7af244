"""Estimates of metrics, and how numbers, and texts that come from a log, are written."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.results import NUMBER, Column, Show

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.metrics import OnlineMetric, Unit

Method: TypeAlias = Literal["delta", "bootstrap", "exact", "woodruff", "greenwood", "none"]


@dataclass(frozen=True)
class OnlineEstimate:
    """One metric on one slice.

    Parameters
    ----------
    metric
        The metric.
    slice
        Value of the slice; None: all rows.
    value
        The estimate; NaN where there is nothing to divide by.
    low, high
        The interval; NaN where there is none (one user, or nothing).
    error
        Standard error; NaN where there is none.
    numerator, denominator
        The two sums (for quantiles: rows at or below the value, and rows; for survival: NaN, and visits).
    units
        How many users (or other units) the interval is made over.
    method
        How the interval was made: ``delta``, ``bootstrap``, ``exact`` (shares that are 0 or 1 for all units:
        Clopper and Pearson over units), ``woodruff`` (quantiles), ``greenwood`` (survival, clustered), ``none``.
    rank
        The rank, for CTR by rank; else None.
    effective_units
        Effective number of units (Kish): as many units with equal denominators would have this weight; NaN where it is
        not known.
    """

    metric: OnlineMetric
    slice: str | None
    value: float
    low: float
    high: float
    error: float
    numerator: float
    denominator: float
    units: int
    method: Method
    rank: int | None = None
    effective_units: float = math.nan


ALL = "all"
"""Stands for all rows where slices stand beside them."""
_LEAST: dict[str, int] = {
    "share": 1, "count": 2, "seconds": 1, "rank": 2, "reciprocal rank": 3, "money": 2, "rating": 2,
}  # fmt: skip
_MORE = 3  # decimals beyond the least
_WORD, _SENTENCE, _PLACE = 60, 800, 120  # characters of what comes from a log


def in_unit(unit: Unit, decimals: int | None = None, sign: str = "") -> Show:
    """Write values of a unit with so many decimals, those of the percentage for a share; None: the least it has.

    With the sign ``+`` they are differences; of shares, in percentage points.

    >>> seconds = in_unit("seconds", 2)
    >>> in_unit("share").write(0.3811), seconds.write(41.25), seconds.limit(40.1), seconds.write(float("nan"))
    ('38.1%', '41.25 s', '40.10', '-')
    >>> in_unit("share", 1, "+").write(0.02)
    '+2.0 pp'
    """
    places = _LEAST[unit] if decimals is None else decimals
    after = {"share": " pp" if sign else "%", "seconds": " s"}.get(unit, "")
    ends = (after, "" if sign else after.strip(" s"))
    write, limit = (partial(_written, 100 if unit == "share" else 1, places, sign, end) for end in ends)
    return Show(write, "float64", limit, None if after else lambda digits: in_unit(unit, digits, sign))


def _written(times: int, decimals: int, sign: str, after: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    text = f"{times * value:{sign},.{decimals}f}"
    return (text if text.strip("+-0.,") else text.lstrip("+-")) + after  # no sign before a zero


def decimals_of(estimate: OnlineEstimate) -> int:
    """Say how many decimals an estimate deserves: as many as make two digits of half its interval.

    Without an interval it is as many as make three digits of the value, so that a rare event is not shown as 0.
    """
    times = 100.0 if estimate.metric.unit == "share" else 1.0
    half, size = times * (estimate.high - estimate.low) / 2, abs(times * estimate.value)
    least = _LEAST[estimate.metric.unit]
    deserved = 1 - math.floor(math.log10(half)) if half > 0 else 2 - math.floor(math.log10(size)) if size > 0 else least
    return min(max(deserved, least), least + _MORE)


def value_of(estimate: OnlineEstimate) -> str:
    """Write the value of an estimate, with as many decimals as it deserves."""
    return in_unit(estimate.metric.unit, decimals_of(estimate)).write(estimate.value)


def span_of(estimate: OnlineEstimate) -> str:
    """Write the interval of an estimate; its ends say no seconds."""
    if math.isnan(estimate.low):
        return "-"
    show = in_unit(estimate.metric.unit, decimals_of(estimate))
    low, high = map(show.limit or show.write, (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def values(
    estimates: Sequence[OnlineEstimate | None], name: str, title: str | None = None, *, decimals: int | None = None
) -> Column:
    """Make a column of estimates with their intervals, each with its unit and as many decimals as it deserves."""
    limits = [None if one is None or math.isnan(one.low) else (one.low, one.high) for one in estimates]
    shows = [
        NUMBER if one is None else in_unit(one.metric.unit, decimals_of(one) if decimals is None else decimals)
        for one in estimates
    ]
    return Column(name, [None if one is None else one.value for one in estimates], NUMBER, title, limits, each=shows)


def amount(value: float) -> str:
    """Write a sum: whole numbers whole.

    >>> amount(12345.0), amount(88.526), amount(float("nan"))
    ('12,345', '88.5', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


AMOUNT = Show(amount, "float64")
UNITS = Show(amount, "int64")


def percent(level: float) -> str:
    """Write a level: 0.95 is 95%.

    >>> percent(0.95), percent(0.999), percent(0.9)
    ('95%', '99.9%', '90%')
    """
    return f"{100 * level:.4g}%"


def shown(text: str, most: int = 40) -> str:
    r"""Write a text of the log on one line, cut, and without characters that would steer a terminal.

    >>> shown("a\x1b[31m b\n c"), shown("x" * 50, 5)
    ('a�[31m b c', 'xxxx…')
    """
    flat = _flat(text)
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def labels(slices: Iterable[str]) -> dict[str | None, str]:
    """Name slices as they are shown; where two would look alike, or like "all" rows, the later one gets a number.

    >>> labels(["x" * 50 + "1", "x" * 50 + "2", "all", "b"])["all"]
    'all (2)'
    >>> [name[-5:] for name in labels(["x" * 50 + "1", "x" * 50 + "2"]).values()]
    ['all', 'xxxx…', '… (2)']
    """
    seen = Counter({ALL: 1})
    named: dict[str | None, str] = {None: ALL}
    for value in slices:
        text = shown(value)
        seen[text] += 1
        named[value] = text if seen[text] == 1 else f"{text} ({seen[text]})"
    return named


def sentence(text: str) -> str:
    r"""Write a sentence in which texts of the log stand: each of its words is cut, so that none hides the others.

    >>> sentence("of tables: a\nb " + "x" * 70 + " 3"), len(sentence("word " * 1000))
    ('of tables: a b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… 3', 800)
    """
    return shown(" ".join(shown(word, _WORD) for word in text.split()), _SENTENCE)


def place(text: str) -> str:
    r"""Write a file and a line, or an id: what is cut is the beginning, so that the line stays.

    >>> place("a\tb.ndjson:7"), len(place("x" * 300 + ":7")), place("x" * 300 + ":7")[-3:]
    ('a b.ndjson:7', 120, 'x:7')
    """
    flat = _flat(text)
    return flat if len(flat) <= _PLACE else "…" + flat[1 - _PLACE :]


def _flat(text: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
