"""Find the judged documents of a run that is a dict of dicts, without reading the ids of other documents.

Python's hash tables do the join: each judged document is looked up in the dict of its topic. The result is that of
`scan` on the same rows; a property test compares both.
"""

from __future__ import annotations

import math
import struct
import sys
from functools import lru_cache, partial
from itertools import pairwise, repeat
from operator import countOf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.data.index import format_value, id_text
from judged.data.layout import MAX_EXACT_INTEGER
from judged.data.rows import check_distinct_as_doubles
from judged.errors import InputError
from judged.scoring.judging.ranking import DuplicateDocumentError, RunHits, equal_range, no_hits, round_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.data.index import QrelsIndex
    from judged.results.types import Floats, Ints
    from judged.scoring.judging.ranking import RankingRules, TiePolicy

_TopicDicts: TypeAlias = "dict[str, Mapping[Any, Any]]"
_NANS = repeat(math.nan)  # default scores, for documents that were not returned
_NOT_JUDGED: tuple[int, list[str]] = 0, []


def scan_mapping(index: QrelsIndex, mapping: Mapping[Any, Mapping[Any, Any]], ranking: RankingRules) -> RunHits:
    """Find the judged documents of a run ``{query_id: {doc_id: score}}`` and their ranks."""
    topics = _normalize_topics(mapping)
    if not topics:
        return no_hits()
    mixed = _check_duplicates(topics)
    counts = list(map(len, topics.values()))
    flat = round_scores(_flat_scores(topics, counts), ranking)
    lengths = np.array(counts, dtype=np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    unsorted = _sort_descending(flat, lengths, starts)
    segment, row, unrounded = _look_up(index, topics, mixed)
    score, start = round_scores(unrounded, ranking), starts[segment]
    first, stop = equal_range(flat, start, ends[segment], score)
    position = first - start
    if len(tied := np.flatnonzero(stop - first > 1)):
        tied = tied[np.argsort(first[tied], kind="stable")]  # groups documents by tie, and ties by topic
        ids = [index.row_names[code] for code in row[tied].tolist()]
        ids_by_score = partial(_ids_by_score, list(topics.items()), mixed, unsorted, ranking)
        tie_starts, tie_stops = position[tied], (stop - start)[tied]
        position[tied] += _tie_offsets(ids_by_score, ranking.ties, segment[tied], tie_starts, tie_stops, ids)
    non_empty = [(topic, docs) for topic, docs in topics.items() if docs]
    best = flat[starts[lengths > 0]].tolist()
    return RunHits(
        names=tuple(topics),
        returned=lengths,
        topic=index.topic[row],
        doc=None,
        rank=position + 1,
        tie_first=first - start + 1,
        tie_last=stop - start,
        score=score,
        row=row,
        n_self_top=sum(docs.get(topic) == highest for (topic, docs), highest in zip(non_empty, best, strict=True)),
    )


def _normalize_topics(mapping: Mapping[Any, Mapping[Any, Any]]) -> _TopicDicts:
    topics: _TopicDicts = {}
    for key, docs in mapping.items():
        name = key if type(key) is str else id_text(key, "query id")
        if name in topics:
            raise InputError(
                f"topic {name} appears twice, as text and as an integer", fix="write all topic ids as text"
            )
        topics[name] = docs
    return topics


def _check_duplicates(topics: _TopicDicts) -> set[str]:
    """Raise if an id is invalid, or a document occurs as text and as an integer. Return topics with non-text ids."""
    mixed = {name for name, docs in topics.items() if not _all_text(docs)}
    for name in mixed:
        doc_ids: set[str] = set()
        for doc in topics[name]:
            if (text := id_text(doc, "document id")) in doc_ids:
                raise DuplicateDocumentError(name, text, "<dict>")
            doc_ids.add(text)
    return mixed


def _all_text(docs: Mapping[Any, Any]) -> bool:
    """Return whether all keys are text."""
    # CPython stores a dict whose keys are all text in a smaller form, until the first other key is added. So a dict
    # that is smaller than any dict with other keys has text keys only, and the keys need not be read, which would take
    # most of the time of a call. If the size does not decide, the keys are counted.
    if type(docs) is dict and sys.getsizeof(docs) < _least_size(len(docs)):
        return True
    return countOf(map(type, docs), str) == len(docs)


@lru_cache(maxsize=4096)
def _least_size(length: int) -> int:
    """Return the size of the smallest dict with this number of keys that are not text."""
    return sys.getsizeof(dict(dict.fromkeys(range(length))))


def _flat_scores(topics: _TopicDicts, lengths: list[int]) -> Floats:
    """Copy all scores to one array. `struct` is the fastest way, and raises an error for text."""
    flat = np.empty(sum(lengths))
    target = memoryview(flat.data).cast("B")
    pack = {length: struct.Struct(f"{length}d").pack for length in set(lengths)}
    try:
        offset = 0
        for docs, length in zip(topics.values(), lengths, strict=True):
            target[offset : offset + 8 * length] = pack[length](*docs.values())
            offset += 8 * length
    except (struct.error, TypeError, ValueError, OverflowError):
        raise _bad_score(topics) from None
    if np.isnan(flat.min(initial=np.inf)):  # the minimum is NaN if any score is; this needs no temporary array
        raise _bad_score(topics)
    if max(flat.max(initial=0.0), -flat.min(initial=0.0)) >= MAX_EXACT_INTEGER:
        for docs in topics.values():
            check_distinct_as_doubles(docs.values(), "score", "<dict>")
    return flat


def _bad_score(topics: _TopicDicts) -> InputError:
    for name, docs in topics.items():
        for doc, score in docs.items():
            try:
                is_number = struct.pack("d", score) and not np.isnan(float(score))
            except (struct.error, TypeError, ValueError, OverflowError):
                is_number = False
            if not is_number:
                return InputError(
                    f"the score {format_value(score)} of topic {name}, document {doc} is not a number",
                    fix="use int or float scores, not NaN",
                    path="<dict>",
                )
    return InputError("the scores changed while they were read", fix="do not change the dict", path="<dict>")


def _sort_descending(flat: Floats, lengths: Ints, starts: Ints) -> set[int]:
    """Sort the scores of each topic in place. Return the indices of the topics that were not sorted."""
    non_empty = np.flatnonzero(lengths)
    rises = np.zeros(len(flat), dtype=np.bool_)
    np.greater(flat[1:], flat[:-1], out=rises[1:])
    rises[starts[non_empty]] = False
    if not rises.any():
        return set()
    unsorted = non_empty[np.logical_or.reduceat(rises, starts[non_empty])]
    for start, end in zip(starts[unsorted].tolist(), (starts + lengths)[unsorted].tolist(), strict=True):
        flat[start:end][::-1].sort()
    return set(unsorted.tolist())


def _look_up(index: QrelsIndex, topics: _TopicDicts, mixed: set[str]) -> tuple[Ints, Ints, Floats]:
    """Return the topic's index in the run, the qrels row, and the score of each judged document that was returned."""
    # Ids are looked up as text and, in topics with ids that are not text, also as integers.
    looked_up: list[Any] = []
    shift: list[int] = []
    ends: list[int] = []
    judged = index.by_topic
    for topic, docs in topics.items():
        start, names = judged.get(topic, _NOT_JUDGED)
        shift.append(start - len(looked_up))
        if topic in mixed:
            looked_up += [_by_text_or_integer(docs, name) for name in names]
        else:
            looked_up.extend(map(docs.get, names, _NANS))
        ends.append(len(looked_up))
    scores = np.array(looked_up, dtype=np.float64)
    position = np.flatnonzero(~np.isnan(scores))
    segment = np.searchsorted(ends, position, side="right")
    return segment, position + np.array(shift, dtype=np.int64)[segment], scores[position]


def _by_text_or_integer(docs: Mapping[Any, Any], name: str) -> Any:
    """Look up a document by its text, or by the integer with this text."""
    score = docs.get(name)
    number = _integer(name) if score is None else None
    score = score if number is None else docs.get(number)
    return math.nan if score is None else score


def _integer(text: str) -> int | None:
    """Parse an integer in its shortest form: 7 for ``7``, None for ``07``."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def _tie_offsets(
    ids_by_score: Callable[[int], list[str]], ties: TiePolicy, topic: Ints, start: Ints, stop: Ints, ids: list[str]
) -> list[int]:
    """Count, for each tied row, the rows of its tie that the policy ranks before it; rows must be grouped by tie."""
    # Only ties with a judged document are sorted, one at a time: most have two or three documents.
    begins = np.flatnonzero((np.diff(topic, prepend=-1) != 0) | (np.diff(start, prepend=-1) != 0))
    groups = (column[begins].tolist() for column in (topic, start, stop))
    offsets: list[int] = []
    current_topic, docs = -1, [""]
    for group_topic, low, high, (begin, end) in zip(*groups, pairwise((*begins.tolist(), len(ids))), strict=True):
        if group_topic != current_topic:
            current_topic, docs = group_topic, ids_by_score(group_topic)
        tied_docs = docs[low:high]
        if ties != "stable":
            tied_docs.sort(reverse=ties == "docid")
        offsets += map({doc: offset for offset, doc in enumerate(tied_docs)}.__getitem__, ids[begin:end])
    return offsets


def _ids_by_score(
    topics: list[tuple[str, Mapping[Any, Any]]], mixed: set[str], unsorted: set[int], ranking: RankingRules, topic: int
) -> list[str]:
    """Return the document ids of a topic by descending score, equal scores in the order of the dict."""
    name, docs = topics[topic]
    ids = [id_text(doc, "document id") for doc in docs] if name in mixed else list(docs)
    if topic not in unsorted:
        return ids
    scores = round_scores(np.array(list(docs.values()), dtype=np.float64), ranking)
    return [ids[i] for i in np.argsort(-scores, kind="stable").tolist()]
