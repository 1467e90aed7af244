"""Traces: the stages of a pipeline for each query, with the documents that each stage returned."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from judged.data.run import Run, TopicRows, single_run
from judged.errors import InputError
from judged.results import counted
from judged.results.blocks import Note
from judged.results.spelling import use_one_of
from judged.results.types import cached_property
from judged.scoring.evaluation import runs_of
from judged.scoring.judging.align import align

if TYPE_CHECKING:
    from judged.results.types import Table

Kind: TypeAlias = Literal["rewrite", "candidates", "score", "fuse", "rerank", "shown", "cited"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of stages; all but ``rewrite`` return documents."""
StageState: TypeAlias = Literal["unrecorded", "empty", "documents"]
"""State of the documents of a stage in a trace: no record, an empty list, or a list of documents."""


class Document(NamedTuple):
    """Document that a stage returned."""

    doc_id: str
    rank: int  # recorded rank, from 1
    score: float | None = None
    source: str = ""  # such as an index or a retriever
    features: Mapping[str, Any] = {}  # components of the score


@dataclass(frozen=True)
class Span:
    """One stage of one trace.

    Parameters
    ----------
    trace_id
        Id of the request.
    query_id
        Topic.
    stage
        Name of the stage.
    kind
        Kind of the stage.
    parents
        Names of the stages whose documents are its input; empty if its input is the query.
    documents
        Documents that it returned, in order; None if they were not recorded, and for rewrites.
    query
        Text of the query that it received, or that a ``rewrite`` returned; None if not recorded.
    latency_ms
        Duration in milliseconds.
    model
        Model that it used: a name, or a hash of the configuration.
    facts
        Other facts, such as ``session_id``, ``user_id``, ``top_k``, and ``feedback``.
    settings
        Configuration of the stage, such as ``{"depth": 50, "weights": {"title": 2.0}}``.
    """

    trace_id: str
    query_id: str
    stage: str
    kind: Kind
    parents: tuple[str, ...] = ()
    documents: tuple[Document, ...] | None = None
    query: str | None = None
    latency_ms: float | None = None
    model: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Stage:
    """Stage of the pipeline, over all traces.

    Parameters
    ----------
    name, kind
        As in the spans.
    parents
        Stages whose documents are its input in any trace.
    step
        Number of stages with documents on the longest path from the query to this stage, including it.
    """

    name: str
    kind: Kind
    parents: tuple[str, ...]
    step: int


@dataclass(frozen=True, eq=False, repr=False)
class Traces:
    """Traces of a system, one for each query.

    Each stage can be used as a run: `run` converts it.

    Parameters
    ----------
    spans
        Stages of all traces, one trace for each query, in the recorded order.
    name
        Name in results.
    notes
        Records that could not be read.
    times
        Number of traces by query; empty if no query was traced more than once.
    is_complete
        Whether everything is recorded, as in runs: a query that a stage lacks returned no documents there.

    Examples
    --------
    >>> spans = [Span("t1", "q", "bm25", "candidates", (), (Document("a", 1, 7.0), Document("b", 2, 5.0)))]
    >>> spans += [Span("t1", "q", "rerank", "rerank", ("bm25",), (Document("b", 1, 0.9),))]
    >>> traces = Traces(tuple(spans))
    >>> [(stage.name, stage.step) for stage in traces.stages], traces.run("rerank").table.to_pylist()
    ([('bm25', 1), ('rerank', 2)], [{'query_id': 'q', 'doc_id': 'b', 'score': 0.9}])
    """

    spans: tuple[Span, ...]
    name: str = "traces"
    notes: tuple[Note, ...] = ()
    times: Mapping[str, int] = field(default_factory=dict[str, int])
    is_complete: bool = False

    @property
    def doc_ids(self) -> set[str]:
        """Ids of all documents that any stage returned."""
        return {document.doc_id for span in self.spans for document in span.documents or ()}

    def __repr__(self) -> str:
        names = ", ".join(stage.name for stage in self.stages)
        return f"Traces({self.name!r}: {counted(len(self.query_ids), 'query', 'queries')}; {names})"

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Topics, in order of their first span."""
        return tuple(dict.fromkeys(span.query_id for span in self.spans))

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that return documents, sorted by step, then in the recorded order.

        Stages without recorded documents are included: their documents are unknown.

        Raises
        ------
        InputError
            If a stage has two kinds, or is its own ancestor.
        """
        kinds, parents = dict[str, Kind](), dict[str, dict[str, None]]()
        for span in self.spans:
            if kinds.setdefault(span.stage, span.kind) != span.kind:
                problem = (
                    f"stage {span.stage!r} has kind {kinds[span.stage]!r} in one trace and kind {span.kind!r} in"
                    " another"
                )
                raise InputError(problem, fix="use a different name for each kind of stage", path=self.name)
            parents.setdefault(span.stage, {}).update(dict.fromkeys(span.parents))
        for parent in [parent for stage_parents in parents.values() for parent in stage_parents]:
            kinds.setdefault(parent, "candidates")  # a parent without a span of its own
            parents.setdefault(parent, {})
        # Rewrites return no documents, so they are not parents.
        names = [name for name in parents if kinds[name] != "rewrite"]
        parents_of = {name: tuple(parent for parent in parents[name] if kinds[parent] != "rewrite") for name in names}
        steps: dict[str, int] = {}
        while len(steps) < len(names):
            ready = [name for name in names if name not in steps and steps.keys() >= set(parents_of[name])]
            if not ready:
                cycle = ", ".join(name for name in names if name not in steps)
                fix = "name only earlier stages as parents"
                raise InputError(f"the parents of these stages form a cycle: {cycle}", path=self.name, fix=fix)
            steps |= {name: 1 + max((steps[parent] for parent in parents_of[name]), default=0) for name in ready}
        stages = [Stage(name, kinds[name], parents_of[name], steps[name]) for name in names]
        return tuple(sorted(stages, key=lambda stage: stage.step))

    def stage(self, name: str) -> Stage:
        """Return a stage by name.

        Raises
        ------
        InputError
            If it does not exist.
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise InputError(f"unknown stage {name!r}", fix=use_one_of(stage.name for stage in self.stages))

    @property
    def final(self) -> Stage:
        """The stage that users saw: the last one of kind ``shown``, or else the last one that is not ``cited``."""
        shown_stages = [stage for stage in self.stages if stage.kind == "shown"]
        candidates = [stage for stage in self.stages if stage.kind != "cited"]
        if not candidates:
            raise InputError("no stage has documents", fix="record the documents of each stage", path=self.name)
        return (shown_stages or candidates)[-1]

    def documents(self, query_id: str, stage: str) -> tuple[Document, ...] | None:
        """Return the documents of a stage for a query, by rank; None if they are unknown.

        A stage without a span returned nothing if the trace continued without it (a later stage has a span, and no span
        names the stage as a parent), or if none of its parents returned anything. Otherwise it is unknown. Use this
        method for all computations, so that unknown documents are not mistaken for missing ones.

        Examples
        --------
        >>> spans = [Span("t", "q", "bm25", "candidates", (), (Document("a", 1),)),
        ...          Span("t", "q", "rerank", "rerank", ("bm25",))]
        >>> traces = Traces(tuple(spans))
        >>> traces.documents("q", "bm25"), traces.documents("q", "rerank")
        ((Document(doc_id='a', rank=1, score=None, source='', features={}),), None)
        """
        return self._documents[stage].get(query_id, () if self.is_complete else None)

    def state(self, query_id: str, stage: str) -> StageState:
        """Return whether the documents of a stage are recorded for a query, and whether there are any."""
        documents = self.documents(query_id, stage)
        return "unrecorded" if documents is None else "documents" if documents else "empty"

    @cached_property
    def _documents(self) -> dict[str, dict[str, tuple[Document, ...]]]:
        """Recorded documents by stage and query; queries with unknown documents are missing."""
        descendants = dict[str, set[str]]()
        for stage in reversed(self.stages):
            children = [child.name for child in self.stages if stage.name in child.parents]
            descendants[stage.name] = {*children, *(name for child in children for name in descendants[child])}
        recorded: dict[str, dict[str, tuple[Document, ...]]] = {stage.name: {} for stage in self.stages}
        for query, spans in self._by_query.items():
            all_parents = {parent for span in spans.values() for parent in span.parents}
            for stage in self.stages:
                span = spans.get(stage.name)
                if span is not None:
                    if span.documents is not None:
                        recorded[stage.name][query] = tuple(sorted(span.documents, key=lambda document: document.rank))
                    continue
                skipped = stage.name not in all_parents and not descendants[stage.name].isdisjoint(spans)
                no_input = stage.parents and all(recorded[parent].get(query) == () for parent in stage.parents)
                if skipped or no_input:
                    recorded[stage.name][query] = ()
        return recorded

    def spans_of(self, query_id: str) -> dict[str, Span]:
        """Return the spans of a query by stage; an empty dict for an unknown query."""
        return self._by_query.get(query_id, {})

    @cached_property
    def _by_query(self) -> dict[str, dict[str, Span]]:
        spans_of: dict[str, dict[str, Span]] = {}
        for span in self.spans:
            spans_of.setdefault(span.query_id, {})[span.stage] = span
        return spans_of

    def run(self, stage: str) -> Run:
        """Convert a stage to a run, in the recorded order. `has_scores` tells if it has the recorded scores.

        Queries for which the stage is unrecorded are missing from the run, like queries without documents.

        Raises
        ------
        InputError
            If the stage does not exist, or has no recorded documents.
        """
        self.stage(stage)
        documents_of = self._documents[stage]
        if not any(documents_of.values()):
            problem = f"stage {stage} has no documents for any query"
            if any(query not in documents_of for query in self.query_ids):
                problem = f"the documents of stage {stage} are not recorded"
            raise InputError(problem, fix="leave out this stage, or record its documents", path=self.name)
        return self.run_or_empty(stage)

    def run_or_empty(self, stage: str) -> Run:
        """Convert a stage to a run, which can be empty."""
        return _run(self._documents[stage], stage, by_score=self.has_scores(stage))

    def has_scores(self, stage: str) -> bool:
        """Whether the run of a stage has the recorded scores; otherwise its scores are negative ranks.

        It has if all documents have scores that give the recorded order, with ties by falling id, as for all runs.

        Examples
        --------
        >>> scored, unscored = (Document("a", 1, 7.5), Document("b", 2, 5.0)), (Document("b", 1), Document("a", 2))
        >>> spans = [Span("t", "q", "bm25", "candidates", (), scored), Span("t", "q", "ltr", "rerank", (), unscored)]
        >>> Traces(tuple(spans)).has_scores("bm25"), Traces(tuple(spans)).has_scores("ltr")
        (True, False)
        """
        self.stage(stage)
        return all(map(_ordered_by_score, self._documents[stage].values()))

    def runs(self) -> tuple[Run, ...]:
        """Convert all stages with recorded documents to runs."""
        return tuple(self.run(stage.name) for stage in self.stages if any(self._documents[stage.name].values()))

    def union(self, stages: Sequence[str]) -> Run:
        """Merge the recorded documents of some stages into a run without a meaningful order."""
        merged: dict[str, set[str]] = {}
        for stage in stages:
            for query, documents in self._documents[stage].items():
                merged.setdefault(query, set()).update(document.doc_id for document in documents)
        ranked = {query: [Document(doc, rank) for rank, doc in enumerate(sorted(merged[query]), 1)] for query in merged}
        return _run(ranked, " + ".join(stages), by_score=False)

    def unified(self, mapping: Mapping[str, str] | str | PathLike[str]) -> Traces:
        """Replace the ids of chunks by those of their documents in all stages.

        Of several chunks of a document the first one is used, and later documents move up. Ids that the mapping does
        not contain are unchanged; `notes` count both.

        Parameters
        ----------
        mapping
            Document ids by chunk id, or a file with two columns or a JSON object.

        Raises
        ------
        InputError
            If the file is invalid.

        Examples
        --------
        >>> traces = traces_of_runs({"bm25": {"q": ["a#1", "a#2", "b"]}}).unified({"a#1": "a", "a#2": "a"})
        >>> [(document.doc_id, document.rank) for document in traces.spans[0].documents], traces.notes[0].text
        ([('a', 1), ('b', 2)], '2 document ids replaced by the mapping; 1 removed as a later chunk of a document')
        """
        from judged.pipelines.traces.attributes import read_mapping

        document_of = mapping if isinstance(mapping, Mapping) else read_mapping(Path(mapping))
        n_renamed, n_dropped, unknown = 0, 0, Counter[str]()
        spans: list[Span] = []
        for span in self.spans:
            documents: dict[str, Document] = {}
            n_repeated = 0
            for document in sorted(span.documents or (), key=lambda document: document.rank):
                doc_id = document_of.get(document.doc_id) or document.doc_id
                n_renamed += document.doc_id in document_of
                unknown[span.stage] += document.doc_id not in document_of
                if doc_id in documents:
                    n_repeated += 1
                else:
                    documents[doc_id] = document._replace(doc_id=doc_id, rank=document.rank - n_repeated)
            n_dropped += n_repeated
            spans.append(replace(span, documents=None if span.documents is None else tuple(documents.values())))
        removed = f"{n_dropped:,} removed as a later chunk of a document"
        notes = [Note("unified-documents", f"{counted(n_renamed, 'document id')} replaced by the mapping; {removed}")]
        for stage, count in (+unknown).items():
            text = f"{counted(count, 'document')} not in the mapping: their ids are unchanged"
            notes.append(Note("unmapped-documents", text, stage, count, of="stages"))
        return replace(self, spans=tuple(spans), notes=(*self.notes, *notes))

    def table(self) -> Table:
        """Return an Arrow table with a row for each document; ``seq`` numbers the stages, ``features`` are JSON."""
        import pyarrow as pa

        rows = [
            (span.trace_id, span.query_id, seq, span.parents, span.stage, span.kind, document.source, document.doc_id,
             document.rank, document.score,
             json.dumps(dict(document.features), default=str) if document.features else None)
            for query in self.query_ids
            for seq, span in enumerate(self.spans_of(query).values(), 1)
            for document in span.documents or ()
        ]  # fmt: skip
        types = {
            "trace_id": pa.string(), "query_id": pa.string(), "seq": pa.int32(), "parents": pa.list_(pa.string()),
            "stage": pa.string(), "kind": pa.string(), "source": pa.string(), "doc_id": pa.string(),
            "rank": pa.int32(), "score": pa.float64(), "features": pa.string(),
        }  # fmt: skip
        columns = zip(*rows, strict=True) if rows else [()] * len(types)
        arrays = [pa.array(values, dtype) for values, dtype in zip(columns, types.values(), strict=True)]
        return pa.table(arrays, list(types))


def _ordered_by_score(documents: Sequence[Document]) -> bool:
    """Check if all documents have finite scores that give their order, also in single precision as in trec_eval."""
    scores = [document.score for document in documents if document.score is not None and math.isfinite(document.score)]
    if len(scores) < len(documents):
        return False
    ids = [document.doc_id for document in documents]
    single = np.array(scores, dtype=np.float32).tolist()
    keys = (pairwise(zip(values, ids, strict=True)) for values in (scores, single))
    return all(earlier > later for pairs in keys for earlier, later in pairs)


def _run(documents: Mapping[str, Iterable[Document]], name: str, *, by_score: bool) -> Run:
    import pyarrow as pa

    queries, ids, scores = list[str](), list[str](), list[float]()
    for query, ranking in documents.items():
        for document in ranking:
            queries.append(query)
            ids.append(document.doc_id)
            scores.append(document.score if by_score and document.score is not None else -float(document.rank))
    columns = {"query_id": pa.array(queries, pa.string()), "doc_id": pa.array(ids, pa.string())}
    return Run.of(pa.table({**columns, "score": pa.array(scores, pa.float64())}), name=name)


def last_trace_per_query(spans: Iterable[Span], name: str) -> Traces:
    """Select the last recorded trace of each query, and the last span of each of its stages; notes count the others."""
    all_spans = list(spans)
    last = {span.query_id: span.trace_id for span in all_spans}
    pairs = {(span.query_id, span.trace_id) for span in all_spans}
    selected = {(span.query_id, span.stage): span for span in all_spans if last[span.query_id] == span.trace_id}
    notes, times = list[Note](), Counter[str]()
    if len(pairs) > len(last):
        earlier = counted(len(pairs) - len(last), "earlier trace")
        text = f"{earlier} ignored: of several traces of a query, only the last one is used"
        notes.append(Note("repeated-queries", text))
        times = Counter(query for query, _ in pairs)
    n_repeated = sum(span.trace_id == last[span.query_id] for span in all_spans) - len(selected)
    if n_repeated:
        text = f"{counted(n_repeated, 'stage')} recorded more than once in a trace: the last record is used"
        notes.append(Note("repeated-stages", text))
    return Traces(tuple(selected.values()), name, tuple(notes), times)


def traces_of_runs(stages: Mapping[str, Any], *, parents: Mapping[str, Sequence[str]] | None = None) -> Traces:
    """Convert runs to traces, each run a stage; queries that a run lacks have no documents there.

    Parameters
    ----------
    stages
        Run, or an argument of `judged.evaluate` for one, by name of the stage, in pipeline order.
    parents
        Stages whose documents are the input, by stage. Default: the stage before.

    Raises
    ------
    InputError
        If a run is invalid, or a parent is not a stage.

    Examples
    --------
    >>> traces = traces_of_runs({"bm25": {"q": ["a", "b", "c"]}, "rerank": {"q": ["c", "a"]}})
    >>> [(stage.name, stage.kind, stage.parents) for stage in traces.stages]
    [('bm25', 'candidates', ()), ('rerank', 'rerank', ('bm25',))]
    """
    parents = dict(parents or {})
    names = {parent for stage_parents in parents.values() for parent in stage_parents} | set(parents)
    for name in names - set(stages):
        raise InputError(f"unknown stage {name!r}", fix=use_one_of(stages))
    spans: list[Span] = []
    previous: tuple[str, ...] = ()
    for name, source in stages.items():
        inputs = tuple(parents.get(name, previous))
        kind: Kind = "candidates" if not inputs else "fuse" if len(inputs) > 1 else "rerank"
        run = single_run(runs_of(source), f"stage {name!r}")
        spans += [Span(query, query, name, kind, inputs, documents) for query, documents in _rankings(run)]
        previous = (name,)
    return Traces(tuple(spans), list(stages)[-1], is_complete=True)


def _rankings(run: Run) -> Iterator[tuple[str, tuple[Document, ...]]]:
    """Yield the documents of each topic by rank, with their scores."""
    aligned, rows = align(run, run), TopicRows.of(run)
    for query in aligned.query_ids:
        table = rows.run(query).table
        ids, values = table["doc_id"].to_pylist(), table["score"].to_pylist()
        scores = dict(zip(ids, values, strict=True)) if run.has_scores else {}
        place = aligned.rows(query)
        ranked, ranks = aligned.doc[place].to_pylist(), aligned.first[place].tolist()
        yield query, tuple(Document(doc, rank, scores.get(doc)) for doc, rank in zip(ranked, ranks, strict=True))
