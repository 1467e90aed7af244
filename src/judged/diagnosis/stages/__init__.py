"""What a run lost, split exactly into its stages."""

from judged.diagnosis.stages.making import Stages, stages

__all__ = ["Stages", "stages"]
