"""What every coefficient of agreement is counted from: which grades met, and which could have met by chance."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats, Ints

_CHUNK = 128  # groups left out at a time


class Rule(NamedTuple):
    """What tells one coefficient from another."""

    distance: Literal["nominal", "linear", "quadratic", "ordinal"]  # of two grades
    # how grades meet by chance, and how a thing counts: `apart`, each judge's own grades against the other's; `things`,
    # the grades of all judges in one urn, each thing counts once; `grades`, one urn, each grade counts once
    chance: Literal["apart", "things", "grades"]
    drawn: int  # how many grades have been taken from the urn before the second is drawn


class Counts(NamedTuple):
    """What the coefficient is made of, by group; sums over any multiset of groups are what it needs."""

    grades: Floats  # (K,): rising
    # one, other: (P,): the pairs of grades that met, as codes
    one: Ints
    other: Ints
    met: Any  # (G, P): how often, weighted
    # urn, second_urn: (G, K): how often each grade can be drawn
    urn: Any
    second_urn: Any


def coded(table: Floats) -> tuple[Floats, Ints]:
    """Give the distinct grades, rising, and each grade's place among them; -1 for NaN."""
    known = ~np.isnan(table)
    grades, found = np.unique(table[known], return_inverse=True)
    codes = np.full(table.shape, -1, dtype=np.int64)
    codes[known] = found.ravel()
    return grades, codes


def counted(table: Floats, group: Ints, groups: int, rule: Rule) -> Counts:
    """Count by group: (U, J) grades, NaN where there is none, and the group of each row as a code from 0."""
    grades, codes = coded(table)
    size, known = len(grades), codes >= 0
    many = known.sum(axis=1)
    weight = {"apart": np.ones(len(table)), "things": 2 / (many * (many - 1)), "grades": 2 / (many - 1)}[rule.chance]
    rows, keys = list[Any](), list[Any]()
    for one, other in combinations(range(table.shape[1]), 2):
        both = np.flatnonzero(known[:, one] & known[:, other])
        rows.append(both)
        keys.append(codes[both, one] * size + codes[both, other])
    row, key = np.concatenate(rows), np.concatenate(keys)
    pairs, place = np.unique(key, return_inverse=True)
    met = _sparse(weight[row], group[row], place.ravel(), (groups, len(pairs)))
    columns = [codes[:, :1], codes[:, 1:]] if rule.chance == "apart" else [codes, codes]
    urns: list[Any] = []
    for column in columns:
        at, judge = np.nonzero(column >= 0)
        urns.append(_sparse(np.ones(len(at)), group[at], column[at, judge], (groups, size)))
    return Counts(grades, pairs // size, pairs % size, met, *urns)


def _sparse(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Any:
    from scipy import sparse

    matrix: Any = sparse.csr_array((values, (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def distances(times: Floats, counts: Counts, rule: Rule) -> tuple[Floats, Floats]:
    """Give the mean distance that was met and that is expected, where each group counts some times: (B, G) to (B,)."""
    met, urn, second = (np.asarray(times @ part) for part in (counts.met, counts.urn, counts.second_urn))
    pairs, drawn = met.sum(axis=1), urn.sum(axis=1) * (second.sum(axis=1) - rule.drawn)
    if rule.distance == "ordinal":
        place = np.cumsum(urn, axis=1) - urn / 2  # how many grades were given below, and half of the equal ones
        observed = (met * (place[:, counts.one] - place[:, counts.other]) ** 2).sum(axis=1)
        centred = place - ((urn * place).sum(axis=1) / urn.sum(axis=1))[:, None]
        expected = 2 * urn.sum(axis=1) * (urn * centred**2).sum(axis=1)
    else:
        apart = np.abs(counts.grades[:, None] - counts.grades)
        apart = {"nominal": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[rule.distance]
        observed = met @ apart[counts.one, counts.other]
        expected = ((urn @ apart) * second).sum(axis=1)
    nothing = np.full(len(times), np.nan)
    return (
        np.divide(observed, pairs, out=nothing.copy(), where=pairs > 0),
        np.divide(expected, drawn, out=nothing, where=drawn > 0),
    )


def beyond_chance(met: Floats, chance: Floats) -> Floats:
    """Give 1 minus the met distance over the expected one; NaN where chance expects none."""
    return 1.0 - np.divide(met, chance, out=np.full(len(met), np.nan), where=chance > 0)


def left_out(counts: Counts, groups: int, rule: Rule) -> Floats:
    """Give the coefficient without each group in turn: (G,); NaN where the others alone have none."""
    values = np.empty(groups)
    for start in range(0, groups, _CHUNK):
        size = min(_CHUNK, groups - start)
        values[start : start + size] = beyond_chance(*distances(1.0 - np.eye(size, groups, start), counts, rule))
    return values
