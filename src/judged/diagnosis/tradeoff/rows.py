"""Gain against cost as numbers: a row a run, and the front."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.evaluation.provenance import Provenance


@dataclass(frozen=True)
class TradeoffRow:
    """One run: what it scores, what it costs, and both against the baseline.

    Attributes
    ----------
    run : str
    value : float
        The mean of the measure.
    interval : (float, float) or None
        Of the mean, over topics.
    topics : int
    costs : dict of float or None
        By cost; None: not known.
    gain : float or None
        The mean difference to the baseline, over the topics of both; None for the baseline itself.
    gain_interval : (float, float) or None
        Of this paired difference.
    cost_change : dict of float or None
        Cost minus that of the baseline; None where one is not known, and for the baseline.
    per_unit : dict of float or None
        How much of the measure changes for one unit of the cost, where both go the same way: gained for each unit
        paid, or lost for each unit saved. Else there is nothing to trade, and it is None. Never negative.
    front : bool or None
        Whether no other run is at least as good on all, and better on one; None where a cost is not known.
    sure : bool
        Whether the intervals of paired differences leave no doubt of that.
    rivals : tuple of str
        Best first. Of a run on the front: those that cost no more, and are not surely worse. Of another: those that
        dominate it; if `sure`, those that surely do.
    """

    run: str
    value: float
    interval: tuple[float, float] | None
    topics: int
    costs: Mapping[str, float | None]
    gain: float | None
    gain_interval: tuple[float, float] | None
    cost_change: Mapping[str, float | None]
    per_unit: Mapping[str, float | None]
    front: bool | None
    sure: bool
    rivals: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class TradeoffTable:
    """Gain against cost as numbers: what tables, sentences and charts are made of.

    Attributes
    ----------
    measure : str
    higher_is_better : bool
        Of the measure.
    costs : tuple of str
        What the front is made of, beside the measure.
    more_is_better : tuple of str
        Those of them of which more is better.
    baseline : str
    level : float
        Of the intervals; each stands for itself, nothing is corrected for their number.
    rows : tuple of TradeoffRow
        Cheapest first.
    provenance : Provenance
        What the scores rest on.
    warnings : tuple of str
    """

    measure: str
    higher_is_better: bool
    costs: tuple[str, ...]
    more_is_better: tuple[str, ...]
    baseline: str
    level: float
    rows: tuple[TradeoffRow, ...] = field(repr=False)
    provenance: Provenance = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def front(self) -> tuple[str, ...]:
        """The runs that no other dominates, cheapest first."""
        return tuple(one.run for one in self.rows if one.front)

    def row(self, run: str) -> TradeoffRow:
        """Give the row of one run.

        Raises
        ------
        InputError
            If there is none.
        """
        found = next((one for one in self.rows if one.run == run), None)
        if found is None:
            raise InputError(f"no run {run!r}", fix=f"one of {', '.join(one.run for one in self.rows)}")
        return found
