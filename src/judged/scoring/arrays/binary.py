"""Measures of relevance over arrays: precision, recall, success, reciprocal rank and average precision.

The parameters are those of `judged.arrays.ndcg`; a document is relevant from the grade `rel` on. Averaged ties have
their own formula where the mean of a group's gains does not give it.
"""

from __future__ import annotations

from typing import Any

from judged.scoring.arrays.ranking import Cutoff, Ranking, Ties


def precision(
    scores: Any,
    grades: Any,
    *,
    cutoff: Cutoff,
    where: Any = None,
    ties: Ties = "position",
    rel: float = 1.0,
    undefined: float = 0.0,
) -> Any:
    """Share of the first k places that hold a relevant document, a number a query, as `judged.P`."""
    ranking, relevant, known = _relevant(scores, grades, where, cutoff, ties, rel)
    found = ranking.added_up(ranking.expected(relevant))
    if ranking.cutoff is None or isinstance(ranking.cutoff, int):
        share = found / float(ranking.cutoff or max(ranking.width, 1))
    else:
        share = ranking.xp.stack([found[..., at] / float(k) for at, k in enumerate(ranking.cutoff)], axis=-1)
    return ranking.result(ranking.xp.where(known > 0, share, undefined))


def recall(
    scores: Any,
    grades: Any,
    *,
    where: Any = None,
    cutoff: Cutoff = None,
    ties: Ties = "position",
    rel: float = 1.0,
    undefined: float = 0.0,
) -> Any:
    """Share of the relevant documents that are among the first k, a number a query, as `judged.R`."""
    ranking, relevant, known = _relevant(scores, grades, where, cutoff, ties, rel)
    return ranking.result(ranking.divided(ranking.added_up(ranking.expected(relevant)), known, undefined))


def success(
    scores: Any,
    grades: Any,
    *,
    where: Any = None,
    cutoff: Cutoff = None,
    ties: Ties = "position",
    rel: float = 1.0,
    undefined: float = 0.0,
) -> Any:
    """1 where a relevant document is among the first k, else 0, a number a query, as `judged.Success`.

    Averaged over ties it is the probability of that.
    """
    ranking, relevant, known = _relevant(scores, grades, where, cutoff, ties, rel)
    value = 1.0 - ranking.at_cutoffs(ranking.xp.cumulative_prod(1.0 - _chance(ranking, relevant), axis=-1), 1.0)
    return ranking.result(ranking.xp.where(known > 0, value, undefined))


def reciprocal_rank(
    scores: Any,
    grades: Any,
    *,
    where: Any = None,
    cutoff: Cutoff = None,
    ties: Ties = "position",
    rel: float = 1.0,
    undefined: float = 0.0,
) -> Any:
    """1 divided by the rank of the first relevant document, 0 where there is none, a number a query, as `judged.RR`.

    Examples
    --------
    >>> import numpy as np
    >>> reciprocal_rank(np.array([[0.5, 0.5]]), np.array([[1, 0]]), ties="averaged").tolist()  # 1 or 1/2
    [0.75]
    """
    ranking, relevant, known = _relevant(scores, grades, where, cutoff, ties, rel)
    chance = _chance(ranking, relevant)
    unseen = ranking.xp.cumulative_prod(1.0 - chance, axis=-1, include_initial=True)[..., :-1]
    value = ranking.added_up(chance * unseen / ranking.ranks)
    return ranking.result(ranking.xp.where(known > 0, value, undefined))


def average_precision(
    scores: Any,
    grades: Any,
    *,
    where: Any = None,
    cutoff: Cutoff = None,
    ties: Ties = "position",
    rel: float = 1.0,
    undefined: float = 0.0,
) -> Any:
    """Precision at each relevant document, averaged over all relevant ones, a number a query, as `judged.AP`."""
    ranking, relevant, known = _relevant(scores, grades, where, cutoff, ties, rel)
    ordered = ranking.sorted(relevant)
    if ties == "position" or not ranking.width:
        so_far = ranking.xp.cumulative_sum(ordered, axis=-1)
        total = ranking.added_up(ordered * (so_far / ranking.ranks))
        return ranking.result(ranking.divided(total, known, undefined))
    # A relevant document at this place has this many of its r tied ones above it: each of the others is as likely.
    tied, size = ranking.group_sum(ordered), ranking.size
    others = ranking.xp.where(size > 1.0, size - 1.0, 1.0)
    so_far = ranking.above(ordered) + 1.0 + ranking.place * (tied - 1.0) / others
    return ranking.result(ranking.divided(ranking.added_up(tied / size * so_far / ranking.ranks), known, undefined))


def _relevant(scores: Any, grades: Any, where: Any, cutoff: Cutoff, ties: Ties, rel: float) -> tuple[Ranking, Any, Any]:
    """Sort, mark the relevant documents with 1, and count them."""
    ranking = Ranking.of(scores, grades, where, cutoff, ties)
    relevant = ranking.relevant(rel)
    return ranking, relevant, ranking.total(relevant)


def _chance(ranking: Ranking, relevant: Any) -> Any:
    """Give the chance that each rank holds a relevant document where no rank above it among its ties holds one."""
    ordered = ranking.sorted(relevant)
    if ranking.ties == "position" or not ranking.width:
        return ordered
    chance = ranking.group_sum(ordered) / (ranking.size - ranking.place)
    return ranking.xp.where(chance < 1.0, chance, 1.0)
