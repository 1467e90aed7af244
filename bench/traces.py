"""Time recording of documents, and reading of a million of them from spans: ``traces.py [DOCUMENTS]``.

Each reading is a separate process; CPU seconds and peak memory include imports.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from judged.pipelines.traces import Recorder, read_traces

DOCUMENTS_PER_TRACE = 100


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        traces = read_traces(sys.argv[2])
        count = sum(len(span.documents or ()) for span in traces.spans)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(f"{count:,} documents, {usage.ru_utime + usage.ru_stime:.1f} s of CPU, {usage.ru_maxrss / 1024:.0f} MB")
        return
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        _record(folder / "recorded", total // 10)
        for layout, write in {"openinference, flat": _flat, "opentelemetry": _structured, "otlp": _otlp}.items():
            path = folder / "spans"
            with path.open("w") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in write(total // DOCUMENTS_PER_TRACE))
            result = subprocess.run(
                [sys.executable, __file__, "read", str(path)], capture_output=True, text=True, check=True
            )
            print(f"{layout} ({path.stat().st_size / 1e6:.0f} MB): {result.stdout.strip()}")


def _record(path: Path, total: int) -> None:
    recorder = Recorder(path)
    documents = [(f"document-{i}", 1 / (i + 1)) for i in range(DOCUMENTS_PER_TRACE)]
    start = time.perf_counter()
    for i in range(total // DOCUMENTS_PER_TRACE):
        with recorder.query(f"q{i}", "some words") as trace:
            trace.stage("bm25", "candidates", documents)
    microseconds = 1e6 * (time.perf_counter() - start)
    per_document = microseconds / total
    size = DOCUMENTS_PER_TRACE
    print(f"recorded: {per_document:.2f} microseconds per document, {size * per_document:.0f} per trace of {size}")


def _spans(traces: int, attributes: Callable[[int], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for i in range(traces):
        ids = {"trace_id": f"{i:032x}", "span_id": f"{i:016x}"}
        yield {"name": "search", "context": ids, "parent_id": None, "attributes": attributes(i)}


def _flat(traces: int) -> Iterator[dict[str, Any]]:
    def attributes(i: int) -> dict[str, Any]:
        attribute_values: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": f"words {i}"}
        for position in range(DOCUMENTS_PER_TRACE):
            prefix = f"retrieval.documents.{position}.document"
            attribute_values[f"{prefix}.id"] = f"document-{i}-{position}"
            attribute_values[f"{prefix}.score"] = 1 / (position + 1)
            attribute_values[f"{prefix}.content"] = "some words of a document " * 8
        return attribute_values

    return _spans(traces, attributes)


def _structured(traces: int) -> Iterator[dict[str, Any]]:
    def attributes(i: int) -> dict[str, Any]:
        documents = [
            {"id": f"document-{i}-{position}", "score": 1 / (position + 1)} for position in range(DOCUMENTS_PER_TRACE)
        ]
        attribute_values = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": f"words {i}"}
        return attribute_values | {"gen_ai.retrieval.documents": json.dumps(documents)}

    return _spans(traces, attributes)


def _otlp(traces: int) -> Iterator[dict[str, Any]]:
    """Yield one batch per line, like files of the OpenTelemetry collector."""
    for row in _flat(traces):
        typed_values = ((key, "doubleValue" if isinstance(value, float) else "stringValue", value)
                  for key, value in row["attributes"].items())  # fmt: skip
        attributes = [{"key": key, "value": {kind: value}} for key, kind, value in typed_values]
        span = {"name": "search", "traceId": row["context"]["trace_id"], "spanId": row["context"]["span_id"]}
        yield {"resourceSpans": [{"scopeSpans": [{"spans": [span | {"attributes": attributes}]}]}]}


if __name__ == "__main__":
    main()
