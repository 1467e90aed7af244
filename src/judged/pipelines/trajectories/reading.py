"""Reader of trajectories in files; the format is detected by the fields of each record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from judged.data import files
from judged.data.identify import FileContent
from judged.data.json_rows import check_shape
from judged.data.query_text import normalize_query
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.traces.attributes import attributes_of, first_value
from judged.pipelines.traces.reading import ids_by_text, json_values, records, unpacked
from judged.pipelines.trajectories.messages import is_message, log_of, messages_of, record_of_browsecomp
from judged.pipelines.trajectories.spans import AgentSpan, parse_agent_span, trial_of_trace
from judged.pipelines.trajectories.tool_calls import ToolRules, tokens_of
from judged.pipelines.trajectories.trajectories import (
    RECORD_SHAPE,
    TABLE_SET,
    TABLES,
    Trajectories,
    from_records,
)
from judged.results.blocks import Note
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.pipelines.trajectories.tool_calls import Row
    from judged.pipelines.trajectories.trajectories import StepKind

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet")
_STATED = ("trial", "status", "abstained", "confidence", "tokens", "cost", "latency_ms", "citations", "references",
           "correct")  # fmt: skip
_Source = tuple[Path, str]  # file of records, or folder of tables; name of a system whose records have none


def read_trajectories(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
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
    ids = None if topics is None else ids_by_text(Topics.of(topics))
    all_paths = [Path(cast("str", path)) for path in ([paths] if isinstance(paths, (str, PathLike)) else paths)]
    sources = [source for path in all_paths for source in _sources(path)]
    where = str(all_paths[0]) + (f" and {counted(len(all_paths) - 1, 'other file')}" if len(all_paths) > 1 else "")

    def read(some: Sequence[_Source], where: str) -> Trajectories | str:
        reader = _Reader(ToolRules(tools or {}, id_from, topic_from), ids)
        trials = reader.trials(some)
        if (first := next(trials, None)) is None:
            return "; ".join(note.text for note in reader.notes()) or "there are no records"
        return replace(from_records(chain([first], trials), "trajectories", where), notes=tuple(reader.notes()))

    parts: list[Trajectories] = []
    for folder, name in sources:
        if folder.is_dir():
            tables, table_notes = TABLE_SET.read(folder)
            parts.append(Trajectories(tables, name, str(folder), table_notes))
    if of_records := [source for source in sources if not source[0].is_dir()]:
        try:
            part = read(of_records, where)
        except InputError:
            for source in of_records if len(of_records) > 1 else ():  # find the file and the line
                read([source], str(source[0]))
            raise
        if isinstance(part, str):
            fix = "use a format that docs/trajectories.md describes"
            raise InputError(f"no trial could be read: {part}", fix=fix, path=where)
        parts.append(part)
    return Trajectories.join(parts)


def _sources(path: Path) -> list[_Source]:
    if not path.is_dir():
        return [(path, "agent")]
    entries, name = sorted(path.iterdir()), path.resolve().name
    if any(entry.name.partition(".")[0] in TABLES for entry in entries):
        return [(path, name)]
    if sources := [(entry, name) for entry in entries if {*_SUFFIXES} & {*entry.suffixes}]:
        return sources
    raise InputError("the folder has no files of trials", fix=f"use files {', '.join(_SUFFIXES)}", path=str(path))


class _Reader:
    """Conversion of records, and counts for notes."""

    def __init__(self, rules: ToolRules, ids: Mapping[str, str] | None) -> None:
        self.rules, self.ids = rules, ids
        self.spans: defaultdict[tuple[str, str], list[AgentSpan]] = defaultdict(list)  # by system and trace
        self.repetitions: Counter[tuple[str, str]] = Counter()  # trials without a number, by question and system
        self.unread: Counter[str] = Counter()  # records, by reason
        self.first_places: dict[str, str] = {}  # of unread records, by reason
        self.unknown: set[str] = set()  # fields in our own layout

    def trials(self, sources: Iterable[_Source]) -> Iterator[tuple[int | None, dict[str, Any]]]:
        """Yield the trials of files as records in our own layout, with their lines; traces at the end."""
        for path, run_id in sources:
            messages: list[Row] = []  # a file with one message in each record is one trial
            for place, value in json_values(files.local(path), str(path)):
                for row in unpacked(cast("Row", value)) if isinstance(value, Mapping) else [value]:
                    if is_message(row):
                        messages.append(row)
                    else:
                        yield from self._trial(row, place, path, run_id)
            if messages:
                yield from self._trial(messages, str(path), path, run_id)
        for (run_id, trace_id), spans in sorted(self.spans.items(), key=lambda item: _start(item[1])):
            record = trial_of_trace(spans, self.rules)
            if record is None:
                self._skip("a trace without a tool, a search, or a model", f"trace {trace_id}")
            elif record.get("query_id") is None and not record.get("question"):
                self._skip("a trace without a question", f"trace {trace_id}")
            else:
                yield None, self._identified(record, run_id)

    def _trial(self, row: Any, place: str, path: Path, run_id: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
        """Yield the trial of a record; none if it is a span, or is skipped."""
        number = place.removeprefix(f"{path}:")
        line = int(number) if number.isdigit() else None
        try:
            record = self._record(row, place, run_id)
            if record is not None:
                yield line, self._identified(record, run_id)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            fix = "use a layout that docs/trajectories.md describes"
            problem = f"a trial cannot be read: {error.args[0] if error.args else type(error).__name__}"
            raise InputError(problem, fix=fix, path=str(path), line=line) from None

    def _record(self, row: Any, place: str, run_id: str) -> dict[str, Any] | None:
        """Convert a record to our own layout by its format; None if it is a span, or is skipped."""
        fields = cast("Row", row if isinstance(row, Mapping) else {})
        if "retrieved_docids" in fields or "tool_call_counts" in fields:
            return record_of_browsecomp(fields, self._stated(fields), self.rules)
        if "steps" not in fields and (messages := messages_of(row)) is not None:
            return log_of(messages, self.rules).record(self._stated(fields))
        if "steps" in fields or {"query_id", "answer"} <= fields.keys():
            return self._own(fields)
        if (attributes := attributes_of(fields)) is not None:
            span = parse_agent_span(fields, attributes, self.rules)
            self.spans[run_id, span.span.trace_id].append(span)
        else:
            reason = "the record is not a trial, a log of messages, or a span"
            self._skip(reason if isinstance(row, Mapping) else "not a JSON object", place)
        return None

    def _own(self, row: Row) -> dict[str, Any]:
        """Check a record in our own layout; documents can be objects."""
        check_shape(row, RECORD_SHAPE, "a trial")
        self.unknown.update(row.keys() - {*TABLES["trials"].names, *_STATED, "steps"})
        steps: list[Row] = list(row.get("steps") or ())
        for i, step in enumerate(steps):
            self.unknown.update(step.keys() - TABLES["steps"].names)
            documents = step.get("documents")
            if isinstance(documents, list) and any(isinstance(document, Mapping) for document in documents):
                steps[i] = {**step, "documents": self.rules.documents(documents)}
        return {**row, "steps": steps, "query_id": self._query_id(row)}

    def _query_id(self, row: Row) -> Any:
        path = self.rules.topic_from
        return row.get("query_id") if path is None else first_value(row, path)

    def _stated(self, row: Row) -> dict[str, Any]:
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
            is_unknown = self.ids is not None and text not in self.ids
            self.rules.counts["questions whose text matches no topic, or several topics"] += is_unknown
            record["query_id"] = (self.ids or {}).get(text, text)
        record["query_id"], record["run_id"] = str(record["query_id"]), str(record.get("run_id") or run_id)
        self.repetitions[record["query_id"], record["run_id"]] += record.get("trial") is None
        return record

    def _skip(self, reason: str, place: str) -> None:
        self.unread[reason] += 1
        self.first_places.setdefault(reason, place)

    def notes(self) -> Iterator[Note]:
        """Yield notes about skipped and completed records."""
        for reason, count in self.unread.items():
            text = f"{counted(count, 'record')} skipped, the first at {self.first_places[reason]}: {reason}"
            yield Note("unread-records", text)
        for reason, count in (+self.rules.counts).items():
            yield Note("irregular-records", f"{reason}: {count:,}")
        if self.unknown:
            yield Note("unknown-fields", f"unknown fields are ignored: {', '.join(sorted(self.unknown))}")
        if repeated := sum(count > 1 for count in self.repetitions.values()):
            text = f"{counted(repeated, 'question')} repeated by a system: each repetition is a trial"
            yield Note("repeated-questions", text)


def _start(spans: Iterable[AgentSpan]) -> float:
    return min((span.span.start for span in spans if span.span.start is not None), default=0.0)


def recognize(path: str) -> FileContent | None:
    """Return the content of a file with trials that call tools, for ``judged check``; spans count as traces."""
    first = {} if Path(path).is_dir() else next((row for _, row in islice(records(Path(path)), 1)), None) or {}
    has_steps = "retrieved_docids" in first or isinstance(first.get("steps"), list)
    if not (has_steps or is_message(first) or messages_of(first) is not None):
        return None
    try:
        read = read_trajectories(path)
    except InputError:
        return None
    if {"search", "open", "other"}.isdisjoint(read["steps"]["kind"].unique().to_pylist()):
        return None  # no tool was called: a chat log, or answers without searches
    counts = {"trial": len(read), "question": len(read.query_ids), "system": len(read.run_names)}
    commands = (f"evaluate {path} --qrels QRELS", f"where {path} --qrels QRELS", f"check {path}")
    return FileContent(path, "trajectories", counts, tuple(f"judged trajectories {command}" for command in commands))
