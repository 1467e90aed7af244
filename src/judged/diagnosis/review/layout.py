"""A list of labels to review as text: its table, its sentences, Markdown."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from judged.data.texts import Text, Texts, shortened
from judged.diagnosis.review.rates import rates_sentences, rates_table
from judged.tables import Table

if TYPE_CHECKING:
    from judged.diagnosis.review.making import ReviewItem, ReviewList

_WIDTH = 100  # of texts, where no width is given
_LEAST = 40
_RUNS = 4  # with columns of their own
_BIAS = (
    "What is listed is what these runs got wrong: if it alone is judged again, their scores rise against those of runs"
    " that were not looked at. Judge the list without knowing runs and ranks (the TSV form hides them), and score all"
    " runs with the new judgments."
)


def items_table(listed: ReviewList) -> Table:
    """Lay out the items: topic, document, kind, grades, and rank and change by run."""
    sliced = any(one.slices for one in listed.items)
    header = ["topic", "document", "kind", *(["slices"] if sliced else []), "grade", "other", *_columns(listed)]
    rows = tuple(_row(listed, one, sliced=sliced) for one in listed.items)
    return Table(tuple(header), rows, labels=4 if sliced else 3)


def _columns(listed: ReviewList) -> list[str]:
    """Name the columns of runs: one each for rank and change of few runs, and of many what sums them up."""
    if len(listed.runs) == 1:
        return ["rank", "change"]
    parts = [f"{what} {run}" for what in ("rank", "change") for run in listed.runs]
    parts = parts if len(listed.runs) <= _RUNS else [f"in first {listed.k} of", "largest change"]
    return [*parts, "difference", "turns"]


def _row(listed: ReviewList, one: ReviewItem, *, sliced: bool) -> tuple[str, ...]:
    grade = "-" if one.grade is None else f"{one.grade:g}"
    row = [one.query_id, one.doc_id, one.kind, *([", ".join(one.slices)] if sliced else [])]
    row += [grade, f"{one.other_grade:g}"]
    if len(listed.runs) <= _RUNS:
        row += ["-" if rank is None else str(rank) for rank in one.ranks.values()]
        row += [_change(value) for value in one.change.values()]
    else:
        shown = sum(rank is not None and rank <= listed.k for rank in one.ranks.values())
        known = [value for value in one.change.values() if not math.isnan(value)]
        row += [f"{shown} of {len(listed.runs)} runs", _change(max(known, key=abs, default=math.nan))]
    if one.difference is not None:
        row += [_change(one.difference), "yes" if one.turns else ""]
    return tuple(row)


def _change(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.4f}"


def sentences(listed: ReviewList) -> tuple[str, ...]:
    """Say what was found, what the changes mean, and what may not be concluded."""
    said = rates_sentences(listed.rates, listed.k)
    counts = ", ".join(f"{listed.found[kind]} {_plural(kind, listed.found[kind])}" for kind in listed.kinds)
    total = sum(listed.found[kind] for kind in listed.kinds)
    shown = f"; the {len(listed.items)} most informative are listed" if len(listed.items) < total else ""
    of_any = " of some run" if len(listed.runs) > 1 else ""
    said.append(f"Labels to review, each topic and document once: {counts}{of_any}{shown}.")
    if len(listed.runs) > 1:
        first, second = listed.runs[:2]
        many = "1 label" if listed.turning == 1 else f"{listed.turning} labels"
        said.append(
            f"{many} would, each by itself, turn which of {first} and {second} has the better {listed.measure} on its"
            f" topic{'; these stand first' if listed.turning else ''}. The difference is {second} minus {first}."
        )
    said.append(
        f"The change is that of the topic's {listed.measure}, if the label were the other grade: {listed.highest:g} for"
        " what is judged not relevant or not judged, 0 for what is relevant. It does not say how likely that is."
    )
    return (*said, _BIAS)


def _plural(kind: str, count: int) -> str:
    return {"unjudged": "unjudged"}.get(kind, kind if count == 1 else f"{kind}s")


def text(listed: ReviewList, width: int | None) -> str:
    """Write rates, the items with their texts under them, and sentences."""
    said = "\n".join(
        textwrap.fill(one, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False)
        for one in listed.sentences
    )
    blocks = [rates_table(listed.rates, listed.k).text(width=width)]
    if listed.items:
        blocks.append(_items_text(listed, width))
    return "\n\n".join([*blocks, said])


def _items_text(listed: ReviewList, width: int | None) -> str:
    """Draw the items, with the texts of each below its row where the rows are in one piece, or else below all."""
    drawn = items_table(listed).text(width=width)
    lines = drawn.split("\n")
    below = [_texts(one, width or _WIDTH) for one in listed.items]
    if not any(below):
        return drawn
    if len(lines) == len(listed.items) + 1:
        pieces = [f"{line}\n{extra}" if extra else line for line, extra in zip(lines[1:], below, strict=True)]
        return "\n".join([lines[0], *pieces])
    named = [f"{one.query_id} {one.doc_id}\n{extra}" for one, extra in zip(listed.items, below, strict=True) if extra]
    return "\n".join([drawn, "", *named])


def _texts(one: ReviewItem, width: int) -> str:
    parts = [f"query: {one.query}"] if one.query else []
    room = max(width - 4, _LEAST)
    if one.title or one.text:
        snippet = Texts({one.doc_id: Text(one.title, one.text)}).snippet(one.doc_id, 2 * room)
        parts.append(f"document: {snippet}")
    indented = (textwrap.wrap(shortened(part, 2 * room), room, subsequent_indent="  ") for part in parts)
    return "\n".join(f"    {line}" for lines in indented for line in lines)


def markdown(listed: ReviewList) -> str:
    """Write rates, items with query and the beginning of each document as columns, and sentences as a list."""
    blocks = [rates_table(listed.rates, listed.k).markdown()]
    if listed.items:
        blocks.append(_with_texts(listed).markdown())
    return "\n\n".join([*blocks, "\n".join(f"- {one}" for one in listed.sentences)])


def _with_texts(listed: ReviewList) -> Table:
    table = items_table(listed)
    queries = [shortened(" ".join(one.query.split()), 120) for one in listed.items]
    snippets = [Texts({"": Text(one.title, one.text)}).snippet("", 160) for one in listed.items]
    columns = [(name, column) for name, column in (("query", queries), ("says", snippets)) if any(column)]
    rows = tuple(
        (*row[: table.labels], *(column[at] for _, column in columns), *row[table.labels :])
        for at, row in enumerate(table.rows)
    )
    header = (*table.header[: table.labels], *(name for name, _ in columns), *table.header[table.labels :])
    return Table(header, rows, labels=table.labels + len(columns))
