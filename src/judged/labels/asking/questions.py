"""Queries made from documents, for teams that have no log of queries: checked, and marked as what they are."""

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
from judged.labels.asking.asking import Asked, Tally, answered_rows, answers, notes_of, request_key
from judged.labels.asking.client import Budget
from judged.labels.asking.preparation import Make, Prepared, Row, Source, prepared
from judged.labels.asking.prompts import Prompt, read
from judged.labels.store import NewTask
from judged.results import COUNT, SHARE, TEXT, Column, Sentences, Table, counted, listed
from judged.results.blocks import Note

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint, Reply
    from judged.labels.store import LabelStore
    from judged.results import Block


_RUN = 5  # words: a query that has so many of a document one behind the other is copied, or is all in it
_LONGEST = 200  # characters of a query
_NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, halves of characters, and separators of lines
_UNCHECKED = "not checked yet"
_TOKENS = 64  # of a query, at most
_ANSWERABLE = Prompt.read("answerable", ("yes", "no"))


class Question(NamedTuple):
    """A query that a model made from a document."""

    query_id: str
    doc_id: str
    text: str
    overlap: float  # the share of its words that the document has
    rejected: str  # why it is not used; empty where it is


@dataclass(frozen=True, eq=False, repr=False)
class Questions(Asked):
    """Queries made from documents, and which of them are used.

    Attributes
    ----------
    questions
        All that were made.
    real
        Queries that people asked, which they are compared with; empty where none were given.
    """

    kind: ClassVar[str] = "questions"
    main: ClassVar[str] = "questions"

    questions: tuple[Question, ...] = ()
    real: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[Question, ...]:
        """Those that passed every check."""
        return tuple(one for one in self.questions if not one.rejected)

    def add_to(self, store: LabelStore) -> int:
        """Add the queries that are used to a store as synthetic topics, each with a task for its document.

        No label is added: that a query was made from a document does not say that it is the one to be found.
        """
        if not self.used:
            return 0
        store.add_topics({one.query_id: one.text for one in self.used}, synthetic=True)
        return store.add_tasks([NewTask(one.query_id, one.doc_id) for one in self.used])

    def more(self) -> tuple[Block, ...]:
        """Give the queries, why some are not used, and how they are beside real ones."""
        reasons = Counter(one.rejected for one in self.questions if one.rejected).most_common()
        said = [f"{counted(len(self.used), 'query', 'queries')} of {len(self.questions):,} passed the checks."]
        if reasons:
            said.append(f"Not used: {listed([f'{count:,} {why}' for why, count in reasons])}.")
        said.append(
            "All of them are synthetic: nobody asked them. Results over them are not results over real queries."
        )
        names = (("query_id", TEXT), ("doc_id", TEXT), ("text", TEXT), ("overlap", SHARE), ("rejected", TEXT))
        columns = tuple(Column(name, [getattr(one, name) for one in self.questions], show) for name, show in names)
        return Sentences(tuple(said), "checks"), Table("questions", columns, labels=2), *self._beside_real()

    def _beside_real(self) -> tuple[Block, ...]:
        if not self.used or not self.real:
            return ()
        made, real = _shapes(one.text for one in self.used), _shapes(self.real)
        rows = sorted(made.keys() | real.keys())
        columns = (
            Column("attribute", [name for name, _ in rows], TEXT),
            Column("value", [value for _, value in rows], TEXT),
            Column("synthetic", [made.get(row, 0.0) for row in rows], SHARE),
            Column("real", [real.get(row, 0.0) for row in rows], SHARE),
        )
        return (Table("alike", columns, "Shares of synthetic and real queries by length in words and kind", labels=2),)


def prepare_questions(
    store: LabelStore,
    endpoint: Endpoint,
    texts: Any,
    *,
    limit: int,
    seed: int = 0,
    characters: int | None = None,
) -> Prepared:
    """Choose documents at random, and write the requests for a query from each.

    Parameters
    ----------
    store, endpoint, characters
        As for `prepare`.
    texts
        The documents to choose from, as `Texts.of` takes them; the chosen ones are added to the store.
    limit, seed
        How many are chosen, and by which chance.
    """
    documents = Texts.of(texts)
    order = sorted(documents.documents, key=lambda doc: sha256(f"{seed}\0{doc}".encode()).digest())
    chosen = [doc for doc in order if documents.text(doc).strip()][:limit]
    if not chosen:
        raise InputError("no document has a text", fix="give documents with texts, and a limit from 1")
    store.add_documents({doc: documents.documents[doc]._asdict() for doc in chosen})
    source, prompt = Source(store, documents, characters), Prompt.read("question", tokens=_TOKENS)
    requests, rows = dict[str, Make](), dict[str, list[tuple[Any, ...]]]()
    for doc in chosen:
        make = partial(source.body, endpoint, prompt, "", (doc,), 0)
        key = request_key(make())
        requests[key] = make
        rows.setdefault(key, []).append((doc, source.document(doc)))
    return prepared(source, endpoint, endpoint.model, prompt, requests, rows, each=2)


def ask_questions(
    prepared: Prepared,
    *,
    queries: Any = None,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Questions:
    """Have the queries made, and check each: one line, not copied, no second one, answered by its document alone.

    Parameters
    ----------
    prepared
        What `prepare_questions` gave.
    queries
        Queries that people asked, as `Topics.of` takes them: the synthetic ones are compared with them.
    budget_calls, budget_money, progress
        As for `ask`.
    """
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    made: dict[str, Question] = {}
    to_check: dict[str, Make] = {}
    asked: dict[str, str] = {}
    for answered, rows in answered_rows(prepared, tally, progress):
        text, why = _query(answered.reply)
        for doc, document in rows:
            name = sha256(f"{doc}\0{text}".encode())  # another model may ask something else of it
            query_id = f"synthetic-{name.hexdigest()[:12]}"
            overlap, run = shared_words(text, document)
            rejected = why or ("copied" if run >= min(_RUN, len(_words(text))) else _UNCHECKED)
            made[query_id] = Question(query_id, doc, text, overlap, rejected)
    documents, seen = dict(row for rows in prepared.rows.values() for row in rows), set[str]()
    for query_id, question in sorted(made.items()):
        if question.rejected == _UNCHECKED and normalize_query(question.text) in seen:
            made[query_id] = question._replace(rejected="asked twice")
        elif question.rejected == _UNCHECKED:
            seen.add(normalize_query(question.text))
            make = partial(_to_check, prepared.endpoint, question.text, documents[question.doc_id])
            key = request_key(make())
            to_check[key], asked[key] = make, query_id
    for answered in answers(prepared.store, prepared.endpoint, to_check, tally, progress):
        reading, query_id = read(answered.reply, _ANSWERABLE.forms), asked[answered.request]
        tally.invalid[reading.invalid or ""] += bool(reading.invalid)
        rejected = "" if reading.form == "yes" else "not answered by its document"
        made[query_id] = made[query_id]._replace(rejected=rejected)
    tally.invalid += Counter()  # without zeros
    real = () if queries is None else tuple(Topics.of(queries).table["text"].to_pylist())
    note = Note("synthetic", "these queries were made by a model from documents: nobody asked them")
    return Questions(prepared, tally, (*notes_of(prepared, tally), note), tuple(made.values()), real)


def _to_check(endpoint: Endpoint, query: str, document: str) -> dict[str, Any]:
    return endpoint.request(_ANSWERABLE.messages({"query": query, "document": document}))


def _query(reply: Reply) -> tuple[str, str]:
    """Read a query strictly: one line of some words; and why it is none."""
    text = reply.content.strip()
    if why := read(reply, ()).invalid if reply.refused or reply.finish != "stop" or not text else "":
        return "", why
    if text.casefold().strip(".") == "none":
        return "", "nothing to ask"
    one_line = not any(unicodedata.category(sign) in _NO_TEXT for sign in text)
    text = text.encode(errors="replace").decode()  # halves of characters can be neither written nor hashed
    return (text, "") if one_line and len(text) <= _LONGEST and _words(text) else ("", "another form")


def _words(text: str) -> list[str]:
    return [
        "".join(sign for sign in word if sign.isalnum())
        for word in normalize_query(text).split()
        if any(map(str.isalnum, word))
    ]


def shared_words(query: str, document: str) -> tuple[float, int]:
    """Give the share of a query's words that a document has, and the longest run of them that it has in this order.

    >>> shared_words("who wrote Faust in 1808", "Goethe wrote Faust; it appeared in 1808.")
    (0.8, 2)
    """
    words, text = _words(query), _words(document)
    known, longest, before = set(text), 0, [0] * (len(words) + 1)
    for word in text:
        row = [0] * (len(words) + 1)
        for at, other in enumerate(words):
            row[at + 1] = before[at] + 1 if word == other else 0
        longest, before = max(longest, *row), row
    return sum(word in known for word in words) / max(len(words), 1), longest


def _shapes(queries: Iterable[str]) -> Mapping[tuple[str, str], float]:
    """Give the share of queries of each length and kind, by the rules of slices."""
    known = derive(queries={str(at): text for at, text in enumerate(queries)}, languages=())
    return {
        (name, str(value)): count / len(known.column(name))
        for name in ("length", "kind")
        for value, count in Counter(known.column(name).to_pylist()).items()
    }


_FORMS = ("A", "B", "C")


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Asked):
    """What a model prefers.

    Attributes
    ----------
    pairs
        (topic, document, other document, answer, answer in the other order) of each pair, with a place in the pair as
        an answer: 1, 2, or 0 for neither; None where there is no valid answer.
    """

    kind: ClassVar[str] = "preferences"
    main: ClassVar[str] = "preferences"

    pairs: tuple[tuple[str, str, str, int | None, int | None], ...] = ()

    @property
    def by_position(self) -> tuple[int, int]:
        """How often the document that was shown first, or second, was preferred in both orders, whichever it was."""
        decided = [(a, b) for *_, a, b in self.pairs]
        return decided.count((1, 2)), decided.count((2, 1))

    def more(self) -> tuple[Block, ...]:
        """Give each pair, and what position did."""
        first, second = self.by_position
        both = [(a, b) for *_, a, b in self.pairs if a is not None and b is not None]
        same = sum(a == b for a, b in both)
        said = (
            f"Of {counted(len(both), 'pair')} with both answers {same:,} have the same in both orders; whichever"
            f" document was shown first was preferred in {first:,}, whichever was shown second in {second:,}."
        )
        names = ("query_id", "doc_id", "other_doc_id")
        columns = [Column(name, [row[at] for row in self.pairs], TEXT) for at, name in enumerate(names)]
        columns += [
            Column("preferred", [a if a == b else None for *_, a, b in self.pairs], COUNT),
            Column("in_order", [row[3] for row in self.pairs], COUNT, "in this order"),
            Column("in_other_order", [row[4] for row in self.pairs], COUNT, "in the other order"),
        ]
        note = "1 is the first document, 2 the other one, 0 neither; preferred is what both orders agree on"
        return Sentences((said,), "position"), Table("preferences", tuple(columns), note=note, labels=3)


def prepare_preferences(
    store: LabelStore,
    endpoint: Endpoint,
    pairs: Iterable[tuple[str, str, str]],
    *,
    judge: str = "",
    texts: Any = None,
    characters: int | None = None,
) -> Prepared:
    """Write the requests about pairs of (topic, document, other document), each in both orders.

    The other parameters are those of `prepare`.
    """
    source, prompt = Source(store, texts, characters), Prompt.read("pairwise", _FORMS)
    requests, rows = dict[str, Make](), dict[str, list[Row]]()
    for query, doc, other in dict.fromkeys(pairs):
        if not source.has(query, doc, other):
            continue
        for order, docs in enumerate(((doc, other), (other, doc))):
            make = partial(source.body, endpoint, prompt, query, docs, 0)
            key = request_key(make())
            requests[key] = make
            rows.setdefault(key, []).append((query, doc, other, order))
    return prepared(source, endpoint, judge or endpoint.model, prompt, requests, rows)


def ask_preferences(
    prepared: Prepared,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Preferences:
    """Send what `prepare_preferences` gave; the parameters are those of `ask`."""
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    said: dict[tuple[str, str, str], list[int | None]] = {}
    for rows in prepared.rows.values():
        said |= {tuple(row[:3]): [None, None] for row in rows}
    for answered, rows in answered_rows(prepared, tally, progress):
        reading = read(answered.reply, _FORMS)
        if reading.invalid:
            tally.invalid[reading.invalid] += 1
            continue
        place = (1, 2, 0)[_FORMS.index(reading.form or "C")]
        for *pair, order in rows:
            said[tuple(pair)][order] = 3 - place if order and place else place
    pairs = tuple((*pair, *places) for pair, places in said.items())
    return Preferences(prepared, tally, notes_of(prepared, tally), pairs)  # pyright: ignore[reportArgumentType]
