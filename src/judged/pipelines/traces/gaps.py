"""Content gaps: what people ask about, against what there is, entity by entity."""

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

NOTHING, UNKNOWN = "nothing is found", "no relevant document is known"
OUTSIDE = "relevant documents are not in the corpus"
"""Why a query is on the list of content to write or to fetch."""
_FEW = 10  # judged topics: fewer are not tested
_ID = ("doc_id", "docid", "docno", "_id", "id")


@dataclass(frozen=True)
class EntityGap:
    """One entity: what is asked about it, and what there is.

    Parameters
    ----------
    entity, parents
        Its name, and what it is part of.
    n, traffic
        Queries about it or a part of it, and how often they were asked.
    judged
        How many of them are judged.
    score, low, high
        The mean of the measure over these, with its interval; NaN where there is none.
    rest, adjusted
        Against all other topics; None where it has too few topics to be tested. Its p-value as corrected.
    found, relevant
        Relevant documents that are listed, and that are known: pairs of topic and document.
    empty
        Queries that were traced and find nothing.
    unrecorded
        Queries whose list is not recorded: they have no score, and whether they find anything is unknown.
    lowest, highest
        The mean over all judged queries, whatever the lists that are not recorded were.
    documents
        Documents about it or a part of it; None where that is not known.
    """

    entity: str
    parents: tuple[str, ...]
    n: int
    traffic: float
    judged: int
    score: float
    low: float
    high: float
    rest: AgainstRest | None
    adjusted: float
    found: int
    relevant: int
    empty: int
    documents: int | None
    unrecorded: int = 0
    lowest: float = math.nan
    highest: float = math.nan

    @property
    def ci(self) -> tuple[float, float] | None:
        """The interval of the score; None where there is none."""
        return None if math.isnan(self.low) else (self.low, self.high)

    @property
    def recall(self) -> float | None:
        """The share of the known relevant documents that are listed."""
        return self.found / self.relevant if self.relevant else None

    @property
    def difference(self) -> float | None:
        """The mean of the measure less that of all other topics."""
        return self.rest.difference if self.rest else None


@dataclass(frozen=True, eq=False, repr=False)
class Gaps(Answer):
    """Demand against supply by entity, and the queries that content would have to be written or fetched for.

    Attributes
    ----------
    measure : Measure
    rows : tuple of EntityGap
        Most traffic first.
    wanted : tuple of (str, str, str, float, str)
        Topic, query, entities, traffic and why: see `NOTHING`, `UNKNOWN`, `OUTSIDE`. Most traffic first.
    traffic : float
        Of all queries.
    documents : int or None
        All documents of the corpus.
    fdr, level : float
        Of the tests, and of the intervals.
    """

    kind: ClassVar[str] = "gaps"

    name: str
    measure: Measure
    rows: tuple[EntityGap, ...]
    wanted: tuple[tuple[str, str, str, float, str], ...]
    traffic: float
    documents: int | None
    fdr: float
    level: float
    notes: tuple[Note, ...] = field(default=())

    @property
    def title(self) -> str:
        """What is weighed."""
        return f"{self.name}: demand and supply by entity"

    @property
    def worse(self) -> tuple[EntityGap, ...]:
        """Entities whose topics score lower than the others, at the declared rate of false discoveries."""
        return tuple(row for row in self.rows if row.rest and row.adjusted <= self.fdr and row.rest.difference < 0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which entities are served worse, and what is missing."""
        tested = sum(row.rest is not None for row in self.rows)
        named = ", ".join(f"{row.entity} ({row.score:.4f} of {self.measure})" for row in self.worse[:5])
        of = f"({counted(tested, 'entity', 'entities')} tested, false-discovery rate {self.fdr:g})"
        why = Counter(reason for *_, reason in self.wanted)
        lacking = ", ".join(f"{reason} ({n})" for reason, n in why.items())
        said = f"Served worse than all others: {named or 'none shown'} {of}."
        return (
            said if tested else f"No entity was tested: none has {_FEW} judged topics with as many others.",
            *(
                [f"Content to write or to fetch for {counted(len(self.wanted), 'query', 'queries')}: {lacking}."]
                if lacking
                else []
            ),
        )

    def facts(self) -> Mapping[str, Any]:
        """Give what was weighed by what."""
        return {"measure": self.measure, "traffic": self.traffic, "corpus": self.documents, "fdr": self.fdr}

    def blocks(self) -> tuple[Block, ...]:
        """Give the entities, and the queries whose content is missing."""
        rows, supply = self.rows, self.documents is not None
        bounded = "" if any(row.unrecorded for row in rows) else "data"
        share = [row.traffic / self.traffic if self.traffic else math.nan for row in rows]
        held = [None if row.documents is None else row.documents / max(self.documents or 0, 1) for row in rows]
        entities = Table(
            "entities",
            (
                *columns_of(rows, ("entity", TEXT), "parents", ("n", COUNT, "queries"), ("traffic", number(0))),
                Column("demand", share, SHARE),
                Column("documents", [row.documents for row in rows], COUNT, only="" if supply else "data"),
                Column("supply", held, SHARE, only="" if supply else "data"),
                *columns_of(rows, "judged", ("relevant", COUNT), ("recall", SHARE), ("empty", COUNT, "find nothing")),
                Column("unrecorded", [row.unrecorded for row in rows], COUNT, "not recorded", only=bounded),
                Column("lowest", [row.lowest for row in rows], NUMBER, "at least", only=bounded),
                Column("highest", [row.highest for row in rows], NUMBER, "at most", only=bounded),
                Column("score", [row.score for row in rows], NUMBER, str(self.measure), ci=[row.ci for row in rows]),
                Column("difference", [row.difference for row in rows], CHANGE, "against others"),
                Column("p", [row.adjusted for row in rows], p_value(self.fdr), "adjusted p"),
            ),
            "Entities",
            note=f"adjusted p: permutation test against all other topics, Benjamini-Hochberg; entities with"
            f" fewer than {_FEW} judged topics are not tested; {100 * self.level:g}% intervals",
        )
        shown = (("query", TEXT), ("entities", TEXT), ("traffic", number(0)), ("reason", TEXT, "why"))
        names = ("query_id", *(name for name, *_ in shown))
        records = [dict(zip(names, row, strict=True)) for row in self.wanted]
        columns, only = columns_of(records, ("query_id", TEXT, "topic"), *shown), "" if records else "data"
        wanted = Table("wanted", columns, "Content to write or to fetch", labels=2, only=only)
        return (Sentences(self.sentences), entities, wanted)


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
    """Set what people ask about against what there is, entity by entity.

    Parameters
    ----------
    qrels, traces, measure, final
        As for `funnel`; scores are those of the last list. Queries without judgments count
        as demand, and have no score.
    entities
        `Entities`, or a table of names, aliases and parents: queries are mapped by the longest names in their texts.
    by
        Instead, the attribute that names the entities of a topic, one or a list.
    queries
        Texts of topics; where they are left out, those that were traced.
    attributes
        Facts about topics; a number called ``traffic`` says how often each was asked. Without it that is how often it
        was traced.
    documents
        A table of documents with a column ``entity``, or with a column called as `by`: the supply.
    corpus
        Ids of all documents that there are; with `documents`, these.
    fdr
        Rate of false discoveries among the entities that are named as served worse (Benjamini-Hochberg).
    level, seed
        Of intervals and permutations.

    Raises
    ------
    InputError
        If something cannot be read, or nothing says what queries are about.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> traces = traces_of_runs({"bm25": {"q1": ["a", "x"], "q2": ["x"]}})
    >>> found = gaps({"q1": {"a": 1}, "q2": {"b": 1}}, traces, "R@1", entities=[{"entity": "zip"}, {"entity": "tar"}],
    ...              queries={"q1": "make a zip", "q2": "a tar in a zip"}, corpus=["a", "x"])
    >>> [(row.entity, row.n, row.score) for row in found.rows], found.wanted[0][4]
    ([('zip', 2, 0.5), ('tar', 1, 0.0)], 'relevant documents are not in the corpus')
    """
    chosen, judgments = single_measure(measure), Qrels.of(qrels)
    known = None if attributes is None else Attributes.of(attributes)
    last = traces.stage(final) if final else traces.final
    judged = judge(judgments, traces.run_or_empty(last.name))
    texts = None if queries is None else Topics.of(queries)
    text_of = {topic: _text(traces, texts, topic) for topic in dict.fromkeys((*traces.query_ids, *judgments.topics))}
    table = Entities.of(entities) if entities is not None else None
    about, notes = _about(text_of, table, by, known)
    empty = {topic for topic in text_of if traces.spans_of(topic) and traces.state(topic, last.name) == "empty"}
    unrecorded = {topic for topic in text_of if traces.state(topic, last.name) == "unrecorded"}
    asked = known.numbers("traffic") if known is not None and "traffic" in known.names else traces.times
    traffic = {topic: float(asked.get(topic, 0.0 if asked else 1.0)) for topic in text_of}
    supply = None if documents is None else _supply(documents, by or "entity", table)
    there = set(corpus) if corpus is not None else None if supply is None else set(supply)
    rel = float(getattr(chosen, "rel", POSITIVE))
    place = {topic: row for row, topic in enumerate(judged.query_ids)}
    known = np.array([topic not in unrecorded for topic in judged.query_ids], dtype=np.bool_)
    low = chosen(judged)
    high, values = np.where(known, low, chosen(judged.ideal)), np.where(known, low, np.nan)
    relevant, found = judged.num_relevant(rel), judged.sum(judged.relevant(rel))
    names = list(dict.fromkeys(name for topic in text_of for name in about[topic]))
    members = np.array([[name in about[topic] for topic in judged.query_ids] for name in names], dtype=np.bool_)
    members = members.reshape(len(names), len(place))
    rests = compare_with_rest(values, members, level=level, seed=seed, min_units=_FEW) if names else []
    adjusted = adjust([rest.p if rest else math.nan for rest in rests], "bh") if names else []
    method, bounds = IntervalMethod(level=level), [chosen.properties.bounds]
    holders = Counter(name for some in (supply or {}).values() for name in some)
    rows: list[EntityGap] = []
    for name, inside, rest, p in zip(names, members, rests, adjusted, strict=True):
        own = [topic for topic in text_of if name in about[topic]]
        kept = values[inside][~np.isnan(values[inside])]
        ends = sufficient_intervals(kept[np.newaxis], method, bounds)[0] if len(kept) else [math.nan, math.nan]
        rows.append(
            EntityGap(
                entity=name,
                parents=table.parents.get(name, ()) if table else (),
                n=len(own),
                traffic=sum(traffic[topic] for topic in own),
                judged=len(kept),
                score=float(kept.mean()) if len(kept) else math.nan,
                low=float(ends[0]),
                high=float(ends[1]),
                rest=rest,
                adjusted=float(p),
                found=int(found[inside & known].sum()),
                relevant=int(relevant[inside & known].sum()),
                empty=len(empty.intersection(own)),
                documents=None if supply is None else holders[name],
                unrecorded=len(unrecorded.intersection(own)),
                lowest=mean_of(low[inside]),
                highest=mean_of(high[inside]),
            )
        )
    rows.sort(key=lambda row: (-row.traffic, row.entity))
    barren = {topic for topic, row in place.items() if not relevant[row]}
    outside = set[str]() if there is None else _outside(judgments, there, rel)
    reasons = {topic: UNKNOWN if topic in barren else OUTSIDE for topic in (*barren, *outside)}
    reasons |= dict.fromkeys(sorted(empty), NOTHING)
    wanted = [(topic, text_of[topic], ", ".join(about[topic]), traffic[topic], why) for topic, why in reasons.items()]
    wanted.sort(key=lambda row: (-row[3], row[0]))
    total, size = sum(traffic.values()), None if supply is None else len(supply)
    return Gaps(traces.name, chosen, tuple(rows), tuple(wanted), total, size, fdr, level, (*traces.notes, *notes))


def _outside(qrels: Qrels, corpus: set[str], rel: float) -> set[str]:
    """Give the topics of which the corpus lacks a relevant document."""
    rows = qrels.table.select(["query_id", "doc_id", "relevance"]).to_pylist()
    return {row["query_id"] for row in rows if row["relevance"] >= rel and row["doc_id"] not in corpus}


def _text(traces: Traces, texts: Topics | None, topic: str) -> str:
    """Give the text of a query, as it is known, or as it was typed."""
    known = texts.text(topic) if texts else ""
    return known or next((span.query for span in traces.spans_of(topic).values() if span.query), "")


def _about(
    text_of: Mapping[str, str], table: Entities | None, by: str | None, known: Attributes | None
) -> tuple[dict[str, tuple[str, ...]], list[Note]]:
    """Say what each query is about, with all that this is part of, and what was not or not surely told."""
    if (table is None) == (by is None):
        raise InputError("nothing says what queries are about", fix="give entities, or an attribute by, not both")
    notes: list[Note] = []
    if by is not None:
        if known is None:
            raise InputError(f"there are no attributes that {by!r} could be of", fix="give attributes")
        cells = dict(zip(known.query_ids, known.column(by).to_pylist(), strict=True))
        about = {topic: _names(cells.get(topic)) for topic in text_of}
    else:
        mentions = {topic: table.mentioned(text) for topic, text in text_of.items()} if table else {}
        about = {topic: table.rolled_up(found.entities) if table else () for topic, found in mentions.items()}
        unclear = Counter(name for found in mentions.values() for name in found.ambiguous)
        for name, times in unclear.most_common():
            called = ", ".join(table.aliases[tuple(name.split())]) if table else ""
            text = f"it may be {called}, and is counted for none of them, in {counted(times, 'query', 'queries')}"
            notes.append(Note("ambiguous-name", text, name, times, of="names"))
    if without := [topic for topic, names in about.items() if not names]:
        text = f"{counted(len(without), 'query is', 'queries are')} about no entity: {first_few(without)}"
        notes.append(Note("no-entity", text))
    return about, notes


def _names(cell: Any) -> tuple[str, ...]:
    return tuple(map(str, cell)) if isinstance(cell, (list, tuple)) else () if cell is None else (str(cell),)


def _supply(documents: Any, column: str, table: Entities | None) -> dict[str, tuple[str, ...]]:
    """Read what each document is about, with all that this is part of."""
    where = str(documents) if isinstance(documents, (str, Path)) else "<documents>"
    fix = f"give columns doc_id and {column}"
    supply: dict[str, tuple[str, ...]] = {}
    for line, row in records_of(documents, where, "documents", fix):
        doc = next((str(row[name]) for name in _ID if row.get(name) is not None), None)
        if doc is None or column not in row:
            raise InputError(f"a row without doc_id or {column}", fix=fix, path=where, line=line)
        names = tuple(name for name in _names(row[column]) if name)
        supply[doc] = table.rolled_up(names) if table else names
    return supply
