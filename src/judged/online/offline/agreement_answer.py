"""Preferences that clicks express, and whether grades agree with them: the rules, and the result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError
from judged.online.engine import literal
from judged.online.layout import UNITS
from judged.online.log import names_of, need
from judged.online.offline.joined import JudgedPages, estimates
from judged.results import TEXT, Sentences, Table, columns_of
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog
    from judged.online.offline.concordance import Estimate
    from judged.results import Block

RULES = {
    "above": "click > skip above: a clicked result is better than each result above it without a click",
    "last-above": "last click > skip above: so is the result that was clicked last, and only that one",
    "earlier": "click > earlier click: a result clicked later is better than one clicked before",
    "previous": "click > skip previous: a clicked result is better than the one right above it, if that has no click",
    "next": "click > no click next: a clicked result is better than the one right below it, if that has no click",
}
"""The rules by name. ``last-above`` and ``earlier`` need to know in which order things were clicked."""

DEFAULT_RULES = ("above", "last-above", "next")


def click_preferences(log: InteractionLog, *, rules: Sequence[str] | str = DEFAULT_RULES, depth: int = 10) -> Relation:
    """Give what clicks say about which of two results of a page is better.

    A result counts once a page, at its first rank. Clicks on something that the page does not show say nothing. Where
    the log tells what came into view, what did not was not skipped.

    Parameters
    ----------
    log
        What users did.
    rules
        Of `RULES`.
    depth
        Ranks below this are not looked at.

    Returns
    -------
    Relation
        ``serp, session, user, rule, better, worse, better_rank, worse_rank``: the two results as ids; each pair once a
        page and rule. In no order, and not run yet.

    Raises
    ------
    InputError
        If there is no such rule.

    References
    ----------
    Joachims, Granka, Pan, Hembrooke, Gay: Accurately interpreting clickthrough data as implicit feedback. SIGIR 2005;
    and with Radlinski: Evaluating the accuracy of implicit feedback from clicks and query reformulations in web search.
    TOIS 2007.
    """
    need(log=log, depth=depth)
    names = names_of(rules=rules)
    if unknown := [name for name in names if name not in RULES]:
        raise InputError(f"no rule {unknown[0]!r}", fix=f"one of {', '.join(RULES)}")
    if not names:
        raise InputError("no rule is given", fix=f"some of {', '.join(RULES)}")
    pairs = " UNION ALL ".join(f"SELECT *, {literal(name)} AS rule FROM ({_PAIRS[name]})" for name in names)
    listed = "false" if "impressions" in log.has else "true"
    return log.engine.query(f"""
        WITH result AS (
            SELECT serp, object_id, min(rank) AS rank, bool_or(coalesce(seen, {listed})) AS seen
            FROM {log.shown} WHERE rank <= {depth} GROUP BY serp, object_id),
        click AS (
            SELECT serp, object_id, min(time_ms) AS first_ms, max(time_ms) AS last_ms FROM {log.event}
            WHERE action = 'click' AND serp IS NOT NULL AND object_id IS NOT NULL GROUP BY serp, object_id),
        clicked AS (
            SELECT r.serp, r.object_id, r.rank, c.first_ms, c.last_ms,
                max(c.last_ms) OVER (PARTITION BY r.serp) AS end_ms
            FROM result AS r JOIN click AS c ON c.serp = r.serp AND c.object_id = r.object_id),
        skipped AS (
            SELECT r.serp, r.object_id, r.rank FROM result AS r
            LEFT JOIN click AS c ON c.serp = r.serp AND c.object_id = r.object_id WHERE r.seen AND c.serp IS NULL)
        SELECT p.serp, p.session, p."user", m.rule, m.better, m.worse, m.better_rank, m.worse_rank
        FROM ({pairs}) AS m JOIN {log.serp} AS p ON p.serp = m.serp""")


def _pairs(other: str, condition: str) -> str:
    return f"""
        SELECT b.serp, b.object_id AS better, w.object_id AS worse, b.rank AS better_rank, w.rank AS worse_rank
        FROM clicked AS b JOIN {other} AS w ON w.serp = b.serp WHERE {condition}"""


_PAIRS = {
    "above": _pairs("skipped", "w.rank < b.rank"),
    "last-above": _pairs("skipped", "w.rank < b.rank AND b.last_ms = b.end_ms"),
    "earlier": _pairs("clicked", "w.first_ms < b.first_ms"),
    "previous": _pairs("skipped", "w.rank = b.rank - 1"),
    "next": _pairs("skipped", "w.rank = b.rank + 1"),
}


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

    def told(self, unit: str) -> str:
        """Say what may be concluded of it; `unit` is what `units` counts."""
        if not self.decided:
            return f"{self.rule}: none of {self.preferences} preferences is between judged results of different grades."
        shown = (
            f"{self.rule}: {self.agreed} of {self.decided} decided preferences agree with the grades"
            f" ({self.agreement}); the ranks alone would bring {self.expected.value:.3f}"
        )
        if self.gain.known and (lacking := insufficiency(self.units, "verdict")):
            return f"{shown} (gain {self.gain}). {lacking.sentence(unit)}"
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
    answers: ClassVar[str] = "Whether clicks agree with {qrels}: {log}"

    rules: tuple[str, ...]
    depth: int
    rows: tuple[AgreementRow, ...]
    repeated: Repeated

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
            *(row.told(self.unit) for row in self.rows if row.slice is None),
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
