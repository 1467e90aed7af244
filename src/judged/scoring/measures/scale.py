"""A scale of grades with a highest one, which turns every grade into a gain from 0 to 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import MeasureError
from judged.scoring.measures.parameters import Parameter, real, spell

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged

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
