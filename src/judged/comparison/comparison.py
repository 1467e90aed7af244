"""What `compare` returns, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.comparison.choices import Choices
    from judged.comparison.pair import MeasureComparison, Pair
    from judged.evaluation import Scores
    from judged.stats import IntervalName
    from judged.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Systems compared over the same topics.

    Attributes
    ----------
    scores : Scores
        What is compared.
    measures : tuple of MeasureComparison
        One a measure: aggregates with intervals, and pairs with their tests.
    choices : Choices
        Test, correction, alpha, seed and the other options.
    ci : str
        How the intervals of the aggregates were made.
    warnings : tuple of str
        What should be known before the numbers are used.

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

    scores: Scores
    measures: tuple[MeasureComparison, ...]
    choices: Choices
    ci: IntervalName
    warnings: tuple[str, ...] = ()

    @cached_property
    def order(self) -> list[int]:
        """The systems from best to worst by the first measure."""
        return self.measures[0].order()

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of all measures."""
        return tuple(pair for one in self.measures for pair in one.pairs)

    def measure(self, name: str | None = None) -> MeasureComparison:
        """Give what was found by one measure; the first, if none is named.

        Raises
        ------
        InputError
            If it was not compared.
        """
        if name is None:
            return self.measures[0]
        from judged.measures import parse

        known = {one.name: one for one in self.measures}
        found = known.get(name) or known.get(str(parse(name)))
        if found is None:
            raise InputError(f"{name} was not compared", fix=f"one of {', '.join(known)}")
        return found

    def pair(self, first: str, second: str, measure: str | None = None) -> Pair:
        """Give one pair, in whichever order the two are named; its own fields say which is first.

        Raises
        ------
        InputError
            If the two were not compared by this measure.
        """
        one = self.measure(measure)
        found = one.by_runs.get((first, second)) or one.by_runs.get((second, first))
        if found is None:
            raise InputError(
                f"{first!r} and {second!r} were not compared by {one.name}",
                fix=one.untested or f"name two of {', '.join(self.scores.run_names)}; with a baseline, one is it",
            )
        return found

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha, over how many topics."""
        from judged.comparison.captions import caption

        return caption(self)

    def leaderboard(self) -> Table:
        """Lay out the systems, best first, with intervals and marks of significance."""
        from judged.comparison.layout import leaderboard

        return leaderboard(self)

    def matrix(self, measure: str | None = None) -> Table:
        """Lay out every pair: differences above the diagonal, p-values below it.

        Raises
        ------
        InputError
            If not every pair was tested.
        """
        from judged.comparison.layout import matrix

        one = self.measure(measure)
        if self.choices.baseline is not None or not one.pairs:
            raise InputError(
                f"not every pair was tested by {one.name}", fix=one.untested or "compare without a baseline"
            )
        return matrix(self, one)

    def pair_table(self, measure: str | None = None) -> Table:
        """Lay out one row a pair: difference, interval, p-values, effect, topics won, detectable difference."""
        from judged.comparison.layout import pair_table

        return pair_table(self, self.measure(measure).pairs)

    def text(self, *, width: int | None = None, pairs: bool = False) -> str:
        """Write for a terminal; with ``pairs``, every pair of every measure."""
        from judged.comparison.forms import text

        return text(self, width=width, pairs=pairs)

    def markdown(self, *, pairs: bool = False) -> str:
        """Write the leaderboard as a Markdown table with its caption; with ``pairs``, the pairs too."""
        from judged.comparison.forms import markdown

        return markdown(self, pairs=pairs)

    def latex(self, *, pairs: bool = False) -> str:
        """Write the leaderboard as a LaTeX table for a paper (package booktabs); with ``pairs``, the pairs too."""
        from judged.comparison.forms import latex

        return latex(self, pairs=pairs)

    def csv(self) -> str:
        """Write every pair in full precision."""
        from judged.comparison.document import pair_rows

        return pair_rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: the same document that the CLI prints."""
        from judged.comparison.document import document

        return document(self)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return self.leaderboard().html(notes=(self.caption, *self.warnings))
