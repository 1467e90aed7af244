"""`conversations`: scores of turns, averaged over turns or over conversations, and by depth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.pipelines.trajectories.evaluation import mean_difference, mean_interval
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Headline, Sentences, Table, columns_of
from judged.results.decimals import counted
from judged.results.table import CHANGE, p_value
from judged.scoring.evaluation import evaluate
from judged.scoring.measures.aggregates import divide
from judged.stats.inputs import spread
from judged.stats.interval import IntervalMethod
from judged.stats.ratio import UnitRatio
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.table import IntervalLimits
    from judged.results.types import Floats, Ints
    from judged.scoring.evaluation.scores import Scores

_MEAN_NOTE = (
    "Mean over turns: each turn has the same weight. Mean over conversations: each conversation has the same weight."
    " Differences are of means over conversations; p is not corrected for several runs."
)
_TURN_NOTE = (
    "Change: from the previous turn of the same conversations. First score of 0: number of conversations whose first"
    " turn with a score of 0 is this one."
)


class TurnMean(NamedTuple):
    """Mean score of one run at one depth, over the conversations that have this turn."""

    run: str
    measure: str
    turn: int
    conversations: int
    value: float
    ci: IntervalLimits
    change: float  # change from the previous turn of the same conversations; NaN for the first
    change_ci: IntervalLimits
    first_failures: int  # conversations whose first turn with score 0 is this one


class ConversationMean(NamedTuple):
    """Mean scores of one run: over turns, in which long conversations weigh more, and over conversations."""

    run: str
    measure: str
    turns: int
    conversations: int
    over_turns: float
    over_turns_ci: IntervalLimits
    over_conversations: float
    over_conversations_ci: IntervalLimits
    difference: float  # mean over conversations minus that of the baseline, the first run; NaN for the baseline
    difference_ci: IntervalLimits
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
        mean_columns = columns_of(
            means, ("run", TEXT), ("measure", TEXT), ("turns", COUNT), ("conversations", COUNT),
            ("over_turns", NUMBER, "mean over turns"), ("over_conversations", NUMBER, "mean over conversations"),
            *([difference, ("p", p_value(1 - self.level))] if several else []), intervals=True,
        )  # fmt: skip
        turn_columns = columns_of(
            turns, ("run", TEXT), ("measure", TEXT), ("turn", COUNT), ("conversations", COUNT),
            ("value", NUMBER, "mean"), ("change", CHANGE), ("first_failures", COUNT, "first score of 0"),
            intervals=True,
        )  # fmt: skip
        turn_table = Table("turns", turn_columns, "Turns", _TURN_NOTE, labels=3)
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
        mean_table = Table("means", mean_columns, "Means", _MEAN_NOTE, labels=2)
        return (Sentences(tuple(sentences)), mean_table, chart, turn_table)


def turn_of(query_id: str) -> tuple[str, int]:
    """Return the conversation and the number of a turn with an id as in TREC CAsT and iKAT.

    Raises
    ------
    InputError
        If the id has no conversation or number.

    Examples
    --------
    >>> turn_of("9-1_12")
    ('9-1', 12)
    """
    conversation, _, turn = query_id.rpartition("_")
    if not conversation or not turn.isdecimal():
        fix = "write ids such as 31_4 for turn 4 of conversation 31, or pass turns"
        raise InputError(f"the query id {query_id!r} has no conversation and turn", fix=fix)
    return conversation, int(turn)


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
    if missing := [query_id for query_id in scores.query_ids if turns is not None and query_id not in turns]:
        raise InputError(f"no turn for the query id {missing[0]!r}", fix="add it to turns")
    pairs = [turn_of(query_id) if turns is None else turns[query_id] for query_id in scores.query_ids]
    if len(set(pairs)) < len(pairs):
        raise InputError("two queries are the same turn of a conversation", fix="pass a turn of its own for each query")
    _, rows = np.unique([str(conversation) for conversation, _ in pairs], return_inverse=True)
    depths, columns = np.unique([number for _, number in pairs], return_inverse=True)
    tables = np.full((*scores.values.shape[:2], int(rows.max()) + 1, len(depths)), np.nan)
    tables[:, :, rows, columns] = scores.values
    means, turn_means = list[ConversationMean](), list[TurnMean]()
    for j, measure in enumerate(scores.measures):
        baseline = None
        for run, table in zip(scores.run_names, tables[:, j], strict=True):
            key, bounds = (run, str(measure)), measure.properties.bounds
            n_turns = (~np.isnan(table)).sum(axis=1).astype(np.float64)
            by_conversation = divide(np.nansum(table, axis=1), n_turns, np.nan)
            over_turns = _over_turns(np.nansum(table, axis=1), n_turns, level, bounds)
            difference: Any = (math.nan, None, math.nan)
            if baseline is None:
                baseline = by_conversation
            else:
                tested, ci, p = mean_difference(baseline, by_conversation, level=level, seed=seed)
                difference = tested.difference, ci, p
            counts = int(n_turns.sum()), int((n_turns > 0).sum())
            over_conversations = mean_interval(by_conversation, level, bounds)
            means.append(ConversationMean(*key, *counts, *over_turns, *over_conversations, *difference))
            turn_means += (TurnMean(*key, *row) for row in _by_turn(table, depths, bounds, level))
    return Conversations(tuple(means), tuple(turn_means), scores, level, scores.notes)


def _over_turns(
    totals: Floats, n_turns: Floats, level: float, bounds: tuple[float, float]
) -> tuple[float, IntervalLimits]:
    """Return the mean over turns, with an interval over conversations."""
    has_turns = n_turns > 0
    ratio = UnitRatio.of(totals[has_turns], n_turns[has_turns])
    if insufficiency(ratio.units, variance=spread(totals[has_turns] / n_turns[has_turns])) is not None:
        return ratio.value, None
    low, high = ratio.interval(student_quantile(0.5 + level / 2, ratio.units - 1))
    return ratio.value, None if math.isnan(low) else (max(low, bounds[0]), min(high, bounds[1]))


def _by_turn(table: Floats, depths: Ints, bounds: tuple[float, float], level: float) -> Iterator[tuple[Any, ...]]:
    """Yield the numbers of each turn; `table` has the scores by conversation and turn."""
    width = bounds[1] - bounds[0]
    is_first_zero = (table == 0) & (np.cumsum(table == 0, axis=1) == 1)
    for i, depth in enumerate(depths.tolist()):
        scores, n = table[:, i], int((~np.isnan(table[:, i])).sum())
        follows = i > 0 and depths[i - 1] == depth - 1
        change = mean_interval(scores - table[:, i - 1] if follows else np.zeros(0), level, (-width, width))
        if n:
            yield depth, n, *mean_interval(scores, level, bounds), *change, int(is_first_zero[:, i].sum())
