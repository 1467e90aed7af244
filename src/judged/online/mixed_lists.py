"""Interleaving of the lists of two rankers for one user, with no dependencies outside the standard library.

The file can be copied into a search service. `judged.online.interleaving` analyzes the attributes that it logs.

>>> mixed = interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], names=("old", "new"), key=("ranking", "u7", "sofa"))
>>> mixed.documents, mixed.teams
(('d1', 'd2', 'd4'), ('old', 'new', 'new'))
>>> mixed.attributes()["interleaving_ranks"]
'1/3 2/1 -/2'
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

METHODS = ("team-draft", "balanced", "probabilistic")
LENGTHS = ("shorter", "longer")
TAU = 3.0  # exponent of the softmax over ranks in probabilistic interleaving
_NOT_RETURNED = math.inf


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Interleaved list, with the values to log. All tuples are in the order of positions.

    Parameters
    ----------
    documents
        Documents to show.
    teams
        Ranker that gets the credit for a click; None: neither.
    ranks
        Ranks in the lists of the first and second ranker; None: not in the list.
    propensities
        Probability of each document at its rank given the documents above it; their product is that of the list.
    names, method, length, cut
        Rankers, interleaving method, policy for lists of unequal length, and rank at which both lists were truncated.
    """

    documents: tuple[str, ...]
    teams: tuple[str | None, ...]
    ranks: tuple[tuple[int | None, int | None], ...]
    propensities: tuple[float, ...]
    names: tuple[str, str]
    method: str
    length: str
    cut: int

    def attributes(self) -> dict[str, object]:
        """Return the values to log under ``query_attributes`` of the page in a UBI log."""
        return {
            "interleaving": {"teams": list(self.teams)},
            "propensities": [round(probability, 6) for probability in self.propensities],
            "propensity_convention": "conditional",
            "interleaving_method": self.method,
            "interleaving_first": self.names[0],
            "interleaving_length": self.length,
            "interleaving_cut": self.cut,
            "interleaving_ranks": " ".join("/".join(str(rank or "-") for rank in pair) for pair in self.ranks),
        }


def interleave(
    first: Sequence[str],
    second: Sequence[str],
    *,
    key: Sequence[str],
    names: tuple[str, str] = ("A", "B"),
    method: str = "team-draft",
    size: int = 10,
    length: str = "shorter",
) -> Interleaved:
    """Interleave two lists; the same key gives the same list.

    Parameters
    ----------
    first, second
        Unique documents, best first.
    key
        Seed of the coin flips, such as experiment, user, and query: repeated requests return the same list.
    names
        Names of the rankers.
    method
        ``team-draft`` (Radlinski, Kurup and Joachims, CIKM 2008): a coin decides who picks first in each round of two.
        ``balanced`` (Joachims, 2002), debiased as in Bi et al. (CIKM 2022): one coin; the credit goes to the ranker
        with the better rank, at ranks where the other outcome of the coin would credit the other ranker.
        ``probabilistic`` (Hofmann, Whiteson and de Rijke, CIKM 2011): a coin at each rank, and a document sampled with
        probability proportional to ``rank ** -3``.
    size
        Maximum number of documents.
    length
        ``shorter``: both lists, and the result, have the length of the shorter list. ``longer``: the remaining
        documents follow without credit, since the ranker with more results would be preferred for that reason.

    Raises
    ------
    ValueError
        If a list has duplicates, or an option is invalid.
    """
    if method not in METHODS or length not in LENGTHS or size < 1 or names[0] == names[1]:
        raise ValueError(
            f"expected a method in {METHODS}, a length in {LENGTHS}, a positive size, and two different names"
        )
    ranks_of = (
        {document: rank for rank, document in enumerate(first, 1)},
        {document: rank for rank, document in enumerate(second, 1)},
    )
    if len(ranks_of[0]) < len(first) or len(ranks_of[1]) < len(second):
        raise ValueError("each list must have unique documents")
    rng = random.Random("\x1f".join(key))  # noqa: S311 no cryptography
    # Up to this rank both rankers have documents, so a click is a fair comparison.
    cut = min(len(first), len(second))
    depth = min(cut, size)
    if method == "team-draft":
        documents, teams, propensities = _team_draft(first, second, depth, rng)
    elif method == "balanced":
        documents, teams, propensities = _balanced(first, second, ranks_of, depth, rng)
    else:
        documents, teams, propensities = _probabilistic(first[:cut], second[:cut], ranks_of, depth, rng)
    credited: list[str | None] = [None if team < 0 else names[team] for team in teams]
    if length == "longer":
        included, longer_first = set(documents), (first, second) if len(first) >= len(second) else (second, first)
        candidates = dict.fromkeys((*longer_first[0], *longer_first[1]))
        remaining = [document for document in candidates if document not in included]
        documents += remaining[: size - depth]
        credited += [None] * (len(documents) - depth)
        propensities += [1.0] * (len(documents) - depth)
    ranks = tuple((ranks_of[0].get(document), ranks_of[1].get(document)) for document in documents)
    return Interleaved(tuple(documents), tuple(credited), ranks, tuple(propensities), names, method, length, cut)


def _team_draft(
    first: Sequence[str], second: Sequence[str], depth: int, rng: random.Random
) -> tuple[list[str], list[int], list[float]]:
    # Both lists have at least `depth` documents, so each ranker can always pick.
    lists, next_index = (first, second), [0, 0]
    documents: list[str] = []
    teams: list[int] = []
    propensities: list[float] = []
    picked: set[str] = set()
    coins = rng.getrandbits(depth // 2 + 1)
    while len(documents) < depth:
        team, coins = coins & 1, coins >> 1
        # The documents above reveal the coin of this round only if the first picks differ. If both rankers agree on
        # the first document of a round, the coin also decides between their second choices.
        coin_is_known = False
        for _ in range(min(2, depth - len(documents))):
            for ranker in (0, 1):
                while next_index[ranker] < len(lists[ranker]) and lists[ranker][next_index[ranker]] in picked:
                    next_index[ranker] += 1
            document = lists[team][next_index[team]]
            differ = document != lists[1 - team][next_index[1 - team]]
            propensities.append(0.5 if differ and not coin_is_known else 1.0)
            coin_is_known = coin_is_known or differ
            documents.append(document)
            teams.append(team)
            picked.add(document)
            team = 1 - team
    return documents, teams, propensities


def _balanced(
    first: Sequence[str],
    second: Sequence[str],
    ranks_of: tuple[dict[str, int], dict[str, int]],
    depth: int,
    rng: random.Random,
) -> tuple[list[str], list[int], list[float]]:
    """Merge by one coin; a rank has credit only if the two outcomes credit opposite rankers (Bi et al., CIKM 2022)."""
    outcomes = _alternate(first, second, depth), _alternate(second, first, depth)
    coin = rng.getrandbits(1)
    documents, alternative = outcomes[coin], outcomes[1 - coin]
    teams: list[int] = []
    for document, other_document in zip(documents, alternative, strict=True):
        credit, other_credit = _preferring_ranker(document, ranks_of), _preferring_ranker(other_document, ranks_of)
        teams.append(-1 if credit * other_credit >= 0 else int(credit > 0))
    # The first difference reveals the coin: all other documents are certain given those above.
    difference = next((i for i in range(depth) if documents[i] != alternative[i]), -1)
    return documents, teams, [0.5 if i == difference else 1.0 for i in range(depth)]


def _alternate(first: Sequence[str], second: Sequence[str], depth: int) -> list[str]:
    documents = (document for pair in zip(first, second, strict=False) for document in pair)
    return list(dict.fromkeys(documents))[:depth]


def _preferring_ranker(document: str, ranks_of: tuple[dict[str, int], dict[str, int]]) -> int:
    """Return which ranker ranks the document higher: -1 the first, 1 the second, 0 neither."""
    first, second = ranks_of[0].get(document, _NOT_RETURNED), ranks_of[1].get(document, _NOT_RETURNED)
    return (first > second) - (first < second)


@lru_cache(maxsize=256)
def _powers(cut: int) -> tuple[tuple[float, ...], float]:
    powers = tuple(float(rank) ** TAU for rank in range(1, cut + 1))
    return powers, math.fsum(1.0 / power for power in powers)


def _probabilistic(
    first: Sequence[str],
    second: Sequence[str],
    ranks_of: tuple[dict[str, int], dict[str, int]],
    depth: int,
    rng: random.Random,
) -> tuple[list[str], list[int], list[float]]:
    """Sample documents without replacement, by the softmax over ranks of Hofmann et al. (CIKM 2011).

    Documents of a list arrive at exponential times with their weights as rates. The next unpicked arrival is a sample
    from the remaining documents, so each list is sorted only once.
    """
    cut, end = len(first), len(first) + 1
    powers, total = _powers(cut)
    uniform, log = rng.random, math.log
    arrivals: list[list[str]] = []
    for documents in (first, second):
        times = [-log(1.0 - uniform()) * power for power in powers]
        arrivals.append([documents[i] for i in sorted(range(cut), key=times.__getitem__)])
    sampled: list[str] = []
    teams: list[int] = []
    propensities: list[float] = []
    picked: set[str] = set()
    next_index, remaining = [0, 0], [total, total]
    coins = rng.getrandbits(depth + 1)
    for _ in range(depth):
        team, coins = coins & 1, coins >> 1
        arriving = arrivals[team]
        while arriving[next_index[team]] in picked:
            next_index[team] += 1
        document = arriving[next_index[team]]
        weights = [0.0 if (rank := ranks.get(document, end)) > cut else 1.0 / powers[rank - 1] for ranks in ranks_of]
        propensities.append(0.5 * (weights[0] / remaining[0] + weights[1] / remaining[1]))
        remaining = [remaining[0] - weights[0], remaining[1] - weights[1]]
        sampled.append(document)
        teams.append(team)
        picked.add(document)
    return sampled, teams, propensities
