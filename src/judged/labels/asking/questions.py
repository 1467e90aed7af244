"""Synthetic queries from documents, with checks, and pairwise preferences of a model."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from judged.comparison.slicing.derived import derive
from judged.data.query_text import normalize_query
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError
from judged.labels.asking.asking import AskResult, Tally, get_replies, replies_with_targets, request_key, request_notes
from judged.labels.asking.client import Budget
from judged.labels.asking.preparation import Prepared, RequestBuilder, RequestTarget, RequestTexts, prepare_requests
from judged.labels.asking.prompts import Prompt, parse_reply
from judged.labels.store import NewTask
from judged.results import COUNT, SHARE, TEXT, Column, Sentences, Table, columns_of, counted, listed
from judged.results.blocks import Note

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint, Reply
    from judged.labels.store import LabelStore
    from judged.results import Block


_COPIED_WORDS = 5  # consecutive words of the document that make a query a copy
_MAX_QUERY_LENGTH = 200  # characters
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})  # categories of controls, surrogates, and line separators
_UNCHECKED = "not checked"
_TOKENS = 64  # maximum for a query
_ANSWERABLE = Prompt.read("answerable", ("yes", "no"))


class Question(NamedTuple):
    """A query that a model wrote for a document."""

    query_id: str
    doc_id: str
    text: str
    overlap: float  # share of its words that are in the document
    rejected: str  # reason why it is not used; empty if it is


@dataclass(frozen=True, eq=False, repr=False)
class Questions(AskResult):
    """Synthetic queries from documents, and which of them passed the checks.

    Attributes
    ----------
    questions
        All queries of the model.
    real
        Queries of users, for comparison; can be empty.
    """

    kind: ClassVar[str] = "questions"
    main: ClassVar[str] = "questions"

    questions: tuple[Question, ...] = ()
    real: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[Question, ...]:
        """Queries that passed all checks."""
        return tuple(question for question in self.questions if not question.rejected)

    def add_to(self, store: LabelStore) -> int:
        """Add the queries that passed to a store as synthetic topics, each with a task for its document.

        No label is added: the source document of a query is not necessarily its most relevant document.
        """
        if not self.used:
            return 0
        store.add_topics({question.query_id: question.text for question in self.used}, synthetic=True)
        return store.add_tasks([NewTask(question.query_id, question.doc_id) for question in self.used])

    def reply_blocks(self) -> tuple[Block, ...]:
        """Return the queries, reasons of rejections, and a comparison with real queries."""
        reasons = Counter(question.rejected for question in self.questions if question.rejected).most_common()
        sentences = [f"{len(self.used):,} of {counted(len(self.questions), 'query', 'queries')} passed all checks."]
        if reasons:
            sentences.append(f"Rejected queries: {listed([f'{count:,} {reason}' for reason, count in reasons])}.")
        sentences.append("These queries are synthetic, and results for real user queries may differ.")
        names = (("query_id", TEXT), ("doc_id", TEXT), ("text", TEXT), ("overlap", SHARE), ("rejected", TEXT))
        table = Table("questions", columns_of(self.questions, *names), labels=2)
        return Sentences(tuple(sentences), "checks"), table, *self._compare_with_real()

    def _compare_with_real(self) -> tuple[Block, ...]:
        if not self.used or not self.real:
            return ()
        synthetic = _length_and_kind_shares(question.text for question in self.used)
        real = _length_and_kind_shares(self.real)
        rows = sorted(synthetic.keys() | real.keys())
        columns = (
            Column("attribute", [name for name, _ in rows], TEXT),
            Column("value", [value for _, value in rows], TEXT),
            Column("synthetic", [synthetic.get(row, 0.0) for row in rows], SHARE),
            Column("real", [real.get(row, 0.0) for row in rows], SHARE),
        )
        return (
            Table("comparison", columns, "Synthetic and real queries: length in words, and kind of query", labels=2),
        )


def prepare_questions(
    store: LabelStore, endpoint: Endpoint, texts: Any, *, limit: int, seed: int = 0, characters: int | None = None
) -> Prepared:
    """Select documents at random, and prepare requests for a query from each.

    Parameters
    ----------
    store, endpoint, characters
        As in `prepare`.
    texts
        Documents to sample from, as `Texts.of` accepts them; the sampled ones are added to the store.
    limit, seed
        Number of documents, and seed of the sample.
    """
    documents = Texts.of(texts)
    # Order by hash: a larger limit keeps the documents of a smaller one.
    order = sorted(documents.documents, key=lambda doc: sha256(f"{seed}\0{doc}".encode()).digest())
    sampled = [doc for doc in order if documents.text(doc).strip()][:limit]
    if not sampled:
        raise InputError(
            "the sample has no document with a text", fix="use documents with texts, and a `limit` of at least 1"
        )
    store.add_documents({doc: documents.documents[doc]._asdict() for doc in sampled})
    source, prompt = RequestTexts(store, documents, characters), Prompt.read("question", tokens=_TOKENS)
    requests, rows = dict[str, RequestBuilder](), dict[str, list[tuple[Any, ...]]]()
    for doc in sampled:
        build = partial(source.body, endpoint, prompt, "", (doc,), 0)
        key = request_key(build())
        requests[key] = build
        rows.setdefault(key, []).append((doc, source.document(doc)))
    return prepare_requests(source, endpoint, endpoint.model, prompt, requests, rows, calls_per_request=2)


def ask_questions(
    prepared: Prepared,
    *,
    queries: Any = None,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Questions:
    """Generate queries, and check each: one line, not copied, no duplicate, answered by its document.

    Parameters
    ----------
    prepared
        Result of `prepare_questions`.
    queries
        Queries of users for comparison, as `Topics.of` accepts them.
    budget_calls, budget_money, progress
        As in `ask`.
    """
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    questions: dict[str, Question] = {}
    to_check: dict[str, RequestBuilder] = {}
    question_ids: dict[str, str] = {}
    for received, targets in replies_with_targets(prepared, tally, progress):
        text, reason = _parse_query(received.reply)
        for doc, document in targets:
            name = sha256(f"{doc}\0{text}".encode())  # distinct IDs for different queries from the same document
            query_id = f"synthetic-{name.hexdigest()[:12]}"
            overlap, longest_copy = shared_words(text, document)
            rejected = reason or ("copied" if longest_copy >= min(_COPIED_WORDS, len(_words(text))) else _UNCHECKED)
            questions[query_id] = Question(query_id, doc, text, overlap, rejected)
    documents, accepted = dict(row for targets in prepared.rows.values() for row in targets), set[str]()
    for query_id, question in sorted(questions.items()):
        if question.rejected == _UNCHECKED and normalize_query(question.text) in accepted:
            questions[query_id] = question._replace(rejected="duplicate")
        elif question.rejected == _UNCHECKED:
            accepted.add(normalize_query(question.text))
            build = partial(_check_request, prepared.endpoint, question.text, documents[question.doc_id])
            key = request_key(build())
            to_check[key], question_ids[key] = build, query_id
    for received in get_replies(prepared.store, prepared.endpoint, to_check, tally, progress):
        parsed, query_id = parse_reply(received.reply, _ANSWERABLE.allowed_answers), question_ids[received.request]
        tally.invalid[parsed.invalid or ""] += bool(parsed.invalid)
        rejected = "" if parsed.answer == "yes" else "not answered by the document"
        questions[query_id] = questions[query_id]._replace(rejected=rejected)
    tally.invalid += Counter()  # removes zero counts
    real = () if queries is None else tuple(Topics.of(queries).table["text"].to_pylist())
    note = Note("synthetic", "a model generated these queries from documents; they are not real user queries")
    return Questions(prepared, tally, (*request_notes(prepared, tally), note), tuple(questions.values()), real)


def _check_request(endpoint: Endpoint, query: str, document: str) -> dict[str, Any]:
    return endpoint.request(_ANSWERABLE.messages({"query": query, "document": document}))


def _parse_query(reply: Reply) -> tuple[str, str]:
    """Parse a query strictly, as one line with words; return the reason if it is invalid."""
    text = reply.content.strip()
    if reason := parse_reply(reply, ()).invalid if reply.refused or reply.finish != "stop" or not text else "":
        return "", reason
    if text.casefold().strip(".") == "none":
        return "", "no query"
    is_one_line = not any(unicodedata.category(character) in _FORBIDDEN_CATEGORIES for character in text)
    text = text.encode(errors="replace").decode()  # unpaired surrogates cannot be written or hashed
    return (text, "") if is_one_line and len(text) <= _MAX_QUERY_LENGTH and _words(text) else ("", "other format")


def _words(text: str) -> list[str]:
    return [
        "".join(character for character in word if character.isalnum())
        for word in normalize_query(text).split()
        if any(map(str.isalnum, word))
    ]


def shared_words(query: str, document: str) -> tuple[float, int]:
    """Return the share of a query's words in a document, and the length of their longest common phrase.

    >>> shared_words("who wrote Faust in 1808", "Goethe wrote Faust; it appeared in 1808.")
    (0.8, 2)
    """
    words, text = _words(query), _words(document)
    document_words, longest, previous = set(text), 0, [0] * (len(words) + 1)
    # Dynamic programming: `row[i + 1]` is the length of the common phrase that ends here.
    for word in text:
        row = [0] * (len(words) + 1)
        for i, query_word in enumerate(words):
            row[i + 1] = previous[i] + 1 if word == query_word else 0
        longest, previous = max(longest, *row), row
    return sum(word in document_words for word in words) / max(len(words), 1), longest


def _length_and_kind_shares(queries: Iterable[str]) -> Mapping[tuple[str, str], float]:
    """Return the share of queries by length and by kind, as defined for slices."""
    attributes = derive(queries={str(i): text for i, text in enumerate(queries)}, languages=())
    return {
        (name, str(value)): count / len(attributes.column(name))
        for name in ("length", "kind")
        for value, count in Counter(attributes.column(name).to_pylist()).items()
    }


_PREFERENCES = ("A", "B", "C")


@dataclass(frozen=True, eq=False, repr=False)
class ModelPreferences(AskResult):
    """Pairwise preferences of a model.

    Attributes
    ----------
    pairs
        (topic, document, other document, answer, answer in reversed order) of each pair. An answer is 1 or 2 for the
        document, 0 for neither, or None if invalid.
    """

    kind: ClassVar[str] = "preferences"
    main: ClassVar[str] = "preferences"

    pairs: tuple[tuple[str, str, str, int | None, int | None], ...] = ()

    @property
    def by_position(self) -> tuple[int, int]:
        """Number of pairs with a preference for the first position, and for the second, in both orders."""
        decided = [(a, b) for *_, a, b in self.pairs]
        return decided.count((1, 2)), decided.count((2, 1))

    def reply_blocks(self) -> tuple[Block, ...]:
        """Return each pair, and the effect of position."""
        first, second = self.by_position
        valid_pairs = [(a, b) for *_, a, b in self.pairs if a is not None and b is not None]
        same = sum(a == b for a, b in valid_pairs)
        sentence = (
            f"{counted(len(valid_pairs), 'pair has', 'pairs have')} valid replies in both orders; the replies agree for"
            f" {same:,} of these pairs. In both orders, the model preferred the first position for"
            f" {counted(first, 'pair')}, and the second position for {second:,}."
        )
        names = ("query_id", "doc_id", "other_doc_id")
        columns = [Column(name, [row[i] for row in self.pairs], TEXT) for i, name in enumerate(names)]
        columns += [
            Column("preferred", [a if a == b else None for *_, a, b in self.pairs], COUNT),
            Column("original_order", [row[3] for row in self.pairs], COUNT, "original order"),
            Column("reversed_order", [row[4] for row in self.pairs], COUNT, "reversed order"),
        ]
        note = (
            "1: the document doc_id is preferred; 2: other_doc_id is preferred; 0: neither. `preferred` is empty if"
            " the judgments in the two orders of the documents disagree."
        )
        return Sentences((sentence,), "position"), Table("preferences", tuple(columns), note=note, labels=3)


def prepare_preferences(
    store: LabelStore,
    endpoint: Endpoint,
    pairs: Iterable[tuple[str, str, str]],
    *,
    judge: str = "",
    texts: Any = None,
    characters: int | None = None,
) -> Prepared:
    """Prepare requests about pairs of (topic, document, other document), each in both orders.

    See `prepare` for the other parameters.
    """
    source, prompt = RequestTexts(store, texts, characters), Prompt.read("pairwise", _PREFERENCES)
    requests, rows = dict[str, RequestBuilder](), dict[str, list[RequestTarget]]()
    for query, doc, other_doc in dict.fromkeys(pairs):
        if not source.has_texts(query, doc, other_doc):
            continue
        for order, docs in enumerate(((doc, other_doc), (other_doc, doc))):
            build = partial(source.body, endpoint, prompt, query, docs, 0)
            key = request_key(build())
            requests[key] = build
            rows.setdefault(key, []).append((query, doc, other_doc, order))
    return prepare_requests(source, endpoint, judge or endpoint.model, prompt, requests, rows)


def ask_preferences(
    prepared: Prepared,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> ModelPreferences:
    """Send the requests of `prepare_preferences`; see `ask` for the parameters."""
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    answers_by_pair: dict[tuple[str, str, str], list[int | None]] = {}
    for targets in prepared.rows.values():
        answers_by_pair |= {tuple(row[:3]): [None, None] for row in targets}
    for received, targets in replies_with_targets(prepared, tally, progress):
        parsed = parse_reply(received.reply, _PREFERENCES)
        if parsed.invalid:
            tally.invalid[parsed.invalid] += 1
            continue
        # In the reversed order, positions 1 and 2 are exchanged.
        preferred = (1, 2, 0)[_PREFERENCES.index(parsed.answer or "C")]
        for *pair, order in targets:
            answers_by_pair[tuple(pair)][order] = 3 - preferred if order and preferred else preferred
    pairs = tuple((*pair, *replies) for pair, replies in answers_by_pair.items())
    return ModelPreferences(prepared, tally, request_notes(prepared, tally), pairs)  # pyright: ignore[reportArgumentType]
