"""A model asked for the grades of pairs: its labels in the store, and what became of each request."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from judged.labels.asking.client import Budget, Client, RefusedError, Reply, SpentError, UnansweredError
from judged.labels.asking.prompts import ADDRESSED, first_token, read
from judged.results import COUNT, TEXT, Answer, Column, Sentences, Table, counted, listed, significant
from judged.results.blocks import Note

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint
    from judged.labels.asking.preparation import Prepared
    from judged.labels.store import LabelStore
    from judged.results import Block


_WHY = {
    "budget": "the budget does not allow the next request",
    "endpoint": "the endpoint answered nothing more, or refuses whoever asks",
}


@dataclass(frozen=True, eq=False, repr=False)
class Asked(Answer):
    """What came of asking a model.

    Attributes
    ----------
    prepared
        What was asked.
    tally
        Requests answered, found in the store, refused, and left; calls, tokens, money and seconds; and the answers that
        were none, by why.
    stopped
        Why it ended before its end: ``budget`` or ``endpoint``; empty where it did not.
    """

    kind: ClassVar[str] = "asked"

    prepared: Prepared
    tally: Tally
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Who was asked."""
        return f"What {self.prepared.judge} answered"

    @property
    def stopped(self) -> str:
        """Why it ended before its end."""
        return self.tally.stopped

    @property
    def left(self) -> int:
        """How many requests have no answer yet."""
        return self.tally.left

    @property
    def cost(self) -> float | None:
        """What was spent at most: None where prices are not known."""
        return self.tally.budget.money if self.prepared.endpoint.priced else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What came of it, and how to go on."""
        tally, invalid = self.tally, sum(self.tally.invalid.values())
        calls = f"{counted(tally.budget.calls, 'call')} to {self.prepared.endpoint.host}"
        parts = f"{tally.answered:,} were answered now, {tally.cached:,} before, and {tally.left:,} are left"
        said = [f"Of {counted(tally.requests, 'request')} {parts}; {calls}."]
        if invalid:
            kinds = listed([f"{count:,} {kind}" for kind, count in tally.invalid.most_common()])
            said.append(f"{counted(invalid, 'answer')} not in the form that was asked for, and so no label: {kinds}.")
        if tally.left:
            why = f"Stopped: {_WHY[tally.stopped]}. " if tally.stopped else ""
            said.append(f"{why}Nothing that was answered is lost: the same call goes on with what is left.")
        return tuple(said)

    def facts(self) -> Mapping[str, Any]:
        """Give who was asked, and why it ended."""
        return {**self.prepared.facts(), "stopped": self.stopped}

    def blocks(self) -> tuple[Block, ...]:
        """Give the sentences and all counts."""
        tally = self.tally
        counts = {
            "requests": tally.requests, "answered": tally.answered, "cached": tally.cached, "left": tally.left,
            "refused": tally.refused.total(), "unanswered": tally.unanswered.total(), "calls": tally.budget.calls,
            "tokens_in": tally.budget.tokens_in, "tokens_out": tally.budget.tokens_out,
        }  # fmt: skip
        numbers = [Column(name, [count], COUNT, name.replace("_", " ")) for name, count in counts.items()]
        numbers += [Column("cost", [self.cost], significant(4)), Column("seconds", [tally.seconds], significant(3))]
        kinds = tally.invalid.most_common()
        invalid = Table(
            "invalid",
            (
                Column("kind", [kind for kind, _ in kinds], TEXT, "no label"),
                Column("count", [count for _, count in kinds], COUNT, "answers"),
            ),
        )
        return (
            Sentences(self.sentences),
            Table("asked", tuple(numbers), labels=0),
            *((invalid,) if kinds else ()),
            *self.more(),
        )

    def more(self) -> tuple[Block, ...]:
        """Give what else was made of the answers."""
        return ()


def ask(
    prepared: Prepared,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Asked:
    """Send what was prepared, and put what comes back into the store as labels.

    Each answer is kept before anything else happens; after a stop, `prepare` and `ask` go on with what is left.

    Parameters
    ----------
    prepared
        What `prepare` gave.
    budget_calls, budget_money
        The most requests that are sent, those sent again among them, and the most that they may cost; None: no limit.
    progress
        Called after each answer with what has happened so far.

    Raises
    ------
    InputError
        If there is no key, or the budget is in money and prices or lengths are not known.
    MissingExtraError
        If httpx is not installed.
    """
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    store, prompt = prepared.store, prepared.prompt
    for answered, rows in answered_rows(prepared, tally, progress):
        reading = read(answered.reply, prompt.forms)
        if reading.invalid:
            tally.invalid[reading.invalid] += 1
        usual = {
            "judge": prepared.judge, "kind": "model", "model": prepared.endpoint.model, "prompt": prompt.id,
            "grade": None if reading.form is None else float(reading.form), "valid": reading.form is not None,
            "seconds": answered.reply.seconds, "logprobs": first_token(answered.reply.top, prompt.forms),
        }  # fmt: skip
        store.add_many(
            usual | {
                "query_id": query, "doc_id": doc, "repeat": repeat, "seed": prepared.endpoint.seed + repeat,
                "note": reading.invalid or (ADDRESSED if doc in prepared.addressed else ""),
            }
            for query, doc, repeat in rows
        )  # fmt: skip
    return Asked(prepared, tally, notes_of(prepared, tally))


def notes_of(prepared: Prepared, tally: Tally) -> tuple[Note, ...]:
    """Say what was found before, and what the endpoint said in place of answers."""
    failures = (tally.refused + tally.unanswered).most_common()
    said = (Note("no-answer", f"{counted(count, 'request')} not answered: {why}") for why, count in failures)
    return (*prepared.notes, *said)


def answered_rows(
    prepared: Prepared, tally: Tally, progress: Callable[[Tally], None] | None
) -> Iterator[tuple[Answered, Any]]:
    """Give the answers with what each is about."""
    for answered in answers(prepared.store, prepared.endpoint, prepared.requests, tally, progress):
        yield answered, prepared.rows[answered.request]


_IN_A_ROW = 5  # failures without an answer between them: nothing else would be answered either
_FOR_ALL = frozenset({401, 402, 403, 404, 405})  # refusals that are about whoever asks, not about what is asked


class Answered(NamedTuple):
    """An answer, and whether it was there before."""

    request: str
    reply: Reply
    cached: bool


@dataclass
class Tally:
    """What has happened so far in one run."""

    budget: Budget
    requests: int = 0  # different ones that were to be answered
    answered: int = 0  # by the endpoint, now
    cached: int = 0  # by the store
    refused: Counter[str] = field(default_factory=Counter[str])  # by what the endpoint said
    unanswered: Counter[str] = field(default_factory=Counter[str])  # by why there is no answer yet
    invalid: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    stopped: str = ""  # why it ended before its end

    @property
    def left(self) -> int:
        """How many have no answer yet."""
        return self.requests - self.answered - self.cached

    def failed(self, error: RefusedError | UnansweredError, before: int) -> int:
        """Count a failure; tell how many that makes in a row."""
        if isinstance(error, UnansweredError):
            self.unanswered[str(error)] += 1
            return _IN_A_ROW if error.for_long else before + 1
        self.refused[str(error)] += 1
        return _IN_A_ROW if error.status in _FOR_ALL else before + 1


def request_key(body: Mapping[str, Any], repeat: int = 0) -> str:
    """Give the hash of all that is sent; a repeat is another request, also where the endpoint takes no seed."""
    return sha256(json.dumps([body, repeat], sort_keys=True).encode()).hexdigest()


def kept_requests(store: LabelStore) -> set[str]:
    """Name the requests that the store has the answers of."""
    from judged.labels import schema

    return {row.request for row in store.rows(schema.replies.select().with_only_columns(schema.replies.c.request))}


def answers(
    store: LabelStore,
    endpoint: Endpoint,
    requests: Mapping[str, Callable[[], Mapping[str, Any]]],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[Answered]:
    """Give the answers of requests as they come: from the store, or else from the endpoint, each kept before given.

    Threads send; this one alone writes. At most as many answers are under way as there are workers, and they are waited
    for and kept when it is broken off.
    """
    start = time.monotonic() - tally.seconds
    kept = kept_requests(store)
    tally.requests += len(requests)
    for key in requests:
        if key in kept:
            tally.cached += 1
            yield Answered(key, _load(store, key), cached=True)
    waiting = deque(key for key in requests if key not in kept)
    if waiting and not tally.stopped:
        client = Client(endpoint, tally.budget)
        try:
            for key, reply in _sent(store, client, endpoint.workers, waiting, requests, tally):
                tally.answered += 1
                tally.seconds = time.monotonic() - start
                yield Answered(key, reply, cached=False)
                if progress:
                    progress(tally)
        finally:
            client.close()
            tally.seconds = time.monotonic() - start


def _sent(
    store: LabelStore,
    client: Client,
    workers: int,
    waiting: deque[str],
    requests: Mapping[str, Callable[[], Mapping[str, Any]]],
    tally: Tally,
) -> Iterator[tuple[str, Reply]]:
    """Keep the workers busy until all is answered, the budget is spent, or nothing is answered any more."""
    flying: dict[Future[Reply], tuple[str, int]] = {}  # what was asked, and after how many others had ended
    room, failures, ended = workers, 0, 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            while flying or (waiting and not tally.stopped):
                while waiting and not tally.stopped and len(flying) < room:
                    key = waiting.popleft()
                    flying[pool.submit(client.ask, requests[key]())] = key, ended
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    try:
                        reply = future.result()
                    except SpentError:  # what is under way may cost less than was taken for it, and what has ended did
                        key, then = flying.pop(future)
                        waiting.appendleft(key)
                        room = min(room, len(flying)) if then == ended else workers
                        tally.stopped = tally.stopped or ("" if room else "budget")
                        continue
                    except (RefusedError, UnansweredError) as error:
                        del flying[future]
                        failures = tally.failed(error, failures)
                        if failures >= _IN_A_ROW:
                            tally.stopped = "endpoint"
                            client.stopping.set()
                    else:
                        kept = keep_reply(store, flying[future][0], reply)
                        failures = 0
                        yield flying.pop(future)[0], kept
                    room, ended = workers, ended + 1
        finally:
            client.stopping.set()
            for future, (key, _) in flying.items():  # broken off: what was paid for is waited for and kept
                if future.exception() is None:
                    keep_reply(store, key, future.result())


def keep_reply(store: LabelStore, key: str, reply: Reply) -> Reply:
    """Put an answer into the store, and give the one that is kept: another run may have asked the same before."""
    from sqlalchemy.dialects import postgresql, sqlite

    from judged.labels import schema

    insert = postgresql.insert if store.engine.dialect.name == "postgresql" else sqlite.insert
    row = {"request": key, "reply": json.dumps(reply._asdict()), "at": datetime.now(UTC).isoformat(timespec="seconds")}
    with store.engine.begin() as connection:
        added = connection.execute(insert(schema.replies).on_conflict_do_nothing(), row).rowcount
    return reply if added else _load(store, key)


def _load(store: LabelStore, key: str) -> Reply:
    from judged.labels import schema

    (row,) = store.rows(schema.replies.select().where(schema.replies.c.request == key))
    return Reply(**json.loads(row.reply))
