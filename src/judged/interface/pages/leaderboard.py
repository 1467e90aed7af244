"""The leaderboard as the answer of a page: one row per run, in order, beside all that was found by its measures."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from fastapi import APIRouter, Query
from pydantic import Field

from judged.comparison.answer import data_tables
from judged.comparison.choices import MANY_TOPICS, Choices, all_tests, default_test
from judged.comparison.compare import untested_comparison
from judged.comparison.pair import RATIO, is_test_of_means
from judged.comparison.slicing.topic_slices import DEFAULT_MIN_TOPICS
from judged.errors import InputError, JudgedError, MeasureError
from judged.interface.pages.answer_pages import answer_page
from judged.interface.pages.filters import blocks, probability
from judged.interface.pages.pagination import LONGEST, Scored, Trimmed, order_by
from judged.interface.pages.workspace import Opened
from judged.results import CHANGE, COUNT, TEXT, Answer, Column, Show, Table, counted, number
from judged.results.blocks import Note
from judged.results.chart_drawings import SERIES
from judged.results.decimals import percent
from judged.scoring.curves import Curves, at_cutoffs
from judged.scoring.default_measures import BROWSED_MEASURES
from judged.scoring.evaluation.inputs import with_rel
from judged.scoring.evaluation.summary import leaderboard_chart
from judged.scoring.measures.grammar import list_measures, parse, parse_many
from judged.scoring.measures.registry import REGISTRY
from judged.stats.correction import CORRECTIONS
from judged.stats.inputs import topics_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markupsafe import Markup

    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.interface.pages.workspace import Workspace
    from judged.results import Block, Chart
    from judged.scoring.evaluation import Estimate
    from judged.scoring.measures.base import Measure

    Made = TypeVar("Made")


CORRECTION = "holm"

Name: TypeAlias = Annotated[str, Field(max_length=300)]


class AskedLeaderboard(Scored):
    """The state of the leaderboard."""

    measures: list[Name] = Field(
        [],
        max_length=100,
        description="Names of measures, separated by commas or each by itself; the first is the leading one.",
    )
    baseline: str = Field(
        "",
        max_length=LONGEST,
        description="The run that all others are tested against; without it the one called baseline, or the best.",
    )
    measure: Name = Field("", description="The leading measure, before those of measures.")
    run: str = Field("", max_length=LONGEST, description="A run that stands out in the charts, as the baseline does.")
    sort: Trimmed = Field(
        "",
        max_length=300,
        description="run, judged, or a measure; with - before it, descending. The best by the first measure come first"
        " without it.",
    )
    where: Trimmed = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    test: Trimmed = Field(
        "",
        max_length=40,
        description="As compare takes it. Without it: randomisation, and t over more than 2,000 topics.",
    )
    correction: Trimmed = Field(CORRECTION, max_length=40, description="For the number of tests, as compare takes it.")
    beside: Literal["", "difference"] = Field(
        "", description="What stands beside each number of the page: its difference to the baseline, or nothing."
    )
    curve: Trimmed = Field(
        "", max_length=300, description="A measure that is drawn by cutoff, such as nDCG; none without."
    )


LOW = 0.7
"""A smaller share of judged documents is marked; warnings of an evaluation begin there, too."""
LINES = 40
"""Runs of a curve at most."""
SHARE = "Judged@10"
_KINDS = {"better": "good", "ahead": "good", "worse": "bad", "behind": "bad"}
_PERCENT = Show(lambda share: percent(share, 1), "float64")


@dataclass(frozen=True, eq=False, repr=False)
class LeaderboardPage(Answer):
    """Runs by measures."""

    kind: ClassVar[str] = "leaderboard"

    workspace: Workspace
    asked: AskedLeaderboard  # with the measures by their names
    measures: tuple[Measure, ...]  # those that could be read and scored
    plain_names: tuple[str, ...]  # what they are called without the level of the page
    typed: str  # the names of those that could not, as they were typed
    baseline: str  # the name of a run; empty where there is no other to test against it
    n: int  # topics that count
    test: str
    correction: str
    sort: str  # by what the rows are ordered: a name, with `-` before it where the greatest comes first
    series: tuple[Measure, ...]  # the points of the curve; empty where there is none
    result: Comparison | None  # without tests where one run is open; None where nothing can be shown
    problems: dict[str, JudgedError]  # what could not be read, by field
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """What the scores rest on."""
        return self.result and self.result.provenance

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical names of the measures."""
        return tuple(map(str, self.measures))

    @property
    def lead(self) -> Measure:
        """The measure by which the rows are ordered; the first, where they are ordered by something else."""
        named = self.sort.removeprefix("-")
        return next((measure for measure in self.measures if str(measure) == named), self.measures[0])

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which run is best; which topics count; how many tests of which kind there are, and how intervals are made."""
        return (self._leader(self.result), self._which_topics(), self._how(self.result)) if self.result else ()

    def facts(self) -> dict[str, Any]:
        """Give what counts, what the p of the tests is, and the curve; refuse where something could not be read."""
        for error in self.problems.values():  # a program asks for exactly what it wants
            raise error
        curves = self.curves()
        return {
            **(self.result.facts() if self.result else {}),
            "n": self.n,
            "all_topics": len(self.workspace.query_ids),
            "baseline": self.baseline or None,
            "sort": self.sort,
            "p_name": self.p_name,
            "curve": curves and curves.to_dict(),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Give one row per run, charts, and all that was found."""
        if self.result is None:
            return ()
        entries = [measure.entry for measure in self.measures]
        heads = (
            Column("measure", self.names),
            Column("family", [entry.name for entry in entries]),
            Column("aggregate", [entry.aggregate for entry in entries]),
            Column("higher_is_better", [measure.properties.higher_is_better for measure in self.measures]),
        )
        data = data_tables(self.result.measures)
        return (self.board(), *self.figures(), Table("columns", heads, only="data"), *data)

    def board(self) -> Table:
        """Lay out one row per run, in the order that was asked for."""
        runs, result = self.workspace.run_names, self.result
        if result is None:
            return Table("board", ())
        kept = set(result.scores.query_ids)
        missing = [len(kept.intersection(run.missing_topics)) for run in result.scores.runs]
        shares = self._shares()
        low = [share < LOW for share in shares]
        columns = (
            Column("run", runs, TEXT, "Run"),
            *(column for found in result.measures for column in self._columns(found)),
            Column(
                "judged",
                shares,
                _PERCENT,
                SHARE,
                mark=["!" * few for few in low],
                beside=["low" * few for few in low],
                kinds=["bad" * few for few in low],
            ),
            Column("missing", missing, COUNT, only="data"),
        )
        kinds = ["baseline" * (run == self.baseline) for run in runs]
        table = Table("board", columns, f"Runs by {counted(len(self.measures), 'measure')}", kinds=kinds)
        values = table.column(self.sort.removeprefix("-")).values
        return table.take(order_by(values, falling=self.sort.startswith("-")))

    def _columns(self, found: MeasureComparison) -> tuple[Column, ...]:
        """Give the numbers of a measure, and how each is against the baseline."""
        name, runs = found.name, self.workspace.run_names
        pairs = [found.by_runs.get((self.baseline, run)) for run in runs]
        verdicts = [_verdict(found, pair) if pair else "" for pair in pairs]
        said = [_against(pair, verdict) if pair else "" for pair, verdict in zip(pairs, verdicts, strict=True)]
        column = replace(
            found.column(name, runs, self.baseline), kinds=[_KINDS.get(verdict, "") for verdict in verdicts]
        )
        verdict = Column(f"{name} against {self.baseline}", verdicts, TEXT, only="data")
        if not self.asked.beside or not any(pairs):
            return replace(column, beside=said), verdict
        show = RATIO if any(pair and pair.is_ratio for pair in pairs) else CHANGE
        values = [pair and pair.shown_difference for pair in pairs]
        ends = [pair and pair.shown_interval for pair in pairs]
        return column, Column(f"{name} - {self.baseline}", values, show, "difference", ci=ends, beside=said), verdict

    def _shares(self) -> list[float]:
        """Give the share of judged documents of each run; nothing where runs have no ranking."""
        try:
            scores = self.workspace.scores(SHARE, None, self.asked.where, self.baseline)
        except JudgedError:
            return [math.nan] * len(self.workspace.lists)
        return [estimate.value for estimate in scores.estimates(ci="none")]

    @property
    def p_name(self) -> str:
        """What the p of the tests is."""
        pairs = self.result.pairs if self.result else ()
        if any(pair.result.posterior is not None for pair in pairs):
            return "P(higher)"
        return "adjusted p" if any(pair.result.correction not in {"", "none"} for pair in pairs) else "p"

    def _leader(self, result: Comparison) -> str:
        """Say which run is first by the leading measure, and how many differ from the baseline."""
        first, name = self._ranked()[0], str(self.lead)
        if math.isnan(first.value):
            return f"No run has a number for {name}."
        end = {True: "best", False: "best, as lower is better,", None: "highest"}[self.lead.properties.higher_is_better]
        equal = sum(row.value == first.value for row in self._ranked()) - 1
        who = f"{first.run} and {counted(equal, 'other run')} are" if equal else f"{first.run} is"
        said = f"{who} {end} by {name}: {Column(name, [first.value], number(), ci=[first.ci]).cells()[0]}."
        found = result.measure(name)
        if not found.pairs:
            return said
        verdicts = Counter(filter(None, (_verdict(found, pair) for pair in found.pairs)))
        others, rest = counted(len(found.pairs), "other run"), len(found.pairs) - verdicts.total()
        parts = [f"{n:,} significantly {verdict}" for verdict, n in verdicts.items()]
        parts += [f"{rest:,} not shown to differ"] if rest else []
        return f"{said} Of {others}, tested against {self.baseline}: {', '.join(parts)}."

    def _which_topics(self) -> str:
        total = counted(len(self.workspace.query_ids), "topic")
        if not self.asked.where:
            return f"All {total} count."
        return f"{self.n:,} of {total} {'is' if self.n == 1 else 'are'} left: {self.asked.where}."

    def _how(self, found: Comparison) -> str:
        tested = [each.name for each in found.measures if each.pairs]
        if not tested:
            said = found.caption if self.baseline else f"one run is open: {found.caption}"
            return f"{said[:1].upper()}{said[1:]}."
        by = f", by each of {len(tested)} measures" if len(tested) > 1 else f" by {tested[0]}"
        return f"{counted(len(self.workspace.lists) - 1, 'test')} against {self.baseline}{by}: {found.caption}."

    def curves(self) -> Curves | None:
        """Score the best runs at every cutoff; None where no curve was asked for."""
        if not self.series or self.result is None:
            return None
        best = [row.run for row in self._ranked()]
        others = [run for run in best if run != self.baseline]
        chosen = {*self._closely, *others[: LINES - 1]}
        runs = tuple(run for run in best if run in chosen)
        scores = self.workspace.scores(self.series, runs, self.asked.where, self.baseline)
        return self.workspace.remember(("curves", scores), scores.curve)

    def figures(self) -> tuple[Chart, ...]:
        """Draw the leading measure of every run, and one measure by cutoff."""
        if self.result is None:
            return ()
        dots = leaderboard_chart(self.lead, self._ranked(), self._closely)
        charts = [replace(dots, name="dots", table=replace(dots.table, only="people"))] if len(dots.table) > 1 else []
        if curves := self.curves():
            chart, drawn, runs = curves.charts()["curves"], len(curves.run_names), len(self.workspace.lists)
            which = f" {drawn} of {counted(runs, 'run')} are drawn: the baseline, and the best by {self.lead}."
            loud = (*dict.fromkeys((self._ranked()[0].run, *self._closely)),) if drawn > SERIES else ()
            charts.append(replace(chart, name="curve", sentence=chart.sentence + which * (drawn < runs), loud=loud))
        return tuple(charts)

    def drawn(self) -> dict[str, Markup]:
        """Give the charts as elements, by name, made once."""
        key = ("leaderboard figures", self.result, str(self.lead), self.series, self.asked.run)
        return self.workspace.remember(key, lambda: {chart.name: blocks([chart]) for chart in self.figures()})

    @property
    def _closely(self) -> list[str]:
        return [name for name in (self.baseline, self.asked.run) if name in self.workspace.lists]

    def _ranked(self) -> list[Estimate]:
        """Give the runs by the leading measure, best first."""
        found = self.result.measure(str(self.lead)) if self.result else None
        return [found.estimates[at] for at in found.order()] if found else []


def _verdict(found: MeasureComparison, pair: Pair) -> str:
    """Say on which side of the baseline a run is, where that is significant; ``unlike`` where test and mean differ.

    A measure of which neither end is better has ``higher`` and ``lower``, a test that does not speak of means ``ahead``
    and ``behind``.
    """
    if not pair.significant or pair.better is None:
        return "unlike" if pair.significant else ""
    if found.higher_is_better is None:
        return "higher" if pair.result.difference > 0 else "lower"
    words = ("better", "worse") if is_test_of_means(pair.result.test) else ("ahead", "behind")
    return words[pair.better != pair.second]


def _against(pair: Pair, verdict: str) -> str:
    p = f"{'p' if pair.result.posterior is None else 'P'} {probability(pair.decisive)}"
    return f"{verdict} {p}{' (few topics)' * pair.sensitive}".lstrip()


ANY = "NumRet"
"""What every run has a number for."""
MOST = 24
"""Measures of a table."""
CUTOFFS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Of a curve: it looks the same as with all of them."""


def leaderboard(workspace: Workspace, asked: AskedLeaderboard) -> LeaderboardPage:
    """Read what is asked, score and test; nothing is raised, and what could not be read is among the problems."""
    problems: dict[str, JudgedError] = {}

    def tried(field: str, make: Callable[[], Made], otherwise: Made) -> Made:
        try:
            return make()
        except JudgedError as error:
            problems.setdefault(field, error)
            return otherwise

    measures: dict[Measure, str] = {}  # with the level that was asked for, and as they are called without it
    refused: list[str] = []
    typed = list_measures(asked.measures)
    for name in dict.fromkeys((*list_measures(asked.measure), *(typed or BROWSED_MEASURES))):
        scored = tried("measures", partial(_scored, workspace, name, MOST - len(measures), asked.rel), {})
        measures |= scored
        refused += [] if scored else [name]
    chosen = tuple(measures) or (parse(ANY),)
    usual, _ = workspace.usual_pair(chosen[0])
    baseline = asked.baseline or usual
    if workspace.lists:
        baseline = tried("baseline", lambda: workspace.judged(baseline).run.name, usual)
    topics = tried("where", lambda: int(workspace.mask(asked.where, baseline or None).sum()), 0)
    test = default_test(topics)
    how: dict[str, Any] = {
        "test": tried("test", lambda: Choices(test=asked.test or test, baseline=baseline).test, test),
        "correction": tried("correction", lambda: Choices(correction=asked.correction).correction, CORRECTION),
    }
    result: Comparison | None = None
    if workspace.lists and topics:
        if len(workspace.lists) > 1:
            tests = partial(workspace.comparison, chosen, baseline, None, asked.where, **how)
            result = tried("test", tests, None)
        if result is None:  # every number with its interval, where nothing is tested
            scores = workspace.scores(chosen, None, asked.where, baseline)
            result = workspace.remember(
                ("untested", scores), lambda: untested_comparison(scores, Choices(baseline=baseline))
            )
    names = tuple(measures.values()) or tuple(map(str, chosen))
    best_first = str(chosen[0]) if chosen[0].properties.higher_is_better is False else f"-{chosen[0]}"
    return LeaderboardPage(
        workspace=workspace,
        asked=asked.model_copy(
            update={"measure": "", "measures": [] if names == BROWSED_MEASURES else [",".join(names)]}
        ),
        measures=chosen,
        plain_names=names,
        typed=", ".join(refused) if typed else "",
        baseline=baseline if len(workspace.lists) > 1 else "",
        n=topics,
        test=how["test"],
        correction=how["correction"],
        sort=tried("sort", lambda: _sort(asked.sort, chosen), "") or best_first,
        series=tried("curve", lambda: _series(workspace, asked.curve, asked.rel), ()),
        result=result,
        problems=problems,
        notes=_notes(workspace, topics, result) if result else (),
    )


def _scored(workspace: Workspace, name: str, room: int, rel: float | None) -> dict[Measure, str]:
    """Read the name of a measure, or of a series, that can be scored here."""
    measures = {with_rel(measure, rel, written=name): str(measure) for measure in parse_many(name)}
    if len(measures) > room:
        raise MeasureError(f"{name}: a table has at most {MOST} measures. Fix: leave some out")
    if workspace.lists:
        workspace.scores(tuple(measures))
    return measures


def _series(workspace: Workspace, name: str, rel: float | None) -> tuple[Measure, ...]:
    """Give the points of a curve, to the end of the longest ranking."""
    if not name or not workspace.lists:
        return ()
    longest = max(int(np.max(judged.returned, initial=1)) for judged in workspace.lists.values())
    series = at_cutoffs(name, [k for k in CUTOFFS if k <= max(longest, 1)])
    series = tuple(with_rel(measure, rel, written=name) for measure in series)
    workspace.scores(series, workspace.run_names[:1])  # whether they can be scored here
    return series


def _sort(given: str, measures: tuple[Measure, ...]) -> str:
    """Read by what the rows are ordered; nothing, where that is a measure that is not in the table."""
    sign, name = ("-", given[1:]) if given.startswith("-") else ("", given)
    if not name or name in {"run", "judged"}:
        return given
    try:
        measure = parse(name)
    except MeasureError:
        known = ", ".join(["run", "judged", *map(str, measures)])
        raise InputError(f"no column {name!r} to sort by", fix=f"use one of {known}; - before it: falling") from None
    return f"{sign}{measure}" if measure in measures else ""


def _notes(workspace: Workspace, topics: int, result: Comparison) -> tuple[Note, ...]:
    """Say of few topics that they are few, and of many how they are tested, before the notes on runs."""
    notes: list[Note] = []
    if topics < DEFAULT_MIN_TOPICS < len(workspace.query_ids):
        few = f"{topics_text(topics)} are few: a mean of fewer than {DEFAULT_MIN_TOPICS} is not a finding"
        notes.append(Note("few-topics", few))
    if topics > MANY_TOPICS:
        text = f"with more than {MANY_TOPICS:,} topics the default test is Student's t-test"
        notes.append(Note("many-topics", text))
    return (*notes, *workspace.notes_over(topics, result.notes))


COMMON = (
    *("nDCG@5", "nDCG@10", "nDCG@20", "nDCG", "DCG@10", "Q"),
    *("AP", "GMAP", "RR", "RR@10", "Rprec"),
    *("P@1", "P@5", "P@10", "R@10", "R@100", "R@1000", "Success@1", "Success@10"),
    *("RBP(p=0.5)", "RBP(p=0.8)"),
    *("Bpref", "InfAP", "Judged@10"),
    *("NumRelRet", "NumRet", "NumRel"),
)
"""Measures that can be ticked; every other one can be typed."""
CURVES = ("nDCG", "P", "R", "Success", "AP", "RR", "RBP(p=0.8)", "DCG", "Judged")


def families(chosen: Sequence[str]) -> dict[str, list[str]]:
    """Give measures by family: the common ones, and those that are chosen."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys((*COMMON, *chosen)):
        found.setdefault(parse(name).entry.family, []).append(name)
    return found


@cache
def _known() -> tuple[str, ...]:
    """Name every measure as it can be typed; what needs more than a cutoff stands there as it begins."""
    return tuple(
        entry.cutoff.example(name, entry.cutoff_name) if entry.cutoff is not None and entry.cutoff.required else name
        for name, entry in REGISTRY.items()
        if not entry.properties.reads_answers
    )


router = APIRouter(tags=["leaderboard"])


def _shown(_: Workspace, __: AskedLeaderboard, answer: LeaderboardPage) -> dict[str, Any]:
    """Give what can be chosen, by what rows are sorted, and the charts."""
    lower = [str(measure) for measure in answer.measures if measure.properties.higher_is_better is False]
    return {
        "asked": answer.asked,
        "status": HTTPStatus.BAD_REQUEST if answer.problems else HTTPStatus.OK,
        "keys": {name: name for name in ("run", *answer.names, "judged")},
        "rising": ["run", *lower],
        "choices": {
            "families": families(answer.plain_names),
            "names": _known(),
            "tests": all_tests(),
            "corrections": CORRECTIONS,
            "curves": dict.fromkeys(filter(None, (*CURVES, answer.asked.curve))),
        },
        "figures": answer.drawn(),
    }


_WHAT = "Every run by the chosen measures, tested against a baseline"


@answer_page(router, "leaderboard.html", "/leaderboard", "Leaderboard", _WHAT, _shown)
def leaderboard_page(workspace: Opened, asked: Annotated[AskedLeaderboard, Query()]) -> LeaderboardPage:
    """Give the leaderboard: numbers with intervals, tests against the baseline, and a curve where one is asked for."""
    return leaderboard(workspace, asked)
