"""Loss of a run, split exactly into its stages."""

from judged.diagnosis.stages.answer import Stages
from judged.diagnosis.stages.stages import stages

__all__ = ["Stages", "stages"]
