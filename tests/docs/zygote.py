"""Run each example of the documentation in a separate process that has not imported judged before.

The program reads a JSON list of examples from standard input. Each process is a fork of a process that has imported
only the standard library, NumPy, and pyarrow: a fork takes milliseconds, and a new interpreter half a second. The
output is a JSON list of errors in the same order, with an empty text for each example without an error.
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
    """Run an example in a fork, and return the error, or an empty text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            problem = run(example)
        except BaseException:  # noqa: BLE001 - the test reports any error
            problem = traceback.format_exc()
        with os.fdopen(writing, "w") as pipe:
            pipe.write(problem)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        problem = pipe.read()
    status = os.waitpid(child, 0)[1]
    return problem if status == 0 else f"the process ended with status {status}"


def run(example: dict[str, Any]) -> str:
    """Run a doctest, a program, or the lookup of a dotted name; return the error, or an empty text."""
    os.chdir(example["folder"])
    sys.stdout = sys.stderr  # output of programs must not be in the results
    if name := example.get("name"):
        return look_up(name)
    if program := example.get("program"):
        exec(compile(program, example["title"], "exec"), {"__name__": "__main__"})  # noqa: S102
        return ""
    failures: list[str] = []
    warnings.simplefilter("ignore")
    for source in example["doctests"]:
        test = doctest.DocTestParser().get_doctest(source, {}, example["title"], example["title"], 0)
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=failures.append)
    return "".join(failures)


def look_up(name: str) -> str:
    """Look up a dotted name: its first attribute after only ``import judged``, and submodules after their import."""
    value: Any = importlib.import_module("judged")
    parts = name.split(".")
    for last, part in enumerate(parts[1:], 2):
        if last > 2 and not hasattr(value, part):
            with contextlib.suppress(ImportError):
                importlib.import_module(".".join(parts[:last]))
        if not hasattr(value, part):
            return f"{value!r} has no {part}"
        value = getattr(value, part)
    return ""


if __name__ == "__main__":
    main()
