"""Check of RAG responses, and explanation of an answer: sentences, support, context, nuggets, and score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from judged.data.compute import pc
from judged.data.findings import Finding, Findings, finding_from_error
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.rag.responses import VERDICTS, VITAL, Responses, middle_verdicts
from judged.pipelines.rag.scoring import answered_of, evidence_qrels
from judged.results import COUNT, NUMBER, TEXT, Answer, Column, Headline, RankedLists, Sentences, Table
from judged.results.blocks import RankedDocument, RankedList, first_few
from judged.results.decimals import counted, decimal, percent
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation import runs_of
from judged.scoring.explanation import explain as explain_ranking
from judged.scoring.judging.answers import CONTRADICTS, FAILED, NOT, PARTIAL, SUPPORT
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from judged.data.findings import Severity
    from judged.results import Block, Status
    from judged.scoring.judging.answers import JudgedAnswers


_NEEDED = {
    "sentences": "support of sentences, and sentences without a citation",
    "context": "recall of the context, and whether citations come from the context",
    "citations": "citations of sentences, and support by citations",
    "support": "support of sentences by citations and by the context",
    "nuggets": "recall of nuggets",
    "evidence": "loss of nuggets between corpus and answer",
    "assignments": "coverage of nuggets by answers",
    "references": "which questions are answerable",
    "correctness": "correctness of answers",
    "feedback": "satisfaction of users",
}
_Problem: TypeAlias = "tuple[Severity, str, str, str, int]"
"""Severity, rule, problem, fix, and count."""
_Pairs: TypeAlias = set[tuple[Any, ...]]


def check_responses(
    responses: Any, qrels: Any = None, *, runs: Any = None, corpus: Iterable[str] | None = None
) -> Findings:
    """Check responses for missing and inconsistent tables, and report the measures that cannot be computed.

    Parameters
    ----------
    responses
        As for `Responses.of`.
    qrels, runs, corpus
        Sources of document ids, with which ids of contexts and citations are compared.

    Examples
    --------
    >>> findings = check_responses({"answers": [{"query_id": "q", "text": "7"}],
    ...                             "citations": [{"query_id": "q", "sentence": 1, "doc_id": "x"}]}, {"q": {"a": 1}})
    >>> [finding.rule for finding in findings if finding.severity == "error"]
    ['mismatched-ids']
    """
    try:
        answered = Responses.of(responses)
    except InputError as error:
        finding = finding_from_error(error, str(responses))
        if finding is None or (isinstance(responses, (str, Path)) and not Path(responses).exists()):
            raise
        return Findings((finding,))
    pairs_of = {} if qrels is None else {"the qrels": _pairs(Qrels.of(qrels).table)}
    if runs is not None:
        pairs_of["the runs"] = {pair for run in runs_of(runs) for pair in _pairs(run.table)}
    notes: Iterator[_Problem] = (("warning", note.rule, note.text, "", 1) for note in answered.notes)
    problems = (
        *notes,
        *_missing_tables(answered),
        *_missing_pieces(answered, pairs_of),
        *_missing_verdicts(answered),
        *_unknown_documents(answered, pairs_of, corpus),
    )
    order = ("error", "warning", "info")
    problems = sorted(problems, key=lambda problem: order.index(problem[0]))
    return Findings(tuple(Finding(row[0], answered.where, None, *row[1:]) for row in problems))


def _pairs(table: Any, *names: str) -> _Pairs:
    return set(zip(*[table[name].to_pylist() for name in names or ("query_id", "doc_id")], strict=True))


def _missing_tables(responses: Responses) -> Iterator[_Problem]:
    for name, effect in _NEEDED.items():
        if not responses[name].num_rows:
            yield "info", "missing-table", f"the table `{name}` is missing, so this cannot be measured: {effect}", "", 1


def _missing_pieces(responses: Responses, pairs_of: dict[str, _Pairs]) -> Iterator[_Problem]:
    key_columns = ("query_id", "run_id")
    answers, topics = _pairs(responses["answers"], *key_columns), _pairs(responses["answers"], "query_id")
    expected = {(topic, run) for (topic,) in topics for run in responses.run_names}
    nuggets = _pairs(responses["nuggets"], "query_id")
    vital = _pairs(responses["nuggets"].filter(pc.equal(responses["nuggets"]["importance"], VITAL)), "query_id")
    judged = {pair[:1] for pair in pairs_of.get("the qrels", ())}
    without_text = [row for row in responses["sentences"].to_pylist() if not row["text"]]
    cases: tuple[tuple[str, str, str, Iterable[Any]], ...] = (
        ("missing-answers", "missing answers to topics that other systems answered", "", expected - answers),
        ("empty-contexts", "answers without context, although other answers have a context",
         "check whether the retriever returned nothing, or the context was not recorded",
         answers - _pairs(responses["context"], *key_columns) if responses["context"].num_rows else ()),
        ("no-nuggets", "answered topics without nuggets, excluded from nugget measures", "",
         topics - nuggets if nuggets else ()),
        ("no-vital-nuggets", "topics without vital nuggets, for which vital recall is undefined", "",
         nuggets - vital),
        ("not-judged", "answered topics that are not in the qrels", "", topics - judged if judged else ()),
        ("not-answered", "judged topics without an answer", "", judged - topics),
        ("no-text", "sentences without text, which cannot be judged", "add the texts",
         {(row["query_id"], row["run_id"], row["sentence"]) for row in without_text}),
    )  # fmt: skip
    for rule, problem, fix, keys in cases:
        if names := sorted(" ".join(map(str, key)) for key in keys):
            yield "warning", rule, f"{problem} ({len(names):,}): {first_few(names)}", fix, len(names)


def _missing_verdicts(responses: Responses) -> Iterator[_Problem]:
    for name in VERDICTS:
        rows = responses[name].to_pylist()
        total = Counter(row["judge"] for row in rows)
        for judge, count in Counter(row["judge"] for row in rows if row["verdict"] == FAILED).items():
            text = f"{name}: {count:,} of {total[judge]:,} verdicts of {judge} failed ({percent(count / total[judge])})"
            yield (
                "warning",
                "failed-verdicts",
                f"{text}; they count as unjudged, not as 0",
                "request the verdicts again",
                count,
            )
    cited = _pairs(responses["citations"], "query_id", "run_id", "sentence", "doc_id")
    answers = _pairs(responses["answers"], "query_id", "run_id")
    nugget_pairs = {(*answer, nugget) for topic, nugget in _pairs(responses["nuggets"], "query_id", "nugget_id")
              for answer in answers if answer[0] == topic}  # fmt: skip
    for name, pairs, key_columns in (
        ("support", cited, ("query_id", "run_id", "sentence", "doc_id")),
        ("assignments", nugget_pairs, ("query_id", "run_id", "nugget_id")),
    ):
        missing = pairs - _pairs(responses[name], *key_columns) if responses[name].num_rows else set[Any]()
        if missing:
            text = f"{name}: {len(missing):,} of {len(pairs):,} have no verdict; they count as unjudged, not as 0"
            yield "warning", "missing-verdicts", text, "", len(missing)


def _unknown_documents(
    responses: Responses, pairs_of: dict[str, _Pairs], corpus: Iterable[str] | None
) -> Iterator[_Problem]:
    context = _pairs(responses["context"], "query_id", "run_id", "doc_id")
    cited = _pairs(responses["citations"], "query_id", "run_id", "doc_id")
    if context and (outside := cited - context):
        text = f"{len(outside):,} of {len(cited):,} cited documents were not in the context"
        yield "warning", "cited-outside-context", text, "", len(outside)
    corpus_ids = None if corpus is None else frozenset(corpus)
    for table, triples in (("context", context), ("citations", cited)):
        pairs = {(topic, doc) for topic, _, doc in triples}
        missing_from = {name: pairs - known_pairs for name, known_pairs in pairs_of.items()}
        if corpus_ids is not None:
            missing_from["the corpus"] = {pair for pair in pairs if pair[1] not in corpus_ids}
        for source, missing in missing_from.items():
            if not missing:
                continue
            text = f"{table}: {len(missing):,} of {len(pairs):,} documents are not in {source}"
            if len(missing) == len(pairs):
                fix = "use the same document ids in all tables and files"
                yield "error", "mismatched-ids", f"{text}: the ids do not match", fix, len(missing)
            else:
                severities: Sequence[Severity] = ("info", "warning")
                yield severities[source != "the qrels"], "unknown-documents", text, "", len(missing)


_TEXTS = {
    "nuggets": ("nuggets", "nugget_id"),
    "sentences": ("sentences", "sentence"),
    "citations": ("sentences", "sentence"),
    "documents": ("context", "doc_id"),
}
_STATUSES: dict[str, Status] = {SUPPORT: "better", PARTIAL: "same", NOT: "worse", CONTRADICTS: "worse"}
_CORRECT = {SUPPORT: "correct", PARTIAL: "partially correct", NOT: "not correct"}
_WORDS = {PARTIAL: "partially", FAILED: "no verdict", "": "–"}
_SUPPORTED = {SUPPORT: "supported", NOT: "not supported", CONTRADICTS: "contradicted", **_WORDS}
_COVERED = {SUPPORT: "yes", NOT: "no", **_WORDS}
_OUTCOMES = {
    SUPPORT: "The answer is correct.", PARTIAL: "The answer is partially correct.", NOT: "The answer is not correct.",
    FAILED: "There is no verdict on the answer.",
}  # fmt: skip
_BEST_FIRST = (SUPPORT, PARTIAL, CONTRADICTS, NOT, FAILED)


@dataclass(frozen=True, eq=False, repr=False)
class OneAnswer(Answer):
    """Result of `explain`: the answer of one system to one topic, or the pieces of its score.

    Attributes
    ----------
    run, query_id, query : str
        System, topic, and text of the query; empty if unknown.
    measure, score : str, float
        Measure and score that are explained; empty and None without a measure.
    """

    kind: ClassVar[str] = "answer"

    run: str
    query_id: str
    query: str
    content: tuple[Block, ...]
    headline: Headline | None = None  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
    measure: str = ""
    score: float | None = None

    @property
    def title(self) -> str:
        """Topic, with the text of the query."""
        return f"{self.query_id}: {self.query}" if self.query else self.query_id

    @property
    def sentences(self) -> tuple[str, ...]:
        """Text and outcome of the answer, or the calculation of the score."""
        return tuple(text for block in self.content if isinstance(block, Sentences) for text in block.texts)

    def facts(self) -> Mapping[str, Any]:
        """Return the run, the topic, and the measure with its score."""
        facts = {"run": self.run, "query_id": self.query_id, "query": self.query}
        return {**facts, "measure": self.measure, "score": self.score} if self.measure else facts

    def blocks(self) -> tuple[Block, ...]:
        """Return the tables and texts of the answer."""
        return self.content


@with_parameter_hints
def explain(
    responses: Any, measure: Any = None, *, topic: str, run: str | None = None, qrels: Any = None, queries: Any = None
) -> Answer:
    """Show the answer to a topic with its support, or the calculation of its score by a measure.

    Parameters
    ----------
    responses, qrels
        As for `judged.pipelines.rag.evaluate`.
    measure
        Measure whose score is explained; a measure of rankings is explained for the context, as by `judged.explain`.
        Default: show the answer, its support, context, and nuggets.
    topic
        Query id.
    run
        System; optional if there is only one.
    queries
        Texts of topics, as for `judged.Topics.of`.

    Raises
    ------
    InputError
        If the topic, system, or answer does not exist, or there are several systems and `run` is None.

    Examples
    --------
    >>> tables = {
    ...     "answers": [{"query_id": "q", "text": "It is 7."}],
    ...     "nuggets": [{"query_id": "q", "nugget_id": n, "text": f"fact {n}"} for n in "12"],
    ...     "assignments": [{"query_id": "q", "nugget_id": "1", "verdict": "partial"}]}
    >>> explain(tables, topic="q").sentences
    ('It is 7.',)
    >>> print(explain(tables, "NuggetRecall", topic="q"))
    == NuggetRecall of topic q, run run ==
    <BLANKLINE>
    nuggets  text     value  weight
    1        fact 1  0.5000  1.0000
    2        fact 2       -  1.0000
    <BLANKLINE>
    NuggetRecall = sum of weight * value / sum of weights = 0.5000 / 1.0000 = 0.5000; not
    counted: 1 item without a verdict
    """
    all_responses = Responses.of(responses)
    names = list(all_responses.run_names)
    if run is None and len(names) > 1:
        fix = f"select one of {', '.join(names)}; for example, pass {names[0]}=RESPONSES (in Python, run={names[0]!r})"
        raise InputError(
            "the responses have several systems, and one system must be selected", fix=fix, path=all_responses.where
        )
    name = run or names[0]
    run_responses = all_responses.of_run(name)
    parsed = None if measure is None else parse(measure)
    topics: list[str] = list(all_responses.query_ids) if parsed else run_responses["answers"]["query_id"].to_pylist()
    if topic not in topics:
        problem = f"unknown topic {topic!r}" if parsed else f"{name} has no answer to topic {topic!r}"
        raise InputError(problem, fix=f"use one of {first_few(topics)}")
    topic_responses, query = run_responses.of_topics([topic]), "" if queries is None else Topics.of(queries).text(topic)
    if parsed is None:
        judgments = None if qrels is None else Qrels.of(qrels).over([topic])
        blocks = tuple(_answer_blocks(topic_responses, judgments))
        return OneAnswer(name, topic, query, blocks, _headline(topic_responses))
    judgments = evidence_qrels(all_responses) if qrels is None else Qrels.of(qrels)
    if not isinstance(parsed, AnswerMeasure):
        return explain_ranking(judgments, run_responses.run("context", name), parsed, topic=topic)
    answered = answered_of(all_responses, name, judgments)
    score = float(parsed(answered)[answered.query_ids.index(topic)])
    blocks = _score_blocks(parsed, answered, topic_responses, topic, score)
    status: Status = "unknown" if np.isnan(score) else "info"
    word = "no score" if np.isnan(score) else "score"
    headline = Headline(status, word, f"Score of {name} on topic {topic}.", str(parsed), score)
    return OneAnswer(name, topic, query, blocks, headline, str(parsed), score)


def _headline(responses: Responses) -> Headline:
    """Return the verdict on an answer, and its supported sentences or covered nuggets. One answer is not tested."""
    (answer,) = responses["answers"].to_pylist()
    verdict = next(iter(middle_verdicts(responses["correctness"], "query_id").values()), "")
    is_silent = verdict in {"", FAILED} and answer["abstained"]
    word = "abstained" if is_silent else _CORRECT.get(verdict, "not judged as a whole")
    support, covered = _best_support(responses), [verdict for _, verdict in _coverage(responses)]
    cited, passages = (set(responses[name]["doc_id"].to_pylist()) for name in ("citations", "context"))
    counts = [
        ("sentences", "supported by a citation", [*map(SUPPORT.__eq__, support)] if any(support) else []),
        ("nuggets", "covered", [*map(SUPPORT.__eq__, covered)]),
        ("documents of the context", "cited", [doc in cited for doc in passages]),
    ]
    known = [(noun, what, sum(parts), len(parts)) for noun, what, parts in counts if parts]
    status: Status = "info" if verdict in _CORRECT or is_silent or any(support) or covered else "unknown"
    if not known:
        return Headline(status, word, "The answer has no citations, nuggets, or context.")
    (noun, what, n, total), *others = known
    sentence = "; ".join(f"{n} of {total} {noun} {what}" for noun, what, n, total in others) or "A single answer"
    return Headline(status, word, f"{sentence}.", f"of {total} {noun} {what}", n, COUNT)


def _score_blocks(
    measure: AnswerMeasure, answered: JudgedAnswers, responses: Responses, topic: str, score: float
) -> tuple[Block, ...]:
    piece_kind, topic_indices, value, weight = measure.pieces(answered)
    weight = np.asarray(weight, dtype=np.float64)
    rows = np.flatnonzero((topic_indices == answered.query_ids.index(topic)) & (weight > 0))
    names = [answered.names[piece_kind][row] for row in rows.tolist()]
    table, key = _TEXTS.get(piece_kind, ("answers", "query_id"))
    texts = {str(row[key]): row["text"] or "" for row in responses[table].to_pylist()}
    piece_texts = [texts.get(name, texts.get(name.partition(": ")[0], "")) for name in names]
    columns = [Column(piece_kind, names, TEXT), *([Column("text", piece_texts, TEXT)] if any(piece_texts) else [])]
    columns += [Column(name, array[rows].tolist(), NUMBER) for name, array in [("value", value), ("weight", weight)]]
    judged_rows = rows[~np.isnan(value[rows])]
    total, weights = float((value * weight)[judged_rows].sum()), float(weight[judged_rows].sum())
    result = f"{decimal(total, 4)} / {decimal(weights, 4)} = {decimal(score, 4)}" if weights else "not defined"
    missing = len(rows) - len(judged_rows)
    unjudged = f"; not counted: {counted(missing, 'item')} without a verdict" if missing else ""
    sentence = f"{measure} = sum of weight * value / sum of weights = {result}{unjudged}"
    title = f"{measure} of topic {topic}, run {answered.name}"
    return Table("pieces", tuple(columns), title, labels=len(columns) - 2), Sentences((sentence,))


def _answer_blocks(responses: Responses, qrels: Qrels | None) -> Iterator[Block]:
    answer, *_ = responses["answers"].to_pylist()
    sentences = responses["sentences"].sort_by("sentence").to_pylist()
    text = answer["text"] or " ".join(row["text"] or "" for row in sentences)
    correctness = middle_verdicts(responses["correctness"], "query_id").values()
    abstention = ["The system abstained."] if answer["abstained"] else []
    yield Sentences((text, *abstention, *(_OUTCOMES[verdict] for verdict in correctness)))
    if sentences:
        yield _sentence_table(sentences, responses)
    if responses["nuggets"].num_rows:
        yield _nugget_table(responses)
    qrels_rows = [] if qrels is None else qrels.table.to_pylist()
    grades = {row["doc_id"]: row["relevance"] for row in qrels_rows}
    cited = set(responses["citations"]["doc_id"].to_pylist())
    passages = tuple(
        RankedDocument(
            str(row["rank"]),
            row["doc_id"],
            f"{grades[row['doc_id']]:g}" if row["doc_id"] in grades else "",
            grades[row["doc_id"]] > 0 if row["doc_id"] in grades else None,
            change="cited" if row["doc_id"] in cited else "",
            text=row["text"] or "",
        )
        for row in responses["context"].sort_by("rank").to_pylist()
    )
    if passages:
        yield RankedLists("context", "Context", (), (RankedList(responses.run_names[0], "", passages),))


def _cited(responses: Responses) -> dict[int, list[str]]:
    """Return the documents that each sentence cites."""
    citations = responses.grouped("citations", ["sentence"], "place")
    return {number: [row["doc_id"] for row in rows] for (number,), rows in citations.items()}


def _best_support(responses: Responses) -> list[str]:
    """Return the best verdict on the citations of each sentence; empty for a sentence without citations."""
    support, cited = middle_verdicts(responses["support"], "sentence", "doc_id"), _cited(responses)
    return [
        min((support.get((number, doc), FAILED) for doc in cited.get(number, ())), key=_BEST_FIRST.index, default="")
        for number in responses["sentences"].sort_by("sentence")["sentence"].to_pylist()
    ]


def _coverage(responses: Responses) -> list[tuple[Any, str]]:
    """Return the nuggets, each with the verdict on whether the answer covers it."""
    assigned = middle_verdicts(responses["assignments"], "nugget_id")
    return [(row, assigned.get((row["nugget_id"],), FAILED)) for row in responses["nuggets"].to_pylist()]


def _sentence_table(rows: list[Any], responses: Responses) -> Table:
    support, cited = middle_verdicts(responses["support"], "sentence", "doc_id"), _cited(responses)
    numbers = [row["sentence"] for row in rows]
    grounded = [support.get((number, ""), "") for number in numbers]
    columns = (
        Column("sentence", numbers, COUNT, ""),
        Column("text", [row["text"] or "" for row in rows], TEXT),
        _verdict_column("supported", _best_support(responses), "by a citation", _SUPPORTED),
        _verdict_column("grounded", grounded, "by the context", _SUPPORTED),
        Column("citations", [", ".join(cited.get(number, ())) or "none" for number in numbers], TEXT),
    )
    return Table("answer_sentences", columns, "Sentences, and whether they are supported", labels=2)


def _nugget_table(responses: Responses) -> Table:
    nuggets, verdicts = zip(*_coverage(responses), strict=True)
    evidence = responses.grouped("evidence", ["nugget_id"])
    evidence_docs = [", ".join(row["doc_id"] for row in evidence.get((nugget["nugget_id"],), ())) for nugget in nuggets]
    columns = (
        Column("nugget_id", [row["nugget_id"] for row in nuggets], TEXT, only="data"),
        Column("text", [row["text"] or row["nugget_id"] for row in nuggets], TEXT, "nugget"),
        Column("importance", [row["importance"] for row in nuggets], TEXT),
        _verdict_column("covered", list(verdicts), "covered", _COVERED),
        Column("evidence", evidence_docs, TEXT),
    )
    return Table("nuggets", columns, "Nuggets")


def _verdict_column(name: str, verdicts: list[str], title: str, words: Mapping[str, str]) -> Column:
    statuses: list[Status] = [_STATUSES.get(verdict, "unknown") for verdict in verdicts]
    only = "" if any(verdicts) else "data"
    return Column(name, [words[verdict] for verdict in verdicts], TEXT, title, statuses=statuses, only=only)
