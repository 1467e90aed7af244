"""`evaluate`: from answers and measures to scores."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.rag.answered import answered_of, asked, evidence_qrels
from judged.pipelines.rag.responses import FAILED, TABLES, VERDICTS, Responses
from judged.results.decimals import counted
from judged.results.notes import Note, first_few
from judged.results.spelling import hinting
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges, versions
from judged.scoring.evaluation.inputs import measures_of, topics_where, where_asked
from judged.scoring.evaluation.notes import few_note, named
from judged.scoring.evaluation.scores import Scores
from judged.scoring.judging import judge
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.uncertainty.unjudged import unjudged_range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from judged.results.types import Bools, Floats
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


_SHARED = ("nuggets", "evidence", "references")


@hinting
def evaluate(
    responses: Any,
    measures: Any = None,
    *,
    qrels: Any = None,
    unjudged: bool = True,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
) -> Scores:
    """Score answers: what they say, what they cite, and what stood in their context.

    Parameters
    ----------
    responses
        `Responses`, tables by name, a path; or a list of these, whose systems stand beside each other.
    measures
        Measures or names, one or several; None: those that the tables allow. A measure of rankings, such as ``R@10``,
        scores the context as a ranking.
    qrels
        Judgments of documents, as `evaluate` takes them. None: documents that hold a nugget (`evidence`) are relevant.
    unjudged
        Whether the least and the greatest score that missing and failed verdicts leave open stand beside each score.
    rel, attributes, where
        As for `judged.evaluate`.

    Returns
    -------
    Scores
        Over all topics that some system answered, or that have nuggets or a reference. Scores rest on what is judged;
        a topic where nothing is, or where there is nothing to score, is left out, and a note says so.

    Raises
    ------
    InputError
        If something cannot be read, or a measure needs a table that there is not.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> made = {
    ...     "answers": [{"query_id": "q", "text": "It is 7."}],
    ...     "nuggets": [{"query_id": "q", "nugget_id": n, "importance": "vital"} for n in "123"],
    ...     "assignments": [{"query_id": "q", "nugget_id": n, "verdict": v}
    ...                     for n, v in (("1", "support"), ("2", "not"), ("3", "failed"))]}
    >>> scores = evaluate(made, "NuggetRecall")
    >>> scores.value("NuggetRecall"), scores.ranges[0].low.round(3).item(), scores.ranges[0].high.round(3).item()
    (0.5, 0.333, 0.667)
    """
    given = Responses.of(responses)
    notes: tuple[Note, ...] = ()
    if where is not None:
        kept, notes = topics_where(given.query_ids, where, attributes)
        given = given.of_topics(kept)
    judgments = evidence_qrels(given) if qrels is None else Qrels.of(qrels)
    wanted = measures_of(default_measures(given, judgments) if measures is None else measures, rel=rel)
    plain = tuple(dict.fromkeys(measure.everywhere for measure in wanted))
    shape = (len(given.run_names), len(plain), len(given.query_ids))
    values, low, high = (np.full(shape, np.nan) for _ in range(3))
    kind, shares = np.full(shape, "exact", dtype="<U7"), np.full(shape[:2], np.nan)
    lists = [answered_of(given, run, judgments) for run in given.run_names]
    for at, answered in enumerate(lists):
        for row, measure in enumerate(plain):
            place, found = (at, row), _scored(measure, answered, given, judgments, unjudged=unjudged)
            values[place], low[place], high[place], kind[place], shares[place] = found
    runs = tuple(_run_facts(answered, given) for answered in lists)
    grades = any(not isinstance(measure, AnswerMeasure) or hasattr(measure, "rel") for measure in plain)
    ranges = (TopicRanges("unjudged", low, high, kind, shares),) if unjudged else ()
    scores = Scores(
        runs=runs,
        measures=plain,
        query_ids=given.query_ids,
        values=values,
        counted=np.ones((shape[0], shape[2]), dtype=np.bool_),
        policies=Policies(),
        qrels=_facts(given, judgments, where or ""),
        notes=(*given.notes, *notes, *notes_of_answers(lists, given, plain, values, evidence=qrels is None and grades)),
        versions=versions(),
        ranges=ranges,
    )
    return where_asked(scores, wanted, attributes)


_DEFAULTS = (
    (("NuggetRecall", "NuggetRecall(vital=true,partial=0)"), "nuggets"),
    (("SupportP", "SupportR"), "citations"),
    (("Groundedness",), "grounded"),
    (("Correctness",), "correctness"),
    (("RightAbstention", "WrongAbstention"), "answerable"),
    (("SetR", "nDCG@10"), "context"),
    (("CitationRecall",), "cited"),
    (("AnswerLength",), "answers"),
)


def default_measures(responses: Responses, qrels: Qrels | None) -> list[str]:
    """Name the measures that the tables allow.

    >>> default_measures(Responses.of({"answers": [{"query_id": "q"}]}), None)
    ['AnswerLength']
    """
    known = responses["references"]["answerable"]
    of_documents = {"context": "context", "cited": "citations"} if qrels is not None else {}
    there = {"answers", *asked(responses), *(name for name, table in of_documents.items() if responses[table].num_rows)}
    return usual_measures(there | {"answerable"} if known.null_count < len(known) else there)


def usual_measures(there: Collection[str]) -> list[str]:
    """Name the measures of what there is: verdicts on pieces, as `asked` names them, and tables."""
    return [name for names, needed in _DEFAULTS if needed in there for name in names]


class _Scored(NamedTuple):
    """What one measure says of one system: by topic, but for the last."""

    values: Floats
    low: Floats
    high: Floats
    kind: Any
    share: float  # of what it looks at, how much is judged


def _scored(measure: Measure, answered: Answered, given: Responses, qrels: Qrels | None, *, unjudged: bool) -> _Scored:
    """Score by a measure of answers, or the context by one of rankings, where topics without judgments are left out."""
    if isinstance(measure, AnswerMeasure):
        scores, share = measure(answered), measure.decided(answered)
        ends = measure.reach(answered) if unjudged else (scores, scores)
        return _Scored(scores, *ends, "exact" if measure.exact else "outer", share)
    if qrels is None or not given["context"].num_rows:
        needs, fix = (
            ("judgments of documents", "give qrels, or a table `evidence`")
            if qrels is None
            else ("a table `context`", "give the passages that the generator was given")
        )
        raise InputError(f"{measure} scores the context as a ranking, and needs {needs}", fix=fix, path=given.where)
    judged = judge(qrels.over(set(qrels.topics) & set(answered.query_ids)), given.run("context", answered.name))
    place = {topic: at for at, topic in enumerate(answered.query_ids)}
    columns = [place[topic] for topic in judged.query_ids]

    def wide(part: Any, empty: Any = np.nan) -> Any:
        spread = np.full(len(answered), empty, dtype=np.asarray(part).dtype)
        spread[columns] = part
        return spread

    values, shown = measure(judged), int(judged.returned.sum())
    share = len(judged.topic) / shown if shown else np.nan
    if not unjudged:
        return _Scored(wide(values), wide(values), wide(values), "exact", share)
    span = unjudged_range(judged, measure)
    return _Scored(wide(values), wide(span.low), wide(span.high), wide(span.kind, "exact"), share)


def _run_facts(answered: Answered, given: Responses) -> RunFacts:
    own = given.of_run(answered.name)
    verdicts = sum(int((~answered.verdicts_on(name).open).sum()) for name in sorted(answered.asked))
    return RunFacts(
        name=answered.name,
        path=given.where,
        sha256=_digest(own, [name for name in TABLES if name not in _SHARED]),
        returned_topics=int(answered.given.sum()),
        missing_topics=tuple(np.array(answered.query_ids, dtype=object)[~answered.given].tolist()),
        extra_topics=0,
        returned_judged=verdicts + int((answered.known & ((answered.rank > 0) | answered.cited)).sum()),
    )


def _facts(given: Responses, qrels: Qrels | None, where: str) -> QrelsFacts:
    """Tell what scores are measured by: nuggets, evidence and references, and the judgments of documents."""
    digest = _digest(given, _SHARED)
    if qrels is not None:
        known = qrels.sha256 or _digest_of(qrels.table.to_pylist())
        digest = hashlib.sha256(f"{digest}{known}".encode()).hexdigest()
    grades = () if qrels is None else tuple(sorted(set(qrels.grades.tolist())))
    judgments = sum(given[name].num_rows for name in ("nuggets", "references"))
    return QrelsFacts(given.name, given.where, digest, len(given.query_ids), judgments, grades, where)


def _digest(given: Responses, names: Sequence[str]) -> str:
    return _digest_of([sorted(map(str, given[name].to_pylist())) for name in names])


def _digest_of(rows: Any) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
