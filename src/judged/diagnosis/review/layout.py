"""A list of labels to review as text: its table, its sentences, Markdown."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from judged.data.texts import Text, Texts, shortened
from judged.decimals import decimal
from judged.diagnosis.review.rates import rates_sentences, rates_table, short_rates_table
from judged.tables import Table, markdown_list

if TYPE_CHECKING:
    from judged.diagnosis.review.rows import ReviewItem, ReviewTable

_WIDTH = 100  # of texts, where no width is given
_LEAST = 40
_RUNS = 4  # with columns of their own
_SAID = {"topic", "document", "kind", "slices", "grade", "other"}  # columns that a paragraph says in its own way
_BIAS = (
    "What is listed is what these runs got wrong: if it alone is judged again, their scores rise against those of runs"
    " that were not looked at. Judge the list without knowing runs and ranks (the TSV form hides them), and score all"
    " runs with the new judgments."
)


def items_table(listed: ReviewTable) -> Table:
    """Lay out the items: topic, document, kind, grades, and rank and change by run."""
    sliced = any(one.slices for one in listed.items)
    header = ["topic", "document", "kind", *(["slices"] if sliced else []), "grade", "other", *_columns(listed)]
    rows = tuple(_row(listed, one, sliced=sliced) for one in listed.items)
    return Table(tuple(header), rows, labels=4 if sliced else 3)


def _columns(listed: ReviewTable) -> list[str]:
    """Name the columns of runs: one each for rank and change of few runs, and of many what sums them up."""
    if len(listed.runs) == 1:
        return ["rank", "change"]
    parts = [f"{what} {run}" for what in ("rank", "change") for run in listed.runs]
    parts = parts if len(listed.runs) <= _RUNS else [f"in first {listed.k} of", "largest change"]
    return [*parts, "difference", "turns"]


def _row(listed: ReviewTable, one: ReviewItem, *, sliced: bool) -> tuple[str, ...]:
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
    return "-" if math.isnan(value) else decimal(value, 4, "+")


def sentences(listed: ReviewTable) -> tuple[str, ...]:
    """Say what was found, what the changes mean, and what may not be concluded."""
    said = rates_sentences(listed.rates, listed.k)
    counts = ", ".join(f"{listed.found[kind]} {_plural(kind, listed.found[kind])}" for kind in listed.kinds)
    total = sum(listed.found[kind] for kind in listed.kinds)
    shown = f"; {_listed(len(listed.items))}" if len(listed.items) < total else ""
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


def _listed(count: int) -> str:
    if not count:
        return "none is listed"
    return "the most informative one is listed" if count == 1 else f"the {count} most informative are listed"


def _plural(kind: str, count: int) -> str:
    return {"unjudged": "unjudged"}.get(kind, kind if count == 1 else f"{kind}s")


def text(listed: ReviewTable, width: int | None) -> str:
    """Write rates, the items with their texts under them, and sentences."""
    said = "\n".join(_filled(one, width) for one in sentences(listed))
    blocks = _rates_text(listed, width)
    if listed.items:
        blocks.append(_items_text(listed, width))
    return "\n\n".join([*blocks, said])


def _rates_text(listed: ReviewTable, width: int | None) -> list[str]:
    """Draw the rates where there is room; else the shares alone, or nothing if the sentences say them all."""
    drawn = rates_table(listed.rates, listed.k).text(width=width)
    if _in_one_piece(drawn):
        return [drawn]
    if len(listed.rates) <= _RUNS and not any(one.slice for one in listed.rates):
        return []
    legend = (
        f"wrong: judged not relevant; not in {listed.k}: relevant documents that are not among the first {listed.k}"
    )
    return [f"{short_rates_table(listed.rates, listed.k).text(width=width)}\n{_filled(legend, width)}"]


def _in_one_piece(drawn: str) -> bool:
    return "\n\n" not in drawn


def _items_text(listed: ReviewTable, width: int | None) -> str:
    """Draw the items, one a row, or where there is no room one a paragraph, with the texts of each below it."""
    table = items_table(listed)
    drawn = table.text(width=width)
    first, *heads = drawn.split("\n")
    if not _in_one_piece(drawn):
        heads = [_paragraph(one, table.header, row, width) for one, row in zip(listed.items, table.rows, strict=True)]
    below = [_texts(one, width or _WIDTH) for one in listed.items]
    pieces = [f"{head}\n{extra}" if extra else head for head, extra in zip(heads, below, strict=True)]
    return "\n".join([first, *pieces] if _in_one_piece(drawn) else pieces)


def _paragraph(one: ReviewItem, header: tuple[str, ...], row: tuple[str, ...], width: int | None) -> str:
    """Write one item as a paragraph: what its row of the table says."""
    known = zip(header, row, strict=True)
    parts = [
        name if name == "turns" else f"{name} {value}"
        for name, value in known
        if name not in _SAID and value not in {"", "-"}
    ]
    slices = f" ({', '.join(one.slices)})" if one.slices else ""
    grade = "no grade" if one.grade is None else f"grade {one.grade:g}"
    head = f"{one.query_id} {one.doc_id}{slices}: {one.kind}, {grade}; with {one.other_grade:g}: {', '.join(parts)}"
    return _filled(head, width, indent="  ")


def _filled(sentence: str, width: int | None, indent: str = "") -> str:
    return textwrap.fill(
        sentence,
        min(width or _WIDTH, _WIDTH),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _texts(one: ReviewItem, width: int) -> str:
    parts = [f"query: {one.query}"] if one.query else []
    room = max(width - 4, _LEAST)
    if one.title or one.text:
        snippet = Texts({one.doc_id: Text(one.title, one.text)}).snippet(one.doc_id, 2 * room)
        parts.append(f"document: {snippet}")
    indented = (textwrap.wrap(shortened(part, 2 * room), room, subsequent_indent="  ") for part in parts)
    return "\n".join(f"    {line}" for lines in indented for line in lines)


def markdown(listed: ReviewTable) -> str:
    """Write rates, items with query and the beginning of each document as columns, and sentences as a list."""
    blocks = [rates_table(listed.rates, listed.k).markdown()]
    if listed.items:
        blocks.append(_with_texts(listed).markdown())
    return "\n\n".join([*blocks, markdown_list(sentences(listed))])


def _with_texts(listed: ReviewTable) -> Table:
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
