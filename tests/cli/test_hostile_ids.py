"""Ids of any form are the same after every file that one command writes and another reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import judged
from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.records import read_records
from judged.data.run import Run
from judged.data.topics import Topics
from judged.data.write import write_qrels, write_run
from judged.diagnosis.review.answer import apply_review, format_review_form
from judged.labels import Labels, LabelStore, qrels_of, read_labels, write_labels
from judged.labels.exchange import quepid_ratings, read_pairs
from judged.labels.pooling import Pool
from judged.results import TEXT, Column, Table
from judged.results.escaping import csv_cell, csv_lines, csv_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

HOSTILE = (
    "-dQw4w9", "=x", "+y", "@user", "'", "'x", "''=x", "'-1", "=cmd|'/C calc'!A0", '=HYPERLINK("u")', 'say "a"',
    '"', '""', " a", "a ", " ", "a,b", "a;b", ",", "-1", "+1e5", "-inf", "é=ü", "日本", "\u202eabc", "a\u00a0",
    "0x1F", "=1+1", "'=", "-", "+", "x'y", '=a,"b" ',
)  # fmt: skip
ids = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8),
    st.builds("{}{}".format, st.sampled_from(["=", "+", "-", "@", "'", " ", '"']), st.sampled_from(HOSTILE)),
)


@given(st.lists(st.one_of(ids, st.just(""), st.sampled_from(["\t=", "\r=", "a\nb", "a\r\nb"])), min_size=1, max_size=6))
@example(["'=1"])
def test_a_row_of_csv_gives_back_its_texts(cells: list[str]) -> None:
    import csv
    import io

    text = csv_lines([cells])
    (row,) = csv.reader(io.StringIO(text, newline=""))
    assert [csv_text(cell) for cell in row] == cells
    assert not any(cell[:1] in {"=", "@", "\t", "\r"} for cell in row)


@pytest.mark.parametrize(("value", "written"), [(-0.5, "-0.5"), (3, "3"), (None, ""), ("-0.5", "-0.5"), ("-a", "'-a")])
def test_numbers_are_never_escaped(value: object, written: str) -> None:
    assert csv_cell(value) == written


def of_ids(names: list[str]) -> tuple[Qrels, Run]:
    """Judge and rank every id, as a topic and as a document."""
    pairs = [(query, doc) for query in names for doc in names]
    columns = {"query_id": [query for query, _ in pairs], "doc_id": [doc for _, doc in pairs]}
    grades = [float(i % 3) for i in range(len(pairs))]
    run = {query: {doc: float(-i) for i, doc in enumerate(names)} for query in names}
    return Qrels(pa.table({**columns, "relevance": grades})), Run.of(run)


usable = [name for name in HOSTILE if name.strip() and not name.startswith("#")]
FORMATS = ("csv", "jsonl", "parquet")


@pytest.mark.parametrize("form", FORMATS)
def test_qrels_and_runs_are_read_back(form: str, tmp_path: Path) -> None:
    qrels, run = of_ids(usable)
    write_qrels(qrels, tmp_path / f"qrels.{form}")
    write_run(run, tmp_path / f"run.{form}")
    again, ranked = Qrels.read(tmp_path / f"qrels.{form}"), Run.read(tmp_path / f"run.{form}")
    for name in ("query_id", "doc_id", "relevance"):
        assert again.table[name].to_pylist() == qrels.table[name].to_pylist()
    assert ranked.table["doc_id"].to_pylist() == usable * len(usable)
    for other in FORMATS:  # whatever form the other file has
        write_run(run, tmp_path / f"other.{other}")
        value = judged.evaluate(again, Run.read(tmp_path / f"other.{other}"), "Judged@3").value("Judged@3")
        assert value == 1.0


@pytest.mark.parametrize("form", FORMATS)
def test_labels_are_read_back(form: str, tmp_path: Path) -> None:
    rows = [
        {"query_id": query, "doc_id": doc, "judge": doc, "grade": 1, "note": doc} for query in usable for doc in usable
    ]
    labels = Labels.of(pa.Table.from_pylist(rows))
    write_labels(labels, tmp_path / f"labels.{form}", notes=True)
    again = read_labels(tmp_path / f"labels.{form}")
    for name in ("query_id", "doc_id", "judge", "grade", "note", "valid", "kind", "seconds"):
        assert again.table[name].to_pylist() == labels.table[name].to_pylist(), name
    if form == "csv":
        cells = [cell for _, row in _raw(tmp_path / "labels.csv") for cell in row]
        assert not any(cell[:1] in {"=", "@"} for cell in cells)
    assert set(qrels_of(again).table["doc_id"].to_pylist()) == set(usable)


def _raw(path: Path) -> list[tuple[int, list[str]]]:
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        return list(enumerate(csv.reader(file)))


def test_a_pool_is_read_as_pairs_to_judge(tmp_path: Path) -> None:
    rows = [(query, doc, 1, 1.0, 3, 2) for query in usable for doc in usable]
    lines = csv_lines([("query_id", "doc_id", "stratum", "probability", "best_rank", "runs"), *rows])
    (tmp_path / "pool.csv").write_text(lines + "\n", encoding="utf-8")
    assert read_pairs(tmp_path / "pool.csv") == [(query, doc) for query, doc, *_ in rows]
    pool = Pool.read(tmp_path / "pool.csv").pairs
    assert list(zip(pool["query_id"].to_pylist(), pool["doc_id"].to_pylist(), strict=True)) == [row[:2] for row in rows]


def test_a_review_gives_new_grades_to_the_same_documents(tmp_path: Path) -> None:
    qrels, _ = of_ids(usable)
    rows = qrels.table.to_pylist()
    items: Any = [_Item(row["query_id"], row["doc_id"], row["relevance"]) for row in rows]
    head, *lines = format_review_form(items).split("\n")
    filled = [line.replace("\t\t", "\t5\t", 1) for line in lines]
    assert len(filled) == len(rows)
    (tmp_path / "review.tsv").write_text("\n".join([head, *filled]) + "\n", encoding="utf-8")
    reviewed_table = apply_review(qrels, tmp_path / "review.tsv").table
    assert reviewed_table["doc_id"].to_pylist() == qrels.table["doc_id"].to_pylist()
    assert set(reviewed_table["relevance"].to_pylist()) == {5.0}


class _Item:
    query, title, text = "", "", ""

    def __init__(self, query_id: str, doc_id: str, grade: float) -> None:
        self.query_id, self.doc_id, self.grade = query_id, doc_id, grade


def test_topics_and_facts_are_read_back(tmp_path: Path) -> None:
    rows = [(name, f"={name}", f"@{i}") for i, name in enumerate(usable)]
    path = tmp_path / "topics.csv"
    path.write_text(csv_lines([("query_id", "text", "kind"), *rows]) + "\n", encoding="utf-8")
    topics = Topics.read(path).table
    assert topics["query_id"].to_pylist() == usable
    assert topics["text"].to_pylist() == [text.strip() for _, text, _ in rows]
    facts = Attributes.read(path).table
    assert facts["kind"].to_pylist() == [kind for *_, kind in rows]


def test_tables_of_answers_and_quepids_ratings_are_read_back(tmp_path: Path) -> None:
    table = Table("x", (Column("doc_id", list(usable), TEXT), Column("value", [-0.5] * len(usable))))
    (tmp_path / "x.csv").write_text(table.csv() + "\n", encoding="utf-8")
    assert [row["doc_id"] for _, row in read_records(tmp_path / "x.csv")] == usable
    assert {row["value"] for _, row in read_records(tmp_path / "x.csv")} == {"-0.5"}
    ratings = quepid_ratings(Qrels.of({"q": dict.fromkeys(usable, 1)}), {"q": "=a text"})
    (tmp_path / "q.csv").write_text(ratings + "\n", encoding="utf-8")
    rows = [row for _, row in read_records(tmp_path / "q.csv")]
    assert [row["docid"] for row in rows] == usable
    assert {row["query"] for row in rows} == {"=a text"}


@pytest.mark.parametrize(("listed", "form"), [("csv", "csv"), ("tsv", "jsonl"), ("json", "parquet")])
def test_commands_hand_the_same_ids_on(listed: str, form: str, tmp_path: Path, run: Callable[..., Ended]) -> None:
    """From a run through a pool, a list, tasks, and labels of two stores to qrels of the same pairs."""
    names = usable[::2] if listed == "csv" else usable[1::2]
    qrels, ranked = of_ids(names)
    pairs = {(row["query_id"], row["doc_id"]) for row in qrels.table.to_pylist()}
    topics = csv_lines([("query_id", "text"), *((name, f"={name}") for name in names)])
    files = {
        name: str(tmp_path / name)
        for name in (f"a.{form}", f"q.{form}", "pool.csv", f"l.{listed}", "a.db", "b.db", "t.csv", f"x.{form}", "q.csv")
    }
    write_run(ranked, files[f"a.{form}"])
    write_qrels(qrels, files[f"q.{form}"])
    (tmp_path / "t.csv").write_text(topics + "\n", encoding="utf-8")

    def ok(*arguments: str) -> None:
        done = run(*(files.get(part, part) for part in arguments))
        assert done.code == 0, done.err

    ok("pool", f"a.{form}", "--depth", "99", "-o", "pool.csv")
    ok("review", f"q.{form}", f"a.{form}", "--limit", "0", "-o", f"l.{listed}")
    assert set(read_pairs(files["pool.csv"])) == pairs
    assert set(read_pairs(files[f"l.{listed}"])) <= pairs
    for store in ("a.db", "b.db"):
        ok("labels", "new", store, "--topics", "t.csv")
        ok("labels", "tasks", store, "pool.csv", f"l.{listed}")
    with LabelStore.open(files["a.db"], new=False) as opened:
        assert {(task.query_id, task.doc_id) for task in opened.all_tasks()} == pairs
    ok("labels", "import", "a.db", f"q.{form}", "--judge", "=ann")
    ok("labels", "export", "a.db", "-o", f"x.{form}")
    ok("labels", "import", "b.db", f"x.{form}")
    ok("labels", "qrels", "b.db", "-o", "q.csv")
    grades = {(row["query_id"], row["doc_id"]): row["relevance"] for row in qrels.table.to_pylist()}
    again = Qrels.read(files["q.csv"]).table.to_pylist()
    assert {(row["query_id"], row["doc_id"]): row["relevance"] for row in again} == grades


def test_saved_scores_have_the_same_topics(tmp_path: Path) -> None:
    qrels, run = of_ids(usable)
    scores = judged.evaluate(qrels, {"=a": run, "'b": run}, "nDCG@3")
    scores.save(tmp_path / "scores.parquet")
    again = judged.Scores.load(tmp_path / "scores.parquet")
    assert (again.query_ids, again.run_names) == (scores.query_ids, scores.run_names)
    assert set(usable) == set(again.query_ids)
