"""Which of two systems people preferred side by side, blind: signs over people, and strengths of several systems."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.stats.paired import paired_test
from judged.stats.ratio import effective_units, student_quantiles
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.studies.records import StudyRecords


_NONE = 1e-9


class Preferred(NamedTuple):
    """How often the second of two systems was preferred to the first.

    ``value``: wins and half of the ties, by comparisons, each person counting once; ``p``: of signs of people, NaN
    where there are too few people, and ``reason`` then says so.
    """

    first: str
    second: str
    people: int
    comparisons: int
    wins: int
    losses: int
    value: float
    p: float
    reason: str = ""


class Strength(NamedTuple):
    """A system's strength by Bradley and Terry: the logarithm, 0 on average.

    Its interval is over people; None where there are too few, or the strength is not finite.
    """

    system: str
    strength: float
    ci: tuple[float, float] | None


class Side(NamedTuple):
    """How often what stood left was preferred, of those with a preference, each person counting once.

    ``p``: of signs of people; NaN where there are too few. ``preferred``: whether one side was, at 5%.
    """

    comparisons: int
    people: int
    left: float
    p: float
    preferred: bool


def preferred(records: StudyRecords, *, seed: int = 0) -> tuple[Preferred, ...]:
    """Compare each two systems that were shown side by side, over people: who answers often counts no more."""
    rows = records["preferences"].to_pylist()
    found = list[Preferred]()
    for pair in combinations(sorted({name for row in rows for name in (row["left"], row["right"])}), 2):
        given = [row for row in rows if {row["left"], row["right"]} == set(pair)]
        if not given:
            continue
        people = sorted({row["participant"] for row in given})
        signs = dict.fromkeys(people, 0.0)
        counts = dict.fromkeys(people, 0)
        for row in given:
            counts[row["participant"]] += 1
            signs[row["participant"]] += (row["preferred"] == pair[1]) - (row["preferred"] == pair[0])
        each = np.array([signs[one] / counts[one] for one in people])
        wins, losses = (sum(row["preferred"] == name for row in given) for name in reversed(pair))
        value, lacking = 0.5 + float(each.mean()) / 2, insufficiency(len(each))
        reason = lacking.sentence("participant") if lacking else ""
        found.append(Preferred(*pair, len(people), len(given), wins, losses, value, _p(each, seed), reason))
    return tuple(found)


def _p(each: Floats, seed: int) -> float:
    """Test by the signs of people whether their mean is 0: exact for any distribution that is symmetric around it."""
    return math.nan if insufficiency(len(each)) else paired_test(np.zeros(len(each)), each, seed=seed).p


def strengths_of(records: StudyRecords, *, level: float = 0.95) -> tuple[Strength, ...]:
    """Return the strengths of three systems or more; intervals are over people.

    Student's t with the standard error clustered by person, both of Kish's effective number of people, as some compare
    more often than others. Where a system never won, or never lost, there are no strengths, and no intervals.
    """
    rows = records["preferences"].to_pylist()
    names = sorted({name for row in rows for name in (row["left"], row["right"])})
    if len(names) < 3:
        return ()
    people = sorted({row["participant"] for row in rows})
    wins = np.zeros((len(people), len(names), len(names)))
    for row in rows:
        left, right = names.index(row["left"]), names.index(row["right"])
        share = {row["left"]: 1.0, row["right"]: 0.0}.get(row["preferred"], 0.5)
        wins[people.index(row["participant"]), left, right] += share
        wins[people.index(row["participant"]), right, left] += 1.0 - share
    values = strengths(wins.sum(axis=0))
    intervals: list[tuple[float, float] | None] = [None] * len(names)
    compared = wins.sum(axis=(1, 2))
    if not np.isnan(values).any() and insufficiency(len(people), weights=compared) is None:
        effective = min(effective_units(float(compared.sum()), float(compared @ compared)), len(people))
        widened = math.sqrt((1.0 - 1.0 / len(people)) / (1.0 - 1.0 / effective))
        far = student_quantiles((1 + level) / 2, np.array(effective - 1.0)) * widened * strength_errors(wins, values)
        intervals = [(float(value - half), float(value + half)) if half > _NONE else None
                     for value, half in zip(values, far, strict=True)]  # fmt: skip
    return tuple(Strength(name, float(values[at]), intervals[at]) for at, name in enumerate(names))


def sides(records: StudyRecords, *, level: float = 0.95, seed: int = 0) -> Side | None:
    """Return how often the left one was preferred, over people; None where nobody preferred one."""
    by_person = defaultdict[str, list[bool]](list)
    for row in records["preferences"].to_pylist():
        if row["preferred"]:
            by_person[row["participant"]].append(row["preferred"] == row["left"])
    if not by_person:
        return None
    left = np.array([float(np.mean(own)) for own in by_person.values()])
    p = _p(2 * left - 1, seed)
    preferred_side = insufficiency(len(left), "verdict") is None and p <= round(1 - level, 12)
    return Side(sum(map(len, by_person.values())), len(left), float(left.mean()), p, preferred_side)


_STEPS, _CLOSE = 10_000, 1e-12


def strengths(wins: Floats) -> Floats:
    """Give the logarithms of the strengths, of mean 0; NaN for all where they have no finite maximum.

    Parameters
    ----------
    wins
        (S, S): how often the row's system was preferred to the column's; a tie is half a win of each.

    Examples
    --------
    >>> strengths(np.array([[0.0, 3.0], [1.0, 0.0]])).round(4).tolist()  # half the logarithm of 3, and less it
    [0.5493, -0.5493]
    """
    games, won = wins + wins.T, wins.sum(axis=1)
    reach = np.linalg.matrix_power((wins > 0) + np.eye(len(wins)), len(wins)) > 0
    if not reach.all():  # a system, or some together, that never lost or never won (Ford 1957)
        return np.full(len(wins), np.nan)
    strength = np.ones(len(wins))
    for _ in range(_STEPS):
        before = strength
        strength = won / (games / (before[:, None] + before)).sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
        if np.abs(strength - before).max() < _CLOSE:
            break
    return np.log(strength)


def strength_errors(wins: Floats, strength: Floats) -> Floats:
    """Return standard errors of the strengths, (S,), that are robust to how the comparisons of a person hang together.

    The sandwich estimator clustered by person, times P / (P - 1).

    Parameters
    ----------
    wins
        (P, S, S): the wins of each person.
    strength
        (S,): what `strengths` returns for the sum over persons.

    Examples
    --------
    Four persons with one comparison each, three of them won: the variance of the logarithm of the odds is 1/3 + 1, here
    times 4/3; a strength is half of that logarithm.

    >>> wins = np.array([[[0.0, 1.0], [0.0, 0.0]]] * 3 + [[[0.0, 0.0], [1.0, 0.0]]])
    >>> (strength_errors(wins, strengths(wins.sum(axis=0))) ** 2 * 4).round(6).tolist()
    [1.777778, 1.777778]
    """
    persons = len(wins)
    expected = 1.0 / (1.0 + np.exp(strength - strength[:, None]))  # the chance that the row is preferred to the column
    games = wins + wins.transpose(0, 2, 1)
    scores = (wins - games * expected).sum(axis=2)
    weights = games.sum(axis=0) * expected * expected.T
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    spread = scores @ inverse
    return np.sqrt((spread**2).sum(axis=0) * persons / (persons - 1))


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
