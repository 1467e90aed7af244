"""Detection of layouts and formats, and files that are skipped or rejected."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.online.findings import unfit_reasons
from judged.online.readers.files import LAYOUTS, LogFile, detect_format, detect_layout, find_log_files
from judged.online.storage import TABLES, read_log, read_raw, store_log
from online.readers.ubi_logs import EVENTS, QUERIES, engine, read, rows, write_lines, write_parquet

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
    assert detect_layout(find_log_files([path])) == layout


@pytest.mark.parametrize(
    "text",
    ["just words\n", '{"product": "a car"}\n', "a,b,c\n1,2,3\n", "<html></html>", "1\t2\t3\n", "\x00\x01\x02"],
)
def test_unknown_layouts_are_refused_with_those_that_are_known(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    with pytest.raises(InputError, match="no known log layout") as caught:
        read(path)
    assert all(name in str(caught.value) for name in LAYOUTS)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ('{"user_query": "x"}'.encode("utf-16"), "UTF-16"),
        ('{"user_query": "x"}'.encode("utf-16-le"), "UTF-16"),
        (b'{"user_query": "x"}\r{"user_query": "y"}\r', "carriage returns"),
        (b"query_id,user_query\r1,x\r", "carriage returns"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"ARROW1\x00\x00", "Arrow"),
        (b"PK\x03\x04 cut off", "archive is damaged"),
        (b"PAR1 and no more", "damaged or truncated"),
        (b"\x1f\x8b\x08 cut off", "truncated or damaged"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    with pytest.raises(InputError, match=problem):
        read(path)


@pytest.mark.parametrize("layout", ["wscd", "clickmodels", "open-bandit", "ubi"])
def test_utf16_is_refused_in_every_layout_of_text(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "log"
    path.write_bytes("0\t0\tQ\t0\t0\t7\t8\n".encode("utf-16-le"))
    with pytest.raises(InputError, match="UTF-16"):
        read(path, layout=layout)


def test_parquet_that_is_damaged_in_the_middle_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "log")
    data = bytearray((tmp_path / "log" / "e.parquet").read_bytes())
    data[4:60] = b"\xff" * 56
    (tmp_path / "log" / "e.parquet").write_bytes(data)
    with pytest.raises(InputError, match="Parquet file is damaged") as caught:
        read_log(tmp_path / "log")
    assert str(tmp_path) in str(caught.value)
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(bytes(data)))
    with pytest.raises(InputError, match="Parquet file is damaged") as caught:
        read_log(packed)
    assert str(caught.value).startswith(str(packed))
    assert "unpacked-" not in str(caught.value)


def test_wrong_calls(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.ndjson", QUERIES)
    with pytest.raises(InputError, match="unknown layout 'wikimedia'"):
        read(path, layout="wikimedia")
    with pytest.raises(InputError, match="requires a mapping file"):
        read(path, layout="mapping")
    with pytest.raises(InputError, match="cannot be combined"):
        read(path, layout="ubi", mapping=path)
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "absent")
    with pytest.raises(InputError, match="no log files"):
        read_raw([], engine())
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files in this folder"):
        read(tmp_path / "empty")


def test_layouts_are_not_mixed(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "log.ndjson", QUERIES)
    clicks = tmp_path / "clicks.txt"
    clicks.write_text(HEADS["wscd"][0])
    with pytest.raises(
        InputError, match=r"clicks\.txt: the layout of this file is wscd, but the layout of .*log\.ndjson is ubi"
    ):
        read(lines, clicks)


def test_a_layout_that_is_named_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("not a record\n" * 300 + json.dumps(QUERIES[0]) + "\n")
    with pytest.raises(InputError, match="no known log layout"):
        read(path)
    raw = read(path, layout="ubi")
    assert (raw.lines, len(rows(raw.queries)), raw.findings[0].rows) == (301, 1, 300)


def test_folders_archives_and_what_lies_beside_data(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    write_parquet(folder)
    (folder / "_SUCCESS").write_text("")
    (folder / ".q.parquet.crc").write_bytes(b"\x00")
    (folder / "day=1").mkdir()
    write_lines(folder / "day=1" / "more.ndjson", EVENTS)
    raw = read(folder)
    assert [Path(name).name for name in raw.files] == ["more.ndjson", "e.parquet", "q.parquet"]
    assert (len(rows(raw.queries)), len(rows(raw.events))) == (2, 4)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(folder / "e.parquet", "e.parquet")
        archive.write(folder / "day=1" / "more.ndjson", "more.ndjson")
        archive.writestr("__MACOSX/._more", "x")
    packed = read(tmp_path / "all.zip")
    assert packed.files == (f"{tmp_path / 'all.zip'}/e.parquet", f"{tmp_path / 'all.zip'}/more.ndjson")
    assert len(rows(packed.events)) == 4


STRANGERS = {
    "README": "How this log was made\n", "notes.txt": "a, b\n", "logo.png": "\x89PNG\r\n\0", "shop.toml": "[queries]\n",
    "README.md": '{"action_name": "click"}\n', "products.csv": "id,title\n1,car\n", "schema.json": '{"type": 1}\n',
}  # fmt: skip
HIDDEN = ("_SUCCESS", ".DS_Store", "_temporary/0/part.ndjson", ".e.parquet.crc")


@pytest.mark.parametrize("packed", [False, True])
def test_what_lies_beside_a_log_in_its_folder_is_left_out_and_counted(tmp_path: Path, packed: bool) -> None:
    folder = tmp_path / "log"
    for name, text in STRANGERS.items() | dict.fromkeys(HIDDEN, "x").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"not read as logs|no known log layout"):
        read(folder)
    write_lines(folder / "log.ndjson", QUERIES)
    source = folder
    if packed:
        source = tmp_path / "all.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(folder))
    raw = read(source)
    assert (len(raw.files), raw.lines, len(rows(raw.queries))) == (1, 2, 2)
    skipped = {finding.rule: finding for finding in raw.findings if finding.table == "folder"}
    assert {rule: (finding.rows, finding.lost) for rule, finding in skipped.items()} == {
        "hidden-file": (4, False),
        "skipped-file": (7, False),
    }
    assert len(skipped["skipped-file"].places) == 5
    assert "logo.png: files with this name are not read as logs" in skipped["skipped-file"].problem
    for name in ("README", "notes.txt", "products.csv", "schema.json"):
        with pytest.raises(InputError, match="no known log layout"):
            read(folder / name)


def test_what_is_no_log_among_files_of_a_layout_that_is_said(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.ndjson", QUERIES)
    (tmp_path / "b.ndjson").write_text("broken\n")
    (tmp_path / "c").write_bytes(b"x\0y")
    (tmp_path / "LICENSE").write_text("words\n")
    raw = read(tmp_path, layout="ubi")
    assert [Path(name).name for name in raw.files] == ["a.ndjson", "b.ndjson"]
    assert {finding.rule: finding.rows for finding in raw.findings if finding.table != "query"} == {
        "broken-json": 1,
        "skipped-file": 2,
    }


def test_a_log_in_a_form_that_is_not_read_is_never_skipped(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.ndjson", QUERIES)
    (tmp_path / "b.ndjson").write_bytes('{"user_query": "x"}'.encode("utf-16"))
    with pytest.raises(InputError, match="UTF-16"):
        read(tmp_path)


def test_files_left_out_are_findings_and_no_reason_for_doubt(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.ndjson", QUERIES)
    (tmp_path / "README").write_text("x")
    (tmp_path / "_SUCCESS").write_text("")
    log = read_log(tmp_path)
    folder_findings = {
        finding.rule: (finding.table, finding.rows, finding.of, finding.action)
        for finding in log.findings
        if finding.table == "folder"
    }
    assert folder_findings == {
        "skipped-file": ("folder", 1, 3, "excluded"),
        "hidden-file": ("folder", 1, 3, "excluded"),
    }
    assert not [finding for finding in unfit_reasons(log.accounts, log.findings) if "file" in finding]
    log.engine.con.close()


def test_progress_is_told(tmp_path: Path) -> None:
    reports: list[tuple[str, float | None]] = []
    path = write_lines(tmp_path / "log.ndjson", QUERIES)
    read(path, progress=lambda message, share: reports.append((message, share)))
    assert reports[0][0] == f"reading {path}"
    assert all(share is None or 0 <= share <= 1 for _, share in reports)


def test_forms(tmp_path: Path) -> None:
    part = LogFile("p", tmp_path)
    names = ["action_name"]
    assert detect_format(part, names, b"PAR1") == "parquet"
    assert detect_format(part, names, b"\xff\n" + b'{"query_id": "a"}') == "lines"
    assert detect_format(part, names, b'"action_name","query_id"\n') == "csv"
    assert detect_format(part, names, b"other,names\n") is None
    assert detect_format(LogFile("p.tsv.gz", tmp_path), names, b"other names\n") == "csv"
    assert detect_format(LogFile("p.csv", tmp_path), names, b'{"a": 1}\n') == "lines"


def test_a_stored_log_in_which_a_column_has_no_name_is_damaged(tmp_path: Path) -> None:
    store_log(read_log(write_lines(tmp_path / "log.ndjson", QUERIES)), tmp_path / "stored")
    for table, columns in TABLES.items():
        path = tmp_path / "stored" / f"{table}.parquet"
        content, name = path.read_bytes(), columns[0].name.encode()
        path.write_bytes(content.replace(name, b"\x80" + name[1:]))
        with pytest.raises(InputError, match="the table is missing or damaged"):
            read_log(tmp_path / "stored")
        path.write_bytes(content)
