"""What `by_slice` returns: scores of slices, ways to average over them, and which slices differ from the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation import Estimate, Scores
    from judged.slicing.slices import Slicing
    from judged.stats import IntervalMethod
    from judged.stats.heterogeneity import AgainstRest
    from judged.tables import Table

ALL = "all topics"
TOPIC_MEAN, MEAN_OF_SLICES = "topic mean", "mean of slices"


def measure_named(name: str | None, known: Sequence[str]) -> str:
    """Give the canonical name of a measure that is among those known; the first, if none is named.

    Raises
    ------
    InputError
        If it is not among them.
    """
    if name is None or name in known:
        return name or known[0]
    from judged.measures import parse

    found = str(parse(name))
    if found not in known:
        raise InputError(f"{found} was not evaluated", fix=f"one of {', '.join(known)}")
    return found


@dataclass(frozen=True)
class SliceEstimate:
    """One number: a measure of a run over the topics of a slice.

    Attributes
    ----------
    slice : str
        Its name, or ``all topics``.
    estimate : Estimate
        The aggregate with its interval; its `topics` are those that have a score.
    n : int
        Topics of the slice.
    share : float
        Of all topics that are in it.
    weight : float
        The share of the first weights that its topics have; NaN without weights.
    small : bool
        Whether it has fewer topics than it is judged by: it is not ranked.
    """

    slice: str
    estimate: Estimate
    n: int
    share: float
    weight: float
    small: bool


@dataclass(frozen=True)
class Average:
    """All topics of a run as one number, in one of several ways.

    Attributes
    ----------
    name : str
        ``topic mean``: every topic counts the same. ``mean of slices``: every slice that is not small does.
        ``traffic-weighted mean`` and the like: every topic counts by its weight. ``weighted by relevant documents``:
        every relevant document counts the same.
    run, measure : str
    value : float
    ci : (float, float) or None
    topics : int
        That it rests on.
    effective : float
        As many topics of equal weight would give a mean as sure.
    """

    name: str
    run: str
    measure: str
    value: float
    ci: tuple[float, float] | None
    topics: int
    effective: float


@dataclass(frozen=True)
class SliceFinding:
    """A slice against all other topics, by one run and measure.

    Attributes
    ----------
    slice, run, measure : str
    value : float
        The aggregate over the slice.
    rest : AgainstRest
        The mean of the slice against that of the other topics; of logarithms, for a geometric mean.
    adjusted : float
        Its p-value, corrected for all the tests of the call.
    significant : bool
        Whether the slice differs: `adjusted` is at most alpha, and the interval excludes 0.
    better : bool or None
        Whether the slice is the better side; None where it does not differ, or the measure has no better side.
    """

    slice: str
    run: str
    measure: str
    value: float
    rest: AgainstRest
    adjusted: float
    significant: bool
    better: bool | None


@dataclass(frozen=True, eq=False, repr=False)
class SlicedScores:
    """Scores by slice.

    Attributes
    ----------
    scores : Scores
        Of all topics.
    slicing : Slicing
        Of the same topics.
    method : IntervalMethod
        How intervals were made.
    estimates : tuple of SliceEstimate
        By slice, run and measure; ``all topics`` first, small slices last.
    averages : tuple of Average
        By way, run and measure.
    findings : tuple of SliceFinding
        Every slice that is not small against the other topics.
    tests : int
        How many of them share alpha (Holm).
    weights : tuple of str
        The names of the weights.
    warnings : tuple of str
        What should be known before the numbers are used.

    Examples
    --------
    >>> from judged import evaluate
    >>> from judged.slicing.by_slice import by_slice
    >>> from judged.slicing.slices import slice_topics
    >>> qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 1}}
    >>> scores = evaluate(qrels, {"a": ["d"], "b": ["x", "d"], "c": ["d"]}, "RR")
    >>> kinds = slice_topics({"a": {"kind": "law"}, "b": {"kind": "news"}, "c": {"kind": "law"}}, "kind", minimum=1)
    >>> found = by_slice(scores, kinds, ci="none")
    >>> found.value("kind=law"), found.value("kind=news"), found.average("mean of slices").value
    (1.0, 0.5, 0.75)
    """

    scores: Scores
    slicing: Slicing
    method: IntervalMethod
    estimates: tuple[SliceEstimate, ...] = field(repr=False)
    averages: tuple[Average, ...] = field(repr=False)
    findings: tuple[SliceFinding, ...] = field(repr=False)
    tests: int
    weights: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """``all topics``, then the slices as they are shown: small ones last."""
        return tuple(dict.fromkeys(one.slice for one in self.estimates))

    def estimate(self, name: str = ALL, run: str | None = None, measure: str | None = None) -> SliceEstimate:
        """Give one number; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If there is no such slice, run or measure.
        """
        wanted = (name, *self._of(run, measure))
        found = [one for one in self.estimates if (one.slice, one.estimate.run, one.estimate.measure) == wanted]
        if not found:
            raise InputError(f"no slice {name!r}", fix=f"one of {', '.join(self.names)}")
        return found[0]

    def value(self, name: str = ALL, run: str | None = None, measure: str | None = None) -> float:
        """Give the value of the same."""
        return self.estimate(name, run, measure).estimate.value

    def average(self, name: str = TOPIC_MEAN, run: str | None = None, measure: str | None = None) -> Average:
        """Give one way to average; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If it was not made: there is no mean of slices that overlap.
        """
        wanted = (name, *self._of(run, measure))
        found = [one for one in self.averages if (one.name, one.run, one.measure) == wanted]
        if not found:
            known = ", ".join(dict.fromkeys(one.name for one in self.averages))
            raise InputError(f"no {name} was made", fix=f"one of {known}" if known else "take a measure that is a mean")
        return found[0]

    def _of(self, run: str | None, measure: str | None) -> tuple[str, str]:
        """Fill in the run and the measure that are not named."""
        runs, measures = self.scores.run_names, self.scores.measure_names
        if run is not None and run not in runs:
            raise InputError(f"no run {run!r}", fix=f"one of {', '.join(runs)}")
        return run or runs[0], measure_named(measure, measures)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        from judged.slicing.sentences import sentences_of_scores

        return sentences_of_scores(self)

    def table(self, measure: str | None = None, *, run: str | None = None) -> Table:
        """Lay out one row a slice. With one run, or one that is named: a column a measure; else a column a run.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        from judged.slicing.layout import score_table

        name, which = self._of(run, measure)
        if len(self.scores.runs) == 1 or run is not None:
            return score_table(self, [(name, one, one) for one in self.scores.measure_names], "slice")
        return score_table(self, [(one, which, one) for one in self.scores.run_names], which)

    def average_table(self) -> Table:
        """Lay out one row a way to average and run, one column a measure."""
        from judged.slicing.layout import average_table

        return average_table(self)

    def text(self, width: int | None = None) -> str:
        """Write for a terminal."""
        from judged.slicing.layout import score_text

        return score_text(self, width)

    def markdown(self) -> str:
        """Write tables and sentences in Markdown."""
        from judged.slicing.layout import score_markdown

        return score_markdown(self)

    def csv(self) -> str:
        """Write every number in full precision."""
        from judged.slicing.document import score_rows

        return score_rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        from judged.slicing.document import score_document

        return score_document(self)

    def chart(self, measure: str | None = None, *, width: int = 420, height: int | None = None) -> Any:
        """Draw the runs' numbers with intervals by slice, for one measure; a chart of altair.

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        from judged.slicing.charts import score_chart

        return score_chart(self, self._of(None, measure)[1], width=width, height=height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return self.table().html(notes=(*self.sentences, *self.warnings))
