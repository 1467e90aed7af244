"""Texts of documents: input formats, selection of documents, and errors."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from judged.data.texts import Text, Texts, document_ids, shorten
from judged.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    ("d1", "Income tax", "How it is paid.\nAnd when."),
    ("d2", "", 'no title, but a comma, "quotes" and é'),
    ("7", "seven", ""),
]
WHOLE = {doc: Text(title, text) for doc, title, text in ROWS}
FLAT = {doc: Text(title, text.replace("\n", " ")) for doc, title, text in ROWS}


def _records(doc: str = "doc_id", text: str = "text") -> list[dict[str, Any]]:
    return [{doc: row[0], "title": row[1], text: row[2], "other": 3} for row in ROWS]


@pytest.mark.parametrize(("doc", "text"), [("doc_id", "text"), ("_id", "body"), ("id", "contents"), ("docno", "text")])
@pytest.mark.parametrize("wanted", [None, {"d1", "7", "absent"}])
def test_jsonl(tmp_path: Path, doc: str, text: str, wanted: set[str] | None) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text("\n".join(map(json.dumps, _records(doc, text))) + "\n\n", encoding="utf-8")
    expected = {key: text_of_doc for key, text_of_doc in WHOLE.items() if wanted is None or key in wanted}
    assert Texts.read(path, wanted).documents == expected
    for ending, pack in ((".gz", gzip.compress), (".bz2", bz2.compress)):
        packed = tmp_path / f"docs.jsonl{ending}"
        packed.write_bytes(pack(path.read_bytes()))
        assert Texts.read(packed, wanted).documents == expected


def test_json_of_both_shapes(tmp_path: Path) -> None:
    path = tmp_path / "docs.json"
    path.write_text(json.dumps(_records(), indent=1), encoding="utf-8")
    assert Texts.read(path).documents == WHOLE
    path.write_text(json.dumps({row[0]: {"title": row[1], "text": row[2]} for row in ROWS}, indent=1), encoding="utf-8")
    assert Texts.read(path, {"d2"}).documents == {"d2": WHOLE["d2"]}
    path.write_text('{"a": "the text"}', encoding="utf-8")
    assert Texts.read(path).documents == {"a": Text("", "the text")}
    path.write_text('{\n"a": "the text"\n}', encoding="utf-8")
    assert Texts.read(path).documents == {"a": Text("", "the text")}


@pytest.mark.parametrize("wanted", [None, {"d2", "7"}])
def test_csv_with_lines_in_a_field_keeps_ids_as_they_are(tmp_path: Path, wanted: set[str] | None) -> None:
    path = tmp_path / "docs.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["year", "docno", "title", "body"])
        writer.writerows([["1999", *row] for row in ROWS] + [["", "007", "", "spy"]])
    expected = {**WHOLE, "007": Text("", "spy")}
    expected = {key: text_of_doc for key, text_of_doc in expected.items() if wanted is None or key in wanted}
    assert Texts.read(path, wanted).documents == expected


def test_csv_with_a_text_longer_than_a_field_of_pythons_reader_may_be(tmp_path: Path) -> None:
    path = tmp_path / "docs.csv"
    path.write_text(f"id,text\na,{'word ' * 400_000}\nb,short\n", encoding="utf-8")
    assert len(Texts.read(path).text("a")) == 2_000_000
    assert Texts.read(path).text("b") == "short"


def test_tsv_with_and_without_names(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    lines = ["\t".join((doc, title, text.replace("\n", " "))) for doc, title, text in ROWS]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert Texts.read(path).documents == FLAT
    path.write_text("\n".join(["id\ttitle\ttext", *lines]), encoding="utf-8")
    assert Texts.read(path).documents == FLAT
    path.write_text("text\tdoc-id\r\nb c\td1", encoding="utf-8")
    assert Texts.read(path).documents == {"d1": Text("", "b c")}
    path.write_text("0\tfirst passage\n1\tsecond\n", encoding="utf-8")
    assert Texts.read(path, {"1"}).documents == {"1": Text("", "second")}
    path.write_text("D1\thttp://a\tthe title\tthe body\n", encoding="utf-8")  # as MS MARCO writes documents
    assert Texts.read(path).documents == {"D1": Text("the title", "the body")}


@pytest.mark.parametrize("wanted", [None, {"d1"}])
def test_parquet_with_numbers_as_ids(tmp_path: Path, wanted: set[str] | None) -> None:
    path = tmp_path / "docs.parquet"
    parquet.write_table(pa.table({name: [row[name] for row in _records()] for name in _records()[0]}), path)
    assert Texts.read(path, wanted).documents == (WHOLE if wanted is None else {"d1": WHOLE["d1"]})
    parquet.write_table(pa.table({"id": [1, 20], "text": [None, "twenty"]}), path)
    assert Texts.read(path, {"20", "1"}).documents == {"1": Text("", ""), "20": Text("", "twenty")}


def test_the_first_of_a_document_that_stands_twice_is_kept() -> None:
    assert Texts.of({"a": "x"}, doc_ids={"b"}).documents == {}
    assert Texts.of({7: {"text": "x"}}).documents == {"7": Text("", "x")}


def test_twice(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n', encoding="utf-8")
    assert Texts.read(path).text("a") == "one"


def test_an_escaped_id_a_nested_one_and_a_number_are_found(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    lines = [
        '{"meta": {"id": "zz"}, "id": "caf\\u00e9", "text": "one"}',
        '{"meta": {"id": "zz"}, "id": "b", "text": "says \\"id\\": \\"c\\""}',
        '{"ID" : 12, "text": ["p1", "p2"]}',
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert Texts.read(path, {"café", "b", "12", "c", "zz"}).documents == {
        "café": Text("", "one"),
        "b": Text("", 'says "id": "c"'),
        "12": Text("", "p1\np2"),
    }
    assert set(Texts.read(path, {"café"}).documents) == {"café"}
    assert set(Texts.read(path, {"12"}).documents) == {"12"}


def test_what_is_not_wanted_is_not_parsed_and_what_is_must_be_whole(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n{"id": "b", "text": broken}\n', encoding="utf-8")
    assert Texts.read(path, {"a"}).text("a") == "one"
    with pytest.raises(InputError, match=r"docs.jsonl:2: invalid JSON"):
        Texts.read(path, {"b"})


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b'{"text": "x"}\n', r"a.jsonl:1: .* not a document with an id"),
        ("a.jsonl", b'{"id": 1.5, "text": "x"}\n', "use texts or integers as ids"),
        ("a.json", b"[1]", "not a document"),
        ("a.json", b'{\n"a": 3}', "must be text or an object"),
        ("a.csv", b"id,year\na,1999\n", "no text among the columns id, year"),
        ("a.csv", b"name of it\nx\n", "no document id"),
        ("a.tsv", b"a\tb\tc\td\te\n", "no document id"),
        ("a.tsv", b"a\tb\nc\n", r"a.tsv:2: each line must have 2 fields like the first, got 1"),
        ("a.tsv", b"a\t\xff\n", "cannot be read"),
        ("a.csv", "id,text\n".encode("utf-16"), "UTF-16"),
        ("a.parquet", b"PAR1 and nothing", "damaged"),
        ("a.trec", b"<DOC>\n<DOCNO>1</DOCNO>\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\n", r"a.trec:4: a <DOC> without </DOC>"),
        ("a.trec", b"<DOC><DOCNO>1</DOCNO>\n<DOC><DOCNO>2</DOCNO></DOC>\n", r"a.trec:1: a <DOC> without </DOC>"),
        ("a.trec", b"<DOC><DOCNO>1</DOCNO></DOC>\n</DOC>\n", r"a.trec:1: a </DOC> without <DOC>"),
        ("a.trec", b"<DOCS>\n<DOC>\n<DOCNO> </DOCNO></DOC>\n", r"a.trec:2: a document has no id"),
        ("a.trec", b"<DOC>" + b"x\n" * (9 << 20), r"this document has more than 16,777,216 bytes"),
        ("a.jsonl.gz", gzip.compress(b'{"id": "1", "text": "x"}\n' * 100)[:-20], "truncated"),
    ],
)
def test_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        Texts.read(path)


_NEWS = """<DOC>
<DOCNO> FT911-1 </DOCNO>
<PROFILE>_AN-BENBQAD8FT</PROFILE>
<HEADLINE>
FT  14 MAY 91 / Tax &amp;
spending
</HEADLINE>
<TEXT>
<P>How it is paid if x < 5.</P>
<P>And caf\xe9s.
</TEXT>
<TEXT>More.</TEXT>
</DOC>

<DOC id="AFP_1" type="story">
<HEADLINE>No text</HEADLINE>
<TEXT></TEXT>
</DOC>
<doc><docno>WT1-B1</docno><dochdr>http://a.b/c <200></dochdr>
<html><head><title>A page</title></head> <script>if (a < b) { }</script>It says <b>this</b><!-- not this -->.</html>
</doc >
"""


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_documents_of_trec(tmp_path: Path, encoding: str, pack: Any) -> None:
    path = tmp_path / "ft911_1"
    path.write_bytes(pack(_NEWS.encode(encoding)))
    texts = Texts.read(path)
    assert texts.documents["FT911-1"].title == "FT 14 MAY 91 / Tax & spending"
    assert texts.text("FT911-1").split() == ["How", "it", "is", "paid", "if", "x", "<", "5.", "And", "cafés.", "More."]
    assert texts.documents["AFP_1"] == Text("No text", "")
    assert (texts.title("WT1-B1"), texts.text("WT1-B1").split()) == ("A page", ["It", "says", "this", "."])
    assert list(Texts.read(path, {"AFP_1"}).documents) == ["AFP_1"]


def test_a_document_of_trec_may_end_in_another_block(tmp_path: Path) -> None:
    path = tmp_path / "many.trec"
    many = range(40_000)
    path.write_text(
        "".join(f"<DOC>\n<DOCNO>{number}</DOCNO>\n<TEXT>{'word ' * 20}{number}</TEXT>\n</DOC>\n" for number in many)
    )
    texts = Texts.read(path)
    assert list(texts.documents) == [str(number) for number in many]
    assert all(texts.text(str(number)).endswith(f" {number}") for number in many)


def test_a_folder_of_texts_and_of_files_that_hold_many(tmp_path: Path) -> None:
    for name, content in {
        "b.txt": "the second",
        "law/tax.1.md": "\ufeffIncome\ntax\n",
        "law/a.txt.gz": gzip.compress(b"packed"),
        "news/ft911": _NEWS.encode(),
        "shards/part.jsonl": b'{"id": "j", "title": "t", "text": "x"}',
        ".git/config": b"\0",
        "law/.hidden": b"\0",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    texts = Texts.read(tmp_path)
    assert list(texts.documents) == ["b", "law/a", "law/tax.1", "FT911-1", "AFP_1", "WT1-B1", "j"]
    assert texts.documents["law/tax.1"] == Text("", "Income\ntax")
    assert (texts.text("law/a"), texts.title("j")) == ("packed", "t")
    assert list(Texts.read(tmp_path, {"law/a", "AFP_1"}).documents) == ["law/a", "AFP_1"]


def test_a_folder_of_beir_is_its_corpus(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "t", "text": "x", "metadata": {}}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "a query"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert Texts.read(tmp_path).documents == {"d1": Text("t", "x")}


def test_folders_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file in this folder"):
        Texts.read(tmp_path)
    (tmp_path / "a.txt").write_text("good")
    (tmp_path / "b.pdf").write_bytes(b"%PDF\0")
    (tmp_path / "c.txt").write_bytes(b"\xff\xfa caf\xe9")
    with pytest.raises(InputError, match=r"2 of 3 files are not UTF-8 text: b.pdf, c.txt"):
        Texts.read(tmp_path)
    (tmp_path / "a.md").write_text("another")
    with pytest.raises(InputError, match=r"two files have the id 'a': a.md and a.txt"):
        Texts.read(tmp_path)


def test_other_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        Texts.read(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="must be a path or a dict"):
        Texts.of(3)
    with pytest.raises(InputError, match="must be text or an object"):
        Texts.of({"a": 3})


def test_snippets() -> None:
    texts = Texts.of(
        {
            "repeated": {"title": "flow past a plate", "text": "Flow past a plate .\n the boundary layer"},
            "title": {"title": "only a title"},
            "long": "one two three four",
        }
    )
    assert texts.snippet("repeated") == "Flow past a plate . the boundary layer"
    assert texts.snippet("title") == "only a title"
    assert texts.snippet("long", 14) == "one two..."
    assert texts.snippet("long", 18) == "one two three four"
    assert texts.snippet("absent") == texts.text("absent") == texts.title("absent") == ""


@given(st.text("ab c.", max_size=30), st.integers(0, 32))
def test_a_shortened_text_fits_and_begins_as_the_text_does(text: str, length: int) -> None:
    short = shorten(text, length)
    assert len(short) <= length
    assert short == text if len(text) <= length else text.startswith(short.rstrip("."))


def test_ids_are_read_from_documents_and_from_lists(tmp_path: Path) -> None:
    """However documents are laid out; what is neither documents nor a list is refused with its line."""
    rows = [{"doc_id": doc, "title": "a, b", "text": "some words"} for doc in ("d1", "d2")]
    jsonl = "\n".join(map(json.dumps, rows))
    layouts = {
        "docs.jsonl": jsonl,
        "docs.json": json.dumps(rows),
        "docs.csv": 'doc_id,title\nd1,"a, b"\nd2,b\n',
        "docs.tsv": "title\tdocno\na b\td1\nb\td2\n",
        "docs.trec": "".join(f"<DOC><DOCNO>{doc}</DOCNO><TEXT>words</TEXT></DOC>\n" for doc in ("d1", "d2")),
        "list.txt": "\ufeffd1\r\n\r\n d2 \r\n",
    }
    for name, text in layouts.items():
        (tmp_path / name).write_text(text)
        assert document_ids(tmp_path / name) == ["d1", "d2"], name
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        assert document_ids(tmp_path / f"{name}.gz") == ["d1", "d2"], name
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "docs.parquet")
    (tmp_path / "folder").mkdir()
    for doc in ("d1", "d2"):
        (tmp_path / "folder" / f"{doc}.txt").write_text("words")
    assert document_ids(tmp_path / "docs.parquet") == document_ids(tmp_path / "folder") == ["d1", "d2"]
    for text in ("d1\nq1 0 d2 1\n", "d1\nq1\t0\td2\t1\n"):
        (tmp_path / "qrels").write_text(text)
        with pytest.raises(InputError, match="a line must hold one id") as caught:
            document_ids(tmp_path / "qrels")
        assert caught.value.line == 2
