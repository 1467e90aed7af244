"""Run examples of the documentation, each in a process of its own that has imported nothing of judged before.

The program reads a JSON list of examples from standard input, and forks for each from a process that has imported only
the standard library, NumPy, and pyarrow: a fork costs milliseconds, where a new interpreter costs half a second. It
writes a JSON list of what went wrong, in the same order; an empty text where nothing did.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import json
import os
import sys
import traceback
import warnings
from typing import Any

import numpy as np  # noqa: F401 - the forked processes need not import it again
import pyarrow as pa  # noqa: F401


def main() -> None:
    """Run all examples of the input."""
    examples = json.load(sys.stdin)
    assert not any(name.partition(".")[0] == "judged" for name in sys.modules)
    json.dump([in_own_process(example) for example in examples], sys.stdout)


def in_own_process(example: dict[str, Any]) -> str:
    """Fork, run an example, and return what went wrong."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            wrong = run(example)
        except BaseException:  # noqa: BLE001 - whatever it is, the test reports it
            wrong = traceback.format_exc()
        with os.fdopen(writing, "w") as pipe:
            pipe.write(wrong)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        wrong = pipe.read()
    status = os.waitpid(child, 0)[1]
    return wrong if status == 0 else f"the process ended with status {status}"


def run(example: dict[str, Any]) -> str:
    """Run a doctest, a program, or the look-up of a dotted name; return what went wrong."""
    os.chdir(example["folder"])
    sys.stdout = sys.stderr  # what a program prints does not belong into the results
    if name := example.get("name"):
        return look_up(name)
    if program := example.get("program"):
        exec(compile(program, example["title"], "exec"), {"__name__": "__main__"})  # noqa: S102
        return ""
    shown: list[str] = []
    warnings.simplefilter("ignore")
    for source in example["doctests"]:
        test = doctest.DocTestParser().get_doctest(source, {}, example["title"], example["title"], 0)
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=shown.append)
    return "".join(shown)


def look_up(name: str) -> str:
    """Look a dotted name up: its first part after nothing but ``import judged``, modules below it by their import."""
    found: Any = importlib.import_module("judged")
    parts = name.split(".")
    for last, part in enumerate(parts[1:], 2):
        if last > 2 and not hasattr(found, part):
            with contextlib.suppress(ImportError):
                importlib.import_module(".".join(parts[:last]))
        if not hasattr(found, part):
            return f"{found!r} has no {part}"
        found = getattr(found, part)
    return ""


if __name__ == "__main__":
    main()
