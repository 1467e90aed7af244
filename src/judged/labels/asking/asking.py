"""Grading by a model: send the prepared requests, and store the replies as labels."""

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
from judged.labels.asking.prompts import ADDRESSED, encode_logprobs, parse_reply
from judged.results import COUNT, TEXT, Answer, Column, Sentences, Table, counted, listed, significant
from judged.results.blocks import Note

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint
    from judged.labels.asking.preparation import Prepared
    from judged.labels.store import LabelStore
    from judged.results import Block


_STOP_REASONS = {
    "budget": "the budget does not allow another request",
    "endpoint": "the endpoint failed repeatedly, or rejected the API key",
}


@dataclass(frozen=True, eq=False, repr=False)
class AskResult(Answer):
    """Result of sending requests to a model.

    Attributes
    ----------
    prepared
        The requests.
    tally
        Numbers of requests that were answered, cached, refused, and not answered; calls, tokens, money and seconds;
        invalid replies by reason.
    stopped
        Why sending stopped early: ``budget`` or ``endpoint``; empty if it did not.
    """

    kind: ClassVar[str] = "model-replies"

    prepared: Prepared
    tally: Tally
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"Replies of {self.prepared.judge}"

    @property
    def stopped(self) -> str:
        """Reason why sending stopped early, or an empty string."""
        return self.tally.stopped

    @property
    def remaining(self) -> int:
        """Number of requests without a reply."""
        return self.tally.remaining

    @property
    def cost(self) -> float | None:
        """Maximum money spent; None if prices are not known."""
        return self.tally.budget.money if self.prepared.endpoint.priced else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Numbers of replies, and how to continue."""
        tally, invalid = self.tally, sum(self.tally.invalid.values())
        counts = f"{tally.answered:,} new replies, {tally.cached:,} stored replies, {tally.remaining:,} without a reply"
        calls = f"This run made {counted(tally.budget.calls, 'call')} to {self.prepared.endpoint.host}"
        sentences = [f"{counted(tally.requests, 'request')}: {counts}. {calls}."]
        if invalid:
            kinds = listed([f"{count:,} {kind}" for kind, count in tally.invalid.most_common()])
            sentences.append(f"{counted(invalid, 'reply is', 'replies are')} invalid and gave no label: {kinds}.")
        if tally.remaining:
            reason = f"Stopped: {_STOP_REASONS[tally.stopped]}. " if tally.stopped else ""
            sentences.append(f"{reason}All replies are stored. Run the same command again to continue.")
        return tuple(sentences)

    def facts(self) -> Mapping[str, Any]:
        """Return the endpoint and judge, and why sending stopped."""
        return {**self.prepared.facts(), "stopped": self.stopped}

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences and all counts."""
        tally = self.tally
        counts = {
            "requests": tally.requests, "answered": tally.answered, "cached": tally.cached,
            "remaining": tally.remaining, "refused": tally.refused.total(), "unanswered": tally.unanswered.total(),
            "calls": tally.budget.calls, "tokens_in": tally.budget.tokens_in, "tokens_out": tally.budget.tokens_out,
        }  # fmt: skip
        numbers = [Column(name, [count], COUNT, name.replace("_", " ")) for name, count in counts.items()]
        numbers += [Column("cost", [self.cost], significant(4)), Column("seconds", [tally.seconds], significant(3))]
        kinds = tally.invalid.most_common()
        invalid = Table(
            "invalid",
            (
                Column("kind", [kind for kind, _ in kinds], TEXT, "reason"),
                Column("count", [count for _, count in kinds], COUNT, "replies"),
            ),
            "Invalid replies",
        )
        return (
            Sentences(self.sentences),
            Table("requests", tuple(numbers), labels=0),
            *((invalid,) if kinds else ()),
            *self.reply_blocks(),
        )

    def reply_blocks(self) -> tuple[Block, ...]:
        """Return more blocks about the replies."""
        return ()


def ask(
    prepared: Prepared,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> AskResult:
    """Send prepared requests to a model, and store its replies as labels.

    Each reply is stored at once. To continue after a stop, call `prepare` and `ask` again.

    Parameters
    ----------
    prepared
        Result of `prepare`.
    budget_calls, budget_money
        Maximum number of requests, including retries, and maximum cost; None: no limit.
    progress
        Called after each reply with the counts so far.

    Raises
    ------
    InputError
        If there is no API key, or the budget is in money and prices or token limits are not known.
    MissingExtraError
        If httpx is not installed.
    """
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    # Several targets can have the same request, for example documents with the same text.
    store, prompt = prepared.store, prepared.prompt
    for received, targets in replies_with_targets(prepared, tally, progress):
        parsed = parse_reply(received.reply, prompt.allowed_answers)
        if parsed.invalid:
            tally.invalid[parsed.invalid] += 1
        label = {
            "judge": prepared.judge, "kind": "model", "model": prepared.endpoint.model, "prompt": prompt.id,
            "grade": None if parsed.answer is None else float(parsed.answer), "valid": parsed.answer is not None,
            "seconds": received.reply.seconds, "logprobs": encode_logprobs(received.reply.top, prompt.allowed_answers),
        }  # fmt: skip
        store.add_many(
            label | {
                "query_id": query, "doc_id": doc, "repeat": repeat, "seed": prepared.endpoint.seed + repeat,
                "note": parsed.invalid or (ADDRESSED if doc in prepared.addressed else ""),
            }
            for query, doc, repeat in targets
        )  # fmt: skip
    return AskResult(prepared, tally, request_notes(prepared, tally))


def request_notes(prepared: Prepared, tally: Tally) -> tuple[Note, ...]:
    """Return the notes of the prepared requests, and the failures of the endpoint."""
    failures = (tally.refused + tally.unanswered).most_common()
    texts = (f"{counted(count, 'request')} without a reply: {reason}" for reason, count in failures)
    return (*prepared.notes, *(Note("no-answer", text) for text in texts))


def replies_with_targets(
    prepared: Prepared, tally: Tally, progress: Callable[[Tally], None] | None
) -> Iterator[tuple[ReceivedReply, Any]]:
    """Yield the replies with the targets of their requests."""
    for received in get_replies(prepared.store, prepared.endpoint, prepared.requests, tally, progress):
        yield received, prepared.rows[received.request]


_MAX_FAILURES = 5  # consecutive failures after which sending stops
_FATAL_STATUSES = frozenset({401, 402, 403, 404, 405})  # about the account or the URL, so that all requests would fail


class ReceivedReply(NamedTuple):
    """A reply, with its request key, and whether it was cached."""

    request: str
    reply: Reply
    cached: bool


@dataclass
class Tally:
    """Counts of one run, updated with each reply."""

    budget: Budget
    requests: int = 0  # distinct requests
    answered: int = 0  # replies from the endpoint in this run
    cached: int = 0  # replies in the store
    refused: Counter[str] = field(default_factory=Counter[str])  # by error of the endpoint
    unanswered: Counter[str] = field(default_factory=Counter[str])  # by reason
    invalid: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    stopped: str = ""  # why sending stopped early

    @property
    def remaining(self) -> int:
        """Number of requests without a reply."""
        return self.requests - self.answered - self.cached

    def failed(self, error: RefusedError | UnansweredError, failures: int) -> int:
        """Count a failure; return the number of consecutive failures."""
        if isinstance(error, UnansweredError):
            self.unanswered[str(error)] += 1
            return _MAX_FAILURES if error.for_long else failures + 1
        self.refused[str(error)] += 1
        return _MAX_FAILURES if error.status in _FATAL_STATUSES else failures + 1


def request_key(body: Mapping[str, Any], repeat: int = 0) -> str:
    """Compute the hash of a request; repeats differ even if the endpoint does not accept a seed."""
    return sha256(json.dumps([body, repeat], sort_keys=True).encode()).hexdigest()


def cached_keys(store: LabelStore) -> set[str]:
    """Return the keys of the requests with a reply in the store."""
    from judged.labels import schema

    return {row.request for row in store.rows(schema.replies.select().with_only_columns(schema.replies.c.request))}


def get_replies(
    store: LabelStore,
    endpoint: Endpoint,
    requests: Mapping[str, Callable[[], Mapping[str, Any]]],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[ReceivedReply]:
    """Yield the replies of requests as they arrive, from the store or the endpoint; each is stored first.

    Worker threads send; only the calling thread writes to the store. If the caller stops, pending replies are awaited
    and stored, because they are paid for.
    """
    start = time.monotonic() - tally.seconds
    cached = cached_keys(store)
    tally.requests += len(requests)
    for key in requests:
        if key in cached:
            tally.cached += 1
            yield ReceivedReply(key, _load_reply(store, key), cached=True)
    # Cached replies first: they cost nothing.
    waiting = deque(key for key in requests if key not in cached)
    if waiting and not tally.stopped:
        client = Client(endpoint, tally.budget)
        try:
            for key, reply in _send_requests(store, client, endpoint.workers, waiting, requests, tally):
                tally.answered += 1
                tally.seconds = time.monotonic() - start
                yield ReceivedReply(key, reply, cached=False)
                if progress:
                    progress(tally)
        finally:
            client.close()
            tally.seconds = time.monotonic() - start


def _send_requests(
    store: LabelStore,
    client: Client,
    workers: int,
    waiting: deque[str],
    requests: Mapping[str, Callable[[], Mapping[str, Any]]],
    tally: Tally,
) -> Iterator[tuple[str, Reply]]:
    """Send requests with all workers until all have a reply, the budget is used up, or the endpoint fails."""
    pending: dict[Future[Reply], tuple[str, int]] = {}  # request key, and number of requests that had ended before
    max_pending, failures, ended = workers, 0, 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            while pending or (waiting and not tally.stopped):
                while waiting and not tally.stopped and len(pending) < max_pending:
                    key = waiting.popleft()
                    pending[pool.submit(client.send, requests[key]())] = key, ended
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    try:
                        reply = future.result()
                    except SpentError:
                        # Pending requests have reserved their maximum cost: try again when one of them has ended.
                        key, ended_before = pending.pop(future)
                        waiting.appendleft(key)
                        max_pending = min(max_pending, len(pending)) if ended_before == ended else workers
                        tally.stopped = tally.stopped or ("" if max_pending else "budget")
                        continue
                    except (RefusedError, UnansweredError) as error:
                        del pending[future]
                        failures = tally.failed(error, failures)
                        # Stop early: each further attempt costs time, and possibly money.
                        if failures >= _MAX_FAILURES:
                            tally.stopped = "endpoint"
                            client.stopping.set()
                    else:
                        stored = save_reply(store, pending[future][0], reply)
                        failures = 0
                        yield pending.pop(future)[0], stored
                    max_pending, ended = workers, ended + 1
        finally:
            client.stopping.set()
            for future, (key, _) in pending.items():  # stopped early: store replies that are paid for
                if future.exception() is None:
                    save_reply(store, key, future.result())


def save_reply(store: LabelStore, key: str, reply: Reply) -> Reply:
    """Store a reply and return the stored one: another run may have stored a reply to the same request before."""
    from sqlalchemy.dialects import postgresql, sqlite

    from judged.labels import schema

    insert = postgresql.insert if store.engine.dialect.name == "postgresql" else sqlite.insert
    row = {
        "request": key,
        "reply": json.dumps(reply._asdict()),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with store.engine.begin() as connection:
        # The first stored reply wins, so that all runs use the same one.
        added = connection.execute(insert(schema.replies).on_conflict_do_nothing(), row).rowcount
    return reply if added else _load_reply(store, key)


def _load_reply(store: LabelStore, key: str) -> Reply:
    from judged.labels import schema

    (row,) = store.rows(schema.replies.select().where(schema.replies.c.request == key))
    return Reply(**json.loads(row.reply))
