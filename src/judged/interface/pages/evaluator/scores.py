"""Judged lists of the evaluator, and their scores by every measure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

import judged
from judged.errors import MeasureError
from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.evaluator.state import GROUPS, RUN_DEPTH, available_measures, read_state, unavailable
from judged.results import COUNT, NUMBER, TEXT, Column, Sentences, Show, Table, columns_of, counted
from judged.results import listed as listed_words
from judged.results.blocks import Note
from judged.scoring.judging import Judged, judge
from judged.scoring.measures.gain import discounts, gains
from judged.scoring.measures.pages import FAMILIES
from judged.scoring.measures.parameters import format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.interface.pages.evaluator.lists import ListDocument
    from judged.interface.pages.evaluator.state import EvaluationQuery, State
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.measures.base import Measure

LIST, OTHER, BEFORE = "list", "other", "before"
OVERFLOW = "the numbers are too large to be computed"


@dataclass(frozen=True)
class JudgedRanking:
    """A ranking, with the judgments used to score it."""

    name: str  # `list`, `other` or `before`
    docs: tuple[str, ...]  # in rank order
    grades: dict[str, float]  # by document, returned or not

    @property
    def run(self) -> dict[str, float]:
        """Ranking as scores."""
        return {doc: -float(rank) for rank, doc in enumerate(self.docs, 1)}


class Evaluation(PageAnswer):
    """Scores of a list, and of an optional second one, by every measure."""

    kind: ClassVar[str] = "evaluation"
    main: ClassVar[str] = "measures"


def evaluation(workspace: Workspace, query: EvaluationQuery) -> Evaluation:
    """Score a list, and an optional second one, by every measure that can be computed from a list."""
    state = read_state(workspace, query)
    rankings, facts, address = lists_of_state(state), state.facts(workspace), state.query_string()
    with np.errstate(all="ignore"):  # overflows become None, with a reason
        measures = _scores_of(state, rankings, query.only)
    ranks = {ranking.name: {doc: rank for rank, doc in enumerate(ranking.docs, 1)} for ranking in rankings}
    lists = [_rows_of(state, ranking, ranks) for ranking in rankings if ranking.name != BEFORE]
    reasons = {} if query.only else unavailable(state.options.n)
    unavailable_rows = [{"name": name, "reason": reason} for name, reason in reasons.items()]
    source_block: list[Sentences] = []
    if source_facts := facts["source"]:
        runs = listed_words([source_facts["run"], *filter(None, [source_facts["other_run"]])])
        sentence = f"Topic {source_facts['topic']}, {runs}. {source_facts['query']}".strip()
        source_block = [Sentences((sentence,), "source")]
    missing = (
        f"Grades of judged documents that were not returned: {', '.join(map(format_value, state.missing)) or 'none'}."
        f" Number of relevant documents (grade {format_value(state.options.rel)} or higher): {state.relevant}."
    )
    parts = (
        *source_block,
        *lists,
        Sentences((missing,), "missing"),
        measures,
        Table("groups", (Column("key", GROUPS), Column("description", [FAMILIES[key] for key in GROUPS])), only="data"),
        _counts_of(state, lists),
        Table("unavailable", columns_of(unavailable_rows, "name", "reason"), only="data"),
        Sentences((f"`/evaluator?{address}`",), "address", "Address"),
    )
    about = {"judged": judged.__version__, "query": address, "state": facts}
    return Evaluation(about, parts, tuple(_notes(query, state, measures)))


def _counts_of(state: State, lists: Sequence[Table]) -> Table:
    """Count relevant and judged documents per list, and true and false positives and negatives at the cutoff."""
    n, rows = state.options.n, list[dict[str, Any]]()
    for table in lists:
        relevant = list(table.column("relevant").values)
        top = relevant[: state.options.cutoff]
        tp = top.count(True)
        fn = state.relevant - tp
        row = {"list": table.name, "returned": len(relevant), "judged": len(relevant) - relevant.count(None)}
        row |= {"relevant_returned": relevant.count(True), "tp": tp, "fp": len(top) - tp, "fn": fn}
        rows.append(row | {"tn": n and n - len(top) - fn})
    return Table("counts", columns_of(rows, *rows[0]), only="data")


def lists_of_state(state: State) -> tuple[JudgedRanking, ...]:
    """Return the list, the second one, and the previous list, if they exist, with their judgments."""
    other = state.other or ()
    graded, previously_graded = (*state.documents, *other), (*other, *(state.before or ()))
    inputs = (LIST, state.documents, graded, state.missing), (OTHER, state.other, graded, state.missing)
    inputs += ((BEFORE, state.before, previously_graded, state.before_missing),)
    return tuple(
        JudgedRanking(name, tuple(document.doc for document in documents), _grades(state, graded_documents, missing))
        for name, documents, graded_documents, missing in inputs
        if documents is not None
    )


def _grades(state: State, documents: Sequence[ListDocument], missing: tuple[float, ...]) -> dict[str, float]:
    """Return the grades of listed and missing documents; unnamed relevant ones fill up to their number."""
    grades = {document.doc: document.grade for document in documents}
    judged_grades = {doc: grade for doc, grade in grades.items() if grade is not None}
    n_relevant = sum(map(state.is_relevant, (*judged_grades.values(), *missing)))
    n_unnamed = max(0, (state.query.relevant or 0) - n_relevant)
    used_names, prefix = grades.keys() | {document.doc for document in state.documents}, "m"
    # Names of missing documents must differ from those in the lists.
    while any(doc.startswith(prefix) for doc in used_names):
        prefix += "'"
    unlisted = (*missing, *(state.options.rel,) * n_unnamed)
    return judged_grades | {f"{prefix}{i}": grade for i, grade in enumerate(unlisted, 1)}


def judge_lists(*rankings: JudgedRanking) -> Judged:
    """Judge lists, each with its own judgments. A list without judgments has no relevant document."""
    qrels = {ranking.name: ranking.grades for ranking in rankings if ranking.grades}
    runs = {ranking.name: ranking.run for ranking in rankings}
    # `judge` requires a judgment; one of an empty topic has no effect on the topics of the runs.
    return judge(qrels or {"": {"": 0.0}}, runs).over("run")


def _scores_of(state: State, rankings: tuple[JudgedRanking, ...], only: str | None) -> Table:
    """Score the lists by all measures, or by those of some families."""
    joint = judge_lists(*rankings)
    judge_separately = cache(lambda: [judge_lists(ranking) for ranking in rankings])
    # Scores of measures that depend on other topics are the same if all lists have the same judged documents; then one
    # call scores all lists, which is faster.
    has_same_documents = len({frozenset(ranking.grades) for ranking in rankings}) == 1
    rows: list[dict[str, Any]] = []
    for listed in available_measures(state.options):
        if only and listed.entry.name not in only.split(","):
            continue
        values, reason, properties = dict[str, float | None](), listed.invalid_reason, listed.properties
        if listed.measure is not None:
            judged_lists = [joint] if properties.topics_independent or has_same_documents else judge_separately()
            values, reason = _scores(listed.measure, judged_lists)
            if reason and len(rankings) > 1:  # perhaps only one list fails
                values, reason = _scores(listed.measure, judge_separately())
        value, other, before = (values.get(name) for name in (LIST, OTHER, BEFORE))
        row = {"group": listed.entry.family, "key": listed.key, "name": listed.name, "family": listed.entry.name}
        row |= {"value": value, "other": other, "difference": _difference(other, value)}
        row |= {"before": before, "change": _difference(value, before)}
        row |= {name: getattr(properties, name) for name in ("low", "high", "higher_is_better", "perfect")}
        rows.append({**row, "reason": reason})
    specifications = ["group", "key", ("name", TEXT, "measure"), "family", ("value", NUMBER, "list")]
    specifications += ["other", "difference"] if state.other is None else [("other", NUMBER), ("difference", NUMBER)]
    columns = columns_of(
        rows, *specifications, "before", "change", "low", "high", "higher_is_better", "perfect", "reason"
    )
    return Table("measures", columns, "Measures")


def _scores(measure: Measure, judged_lists: Sequence[Judged]) -> tuple[dict[str, float | None], str]:
    """Return the score of each list by name, None if it has none, and the reason."""
    scores, reason = dict[str, float | None](), ""
    for judged_list in judged_lists:
        values = [nan] * len(judged_list.query_ids)
        try:
            values = measure(judged_list).tolist()
        except MeasureError as error:
            reason = reason or str(error)
        except (ValueError, ArithmeticError):  # logarithms and powers of numbers beyond what a double holds
            pass
        pairs = zip(judged_list.query_ids, values, strict=True)
        scores |= {name: value if isfinite(value) else None for name, value in pairs}
    return scores, reason or (OVERFLOW if None in scores.values() else "")


def _difference(value: float | None, reference: float | None) -> float | None:
    return None if value is None or reference is None else value - reference


def _rows_of(state: State, ranking: JudgedRanking, ranks: Mapping[str, Mapping[str, int]]) -> Table:
    """Return the table of a list, with the rank of each document in the other lists."""
    options = state.options
    grades = [ranking.grades.get(doc) for doc in ranking.docs]
    try:
        filled_grades = np.array([-1.0 if grade is None else grade for grade in grades], dtype=np.float64)
        gain: list[float | None] = gains(filled_grades, options.gain).tolist()
    except MeasureError:
        gain = [None] * len(grades)
    discount = discounts(np.arange(1, len(grades) + 1), options.discount, options.base)
    ranks_in_other = ranks.get(OTHER if ranking.name == LIST else LIST, {})
    ranks_before = ranks.get(BEFORE, {}) if ranking.name == LIST else {}
    columns = (
        Column("rank", range(1, len(grades) + 1), COUNT),
        Column("doc", ranking.docs, TEXT, "document"),
        Column("grade", grades, Show(format_value)),
        Column("relevant", [None if grade is None else state.is_relevant(grade) for grade in grades], only="data"),
        Column("gain", [0.0 if grade is None else gain[i] for i, grade in enumerate(grades)], only="data"),
        Column("discount", discount.tolist(), only="data"),
        Column("rank_in_other", [ranks_in_other.get(doc) for doc in ranking.docs], only="data"),
        Column("rank_before", [ranks_before.get(doc) for doc in ranking.docs], only="data"),
    )
    return Table(ranking.name, columns, "The list" if ranking.name == LIST else "The other list", labels=2)


def _notes(query: EvaluationQuery, state: State, measures: Table) -> Iterator[Note]:
    """Yield notes on how to read the numbers."""
    if query.other and query.typed is not None and any(":" not in row for row in query.other.split(",")):
        yield Note(
            "unnamed-rows",
            "In the second list, rows without a document name are matched with documents of the first list that have"
            " the same grade, so that the number of relevant documents is as small as possible.",
        )
    columns = (measures.column(name).values for name in ("name", "value", "reason"))
    missing_scores = [(name, reason) for name, value, reason in zip(*columns, strict=True) if value is None]
    for reason in dict.fromkeys(reason for _, reason in missing_scores):
        names = ", ".join(name for name, other in missing_scores if other == reason)
        yield Note("no-number", f"No score of {names}: {reason}")
    rel, cutoff, returned = state.options.rel, state.options.cutoff, counted(len(state.documents), "document")
    n_unnamed = state.relevant - state.known_relevant
    n_unjudged = sum(document.grade is None for document in state.documents)
    notes: dict[str, str | Literal[False]] = {
        "first-documents": query.topic is not None
        and f"The evaluator reads at most {RUN_DEPTH} documents of a run. All other documents of the run count as"
        " not returned, so measures without a cutoff can differ from the measures of the whole run.",
        "nothing-relevant": not state.relevant
        and f"No document is relevant (grade {rel:g} or higher). Therefore, measures that divide by the number of"
        " relevant documents are 0 by convention.",
        "filled-up": n_unnamed > 0
        and f"{counted(n_unnamed, 'relevant document')} without a name: counted as not returned, with grade {rel:g}.",
        "unjudged": n_unjudged > 0
        and f"{n_unjudged} of {returned} have no judgment. Most measures count unjudged documents as not relevant.",
        "short-list": 0 < len(state.documents) < cutoff
        and f"The list has {returned}, fewer than the cutoff of {cutoff}. Measures that divide by the cutoff treat the"
        " empty ranks like documents that are not relevant.",
    }
    yield from (Note(rule, text) for rule, text in notes.items() if text)
