"""The lists as judged lists, and their scores: what each measure says of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

import judged
from judged.errors import MeasureError
from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.evaluator.state import GROUPS, SHOWN, listed, read_state, unavailable
from judged.results import COUNT, NUMBER, TEXT, Column, Sentences, Show, Table, columns_of, counted
from judged.results import listed as listed_words
from judged.results.blocks import Note
from judged.scoring.judging import judge
from judged.scoring.measures.gain import discounts, gains
from judged.scoring.measures.pages import FAMILIES
from judged.scoring.measures.parameters import format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.interface.pages.evaluator.lists import Item
    from judged.interface.pages.evaluator.state import AskedEvaluation, State
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

LIST, OTHER, BEFORE = "list", "other", "before"
TOO_LARGE = "comes to numbers that are too large to be computed"


@dataclass(frozen=True)
class World:
    """A ranking with the judgments that count for it."""

    name: str  # `list`, `other` or `before`
    docs: tuple[str, ...]  # in rank order
    grades: dict[str, float]  # by document, returned or not

    @property
    def run(self) -> dict[str, float]:
        """The ranking as scores."""
        return {doc: -float(rank) for rank, doc in enumerate(self.docs, 1)}


class Evaluation(PageAnswer):
    """What every measure says of a list, and of a second one beside it."""

    kind: ClassVar[str] = "evaluation"
    main: ClassVar[str] = "measures"


def evaluation(workspace: Workspace, asked: AskedEvaluation) -> Evaluation:
    """Score a list, and a second one beside it, by every measure that a list is enough for."""
    state = read_state(workspace, asked)
    worlds, facts, query = worlds_of(state), state.facts(workspace), state.query()
    with np.errstate(all="ignore"):  # what is too large is None, and said
        measures = _scores_of(state, worlds, asked.only)
    ranked = {world.name: {doc: rank for rank, doc in enumerate(world.docs, 1)} for world in worlds}
    lists = [_rows_of(state, world, ranked) for world in worlds if world.name != BEFORE]
    lacking = [] if asked.only else [{"name": name, "why": why} for name, why in unavailable(state.options.n).items()]
    source: list[Sentences] = []
    if known := facts["source"]:
        runs = listed_words([known["run"], *filter(None, [known["other_run"]])])
        source = [Sentences((f"Topic {known['topic']}, {runs}. {known['query']}".strip(),), "source")]
    missing = (
        f"Judged and not returned, by grade: {', '.join(map(format_value, state.missing)) or 'none'}."
        f" Relevant documents (grade {format_value(state.options.rel)} or more): {state.relevant}."
    )
    parts = (
        *source,
        *lists,
        Sentences((missing,), "missing"),
        measures,
        Table("groups", (Column("key", GROUPS), Column("what", [FAMILIES[key] for key in GROUPS])), only="data"),
        _counts_of(state, lists),
        Table("unavailable", columns_of(lacking, "name", "why"), only="data"),
        Sentences((f"`/evaluator?{query}`",), "address", "Address"),
    )
    about = {"judged": judged.__version__, "query": query, "state": facts}
    return Evaluation(about, parts, tuple(_notes(asked, state, measures)))


def _counts_of(state: State, lists: Sequence[Table]) -> Table:
    """Count how much each list has of what, and at the cutoff: true and false positives and negatives."""
    n, rows = state.options.n, list[dict[str, Any]]()
    for table in lists:
        relevant = list(table.column("relevant").values)
        first = relevant[: state.options.cutoff]
        found = first.count(True)
        lost = state.relevant - found
        row = {"list": table.name, "returned": len(relevant), "judged": len(relevant) - relevant.count(None)}
        row |= {"relevant_found": relevant.count(True), "tp": found, "fp": len(first) - found, "fn": lost}
        rows.append(row | {"tn": n and n - len(first) - lost})
    return Table("counts", columns_of(rows, *rows[0]), only="data")


def worlds_of(state: State) -> tuple[World, ...]:
    """Give the list, the other one, and the list before, as many as there are, each with what is judged in it."""
    other = state.other or ()
    now, past = (*state.items, *other), (*other, *(state.before or ()))
    given = (LIST, state.items, now, state.missing), (OTHER, state.other, now, state.missing)
    given += ((BEFORE, state.before, past, state.before_missing),)
    return tuple(
        World(name, tuple(item.doc for item in items), _grades(state, shown, missing))
        for name, items, shown, missing in given
        if items is not None
    )


def _grades(state: State, shown: Sequence[Item], missing: tuple[float, ...]) -> dict[str, float]:
    """Grade what is shown and what was not returned, which is named, and filled up to the number that is relevant."""
    every = {item.doc: item.grade for item in shown}
    known = {doc: grade for doc, grade in every.items() if grade is not None}
    found = sum(map(state.is_relevant, (*known.values(), *missing)))
    filled = max(0, (state.asked.relevant or 0) - found)
    taken, start = every.keys() | {item.doc for item in state.items}, "m"
    while any(doc.startswith(start) for doc in taken):
        start += "'"
    return known | {f"{start}{at}": grade for at, grade in enumerate((*missing, *(state.options.rel,) * filled), 1)}


def judged_of(*worlds: World) -> Judged:
    """Judge rankings, each with its own judgments; a world in which nothing is judged has nothing relevant."""
    qrels = {world.name: world.grades for world in worlds if world.grades}
    runs = {world.name: world.run for world in worlds}
    return judge(qrels or {"": {"": 0.0}}, runs).over("run")


def _scores_of(state: State, worlds: tuple[World, ...], only: str | None) -> Table:
    """Score the lists by all measures, or those of some families."""
    together = judged_of(*worlds)
    alone = cache(lambda: [judged_of(world) for world in worlds])
    alike = all(world.grades.keys() == worlds[0].grades.keys() for world in worlds)  # the same documents are judged
    rows: list[dict[str, Any]] = []
    for one in listed(state.options):
        if only and one.entry.name not in only.split(","):
            continue
        values, why, properties = dict[str, float | None](), one.why, one.properties
        if one.measure is not None:
            values, why = _scores(one.measure, [together] if properties.topics_independent or alike else alone())
            if why and len(worlds) > 1:  # perhaps only one list is to blame
                values, why = _scores(one.measure, alone())
        value, other, before = (values.get(name) for name in (LIST, OTHER, BEFORE))
        row = {"group": one.entry.family, "key": one.key, "name": one.name, "family": one.entry.name}
        row |= {"value": value, "other": other, "difference": _minus(other, value)}
        row |= {"before": before, "moved": _minus(value, before)}
        row |= {name: getattr(properties, name) for name in ("low", "high", "higher_is_better", "perfect")}
        rows.append({**row, "why": why})
    named = ["group", "key", ("name", TEXT, "measure"), "family", ("value", NUMBER, "list")]
    named += ["other", "difference"] if state.other is None else [("other", NUMBER), ("difference", NUMBER)]
    columns = columns_of(rows, *named, "before", "moved", "low", "high", "higher_is_better", "perfect", "why")
    return Table("measures", columns, "Measures")


def _scores(measure: Measure, parts: Sequence[Judged]) -> tuple[dict[str, float | None], str]:
    """Score each list by its name; None where there is no number, and why."""
    found, why = dict[str, float | None](), ""
    for part in parts:
        values = [nan] * len(part.query_ids)
        try:
            values = measure(part).tolist()
        except MeasureError as error:
            why = why or str(error)
        except (ValueError, ArithmeticError):  # logarithms and powers of numbers beyond what a double holds
            pass
        found |= {name: value if isfinite(value) else None for name, value in zip(part.query_ids, values, strict=True)}
    return found, why or (TOO_LARGE if None in found.values() else "")


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _rows_of(state: State, world: World, ranked: Mapping[str, Mapping[str, int]]) -> Table:
    """Lay a list out, with where each document stands elsewhere."""
    options = state.options
    grades = [world.grades.get(doc) for doc in world.docs]
    try:
        worth = np.array([-1.0 if grade is None else grade for grade in grades], dtype=np.float64)
        gain: list[float | None] = gains(worth, options.gain).tolist()
    except MeasureError:
        gain = [None] * len(grades)
    discount = discounts(np.arange(1, len(grades) + 1), options.discount, options.base)
    there = ranked.get(OTHER if world.name == LIST else LIST, {})
    before = ranked.get(BEFORE, {}) if world.name == LIST else {}
    columns = (
        Column("rank", range(1, len(grades) + 1), COUNT),
        Column("doc", world.docs, TEXT, "document"),
        Column("grade", grades, Show(format_value)),
        Column("relevant", [None if grade is None else state.is_relevant(grade) for grade in grades], only="data"),
        Column("gain", [0.0 if grade is None else gain[at] for at, grade in enumerate(grades)], only="data"),
        Column("discount", discount.tolist(), only="data"),
        Column("rank_in_other", [there.get(doc) for doc in world.docs], only="data"),
        Column("rank_before", [before.get(doc) for doc in world.docs], only="data"),
    )
    return Table(world.name, columns, "The list" if world.name == LIST else "The other list", labels=2)


def _notes(asked: AskedEvaluation, state: State, measures: Table) -> Iterator[Note]:
    """Say what should be known before the numbers are used."""
    if asked.other and asked.typed is not None and any(":" not in row for row in asked.other.split(",")):
        yield Note(
            "unnamed-rows",
            "Rows of the second list without a name are taken for documents of the first with the same grade, as far as"
            " there are any: relevant documents are as few as the two lists allow.",
        )
    columns = (measures.column(name).values for name in ("name", "value", "why"))
    untold = [(name, why) for name, value, why in zip(*columns, strict=True) if value is None]
    for why in dict.fromkeys(why for _, why in untold):
        names = ", ".join(name for name, reason in untold if reason == why)
        yield Note("no-number", f"No number for {names}: {why}")
    rel, cutoff, returned = state.options.rel, state.options.cutoff, counted(len(state.items), "document")
    filled, unjudged = state.relevant - state.known, sum(item.grade is None for item in state.items)
    known: dict[str, str | Literal[False]] = {
        "first-documents": asked.topic is not None
        and f"Of a run at most the first {SHOWN} documents are taken: what it returned further down counts as not"
        " returned, so deep measures can differ from those of the whole run.",
        "nothing-relevant": not state.relevant
        and f"No document is relevant (grade {rel:g} or more): measures that divide by the number of relevant documents"
        " are 0 by convention.",
        "filled-up": filled > 0
        and f"{counted(filled, 'relevant document')} without a name: counted as missing, with grade {rel:g}.",
        "unjudged": unjudged > 0
        and f"Without a judgment: {unjudged} of {returned}. Most measures count them as not relevant.",
        "short-list": 0 < len(state.items) < cutoff
        and f"The list has {returned}, fewer than the cutoff of {cutoff}: the places below are empty, and measures"
        " that divide by the cutoff count them.",
    }
    yield from (Note(rule, text) for rule, text in known.items() if text)
