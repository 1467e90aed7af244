"""Kinds of failure by definitions over relevant documents, with remedies, and tests over topics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.comparison.slicing.parts import topic_subsets
from judged.data.attributes import Attributes
from judged.data.freshness import DatedDocuments, dated_documents
from judged.data.qrels import Qrels
from judged.diagnosis.changes import mean_of
from judged.pipelines.traces.failure_tests import SLICE_TEST, alternatives, missed_share, run_tests, score_curves
from judged.pipelines.traces.funnel import funnel
from judged.pipelines.traces.funnel_answer import SCORE
from judged.pipelines.traces.steps import CORPUS
from judged.results import Answer, Axis, Column, Headline, Sentences, Table, counted
from judged.results.decimals import decimal, listed, p_text
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of, number, p_value
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.pipelines.traces.failure_tests import FailureTest, ScoreBand, Untested
    from judged.pipelines.traces.funnel_answer import TraceFunnel
    from judged.pipelines.traces.traces import Traces
    from judged.results import Block, Status
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats
    from judged.scoring.measures.base import Measure


_ROUNDING = 1e-12
_FOUND = {
    "missing content": "are not in the corpus",
    "candidate": "are returned by no first stage",
    "scoring": "are found, and then removed or ranked below the cutoff",
    "debugging": "are lost at stages that are not recorded",
}


class Failure(NamedTuple):
    """Definition of a kind of failure."""

    definition: str
    evidence: str  # data from which it is inferred
    remedy: str  # change that usually helps
    cost: str  # cost of the remedy
    source: str
    over_topics: bool = False  # inferred from a test over topics instead of single documents


FAILURES = {
    "missing content": Failure(
        "the corpus does not contain the document",
        "document ids of the corpus",
        "write or fetch the document, and index it",
        "new content, and a larger index",
        "Yom-Tov et al., SIGIR 2005",
    ),
    "candidate": Failure(
        "no first stage returned the document; if the ids of the corpus are not known, the document is assumed to be"
        " in the corpus",
        "documents that the first stages returned",
        "more candidates, another source, synonyms, spelling correction, another analyzer",
        "higher latency of all later stages, and a larger index",
        "Asadi and Lin, SIGIR 2013",
    ),
    "scoring": Failure(
        "a stage returned the document, and a later stage removed it or ranked it below the cutoff",
        "the stage that removed the document, or its rank in the list that users saw",
        "another score, more features, a reranker, deeper reranking",
        "judgments for training, and higher latency",
        "Asadi and Lin, SIGIR 2013",
    ),
    "debugging": Failure(
        "the trace of the query lacks a stage or its documents, so the kind of failure is unknown",
        "stages that are not recorded",
        "record every stage of every query",
        "storage for the traces",
        "our own definition",
    ),
    "calibration": Failure(
        "scores or ranks of merged sources are not comparable: at the same rank of the merged list, documents of one"
        " source are relevant more often than documents of another source",
        "share of relevant documents by rank, by source, and by score",
        "merge by ranks (RRF), weight the sources, or map their scores to the share of relevant documents",
        "weights and score mappings require judgments; RRF requires no judgments",
        "Cormack, Clarke and Buettcher, SIGIR 2009",
        over_topics=True,
    ),
    "freshness": Failure(
        "among documents of a topic with the same grade, newer documents are ranked below older ones or are missing",
        "pairs of dated documents of one topic and grade",
        "index more often; include the age in the score",
        "more index updates",
        "Dong et al., WSDM 2010",
        over_topics=True,
    ),
    "intent": Failure(
        "a class of queries has a higher loss than other queries; or its good lists are clicked less often; or lists"
        " lack more subtopics than a random sample of relevant documents",
        "losses and clicks of a class of topics, compared with all other topics; number of subtopics in each list",
        "a ranker or features for the class; diversification; find out what users of the class look for",
        "judgments for topics of the class",
        "Agrawal et al., WSDM 2009; Li, Huffman and Tokuda, SIGIR 2009",
        over_topics=True,
    ),
    "feedback": Failure(
        "clicks follow the position and not the grade: the less relevant of two documents is ranked higher and has more"
        " clicks; or, of two documents of equal grade, the higher-ranked or more popular document has more clicks than"
        " expected by rank; or annotators disagree about relevance more than on other topics",
        "clicks and expected clicks on pairs of documents with equal grades or with the less relevant document ranked"
        " higher; labels by several annotators for the documents that determine the score",
        "do not train on these clicks without a position model; randomize some lists; resolve disagreements of"
        " labels, or describe the information need in the topic",
        "worse results for users who see randomized lists; more labels",
        "Joachims et al., SIGIR 2005; Zhang and Jones, WWW 2007; Voorhees, SIGIR 1998",
        over_topics=True,
    ),
}
"""Kinds by name. A document that users did not see has one of the first four kinds; the others are tests over topics,
and can apply to the same documents."""


@dataclass(frozen=True, eq=False, repr=False)
class Failures(Answer):
    """Relevant documents that users did not see, by kind of failure.

    Parameters
    ----------
    funnel
        Loss by stage.
    documents
        Topic, document, kind, step at which it was lost, and grade.
    recoverable
        (T,) loss of the measure by kind; ``missing content`` requires a corpus. For topics with an unrecorded stage,
        the loss is ``debugging``, except for missing content, and that of ``candidate`` and ``scoring`` is NaN; if the
        list itself is not recorded, ``debugging`` is NaN as well.
    limits
        (2, T) lowest and highest possible loss by kind, whatever was not recorded. For ``debugging`` they bound the
        loss without a known kind.
    cutoff
        Number of ranks that users see.
    tests
        Tests of kinds over topics.
    untested
        Kinds that were not tested, and reasons. They could occur nevertheless.
    curves
        Share of relevant documents by score, for sources that are merged.
    fdr
        False discovery rate over all tests (Benjamini-Hochberg).
    traffic
        (T,) frequency of each topic; None if unknown.
    dated
        Documents with dates, for the freshness of each lost document.
    notes
        Notes about traces and judgments.
    """

    kind: ClassVar[str] = "failures"

    funnel: TraceFunnel
    documents: tuple[tuple[str, str, str, str, float], ...]
    recoverable: Mapping[str, Any]
    limits: Mapping[str, Any]
    cutoff: float = math.inf
    tests: tuple[FailureTest, ...] = ()
    untested: tuple[Untested, ...] = ()
    curves: tuple[ScoreBand, ...] = ()
    fdr: float = 0.05
    traffic: Floats | None = None
    dated: DatedDocuments | None = None
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"{self.funnel.traces.name}: kinds of failure, {self.funnel.measure}"

    def bounds(self, kind: str, mask: Bools | None = None) -> tuple[float, float]:
        """Return the lowest and highest possible mean loss by a kind over topics, whatever was not recorded."""
        limits = self.limits[kind] if mask is None else self.limits[kind][:, mask]
        return mean_of(limits[0]), mean_of(limits[1])

    @cached_property
    def first(self) -> str | None:
        """Kind with the largest loss, whatever was not recorded; None without a loss, or if it is uncertain."""
        bounds = {kind: self.bounds(kind) for kind in self.recoverable}
        first = max(bounds, key=lambda kind: bounds[kind][0])
        highs = [high for kind, (_, high) in bounds.items() if kind not in (first, "debugging")]
        low = bounds[first][0]
        return first if low > 0 and all(low >= high for high in highs) else None

    @property
    def headline(self) -> Headline:
        """The kind with the largest loss. Whether other kinds lose less is not tested."""
        measure, unknown = self.funnel.measure, self.bounds("debugging")[1]
        if self.first is None and unknown > 0:
            sentence = f"Up to {decimal(unknown)} of {measure} is lost at stages that are not recorded."
            return Headline("unknown", "not recorded", sentence)
        if self.first is None:
            return Headline("info", "no loss", f"There is no recoverable loss of {measure}.")
        low, high = self.bounds(self.first)
        lost_topics = [topic for topic, _, kind, _, _ in self.documents if kind == self.first]
        documents = counted(len(lost_topics), "relevant document")
        sentence = f"{documents} of {counted(len(set(lost_topics)), 'topic')} {_FOUND[self.first]}."
        bound = "" if high - low < _ROUNDING else f" or more, at most {decimal(high)}"
        label = f"{measure} lost by {self.first}{bound}"
        return Headline("info", f"work on {self.first}", sentence, label, low)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The kind to work on first, significant tests, and kinds that were not tested."""
        measure, unknown = self.funnel.measure, self.bounds("debugging")[1]
        if self.first is not None:
            failure, (low, high) = FAILURES[self.first], self.bounds(self.first)
            loss = decimal(low) if high - low < _ROUNDING else f"{decimal(low)} to {decimal(high)}"
            text = f"Work first on failures of the kind `{self.first}`: these failures lose {loss} of {measure}."
            text += f" Typical fix: {failure.remedy}. Cost: {failure.cost}."
        elif unknown > 0:
            text = (
                f"Work on debugging failures first: {FAILURES['debugging'].remedy}. Up to {decimal(unknown)} of"
                f" {measure} is lost at stages that are not recorded, so the kind of failure with the largest loss is"
                " unknown."
            )
        else:
            text = f"There is no recoverable loss of {measure}."
        return (text, *self._discoveries(), *self._not_tested())

    def _discoveries(self) -> Iterator[str]:
        if not self.tests:
            return
        significant: dict[str, list[str]] = {}
        for test in self.tests:
            if test.significant:
                significant.setdefault(test.failure, []).append(self._describe_test(test))
        texts = [f"{self._with_alternatives(kind)}: {', '.join(places)}" for kind, places in significant.items()]
        kinds = "; ".join(texts)
        tests = f"{counted(len(self.tests), 'test')} over topics, false discovery rate {self.fdr:g}"
        yield f"Significant kinds of failure ({tests}): {kinds or 'none'}."

    def _describe_test(self, test: FailureTest) -> str:
        low, high = test.interval or (math.nan, math.nan)
        interval = f" [{decimal(low, 3, '+')}, {decimal(high, 3, '+')}]" if test.interval else ""
        p = p_text(test.adjusted, self.fdr)
        return f"{test.where} {decimal(test.difference, 3, '+')}{interval} (adjusted p {p}, n = {test.n})"

    def _not_tested(self) -> Iterator[str]:
        if self.untested:
            kinds: dict[str, list[str]] = {}
            for untested in self.untested:
                kinds.setdefault(untested.failure, []).append(untested.where)
            texts = listed([f"{kind} ({', '.join(subjects)})" for kind, subjects in kinds.items()])
            yield f"These kinds of failure were not tested, for the reasons in the table 'Not tested': {texts}."

    @property
    def alternatives(self) -> tuple[str, ...]:
        """Other possible causes of a higher loss of a class of queries: kinds not tested, or found as well."""
        significant = (
            test.failure for test in self.tests if test.significant and test.failure not in ("intent", SLICE_TEST)
        )
        return tuple(dict.fromkeys((*alternatives(self.untested, self.tests), *significant)))

    def _with_alternatives(self, kind: str) -> str:
        """Return the name of a kind, with other possible causes."""
        if kind not in ("intent", SLICE_TEST) or not self.alternatives:
            return kind
        return f"{kind} (other possible causes: {listed(self.alternatives)})"

    def facts(self) -> Mapping[str, Any]:
        """Return traces, measure, and definitions."""
        kinds = {name: failure._asdict() for name, failure in FAILURES.items()}
        settings = {"traces": self.funnel.traces.name, "measure": self.funnel.measure, "fdr": self.fdr}
        return {**settings, "definitions": kinds}

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, kinds, tests, and documents."""
        summary = [Sentences(self.sentences), self._kinds_table()]
        tests = [self._tests_table()] if self.tests else []
        untested = [self._untested_table()] if self.untested else []
        curves = [self._curves_table()] if self.curves else []
        return (*summary, *untested, *tests, *curves, self._documents_table())

    def _kinds_table(self) -> Table:
        means = {kind: mean_of(loss) for kind, loss in self.recoverable.items()}
        kinds = sorted(means, key=lambda kind: -np.nan_to_num(means[kind]))
        topics = self.funnel.query_ids
        occurring = [kind for kind in kinds if any(failure == kind for _, _, failure, _, _ in self.documents)]
        traffic_of = dict(zip(topics, np.ones(len(topics)) if self.traffic is None else self.traffic, strict=True))
        rows: list[tuple[str, str, int, int, float, float]] = []
        bounds: list[tuple[float, float]] = []
        for subset in topic_subsets(len(topics), self.funnel.slicing):
            members = {topic for topic, is_member in zip(topics, subset.mask.tolist(), strict=True) if is_member}
            for kind in kinds if subset.is_all else occurring:
                pairs = [(topic, failure) for topic, _, failure, _, _ in self.documents]
                topics_lost = [topic for topic, failure in pairs if failure == kind and topic in members]
                traffic = float(sum(traffic_of[topic] for topic in set(topics_lost)))
                losses = self.recoverable[kind][subset.mask]
                # Topics without unrecorded stages lose 0 by debugging, which would hide the unknown loss of others.
                is_unknown = kind == "debugging" and bool(np.isnan(losses).any())
                recoverable = math.nan if is_unknown else mean_of(losses)
                rows.append((subset.name, kind, len(topics_lost), len(set(topics_lost)), traffic, recoverable))
                bounds.append(self.bounds(kind, subset.mask))
        is_sliced = self.funnel.slicing is not None
        bounds_only = "" if any(np.isnan(loss).any() for loss in self.recoverable.values()) else "data"
        definitions = [FAILURES[row[1]] for row in rows]
        remedies: list[Any] = [f"{failure.remedy} (cost: {failure.cost})" for failure in definitions[: len(kinds)]]
        remedies += [None] * (len(rows) - len(kinds))
        return Table(
            "kinds",
            (
                Column("slice", [row[0] for row in rows], TEXT, only="" if is_sliced else "data"),
                Column("failure", [row[1] for row in rows], TEXT),
                Column("documents", [row[2] for row in rows], COUNT),
                Column("n", [row[3] for row in rows], COUNT, "topics"),
                Column("traffic", [row[4] for row in rows], number(0), only="data" if self.traffic is None else ""),
                Column("recoverable", [row[5] for row in rows], NUMBER, f"recoverable {self.funnel.measure}"),
                Column("low", [limits[0] for limits in bounds], NUMBER, "lower bound", only=bounds_only),
                Column("high", [limits[1] for limits in bounds], NUMBER, "upper bound", only=bounds_only),
                *columns_of(definitions, "remedy", "cost"),
                Column("remedy_and_cost", remedies, TEXT, "typical fix", only="people", below=True),
            ),
            "Kinds of failure",
            labels=2 if is_sliced else 1,
            note=""
            if bounds_only
            else "recoverable: mean over the topics with a known loss; bounds: lowest and highest possible mean over"
            " all topics, whatever documents the unrecorded stages returned",
        )

    def _untested_table(self) -> Table:
        columns = columns_of(self.untested, ("failure", TEXT), ("where", TEXT), "code", ("reason", TEXT))
        return Table("untested", columns, "Not tested", labels=2)

    def _tests_table(self) -> Table:
        tests = sorted(self.tests, key=lambda test: (not test.significant, test.adjusted))
        is_slice_test = [
            test.failure == SLICE_TEST or (test.failure == "intent" and test.members is not None) for test in tests
        ]
        alternatives_text, definitions = ", ".join(self.alternatives), [FAILURES.get(test.failure) for test in tests]
        recoverable = [test.recoverable for test in tests]
        p = p_value(self.fdr)
        axis = Axis.over([test.difference for test in tests], [test.interval for test in tests], reference=0.0)
        statuses: list[Status] = ["worse" if test.significant else "same" for test in tests]
        return Table(
            "tests",
            (
                Column("failure", [test.failure for test in tests], TEXT),
                *columns_of(tests, ("where", TEXT), ("n", COUNT, "topics")),
                Column("difference", [test.difference for test in tests], CHANGE, ci=[test.interval for test in tests],
                       axis=axis, statuses=statuses),
                Column("result", ["failure" if test.significant else "no significant failure" for test in tests], TEXT,
                       only="people", statuses=statuses),
                Column("p", [test.p for test in tests], p, only="data"),
                Column("adjusted", [test.adjusted for test in tests], p, "adjusted p",
                       mark=["*" if test.significant else "" for test in tests]),
                *columns_of(tests, "significant"),
                Column("missed", [missed_share(test.n) for test in tests], SHARE, only="data"),
                Column("recoverable", recoverable, CHANGE, f"recoverable {self.funnel.measure}"),
                Column("alternatives", [alternatives_text if flag else "" for flag in is_slice_test], TEXT,
                       "other possible causes", only="" if alternatives_text and any(is_slice_test) else "data"),
                Column("quantity", [test.quantity for test in tests], TEXT, below=True),
                Column("remedy", [failure.remedy if failure else None for failure in definitions], TEXT, only="data"),
                Column("cost", [failure.cost if failure else None for failure in definitions], TEXT, only="data"),
            ),
            "Tests over topics",
            labels=2,
            note="p: sign-flip test and Hall's test; for classes, permutation test; for labels, Fisher's exact test."
            " Tests are one-sided, because only a difference above 0 is a failure (calibration: two-sided)."
            " Benjamini-Hochberg over all rows. The recoverable loss in this table overlaps with the recoverable loss"
            " by kind of failure. The p-values are not valid for failures that do not occur in the sample: a"
            " failure of 26% of all topics is missing from 5% of samples of 10 topics (25 topics: 11%; 100 topics: 3%)",
        )  # fmt: skip

    def _curves_table(self) -> Table:
        score_range_columns = (("low", NUMBER, "lowest score"), ("high", NUMBER, "highest score"))
        return Table(
            "curves",
            columns_of(
                self.curves, ("where", TEXT), *score_range_columns, ("n", COUNT, "documents"), ("relevant", SHARE)
            ),
            "Share of relevant documents by score",
            note="scores of each merged source, over all topics, in five groups of about equal size; unjudged documents"
            " count as not relevant",
        )

    def _documents_table(self) -> Table:
        names = ("query_id", "doc_id", "failure", "step", "grade")
        records = [dict(zip(names, row, strict=True)) for row in self.documents]
        ids = (("query_id", TEXT, "topic"), ("doc_id", TEXT, "document"))
        columns = columns_of(records, *ids, ("failure", TEXT), ("step", TEXT, "lost at"), ("grade", number(0)))
        if self.dated is not None:
            bands = [self.dated.band(self.dated.ages.get(doc_id)) for _, doc_id, *_ in self.documents]
            columns = (*columns, Column("freshness", bands, TEXT))
        title = f"{counted(len(records), 'relevant document')} that users did not see"
        return Table("documents", columns, title, labels=4, folded=True)


def failures(
    qrels: Any,
    traces: Traces,
    measure: str | Measure = "nDCG@10",
    *,
    final: str | None = None,
    corpus: Iterable[str] | None = None,
    documents: Any = None,
    clicks: Any = None,
    labels: Any = None,
    slicing: Any = None,
    attributes: Any = None,
    where: str | None = None,
    fdr: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
) -> Failures:
    """Classify the relevant documents that users did not see by kind of failure, and test other kinds over topics.

    Parameters
    ----------
    qrels, traces, measure, final, corpus, where
        As for `funnel`; the measure's cutoff is the number of ranks that users see.
    documents
        Documents with dates, for freshness: input of `judged.data.dated_documents`, which sets the reference day and
        the bands of ages. Documents after the reference day are left out of the test.
    clicks
        Rows of ``query_id``, ``doc_id``, and ``clicks``, for feedback and abandoned lists. Default: the fact ``clicks``
        of the list that users saw. With ``expected`` clicks, as computed by `judged.online.clicks.coec`, documents of
        the same grade are also compared by position and by popularity.
    labels
        Labels of several judges, as for `Labels.of`, to find topics with more disagreement, for feedback.
    slicing
        Classes of queries, for intent; kinds are also counted in each.
    attributes
        Attributes of topics; the number ``traffic`` is the frequency of each topic. Default: number of traces.
    fdr
        False discovery rate over all tests (Benjamini-Hochberg). Tests need ten topics.
    level, seed
        Confidence level of intervals, and seed of sign flips and permutations.

    Raises
    ------
    InputError
        If an input is invalid, or no traced query is judged.
    MeasureError
        If the best order for the measure is unknown.

    Notes
    -----
    Calibration compares documents that only one source returned with those that only others returned, by how much more
    often they are relevant than usual at their rank in the merged list (isotonic regression). Freshness and feedback
    compare pairs within a topic. Intent compares each slice with all other topics, by loss and by good lists (half of
    the best score) without clicks, and subtopics that the list lacks with a random sample of relevant documents.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> traces = traces_of_runs({"bm25": {"q": ["x", "a", "b"]}, "rerank": {"q": ["x", "a"]}})
    >>> result = failures({"q": {"a": 1, "b": 1, "c": 1, "d": 1}}, traces, "R@1", corpus=["a", "b", "c", "x"])
    >>> [(doc, kind) for _, doc, kind, _, _ in result.documents]
    [('a', 'scoring'), ('b', 'scoring'), ('c', 'candidate'), ('d', 'missing content')]
    """
    options: dict[str, Any] = {"final": final, "slicing": slicing, "attributes": attributes, "where": where}
    judgments = Qrels.of(qrels)
    losses = funnel(judgments, traces, measure, corpus=corpus, **options)
    facts = None if attributes is None else Attributes.of(attributes)
    counts = facts.numbers("traffic") if facts is not None and "traffic" in facts.names else traces.times
    traffic = np.array([counts.get(topic, 0.0) for topic in losses.query_ids]) if counts else None
    dated = None if documents is None else dated_documents(documents)
    data = {"documents": dated, "clicks": clicks, "labels": labels}
    tests, untested = run_tests(losses, judgments, **data, fdr=fdr, level=level, seed=seed)
    steps = [name for name in losses.parts if name != CORPUS]
    cutoff = getattr(losses.measure, "cutoff", None) or math.inf
    recorded = np.logical_and.reduce([loss.recorded for loss in losses.losses])
    unrecorded = {topic for topic, complete in zip(losses.query_ids, recorded.tolist(), strict=True) if not complete}
    kind_of = {CORPUS: "missing content", steps[0]: "candidate"}

    def kind(topic: str, step: str) -> str:
        return "debugging" if topic in unrecorded and step != CORPUS else kind_of.get(step, "scoring")

    lost = (*losses.lost, *losses.below_cutoff(cutoff))
    kinds = [(topic, doc, kind(topic, step), step, grade) for topic, doc, step, grade in lost]
    rows = tuple(sorted(kinds, key=lambda row: (losses.query_ids.index(row[0]), row[1])))
    recoverable, limits = _by_kind(losses, steps, recorded)
    curves = score_curves(losses, judgments)
    notes = (*losses.notes, *(() if dated is None else (dated.note(),)))
    return Failures(losses, rows, recoverable, limits, cutoff, tests, untested, curves, fdr, traffic, dated, notes)


def _by_kind(losses: TraceFunnel, steps: list[str], recorded: Bools) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the loss by kind, and its lowest and highest possible values."""
    zeros = np.zeros(len(losses.score))
    missing = losses.parts.get(CORPUS, zeros)  # without a corpus, missing content is part of candidate
    candidate, scoring = losses.parts[steps[0]], sum((losses.parts[step] for step in steps[1:]), zeros)
    recoverable = {
        "missing content": missing,
        "candidate": np.where(recorded, candidate, np.nan),
        "scoring": np.where(recorded, scoring, np.nan),
        "debugging": np.where(recorded, 0.0, losses.best - losses.score - missing),
    }
    # By definition best - score = missing + candidate + later parts, for any value within the limits.
    low, high = losses.limits[SCORE]
    least, most = losses.best - high - missing, losses.best - low - missing
    first, best = losses.limits[steps[0]], losses.best - missing
    later = np.stack([best - first[1] - high, best - first[0] - low])
    limits = {
        "missing content": np.stack([missing, missing]),
        "candidate": np.where(recorded, recoverable["candidate"], first),
        "scoring": np.where(recorded, recoverable["scoring"], later),
        "debugging": np.where(recorded, 0.0, np.stack([least, most])),
    }
    if CORPUS not in losses.parts:
        del recoverable["missing content"], limits["missing content"]
    return recoverable, limits
