"""Content gaps: demand in queries compared with supply in documents, by entity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.records import records_of
from judged.data.topics import Topics
from judged.diagnosis.changes import mean_of
from judged.diagnosis.stages.trace import POSITIVE, single_measure
from judged.errors import InputError
from judged.pipelines.traces.entities import Entities
from judged.pipelines.traces.steps import compare_with_rest, sufficient_intervals
from judged.results import Answer, Column, Sentences, Table, counted
from judged.results.blocks import Note, first_few
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of, number, p_value
from judged.scoring.judging import judge
from judged.stats.correction import adjust
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Traces
    from judged.results import Block
    from judged.scoring.measures.base import Measure
    from judged.stats.slice_differences import AgainstRest

NO_RESULTS, NO_RELEVANT = "no results", "no known relevant document"
NOT_IN_CORPUS = "some relevant documents are not in the corpus"
"""Reasons why the content for a query is missing."""
_MIN_TOPICS = 10  # judged topics for a test
_ID_COLUMNS = ("doc_id", "docid", "docno", "_id", "id")


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
        Number of documents in the corpus.
    fdr, level : float
        False discovery rate of the tests, and confidence level of the intervals.
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

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"{self.name}: demand and supply by entity"

    @property
    def worse(self) -> tuple[EntityGap, ...]:
        """Entities with significantly lower scores than all other topics."""
        return tuple(row for row in self.rows if row.adjusted <= self.fdr and (row.difference or 0.0) < 0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The entities with lower scores, and the missing content."""
        n_tested = sum(row.comparison is not None for row in self.rows)
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
        return (text, *([f"Missing content for {queries}: {reasons}."] if reasons else []))

    def facts(self) -> Mapping[str, Any]:
        """Return measure, traffic, number of documents, and false discovery rate."""
        return {"measure": self.measure, "traffic": self.traffic, "corpus": self.documents, "fdr": self.fdr}

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, the entities, and the missing content."""
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
                Column("score", [row.score for row in rows], NUMBER, str(self.measure), ci=[row.ci for row in rows]),
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
        return (Sentences(self.sentences), entities, missing)


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
        Texts of topics. Default: traced texts.
    attributes
        Attributes of topics; the number ``traffic`` is the frequency of each query. Default: number of traces.
    documents
        Supply: a table of documents with a column ``entity``, or named as `by`.
    corpus
        Ids of all documents. Default: those of `documents`.
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
    text_of = {topic: _text(traces, texts, topic) for topic in dict.fromkeys((*traces.query_ids, *judgments.topics))}
    catalog = Entities.of(entities) if entities is not None else None
    entities_of, notes = _entities_of_topics(text_of, catalog, by, facts)
    empty = {topic for topic in text_of if traces.spans_of(topic) and traces.state(topic, last.name) == "empty"}
    unrecorded = {topic for topic in text_of if traces.state(topic, last.name) == "unrecorded"}
    counts = facts.numbers("traffic") if facts is not None and "traffic" in facts.names else traces.times
    traffic = {topic: float(counts.get(topic, 0.0 if counts else 1.0)) for topic in text_of}
    supply = None if documents is None else _supply(documents, by or "entity", catalog)
    corpus_ids = set(corpus) if corpus is not None else None if supply is None else set(supply)
    rel = float(getattr(parsed, "rel", POSITIVE))
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
    total, size = sum(traffic.values()), None if supply is None else len(supply)
    return Gaps(traces.name, parsed, tuple(rows), tuple(missing), total, size, fdr, level, (*traces.notes, *notes))


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


def _supply(documents: Any, column: str, catalog: Entities | None) -> dict[str, tuple[str, ...]]:
    """Read the entities of each document, with their ancestors."""
    where = str(documents) if isinstance(documents, (str, Path)) else "<documents>"
    fix = f"add the columns doc_id and {column}"
    supply: dict[str, tuple[str, ...]] = {}
    for line, row in records_of(documents, where, "documents", fix):
        doc = next((str(row[name]) for name in _ID_COLUMNS if row.get(name) is not None), None)
        if doc is None or column not in row:
            raise InputError(f"a row must have doc_id and {column}", fix=fix, path=where, line=line)
        names = tuple(name for name in _names(row[column]) if name)
        supply[doc] = catalog.rolled_up(names) if catalog else names
    return supply
