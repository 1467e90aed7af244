"""Requests to a model that fill a table of responses, and parsing of its replies; malformed replies become `failed`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa

from judged.data.qrels import Qrels
from judged.data.query_text import normalize_query
from judged.errors import InputError
from judged.labels.asking.asking import AskResult, Tally, replies_with_targets, request_key, request_notes
from judged.labels.asking.client import Budget
from judged.labels.asking.preparation import (
    Prepared,
    RequestBuilder,
    RequestTarget,
    RequestTexts,
    hash_fraction,
    prepare_requests,
)
from judged.labels.asking.prompts import Prompt, invalid_reason, parse_reply, reply_text
from judged.labels.store import LabelStore
from judged.pipelines.rag.responses import FAILED, KEYS, OKAY, VERDICTS, VITAL, Responses, table_of_records
from judged.results import COUNT, TEXT, Column, Table, counted
from judged.results.blocks import Note, first_few
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.labels.asking.client import Endpoint, Reply
    from judged.labels.asking.prompts import Invalid
    from judged.results import Block


NUGGETS_PER_REQUEST = 10
MAX_NUGGET_WORDS = 12
_TOKENS_PER_NUGGET = 32  # limit for a line with a nugget
_MIN_REPEATED_TOPICS = 2  # a variance needs two
_ANSWER_KEY = ("query_id", "run_id")


class _Question(NamedTuple):
    """Content of one request."""

    row: RequestTarget  # key of the row that the reply fills, without judge and repeat
    values: Mapping[str, str]  # values of the prompt's placeholders
    names: Sequence[str]  # names of its texts, as in `RequestTexts.addressed`


@dataclass(frozen=True, eq=False, repr=False)
class Filling(Prepared):
    """Requests whose replies fill a table, like `judged.labels.asking.Prepared`.

    Attributes
    ----------
    responses, table_name
        Responses, and name of the table.
    skipped
        Rows that become `failed` without a request, as one of their texts addresses the judge.
    """

    kind: ClassVar[str] = "filling"

    responses: Responses | None = None
    table_name: str = ""
    skipped: tuple[RequestTarget, ...] = ()


def prepare_table(
    table_name: str,
    responses: Responses,
    endpoint: Endpoint,
    *,
    queries: Any = None,
    texts: Any = None,
    store: LabelStore | str = "sqlite://",
    judge: str = "",
    repeats: float = 0.1,
    characters: int | None = None,
    keep_addressed: bool = False,
    families: Mapping[str, str] | None = None,
    context: bool = False,
    qrels: Any = None,
    rel: float = 1,
    depth: int = 10,
    limit: int = 30,
) -> Filling:
    """Prepare the requests to a model whose replies fill a table.

    Parameters
    ----------
    table_name
        ``assignments``: how well each answer covers each nugget of its topic. ``support``: how well each cited document
        supports its sentence. ``correctness``: how well each answer agrees with the references of its topic.
        ``nuggets``: facts that answers should contain, from relevant documents, for topics without nuggets.
    responses, queries
        Responses, and texts of queries as for `Topics.of`; support needs no queries.
    endpoint, store
        Endpoint of the model, and cache of its replies: a `LabelStore` or its path. Default: in memory.
    texts
        Texts of documents that the context lacks, as for `Texts.of`. Support is judged on the text in the context.
    judge
        Name of the judge. Default: name of the model at the endpoint.
    repeats
        Share of topics, from 0 to 1, of which all verdicts are requested again with another seed, at least two topics.
        The judge's own variance is estimated from these.
    characters
        Maximum length to which texts are truncated. Default: no limit.
    keep_addressed
        Whether to send texts that address the judge. If not, the verdicts that depend on them are failed.
    families
        Model behind each system, by its name: a judge of the same family is mentioned in a note.
    context
        For support: whether each sentence is compared with its complete context instead of each cited document.
    qrels, rel, depth, limit
        For nuggets: judgments as for `Qrels.of`; lowest relevant grade; maximum number of documents of a topic, highest
        grades first, without documents that address the judge; and maximum number of nuggets of a topic.

    Raises
    ------
    InputError
        If the tables that the questions need are missing, or an input is invalid.
    """
    if table_name not in _TASKS:
        raise InputError(f"models cannot fill the table {table_name!r}", fix=use_one_of(_TASKS))
    if not 0 <= repeats <= 1:
        raise InputError(f"`repeats` must be a share from 0 to 1, got {repeats:g}", fix="use 0.1")
    judge = judge or endpoint.model
    source = _request_texts(responses, store, queries, texts, characters)
    verdicts = tuple(word for word in VERDICTS.get(table_name, ()) if word != FAILED)
    options: dict[str, Any] = {"tokens": NUGGETS_PER_REQUEST * 8} if table_name == "assignments" else {}
    if table_name == "nuggets":
        options, repeats = {"tokens": limit * _TOKENS_PER_NUGGET, "values": {"limit": str(limit)}}, 0.0
    prompt = Prompt.read(table_name, verdicts, "judged.pipelines.rag", **options)
    questions, skipped = list[_Question](), list[RequestTarget]()
    for question in _TASKS[table_name](responses, source, _TableOptions(context, qrels, rel, depth)):
        if not keep_addressed and any(name in source.addressed for name in question.names):
            skipped.append((*question.row, 0))
        else:
            questions.append(question)
    base = prepare_requests(source, endpoint, judge, prompt, *_requests(endpoint, prompt, judge, questions, repeats))
    notes = list(base.notes)
    if skipped:
        requests_text = counted(len(skipped), "request")
        text = f"{requests_text} not sent, and counted as failed: a text contains instructions to the judge"
        notes.append(Note("not-sent", text))
    family = family_of(endpoint.model)
    if siblings := sorted(run for run, model in (families or {}).items() if family and family_of(model) == family):
        text = f"{judge} is of the same model family ({family}) as {first_few(siblings)}, and may favor these systems"
        notes.append(Note("same-family", text))
    sends = "the prompt, and texts of queries, answers, documents, nuggets, and reference answers"
    fields: dict[str, Any] = {**vars(base), "sends": sends, "notes": tuple(notes)}
    return Filling(**fields, responses=responses, table_name=table_name, skipped=tuple(skipped))


def _request_texts(
    responses: Responses, store: LabelStore | str, queries: Any, texts: Any, characters: int | None
) -> _RequestTexts:
    label_store = store if isinstance(store, LabelStore) else LabelStore.open(store)
    if queries is not None:
        label_store.add_topics(queries)
    if texts is None:
        rows = responses["context"].select(["doc_id", "text"]).to_pylist()
        texts = {row["doc_id"]: row["text"] for row in rows if row["text"]}
    return _RequestTexts(label_store, texts, characters)


def _requests(
    endpoint: Endpoint, prompt: Prompt, judge: str, questions: Sequence[_Question], repeats: float
) -> tuple[dict[str, RequestBuilder], dict[str, list[RequestTarget]]]:
    """Return functions that build the request bodies, and the rows that each reply fills, both by request key."""
    # The order by hash of judge and topic selects repeated topics at random, but the same ones in every call.
    topics = sorted({question.row[0] for question in questions}, key=lambda topic: hash_fraction(judge, topic))
    repeated = set(topics[: max(_MIN_REPEATED_TOPICS, ceil(repeats * len(topics)))] if repeats else ())
    requests, rows_of = dict[str, RequestBuilder](), dict[str, list[RequestTarget]]()
    for question in questions:
        for repeat in (0, 1) if question.row[0] in repeated else (0,):
            build = partial(_body, endpoint, prompt, question.values, repeat)
            key = request_key(build(), repeat)
            requests[key] = build
            rows_of.setdefault(key, []).append((*question.row, repeat))
    return requests, rows_of


def _body(endpoint: Endpoint, prompt: Prompt, values: Mapping[str, str], repeat: int) -> dict[str, Any]:
    return endpoint.request(prompt.messages(values), repeat, prompt.tokens)


class _RequestTexts(RequestTexts):
    """Texts of queries, documents, and answers for requests."""

    def query(self, query_id: str) -> dict[str, str]:
        return {"query": self._topics[query_id]["text"]}


class _TableOptions(NamedTuple):
    """Parameters of `prepare_table` that only some tables need."""

    context: bool
    qrels: Any
    rel: float
    depth: int


def _nugget_questions(responses: Responses, source: _RequestTexts, options: _TableOptions) -> Iterator[_Question]:
    if options.qrels is None:
        raise InputError("listing nuggets requires judgments of documents", fix="pass `qrels`")
    judgments = Qrels.of(options.qrels).table
    columns = (judgments[name].to_pylist() for name in ("query_id", "doc_id", "relevance"))
    relevant: dict[str, list[tuple[float, str]]] = {}
    for query, doc, grade in zip(*columns, strict=True):
        if grade >= options.rel:
            relevant.setdefault(query, []).append((-grade, doc))
    answered, with_nuggets = (set(responses[name]["query_id"].to_pylist()) for name in ("answers", "nuggets"))
    for query in sorted((relevant.keys() & answered) - with_nuggets):
        docs = [doc for _, doc in sorted(relevant[query])]
        usable = [doc for doc in docs if source.has_texts(query, doc) and doc not in source.addressed][: options.depth]
        if usable:
            values = {**source.query(query), "documents": format_numbered("document", map(source.document, usable))}
            yield _Question((query, tuple(usable)), values, ())


def _assignment_questions(responses: Responses, source: _RequestTexts, _: _TableOptions) -> Iterator[_Question]:
    if not responses["nuggets"].num_rows:
        raise InputError(
            "the table `nuggets` is missing", fix="add the table, or create the table with 'judged rag nuggets'"
        )
    nuggets = responses.grouped("nuggets", ("query_id",))
    for query, run, name, text in _answers(responses, source):
        rows = nuggets.get((query,), [])
        for start in range(0, len(rows), NUGGETS_PER_REQUEST):
            batch = rows[start : start + NUGGETS_PER_REQUEST]
            numbered = "\n".join(f"{number}: {row['text'] or ''}" for number, row in enumerate(batch, 1))
            values = {**source.query(query), "answer": text, "nuggets": numbered}
            yield _Question((query, run, tuple(row["nugget_id"] for row in batch)), values, (name,))


def _support_questions(responses: Responses, source: _RequestTexts, options: _TableOptions) -> Iterator[_Question]:
    if not responses["context" if options.context else "citations"].num_rows:
        problem, fix = (
            "the table `citations` is missing",
            "add the table, or judge the support by the whole context (--context)",
        )
        if options.context:
            problem, fix = (
                "the table `context` is missing",
                "add the table, with the passages that the generator received",
            )
        raise InputError(problem, fix=fix, path=responses.where)
    rows = responses["context"].to_pylist()
    passage_texts = {(row["query_id"], row["run_id"], row["doc_id"]): row["text"] for row in rows}
    contexts = responses.grouped("context", _ANSWER_KEY, "rank")
    citations = responses.grouped("citations", (*_ANSWER_KEY, "sentence"), "place")
    for row in responses["sentences"].to_pylist():
        key = query, run, number = row["query_id"], row["run_id"], row["sentence"]
        doc_lists = [[citation["doc_id"]] for citation in citations.get(key, ())]
        if options.context:
            doc_lists = [[passage["doc_id"] for passage in contexts.get((query, run), ())]]
        for docs in filter(None, doc_lists):
            name = f"sentence {number} of {run} on {query}"
            sentence = source.clip(name, row["text"] or "")
            passages = [
                source.clip(doc, text) if (text := passage_texts.get((query, run, doc))) else source.document(doc)
                for doc in docs
            ]
            if not sentence or not all(passages):
                source.missing.add((*map(str, key), *docs))
                continue
            values = {"sentence": sentence, "documents": format_numbered("document", passages)}
            yield _Question((*key, "" if options.context else docs[0]), values, (name, *docs))


def _correctness_questions(responses: Responses, source: _RequestTexts, _: _TableOptions) -> Iterator[_Question]:
    references: dict[str, list[str]] = {}
    for row in responses["references"].to_pylist():
        if row["text"]:
            references.setdefault(row["query_id"], []).append(row["text"])
    if not references:
        raise InputError(
            "the table `references` is missing",
            fix="add a table `references` with the correct answers",
            path=responses.where,
        )
    for query, run, name, text in _answers(responses, source):
        if query in references:
            values = {"answer": text, "references": format_numbered("right answer", references[query])}
            yield _Question((query, run), {**source.query(query), **values}, (name,))


_TASKS: Mapping[str, Callable[[Responses, _RequestTexts, _TableOptions], Iterator[_Question]]] = {
    "nuggets": _nugget_questions,
    "assignments": _assignment_questions,
    "support": _support_questions,
    "correctness": _correctness_questions,
}


def _answers(responses: Responses, source: _RequestTexts) -> Iterator[tuple[str, str, str, str]]:
    """Yield topic, system, name, and text of each answer; without a text of its own, that of its sentences."""
    sentences = responses.grouped("sentences", _ANSWER_KEY, "sentence")
    for row in responses["answers"].to_pylist():
        query, run = row["query_id"], row["run_id"]
        sentence_texts = (sentence["text"] or "" for sentence in sentences.get((query, run), ()))
        name = f"answer of {run} to {query}"
        text = source.clip(name, row["text"] or " ".join(sentence_texts))
        if source.has_texts(query) and text:
            yield query, run, name, text
        else:
            source.missing.add((query, run))


def format_numbered(noun: str, texts: Iterable[str]) -> str:
    """Format texts between numbered lines with a code, a hash of all texts that none of them can contain.

    >>> print(format_numbered("document", ["Cats sleep."]))
    ----- document 1 4437f5d1a467 begins -----
    Cats sleep.
    ----- document 1 4437f5d1a467 ends -----
    """
    passages = list(texts)
    code = sha256("\0".join(passages).encode()).hexdigest()[:12]
    return "\n\n".join(
        f"----- {noun} {number} {code} begins -----\n{text}\n----- {noun} {number} {code} ends -----"
        for number, text in enumerate(passages, 1)
    )


def family_of(model: str) -> str:
    """Return the family of a model: the first word of its name, without the publisher.

    >>> family_of("meta-llama/Llama-3.1-8B"), family_of("gpt-4o-mini"), family_of("models/GPT4.1")
    ('llama', 'gpt', 'gpt')
    """
    word = re.match(r"[a-z]+", model.rpartition("/")[2].casefold())
    return word[0] if word else ""


_NUGGET = re.compile(r"(vital|okay) *\| *(\d{1,3}(?: *, *\d{1,3})*) *\| *(\S[^|\r\n]*)", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class Filled(AskResult):
    """Result of `fill`.

    Attributes
    ----------
    responses
        Responses with the filled table.
    table_name
        Name of the table.
    """

    kind: ClassVar[str] = "filled"
    main: ClassVar[str] = "filled"

    responses: Responses | None = None
    table_name: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()

    def reply_blocks(self) -> tuple[Block, ...]:
        """Return a table with the number of each verdict, or of vital and okay nuggets."""
        title = f"Replies of {self.prepared.judge}: {self.table_name}"
        if self.table_name == "nuggets":
            counts = Counter(row["importance"] for row in self.rows if "importance" in row)
            columns = [Column("importance", [VITAL, OKAY], TEXT), Column("count", [counts[VITAL], counts[OKAY]], COUNT)]
            return (Table("filled", tuple(columns), title),)
        verdicts = VERDICTS[self.table_name]
        columns = [Column("verdict", list(verdicts), TEXT)]
        for name, repeat in (("count", 0), ("repeated", 1)):
            counts = Counter(row["verdict"] for row in self.rows if row["repeat"] == repeat)
            columns.append(Column(name, [counts[verdict] for verdict in verdicts], COUNT))
        return (Table("filled", tuple(columns), title),)


def fill(
    prepared: Filling,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Filled:
    """Send the prepared requests, and fill the table with the replies.

    Replies in another format are counted, and their rows are `failed`. Requests without a reply have no row: if the
    store is a file, the same calls of `prepare_table` and `fill` continue with them. Earlier rows of the same judge
    with the same key are replaced. For the parameters see `judged.labels.asking.ask`.

    Raises
    ------
    InputError
        If the API key is missing, or the budget is in money and prices or lengths are unknown.
    MissingExtraError
        If httpx is not installed.
    """
    responses, table_name = prepared.responses, prepared.table_name
    if responses is None:
        raise InputError("no requests were prepared", fix="pass the result of prepare_table")
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    new_rows, without_nuggets = list[dict[str, Any]](), list[str]()
    for row in prepared.skipped:
        new_rows += _verdict_rows(table_name, prepared.judge, row, None)
    for answered, rows in replies_with_targets(prepared, tally, progress):
        for i, row in enumerate(rows):
            if table_name == "nuggets":
                query, docs, _ = row
                nuggets, invalid = parse_nuggets(answered.reply, docs, int(prepared.prompt.values["limit"]))
                new_rows += ({"query_id": query, **nugget} for nugget in nuggets)
                without_nuggets += [] if nuggets else [query]
            elif table_name == "assignments":
                verdicts, invalid = parse_verdicts(answered.reply, len(row[2]), prepared.prompt.allowed_answers)
                new_rows += _verdict_rows(table_name, prepared.judge, row, verdicts)
            else:
                verdict, invalid = parse_reply(answered.reply, prepared.prompt.allowed_answers)
                new_rows += _verdict_rows(table_name, prepared.judge, row, None if verdict is None else [verdict])
            if invalid and not i:  # several rows can share one reply
                tally.invalid[invalid] += 1
    notes = request_notes(prepared, tally)
    if without_nuggets:
        text = (
            f"the replies contain no nuggets for {counted(len(without_nuggets), 'topic')}:"
            f" {first_few(sorted(without_nuggets))}"
        )
        notes = (*notes, Note("no-nuggets", text))
    table_names = ("nuggets", "evidence") if table_name == "nuggets" else (table_name,)
    tables = {name: _with_rows(responses, name, new_rows) for name in table_names}
    return Filled(prepared, tally, notes, responses.with_tables(**tables), table_name, tuple(new_rows))


def parse_nuggets(reply: Reply, docs: Sequence[str], limit: int) -> tuple[list[dict[str, Any]], Invalid | None]:
    """Parse nuggets and the documents that contain them; a malformed line invalidates the reply.

    >>> from judged.labels.asking.client import Reply
    >>> parse_nuggets(Reply("vital | 2 | Goethe wrote Faust"), ["a", "b"], 5)[0][0]
    {'nugget_id': '1', 'text': 'Goethe wrote Faust', 'importance': 'vital'}
    >>> parse_nuggets(Reply("- Goethe wrote Faust"), ["a", "b"], 5)
    ([], 'no answer')
    """
    text, invalid = reply_text(reply)
    if invalid:
        return [], invalid
    if text == "NONE":
        return [], None
    nuggets: dict[str, tuple[str, str, set[int]]] = {}
    for line in filter(str.strip, text.split("\n")):
        match = _NUGGET.fullmatch(line.strip())
        doc_numbers = [int(number) for number in match[2].split(",")] if match else []
        if (
            match is None
            or not all(1 <= number <= len(docs) for number in doc_numbers)
            or len(match[3].split()) > MAX_NUGGET_WORDS
        ):
            return [], "other format" if match else invalid_reason(text, ())
        nugget = match[3].strip()
        nuggets.setdefault(normalize_query(nugget), (nugget, match[1].casefold(), set()))[2].update(doc_numbers)
    if len(nuggets) > limit:
        return [], "other format"
    rows: list[dict[str, Any]] = []
    for nugget_number, (nugget, importance, doc_numbers) in enumerate(nuggets.values(), 1):
        rows.append({"nugget_id": str(nugget_number), "text": nugget, "importance": importance})
        rows += ({"nugget_id": str(nugget_number), "doc_id": docs[number - 1]} for number in sorted(doc_numbers))
    return rows, None


def parse_verdicts(reply: Reply, n: int, forms: Sequence[str]) -> tuple[list[str] | None, Invalid | None]:
    r"""Parse the verdicts on `n` numbered facts; all are required, in order, without other text.

    >>> from judged.labels.asking.client import Reply
    >>> parse_verdicts(Reply("1: support\n2: not"), 2, ("support", "not"))
    (['support', 'not'], None)
    >>> parse_verdicts(Reply("1: support"), 2, ("support", "not"))
    (None, 'other format')
    """
    text, invalid = reply_text(reply)
    if invalid:
        return None, invalid
    lines = [line.strip().casefold() for line in text.split("\n") if line.strip()]
    numbers = [line.partition(":")[0].strip() for line in lines]
    verdicts = [line.partition(":")[2].strip() for line in lines]
    if numbers == [str(number) for number in range(1, n + 1)] and set(verdicts) <= set(forms):
        return verdicts, None
    return None, "other format" if ":" in text else invalid_reason(text, ())


def _verdict_rows(table: str, judge: str, row: RequestTarget, verdicts: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return the rows that a reply fills; without verdicts they are failed."""
    key_columns = [name for name in KEYS[table] if name not in ("judge", "repeat")]
    *key, repeat = row
    keys = [(*key[:-1], nugget) for nugget in key[-1]] if table == "assignments" else [tuple(key)]
    return [
        {**dict(zip(key_columns, row_key, strict=True)), "judge": judge, "repeat": repeat, "verdict": verdict}
        for row_key, verdict in zip(keys, verdicts or [FAILED] * len(keys), strict=True)
    ]


def _with_rows(responses: Responses, table: str, new_rows: Sequence[Mapping[str, Any]]) -> Any:
    """Add rows to a table; they replace rows with the same key."""
    # Replies about nuggets have rows of both tables; only those of evidence have a document.
    is_evidence, is_either = table == "evidence", table in ("nuggets", "evidence")
    rows = [row for row in new_rows if not is_either or ("doc_id" in row) == is_evidence]
    added = table_of_records(table, ((None, dict(row)) for row in rows), f"<{table}>")
    unchanged = responses[table].join(added.select(KEYS[table]), list(KEYS[table]), join_type="left anti")
    combined = pa.concat_tables([unchanged.select(added.column_names), added])
    return combined.sort_by([(name, "ascending") for name in KEYS[table]])  # replies arrive in any order
