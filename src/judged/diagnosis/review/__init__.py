"""Which judgments to look at again."""

from judged.diagnosis.review.forms import apply_review
from judged.diagnosis.review.making import ReviewItem, ReviewList, review

__all__ = ["ReviewItem", "ReviewList", "apply_review", "review"]
