"""Runs, slices and topics by two measures, to tell bad candidates from bad ranking."""

from judged.diagnosis.matrix.answer import Matrix
from judged.diagnosis.matrix.performance import performance_matrix

__all__ = ["Matrix", "performance_matrix"]
