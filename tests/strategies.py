"""Generate small judgments and runs with problems that are common in practice.

They have many ties, ids that need byte order and look like numbers or quotes, topics that are missing from the run or
the judgments, negative or fractional grades, and many returned documents without a judgment.
"""

from __future__ import annotations

import math
import zlib
from typing import Any, TypeAlias

from hypothesis import strategies as st

Qrels: TypeAlias = dict[str, dict[str, float]]
Run: TypeAlias = dict[str, dict[str, float]]

TOPICS = ("10", "9", "a", "Z", "é", "007", "7", "日本", "x#1", '"q')
DOCS = (
    "Z",
    "a",
    "é",
    "doc10",
    "doc9",
    "007",
    "7",
    '"x',
    "e\u0301",
    "日本",
    "a,b",
    "#1",
    "\U0001d4b3",
    "\ufffd",
    "-5",
    "NA",
)
SCORES = (0.0, -0.0, 1.0, 0.5, -3.25, 1e-300, math.inf, -math.inf, 2.0, 0.1, 0.1 + 2**-56)
GRADES = (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 1.5)
BINARY = (0.0, 1.0)

topics = st.sampled_from(TOPICS)
docs = st.sampled_from(DOCS)
scores = st.sampled_from(SCORES)
grades = st.sampled_from(GRADES)


@st.composite
def collections(
    draw: st.DrawFn, *, grade: st.SearchStrategy[float] = grades, score: st.SearchStrategy[float] = scores
) -> tuple[Qrels, Run]:
    """Judgments with at least one pair, and a run that has at least one topic in common with them."""
    qrels = draw(st.dictionaries(topics, st.dictionaries(docs, grade, min_size=1, max_size=9), min_size=1, max_size=5))
    common = draw(st.sets(st.sampled_from(sorted(qrels)), min_size=1))
    extra = draw(st.sets(topics, max_size=2)) - set(qrels)
    run = {topic: draw(st.dictionaries(docs, score, max_size=len(DOCS))) for topic in sorted(common | extra)}
    return qrels, {topic: run[topic] for topic in draw(st.permutations(sorted(run)))}


def untied() -> st.SearchStrategy[tuple[Qrels, Run]]:
    """Return a strategy for collections without equal scores within a topic."""
    return collections().map(lambda pair: (pair[0], {topic: without_ties(docs) for topic, docs in pair[1].items()}))


def without_ties(ranking: dict[str, float]) -> dict[str, float]:
    """Return distinct scores in the order of the ranking."""
    return {doc: float(-i) for i, doc in enumerate(ranked(ranking))}


def ranked(ranking: dict[str, float]) -> list[str]:
    """Rank the documents of a topic by decreasing score, then by decreasing bytes of the id."""
    return sorted(sorted(ranking, key=str.encode, reverse=True), key=lambda doc: -ranking[doc])


def with_integers(mapping: dict[str, dict[str, float]]) -> dict[str | int, dict[str | int, float]]:
    """Replace each id that is the text of an integer by the integer."""
    return {_id(topic): {_id(doc): value for doc, value in docs.items()} for topic, docs in mapping.items()}


def _id(text: str) -> str | int:
    return int(text) if text.removeprefix("-").isdecimal() and str(int(text)) == text else text


def rows_of(run: Run) -> list[tuple[str, str, float]]:
    """Return the rows of a run."""
    return [(topic, doc, score) for topic, docs in run.items() for doc, score in docs.items()]


def facts(*sides: Any) -> dict[str, dict[str, Any]]:
    """Return length, cost, and group of each document of judgments and runs, and of some others, by its id."""
    topics = [topic for side in sides if isinstance(side, dict) for topic in side.values()]
    documents = {str(doc) for topic in topics for doc in topic}
    listed = {f"{kind}{i}" for kind in "dm" for i in range(10)}  # as judge_list calls them
    return {
        doc: {
            "length": 50.0 + zlib.crc32(doc.encode()) % 400,
            "cost": 1.0 + len(doc),
            "group": "abc"[zlib.crc32(doc.encode()) // 3 % 3],
        }
        for doc in sorted({*documents, *listed, *DOCS, "missing", "new0", "new1", "new2", "new3"})
    }
