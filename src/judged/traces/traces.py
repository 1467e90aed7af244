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

from judged.answer import counted
from judged.cache import cached_property
from judged.data.run import Run, TopicRows
from judged.errors import InputError
from judged.evaluation import runs_of
from judged.judging.align import align
from judged.notes import Note

if TYPE_CHECKING:
    from judged._types import Table

Kind: TypeAlias = Literal["rewrite", "candidates", "score", "fuse", "rerank", "shown", "cited"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a stage does; all but ``rewrite`` pass documents on."""


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
        What it passed on, in order; None: it has none to pass on, or they were not recorded.
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

    def __repr__(self) -> str:
        names = ", ".join(stage.name for stage in self.stages)
        return f"Traces({self.name!r}: {counted(len(self.query_ids), 'query', 'queries')}; {names})"

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The topics, in the order in which they were first seen."""
        return tuple(dict.fromkeys(span.query_id for span in self.spans))

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages whose documents are recorded, those nearer to the query first, else in the order of recording.

        What follows a stage whose documents are not recorded in any trace follows what that one follows.

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
        recorded = {span.stage for span in self.spans if span.documents is not None and span.kind != "rewrite"}

        def given_by(name: str, passed: tuple[str, ...]) -> Iterator[str]:
            for parent in parents.get(name, {}):
                if parent in recorded:
                    yield parent
                elif parent not in passed and kinds.get(parent, "rewrite") != "rewrite":
                    yield from given_by(parent, (*passed, parent))  # what it passed on was not recorded

        named = {name: tuple(dict.fromkeys(given_by(name, ()))) for name in parents if name in recorded}
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
        """Give what a stage passed on as a run, in the recorded order: `has_scores` says what its scores are."""
        return _run(self._passed_on(stage), stage, by_score=self.has_scores(stage))

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
        return all(map(_ordered_by_score, self._passed_on(stage).values()))

    def _passed_on(self, stage: str) -> dict[str, list[Document]]:
        """Give the documents of a stage by query, and by rank."""
        self.stage(stage)
        spans = (span for span in self.spans if span.stage == stage)
        return {span.query_id: sorted(span.documents or (), key=lambda one: one.rank) for span in spans}

    def runs(self) -> tuple[Run, ...]:
        """Give every stage as a run, in order."""
        return tuple(self.run(stage.name) for stage in self.stages)

    def union(self, stages: Sequence[str]) -> Run:
        """Give what any of these stages passed on as one run, without an order that means something."""
        found: dict[str, dict[str, Document]] = {}
        for span in self.spans:
            if span.stage in stages and span.documents:
                found.setdefault(span.query_id, {}).update((one.doc_id, one) for one in span.documents)
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
        from judged.traces.mapping import read_mapping

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
    if not ids:
        raise InputError(
            f"stage {name} passed on no document for any query", fix="leave it out, or record what it passed on"
        )
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
    """Make traces of runs, each the output of a stage.

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
    return Traces(tuple(spans), list(stages)[-1])


def _listed(run: Run) -> Iterator[tuple[str, tuple[Document, ...]]]:
    """Give the documents of each topic by rank, with their scores."""
    every, rows = align(run, run), TopicRows.of(run)
    for query in every.query_ids:
        part = rows.run(query).table
        scores = dict(zip(part["doc_id"].to_pylist(), part["score"].to_pylist(), strict=True)) if run.has_scores else {}
        place = every.rows(query)
        ids, ranks = every.doc[place].to_pylist(), every.first[place].tolist()
        yield query, tuple(Document(one, rank, scores.get(one)) for one, rank in zip(ids, ranks, strict=True))
