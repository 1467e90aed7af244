"""Middleware: allowed clients, limits of requests, and headers of responses."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any

import pytest
from fastapi import APIRouter, Request
from fastapi.testclient import TestClient

from judged.interface.pages.guard import COOKIE, LOOPBACK, POLICY, Rules
from judged.interface.pages.shared_files import VERSION
from judged.web.app import make_app

TOKEN = "a-token_for.tests~1"  # noqa: S105
LOCAL = Rules(hosts=LOOPBACK)


def client(workspace: Any, rules: Rules | None = LOCAL, **options: Any) -> TestClient:
    return TestClient(make_app(workspace, rules), base_url="http://127.0.0.1:8642", **options)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8642", "localhost:8642", "LOCALHOST:8642", "[::1]:8642", "localhost", "localhost:9000"]
)
def test_this_machine_is_answered_by_its_own_names(sample, host):
    assert client(sample).get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8642", "127.0.0.1.evil.example:8642", "localhost.evil.example", "localhost:8642@evil.example",
        "evil.example@localhost:8642", "10.0.0.1:8642", "127.0.0.1 evil.example", "", "[::1", "localhost:99999999",
        "127.0.0.1:8642, evil.example", "localhost.", "0.0.0.0:8642", "2130706433:8642",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/v1/open", "/static/theme.js", "/nothing"])
def test_foreign_host_names_are_refused_on_every_path(sample, host, path):
    answer = client(sample).get(path, headers={"Host": host})
    assert answer.status_code == 421
    assert sample.title not in answer.text
    assert "judged serve" in answer.text


def _to_the_end(work: Any) -> None:
    """Run a coroutine in a thread of its own: the browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def raw(app: Any, headers: list[tuple[bytes, bytes]], *, method: str = "GET", path: str = "/") -> int:
    """Send a request as no client library would; give its status."""
    got: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        got.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers,
        "server": ("127.0.0.1", 8642), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    _to_the_end(app(scope, receive, send))
    return got[0]["status"]


def test_no_host_and_two_hosts_are_refused(sample):
    app = make_app(sample, LOCAL)
    assert raw(app, []) == 421
    assert raw(app, [(b"host", b"localhost:1"), (b"host", b"evil.example")]) == 421
    assert raw(app, [(b"host", b"localhost:1")]) == 200


def test_a_length_that_is_no_number_is_refused(sample):
    app = make_app(sample, LOCAL)
    for length in (b"-1", b"1e3", b"x", b""):
        headers = [(b"host", b"localhost"), (b"content-length", length)]
        assert raw(app, headers, method="POST", path="/open") == 400


def test_any_address_but_no_foreign_name_where_all_addresses_are_listened_on():
    rules = Rules(hosts=LOOPBACK | {"box"}, addresses=True)
    assert [rules.admits(host) for host in ("10.1.2.3:8642", "[fe80::1]:8642", "box:1", "evil.example:8642")] == [
        True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["/", "/open", "/api/v1/open", "/static/theme.js", "/shared/look.css", "/nothing"])
def test_every_answer_has_the_headers(sample, path):
    headers = client(sample).get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == ("no-cache" if path.startswith(("/static", "/shared")) else "no-store")


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere():
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    assert "default-src 'none'" in POLICY
    assert "frame-ancestors 'none'" in POLICY


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),  # no browser
        ({"Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "same-origin"}, 303),
        ({"Origin": "http://127.0.0.1:8642"}, 303),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),  # another program of this machine
        ({"Origin": "http://127.0.0.1:8642.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
    ],
)
def test_only_our_own_pages_may_change_something(sample, headers, status):
    http = client(sample, follow_redirects=False)
    answer = http.post("/open/sample", headers=headers)
    assert answer.status_code == status
    assert (http.app.state.holder.workspace is sample) == (status == 403)


def test_another_site_may_link_here_but_not_embed_anything(sample):
    http = client(sample)
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    embed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert http.get("/", headers=link).status_code == 200
    assert http.get("/api/v1/open", headers=embed).status_code == 403
    assert http.get("/api/v1/open", headers={**embed, "Sec-Fetch-Site": "same-site"}).status_code == 403
    assert http.get("/api/v1/open", headers={**embed, "Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_nothing_is_answered_without_the_token(sample):
    http = client(sample, Rules(token=TOKEN), follow_redirects=False)
    for path in ("/", "/api/v1/open", "/static/theme.js", "/nothing", "/?token=wrong", "/?token="):
        answer = http.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
        assert sample.title not in answer.text
        assert TOKEN not in answer.text
    assert http.post(f"/open/sample?token={TOKEN}").status_code == 401  # an address that is shared changes nothing
    assert http.get("/", headers={"Cookie": f"{COOKIE}=wrong; x={TOKEN}"}).status_code == 401


def test_token_in_the_url_becomes_a_cookie(sample):
    http = client(sample, Rules(token=TOKEN), follow_redirects=False)
    answer = http.get(f"/api/v1/open?a=1&token={TOKEN}&b=x%26y")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/api/v1/open?a=1&b=x%26y"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert http.get("/api/v1/open").status_code == 200


def test_bearer_token_is_accepted(sample):
    http = client(sample, Rules(token=TOKEN))
    assert http.get("/api/v1/open", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert http.get("/api/v1/open", headers={"Authorization": f"bearer {TOKEN}"}).status_code == 200
    for wrong in (f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer", "Bearer \xe9"):
        headers = {"Authorization": wrong.encode("latin-1")}
        assert http.get("/api/v1/open", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/\\evil.example", "///evil.example/a", "/%2fevil.example", "/%5cevil.example"]
)
def test_cookie_redirect_stays_on_the_host(sample, path):
    http = client(sample, Rules(token=TOKEN), follow_redirects=False)
    place = http.get(f"http://127.0.0.1:8642{path}?token={TOKEN}").headers["location"]
    assert place.startswith("/")
    assert not place.startswith(("//", "/\\"))


def test_a_token_is_not_shown_by_the_rules():
    assert TOKEN not in repr(Rules(token=TOKEN))


def test_too_much_is_refused_by_its_length(sample):
    answer = client(sample).post("/open/sample", content=b"x" * (1 << 20 | 1))
    assert answer.status_code == 413
    assert "1,048,576 bytes" in answer.text


def test_too_much_is_refused_while_it_comes_without_a_length(sample):
    sent = []

    def chunks():
        for i in range(64):
            sent.append(i)
            yield b"x" * (1 << 16)

    app = make_app(sample, LOCAL)
    router = APIRouter()

    @router.post("/swallow")
    async def swallow(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    app.include_router(router)
    http = TestClient(app, base_url="http://127.0.0.1")
    assert http.post("/swallow", content=iter([b"x" * 1000])).json() == {"bytes": 1000}
    answer = http.post("/swallow", content=chunks())
    assert answer.status_code == 413
    assert answer.headers["content-security-policy"] == POLICY


def test_response_to_an_incomplete_form_is_not_sent(sample):
    """FastAPI answers 400 where the body cannot be read; the true reason is the size."""
    from judged.web.uploads import Limits

    app = make_app(sample, LOCAL, Limits(total=1000))
    http = TestClient(app, base_url="http://127.0.0.1")
    body = b'--x\r\nContent-Disposition: form-data; name="qrels"; filename="q"\r\n\r\n' + b"a" * (1 << 21)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    halves = iter([body[: 1 << 20], body[1 << 20 :]])
    answer = http.post("/api/v1/open", content=halves, headers=headers)
    assert answer.status_code == 413
    assert answer.json()["problem"] == "the request must have at most 1,049,576 bytes"
    assert app.state.holder.workspace is sample


def test_a_websocket_is_closed(sample):
    got: list[Any] = []

    async def send(message: Any) -> None:
        got.append(message)

    _to_the_end(make_app(sample)({"type": "websocket", "path": "/", "headers": []}, None, send))
    assert got == [{"type": "websocket.close", "code": 1008}]


def faulty(workspace: Any) -> TestClient:
    app = make_app(workspace)
    router = APIRouter()

    @router.get("/fault")
    @router.get("/api/v1/fault")
    def fault() -> None:
        raise RuntimeError("s3cret")

    app.include_router(router)
    return TestClient(app)


def test_internal_errors_are_reported_without_and_logged_with_traceback(sample, caplog):
    http = faulty(sample)
    with caplog.at_level(logging.ERROR, "judged"):
        answer = http.get("/fault")
        data = http.get("/api/v1/fault")
    assert (answer.status_code, data.status_code) == (500, 500)
    assert "an internal error occurred" in answer.text
    assert "an internal error occurred" in data.json()["problem"]
    for text in (answer.text, data.text):
        assert "s3cret" not in text
        assert "Traceback" not in text
        assert "RuntimeError" not in text
    assert answer.headers["content-security-policy"] == POLICY
    assert [record.getMessage() for record in caplog.records] == ["GET '/fault' failed", "GET '/api/v1/fault' failed"]
    assert all("s3cret" in str(record.exc_info[1]) for record in caplog.records)


def test_failing_error_page_is_reported_as_text(sample, caplog, monkeypatch):
    from judged.interface.pages import problems as faults

    def broken(*_: Any) -> None:
        raise KeyError("footer")

    monkeypatch.setattr(faults, "problem_response", broken)
    answer = faulty(sample).get("/fault")
    assert answer.status_code == 500
    assert answer.text.startswith("judged: an internal error occurred")
    assert len(caplog.records) == 2


def test_requests_at_the_same_time_are_counted_each_for_itself(sample):
    http = client(sample)
    results: list[int] = []

    def ask() -> None:
        results.append(http.post("/open/sample", content=b"x" * (1 << 19), follow_redirects=False).status_code)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) <= {303, 409}  # one at a time opens something, and none has sent too much
    assert 303 in results


def test_versioned_static_files_are_cached_forever(sample):
    http = client(sample)
    text = http.get("/leaderboard").text
    names = [unescape(name) for name in re.findall(r'(?:href|src)="(/[^"]*\.(?:css|js|svg))"', text)]
    assert names
    for name in names:
        assert name.startswith(f"{VERSION}/")
        answer = http.get(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        plain = http.get(name.removeprefix(VERSION))
        assert plain.content == answer.content
        assert plain.headers["cache-control"] == "no-cache"
    assert "immutable" not in http.get(f"{VERSION}/static/none.js").headers["cache-control"]


def test_static_files_are_compressed_if_accepted(sample):
    http = client(sample)
    for path in ("/leaderboard", "/api/v1/leaderboard", "/shared/vega.js", "/shared/look.css"):
        packed, plain = (http.get(path, headers={"Accept-Encoding": how}) for how in ("gzip", "identity"))
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < 400_000
        assert "content-encoding" not in plain.headers
        assert plain.content == packed.content
