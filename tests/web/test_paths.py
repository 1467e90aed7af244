"""No path and no name in a request leads to a file that was not given."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from judged.web.app import make_app


@pytest.mark.parametrize("path", [
    "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/%2e%2e%2fapp.py",
    "/static/....//app.py",
    "/static/..%5capp.py", "/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/..%252fapp.py", "/static/",
    "/static/../../../../../../etc/passwd", "/shared/../app.py", "/shared/..%2f..%2fcharting%2flook.py", "/static/%00",
    "/shared/look.css/..%2f..%2fapp.py", "/../../etc/passwd", "//etc/passwd", "/api/v1/..%2f..%2fetc%2fpasswd",
    "/static/theme.js%00.css", "/static/" + "a" * 5000, "/static/" + "a/" * 2000, "/static/%ff",
])  # fmt: skip
def test_no_path_leads_to_another_file(sample, path):
    answer = TestClient(make_app(sample)).get(f"http://testserver{path}")
    assert answer.status_code in {400, 404, 405}, answer.status_code
    assert "root:" not in answer.text
    assert "import" not in answer.text


@pytest.mark.parametrize("page", [
    "/topic?topic={}", "/api/v1/topic?topic={}", "/evaluator?run=bm25&topic={}", "/api/v1/evaluator?run=bm25&topic={}",
    "/evaluator?run={}&topic=t01", "/learn/{}", "/api/v1/learn/{}", "/compare?first={}", "/leaderboard?where={}",
])  # fmt: skip
@pytest.mark.parametrize("name", [
    "../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd", "file:///etc/passwd", "%00", "-",
    "qrels.txt", "__import__('os')", "{{7*7}}", "%7B%7B7*7%7D%7D", "<script>alert(1)</script>",
])  # fmt: skip
def test_no_name_in_an_address_is_taken_for_a_file(sample, page, name):
    answer = TestClient(make_app(sample)).get(page.format(name))
    assert answer.status_code < 500
    assert "root:" not in answer.text
    if "html" in answer.headers["content-type"]:
        assert "<script>alert" not in answer.text
    assert ">49<" not in answer.text
