"""Kinds of failure: what is wrong with a query, by definitions over its relevant documents, and what to do first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.answer import Answer, Column, Sentences, Table, counted
from judged.answer.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of, number, p_value
from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.decimals import decimal
from judged.diagnosis.changes import mean_of
from judged.slicing.slice_tests import everywhere
from judged.traces.failure_tests import score_curves, tested
from judged.traces.funnel import CORPUS, funnel

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.answer import Block
    from judged.measures.base import Measure
    from judged.notes import Note
    from judged.traces.failure_tests import FailureTest, ScoreBand
    from judged.traces.funnel import TraceFunnel
    from judged.traces.traces import Traces


class Failure(NamedTuple):
    """A kind of failure: a rule."""

    definition: str
    evidence: str  # what it is told by
    remedy: str  # the change that usually helps
    cost: str  # of that change
    source: str
    over_topics: bool = False  # told by a test over topics, and not of each document


FAILURES = {
    "missing content": Failure(
        "the corpus does not hold it",
        "ids of the corpus",
        "write or fetch it; index it",
        "content, and a larger index",
        "Yom-Tov et al., SIGIR 2005",
    ),
    "candidate": Failure(
        "the corpus holds it, as far as is known, and no first stage passed it on",
        "what the first stages passed on",
        "more candidates, another source, synonyms, spelling, another analyser",
        "latency of all later stages, a larger index",
        "Asadi and Lin, SIGIR 2013",
    ),
    "scoring": Failure(
        "a stage passed it on, and a later one cut it, or ranked it below the cutoff",
        "the stage that cut it, or its rank in the list that people saw",
        "another score, more features, a reranker, deeper reranking",
        "judgments to train on, latency",
        "Asadi and Lin, SIGIR 2013",
    ),
    "debugging": Failure(
        "the trace of the query lacks a stage or the documents of one, so that the kind is not known",
        "stages that are not recorded",
        "record every stage of every query",
        "storage",
        "our own definition",
    ),
    "calibration": Failure(
        "scores or ranks of merged sources do not mean the same: at the same place of the merged list, documents of one"
        " source are relevant more or less often than those of another",
        "relevance by place and by source; relevance by score",
        "merge by ranks (RRF), give the sources weights, or map their scores to the share that is relevant",
        "judgments for weights and mappings; none for ranks",
        "Cormack, Clarke and Buettcher, SIGIR 2009",
        over_topics=True,
    ),
    "freshness": Failure(
        "of a topic's documents of one grade, newer ones stand below older ones, or are not found",
        "pairs of dated documents of one topic and grade",
        "index more often; let the age count in the score",
        "indexing",
        "Dong et al., WSDM 2010",
        over_topics=True,
    ),
    "intent": Failure(
        "queries of a class lose more than others, or subtopics are left out more than by lot, or good lists are left",
        "losses and clicks by class against all other topics; subtopics of the list",
        "a ranker or features for the class; diversify; ask what the users of that class judge by",
        "judgments of that class",
        "Agrawal et al., WSDM 2009; Li, Huffman and Tokuda, SIGIR 2009",
        over_topics=True,
    ),
    "feedback": Failure(
        "clicks follow the position and not the grade: of two documents the worse one, shown higher, has more of them;"
        " or, of two of one grade, the upper one or the popular one has, though by rank as many were expected; or"
        " judges disagree about what is relevant more than on other topics",
        "clicks, and those that ranks let expect, on pairs of which the better one stands lower or that are of one"
        " grade; labels of several judges for what decides the score",
        "do not learn from these clicks without a model of positions, randomise some lists; settle the labels, or say"
        " in the topic what is asked",
        "randomised lists that users see; labels",
        "Joachims et al., SIGIR 2005; Zhang and Jones, WWW 2007; Voorhees, SIGIR 1998",
        over_topics=True,
    ),
}
"""The kinds, by name. A document that people did not see is of one of the first four; the others are tests over
topics, and may hold as well."""
_DEFINED = tuple(name for name, known in FAILURES.items() if not known.over_topics)


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
    tests
        Of the kinds that show over topics only, those for which there was something to test.
    curves
        Of sources that are merged: how often what has a score is relevant.
    fdr
        The rate of false discoveries among all of them (Benjamini-Hochberg).
    traffic
        How often each topic is asked (T,); None where that is not known.
    notes
        Of the traces and the judgments.
    """

    kind: ClassVar[str] = "failures"

    funnel: TraceFunnel
    found: tuple[tuple[str, str, str, str, float], ...]
    recoverable: Mapping[str, Any] = field(repr=False)
    cutoff: float = math.inf
    tests: tuple[FailureTest, ...] = ()
    curves: tuple[ScoreBand, ...] = ()
    fdr: float = 0.05
    traffic: Floats | None = field(default=None, repr=False)
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is sorted."""
        return f"{self.funnel.traces.name}: kinds of failure, {self.funnel.measure}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to do first, and what the tests found."""
        gains = {kind: mean_of(part) for kind, part in self.recoverable.items()}
        first = max(gains, key=lambda kind: gains[kind])
        known = FAILURES[first]
        gain = f"{decimal(gains[first])} of {self.funnel.measure}"
        told = f"To do first: {first}, which loses {gain}. What usually helps: {known.remedy}. Cost: {known.cost}."
        if gains[first] <= 0:
            told = "Nothing is lost that could be recovered."
        return (told, *self._discoveries())

    def _discoveries(self) -> Iterator[str]:
        if not self.tests:
            return
        found: dict[str, list[str]] = {}
        for test in self.tests:
            if test.found:
                found.setdefault(test.failure, []).append(f"{test.where} {decimal(test.difference, 3, '+')}")
        named = "; ".join(f"{kind}: {', '.join(where)}" for kind, where in found.items())
        tests = f"Tests over topics ({len(self.tests)}, false-discovery rate {self.fdr:g})"
        yield f"{tests} show {named or 'nothing'}."

    def facts(self) -> Mapping[str, Any]:
        """Give what was traced, and the definitions."""
        kinds = {name: known._asdict() for name, known in FAILURES.items()}
        asked = {"traces": self.funnel.traces.name, "measure": self.funnel.measure, "fdr": self.fdr}
        return {**asked, "definitions": kinds}

    def blocks(self) -> tuple[Block, ...]:
        """Give the kinds by recoverable loss, by slice too, the tests, and the documents."""
        shown = [Sentences(self.sentences), self._kinds_table()]
        tests = [self._tests_table()] if self.tests else []
        return (*shown, *tests, *([self._curves_table()] if self.curves else []), self._documents_table())

    def _kinds_table(self) -> Table:
        kinds = sorted(_DEFINED, key=lambda kind: -mean_of(self.recoverable[kind]))
        topics = self.funnel.query_ids
        occurring = [kind for kind in kinds if any(what == kind for _, _, what, _, _ in self.found)]
        asked = dict(zip(topics, np.ones(len(topics)) if self.traffic is None else self.traffic, strict=True))
        rows: list[tuple[str, str, int, int, float, float]] = []
        for some in everywhere(len(topics), self.funnel.slicing):
            inside = {topic for topic, member in zip(topics, some.mask.tolist(), strict=True) if member}
            for kind in kinds if some.every else occurring:
                own = [topic for topic, _, what, _, _ in self.found if what == kind and topic in inside]
                traffic = float(sum(asked[topic] for topic in set(own)))
                recoverable = mean_of(self.recoverable[kind][some.mask])
                rows.append((some.name, kind, len(own), len(set(own)), traffic, recoverable))
        sliced = self.funnel.slicing is not None
        known = [FAILURES[row[1]] for row in rows]
        helps = [f"{one.remedy} (cost: {one.cost})" if at < len(kinds) else None for at, one in enumerate(known)]
        return Table(
            "kinds",
            (
                Column("slice", [row[0] for row in rows], TEXT, only="" if sliced else "data"),
                Column("failure", [row[1] for row in rows], TEXT),
                Column("documents", [row[2] for row in rows], COUNT),
                Column("n", [row[3] for row in rows], COUNT, "topics"),
                Column("traffic", [row[4] for row in rows], number(0), only="data" if self.traffic is None else ""),
                Column("recoverable", [row[5] for row in rows], NUMBER, f"recoverable {self.funnel.measure}"),
                *columns_of(known, "remedy", "cost"),
                Column("helps", helps, TEXT, "what usually helps", only="people", below=True),
            ),
            "Kinds of failure",
            labels=2 if sliced else 1,
        )

    def _tests_table(self) -> Table:
        order = sorted(self.tests, key=lambda test: (not test.found, test.adjusted))
        gains = [test.recoverable for test in order]
        p = p_value(self.fdr)
        return Table(
            "tests",
            (
                *columns_of(order, ("failure", TEXT), ("where", TEXT), ("n", COUNT, "topics")),
                Column("difference", [test.difference for test in order], CHANGE, ci=[test.interval for test in order]),
                Column("p", [test.p for test in order], p, only="data"),
                Column("adjusted", [test.adjusted for test in order], p, "adjusted p",
                       mark=["*" if test.found else "" for test in order]),
                *columns_of(order, "found"),
                Column("recoverable", gains, CHANGE, f"recoverable {self.funnel.measure}"),
                Column("of", [test.what for test in order], TEXT, "difference of", below=True),
                Column("remedy", [FAILURES[test.failure].remedy for test in order], TEXT, only="data"),
                Column("cost", [FAILURES[test.failure].cost for test in order], TEXT, only="data"),
            ),
            "Tests over topics",
            labels=2,
            note="p: sign flips and Hall's test, for classes permutations, for labels Fisher's exact test; one-sided,"
            " as a difference above 0 is the failure (calibration: two-sided); Benjamini-Hochberg over all rows;"
            " recoverable overlaps with the kinds",
        )  # fmt: skip

    def _curves_table(self) -> Table:
        ends = (("low", NUMBER, "scores from"), ("high", NUMBER, "to"))
        return Table(
            "curves",
            columns_of(self.curves, ("where", TEXT), *ends, ("n", COUNT, "documents"), ("relevant", SHARE)),
            "How often a score is relevant",
            note="fifths of the scores of each source that is merged, over all topics; unjudged counts as not relevant",
        )

    def _documents_table(self) -> Table:
        return Table(
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


def failures(
    qrels: Any,
    traces: Traces,
    measure: str | Measure = "nDCG@10",
    *,
    final: str | None = None,
    corpus: Iterable[str] | None = None,
    documents: Any = None,
    date: str = "date",
    today: Any = None,
    clicks: Any = None,
    labels: Any = None,
    slicing: Any = None,
    attributes: Any = None,
    where: str | None = None,
    fdr: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
) -> Failures:
    """Sort the relevant documents that people did not see by kind of failure, and test the kinds that show over topics.

    Parameters
    ----------
    qrels, traces, measure, final, corpus, where
        As for `funnel`; the measure's cutoff is how far people look.
    documents, date
        A table of documents, and its column of dates: for freshness.
    today
        Later documents are left out; None: the newest date.
    clicks
        Rows of ``query_id``, ``doc_id`` and ``clicks``, for feedback and lists that are left; without them, the fact
        ``clicks`` that was recorded with the list people saw. With ``expected`` clicks, as `judged.clicks.coec` counts
        them, two documents of one grade are compared as well: by position and by popularity.
    labels
        Of several judges, as `Labels.of` takes them: for feedback, topics on which they disagree more than on others.
    slicing
        Classes of queries: for intent, and by which the kinds are shown too.
    attributes
        Of topics; a number called ``traffic`` says how often each is asked; without it, how often it was traced does.
    fdr
        Rate of false discoveries over all tests (Benjamini-Hochberg). Fewer than ten topics are not tested.
    level, seed
        Of intervals, and of sign flips and permutations.

    Raises
    ------
    InputError
        If something cannot be read, or no traced query is judged.
    MeasureError
        If the best order is not known for the measure.

    Notes
    -----
    Calibration: documents of one source only against those of the others only, by how much more often they are relevant
    than what stands at their place of the merged list usually is (isotonic regression). Freshness and feedback: pairs
    within a topic. Intent: each slice against all other topics, by loss and by good lists (half of the best score) that
    nobody clicked on; subtopics that the list leaves out against relevant documents drawn by lot.

    Examples
    --------
    >>> from judged.traces import traces_of_runs
    >>> made = traces_of_runs({"bm25": {"q": ["x", "a", "b"]}, "rerank": {"q": ["x", "a"]}})
    >>> found = failures({"q": {"a": 1, "b": 1, "c": 1, "d": 1}}, made, "R@1", corpus=["a", "b", "c", "x"])
    >>> [(doc, kind) for _, doc, kind, _, _ in found.found]
    [('a', 'scoring'), ('b', 'scoring'), ('c', 'candidate'), ('d', 'missing content')]
    """
    asked: dict[str, Any] = {"final": final, "slicing": slicing, "attributes": attributes, "where": where}
    judgments = Qrels.of(qrels)
    made = funnel(judgments, traces, measure, corpus=corpus, **asked)
    known = None if attributes is None else Attributes.of(attributes)
    counts = known.numbers("traffic") if known is not None and "traffic" in known.names else traces.times
    traffic = np.array([counts.get(topic, 0.0) for topic in made.query_ids]) if counts else None
    by = {"documents": documents, "date": date, "today": today, "clicks": clicks, "labels": labels}
    tests = tested(made, judgments, **by, fdr=fdr, level=level, seed=seed)
    steps = [name for name in made.parts if name != CORPUS]
    cutoff = getattr(made.measure, "cutoff", None) or math.inf
    path = [loss.stage.name for loss in made.losses]
    unrecorded = {topic for topic in made.query_ids if not _recorded(traces, topic, path)}
    kind_of = {CORPUS: "missing content", steps[0]: "candidate"}

    def kind(topic: str, step: str) -> str:
        return "debugging" if topic in unrecorded and step != CORPUS else kind_of.get(step, "scoring")

    lost = (*made.lost, *made.below(cutoff))
    found = [(topic, doc, kind(topic, step), step, grade) for topic, doc, step, grade in lost]
    lacking = np.array([topic in unrecorded for topic in made.query_ids])
    groups = {"missing content": [CORPUS], "candidate": steps[:1], "scoring": steps[1:]}
    none = np.zeros(len(made.score))
    recoverable = {name: sum((made.parts.get(part, none) for part in parts), none) for name, parts in groups.items()}
    recoverable |= {name: np.where(lacking, 0.0, recoverable[name]) for name in ("candidate", "scoring")}
    rest = made.best - made.score - made.parts.get(CORPUS, none)
    recoverable["debugging"] = np.where(lacking, rest, 0.0)
    found.sort(key=lambda row: (made.query_ids.index(row[0]), row[1]))
    curves = score_curves(made, judgments)
    return Failures(made, tuple(found), recoverable, cutoff, tests, curves, fdr, traffic, made.notes)


def _recorded(traces: Traces, query_id: str, path: Iterable[str]) -> bool:
    """Tell whether the documents of every stage that leads to the list are recorded."""
    spans = traces.spans_of(query_id)
    return all(name in spans and spans[name].documents is not None for name in path)
