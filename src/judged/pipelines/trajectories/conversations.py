"""`conversations`: scores of turns, averaged over turns or over conversations, and by depth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Headline, Sentences, Table, columns_of
from judged.results.decimals import counted
from judged.results.table import CHANGE, p_value
from judged.scoring.evaluation import evaluate
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.paired import paired_test
from judged.stats.ratio import UnitRatio, student_quantiles
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats, Ints
    from judged.scoring.evaluation.scores import Scores

Interval = tuple[float, float] | None


class TurnMean(NamedTuple):
    """Mean score of one run at one depth, over the conversations that have this turn."""

    run: str
    measure: str
    turn: int
    conversations: int
    value: float
    ci: Interval
    change: float  # change from the previous turn of the same conversations; NaN for the first
    change_ci: Interval
    first_failures: int  # conversations whose first turn with score 0 is this one


class ConversationMean(NamedTuple):
    """Mean scores of one run: over turns, in which long conversations weigh more, and over conversations."""

    run: str
    measure: str
    turns: int
    conversations: int
    over_turns: float
    over_turns_ci: Interval
    over_conversations: float
    over_conversations_ci: Interval
    difference: float  # mean over conversations minus that of the baseline, the first run; NaN for the baseline
    difference_ci: Interval
    p: float


@dataclass(frozen=True, eq=False, repr=False)
class Conversations(Answer):
    """Scores of conversations; all intervals and tests are over conversations, whose turns are not independent."""

    kind: ClassVar[str] = "conversations"
    main: ClassVar[str] = "means"

    means: tuple[ConversationMean, ...]
    turns: tuple[TurnMean, ...]
    scores: Scores  # of turns
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def headline(self) -> Headline:
        """Return the mean over conversations of the first run and measure."""
        first = self.means[0]
        sentence = f"Mean of {first.run} over {counted(first.conversations, 'conversation')} with {first.turns} turns."
        status, word = ("unknown", "not enough data") if first.over_conversations_ci is None else ("info", "estimate")
        return Headline(
            status, word, sentence, f"{first.measure}, mean over conversations", first.over_conversations,  # type: ignore[arg-type]
            ci=first.over_conversations_ci, level=self.level,
        )  # fmt: skip

    def facts(self) -> Mapping[str, Any]:
        """Return the confidence level."""
        return {"level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Return the means, the curve by turn, and its table."""
        means, turns = self.means, self.turns
        several = len({row.run for row in means}) > 1
        difference = ("difference", CHANGE, f"difference from {means[0].run}")
        fields = (
            ("run", TEXT), ("measure", TEXT), ("turns", COUNT), ("conversations", COUNT),
            ("over_turns", NUMBER, "mean over turns"), ("over_conversations", NUMBER, "mean over conversations"),
            *([difference, ("p", p_value(1 - self.level))] if several else []),
        )  # fmt: skip
        mean_table = Table(
            "means",
            columns_of(means, *fields, intervals=True),
            "Means",
            "Mean over turns: each turn has the same weight. Mean over conversations: each conversation has the same"
            " weight. Differences are of means over conversations; p is not corrected for several runs.",
            labels=2,
        )
        turn_table = Table(
            "turns",
            columns_of(
                turns, ("run", TEXT), ("measure", TEXT), ("turn", COUNT), ("conversations", COUNT),
                ("value", NUMBER, "mean"), ("change", CHANGE), ("first_failures", COUNT, "first score of 0"),
                intervals=True,
            ),
            "Turns",
            "Change: from the previous turn of the same conversations. First score of 0: number of conversations whose"
            " first turn with a score of 0 is this one.",
            labels=3,
        )  # fmt: skip
        measure = means[0].measure
        chart_rows = turn_table.take([row for row, turn in enumerate(turns) if turn.measure == measure])
        chart = Chart(
            "depth", f"{measure} by turn", chart_rows, "Means over the conversations that have the turn.",
            kind="lines", x="turn", y="value", color="run", spread="cutoff",
        )  # fmt: skip
        sentences = [
            f"{row.run}: {row.measure} {row.over_conversations:.4f} as mean over conversations, {row.over_turns:.4f} as"
            " mean over turns."
            for row in means
        ]
        return (Sentences(tuple(sentences)), mean_table, chart, turn_table)


def split_turns(query_ids: Sequence[str], separator: str = "_") -> tuple[list[str], list[int]]:
    """Split ids of turns, as in TREC CAsT and iKAT, into conversation and number of the turn.

    Raises
    ------
    InputError
        If an id has no separator or number.

    Examples
    --------
    >>> split_turns(["31_1", "9-1_12"])
    (['31', '9-1'], [1, 12])
    """
    parts = [query_id.rpartition(separator) for query_id in query_ids]
    for query_id, (conversation, _, turn) in zip(query_ids, parts, strict=True):
        if not conversation or not turn.isdecimal():
            fix = "write ids such as 31_4 for turn 4 of conversation 31, or pass turns"
            raise InputError(f"the query id {query_id!r} has no conversation and turn", fix=fix)
    return [conversation for conversation, _, _ in parts], [int(turn) for _, _, turn in parts]


def conversations(
    qrels: Any,
    runs: Any,
    measures: Any = ("nDCG@3", "nDCG@5", "R@100"),
    *,
    turns: Mapping[str, tuple[str, int]] | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> Conversations:
    """Score conversational search by turn: means over turns and over conversations, and curves by depth.

    Parameters
    ----------
    qrels, runs, measures
        As for `judged.evaluate`; each query is a turn.
    turns
        Conversation and number of the turn of each query id. Default: ids as in TREC CAsT and iKAT, such as ``31_4``.
    level
        Confidence level of the intervals, which are over conversations.
    seed
        Seed of the randomization test of differences from the first run.
    options
        Further options of `judged.evaluate`.

    Raises
    ------
    InputError
        If an input is invalid, or an id has no turn.

    Examples
    --------
    >>> qrels = {"1_1": {"a": 1}, "1_2": {"b": 1}, "2_1": {"c": 1}}
    >>> run = {"1_1": ["a"], "1_2": ["x"], "2_1": ["c"]}
    >>> row = conversations(qrels, run, "RR").means[0]
    >>> round(row.over_turns, 4), row.over_conversations
    (0.6667, 0.75)
    """
    IntervalMethod("adjusted", level)  # raises if the level is invalid, before any computation
    scores = evaluate(qrels, runs, measures, **options)
    names, numbers = split_turns(scores.query_ids) if turns is None else _looked_up(scores.query_ids, turns)
    conversation_ids = sorted(set(names))
    codes = np.searchsorted(np.array(conversation_ids), np.array(names)).astype(np.int64)
    depth = np.array(numbers, dtype=np.int64)
    means, turn_means = list[ConversationMean](), list[TurnMean]()
    for j, measure in enumerate(scores.measures):
        baseline = _by_conversation(scores.values[0, j], codes)
        for i, run in enumerate(scores.run_names):
            values = scores.values[i, j]
            means.append(
                _mean_of(run, str(measure), values, codes, measure.properties.bounds, baseline, level, seed, i)
            )
            turn_means += _by_turn(run, str(measure), values, codes, depth, measure.properties.bounds, level)
    return Conversations(tuple(means), tuple(turn_means), scores, level, scores.notes)


def _looked_up(query_ids: Sequence[str], turns: Mapping[str, tuple[str, int]]) -> tuple[list[str], list[int]]:
    if missing := [query_id for query_id in query_ids if query_id not in turns]:
        raise InputError(f"no turn for the query id {missing[0]!r}", fix="add it to turns")
    return [str(turns[query_id][0]) for query_id in query_ids], [int(turns[query_id][1]) for query_id in query_ids]


def _by_conversation(values: Floats, codes: Ints) -> Floats:
    has_score = ~np.isnan(values)
    counts = np.bincount(codes[has_score], minlength=int(codes.max()) + 1)
    totals = np.bincount(codes[has_score], values[has_score], minlength=len(counts))
    return np.divide(totals, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def _interval(values: Floats, bounds: tuple[float, float], level: float) -> Interval:
    valid = values[~np.isnan(values)]
    if not len(valid) or insufficiency(len(valid), variance=float(valid.var())) is not None:
        return None
    low, high = mean_intervals(valid[np.newaxis], IntervalMethod("adjusted", level), bounds)[0].tolist()
    return low, high


def _mean_of(
    run: str, measure: str, values: Floats, codes: Ints, bounds: tuple[float, float], baseline: Floats, level: float,
    seed: int, index: int,
) -> ConversationMean:  # fmt: skip
    has_score, by_conversation = ~np.isnan(values), _by_conversation(values, codes)
    ratio = UnitRatio.of_rows(codes[has_score], values[has_score])
    over_turns_ci = None
    if insufficiency(ratio.units, variance=float(np.nanvar(by_conversation))) is None:
        critical = float(student_quantiles(0.5 + level / 2, np.array([ratio.units - 1.0]))[0])
        low, high = ratio.interval(critical)
        over_turns_ci = None if math.isnan(low) else (max(low, bounds[0]), min(high, bounds[1]))
    difference, difference_ci, p = math.nan, None, math.nan
    shared = ~np.isnan(baseline) & ~np.isnan(by_conversation)
    if index and shared.any():
        tested = paired_test(baseline[shared], by_conversation[shared], level=level, seed=seed, resamples=10_000)
        difference = float((by_conversation - baseline)[shared].mean())
        if insufficiency(int(shared.sum()), "verdict") is None:
            difference_ci, p = tested.interval, tested.p
    return ConversationMean(
        run, measure, int(has_score.sum()), int((~np.isnan(by_conversation)).sum()), ratio.value, over_turns_ci,
        float(np.nanmean(by_conversation)), _interval(by_conversation, bounds, level), difference, difference_ci, p,
    )  # fmt: skip


def _by_turn(
    run: str, measure: str, values: Floats, codes: Ints, depth: Ints, bounds: tuple[float, float], level: float
) -> list[TurnMean]:
    has_score = np.flatnonzero(~np.isnan(values))
    score_of = {(int(codes[row]), int(depth[row])): float(values[row]) for row in has_score.tolist()}
    width = bounds[1] - bounds[0]
    first_zero = dict[int, int]()
    for conversation, turn in sorted(score_of):
        if score_of[conversation, turn] == 0:
            first_zero.setdefault(conversation, turn)
    rows = list[TurnMean]()
    for turn in sorted({turn for _, turn in score_of}):
        scores = np.array([value for (_, number), value in score_of.items() if number == turn])
        changes = np.array([
            value - score_of[conversation, turn - 1]
            for (conversation, number), value in score_of.items()
            if number == turn and (conversation, turn - 1) in score_of
        ])  # fmt: skip
        rows.append(
            TurnMean(
                run, measure, turn, len(scores), float(scores.mean()), _interval(scores, bounds, level),
                float(changes.mean()) if len(changes) else math.nan, _interval(changes, (-width, width), level),
                sum(first == turn for first in first_zero.values()),
            )
        )  # fmt: skip
    return rows
