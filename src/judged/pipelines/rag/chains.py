"""Chains of steps: which nuggets, answers, documents, sentences, and users pass each step, and which are unjudged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.pipelines.rag.responses import middle_verdicts
from judged.results.types import ReadOnly
from judged.scoring.judging.answers import FAILED, PARTIAL, SUPPORT
from judged.scoring.measures import ExactMatch

if TYPE_CHECKING:
    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.traces import Traces
    from judged.results.types import Ints

LOST, UNJUDGED, PASSED = 0, 1, 2
"""Status of an item at a step. The order matters: over several steps the minimum holds, over several documents of the
same item the maximum."""
STEPS: Mapping[str, str] = {
    "corpus": "in the corpus",
    "retrieved": "retrieved",
    "ranked": "ranked",
    "context": "in the context",
    "grounded": "supported by the context",
    "cited": "cited",
    "supported": "supported by the citation",
    "covered": "covered by the answer",
    "answered": "answered",
    "correct": "answered correctly",
    "matched": "equal to a reference answer",
    "satisfied": "satisfied user",
}
"""Steps in pipeline order, and their names for people."""
UNITS: Mapping[str, tuple[str, str]] = {
    "nugget": (
        "nuggets with evidence",
        "nuggets: a nugget passes a step if a document with evidence for the nugget passes the step",
    ),
    "answer": (
        "answers to topics with a relevant document",
        "answers: an answer passes a step if a relevant document passes the step",
    ),
    "document": ("relevant documents", "documents"),
    "sentence": ("sentences", "sentences: a sentence passes a step if one of its citations passes the step"),
    "user": ("ratings of users", "users"),
}
"""Units that are followed, the one with the longest chain first: name of its items, and title."""
_Key: TypeAlias = tuple[Any, ...]  # topic, and ids within the topic
_StatusOf: TypeAlias = Callable[[_Key], int]


@dataclass(frozen=True, eq=False)
class Chain(ReadOnly):
    """Status of I items of one system at S steps."""

    run: str
    unit: str
    items: tuple[tuple[str, ...], ...]  # topic of each item, and its id within the topic
    steps: tuple[str, ...]
    status: Ints = field(repr=False)  # (S, I): status at the step, regardless of earlier steps
    cumulative: Ints = field(repr=False)  # (S, I): minimum of the status at the step and at all earlier ones


def chains(
    responses: Responses,
    run: str,
    *,
    relevant: Mapping[str, Sequence[str]] | None = None,
    traces: Traces | None = None,
    corpus: frozenset[str] | None = None,
    cutoffs: tuple[int, int] = (100, 10),
    strict: bool = True,
) -> tuple[Chain, ...]:
    """Follow nuggets, answers, documents, sentences, and users of one system, over the steps that tables record.

    Parameters
    ----------
    responses, run
        Responses, and the name of the system.
    relevant
        Relevant documents by topic.
    traces
        Stages before the context. Topics without a record of a stage are unjudged there.
    corpus, cutoffs, strict
        As for `waterfall`.
    """
    system = _System(responses.of_run(run), relevant or {}, (SUPPORT,) if strict else (SUPPORT, PARTIAL))
    steps: dict[str, _StatusOf] = {}
    if corpus is not None:
        steps["corpus"] = lambda pair: PASSED * (pair[1] in corpus)
    if traces is not None:
        first_stages = [stage.name for stage in traces.stages if stage.step == 1]
        steps["retrieved"] = _status_in_stages(traces, first_stages, cutoffs[0])
        steps["ranked"] = _status_in_stages(traces, [traces.final.name], cutoffs[1])
    steps |= system.document_steps()
    return tuple(
        Chain(run, unit, items, names, status, cumulative)
        for unit, (items, names, status, cumulative) in {
            "nugget": system.nuggets(steps),
            "answer": system.answer_items(steps),
            "document": system.documents(steps),
            "sentence": system.sentences(),
            "user": system.users(),
        }.items()
        if items and names
    )


_ChainFields: TypeAlias = tuple[tuple[tuple[str, ...], ...], tuple[str, ...], "Ints", "Ints"]
"""Items, steps, status, and cumulative status, as in `Chain`."""


class _System:
    """Lookup tables of one system's answers, citations, and verdicts."""

    def __init__(self, responses: Responses, relevant: Mapping[str, Sequence[str]], passing: tuple[str, ...]) -> None:
        self.responses, self.passing_verdicts = responses, passing
        self.answers = {row["query_id"]: row for row in responses["answers"].to_pylist()}
        # Abstentions make no claims and cite nothing.
        self.abstained = {topic for topic, row in self.answers.items() if row["abstained"]}
        citations = [(row["query_id"], row["sentence"], row["doc_id"]) for row in responses["citations"].to_pylist()]
        self.citations = [citation for citation in citations if citation[0] not in self.abstained]
        self.context = {(row["query_id"], row["doc_id"]) for row in responses["context"].to_pylist()}
        self.support = self.verdict_status("support", "query_id", "sentence", "doc_id")
        self.has_citation_verdicts = any(doc for _, _, doc in self.support)
        references = responses["references"].to_pylist()
        unanswerable = {row["query_id"] for row in references if row["answerable"] is False}
        self.references: dict[str, list[str]] = {}
        for row in references:
            if row["text"]:
                self.references.setdefault(row["query_id"], []).append(row["text"])
        self.relevant = {topic: relevant.get(topic, ()) for topic in self.answers}
        with_relevant = [topic for topic in self.answers if self.relevant[topic] or not relevant]
        self.answerable = [topic for topic in with_relevant if topic not in unanswerable]

    def verdict_status(self, table: str, *key_columns: str) -> dict[_Key, int]:
        status = {FAILED: UNJUDGED, **dict.fromkeys(self.passing_verdicts, PASSED)}
        verdicts = middle_verdicts(self.responses[table], *key_columns)
        return {key: status.get(verdict, LOST) for key, verdict in verdicts.items()}

    def document_steps(self) -> dict[str, _StatusOf]:
        """Return the steps of (topic, document) pairs that the tables record."""
        best_support: dict[_Key, int] = {}
        for topic, sentence, doc in self.citations:
            status = self.support.get((topic, sentence, doc), UNJUDGED)
            best_support[topic, doc] = max(status, best_support.get((topic, doc), LOST))
        steps: dict[str, _StatusOf] = {
            "context": lambda pair: PASSED * (pair in self.context),
            "cited": lambda pair: PASSED * (pair in best_support),
            "supported": lambda pair: best_support.get(pair, LOST),
        }
        return {name: status for name, status in steps.items() if name in self._recorded_steps()}

    def _recorded_steps(self) -> set[str]:
        steps = {"context"} if self.context else set[str]()
        if self.responses["citations"].num_rows:
            steps |= {"cited", "supported"} if self.has_citation_verdicts else {"cited"}
        return steps

    def nuggets(self, steps: Mapping[str, _StatusOf]) -> _ChainFields:
        """Follow nuggets through the documents that contain them to the answer; all nuggets if none has evidence."""
        rows = (*self.responses["nuggets"].to_pylist(), *(evidence := self.responses["evidence"].to_pylist()))
        nuggets = dict.fromkeys((row["query_id"], row["nugget_id"]) for row in rows if row["query_id"] in self.answers)
        links = [((row["query_id"], row["nugget_id"]), (row["query_id"], row["doc_id"])) for row in evidence]
        links = [link for link in links if link[0] in nuggets and steps]
        assigned = self.verdict_status("assignments", "query_id", "nugget_id")
        items = list(dict.fromkeys(item for item, _ in links) if links else nuggets)
        coverage = [assigned.get(item, LOST if item[0] in self.abstained else UNJUDGED) for item in items]
        return _follow(items, links, steps if links else {}, {"covered": coverage} if assigned else {})

    def answer_items(self, steps: Mapping[str, _StatusOf]) -> _ChainFields:
        links = [((topic,), (topic, doc)) for topic in self.answerable for doc in self.relevant[topic]]
        items = [(topic,) for topic in self.answerable]
        return _follow(items, links, steps if links else {}, self._outcomes(self.answerable))

    def _outcomes(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """Return the status of answering at all, and of answering correctly."""
        outcomes: dict[str, list[int]] = {}
        if any(row["abstained"] is not None for row in self.answers.values()):
            status = {None: UNJUDGED, True: LOST, False: PASSED}
            outcomes["answered"] = [status[self.answers[topic]["abstained"]] for topic in topics]
        if correct := self.verdict_status("correctness", "query_id"):
            outcomes["correct"] = [correct.get((topic,), UNJUDGED) for topic in topics]
        elif self.references:  # without verdicts, exact match is the only test of an answer
            outcomes["matched"] = [self._match_status(topic) for topic in topics]
        return outcomes

    def _match_status(self, topic: str) -> int:
        """Return the status of exact match; an answer without a text, or without a reference, is unjudged."""
        text, references = self.answers[topic]["text"], self.references.get(topic)
        if topic in self.abstained:
            return LOST
        if text is None or not references:
            return UNJUDGED
        return PASSED if ExactMatch().of_answer(answer=text, references=references) else LOST

    def documents(self, steps: Mapping[str, _StatusOf]) -> _ChainFields:
        items = [(topic, doc) for topic, docs in self.relevant.items() for doc in docs]
        return _follow(items, [(item, item) for item in items], steps, {})

    def sentences(self) -> _ChainFields:
        """Follow sentences through their citations, and before that through the context if support by it was judged."""
        rows = self.responses["sentences"].to_pylist()
        items = [(row["query_id"], row["sentence"]) for row in rows if row["query_id"] not in self.abstained]
        item_set = set(items)
        links = [(citation[:2], citation) for citation in self.citations if citation[:2] in item_set]
        recorded = self._recorded_steps()
        by_context = {key[:2]: status for key, status in self.support.items() if not key[2]}
        steps: dict[str, _StatusOf] = {
            "cited": lambda _: PASSED,
            "context": lambda citation: PASSED * ((citation[0], citation[2]) in self.context),
            "supported": lambda citation: self.support.get(citation, UNJUDGED),
        }
        steps = {name: status for name, status in steps.items() if name in recorded and "cited" in recorded}
        grounded = {"grounded": [by_context.get(item, UNJUDGED) for item in items]} if by_context else {}
        return _follow(items, links, steps, {}, first_steps=grounded)

    def users(self) -> _ChainFields:
        topics = set(self.answerable)
        rows = [row for row in self.responses["feedback"].to_pylist() if row["query_id"] in topics]
        satisfied = [UNJUDGED if row["satisfied"] is None else PASSED * row["satisfied"] for row in rows]
        outcomes = self._outcomes([row["query_id"] for row in rows])
        items = [(row["query_id"], row["user_id"]) for row in rows]
        return _follow(items, (), {}, {**outcomes, "satisfied": satisfied})


def _follow(
    items: Sequence[_Key],
    links: Sequence[tuple[_Key, _Key]],
    linked_steps: Mapping[str, _StatusOf],
    last_steps: Mapping[str, Sequence[int]],
    first_steps: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> _ChainFields:
    """Compute the status of items, of which one linked document suffices in `linked_steps`.

    The steps before and after these, `first_steps` and `last_steps`, have one status for each item.
    """
    columns = {item: i for i, item in enumerate(items)}
    column_of_link = np.array([columns[item] for item, _ in links], dtype=np.int64)
    link_status = np.array([[status_of(key) for _, key in links] for status_of in linked_steps.values()], np.int64)
    link_status = link_status.reshape(len(linked_steps), len(links))
    status, cumulative = (np.full((len(linked_steps), len(items)), LOST, dtype=np.int64) for _ in range(2))
    # The minimum over steps comes first: one and the same document has to pass all linked steps.
    link_cumulative = np.minimum.accumulate(link_status, axis=0)
    for i in range(len(linked_steps)):
        np.maximum.at(status[i], column_of_link, link_status[i])
        np.maximum.at(cumulative[i], column_of_link, link_cumulative[i])
    tables, size = (first_steps, last_steps), len(items)
    first, last = (np.array([*rows.values()], np.int64).reshape(len(rows), size) for rows in tables)
    cumulative = np.minimum.accumulate(np.concatenate([first, cumulative, last]), axis=0)
    names = tuple(tuple(map(str, item)) for item in items)
    return names, (*first_steps, *linked_steps, *last_steps), np.concatenate([first, status, last]), cumulative


def _status_in_stages(traces: Traces, stages: Sequence[str], cutoff: int) -> _StatusOf:
    """Return a function that checks if any of `stages` has a document up to rank `cutoff`."""

    def status_of(pair: _Key) -> int:
        topic, doc = pair
        rankings = [traces.documents(topic, stage) for stage in stages]
        if any(
            document.doc_id == doc and document.rank <= cutoff for ranking in rankings for document in ranking or ()
        ):
            return PASSED
        return UNJUDGED if any(ranking is None for ranking in rankings) else LOST

    return cache(status_of)
