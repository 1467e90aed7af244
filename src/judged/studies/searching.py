"""How people searched with each system: flexible is a system that is used in many ways."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from judged.studies.records import StudyRecords

_QUESTION = ("who", "what", "when", "where", "why", "how", "which", "is", "are", "can", "does", "do")
_OPERATORS = ('"', " AND ", " OR ", " NOT ", ":", "*", "+")
_SHORT, _DEEP = 2, 10  # words of a short query; a rank on the first page


class Searching(NamedTuple):
    """How one group searched with one system.

    ``ways``: how many different ways were seen, a way being the kind of query, whether it was changed, and how deep
    people looked; ``effective``: the same weighted by how often, the exponential of the entropy; ``own``: on average
    over people, the ways that one person used; ``shares``: of trials, by feature.
    """

    system: str
    group: str
    people: int
    trials: int
    ways: int
    effective: float
    own: float
    shares: dict[str, float]


FEATURES = ("short query", "question", "operators", "changed query", "looked deep", "saved unread", "abandoned")
"""What a trial may have: see `way_of`."""


def searching(records: StudyRecords) -> tuple[Searching, ...]:
    """Say how people searched, by system and group; nothing where no action was logged."""
    group = {row["participant"]: row["group"] for row in records["participants"].to_pylist()}
    events = records.by_trial("events")
    ways = defaultdict[tuple[str, str], list[tuple[str, frozenset[str]]]](list)
    for row in records["trials"].to_pylist():
        did = events.get((row["participant"], row["position"]))
        if did and not row["practice"]:
            ways[row["system"], group[row["participant"]]].append((row["participant"], way_of(did)))
    found = list[Searching]()
    for (system, name), trials in sorted(ways.items()):
        counts = Counter(way for _, way in trials)
        own = defaultdict[str, set[frozenset[str]]](set)
        for person, way in trials:
            own[person].add(way)
        entropy = -sum(count / len(trials) * math.log(count / len(trials)) for count in counts.values())
        shares = {one: sum(one in way for _, way in trials) / len(trials) for one in FEATURES}
        mean = sum(map(len, own.values())) / len(own)
        found.append(Searching(system, name, len(own), len(trials), len(counts), math.exp(entropy), mean, shares))
    return tuple(found)


def way_of(events: list[Any]) -> frozenset[str]:
    """Say in which way somebody searched, from the actions of one trial.

    The first query is short (up to two words), a question, or has operators; it was changed; a result beyond the tenth
    was opened or a further page asked for; a document was saved unread; nothing was opened or saved.

    >>> sorted(way_of([{"action": "query", "query": "who wrote Faust?", "page": 1, "doc_id": None, "rank": None},
    ...                {"action": "click", "query": "who wrote Faust?", "page": 1, "doc_id": "d", "rank": 12}]))
    ['looked deep', 'question']
    """
    queries = [row["query"] or "" for row in events if row["action"] == "query"]
    first = queries[0] if queries else ""
    words = first.lower().split()
    clicked = {row["doc_id"] for row in events if row["action"] == "click"}
    saved = {row["doc_id"] for row in events if row["action"] == "save"}
    deep = any((row["rank"] or 0) > _DEEP for row in events if row["action"] == "click")
    return frozenset(name for name, there in zip(FEATURES, (
        0 < len(words) <= _SHORT,
        first.rstrip().endswith("?") or any(word in _QUESTION for word in words[:1]),
        any(sign in first for sign in _OPERATORS),
        len(set(queries)) > 1,
        deep or any((row["page"] or 1) > 1 for row in events if row["action"] == "query"),
        bool(saved - clicked),
        not (clicked or saved),
    ), strict=True) if there)  # fmt: skip
