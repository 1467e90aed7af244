"""Agreement of preferences with judgments as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judged.online.offline.clusters import Estimate


@dataclass(frozen=True)
class AgreementRow:
    """What the preferences of one rule agree with.

    Parameters
    ----------
    rule
        Its name.
    slice
        Value of the slice; None: all pages.
    preferences
        How many there are.
    judged
        Of those, with both results judged.
    tied
        Of those, with the same grade.
    decided
        Of `judged`, with different grades: what all shares below are made of.
    agreed
        Of those, in the order of the grades.
    units
        Users or sessions with decided preferences.
    agreement
        ``agreed / decided``; 0.5 for swaps at random.
    by_rank
        The share of the same pairs where the upper result has the higher grade.
    expected
        The agreement that the ranks of these pairs alone would bring: as often as, on all pages of these units, of two
        results at the same two ranks with different grades the one at the preferred one's rank is better.
    gain
        Agreement minus expected: what clicks say beyond the ranks.
    """

    rule: str
    slice: str | None
    preferences: int
    judged: int
    tied: int
    decided: int
    agreed: int
    units: int
    agreement: Estimate
    by_rank: Estimate
    expected: Estimate
    gain: Estimate


@dataclass(frozen=True)
class Repeated:
    """Preferences about the same two results of one topic, from different pages, all rules together.

    Parameters
    ----------
    pairs
        Pairs of results about which there are two preferences or more.
    comparisons
        Pairs of preferences from different pages about the same two results.
    agreed
        Of those, with the same result preferred.
    """

    pairs: int
    comparisons: int
    agreed: int

    @property
    def share(self) -> float:
        """``agreed / comparisons``; NaN of none."""
        return self.agreed / self.comparisons if self.comparisons else float("nan")


@dataclass(frozen=True, eq=False)
class AgreementTable:
    """Agreement of preferences with judgments as numbers.

    Parameters
    ----------
    log, qrels, how, pages, joined, left_out, by, slices, unit, units, level
        As in `judged.online.offline.rows.OfflineTable`.
    rules
        In order.
    depth
        Ranks below this were not looked at.
    rows
        By rule; all pages first, then slices.
    repeated
        How far preferences about the same pair agree with one another.
    ordered
        The log has a clock.
    """

    log: str
    qrels: str
    how: str
    pages: int
    joined: int
    left_out: tuple[tuple[str, int], ...]
    rules: tuple[str, ...]
    by: str | None
    slices: tuple[tuple[str, int], ...]
    unit: str
    units: int
    depth: int
    level: float
    rows: tuple[AgreementRow, ...] = field(repr=False)
    repeated: Repeated
    ordered: bool

    def of(self, rule: str, slice: str | None = None) -> AgreementRow:
        """Give one row.

        Raises
        ------
        KeyError
            If there is none.
        """
        for one in self.rows:
            if (one.rule, one.slice) == (rule, slice):
                return one
        raise KeyError(f"{rule} on {slice or 'all pages'}")
