"""Numbers of a log as people read them: shares in per cent, durations in seconds, no more decimals than are known."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.online.estimates import OnlineEstimate, ScoresTable
    from judged.online.metrics.metric import Unit

NOTHING = "–"
"""Stands where there is no number."""

ALL = "all"
"""Stands for all rows where slices stand beside them."""
_LEAST: dict[str, int] = {
    "share": 1, "count": 2, "seconds": 1, "rank": 2, "reciprocal rank": 3, "money": 2, "rating": 2,
}  # fmt: skip
_MORE = 3  # decimals beyond the least
_WORD, _SENTENCE, _PLACE = 60, 800, 120  # characters of what comes from a log
_AFTER = {"share": "%", "seconds": " s"}


def counted(count: int, one: str, several: str | None = None) -> str:
    """Write a count with its word.

    >>> counted(1, "user"), counted(12_345, "page")
    ('1 user', '12,345 pages')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def number(value: float, unit: Unit, decimals: int | None = None) -> str:
    """Write one value with its unit.

    Parameters
    ----------
    value
        The number; a share from 0 to 1.
    unit
        Of the metric.
    decimals
        As they are shown, those of the percentage for a share; None: the least that the unit has.

    Examples
    --------
    >>> number(0.3811, "share"), number(41.25, "seconds"), number(2.5, "rank"), number(float("nan"), "share")
    ('38.1%', '41.2 s', '2.50', '–')
    """
    if math.isnan(value):
        return NOTHING
    return _bare(value, unit, _LEAST[unit] if decimals is None else decimals) + _AFTER.get(unit, "")


def span(low: float, high: float, unit: Unit, decimals: int | None = None) -> str:
    """Write an interval; its ends say the unit once, except for per cent.

    >>> span(0.3692, 0.3921, "share"), span(40.1, 44.0, "seconds"), span(float("nan"), 1.0, "count")
    ('[36.9%, 39.2%]', '[40.1, 44.0 s]', '–')
    """
    if math.isnan(low) or math.isnan(high):
        return NOTHING
    places = _LEAST[unit] if decimals is None else decimals
    first = number(low, unit, places) if unit == "share" else _bare(low, unit, places)
    return f"[{first}, {number(high, unit, places)}]"


def decimals_of(one: OnlineEstimate) -> int:
    """Say how many decimals an estimate deserves: as many as make two digits of half its interval.

    Without an interval it is as many as make three digits of the value, so that a rare event is not shown as 0.
    """
    unit = one.metric.unit
    times = 100.0 if unit == "share" else 1.0
    half = times * (one.high - one.low) / 2
    least = _LEAST[unit]
    if not math.isnan(half) and half > 0:
        return _within(1 - math.floor(math.log10(half)), least)
    size = abs(times * one.value)
    return _within(2 - math.floor(math.log10(size)), least) if size > 0 else least


def value_of(one: OnlineEstimate) -> str:
    """Write the value of an estimate, with as many decimals as it deserves."""
    return number(one.value, one.metric.unit, decimals_of(one))


def span_of(one: OnlineEstimate) -> str:
    """Write the interval of an estimate."""
    return span(one.low, one.high, one.metric.unit, decimals_of(one))


def amount(value: float) -> str:
    """Write a sum: whole numbers whole.

    >>> amount(12345.0), amount(88.526), amount(float("nan"))
    ('12,345', '88.5', '–')
    """
    if math.isnan(value):
        return NOTHING
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def shown(text: str, most: int = 40) -> str:
    r"""Write a text of the log on one line, cut, and without characters that would steer a terminal.

    >>> shown("a\x1b[31m b\n c"), shown("x" * 50, 5)
    ('a�[31m b c', 'xxxx…')
    """
    flat = _flat(text)
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def labels(slices: Iterable[str]) -> dict[str, str]:
    """Name slices as they are shown; where two would look alike, or like "all" rows, the later one gets a number.

    >>> labels(["x" * 50 + "1", "x" * 50 + "2", "all", "b"])["all"]
    'all (2)'
    >>> [name[-5:] for name in labels(["x" * 50 + "1", "x" * 50 + "2"]).values()]
    ['xxxx…', '… (2)']
    """
    seen = Counter({ALL: 1})
    named: dict[str, str] = {}
    for one in slices:
        text = shown(one)
        seen[text] += 1
        named[one] = text if seen[text] == 1 else f"{text} ({seen[text]})"
    return named


def slice_of(scores: ScoresTable, name: str | None) -> str:
    """Name a slice of a result; None: all rows."""
    return ALL if name is None else labels(one for one, _ in scores.slices).get(name, shown(name))


def sentence(text: str) -> str:
    r"""Write a sentence in which texts of the log stand: each of its words is cut, so that none hides the others.

    >>> sentence("of tables: a\nb " + "x" * 70 + " 3"), len(sentence("word " * 1000))
    ('of tables: a b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… 3', 800)
    """
    return shown(" ".join(shown(one, _WORD) for one in text.split()), _SENTENCE)


def place(text: str) -> str:
    r"""Write a file and a line, or an id: what is cut is the beginning, so that the line stays.

    >>> place("a\tb.ndjson:7"), len(place("x" * 300 + ":7")), place("x" * 300 + ":7")[-3:]
    ('a b.ndjson:7', 120, 'x:7')
    """
    flat = _flat(text)
    return flat if len(flat) <= _PLACE else "…" + flat[1 - _PLACE :]


def _flat(text: str) -> str:
    return "".join(one if one.isprintable() else "\ufffd" for one in " ".join(text.split()))


def _bare(value: float, unit: Unit, decimals: int) -> str:
    shown = f"{100 * value if unit == 'share' else value:,.{decimals}f}"
    return shown.removeprefix("-") if not shown.strip("-0.,") else shown  # no minus before a zero


def _within(decimals: int, least: int) -> int:
    return min(max(decimals, least), least + _MORE)
