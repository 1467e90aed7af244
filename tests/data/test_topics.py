"""Topics in all supported formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest

from judged.data.topics import Topics
from judged.errors import InputError
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from collections.abc import Callable


TREC = """<top>
<num> Number: 303
<title> Hubble Telescope Achievements

<desc> Description:
Identify positive accomplishments
of the telescope.
<narr> Narrative:
Any.
</top>
<TOP><num>304</num><title>Endangered Species</title></TOP>
"""
XML = """<?xml version="1.0"?>
<!DOCTYPE web [ <!ELEMENT web (topic)*> ]>
<web><topic number="1" type="faceted"><query>  income
 tax </query><subtopic number="1">one</subtopic><subtopic number="2">two <b>2</b></subtopic></topic></web>
"""
BEIR = """{"_id": "1", "text": "income tax reduction", "metadata": {}}
{"_id": "007", "text": "peace, \\"now\\"", "metadata": {"a": 1}}
"""
EXPECTED = {"1": "income tax reduction", "007": 'peace, "now"'}


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ('1\tincome tax reduction\n007\tpeace, "now"\n', ()),
        ('\ufeff1\tincome tax reduction\r\n\r\n007\tpeace, "now"', ()),
        ('qid\ttext\tkind\n1\tincome tax reduction\ta\n007\tpeace, "now"\tb\n', ("kind",)),
        ('Query ID,title,kind\n1,income tax reduction,a\n007,"peace, ""now""",b\n', ("kind",)),
        ('1 income tax reduction\n007 peace, "now"\n', ()),
        ('1: income tax reduction\n007: peace, "now"\n', ()),
        ('1, income tax reduction\n007 , peace, "now"\n', ()),
        ('{"1": "income tax reduction", "007": "peace, \\"now\\""}', ()),
        ('{"1": {"Query": "income tax reduction", "Kind": "a"}, "007": {"Query": "peace, \\"now\\""}}', ("kind",)),
        ('[{"id": 1, "text": "income tax reduction"}, {"id": "007", "text": "peace, \\"now\\""}]', ()),
        (BEIR, ("metadata",)),
    ],
)  # fmt: skip
def test_forms(text: str, attributes: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "some.topics.txt"
    path.write_bytes(text.encode())
    topics = Topics.read(path)
    assert {query: topics.text(query) for query in EXPECTED} == EXPECTED
    assert (len(topics), topics.attributes, topics.where) == (2, attributes, str(path))


def test_trec(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text(TREC)
    topics = Topics.read(path)
    assert topics.table.to_pylist() == [
        {
            "query_id": "303",
            "text": "Hubble Telescope Achievements",
            "description": "Identify positive accomplishments of the telescope.",
            "narrative": "Any.",
        },
        {"query_id": "304", "text": "Endangered Species", "description": None, "narrative": None},
    ]


def test_trec_lines_and_ends_that_close_nothing(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text("<top><num>1<title>x</top>\n</top>\n</top>\n\n<top>\n<num>2</top>")
    with pytest.raises(InputError, match="no text") as caught:
        Topics.read(path)
    assert caught.value.line == 5
    path.write_text("<top><num>1<title>x</top></top><top><num>2<title>y</top>")
    topics = Topics.read(path)
    assert [topics.text(query_id) for query_id in ("1", "2")] == ["x", "y"]


@pytest.mark.parametrize(
    "text",
    [
        "when is x < 5 true",
        "List<String> in java",
        "what does a <b>bold</b> tag do",
        "is 1 < 2 > 0",
        "a <br/> b",
        "Map<K, V> or <T extends Object>",
    ],
)
def test_a_less_than_sign_in_a_trec_topic_is_text(text: str, tmp_path: Path) -> None:
    """The text ended at the sign, and what followed became an attribute."""
    path = tmp_path / "topics"
    for form in ("<top>\n<num> Number: 7\n<title> {}\n<desc> Description:\nAny < {} .\n</top>\n",
                 "<top><num>7</num><title>{}</title><desc>Any < {} .</desc></top>"):  # fmt: skip
        path.write_text(form.format(text, text))
        assert Topics.read(path).table.to_pylist() == [
            {"query_id": "7", "text": text, "description": f"Any < {text} ."}
        ]


def test_tags_of_ones_own_begin_a_line_or_follow_the_end_of_another(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text('<top>\n<num>7</num> <kind>law</kind>\n<title lang="en">x\n<area> tax\n<desc> a\n<desc> b\n</top>')
    (row,) = Topics.read(path).table.to_pylist()
    assert row == {"query_id": "7", "kind": "law", "text": "x", "area": "tax", "description": "a\nb"}


def test_topics_of_xml_are_read_whatever_the_case_of_their_tag(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text(
        "<topics><topic number='1'><title>x</title></topic><Topic number='2'><Title>y</Title></Topic>"
        "<TOP><num>3</num><title>z</title><text>w</text></TOP></topics>"
    )
    topics = Topics.read(path)
    assert [topics.text(query_id) for query_id in ("1", "2", "3")] == ["x", "y", "w"]
    assert topics.table["title"].to_pylist() == [None, None, "z"]


def test_xml(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text(XML)
    assert Topics.read(path).table.to_pylist() == [
        {"query_id": "1", "text": "income tax", "type": "faceted", "subtopic": "one\ntwo 2"}
    ]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame: Callable[[Any], Any]) -> None:
    topics = Topics.of(frame({"qid": [1, 2], "query": ["one", "two"], "level": [3, 4]}))
    assert (topics.text("2"), topics.attributes) == ("two", ("level",))
    assert topics.table["level"].to_pylist() == ["3", "4"]


def test_a_topic_that_is_not_here_has_no_text() -> None:
    assert Topics.of({"1": "one"}).text("2") == ""


def test_it_is_an_arrow_stream() -> None:
    assert pl.DataFrame(Topics.of({"1": "one"})).to_dicts() == [{"query_id": "1", "text": "one"}]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", None, "no topics"),
        ("1\tone\n1\ttwo\n", None, "topic 1 appears twice"),
        ("1\tone\n2\ttwo\tthree\n", 2, "3 fields, expected 2"),
        ("qid\ttext\n1\n", 2, "1 field, expected 2"),
        ("one\n", 1, "no topic id and text"),
        ("1\tone\n\t\ttwo\n", 2, "3 fields"),
        ("1\tone\n\ttwo\n", 2, "query id is empty"),
        ('{"1": 5}', None, "5 is not a topic"),
        ('{"1": {"name": "x"}}', None, "no text among"),
        ('{"1": "one", "1": "two"}', None, "appears twice"),
        ('{"id": "1"}\n{"id": "2"}\n', 1, "no text among"),
        ('{"id": "1", "text": "x"}\n{"id": 1.5, "text": "x"}\n', 2, "1.5 is a float"),
        ("5", 1, "no topic id"),
        ("<top><num>1<title>x", None, "without </top>"),
        ("<top><num>1<title>x<top><num>2<title>y</top>", None, "without </top>"),
        # a search for each end would not come back
        pytest.param("<top>\n" * 50_000, None, "without </top>", id="many tops"),
        pytest.param(
            "\n".join(f'{{"id": "{number}", "text": "x", "k{number}": 1}}' for number in range(600)),
            499,
            "more than 500 columns",
            id="wide",
        ),
        ("<topics><topic></topics>", 1, "invalid XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', None, "entities"),
        ("<topics/>", None, "no topics"),
        ("<top><num>1<num>2<title>x</top>", 1, "several numbers: 1 and 2"),
        ("qid\ttext\tText\n1\tx\ty\n", 1, "two columns have the same name"),
        ("qid,text,text\n1,x,y\n", 1, "two columns have the same name"),
        ('[{"id": "1", "text": "x", "Text": "y"}]', None, "two fields have the same name"),
        (b"1\tone\n2\t\xff\n", 2, "not UTF-8"),
        ("1\tone\n".encode("utf-16"), None, "UTF-16"),
    ],
)
def test_refused(text: str | bytes, line: int | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=reason) as caught:
        Topics.read(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_a_format_that_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text("1\tone\n")
    with pytest.raises(InputError, match="tsv, csv, json, jsonl, trec, xml, lines"):
        Topics.read(path, format="excel")
    assert Topics.read(path, format="lines").text("1") == "one"


@pytest.mark.parametrize("data", [5, ["one"], {"1": None}, [{"text": "x"}]])
def test_objects_that_are_no_topics(data: object) -> None:
    with pytest.raises(InputError):
        Topics.of(data)


@needs_shared
def test_real_topics() -> None:
    sizes = {
        Topics.read(path).name: len(Topics.read(path))
        for path in [*SHARED.glob("*/topics/*"), *SHARED.glob("*/queries.tsv")]
        if path.name != "query_reformulations.txt"
    }
    assert sizes["topics.covid-round5"] == 50
    assert sizes["topics.robust03"] == 100
    assert len(sizes) > 20
