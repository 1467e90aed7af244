"""What `review` returns, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judged.diagnosis.review import forms, layout
from judged.diagnosis.review.rates import rates_table
from judged.diagnosis.review.rows import ReviewItem, ReviewTable

if TYPE_CHECKING:
    from judged.tables import Table

__all__ = ["ReviewItem", "ReviewList"]


@dataclass(frozen=True, eq=False, repr=False)
class ReviewList(ReviewTable):
    """What `review` returns: labels to look at, most informative first, and how frequent each kind is.

    Its attributes are those of `ReviewTable`.

    Examples
    --------
    >>> from judged import review
    >>> listed = review({"q": {"a": 2, "b": 0, "c": 1}}, {"q": ["b", "x", "a"]}, measure="nDCG@2")
    >>> print(listed.table().text())
    topic  document  kind            grade  other  rank   change
    q      b         false positive      0      2     1  +0.6131
    q      x         unjudged            -      2     2  +0.3869
    q      a         false negative      2      0     3  +0.0000
    q      c         false negative      1      0     -  +0.0000
    """

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What was found, and what may not be concluded."""
        return layout.sentences(self)

    def table(self) -> Table:
        """Lay out the items, one a row."""
        return layout.items_table(self)

    def rates_table(self) -> Table:
        """Lay out how frequent each kind is, by run and slice."""
        return rates_table(self.rates, self.k)

    def text(self, *, width: int | None = None) -> str:
        """Write for a terminal: rates, items with what their topics and documents say, and sentences."""
        return layout.text(self, width)

    def markdown(self) -> str:
        """Write as Markdown."""
        return layout.markdown(self)

    def csv(self) -> str:
        """Write the items as CSV, in full precision, with whole texts."""
        return forms.as_csv(self)

    def jsonl(self) -> str:
        """Write the items as JSON Lines, in full precision, with whole texts."""
        return forms.as_jsonl(self)

    def tsv(self) -> str:
        """Write a form to fill in: judgments with an empty column for the new grade, for `apply_review`.

        It shows neither runs nor ranks nor changes: who judges should not know what a label is good for.
        """
        return forms.as_form(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: None for NaN."""
        return forms.document(self)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {one}" for one in self.warnings)])
