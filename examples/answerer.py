"""Answer questions by quoting the passages that a search returned, with citations.

    python examples/answerer.py FOLDER     # answers the sample's topics; FOLDER gets answers.jsonl and other tables

Two generators, `lead` and `overlap`, have the interface `generate(query, passages)`. They return the sentences of an
answer, in which [2] cites the second passage, or no sentences. They name the function that a passage documents, quote
the passage, and abstain if no passage covers 30% of the query. `lead` quotes the first sentences of the first three
passages. `overlap` selects the sentence of each passage that is closest to the query, and quotes the best three.
answerer.toml compares both with two searches.
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

CONTEXT, SENTENCES, MIN_SHARE = 5, 3, 0.3
STOP = re.compile(
    r"""a|all|an|and|are|as|by|did|do|each|for|from|goes|has|have|how|i|if|in|into|is|it|its|like|may|me|my|not|of|on
    |one|or|that|the|this|to|was|what|when|where|which|will|with|would|you""",
    re.VERBOSE,
)


def lead(query: str, passages: list[Passage]) -> list[str]:
    """Quote the first sentence of each of the first passages."""
    first_sentences = [(rank, sentences(passage.text)[:1]) for rank, passage in enumerate(passages[:SENTENCES], 1)]
    return [
        cite_sentence(query, passages, rank, passage_sentences[0])
        for rank, passage_sentences in first_sentences
        if passage_sentences and has_relevant_passage(query, passages)
    ]


def overlap(query: str, passages: list[Passage]) -> list[str]:
    """Quote the sentence of each passage that is closest to the query, for the best passages."""
    best: dict[int, tuple[float, str]] = {}
    for rank, passage in enumerate(passages, 1):
        scored = [
            (query_overlap(query, f"{passage.title} {sentence}"), sentence) for sentence in sentences(passage.text)
        ]
        best |= {rank: max(scored, key=lambda pair: pair[0])} if scored else {}
    best_ranks = sorted(best, key=lambda rank: -best[rank][0])[:SENTENCES]
    return [
        cite_sentence(query, passages, rank, best[rank][1])
        for rank in sorted(best_ranks)
        if has_relevant_passage(query, passages)
    ]


def has_relevant_passage(query: str, passages: list[Passage]) -> bool:
    """Return whether any passage covers enough of the query."""
    return (
        max((query_overlap(query, f"{passage.title} {passage.text}") for passage in passages), default=0.0) >= MIN_SHARE
    )


def cite_sentence(query: str, passages: list[Passage], rank: int, sentence: str) -> str:
    """Return a sentence of an answer that can be judged alone, because it repeats the query."""
    return f'For "{query}" use {passages[rank - 1].doc_id}: {sentence} [{rank}]'


def sentences(text: str) -> list[str]:
    """Split a docstring into sentences, without its examples."""
    prose = re.split(r"\n\s*\n|\n(?=\s*[-*])", re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", text))
    parts = [part for block in prose for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`*])", " ".join(block.split()))]
    return [part for part in parts if len(words(part)) > 2]


def query_overlap(query: str, text: str) -> float:
    """Return the share of the query's words in a text, weighted by inverse document frequency; from 0 to 1."""
    query_words, text_words = words(query), words(text)
    weight = {
        word: math.log((1 + len(corpus())) / (1 + sum(word in document_words for document_words in corpus())))
        for word in query_words
    }
    return math.fsum(weight[word] for word in query_words & text_words) / (math.fsum(weight.values()) or 1.0)


@cache
def words(text: str) -> frozenset[str]:
    """Return the words of a text, truncated to five letters as a simple form of stemming."""
    tokens = (word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text))
    return frozenset(word[:5] for word in tokens if len(word) > 1 and not STOP.fullmatch(word))


@cache
def corpus() -> list[frozenset[str]]:
    """Return the words of all documents."""
    documents = Texts.read(sample.FOLDER / "docs.jsonl.gz").documents
    return [words(f"{document.title} {document.text}") for document in documents.values()]


def main(folder: str) -> None:
    """Answer the sample's topics that have nuggets, from the first documents of its run `rrf`."""
    with (sample.RESPONSES / "nuggets.jsonl").open(encoding="utf-8") as lines:
        topics = sorted({json.loads(line)["query_id"] for line in lines})
    texts = Texts.read(sample.FOLDER / "docs.jsonl.gz").documents
    run = next(run for run in sample.runs() if run.name == "rrf")
    generated = respond({"lead": lead, "overlap": overlap}, sample.topics(), run, texts, topics=topics, cutoff=CONTEXT)
    write_responses(generated.responses, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
