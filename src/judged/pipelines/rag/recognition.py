"""Recognize answers of RAG systems for `judged check FILE`."""

from __future__ import annotations

from pathlib import Path

from judged.data.identify import FileContent
from judged.errors import InputError
from judged.pipelines.rag.readers import is_trace, read_responses


def recognize(path: str) -> FileContent | None:
    """Return the content of a file with traces, or with answers and their contexts, references, or citations."""
    try:
        if is_trace(Path(path)):
            commands = (f"judged traces check {path}", f"judged traces funnel QRELS {path}", f"judged rag check {path}")
            return FileContent(path, "traces", {}, commands)
        responses = read_responses(path)
    except InputError:
        return None
    answers = responses["answers"]
    if not answers.num_rows or not any(responses[name].num_rows for name in ("context", "references", "citations")):
        return None
    counts = {"answer": answers.num_rows, "topic": len(answers["query_id"].unique())}
    commands = (f"judged rag evaluate {path}", f"judged rag check {path}", f"judged rag waterfall {path}")
    return FileContent(path, "answers", counts, commands)
