"""Expressions that select topics by their attributes. They are parsed as Python syntax and never executed."""

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
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.data.attributes import Attributes
    from judged.results.types import Bools

    Mask: TypeAlias = Callable[[Attributes], Bools]
    Predicate: TypeAlias = tuple[list[str], Mask]  # names of the attributes, and the function that marks topics
    Constant: TypeAlias = str | float | bool

Compare: TypeAlias = Callable[[Any, Any], Any]

_MAX_LENGTH = 2000  # characters
_OPERATORS: dict[type[ast.cmpop], tuple[type[ast.cmpop], Compare, str]] = {
    ast.Eq: (ast.Eq, operator.eq, "="),
    ast.NotEq: (ast.NotEq, operator.ne, "<>"),
    ast.Lt: (ast.Gt, operator.lt, "<"),
    ast.LtE: (ast.GtE, operator.le, "<="),
    ast.Gt: (ast.Lt, operator.gt, ">"),
    ast.GtE: (ast.LtE, operator.ge, ">="),
}
"""Operators: the equivalent if both sides are swapped, the Python function, and the SQL operator."""
_SYNTAX = (
    "compare attributes with texts in quotes or numbers: domain == 'law' and 2 <= words < 5, kind in ('a', 'b'),"
    " not (x or y), missing(kind), contains(kind, 'text'), `any other name` == 'a'"
)
_KINDS = {"b": "true or false", "O": "a text", "f": "a number"}
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`([^`]+)`"
_TEXT_OR_WORD = re.compile(rf"{_QUOTED}|\b[^\W\d]\w*")
_EXPRESSION_KEYWORDS = {*"and or not in is True False None if else for lambda await yield".split()}  # noqa: SIM905
"""Keywords of Python expressions. All other keywords, such as class or from, can be attribute names."""


@dataclass(frozen=True)
class Expression:
    """A condition on the attributes of a topic.

    Supported are comparisons ``== != < <= > >=``, also chained; ``in`` and ``not in`` with a tuple or list of
    constants; ``and``, ``or``, ``not``; the name of a boolean attribute; ``missing(name)`` and
    ``contains(name, "text")``. If a topic has no value, every comparison is false, so that ``not`` of it is true. A
    name that is not an identifier, such as ``title (en)``, is written in backquotes.

    Parameters
    ----------
    text
        The expression. If empty, all topics are selected.

    Raises
    ------
    InputError
        If the syntax is invalid.

    Examples
    --------
    >>> from judged.data.attributes import Attributes
    >>> attributes = Attributes.of({"q1": {"kind": "news", "words": 3}, "q2": {"kind": "law"}})
    >>> Expression("kind in ('news', 'law') and words < 5").mask(attributes).tolist()
    [True, False]
    >>> Expression("missing(words)").names
    ('words',)
    """

    text: str

    def __post_init__(self) -> None:
        self._compile()

    def _compile(self) -> Predicate:
        if not self.text.strip():
            return [], lambda attributes: np.ones(len(attributes), dtype=np.bool_)
        if len(self.text) > _MAX_LENGTH:
            problem = f"an expression may have at most {_MAX_LENGTH} characters, got {len(self.text)}"
            raise InputError(problem, fix="write a shorter expression, or store the result as an attribute")
        try:
            tree = _parse(self.text.strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError(f"{self.text!r} is not an expression", fix=_SYNTAX) from None
        try:
            return _predicate(tree, self.text)
        except RecursionError:
            raise InputError(f"{self.text[:40]!r}... is nested too deeply", fix=_SYNTAX) from None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes in the expression."""
        return tuple(dict.fromkeys(self._compile()[0]))

    @property
    def compared(self) -> tuple[str, ...]:
        """Names of the attributes that never appear in ``missing(name)``, so that missing values are not expected.

        >>> Expression("missing(words) or words < 5 or kind == 'missing'").compared
        ('kind',)
        """
        tested: set[str] = set()
        for node in ast.walk(_parse(self.text.strip())) if self.text.strip() else ():
            match node:
                case ast.Call(func=ast.Name(id="missing"), args=[ast.Name(id=name)]):
                    tested.add(name)
                case _:
                    pass
        return tuple(name for name in self.names if name not in tested)

    def sql(self, kinds: Mapping[str, str]) -> str:
        r"""Return the expression as an SQL condition on a row, which is true or false and never null.

        Parameters
        ----------
        kinds
            NumPy type code of each column: ``O`` for texts, ``f`` for numbers, ``b`` for booleans.

        Raises
        ------
        InputError
            If a column does not exist, or a text is compared with a number.

        Examples
        --------
        >>> Expression("kind == 'law' and not missing(words)").sql({"kind": "O", "words": "f"})
        '(coalesce(nullif("kind", \'\') = \'law\', false) AND (NOT "words" IS NULL))'
        """
        return _to_sql(_parse(self.text.strip()), kinds) if self.text.strip() else "true"

    def mask(self, attributes: Attributes) -> Bools:
        """Return a boolean array of shape (T,) that is True for the topics that satisfy the expression.

        Raises
        ------
        InputError
            If an attribute does not exist, or a text is compared with a number.
        """
        return self._compile()[1](attributes)


def quote_attribute(name: str) -> str:
    """Return the name of an attribute as written in an expression, in backquotes if it is not an identifier.

    >>> quote_attribute("kind"), quote_attribute("class"), quote_attribute("title (en)")
    ('kind', '`class`', '`title (en)`')
    """
    if "`" in name:
        raise InputError(f"the name of the attribute {name!r} has a backquote", fix="rename the attribute")
    # ast.parse normalizes identifiers to NFKC, so that other forms would not match the attribute.
    is_plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.is_normalized("NFKC", name)
    return name if is_plain else f"`{name}`"


def select_query_ids(query_ids: Any) -> str:
    """Return the expression that selects topics by id; `query_ids` is an id, a list, or a text with commas.

    >>> select_query_ids("t01,t02"), select_query_ids(["t01"])
    ("query_id in ('t01', 't02')", "query_id == 't01'")
    """
    ids = query_ids.replace(",", " ").split() if isinstance(query_ids, str) else query_ids
    ids = list(map(str, ids if isinstance(ids, Iterable) else [ids]))
    return f"query_id in ({', '.join(map(repr, ids))})" if len(ids) > 1 else f"query_id == {''.join(ids)!r}"


def _parse(text: str) -> ast.expr:
    """Parse an expression, using placeholders for names that are not valid in Python."""
    names: dict[str, str] = {}

    def substitute_placeholder(match: re.Match[str]) -> str:
        is_name_like_keyword = keyword.iskeyword(match[0]) and match[0] not in _EXPRESSION_KEYWORDS
        name = match[1] or (match[0] if is_name_like_keyword else "")
        if not name:
            return match[0]
        # The placeholder has the same length in bytes, so that positions of nodes still refer to the original text.
        size = len(match[0].encode())
        candidates = (f"_{number}".ljust(size, "_") for number in range(size + len(text)))
        placeholder = next(word for word in candidates if word not in text and word not in names)
        names[placeholder] = name
        return placeholder

    tree = ast.parse(_TEXT_OR_WORD.sub(substitute_placeholder, text), mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return tree


def _predicate(node: ast.expr, text: str) -> Predicate:
    """Compile a syntax tree; raise InputError for syntax that expressions do not support."""
    match node:
        case ast.BoolOp(op=op, values=operands):
            predicates = [_predicate(operand, text) for operand in operands]
            combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
            names = [name for operand_names, _ in predicates for name in operand_names]
            return names, lambda attributes: reduce(combine, [mask(attributes) for _, mask in predicates])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            names, mask = _predicate(operand, text)
            return names, lambda attributes: ~mask(attributes)
        case ast.Name(id=name):
            return _value_predicate(name, "b", lambda values: values)
        case ast.Call(func=ast.Name(id="missing"), args=[ast.Name(id=name)], keywords=[]):
            return [name], lambda attributes: ~_values_and_mask(attributes, name)[1]
        case ast.Call(
            func=ast.Name(id="contains"), args=[ast.Name(id=name), ast.Constant(value=str() as substring)], keywords=[]
        ):
            return _value_predicate(name, "O", lambda values: [substring in value for value in values])
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In() | ast.NotIn() as op], comparators=[sequence]):
            constants, is_in = _parse_constants(sequence, text), isinstance(op, ast.In)
            return _value_predicate(
                name, "", lambda values: [(value in constants) == is_in for value in values], constants
            )
        case ast.Compare(left=left_side, ops=ops, comparators=comparators):
            sides = [left_side, *comparators]
            masks = [_comparison_mask(*comparison, text) for comparison in zip(sides, ops, comparators, strict=False)]
            names = [side.id for side in sides if isinstance(side, ast.Name)]
            return names, lambda attributes: reduce(np.logical_and, [mask(attributes) for mask in masks])
        case _:
            raise _syntax_error(node, text)


def _comparison_mask(left_side: ast.expr, op: ast.cmpop, right_side: ast.expr, text: str) -> Mask:
    if type(op) not in _OPERATORS:
        raise _syntax_error(left_side if isinstance(op, (ast.In, ast.NotIn)) else right_side, text)
    swapped, compare, _ = _OPERATORS[type(op)]
    if not isinstance(left_side, ast.Name):
        if not isinstance(right_side, ast.Name):
            raise _syntax_error(left_side, text)
        return _comparison_mask(right_side, swapped(), left_side, text)
    name = left_side.id
    if isinstance(right_side, ast.Name):
        other_name = right_side.id
        return lambda attributes: _compare_attributes(attributes, name, compare, other_name)
    constant = _parse_constant(right_side, text)
    if isinstance(constant, bool) and not isinstance(op, (ast.Eq, ast.NotEq)):
        raise InputError(f"{name} cannot be compared with true or false by <, <=, >, or >=", fix="use == or !=")
    return _value_predicate(name, "", lambda values: compare(values, constant), [constant])[1]


def _parse_constant(node: ast.expr, text: str) -> Constant:
    match node:
        case ast.Constant(value=bool() | str() as value):
            return value
        case ast.Constant(value=int() | float() as value):
            return _parse_number(value, node, text)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value is not True:
            return -_parse_number(value, node, text)
        case _:
            raise _syntax_error(node, text)


def _parse_number(value: float, node: ast.expr, text: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _syntax_error(node, text) from None


def _parse_constants(node: ast.expr, text: str) -> list[Constant]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [_parse_constant(element, text) for element in node.elts]
    raise _syntax_error(node, text)


def _syntax_error(node: ast.AST, text: str) -> InputError:
    segment = ast.get_source_segment(text.strip(), node) or text
    return InputError(f"{segment[:60]!r} is not supported in an expression", fix=_SYNTAX)


def _value_predicate(name: str, kind: str, test: Callable[[Any], Any], constants: Sequence[Constant] = ()) -> Predicate:
    """Return the predicate that tests the values of one attribute, after checking their type."""

    def mask(attributes: Attributes) -> Bools:
        values, is_present = _values_and_mask(attributes, name)
        for constant in constants:
            _check_comparable(name, values.dtype.kind, constant)
        _check_kind(name, values.dtype.kind, kind)
        try:
            return np.asarray(test(values), dtype=np.bool_) & is_present
        except TypeError:
            problem = f"the attribute {name} contains several texts, which have no order"
            raise InputError(problem, fix=f"compare the attribute with one text: {name} == 'text'") from None

    return [name], mask


def _compare_attributes(attributes: Attributes, name: str, compare: Compare, other_name: str) -> Bools:
    values, is_present = _values_and_mask(attributes, name)
    other_values, is_other_present = _values_and_mask(attributes, other_name)
    if other_values.dtype.kind != values.dtype.kind:
        raise InputError(f"the attributes {name} and {other_name} are of different types", fix=_SYNTAX)
    return np.asarray(compare(values, other_values), dtype=np.bool_) & is_present & is_other_present


def _check_comparable(name: str, kind: str, constant: Constant) -> None:
    """Raise InputError for a comparison between types, which would be false for all topics."""
    if kind != ("b" if isinstance(constant, bool) else "O" if isinstance(constant, str) else "f"):
        literal = repr(constant) if isinstance(constant, (str, bool)) else f"{constant:g}"
        raise InputError(
            f"the attribute {name} is {_KINDS[kind]}, but is compared with {literal}",
            fix=f"write {name} == " + {"b": "True", "O": "'a text in quotes'", "f": "3"}[kind],
        )


def _check_kind(name: str, kind: str, required: str) -> None:
    if required and kind != required:
        raise InputError(
            f"the attribute {name} is not {_KINDS[required]}", fix=f"compare the attribute with a value: {name} == ..."
        )


def _to_sql(node: ast.expr, kinds: Mapping[str, str]) -> str:
    match node:
        case ast.BoolOp(op=op, values=values):
            operator_name = " AND " if isinstance(op, ast.And) else " OR "
            return f"({operator_name.join(_to_sql(value, kinds) for value in values)})"
        case ast.UnaryOp(operand=operand):
            return f"(NOT {_to_sql(operand, kinds)})"
        case ast.Name(id=name):
            return f"coalesce({_column_sql(name, kinds, 'b')}, false)"
        case ast.Call(func=ast.Name(id="missing"), args=[ast.Name(id=name)]):
            return f"{_column_sql(name, kinds)} IS NULL"
        case ast.Call(args=[ast.Name(id=name), ast.Constant(value=str() as substring)]):
            return f"coalesce(strpos({_column_sql(name, kinds, 'O')}, {_sql_literal(substring)}) > 0, false)"
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In() | ast.NotIn() as op], comparators=[sequence]):
            column, constants = _column_sql(name, kinds), _parse_constants(sequence, "")
            for constant in constants:
                _check_comparable(name, kinds[name], constant)
            membership = f"{column} IN ({', '.join(map(_sql_literal, constants))})" if constants else "false"
            return f"({column} IS NOT NULL AND {'' if isinstance(op, ast.In) else 'NOT '}{membership})"
        case ast.Compare(left=left_side, ops=ops, comparators=comparators):
            sides = [left_side, *comparators]
            conditions = [_comparison_sql(*pair, kinds) for pair in zip(sides, ops, comparators, strict=False)]
            return f"({' AND '.join(conditions)})" if len(conditions) > 1 else conditions[0]
        case _:
            raise AssertionError(ast.dump(node))


def _comparison_sql(left_side: ast.expr, op: ast.cmpop, right_side: ast.expr, kinds: Mapping[str, str]) -> str:
    names = [side.id for side in (left_side, right_side) if isinstance(side, ast.Name)]
    columns = {name: _column_sql(name, kinds) for name in names}
    if len(names) == 2 and kinds[names[0]] != kinds[names[1]]:
        raise InputError(f"the attributes {names[0]} and {names[1]} are of different types", fix=_SYNTAX)
    operands = list[str]()
    for side in (left_side, right_side):
        if isinstance(side, ast.Name):
            operands.append(columns[side.id])
        else:
            constant = _parse_constant(side, "")
            _check_comparable(names[0], kinds[names[0]], constant)
            operands.append(_sql_literal(constant))
    return f"coalesce({operands[0]} {_OPERATORS[type(op)][2]} {operands[1]}, false)"


def _column_sql(name: str, kinds: Mapping[str, str], required: str = "") -> str:
    """Return the column as SQL, with empty texts as NULL, after checking that it exists and has the required kind."""
    if name not in kinds:
        raise InputError(f"no attribute {name!r}", fix=use_one_of(kinds))
    _check_kind(name, kinds[name], required)
    column = '"' + name.replace('"', '""') + '"'
    return f"nullif({column}, '')" if kinds[name] == "O" else column


def _sql_literal(constant: Constant) -> str:
    if isinstance(constant, bool):
        return str(constant).lower()
    quoted = "'" + str(constant).replace("'", "''") + "'"
    return quoted if isinstance(constant, str) else f"CAST({quoted} AS DOUBLE)"


class _TextChoices(tuple[str, ...]):
    """Texts of an attribute with several values. A comparison is true if it is true for any of them."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__contains__(self, other)

    def __ne__(self, other: object) -> bool:
        return not tuple.__contains__(self, other)

    def __contains__(self, substring: object) -> bool:
        return any(str(substring) in text for text in self)

    __hash__ = tuple.__hash__


def _values_and_mask(attributes: Attributes, name: str) -> tuple[Any, Bools]:
    """Return an attribute as a NumPy array, and a mask of the topics that have a value."""
    column = attributes.column(name)
    values = column.to_pylist()
    is_present = np.array([value is not None for value in values], dtype=np.bool_)
    if str(column.type).startswith("list"):
        choices = np.empty(len(values), dtype=object)  # np.array would make a 2-D array of lists of equal length
        for row, texts in enumerate(values):
            choices[row] = _TextChoices(texts or ())
        return choices, is_present
    placeholders: dict[str, tuple[Any, Any]] = {"string": ("", object), "bool": (False, np.bool_)}
    placeholder, dtype = placeholders.get(str(column.type), (np.nan, np.float64))
    return np.array([placeholder if value is None else value for value in values], dtype=dtype), is_present
