"""Places of a source file that can be mutated, each with its replacements.

Not mutated: strings, docstrings, f-strings, raised errors (their messages), type annotations, `if TYPE_CHECKING`,
decorators, overloads, and the `strict` flag of `zip` (an assertion about lengths, without effect if it is true).
"""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass

_SWAPS: dict[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("/",)),
    ast.Div: ("/", ("*",)),
    ast.FloorDiv: ("//", ("*", "/")),
    ast.Mod: ("%", ("*",)),
    ast.Pow: ("**", ("*",)),
    ast.MatMult: ("@", ("*",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
    ast.BitXor: ("^", ("&",)),
    ast.LShift: ("<<", (">>",)),
    ast.RShift: (">>", ("<<",)),
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
    ast.And: ("and", ("or",)),
    ast.Or: ("or", ("and",)),
}
_GAP = rb"(?:[\s()\\]|#[^\n]*)*"  # between two operands: parentheses, line ends, comments
_TYPE_FIELDS = {"annotation", "returns", "decorator_list", "type_params", "type_comment"}


@dataclass(frozen=True, slots=True)
class Place:
    """Part of a source that can be mutated: bytes from `start` to `end`, in a statement from `first` to `last` line."""

    line: int
    first: int
    last: int
    start: int
    end: int
    replacements: tuple[str, ...]
    in_function: bool

    def mutated(self, source: bytes, replacement: str) -> bytes:
        """Return the source with `replacement` in this place."""
        return source[: self.start] + replacement.encode() + source[self.end :]


def find_places(source: bytes) -> list[Place]:
    """Find all places of a source that can be mutated, in the order of their position."""
    finder = _Finder(source)
    finder.walk(ast.parse(source), _Context())
    return sorted(set(finder.places), key=lambda place: (place.start, place.end))


@dataclass(frozen=True, slots=True)
class _Context:
    """Context of a node: lines of its statement, and properties of its function."""

    first: int = 1
    last: int = 1
    in_function: bool = False
    may_return_none: bool = False


class _Finder:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.places: list[Place] = []

    def walk(self, node: ast.AST, context: _Context) -> None:
        if _is_skipped(node):
            return
        if isinstance(node, ast.stmt):
            context = self._in_statement(node, context)
        self._add_operators(node, context)
        self._add_values_and_statements(node, context)
        inner = context
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = _Context(context.first, context.last, in_function=True, may_return_none=_may_return_none(node))
        elif isinstance(node, ast.ClassDef):
            inner = _Context(context.first, context.last)
        for name, value in ast.iter_fields(node):
            if name in _TYPE_FIELDS:
                continue
            children = value if isinstance(value, list) else [value]
            if name == "args" and isinstance(node, ast.Call):
                children = [argument for argument in value if argument is not _type_argument(node)]
            for child in children:
                if isinstance(child, ast.AST):
                    self.walk(child, inner if name == "body" else context)

    def _in_statement(self, node: ast.stmt, context: _Context) -> _Context:
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        last = node.end_lineno or node.lineno
        if isinstance(body, list):  # of a compound statement, only the lines before the body
            first_inside = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
            last = max(node.lineno, first_inside.lineno - 1)
        return _Context(node.lineno, last, context.in_function, context.may_return_none)

    def _add_operators(self, node: ast.AST, context: _Context) -> None:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                if not (_is_text(left) or _is_text(right) or _is_union(node)):
                    self._add_operator(op, left, right, context)
            case ast.BoolOp(op=op, values=values):
                for left, right in itertools.pairwise(values):
                    self._add_operator(op, left, right, context)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                for operand, op, right in zip([left, *comparators], ops, comparators, strict=False):
                    self._add_operator(op, operand, right, context)
            case ast.AugAssign(target=target, op=op, value=value):
                self._add_operator(op, target, value, context)
                self._add(*self._span(node), ("pass",), context)
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                start = self._span(node)[0]
                self._add(start, start + (3 if isinstance(node.op, ast.Not) else 1), ("",), context)
            case _:
                pass

    def _add_values_and_statements(self, node: ast.AST, context: _Context) -> None:
        match node:
            case ast.Constant(value=bool() | int() | float()):
                self._add(*self._span(node), _other_constants(node.value), context)
            case ast.If(test=test) | ast.IfExp(test=test):
                self._add_negation(test, context)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    self._add_negation(test, context)
            case ast.Expr(value=value):
                if not isinstance(value, ast.Constant | ast.Yield | ast.YieldFrom):
                    self._add(*self._span(node), ("pass",), context)
            case ast.Return(value=ast.expr() as value):
                if context.may_return_none and not (isinstance(value, ast.Constant) and value.value is None):
                    self._add(*self._span(value), ("None",), context)
            case _:
                pass

    def _add_negation(self, test: ast.expr, context: _Context) -> None:
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):  # the `not` is a separate place
            start, end = self._span(test)
            self._add(start, end, (f"not ({self.source[start:end].decode()})",), context)

    def _add_operator(self, op: ast.AST, left: ast.expr, right: ast.expr, context: _Context) -> None:
        operator, replacements = _SWAPS[type(op)]
        pattern = operator if r"\s" in operator else re.escape(operator)
        match = re.compile(_GAP + b"(" + pattern.encode() + b")").match(self.source, self._span(left)[1])
        if match is None or match.end(1) > self._span(right)[0]:
            raise ValueError(f"line {left.lineno}: expected the operator {operator}")
        self._add(match.start(1), match.end(1), replacements, context)

    def _add(self, start: int, end: int, replacements: tuple[str, ...], context: _Context) -> None:
        line = self.source.count(b"\n", 0, start) + 1
        self.places.append(Place(line, context.first, context.last, start, end, replacements, context.in_function))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = self.starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return self.starts[node.lineno - 1] + node.col_offset, end


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Raise():
            return True
        case ast.keyword(arg="strict", value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(decorator_list=decorators):
            return any(isinstance(name, ast.Name) and name.id == "overload" for name in decorators)
        case _:
            return False


def _type_argument(call: ast.Call) -> ast.expr | None:
    """Return the argument of `isinstance` or `cast` that is a type."""
    match call:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, types]):
            return types
        case ast.Call(func=ast.Name(id="cast"), args=[types, _]):
            return types
        case _:
            return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_union(node: ast.BinOp) -> bool:
    """Whether a `|` joins types: one side is None or the name of a class."""
    names = [side for side in (node.left, node.right) if isinstance(side, ast.Name | ast.Constant)]
    return isinstance(node.op, ast.BitOr) and any(
        (isinstance(side, ast.Constant) and side.value is None)
        or (
            isinstance(side, ast.Name)
            and (
                side.id in {"str", "int", "float", "bool", "bytes"} or (side.id[0].isupper() and not side.id.isupper())
            )
        )
        for side in names
    )


def _may_return_none(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    if isinstance(node, ast.Lambda):
        return False
    returns = node.returns
    return returns is None or any(isinstance(part, ast.Constant) and part.value is None for part in ast.walk(returns))


def _other_constants(value: float) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (str(not value),)
    return tuple(repr(other) for other in dict.fromkeys((value + 1, value * 2)) if other != value)


def replaced_lines(source: bytes, place: Place, replacement: str) -> tuple[str, str]:
    """Return the line of a place as it is and as it becomes, without indentation."""
    before, after = source, place.mutated(source, replacement)
    start = source.rfind(b"\n", 0, place.start) + 1
    lines: list[str] = []
    for text, end in ((before, place.end), (after, place.start + len(replacement.encode()))):
        stop = text.find(b"\n", end)
        lines.append(" ".join(text[start : stop if stop >= 0 else None].decode().split()))
    return lines[0], lines[1]
