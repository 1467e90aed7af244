"""A small study for tests: two systems, four topics and one for practice, questionnaires of every kind."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from judged.studies.assignment import assignments
from judged.studies.design import Design, read_design
from judged.studies.storage import StudyStore

HOSTILE = "<img src=x onerror=alert(1)>"
DOCS = [f"d{i:02}" for i in range(24)]
TOPICS = ("q1", "q2", "q3", "q4")
DESIGN = """
[study]
title = "Two ways of searching"
consent = "We keep what you do here.\\n\\nYou may stop at any time."
instruction = "You will search for four topics."
thanks = "Thank you."
[topics]
file = "queries.jsonl"
use = ["q1", "q2", "q3", "q4"]
practice = ["q0"]
preference = ["q1"]
save = 2
[[system]]
name = "alpha"
run = "alpha.run"
texts = "docs.jsonl"
[[system]]
name = "beta"
run = "beta.run"
texts = "docs.jsonl"
[[questionnaire]]
of = "satisfaction"
[[questionnaire]]
of = "tlx"
after = "end"
[[questionnaire]]
of = "umux-lite"
[[questionnaire]]
of = "custom"
name = "own"
after = "end"
[[questionnaire.item]]
name = "clear"
text = "Was it clear?"
scale = [0, 1]
words = ["No", "Yes"]
[[questionnaire.item]]
name = "what"
text = "What was it about?"
open = true
"""


def design_in(folder: Path, text: str = DESIGN) -> Design:
    """Write a design and its files into a folder, and read it."""
    text_of = "Faust, a play. " + "It was written by hand, and nobody knows when. " * 8 + f"{HOSTILE} & Fausts."
    docs = [{"doc_id": doc, "title": f"Number {i}", "text": text_of} for i, doc in enumerate(DOCS)]
    queries = [{"query_id": topic, "text": f"who wrote Faust, part {topic[1:]}"} for topic in ("q0", *TOPICS)]
    for name, rows in (("docs", docs), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, step in (("alpha", 1), ("beta", -1)):
        lines = [f"{topic} Q0 {doc} 0 {step * i} {name}" for topic in ("q0", *TOPICS) for i, doc in enumerate(DOCS)]
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    (folder / "study.toml").write_text(text)
    return read_design(folder / "study.toml")


def store_of(design: Design, where: Any, count: int = 12) -> StudyStore:
    """Create the store of a study with this number of participants: p1, p2, ..."""
    store = StudyStore.open(where, hashed(design), new=True)
    store.enroll(assignments(design, {f"p{i}": "" for i in range(1, count + 1)}).to_pylist())
    return store


def hashed(design: Design) -> str:
    """Return the hash that identifies the design of a store."""
    return sha256(Path(design.path).read_bytes()).hexdigest()
