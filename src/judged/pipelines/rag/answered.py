"""From the tables of answers to the pieces that measures read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.pipelines.rag.responses import SHARES, VITAL, verdict_shares
from judged.scoring.judging.answered import Answered, Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.pipelines.rag.responses import Responses
    from judged.results.types import Floats, Ints

    Key = tuple[Any, ...]


def answered_of(responses: Responses, run: str, qrels: Qrels | None = None) -> Answered:
    """Collect the pieces of what one system answered, over all topics of the tables.

    An answer that abstained, or that there is not, says no nugget and has no sentence to support. With an empty
    context nothing is grounded, whoever says otherwise. Support by documents that a sentence does not cite counts
    nowhere. Without qrels, documents that hold a nugget have grade 1.
    """
    own, topics = responses.of_run(run), responses.query_ids
    place = {topic: at for at, topic in enumerate(topics)}
    size = len(topics)
    answers = {row["query_id"]: row for row in own["answers"].to_pylist()}
    rows = [answers.get(topic, {}) for topic in topics]
    given = np.array([bool(row) for row in rows], dtype=np.bool_)
    abstained = _numbers(row.get("abstained") for row in rows)
    silent = ~given | (abstained == 1)
    references = responses["references"].to_pylist()
    said = {row["query_id"]: row["answerable"] for row in references if row["answerable"] is not None}
    answerable = _numbers(said.get(topic) for topic in topics)
    correct = verdict_shares(own["correctness"], "query_id")
    right = {row["query_id"] for row in references if row["text"] is not None}
    referenced = np.array([topic in right or (topic,) in correct for topic in topics], dtype=np.bool_)
    correctness = _looked_up(correct, range(size), [(topic,) for topic in topics])
    referenced &= ~(correctness.open & silent & (answerable == 0))

    nuggets = responses["nuggets"].sort_by([("query_id", "ascending"), ("nugget_id", "ascending")]).to_pylist()
    nugget_keys = [(row["query_id"], row["nugget_id"]) for row in nuggets]
    assigned = verdict_shares(own["assignments"], "query_id", "nugget_id")
    carried = _looked_up(assigned, [place[topic] for topic, _ in nugget_keys], nugget_keys)

    sentences = [
        key for key in own.keys("sentences", "query_id", "sentence") if not silent[place[key[0]]]
    ]  # what abstains claims nothing
    row_of = {key: at for at, key in enumerate(sentences)}
    support = verdict_shares(own["support"], "query_id", "sentence", "doc_id")
    grounded = _looked_up(support, [place[topic] for topic, _ in sentences], [(*key, "") for key in sentences])
    contexts = set(own["context"]["query_id"].to_pylist())
    empty = np.array([bool(contexts) and topic not in contexts for topic, _ in sentences], dtype=np.bool_)
    cited = [key for key in own.keys("citations", "query_id", "sentence", "place", "doc_id") if key[:2] in row_of]
    pairs = _looked_up(support, [place[key[0]] for key in cited], [(key[0], key[1], key[3]) for key in cited])

    documents, grades, ranks = _documents(own, responses, qrels)
    at = {key: number for number, key in enumerate(documents)}
    held = [
        (nugget, document)
        for nugget, document in (
            (key[:2], (key[0], key[2])) for key in responses.keys("evidence", "query_id", "nugget_id", "doc_id")
        )
        if document in at
    ]
    number_of = {key: number for number, key in enumerate(nugget_keys)}
    known = {(topic, document) for topic, _, _, document in cited}
    grade = np.array([grades.get(key, np.nan) for key in documents], dtype=np.float64)
    return Answered(
        query_ids=topics,
        name=run,
        given=given,
        abstained=abstained,
        answerable=answerable,
        words=_numbers(None if (text := row.get("text")) is None else len(text.split()) for row in rows),
        correctness=correctness.filled(correctness.open & silent, 0.0),
        referenced=referenced,
        nuggets=carried.filled(carried.open & silent[carried.topic], 0.0),
        vital=np.array([row["importance"] == VITAL for row in nuggets], dtype=np.bool_),
        grounded=grounded.filled(empty, 0.0),
        citations=pairs,
        sentence=_whole(row_of[key[:2]] for key in cited),
        place=_whole(_counted(key[:2] for key in cited)),
        document_topic=_whole(place[topic] for topic, _ in documents),
        grade=grade,
        known=~np.isnan(grade),
        rank=_whole(ranks.get(key, 0) for key in documents),
        cited=np.array([key in known for key in documents], dtype=np.bool_),
        evidence_nugget=_whole(number_of[nugget] for nugget, _ in held),
        evidence_document=_whole(at[document] for _, document in held),
        asked=asked(responses),
        highest=max([1.0, *grades.values()]),
        names={
            "answers": topics,
            "nuggets": [nugget for _, nugget in nugget_keys],
            "sentences": [str(sentence) for _, sentence in sentences],
            "citations": [f"{sentence}: {document}" for _, sentence, _, document in cited],
            "documents": [document for _, document in documents],
        },
    )


def asked(responses: Responses) -> frozenset[str]:
    """Tell of which pieces somebody was asked at all."""
    documents = set(responses["support"]["doc_id"].unique().to_pylist())
    found = {
        "nuggets": responses["assignments"].num_rows,
        "correctness": responses["correctness"].num_rows,
        "grounded": "" in documents,
        "citations": documents - {""},
    }
    return frozenset(name for name, there in found.items() if there)


def evidence_qrels(responses: Responses) -> Qrels | None:
    """Make judgments of the evidence: a document that holds a nugget has grade 1; None where there is no evidence."""
    grades: dict[str, dict[str, int]] = {}
    for topic, document in responses.keys("evidence", "query_id", "doc_id"):
        grades.setdefault(topic, {})[document] = 1
    return Qrels.of(grades, name="evidence") if grades else None


def _documents(
    own: Responses, responses: Responses, qrels: Qrels | None
) -> tuple[list[tuple[str, str]], dict[tuple[str, str], float], dict[tuple[str, str], int]]:
    """List the documents by topic, with their grades and their ranks in the context, where they have one."""
    judgments = evidence_qrels(responses) if qrels is None else qrels
    grades: dict[tuple[str, str], float] = {}
    if judgments is not None:
        wanted = pa.array(responses.query_ids, pa.string())
        table = judgments.table.filter(pc.is_in(judgments.table["query_id"], value_set=wanted))
        for topic, document, grade in zip(
            *(table[name].to_pylist() for name in ("query_id", "doc_id", "relevance")), strict=True
        ):
            grades[topic, document] = max(float(grade), grades.get((topic, document), -np.inf))
    shown = [(topic, document) for topic, _, document in own.keys("context", "query_id", "rank", "doc_id")]
    ranks = dict(zip(shown, _counted(topic for topic, _ in shown), strict=True))
    cited = {(topic, document) for topic, document in own.keys("citations", "query_id", "doc_id")}
    evidence = {(topic, document) for topic, document in responses.keys("evidence", "query_id", "doc_id")}
    return sorted({*grades, *ranks, *cited, *evidence}), grades, ranks


def _looked_up(verdicts: Mapping[Key, tuple[float, ...]], topic: Iterable[int], keys: Sequence[Key]) -> Verdicts:
    nothing = (np.nan,) * len(SHARES)
    shares = np.array([verdicts.get(key, nothing) for key in keys], dtype=np.float64).reshape(-1, len(SHARES))
    return Verdicts(_whole(topic), *shares.T)


def _counted(groups: Iterable[object]) -> list[int]:
    """Number what belongs to each group from 1, in its order.

    >>> _counted("aab")
    [1, 2, 1]
    """
    counts: Counter[object] = Counter()
    return [counts[group] for group in groups if not counts.update((group,))]


def _numbers(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _whole(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)
