"""What other grades of one topic change in every run, and in the order of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.results import CHANGE, COUNT, NUMBER, TEXT, Table, columns_of, counted, listed
from judged.results.decimals import decimal
from judged.results.table import order_of
from judged.scoring.measures.aggregates import aggregate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.results.types import Floats
    from judged.scoring.measures.base import Measure


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
