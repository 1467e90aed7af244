"""`evaluate`: scores of RAG responses by measures of answers, citations, and contexts."""

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
from judged.pipelines.rag.responses import FAILED, TABLES, VERDICTS, VITAL, Responses, verdict_shares, verdicts_of
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges, versions
from judged.scoring.evaluation.inputs import apply_conditions, measures_of, select_topics
from judged.scoring.evaluation.notes import few_topics_note, name_measures
from judged.scoring.evaluation.scores import Scores
from judged.scoring.judging import judge
from judged.scoring.judging.answers import JudgedAnswers
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.uncertainty.unjudged import unjudged_range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.measures.base import Measure

    Key = tuple[Any, ...]


def answered_of(responses: Responses, run: str, qrels: Qrels | None = None) -> JudgedAnswers:
    """Collect the nuggets, sentences, citations, and documents of one system's answers, over all topics of the tables.

    A missing answer or an abstention covers no nugget and has no sentences. Without a context no sentence is grounded,
    whatever the verdicts are. Verdicts on documents that a sentence does not cite are ignored. Without qrels, documents
    that contain a nugget have grade 1.
    """
    system, topics = responses.of_run(run), responses.query_ids
    index_of = {topic: i for i, topic in enumerate(topics)}
    answers = {row["query_id"]: row for row in system["answers"].to_pylist()}
    rows = [answers.get(topic, {}) for topic in topics]
    has_answer = np.array([bool(row) for row in rows], dtype=np.bool_)
    abstained = _floats(row.get("abstained") for row in rows)
    is_silent = ~has_answer | (abstained == 1)
    references = responses["references"].to_pylist()
    answerable_of = {row["query_id"]: row["answerable"] for row in references if row["answerable"] is not None}
    answerable = _floats(answerable_of.get(topic) for topic in topics)
    correctness_of = verdict_shares(system["correctness"], "query_id")
    with_text = {row["query_id"] for row in references if row["text"] is not None}
    has_reference = np.array([topic in with_text or (topic,) in correctness_of for topic in topics], dtype=np.bool_)
    correctness = verdicts_of(correctness_of, range(len(topics)), [(topic,) for topic in topics])
    # To abstain is right for unanswerable topics: without a verdict these do not count for correctness.
    has_reference &= ~(correctness.is_missing & is_silent & (answerable == 0))

    nuggets = responses["nuggets"].sort_by([("query_id", "ascending"), ("nugget_id", "ascending")]).to_pylist()
    nugget_keys = [(row["query_id"], row["nugget_id"]) for row in nuggets]
    assigned = verdict_shares(system["assignments"], "query_id", "nugget_id")
    coverage = verdicts_of(assigned, [index_of[topic] for topic, _ in nugget_keys], nugget_keys)

    sentences = [key for key in system.keys("sentences", "query_id", "sentence") if not is_silent[index_of[key[0]]]]
    row_of = {key: i for i, key in enumerate(sentences)}
    support = verdict_shares(system["support"], "query_id", "sentence", "doc_id")
    grounded = verdicts_of(support, [index_of[topic] for topic, _ in sentences], [(*key, "") for key in sentences])
    contexts = set(system["context"]["query_id"].to_pylist())
    lacks_context = np.array([bool(contexts) and topic not in contexts for topic, _ in sentences], dtype=np.bool_)
    cited = [key for key in system.keys("citations", "query_id", "sentence", "place", "doc_id") if key[:2] in row_of]
    citations = verdicts_of(support, [index_of[key[0]] for key in cited], [(key[0], key[1], key[3]) for key in cited])

    reference_texts = {topic: [] if answerable_of.get(topic, True) else [""] for topic in topics}
    for row in references:
        reference_texts[row["query_id"]] += [] if row["text"] is None else [row["text"]]
    passages: dict[str, list[Any]] = {topic: [] if contexts and topic in answers else [None] for topic in topics}
    for row in system["context"].to_pylist():
        passages[row["query_id"]].append(row["text"])
    sentence_texts = {(row["query_id"], row["sentence"]): row["text"] for row in system["sentences"].to_pylist()}

    documents, grades, ranks = _documents(system, responses, qrels)
    document_indices = {key: i for i, key in enumerate(documents)}
    evidence = [
        (key[:2], (key[0], key[2]))
        for key in responses.keys("evidence", "query_id", "nugget_id", "doc_id")
        if (key[0], key[2]) in document_indices
    ]
    nugget_indices = {key: i for i, key in enumerate(nugget_keys)}
    cited_documents = {(topic, document) for topic, _, _, document in cited}
    grade = np.array([grades.get(key, np.nan) for key in documents], dtype=np.float64)
    return JudgedAnswers(
        query_ids=topics,
        name=run,
        has_answer=has_answer,
        abstained=abstained,
        answerable=answerable,
        words=_floats(None if (text := row.get("text")) is None else len(text.split()) for row in rows),
        correctness=correctness.replace_where(correctness.is_missing & is_silent, 0.0),
        has_reference=has_reference,
        nuggets=coverage.replace_where(coverage.is_missing & is_silent[coverage.topic], 0.0),
        vital=np.array([row["importance"] == VITAL for row in nuggets], dtype=np.bool_),
        grounded=grounded.replace_where(lacks_context, 0.0),
        citations=citations,
        sentence=_ints(row_of[key[:2]] for key in cited),
        citation_position=_ints(_count_within(key[:2] for key in cited)),
        document_topic=_ints(index_of[topic] for topic, _ in documents),
        grade=grade,
        is_judged=~np.isnan(grade),
        rank=_ints(ranks.get(key, 0) for key in documents),
        cited=np.array([key in cited_documents for key in documents], dtype=np.bool_),
        evidence_nugget=_ints(nugget_indices[nugget] for nugget, _ in evidence),
        evidence_document=_ints(document_indices[document] for _, document in evidence),
        texts=["" if silent else row.get("text") for silent, row in zip(is_silent, rows, strict=True)],
        references=[reference_texts[topic] for topic in topics],
        contexts=[None if None in texts else "\n".join(texts) for texts in passages.values()],
        sentence_texts=[sentence_texts[key] for key in sentences],
        judged_kinds=judged_pieces(responses),
        highest=max([1.0, *grades.values()]),
        names={
            "answers": topics,
            "nuggets": [nugget for _, nugget in nugget_keys],
            "sentences": [str(sentence) for _, sentence in sentences],
            "citations": [f"{sentence}: {document}" for _, sentence, _, document in cited],
            "documents": [document for _, document in documents],
        },
    )


def judged_pieces(responses: Responses) -> frozenset[str]:
    """Return the kinds of pieces that have verdicts."""
    documents = set(responses["support"]["doc_id"].unique().to_pylist())
    counts = {
        "nuggets": responses["assignments"].num_rows,
        "correctness": responses["correctness"].num_rows,
        "grounded": "" in documents,
        "citations": documents - {""},
    }
    return frozenset(name for name, count in counts.items() if count)


def evidence_qrels(responses: Responses) -> Qrels | None:
    """Build judgments from evidence and reference contexts, which have grade 1; None without any."""
    grades: dict[str, dict[str, int]] = {}
    for name in ("evidence", "reference_context"):
        for topic, document in responses.keys(name, "query_id", "doc_id"):
            grades.setdefault(topic, {})[document] = 1
    return Qrels.of(grades, name="evidence") if grades else None


def _documents(
    system: Responses, responses: Responses, qrels: Qrels | None
) -> tuple[list[tuple[str, str]], dict[tuple[str, str], float], dict[tuple[str, str], int]]:
    """Return all (topic, document) pairs, their grades, and their ranks in the context."""
    judgments = evidence_qrels(responses) if qrels is None else qrels
    grades: dict[tuple[str, str], float] = {}
    if judgments is not None:
        topics = pa.array(responses.query_ids, pa.string())
        table = judgments.table.filter(pc.is_in(judgments.table["query_id"], value_set=topics))
        for topic, document, grade in zip(
            *(table[name].to_pylist() for name in ("query_id", "doc_id", "relevance")), strict=True
        ):
            grades[topic, document] = max(float(grade), grades.get((topic, document), -np.inf))
    context = [(topic, document) for topic, _, document in system.keys("context", "query_id", "rank", "doc_id")]
    ranks = dict(zip(context, _count_within(topic for topic, _ in context), strict=True))
    cited = {(topic, document) for topic, document in system.keys("citations", "query_id", "doc_id")}
    evidence = {(topic, document) for topic, document in responses.keys("evidence", "query_id", "doc_id")}
    return sorted({*grades, *ranks, *cited, *evidence}), grades, ranks


def _count_within(groups: Iterable[object]) -> list[int]:
    """Return the position of each element within its group, from 1.

    >>> _count_within("aab")
    [1, 2, 1]
    """
    counts: Counter[object] = Counter()
    return [counts[group] for group in groups if not counts.update((group,))]


def _floats(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


_PIECE_NAMES = {
    "nuggets": ("nugget", "nuggets"),
    "citations": ("citation", "citations"),
    "grounded": ("sentence compared with its context", "sentences compared with their context"),
    "correctness": ("answer", "answers"),
}


def notes_of_answers(
    all_answers: Sequence[JudgedAnswers],
    responses: Responses,
    measures: Sequence[Measure],
    values: Floats,
    *,
    no_qrels: bool,
) -> tuple[Note, ...]:
    """Return the notes about answers; `no_qrels`: whether evidence replaces qrels."""
    notes = [Note("few-topics", few_text)] if (few_text := few_topics_note(len(responses.query_ids))) else []
    if no_qrels and responses["evidence"].num_rows:
        text = "no qrels: documents with evidence for a nugget count as relevant, and all other documents as unjudged"
        notes.append(Note("evidence-as-qrels", text))
    for i, answered in enumerate(all_answers):
        system = responses.of_run(answered.name)
        notes += [Note(rule, text, answered.name) for rule, text in _run_notes(answered, system) if text]
        notes += [Note(rule, text, answered.name) for rule, text in _left_out_notes(answered, measures, values[i])]
        needs_verdicts = any(responses[name].num_rows for name in ("nuggets", *VERDICTS))
        if needs_verdicts and not any((~answered.verdicts_on(name).is_missing).any() for name in answered.judged_kinds):
            text = "no verdicts on the answers, so measures that use verdicts have no scores"
            notes.append(Note("nothing-judged", text, answered.name, severity="error"))
    return tuple(notes)


def _run_notes(answered: JudgedAnswers, system: Responses) -> Iterator[tuple[str, str]]:
    topics = np.array(answered.query_ids, dtype=object)
    if (~answered.has_answer).any():
        missing = topics[~answered.has_answer].tolist()
        text = f"no answer to {len(missing)} of {len(topics)} topics; the nuggets of these topics count as not covered"
        yield "missing-topics", f"{text}: {first_few(missing)}"
    unjudged = [
        f"{int(is_missing.sum())} of {counted(len(is_missing), *_PIECE_NAMES[name])}"
        for name in sorted(answered.judged_kinds)
        if (is_missing := _is_missing(answered, name)).any()
    ]
    failed = sum(system[name]["verdict"].to_pylist().count(FAILED) for name in VERDICTS)
    if unjudged:
        failed_text = f"; {counted(failed, 'verdict')} failed" if failed else ""
        yield (
            "unjudged",
            f"no verdict on {', '.join(unjudged)}{failed_text}; items without a verdict affect only the bounds",
        )
    contexts = {*system["context"]["query_id"].to_pylist()}
    empty = [topic for topic in topics[answered.has_answer].tolist() if topic not in contexts]
    if contexts and empty:
        text = (
            f"an empty context for {counted(len(empty), 'answer')}, so no sentence of these answers is supported by the"
            f" context: {first_few(empty)}"
        )
        yield "empty-context", text
    tables = ("context", "citations", "support")
    in_context, cited, judged = (set(system.keys(name, "query_id", "doc_id")) for name in tables)
    if contexts and (outside := cited - in_context):
        yield (
            "cited-outside-context",
            f"{counted(len(outside), 'cited document is', 'cited documents are')} not in the context",
        )
    if uncited := {pair for pair in judged - cited - in_context if pair[1]}:
        documents = counted(len(uncited), "document that is", "documents that are")
        yield "ignored-support", f"verdicts are ignored for {documents} neither cited nor in the context"


def _is_missing(answered: JudgedAnswers, name: str) -> Bools:
    """Return a mask of the pieces without a verdict, among those that need one."""
    is_missing = answered.verdicts_on(name).is_missing
    return is_missing[answered.has_reference] if name == "correctness" else is_missing


def _left_out_notes(answered: JudgedAnswers, measures: Sequence[Measure], values: Floats) -> Iterator[tuple[str, str]]:
    measures_by_topics: dict[tuple[int, ...], list[Measure]] = {}  # by the topics that they leave out
    for measure, scores in zip(measures, values, strict=True):
        if (left_out := np.flatnonzero(np.isnan(scores))).size:
            measures_by_topics.setdefault(tuple(left_out.tolist()), []).append(measure)
    parts = [
        f"{name_measures(group)}: {first_few([answered.query_ids[topic] for topic in left_out])}"
        for left_out, group in measures_by_topics.items()
    ]
    if parts:
        text = f"some of the {len(answered)} topics have no score, because they have no items to score or no verdicts"
        yield "topics-left-out", f"{text}; topics without a score: {'; '.join(parts)}"


_SHARED_TABLES = ("nuggets", "evidence", "references")
_OTHER_TABLES = (*_SHARED_TABLES, "reference_context", "tool_scores")


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
    """Score RAG responses by measures of nuggets, support, citations, and correctness, and their contexts as rankings.

    Parameters
    ----------
    responses
        `Responses`, tables by name, a path; or a list of these, whose systems are compared.
    measures
        Measures or their names. A measure of rankings, such as ``R@10``, scores the context as a ranking. Default: the
        measures that the tables allow.
    qrels
        Judgments of documents, as for `judged.evaluate`. Default: documents that contain a nugget are relevant.
    unjudged
        Whether to compute the lowest and highest scores that missing and failed verdicts allow.
    rel, attributes, where
        As for `judged.evaluate`.

    Returns
    -------
    Scores
        Scores over all topics with an answer of any system, a nugget, or a reference, based on verdicts only. Topics
        with nothing to score, or without verdicts, are left out, with a note.

    Raises
    ------
    InputError
        If an input is invalid, or a measure needs a table that is missing.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> tables = {
    ...     "answers": [{"query_id": "q", "text": "It is 7."}],
    ...     "nuggets": [{"query_id": "q", "nugget_id": n, "importance": "vital"} for n in "123"],
    ...     "assignments": [{"query_id": "q", "nugget_id": n, "verdict": v}
    ...                     for n, v in (("1", "support"), ("2", "not"), ("3", "failed"))]}
    >>> scores = evaluate(tables, "NuggetRecall")
    >>> scores.value("NuggetRecall"), scores.ranges[0].low.round(3).item(), scores.ranges[0].high.round(3).item()
    (0.5, 0.333, 0.667)
    """
    selected = Responses.of(responses)
    notes: tuple[Note, ...] = ()
    if where is not None:
        topics, notes = select_topics(selected.query_ids, where, attributes)
        selected = selected.of_topics(topics)
    judgments = evidence_qrels(selected) if qrels is None else Qrels.of(qrels)
    requested = measures_of(default_measures(selected, judgments) if measures is None else measures, rel=rel)
    plain_measures = tuple(dict.fromkeys(measure.without_condition for measure in requested))
    shape = (len(selected.run_names), len(plain_measures), len(selected.query_ids))
    values, low, high = (np.full(shape, np.nan) for _ in range(3))
    kind, shares = np.full(shape, "exact", dtype="<U7"), np.full(shape[:2], np.nan)
    all_answers = [answered_of(selected, run, judgments) for run in selected.run_names]
    for run_index, answered in enumerate(all_answers):
        for measure_index, measure in enumerate(plain_measures):
            scored = _scored(measure, answered, selected, judgments, unjudged=unjudged)
            cell = run_index, measure_index
            values[cell], low[cell], high[cell], kind[cell], shares[cell] = scored
    runs = tuple(_run_facts(answered, selected) for answered in all_answers)
    needs_grades = any(not isinstance(measure, AnswerMeasure) or hasattr(measure, "rel") for measure in plain_measures)
    scores = Scores(
        runs=runs,
        measures=plain_measures,
        query_ids=selected.query_ids,
        values=values,
        counted=np.ones((shape[0], shape[2]), dtype=np.bool_),
        policies=Policies(),
        qrels=_facts(selected, judgments, where or ""),
        notes=(
            *selected.notes,
            *notes,
            *notes_of_answers(all_answers, selected, plain_measures, values, no_qrels=qrels is None and needs_grades),
        ),
        versions=versions(),
        ranges=(TopicRanges("unjudged", low, high, kind, shares),) if unjudged else (),
    )
    return apply_conditions(scores, requested, attributes)


_DEFAULTS = (  # default measures, the pieces or table that they need, and the input that has these
    (("NuggetRecall", "NuggetRecall(vital=true,partial=0)"), "nuggets", "the tables `nuggets` and `assignments`"),
    (("SupportP", "SupportR"), "citations", "the tables `citations` and `support`"),
    (("Groundedness",), "grounded", "the table `support`, with rows that have no document id"),
    (("Correctness",), "correctness", "the table `correctness`"),
    (("RightAbstention", "WrongAbstention"), "answerable", "the table `references`, with the column `answerable`"),
    (("ExactMatch", "TokenF1"), "reference_texts", "reference answers: a field such as `reference` or `ground_truth`"),
    (("AnswerRecall",), "reference_passages", "reference answers, and contexts with texts"),
    (("LexicalSupport",), "passages", "contexts with texts: a field such as `contexts` or `retrieved_contexts`"),
    (("SetP", "SetR", "nDCG@10"), "context", "ids of contexts, and --qrels or ids of reference contexts"),
    (("CitationRecall",), "cited", "the table `citations`, and --qrels or ids of reference contexts"),
    (("AnswerLength",), "answers", "answers"),
)
_OF_TEXTS = {"reference_texts", "reference_passages", "passages"}  # proxies, if there are no verdicts


def default_measures(responses: Responses, qrels: Qrels | None) -> list[str]:
    """Return the names of the measures that the tables allow. Verdicts take precedence over comparisons of texts.

    >>> default_measures(Responses.of({"answers": [{"query_id": "q"}]}), None)
    ['AnswerLength']
    """
    return usual_measures(available_pieces(responses, qrels) - (_OF_TEXTS if judged_pieces(responses) else set[str]()))


def available_pieces(responses: Responses, qrels: Qrels | None) -> set[str]:
    """Return the pieces with verdicts, the tables, and the texts that measures can use."""
    columns = {
        "answerable": ("references", "answerable"), "reference_texts": ("references", "text"),
        "passages": ("context", "text"), "context": ("context", "doc_id"), "cited": ("citations", "doc_id"),
    }  # fmt: skip
    filled = {name for name, (table, column) in columns.items() if responses[table][column].drop_null()}
    filled -= {"context", "cited"} if qrels is None else set[str]()
    both = {"reference_passages"} if {"reference_texts", "passages"} <= filled else set[str]()
    return {"answers", *judged_pieces(responses), *filled, *both}


def usual_measures(available: Collection[str]) -> list[str]:
    """Return the default measures of pieces with verdicts, named as by `judged_pieces`, and of tables."""
    return [name for names, needed, _ in _DEFAULTS if needed in available for name in names]


def unavailable_measures(responses: Responses, qrels: Qrels | None) -> list[dict[str, str]]:
    """Return the default measures that cannot be computed, and the input that they require."""
    available = available_pieces(responses, qrels)
    return [
        {"measures": ", ".join(names), "requires": text} for names, needed, text in _DEFAULTS if needed not in available
    ]


class _Scored(NamedTuple):
    """Scores of one system by one measure."""

    values: Floats  # (T,), like the next two
    low: Floats
    high: Floats
    kind: Any  # "exact" or "outer" bounds
    share: float  # judged share of the pieces that the measure uses


def _scored(
    measure: Measure, answered: JudgedAnswers, responses: Responses, qrels: Qrels | None, *, unjudged: bool
) -> _Scored:
    # A measure of rankings scores the context, and leaves out topics without judgments.
    if isinstance(measure, AnswerMeasure):
        scores, share = measure(answered), measure.decided_share(answered)
        bounds = measure.score_bounds(answered) if unjudged else (scores, scores)
        return _Scored(scores, *bounds, "exact" if measure.exact else "outer", share)
    if qrels is None or not responses["context"].num_rows:
        needs, fix = (
            ("judgments of documents", "pass qrels, or add a table `evidence`")
            if qrels is None
            else ("a table `context`", "add the passages that the generator received")
        )
        raise InputError(
            f"{measure} scores the context as a ranking and requires {needs}", fix=fix, path=responses.where
        )
    judged = judge(qrels.over(set(qrels.topics) & set(answered.query_ids)), responses.run("context", answered.name))
    index_of = {topic: i for i, topic in enumerate(answered.query_ids)}
    columns = [index_of[topic] for topic in judged.query_ids]

    def expand(judged_values: Any, missing: Any = np.nan) -> Any:
        expanded = np.full(len(answered), missing, dtype=np.asarray(judged_values).dtype)
        expanded[columns] = judged_values
        return expanded

    values, n_returned = measure(judged), int(judged.returned.sum())
    share = len(judged.topic) / n_returned if n_returned else np.nan
    if not unjudged:
        return _Scored(expand(values), expand(values), expand(values), "exact", share)
    bounds = unjudged_range(judged, measure)
    return _Scored(expand(values), expand(bounds.low), expand(bounds.high), expand(bounds.kind, "exact"), share)


def _run_facts(answered: JudgedAnswers, responses: Responses) -> RunFacts:
    system = responses.of_run(answered.name)
    verdicts = sum(int((~answered.verdicts_on(name).is_missing).sum()) for name in sorted(answered.judged_kinds))
    verdicts += int((answered.is_judged & ((answered.rank > 0) | answered.cited)).sum())
    with_reference = sum(map(bool, answered.references))  # without verdicts, texts are compared
    return RunFacts(
        name=answered.name,
        path=responses.where,
        file_hash=FileHash(digest=_digest(system, [name for name in TABLES if name not in _OTHER_TABLES])),
        returned_topics=int(answered.has_answer.sum()),
        missing_topics=tuple(np.array(answered.query_ids, dtype=object)[~answered.has_answer].tolist()),
        extra_topics=0,
        returned_judged=verdicts or with_reference,
    )


def _facts(responses: Responses, qrels: Qrels | None, where: str) -> QrelsFacts:
    digest = _digest(responses, _SHARED_TABLES)
    if qrels is not None:
        qrels_digest = qrels.sha256 or _digest_of(qrels.table.to_pylist())
        digest = hashlib.sha256(f"{digest}{qrels_digest}".encode()).hexdigest()
    grades = () if qrels is None else tuple(sorted(set(qrels.grades.tolist())))
    judgments = sum(responses[name].num_rows for name in ("nuggets", "references"))
    return QrelsFacts(responses.name, responses.where, digest, len(responses.query_ids), judgments, grades, where)


def _digest(responses: Responses, names: Sequence[str]) -> str:
    return _digest_of([sorted(map(str, responses[name].to_pylist())) for name in names])


def _digest_of(rows: Any) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
