"""One answer: what it says, what supports that, what it was given, and how its score by a measure comes about."""

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
from judged.results import COUNT, NUMBER, TEXT, Answer, Column, RankedLists, Sentences, Table
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
    from judged.results import Block
    from judged.scoring.judging.answers import JudgedAnswers


_NEEDED = {
    "sentences": "support, and what is said without a citation",
    "context": "what the generator was given: its recall, and whether citations come from it",
    "citations": "what answers cite, and whether it supports them",
    "support": "whether citations and context support what is said",
    "nuggets": "what answers should say, and nugget recall",
    "evidence": "the way of a nugget from the corpus to the answer",
    "assignments": "which nuggets answers say",
    "references": "which questions can be answered at all",
    "correctness": "whether answers are correct",
    "feedback": "whether users are satisfied",
}
_Found: TypeAlias = "tuple[Severity, str, str, str, int]"
_Pairs: TypeAlias = set[tuple[Any, ...]]


def check_responses(
    responses: Any, qrels: Any = None, *, runs: Any = None, corpus: Iterable[str] | None = None
) -> Findings:
    """Say what is missing or does not go together, and what follows for what can be measured.

    Parameters
    ----------
    responses
        What `Responses.of` takes.
    qrels, runs, corpus
        What ids of documents are looked for in.

    Examples
    --------
    >>> found = check_responses({"answers": [{"query_id": "q", "text": "7"}],
    ...                          "citations": [{"query_id": "q", "sentence": 1, "doc_id": "x"}]}, {"q": {"a": 1}})
    >>> [finding.rule for finding in found if finding.severity == "error"]
    ['foreign-ids']
    """
    try:
        given = Responses.of(responses)
    except InputError as error:
        finding = finding_from_error(error, str(responses))
        if finding is None or (isinstance(responses, (str, Path)) and not Path(responses).exists()):
            raise
        return Findings((finding,))
    known = {} if qrels is None else {"the qrels": _pairs(Qrels.of(qrels).table)}
    if runs is not None:
        known["the runs"] = {pair for run in runs_of(runs) for pair in _pairs(run.table)}
    noted: Iterator[_Found] = (("warning", note.rule, note.text, "", 1) for note in given.notes)
    found = (
        *noted,
        *_tables(given),
        *_answers(given, known),
        *_checking_verdicts(given),
        *_documents(given, known, corpus),
    )
    order = ("error", "warning", "info")
    made = [Finding(severity, given.where, None, rule, problem, fix, count)
            for severity, rule, problem, fix, count in sorted(found, key=lambda one: order.index(one[0]))]  # fmt: skip
    return Findings(tuple(made))


def _pairs(table: Any, *names: str) -> _Pairs:
    columns = [table[name].to_pylist() for name in names or ("query_id", "doc_id")]
    return set(zip(*columns, strict=True))


def _tables(given: Responses) -> Iterator[_Found]:
    """Name the tables that nobody made."""
    for name, what in _NEEDED.items():
        if not given[name].num_rows:
            yield "info", "no-table", f"nothing is recorded of {name}: unknown is {what}", "", 1


def _answers(given: Responses, known: dict[str, _Pairs]) -> Iterator[_Found]:
    """Look for answers, sentences, contexts and nuggets that are not there."""
    key = ("query_id", "run_id")
    answers, topics = _pairs(given["answers"], *key), _pairs(given["answers"], "query_id")
    every = {(topic, run) for (topic,) in topics for run in given.run_names}
    nuggets = _pairs(given["nuggets"], "query_id")
    vital = _pairs(given["nuggets"].filter(pc.equal(given["nuggets"]["importance"], VITAL)), "query_id")
    judged = {pair[:1] for pair in known.get("the qrels", ())}
    bare = [row for row in given["sentences"].to_pylist() if not row["text"]]
    cases: tuple[tuple[str, str, str, Iterable[Any]], ...] = (
        ("missing-answers", "answers that some systems gave and others did not", "", every - answers),
        ("empty-contexts", "answers without any context, although others have one",
         "say whether nothing was found, or it was not recorded",
         answers - _pairs(given["context"], *key) if given["context"].num_rows else ()),
        ("no-nuggets", "answered topics without nuggets, which no measure of nuggets counts", "",
         topics - nuggets if nuggets else ()),
        ("no-vital-nuggets", "topics whose nuggets are all okay, none vital: their vital recall does not exist", "",
         nuggets - vital),
        ("not-judged", "answered topics that the qrels do not have", "", topics - judged if judged else ()),
        ("not-answered", "judged topics that nobody answered", "", judged - topics),
        ("no-text", "sentences without text, which nobody can judge", "give their texts",
         {(row["query_id"], row["run_id"], row["sentence"]) for row in bare}),
    )  # fmt: skip
    for rule, problem, fix, some in cases:
        if names := sorted(" ".join(map(str, one)) for one in some):
            yield "warning", rule, f"{problem} ({len(names):,}): {first_few(names)}", fix, len(names)


def _checking_verdicts(given: Responses) -> Iterator[_Found]:
    """Count the verdicts that failed, by judge, and those that nobody gave."""
    for name in VERDICTS:
        rows = given[name].to_pylist()
        asked = Counter(row["judge"] for row in rows)
        failed = Counter(row["judge"] for row in rows if row["verdict"] == FAILED)
        for judge, count in failed.items():
            text = f"{name}: {count:,} of {asked[judge]:,} verdicts of {judge} failed ({percent(count / asked[judge])})"
            yield "warning", "failed-verdicts", f"{text}: they are unjudged, not zero", "ask again", count
    cited = _pairs(given["citations"], "query_id", "run_id", "sentence", "doc_id")
    answers = _pairs(given["answers"], "query_id", "run_id")
    wanted = {(*one, nugget) for topic, nugget in _pairs(given["nuggets"], "query_id", "nugget_id")
              for one in answers if one[0] == topic}  # fmt: skip
    for name, all_, key in (
        ("support", cited, ("query_id", "run_id", "sentence", "doc_id")),
        ("assignments", wanted, ("query_id", "run_id", "nugget_id")),
    ):
        absent = all_ - _pairs(given[name], *key) if given[name].num_rows else set[Any]()
        if absent:
            text = f"{name}: {len(absent):,} of {len(all_):,} have no verdict: they are unjudged, not zero"
            yield "warning", "absent-verdicts", text, "", len(absent)


def _documents(given: Responses, known: dict[str, _Pairs], corpus: Iterable[str] | None) -> Iterator[_Found]:
    """Look for documents of contexts and citations elsewhere."""
    context = _pairs(given["context"], "query_id", "run_id", "doc_id")
    cited = _pairs(given["citations"], "query_id", "run_id", "doc_id")
    if context and (outside := cited - context):
        text = f"{len(outside):,} of {len(cited):,} cited documents were not in the context"
        yield "warning", "cited-from-elsewhere", text, "", len(outside)
    there = None if corpus is None else frozenset(corpus)
    for table, triples in (("context", context), ("citations", cited)):
        pairs = {(topic, doc) for topic, _, doc in triples}
        sources = {name: pairs - ids for name, ids in known.items()}
        if there is not None:
            sources["the corpus"] = {pair for pair in pairs if pair[1] not in there}
        for where, absent in sources.items():
            if not absent:
                continue
            text = f"{table}: {len(absent):,} of {len(pairs):,} documents are not in {where}"
            if len(absent) == len(pairs):
                fix = "name documents, or those of chunks, alike"
                yield "error", "foreign-ids", f"{text}: the ids are others", fix, len(absent)
            else:
                mild: Sequence[Severity] = ("info", "warning")
                yield mild[where != "the qrels"], "unknown-documents", text, "", len(absent)


_TEXTS = {
    "nuggets": ("nuggets", "nugget_id"),
    "sentences": ("sentences", "sentence"),
    "citations": ("sentences", "sentence"),
    "documents": ("context", "doc_id"),
}
_KINDS = {SUPPORT: "good", NOT: "bad", CONTRADICTS: "bad"}
_WORDS = {PARTIAL: "in part", FAILED: "no verdict", "": "–"}
_SUPPORTED = {SUPPORT: "supported", NOT: "not supported", CONTRADICTS: "contradicted", **_WORDS}
_COVERED = {SUPPORT: "yes", NOT: "no", **_WORDS}
_OUTCOMES = {
    SUPPORT: "The answer is correct.", PARTIAL: "The answer is correct in part.", NOT: "The answer is not correct.",
    FAILED: "There is no verdict on the answer.",
}  # fmt: skip
_BEST_FIRST = (SUPPORT, PARTIAL, CONTRADICTS, NOT, FAILED)


@dataclass(frozen=True, eq=False, repr=False)
class OneAnswer(Answer):
    """What `explain` returns: the answer of one system to one topic, or the pieces of its score.

    Attributes
    ----------
    run, query_id, query : str
        Whose answer to what it is; the query is empty where its text is not known.
    measure, score : str, float
        What is explained; empty and None without a measure.
    """

    kind: ClassVar[str] = "answer"

    run: str
    query_id: str
    query: str
    parts: tuple[Block, ...]
    measure: str = ""
    score: float | None = None

    @property
    def title(self) -> str:
        """The question."""
        return f"{self.query_id}: {self.query}" if self.query else self.query_id

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was answered and came of it, or the calculation."""
        return tuple(text for part in self.parts if isinstance(part, Sentences) for text in part.texts)

    def facts(self) -> Mapping[str, Any]:
        """Give whose answer to what it is, and the score that is explained."""
        known = {"run": self.run, "query_id": self.query_id, "query": self.query}
        return {**known, "measure": self.measure, "score": self.score} if self.measure else known

    def blocks(self) -> tuple[Block, ...]:
        """Give what there is of it."""
        return self.parts


@with_parameter_hints
def explain(
    responses: Any, measure: Any = None, *, topic: str, run: str | None = None, qrels: Any = None, queries: Any = None
) -> Answer:
    """Lay the answer to one topic out, or show how a measure comes to its score.

    Parameters
    ----------
    responses, qrels
        As `judged.pipelines.rag.evaluate` takes them.
    measure
        None: what the answer says, what supports that, what it was given, and what it should say. A measure or its
        name: the pieces of its score; one of rankings is explained for the context, as `judged.explain` does.
    topic
        The query id.
    run
        The system; None where there is only one.
    queries
        Texts of topics, as `judged.Topics.of` takes them.

    Raises
    ------
    InputError
        If there is no such topic, system or answer, or several systems and none was named.

    Examples
    --------
    >>> made = {
    ...     "answers": [{"query_id": "q", "text": "It is 7."}],
    ...     "nuggets": [{"query_id": "q", "nugget_id": n, "text": f"fact {n}"} for n in "12"],
    ...     "assignments": [{"query_id": "q", "nugget_id": "1", "verdict": "partial"}]}
    >>> explain(made, topic="q").sentences
    ('It is 7.',)
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
        fix = f"name one of {', '.join(systems)}: {systems[0]}=RESPONSES, in Python run={systems[0]!r}"
        raise InputError("there are several systems", fix=fix, path=given.where)
    name = run or systems[0]
    own = given.of_run(name)
    wanted = None if measure is None else parse(measure)
    topics: list[str] = own["answers"]["query_id"].to_pylist() if wanted is None else list(given.query_ids)
    if topic not in topics:
        problem = f"{name} did not answer {topic!r}" if wanted is None else f"there is no topic {topic!r}"
        raise InputError(problem, fix=f"use one of {first_few(topics)}")
    one, query = own.of_topics([topic]), "" if queries is None else Topics.of(queries).text(topic)
    if wanted is None:
        return OneAnswer(
            name, topic, query, tuple(_answer(one, None if qrels is None else Qrels.of(qrels).over([topic])))
        )
    judgments = evidence_qrels(given) if qrels is None else Qrels.of(qrels)
    if not isinstance(wanted, AnswerMeasure):
        return explain_ranking(judgments, own.run("context", name), wanted, topic=topic)
    answered = answered_of(given, name, judgments)
    score = float(wanted(answered)[answered.query_ids.index(topic)])
    return OneAnswer(name, topic, query, _pieces(wanted, answered, one, topic, score), str(wanted), score)


def _pieces(
    measure: AnswerMeasure, answered: JudgedAnswers, one: Responses, topic: str, score: float
) -> tuple[Block, ...]:
    """Give the pieces of a score, and what they add up to."""
    of, topics, worth, weight = measure.pieces(answered)
    weight = np.asarray(weight, dtype=np.float64)
    rows = np.flatnonzero((topics == answered.query_ids.index(topic)) & (weight > 0))
    names = [answered.names[of][row] for row in rows.tolist()]
    table, key = _TEXTS.get(of, ("answers", "query_id"))
    texts = {str(row[key]): row["text"] or "" for row in one[table].to_pylist()}
    said = [texts.get(name, texts.get(name.partition(": ")[0], "")) for name in names]
    columns = [Column(of, names, TEXT), *([Column("text", said, TEXT)] if any(said) else [])]
    columns += [Column(name, part[rows].tolist(), NUMBER) for name, part in (("value", worth), ("weight", weight))]
    known = rows[~np.isnan(worth[rows])]
    total, below = float((worth * weight)[known].sum()), float(weight[known].sum())
    numbers = f"{decimal(total, 4)} / {decimal(below, 4)} = {decimal(score, 4)}" if below else "not defined"
    left = len(rows) - len(known)
    unjudged = f"; {counted(left, 'without a verdict is', 'without a verdict are')} left out" if left else ""
    calculation = f"{measure} = sum of weight * value / sum of weights = {numbers}{unjudged}"
    title = f"{measure} of topic {topic}, run {answered.name}"
    return Table("pieces", tuple(columns), title, labels=len(columns) - 2), Sentences((calculation,))


def _answer(one: Responses, qrels: Qrels | None) -> Iterator[Block]:
    """Give the answer, its sentences, its nuggets and its context; what is not recorded is left out."""
    answer, *_ = one["answers"].to_pylist()
    sentences = one["sentences"].sort_by("sentence").to_pylist()
    text = answer["text"] or " ".join(row["text"] or "" for row in sentences)
    correct = middle_verdicts(one["correctness"], "query_id").values()
    silent = ["It says that it cannot answer."] if answer["abstained"] else []
    yield Sentences((text, *silent, *(_OUTCOMES[verdict] for verdict in correct)))
    if sentences:
        yield _said(sentences, one)
    if one["nuggets"].num_rows:
        yield _nuggets(one)
    judged = [] if qrels is None else qrels.table.to_pylist()
    grades = {row["doc_id"]: row["relevance"] for row in judged}
    cited = set(one["citations"]["doc_id"].to_pylist())
    items = tuple(
        RankedDocument(
            str(row["rank"]),
            row["doc_id"],
            f"{grades[row['doc_id']]:g}" if row["doc_id"] in grades else "",
            grades[row["doc_id"]] > 0 if row["doc_id"] in grades else None,
            change="cited" if row["doc_id"] in cited else "",
            text=row["text"] or "",
        )
        for row in one["context"].sort_by("rank").to_pylist()
    )
    if items:
        yield RankedLists("context", "What it was given", (), (RankedList(one.run_names[0], "", items),))


def _said(rows: list[Any], one: Responses) -> Table:
    support, citations = (
        middle_verdicts(one["support"], "sentence", "doc_id"),
        one.grouped("citations", ["sentence"], "place"),
    )
    cited = {number: [row["doc_id"] for row in some] for (number,), some in citations.items()}
    numbers = [row["sentence"] for row in rows]
    best = [
        min((support.get((number, doc), FAILED) for doc in cited.get(number, ())), key=_BEST_FIRST.index, default="")
        for number in numbers
    ]
    columns = (
        Column("sentence", numbers, COUNT, ""),
        Column("text", [row["text"] or "" for row in rows], TEXT, "says"),
        _explaining_verdicts("supported", best, "by a citation", _SUPPORTED),
        _explaining_verdicts(
            "grounded", [support.get((number, ""), "") for number in numbers], "by the context", _SUPPORTED
        ),
        Column("cites", [", ".join(cited.get(number, ())) or "nothing" for number in numbers], TEXT),
    )
    return Table("said", columns, "Sentence by sentence", labels=3)


def _nuggets(one: Responses) -> Table:
    nuggets, assigned = one["nuggets"].to_pylist(), middle_verdicts(one["assignments"], "nugget_id")
    evidence = one.grouped("evidence", ["nugget_id"])
    stands = [", ".join(row["doc_id"] for row in evidence.get((nugget["nugget_id"],), ())) for nugget in nuggets]
    columns = (
        Column("nugget_id", [row["nugget_id"] for row in nuggets], TEXT, only="data"),
        Column("text", [row["text"] or row["nugget_id"] for row in nuggets], TEXT, "should say"),
        Column("importance", [row["importance"] for row in nuggets], TEXT),
        _explaining_verdicts(
            "covered", [assigned.get((row["nugget_id"],), FAILED) for row in nuggets], "says it", _COVERED
        ),
        Column("evidence", stands, TEXT, "stands in"),
    )
    return Table("nuggets", columns, "Nuggets")


def _explaining_verdicts(name: str, verdicts: list[str], title: str, words: Mapping[str, str]) -> Column:
    """Set verdicts off as good or bad; those of which there is none at all are left out for people."""
    kinds = [_KINDS.get(verdict, "") for verdict in verdicts]
    marks, only = ["●" if kind else "" for kind in kinds], "" if any(verdicts) else "data"
    return Column(name, [words[verdict] for verdict in verdicts], TEXT, title, mark=marks, kinds=kinds, only=only)
