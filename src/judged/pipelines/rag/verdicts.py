"""One verdict of several judges and repeats: the one rule by which scores, chains and pages read verdicts.

What is known of a thing are the shares of its judges who said each word: the mean over judges, each of them the mean of
what it said in all repeats. Scores take the shares as they are; where one word is needed it is the middle one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.compute import pc
from judged.scoring.judging.answered import CONTRADICTS, FAILED, NOT, PARTIAL, SUPPORT

if TYPE_CHECKING:
    from judged._types import Table

    Key = tuple[Any, ...]

SHARES = (SUPPORT, PARTIAL, CONTRADICTS)
"""The words whose shares are kept; what is left is the share of those who said ``not``."""
_HALF = 0.5 + 1e-9  # sums of shares are off by rounding


def verdict_shares(table: Table, *key: str) -> dict[Key, tuple[float, ...]]:
    """Average what was said of each thing: the shares of `SHARES`; what only failed is left out."""
    known = table.filter(pc.not_equal(table["verdict"], FAILED))
    names = [f"is_{word}" for word in SHARES]
    for name, word in zip(names, SHARES, strict=True):
        known = known.append_column(name, pc.cast(pc.equal(known["verdict"], word), pa.float64()))
    for by in ([*key, "judge"], list(key)):
        means = known.group_by(by, use_threads=False).aggregate([(name, "mean") for name in names])
        known = means.select([*by, *(f"{name}_mean" for name in names)]).rename_columns([*by, *names])
    columns = [known[name].to_pylist() for name in (*key, *names)]
    return {row[: len(key)]: row[len(key) :] for row in zip(*columns, strict=True)}


def middle_verdicts(table: Table, *key: str) -> dict[Key, str]:
    """Give one word for each thing: the most that more than half of its judges give it; ``failed`` where all failed.

    >>> from judged.pipelines.rag.responses import Responses
    >>> said = [{"query_id": "q", "judge": judge, "verdict": verdict} for judge, verdict in
    ...         (("a", "support"), ("b", "failed"), ("c", "not"))]
    >>> middle_verdicts(Responses.of({"answers": [{"query_id": "q"}], "correctness": said})["correctness"], "query_id")
    {('q',): 'not'}
    """
    every = table.group_by(list(key), use_threads=False).aggregate([])
    shares = verdict_shares(table, *key)
    keys = zip(*(every[name].to_pylist() for name in key), strict=True)
    return {place: _middle(*shares[place]) if place in shares else FAILED for place in keys}


def _middle(full: float, partial: float, against: float) -> str:
    if full > _HALF:
        return SUPPORT
    if full + partial > _HALF:
        return PARTIAL
    return NOT if 1 - against > _HALF else CONTRADICTS
