"""Import and export of labels: round trips, formats of other tools, and errors with their line."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from judged import Qrels, review
from judged.data.topics import Topics
from judged.errors import InputError, JudgedWarning
from judged.labels import Labels, LabelStore, import_labels, qrels_of, read_labels, write_labels
from judged.labels.exchange import judgment_list, quepid_ratings, read_pairs, read_topics

TOPICS = {"1": "who wrote Faust", "2": "red, shoes"}
# As in Quepid's app/controllers/api/v1/books_controller.rb: one column per rater, a space before a formula.
BOOK = 'query,docid,ann,Unknown\nwho wrote Faust,a,3.0,2.0\nwho wrote Faust,b,,0.0\n"red, shoes",a,1.0,\n'
# As in Quepid's app/views/api/v1/export/books/_book.json.jbuilder.
BOOK_JSON = {
    "name": "a book",
    "query_doc_pairs": [
        {"query_text": "who wrote Faust", "doc_id": "a", "position": 1, "judgments": [
            {"rating": 3.0, "unrateable": False, "judge_later": False, "user_email": "ann", "explanation": "him"},
            {"rating": None, "unrateable": True, "judge_later": False, "user_email": "bob", "explanation": None},
            {"rating": None, "unrateable": False, "judge_later": True, "user_email": "cy", "explanation": None},
        ]},
        {"query_text": "red, shoes", "doc_id": "a", "position": None, "judgments": [{"rating": 0.0}]},
    ],
}  # fmt: skip
# As for PUT _plugins/_search_relevance/judgments on docs.opensearch.org.
RATINGS = [{"query": "who wrote Faust", "ratings": [{"docId": "a", "rating": "3.000"}, {"docId": "b", "rating": "0"}]}]
TABLE = [
    {"query_id": "1", "doc_id": "a", "judge": "ann", "kind": "human", "repeat": 0, "grade": 3.0, "valid": True,
     "note": 'a, "quoted"\nnote', "seconds": 2.5, "time": "2026-01-02T03:04:05.678+00:00", "prompt": "", "model": "",
     "seed": None, "logprobs": ""},
    {"query_id": "2", "doc_id": "a", "judge": "llm", "kind": "model", "repeat": 1, "grade": None, "valid": False,
     "note": "", "seconds": None, "time": "", "prompt": "ab12", "model": "m-1", "seed": 7, "logprobs": '{"1": -0.5}'},
]  # fmt: skip


def main_columns(labels: Labels) -> list[tuple[object, ...]]:
    names = ("query_id", "doc_id", "judge", "grade", "valid")
    return [tuple(row[name] for name in names) for row in labels.table.to_pylist()]


def write_file(folder: Path, name: str, text: object) -> Path:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl", "labels.parquet"])
def test_labels_round_trip(tmp_path: Path, name: str) -> None:
    labels = Labels.of(pa.Table.from_pylist(TABLE))
    write_labels(labels, tmp_path / name, notes=True)
    assert read_labels(tmp_path / name).table.to_pylist() == TABLE
    store = LabelStore.open(tmp_path / "labels.db")
    assert import_labels(store, tmp_path / name).labels == 2
    assert store.labels().table.to_pylist() == TABLE == read_labels(tmp_path / "labels.db").table.to_pylist()


def test_notes_are_exported_only_on_request(tmp_path: Path) -> None:
    labels = Labels.of(pa.Table.from_pylist(TABLE))
    for name in ("labels.csv", "labels.jsonl", "labels.parquet"):
        write_labels(labels, tmp_path / name)
        assert read_labels(tmp_path / name).table["note"].to_pylist() == ["", ""]
        assert b"quoted" not in (tmp_path / name).read_bytes()


def test_quepid_books_as_csv(tmp_path: Path) -> None:
    labels = read_labels(write_file(tmp_path, "book.csv", BOOK), topics=TOPICS)
    assert main_columns(labels) == [
        ("1", "a", "ann", 3, True), ("1", "a", "Unknown", 2, True), ("1", "b", "Unknown", 0, True),
        ("2", "a", "ann", 1, True),
    ]  # fmt: skip


def test_quepid_books_as_json(tmp_path: Path) -> None:
    labels = read_labels(write_file(tmp_path, "book.json", BOOK_JSON), topics=TOPICS)
    assert main_columns(labels) == [
        ("1", "a", "ann", 3, True), ("1", "a", "bob", None, True), ("1", "a", "cy", None, False),
        ("2", "a", "Unknown", 0, True),
    ]  # fmt: skip
    assert labels.table["note"].to_pylist() == ["him", "", "", ""]


@pytest.mark.parametrize(
    "document",
    [
        RATINGS,
        {"name": "n", "type": "IMPORT_JUDGMENT", "judgmentRatings": RATINGS},
        {"hits": {"total": {"value": 1}, "hits": [{"_id": "x", "_source": {"judgmentRatings": RATINGS}}]}},
    ],
)
def test_judgment_lists_of_opensearch(tmp_path: Path, document: object) -> None:
    path = write_file(tmp_path, "list.json", document)
    labels = read_labels(path, judge="log", kind="click", topics=TOPICS)
    assert main_columns(labels) == [("1", "a", "log", 3, True), ("1", "b", "log", 0, True)]
    assert labels.table["kind"].to_pylist() == ["click", "click"]
    with pytest.raises(InputError):  # no judge in the file
        read_labels(path, topics=TOPICS)


def test_qrels_are_labels_of_the_named_judge(tmp_path: Path) -> None:
    for name, text in (("qrels.txt", "1 0 a 3\n1 0 b 0\n"), ("qrels.csv", "query_id,doc_id,relevance\n1,a,3\n1,b,0\n")):
        path = write_file(tmp_path, name, text)
        assert main_columns(read_labels(path, judge="ann")) == [("1", "a", "ann", 3, True), ("1", "b", "ann", 0, True)]
        with pytest.raises(InputError, match="--judge"):
            read_labels(path)


def test_ratings_and_judgment_lists_round_trip(tmp_path: Path) -> None:
    qrels = qrels_of(read_labels(write_file(tmp_path, "book.csv", BOOK), topics=TOPICS), by="mean")
    for name, text in (("r.csv", quepid_ratings(qrels, TOPICS)), ("l.json", judgment_list(qrels, TOPICS))):
        labels = qrels_of(read_labels(write_file(tmp_path, name, text), judge="x", topics=TOPICS))
        assert labels.table.equals(qrels.table)


def test_topics_with_the_same_text_raise(tmp_path: Path) -> None:
    same = {"1": "a text", "2": "a text"}
    with pytest.raises(InputError, match="two topics have the text 'a text'"):
        judgment_list(Qrels.of({"1": {"a": 1}, "2": {"a": 1}}), same)
    with pytest.raises(InputError) as raised:
        read_labels(write_file(tmp_path, "book.csv", "query,docid,ann\na text,d,1\n"), topics=same)
    assert raised.value.line == 2


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("l.csv", "query_id,doc_id,judge,grade\n1,a,ann,1\n1,b,ann,blue\n", 3),
        ("l.csv", "query_id,doc_id,judge,grade\n1,a,ann,inf\n", 2),
        ("l.csv", "query_id,doc_id,judge,grade\n1,a,,1\n", 2),
        ("l.csv", "query_id,doc_id,judge,grade,kind\n1,a,ann,1,robot\n", 2),
        ("l.csv", "query_id,doc_id,judge,grade,valid\n1,a,ann,1,perhaps\n", 2),
        ("l.csv", "query_id,doc_id,judge,grade\n1,a,ann,7\n", 2),  # not on the scale
        (
            "l.jsonl",
            '{"query_id": "1", "doc_id": "a", "judge": "ann", "grade": 1}\n{"query_id": "1", "doc_id": "b"}\n',
            2,
        ),
        ("book.csv", "query,docid,ann\nwho wrote Faust,a,x\n", 2),
        ("l.csv", "query_id,doc_id,judge,grade\n", None),
        ("b.json", '{"query_doc_pairs": [{"doc_id": "a", "judgments": [{"rating": 1}]}]}', None),
        ("b.json", '{"judgmentRatings": [{"query": "who wrote Faust", "ratings": [{"rating": 1}]}]}', None),
    ],
)
def test_errors_have_a_line_and_import_nothing(tmp_path: Path, name: str, text: str, line: int | None) -> None:
    store = LabelStore.open(tmp_path / "labels.db")
    store.add_topics(TOPICS)
    with pytest.raises(InputError) as raised:
        import_labels(store, write_file(tmp_path, name, text), judge="" if name == "l.csv" else "x")
    assert (raised.value.path, raised.value.line) == (str(tmp_path / name), line)
    assert raised.value.fix
    assert len(store) == 0


def test_texts_become_topics_of_an_empty_store(tmp_path: Path) -> None:
    store = LabelStore.open(tmp_path / "labels.db")
    import_labels(store, write_file(tmp_path, "book.csv", BOOK))
    assert [row["query_id"] for row in store.topics()] == sorted(TOPICS.values())


def test_unknown_texts_become_new_topics(tmp_path: Path) -> None:
    store = LabelStore.open(tmp_path / "labels.db")
    store.add_topics(TOPICS)
    ratings = [{"docId": "a", "rating": "1"}, {"docId": "b", "rating": "2"}]
    lists = {"judgmentRatings": [{"query": query, "ratings": ratings} for query in ("who wrote Faust", "nobody asked")]}
    path = write_file(tmp_path, "lists.json", lists)
    assert import_labels(store, path, judge="w") == (4, 0, 1)
    assert {row["query_id"] for row in store.topics()} == {*TOPICS, "nobody asked"}
    lists["judgmentRatings"] *= 2
    assert import_labels(store, write_file(tmp_path, "twice.json", lists), judge="w") == (8, 8, 0)
    assert store.labels().last.num_rows == 4
    by_id = write_file(tmp_path, "new.csv", "query_id,doc_id,judge,grade\nq77,a,ann,1\n1,a,ann,1\n")
    assert import_labels(store, by_id) == (2, 0, 1)


def test_query_sets_are_topics(tmp_path: Path) -> None:
    queries = {"name": "n", "sampling": "manual", "querySetQueries": [{"queryText": "red shoes"}, {"queryText": "hat"}]}
    assert Topics.read(write_file(tmp_path, "set.json", queries)).table["query_id"].to_pylist() == ["red shoes", "hat"]


NEWER, OLDER = "1,a,ann,3,2026-02-01T09:00:00Z", "1,a,ann,0,2026-02-01T09:30:00+02:00"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((NEWER, OLDER), 3),
        ((OLDER, NEWER), 3),
        ((NEWER, "1,a,ann,1,"), 1),
        (("1,a,ann,1,", OLDER), 0),
        ((NEWER, "1,a,ann,2,2026-02-01T09:00:00.000Z"), 2),
        ((NEWER, "1,a,bob,2,2030-01-01"), 3),
    ],
)
def test_the_latest_label_counts(tmp_path: Path, rows: tuple[str, ...], expected: float) -> None:
    """Independent of the order of imports; without a time, the last one counts."""
    store = LabelStore.open(tmp_path / "labels.db")
    head = "query_id,doc_id,judge,grade,time\n"
    replaced = [
        import_labels(store, write_file(tmp_path, f"{i}.csv", head + row)).replaced for i, row in enumerate(rows)
    ]
    assert replaced == [0, 0 if "bob" in rows[1] else 1]
    path = write_file(tmp_path, "all.csv", head + "\n".join(rows))
    with nullcontext() if "bob" in rows[1] else pytest.warns(JudgedWarning, match=r"all\.csv: 1 label replaced by"):
        labels = read_labels(path)
    for imported in (store.labels(), labels):
        assert imported.grades[0, imported.judges.index("ann")] == expected


def test_an_invalid_time_raises_with_its_line(tmp_path: Path) -> None:
    text = "query_id,doc_id,judge,grade,time\n1,a,ann,3,2026-02-01\n1,b,ann,3,01/02/2026\n"
    with pytest.raises(InputError) as caught:
        read_labels(write_file(tmp_path, "labels.csv", text))
    assert caught.value.line == 3


def test_pairs_are_read_from_tables_reviews_and_qrels(tmp_path: Path) -> None:
    listed = review({"q": {"a": 2, "b": 0}}, {"q": ["b", "x", "a"]}, measure="nDCG@2")
    expected = [("q", "b"), ("q", "x"), ("q", "a")]
    for name, text in (("r.csv", listed.csv()), ("r.tsv", listed.tsv()), ("r.json", listed.json())):
        assert read_pairs(write_file(tmp_path, name, text)) == expected
    assert read_pairs(write_file(tmp_path, "qrels.txt", "q 0 a 1\n")) == [("q", "a")]
    parquet.write_table(pa.table({"query_id": ["q"], "doc_id": ["a"], "stratum": [1]}), tmp_path / "pool.parquet")
    assert read_pairs(tmp_path / "pool.parquet") == [("q", "a")]
    by_text = write_file(tmp_path, "list.csv", "query,doc_id,users\nwho wrote Faust,a,3\n")
    assert read_pairs(by_text, TOPICS) == [("1", "a")]
    assert read_topics(write_file(tmp_path, "list.csv", "query,users\nWho  wrote faust,3\nelse,1\n"), TOPICS) == {"1"}
    lists = {"schema": "judged.queries/1", "zero": [{"query": "red, shoes"}], "slow": [], "left": [{"query": "else"}]}
    assert read_topics(write_file(tmp_path, "list.json", lists), TOPICS) == {"2"}
    with pytest.raises(InputError):
        read_topics(write_file(tmp_path, "list.csv", "query,users\nelse,3\n"), TOPICS)
    with pytest.raises(InputError) as raised:  # no documents
        read_pairs(write_file(tmp_path, "queries.csv", "query,users\nwho wrote Faust,3\n"))
    assert raised.value.line == 2


def test_query_ids_have_priority_over_texts(tmp_path: Path) -> None:
    """A column `text` can be the text of the document: it must not change or add topics."""
    table = write_file(
        tmp_path, "t.csv", "query_id,doc_id,judge,grade,text\n1,D9,ann,1,A document of desks\n1,D8,ann,0,\n"
    )
    store = LabelStore.open(tmp_path / "a.db")
    import_labels(store, table)
    assert store.topics() == []
    store.add_topics({"1": "Chair", "2": "Desk"})
    import_labels(store, table)
    assert {row["query_id"] for row in store.labels().table.to_pylist()} == {"1"}
    write_file(tmp_path, "t.csv", "query_id,doc_id,judge,grade,text\n1,D9,ann,1,desk \n")
    with pytest.raises(InputError, match="query_id 1, but its text 'desk' is the text of topic 2") as caught:
        import_labels(store, table)
    assert caught.value.line == 2
    write_file(tmp_path, "t.csv", "query_id,doc_id,judge,grade,text\n1,D9,ann,1,CHAIR\n")
    assert import_labels(store, table).labels == 1


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    for name, text in (("l.csv", "query_id,doc_id\nq,a\n"), ("l.json", '[{"query_id": "q", "doc_id": "a"}]')):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert read_pairs(tmp_path / name) == [("q", "a")]


def test_many_topics_are_exported_in_linear_time() -> None:
    qrels = Qrels.of({f"q{i}": {"a": 1} for i in range(100_000)})
    texts = {f"q{i}": f"text {i}" for i in range(100_000)}
    assert quepid_ratings(qrels, texts).count("\n") == 100_000


def test_rows_without_a_rating_give_a_warning(tmp_path: Path) -> None:
    path = write_file(tmp_path, "r.csv", "query,docid,rating\nfoo,a,2\nfoo,b,\nbar,a, \n")
    with pytest.warns(JudgedWarning, match=r"r\.csv: 2 rows without a grade left out"):
        assert len(read_labels(path, judge="ann").table) == 1
