"""`evaluate`: from answers and measures to scores."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.files import FileHash
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.rag.responses import FAILED, SHARES, TABLES, VERDICTS, VITAL, Responses, verdict_shares
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges, versions
from judged.scoring.evaluation.inputs import apply_conditions, measures_of, select_topics
from judged.scoring.evaluation.notes import few_topics_note, name_measures
from judged.scoring.evaluation.scores import Scores
from judged.scoring.judging import judge
from judged.scoring.judging.answers import JudgedAnswers, Verdicts
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.uncertainty.unjudged import unjudged_range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.measures.base import Measure

    Key = tuple[Any, ...]


def answered_of(responses: Responses, run: str, qrels: Qrels | None = None) -> JudgedAnswers:
    """Collect the pieces of what one system answered, over all topics of the tables.

    An answer that abstained, or that there is not, says no nugget and has no sentence to support. With an empty
    context nothing is grounded, whoever says otherwise. Support by documents that a sentence does not cite counts
    nowhere. Without qrels, documents that hold a nugget have grade 1.
    """
    own, topics = responses.of_run(run), responses.query_ids
    place = {topic: at for at, topic in enumerate(topics)}
    size = len(topics)
    answers = {row["query_id"]: row for row in own["answers"].to_pylist()}
    rows = [answers.get(topic, {}) for topic in topics]
    given = np.array([bool(row) for row in rows], dtype=np.bool_)
    abstained = _numbers(row.get("abstained") for row in rows)
    silent = ~given | (abstained == 1)
    references = responses["references"].to_pylist()
    said = {row["query_id"]: row["answerable"] for row in references if row["answerable"] is not None}
    answerable = _numbers(said.get(topic) for topic in topics)
    correct = verdict_shares(own["correctness"], "query_id")
    right = {row["query_id"] for row in references if row["text"] is not None}
    referenced = np.array([topic in right or (topic,) in correct for topic in topics], dtype=np.bool_)
    correctness = _looked_up(correct, range(size), [(topic,) for topic in topics])
    referenced &= ~(correctness.is_missing & silent & (answerable == 0))

    nuggets = responses["nuggets"].sort_by([("query_id", "ascending"), ("nugget_id", "ascending")]).to_pylist()
    nugget_keys = [(row["query_id"], row["nugget_id"]) for row in nuggets]
    assigned = verdict_shares(own["assignments"], "query_id", "nugget_id")
    carried = _looked_up(assigned, [place[topic] for topic, _ in nugget_keys], nugget_keys)

    sentences = [
        key for key in own.keys("sentences", "query_id", "sentence") if not silent[place[key[0]]]
    ]  # what abstains claims nothing
    row_of = {key: at for at, key in enumerate(sentences)}
    support = verdict_shares(own["support"], "query_id", "sentence", "doc_id")
    grounded = _looked_up(support, [place[topic] for topic, _ in sentences], [(*key, "") for key in sentences])
    contexts = set(own["context"]["query_id"].to_pylist())
    empty = np.array([bool(contexts) and topic not in contexts for topic, _ in sentences], dtype=np.bool_)
    cited = [key for key in own.keys("citations", "query_id", "sentence", "place", "doc_id") if key[:2] in row_of]
    pairs = _looked_up(support, [place[key[0]] for key in cited], [(key[0], key[1], key[3]) for key in cited])

    documents, grades, ranks = _documents(own, responses, qrels)
    at = {key: number for number, key in enumerate(documents)}
    held = [
        (nugget, document)
        for nugget, document in (
            (key[:2], (key[0], key[2])) for key in responses.keys("evidence", "query_id", "nugget_id", "doc_id")
        )
        if document in at
    ]
    number_of = {key: number for number, key in enumerate(nugget_keys)}
    known = {(topic, document) for topic, _, _, document in cited}
    grade = np.array([grades.get(key, np.nan) for key in documents], dtype=np.float64)
    return JudgedAnswers(
        query_ids=topics,
        name=run,
        has_answer=given,
        abstained=abstained,
        answerable=answerable,
        words=_numbers(None if (text := row.get("text")) is None else len(text.split()) for row in rows),
        correctness=correctness.replace_where(correctness.is_missing & silent, 0.0),
        has_reference=referenced,
        nuggets=carried.replace_where(carried.is_missing & silent[carried.topic], 0.0),
        vital=np.array([row["importance"] == VITAL for row in nuggets], dtype=np.bool_),
        grounded=grounded.replace_where(empty, 0.0),
        citations=pairs,
        sentence=_whole(row_of[key[:2]] for key in cited),
        citation_position=_whole(_counted(key[:2] for key in cited)),
        document_topic=_whole(place[topic] for topic, _ in documents),
        grade=grade,
        is_judged=~np.isnan(grade),
        rank=_whole(ranks.get(key, 0) for key in documents),
        cited=np.array([key in known for key in documents], dtype=np.bool_),
        evidence_nugget=_whole(number_of[nugget] for nugget, _ in held),
        evidence_document=_whole(at[document] for _, document in held),
        judged_kinds=asked(responses),
        highest=max([1.0, *grades.values()]),
        names={
            "answers": topics,
            "nuggets": [nugget for _, nugget in nugget_keys],
            "sentences": [str(sentence) for _, sentence in sentences],
            "citations": [f"{sentence}: {document}" for _, sentence, _, document in cited],
            "documents": [document for _, document in documents],
        },
    )


def asked(responses: Responses) -> frozenset[str]:
    """Tell of which pieces somebody was asked at all."""
    documents = set(responses["support"]["doc_id"].unique().to_pylist())
    found = {
        "nuggets": responses["assignments"].num_rows,
        "correctness": responses["correctness"].num_rows,
        "grounded": "" in documents,
        "citations": documents - {""},
    }
    return frozenset(name for name, there in found.items() if there)


def evidence_qrels(responses: Responses) -> Qrels | None:
    """Make judgments of the evidence: a document that holds a nugget has grade 1; None where there is no evidence."""
    grades: dict[str, dict[str, int]] = {}
    for topic, document in responses.keys("evidence", "query_id", "doc_id"):
        grades.setdefault(topic, {})[document] = 1
    return Qrels.of(grades, name="evidence") if grades else None


def _documents(
    own: Responses, responses: Responses, qrels: Qrels | None
) -> tuple[list[tuple[str, str]], dict[tuple[str, str], float], dict[tuple[str, str], int]]:
    """List the documents by topic, with their grades and their ranks in the context, where they have one."""
    judgments = evidence_qrels(responses) if qrels is None else qrels
    grades: dict[tuple[str, str], float] = {}
    if judgments is not None:
        wanted = pa.array(responses.query_ids, pa.string())
        table = judgments.table.filter(pc.is_in(judgments.table["query_id"], value_set=wanted))
        for topic, document, grade in zip(
            *(table[name].to_pylist() for name in ("query_id", "doc_id", "relevance")), strict=True
        ):
            grades[topic, document] = max(float(grade), grades.get((topic, document), -np.inf))
    shown = [(topic, document) for topic, _, document in own.keys("context", "query_id", "rank", "doc_id")]
    ranks = dict(zip(shown, _counted(topic for topic, _ in shown), strict=True))
    cited = {(topic, document) for topic, document in own.keys("citations", "query_id", "doc_id")}
    evidence = {(topic, document) for topic, document in responses.keys("evidence", "query_id", "doc_id")}
    return sorted({*grades, *ranks, *cited, *evidence}), grades, ranks


def _looked_up(verdicts: Mapping[Key, tuple[float, ...]], topic: Iterable[int], keys: Sequence[Key]) -> Verdicts:
    nothing = (np.nan,) * len(SHARES)
    shares = np.array([verdicts.get(key, nothing) for key in keys], dtype=np.float64).reshape(-1, len(SHARES))
    return Verdicts(_whole(topic), *shares.T)


def _counted(groups: Iterable[object]) -> list[int]:
    """Number what belongs to each group from 1, in its order.

    >>> _counted("aab")
    [1, 2, 1]
    """
    counts: Counter[object] = Counter()
    return [counts[group] for group in groups if not counts.update((group,))]


def _numbers(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _whole(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


_CALLED = {
    "nuggets": ("nugget", "nuggets"),
    "citations": ("cited pair", "cited pairs"),
    "grounded": ("sentence with its context", "sentences with their context"),
    "correctness": ("answer", "answers"),
}


def notes_of_answers(
    lists: Sequence[JudgedAnswers], responses: Responses, measures: Sequence[Measure], values: Floats, *, evidence: bool
) -> tuple[Note, ...]:
    """Say what changes how scores are to be read; `evidence`: it stood in for judgments of documents."""
    notes = [Note("few-topics", few)] if (few := few_topics_note(len(responses.query_ids))) else []
    if evidence and responses["evidence"].num_rows:
        text = "no qrels: documents that hold a nugget count as relevant, and others as unjudged"
        notes.append(Note("evidence-as-qrels", text))
    for at, answered in enumerate(lists):
        own = responses.of_run(answered.name)
        notes += [Note(rule, text, answered.name) for rule, text in _of_system(answered, own) if text]
        notes += [Note(rule, text, answered.name) for rule, text in _left_out(answered, measures, values[at])]
        if not any((~answered.verdicts_on(name).is_missing).any() for name in answered.judged_kinds):
            text = "nothing was measured by verdicts: there is none on its answers"
            notes.append(Note("nothing-judged", text, answered.name, severity="error"))
    return tuple(notes)


def _of_system(answered: JudgedAnswers, own: Responses) -> Iterator[tuple[str, str]]:
    topics = np.array(answered.query_ids, dtype=object)
    if (~answered.has_answer).any():
        missing = topics[~answered.has_answer].tolist()
        text = (
            f"no answer to {len(missing)} of {len(topics)} topics; it says none of their nuggets: {first_few(missing)}"
        )
        yield "missing-topics", text
    opened = [
        f"{int(opened.sum())} of {counted(len(opened), *_CALLED[name])}"
        for name in sorted(answered.judged_kinds)
        if (opened := _countable(answered, name)).any()
    ]
    failed = sum(int(np.count_nonzero(np.array(own[name]["verdict"].to_pylist()) == FAILED)) for name in VERDICTS)
    if opened:
        tried = f"; {counted(failed, 'verdict')} failed" if failed else ""
        yield "unjudged", f"no verdict on {', '.join(opened)}{tried}; they are left out, and bounded"
    contexts = {*own["context"]["query_id"].to_pylist()}
    if contexts and (bare := [topic for topic in topics[answered.has_answer].tolist() if topic not in contexts]):
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


def _countable(answered: JudgedAnswers, name: str) -> Bools:
    """Mark the pieces without a verdict, among those that need one."""
    opened = answered.verdicts_on(name).is_missing
    return opened[answered.has_reference] if name == "correctness" else opened


def _left_out(answered: JudgedAnswers, measures: Sequence[Measure], values: Floats) -> Iterator[tuple[str, str]]:
    """Say which topics measures leave out: those that leave out the same together."""
    by_topics: dict[tuple[int, ...], list[Measure]] = {}
    for measure, scores in zip(measures, values, strict=True):
        if (left := np.flatnonzero(np.isnan(scores))).size:
            by_topics.setdefault(tuple(left.tolist()), []).append(measure)
    parts = [
        f"by {name_measures(alike)} {first_few([answered.query_ids[topic] for topic in left])}"
        for left, alike in by_topics.items()
    ]
    if parts:
        text = f"left out, of {len(answered)} topics, with nothing to score or no verdict"
        yield "topics-left-out", f"{text}: {'; '.join(parts)}"


_SHARED = ("nuggets", "evidence", "references")


@with_parameter_hints
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
        kept, notes = select_topics(given.query_ids, where, attributes)
        given = given.of_topics(kept)
    judgments = evidence_qrels(given) if qrels is None else Qrels.of(qrels)
    wanted = measures_of(default_measures(given, judgments) if measures is None else measures, rel=rel)
    plain = tuple(dict.fromkeys(measure.without_condition for measure in wanted))
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
    return apply_conditions(scores, wanted, attributes)


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


def _scored(
    measure: Measure, answered: JudgedAnswers, given: Responses, qrels: Qrels | None, *, unjudged: bool
) -> _Scored:
    """Score by a measure of answers, or the context by one of rankings, where topics without judgments are left out."""
    if isinstance(measure, AnswerMeasure):
        scores, share = measure(answered), measure.decided_share(answered)
        ends = measure.score_bounds(answered) if unjudged else (scores, scores)
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


def _run_facts(answered: JudgedAnswers, given: Responses) -> RunFacts:
    own = given.of_run(answered.name)
    verdicts = sum(int((~answered.verdicts_on(name).is_missing).sum()) for name in sorted(answered.judged_kinds))
    return RunFacts(
        name=answered.name,
        path=given.where,
        file_hash=FileHash(digest=_digest(own, [name for name in TABLES if name not in _SHARED])),
        returned_topics=int(answered.has_answer.sum()),
        missing_topics=tuple(np.array(answered.query_ids, dtype=object)[~answered.has_answer].tolist()),
        extra_topics=0,
        returned_judged=verdicts + int((answered.is_judged & ((answered.rank > 0) | answered.cited)).sum()),
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
