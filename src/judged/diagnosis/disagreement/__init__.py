"""Where two measures prefer different systems, and why."""

from judged.diagnosis.disagreement.making import disagreement
from judged.diagnosis.disagreement.reasons import Reason
from judged.diagnosis.disagreement.result import Disagreement

__all__ = ["Disagreement", "Reason", "disagreement"]
