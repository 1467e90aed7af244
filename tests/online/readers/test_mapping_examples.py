"""Packaged mappings, on records in the published format of each log, and on real logs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from judged.online.storage import read_raw
from online.readers.raw_logs import read_mapped, rows, shared_engine
from shared_data import SHARED, needs_shared


def test_the_example_of_the_documentation(tmp_path):
    text = (Path(__file__).parents[3] / "docs/log-formats.md").read_text(encoding="utf-8")
    _, example = text.split("### A full example")
    table, toml = (part.split("```")[0] for part in (example.split("```text\n")[1], example.split("```toml\n")[1]))
    log = read_mapped(tmp_path, toml, {"shop.csv": table})
    keys = {"file": 0, "query_id": "p1", "user_id": "u1", "time_ms": 1714557600000}
    page = {"row": 2, "query": "red shoes", "hit_ids": ["d7", "d9"], "propensities": [0.5, 0.25]}
    assert rows(log.queries) == [keys | page]
    assert rows(log.events) == [keys | {"row": 3, "action": "click", "object_id": "d9", "position": 2}]
    assert (log.findings, log.has_time, log.actions) == ((), True, {"click": "click"})


SNOWPLOW = "unstruct_event_com_snowplowanalytics_snowplow_"
WEB_PAGE = "contexts_com_snowplowanalytics_snowplow_web_page_1"


def test_snowplow_in_its_published_shape(tmp_path):
    keys = {
        "app_id": "shop",
        "domain_sessionid": "s",
        "domain_userid": "u",
        "derived_tstamp": "2024-05-01 10:00:00.000",
    }
    page_context = {WEB_PAGE: [{"id": "pv"}]}
    search = {"terms": ["red", "shoes"], "filters": {"size": 40}, "totalResults": 14, "pageResults": 8}
    log = read_mapped(
        tmp_path,
        "snowplow",
        {
            "good.jsonl": [
                {"event_name": "page_view", "event_id": "e0", **keys, **page_context},
                {
                    "event_name": "site_search",
                    "event_id": "e1",
                    **keys,
                    **page_context,
                    f"{SNOWPLOW}site_search_1": search,
                    "br_lang": "en",
                },
                {
                    "event_name": "link_click",
                    "event_id": "e2",
                    **keys,
                    **page_context,
                    f"{SNOWPLOW}link_click_1": {"targetUrl": "https://x/1"},
                },
                {"event_name": "page_ping", "event_id": "e3", **keys, "page_url": "https://x/1"},
                {
                    "event_name": "add_to_cart",
                    "event_id": "e4",
                    **keys,
                    f"{SNOWPLOW}add_to_cart_1": {"sku": "1", "unitPrice": 9.5},
                },
                {"event_name": "transaction_item", "event_id": "e5", **keys, "ti_sku": "1", "ti_price": 9.5},
            ]
        },
    )
    ours = {"file": 0, "session_id": "s", "user_id": "u", "time_ms": 1714557600000, "application": "shop"}
    assert rows(log.queries) == [
        ours | {"row": 2, "query_id": "pv", "query": "red shoes", "filtered": True, "n_total": 14, "language": "en"}
    ]
    assert rows(log.events) == [
        ours | {"row": 3, "event_id": "e2", "query_id": "pv", "action": "link_click", "object_id": "https://x/1"},
        ours | {"row": 4, "event_id": "e3", "action": "page_ping", "object_id": "https://x/1"},
        ours | {"row": 5, "event_id": "e4", "action": "add_to_cart", "object_id": "1", "value": 9.5},
        ours | {"row": 6, "event_id": "e5", "action": "transaction_item", "object_id": "1", "value": 9.5},
    ]
    assert log.actions["page_ping"] == "heartbeat"
    assert log.findings == ()


def test_ga4_in_its_published_shape(tmp_path):
    def event(name, items=(), **parameters):
        values = [
            {"key": key, "value": {"int_value": value} if isinstance(value, int) else {"string_value": value}}
            for key, value in {"ga_session_id": 33, **parameters}.items()
        ]
        return {
            "event_name": name,
            "event_timestamp": "1714557600123456",
            "user_pseudo_id": "1.2",
            "stream_id": "99",
            "event_params": values,
            "items": list(items),
            "device": {"category": "mobile", "language": "en-gb"},
            "geo": {"country": "Malta"},
            "platform": "WEB",
        }

    item = {"item_id": "SKU", "item_list_index": "2", "price": 12.5}
    log = read_mapped(
        tmp_path,
        "ga4",
        {
            "events.jsonl": [
                event("view_search_results", search_term="hat", search_id="p"),
                event("select_item", [item], search_id="p"),
                event("purchase", [item, {"item_id": "B"}]),
                event("scroll"),
            ]
        },
    )
    ours = {"file": 0, "session_id": "1.2/33", "user_id": "1.2", "time_ms": 1714557600123, "application": "99"}
    assert rows(log.queries) == [
        ours
        | {
            "row": 1,
            "query_id": "p",
            "query": "hat",
            "device": "mobile",
            "language": "en-gb",
            "country": "Malta",
            "platform": "WEB",
        }
    ]
    assert sorted(rows(log.events), key=lambda event: (event["row"], -event.get("position", 0))) == [
        ours | {"row": 2, "query_id": "p", "action": "select_item", "object_id": "SKU", "position": 2, "value": 12.5},
        ours | {"row": 3, "action": "purchase", "object_id": "SKU", "position": 2, "value": 12.5},
        ours | {"row": 3, "action": "purchase", "object_id": "B"},
    ]
    assert log.findings == ()


def test_wikimedia_in_its_published_shape(tmp_path):
    def event(action, second, **columns):
        inside = {
            "action": action,
            "searchSessionId": "s",
            "mwSessionId": "m",
            "pageViewId": f"pv{second}",
            "searchToken": "tok",
            "source": "fulltext",
            "uniqueId": f"e{second}",
            "subTest": "ltr-a",
            **columns,
        }
        return {
            "dt": f"2017-07-01T10:00:{second:02}Z",
            "wiki": "enwiki",
            "event": inside,
            "userAgent": {"is_bot": False},
        }

    log = read_mapped(
        tmp_path,
        "wikimedia",
        {
            "events.jsonl": [
                event(
                    "searchResultPage",
                    1,
                    query="cats",
                    hitsReturned=120,
                    msToDisplayResults=350,
                    didYouMeanVisible="autorewrite",
                ),
                event("click", 4, position=0),
                event("visitPage", 5, position=0, articleId=77),
                event("checkin", 15, checkin=10, articleId=77),
                event("ssclick", 20, position=3),
            ]
        },
    )
    ours = {"file": 0, "query_id": "tok", "session_id": "s", "user_id": "m", "application": "fulltext", "bot": False}
    start = 1498903200000
    assert rows(log.queries) == [
        ours
        | {
            "row": 1,
            "time_ms": start + 1000,
            "query": "cats",
            "n_total": 120,
            "latency_ms": 350.0,
            "rescued": True,
            "variant": "ltr-a",
            "wiki": "enwiki",
        }
    ]
    assert rows(log.events) == [
        ours | {"row": 2, "time_ms": start + 4000, "event_id": "e4", "action": "click", "position": 0},
        ours
        | {
            "row": 3,
            "time_ms": start + 5000,
            "event_id": "e5",
            "action": "visitPage",
            "position": 0,
            "object_id": "77",
        },
        ours
        | {
            "row": 4,
            "time_ms": start + 15000,
            "event_id": "e15",
            "action": "checkin",
            "object_id": "77",
            "dwell_ms": 10000,
        },
        ours | {"row": 5, "time_ms": start + 20000, "event_id": "e20", "action": "ssclick", "position": 3},
    ]
    assert [log.actions[name] for name in ("checkin", "visitPage", "ssclick")] == ["heartbeat", "other", "other"]
    assert (log.rank_base, log.findings) == (0, ())


@needs_shared
def test_graphcm_as_published():
    log = read_raw([SHARED / "logs/session2014_graphcm/normalized.jsonl.gz"], shared_engine(), mapping="graphcm")
    pages, clicks = rows(log.queries), rows(log.events)
    assert (len(pages), len(clicks), log.findings, log.has_time) == (3596, 1610, (), False)
    with gzip.open(SHARED / "logs/session2014_graphcm/normalized.jsonl.gz", "rt", encoding="utf-8") as text:
        expected = [json.loads(line) for line in text]
    assert [(page["session_id"], page["query"], page["hit_ids"]) for page in pages] == [
        (record["session_id"], record["query"], record["results"]) for record in expected
    ]
    assert [(click["row"], click["position"], click["object_id"]) for click in clicks] == [
        (row, rank, record["results"][rank - 1])
        for row, record in enumerate(expected, start=1)
        for rank in sorted(record["clicks"])
    ]


@needs_shared
def test_usql_as_published():
    path = SHARED / "logs/usql_searchlog/SearchLog.tsv"
    log = read_raw([path], shared_engine(), mapping="usql")
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8-sig").splitlines()]
    pages, clicks = rows(log.queries), rows(log.events)
    assert [(page["user_id"], page["language"], page["query"]) for page in pages] == [
        (line[0], line[2], line[3]) for line in lines
    ]
    assert [page.get("hit_ids") for page in pages] == [
        None if line[5] == "NULL" else line[5].split(";") for line in lines
    ]
    assert sum(line[6].count(";") + 1 for line in lines if line[6] != "NULL") == len(clicks) == 22
    assert pages[0]["time_ms"] == 1329306796000
    assert log.findings == ()
