"""Runs, slices and topics by two measures, to tell bad candidates from bad ranking."""

from judged.diagnosis.matrix.answer import Matrix
from judged.diagnosis.matrix.class_matrix import ClassMatrix, class_matrix
from judged.diagnosis.matrix.matrix import matrix, matrix_of_scores

__all__ = ["ClassMatrix", "Matrix", "class_matrix", "matrix", "matrix_of_scores"]
