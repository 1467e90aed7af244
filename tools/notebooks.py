"""Run the notebooks in examples/ without Jupyter, and write into them what their cells print.

A cell's output is what it prints, and its last expression as text; in Jupyter an answer shows itself as a table.
``--check`` only compares.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from judged.errors import JudgedWarning

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def main() -> int:
    """Write or check each; exit code 1 if one is out of date."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        if text != (made := executed(text)):
            stale.append(path.name)
            if not check:
                path.write_text(made, encoding="utf-8")
    print(*stale, sep="\n", end="\n" if stale else "")
    return int(check and bool(stale))


def executed(text: str) -> str:
    """Run a notebook's cells one after the other, and give it with what they print."""
    notebook = json.loads(text)
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell |= {"execution_count": count, "outputs": _run("".join(cell["source"]), names, count)}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        exec(compile(tree, f"cell {count}", "exec"), names)  # noqa: S102  our own notebooks
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        outputs.append(
            {"data": {"text/plain": _lines(repr(value))}, "execution_count": count, "metadata": {},
             "output_type": "execute_result"}
        )  # fmt: skip
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    sys.exit(main())
