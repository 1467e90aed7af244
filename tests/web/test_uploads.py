"""Files that are sent are hostile until they were read: bombs, names that are paths, broken bytes, deep JSON."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import logging
import lzma
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from judged.errors import InputError
from judged.interface.pages.workspace import open_workspace
from judged.web.app import make_app
from judged.web.uploads import Limits, display_name, store

QRELS = b"q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"
RUN = b"q1 Q0 d2 1 2.0 t\nq1 Q0 d1 2 1.0 t\nq2 Q0 d3 1 1.0 t\n"
NAMED = b"query_id,doc_id,score,run_id\n"
SMALL = Limits(runs=3, file=200_000, total=400_000, unpacked=500_000, in_memory=100_000, line=2_000, long_line=50_000)


@pytest.fixture
def app(sample, tmp_path, monkeypatch) -> Any:
    """A workbench whose temporary files can be looked at."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return make_app(sample, limits=SMALL)


def sent(**files: Any) -> list[tuple[str, tuple[str, bytes]]]:
    """Name what is sent: ``qrels=QRELS`` or ``qrels=("name.txt", QRELS)``; a list of these for runs."""
    fields = []
    for field, uploads in files.items():
        for i, row in enumerate(uploads if isinstance(uploads, list) else [uploads]):
            fields.append((field, row if isinstance(row, tuple) else (f"{field}{i}.txt", row)))
    return fields


def post(app: Any, **files: Any) -> Any:
    return TestClient(app).post("/api/v1/open", files=sent(**files))


def problem(app: Any, **files: Any) -> str:
    """Send what must be refused; give what is said. Nothing may change or stay behind, and no path may be told."""
    before = app.state.holder.workspace
    answer = post(app, **files)
    assert answer.status_code == 400, answer.text
    assert app.state.holder.workspace is before
    folder = Path(__import__("tempfile").gettempdir())
    assert list(folder.glob("judged-*")) == []
    assert str(folder) not in answer.text
    assert "judged-" not in answer.text
    body = answer.json()
    return f"{body['problem']} | {body['fix']}"


def packed_twice(data: bytes) -> bytes:
    return gzip.compress(gzip.compress(data))


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("qrels.txt", data)
    return file.getvalue()


def tarred(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo("../../qrels.txt")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


def as_parquet() -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table({"query_id": ["q1"], "doc_id": ["d1"], "relevance": [1.0]}), file)
    return file.getvalue()


def test_what_is_sent_is_open_then(app):
    overview = post(
        app, qrels=("mine.qrels", QRELS), runs=[("one.run", RUN), ("two.run.gz", gzip.compress(RUN))]
    ).json()
    assert overview["title"] == "mine"
    assert overview["judgments"] == 3
    assert [(run["name"], run["documents"]) for run in overview["runs"]] == [("one", 3), ("two", 3)]
    # q1: the relevant document at rank 2, 2 / log2(3) of 2; q2: at rank 1
    assert overview["runs"][0]["value"] == pytest.approx((1 / 1.584962500721156 + 1) / 2)
    assert TestClient(app).get("/api/v1/open").json() == overview


def test_everything_can_be_sent(app):
    opened = post(
        app,
        qrels=QRELS,
        runs=RUN,
        queries=("q.tsv", b"q1\tincome tax\nq2\tpeace\n"),
        attributes=("a.csv", b"query_id,kind\nq1,law\nq2,news\n"),
        documents=("d.jsonl", b'{"doc_id": "d1", "text": "how it is paid"}\n{"doc_id": "d9", "text": "unwanted"}\n'),
    ).json()
    assert (opened["queries"], opened["attributes"], opened["documents"]) == (2, ["kind"], 1)
    workspace = app.state.holder.workspace
    assert workspace.query("q2") == "peace"
    assert workspace.texts.text("d1") == "how it is paid"
    places = {workspace.qrels.where, workspace.topics.where, workspace.attributes.where, workspace.texts.where}
    assert places == {"qrels0.txt", "q.tsv", "a.csv", "d.jsonl"}
    assert workspace.judged("runs0").run.where == "runs0.txt"
    assert workspace.rows("runs0").run("q1").table.num_rows == 2  # read again, from where it is kept


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_packed_files_are_read(app, pack):
    assert post(app, qrels=pack(QRELS), runs=pack(RUN)).json()["n"] == 2


def test_the_form_leads_home_or_says_what_is_wrong(app):
    tried = TestClient(app, follow_redirects=False)
    # a browser sends an empty file without a name for each field where none was chosen
    empty = [(field, ("", b"")) for field in ("queries", "attributes", "documents")]
    answer = tried.post("/open", files=[*sent(qrels=("x.qrels", QRELS), runs=("x.run", RUN)), *empty])
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    page = tried.get("/").text
    assert '<span class="collection">x</span>' in page
    wrong = tried.post("/open", files=sent(qrels=("<b>.txt", b"q1 0 d1 1\nq1 0 d2 much\n")))
    assert wrong.status_code == 400
    assert "&lt;b&gt;.txt" in wrong.text
    assert "<b>.txt" not in wrong.text
    assert '<span class="collection">x</span>' in tried.get("/").text
    assert tried.post("/open/sample").headers["location"] == "/"
    assert "the sample" in tried.get("/").text


def test_a_form_without_judgments_says_so(app):
    tried = TestClient(app)
    answer = tried.post("/open", files=[("qrels", ("", b""))])
    assert answer.status_code in {400, 422}
    assert "qrels" in answer.text
    assert tried.post("/api/v1/open").status_code == 422
    assert tried.post("/api/v1/open", data={"qrels": "text"}).status_code == 422


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_bomb_is_refused_while_it_unpacks(app, pack):
    bomb = pack(b"q1 0 d1 1\n" * 400_000)
    assert len(bomb) < SMALL.file
    assert "at most 500,000 bytes after decompression" in problem(app, qrels=("bomb.gz", bomb))


def test_files_share_the_room_for_what_is_unpacked(app):
    half = gzip.compress(RUN * 5000)
    assert len(RUN) * 5000 < SMALL.unpacked < len(RUN) * 10_000
    message = problem(app, qrels=QRELS, runs=[half, half])
    assert message.startswith("runs1.txt: the file must have at most")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (zipped(QRELS), "zip archive"),
        (zipfile.ZipFile(empty := io.BytesIO(), "w").close() or empty.getvalue(), "zip archive is empty"),
        (packed_twice(QRELS), "compressed twice"),
        (tarred(QRELS), "tar archive"),
        (as_parquet(), "Parquet and Arrow files cannot be uploaded"),
        (b"ARROW1\0\0", "Parquet and Arrow files cannot be uploaded"),
        (QRELS.decode().encode("utf-16"), "UTF-16"),
        (QRELS.decode().encode("utf-16-le"), "NUL bytes"),
        (QRELS + b"\0", "NUL bytes"),
        (b"", "empty"),
        (b"\n\n\n", "no rows"),
        (b"\xef\xbb\xbf", "no rows"),
        (gzip.compress(QRELS)[:-9], "truncated or damaged"),
        (b"\x1f\x8b" + b"x" * 100, "truncated or damaged"),
        (b"BZh9" + b"x" * 100, "truncated or damaged"),
        (b"\xfd7zXZ\0" + b"x" * 100, "cannot be decompressed"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 100, "truncated or damaged"),
        (b"q1 0 " + b"d" * 3000 + b" 1\n", "a line must have at most 2,000 bytes"),
        (QRELS * 100 + b"q1 0 " + b"d" * 70_000 + b" 1\n", "a line must have at most 2,000 bytes"),
        (b"{" + b" " * 60_000 + b"}", "a line must have at most 50,000 bytes"),
        (b"[\n" + b" \n" * 60_000 + b"]", "JSON must have at most 100,000 bytes"),
        (b"q1 0 d1 1\n" * 30_000, "at most 200,000 bytes as uploaded"),
        (b"[" * 20_000, "nested too deeply"),
        (b'{"q1":' * 5_000 + b"1" + b"}" * 5_000, "nested too deeply"),
        (b'{"q1": {"d1": NaN}}', "NaN"),
        (b'{"q1": {"d1": 1e999}}', "1e999"),
        (b"q1 0 d1 1\nq1 0 \xff\xfe 2\n", "not UTF-8"),
        (b"q1 0 d1 1\nq1 0 d1 2\n", "judged 2 times"),
        (b"q1 0 d1 nan\n", ""),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(1, 200)), ""),
    ],
)  # fmt: skip
def test_hostile_judgments_are_refused_by_their_name(app, data, expected):
    message = problem(app, qrels=("bad.txt", data))
    assert expected in message
    assert message.startswith("bad.txt") or "bad" in message


@pytest.mark.parametrize(
    ("field", "name", "data", "expected"),
    [
        ("runs", "r.run", QRELS, "looks like qrels, not like a run"),
        ("qrels", "q.txt", RUN, "looks like a run, not like qrels"),
        ("runs", "r.run", b"q9 Q0 d1 1 1.0 t\n", "no topic in common"),
        ("runs", "r.run", b"q1 Q0 d1 1 x t\n", ""),
        ("runs", "r.run", RUN + b"q1 Q0 d9 3 ten t\n", "r.run:4"),
        ("runs", "r.run", RUN + b"q2\n", "r.run:4"),
        ("runs", "r.json", b"[" * 20_000, "nested too deeply"),
        ("runs", "r.jsonl", b'{"query_id": "q1"}\n' + b"[" * 20_000 + b"\n", ""),
        ("runs", "r.csv", NAMED + b"".join(b"q1,d1,1.5,r%d\n" % n for n in range(5)), "got 5"),
        ("runs", "r.csv", NAMED + b"q1,d1,1.5,a\nq1,d1,1.5," + b"x" * 100 + b"\n", "a run name must have"),
        ("queries", "q.xml", b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>', "entities"),
        ("queries", "q.xml", b"<a>" * 20_000, ""),
        ("queries", "q.json", b"[" * 20_000, "nested too deeply"),
        ("queries", "q.tsv", b"q1\ta\nq1\tb\n", "q1"),
        ("queries", "q.tsv", b"q1\t" + b"a " * 40_000, "line"),
        ("queries", "q.tsv", b"q1\ta\n" * 30_000, "at most 100,000 bytes"),
        ("attributes", "a.csv", b"kind,words\nlaw,3\n", "query_id"),
        ("attributes", "a.csv", b"query_id,kind,kind\nq1,a,b\n", "kind"),
        ("attributes", "a.json", b"[" * 20_000, ""),
        ("attributes", "a.json", b'{"q1": {"a": [[1]]}}', ""),
        ("documents", "d.jsonl", b'{"doc_id": "d1", "text": ' + b"[" * 20_000 + b"\n", ""),
        ("documents", "d.jsonl", b'{"a": 1}\n{"b": 2}\n', ""),
        ("documents", "d.json", b"[" * 20_000, ""),
        ("documents", "d.csv", b'doc_id,text\n"d1,' + b"x" * 60_000, "line"),
    ],
)  # fmt: skip
def test_other_hostile_files_are_refused_by_their_name(app, field, name, data, expected):
    files = {"qrels": QRELS, "runs": RUN, field: (name, data)}
    message = problem(app, **files)
    assert expected in message
    assert name in message


def test_too_many_runs_are_refused(app):
    assert problem(app, qrels=QRELS, runs=[RUN] * 4).startswith("an upload must have at most 3 run files, got 4")


def test_too_many_parts_are_refused(app):
    answer = TestClient(app).post("/api/v1/open", files=[("runs", ("r", b""))] * 1100)
    assert answer.status_code == 400
    assert "Too many files" in answer.json()["problem"]


def test_a_form_that_is_none_is_refused(app):
    tried = TestClient(app)
    form = "multipart/form-data"
    for kind in (form, f"{form}; boundary=x", f"{form}; boundary={'x' * 999}"):
        for body in (b"", b"--x\r\n", b"--x\r\nContent-Disposition: form-data\r\n\r\n", b"\0" * 100, b"--y--"):
            answer = tried.post("/api/v1/open", content=body, headers={"Content-Type": kind})
            assert answer.status_code in {400, 422}, (kind, body)
    assert tried.post("/api/v1/open", json={"qrels": "/etc/passwd"}).status_code == 422


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\windows\\win.ini", "win.ini"),
        ("/etc/shadow", "shadow"),
        ("C:\\a.txt", "a.txt"),
        ("..", "qrels"),
        ("../", "qrels"),
        (".", "qrels"),
        (None, "qrels"),
        ("   ", "qrels"),
        ("a\x00b\x1b[31m\u202etxt.run", "ab[31mtxt.run"),
        ("a\r\nSet-Cookie: x", "aSet-Cookie: x"),
        ("é日本.run", "é日本.run"),
        ("x" * 300 + ".run.gz", "x" * 40 + "..." + "x" * 30 + ".run.gz"),
    ],
)
def test_a_name_is_only_shown(name, expected):
    assert display_name(name, "qrels") == expected
    assert len(expected) <= 80


@given(st.text(max_size=300), st.integers(10, 80))
@settings(max_examples=300)
def test_no_name_is_a_path_or_too_long(name, most):
    shortened = display_name(name, "qrels", most)
    assert 0 < len(shortened) <= most
    assert shortened.isprintable()
    assert "/" not in shortened
    assert "\\" not in shortened
    assert shortened not in {".", ".."}


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "/etc/x.jsonl", "..\\x", "a/b/c.run", "~/.bashrc", "|", "-"])
def test_files_stand_under_names_of_ours_in_a_private_folder(app, tmp_path, name):
    assert post(app, qrels=(name, QRELS), runs=[(name, RUN)]).status_code == 200
    folder = app.state.holder.workspace.upload_folder.path
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.name.partition(".")[0] for file in folder.iterdir()} == {"sent-qrels0", "sent-runs0"}
    assert all(file.is_file() and not file.is_symlink() for file in folder.iterdir())
    assert list(tmp_path.iterdir()) == [folder]


def test_files_are_removed_when_others_are_opened_and_in_the_end(app, tmp_path):
    with TestClient(app) as tried:
        tried.post("/api/v1/open", files=sent(qrels=QRELS))
        first = app.state.holder.workspace.upload_folder.path
        tried.post("/api/v1/open", files=sent(qrels=QRELS, runs=RUN))
        second = app.state.holder.workspace.upload_folder.path
        assert first != second
        assert list(tmp_path.iterdir()) == [second]
        tried.post("/api/v1/open/sample")
        assert app.state.holder.workspace.upload_folder is None
        assert list(tmp_path.iterdir()) == []
        tried.post("/api/v1/open", files=sent(qrels=QRELS))
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_what_was_sent_before(app):
    post(app, qrels=("mine", QRELS), runs=RUN)
    folder, workspace = app.state.holder.workspace.upload_folder.path, app.state.holder.workspace
    assert post(app, qrels=b"", runs=RUN).status_code == 400
    assert app.state.holder.workspace is workspace
    assert folder.is_dir()
    assert workspace.rows("runs0").run("q1").table.num_rows == 2


def test_what_no_reader_foresaw_is_a_problem_and_logged(app, monkeypatch, caplog):
    def broken(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("judged.web.uploads.Qrels.read", broken)
    with caplog.at_level(logging.ERROR, "judged"):
        assert problem(app, qrels=("q.txt", QRELS)).startswith("q.txt: the file cannot be read (MemoryError)")
    assert caplog.records[0].exc_info[0] is MemoryError


def test_runs_of_one_name_are_told_apart(app):
    overview = post(app, qrels=QRELS, runs=[("a.run", RUN), ("a.run", RUN)]).json()
    assert len({run["name"] for run in overview["runs"]}) == 2


def test_judgments_alone_can_be_opened(app):
    overview = post(app, qrels=QRELS).json()
    assert overview["runs"] == []
    assert "headline" not in overview
    assert "No run is open" in TestClient(app).get("/").text


def test_xz_that_wants_much_memory_is_refused_before_it_is_unpacked(tmp_path):
    wide = lzma.compress(b"q1 0 d1 1\n" * 10, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}])
    with pytest.raises(InputError, match="cannot be decompressed"):
        store(io.BytesIO(wide), "a.xz", tmp_path / "a", Limits(), max_size=1000)
    assert list(tmp_path.iterdir()) == []


@given(st.binary(max_size=300), st.sampled_from(["qrels", "runs", "queries", "attributes", "documents"]))
@settings(max_examples=60)
def test_no_bytes_make_the_server_fail(sample, data, field):
    answer = TestClient(make_app(sample, limits=SMALL)).post(
        "/api/v1/open", files=sent(**{"qrels": QRELS, "runs": RUN, field: ("f", data)})
    )
    assert answer.status_code in {200, 400}, answer.text


def test_a_file_in_the_folder_of_the_server_is_not_opened_by_its_name(app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.qrels").write_bytes(QRELS)
    for field in ("qrels", "runs", "queries", "attributes", "documents"):
        files = {"qrels": QRELS, "runs": RUN, field: ("f.txt", b"secret.qrels\n")}
        answer = post(app, **files)
        assert "d3" not in answer.text
    (tmp_path / "secret.qrels").unlink()


def test_a_run_that_is_a_set_is_open_without_a_score(app):
    overview = post(app, qrels=QRELS, runs=[("set.txt", b"q1 d1\nq1 d2\nq2 d3\n")]).json()
    assert overview["runs"][0]["ranked"] is False
    assert overview["runs"][0]["value"] is None
    assert "unranked set" in TestClient(app).get("/").text


def test_json_in_one_line_may_be_as_long_as_json(app):
    many = {"q1": {f"document-{n:05}": n % 3 for n in range(2000)}}
    data = json.dumps(many).encode()
    assert SMALL.line < len(data) < SMALL.long_line
    assert post(app, qrels=("q.json", data)).json()["judgments"] == 2000


def test_lines_that_end_as_on_an_old_mac_are_lines(app):
    assert post(app, qrels=(QRELS * 1).replace(b"\n", b"\r"), runs=RUN).status_code == 200


def test_a_gzip_file_may_have_several_members(app):
    parts = gzip.compress(QRELS[:10]) + gzip.compress(QRELS[10:])
    assert post(app, qrels=parts).json()["judgments"] == 3
    assert struct.unpack("<I", parts[-4:])[0] == len(QRELS) - 10


LOG = (
    b'{"query_id": "1", "user_query": "hat", "timestamp": "2024-01-01T00:00:00Z", "client_id": "u",'
    b' "query_response_hit_ids": ["a", "b"]}\n'
)
PLAN = b'documents = "docs.jsonl"\nqueries = "q.jsonl"\nqrels = "qrels.txt"\n[control]\nengine = "sqlite"\n'


def add(app: Any, option: str, page_path: str = "/clicks", path: str = "", **files: Any) -> Any:
    data = {"option": option, "page_path": page_path, "path": path}
    return TestClient(app, follow_redirects=False).post("/open/data", data=data, files=sent(**files))


@pytest.fixture
def judgments_only(tmp_path, monkeypatch) -> Any:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return make_app(open_workspace({"q1": {"d1": 1}}, {"x": {"q1": ["d1"]}}), limits=SMALL)


def test_a_log_is_opened_beside_the_open_data(judgments_only):
    before = judgments_only.state.holder.workspace
    assert 'action="/open/data"' in TestClient(judgments_only).get("/users").text
    answer = add(judgments_only, "log", "/users", file=("log.ndjson", LOG))
    assert (answer.status_code, answer.headers["location"]) == (303, "/users")
    after = judgments_only.state.holder.workspace
    assert (after.qrels, after.run_names) == (before.qrels, before.run_names)
    assert "log" in after.open_data
    assert 'action="/open/data"' not in TestClient(judgments_only).get("/users").text


@pytest.mark.parametrize("option", ["experiment", "watch", "labels", "host", "x"])
def test_files_that_name_other_files_or_functions_are_not_uploaded(judgments_only, option):
    before = judgments_only.state.holder.workspace
    answer = add(judgments_only, option, file=("plan.toml", PLAN))
    assert answer.status_code == 400
    assert "cannot be uploaded" in answer.text
    assert judgments_only.state.holder.workspace is before


def test_paths_are_opened_only_if_the_server_permits_it(judgments_only, tmp_path):
    path = tmp_path / "log.ndjson"
    path.write_bytes(LOG)
    assert add(judgments_only, "log", path=str(path)).status_code == 400
    permitted = make_app(judgments_only.state.holder.workspace, limits=SMALL, opens_paths=True)
    assert add(permitted, "log", path=str(path)).status_code == 303
    assert permitted.state.holder.workspace.parts["log"] == (str(path),)


@pytest.mark.parametrize("page_path", ["//evil.example/", "https://evil.example", "clicks", "/\\evil", "/a?b"])
def test_no_address_leads_to_another_host(judgments_only, page_path):
    assert add(judgments_only, "log", page_path, file=("log.ndjson", LOG)).status_code == 422


def test_a_file_that_cannot_be_read_does_not_stay(judgments_only, tmp_path):
    before = judgments_only.state.holder.workspace
    answer = add(judgments_only, "traces", "/traces", file=("t.jsonl", b"[1, 2"))
    assert answer.status_code == 400
    assert str(tmp_path) not in answer.text
    assert judgments_only.state.holder.workspace is before
    assert not list(tmp_path.glob("judged-*/sent-*"))
