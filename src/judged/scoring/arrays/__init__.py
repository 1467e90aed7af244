"""Measures for training loops, on arrays of NumPy, PyTorch, JAX, CuPy and other libraries.

>>> import numpy as np
>>> import judged
>>> scores = np.array([[0.2, 0.9, 0.4], [0.7, 0.1, 0.0]])
>>> grades = np.array([[2, 0, 1], [1, 0, 0]])
>>> where = np.array([[True, True, True], [True, True, False]])  # the second query has two documents
>>> judged.arrays.ndcg(scores, grades, where=where, cutoff=10).round(4).tolist()
[0.6199, 1.0]
>>> judged.arrays.precision(scores, grades, where=where, cutoff=[1, 2]).tolist()
[[0.0, 0.5], [1.0, 0.5]]
"""

from judged.scoring.arrays.measures import (
    average_precision,
    dcg,
    err,
    ndcg,
    precision,
    rbp,
    recall,
    reciprocal_rank,
    success,
)
from judged.scoring.arrays.ranking import padded

__all__ = [
    "average_precision",
    "dcg",
    "err",
    "ndcg",
    "padded",
    "precision",
    "rbp",
    "recall",
    "reciprocal_rank",
    "success",
]
