"""Fusion of runs by ranks or by scores, with an explicit policy for missing documents."""

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
from judged.scoring.judging import RankingRules
from judged.scoring.judging.align import rank_all_with_scores
from judged.scoring.judging.ranking import DuplicateDocumentError, segment_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Floats, Ints, Strings
    from judged.scoring.judging.ranking import TiePolicy

Algorithm: TypeAlias = Literal["rrf", "sum", "mnz", "max", "borda"]
Normalization: TypeAlias = Literal["min-max", "z-score", "sum", "rank", "none"]
Missing: TypeAlias = Literal["skip", "last", "share"]

ALGORITHMS: Mapping[str, str] = {
    "rrf": "reciprocal rank fusion: sum of 1 / (rrf_k + rank) over the lists (Cormack, Clarke and Buettcher 2009)",
    "sum": "CombSUM: sum of normalized scores (Fox and Shaw 1994)",
    "mnz": "CombMNZ: sum of normalized scores, times the number of lists with the document (Fox and Shaw 1994)",
    "max": "CombMAX: maximum of normalized scores (Fox and Shaw 1994)",
    "borda": (
        "Borda count: sum over the lists of the number of candidates that are not ranked above the document"
        " (Aslam and Montague 2001)"
    ),
}
"""Descriptions of the algorithms."""
NORMALIZATIONS: Mapping[str, str] = {
    "min-max": "from 0 (lowest score of the list) to 1 (highest score); 1 if all scores are equal",
    "z-score": "score minus the mean of the list, divided by its standard deviation; 0 if all scores are equal",
    "sum": "score minus the lowest score, divided by the sum of these differences; 1/n if all n scores are equal",
    "rank": "1 for the first document, and 1/n less for each further rank, with n documents",
    "none": "unchanged, for lists with the same scale of scores",
}
"""Descriptions of the normalizations of scores, which apply to each list of each topic."""
_RANK_ALGORITHMS = ("rrf", "borda")


@dataclass(frozen=True, eq=False)
class ListPoints(ReadOnly):
    """Points of U candidates (pairs of topic and document) in L lists.

    Parameters
    ----------
    query_ids
        Topics.
    topic
        (U,): index of the topic, ascending.
    docs
        (U,) document ids.
    points
        (U, L): contribution of each list to a candidate, before weights; missing documents are filled in.
    contains
        (U, L): whether the list contains the candidate.
    algorithm
        Algorithm that combines the points.
    names
        Names of the lists.
    """

    query_ids: tuple[str, ...]
    topic: Ints
    docs: Strings = field(repr=False)
    points: Floats
    contains: Bools
    algorithm: Algorithm
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        runs: Any,
        algorithm: str = "rrf",
        *,
        rrf_k: float = 60,
        normalize: str = "min-max",
        missing: str | None = None,
        depth: int | None = None,
        ties: TiePolicy = "docid",
    ) -> Self:
        """Read runs, and compute the points of all candidates; parameters as in `fuse`."""
        method: Any = one_of("algorithm", algorithm, ALGORITHMS)
        normalization: Any = one_of("normalization", normalize, NORMALIZATIONS)
        default = "share" if method == "borda" else "last" if normalization == "z-score" and method != "rrf" else "skip"
        policy: Any = default if missing is None else one_of("value of `missing`", missing, ("skip", "last", "share"))
        _check_options(method, normalization, policy, rrf_k)
        inputs = runs_of(runs)
        if len(inputs) < 2:
            raise InputError(f"at least two runs are required, got {inputs[0].name}", fix="add a run")
        for run in inputs:
            if not run.has_scores and not run.has_ranks:
                raise InputError("a run needs scores or ranks for fusion", fix="use a ranked run", path=run.where)
        names = tuple(run.name for run in inputs)
        topics = dict.fromkeys(query for run in inputs for query in _query_ids(run))
        query_ids = tuple(topics)
        ranked = [
            rank_all_with_scores(run, query_ids, RankingRules(ties if run.has_scores else "rank", depth))
            for run in inputs
        ]
        docs = pa.chunked_array([returned.doc.cast(pa.string()) for returned, _ in ranked]).combine_chunks()
        encoded = docs.dictionary_encode()
        width = max(len(encoded.dictionary), 1)
        topic = np.concatenate([returned.topic for returned, _ in ranked])
        # pairs of topic and document as single integers: a candidate is in the result once, whichever lists contain it
        pairs = topic * width + encoded.indices.to_numpy().astype(np.int64)
        keys, candidate_row = np.unique(pairs, return_inverse=True)
        candidate, document = np.divmod(keys, width)
        pool = np.bincount(candidate, minlength=len(query_ids))
        points = np.full((len(keys), len(inputs)), math.nan)
        contains = np.zeros(points.shape, dtype=np.bool_)
        ends = np.cumsum([len(returned.topic) for returned, _ in ranked])[:-1]
        for column, (rows, (returned, score)) in enumerate(zip(np.split(candidate_row, ends), ranked, strict=True)):
            if len(np.unique(rows)) < len(rows):
                duplicate = int(np.flatnonzero(np.bincount(rows) > 1)[0])
                query, doc = query_ids[candidate[duplicate]], encoded.dictionary[int(document[duplicate])].as_py()
                raise DuplicateDocumentError(query, doc, inputs[column].where)
            length = np.bincount(returned.topic, minlength=len(query_ids))
            ranked_list = _RankedList(returned.topic, returned.rank.astype(np.float64), score, length, pool)
            missing_points = _missing_points(policy, method, normalization, rrf_k, ranked_list)
            points[:, column] = missing_points[candidate]
            points[rows, column] = _list_points(method, normalization, rrf_k, ranked_list)
            contains[rows, column] = True
        docs = encoded.dictionary.take(int_array(document))
        return cls(query_ids, candidate, docs, points, contains, method, names)

    def run(self, weights: Sequence[float] | None = None, *, cutoff: int | None = None, name: str = "") -> Run:
        """Fuse the lists: a run sorted by topic and decreasing score."""
        list_weights = np.ones(len(self.names)) if weights is None else np.asarray(weights, dtype=np.float64)
        score = self._scores(list_weights)
        columns = pa.table({"topic": int_array(self.topic), "score": pa.array(score), "doc": self.docs})
        keys = [("topic", "ascending"), ("score", "descending"), ("doc", "descending")]
        order = pc.sort_indices(columns, sort_keys=keys).to_numpy().astype(np.int64)
        topic = self.topic[order]
        if cutoff is not None:
            topic_starts = np.searchsorted(topic, np.arange(len(self.query_ids)))
            is_kept = np.arange(len(topic)) - topic_starts[topic] < cutoff
            order, topic = order[is_kept], topic[is_kept]
        query = pa.array(self.query_ids, pa.string()).take(int_array(topic))
        doc = self.docs.take(int_array(order))
        table = pa.table({"query_id": query, "doc_id": doc, "score": pa.array(score[order])})
        return Run.of(table, name=name or f"{self.algorithm}({', '.join(self.names)})")

    def _scores(self, weights: Floats) -> Floats:
        weighted = [self.points[:, i] * weights[i] for i in range(len(self.names))]
        if self.algorithm == "max":
            finite = [np.where(np.isnan(column), -math.inf, column) for column in weighted]
            return np.max(finite, axis=0)
        total = np.zeros(len(self.docs))
        for column in weighted:
            total += np.nan_to_num(column, nan=0.0)
        return total * self.contains.sum(axis=1) if self.algorithm == "mnz" else total


def fuse(
    runs: Any,
    algorithm: str = "rrf",
    *,
    weights: Mapping[str, float] | Iterable[float] | None = None,
    rrf_k: float = 60,
    normalize: str = "min-max",
    missing: str | None = None,
    depth: int | None = None,
    cutoff: int | None = None,
    ties: TiePolicy = "docid",
    name: str = "",
) -> Run:
    """Fuse several runs into one.

    Parameters
    ----------
    runs
        Two or more runs, as in `evaluate`.
    algorithm
        ``rrf``, ``sum``, ``mnz``, ``max`` or ``borda``: see `ALGORITHMS`.
    weights
        Weights of the lists, by name or in order, >= 0. Contributions are multiplied by them.
    rrf_k
        For ``rrf``: constant added to ranks. Larger values reduce the influence of the top ranks.
    normalize
        For ``sum``, ``mnz`` and ``max``: normalization of the scores of each list and topic: ``min-max``, ``z-score``,
        ``sum``, ``rank`` or ``none``: see `NORMALIZATIONS`.
    missing
        Contribution of a list to documents that it does not contain. ``skip``: none. ``last``: that of the rank after
        its last document, or its lowest score. ``share``: that of the mean of the remaining ranks, as in the Borda
        count. Default: ``share`` for ``borda``; ``last`` for z-scores, for which no contribution would mean an average
        document; else ``skip``.
    depth
        Number of documents used from each list. None: all.
    cutoff
        Number of documents kept in each fused list. None: all.
    ties
        Order of documents with equal scores in a list, as in `judge`. Runs without scores use their ranks.
    name
        Name of the fused run.

    Returns
    -------
    Run
        Documents of all lists, by topic and decreasing score; equal scores by decreasing id.

    Raises
    ------
    InputError
        If a run is invalid or has no order, or the options are inconsistent.

    Examples
    --------
    >>> runs = {"bm25": {"q": {"a": 9.0, "b": 7.0, "c": 1.0}}, "dense": {"q": {"b": 0.9, "d": 0.8}}}
    >>> fused = fuse(runs)
    >>> fused.name, fused.table["doc_id"].to_pylist()
    ('rrf(bm25, dense)', ['b', 'a', 'd', 'c'])
    >>> fuse(runs, "sum", weights={"bm25": 0.2, "dense": 0.8}).table["doc_id"].to_pylist()
    ['b', 'a', 'd', 'c']
    """
    lists = ListPoints.of(runs, algorithm, rrf_k=rrf_k, normalize=normalize, missing=missing, depth=depth, ties=ties)
    return lists.run(None if weights is None else parse_weights(weights, lists.names), cutoff=cutoff, name=name)


def parse_weights(source: Any, names: Sequence[str]) -> list[float]:
    """Return the weights in the order of the lists.

    Raises
    ------
    InputError
        If a weight is negative or not a number, all are 0, or weights and lists do not match.
    """
    if isinstance(source, Mapping):
        if unmatched := set(source) ^ set(names):
            problem = f"weights and lists have different names: {', '.join(sorted(map(str, unmatched)))}"
            raise InputError(problem, fix="set one weight per list")
        weights = [float(source[name]) for name in names]
    else:
        weights = [float(weight) for weight in source]
    if len(weights) != len(names):
        raise InputError(f"{len(weights)} weights for {len(names)} lists", fix="set one weight per list")
    if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
        raise InputError(f"weights must be >= 0 with at least one > 0, got {weights}", fix="correct the weights")
    return weights


def _check_options(algorithm: Algorithm, normalization: Normalization, missing: Missing, rrf_k: float) -> None:
    if not 0 <= rrf_k < math.inf:
        raise InputError(f"`rrf_k` must be a finite number >= 0, got {rrf_k}", fix="use 60")
    if algorithm == "mnz" and normalization == "z-score":
        fix = "use the normalization min-max, or the algorithm sum"
        raise InputError("mnz requires non-negative scores, and z-scores can be negative", fix=fix)
    if missing == "share" and algorithm not in _RANK_ALGORITHMS:
        raise InputError(
            f"missing='share' requires the algorithm rrf or borda, got {algorithm}", fix="use missing='skip' or 'last'"
        )


def _query_ids(run: Run) -> list[str]:
    query_ids: dict[str, None] = {}
    for batch in run.rows.parts(("query_id",)):
        query_ids |= dict.fromkeys(map(str, pc.unique(batch().column("query_id")).to_pylist()))
    return list(query_ids)


class _RankedList(NamedTuple):
    """Ranked documents of one list: N documents, T topics."""

    topic: Ints  # (N,)
    rank: Floats  # (N,)
    score: Floats  # (N,)
    length: Ints  # documents of the list by topic: (T,)
    pool: Ints  # candidates of all lists by topic: (T,)


def _list_points(algorithm: Algorithm, normalization: Normalization, rrf_k: float, documents: _RankedList) -> Floats:
    """Compute the points of the documents of a list: (N,)."""
    topic, topic_count, score = documents.topic, len(documents.length), documents.score
    if algorithm == "rrf":
        return 1 / (rrf_k + documents.rank)
    if algorithm == "borda":
        return documents.pool[topic] - documents.rank + 1.0
    if normalization == "none":
        return score
    count = np.maximum(documents.length, 1)
    if normalization == "rank":
        return 1 - (documents.rank - 1) / count[topic]
    low, high = np.full(topic_count, math.inf), np.full(topic_count, -math.inf)
    np.minimum.at(low, topic, score)
    np.maximum.at(high, topic, score)
    is_constant = (low == high)[topic]
    if normalization == "z-score":
        mean = segment_sum(score, topic, topic_count) / count
        sd = np.sqrt(segment_sum((score - mean[topic]) ** 2, topic, topic_count) / count)
        # equal scores have no spread: they get 0, and 1.0 only avoids a division by 0
        return np.where(is_constant, 0.0, (score - mean[topic]) / np.where(is_constant, 1.0, sd[topic]))
    above = score - low[topic]
    scale = (high - low if normalization == "min-max" else segment_sum(above, topic, topic_count))[topic]
    constant_value = 1.0 if normalization == "min-max" else 1 / count[topic]
    return np.where(is_constant, constant_value, above / np.where(is_constant, 1.0, scale))


def _missing_points(
    missing: Missing, algorithm: Algorithm, normalization: Normalization, rrf_k: float, documents: _RankedList
) -> Floats:
    """Compute the points of missing documents by topic: (T,); NaN for no contribution."""
    lowest = np.full(len(documents.length), math.inf)
    if missing != "skip" and algorithm in _RANK_ALGORITHMS:
        # the next rank, or the mean of all remaining ranks
        rank = documents.length + 1.0 if missing == "last" else (documents.length + 1 + documents.pool) / 2
        missing_documents = documents._replace(topic=np.arange(len(documents.length)), rank=rank)
        return _list_points(algorithm, normalization, rrf_k, missing_documents)
    if missing != "skip":
        np.minimum.at(lowest, documents.topic, _list_points(algorithm, normalization, rrf_k, documents))
    return np.where(np.isinf(lowest), math.nan, lowest)
