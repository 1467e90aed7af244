"""What models are asked about answers, prepared and not yet sent: a table is filled with what they will say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from judged.answer import counted
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.labels.asking.preparation import Make, Prepared, Row, Source, prepared, share_of
from judged.labels.asking.prompts import Prompt
from judged.labels.asking.replies import request_key
from judged.labels.store import LabelStore
from judged.notes import Note, first_few
from judged.rag.responses import CONTRADICTS, NOT, PARTIAL, SUPPORT, Responses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.labels.asking.client import Endpoint

AT_ONCE = 10
"""So many nuggets are asked about in one request."""
MOST_WORDS = 12
"""The longest nugget."""
_LINE = 32  # tokens of a line with a nugget, at most
_LEAST_REPEATED = 2  # topics: of fewer there is no variance
_HOW_FAR = (SUPPORT, PARTIAL, NOT)
_FORMS = {"nuggets": (), "assignments": _HOW_FAR, "support": (*_HOW_FAR, CONTRADICTS), "correctness": _HOW_FAR}


class _Question(NamedTuple):
    """What one request is about."""

    row: Row  # the key of what it fills, without judge and repeat
    values: Mapping[str, str]  # of places of the prompt
    names: Sequence[str]  # of the texts in it, as `Source.addressed` has them


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
    unasked: tuple[Row, ...] = field(default=(), repr=False)


def prepare_nuggets(
    responses: Responses,
    endpoint: Endpoint,
    qrels: Any,
    *,
    store: LabelStore | str = "sqlite://",
    queries: Any,
    texts: Any = None,
    judge: str = "",
    rel: float = 1,
    depth: int = 10,
    limit: int = 30,
    characters: int | None = None,
) -> Filling:
    """Have nuggets made from the documents that were judged relevant, for topics that have none.

    Parameters
    ----------
    responses, queries
        The answers, whose topics count, and the texts of the queries as `Topics.of` takes them.
    endpoint, store
        Where the model is asked, and where its replies are kept: in memory, or in a `LabelStore` or the path of one.
    qrels, rel, depth
        Judgments as `Qrels.of` takes them; documents from the grade `rel` on are shown, those of the highest grades, at
        most `depth` of a topic. Those that address the judge are left out.
    texts
        Texts of documents, as `Texts.of` takes them.
    judge
        The model's name as a judge; empty for its name at the endpoint.
    limit
        The most nuggets of a topic.
    characters
        Texts are cut to so many; None: not cut.
    """
    source = _source(responses, store, queries, texts, characters)
    have = set(responses["nuggets"]["query_id"].to_pylist())
    judgments = Qrels.of(qrels)
    columns = (judgments.table[name].to_pylist() for name in ("query_id", "doc_id", "relevance"))
    relevant: dict[str, list[tuple[float, str]]] = {}
    for query, doc, grade in zip(*columns, strict=True):
        if grade >= rel and query not in have:
            relevant.setdefault(query, []).append((-grade, doc))
    topics = set(responses["answers"]["query_id"].to_pylist())

    def questions() -> Iterator[_Question]:
        for query in sorted(relevant.keys() & topics):
            docs = [doc for _, doc in sorted(relevant[query])]
            known = [doc for doc in docs if source.has(query, doc) and doc not in source.addressed][:depth]
            if known:
                shown = numbered("document", map(source.document, known))
                yield _Question((query, tuple(known)), {**source.query(query), "documents": shown}, ())

    prompt = _prompt("nuggets", tokens=limit * _LINE, values={"limit": str(limit)})
    return _filling(responses, "nuggets", source, endpoint, judge, prompt, questions(), 0.0)


def prepare_assignments(
    responses: Responses,
    endpoint: Endpoint,
    *,
    store: LabelStore | str = "sqlite://",
    queries: Any,
    judge: str = "",
    repeats: float = 0.1,
    characters: int | None = None,
    keep_addressed: bool = False,
    families: Mapping[str, str] | None = None,
) -> Filling:
    """Have it said how far each answer says each nugget of its topic.

    Parameters
    ----------
    repeats
        The share of topics, from 0 to 1, of which all is asked again with another seed, two at least: the judge's own
        variance is estimated of them.
    keep_addressed
        Whether a text that addresses the judge is asked about; if not, what rests on it is failed.
    families
        The model behind a system, by its name: a judge of the same family is marked.

    The others are those of `prepare_nuggets`.
    """
    source = _source(responses, store, queries, None, characters)
    nuggets: dict[str, list[tuple[str, str]]] = {}
    for row in responses["nuggets"].to_pylist():
        nuggets.setdefault(row["query_id"], []).append((row["nugget_id"], row["text"] or ""))

    def questions() -> Iterator[_Question]:
        for query, run, name, text in _answers(responses, source):
            given = nuggets.get(query, [])
            for start in range(0, len(given), AT_ONCE):
                batch = given[start : start + AT_ONCE]
                listed = "\n".join(f"{at}: {nugget}" for at, (_, nugget) in enumerate(batch, 1))
                values = {**source.query(query), "answer": text, "nuggets": listed}
                yield _Question((query, run, tuple(nugget_id for nugget_id, _ in batch)), values, (name,))

    if not nuggets:
        raise InputError("there are no nuggets", fix="give them, or have them made: judged rag nuggets")
    prompt = _prompt("assignments", tokens=AT_ONCE * 8)
    made = _filling(responses, "assignments", source, endpoint, judge, prompt, questions(), repeats, keep_addressed)
    return _marked(made, families)


def prepare_support(
    responses: Responses,
    endpoint: Endpoint,
    *,
    store: LabelStore | str = "sqlite://",
    texts: Any = None,
    judge: str = "",
    repeats: float = 0.1,
    characters: int | None = None,
    context: bool = False,
    keep_addressed: bool = False,
    families: Mapping[str, str] | None = None,
) -> Filling:
    """Have it said how far each document that a sentence cites supports it.

    Parameters
    ----------
    texts
        Texts of documents that the context does not have: what stood in the context is what the judge is shown.
    context
        Whether each sentence is set against all of its context together, instead of what it cites.

    The others are those of `prepare_assignments`.
    """
    source = _source(responses, store, None, texts, characters)
    answer = ("query_id", "run_id")
    shown = {(*(row[name] for name in answer), row["doc_id"]): row["text"] for row in responses["context"].to_pylist()}
    order = [(name, "ascending") for name in (*answer, "rank")]
    whole: dict[tuple[str, str], list[str]] = {}
    for row in responses["context"].sort_by(order).to_pylist():
        whole.setdefault((row["query_id"], row["run_id"]), []).append(row["doc_id"])
    cited: dict[tuple[str, str, int], list[list[str]]] = {}
    order = [(name, "ascending") for name in (*answer, "sentence", "place")]
    for row in responses["citations"].sort_by(order).to_pylist():
        cited.setdefault((row["query_id"], row["run_id"], row["sentence"]), []).append([row["doc_id"]])

    def questions() -> Iterator[_Question]:
        for row in responses["sentences"].to_pylist():
            key = row["query_id"], row["run_id"], row["sentence"]
            groups = [whole.get(key[:2], [])] if context else cited.get(key, [])
            for docs in filter(None, groups):
                name = f"sentence {key[2]} of {key[1]} on {key[0]}"
                sentence = source.shown(name, row["text"] or "")
                passages = [
                    source.shown(doc, kept) if (kept := shown.get((*key[:2], doc))) else source.document(doc)
                    for doc in docs
                ]
                if not sentence or not all(passages):
                    source.missing.add((*map(str, key), *docs))
                    continue
                values = {"sentence": sentence, "documents": numbered("document", passages)}
                yield _Question((*key, "" if context else docs[0]), values, (name, *docs))

    if not (whole if context else cited):
        fix = "give a table of the context" if context else "give citations, or ask about the context"
        raise InputError(f"there {'is no context' if context else 'are no citations'}", fix=fix, path=responses.where)
    made = _filling(
        responses, "support", source, endpoint, judge, _prompt("support"), questions(), repeats, keep_addressed
    )
    return _marked(made, families)


def prepare_correctness(
    responses: Responses,
    endpoint: Endpoint,
    *,
    store: LabelStore | str = "sqlite://",
    queries: Any,
    judge: str = "",
    repeats: float = 0.1,
    characters: int | None = None,
    keep_addressed: bool = False,
    families: Mapping[str, str] | None = None,
) -> Filling:
    """Have it said how far each answer agrees with the references of its topic; parameters as `prepare_assignments`."""
    source = _source(responses, store, queries, None, characters)
    right: dict[str, list[str]] = {}
    for row in responses["references"].to_pylist():
        if row["text"]:
            right.setdefault(row["query_id"], []).append(row["text"])
    if not right:
        raise InputError("there are no references", fix="give a table of right answers", path=responses.where)

    def questions() -> Iterator[_Question]:
        for query, run, name, text in _answers(responses, source):
            if query in right:
                values = {"answer": text, "references": numbered("right answer", right[query])}
                yield _Question((query, run), {**source.query(query), **values}, (name,))

    made = _filling(
        responses, "correctness", source, endpoint, judge, _prompt("correctness"), questions(), repeats, keep_addressed
    )
    return _marked(made, families)


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


class _Source(Source):
    """Texts of queries and documents, and what is shown of answers."""

    def query(self, query_id: str) -> dict[str, str]:
        """Give the text of a query as the value of its place."""
        return {"query": self._topics[query_id]["text"]}


def _source(responses: Responses, store: LabelStore | str, queries: Any, texts: Any, characters: int | None) -> _Source:
    opened = store if isinstance(store, LabelStore) else LabelStore.open(store)
    if queries is not None:
        opened.add_topics(queries)
    if texts is None:
        rows = responses["context"].select(["doc_id", "text"]).to_pylist()
        texts = {row["doc_id"]: row["text"] for row in rows if row["text"]}
    return _Source(opened, texts, characters)


def _prompt(name: str, **more: Any) -> Prompt:
    return Prompt.read(name, _FORMS[name], "judged.rag.asking", **more)


def _answers(responses: Responses, source: _Source) -> Iterator[tuple[str, str, str, str]]:
    """Give topic, system, name and text of the answers that have one; that of its sentences where it has none."""
    parts: dict[tuple[str, str], list[str]] = {}
    order = [(name, "ascending") for name in ("query_id", "run_id", "sentence")]
    for row in responses["sentences"].sort_by(order).to_pylist():
        parts.setdefault((row["query_id"], row["run_id"]), []).append(row["text"] or "")
    for row in responses["answers"].to_pylist():
        query, run = row["query_id"], row["run_id"]
        name = f"answer of {run} to {query}"
        text = source.shown(name, row["text"] or " ".join(parts.get((query, run), ())))
        if source.has(query) and text:
            yield query, run, name, text
        else:
            source.missing.add((query, run))


def _filling(
    responses: Responses,
    table: str,
    source: _Source,
    endpoint: Endpoint,
    judge: str,
    prompt: Prompt,
    questions: Iterator[_Question],
    repeats: float,
    keep_addressed: bool = True,
) -> Filling:
    """Write the requests, and again those of some topics."""
    if not 0 <= repeats <= 1:
        raise InputError(f"a share of {repeats:g} cannot be repeated", fix="give a number from 0 to 1")
    judge = judge or endpoint.model
    asked, unasked = list[_Question](), list[Row]()
    for question in questions:
        if not keep_addressed and any(name in source.addressed for name in question.names):
            unasked.append((*question.row, 0))
        else:
            asked.append(question)
    topics = sorted({question.row[0] for question in asked}, key=lambda topic: share_of(judge, topic))
    again = set(topics[: max(_LEAST_REPEATED, ceil(repeats * len(topics)))] if repeats else ())
    requests, rows = dict[str, Make](), dict[str, list[Row]]()
    for question in asked:
        for repeat in (0, 1) if question.row[0] in again else (0,):
            make = partial(_body, endpoint, prompt, question.values, repeat)
            key = request_key(make(), repeat)
            requests[key] = make
            rows.setdefault(key, []).append((*question.row, repeat))
    base = prepared(source, endpoint, judge, prompt, requests, rows)
    notes = list(base.notes)
    if unasked:
        what = f"{counted(len(unasked), 'question')} not asked, and failed: a text in it addresses the judge"
        notes.append(Note("not-asked", what))
    sends = "texts of queries, answers, documents, nuggets and references, and our prompt"
    parts: dict[str, Any] = {**vars(base), "sends": sends, "notes": tuple(notes)}
    return Filling(**parts, responses=responses, fills=table, unasked=tuple(unasked))


def _body(endpoint: Endpoint, prompt: Prompt, values: Mapping[str, str], repeat: int) -> dict[str, Any]:
    return endpoint.request(prompt.messages(values), repeat, prompt.tokens)


def family_of(model: str) -> str:
    """Give the family of a model by its name: the word with which it begins, behind whoever publishes it.

    >>> family_of("meta-llama/Llama-3.1-8B"), family_of("gpt-4o-mini"), family_of("models/GPT4.1")
    ('llama', 'gpt', 'gpt')
    """
    word = re.match(r"[a-z]+", model.rpartition("/")[2].casefold())
    return word[0] if word else ""


def _marked(made: Filling, families: Mapping[str, str] | None) -> Filling:
    """Note the systems whose model is of the judge's family."""
    own = family_of(made.endpoint.model)
    alike = sorted(run for run, model in (families or {}).items() if own and family_of(model) == own)
    if not alike:
        return made
    text = f"{made.judge} is of the family {own}, as are the models behind {first_few(alike)}: it may favour them"
    return replace(made, notes=(*made.notes, Note("same-family", text)))
