"""Rules for preferences from clicks, and the result of `preference_agreement`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError
from judged.online.engine import literal
from judged.online.layout import UNITS
from judged.online.log import parse_names, validate
from judged.online.offline.page_topics import JudgedPages, estimate_column
from judged.results import TEXT, Sentences, Table, columns_of
from judged.results.spelling import use_one_of
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog
    from judged.online.offline.concordance import IntervalEstimate
    from judged.results import Block

RULES = {
    "above": "click > skip above: a clicked result is preferred to each unclicked result above it",
    "last-above": "last click > skip above: the last clicked result is preferred to each unclicked result above it",
    "earlier": "click > earlier click: a clicked result is preferred to each result that was clicked earlier",
    "previous": "click > skip previous: a clicked result is preferred to an unclicked result directly above it",
    "next": "click > no click next: a clicked result is preferred to an unclicked result directly below it",
}
"""Rules by name. ``last-above`` and ``earlier`` need the order of clicks."""

DEFAULT_RULES = ("above", "last-above", "next")


def click_preferences(log: InteractionLog, *, rules: Sequence[str] | str = DEFAULT_RULES, depth: int = 10) -> Relation:
    """Return preferences between two results of a page from clicks.

    A result counts once per page, at its first rank. Clicks on results that the page does not show are ignored. If the
    log has impressions, results that were not in view do not count as skipped.

    Parameters
    ----------
    log
        Interaction log.
    rules
        Names in `RULES`.
    depth
        Deepest rank.

    Returns
    -------
    Relation
        Unordered lazy table ``serp, session, user, rule, better, worse, better_rank, worse_rank`` with the ids of the
        two results. Each pair occurs once per page and rule.

    Raises
    ------
    InputError
        If a rule is unknown.

    References
    ----------
    Joachims, Granka, Pan, Hembrooke, Gay: Accurately interpreting clickthrough data as implicit feedback. SIGIR 2005;
    and with Radlinski: Evaluating the accuracy of implicit feedback from clicks and query reformulations in web search.
    TOIS 2007.
    """
    validate(log=log, depth=depth)
    names = parse_names(rules=rules)
    if unknown_names := [name for name in names if name not in RULES]:
        raise InputError(f"there is no rule {unknown_names[0]!r}", fix=use_one_of(RULES))
    if not names:
        raise InputError("`rules` is empty", fix=f"use some of {', '.join(RULES)}")
    pairs = " UNION ALL ".join(f"SELECT *, {literal(name)} AS rule FROM ({_PAIR_QUERIES[name]})" for name in names)
    default_seen = "false" if "impressions" in log.has else "true"
    return log.engine.query(f"""
        WITH result AS (
            SELECT serp, object_id, min(rank) AS rank, bool_or(coalesce(seen, {default_seen})) AS seen
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


def _pair_query(worse_table: str, condition: str) -> str:
    return f"""
        SELECT b.serp, b.object_id AS better, w.object_id AS worse, b.rank AS better_rank, w.rank AS worse_rank
        FROM clicked AS b JOIN {worse_table} AS w ON w.serp = b.serp WHERE {condition}"""


_PAIR_QUERIES = {
    "above": _pair_query("skipped", "w.rank < b.rank"),
    "last-above": _pair_query("skipped", "w.rank < b.rank AND b.last_ms = b.end_ms"),
    "earlier": _pair_query("clicked", "w.first_ms < b.first_ms"),
    "previous": _pair_query("skipped", "w.rank = b.rank - 1"),
    "next": _pair_query("skipped", "w.rank = b.rank + 1"),
}


@dataclass(frozen=True)
class AgreementRow:
    """Agreement of the preferences of one rule with grades.

    Parameters
    ----------
    rule
        Name of the rule.
    slice
        Value of the slice; None: all pages.
    preferences
        Number of preferences.
    judged
        Preferences between two judged results.
    tied
        Judged preferences with equal grades.
    decided
        Judged preferences with different grades, the denominator of all shares below.
    agreed
        Decided preferences in the order of the grades.
    units
        Users or sessions with decided preferences.
    agreement
        ``agreed / decided``; 0.5 for random preferences.
    by_rank
        Share of decided pairs whose upper result has the higher grade.
    expected
        Agreement expected from the ranks of the pairs: the share of pages of these units, among those with different
        grades at the same two ranks, on which the result at the preferred rank has the higher grade.
    gain
        Agreement minus expected agreement: information of clicks beyond ranks.
    """

    rule: str
    slice: str | None
    preferences: int
    judged: int
    tied: int
    decided: int
    agreed: int
    units: int
    agreement: IntervalEstimate
    by_rank: IntervalEstimate
    expected: IntervalEstimate
    gain: IntervalEstimate

    def describe(self, unit: str) -> str:
        """Return the conclusion as a sentence."""
        if not self.decided:
            return (
                f"{self.rule}: none of {self.preferences} preferences is between judged results with different grades."
            )
        start = (
            f"{self.rule}: {self.agreed} of {self.decided} preferences between different grades agree with the grades"
            f" ({self.agreement}); the agreement expected from ranks alone is {self.expected.value:.3f}"
        )
        if self.gain.has_interval and (shortage := insufficiency(self.units, "verdict")):
            return f"{start} (gain {self.gain}). {shortage.sentence(unit)}"
        if not self.gain.excludes(0.0):
            return f"{start}. No significant gain from clicks ({self.gain})."
        direction = "better" if self.gain.value > 0 else "worse"
        return f"{start}. Clicks agree significantly {direction} with the grades than ranks alone (gain {self.gain})."


@dataclass(frozen=True)
class RepeatedPreferences:
    """Agreement of preferences between the same two results of a topic on different pages, over all rules.

    Parameters
    ----------
    pairs
        Pairs of results with at least two preferences.
    comparisons
        Pairs of preferences on different pages.
    agreed
        Pairs of preferences for the same result.
    """

    pairs: int
    comparisons: int
    agreed: int

    @property
    def share(self) -> float:
        """``agreed / comparisons``; NaN without comparisons."""
        return self.agreed / self.comparisons if self.comparisons else float("nan")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PreferenceAgreement(JudgedPages):
    """Agreement of click preferences with judgments, by rule and slice.

    Attributes
    ----------
    log, qrels, topic_source, pages, pages_used, excluded_pages, by, slices, unit, units, level
        As in `JudgedPages`.
    rules : tuple of str
        Names of the rules.
    depth : int
        Deepest rank.
    rows : tuple of AgreementRow
        By rule; all pages first, then slices.
    repeated : Repeated
        Agreement of preferences between the same two results.
    """

    kind: ClassVar[str] = "preferences"
    title_format: ClassVar[str] = "Agreement of click preferences with {qrels}: {log}"

    rules: tuple[str, ...]
    depth: int
    rows: tuple[AgreementRow, ...]
    repeated: RepeatedPreferences

    def of(self, rule: str, slice: str | None = None) -> AgreementRow:
        """Return the row of a rule and slice.

        Raises
        ------
        KeyError
            If there is no such row.
        """
        for row in self.rows:
            if (row.rule, row.slice) == (rule, slice):
                return row
        raise KeyError(f"{rule} on {slice or 'all pages'}")

    def blocks(self) -> tuple[Block, ...]:
        """Return the agreement by rule and slice, and conclusions."""
        count_columns = ("preferences", UNITS), ("judged", UNITS), ("tied", UNITS), ("decided", UNITS)
        columns = (
            *columns_of(self.rows, ("rule", TEXT)),
            *self.slice_columns(self.rows),
            *columns_of(self.rows, *count_columns, "agreed", ("units", UNITS, f"{self.unit}s")),
            estimate_column([row.agreement for row in self.rows], "agreement"),
            estimate_column([row.by_rank for row in self.rows], "by_rank", "upper result better"),
            estimate_column([row.expected for row in self.rows], "expected", "expected by rank"),
            estimate_column([row.gain for row in self.rows], "gain", signed=True),
        )
        return Table("rows", columns, labels=2 if self.by else 1), Sentences(self.sentences)

    def facts(self) -> dict[str, Any]:
        """Return the facts of the result, with rules and repeated preferences."""
        return {
            **super().facts(),
            "depth": self.depth,
            "rules": [{"name": name, "description": RULES[name]} for name in self.rules],
            "repeated": asdict(self.repeated) | {"share": self.repeated.share},
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """Conclusions and limits."""
        repeated = self.repeated
        return (
            f"{self.counted} Only results in the top {self.depth} count.",
            *(row.describe(self.unit) for row in self.rows if row.slice is None),
            *([_REPEATED.format(repeated.share, repeated.comparisons)] if repeated.comparisons else []),
            f"{_DEFINITIONS} {self.intervals}.",
        )


_REPEATED = (
    "{:.1%} of {} pairs of preferences agree on the preferred result. In each pair, the two preferences are between"
    " the same two results, on two pages of one topic. If the two results had the same order on both pages, agreement"
    " is no evidence for a rule: the rule then prefers the same rank twice."
)
_DEFINITIONS = (
    "Agreement is the share of preferences that match the order of the grades, among preferences between results with"
    " different grades. Random preferences have an agreement of 0.5. 'Expected by rank' is the agreement for all"
    " pairs of results at the same two ranks, regardless of clicks. The gain is the agreement minus the agreement"
    " expected by rank."
)
