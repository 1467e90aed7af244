"""Two rankings side by side."""

from judged.diagnosis.diff.making import diff
from judged.diagnosis.diff.result import Diff, DiffRow, TopicDiff

__all__ = ["Diff", "DiffRow", "TopicDiff", "diff"]
