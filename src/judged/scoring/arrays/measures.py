"""Measures of relevance over arrays: precision, recall, success, reciprocal rank and average precision.

The parameters are those of `judged.arrays.ndcg`; a document is relevant if its grade is at least `rel`. Averaged ties
have a formula of their own if the mean gain of a tie group does not give it.
"""

from __future__ import annotations

from typing import Any, Literal

from array_api_compat import is_numpy_array

from judged.errors import InputError
from judged.scoring.arrays.ranking import Cutoff, RankedBatch, Ties
from judged.scoring.measures.diversity import powers
from judged.scoring.measures.gain import discounts, gains


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
    """Compute the share of relevant documents in the first k ranks, one number per query, as `judged.P`.

    Parameters
    ----------
    scores, grades, where, cutoff, ties
        As in `dcg`.
    rel
        Lowest relevant grade.
    undefined
        Value of a query without relevant documents.

    Returns
    -------
    array
        As in `dcg`.

    Examples
    --------
    >>> import numpy as np
    >>> precision(np.array([[0.9, 0.8, 0.7]]), np.array([[1, 0, 2]]), cutoff=2).tolist()
    [0.5]
    """
    ranking, relevant, num_relevant = _relevant(scores, grades, where, cutoff, ties, rel)
    returned = ranking.cumulative_sum(ranking.expected(relevant))
    if ranking.cutoff is None or isinstance(ranking.cutoff, int):
        share = returned / float(ranking.cutoff or max(ranking.width, 1))
    else:
        share = ranking.xp.stack([returned[..., i] / float(k) for i, k in enumerate(ranking.cutoff)], axis=-1)
    return ranking.result(ranking.xp.where(num_relevant > 0, share, undefined))


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
    """Compute the share of the relevant documents that are among the first k, one number per query, as `judged.R`.

    Parameters
    ----------
    scores, grades, where, cutoff, ties
        As in `dcg`.
    rel
        Lowest relevant grade.
    undefined
        Value of a query without relevant documents.

    Returns
    -------
    array
        As in `dcg`.

    Examples
    --------
    >>> import numpy as np
    >>> recall(np.array([[0.9, 0.8, 0.7]]), np.array([[1, 0, 2]]), cutoff=2).tolist()
    [0.5]
    """
    ranking, relevant, num_relevant = _relevant(scores, grades, where, cutoff, ties, rel)
    return ranking.result(ranking.divided(ranking.cumulative_sum(ranking.expected(relevant)), num_relevant, undefined))


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
    """Compute 1 if a relevant document is among the first k, else 0, one number per query, as `judged.Success`.

    Averaged over ties it is the probability of a relevant document.

    Parameters
    ----------
    scores, grades, where, cutoff, ties
        As in `dcg`.
    rel
        Lowest relevant grade.
    undefined
        Value of a query without relevant documents.

    Returns
    -------
    array
        As in `dcg`.

    Examples
    --------
    >>> import numpy as np
    >>> success(np.array([[0.9, 0.8, 0.7]]), np.array([[1, 0, 2]]), cutoff=2).tolist()
    [1.0]
    """
    ranking, relevant, num_relevant = _relevant(scores, grades, where, cutoff, ties, rel)
    value = 1.0 - ranking.at_cutoffs(ranking.xp.cumulative_prod(1.0 - _p_relevant(ranking, relevant), axis=-1), 1.0)
    return ranking.result(ranking.xp.where(num_relevant > 0, value, undefined))


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
    """Compute 1 / the rank of the first relevant document (0 without one), one number per query, as `judged.RR`.

    Parameters
    ----------
    scores, grades, where, cutoff, ties
        As in `dcg`.
    rel
        Lowest relevant grade.
    undefined
        Value of a query without relevant documents.

    Returns
    -------
    array
        As in `dcg`.

    Examples
    --------
    >>> import numpy as np
    >>> reciprocal_rank(np.array([[0.5, 0.5]]), np.array([[1, 0]]), ties="averaged").tolist()  # 1 or 1/2
    [0.75]
    """
    ranking, relevant, num_relevant = _relevant(scores, grades, where, cutoff, ties, rel)
    p_relevant = _p_relevant(ranking, relevant)
    p_none_above = ranking.xp.cumulative_prod(1.0 - p_relevant, axis=-1, include_initial=True)[..., :-1]
    value = ranking.cumulative_sum(p_relevant * p_none_above / ranking.ranks)
    return ranking.result(ranking.xp.where(num_relevant > 0, value, undefined))


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
    """Compute the mean precision at the ranks of relevant documents, one number per query, as `judged.AP`.

    Parameters
    ----------
    scores, grades, where, cutoff, ties
        As in `dcg`.
    rel
        Lowest relevant grade.
    undefined
        Value of a query without relevant documents.

    Returns
    -------
    array
        As in `dcg`.

    Examples
    --------
    >>> import numpy as np
    >>> average_precision(np.array([[0.9, 0.8, 0.7]]), np.array([[1, 0, 2]])).tolist()
    [0.8333333333333333]
    """
    ranking, relevant, num_relevant = _relevant(scores, grades, where, cutoff, ties, rel)
    ordered = ranking.sorted(relevant)
    if ties == "position" or not ranking.width:
        running = ranking.xp.cumulative_sum(ordered, axis=-1)
        total = ranking.cumulative_sum(ordered * (running / ranking.ranks))
        return ranking.result(ranking.divided(total, num_relevant, undefined))
    # Given a relevant document at a position, each of the other positions of its tie group is equally likely to have
    # one of the r - 1 other relevant documents.
    tied, size = ranking.group_sum(ordered), ranking.size
    others = ranking.xp.where(size > 1.0, size - 1.0, 1.0)
    running = ranking.above(ordered) + 1.0 + ranking.position * (tied - 1.0) / others
    total = ranking.cumulative_sum(tied / size * running / ranking.ranks)
    return ranking.result(ranking.divided(total, num_relevant, undefined))


def _relevant(
    scores: Any, grades: Any, where: Any, cutoff: Cutoff, ties: Ties, rel: float
) -> tuple[RankedBatch, Any, Any]:
    """Sort, mark the relevant documents with 1, and count them."""
    ranking = RankedBatch.of(scores, grades, where, cutoff, ties)
    relevant = ranking.relevant(rel)
    return ranking, relevant, ranking.total(relevant)


def _p_relevant(ranking: RankedBatch, relevant: Any) -> Any:
    """Return the probability that a rank is relevant, given that no rank above it in its tie group is."""
    ordered = ranking.sorted(relevant)
    if ranking.ties == "position" or not ranking.width:
        return ordered
    probability = ranking.group_sum(ordered) / (ranking.size - ranking.position)
    return ranking.xp.where(probability < 1.0, probability, 1.0)


Gain = Literal["linear", "exp2"]


def dcg(
    scores: Any,
    grades: Any,
    *,
    where: Any = None,
    cutoff: Cutoff = None,
    ties: Ties = "position",
    gain: Gain = "linear",
) -> Any:
    """Compute the discounted cumulated gain of each query, as `judged.DCG`.

    Parameters
    ----------
    scores, grades
        Queries x documents, of any library of the array API. A document without a judgment has grade 0.
    where
        Mask of the documents: False for padding; None (default) for all True.
    cutoff
        Number of documents that count; None (default) for all. Several cutoffs add an axis.
    ties
        ``position`` (default) keeps the order of equal scores; ``averaged`` is the mean over all orders.
    gain
        ``linear`` (default) is the grade, ``exp2`` is 2^grade - 1.

    Returns
    -------
    array
        One number per query, in the library and on the device of `scores`: (queries,), or (queries, cutoffs). It has
        the floating type of the scores, but at least float32, and is computed in float64 if the device has it.

    Raises
    ------
    InputError
        If the shapes differ; in NumPy, if a score is NaN or a grade is not finite. In other libraries the number
        of such a query is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> dcg(np.array([[0.9, 0.8, 0.7]]), np.array([[3, 0, 2]]), gain="exp2", cutoff=[1, 3]).tolist()
    [[7.0, 8.5]]
    """
    ranking = RankedBatch.of(scores, grades, where, cutoff, ties)
    return ranking.result(ranking.cumulative_sum(ranking.expected(_gains(ranking, gain)) / _discounts(ranking)))


def ndcg(
    scores: Any,
    grades: Any,
    *,
    where: Any = None,
    cutoff: Cutoff = None,
    ties: Ties = "position",
    gain: Gain = "linear",
    undefined: float = 0.0,
) -> Any:
    """Compute the normalized DCG of each query, as `judged.nDCG`: the parameters are those of `dcg`.

    `undefined` is the value of a query without gains; NaN lets you leave it out of a mean.

    Parameters
    ----------
    scores, grades, where, cutoff, ties, gain
        As in `dcg`.
    undefined
        Value of a query without gains.

    Returns
    -------
    array
        As in `dcg`.

    Examples
    --------
    Two documents with the same score: the mean of both orders.

    >>> import numpy as np
    >>> ndcg(np.array([[0.5, 0.5]]), np.array([[1, 0]]), ties="averaged").round(4).tolist()
    [0.8155]
    """
    ranking = RankedBatch.of(scores, grades, where, cutoff, ties)
    gain_values, discount = _gains(ranking, gain), _discounts(ranking)
    dcg_values = ranking.cumulative_sum(ranking.expected(gain_values) / discount)
    best_order = -ranking.xp.sort(-gain_values, axis=-1, stable=False)[..., : ranking.depth]
    return ranking.result(ranking.divided(dcg_values, ranking.cumulative_sum(best_order / discount), undefined))


def err(scores: Any, grades: Any, *, where: Any = None, cutoff: Cutoff = None, max: float) -> Any:
    """Compute the expected reciprocal rank of each query, as `judged.ERR`, equal scores in the order of the input.

    The parameters are those of `dcg`; `max` is the highest grade of the scale. There is no ``ties="averaged"``: the
    mean over all orders is not the ERR of mean gains, and has no short formula.

    Parameters
    ----------
    scores, grades, where, cutoff
        As in `dcg`.
    max
        Highest grade of the scale.

    Returns
    -------
    array
        As in `dcg`.

    Examples
    --------
    >>> import numpy as np
    >>> err(np.array([[0.9, 0.8]]), np.array([[2, 1]]), max=2).tolist()
    [0.78125]
    """
    ranking = RankedBatch.of(scores, grades, where, cutoff, "position")
    _check_scale(ranking, max)
    satisfied = ranking.sorted(_gains(ranking, "exp2")) / 2.0**max
    p_reached = ranking.xp.cumulative_prod(1.0 - satisfied, axis=-1, include_initial=True)[..., :-1]
    return ranking.result(ranking.cumulative_sum(satisfied * p_reached / ranking.ranks))


def rbp(
    scores: Any,
    grades: Any,
    *,
    p: float,
    where: Any = None,
    cutoff: Cutoff = None,
    ties: Ties = "position",
    rel: float = 1.0,
    max: float | None = None,
    undefined: float = 0.0,
) -> Any:
    """Compute the rank-biased precision of each query with the persistence p, as `judged.RBP`.

    With `max`, the highest grade of the scale, a document gains its share of it; without, 1 if its grade is at least
    `rel`.
    The other parameters are those of `ndcg`.

    Parameters
    ----------
    scores, grades, where, cutoff, ties
        As in `dcg`.
    p
        Persistence, above 0 and below 1.
    rel
        Lowest relevant grade.
    max
        Highest grade of the scale.
    undefined
        Value of a query without relevant documents.

    Returns
    -------
    array
        As in `dcg`.

    Raises
    ------
    InputError
        If `p` or `max` is out of range, or as in `dcg`.

    Examples
    --------
    >>> import numpy as np
    >>> rbp(np.array([[0.9, 0.8, 0.7]]), np.array([[1, 0, 1]]), p=0.5).tolist()
    [0.625]
    """
    if not 0 < p < 1 or (max is not None and not max > 0):
        raise InputError(
            f"`p` must be between 0 and 1, and `max` must be positive, got p={p!r}, max={max!r}", fix="use p=0.8"
        )
    ranking = RankedBatch.of(scores, grades, where, cutoff, ties)
    if max is not None:
        _check_scale(ranking, max)
    gain_values = ranking.relevant(rel) if max is None else _gains(ranking, "linear") / max
    weight = ranking.by_rank(lambda ranks: powers(p, len(ranks)))
    value = (1.0 - p) * ranking.cumulative_sum(ranking.expected(gain_values) * weight)
    return ranking.result(ranking.xp.where(ranking.total(gain_values) > 0, value, undefined))


def _check_scale(ranking: RankedBatch, max: float) -> None:
    if is_numpy_array(ranking.grades) and ranking.grades.max(initial=0.0) > max:
        raise InputError(
            f"`max` must be at least the highest grade {ranking.grades.max():g}, got {max:g}",
            fix="use the highest grade of the scale",
        )


def _gains(ranking: RankedBatch, gain: Gain) -> Any:
    if gain not in ("linear", "exp2"):
        raise InputError(f"unknown `gain` {gain!r}", fix="use gain='linear' or 'exp2'")
    if is_numpy_array(ranking.grades):
        return gains(ranking.grades, gain)
    xp = ranking.xp
    linear = xp.where(ranking.grades > 0, ranking.grades, 0.0)
    return linear if gain == "linear" else 2.0**linear - 1.0


def _discounts(ranking: RankedBatch) -> Any:
    return ranking.by_rank(lambda ranks: discounts(ranks, "log2", 2.0))
