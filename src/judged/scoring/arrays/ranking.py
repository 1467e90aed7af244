"""Rankings of arrays of queries x documents, with tie groups, in any array library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Literal, TypeAlias

import numpy as np

from judged.errors import InputError, MissingExtraError
from judged.results.types import cached_property

try:
    from array_api_compat import array_namespace, device, is_numpy_array
except ImportError:  # pragma: no cover
    raise MissingExtraError("array-api-compat", "arrays") from None

Ties: TypeAlias = Literal["position", "averaged"]
Cutoff: TypeAlias = int | Sequence[int] | None
_SHORT = 64  # documents up to which a stable sort is as fast as the alternative


def padded(scores: Any, grades: Any, offsets: Any, *, longest: int | None = None) -> tuple[Any, Any, Any]:
    """Pad ragged queries to one length: scores, grades and the mask of documents, each queries x longest.

    Parameters
    ----------
    scores, grades
        One entry per document, query after query: (documents,).
    offsets
        Start of each query, and end of the last: (queries + 1,).
    longest
        Number of documents of the longest query, or more. NumPy computes it; in other libraries it is required,
        because reading the offsets would synchronize the device.

    Returns
    -------
    tuple of array
        Scores, grades, and mask.

    Raises
    ------
    InputError
        If `longest` is missing outside NumPy; in NumPy, if it is too small, or the offsets do not fit.

    Examples
    --------
    >>> scores, grades, where = padded(np.array([0.1, 0.2, 0.9]), np.array([0, 1, 2]), np.array([0, 2, 3]))
    >>> grades.tolist(), where.tolist()
    ([[0, 1], [2, 2]], [[True, True], [True, False]])
    """
    xp = array_namespace(scores, grades, offsets)
    if is_numpy_array(offsets):
        most = int(np.diff(offsets).max(initial=0))
        if not len(scores) == len(grades) == offsets[-1:].sum():
            problem = f"{len(scores)} scores and {len(grades)} grades, but offsets end at {offsets[-1:].sum()}"
            raise InputError(problem, fix="the last offset must be the number of documents")
        if longest is not None and longest < most:
            raise InputError(f"`longest` is {longest}, but a query has {most} documents", fix=f"longest={most}")
        longest = most if longest is None else longest
    elif longest is None:
        raise InputError(
            "`longest` is required for arrays that are not NumPy arrays",
            fix="pass longest=, the largest number of documents of a query",
        )
    position = offsets[:-1, None] + xp.arange(longest, dtype=offsets.dtype, device=device(offsets))[None, :]
    where = position < offsets[1:, None]
    flat = xp.reshape(xp.where(where, position, offsets[:-1, None]), (-1,))
    flat = xp.where(flat < scores.shape[0], flat, 0)  # an empty query at the end begins after the last document
    return xp.reshape(xp.take(scores, flat), position.shape), xp.reshape(xp.take(grades, flat), position.shape), where


@dataclass
class RankedBatch:
    """Documents of each query sorted by score; masked documents are last, with grade 0.

    All arithmetic is in the widest floating type of the library and device: float64, or float32 if there is no
    other, as in JAX without x64. Sums of thousands of half-precision numbers would be wrong in the second digit.
    """

    xp: Any
    grades: Any
    """Grades in the working type, 0 where masked out: queries x documents."""
    ties: Ties
    cutoff: Cutoff
    depth: int
    """Number of ranks that are computed."""
    _levels: Any  # the grades in their own type, 0 where masked out
    _keys: Any  # what is sorted, smallest first
    _absent: Any  # whether a document is masked out; None where the keys say so, or nothing is
    _order: Any
    _invalid: Any  # whether a query holds NaN; None in NumPy, where such input is refused
    _result: Any  # the floating type of the results

    @classmethod
    def of(cls, scores: Any, grades: Any, where: Any, cutoff: Cutoff, ties: Ties) -> RankedBatch:
        """Sort each query; documents with equal scores keep their order."""
        xp = array_namespace(scores, grades)
        if ties not in ("position", "averaged"):
            raise InputError(f"unknown `ties` {ties!r}", fix="use ties='position' or 'averaged'")
        cutoff = _integer_cutoffs(cutoff)
        if not scores.ndim or scores.shape != grades.shape or (where is not None and where.shape != scores.shape):
            raise InputError(
                "scores, grades, and mask must have the same shape, got"
                f" {tuple(scores.shape)} and {tuple(grades.shape)}",
                fix="pass arrays of shape queries x documents",
            )
        if where is not None and not xp.isdtype(where.dtype, "bool"):
            raise InputError(
                f"the mask must be boolean, got {where.dtype}",
                fix="pass an array of True and False, such as grades >= 0",
            )
        scores, grades = (
            xp.astype(part, xp.int8) if xp.isdtype(part.dtype, "bool") else part for part in (scores, grades)
        )
        if is_numpy_array(scores):  # elsewhere to look at values would stop the device
            _check(scores if where is None else scores[where], grades if where is None else grades[where])
            invalid = None
        else:
            invalid, grades = _without_nan(xp, scores, grades, where)
        working, result = _floating_types(xp, scores)
        levels = grades if where is None else xp.where(where, grades, xp.zeros_like(grades))
        keys, absent = _keys(xp, scores, where)
        order, depth = _sort(xp, keys, absent, ties), scores.shape[-1]
        if cutoff is not None:  # what stands below the last cutoff is not looked at, but for ties of what stands above
            depth = min(depth, cutoff if isinstance(cutoff, int) else max(cutoff, default=1))
        order = order[..., :depth] if ties == "position" else order
        wide = xp.astype(levels, working, copy=False)
        return cls(xp, wide, ties, cutoff, depth, levels, keys, absent, order, invalid, result)

    def sorted(self, values: Any) -> Any:
        """Return the values of the documents in the order of the ranking."""
        return self.xp.take_along_axis(values, self._order, axis=-1)

    def expected(self, values: Any) -> Any:
        """Return values in the order of the ranking, averaged over each tie group."""
        values = self.sorted(values)
        if self.ties == "position" or not self.width:
            return values
        mean = self.group_sum(values) / self.size
        return self.xp.where(self.size == 1.0, values[..., : self.depth], mean)

    def group_sum(self, values: Any) -> Any:
        """Sum sorted values over the tie group of each document."""
        return self._up_to(values, self._groups[1]) - self.above(values)

    def above(self, values: Any) -> Any:
        """Sum sorted values over all documents above the tie group of each document."""
        return self._up_to(values, self._groups[0])

    def _up_to(self, values: Any, end: Any) -> Any:
        running = self.xp.cumulative_sum(values, axis=-1, include_initial=True)
        return self.xp.take_along_axis(running, end, axis=-1)

    @cached_property
    def size(self) -> Any:
        """Size of the tie group of each document."""
        begin, end = self._groups
        return self.xp.astype(end - begin, self.grades.dtype)

    @cached_property
    def position(self) -> Any:
        """Position of each document in its tie group, from 0."""
        return self.ranks - 1.0 - self.xp.astype(self._groups[0], self.grades.dtype)

    @cached_property
    def _groups(self) -> tuple[Any, Any]:
        """Start and end of the tie group of each document, counted from 0."""
        xp, keys = self.xp, self.sorted(self._keys)
        index = xp.broadcast_to(xp.arange(self.width, device=device(keys)), keys.shape)
        other = keys[..., 1:] != keys[..., :-1]
        if self._absent is not None:
            absent = self.sorted(self._absent)
            other = other | (absent[..., 1:] != absent[..., :-1])
        first = xp.concat((xp.ones_like(index[..., :1]) == 1, other), axis=-1)
        number = xp.cumulative_sum(xp.astype(first, index.dtype), axis=-1)[..., : self.depth]
        begins = xp.sort(xp.where(first, index, self.width), axis=-1, stable=False)
        begins = xp.concat((begins, xp.full_like(begins[..., :1], self.width)), axis=-1)
        return xp.take_along_axis(begins, number - 1, axis=-1), xp.take_along_axis(begins, number, axis=-1)

    @property
    def width(self) -> int:
        """Number of documents per query, including padding."""
        return self.grades.shape[-1]

    @cached_property
    def ranks(self) -> Any:
        """Ranks from 1, in the working type: (documents,)."""
        return self.xp.arange(1, self.depth + 1, dtype=self.grades.dtype, device=device(self.grades))

    def by_rank(self, compute: Callable[[Any], Any]) -> Any:
        """Compute a number for each rank as the measures do, in float64 on the host: (documents,).

        Only constants go to the device. Computed there in float32, the powers of p = 0.999 would be off by 1e-5.
        """
        values = np.asarray(compute(np.arange(1, self.depth + 1)), dtype=np.float64)
        if is_numpy_array(self.grades):
            return values
        return self.xp.asarray(values, dtype=self.grades.dtype, device=device(self.grades))

    def result(self, values: Any) -> Any:
        """Return the values in the type of the results, NaN for queries that hold NaN."""
        values = self.xp.astype(values, self._result, copy=False)
        return values if self._invalid is None else self.xp.where(self.per_query(self._invalid), float("nan"), values)

    def cumulative_sum(self, values: Any) -> Any:
        """Sum sorted values up to each cutoff, one addition after the other, as the measures do."""
        return self.at_cutoffs(self.xp.cumulative_sum(values, axis=-1))

    def at_cutoffs(self, values: Any, empty: float = 0.0) -> Any:
        """Return the value at each cutoff; several cutoffs add an axis."""
        xp = self.xp
        if not self.width:
            values = xp.full((*values.shape[:-1], 1), empty, dtype=values.dtype, device=device(values))
        if self.cutoff is None or isinstance(self.cutoff, int):
            return values[..., min(self.cutoff or values.shape[-1], values.shape[-1]) - 1]
        return xp.stack([values[..., min(k, values.shape[-1]) - 1] for k in self.cutoff], axis=-1)

    def per_query(self, values: Any) -> Any:
        """Add the axis of the cutoffs to one number per query, if there is one."""
        return values if self.cutoff is None or isinstance(self.cutoff, int) else values[..., None]

    def total(self, values: Any) -> Any:
        """Sum over all documents of each query, with the axis of the cutoffs."""
        return self.per_query(self.xp.sum(values, axis=-1))

    def relevant(self, rel: float) -> Any:
        """Mark with 1 the documents with at least grade `rel`, which must be above 0, so that padding never counts."""
        if rel <= 0:
            raise InputError(
                f"`rel` must be above 0, because documents without a judgment have grade 0, got {rel:g}",
                fix="use rel=1",
            )
        # In the type of the grades: 0.7 in float32 is less than 0.7 in float64, and was meant to be relevant.
        floating = self.xp.isdtype(self._levels.dtype, "real floating")
        return self.xp.astype((self._levels if floating else self.grades) >= rel, self.grades.dtype)

    def divided(self, above: Any, below: Any, undefined: float = 0.0) -> Any:
        """Divide; where the divisor is 0, return `undefined`."""
        is_positive = below > 0
        return self.xp.where(is_positive, above / self.xp.where(is_positive, below, 1.0), undefined)


def _floating_types(xp: Any, scores: Any) -> tuple[Any, Any]:
    """Return the type to compute in, and that of the results: the type of the scores, but at least float32."""
    dtypes = xp.__array_namespace_info__().dtypes(kind="real floating", device=device(scores))
    working = dtypes.get("float64", xp.float32)
    if not xp.isdtype(scores.dtype, "real floating"):
        return working, xp.asarray(0.0).dtype
    return working, xp.float32 if xp.finfo(scores.dtype).bits < 32 else scores.dtype


def _keys(xp: Any, scores: Any, where: Any) -> tuple[Any, Any]:
    """Return what to sort, smallest first, and for integers also which documents are masked out."""
    if xp.isdtype(scores.dtype, "real floating"):
        # NaN stands behind every score, also behind that of a document with -inf, and equals no other score.
        return (-scores if where is None else xp.where(where, -scores, float("nan"))), None
    # Inverted bits turn the order around and lose no digit, as negative or floating numbers would.
    return xp.bitwise_invert(scores), None if where is None else ~where


def _sort(xp: Any, keys: Any, absent: Any, ties: Ties) -> Any:
    """Sort each query, documents that are masked out last."""
    order = _sort_keys(xp, keys, ties)
    if absent is None:
        return order
    behind = xp.take_along_axis(xp.astype(absent, xp.int8), order, axis=-1)
    return xp.take_along_axis(order, xp.argsort(behind, axis=-1, stable=True), axis=-1)


def _sort_keys(xp: Any, keys: Any, ties: Ties) -> Any:
    """Sort each query; if position breaks ties, documents with equal scores keep their order."""
    if ties == "averaged" or not is_numpy_array(keys) or keys.shape[-1] <= _SHORT:
        return xp.argsort(keys, axis=-1, stable=ties == "position")
    # Two sorts that need not be stable are faster than one that is: by score, then by tie group and position.
    order = np.argsort(keys, axis=-1)
    ordered = np.take_along_axis(keys, order, axis=-1)
    group = np.zeros(order.shape, dtype=np.int64)
    np.cumsum(ordered[..., 1:] != ordered[..., :-1], axis=-1, out=group[..., 1:])
    bits = order.shape[-1].bit_length()
    return np.sort(group << bits | order, axis=-1) & ((1 << bits) - 1)


def _integer_cutoffs(cutoff: Cutoff) -> Cutoff:
    """Convert cutoffs to Python integers. Raise InputError if one is not an integer of 1 or more."""
    try:
        cutoffs = (
            [index(k) for k in cutoff] if isinstance(cutoff, Iterable) else cutoff if cutoff is None else index(cutoff)
        )
    except TypeError:
        cutoffs = []
    if cutoffs is not None and (cutoffs == [] or min(cutoffs if isinstance(cutoffs, list) else [cutoffs]) < 1):
        raise InputError(
            f"cutoffs must be positive integers, got {cutoff!r}",
            fix="use cutoff=10, or several cutoffs such as [1, 10]",
        )
    return cutoffs


def _check(scores: Any, grades: Any) -> None:
    if np.isnan(scores).any():
        raise InputError("scores must not be NaN", fix="exclude documents with NaN scores with where=")
    if not np.isfinite(grades).all():
        raise InputError("grades must be finite", fix="exclude documents with these grades with where=")


def _without_nan(xp: Any, scores: Any, grades: Any, where: Any) -> tuple[Any, Any]:
    """Mark the queries with a score that is NaN or a grade that is not finite, and set such grades to 0."""
    wrong = xp.isnan(scores) if xp.isdtype(scores.dtype, "real floating") else None
    if xp.isdtype(grades.dtype, "real floating"):
        finite = xp.isfinite(grades)
        grades = xp.where(finite, grades, 0.0)
        wrong = ~finite if wrong is None else wrong | ~finite
    if wrong is None:
        return None, grades
    return xp.any(wrong if where is None else wrong & where, axis=-1), grades
