"""What `preference_agreement` returns: whether preferences from clicks agree with judgments, as an answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from judged.answer import TEXT, Sentences, Table, columns_of
from judged.online.numbers import UNITS
from judged.online.offline.pages import JudgedPages, estimates
from judged.online.offline.preferences import RULES

if TYPE_CHECKING:
    from judged.answer import Block
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

    @property
    def told(self) -> str:
        """What may be concluded of it."""
        if not self.decided:
            return f"{self.rule}: none of {self.preferences} preferences is between judged results of different grades."
        shown = (
            f"{self.rule}: {self.agreed} of {self.decided} decided preferences agree with the grades"
            f" ({self.agreement}); the ranks alone would bring {self.expected.value:.3f}"
        )
        if not self.gain.excludes(0.0):
            return f"{shown}: that clicks say more is not shown (gain {self.gain})."
        way = "say more than the ranks" if self.gain.value > 0 else "agree less than the ranks"
        return f"{shown}: the clicks {way} (gain {self.gain})."


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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PreferenceAgreement(JudgedPages):
    """Whether preferences from clicks agree with judgments, by rule and slice.

    Attributes
    ----------
    log, qrels, how, pages, joined, left_out, by, slices, unit, units, level
        As of `JudgedPages`.
    rules : tuple of str
        In order.
    depth : int
        Ranks below this were not looked at.
    rows : tuple of AgreementRow
        By rule; all pages first, then slices.
    repeated : Repeated
        How far preferences about the same pair agree with one another.
    """

    kind: ClassVar[str] = "preferences"

    rules: tuple[str, ...]
    depth: int
    rows: tuple[AgreementRow, ...] = field(repr=False)
    repeated: Repeated

    @property
    def title(self) -> str:
        """What it answers."""
        return f"Whether clicks agree with {self.qrels}: {self.log}"

    def of(self, rule: str, slice: str | None = None) -> AgreementRow:
        """Give one row.

        Raises
        ------
        KeyError
            If there is none.
        """
        for row in self.rows:
            if (row.rule, row.slice) == (rule, slice):
                return row
        raise KeyError(f"{rule} on {slice or 'all pages'}")

    def blocks(self) -> tuple[Block, ...]:
        """Give one row a rule and slice, and what may be concluded."""
        counts = ("preferences", UNITS), ("judged", UNITS), ("tied", UNITS), ("decided", UNITS)
        columns = (
            *columns_of(self.rows, ("rule", TEXT)),
            *self.slice_columns(self.rows),
            *columns_of(self.rows, *counts, "agreed", ("units", UNITS, f"{self.unit}s")),
            estimates([row.agreement for row in self.rows], "agreement"),
            estimates([row.by_rank for row in self.rows], "by_rank", "upper is better"),
            estimates([row.expected for row in self.rows], "expected", "expected by rank"),
            estimates([row.gain for row in self.rows], "gain", signed=True),
        )
        return Table("rows", columns, labels=2 if self.by else 1), Sentences(self.sentences)

    def facts(self) -> dict[str, Any]:
        """Give which pages count and why others do not, the rules, and how far repeated preferences agree."""
        return {
            **super().facts(),
            "depth": self.depth,
            "rules": [{"name": name, "meaning": RULES[name]} for name in self.rules],
            "repeated": asdict(self.repeated) | {"share": self.repeated.share},
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        again = self.repeated
        return (
            f"{self.counted} Results down to rank {self.depth} count.",
            *(row.told for row in self.rows if row.slice is None),
            *([_AGAIN.format(again.comparisons, again.share)] if again.comparisons else []),
            f"{_MEANING} {self.intervals}.",
        )


_AGAIN = (
    "Of {} pairs of preferences, from different pages, about the same two results of a topic {:.0%} prefer the same"
    " one. Where the list did not change this is no evidence for one rule: it then prefers the lower, or the upper, of"
    " the two each time."
)
_MEANING = (
    "Agreement is the share of preferences between results of different grades that agree with the grades; ties are"
    " counted apart. Swaps at random would agree half of the time. 'Expected by rank' is the agreement of pairs at the"
    " same ranks whatever was clicked; the gain over it is what the clicks say."
)
