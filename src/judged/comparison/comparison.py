"""What `compare` returns, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.comparison.captions import caption
from judged.comparison.compared import ComparedSystems
from judged.comparison.document import document, pair_rows
from judged.comparison.forms import latex, markdown, text
from judged.comparison.layout import leaderboard, matrix, pair_table
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ComparedSystems):
    """Systems compared over the same topics.

    Its attributes, and its ways to pairs, are those of `ComparedSystems`.

    Examples
    --------
    >>> from judged import compare
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> print(compare(qrels, {"bad": bad, "good": good}, "RR", ci="none").leaderboard().text())
       run       RR
    a  good  1.0000 b
    b  bad   0.5000
    """

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha, over how many topics."""
        return caption(self)

    def leaderboard(self) -> Table:
        """Lay out the systems, best first, with intervals and marks of significance."""
        return leaderboard(self)

    def matrix(self, measure: str | None = None) -> Table:
        """Lay out every pair: differences above the diagonal, p-values below it.

        Raises
        ------
        InputError
            If not every pair was tested.
        """
        one = self.measure(measure)
        if self.choices.baseline is not None or not one.pairs:
            raise InputError(
                f"not every pair was tested by {one.name}", fix=one.untested or "compare without a baseline"
            )
        return matrix(self, one)

    def pair_table(self, measure: str | None = None) -> Table:
        """Lay out one row a pair: difference, interval, p-values, effect, topics won, detectable difference."""
        return pair_table(self, self.measure(measure).pairs)

    def text(self, *, width: int | None = None, pairs: bool = False) -> str:
        """Write for a terminal; with ``pairs``, every pair of every measure."""
        return text(self, width=width, pairs=pairs)

    def markdown(self, *, pairs: bool = False) -> str:
        """Write the leaderboard as a Markdown table with its caption; with ``pairs``, the pairs too."""
        return markdown(self, pairs=pairs)

    def latex(self, *, pairs: bool = False) -> str:
        """Write the leaderboard as a LaTeX table for a paper (package booktabs); with ``pairs``, the pairs too."""
        return latex(self, pairs=pairs)

    def csv(self) -> str:
        """Write every pair in full precision."""
        return pair_rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: the same document that the CLI prints."""
        return document(self)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return self.leaderboard().html(notes=(self.caption, *self.warnings))
