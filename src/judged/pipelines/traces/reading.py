"""Traces of files, in any layout that is known: told by what each record holds."""

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
from judged.pipelines.traces.attributes import attributes_of, first, is_encodable, parsed
from judged.pipelines.traces.conventions import Format, documents_of, own_span
from judged.pipelines.traces.own import span_of
from judged.pipelines.traces.steps import Step, spans_of_trace, step_of, without_echoes
from judged.pipelines.traces.traces import Span, Traces, one_trace_a_query
from judged.results import COUNT, TEXT, Answer, Column, Table, counted, number
from judged.results.blocks import Note

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.types import Batch


Row: TypeAlias = Mapping[str, Any]

_ROWS = 256  # of Parquet, made into objects at a time
_LONGEST = 1 << 28  # bytes of a line: an export may be one object


def records(path: Path) -> Iterator[tuple[str, Row | None]]:
    """Give each record with its place (file:line, or file and number); None for one that is no JSON object."""
    for place, row in _raw(files.local(path), str(path)):
        if not isinstance(row, Mapping):
            yield place, None
        else:
            for inner in _unpacked(cast("Row", row)):
                yield place, inner if isinstance(inner, Mapping) else None


def _raw(path: Path, where: str) -> Iterator[tuple[str, Any]]:
    head = files.head(path, 64).lstrip()
    if head.startswith(b"PAR1"):
        rows = (row for batch in parquet_batches(path, where, list) for row in _rows(batch))
        yield from ((f"{where}, row {number}", row) for number, row in enumerate(rows, 1))
    elif head.startswith(b"[") or (head.startswith(b"{") and _first_line_breaks_off(path)):
        yield from ((f"{where}, record {number}", row) for number, row in enumerate(_elements(path, where), 1))
    else:
        yield from ((f"{where}:{number}", parsed(line)) for number, line in _lines(path))


def _first_line_breaks_off(path: Path) -> bool:
    """Tell whether objects are written over several lines each, as consoles show them: then a brace stands alone."""
    _, line = next(_lines(path))
    return line.strip() == b"{"


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    for block in files.blocks(path, longest=_LONGEST):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            if line.strip():
                yield number, line


def _elements(path: Path, where: str) -> Iterator[Any]:
    """Read a JSON list, or objects behind one another, one at a time: they never lie in memory together."""
    text, decoder = files.text(path, where, longest=_LONGEST), json.JSONDecoder()
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
    columns = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in batch.columns]
    table = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    for start in range(0, table.num_rows, _ROWS):
        for row in table.slice(start, _ROWS).to_pylist():
            yield {name: value for name, value in row.items() if value is not None}


def _unpacked(row: Row) -> Iterator[Any]:
    """Take the records out of a batch of OTLP, an answer of Phoenix, or a bulk request or dump of OpenSearch."""
    if "resourceSpans" in row:
        for batch in _list(row, "resourceSpans"):
            for scope in _list(batch, "scopeSpans"):
                yield from _list(scope, "spans")
    elif isinstance(row.get("data"), list):
        yield from _list(row, "data")
    elif not (len(row) == 1 and isinstance(row.get("index", row.get("create")), Mapping)):  # a line of a bulk request
        yield row["_source"] if "_index" in row and "_source" in row else row


def _list(row: Any, name: str) -> list[Any]:
    """Give a list of an object; what has none is one element that cannot be read."""
    found = cast("Row", row).get(name) if isinstance(row, Mapping) else None
    return cast("list[Any]", found) if isinstance(found, list) else [None]


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
    """Read traces of our own JSON lines, of spans by OpenInference or OpenTelemetry's GenAI, or of queries by UBI.

    Clicks of UBI's events go with the lists they are of, as the fact ``clicks``.

    Files are JSON lines, JSON, OTLP or Parquet, compressed or not. Each record is taken for what it holds; what cannot
    be read is counted, in `Traces.notes`.

    Parameters
    ----------
    paths
        One file or more.
    format
        The only layout that is looked for; None: any.
    topic_from
        The attribute of spans, or field of UBI queries, that holds the topic, such as ``metadata.topic``. None: the
        topic is the text of the query, in lower case and with single spaces.
    topics
        Texts of topics (as `judged.data.Topics` takes them): a query has the id of the topic whose text it is.
    id_from
        The key of a document, or of its metadata, that holds its id; None: ``id``, or one of its usual names.
    name
        What to call the traces; None: the first file's name.

    Raises
    ------
    InputError
        If a file cannot be read, or none of its records is a stage.
    """
    if format is not None and format not in get_args(Format):
        raise InputError(f"no format {format!r}", fix=f"one of {', '.join(get_args(Format))}")
    given = [paths] if isinstance(paths, (str, PathLike)) else paths
    files = [Path(cast("str", one)) for one in given]
    reader = _Reader(format, topic_from, topics, id_from)
    for file in files:
        for place, row in records(file):
            reader.add(place, row)
    traces = reader.made(name or files[0].name.split(".")[0])
    if not traces.spans:
        why = "; ".join(note.text for note in traces.notes) or "the file is empty"
        raise InputError(f"no stage of a trace was found: {why}", fix="see docs/traces.md", path=str(files[0]))
    return traces


class _Reader:
    """What was read so far, and what was odd about it."""

    def __init__(self, format: Format | None, topic_from: str | None, topics: Any, id_from: str | None) -> None:
        self.format: Format | None = format
        self.topic_from, self.id_from = topic_from, id_from
        self.ids = None if topics is None else _ids_by_text(Topics.of(topics))
        self.spans: list[Span] = []
        self.steps: defaultdict[str, list[Step]] = defaultdict(list)
        self.odd: Counter[str] = Counter()  # of documents and queries
        self.unread: Counter[str] = Counter()  # records
        self.kinds: Counter[str] = Counter()  # spans that are no stages
        self.places: dict[str, str] = {}
        self.pages: list[Span] = []  # of UBI
        self.clicks: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by query of UBI

    def add(self, place: str, row: Row | None) -> None:
        """Take a record for what it holds."""
        try:
            self._add(place, row)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            self._leave(str(error.args[0]) if error.args else type(error).__name__, place)

    def _add(self, place: str, row: Row | None) -> None:
        if row is None:
            self._leave("no JSON object", place)
        elif "stage" in row and self.format in (None, "judged"):
            self.spans.append(span_of(row))
        elif any(name in row for name in _UBI) and self.format in (None, "ubi"):
            self._add_page(row, place)
        elif "action_name" in row and self.format in (None, "ubi"):
            self._add_event(row)
        elif self.format not in ("judged", "ubi") and (attributes := attributes_of(row)) is not None:
            own = own_span(attributes)
            if own is not None:
                self.spans.append(own)
                return
            step = step_of(row, attributes, self.odd, self.format, self.topic_from, self.id_from)
            self.steps[step.trace_id].append(step)
            if step.stage is None:
                self.kinds[step.kind] += 1
            if row.get("droppedAttributesCount"):
                self.odd["spans that lost attributes to a limit of their exporter"] += 1
        else:
            layout = "no stage, no span and no query with its hits"
            self._leave(layout if self.format is None else f"not of the format {self.format}", place)

    def _add_page(self, row: Row, place: str) -> None:
        """Take a query of UBI with the hits that were shown."""
        hits, text = row.get("query_response_hit_ids"), row.get("user_query")
        hits = parsed(hits) if isinstance(hits, str) else hits
        topic = self._topic(None if self.topic_from is None else first(row, self.topic_from), [text])
        if topic is None:
            self._leave("a query without a text", place)
            return
        who = {"session_id": row.get("session_id"), "user_id": row.get("client_id", row.get("user_id"))}
        facts = {name: value for name, value in who.items() if value}
        rows = list(enumerate(cast("list[Any]", hits), 1)) if isinstance(hits, list) else None
        listed = None if rows is None else documents_of(rows, self.odd)
        query = text if isinstance(text, str) else None
        trace = str(row.get("query_id", topic))
        self.pages.append(Span(trace, topic, "shown", "shown", (), listed, query, facts=facts))

    def _add_event(self, row: Row) -> None:
        """Take a click of UBI on a result of a query."""
        clicked = first(row, "event_attributes.object.object_id")
        if row["action_name"] != "click":
            self.odd["events other than clicks"] += 1
        elif clicked is None or row.get("query_id") is None:
            self.odd["clicks without a query or an object"] += 1
        else:
            self.clicks[str(row["query_id"])][str(clicked)] += 1

    def _leave(self, what: str, place: str) -> None:
        self.unread[what] += 1
        self.places.setdefault(what, place)

    def _topic(self, named: Any, texts: Iterable[Any]) -> str | None:
        """Tell the topic of a query by its attribute, or by the first of its texts that is a topic's."""
        if named is not None and not isinstance(named, (Mapping, list)):
            return str(named)
        folded = [normalize_query(text) for text in texts if isinstance(text, str) and text.strip()]
        if self.topic_from is not None and folded:
            self.odd[f"queries without {self.topic_from}, told by their text"] += 1
        if self.ids is not None and folded:
            known = next((self.ids[text] for text in folded if text in self.ids), None)
            if known is not None:
                return known
            self.odd["queries whose text is that of no topic, or of several"] += 1
        return folded[0] if folded else None

    def made(self, name: str) -> Traces:
        """Give the traces, with what should be known of them."""
        names: defaultdict[str, set[str]] = defaultdict(set)
        for steps in self.steps.values():
            for step in steps:
                if step.stage is not None:
                    names[step.stage.name].add(step.stage.kind)
        shared = {name for name, kinds in names.items() if len(kinds) > 1}
        merged: list[Span] = []
        for steps in self.steps.values():
            stages = [step for step in steps if step.stage is not None]
            if not stages:
                continue
            roots = [step.query for step in steps if step.stage is None and not step.parent_id]
            topic = self._topic(
                next((step.query_id for step in (*stages, *steps) if step.query_id is not None), None),
                [*roots, *(step.stage.query for step in stages if step.stage is not None)],
            )
            if topic is None:
                self.odd["traces without the text of a query"] += 1
            else:
                merged += spans_of_trace(steps, topic, shared)
        if self.clicks:
            self.pages = [
                replace(page, facts={**page.facts, "clicks": dict(self.clicks.get(page.trace_id, {}))})
                for page in self.pages
            ]
        traces = one_trace_a_query([*self.spans, *self.pages, *without_echoes(merged)], name)
        return replace(traces, notes=(*traces.notes, *self._notes(traces.spans)))

    def _notes(self, spans: Iterable[Span]) -> Iterable[Note]:
        for what, times in self.unread.items():
            yield Note("unread-records", f"{counted(times, 'record')} left out, first {self.places[what]}: {what}")
        for what, times in self.odd.items():
            yield Note("odd-records", f"{what}: {times:,}")
        if self.kinds:
            of_kind = ", ".join(f"{times:,} {kind}" for kind, times in self.kinds.most_common())
            yield Note("other-spans", f"{counted(self.kinds.total(), 'span')} of other kinds: {of_kind}")
        having: defaultdict[str, set[str]] = defaultdict(set)
        for span in spans:
            having[span.stage].add(span.query_id)
        total = len(set[str]().union(*having.values()))
        for stage, queries in having.items():
            if len(queries) < total:
                text = f"not in the traces of {total - len(queries):,} of {total:,} queries"
                yield Note("absent-stages", text, stage, total - len(queries), of="stages")


def _ids_by_text(topics: Topics) -> dict[str, str]:
    """Look topics up by text; a text that several share is left out."""
    texts = [normalize_query(text or "") for text in topics.table["text"].to_pylist()]
    times = Counter(texts)
    ids = topics.table["query_id"].to_pylist()
    return {text: one for text, one in zip(texts, ids, strict=True) if text and times[text] == 1}


@dataclass(frozen=True, eq=False, repr=False)
class TraceCheck(Answer):
    """The stages of traces, and what is not recorded of them.

    Parameters
    ----------
    traces
        The traces.
    notes
        What could not be read.
    """

    kind: ClassVar[str] = "trace-check"

    traces: Traces
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What was traced."""
        return f"{self.traces.name}: {counted(len(self.traces.query_ids), 'query', 'queries')}"

    def facts(self) -> Mapping[str, Any]:
        """Give the name and the number of queries."""
        return {"traces": self.traces.name, "n": len(self.traces.query_ids)}

    def blocks(self) -> tuple[Block, ...]:
        """Give one row a stage, those without documents too."""
        spans = self.traces.spans
        steps = {stage.name: stage for stage in self.traces.stages}
        names = [*steps, *dict.fromkeys(span.stage for span in spans if span.stage not in steps)]
        of = {name: [span for span in spans if span.stage == name] for name in names}
        documents = {name: [len(span.documents) for span in of[name] if span.documents is not None] for name in names}
        took = {name: [span.latency_ms for span in of[name] if span.latency_ms is not None] for name in names}
        middle = {name: median(given) if given else None for name, given in took.items()}
        columns = (
            Column("stage", names, TEXT),
            Column("kind", [of[name][0].kind if of[name] else steps[name].kind for name in names], TEXT),
            Column("step", [steps[name].step if name in steps else None for name in names], COUNT),
            Column(
                "parents", [", ".join(steps[name].parents) if name in steps else "" for name in names], TEXT, "given by"
            ),
            Column("n", [len(of[name]) for name in names], COUNT, "queries"),
            Column("documents", [sum(documents[name]) for name in names], COUNT),
            Column("unrecorded", [self._unrecorded(name) for name in names], COUNT, "not recorded"),
            Column("unscored", [self._unscored(name) for name in names], COUNT, "without score"),
            Column("untimed", [len(of[name]) - len(took[name]) for name in names], COUNT, "without latency"),
            Column("latency_ms", [middle[name] for name in names], number(1), "median ms"),
        )
        return (Table("stages", columns, self.title, labels=2),)

    def _unrecorded(self, stage: str) -> int:
        """Return for how many queries the documents are unknown, also where the span itself is missing."""
        if stage not in {one.name for one in self.traces.stages}:
            return 0
        return sum(self.traces.state(query, stage) == "unrecorded" for query in self.traces.query_ids)

    def _unscored(self, stage: str) -> int:
        every = (one for span in self.traces.spans if span.stage == stage for one in span.documents or ())
        return sum(one.score is None for one in every)


def check_traces(traces: Traces) -> TraceCheck:
    """Say which stages traces have, and what is not recorded of them."""
    return TraceCheck(traces, traces.notes)
