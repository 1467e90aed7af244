"""A fake endpoint with the chat protocol, which grades with a known error rate and fails as configured."""

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
    """Requests that the server received, and its behavior; request numbers start at 1."""

    # content: returns a reply, or a complete choice, for the last message and the seed
    content: Callable[[str, int], str | dict[str, Any]]
    fault: Callable[[int], str | int] = lambda _: ""  # by request number: a status, "slow", "drop", "html", "deep"
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 1})
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    url: str = ""
    slow: float = 0.5
    deep: int = 200  # status of the reply to "deep", JSON with too many levels
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def calls(self) -> int:
        return len(self.bodies)

    def endpoint(self, **settings: Any) -> Endpoint:
        return Endpoint(self.url, "fake", **{"timeout": 5.0, "backoff": 0.001, **settings})


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
        content = fake.content(text, body.get("seed", 0))
        choice = content if isinstance(content, dict) else {"message": {"content": content}, "finish_reason": "stop"}
        answer: Any = {"choices": [choice], **({"usage": fake.usage} if fake.usage else {})}
        if isinstance(fault, int):  # error messages repeat key and text
            answer = {"error": {"message": f"{self.headers['Authorization']} {text}", "code": "made_for_tests"}}
        data = {"html": b"<html>", "deep": b"[" * 100_000}.get(str(fault)) or json.dumps(answer).encode()
        try:
            self.send_response(fault if isinstance(fault, int) else fake.deep if fault == "deep" else 200)
            for name, value in fake.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client closed the connection
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


def document_in(text: str) -> str:
    """Return the document ID in a prompt."""
    return re.findall(r"number (\w+)", text)[-1]


def truth(doc: str) -> int:
    return int(doc[1:]) % 4


def confused(text: str, seed: int) -> str:
    """Return the true grade for 7 of 10 documents, otherwise a random one that depends on the seed."""
    doc = document_in(text)
    rng = random.Random(f"{doc} {seed}")  # noqa: S311
    return str(truth(doc) if rng.random() < 0.7 else rng.randrange(4))


def made_store(where: str = "sqlite://", n: int = 20, topics: int = 1) -> LabelStore:
    store = LabelStore.open(where, scale="0-3")
    store.add_topics({f"q{i}": f"words of topic {i}" for i in range(topics)})
    store.add_documents({f"d{i}": f"{PLANTED}, number d{i}" for i in range(n)})
    store.add_tasks(NewTask(f"q{topic}", f"d{i}") for topic in range(topics) for i in range(n))
    return store
