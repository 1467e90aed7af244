"""Logs of the Yandex challenges: both formats, the pages of clicks, and invalid lines."""

from __future__ import annotations

import gzip
import random

import pytest

from judged.errors import InputError
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.storage import read_raw
from online.readers.raw_logs import check_columns, rows, shared_engine


def read(tmp_path, *texts):
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.tsv")
        paths[-1].write_text(text, encoding="utf-8")
    return read_raw(paths, shared_engine(), layout="wscd")


EARLY = (
    "7\t0\tQ\t70\t2\t10\t11\t12\n"
    "7\t5\tC\t11\n"
    "7\t9\tQ\t80\t2\t20\t21\t11\n"
    "7\t10\tC\t12\n"  # only the first page shows it
    "7\t11\tC\t11\n"  # both do: the last one counts
    "7\t12\tC\t99\n"  # none does: the last page
    "8\t0\tC\t5\n"  # before any page
    "8\t1\tQ\t90\t3\t30\n"
    "9\t3\tC\t30\n"  # another session's result
)


def test_pages_and_clicks_of_2012(tmp_path):
    log = read(tmp_path, EARLY)
    assert rows(log.queries) == [
        {
            "file": 0,
            "row": row,
            "query_id": f"{session}/{row}",
            "session_id": session,
            "time_ms": row,
            "query": query,
            "hit_ids": ids,
            "region": region,
            "query_key": query,
        }
        for row, session, query, ids, region in [
            (1, "7", "70", ["10", "11", "12"], "2"),
            (3, "7", "80", ["20", "21", "11"], "2"),
            (8, "8", "90", ["30"], "3"),
        ]
    ]
    assert rows(log.events) == [
        {
            "file": 0,
            "row": row,
            "session_id": session,
            "time_ms": row,
            "action": "C",
            "object_id": url,
        }
        | ({"query_id": page} if page else {})
        for row, session, url, page in [
            (2, "7", "11", "7/1"),
            (4, "7", "12", "7/1"),
            (5, "7", "11", "7/3"),
            (6, "7", "99", "7/3"),
            (7, "8", "5", None),
            (9, "9", "30", None),
        ]
    ]
    check_columns(log.queries, RAW_QUERY)
    check_columns(log.events, RAW_EVENT)
    assert (log.layout, log.has_time, log.lines, log.findings, log.actions) == ("wscd", False, 9, (), {"C": "click"})


def test_pages_and_clicks_of_2014(tmp_path):
    log = read(
        tmp_path,
        "744899\tM\t23\t123123123\n"
        "744899\t0\tQ\t0\t192902\t4857,3847,2939\t632428,2384\t309585,28374\n"
        "744899\t1403\tC\t0\t632428\n"
        "744899\t1500\tT\t1\t5\t1\t6,7\n"
        "744900\tM\t2\t9\n"
        "744900\t0\tQ\t0\t11\t4857\n"
        "744900\t0\tQ\t1\t12\t1\t8,9\n"
        "744900\t7\tC\t1\t8\n",
    )
    pages = rows(log.queries)
    assert [
        (page["query_id"], page["user_id"], page["query"], page["hit_ids"], page["day"], page["query_key"])
        for page in pages
    ] == [
        ("744899/0", "123123123", "4857 3847 2939", ["632428", "309585"], "23", "192902"),
        ("744900/0", "9", "4857", [], "2", "11"),
        ("744900/1", "9", "1", ["8"], "2", "12"),
    ]
    assert [(row["query_id"], row["user_id"], row["object_id"], row["time_ms"]) for row in rows(log.events)] == [
        ("744899/0", "123123123", "632428", 3),
        ("744900/1", "9", "8", 8),
    ]
    (withheld,) = log.findings
    assert (withheld.rule, withheld.rows, withheld.lost, log.lines) == ("withheld-clicks", 1, True, 8)
    assert withheld.places[0].endswith("0.tsv:4")


@pytest.mark.parametrize(
    "line",
    [
        "7",
        "7\t1",
        "7\tx\tC\t11",
        "7\t1\tZ\t11",
        "7\t1\tC\t11\t12",
        "7\t1\tQ\t5",
        "\t1\tC\t11",
        "7\t1\tQ\t70\t2\t10\t\t12",
        "\xff\x00",
    ],
)
def test_what_is_no_record_is_counted_with_its_line(tmp_path, line):
    log = read(tmp_path, EARLY + "\n" + line + "\n")
    (finding,) = log.findings
    assert (finding.rule, finding.rows, finding.lost, log.lines) == ("broken-line", 1, True, 10)
    assert finding.places == (f"{tmp_path / '0.tsv'}:11",)  # line 10 is blank
    assert (len(rows(log.queries)), len(rows(log.events))) == (3, 6)


def test_several_files_of_both_kinds_are_told_apart(tmp_path):
    log = read(tmp_path, EARLY, "1\tM\t2\t5\n1\t0\tQ\t0\t5\t6\t8,9\n1\t1\tC\t0\t8\n", EARLY)
    assert [row["query_id"] for row in rows(log.queries)] == ["7/1", "7/3", "8/8", "1/0", "7/2:1", "7/2:3", "8/2:8"]
    times = [row["time_ms"] for row in rows(log.events)]
    assert times == sorted(times)
    assert len(set(times)) == 13
    assert log.findings == ()


def test_compressed_files_and_lines_with_carriage_returns(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(EARLY.replace("\n", "\r\n").encode()))
    log = read_raw([path], shared_engine(), layout="wscd")
    assert [row["object_id"] for row in rows(log.events)] == ["11", "12", "11", "99", "5", "30"]


def test_nothing_and_files_that_are_not_there(tmp_path):
    assert rows(read(tmp_path, "").queries) == []
    with pytest.raises(InputError, match="there is no such file"):
        read_raw([tmp_path / "absent"], shared_engine(), layout="wscd")
    with pytest.raises(InputError, match="no log files"):
        read_raw([], shared_engine(), layout="wscd")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(EARLY.encode() * 50)[:60])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_raw([tmp_path / "cut.gz"], shared_engine(), layout="wscd")


def test_clicks_go_to_the_last_page_that_shows_them_as_counted_by_hand(tmp_path):
    """Compare with a direct implementation of the rule, on random sessions."""
    draw = random.Random(4)  # noqa: S311 -- not for secrets
    lines, expected, pages = [], [], {}
    for number in range(1, 600):
        session = str(draw.randrange(8))
        if draw.random() < 0.4:
            urls = draw.sample(range(9), 4)
            lines.append("\t".join([session, "0", "Q", "1", "1", *map(str, urls)]))
            pages.setdefault(session, []).append((f"{session}/{number}", urls))
        else:
            url = draw.randrange(12)
            lines.append(f"{session}\t0\tC\t{url}")
            before = pages.get(session, [])
            fitting = [page for page, urls in before if url in urls] or [page for page, _ in before]
            expected.append(fitting[-1] if fitting else None)
    log = read(tmp_path, "\n".join(lines))
    assert [row["query_id"] for row in rows(log.events, full=True)] == expected
    assert len(expected) > 300
