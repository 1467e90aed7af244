"""`decide_rollback`: whether to roll back a deployed change, from the gate, an A/B test, and the watch together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

from judged.errors import InputError
from judged.online.ab_tests.differences import loss
from judged.results import TEXT, Answer, Sentences, Table, columns_of, listed
from judged.results.spelling import one_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from judged.diagnosis.gates.answer import GateResult
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.watch.watch import Watch
    from judged.results import Block

RollbackAction: TypeAlias = Literal["roll back", "keep", "wait"]
EvidenceState: TypeAlias = Literal["harm", "no harm", "inconclusive"]
_SOURCES = {"gate": "the gate", "A/B test": "the A/B test", "watch": "'judged watch'"}


class RollbackEvidence(NamedTuple):
    """What one source shows about a deployed change."""

    source: str  # ``gate``, ``A/B test``, or ``watch``
    state: EvidenceState
    finding: str
    since: date | None  # first day of an uninterrupted period with this evidence of harm; None if it is unknown


@dataclass(frozen=True, eq=False, repr=False)
class RollbackDecision(Answer):
    """Result of `decide_rollback`.

    Attributes
    ----------
    action : str
        ``roll back`` if a source shows harm, ``keep`` if all sources show that there is no harm, otherwise ``wait``.
    evidence : tuple of RollbackEvidence
        By source.
    """

    kind: ClassVar[str] = "rollback"
    main: ClassVar[str] = "evidence"

    evidence: tuple[RollbackEvidence, ...]

    @property
    def action(self) -> RollbackAction:
        """Action that the evidence supports."""
        states = {row.state for row in self.evidence}
        return "roll back" if "harm" in states else "keep" if states == {"no harm"} else "wait"

    @property
    def _decisive_evidence(self) -> list[RollbackEvidence]:
        """Evidence that the decision rests on."""
        state = {"roll back": "harm", "wait": "inconclusive", "keep": "no harm"}[self.action]
        return [row for row in self.evidence if row.state == state]

    @property
    def since(self) -> date | None:
        """First day from which a source shows harm; None without a date."""
        return min((row.since for row in self.evidence if row.state == "harm" and row.since), default=None)

    @property
    def exit_code(self) -> int:
        """1 to roll back, otherwise 0."""
        return int(self.action == "roll back")

    @property
    def title(self) -> str:
        """The decision."""
        return f"Decision: {self.action}"

    @property
    def alert(self) -> str:
        """The decision with its evidence in one line, for a message to the people on duty."""
        findings = " ".join(f"{row.source}: {row.finding}" for row in self._decisive_evidence)
        since = f" since {self.since}" if self.since else ""
        return f"{self.action.capitalize()}{since}. {findings}"

    def blocks(self) -> tuple[Block, ...]:
        """Return the decision and the evidence."""
        sources = [_SOURCES[row.source] for row in self._decisive_evidence]
        singular, plural = {
            "roll back": ("shows harm", "show harm"),
            "wait": ("is inconclusive, and no source shows harm", "are inconclusive, and no source shows harm"),
            "keep": ("shows no harm beyond its margin", "show no harm beyond their margins"),
        }[self.action]
        reason = singular if len(sources) == 1 else plural
        since = f" The evidence of harm holds since {self.since}." if self.since else ""
        table = Table(
            "evidence", columns_of(self.evidence, ("source", TEXT), ("state", TEXT), ("finding", TEXT), ("since", TEXT))
        )
        return Sentences((f"{self.action.capitalize()}: {listed(sources)} {reason}.{since}",)), table

    def facts(self) -> Mapping[str, Any]:
        """Return the decision, its date, and the text of an alert."""
        return {"action": self.action, "since": self.since, "alert": self.alert}


def decide_rollback(
    *, gate: GateResult | None = None, test: ABTest | None = None, arm: str | None = None, watch: Watch | None = None
) -> RollbackDecision:
    """Decide whether to roll back a deployed change, from all sources together.

    One source that shows harm is enough to roll back: a source without harm does not contradict it, because each source
    sees other queries, users, or metrics. Each source controls its own error rate.

    Parameters
    ----------
    gate
        Result of `judged.diagnosis.gates.gate`: a failed check is harm, and an inconclusive check is inconclusive.
    test
        Result of `judged.online.abtest`. Harm: the primary metric is significantly worse, or a guardrail lost more than
        the margin. No harm: the confidence intervals of all of these metrics exclude a loss above the margin. A test
        that is not valid is inconclusive.
    arm
        Arm of `test` with the change; None for its only other arm.
    watch
        Result of `judged.online.watch.watch`, of which the last deployment counts.

    Returns
    -------
    RollbackDecision

    Raises
    ------
    InputError
        If there is no source, an arm is unknown, or the watch has no deployment.

    Examples
    --------
    >>> from judged.diagnosis.gates import gate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> result = gate(qrels, {"old": good}, {"new": bad}, {"check": [{"measure": "RR", "margin": 0.1}]})
    >>> decision = decide_rollback(gate=result)
    >>> decision.action, decision.exit_code
    ('roll back', 1)
    """
    evidence: list[RollbackEvidence] = []
    if gate is not None:
        states: Mapping[str, EvidenceState] = {"pass": "no harm", "fail": "harm"}
        evidence.append(RollbackEvidence("gate", states.get(gate.status, "inconclusive"), gate.verdict, None))
    if test is not None:
        evidence.append(_test_evidence(test, arm))
    if watch is not None:
        evidence.append(_watch_evidence(watch))
    if not evidence:
        raise InputError(
            "there is no evidence", fix="pass the result of a gate, an A/B test, or a watch (--gate, --log, --watch)"
        )
    return RollbackDecision(tuple(evidence))


def _test_evidence(test: ABTest, arm: str | None) -> RollbackEvidence:
    arms = [verdict.arm for verdict in test.verdicts]
    if arm is None and len(arms) > 1:
        raise InputError(f"the test has the arms {listed(arms)}", fix="name the arm with the change (--arm)")
    verdict = test.verdicts[arms.index(arms[0] if arm is None else one_of("arm", arm, arms))]
    rows = [row for row in test.differences if row.arm == verdict.arm and row.role in {"primary", "guardrail"}]
    losses = {loss(row, test.margin_relative) for row in rows}
    is_worse = any(row.role == "primary" and row.benefit[1] < 0 for row in rows)
    state: EvidenceState = "inconclusive"
    if verdict.decision == "do not ship" and (is_worse or "harmed" in losses):
        state = "harm"
    elif verdict.decision in {"ship", "do not ship"} and losses == {"safe"}:
        state = "no harm"
    return RollbackEvidence("A/B test", state, " ".join(verdict.reasons), None)


def _watch_evidence(watch: Watch) -> RollbackEvidence:
    if not watch.rollbacks:
        raise InputError("the watch has no deployment", fix="add [[event]] with `deploy = true` to its file")
    last = watch.rollbacks[-1]
    states: Mapping[str, EvidenceState] = {"roll back": "harm", "keep": "no harm"}
    return RollbackEvidence("watch", states.get(last.decision, "inconclusive"), last.reason, last.since)
