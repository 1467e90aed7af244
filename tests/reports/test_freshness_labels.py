"""The same documents have the same labels of freshness in slices of topics, slices of logs, and kinds of failure."""

from __future__ import annotations

from typing import Any

import pytest

from judged.comparison.slicing import derive, document_slices, slice_topics
from judged.data.freshness import AFTER, NO_DATE, dated_documents
from judged.pipelines.traces import failures, traces_of_runs
from online.slicing.sliced_logs import logs, sliced

DAY = 86_400


@pytest.mark.parametrize("bands", [None, (7, 30), (0,)])
def test_one_document_has_one_label_everywhere(bands: Any) -> None:
    """Each topic has one relevant document, each page shows one, and each lost document is one of them."""
    values = [
        "2024-03-01",
        "2024-02-29T23:30:00-02:00",
        "2024-01-31",
        1706659200,
        "2023",
        None,
        "2025-01-01",
        "2024-02",
    ]
    table = {f"d{i}": {"published": value} for i, value in enumerate(map(str, values)) if value != "None"}
    table |= {"d5": {"published": None}}
    documents = dated_documents(table, as_of="2024-03-01", bands=bands)
    docs = [f"d{i}" for i in range(len(values))]
    qrels = {doc: {doc: 1} for doc in docs}  # the topic is named like its document
    attributes = derive(qrels, documents=documents)
    by_topic = dict(zip(attributes.query_ids, attributes.column("freshness").to_pylist(), strict=True))
    groups = document_slices(qrels, documents, "freshness")
    by_group = {doc: name for name, judged in groups.items() for doc in judged.topics}
    page_days = [{"time_ms": 1000 * DAY * 19783}] * len(docs)  # 2024-03-01
    shown = [{"serp": i, "rank": 1, "object_id": doc} for i, doc in enumerate(docs)]
    in_log, order, _ = sliced(logs(page_days, shown=shown), "freshness", documents=documents)
    on_page_day, _, _ = sliced(logs([{"time_ms": 0}] * len(docs), shown=shown), "freshness", documents=documents)
    lost = failures(qrels, traces_of_runs({"list": {doc: ["x"] for doc in docs}}), "R@1", documents=documents)
    rows = next(block for block in lost.blocks() if getattr(block, "name", "") == "documents").records()  # type: ignore[attr-defined]
    by_failure = {row["doc_id"]: row["freshness"] for row in rows}
    assert by_topic == by_group == by_failure == dict(zip(docs, in_log, strict=True))
    assert on_page_day == in_log  # `as_of` is set, so the days of the pages have no effect
    assert order == tuple(name for name in documents.band_names if name in in_log)
    assert by_topic["d1"] == by_topic["d0"]  # 23:30 at UTC-2 is the next day
    assert (by_topic["d5"], by_topic["d6"]) == (NO_DATE, AFTER)
    slicing = slice_topics(attributes, "freshness", min_topics=1)
    assert sum(slicing.n) == len(docs)
    assert [note.rule for note in slicing.notes()] == ["freshness"]
    assert [note.rule for note in slice_topics(attributes, "relevant", min_topics=1).notes()] == []
    assert [note.rule for note in lost.notes if note.rule == "freshness"] == ["freshness"]
