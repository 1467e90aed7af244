"""Gain against cost as an answer: a row per run, cheapest first, and the front."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.slicing.comparison import join_names
from judged.data.run import run_named
from judged.results import Answer, Chart, Sentences, listed
from judged.results.charts import PALETTE
from judged.results.decimals import decimal
from judged.results.table import CHANGE, NUMBER, TEXT, YES_NO, Column, Table, columns_of, significant
from judged.stats.inputs import ROUNDING

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation.facts import Provenance


@dataclass(frozen=True)
class TradeoffRow:
    """One run: what it scores, what it costs, and both against the baseline."""

    run: str
    value: float  # the mean of the measure
    interval: tuple[float, float] | None  # of the mean, over topics
    n: int
    costs: Mapping[str, float | None]  # None: not known
    gain: float | None  # the mean difference to the baseline, over the topics of both; None for the baseline itself
    gain_interval: tuple[float, float] | None  # of this paired difference
    cost_change: Mapping[str, float | None]  # cost minus that of the baseline; None where one is not known
    per_unit: Mapping[str, float | None]  # of the measure for one unit of the cost, where there is something to trade
    front: bool | None  # whether no other run dominates it, and it is of use; None: a cost is not known
    sure: bool  # whether paired tests leave no doubt of that
    rivals: tuple[str, ...]  # best first: of a run on the front, those that may be as good; of another, what dominates
    equivalent: tuple[str, ...]  # the same scores on every topic, and no cost differs beyond the noise
    useless: bool  # whether it scores no more than an empty result
    fronts: Mapping[str, bool]  # whether no run dominates it by the measure and this cost alone


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff(Answer):
    """What `tradeoff` returns: a row for each run, cheapest first, and the Pareto front.

    Attributes
    ----------
    measure : str
    higher_is_better : bool
        Of the measure.
    costs : tuple of str
        What the front is made of, beside the measure.
    benefits : tuple of str
        The costs of which more is better.
    baseline : str
    level : float
        Of the intervals; each on its own, with no correction for their number.
    rows : tuple of TradeoffRow
        Cheapest first.
    provenance : Provenance
        What the scores rest on.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> fast, slow = ({topic: docs for topic in qrels} for docs in (["x", "d"], ["d"]))
    >>> scores = evaluate(qrels, {"fast": fast, "slow": slow}, "RR")
    >>> print(scores.tradeoff({"fast": {"ms": 10}, "slow": {"ms": 35}}).table().text())
    run                      RR                      gain        ms  per ms  front
    fast  0.5000 [0.398, 0.602]                         -        10       -    yes
    slow  1.0000 [0.752, 1.000]  +0.5000 [+0.500, +0.500]  35 (+25)   +0.02    yes
    """

    kind: ClassVar[str] = "tradeoff"

    measure: str
    higher_is_better: bool
    costs: tuple[str, ...]
    benefits: tuple[str, ...]
    baseline: str
    level: float
    rows: tuple[TradeoffRow, ...]
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is set against what."""
        return f"{self.measure} against {listed(self.costs)}"

    @property
    def front(self) -> tuple[str, ...]:
        """The runs that no other dominates, cheapest first."""
        return tuple(row.run for row in self.rows if row.front)

    def row(self, run: str) -> TradeoffRow:
        """Give the row of one run.

        Raises
        ------
        InputError
            If there is none.
        """
        rows = {row.run: row for row in self.rows}
        return rows[run_named(run, rows)]

    def blocks(self) -> tuple[Block, ...]:
        """Give the table of runs, what may be concluded, and a chart for each cost."""
        return (self._results(), Sentences(self.sentences), *map(self._chart, self.costs))

    def facts(self) -> dict[str, Any]:
        """Give measure, costs, baseline, level and front."""
        names = ("measure", "higher_is_better", "costs", "benefits", "baseline", "level", "front")
        return {name: getattr(self, name) for name in names}

    def _chart(self, cost: str) -> Chart:
        """Draw the measure with its intervals over one cost, and the front of these two."""
        rows = [row for row in self.rows if row.costs[cost] is not None]
        amounts = np.array([row.costs[cost] for row in rows], dtype=np.float64)
        more = cost in self.benefits
        values = np.array([row.value for row in rows]) * (1.0 if self.higher_is_better else -1.0)
        dearer = (-amounts if more else amounts)[:, np.newaxis]
        front = [row.fronts[cost] for row in rows]
        path = [of and not dominators(at, values, dearer).any() for at, of in enumerate(front)]  # by the means: rising
        points = Table(
            f"points_{cost}",
            (
                Column("run", [row.run for row in rows], TEXT),
                Column("cost", amounts.tolist(), significant(3), cost),
                Column("value", [row.value for row in rows], NUMBER, self.measure, ci=[row.interval for row in rows]),
                Column("place", ["on the front" if of else "off the front" for of in front], TEXT),
                Column("front", path, only="data"),
            ),
            only="people",
        )
        return Chart(
            name=cost,
            title=f"{self.measure} against {cost}",
            subtitle=f"means with {self.level:.0%} intervals; dashed: the front of these two",
            table=points,
            sentence=f"{self.measure} of each run over its {cost}, with intervals, and the front of these two.",
            kind="points",
            x="cost",
            y="value",
            colour="place",
            label="run",
            path="front",
            colours={"on the front": PALETTE[0], "off the front": PALETTE[-1]},
            steps="step-before" if more else "step-after",  # the best for at most this cost
            spread="amount",
            from_zero=True,
        )

    def _results(self) -> Table:
        """Lay out one row per run: measure, gain, and of each cost its amount with its change, and the gain a unit."""
        rows = self.rows
        columns = [
            *columns_of(rows, ("run", TEXT)),
            Column("measure", [self.measure for _ in rows], TEXT, only="data"),
            Column("value", [row.value for row in rows], NUMBER, self.measure, ci=[row.interval for row in rows]),
            *columns_of(rows, "n"),
            Column("gain", [row.gain for row in rows], CHANGE, ci=[row.gain_interval for row in rows]),
        ]
        for cost in self.costs:
            changes = [row.cost_change[cost] for row in rows]
            per_unit = [row.per_unit[cost] for row in rows]
            signed = [
                None if ratio is None else math.copysign(ratio, row.gain or 0.0)
                for row, ratio in zip(rows, per_unit, strict=True)
            ]
            beside = ["" if change is None else f"({change:+.6g})" for change in changes]
            columns += [
                Column(f"cost_{cost}", [row.costs[cost] for row in rows], significant(), cost, beside=beside),
                Column(f"change_{cost}", changes, significant(), only="data"),
                Column(f"per_unit_{cost}", per_unit, significant(), only="data"),
                Column(f"per_{cost}", signed, significant(3, "+"), f"per {cost}", only="people"),
            ]
        doubts = ["" if row.sure or row.front is None else "(not sure)" for row in rows]
        columns += [
            Column("front", [row.front for row in rows], YES_NO, beside=doubts),
            Column("sure", [row.sure for row in rows], YES_NO, only="data"),
            *columns_of(rows, "rivals", "equivalent"),
            Column("useless", [row.useless for row in rows], YES_NO, only="data"),
        ]
        return Table("results", tuple(columns), one_piece=True)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which runs are worth their cost, how sure that is, and what may not be concluded."""
        front = [row for row in self.rows if row.front]
        less = [f"{name} (less is better)" for name in self.costs if name not in self.benefits]
        more = [f"{name} (more is better)" for name in self.benefits]
        ways = listed([f"{self.measure} ({'more' if self.higher_is_better else 'less'} is better)", *less, *more])
        return (
            (
                f"On the front, by {ways}: {', '.join(self.front) or 'none'}. No other run is better or cheaper beyond"
                " the noise, and no worse on all others."
            ),
            *(
                f"{row.run} is there by its mean alone: the paired test leaves open whether a run that costs no more,"
                f" but for noise, is as good in {self.measure}: {join_names(row.rivals)}."
                for row in front
                if not row.sure
            ),
            *self._equivalent(),
            *self._dominated(),
            *self._useless(),
            *self._not_placed(),
            *(self._paid(row) for row in front if row.run != self.baseline),
            (
                f"Gains are mean differences over topics with their {self.level:.0%} intervals, each on its own; costs"
                " without an interval are taken as exact. Being on the front does not make a run worth"
                " its cost: how much a gain may cost is for whoever pays to decide."
            ),
        )

    def _dominated(self) -> list[str]:
        """Name the dominated runs, each with the best of those that dominate it: first where that is sure."""
        said: list[str] = []
        for sure, way, why in (
            (True, "Dominated", "the paired test and the noise of costs leave no doubt"),
            (False, "Dominated by the means, which is not sure", "that test finds no difference"),
        ):
            names = [f"{row.run} (by {row.rivals[0]})" for row in self.rows
                     if row.front is False and row.sure == sure and not row.useless]  # fmt: skip
            said += [f"{way}, no better in {self.measure} and no cheaper: {join_names(names)}; {why}."] if names else []
        return said

    def _equivalent(self) -> list[str]:
        """Name the runs that score the same on every topic, and whose costs do not differ beyond the noise."""
        groups = dict.fromkeys(frozenset((row.run, *row.equivalent)) for row in self.rows if row.equivalent)
        return [f"Equivalent within the noise: {join_names([row.run for row in self.rows if row.run in group])}."
                for group in groups]  # fmt: skip

    def _useless(self) -> list[str]:
        """Name the runs that score no more than an empty result."""
        names = [row.run for row in self.rows if row.useless]
        return [f"Not on the front, as {self.measure} is no higher than that of an empty result: {join_names(names)}."
                ] if names else []  # fmt: skip

    def _not_placed(self) -> list[str]:
        """Name the runs that are not placed, together where they lack the same."""
        lacking: dict[str, list[str]] = {}
        for row in self.rows:
            if row.front is None:
                unknown = [name for name in self.costs if row.costs[name] is None]
                lacking.setdefault(listed(unknown) if unknown else self.measure, []).append(row.run)
        return [f"Not placed, as {what} is not known: {', '.join(runs)}." for what, runs in lacking.items()]

    def _paid(self, row: TradeoffRow) -> str:
        """Say what a run on the front gains over the baseline, and for how much."""
        ends = row.gain_interval and [decimal(end, 3, "+") for end in row.gain_interval]
        limits = f" ({ends[0]} to {ends[1]})" if ends else ""
        rates = {
            name: "" if ratio is None else f" ({ratio:.3g} for one unit of {name})"
            for name, ratio in row.per_unit.items()
        }
        costs = [f"{name} {change:+.6g}{rates[name]}" for name, change in row.cost_change.items() if change is not None]
        gain = decimal(row.gain or 0.0, 4, "+")
        return f"{row.run} against {self.baseline}: {self.measure} {gain}{limits}; {'; '.join(costs) or 'no costs'}."


def dominators(row: int, values: Floats, dearer: Floats) -> Bools:
    """Mark the points that are at least as good as this one on all, and better on one: (R,).

    >>> dominators(2, np.array([0.5, 0.7, 0.6]), np.array([[1.0], [2.0], [2.0]])).tolist()
    [False, True, False]
    """
    # `values`: (R,): more is better. `dearer`: (R, C): less is better; NaN dominates nothing.
    tiny = ROUNDING * np.maximum(np.abs(values), abs(values[row]))
    ahead, behind = values - values[row] > tiny, values[row] - values > tiny
    no_dearer, cheaper = (dearer <= dearer[row]).all(axis=1), (dearer < dearer[row]).any(axis=1)
    return no_dearer & ~behind & (ahead | cheaper)
