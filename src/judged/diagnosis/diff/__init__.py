"""Two rankings side by side."""

from judged.diagnosis.diff.answer import Diff, DiffRow, TopicDiff
from judged.diagnosis.diff.diff import diff

__all__ = ["Diff", "DiffRow", "TopicDiff", "diff"]
