"""Show which of our files one call crosses, for three calls on the sample: ``python tools/paths.py``.

Files stand in the order in which a function in them was called first, in any thread; what only runs while a module is
imported does not count, since each call is made once before it is traced; the workbench then has its numbers, and a
second GET only shows them. Over this order, a *climb* is a step to a
higher layer of pyproject.toml, and a *return* one to a package that was left before.
"""

from __future__ import annotations

import sys
import textwrap
import threading
import tomllib
import warnings
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

with warnings.catch_warnings():  # it says, when it is imported, that it would rather use another client
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

import judged
from judged.data import sample
from judged.errors import JudgedWarning
from judged.results.escaping import Table
from judged.web.app import make_app
from judged.web.workspace import open_sample

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(judged.__file__).parent
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS = [layer.replace("judged.", "").split(" | ") for layer in CONTRACTS[0]["layers"]]


def main() -> None:
    """Trace the calls, and print a table and the files of each."""
    warnings.simplefilter("ignore", JudgedWarning)
    scores = judged.evaluate(sample.qrels(), sample.runs(), ["nDCG@10", "AP"])
    comparisons = [scores.compare(), scores.compare()]  # one a call, since texts may be kept
    server = TestClient(make_app(open_sample()))
    calls: dict[str, tuple[Callable[[], Any], int | None]] = {
        "print a comparison": (lambda: comparisons.pop().text(), 8),
        "compute a comparison": (scores.compare, None),
        "GET /matrix": (lambda: server.get("/matrix").raise_for_status(), 20),
    }
    paths = {name: crossed(call) for name, (call, _) in calls.items()}
    rows = tuple(
        (name, str(len(paths[name])), *map(str, turns(paths[name])), "" if goal is None else f"<= {goal}")
        for name, (_, goal) in calls.items()
    )
    print(Table(("path", "files", "climbs", "returns", "goal"), rows).text())
    for name, files in paths.items():
        print(f"\n{name}:\n" + textwrap.fill(", ".join(files), 110, break_on_hyphens=False))


def crossed(call: Callable[[], object]) -> list[str]:
    """Make a call twice, and give the files whose functions ran the second time, in the order of their first calls."""
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


def turns(files: list[str]) -> tuple[int, int]:
    """Count the climbs and the returns."""
    packages = [file.partition("/")[0].removesuffix(".py") for file in files]
    levels = [next((at for at, layer in enumerate(LAYERS) if package in layer), 0) for package in packages]
    steps = list(enumerate(pairwise(packages), 1))
    returns = sum(after != before and after in packages[:place] for place, (before, after) in steps)
    return sum(after < before for before, after in pairwise(levels)), returns


if __name__ == "__main__":
    main()
