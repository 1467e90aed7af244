"""Leaderboard as the answer of a page: one row per run, in order, with its results by every measure."""

from __future__ import annotations

import math
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
from judged.interface.pages.filters import blocks, link, probability, shared_choices
from judged.interface.pages.pagination import ScoredQuery, Trimmed, order_by, shades_of
from judged.interface.pages.problems import text_field
from judged.interface.pages.workspace import CurrentWorkspace, Workspace
from judged.results import CHANGE, COUNT, TEXT, Answer, Axis, Column, Headline, Show, Table, counted
from judged.results.blocks import Note
from judged.results.chart_drawings import SERIES
from judged.results.decimals import percent
from judged.scoring.curves import Curves, at_cutoffs
from judged.scoring.default_measures import BROWSED_MEASURES
from judged.scoring.evaluation.inputs import with_rel
from judged.scoring.measures.grammar import list_measures, parse, parse_many
from judged.scoring.measures.registry import REGISTRY
from judged.stats.correction import CORRECTIONS
from judged.stats.inputs import topics_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from markupsafe import Markup

    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.results import Block, Chart, Status
    from judged.scoring.evaluation import Estimate
    from judged.scoring.measures.base import Measure

    Value = TypeVar("Value")


CORRECTION = "holm"

Name: TypeAlias = Annotated[str, Field(max_length=300)]


class LeaderboardQuery(ScoredQuery):
    """Parameters of the leaderboard."""

    measures: list[Name] = text_field(
        "Measures, separated by commas or repeated. Rows are sorted by the first measure.", limit=100, default=[]
    )
    baseline: str = text_field("Baseline run. Default: a run whose name contains 'baseline', or else the best run.")
    measure: Name = Field("", description="Additional measure, shown before the measures in `measures`.")
    run: str = text_field("Run to highlight in the charts. The baseline is also highlighted.")
    sort: Trimmed = text_field(
        "Column by which the runs are sorted: run, judged, or a measure. A minus sign in front of the"
        " name means descending order. Default: the first measure, best run first.",
        limit=300,
    )
    where: Trimmed = text_field("Condition on topic attributes, such as kind == 'law'.", limit=2000)
    test: Trimmed = text_field(
        "Paired test, as in judged compare. Default: randomization, or t for more than 2,000 topics.", limit=40
    )
    correction: Trimmed = text_field(
        "Correction for multiple tests, as in judged compare.", limit=40, default=CORRECTION
    )
    details: Literal["", "difference"] = Field(
        "", description="With `difference`, the page also shows the difference of each score from the baseline."
    )
    curve: Trimmed = text_field("Measure to plot against its cutoff, such as nDCG. Default: no plot.", limit=300)


MIN_JUDGED_SHARE = 0.7
"""A smaller share of judged documents is marked. `evaluate` warns below the same limit."""
MAX_CURVES = 40
"""Maximum number of runs in the curve chart."""
JUDGED_MEASURE = "Judged@10"
_P = Show(probability, "float64")
_PERCENT = Show(lambda share: percent(share, 1), "float64")


@dataclass(frozen=True, eq=False, repr=False)
class LeaderboardPage(Answer):
    """Leaderboard: runs by measures."""

    kind: ClassVar[str] = "leaderboard"

    workspace: Workspace
    query: LeaderboardQuery  # with canonical names of measures
    measures: tuple[Measure, ...]  # that could be parsed and scored
    names_without_level: tuple[str, ...]  # names without the `rel` of the page
    invalid_names: str  # names that could not be parsed or scored, as typed
    baseline: str  # name of a run; empty if no other run is open
    n: int  # number of topics
    test: str
    correction: str
    sort: str  # name of the sort column, with `-` in front if descending
    series: tuple[Measure, ...]  # points of the curve; empty without a curve
    result: Comparison | None  # without tests if one run is open; None without runs or topics
    problems: dict[str, JudgedError]  # errors by field
    notes: tuple[Note, ...] = ()

    @property
    def provenance(self) -> Any:
        """Provenance of the scores."""
        return self.result and self.result.provenance

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names of the measures."""
        return tuple(map(str, self.measures))

    @property
    def lead(self) -> Measure:
        """Measure by which the rows are sorted; else the first one."""
        sort_column = self.sort.removeprefix("-")
        return next((measure for measure in self.measures if str(measure) == sort_column), self.measures[0])

    @property
    def headline(self) -> Headline | None:
        """Whether a single run is best, with its score."""
        return self.result and self.result.headline_of(str(self.lead))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The topics, and the tests and intervals."""
        return (self._topics_sentence(), self._tests_sentence(self.result)) if self.result else ()

    def facts(self) -> dict[str, Any]:
        """Return the facts of the result, the name of p, and the curve. Raise the first error of a field."""
        for error in self.problems.values():  # programs need an error, not a page with defaults
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
        """Return one row per run, the charts, and all results."""
        if self.result is None:
            return ()
        entries = [measure.entry for measure in self.measures]
        measure_columns = (
            Column("measure", self.names),
            Column("family", [entry.name for entry in entries]),
            Column("aggregate", [entry.aggregate for entry in entries]),
            Column("higher_is_better", [measure.properties.higher_is_better for measure in self.measures]),
        )
        data = data_tables(self.result.measures)
        return (self.board(), *self.figures(), Table("columns", measure_columns, only="data"), *data)

    def board(self) -> Table:
        """Return the table with one row per run, in the requested order."""
        runs, result = self.workspace.run_names, self.result
        if result is None:
            return Table("board", ())
        query_ids = set(result.scores.query_ids)
        missing = [len(query_ids.intersection(run.missing_topics)) for run in result.scores.runs]
        shares = self._judged_shares()
        has_few_judged = [share < MIN_JUDGED_SHARE for share in shares]
        marks, details, judged_kinds = ([word * is_low for is_low in has_few_judged] for word in ("!", "low", "bad"))
        columns = (
            Column("run", runs, TEXT, "Run"),
            *(column for result_of_measure in result.measures for column in self._columns(result_of_measure)),
            Column("judged", shares, _PERCENT, JUDGED_MEASURE, mark=marks, details=details, kinds=judged_kinds),
            Column("missing", missing, COUNT, only="data"),
        )
        kinds = ["baseline" * (run == self.baseline) for run in runs]
        table = Table("board", columns, f"Runs by {counted(len(self.measures), 'measure')}", kinds=kinds)
        values = table.column(self.sort.removeprefix("-")).values
        return table.take(order_by(values, descending=self.sort.startswith("-")))

    def _columns(self, result: MeasureComparison) -> Iterator[Column]:
        """Yield the columns of a measure: values, verdicts, p-values, and, if requested, differences."""
        name, runs = result.name, self.workspace.run_names
        pairs = [result.by_runs.get((self.baseline, run)) for run in runs]
        verdicts = [_verdict(result, pair) if pair else "" for pair in pairs]
        column = result.column(name, runs, self.baseline)
        is_lead = name == str(self.lead)
        if is_lead:
            statuses: list[Status] = [result.headline(pair).status if pair else "info" for pair in pairs]
            yield replace(column, axis=Axis.over(column.values, column.ci or ()), statuses=statuses, mark=())
            if any(pairs):
                words = [_word(result, pair) if pair else "baseline" for pair in pairs]
                title, choices = f"Against {self.baseline}", shared_choices("/leaderboard", self.query)
                pages = [
                    link("/compare", choices, baseline=pair.first, run=pair.second, measure=name) if pair else ""
                    for pair in pairs
                ]
                yield Column("status", words, TEXT, title, only="people", statuses=statuses, links=pages)
        else:
            shades = shades_of(column.values, lower_is_better=result.lower_is_better)
            shown_ci = column.ci if self.query.details else None  # by default, a cell has one number
            yield replace(column, kinds=shades, ci=shown_ci, only="people")
            yield replace(column, only="data")
        if not any(pairs):
            return
        yield Column(f"{name} against {self.baseline}", verdicts, TEXT, only="data")
        p_values = [pair.decisive if pair else math.nan for pair in pairs]
        yield Column(f"{name} {self.p_name}", p_values, _P, self.p_name, only="" if is_lead else "data")
        if self.query.details:
            text_format = RATIO if any(pair and pair.is_ratio for pair in pairs) else CHANGE
            values = [pair and pair.shown_difference for pair in pairs]
            intervals = [pair and pair.shown_interval for pair in pairs]
            yield Column(f"{name} - {self.baseline}", values, text_format, "difference", ci=intervals)

    def _judged_shares(self) -> list[float]:
        """Return the share of judged documents of each run; NaN if runs have no ranking."""
        try:
            scores = self.workspace.scores(JUDGED_MEASURE, None, self.query.where, self.baseline)
        except JudgedError:
            return [math.nan] * len(self.workspace.lists)
        return [estimate.value for estimate in scores.estimates(ci="none")]

    @property
    def p_name(self) -> str:
        """Name of the p of the tests."""
        return self.result.p_name if self.result else "p"

    def _topics_sentence(self) -> str:
        total = counted(len(self.workspace.query_ids), "topic")
        if not self.query.where:
            return f"Means are over all {total}."
        return f"Means are over the {self.n:,} of {total} that satisfy the condition {self.query.where}."

    def _tests_sentence(self, comparison: Comparison) -> str:
        tested_names = [result.name for result in comparison.measures if result.pairs]
        if not tested_names:
            caption = (
                comparison.caption if self.baseline else f"no tests, because only one run is open: {comparison.caption}"
            )
            return f"{caption[:1].upper()}{caption[1:]}."
        n, tests = len(tested_names), counted(len(self.workspace.lists) - 1, "test")
        by_measures = f", for each of {n} measures" if n > 1 else f" by {tested_names[0]}"
        return f"{tests} against {self.baseline}{by_measures}: {comparison.caption}."

    def curves(self) -> Curves | None:
        """Score the best runs at every cutoff; None if no curve is requested."""
        if not self.series or self.result is None:
            return None
        ranked_names = [estimate.run for estimate in self._ranked_estimates()]
        others = [run for run in ranked_names if run != self.baseline]
        selected_names = {*self._highlighted_runs, *others[: MAX_CURVES - 1]}
        runs = tuple(run for run in ranked_names if run in selected_names)
        scores = self.workspace.scores(self.series, runs, self.query.where, self.baseline)
        return self.workspace.cached(("curves", scores), scores.curve)

    def figures(self) -> tuple[Chart, ...]:
        """Return the chart by cutoff, if requested."""
        if (curves := self.curves()) is None:
            return ()
        chart, n_in_chart, runs = curves.charts()["curves"], len(curves.run_names), len(self.workspace.lists)
        shown = "the baseline" if len(self._highlighted_runs) < 2 else "the highlighted runs"
        selection = (
            f" The chart shows {n_in_chart} of {counted(runs, 'run')}: {shown} and the best other runs by {self.lead}."
        )
        names = dict.fromkeys((self._ranked_estimates()[0].run, *self._highlighted_runs))
        highlighted = tuple(names) if n_in_chart > SERIES else ()
        sentence = chart.sentence + selection * (n_in_chart < runs)
        return (replace(chart, name="curve", sentence=sentence, highlighted=highlighted),)

    def rendered_figures(self) -> Markup | str:
        """Return the rendered chart, cached; empty without a chart."""
        key = ("leaderboard figures", self.result, str(self.lead), self.series, self.query.run)
        return self.workspace.cached(key, lambda: blocks(self.figures())) if self.series else ""

    @property
    def _highlighted_runs(self) -> list[str]:
        return [name for name in (self.baseline, self.query.run) if name in self.workspace.lists]

    def _ranked_estimates(self) -> list[Estimate]:
        """Return the estimates of the leading measure, best run first."""
        result = self.result.measure(str(self.lead)) if self.result else None
        return [result.estimates[i] for i in result.order()] if result else []


def _verdict(result: MeasureComparison, pair: Pair) -> str:
    """Return the side of the baseline on which a run significantly is, else an empty string.

    ``inconsistent``: test and mean disagree. ``higher``, ``lower``: neither direction is better. ``ahead``, ``behind``:
    the test is not one of means.
    """
    if not pair.significant or pair.better is None:
        return "inconsistent" if pair.significant else ""
    if result.higher_is_better is None:
        return "higher" if pair.result.difference > 0 else "lower"
    words = ("better", "worse") if is_test_of_means(pair.result.test) else ("ahead", "behind")
    return words[pair.better != pair.second]


def _word(result: MeasureComparison, pair: Pair) -> str:
    return result.headline(pair).word + " (few topics)" * pair.sensitive


FALLBACK_MEASURE = "NumRet"
"""Measure that can be computed for every run."""
MAX_MEASURES = 24
"""Maximum number of measures in the table."""
CURVE_CUTOFFS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Cutoffs of a curve; more would not change how it looks."""


def leaderboard(workspace: Workspace, query: LeaderboardQuery) -> LeaderboardPage:
    """Parse the query, score, and test. Errors are not raised but stored by field in `problems`."""
    problems: dict[str, JudgedError] = {}

    def or_default(field: str, compute: Callable[[], Value], default: Value) -> Value:
        try:
            return compute()
        except JudgedError as error:
            problems.setdefault(field, error)
            return default

    measures: dict[Measure, str] = {}  # with `rel`, and their names without it
    failed_names: list[str] = []
    typed_names = list_measures(query.measures)
    for name in dict.fromkeys((*list_measures(query.measure), *(typed_names or BROWSED_MEASURES))):
        parse_name = partial(_parse_scorable, workspace, name, MAX_MEASURES - len(measures), query.rel)
        parsed = or_default("measures", parse_name, {})
        measures |= parsed
        failed_names += [] if parsed else [name]
    scored_measures = tuple(measures) or (parse(FALLBACK_MEASURE),)
    default_baseline, _ = workspace.default_pair(scored_measures[0])
    baseline = query.baseline or default_baseline
    if workspace.lists:
        baseline = or_default("baseline", lambda: workspace.judged(baseline).run.name, default_baseline)
    n_topics = or_default("where", lambda: int(workspace.mask(query.where, baseline or None).sum()), 0)
    test = default_test(n_topics)
    test_options: dict[str, Any] = {
        "test": or_default("test", lambda: Choices(test=query.test or test, baseline=baseline).test, test),
        "correction": or_default("correction", lambda: Choices(correction=query.correction).correction, CORRECTION),
    }
    result: Comparison | None = None
    if workspace.lists and n_topics:
        if len(workspace.lists) > 1:
            compare_runs = partial(workspace.comparison, scored_measures, baseline, None, query.where, **test_options)
            result = or_default("test", compare_runs, None)
        if result is None:  # values with intervals, without tests
            scores = workspace.scores(scored_measures, None, query.where, baseline)
            result = workspace.cached(
                ("untested", scores), lambda: untested_comparison(scores, Choices(baseline=baseline))
            )
    names = tuple(measures.values()) or tuple(map(str, scored_measures))
    lead = scored_measures[0]
    best_first_sort = str(lead) if lead.properties.higher_is_better is False else f"-{lead}"
    return LeaderboardPage(
        workspace=workspace,
        query=query.model_copy(
            update={"measure": "", "measures": [] if names == BROWSED_MEASURES else [",".join(names)]}
        ),
        measures=scored_measures,
        names_without_level=names,
        invalid_names=", ".join(failed_names) if typed_names else "",
        baseline=baseline if len(workspace.lists) > 1 else "",
        n=n_topics,
        test=test_options["test"],
        correction=test_options["correction"],
        sort=or_default("sort", lambda: _parse_sort(query.sort, scored_measures), "") or best_first_sort,
        series=or_default("curve", lambda: _series(workspace, query.curve, query.rel), ()),
        result=result,
        problems=problems,
        notes=_notes(workspace, n_topics, result) if result else (),
    )


def _parse_scorable(workspace: Workspace, name: str, max_measures: int, rel: float | None) -> dict[Measure, str]:
    """Parse the name of a measure or series, and check that it can be scored here."""
    measures = {with_rel(measure, rel, written=name): str(measure) for measure in parse_many(name)}
    if len(measures) > max_measures:
        raise MeasureError(f"{name}: a table can have at most {MAX_MEASURES} measures. Fix: remove some measures")
    if workspace.lists:
        workspace.scores(tuple(measures))
    return measures


def _series(workspace: Workspace, name: str, rel: float | None) -> tuple[Measure, ...]:
    """Return the points of a curve, up to the length of the longest ranking."""
    if not name or not workspace.lists:
        return ()
    longest = max(int(np.max(judged.returned, initial=1)) for judged in workspace.lists.values())
    series = at_cutoffs(name, [k for k in CURVE_CUTOFFS if k <= max(longest, 1)])
    series = tuple(with_rel(measure, rel, written=name) for measure in series)
    workspace.scores(series, workspace.run_names[:1])  # raises an error if they cannot be scored
    return series


def _parse_sort(sort: str, measures: tuple[Measure, ...]) -> str:
    """Parse the sort column; empty if it is a measure that is not in the table."""
    sign, name = ("-", sort[1:]) if sort.startswith("-") else ("", sort)
    if not name or name in {"run", "judged"}:
        return sort
    try:
        measure = parse(name)
    except MeasureError:
        names = ", ".join(["run", "judged", *map(str, measures)])
        fix = f"sort by one of {names}; for descending order, put a minus sign in front of the name"
        raise InputError(f"there is no column {name!r}", fix=fix) from None
    return f"{sign}{measure}" if measure in measures else ""


def _notes(workspace: Workspace, topics: int, result: Comparison) -> tuple[Note, ...]:
    """Return notes on few and on many topics, before the notes on runs."""
    notes: list[Note] = []
    if topics < DEFAULT_MIN_TOPICS < len(workspace.query_ids):
        text = f"means over {topics_text(topics)} are unreliable: use at least {DEFAULT_MIN_TOPICS} topics"
        notes.append(Note("few-topics", text))
    if topics > MANY_TOPICS:
        text = f"with more than {MANY_TOPICS:,} topics the default test is Student's t-test"
        notes.append(Note("many-topics", text))
    return (*notes, *workspace.notes_over(topics, result.notes))


COMMON_MEASURES = (
    *("nDCG@5", "nDCG@10", "nDCG@20", "nDCG", "DCG@10", "Q"),
    *("AP", "GMAP", "RR", "RR@10", "Rprec"),
    *("P@1", "P@5", "P@10", "R@10", "R@100", "R@1000", "Success@1", "Success@10"),
    *("RBP(p=0.5)", "RBP(p=0.8)"),
    *("Bpref", "InfAP", "Judged@10"),
    *("NumRelRet", "NumRet", "NumRel"),
)
"""Measures with a check box; all others can be typed."""
CURVE_MEASURES = ("nDCG", "P", "R", "Success", "AP", "RR", "RBP(p=0.8)", "DCG", "Judged")


def families(selected: Sequence[str]) -> dict[str, list[str]]:
    """Return measures by family: the common ones, and the selected ones."""
    names_by_family: dict[str, list[str]] = {}
    for name in dict.fromkeys((*COMMON_MEASURES, *selected)):
        names_by_family.setdefault(parse(name).entry.family, []).append(name)
    return names_by_family


@cache
def _typed_names() -> tuple[str, ...]:
    """Return every measure as it can be typed, with an example cutoff if it requires one."""
    return tuple(
        entry.cutoff.example(name, entry.cutoff_name) if entry.cutoff is not None and entry.cutoff.required else name
        for name, entry in REGISTRY.items()
        if entry.properties.reads == "rankings"
    )


router = APIRouter(tags=["leaderboard"])


def _page_values(_: Workspace, __: LeaderboardQuery, answer: LeaderboardPage) -> dict[str, Any]:
    """Return the options of the form, the sort keys, and the charts."""
    lower = [str(measure) for measure in answer.measures if measure.properties.higher_is_better is False]
    return {
        "query": answer.query,
        "status": HTTPStatus.BAD_REQUEST if answer.problems else HTTPStatus.OK,
        "keys": {name: name for name in ("run", *answer.names, "judged")},
        "rising": ["run", *lower],
        "choices": {
            "families": families(answer.names_without_level),
            "names": _typed_names(),
            "tests": all_tests(),
            "corrections": CORRECTIONS,
            "curves": dict.fromkeys(filter(None, (*CURVE_MEASURES, answer.query.curve))),
        },
        "figures": answer.rendered_figures(),
    }


_SUMMARY = "Scores of all runs, with tests against a baseline"


@answer_page(router, "leaderboard.html", "/leaderboard", "Leaderboard", _SUMMARY, _page_values)
def leaderboard_page(workspace: CurrentWorkspace, query: Annotated[LeaderboardQuery, Query()]) -> LeaderboardPage:
    """Return the leaderboard: values with intervals, tests against the baseline, and a curve if requested."""
    return leaderboard(workspace, query)
