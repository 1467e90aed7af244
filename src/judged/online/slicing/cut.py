"""What every way to slice gives, before slices are counted and put in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.online.engine import ibis_library

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from judged.slicing.bands import Bands


@dataclass(frozen=True)
class Cut:
    """Pages and their slices, not run yet.

    Parameters
    ----------
    table
        ``serp`` and ``slice``; null where it is not known. Each page once.
    order
        Names in the order that they are shown in; empty: that of numbers or of the alphabet.
    note
        What a reader should know.
    all_kept
        There may be any number of slices: points of a series.
    """

    table: ir.Table
    order: tuple[str, ...] = ()
    note: str = ""
    all_kept: bool = False


def banded(number: Any, bands: Bands) -> Any:
    """Name the range of each number of a column; null for null."""
    ibis = ibis_library()
    cases = [(number < start, name) for start, name in zip(bands.starts, bands.names[:-1], strict=True)]
    named = ibis.cases(*cases, else_=bands.names[-1]) if cases else bands.names[-1]
    return number.isnull().ifelse(ibis.null("string"), named)
