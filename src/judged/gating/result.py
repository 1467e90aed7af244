"""What `gate` returns: the decision, and the forms in which it can be had."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.gating import forms, wording
from judged.gating.document import document
from judged.gating.findings import CheckFinding, Decision, GuardrailFinding
from judged.gating.junit import junit
from judged.gating.sarif import sarif

if TYPE_CHECKING:
    from judged.tables import Table


@dataclass(frozen=True)
class CheckResult(CheckFinding):
    """What was found by one check. Its attributes are those of `CheckFinding`."""

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        return wording.check_sentence(self)


@dataclass(frozen=True)
class GuardrailResult(GuardrailFinding):
    """What was found by one guardrail. Its attributes are those of `GuardrailFinding`."""

    @property
    def sentence(self) -> str:
        """What was found."""
        return wording.guardrail_sentence(self)


@dataclass(frozen=True, eq=False, repr=False)
class GateResult(Decision):
    """Whether the candidate may take the baseline's place. Its attributes are those of `Decision`.

    Examples
    --------
    >>> from judged.gating import Check, GateConfig, gate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> config = GateConfig((Check("RR", margin=0.05),))
    >>> gate(qrels, good, bad, config).status, gate(qrels, good, good, config).status
    ('fail', 'pass')
    """

    checks: tuple[CheckResult, ...]
    guardrails: tuple[GuardrailResult, ...]

    @property
    def parts(self) -> tuple[CheckResult | GuardrailResult, ...]:
        """Checks and guardrails."""
        return self.checks + self.guardrails

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decision in one sentence, and one for each check and guardrail."""
        return wording.sentences(self)

    @property
    def caption(self) -> str:
        """By which rules it was decided."""
        return wording.caption(self)

    def table(self) -> Table:
        """Lay out one row a check."""
        return forms.check_table(self)

    def guardrail_table(self) -> Table:
        """Lay out one row a guardrail."""
        return forms.guardrail_table(self)

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """Write what the command prints."""
        return forms.text(self, width, colour=colour)

    def markdown(self) -> str:
        """Write a comment for a pull request, or a summary of a job."""
        return forms.markdown(self)

    def junit(self) -> str:
        """Write JUnit XML: one test case a check; an inconclusive one counts as skipped, unless it is strict."""
        return junit(self)

    def sarif(self) -> str:
        """Write SARIF 2.1.0: one result for each check that fails or is inconclusive, at its line of the file."""
        return sarif(self)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values for JSON: full precision, None for what is not defined."""
        return document(self)

    def json(self) -> str:
        """Write `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        return self.text()
