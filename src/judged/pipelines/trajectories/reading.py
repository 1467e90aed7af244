"""Reader of trajectories in files; the format is detected by the fields of each record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

import pyarrow as pa

from judged.data import files
from judged.data.json_rows import check_shape
from judged.data.query_text import normalize_query
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.traces.attributes import attributes_of, first_value
from judged.pipelines.traces.reading import ids_by_text, json_values, unpacked
from judged.pipelines.trajectories.messages import (
    add_retrieved,
    is_message,
    log_of,
    log_of_browsecomp,
    messages_of,
)
from judged.pipelines.trajectories.spans import AgentSpan, parse_agent_span, trial_of_trace
from judged.pipelines.trajectories.tool_calls import ToolRules, tokens_of
from judged.pipelines.trajectories.trajectories import (
    OF_TRIALS,
    RECORD_SHAPE,
    STEP_KINDS,
    TABLE_SET,
    TABLES,
    Trajectories,
    from_records,
    join,
)
from judged.results.blocks import Note
from judged.results.decimals import counted
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.pipelines.trajectories.tool_calls import Row
    from judged.pipelines.trajectories.trajectories import StepKind

Format: TypeAlias = Literal["judged", "browsecomp", "messages", "spans"]
"""Formats of trajectories."""

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet")
_BROWSECOMP = ("retrieved_docids", "tool_call_counts")
_STATED = ("trial", "status", "abstained", "confidence", "tokens", "cost", "latency_ms", "citations", "references",
           "correct")  # fmt: skip
_TRIAL_FIELDS = frozenset({*TABLES["trials"].names, "steps", "citations", "references", "correct"})
_STEP_FIELDS = frozenset(TABLES["steps"].names)


def read_trajectories(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    format: Format | None = None,
    tools: Mapping[str, StepKind] | None = None,
    topic_from: str | None = None,
    topics: Any = None,
    id_from: str | None = None,
) -> Trajectories:
    """Read trajectories: our own layout, records of BrowseComp, chat logs with tool calls, or spans.

    Files are JSON Lines, JSON, OTLP, or Parquet, compressed or not; or folders of such files, or of our tables. The
    format of each record is detected. Unreadable records are counted in the notes. A question without an id has its
    text as id. Repeated questions of a system are trials, in the order of the files.

    Parameters
    ----------
    paths
        One or several files or folders.
    format
        Only format to read. Default: all.
    tools
        Kind of step by name of a tool. Default: by the words in its name, such as "search" or "open".
    topic_from
        Field of records, or attribute of spans, with the id of the question, such as ``metadata.topic``.
    topics
        Texts of topics, as for `judged.data.Topics`: questions with such a text get the id of the topic.
    id_from
        Key of a document, or of its metadata, with its id. Default: ``docid``, ``id``, or other usual names.

    Raises
    ------
    InputError
        If a file is invalid, or has no trials.
    """
    if format is not None and format not in get_args(Format):
        raise InputError(f"unknown format {format!r}", fix=use_one_of(get_args(Format)))
    for tool, kind in (tools or {}).items():
        if kind not in STEP_KINDS:
            raise InputError(f"the tool {tool!r} has the unknown kind {kind!r}", fix=use_one_of(STEP_KINDS))
    ids = None if topics is None else ids_by_text(Topics.of(topics))
    all_paths = [Path(cast("str", path)) for path in ([paths] if isinstance(paths, (str, PathLike)) else paths)]
    sources = [source for path in all_paths for source in _sources(path)]
    where = str(all_paths[0]) + (f" and {counted(len(all_paths) - 1, 'other file')}" if len(all_paths) > 1 else "")

    def read(some: Sequence[_Source], where: str) -> Trajectories | str:
        reader = _Reader(format, ToolRules(tools or {}, id_from, topic_from), ids)
        records = reader.records(some)
        if (first := next(records, None)) is None:
            return "; ".join(note.text for note in reader.notes()) or "there are no records"
        return replace(from_records(chain([first], records), "trajectories", where), notes=tuple(reader.notes()))

    parts = [_read_tables(source.path) for source in sources if source.path.is_dir()]
    if of_records := [source for source in sources if not source.path.is_dir()]:
        try:
            part = read(of_records, where)
        except InputError:
            for source in of_records if len(of_records) > 1 else ():  # find the file and the line
                read([source], str(source.path))
            raise
        if isinstance(part, str):
            fix = "use a format that docs/trajectories.md describes"
            raise InputError(f"no trial could be read: {part}", fix=fix, path=where)
        parts.append(part)
    return join(parts)


class _Source(NamedTuple):
    """File of records, or folder of tables, with the name of a system whose records have none."""

    path: Path
    run_id: str


def _sources(path: Path) -> list[_Source]:
    if not path.is_dir():
        return [_Source(path, "agent")]
    entries, name = sorted(path.iterdir()), path.resolve().name
    if any(entry.name.partition(".")[0] in TABLES for entry in entries):
        return [_Source(path, name)]
    if sources := [_Source(entry, name) for entry in entries if {*_SUFFIXES} & {*entry.suffixes}]:
        return sources
    raise InputError("the folder has no files of trials", fix=f"use files {', '.join(_SUFFIXES)}", path=str(path))


def _read_tables(folder: Path) -> Trajectories:
    tables, notes = TABLE_SET.read(folder)
    return Trajectories(tables, folder.resolve().name, str(folder), notes)


def with_run_name(trajectories: Trajectories, name: str) -> Trajectories:
    """Select the system of this name; a single system with another name is renamed."""
    if name in trajectories.run_names or len(trajectories.run_names) > 1:
        return trajectories.of_run(name)
    tables = dict(trajectories.tables)
    for key in set(OF_TRIALS) & set(tables):
        run_ids = pa.repeat(pa.scalar(name, pa.string()), tables[key].num_rows)
        tables[key] = tables[key].set_column(tables[key].column_names.index("run_id"), "run_id", run_ids)
    return replace(trajectories, tables=tables)


class _Reader:
    """Conversion of records, and counts for notes."""

    def __init__(self, format: Format | None, rules: ToolRules, ids: Mapping[str, str] | None) -> None:
        self.format, self.rules, self.ids = format, rules, ids
        self.spans: defaultdict[tuple[str, str], list[AgentSpan]] = defaultdict(list)  # by system and trace
        self.trials: Counter[tuple[str, str]] = Counter()  # without a number, by question and system
        self.unread: Counter[str] = Counter()  # records, by reason
        self.first_places: dict[str, str] = {}  # of unread records, by reason
        self.unknown: set[str] = set()  # fields in our own layout

    def records(self, sources: Iterable[_Source]) -> Iterator[tuple[int | None, dict[str, Any]]]:
        """Yield the trials of files as records in our own layout, with their lines; traces at the end."""
        for path, run_id in sources:
            messages: list[Row] = []  # a file with one message in each record is one trial
            for place, value in json_values(files.local(path), str(path)):
                for row in unpacked(cast("Row", value)) if isinstance(value, Mapping) else [value]:
                    if is_message(row) and self.format in (None, "messages"):
                        messages.append(row)
                    elif (record := self._converted(place, path, row, run_id)) is not None:
                        yield _line(place, path), record
            if messages and (record := self._converted(str(path), path, messages, run_id)) is not None:
                yield None, record
        for (run_id, trace_id), spans in sorted(self.spans.items(), key=lambda item: _start(item[1])):
            record = trial_of_trace(spans, self.rules)
            if record is None:
                self._skip("a trace without a tool, a search, or a model", f"trace {trace_id}")
            elif record.get("query_id") is None and not record.get("question"):
                self._skip("a trace without a question", f"trace {trace_id}")
            else:
                yield None, self._identified(record, run_id)

    def _converted(self, place: str, path: Path, row: Any, run_id: str) -> dict[str, Any] | None:
        """Convert a record; None if it is a span, or is skipped."""
        messages = None if isinstance(row, Mapping) and "steps" in row else messages_of(row)
        try:
            if messages is None and not isinstance(row, Mapping):
                self._skip("not a JSON object", place)
            elif self._is("browsecomp", any(name in row for name in _BROWSECOMP)):
                record = log_of_browsecomp(row, self.rules).record(self._fields(row))
                add_retrieved(record, row.get("retrieved_docids"), self.rules)
                return self._identified(record, run_id)
            elif self._is("messages", messages is not None):
                fields = self._fields(row) if isinstance(row, Mapping) else {}
                return self._identified(log_of(messages or [], self.rules).record(fields), run_id)
            elif self._is("judged", "steps" in row or ("query_id" in row and "answer" in row)):
                return self._identified(self._own(row), run_id)
            elif self._is("spans", (attributes := attributes_of(row)) is not None):
                span = parse_agent_span(row, attributes or {}, self.rules)
                self.spans[run_id, span.span.trace_id].append(span)
            else:
                reason = "the record is not a trial, a log of messages, or a span"
                self._skip(reason if self.format is None else f"not in the format {self.format}", place)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            fix = "use a layout that docs/trajectories.md describes"
            problem = f"a trial cannot be read: {error.args[0] if error.args else type(error).__name__}"
            raise InputError(problem, fix=fix, path=str(path), line=_line(place, path)) from None
        return None

    def _is(self, format: Format, is_detected: bool) -> bool:
        return is_detected and self.format in (None, format)

    def _own(self, row: Row) -> dict[str, Any]:
        """Check a record in our own layout; documents can be objects."""
        check_shape(row, RECORD_SHAPE, "a trial")
        self.unknown.update(row.keys() - _TRIAL_FIELDS)
        record = dict(row)
        steps = cast("list[Row]", list(row.get("steps") or ()))
        for i, step in enumerate(steps):
            self.unknown.update(step.keys() - _STEP_FIELDS)
            documents = step.get("documents")
            if isinstance(documents, list) and any(isinstance(document, Mapping) for document in documents):
                steps[i] = {**step, "documents": self.rules.documents(documents)}
        return record | {"steps": steps, "query_id": self._query_id(row)}

    def _query_id(self, row: Row) -> Any:
        path = self.rules.topic_from
        return row.get("query_id") if path is None else first_value(row, path)

    def _fields(self, row: Row) -> dict[str, Any]:
        """Return the fields that a record states for the whole trial."""
        fields = {name: row.get(name) for name in _STATED} | {
            "query_id": self._query_id(row),
            "run_id": first_value(row, "run_id", "model", "metadata.model"),
            "question": first_value(row, "question", "query"),
        }
        fields["tokens"] = tokens_of(row.get("usage")) if fields["tokens"] is None else fields["tokens"]
        return {name: value for name, value in fields.items() if value is not None}

    def _identified(self, record: dict[str, Any], run_id: str) -> dict[str, Any]:
        """Add the ids of the question and the system."""
        if record.get("query_id") is None:
            question = record.get("question")
            if not isinstance(question, str) or not question.strip():
                raise ValueError("it has neither `query_id` nor a question")
            text = normalize_query(question)
            if self.ids is not None and text not in self.ids:
                self.rules.counts["questions whose text matches no topic, or several topics"] += 1
            record["query_id"] = (self.ids or {}).get(text, text)
        record["query_id"], record["run_id"] = str(record["query_id"]), str(record.get("run_id") or run_id)
        self.trials[record["query_id"], record["run_id"]] += record.get("trial") is None
        return record

    def _skip(self, reason: str, place: str) -> None:
        self.unread[reason] += 1
        self.first_places.setdefault(reason, place)

    def notes(self) -> Iterator[Note]:
        """Yield notes about skipped and completed records."""
        for reason, count in self.unread.items():
            text = f"{counted(count, 'record')} skipped, the first at {self.first_places[reason]}: {reason}"
            yield Note("unread-records", text)
        for reason, count in self.rules.counts.items():
            yield Note("irregular-records", f"{reason}: {count:,}")
        if self.unknown:
            yield Note("unknown-fields", f"unknown fields are ignored: {', '.join(sorted(self.unknown))}")
        if repeated := sum(count > 1 for count in self.trials.values()):
            text = f"{counted(repeated, 'question')} repeated by a system: each repetition is a trial"
            yield Note("repeated-questions", text)


def _line(place: str, path: Path) -> int | None:
    number = place.removeprefix(f"{path}:")
    return int(number) if number.isdigit() else None


def _start(spans: Iterable[AgentSpan]) -> float:
    return min((span.span.start for span in spans if span.span.start is not None), default=0.0)
