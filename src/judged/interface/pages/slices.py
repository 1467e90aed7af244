"""Scores and differences by slice as the answer of a page: what `by_slice` and `compare_slices` say."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from judged.comparison.slicing.parts import ALL
from judged.comparison.slicing.topic_slices import DEFAULT_MIN_TOPICS
from judged.errors import InputError
from judged.interface.pages.answer_pages import (
    answer_page,
    attributes,
    conditions,
    cut,
    notes_of,
    usual,
    with_conditions,
)
from judged.interface.pages.filters import blocks, probability, query, signed
from judged.interface.pages.pagination import LONGEST, Scored, blank
from judged.interface.pages.problems import Parameters
from judged.interface.pages.workspace import LEVEL, Opened
from judged.results import COUNT, TEXT, Answer, Chart, Column, Table, columns_of
from judged.scoring.default_measures import DEFAULT_MEASURE, RANKING_AND_CANDIDATES
from judged.scoring.evaluation import measures_of
from judged.scoring.measures.grammar import list_measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markupsafe import Markup

    from judged.comparison.slicing import SliceComparison, SlicedScores, Slicing
    from judged.comparison.slicing.scores import SliceEstimate
    from judged.interface.pages.workspace import Workspace
    from judged.results import Block
    from judged.results.blocks import Note


Number: TypeAlias = Annotated[Annotated[float, Field(allow_inf_nan=False)] | None, BeforeValidator(blank)]
"""A number that may be left out, or empty."""
Least: TypeAlias = Annotated[Annotated[int, Field(ge=1, le=1_000_000)] | None, BeforeValidator(blank)]
"""A number of topics that may be left out, or empty."""


class By(Parameters):
    """By which attributes topics are cut."""

    by: str = Field("", max_length=500, description="Attributes, with commas between: one slice a value of each.")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(dict.fromkeys(name for part in self.by.split(",") if (name := part.strip())))


class Sliced(By):
    """Which topics count, and into which slices they are cut."""

    where: str = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    min_topics: Least = Field(None, description="A slice of fewer topics is shown, and never tested; 10 if left out.")

    @property
    def least(self) -> int:
        """The least number of topics of a slice that is tested."""
        return DEFAULT_MIN_TOPICS if self.min_topics is None else self.min_topics


class AskedSlices(Sliced, Scored):
    """Scores, or differences, by slice."""

    measures: str = Field(
        ",".join(RANKING_AND_CANDIDATES), max_length=500, description="Measures, with commas between; six at most."
    )
    run: str = Field(
        "", max_length=LONGEST, description="A run; * for every one. Left out: every run, or of much data the best."
    )
    baseline: str = Field(
        "", max_length=LONGEST, description="The run that the others are compared with on each slice."
    )


MOST = 6
"""Measures on the page."""
SEED = 0
_KINDS = {True: "good", False: "bad", None: ""}
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
            "n": len(self.slicing.query_ids),
            "measures": self.measures,
            "every_run": self.every,
            "caption": self.caption,
            "compared": self.compared and self.compared.to_dict(),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Give the scores by slice, the slices with what selects their topics, and the attributes."""
        scored = self.scores.blocks() if self.scores else ()
        slices = with_conditions(self.asked, self.slicing)
        return (
            *(block for block in scored if block.name != slices.name),
            slices,
            replace(self.attributes, only="data"),
        )

    def shown(self) -> Iterator[Table]:
        """Give the tables of the page: for one run a column per measure, else a table per measure, a column per run."""
        scores, several = self.scores, len(self.runs) > 1
        if scores is None:
            yield self._known("Slices", self.slicing.names, [Column("size", self.slicing.n.tolist(), COUNT, "topics")])
            return
        for title in self.measures if several else (f"{self.runs[0]} by slice",):
            pairs = [(run, title) for run in self.runs] if several else [(self.runs[0], name) for name in self.measures]
            table = scores.overview(title if several else None)
            for run, measure in pairs:
                rows = scores.displayed_estimates(run, measure)
                table = table.changed(
                    run if several else measure,
                    ci=[row.ci for row in rows],
                    beside=[_against(row) for row in rows],
                    kinds=[_KINDS[row.better] for row in rows],
                )
            names = [row.part for row in scores.displayed_estimates(*pairs[0])]
            yield self._known(title, names, table.columns[1:])

    def _known(self, title: str, names: Sequence[str], columns: Iterable[Column]) -> Table:
        """Say of slices what selects their topics, and which are small; ways to average stand below them."""
        every: dict[str, Any] = {"where": self.asked.where.strip(), "min_topics": 1, "small": False}
        known = {ALL: every} | {row["name"]: row for row in with_conditions(self.asked, self.slicing).records()}
        rows: list[dict[str, Any]] = [{"slice": name, **known.get(name, dict.fromkeys(every))} for name in names]
        kinds = ["small" if row["small"] else "average" if row["where"] is None else "" for row in rows]
        about = columns_of(rows, ("slice", TEXT, "Slice"), *every)
        data = (replace(column, only="data") for column in about[1:])
        return Table(title, (about[0], *columns, *data), title, kinds=kinds)

    @property
    def caption(self) -> str:
        """How intervals and tests were made."""
        scores = self.scores
        if scores is None:
            return ""
        drawn = {row.contrast.resamples for row in scores.tested if row.contrast}
        parts = [scores.scores.interval_caption(scores.method)]
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
    measures = tuple(
        dict.fromkeys(map(str, measures_of(list_measures(asked.measures) or [DEFAULT_MEASURE], rel=asked.rel)))
    )
    if len(measures) > MOST:
        raise InputError(f"{len(measures)} measures are too many for one page", fix=f"name {MOST} at most")
    scores = None
    if runs:
        whole = workspace.scores(measures, runs, asked.where)
        key = ("by slice", whole, slicing)
        scores = workspace.remember(key, lambda: whole.by_slice(slicing, level=LEVEL, seed=SEED))
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


def shown_runs(workspace: Workspace, asked: AskedSlices) -> tuple[str, ...]:
    """Name the runs that are shown: the one that is asked for, or all; of much data the best, unless all are."""
    best = workspace.ranked((list_measures(asked.measures) or [DEFAULT_MEASURE])[0])
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
    others = tuple(name for name in runs if name != asked.baseline)
    if not others and not asked.run:  # the first run is the one that others are compared with
        others = workspace.usual_pair(measures[0], asked.baseline)[1:]
    if not others:
        raise InputError(f"{asked.baseline!r} is compared with itself", fix="choose two different runs")
    scores = workspace.scores(measures, (asked.baseline, *others), asked.where)
    how: dict[str, Any] = {"alpha": 1 - LEVEL, "seed": SEED}
    key = ("slices compared", scores, slicing)
    return workspace.remember(key, lambda: scores.compare_slices(slicing, asked.baseline, **how))


def _against(row: SliceEstimate) -> str:
    """Say what a slice is against the topics outside it."""
    if row.contrast is None or math.isnan(row.contrast.difference):
        return ""
    word = {True: " better", False: " worse", None: " differs"}[row.better] if row.significant else ""
    said = f"{signed(row.contrast.difference)}{word} p {probability(row.adjusted)}"
    return said.replace(" ", "\N{NO-BREAK SPACE}")  # a line of its own, below the interval


router = APIRouter(tags=["diagnosis"])


def _shown(workspace: Workspace, asked: AskedSlices, answer: SlicePage | None) -> dict[str, Any]:
    """Lead from attributes to their slices, and from one of several runs to its own page; draw the numbers."""
    known = attributes(workspace)
    ways = [f"/slices{query(asked, by=row['name'])}" if row["slices"] else "" for row in known.records()]
    values: dict[str, Any] = {"attribute_table": known.changed("name", links=ways), "figures": ""}
    if answer is not None:
        links = {run: f"/slices{query(asked, run=run)}" for run in answer.runs if len(answer.runs) > 1}
        values |= {"links": links, "figures": _figures(workspace, answer), "tables": list(answer.shown())}
    return values


def _figures(workspace: Workspace, answer: SlicePage) -> Markup:
    """Draw the numbers by slice, and the differences where runs are compared, once."""
    charts: list[Chart] = []
    closely = tuple(name for name in (answer.asked.baseline, answer.asked.run) if name in workspace.lists)
    for part, name in ((answer.scores, "scores"), (answer.compared, "changes")):
        made = part.charts().values() if part else ()
        loud = {chart: (*dict.fromkeys((*chart.loud, *closely)),) if chart.loud else () for chart in made}
        charts += [replace(chart, name=f"{name}-{at}", loud=loud[chart]) for at, chart in enumerate(made)]
    return workspace.remember(("slices figures", answer.scores, answer.compared, closely), lambda: blocks(charts))


@answer_page(router, "slices.html", "/slices", "Slices", "Scores and differences by slice", _shown)
def scores_by_slice(workspace: Opened, asked: Annotated[AskedSlices, Query()]) -> SlicePage:
    """Cut the topics into slices by attributes, and say of each how the runs do.

    Each slice is tested against the other topics, corrected by Holm; one of few topics is shown and never tested.
    With ``baseline``, runs are compared on each slice by a paired randomisation test.
    """
    return slices(workspace, asked)


@router.get("/api/v1/conditions", summary="Conditions on topics")
def conditions_as_json(workspace: Opened) -> dict[str, Any]:
    """Give what can stand in ``where``: a condition for each slice, and the beginning of one for each number."""
    return {"conditions": conditions(workspace).records()}
