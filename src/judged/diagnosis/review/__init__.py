"""Which judgments to look at again."""

from judged.diagnosis.review.forms import apply_review
from judged.diagnosis.review.making import review
from judged.diagnosis.review.result import ReviewItem, ReviewList

__all__ = ["ReviewItem", "ReviewList", "apply_review", "review"]
