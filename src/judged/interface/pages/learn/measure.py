"""The page of one measure, made of what the registry says about it."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.evaluator.lists import read_missing
from judged.interface.pages.learn.advice import Example, example_of
from judged.interface.pages.learn.lessons import blocks, grades
from judged.results import NUMBER, TEXT, Column, Table, columns_of
from judged.scoring.explanation import compare_tools
from judged.scoring.judging import judge_list
from judged.scoring.measures import pages
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.parameters import spell
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.scoring.measures.base import Entry, Measure

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_ENGLISH = {"Accuracy", "Fallout", "Generality", "Hole", "Judged", "Success", "Unjudged", "Utility"}
"""Names that are also words, as which they mean no measure unless they stand as code."""


class MeasurePage(PageAnswer):
    """All about one measure, as a little Markdown: code between backticks, formulas between dollars."""

    kind: ClassVar[str] = "measure"


@lru_cache(maxsize=256)
def measure_page(cls: type[Measure]) -> MeasurePage:
    """Collect everything about a measure; a class that is defined anew is another one.

    >>> page = measure_page(REGISTRY["AP"].cls)
    >>> page.about["title"], round(page.about["example"].score, 3), page.table("other_names").column("name").values
    ('AP, AP@k', 0.567, ['MAP', 'map_cut'])
    """
    entry = cls.entry
    first, *rest = blocks(pages.definition(entry))
    example = example_of(entry)
    named = example.measure if example else entry.name
    of_answers = entry.properties.reads_answers
    quoted = f'"{named}"' if "(" in named else named
    about = {
        "name": entry.name,
        "title": pages.written(entry),  # how it is written: `P@k`
        "what": first.text,
        "family": entry.family,
        "definition": rest,
        "inputs": pages.inputs(entry),  # what it reads beside grades and rankings
        "use": entry.use,
        "misleads": entry.misleads,
        # what is true of every score with the default parameters, and the parameters that change it
        "properties": pages.properties(entry),
        "changing": pages.changing(entry),
        "tools": entry.tools,  # what other tools call it
        "examples": blocks(pages.examples(entry)),
        "command": f"judged {'rag evaluate RESPONSES' if of_answers else 'evaluate QRELS RUN'} -m {quoted}",
        "python": f'judged.{"rag.evaluate(responses" if of_answers else "evaluate(qrels, run"}, "{named}")',
        "source": entry.cite,
        "example": example,
    }
    parameters = entry.all_parameters
    settings = (
        *columns_of(parameters, "name", "meaning", "values"),
        Column("default", list(map(pages.default, parameters))),
        Column("behind_at", [parameter.name == entry.at for parameter in parameters]),
    )
    means = [",".join(f"{name}={spell(value)}" for name, value in values.items()) for values in entry.aliases.values()]
    neighbours = [one for one in pages.families()[entry.family] if one.name != entry.name]
    parts = (
        Table("settings", settings),
        Table("other_names", (Column("name", list(entry.aliases)), Column("means", means))),
        _elsewhere(example),
        _named("related", _related(entry)),
        _named("neighbours", neighbours),
    )
    return MeasurePage(about, parts)


def _named(name: str, entries: Sequence[Entry]) -> Table:
    """Lay out measures, each with a sentence."""
    return Table(name, (*columns_of(entries, "name"), Column("what", list(map(pages.summary, entries)))))


def _elsewhere(example: Example | None) -> Table:
    """Ask what other tools print under this name for the list of the example."""
    rows: list[dict[str, Any]] = []
    if example is not None and example.typed:
        judged = judge_list(grades(example.typed), missing=read_missing(example.missing))
        compared = compare_tools(judged.qrels, judged.run, judged.query_ids[0], parse(example.measure))
        rows = [row for row in compared.table().records()[1:] if row["called"]]
        for row in rows:
            known = row["score"] is not None
            row["differs"] = not (known and math.isclose(row["score"], compared.score, rel_tol=1e-9, abs_tol=1e-12))
    columns = columns_of(
        rows,
        ("tool", TEXT, "Tool"),
        ("called", TEXT, "Its name"),
        ("score", NUMBER, "Score"),
        ("measure", TEXT, "In judged"),
        ("why", TEXT, "Difference"),
        "differs",
    )
    return Table("elsewhere", columns, "Other tools", kinds=["differs" * row["differs"] for row in rows])


def _related(entry: Entry) -> list[Entry]:
    """Find the measures that the texts name, then those whose texts name this one."""
    others = [one for one in REGISTRY.values() if one.name != entry.name]
    words = _words(entry.cls)
    named = [one for one in others if one.name in words]
    naming = [one for one in others if entry.name in _words(one.cls) and one not in named]
    return named + naming


@lru_cache(maxsize=256)
def _words(cls: type[Measure]) -> frozenset[str]:
    """Give the names in a measure's texts; a single letter may be a variable, and a word just a word."""
    entry = cls.entry
    texts = f"{pages.definition(entry)} {entry.use} {entry.misleads}"
    words = {word for word in _WORD.findall(texts) if len(word) > 1 and word not in _ENGLISH}
    return frozenset(words | {word for word in _ENGLISH if f"`{word}" in texts or f"{word}@" in texts})
