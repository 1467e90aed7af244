"""The regression gate: whether a candidate may take the baseline's place, and the forms that CI reads."""

from judged.gates.answer import GateResult
from judged.gates.check_result import CheckResult
from judged.gates.config import Check, GateConfig, Guardrail
from judged.gates.config_reader import config_of, parse_config, read_config
from judged.gates.gate import gate, gate_of_scores
from judged.gates.guardrails import GuardrailResult

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
