"""Whether two measures, or two depths, put the systems in the same order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.decimals import decimal
from judged.errors import InputError
from judged.stats.rankings import Correlation, kendall_tau, tau_ap
from judged.tables import Table

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.evaluation import Scores

_LEAST_SYSTEMS = 3


@dataclass(frozen=True)
class OrderAgreement:
    """How alike two measures order the same systems."""

    first: str  # the measures
    second: str  # the measures
    # tau, tau_ap: tau_b and tau_AP,b of the systems' aggregates; pairs that change places are `tau.discordant`
    tau: Correlation
    tau_ap: Correlation
    # the pairs of systems that change places: the one that the first measure prefers stands first
    swapped: tuple[tuple[str, str], ...]

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        return f"{self.first} and {self.second}: {self.tau.sentence}"

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {
            "first": self.first,
            "second": self.second,
            "tau": self.tau.to_dict(),
            "tau_ap": self.tau_ap.to_dict(),
            "swapped": [list(pair) for pair in self.swapped],
        }


@dataclass(frozen=True)
class Orders:
    """How alike several measures order the same systems, pair by pair."""

    systems: tuple[str, ...]
    pairs: tuple[OrderAgreement, ...]

    def table(self) -> Table:
        """Lay out a row a pair of measures."""
        rows = tuple(
            (
                one.first,
                one.second,
                decimal(one.tau.value, 3),
                decimal(one.tau_ap.value, 3),
                str(one.tau.discordant),
            )
            for one in self.pairs
        )
        return Table(("measure", "other", "tau", "tau_AP", "pairs that change places"), rows, labels=2)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {"systems": list(self.systems), "pairs": [one.to_dict() for one in self.pairs]}

    def __str__(self) -> str:
        return self.table().text()


def orders(scores: Scores, other: Scores | None = None) -> Orders:
    """Compare the orders in which measures put the systems: of one result with itself, or with another.

    Another result may be of the same runs at another depth (``evaluate(..., depth=20)``), or by other judgments. A
    measure at several cutoffs (nDCG@5, nDCG@10) is compared like any others.

    Parameters
    ----------
    scores
        What `evaluate` gave, of at least three runs.
    other
        Another result of the same runs, by name; each measure of the first is then compared with each of the other.

    Raises
    ------
    InputError
        If fewer than three runs are in both, or there is only one measure.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {"q": {"a": 3, "b": 1, "c": 1}}
    >>> runs = {"x": {"q": {"a": 2.0}}, "y": {"q": {"b": 2.0, "c": 1.0}}, "z": {"q": {"d": 2.0, "b": 1.0}}}
    >>> found = orders(evaluate(qrels, runs, ["nDCG@2", "R@2"]))
    >>> found.pairs[0].tau.discordant, found.pairs[0].swapped
    (1, (('x', 'y'),))
    """
    names = [name for name in scores.run_names if other is None or name in other.run_names]
    if len(names) < _LEAST_SYSTEMS:
        raise InputError(f"an order of {len(names)} runs says nothing", fix="give at least three runs, in both results")
    columns = _columns(scores, names)
    others = columns if other is None else _columns(other, names)
    pairs = itertools.combinations(columns, 2) if other is None else itertools.product(columns, others)
    found = tuple(_agreement(one, two, columns[one], others[two], names) for one, two in pairs)
    if not found:
        raise InputError("there is only one measure", fix="evaluate with several, or give another result")
    return Orders(tuple(names), found)


def _columns(scores: Scores, names: list[str]) -> dict[str, Floats]:
    """Give the aggregates of these runs by measure; where less is better, with the sign turned."""
    # Means of the same scores in another order differ in the last bits: 12 digits tell systems apart.
    table = scores.aggregate()
    turned = {str(one): -1.0 if one.properties.higher_is_better is False else 1.0 for one in scores.measures}
    return {
        name: np.array([turned[name] * float(f"{table[run][name]:.12g}") for run in names])
        for name in scores.measure_names
    }


def _agreement(one: str, two: str, first: Floats, second: Floats, names: list[str]) -> OrderAgreement:
    swapped = tuple(
        (names[a], names[b]) if first[a] > first[b] else (names[b], names[a])
        for a, b in itertools.combinations(range(len(names)), 2)
        if (first[a] - first[b]) * (second[a] - second[b]) < 0
    )
    return OrderAgreement(one, two, kendall_tau(first, second), tau_ap(first, second, "b"), swapped)
