"""Intact files to damage: the sample in every format, files that people write, and some of ``../shared/data``."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from judged import evaluate
from judged.data import sample
from shared_data import SHARED

if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTES = 24_000  # of an original: damage is as bad in a small file, and a case is faster


class Original(NamedTuple):
    """An intact file: the ending of its name, and its bytes."""

    ending: str
    data: bytes


def _text(path: Path) -> bytes:
    """Return whole lines from the beginning of a file."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return data if len(data) <= _BYTES or path.suffix == ".json" else data[: data.rfind(b"\n", 0, _BYTES) + 1]


def _shared(pattern: str, limit: int = 6) -> list[Original]:
    paths = sorted(SHARED.glob(pattern))[:limit] if SHARED.is_dir() else []
    return [Original("".join(path.suffixes[-1:]).replace(".gz", ".txt"), _text(path)) for path in paths]


def tables(table: pa.Table) -> list[Original]:
    """Return a table in every table format."""
    dictionaries = pa.table({
        name: column.dictionary_encode() if pa.types.is_string(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    })  # fmt: skip
    originals: list[Original] = []
    for compression in ("none", "zstd", "snappy"):
        parquet.write_table(table, sink := io.BytesIO(), compression=compression)
        originals.append(Original(".parquet", sink.getvalue()))
    for variant, compression in ((table, None), (table, "lz4"), (dictionaries, "zstd"), (dictionaries, None)):
        sink = io.BytesIO()
        with ipc.new_file(sink, variant.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(variant)
        originals.append(Original(".arrow", sink.getvalue()))
    csv.write_csv(table, sink := io.BytesIO())
    originals.append(Original(".csv", sink.getvalue()))
    rows = table.to_pylist()
    lines = [table.column_names, *(["" if cell is None else str(cell) for cell in row.values()] for row in rows)]
    originals.append(Original(".tsv", "\n".join(map("\t".join, lines)).encode()))
    originals.append(Original(".json", json.dumps(rows).encode()))
    originals.append(Original(".jsonl", "\n".join(map(json.dumps, rows)).encode()))
    return originals


def _nested(rows: Iterable[dict[str, Any]], value: str) -> Original:
    values_by_query: dict[str, dict[str, float]] = {}
    for row in rows:
        values_by_query.setdefault(row["query_id"], {})[row["doc_id"]] = row[value]
    return Original(".json", json.dumps(values_by_query).encode())


def trec_qrels() -> list[Original]:
    """Return judgments in TREC format."""
    return [
        Original(".txt", _text(sample.FOLDER / "qrels.txt")),
        *_shared("*/qrels/*.qrels"),
        *_shared("small_qrels/qrels/*.txt", 20),
    ]


def qrels() -> list[Original]:
    """Return judgments in the other formats."""
    table = sample.qrels().table.slice(0, 200)
    return [*tables(table), _nested(table.to_pylist(), "relevance")]


def preferences() -> list[Original]:
    """Return preference judgments of pairs of documents."""
    lines = b"".join(
        b"q%d u%d 0 d%d %d\n" % (line_number % 3, line_number % 2, line_number, line_number % 5)
        for line_number in range(60)
    )
    return [Original(".txt", lines), *qrels()[:6]]


def trec_runs() -> list[Original]:
    """Return runs in TREC format."""
    sample_runs = [Original(".run", _text(path)) for path in sorted((sample.FOLDER / "runs").glob("*.run.gz"))[:4]]
    return [*sample_runs, *_shared("*/runs*/*.run.gz", 12)]


def runs() -> list[Original]:
    """Return runs in the other formats."""
    table = sample.runs()[0].table.slice(0, 200)
    return [*tables(table), _nested(table.to_pylist(), "score")]


def topics() -> list[Original]:
    """Return texts of topics in every format."""
    top = b"<top>\n<num> Number: %d\n<title> crime when x < 5\n<desc> Description:\nWhat?\n</top>\n"
    trec = b"".join(top % number for number in range(301, 306))
    xml = (
        b"<topics><topic number='1'><query>a &amp; b</query></topic><topic number='2'><query>c</query></topic></topics>"
    )
    small_files = [
        Original(".jsonl", _text(sample.FOLDER / "queries.jsonl")),
        Original(".txt", trec),
        Original(".xml", xml),
    ]
    return [*small_files, *_shared("*/queries.tsv", 2), *_shared("*/topics/*.*", 12), *tables(facts("query_id"))]


def facts(id_name: str) -> pa.Table:
    """Return attributes of several types by id."""
    count = 30
    return pa.table({
        id_name: [f"t{row:02}" for row in range(count)],
        "text": [f"how to sort a list {row}" for row in range(count)],
        "class": [("howto", "fact", None)[row % 3] for row in range(count)],
        "length": [row * 1.5 for row in range(count)],
        "fresh": [row % 2 == 0 for row in range(count)],
        "date": [f"2024-01-{row + 1:02}" for row in range(count)],
    })  # fmt: skip


def documents() -> list[Original]:
    """Return texts of documents."""
    doc = b"<DOC>\n<DOCNO> d%d </DOCNO>\n<HEADLINE>Tax &amp; law</HEADLINE>\n<TEXT>\n<P>if x < 5\n</TEXT>\n</DOC>\n"
    trec = Original(".trec", b"".join(doc % number for number in range(9)))
    return [Original(".jsonl", _text(sample.FOLDER / "docs.jsonl.gz")), trec, *tables(facts("doc_id"))]


def costs() -> list[Original]:
    """Return costs by run."""
    originals = tables(
        pa.table({"run": ["bm25", "rrf", "tfidf"], "latency_ms": [12.5, 30.0, 11.0], "memory_gb": [1, None, 2]})
    )
    return [*originals, Original(".json", b'{"bm25": {"latency_ms": 12.5}, "rrf": {"latency_ms": 30}}')]


def reviews() -> list[Original]:
    """Return lists of documents that somebody reviewed."""
    table = sample.qrels().table.slice(0, 20).select(["query_id", "doc_id", "relevance"])
    return tables(table.append_column("new_grade", pa.array([str(row % 4) for row in range(20)])))


def gates() -> list[Original]:
    """Return gate configurations."""
    text = """# what may ship
attributes = "topics.csv"

[gate]
alpha = 0.05
strict = false
test = "randomization"
resamples = 2000

[[check]]
measure = "nDCG@10"
margin = 0.01

[[check]]
measure = "R@100"
margin_relative = 0.02
slice = "long queries"

[[guardrail]]
measure = "Judged@10"
at_least = 0.9

[[guardrail]]
table = "latency.csv"
column = "ms"
at_most_ratio = 1.1
quantile = 0.95

[[guardrail]]
missing_topics = 0

[[slice]]
name = "long queries"
expression = "words > 4 and `class` in ('howto', 'fact')"
min_topics = 10
"""
    return [Original(".toml", text.encode())]


def slices() -> list[Original]:
    """Return slices of topics."""
    expressions = (
        "words > 4",
        "`class` == 'howto' or not fresh",
        "1.5 <= length < 9",
        "missing(`class`)",
        "contains(text, 'how')",
    )
    text = "".join(
        f'[[slice]]\nname = "s{number}"\nexpression = "{expression}"\nmin_topics = {number + 2}\nowner = "me"\n\n'
        for number, expression in enumerate(expressions)
    )
    return [Original(".toml", text.encode())]


def scores(folder: Path) -> list[Original]:
    """Return saved scores, with ranges and without."""
    sample_runs = sample.runs()[:2]
    table = sample.qrels().over(set(sample.qrels().topics[:6]))
    originals: list[Original] = []
    for options in ({}, {"unjudged": True}):
        path = folder / "scores.parquet"
        evaluate(table, sample_runs, ["nDCG@10", "P@5", "AP"], **options).save(path)
        originals.append(Original(".parquet", path.read_bytes()))
    return originals
