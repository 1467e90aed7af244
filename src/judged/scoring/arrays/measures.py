"""Measures of relevance over arrays: precision, recall, success, reciprocal rank and average precision.

The parameters are those of `judged.arrays.ndcg`; a document is relevant from the grade `rel` on. Averaged ties have
their own formula where the mean of a group's gains does not give it.
"""

from __future__ import annotations

from typing import Any, Literal

from array_api_compat import is_numpy_array

from judged.errors import InputError
from judged.scoring.arrays.ranking import Cutoff, Ranking, Ties
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
    """Discounted cumulated gain of each query, as `judged.DCG`.

    Parameters
    ----------
    scores, grades
        Queries x documents, of any library of the array API. A document without a judgment has grade 0.
    where
        True where there is a document; None for everywhere.
    cutoff
        How many documents count; None for all. Several cutoffs give an axis more.
    ties
        ``position`` keeps equal scores in the order in which they are given; ``averaged`` is the mean over all orders.
    gain
        ``linear`` is the grade, ``exp2`` is 2^grade - 1.

    Returns
    -------
    array
        A number a query, in the library and on the device of `scores`: (queries,), or (queries, cutoffs). It is of
        the floating type of the scores, but at least float32, and is computed in float64 where the device has it.

    Raises
    ------
    InputError
        If the shapes do not fit; in NumPy, if a score is NaN or a grade is not finite. In other libraries the number
        of such a query is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> dcg(np.array([[0.9, 0.8, 0.7]]), np.array([[3, 0, 2]]), gain="exp2", cutoff=[1, 3]).tolist()
    [[7.0, 8.5]]
    """
    ranking = Ranking.of(scores, grades, where, cutoff, ties)
    return ranking.result(ranking.added_up(ranking.expected(_gains(ranking, gain)) / _discounts(ranking)))


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
    """Normalised DCG of each query, as `judged.nDCG`: the parameters are those of `dcg`.

    `undefined` is the value of a query in which nothing gains; NaN lets it be left out of a mean.

    Examples
    --------
    Two documents with one score: the mean of both orders.

    >>> import numpy as np
    >>> ndcg(np.array([[0.5, 0.5]]), np.array([[1, 0]]), ties="averaged").round(4).tolist()
    [0.8155]
    """
    ranking = Ranking.of(scores, grades, where, cutoff, ties)
    worth, discount = _gains(ranking, gain), _discounts(ranking)
    found = ranking.added_up(ranking.expected(worth) / discount)
    ideal = ranking.added_up(-ranking.xp.sort(-worth, axis=-1, stable=False)[..., : ranking.depth] / discount)
    return ranking.result(ranking.divided(found, ideal, undefined))


def err(scores: Any, grades: Any, *, where: Any = None, cutoff: Cutoff = None, max: float) -> Any:
    """Expected reciprocal rank of each query, as `judged.ERR`, equal scores in the order in which they are given.

    The parameters are those of `dcg`; `max` is the highest grade of the scale. There is no ``ties="averaged"``: the
    mean over all orders is not the ERR of mean gains, and has no short form.

    Examples
    --------
    >>> import numpy as np
    >>> err(np.array([[0.9, 0.8]]), np.array([[2, 1]]), max=2).tolist()
    [0.78125]
    """
    ranking = Ranking.of(scores, grades, where, cutoff, "position")
    _check_scale(ranking, max)
    satisfied = ranking.sorted(_gains(ranking, "exp2")) / 2.0**max
    seen = ranking.xp.cumulative_prod(1.0 - satisfied, axis=-1, include_initial=True)[..., :-1]
    return ranking.result(ranking.added_up(satisfied * seen / ranking.ranks))


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
    """Rank-biased precision of each query with the persistence p, as `judged.RBP`.

    With `max`, the highest grade of the scale, a document gains its share of it; without, 1 from the grade `rel` on.
    The other parameters are those of `ndcg`.

    Examples
    --------
    >>> import numpy as np
    >>> rbp(np.array([[0.9, 0.8, 0.7]]), np.array([[1, 0, 1]]), p=0.5).tolist()
    [0.625]
    """
    if not 0 < p < 1 or (max is not None and not max > 0):
        raise InputError(f"p={p!r}, max={max!r} make no sense", fix="0 < p < 1, and max is the highest of the scale")
    ranking = Ranking.of(scores, grades, where, cutoff, ties)
    if max is not None:
        _check_scale(ranking, max)
    worth = ranking.relevant(rel) if max is None else _gains(ranking, "linear") / max
    weight = ranking.by_rank(lambda ranks: powers(p, len(ranks)))
    found = (1.0 - p) * ranking.added_up(ranking.expected(worth) * weight)
    return ranking.result(ranking.xp.where(ranking.total(worth) > 0, found, undefined))


def _check_scale(ranking: Ranking, max: float) -> None:
    if is_numpy_array(ranking.grades) and ranking.grades.max(initial=0.0) > max:
        raise InputError(f"a grade is {ranking.grades.max():g}, but max={max:g}", fix="max is the highest of the scale")


def _gains(ranking: Ranking, gain: Gain) -> Any:
    if gain not in ("linear", "exp2"):
        raise InputError(f"gain={gain!r} is not known", fix="gain='linear' or 'exp2'")
    if is_numpy_array(ranking.grades):
        return gains(ranking.grades, gain)
    xp = ranking.xp
    linear = xp.where(ranking.grades > 0, ranking.grades, 0.0)
    return linear if gain == "linear" else 2.0**linear - 1.0


def _discounts(ranking: Ranking) -> Any:
    return ranking.by_rank(lambda ranks: discounts(ranks, "log2", 2.0))
