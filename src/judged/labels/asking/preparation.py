"""What is about to be sent, said before anything is: how many requests, where to, of what, and what they may cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from judged.data.compute import pc
from judged.data.texts import Texts
from judged.errors import InputError
from judged.labels.asking.asking import kept_requests, request_key
from judged.labels.asking.client import Budget, most_tokens
from judged.labels.asking.prompts import Prompt, injection_signs
from judged.labels.labels import SCHEMA
from judged.results import COUNT, TEXT, Answer, Code, Column, Sentences, Table, counted, listed, significant
from judged.results.blocks import Note, first_few

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint
    from judged.labels.store import LabelStore
    from judged.results import Block
    from judged.results.types import Table as ArrowTable

_BYTES = 4  # of a token, about, in English
Row: TypeAlias = tuple[Any, ...]
Make: TypeAlias = "Callable[[], dict[str, Any]]"


@dataclass(frozen=True, eq=False, repr=False)
class Prepared(Answer):
    """Requests that have not been sent: the answer says what they are, and is given to what sends them.

    Attributes
    ----------
    store, endpoint, judge, prompt
        What is asked for whom, and how.
    requests
        What makes the body of each request, by its hash.
    rows
        What the answer of each request is about: (topic, document, repeat), or (topic, document, other document).
    cached
        How many of the requests the store has answers of: they are not sent.
    tokens_in, tokens_out
        Of the others: tokens that are sent, about, and received, at most; None where nothing limits that.
    addressed
        What documents do that looks as if it addressed the judge, by id.
    """

    kind: ClassVar[str] = "asking"

    store: LabelStore
    endpoint: Endpoint
    judge: str
    prompt: Prompt
    requests: Mapping[str, Make]
    rows: Mapping[str, Sequence[Row]]
    cached: int
    tokens_in: int
    tokens_out: int | None
    addressed: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    example: tuple[str, ...] = ()  # the messages of the first request
    each: int = 1  # up to so many requests are sent for each
    sends: str = "texts of topics, titles and texts of documents, our prompt with the scale, and the examples"
    notes: tuple[Note, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Give what goes to another process: there it can be read, and not sent."""
        return {**vars(self), "store": None, "requests": dict.fromkeys(self.requests)}

    @property
    def title(self) -> str:
        """What is asked whom."""
        return f"What {self.judge} will be asked"

    @property
    def calls(self) -> int:
        """How many requests will be sent where all goes well, at most."""
        return (len(self.requests) - self.cached) * self.each

    @property
    def cost(self) -> float | None:
        """What that costs about, at most; None where prices or lengths are not known."""
        if not self.endpoint.priced or self.tokens_out is None:
            return None
        return Budget(self.endpoint).cost(self.tokens_in, self.tokens_out)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What will be sent, and what not."""
        fields = sorted(set(self.endpoint.request([])) - {"messages"})
        said = [
            f"{counted(self.calls, 'request')} will be sent to {self.endpoint.host}, for {self.endpoint.model}.",
            f"{self.cached:,} of {len(self.requests):,} are answered in the store already, and are not sent.",
            f"Sent are {self.sends}.",
            f"Beside them: {listed(fields)}. Not sent are ids, names of judges, and anybody's labels.",
        ]
        if self.cost is None:
            said.append("What it costs is not known: the endpoint's file gives no prices, or no limit of tokens.")
        return tuple(said)

    def facts(self) -> Mapping[str, Any]:
        """Give where it goes."""
        return {"judge": self.judge, "host": self.endpoint.host, "model": self.endpoint.model, "prompt": self.prompt.id}

    def blocks(self) -> tuple[Block, ...]:
        """Give what will be sent, its costs, and the first request as an example."""
        columns = (
            Column("requests", [self.calls], COUNT),
            Column("tokens_in", [self.tokens_in], COUNT, "tokens sent, about"),
            Column("tokens_out", [self.tokens_out], COUNT, "received, at most"),
            Column("cost", [self.cost], significant(3)),
        )
        documents = sorted(self.addressed)
        found = Table(
            "addressed",
            (Column("doc_id", documents, TEXT), Column("signs", [", ".join(self.addressed[one]) for one in documents])),
            "Documents that may address the judge",
        )
        return (
            Sentences(self.sentences),
            Table("estimate", columns, labels=0),
            *((found,) if documents else ()),
            *((Code(self.example, "example", "An example of what is sent"),) if self.example else ()),
        )


def prepare(
    store: LabelStore,
    endpoint: Endpoint,
    *,
    judge: str = "",
    texts: Any = None,
    examples: Sequence[Mapping[str, Any]] = (),
    repeats: float = 0.0,
    characters: int | None = None,
) -> Prepared:
    """Find what a model is to grade: its open tasks in a store, and some of its pairs a second time.

    Parameters
    ----------
    store
        Where the tasks are, and the labels will be.
    endpoint
        Where the model is asked.
    judge
        The model's name as a judge; empty for its name at the endpoint. A judge is one model with one prompt.
    texts
        Texts of documents that the store does not have, as `Texts.of` takes them.
    examples
        Shown to the model before: each has a ``query``, a ``document`` and a ``grade``.
    repeats
        The share of its pairs, from 0 to 1, that it is asked again with another seed, chosen by hashes of their ids.
    characters
        Documents are cut to so many; None: not cut.

    Raises
    ------
    InputError
        If the store has no tasks for it, or its labels are another judge's.
    """
    judge, prompt = judge or endpoint.model, Prompt.graded(store.scale, examples)
    if not 0 <= repeats <= 1:
        raise InputError(f"a share of {repeats:g} cannot be repeated", fix="give a number from 0 to 1")
    given = labels_of(store, judge)
    _refuse_another(given, judge, endpoint.model, prompt)
    open_ = {(task.query_id, task.doc_id, task.repeat): task.touched for task in store.tasks(judge)}
    done = set(zip(*(given[name].to_pylist() for name in ("query_id", "doc_id", "repeat")), strict=True))
    for query, doc in dict.fromkeys((query, doc) for query, doc, repeat in [*open_, *sorted(done)] if repeat == 0):
        again = (query, doc, 1)
        if again not in done and share_of(judge, query, doc) < repeats:
            open_.setdefault(again, False)
    if not open_ and not done:
        raise InputError("there is nothing to judge", fix="add tasks to the store", path=store.where)
    source = Source(store, texts, characters)
    kept, requests, rows = kept_requests(store), dict[str, Make](), dict[str, list[Row]]()
    for (query, doc, repeat), touched in open_.items():
        if not source.has(query, doc):
            continue
        make = partial(source.body, endpoint, prompt, query, (doc,), repeat)
        key = request_key(make(), repeat)
        if touched and key in kept:
            continue  # it was asked just this, and its answer was no grade
        requests[key] = make
        rows.setdefault(key, []).append((query, doc, repeat))
    return prepared(source, endpoint, judge, prompt, requests, rows)


class Source:
    """The texts of what is asked about; of what it gives out it remembers what addresses the judge."""

    def __init__(self, store: LabelStore, texts: Any = None, characters: int | None = None) -> None:
        self.store = store
        self._texts, self._characters = None if texts is None else Texts.of(texts), characters
        self._topics = {row["query_id"]: row for row in store.topics()}
        self.missing: set[tuple[str, ...]] = set()
        self.cut: set[str] = set()
        self.addressed: dict[str, tuple[str, ...]] = {}

    def document(self, doc_id: str) -> str:
        """Give title and text of a document, cut where that was asked for; empty where it is not known."""
        kept = self.store.document(doc_id)
        title, text = kept["title"], kept["text"]
        if not (title or text) and self._texts is not None:
            title, text = self._texts.title(doc_id), self._texts.text(doc_id)
        return self.shown(doc_id, "\n".join(filter(None, (title, text))))

    def shown(self, name: str, text: str) -> str:
        """Give what is shown of a text, and remember whether it was cut, and what it says to the judge."""
        whole = text.strip()
        if self._characters is not None and len(whole) > self._characters:
            self.cut.add(name)
            whole = whole[: self._characters]
        if found := injection_signs(whole):
            self.addressed[name] = found
        return whole

    def has(self, query: str, *docs: str) -> bool:
        """Whether the texts are known; what is not is remembered."""
        known = bool(self._topics.get(query, {"text": ""})["text"]) and all(map(self.document, docs))
        if not known:
            self.missing.add((query, *docs))
        return known

    def body(self, endpoint: Endpoint, prompt: Prompt, query: str, docs: Sequence[str], repeat: int) -> dict[str, Any]:
        """Write a request about documents; without a topic where the query is empty."""
        topic = self._topics[query] if query else {"text": "", "description": "", "narrative": ""}
        need = "\n".join(filter(None, (topic["description"], topic["narrative"])))
        documents = dict(zip(("document", "other"), map(self.document, docs), strict=False))
        values = {"query": topic["text"], "need": need, **documents}
        return endpoint.request(prompt.messages(values), repeat, prompt.tokens)

    def notes(self) -> tuple[Note, ...]:
        """Say what is left out or cut, and which documents speak to the judge."""
        made: list[Note] = []
        if self.missing:
            requests = counted(len(self.missing), "request")
            made.append(Note("no-text", f"{requests} left out: the topic's or a document's text is not known"))
        if self.cut:
            made.append(Note("cut", f"{counted(len(self.cut), 'document')} cut: the model does not see the end"))
        if self.addressed:
            signs = listed(sorted({sign for found in self.addressed.values() for sign in found}))
            docs, few = counted(len(self.addressed), "document"), first_few(sorted(self.addressed))
            made.append(Note("addresses-judge", f"{docs} may address the judge ({signs}): {few}"))
        return tuple(made)


def labels_of(store: LabelStore, judge: str) -> ArrowTable:
    """Give the labels of a judge, the last of each pair; an empty table where there are none."""
    try:
        table = store.labels().last
    except InputError:
        return SCHEMA.empty_table()
    return table.filter(pc.equal(table["judge"], judge))


def _refuse_another(given: ArrowTable, judge: str, model: str, prompt: Prompt) -> None:
    """A judge is one model that is asked in one way: labels of others under its name would be taken for its own."""
    for column, what in (("kind", "model"), ("model", model), ("prompt", prompt.id)):
        if strange := sorted(set(given[column].to_pylist()) - {what}):
            problem = f"{judge!r} gave labels as {column} {strange[0]!r} already, and this is {what!r}"
            raise InputError(problem, fix="name another judge")


def share_of(*parts: str) -> float:
    """Give a number from 0 to 1 that is the same each time."""
    return int.from_bytes(sha256("\0".join(parts).encode()).digest()[:6]) / 2**48


def prepared(
    source: Source,
    endpoint: Endpoint,
    judge: str,
    prompt: Prompt,
    requests: Mapping[str, Make],
    rows: Mapping[str, Sequence[Row]],
    each: int = 1,
) -> Prepared:
    """Estimate what requests cost that are not answered yet."""
    kept = kept_requests(source.store)
    sent = [key for key in requests if key not in kept]
    signs = (len(turn["content"].encode()) for key in sent for turn in requests[key]()["messages"])
    first = next((make()["messages"] for make in requests.values()), [])
    example = tuple(f"{turn['role']}: {turn['content']}" for turn in first)
    longest = most_tokens(endpoint.request([], 0, prompt.tokens))
    return Prepared(
        source.store, endpoint, judge, prompt, requests, rows, len(requests) - len(sent),
        sum(signs) * each // _BYTES, None if longest is None else longest * len(sent) * each,
        source.addressed, example, each, notes=source.notes(),
    )  # fmt: skip
