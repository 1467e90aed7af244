"""An endpoint of our own that speaks the chat protocol: it judges by a known confusion, and fails in known ways."""

from __future__ import annotations

import json
import random
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from judged.labels import LabelStore, NewTask
from judged.labels.asking import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = "sk-planted-0123456789"
PLANTED = "zanzibar quokka"  # in every document


@dataclass
class Fake:
    """What the server has seen, and how it behaves; a number of a request counts from 1."""

    content: Callable[
        [str, int], str | dict[str, Any]
    ]  # of the last message and the seed: an answer, or a whole choice
    fault: Callable[[int], str | int] = lambda _: ""  # by number: a status, "slow", "drop", "html", "deep"
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 1})
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    url: str = ""
    slow: float = 0.5
    deep: int = 200  # the status of what is nested too deeply
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def calls(self) -> int:
        return len(self.bodies)

    def endpoint(self, **more: Any) -> Endpoint:
        return Endpoint(self.url, "fake", **{"timeout": 5.0, "backoff": 0.001, **more})


class _Handler(BaseHTTPRequestHandler):
    fake: Fake

    def do_POST(self) -> None:
        fake = self.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with fake.lock:
            fake.bodies.append(body)
            fake.keys.append(self.headers["Authorization"])
            fault = fake.fault(len(fake.bodies))
        if fault == "drop":
            self.close_connection = True
            self.connection.close()
            return
        if fault == "slow":
            threading.Event().wait(fake.slow)
        text = body["messages"][-1]["content"]
        said = fake.content(text, body.get("seed", 0))
        choice = said if isinstance(said, dict) else {"message": {"content": said}, "finish_reason": "stop"}
        answer: Any = {"choices": [choice], **({"usage": fake.usage} if fake.usage else {})}
        if isinstance(fault, int):  # endpoints say what they were given
            answer = {"error": {"message": f"{self.headers['Authorization']} {text}", "code": "made_for_tests"}}
        data = {"html": b"<html>", "deep": b"[" * 100_000}.get(str(fault)) or json.dumps(answer).encode()
        try:
            self.send_response(fault if isinstance(fault, int) else fake.deep if fault == "deep" else 200)
            for name, value in fake.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # who asked has gone
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@contextmanager
def serving(content: Callable[[str, int], str | dict[str, Any]], **behavior: Any) -> Iterator[Fake]:
    fake = Fake(content, **behavior)
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    fake.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def named(text: str) -> str:
    """Give the document that is asked about."""
    return re.findall(r"number (\w+)", text)[-1]


def truth(doc: str) -> int:
    return int(doc[1:]) % 4


def confused(text: str, seed: int) -> str:
    """Give the true grade in 7 of 10 documents, and otherwise one by chance: another one under another seed."""
    doc = named(text)
    chance = random.Random(f"{doc} {seed}")  # noqa: S311
    return str(truth(doc) if chance.random() < 0.7 else chance.randrange(4))


def made_store(where: str = "sqlite://", n: int = 20, topics: int = 1) -> LabelStore:
    store = LabelStore.open(where, scale="0-3")
    store.add_topics({f"q{at}": f"words of topic {at}" for at in range(topics)})
    store.add_documents({f"d{at}": f"{PLANTED}, number d{at}" for at in range(n)})
    store.add_tasks(NewTask(f"q{topic}", f"d{at}") for topic in range(topics) for at in range(n))
    return store
