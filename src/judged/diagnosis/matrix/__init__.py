"""Runs, slices and topics by two measures, to tell bad candidates from bad ranking."""

from judged.diagnosis.matrix.answer import Matrix
from judged.diagnosis.matrix.matrix import matrix, matrix_of_scores

__all__ = ["Matrix", "matrix", "matrix_of_scores"]
