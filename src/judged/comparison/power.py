"""Which differences could be found with the topics at hand, by each measure: plans of `judged.stats` as an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.answer import COUNT, TEXT, Answer, Column, Sentences, Show, Table, columns_of
from judged.errors import InputError
from judged.notes import Note
from judged.stats import planning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.answer import Block
    from judged.evaluation import Scores
    from judged.stats.planning import Plan

_AMOUNT = Show(planning.amount, "float64")


@dataclass(frozen=True, eq=False, repr=False)
class Plans(Answer):
    """What the topics at hand could show by each measure, over all pairs of runs and of each two."""

    kind: ClassVar[str] = "power"

    plans: Mapping[str, Plan]  # by measure
    runs: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The plans in plain words."""
        return tuple(f"{name}: {plan.sentence}" if self.runs else plan.sentence for name, plan in self.plans.items())

    def facts(self) -> dict[str, Any]:
        """Give the names of the runs."""
        return {"run_names": self.runs}

    def blocks(self) -> tuple[Block, ...]:
        """Give a row a measure, every two runs where they are asked for, and what may be concluded."""
        plans = [*self.plans.values()]
        names = [Column("measure", [*self.plans], TEXT)]
        rows: list[tuple[str, str, str, Any]] = []
        for measure, plan in self.plans.items():
            rows.append((measure, "all", "all", plan))
            rows += [(measure, self.runs[pair.first], self.runs[pair.second], pair) for pair in plan.pairs]
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
        return columns_of(rows, ("topics", COUNT), *numbers, *needed, "n", "left_out")


def plans(scores: Scores, **asked: Any) -> Plans:
    """Plan for every measure that is a mean over topics, as `judged.stats.planning.plan` does."""
    means = [at for at, measure in enumerate(scores.measures) if measure.entry.aggregate == "mean"]
    if not means:
        raise InputError("no measure here is a mean over topics", fix="ask for one, such as AP")
    names = scores.measure_names
    others = [
        Note("no-mean", f"{name} is no mean over topics, and no plan is made for it")
        for at, name in enumerate(names)
        if at not in means
    ]
    found = {names[at]: planning.plan(scores.values[:, at], **asked) for at in means}
    return Plans(found, scores.run_names, (*scores.notes, *others))
