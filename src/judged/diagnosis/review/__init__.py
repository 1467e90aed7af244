"""List of judgments to review."""

from judged.diagnosis.review.answer import ReviewItem, ReviewList, apply_review
from judged.diagnosis.review.review import review

__all__ = ["ReviewItem", "ReviewList", "apply_review", "review"]
