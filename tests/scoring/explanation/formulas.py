"""Formulas of workings, computed again from the numbers that were written beside them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.explanation.sheets import names
from judged.scoring.judging.calculation import CalculationColumn, CalculationStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.scoring.explanation import Explanation
    from judged.scoring.judging.calculation import CalculationTable

FUNCTIONS: dict[str, Any] = {
    "ln": np.log,
    "log2": np.log2,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
}


def page(explanation: Explanation) -> str:
    """Give the sheets closely written, as textbooks have them."""
    return "\n\n".join(
        "\n".join([*filter(None, [title]), *([table.text()] if table.columns else []), *lines])
        for title, table, lines in explanation.parts
    )


class _Divisions(ast.NodeTransformer):
    """Lets a division by zero be zero, which is what every measure does."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("_div", ast.Load()), [node.left, node.right], [])
        return node


def _div(above: Any, below: Any) -> Any:
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below != 0)


def is_formula(how: str, known: set[str]) -> bool:
    """Whether a text is a formula of known names, and not a sentence."""
    try:
        ast.parse(how.replace("^", "**"), mode="eval")
    except SyntaxError:
        return False
    found = names(how)
    return bool(found) and all(name in known or name in FUNCTIONS for name in found)


def compute(how: str, values: Mapping[str, Any]) -> Any:
    """Compute a formula."""
    tree = _Divisions().visit(ast.parse(how.replace("^", "**"), mode="eval"))
    code = compile(ast.fix_missing_locations(tree), "<formula>", "eval")
    with np.errstate(all="ignore"):
        return eval(code, {"__builtins__": {}, "_div": _div, **FUNCTIONS}, dict(values))  # noqa: S307


def check(entries: Sequence[CalculationStep | CalculationColumn | CalculationTable], at: int) -> bool:
    """Compute one entry again; gives whether there was something to compute.

    A column's formula may use ``rank``, ``grade`` and any column written before on the same list.
    """
    entry = entries[at]
    if isinstance(entry, CalculationStep) and entry.how.startswith("sum of "):
        name = entry.how.removeprefix("sum of ")
        column = [
            one
            for one in entries[:at]
            if isinstance(one, CalculationColumn) and one.judged is entry.judged and one.name == name
        ][-1]
        total = np.bincount(column.topic, weights=column.values, minlength=len(entry.judged))
        np.testing.assert_allclose(total, entry.values, rtol=1e-13, err_msg=entry.name)
        return True
    if not isinstance(entry, (CalculationStep, CalculationColumn)) or not is_formula(
        entry.how, {*entry.parts, "rank", "grade"}
    ):
        return False
    parts = {name: np.asarray(part, dtype=np.float64) for name, part in entry.parts.items()}
    if isinstance(entry, CalculationColumn):
        parts["rank"] = np.asarray(entry.rank, dtype=np.float64)
        if "grade" not in parts and "grade" in names(entry.how):
            grades = dict(
                zip(
                    zip(entry.judged.topic.tolist(), entry.judged.rank.tolist(), strict=True),
                    entry.judged.grade,
                    strict=True,
                )
            )
            parts["grade"] = np.array(
                [grades[key] for key in zip(entry.topic.tolist(), entry.rank.tolist(), strict=True)]
            )
    again = np.broadcast_to(compute(entry.how, parts), np.shape(entry.values))
    np.testing.assert_allclose(
        again, np.asarray(entry.values, dtype=np.float64), rtol=1e-11, atol=1e-13, err_msg=entry.name
    )
    return True
