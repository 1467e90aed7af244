"""The parameters that measures take: what they mean, what they may be, how they are written."""

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

    Given_contra = TypeVar("Given_contra", contravariant=True)
    Kept_co = TypeVar("Kept_co", covariant=True)

    class Takes(Generic[Given_contra, Kept_co]):
        """What an editor knows of a parameter that is given in more forms than the one in which it is kept."""

        def __get__(self, measure: Any, kind: Any) -> Kept_co: ...
        def __set__(self, measure: Any, given: Given_contra) -> None: ...

    Undefined: TypeAlias = Takes[float | Literal["skip"], float]


K = TypeVar("K", float, str)
T = TypeVar("T")
_ROUNDED = 0.001  # how far off 1 shares may sum: thirds are written 0.333
_LARGEST = 2**53  # the whole numbers that a float holds exactly


SKIP = math.nan
"""Value of ``undefined=skip``: topics without a relevant document have no score and leave the mean."""


@dataclass(frozen=True)
class Parameter:
    """A declared parameter.

    Parameters
    ----------
    meaning
        What it does, for the measure's page.
    default
        Its value when it is not given; it is then left out of the name.
    accept
        Turns what was given into the value that is kept, or raises ValueError saying what it must be.
    required
        It has no default.
    values
        What may be written, for the page, where `accept` does not say it so well.
    """

    meaning: str
    default: Any
    accept: Callable[[Any], Any]
    required: bool = False
    values: str = ""
    name: str = ""

    @property
    def allowed(self) -> str:
        """What may be written."""
        return self.values or getattr(self.accept, "values", "")

    def check(self, given: Any, measure: str) -> Any:
        """Give the value that is kept.

        Raises
        ------
        MeasureError
            If it may not be that; the message says what it may be.
        """
        if given is None and self.default is None and not self.required:
            return None
        try:
            return self.accept(given)
        except (ValueError, TypeError) as error:
            raise MeasureError(f"{measure}: {self.name}={given!r} is not allowed. Fix: give {error}") from None

    def example(self, measure: str, at: str) -> str:
        """Say how a measure is written with this parameter, where `at` is the one behind the ``@``."""
        if self.name == at:
            return f"{measure}@{10 if at == 'cutoff' else '...'}"
        return f"{measure}({self.name}=...)"


def spell(value: Any) -> str:
    """Write a parameter's value as it stands in a measure's name.

    >>> spell(2.0), spell(0.5), spell(True), spell(((1.0, 1.0), (2.0, 5.0))), spell((0.25, 1.0)), spell(SKIP)
    ('2', '0.5', 'true', '{1:1,2:5}', '{0.25,1}', 'skip')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):  # a table of gains, which are (grade, gain) pairs, or a list of numbers
        parts = (":".join(map(spell, part)) if isinstance(part, tuple) else spell(part) for part in value)
        return "{" + ",".join(parts) + "}"
    if isinstance(value, float):
        if math.isnan(value):
            return "skip"
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


@dataclass(frozen=True)
class Kind(Generic[T]):
    """What a parameter may be: how it is read, and what is said of it."""

    read: Callable[[Any], T]
    values: str

    def __call__(self, given: Any) -> T:
        """Read what was given."""
        return self.read(given)


def whole(least: int, most: int = _LARGEST) -> Kind[int]:
    """Accept whole numbers from ``least`` to ``most``."""
    values = f"whole number from {least}" + ("" if most == _LARGEST else f" to {most}")

    def read(given: Any) -> int:
        number = _number(given)
        if not number.is_integer() or not least <= number <= most:
            raise ValueError(f"a {values}")
        return int(number)

    return Kind(read, values)


def real(low: float = -math.inf, high: float = math.inf) -> Kind[float]:
    """Accept finite numbers from ``low`` to ``high``."""
    ends = (f" {word} {end:g}" for word, end in (("from", low), ("to", high)) if math.isfinite(end))
    values = f"number{''.join(ends)}"

    def read(given: Any) -> float:
        number = _number(given)
        if not low <= number <= high or math.isinf(number):
            raise ValueError(f"a {values}")
        return number

    return Kind(read, values)


def several(low: float, high: float) -> Kind[tuple[float, ...]]:
    """Accept a list of different numbers from ``low`` to ``high``, in any order; they are kept rising."""
    values = f"different numbers from {low:g} to {high:g}, such as {{{low:g},{high:g}}}"

    def read(given: Any) -> tuple[float, ...]:
        found = () if isinstance(given, (str, Mapping)) else tuple(sorted(map(real(low, high), given)))
        if not found or len(set(found)) < len(found):
            raise ValueError(values)
        return found

    return Kind(read, values)


def one_of(*names: str) -> Kind[str]:
    """Accept one of some words."""
    values = ", ".join(names)

    def read(given: Any) -> str:
        if given not in names:
            raise ValueError(f"one of {values}")
        return given

    return Kind(read, values)


def _yes_no(given: Any) -> bool:
    known = {"true": True, "false": False}.get(str(given).lower())
    if known is None:
        raise ValueError("true or false")
    return known


yes_no = Kind(_yes_no, "true or false")
"""Accepts true and false."""


def shares(given: Any, key: Callable[[Any], K], what: str, such_as: str) -> tuple[tuple[K, float], ...]:
    """Accept a table of shares that sum to 1, where `key` reads what a share is of.

    >>> shares({"b": "0.75", "a": 0.25}, str, "groups with", "{a:0.5,b:0.5}")
    (('a', 0.25), ('b', 0.75))
    """
    try:
        pairs = given.items() if isinstance(given, Mapping) else given
        table = {key(name): real(0, 1)(share) for name, share in pairs}
    except (TypeError, ValueError):
        table = {}
    if not abs(sum(table.values()) - 1.0) <= _ROUNDED:
        raise ValueError(f"{what} shares that sum to 1, such as {such_as}")
    return tuple(sorted(table.items()))


def undefined_value(given: Any) -> float:
    """Accept a number, or ``skip``."""
    if given == "skip" or (isinstance(given, float) and math.isnan(given)):
        return SKIP
    try:
        return real()(given)
    except ValueError:
        raise ValueError("a number, or skip") from None


def _number(given: Any) -> float:
    try:
        return read_number(given)
    except ValueError:
        raise ValueError("a number") from None


CUTOFF = Parameter("Only the first k documents count.", None, whole(1))
NEEDED_CUTOFF = Parameter("Only the first k documents count.", None, whole(1), required=True)
BOUNDED_CUTOFF = Parameter("Only the first k documents count.", None, whole(1, 10**6), required=True)
REL = Parameter("The lowest grade that counts as relevant.", 1.0, real(0))
JUDGED_ONLY = Parameter(
    "Leave documents without a judgment (or with a negative grade) out of the ranking first.", False, yes_no
)
UNDEFINED = Parameter(
    "The score of a topic without relevant documents, even one outside the range; skip leaves it out of the mean.",
    0.0,
    undefined_value,
    values="number or skip",
)


_CELLS = 1 << 17  # of one dense block: a megabyte, which stays in a processor's cache


def amounts(judged: Judged, fact: str, measure: object, *, zero: bool) -> Floats:
    """Look up a number for every returned document, in the order of ``judged.everything``: (D,)."""
    column = judged.fact(fact, measure)
    where = judged.documents.where if judged.documents else ""
    fix = f"give {fact} as a number {'from' if zero else 'above'} 0 for every document"
    try:
        values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    except (TypeError, ValueError, pa.ArrowException):
        raise InputError(f"the column {fact} is not made of numbers", fix=fix, path=where) from None
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0) | ((values == 0) & (not zero)))
    if len(wrong):
        first = int(wrong[0])
        doc = judged.everything.doc[first].as_py()
        raise InputError(f"document {doc} has the {fact} {values[first]:g}", fix=fix, path=where)
    return values


def blocks(topics: int, columns: int) -> Iterator[tuple[int, int]]:
    """Cut the topics into blocks whose dense matrices stay small: first topic, and the one behind the last.

    >>> list(blocks(300, 1000))
    [(0, 131), (131, 262), (262, 300)]
    """
    rows = max(1, _CELLS // max(columns, 1))
    for first in range(0, topics, rows):
        yield first, min(first + rows, topics)


def used_up(judged: Judged, values: Floats) -> tuple[Floats, Floats]:
    """Add up one value a returned document down each ranking, before and with each hit: (D,) to (H,) and (H,)."""
    starts = segment_starts(judged.everything.topic, len(judged))
    place = hit_places(judged)
    total = running_sum(values, starts)
    return np.where(judged.rank > 1, total[place - 1], 0.0), total[place]


def hit_places(judged: Judged) -> Ints:
    """Give each hit's position among all returned documents: (H,)."""
    return segment_starts(judged.everything.topic, len(judged))[judged.topic] + judged.rank - 1
