"""Run the notebooks in examples/ without Jupyter, and write the output into them.

The output of a cell is its printed text, and the text of its last expression; Jupyter shows answers as tables.
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
    """Write or check each notebook; return 1 if one is out of date."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        if text != (new_text := run_notebook(text)):
            stale.append(path.name)
            if not check:
                path.write_text(new_text, encoding="utf-8")
    print(*stale, sep="\n", end="\n" if stale else "")
    return int(check and bool(stale))


def run_notebook(text: str) -> str:
    """Run the cells of a notebook, and return it with their output."""
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
        exec(compile(tree, f"cell {count}", "exec"), names)  # noqa: S102 - our own notebooks
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
