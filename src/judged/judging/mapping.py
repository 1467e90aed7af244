"""Find the judged documents of a run that is a dict of dicts, without touching the other ids.

Python's own hash tables are the join here: each judged document is looked up in its topic's dict. The
result is the same as that of `scan` on the same rows; a property test holds the two together.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from operator import countOf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.ids import id_text, shown
from judged.errors import InputError
from judged.judging.ranking import DuplicateDocumentError, as_compared
from judged.judging.run_hits import RunHits, nothing
from judged.judging.segments import falling_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Floats, Ints
    from judged.data.index import QrelsIndex
    from judged.judging.ranking import Ranking

_Topics: TypeAlias = "dict[str, Mapping[Any, Any]]"


def scan_mapping(index: QrelsIndex, mapping: Mapping[Any, Mapping[Any, Any]], ranking: Ranking) -> RunHits:
    """Find the judged documents of ``{query_id: {doc_id: score}}`` and their ranks."""
    topics = _topics(mapping)
    if not topics:
        return nothing()
    odd = _refuse_duplicates(topics)
    counts = list(map(len, topics.values()))
    flat = as_compared(_flat_scores(topics, counts), ranking)
    lengths = np.array(counts, dtype=np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    _make_fall(flat, starts, ends)
    segment, row, given = _look_up(index, topics, odd)
    score = as_compared(given, ranking)
    first, behind = falling_bounds(flat, starts[segment], ends[segment], score)
    ids = [index.row_names[at] for at in row.tolist()]
    place = first + _tie_offsets(list(topics.values()), segment, ids, score, behind - first, ranking)
    start = starts[segment]
    return RunHits(
        names=tuple(topics),
        returned=lengths,
        topic=index.topic[row],
        doc=pa.array(ids, pa.string()),
        rank=place - start + 1,
        tie_first=first - start + 1,
        tie_last=behind - start,
        score=score,
        row=row,
    )


def _topics(mapping: Mapping[Any, Mapping[Any, Any]]) -> _Topics:
    topics: _Topics = {}
    for key, docs in mapping.items():
        name = key if type(key) is str else id_text(key, "query id")
        if name in topics:
            raise InputError(f"topic {name} appears twice, as text and as an integer", fix="use one of them")
        topics[name] = docs
    return topics


def _refuse_duplicates(topics: _Topics) -> set[str]:
    """Refuse ids that are not ids, and a document that stands twice: as text and as an integer."""
    # Gives the topics whose ids are not all text.
    odd = {name for name, docs in topics.items() if not _all_text(docs)}
    for name in odd:
        seen: set[str] = set()
        for doc in topics[name]:
            if (text := id_text(doc, "document id")) in seen:
                raise DuplicateDocumentError(name, text, "<dict>")
            seen.add(text)
    return odd


def _all_text(docs: Mapping[Any, Any]) -> bool:
    """Whether all keys are text."""
    # CPython keeps a dict whose keys are all text in a smaller form, and changes the form at the first other key. So a
    # dict that is smaller than any with other keys can be holds text only, and no key is looked at, which would take
    # longer than all the rest. Where that cannot be told, the keys are counted.
    if type(docs) is dict and sys.getsizeof(docs) < _least_size(len(docs)):
        return True
    return countOf(map(type, docs), str) == len(docs)


@lru_cache(maxsize=4096)
def _least_size(length: int) -> int:
    """Give the size of the smallest dict of so many keys that are not text."""
    return sys.getsizeof(dict(dict.fromkeys(range(length))))


def _flat_scores(topics: _Topics, lengths: list[int]) -> Floats:
    """Lay all scores out in one array. `struct` is the fastest way there, and it refuses text."""
    flat = np.empty(sum(lengths))
    target = memoryview(flat.data).cast("B")
    pack = {length: struct.Struct(f"{length}d").pack for length in set(lengths)}
    try:
        at = 0
        for docs, length in zip(topics.values(), lengths, strict=True):
            target[at : at + 8 * length] = pack[length](*docs.values())
            at += 8 * length
    except (struct.error, TypeError, ValueError, OverflowError):
        raise _bad_score(topics) from None
    if np.isnan(flat.min(initial=np.inf)):  # a minimum is NaN if anything is, and needs no array of its own
        raise _bad_score(topics)
    return flat


def _bad_score(topics: _Topics) -> InputError:
    for name, docs in topics.items():
        for doc, score in docs.items():
            try:
                good = struct.pack("d", score) and not np.isnan(float(score))
            except (struct.error, TypeError, ValueError, OverflowError):
                good = False
            if not good:
                return InputError(
                    f"the score {shown(score)} of topic {name}, document {doc} is not a number",
                    fix="give scores as int or float, not NaN",
                    path="<dict>",
                )
    return InputError("the scores changed while they were read", fix="give a dict that stays as it is", path="<dict>")


def _make_fall(flat: Floats, starts: Ints, ends: Ints) -> None:
    """Sort the scores of each topic that does not fall already; `flat` is ours."""
    rises = np.flatnonzero(flat[1:] > flat[:-1]) + 1
    rises = rises[~np.isin(rises, starts)]
    for topic in np.unique(np.searchsorted(ends, rises, side="right")).tolist():
        part = flat[starts[topic] : ends[topic]]
        part[::-1].sort()


def _look_up(index: QrelsIndex, topics: _Topics, odd: set[str]) -> tuple[Ints, Ints, Floats]:
    """Give, for each judged document that was returned: its topic's place in the run, its qrels row, its score."""
    # A document is looked up under its text and, in the topics whose ids are not all text, under its integer.
    got: list[Any] = []
    first: list[int] = []
    ends: list[int] = []
    names, bounds, codes = index.row_names, index.bounds, index.codes
    for topic, docs in topics.items():
        code = codes.get(topic, -1)
        start, end = (bounds[code], bounds[code + 1]) if code >= 0 else (0, 0)
        if topic in odd:
            got += [_by_text_or_integer(docs, name) for name in names[start:end]]
        else:
            got.extend(map(docs.get, names[start:end]))
        first.append(start)
        ends.append(len(got))
    kept = [at for at, score in enumerate(got) if score is not None]
    scores = np.array([got[at] for at in kept], dtype=np.float64)
    at = np.array(kept, dtype=np.int64)
    segment = np.searchsorted(ends, at, side="right")
    begins = np.concatenate(([0], ends))[segment].astype(np.int64)
    return segment, np.array(first, dtype=np.int64)[segment] + at - begins, scores


def _by_text_or_integer(docs: Mapping[Any, Any], name: str) -> Any:
    """Look a document up under its text, or under the integer that its text is."""
    score = docs.get(name)
    number = _integer(name) if score is None else None
    return score if number is None else docs.get(number)


def _integer(text: str) -> int | None:
    """Give the integer that is written so, and in no other way: 7 for ``7``, none for ``07``."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def _tie_offsets(
    topics: list[Mapping[Any, Any]], segment: Ints, ids: list[str], score: Floats, size: Ints, ranking: Ranking
) -> Ints:
    """Count, for each row, the equals that stand before it by the tie policy."""
    offsets = np.zeros(len(ids), dtype=np.int64)
    tied: dict[int, list[int]] = {}
    for row in np.flatnonzero(size > 1).tolist():
        tied.setdefault(int(segment[row]), []).append(row)
    for topic, rows in tied.items():
        equals: dict[float, list[str]] = {float(score[row]): [] for row in rows}
        docs = topics[topic]
        compared = as_compared(np.array(list(docs.values()), dtype=np.float64), ranking).tolist()
        for doc, value in zip(docs, compared, strict=True):
            if (group := equals.get(value)) is not None:
                group.append(id_text(doc, "document id"))
        if ranking.ties != "stable":
            for group in equals.values():
                group.sort(reverse=ranking.ties == "docid")
        places = {value: {doc: at for at, doc in enumerate(group)} for value, group in equals.items()}
        for row in rows:
            offsets[row] = places[float(score[row])][ids[row]]
    return offsets
