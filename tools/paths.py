"""Count the files of judged that a call executes, and list them: ``python tools/paths.py``.

Files are in the order of their first call, in any thread. Imports do not count, since each call runs once before the
traced run.
"""

from __future__ import annotations

import contextlib
import io
import sys
import textwrap
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi.testclient import TestClient

import judged
from judged.cli.main import app
from judged.data import sample
from judged.errors import JudgedWarning
from judged.interface.pages.workspace import open_sample
from judged.results.escaping import TextTable
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(judged.__file__).parent
_QRELS, _RUNS = (
    str(sample.FOLDER / "qrels.txt"),
    [str(sample.FOLDER / f"runs/{name}.run.gz") for name in ("bm25", "rrf")],
)
COMMANDS: dict[str, tuple[list[str], int]] = {
    "judged evaluate": (["evaluate", _QRELS, _RUNS[0], "-m", "nDCG@10", "-m", "AP"], 50),
    "judged compare": (["compare", _QRELS, *_RUNS, "-m", "nDCG@10"], 55),
    "judged online metrics": (["online", "metrics", str(sample.LOG), "-m", "PageCTR"], 45),
    "judged labels next": (["labels", "next", _QRELS, *_RUNS, "--limit", "5"], 40),
}
"""Commands, and the maximum number of files of each."""


def main() -> None:
    """Trace the calls, and print a table and the files of each."""
    warnings.simplefilter("ignore", JudgedWarning)
    server = TestClient(make_app(open_sample()))
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        name: (lambda words=words: run_quietly(words), goal) for name, (words, goal) in COMMANDS.items()
    }
    calls["GET /matrix"] = (lambda: server.get("/matrix").raise_for_status(), 30)
    paths = {name: traced_files(call) for name, (call, _) in calls.items()}
    rows = tuple((name, str(len(paths[name])), f"<= {goal}") for name, (_, goal) in calls.items())
    print(TextTable(("call", "files", "goal"), rows).text())
    for name, files in paths.items():
        print(f"\n{name}:\n" + textwrap.fill(", ".join(files), 110, break_on_hyphens=False))


def run_quietly(words: list[str]) -> None:
    """Run a command in this process, without output."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        app(words, standalone_mode=False)


def traced_files(call: Callable[[], object]) -> list[str]:
    """Run a call twice, and return the files with functions that the second run executed, in order of first calls."""
    files: dict[str, None] = {}

    def profile(frame: Any, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and path.is_relative_to(SOURCE):
            files[path.relative_to(SOURCE).as_posix()] = None

    call()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(files)


if __name__ == "__main__":
    main()
