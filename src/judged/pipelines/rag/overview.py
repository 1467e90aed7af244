"""Scores of systems side by side, and tables about the input: content, scores of other tools, unavailable measures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from judged.comparison.answer import AnswerOfScores
from judged.comparison.choices import Choices
from judged.comparison.compare import untested_comparison
from judged.comparison.pair import pair_columns, verdict_columns
from judged.pipelines.rag.scoring import evidence_qrels, unavailable_measures
from judged.results import COUNT, NUMBER, TEXT, Axis, Column, Headline, Section, Sentences, Table, columns_of
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.data.qrels import Qrels
    from judged.pipelines.rag.responses import Responses
    from judged.results import Block, Status
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Scores

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


@dataclass(frozen=True, eq=False, repr=False)
class SystemScores(AnswerOfScores):
    """Scores of systems: a row for each measure, and differences from the first system with tests.

    Attributes
    ----------
    scores : Scores
        Result of `judged.pipelines.rag.evaluate`.

    Examples
    --------
    >>> from judged.pipelines.rag import evaluate
    >>> tables = {"answers": [{"query_id": "q", "text": "It is 7."}]}
    >>> SystemScores(evaluate(tables)).headline.word
    'not compared'
    """

    kind: ClassVar[str] = "scores"
    main: ClassVar[str] = "results"

    scores: Scores
    notes: tuple[Note, ...] = ()

    @cached_property
    def comparison(self) -> Comparison:
        """All systems against the first one, with Holm's correction over all measures; one system has no tests."""
        if len(self.scores.runs) == 1:
            return untested_comparison(self.scores, Choices())
        return self.scores.compare(baseline=self.scores.run_names[0], family="all")

    @property
    def headline(self) -> Headline:
        """The first measure: of the only system, or the second system compared with the first one."""
        first = self.comparison.measures[0]
        if first.pairs:
            return first.headline(first.pairs[0])
        (estimate, *_) = first.estimates
        axis = Axis(0.0, 1.0) if first.measure.properties.bounds == (0.0, 1.0) else None
        sentence = f"Mean over {len(self.scores.query_ids)} topics; only one system has answers."
        return Headline("info", "not compared", sentence, first.name, estimate.value, ci=estimate.ci, axis=axis)

    def blocks(self) -> tuple[Block, ...]:
        """Return the measures with bounds from 0 to 1, other measures, intervals by system, and all numbers."""
        bounded, others = [], []
        for measure in self.comparison.measures:
            (bounded if measure.measure.properties.bounds == (0.0, 1.0) else others).append(measure)
        tables = [
            self._table(name, title, rows)
            for name, title, rows in (
                ("shares", "Measures from 0 to 1", bounded),
                ("amounts", "Other measures", others),
            )
            if rows
        ]
        summary, data, *_ = self.scores.blocks()
        means = replace(summary, folded=True, title="Means with intervals and bounds, by system")
        return (
            Sentences((f"{self.comparison.caption}.",)),
            Section("scores", "By measure", tuple(tables)),
            means,
            data,
            Table("pairs", pair_columns(self.comparison.pairs), only="data"),
        )

    def _table(self, name: str, title: str, measures: list[MeasureComparison]) -> Table:
        baseline, systems = self.scores.run_names[0], len(self.scores.runs)
        rows: list[tuple[MeasureComparison, Pair | None]] = [
            (measure, pair) for measure in measures for pair in measure.pairs or (None,)
        ]
        values = {
            (measure.name, estimate.run): estimate.value for measure in measures for estimate in measure.estimates
        }
        firsts = [measure.estimates[0] for measure, _ in rows]
        axis = Axis(0.0, 1.0) if name == "shares" else None
        columns = [
            Column("measure", [measure.name for measure, _ in rows], TEXT),
            Column(
                "first",
                [first.value for first in firsts],
                NUMBER,
                baseline,
                ci=[first.ci for first in firsts],
                axis=axis if systems == 1 else None,
            ),
        ]
        if systems > 1:
            pairs = [pair for _, pair in rows]
            headlines = [pair and measure.headline(pair) for measure, pair in rows]
            seconds = [values[measure.name, pair.second] if pair else math.nan for measure, pair in rows]
            statuses: list[Status] = [headline.status if headline else "unknown" for headline in headlines]
            differences = [pair.shown_difference if pair else math.nan for pair in pairs]
            difference, p, won, _ = verdict_columns(pairs, differences, "difference", "adjusted p", "not tested")
            words = [headline.word if headline else "not tested" for headline in headlines]
            columns = [
                columns[0],
                Column(
                    "run",
                    [pair.second if pair else "" for pair in pairs],
                    TEXT,
                    "system",
                    only="" if systems > 2 else "data",
                ),
                replace(columns[1], ci=None),
                Column("second", seconds, NUMBER, self.scores.run_names[1] if systems == 2 else "score"),
                replace(
                    difference, axis=Axis.over(differences, difference.ci or (), "CI", 0.0), mark=(), statuses=statuses
                ),
                Column("result", words, TEXT, statuses=statuses),
                p,
                won,
            ]
        return Table(name, tuple(columns), title, labels=1 + (systems > 2), only="people")
