"""Labels in the layouts of other tools and in tables with other column names, and labels in place of qrels."""

from __future__ import annotations

import json
import shlex
import tomllib
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from command_line import Ended
from judged import Qrels, evaluate
from judged.data.column_names import use_columns
from judged.errors import InputError
from judged.labels import Labels, LabelStore, import_labels, quality, read_labels
from judged.labels.exchange import describe_labels

OWN_FILES = Path(__file__).parents[1] / "own_files"
CASES = {case["id"]: case for case in tomllib.loads((OWN_FILES / "cases.toml").read_text())["case"]}
BOOK = OWN_FILES / "files" / "quepid_book" / "book_12_export.csv"


def write_file(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode("cp1252" if name.startswith("cp1252") else "utf-8"))
    return path


def read(path: Path, *names: str, **options: Any) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Return some columns of the labels of a file, and the warnings without the path."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = read_labels(path, **options).table.to_pylist()
    names = names or ("query_id", "doc_id", "judge", "grade")
    return [tuple(row[name] for name in names) for row in rows], [
        str(warning.message).removeprefix(f"{path}: ") for warning in caught
    ]


ROWS = [("q1", "a", "ann", 2.0), ("q1", "b", "bob", 0.0)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "qid,docno,annotator,rating\nq1,a,ann,2\nq1,b,bob,0\n"),
        ("a.tsv", "Search term\tDoc ID\tRated by\tStars\nq1\ta\tann\t2\nq1\tb\tbob\t0\n"),
        ("cp1252.csv", "Suchbegriff;Dokument;Prüfer;Note\nq1;a;ann;2,0\nq1;b;bob;0,0\n"),
        ("a.csv", "Exported on Monday\n\nquery,document,assessor,label\nq1,a,ann,2\nq1,b,bob,0\n"),
        ("a.csv", "クエリ,文書id,評価者,評価\nq1,a,ann,2\nq1,b,bob,0\n"),
        ("a.jsonl", ('{"qid": "q1", "docid": "a", "judge": "ann", "rel": 2}\n'
                     '{"rel": 0, "judge": "bob", "docid": "b", "qid": "q1"}\n')),
    ],
)  # fmt: skip
def test_names_of_columns_delimiters_and_encodings(tmp_path: Path, name: str, text: str) -> None:
    rows, notes = read(write_file(tmp_path, name, text))
    assert rows == ROWS
    assert notes == [
        *["read as Windows-1252, not UTF-8"] * name.startswith("cp1252"),
        *["the header is on line 3; the lines above it were not read"] * text.startswith("Exported"),
    ]


def test_columns_of_the_user(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "term,sku,who,stars,stars2\nq1,a,ann,9,2\nq1,b,bob,9,0\n")
    with use_columns({"judge": "who", "grade": "stars2"}):
        assert read(path) == (ROWS, ["columns that are not used: stars"])


def test_grades_in_words_are_on_one_scale(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "query_id,doc_id,judge,label\nq1,a,ann,Fair\nq1,b,bob,bad\nq1,c,bob,Perfect\n")
    rows, notes = read(path)
    assert [row[3] for row in rows] == [1, 0, 4]
    assert notes == ["grades: Fair = 1, bad = 0, Perfect = 4"]


def test_two_columns_for_one_thing_are_refused(tmp_path: Path) -> None:
    for header in ("judge,annotator,grade,x", "judge,x,grade,rel", "judge,grade,judge,x"):
        with pytest.raises(InputError, match=r"two columns|both contain"):
            read(write_file(tmp_path, "a.csv", f"query_id,doc_id,{header}\nq1,a,1,1,2,3\n"))


def test_unused_columns_are_named_once(tmp_path: Path) -> None:
    text = "query_id,doc_id,judge,grade,batch,colour\n" + "".join(f"q1,{i},ann,1,7,red\n" for i in range(5))
    assert read(write_file(tmp_path, "a.csv", text))[1] == ["columns that are not used: batch, colour"]


def annotation(judge: object, grade: object, **more: object) -> dict[str, Any]:
    """Return an annotation of Label Studio, as its JSON export has it."""
    result = {"type": "choices", "from_name": "grade", "to_name": "text", "value": {"choices": [grade]}}
    comment = {"type": "textarea", "from_name": "why", "to_name": "text", "value": {"text": ["because"]}}
    times = {"created_at": "2026-01-05T10:00:00Z", "updated_at": "2026-01-05T11:00:00Z", "lead_time": 2.5}
    return {"completed_by": judge, "result": [comment, result], "was_cancelled": False, **times, **more}


def test_label_studio(tmp_path: Path) -> None:
    data = {"query": "red shoes", "doc_id": "a", "text": "A text."}
    tasks = [
        {"data": data, "drafts": [{}], "predictions": [{}, {}], "annotations": [
            annotation(3, "2"), annotation({"id": 4, "email": "bob@example.org"}, "1"),
            annotation(5, "0", was_cancelled=True),
        ]},
        {"data": data, "drafts": [], "annotations": [annotation(5, "0", was_cancelled=True, result=[])]},
    ]  # fmt: skip
    path = write_file(tmp_path, "project.json", tasks)
    rows, notes = read(path, "query_id", "judge", "grade", "time", "seconds", topics={"7": "Red shoes"})
    time = "2026-01-05T11:00:00.000+00:00"
    assert rows == [("7", "3", 2, time, 2.5), ("7", "bob@example.org", 1, time, 2.5)]
    assert notes == ["not read: 2 cancelled annotations, 1 draft, 2 predictions"]


def test_label_studio_json_min_and_csv(tmp_path: Path) -> None:
    record = {"id": 1, "query": "q1", "doc_id": "a", "grade": 2, "annotator": 3, "annotation_id": 9, "lead_time": 2.5}
    record |= {"created_at": "2026-01-05T10:00:00Z", "updated_at": "2026-01-05T11:00:00Z"}
    text = f"{','.join(record)}\n{','.join(map(str, record.values()))}\n"
    for path in (write_file(tmp_path, "min.json", [record]), write_file(tmp_path, "l.csv", text)):
        rows, notes = read(path, "query_id", "doc_id", "judge", "grade", "time", "seconds")
        assert rows == [("q1", "a", "3", 2, "2026-01-05T11:00:00.000+00:00", 2.5)]
        assert notes == ["columns that are not used: id, annotation_id, created_at"]


def test_argilla(tmp_path: Path) -> None:
    responses = [
        {"value": 2, "user_id": "u1", "status": "submitted"}, {"value": 1, "user_id": "u2"},
        {"value": 0, "user_id": "u3", "status": "draft"},
    ]  # fmt: skip
    record = {"metadata": {"query_id": "q1", "doc_id": "a"}, "responses": {"relevance": responses}}
    path = write_file(tmp_path, "records.json", [{**record, "suggestions": {"relevance": {"value": 4}}}])
    rows, notes = read(path)
    assert rows == [("q1", "a", "u1", 2), ("q1", "a", "u2", 1)]
    assert notes == ["not read: 1 draft or discarded response, 1 suggestion"]


def test_doccano_with_metadata(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "A text.", "meta": {"query": "q1", "doc_id": doc}, "label": [word], "Comments": []}
            for doc, word in (("a", "relevant"), ("b", "not relevant"))]  # fmt: skip
    path = write_file(tmp_path, "all.jsonl", "\n".join(map(json.dumps, rows)))
    assert read(path, judge="ann") == (
        [("q1", "a", "ann", 1), ("q1", "b", "ann", 0)], ["grades: relevant = 1, not relevant = 0"],
    )  # fmt: skip


def test_books_of_other_programs_name_the_judges(tmp_path: Path) -> None:
    path = write_file(
        tmp_path, "b.csv", "query_id,title,doc_id,Ann,Bob\nq1,Best shoes,a,2,\nq1,Hats,b,,0\nq1,Ties,c,,\n"
    )
    rows, notes = read(path)
    assert rows == [("q1", "a", "Ann", 2), ("q1", "b", "Bob", 0)]
    assert notes == [
        "each of these columns has the grades of one judge: Ann, Bob", "1 row without a grade left out",
        "columns that are not used: title",
    ]  # fmt: skip
    with pytest.raises(InputError, match="'perhaps'") as caught:
        read(write_file(tmp_path, "b.csv", "query,docid,Ann\nq1,a,2\nq1,b,1\nq1,c,perhaps\n"))
    assert caught.value.line == 4


def test_times_of_parquet(tmp_path: Path) -> None:
    columns = {
        "query_id": ["q"],
        "doc_id": [7],
        "judge": ["ann"],
        "grade": [1],
        "time": [datetime(2026, 1, 5, tzinfo=UTC)],
    }
    parquet.write_table(pa.table(columns), tmp_path / "l.parquet")
    assert read(tmp_path / "l.parquet", "doc_id", "time")[0] == [("7", "2026-01-05T00:00:00.000+00:00")]


def test_an_id_has_priority_over_a_query(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", "query,query_id,doc_id,judge,grade\nred shoes,2,a,ann,1\n")
    rows, notes = read(path, topics={"1": "red shoes", "2": "hats"})
    assert rows == [("2", "a", "ann", 1)]
    assert notes == ["columns that are not used: query"]
    # A query is an id or a text of a topic.
    path = write_file(tmp_path, "b.csv", "query,doc_id,judge,grade\nRed  shoes,a,ann,1\n2,a,ann,1\n")
    assert [row[0] for row in read(path, topics={"1": "red shoes", "2": "hats"})[0]] == ["1", "2"]


def test_topics_that_the_store_does_not_know_are_counted(tmp_path: Path, run: Callable[..., Ended]) -> None:
    store = str(tmp_path / "l.db")
    with LabelStore.open(store, scale="0-3") as opened:
        opened.add_topics({"1": "red shoes"})
    text = "query_id,doc_id,who,grade\n1,a,ann,1\n8,a,ann,1\n9,a,ann,1\n9,a,ann,0\n"
    ended = run("labels", "import", store, str(write_file(tmp_path, "a.csv", text)), "--columns", "judge=who")
    assert ended.out.startswith("4 labels:")
    assert ended.out.endswith("1 replaced by a later label of the same judge and pair; 2 new topics\n")


EXPORTS = {
    "argilla_records": ("records.json", "retrieved.json"),
    "doccano_twice": ("all.jsonl", "chatbot_retrieval.csv"),
    "label_studio_skipped": ("project-12-at-2024-06-12-09-30-0b1c2d3e.json", "candidates.csv"),
}


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
@pytest.mark.parametrize("case", EXPORTS)
def test_exports_are_qrels_and_labels(case: str, tmp_path: Path) -> None:
    expected = CASES[case]["expected"]
    export, run = (OWN_FILES / "files" / case / name for name in EXPORTS[case])
    measures = [name for name in expected if name not in {"topics", "pairs"}]
    scores: dict[str, list[float]] = {name: [] for name in measures}
    for row in evaluate(export, run, measures).table().records():
        scores[row["measure"]].append(row["value"])
    means = {name: sum(values) / expected["topics"] for name, values in scores.items()}
    assert means == {name: pytest.approx(expected[name], abs=1e-6) for name in measures}
    with LabelStore.open(tmp_path / "l.db", scale="0-4") as store:
        import_labels(store, export, judge="ann")
        counts = store.labels().counts()
    assert (counts["topics"], counts["pairs"]) == (expected["topics"], expected.get("pairs", 8))


def test_a_book_of_quepid_is_described() -> None:
    counts = describe_labels(BOOK)
    assert counts is not None
    assert counts == CASES["quepid_book"]["expected"] | {"both": ("Anna Berg", "ben@example.org")}
    result = quality(BOOK)
    assert result.facts()["counts"] == {"n" if name == "topics" else name: value for name, value in counts.items()}
    assert "21 judgments of 11 pairs in 3 topics" in result.sentences[-1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qrels.txt", "q1 0 a 1\n"), ("qrels.csv", "query_id,doc_id,relevance\nq1,a,1\n"),
        ("run.csv", "query,docid,rank,score\nq1,a,1,0.5\n"), ("run.csv", "query,docid,score\nq1,a,0.5\n"),
        ("log.jsonl", '{"user": "u", "query": "q", "results": ["a"]}\n'), ("r.json", '{"q1": {"a": 1.5}}'),
        ("topics.csv", "query_id,text\nq1,red shoes\n"), ("empty.csv", ""),
        ("shop.csv", "query,product,price\nshoes,a,79.9\n"),
    ],
)  # fmt: skip
def test_other_files_are_no_labels(tmp_path: Path, name: str, text: str) -> None:
    assert describe_labels(write_file(tmp_path, name, text)) is None


def test_a_single_judge_is_described(tmp_path: Path) -> None:
    path = write_file(tmp_path, "l.csv", "query_id,doc_id,judge,grade\nq1,a,ann,1\nq1,b,ann,0\n")
    assert describe_labels(path) == {"topics": 1, "pairs": 2, "judges": 1, "judgments": 2}
    disjoint = Labels.of({"ann": {"q": {"a": 1}}, "bob": {"q": {"b": 1}}}).counts()
    assert (disjoint["both"], disjoint["judged_by_both"], disjoint["agreement_of_both"]) == (("ann", "bob"), 0, None)


HEAD = "query_id,doc_id,judge,grade\n"
AGREED = {
    "table.csv": HEAD + "1,a,ann,2\n1,a,bob,2\n1,b,ann,0\n",
    "table.jsonl": '{"query_id": "1", "doc_id": "a", "judge": "ann", "grade": 2}\n'
                   '{"query_id": "1", "doc_id": "a", "judge": "bob", "grade": 2}\n'
                   '{"query_id": "1", "doc_id": "b", "judge": "bob", "grade": 0}\n',
    "semicolons.csv": HEAD.replace(",", ";") + "1;a;ann;2\n1;a;bob;2\n1;b;ann;0\n",
    "book.csv": "query,docid,ann,bob\n1,a,2,2\n1,b,0,\n",
    "book.json": json.dumps({"query_doc_pairs": [
        {"query_text": "1", "doc_id": "a", "judgments": [{"rating": 2, "user_email": judge} for judge in "xy"]},
        {"query_text": "1", "doc_id": "b", "judgments": [{"rating": 0}, {"rating": None, "unrateable": True}]},
    ]}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
@pytest.mark.parametrize("name", AGREED)
def test_labels_of_judges_who_agree_are_qrels(tmp_path: Path, name: str) -> None:
    rows = Qrels.read(write_file(tmp_path, name, AGREED[name])).table.to_pylist()
    assert [(row["query_id"], row["doc_id"], row["relevance"]) for row in rows] == [("1", "a", 2), ("1", "b", 0)]


@pytest.mark.filterwarnings("default::judged.errors.JudgedWarning")
@pytest.mark.parametrize("name", AGREED)
def test_the_error_for_judges_who_differ_has_a_command(
    tmp_path: Path, name: str, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other_grade = {"table.csv": ("bob,2", "bob,1"), "table.jsonl": ('"bob", "grade": 2', '"bob", "grade": 1'),
                   "semicolons.csv": ("bob;2", "bob;1"), "book.csv": ("2,2", "2,1"),
                   "book.json": ('2, "user_email": "y"', '1, "user_email": "y"')}  # fmt: skip
    path = write_file(tmp_path, f"my {name}", AGREED[name].replace(*other_grade[name]))
    (tmp_path / "run.txt").write_text("1 Q0 a 1 2.0 r\n1 Q0 b 2 1.0 r\n")
    ended = run("evaluate", path.name, "run.txt")
    assert ended.code == 2
    assert "whose grades differ for 1 of 2 pairs" in ended.err
    words = shlex.split(ended.err.partition("Fix: use judged ")[2].partition(", and then")[0])
    assert run(*words).code == 0
    assert run("evaluate", words[words.index("-o") + 1], "run.txt").code == 0
