"""Which topics: a small language over their attributes. It is parsed, never run."""

from __future__ import annotations

import ast
import keyword
import operator
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.data.attributes import Attributes
    from judged.results.types import Bools

    Mask: TypeAlias = Callable[[Attributes], Bools]
    Condition: TypeAlias = tuple[list[str], Mask]  # the attributes, and what marks topics
    Constant: TypeAlias = str | float | bool

Compare: TypeAlias = Callable[[Any, Any], Any]

_LONGEST = 2000  # characters
_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], Compare, str]] = {
    ast.Eq: (ast.Eq, operator.eq, "="),
    ast.NotEq: (ast.NotEq, operator.ne, "<>"),
    ast.Lt: (ast.Gt, operator.lt, "<"),
    ast.LtE: (ast.GtE, operator.le, "<="),
    ast.Gt: (ast.Lt, operator.gt, ">"),
    ast.GtE: (ast.LtE, operator.ge, ">="),
}
"""Each with what it is when its sides change places, and how SQL writes it."""
_HELP = (
    "compare attributes with texts in quotes or numbers: domain == 'law' and 2 <= words < 5, kind in ('a', 'b'),"
    " not (x or y), missing(kind), contains(kind, 'text'), `any other name` == 'a'"
)
_KINDS = {"b": "true or false", "O": "a text", "f": "a number"}
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`([^`]+)`"
_TEXT_OR_WORD = re.compile(rf"{_QUOTED}|\b[^\W\d]\w*")
_WORDS = {*"and or not in is True False None if else for lambda await yield".split()}  # noqa: SIM905
"""Keywords that stand in Python's expressions; any other, such as class or from, is a name."""


@dataclass(frozen=True)
class Expression:
    """A condition on the attributes of a topic.

    Comparisons ``== != < <= > >=``, also chained; ``in`` and ``not in`` a tuple or list of constants; ``and``, ``or``,
    ``not``; the name of an attribute of true and false alone; ``missing(name)`` and ``contains(name, "text")``. A
    topic without a value satisfies no comparison, whichever: ``not`` turns that round as any other answer. A name
    with other characters than those of a word, such as ``title (en)``, stands in backquotes.

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
        self._read()

    def _read(self) -> Condition:
        """Read it anew: its attributes, and what marks topics."""
        if not self.text.strip():
            return [], lambda known: np.ones(len(known), dtype=np.bool_)
        if len(self.text) > _LONGEST:
            raise InputError(f"the expression has {len(self.text)} characters", fix=f"write at most {_LONGEST}")
        try:
            tree = _parsed(self.text.strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(f"{self.text!r} is not an expression", fix=_HELP) from None
        try:
            return _condition(tree, self.text)
        except RecursionError:
            raise InputError(f"{self.text[:40]!r}... is nested too deeply", fix=_HELP) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it asks for."""
        return tuple(dict.fromkeys(self._read()[0]))

    @property
    def compared(self) -> tuple[str, ...]:
        """Those of them that it does not ask for by ``missing(name)``: who does, knows that some topics have none.

        >>> Expression("missing(words) or words < 5 or kind == 'missing'").compared
        ('kind',)
        """
        asked: set[str] = set()
        for node in ast.walk(_parsed(self.text.strip())) if self.text.strip() else ():
            match node:
                case ast.Call(func=ast.Name(id="missing"), args=[ast.Name(id=name)]):
                    asked.add(name)
                case _:
                    pass
        return tuple(name for name in self.names if name not in asked)

    def sql(self, kinds: Mapping[str, str]) -> str:
        r"""Write it as a condition in SQL: of rows as of topics, and never null.

        Parameters
        ----------
        kinds
            The columns: ``O`` for texts, ``f`` for numbers, ``b`` for true and false, as in NumPy.

        Raises
        ------
        InputError
            If there is no such column, or a text is compared with a number.

        Examples
        --------
        >>> Expression("kind == 'law' and not missing(words)").sql({"kind": "O", "words": "f"})
        '(coalesce(nullif("kind", \'\') = \'law\', false) AND (NOT "words" IS NULL))'
        """
        return _sql(_parsed(self.text.strip()), kinds) if self.text.strip() else "true"

    def mask(self, attributes: Attributes) -> Bools:
        """Mark the topics that satisfy it: (T,).

        Raises
        ------
        InputError
            If an attribute does not exist, or a text is compared with a number.
        """
        return self._read()[1](attributes)


def name_in(name: str) -> str:
    """Write the name of an attribute as it stands in an expression.

    >>> name_in("kind"), name_in("class"), name_in("title (en)")
    ('kind', '`class`', '`title (en)`')
    """
    if "`" in name:
        raise InputError(f"the attribute {name!r} has a backquote in its name", fix="rename it")
    plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.is_normalized("NFKC", name)
    return name if plain else f"`{name}`"  # the parser writes a name in NFKC


def among(given: Any) -> str:
    """Write the expression that chooses topics by their ids, given as a text with commas, several, or one.

    >>> among("t01,t02"), among(["t01"])
    ("query_id in ('t01', 't02')", "query_id == 't01'")
    """
    several = given.replace(",", " ").split() if isinstance(given, str) else given
    names = list(map(str, several if isinstance(several, Iterable) else [several]))
    return f"query_id in ({', '.join(map(repr, names))})" if len(names) > 1 else f"query_id == {''.join(names)!r}"


def _parsed(text: str) -> ast.expr:
    """Parse an expression; until it is a tree, words of the same length stand for names that Python would not take."""
    named: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        name = match[1] or (match[0] if keyword.iskeyword(match[0]) and match[0] not in _WORDS else "")
        if not name:
            return match[0]
        size = len(match[0].encode())
        free = (word for at in range(size + len(text)) if (word := f"_{at}".ljust(size, "_")) not in text)
        word = next(candidate for candidate in free if candidate not in named)
        named[word] = name
        return word

    tree = ast.parse(_TEXT_OR_WORD.sub(stand_in, text), mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = named.get(node.id, node.id)
    return tree


def _condition(node: ast.expr, text: str) -> Condition:
    """Give the attributes of an expression and what marks topics, and refuse whatever else stands in it."""
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_condition(value, text) for value in values]
            combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
            names = [name for found, _ in parts for name in found]
            return names, lambda known: reduce(combine, [mask(known) for _, mask in parts])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            names, mask = _condition(operand, text)
            return names, lambda known: ~mask(known)
        case ast.Name(id=name):
            return _where(name, "b", lambda values: values)
        case ast.Call(func=ast.Name(id="missing"), args=[ast.Name(id=name)], keywords=[]):
            return [name], lambda known: ~_column(known, name)[1]
        case ast.Call(
            func=ast.Name(id="contains"), args=[ast.Name(id=name), ast.Constant(value=str() as part)], keywords=[]
        ):
            return _where(name, "O", lambda values: [part in value for value in values])
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In() | ast.NotIn() as op], comparators=[constants]):
            among, inside = _constants(constants, text), isinstance(op, ast.In)
            return _where(name, "", lambda values: [(value in among) == inside for value in values], among)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [left, *comparators]
            masks = [_comparison(*parts, text) for parts in zip(sides, ops, comparators, strict=False)]
            names = [side.id for side in sides if isinstance(side, ast.Name)]
            return names, lambda known: reduce(np.logical_and, [mask(known) for mask in masks])
        case _:
            raise _wrong(node, text)


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, text: str) -> Mask:
    if type(op) not in _COMPARE:
        raise _wrong(left if isinstance(op, (ast.In, ast.NotIn)) else right, text)
    turned, compare, _ = _COMPARE[type(op)]
    if not isinstance(left, ast.Name):
        if not isinstance(right, ast.Name):
            raise _wrong(left, text)
        return _comparison(right, turned(), left, text)
    name = left.id
    if isinstance(right, ast.Name):
        other = right.id
        return lambda known: _both(known, name, compare, other)
    constant = _constant(right, text)
    if isinstance(constant, bool) and not isinstance(op, (ast.Eq, ast.NotEq)):
        raise InputError(f"{name} is compared with true or false, which have no order", fix=_HELP)
    return _where(name, "", lambda values: compare(values, constant), [constant])[1]


def _constant(node: ast.expr, text: str) -> Constant:
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


def _constants(node: ast.expr, text: str) -> list[Constant]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [_constant(one, text) for one in node.elts]
    raise _wrong(node, text)


def _wrong(node: ast.AST, text: str) -> InputError:
    part = ast.get_source_segment(text.strip(), node) or text
    return InputError(f"{part[:60]!r} cannot stand in an expression", fix=_HELP)


def _where(name: str, kind: str, test: Callable[[Any], Any], constants: Sequence[Constant] = ()) -> Condition:
    """Test the values of one attribute, which are of a kind, or are compared with constants of theirs."""

    def mask(attributes: Attributes) -> Bools:
        values, known = _column(attributes, name)
        for constant in constants:
            _alike(name, values.dtype.kind, constant)
        _need_kind(name, values.dtype.kind, kind)
        try:
            return np.asarray(test(values), dtype=np.bool_) & known
        except TypeError:
            problem = f"the attribute {name} holds several texts, which have no order"
            raise InputError(problem, fix=f"write {name} == 'one of them'") from None

    return [name], mask


def _both(attributes: Attributes, name: str, compare: Compare, other: str) -> Bools:
    (values, known), (others, known_too) = _column(attributes, name), _column(attributes, other)
    if others.dtype.kind != values.dtype.kind:
        raise InputError(f"the attributes {name} and {other} are of different types", fix=_HELP)
    return np.asarray(compare(values, others), dtype=np.bool_) & known & known_too


def _alike(name: str, kind: str, constant: Constant) -> None:
    """Refuse to compare a text with a number: the answer would be "no" for every topic."""
    if kind != ("b" if isinstance(constant, bool) else "O" if isinstance(constant, str) else "f"):
        shown = repr(constant) if isinstance(constant, (str, bool)) else f"{constant:g}"
        raise InputError(
            f"the attribute {name} is {_KINDS[kind]}, and is compared with {shown}",
            fix=f"write {name} == " + {"b": "True", "O": "'a text in quotes'", "f": "3"}[kind],
        )


def _need_kind(name: str, kind: str, needed: str) -> None:
    if needed and kind != needed:
        raise InputError(f"the attribute {name} is not {_KINDS[needed]}", fix=f"compare it: {name} == ...")


def _sql(node: ast.expr, kinds: Mapping[str, str]) -> str:
    """Write a checked expression as SQL."""
    match node:
        case ast.BoolOp(op=op, values=values):
            word = " AND " if isinstance(op, ast.And) else " OR "
            return f"({word.join(_sql(value, kinds) for value in values)})"
        case ast.UnaryOp(operand=operand):
            return f"(NOT {_sql(operand, kinds)})"
        case ast.Name(id=name):
            return f"coalesce({_column_sql(name, kinds, 'b')}, false)"
        case ast.Call(func=ast.Name(id="missing"), args=[ast.Name(id=name)]):
            return f"{_column_sql(name, kinds)} IS NULL"
        case ast.Call(args=[ast.Name(id=name), ast.Constant(value=str() as part)]):
            return f"coalesce(strpos({_column_sql(name, kinds, 'O')}, {_literal(part)}) > 0, false)"
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In() | ast.NotIn() as op], comparators=[constants]):
            column, among = _column_sql(name, kinds), _constants(constants, "")
            for constant in among:
                _alike(name, kinds[name], constant)
            inside = f"{column} IN ({', '.join(map(_literal, among))})" if among else "false"
            return f"({column} IS NOT NULL AND {'' if isinstance(op, ast.In) else 'NOT '}{inside})"
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [left, *comparators]
            parts = [_comparison_sql(*part, kinds) for part in zip(sides, ops, comparators, strict=False)]
            return f"({' AND '.join(parts)})" if len(parts) > 1 else parts[0]
        case _:
            raise AssertionError(ast.dump(node))


def _comparison_sql(left: ast.expr, op: ast.cmpop, right: ast.expr, kinds: Mapping[str, str]) -> str:
    names = [side.id for side in (left, right) if isinstance(side, ast.Name)]
    columns = {name: _column_sql(name, kinds) for name in names}
    if len(names) == 2 and kinds[names[0]] != kinds[names[1]]:
        raise InputError(f"the attributes {names[0]} and {names[1]} are of different types", fix=_HELP)
    written = list[str]()
    for side in (left, right):
        if isinstance(side, ast.Name):
            written.append(columns[side.id])
        else:
            constant = _constant(side, "")
            _alike(names[0], kinds[names[0]], constant)
            written.append(_literal(constant))
    return f"coalesce({written[0]} {_COMPARE[type(op)][2]} {written[1]}, false)"


def _column_sql(name: str, kinds: Mapping[str, str], needed: str = "") -> str:
    """Quote the name of a column that there is, of the kind that is needed; a text that is empty is none."""
    if name not in kinds:
        raise InputError(f"no attribute {name!r}", fix=f"use one of {', '.join(kinds)}")
    _need_kind(name, kinds[name], needed)
    column = '"' + name.replace('"', '""') + '"'
    return f"nullif({column}, '')" if kinds[name] == "O" else column


def _literal(constant: Constant) -> str:
    if isinstance(constant, bool):
        return str(constant).lower()
    quoted = "'" + str(constant).replace("'", "''") + "'"
    return quoted if isinstance(constant, str) else f"CAST({quoted} AS DOUBLE)"


class _Several(tuple[str, ...]):
    """Several texts: they are a text if one of them is, and contain what one of them contains; they have no order."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__contains__(self, other)

    def __ne__(self, other: object) -> bool:
        return not tuple.__contains__(self, other)

    def __contains__(self, part: object) -> bool:
        return any(str(part) in text for text in self)

    __hash__ = tuple.__hash__


def _column(attributes: Attributes, name: str) -> tuple[Any, Bools]:
    """Give an attribute as a NumPy array, and which topics have it."""
    column = attributes.column(name)
    none: dict[str, tuple[Any, Any]] = {"string": ("", object), "bool": (False, np.bool_)}
    empty, kind = none.get(str(column.type), (np.nan, np.float64))
    values = column.to_pylist()
    if str(column.type).startswith("list"):
        found = np.empty(len(values), dtype=object)
        for place, several in enumerate(values):
            found[place] = _Several(several or ())
        return found, np.array([several is not None for several in values], dtype=np.bool_)
    known = np.array([value is not None for value in values], dtype=np.bool_)
    return np.array([empty if value is None else value for value in values], dtype=kind), known
