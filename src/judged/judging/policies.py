"""The choices of a call: which topics count, and how documents are put in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.data import Run

TopicPolicy: TypeAlias = Literal["qrels", "run", "both"]
TiePolicy: TypeAlias = Literal["docid", "docid-rising", "stable", "rank"]
Precision: TypeAlias = Literal["double", "single"]
_DEEPEST = 2**62


@dataclass(frozen=True)
class Ranking:
    """How a run's documents were ranked.

    Parameters
    ----------
    ties
        ``docid``: documents with the same score stand in falling byte order of their ids (trec_eval's rule);
        ``docid-rising``: in rising order; ``stable``: in the order in which the run lists them. ``rank``: the
        rank column orders the documents, and the scores are not looked at.
    depth
        How many documents of each topic count; None for all.
    precision
        What of the scores is compared: ``double`` all of it, ``single`` what fits 32 bits (trec_eval before 10).
    """

    ties: TiePolicy = "docid"
    depth: int | None = None
    precision: Precision = "double"

    def __post_init__(self) -> None:
        if self.ties not in get_args(TiePolicy):
            raise InputError(f"no tie policy {self.ties!r}", fix=f"one of {', '.join(get_args(TiePolicy))}")
        if self.precision not in get_args(Precision):
            raise InputError(f"no precision {self.precision!r}", fix=f"one of {', '.join(get_args(Precision))}")
        whole = isinstance(self.depth, (int, np.integer)) and not isinstance(self.depth, bool)
        if self.depth is not None and whole and self.depth > _DEEPEST:
            raise InputError("the depth is more than any ranking has", fix="give None for all")
        if self.depth is not None and not (whole and self.depth >= 1):
            raise InputError(
                f"the depth {self.depth} makes no sense", fix="give a whole number from 1, or None for all"
            )

    def refuse(self, run: Run) -> None:
        """Refuse a run that has nothing to be ranked by so."""
        if self.ties == "rank" and not run.has_ranks:
            raise InputError("it has no rank column", fix="choose another order for ties", path=run.where)
        if self.depth is not None and not run.has_scores and self.ties != "rank":
            raise InputError("a run without scores has no first documents", fix="leave out the depth", path=run.where)
