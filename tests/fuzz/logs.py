"""Small interaction logs of every layout, and what reads them: checked, converted and measured."""

from __future__ import annotations

import json
import shutil
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pyarrow as pa

from fuzz.mutations import mutated
from fuzz.originals import Original, tables
from fuzz.readers import Reader, WrongError
from judged.errors import InputError
from judged.online import online_metrics, read_log
from judged.online.check import check_log
from judged.online.log import need_records
from judged.online.readers.mapping_file import mapping_text
from judged.online.storage import store_log

if TYPE_CHECKING:
    from pathlib import Path

    from judged.online.log import InteractionLog

_DAY = "2026-01-05T10:"
NOW = 1_800_000_000_000

OWN = """
rank_base = 1
[file]
null = ["", "NULL"]
[[queries]]
where = { kind = "page" }
[queries.columns]
query_id = "id"
session_id = "s"
user_id = "u"
time = "t"
query = "q"
hit_ids = { path = "hits", separator = "|" }
n_total = "n"
[queries.attributes]
screen = "device"
[[events]]
where = { kind = { not = "page" } }
[events.columns]
query_id = "id"
session_id = "s"
time = "t"
action = "kind"
object_id = "doc"
position = "pos"
value = "money"
"""

RESULTS = """
rank_base = 0
[queries]
rows = "results"
[queries.columns]
query_id = "id"
session_id = "s"
time = "t"
object_id = "doc"
position = "pos"
[events]
where = { kind = ["click", "purchase"] }
[events.columns]
query_id = "id"
time = "t"
action = "kind"
object_id = "doc"
"""


def log_readers(folder: Path) -> list[Reader]:
    """Give a reader for each way of reading logs; `folder` is a place for files made in passing."""
    mappings = {"own": OWN, "results": RESULTS}
    for name, text in mappings.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    (folder / "fixed.jsonl").write_bytes(_lines(_rows()))
    rows = [
        table
        for table in tables(pa.Table.from_pylist(_rows()))
        if table.ending in {".parquet", ".csv", ".tsv", ".jsonl"}
    ]
    own = {"own": _lines(_rows()), "results": _lines(_rows()), "graphcm": _graphcm(), "usql": _usql()}
    texts = {name: mappings.get(name) or mapping_text(name)[0] for name in own}
    logs = {name: folder / f"log.{'tsv' if name == 'usql' else 'jsonl'}" for name in own}
    stored = folder / "stored"
    store_log(read_log(folder / "fixed.jsonl", mapping=folder / "own.toml", now_ms=NOW, threads=1), stored)
    inside = [Original(path.suffix, path.read_bytes()) for path in sorted(stored.iterdir())]
    return [
        Reader("ubi", _read, _ubi()),
        Reader("wscd", partial(_read, layout="wscd"), _wscd()),
        Reader("trec-session", partial(_read, layout="trec-session"), [Original(".xml", _track())]),
        Reader("open-bandit", partial(_read, layout="open-bandit"), [Original(".csv", _bandit())]),
        Reader("clickmodels", partial(_read, layout="clickmodels"), [Original(".tsv", _clickmodels())]),
        Reader("layout found", _read, [*_ubi(), *_wscd(), Original(".xml", _track()), Original(".csv", _bandit())]),
        *(Reader(f"mapping: {name}", partial(_read, mapping=folder / f"{name}.toml"), rows) for name in mappings),
        Reader("mapping: graphcm", partial(_read, mapping="graphcm"), [Original(".jsonl", _graphcm())]),
        Reader("mapping: usql", partial(_read, mapping="usql"), [Original(".tsv", _usql())]),
        Reader("a mapping", partial(_mapped, folder / "fixed.jsonl"), _mappings()),
        *(
            Reader(f"a mapping and its log: {name}", partial(_both, logs[name], data, texts[name]),
                   [Original(".toml", texts[name].encode())])
            for name, data in own.items()
        ),
        Reader("converted", partial(_stored, stored, folder / "again"), inside),
    ]  # fmt: skip


def _read(path: Path, **options: Any) -> None:
    try:
        log = read_log(path, now_ms=NOW, threads=1, **options)
    except InputError as error:
        if not str(error.path).endswith(".toml"):
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None  # a mapping that fits no record
    need_records(log)
    _looked_at(log)
    what = crc32(path.read_bytes()) % 12
    if what == 0:
        again = read_log(_stored_again(log, path), threads=1)
        if _counts(again) != _counts(log):
            raise WrongError(f"{_counts(log)} became {_counts(again)} when it was stored")
    elif what == 1:
        scores = online_metrics(log)
        scores.text()
        json.dumps(scores.to_dict(), allow_nan=False)


def _looked_at(log: InteractionLog) -> None:
    """Look at all that the check says; no row may be lost without a name."""
    check = check_log(log)
    check.text(width=80)
    json.dumps(check.to_dict(), allow_nan=False)
    for account in log.accounts:
        if account.read != account.kept + sum(rows for _, rows in account.excluded):
            raise WrongError(
                f"of {account.read} {account.table} rows {account.kept} are kept and {account.excluded} left out"
            )
    kept = tuple(account.kept for account in log.accounts)
    counts = dict(check.counts)
    if kept != (counts["pages"], counts["events"]):
        raise WrongError(f"{kept} rows are kept, and there are {counts}")
    if any(not 0 <= finding.share <= 1 for finding in log.findings):
        raise WrongError("a share is none")


def _counts(log: InteractionLog) -> tuple[Any, ...]:
    return (*check_log(log).counts, log.has, log.accounts, log.findings)


def _stored_again(log: InteractionLog, path: Path) -> Path:
    folder = path.parent / "kept"
    shutil.rmtree(folder, ignore_errors=True)
    store_log(log, folder)
    return folder


def _mapped(data: Path, path: Path) -> None:
    """Read an intact log by a damaged mapping: either of them may be named by what refuses it."""
    try:
        _looked_at(read_log(data, mapping=path, now_ms=NOW, threads=1))
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None


def _both(place: Path, intact: bytes, text: str, path: Path) -> None:
    """Read a log by its damaged mapping; in two of three cases, the log is damaged too."""
    random = Random(crc32(path.read_bytes()))
    damages = path.read_bytes() != text.encode() and random.random() < 0.67
    place.write_bytes(mutated(intact, random) if damages else intact)
    _mapped(place, path)


def _stored(whole: Path, folder: Path, path: Path) -> None:
    """Put a damaged file into the place of one of the same kind, of a folder that is a log."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    names = [file.name for file in sorted(whole.iterdir()) if file.suffix == path.suffix] or ["log.json"]
    shutil.copyfile(path, folder / names[path.stat().st_size % len(names)])
    try:
        _looked_at(read_log(folder, threads=1))
    except InputError as error:
        if str(folder) not in str(error):
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None


def _lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _rows() -> list[dict[str, Any]]:
    """Give pages, and what was done on them, as the rows of one table."""
    made: list[dict[str, Any]] = []
    for at in range(12):
        who = {"id": f"p{at}", "s": f"s{at // 3}", "u": f"u{at // 6}", "device": ("mobile", "desktop")[at % 2]}
        time, none = f"{_DAY}{at:02}:00Z", {"doc": None, "pos": None, "money": None}
        hits = "|".join(f"d{(at + place) % 9}" for place in range(at % 4))
        made.append({**who, "kind": "page", "t": time, "q": f"red shoe {at % 5}", "hits": hits, "n": at % 4, **none})
        for place in range(at % 3):
            done = {"doc": f"d{(at + place) % 9}", "pos": place + 1, "money": 9.5 if place else None}
            kind = ("click", "purchase")[place]
            made.append(
                {**who, "kind": kind, "t": f"{_DAY}{at:02}:1{place}Z", "q": None, "hits": None, "n": None, **done}
            )
    return made


def _ubi() -> list[Original]:
    """Give UBI in lines, in bulk, and as tables of queries and of events."""
    queries: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    for row in _rows():
        who = {"query_id": row["id"], "client_id": row["u"], "session_id": row["s"], "timestamp": row["t"]}
        if row["kind"] == "page":
            asked = {"page": 1, "page_size": 10, "result_count": row["n"], "device": row["device"], "shop": "A"}
            hits = row["hits"].split("|") if row["hits"] else []
            queries.append({**who, "user_query": row["q"], "query_response_hit_ids": hits, "query_attributes": asked})
        else:
            what = {"object": {"object_id": row["doc"]}, "position": {"ordinal": row["pos"]}, "value": row["money"]}
            events.append({**who, "action_name": row["kind"], "event_attributes": what})
    bulk: list[dict[str, Any]] = []
    for index, records in (("ubi_queries", queries), ("ubi_events", events)):
        for record in records:
            bulk += [{"index": {"_index": index}}, record]
    exports = [{"_index": "ubi_events", "_id": str(at), "_source": event} for at, event in enumerate(events)]
    flat = [
        {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in query.items()}
        for query in queries
    ]
    of_tables = [
        *tables(pa.Table.from_pylist(flat)),
        *tables(pa.Table.from_pylist(events).drop_columns("event_attributes")),
    ]
    lines = [Original(".ndjson", _lines(records)) for records in ([*queries, *events], bulk, exports)]
    return [*lines, *(table for table in of_tables if table.ending in {".csv", ".parquet"})]


def _wscd() -> list[Original]:
    early, late = "", ""
    for at in range(8):
        early += f"{at // 2}\t{at}\tQ\t{at}\t2\t10\t11\t12\n{at // 2}\t{at}\tC\t1{at % 4}\n"
        late += f"{at}\tM\t{at}\tu{at // 2}\n{at}\t0\tQ\t0\t{at}\t5,6\t10,1\t11,2\n{at}\t3\tC\t0\t11\n"
    return [Original(".tsv", early.encode()), Original(".txt", late.encode())]


def _track() -> bytes:
    sessions = ""
    for at in range(4):
        results = "".join(f'<result rank="{rank}"><url>u{rank}</url></result>' for rank in (1, 2, 4))
        clicks = f'<click num="1" starttime="10:00:0{at}.5" endtime="10:00:30"><rank>{at % 4 + 1}</rank></click>'
        pages = "".join(
            f'<interaction num="{page}" starttime="10:0{page}:00"><query>red {page}</query><results>{results}</results>'
            f"<clicked>{clicks}</clicked></interaction>"
            for page in (1, 2)
        )
        current = '<currentquery starttime="10:09:00"><query>reds</query></currentquery>'
        sessions += f'<session num="{at}" starttime="09:59:00"><topic num="5"/>{pages}{current}</session>\n'
    return f"<sessiontrack2012>\n{sessions}</sessiontrack2012>".encode()


def _bandit() -> bytes:
    features = ",".join(f"user_feature_{at}" for at in range(4))
    text = f",timestamp,item_id,position,click,propensity_score,{features}\n"
    for at in range(20):
        click = f"{at % 3 + 1},{int(at % 5 == 0)},0.0{at % 8 + 1}"
        text += f"{at},2019-11-24 00:01:{at:02}.979311+00:00,{at % 7},{click},a,b,c,d\n"
    return text.encode()


def _clickmodels() -> bytes:
    lists = 's{0}\tq {0}\t50\t0.25\t["a", "b", "c"]\t[false, true, false]\t[0, {0}, 1, 0]\n'
    objects = 's{0}\tq {0}\t50\t0.25\t{{"3": "b", "0": "a"}}\t{{"1": true}}\t{{"3": {0}}}\n'
    return "".join((lists if at % 2 else objects).format(at) for at in range(10)).encode()


def _graphcm() -> bytes:
    pages = [
        {"session_id": f"{at // 2}", "query": "SUNY", "results": ["d7", "d9"], "clicks": [at % 2 + 1]}
        for at in range(8)
    ]
    return _lines(pages)


def _usql() -> bytes:
    row = "{0}\t2/15/2012 11:5{0}:01 AM\ten-us\tstar {0}\t9\tu1.com;u2.com;u3.com\t{1}\n"
    return "".join(row.format(at, "u2.com" if at % 2 else "NULL") for at in range(9)).encode()


def _mappings() -> list[Original]:
    names = ("graphcm", "usql", "snowplow", "ga4", "wikimedia")
    return [Original(".toml", text.encode()) for text in (OWN, RESULTS, *(mapping_text(name)[0] for name in names))]
