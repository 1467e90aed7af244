"""Results of `compare`: systems compared by each measure, with their tables and captions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.best_run import best_run_headline
from judged.comparison.choices import JOINT_TESTS
from judged.comparison.pair import (
    BETTER,
    TIMES,
    WORSE,
    Pair,
    describe_correction,
    describe_detectable,
    describe_intervals,
    describe_marks,
    describe_test,
    describe_winner,
    format_range,
    is_test_of_means,
    mark_legend,
    pair_columns,
    topics_table,
    verdict_columns,
)
from judged.errors import InputError
from judged.results import (
    CHANGE,
    COUNT,
    NUMBER,
    TEXT,
    Answer,
    Chart,
    Column,
    Headline,
    Section,
    Sentences,
    Show,
    Table,
    columns_of,
    number,
)
from judged.results.decimals import counted, decimal
from judged.results.spelling import use_one_of
from judged.results.table import best_first_order
from judged.results.types import cached_property
from judged.scoring.evaluation.summary import ESTIMATE
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from judged.comparison.choices import Choices
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.headline import Status
    from judged.scoring.evaluation import Estimate, Scores
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.measures.base import Measure

SCORE_DECIMALS = 4  # systems whose means are equal when rounded to these decimals share the first place
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIN_RANGE_LETTERS = 4  # consecutive letters that are abbreviated as a range
_MAX_PAIRS, _MAX_SYSTEMS, _MAX_SENTENCES = 10, 10, 3  # longer lists are collapsed
_DZ = Show(lambda value: f"{value:+.2f}", "float64")


@dataclass(frozen=True, eq=False)
class MeasureComparison:
    """Comparison of all systems by one measure."""

    measure: Measure
    estimates: tuple[Estimate, ...]  # aggregate and interval of each system, in the order of the runs
    pairs: tuple[Pair, ...]  # all pairs, or all systems against the baseline; empty without tests
    family: int  # number of comparisons that the correction, or the joint test, accounts for
    untested: str = ""  # reason why nothing is tested; empty otherwise
    overall: str = ""  # sentence on the overall result of a joint test
    name: str = field(init=False)  # of the measure
    higher_is_better: bool | None = field(init=False)  # None if neither direction is better

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.measure))
        object.__setattr__(self, "higher_is_better", self.measure.properties.higher_is_better)

    @property
    def lower_is_better(self) -> bool:
        """Whether smaller values are better."""
        return self.higher_is_better is False

    @cached_property
    def by_runs(self) -> dict[tuple[str, str], Pair]:
        """Pairs by the names of their first and second system."""
        return {(pair.first, pair.second): pair for pair in self.pairs}

    @cached_property
    def better_than(self) -> dict[str, set[str]]:
        """For each system, the systems that it is significantly better than."""
        beaten: dict[str, set[str]] = {}
        for pair in self.pairs:
            if pair.better is not None:
                beaten.setdefault(pair.better, set()).add(pair.other(pair.better))
        return beaten

    def headline(self, pair: Pair) -> Headline:
        """Return the status of a pair: whether its second system is better or worse than the first."""
        test, is_of_means = pair.result.test, is_test_of_means(pair.result.test)
        words = ("better", "worse") if is_of_means else ("ahead", "behind")
        words = ("higher", "lower") if self.higher_is_better is None else words
        status: Status = "same"
        word, topics = "no significant difference", counted(pair.result.n, "topic")
        sentence = f"No significant difference between {pair.second} and {pair.first} on {topics}."
        if pair.insufficiency is not None:
            status, word = "unknown", "not enough data"
            sentence = f"A verdict requires at least {MIN_UNITS['verdict']} topics, got {pair.result.n}."
        elif not pair.gains and not pair.losses:
            word, sentence = "equal", f"{pair.second} and {pair.first} have the same score on each of {topics}."
        elif pair.favored is not None and pair.better is None:
            status, word = "unknown", "contradiction"
            sentence = f"The test favors {pair.favored}, but the mean of {pair.other(pair.favored)} is better."
        elif pair.better is not None:
            is_second = pair.better == pair.second
            status, word = ("better", words[0]) if is_second else ("worse", words[1])
            status = "info" if self.higher_is_better is None else status
            claim = f"{pair.second} is {word} than {pair.first}"
            if not is_of_means:
                claim = describe_winner(test, pair.better, pair.other(pair.better), self.name)
            posterior = pair.result.posterior
            evidence = f"p {pair.format_p()}"
            if posterior is not None:
                evidence = f"probability {decimal(max(posterior.higher, posterior.lower), 3)}"
            sentence = f"{claim} on {topics} ({evidence})."
        sign = "/" if pair.is_ratio else "-"
        return Headline(
            status,
            word,
            sentence,
            f"{self.name}, {pair.second} {sign} {pair.first}",
            pair.shown_difference,
            number() if pair.is_ratio else CHANGE,
            pair.shown_interval,
            pair.result.level,
            reference=1.0 if pair.is_ratio else 0.0,
        )

    def order(self) -> list[int]:
        """Return the indices of the systems from best to worst; systems without a value come last."""
        return best_first_order([estimate.value for estimate in self.estimates], lower_is_better=self.lower_is_better)

    def best(self) -> set[int]:
        """Return the indices of the systems with the best value."""
        values = [estimate.value for estimate in self.estimates]
        best = self.best_of([value for value in values if not math.isnan(value)])
        return {i for i, value in enumerate(values) if round(value, SCORE_DECIMALS) in best}

    def best_of(self, values: Sequence[float]) -> set[float]:
        """Return the best rounded value in a set; empty for fewer than two values or neutral measures."""
        # a single value is not "best" of anything
        if self.higher_is_better is None or len(values) < 2:
            return set()
        return {round(min(values) if self.lower_is_better else max(values), SCORE_DECIMALS)}

    def column(self, title: str, order: Sequence[str], baseline: str | None, *, intervals: bool = True) -> Column:
        """Return a leaderboard column with values, intervals, and marks of significance, one row per run of `order`.

        Marks are the letters of the systems that a system is better than, or daggers for differences from the baseline
        or between two systems.
        """
        estimates = {estimate.run: estimate for estimate in self.estimates}
        values = [estimates[run].value if run in estimates else math.nan for run in order]
        if self.estimates[0].aggregate in {"sum", "count"}:
            return Column(title, values, COUNT)
        cis = [estimates[run].ci if run in estimates else None for run in order]
        best_runs = {self.estimates[row].run for row in self.best()}
        letters, marks = system_letters(len(order)), [""] * len(order)
        for row, run in enumerate(order):
            beaten = self.better_than.get(run, set())
            if baseline is None and len(order) == 2:
                marks[row] = BETTER if beaten else ""
            elif baseline is None:
                marks[row] = letter_ranges(letters, [column for column, other in enumerate(order) if other in beaten])
            elif (pair := self.by_runs.get((baseline, run))) is not None and pair.better is not None:
                marks[row] = BETTER if pair.better == run else WORSE
        is_best = [run in best_runs for run in order]
        return Column(title, values, NUMBER, ci=cis if intervals else None, mark=marks, best=is_best)


class AnswerOfScores(Answer):
    """Result that inherits the provenance of its scores."""

    scores: Scores

    @property
    def provenance(self) -> Provenance:
        """Provenance of the scores."""
        return self.scores.provenance


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(AnswerOfScores):
    """Result of `compare`: systems compared over the same topics.

    Attributes
    ----------
    scores : Scores
        Scores of the compared systems.
    measures : tuple of MeasureComparison
        Aggregates with intervals, and pairs with their tests.
    choices : Choices
        Test, correction, alpha, seed and the other options.
    notes : tuple of Note

    Examples
    --------
    >>> from judged import compare
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> print(compare(qrels, {"bad": bad, "good": good}, "RR", ci="none").leaderboard().text())
    run       RR
    good  1.0000 †
    bad   0.5000
    """

    kind: ClassVar[str] = "comparison"
    main: ClassVar[str] = "pairs"

    scores: Scores
    measures: tuple[MeasureComparison, ...]
    choices: Choices
    notes: tuple[Note, ...] = ()
    interval_rules: str = ""  # method of the intervals of the aggregates
    rules: str = ""  # topics and ranking rules of the evaluation

    @cached_property
    def order(self) -> list[int]:
        """Indices of the systems from best to worst by the first measure."""
        return self.measures[0].order()

    @property
    def ranked(self) -> list[str]:
        """Names of the systems from best to worst by the first measure."""
        return [self.measures[0].estimates[i].run for i in self.order]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of all measures."""
        return tuple(pair for measure in self.measures for pair in measure.pairs)

    @property
    def p_name(self) -> str:
        """Name of the p-values in tables."""
        if any(pair.result.posterior is not None for pair in self.pairs):
            return "P(higher)"
        is_corrected = any(pair.result.correction not in {"", "none"} for pair in self.pairs)
        return "adjusted p" if is_corrected and self.choices.test not in JOINT_TESTS else "p"

    @property
    def headline(self) -> Headline:
        """Difference of two systems; of more, or with a baseline, whether one is significantly best."""
        if len(self.order) == 2 and self.choices.baseline is None and self.pairs:
            return self.measures[0].headline(self.pairs[0])
        return self.headline_of()

    def headline_of(self, measure: str | None = None) -> Headline:
        """Return whether one system is significantly best by a measure, by default the first."""
        return best_run_headline(self.measure(measure), self.choices.baseline, len(self.scores.query_ids))

    def measure(self, name: str | None = None) -> MeasureComparison:
        """Return the comparison by one measure, by default the first.

        Raises
        ------
        InputError
            If the measure was not compared.
        """
        from judged.scoring.measures.grammar import parse

        by_name = {measure.name: measure for measure in self.measures}
        if name is None or name in by_name:
            return self.measures[0] if name is None else by_name[name]
        if (canonical := str(parse(name))) not in by_name:
            raise InputError(f"{name} was not compared", fix=use_one_of(by_name))
        return by_name[canonical]

    def pair(self, first: str, second: str, measure: str | None = None) -> Pair:
        """Return the pair of two systems, named in either order; its `first` and `second` show the direction.

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
                fix=compared.untested
                or f"use two of {', '.join(self.ranked)}; with a baseline, one of the two runs must be the baseline",
            )
        return pair

    def blocks(self) -> tuple[Block, ...]:
        """Return the verdicts of two systems, the leaderboard, sections by measure, the rules, and the data tables."""
        leaderboard, measure = self.leaderboard(), self.measures[0].name
        description = f"{measure} of {counted(len(self.order), 'system')}, best first."
        chart = Chart("leaderboard", f"{measure} of every system", leaderboard, description, x=measure, y="run")
        sections = (self._section(compared) for compared in self.measures if self._has_section(compared))
        verdicts = tuple(pair.sentence for pair in self.pairs) if len(self.order) == 2 else ()
        first = [Sentences(verdicts, "verdict")] if verdicts else []
        return (*first, leaderboard, chart, *sections, Sentences((self.rules,)), *data_tables(self.measures))

    def facts(self) -> dict[str, Any]:
        """Return the options, the caption, and the names of the systems from best to worst."""
        return {"choices": asdict(self.choices), "caption": self.caption, "order": self.ranked}

    def leaderboard(self) -> Table:
        """Return the systems from best to worst, with intervals and marks of significance."""
        order, baseline = self.ranked, self.choices.baseline
        columns = (measure.column(measure.name, order, baseline) for measure in self.measures)
        return leaderboard_table("leaderboard", "run", order, baseline, columns, self.caption)

    def matrix(self, measure: str | None = None) -> Table:
        """Return all pairs as a matrix: row minus column (or their ratio) above the diagonal, p-values below it.

        Raises
        ------
        InputError
            If not all pairs were tested.
        """
        compared = self.measure(measure)
        if self.choices.baseline is not None or not compared.pairs:
            fix = compared.untested or "compare without a baseline"
            raise InputError(f"the matrix requires tests of all pairs of runs by {compared.name}", fix=fix)
        letters = system_letters(len(self.ranked))
        columns = [Column("letter", letters, TEXT, ""), Column("run", self.ranked, TEXT)]
        for column, column_run in enumerate(self.ranked):
            cells = [_matrix_cell(compared, run, column_run, row - column) for row, run in enumerate(self.ranked)]
            marks = [mark for _, mark in cells]
            columns.append(Column(letters[column], [text for text, _ in cells], TEXT, mark=marks))
        p_text = (
            "probability that the better-ranked system has the higher score" if self.choices.test == "bayes" else "p"
        )
        legend = mark_legend(compared.pairs, noun="values")
        note = f"{compared.name}: above the diagonal: row minus column; below the diagonal: {p_text}; {legend}"
        return Table("matrix", tuple(columns), note=note, labels=2, only="people")

    def pair_table(self, measure: str | None = None) -> Table:
        """Return a row per pair, those of the best system first."""
        compared = self.measure(measure)
        pairs = self._by_rank(compared)
        differences = [pair.shown_difference for pair in pairs]
        difference, p, *counts = verdict_columns(pairs, differences, "difference", self.p_name)
        columns = (
            Column("run", [pair.second for pair in pairs], TEXT),
            Column("baseline", [pair.first for pair in pairs], TEXT),
            *(difference, p, Column("dz", [pair.effects.dz for pair in pairs], _DZ), *counts),
        )
        notes = (
            f"{compared.name}: {mark_legend(compared.pairs)}",
            describe_intervals(compared.pairs, self.choices, compared.family),
            describe_detectable(compared.pairs),
        )
        return Table("pairs", columns, note="; ".join(filter(None, notes)), labels=2, only="people")

    def _by_rank(self, compared: MeasureComparison) -> list[Pair]:
        ranks = {compared.estimates[i].run: rank for rank, i in enumerate(compared.order())}
        if self.choices.baseline is not None:
            return sorted(compared.pairs, key=lambda pair: ranks[pair.second])
        return sorted(compared.pairs, key=lambda pair: sorted((ranks[pair.first], ranks[pair.second])))

    def _has_section(self, compared: MeasureComparison) -> bool:
        # of two systems, the section only lists the topics with the largest differences
        has_topics = len(self.order) > 2 or any(pair.topics_sentence for pair in compared.pairs)
        return bool(compared.pairs) and (has_topics or bool(compared.overall))

    def _section(self, compared: MeasureComparison) -> Section:
        """Return the section of one measure; long lists are collapsed."""
        blocks: list[Block] = [Sentences((compared.overall,))] if compared.overall else []
        system_count, pairs = len(compared.estimates), self._by_rank(compared)
        if self.choices.baseline is None and system_count > 2:
            blocks.append(replace(self.matrix(compared.name), name="pairs", folded=system_count > _MAX_SYSTEMS))
        if system_count > 2:
            visible_rows = len(pairs) if len(pairs) <= _MAX_PAIRS else min(_MAX_PAIRS, system_count - 1)
            table, hidden_rows = self.pair_table(compared.name), range(visible_rows, len(pairs))
            more_text = (
                f"; {counted(len(hidden_rows), 'more pair')}: use --pairs to show all pairs" if hidden_rows else ""
            )
            blocks.append(replace(table.take(range(visible_rows)), note=table.note + more_text))
            # collapsed instead of omitted: `--pairs` and pages show all rows
            blocks += [replace(table.take(hidden_rows), folded=True)] if hidden_rows else []
        sentences = tuple(
            f"{pair.sentence if system_count > 2 else ''} {pair.topics_sentence}".strip() for pair in pairs
        )
        visible_count = len(sentences) if len(sentences) <= _MAX_SENTENCES else 1
        blocks.append(Sentences(sentences[:visible_count]))
        blocks += [Sentences(sentences[visible_count:], "pairs", folded=True)] if sentences[visible_count:] else []
        return Section(compared.name, compared.name, tuple(blocks))

    @property
    def caption(self) -> str:
        """Caption of the leaderboard: test, correction, alpha, marks, and intervals."""
        baseline, marks = self.choices.baseline, ""
        has_letters = baseline is None and len(self.order) > 2
        if has_letters or any(pair.better is not None for pair in self.pairs):  # without marks no legend
            marks = describe_marks(self.choices, f"the baseline {baseline}", system_letters(len(self.order)))
        parts = [self.pair_caption, marks] if self.pairs else ["no significance test"]
        parts += [f"[{self.interval_rules}]"] if self.interval_rules else []
        return "; ".join(filter(None, parts))

    @property
    def pair_caption(self) -> str:
        """Number of topics, test, correction, and alpha."""
        sizes = format_range([measure.family for measure in self.measures if measure.family] or [0])
        several = sum(bool(measure.pairs) for measure in self.measures) > 1
        n_text = format_range(pair.result.n for pair in self.pairs)
        return "; ".join(
            [
                f"n = {n_text} topic{'' if n_text == '1' else 's'}",
                describe_test(self.choices, self.pairs),
                describe_correction(self.choices, sizes, several=several),
                f"alpha = {self.choices.alpha:g}",
            ]
        )


def leaderboard_table(
    name: str, title: str, order: Sequence[str], baseline: str | None, columns: Iterable[Column], note: str
) -> Table:
    """Build a leaderboard table in the given order, with letters if all pairs of three systems or more are tested."""
    runs = [f"{run} (baseline)" if run == baseline else run for run in order]
    has_letters = baseline is None and len(order) > 2
    label_columns = [Column("letter", system_letters(len(order)), TEXT, "")] if has_letters else []
    label_columns.append(Column("run", runs, TEXT, title))
    return Table(name, (*label_columns, *columns), note=note, labels=len(label_columns), only="people")


def data_tables(measures: Sequence[MeasureComparison]) -> Iterator[Table]:
    """Yield the data tables of measures: aggregates, pairs, topics of pairs, and family sizes."""
    pairs = [pair for measure in measures for pair in measure.pairs]
    estimates = [estimate for measure in measures for estimate in measure.estimates]
    yield Table("results", columns_of(estimates, *ESTIMATE), only="data")
    yield Table("pairs", pair_columns(pairs), only="data")
    yield topics_table(pairs)
    yield Table("measures", columns_of(measures, "name", "family", "untested", "overall"), only="data")


def _matrix_cell(compared: MeasureComparison, row: str, column: str, side: int) -> tuple[str, str]:
    if side == 0:
        return "", ""
    # pairs are stored in one direction only: the other one has the opposite sign
    as_shown = compared.by_runs.get((column, row))
    pair = as_shown or compared.by_runs[row, column]
    difference = pair.result.difference * (1 if as_shown else -1)
    if side > 0:
        return "<0.001" if pair.decisive < 0.001 <= pair.alpha else pair.format_p(0), pair.mark
    return f"{TIMES}{decimal(math.exp(difference), 3)}" if pair.is_ratio else decimal(difference, 3, "+"), pair.mark


def system_letters(count: int) -> tuple[str, ...]:
    """Return a letter for each system, or numbers if there are more than 26.

    >>> system_letters(3), system_letters(30)[-1]
    (('a', 'b', 'c'), '30')
    """
    return tuple(_LETTERS[:count]) if count <= len(_LETTERS) else tuple(str(i + 1) for i in range(count))


def letter_ranges(names: tuple[str, ...], selected: Collection[int]) -> str:
    """Join the letters of the selected systems; four or more consecutive letters become a range.

    >>> letter_ranges(system_letters(8), {1, 2, 5}), letter_ranges(system_letters(8), {0, 2, 3, 4, 5, 7})
    ('bcf', 'a,c-f,h')
    >>> letter_ranges(system_letters(40), {4, 5, 6})
    '5,6,7'
    """
    ranked_indices = enumerate(sorted(selected))
    # index - position is constant within a run of consecutive indices
    spans = [[i for _, i in group] for _, group in groupby(ranked_indices, key=lambda pair: pair[1] - pair[0])]
    parts: list[str] = []
    for span in spans:
        is_range = len(span) >= _MIN_RANGE_LETTERS
        parts += [f"{names[span[0]]}-{names[span[-1]]}"] if is_range else [names[i] for i in span]
    needs_commas = len(names) > len(_LETTERS) or any(len(span) >= _MIN_RANGE_LETTERS for span in spans)
    return ("," if needs_commas else "").join(parts)
