"""Checks of what a plan is given."""

from __future__ import annotations

import math
from collections.abc import Iterable

from judged.errors import InputError


def probability(owner: object, *names: str) -> None:
    """Refuse fields that are no probabilities."""
    for name in names:
        probabilities(name, (getattr(owner, name),))


def probabilities(name: str, values: Iterable[float]) -> None:
    """Refuse values that are no probabilities."""
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"{name} is {value:g}, and it must be between 0 and 1", fix=f"give {name} as a share")


def positive(owner: object, *names: str, least: float = 0.0) -> None:
    """Refuse fields that are not above 0, or below `least` where that is given."""
    for name in names:
        value = getattr(owner, name)
        if not (value >= least if least else value > 0):
            raise InputError(f"{name} is {value:g}", fix=f"give {f'{least:g} or more' if least else 'more than 0'}")


def shares(name: str, values: Iterable[float]) -> None:
    """Refuse shares that do not add up to 1."""
    given = tuple(values)
    probabilities(name, given)
    if not math.isclose(sum(given), 1.0, abs_tol=1e-9):
        raise InputError(f"the shares of {name} add up to {sum(given):g}", fix="they must add up to 1")
