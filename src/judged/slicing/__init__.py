"""Slices of topics: attributes, expressions, scores and tests by slice."""

from judged.data.expression import Expression
from judged.slicing.by_document import ScoresByDocument, by_document
from judged.slicing.by_slice import by_slice, slices
from judged.slicing.compare_slices import compare_slices
from judged.slicing.comparison import SliceComparison
from judged.slicing.derived import derive, known_topics
from judged.slicing.documents import document_slices
from judged.slicing.scores import SlicedScores
from judged.slicing.topic_slices import Slice, Slicing, slice_topics

__all__ = [
    "Expression",
    "ScoresByDocument",
    "Slice",
    "SliceComparison",
    "SlicedScores",
    "Slicing",
    "by_document",
    "by_slice",
    "compare_slices",
    "derive",
    "document_slices",
    "known_topics",
    "slice_topics",
    "slices",
]
