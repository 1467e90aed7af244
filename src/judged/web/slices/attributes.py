"""The attributes by which topics can be sliced, what each means, and the slices that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.data.compute import pc
from judged.errors import InputError
from judged.slicing import Expression, Slicing, slice_topics
from judged.slicing.known import OUTCOME
from judged.slicing.languages import can_guess
from judged.web.workspace import OF_ALL_TOPICS, RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.web.slices.asked import Sliced
    from judged.web.workspace import Workspace

_KINDS = {"double": "number", "bool": "true or false", "string": "text"}
MANY_TOPICS = 1000
"""With more, tests draw less often, and intervals are Student's t: it says the same in a tenth of the time."""

_MANY = 12  # values: a text with more makes no slices
_SHOWN = 5  # values that stand for all
_JUDGMENTS, _TEXTS, _TRAFFIC = "the judgments", "the texts of the queries", "the attribute traffic"
_MEANINGS = {
    "relevant": (_JUDGMENTS, "number", "how many relevant documents the topic has"),
    "relevant_band": (_JUDGMENTS, "text", "the same in bands: none, 1, 2-5, 6-20, 21+"),
    "judged": (_JUDGMENTS, "number", "how many documents were judged for the topic"),
    "words": (_TEXTS, "number", "how many words the query has"),
    "length": (_TEXTS, "text", "the same in bands: 1, 2-3, 4-6, 7+"),
    "kind": (_TEXTS, "text", "the form of the query: address, quoted, question, identifier, keywords"),
    "script": (_TEXTS, "text", "the writing system of the query"),
    "language": (_TEXTS, "text", "the language of the query, as far as its few words tell"),
    "traffic_share": (_TRAFFIC, "number", "the topic's share of all traffic"),
    "frequency": (_TRAFFIC, "text", "head, torso or tail by traffic"),
    OUTCOME: ("the first run", "text", "where that run has its first relevant document: an outcome, not a property"),
}


@dataclass(frozen=True)
class AttributeRow:
    """One attribute of the topics."""

    name: str
    source: str  # `given`, or what it is derived from
    kind: str  # `text`, `number` or `true or false`
    meaning: str  # of a derived one, what it says; of a given one, some of its values
    values: int | None  # how many different values a given one has
    slices: bool  # whether it makes slices as it stands: a text of too many values does not


def attributes(workspace: Workspace) -> tuple[AttributeRow, ...]:
    """Name the attributes of the topics: those that were given, then those that follow from the data."""
    return workspace.remember(("attributes",), lambda: (*_given(workspace), *_derived(workspace)))


def _given(workspace: Workspace) -> Iterator[AttributeRow]:
    known = workspace.known()
    for name in known.names:
        column = known.column(name)
        kind = _KINDS[str(column.type)]
        found = sorted(pc.unique(column.drop_null()).to_pylist())
        some = ", ".join(_written(one) for one in found[:_SHOWN])
        shown = f"{_written(found[0])} to {_written(found[-1])}" if kind == "number" and found else some
        more = ", ..." if kind != "number" and len(found) > _SHOWN else ""
        yield AttributeRow(
            name, "given", kind, shown + more, len(found), bool(found) and (kind != "text" or len(found) <= _MANY)
        )


def _written(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _derived(workspace: Workspace) -> Iterator[AttributeRow]:
    names = workspace.known().names
    there = {
        _JUDGMENTS: True,
        _TEXTS: workspace.topics is not None,
        _TRAFFIC: "traffic" in names,
        "the first run": bool(workspace.lists),
    }
    for name, (source, kind, meaning) in _MEANINGS.items():
        if there[source] and name not in names and (name != "language" or can_guess()):
            yield AttributeRow(name, source, kind, meaning, None, slices=True)


def usual(workspace: Workspace) -> str:
    """Name the attribute by which topics are sliced, if none is asked for."""
    return next((one.name for one in attributes(workspace) if one.slices and one.kind == "text"), "relevant_band")


def query_ids_where(workspace: Workspace, where: str) -> tuple[str, ...]:
    """Name the topics that satisfy an expression, in byte order."""
    text = where.strip()
    if not text:
        return workspace.query_ids

    def make() -> tuple[str, ...]:
        expression, every = Expression(text), workspace.query_ids
        kept = expression.mask(workspace.known(expression.names).over(every)).tolist()
        return tuple(query for query, keeps in zip(every, kept, strict=True) if keeps)

    found: tuple[str, ...] = workspace.remember(("topics where", text), make)
    if not found:
        raise InputError(f"no topic satisfies {text!r}", fix="check the values of its attributes")
    return found


def draws(topics: int) -> int:
    """Give how many resamples tests draw: a page must be there at once, and of many topics each costs more."""
    return RESAMPLES if topics <= MANY_TOPICS else RESAMPLES // 5


def cut(workspace: Workspace, asked: Sliced) -> Slicing | None:
    """Cut the topics that count into the slices that are asked for; None, if none are."""
    if not asked.names:
        return None

    def make() -> Slicing:
        known = workspace.known((*asked.names, *Expression(asked.where).names))
        by = list(dict.fromkeys(known.spelled(name) for name in asked.names))
        return slice_topics(known, by, minimum=asked.least, query_ids=query_ids_where(workspace, asked.where))

    return workspace.remember(("slicing", asked.names, asked.where.strip(), asked.least), make)


def both(where: str, expression: str) -> str:
    """Put two expressions together: the topics that satisfy both.

    >>> both("", "kind == 'law'"), both("words < 5", "kind == 'law'")
    ("kind == 'law'", "(words < 5) and (kind == 'law')")
    """
    parts = [part for part in (where.strip(), expression.strip()) if part]
    return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)


def left_out_note(workspace: Workspace, kept: int, warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Say that what is known of whole runs is said of all topics, where only some of them are kept."""
    return (OF_ALL_TOPICS,) if warnings and kept < len(workspace.query_ids) else ()


def outcome_note(workspace: Workspace, asked: Sliced) -> tuple[str, ...]:
    """Say what should be known of slices that are cut by an outcome of the first run."""
    if OUTCOME not in (*asked.names, *Expression(asked.where).names):
        return ()
    first = workspace.run_names[0] if workspace.lists else "the first run"
    text = f"{OUTCOME} is that of {first}: on topics where it did badly, any other run does better by luck alone"
    return (f"{text} (regression to the mean)",)
