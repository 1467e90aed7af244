"""Kinds of content gaps: 30 planted entities, an independent classification, and the layouts of documents."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.pipelines.traces import Entities, Span, Traces, gaps, traces_of_runs
from judged.pipelines.traces.content_gaps import KINDS, NO_DOCUMENT, NO_GAP, NOT_FOUND, NOT_JUDGED, NOT_RELEVANT
from judged.pipelines.traces.entities import entities_of_documents

K = 3
STATES = (*KINDS, NO_GAP)


def planted() -> dict[str, Any]:
    """Plant 30 entities, six of each state, with one to three queries of known traffic each."""
    data: dict[str, Any] = {"state": {}, "qrels": {}, "run": {}, "queries": {}, "attributes": {}, "documents": []}
    for number in range(30):
        name, state = f"entity{number:02}", STATES[number % 5]
        data["state"][name] = state
        documents = [f"{name}-{i}" for i in range(2)] if state != NO_DOCUMENT else []
        data["documents"] += [{"doc_id": doc, "title": f"About the {name.upper()}, part"} for doc in documents]
        for i in range(1 + number % 3):
            query, fillers = f"{name}-q{i}", [f"filler{j}" for j in range(3)]
            data["queries"][query] = f"buy {name} {i}"
            data["attributes"][query] = {"traffic": 1 + 7 * number % 31 + i}
            # A document below rank K is not found, whether it is relevant or not.
            is_deep = state == NOT_FOUND
            data["run"][query] = [*fillers, *documents] if is_deep else [fillers[0], *documents, *fillers[1:]]
            grades = {"filler0": 0} | ({documents[0]: 1} if is_deep else {})
            if state == NOT_RELEVANT:
                grades |= dict.fromkeys(documents, 0)
            if state == NO_GAP:
                grades[documents[0]] = 2
            data["qrels"][query] = grades if state != NOT_JUDGED or i else {"filler9": 1}
    data["documents"] += [{"doc_id": f"filler{i}", "title": "Something else"} for i in range(9)]
    data["entities"] = [{"entity": name} for name in data["state"]]
    return data


def test_planted_gaps_of_30_entities(tmp_path: Path) -> None:
    data = planted()
    traces = traces_of_runs({"bm25": data["run"]})
    inputs: dict[str, Any] = {name: data[name] for name in ("entities", "queries", "attributes", "documents")}
    result = gaps(data["qrels"], traces, f"nDCG@{K}", **inputs)
    rows = {row.entity: row for row in result.content or ()}
    assert {name: row.gap for name, row in rows.items()} == data["state"]
    assert Counter(row.gap for row in rows.values()) == dict.fromkeys(STATES, 6)
    # Columns of each state: found, judged, and relevant documents, of two that are indexed
    columns = {NO_DOCUMENT: (0, 0, 0, 0), NOT_FOUND: (2, 0, 0, 0), NOT_JUDGED: (2, 2, 0, 0),
               NOT_RELEVANT: (2, 2, 2, 0), NO_GAP: (2, 2, 1, 1)}  # fmt: skip
    for name, row in rows.items():
        assert (row.indexed, row.found, row.judged, row.relevant) == columns[data["state"][name]]
        number = int(name[-2:])
        assert row.n == 1 + number % 3
        assert row.traffic == sum(1 + 7 * number % 31 + i for i in range(row.n))
        assert row.losses == ({} if row.gap == NO_GAP else {row.gap: row.traffic})
    exported = list(csv.DictReader(io.StringIO(result.table("content_gaps").csv())))
    lost = [float(row["lost"]) for row in exported]
    assert lost == sorted(lost, reverse=True)
    assert sum(lost) == sum(row.traffic for row in rows.values() if row.gap != NO_GAP)
    # The same from a column of entities, a list of ids per entity, and an attribute of topics
    named = {name: [row["doc_id"] for row in data["documents"] if name.upper() in row["title"]] for name in rows}
    ids = tmp_path / "ids.csv"
    ids.write_text("entity,doc_ids\n" + "".join(f'{name},"{", ".join(docs)}"\n' for name, docs in named.items()))
    pairs = tmp_path / "pairs.jsonl"
    rows_of_pairs = [{"entity": name, "docno": doc} for name, docs in named.items() for doc in docs]
    pairs.write_text("\n".join(map(json.dumps, rows_of_pairs)))
    for documents in (ids, pairs):
        # An entity without documents has an empty cell, which is no document.
        inputs["documents"] = documents
        again = gaps(data["qrels"], traces, f"nDCG@{K}", **inputs)
        assert again.content == result.content
    about = {query: {**data["attributes"][query], "entity": query[:8]} for query in data["queries"]}
    other = gaps(data["qrels"], traces, f"nDCG@{K}", by="entity", attributes=about, documents=ids,
                 queries=data["queries"])  # fmt: skip
    assert other.content == result.content


@pytest.mark.parametrize("cutoff", [1, 5, None])
def test_against_another_computation(cutoff: int | None) -> None:
    rng = np.random.default_rng(7)
    docs, names = [f"d{i}" for i in range(40)], [f"e{i}" for i in range(6)]
    supply = {doc: list(rng.choice(names[:5], rng.integers(0, 3), replace=False)) for doc in docs}
    about: dict[str, Any] = {
        f"q{i}": {"about": list(rng.choice(names, 2, replace=False)), "traffic": int(rng.integers(0, 5))}
        for i in range(60)
    }
    run = {query: list(rng.choice(docs, 8, replace=False)) for query in about}
    qrels = {query: {str(doc): int(rng.integers(-1, 2) * (rng.random() < 0.2)) for doc in rng.choice(docs, 12)}
             for query in about}  # fmt: skip
    measure = "nDCG" if cutoff is None else f"nDCG@{cutoff}"
    result = gaps(qrels, traces_of_runs({"a": run}), measure, by="about", attributes=about, documents=supply)
    expected = {name: Counter[str]() for name in names}
    for name in names:
        for query in (query for query in about if name in about[query]["about"]):
            first = run[query][:cutoff]
            if all(qrels[query].get(doc, 0) < 1 for doc in first) and about[query]["traffic"]:
                mine = [doc for doc in first if name in supply[doc]]
                kind = NO_DOCUMENT if name == "e5" else NOT_FOUND if not mine else NOT_RELEVANT
                is_unjudged = any(doc not in qrels[query] for doc in mine)
                expected[name][NOT_JUDGED if is_unjudged else kind] += about[query]["traffic"]
    assert {row.entity: row.losses for row in result.content or ()} == expected


def test_a_list_that_is_not_recorded_loses_no_search_and_an_empty_list_does() -> None:
    spans = [Span(query, query, "bm25", "candidates", (), documents) for query, documents in (("q1", None), ("q2", ()))]
    about = {"q1": {"about": "zip"}, "q2": {"about": "tar"}, "q3": {"about": "tar"}}
    result = gaps({"q3": {"a": 1}}, Traces(tuple(spans)), "RR", by="about", attributes=about,
                  documents={"a": ["zip", "tar"]})  # fmt: skip
    assert {row.entity: (row.gap, row.lost, row.unrecorded) for row in result.content or ()} == {
        "tar": (NOT_FOUND, 1, 1),
        "zip": (None, 0, 1),
    }


@pytest.mark.parametrize(("traffic", "kind"), [(2, NOT_RELEVANT), (3, NOT_FOUND), (4, NOT_FOUND)])
def test_the_kind_is_that_of_most_lost_searches(traffic: int, kind: str) -> None:
    counts = {"q1": traffic, "q2": 3, "q3": 0, "q4": 9}
    about = {query: {"about": "tar" if query == "q3" else "zip", "traffic": n} for query, n in counts.items()}
    run = {"q1": ["x"], "q2": ["a", "x"], "q3": ["x"], "q4": ["a"]}
    result = gaps({"q2": {"a": 0}, "q4": {"a": 1}}, traces_of_runs({"bm25": run}), "RR", by="about",
                  attributes=about, documents={"a": ["zip"]})  # fmt: skip
    (row,) = list(result.content or ())  # tar has no traffic
    assert (row.gap, row.losses, row.traffic) == (kind, {NOT_FOUND: traffic, NOT_RELEVANT: 3}, traffic + 12)


def test_with_runs_a_query_without_results_is_a_lost_search() -> None:
    result = gaps({"q1": {"a": 1}}, traces_of_runs({"bm25": {"q1": ["a"]}}), "RR", entities=[{"entity": "zip"}],
                  queries={"q1": "zip", "q2": "a zip"}, documents={"a": ["ZIP"]})  # fmt: skip
    (row,) = list(result.content or ())
    assert (row.n, row.lost, row.gap, row.indexed) == (2, 1, NOT_FOUND, 1)
    assert [(topic, reason) for topic, *_, reason in result.missing_content] == [("q2", "no results")]


def test_other_names_in_the_documents_give_no_verdict() -> None:
    about = {"q1": {"about": "zip"}}
    result = gaps({"q1": {"a": 1}}, traces_of_runs({"bm25": {"q1": ["b"]}}), "RR", by="about", attributes=about,
                  documents=[{"doc_id": "a", "about": "Zip files"}])  # fmt: skip
    assert result.content is None
    assert "disjoint-entities" in {note.rule for note in result.notes}
    # Here the documents have an entity of the catalog, so zip has no document.
    result = gaps({"q1": {"a": 1}}, traces_of_runs({"bm25": {"q1": ["b"]}}), "RR", queries={"q1": "zip"},
                  entities=[{"entity": "zip"}, {"entity": "tar"}], documents={"a": ["tar"]})  # fmt: skip
    assert [row.gap for row in result.content or ()] == [NO_DOCUMENT]


def test_documents_outside_the_corpus_and_parents() -> None:
    catalog = Entities.of([{"entity": "zip", "alias": "z i p", "parent": "archive"}])
    rows = [{"sku": 1, "entity": ["Z I P", "other"]}, {"sku": 2, "entity": "archive"}, {"sku": 3, "entity": None}]
    expected = {"1": ("zip", "archive", "other"), "2": ("archive",), "3": ()}
    assert entities_of_documents(rows, catalog=catalog) == expected
    assert entities_of_documents(rows, catalog=catalog, corpus={"2"}) == {"2": ("archive",)}


@pytest.mark.parametrize("text", ["doc_id,title\na,zip\nb,tar\n", "entity,note\nzip,x\n"])
def test_a_table_that_says_nothing_of_entities_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "documents.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        entities_of_documents(tmp_path / "documents.csv")
    assert caught.value.line == 2
