"""Each layout in layouts.toml is read as the same judgments or the same results."""

from __future__ import annotations

import tomllib
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.tool_layouts import tool_layouts
from judged.errors import InputError, JudgedWarning
from judged.labels.exchange import read_labels

FOLDER = Path(__file__).parent
LAYOUTS: list[dict[str, Any]] = tomllib.loads((FOLDER / "layouts.toml").read_text(encoding="utf-8"))["layout"]
JUDGMENTS = [
    ("q1", "d1", 2), ("q1", "d2", 0), ("q1", "d3", 1), ("q2", "d1", 0), ("q2", "d4", 1), ("q2", "d5", 2),
    ("q3", "d2", 0), ("q3", "d6", 1),
]  # fmt: skip
RESULTS = [
    ("q1", "d1", 3.5), ("q1", "d3", 2.25), ("q1", "d2", 1.5), ("q2", "d4", 9.0), ("q2", "d5", 8.5), ("q2", "d1", 0.5),
    ("q3", "d6", 0.75), ("q3", "d2", 0.5), ("q3", "d7", 0.25),
]  # fmt: skip
POSITIONS = {
    ("q1", "d1"): "0", ("q1", "d2"): "1", ("q1", "d3"): "2", ("q2", "d1"): "0", ("q2", "d4"): "1", ("q2", "d5"): "2",
    ("q3", "d2"): "0", ("q3", "d6"): "1", ("q3", "d7"): "2",
}  # fmt: skip
IDS = {
    "texts": {"q1": "red shoes", "q2": "rain coat", "q3": "wool hat"},
    "accents": {"q1": "red shoes", "q2": "rain coat", "q3": "müze hat"},
    "positions": {"q1": "1", "q2": "2", "q3": "3"},
    "query numbers": {"q1": "101", "q2": "102", "q3": "103"},
    "numbers": {"q1": "101", "q2": "102", "q3": "103", **{f"d{i}": f"200{i}" for i in range(1, 8)}},
}


def expected_rows(layout: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of the judgments or results with the ids, grades, and iterations of this layout."""
    names = IDS[layout["ids"]] if "ids" in layout else {}
    by_position = layout.get("documents") == "positions"
    rows: list[tuple[Any, ...]] = []
    for i, (query, doc, value) in enumerate(JUDGMENTS if layout["kind"] != "run" else RESULTS):
        doc_id = POSITIONS[query, doc] if by_position else names.get(doc, doc)
        if "grades" in layout and str(value) not in layout["grades"]:
            continue
        number = layout["grades"][str(value)] if "grades" in layout else value
        row = names.get(query, query), doc_id, float(number)
        iterations = layout.get("raters", layout.get("iterations", [])[i : i + 1])
        rows += [(*row, iteration) for iteration in iterations] or [row]
    return rows


def read(layout: dict[str, Any], path: Path | None = None) -> Qrels | Run:
    kind = Qrels if layout["kind"] == "qrels" else Run
    return kind.read(path or FOLDER / layout["file"], format=layout.get("format"))


@pytest.mark.parametrize("layout", LAYOUTS, ids=[layout["id"] for layout in LAYOUTS])
def test_layout(layout: dict[str, Any]) -> None:
    if layout["kind"] == "labels":
        labels = read_labels(FOLDER / layout["file"]).table.to_pylist()
        rows = [(row["query_id"], row["doc_id"], row["grade"], row["judge"]) for row in labels]
        assert sorted(rows) == sorted(expected_rows(layout))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        table = read(layout).table
    rows = table.to_pylist()
    if layout["kind"] == "qrels":
        columns = ["query_id", "doc_id", "relevance", *["iteration"] * bool({"iterations", "raters"} & set(layout))]
        assert sorted(tuple(row[name] for name in columns) for row in rows) == sorted(expected_rows(layout))
        return
    expected = expected_rows(layout)
    if "without scores" in layout["becomes"]:
        ordered = sorted(rows, key=lambda row: (row["query_id"], row["rank"] if "rank" in row else -row["score"]))
        in_order = sorted((row[:2] for row in expected), key=lambda row: row[0])  # within a query, as in `expected`
        assert [(row["query_id"], row["doc_id"]) for row in ordered] == in_order
    else:
        assert sorted((row["query_id"], row["doc_id"], row["score"]) for row in rows) == sorted(expected)


def test_each_layout_has_a_file_and_each_file_a_layout() -> None:
    assert not [name for name, count in Counter(layout["id"] for layout in LAYOUTS).items() if count > 1]
    files = {path.name for path in FOLDER.iterdir() if path.is_file()} - {"layouts.toml"}
    assert {name for name in files if not name.endswith(".py")} == {layout["file"] for layout in LAYOUTS}


def test_each_layout_of_a_tool_is_read_from_a_file() -> None:
    notes: set[str] = set()
    for layout in LAYOUTS:
        if layout["kind"] != "labels":
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                read(layout)
            notes |= {str(warning.message).partition(": ")[2] for warning in caught}
    layouts = [layout for layout in tool_layouts() if layout.kind in {"qrels", "run"}]
    untested = [layout for layout in layouts if f"read as {layout.name} ({layout.tool})" not in notes]
    assert not untested


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mteb.json", '{"scores": {"test": [{"ndcg_at_10": 0.645, "main_score": 0.645}]}}'),
        ("mteb1.json", '{"mteb_version": "1.1", "mteb_dataset_name": "SciFact", "test": {"ndcg_at_10": 0.645}}'),
        ("evaluator.csv", "epoch,steps,cosine-NDCG@10,cosine-MAP@100\n0.5,100,0.62,0.55\n1.0,200,0.63,0.56\n"),
    ],
)
@pytest.mark.parametrize("kind", [Qrels, Run])
def test_means_over_topics_are_refused(kind: Any, name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="means without the scores of each topic") as caught:
        kind.read(tmp_path / name)
    assert "save the predictions" in caught.value.fix


@pytest.mark.parametrize(("grades", "iteration"), [(["9", "0"], "0"), (["0.5", "1.5"], "Q0"), (["1", "1"], "0")])
def test_an_iteration_in_the_last_column(grades: list[str], iteration: str, tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text("".join(f"q\td{i}\t{grade}\t{iteration}\n" for i, grade in enumerate(grades)))
    with pytest.warns(JudgedWarning, match="read as query, document, grade, iteration"):
        assert Qrels.read(path).table["relevance"].to_pylist() == [float(grade) for grade in grades]


@pytest.mark.parametrize("text", ["q 0 1 0\nq 0 2 0\n", "q 1 5 0\nq 2 5 0\nq 1 6 0\n", "q s1 d1 0\nq s2 d2 0\n"])
def test_grades_of_0_are_no_iteration(text: str, tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(text)
    assert set(Qrels.read(tmp_path / "qrels.txt").table["relevance"].to_pylist()) == {0.0}
