"""The JSON document of a gate: the same from Python and from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.gating.wording import caption, sentence_of, sentences
from judged.stats.pairing import plain

if TYPE_CHECKING:
    from judged.gating.config import GateConfig
    from judged.gating.findings import CheckFinding, Decision, GuardrailFinding


def document(result: Decision) -> dict[str, Any]:
    """Lay out a decision as plain Python values: full precision, None for what is not defined."""
    scores = result.scores
    return {
        "judged": scores.versions.get("judged", ""),
        "versions": dict(scores.versions),
        "status": result.status,
        "passed": result.passed,
        "exit_code": result.exit_code,
        "baseline": result.baseline,
        "candidate": result.candidate,
        "config": _config(result.config),
        "qrels": {**vars(scores.qrels), "grades": list(scores.qrels.grades)},
        "policies": dict(vars(scores.policies)),
        "runs": {run.name: {"path": run.path, "sha256": run.sha256} for run in scores.runs},
        "checks": [_check(one) for one in result.checks],
        "guardrails": [_guardrail(one) for one in result.guardrails],
        "caption": caption(result),
        "sentences": list(sentences(result)),
        "warnings": list(result.warnings),
    }


def _config(config: GateConfig) -> dict[str, Any]:
    return {
        name: plain(value) for name, value in vars(config).items() if name not in {"checks", "guardrails", "lines"}
    }  # these stand with their results


def _check(one: CheckFinding) -> dict[str, Any]:
    made = {name: plain(value) for name, value in vars(one).items() if name != "check"}
    asked = {"name": one.name, "slice": one.check.slice, "line": one.check.line}
    return {**asked, **made, "loss": plain(one.loss), "blocks": one.blocks, "sentence": sentence_of(one)}


def _guardrail(one: GuardrailFinding) -> dict[str, Any]:
    made = {name: plain(value) for name, value in vars(one).items()}
    return {"name": one.name, **made, "blocks": one.blocks, "sentence": sentence_of(one)}
