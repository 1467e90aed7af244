"""Differences of several quantities over all topics and by slice, corrected for how many are looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.slicing.parts import compare_subsets
from judged.results import CHANGE, COUNT, NUMBER, TEXT, Column, Show, Table, columns_of, counted, listed, p_value
from judged.results.decimals import decimal, p_text
from judged.results.table import order_of
from judged.scoring.measures.aggregates import aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from judged.comparison import Choices
    from judged.comparison.slicing.parts import TopicSubset, ValuePair
    from judged.results.types import Floats
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries
    from judged.stats.results import Difference


SMALL = "few"
"""The mark of a slice that is too small to be judged by."""
_NAMED = 8  # topics in a sentence
_SLICES = 6  # changes in a sentence
_TESTED = (
    "test", "level", "alpha", "p", "correction", "statistic", "effect", "differing", "left_out", "resamples", "exact",
    "seed", "alternative", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Mean:
    """A mean over topics with its interval; NaN limits where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def ci(self) -> tuple[float, float] | None:
        """The interval; None where there is none."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def text(self, digits: int = 4) -> str:
        """Write it with its interval."""
        return _with_interval(self.value, self.ci, digits)


@dataclass(frozen=True)
class Change:
    """How much a quantity changed over some topics."""

    system: str  # the system that changed
    slice: str  # the name of the slice, or `all topics`
    part: str  # the quantity
    result: Difference  # the difference with its test, corrected by Holm within its family
    small: bool = False  # whether the slice is too small to be tested: then p is NaN
    every: bool = False  # whether these are all topics

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most alpha."""
        return self.result.significant

    @property
    def by_slice(self) -> bool:
        """Whether it was tested on a slice."""
        return not self.every and not math.isnan(self.result.p)

    @property
    def size(self) -> str:
        """The change with its interval."""
        return _with_interval(self.result.difference, self.result.interval, sign="+")

    @property
    def p(self) -> str:
        """The corrected p-value."""
        return f"p {p_text(self.result.decisive_p, self.result.alpha)}"

    def told(self, of: str = "") -> str:
        """Say how much something changed, and whether that is more than luck."""
        return f"{self.size}{of} ({self.p}{'' if self.significant else ', not distinguishable from 0'})"


def _with_interval(value: float, limits: tuple[float, float] | None, digits: int = 4, sign: str = "") -> str:
    """Write a number and its interval.

    >>> _with_interval(0.25, (0.1, 0.4)), _with_interval(0.25, None, sign="+")
    ('0.2500 [0.100, 0.400]', '+0.2500')
    """
    ends = "" if limits is None else f" [{decimal(limits[0], 3, sign)}, {decimal(limits[1], 3, sign)}]"
    return decimal(value, digits, sign) + ends


def mean_of(values: Floats) -> float:
    """Average what is known; NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def compared(
    quantities: Mapping[tuple[str, str], ValuePair], where: Sequence[TopicSubset], choices: Choices
) -> tuple[Change, ...]:
    """Test each quantity, by system and part, over each set of topics, set by set."""
    small = {(at, place) for at, some in enumerate(where) if some.small for place in range(len(quantities))}
    tests = compare_subsets(list(quantities.values()), where, choices, small)
    return tuple(
        Change(system, some.name, part, tests[at, place], some.small, some.is_all)
        for at, some in enumerate(where)
        for place, (system, part) in enumerate(quantities)
    )


def changes_table(changes: Sequence[Change], title: str, note: str, part: Show = TEXT, *, runs: bool) -> Table:
    """Lay out one row a change, with its test; the title is that of the differences, and `part` names quantities."""
    tests = [change.result for change in changes]
    few = [SMALL if change.small else "" for change in changes]
    stars = ["*" if change.significant else "" for change in changes]
    alpha = tests[0].alpha
    columns = (
        Column("run", [change.system for change in changes], TEXT, only="" if runs else "data"),
        *columns_of(changes, ("slice", TEXT), ("part", part, "of")),
        Column("n", [test.n for test in tests], COUNT, "topics", beside=few),
        Column("difference", [test.difference for test in tests], CHANGE, title, ci=[test.interval for test in tests]),
        Column("adjusted", [test.decisive_p for test in tests], p_value(alpha), "p", mark=stars),
        *columns_of(changes, "small", "significant"),
        *columns_of(tests, *_TESTED),
    )
    return Table("changes", columns, note=note, labels=3 if runs else 2)


def lost_table(lost: Iterable[tuple[str, str, Discoveries]], query_ids: Sequence[str]) -> Table:
    """Lay out, for a run and a part each, the topics that lost; for data alone."""
    rows = [
        {
            "run": run,
            "part": part,
            **{name: value for name, value in vars(topics).items() if name != "mask"},
            "sentence": topics.sentence,
            "found": [query_ids[at] for at in np.flatnonzero(topics.mask).tolist()],
        }
        for run, part, topics in lost
    ]
    return Table("lost", tuple(Column(name, [row[name] for row in rows]) for name in rows[0]), only="data")


def who_lost(lost: Discoveries, query_ids: Sequence[str]) -> str:
    """Say how many topics lost, and name the first: without a capital and a full stop."""
    names = [query_ids[at] for at in np.flatnonzero(lost.mask).tolist()]
    named = f" ({', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''})" if names else ""
    return f"{lost.sentence[0].lower()}{lost.sentence[1:].removesuffix('.')}{named}"


def told_by_slice(changes: Iterable[Change], tests: int) -> Iterator[str]:
    """Say on which slices something changed by more than luck, of so many tests; without a capital."""
    tested = sorted((change for change in changes if change.by_slice), key=lambda change: change.result.difference)
    seen = [f"{change.slice} by {change.part} {change.told()}" for change in tested if change.significant]
    more = [f"{len(seen) - _SLICES} more in the table"] if len(seen) > _SLICES else []
    if seen:
        told = "; ".join([*seen[:_SLICES], *more])
        yield f"by slice: {told}; Holm over {tests} tests, and nothing is claimed of other slices."
    elif tested:
        yield f"in no slice is a change more than luck might make it (Holm over {tests} tests)."


def every_run_regraded(measure: Measure, scores: Mapping[str, Floats], at: int, changed: Mapping[str, float]) -> Table:
    """Lay out what becomes of each run that moves, and say what becomes of their order.

    Parameters
    ----------
    measure
        Of the scores.
    scores
        Those of each run on all topics, (T,) each; NaN where it has none.
    at
        Which of the topics has other grades.
    changed
        The score of each run on that topic with these.

    Examples
    --------
    >>> from judged.scoring.measures.grammar import parse
    >>> scores = {"a": np.array([0.5, 1.0]), "b": np.array([1.0, 0.25])}
    >>> moved = every_run_regraded(parse("AP"), scores, 0, {"a": 0.0, "b": 1.0})
    >>> moved.records()[0]["difference"], moved.note
    (-0.25, 'Over all 2 topics 1 of 2 runs move in AP, a most, from 0.7500 to 0.5000. \
Up in the order of the runs: b from place 2 to 1.')
    """
    rows: list[dict[str, Any]] = []
    for run, before in scores.items():
        after = before.copy()
        after[at] = changed[run]
        row: dict[str, Any] = {"run": run, "topic": float(before[at]), "topic_after": changed[run]}
        for name, values in (("before", before), ("after", after)):
            row[name] = aggregate(measure.entry.aggregate, values[~np.isnan(values)])
        rows.append(row | {"difference": row["after"] - row["before"]})
    rising = measure.properties.higher_is_better is False
    for name, place in (("before", "place"), ("after", "place_after")):
        for number, which in enumerate(order_of([row[name] for row in rows], lower_is_better=rising), start=1):
            rows[which][place] = number
    rows.sort(key=lambda row: row["place_after"])
    moved = [row for row in rows if abs(row["difference"]) > 0]  # NaN is none
    columns = columns_of(
        moved,
        ("run", TEXT, "Run"),
        ("topic", NUMBER, "Topic before"),
        ("topic_after", NUMBER, "Topic after"),
        ("before", NUMBER, "All before"),
        ("after", NUMBER, "All after"),
        ("difference", CHANGE, "Difference"),
        ("place", COUNT, "Place before"),
        ("place_after", COUNT, "Place after"),
    )
    topics = len(next(iter(scores.values())))
    said = f"Over all {counted(topics, 'topic')} {len(moved)} of {counted(len(rows), 'run')} move in {measure}"
    if moved:
        most = max(moved, key=lambda row: abs(row["difference"]))
        said += f", {most['run']} most, from {decimal(most['before'])} to {decimal(most['after'])}"
        risen = [row for row in rows if row["place"] > row["place_after"]]
        passed = [f"{row['run']} from place {row['place']} to {row['place_after']}" for row in risen]
        said += f". Up in the order of the runs: {listed(passed[:3])}" if passed else ". The order of the runs stays"
    return Table("regraded_runs", columns, f"Every run that moves in {measure}", f"{said}.")
