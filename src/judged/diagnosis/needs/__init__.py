"""Several wordings of one need."""

from judged.diagnosis.needs.answer import Needs
from judged.diagnosis.needs.likeness import consistency
from judged.diagnosis.needs.spread import needs
from judged.diagnosis.needs.variants import expand_qrels

__all__ = ["Needs", "consistency", "expand_qrels", "needs"]
