"""Tested changes of several quantities, over all topics and by slice, with one correction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.slicing.parts import compare_subsets
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Column, Show, Table, columns_of, counted, listed, p_value
from judged.results.decimals import decimal, p_text
from judged.results.table import best_first_order
from judged.scoring.measures.aggregates import aggregate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from judged.comparison import Choices
    from judged.comparison.slicing.parts import TopicSubset, ValuePair
    from judged.results.types import Floats
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries
    from judged.stats.results import Difference


SMALL = "few"
"""Mark of a slice with too few topics for a test."""
_MAX_TOPICS = 8  # listed in a sentence
_MAX_CHANGES = 6  # listed in a sentence
_TEST_COLUMNS = (
    "test", "level", "alpha", "p", "correction", "statistic", "effect", "differing", "left_out", "resamples", "exact",
    "seed", "alternative", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Mean:
    """Mean over topics with its confidence limits, which are NaN if there is no interval."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def ci(self) -> tuple[float, float] | None:
        """Confidence interval, or None."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def text(self, digits: int = 4) -> str:
        """Format the mean with its interval."""
        return _format_with_interval(self.value, self.ci, digits)


@dataclass(frozen=True)
class TestedChange:
    """Tested change of a quantity over a set of topics."""

    system: str  # the system that changed
    slice: str  # the name of the slice, or `all topics`
    part: str  # name of the quantity
    result: Difference  # difference and test, corrected by Holm within its family
    small: bool = False  # whether the slice has too few topics for a test; p is then NaN
    is_overall: bool = False  # whether the topics are all topics

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most alpha."""
        return self.result.significant

    @property
    def by_slice(self) -> bool:
        """Whether the change is tested on a slice."""
        return not self.is_overall and not math.isnan(self.result.p)

    @property
    def estimate_text(self) -> str:
        """Difference with its interval, formatted."""
        return _format_with_interval(self.result.difference, self.result.interval, sign="+")

    @property
    def p_value_text(self) -> str:
        """Corrected p-value, formatted."""
        return f"p {p_text(self.result.decisive_p, self.result.alpha)}"

    def describe(self, suffix: str = "") -> str:
        """Format the change, and state if it is not significant. `suffix` follows the difference."""
        caveat = "" if self.significant else ", not significant"
        return f"{self.estimate_text}{suffix} ({self.p_value_text}{caveat})"


def _format_with_interval(value: float, limits: tuple[float, float] | None, digits: int = 4, sign: str = "") -> str:
    """Format a number and its interval.

    >>> _format_with_interval(0.25, (0.1, 0.4)), _format_with_interval(0.25, None, sign="+")
    ('0.2500 [0.100, 0.400]', '+0.2500')
    """
    interval = "" if limits is None else f" [{decimal(limits[0], 3, sign)}, {decimal(limits[1], 3, sign)}]"
    return decimal(value, digits, sign) + interval


def mean_of(values: Floats) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan


def changes_of_quantities(
    quantities: Mapping[tuple[str, str], ValuePair], topic_sets: Sequence[TopicSubset], choices: Choices
) -> tuple[TestedChange, ...]:
    """Test each quantity, given by system and part, over each set of topics."""
    untested = {(i, j) for i, topics in enumerate(topic_sets) if topics.small for j in range(len(quantities))}
    tests = compare_subsets(list(quantities.values()), topic_sets, choices, untested)
    return tuple(
        TestedChange(system, topics.name, part, tests[i, j], topics.small, topics.is_all)
        for i, topics in enumerate(topic_sets)
        for j, (system, part) in enumerate(quantities)
    )


def changes_table(changes: Sequence[TestedChange], title: str, note: str, part: Show = TEXT, *, runs: bool) -> Table:
    """Return a table with one row per change. `title` heads the differences, and `part` formats the quantities."""
    tests = [change.result for change in changes]
    few = [SMALL if change.small else "" for change in changes]
    stars = ["*" if change.significant else "" for change in changes]
    alpha = tests[0].alpha
    columns = (
        Column("run", [change.system for change in changes], TEXT, only="" if runs else "data"),
        *columns_of(changes, ("slice", TEXT), ("part", part, "of")),
        Column("n", [test.n for test in tests], COUNT, "topics", details=few),
        Column("difference", [test.difference for test in tests], CHANGE, title, ci=[test.interval for test in tests]),
        Column("adjusted", [test.decisive_p for test in tests], p_value(alpha), "p", mark=stars),
        *columns_of(changes, "small", "significant"),
        *columns_of(tests, *_TEST_COLUMNS),
    )
    return Table("changes", columns, note=note, labels=3 if runs else 2)


def lost_table(losses: Iterable[tuple[str, str, Discoveries]], query_ids: Sequence[str]) -> Table:
    """Return a data table with one row per run and part: the topics that lost."""
    rows = [
        {
            "run": run,
            "part": part,
            **{name: value for name, value in vars(discoveries).items() if name != "mask"},
            "sentence": discoveries.sentence,
            "topics": [query_ids[i] for i in np.flatnonzero(discoveries.mask).tolist()],
        }
        for run, part, discoveries in losses
    ]
    return Table("lost", tuple(Column(name, [row[name] for row in rows]) for name in rows[0]), only="data")


def describe_losers(lost: Discoveries, query_ids: Sequence[str]) -> str:
    """Describe the number of topics that lost, and list the first, as a sentence without capital and full stop."""
    topics = [query_ids[i] for i in np.flatnonzero(lost.mask).tolist()]
    listing = (
        f". Selected topics: {', '.join(topics[:_MAX_TOPICS])}{', ...' if len(topics) > _MAX_TOPICS else ''}"
        if topics
        else ""
    )
    return f"{lost.sentence[0].lower()}{lost.sentence[1:].removesuffix('.')}{listing}"


def describe_slice_changes(
    changes: Iterable[TestedChange], tests: int, pair: str, format_part: Callable[[str], str] = str
) -> Iterator[str]:
    """Describe the slices with a significant change among `tests` tests; `pair` names the two systems."""
    tested = sorted((change for change in changes if change.by_slice), key=lambda change: change.result.difference)
    significant = [
        f"on {change.slice}, {format_part(change.part)} {change.describe()}" for change in tested if change.significant
    ]
    n_more = len(significant) - _MAX_CHANGES
    more = [f"{counted(n_more, 'more change is', 'more changes are')} in the table"] if n_more > 0 else []
    if significant:
        listing = "; ".join([*significant[:_MAX_CHANGES], *more])
        yield (
            f"Significant changes by slice, {pair} (p corrected by Holm for {tests} tests): {listing}. No other change"
            " on a slice is significant."
        )
    elif tested:
        yield f"No change on a slice is significant, {pair} (p corrected by Holm for {tests} tests)."


def regraded_runs_table(
    measure: Measure, scores: Mapping[str, Floats], topic_index: int, changed: Mapping[str, float]
) -> Table:
    """Return a table of the runs whose mean changes if one topic is graded differently, with the new order of runs.

    Parameters
    ----------
    measure
        Measure of the scores.
    scores
        Scores of each run, shape (T,); NaN if a topic has no score.
    topic_index
        Index of the topic with other grades.
    changed
        Score of each run on that topic with the other grades.

    Examples
    --------
    >>> from judged.scoring.measures.grammar import parse
    >>> scores = {"a": np.array([0.5, 1.0]), "b": np.array([1.0, 0.25])}
    >>> moved = regraded_runs_table(parse("AP"), scores, 0, {"a": 0.0, "b": 1.0})
    >>> moved.records()[0]["difference"], moved.note
    (-0.25, 'The AP over all 2 topics changes for 1 of 2 runs. The largest change is that of a, from 0.7500 to 0.5000. \
Runs that move up: b from rank 2 to 1.')
    """
    rows: list[dict[str, Any]] = []
    for run, before in scores.items():
        after = before.copy()
        after[topic_index] = changed[run]
        row: dict[str, Any] = {"run": run, "topic": float(before[topic_index]), "topic_after": changed[run]}
        for name, values in (("before", before), ("after", after)):
            row[name] = aggregate(measure.entry.aggregate, values[~np.isnan(values)])
        rows.append(row | {"difference": row["after"] - row["before"]})
    lower_is_better = measure.properties.higher_is_better is False
    for name, place in (("before", "rank"), ("after", "rank_after")):
        for rank, i in enumerate(
            best_first_order([row[name] for row in rows], lower_is_better=lower_is_better), start=1
        ):
            rows[i][place] = rank
    rows.sort(key=lambda row: row["rank_after"])
    moved = [row for row in rows if abs(row["difference"]) > 0]  # False for NaN
    columns = columns_of(
        moved,
        ("run", TEXT, "Run"),
        ("topic", NUMBER, "Topic before"),
        ("topic_after", NUMBER, "Topic after"),
        ("before", NUMBER, "Mean before"),
        ("after", NUMBER, "Mean after"),
        ("difference", CHANGE, "Difference"),
        ("rank", COUNT, "Rank before"),
        ("rank_after", COUNT, "Rank after"),
    )
    topics = len(next(iter(scores.values())))
    note = f"The {measure} over all {counted(topics, 'topic')} changes for {len(moved)} of {counted(len(rows), 'run')}"
    if moved:
        most = max(moved, key=lambda row: abs(row["difference"]))
        note += (
            f". The largest change is that of {most['run']}, from {decimal(most['before'])} to {decimal(most['after'])}"
        )
        improved = [row for row in rows if row["rank"] > row["rank_after"]]
        rises = [f"{row['run']} from rank {row['rank']} to {row['rank_after']}" for row in improved]
        note += f". Runs that move up: {listed(rises[:3])}" if rises else ". The order of the runs does not change"
    return Table("regraded_runs", columns, f"Runs whose {measure} changes", f"{note}.")
