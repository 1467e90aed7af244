"""Result of `tradeoff`: score and costs of each run, and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.slicing.conclusions import join_names
from judged.data.run import find_run_name
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
    """Score and costs of a run, and both relative to the baseline."""

    run: str
    value: float  # mean of the measure
    interval: tuple[float, float] | None  # confidence interval of the mean, over topics
    n: int
    costs: Mapping[str, float | None]  # None: unknown
    gain: float | None  # mean difference from the baseline, over the topics of both; None for the baseline
    gain_interval: tuple[float, float] | None  # confidence interval of the paired difference
    cost_change: Mapping[str, float | None]  # cost minus that of the baseline; None if one is unknown
    # gain per unit of cost; None unless the run is better and dearer, or worse and cheaper
    per_unit: Mapping[str, float | None]
    # whether no other run dominates it, and its score is above that of an empty result; None if a cost is unknown
    front: bool | None
    certain: bool  # whether the paired tests confirm `front`
    rivals: tuple[str, ...]  # best first; on the front: runs that may be as good; off the front: runs that dominate it
    equivalent: tuple[str, ...]  # runs with the same scores on every topic, and costs that are equal within the noise
    scores_as_empty: bool  # whether its score is not above that of an empty result
    fronts: Mapping[str, bool]  # by cost: whether no run dominates it by the measure and this cost only


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff(Answer):
    """Result of `tradeoff`: a row for each run, cheapest first, and the Pareto front.

    Attributes
    ----------
    measure : str
        Name of the measure.
    higher_is_better : bool
        Whether higher is better for the measure.
    costs : tuple of str
        Costs that, with the measure, define the front.
    benefits : tuple of str
        Costs for which higher is better.
    baseline : str
        Run that gains and costs are relative to.
    level : float
        Confidence level of each interval, without correction for their number.
    rows : tuple of TradeoffRow
        Cheapest first.
    provenance : Provenance
        Judgments, runs and policies of the scores.
    notes : tuple of Note
        Warnings about costs and scores.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
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
        """Measure and costs."""
        return f"{self.measure} against {listed(self.costs)}"

    @property
    def front(self) -> tuple[str, ...]:
        """Runs on the Pareto front, cheapest first."""
        return tuple(row.run for row in self.rows if row.front)

    def row(self, run: str) -> TradeoffRow:
        """Return the row of one run.

        Raises
        ------
        InputError
            If the run does not exist.
        """
        rows = {row.run: row for row in self.rows}
        return rows[find_run_name(run, rows)]

    def blocks(self) -> tuple[Block, ...]:
        """Return the table of runs, sentences, and a chart for each cost."""
        return (self._results(), Sentences(self.sentences), *map(self._chart, self.costs))

    def facts(self) -> dict[str, Any]:
        """Return measure, costs, baseline, level and front."""
        names = ("measure", "higher_is_better", "costs", "benefits", "baseline", "level", "front")
        return {name: getattr(self, name) for name in names}

    def _chart(self, cost: str) -> Chart:
        """Return a chart of the measure with intervals over one cost, and the front of these two."""
        rows = [row for row in self.rows if row.costs[cost] is not None]
        amounts = np.array([row.costs[cost] for row in rows], dtype=np.float64)
        higher_cost_is_better = cost in self.benefits
        values = np.array([row.value for row in rows]) * (1.0 if self.higher_is_better else -1.0)
        signed_costs = (-amounts if higher_cost_is_better else amounts)[:, np.newaxis]
        front = [row.fronts[cost] for row in rows]
        is_on_path = [
            is_front and not dominators(i, values, signed_costs).any() for i, is_front in enumerate(front)
        ]  # only rows that no mean dominates, so that the line rises
        points = Table(
            f"points_{cost}",
            (
                Column("run", [row.run for row in rows], TEXT),
                Column("cost", amounts.tolist(), significant(3), cost),
                Column("value", [row.value for row in rows], NUMBER, self.measure, ci=[row.interval for row in rows]),
                Column("place", ["on the front" if is_front else "off the front" for is_front in front], TEXT),
                Column("front", is_on_path, only="data"),
            ),
            only="people",
        )
        return Chart(
            name=cost,
            title=f"{self.measure} against {cost}",
            subtitle=f"means with {self.level:.0%} CIs; dashed: Pareto front",
            table=points,
            sentence=f"{self.measure} of each run against {cost}, with CIs. Dashed line: Pareto front.",
            kind="points",
            x="cost",
            y="value",
            color="place",
            label="run",
            path="front",
            colors={"on the front": PALETTE[0], "off the front": PALETTE[-1]},
            steps="step-before" if higher_cost_is_better else "step-after",  # the best for at most this cost
            spread="amount",
            from_zero=True,
        )

    def _results(self) -> Table:
        """Return a table with one row per run: score, gain, and for each cost its amount, change, and gain per unit."""
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
            change_texts = ["" if change is None else f"({change:+.6g})" for change in changes]
            columns += [
                Column(f"cost_{cost}", [row.costs[cost] for row in rows], significant(), cost, details=change_texts),
                Column(f"change_{cost}", changes, significant(), only="data"),
                Column(f"per_unit_{cost}", per_unit, significant(), only="data"),
                Column(f"per_{cost}", signed, significant(3, "+"), f"per {cost}", only="people"),
            ]
        doubts = ["" if row.certain or row.front is None else "(uncertain)" for row in rows]
        columns += [
            Column("front", [row.front for row in rows], YES_NO, details=doubts),
            Column("certain", [row.certain for row in rows], YES_NO, only="data"),
            *columns_of(rows, "rivals", "equivalent"),
            Column("scores_as_empty", [row.scores_as_empty for row in rows], YES_NO, only="data"),
        ]
        return Table("results", tuple(columns), one_piece=True)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Runs on the front, the certainty of their place, and the limits of the conclusions."""
        front = [row for row in self.rows if row.front]
        lower = [f"{name} (lower is better)" for name in self.costs if name not in self.benefits]
        higher = [f"{name} (higher is better)" for name in self.benefits]
        criteria = listed(
            [f"{self.measure} ({'higher' if self.higher_is_better else 'lower'} is better)", *lower, *higher]
        )
        return (
            (
                f"Pareto front by {criteria}: {', '.join(self.front) or 'none'}. A run is on the"
                " Pareto front if no other run is better in one criterion, beyond the noise, and not worse in any other"
                " criterion."
            ),
            *(
                f"{row.run} is on the Pareto front because of its mean {self.measure}. The paired test does not show"
                f" that {row.run} is better than {join_names(row.rivals)}, which cost the same or less (within the"
                " noise)."
                for row in front
                if not row.certain
            ),
            *self._equivalent_sentences(),
            *self._dominated_sentences(),
            *self._empty_score_sentences(),
            *self._unplaced_sentences(),
            *(self._gain_sentence(row) for row in front if row.run != self.baseline),
            (
                f"Gains are mean differences over topics with {self.level:.0%} CIs, not corrected"
                " for the number of runs. Costs without a CI are treated as exact. The Pareto front does not show"
                " whether a gain is worth the cost."
            ),
        )

    def _dominated_sentences(self) -> list[str]:
        """List the dominated runs, each with the best run that dominates it; those confirmed by the test first."""
        texts: list[str] = []
        for is_certain, text, reason in (
            (
                True,
                "Dominated runs",
                (
                    "each run in parentheses is significantly better, or has the same score on every topic and costs"
                    " less beyond the noise"
                ),
            ),
            (
                False,
                "Runs dominated in the mean, but not significantly",
                "the paired test finds no significant difference",
            ),
        ):
            names = [f"{row.run} (by {row.rivals[0]})" for row in self.rows
                     if row.front is False and row.certain == is_certain and not row.scores_as_empty]  # fmt: skip
            if names:
                texts.append(f"{text} (no better in {self.measure} and no cheaper): {join_names(names)}; {reason}.")
        return texts

    def _equivalent_sentences(self) -> list[str]:
        groups = dict.fromkeys(frozenset((row.run, *row.equivalent)) for row in self.rows if row.equivalent)
        names = [join_names([row.run for row in self.rows if row.run in group]) for group in groups]
        return [f"Same scores on every topic, and same costs within the noise: {text}." for text in names]

    def _empty_score_sentences(self) -> list[str]:
        names = [row.run for row in self.rows if row.scores_as_empty]
        return [(f"Not on the Pareto front, because {self.measure} is not better than for a run that returns"
                 f" no documents: {join_names(names)}.")
                ] if names else []  # fmt: skip

    def _unplaced_sentences(self) -> list[str]:
        by_missing: dict[str, list[str]] = {}
        for row in self.rows:
            if row.front is None:
                unknown = [name for name in self.costs if row.costs[name] is None]
                by_missing.setdefault(listed(unknown) if unknown else self.measure, []).append(row.run)
        return [
            f"Not compared with the Pareto front, because {missing} is unknown: {', '.join(runs)}."
            for missing, runs in by_missing.items()
        ]

    def _gain_sentence(self, row: TradeoffRow) -> str:
        limit_texts = row.gain_interval and [decimal(end, 3, "+") for end in row.gain_interval]
        limits = f" ({self.level:.0%} CI [{', '.join(limit_texts)}])" if limit_texts else ""
        rates = {
            name: "" if rate is None else f" ({rate:.3g} {self.measure} per unit of {name})"
            for name, rate in row.per_unit.items()
        }
        costs = [f"{name} {change:+.6g}{rates[name]}" for name, change in row.cost_change.items() if change is not None]
        gain = decimal(row.gain or 0.0, 4, "+")
        return f"{row.run} against {self.baseline}: {self.measure} {gain}{limits}; {'; '.join(costs) or 'no costs'}."


def dominators(row: int, values: Floats, costs: Floats) -> Bools:
    """Return a mask (R,) of the points that are at least as good as point `row` in all respects, and better in one.

    >>> dominators(2, np.array([0.5, 0.7, 0.6]), np.array([[1.0], [2.0], [2.0]])).tolist()
    [False, True, False]
    """
    # `values`: (R,), higher is better. `costs`: (R, C), lower is better; a point with NaN dominates no other.
    tolerance = ROUNDING * np.maximum(np.abs(values), abs(values[row]))
    is_better, is_worse = values - values[row] > tolerance, values[row] - values > tolerance
    no_cost_is_higher, a_cost_is_lower = (costs <= costs[row]).all(axis=1), (costs < costs[row]).any(axis=1)
    return no_cost_is_higher & ~is_worse & (is_better | a_cost_is_lower)
