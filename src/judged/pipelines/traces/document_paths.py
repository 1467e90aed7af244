"""Paths of documents through the stages of a trace: ranks, scores, features, and the stage that removed them."""

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
from judged.results import ANY, COUNT, TEXT, Answer, Column, Headline, Sentences, Show, Table, counted, number
from judged.results.blocks import first_few
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Document, Stage, StageState, Traces
    from judged.results import Block, Status
    from judged.results.blocks import Note

_TOP = 10  # documents of a topic that are followed by default
_MAX_DETAILED = 2  # documents for which all stages and features are shown
_MAX_FEATURES = 3  # in a sentence
_USER_FACTS = ("clicks", "feedback")
_FEEDBACK_FIELDS = ("score", "label", "explanation", "annotator_kind")


@dataclass(frozen=True)
class StageVisit:
    """Document at one stage.

    Parameters
    ----------
    stage
        The stage.
    is_input
        Whether the document was in the input of the stage; None if unknown, or if the input is the query.
    document
        Document in the output of the stage; None if it is not there, or if that is unknown.
    total
        Number of documents in the output; None if not recorded.
    lowest_score
        Lowest recorded score in the output, if the stage removed the document.
    state
        Whether the output is recorded.
    """

    stage: Stage
    is_input: bool | None
    document: Document | None
    total: int | None
    lowest_score: float | None = None
    state: StageState = "documents"


@dataclass(frozen=True, eq=False, repr=False)
class DocumentPaths(Answer):
    """Paths of documents through the stages of one trace.

    Parameters
    ----------
    traces
        The traces.
    query_id
        Topic.
    paths
        Visits of all stages, by document.
    grades
        Grades of all judged documents of the topic.
    notes
        Records that could not be read.
    """

    kind: ClassVar[str] = "document-paths"

    traces: Traces
    query_id: str
    paths: Mapping[str, tuple[StageVisit, ...]]
    grades: Mapping[str, float]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Name of the traces, and topic."""
        return f"{self.traces.name}: topic {self.query_id}"

    @property
    def relevant(self) -> tuple[str, ...]:
        """Relevant documents among those whose path is known."""
        return tuple(doc for doc in self.paths if (self.grades.get(doc) or 0) > 0)

    @property
    def headline(self) -> Headline:
        """Number of relevant documents that users saw, or the outcome of one or two documents."""
        ends = {doc: _path_outcome(path, self.traces) for doc, path in self.paths.items()}
        if len(self.paths) <= _MAX_DETAILED:
            sentence = "; ".join(
                f"{doc}{_format_grade(self.grades.get(doc))}: {self.outcomes[doc]}" for doc in self.paths
            )
            is_known = all(end.is_shown or end.unrecorded is None for end in ends.values())
            words = " · ".join(dict.fromkeys(self.outcomes.values())) or "no documents"
            return Headline("info" if is_known and ends else "unknown", words, f"{sentence}." if sentence else "")
        if not self.relevant:
            return Headline("unknown", "no judgments", "No document of this topic is judged relevant.")
        shown = sum(ends[doc].is_shown for doc in self.relevant)
        unknown = sum(ends[doc].unrecorded is not None for doc in self.relevant)
        lost = Counter(self.outcomes[doc] for doc in self.relevant if not ends[doc].is_shown).most_common(2)
        others = ", ".join(f"{count} {outcome}" for outcome, count in lost)
        sentence = f"Relevant documents that users did not see: {others}." if lost else "All of them are shown."
        word = f"{len(self.relevant) - shown} not shown" if lost else "all shown"
        status: Status = "unknown" if unknown else "info"
        label = f"of {counted(len(self.relevant), 'relevant document')} shown"
        return Headline(status, "partly not recorded" if unknown else word, sentence, label, shown, COUNT)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The outcome of each document, or counts of outcomes; and the features that differ most between two."""
        if len(self.paths) <= _MAX_DETAILED:
            grades = {doc: _format_grade(self.grades.get(doc)) for doc in self.paths}
            descriptions = (
                f"Document {doc}{grades[doc]}: {self._describe_path(path)}." for doc, path in self.paths.items()
            )
            return (*descriptions, *self._feature_gaps())
        counts = Counter(self.outcomes[doc] for doc in self.relevant)
        descriptions = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        return (f"{counted(len(self.relevant), 'relevant document')}: {descriptions}.",) if self.relevant else ()

    def facts(self) -> Mapping[str, Any]:
        """Return the topic, and the outcome of each document."""
        return {"traces": self.traces.name, "query_id": self.query_id, "outcomes": self.outcomes}

    @cached_property
    def outcomes(self) -> dict[str, str]:
        """Outcome of each document, in a few words."""
        return {doc: self._outcome(path) for doc, path in self.paths.items()}

    def blocks(self) -> tuple[Block, ...]:
        """Return the outcomes, the visits, features, actions of users, and the stages back to the query."""
        sentences = [Sentences(self.sentences)] if self.sentences else []
        actions = [Sentences(self.user_actions, "user_actions", "User actions")] if self.user_actions else []
        ranks = [self._rank_table()] if len(self.paths) > _MAX_DETAILED else []
        features = [self._feature_table()] if len(self.paths) <= _MAX_DETAILED and self._feature_gap_rows else []
        return (*sentences, *ranks, self._visit_table(), *features, *actions, self._stage_table())

    @property
    def user_actions(self) -> tuple[str, ...]:
        """Clicks and feedback of users, if they are recorded."""
        spans = self.traces.spans_of(self.query_id).values()
        clicks = clicks_of(self.traces, self.traces.final.name).get(self.query_id)
        clicked = ", ".join(f"{doc} ({times:g})" for doc, times in (clicks or {}).items() if times)
        texts = [] if clicks is None else [f"Clicks: {clicked or 'none'}."]
        for span in spans:
            for feedback in cast("Sequence[Mapping[str, Any]]", span.facts.get("feedback") or ()):
                values = [str(feedback[key]) for key in _FEEDBACK_FIELDS if feedback.get(key) is not None]
                texts.append(f"Feedback on {span.stage}: {feedback.get('name')}: {', '.join(values)}.")
        return tuple(texts)

    def _visit_table(self) -> Table:
        rows = [(doc, visit) for doc, path in self.paths.items() for visit in path]
        documents = [visit.document for _, visit in rows]
        totals = [f"of {visit.total}" if visit.total and visit.document else "" for _, visit in rows]
        states = [visit.state for _, visit in rows]
        sources = [(document.source or None) if document else None for document in documents]
        features = [dict(document.features) or None if document else None for document in documents]
        return Table(
            "visits",
            (
                Column("doc_id", [doc for doc, _ in rows], TEXT, "document"),
                Column("stage", [visit.stage.name for _, visit in rows], TEXT),
                Column("kind", [visit.stage.kind for _, visit in rows], TEXT, only="data"),
                Column("grade", [self.grades.get(doc) for doc, _ in rows], number(0), only="data"),
                Column("is_input", [visit.is_input for _, visit in rows], ANY, "in input"),
                Column("state", states, TEXT, only="" if "unrecorded" in states else "data"),
                Column("rank", [document.rank if document else None for document in documents], COUNT, details=totals),
                Column("score", [document.score if document else None for document in documents], number()),
                Column("lowest_score", [visit.lowest_score for _, visit in rows], number(), "lowest score"),
                _optional_column("source", sources, TEXT),
                Column("features", features, only="json"),
            ),
            "Path through the stages",
            labels=2,
            note="lowest score: the lowest score in the output of a stage that removed the document",
            only="" if len(self.paths) <= _MAX_DETAILED else "data",
        )

    def _stage_table(self) -> Table:
        # From the list that users saw back to the query.
        spans = list(self.traces.spans_of(self.query_id).values())[::-1]
        outputs = [span.documents for span in spans]
        rankings = [None if output is None else [document.doc_id for document in output] for output in outputs]
        counts = [None if ids is None else len(ids) for ids in rankings]
        is_unrecorded = [span.documents is None and span.kind != "rewrite" for span in spans]
        relevant = [None if ids is None else sum((self.grades.get(doc) or 0) > 0 for doc in ids) for ids in rankings]
        queries = [span.query for span in spans]
        earlier = [*queries[1:], None]
        new_queries = [query if query != previous else None for query, previous in zip(queries, earlier, strict=True)]
        facts = [{name: fact for name, fact in span.facts.items() if name not in _USER_FACTS} for span in spans]
        fact_texts = ["; ".join(f"{name}: {fact}" for name, fact in span_facts.items()) or None for span_facts in facts]
        return Table(
            "stages",
            (
                Column("stage", [span.stage for span in spans], TEXT),
                Column("kind", [span.kind for span in spans], TEXT),
                Column("parents", [", ".join(span.parents) for span in spans], TEXT, "input from"),
                Column(
                    "documents", counts, COUNT, mark=["not recorded" if unknown else "" for unknown in is_unrecorded]
                ),
                Column("relevant", relevant, COUNT, only="" if self.grades else "data"),
                _optional_column("latency_ms", [span.latency_ms for span in spans], number(1), "ms"),
                _optional_column("model", [span.model for span in spans], TEXT),
                _optional_column("facts", fact_texts, TEXT),
                Column("query", queries, only="data"),
                Column("new_query", new_queries, TEXT, "query", only="people", below=True),
            ),
            "Stages, from the final list back to the query",
        )

    def _rank_table(self) -> Table:
        documents = [[visit.document for visit in visits] for visits in zip(*self.paths.values(), strict=True)]
        ranks = [
            Column(f"stage{i}", [document.rank if document else None for document in documents[i]], COUNT, stage.name)
            for i, stage in enumerate(self.traces.stages)
        ]
        doc_ids = Column("doc_id", list(self.paths), TEXT, "document")
        grades = Column("grade", [self.grades.get(doc) for doc in self.paths], number(0))
        outcomes = Column("outcome", list(self.outcomes.values()), TEXT)
        note = (
            "rank of each document in the list of each stage; the top documents of the list that users saw come"
            " first, then all other relevant documents"
        )
        return Table("ranks", (doc_ids, grades, *ranks, outcomes), "Documents", note=note, only="people")

    @cached_property
    def _feature_gap_rows(self) -> tuple[tuple[str, str, list[Any], float], ...]:
        """Stage, feature, values of one or two documents, and their gap in standard deviations.

        The last stages come first, and within a stage the largest gaps.
        """
        rows: list[tuple[str, str, list[Any], float]] = []
        for visits in zip(*(path[::-1] for path in self.paths.values()), strict=True):
            stage = visits[0].stage.name
            features = [visit.document.features for visit in visits if visit.document]
            if len(features) < len(self.paths):
                continue
            shared = [name for name in features[0] if all(name in document_features for document_features in features)]
            values_of = {name: [document_features[name] for document_features in features] for name in shared}
            gaps = [(stage, name, values, self._gap(stage, name, values)) for name, values in values_of.items()]
            rows += sorted(gaps, key=lambda row: -abs(np.nan_to_num(row[3])))
        return tuple(rows)

    def _gap(self, stage: str, name: str, values: Sequence[Any]) -> float:
        """Return the difference in standard deviations over the documents of the stage; NaN if unknown."""
        documents = self.traces.spans_of(self.query_id)[stage].documents or ()
        all_values = [document.features.get(name) for document in documents]
        spread = pstdev([value for value in all_values if isinstance(value, (int, float))] or [0.0])
        is_numeric = len(values) == 2 and all(isinstance(value, (int, float)) for value in values)
        return (values[0] - values[1]) / spread if is_numeric and spread else math.nan

    def _feature_table(self) -> Table:
        rows, is_pair = self._feature_gap_rows, len(self.paths) == 2
        columns = [
            Column("stage", [stage for stage, *_ in rows], TEXT),
            Column("feature", [name for _, name, *_ in rows], TEXT),
            *(
                Column(key, [values[i] for _, _, values, _ in rows], ANY, doc)
                for i, (key, doc) in enumerate(zip(("first", "second"), self.paths, strict=False))
            ),
            Column("gap", [gap for *_, gap in rows], number(2, "+"), "difference", only="" if is_pair else "data"),
        ]
        note = (
            "difference: first value minus second value, divided by the standard deviation of the feature over all"
            " documents that the stage returned"
        )
        return Table("features", tuple(columns), "Features", labels=2, note=note if is_pair else "")

    def _feature_gaps(self) -> Iterator[str]:
        """Yield a sentence with the features that differ most at the last stage that recorded them."""
        rows = [(stage, f"{name} ({gap:+.2f})") for stage, name, _, gap in self._feature_gap_rows if gap]
        largest = [text for stage, text in rows if stage == rows[0][0]][:_MAX_FEATURES]
        if largest and len(self.paths) == 2:
            first, second = self.paths
            text = f"Largest feature differences between {first} and {second} at {rows[0][0]}, in standard deviations"
            yield f"{text}: {', '.join(largest)}."

    def _outcome(self, path: Sequence[StageVisit]) -> str:
        outcome = _path_outcome(path, self.traces)
        if outcome.is_shown:
            return "shown"
        if outcome.unrecorded is not None:
            return f"unknown: {outcome.unrecorded.stage.name} is not recorded"
        if outcome.last is None:
            return "returned by no stage"
        return (
            f"lost after {outcome.last.stage.name}" if outcome.cut is None else f"removed by {outcome.cut.stage.name}"
        )

    def _describe_path(self, path: Sequence[StageVisit]) -> str:
        outcome = _path_outcome(path, self.traces)
        last, cut = outcome.last, outcome.cut
        gap = f"stage {outcome.unrecorded.stage.name} is not recorded" if outcome.unrecorded else ""
        if last is None or last.document is None:
            return f"no recorded stage returned the document, and {gap}" if gap else "no stage returned the document"
        rank, score = last.document.rank, last.document.score
        position = f"at rank {rank} of {last.total}"
        if outcome.is_shown:
            return f"in the final list {position}"
        if gap:
            final = next(visit for visit in path if visit.stage is self.traces.final)
            question = (
                "whether users saw the document" if final.state == "unrecorded" else "where the document was lost"
            )
            return f"last recorded in stage {last.stage.name} {position}; {gap}, so it is unknown {question}"
        if cut is None:
            last_text = f"last returned by stage {last.stage.name} {position}"
            return f"{last_text}; the document was not in the input of a later stage"
        threshold = f", whose lowest score was {cut.lowest_score:g}" if cut.lowest_score is not None else ""
        score_text = f" with score {score:g}" if score is not None else ""
        best = min(outcome.visits, key=lambda visit: visit.document.rank if visit.document else 0)
        best_rank = best.document.rank if best.document else 0
        best_text = (
            f", and stage {best.stage.name} returned the document at rank {best_rank} of {best.total}"
            if best_rank < rank
            else ""
        )
        return (
            f"removed by stage {cut.stage.name}{threshold}; stage {last.stage.name} returned the document"
            f" {position}{score_text}{best_text}"
        )


class _PathOutcome(NamedTuple):
    """Outcome of a document on the path to the list that users saw."""

    visits: list[StageVisit]  # stages that returned it
    last: StageVisit | None  # last of these
    cut: StageVisit | None  # later stage that had it in its input and did not return it
    unrecorded: StageVisit | None  # later stage without a record
    is_shown: bool


def _path_outcome(path: Sequence[StageVisit], traces: Traces) -> _PathOutcome:
    # Only the ancestors of the final stage count, as in the funnel.
    final = traces.final
    names = {stage.name for stage in stages_to(traces, final)}
    on_path = [visit for visit in path if visit.stage.name in names]
    visits = [visit for visit in on_path if visit.document]
    final_visits = [visit for visit in visits if visit.stage is final]
    last = (final_visits or visits or [None])[-1]
    if final_visits:
        return _PathOutcome(visits, last, None, None, is_shown=True)
    later = [visit for visit in on_path if last is None or visit.stage.step > last.stage.step]
    unrecorded = next((visit for visit in later if visit.state == "unrecorded"), None)
    cut = next((visit for visit in later if visit.is_input), None)
    return _PathOutcome(visits, last, cut, unrecorded, is_shown=False)


def _optional_column(name: str, values: Sequence[Any], show: Show = ANY, title: str | None = None) -> Column:
    return Column(name, values, show, title, only="" if any(value is not None for value in values) else "data")


def _format_grade(grade: float | None) -> str:
    return " (not judged)" if grade is None else f" (grade {grade:g})"


def explain_document(
    traces: Traces, query_id: str, doc_id: str | Sequence[str] | None = None, *, qrels: Any = None
) -> DocumentPaths:
    """Follow documents through the stages of one trace.

    Parameters
    ----------
    traces
        The traces.
    query_id
        Topic.
    doc_id
        A document, or two whose features are compared. Default: the top ten of the list that users saw, and with
        `qrels` the relevant documents.
    qrels
        Judgments for the grades of the documents.

    Raises
    ------
    InputError
        If the topic has no trace.

    Examples
    --------
    >>> from judged.pipelines.traces import traces_of_runs
    >>> traces = traces_of_runs({"bm25": {"q": {"x": 3.0, "a": 2.0, "b": 1.0}}, "rerank": {"q": {"a": 0.9, "x": 0.1}}})
    >>> print(*explain_document(traces, "q", "b").sentences)  # doctest: +NORMALIZE_WHITESPACE
    Document b (not judged): removed by stage rerank, whose lowest score was 0.1; stage bm25 returned
    the document at rank 3 of 3 with score 1.
    """
    if not traces.spans_of(query_id):
        fix = f"use one of {first_few(traces.query_ids)}"
        raise InputError(f"no trace of topic {query_id!r}", fix=fix, path=traces.name)
    grades = _grades(qrels, query_id)
    if doc_id is None:
        doc_ids = [document.doc_id for document in (traces.documents(query_id, traces.final.name) or ())[:_TOP]]
        doc_ids += [doc for doc, grade in sorted(grades.items(), key=lambda pair: -pair[1]) if grade > 0]
    else:
        doc_ids = [doc_id] if isinstance(doc_id, str) else list(doc_id)
    paths = {doc: tuple(_visits(traces, query_id, doc)) for doc in dict.fromkeys(doc_ids)}
    return DocumentPaths(traces, query_id, paths, grades, traces.notes)


def _grades(qrels: Any, query_id: str) -> dict[str, float]:
    if qrels is None:
        return {}
    table = Qrels.of(qrels).over([query_id]).table
    return dict(zip(table["doc_id"].to_pylist(), table["relevance"].to_pylist(), strict=True))


def _visits(traces: Traces, query_id: str, doc_id: str) -> list[StageVisit]:
    visits: list[StageVisit] = []
    is_returned: dict[str, bool | None] = {}
    for stage in traces.stages:
        documents = traces.documents(query_id, stage.name)
        document = next((document for document in documents or () if document.doc_id == doc_id), None)
        is_returned[stage.name] = None if documents is None else document is not None
        parents_returned = [is_returned[parent] for parent in stage.parents]
        is_unknown = not parents_returned or None in parents_returned
        is_input = True if any(parents_returned) else None if is_unknown else False
        scores = [document.score for document in documents or () if document.score is not None]
        lowest_score = min(scores) if scores and document is None and is_input is not False else None
        total, state = None if documents is None else len(documents), traces.state(query_id, stage.name)
        visits.append(StageVisit(stage, is_input, document, total, lowest_score, state))
    return visits
