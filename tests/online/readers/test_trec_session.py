"""Logs of the TREC Session Track: the format of each year, times without dates, and hostile XML."""

from __future__ import annotations

import gzip
import json
import statistics

import pytest

from judged.errors import InputError
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.trec_session import DAY, FIRST_DAY
from judged.online.storage import read_raw
from online.readers.raw_logs import check_columns, rows, shared_engine
from shared_data import SHARED, needs_shared


def read(tmp_path, *texts):
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.xml")
        paths[-1].write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_raw(paths, shared_engine(), layout="trec-session")


def result(rank, **elements):
    content = "".join(f"<{tag}>{text}</{tag}>" for tag, text in elements.items())
    return f'<result rank="{rank}">{content}<title>T</title><snippet>S</snippet></result>'


def click(rank, start, end, content=""):
    return f'<click num="1" starttime="{start}" endtime="{end}"><rank>{rank}</rank>{content}</click>'


def page(number, start, *, results="", clicks="", query="q"):
    return (
        f'<interaction num="{number}" starttime="{start}"><query>{query}</query>'
        f"<results>{results}</results><clicked>{clicks}</clicked></interaction>"
    )


def session(
    pages,
    number=1,
    start="09:00:00",
    attributes="",
    topic='<topic num="5" product="factual" goal="specific" tasktype="known"/>',
):
    return f'<session num="{number}" starttime="{start}"{attributes}>{topic}{pages}</session>'


def track(*sessions, year="2012"):
    return f"<sessiontrack{year}>\n{''.join(sessions)}\n</sessiontrack{year}>"


TWO = result(1, url="u1", clueweb09id="c1") + result(2, url="u2")


def test_2012_every_column(tmp_path):
    inside = page(
        1, "09:00:10.500000", results=TWO, clicks=click(2, "09:00:12", "09:00:20.250"), query=" tax &amp; more "
    )
    log = read(
        tmp_path, track(session(inside + "\n<currentquery starttime='09:01:00'><query>last</query></currentquery>"))
    )
    start = FIRST_DAY + 9 * 3_600_000
    place = {"file": 0, "row": 2, "query_id": "1/1", "session_id": "1"}
    assert rows(log.queries) == [
        place
        | {
            "time_ms": start + 10_500,
            "query": "tax & more",
            "page": 1,
            "hit_ids": ["c1", "u2"],
            "track": "2012",
            "topic": "5",
            "product": "factual",
            "goal": "specific",
            "tasktype": "known",
        }
    ]
    assert rows(log.events) == [
        place | {"time_ms": start + 12_000, "action": "click", "object_id": "u2", "position": 2, "dwell_ms": 8250}
    ]
    (last,) = log.findings
    assert (last.rule, last.rows, last.lost, last.places) == ("current-query", 1, True, (f"{tmp_path / '0.xml'}:3",))
    assert (log.lines, log.rank_base, log.has_time) == (3, 1, True)
    check_columns(log.queries, RAW_QUERY)
    check_columns(log.events, RAW_EVENT)


def test_2014_seconds_users_and_later_pages(tmp_path):
    second = result(11, clueweb12id="d11", url="u") + result(12, clueweb12id="d12", url="u")
    first = session(
        page(1, "0.5", results=result(1, clueweb12id="d1"))
        + page(2, "30", results=second, clicks=click(12, "31.25", "41.5")),
        start="0",
        attributes=' userid="77"',
    )
    second_session = session(page(1, "1"), number=2, start="0", attributes=' userid="77"')
    log = read(tmp_path, track(first, second_session, year="2014"))
    pages = rows(log.queries)
    assert [
        (page["user_id"], page["query_id"], page["page"], page.get("first_rank"), page["hit_ids"]) for page in pages
    ] == [
        ("77", "1/1", 1, None, ["d1"]),
        ("77", "1/2", 2, 11, ["d11", "d12"]),
        ("77", "2/1", 1, None, []),
    ]
    assert [page["time_ms"] - FIRST_DAY for page in pages] == [500, 30_000, DAY + 1000]
    (clicked,) = rows(log.events)
    assert (clicked["object_id"], clicked["position"], clicked["dwell_ms"]) == ("d12", 12, 10_250)
    assert log.findings == ()


def test_2011_topics_without_numbers(tmp_path):
    log = read(
        tmp_path, track(session(page(1, "09:00:01"), topic="<topic><title> a title </title></topic>"), year="2011")
    )
    (only,) = rows(log.queries)
    assert (only["topic"], only["track"]) == ("a title", "2011")


def test_midnight_passes_within_a_session(tmp_path):
    inside = page(1, "23:59:50", results=TWO, clicks=click(1, "23:59:58", "00:00:03")) + page(
        2, "00:01:00", results=TWO
    )
    log = read(tmp_path, track(session(inside, start="23:59:00")))
    first, second = rows(log.queries)
    assert second["time_ms"] - first["time_ms"] == 70_000
    assert rows(log.events)[0]["dwell_ms"] == 5000
    assert not log.dated


def test_a_click_that_began_before_the_last_one_ended_stays_on_its_day(tmp_path):
    clicks = click(1, "10:00:05", "10:30:00") + click(2, "10:00:07", "10:00:09")
    log = read(tmp_path, track(session(page(1, "10:00:00", results=TWO, clicks=clicks), start="10:00:00")))
    assert [row["time_ms"] - FIRST_DAY - 36_000_000 for row in rows(log.events)] == [5000, 7000]


def test_results_stay_at_their_ranks(tmp_path):
    results = result(1, url="a") + result(2) + result(5, url="b")
    log = read(tmp_path, track(session(page(1, "10:00:00", results=results, clicks=click(5, "10:00:01", "10:00:02")))))
    (logged_page,) = log.queries.to_arrow("hit_ids", "ranks").to_pylist()
    assert logged_page == {"hit_ids": ["a", None, "b"], "ranks": [1, 2, 5]}
    assert [(row["object_id"], row["position"]) for row in rows(log.events)] == [("b", 5)]
    assert [finding.rule for finding in log.findings] == ["no-id"]


@pytest.mark.parametrize(
    ("inside", "rule"),
    [
        (page(1, "noon", results=TWO), "odd-time"),
        (page(1, "24:00:00", results=TWO), "odd-time"),
        (page(1, "10:00:00", results=TWO, clicks=click(3, "10:00:01", "10:00:02")), "rank-not-shown"),
        (page(1, "10:00:00", results=TWO, clicks=click("x", "10:00:01", "10:00:02")), "rank-not-shown"),
        (page(1, "10:00:00", results=TWO, clicks=click(1, "10:00:01", "")), "odd-dwell"),
        (page(1, "10:00:00", results=TWO, clicks=click(1, "10:00:03", "10:00:02")), "odd-dwell"),
        (page(1, "10:00:00", results=result(1, url="a") + result(1, url="b")), "odd-rank"),
        (page(1, "10:00:00", results=result("x", url="a") + result(3, url="b")), "odd-rank"),
        (page(1, "10:00:00", results=result(1) + result(2, url="b")), "no-id"),
        (click(1, "10:00:00", "10:00:01"), "no-page"),
    ],
)
def test_what_cannot_be_used_is_counted_and_the_rest_kept(tmp_path, inside, rule):
    log = read(tmp_path, track(session(inside)))
    assert rule in [finding.rule for finding in log.findings]
    assert all(finding.rows == 1 and finding.places for finding in log.findings)
    if rule != "no-page":
        assert len(rows(log.queries)) == 1
    if rule == "rank-not-shown":
        assert rows(log.events)[0]["action"] == "click"


def test_an_interaction_outside_of_any_session_is_lost(tmp_path):
    log = read(tmp_path, track(page(1, "10:00:00")))
    assert [(finding.rule, finding.lost) for finding in log.findings] == [("no-session", True)]


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE sessiontrack2012 [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY a{n} "{"&a;" * 10 if n == 0 else f"&a{n - 1};" * 10}">' for n in range(9))
    + "]><sessiontrack2012><session><interaction><query>&a8;</query></interaction></session></sessiontrack2012>"
)
OUTSIDE = (
    '<?xml version="1.0"?><!DOCTYPE sessiontrack2012 [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    "<sessiontrack2012><session><interaction><query>&x;</query></interaction></session></sessiontrack2012>"
)
PARAMETER = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd"> %x;]><sessiontrack2012/>'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "declares entities"),
        (OUTSIDE, "declares entities"),
        (PARAMETER, "declares entities"),
        ("<html><body/></html>", "begins with <html>"),
        ("", "damaged"),
        ("<sessiontrack2012>" + "<a>" * 20_000, "damaged"),
        ("not xml at all", "damaged"),
        (track(session(page(1, "09:00:00")))[:-40], "damaged"),
        (track(session("<interaction></query></interaction>")), "damaged"),
        ("<sessiontrack2012>&undefined;</sessiontrack2012>", "damaged"),
        (b'<?xml version="1.0" encoding="no-such"?><sessiontrack2012/>', "damaged"),
        (b"<sessiontrack2012>\xff\xfe\xfa</sessiontrack2012>", "damaged"),
    ],
)
def test_hostile_and_broken_xml_is_refused_with_its_line(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, text)
    assert caught.value.path.endswith("0.xml")
    assert caught.value.line is not None


def test_a_document_type_from_elsewhere_is_not_fetched(tmp_path):
    text = '<!DOCTYPE sessiontrack2012 SYSTEM "http://127.0.0.1:9/never.dtd">' + track(session(page(1, "09:00:00")))
    assert len(rows(read(tmp_path, text).queries)) == 1


def test_sessions_of_several_years_do_not_mix(tmp_path):
    log = read(tmp_path, track(session(page(1, "09:00:00"))), track(session(page(1, "5"), start="0"), year="2013"))
    assert [(row["session_id"], row["query_id"]) for row in rows(log.queries)] == [
        ("2012-1", "2012-1/1"),
        ("2013-1", "2013-1/1"),
    ]


@needs_shared
def test_2012_as_published():
    """98 sessions, 199 interactions, 272 clicks; pages and clicks equal those of an independent reader."""
    folder = SHARED / "logs/trec_session"
    log = read_raw([folder / "sessiontrack2012.xml.gz"], shared_engine(), layout="trec-session")
    pages, clicks = rows(log.queries), rows(log.events)
    assert (len({page["session_id"] for page in pages}), len(pages), len(clicks), log.lines) == (98, 199, 272, 569)
    assert [(finding.rule, finding.rows) for finding in log.findings] == [("current-query", 98)]
    assert (sum(not page["hit_ids"] for page in pages), sum(len(page["hit_ids"]) for page in pages)) == (8, 2157)
    dwell = [click["dwell_ms"] for click in clicks]
    assert (round(statistics.median(dwell) / 1000, 1), round(max(dwell) / 1000)) == (19.6, 409)
    by_page = {page["query_id"]: page for page in pages}
    with gzip.open(folder / "session2012.jsonl.gz", "rt", encoding="utf-8") as text:
        expected = [json.loads(line) for line in text]
    for record in expected:
        name = f"{record['session_id']}/{record['interaction']}"
        assert by_page[name]["hit_ids"] == [result["docid"] or result["url"] for result in record["results"]]
        assert by_page[name].get("query", "") == record["query"].strip()
        observed = [(click["position"], click["dwell_ms"]) for click in clicks if click["query_id"] == name]
        expected_clicks = [(click["rank"], 1000 * click["dwell_s"]) for click in record["clicks"]]
        assert [rank for rank, _ in observed] == [rank for rank, _ in expected_clicks]
        assert [ms for _, ms in observed] == pytest.approx([ms for _, ms in expected_clicks], abs=2)


def test_a_track_on_one_line_has_as_many_pages(tmp_path):
    """Rows get distinct numbers, although all begin on the same line."""
    clicks = click(1, "09:00:05", "09:00:10") + click(2, "09:00:20", "09:00:30")
    pages = page(1, "09:00:01", results=TWO, clicks=clicks) + page(2, "09:01:00", results=TWO, clicks=clicks)
    raw = read(tmp_path, track(session(pages), session(pages, number=2)).replace("\n", ""))
    assert [row["row"] for row in rows(raw.queries)] == [1, 2, 3, 4]
    assert [row["row"] for row in rows(raw.events)] == list(range(1, 9))
