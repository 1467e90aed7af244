"""Multi-valued attributes: a topic is in the slice of each value."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import judged
from judged.comparison.slicing import slice_topics
from judged.errors import InputError

ROWS = [
    {"query_id": "q1", "entities": ["acme", "globex", "acme"]},
    {"query_id": "q2", "entities": ["acme"]},
    {"query_id": "q3", "entities": "initech"},
    {"query_id": "q4", "entities": []},
]
MEMBERS = {
    "entities=acme": [1, 1, 0, 0],
    "entities=globex": [1, 0, 0, 0],
    "entities=initech": [0, 0, 1, 0],
    "entities missing": [0, 0, 0, 1],
}


def test_a_topic_is_in_the_slice_of_each_of_its_values(tmp_path: Path) -> None:
    path = tmp_path / "attributes.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    output = slice_topics(path, "entities", min_topics=1)
    assert dict(zip(output.names, output.members.astype(int).tolist(), strict=True)) == MEMBERS
    lists = [row["entities"] if isinstance(row["entities"], list) else [row["entities"]] for row in ROWS]
    table = pa.table({"query_id": [row["query_id"] for row in ROWS], "entities": lists})
    assert slice_topics(table, "entities", min_topics=1).members.tolist() == output.members.tolist()


@pytest.mark.parametrize(
    ("expression", "members"),
    [
        ("e == 'a'", [True, False, False]),
        ("e != 'a'", [False, True, False]),  # q3 has no value
        ("e in ('a', 'c')", [True, False, False]),
        ("e not in ('a', 'c')", [False, True, False]),
        ("contains(e, 'ee')", [False, True, False]),
        ("missing(e)", [False, False, True]),
    ],
)
def test_conditions_hold_if_they_hold_of_one_of_them(expression: str, members: list[bool]) -> None:
    attributes = {"q1": {"e": ["a", "b"]}, "q2": {"e": ["bee", "b"]}, "q3": {"e": []}}
    output = slice_topics(attributes, slices=[{"name": "some", "expression": expression}], min_topics=1)
    assert output.members[0].tolist() == members


def test_they_have_no_order() -> None:
    with pytest.raises(InputError, match="several texts, which have no order"):
        slice_topics({"q1": {"e": ["a", "b"]}}, slices=[{"name": "some", "expression": "e < 'a'"}])
    with pytest.raises(InputError, match="lists of texts, got lists of int64"):
        slice_topics([{"query_id": "q1", "e": [1, 2]}], "e")


def test_scores_by_slices_that_share_topics() -> None:
    qrels = {f"q{i}": {"a": 1} for i in range(1, 5)}
    run = {"q1": ["a"], "q2": ["x", "a"], "q3": ["a"], "q4": ["x"]}
    attributes = {row["query_id"]: {"entities": row["entities"]} for row in ROWS[:2]} | {"q3": {"entities": ["globex"]}}
    rows = judged.slices(qrels, run, slice_topics(attributes, "entities", min_topics=1), "RR").table().records()
    means = {row["slice"]: row["value"] for row in rows if "acme" in str(row["slice"]) or "globex" in str(row["slice"])}
    assert means == {"entities=acme": 0.75, "entities=globex": 1.0}
