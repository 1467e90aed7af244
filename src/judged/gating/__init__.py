"""The regression gate: whether a candidate may take the baseline's place, and the forms that CI reads."""

from judged.gating.check_result import CheckResult
from judged.gating.config import Check, GateConfig, Guardrail
from judged.gating.guarding import GuardrailResult
from judged.gating.reading import config_of, parse_config, read_config
from judged.gating.result import GateResult
from judged.gating.running import gate, gate_of_scores

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
