"""Scores by group of documents as tables, text, and plain values."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from judged.decimals import decimal
from judged.evaluation.document import number
from judged.tables import Cell, Table, markdown_prose

if TYPE_CHECKING:
    from judged.slicing.document_scores import DocumentScores, GroupEstimate

_WIDTH = 100
_SMALL = "few"


def table(found: DocumentScores, measure: str | None = None, run: str | None = None) -> Table:
    """Lay out one row a group: its relevant documents, its topics, and the numbers."""
    first = found.estimate(run=run, measure=measure).estimate
    whole = next(iter(found.scores.values()))
    by_measure = len(whole.runs) == 1 or run is not None
    columns = [(first.run, name) for name in whole.measure_names] if by_measure else [
        (name, first.measure) for name in whole.run_names
    ]  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for group in found.groups:
        cells = [found.estimate(group, *column) for column in columns]
        rows.append((group, str(cells[0].relevant), str(cells[0].topics), *map(_cell, cells)))
    names = [name for _, name in columns] if by_measure else [f"{name} {first.measure}" for name, _ in columns]
    return Table((found.by, "relevant", "topics", *names), tuple(rows))


def _cell(one: GroupEstimate) -> Cell:
    estimate = one.estimate
    if estimate.aggregate in {"sum", "count"} and not math.isnan(estimate.value):
        return Cell(f"{estimate.value:.0f}")
    rest = "" if estimate.ci is None else f"[{decimal(estimate.ci[0], 3)}, {decimal(estimate.ci[1], 3)}]"
    return Cell(decimal(estimate.value), rest=rest, mark=_SMALL if one.small else "")


def sentences(found: DocumentScores) -> tuple[str, ...]:
    """Say what the rows are, what is lost most, and what may not be concluded."""
    made = [
        f"In each row only documents of one {found.by} are relevant, and only topics that have such documents count."
    ]
    rows = [one for one in found.estimates if not one.small]
    whole = next(iter(found.scores.values()))
    for run in whole.run_names:
        mine = [one for one in rows if (one.estimate.run, one.estimate.measure) == (run, whole.measure_names[0])]
        groups = [one for one in mine if one.group != found.groups[0] and not math.isnan(one.estimate.value)]
        if len(groups) > 1:
            least = min(groups, key=lambda one: one.estimate.value)
            made.append(
                f"{run} has its lowest {least.estimate.measure} where {found.by} is {least.group}:"
                f" {decimal(least.estimate.value)} over {least.topics} topics and {least.relevant} relevant documents."
            )
    made.append(
        "Compare runs within a row. Rows have different topics, and documents of other groups count as not relevant,"
        " so that two rows of one run are no test of each other."
    )
    if any(one.small for one in found.estimates):
        made.append(f"Rows marked {_SMALL!r} have fewer than {found.minimum} topics.")
    return tuple(made)


def text(found: DocumentScores, width: int | None) -> str:
    """Write the tables and what they say: with several runs, one table a measure."""
    said = "\n".join(textwrap.fill(one, width or _WIDTH) for one in sentences(found))
    return "\n\n".join([*(one.text(width=width) for one in _tables(found)), said])


def markdown(found: DocumentScores) -> str:
    """Write the same in Markdown."""
    return "\n\n".join([*(one.markdown() for one in _tables(found)), *map(markdown_prose, sentences(found))])


def _tables(found: DocumentScores) -> list[Table]:
    whole = next(iter(found.scores.values()))
    several = len(whole.runs) > 1
    return [table(found, name) for name in whole.measure_names] if several else [table(found)]


def rows(found: DocumentScores) -> Table:
    """Lay out one number a row, in full precision."""
    header = (found.by, "run", "measure", "aggregate", "value", "ci_low", "ci_high", "topics", "relevant", "small")
    made = [
        (
            *(one.group, one.estimate.run, one.estimate.measure, one.estimate.aggregate),
            *("" if math.isnan(value) else repr(value) for value in (one.estimate.value, *_limits(one))),
            *(str(one.topics), str(one.relevant), str(one.small).lower()),
        )
        for one in found.estimates
    ]
    return Table(header, tuple(made), labels=4)


def _limits(one: GroupEstimate) -> tuple[float, float]:
    return one.estimate.ci or (math.nan, math.nan)


def document(found: DocumentScores) -> dict[str, Any]:
    """Give everything as plain Python values."""
    return {
        "by": found.by,
        "minimum": found.minimum,
        "ci": vars(found.method),
        "warnings": list(found.warnings),
        "sentences": list(sentences(found)),
        "results": [
            {
                "group": one.group,
                "run": one.estimate.run,
                "measure": one.estimate.measure,
                "aggregate": one.estimate.aggregate,
                "value": number(one.estimate.value),
                "ci": None if one.estimate.ci is None else [number(bound) for bound in one.estimate.ci],
                "topics": one.topics,
                "relevant": one.relevant,
                "small": one.small,
            }
            for one in found.estimates
        ],
    }
