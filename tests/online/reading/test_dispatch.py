"""Which reader a file goes to."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.online.reading import read_raw
from judged.online.reading.opening import LAYOUTS, Part, form_of, layout_of, parts_of
from online.reading.ubi_made import EVENTS, QUERIES, engine, read, rows, written_lines, written_parquet

HEADS = {
    "ubi": [
        '{"user_query": "x"}\n',
        'ubi_events\t{"action_name": "click"}\n',
        '{"index": {"_index": "ubi_queries"}}\n{"user_query": "x"}\n',
        "broken\n" + '{"action_name": "click"}\n',
        "query_id,user_query,timestamp\n1,x,2\n",
        "action_name;query_id\nclick;1\n",
        "",
    ],
    "wscd": [
        "0\t0\tQ\t0\t0\t7\t103\t51\t92\n0\t103\tC\t51\n",
        "34573630\tM\t19\t1\n34573630\t0\tQ\t0\t1\t2,3\t4,5 6,7\n",
    ],
    "trec-session": ['<?xml version="1.0"?>\n<sessiontrack2012>\n<session num="1">\n'],
    "open-bandit": [",timestamp,item_id,position,click,propensity_score,user_feature_0\n0,2019,1,2,0,0.5,a\n"],
}


@pytest.mark.parametrize(("layout", "text"), [(name, text) for name, texts in HEADS.items() for text in texts])
@pytest.mark.parametrize("packed", ["", "gzip", "zip"])
def test_layouts_by_their_first_bytes(tmp_path: Path, layout: str, text: str, packed: str) -> None:
    path = tmp_path / "log.txt"
    if packed == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside/log", text)
    else:
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert layout_of(parts_of([path])) == layout


@pytest.mark.parametrize(
    "text",
    ["just words\n", '{"product": "a car"}\n', "a,b,c\n1,2,3\n", "<html></html>", "1\t2\t3\n", "\x00\x01\x02"],
)
def test_unknown_layouts_are_refused_with_those_that_are_known(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    with pytest.raises(InputError, match="no layout of a log that is known") as caught:
        read(path)
    assert all(name in str(caught.value) for name in LAYOUTS)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'[\n {"user_query": "x"}\n]', "one JSON list"),
        ('{"user_query": "x"}'.encode("utf-16"), "UTF-16"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"ARROW1\x00\x00", "Arrow"),
        (b"PK\x03\x04 cut off", "archive is damaged"),
        (b"PAR1 and no more", "damaged or cut short"),
        (b"\x1f\x8b\x08 cut off", "cut short or damaged"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    with pytest.raises(InputError, match=problem):
        read(path)


def test_wrong_calls(tmp_path: Path) -> None:
    path = written_lines(tmp_path / "log.ndjson", QUERIES)
    with pytest.raises(InputError, match="no layout 'snowplow'"):
        read(path, layout="snowplow")
    with pytest.raises(InputError, match="needs a mapping file"):
        read(path, layout="mapping")
    with pytest.raises(InputError, match="a mapping and the layout"):
        read(path, layout="ubi", mapping=path)
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "absent")
    with pytest.raises(InputError, match="no files are given"):
        read_raw([], engine())
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file in this folder"):
        read(tmp_path / "empty")


def test_layouts_are_not_mixed(tmp_path: Path) -> None:
    lines = written_lines(tmp_path / "log.ndjson", QUERIES)
    clicks = tmp_path / "clicks.txt"
    clicks.write_text(HEADS["wscd"][0])
    with pytest.raises(InputError, match=r"clicks\.txt: it looks like wscd, and .*log\.ndjson like ubi"):
        read(lines, clicks)


def test_a_layout_that_is_named_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("not a record\n" * 300 + json.dumps(QUERIES[0]) + "\n")
    with pytest.raises(InputError, match="no layout"):
        read(path)
    raw = read(path, layout="ubi")
    assert (raw.lines, len(rows(raw.queries)), raw.trouble[0].rows) == (301, 1, 300)


def test_folders_archives_and_what_lies_beside_data(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    written_parquet(folder)
    (folder / "_SUCCESS").write_text("")
    (folder / ".q.parquet.crc").write_bytes(b"\x00")
    (folder / "day=1").mkdir()
    written_lines(folder / "day=1" / "more.ndjson", EVENTS)
    assert [Path(part.name).name for part in parts_of([folder])] == ["more.ndjson", "e.parquet", "q.parquet"]
    raw = read(folder)
    assert (len(rows(raw.queries)), len(rows(raw.events))) == (2, 4)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(folder / "e.parquet", "e.parquet")
        archive.write(folder / "day=1" / "more.ndjson", "more.ndjson")
        archive.writestr("__MACOSX/._more", "x")
    packed = read(tmp_path / "all.zip")
    assert packed.files == (f"{tmp_path / 'all.zip'}/e.parquet", f"{tmp_path / 'all.zip'}/more.ndjson")
    assert len(rows(packed.events)) == 4


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, float | None]] = []
    path = written_lines(tmp_path / "log.ndjson", QUERIES)
    read(path, progress=lambda what, share: told.append((what, share)))
    assert told[0][0] == f"reading {path}"
    assert all(share is None or 0 <= share <= 1 for _, share in told)


def test_forms(tmp_path: Path) -> None:
    part = Part("p", tmp_path)
    assert form_of(part, b"PAR1") == "parquet"
    assert form_of(part, b"\xff\n" + b'{"query_id": "a"}') == "lines"
    assert form_of(part, b'"action_name","query_id"\n') == "csv"
