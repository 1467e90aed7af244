"""What every way to slice gives, before slices are counted and put in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.online.engine import literal

if TYPE_CHECKING:
    from judged.slicing.bands import Bands


@dataclass(frozen=True)
class Cut:
    """Pages and their slices, not run yet.

    Parameters
    ----------
    sql
        Gives ``serp`` and ``slice``; null where it is not known. Each page once.
    order
        Names in the order that they are shown in; empty: that of numbers or of the alphabet.
    note
        What a reader should know.
    all_kept
        There may be any number of slices: points of a series.
    """

    sql: str
    order: tuple[str, ...] = ()
    note: str = ""
    all_kept: bool = False


def banded(number: str, bands: Bands) -> str:
    """Write the SQL of the name of the range that each number lies in; null for null."""
    below = zip(bands.starts, bands.names[:-1], strict=True)
    cases = [f"WHEN {number} < {start!r} THEN {literal(name)}" for start, name in below]
    return f"CASE WHEN {number} IS NULL THEN NULL {' '.join(cases)} ELSE {literal(bands.names[-1])} END"
