"""Requests that come slowly, in halves, all at once, or not at all: nobody else may notice."""

from __future__ import annotations

import asyncio
import gc
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest
import uvicorn
from fastapi.testclient import TestClient

from judged.interface.pages.guard import Rules, timeout_protocol
from judged.interface.pages.serving import uvicorn_config
from judged.web import uploads as routes
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 0.5
FORM = b'--x\r\nContent-Disposition: form-data; name="qrels"; filename="q"\r\n\r\nq1 0 d1 2\n\r\n--x--\r\n'
HEAD = b"POST /api/v1/open HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(FORM) + FORM


@pytest.fixture
def server(sample) -> Iterator[uvicorn.Server]:
    """A server that waits no longer than half a second."""
    rules = Rules(patience=PATIENCE)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn_config(make_app(sample, rules), rules))
    running.config.log_config = None
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    running.address = listening.getsockname()
    yield running
    running.should_exit = True
    thread.join(timeout=10)


def received(connection: socket.socket) -> bytes:
    """Give what comes; nothing where the connection is closed, also while a part of the request is still on its way."""
    try:
        return connection.recv(1 << 16)
    except ConnectionResetError:
        return b""


def send_until_answered(server: Any, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send parts of a request until it is answered; give all that comes until the server closes the connection."""
    with socket.create_connection(server.address, timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
            if select.select([connection], [], [], pause)[0]:
                break
        came = b""
        while chunk := received(connection):
            came += chunk
        return came


@pytest.mark.parametrize("head", [b"", b"GET / HT", HEAD, b"GET /api/v1/open HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"])
def test_a_connection_on_which_half_a_request_came_is_closed(server, head):
    began = time.monotonic()
    assert send_until_answered(server, head).count(b"HTTP/1.1 ") == head.count(b"\r\n\r\n")
    assert time.monotonic() - began < 10 * PATIENCE


def test_a_connection_that_is_gone_is_not_held_by_who_watches_it():
    """Else each request leaves what it was made of for a while, and looking for garbage in it holds up other pages."""

    async def there_still() -> bool:
        config = uvicorn.Config(lambda: None, log_config=None)
        config.load()
        protocol = timeout_protocol(60)(config=config, server_state=uvicorn.server.ServerState(), app_state={})
        connection = ref(protocol)
        del protocol
        gc.collect()
        return connection() is not None

    with ThreadPoolExecutor() as elsewhere:  # in this thread Playwright's loop may run
        assert not elsewhere.submit(lambda: asyncio.run(there_still())).result()


def test_a_head_that_drips_is_not_waited_for(server):
    began = time.monotonic()
    assert send_until_answered(server, b"GET / HTTP/1.1\r\nX: ", *[b"x"] * 100, pause=PATIENCE / 5) == b""
    assert time.monotonic() - began < 8 * PATIENCE


@pytest.mark.parametrize("length", [b"Content-Length: 100\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_a_body_that_does_not_come_is_said_and_the_connection_closed(server, length):
    assert send_until_answered(server, HEAD + length + FORM[:20] * (b"Content" in length)).startswith(b"HTTP/1.1 408 ")
    assert send_until_answered(server, WHOLE).startswith(b"HTTP/1.1 200 ")  # the next one is opened


def test_a_body_that_drips_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr("judged.interface.pages.guard._MIN_RATE", 1 << 30)  # one second more for a gigabyte
    drops = [FORM[i : i + 1] for i in range(50)]
    began = time.monotonic()
    came = send_until_answered(server, HEAD + b"Content-Length: 100\r\n\r\n", *drops, pause=PATIENCE / 2.5)
    assert came.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began < 8 * PATIENCE


def test_an_answer_that_takes_long_is_not_cut(server, monkeypatch):
    original = routes.open_data_overview
    monkeypatch.setattr(routes, "open_data_overview", lambda opened: time.sleep(3 * PATIENCE) or original(opened))
    assert send_until_answered(server, WHOLE).startswith(b"HTTP/1.1 200 ")


def test_while_files_are_opened_others_are_refused_at_once_and_pages_go_on(server, monkeypatch):
    """Uploads that wait for each other in the threads of all pages would stop every page."""
    begun, goes_on = threading.Event(), threading.Event()
    opened = routes.workspace_of

    def slow(*parameters: Any) -> Any:
        begun.set()
        assert goes_on.wait(20)
        return opened(*parameters)

    monkeypatch.setattr(routes, "workspace_of", slow)
    first: list[bytes] = []
    thread = threading.Thread(target=lambda: first.append(send_until_answered(server, WHOLE)))
    thread.start()
    assert begun.wait(10)
    connections = []
    for _ in range(45):  # more than there are threads; of a body that has not come nothing is waited for
        connections.append(socket.create_connection(server.address, timeout=10))
        connections[-1].sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
    assert all(row.recv(12) == b"HTTP/1.1 409" for row in connections)
    sample = b"POST /open/sample HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    assert send_until_answered(server, sample).startswith(b"HTTP/1.1 409")
    assert send_until_answered(server, b"GET /open HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(
        b"HTTP/1.1 200"
    )
    goes_on.set()
    thread.join(10)
    assert first[0].startswith(b"HTTP/1.1 200")
    assert send_until_answered(server, WHOLE).startswith(b"HTTP/1.1 200")
    for row in connections:
        row.close()


@pytest.mark.parametrize("path", ["/", "/static/theme.js", "/api/v1/open", "/shared/vega.js", "/none"])
def test_head_is_answered_as_get_without_a_body(sample, path):
    tried = TestClient(make_app(sample))
    response, head = tried.get(path), tried.head(path)
    assert head.status_code == response.status_code
    assert head.content == b""
    assert {**head.headers} == {**response.headers}
