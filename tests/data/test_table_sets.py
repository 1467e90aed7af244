"""Sets of related tables: validation, error locations, and equal bytes for equal tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from judged.data.records import TableSet
from judged.errors import InputError

SETS = TableSet(
    {
        "people": pa.schema({"person": pa.string(), "kind": pa.string()}),
        "things": pa.schema(
            {
                "person": pa.string(),
                "rank": pa.int64(),
                "size": pa.float64(),
                "done": pa.bool_(),
                "ids": pa.list_(pa.string()),
                "text": pa.string(),
            }
        ),
    },
    {"people": ("person",), "things": ("person", "rank")},
    defaults={("people", "kind"): "new", "done": False, "rank": None},
    enums={("people", "kind"): ("new", "old")},
    numbered={"things": ("rank", ("person",))},
)


def checked(people: list[dict[str, Any]], things: list[dict[str, Any]]) -> None:
    tables = {"people": SETS.table("people", people), "things": SETS.table("things", things)}
    SETS.check(tables, "here", [("things", ("person",), "people")])


def test_empty_cells_are_usual_and_rows_are_counted_within_others() -> None:
    rows = [{"person": "a"}, {"person": "b", "size": "2.5", "ids": "x y"}, {"person": "a", "done": "yes", "ids": [1]}]
    records = SETS.table("things", rows).to_pylist()
    assert [row["rank"] for row in records] == [1, 1, 2]
    assert [row["done"] for row in records] == [False, False, True]
    assert [(row["size"], row["ids"]) for row in records] == [(None, None), (2.5, ["x", "y"]), (None, ["1"])]
    assert SETS.table("people", pa.table({"person": ["a"], "kind": [" "]})).to_pylist() == [
        {"person": "a", "kind": "new"}
    ]


@pytest.mark.parametrize(
    ("column", "value", "fix"),
    [
        ("rank", 1.5, "an integer"),
        ("rank", 2**60, "an integer"),
        ("size", "nan", "a number"),
        ("size", float("inf"), "a number"),
        ("done", "perhaps", "true or false"),
        ("text", {"a": 1}, "one text or number"),
        ("text", ["a"], "one text or number"),
    ],
)
def test_cells_of_another_type_are_refused(column: str, value: Any, fix: str) -> None:
    with pytest.raises(InputError, match=column) as caught:
        SETS.table("things", [{"person": "a", column: value}])
    assert fix in str(caught.value)


def test_what_does_not_fit_together_is_refused() -> None:
    checked([{"person": "a"}, {"person": "b", "kind": "old"}], [{"person": "a"}, {"person": "a"}])
    for people, things, message in (
        ([{"person": "a"}, {"person": "a"}], [], "several rows of person 'a'"),
        (
            [{"person": "a"}],
            [{"person": "a", "rank": 1}, {"person": "a", "rank": 1}],
            "several rows of person 'a', rank 1",
        ),
        ([{"person": "a", "kind": "strange"}], [], "the invalid kind 'strange'"),
        ([{"person": "a"}], [{"person": "b"}], "people has no row of person 'b'"),
    ):
        with pytest.raises(InputError, match=message):
            checked(people, things)
    with pytest.raises(InputError, match="a row has no person"):
        SETS.table("people", [{"person": ""}])
    for name in ("others", ""):
        with pytest.raises(InputError, match="there is no table"):
            SETS.table(name, [])


def test_a_folder_with_odd_files(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text('person,kind,age\n"a, b",old,7\n')
    (tmp_path / "things.jsonl").write_text("")
    (tmp_path / "more.csv").write_text("x\n")
    (tmp_path / "README.md").write_text("of no table")
    (tmp_path / "folder").mkdir()
    tables, notes = SETS.read(tmp_path)
    assert tables["people"].to_pylist() == [{"person": "a, b", "kind": "old"}]
    assert tables["things"].num_rows == 0
    assert {note.rule: "age" in note.text or "more.csv" in note.text for note in notes} == {
        "unknown-columns": True,
        "empty-table": False,
        "unknown-files": True,
    }
    (tmp_path / "people.tsv").write_text("person\n")
    with pytest.raises(InputError, match="in two files"):
        SETS.read(tmp_path)
    (tmp_path / "people.tsv").unlink()
    (tmp_path / "things.jsonl").write_text('{"person": "a"}\n{"person": "a", "size": "big"}\n')
    with pytest.raises(InputError, match="2: things: size"):
        SETS.read(tmp_path)


def test_equal_tables_are_equal_bytes_and_are_read_again(tmp_path: Path) -> None:
    rows = [{"person": "é, \n", "rank": 2, "ids": ["x"]}, {"person": "a", "size": 0.1}]
    for folder, folder_rows in (("one", rows), ("two", rows[::-1])):
        SETS.write({"things": SETS.table("things", folder_rows)}, tmp_path / folder, ("things",), {})
    first_bytes, second_bytes = ((tmp_path / folder / "things.jsonl").read_bytes() for folder in ("one", "two"))
    assert first_bytes == second_bytes
    assert json.loads(first_bytes.splitlines()[0]) == {"person": "a", "rank": 1, "size": 0.1, "done": False}
    again = SETS.read(tmp_path / "one")[0]["things"]
    assert again.to_pylist()[1]["person"] == "é, \n"
    (tmp_path / "one" / "things.csv").write_text("person\n")
    with pytest.raises(InputError, match="already"):
        SETS.write({"things": again}, tmp_path / "one", ("things",), {})
