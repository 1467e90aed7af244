"""Results of `compare_slices`: a row per slice, and tests of variation between slices."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.pair import (
    DIFFERENCE,
    RATIO,
    SENSITIVE,
    SIGNIFICANT,
    correction_name,
    describe_detectable,
    describe_intervals,
    describe_test,
    pair_columns,
    topics_table,
    verdict_columns,
)
from judged.comparison.slicing.class_measures import NO_AVERAGE
from judged.comparison.slicing.conclusions import conclusions
from judged.comparison.slicing.parts import ALL, FEW, measure_name
from judged.comparison.slicing.scores import describe_small_slices, rest_columns
from judged.errors import InputError
from judged.results import Answer, Axis, Chart, Column, Headline, ReferenceLine, Sentences, Table, counted
from judged.results.spelling import use_one_of
from judged.results.table import COUNT, NUMBER, P_VALUE, TEXT, YES_NO, columns_of
from judged.stats.classical import HALL

if TYPE_CHECKING:
    from judged.comparison import Choices, Comparison, Pair
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results import Block, Status
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance
    from judged.stats.slice_differences import AgainstRest, Heterogeneity

_MAX_TITLE_LENGTH = 26  # characters; the width of a column of differences with intervals


@dataclass(frozen=True)
class SlicePair:
    """Comparison of two systems on the topics of a slice: second minus first."""

    slice: str
    measure: str
    first: str
    second: str
    n: int  # topics with a score for both systems
    share: float  # share of all topics that are in the slice
    difference: float  # of means, or ratio of geometric means; NaN without topics
    min_topics: int  # minimum number of topics for a test
    small: bool  # whether the slice has fewer than `min_topics`
    pair: Pair | None  # test, corrected within the family; None for a small slice
    # difference on the slice versus difference on the other topics, not corrected; None for a small slice
    contrast: AgainstRest | None

    @property
    def better(self) -> str | None:
        """System that is significantly better on the slice, or None."""
        return self.pair and self.pair.better

    @property
    def interval(self) -> tuple[float, float] | None:
        """Confidence interval of the difference; None without a test."""
        return self.pair and self.pair.shown_interval


@dataclass(frozen=True)
class BetweenSlices:
    """Test of whether the difference of two systems varies between slices."""

    measure: str
    first: str
    second: str
    slices: tuple[str, ...]  # tested slices, in the order of `result.groups`
    result: Heterogeneity
    adjusted: float  # p-value, corrected over pairs and measures of the call (Holm)
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether the difference varies: `adjusted` is at most alpha."""
        return self.adjusted <= self.alpha * (1 + 1e-12)


@dataclass(frozen=True, eq=False, repr=False)
class SliceComparison(Answer):
    """Result of `compare_slices`: systems compared on each slice, and variation of their difference between slices.

    Attributes
    ----------
    overall : Comparison
        Comparison over all topics, corrected on its own, as returned by `compare`.
    slicing : Slicing
        Slices of the same topics.
    rows : tuple of SlicePair
        By measure, pair, and slice; small slices last.
    between : tuple of BetweenSlices
        One per measure and pair. Empty if slices overlap, or fewer than two can be tested.
    families : dict
        For each measure, the number of comparisons that its p-values are corrected for.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> from judged.comparison.slicing import compare_slices
    >>> ids = [f"q{i}" for i in range(30)]
    >>> scores = evaluate({query: {"d": 1} for query in ids}, {
    ...     "old": {query: ["x", "d"] for query in ids},
    ...     "new": {query: ["d"] if i < 10 else ["x", "d"] for i, query in enumerate(ids)}}, "RR")
    >>> kinds = {query: {"kind": "law" if i < 10 else "news"} for i, query in enumerate(ids)}
    >>> result = compare_slices(scores, slice_topics(kinds, "kind"))
    >>> result.row("kind=law").better, result.row("kind=news").better
    ('new', None)
    >>> result.row("kind=law").pair.result.p, result.row("kind=law").pair.result.adjusted
    (0.001953125, 0.00390625)
    """

    kind: ClassVar[str] = "slice-comparison"
    main: ClassVar[str] = "results"

    overall: Comparison
    slicing: Slicing
    rows: tuple[SlicePair, ...]
    between: tuple[BetweenSlices, ...]
    families: dict[str, int]
    notes: tuple[Note, ...] = ()

    @property
    def choices(self) -> Choices:
        """Test, correction, alpha, seed, and other options; `family` is ``all`` or ``measure``."""
        return self.overall.choices

    @property
    def provenance(self) -> Provenance:
        """Provenance of the scores."""
        return self.overall.provenance

    @property
    def headline(self) -> Headline | None:
        """The slice of the first measure and pair on which the second system loses most, else gains most."""
        result = self.overall.measure(self.measures[0])
        rows = [(row, result.headline(row.pair)) for row in self.rows_of() if row.pair is not None]
        if not rows:
            return Headline("unknown", "not tested", "No slice has enough topics to be tested.")
        order = ("worse", "better", "info", "same", "unknown")
        row, headline = min(
            rows, key=lambda row: (order.index(row[1].status), -abs(row[0].difference - (row[1].reference or 0.0)))
        )
        sentence = f"{row.slice}: {headline.sentence}"
        if headline.status == "same":
            sentence = (
                f"No significant difference on any of {counted(len(rows), 'tested slice')}; {row.slice} differs most."
            )
        return replace(headline, sentence=sentence, label=f"{headline.label}, {row.slice}")

    @property
    def title(self) -> str:
        """Names of the compared systems."""
        return f"{self._second_names()} against {self.pairs[0][0]} by slice"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Compared systems: first and second."""
        return tuple(dict.fromkeys((row.first, row.second) for row in self.rows))

    @property
    def measures(self) -> tuple[str, ...]:
        """Compared measures."""
        return tuple(dict.fromkeys(row.measure for row in self.rows))

    @property
    def _has_all_measures(self) -> bool:
        """Whether a table has all measures: each class has its own, and no difference is a ratio."""
        return bool(self.slicing.class_measures) and not any(map(self._is_ratio, self.measures))

    def with_overall(self, comparison: Comparison) -> SliceComparison:
        """Return the result with the tests of a comparison of the same topics, which may correct for more runs."""
        if comparison.scores.query_ids != self.overall.scores.query_ids:  # selected by outcomes of different runs
            return self
        measures = tuple(comparison.measure(measure.name) for measure in self.overall.measures)
        return replace(self, overall=replace(comparison, measures=measures, choices=self.choices))

    def rows_of(self, measure: str | None = None, second: str | None = None) -> tuple[SlicePair, ...]:
        """Return the slices of one measure and pair, by default the first of each; with class measures, all slices.

        Raises
        ------
        InputError
            If the measure or pair was not compared.
        """
        is_any = measure is None and self._has_all_measures
        name, system = measure_name(measure, self.measures), second or self.pairs[0][1]
        rows = tuple(row for row in self.rows if (is_any or row.measure == name) and row.second == system)
        rows = tuple(sorted(rows, key=lambda row: row.small))
        if not rows:
            names = ", ".join(second for _, second in self.pairs)
            raise InputError(f"{system!r} was not compared", fix=f"use one of {names}")
        return rows

    def row(self, name: str, measure: str | None = None, second: str | None = None) -> SlicePair:
        """Return the row of one slice.

        Raises
        ------
        InputError
            If there is no such slice, or the measure or pair was not compared.
        """
        rows = {row.slice: row for row in self.rows_of(measure, second)}
        if name not in rows:
            raise InputError(f"no slice {name!r}", fix=use_one_of(rows))
        return rows[name]

    def heterogeneity(self, measure: str | None = None, second: str | None = None) -> BetweenSlices | None:
        """Return the test of variation between slices of one measure and pair; None if not tested."""
        row = self.rows_of(measure, second)[0]
        tests = (test for test in self.between if (test.measure, test.second) == (row.measure, row.second))
        return next(tests, None)

    def with_all(self, measure: str | None = None, second: str | None = None) -> tuple[SlicePair, ...]:
        """Return the row of all topics, and those of the slices, of one pair; with class measures, only the latter."""
        rows = self.rows_of(measure, second)
        if self.slicing.class_measures:
            return rows
        name, first, second = rows[0].measure, rows[0].first, rows[0].second
        pair = self.overall.pair(first, second, name)
        difference, n = pair.shown_difference, pair.result.n
        return (SlicePair(ALL, name, first, second, n, 1.0, difference, 1, False, pair, None), *rows)

    def overview(self, measure: str | None = None, *, second: str | None = None) -> Table:
        """Return a table with a row per slice: difference, interval, p, topics won, and detectable difference.

        Raises
        ------
        InputError
            If the measure or pair was not compared.
        """
        rows = self.with_all(measure, second)
        name, first, other = rows[0].measure, rows[0].first, rows[0].second
        ratio = self._is_ratio(name)
        uncorrected = self.choices.correction == "none" or max(self.families[row.measure] for row in rows) < 2
        subject, measures = f"{name}: ", list[Column]()
        if measure is None and self._has_all_measures:
            subject, measures = "", [Column("measure", [row.measure for row in rows], TEXT)]
        p_name = "P(higher)" if self.choices.test == "bayes" else "p" if uncorrected else "adjusted p"
        differences, title = [row.difference for row in rows], difference_title(other, first, ratio=ratio)
        return Table(
            f"{subject}{other}",
            (
                Column("slice", [row.slice + f" {FEW}" * row.small for row in rows], TEXT),
                *measures,
                Column("n", [row.n for row in rows], COUNT, "topics"),
                *verdict_columns([row.pair for row in rows], differences, title, p_name),
            ),
            title=f"{subject}{other} {'over' if ratio else 'minus'} {first}",
            labels=1 + len(measures),
            only="people",
        )

    def by_measure(self, measure: str) -> Table:
        """Return a row per slice: the test of the first pair with its drawn interval, and all other differences."""
        result, (first, second) = self.overall.measure(measure), self.pairs[0]
        rows, ratio = self.with_all(measure), self._is_ratio(measure)
        headlines = [row.pair and result.headline(row.pair) for row in rows]
        statuses: list[Status] = [headline.status if headline else "unknown" for headline in headlines]
        words = [headline.word if headline else "too few topics" for headline in headlines]
        differences, intervals = [row.difference for row in rows], [row.interval for row in rows]
        axis = Axis.over(differences, intervals, "CI", 1.0 if ratio else 0.0)
        show, title = RATIO if ratio else DIFFERENCE, difference_title(second, first, ratio=ratio)
        others = [(other, self.with_all(measure, other)) for _, other in self.pairs[1:]]
        return Table(
            f"{measure} against {first}",
            (
                Column("slice", [row.slice for row in rows], TEXT, "Slice"),
                *columns_of(rows, ("n", COUNT, "topics")),
                Column("difference", differences, show, title, intervals, axis=axis, statuses=statuses),
                Column("result", words, TEXT, "Result", statuses=statuses),
                Column("p", [row.pair.format_p() if row.pair else "-" for row in rows], TEXT),
                *(
                    Column(
                        other,
                        [row.difference for row in tests],
                        show,
                        kinds=["" if row.better is None else "good" if row.better == other else "bad" for row in tests],
                    )
                    for other, tests in others
                ),
            ),
            f"{measure} against {first}",
            f"Other runs: differences from {first}; significant ones are colored" if others else "",
        )

    def blocks(self) -> tuple[Block, ...]:
        """Return a table per measure and pair, the sentences, the data tables, and a chart per measure."""
        measures = (None,) if self._has_all_measures else self.measures
        keys = [(measure, second) for measure in measures for _, second in self.pairs]
        tables = [self.overview(measure, second=second) for measure, second in keys]
        tables[-1] = replace(tables[-1], note=self.caption)
        rows = [row for key in keys for row in self.with_all(*key)]
        pairs, between = [row.pair for row in rows], self.between
        results = Table(
            "results",
            (
                *columns_of(rows, "measure", "first", "second", "slice", ("n", COUNT), "share", "min_topics", "small"),
                Column("difference", [row.difference for row in rows], DIFFERENCE, ci=[row.interval for row in rows]),
                Column("p", [pair and pair.result.p for pair in pairs], P_VALUE),
                Column("adjusted", [pair and pair.result.decisive_p for pair in pairs], P_VALUE),
                Column("significant", [pair and pair.significant for pair in pairs], YES_NO),
                *columns_of(rows, "better"),
                Column("sensitive", [pair and pair.sensitive for pair in pairs], YES_NO),
                *(
                    Column(name, [pair and getattr(pair.wins, name) for pair in pairs], COUNT)
                    for name in ("wins", "ties", "losses")
                ),
                Column("detectable", [pair and pair.detectable for pair in pairs], NUMBER),
                *rest_columns([row.contrast for row in rows]),
            ),
            only="data",
        )
        between_table = Table(
            "between",
            (
                *columns_of(between, "measure", "first", "second", "slices"),
                *columns_of([test.result for test in between], "n", "means", "statistic", "p"),
                *columns_of(between, "adjusted", "significant"),
                *columns_of([test.result for test in between], "between", "resamples", "note"),
            ),
            only="data",
        )
        charts = map(self._chart, self.measures)
        tests = [(row.slice, row.pair) for row in rows if row.pair]
        names, tested = Column("slice", [name for name, _ in tests], TEXT), [pair for _, pair in tests]
        pair_table = Table("pairs", (names, *pair_columns(tested)), only="data")
        slices = Column("slice", [name for name, pair in tests for _ in (*pair.gains, *pair.losses)], TEXT)
        topics = topics_table(tested)
        topics = replace(topics, columns=(slices, *topics.columns))
        data = (results, pair_table, topics, between_table, self.slicing.table())
        return (*tables, Sentences(self.sentences), *data, *charts)

    def facts(self) -> dict[str, Any]:
        """Return the options, the caption, whether slices overlap, and the family sizes."""
        choices = asdict(self.choices)
        del choices["min_difference"]  # unused: tests on slices do not count wins by a minimum difference
        facts = {"caption": self.caption, "overlap": not self.slicing.disjoint, "families": self.families}
        return {"choices": choices, **facts}

    def _second_names(self) -> str:
        names = [second for _, second in self.pairs]
        return ", ".join([*names[:3], *["..."] * (len(names) > 3)])

    def _is_ratio(self, measure: str) -> bool:
        return any(pair.is_ratio for pair in self.overall.measure(measure).pairs)

    def _chart(self, measure: str) -> Chart:
        rows = [row for _, second in self.pairs for row in self.with_all(measure, second)]
        ratio, first = self._is_ratio(measure), self.pairs[0][0]
        noun = "ratio" if ratio else "difference"
        points = Table(
            "points",
            (
                Column("slice", [f"{row.slice} ({row.n})" for row in rows], TEXT),
                Column("run", [row.second for row in rows], TEXT),
                Column(
                    "value",
                    [row.difference for row in rows],
                    RATIO if ratio else DIFFERENCE,
                    f"{noun} in {measure}",
                    ci=[row.interval for row in rows],
                ),
                Column("open", [not (row.pair and row.pair.significant) for row in rows], only="data"),
            ),
        )
        return Chart(
            name=measure,
            title=f"{measure}: {self._second_names()} {'/' if ratio else '-'} {first}",
            subtitle="filled: significant after correction; hollow: not significant",
            table=points,
            sentence=(
                f"Each dot shows the {noun} in {measure} on one slice, relative to {first}, with its CI. Filled dots"
                f" are significant."
            ),
            y="slice",
            color="run",
            hollow="open",
            lines=(ReferenceLine("x", 1.0 if ratio else 0.0),),
        )

    @property
    def caption(self) -> str:
        """Caption: test, correction, alpha, marks, and intervals."""
        choices, pairs = self.choices, [row.pair for row in self.rows if row.pair is not None]
        if not pairs:
            return "no slice was tested, because all slices have too few topics"
        sizes = sorted(set(self.families.values()))
        if choices.test == "bayes":
            correction = "probabilities are not corrected for the number of slices"
        elif choices.correction == "none" or sizes[-1] < 2:
            correction = "p not corrected for the number of slices"
        else:
            count = " to ".join(map(str, sizes[:1] + sizes[-1:] * (len(sizes) > 1)))
            correction = f"p corrected by {correction_name(choices.correction)} for {count} comparisons"
            if len(self.measures) > 1:
                correction += " over all measures" if choices.family == "all" else " within each measure"
        all_pairs = (*pairs, *self.overall.pairs)
        resampled = [pair for pair in all_pairs if pair.result.resamples and not pair.result.exact]
        # small slices use all permutations instead of resamples
        some_exact = resampled and any(pair.result.exact for pair in all_pairs)
        small_note = f"{FEW}: too few topics, not tested"
        parts = (
            describe_test(choices, resampled or all_pairs)
            + ", or exact on slices with fewer permutations than resamples" * bool(some_exact)
            + HALL * any(pair.result.test in {"randomization", "t", "ratio"} for pair in pairs),
            correction,
            f"{ALL}: the comparison without slices, with its own correction" * (not self.slicing.class_measures),
            f"alpha = {choices.alpha:g}",
            f"{SIGNIFICANT} significant"
            + f" ({SENSITIVE} if sensitive to a few topics)" * any(pair.sensitive for pair in all_pairs),
            describe_intervals(pairs, choices, sizes[-1]),
            describe_detectable(pairs),
            small_note * any(row.small for row in self.rows),
        )
        return "; ".join(filter(None, parts))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Conclusions for each measure and pair."""
        small = (*[NO_AVERAGE] * bool(self.slicing.class_measures), *describe_small_slices(self.slicing))
        if not any(row.pair for row in self.rows):
            return ("No conclusion about single slices is possible, because all slices have too few topics.", *small)
        return (*conclusions(self), *small)


def difference_title(second: str, first: str, *, ratio: bool = False) -> str:
    """Return the title of a column of differences: the subtraction, or a noun if the names are too long.

    >>> difference_title("new", "old"), difference_title("a run with a long name", "another run")
    ('new - old', 'difference')
    >>> difference_title("a", "b", ratio=True)
    'a / b'
    """
    name = f"{second} {'/' if ratio else '-'} {first}"
    return name if len(name) <= _MAX_TITLE_LENGTH else "ratio" if ratio else "difference"
