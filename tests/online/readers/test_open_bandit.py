"""The Open Bandit Dataset: pages of one result, with position and propensity."""

from __future__ import annotations

import pytest

from judged.errors import InputError
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.storage import read_raw
from online.readers.raw_logs import check_columns, rows, shared_engine
from shared_data import SHARED, needs_shared

HEADER = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user_feature_2,user_feature_3\n"
)


def read(tmp_path, *texts):
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text(text, encoding="utf-8")
    return read_raw(paths, shared_engine(), layout="open-bandit")


def test_each_row_is_a_page_with_one_result(tmp_path):
    log = read(
        tmp_path,
        HEADER
        + "0,2019-11-24 00:01:03.979311+00:00,2,3,0,0.05,a,b,c,d\n"
        + "1,2019-11-24 01:00:00+01:00,9,1,1,0.25,a,b,,d\n",
    )
    first, second = rows(log.queries)
    place = {"file": 0, "row": 2, "query_id": "0:2", "time_ms": 1574553663979}
    features = {"user_feature_0": "a", "user_feature_1": "b", "user_feature_2": "c", "user_feature_3": "d"}
    assert first == place | features | {"first_rank": 3, "hit_ids": ["2"], "propensities": [0.05], "position": "3"}
    assert (second["time_ms"], second.get("first_rank"), second["propensities"]) == (1574553600000, None, [0.25])
    assert "user_feature_2" not in second
    assert rows(log.events) == [
        {
            "file": 0,
            "row": 3,
            "query_id": "0:3",
            "time_ms": 1574553600000,
            "action": "click",
            "object_id": "9",
            "position": 1,
            "propensity": 0.25,
        }
    ]
    check_columns(log.queries, RAW_QUERY)
    check_columns(log.events, RAW_EVENT)
    assert (log.rank_base, log.lines, log.findings, log.has_time) == (1, 2, (), True)


def test_columns_are_found_by_name_in_each_file(tmp_path):
    other = "propensity_score,click,position,item_id,timestamp\n0.5,1,2,x,2020-01-01T00:00:00Z\n"
    log = read(tmp_path, HEADER + "0,2020-01-01T00:00:00Z,y,1,0,0.1,a,b,c,d\n", other)
    assert [(row["hit_ids"], row["propensities"], row["source"][-5:]) for row in rows(log.queries)] == [
        (["y"], [0.1], "0.csv"),
        (["x"], [0.5], "1.csv"),
    ]


@pytest.mark.parametrize(
    ("row", "rule", "lost"),
    [
        ("0,2020-01-01T00:00Z,x,0,0,0.1,,,,", "broken-record", True),
        ("0,2020-01-01T00:00Z,x,1,2,0.1,,,,", "broken-record", True),
        ("0,2020-01-01T00:00Z,x,1,,0.1,,,,", "broken-record", True),
        ("0,2020-01-01T00:00Z,,1,0,0.1,,,,", "broken-record", True),
        ("0,2020-01-01T00:00Z,x,1,0,0.1", "wrong-width", True),
        ("0,yesterday,x,1,0,0.1,,,,", "odd-time", False),
        ("0,2020-01-01T00:00Z,x,1,0,0,,,,", "unused-value", False),
        ("0,2020-01-01T00:00Z,x,1,0,1.5,,,,", "unused-value", False),
        ("0,2020-01-01T00:00Z,x,1,0,nan,,,,", "unused-value", False),
    ],
)
def test_what_cannot_be_used_is_counted(tmp_path, row, rule, lost):
    log = read(tmp_path, HEADER + "0,2020-01-01T00:00:00Z,y,1,0,0.1,a,b,c,d\n" + row + "\n")
    (finding,) = log.findings
    assert (finding.rule, finding.rows, finding.lost, finding.places) == (rule, 1, lost, (f"{tmp_path / '0.csv'}:3",))
    assert len(rows(log.queries)) == (1 if lost else 2)


def test_a_file_without_its_header_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"0\.csv:1: the header has a duplicate column name"):
        read(tmp_path, "0,2020-01-01,x,1,0,0.1\n")
    with pytest.raises(InputError, match=r"no record has 'timestamp'.*item_id, position"):
        read(tmp_path, HEADER.replace("timestamp", "when") + "0,2019-11-24 00:01:03+00:00,2,3,0,0.05,a,b,c,d\n")


@needs_shared
def test_the_published_sample():
    """10,000 impressions each, click-through rates .0046 and .0069 (Saito et al.); 34 items at random."""
    folder = SHARED / "logs/open_bandit"
    log = read_raw([folder / "random.men.csv.gz", folder / "bts.men.csv.gz"], shared_engine())
    assert (log.lines, log.findings) == (20_000, ())
    by_file = [log.queries.where(f"file = {n}").to_arrow() for n in (0, 1)]
    assert [table.num_rows for table in by_file] == [10_000, 10_000]
    assert [log.events.where(f"file = {n}").to_arrow().num_rows for n in (0, 1)] == [46, 69]
    random = {chances[0] for chances in by_file[0]["propensities"].to_pylist()}
    assert (min(random), max(random)) == (pytest.approx(1 / 34), pytest.approx(1 / 34))
    assert len(by_file[0]["first_rank"].unique()) == 3
