"""Blind side-by-side preferences of people for systems, and how people searched."""

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
    from collections.abc import Iterator, Sequence

    from judged.results.types import Floats
    from judged.studies.records import StudyRecords


_ROUNDING = 1e-9


class PairPreference(NamedTuple):
    """How often the second of two systems was preferred to the first.

    ``value``: share of wins plus half of the ties, each person with equal weight; ``p``: of a sign-flip test over
    people, NaN if there are too few, with the ``reason``.
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
    """Bradley-Terry log-strength of a system, with mean 0 over systems.

    ``ci`` is over people; None if there are too few, or if the strength is not finite.
    """

    system: str
    strength: float
    ci: tuple[float, float] | None


class SideBias(NamedTuple):
    """Share of preferences for the left list, ties excluded, each person with equal weight.

    ``p``: of a sign-flip test over people; NaN if there are too few. ``preferred``: whether one side was significantly.
    """

    comparisons: int
    people: int
    left: float
    p: float
    preferred: bool


def pair_preferences(records: StudyRecords, *, seed: int = 0) -> tuple[PairPreference, ...]:
    """Compare each pair of systems that were shown side by side, each person with equal weight."""
    rows = records["preferences"].to_pylist()
    pair_rows = list[PairPreference]()
    for pair in combinations(sorted({name for row in rows for name in (row["left"], row["right"])}), 2):
        comparisons = [row for row in rows if {row["left"], row["right"]} == set(pair)]
        if not comparisons:
            continue
        # 1: the second system was preferred; -1: the first; 0: neither.
        signs = defaultdict[str, list[int]](list)
        for row in comparisons:
            signs[row["participant"]].append((row["preferred"] == pair[1]) - (row["preferred"] == pair[0]))
        means = np.array([sum(signs[person]) / len(signs[person]) for person in sorted(signs)])
        wins, losses = (sum(row["preferred"] == name for row in comparisons) for name in reversed(pair))
        value, missing = 0.5 + float(means.mean()) / 2, insufficiency(len(means))
        reason = missing.sentence("participant") if missing else ""
        p = _sign_flip_p(means, seed)
        pair_rows.append(PairPreference(*pair, len(means), len(comparisons), wins, losses, value, p, reason))
    return tuple(pair_rows)


def _sign_flip_p(means: Floats, seed: int) -> float:
    # Flipping the signs of people's means is exact for any distribution that is symmetric around 0.
    return math.nan if insufficiency(len(means)) else paired_test(np.zeros(len(means)), means, seed=seed).p


def preference_strengths(records: StudyRecords, *, level: float = 0.95) -> tuple[Strength, ...]:
    """Estimate the Bradley-Terry strengths of three or more systems, with intervals over people.

    Intervals: Student's t with standard errors clustered by person, both for Kish's effective number of people, because
    some compare more often than others. If a system never won or lost, strengths are NaN and have no intervals.
    """
    rows = records["preferences"].to_pylist()
    names = sorted({name for row in rows for name in (row["left"], row["right"])})
    if len(names) < 3:
        return ()
    people = sorted({row["participant"] for row in rows})
    wins = np.zeros((len(people), len(names), len(names)))
    for row in rows:
        left, right = names.index(row["left"]), names.index(row["right"])
        # A tie is half a win for each system (Davidson 1970 treats ties as a separate outcome).
        share = {row["left"]: 1.0, row["right"]: 0.0}.get(row["preferred"], 0.5)
        wins[people.index(row["participant"]), left, right] += share
        wins[people.index(row["participant"]), right, left] += 1.0 - share
    values = bradley_terry(wins.sum(axis=0))
    intervals: list[tuple[float, float] | None] = [None] * len(names)
    comparisons = wins.sum(axis=(1, 2))
    if not np.isnan(values).any() and insufficiency(len(people), weights=comparisons) is None:
        effective = min(effective_units(float(comparisons.sum()), float(comparisons @ comparisons)), len(people))
        # The factor P / (P - 1) of the errors, and the degrees of freedom, use the effective number of people.
        inflation = math.sqrt((1.0 - 1.0 / len(people)) / (1.0 - 1.0 / effective))
        errors = inflation * bradley_terry_errors(wins, values)
        half_widths = student_quantiles((1 + level) / 2, np.array(effective - 1.0)) * errors
        intervals = [(float(value - width), float(value + width)) if width > _ROUNDING else None
                     for value, width in zip(values, half_widths, strict=True)]  # fmt: skip
    return tuple(Strength(name, float(values[i]), intervals[i]) for i, name in enumerate(names))


def side_bias(records: StudyRecords, *, level: float = 0.95, seed: int = 0) -> SideBias | None:
    """Estimate how often the left list was preferred, over people; None without any preference."""
    by_person = defaultdict[str, list[bool]](list)
    for row in records["preferences"].to_pylist():
        if row["preferred"]:
            by_person[row["participant"]].append(row["preferred"] == row["left"])
    if not by_person:
        return None
    left_shares = np.array([float(np.mean(is_left)) for is_left in by_person.values()])
    p = _sign_flip_p(2 * left_shares - 1, seed)
    is_biased = insufficiency(len(left_shares), "verdict") is None and p <= round(1 - level, 12)
    count = sum(map(len, by_person.values()))
    return SideBias(count, len(left_shares), float(left_shares.mean()), p, is_biased)


_MAX_ITERATIONS, _TOLERANCE = 10_000, 1e-12


def bradley_terry(wins: Floats) -> Floats:
    """Estimate Bradley-Terry log-strengths with mean 0; all NaN if the likelihood has no finite maximum.

    Parameters
    ----------
    wins
        (S, S): how often the row's system was preferred to the column's; a tie is half a win for each.

    Examples
    --------
    >>> bradley_terry(np.array([[0.0, 3.0], [1.0, 0.0]])).round(4).tolist()  # log(3) / 2 and -log(3) / 2
    [0.5493, -0.5493]
    """
    comparisons, total_wins = wins + wins.T, wins.sum(axis=1)
    reachable = np.linalg.matrix_power((wins > 0) + np.eye(len(wins)), len(wins)) > 0
    if not reachable.all():  # Ford 1957: finite only if each system is linked to each other by a chain of wins
        return np.full(len(wins), np.nan)
    strength = np.ones(len(wins))
    for _ in range(_MAX_ITERATIONS):  # the MM algorithm, Hunter 2004, eq. 3
        previous = strength
        strength = total_wins / (comparisons / (previous[:, None] + previous)).sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
        if np.abs(strength - previous).max() < _TOLERANCE:
            break
    return np.log(strength)


def bradley_terry_errors(wins: Floats, strength: Floats) -> Floats:
    """Compute standard errors of the strengths, (S,), robust to correlated comparisons of a person.

    The cluster-robust sandwich estimator, times P / (P - 1).

    Parameters
    ----------
    wins
        (P, S, S): the wins of each person.
    strength
        (S,): what `strengths` returns for the sum over persons.

    Examples
    --------
    Four persons with one comparison each, three of them wins: the variance of the log-odds is 1/3 + 1, times 4/3; a
    strength is half of the log-odds.

    >>> wins = np.array([[[0.0, 1.0], [0.0, 0.0]]] * 3 + [[[0.0, 0.0], [1.0, 0.0]]])
    >>> (bradley_terry_errors(wins, bradley_terry(wins.sum(axis=0))) ** 2 * 4).round(6).tolist()
    [1.777778, 1.777778]
    """
    persons = len(wins)
    # Bradley and Terry 1952: P(i beats j) = 1 / (1 + exp(s_j - s_i)).
    expected = 1.0 / (1.0 + np.exp(strength - strength[:, None]))  # P(the row is preferred to the column)
    comparisons = wins + wins.transpose(0, 2, 1)
    scores = (wins - comparisons * expected).sum(axis=2)  # derivatives of each person's log-likelihood
    weights = comparisons.sum(axis=0) * expected * expected.T
    # A pseudoinverse: only differences of strengths are identified, so the information matrix is singular.
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    influences = scores @ inverse
    return np.sqrt((influences**2).sum(axis=0) * persons / (persons - 1))


_QUESTION_WORDS = ("who", "what", "when", "where", "why", "how", "which", "is", "are", "can", "does", "do")
_OPERATORS = ('"', " AND ", " OR ", " NOT ", ":", "*", "+")
_MAX_SHORT_WORDS, _MAX_SHALLOW_RANK = 2, 10


class SearchBehavior(NamedTuple):
    """Search behavior of one group with one system and interface variant.

    ``strategies``: number of different strategies (see `search_strategy`); ``effective_strategies``: the exponential of
    their entropy; ``strategies_per_person``: mean number of strategies per person; ``shares``: of trials, by feature.
    """

    system: str
    variant: str
    group: str
    people: int
    trials: int
    strategies: int
    effective_strategies: float
    strategies_per_person: float
    shares: dict[str, float]


FEATURES = (
    "short query", "question", "operators", "changed query", "deep results", "saved unread", "abandoned",
    "raised terms", "lowered terms",
)  # fmt: skip
"""Features of a trial: see `search_strategy`."""


def search_behavior(records: StudyRecords) -> tuple[SearchBehavior, ...]:
    """Summarize how people searched, by system, variant, and group; empty without a log of actions."""
    groups = {row["participant"]: row["group"] for row in records["participants"].to_pylist()}
    strategies = defaultdict[tuple[str, str, str], list[tuple[str, frozenset[str]]]](list)
    for row, strategy in _trial_strategies(records):
        person = row["participant"]
        strategies[row["system"], row["variant"], groups[person]].append((person, strategy))
    rows = list[SearchBehavior]()
    for condition, trials in sorted(strategies.items()):
        n, counts = len(trials), Counter(strategy for _, strategy in trials)
        by_person = defaultdict[str, set[frozenset[str]]](set)
        for person, strategy in trials:
            by_person[person].add(strategy)
        effective = math.exp(-sum(count / n * math.log(count / n) for count in counts.values()))
        shares = {feature: sum(feature in strategy for _, strategy in trials) / n for feature in FEATURES}
        mean = sum(map(len, by_person.values())) / len(by_person)
        rows.append(SearchBehavior(*condition, len(by_person), n, len(counts), effective, mean, shares))
    return tuple(rows)


def _trial_strategies(records: StudyRecords) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Yield each trial that has actions, practice excluded, with its strategy."""
    events, weights = records.by_trial("events"), records.by_trial("weights")
    for row in records["trials"].to_pylist():
        key = row["participant"], row["position"]
        if (trial_events := events.get(key)) and not row["practice"]:
            yield row, search_strategy(trial_events, [term["weight"] for term in weights[key]])


def strategy_counts(records: StudyRecords) -> dict[tuple[str, str, str], float]:
    """Count the different strategies of each participant, by participant, system, and variant.

    More trials show more strategies. If a participant did more trials with one condition than with another, the count
    is the expected one for a random subset of the trials, as many as with the least used condition (rarefaction,
    Hurlbert 1971).

    Examples
    --------
    With "a", three trials have two strategies; two of the three are different with probability 2/3. With "b", both
    trials have the same strategy.

    >>> from judged.studies import StudyRecords
    >>> queries = ["who?", "who?", "Faust", "Faust", "Faust"]
    >>> keys = [{"participant": "p", "position": i} for i in range(1, 6)]
    >>> trials = [{**key, "query_id": "q", "system": system} for key, system in zip(keys, "aaabb")]
    >>> events = [{**key, "time": 0, "action": "query", "query": query} for key, query in zip(keys, queries)]
    >>> records = StudyRecords.of({"participants": [{"participant": "p"}], "trials": trials, "events": events})
    >>> {key[1]: round(count, 3) for key, count in strategy_counts(records).items()}
    {'a': 1.667, 'b': 1.0}
    """
    counts = defaultdict[tuple[str, str, str], Counter[frozenset[str]]](Counter)
    for row, strategy in _trial_strategies(records):
        counts[row["participant"], row["system"], row["variant"]][strategy] += 1
    fewest = dict[str, int]()
    for (person, *_), strategies in counts.items():
        fewest[person] = min(strategies.total(), fewest.get(person, strategies.total()))
    return {
        key: sum(
            1 - math.comb(strategies.total() - count, fewest[key[0]]) / math.comb(strategies.total(), fewest[key[0]])
            for count in strategies.values()
        )
        for key, strategies in counts.items()
    }


def search_strategy(events: list[Any], weights: Sequence[float] = ()) -> frozenset[str]:
    """Return the features of one trial from its actions, and from all weights of terms on its result pages.

    Features: the first query is short (up to two words), is a question, or has operators; the query changed; a result
    beyond rank 10 was opened or a further page was requested (deep results); a document was saved without opening it;
    no document was opened or saved; a term had a weight above 1 (raised), or below 1 (lowered).

    >>> query = {"action": "query", "query": "who wrote Faust?", "page": 1, "doc_id": None, "rank": None}
    >>> sorted(search_strategy([query, {**query, "action": "click", "doc_id": "d", "rank": 12}]))
    ['deep results', 'question']
    """
    queries = [row["query"] or "" for row in events if row["action"] == "query"]
    first = queries[0] if queries else ""
    words = first.lower().split()
    clicked = {row["doc_id"] for row in events if row["action"] == "click"}
    saved = {row["doc_id"] for row in events if row["action"] == "save"}
    is_deep = any((row["rank"] or 0) > _MAX_SHALLOW_RANK for row in events if row["action"] == "click")
    return frozenset(name for name, is_present in zip(FEATURES, (
        0 < len(words) <= _MAX_SHORT_WORDS,
        first.rstrip().endswith("?") or any(word in _QUESTION_WORDS for word in words[:1]),
        any(operator in first for operator in _OPERATORS),
        len(set(queries)) > 1,
        is_deep or any((row["rank"] or 1) > 1 for row in events if row["action"] == "query"),
        bool(saved - clicked),
        not (clicked or saved),
        any(weight > 1 for weight in weights),
        any(weight < 1 for weight in weights),
    ), strict=True) if is_present)  # fmt: skip
