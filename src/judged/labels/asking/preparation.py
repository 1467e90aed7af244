"""Requests to a model before they are sent: their number, destination, content, and maximum cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from judged.data.compute import pc
from judged.data.texts import Texts
from judged.errors import InputError
from judged.labels.asking.asking import cached_keys, request_key
from judged.labels.asking.client import Budget, token_limit
from judged.labels.asking.prompts import Prompt, injection_signs
from judged.labels.labels import SCHEMA
from judged.results import COUNT, TEXT, Answer, Code, Column, Sentences, Table, counted, listed, significant
from judged.results.blocks import Note, first_few

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint
    from judged.labels.store import LabelStore
    from judged.results import Block
    from judged.results.types import Table as ArrowTable

_BYTES = 4  # per token, approximately, in English
RequestTarget: TypeAlias = tuple[Any, ...]
RequestBuilder: TypeAlias = "Callable[[], dict[str, Any]]"


@dataclass(frozen=True, eq=False, repr=False)
class Prepared(Answer):
    """Requests that have not been sent. As a result, it shows their content and cost; `ask` sends them.

    Attributes
    ----------
    store, endpoint, judge, prompt
        Where labels are stored, and which model is asked under which name with which prompt.
    requests
        Functions that build the body of each request, by its hash.
    rows
        Targets of each request: (topic, document, repeat), or (topic, document, other document, order).
    cached
        Number of requests with a reply in the store: they are not sent.
    tokens_in, tokens_out
        Tokens of the other requests: approximate number sent, and maximum received; None without a limit.
    addressed
        Patterns in documents that may address the judge, by document ID.
    """

    kind: ClassVar[str] = "model-requests"

    store: LabelStore
    endpoint: Endpoint
    judge: str
    prompt: Prompt
    requests: Mapping[str, RequestBuilder]
    rows: Mapping[str, Sequence[RequestTarget]]
    cached: int
    tokens_in: int
    tokens_out: int | None
    addressed: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    example: tuple[str, ...] = ()  # messages of the first request
    calls_per_request: int = 1  # maximum number of calls for each request
    sends: str = "texts of topics, titles and texts of documents, the prompt with the scale, and the examples"
    notes: tuple[Note, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, where it can be read but not sent."""
        return {**vars(self), "store": None, "requests": dict.fromkeys(self.requests)}

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"Requests to {self.judge}"

    @property
    def calls(self) -> int:
        """Maximum number of calls without retries."""
        return (len(self.requests) - self.cached) * self.calls_per_request

    @property
    def cost(self) -> float | None:
        """Approximate maximum cost; None if prices or lengths are not known."""
        if not self.endpoint.priced or self.tokens_out is None:
            return None
        return Budget(self.endpoint).cost(self.tokens_in, self.tokens_out)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Content of the requests."""
        # Names of the fields that are sent besides the messages.
        fields = sorted(set(self.endpoint.request([])) - {"messages"})
        sentences = [
            f"{counted(self.calls, 'request')} will be sent to {self.endpoint.host} for model {self.endpoint.model}.",
            f"{self.cached:,} of {len(self.requests):,} requests have a reply in the store and are not sent again.",
            f"The requests contain {self.sends}. The other fields of the requests are {listed(fields)}.",
            "The requests do not contain ids, names of judges, or labels of any judge.",
        ]
        if self.cost is None:
            sentences.append("The cost is unknown: the endpoint file has no prices or no token limit.")
        return tuple(sentences)

    def facts(self) -> Mapping[str, Any]:
        """Return the judge, the endpoint, and the prompt."""
        return {"judge": self.judge, "host": self.endpoint.host, "model": self.endpoint.model, "prompt": self.prompt.id}

    def blocks(self) -> tuple[Block, ...]:
        """Return the content of the requests, the cost, and the first request as an example."""
        columns = (
            Column("requests", [self.calls], COUNT),
            Column("tokens_in", [self.tokens_in], COUNT, "input tokens (approximate)"),
            Column("tokens_out", [self.tokens_out], COUNT, "output tokens (maximum)"),
            Column("cost", [self.cost], significant(3), "cost (maximum)"),
        )
        documents = sorted(self.addressed)
        addressed = Table(
            "injections",
            (
                Column("doc_id", documents, TEXT),
                Column("patterns", [", ".join(self.addressed[doc]) for doc in documents]),
            ),
            "Documents that may contain a prompt injection",
        )
        return (
            Sentences(self.sentences),
            Table("estimate", columns, labels=0),
            *((addressed,) if documents else ()),
            *((Code(self.example, "example", "Example request"),) if self.example else ()),
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
    """Prepare the requests for a model's open tasks in a store, with some pairs a second time.

    Parameters
    ----------
    store
        Store with the tasks, for the labels.
    endpoint
        Endpoint of the model.
    judge
        Name of the model as a judge. Default: its name at the endpoint. A judge is one model with one prompt.
    texts
        Texts of documents that are not in the store, as `Texts.of` accepts them.
    examples
        Examples in the prompt, each with a ``query``, a ``document`` and a ``grade``.
    repeats
        Share of pairs, from 0 to 1, to grade again with another seed, selected by hashes of their IDs.
    characters
        Maximum length of documents; None: no limit.

    Raises
    ------
    InputError
        If the store has no tasks for the judge, or the judge has labels of another model or prompt.
    """
    judge, prompt = judge or endpoint.model, Prompt.graded(store.scale, examples)
    if not 0 <= repeats <= 1:
        raise InputError(f"`repeats` must be a share from 0 to 1, got {repeats:g}", fix="use 0.1, for example")
    judge_labels = labels_of_judge(store, judge)
    _check_same_judge(judge_labels, judge, endpoint.model, prompt)
    open_tasks = {(task.query_id, task.doc_id, task.repeat): task.touched for task in store.tasks(judge)}
    labeled = set(zip(*(judge_labels[name].to_pylist() for name in ("query_id", "doc_id", "repeat")), strict=True))
    first_tasks = dict.fromkeys(task[:2] for task in [*open_tasks, *sorted(labeled)] if task[2] == 0)
    for query, doc in first_tasks:
        # Selected by a hash: a later run selects the same pairs.
        second = (query, doc, 1)
        if second not in labeled and hash_fraction(judge, query, doc) < repeats:
            open_tasks.setdefault(second, False)
    if not open_tasks and not labeled:
        raise InputError(
            "the store of labels has no tasks for this judge", fix="add tasks: judged labels tasks", path=store.where
        )
    source = RequestTexts(store, texts, characters)
    cached, requests, rows = cached_keys(store), dict[str, RequestBuilder](), dict[str, list[RequestTarget]]()
    for (query, doc, repeat), touched in open_tasks.items():
        if not source.has_texts(query, doc):
            continue
        build = partial(source.body, endpoint, prompt, query, (doc,), repeat)
        key = request_key(build(), repeat)
        # Sending it again would return the same invalid reply.
        if touched and key in cached:
            continue
        requests[key] = build
        rows.setdefault(key, []).append((query, doc, repeat))
    return prepare_requests(source, endpoint, judge, prompt, requests, rows)


class RequestTexts:
    """Texts for requests; records missing and cut texts, and documents that may address the judge."""

    def __init__(self, store: LabelStore, texts: Any = None, characters: int | None = None) -> None:
        self.store = store
        self._texts, self._characters = None if texts is None else Texts.of(texts), characters
        self._topics = {row["query_id"]: row for row in store.topics()}
        self.missing: set[tuple[str, ...]] = set()
        self.cut: set[str] = set()
        self.addressed: dict[str, tuple[str, ...]] = {}

    def document(self, doc_id: str) -> str:
        """Return title and text of a document, cut to the maximum length; empty if unknown."""
        stored = self.store.document(doc_id)
        title, text = stored["title"], stored["text"]
        if not (title or text) and self._texts is not None:
            title, text = self._texts.title(doc_id), self._texts.text(doc_id)
        return self.clip(doc_id, "\n".join(filter(None, (title, text))))

    def clip(self, name: str, text: str) -> str:
        """Truncate a text to the maximum length, and record whether it was cut and may address the judge."""
        clipped = text.strip()
        if self._characters is not None and len(clipped) > self._characters:
            self.cut.add(name)
            clipped = clipped[: self._characters]
        if signs := injection_signs(clipped):
            self.addressed[name] = signs
        return clipped

    def has_texts(self, query: str, *docs: str) -> bool:
        """Return whether all texts are known; record if not."""
        has_all = bool(self._topics.get(query, {"text": ""})["text"]) and all(map(self.document, docs))
        if not has_all:
            self.missing.add((query, *docs))
        return has_all

    def body(self, endpoint: Endpoint, prompt: Prompt, query: str, docs: Sequence[str], repeat: int) -> dict[str, Any]:
        """Build a request about documents, and a topic if `query` is not empty."""
        topic = self._topics[query] if query else {"text": "", "description": "", "narrative": ""}
        need = "\n".join(filter(None, (topic["description"], topic["narrative"])))
        documents = dict(zip(("document", "other"), map(self.document, docs), strict=False))
        values = {"query": topic["text"], "need": need, **documents}
        return endpoint.request(prompt.messages(values), repeat, prompt.tokens)

    def notes(self) -> tuple[Note, ...]:
        """Return notes about missing and cut texts, and documents that may address the judge."""
        notes: list[Note] = []
        if self.missing:
            requests = counted(len(self.missing), "request")
            notes.append(
                Note("no-text", f"{requests} left out, because the text of the topic or of a document is missing")
            )
        if self.cut:
            notes.append(Note("truncated", f"{counted(len(self.cut), 'document')} truncated to the maximum length"))
        if self.addressed:
            signs = listed(sorted({sign for document_signs in self.addressed.values() for sign in document_signs}))
            docs, examples = counted(len(self.addressed), "document"), first_few(sorted(self.addressed))
            notes.append(Note("prompt-injection", f"{docs} may contain a prompt injection ({signs}): {examples}"))
        return tuple(notes)


def labels_of_judge(store: LabelStore, judge: str) -> ArrowTable:
    """Return the labels of a judge that count; an empty table if there are none."""
    try:
        # A store without labels raises InputError.
        table = store.labels().last
    except InputError:
        return SCHEMA.empty_table()
    return table.filter(pc.equal(table["judge"], judge))


def _check_same_judge(judge_labels: ArrowTable, judge: str, model: str, prompt: Prompt) -> None:
    """Raise InputError if the judge has labels of another model or prompt: results by judge would mix them."""
    for column, expected in (("kind", "model"), ("model", model), ("prompt", prompt.id)):
        if others := sorted(set(judge_labels[column].to_pylist()) - {expected}):
            problem = f"{judge!r} already has labels with {column} {others[0]!r}, but the new labels have {expected!r}"
            raise InputError(problem, fix="use another name: --judge NAME")


def hash_fraction(*parts: str) -> float:
    """Return a reproducible number from 0 to 1 for a sequence of strings."""
    return int.from_bytes(sha256("\0".join(parts).encode()).digest()[:6]) / 2**48


def prepare_requests(
    source: RequestTexts,
    endpoint: Endpoint,
    judge: str,
    prompt: Prompt,
    requests: Mapping[str, RequestBuilder],
    rows: Mapping[str, Sequence[RequestTarget]],
    calls_per_request: int = 1,
) -> Prepared:
    """Build the result of `prepare`, with the cost of requests that are not cached."""
    cached = cached_keys(source.store)
    uncached = [key for key in requests if key not in cached]
    sizes = (len(turn["content"].encode()) for key in uncached for turn in requests[key]()["messages"])
    first = next((build()["messages"] for build in requests.values()), [])
    example = tuple(f"{turn['role']}: {turn['content']}" for turn in first)
    limit = token_limit(endpoint.request([], 0, prompt.tokens))
    return Prepared(
        source.store, endpoint, judge, prompt, requests, rows, len(requests) - len(uncached),
        sum(sizes) * calls_per_request // _BYTES, None if limit is None else limit * len(uncached) * calls_per_request,
        source.addressed, example, calls_per_request, notes=source.notes(),
    )  # fmt: skip
