"""Runs, slices and topics against two measures at once."""

from judged.diagnosis.matrix.making import Matrix, performance_matrix

__all__ = ["Matrix", "performance_matrix"]
