"""What a reader of scores of answers should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.pipelines.rag.responses import FAILED, VERDICTS
from judged.results.decimals import counted
from judged.results.notes import Note, first_few
from judged.scoring.evaluation.notes import few_note, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged._types import Bools, Floats
    from judged.pipelines.rag.responses import Responses
    from judged.scoring.judging.answered import Answered
    from judged.scoring.measures.base import Measure

_CALLED = {
    "nuggets": ("nugget", "nuggets"),
    "citations": ("cited pair", "cited pairs"),
    "grounded": ("sentence with its context", "sentences with their context"),
    "correctness": ("answer", "answers"),
}


def notes_of_answers(
    lists: Sequence[Answered], responses: Responses, measures: Sequence[Measure], values: Floats, *, evidence: bool
) -> tuple[Note, ...]:
    """Say what changes how scores are to be read; `evidence`: it stood in for judgments of documents."""
    notes = [Note("few-topics", few)] if (few := few_note(len(responses.query_ids))) else []
    if evidence and responses["evidence"].num_rows:
        text = "no qrels: documents that hold a nugget count as relevant, and others as unjudged"
        notes.append(Note("evidence-as-qrels", text))
    for at, answered in enumerate(lists):
        own = responses.of_run(answered.name)
        notes += [Note(rule, text, answered.name) for rule, text in _of_system(answered, own) if text]
        notes += [Note(rule, text, answered.name) for rule, text in _left_out(answered, measures, values[at])]
        if not any((~answered.verdicts_on(name).open).any() for name in answered.asked):
            text = "nothing was measured by verdicts: there is none on its answers"
            notes.append(Note("nothing-judged", text, answered.name, severity="error"))
    return tuple(notes)


def _of_system(answered: Answered, own: Responses) -> Iterator[tuple[str, str]]:
    topics = np.array(answered.query_ids, dtype=object)
    if (~answered.given).any():
        missing = topics[~answered.given].tolist()
        text = (
            f"no answer to {len(missing)} of {len(topics)} topics; it says none of their nuggets: {first_few(missing)}"
        )
        yield "missing-topics", text
    opened = [
        f"{int(opened.sum())} of {counted(len(opened), *_CALLED[name])}"
        for name in sorted(answered.asked)
        if (opened := _countable(answered, name)).any()
    ]
    failed = sum(int(np.count_nonzero(np.array(own[name]["verdict"].to_pylist()) == FAILED)) for name in VERDICTS)
    if opened:
        tried = f"; {counted(failed, 'verdict')} failed" if failed else ""
        yield "unjudged", f"no verdict on {', '.join(opened)}{tried}; they are left out, and bounded"
    contexts = {*own["context"]["query_id"].to_pylist()}
    if contexts and (bare := [topic for topic in topics[answered.given].tolist() if topic not in contexts]):
        yield (
            "empty-context",
            f"an empty context for {counted(len(bare), 'answer')}; nothing is grounded: {first_few(bare)}",
        )
    shown, cited, judged = (set(own.keys(name, "query_id", "doc_id")) for name in ("context", "citations", "support"))
    if contexts and (outside := cited - shown):
        yield "cited-outside-context", f"{counted(len(outside), 'cited document')} did not stand in the context"
    if foreign := {pair for pair in judged - cited - shown if pair[1]}:
        text = f"support was judged by {counted(len(foreign), 'document')} that no sentence cites and the context lacks"
        yield "foreign-support", f"{text}; these verdicts count nowhere"


def _countable(answered: Answered, name: str) -> Bools:
    """Mark the pieces without a verdict, among those that need one."""
    opened = answered.verdicts_on(name).open
    return opened[answered.referenced] if name == "correctness" else opened


def _left_out(answered: Answered, measures: Sequence[Measure], values: Floats) -> Iterator[tuple[str, str]]:
    """Say which topics measures leave out: those that leave out the same together."""
    by_topics: dict[tuple[int, ...], list[Measure]] = {}
    for measure, scores in zip(measures, values, strict=True):
        if (left := np.flatnonzero(np.isnan(scores))).size:
            by_topics.setdefault(tuple(left.tolist()), []).append(measure)
    parts = [
        f"by {named(alike)} {first_few([answered.query_ids[topic] for topic in left])}"
        for left, alike in by_topics.items()
    ]
    if parts:
        text = f"left out, of {len(answered)} topics, with nothing to score or no verdict"
        yield "topics-left-out", f"{text}: {'; '.join(parts)}"
