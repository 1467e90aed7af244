"""The evaluator's data: the state spelled out, the lists with their ideal, and all measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import MeasureError
from judged.measures.gain import discounts, gains, ideal_by_gain
from judged.measures.parameters import spell
from judged.web.evaluator.listed import unavailable
from judged.web.evaluator.scored import BEFORE, LIST, OTHER, Lists, rows
from judged.web.evaluator.state import SHOWN, read_state
from judged.web.filters import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.web.evaluator.asked import Asked
    from judged.web.evaluator.lists import Item
    from judged.web.evaluator.scored import World
    from judged.web.evaluator.state import State
    from judged.web.workspace import Workspace

_IDEAL_SHOWN = 200


def evaluated(workspace: Workspace, asked: Asked) -> dict[str, Any]:
    """Evaluate what is asked."""
    state = read_state(workspace, asked)
    lists = Lists(state)
    only = frozenset(asked.only.split(",")) if asked.only else frozenset[str]()
    groups: list[dict[str, Any]] = [
        {"key": group.key, "title": group.title, "what": group.what, "measures": measures}
        for group, measures in rows(lists, only)
    ]
    return {
        "state": state_as_data(state),
        "query": state.query(),
        "groups": groups,
        "unavailable": () if only else unavailable(),
        "lists": [_list_as_data(lists, world) for world in lists.worlds if world.name != BEFORE],
        "notes": [*_naming(asked), *_notes(lists, [row for group in groups for row in group["measures"]])],
    }


def state_as_data(state: State) -> dict[str, Any]:
    """Spell a state out."""
    options, source = state.options, state.source
    return {
        "list": _items(state.items),
        "other": None if state.other is None else _items(state.other),
        "missing": list(state.missing),
        "relevant": state.relevant,
        "relevant_given": state.asked_relevant,
        "known_relevant": state.known,
        "k": options.k,
        "gain": spell(options.gain),
        "discount": options.discount,
        "base": options.base,
        "rel": options.rel,
        "max": options.max,
        "max_given": state.asked_max,
        "source": source
        and {"run": source.run, "topic": source.topic, "query": source.query, "other_run": source.other_run},
    }


def _items(items: Sequence[Item]) -> list[dict[str, Any]]:
    return [{"doc": item.doc, "grade": item.grade} for item in items]


def _list_as_data(lists: Lists, world: World) -> dict[str, Any]:
    """Lay a list out, with where each document stands elsewhere."""
    state, options = lists.state, lists.state.options
    elsewhere = {
        one.name: {doc: rank for rank, doc in enumerate(one.docs, 1)} for one in lists.worlds if one is not world
    }
    in_other = elsewhere.get(OTHER if world.name == LIST else LIST, {})
    before = elsewhere.get(BEFORE, {}) if world.name == LIST else {}
    grades = [world.grades.get(doc) for doc in world.docs]
    gain = _gains(state, [-1.0 if grade is None else grade for grade in grades])
    discount = discounts(np.arange(1, len(grades) + 1), options.discount, options.base).tolist()
    shown = [
        {
            "rank": rank,
            "doc": doc,
            "grade": grade,
            "relevant": None if grade is None else state.is_relevant(grade),
            "gain": 0.0 if grade is None else gain[rank - 1],
            "discount": discount[rank - 1],
            "rank_in_other": in_other.get(doc),
            "rank_before": before.get(doc),
        }
        for rank, (doc, grade) in enumerate(zip(world.docs, grades, strict=True), 1)
    ]
    return {
        "rows": shown,
        "ideal": _ideal(lists, world),
        "judged": sum(grade is not None for grade in grades),
        "relevant_found": sum(grade is not None and state.is_relevant(grade) for grade in grades),
        "returned": len(grades),
    }


def _gains(state: State, grades: list[float]) -> list[float | None]:
    try:
        worth = gains(np.array(grades, dtype=np.float64), state.options.gain).tolist()
    except MeasureError:
        return [None] * len(grades)
    return worth


def _ideal(lists: Lists, world: World) -> list[dict[str, Any]]:
    judged = lists.judged
    try:
        best = ideal_by_gain(judged, lists.state.options.gain)
    except MeasureError:
        best = judged.ideal
    names, at = judged.qrels.index.row_names, judged.query_ids.index(world.name)
    part = slice(int(best.starts[at]), min(int(best.starts[at + 1]), int(best.starts[at]) + _IDEAL_SHOWN))
    shown = judged.label_row[best.row[part]].tolist()
    return [{"doc": names[row], "grade": grade} for row, grade in zip(shown, best.grade[part].tolist(), strict=True)]


def _naming(asked: Asked) -> Iterator[str]:
    """Say what rows of the other list were taken for, where they have no name."""
    if asked.other and asked.typed is not None and any(":" not in row for row in asked.other.split(",")):
        yield (
            "Rows of the second list without a name are taken for documents of the first with the same grade, as far as"
            " there are any: relevant documents are as few as the two lists allow."
        )


def _notes(lists: Lists, found: list[dict[str, Any]]) -> Iterator[str]:
    """Say what should be known before the numbers are used."""
    state = lists.state
    untold = [row for row in found if row["value"] is None]
    for why in dict.fromkeys(row["why"] for row in untold):
        names = ", ".join(row["name"] for row in untold if row["why"] == why)
        yield f"No number for {names}: {why}"
    if state.source is not None:
        yield (
            f"Of a run at most the first {SHOWN} documents are taken: what it returned further down counts as not"
            " returned, so deep measures can differ from those of the whole run."
        )
    if not state.relevant:
        yield (
            f"No document is relevant (grade {state.options.rel:g} or more): measures that divide by the number of"
            " relevant documents are 0 by convention."
        )
    if (filled := state.relevant - state.known) > 0:
        named = count(filled, "relevant document")
        yield f"{named} without a name: counted as missing, with grade {state.options.rel:g}."
    unjudged = sum(item.grade is None for item in state.items)
    if unjudged:
        yield (
            f"Without a judgment: {unjudged} of {count(len(state.items), 'document')}. Most measures count them as not"
            " relevant."
        )
    if state.items and len(state.items) < state.options.k:
        yield (
            f"The list has {count(len(state.items), 'document')}, fewer than k = {state.options.k}: the places below"
            " are empty, and measures that divide by k count them."
        )
