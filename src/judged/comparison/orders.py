"""Whether two measures, or two depths, put the systems in the same order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.results import COUNT, TEXT, Answer, Column, Table, columns_of, number
from judged.stats.rankings import Correlation, kendall_tau, tau_ap

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores

_LEAST_SYSTEMS = 3


@dataclass(frozen=True)
class OrderAgreement:
    """How alike two measures order the same systems."""

    first: str
    second: str
    tau: Correlation  # tau_b of the systems' aggregates; pairs that change places are its `discordant`
    tau_ap: Correlation  # tau_AP,b
    swapped: tuple[tuple[str, str], ...]  # those pairs; what the first measure prefers stands first

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        return f"{self.first} and {self.second}: {self.tau.sentence}"


@dataclass(frozen=True, eq=False, repr=False)
class Orders(Answer):
    """How alike several measures order the same systems, pair by pair."""

    kind: ClassVar[str] = "orders"

    systems: tuple[str, ...]
    pairs: tuple[OrderAgreement, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found of each two measures."""
        return tuple(pair.sentence for pair in self.pairs)

    def facts(self) -> dict[str, Any]:
        """Give the systems."""
        return {"systems": self.systems}

    def blocks(self) -> tuple[Table, ...]:
        """Give a row for each two measures, and for data the systems that change places."""
        pairs, taus, digits = self.pairs, [pair.tau for pair in self.pairs], number(3)
        columns = (
            Column("measure", [pair.first for pair in pairs], TEXT),
            Column("other", [pair.second for pair in pairs], TEXT),
            Column("tau", [tau.value for tau in taus], digits),
            Column("tau_ap", [pair.tau_ap.value for pair in pairs], digits, "tau_AP"),
            *columns_of(taus, ("discordant", COUNT, "pairs that change places")),
            *columns_of(taus, "concordant", "tied", "n", "left_out", "note"),
            *columns_of(pairs, "sentence"),
        )
        swapped = [(pair.first, pair.second, *systems) for pair in pairs for systems in pair.swapped]
        names = enumerate(("measure", "other", "better_by_measure", "better_by_other"))
        swaps = tuple(Column(name, [row[at] for row in swapped], TEXT) for at, name in names)
        return (Table("pairs", columns, labels=2), Table("swapped", swaps, only="data"))


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
    agreements = tuple(_agreement(one, two, columns[one], others[two], names) for one, two in pairs)
    if not agreements:
        raise InputError("there is only one measure", fix="evaluate with several, or give another result")
    return Orders(tuple(names), agreements)


def _columns(scores: Scores, names: list[str]) -> dict[str, Floats]:
    """Give the aggregates of these runs by measure; where less is better, with the sign turned."""
    # Means of the same scores in another order differ in the last bits: 12 digits tell systems apart.
    table = scores.aggregate()
    columns: dict[str, Floats] = {}
    for name, measure in zip(scores.measure_names, scores.measures, strict=True):
        side = -1.0 if measure.properties.higher_is_better is False else 1.0
        columns[name] = np.array([side * float(f"{table[run][name]:.12g}") for run in names])
    return columns


def _agreement(measure: str, other: str, first: Floats, second: Floats, names: list[str]) -> OrderAgreement:
    swapped = tuple(
        (names[a], names[b]) if first[a] > first[b] else (names[b], names[a])
        for a, b in itertools.combinations(range(len(names)), 2)
        if (first[a] - first[b]) * (second[a] - second[b]) < 0
    )
    return OrderAgreement(measure, other, kendall_tau(first, second), tau_ap(first, second, "b"), swapped)
