"""The catalogue: every measure with a sentence, found by any of its names and by what it is like."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from judged.errors import MeasureError
from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.evaluator.lists import read_missing
from judged.interface.pages.learn.advice import Example, example_of
from judged.interface.pages.learn.lessons import blocks, grades
from judged.interface.pages.problems import Parameters
from judged.results import NUMBER, TEXT, YES_NO, Column, Table, columns_of
from judged.scoring.explanation import compare_tools
from judged.scoring.judging import judge_list
from judged.scoring.measures import pages
from judged.scoring.measures.grammar import find_entry, normalize_name, parse
from judged.scoring.measures.pages import FAMILIES, families, summary, usage
from judged.scoring.measures.parameters import format_value
from judged.scoring.measures.registry import REGISTRY
from judged.scoring.peers.names import BEIR, GDEVAL, MSMARCO
from judged.scoring.peers.tool_measures import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.scoring.measures.base import Entry, Measure


USUAL = ("P", "R", "F", "Success", "SetP", "SetR", "AP", "Rprec", "RR", "CG", "DCG", "nDCG", "Q", "ERR", "RBP", "Bpref")
"""The measures that most courses teach, in the order of the summary."""

_CUTOFF = re.compile(r"[@_.](?:cut[_.@])?(?:k|[0-9]+|\{k\})$")


class AskedCatalogue(Parameters):
    """What is looked for in the catalogue."""

    q: str = Field("", max_length=200, description="A name, that of another tool too (ndcg_cut_10), or words.")
    grades: Literal["", "graded", "binary"] = Field("", description="Whether grades count, or only relevant or not.")
    order: Literal["", "ranking", "set"] = Field("", description="Whether a ranking is needed, or a set will do.")
    unjudged: Literal["", "ignored", "counted"] = Field(
        "", description="Whether unjudged documents at the end leave the score as it is, or change it."
    )
    needs: Literal["", "grades", "more"] = Field(
        "", description="Whether one grade per document is enough, or more must be known."
    )


class Catalogue(PageAnswer):
    """The measures that were found, family by family."""

    kind: ClassVar[str] = "measures"


def catalogue(asked: AskedCatalogue) -> Catalogue:
    """Find measures.

    >>> [catalogue(AskedCatalogue(q=name)).about["best"] for name in ("ndcg_cut_10", "mrr@10")]
    ['nDCG', 'RR']
    >>> catalogue(AskedCatalogue(q="persistence")).table("measures").column("name").values[:2]
    ['RBP', 'NERR10']
    """
    known = [entry for entries in families().values() for entry in entries]
    best = _named(asked.q.strip())
    words = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}") for word in asked.q.casefold().split()]
    found = [
        entry
        for entry in known
        if _suits(entry, asked) and (entry is best or all(word.search(_text(entry.cls)) for word in words))
    ]
    about = {
        "best": best.name if best in found else None,  # the measure whose name was typed, in whatever form
        "found": len(found),
        "total": len(known),
        "narrowed": bool(words or asked.model_dump(exclude_defaults=True)),  # whether something was looked for
        "families": {entry.family: FAMILIES.get(entry.family, "") for entry in found},
    }
    columns = (
        *columns_of(found, "name", "family"),
        Column("title", list(map(usage, found))),
        Column("what", list(map(summary, found))),
        *columns_of(found, "use"),
        Column("found_as", [_found_as(entry, asked.q.strip(), is_best=entry is best) for entry in found]),
    )
    return Catalogue(about, (Table("measures", columns), *([] if about["narrowed"] else [usual()])))


@lru_cache(maxsize=1)
def usual() -> Table:
    """Set the usual measures side by side, each with the parameters of its example.

    >>> [row["measure"] for row in usual().records() if not row["order"]]
    ['P@k', 'R@k', 'F@k', 'Success@k', 'SetP', 'SetR', 'CG']
    """
    entries = [REGISTRY[name] for name in USUAL]
    names = [entry.name + "@k" * bool(entry.cutoff and entry.cutoff.required) for entry in entries]
    measures = [example.explanation.measure for entry in entries if (example := example_of(entry))]
    orders = [{measure.of_list(grades) for grades in permutations((0, 1, 3))} for measure in measures]
    columns = (
        Column("measure", names, TEXT, "Measure", links=[f"/learn/{name}" for name in USUAL]),
        Column("judgments", [("yes or no", "grades")[entry.properties.graded] for entry in entries], TEXT, "Judgments"),
        Column("order", [len(scores) > 1 for scores in orders], YES_NO, "Order counts"),
        Column("normalised", [entry.properties.perfect == 1 for entry in entries], YES_NO, "Perfect is 1"),
        Column("use", [entry.use for entry in entries], TEXT, "Best for"),
    )
    return Table("usual", columns, "The usual measures side by side")


def _found_as(entry: Entry, typed: str, *, is_best: bool) -> str:
    """Give the other name by which a measure was found; empty where it was its own."""
    if is_best:
        return "" if normalize_name(_bare(typed)) == normalize_name(entry.name) else typed
    if not typed or typed.casefold() in entry.name.casefold():
        return ""
    return next((name for name in _other_names(entry) if typed.casefold() in name.casefold()), "")


def _suits(entry: Entry, asked: AskedCatalogue) -> bool:
    known = entry.properties
    more = known.uses_all_labels or entry.family == "facts about documents"
    return (
        (not asked.grades or known.graded == (asked.grades == "graded"))
        and (not asked.order or known.needs_ranking == (asked.order == "ranking"))
        and (not asked.unjudged or known.ignores_unjudged_tail == (asked.unjudged == "ignored"))
        and (not asked.needs or more == (asked.needs == "more"))
    )


def _named(typed: str) -> Entry | None:
    """Find the measure of a name as it is written here or in another tool, whatever its cutoff and case."""
    ours = _by_tools().get(normalize_name(_bare(typed)), "")
    for name in filter(None, (typed, _bare(typed), ours)):
        with suppress(MeasureError):
            return find_entry(name)
    return None


def _bare(name: str) -> str:
    """Take the cutoff and the parameters from a name."""
    return _CUTOFF.sub("", name.partition("(")[0].strip())


@lru_cache(maxsize=1)
def _by_tools() -> dict[str, str]:
    """Give our measure for each name of another tool."""
    tables = [pair for table in (GDEVAL, MSMARCO, BEIR) for pair in table.items()]
    known = {normalize_name(_bare(name)): find_entry(ours).name for name, ours in tables}
    for tool in TOOLS.values():
        for ours, reading in tool.aliases.items():
            known.setdefault(normalize_name(_bare(reading.name)), _bare(ours))
    return known


def _other_names(entry: Entry) -> Iterator[str]:
    yield from entry.aliases
    for tool in TOOLS.values():
        for ours, reading in tool.aliases.items():
            if ours.partition("@")[0] == entry.name:
                yield reading.name.replace("{k}", "k")
    for names in entry.tools.values():
        yield from names.partition(" (")[0].split(", ")


@lru_cache(maxsize=512)
def _text(cls: type) -> str:
    """Give all that a measure can be found by, in small letters."""
    entry: Entry = cls.entry  # type: ignore[attr-defined]
    parts = [entry.name, usage(entry), summary(entry), entry.use, entry.family, entry.cite, *_other_names(entry)]
    return " ".join(parts).casefold()


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
        "title": pages.usage(entry),  # how it is written: `P@k`
        "what": first.text,
        "family": entry.family,
        "definition": rest,
        "inputs": pages.describe_inputs(entry),  # what it reads beside grades and rankings
        "use": entry.use,
        "misleads": entry.misleads,
        # what is true of every score with the default parameters, and the parameters that change it
        "properties": pages.describe_properties(entry),
        "changing": pages.parameters_changing_properties(entry),
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
        Column("default", list(map(pages.describe_default, parameters))),
        Column("behind_at", [parameter.name == entry.cutoff_name for parameter in parameters]),
    )
    means = [
        ",".join(f"{name}={format_value(value)}" for name, value in values.items()) for values in entry.aliases.values()
    ]
    neighbours = [one for one in pages.families()[entry.family] if one.name != entry.name]
    parts = (
        Table("settings", settings),
        Table("other_names", (Column("name", list(entry.aliases)), Column("means", means))),
        _elsewhere(example),
        _measure_named("related", _related(entry)),
        _measure_named("neighbours", neighbours),
    )
    return MeasurePage(about, parts)


def _measure_named(name: str, entries: Sequence[Entry]) -> Table:
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
