"""Gains and discounts: what a grade is worth, what a rank takes away, and how both stand in a working."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.errors import MeasureError
from judged.results.decimals import read_number
from judged.scoring.measures.parameters import Parameter, one_of, real, spell

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.judging.working import Part
    from judged.scoring.measures.parameters import Takes


_MOST_EXP2 = 1000.0  # a double ends at 2^1024, and sums of gains must fit too
_LARGEST = 2.0**1000  # the same for gains of a table

Table: TypeAlias = tuple[tuple[float, float], ...]
"""The gain of each grade."""
Gain: TypeAlias = Literal["linear", "exp2"] | Table

if TYPE_CHECKING:
    TakesGain: TypeAlias = Takes[Literal["linear", "exp2"] | Table | Mapping[float, float], Gain]
Discount: TypeAlias = Literal["log2", "ln", "original"]


def _gain(given: Any) -> Gain:
    if given in ("linear", "exp2"):
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
    if (largest := float(np.abs(linear).max(initial=0.0))) > _LARGEST:
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


_FEW = 10
"""Down to this rank what adds nothing is shown even behind the last document that adds something."""


def gained(judged: Judged, gain: Gain, cutoff: int | None = None) -> tuple[Floats, Bools]:
    """Give each hit its gain, and show how its grade makes it: (H,). And mark the hits that are added up: (H,)."""
    worth = gains(judged.grade, gain)
    shown = down_to_last(judged, worth, cutoff)
    if judged.working is not None:
        judged.column("gain", worth, _gain_rule(gain, judged.grade[shown]), where=shown)
    return worth, shown


def discounted_by(judged: Judged, discount: str, base: float, where: Bools | None = None) -> Floats:
    """Give each hit the discount of its rank, and show how the rank makes it: (H,)."""
    return judged.column(
        "discount", discounts(judged.rank, discount, base), _discount_rule(discount, base), where=where
    )


def down_to_last(judged: Judged, worth: Floats | Bools, cutoff: int | None) -> Bools:
    """Mark the first k hits; without a cutoff, those above the long tail that adds nothing to show: (H,)."""
    # Without a sheet to write on all hits are marked: to find the tail would take time. The sum is the same.
    if judged.working is None or cutoff is not None:
        return judged.within(cutoff)
    last = np.full(len(judged), _FEW)
    adding = np.flatnonzero(worth)
    np.maximum.at(last, judged.topic[adding], judged.rank[adding])
    return judged.rank <= last[judged.topic]


def _gain_rule(gain: Gain, grades: Floats) -> str:
    grade = "max(grade, 0)" if (grades < 0).any() else "grade"
    if isinstance(gain, str):
        return f"2^{grade} - 1" if gain == "exp2" else grade
    return ", ".join(f"{spell(worth)} for grade {spell(one)}" for one, worth in gain) + f", else {grade}"


def _discount_rule(discount: str, base: float) -> str:
    if discount != "original":
        return f"{discount}(rank + 1)"
    return "max(1, log2(rank))" if base == BASE.default else f"max(1, log2(rank) / log2({spell(base)}))"


_above_zero = real(math.ulp(0.0))


def _highest(given: Any) -> float:
    try:
        return _above_zero(given)
    except ValueError:
        raise ValueError("the highest grade of the scale: a number above 0") from None


HIGHEST = Parameter(
    "The highest grade of the scale, whether or not a document of these qrels has it.",
    None,
    _highest,
    required=True,
    values="number above 0",
)
LOWEST = Parameter(
    "The highest grade that gains nothing: the gain rises from it to max in a straight line.",
    0.0,
    real(0),
    values="number from 0, below max",
)


def check_order(low: float, high: float) -> None:
    """Refuse a scale that does not rise."""
    if low >= high:
        raise MeasureError(f"min={spell(low)} is not below max={spell(high)}. Fix: give a lower min, or leave it out")


def check_scale(judged: Judged, high: float, measure: object) -> None:
    """Refuse qrels with a grade above the scale: its gain would be more than the most there is."""
    found = float(judged.label_grade.max(initial=0.0))
    if found > high:
        raise MeasureError(
            f"{measure}: the qrels have the grade {spell(found)}, above max={spell(high)}."
            f" Fix: write max={spell(found)} or higher"
        )


def share_of_scale(grades: Floats, low: float, high: float) -> Floats:
    """Give each grade its gain: 0 up to the lowest grade, 1 for the highest.

    >>> share_of_scale(np.array([-1.0, 0.0, 1.0, 3.0]), 0.0, 4.0).tolist()
    [0.0, 0.0, 0.25, 0.75]
    >>> share_of_scale(np.array([1.0, 2.0, 3.0]), 1.0, 3.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.maximum(grades - low, 0.0) / (high - low)


def share_in_words(grades: Floats, low: float, high: float) -> str:
    """Write how `share_of_scale` comes about for these grades, as a formula of ``grade``.

    >>> share_in_words(np.array([-1.0, 3.0]), 0.0, 4.0), share_in_words(np.array([1.0, 3.0]), 1.0, 3.0)
    ('max(grade, 0) / 4', '(grade - 1) / 2')
    """
    above = "grade" if low == 0 else f"grade - {spell(low)}"
    if (grades < low).any():
        above = f"max({above}, 0)"
    elif low != 0 and high - low != 1:
        above = f"({above})"
    return above if high - low == 1 else f"{above} / {spell(high - low)}"


MOST_SHOWN = 100  # more ranks nobody reads one by one


@dataclass(frozen=True, eq=False)
class TopRanks:
    """The ranks of the only topic that are shown one by one."""

    judged: Judged  # a list of one topic, with a working
    count: int  # how many ranks are shown

    @classmethod
    def down_to(cls, judged: Judged, counted: Bools) -> TopRanks:
        """Show every rank down to the last of these hits, if that is not too many: (H,)."""
        return cls(judged, min(int(judged.rank[counted].max(initial=0)), MOST_SHOWN))

    def column(self, name: str, values: Any, how: str = "", **parts: Part) -> None:
        """Show one number for each rank of all: (n,); numbers and columns of the same length are its parts."""
        cut = {key: part if np.ndim(part) == 0 else np.asarray(part)[: self.count] for key, part in parts.items()}
        self.judged.by_rank(name, np.asarray(values)[: self.count], how, **cut)

    def total(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Show what a column has come to at each rank, and what it adds up to: (n,) and (1,)."""
        self.column("so far", np.cumsum(values))
        self.add_up(name, values, total, summand)

    def add_up(self, name: object, values: Floats, total: Floats, summand: str) -> None:
        """Show what a column adds up to: what is shown of it, what is not, and the total: (n,) and (1,)."""
        so_far = np.cumsum(values)
        shown = so_far[self.count - 1 : self.count]
        if shown[0] == so_far[-1]:
            self.judged.summed(name, total, summand)
            return
        above, below = f"to rank {self.count}", f"below rank {self.count}"
        self.judged.summed(above, shown, summand)
        last = "" if self.count + 1 == len(values) else f" to {len(values)}"
        rest = self.judged.step(below, so_far[-1:] - shown, f"rank{'s' if last else ''} {self.count + 1}{last}")
        parts = {above.replace(" ", "_"): shown, below.replace(" ", "_"): rest}
        self.judged.step(name, total, " + ".join(parts), **parts)
