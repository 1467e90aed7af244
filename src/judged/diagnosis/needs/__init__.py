"""Several wordings of one need."""

from judged.diagnosis.needs.answer import Needs
from judged.diagnosis.needs.needs import consistency, expand_qrels, needs, needs_of_scores

__all__ = ["Needs", "consistency", "expand_qrels", "needs", "needs_of_scores"]
