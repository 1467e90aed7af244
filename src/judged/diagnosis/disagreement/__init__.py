"""Where two measures prefer different systems, and why."""

from judged.diagnosis.disagreement.answer import Disagreement
from judged.diagnosis.disagreement.disagree import disagree, disagreement_of_scores
from judged.diagnosis.disagreement.reasons import Reason

__all__ = ["Disagreement", "Reason", "disagree", "disagreement_of_scores"]
