"""What every answer promises, whatever it answers: one registry of examples, all forms."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import pickle
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from judged.errors import InputError, JudgedError
from judged.results import (
    CHANGE,
    COUNT,
    P_VALUE,
    SHARE,
    Answer,
    Block,
    Chart,
    Code,
    Column,
    Sentences,
    Table,
    bars,
    number,
)
from judged.results.blocks import flat
from judged.results.html import html
from judged.results.text_formats import markdown
from judged.results.text_formats import text as terminal
from words.answer_examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    "=1+1",
    "+x",
    "-x",
    "@x",
    "<script>alert(1)</script>",
    "a|b",
    "\x1b[31mred",
    "\u202eabc",
    "a_b*c*",
    "`x`",
    "a\nb",
)
NAMES = sorted(EXAMPLES)


@cache
def example(name: str) -> Answer:
    return EXAMPLES[name]()


def blocks(name: str) -> list[Any]:
    return list(flat(example(name).blocks()))


def every(answer: Answer) -> tuple[str, ...]:
    """Name all that is folded."""
    return tuple(block.name for block in answer.blocks() if block.folded)


@pytest.fixture(params=NAMES)
def answer(request: pytest.FixtureRequest) -> Answer:
    return example(request.param)


def test_json_holds_all_tables_in_full_precision_and_every_note(answer: Answer) -> None:
    made = json.loads(answer.json())
    assert made["schema"] == f"judged.{answer.kind}/{answer.version}"
    for name, table in answer.tables().items():
        assert len(made[name]) == len(table)
        for column in table.data:
            for row, value in zip(made[name], column.values, strict=True):
                if isinstance(value, float):
                    assert row[column.name] == (value if math.isfinite(value) else None)
    assert [note["rule"] for note in made["notes"]] == [note.rule for note in answer.notes]
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", note.rule) for note in answer.notes)
    assert made.get("sentences", []) == list(answer.sentences)


def test_keys_of_json_are_one_thing_each(answer: Answer) -> None:
    head = {} if answer.provenance is None else answer.provenance.to_dict()
    names = [*head, *answer.facts(), *answer.tables(), "notes", "sentences", "schema"]
    assert len(set(names)) == len(names)
    for table in answer.tables().values():
        keys = [key for column in table.data for key, _, _ in column.data()]
        assert len(set(keys)) == len(keys)


def test_csv_and_frames_hold_the_same_as_the_columns(answer: Answer) -> None:
    for name, table in answer.tables().items():
        head, *rows = list(csv.reader(io.StringIO(answer.csv(name))))
        frame = answer.to_arrow(name)
        assert head == frame.column_names
        assert len(rows) == frame.num_rows == len(table)
        for column in table.data:
            if not column.nested and column.show.type and column.name in frame.column_names:
                kind = frame.schema.field(column.name).type
                assert str(kind) in {column.show.type, "double" if column.show.type == "float64" else column.show.type}
        for at, key in enumerate(head):
            values = frame.column(key).to_pylist()
            for row, value in zip(rows, values, strict=True):
                if isinstance(value, float):
                    assert float(row[at]) == value
        assert list(answer.to_pandas(name).columns) == head == answer.to_polars(name).columns


def test_every_form_is_written(answer: Answer, tmp_path: Path) -> None:
    unfold = every(answer)
    said = " ".join(answer.text(80, unfold=unfold).split())
    assert all(" ".join(sentence.split()) in said for block in answer.blocks() if isinstance(block, Sentences)
               for sentence in block.texts)  # fmt: skip
    shown = [block for block in flat(answer.blocks()) if isinstance(block, Table) and block.only != "data"]
    assert ("| :--" in answer.markdown(unfold=unfold)) == bool(shown)
    assert answer.latex(unfold=unfold).count(r"\begin{tabular}") == sum(
        isinstance(block, Table) and block.only != "data" for block in flat(answer.blocks())
    )
    assert all(warning in repr(answer) for warning in answer.warnings)
    assert ("<table" in answer._repr_html_()) == bool(shown)
    answer.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == answer.to_dict()
    answer.save(tmp_path / "a.parquet")
    if type(answer).save is Answer.save:
        assert parquet.read_table(tmp_path / "a.parquet").equals(answer.to_arrow())
    with pytest.raises(InputError, match="no table"):
        answer.table("no such table")


@pytest.mark.slow
def test_a_page_fetches_nothing_and_holds_all(answer: Answer) -> None:
    page = answer.html()
    assert "http-equiv" in page
    assert not re.search(r"""(?:src|href)=["']https?:""", page)
    for block in flat(answer.blocks()):
        if isinstance(block, Chart):
            assert f'id="chart-{block.name}"' in page
            assert block.sentence.strip()


def test_charts_are_drawn_from_data(answer: Answer) -> None:
    for name, chart in answer.charts().items():
        spec = answer.chart(name).to_dict(validate=True)  # by the schema of Vega-Lite
        assert spec["datasets"] if "datasets" in spec else "data" in json.dumps(spec)
        assert chart.table.columns


def test_answers_go_from_process_to_process(answer: Answer) -> None:
    copy = pickle.loads(pickle.dumps(answer))  # noqa: S301
    assert copy.json() == answer.json()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_no_row_and_of_one(name: str, rows: int) -> None:
    for block in blocks(name):
        if isinstance(block, Table) and len(block) >= rows:
            small = block.take(list(range(rows)))
            assert small.to_arrow().num_rows == len(small.records()) == rows
            assert small.to_arrow().schema.names == block.to_arrow().schema.names
            for form in (small.text(60), small.markdown(), small.latex(), small.csv(), html([small])):
                assert isinstance(form, str)


def hostile(table: Table, name: str) -> Table:
    """Put a hostile text in place of every text."""
    columns = tuple(
        dataclasses.replace(column, values=[name if isinstance(value, str) else value for value in column.values])
        for column in table.columns
    )
    return dataclasses.replace(table, columns=columns, groups=[name] * len(table.groups))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", HOSTILE)
def test_names_take_no_effect(name: str, text: str) -> None:
    for block in blocks(name):
        if not isinstance(block, Table) or not len(block):
            continue
        table = hostile(block.take([0]), text)
        for row in csv.reader(io.StringIO(table.csv())):
            assert not any(cell[:1] in set("=+-@") and not _number(cell) for cell in row)
        assert "<script>" not in html([table])
        assert "\x1b" not in table.text() + table.markdown()
        if table.only != "data":
            assert table.markdown().count("\n") == 2 + len(table.groups)
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.markdown().splitlines()}) == 1
            assert "<script>" not in markdown([table])


@pytest.mark.parametrize("text", HOSTILE)
def test_sentences_titles_and_notes_take_no_effect(text: str) -> None:
    table = Table("t", (Column("a", ["b"]),), title=text, note=text)
    made: list[Block] = [
        table,
        Sentences((text,), title=text),
        Sentences((text,), "f", text, folded=True),
        Code((text,)),
    ]
    drawn = terminal(made)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", drawn)
    for written in (html(made), markdown(made[:3])):
        assert "<script>" not in written


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == "-"
    return True


def test_parts_of_a_column_have_its_length() -> None:
    with pytest.raises(JudgedError):
        Column("a", [1, 2], mark=["*"])


def test_types_of_an_empty_column() -> None:
    from judged.results import COUNT, NUMBER, TEXT, YES_NO

    shows = {"string": TEXT, "int64": COUNT, "double": NUMBER, "bool": YES_NO}
    table = Table("t", tuple(Column(kind, [], show) for kind, show in shows.items()))
    assert [str(field.type) for field in table.to_arrow().schema] == list(shows)
    none = Table("t", (Column("x", [None, math.nan], NUMBER), Column("y", [math.inf, 1.0], NUMBER)))
    assert none.to_arrow().column("x").null_count == 2
    assert none.records() == [{"x": None, "y": None}, {"x": None, "y": 1.0}]
    assert pa.types.is_float64(none.to_arrow().schema.field("x").type)


def test_digits_are_those_of_numbers_and_intervals_and_of_nothing_else() -> None:
    table = Table(
        "runs",
        (
            Column("run", ["a", "b"]),
            Column("value", [0.512345, 1.0], ci=[(0.41234, 0.61234), None], show=number()),
            Column("change", [0.012345, 0.5], CHANGE),
            Column("p", [0.01234, 0.5], P_VALUE),
            Column("n", [12, 13], COUNT),
            Column("share", [0.5, 0.25], SHARE),
        ),
    )
    rows = table.rounded(2).grid().rows
    assert list(map(tuple, rows)) == [
        ("a", "0.51 [0.4, 0.6]", "+0.01", "0.0123", "12", "50%"),
        ("b", "1.00", "+0.50", "0.5000", "13", "25%"),
    ]
    assert table.rounded(None) is table
    assert table.rounded(2).csv() == table.csv()


@pytest.mark.parametrize("name", NAMES)
def test_digits_change_what_people_see_and_no_data(name: str, tmp_path: Path) -> None:
    answer = example(name)
    tables = [block for block in flat(answer.blocks()) if isinstance(block, Table) and block.only != "data"]
    for form in ("table", "markdown", "latex"):
        path = tmp_path / f"answer.{form}"
        answer.save(path, form, digits=9)
        assert path.read_text(encoding="utf-8").rstrip("\n") == str(answer.written(form, digits=9)).rstrip("\n")
        assert answer.written(form, digits=None) == answer.written(form)
    for table in tables:
        for column, wide in zip(table.shown, table.rounded(9).shown, strict=True):
            assert wide.values == column.values
            known = [value for value in column.values if isinstance(value, float) and math.isfinite(value)]
            if column.show.digits and known and wide.show.write(known[0])[0].isdigit():
                assert len(wide.show.write(known[0]).partition(".")[2]) == 9


def test_digits_hold_on_a_page_too(tmp_path: Path) -> None:
    answer = example("comparison")
    answer.save(tmp_path / "answer.html", "html", digits=9)
    page = (tmp_path / "answer.html").read_text(encoding="utf-8")
    assert page.rstrip("\n") == str(answer.written("html", digits=9)).rstrip("\n") != answer.written("html")
    assert answer.written("html", digits=None) == answer.written("html")


def test_rows_of_several_units_stand_under_headings() -> None:
    shows = [SHARE, number(2), COUNT]
    value = Column("value", [0.5, 2.0, 3], ci=[(0.25, 0.75), (1.5, 10.25), None], each=shows)
    table = Table("t", (Column("name", ["a", "b", "c"], mark=["*", "", ""]), value), groups=["x", "", "y"])
    lines = table.text().splitlines()
    assert [line.split() for line in lines] == [
        ["name", "value"], ["x"], ["a", "*", "50%", "[25%,", "75%]"], ["b", "2.00", "[1.5,", "10.2]"], ["y"],
        ["c", "3"],
    ]  # fmt: skip
    assert lines[2].index("50%") + 3 == lines[3].index("2.00") + 4 == lines[5].index("3") + 1
    assert html([table]).count('scope="rowgroup"') == 2
    assert table.take([2, 1]).groups == ["y", ""]
    assert [row["value"] for row in table.records()] == [0.5, 2.0, 3]
    assert pickle.loads(pickle.dumps(table)).text() == table.text()  # noqa: S301
    assert table.rounded(1).grid().rows[2][1].startswith("2.0 ")


def test_bars_are_for_terminals_alone() -> None:
    table = Table("t", (Column("name", ["a", "b"]), bars([1.0, 0.5])))
    assert table.text().splitlines()[1:] == ["a     " + "█" * 24, "b     " + "█" * 12]
    assert "█" not in table.markdown() + table.latex() + table.csv() + html([table])


def test_names_that_other_libraries_give_to_forms_are_answered_with_ours() -> None:
    answer = EXAMPLES["tradeoff"]()
    for name, ours in {"to_csv": "csv()", "to_latex": "latex()", "to_df": "to_pandas(), to_polars()"}.items():
        with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}': write {ours} or save(path)")):
            getattr(answer, name)
    with pytest.raises(AttributeError, match=r"no attribute 'to_cvs'$"):
        answer.to_cvs  # noqa: B018


def test_numbers_in_latex_have_a_minus_and_names_a_hyphen() -> None:
    table = Table("rows", (Column("run", ["bm25-1"]), Column("dz", [-0.5], number(2))))
    assert table.latex().splitlines()[4] == r"bm25-1 & $-$0.50 \\"
