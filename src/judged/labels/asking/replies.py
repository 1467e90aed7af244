"""Many requests at once: what was answered before comes from the store, and what is answered now is kept first."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from judged.labels.asking.budget import Budget, SpentError
from judged.labels.asking.client import Client, RefusedError, Reply, UnansweredError

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint
    from judged.labels.store import LabelStore

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
    from sqlalchemy import select

    from judged.labels import schema

    with store.engine.connect() as connection:
        return set(connection.scalars(select(schema.replies.c.request)))


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
    from sqlalchemy import select

    from judged.labels import schema

    with store.engine.connect() as connection:
        text = connection.scalar(select(schema.replies.c.reply).where(schema.replies.c.request == key))
    return Reply(**json.loads(text or "{}"))
