"""Find the judged documents of a run that is a dict of dicts, without touching the other ids.

Python's own hash tables are the join here: each judged document is looked up in its topic's dict. The
result is the same as that of `scan` on the same rows; a property test holds the two together.
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

from judged.data.index import id_text, shown
from judged.data.layout import WHOLE_TO
from judged.data.rows import refuse_equal_wholes
from judged.errors import InputError
from judged.scoring.judging.ranking import DuplicateDocumentError, RunHits, as_compared, falling_bounds, nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.data.index import QrelsIndex
    from judged.results.types import Floats, Ints
    from judged.scoring.judging.ranking import Ranking, TiePolicy

_Topics: TypeAlias = "dict[str, Mapping[Any, Any]]"
_NANS = repeat(math.nan)  # what stands for a document that was not returned
_NOT_JUDGED: tuple[int, list[str]] = 0, []


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
    rising = _make_fall(flat, lengths, starts)
    segment, row, given = _look_up(index, topics, odd)
    score, start = as_compared(given, ranking), starts[segment]
    first, behind = falling_bounds(flat, start, ends[segment], score)
    place = first - start
    if len(tied := np.flatnonzero(behind - first > 1)):
        tied = tied[np.argsort(first[tied], kind="stable")]  # equals behind each other, and all of a topic
        ids = [index.row_names[at] for at in row[tied].tolist()]
        by_score = partial(_by_score, list(topics.items()), odd, rising, ranking)
        place[tied] += _tie_offsets(by_score, ranking.ties, segment[tied], place[tied], (behind - start)[tied], ids)
    filled = [(topic, docs) for topic, docs in topics.items() if docs]
    best = flat[starts[lengths > 0]].tolist()
    return RunHits(
        names=tuple(topics),
        returned=lengths,
        topic=index.topic[row],
        doc=None,
        rank=place + 1,
        tie_first=first - start + 1,
        tie_last=behind - start,
        score=score,
        row=row,
        self_first=sum(docs.get(topic) == most for (topic, docs), most in zip(filled, best, strict=True)),
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
    if max(flat.max(initial=0.0), -flat.min(initial=0.0)) >= WHOLE_TO:
        for docs in topics.values():
            refuse_equal_wholes(docs.values(), "score", "<dict>")
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


def _make_fall(flat: Floats, lengths: Ints, starts: Ints) -> set[int]:
    """Sort the scores of each topic that does not fall already, and give the places of these topics; `flat` is ours."""
    full = np.flatnonzero(lengths)
    rises = np.zeros(len(flat), dtype=np.bool_)
    np.greater(flat[1:], flat[:-1], out=rises[1:])
    rises[starts[full]] = False
    if not rises.any():
        return set()
    rising = full[np.logical_or.reduceat(rises, starts[full])]
    for start, end in zip(starts[rising].tolist(), (starts + lengths)[rising].tolist(), strict=True):
        flat[start:end][::-1].sort()
    return set(rising.tolist())


def _look_up(index: QrelsIndex, topics: _Topics, odd: set[str]) -> tuple[Ints, Ints, Floats]:
    """Give, for each judged document that was returned: its topic's place in the run, its qrels row, its score."""
    # A document is looked up under its text and, in the topics whose ids are not all text, under its integer.
    got: list[Any] = []
    shift: list[int] = []
    ends: list[int] = []
    judged = index.by_topic
    for topic, docs in topics.items():
        start, names = judged.get(topic, _NOT_JUDGED)
        shift.append(start - len(got))
        if topic in odd:
            got += [_by_text_or_integer(docs, name) for name in names]
        else:
            got.extend(map(docs.get, names, _NANS))
        ends.append(len(got))
    scores = np.array(got, dtype=np.float64)
    at = np.flatnonzero(~np.isnan(scores))
    segment = np.searchsorted(ends, at, side="right")
    return segment, at + np.array(shift, dtype=np.int64)[segment], scores[at]


def _by_text_or_integer(docs: Mapping[Any, Any], name: str) -> Any:
    """Look a document up under its text, or under the integer that its text is."""
    score = docs.get(name)
    number = _integer(name) if score is None else None
    score = score if number is None else docs.get(number)
    return math.nan if score is None else score


def _integer(text: str) -> int | None:
    """Give the integer that is written so, and in no other way: 7 for ``7``, none for ``07``."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def _tie_offsets(
    by_score: Callable[[int], list[str]], ties: TiePolicy, topic: Ints, first: Ints, behind: Ints, ids: list[str]
) -> list[int]:
    """Count, for each tied row, the equals that stand before it by the tie policy; equals stand behind each other."""
    # Only groups that hold a judged document are put in order, one at a time: most hold two or three documents.
    begins = np.flatnonzero((np.diff(topic, prepend=-1) != 0) | (np.diff(first, prepend=-1) != 0))
    groups = (column[begins].tolist() for column in (topic, first, behind))
    offsets: list[int] = []
    here, docs = -1, [""]
    for at, low, high, (begin, end) in zip(*groups, pairwise((*begins.tolist(), len(ids))), strict=True):
        if at != here:
            here, docs = at, by_score(at)
        equals = docs[low:high]
        if ties != "stable":
            equals.sort(reverse=ties == "docid")
        offsets += map({doc: before for before, doc in enumerate(equals)}.__getitem__, ids[begin:end])
    return offsets


def _by_score(
    topics: list[tuple[str, Mapping[Any, Any]]], odd: set[str], rising: set[int], ranking: Ranking, topic: int
) -> list[str]:
    """Give the document ids of a topic in the order of their scores, equals as they are listed."""
    name, docs = topics[topic]
    ids = [id_text(doc, "document id") for doc in docs] if name in odd else list(docs)
    if topic not in rising:
        return ids
    scores = as_compared(np.array(list(docs.values()), dtype=np.float64), ranking)
    return [ids[at] for at in np.argsort(-scores, kind="stable").tolist()]
