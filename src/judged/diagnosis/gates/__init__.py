"""The regression gate: whether a candidate may take the baseline's place, and the forms that CI reads."""

from judged.diagnosis.gates.answer import GateResult
from judged.diagnosis.gates.check_result import CheckResult
from judged.diagnosis.gates.config import Check, GateConfig, Guardrail
from judged.diagnosis.gates.config_file import config_of, parse_config, read_config
from judged.diagnosis.gates.gate import gate, gate_of_scores
from judged.diagnosis.gates.guardrails import GuardrailResult

__all__ = [
    "Check",
    "CheckResult",
    "GateConfig",
    "GateResult",
    "Guardrail",
    "GuardrailResult",
    "config_of",
    "gate",
    "gate_of_scores",
    "parse_config",
    "read_config",
]
