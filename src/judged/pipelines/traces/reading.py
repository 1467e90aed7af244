"""Reader of traces in files; the format is detected by the fields of each record."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast, get_args

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import parquet_batches
from judged.data.query_text import normalize_query
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.traces.attributes import attributes_of, first_value, is_encodable, parse_json
from judged.pipelines.traces.conventions import Format, documents_of, parse_own_span
from judged.pipelines.traces.recorder import span_of
from judged.pipelines.traces.steps import ParsedSpan, parse_span, stages_of_trace, without_copied_inputs
from judged.pipelines.traces.traces import Span, Traces, last_trace_per_query
from judged.results import COUNT, TEXT, Answer, Column, Table, counted, number
from judged.results.blocks import Note
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.types import Batch


Row: TypeAlias = Mapping[str, Any]

_ROWS_PER_SLICE = 256  # rows of Parquet that are converted to objects at a time
_MAX_LINE = 1 << 28  # bytes of a line: an export can be a single object


def records(path: Path) -> Iterator[tuple[str, Row | None]]:
    """Yield each record with its place (file:line, or file and number); None if it is not a JSON object."""
    for place, row in json_values(files.local(path), str(path)):
        if not isinstance(row, Mapping):
            yield place, None
        else:
            for inner in unpacked(cast("Row", row)):
                yield place, inner if isinstance(inner, Mapping) else None


def json_values(path: Path, where: str) -> Iterator[tuple[str, Any]]:
    """Yield each line, element of a list, or row of a file with its place; None if it is not valid JSON."""
    head = files.head(path, 64).lstrip()
    if head.startswith(b"PAR1"):
        rows = (row for batch in parquet_batches(path, where, list) for row in _rows(batch))
        yield from ((f"{where}, row {number}", row) for number, row in enumerate(rows, 1))
    elif head.startswith(b"[") or (head.startswith(b"{") and _is_multiline(path)):
        yield from ((f"{where}, record {number}", row) for number, row in enumerate(_elements(path, where), 1))
    else:
        yield from ((f"{where}:{number}", parse_json(line)) for number, line in _lines(path))


def _is_multiline(path: Path) -> bool:
    """Check if objects are written over several lines, as by consoles: then the first line is a brace."""
    _, line = next(_lines(path))
    return line.strip() == b"{"


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    for block in files.blocks(path, longest=_MAX_LINE):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            if line.strip():
                yield number, line


def _elements(path: Path, where: str) -> Iterator[Any]:
    """Yield the elements of a JSON list, or concatenated objects, one at a time to save memory."""
    text, decoder = files.text(path, where, longest=_MAX_LINE), json.JSONDecoder()
    start = text.index("[") + 1 if text.lstrip().startswith("[") else 0
    while True:
        while start < len(text) and text[start] in " \t\r\n,":
            start += 1
        if start >= len(text) or text[start] == "]":
            return
        try:
            element, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            yield None
            return
        yield element if is_encodable(element, text) else None


def _rows(batch: Batch) -> Iterator[Row]:
    columns = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch.columns]
    table = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    for start in range(0, table.num_rows, _ROWS_PER_SLICE):
        for row in table.slice(start, _ROWS_PER_SLICE).to_pylist():
            yield {name: value for name, value in row.items() if value is not None}


def unpacked(row: Row) -> Iterator[Any]:
    """Yield the records in a batch of OTLP, an export of Phoenix, or a bulk request or dump of OpenSearch."""
    if "resourceSpans" in row:
        for batch in _list(row, "resourceSpans"):
            for scope in _list(batch, "scopeSpans"):
                yield from _list(scope, "spans")
    elif isinstance(row.get("data"), list):
        yield from _list(row, "data")
    elif not (len(row) == 1 and isinstance(row.get("index", row.get("create")), Mapping)):  # a line of a bulk request
        yield row["_source"] if "_index" in row and "_source" in row else row


def _list(row: Any, name: str) -> list[Any]:
    """Return a list of an object; without one, a list with an unreadable element, so that it is counted."""
    value = cast("Row", row).get(name) if isinstance(row, Mapping) else None
    return cast("list[Any]", value) if isinstance(value, list) else [None]


_UBI = ("query_response_hit_ids", "user_query")


def read_traces(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    format: Format | None = None,
    topic_from: str | None = None,
    topics: Any = None,
    id_from: str | None = None,
    name: str | None = None,
) -> Traces:
    """Read traces: our own JSON Lines, spans of OpenInference or OpenTelemetry for GenAI, or queries of UBI.

    Clicks in events of UBI are added to the list of their query, as the fact ``clicks``.

    Files are JSON Lines, JSON, OTLP, or Parquet, compressed or not. The format of each record is detected; unreadable
    records are counted in `Traces.notes`.

    Parameters
    ----------
    paths
        One or several files.
    format
        Only format to read. Default: all.
    topic_from
        Attribute of spans, or field of UBI queries, with the topic, such as ``metadata.topic``. Default: the topic is
        the text of the query, in lower case and with single spaces.
    topics
        Texts of topics, as for `judged.data.Topics`: queries with such a text get the id of the topic.
    id_from
        Key of a document, or of its metadata, with its id. Default: ``id`` or other usual names.
    name
        Name of the traces. Default: name of the first file.

    Raises
    ------
    InputError
        If a file is invalid, or has no stages.
    """
    if format is not None and format not in get_args(Format):
        raise InputError(f"unknown format {format!r}", fix=use_one_of(get_args(Format)))
    files = [Path(cast("str", path)) for path in ([paths] if isinstance(paths, (str, PathLike)) else paths)]
    reader = _TraceReader(format, topic_from, topics, id_from)
    for file in files:
        for place, row in records(file):
            reader.add(place, row)
    traces = reader.traces(name or files[0].name.split(".")[0])
    if not traces.spans:
        reason = "; ".join(note.text for note in traces.notes) or "the file is empty"
        raise InputError(
            f"no stage of a trace could be read: {reason}",
            fix="use a format that docs/traces.md describes",
            path=str(files[0]),
        )
    return traces


class _TraceReader:
    """Records that were read so far, and counts for notes."""

    def __init__(self, format: Format | None, topic_from: str | None, topics: Any, id_from: str | None) -> None:
        self.format: Format | None = format
        self.topic_from, self.id_from = topic_from, id_from
        self.ids = None if topics is None else ids_by_text(Topics.of(topics))
        self.spans: list[Span] = []  # in our own format
        self.parsed_spans: defaultdict[str, list[ParsedSpan]] = defaultdict(list)
        self.note_counts: Counter[str] = Counter()  # of documents and queries
        self.unread_counts: Counter[str] = Counter()  # of records, by reason
        self.other_kinds: Counter[str] = Counter()  # of spans that are not stages
        self.first_places: dict[str, str] = {}  # of unread records, by reason
        self.pages: list[Span] = []  # of UBI
        self.clicks: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by query of UBI

    def add(self, place: str, row: Row | None) -> None:
        try:
            self._add(place, row)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            self._skip(str(error.args[0]) if error.args else type(error).__name__, place)

    def _add(self, place: str, row: Row | None) -> None:
        if row is None:
            self._skip("not a JSON object", place)
        elif "stage" in row and self.format in (None, "judged"):
            self.spans.append(span_of(row))
        elif any(name in row for name in _UBI) and self.format in (None, "ubi"):
            self._add_page(row, place)
        elif "action_name" in row and self.format in (None, "ubi"):
            self._add_event(row)
        elif self.format not in ("judged", "ubi") and (attributes := attributes_of(row)) is not None:
            if (own_span := parse_own_span(attributes)) is not None:
                self.spans.append(own_span)
                return
            span = parse_span(row, attributes, self.note_counts, self.format, self.topic_from, self.id_from)
            self.parsed_spans[span.trace_id].append(span)
            if span.stage is None:
                self.other_kinds[span.kind] += 1
            if row.get("droppedAttributesCount"):
                self.note_counts["spans with attributes that the exporter dropped"] += 1
        else:
            reason = "the record is not a stage, a span, or a query with its hits"
            self._skip(reason if self.format is None else f"not in the format {self.format}", place)

    def _add_page(self, row: Row, place: str) -> None:
        """Add a query of UBI with its displayed hits."""
        hits, text = row.get("query_response_hit_ids"), row.get("user_query")
        hits = parse_json(hits) if isinstance(hits, str) else hits
        topic = self._topic(None if self.topic_from is None else first_value(row, self.topic_from), [text])
        if topic is None:
            self._skip("a query without text", place)
            return
        ids = {"session_id": row.get("session_id"), "user_id": row.get("client_id", row.get("user_id"))}
        facts = {name: value for name, value in ids.items() if value}
        rows = list(enumerate(cast("list[Any]", hits), 1)) if isinstance(hits, list) else None
        documents = None if rows is None else documents_of(rows, self.note_counts)
        query = text if isinstance(text, str) else None
        trace_id = str(row.get("query_id", topic))
        self.pages.append(Span(trace_id, topic, "shown", "shown", (), documents, query, facts=facts))

    def _add_event(self, row: Row) -> None:
        """Add a click of UBI on a hit."""
        doc_id = first_value(row, "event_attributes.object.object_id")
        if row["action_name"] != "click":
            self.note_counts["ignored events that are not clicks"] += 1
        elif doc_id is None or row.get("query_id") is None:
            self.note_counts["clicks without a query id or a document id"] += 1
        else:
            self.clicks[str(row["query_id"])][str(doc_id)] += 1

    def _skip(self, reason: str, place: str) -> None:
        self.unread_counts[reason] += 1
        self.first_places.setdefault(reason, place)

    def _topic(self, value: Any, texts: Iterable[Any]) -> str | None:
        """Return the topic of a query from its attribute, or from the first of its texts that belongs to a topic."""
        if value is not None and not isinstance(value, (Mapping, list)):
            return str(value)
        normalized = [normalize_query(text) for text in texts if isinstance(text, str) and text.strip()]
        if self.topic_from is not None and normalized:
            self.note_counts[f"queries without {self.topic_from}, identified by their text"] += 1
        if self.ids is not None and normalized:
            topic = next((self.ids[text] for text in normalized if text in self.ids), None)
            if topic is not None:
                return topic
            self.note_counts["queries whose text matches no topic, or several topics"] += 1
        return normalized[0] if normalized else None

    def traces(self, name: str) -> Traces:
        kinds_of: defaultdict[str, set[str]] = defaultdict(set)
        for spans in self.parsed_spans.values():
            for span in spans:
                if span.stage is not None:
                    kinds_of[span.stage.name].add(span.stage.kind)
        ambiguous = {name for name, kinds in kinds_of.items() if len(kinds) > 1}
        stages: list[Span] = []
        for spans in self.parsed_spans.values():
            stage_spans = [span for span in spans if span.stage is not None]
            if not stage_spans:
                continue
            roots = [span.query for span in spans if span.stage is None and not span.parent_id]
            topic = self._topic(
                next((span.query_id for span in (*stage_spans, *spans) if span.query_id is not None), None),
                [*roots, *(span.stage.query for span in stage_spans if span.stage is not None)],
            )
            if topic is None:
                self.note_counts["traces without a query text"] += 1
            else:
                stages += stages_of_trace(spans, topic, ambiguous)
        if self.clicks:
            self.pages = [
                replace(page, facts={**page.facts, "clicks": dict(self.clicks.get(page.trace_id, {}))})
                for page in self.pages
            ]
        traces = last_trace_per_query([*self.spans, *self.pages, *without_copied_inputs(stages)], name)
        return replace(traces, notes=(*traces.notes, *self._notes(traces.spans)))

    def _notes(self, spans: Iterable[Span]) -> Iterable[Note]:
        for reason, count in self.unread_counts.items():
            text = f"{counted(count, 'record')} skipped, the first at {self.first_places[reason]}: {reason}"
            yield Note("unread-records", text)
        for reason, count in self.note_counts.items():
            yield Note("irregular-records", f"{reason}: {count:,}")
        if self.other_kinds:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.other_kinds.most_common())
            yield Note("other-spans", f"{counted(self.other_kinds.total(), 'span')} of other kinds: {kinds}")
        queries_of: defaultdict[str, set[str]] = defaultdict(set)
        for span in spans:
            queries_of[span.stage].add(span.query_id)
        total = len(set[str]().union(*queries_of.values()))
        for stage, queries in queries_of.items():
            if len(queries) < total:
                text = f"missing in the traces of {total - len(queries):,} of {total:,} queries"
                yield Note("missing-stages", text, stage, total - len(queries), of="stages")


def ids_by_text(topics: Topics) -> dict[str, str]:
    """Return query ids by text, without texts that several topics share."""
    texts = [normalize_query(text or "") for text in topics.table["text"].to_pylist()]
    counts = Counter(texts)
    ids = topics.table["query_id"].to_pylist()
    return {text: query_id for text, query_id in zip(texts, ids, strict=True) if text and counts[text] == 1}


@dataclass(frozen=True, eq=False, repr=False)
class TraceCheck(Answer):
    """Stages of traces, and missing records.

    Parameters
    ----------
    traces
        The traces.
    notes
        Records that could not be read.
    """

    kind: ClassVar[str] = "trace-check"

    traces: Traces
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Name and number of queries."""
        return f"{self.traces.name}: {counted(len(self.traces.query_ids), 'query', 'queries')}"

    def facts(self) -> Mapping[str, Any]:
        """Return the name and the number of queries."""
        return {"traces": self.traces.name, "n": len(self.traces.query_ids)}

    def blocks(self) -> tuple[Block, ...]:
        """Return one row for each stage, including those without documents."""
        spans = self.traces.spans
        steps = {stage.name: stage for stage in self.traces.stages}
        names = [*steps, *dict.fromkeys(span.stage for span in spans if span.stage not in steps)]
        spans_of = {name: [span for span in spans if span.stage == name] for name in names}
        counts = {name: sum(len(span.documents or ()) for span in spans_of[name]) for name in names}
        latencies = {name: [span.latency_ms for span in spans_of[name] if span.latency_ms is not None]
                     for name in names}  # fmt: skip
        parents = [", ".join(steps[name].parents) if name in steps else "" for name in names]
        medians = {name: median(values) if values else None for name, values in latencies.items()}
        columns = (
            Column("stage", names, TEXT),
            Column("kind", [spans_of[name][0].kind if spans_of[name] else steps[name].kind for name in names], TEXT),
            Column("step", [steps[name].step if name in steps else None for name in names], COUNT),
            Column("parents", parents, TEXT, "input from"),
            Column("n", [len(spans_of[name]) for name in names], COUNT, "queries"),
            Column("documents", [counts[name] for name in names], COUNT),
            Column("unrecorded", [self._unrecorded(name) for name in names], COUNT, "not recorded"),
            Column("unscored", [self._unscored(name) for name in names], COUNT, "without score"),
            Column("untimed", [len(spans_of[name]) - len(latencies[name]) for name in names], COUNT, "without latency"),
            Column("latency_ms", [medians[name] for name in names], number(1), "median ms"),
        )
        return (Table("stages", columns, self.title, labels=2),)

    def _unrecorded(self, stage: str) -> int:
        # Queries without a span of the stage are included.
        if stage not in {recorded.name for recorded in self.traces.stages}:
            return 0
        return sum(self.traces.state(query, stage) == "unrecorded" for query in self.traces.query_ids)

    def _unscored(self, stage: str) -> int:
        documents = (document for span in self.traces.spans if span.stage == stage for document in span.documents or ())
        return sum(document.score is None for document in documents)


def check_traces(traces: Traces) -> TraceCheck:
    """Check the stages of traces for missing records."""
    return TraceCheck(traces, traces.notes)
