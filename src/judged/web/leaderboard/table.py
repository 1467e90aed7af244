"""The leaderboard as data: one row a run, one cell a measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.comparison.pair import of_means
from judged.errors import JudgedError
from judged.measures import parse
from judged.slicing.slices import MINIMUM
from judged.stats import IntervalMethod
from judged.stats.pairing import topics_text
from judged.web.filters import count
from judged.web.leaderboard.board import FEWER, MANY, SHARE
from judged.web.leaderboard.drawn import Curve, curve_of
from judged.web.workspace import LEVEL, OF_ALL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.evaluation import Estimate
    from judged.web.leaderboard.board import Board

LOW = 0.7
"""A smaller share of judged documents is marked; warnings of an evaluation begin there, too."""


@dataclass(frozen=True)
class Heading:
    """A measure as the head of a column."""

    name: str  # canonical
    family: str  # the name without parameters and cutoff
    aggregate: str  # how topics become one number: mean, geometric mean, sum or count
    higher_is_better: bool | None  # None where neither end is better
    tests: int  # how many comparisons the correction allows for; 0 where nothing is tested
    untested: str  # why nothing is tested; empty otherwise

    @property
    def whole(self) -> bool:
        """Whether its numbers are counts."""
        return self.aggregate in {"sum", "count"}


@dataclass(frozen=True)
class Against:
    """A run against the baseline, by one measure."""

    difference: float  # run minus baseline; for a geometric mean run divided by baseline
    is_ratio: bool  # which of the two
    # as wide as the correction asks: it leaves out 0 where the difference is significant
    interval: tuple[float, float] | None
    p: float  # corrected, where there is a correction; for the test `bayes` the probability that the run is higher
    significant: bool
    # `better` or `worse`, `higher` or `lower` where neither end is better, `ahead` or `behind` where the test does not
    # speak of means, `unlike` where test and mean point to different sides; empty where the difference is not
    # significant
    verdict: str
    topics: int  # how many both have
    sentence: str  # what may be concluded, and what not


@dataclass(frozen=True)
class Cell:
    """One run by one measure."""

    measure: str
    value: float
    interval: tuple[float, float] | None  # over topics, for 95%
    topics: int  # how many the value rests on
    best: bool  # whether no run has a better number, as far as it is shown
    against: Against | None  # the test against the baseline; None for the baseline itself, and where nothing is tested


@dataclass(frozen=True)
class Row:
    """One run."""

    run: str
    baseline: bool  # whether the others are tested against it
    judged: float  # the share of its first ten documents that are judged, as a mean over topics
    low: bool  # whether that is little
    missing: int  # topics for which it returned nothing
    cells: tuple[Cell, ...]  # in the order of the measures


@dataclass(frozen=True)
class Leaderboard:
    """Runs by measures."""

    # topics, all_topics: how many count, and how many there are
    topics: int
    all_topics: int
    where: str  # which topics count; empty for all
    measures: tuple[Heading, ...]
    baseline: str | None  # None where there are not two runs
    sort: str  # by what the rows are ordered
    test: str
    correction: str
    p_name: str  # what the p of the tests is: `adjusted p`, `p` or `P(higher)`
    rows: tuple[Row, ...]
    # topics_sentence, sentence: which topics count; how many tests of which kind there are, and how intervals are made
    topics_sentence: str
    sentence: str
    warnings: tuple[str, ...]  # what should be known before the numbers are used
    curve: Curve | None  # one measure by cutoff, where that was asked for


def leaderboard(board: Board) -> Leaderboard:
    """Lay out the runs, in the order that was asked for."""
    comparison = board.comparison()
    rows = _rows(board, comparison) if board.workspace.lists and board.mask is not None else []
    by_name = {} if comparison is None else {one.name: one for one in comparison.measures}
    return Leaderboard(
        topics=board.topics,
        all_topics=len(board.workspace.query_ids),
        where=board.asked.where.strip(),
        measures=tuple(
            Heading(
                str(one),
                one.entry.name,
                one.entry.aggregate,
                one.properties.higher_is_better,
                by_name[str(one)].family if str(one) in by_name and by_name[str(one)].pairs else 0,
                by_name[str(one)].untested if str(one) in by_name else "",
            )
            for one in board.measures
        ),
        baseline=board.baseline if comparison is not None else None,
        sort=board.sort,
        test=board.test,
        correction=board.correction,
        p_name=_p_name(comparison),
        rows=tuple(_ordered(rows, board)),
        topics_sentence=_topics_sentence(board),
        sentence=_sentence(board, comparison),
        warnings=_warnings(board, comparison) if rows else (),
        curve=curve_of(board) if rows else None,
    )


def _rows(board: Board, comparison: Comparison | None) -> list[Row]:
    scores = board.scores(board.measures)
    size = len(board.measures)
    shares = _shares(board)
    chosen = set(scores.query_ids)
    if comparison is None:
        flat = board.estimates()
        columns: list[tuple[Estimate, ...]] = [flat[at::size] for at in range(size)]
    else:
        columns = [one.estimates for one in comparison.measures]
    best = [set[int]() if comparison is None else one.best() for one in (comparison.measures if comparison else ())]
    rows: list[Row] = []
    for at, facts in enumerate(scores.runs):
        cells = tuple(
            Cell(
                measure=str(board.measures[m]),
                value=column[at].value,
                interval=column[at].ci,
                topics=column[at].topics,
                best=bool(best) and at in best[m],
                against=None if comparison is None else _against(comparison.measures[m], board.baseline, facts.name),
            )
            for m, column in enumerate(columns)
        )
        share = shares.get(facts.name, math.nan)
        missing = len(chosen.intersection(facts.missing_topics))
        rows.append(
            Row(facts.name, comparison is not None and facts.name == board.baseline, share, share < LOW, missing, cells)
        )
    return rows


def _shares(board: Board) -> dict[str, float]:
    """Give the share of judged documents of each run; nothing where runs have no ranking."""
    try:
        return {one.run: one.value for one in board.scores((parse(SHARE),)).estimates(ci="none")}
    except JudgedError:
        return {}


def _against(one: MeasureComparison, baseline: str, run: str) -> Against | None:
    pair = one.by_runs.get((baseline, run))
    if pair is None:
        return None
    posterior = pair.found.posterior
    return Against(
        difference=pair.shown_difference,
        is_ratio=pair.is_ratio,
        interval=pair.shown_interval,
        p=pair.found.decisive_p if posterior is None else posterior.higher,
        significant=pair.significant,
        verdict=_verdict(one, pair),
        topics=pair.found.n,
        sentence=pair.sentence,
    )


def _verdict(one: MeasureComparison, pair: Pair) -> str:
    """Say on which side of the baseline a run is, where that is significant."""
    if not pair.significant:
        return ""
    if pair.better is None:
        return "unlike"
    if one.higher_is_better is None:
        return "higher" if pair.found.difference > 0 else "lower"
    words = ("better", "worse") if of_means(pair.found.method) else ("ahead", "behind")
    return words[pair.better != pair.second]


def _ordered(rows: list[Row], board: Board) -> list[Row]:
    """Order by a column; rows without a number last, equal ones as the runs were given."""
    falling, name = board.sort.startswith("-"), board.sort.removeprefix("-")
    if name == "run":
        return sorted(rows, key=lambda row: row.run, reverse=falling)
    at = board.names.index(name) if name in board.names else None
    numbers = [row.judged if at is None else row.cells[at].value for row in rows]
    places = range(len(rows))
    order = sorted(places, key=lambda r: (math.isnan(numbers[r]), -numbers[r] if falling else numbers[r]))
    return [rows[r] for r in order]


def _p_name(comparison: Comparison | None) -> str:
    pairs = () if comparison is None else comparison.pairs
    if any(pair.found.posterior is not None for pair in pairs):
        return "P(higher)"
    return "adjusted p" if any(pair.found.correction not in {"", "none"} for pair in pairs) else "p"


def _topics_sentence(board: Board) -> str:
    where, total = board.asked.where.strip(), len(board.workspace.query_ids)
    if board.mask is None:
        return ""
    if not where:
        return f"All {count(total, 'topic')} count."
    return f"{board.topics:,} of {count(total, 'topic')} {'is' if board.topics == 1 else 'are'} left: {where}."


def _sentence(board: Board, comparison: Comparison | None) -> str:
    if not board.workspace.lists or board.mask is None:
        return ""
    if comparison is None:
        how = board.scores(board.measures).interval_words(IntervalMethod(level=LEVEL))
        why = "one run is open: there is nothing to test it against" if len(board.workspace.lists) == 1 else ""
        return f"Nothing is tested{': ' + why if why else ''}; {how}."
    others = len(comparison.scores.runs) - 1
    tested = sum(bool(one.pairs) for one in comparison.measures)
    if not tested:
        return f"Nothing is tested; {comparison.caption.removeprefix('nothing is tested; ')}."
    each = f", by each of {tested} measures" if tested > 1 else f" by {_first_tested(comparison.measures)}"
    return f"{count(others, 'test')} against {board.baseline}{each}: {comparison.caption}."


def _first_tested(measures: Iterable[MeasureComparison]) -> str:
    return next(one.name for one in measures if one.pairs)


def _warnings(board: Board, comparison: Comparison | None) -> tuple[str, ...]:
    made: list[str] = []
    if board.topics < MINIMUM < len(board.workspace.query_ids):
        made.append(f"{topics_text(board.topics)} are few: a mean of fewer than {MINIMUM} is no finding")
    if board.topics > MANY:
        made.append(
            f"over more than {MANY:,} topics the test is Student's t unless another is chosen; one by resampling draws"
            f" {FEWER:,} times"
        )
    scores = board.scores(board.measures)
    if board.topics < len(board.workspace.query_ids) and scores.warnings:
        made.append(OF_ALL_TOPICS)
    return (*made, *(scores.warnings if comparison is None else comparison.warnings))
