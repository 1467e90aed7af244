"""Kinds of content gaps: entities without documents, or whose documents are not found, not judged, or not relevant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

NO_DOCUMENT, NOT_FOUND = "no document", "document not found"
NOT_JUDGED, NOT_RELEVANT, NO_GAP = "not judged", "judged not relevant", "no gap"
KINDS = (NO_DOCUMENT, NOT_FOUND, NOT_JUDGED, NOT_RELEVANT)
"""Kinds of gaps, in the order of a document's way to users."""


class ContentGap(NamedTuple):
    """Searches for one entity, and the documents about it.

    A search is lost if the first k documents of its list contain no document that is known to be relevant.
    """

    entity: str
    n: int  # queries
    traffic: float  # searches
    unrecorded: float  # searches whose list is not recorded; they are not lost
    indexed: int  # documents about the entity
    found: int  # of these, documents in the first k of a query for the entity
    judged: int  # of these, documents that are judged for such a query
    relevant: int  # of these, documents that are relevant for such a query
    losses: Mapping[str, float]  # lost searches by kind
    queries: tuple[str, ...]  # texts of the lost queries, the most frequent first

    @property
    def lost(self) -> float:
        """Number of lost searches."""
        return float(sum(self.losses.values()))

    @property
    def gap(self) -> str | None:
        """Kind with the most lost searches, `NO_GAP` if none is lost, or None if no list is recorded.

        Of several kinds with equally many lost searches, it is the first one in `KINDS`.
        """
        if not self.losses:
            return NO_GAP if self.unrecorded < self.traffic else None
        return max(KINDS, key=lambda kind: self.losses.get(kind, 0.0))


def find_content_gaps(
    entities_of: Mapping[str, Collection[str]],
    traffic: Mapping[str, float],
    lists: Mapping[str, Sequence[str] | None],
    is_relevant: Mapping[tuple[str, str], bool],
    supply: Mapping[str, Collection[str]],
    text_of: Mapping[str, str],
) -> tuple[ContentGap, ...]:
    """Classify the lost searches of each entity that has traffic.

    Parameters
    ----------
    entities_of, traffic, text_of
        Entities, number of searches, and text of each query.
    lists
        First k documents of each query; None if they are not recorded.
    is_relevant
        Whether a document is relevant for a query, by (query, document); unjudged pairs are missing.
    supply
        Entities of each document.

    Returns
    -------
    tuple of ContentGap
        Sorted by lost searches, then by traffic.

    Examples
    --------
    >>> lists = {"q1": ["a"], "q2": ["b"], "q3": ["b", "c"]}
    >>> entities = {"q1": ["zip"], "q2": ["tar"], "q3": ["zip"]}
    >>> gaps = find_content_gaps(entities, {"q1": 5, "q2": 2, "q3": 1}, lists, {("q1", "a"): True}, {"c": ["zip"]}, {})
    >>> [(row.entity, row.gap, row.lost, row.traffic) for row in gaps]
    [('tar', 'no document', 2.0, 2), ('zip', 'not judged', 1.0, 6)]
    """
    queries_of: dict[str, list[str]] = {}
    for query in sorted(entities_of, key=lambda query: -traffic[query]):
        for name in entities_of[query] if traffic[query] > 0 else ():
            queries_of.setdefault(name, []).append(query)
    n_indexed = Counter(name for names in supply.values() for name in names)
    gaps: list[ContentGap] = []
    for name, queries in queries_of.items():
        found, judged, relevant = set[str](), set[str](), set[str]()
        losses, lost_queries, unrecorded = dict[str, float](), list[str](), 0.0
        for query in queries:
            documents = lists[query]
            if documents is None:
                unrecorded += traffic[query]
                continue
            about = {doc for doc in documents if name in supply.get(doc, ())}
            judged_here = {doc for doc in about if (query, doc) in is_relevant}
            found |= about
            judged |= judged_here
            relevant |= {doc for doc in judged_here if is_relevant[query, doc]}
            if any(is_relevant.get((query, doc)) for doc in documents):
                continue
            # An unjudged document could be relevant, so only a completely judged list is "judged not relevant".
            found_kind = NOT_FOUND if not about else NOT_JUDGED if judged_here < about else NOT_RELEVANT
            kind = found_kind if n_indexed[name] else NO_DOCUMENT
            losses[kind] = losses.get(kind, 0.0) + traffic[query]
            lost_queries.append(text_of.get(query) or query)
        total = sum(traffic[query] for query in queries)
        counts = (n_indexed[name], len(found), len(judged), len(relevant))
        gaps.append(ContentGap(name, len(queries), total, unrecorded, *counts, losses, tuple(lost_queries)))
    return tuple(sorted(gaps, key=lambda row: (-row.lost, -row.traffic, row.entity)))
