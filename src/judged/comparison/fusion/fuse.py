"""One list of several: by ranks or by scores, with what a list lacks as an explicit policy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.run import Run
from judged.errors import InputError
from judged.results.spelling import one_of
from judged.results.types import ReadOnly
from judged.scoring.evaluation.inputs import runs_of
from judged.scoring.judging import Ranking
from judged.scoring.judging.align import all_scored
from judged.scoring.judging.ranking import DuplicateDocumentError, segment_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Floats, Ints, Strings
    from judged.scoring.judging.ranking import TiePolicy

Algorithm: TypeAlias = Literal["rrf", "sum", "mnz", "max", "borda"]
Normalisation: TypeAlias = Literal["min-max", "z-score", "sum", "rank", "none"]
Missing: TypeAlias = Literal["skip", "last", "share"]

ALGORITHMS: Mapping[str, str] = {
    "rrf": "reciprocal rank fusion: 1 / (rrf_k + rank) of every list, summed (Cormack, Clarke and Buettcher 2009)",
    "sum": "CombSUM: normalised scores, summed (Fox and Shaw 1994)",
    "mnz": "CombMNZ: the same, times the number of lists that hold the document (Fox and Shaw 1994)",
    "max": "CombMAX: the highest normalised score (Fox and Shaw 1994)",
    "borda": "Borda count: one point for each candidate of the topic that stands no higher (Aslam and Montague 2001)",
}
"""What each algorithm adds up."""
NORMALISATIONS: Mapping[str, str] = {
    "min-max": "from 0, the lowest score of the list, to 1, the highest; 1 where all are the same",
    "z-score": "less the mean of the list, by its standard deviation; 0 where all are the same",
    "sum": "less the lowest score of the list, by the sum of these; equal parts where all are the same",
    "rank": "1 for the first document, less 1/n for each rank, of n documents",
    "none": "as they are: only for scores of one scale",
}
"""What is done to the scores of a topic's list before they are added."""
_BY_RANK = ("rrf", "borda")


@dataclass(frozen=True, eq=False)
class Lists(ReadOnly):
    """Several lists by topic and document, in points: U candidates, L lists.

    Parameters
    ----------
    query_ids
        The topics.
    topic
        (U,): code of the topic, rising.
    docs
        (U,) document ids.
    points
        (U, L): what each list gives a candidate, before weights; what it lacks filled in.
    held
        (U, L): whether the list holds it.
    algorithm
        How points are put together.
    names
        Of the lists.
    """

    query_ids: tuple[str, ...]
    topic: Ints
    docs: Strings = field(repr=False)
    points: Floats
    held: Bools
    algorithm: Algorithm
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        runs: Any,
        algorithm: str = "rrf",
        *,
        rrf_k: float = 60,
        normalise: str = "min-max",
        missing: str | None = None,
        depth: int | None = None,
        ties: TiePolicy = "docid",
    ) -> Self:
        """Read lists, and give every candidate its points; as `fuse` does."""
        chosen: Any = one_of("algorithm", algorithm, ALGORITHMS)
        scale: Any = one_of("normalisation", normalise, NORMALISATIONS)
        fallback = "share" if chosen == "borda" else "last" if scale == "z-score" and chosen != "rrf" else "skip"
        lacking: Any = fallback if missing is None else one_of("missing", missing, ("skip", "last", "share"))
        _refuse(chosen, scale, lacking, rrf_k)
        given = runs_of(runs)
        if len(given) < 2:
            raise InputError(f"there is nothing to fuse {given[0].name!r} with", fix="give two runs or more")
        for run in given:
            if not run.has_scores and not run.has_ranks:
                raise InputError("a run without scores has no order", fix="fuse ranked lists", path=run.where)
        names = tuple(run.name for run in given)
        topics = dict.fromkeys(query for run in given for query in _queries(run))
        query_ids = tuple(topics)
        ranked = [all_scored(run, query_ids, Ranking(ties if run.has_scores else "rank", depth)) for run in given]
        docs = pa.chunked_array([returned.doc.cast(pa.string()) for returned, _ in ranked]).combine_chunks()
        encoded = docs.dictionary_encode()
        width = max(len(encoded.dictionary), 1)
        topic = np.concatenate([returned.topic for returned, _ in ranked])
        keys, place = np.unique(topic * width + encoded.indices.to_numpy().astype(np.int64), return_inverse=True)
        candidate, document = np.divmod(keys, width)
        pool = np.bincount(candidate, minlength=len(query_ids))
        points = np.full((len(keys), len(given)), math.nan)
        held = np.zeros(points.shape, dtype=np.bool_)
        ends = np.cumsum([len(returned.topic) for returned, _ in ranked])[:-1]
        for which, (rows, (returned, score)) in enumerate(zip(np.split(place, ends), ranked, strict=True)):
            if len(np.unique(rows)) < len(rows):
                twice = int(np.flatnonzero(np.bincount(rows) > 1)[0])
                query, doc = query_ids[candidate[twice]], encoded.dictionary[int(document[twice])].as_py()
                raise DuplicateDocumentError(query, doc, given[which].where)
            length = np.bincount(returned.topic, minlength=len(query_ids))
            own = _List(returned.topic, returned.rank.astype(np.float64), score, length, pool)
            points[:, which] = _lacking(lacking, chosen, scale, rrf_k, own)[candidate]
            points[rows, which] = _points(chosen, scale, rrf_k, own)
            held[rows, which] = True
        return cls(query_ids, candidate, encoded.dictionary.take(int_array(document)), points, held, chosen, names)

    def run(self, weights: Sequence[float] | None = None, *, cutoff: int | None = None, name: str = "") -> Run:
        """Fuse with some weights: a run whose rows stand by topic and falling score."""
        share = np.ones(len(self.names)) if weights is None else np.asarray(weights, dtype=np.float64)
        score = self._scores(share)
        columns = pa.table({"topic": int_array(self.topic), "score": pa.array(score), "doc": self.docs})
        keys = [("topic", "ascending"), ("score", "descending"), ("doc", "descending")]
        order = pc.sort_indices(columns, sort_keys=keys).to_numpy().astype(np.int64)
        topic = self.topic[order]
        if cutoff is not None:
            first = np.searchsorted(topic, np.arange(len(self.query_ids)))
            kept = np.arange(len(topic)) - first[topic] < cutoff
            order, topic = order[kept], topic[kept]
        query = pa.array(self.query_ids, pa.string()).take(int_array(topic))
        doc = self.docs.take(int_array(order))
        table = pa.table({"query_id": query, "doc_id": doc, "score": pa.array(score[order])})
        return Run.of(table, name=name or f"{self.algorithm}({', '.join(self.names)})")

    def _scores(self, weights: Floats) -> Floats:
        weighted = [self.points[:, which] * weights[which] for which in range(len(self.names))]
        if self.algorithm == "max":
            known = [np.where(np.isnan(column), -math.inf, column) for column in weighted]
            return np.max(known, axis=0)
        total = np.zeros(len(self.docs))
        for column in weighted:
            total += np.nan_to_num(column, nan=0.0)
        return total * self.held.sum(axis=1) if self.algorithm == "mnz" else total


def fuse(
    runs: Any,
    algorithm: str = "rrf",
    *,
    weights: Mapping[str, float] | Iterable[float] | None = None,
    rrf_k: float = 60,
    normalise: str = "min-max",
    missing: str | None = None,
    depth: int | None = None,
    cutoff: int | None = None,
    ties: TiePolicy = "docid",
    name: str = "",
) -> Run:
    """Combine several runs into one.

    Parameters
    ----------
    runs
        Two or more, as `evaluate` takes them.
    algorithm
        ``rrf``, ``sum``, ``mnz``, ``max`` or ``borda``, as in `ALGORITHMS`.
    weights
        Weights of the lists, by name or in their order, 0 or more; they multiply what a list contributes.
    rrf_k
        Of ``rrf``: added to every rank; the larger, the less the first ranks stand out.
    normalise
        Of ``sum``, ``mnz`` and ``max``: what is done to the scores of each list of each topic: ``min-max``,
        ``z-score``, ``sum``, ``rank`` or ``none``, as in `NORMALISATIONS`.
    missing
        What a list contributes for a document that it does not have. ``skip``: nothing. ``last``: as if the document
        came right after the last of the list, or with the list's lowest score. ``share``: as at the average of the
        ranks that remain, as the Borda count divides the points left over. The default is ``share`` for ``borda``,
        ``last`` for z-scores, where contributing nothing would make it an average document, and ``skip`` otherwise.
    depth
        How many documents of each list count.
    cutoff
        How many documents of each fused list are kept; None for all.
    ties
        Order of documents with equal scores in a list, as for `judge`. A run without scores goes by its ranks.
    name
        Of the fused run.

    Returns
    -------
    Run
        Every document of any list, by topic and falling score; documents with equal scores by id, the greater first.

    Raises
    ------
    InputError
        If a run cannot be read or has no order, or the options do not fit one another.

    Examples
    --------
    >>> runs = {"bm25": {"q": {"a": 9.0, "b": 7.0, "c": 1.0}}, "dense": {"q": {"b": 0.9, "d": 0.8}}}
    >>> fused = fuse(runs)
    >>> fused.name, fused.table["doc_id"].to_pylist()
    ('rrf(bm25, dense)', ['b', 'a', 'd', 'c'])
    >>> fuse(runs, "sum", weights={"bm25": 0.2, "dense": 0.8}).table["doc_id"].to_pylist()
    ['b', 'a', 'd', 'c']
    """
    lists = Lists.of(runs, algorithm, rrf_k=rrf_k, normalise=normalise, missing=missing, depth=depth, ties=ties)
    return lists.run(None if weights is None else weights_of(weights, lists.names), cutoff=cutoff, name=name)


def weights_of(given: Any, names: Sequence[str]) -> list[float]:
    """Give the weights in the order of the lists.

    Raises
    ------
    InputError
        If one is negative or no number, all are 0, or they are not those of the lists.
    """
    if isinstance(given, Mapping):
        if odd := set(given) ^ set(names):
            raise InputError(
                f"weights and lists differ: {', '.join(sorted(map(str, odd)))}", fix="give every list one weight"
            )
        weights = [float(given[name]) for name in names]
    else:
        weights = [float(weight) for weight in given]
    if len(weights) != len(names):
        raise InputError(f"{len(weights)} weights for {len(names)} lists", fix="give every list one weight")
    if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
        raise InputError(f"weights {weights} make no list", fix="give numbers from 0, and one at least above 0")
    return weights


def _refuse(algorithm: Algorithm, normalise: Normalisation, missing: Missing, rrf_k: float) -> None:
    if not 0 <= rrf_k < math.inf:
        raise InputError(f"rrf_k {rrf_k} makes no sense", fix="give 0 or more; 60 is usual")
    if algorithm == "mnz" and normalise == "z-score":
        fix = "use min-max, or the algorithm sum"
        raise InputError("mnz would put a document with negative z-scores lower for every list that holds it", fix=fix)
    if missing == "share" and algorithm not in _BY_RANK:
        raise InputError(f"'share' is a rank, and {algorithm} adds scores", fix="use skip or last")


def _queries(run: Run) -> list[str]:
    found: dict[str, None] = {}
    for part in run.rows.parts(("query_id",)):
        found |= dict.fromkeys(map(str, pc.unique(part().column("query_id")).to_pylist()))
    return list(found)


class _List(NamedTuple):
    """One list: topic, rank and score of its N documents; how many it has of each topic, and how many all have."""

    topic: Ints
    rank: Floats
    score: Floats
    length: Ints
    pool: Ints


def _points(algorithm: Algorithm, normalise: Normalisation, rrf_k: float, own: _List) -> Floats:
    """Give what a list gives its documents, (N,)."""
    topic, topics, score = own.topic, len(own.length), own.score
    if algorithm == "rrf":
        return 1 / (rrf_k + own.rank)
    if algorithm == "borda":
        return own.pool[topic] - own.rank + 1.0
    if normalise == "none":
        return score
    count = np.maximum(own.length, 1)
    if normalise == "rank":
        return 1 - (own.rank - 1) / count[topic]
    low, high = np.full(topics, math.inf), np.full(topics, -math.inf)
    np.minimum.at(low, topic, score)
    np.maximum.at(high, topic, score)
    same = (low == high)[topic]
    if normalise == "z-score":
        mean = segment_sum(score, topic, topics) / count
        spread = np.sqrt(segment_sum((score - mean[topic]) ** 2, topic, topics) / count)
        return np.where(same, 0.0, (score - mean[topic]) / np.where(same, 1.0, spread[topic]))
    above = score - low[topic]
    whole = (high - low if normalise == "min-max" else segment_sum(above, topic, topics))[topic]
    alike = 1.0 if normalise == "min-max" else 1 / count[topic]
    return np.where(same, alike, above / np.where(same, 1.0, whole))


def _lacking(missing: Missing, algorithm: Algorithm, normalise: Normalisation, rrf_k: float, own: _List) -> Floats:
    """Give, by topic, what a list gives a document that it lacks; NaN for nothing."""
    lowest = np.full(len(own.length), math.inf)
    if missing != "skip" and algorithm in _BY_RANK:
        place = own.length + 1.0 if missing == "last" else (own.length + 1 + own.pool) / 2
        return _points(algorithm, normalise, rrf_k, own._replace(topic=np.arange(len(own.length)), rank=place))
    if missing != "skip":
        np.minimum.at(lowest, own.topic, _points(algorithm, normalise, rrf_k, own))
    return np.where(np.isinf(lowest), math.nan, lowest)
