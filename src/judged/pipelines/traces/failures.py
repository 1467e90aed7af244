"""Kinds of failure: what is wrong with a query, by definitions over its relevant documents, and what to do first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.comparison.slicing.parts import topic_subsets
from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.diagnosis.changes import mean_of
from judged.pipelines.traces.failure_tests import CLASS, alternatives, missed_share, score_curves, tested
from judged.pipelines.traces.funnel import funnel
from judged.pipelines.traces.funnel_answer import SCORE
from judged.pipelines.traces.steps import CORPUS
from judged.results import Answer, Column, Sentences, Table, counted
from judged.results.decimals import decimal, listed
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of, number, p_value
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.pipelines.traces.failure_tests import FailureTest, ScoreBand, Untested
    from judged.pipelines.traces.funnel_answer import TraceFunnel
    from judged.pipelines.traces.traces import Traces
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats
    from judged.scoring.measures.base import Measure


_ROUNDING = 1e-12


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
        "more candidates, another source, synonyms, spelling, another analyzer",
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
        "do not learn from these clicks without a model of positions, randomize some lists; settle the labels, or say"
        " in the topic what is asked",
        "randomized lists that users see; labels",
        "Joachims et al., SIGIR 2005; Zhang and Jones, WWW 2007; Voorhees, SIGIR 1998",
        over_topics=True,
    ),
}
"""The kinds, by name. A document that people did not see is of one of the first four; the others are tests over
topics, and may hold as well."""


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
        By kind (T,): how much of the measure is lost by it; ``missing content`` only if a corpus was given. On a topic
        with a stage that is not recorded, all that is lost, but for missing content, is of ``debugging``, and what
        ``candidate`` and ``scoring`` lose is NaN; if the list itself is not recorded, so is ``debugging``.
    limits
        By kind (2, T): the lowest and highest loss by it that is possible, whatever was not recorded. Of ``debugging``
        they bound the loss that the traces leave without a kind.
    cutoff
        Ranks that people see.
    tests
        Of the kinds that show over topics only, those for which there was something to test.
    untested
        What was not tested, and why: nothing is known of it, which is not to say that there is none.
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
    recoverable: Mapping[str, Any]
    limits: Mapping[str, Any]
    cutoff: float = math.inf
    tests: tuple[FailureTest, ...] = ()
    untested: tuple[Untested, ...] = ()
    curves: tuple[ScoreBand, ...] = ()
    fdr: float = 0.05
    traffic: Floats | None = None
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is sorted."""
        return f"{self.funnel.traces.name}: kinds of failure, {self.funnel.measure}"

    def bounds(self, kind: str, mask: Bools | None = None) -> tuple[float, float]:
        """Return the lowest and highest mean loss by a kind over topics, whatever was not recorded."""
        limits = self.limits[kind] if mask is None else self.limits[kind][:, mask]
        return mean_of(limits[0]), mean_of(limits[1])

    @cached_property
    def first(self) -> str | None:
        """The kind that loses most, whatever was not recorded; None if nothing is lost, or that is not known."""
        bounds = {kind: self.bounds(kind) for kind in self.recoverable}
        first = max(bounds, key=lambda kind: bounds[kind][0])
        others = [high for kind, (_, high) in bounds.items() if kind not in (first, "debugging")]
        low = bounds[first][0]
        return first if low > 0 and all(low >= high for high in others) else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to do first, what the tests found, and what was not tested."""
        measure, unknown = self.funnel.measure, self.bounds("debugging")[1]
        if self.first is not None:
            known, (low, high) = FAILURES[self.first], self.bounds(self.first)
            loss = decimal(low) if high - low < _ROUNDING else f"{decimal(low)} to {decimal(high)}"
            told = f"To do first: {self.first}, which loses {loss} of {measure}."
            told += f" What usually helps: {known.remedy}. Cost: {known.cost}."
        elif unknown > 0:
            told = (
                f"To do first: debugging, {FAILURES['debugging'].remedy}. Up to {decimal(unknown)} of {measure} is lost"
                " where a stage is not recorded, so that it is not known which other kind loses most."
            )
        else:
            told = "Nothing is lost that could be recovered."
        return (told, *self._discoveries(), *self._not_tested())

    def _discoveries(self) -> Iterator[str]:
        if not self.tests:
            return
        found: dict[str, list[str]] = {}
        for test in self.tests:
            if test.found:
                found.setdefault(test.failure, []).append(f"{test.where} {decimal(test.difference, 3, '+')}")
        named = "; ".join(f"{self._named(kind)}: {', '.join(where)}" for kind, where in found.items())
        tests = f"Tests over topics ({len(self.tests)}, false-discovery rate {self.fdr:g})"
        yield f"{tests} show {named or 'nothing'}."

    def _not_tested(self) -> Iterator[str]:
        if self.untested:
            kinds: dict[str, list[str]] = {}
            for one in self.untested:
                kinds.setdefault(one.failure, []).append(one.what)
            named = listed([f"{kind} ({', '.join(what)})" for kind, what in kinds.items()])
            yield f"Not tested, for the reasons in the table: {named}."

    @property
    def alternatives(self) -> tuple[str, ...]:
        """Other kinds that could be the reason why a class of queries loses more: not tested, or found as well."""
        also = (test.failure for test in self.tests if test.found and test.failure not in ("intent", CLASS))
        return tuple(dict.fromkeys((*alternatives(self.untested, self.tests), *also)))

    def _named(self, kind: str) -> str:
        """Name a kind that was found, with the others that could be the reason."""
        if kind not in ("intent", CLASS) or not self.alternatives:
            return kind
        return f"{kind} (which could also be {listed(self.alternatives, 'or')})"

    def facts(self) -> Mapping[str, Any]:
        """Give what was traced, and the definitions."""
        kinds = {name: known._asdict() for name, known in FAILURES.items()}
        asked = {"traces": self.funnel.traces.name, "measure": self.funnel.measure, "fdr": self.fdr}
        return {**asked, "definitions": kinds}

    def blocks(self) -> tuple[Block, ...]:
        """Give the kinds by recoverable loss, by slice too, the tests, and the documents."""
        shown = [Sentences(self.sentences), self._kinds_table()]
        tests = [self._tests_table()] if self.tests else []
        untested = [self._untested_table()] if self.untested else []
        curves = [self._curves_table()] if self.curves else []
        return (*shown, *tests, *untested, *curves, self._documents_table())

    def _kinds_table(self) -> Table:
        means = {kind: mean_of(loss) for kind, loss in self.recoverable.items()}
        kinds = sorted(means, key=lambda kind: -np.nan_to_num(means[kind]))
        topics = self.funnel.query_ids
        occurring = [kind for kind in kinds if any(what == kind for _, _, what, _, _ in self.found)]
        asked = dict(zip(topics, np.ones(len(topics)) if self.traffic is None else self.traffic, strict=True))
        rows: list[tuple[str, str, int, int, float, float]] = []
        ends: list[tuple[float, float]] = []
        for some in topic_subsets(len(topics), self.funnel.slicing):
            inside = {topic for topic, member in zip(topics, some.mask.tolist(), strict=True) if member}
            for kind in kinds if some.is_all else occurring:
                own = [topic for topic, _, what, _, _ in self.found if what == kind and topic in inside]
                traffic = float(sum(asked[topic] for topic in set(own)))
                losses = self.recoverable[kind][some.mask]
                unknown = kind == "debugging" and bool(np.isnan(losses).any())  # 0 on the others says nothing
                recoverable = math.nan if unknown else mean_of(losses)
                rows.append((some.name, kind, len(own), len(set(own)), traffic, recoverable))
                ends.append(self.bounds(kind, some.mask))
        sliced = self.funnel.slicing is not None
        bounded = "" if any(np.isnan(loss).any() for loss in self.recoverable.values()) else "data"
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
                Column("low", [end[0] for end in ends], NUMBER, "at least", only=bounded),
                Column("high", [end[1] for end in ends], NUMBER, "at most", only=bounded),
                *columns_of(known, "remedy", "cost"),
                Column("helps", helps, TEXT, "what usually helps", only="people", below=True),
            ),
            "Kinds of failure",
            labels=2 if sliced else 1,
            note=""
            if bounded
            else "recoverable: means over the topics of which it is known; at least, at most: means"
            " over all topics, whatever was not recorded",
        )

    def _untested_table(self) -> Table:
        columns = columns_of(self.untested, ("failure", TEXT), ("what", TEXT), "code", ("reason", TEXT))
        return Table("untested", columns, "Not tested", labels=2)

    def _tests_table(self) -> Table:
        order = sorted(self.tests, key=lambda test: (not test.found, test.adjusted))
        classes = [test.failure == CLASS or (test.failure == "intent" and test.members is not None) for test in order]
        others, known = ", ".join(self.alternatives), [FAILURES.get(test.failure) for test in order]
        gains = [test.recoverable for test in order]
        p = p_value(self.fdr)
        return Table(
            "tests",
            (
                Column("failure", [test.failure for test in order], TEXT),
                *columns_of(order, ("where", TEXT), ("n", COUNT, "topics")),
                Column("difference", [test.difference for test in order], CHANGE, ci=[test.interval for test in order]),
                Column("p", [test.p for test in order], p, only="data"),
                Column("adjusted", [test.adjusted for test in order], p, "adjusted p",
                       mark=["*" if test.found else "" for test in order]),
                *columns_of(order, "found"),
                Column("missed", [missed_share(test.n) for test in order], SHARE, only="data"),
                Column("recoverable", gains, CHANGE, f"recoverable {self.funnel.measure}"),
                Column("alternatives", [others if one else "" for one in classes], TEXT, "could also be",
                       only="" if others and any(classes) else "data"),
                Column("of", [test.what for test in order], TEXT, "difference of", below=True),
                Column("remedy", [one.remedy if one else None for one in known], TEXT, only="data"),
                Column("cost", [one.cost if one else None for one in known], TEXT, only="data"),
            ),
            "Tests over topics",
            labels=2,
            note="p: sign flips and Hall's test, for classes permutations, for labels Fisher's exact test; one-sided,"
            " as a difference above 0 is the failure (calibration: two-sided); Benjamini-Hochberg over all rows;"
            " recoverable overlaps with the kinds. What happens on few topics only can be missed, and then the p-values"
            " do not hold: with 10, 25, and 100 topics, 26%, 11%, and 3% of all topics (missed in 5% of samples)",
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
        records = [
            dict(zip(("query_id", "doc_id", "failure", "step", "grade"), row, strict=True)) for row in self.found
        ]
        ids = (("query_id", TEXT, "topic"), ("doc_id", TEXT, "document"))
        columns = columns_of(records, *ids, ("failure", TEXT), ("step", TEXT, "lost at"), ("grade", number(0)))
        title = f"{counted(len(records), 'relevant document')} not seen"
        return Table("documents", columns, title, labels=4, folded=True)


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
        ``clicks`` that was recorded with the list people saw. With ``expected`` clicks, as `judged.online.clicks.coec`
        counts them, two documents of one grade are compared as well: by position and by popularity.
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
    >>> from judged.pipelines.traces import traces_of_runs
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
    tests, untested = tested(made, judgments, **by, fdr=fdr, level=level, seed=seed)
    steps = [name for name in made.parts if name != CORPUS]
    cutoff = getattr(made.measure, "cutoff", None) or math.inf
    recorded = np.logical_and.reduce([loss.recorded for loss in made.losses])
    unrecorded = {topic for topic, known in zip(made.query_ids, recorded.tolist(), strict=True) if not known}
    kind_of = {CORPUS: "missing content", steps[0]: "candidate"}

    def kind(topic: str, step: str) -> str:
        return "debugging" if topic in unrecorded and step != CORPUS else kind_of.get(step, "scoring")

    lost = (*made.lost, *made.below(cutoff))
    found = [(topic, doc, kind(topic, step), step, grade) for topic, doc, step, grade in lost]
    recoverable, limits = _by_kind(made, steps, recorded)
    found.sort(key=lambda row: (made.query_ids.index(row[0]), row[1]))
    curves = score_curves(made, judgments)
    return Failures(made, tuple(found), recoverable, limits, cutoff, tests, untested, curves, fdr, traffic, made.notes)


def _by_kind(made: TraceFunnel, steps: list[str], recorded: Bools) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return by kind what is lost, and the lowest and highest loss that is possible where a stage is not recorded."""
    none = np.zeros(len(made.score))
    missing = made.parts.get(CORPUS, none)  # without a corpus, what is missing is of the kind candidate
    candidate, scoring = made.parts[steps[0]], sum((made.parts[step] for step in steps[1:]), none)
    rest = made.best - made.score - missing
    recoverable = {
        "missing content": missing,
        "candidate": np.where(recorded, candidate, np.nan),
        "scoring": np.where(recorded, scoring, np.nan),
        "debugging": np.where(recorded, 0.0, rest),
    }
    low, high = made.limits[SCORE]
    least, most = made.best - high - missing, made.best - low - missing  # without a kind
    first, best = made.limits[steps[0]], made.best - missing
    later = np.stack([best - first[1] - high, best - first[0] - low])
    limits = {
        "missing content": np.stack([missing, missing]),
        "candidate": np.where(recorded, recoverable["candidate"], first),
        "scoring": np.where(recorded, recoverable["scoring"], later),
        "debugging": np.where(recorded, 0.0, np.stack([least, most])),
    }
    if CORPUS not in made.parts:
        del recoverable["missing content"], limits["missing content"]
    return recoverable, limits
