"""Names of columns: known names, names that the user sets, and ids without accidental differences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

import judged
from judged.data.column_names import canonical_names, missing_columns_error, reading_options, use_columns
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.sources import ParquetRows, open_source
from judged.errors import InputError, JudgedWarning

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {"q1": {"a": 1.0}, "q2": {"b": 1.0}}
ROWS = [{"part": "q1", "thing": "x", "how": 0.5}, {"part": "q1", "thing": "a", "how": 0.4}]
COLUMNS = {"query_id": "part", "doc_id": "thing", "score": "how"}


@pytest.mark.parametrize("form", ["csv", "semicolon", "jsonl", "parquet", "long parquet"])
def test_columns_that_the_user_names(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relevant document is second: RR is 1/2 for q1 and 0 for q2."""
    path = tmp_path / f"run.{form.rsplit(maxsplit=1)[-1]}"
    if "parquet" in form:
        parquet.write_table(pa.Table.from_pylist(ROWS), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        mark = ";" if form == "semicolon" else ","
        path.write_text("".join(mark.join(map(str, row)) + "\n" for row in (ROWS[0], *(row.values() for row in ROWS))))
    monkeypatch.setattr("judged.data.sources._MAX_ROWS_IN_MEMORY", 1 if form == "long parquet" else 100)
    with pytest.warns(JudgedWarning, match="no documents returned"):
        assert judged.evaluate(QRELS, path, "RR", columns=COLUMNS).value("RR") == 0.25
    with pytest.raises(InputError):
        judged.evaluate(QRELS, path, "RR")


def test_a_long_parquet_file_keeps_the_names_that_it_was_opened_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.parquet"
    parquet.write_table(pa.Table.from_pylist(ROWS), path)
    monkeypatch.setattr("judged.data.sources._MAX_ROWS_IN_MEMORY", 1)
    run = Run.scan(path, columns=COLUMNS)
    assert isinstance(run.rows, ParquetRows)
    assert run.table.to_pydict() == {"query_id": ["q1", "q1"], "doc_id": ["x", "a"], "score": [0.5, 0.4]}


def test_names_for_one_kind_of_table_only() -> None:
    with use_columns({"run.query_id": "doc_id", "run.doc_id": "query_id"}):
        assert canonical_names(["query_id", "doc_id", "score"], "run") == ("doc_id", "query_id", "score")
        assert canonical_names(["query_id", "doc_id", "relevance"], "qrels") == ("query_id", "doc_id", "relevance")


def test_a_column_that_no_table_has_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "qrels.csv"
    path.write_text("query_id,doc_id,relevance\nq1,a,1\n")
    with pytest.warns(JudgedWarning, match="no table has the column skuu"):
        Qrels.read(path, columns={"doc_id": "skuu"})


def test_ids_without_accidental_differences(tmp_path: Path) -> None:
    """Case, leading zeros, a decimal, and the Unicode form differ; the last document has the ids of the qrels."""
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,relevance\n7,ABC,1\n8,é,1\n9,12,1\n9,same,0\n")
    (tmp_path / "run.csv").write_text("query_id,doc_id,score\n007,abc,1.5\n8,e\u0301,1.5\n9,12.0,1.5\n9,same,1\n")
    files = (tmp_path / "qrels.csv", tmp_path / "run.csv")
    assert judged.evaluate(*files, "RR", normalize_ids=True).value("RR") == 1.0
    with pytest.warns(JudgedWarning):
        assert judged.evaluate(*files, "RR").value("RR") == 0.0


def test_the_error_proposes_the_most_similar_columns() -> None:
    rows = [["7", "A-1", "2", "kim"], ["7", "A-2", "0", "kim"]]
    error = missing_columns_error(["query", "product_nr", "releveance", "who"], "qrels", "a.csv", rows)
    assert error.fix == "use --columns doc_id=product_nr,relevance=releveance"


def test_two_columns_with_one_role_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("Suchbegriff;Artikelnummer;bm25_score;dense_score\nq;a;1,5;0,5\n", encoding="utf-8")
    with pytest.raises(InputError, match="'bm25_score' and 'dense_score' both contain the score"):
        open_source(path, "run")


def test_columns_name_fields_in_nested_json(tmp_path: Path) -> None:
    document = {"took": 3, "out": [{"frage": "q", "liste": [{"nr": "a", "s": 2.5}, {"nr": "b", "s": 1.5}]}]}
    (tmp_path / "run.json").write_text(json.dumps(document))
    (tmp_path / "judged.json").write_text(json.dumps([{"qid": "q", "docs": [{"nr": "a", "grade": 2}]}]))
    with pytest.raises(InputError, match="--columns"):
        Run.read(tmp_path / "run.json")
    columns = {"query_id": "out.frage", "doc_id": "out.liste.nr", "score": "out.liste.s"}
    with pytest.warns(JudgedWarning, match="read as the fields"), use_columns(columns):
        rows = Run.read(tmp_path / "run.json").table.to_pylist()
    assert sorted((row["query_id"], row["doc_id"], row["score"]) for row in rows) == [("q", "a", 2.5), ("q", "b", 1.5)]
    with pytest.warns(JudgedWarning, match="read as the fields"), use_columns({"qrels.doc_id": "docs.nr"}):
        qrels = Qrels.read(tmp_path / "judged.json")
    assert qrels.table.to_pylist() == [{"query_id": "q", "doc_id": "a", "relevance": 2.0}]


@pytest.mark.parametrize(
    ("columns", "row", "options"),
    [
        (["query", "document", "opinion"], ["q", "d", "gut"], "relevance=opinion"),
        (["opinion", "query", "document"], ["7", "q", "d"], "relevance=opinion"),
        (["query", "part", "opinion"], ["q", "d", "7"], "doc_id=part,relevance=opinion"),
    ],
)
def test_the_only_column_that_is_left_is_named(columns: list[str], row: list[str], options: str) -> None:
    assert missing_columns_error(columns, "qrels", "a.csv", [row]).fix == f"use --columns {options}"


def test_columns_of_click_judgments_are_known_and_others_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "qrels.csv"
    path.write_text("query_id,doc_id,grade,value,se,shown,who\nq1,a,1,0.5,0.1,12,kim\n")
    with pytest.warns(JudgedWarning, match="columns that are not used: who$"):
        Qrels.read(path)


@pytest.mark.parametrize("form", ["frame", "dicts"])
def test_unused_columns_of_objects_are_reported(form: str) -> None:
    rows = [{"query_id": "q1", "doc_id": "a", "score": 2.0, "comment": "x"}]
    with pytest.warns(JudgedWarning, match="columns that are not used: comment"):
        run = Run.of(pa.Table.from_pylist(rows) if form == "frame" else rows)
    assert run.table.column_names == ["query_id", "doc_id", "score"]


def test_options_of_one_call_do_not_change_those_of_others() -> None:
    with use_columns({"doc_id": "sku"}):
        canonical_names(["query_id", "sku", "score"], "run")
        assert reading_options().present == {"", "sku"}
    canonical_names(["query_id", "sku", "score"], "run")
    assert reading_options().present == set()
