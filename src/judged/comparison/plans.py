"""Power analysis of the topics of an evaluation, by measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError
from judged.results import COUNT, TEXT, Answer, Column, Sentences, Show, Table, columns_of
from judged.results.blocks import Note
from judged.scoring.evaluation.evaluate import build_run_function
from judged.stats.sample_size import PowerPlan, format_difference, plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results import Block
    from judged.scoring.evaluation import Scores
    from judged.scoring.evaluation.facts import Provenance

_AMOUNT = Show(format_difference, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class Plans(Answer):
    """Detectable differences of each measure, over all pairs of runs and for each pair."""

    kind: ClassVar[str] = "power"

    plans: Mapping[str, PowerPlan]  # by measure
    runs: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance | None = None  # of the scores; None for a plan from numbers

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentence on each plan."""
        return tuple(f"{name}: {plan.sentence}" if self.runs else plan.sentence for name, plan in self.plans.items())

    def facts(self) -> dict[str, Any]:
        """Return the names of the runs."""
        return {"run_names": self.runs}

    def blocks(self) -> tuple[Block, ...]:
        """Return a table of measures, a table of pairs of runs, and the sentences."""
        plans = [*self.plans.values()]
        measures = [Column("measure", [*self.plans], TEXT)]
        rows: list[tuple[str, str, str, Any]] = []
        for measure, total in self.plans.items():
            rows.append((measure, "all", "all", total))
            rows += [(measure, self.runs[pair.first], self.runs[pair.second], pair) for pair in total.pairs]
        keys = [Column(name, [row[i] for row in rows], TEXT) for i, name in enumerate(("measure", "first", "second"))]
        observed = Column("observed", [getattr(row[3], "difference", None) for row in rows], _AMOUNT, only="data")
        pairs = (*keys, *self._plan_columns([row[3] for row in rows]), observed)
        settings = columns_of(plans, "systems", "alpha", "power", "difference")
        range_columns = [
            Column(f"range_{limit}", [plan.range[i] for plan in plans], _AMOUNT, only="data")
            for i, limit in enumerate(("low", "high"))
        ]
        return (
            Table("plans", (*measures, *self._plan_columns(plans), *settings, *range_columns)),
            Table("pairs", pairs, labels=3, folded=True),
            Sentences(self.sentences),
        )

    def _plan_columns(self, rows: Sequence[Any]) -> tuple[Column, ...]:
        difference = next(plan.difference for plan in self.plans.values())
        needed = () if difference is None else (("topics_needed", COUNT, f"topics for {difference:g}"),)
        numbers = ("sd", _AMOUNT, "SD of differences"), ("detectable", _AMOUNT, "detectable")
        return columns_of(rows, ("n", COUNT, "topics"), *numbers, *needed, "n_observed", "left_out")


def power_of_scores(
    scores: Scores, *, difference: float | None = None, n: int | None = None, alpha: float = 0.05, power: float = 0.8
) -> Plans:
    """Compute which differences between runs the topics can show, and how many topics a difference requires.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    difference
        True difference for which to compute the required number of topics. None: omitted.
    n
        Number of topics to plan for. Default: the topics of `scores`.
    alpha
        Significance level of the two-sided paired t-test.
    power
        Probability of finding a true difference.

    Returns
    -------
    Plans

    Raises
    ------
    InputError
        If no measure is a mean over topics, there is only one run, or a number is out of range.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> old, new = ({f"q{i}": ["x", "y"][i % 3 :] + ["d"] for i in range(8)}, {f"q{i}": ["d"] for i in range(8)})
    >>> plans = evaluate(qrels, {"old": old, "new": new}, "RR").power(difference=0.1)
    >>> plans.plans["RR"].n, plans.plans["RR"].topics_needed
    (8, 64)
    """
    mean_columns = [column for column, measure in enumerate(scores.measures) if measure.entry.aggregate == "mean"]
    if not mean_columns:
        fix = "add a measure that is averaged over topics, such as AP"
        raise InputError("no measure is a mean over topics", fix=fix)
    names = scores.measure_names
    notes = [
        Note("no-mean", f"{name} is not a mean over topics, so its power was not computed")
        for column, name in enumerate(names)
        if column not in mean_columns
    ]
    options: dict[str, Any] = {"n": n, "difference": difference, "alpha": alpha, "power": power}
    plans = {names[column]: plan(scores.values[:, column], **options) for column in mean_columns}
    return Plans(plans, scores.run_names, (*scores.notes, *notes), scores.provenance)


power = build_run_function(
    power_of_scores,
    "power",
    examples="""
    >>> from judged import power
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> old, new = ({f"q{i}": ["x", "y"][i % 3 :] + ["d"] for i in range(8)}, {f"q{i}": ["d"] for i in range(8)})
    >>> power(qrels, {"old": old, "new": new}, "RR", difference=0.1).plans["RR"].topics_needed
    64
    """,
)
