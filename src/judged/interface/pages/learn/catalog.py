"""Catalog of measures, searchable by any name and by properties."""

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
from judged.interface.pages.problems import Parameters, text_field
from judged.results import NUMBER, TEXT, YES_NO, Column, Table, columns_of
from judged.scoring.explanation import compare_tools
from judged.scoring.judging import judge_list
from judged.scoring.measures import pages
from judged.scoring.measures.grammar import find_entry, normalize_name, parse
from judged.scoring.measures.pages import FAMILIES, families, summary, usage
from judged.scoring.measures.parameters import format_value
from judged.scoring.measures.registry import REGISTRY
from judged.scoring.names import find_names, name_index, other_names
from judged.scoring.peers.names import BEIR, GDEVAL, MSMARCO
from judged.scoring.peers.tool_measures import TOOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.scoring.measures.base import Entry, Measure


COMMON_MEASURES = (
    *("P", "R", "F", "Success", "SetP", "SetR", "AP", "Rprec"),
    *("RR", "CG", "DCG", "nDCG", "Q", "ERR", "RBP", "Bpref"),
)
"""Measures that most courses teach, in display order."""

_CUTOFF = re.compile(r"[@_.](?:cut[_.@])?(?:k|[0-9]+|\{k\})$")


class CatalogQuery(Parameters):
    """Parameters of a search in the catalog."""

    q: str = text_field(
        "Name of a measure in judged, name in another tool (such as ndcg_cut_10), or words to find.", limit=200
    )
    grades: Literal["", "graded", "binary"] = Field(
        "", description="Whether the measure uses grades, or only whether documents are relevant."
    )
    order: Literal["", "ranking", "set"] = Field(
        "", description="Whether the measure requires a ranking, or only a set of documents."
    )
    unjudged: Literal["", "ignored", "counted"] = Field(
        "", description="Whether the measure ignores unjudged documents at the end of the list."
    )
    needs: Literal["", "grades", "more"] = Field(
        "", description="Whether the measure requires only one grade per document, or more data."
    )


class Catalog(PageAnswer):
    """Matching measures, by family."""

    kind: ClassVar[str] = "measures"


def catalog(query: CatalogQuery) -> Catalog:
    """Search for measures.

    >>> [catalog(CatalogQuery(q=name)).about["best"] for name in ("ndcg_cut_10", "mrr@10")]
    ['nDCG', 'RR']
    >>> catalog(CatalogQuery(q="persistence")).table("measures").column("name").values[:2]
    ['RBP', 'NERR10']
    """
    all_entries = [entry for entries in families().values() for entry in entries]
    best_match = _find_by_name(query.q.strip())
    words = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}") for word in query.q.casefold().split()]
    named = {best_match and best_match.name, *(name.name for name in find_names(query.q, name_index(), similar=False))}
    matches = [
        entry
        for entry in all_entries
        if _suits(entry, query) and (entry.name in named or all(word.search(_text(entry.cls)) for word in words))
    ]
    about = {
        "best": best_match.name if best_match in matches else None,  # the measure with the typed name, in any notation
        "n_matches": len(matches),
        "total": len(all_entries),
        "is_filtered": bool(words or query.model_dump(exclude_defaults=True)),  # whether any filter is set
        "families": {entry.family: FAMILIES.get(entry.family, "") for entry in matches},
    }
    matched_names = [_matched_name(entry, query.q.strip(), is_best=entry is best_match) for entry in matches]
    columns = (
        *columns_of(matches, "name", "family"),
        Column("title", list(map(usage, matches))),
        Column("description", list(map(summary, matches))),
        *columns_of(matches, "use"),
        Column("matched_name", matched_names),
    )
    return Catalog(about, (Table("measures", columns), *([] if about["is_filtered"] else [common_measures_table()])))


@lru_cache(maxsize=1)
def common_measures_table() -> Table:
    """Return the table of common measures, each with the parameters of its example.

    >>> [row["measure"] for row in common_measures_table().records() if not row["order"]]
    ['P@k', 'R@k', 'F@k', 'Success@k', 'SetP', 'SetR', 'CG']
    """
    entries = [REGISTRY[name] for name in COMMON_MEASURES]
    names = [entry.name + "@k" * bool(entry.cutoff and entry.cutoff.required) for entry in entries]
    measures = [example.explanation.measure for entry in entries if (example := example_of(entry))]
    orders = [{measure.of_list(grades) for grades in permutations((0, 1, 3))} for measure in measures]
    columns = (
        Column("measure", names, TEXT, "Measure", links=[f"/learn/{name}" for name in COMMON_MEASURES]),
        Column("judgments", [("binary", "graded")[entry.properties.graded] for entry in entries], TEXT, "Judgments"),
        Column("order", [len(scores) > 1 for scores in orders], YES_NO, "Depends on the order"),
        Column("normalized", [entry.properties.perfect == 1 for entry in entries], YES_NO, "Maximum is 1"),
        Column("use", [entry.use for entry in entries], TEXT, "When to use it"),
    )
    return Table("common_measures", columns, "Common measures")


def _matched_name(entry: Entry, search_text: str, *, is_best: bool) -> str:
    """Return the other name that matched the search; empty if the own name did."""
    if is_best:
        return "" if normalize_name(_base_name(search_text)) == normalize_name(entry.name) else search_text
    if not search_text or search_text.casefold() in entry.name.casefold():
        return ""
    return next((name for name in other_names(entry) if search_text.casefold() in name.casefold()), "")


def _suits(entry: Entry, query: CatalogQuery) -> bool:
    properties = entry.properties
    needs_extra_labels = properties.uses_all_labels or entry.family == "facts about documents"
    return (
        (not query.grades or properties.graded == (query.grades == "graded"))
        and (not query.order or properties.needs_ranking == (query.order == "ranking"))
        and (not query.unjudged or properties.ignores_unjudged_tail == (query.unjudged == "ignored"))
        and (not query.needs or needs_extra_labels == (query.needs == "more"))
    )


def _find_by_name(search_text: str) -> Entry | None:
    """Find a measure by its name here or in another tool, ignoring cutoff and case."""
    judged_name = _measure_by_tool_name().get(normalize_name(_base_name(search_text)), "")
    for name in filter(None, (search_text, _base_name(search_text), judged_name)):
        with suppress(MeasureError):
            return find_entry(name)
    return None


def _base_name(name: str) -> str:
    """Remove cutoff and parameters from a name."""
    return _CUTOFF.sub("", name.partition("(")[0].strip())


@lru_cache(maxsize=1)
def _measure_by_tool_name() -> dict[str, str]:
    """Return our measure for each name in another tool."""
    name_pairs = [pair for table in (GDEVAL, MSMARCO, BEIR) for pair in table.items()]
    measures = {normalize_name(_base_name(name)): find_entry(judged_name).name for name, judged_name in name_pairs}
    for tool in TOOLS.values():
        for judged_name, reading in tool.aliases.items():
            measures.setdefault(normalize_name(_base_name(reading.name)), _base_name(judged_name))
    return measures


@lru_cache(maxsize=512)
def _text(cls: type) -> str:
    """Return the searchable text of a measure, in lower case."""
    entry: Entry = cls.entry  # type: ignore[attr-defined]
    parts = [entry.name, usage(entry), summary(entry), entry.use, entry.family, entry.cite, *other_names(entry)]
    return " ".join(parts).casefold()


_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_ENGLISH = {"Accuracy", "Fallout", "Generality", "Hole", "Judged", "Success", "Unjudged", "Utility"}
"""Names that are also English words; they refer to a measure only if formatted as code."""


class MeasurePage(PageAnswer):
    """Page of a measure. Texts are simple Markdown: code in backticks, formulas in dollars."""

    kind: ClassVar[str] = "measure"


_CALLS = {
    "rankings": ("evaluate QRELS RUN", "evaluate(qrels, run"),
    "answers": ("rag evaluate RESPONSES", "rag.evaluate(responses"),
    "trajectories": ("trajectories evaluate TRAJECTORIES", "trajectories.evaluate(trajectories"),
}
"""Command, and start of the call in Python, by what a measure reads."""


@lru_cache(maxsize=256)
def measure_page(cls: type[Measure]) -> MeasurePage:
    """Collect everything about a measure. The cache key is the class, because a measure can be redefined.

    >>> page = measure_page(REGISTRY["AP"].cls)
    >>> page.about["title"], round(page.about["example"].score, 3), page.table("other_names").column("name").values
    ('AP, AP@k', 0.567, ['MAP', 'map_cut'])
    """
    entry = cls.entry
    first, *definition = blocks(pages.definition(entry))
    example = example_of(entry)
    example_name = example.measure if example else entry.name
    command, call = _CALLS[entry.properties.reads]
    quoted_name = f'"{example_name}"' if "(" in example_name else example_name
    about = {
        "name": entry.name,
        "title": pages.usage(entry),  # notation: `P@k`
        "description": first.text,
        "family": entry.family,
        "definition": definition,
        "inputs": pages.describe_inputs(entry),  # inputs other than grades and rankings
        "use": entry.use,
        "misleads": entry.misleads,
        # properties with default parameters, and the parameters that change them
        "properties": pages.describe_properties(entry),
        "property_parameters": pages.parameters_changing_properties(entry),
        "tools": entry.tools,  # names in other tools
        "examples": blocks(pages.examples(entry)),
        "command": f"judged {command} -m {quoted_name}",
        "python": f'judged.{call}, "{example_name}")',
        "source": entry.cite,
        "example": example,
    }
    parameters = entry.all_parameters
    settings = (
        *columns_of(parameters, "name", "meaning", "values"),
        Column("default", list(map(pages.describe_default, parameters))),
        Column("is_cutoff", [parameter.name == entry.cutoff_name for parameter in parameters]),
    )
    aliases = entry.aliases.values()
    meanings = [",".join(f"{name}={format_value(value)}" for name, value in values.items()) for values in aliases]
    neighbors = [other for other in pages.families()[entry.family] if other.name != entry.name]
    parts = (
        Table("settings", settings),
        Table("other_names", (Column("name", list(entry.aliases)), Column("means", meanings))),
        _tool_scores(example),
        _measure_table("related", _related(entry)),
        _measure_table("neighbors", neighbors),
    )
    return MeasurePage(about, parts)


def _measure_table(name: str, entries: Sequence[Entry]) -> Table:
    return Table(name, (*columns_of(entries, "name"), Column("description", list(map(pages.summary, entries)))))


def _tool_scores(example: Example | None) -> Table:
    """Return what other tools compute under this name for the list of the example."""
    rows: list[dict[str, Any]] = []
    if example is not None and example.typed:
        judged = judge_list(grades(example.typed), missing=read_missing(example.missing))
        comparison = compare_tools(judged.qrels, judged.run, judged.query_ids[0], parse(example.measure))
        rows = [row for row in comparison.table().records()[1:] if row["tool_measure"]]
        for row in rows:
            has_score = row["score"] is not None
            is_equal = has_score and math.isclose(row["score"], comparison.score, rel_tol=1e-9, abs_tol=1e-12)
            row["differs"] = not is_equal
    columns = columns_of(
        rows,
        ("tool", TEXT, "Tool"),
        ("tool_measure", TEXT, "Name in the tool"),
        ("score", NUMBER, "Score"),
        ("measure", TEXT, "Name in judged"),
        ("reason", TEXT, "Difference"),
        "differs",
    )
    return Table("tool_scores", columns, "Scores of other tools", kinds=["differs" * row["differs"] for row in rows])


def _related(entry: Entry) -> list[Entry]:
    """Return measures that the texts mention, then those whose texts mention this one."""
    others = [other for other in REGISTRY.values() if other.name != entry.name]
    words = _words(entry.cls)
    mentioned = [other for other in others if other.name in words]
    mentioning = [other for other in others if entry.name in _words(other.cls) and other not in mentioned]
    return mentioned + mentioning


@lru_cache(maxsize=256)
def _words(cls: type[Measure]) -> frozenset[str]:
    """Return the names of measures in the texts; single letters may be variables, and are ignored."""
    entry = cls.entry
    texts = f"{pages.definition(entry)} {entry.use} {entry.misleads}"
    words = {word for word in _WORD.findall(texts) if len(word) > 1 and word not in _ENGLISH}
    return frozenset(words | {word for word in _ENGLISH if f"`{word}" in texts or f"{word}@" in texts})
