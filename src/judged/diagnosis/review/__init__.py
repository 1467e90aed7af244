"""Which judgments to look at again."""

from judged.diagnosis.review.answer import ReviewItem, ReviewList
from judged.diagnosis.review.informative import review
from judged.diagnosis.review.labelling import apply_review

__all__ = ["ReviewItem", "ReviewList", "apply_review", "review"]
