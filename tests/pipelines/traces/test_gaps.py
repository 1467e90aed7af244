"""Entities and content gaps: hand counts, a second matcher, ancestors, and the false discovery rate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError
from judged.pipelines.traces import Entities, Span, Traces, gaps, read_traces, traces_of_runs
from judged.pipelines.traces.entities import words_of

ROWS = [
    {"entity": "zip file", "alias": "zip", "parent": "archive"},
    {"entity": "tar", "alias": "tarball", "parent": ["archive", "unix"]},
    {"entity": "archive", "parent": "file"},
    {"entity": "file"},
    {"entity": "Mercury (planet)", "alias": "mercury"},
    {"entity": "Mercury (metal)", "alias": "Mercury"},
]


def test_the_longest_name_from_the_left_and_what_is_ambiguous() -> None:
    entities = Entities.of(ROWS)
    assert entities.mentioned("Unpack a ZIP-file, or a tarball").entities == ("zip file", "tar")
    assert entities.mentioned("zip  file").entities == ("zip file",)
    assert entities.mentioned("files and zippers") == ((), ())
    assert entities.mentioned("mercury in a file") == (("file",), ("mercury",))
    assert entities.mentioned("MERCURY PLANET").entities == ("Mercury (planet)",)


def test_entities_with_two_parents_roll_up_once() -> None:
    entities = Entities.of(ROWS)
    assert set(entities.above("tar")) == {"tar", "archive", "unix", "file"}
    assert set(entities.rolled_up(["tar", "zip file"])) == {"tar", "zip file", "archive", "unix", "file"}


def other_matcher(words: tuple[str, ...], aliases: dict[tuple[str, ...], tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Find the leftmost longest names by testing all aliases at each word."""
    while words:
        fitting = [alias for alias in aliases if words[: len(alias)] == alias]
        best = max(fitting, key=len, default=None)
        if best:
            yield aliases[best]
        words = words[len(best) if best else 1 :]


NAMES = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=6, unique=True
)


@given(names=NAMES, text=st.lists(st.sampled_from("abcd"), max_size=10).map(" ".join))
def test_against_another_matcher(names: list[str], text: str) -> None:
    entities = Entities.of([{"entity": f"e{number % 4}", "alias": name} for number, name in enumerate(names)])
    entities_found, ambiguous = entities.mentioned(text)
    matches = list(other_matcher(words_of(text), dict(entities.aliases)))
    assert set(entities_found) == {candidates[0] for candidates in matches if len(candidates) == 1}
    assert bool(ambiguous) == any(len(candidates) > 1 for candidates in matches)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("entity,parent\na,b\nb,c\nc,a\n", 4),
        ("entity,parent\na,a\n", 2),
        ("entity,alias\na,x\n,y\n", 3),
    ],
)
def test_cycles_and_rows_without_entity_raise_with_their_line(rows: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "entities.csv"
    file.write_text(rows)
    with pytest.raises(InputError) as caught:
        Entities.of(file)
    assert caught.value.line == line


QRELS = {"q1": {"a": 1, "b": 1}, "q2": {"b": 1, "c": 0}, "q3": {"c": 0}}
RUN = {"q1": ["a", "x"], "q2": ["c", "b"], "q4": ["x"]}
QUERIES = {"q1": "zip it", "q2": "a tarball", "q3": "mercury", "q4": "zip a tar", "q5": "file"}


def test_by_hand() -> None:
    documents = [{"doc_id": "a", "entity": "zip file"}, {"doc_id": "x", "entity": "tar"}, {"doc_id": "y", "entity": ""}]
    attributes = {"q1": {"traffic": 10}, "q2": {"traffic": 5}, "q4": {"traffic": 2}, "q5": {"traffic": 1}}
    traces = traces_of_runs({"bm25": RUN})
    traces = Traces((*traces.spans, Span("q3", "q3", "bm25", "candidates", (), ())))
    result = gaps(QRELS | {"q6": {"b": 1}}, traces, "R@1", entities=ROWS, queries=QUERIES,
                 attributes=attributes, documents=documents, corpus="axy")  # fmt: skip
    rows = {row.entity: row for row in result.rows}
    # q1: R@1 is 1 of 2; q2: 0 of 1; q4 has no judgments; q5 has no trace
    counts = {
        name: (row.n, row.traffic, row.judged, row.listed, row.relevant, row.documents) for name, row in rows.items()
    }
    assert counts == {
        "zip file": (2, 12, 1, 1, 2, 1),
        "archive": (3, 17, 2, 2, 3, 2),
        "file": (3, 17, 2, 2, 3, 2),
        "tar": (2, 7, 1, 1, 1, 1),
        "unix": (2, 7, 1, 1, 1, 1),
    }
    assert rows["archive"].score == pytest.approx(0.25)
    assert result.documents == 3
    # The corpus lacks b, relevant for q1, q2, and q6; q3 has an empty list; q6 has no trace
    assert [(topic, traffic, reason) for topic, _, _, traffic, reason in result.missing_content] == [
        ("q1", 10, "some relevant documents are not in the corpus"),
        ("q2", 5, "some relevant documents are not in the corpus"),
        ("q3", 0, "no results"),
        ("q6", 0, "some relevant documents are not in the corpus"),
    ]
    assert {note.rule for note in result.notes} == {"ambiguous-name", "no-entity"}
    assert result.table("missing_content").records()[0]["query"] == "zip it"


def test_an_attribute_may_name_several() -> None:
    about = {"q1": {"about": ["law", "tax"]}, "q2": {"about": ["tax"]}, "q3": {"about": []}}
    result = gaps(QRELS, traces_of_runs({"bm25": RUN}), "R@1", by="about", attributes=about)
    assert {row.entity: row.n for row in result.rows} == {"law": 1, "tax": 2}


@pytest.mark.parametrize("options", [{}, {"by": "x"}, {"by": "x", "entities": ROWS}])
def test_exactly_one_source_of_entities_is_required(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        gaps(QRELS, traces_of_runs({"bm25": RUN}), **options)


def test_traffic_is_the_number_of_traces(tmp_path: Path) -> None:
    queries = [("zip it", ["a"]), ("a tarball", []), ("zip it", ["a"]), ("Zip  it", ["x"]), ("a tarball", [])]
    rows = [
        {"query_id": f"u{i}", "user_query": text, "query_response_hit_ids": ids}
        for i, (text, ids) in enumerate(queries)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    traces = read_traces(tmp_path / "log.jsonl", topics={"q1": "zip it", "q2": "a tarball"})
    result = gaps(QRELS, traces, "R@1", entities=ROWS)
    rows_of = {row.entity: (row.n, row.traffic, row.empty) for row in result.rows}
    assert (rows_of["zip file"], rows_of["tar"]) == ((1, 3, 0), (1, 2, 1))


def simulated(rng: np.random.Generator, worse: float) -> Any:
    """Simulate 120 topics of 8 entities; topics of entity 0 have their relevant document at rank 10 more often."""
    qrels = {f"q{topic}": {"r": 1} for topic in range(120)}
    run = {}
    for topic in range(120):
        rank = int(rng.integers(0, 9)) if topic % 8 or rng.random() > worse else 9
        run[f"q{topic}"] = [f"x{i}" for i in range(rank)] + ["r"] + [f"y{i}" for i in range(9 - rank)]
    entities = {f"q{topic}": {"about": f"kind {topic % 8}"} for topic in range(120)}
    return gaps(qrels, traces_of_runs({"bm25": run}), "RR", by="about", attributes=entities, fdr=0.1)


def test_false_discovery_rate_and_power() -> None:
    rng = np.random.default_rng(3)
    has_false_discovery = [bool(simulated(rng, 0).worse) for _ in range(60)]
    discoveries = [[row.entity for row in simulated(rng, 1).worse] for _ in range(20)]
    assert np.mean(has_false_discovery) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 60)
    assert sum("kind 0" in names for names in discoveries) >= 18
