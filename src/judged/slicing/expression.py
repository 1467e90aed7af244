"""What a slice says of its topics: a small language over attributes. It is parsed, never run."""

from __future__ import annotations

import ast
import keyword
import operator
import re
import unicodedata
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged._types import Bools
    from judged.data.attributes import Attributes

_LONGEST = 2000  # characters
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq, ast.NotEq: ast.NotEq, ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip
_HELP = (
    "compare attributes with texts in quotes or numbers: domain == 'law' and 2 <= words < 5, kind in ('a', 'b'),"
    " not (x or y), missing(kind), contains(kind, 'text'), `any other name` == 'a'"
)
_TEXT_OR_NAME = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`([^`]+)`")


@dataclass(frozen=True)
class Expression:
    """A condition on the attributes of a topic.

    Comparisons ``== != < <= > >=``, also chained; ``in`` and ``not in`` a tuple or list of constants; ``and``, ``or``,
    ``not``; the name of an attribute of true and false alone; ``missing(name)`` and ``contains(name, "text")``. A
    topic without a value satisfies no comparison, whichever: ``not`` turns that round as any other answer. A name that
    is no word of Python, such as ``class`` or ``title (en)``, stands in backquotes.

    Parameters
    ----------
    text
        The expression. Empty: every topic.

    Raises
    ------
    InputError
        If it is no such expression.

    Examples
    --------
    >>> from judged.data.attributes import Attributes
    >>> known = Attributes.of({"q1": {"kind": "news", "words": 3}, "q2": {"kind": "law"}})
    >>> Expression("kind in ('news', 'law') and words < 5").mask(known).tolist()
    [True, False]
    >>> Expression("missing(words)").names
    ('words',)
    """

    text: str

    def __post_init__(self) -> None:
        self._check(self._tree)

    @property
    def _tree(self) -> ast.expr | None:
        if not self.text.strip():
            return None
        if len(self.text) > _LONGEST:
            raise InputError(f"the expression has {len(self.text)} characters", fix=f"write at most {_LONGEST}")
        try:
            return _parsed(self.text.strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(f"{self.text!r} is no expression", fix=_HELP) from None

    def _check(self, node: ast.expr | None) -> None:
        if node is not None:
            try:
                _names(node, self.text)
            except RecursionError:
                raise InputError(f"{self.text[:40]!r}... is nested too deeply", fix=_HELP) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it asks for."""
        node = self._tree
        return () if node is None else tuple(dict.fromkeys(_names(node, self.text)))

    def mask(self, attributes: Attributes) -> Bools:
        """Mark the topics that satisfy it: (T,).

        Raises
        ------
        InputError
            If an attribute does not exist, or a text is compared with a number.
        """
        node = self._tree
        if node is None:
            return np.ones(len(attributes), dtype=np.bool_)
        return _mask(node, attributes, self.text)


def name_in(name: str) -> str:
    """Write the name of an attribute as it stands in an expression.

    >>> name_in("kind"), name_in("class"), name_in("title (en)")
    ('kind', '`class`', '`title (en)`')
    """
    if "`" in name:
        raise InputError(f"the attribute {name!r} has a backquote in its name", fix="rename it")
    plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.is_normalized("NFKC", name)
    return name if plain else f"`{name}`"  # the parser writes a name in NFKC


def _parsed(text: str) -> ast.expr:
    """Parse an expression; names in backquotes are words of the same length until it is a tree."""
    named: dict[str, str] = {}

    def stand_in(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        size = len(found[0].encode())
        free = (word for at in range(size + len(text)) if (word := f"_{at}".ljust(size, "_")) not in text)
        word = next(one for one in free if one not in named)
        named[word] = found[1]
        return word

    tree = ast.parse(_TEXT_OR_NAME.sub(stand_in, text), mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = named.get(node.id, node.id)
    return tree


def _names(node: ast.expr, text: str) -> list[str]:
    """Give the attributes of an expression, and refuse whatever else stands in it."""
    match node:
        case ast.BoolOp(values=values):
            return [name for value in values for name in _names(value, text)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _names(operand, text)
        case ast.Name(id=name):
            return [name]
        case ast.Call(func=ast.Name(id="missing"), args=[ast.Name(id=name)], keywords=[]):
            return [name]
        case ast.Call(func=ast.Name(id="contains"), args=[ast.Name(id=name), ast.Constant(value=str())], keywords=[]):
            return [name]
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compared_names([left, *comparators], ops, text)
        case _:
            raise _wrong(node, text)


def _compared_names(parts: list[ast.expr], ops: list[ast.cmpop], text: str) -> list[str]:
    for at, op in enumerate(ops):
        pair = parts[at], parts[at + 1]
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(pair[0], ast.Name) or len(ops) > 1:
                raise _wrong(pair[0], text)
            _constants(pair[1], text)
            continue
        if type(op) not in _COMPARE:
            raise _wrong(parts[at + 1], text)
        if not any(isinstance(one, ast.Name) for one in pair):
            raise _wrong(pair[0], text)
        for one in pair:
            if not isinstance(one, ast.Name):
                _constant(one, text)
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _constant(node: ast.expr, text: str) -> str | float | bool:
    match node:
        case ast.Constant(value=bool() | str() as value):
            return value
        case ast.Constant(value=int() | float() as value):
            return _number(value, node, text)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value is not True:
            return -_number(value, node, text)
        case _:
            raise _wrong(node, text)


def _number(value: float, node: ast.expr, text: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _wrong(node, text) from None


def _constants(node: ast.expr, text: str) -> list[str | float | bool]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [_constant(one, text) for one in node.elts]
    raise _wrong(node, text)


def _wrong(node: ast.AST, text: str) -> InputError:
    part = ast.get_source_segment(text.strip(), node) or text
    return InputError(f"{part[:60]!r} cannot stand in a slice's expression", fix=_HELP)


def _mask(node: ast.expr, attributes: Attributes, text: str) -> Bools:
    match node:
        case ast.BoolOp(op=op, values=values):
            combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return reduce(combine, [_mask(value, attributes, text) for value in values])
        case ast.UnaryOp(operand=operand):
            return ~_mask(operand, attributes, text)
        case ast.Name(id=name):
            values, known = _column(attributes, name)
            if values.dtype != np.bool_:
                raise InputError(f"the attribute {name} is not true or false", fix=f"compare it: {name} == ...")
            return values & known
        case ast.Call(func=ast.Name(id=function), args=args):
            return _asked(function, args, attributes)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            parts = [left, *comparators]
            pairs = [_compared(parts[at], op, parts[at + 1], attributes, text) for at, op in enumerate(ops)]
            return reduce(np.logical_and, pairs)
        case _:
            raise _wrong(node, text)


def _asked(function: str, args: list[ast.expr], attributes: Attributes) -> Bools:
    name = args[0].id if isinstance(args[0], ast.Name) else ""
    values, known = _column(attributes, name)
    if function == "missing":
        return ~known
    wanted = str(args[1].value) if isinstance(args[1], ast.Constant) else ""
    if values.dtype.kind not in "OU":
        raise InputError(f"the attribute {name} is no text", fix=f"compare it: {name} == ...")
    return np.array([wanted in value for value in values.tolist()], dtype=np.bool_) & known


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, attributes: Attributes, text: str) -> Bools:
    if isinstance(op, (ast.In, ast.NotIn)):
        name = left.id if isinstance(left, ast.Name) else ""
        values, known = _column(attributes, name)
        constants = _constants(right, text)
        for one in constants:
            _alike(name, values, one)
        among = np.array([value in constants for value in values.tolist()], dtype=np.bool_)
        return (among if isinstance(op, ast.In) else ~among) & known
    if not isinstance(left, ast.Name):
        return _compared(right, _TURNED[type(op)](), left, attributes, text)
    values, known = _column(attributes, left.id)
    if isinstance(right, ast.Name):
        others, known_too = _column(attributes, right.id)
        if others.dtype.kind != values.dtype.kind:
            raise InputError(f"the attributes {left.id} and {right.id} are of different types", fix=_HELP)
        return np.asarray(_COMPARE[type(op)][1](values, others), dtype=np.bool_) & known & known_too
    constant = _constant(right, text)
    _alike(left.id, values, constant)
    if isinstance(constant, bool) and not isinstance(op, (ast.Eq, ast.NotEq)):
        raise InputError(f"the attribute {left.id} is true or false, and has no order", fix=_HELP)
    return np.asarray(_COMPARE[type(op)][1](values, constant), dtype=np.bool_) & known


def _alike(name: str, values: Any, constant: str | float | bool) -> None:
    """Refuse to compare a text with a number: the answer would be "no" for every topic."""
    kind = "b" if isinstance(constant, bool) else "O" if isinstance(constant, str) else "f"
    if values.dtype.kind != kind:
        known = {"b": "true or false", "O": "a text", "f": "a number"}
        shown = repr(constant) if isinstance(constant, (str, bool)) else f"{constant:g}"
        raise InputError(
            f"the attribute {name} is {known[values.dtype.kind]}, and is compared with {shown}",
            fix=f"write {name} == " + {"b": "True", "O": "'a text in quotes'", "f": "3"}[values.dtype.kind],
        )


def _column(attributes: Attributes, name: str) -> tuple[Any, Bools]:
    """Give an attribute as a NumPy array, and which topics have it."""
    column = attributes.column(name)
    known = np.array([value is not None for value in column.to_pylist()], dtype=np.bool_)
    kind = str(column.type)
    if kind == "string":
        return np.array([value or "" for value in column.to_pylist()], dtype=object), known
    if kind == "bool":
        return np.array([bool(value) for value in column.to_pylist()], dtype=np.bool_), known
    return np.array([value if value is not None else np.nan for value in column.to_pylist()], dtype=np.float64), known
