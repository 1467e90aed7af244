"""Gains and discounts: what a grade is worth, and what a rank takes away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.decimals import read_number
from judged.errors import MeasureError
from judged.measures.parameters import Parameter, one_of, real, spell

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.judging import Judged

_MOST_EXP2 = 1000.0  # a double ends at 2^1024, and sums of gains must fit too
_LARGEST = 2.0**1000  # the same for gains of a table

Gain: TypeAlias = str | tuple[tuple[float, float], ...]


def _gain(given: Any) -> Gain:
    if isinstance(given, str) and given in {"linear", "exp2"}:
        return given
    pairs = list(given.items() if isinstance(given, Mapping) else given)
    if any(isinstance(pair, str) for pair in pairs):  # a word, or a list of numbers
        raise ValueError("linear, exp2, or a table of gains such as {1:1,2:3}")
    try:
        table = {read_number(grade): read_number(gain) for grade, gain in pairs}
    except (TypeError, ValueError):
        table = {}
    if not table or not all(map(math.isfinite, (*table, *table.values()))):
        raise ValueError("a table of finite gains such as {1:1,2:3}")
    return tuple(sorted(table.items()))


GAIN = Parameter(
    "What a grade is worth: linear is the grade itself, exp2 is 2^grade - 1, a table gives the gain of each"
    " grade (a grade that it leaves out keeps its linear gain). Negative grades gain nothing unless the table lists"
    " them, and documents without a judgment never do.",
    "linear",
    _gain,
    values="linear, exp2, or a table such as {1:1,2:3,3:10}",
)
DISCOUNT = Parameter(
    "What the gain at rank r is divided by: log2 is log2(r+1), ln is ln(r+1), original is max(1, log_base(r)).",
    "log2",
    one_of("log2", "ln", "original"),
)
BASE = Parameter("The base b of the original discount.", 2.0, real(1.0000001), values="number above 1")


def check_base(discount: str, base: float) -> None:
    """Refuse a base where the discount has none: the name would promise another number."""
    if discount != "original" and base != BASE.default:
        raise MeasureError(f"the discount {discount} has no base. Fix: write discount=original,base={spell(base)}")


def gains(grades: Floats, gain: Gain) -> Floats:
    """Give each grade its gain. Negative grades gain nothing.

    >>> gains(np.array([-1.0, 0.0, 1.0, 3.0]), "exp2").tolist()
    [0.0, 0.0, 1.0, 7.0]
    >>> gains(np.array([-1.0, 0.0, 1.0, 3.0]), ((1.0, 5.0),)).tolist()
    [0.0, 0.0, 5.0, 3.0]
    """
    linear = np.maximum(grades, 0.0)
    if gain == "exp2" and linear.max(initial=0.0) > _MOST_EXP2:
        raise MeasureError(
            f"gain=exp2 cannot express the grade {linear.max():g}: 2^{linear.max():g} is too large."
            " Fix: use gain=linear, or a table of gains"
        )
    if gain == "exp2":
        return np.exp2(linear) - 1.0
    for grade, worth in () if gain == "linear" else gain:
        linear = np.where(grades == grade, worth, linear)
    if (largest := np.abs(linear).max(initial=0.0)) > _LARGEST:
        raise MeasureError(f"the gain {largest:g} is too large: a sum of several is infinite. Fix: give smaller gains")
    return linear


def ideal_by_gain(judged: Judged, gain: Gain) -> Judged:
    """Rank the judged documents that gain something, best first."""
    if isinstance(gain, str):
        return judged.ideal  # more grade is more gain, and grade 0 gains nothing
    worth = gains(judged.label_grade, gain)
    return judged.ideal_by(np.where(worth > 0, worth, -np.inf))


def gaining(judged: Judged, gain: Gain) -> Floats:
    """Count the judged documents that gain something: (T,)."""
    return judged.sum_labels(gains(judged.label_grade, gain) > 0)


def discounts(ranks: Ints, discount: str, base: float) -> Floats:
    """Give what the gain at each rank is divided by.

    >>> discounts(np.array([1, 3]), "log2", 2.0).tolist()
    [1.0, 2.0]
    >>> discounts(np.array([1, 2, 4]), "original", 2.0).tolist()
    [1.0, 1.0, 2.0]
    """
    deepest = int(ranks.max(initial=1))
    return _divisors(discount, base, 1 << deepest.bit_length())[ranks]


@lru_cache(maxsize=16)
def _divisors(discount: str, base: float, size: int) -> Floats:
    """Tabulate by rank with the C library's logarithm: NumPy's differs in the last bit for some ranks."""
    ranks = range(1, size)
    if discount == "log2":
        values = [math.log2(rank + 1) for rank in ranks]
    elif discount == "ln":
        values = [math.log(rank + 1) for rank in ranks]
    else:
        log_base = math.log2(base)
        values = [max(1.0, math.log2(rank) / log_base) for rank in ranks]
    table = np.array([math.nan, *values])
    table.flags.writeable = False
    return table
