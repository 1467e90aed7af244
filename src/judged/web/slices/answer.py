"""Scores and differences by slice as the answer of a page: what `by_slice` and `compare_slices` say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, Field

from judged.answer import COUNT, TEXT, Answer, Column, Table, columns_of
from judged.errors import InputError
from judged.evaluation import measures_of
from judged.measures.grammar import listed
from judged.slicing.scores import TOPIC_MEAN
from judged.slicing.slice_tests import ALL
from judged.slicing.topic_slices import MINIMUM
from judged.web.pagination import LONGEST, Scored, blank
from judged.web.problems import Parameters
from judged.web.slices.attributes import attributes, cut, draws, notes_of, usual, where_column
from judged.web.workspace import LEVEL, MEASURE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.answer import Block
    from judged.evaluation import Scores
    from judged.notes import Note
    from judged.slicing import SliceComparison, SlicedScores, Slicing
    from judged.slicing.scores import SliceEstimate
    from judged.web.workspace import Workspace

MEASURES = "nDCG@10,R@100"


Number: TypeAlias = Annotated[Annotated[float, Field(allow_inf_nan=False)] | None, BeforeValidator(blank)]
"""A number that may be left out, or empty."""
Least: TypeAlias = Annotated[Annotated[int, Field(ge=1, le=1_000_000)] | None, BeforeValidator(blank)]
"""A number of topics that may be left out, or empty."""


class Sliced(Parameters):
    """Which topics count, and into which slices they are cut."""

    by: str = Field("", max_length=500, description="Attributes, with commas between: one slice a value of each.")
    where: str = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    min_topics: Least = Field(None, description="A slice of fewer topics is shown, and never tested; 10 if left out.")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(dict.fromkeys(name for part in self.by.split(",") if (name := part.strip())))

    @property
    def least(self) -> int:
        """The least number of topics of a slice that is tested."""
        return MINIMUM if self.min_topics is None else self.min_topics


class AskedSlices(Sliced, Scored):
    """Scores, or differences, by slice."""

    measures: str = Field(MEASURES, max_length=500, description="Measures, with commas between; six at most.")
    run: str = Field(
        "", max_length=LONGEST, description="A run; * for every one. Left out: every run, or of much data the best."
    )
    baseline: str = Field(
        "", max_length=LONGEST, description="The run that the others are compared with on each slice."
    )


MOST = 6
"""Measures on the page."""
SEED = 0
_MORE = ("where", "share", "min_topics", "small")
_MANY = 30_000  # topics times runs: of more, only one run is tested unless all are asked for


@dataclass(frozen=True, eq=False, repr=False)
class SlicePage(Answer):
    """Slices of the topics, and how runs do on each."""

    kind: ClassVar[str] = "slices"

    asked: AskedSlices  # with the attributes by which topics are cut
    runs: tuple[str, ...]  # that are shown
    measures: tuple[str, ...]
    every: bool  # whether these are all runs that are open
    slicing: Slicing
    scores: SlicedScores | None  # None without a run
    compared: SliceComparison | None  # where a run is named to compare with
    attributes: Table  # by which topics can be sliced
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """What the scores rest on."""
        return self.scores and self.scores.provenance

    @property
    def sentences(self) -> tuple[str, ...]:
        """Why nothing is tested, where nothing can be; and which slices differ."""
        slicing, said = self.slicing, self.scores.sentences if self.scores else ()
        if bool((slicing.n == len(slicing.query_ids)).any()) and len(slicing) == 1:
            text = f"All topics are in one slice, `{slicing.names[0]}`: there are no others to set it against."
            return (text, *said)
        if slicing.small.all():
            text = "Every slice has too few topics: all are shown, and none is tested. A smaller minimum changes that."
            return (text, *said)
        return said

    def facts(self) -> dict[str, Any]:
        """Give what was asked, what is said of all slices, and the comparison."""
        return {
            **(self.scores.facts() if self.scores else {}),
            "by": self.asked.names,
            "where": self.asked.where,
            "min_topics": self.asked.least,
            "n": len(self.slicing.query_ids),
            "shown_runs": self.runs,
            "measures": self.measures,
            "every_run": self.every,
            "caption": self.caption,
            "compared": self.compared and self.compared.to_dict(),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Give the scores by slice, the slices with what selects their topics, and the attributes."""
        scored = self.scores.blocks() if self.scores else ()
        slices = self._slices()
        return (
            *(block for block in scored if block.name != slices.name),
            slices,
            replace(self.attributes, only="data"),
        )

    def _slices(self) -> Table:
        table = self.slicing.table()
        return replace(table, columns=(*table.columns, where_column(self.asked, self.slicing)))

    def shown(self) -> Iterator[Table]:
        """Give the tables of the page: for one run a column per measure, else a table per measure, a column per run."""
        scores, topics = self.scores, len(self.slicing.query_ids)
        every: dict[str, Any] = {
            "name": ALL,
            "where": self.asked.where.strip(),
            "n": topics,
            "min_topics": 1,
            "small": False,
        }
        slices = sorted(self._slices().records(), key=lambda row: row["small"])
        rows: list[dict[str, Any]] = [
            {**row, "slice": row["name"], "share": row["n"] / topics} for row in (every, *slices)
        ]
        averages = [row for row in scores.averages if row.part != TOPIC_MEAN] if scores else []
        rows += [{**dict.fromkeys(rows[0]), "slice": way} for way in dict.fromkeys(row.part for row in averages)]
        lines = columns_of(rows, ("slice", TEXT, "Slice"), ("n", COUNT, "Topics"), *_MORE)
        kinds = ["small" if row["small"] else "average" if row["where"] is None else "" for row in rows]
        if scores is None:
            yield Table("slices", lines, "Slices", kinds=kinds)
            return
        groups = {f"{self.runs[0]} by slice": [(self.runs[0], measure, measure) for measure in self.measures]}
        if len(self.runs) > 1:
            groups = {measure: [(run, measure, run) for run in self.runs] for measure in self.measures}
        cells = {(row.part, row.run, row.measure): _cell(row) for row in scores.estimates}
        cells |= {(row.part, row.run, row.measure): {"value": row.value, "ci": None} for row in averages}
        for title, group in groups.items():
            columns = (
                Column(heading, [cells.get((row["slice"], run, measure)) for row in rows])
                for run, measure, heading in group
            )
            yield Table(title, (*lines, *columns), title, kinds=kinds)

    @property
    def caption(self) -> str:
        """How intervals and tests were made."""
        scores = self.scores
        if scores is None:
            return ""
        drawn = {row.rest.resamples for row in scores.findings if row.rest}
        parts = [scores.scores.interval_words(scores.method)]
        tests = [f"permutation test, {most:,} permutations" for most in drawn if most is not None]
        tests += ["Welch's t-test" + (" where there are many topics" if tests else "")] if None in drawn else []
        if tests:
            corrected = f"; p corrected by Holm for {scores.tests} tests" if scores.tests > 1 else ""
            parts.append(f"each slice against the topics outside it: {', '.join(tests)}{corrected}")
        return "; ".join(parts)


def slices(workspace: Workspace, asked: AskedSlices) -> SlicePage:
    """Cut the topics into slices, and say of each how the runs do."""
    if not asked.names:
        asked = asked.model_copy(update={"by": usual(workspace)})
    slicing, runs = cut(workspace, asked), shown_runs(workspace, asked)
    measures = tuple(dict.fromkeys(map(str, measures_of(listed(asked.measures) or ["nDCG@10"], rel=asked.rel))))
    if len(measures) > MOST:
        raise InputError(f"{len(measures)} measures are too many for one page", fix=f"name {MOST} at most")
    scores = _scored(workspace, workspace.scores(measures, runs, asked.where), slicing) if runs else None
    return SlicePage(
        asked=asked,
        runs=runs,
        measures=measures,
        every=len(runs) == len(workspace.lists),
        slicing=slicing,
        scores=scores,
        compared=_compared(workspace, asked, measures, runs, slicing) if asked.baseline else None,
        attributes=attributes(workspace),
        notes=notes_of(workspace, asked, len(slicing.query_ids), scores.notes if scores else ()),
    )


def _scored(workspace: Workspace, scores: Scores, slicing: Slicing) -> SlicedScores:
    key = ("by slice", scores, slicing)
    return workspace.remember(key, lambda: scores.by_slice(slicing, level=LEVEL, seed=SEED))


def shown_runs(workspace: Workspace, asked: AskedSlices) -> tuple[str, ...]:
    """Name the runs that are shown: the one that is asked for, or all; of much data the best, unless all are."""
    best = workspace.ranked((listed(asked.measures) or [MEASURE])[0])
    if asked.run == "*":
        return best
    if asked.run:
        workspace.judged(asked.run)
        return (asked.run,)
    return best if len(best) * len(workspace.query_ids) <= _MANY else best[:1]


def _compared(
    workspace: Workspace, asked: AskedSlices, measures: tuple[str, ...], runs: tuple[str, ...], slicing: Slicing
) -> SliceComparison:
    """Compare the runs that are shown with another one on each slice."""
    workspace.judged(asked.baseline)
    others = tuple(name for name in runs if name != asked.baseline)
    if not others and not asked.run:  # the first run is the one that others are compared with
        others = workspace.usual_pair(measures[0], asked.baseline)[1:]
    if not others:
        raise InputError(f"{asked.baseline!r} is compared with itself", fix="choose two different runs")
    scores = workspace.scores(measures, (asked.baseline, *others), asked.where)
    how: dict[str, Any] = {"alpha": 1 - LEVEL, "resamples": draws(len(slicing.query_ids)), "seed": SEED}
    key = ("slices compared", scores, slicing)
    return workspace.remember(key, lambda: scores.compare_slices(slicing, asked.baseline, **how))


def _cell(row: SliceEstimate) -> dict[str, Any]:
    """Give what a cell of the page says: a number, and what it is against the topics outside the slice."""
    cell = {"value": row.value, "ci": row.ci}
    if row.rest is None:
        return cell
    rest = {"difference": row.rest.difference, "interval": row.rest.interval}
    return {**cell, **rest, "p": row.adjusted, "significant": row.significant, "better": row.better}
