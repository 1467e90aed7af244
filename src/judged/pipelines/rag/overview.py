"""Summary of scores of answers with the content of the input, scores of other tools, and unavailable measures."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from judged.data.compute import pc
from judged.pipelines.rag.scoring import evidence_qrels, unavailable_measures
from judged.results import COUNT, NUMBER, TEXT, Column, Table, columns_of
from judged.scoring.evaluation.summary import Summary

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.pipelines.rag.responses import Responses
    from judged.results import Block
    from judged.scoring.evaluation.scores import Scores


@dataclass(frozen=True, eq=False, repr=False)
class AnswerSummary(Summary):
    """Report of scores of answers."""

    overview: tuple[Block, ...] = ()

    def blocks(self) -> tuple[Block, ...]:
        """Return the tables of scores, and those about the input."""
        return (*super().blocks(), *self.overview)


def summarize(
    scores: Scores, responses: Responses, qrels: Qrels | None = None, *, all_measures: bool = False, **options: Any
) -> AnswerSummary:
    """Summarize scores of answers.

    Parameters
    ----------
    scores, responses, qrels
        Scores, and their input.
    all_measures
        Whether to list the default measures that cannot be computed.
    options
        Options of `Scores.summary`.
    """
    blocks: list[Block] = [_content(responses)]
    if responses["tool_scores"].num_rows:
        blocks.append(_tool_scores(responses))
    judgments = evidence_qrels(responses) if qrels is None else qrels
    if all_measures and (rows := unavailable_measures(responses, judgments)):
        names, needed = zip(*rows, strict=True)
        columns = (Column("measures", list(names), TEXT), Column("required", list(needed), TEXT, "requires"))
        blocks.append(Table("unavailable", columns, "Not available", labels=2))
    return AnswerSummary(**vars(scores.summary(**options)), overview=tuple(blocks))


def _content(responses: Responses) -> Table:
    """Count the rows of each system; columns of zeros are omitted."""
    references = set(responses["references"]["query_id"].to_pylist())
    rows: list[dict[str, Any]] = []
    for run in responses.run_names:
        system = responses.of_run(run)
        keys = {name: system.keys("citations", "query_id", *columns) for name, columns in _CITED.items()}
        rows.append(
            {
                "run": run,
                "topics": len(responses.query_ids),
                "answers": len(system),
                "without_answer": len(responses.query_ids) - len(system),
                "abstentions": int(pc.sum(system["answers"]["abstained"]).as_py() or 0),
                "topics_with_reference": len(references),
                "sentences": system["sentences"].num_rows,
                **{name: len(values) for name, values in keys.items()},
                "passages": system["context"].num_rows,
            }
        )
    names = [name for name in rows[0] if name != "run" and any(row[name] for row in rows)]
    return Table("content", columns_of(rows, ("run", TEXT), *((name, COUNT) for name in names)), "Content", folded=True)


_CITED = {
    "sentences_with_citation": ("sentence",),
    "citations": ("sentence", "doc_id"),
    "cited_documents": ("doc_id",),
}


def _tool_scores(responses: Responses) -> Table:
    """Average the scores of other tools by system."""
    groups: dict[tuple[str, str], list[float]] = {}
    for row in responses["tool_scores"].to_pylist():
        groups.setdefault((row["run_id"], row["name"]), []).append(row["score"])
    rows = [
        {"run": run, "name": name, "mean": fmean(scores), "answers": len(scores)}
        for (run, name), scores in groups.items()
    ]
    columns = columns_of(rows, ("run", TEXT), ("name", TEXT), ("mean", NUMBER), ("answers", COUNT))
    note = "means of the numbers in other columns, which judged did not compute and does not test"
    return Table("tool_scores", columns, "Scores of other tools", note, labels=2)
