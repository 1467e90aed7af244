"""Stages of parsed spans, and the documents that a pipeline holds and has lost after each step."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.records import records_of
from judged.data.run import Run
from judged.diagnosis.stages.trace import ORDER
from judged.errors import InputError
from judged.pipelines.traces.attributes import (
    answer_text,
    first_value,
    get_path,
    parent_id,
    parse_json,
    query_text,
    span_id,
    start_and_end,
    trace_id,
)
from judged.pipelines.traces.conventions import facts_of, parse_stage, span_kind
from judged.pipelines.traces.traces import Span
from judged.scoring.judging import judge
from judged.stats.inputs import spread
from judged.stats.interval import mean_intervals
from judged.stats.slice_differences import against_rest
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.data.qrels import Qrels
    from judged.pipelines.traces.conventions import Format, ParsedStage
    from judged.pipelines.traces.reading import Row
    from judged.pipelines.traces.traces import Stage, Traces
    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.stats.interval import IntervalMethod
    from judged.stats.slice_differences import AgainstRest


_INPUT = " input"  # suffix of the name of a stage's input


@dataclass(frozen=True, slots=True)
class ParsedSpan:
    """Fields of a span.

    Parameters
    ----------
    trace_id, span_id, parent_id
        Ids; empty if not recorded.
    kind
        Kind, for counting.
    start, end
        Times in seconds; None if not recorded.
    query
        Text that it received.
    query_id
        Topic, from the attribute that the caller selected.
    facts
        Session, user, and feedback of a span that is not a stage.
    stage
        Stage, if it is one.
    """

    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    start: float | None
    end: float | None
    query: str | None
    query_id: Any
    facts: Mapping[str, Any]
    stage: ParsedStage | None


def parse_span(
    row: Row, attributes: Row, counts: Counter[str], format: Format | None, topic_from: str | None, id_from: str | None
) -> ParsedSpan:
    """Parse the fields of a span that its trace needs; `counts` collects problems for notes."""
    stage = parse_stage(row, attributes, counts, format, id_from)
    start, end = start_and_end(row)
    return ParsedSpan(
        trace_id=trace_id(row) or span_id(row),
        span_id=span_id(row),
        parent_id=parent_id(row),
        kind=span_kind(row, attributes),
        start=start,
        end=end,
        query=None if stage else query_text(get_path(attributes, "input.value")),
        query_id=None if topic_from is None else _nested_attribute(attributes, topic_from),
        facts={} if stage else facts_of(attributes) | _answer(row, attributes),
        stage=stage,
    )


def _answer(row: Row, attributes: Row) -> dict[str, Any]:
    """Return the fact `answer` of a root span or of a model."""
    if parent_id(row) and span_kind(row, attributes).upper() != "LLM":
        return {}
    message = "llm.output_messages.0.message.content"
    paths = (message, "output.value") if parent_id(row) else ("output.value", message)
    text = answer_text(first_value(attributes, *paths))
    return {"answer": text} if text else {}


def _nested_attribute(attributes: Row, path: str) -> Any:
    """Return an attribute, which can be inside the JSON of another one, such as ``metadata``."""
    value = first_value(attributes, path)
    head, _, tail = path.partition(".")
    text = get_path(attributes, head) if value is None and tail else None
    return first_value(parse_json(text), tail) if isinstance(text, str) else value


def stages_of_trace(spans: Sequence[ParsedSpan], topic: str, ambiguous: Collection[str]) -> list[Span]:
    """Return the stages of one trace with their parents.

    `ambiguous` are names of stages of several kinds; the kind is appended to them.
    """
    parent_of = {span.span_id: span.parent_id for span in spans if span.span_id}
    stage_spans = [span for span in spans if span.stage is not None]
    if all(span.end is not None for span in stage_spans):
        stage_spans.sort(key=lambda span: span.end or 0)
    ancestors = {id(span): ancestors_of(span, parent_of) for span in stage_spans}
    names: dict[int, str] = {}
    counts: Counter[str] = Counter()
    followed: set[int] = set()
    stages: list[Span] = []
    for i, span in enumerate(stage_spans):
        stage = span.stage
        if stage is None:
            continue
        base = f"{stage.name} ({stage.kind})" if stage.name in ambiguous else stage.name
        counts[base] += 1
        names[id(span)] = name = base if counts[base] == 1 else f"{base} {counts[base]}"
        previous = _previous(span, stage_spans[:i], ancestors, followed)
        # If the input is recorded, parents are only the stages that returned one of its documents.
        inputs = {document.doc_id for document in stage.inputs or ()}
        overlapping = [
            earlier for earlier in previous
            if earlier.stage and any(document.doc_id in inputs for document in earlier.stage.documents or ())
        ]  # fmt: skip
        previous = overlapping or previous
        followed.update(map(id, previous))
        parents = tuple(names[id(earlier)] for earlier in previous)
        latency_ms = None if span.start is None or span.end is None else round(1000 * (span.end - span.start), 3)
        if stage.inputs is not None:
            stages.append(Span(span.trace_id, topic, name + _INPUT, "candidates", parents, stage.inputs))
            parents = (name + _INPUT,)
        details = (stage.query, latency_ms, stage.model, stage.facts)
        stages.append(Span(span.trace_id, topic, name, stage.kind, parents, stage.documents, *details))
    last = stages.pop()
    all_facts = [last.facts, *(span.facts for span in spans)]  # facts of the trace are stored in its last stage
    merged = {name: fact for facts in reversed(all_facts) for name, fact in facts.items()}
    answers = [span for span in spans if "answer" in span.facts]
    if answers:  # of the root span, or else of the model that ended last
        merged["answer"] = max(answers, key=lambda span: (not span.parent_id, span.end or 0)).facts["answer"]
    feedback = [annotation for facts in all_facts for annotation in facts.get("feedback", ())]
    return [*stages, replace(last, facts=merged | ({"feedback": feedback} if feedback else {}))]


def ancestors_of(span: ParsedSpan, parent_of: dict[str, str]) -> list[str]:
    """Return the ids of the ancestors of a span, the parent first."""
    ancestors: list[str] = []
    parent = span.parent_id
    while parent and parent not in ancestors:
        ancestors.append(parent)
        parent = parent_of.get(parent, "")
    return ancestors


def _previous(
    span: ParsedSpan, earlier: Sequence[ParsedSpan], ancestors: dict[int, list[str]], followed: set[int]
) -> list[ParsedSpan]:
    """Return the stages whose documents are the input of a stage, according to the tree of spans.

    They are its descendants. A stage without any that is not a retriever follows the stages that ended before it began,
    below its nearest ancestor with such stages. Stages that another stage already follows are excluded.
    """
    inside = [other for other in earlier if span.span_id and span.span_id in ancestors[id(other)]]
    if inside:
        return [other for other in inside if id(other) not in followed]
    if span.stage is None or span.stage.kind == "candidates":
        return []
    ended = [other for other in earlier if other.end is None or span.start is None or other.end <= span.start]
    unfollowed = [other for other in ended if id(other) not in followed]
    for ancestor in ancestors[id(span)]:
        if below := [other for other in unfollowed if ancestor in ancestors[id(other)]]:
            return below
    return unfollowed


def without_copied_inputs(spans: Iterable[Span]) -> list[Span]:
    """Remove inputs that in all traces have the same documents as their only parent."""
    all_spans = list(spans)
    ids_of = {(span.trace_id, span.stage): {document.doc_id for document in span.documents or ()} for span in all_spans}
    inputs = [span for span in all_spans if span.stage.endswith(_INPUT)]
    differs: defaultdict[str, bool] = defaultdict(bool)
    for span in inputs:
        is_single = len(span.parents) == 1
        ids = ids_of[span.trace_id, span.stage]
        differs[span.stage] |= not is_single or ids_of[span.trace_id, span.parents[0]] != ids
    parents_of = {(span.trace_id, span.stage): span.parents for span in inputs if not differs[span.stage]}
    return [
        replace(span, parents=parents_of.get((span.trace_id, span.parents[0]), span.parents)) if span.parents else span
        for span in all_spans
        if (span.trace_id, span.stage) not in parents_of
    ]


CORPUS = "corpus"
"""Part of the loss due to relevant documents that the corpus lacks."""
UNRECORDED = "unrecorded"
"""Step of documents that were lost at an unknown stage."""


def stages_to(traces: Traces, last: Stage) -> tuple[Stage, ...]:
    """Return a stage and its ancestors, in pipeline order."""
    names = {last.name}
    for stage in reversed(traces.stages):
        names |= set(stage.parents) if stage.name in names else set()
    return tuple(stage for stage in traces.stages if stage.name in names)


class StepSet(NamedTuple):
    """Documents that all branches of a pipeline hold after a step."""

    name: str
    documents: Judged  # recorded documents
    is_recorded: Bools  # (T,)


def sets_after_steps(
    traces: Traces, path: Sequence[Stage], judgments: Qrels, lists: Mapping[str, Judged], *, join: bool
) -> Iterator[StepSet]:
    """Yield the documents that all branches hold after each step; a step has the names of its stages.

    With `join`, a step without records for any topic is joined with the next one: their common loss is known.
    """
    topics = lists[path[-1].name].query_ids
    pending: list[str] = []
    for step in range(1, path[-1].step + 1):
        pending += [stage.name for stage in path if stage.step == step]
        passed = {stage.name for stage in path if stage.step <= step}
        later_parents = {parent for stage in path if stage.step > step for parent in stage.parents}
        branches = [stage.name for stage in path if stage.name in passed & (later_parents | {path[-1].name})]
        is_recorded = recorded(traces, branches, topics)
        if join and step < path[-1].step and not is_recorded.any():
            continue
        name, pending = " + ".join(pending), []
        documents = lists[branches[0]] if len(branches) == 1 else judge(judgments, traces.union(branches))
        yield StepSet(f"{name} (stage)" if name in (CORPUS, ORDER, UNRECORDED) else name, documents, is_recorded)


def recorded(traces: Traces, stages: Iterable[str], query_ids: Sequence[str]) -> Bools:
    """Return a mask (T,) of the queries for which the documents of all `stages` are recorded."""
    names = list(stages)
    return np.array([all(traces.documents(query, name) is not None for name in names) for query in query_ids], np.bool_)


def restrict_to_corpus(judgments: Qrels, corpus: Iterable[str]) -> Run:
    """Return the judged documents in the corpus as a run."""
    corpus_ids = set(corpus)
    pairs = zip(*(judgments.table[name].to_pylist() for name in ("query_id", "doc_id")), strict=True)
    in_corpus = list(dict.fromkeys(pair for pair in pairs if pair[1] in corpus_ids))
    columns = {"query_id": [query for query, _ in in_corpus], "doc_id": [doc for _, doc in in_corpus]}
    return Run.of(pa.table({**columns, "score": [-float(i) for i in range(len(in_corpus))]}), name=CORPUS)


def relevant_in(ranked: Judged, rel: float) -> Iterator[tuple[str, str, int, float]]:
    """Yield topic, document, rank, and grade of the relevant documents of a list."""
    names = ranked.qrels.index.row_names
    for hit in np.flatnonzero(ranked.relevant(rel)).tolist():
        topic, doc = ranked.query_ids[ranked.topic[hit]], names[ranked.row[hit]]
        yield topic, doc, int(ranked.rank[hit]), float(ranked.grade[hit])


def lost_documents(ranked: Judged, sets: Sequence[StepSet], rel: float) -> Iterator[tuple[str, str, str, float]]:
    """Yield the relevant documents that the last set lacks, with the step that lost each.

    That is the step after the last set with the document. It is `UNRECORDED` if a later set is not recorded, because
    the document could have been lost there.
    """
    labels = np.flatnonzero(ranked.relevant_labels(rel))
    rows, topics = ranked.label_row[labels], ranked.label_topic[labels]
    holds = np.stack([np.isin(rows, step_set.documents.row) for step_set in sets])
    lacks = ~holds & np.stack([step_set.is_recorded[topics] for step_set in sets])
    names = ranked.qrels.index.row_names
    for i in np.flatnonzero(~holds[-1]).tolist():
        holding = np.flatnonzero(holds[:, i])
        after = int(holding[-1]) + 1 if len(holding) else 0
        # Documents that the corpus lacks cannot appear later.
        is_certain = lacks[after:, i].all() or sets[after].name == CORPUS
        step = sets[after].name if is_certain else UNRECORDED
        yield ranked.query_ids[topics[i]], names[rows[i]], step, float(ranked.label_grade[labels[i]])


def sufficient_intervals(values: Floats, method: IntervalMethod, bounds: ArrayLike = (np.nan, np.nan)) -> Floats:
    """Return an interval for the mean of each row, (S, T) to (S, 2); NaN if a row has too little data."""
    limits = mean_intervals(values, method, bounds)
    for row, valid in enumerate([row[~np.isnan(row)] for row in values]):
        if insufficiency(len(valid), variance=spread(valid)):
            limits[row] = np.nan
    return limits


def compare_with_rest(
    values: Floats, members: Bools | Sequence[Bools], *, level: float, seed: int = 0, min_units: int = 0
) -> list[AgainstRest | None]:
    """Test the mean of each group of topics against that of all others; None if there is too little data.

    Both sides need enough topics for a verdict, at least `min_units`. One side can be constant.
    """
    is_valid = ~np.isnan(values)
    masks = np.asarray(members, dtype=np.bool_).reshape(-1, len(values)) & is_valid
    sizes = masks.sum(axis=1)
    variance = spread(values[is_valid])
    is_sufficient = [
        insufficiency(min(size, int(is_valid.sum()) - size), "verdict", variance=variance, min_units=min_units) is None
        for size in sizes.tolist()
    ]
    tests = iter(against_rest(values, masks[is_sufficient], level=level, seed=seed) if any(is_sufficient) else ())
    return [next(tests) if sufficient else None for sufficient in is_sufficient]


def clicks_of(traces: Traces, stage: str) -> dict[str, dict[str, float]]:
    """Return the clicks recorded in the fact ``clicks`` of the list that users saw."""
    clicks: dict[str, dict[str, float]] = {}
    for span in traces.spans:
        recorded_clicks = span.facts.get("clicks") if span.stage == stage else None
        if isinstance(recorded_clicks, Mapping):
            clicks[span.query_id] = {str(doc): float(count) for doc, count in recorded_clicks.items()}
        elif isinstance(recorded_clicks, (list, tuple)):
            clicks[span.query_id] = dict(Counter(map(str, recorded_clicks)))
    return clicks


def read_clicks(clicks: Any) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Read clicks: rows with ``query_id``, ``doc_id``, and optionally ``clicks``; no document means no click.

    The second result has the expected clicks by rank, as counted by `judged.online.clicks.coec`, from a column
    ``expected``; documents without any were not shown.

    Raises
    ------
    InputError
        If the rows are invalid.

    >>> read_clicks([{"query_id": "q", "doc_id": "a", "clicks": 2}, {"query_id": "abandoned", "doc_id": None}])
    ({'q': {'a': 2.0}, 'abandoned': {}}, {})
    """
    where = str(clicks) if isinstance(clicks, (str, Path)) else "<clicks>"
    fix = "use the columns query_id, doc_id, and clicks"
    clicks_of: dict[str, dict[str, float]] = {}
    expected: dict[str, dict[str, float]] = {}
    for line, row in records_of(clicks, where, "clicks", fix):
        query, doc, value = row.get("query_id", row.get("query")), row.get("doc_id"), row.get("clicks", 1)
        try:
            count, expected_count = float(1 if value is None else value), float(row.get("expected") or 0)
        except (TypeError, ValueError, OverflowError):
            count = expected_count = math.nan
        if query is None or "doc_id" not in row or not (0 <= count < math.inf and 0 <= expected_count < math.inf):
            problem = "a row must have `query_id` and `doc_id`; `clicks` and `expected` must be 0 or more"
            raise InputError(problem, fix=fix, path=where, line=line)
        query_clicks = clicks_of.setdefault(str(query), {})
        if doc is not None and doc != "":
            query_clicks[str(doc)] = query_clicks.get(str(doc), 0.0) + count
            if expected_count:
                query_expected = expected.setdefault(str(query), {})
                query_expected[str(doc)] = query_expected.get(str(doc), 0.0) + expected_count
    return clicks_of, expected
