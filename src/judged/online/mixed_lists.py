"""Mix the lists of two rankers into one, for one user: what the serving side needs, and no more than Python itself.

The file can be copied alone into a search service. What it logs is read by `judged.online.interleaving`.

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
TAU = 3.0
_NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Interleaved:
    """A list to show, and what must be logged of it. The tuples go by position.

    Parameters
    ----------
    documents
        What to show.
    teams
        The ranker that a click counts for; None: it counts for neither.
    ranks
        The rank in the lists of the first and of the second ranker; None: it is not in that list.
    propensities
        The probability of each document at its rank, given the documents above it: their product is the probability of
        the list.
    names, method, length, cut
        The rankers; how the lists were mixed, and what was done where one was longer; the rank at which both were cut.
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
        """Give what belongs under ``query_attributes`` of the page in a UBI log."""
        return {
            "interleaving": {"teams": list(self.teams)},
            "propensities": [round(chance, 6) for chance in self.propensities],
            "propensity_convention": "conditional",
            "interleaving_method": self.method,
            "interleaving_first": self.names[0],
            "interleaving_length": self.length,
            "interleaving_cut": self.cut,
            "interleaving_ranks": " ".join("/".join(str(rank or "-") for rank in both) for both in self.ranks),
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
    """Mix two lists into one; the same key gives the same list.

    Parameters
    ----------
    first, second
        Documents, best first, each once.
    key
        What the coins hang on, such as experiment, user and query: who asks again sees the same list again.
    names
        Of the rankers.
    method
        ``team-draft`` (Radlinski, Kurup and Joachims, CIKM 2008): a coin says who picks first in each round of two.
        ``balanced`` (Joachims, 2002), debiased as Bi et al. (CIKM 2022) ask: one coin; a document counts for the ranker
        that has it higher, at those ranks where the other outcome of the coin would count for the other ranker.
        ``probabilistic`` (Hofmann, Whiteson and de Rijke, CIKM 2011): a coin at every rank, and a document drawn with a
        probability that falls with the third power of its rank.
    size
        So many documents at most.
    length
        ``shorter``: both lists are cut at the length of the shorter one, and so is what is shown. ``longer``: what is
        left of the lists follows below, and counts for neither: who has more results would be preferred for that.

    Raises
    ------
    ValueError
        If a list has a document twice, or an option is none of those above.
    """
    if method not in METHODS or length not in LENGTHS or size < 1 or names[0] == names[1]:
        raise ValueError(f"method is one of {METHODS}, length one of {LENGTHS}, size 1 or more, and names differ")
    places = (
        {document: rank for rank, document in enumerate(first, 1)},
        {document: rank for rank, document in enumerate(second, 1)},
    )
    if len(places[0]) < len(first) or len(places[1]) < len(second):
        raise ValueError("a list has a document twice")
    chance = random.Random("\x1f".join(key))  # noqa: S311 nothing is secret here
    cut = min(len(first), len(second))
    depth = min(cut, size)
    if method == "team-draft":
        documents, teams, propensities = _draft(first, second, depth, chance)
    elif method == "balanced":
        documents, teams, propensities = _balanced(first, second, places, depth, chance)
    else:
        documents, teams, propensities = _drawn(first[:cut], second[:cut], places, depth, chance)
    owners: list[str | None] = [None if team < 0 else names[team] for team in teams]
    if length == "longer":
        there, left = set(documents), (first, second) if len(first) >= len(second) else (second, first)
        rest = [document for document in dict.fromkeys((*left[0], *left[1])) if document not in there]
        documents += rest[: size - depth]
        owners += [None] * (len(documents) - depth)
        propensities += [1.0] * (len(documents) - depth)
    ranks = tuple((places[0].get(document), places[1].get(document)) for document in documents)
    return Interleaved(tuple(documents), tuple(owners), ranks, tuple(propensities), names, method, length, cut)


def _draft(
    first: Sequence[str], second: Sequence[str], depth: int, chance: random.Random
) -> tuple[list[str], list[int], list[float]]:
    """Let both pick their best document that is left, in rounds: both lists have enough of them for each to pick."""
    lists, at = (first, second), [0, 0]
    documents: list[str] = []
    teams: list[int] = []
    propensities: list[float] = []
    taken: set[str] = set()
    coins = chance.getrandbits(depth // 2 + 1)
    while len(documents) < depth:
        team, coins = coins & 1, coins >> 1
        # The documents above tell who picks next only if both picked different documents first. If they agree on the
        # first document of a round, the coin decides between their second choices as well.
        coin_shows = False
        for _ in range(min(2, depth - len(documents))):
            for one in (0, 1):
                while at[one] < len(lists[one]) and lists[one][at[one]] in taken:
                    at[one] += 1
            document = lists[team][at[team]]
            differ = document != lists[1 - team][at[1 - team]]
            propensities.append(0.5 if differ and not coin_shows else 1.0)
            coin_shows = coin_shows or differ
            documents.append(document)
            teams.append(team)
            taken.add(document)
            team = 1 - team
    return documents, teams, propensities


def _balanced(
    first: Sequence[str],
    second: Sequence[str],
    places: tuple[dict[str, int], dict[str, int]],
    depth: int,
    chance: random.Random,
) -> tuple[list[str], list[int], list[float]]:
    """Merge by one coin; a rank counts where its two outcomes count for opposite rankers."""
    outcomes = _merged(first, second, depth), _merged(second, first, depth)
    coin = chance.getrandbits(1)
    shown, other = outcomes[coin], outcomes[1 - coin]
    teams: list[int] = []
    for mine, theirs in zip(shown, other, strict=True):
        here, there = _ahead(mine, places), _ahead(theirs, places)
        teams.append(-1 if here * there >= 0 else int(here > 0))
    parts = next((at for at in range(depth) if shown[at] != other[at]), -1)
    return shown, teams, [0.5 if at == parts else 1.0 for at in range(depth)]


def _merged(first: Sequence[str], second: Sequence[str], depth: int) -> list[str]:
    """Take from both lists in turn, beginning with the first; what is there already is passed over."""
    both = (document for pair in zip(first, second, strict=False) for document in pair)
    return list(dict.fromkeys(both))[:depth]


def _ahead(document: str, places: tuple[dict[str, int], dict[str, int]]) -> int:
    """Say which ranker has it higher: -1 the first, 1 the second, 0 neither."""
    one, two = places[0].get(document, _NEVER), places[1].get(document, _NEVER)
    return (one > two) - (one < two)


@lru_cache(maxsize=256)
def _powers(cut: int) -> tuple[tuple[float, ...], float]:
    powers = tuple(float(rank) ** TAU for rank in range(1, cut + 1))
    return powers, math.fsum(1.0 / power for power in powers)


def _drawn(
    first: Sequence[str],
    second: Sequence[str],
    places: tuple[dict[str, int], dict[str, int]],
    depth: int,
    chance: random.Random,
) -> tuple[list[str], list[int], list[float]]:
    """Draw documents one after the other.

    Documents of a list arrive at exponential times with their weights as rates: the next that arrives, and is not taken
    yet, is a draw from those that are left. So each list is sorted once.
    """
    cut = len(first)
    powers, total = _powers(cut)
    toss, log = chance.random, math.log
    arrivals: list[list[str]] = []
    for documents in (first, second):
        times = [-log(1.0 - toss()) * power for power in powers]
        arrivals.append([documents[at] for at in sorted(range(cut), key=times.__getitem__)])
    shown: list[str] = []
    teams: list[int] = []
    propensities: list[float] = []
    taken: set[str] = set()
    at, left = [0, 0], [total, total]
    coins = chance.getrandbits(depth + 1)
    for _ in range(depth):
        team, coins = coins & 1, coins >> 1
        arriving = arrivals[team]
        while arriving[at[team]] in taken:
            at[team] += 1
        document = arriving[at[team]]
        weights = [0.0 if (rank := one.get(document, cut + 1)) > cut else 1.0 / powers[rank - 1] for one in places]
        propensities.append(0.5 * (weights[0] / left[0] + weights[1] / left[1]))
        left = [left[0] - weights[0], left[1] - weights[1]]
        shown.append(document)
        teams.append(team)
        taken.add(document)
    return shown, teams, propensities
