"""What each way to evaluate says of one change, what it took, what it is about, and whether they agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.reports.changes.questions import Question
from judged.results import COUNT, TEXT, Column, Table, columns_of, listed
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.comparison import Comparison
    from judged.online.abtest.abtest import ABTest
    from judged.online.abtest.verdict import Verdict
    from judged.online.clicks.off_policy_estimates import OffPolicyEstimates
    from judged.online.interleaving.analysis import Interleaving

Says: TypeAlias = Literal["better", "worse", "undecided"]
_PREFERRED = ("doubly robust", "cascade", "whole list")
"""Estimators in the order in which they are taken; which are right depends on the log's propensities."""


@dataclass(frozen=True)
class Evidence:
    """What one method says: ``about`` is what it measures, ``number`` of ``units`` what it took."""

    method: str
    says: Says
    number: int
    units: str
    days: float
    about: str


def told(
    compared: Comparison,
    test: tuple[ABTest, Verdict] | None,
    mixed: Interleaving | None,
    logged: OffPolicyEstimates | None,
) -> Iterator[Evidence]:
    """Give the methods, from what is nearest to users to what is farthest."""
    if test is not None:
        says: dict[str, Says] = {"ship": "better", "do not ship": "worse"}
        about = "what users do over the days of the test, with one ranker each"
        users, verdict = test[0].assignment, test[1]
        yield Evidence("A/B test", says.get(verdict.decision, "undecided"), users.number, "users", users.days, about)
    if mixed is not None:
        prefers: dict[str, Says] = {"preferred": "better", "not preferred": "worse"}
        about = "which ranker's results are clicked more in one list; nothing that follows"
        yield Evidence(
            "interleaving", prefers.get(mixed.decision, "undecided"), mixed.users, "users", float("nan"), about
        )
    if logged is not None:
        rows = {row.estimator: row for row in logged.rows}
        row = next((rows[name] for name in _PREFERRED if rows[name].difference_ci), rows[_PREFERRED[0]])
        about = "clicks on lists that nobody saw, under the assumptions of its estimators"
        logs = "undecided" if insufficiency(logged.users, "verdict") else _side(row.difference_ci)
        yield Evidence("off-policy", logs, logged.users, "users", float("nan"), about)
    pair = compared.measures[0].pairs[0]
    side: Says = "undecided" if not pair.significant else "better" if pair.better == pair.second else "worse"
    side = "undecided" if insufficiency(pair.result.n, "verdict") else side
    about = f"{compared.measures[0].measure} by judgments; no user, and no document that is not judged"
    yield Evidence("offline", side, pair.result.n, "topics", float("nan"), about)


def _side(ci: tuple[float, float] | None) -> Says:
    if ci is None or ci[0] <= 0 <= ci[1]:
        return "undecided"
    return "better" if ci[0] > 0 else "worse"


def agreement(found: Sequence[Evidence]) -> Question:
    """Say whether those that decide agree; where they do not, the first of them is nearest to users."""
    question = "Do offline and online agree?"
    decided = [one for one in found if one.says != "undecided"]
    table = Table(
        "evidence",
        (
            *columns_of(found, ("method", TEXT), ("says", TEXT)),
            Column("number", [one.number for one in found], COUNT, "took"),
            *columns_of(found, ("units", TEXT, "of"), ("days", COUNT), ("about", TEXT)),
        ),
        "What each method says",
        note="from what is nearest to users to what is farthest; interleaving and A/B may be looked at on any day",
    )
    names = {side: listed([one.method for one in decided if one.says == side]) for side in ("better", "worse")}
    if len(decided) < 2:
        only = f"Only {decided[0].method} decides: {decided[0].says}." if decided else "None decides."
        return Question(question, "undecided", only, (table,))
    if names["better"] and names["worse"]:
        nearest = f"{decided[0].method} is nearest to users"
        return Question(question, "look", f"{names['better']} say better, {names['worse']} worse; {nearest}.", (table,))
    return Question(question, "good", f"{listed([one.method for one in decided])} say {decided[0].says}.", (table,))
