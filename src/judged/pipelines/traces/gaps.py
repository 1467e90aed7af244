"""Content gaps: demand in queries compared with supply in documents, by entity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.diagnosis.changes import mean_of
from judged.diagnosis.stages.trace import POSITIVE, single_measure
from judged.errors import InputError
from judged.pipelines.traces.content_gaps import KINDS, NO_GAP, ContentGap, find_content_gaps
from judged.pipelines.traces.entities import Entities, entities_of_documents
from judged.pipelines.traces.steps import compare_with_rest, sufficient_intervals
from judged.results import Answer, Axis, Column, Headline, Sentences, Table, counted
from judged.results.blocks import Note, first_few
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of, number, p_value
from judged.scoring.judging import judge
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Traces
    from judged.results import Block
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure
    from judged.stats.slice_differences import AgainstRest

NO_RESULTS, NO_RELEVANT = "no results", "no known relevant document"
NOT_IN_CORPUS = "some relevant documents are not in the corpus"
"""Reasons why the content for a query is missing."""
_MIN_TOPICS = 10  # judged topics for a test


@dataclass(frozen=True)
class EntityGap:
    """Demand and supply of one entity.

    Parameters
    ----------
    entity, parents
        Name, and parents.
    n, traffic
        Number of queries about it or its descendants, and their traffic.
    judged
        Number of these queries with judgments.
    score, low, high
        Mean of the measure over these, with its interval; NaN if missing.
    comparison, adjusted
        Comparison with all other topics, and its corrected p-value; None if there are too few topics.
    listed, relevant
        Number of (topic, document) pairs that are relevant and listed, and that are relevant.
    empty
        Number of traced queries without results.
    unrecorded
        Number of queries whose list is not recorded: they have no score.
    lowest, highest
        Bounds of the mean over all judged queries, whatever the unrecorded lists were.
    documents
        Number of documents about it or its descendants; None if unknown.
    """

    entity: str
    parents: tuple[str, ...]
    n: int
    traffic: float
    judged: int
    score: float
    low: float
    high: float
    comparison: AgainstRest | None
    adjusted: float
    listed: int
    relevant: int
    empty: int
    documents: int | None
    unrecorded: int = 0
    lowest: float = math.nan
    highest: float = math.nan

    @property
    def ci(self) -> tuple[float, float] | None:
        """Interval of the score; None if it is missing."""
        return None if math.isnan(self.low) else (self.low, self.high)

    @property
    def recall(self) -> float | None:
        """Share of the relevant documents that are listed."""
        return self.listed / self.relevant if self.relevant else None

    @property
    def difference(self) -> float | None:
        """Mean of the measure minus that of all other topics."""
        return self.comparison.difference if self.comparison else None


@dataclass(frozen=True, eq=False, repr=False)
class Gaps(Answer):
    """Demand and supply by entity, and queries for which content is missing.

    Attributes
    ----------
    measure : Measure
    rows : tuple of EntityGap
        Sorted by traffic.
    missing_content : tuple of (str, str, str, float, str)
        Topic, query, entities, traffic, and reason: `NO_RESULTS`, `NO_RELEVANT`, or `NOT_IN_CORPUS`. Sorted by traffic.
    traffic : float
        Traffic of all queries.
    documents : int or None
        Number of documents in the corpus, or else in the table of documents.
    fdr, level : float
        False discovery rate of the tests, and confidence level of the intervals.
    content : tuple of ContentGap or None
        Entities with traffic, sorted by lost searches. None if no documents were given, or none with a known entity.
    """

    kind: ClassVar[str] = "gaps"

    name: str
    measure: Measure
    rows: tuple[EntityGap, ...]
    missing_content: tuple[tuple[str, str, str, float, str], ...]
    traffic: float
    documents: int | None
    fdr: float
    level: float
    notes: tuple[Note, ...] = field(default=())
    content: tuple[ContentGap, ...] | None = None

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"{self.name}: demand and supply by entity"

    @property
    def worse(self) -> tuple[EntityGap, ...]:
        """Entities with significantly lower scores than all other topics."""
        return tuple(row for row in self.rows if row.adjusted <= self.fdr and (row.difference or 0.0) < 0)

    @property
    def n_tested(self) -> int:
        """Number of entities whose topics are compared with all other topics."""
        return sum(row.comparison is not None for row in self.rows)

    @property
    def headline(self) -> Headline:
        """Entities with significantly lower scores; else content gaps; else whether anything was tested."""
        gaps, tested = [row for row in self.content or () if row.gap not in (None, NO_GAP)], self.n_tested
        if self.worse:
            first = self.worse[0]
            entities = counted(tested, "tested entity", "tested entities")
            sentence = f"Significantly lower {self.measure} than for other topics: {len(self.worse)} of {entities}."
            label = f"{self.measure}, {first.entity} - other topics"
            options: dict[str, Any] = {"ci": first.comparison and first.comparison.interval, "level": self.level}
            return Headline(
                "worse", "lower scores", sentence, label, first.difference, CHANGE, reference=0.0, **options
            )
        if gaps:
            first_gap = gaps[0]
            sentence = (
                f"{len(gaps)} of {counted(len(self.content or ()), 'entity', 'entities')} with traffic have a gap;"
                f" the largest: {first_gap.entity} ({first_gap.gap})."
            )
            label = f"lost searches for {first_gap.entity}"
            return Headline("info", "content gaps", sentence, label, first_gap.lost, number(0))
        if not tested:
            sentence = f"A test requires at least {_MIN_TOPICS} judged topics of an entity, and {_MIN_TOPICS} others."
            return Headline("unknown", "not enough data", sentence)
        entities = counted(tested, "tested entity", "tested entities")
        sentence = f"None of {entities} has a significantly lower {self.measure} than all other topics."
        return Headline("same", "no significant difference", sentence)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The entities with lower scores, and the missing content."""
        n_tested = self.n_tested
        worse = ", ".join(f"{row.entity} ({row.score:.4f})" for row in self.worse[:5])
        scope = f"({counted(n_tested, 'entity', 'entities')} tested, false discovery rate {self.fdr:g})"
        reason_counts = Counter(reason for *_, reason in self.missing_content)
        reasons = ", ".join(f"{reason} ({count})" for reason, count in reason_counts.items())
        claim = f"Entities whose topics have a significantly lower {self.measure} than all other topics"
        text = f"{claim}: {worse or 'none'} {scope}."
        if not n_tested:
            text = (
                f"No entity was tested: a test requires at least {_MIN_TOPICS} judged topics of the entity and at"
                f" least {_MIN_TOPICS} other judged topics."
            )
        queries = counted(len(self.missing_content), "query", "queries")
        kinds = Counter(row.gap for row in self.content or () if row.gap not in (None, NO_GAP))
        gap_counts = ", ".join(f"{kind} ({kinds[kind]})" for kind in KINDS if kinds[kind]) or "none"
        of = f" of {counted(len(self.content or ()), 'entity', 'entities')} with traffic"
        gaps_text = f"Content gaps{of}: {gap_counts}."
        missing_text = f"Missing content for {queries}: {reasons}."
        return (*([gaps_text] if self.content else []), text, *([missing_text] if reasons else []))

    def facts(self) -> Mapping[str, Any]:
        """Return measure, traffic, number of documents, and false discovery rate."""
        return {"measure": self.measure, "traffic": self.traffic, "corpus": self.documents, "fdr": self.fdr}

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, the content gaps, the entities, and the missing content."""
        rows, has_supply = self.rows, self.documents is not None
        bounds_only = "" if any(row.unrecorded for row in rows) else "data"
        demand = [row.traffic / self.traffic if self.traffic else math.nan for row in rows]
        supply_shares = [None if row.documents is None else row.documents / max(self.documents or 0, 1) for row in rows]
        entities = Table(
            "entities",
            (
                *columns_of(rows, ("entity", TEXT), "parents", ("n", COUNT, "queries"), ("traffic", number(0))),
                Column("demand", demand, SHARE),
                Column("documents", [row.documents for row in rows], COUNT, only="" if has_supply else "data"),
                Column("supply", supply_shares, SHARE, only="" if has_supply else "data"),
                *columns_of(
                    rows, "judged", ("relevant", COUNT), ("recall", SHARE), ("empty", COUNT, "without results")
                ),
                Column("unrecorded", [row.unrecorded for row in rows], COUNT, "not recorded", only=bounds_only),
                Column("lowest", [row.lowest for row in rows], NUMBER, "lower bound", only=bounds_only),
                Column("highest", [row.highest for row in rows], NUMBER, "upper bound", only=bounds_only),
                Column(
                    "score",
                    [row.score for row in rows],
                    NUMBER,
                    str(self.measure),
                    ci=[row.ci for row in rows],
                    axis=Axis.over([row.score for row in rows], [row.ci for row in rows]),
                    statuses=["worse" if row in self.worse else "info" for row in rows],
                ),
                Column("difference", [row.difference for row in rows], CHANGE, "vs. others"),
                Column("p", [row.adjusted for row in rows], p_value(self.fdr), "adjusted p"),
            ),
            "Entities",
            note="adjusted p: permutation test of the difference from all other topics, corrected by"
            " Benjamini-Hochberg; entities with"
            f" fewer than {_MIN_TOPICS} judged topics are not tested; {100 * self.level:g}% confidence intervals",
        )
        fields = (("query", TEXT), ("entities", TEXT), ("traffic", number(0)), ("reason", TEXT))
        names = ("query_id", *(name for name, *_ in fields))
        records = [dict(zip(names, row, strict=True)) for row in self.missing_content]
        columns, only = columns_of(records, ("query_id", TEXT, "topic"), *fields), "" if records else "data"
        missing = Table("missing_content", columns, "Missing content", labels=2, only=only)
        gaps_table = [] if self.content is None else [self._content_table(self.content)]
        return (Sentences(self.sentences), *gaps_table, entities, missing)

    def _content_table(self, rows: tuple[ContentGap, ...]) -> Table:
        """Return the table of content gaps, which is also the CSV for editors."""
        cutoff = getattr(self.measure, "cutoff", None)
        unrecorded_only = "" if any(row.unrecorded for row in rows) else "data"
        columns = (
            *columns_of(rows, ("entity", TEXT), ("gap", TEXT), ("traffic", number(0), "asked"), ("lost", number(0))),
            Column("unrecorded", [row.unrecorded for row in rows], number(0), "not recorded", only=unrecorded_only),
            *columns_of(rows, *((name, COUNT) for name in ("indexed", "found", "judged", "relevant"))),
            *columns_of(rows, "n"),
            Column("losses", [dict(row.losses) for row in rows], only="json"),
            Column("queries", ["; ".join(row.queries[:3]) for row in rows], TEXT, "lost queries", only="data"),
        )
        depth = "the list" if cutoff is None else f"the first {cutoff} documents"
        note = (
            f"asked: searches; lost: searches without a known relevant document in {depth}; gap: most frequent reason;"
            f" indexed: documents about the entity; found: of these, in {depth} of a query for the entity; judged,"
            " relevant: of these, for such a query"
        )
        return Table("content_gaps", columns, "Content gaps", note=note, labels=2)


def gaps(
    qrels: Any,
    traces: Traces,
    measure: str | Measure = "nDCG@10",
    *,
    entities: Any = None,
    by: str | None = None,
    queries: Any = None,
    attributes: Any = None,
    documents: Any = None,
    corpus: Iterable[str] | None = None,
    final: str | None = None,
    fdr: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
) -> Gaps:
    """Compare demand in queries with supply in documents, by entity.

    Parameters
    ----------
    qrels, traces, measure, final
        As for `funnel`; scores are those of the final list. Queries without judgments count as demand, without a score.
    entities
        `Entities`, or a table of names, aliases, and parents: queries are mapped by the longest names in their texts.
    by
        Instead of `entities`: attribute with the entities of a topic, one or a list.
    queries
        Texts of topics. Default: traced texts. If `traces` are runs, these topics also count as demand.
    attributes
        Attributes of topics; the number ``traffic`` is the frequency of each query. Default: number of traces.
    documents
        Supply, as for `judged.pipelines.traces.entities.entities_of_documents`: the column with entities is ``entity``,
        or named as `by`.
    corpus
        Ids of all documents. Other documents of `documents` are ignored.
    fdr
        False discovery rate of the entities with lower scores (Benjamini-Hochberg).
    level, seed
        Confidence level of the intervals, and seed of the permutations.

    Raises
    ------
    InputError
        If an input is invalid, or both or neither of `entities` and `by` are given.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> traces = traces_of_runs({"bm25": {"q1": ["a", "x"], "q2": ["x"]}})
    >>> result = gaps({"q1": {"a": 1}, "q2": {"b": 1}}, traces, "R@1", entities=[{"entity": "zip"}, {"entity": "tar"}],
    ...               queries={"q1": "make a zip", "q2": "a tar in a zip"}, corpus=["a", "x"])
    >>> [(row.entity, row.n, row.score) for row in result.rows], result.missing_content[0][4]
    ([('zip', 2, 0.5), ('tar', 1, 0.0)], 'some relevant documents are not in the corpus')
    """
    parsed, judgments = single_measure(measure), Qrels.of(qrels)
    facts = None if attributes is None else Attributes.of(attributes)
    last = traces.stage(final) if final else traces.final
    judged = judge(judgments, traces.run_or_empty(last.name))
    texts = None if queries is None else Topics.of(queries)
    others = texts.table["query_id"].to_pylist() if texts and traces.is_complete else ()
    topics = dict.fromkeys((*traces.query_ids, *judgments.topics, *others))
    text_of = {topic: _text(traces, texts, topic) for topic in topics}
    catalog = Entities.of(entities) if entities is not None else None
    entities_of, notes = _entities_of_topics(text_of, catalog, by, facts)
    empty = {topic for topic in text_of if traces.state(topic, last.name) == "empty"}
    unrecorded = {topic for topic in text_of if traces.state(topic, last.name) == "unrecorded"}
    counts = facts.numbers("traffic") if facts is not None and "traffic" in facts.names else traces.times
    traffic = {topic: float(counts.get(topic, 0.0 if counts else 1.0)) for topic in text_of}
    corpus_ids = set(corpus) if corpus is not None else None
    supply = None if documents is None else entities_of_documents(documents, by or "entity", catalog, corpus_ids)
    rel, cutoff = float(getattr(parsed, "rel", POSITIVE)), getattr(parsed, "cutoff", None)
    is_recorded = np.array([topic not in unrecorded for topic in judged.query_ids], dtype=np.bool_)
    lowest = parsed(judged)
    highest, values = np.where(is_recorded, lowest, parsed(judged.ideal)), np.where(is_recorded, lowest, np.nan)
    relevant, listed = judged.num_relevant(rel), judged.sum(judged.relevant(rel))
    names = list(dict.fromkeys(name for topic in text_of for name in entities_of[topic]))
    members = np.array([[name in entities_of[topic] for topic in judged.query_ids] for name in names], dtype=np.bool_)
    members = members.reshape(len(names), len(judged.query_ids))
    comparisons = compare_with_rest(values, members, level=level, seed=seed, min_units=_MIN_TOPICS) if names else []
    adjusted = adjust([test.p if test else math.nan for test in comparisons], "bh") if names else []
    method, bounds = IntervalMethod(level=level), [parsed.properties.bounds]
    n_documents = Counter(name for doc_entities in (supply or {}).values() for name in doc_entities)
    rows: list[EntityGap] = []
    for name, mask, comparison, p in zip(names, members, comparisons, adjusted, strict=True):
        topics = [topic for topic in text_of if name in entities_of[topic]]
        scores = values[mask][~np.isnan(values[mask])]
        ci = sufficient_intervals(scores[np.newaxis], method, bounds)[0] if len(scores) else [math.nan, math.nan]
        rows.append(
            EntityGap(
                entity=name,
                parents=catalog.parents.get(name, ()) if catalog else (),
                n=len(topics),
                traffic=sum(traffic[topic] for topic in topics),
                judged=len(scores),
                score=float(scores.mean()) if len(scores) else math.nan,
                low=float(ci[0]),
                high=float(ci[1]),
                comparison=comparison,
                adjusted=float(p),
                listed=int(listed[mask & is_recorded].sum()),
                relevant=int(relevant[mask & is_recorded].sum()),
                empty=len(empty.intersection(topics)),
                documents=None if supply is None else n_documents[name],
                unrecorded=len(unrecorded.intersection(topics)),
                lowest=mean_of(lowest[mask]),
                highest=mean_of(highest[mask]),
            )
        )
    rows.sort(key=lambda row: (-row.traffic, row.entity))
    without_relevant = {topic for topic, n_relevant in zip(judged.query_ids, relevant, strict=True) if not n_relevant}
    outside = set[str]() if corpus_ids is None else _topics_outside(judgments, corpus_ids, rel)
    # A topic can have several reasons: the last one counts.
    reasons = dict.fromkeys(outside, NOT_IN_CORPUS) | dict.fromkeys(without_relevant, NO_RELEVANT)
    reasons |= dict.fromkeys(sorted(empty), NO_RESULTS)
    texts_of = {topic: (text_of[topic], ", ".join(entities_of[topic])) for topic in reasons}
    missing = [(topic, *texts_of[topic], traffic[topic], reason) for topic, reason in reasons.items()]
    missing.sort(key=lambda row: (-row[3], row[0]))
    total, size = sum(traffic.values()), None if supply is None else len(supply if corpus_ids is None else corpus_ids)
    content: tuple[ContentGap, ...] | None = None
    if n_documents and n_documents.keys().isdisjoint(known := catalog.names if catalog else names):
        text = f"no kinds of content gaps: documents have {first_few(list(n_documents))}; none of these is"
        notes.append(Note("disjoint-entities", f"{text} an entity of queries, such as {first_few(known)}"))
    elif supply is not None:
        lists = _first_documents(traces, text_of, last.name, cutoff)
        content = find_content_gaps(entities_of, traffic, lists, _relevance(judged, rel), supply, text_of)
    return Gaps(
        traces.name, parsed, tuple(rows), tuple(missing), total, size, fdr, level, (*traces.notes, *notes), content
    )


def _first_documents(
    traces: Traces, topics: Iterable[str], stage: str, cutoff: int | None
) -> dict[str, list[str] | None]:
    """Return the first documents of each topic; None if they are not recorded."""
    documents_of = {topic: traces.documents(topic, stage) for topic in topics}
    return {
        topic: None if documents is None else [document.doc_id for document in documents[:cutoff]]
        for topic, documents in documents_of.items()
    }


def _relevance(judged: Judged, rel: float) -> dict[tuple[str, str], bool]:
    """Return whether each judged document that the run returned is relevant, by topic and document."""
    pairs = zip(judged.topic.tolist(), judged.doc, judged.relevant(rel).tolist(), strict=True)
    return {(judged.query_ids[topic], doc): is_relevant for topic, doc, is_relevant in pairs}


def _topics_outside(qrels: Qrels, corpus: set[str], rel: float) -> set[str]:
    """Return the topics with a relevant document that the corpus lacks."""
    rows = qrels.table.select(["query_id", "doc_id", "relevance"]).to_pylist()
    return {row["query_id"] for row in rows if row["relevance"] >= rel and row["doc_id"] not in corpus}


def _text(traces: Traces, texts: Topics | None, topic: str) -> str:
    """Return the given text of a query, or the traced one."""
    text = texts.text(topic) if texts else ""
    return text or next((span.query for span in traces.spans_of(topic).values() if span.query), "")


def _entities_of_topics(
    text_of: Mapping[str, str], catalog: Entities | None, by: str | None, facts: Attributes | None
) -> tuple[dict[str, tuple[str, ...]], list[Note]]:
    """Return the entities of each query with their ancestors, and notes about ambiguous names and missing entities."""
    if (catalog is None) == (by is None):
        raise InputError("exactly one of `entities` and `by` is required", fix="pass either `entities` or `by`")
    notes: list[Note] = []
    if by is not None:
        if facts is None:
            raise InputError(f"`by` is {by!r}, but there are no attributes", fix="pass `attributes`")
        cells = dict(zip(facts.query_ids, facts.column(by).to_pylist(), strict=True))
        entities_of = {topic: _names(cells.get(topic)) for topic in text_of}
    else:
        mentions = {topic: catalog.mentioned(text) for topic, text in text_of.items()} if catalog else {}
        rolled_up = catalog.rolled_up if catalog else tuple
        entities_of = {topic: rolled_up(mention.entities) for topic, mention in mentions.items()}
        ambiguous = Counter(name for mention in mentions.values() for name in mention.ambiguous)
        for name, count in ambiguous.most_common():
            candidates = ", ".join(catalog.aliases[tuple(name.split())]) if catalog else ""
            text = (
                f"several entities have this name ({candidates}), so the name is ignored in"
                f" {counted(count, 'query', 'queries')}"
            )
            notes.append(Note("ambiguous-name", text, name, count, of="names"))
    if without := [topic for topic, names in entities_of.items() if not names]:
        text = f"{counted(len(without), 'query mentions', 'queries mention')} no entity: {first_few(without)}"
        notes.append(Note("no-entity", text))
    return entities_of, notes


def _names(cell: Any) -> tuple[str, ...]:
    return tuple(map(str, cell)) if isinstance(cell, (list, tuple)) else () if cell is None else (str(cell),)
