"""Traffic: what share of all queries each topic stands for, and which topics are head, torso and tail."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judged.data.attributes import Attributes
from judged.data.ids import id_text
from judged.decimals import read_number
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats

FREQUENCY = ("head", "torso", "tail")
_ROUNDING = 1e-12  # of all traffic: 0.9 of a total is not always the nearest number


def frequency_bands(counts: Sequence[float], cuts: tuple[float, float] = (0.5, 0.9)) -> list[str]:
    """Cut topics into head, torso and tail by cumulative traffic.

    >>> frequency_bands([50, 30, 10, 5, 5])  # 50 of 100 are the head, 50 + 30 + 10 hold 90 of 100
    ['head', 'torso', 'torso', 'tail', 'tail']
    >>> frequency_bands([3, 3, 3, 1])  # one alone holds 30 %, two would hold 60 %: equal traffic, equal band
    ['head', 'head', 'head', 'tail']
    """
    # Topics are taken from the most frequent down. The head is the smallest set of them that holds the first share of
    # `cuts`; the torso those that follow until the second is held; the tail all others. Topics of the same traffic are
    # taken together, whatever their ids: a set that ends among them takes them all. In other words: a topic is in the
    # head where those with more traffic than it together hold less than the first share, in the tail where they hold
    # the second or more. `counts`: (N,): how often each was asked; 0 or more. `cuts`: shares between 0 and 1, the first
    # the smaller.
    values = _checked(counts, cuts)
    levels, level_of = np.unique(-values, return_inverse=True)
    held = np.bincount(level_of, weights=values, minlength=len(levels))
    more = np.concatenate(([0.0], np.cumsum(held)[:-1]))
    total = math.fsum(values.tolist())
    reached = np.stack([more >= cut * total - _ROUNDING * total for cut in cuts])
    return [FREQUENCY[at] for at in reached.sum(axis=0)[level_of].tolist()]


def _checked(counts: Sequence[float], cuts: tuple[float, float]) -> Floats:
    if len(cuts) != 2 or not 0 < cuts[0] < cuts[1] < 1:
        raise InputError(f"the cuts {cuts} of traffic make no sense", fix="two shares that rise, such as (0.5, 0.9)")
    values = np.asarray(counts, dtype=np.float64)
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if len(wrong):
        raise InputError(f"a topic has the traffic {wrong[0]:g}", fix="give counts of 0 or more")
    if not values.any():
        raise InputError("no topic has any traffic", fix="give how often each query was asked")
    return values


def traffic_columns(
    query_ids: Sequence[str], traffic: Any, known: Attributes | None, cuts: tuple[float, float]
) -> dict[str, list[float | None] | list[str | None]]:
    """Give the traffic share and band of topics; None for one whose traffic is not known."""
    # Shares are of all the traffic that is given, of topics that are not among `query_ids` too.
    counts = _counts(traffic, known)
    names = list(counts)
    bands = dict(zip(names, frequency_bands(list(counts.values()), cuts), strict=True))
    total = math.fsum(counts.values())
    return {
        "traffic_share": [counts[query] / total if query in counts else None for query in query_ids],
        "frequency": [bands.get(query) for query in query_ids],
    }


def _counts(traffic: Any, known: Attributes | None) -> dict[str, float]:
    """Give the counts by query id: of a named attribute, of the only numbers of a table, or of a dict."""
    if isinstance(traffic, str):
        if known is None:
            raise InputError(f"no attributes that {traffic!r} could be one of", fix="give attributes= too")
        return _numbers(known, traffic)
    if isinstance(traffic, Attributes):
        found = [name for name in traffic.names if str(traffic.column(name).type) == "double"]
        name = "traffic" if "traffic" in found else found[0] if len(found) == 1 else ""
        if not name:
            fix = "name the column of counts 'traffic'"
            raise InputError(f"which of {', '.join(traffic.names) or 'no columns'} is the traffic?", fix=fix)
        return _numbers(traffic, name)
    if not isinstance(traffic, Mapping):
        raise InputError(f"a {type(traffic).__name__} is no traffic", fix="give {query_id: count}, or an attribute")
    counts = dict[str, float]()
    for query, count in cast("Mapping[Any, Any]", traffic).items():
        try:
            counts[id_text(query, "query id")] = read_number(count)
        except ValueError:
            raise InputError(f"the traffic of topic {query} is {count!r:.40}", fix="give a number") from None
    return counts


def _numbers(known: Attributes, name: str) -> dict[str, float]:
    column = known.column(name)
    if str(column.type) != "double":
        raise InputError(f"the attribute {name} is no number", fix="name one that counts how often a query was asked")
    pairs = zip(known.query_ids, column.to_pylist(), strict=True)
    return {query: count for query, count in pairs if count is not None}
