"""Only modules that a plan names are run, headers stay with the URL of a file, and databases read no other files."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from judged.data.run import Run
from judged.errors import InputError
from judged.pipelines.experiments import run
from judged.pipelines.experiments.configurations import PlanModules
from judged.pipelines.experiments.engines.external import Http
from pipelines.experiments import small_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SEARCH = """\
from helpers.lists import ids
import random

def search(query, k):
    order = ids()
    random.Random(1).shuffle(order)
    return order[:k]
"""


def test_files_of_the_plans_folder_that_no_function_needs_are_never_imported(tmp_path: Path) -> None:
    """Python imports `sitecustomize.py` at its start, and `random.py` would shadow the standard library."""
    log = tmp_path / "ran.txt"
    log_import = f"open({str(log)!r}, 'a').write(__name__ + '\\n')\n"
    for name in ("sitecustomize", "usercustomize", "random", "json", "numpy", "unused"):
        (tmp_path / f"{name}.py").write_text(log_import)
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "lists.py").write_text("def ids():\n    return ['d1', 'd2', 'd3']\n")
    (tmp_path / "helpers" / "unused.py").write_text(log_import)
    (tmp_path / "own.py").write_text(SEARCH)
    text = '[control]\nengine = "function"\nsearch = "own:search"\n'
    results = run(small_plan.plan_file(tmp_path, text), tmp_path / "results")
    assert not results.failures, results.failures
    assert not log.exists()


def test_an_error_in_a_function_of_the_plan_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def search(query, k):\n    return [][0]\n")
    text = '[control]\nengine = "function"\nsearch = "own:search"\n'
    with pytest.raises(InputError, match=r"own\.py:2"):
        run(small_plan.plan_file(tmp_path, text), tmp_path / "results")


def test_only_listed_modules_are_importable(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for name in ("__init__", "inside"):
        (tmp_path / "package" / f"{name}.py").write_text("")
    finder = PlanModules({"package": str(tmp_path / "package" / "__init__.py"), "a.b.c": str(tmp_path / "c.py")})
    package = finder.find_spec("package")
    assert package is not None
    assert package.submodule_search_locations == []
    assert [finder.find_spec(name) is not None for name in ("package.inside", "a", "a.b", "a.b.c", "b", "c")] == [
        False, True, True, True, False, False]  # fmt: skip


@contextmanager
def serving(answer: Any) -> Iterator[tuple[str, list[Mapping[str, str]]]]:
    """Serve on a free port; yield the URL and the headers of all requests."""
    received_headers: list[Mapping[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received_headers.append(dict(self.headers))
            status, headers = answer()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received_headers
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int, tmp_path: Path) -> None:
    with (
        serving(lambda: (200, {})) as (other_url, received_headers),
        serving(lambda: (status, {"Location": f"{other_url}/x"})) as (url, _),
    ):
        file = tmp_path / "engine.toml"
        file.write_text(f'url = "{url}/q"\nhits = "hits"\nid = "id"\n[headers]\nAuthorization = "Bearer secret"\n')
        engine = Http()
        engine.build({}, {"file": str(file)}, tmp_path)
        with pytest.raises(InputError, match=f"redirects .{status}.") as error:
            engine.search("a", 3)
    assert received_headers == []
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("view", ["read_text('{path}')", "read_csv('{path}', header = false)", "glob('{folder}/*')"])
def test_a_view_of_a_database_reads_no_other_file(view: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "secret.txt").write_text("the secret\n")
    database = tmp_path / "runs.duckdb"
    source = view.format(path=tmp_path / "secret.txt", folder=tmp_path)
    with duckdb.connect(str(database)) as connection:
        first = connection.sql(f"SELECT * FROM {source}").columns[0]
        columns = f"'q' AS query_id, CAST(\"{first}\" AS VARCHAR) AS doc_id, 1.0::DOUBLE AS score"
        connection.execute(f"CREATE VIEW run AS SELECT {columns} FROM {source}")
        connection.execute("CREATE TABLE plain AS SELECT 'q' AS query_id, 'd' AS doc_id, 1.0::DOUBLE AS score")
    with pytest.raises(InputError) as error:
        Run.read(f"{database}/run").table  # noqa: B018
    assert "the secret" not in str(error.value)
    assert Run.read(f"{database}/plain").table["doc_id"].to_pylist() == ["d"]
