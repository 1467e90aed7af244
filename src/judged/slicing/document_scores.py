"""Scores by group of documents as numbers: what the forms of `by_document` stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.evaluation import Estimate, Scores
    from judged.stats import IntervalMethod

ALL = "all documents"


@dataclass(frozen=True)
class GroupEstimate:
    """One number: a measure of a run, where only documents of one group are relevant."""

    group: str  # its name, or `all documents`
    estimate: Estimate  # the aggregate with its interval, over the topics that have a relevant document of the group
    topics: int  # how many these are
    relevant: int  # relevant documents of the group, counted for each topic
    small: bool  # whether there are fewer topics than a mean should rest on


@dataclass(frozen=True, eq=False)
class DocumentScores:
    """Scores by group of documents: the part of a result that its forms stand on."""

    by: str  # the column of documents that names their group
    estimates: tuple[GroupEstimate, ...]  # by group, run and measure; `all documents` first, `unknown` ones last
    scores: Mapping[str, Scores] = field(repr=False)  # from group to the `Scores` of its topics
    method: IntervalMethod  # how intervals were made
    minimum: int  # topics, below which a group is small
    warnings: tuple[str, ...] = ()  # what should be known before the numbers are used

    @property
    def groups(self) -> tuple[str, ...]:
        """``all documents``, then the groups."""
        return tuple(self.scores)

    def estimate(self, group: str = ALL, run: str | None = None, measure: str | None = None) -> GroupEstimate:
        """Give one number; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If there is no such group, run or measure.
        """
        whole = self.scores[ALL]
        known = (
            ("group", group, self.groups),
            ("run", run, whole.run_names),
            ("measure", measure, whole.measure_names),
        )
        for what, name, names in known:
            if name is not None and name not in names:
                raise InputError(f"no {what} {name!r}", fix=f"one of {', '.join(names)}")
        wanted = group, run or whole.run_names[0], measure or whole.measure_names[0]
        found = (one for one in self.estimates if (one.group, one.estimate.run, one.estimate.measure) == wanted)
        return next(found)
