"""Gains of grades and discounts of ranks, and how explanations show them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.errors import MeasureError
from judged.results.decimals import read_number
from judged.scoring.measures.base import RelevanceMeasure
from judged.scoring.measures.parameters import Parameter, choice, format_value, real

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.judging.calculation import Operand
    from judged.scoring.measures.parameters import ConvertedAttribute


_MAX_EXP2 = 1000.0  # the largest double is about 2^1024, and sums of gains must be finite too
_MAX_GAIN = 2.0**1000  # the same limit for gains of a table

GainTable: TypeAlias = tuple[tuple[float, float], ...]
"""The gain of each grade."""
Gain: TypeAlias = Literal["linear", "exp2"] | GainTable

if TYPE_CHECKING:
    GainAttribute: TypeAlias = ConvertedAttribute[Gain | Mapping[float, float], Gain]
Discount: TypeAlias = Literal["log2", "ln", "log10", "original"]


def _parse_gain(value: Any) -> Gain:
    if value in ("linear", "exp2"):
        return value
    pairs = list(value.items() if isinstance(value, Mapping) else value)
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
    "The gain of a grade. `linear`: the grade itself. `exp2`: 2^grade - 1. A table, such as {1:1,2:3}, lists the gain"
    " of each grade; a grade that is not in the table keeps its linear gain. The gain of a negative grade is 0 unless"
    " the table lists this grade. The gain of a document without a judgment is always 0.",
    "linear",
    _parse_gain,
    values="linear, exp2, or a table such as {1:1,2:3,3:10}",
)
DISCOUNT = Parameter(
    "The divisor of the gain at rank r. `log2`: log2(r+1). `ln`: ln(r+1). `log10`: log10(r+1)."
    " `original`: max(1, log_base(r)).",
    "log2",
    choice("log2", "ln", "log10", "original"),
)
BASE = Parameter("The base of the logarithm in the discount `original`.", 2.0, real(1.0000001), values="number above 1")


def check_base(discount: str, base: float) -> None:
    """Raise if a base is set for a discount without a base: the name would then suggest a different score."""
    if discount != "original" and base != BASE.default:
        raise MeasureError(
            f"the discount {discount} has no base. Fix: write discount=original,base={format_value(base)}"
        )


def gains(grades: Floats, gain: Gain) -> Floats:
    """Return the gain of each grade. The gain of a negative grade is 0, unless a table lists it.

    >>> gains(np.array([-1.0, 0.0, 1.0, 3.0]), "exp2").tolist()
    [0.0, 0.0, 1.0, 7.0]
    >>> gains(np.array([-1.0, 0.0, 1.0, 3.0]), ((1.0, 5.0),)).tolist()
    [0.0, 0.0, 5.0, 3.0]
    """
    linear = np.maximum(grades, 0.0)
    # An overflow would produce inf and NaN scores instead of an error.
    if gain == "exp2" and linear.max(initial=0.0) > _MAX_EXP2:
        raise MeasureError(
            f"gain=exp2 cannot represent the grade {linear.max():g}: 2^{linear.max():g} is too large."
            " Fix: use gain=linear, or a table of gains"
        )
    if gain == "exp2":
        return np.exp2(linear) - 1.0
    for grade, grade_gain in () if gain == "linear" else gain:
        linear = np.where(grades == grade, grade_gain, linear)
    if (largest := float(np.abs(linear).max(initial=0.0))) > _MAX_GAIN:
        raise MeasureError(f"the gain {largest:g} is too large: sums would be infinite. Fix: use smaller gains")
    return linear


def ideal_by_gain(judged: Judged, gain: Gain) -> Judged:
    """Return the ideal ranking: the judged documents with a positive gain, highest gain first."""
    if isinstance(gain, str):
        return judged.ideal  # a higher grade has a higher gain, and the gain of grade 0 is 0
    label_gains = gains(judged.label_grade, gain)
    return judged.ideal_by(np.where(label_gains > 0, label_gains, -np.inf))


def count_gaining(judged: Judged, gain: Gain) -> Floats:
    """Count the judged documents with a positive gain: (T,)."""
    return judged.sum_labels(gains(judged.label_grade, gain) > 0)


class GainMeasure(RelevanceMeasure):
    """Base of the measures with a parameter `gain` that need a document with a positive gain."""

    def is_defined(self, judged: Judged) -> Any:
        """Return whether each topic has a document with a positive gain: (T,) bool."""
        return count_gaining(judged, vars(self)["gain"]) > 0


def discounts(ranks: Ints, discount: str, base: float) -> Floats:
    """Return the divisor of the gain at each rank.

    >>> discounts(np.array([1, 3]), "log2", 2.0).tolist()
    [1.0, 2.0]
    >>> discounts(np.array([1, 2, 4]), "original", 2.0).tolist()
    [1.0, 1.0, 2.0]
    """
    deepest = int(ranks.max(initial=1))
    return _divisors(discount, base, 1 << deepest.bit_length())[ranks]


@lru_cache(maxsize=16)
def _divisors(discount: str, base: float, size: int) -> Floats:
    # The C library's logarithm: NumPy's differs in the last bit for some ranks.
    ranks = range(1, size)
    if discount == "log2":
        values = [math.log2(rank + 1) for rank in ranks]
    elif discount == "ln":
        values = [math.log(rank + 1) for rank in ranks]
    elif discount == "log10":
        values = [math.log10(rank + 1) for rank in ranks]
    else:
        log_base = math.log2(base)
        values = [max(1.0, math.log2(rank) / log_base) for rank in ranks]
    table = np.array([math.nan, *values])
    table.flags.writeable = False
    return table


_ALWAYS_SHOWN = 10
"""Ranks down to this one are shown even below the last document that contributes to the sum."""


def hit_gains(judged: Judged, gain: Gain, cutoff: int | None = None) -> tuple[Floats, Bools]:
    """Return the gain of each hit, with its formula in the explanation, and the mask of the hits to sum: (H,) each."""
    values = gains(judged.grade, gain)
    counted = shown_hits(judged, values, cutoff)
    if judged.calculation is not None:
        judged.column("gain", values, _gain_formula(gain, judged.grade[counted]), where=counted)
    return values, counted


def hit_discounts(judged: Judged, discount: str, base: float, where: Bools | None = None) -> Floats:
    """Return the discount of the rank of each hit, with its formula in the explanation: (H,)."""
    return judged.column(
        "discount", discounts(judged.rank, discount, base), _discount_formula(discount, base), where=where
    )


def shown_hits(judged: Judged, values: Floats | Bools, cutoff: int | None) -> Bools:
    """Return the mask of the first k hits. Without a cutoff, omit the tail of hits whose value is 0: (H,)."""
    # Without an explanation, all hits are selected: the sum is the same, and finding the tail takes time.
    if judged.calculation is None or cutoff is not None:
        return judged.within(cutoff)
    last = np.full(len(judged), _ALWAYS_SHOWN)
    nonzero = np.flatnonzero(values)
    np.maximum.at(last, judged.topic[nonzero], judged.rank[nonzero])
    return judged.rank <= last[judged.topic]


def _gain_formula(gain: Gain, grades: Floats) -> str:
    grade = "max(grade, 0)" if (grades < 0).any() else "grade"
    if isinstance(gain, str):
        return f"2^{grade} - 1" if gain == "exp2" else grade
    cases = (f"{format_value(value)} for grade {format_value(table_grade)}" for table_grade, value in gain)
    return ", ".join(cases) + f", else {grade}"


def _discount_formula(discount: str, base: float) -> str:
    if discount != "original":
        return f"{discount}(rank + 1)"
    return "max(1, log2(rank))" if base == BASE.default else f"max(1, log2(rank) / log2({format_value(base)}))"


_above_zero = real(math.ulp(0.0))


def _parse_max_grade(value: Any) -> float:
    try:
        return _above_zero(value)
    except ValueError:
        raise ValueError("the highest grade of the scale: a number above 0") from None


HIGHEST = Parameter(
    "The highest grade of the scale, whether or not a document of these qrels has this grade.",
    None,
    _parse_max_grade,
    required=True,
    values="number above 0",
)
LOWEST = Parameter(
    "The highest grade without gain. For higher grades, the gain rises linearly, to 1 at the grade `max`.",
    0.0,
    real(0),
    values="number of at least 0 and below max",
)


def check_order(low: float, high: float) -> None:
    """Raise unless the lowest grade of the scale is below the highest."""
    if low >= high:
        raise MeasureError(f"min={format_value(low)} must be below max={format_value(high)}. Fix: use a lower min")


def check_scale(judged: Judged, max_grade: float, measure: object) -> None:
    """Raise if the qrels have a grade above the scale: its gain would exceed the maximum of 1."""
    highest = float(judged.label_grade.max(initial=0.0))
    if highest > max_grade:
        raise MeasureError(
            f"{measure}: the qrels have the grade {format_value(highest)}, above max={format_value(max_grade)}."
            f" Fix: write max={format_value(highest)} or higher"
        )


def share_of_scale(grades: Floats, low: float, high: float) -> Floats:
    """Return the gain of each grade: 0 up to the lowest grade of the scale, 1 for the highest, linear in between.

    >>> share_of_scale(np.array([-1.0, 0.0, 1.0, 3.0]), 0.0, 4.0).tolist()
    [0.0, 0.0, 0.25, 0.75]
    >>> share_of_scale(np.array([1.0, 2.0, 3.0]), 1.0, 3.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.maximum(grades - low, 0.0) / (high - low)


def format_share(grades: Floats, low: float, high: float) -> str:
    """Format the formula of `share_of_scale` for these grades.

    >>> format_share(np.array([-1.0, 3.0]), 0.0, 4.0), format_share(np.array([1.0, 3.0]), 1.0, 3.0)
    ('max(grade, 0) / 4', '(grade - 1) / 2')
    """
    numerator = "grade" if low == 0 else f"grade - {format_value(low)}"
    if (grades < low).any():
        numerator = f"max({numerator}, 0)"
    elif low != 0 and high - low != 1:
        numerator = f"({numerator})"
    return numerator if high - low == 1 else f"{numerator} / {format_value(high - low)}"


MAX_SHOWN = 100  # an explanation shows at most so many ranks one by one


@dataclass(frozen=True, eq=False)
class TopRanks:
    """Top ranks of the only topic, which an explanation shows one by one."""

    judged: Judged  # one topic, with an explanation
    count: int  # number of ranks that are shown

    @classmethod
    def down_to(cls, judged: Judged, counted: Bools) -> TopRanks:
        """Select the ranks down to the last of these hits, at most `MAX_SHOWN`: (H,)."""
        return cls(judged, min(int(judged.rank[counted].max(initial=0)), MAX_SHOWN))

    def column(self, name: str, values: Any, how: str = "", **parts: Operand) -> None:
        """Show one number per rank: (n,). `parts` are the numbers and columns that the formula `how` refers to."""
        top_parts = {key: part if np.ndim(part) == 0 else np.asarray(part)[: self.count] for key, part in parts.items()}
        self.judged.by_rank(name, np.asarray(values)[: self.count], how, **top_parts)

    def total(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Show the running sum and the total of a column: (n,) and (1,)."""
        self.column("so far", np.cumsum(values))
        self.add_up(name, values, total, summand)

    def add_up(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Show the total of a column, split at the last rank that is shown: (n,) and (1,)."""
        so_far = np.cumsum(values)
        top_sum = so_far[self.count - 1 : self.count]
        if top_sum[0] == so_far[-1]:
            self.judged.summed(name, total, summand)
            return
        above, below = f"to rank {self.count}", f"below rank {self.count}"
        self.judged.summed(above, top_sum, summand)
        last = "" if self.count + 1 == len(values) else f" to {len(values)}"
        tail_sum = self.judged.step(below, so_far[-1:] - top_sum, f"rank{'s' if last else ''} {self.count + 1}{last}")
        parts = {above.replace(" ", "_"): top_sum, below.replace(" ", "_"): tail_sum}
        self.judged.step(name, total, " + ".join(parts), **parts)
