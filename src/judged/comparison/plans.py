"""Which differences could be found with the topics at hand, by each measure: plans of `judged.stats` as an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError
from judged.results import COUNT, TEXT, Answer, Column, Sentences, Show, Table, columns_of
from judged.results.blocks import Note
from judged.scoring.evaluation.evaluate import of_runs
from judged.stats.sample_size import Plan, amount, plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results import Block
    from judged.scoring.evaluation import Scores
    from judged.scoring.evaluation.facts import Provenance

_AMOUNT = Show(amount, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class Plans(Answer):
    """What the topics at hand could show by each measure, over all pairs of runs and of each two."""

    kind: ClassVar[str] = "power"

    plans: Mapping[str, Plan]  # by measure
    runs: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance | None = None  # what the scores rest on; None for a plan of numbers

    @property
    def sentences(self) -> tuple[str, ...]:
        """The plans in plain words."""
        return tuple(f"{name}: {plan.sentence}" if self.runs else plan.sentence for name, plan in self.plans.items())

    def facts(self) -> dict[str, Any]:
        """Give the names of the runs."""
        return {"run_names": self.runs}

    def blocks(self) -> tuple[Block, ...]:
        """Give a row per measure, every two runs where they are asked for, and what may be concluded."""
        plans = [*self.plans.values()]
        names = [Column("measure", [*self.plans], TEXT)]
        rows: list[tuple[str, str, str, Any]] = []
        for measure, of_all in self.plans.items():
            rows.append((measure, "all", "all", of_all))
            rows += [(measure, self.runs[pair.first], self.runs[pair.second], pair) for pair in of_all.pairs]
        keys = [Column(name, [row[at] for row in rows], TEXT) for at, name in enumerate(("measure", "first", "second"))]
        every = Column("observed", [getattr(row[3], "difference", None) for row in rows], _AMOUNT, only="data")
        pairs = (*keys, *self._numbers([row[3] for row in rows]), every)
        asked = columns_of(plans, "systems", "alpha", "power", "difference")
        ends = [
            Column(f"range_{end}", [plan.range[at] for plan in plans], _AMOUNT, only="data")
            for at, end in enumerate(("low", "high"))
        ]
        return (
            Table("plans", (*names, *self._numbers(plans), *asked, *ends)),
            Table("pairs", pairs, labels=3, folded=True),
            Sentences(self.sentences),
        )

    def _numbers(self, rows: Sequence[Any]) -> tuple[Column, ...]:
        difference = next(plan.difference for plan in self.plans.values())
        needed = () if difference is None else (("topics_needed", COUNT, f"topics for {difference:g}"),)
        numbers = ("sd", _AMOUNT, "SD of differences"), ("detectable", _AMOUNT, "detectable")
        return columns_of(rows, ("n", COUNT, "topics"), *numbers, *needed, "n_observed", "left_out")


def power_of_scores(
    scores: Scores,
    *,
    difference: float | None = None,
    n: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Plans:
    """Say which differences between runs the topics at hand could show, and how many topics a difference takes.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    difference
        Also say how many topics it takes to find a true difference of this size.
    n
        Plan for so many topics, in place of those at hand.
    alpha
        Of the two-sided paired t-test.
    power
        Probability with which a true difference is to be found.

    Returns
    -------
    Plans

    Raises
    ------
    InputError
        If no measure is a mean over topics, there is one run, or a number makes no sense.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> old, new = ({f"q{at}": ["x", "y"][at % 3 :] + ["d"] for at in range(8)}, {f"q{at}": ["d"] for at in range(8)})
    >>> plans = evaluate(qrels, {"old": old, "new": new}, "RR").power(difference=0.1)
    >>> plans.plans["RR"].n, plans.plans["RR"].topics_needed
    (8, 64)
    """
    means = [place for place, measure in enumerate(scores.measures) if measure.entry.aggregate == "mean"]
    if not means:
        raise InputError("no measure here is a mean over topics", fix="ask for one, such as AP")
    names = scores.measure_names
    others = [
        Note("no-mean", f"{name} is not a mean over topics, and no plan is made for it")
        for place, name in enumerate(names)
        if place not in means
    ]
    options: dict[str, Any] = {"n": n, "difference": difference, "alpha": alpha, "power": power}
    of_measures = {names[column]: plan(scores.values[:, column], **options) for column in means}
    return Plans(of_measures, scores.run_names, (*scores.notes, *others), scores.provenance)


power = of_runs(
    power_of_scores,
    "power",
    examples="""
    >>> from judged import power
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> old, new = ({f"q{at}": ["x", "y"][at % 3 :] + ["d"] for at in range(8)}, {f"q{at}": ["d"] for at in range(8)})
    >>> power(qrels, {"old": old, "new": new}, "RR", difference=0.1).plans["RR"].topics_needed
    64
    """,
)
