# Requirements: Python 3.11 or later only, no packages.
"""List the topic-document pairs of the sample collection that have no grade yet.

The pool of a topic is the first documents of every run. Pairs that qrels.txt
already grades are excluded, so after adding a ranker this shows exactly what
remains to be judged. A file can add further pairs, with lines
"query_id doc_id".

Usage: python tools/sample/make_pool.py [--data DIR] [--depth 10] [--extra FILE] [--ids]
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
DEFAULT_DATA = REPO / "src" / "judged" / "data" / "sample" / "pydocs"

Pool = dict[str, set[str]]


def pool_runs(folder: Path, depth: int) -> Pool:
    """Return the first documents of every run, by topic."""
    pool: Pool = defaultdict(set)
    for path in sorted(folder.glob("*.run.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                topic, _, doc_id, rank, _, _ = line.split()
                if int(rank) <= depth:
                    pool[topic].add(doc_id)
    return pool


def add_extra(pool: Pool, path: Path) -> None:
    """Add the pairs of a file to the pool."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            topic, doc_id = line.split()
            pool[topic].add(doc_id)


def drop_judged(pool: Pool, path: Path) -> None:
    """Remove the pairs that already have a grade."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        topic, _, doc_id, _ = line.split()
        pool[topic].discard(doc_id)


def read_docs(path: Path) -> dict[str, dict[str, str]]:
    """Return the documents by id."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {doc["doc_id"]: doc for doc in map(json.loads, lines)}


def print_pairs(pool: Pool, docs: dict[str, dict[str, str]], topics: dict[str, str], chars: int) -> None:
    """Print every pair with the start of its document."""
    for topic in sorted(pool):
        if pool[topic]:
            print(f"\n## {topic}: {topics[topic]}")
        for doc_id in sorted(pool[topic]):
            text = " ".join(docs[doc_id]["text"].split())[:chars]
            print(f"{doc_id} | {text}")


def main() -> None:
    """Print the pairs of the pool that have no judgment."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--extra", type=Path, help='file of lines "query_id doc_id"')
    parser.add_argument("--chars", type=int, default=200, help="characters of each text to print")
    parser.add_argument("--ids", action="store_true", help="print pairs without texts")
    args = parser.parse_args()
    pool = pool_runs(args.data / "runs", args.depth)
    if args.extra:
        add_extra(pool, args.extra)
    drop_judged(pool, args.data / "qrels.txt")
    if args.ids:
        for topic in sorted(pool):
            for doc_id in sorted(pool[topic]):
                print(topic, doc_id)
    else:
        lines = (args.data / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        topics = {topic["query_id"]: topic["text"] for topic in map(json.loads, lines)}
        print_pairs(pool, read_docs(args.data / "docs.jsonl.gz"), topics, args.chars)


if __name__ == "__main__":
    main()
