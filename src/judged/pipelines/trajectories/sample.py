"""Trajectories of the sample: three agents that are programs, without a language model, search its documents."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from judged.data import sample
from judged.data.texts import document_rows
from judged.pipelines.experiments.engines.databases import SqliteFts5
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.results.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from judged.data.texts import Text


class _Agent(NamedTuple):
    """Rules of an agent."""

    searches: int  # most searches of a trial
    enough: float  # share of the words of the question in an opened document at which the agent stops
    repeats: float  # probability that the next query is an earlier one


_AGENTS = {"single": _Agent(1, 1.0, 0.0), "rewriter": _Agent(5, 0.75, 0.0), "persistent": _Agent(8, 1.0, 0.5)}
_CHAT = "rewriter"  # agent with a chat log
_TRIALS = 3
_RESULTS = 5  # documents of each search
_RELEVANT = 2  # grade of a right answer


class _Corpus(NamedTuple):
    """Documents of the sample, and cached functions of them."""

    documents: Mapping[str, Text]
    search: Callable[[str], list[str]]  # the best documents for a query
    stems: Callable[[str], frozenset[str]]  # of a document


def _words(text: str) -> list[str]:
    """Return the different words of at least four letters: the agents know no other stop words."""
    return list(dict.fromkeys(re.findall("[a-z]{4,}", text.lower())))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:4] for word in _words(text))


def _trial(agent: _Agent, question: str, corpus: _Corpus, random: Random) -> dict[str, Any]:
    """Search, open one or two new documents of each list, rewrite the query, and answer from a best document."""
    words, query, queries = _words(question), question, list[str]()
    stems = _stems(question)
    steps: list[dict[str, Any]] = []
    shares: dict[str, float] = {}  # of the words of the question, by opened document
    best, tokens = 0.0, 0
    while len(queries) < agent.searches and best < agent.enough:
        documents = corpus.search(query)
        queries.append(query)
        steps.append({"kind": "search", "tool": "search", "query": query, "documents": documents})
        tokens += sum(len(corpus.documents[doc_id].title.split()) for doc_id in documents)
        for doc_id in [doc_id for doc_id in documents if doc_id not in shares][: random.randint(1, 2)]:
            steps.append({"kind": "open", "tool": "open", "documents": [doc_id]})
            tokens += len(corpus.documents[doc_id].text.split())
            shares[doc_id] = len(stems & corpus.stems(doc_id)) / len(stems)
        best = max(shares.values(), default=0.0)
        if random.random() < agent.repeats:
            query = random.choice(queries)
        else:  # drop one or two words, and add a word of an opened document
            kept_words = random.sample(words, max(1, len(words) - random.randint(1, 2)))
            read = [word for doc_id in shares for word in _words(corpus.documents[doc_id].text)]
            query = " ".join([*kept_words, *random.sample(read, min(1, len(read)))])
    cited = [doc_id for doc_id, share in shares.items() if share == best]
    random.shuffle(cited)  # the answer is the first of equally good documents
    answer = corpus.documents[cited[0]].title.partition("(")[0] if cited else None  # without the signature
    facts = {"question": question, "answer": answer, "citations": cited, "confidence": round(best, 2)}
    return facts | {"tokens": tokens, "steps": [*steps, {"kind": "answer"}]}


@cache
def _records() -> tuple[tuple[dict[str, Any], ...], Mapping[str, Text]]:
    """Run the agents; return their trials, and the documents."""
    topics, rows = sample.topics(), sample.qrels().table.to_pylist()
    right = {(row["query_id"], row["doc_id"]) for row in rows if row["relevance"] >= _RELEVANT}
    documents = dict(document_rows(sample.FOLDER / "docs.jsonl.gz"))
    engine, records = SqliteFts5(), list[dict[str, Any]]()
    corpus = _Corpus(
        documents,
        search=cache(lambda query: [doc_id for doc_id, _ in engine.search(query, _RESULTS)]),
        stems=cache(lambda doc_id: _stems(" ".join(documents[doc_id]))),
    )
    with TemporaryDirectory() as folder:
        engine.build(documents, {name: setting.default for name, setting in engine.settings.items()}, Path(folder))
        for (run_id, agent), query_id, trial in product(_AGENTS.items(), sample.qrels().topics, range(1, _TRIALS + 1)):
            random = Random(f"{query_id} {trial}")  # noqa: S311  a reproducible sample, not a secret
            facts = _trial(agent, topics.text(query_id), corpus, random)
            is_right = any((query_id, doc_id) in right for doc_id in facts["citations"][:1])
            ids = {"query_id": query_id, "run_id": run_id, "trial": trial}
            records.append({**ids, **facts, "correct": is_right})
        engine.close()
    return tuple(records), documents


def sample_trajectories() -> Trajectories:
    """Return 3 trials of 3 agents for each topic of the sample.

    >>> sample_trajectories()
    Trajectories('pydocs': 432 trials of 48 questions; single, rewriter, persistent)
    """
    return Trajectories.of(_records()[0], name="pydocs")


def write_sample_trajectories(path: Path) -> None:
    """Write the trials of the sample, one for each line."""
    _write(path, _records()[0])


def write_sample_chat(path: Path) -> None:
    """Write the trials of one agent as a chat log with tool calls, as of OpenAI, with a verdict for each trial."""
    records, documents = _records()
    _write(path, [_chat(record, documents) for record in records if record["run_id"] == _CHAT])


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _chat(record: Mapping[str, Any], documents: Mapping[str, Text]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": record["question"]}]
    for number, step in enumerate(record["steps"][:-1], 1):
        doc_ids: Sequence[str] = step["documents"]
        if step["kind"] == "search":
            arguments = {"query": step["query"]}
            content = json.dumps([{"docid": doc_id, "title": documents[doc_id].title} for doc_id in doc_ids])
        else:
            arguments, content = {"docid": doc_ids[0]}, documents[doc_ids[0]].text
        function = {"name": step["tool"], "arguments": json.dumps(arguments)}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": content},
        ]
    answer = f"{record['answer']} [{', '.join(record['citations'])}]\nConfidence: {record['confidence']:.0%}"
    messages.append({"role": "assistant", "content": answer})
    usage = {"total_tokens": record["tokens"]}
    return {"model": record["run_id"], "messages": messages, "usage": usage, "correct": record["correct"]}
