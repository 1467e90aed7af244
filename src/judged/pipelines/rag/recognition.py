"""Recognize answers of RAG systems for `judged check FILE`."""

from __future__ import annotations

from judged.data.identify import FileContent
from judged.errors import InputError
from judged.pipelines.rag.readers import read_responses


def recognize(path: str) -> FileContent | None:
    """Return the content of a file with answers and their contexts, references, or citations; else None."""
    try:
        responses = read_responses(path)
    except InputError:
        return None
    answers = responses["answers"]
    if not answers.num_rows or not any(responses[name].num_rows for name in ("context", "references", "citations")):
        return None
    counts = {"answer": answers.num_rows, "topic": len(answers["query_id"].unique())}
    commands = (f"judged rag evaluate {path}", f"judged rag check {path}", f"judged rag waterfall {path}")
    return FileContent(path, "answers", counts, commands)
