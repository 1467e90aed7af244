"""Runs, slices and topics by two measures, to tell bad candidates from bad ranking."""

from judged.diagnosis.matrix.answer import ClassMatrix, Matrix
from judged.diagnosis.matrix.matrix import class_matrix, matrix, matrix_of_scores

__all__ = ["ClassMatrix", "Matrix", "class_matrix", "matrix", "matrix_of_scores"]
