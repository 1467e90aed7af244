"""Result of `waterfall`: the step to improve, the chains of steps, comparisons of systems, and lost items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.pipelines.rag.chains import STEPS, UNITS
from judged.results import (
    COUNT,
    SHARE,
    TEXT,
    Answer,
    Axis,
    Chart,
    Column,
    Headline,
    Sentences,
    Table,
    columns_of,
    counted,
    p_value,
)
from judged.results.decimals import decimal, listed, p_text, percent

if TYPE_CHECKING:
    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.rag.steps import ChainStep, LostItem, Share, StepDifference, Weakest
    from judged.results import Block, Status
    from judged.results.blocks import Note
    from judged.stats.ratio import RatioDifference

_RULES = (
    "share: among the judged items that reached the step, the share that passes the step; overall: share of items that"
    " pass this step and all earlier steps (the product of the shares); if perfect: overall share after the last step,"
    " if this step had no loss and the shares of later steps stayed the same; reappeared: items that are present at"
    " this step although an earlier step lost these items"
)
_UNIT = Axis(0.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Waterfall(Answer):
    """Shares of items that pass each step of an answer's pipeline, of those that reached it and of all.

    Attributes
    ----------
    steps : tuple of ChainStep
        All steps of all chains and systems, over all topics.
    by_slice : tuple of ChainStep
        Steps of the main chain in each slice; ``small_slices`` lists slices with too few topics.
    weakest : dict of Weakest
        Step of the main chain that loses the most items, by system; systems that lose nothing are missing.
    differences : tuple of StepDifference
        Differences between the other systems and the first one.
    lost : tuple of LostItem
        Items that do not pass all steps, with the first step that each does not pass.
    topics : tuple of (str, str, tuple of int)
        System, topic, and number of items of the main chain at the start and after each step.
    unrecorded_steps : dict of tuple of str
        Steps without any record, by system.
    main_unit : str
        Unit of the main chain, the chain that the first sentence describes: a key of `UNITS`.
    """

    kind: ClassVar[str] = "rag-waterfall"
    main: ClassVar[str] = "steps"

    responses: Responses
    steps: tuple[ChainStep, ...]
    by_slice: tuple[ChainStep, ...]
    small_slices: frozenset[str]
    weakest: Mapping[str, Weakest]
    differences: tuple[StepDifference, ...]
    lost: tuple[LostItem, ...]
    topics: tuple[tuple[str, str, tuple[int, ...]], ...]
    unrecorded_steps: Mapping[str, tuple[str, ...]]
    main_unit: str
    cutoffs: tuple[int, int]
    level: float
    sampling_unit: str  # "topics" or "needs": intervals are over these
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"{self.responses.name}: loss of evidence by step"

    @property
    def several(self) -> bool:
        """Whether there are several systems."""
        return len(self.responses.run_names) > 1

    def step_title(self, step: str) -> str:
        """Return the name of a step for people."""
        first, last = self.cutoffs
        return {"retrieved": f"retrieved in the top {first}", "ranked": f"ranked in the top {last}"}.get(
            step, STEPS[step]
        )

    @property
    def headline(self) -> Headline:
        """The step of the main chain at which the first system loses most, and whether all others lose less."""
        run, unit = self.responses.run_names[0], UNITS[self.main_unit][0]
        of = f"{run}: " if self.several else ""
        main_steps = [step for step in self.steps if (step.run, step.unit) == (run, self.main_unit)]
        if run not in self.weakest:
            if main_steps:
                return Headline("info", "nothing lost", f"{of}No step loses {unit}.")
            return Headline("unknown", "not recorded", f"{of}No step is recorded for {unit}.")
        worst = self.weakest[run]
        name = f"“{self.step_title(worst.step.step)}”"
        lost = f"This step loses {_n_lost(worst.step)} of {counted(sum(map(_n_lost, main_steps)), 'lost item')}"
        status: Status = "info"
        word, sentence = "only step", f"{lost}; no other step is recorded."
        if worst.insufficiency is not None:
            status, word, sentence = "unknown", "not enough data", f"{lost}; too few data to test other steps."
        elif worst.p <= 1 - self.level:
            status, word, sentence = "worse", "weakest step", f"{lost}; every other step loses significantly less."
        elif not math.isnan(worst.p):
            status, word = "same", "no single weakest step"
            sentence = f"{lost}; no significant difference from “{self.step_title(worst.second)}”."
        share, label = worst.step.share, f"{of}{unit} pass {name}"
        return Headline(status, word, sentence, label, share.value, SHARE, share.ci, share.level, axis=_UNIT)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The step that loses the most, for each system, and the steps at which systems differ."""
        return (*map(self._sentence, self.responses.run_names), *self._comparison())

    def _sentence(self, run: str) -> str:
        prefix, unit = f"{run}: " if self.several else "", UNITS[self.main_unit][0]
        if run not in self.weakest:
            has_steps = any((step.run, step.unit) == (run, self.main_unit) for step in self.steps)
            return f"{prefix}No step loses {unit}." if has_steps else f"{prefix}No step is recorded for {unit}."
        worst = self.weakest[run]
        step, name = worst.step, f"“{self.step_title(worst.step.step)}”"
        passing = f"{step.n} of {step.n_reached - step.unjudged} pass ({_share_with_ci(step.share)})"
        if math.isnan(worst.p) and worst.insufficiency is None:
            return f"{prefix}{name} is the only recorded step of {unit}: {passing}."
        main_steps = [step for step in self.steps if (step.run, step.unit) == (run, self.main_unit)]
        lost = f"{_n_lost(step)} of the {sum(map(_n_lost, main_steps))} lost {unit}, while {passing}"
        names = [f"“{self.step_title(row.step)}”" for row in main_steps if _n_lost(row) == _n_lost(step)]
        most = f"{listed(names)} {'loses' if len(names) == 1 else 'each lose'} the most"
        if worst.insufficiency is not None:
            reason = worst.insufficiency.sentence("information need" if self.sampling_unit == "needs" else "topic")
            return f"{prefix}{most}: {lost}. It was not tested whether another step loses more. {reason}"
        effect = "the effect of a perfect step is unknown, because no judged item reached a later step"
        if not math.isnan(step.if_perfect.value):
            change = (
                f"{percent(step.if_perfect.value)} of {unit} would pass all steps instead of {percent(worst.final)}"
            )
            effect = f"if {name} lost nothing and the shares of later steps stayed the same, {change}"
        p = p_text(worst.p, 1 - self.level)
        if worst.p <= 1 - self.level:
            text = f"{prefix}Work on {name} first: it loses {lost}. Every other step loses significantly less"
        else:
            text = f"{prefix}{most}: {lost}. No significant difference from “{self.step_title(worst.second)}”"
        return f"{text} (p {p}); {effect}."

    def _comparison(self) -> Iterator[str]:
        significant = [
            f"{difference.run} at “{self.step_title(difference.step)}” ({UNITS[difference.unit][0]})"
            f" {decimal(100 * difference.share.value, 1, '+')} percentage points (p"
            f" {p_text(difference.p, 1 - self.level)})"
            for difference in self.differences
            if difference.p <= 1 - self.level
        ]
        tests = sum(not math.isnan(difference.p) for difference in self.differences)
        first = self.responses.run_names[0]
        prefix = f"Significant differences from the system `{first}`, in the share of items that pass a step"
        if tests:
            yield f"{prefix}: {'; '.join(significant) or 'none'} ({counted(tests, 'test')}, Holm)."
        elif self.differences:
            yield f"{prefix}: not tested, because there is too little data."

    def facts(self) -> Mapping[str, Any]:
        """Return the settings, and the steps without any record."""
        settings = {
            "main_unit": self.main_unit,
            "cutoffs": self.cutoffs,
            "level": self.level,
            "unrecorded_steps": self.unrecorded_steps,
        }
        return {"responses": self.responses.name, **settings}

    def blocks(self) -> tuple[Block, ...]:
        """Return the main chain, the ends of all chains, differences, slices, topics, and lost items."""
        (unit, title), main_steps = UNITS[self.main_unit], [step for step in self.steps if step.unit == self.main_unit]
        main_table = self._step_table("main_steps", main_steps, title.capitalize())
        final_shares = {step.run: f"{step.run} {percent(step.overall.value)}" for step in main_steps}
        caption = f"Share of {unit} that pass all steps: {', '.join(final_shares.values())}."
        options: dict[str, Any] = {"kind": "dots", "color": "run"} if self.several else {"kind": "bars"}
        options |= {"percent": "x", "from_zero": True, "includes": {"x": (0.0, 1.0)}}
        return (
            Sentences(self.sentences),
            Chart(
                "waterfall",
                f"Share of {unit} that pass each step and all earlier steps",
                main_table,
                caption,
                x="overall",
                y="step_title",
                **options,
            ),
            main_table,
            self._chains(),
            *([self._difference_table()] if self.differences else []),
            *([self._step_table("slices", self.by_slice, "Steps by slice")] if self.by_slice else []),
            self._step_table("steps", self.steps, "Steps by kind of item"),
            self._topic_table(),
            self._lost_table(),
        )

    def _step_table(self, name: str, steps: Sequence[ChainStep], title: str) -> Table:
        def only(is_visible: bool) -> Any:
            return "" if is_visible else "data"

        has_unjudged, is_by_slice = any(step.lowest < step.highest for step in steps), name == "slices"
        few_topics_marks = [" (few topics)" if step.slice in self.small_slices else "" for step in steps]
        bound_texts = [f"{percent(step.lowest)} to {percent(step.highest)}" for step in steps]
        bound_column = Column("bounds", bound_texts, TEXT, "bounds of overall", only="people")
        reappeared = [step.reappeared for step in steps]
        columns = (
            Column("slice", [step.slice for step in steps], TEXT, details=few_topics_marks, only=only(is_by_slice)),
            Column("run", [step.run for step in steps], TEXT, "system", only=only(self.several)),
            *columns_of(steps, "unit"),
            *self._step_columns([step.step for step in steps]),
            Column("n_reached", [step.n_reached for step in steps], COUNT, "reached"),
            *columns_of(steps, ("n", COUNT, "passed")),
            Column("unjudged", [step.unjudged for step in steps], COUNT, only=only(has_unjudged)),
            replace(
                _share_column("share", [step.share for step in steps], "share", few_topics_marks),
                axis=_UNIT if name == "main_steps" else None,
                statuses=[self._status(step) for step in steps] if name == "main_steps" else (),
            ),
            _share_column("overall", [step.overall for step in steps], "overall", few_topics_marks),
            *([bound_column] if has_unjudged else []),
            *columns_of(steps, "lowest", "highest"),
            Column("mean", [step.mean for step in steps], SHARE, ci=[step.mean_ci for step in steps], only="data"),
            Column("reappeared", reappeared, COUNT, only=only(any(reappeared))),
            _share_column("if_perfect", [step.if_perfect for step in steps], "if perfect", few_topics_marks),
        )
        is_main = name == "main_steps"
        note = f"{100 * self.level:g}% intervals over {self.sampling_unit}; {_RULES}" if is_main else ""
        groups = [UNITS[step.unit][1] for step in steps] if name == "steps" else ()
        labels = 1 + self.several + is_by_slice
        return Table(name, columns, title, note, labels, not is_main, "people" if is_main else "", groups=groups)

    def _status(self, step: ChainStep) -> Status:
        worst = self.weakest.get(step.run)
        return "worse" if worst and worst.step is step and worst.p <= 1 - self.level else "info"

    def _step_columns(self, steps: Sequence[str], title: str = "step") -> tuple[Column, Column]:
        names = [self.step_title(step) for step in steps]
        return Column("step_title", names, TEXT, title, only="people"), Column("step", steps, TEXT, only="data")

    def _chains(self) -> Table:
        keys = dict.fromkeys((step.run, step.unit) for step in self.steps)
        chains = [[step for step in self.steps if (step.run, step.unit) == key] for key in keys]
        last_steps = [chain[-1] for chain in chains]
        most = [max(steps, key=_n_lost) for steps in chains]
        unjudged = [sum(step.unjudged for step in chain) for chain in chains]
        columns = (
            Column("run", [step.run for step in last_steps], TEXT, "system", only="" if self.several else "data"),
            Column("unit", [step.unit for step in last_steps], TEXT, only="data"),
            Column("chain", [UNITS[step.unit][0] for step in last_steps], TEXT, "items", only="people"),
            Column("items", [chain[0].n_reached for chain in chains], COUNT, "total"),
            Column("unjudged", unjudged, COUNT, only="" if any(unjudged) else "data"),
            *columns_of(last_steps, ("n", COUNT, "passed")),
            _share_column("overall", [step.overall for step in last_steps], "overall"),
            Column("last", [self.step_title(step.step) for step in last_steps], TEXT, "last step", only="people"),
            *self._step_columns([step.step for step in most], "step that loses the most"),
            Column("lost", list(map(_n_lost, most)), COUNT),
            _share_column("share", [step.share for step in most], "share"),
        )
        return Table("chains", columns, "Loss by kind of item", labels=1 + self.several, one_piece=True)

    def _difference_table(self) -> Table:
        rows, note = (
            self.differences,
            (
                f"p: test of the difference in share, Holm-corrected over all rows; {100 * self.level:g}% confidence"
                " intervals"
            ),
        )
        columns = (
            *columns_of(rows, ("run", TEXT, "system"), ("unit", TEXT)),
            *self._step_columns([difference.step for difference in rows]),
            _change_column("share", [difference.share for difference in rows], "share"),
            _change_column("overall", [difference.overall for difference in rows], "overall"),
            *columns_of(rows, ("p", p_value(1 - self.level))),
        )
        return Table(
            "differences", columns, f"Differences from {self.responses.run_names[0]}", note, labels=3, folded=True
        )

    def _topic_table(self) -> Table:
        all_steps = list(dict.fromkeys(step.step for step in self.steps if step.unit == self.main_unit))
        step_names = {run: [step.step for step in self.steps if (step.run, step.unit) == (run, self.main_unit)]
              for run in self.responses.run_names}  # fmt: skip
        counts = [dict(zip(step_names[run], remaining, strict=True)) for run, _, (_, *remaining) in self.topics]
        columns = (
            Column("query_id", [topic for _, topic, _ in self.topics], TEXT, "topic"),
            Column("run", [run for run, _, _ in self.topics], TEXT, "system", only="" if self.several else "data"),
            Column("items", [initial for _, _, (initial, *_) in self.topics], COUNT),
            *(Column(step, [counts_of.get(step) for counts_of in counts], COUNT, self.step_title(step))
              for step in all_steps),
        )  # fmt: skip
        title = f"{UNITS[self.main_unit][0].capitalize()} by topic"
        return Table("topics", columns, title, labels=1 + self.several, folded=True)

    def _lost_table(self) -> Table:
        rows = self.lost
        columns = (
            Column("run", [row.run for row in rows], TEXT, "system", only="" if self.several else "data"),
            Column("unit", [row.unit for row in rows], TEXT),
            Column("query_id", [row.topic for row in rows], TEXT, "topic"),
            Column("item", [row.item_id for row in rows], TEXT),
            *self._step_columns([row.step for row in rows], "lost at"),
            Column("unjudged", ["no verdict" if row.is_unjudged else "" for row in rows], TEXT, ""),
        )
        note, labels = "one answer: judged rag explain RESPONSES --topic ID", 3 + self.several
        return Table("lost", columns, "Lost items", note, labels, folded=True, terminal_rows=20)


def _n_lost(step: ChainStep) -> int:
    return step.n_reached - step.unjudged - step.n


def _share_column(name: str, shares: Sequence[Share], title: str, few_topics_marks: Sequence[str] = ()) -> Column:
    # Slices with too few topics have no intervals.
    limits = [None if few_topics_marks and few_topics_marks[i] else share.ci for i, share in enumerate(shares)]
    return Column(name, [share.value for share in shares], SHARE, title, limits)


def _change_column(name: str, changes: Sequence[RatioDifference], title: str) -> Column:
    intervals = [None if math.isnan(change.low) else (change.low, change.high) for change in changes]
    return Column(name, [change.value for change in changes], SHARE, title, intervals)


def _share_with_ci(share: Share) -> str:
    interval = f", {100 * share.level:g}% CI {' to '.join(map(percent, share.ci))}" if share.ci else ""
    return percent(share.value) + interval
