"""A model asked, and its replies as rows of a table: what is not in the form that was asked for is failed."""

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

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.labels.asking.client import Endpoint, Reply
    from judged.labels.asking.prompts import Invalid
    from judged.results import Block


AT_ONCE = 10
"""So many nuggets are asked about in one request."""
MOST_WORDS = 12
"""The longest nugget."""
_LINE = 32  # tokens of a line with a nugget, at most
_LEAST_REPEATED = 2  # topics: of fewer there is no variance
_ANSWER = ("query_id", "run_id")


class _Question(NamedTuple):
    """What one request is about."""

    row: RequestTarget  # the key of what it fills, without judge and repeat
    values: Mapping[str, str]  # of places of the prompt
    names: Sequence[str]  # of the texts in it, as `RequestTexts.addressed` has them


@dataclass(frozen=True, eq=False, repr=False)
class Filling(Prepared):
    """Requests that will fill a table, as `judged.labels.asking.Prepared` has them.

    Attributes
    ----------
    responses, fills
        What the table belongs to, and its name.
    unasked
        Rows that are failed without a request: a text in it addresses the judge.
    """

    kind: ClassVar[str] = "filling"

    responses: Responses | None = None
    fills: str = ""
    unasked: tuple[RequestTarget, ...] = ()


def prepare_table(
    fills: str,
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
    """Write what a model will be asked so that its replies fill a table.

    Parameters
    ----------
    fills
        ``assignments``: how far each answer says each nugget of its topic. ``support``: how far each document that a
        sentence cites supports it. ``correctness``: how far each answer agrees with the references of its topic.
        ``nuggets``: what answers should say, from the documents that were judged relevant, for topics that have none.
    responses, queries
        The answers, and the texts of the queries as `Topics.of` takes them; support needs none.
    endpoint, store
        Where the model is asked, and where its replies are kept: in memory, or in a `LabelStore` or the path of one.
    texts
        Texts of documents that the context does not have, as `Texts.of` takes them: the judge of support is shown what
        stood in the context.
    judge
        The model's name as a judge; empty for its name at the endpoint.
    repeats
        The share of topics, from 0 to 1, of which all verdicts are asked for again with another seed, two at least: the
        judge's own variance is estimated of them.
    characters
        Texts are cut to so many; None: not cut.
    keep_addressed
        Whether a text that addresses the judge is asked about; if not, the verdicts that rest on it are failed.
    families
        The model behind a system, by its name: a judge of the same family is marked.
    context
        Of support: whether each sentence is set against all of its context together, instead of what it cites.
    qrels, rel, depth, limit
        Of nuggets: judgments as `Qrels.of` takes them; documents from the grade `rel` on are shown, those of the
        highest grades, at most `depth` of a topic, but none that addresses the judge; and the most nuggets of a topic.

    Raises
    ------
    InputError
        If what the questions are about is not there, or something cannot be read.
    """
    if fills not in _TASKS:
        raise InputError(f"no table {fills!r} is filled by models", fix=f"use one of {', '.join(_TASKS)}")
    if not 0 <= repeats <= 1:
        raise InputError(f"a share of {repeats:g} cannot be repeated", fix="give a number from 0 to 1")
    judge = judge or endpoint.model
    source = _source(responses, store, queries, texts, characters)
    words = tuple(word for word in VERDICTS.get(fills, ()) if word != FAILED)
    more: dict[str, Any] = {"tokens": AT_ONCE * 8} if fills == "assignments" else {}
    if fills == "nuggets":
        more, repeats = {"tokens": limit * _LINE, "values": {"limit": str(limit)}}, 0.0
    prompt = Prompt.read(fills, words, "judged.pipelines.rag", **more)
    asked, unasked = list[_Question](), list[RequestTarget]()
    for question in _TASKS[fills](responses, source, _Chosen(context, qrels, rel, depth)):
        if not keep_addressed and any(name in source.addressed for name in question.names):
            unasked.append((*question.row, 0))
        else:
            asked.append(question)
    base = prepare_requests(source, endpoint, judge, prompt, *_requests(endpoint, prompt, judge, asked, repeats))
    notes = list(base.notes)
    if unasked:
        what = f"{counted(len(unasked), 'question')} not asked, and failed: a text in it addresses the judge"
        notes.append(Note("not-asked", what))
    own = family_of(endpoint.model)
    if alike := sorted(run for run, model in (families or {}).items() if own and family_of(model) == own):
        text = f"{judge} is of the family {own}, as are the models behind {first_few(alike)}: it may favor them"
        notes.append(Note("same-family", text))
    sends = "texts of queries, answers, documents, nuggets and references, and our prompt"
    parts: dict[str, Any] = {**vars(base), "sends": sends, "notes": tuple(notes)}
    return Filling(**parts, responses=responses, fills=fills, unasked=tuple(unasked))


def _source(responses: Responses, store: LabelStore | str, queries: Any, texts: Any, characters: int | None) -> _Source:
    opened = store if isinstance(store, LabelStore) else LabelStore.open(store)
    if queries is not None:
        opened.add_topics(queries)
    if texts is None:
        rows = responses["context"].select(["doc_id", "text"]).to_pylist()
        texts = {row["doc_id"]: row["text"] for row in rows if row["text"]}
    return _Source(opened, texts, characters)


def _requests(
    endpoint: Endpoint, prompt: Prompt, judge: str, asked: Sequence[_Question], repeats: float
) -> tuple[dict[str, RequestBuilder], dict[str, list[RequestTarget]]]:
    """Write the requests, and again those of some topics; and what each is about."""
    topics = sorted({question.row[0] for question in asked}, key=lambda topic: hash_fraction(judge, topic))
    again = set(topics[: max(_LEAST_REPEATED, ceil(repeats * len(topics)))] if repeats else ())
    requests, about = dict[str, RequestBuilder](), dict[str, list[RequestTarget]]()
    for question in asked:
        for repeat in (0, 1) if question.row[0] in again else (0,):
            make = partial(_body, endpoint, prompt, question.values, repeat)
            key = request_key(make(), repeat)
            requests[key] = make
            about.setdefault(key, []).append((*question.row, repeat))
    return requests, about


def _body(endpoint: Endpoint, prompt: Prompt, values: Mapping[str, str], repeat: int) -> dict[str, Any]:
    return endpoint.request(prompt.messages(values), repeat, prompt.tokens)


class _Source(RequestTexts):
    """Texts of queries and documents, and what is shown of answers."""

    def query(self, query_id: str) -> dict[str, str]:
        """Give the text of a query as the value of its place."""
        return {"query": self._topics[query_id]["text"]}


class _Chosen(NamedTuple):
    """What some questions are made of: parameters of `prepare_table`."""

    context: bool
    qrels: Any
    rel: float
    depth: int


def _of_nuggets(responses: Responses, source: _Source, chosen: _Chosen) -> Iterator[_Question]:
    if chosen.qrels is None:
        raise InputError("nuggets are made from relevant documents", fix="give qrels")
    judgments = Qrels.of(chosen.qrels).table
    columns = (judgments[name].to_pylist() for name in ("query_id", "doc_id", "relevance"))
    relevant: dict[str, list[tuple[float, str]]] = {}
    for query, doc, grade in zip(*columns, strict=True):
        if grade >= chosen.rel:
            relevant.setdefault(query, []).append((-grade, doc))
    answered, have = (set(responses[name]["query_id"].to_pylist()) for name in ("answers", "nuggets"))
    for query in sorted((relevant.keys() & answered) - have):
        docs = [doc for _, doc in sorted(relevant[query])]
        known = [doc for doc in docs if source.has_texts(query, doc) and doc not in source.addressed][: chosen.depth]
        if known:
            values = {**source.query(query), "documents": numbered("document", map(source.document, known))}
            yield _Question((query, tuple(known)), values, ())


def _of_assignments(responses: Responses, source: _Source, _: _Chosen) -> Iterator[_Question]:
    if not responses["nuggets"].num_rows:
        raise InputError("there are no nuggets", fix="give them, or have them made: judged rag nuggets")
    nuggets = responses.grouped("nuggets", ("query_id",))
    for query, run, name, text in _answers(responses, source):
        given = nuggets.get((query,), [])
        for start in range(0, len(given), AT_ONCE):
            batch = given[start : start + AT_ONCE]
            listed = "\n".join(f"{at}: {row['text'] or ''}" for at, row in enumerate(batch, 1))
            values = {**source.query(query), "answer": text, "nuggets": listed}
            yield _Question((query, run, tuple(row["nugget_id"] for row in batch)), values, (name,))


def _of_support(responses: Responses, source: _Source, chosen: _Chosen) -> Iterator[_Question]:
    if not responses["context" if chosen.context else "citations"].num_rows:
        problem, fix = "there are no citations", "give citations, or ask about the context"
        if chosen.context:
            problem, fix = "there is no context", "give a table of the context"
        raise InputError(problem, fix=fix, path=responses.where)
    shown = {(row["query_id"], row["run_id"], row["doc_id"]): row["text"] for row in responses["context"].to_pylist()}
    whole = responses.grouped("context", _ANSWER, "rank")
    cited = responses.grouped("citations", (*_ANSWER, "sentence"), "place")
    for row in responses["sentences"].to_pylist():
        key = query, run, number = row["query_id"], row["run_id"], row["sentence"]
        together = [[one["doc_id"] for one in whole.get((query, run), ())]]
        for docs in filter(None, together if chosen.context else [[one["doc_id"]] for one in cited.get(key, ())]):
            name = f"sentence {number} of {run} on {query}"
            sentence = source.clip(name, row["text"] or "")
            passages = [
                source.clip(doc, kept) if (kept := shown.get((query, run, doc))) else source.document(doc)
                for doc in docs
            ]
            if not sentence or not all(passages):
                source.missing.add((*map(str, key), *docs))
                continue
            values = {"sentence": sentence, "documents": numbered("document", passages)}
            yield _Question((*key, "" if chosen.context else docs[0]), values, (name, *docs))


def _of_correctness(responses: Responses, source: _Source, _: _Chosen) -> Iterator[_Question]:
    right: dict[str, list[str]] = {}
    for row in responses["references"].to_pylist():
        if row["text"]:
            right.setdefault(row["query_id"], []).append(row["text"])
    if not right:
        raise InputError("there are no references", fix="give a table of right answers", path=responses.where)
    for query, run, name, text in _answers(responses, source):
        if query in right:
            values = {"answer": text, "references": numbered("right answer", right[query])}
            yield _Question((query, run), {**source.query(query), **values}, (name,))


_TASKS: Mapping[str, Callable[[Responses, _Source, _Chosen], Iterator[_Question]]] = {
    "nuggets": _of_nuggets,
    "assignments": _of_assignments,
    "support": _of_support,
    "correctness": _of_correctness,
}


def _answers(responses: Responses, source: _Source) -> Iterator[tuple[str, str, str, str]]:
    """Give topic, system, name and text of the answers that have one; that of its sentences where it has none."""
    parts = responses.grouped("sentences", _ANSWER, "sentence")
    for row in responses["answers"].to_pylist():
        query, run = row["query_id"], row["run_id"]
        name, said = f"answer of {run} to {query}", (one["text"] or "" for one in parts.get((query, run), ()))
        text = source.clip(name, row["text"] or " ".join(said))
        if source.has_texts(query) and text:
            yield query, run, name, text
        else:
            source.missing.add((query, run))


def numbered(what: str, texts: Iterable[str]) -> str:
    """Set texts between lines with their numbers and a code that is a hash of them all.

    >>> print(numbered("document", ["Cats sleep."]))
    ----- document 1 4437f5d1a467 begins -----
    Cats sleep.
    ----- document 1 4437f5d1a467 ends -----
    """
    given = list(texts)
    code = sha256("\0".join(given).encode()).hexdigest()[:12]
    return "\n\n".join(
        f"----- {what} {at} {code} begins -----\n{text}\n----- {what} {at} {code} ends -----"
        for at, text in enumerate(given, 1)
    )


def family_of(model: str) -> str:
    """Give the family of a model by its name: the word with which it begins, behind whoever publishes it.

    >>> family_of("meta-llama/Llama-3.1-8B"), family_of("gpt-4o-mini"), family_of("models/GPT4.1")
    ('llama', 'gpt', 'gpt')
    """
    word = re.match(r"[a-z]+", model.rpartition("/")[2].casefold())
    return word[0] if word else ""


_NUGGET = re.compile(r"(vital|okay) *\| *(\d{1,3}(?: *, *\d{1,3})*) *\| *(\S[^|\r\n]*)", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class Filled(AskResult):
    """What `fill` returns.

    Attributes
    ----------
    responses
        The answers with the table that was filled.
    fills
        Its name.
    """

    kind: ClassVar[str] = "filled"
    main: ClassVar[str] = "filled"

    responses: Responses | None = None
    fills: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()

    def reply_blocks(self) -> tuple[Block, ...]:
        """Give how often each verdict was given; of nuggets, how many are vital and okay."""
        title = f"What {self.prepared.judge} said: {self.fills}"
        if self.fills == "nuggets":
            times = Counter(row["importance"] for row in self.rows if "importance" in row)
            columns = [Column("importance", [VITAL, OKAY], TEXT), Column("count", [times[VITAL], times[OKAY]], COUNT)]
            return (Table("filled", tuple(columns), title),)
        words = VERDICTS[self.fills]
        columns = [Column("verdict", list(words), TEXT)]
        for name, repeat in (("count", 0), ("again", 1)):
            times = Counter(row["verdict"] for row in self.rows if row["repeat"] == repeat)
            columns.append(Column(name, [times[word] for word in words], COUNT))
        return (Table("filled", tuple(columns), title),)


def fill(
    prepared: Filling,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Filled:
    """Send what was prepared, and put what comes back into the table.

    A reply in any other form than the one that was asked for is counted, and what it was about is `failed`. What is not
    answered yet has no row; the same calls of `prepare_table` and `fill` go on with what is left, if the store is a
    file. Rows that the same judge gave before for the same are replaced. The parameters are those of
    `judged.labels.asking.ask`.

    Raises
    ------
    InputError
        If there is no key, or the budget is in money and prices or lengths are not known.
    MissingExtraError
        If httpx is not installed.
    """
    responses, table = prepared.responses, prepared.fills
    if responses is None:
        raise InputError("nothing was prepared", fix="use what prepare_table gave")
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    made, without = list[dict[str, Any]](), list[str]()
    for about in prepared.unasked:
        made += _verdicts(table, prepared.judge, about, None)
    for answered, rows in replies_with_targets(prepared, tally, progress):
        for at, about in enumerate(rows):
            if table == "nuggets":
                query, docs, _ = about
                found, invalid = nuggets_of(answered.reply, docs, int(prepared.prompt.values["limit"]))
                made += ({"query_id": query, **row} for row in found)
                without += [] if found else [query]
            elif table == "assignments":
                given, invalid = verdicts_of(answered.reply, len(about[2]), prepared.prompt.allowed_answers)
                made += _verdicts(table, prepared.judge, about, given)
            else:
                form, invalid = parse_reply(answered.reply, prepared.prompt.allowed_answers)
                made += _verdicts(table, prepared.judge, about, None if form is None else [form])
            if invalid and not at:
                tally.invalid[invalid] += 1
    notes = request_notes(prepared, tally)
    if without:
        text = f"no nuggets for {counted(len(without), 'topic')}: {first_few(sorted(without))}"
        notes = (*notes, Note("no-nuggets", text))
    tables = ("nuggets", "evidence") if table == "nuggets" else (table,)
    parts = {name: _with_rows(responses, name, made) for name in tables}
    return Filled(prepared, tally, notes, responses.with_tables(**parts), table, tuple(made))


def nuggets_of(reply: Reply, docs: Sequence[str], limit: int) -> tuple[list[dict[str, Any]], Invalid | None]:
    """Read nuggets and the documents they stand in strictly: one line other than asked for, and there are none.

    >>> from judged.labels.asking.client import Reply
    >>> nuggets_of(Reply("vital | 2 | Goethe wrote Faust"), ["a", "b"], 5)[0][0]
    {'nugget_id': '1', 'text': 'Goethe wrote Faust', 'importance': 'vital'}
    >>> nuggets_of(Reply("- Goethe wrote Faust"), ["a", "b"], 5)
    ([], 'no answer')
    """
    text, invalid = reply_text(reply)
    if invalid:
        return [], invalid
    if text == "NONE":
        return [], None
    known: dict[str, tuple[str, str, set[int]]] = {}
    for line in filter(str.strip, text.split("\n")):
        match = _NUGGET.fullmatch(line.strip())
        places = [int(number) for number in match[2].split(",")] if match else []
        if match is None or not all(1 <= place <= len(docs) for place in places) or len(match[3].split()) > MOST_WORDS:
            return [], "another form" if match else invalid_reason(text, ())
        nugget = match[3].strip()
        known.setdefault(normalize_query(nugget), (nugget, match[1].casefold(), set()))[2].update(places)
    if len(known) > limit:
        return [], "another form"
    rows: list[dict[str, Any]] = []
    for at, (nugget, importance, places) in enumerate(known.values(), 1):
        rows.append({"nugget_id": str(at), "text": nugget, "importance": importance})
        rows += ({"nugget_id": str(at), "doc_id": docs[place - 1]} for place in sorted(places))
    return rows, None


def verdicts_of(reply: Reply, n: int, forms: Sequence[str]) -> tuple[list[str] | None, Invalid | None]:
    r"""Read a verdict for each of `n` numbered facts strictly: all of them, in order, and nothing else.

    >>> from judged.labels.asking.client import Reply
    >>> verdicts_of(Reply("1: support\n2: not"), 2, ("support", "not"))
    (['support', 'not'], None)
    >>> verdicts_of(Reply("1: support"), 2, ("support", "not"))
    (None, 'another form')
    """
    text, invalid = reply_text(reply)
    if invalid:
        return None, invalid
    lines = [line.strip().casefold() for line in text.split("\n") if line.strip()]
    numbers = [line.partition(":")[0].strip() for line in lines]
    words = [line.partition(":")[2].strip() for line in lines]
    if numbers == [str(at) for at in range(1, n + 1)] and set(words) <= set(forms):
        return words, None
    return None, "another form" if ":" in text else invalid_reason(text, ())


def _verdicts(table: str, judge: str, about: RequestTarget, verdicts: Sequence[str] | None) -> list[dict[str, Any]]:
    """Give the rows of a reply; None: there is no verdict."""
    names = [name for name in KEYS[table] if name not in ("judge", "repeat")]
    *key, repeat = about
    keys = [(*key[:-1], nugget) for nugget in key[-1]] if table == "assignments" else [tuple(key)]
    usual = {"judge": judge, "repeat": repeat}
    given = verdicts or [FAILED] * len(keys)
    return [
        {**dict(zip(names, one, strict=True)), **usual, "verdict": verdict}
        for one, verdict in zip(keys, given, strict=True)
    ]


def _with_rows(responses: Responses, table: str, made: Sequence[Mapping[str, Any]]) -> Any:
    """Put rows beside those of a table, or in the place of those with the same key."""
    own = [row for row in made if table not in ("nuggets", "evidence") or ("doc_id" in row) == (table == "evidence")]
    added = table_of_records(table, ((None, dict(row)) for row in own), f"<{table}>")
    kept = responses[table].join(added.select(KEYS[table]), list(KEYS[table]), join_type="left anti")
    whole = pa.concat_tables([kept.select(added.column_names), added])
    return whole.sort_by([(name, "ascending") for name in KEYS[table]])  # replies come in any order
