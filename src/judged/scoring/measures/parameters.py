"""Parameters of measures: meaning, accepted values, and how they are written in a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from judged.errors import InputError, MeasureError
from judged.results.decimals import read_number
from judged.scoring.judging.ranking import running_sum, segment_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Floats, Ints
    from judged.scoring.judging import Judged

    Accepted_contra = TypeVar("Accepted_contra", contravariant=True)
    Stored_co = TypeVar("Stored_co", covariant=True)

    class ConvertedAttribute(Generic[Accepted_contra, Stored_co]):
        """Type of a parameter that accepts more types than the one it stores, for type checkers only."""

        def __get__(self, measure: Any, owner: Any) -> Stored_co: ...
        def __set__(self, measure: Any, value: Accepted_contra) -> None: ...

    Undefined: TypeAlias = ConvertedAttribute[float | Literal["skip"], float]


K = TypeVar("K", float, str)
T = TypeVar("T")
_ROUNDED = 0.001  # tolerance for shares that must sum to 1: thirds are written 0.333
_LARGEST = 2**53  # above it, a float does not represent every integer exactly


SKIP = math.nan
"""Value of ``undefined=skip``: topics without a relevant document have no score and are excluded from the mean."""


@dataclass(frozen=True)
class Parameter:
    """A declared parameter.

    Parameters
    ----------
    meaning
        Description for the page of the measure.
    default
        Default value. A parameter with its default is omitted from the name.
    accept
        Function that converts an input to the stored value. It raises ValueError with a description of valid values.
    required
        Whether there is no default.
    values
        Description of the valid values for the page. By default, that of `accept`.
    """

    meaning: str
    default: Any
    accept: Callable[[Any], Any]
    required: bool = False
    values: str = ""
    name: str = ""

    @property
    def allowed(self) -> str:
        """Description of the valid values."""
        return self.values or getattr(self.accept, "values", "")

    def check(self, value: Any, measure: str) -> Any:
        """Convert an input to the stored value.

        Raises
        ------
        MeasureError
            If the value is not valid. The message describes the valid values.
        """
        # None is valid only as the default of an optional parameter, such as a cutoff.
        if value is None and self.default is None and not self.required:
            return None
        try:
            return self.accept(value)
        except (ValueError, TypeError) as error:
            raise MeasureError(f"{measure}: {self.name}={value!r} is not allowed. Fix: use {error}") from None

    def example(self, measure: str, cutoff_name: str) -> str:
        """Return an example of a name with this parameter. `cutoff_name` is the parameter after the ``@``."""
        if self.name == cutoff_name:
            return f"{measure}@{10 if cutoff_name == 'cutoff' else '...'}"
        return f"{measure}({self.name}=...)"


def format_value(value: Any) -> str:
    """Format the value of a parameter as in the name of a measure.

    >>> [format_value(value) for value in (2.0, 0.5, True, ((1.0, 1.0), (2.0, 5.0)), (0.25, 1.0), SKIP)]
    ['2', '0.5', 'true', '{1:1,2:5}', '{0.25,1}', 'skip']
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):  # a table of gains, which are (grade, gain) pairs, or a list of numbers
        parts = (":".join(map(format_value, part)) if isinstance(part, tuple) else format_value(part) for part in value)
        return "{" + ",".join(parts) + "}"
    if isinstance(value, float):
        if math.isnan(value):
            return "skip"
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


@dataclass(frozen=True)
class ParameterType(Generic[T]):
    """Valid values of a parameter: a function that converts an input, and a description."""

    convert: Callable[[Any], T]
    values: str

    def __call__(self, value: Any) -> T:
        """Return the converted value, or raise ValueError."""
        return self.convert(value)


def integer(low: int, high: int = _LARGEST) -> ParameterType[int]:
    """Accept integers from ``low`` to ``high``."""
    values = f"integer of at least {low}" if high == _LARGEST else f"integer from {low} to {high}"

    def convert(value: Any) -> int:
        number = _number(value)
        if not number.is_integer() or not low <= number <= high:
            raise ValueError(f"an {values}")
        return int(number)

    return ParameterType(convert, values)


def real(low: float = -math.inf, high: float = math.inf) -> ParameterType[float]:
    """Accept finite numbers from ``low`` to ``high``."""
    ends = (f" {word} {end:g}" for word, end in (("from", low), ("to", high)) if math.isfinite(end))
    values = f"number of at least {low:g}" if math.isfinite(low) and math.isinf(high) else f"number{''.join(ends)}"

    def convert(value: Any) -> float:
        number = _number(value)
        if not low <= number <= high or math.isinf(number):
            raise ValueError(f"a {values}")
        return number

    return ParameterType(convert, values)


def distinct_numbers(low: float, high: float) -> ParameterType[tuple[float, ...]]:
    """Accept distinct numbers from ``low`` to ``high`` in any order. They are stored in ascending order."""
    values = f"distinct numbers from {low:g} to {high:g}, such as {{{low:g},{high:g}}}"

    def convert(value: Any) -> tuple[float, ...]:
        numbers = () if isinstance(value, (str, Mapping)) else tuple(sorted(map(real(low, high), value)))
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(values)
        return numbers

    return ParameterType(convert, values)


def choice(*names: str) -> ParameterType[str]:
    """Accept one of several words."""
    values = ", ".join(names)

    def convert(value: Any) -> str:
        if value not in names:
            raise ValueError(f"one of {values}")
        return value

    return ParameterType(convert, values)


def _parse_boolean(value: Any) -> bool:
    parsed = {"true": True, "false": False}.get(str(value).lower())
    if parsed is None:
        raise ValueError("true or false")
    return parsed


boolean = ParameterType(_parse_boolean, "true or false")
"""Accepts true and false."""


def parse_shares(value: Any, key: Callable[[Any], K], keys: str, example: str) -> tuple[tuple[K, float], ...]:
    """Accept a table of shares that sum to 1. `key` converts the keys; `keys` and `example` describe valid tables.

    >>> parse_shares({"b": "0.75", "a": 0.25}, str, "groups with", "{a:0.5,b:0.5}")
    (('a', 0.25), ('b', 0.75))
    """
    try:
        pairs = value.items() if isinstance(value, Mapping) else value
        table = {key(name): real(0, 1)(share) for name, share in pairs}
    except (TypeError, ValueError):
        table = {}
    if not abs(sum(table.values()) - 1.0) <= _ROUNDED:
        raise ValueError(f"{keys} shares that sum to 1, such as {example}")
    return tuple(sorted(table.items()))


def parse_undefined(value: Any) -> float:
    """Accept a number, or ``skip``."""
    if value == "skip" or (isinstance(value, float) and math.isnan(value)):
        return SKIP
    try:
        return real()(value)
    except ValueError:
        raise ValueError("a number, or the word skip") from None


def _number(value: Any) -> float:
    try:
        return read_number(value)
    except ValueError:
        raise ValueError("a number") from None


CUTOFF = Parameter("Only the first k documents count.", None, integer(1))
NEEDED_CUTOFF = Parameter("Only the first k documents count.", None, integer(1), required=True)
# The normalized diversity measures tabulate the best possible gain per rank, so their cutoff must have a limit.
BOUNDED_CUTOFF = Parameter("Only the first k documents count.", None, integer(1, 10**6), required=True)
REL = Parameter("The lowest grade that counts as relevant.", 1.0, real(0))
JUDGED_ONLY = Parameter(
    "Whether to remove documents without a judgment, or with a negative grade, from the ranking before scoring.",
    False,
    boolean,
)
UNDEFINED = Parameter(
    "The score of a topic without relevant documents: any number, even outside the range of the measure, or `skip` to"
    " exclude the topic from the mean.",
    0.0,
    parse_undefined,
    values="number, or the word skip",
)


_CELLS = 1 << 17  # cells of one dense block: one megabyte of float64, which fits into a processor's cache


def read_amounts(judged: Judged, fact: str, measure: object, *, allow_zero: bool) -> Floats:
    """Read a numeric fact of every returned document, in the order of ``judged.returned_docs``: (D,)."""
    column = judged.fact(fact, measure)
    path = judged.documents.where if judged.documents else ""
    fix = f"set {fact} to a number {'of at least' if allow_zero else 'above'} 0 for every document"
    try:
        values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    except (TypeError, ValueError, pa.ArrowException):
        raise InputError(f"the column {fact} must be numeric", fix=fix, path=path) from None
    invalid = np.flatnonzero(~np.isfinite(values) | (values < 0) | ((values == 0) & (not allow_zero)))
    if len(invalid):
        first = int(invalid[0])
        doc = judged.returned_docs.doc[first].as_py()
        raise InputError(f"document {doc} has the {fact} {values[first]:g}", fix=fix, path=path)
    return values


def topic_blocks(topics: int, columns: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of blocks of topics whose dense matrices stay small.

    >>> list(topic_blocks(300, 1000))
    [(0, 131), (131, 262), (262, 300)]
    """
    rows = max(1, _CELLS // max(columns, 1))
    for first in range(0, topics, rows):
        yield first, min(first + rows, topics)


def cumulative_cost(judged: Judged, values: Floats) -> tuple[Floats, Floats]:
    """Sum a value of each returned document down the ranking, before and including each hit: (D,) to (H,) twice."""
    starts = segment_starts(judged.returned_docs.topic, len(judged))
    positions = hit_positions(judged)
    total = running_sum(values, starts)
    return np.where(judged.rank > 1, total[positions - 1], 0.0), total[positions]


def hit_positions(judged: Judged) -> Ints:
    """Return the position of each hit among all returned documents: (H,)."""
    return segment_starts(judged.returned_docs.topic, len(judged))[judged.topic] + judged.rank - 1
