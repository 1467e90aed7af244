"""Two extractive answerers, of a few lines: they quote the passages that a search gave them, and say which.

    python examples/answerer.py FOLDER     # answers the sample's topics; FOLDER gets answers.jsonl and other tables

Both are `generate(query, passages)`, which is what judged asks of a generator: it gives the sentences of an answer,
where [2] cites the second passage, or nothing where it does not know. Both name the function that a passage is about,
quote what stands there, and abstain where no passage has three tenths of what the query asks for. They differ in what
they quote: `lead` the first sentences of the first three passages, `overlap` of every passage the sentence that shares
most with the query, and the three best of these. answerer.toml tries both behind two searches.
"""

from __future__ import annotations

import json
import math
import re
import sys
from functools import cache

from judged.data import sample
from judged.data.texts import Texts
from judged.pipelines.rag.generation import Passage, respond
from judged.pipelines.rag.responses import write_responses

CONTEXT, SENTENCES, ENOUGH = 5, 3, 0.3
STOP = re.compile(
    r"""a|all|an|and|are|as|by|did|do|each|for|from|goes|has|have|how|i|if|in|into|is|it|its|like|may|me|my|not|of|on
    |one|or|that|the|this|to|was|what|when|where|which|will|with|would|you""",
    re.VERBOSE,
)


def lead(query: str, passages: list[Passage]) -> list[str]:
    """Quote the first sentence of each of the first passages."""
    firsts = [(place, sentences(passage.text)[:1]) for place, passage in enumerate(passages[:SENTENCES], 1)]
    return [said(query, passages, place, first[0]) for place, first in firsts if first and known(query, passages)]


def overlap(query: str, passages: list[Passage]) -> list[str]:
    """Quote the best sentence of each passage, of the passages whose best is closest to the query."""
    best: dict[int, tuple[float, str]] = {}
    for place, passage in enumerate(passages, 1):
        scored = [(shared(query, f"{passage.title} {one}"), one) for one in sentences(passage.text)]
        best |= {place: max(scored, key=lambda one: one[0])} if scored else {}
    chosen = sorted(best, key=lambda place: -best[place][0])[:SENTENCES]
    return [said(query, passages, place, best[place][1]) for place in sorted(chosen) if known(query, passages)]


def known(query: str, passages: list[Passage]) -> bool:
    """Say whether some passage has enough of what the query asks for."""
    return max((shared(query, f"{one.title} {one.text}") for one in passages), default=0.0) >= ENOUGH


def said(query: str, passages: list[Passage], place: int, sentence: str) -> str:
    """Write one sentence of an answer, which can be judged alone: it says what the function is for."""
    return f'For "{query}" use {passages[place - 1].doc_id}: {sentence} [{place}]'


def sentences(text: str) -> list[str]:
    """Split a docstring, without its examples."""
    prose = re.split(r"\n\s*\n|\n(?=\s*[-*])", re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", text))
    parts = [part for block in prose for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`*])", " ".join(block.split()))]
    return [part for part in parts if len(words(part)) > 2]


def shared(query: str, text: str) -> float:
    """Give which share of the query's words a text has, rare words counting more; from 0 to 1."""
    asked, there = words(query), words(text)
    weight = {word: math.log((1 + len(corpus())) / (1 + sum(word in one for one in corpus()))) for word in asked}
    return math.fsum(weight[word] for word in asked & there) / (math.fsum(weight.values()) or 1.0)


@cache
def words(text: str) -> frozenset[str]:
    """Give the words of a text by their first five letters, a poor man's stems."""
    found = (word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text))
    return frozenset(word[:5] for word in found if len(word) > 1 and not STOP.fullmatch(word))


@cache
def corpus() -> list[frozenset[str]]:
    """Give the words of every document."""
    documents = Texts.read(sample.FOLDER / "docs.jsonl.gz").documents
    return [words(f"{one.title} {one.text}") for one in documents.values()]


def main(folder: str) -> None:
    """Answer those of the sample's topics that have nuggets, from the first documents of its run `rrf`."""
    with (sample.RESPONSES / "nuggets.jsonl").open(encoding="utf-8") as lines:
        topics = sorted({json.loads(line)["query_id"] for line in lines})
    texts = Texts.read(sample.FOLDER / "docs.jsonl.gz").documents
    run = next(run for run in sample.runs() if run.name == "rrf")
    made = respond({"lead": lead, "overlap": overlap}, sample.topics(), run, texts, topics=topics, cutoff=CONTEXT)
    write_responses(made.responses, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
