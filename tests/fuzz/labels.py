"""Small files of labels in every layout, and their readers: into memory, into a store, as pairs, as a pool."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuzz import plain
from fuzz.originals import Original, tables
from fuzz.readers import Reader, WrongError
from judged.data import files
from judged.labels import Labels, LabelStore, import_labels, read_labels
from judged.labels.asking.client import Endpoint
from judged.labels.exchange import read_pairs, read_topics
from judged.labels.pooling import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

_TOPICS = {f"q{i}": f"red shoe {i}" for i in range(4)}


def label_readers(folder: Path) -> list[Reader]:
    """Return a reader for each way of reading labels."""
    del folder
    label_tables, plain_rows = tables(pa.Table.from_pylist(_rows())), tables(pa.Table.from_pylist(_short()))
    foreign = [Original(".csv", _book_table()), Original(".csv", _ratings()), Original(".json", _book()), *_lists()]
    trec = Original(
        ".txt", "".join(f"{row['query_id']} 0 {row['doc_id']} {row['grade']:g}\n" for row in _short()).encode()
    )
    text = [original for original in (*label_tables, *plain_rows) if original.ending in {".csv", ".tsv", ".jsonl"}]
    return [
        Reader("labels as text", _same_labels, text),
        Reader("labels", _read, [*label_tables, *plain_rows, *foreign, trec]),
        Reader("labels of topics", partial(_read, topics=_TOPICS), [*label_tables[6:], *foreign]),
        Reader("labels into a store", _imported, [*label_tables[6:], *foreign, trec]),
        Reader("pairs", _reader(read_pairs, _TOPICS), [*label_tables, trec, Original(".json", _review())]),
        Reader("topics of a list", _reader(read_topics, _TOPICS), [*label_tables, Original(".json", _review())]),
        Reader("pool", _pool, [Original(".csv", _pool_table())]),
        Reader("endpoint", Endpoint.read, [Original(".toml", _ENDPOINT)]),
    ]


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "query_id": f"q{index % 4}", "doc_id": f"d{index}", "judge": ("ann", "bob")[index % 2], "kind": "human",
            "repeat": index % 2, "grade": float(index % 4), "valid": index % 5 > 0, "note": "so, so",
            "seconds": 1.5 * index, "time": "2026-01-05T10:00:00Z", "prompt": "", "model": "m", "seed": index,
            "logprobs": '{"1": -0.5}',
        }
        for index in range(12)
    ]  # fmt: skip


def _short() -> list[dict[str, Any]]:
    names = ("query_id", "doc_id", "judge", "grade")
    return [{name: row[name] for name in names} for row in _rows()]


def _book_table() -> bytes:
    rows = "".join(f"{text},d{index},{index},{3 - index}\n" for index, text in enumerate(_TOPICS.values()))
    return f"query,docid,ann,bob\n{rows}".encode()


def _ratings() -> bytes:
    return (
        "query,docid,rating\n" + "".join(f"{text},d{index},{index}\n" for index, text in enumerate(_TOPICS.values()))
    ).encode()


def _book() -> bytes:
    judgments = [
        {"rating": 2, "user_email": "a@x", "explanation": "so"},
        {"rating": None, "unrateable": True},
        {"judge_later": True},
    ]
    pairs = [
        {"query_text": text, "doc_id": f"d{index}", "judgments": judgments}
        for index, text in enumerate(_TOPICS.values())
    ]
    return json.dumps({"name": "book", "query_doc_pairs": pairs}).encode()


def _lists() -> list[Original]:
    rated = [
        {"query": text, "ratings": [{"docId": f"d{index}", "rating": str(index)} for index in range(3)]}
        for text in _TOPICS.values()
    ]
    search_response = {"hits": {"hits": [{"_source": {"judgmentRatings": rated}}]}}
    return [
        Original(".json", json.dumps(document).encode())
        for document in (rated, {"judgmentRatings": rated}, search_response)
    ]


def _review() -> bytes:
    """Return JSON output of `judged review`."""
    rows = [{"query_id": f"q{index % 4}", "doc_id": f"d{index}", "weight": 0.5} for index in range(5)]
    return json.dumps({"title": "5 documents", "review": rows, "notes": []}).encode()


def _pool_table() -> bytes:
    rows = "".join(f"q{index % 3},d{index},1-10,0.5,{index + 1},3\n" for index in range(9))
    return f"query_id,doc_id,stratum,probability,best_rank,runs\n{rows}".encode()


_ENDPOINT = b"""
base_url = "http://127.0.0.1:9/v1"
model = "m"
retries = 0
timeout = 2.5
temperature = 0.0
workers = 2
price_in = 0.5
price_out = 1.5
without = ["seed"]
key_variable = "KEY"
[body]
top_p = 0.5
"""


def _read(path: Path, **options: Any) -> Labels:
    labels = read_labels(path, judge="ann", **options)
    repr(labels)
    len(labels.grades)
    labels.table.validate(full=True)
    return labels


def _same_labels(path: Path) -> None:
    """Read labels and compare the rows with those of a separate plain parser."""
    labels = _read(path)
    data = path.read_bytes()
    if files.compression(path) or data[:4] in {b"PAR1", b"ARRO"}:
        return
    columns = ("query_id", "doc_id", "judge", "grade")
    rows = list(zip(*(labels.table[name].to_pylist() for name in columns), strict=True))
    expected = list(plain.labels(data, "ann"))
    if expected and rows not in expected:
        raise WrongError(
            f"{len(rows)} rows, which are not those of the file: {rows[:2]} {[answer[:2] for answer in expected]}"
        )


def _imported(path: Path) -> None:
    with LabelStore.open("sqlite://", scale="0-3") as store:
        store.add_topics(_TOPICS)
        count = import_labels(store, path, judge="ann").labels
        if not 0 < len(store.labels().table) <= count:
            raise WrongError(f"{count} labels were imported, and {len(store.labels().table)} are there")


def _pool(path: Path) -> None:
    repr(Pool.read(path).sizes)


def _reader(read: Callable[..., Any], *arguments: Any) -> Callable[[Path], object]:
    return lambda path: read(path, *arguments)
