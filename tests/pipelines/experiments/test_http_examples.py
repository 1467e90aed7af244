"""Files of examples/engines, against a server that responds as the API documentation of each engine."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from judged.pipelines.experiments.engines import find_engine

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "engines"
_HITS = {"hits": {"hits": [{"_id": "d2", "_score": 3.5}, {"_id": "d1", "_score": 1.25}]}}
RESPONSES: dict[str, Any] = {
    "opensearch": _HITS,
    "elasticsearch": _HITS,
    "solr": {"response": {"numFound": 2, "docs": [{"id": "d2", "score": 3.5}, {"id": "d1", "score": 1.25}]}},
    "vespa": {
        "root": {
            "id": "toplevel",
            "children": [
                {"id": "id:n:docs::d2", "relevance": 3.5, "fields": {"id": "d2"}},
                {"id": "id:n:docs::d1", "relevance": 1.25, "fields": {"id": "d1"}},
            ],
        }
    },
}
REQUEST_FORMATS = {  # path, and positions of query and number of hits in the body
    "opensearch": ("/docs/_search", "query.multi_match.query", "size"),
    "elasticsearch": ("/docs/_search", "query.multi_match.query", "size"),
    "solr": ("/solr/docs/query", "query", "limit"),
    "vespa": ("/search/", "query", "hits"),
}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == set(RESPONSES)


@pytest.mark.parametrize("name", RESPONSES)
def test_requests_and_responses_follow_the_documentation(name: str, tmp_path: Path) -> None:
    requests: list[tuple[str, str, Any]] = []

    class Stub(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, str(self.headers["Content-Type"]), body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(RESPONSES[name]).encode())

        def log_message(self, format: str, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        text = (EXAMPLES / f"{name}.toml").read_text(encoding="utf-8")
        file = tmp_path / "engine.toml"
        file.write_text(re.sub(r"localhost:\d+", f"127.0.0.1:{server.server_port}", text), encoding="utf-8")
        engine = find_engine("http")()
        engine.build({}, {"file": str(file)}, tmp_path)
        assert engine.search('wings "of" {k} {x}', 7) == [("d2", 3.5), ("d1", 1.25)]
    finally:
        server.shutdown()
        server.server_close()
    ((path, content_type, body),) = requests
    expected_path, query, limit = REQUEST_FORMATS[name]
    assert (path, content_type) == (expected_path, "application/json")
    for position, expected in ((query, 'wings "of" {k} {x}'), (limit, 7)):
        value = body
        for key in position.split("."):
            value = value[key]
        assert value == expected
