"""What `waterfall` returns: which step to work on, the chains, systems side by side, and what was lost where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.pipelines.rag.chains import STEPS, UNITS
from judged.results import COUNT, SHARE, TEXT, Answer, Chart, Column, Sentences, Table, columns_of, counted, p_value
from judged.results.decimals import decimal, p_text, percent

if TYPE_CHECKING:
    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.rag.steps import Share, Step, StepDifference, Weakest
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.stats.ratio import RatioDifference

_RULES = (
    "shares of those given multiply to those of all, within a topic and over all topics together, but means over topics"
    " do not; if perfect: what would come through all steps, if this one lost nothing and later ones kept their shares;"
    " around: here although an earlier step lost it"
)


@dataclass(frozen=True, eq=False, repr=False)
class Waterfall(Answer):
    """Where the evidence went: what each step passed on of what it was given, and of all.

    Attributes
    ----------
    steps : tuple of Step
        Every step of every chain and system, over all topics.
    by_slice : tuple of Step
        Those of the leading chain over each slice; ``small`` names slices of too few topics.
    weakest : dict of Weakest
        By system, the step of the leading chain at which most would be gained; none where nothing is lost.
    differences : tuple of StepDifference
        The other systems against the first one.
    lost : tuple of (str, str, str, str, str, bool)
        System, what is followed, topic, id, the step that it did not pass, and whether only for want of a verdict.
    topics : tuple of (str, str, tuple of int)
        System, topic, and what of the leading chain is there at the begin and behind each step.
    left_out : dict of tuple of str
        By system the steps of which nothing is recorded.
    lead : str
        What the leading chain follows.
    """

    kind: ClassVar[str] = "rag-waterfall"
    main: ClassVar[str] = "steps"

    responses: Responses
    steps: tuple[Step, ...]
    by_slice: tuple[Step, ...]
    small: frozenset[str]
    weakest: Mapping[str, Weakest]
    differences: tuple[StepDifference, ...]
    lost: tuple[tuple[str, str, str, str, str, bool], ...]
    topics: tuple[tuple[str, str, tuple[int, ...]], ...]
    left_out: Mapping[str, tuple[str, ...]]
    lead: str
    cutoffs: tuple[int, int]
    level: float
    over: str
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What was followed."""
        return f"{self.responses.name}: where the evidence went"

    @property
    def several(self) -> bool:
        """Whether there are several systems."""
        return len(self.responses.run_names) > 1

    def called(self, step: str) -> str:
        """Give the name of a step for people."""
        first, last = self.cutoffs
        return {"retrieved": f"retrieved at {first}", "ranked": f"in the first {last}"}.get(step, STEPS[step])

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which step to work on, or that none is shown; and at which steps systems differ."""
        return (*(self._said(run) for run in self.responses.run_names), *self._compared())

    def _said(self, run: str) -> str:
        who, of = f"{run}: " if self.several else "", UNITS[self.lead][0]
        if run not in self.weakest:
            known = any((one.run, one.unit) == (run, self.lead) for one in self.steps)
            return f"{who}{'nothing is lost' if known else 'nothing is known'} on the way of {of}."
        worst = self.weakest[run]
        step, name = worst.step, f"“{self.called(worst.step.step)}”"
        passing = f"{step.n} of {step.given - step.unjudged} pass it ({_with_interval(step.share)})"
        if math.isnan(step.perfect.value):
            would = (
                "what would come through if it lost nothing is unknown: a later step was given nothing that is judged"
            )
        else:
            gain = f"{percent(step.perfect.value)} of {of} would come through in place of {percent(worst.final)}"
            would = f"if it lost nothing and later steps kept their shares, {gain}"
        if worst.lacking is not None:
            reason = worst.lacking.sentence("need" if self.over == "needs" else "topic")
            return f"{who}{name} has the lowest share, {passing}. Whether it loses most was not tested. {reason}"
        if math.isnan(worst.p):
            return f"{who}{name} is the only step that is known: {passing}."
        p = p_text(worst.p, 1 - self.level)
        if worst.p <= 1 - self.level:
            return f"{who}work on {name} first: {passing}, and every other step is shown to lose less (p {p}); {would}."
        beside = f"it cannot be told from “{self.called(worst.second)}” (p {p})"
        return f"{who}no step is shown to lose most: {name} has the lowest share, {passing}, but {beside}; {would}."

    def _compared(self) -> Iterator[str]:
        shown = [
            f"{one.run} at “{self.called(one.step)}” of {UNITS[one.unit][0]},"
            f" {decimal(100 * one.share.value, 1, '+')} points"
            for one in self.differences
            if one.p <= 1 - self.level
        ]
        tests = sum(not math.isnan(one.p) for one in self.differences)
        against = f"Steps that differ from those of {self.responses.run_names[0]}"
        if tests:
            yield f"{against}: {'; '.join(shown) or 'none shown'} ({counted(tests, 'test')}, Holm)."
        elif self.differences:
            yield f"{against}: not tested, for too little data."

    def facts(self) -> Mapping[str, Any]:
        """Give what was followed, and what nobody recorded."""
        known = {"responses": self.responses.name, "lead": self.lead, "cutoffs": self.cutoffs, "level": self.level}
        return {**known, "left_out": self.left_out}

    def blocks(self) -> tuple[Block, ...]:
        """Give the leading chain, where the others end, systems side by side, slices, topics, and what was lost."""
        leading = self._steps(
            "lead", [one for one in self.steps if one.unit == self.lead], UNITS[self.lead][1].capitalize()
        )
        what = f"What comes through, of {UNITS[self.lead][0]}"
        ends = {one.run: f"{one.run} {percent(one.overall.value)}" for one in self.steps if one.unit == self.lead}
        said = f"Behind the last step: {', '.join(ends.values())}."
        how: dict[str, Any] = {"kind": "dots", "color": "run"} if self.several else {"kind": "bars"}
        how |= {"percent": "x", "from_zero": True, "reach": {"x": (0.0, 1.0)}}
        return (
            Sentences(self.sentences),
            Chart("waterfall", what, leading, said, x="overall", y="step", **how),
            leading,
            self._ends(),
            *([self._differences()] if self.differences else []),
            *([self._steps("slices", self.by_slice, "Steps by slice")] if self.by_slice else []),
            self._steps("steps", self.steps, "All chains"),
            self._topics(),
            self._lost(),
        )

    def _steps(self, name: str, steps: Sequence[Step], title: str) -> Table:
        def shown(when: bool) -> Any:
            return "" if when else "data"

        judged, sliced = any(one.lowest < one.highest for one in steps), name == "slices"
        few = [" (few topics)" if one.slice in self.small else "" for one in steps]
        limits = [f"{percent(one.lowest)} to {percent(one.highest)}" for one in steps]
        bounds = [Column("bounds", limits, TEXT, "whatever is unjudged", only="people")] if judged else []
        columns = (
            Column("slice", [one.slice for one in steps], TEXT, details=few, only=shown(sliced)),
            Column("run", [one.run for one in steps], TEXT, "system", only=shown(self.several)),
            *columns_of(steps, "unit"),
            *self._called([one.step for one in steps]),
            *columns_of(steps, ("given", COUNT), ("n", COUNT, "pass")),
            Column("unjudged", [one.unjudged for one in steps], COUNT, only=shown(judged)),
            _shares("share", [one.share for one in steps], "of those given", few),
            _shares("overall", [one.overall for one in steps], "of all", few),
            *bounds,
            *columns_of(steps, "lowest", "highest"),
            Column("mean", [one.mean for one in steps], SHARE, ci=[one.mean_ci for one in steps], only="data"),
            Column("around", [one.around for one in steps], COUNT, only=shown(any(one.around for one in steps))),
            _shares("perfect", [one.perfect for one in steps], "if perfect", few),
        )
        lead = name == "lead"
        note = f"{100 * self.level:g}% intervals over {self.over}; {_RULES}" if lead else ""
        groups = [UNITS[one.unit][1] for one in steps] if name == "steps" else ()
        labels = 1 + self.several + sliced
        return Table(name, columns, title, note, labels, not lead, "people" if lead else "", groups=groups)

    def _called(self, steps: Sequence[str], title: str = "step") -> tuple[Column, Column]:
        """Name steps for people, and for data."""
        names = [self.called(step) for step in steps]
        return Column("step", names, TEXT, title, only="people"), Column("name", steps, TEXT, only="data")

    def _ends(self) -> Table:
        """Lay out one row a chain and system: what comes through all of it, and its weakest step."""
        keys = dict.fromkeys((one.run, one.unit) for one in self.steps)
        every = [[one for one in self.steps if (one.run, one.unit) == key] for key in keys]
        ends = [chain[-1] for chain in every]
        lowest = [min(chain, key=lambda one: (math.isnan(one.share.value), one.share.value)) for chain in every]
        unjudged = [sum(one.unjudged for one in chain) for chain in every]
        columns = (
            Column("run", [one.run for one in ends], TEXT, "system", only="" if self.several else "data"),
            Column("unit", [one.unit for one in ends], TEXT, only="data"),
            Column("chain", [UNITS[one.unit][0] for one in ends], TEXT, "of", only="people"),
            Column("items", [chain[0].given for chain in every], COUNT),
            Column("unjudged", unjudged, COUNT, only="" if any(unjudged) else "data"),
            *columns_of(ends, ("n", COUNT, "come through")),
            _shares("overall", [one.overall for one in ends], "of all"),
            Column("last", [self.called(one.step) for one in ends], TEXT, "up to", only="people"),
            *self._called([one.step for one in lowest], "lowest share"),
            _shares("share", [one.share for one in lowest], "of those given"),
        )
        return Table("chains", columns, "Chains", labels=1 + self.several, one_piece=True)

    def _differences(self) -> Table:
        rows, note = self.differences, f"p: of those given, Holm over all rows; {100 * self.level:g}% intervals"
        columns = (
            *columns_of(rows, ("run", TEXT, "system"), ("unit", TEXT, "of")),
            *self._called([one.step for one in rows]),
            _changes("share", [one.share for one in rows], "of those given"),
            _changes("overall", [one.overall for one in rows], "of all"),
            *columns_of(rows, ("p", p_value(1 - self.level))),
        )
        return Table("differences", columns, f"Against {self.responses.run_names[0]}", note, labels=3, folded=True)

    def _topics(self) -> Table:
        names = list(dict.fromkeys(one.step for one in self.steps if one.unit == self.lead))
        of = {run: [one.step for one in self.steps if (one.run, one.unit) == (run, self.lead)]
              for run in self.responses.run_names}  # fmt: skip
        counts = [dict(zip(of[run], behind, strict=True)) for run, _, (_, *behind) in self.topics]
        columns = (
            Column("query_id", [topic for _, topic, _ in self.topics], TEXT, "topic"),
            Column("run", [run for run, _, _ in self.topics], TEXT, "system", only="" if self.several else "data"),
            Column("items", [begin for _, _, (begin, *_) in self.topics], COUNT, "all"),
            *(Column(name, [row.get(name) for row in counts], COUNT, self.called(name)) for name in names),
        )
        return Table(
            "topics",
            columns,
            f"{UNITS[self.lead][0].capitalize()}, topic by topic",
            labels=1 + self.several,
            folded=True,
        )

    def _lost(self) -> Table:
        columns = (
            Column("run", [row[0] for row in self.lost], TEXT, "system", only="" if self.several else "data"),
            Column("unit", [row[1] for row in self.lost], TEXT, "what"),
            Column("query_id", [row[2] for row in self.lost], TEXT, "topic"),
            Column("item", [row[3] for row in self.lost], TEXT),
            *self._called([row[4] for row in self.lost], "does not pass"),
            Column("unjudged", ["no verdict" if row[5] else "" for row in self.lost], TEXT, ""),
        )
        return Table("lost", columns, "What was lost, and where", labels=3 + self.several, folded=True)


def _shares(name: str, shares: Sequence[Share], title: str, few: Sequence[str] = ()) -> Column:
    """Show shares with their intervals, but for those of too few topics."""
    limits = [None if few and few[at] else share.ci for at, share in enumerate(shares)]
    return Column(name, [share.value for share in shares], SHARE, title, limits)


def _changes(name: str, changes: Sequence[RatioDifference], title: str) -> Column:
    ends = [None if math.isnan(one.low) else (one.low, one.high) for one in changes]
    return Column(name, [one.value for one in changes], SHARE, title, ends)


def _with_interval(share: Share) -> str:
    return percent(share.value) + ("" if share.ci is None else f", {' to '.join(map(percent, share.ci))}")
