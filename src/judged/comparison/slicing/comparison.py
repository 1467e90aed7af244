"""Systems compared slice by slice, as an answer: a row per slice, and whether the difference varies between slices."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.pair import (
    DIFFERENCE,
    RATIO,
    SENSITIVE,
    SIGNIFICANT,
    TIMES,
    detectable,
    intervals,
    name_of_correction,
    of_means,
    pair_columns,
    shown,
    tested,
    topics_table,
    verdict_columns,
)
from judged.comparison.slicing.parts import ALL, FEW, measure_named
from judged.comparison.slicing.scores import MOST, rest_columns, too_few
from judged.errors import InputError
from judged.results import Answer, Chart, Column, Line, Sentences, Table, counted, listed
from judged.results.decimals import decimal, p_text
from judged.results.table import COUNT, NUMBER, P_VALUE, TEXT, YES_NO, columns_of
from judged.stats.classical import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison import Choices, Comparison, Pair
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance
    from judged.stats.slice_differences import AgainstRest, Heterogeneity

_HEAD = 26  # characters: a column of differences with their intervals is as wide
_PAIRS = 2  # of more, what is not shown is told of all together


@dataclass(frozen=True)
class SlicePair:
    """Two systems over the topics of a slice: the second minus the first."""

    slice: str
    measure: str
    first: str
    second: str
    n: int  # topics that have a score for both
    share: float  # of all topics that are in the slice
    difference: float  # of the means; the ratio of geometric means, for a measure that is one. NaN without a topic.
    min_topics: int  # with fewer topics nothing is tested
    small: bool  # whether it has fewer
    pair: Pair | None  # the test, with its p-value corrected for all comparisons of the family; None for a small slice
    # the difference over the slice against that over the other topics; None for a small slice. Not corrected.
    rest: AgainstRest | None

    @property
    def better(self) -> str | None:
        """The system that is significantly better on the slice; None where neither is."""
        return self.pair and self.pair.better

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the difference; None where nothing is tested."""
        return self.pair and self.pair.shown_interval


@dataclass(frozen=True)
class BetweenSlices:
    """Whether the difference of two systems varies between slices, or could be the same in all."""

    measure: str
    first: str
    second: str
    slices: tuple[str, ...]  # those that were tested, in the order of `found.groups`
    result: Heterogeneity
    adjusted: float  # its p-value, corrected for the pairs and measures of the call (Holm)
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether the difference varies: `adjusted` is at most alpha."""
        return self.adjusted <= self.alpha * (1 + 1e-12)


@dataclass(frozen=True, eq=False, repr=False)
class SliceComparison(Answer):
    """What `compare_slices` returns: two systems slice by slice, and whether their difference varies between slices.

    Attributes
    ----------
    overall : Comparison
        Over all topics, corrected by itself: what `compare` returns.
    slicing : Slicing
        Of the same topics.
    rows : tuple of SlicePair
        By measure, pair and slice; small slices last.
    between : tuple of BetweenSlices
        One a measure and pair. Empty where slices overlap, or fewer than two can be tested.
    families : dict
        For each measure, how many comparisons its p-values are corrected for.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import evaluate, slice_topics
    >>> from judged.comparison.slicing import compare_slices
    >>> ids = [f"q{at}" for at in range(30)]
    >>> scores = evaluate({query: {"d": 1} for query in ids}, {
    ...     "old": {query: ["x", "d"] for query in ids},
    ...     "new": {query: ["d"] if at < 10 else ["x", "d"] for at, query in enumerate(ids)}}, "RR")
    >>> kinds = {query: {"kind": "law" if at < 10 else "news"} for at, query in enumerate(ids)}
    >>> found = compare_slices(scores, slice_topics(kinds, "kind"))
    >>> found.row("kind=law").better, found.row("kind=news").better
    ('new', None)
    >>> found.row("kind=law").pair.result.p, found.row("kind=law").pair.result.adjusted
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
        """Test, correction, alpha, seed and the other options; its family is ``all``, or ``measure``."""
        return self.overall.choices

    @property
    def provenance(self) -> Provenance:
        """What the scores rest on."""
        return self.overall.provenance

    @property
    def title(self) -> str:
        """Which systems are compared by slice."""
        return f"{self._others()} against {self.pairs[0][0]} by slice"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The systems that were compared: first and second."""
        return tuple(dict.fromkeys((row.first, row.second) for row in self.rows))

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that were compared."""
        return tuple(dict.fromkeys(row.measure for row in self.rows))

    def of(self, measure: str | None = None, second: str | None = None) -> tuple[SlicePair, ...]:
        """Give the slices of one measure and pair; the first of each, if none is named.

        Raises
        ------
        InputError
            If it was not compared.
        """
        name, system = measure_named(measure, self.measures), second or self.pairs[0][1]
        rows = tuple(row for row in self.rows if (row.measure, row.second) == (name, system))
        if not rows:
            raise InputError(
                f"{system!r} was not compared", fix=f"use one of {', '.join(two for _, two in self.pairs)}"
            )
        return rows

    def row(self, name: str, measure: str | None = None, second: str | None = None) -> SlicePair:
        """Give one slice.

        Raises
        ------
        InputError
            If there is no such slice, or it was not compared.
        """
        rows = {row.slice: row for row in self.of(measure, second)}
        if name not in rows:
            raise InputError(f"no slice {name!r}", fix=f"use one of {', '.join(rows)}")
        return rows[name]

    def heterogeneity(self, measure: str | None = None, second: str | None = None) -> BetweenSlices | None:
        """Say of one measure and pair whether the difference varies between slices; None where it was not tested."""
        wanted = self.of(measure, second)[0]
        same = (test for test in self.between if (test.measure, test.second) == (wanted.measure, wanted.second))
        return next(same, None)

    def with_all(self, measure: str | None = None, second: str | None = None) -> tuple[SlicePair, ...]:
        """Give the comparison over all topics, then the slices, of one measure and pair."""
        rows = self.of(measure, second)
        name, first, second = rows[0].measure, rows[0].first, rows[0].second
        pair = self.overall.pair(first, second, name)
        difference, n = pair.shown_difference, pair.result.n
        return (SlicePair(ALL, name, first, second, n, 1.0, difference, 1, False, pair, None), *rows)

    def overview(self, measure: str | None = None, *, second: str | None = None) -> Table:
        """Lay out one row per slice, of one measure and pair: difference, interval, p, topics won, what would be seen.

        Raises
        ------
        InputError
            If it was not compared.
        """
        rows = self.with_all(measure, second)
        name, first, other = rows[0].measure, rows[0].first, rows[0].second
        ratio = self._is_ratio(name)
        alone = self.choices.correction == "none" or self.families[name] < 2
        p_name = "P(higher)" if self.choices.test == "bayes" else "p" if alone else "adjusted p"
        differences, head = [row.difference for row in rows], direction(other, first, ratio=ratio)
        return Table(
            f"{name}: {other}",
            (
                Column("slice", [row.slice + f" {FEW}" * row.small for row in rows], TEXT),
                Column("n", [row.n for row in rows], COUNT, "topics"),
                *verdict_columns([row.pair for row in rows], differences, head, p_name),
            ),
            title=f"{name}: {other} {'over' if ratio else 'minus'} {first}",
            only="people",
        )

    def blocks(self) -> tuple[Block, ...]:
        """Give a table for each measure and pair, what may be concluded, all numbers, and a chart for each measure."""
        parts = [(measure, second) for measure in self.measures for _, second in self.pairs]
        tables = [self.overview(measure, second=second) for measure, second in parts]
        tables[-1] = replace(tables[-1], note=self.caption)
        rows = [row for part in parts for row in self.with_all(*part)]
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
                *rest_columns([row.rest for row in rows]),
            ),
            only="data",
        )
        varying = Table(
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
        names, topics = Column("slice", [name for name, _ in tests], TEXT), topics_table([pair for _, pair in tests])
        slices = Column("slice", [name for name, pair in tests for _ in (*pair.gains, *pair.losses)], TEXT)
        known = Table("pairs", (names, *pair_columns([pair for _, pair in tests])), only="data")
        data = (results, known, replace(topics, columns=(slices, *topics.columns)), varying, self.slicing.table())
        return (*tables, Sentences(self.sentences), *data, *charts)

    def facts(self) -> dict[str, Any]:
        """Give the options, the rules in words, whether slices overlap, and the sizes of families."""
        choices = asdict(self.choices)
        del choices["min_difference"]  # of a win, which no test by slice has; each slice has its own minimum of topics
        names = {"caption": self.caption, "overlap": not self.slicing.disjoint, "families": self.families}
        return {"choices": choices, **names}

    def _others(self) -> str:
        names = [second for _, second in self.pairs]
        return ", ".join([*names[:3], *["..."] * (len(names) > 3)])

    def _is_ratio(self, measure: str) -> bool:
        return any(pair.is_ratio for pair in self.overall.measure(measure).pairs)

    def _chart(self, measure: str) -> Chart:
        rows = [row for _, second in self.pairs for row in self.with_all(measure, second)]
        ratio, first = self._is_ratio(measure), self.pairs[0][0]
        what = "ratio" if ratio else "difference"
        points = Table(
            "points",
            (
                Column("slice", [f"{row.slice} ({row.n})" for row in rows], TEXT),
                Column("run", [row.second for row in rows], TEXT),
                Column(
                    "value",
                    [row.difference for row in rows],
                    RATIO if ratio else DIFFERENCE,
                    f"{what} in {measure}",
                    ci=[row.interval for row in rows],
                ),
                Column("open", [not (row.pair and row.pair.significant) for row in rows], only="data"),
            ),
        )
        return Chart(
            name=measure,
            title=f"{measure}: {self._others()} {'/' if ratio else '-'} {first}",
            subtitle="filled: significant after correction; hollow: not significant",
            table=points,
            sentence=f"One dot a slice: the {what} in {measure} to {first}, with its interval; filled: significant.",
            y="slice",
            colour="run",
            hollow="open",
            lines=(Line("x", 1.0 if ratio else 0.0),),
        )

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha, and what a row is."""
        choices, pairs = self.choices, [row.pair for row in self.rows if row.pair is not None]
        if not pairs:
            return "no slice is tested: all have too few topics"
        sizes = sorted(set(self.families.values()))
        if choices.test == "bayes":
            corrected = "beliefs are not corrected for the number of slices"
        elif choices.correction == "none" or sizes[-1] < 2:
            corrected = "p not corrected for the number of slices"
        else:
            count = " to ".join(map(str, sizes[:1] + sizes[-1:] * (len(sizes) > 1)))
            corrected = f"p corrected by {name_of_correction(choices.correction)} for {count} comparisons"
            if len(self.measures) > 1:
                corrected += f", of {'all measures together' if choices.family == 'all' else 'each measure'}"
        every = (*pairs, *self.overall.pairs)
        drawn = [pair for pair in every if pair.result.resamples and not pair.result.exact]
        exact = drawn and any(pair.result.exact for pair in every)  # of some, all arrangements were taken instead
        few = f"{FEW}: fewer topics than the slice is judged by, not tested"
        parts = (
            tested(choices, drawn or every)
            + ", or all arrangements where there are fewer" * bool(exact)
            + SECOND * any(pair.result.test in {"randomisation", "t", "ratio"} for pair in pairs),
            corrected,
            f"{ALL}: the comparison without slices, corrected by itself",
            f"alpha = {choices.alpha:g}",
            f"{SIGNIFICANT} significant"
            + f" ({SENSITIVE} if sensitive to a few topics)" * any(pair.sensitive for pair in every),
            intervals(pairs, choices, sizes[-1]),
            detectable(pairs),
            few * any(row.small for row in self.rows),
        )
        return "; ".join(filter(None, parts))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not: of each measure and pair."""
        if not any(row.pair for row in self.rows):
            return ("Nothing can be said of single slices: all have too few topics.", *too_few(self.slicing))
        said: list[str] = []
        for measure in self.measures:
            parts = [self.of(measure, second) for _, second in self.pairs]
            for rows in parts:
                said += self._better(rows)
                said += _unshown(rows) if len(parts) <= _PAIRS else ()
            said += _nowhere(parts) if len(parts) > _PAIRS else ()
            said += self._variation(measure, parts)
        return (*said, *too_few(self.slicing))

    def _better(self, rows: Sequence[SlicePair]) -> Iterator[str]:
        first, second, measure = rows[0].first, rows[0].second, rows[0].measure
        test, correction, size = self.choices.test, self.choices.correction, self.families[measure]
        uncorrected = test == "bayes" or correction == "none" or size < 2
        after = "" if uncorrected else f", after {name_of_correction(correction)} over {size} comparisons"
        for winner, loser in ((second, first), (first, second)):
            if won := [row for row in rows if row.better == winner]:
                claim = shown(test, winner, loser, measure) + ("" if of_means(test) else ",")
                yield f"{claim} on {some_of([_won(row.slice, row.pair) for row in won if row.pair])}{after}."
                yield from _missed(won)
        if torn := [f"`{row.slice}`" for row in rows if row.pair and row.pair.significant and row.better is None]:
            yield f"On {some_of(torn)} the test sees a difference in {measure} that the means do not point to."

    def _variation(self, measure: str, parts: Sequence[Sequence[SlicePair]]) -> Iterator[str]:
        """Say which differences vary between slices; of the others together that this is not shown."""
        tests = [test for test in self.between if test.measure == measure]
        for test in tests:
            if test.significant:
                means = dict(zip(test.result.means, test.slices, strict=True))
                low, high = (f"{decimal(end, 3, '+')} on `{means[end]}`" for end in (min(means), max(means)))
                yield (
                    f"The difference between {test.second} and {test.first} in {measure} varies between slices"
                    f" (p {p_text(test.adjusted, test.alpha)}): from {low} to {high}."
                )
        rest = [test.adjusted for test in tests if not test.significant and not math.isnan(test.adjusted)]
        if rest:
            which = "difference" if len(rest) == len(tests) else "other difference"
            mixed = any({row.better is None for row in rows if row.pair} == {True, False} for rows in parts)
            yield (
                f"It is not shown that any {which} in {measure} varies between slices (least p"
                f" {p_text(min(rest), self.choices.alpha)}, {len(tests[0].slices)} slices)"
                f"{': a finding on one slice and none on another may be luck' if mixed else ''}."
            )


def direction(second: str, first: str, *, ratio: bool = False) -> str:
    """Head a column of differences by what is subtracted from what, where the names are not too long for it.

    >>> direction("new", "old"), direction("a run with a long name", "another run"), direction("a", "b", ratio=True)
    ('new - old', 'difference', 'a / b')
    """
    name = f"{second} {'/' if ratio else '-'} {first}"
    return name if len(name) <= _HEAD else "ratio" if ratio else "difference"


def _nowhere(parts: Sequence[Sequence[SlicePair]]) -> Iterator[str]:
    """Name the systems that differ from the baseline on no slice, and say of the others that this is all."""
    first = parts[0][0]
    none = [rows[0].second for rows in parts if not any(row.pair and row.pair.significant for row in rows)]
    if none:
        yield f"No difference in {first.measure} from {first.first} is shown on any slice for {some_of(none)}."
    if len(none) < len(parts):
        yield f"On all other slices that were tested, no difference in {first.measure} is shown; that makes none equal."


def _won(name: str, pair: Pair) -> str:
    side = f"{TIMES}{decimal(pair.shown_difference, 3)}" if pair.is_ratio else decimal(pair.result.difference, 3, "+")
    belief = pair.result.posterior
    sure = f"p {p_text(pair.result.decisive_p, pair.alpha)}"
    if belief is not None:
        sure = f"probability {decimal(max(belief.higher, belief.lower), 3)}"
    few = f", sensitive to {counted(len(pair.few_topics), 'topic')}" if pair.sensitive else ""
    return f"`{name}` ({side}, {counted(pair.result.n, 'topic')}, {sure}{few})"


def _missed(won: Sequence[SlicePair]) -> Iterator[str]:
    """Say what findings on slices with fewer than 100 topics may have missed, and what there would reverse them."""
    known = [(row.slice, row.pair.sensitivity) for row in won if row.pair and row.pair.sensitivity]
    some = [
        f"{found.missed_share:.0%} of `{name}` ({decimal(found.reversing_difference, 2, '+')})"
        for name, found in known
        if found.may_miss
    ]
    if some:
        yield (
            f"Topics of a kind that is not among these may make up {some_of(some)}: a mean difference there beyond the"
            " one in parentheses would reverse the finding."
        )


def _unshown(rows: Sequence[SlicePair]) -> Iterator[str]:
    """Name the slices without a finding, and what could have been missed there."""
    measure = rows[0].measure
    rest = {f"`{row.slice}`": row.pair for row in rows if row.pair and not row.pair.significant}
    unknown = [name for name, pair in rest.items() if pair.result.posterior is None and math.isnan(pair.result.p)]
    if unknown:
        said = f"On {some_of(unknown)} nothing in {measure} can be tested"
        yield f"{said}: too few topics, or differences that do not vary."
    rest = {name: pair for name, pair in rest.items() if name not in unknown}
    if not rest:
        return
    sizes = [decimal(size, 3) for size in sorted(pair.detectable for pair in rest.values() if pair.detectable > 0)]
    below = " to ".join(dict.fromkeys((*sizes[:1], *sizes[-1:])))
    missed = f" There, differences below {below} would often be missed." if sizes else ""
    between = f"between {rows[0].second} and {rows[0].first}"
    yield f"No difference in {measure} {between} is shown on {some_of(list(rest))}.{missed}"
    close = {name: pair.equivalence for name, pair in rest.items() if pair.equivalence and pair.equivalence.significant}
    for margin in {test.margin for test in close.values()}:
        near = f"On {some_of(list(close))} they are surely closer than {margin:g}"
        yield f"{near} (not corrected for the number of slices)."


def some_of(names: Sequence[str]) -> str:
    """List names, not more than can be taken in."""
    more = [f"{len(names) - MOST} more"] if len(names) > MOST else []
    return listed([*names[:MOST], *more])
