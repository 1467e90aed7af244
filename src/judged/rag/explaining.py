"""Where a score of an answer comes from: its pieces, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.answer import NUMBER, TEXT, Answer, Column, Sentences, Table
from judged.data.qrels import Qrels
from judged.decimals import counted, decimal
from judged.errors import InputError
from judged.explanation import explain as explain_ranking
from judged.measures.base import AnswerMeasure
from judged.measures.grammar import parse
from judged.rag.answered import answered_of, evidence_qrels
from judged.rag.responses import Responses
from judged.spelling import hinting

if TYPE_CHECKING:
    from judged.answer import Block
    from judged.measures.base import Measure

_TEXTS = {
    "nuggets": ("nuggets", "nugget_id"),
    "sentences": ("sentences", "sentence"),
    "citations": ("sentences", "sentence"),
    "documents": ("context", "doc_id"),
}


@dataclass(frozen=True, eq=False, repr=False)
class AnswerExplanation(Answer):
    """The pieces of one answer, and what they add up to; its main table has one piece a row."""

    kind: ClassVar[str] = "answer_explanation"

    measure: Measure
    query_id: str
    run: str
    score: float
    pieces: Table
    sum: str  # the calculation

    def blocks(self) -> tuple[Block, ...]:
        """Give the pieces, and the calculation."""
        return self.pieces, Sentences((self.sum,))

    def facts(self) -> dict[str, Any]:
        """Give what is explained, and the score."""
        return {"measure": str(self.measure), "query_id": self.query_id, "run": self.run, "score": self.score}


@hinting
def explain(responses: Any, measure: Any, *, topic: str, run: str | None = None, qrels: Any = None) -> Answer:
    """Show how a measure comes to its score for the answer to one topic.

    Parameters
    ----------
    responses, qrels
        As `judged.rag.evaluate` takes them.
    measure
        A measure or its name; one of rankings is explained for the context, as `judged.explain` does.
    topic
        The query id.
    run
        The system; None where there is only one.

    Returns
    -------
    Answer

    Raises
    ------
    InputError
        If there is no such topic or system, or several systems and none was named.

    Examples
    --------
    >>> made = {
    ...     "answers": [{"query_id": "q", "text": "It is 7."}],
    ...     "nuggets": [{"query_id": "q", "nugget_id": n, "text": f"fact {n}"} for n in "12"],
    ...     "assignments": [{"query_id": "q", "nugget_id": "1", "verdict": "partial"}]}
    >>> print(explain(made, "NuggetRecall", topic="q"))
    == NuggetRecall of topic q, run run ==
    <BLANKLINE>
    nuggets  text     value  weight
    1        fact 1  0.5000  1.0000
    2        fact 2       -  1.0000
    <BLANKLINE>
    NuggetRecall = sum of weight * value / sum of weights = 0.5000 / 1.0000 = 0.5000; 1 without a
    verdict is left out
    """
    given = Responses.of(responses)
    systems = list(given.run_names)
    if run is None and len(systems) > 1:
        raise InputError("there are several systems", fix=f"name one of {', '.join(systems)}")
    name = run or systems[0]
    chosen = given.of_run(name)
    judgments = evidence_qrels(given) if qrels is None else Qrels.of(qrels)
    wanted = parse(measure)
    if topic not in given.query_ids:
        raise InputError(f"there is no topic {topic!r}", fix=f"use one of {', '.join(given.query_ids[:5])}, and so on")
    if not isinstance(wanted, AnswerMeasure):
        return explain_ranking(judgments, chosen.run("context", name), wanted, topic=topic)
    answered = answered_of(given, name, judgments)
    at = answered.query_ids.index(topic)
    of, topics, worth, weight = wanted.pieces(answered)
    rows = np.flatnonzero((topics == at) & (np.asarray(weight) > 0))
    names, texts = [answered.names[of][row] for row in rows.tolist()], _texts(chosen.of_topics([topic]), of)
    said = [texts.get(name, texts.get(name.partition(": ")[0], "")) for name in names]
    columns = [Column(of, names, TEXT), *([Column("text", said, TEXT)] if any(said) else [])]
    columns += [Column(key, part[rows].tolist(), NUMBER) for key, part in (("value", worth), ("weight", weight * 1.0))]
    known = rows[~np.isnan(worth[rows])]
    total, below = float((worth * weight)[known].sum()), float((weight * 1.0)[known].sum())
    score = float(wanted(answered)[at])
    numbers = f"{decimal(total, 4)} / {decimal(below, 4)} = {decimal(score, 4)}" if below else "not defined"
    left = len(rows) - len(known)
    unjudged = f"; {counted(left, 'without a verdict is', 'without a verdict are')} left out" if left else ""
    calculation = f"{wanted} = sum of weight * value / sum of weights = {numbers}{unjudged}"
    table = Table("pieces", tuple(columns), f"{wanted} of topic {topic}, run {name}", labels=len(columns) - 2)
    return AnswerExplanation(wanted, topic, name, score, table, calculation)


def _texts(responses: Responses, of: str) -> dict[str, str]:
    table, key = _TEXTS.get(of, ("answers", "query_id"))
    return {str(row[key]): row["text"] or "" for row in responses[table].to_pylist()}
