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
    """One document of one topic, whose label should be looked at."""

    query_id: str
    doc_id: str
    # `false positive`: among the first k of a run, and judged below the level; `false negative`: relevant, and not
    # among the first k of every run; `unjudged`: among the first k of a run, without a judgment
    kind: ReviewKind
    grade: float | None  # the grade it has; None: unjudged
    other_grade: float  # the grade that the changes are for: 0 for a false negative, the highest one for the others
    ranks: Mapping[str, int | None]  # by run; None: not returned
    # by run: how much its score on the topic would change with the other grade. NaN where a score is undefined.
    change: Mapping[str, float]
    difference: float | None = None  # how much the second run's lead over the first would change; None for one run
    turns: bool = False  # whether the other of the first two runs would then be the better one on the topic
    slices: tuple[str, ...] = ()  # those that the topic is in
    query: str = ""  # where they were given
    title: str = ""  # where they were given
    text: str = ""  # where they were given

    @property
    def missed(self) -> tuple[str, ...]:
        """The runs that did not return it."""
        return tuple(run for run, rank in self.ranks.items() if rank is None)


@dataclass(frozen=True, eq=False, repr=False)
class ReviewTable:
    """Labels to look at as numbers: what tables, sentences and files are made of."""

    measure: str
    k: int  # how many documents of each topic count as shown
    rel: float  # from this grade on a document is relevant
    highest: float  # the grade that false positives and unjudged documents are tried with
    runs: tuple[str, ...]
    kinds: tuple[ReviewKind, ...]  # those that are listed
    items: tuple[ReviewItem, ...] = field(repr=False)
    found: Mapping[ReviewKind, int]  # how many items there are of each kind, listed or not
    turning: int  # how many items would turn which of the first two runs is better on their topic
    rates: tuple[ReviewRates, ...] = field(repr=False)  # by run and slice
    provenance: Provenance = field(repr=False)  # what the numbers rest on
    warnings: tuple[str, ...] = ()
