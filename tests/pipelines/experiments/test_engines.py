"""Engines agree with direct calls of their libraries, reject invalid queries, and reproduce published scores."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import psycopg
import pytest
import Stemmer
import tantivy

import judged
from judged.data import Qrels, Topics
from judged.data.texts import Text, Texts
from judged.errors import InputError, MissingExtraError
from judged.pipelines.experiments.engines import ENGINES, find_engine
from judged.pipelines.experiments.engines.base import QueryRefusedError
from judged.pipelines.experiments.engines.external import parse_hits
from judged.pipelines.experiments.pipelines import COMMON, OPERATORS, settings_of
from pipelines.experiments.server import can_start_postgresql, postgresql
from shared_data import SHARED, needs_shared

DOCUMENTS = {
    "a": Text("Apples", "Apples and pears are fruit. Connected fruit."),
    "b": Text("", "A connection between two networks, connecting them."),
    "c": Text("Fruit", "Pears only."),
    "d": Text("", ""),
    "e": Text("Ümlaut", 'Fruit AND (networks) OR "quotes": what\'s new?'),
}
LOCAL = ("sqlite", "bm25s", "tantivy", "dense")
needs_server = pytest.mark.skipif(not can_start_postgresql(), reason="no PostgreSQL here")


def build_engine(name: str, folder: Path, documents: dict[str, Text] | None = None, **configuration: Any) -> Any:
    engine = find_engine(name)()
    defaults = {setting: setting_info.default for setting, setting_info in engine.settings.items()}
    folder.mkdir(parents=True, exist_ok=True)
    engine.build(DOCUMENTS if documents is None else documents, {**defaults, **configuration}, folder)
    return engine


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="pg") as folder:  # paths of sockets are short
        Path(folder).chmod(0o755)
        with postgresql(Path(folder) / "s") as dsn:
            yield dsn


@pytest.mark.parametrize("name", LOCAL)
def test_every_engine_ranks_documents_and_has_a_size(name: str, tmp_path: Path) -> None:
    engine = build_engine(name, tmp_path)
    hits = engine.search("pears fruit", 3)
    assert {doc for doc, _ in hits[:2]} <= {"a", "c", "e"}
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
    assert len(engine.search("fruit", 1)) == 1
    assert engine.size() > 100
    engine.close()


@pytest.mark.parametrize("name", [name for name in LOCAL if name != "dense"])
def test_stemming_finds_other_forms_and_none_does_not(name: str, tmp_path: Path) -> None:
    assert "b" in dict(build_engine(name, tmp_path / "1", stemmer="english").search("connected", 5))
    assert dict(build_engine(name, tmp_path / "2", stemmer="none").search("connected", 5)).keys() == {"a"}


@pytest.mark.parametrize("name", [name for name in LOCAL if name != "dense"])
@pytest.mark.parametrize(
    "query", ["fruit AND OR NOT (", '"quotes', "what's new?", "title:fruit^2 ~ * -pears", "Ümlaut"]
)
def test_operators_are_words(name: str, query: str, tmp_path: Path) -> None:
    assert build_engine(name, tmp_path).search(query, 5)


@pytest.mark.parametrize("name", [name for name in LOCAL if name != "dense"])
def test_a_query_without_words_is_rejected(name: str, tmp_path: Path) -> None:
    engine = build_engine(name, tmp_path)
    for query in ("", "  ", "?!"):
        with pytest.raises(QueryRefusedError):
            engine.search(query, 5)
    assert engine.search("zebra", 5) == []


def test_trigrams_find_parts_of_words(tmp_path: Path) -> None:
    for name in ("sqlite", "tantivy"):
        engine = build_engine(name, tmp_path / name, tokens="trigrams", stemmer="none")
        assert "b" in dict(engine.search("networ", 5))
    with pytest.raises(InputError, match="trigrams"):
        build_engine("sqlite", tmp_path / "both", tokens="trigrams", stemmer="english")


def test_title_weight_changes_scores(tmp_path: Path) -> None:
    documents = {"title": Text("fruit", "one two three"), "text": Text("one two three", "fruit")}
    for name in ("sqlite", "tantivy"):
        hits = build_engine(name, tmp_path / name, documents, title_weight=5.0).search("fruit", 2)
        assert hits[0][0] == "title"
        assert hits[0][1] > 1.5 * hits[1][1]


def test_vectors_of_any_function(tmp_path: Path) -> None:
    """Cosines by hand: (3, 4) and (4, 3) of length 5."""
    documents = {"x": Text("", "3 4"), "y": Text("", "4 3"), "zero": Text("", "0 0")}

    def embed(texts: list[str]) -> list[list[float]]:
        return [[float(part) for part in text.split()] for text in texts]

    engine = build_engine("dense", tmp_path, documents, embed=embed)
    assert [(doc, round(score, 4)) for doc, score in engine.search("3 4", 3)] == [
        ("x", 1.0),
        ("y", 0.96),
        ("zero", 0.0),
    ]
    with pytest.raises(QueryRefusedError):
        engine.search("0 0", 3)
    with pytest.raises(InputError, match="one row"):
        build_engine("dense", tmp_path / "wrong", documents, embed=lambda _: [[1.0]])


def search_function(query: str, k: int) -> Any:
    return {"a": 1.0, "b": 2.0} if query == "scores" else ["x", "y", "z"][:k]


def test_functions_return_lists_or_scores(tmp_path: Path) -> None:
    engine = build_engine("function", tmp_path, search=search_function)
    assert engine.search("scores", 1) == [("b", 2.0)]
    assert [doc for doc, _ in engine.search("ids", 2)] == ["x", "y"]
    assert parse_hits([("q", 3), ("r", 1)]) == [("q", 3.0), ("r", 1.0)]
    assert engine.size() is None
    for wrong in ("", "nowhere:nothing", "math:pi", "math"):
        with pytest.raises(InputError):
            build_engine("function", tmp_path, search=wrong)


class _OpenSearchStub(BaseHTTPRequestHandler):
    """The search endpoint of OpenSearch."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        query = body["query"]["multi_match"]["query"]
        hits = [{"_id": f"{query}-{rank}", "_score": 10.0 - rank} for rank in range(body["size"])]
        answer = {"hits": {"hits": hits}} if query != "odd" else {"took": 3}
        self.send_response({"bad": 400, "broken": 500}.get(query, 200))
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode() if query != "text" else b"no json")

    def log_message(self, *args: Any) -> None:
        """Write no log."""


@pytest.fixture
def address() -> Iterator[str]:
    stub = HTTPServer(("127.0.0.1", 0), _OpenSearchStub)
    thread = threading.Thread(target=stub.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{stub.server_port}/docs/_search"
    stub.shutdown()
    stub.server_close()
    thread.join()


OPENSEARCH = """
url = "ADDRESS"
hits = "hits.hits"
id = "_id"
score = "_score"
[body]
size = "{k}"
query = { multi_match = { query = "{query}", fields = ["title^2", "text"] } }
"""


def test_an_engine_over_http(address: str, tmp_path: Path) -> None:
    file = tmp_path / "opensearch.toml"
    file.write_text(OPENSEARCH.replace("ADDRESS", address))
    engine = build_engine("http", tmp_path, file=str(file))
    assert engine.search("fruit", 2) == [("fruit-0", 10.0), ("fruit-1", 9.0)]
    with pytest.raises(QueryRefusedError, match="400"):
        engine.search("bad", 2)
    for query, message in (("broken", "500"), ("text", "no valid response"), ("odd", "no list")):
        with pytest.raises(InputError, match=message):
            engine.search(query, 2)
    file.write_text(OPENSEARCH.replace("ADDRESS", "file:///etc/passwd"))
    with pytest.raises(InputError, match="must be an HTTP URL"):
        build_engine("http", tmp_path, file=str(file))
    file.write_text("url = 'http://localhost'\nwhat = 1")
    with pytest.raises(InputError, match=r"what; .*hits, id"):
        build_engine("http", tmp_path, file=str(file))


def test_an_unknown_engine_and_one_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="sqlite, bm25s"):
        find_engine("lucene")
    for name, library in (
        ("bm25s", "bm25s"),
        ("tantivy", "tantivy"),
        ("dense", "wordllama"),
        ("postgresql", "psycopg"),
    ):
        monkeypatch.setitem(__import__("sys").modules, library, None)
        with pytest.raises(MissingExtraError, match=r"judged\[engines\]"):
            build_engine(name, tmp_path / name)
    assert {"sqlite", "http", "function"} < set(ENGINES)


@needs_server
def test_postgresql_ranks_documents_and_drops_its_table(server: str, tmp_path: Path) -> None:
    engine = build_engine("postgresql", tmp_path, dsn=server)
    hits = engine.search("connected AND ' fruit", 5)
    assert {doc for doc, _ in hits} == {"a", "b", "c", "e"}
    assert engine.size() > 8000
    with pytest.raises(QueryRefusedError):
        engine.search("?", 5)
    plain = build_engine("postgresql", tmp_path, dsn=server, stemmer="none")
    assert dict(plain.search("connected", 5)).keys() == {"a"}
    plain.close()
    with psycopg.connect(server) as connection:
        direct = connection.execute(
            f"SELECT id, ts_rank(words, to_tsquery('english', 'connected | fruit'), 2) FROM {engine._table}"
            " WHERE words @@ to_tsquery('english', 'connected | fruit') ORDER BY 2 DESC, 1"
        ).fetchall()
    assert [doc for doc, _ in engine.search("connected fruit", 5)] == [doc for doc, _ in direct]
    engine.close()
    with psycopg.connect(server) as connection, pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute(f"SELECT * FROM {engine._table}")
    with pytest.raises(InputError, match="cannot connect to PostgreSQL"):
        build_engine("postgresql", tmp_path, dsn="host=/nowhere")


def read_collection(collection: str) -> tuple[dict[str, Text], Topics]:
    folder = SHARED / collection
    return dict(Texts.read(folder / "docs.jsonl.gz").documents), Topics.read(folder / "queries.tsv")


def search_all(engine: Any, topics: Topics, k: int = 100) -> dict[str, dict[str, float]]:
    rows = topics.table.to_pylist()
    return {row["query_id"]: dict(engine.search(row["text"], k)) for row in rows}


@needs_shared
@pytest.mark.oracle
@pytest.mark.parametrize("collection", ["cranfield", "cisi", "cacm"])
def test_rankings_agree_with_direct_calls_of_the_library(collection: str, tmp_path: Path) -> None:
    """The same index, built with the library, for the first 50 queries."""
    documents, topics = read_collection(collection)
    queries = topics.table["text"].to_pylist()[:50]
    texts = [
        text.text if text.text.startswith(text.title) else f"{text.title} {text.text}" for text in documents.values()
    ]
    ids = list(documents)
    stemmer = Stemmer.Stemmer("english")
    library = bm25s.BM25()
    library.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    adapter = build_engine("bm25s", tmp_path / "bm25s", documents)
    for query in queries:
        tokens = bm25s.tokenize(query, stopwords="en", stemmer=stemmer, show_progress=False)
        rows, scores = library.retrieve(tokens, k=20, show_progress=False, backend_selection="numpy")
        expected = [(ids[row], score) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]
        assert adapter.search(query, 20) == expected

    database = sqlite3.connect(":memory:")
    database.execute("create virtual table t using fts5(id unindexed, title, text, tokenize='porter unicode61')")
    database.executemany("insert into t values (?, ?, ?)", [(doc, *text) for doc, text in documents.items()])
    adapter = build_engine("sqlite", tmp_path / "sqlite", documents)
    for query in queries:
        words = " OR ".join(
            dict.fromkeys("".join(character if character.isalnum() else " " for character in query).split())
        )
        expected_rows = database.execute(
            "select id, -bm25(t) from t where t match ? order by bm25(t), id limit 20", (words,)
        )
        assert adapter.search(query, 20) == expected_rows.fetchall()

    schema = tantivy.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw")
    schema = schema.add_text_field("title", tokenizer_name="en_stem").add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(50_000_000, 1)
    for doc, (title, text) in documents.items():
        writer.add_document(tantivy.Document(id=doc, title=title, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    adapter = build_engine("tantivy", tmp_path / "tantivy", documents)
    for query in queries:
        parsed = index.parse_query(
            "".join(character if character.isalnum() else " " for character in query), ["title", "text"]
        )
        hits = searcher.search(parsed, 20).hits
        assert [score for _, score in adapter.search(query, 20)] == pytest.approx([score for score, _ in hits])


@needs_shared
@needs_server
@pytest.mark.oracle
@pytest.mark.parametrize("collection", ["cranfield", "cisi", "cacm"])
def test_rankings_agree_with_direct_queries_of_postgresql(collection: str, server: str, tmp_path: Path) -> None:
    """The same texts in a separate table; the server parses the query."""
    documents, topics = read_collection(collection)
    adapter = build_engine("postgresql", tmp_path, documents, dsn=server)
    statement = """
        SELECT id, ts_rank(words, asked, 2) FROM direct, (
            SELECT string_agg(quote_literal(word), ' | ')::tsquery AS asked
            FROM unnest(tsvector_to_array(to_tsvector('english', %s))) word
        ) query WHERE words @@ asked ORDER BY 2 DESC, id LIMIT 20"""
    with psycopg.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE direct (id text, words tsvector)")
        vector_expression = "to_tsvector('english', %s) || to_tsvector('english', %s)"
        rows = [(doc, title, text) for doc, (title, text) in documents.items()]
        cursor.executemany(f"INSERT INTO direct VALUES (%s, {vector_expression})", rows)
        for query in topics.table["text"].to_pylist()[:50]:
            expected = cursor.execute(statement, [" ".join(re.findall(r"\w+", query))]).fetchall()
            assert adapter.search(query, 20) == expected
    adapter.close()


@needs_shared
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "configuration", "ndcg", "recall"),
    [
        ("tantivy", {"stemmer": "none"}, 0.3309, 0.694),
        ("tantivy", {"stemmer": "english"}, 0.3554, 0.726),
        ("bm25s", {"stemmer": "none", "stop_words": "none"}, 0.3359, 0.700),
        ("bm25s", {}, 0.3650, 0.735),
        ("sqlite", {"stemmer": "none"}, 0.3299, 0.692),
        ("sqlite", {}, 0.3535, 0.723),
        ("sqlite", {"stemmer": "none", "tokens": "trigrams"}, 0.3253, 0.700),
        ("dense", {}, 0.3279, 0.697),
    ],
)
def test_scores_agree_with_earlier_measurements(
    name: str, configuration: dict[str, Any], ndcg: float, recall: float, tmp_path: Path
) -> None:
    """Measured elsewhere over text as one field with the title twice; here titles are a field or occur once."""
    documents, topics = read_collection("cranfield")
    qrels = Qrels.read(SHARED / "cranfield" / "qrels" / "cranfield.graded.qrels")
    engine = build_engine(name, tmp_path, documents, **configuration)
    scores = judged.evaluate(qrels, search_all(engine, topics), ["nDCG@10", "R@100"])
    means = np.nanmean(scores.values[0], axis=1)
    assert means[0] == pytest.approx(ndcg, abs=0.025)
    assert means[1] == pytest.approx(recall, abs=0.035)


def test_the_page_documents_all_settings() -> None:
    page = (Path(__file__).parents[3] / "docs" / "experiment-reference.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split(" | ")] for line in page.splitlines()]
    for engine in (*ENGINES, *OPERATORS):
        settings = {name: setting for name, setting in settings_of(engine).items() if name not in COMMON}
        documented = {row[1].strip("`"): row[2:4] for row in rows if row[0] == f"| `{engine}`" and len(row) == 5}
        expected = {
            name: [
                f"`{json.dumps(setting.default)}`",
                ", ".join(f"`{json.dumps(value)}`" for value in setting.values) or setting.allowed_values,
            ]
            for name, setting in settings.items()
        }
        assert documented == expected, engine
