"""Why a document stands where it stands: its way through the stages; and a topic walked back from the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.answer import ANY, COUNT, TEXT, Answer, Column, Sentences, Table, counted, number
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.notes import first_few

if TYPE_CHECKING:
    from judged.answer import Block
    from judged.notes import Note
    from judged.traces.traces import Document, Span, Stage, Traces

_FIRST = 10  # documents of a topic that are walked back
_FEW = 2  # documents of which every station is shown


@dataclass(frozen=True)
class Station:
    """A document at one stage.

    Parameters
    ----------
    stage
        The stage.
    given
        Whether it was among what the stage was given; None: the stage was given the query alone.
    document
        The document as the stage passed it on; None: it did not.
    of
        How many documents the stage passed on; None where they were not recorded.
    needed
        The least score that the stage passed on, where it cut the document off, as far as it is recorded.
    """

    stage: Stage
    given: bool | None
    document: Document | None
    of: int | None
    needed: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Why(Answer):
    """The way of documents through the stages of one trace.

    Parameters
    ----------
    traces
        The traces.
    query_id
        The topic.
    ways
        By document its stations, in the order of the stages.
    grades
        By document its grade; None where it is not judged.
    notes
        What could not be read.
    """

    kind: ClassVar[str] = "why"

    traces: Traces
    query_id: str
    ways: Mapping[str, tuple[Station, ...]]
    grades: Mapping[str, float | None]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """The topic."""
        return f"{self.traces.name}: topic {self.query_id}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What became of each document."""
        few = len(self.ways) <= _FEW
        asked = {doc: way for doc, way in self.ways.items() if few or not way[-1].document}
        never = [doc for doc, way in asked.items() if not few and not any(station.document for station in way)]
        told = [f"{doc}{_graded(self.grades[doc])}: {_told(way)}." for doc, way in asked.items() if doc not in never]
        count = counted(len(never), "relevant document was", "relevant documents were")
        return (*told, *([f"{count} passed on by no stage: {first_few(never)}."] if never else []))

    def facts(self) -> Mapping[str, Any]:
        """Give the topic, and what was asked."""
        return {"traces": self.traces.name, "query_id": self.query_id, "queries": self._queries()}

    def _queries(self) -> list[dict[str, Any]]:
        spans = self.traces.spans_of(self.query_id).values()
        return [{"stage": span.stage, "kind": span.kind, "query": span.query} for span in spans if span.query]

    def blocks(self) -> tuple[Block, ...]:
        """Give the queries, what became of each document, and its stations."""
        rows = [(doc, station) for doc, way in self.ways.items() for station in way]
        passed = [station.document for _, station in rows]
        stations = Table(
            "stations",
            (
                Column("doc_id", [doc for doc, _ in rows], TEXT, "document"),
                Column("stage", [station.stage.name for _, station in rows], TEXT),
                Column("kind", [station.stage.kind for _, station in rows], TEXT, only="data"),
                Column("given", [station.given for _, station in rows], ANY),
                Column("rank", [one.rank if one else None for one in passed], COUNT, beside=_of(rows)),
                Column("score", [one.score if one else None for one in passed], number()),
                Column("needed", [station.needed for _, station in rows], number()),
                Column("source", [one.source if one else None for one in passed], ANY),
                Column(
                    "features", [dict(one.features) if one and one.features else None for one in passed], only="json"
                ),
            ),
            "Their way through the stages",
            labels=2,
            note="needed: the least score that was passed on where the document was not",
            only="" if len(self.ways) <= _FEW else "data",
        )
        stages: dict[str, list[str]] = {}
        for one in self._queries():
            stages.setdefault(one["query"], []).append(one["stage"])
        asked = [f"{', '.join(names)}: {text}" for text, names in stages.items()]
        queries = [Sentences(tuple(asked), "queries", "What was asked")] if asked else []
        said = [Sentences(self.sentences)] if self.sentences else []
        ranks = [self._ranks()] if len(self.ways) > _FEW else []
        return (*queries, *ranks, *said, stations, *self._features())

    def _ranks(self) -> Table:
        """Lay out the rank of each document at each stage."""
        ranks = [
            Column(
                f"stage{at}",
                [passed.rank if (passed := way[at].document) else None for way in self.ways.values()],
                COUNT,
                stage.name,
            )
            for at, stage in enumerate(self.traces.stages)
        ]
        documents = Column("doc_id", list(self.ways), TEXT, "document")
        grades = Column("grade", [self.grades[doc] for doc in self.ways], number(0))
        note = "ranks by stage; the first of the list that people saw, then relevant documents that are not in it"
        return Table("ranks", (documents, grades, *ranks), "Walked back", note=note, only="people")

    def _features(self) -> tuple[Table, ...]:
        """Lay out what puts one of two documents above the other at the last stage that has features of both."""
        if len(self.ways) != 2:
            return ()
        (first, one), (second, other) = self.ways.items()
        for left, right in zip(reversed(one), reversed(other), strict=True):
            if left.document and right.document and left.document.features and right.document.features:
                a, b = left.document.features, right.document.features
                names = [name for name in a if name in b and all(isinstance(x[name], (int, float)) for x in (a, b))]
                names.sort(key=lambda name: -abs(a[name] - b[name]))
                columns = (
                    Column("feature", names, TEXT),
                    Column("first", [float(a[name]) for name in names], number(), first),
                    Column("second", [float(b[name]) for name in names], number(), second),
                    Column("difference", [float(a[name] - b[name]) for name in names], number(4, "+")),
                )
                return (Table("features", columns, f"What differs at {left.stage.name}"),)
        return ()


def _of(rows: Sequence[tuple[str, Station]]) -> list[str]:
    return [f"of {station.of}" if station.of and station.document else "" for _, station in rows]


def _graded(grade: float | None) -> str:
    return " (not judged)" if grade is None else f" (grade {grade:g})"


def _told(way: Sequence[Station]) -> str:
    """Say what became of a document."""
    had = [station for station in way if station.document]
    if not had:
        return "no stage passed it on"
    last = had[-1]
    place = last.document.rank if last.document else 0
    if last is way[-1]:
        return f"in the list, at rank {place} of {last.of}"
    cut = next((station for station in way[way.index(last) + 1 :] if station.given), None)
    if cut is None:
        return f"last passed on by {last.stage.name}, at rank {place} of {last.of}; no stage behind it was given it"
    score = last.document.score if last.document else None
    short = f" where {cut.needed:g} was the least" if cut.needed is not None else ""
    scored = f" with score {score:g} there" if score is not None else ""
    best = min(had, key=lambda station: station.document.rank if station.document else 0)
    higher = best.document.rank if best.document else 0
    fell = f", and {best.stage.name} at rank {higher} of {best.of}" if higher < place else ""
    return f"cut by {cut.stage.name}{short}; {last.stage.name} had it at rank {place} of {last.of}{scored}{fell}"


def why(traces: Traces, query_id: str, doc_id: str | Sequence[str] | None = None, *, qrels: Any = None) -> Why:
    """Walk documents through the stages of one trace.

    Parameters
    ----------
    traces
        The traces.
    query_id
        The topic.
    doc_id
        A document, or two, of which the features are compared; None: the first ten that people saw.
    qrels
        For the grades of the documents; without a document asked for, relevant ones that were lost are walked too.

    Raises
    ------
    InputError
        If the topic is not traced.

    Examples
    --------
    >>> from judged.traces import traces_of_runs
    >>> made = traces_of_runs({"bm25": {"q": {"x": 3.0, "a": 2.0, "b": 1.0}}, "rerank": {"q": {"a": 0.9, "x": 0.1}}})
    >>> why(made, "q", "b").sentences
    ('b (not judged): cut by rerank where 0.1 was the least; bm25 had it at rank 3 of 3 with score 1 there.',)
    """
    spans = traces.spans_of(query_id)
    if not spans:
        fix = f"use one of {', '.join(traces.query_ids[:5])}, ..."
        raise InputError(f"no trace of topic {query_id!r}", fix=fix, path=traces.name)
    grades = _grades(qrels, query_id)
    if doc_id is None:
        last = spans.get(traces.final.name)
        asked = [one.doc_id for one in (last.documents or ())[:_FIRST]] if last else []
        asked += [doc for doc, grade in sorted(grades.items(), key=lambda pair: -pair[1]) if grade > 0]
    else:
        asked = [doc_id] if isinstance(doc_id, str) else list(doc_id)
    ways = {doc: tuple(_way(traces, spans, doc)) for doc in dict.fromkeys(asked)}
    return Why(traces, query_id, ways, {doc: grades.get(doc) for doc in ways}, traces.notes)


def _grades(qrels: Any, query_id: str) -> dict[str, float]:
    if qrels is None:
        return {}
    table = Qrels.of(qrels).over([query_id]).table
    return dict(zip(table["doc_id"].to_pylist(), table["relevance"].to_pylist(), strict=True))


def _way(traces: Traces, spans: Mapping[str, Span], doc_id: str) -> list[Station]:
    made: list[Station] = []
    passed: dict[str, bool] = {}
    for stage in traces.stages:
        span = spans.get(stage.name)
        documents = span.documents if span else None
        found = next((one for one in documents or () if one.doc_id == doc_id), None)
        passed[stage.name] = found is not None
        given = any(passed.get(parent, False) for parent in stage.parents) if stage.parents else None
        scores = [one.score for one in documents or () if one.score is not None]
        needed = min(scores) if scores and found is None and given is not False else None
        made.append(Station(stage, given, found, None if documents is None else len(documents), needed))
    return made
