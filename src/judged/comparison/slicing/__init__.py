"""Slices of topics: attributes, expressions, scores and tests by slice."""

from judged.comparison.slicing.by_document import ScoresByDocument, by_document, document_slices
from judged.comparison.slicing.by_slice import by_slice, slices
from judged.comparison.slicing.compare_slices import compare_slices
from judged.comparison.slicing.comparison import SliceComparison
from judged.comparison.slicing.derived import derive, read_topic_attributes
from judged.comparison.slicing.scores import SlicedScores
from judged.comparison.slicing.topic_slices import Slice, Slicing, slice_topics
from judged.data.expression import Expression

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
    "read_topic_attributes",
    "slice_topics",
    "slices",
]
