"""The parameters that measures take: what they mean, what they may be, how they are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from judged.errors import MeasureError

_LARGEST = 2**53  # the whole numbers that a float holds exactly
SKIP = math.nan
"""Value of ``undefined=skip``: topics without a relevant document have no score and leave the mean."""


@dataclass(frozen=True)
class Parameter:
    """A declared parameter.

    Parameters
    ----------
    meaning
        What it does, for the measure's page.
    default
        Its value when it is not given; it is then left out of the name.
    accept
        Turns what was given into the value that is kept, or raises ValueError saying what it must be.
    required
        It has no default.
    values
        What may be written, for the page.
    """

    meaning: str
    default: Any
    accept: Callable[[Any], Any]
    required: bool = False
    values: str = ""
    name: str = ""

    def check(self, given: Any, measure: str) -> Any:
        """Give the value that is kept.

        Raises
        ------
        MeasureError
            If it may not be that; the message says what it may be.
        """
        if given is None and self.default is None and not self.required:
            return None
        try:
            return self.accept(given)
        except (ValueError, TypeError) as error:
            raise MeasureError(f"{measure}: {self.name}={given!r} is not allowed. Fix: {error}") from None

    def example(self, measure: str, at: str) -> str:
        """Say how a measure is written with this parameter, where `at` is the one behind the ``@``."""
        if self.name == at:
            return f"{measure}@{10 if at == 'cutoff' else '...'}"
        return f"{measure}({self.name}=...)"


def spell(value: Any) -> str:
    """Write a parameter's value as it stands in a measure's name.

    >>> spell(2.0), spell(0.5), spell(True), spell(((1.0, 1.0), (2.0, 5.0))), spell(SKIP)
    ('2', '0.5', 'true', '{1:1,2:5}', 'skip')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):  # a table of gains: (grade, gain) pairs
        return "{" + ",".join(f"{spell(key)}:{spell(gain)}" for key, gain in value) + "}"
    if isinstance(value, float):
        if math.isnan(value):
            return "skip"
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def whole(least: int) -> Callable[[Any], int]:
    """Accept whole numbers from ``least``."""

    def accept(given: Any) -> int:
        number = _number(given)
        if not number.is_integer() or not least <= number <= _LARGEST:
            raise ValueError(f"a whole number from {least}")
        return int(number)

    return accept


def real(low: float, high: float = math.inf) -> Callable[[Any], float]:
    """Accept finite numbers from ``low`` to ``high``."""

    def accept(given: Any) -> float:
        number = _number(given)
        if not low <= number <= high or math.isinf(number):
            raise ValueError(f"a number from {low:g}" + ("" if math.isinf(high) else f" to {high:g}"))
        return number

    return accept


def one_of(*names: str) -> Callable[[Any], str]:
    """Accept one of some words."""

    def accept(given: Any) -> str:
        if given not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return given

    return accept


def yes_no(given: Any) -> bool:
    """Accept true and false."""
    if isinstance(given, bool):
        return given
    if str(given).lower() not in {"true", "false"}:
        raise ValueError("true or false")
    return str(given).lower() == "true"


def undefined_value(given: Any) -> float:
    """Accept a number, or ``skip``."""
    if given == "skip" or (isinstance(given, float) and math.isnan(given)):
        return SKIP
    try:
        return real(-math.inf)(given)
    except ValueError:
        raise ValueError("a number, or skip") from None


def _number(given: Any) -> float:
    if isinstance(given, bool):
        raise ValueError("a number")
    try:
        return float(given)
    except (TypeError, ValueError):
        raise ValueError("a number") from None


CUTOFF = Parameter("Only the first k documents count.", None, whole(1), values="whole number from 1")
NEEDED_CUTOFF = Parameter(
    "Only the first k documents count.", None, whole(1), required=True, values="whole number from 1"
)
REL = Parameter("The lowest grade that counts as relevant.", 1.0, real(0), values="number from 0")
JUDGED_ONLY = Parameter(
    "Leave documents without a judgment (or with a negative grade) out of the ranking first.",
    False,
    yes_no,
    values="true or false",
)
UNDEFINED = Parameter(
    "What a topic without relevant documents scores; skip leaves it out of the mean.",
    0.0,
    undefined_value,
    values="number or skip",
)
