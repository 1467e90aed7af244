"""Small interaction logs in every layout, and the functions under test: read, check, convert, measure."""

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
from judged.online.log import check_has_records
from judged.online.readers.mapping_file import mapping_text
from judged.online.storage import store_log

if TYPE_CHECKING:
    from pathlib import Path

    from judged.online.log import InteractionLog

_DAY = "2026-01-05T10:"
NOW = 1_800_000_000_000

CUSTOM = """
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
    """Return a reader for each way of reading logs; `folder` holds temporary files."""
    mappings = {"own": CUSTOM, "results": RESULTS}
    for name, text in mappings.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    (folder / "fixed.jsonl").write_bytes(_lines(_rows()))
    rows = [
        table
        for table in tables(pa.Table.from_pylist(_rows()))
        if table.ending in {".parquet", ".csv", ".tsv", ".jsonl"}
    ]
    logs_by_mapping = {"own": _lines(_rows()), "results": _lines(_rows()), "graphcm": _graphcm(), "usql": _usql()}
    texts = {name: mappings.get(name) or mapping_text(name)[0] for name in logs_by_mapping}
    logs = {name: folder / f"log.{'tsv' if name == 'usql' else 'jsonl'}" for name in logs_by_mapping}
    stored = folder / "stored"
    store_log(read_log(folder / "fixed.jsonl", mapping=folder / "own.toml", now_ms=NOW, threads=1), stored)
    stored_files = [Original(path.suffix, path.read_bytes()) for path in sorted(stored.iterdir())]
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
        Reader("a mapping", partial(_read_with_mapping, folder / "fixed.jsonl"), _mappings()),
        *(
            Reader(f"a mapping and its log: {name}", partial(_read_with_damaged_pair, logs[name], data, texts[name]),
                   [Original(".toml", texts[name].encode())])
            for name, data in logs_by_mapping.items()
        ),
        Reader("converted", partial(_read_stored, stored, folder / "again"), stored_files),
    ]  # fmt: skip


def _read(path: Path, **options: Any) -> None:
    try:
        log = read_log(path, now_ms=NOW, threads=1, **options)
    except InputError as error:
        if not str(error.path).endswith(".toml"):
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None  # a mapping that fits no record
    check_has_records(log)
    _check_log(log)
    variant = crc32(path.read_bytes()) % 12
    if variant == 0:
        reread = read_log(_store(log, path), threads=1)
        if _counts(reread) != _counts(log):
            raise WrongError(f"{_counts(log)} became {_counts(reread)} when it was stored")
    elif variant == 1:
        scores = online_metrics(log)
        scores.text()
        json.dumps(scores.to_dict(), allow_nan=False)


def _check_log(log: InteractionLog) -> None:
    """Check that every row is accounted for and that the results of the check can be printed."""
    check = check_log(log)
    check.text(width=80)
    json.dumps(check.to_dict(), allow_nan=False)
    for account in log.accounts:
        if account.read != account.kept + sum(rows for _, rows in account.excluded):
            raise WrongError(
                f"of {account.read} {account.table} rows {account.kept} are kept and {account.excluded} left out"
            )
    num_kept = tuple(account.kept for account in log.accounts)
    counts = dict(check.counts)
    if num_kept != (counts["pages"], counts["events"]):
        raise WrongError(f"{num_kept} rows are kept, and there are {counts}")
    if any(not 0 <= finding.share <= 1 for finding in log.findings):
        raise WrongError("a share is none")


def _counts(log: InteractionLog) -> tuple[Any, ...]:
    return (*check_log(log).counts, log.has, log.accounts, log.findings)


def _store(log: InteractionLog, path: Path) -> Path:
    folder = path.parent / "kept"
    shutil.rmtree(folder, ignore_errors=True)
    store_log(log, folder)
    return folder


def _read_with_mapping(data: Path, path: Path) -> None:
    """Read an intact log by a damaged mapping; the error may name either of them."""
    try:
        _check_log(read_log(data, mapping=path, now_ms=NOW, threads=1))
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None


def _read_with_damaged_pair(log_path: Path, intact: bytes, text: str, path: Path) -> None:
    """Read a log by its damaged mapping; in two of three cases, the log is damaged too."""
    random = Random(crc32(path.read_bytes()))
    damages = path.read_bytes() != text.encode() and random.random() < 0.67
    log_path.write_bytes(mutated(intact, random) if damages else intact)
    _read_with_mapping(log_path, path)


def _read_stored(intact_folder: Path, folder: Path, path: Path) -> None:
    """Read a stored log in which a file of the same type is replaced by a damaged one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(intact_folder, folder)
    names = [file.name for file in sorted(intact_folder.iterdir()) if file.suffix == path.suffix] or ["log.json"]
    shutil.copyfile(path, folder / names[path.stat().st_size % len(names)])
    try:
        _check_log(read_log(folder, threads=1))
    except InputError as error:
        if str(folder) not in str(error):
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None


def _lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _rows() -> list[dict[str, Any]]:
    """Return pages and events as the rows of one table."""
    rows: list[dict[str, Any]] = []
    for page_index in range(12):
        page_ids = {
            "id": f"p{page_index}",
            "s": f"s{page_index // 3}",
            "u": f"u{page_index // 6}",
            "device": ("mobile", "desktop")[page_index % 2],
        }
        time, no_event = f"{_DAY}{page_index:02}:00Z", {"doc": None, "pos": None, "money": None}
        hits = "|".join(f"d{(page_index + hit_index) % 9}" for hit_index in range(page_index % 4))
        rows.append(
            {
                **page_ids,
                "kind": "page",
                "t": time,
                "q": f"red shoe {page_index % 5}",
                "hits": hits,
                "n": page_index % 4,
                **no_event,
            }
        )
        for hit_index in range(page_index % 3):
            event_values = {
                "doc": f"d{(page_index + hit_index) % 9}",
                "pos": hit_index + 1,
                "money": 9.5 if hit_index else None,
            }
            kind = ("click", "purchase")[hit_index]
            rows.append(
                {
                    **page_ids,
                    "kind": kind,
                    "t": f"{_DAY}{page_index:02}:1{hit_index}Z",
                    "q": None,
                    "hits": None,
                    "n": None,
                    **event_values,
                }
            )
    return rows


def _ubi() -> list[Original]:
    """Return UBI as lines, as a bulk request, and as tables of queries and of events."""
    queries: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    for row in _rows():
        ids = {"query_id": row["id"], "client_id": row["u"], "session_id": row["s"], "timestamp": row["t"]}
        if row["kind"] == "page":
            attributes = {"page": 1, "page_size": 10, "result_count": row["n"], "device": row["device"], "shop": "A"}
            hits = row["hits"].split("|") if row["hits"] else []
            queries.append(
                {**ids, "user_query": row["q"], "query_response_hit_ids": hits, "query_attributes": attributes}
            )
        else:
            event_attributes = {
                "object": {"object_id": row["doc"]},
                "position": {"ordinal": row["pos"]},
                "value": row["money"],
            }
            events.append({**ids, "action_name": row["kind"], "event_attributes": event_attributes})
    bulk: list[dict[str, Any]] = []
    for index, records in (("ubi_queries", queries), ("ubi_events", events)):
        for record in records:
            bulk += [{"index": {"_index": index}}, record]
    exports = [
        {"_index": "ubi_events", "_id": str(event_index), "_source": event} for event_index, event in enumerate(events)
    ]
    flat = [
        {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in query.items()}
        for query in queries
    ]
    table_files = [
        *tables(pa.Table.from_pylist(flat)),
        *tables(pa.Table.from_pylist(events).drop_columns("event_attributes")),
    ]
    lines = [Original(".ndjson", _lines(records)) for records in ([*queries, *events], bulk, exports)]
    return [*lines, *(table for table in table_files if table.ending in {".csv", ".parquet"})]


def _wscd() -> list[Original]:
    early, late = "", ""
    for page in range(8):
        early += f"{page // 2}\t{page}\tQ\t{page}\t2\t10\t11\t12\n{page // 2}\t{page}\tC\t1{page % 4}\n"
        late += f"{page}\tM\t{page}\tu{page // 2}\n{page}\t0\tQ\t0\t{page}\t5,6\t10,1\t11,2\n{page}\t3\tC\t0\t11\n"
    return [Original(".tsv", early.encode()), Original(".txt", late.encode())]


def _track() -> bytes:
    sessions = ""
    for session in range(4):
        results = "".join(f'<result rank="{rank}"><url>u{rank}</url></result>' for rank in (1, 2, 4))
        clicks = (
            f'<click num="1" starttime="10:00:0{session}.5" endtime="10:00:30"><rank>{session % 4 + 1}</rank></click>'
        )
        pages = "".join(
            f'<interaction num="{page}" starttime="10:0{page}:00"><query>red {page}</query><results>{results}</results>'
            f"<clicked>{clicks}</clicked></interaction>"
            for page in (1, 2)
        )
        current = '<currentquery starttime="10:09:00"><query>reds</query></currentquery>'
        sessions += f'<session num="{session}" starttime="09:59:00"><topic num="5"/>{pages}{current}</session>\n'
    return f"<sessiontrack2012>\n{sessions}</sessiontrack2012>".encode()


def _bandit() -> bytes:
    features = ",".join(f"user_feature_{index}" for index in range(4))
    text = f",timestamp,item_id,position,click,propensity_score,{features}\n"
    for index in range(20):
        click = f"{index % 3 + 1},{int(index % 5 == 0)},0.0{index % 8 + 1}"
        text += f"{index},2019-11-24 00:01:{index:02}.979311+00:00,{index % 7},{click},a,b,c,d\n"
    return text.encode()


def _clickmodels() -> bytes:
    lists = 's{0}\tq {0}\t50\t0.25\t["a", "b", "c"]\t[false, true, false]\t[0, {0}, 1, 0]\n'
    objects = 's{0}\tq {0}\t50\t0.25\t{{"3": "b", "0": "a"}}\t{{"1": true}}\t{{"3": {0}}}\n'
    return "".join((lists if row % 2 else objects).format(row) for row in range(10)).encode()


def _graphcm() -> bytes:
    pages = [
        {"session_id": f"{page_index // 2}", "query": "SUNY", "results": ["d7", "d9"], "clicks": [page_index % 2 + 1]}
        for page_index in range(8)
    ]
    return _lines(pages)


def _usql() -> bytes:
    template = "{0}\t2/15/2012 11:5{0}:01 AM\ten-us\tstar {0}\t9\tu1.com;u2.com;u3.com\t{1}\n"
    return "".join(template.format(row, "u2.com" if row % 2 else "NULL") for row in range(9)).encode()


def _mappings() -> list[Original]:
    names = ("graphcm", "usql", "snowplow", "ga4", "wikimedia")
    return [Original(".toml", text.encode()) for text in (CUSTOM, RESULTS, *(mapping_text(name)[0] for name in names))]
