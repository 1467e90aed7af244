"""What `compare` returns: systems compared by each measure, its tables, and by which rules they were made."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.choices import MANY
from judged.comparison.pair import (
    BETTER,
    TIMES,
    WORSE,
    Pair,
    corrected,
    detectable,
    intervals,
    legend,
    marked,
    numbers,
    pair_columns,
    tested,
    topics_table,
    verdict_columns,
)
from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Column, Section, Sentences, Show, Table, columns_of
from judged.results.decimals import counted, decimal
from judged.results.table import order_of
from judged.results.types import cached_property
from judged.scoring.evaluation.summary import ESTIMATE

if TYPE_CHECKING:
    from judged.comparison.choices import Choices
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Estimate, Scores
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.measures.base import Measure

SHOWN = 4  # decimals of a mean: what looks the same is best together
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RANGE = 4  # letters in a row: as many are written as a range
_MOST_PAIRS, _MOST_SYSTEMS, _MOST_SENTENCES = 10, 10, 3  # more are folded
_DZ = Show(lambda value: f"{value:+.2f}", "float64")


@dataclass(frozen=True, eq=False)
class MeasureComparison:
    """All systems compared by one measure."""

    measure: Measure
    estimates: tuple[Estimate, ...]  # one aggregate a system, with its interval, in the order of the runs
    pairs: tuple[Pair, ...]  # every pair, or every system against the baseline; empty where nothing is tested
    family: int  # how many comparisons the correction, or the test itself, allowed for
    untested: str = ""  # why nothing is tested; empty otherwise
    overall: str = ""  # what a test of all systems at once says before any pair is looked at
    name: str = field(init=False)  # of the measure
    higher_is_better: bool | None = field(init=False)  # None where neither side is

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.measure))
        object.__setattr__(self, "higher_is_better", self.measure.properties.higher_is_better)

    @property
    def lower_is_better(self) -> bool:
        """Whether the smaller number is the better one."""
        return self.higher_is_better is False

    @cached_property
    def by_runs(self) -> dict[tuple[str, str], Pair]:
        """Each pair by its two names."""
        return {(pair.first, pair.second): pair for pair in self.pairs}

    @cached_property
    def better_than(self) -> dict[str, set[str]]:
        """The systems that each system is significantly better than."""
        beaten: dict[str, set[str]] = {}
        for pair in self.pairs:
            if pair.better is not None:
                beaten.setdefault(pair.better, set()).add(pair.other(pair.better))
        return beaten

    def order(self) -> list[int]:
        """Give the systems as a leaderboard lists them: best first, those without a number last."""
        return order_of([estimate.value for estimate in self.estimates], lower_is_better=self.lower_is_better)

    def best(self) -> set[int]:
        """Give the systems with the best number."""
        values = [estimate.value for estimate in self.estimates]
        top = self.best_of([value for value in values if not math.isnan(value)])
        return {at for at, value in enumerate(values) if round(value, SHOWN) in top}

    def best_of(self, values: Sequence[float]) -> set[float]:
        """Give the best of two numbers or more, as they are shown; nothing, where better and worse mean nothing."""
        if self.higher_is_better is None or len(values) < 2:
            return set()
        return {round(min(values) if self.lower_is_better else max(values), SHOWN)}

    def column(self, title: str, order: Sequence[str], baseline: str | None, *, intervals: bool = True) -> Column:
        """Give the column of a leaderboard with the systems in this order: numbers, intervals, marks of significance.

        The marks are the letters of the systems that each one is better than, or how it differs from the baseline.
        """
        known = {estimate.run: estimate for estimate in self.estimates}
        values = [known[run].value if run in known else math.nan for run in order]
        if self.estimates[0].aggregate in {"sum", "count"}:
            return Column(title, values, COUNT)
        ends = [known[run].ci if run in known else None for run in order]
        best = {self.estimates[at].run for at in self.best()}
        names, marks = letters(len(order)), [""] * len(order)
        for at, run in enumerate(order):
            if baseline is None:
                beaten = self.better_than.get(run, set())
                marks[at] = together(names, [place for place, other in enumerate(order) if other in beaten])
            elif (pair := self.by_runs.get((baseline, run))) is not None and pair.better is not None:
                marks[at] = BETTER if pair.better == run else WORSE
        offset = [run in best for run in order]
        return Column(title, values, NUMBER, ci=ends if intervals else None, mark=marks, best=offset)


class AnswerOfScores(Answer):
    """An answer whose numbers rest on what its scores rest on."""

    scores: Scores

    @property
    def provenance(self) -> Provenance:
        """What the scores rest on."""
        return self.scores.provenance


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(AnswerOfScores):
    """What `compare` returns: systems compared over the same topics.

    Attributes
    ----------
    scores : Scores
        What is compared.
    measures : tuple of MeasureComparison
        Aggregates with intervals, and pairs with their tests.
    choices : Choices
        Test, correction, alpha, seed and the other options.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import compare
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> print(compare(qrels, {"bad": bad, "good": good}, "RR", ci="none").leaderboard().text())
       run       RR
    a  good  1.0000 b
    b  bad   0.5000
    """

    kind: ClassVar[str] = "comparison"
    main: ClassVar[str] = "pairs"

    scores: Scores
    measures: tuple[MeasureComparison, ...]
    choices: Choices
    notes: tuple[Note, ...] = ()
    interval_rules: str = ""  # how the intervals of the aggregates were made
    rules: str = ""  # over which topics, and how documents are ranked

    @cached_property
    def order(self) -> list[int]:
        """The systems from best to worst by the first measure."""
        return self.measures[0].order()

    @property
    def ranked(self) -> list[str]:
        """Their names."""
        return [self.measures[0].estimates[at].run for at in self.order]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of all measures."""
        return tuple(pair for compared in self.measures for pair in compared.pairs)

    def measure(self, name: str | None = None) -> MeasureComparison:
        """Give what was found by one measure; the first, if none is named.

        Raises
        ------
        InputError
            If it was not compared.
        """
        from judged.scoring.measures.grammar import parse

        known = {compared.name: compared for compared in self.measures}
        if name is None or name in known:
            return self.measures[0] if name is None else known[name]
        if (canonical := str(parse(name))) not in known:
            raise InputError(f"{name} was not compared", fix=f"use one of {', '.join(known)}")
        return known[canonical]

    def pair(self, first: str, second: str, measure: str | None = None) -> Pair:
        """Give one pair, in whichever order the two are named; its own fields say which is first.

        Raises
        ------
        InputError
            If the two were not compared by this measure.
        """
        compared = self.measure(measure)
        pair = compared.by_runs.get((first, second)) or compared.by_runs.get((second, first))
        if pair is None:
            raise InputError(
                f"{first!r} and {second!r} were not compared by {compared.name}",
                fix=compared.untested or f"name two of {', '.join(self.ranked)}; with a baseline, one is it",
            )
        return pair

    def blocks(self) -> tuple[Block, ...]:
        """Give the leaderboard, and by each measure every two systems, the pairs, and what may be concluded of them."""
        board, measure = self.leaderboard(), self.measures[0].name
        said = f"{measure} of {counted(len(self.order), 'system')}, best first."
        chart = Chart("leaderboard", f"{measure} of every system", board, said, x=measure, y="run")
        sections = (self._section(compared) for compared in self.measures if compared.pairs)
        return (board, chart, *sections, Sentences((self.rules,)), *data_tables(self.measures))

    def facts(self) -> dict[str, Any]:
        """Give the options, the rules in words, and the systems from best to worst."""
        return {"choices": asdict(self.choices), "caption": self.caption, "order": self.ranked}

    def leaderboard(self) -> Table:
        """Give the systems, best first, with intervals and marks of significance."""
        order, baseline = self.ranked, self.choices.baseline
        columns = (compared.column(compared.name, order, baseline) for compared in self.measures)
        return board("leaderboard", "run", order, baseline, columns, self.caption)

    def matrix(self, measure: str | None = None) -> Table:
        """Give every pair: above the diagonal row minus column, or their ratio, below it the p-value that decides.

        Raises
        ------
        InputError
            If not every pair was tested.
        """
        compared = self.measure(measure)
        if self.choices.baseline is not None or not compared.pairs:
            fix = compared.untested or "compare without a baseline"
            raise InputError(f"not every pair was tested by {compared.name}", fix=fix)
        names = letters(len(self.ranked))
        columns = [Column("letter", names, TEXT, ""), Column("run", self.ranked, TEXT)]
        for at, other in enumerate(self.ranked):
            cells = [_matrix_cell(compared, run, other, row - at) for row, run in enumerate(self.ranked)]
            marks = [mark for _, mark in cells]
            columns.append(Column(names[at], [text for text, _ in cells], TEXT, mark=marks))
        below = "P(higher) of the system above" if self.choices.test == "bayes" else "p"
        signs = legend(compared.pairs, "ones")
        note = f"{compared.name}: above the diagonal row minus column, below it {below}; {signs}"
        return Table("matrix", tuple(columns), note=note, labels=2, only="people")

    def pair_table(self, measure: str | None = None) -> Table:
        """Give the pairs of the best system first: difference, interval, p, effect, topics won, what is detectable."""
        compared = self.measure(measure)
        pairs = self._by_rank(compared)
        bayes = any(pair.result.posterior is not None for pair in pairs)
        adjusts = self.choices.test not in MANY and any(pair.result.correction not in {"", "none"} for pair in pairs)
        p_name = "P(higher)" if bayes else "adjusted p" if adjusts else "p"
        difference, p, *rest = verdict_columns(pairs, [pair.shown_difference for pair in pairs], "difference", p_name)
        columns = (
            Column("run", [pair.second for pair in pairs], TEXT),
            Column("baseline", [pair.first for pair in pairs], TEXT),
            *(difference, p, Column("dz", [pair.effects.dz for pair in pairs], _DZ), *rest),
        )
        notes = (
            f"{compared.name}: {legend(compared.pairs)}",
            intervals(compared.pairs, self.choices, compared.family),
            detectable(compared.pairs),
        )
        return Table("pairs", columns, note="; ".join(filter(None, notes)), labels=2, only="people")

    def _by_rank(self, compared: MeasureComparison) -> list[Pair]:
        """Give pairs of the best system first, best against next best; of a baseline in the order of the systems."""
        place = {compared.estimates[at].run: rank for rank, at in enumerate(compared.order())}
        if self.choices.baseline is not None:
            return sorted(compared.pairs, key=lambda pair: place[pair.second])
        return sorted(compared.pairs, key=lambda pair: sorted((place[pair.first], place[pair.second])))

    def _section(self, compared: MeasureComparison) -> Section:
        """Give what was found by a measure; what is more than can be taken in is folded."""
        blocks: list[Block] = [Sentences((compared.overall,))] if compared.overall else []
        systems, pairs = len(compared.estimates), self._by_rank(compared)
        if self.choices.baseline is None and systems > 2:
            blocks.append(replace(self.matrix(compared.name), name="pairs", folded=systems > _MOST_SYSTEMS))
        if systems > 2:
            count = len(pairs) if len(pairs) <= _MOST_PAIRS else min(_MOST_PAIRS, systems - 1)
            table, rest = self.pair_table(compared.name), range(count, len(pairs))
            more = f"; {counted(len(rest), 'more pair')} (--pairs)" if rest else ""
            blocks.append(replace(table.take(range(count)), note=table.note + more))
            blocks += [replace(table.take(rest), folded=True)] if rest else []
        said = tuple(f"{pair.sentence} {pair.topics_sentence}".rstrip() for pair in pairs)
        few = len(said) if len(said) <= _MOST_SENTENCES else 1
        blocks.append(Sentences(said[:few]))
        blocks += [Sentences(said[few:], "pairs", folded=True)] if said[few:] else []
        return Section(compared.name, compared.name, tuple(blocks))

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha, over how many topics, what marks and intervals are."""
        baseline, marks = self.choices.baseline, ""
        if baseline is None or any(pair.better is not None for pair in self.pairs):  # without marks no legend
            marks = marked(self.choices, f"the baseline {baseline}", letters(len(self.order)))
        parts = [self.pair_caption, marks] if self.pairs else ["nothing is tested"]
        parts += [f"[{self.interval_rules}]"] if self.interval_rules else []
        return "; ".join(filter(None, parts))

    @property
    def pair_caption(self) -> str:
        """Over how many topics, by which test, with which correction and alpha."""
        sizes = numbers([compared.family for compared in self.measures if compared.family] or [0])
        several = sum(bool(compared.pairs) for compared in self.measures) > 1
        count = numbers(pair.result.n for pair in self.pairs)
        return "; ".join(
            [
                f"n = {count} topic{'' if count == '1' else 's'}",
                tested(self.choices, self.pairs),
                corrected(self.choices, sizes, several=several),
                f"alpha = {self.choices.alpha:g}",
            ]
        )


def board(
    name: str, title: str, order: Sequence[str], baseline: str | None, columns: Iterable[Column], note: str
) -> Table:
    """Lay out a row per system, in this order: with a letter each where every pair is tested."""
    runs = [f"{run} (baseline)" if run == baseline else run for run in order]
    named = [Column("letter", letters(len(order)), TEXT, "")] if baseline is None else []
    named.append(Column("run", runs, TEXT, title))
    return Table(name, (*named, *columns), note=note, labels=len(named), only="people")


def data_tables(measures: Sequence[MeasureComparison]) -> Iterator[Table]:
    """Give everything that was found by measures, for data: aggregates, pairs, topics of pairs, and families."""
    pairs = [pair for compared in measures for pair in compared.pairs]
    estimates = [estimate for compared in measures for estimate in compared.estimates]
    yield Table("results", columns_of(estimates, *ESTIMATE), only="data")
    yield Table("pairs", pair_columns(pairs), only="data")
    yield topics_table(pairs)
    yield Table("measures", columns_of(measures, "name", "family", "untested", "overall"), only="data")


def _matrix_cell(compared: MeasureComparison, row: str, column: str, side: int) -> tuple[str, str]:
    """Write a cell of a matrix, and its mark; the diagonal is empty."""
    if side == 0:
        return "", ""
    straight = compared.by_runs.get((column, row))
    pair = straight or compared.by_runs[row, column]
    difference = pair.result.difference * (1 if straight else -1)
    if side > 0:
        return "<0.001" if pair.decisive < 0.001 <= pair.alpha else pair.p_shown(0), pair.mark
    return f"{TIMES}{decimal(math.exp(difference), 3)}" if pair.is_ratio else decimal(difference, 3, "+"), pair.mark


def letters(count: int) -> tuple[str, ...]:
    """Give each system a letter; numbers, where the alphabet is too short.

    >>> letters(3), letters(30)[-1]
    (('a', 'b', 'c'), '30')
    """
    return tuple(_LETTERS[:count]) if count <= len(_LETTERS) else tuple(str(at + 1) for at in range(count))


def together(names: tuple[str, ...], chosen: Collection[int]) -> str:
    """Write the letters of some systems as one mark; four or more in a row as a range.

    >>> together(letters(8), {1, 2, 5}), together(letters(8), {0, 2, 3, 4, 5, 7})
    ('bcf', 'a,c-f,h')
    >>> together(letters(40), {4, 5, 6})
    '5,6,7'
    """
    placed = enumerate(sorted(chosen))
    stretches = [[at for _, at in group] for _, group in groupby(placed, key=lambda place: place[1] - place[0])]
    parts: list[str] = []
    for stretch in stretches:
        long = len(stretch) >= _RANGE
        parts += [f"{names[stretch[0]]}-{names[stretch[-1]]}"] if long else [names[at] for at in stretch]
    apart = len(names) > len(_LETTERS) or any(len(stretch) >= _RANGE for stretch in stretches)
    return ("," if apart else "").join(parts)
