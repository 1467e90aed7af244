"""Tables about the input of an evaluation of answers: content, scores of other tools, and unavailable measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.pipelines.rag.scoring import evidence_qrels, unavailable_measures
from judged.results import COUNT, NUMBER, TEXT, Table, columns_of

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.pipelines.rag.responses import Responses

_KEYS = {  # of what is counted
    "answers": ("answers", "query_id"),
    "sentences": ("sentences", "query_id", "sentence"),
    "sentences_with_citation": ("citations", "query_id", "sentence"),
    "citations": ("citations", "query_id", "sentence", "doc_id"),
    "cited_documents": ("citations", "query_id", "doc_id"),
    "passages": ("context", "query_id", "doc_id"),
}


def describe_input(responses: Responses, qrels: Qrels | None = None, *, all_measures: bool = False) -> list[Table]:
    """Build the tables ``content``, ``tool_scores``, and, with `all_measures`, ``unavailable``."""
    tables = [_content(responses)]
    if responses["tool_scores"].num_rows:
        tables.append(_tool_scores(responses))
    unavailable = unavailable_measures(responses, evidence_qrels(responses) if qrels is None else qrels)
    if all_measures and unavailable:
        columns = columns_of(unavailable, ("measures", TEXT), ("requires", TEXT))
        tables.append(Table("unavailable", columns, "Not available", labels=2))
    return tables


def _content(responses: Responses) -> Table:
    rows = [
        {
            "run": run,
            **{name: len(responses.of_run(run).keys(*keys)) for name, keys in _KEYS.items()},
            "without_answer": len(responses.query_ids) - len(responses.of_run(run)),
        }
        for run in responses.run_names
    ]
    counts = [(name, COUNT) for name in (*_KEYS, "without_answer")]
    return Table("content", columns_of(rows, ("run", TEXT), *counts), "Content", folded=True)


def _tool_scores(responses: Responses) -> Table:
    groups = responses["tool_scores"].group_by(["run_id", "name"], use_threads=False)
    rows = groups.aggregate([("score", "mean"), ("score", "count")]).rename_columns(["run", "name", "mean", "answers"])
    columns = columns_of(rows.to_pylist(), ("run", TEXT), ("name", TEXT), ("mean", NUMBER), ("answers", COUNT))
    note = "means of the numbers in other columns of the answers; `judged` neither computes nor tests these numbers"
    return Table("tool_scores", columns, "Scores of other tools", note, labels=2)
