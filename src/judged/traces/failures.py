"""Kinds of failure: what is wrong with a query, by definitions over its relevant documents, and what to do first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.answer import COUNT, NUMBER, TEXT, Answer, Column, Sentences, Table, counted, number
from judged.decimals import decimal
from judged.diagnosis.changes import mean_of
from judged.slicing.slice_tests import everywhere
from judged.traces.funnel import CORPUS, funnel

if TYPE_CHECKING:
    from judged.answer import Block
    from judged.measures.base import Measure
    from judged.notes import Note
    from judged.traces.funnel import TraceFunnel
    from judged.traces.traces import Traces


class Failure(NamedTuple):
    """A kind of failure of a relevant document that people did not see."""

    definition: str
    remedy: str  # the change that usually helps
    cost: str  # of that change


FAILURES = {
    "missing content": Failure(
        "the corpus does not hold it", "write or fetch it; index it", "content, and the index grows"
    ),
    "candidate": Failure(
        "the corpus holds it, as far as is known, and no first stage passed it on",
        "more candidates, another source, synonyms, spelling, an analyser",
        "latency of all stages behind, a larger index",
    ),
    "scoring": Failure(
        "a stage passed it on, and a later one cut it, or ranked it below the cutoff",
        "another score, features, a reranker, deeper reranking",
        "judgments to train on, latency",
    ),
    "debugging": Failure(
        "the trace of the query lacks a stage or the documents of one, so that it cannot be told",
        "record every stage of every query",
        "storage",
    ),
}
"""The kinds, by name. A document is of one of them; a topic may have several."""


@dataclass(frozen=True, eq=False, repr=False)
class Failures(Answer):
    """The relevant documents that people did not see, by kind of failure.

    Parameters
    ----------
    funnel
        What each stage lost.
    found
        Topic, document, kind, the step at which it was lost, and grade.
    recoverable
        By kind (T,): how much of the measure is lost by it. Of ``debugging`` it is all that is lost on a topic.
    cutoff
        Ranks that people see.
    notes
        Of the traces and the judgments.
    """

    kind: ClassVar[str] = "failures"

    funnel: TraceFunnel
    found: tuple[tuple[str, str, str, str, float], ...]
    recoverable: Mapping[str, Any] = field(repr=False)
    cutoff: float = math.inf
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is sorted."""
        return f"{self.funnel.traces.name}: kinds of failure, {self.funnel.measure}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to do first."""
        gains = {kind: mean_of(part) for kind, part in self.recoverable.items()}
        first = max(gains, key=lambda kind: gains[kind])
        if gains[first] <= 0:
            return ("Nothing is lost that could be recovered.",)
        known = FAILURES[first]
        gain = f"{decimal(gains[first])} of {self.funnel.measure}"
        return (f"First: {first} ({gain}). What usually helps: {known.remedy}. It costs {known.cost}.",)

    def facts(self) -> Mapping[str, Any]:
        """Give what was traced, and the definitions."""
        kinds = {name: known._asdict() for name, known in FAILURES.items()}
        return {"traces": self.funnel.traces.name, "measure": self.funnel.measure, "definitions": kinds}

    def blocks(self) -> tuple[Block, ...]:
        """Give the kinds by recoverable loss, by slice too, and the documents."""
        kinds = sorted(FAILURES, key=lambda kind: -mean_of(self.recoverable[kind]))
        topics = self.funnel.query_ids
        occurring = [kind for kind in kinds if any(what == kind for _, _, what, _, _ in self.found)]
        rows: list[tuple[str, str, int, int, float]] = []
        for some in everywhere(len(topics), self.funnel.slicing):
            inside = {topic for topic, member in zip(topics, some.mask.tolist(), strict=True) if member}
            for kind in kinds if some.every else occurring:
                own = [topic for topic, _, what, _, _ in self.found if what == kind and topic in inside]
                rows.append((some.name, kind, len(own), len(set(own)), mean_of(self.recoverable[kind][some.mask])))
        sliced = self.funnel.slicing is not None
        table = Table(
            "kinds",
            (
                Column("slice", [row[0] for row in rows], TEXT, only="" if sliced else "data"),
                Column("failure", [row[1] for row in rows], TEXT),
                Column("documents", [row[2] for row in rows], COUNT),
                Column("n", [row[3] for row in rows], COUNT, "topics"),
                Column("recoverable", [row[4] for row in rows], NUMBER, f"recoverable {self.funnel.measure}"),
                Column("remedy", [FAILURES[row[1]].remedy for row in rows], TEXT, "what usually helps", below=True),
                Column("cost", [FAILURES[row[1]].cost for row in rows], TEXT, "cost", only="data"),
            ),
            "Kinds of failure",
            labels=2 if sliced else 1,
        )
        documents = Table(
            "documents",
            (
                Column("query_id", [topic for topic, *_ in self.found], TEXT, "topic"),
                Column("doc_id", [doc for _, doc, *_ in self.found], TEXT, "document"),
                Column("failure", [kind for _, _, kind, _, _ in self.found], TEXT),
                Column("step", [step for _, _, _, step, _ in self.found], TEXT, "lost at"),
                Column("grade", [grade for *_, grade in self.found], number(0)),
            ),
            f"{counted(len(self.found), 'relevant document')} not seen",
            labels=4,
            folded=True,
        )
        return (Sentences(self.sentences), table, documents)


def failures(
    qrels: Any,
    traces: Traces,
    measure: str | Measure = "nDCG@10",
    *,
    final: str | None = None,
    corpus: Iterable[str] | None = None,
    slicing: Any = None,
    attributes: Any = None,
    where: str | None = None,
) -> Failures:
    """Sort the relevant documents that people did not see by kind of failure.

    Parameters
    ----------
    qrels, traces, measure, final, corpus, slicing, attributes, where
        As for `funnel`; the measure's cutoff is how far people look.

    Raises
    ------
    InputError
        If something cannot be read, or no traced query is judged.
    MeasureError
        If the best order is not known for the measure.

    Examples
    --------
    >>> from judged.traces import traces_of_runs
    >>> made = traces_of_runs({"bm25": {"q": ["x", "a", "b"]}, "rerank": {"q": ["x", "a"]}})
    >>> found = failures({"q": {"a": 1, "b": 1, "c": 1, "d": 1}}, made, "R@1", corpus=["a", "b", "c", "x"])
    >>> [(doc, kind) for _, doc, kind, _, _ in found.found]
    [('a', 'scoring'), ('b', 'scoring'), ('c', 'candidate'), ('d', 'missing content')]
    """
    asked: dict[str, Any] = {"final": final, "slicing": slicing, "attributes": attributes, "where": where}
    made = funnel(qrels, traces, measure, corpus=corpus, **asked)
    steps = [name for name in made.parts if name != CORPUS]
    cutoff = getattr(made.measure, "cutoff", None) or math.inf
    path = [loss.stage.name for loss in made.losses]
    unrecorded = {topic for topic in made.query_ids if not _recorded(traces, topic, path)}
    kind_of = {CORPUS: "missing content", steps[0]: "candidate"}
    found = [
        (
            topic,
            doc,
            "debugging" if topic in unrecorded and step != CORPUS else kind_of.get(step, "scoring"),
            step,
            grade,
        )
        for topic, doc, step, grade in (*made.lost, *made.below(cutoff))
    ]
    lacking = np.array([topic in unrecorded for topic in made.query_ids])
    groups = {"missing content": [CORPUS], "candidate": steps[:1], "scoring": steps[1:]}
    none = np.zeros(len(made.score))
    recoverable = {
        kind: np.where(
            lacking & (kind != "missing content"), 0.0, sum((made.parts.get(name, none) for name in names), none)
        )
        for kind, names in groups.items()
    }
    rest = made.best - made.score - made.parts.get(CORPUS, none)
    recoverable["debugging"] = np.where(lacking, rest, 0.0)
    found.sort(key=lambda row: (made.query_ids.index(row[0]), row[1]))
    return Failures(made, tuple(found), recoverable, cutoff, made.notes)


def _recorded(traces: Traces, query_id: str, path: Iterable[str]) -> bool:
    """Tell whether the documents of every stage that leads to the list are recorded."""
    spans = traces.spans_of(query_id)
    return all(name in spans and spans[name].documents is not None for name in path)
