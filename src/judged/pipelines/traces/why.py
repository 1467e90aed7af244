"""Why a document stands where it stands: its way through the stages; and a topic walked back from the list."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.traces.steps import clicks_of, stages_to
from judged.results import ANY, COUNT, TEXT, Answer, Column, Sentences, Show, Table, counted, number
from judged.results.blocks import first_few
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Document, Stage, StageState, Traces
    from judged.results import Block
    from judged.results.blocks import Note

_FIRST = 10  # documents of a topic that are walked back
_FEW = 2  # documents of which every station is shown
_MOST = 3  # features in a sentence
_DID = ("clicks", "feedback")  # facts that tell what users did
_THOUGHT = ("score", "label", "explanation", "annotator_kind")  # of feedback


@dataclass(frozen=True)
class Station:
    """A document at one stage.

    Parameters
    ----------
    stage
        The stage.
    given
        Whether it was among what the stage was given; None: the stage was given the query alone, or that is unknown.
    document
        The document as the stage passed it on; None: it did not, or that is unknown.
    of
        How many documents the stage passed on; None where they were not recorded.
    state
        Whether the documents of the stage are recorded.
    needed
        The least score that the stage passed on, where it cut the document off, as far as it is recorded.
    """

    stage: Stage
    given: bool | None
    document: Document | None
    of: int | None
    needed: float | None = None
    state: StageState = "documents"


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
        Those of all judged documents of the topic.
    notes
        What could not be read.
    """

    kind: ClassVar[str] = "why"

    traces: Traces
    query_id: str
    ways: Mapping[str, tuple[Station, ...]]
    grades: Mapping[str, float]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """The topic."""
        return f"{self.traces.name}: topic {self.query_id}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What became of each document, or of how many documents what; and what sets two of them apart."""
        if len(self.ways) <= _FEW:
            told = (f"{doc}{_graded(self.grades.get(doc))}: {self._told(way)}." for doc, way in self.ways.items())
            return (*told, *self._apart())
        relevant = [doc for doc in self.ways if (self.grades.get(doc) or 0) > 0]
        fates = Counter(self.fates[doc] for doc in relevant)
        told = ", ".join(f"{times} {fate}" for fate, times in fates.most_common())
        return (f"{counted(len(relevant), 'relevant document')}: {told}.",) if relevant else ()

    def facts(self) -> Mapping[str, Any]:
        """Return the topic, and what became of each document."""
        return {"traces": self.traces.name, "query_id": self.query_id, "fates": self.fates}

    @cached_property
    def fates(self) -> dict[str, str]:
        """What became of each document, in a few words."""
        return {doc: self._fate(way) for doc, way in self.ways.items()}

    def blocks(self) -> tuple[Block, ...]:
        """Give what became of each document, its stations, the stages back to the query, and what users did."""
        said = [Sentences(self.sentences)] if self.sentences else []
        did = [Sentences(self.did, "did", "What users did")] if self.did else []
        ranks = [self._ranks()] if len(self.ways) > _FEW else []
        features = [self._features_table()] if len(self.ways) <= _FEW and self._features else []
        return (*said, *ranks, self._stations(), *features, *did, self._stages())

    @property
    def did(self) -> tuple[str, ...]:
        """What users clicked on, and what they thought of it, as far as it was traced."""
        spans = self.traces.spans_of(self.query_id).values()
        clicks = clicks_of(self.traces, self.traces.final.name).get(self.query_id)
        clicked = ", ".join(f"{doc} ({times:g})" for doc, times in (clicks or {}).items() if times)
        told = [] if clicks is None else [f"Clicks: {clicked or 'none'}."]
        for span in spans:
            for given in cast("Sequence[Mapping[str, Any]]", span.facts.get("feedback") or ()):
                values = [str(given[key]) for key in _THOUGHT if given.get(key) is not None]
                told.append(f"Feedback on {span.stage}: {given.get('name')}: {', '.join(values)}.")
        return tuple(told)

    def _stations(self) -> Table:
        """Lay out each document at each stage."""
        rows = [(doc, station) for doc, way in self.ways.items() for station in way]
        passed = [station.document for _, station in rows]
        of = [f"of {station.of}" if station.of and station.document else "" for _, station in rows]
        states = [station.state for _, station in rows]
        return Table(
            "stations",
            (
                Column("doc_id", [doc for doc, _ in rows], TEXT, "document"),
                Column("stage", [station.stage.name for _, station in rows], TEXT),
                Column("kind", [station.stage.kind for _, station in rows], TEXT, only="data"),
                Column("grade", [self.grades.get(doc) for doc, _ in rows], number(0), only="data"),
                Column("given", [station.given for _, station in rows], ANY),
                Column("state", states, TEXT, only="" if "unrecorded" in states else "data"),
                Column("rank", [one.rank if one else None for one in passed], COUNT, details=of),
                Column("score", [one.score if one else None for one in passed], number()),
                Column("needed", [station.needed for _, station in rows], number()),
                _known("source", [(one.source or None) if one else None for one in passed], TEXT),
                Column("features", [dict(one.features) or None if one else None for one in passed], only="json"),
            ),
            "Their way through the stages",
            labels=2,
            note="needed: the lowest score that the stage passed on",
            only="" if len(self.ways) <= _FEW else "data",
        )

    def _stages(self) -> Table:
        """Lay out the stages of this trace, from the list that people saw back to the query."""
        spans = list(self.traces.spans_of(self.query_id).values())[::-1]
        lists = [None if span.documents is None else [one.doc_id for one in span.documents] for span in spans]
        unrecorded = [span.documents is None and span.kind != "rewrite" for span in spans]
        relevant = [None if ids is None else sum((self.grades.get(doc) or 0) > 0 for doc in ids) for ids in lists]
        queries = [span.query for span in spans]
        asked = [one if one != before else None for one, before in zip(queries, [*queries[1:], None], strict=True)]
        facts = [{name: fact for name, fact in span.facts.items() if name not in _DID} for span in spans]
        return Table(
            "stages",
            (
                Column("stage", [span.stage for span in spans], TEXT),
                Column("kind", [span.kind for span in spans], TEXT),
                Column("parents", [", ".join(span.parents) for span in spans], TEXT, "given by"),
                Column(
                    "documents",
                    [None if ids is None else len(ids) for ids in lists],
                    COUNT,
                    mark=["not recorded" if one else "" for one in unrecorded],
                ),
                Column("relevant", relevant, COUNT, only="" if self.grades else "data"),
                _known("latency_ms", [span.latency_ms for span in spans], number(1), "ms"),
                _known("model", [span.model for span in spans], TEXT),
                _known(
                    "facts", ["; ".join(f"{name}: {fact}" for name, fact in one.items()) or None for one in facts], TEXT
                ),
                Column("query", queries, only="data"),
                Column("asked", asked, TEXT, "query", only="people", below=True),
            ),
            "From the list back to the query",
        )

    def _ranks(self) -> Table:
        """Lay out the rank of each document at each stage, and what became of it."""
        passed = [[station.document for station in stations] for stations in zip(*self.ways.values(), strict=True)]
        ranks = [
            Column(f"stage{at}", [one.rank if one else None for one in passed[at]], COUNT, stage.name)
            for at, stage in enumerate(self.traces.stages)
        ]
        documents = Column("doc_id", list(self.ways), TEXT, "document")
        grades = Column("grade", [self.grades.get(doc) for doc in self.ways], number(0))
        fates = Column("fate", list(self.fates.values()), TEXT, "what became of it")
        note = "ranks by stage; first the top of the list that people saw, then relevant documents that are not in it"
        return Table("ranks", (documents, grades, *ranks, fates), "Documents", note=note, only="people")

    @cached_property
    def _features(self) -> tuple[tuple[str, str, list[Any], float], ...]:
        """Stage, feature, values of one or two documents, and how far apart they are in standard deviations.

        The stages nearest to the list come first, and of each the features that set the documents most apart.
        """
        rows: list[tuple[str, str, list[Any], float]] = []
        for stations in zip(*(way[::-1] for way in self.ways.values()), strict=True):
            stage = stations[0].stage.name
            passed = [station.document.features for station in stations if station.document]
            if len(passed) < len(self.ways):
                continue
            pairs = [(name, [one[name] for one in passed]) for name in passed[0] if all(name in one for one in passed)]
            found = [(stage, name, values, self._gap(stage, name, values)) for name, values in pairs]
            rows += sorted(found, key=lambda row: -abs(np.nan_to_num(row[3])))
        return tuple(rows)

    def _gap(self, stage: str, name: str, values: Sequence[Any]) -> float:
        """Give how many standard deviations, over what the stage passed on, lie between two; NaN if unknown."""
        every = [one.features.get(name) for one in self.traces.spans_of(self.query_id)[stage].documents or ()]
        spread = pstdev([value for value in every if isinstance(value, (int, float))] or [0.0])
        numbers = len(values) == _FEW and all(isinstance(value, (int, float)) for value in values)
        return (values[0] - values[1]) / spread if numbers and spread else math.nan

    def _features_table(self) -> Table:
        rows, pair = self._features, len(self.ways) == _FEW
        columns = [
            Column("stage", [stage for stage, *_ in rows], TEXT),
            Column("feature", [name for _, name, *_ in rows], TEXT),
            *(
                Column(key, [values[at] for _, _, values, _ in rows], ANY, doc)
                for at, (key, doc) in enumerate(zip(("first", "second"), self.ways, strict=False))
            ),
            Column("gap", [gap for *_, gap in rows], number(2, "+"), "apart", only="" if pair else "data"),
        ]
        note = (
            "apart: in standard deviations of the feature over the documents that the stage passed on" if pair else ""
        )
        return Table("features", tuple(columns), "Features", labels=2, note=note)

    def _apart(self) -> Iterator[str]:
        """Say which features set two documents most apart, at the last stage that recorded them."""
        rows = [(stage, f"{name} ({gap:+.2f})") for stage, name, _, gap in self._features if gap]
        most = [told for stage, told in rows if stage == rows[0][0]][:_MOST]
        if most and len(self.ways) == _FEW:
            first, second = self.ways
            told = f"What sets {first} most apart from {second} at {rows[0][0]}, in standard deviations"
            yield f"{told}: {', '.join(most)}."

    def _fate(self, way: Sequence[Station]) -> str:
        """Say in a word what became of a document."""
        path = _path_of(way, self.traces)
        if path.shown:
            return "shown"
        if path.unrecorded is not None:
            return f"unknown: {path.unrecorded.stage.name} is not recorded"
        if path.last is None:
            return "passed on by no stage"
        return f"lost after {path.last.stage.name}" if path.cut is None else f"cut by {path.cut.stage.name}"

    def _told(self, way: Sequence[Station]) -> str:
        """Say what became of a document."""
        path = _path_of(way, self.traces)
        last, cut = path.last, path.cut
        unknown = f"{path.unrecorded.stage.name} is not recorded" if path.unrecorded else ""
        if last is None or last.document is None:
            return f"no stage is known to have passed it on, and {unknown}" if unknown else "no stage passed it on"
        place, score = last.document.rank, last.document.score
        if path.shown:
            return f"in the final list, at rank {place} of {last.of}"
        if unknown:
            final = next(station for station in way if station.stage is self.traces.final)
            then = "whether it was shown" if final.state == "unrecorded" else "where it was lost"
            return f"last recorded at {last.stage.name}, at rank {place} of {last.of}; {unknown}, so {then} is unknown"
        if cut is None:
            return f"last passed on by {last.stage.name}, at rank {place} of {last.of}; no later stage was given it"
        short = f", where {cut.needed:g} was the lowest score" if cut.needed is not None else ""
        scored = f" with score {score:g}" if score is not None else ""
        best = min(path.had, key=lambda station: station.document.rank if station.document else 0)
        higher = best.document.rank if best.document else 0
        fell = f", and {best.stage.name} at rank {higher} of {best.of}" if higher < place else ""
        return f"cut by {cut.stage.name}{short}; {last.stage.name} had it at rank {place} of {last.of}{scored}{fell}"


class _Path(NamedTuple):
    """The stations of a document up to the list that people saw."""

    had: list[Station]  # where it was
    last: Station | None  # the last of them
    cut: Station | None  # the stage that was given it then, and did not pass it on
    unrecorded: Station | None  # a stage that hides what became of it
    shown: bool


def _path_of(way: Sequence[Station], traces: Traces) -> _Path:
    """Follow a document along the stages that lead to the final list, as the funnel does."""
    final = traces.final
    names = {stage.name for stage in stages_to(traces, final)}
    before = [station for station in way if station.stage.name in names]
    had = [station for station in before if station.document]
    shown = [station for station in had if station.stage is final]
    last = (shown or had or [None])[-1]
    if shown:
        return _Path(had, last, None, None, shown=True)
    behind = [station for station in before if last is None or station.stage.step > last.stage.step]
    unrecorded = next((station for station in behind if station.state == "unrecorded"), None)
    cut = next((station for station in behind if station.given), None)
    return _Path(had, last, cut, unrecorded, shown=False)


def _known(name: str, values: Sequence[Any], show: Show = ANY, title: str | None = None) -> Column:
    """Lay out a column that people see only if any of it is known."""
    return Column(name, values, show, title, only="" if any(value is not None for value in values) else "data")


def _graded(grade: float | None) -> str:
    return " (not judged)" if grade is None else f" (grade {grade:g})"


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
    >>> from judged.pipelines.traces import traces_of_runs
    >>> made = traces_of_runs({"bm25": {"q": {"x": 3.0, "a": 2.0, "b": 1.0}}, "rerank": {"q": {"a": 0.9, "x": 0.1}}})
    >>> why(made, "q", "b").sentences
    ('b (not judged): cut by rerank, where 0.1 was the lowest score; bm25 had it at rank 3 of 3 with score 1.',)
    """
    spans = traces.spans_of(query_id)
    if not spans:
        fix = f"use one of {first_few(traces.query_ids)}"
        raise InputError(f"no trace of topic {query_id!r}", fix=fix, path=traces.name)
    grades = _grades(qrels, query_id)
    if doc_id is None:
        asked = [one.doc_id for one in (traces.documents(query_id, traces.final.name) or ())[:_FIRST]]
        asked += [doc for doc, grade in sorted(grades.items(), key=lambda pair: -pair[1]) if grade > 0]
    else:
        asked = [doc_id] if isinstance(doc_id, str) else list(doc_id)
    ways = {doc: tuple(_way(traces, query_id, doc)) for doc in dict.fromkeys(asked)}
    return Why(traces, query_id, ways, grades, traces.notes)


def _grades(qrels: Any, query_id: str) -> dict[str, float]:
    if qrels is None:
        return {}
    table = Qrels.of(qrels).over([query_id]).table
    return dict(zip(table["doc_id"].to_pylist(), table["relevance"].to_pylist(), strict=True))


def _way(traces: Traces, query_id: str, doc_id: str) -> list[Station]:
    made: list[Station] = []
    passed: dict[str, bool | None] = {}
    for stage in traces.stages:
        documents = traces.documents(query_id, stage.name)
        found = next((one for one in documents or () if one.doc_id == doc_id), None)
        passed[stage.name] = None if documents is None else found is not None
        before = [passed[parent] for parent in stage.parents]
        given = True if any(before) else None if not before or None in before else False
        scores = [one.score for one in documents or () if one.score is not None]
        needed = min(scores) if scores and found is None and given is not False else None
        of, state = None if documents is None else len(documents), traces.state(query_id, stage.name)
        made.append(Station(stage, given, found, of, needed, state))
    return made
