"""Agreement of the system orders produced by two measures or two evaluations."""

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

_MIN_SYSTEMS = 3


@dataclass(frozen=True)
class OrderAgreement:
    """Rank correlation of the system orders of two measures."""

    first: str
    second: str
    tau: Correlation  # tau_b of the aggregates of the systems; `discordant` counts swapped pairs
    tau_ap: Correlation  # tau_AP,b
    swapped: tuple[tuple[str, str], ...]  # swapped pairs; the system preferred by the first measure comes first

    @property
    def sentence(self) -> str:
        """Agreement of the two orders."""
        return f"{self.first} and {self.second}: {self.tau.sentence}"


@dataclass(frozen=True, eq=False, repr=False)
class SystemOrders(Answer):
    """Rank correlations of system orders for pairs of measures."""

    kind: ClassVar[str] = "orders"

    systems: tuple[str, ...]  # names of the ordered systems
    pairs: tuple[OrderAgreement, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on each pair of measures."""
        return tuple(pair.sentence for pair in self.pairs)

    def facts(self) -> dict[str, Any]:
        """Return the names of the systems."""
        return {"systems": self.systems}

    def blocks(self) -> tuple[Table, ...]:
        """Return a table of correlations, and a data table of swapped systems."""
        pairs, taus, digits = self.pairs, [pair.tau for pair in self.pairs], number(3)
        columns = (
            Column("measure", [pair.first for pair in pairs], TEXT),
            Column("other", [pair.second for pair in pairs], TEXT),
            Column("tau", [tau.value for tau in taus], digits),
            Column("tau_ap", [pair.tau_ap.value for pair in pairs], digits, "tau_AP"),
            *columns_of(taus, ("discordant", COUNT, "swapped pairs")),
            *columns_of(taus, "concordant", "tied", "n", "left_out", "note"),
            *columns_of(pairs, "sentence"),
        )
        swapped = [(pair.first, pair.second, *systems) for pair in pairs for systems in pair.swapped]
        headers = enumerate(("measure", "other", "better_by_measure", "better_by_other"))
        swaps = tuple(Column(name, [row[i] for row in swapped], TEXT) for i, name in headers)
        return (Table("pairs", columns, labels=2), Table("swapped", swaps, only="data"))


def orders(scores: Scores, other: Scores | None = None) -> SystemOrders:
    """Compare the system orders of measures, within one result or between two results.

    Another result may use another depth (``evaluate(..., depth=20)``) or other judgments of the same runs. Cutoffs of
    one measure (nDCG@5, nDCG@10) count as different measures.

    Parameters
    ----------
    scores
        Result of `evaluate` with at least three runs.
    other
        Another result of the same runs, matched by name. Their measures are compared with those of `scores`.

    Raises
    ------
    InputError
        If the results share fewer than three runs, or there is only one measure.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {"q": {"a": 3, "b": 1, "c": 1}}
    >>> runs = {"x": {"q": {"a": 2.0}}, "y": {"q": {"b": 2.0, "c": 1.0}}, "z": {"q": {"d": 2.0, "b": 1.0}}}
    >>> result = orders(evaluate(qrels, runs, ["nDCG@2", "R@2"]))
    >>> result.pairs[0].tau.discordant, result.pairs[0].swapped
    (1, (('x', 'y'),))
    """
    names = [name for name in scores.run_names if other is None or name in other.run_names]
    if len(names) < _MIN_SYSTEMS:
        problem = (
            f"at least {_MIN_SYSTEMS} runs{'' if other is None else ' in both results'} are required, got {len(names)}"
        )
        raise InputError(
            problem, fix="add runs" if other is None else "add the same runs to the two evaluation results"
        )
    columns = _columns(scores, names)
    other_columns = columns if other is None else _columns(other, names)
    pairs = itertools.combinations(columns, 2) if other is None else itertools.product(columns, other_columns)
    agreements = tuple(_agreement(a, b, columns[a], other_columns[b], names) for a, b in pairs)
    if not agreements:
        raise InputError(
            "at least two measures are required, got 1",
            fix="evaluate more measures, or pass another result as `other`",
        )
    return SystemOrders(tuple(names), agreements)


def _columns(scores: Scores, names: list[str]) -> dict[str, Floats]:
    # Higher is better in all columns. Rounding to 12 digits removes differences of summation order.
    table = scores.aggregate()
    columns: dict[str, Floats] = {}
    for name, measure in zip(scores.measure_names, scores.measures, strict=True):
        sign = -1.0 if measure.properties.higher_is_better is False else 1.0
        columns[name] = np.array([sign * float(f"{table[run][name]:.12g}") for run in names])
    return columns


def _agreement(measure: str, other: str, first: Floats, second: Floats, names: list[str]) -> OrderAgreement:
    swapped = tuple(
        (names[i], names[j]) if first[i] > first[j] else (names[j], names[i])
        for i, j in itertools.combinations(range(len(names)), 2)
        if (first[i] - first[j]) * (second[i] - second[j]) < 0
    )
    return OrderAgreement(measure, other, kendall_tau(first, second), tau_ap(first, second, "b"), swapped)
