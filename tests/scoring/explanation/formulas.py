"""Evaluation of the formulas in a recorded calculation from its numbers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.explanation.sheets import formula_names
from judged.scoring.judging.calculation import CalculationColumn, CalculationStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.scoring.explanation import Explanation
    from judged.scoring.judging.calculation import CalculationTable

FUNCTIONS: dict[str, Any] = {
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
}


def page(explanation: Explanation) -> str:
    """Return the sheets as text without blank lines in a sheet, as in a textbook."""
    return "\n\n".join(
        "\n".join([*filter(None, [title]), *([table.text()] if table.columns else []), *lines])
        for title, table, lines in explanation.parts
    )


class _Divisions(ast.NodeTransformer):
    """Replacement of divisions, so that a division by zero is zero, as in all measures."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("_div", ast.Load()), [node.left, node.right], [])
        return node


def _div(above: Any, below: Any) -> Any:
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below != 0)


def is_formula(formula: str, known_names: set[str]) -> bool:
    """Return whether a text is a formula with known names, not a sentence."""
    try:
        ast.parse(formula.replace("^", "**"), mode="eval")
    except SyntaxError:
        return False
    identifiers = formula_names(formula)
    return bool(identifiers) and all(name in known_names or name in FUNCTIONS for name in identifiers)


def compute(formula: str, values: Mapping[str, Any]) -> Any:
    """Compute a formula."""
    tree = _Divisions().visit(ast.parse(formula.replace("^", "**"), mode="eval"))
    code = compile(ast.fix_missing_locations(tree), "<formula>", "eval")
    with np.errstate(all="ignore"):
        return eval(code, {"__builtins__": {}, "_div": _div, **FUNCTIONS}, dict(values))  # noqa: S307


def check(entries: Sequence[CalculationStep | CalculationColumn | CalculationTable], position: int) -> bool:
    """Recompute one entry and compare it. Return whether it has a formula.

    The formula of a column may use ``rank``, ``grade``, and any earlier column of the same list.
    """
    entry = entries[position]
    if isinstance(entry, CalculationStep) and entry.summed:
        column = [
            earlier
            for earlier in entries[:position]
            if isinstance(earlier, CalculationColumn)
            and earlier.judged is entry.judged
            and earlier.name == entry.summed
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
        if "grade" not in parts and "grade" in formula_names(entry.how):
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
    recomputed = np.broadcast_to(compute(entry.how, parts), np.shape(entry.values))
    np.testing.assert_allclose(
        recomputed, np.asarray(entry.values, dtype=np.float64), rtol=1e-11, atol=1e-13, err_msg=entry.name
    )
    return True
