"""How long it takes to record a document, and to read a million of them from spans: ``traces.py [DOCUMENTS]``.

Each reading is a process of its own; CPU seconds and peak memory are the whole process's, imports included.
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

A_TRACE = 100


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        traces = read_traces(sys.argv[2])
        count = sum(len(span.documents or ()) for span in traces.spans)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(f"{count:,} documents, {used.ru_utime + used.ru_stime:.1f} s of CPU, {used.ru_maxrss / 1024:.0f} MB")
        return
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _record(folder / "recorded", total // 10)
        for layout, write in {"openinference, flat": _flat, "opentelemetry": _structured, "otlp": _otlp}.items():
            path = folder / "spans"
            with path.open("w") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in write(total // A_TRACE))
            done = subprocess.run(
                [sys.executable, __file__, "read", str(path)], capture_output=True, text=True, check=True
            )
            print(f"{layout} ({path.stat().st_size / 1e6:.0f} MB): {done.stdout.strip()}")


def _record(path: Path, total: int) -> None:
    recorder = Recorder(path)
    documents = [(f"document-{at}", 1 / (at + 1)) for at in range(A_TRACE)]
    start = time.perf_counter()
    for at in range(total // A_TRACE):
        with recorder.query(f"q{at}", "some words") as trace:
            trace.stage("bm25", "candidates", documents)
    took = 1e6 * (time.perf_counter() - start)
    print(f"recorded: {took / total:.2f} microseconds a document, {A_TRACE * took / total:.0f} a trace of {A_TRACE}")


def _spans(traces: int, attributes: Callable[[int], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for at in range(traces):
        ids = {"trace_id": f"{at:032x}", "span_id": f"{at:016x}"}
        yield {"name": "search", "context": ids, "parent_id": None, "attributes": attributes(at)}


def _flat(traces: int) -> Iterator[dict[str, Any]]:
    def attributes(at: int) -> dict[str, Any]:
        known: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": f"words {at}"}
        for place in range(A_TRACE):
            prefix = f"retrieval.documents.{place}.document"
            known[f"{prefix}.id"] = f"document-{at}-{place}"
            known[f"{prefix}.score"] = 1 / (place + 1)
            known[f"{prefix}.content"] = "some words of a document " * 8
        return known

    return _spans(traces, attributes)


def _structured(traces: int) -> Iterator[dict[str, Any]]:
    def attributes(at: int) -> dict[str, Any]:
        documents = [{"id": f"document-{at}-{place}", "score": 1 / (place + 1)} for place in range(A_TRACE)]
        known = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": f"words {at}"}
        return known | {"gen_ai.retrieval.documents": json.dumps(documents)}

    return _spans(traces, attributes)


def _otlp(traces: int) -> Iterator[dict[str, Any]]:
    """One batch a line, as the collector writes files."""
    for row in _flat(traces):
        values = ((key, "doubleValue" if isinstance(one, float) else "stringValue", one)
                  for key, one in row["attributes"].items())  # fmt: skip
        attributes = [{"key": key, "value": {kind: one}} for key, kind, one in values]
        span = {"name": "search", "traceId": row["context"]["trace_id"], "spanId": row["context"]["span_id"]}
        yield {"resourceSpans": [{"scopeSpans": [{"spans": [span | {"attributes": attributes}]}]}]}


if __name__ == "__main__":
    main()
