"""Labels to look at again, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.diagnosis.review.rates import ReviewRates
    from judged.evaluation.provenance import Provenance

ReviewKind: TypeAlias = Literal["false positive", "false negative", "unjudged"]
KINDS: tuple[ReviewKind, ...] = get_args(ReviewKind)


@dataclass(frozen=True)
class ReviewItem:
    """One document of one topic, whose label should be looked at.

    Attributes
    ----------
    query_id, doc_id : str
    kind : str
        ``false positive``: among the first k of a run, and judged below the level; ``false negative``: relevant, and
        not among the first k of every run; ``unjudged``: among the first k of a run, without a judgment.
    grade : float or None
        The grade it has; None: unjudged.
    other_grade : float
        The grade that the changes are for: 0 for a false negative, the highest one for the others.
    ranks : dict of int or None
        By run; None: not returned.
    change : dict of float
        By run: how much its score on the topic would change with the other grade. NaN where a score is undefined.
    difference : float or None
        How much the second run's lead over the first would change; None for one run.
    turns : bool
        Whether the other of the first two runs would then be the better one on the topic.
    slices : tuple of str
        Those that the topic is in.
    query, title, text : str
        Where they were given.
    """

    query_id: str
    doc_id: str
    kind: ReviewKind
    grade: float | None
    other_grade: float
    ranks: Mapping[str, int | None]
    change: Mapping[str, float]
    difference: float | None = None
    turns: bool = False
    slices: tuple[str, ...] = ()
    query: str = ""
    title: str = ""
    text: str = ""

    @property
    def missed(self) -> tuple[str, ...]:
        """The runs that did not return it."""
        return tuple(run for run, rank in self.ranks.items() if rank is None)


@dataclass(frozen=True, eq=False, repr=False)
class ReviewTable:
    """Labels to look at as numbers: what tables, sentences and files are made of.

    Attributes
    ----------
    measure : str
    k : int
        How many documents of each topic count as shown.
    rel : float
        From this grade on a document is relevant.
    highest : float
        The grade that false positives and unjudged documents are tried with.
    runs : tuple of str
    kinds : tuple of str
        Those that are listed.
    items : tuple of ReviewItem
    found : dict of int
        How many items there are of each kind, listed or not.
    turning : int
        How many items would turn which of the first two runs is better on their topic.
    rates : tuple of ReviewRates
        By run and slice.
    provenance : Provenance
        What the numbers rest on.
    warnings : tuple of str
    """

    measure: str
    k: int
    rel: float
    highest: float
    runs: tuple[str, ...]
    kinds: tuple[ReviewKind, ...]
    items: tuple[ReviewItem, ...] = field(repr=False)
    found: Mapping[ReviewKind, int]
    turning: int
    rates: tuple[ReviewRates, ...] = field(repr=False)
    provenance: Provenance = field(repr=False)
    warnings: tuple[str, ...] = ()
