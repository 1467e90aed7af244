"""A small experiment and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCUMENTS = {
    "d1": "apples and pears are fruit",
    "d2": "connected networks and connections",
    "d3": "pears only",
    "d4": "a network of networks",
    "d5": "fruit of the tree",
}
QUERIES = {"q1": "connection", "q2": "pear fruit", "q3": "networking", "q4": "?"}
QRELS = "q1 0 d2 1\nq2 0 d3 2\nq2 0 d1 1\nq3 0 d4 1\nq4 0 d5 1\n"


def write(folder: Path) -> dict[str, Any]:
    """Write documents, queries, and judgments; return a plan that uses them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"doc_id": doc, "text": text}) for doc, text in DOCUMENTS.items()]
    (folder / "docs.jsonl").write_text("\n".join(lines))
    (folder / "queries.jsonl").write_text(
        "\n".join(json.dumps({"query_id": query, "text": text}) for query, text in QUERIES.items())
    )
    (folder / "qrels.txt").write_text(QRELS)
    return {
        "documents": str(folder / "docs.jsonl"),
        "queries": str(folder / "queries.jsonl"),
        "qrels": str(folder / "qrels.txt"),
        "measures": ["nDCG@10", "RR"],
        "rounds": 2,
        "warm_up": 1,
        "control": {"engine": "sqlite", "stemmer": "none"},
    }


HEAD = """\
documents = "docs.jsonl"
queries = "queries.jsonl"
qrels = "qrels.txt"
measures = ["nDCG@10", "RR"]
rounds = 2
warm_up = 1
"""


def plan_file(folder: Path, text: str) -> Path:
    """Write the files and a plan; return the path of the plan."""
    write(folder)
    path = folder / "plan.toml"
    path.write_text(HEAD + text)
    return path
