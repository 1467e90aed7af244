"""The chains along which evidence is followed: which of their items passed each step, and of which nobody knows."""

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

if TYPE_CHECKING:
    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.traces import Traces
    from judged.results.types import Ints

LOST, UNJUDGED, PASSED = 0, 1, 2
"""What is known of an item at a step; in this order the least of several steps and the most of several documents
is what is known of them together."""
STEPS: Mapping[str, str] = {
    "corpus": "in the corpus",
    "retrieved": "retrieved",
    "ranked": "ranked first",
    "context": "in the context",
    "grounded": "supported by the context",
    "cited": "cited",
    "supported": "the citation supports it",
    "covered": "the answer says it",
    "answered": "answered at all",
    "correct": "answered correctly",
    "satisfied": "the user is satisfied",
}
"""The steps, in order, and what people call them."""
UNITS: Mapping[str, tuple[str, str]] = {
    "nugget": ("nuggets with evidence", "nuggets: some document with the evidence comes through"),
    "answer": ("answers to topics with a relevant document", "answers: some relevant document comes through"),
    "document": ("relevant documents", "documents"),
    "sentence": ("sentences", "sentences: some citation comes through"),
    "user": ("users' opinions", "users"),
}
"""What is followed, the chain that reaches farthest first: what its items are, and its heading."""
_Code: TypeAlias = Callable[[tuple[Any, ...]], int]


@dataclass(frozen=True, eq=False)
class Chain(ReadOnly):
    """The way of I items of one system through S steps."""

    run: str
    unit: str
    items: tuple[tuple[str, ...], ...]  # the topic of each, and its id within it
    steps: tuple[str, ...]
    seen: Ints = field(repr=False)  # (S, I): what is known at the step, whatever came before
    held: Ints = field(repr=False)  # (S, I): what is known of it and of all steps before


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
    """Follow nuggets, answers, documents, sentences and users of one system, each as far as tables reach.

    Parameters
    ----------
    responses, run
        What was answered, and the system.
    relevant
        The relevant documents of each topic.
    traces
        The stages before the context. What they do not record is unjudged.
    corpus, cutoffs, strict
        As for `waterfall`.
    """
    own = _System(responses.of_run(run), relevant or {}, (SUPPORT,) if strict else (SUPPORT, PARTIAL))
    before: dict[str, _Code] = {}
    if corpus is not None:
        before["corpus"] = lambda pair: PASSED * (pair[1] in corpus)
    if traces is not None:
        first = [stage.name for stage in traces.stages if stage.step == 1]
        before["retrieved"] = _listed(traces, first, cutoffs[0])
        before["ranked"] = _listed(traces, [traces.final.name], cutoffs[1])
    steps = {**before, **own.of_documents()}
    return tuple(
        Chain(run, unit, items, names, seen, held)
        for unit, (items, names, seen, held) in {
            "nugget": own.nuggets(steps),
            "answer": own.answers(steps),
            "document": own.documents(steps),
            "sentence": own.sentences(),
            "user": own.users(),
        }.items()
        if items and names
    )


_Way: TypeAlias = tuple[tuple[tuple[str, ...], ...], tuple[str, ...], "Ints", "Ints"]


class _System:
    """What one system answered, and what is known of it, as it is looked up."""

    def __init__(self, own: Responses, relevant: Mapping[str, Sequence[str]], passing: tuple[str, ...]) -> None:
        self.own, self.passing = own, passing
        self.answered = {row["query_id"]: row for row in own["answers"].to_pylist()}
        self.silent = {topic for topic, row in self.answered.items() if row["abstained"]}  # claims and cites nothing
        cited = [(row["query_id"], row["sentence"], row["doc_id"]) for row in own["citations"].to_pylist()]
        self.cited = [triple for triple in cited if triple[0] not in self.silent]
        self.context = {(row["query_id"], row["doc_id"]) for row in own["context"].to_pylist()}
        self.support = self.verdicts("support", "query_id", "sentence", "doc_id")
        self.judged = any(doc for _, _, doc in self.support)
        unanswerable = {row["query_id"] for row in own["references"].to_pylist() if row["answerable"] is False}
        self.relevant = {topic: relevant.get(topic, ()) for topic in self.answered}
        self.wanted = [
            topic for topic in self.answered if topic not in unanswerable and (self.relevant[topic] or not relevant)
        ]

    def verdicts(self, table: str, *key: str) -> dict[tuple[Any, ...], int]:
        """Give what the verdicts of a table say of passing."""
        found = middle_verdicts(self.own[table], *key)
        return {place: UNJUDGED if it == FAILED else PASSED * (it in self.passing) for place, it in found.items()}

    def of_documents(self) -> dict[str, _Code]:
        """Give the steps of a topic's documents that the answers themselves tell."""
        supporting: dict[tuple[Any, ...], int] = {}
        for topic, sentence, doc in self.cited:
            code = self.support.get((topic, sentence, doc), UNJUDGED)
            supporting[topic, doc] = max(code, supporting.get((topic, doc), LOST))
        steps: dict[str, _Code] = {
            "context": lambda pair: PASSED * (pair in self.context),
            "cited": lambda pair: PASSED * (pair in supporting),
            "supported": lambda pair: supporting.get(pair, LOST),
        }
        return {name: code for name, code in steps.items() if name in self._told()}

    def _told(self) -> set[str]:
        told = {"context"} if self.context else set[str]()
        return told | ({"cited", *(["supported"] if self.judged else [])} if self.own["citations"].num_rows else set())

    def nuggets(self, steps: Mapping[str, _Code]) -> _Way:
        """Follow nuggets by the documents that they stand in, and to the answer; all of them where none is linked."""
        rows = (*self.own["nuggets"].to_pylist(), *(evidence := self.own["evidence"].to_pylist()))
        every = dict.fromkeys((row["query_id"], row["nugget_id"]) for row in rows if row["query_id"] in self.answered)
        links = [((row["query_id"], row["nugget_id"]), (row["query_id"], row["doc_id"])) for row in evidence]
        links = [link for link in links if link[0] in every and steps]
        assigned = self.verdicts("assignments", "query_id", "nugget_id")
        items = list(dict.fromkeys(item for item, _ in links) if links else every)
        said = [assigned.get(item, LOST if item[0] in self.silent else UNJUDGED) for item in items]
        covered = {"covered": said} if assigned else {}
        return _followed(items, links, steps if links else {}, covered)

    def answers(self, steps: Mapping[str, _Code]) -> _Way:
        """Follow answers to what can be answered by the relevant documents, and to whether they are correct."""
        links = [((topic,), (topic, doc)) for topic in self.wanted for doc in self.relevant[topic]]
        items = [(topic,) for topic in self.wanted]
        return _followed(items, links, steps if links else {}, self._outcomes(self.wanted))

    def _outcomes(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """Tell whether questions were answered, and correctly."""
        found: dict[str, list[int]] = {}
        if any(row["abstained"] is not None for row in self.answered.values()):
            said = (self.answered[topic]["abstained"] for topic in topics)
            found["answered"] = [UNJUDGED if no is None else PASSED * (not no) for no in said]
        if correct := self.verdicts("correctness", "query_id"):
            found["correct"] = [correct.get((topic,), UNJUDGED) for topic in topics]
        return found

    def documents(self, steps: Mapping[str, _Code]) -> _Way:
        """Follow relevant documents."""
        items = [(topic, doc) for topic, docs in self.relevant.items() for doc in docs]
        return _followed(items, [(item, item) for item in items], steps, {})

    def sentences(self) -> _Way:
        """Follow what was said by its citations, and first of all by the whole context where that was judged."""
        items = [
            (row["query_id"], row["sentence"])
            for row in self.own["sentences"].to_pylist()
            if row["query_id"] not in self.silent
        ]
        known = set(items)
        links = [(triple[:2], triple) for triple in self.cited if triple[:2] in known]
        told, whole = self._told(), {place[:2]: code for place, code in self.support.items() if not place[2]}
        steps: dict[str, _Code] = {
            "cited": lambda _: PASSED,
            "context": lambda triple: PASSED * ((triple[0], triple[2]) in self.context),
            "supported": lambda triple: self.support.get(triple, UNJUDGED),
        }
        steps = {name: code for name, code in steps.items() if name in told and "cited" in told}
        grounded = {"grounded": [whole.get(item, UNJUDGED) for item in items]} if whole else {}
        return _followed(items, links, steps, {}, first=grounded)

    def users(self) -> _Way:
        """Follow users by the outcomes of the answers that they were given."""
        known = set(self.wanted)
        rows = [row for row in self.own["feedback"].to_pylist() if row["query_id"] in known]
        satisfied = [UNJUDGED if row["satisfied"] is None else PASSED * row["satisfied"] for row in rows]
        outcomes = self._outcomes([row["query_id"] for row in rows])
        items = [(row["query_id"], row["user_id"]) for row in rows]
        return _followed(items, (), {}, {**outcomes, "satisfied": satisfied})


def _followed(
    items: Sequence[tuple[Any, ...]],
    links: Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]],
    linked: Mapping[str, _Code],
    last: Mapping[str, Sequence[int]],
    first: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> _Way:
    """Follow items by what they are linked to, of which one has to come through, and before and after by their own."""
    place = {item: at for at, item in enumerate(items)}
    of = np.array([place[item] for item, _ in links], dtype=np.int64)
    codes = np.array([[code(to) for _, to in links] for code in linked.values()], dtype=np.int64)
    codes = codes.reshape(len(linked), len(links))
    seen, held = (np.full((len(linked), len(items)), LOST, dtype=np.int64) for _ in range(2))
    for step, (here, so_far) in enumerate(zip(codes, np.minimum.accumulate(codes, axis=0), strict=True)):
        np.maximum.at(seen[step], of, here)
        np.maximum.at(held[step], of, so_far)
    before, behind = (np.array(list(of.values()), dtype=np.int64).reshape(len(of), len(items)) for of in (first, last))
    held = np.minimum.accumulate(np.concatenate([before, held, behind]), axis=0)
    names = tuple(tuple(map(str, item)) for item in items)
    return names, (*first, *linked, *last), np.concatenate([before, seen, behind]), held


def _listed(traces: Traces, stages: Sequence[str], cutoff: int) -> _Code:
    """Look whether a document stands in the first ones of any of some stages; unjudged where one is not recorded."""

    def code(pair: tuple[Any, ...]) -> int:
        topic, doc = pair
        lists = [traces.documents(topic, stage) for stage in stages]
        if any(one.doc_id == doc and one.rank <= cutoff for documents in lists for one in documents or ()):
            return PASSED
        return UNJUDGED if any(documents is None for documents in lists) else LOST

    return cache(code)
