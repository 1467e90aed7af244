"""Traces: for each query the stages it went through, each with the documents that it passed on."""

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

from judged.data.run import Run, TopicRows
from judged.errors import InputError
from judged.results import counted
from judged.results.blocks import Note
from judged.results.types import cached_property
from judged.scoring.evaluation import runs_of
from judged.scoring.judging.align import align

if TYPE_CHECKING:
    from judged.results.types import Table

Kind: TypeAlias = Literal["rewrite", "candidates", "score", "fuse", "rerank", "shown", "cited"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a stage does; all but ``rewrite`` pass documents on."""
StageState: TypeAlias = Literal["unrecorded", "empty", "documents"]
"""What a trace says of the documents of a stage: nothing, that there were none, or which."""


class Document(NamedTuple):
    """A document that a stage passed on."""

    doc_id: str
    rank: int  # from 1, as the stage gave it
    score: float | None = None
    source: str = ""  # where it came from: an index, a retriever
    features: Mapping[str, Any] = {}  # what its score was made of


@dataclass(frozen=True)
class Span:
    """One stage of one trace.

    Parameters
    ----------
    trace_id
        The request.
    query_id
        The topic.
    stage
        The name of the stage.
    kind
        What it does.
    parents
        Names of the stages whose documents it was given; empty: it was given the query.
    documents
        What it passed on, in order; None: they were not recorded (of a rewrite: it has none to pass on).
    query
        The text that it was given, or, of ``rewrite``, the one that it made; None where that is not recorded.
    latency_ms
        How long it took.
    model
        What did it: a name, or a hash of the configuration.
    facts
        What else is known, such as ``session_id``, ``user_id``, ``top_k`` and ``feedback``.
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


@dataclass(frozen=True)
class Stage:
    """A stage of the pipeline, as all traces together show it.

    Parameters
    ----------
    name, kind
        As in the spans.
    parents
        Stages that it is given documents of, in any trace.
    step
        How many stages with documents there are on the longest way from the query to it, itself counted.
    """

    name: str
    kind: Kind
    parents: tuple[str, ...]
    step: int


@dataclass(frozen=True, eq=False, repr=False)
class Traces:
    """What a system did for each of its queries.

    Every stage is an ordinary run: `run` gives it, and everything that takes runs takes it.

    Parameters
    ----------
    spans
        The stages of all traces, one trace for each query, in the order in which they were recorded.
    name
        What to call them in results.
    notes
        What could not be read, and was left out.
    times
        How often each query was traced; empty if none was traced again.
    is_complete
        Whether everything is recorded, as in runs: a query that a stage lacks is one for which it returned nothing.

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
        """The ids of all documents that a stage passed on."""
        return {document.doc_id for span in self.spans for document in span.documents or ()}

    def __repr__(self) -> str:
        names = ", ".join(stage.name for stage in self.stages)
        return f"Traces({self.name!r}: {counted(len(self.query_ids), 'query', 'queries')}; {names})"

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The topics, in the order in which they were first seen."""
        return tuple(dict.fromkeys(span.query_id for span in self.spans))

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that pass documents on, those nearer to the query first, else in the order of recording.

        A stage whose documents no trace records is one of them: its documents are unknown, not those of its parents.

        Raises
        ------
        InputError
            If a stage is of two kinds, or is its own ancestor.
        """
        kinds, parents = dict[str, Kind](), dict[str, dict[str, None]]()
        for span in self.spans:
            if kinds.setdefault(span.stage, span.kind) != span.kind:
                problem = f"stage {span.stage!r} is {kinds[span.stage]} in one trace and {span.kind} in another"
                raise InputError(problem, fix="give different stages different names", path=self.name)
            parents.setdefault(span.stage, {}).update(dict.fromkeys(span.parents))
        for parent in [parent for given in parents.values() for parent in given]:
            kinds.setdefault(parent, "candidates")  # no span of it is recorded, only that it passed documents on
            parents.setdefault(parent, {})
        passing = {name for name, kind in kinds.items() if kind != "rewrite"}
        named = {
            name: tuple(parent for parent in given if parent in passing)
            for name, given in parents.items()
            if name in passing
        }
        steps: dict[str, int] = {}
        while len(steps) < len(named):
            ready = [name for name, given in named.items() if name not in steps and all(one in steps for one in given)]
            if not ready:
                around = ", ".join(name for name in named if name not in steps)
                raise InputError(f"stages are their own ancestors: {around}", path=self.name,
                                 fix="name as parents the stages that came before")  # fmt: skip
            steps |= {name: 1 + max((steps[one] for one in named[name]), default=0) for name in ready}
        made = [Stage(name, kinds[name], given, steps[name]) for name, given in named.items()]
        return tuple(sorted(made, key=lambda stage: stage.step))

    def stage(self, name: str) -> Stage:
        """Give a stage by its name.

        Raises
        ------
        InputError
            If there is none.
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise InputError(f"no stage {name!r}", fix=f"use one of {', '.join(one.name for one in self.stages)}")

    @property
    def final(self) -> Stage:
        """The stage whose list people saw: the last one of kind ``shown``, or else the last that is no ``cited``."""
        shown = [stage for stage in self.stages if stage.kind == "shown"]
        listed = [stage for stage in self.stages if stage.kind != "cited"]
        if not listed:
            raise InputError("no stage passes documents on", fix="record the documents of each stage", path=self.name)
        return (shown or listed)[-1]

    def documents(self, query_id: str, stage: str) -> tuple[Document, ...] | None:
        """Return what a stage passed on for a query, by rank; None if that is unknown.

        All that is computed of traces reads documents here, so that what is unknown is never taken for nothing. A stage
        without a span passed nothing on if the trace went on without it: a later stage has a span, and no span of the
        query names the stage as a parent. It passed nothing on, too, if all its parents did not. Else it is unknown.

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
        """The recorded documents by stage and query; a query that is missing is unknown."""
        below = dict[str, set[str]]()
        for stage in reversed(self.stages):
            children = [one.name for one in self.stages if stage.name in one.parents]
            below[stage.name] = {*children, *(name for child in children for name in below[child])}
        recorded: dict[str, dict[str, tuple[Document, ...]]] = {stage.name: {} for stage in self.stages}
        for query, spans in self._by_query.items():
            named = {parent for span in spans.values() for parent in span.parents}
            for stage in self.stages:
                span = spans.get(stage.name)
                if span is not None:
                    if span.documents is not None:
                        recorded[stage.name][query] = tuple(sorted(span.documents, key=lambda one: one.rank))
                    continue
                skipped = stage.name not in named and not below[stage.name].isdisjoint(spans)
                nothing = stage.parents and all(recorded[parent].get(query) == () for parent in stage.parents)
                if skipped or nothing:
                    recorded[stage.name][query] = ()
        return recorded

    def spans_of(self, query_id: str) -> dict[str, Span]:
        """Give the stages of one query by name; empty where there are none."""
        return self._by_query.get(query_id, {})

    @cached_property
    def _by_query(self) -> dict[str, dict[str, Span]]:
        found: dict[str, dict[str, Span]] = {}
        for span in self.spans:
            found.setdefault(span.query_id, {})[span.stage] = span
        return found

    def run(self, stage: str) -> Run:
        """Return what a stage passed on as a run, in the recorded order: `has_scores` says what its scores are.

        A run has no place for "unknown": queries for which the stage is unrecorded are missing, as those are for which
        it returned nothing.

        Raises
        ------
        InputError
            If there is no such stage, or no document of it is recorded.
        """
        self.stage(stage)
        listed = self._documents[stage]
        if not any(listed.values()):
            problem = f"stage {stage} passed on no document for any query"
            if any(query not in listed for query in self.query_ids):
                problem = f"the documents of stage {stage} are not recorded"
            raise InputError(problem, fix="leave it out, or record what it passed on", path=self.name)
        return self.run_or_empty(stage)

    def run_or_empty(self, stage: str) -> Run:
        """Return what a stage passed on as a run, without documents if none is recorded."""
        return _run(self._documents[stage], stage, by_score=self.has_scores(stage))

    def has_scores(self, stage: str) -> bool:
        """Whether the scores that a stage recorded are those of its run; if not, they are ranks, negative.

        They are if each document has one and they give the recorded order, equal ones by falling id, as everywhere.

        Examples
        --------
        >>> scored, bare = (Document("a", 1, 7.5), Document("b", 2, 5.0)), (Document("b", 1), Document("a", 2))
        >>> spans = [Span("t", "q", "bm25", "candidates", (), scored), Span("t", "q", "rerank", "rerank", (), bare)]
        >>> Traces(tuple(spans)).has_scores("bm25"), Traces(tuple(spans)).has_scores("rerank")
        (True, False)
        """
        self.stage(stage)
        return all(map(_ordered_by_score, self._documents[stage].values()))

    def runs(self) -> tuple[Run, ...]:
        """Return every stage with a recorded document as a run, in order."""
        return tuple(self.run(stage.name) for stage in self.stages if any(self._documents[stage.name].values()))

    def union(self, stages: Sequence[str]) -> Run:
        """Return what any of these stages is known to have passed on as one run; its order means nothing."""
        found: dict[str, dict[str, Document]] = {}
        for stage in stages:
            for query, documents in self._documents[stage].items():
                found.setdefault(query, {}).update((one.doc_id, one) for one in documents)
        listed = {query: [Document(one, at) for at, one in enumerate(sorted(found[query]), 1)] for query in found}
        return _run(listed, " + ".join(stages), by_score=False)

    def unified(self, mapping: Mapping[str, str] | str | PathLike[str]) -> Traces:
        """Name documents alike in all stages: those of a chunk become its document, at its first rank.

        Of chunks of one document the first counts, and what stands behind moves up. Ids that the mapping does not hold
        stay as they are; `notes` count both.

        Parameters
        ----------
        mapping
            Documents by chunk, or a file of two columns or of a JSON object.

        Raises
        ------
        InputError
            If the file cannot be read.

        Examples
        --------
        >>> made = traces_of_runs({"bm25": {"q": ["a#1", "a#2", "b"]}}).unified({"a#1": "a", "a#2": "a"})
        >>> [(one.doc_id, one.rank) for one in made.spans[0].documents], made.notes[0].text
        ([('a', 1), ('b', 2)], '2 documents renamed by the mapping; 1 dropped behind another chunk of the same')
        """
        from judged.pipelines.traces.attributes import read_mapping

        named = mapping if isinstance(mapping, Mapping) else read_mapping(Path(mapping))
        renamed, dropped, unknown = 0, 0, Counter[str]()
        spans: list[Span] = []
        for span in self.spans:
            kept: dict[str, Document] = {}
            behind = 0
            for one in sorted(span.documents or (), key=lambda one: one.rank):
                doc_id = named.get(one.doc_id)
                renamed += doc_id is not None
                unknown[span.stage] += doc_id is None
                if (doc_id or one.doc_id) in kept:
                    behind += 1
                else:
                    kept[doc_id or one.doc_id] = one._replace(doc_id=doc_id or one.doc_id, rank=one.rank - behind)
            dropped += behind
            spans.append(replace(span, documents=None if span.documents is None else tuple(kept.values())))
        behind_another = f"{dropped:,} dropped behind another chunk of the same"
        notes = [Note("unified-documents", f"{counted(renamed, 'document')} renamed by the mapping; {behind_another}")]
        for stage, times in (+unknown).items():
            text = f"{counted(times, 'document')} not in the mapping: the ids are kept"
            notes.append(Note("unmapped-documents", text, stage, times, of="stages"))
        return replace(self, spans=tuple(spans), notes=(*self.notes, *notes))

    def table(self) -> Table:
        """Give one row a document, in Arrow; ``seq`` counts the stages of a trace, ``features`` are JSON."""
        import pyarrow as pa

        rows = [
            (span.trace_id, span.query_id, seq, span.parents, span.stage, span.kind, one.source, one.doc_id, one.rank,
             one.score, json.dumps(dict(one.features), default=str) if one.features else None)
            for query in self.query_ids
            for seq, span in enumerate(self.spans_of(query).values(), 1)
            for one in span.documents or ()
        ]  # fmt: skip
        types = {
            "trace_id": pa.string(), "query_id": pa.string(), "seq": pa.int32(), "parents": pa.list_(pa.string()),
            "stage": pa.string(), "kind": pa.string(), "source": pa.string(), "doc_id": pa.string(),
            "rank": pa.int32(), "score": pa.float64(), "features": pa.string(),
        }  # fmt: skip
        columns = zip(*rows, strict=True) if rows else [()] * len(types)
        return pa.table([pa.array(one, kind) for one, kind in zip(columns, types.values(), strict=True)], list(types))


def _ordered_by_score(documents: Sequence[Document]) -> bool:
    """Whether each has a score, and they put documents in this order: also in single precision, as trec_eval does."""
    scores = [one.score for one in documents if one.score is not None and math.isfinite(one.score)]
    if len(scores) < len(documents):
        return False
    kept = [(score, one.doc_id) for score, one in zip(scores, documents, strict=True)]
    single = zip(np.array(scores, dtype=np.float32).tolist(), (one.doc_id for one in documents), strict=True)
    return all(earlier > later for keys in (kept, single) for earlier, later in pairwise(keys))


def _run(documents: Mapping[str, Iterable[Document]], name: str, *, by_score: bool) -> Run:
    import pyarrow as pa

    queries, ids, scores = list[str](), list[str](), list[float]()
    for query, listed in documents.items():
        for one in listed:
            queries.append(query)
            ids.append(one.doc_id)
            scores.append(one.score if by_score and one.score is not None else -float(one.rank))
    columns = {"query_id": pa.array(queries, pa.string()), "doc_id": pa.array(ids, pa.string())}
    return Run.of(pa.table({**columns, "score": pa.array(scores, pa.float64())}), name=name)


def one_trace_a_query(spans: Iterable[Span], name: str) -> Traces:
    """Keep of each query the trace that was recorded last, and of each stage of it the last span; count the others."""
    given = list(spans)
    last = {span.query_id: span.trace_id for span in given}
    every = {(span.query_id, span.trace_id) for span in given}
    kept = {(span.query_id, span.stage): span for span in given if last[span.query_id] == span.trace_id}
    notes, times = list[Note](), Counter[str]()
    if len(every) > len(last):
        more = counted(len(every) - len(last), "earlier trace")
        notes.append(Note("repeated-queries", f"{more} of queries that were traced again: only the last trace counts"))
        times = Counter(query for query, _ in every)
    again = sum(span.trace_id == last[span.query_id] for span in given) - len(kept)
    if again:
        notes.append(
            Note("repeated-stages", f"{counted(again, 'stage')} recorded twice in a trace: the last record counts")
        )
    return Traces(tuple(kept.values()), name, tuple(notes), times)


def traces_of_runs(stages: Mapping[str, Any], *, parents: Mapping[str, Sequence[str]] | None = None) -> Traces:
    """Make traces of runs, each the output of a stage; a query that a run lacks is one for which it returned nothing.

    Parameters
    ----------
    stages
        Run, or what `judged.evaluate` takes for one, by the name of the stage, in the order of the pipeline.
    parents
        The stages that a stage was given documents of; those that are not named follow the one before them.

    Raises
    ------
    InputError
        If a run cannot be read, or a parent is no stage.

    Examples
    --------
    >>> found = traces_of_runs({"bm25": {"q": ["a", "b", "c"]}, "rerank": {"q": ["c", "a"]}})
    >>> [(stage.name, stage.kind, stage.parents) for stage in found.stages]
    [('bm25', 'candidates', ()), ('rerank', 'rerank', ('bm25',))]
    """
    given = dict(parents or {})
    for name in {one for some in given.values() for one in some} - set(stages) | set(given) - set(stages):
        raise InputError(f"no stage {name!r}", fix=f"use one of {', '.join(stages)}")
    spans: list[Span] = []
    before: tuple[str, ...] = ()
    for name, one in stages.items():
        follows = tuple(given.get(name, before))
        kind: Kind = "candidates" if not follows else "fuse" if len(follows) > 1 else "rerank"
        runs = runs_of(one)
        if len(runs) != 1:
            raise InputError(f"{len(runs)} runs are given for stage {name!r}", fix="give one run a stage")
        spans += [Span(query, query, name, kind, follows, documents) for query, documents in _listed(runs[0])]
        before = (name,)
    return Traces(tuple(spans), list(stages)[-1], is_complete=True)


def _listed(run: Run) -> Iterator[tuple[str, tuple[Document, ...]]]:
    """Give the documents of each topic by rank, with their scores."""
    every, rows = align(run, run), TopicRows.of(run)
    for query in every.query_ids:
        part = rows.run(query).table
        scores = dict(zip(part["doc_id"].to_pylist(), part["score"].to_pylist(), strict=True)) if run.has_scores else {}
        place = every.rows(query)
        ids, ranks = every.doc[place].to_pylist(), every.first[place].tolist()
        yield query, tuple(Document(one, rank, scores.get(one)) for one, rank in zip(ids, ranks, strict=True))
