"""Slices as data: a name, an expression, and the least number of topics that a slice is judged by."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from judged.data.attributes import Attributes
from judged.data.expression import Expression, name_in
from judged.data.files import exists
from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError
from judged.results import COUNT, YES_NO, Column, Table, columns_of, counted
from judged.results.blocks import Note
from judged.results.types import ReadOnly

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.results.types import Bools, Ints


class Bands(NamedTuple):
    """Named ranges of a number.

    >>> [LENGTH.of(words) for words in (1, 2, 3, 4, 6, 7)]
    ['1', '2-3', '2-3', '4-6', '4-6', '7+']
    """

    starts: tuple[float, ...]  # where each range but the first begins; rising
    names: tuple[str, ...]  # one more than `starts`

    def of(self, value: float | None) -> str | None:
        """Name the range of a number; None for None."""
        return None if value is None else self.names[bisect_right(self.starts, value)]

    def all_of(self, values: Iterable[float | None]) -> list[str | None]:
        """Name the range of each number."""
        return [self.of(value) for value in values]


LENGTH = Bands((2, 4, 7), ("1", "2-3", "4-6", "7+"))
"""Words of a query."""

RELEVANT = Bands((1, 2, 6, 21), ("none", "1", "2-5", "6-20", "21+"))
"""Relevant documents of a topic."""

FIRST_RELEVANT = Bands((1, 2, 4, 11, 101), ("none", "1", "2-3", "4-10", "11-100", "101+"))
"""Rank of the first relevant document; 0 where none was returned."""

AGE = Bands((0, 2, 8, 31, 366), ("after today", "0-1", "2-7", "8-30", "31-365", "366+"))
"""Age of a document in days; below 0 where it is dated after the day that counts as today."""

FREQUENCY = ("head", "torso", "tail")
_ROUNDING = 1e-12  # of all traffic: 0.9 of a total is not always the nearest number
_KNOWN = (LENGTH.names, RELEVANT.names, (*FIRST_RELEVANT.names[1:], FIRST_RELEVANT.names[0]), AGE.names, FREQUENCY)
_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:\+|\s*(?:-|to)\s*\d+(?:\.\d+)?)?")


def written(value: Any) -> str:
    """Write a value as the name of its slice or group has it.

    >>> written(True), written(2.0), written("law")
    ('true', '2', 'law')
    """
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def in_order(name: str, values: Sequence[str]) -> list[str]:
    """Put names of ranges in the order of their numbers, and other values in that of the alphabet.

    >>> in_order("relevant_band", ["2-5", "21+", "6-20", "none"]), in_order("kind", ["news", "law"])
    (['none', '2-5', '6-20', '21+'], ['law', 'news'])
    >>> in_order("first_relevant", ["4-10", "none", "101+"]), in_order("pages", ["10-99", "5-9", "100+"])
    (['4-10', '101+', 'none'], ['5-9', '10-99', '100+'])
    """
    # `name`: the attribute: where `first_relevant` is none, it is none at any rank.
    known = _KNOWN[2:] if name == "first_relevant" else _KNOWN
    for names in known:
        if set(values) <= set(names):
            return sorted(values, key=names.index)
    found = {value: _RANGE.fullmatch(value) for value in values}
    numbers = {value: float(one[1]) for value, one in found.items() if one is not None}
    return sorted(values, key=lambda value: (numbers[value], value)) if len(numbers) == len(found) else sorted(values)


def frequency_bands(counts: Sequence[float], cuts: tuple[float, float] = (0.5, 0.9)) -> list[str]:
    """Cut topics into head, torso and tail by cumulative traffic.

    >>> frequency_bands([50, 30, 10, 5, 5])  # 50 of 100 are the head, 50 + 30 + 10 hold 90 of 100
    ['head', 'torso', 'torso', 'tail', 'tail']
    >>> frequency_bands([3, 3, 3, 1])  # one alone holds 30 %, two would hold 60 %: equal traffic, equal band
    ['head', 'head', 'head', 'tail']
    """
    # Topics are taken from the most frequent down. The head is the smallest set of them that holds the first share of
    # `cuts`; the torso those that follow until the second is held; the tail all others. Topics of the same traffic are
    # taken together, whatever their ids: a set that ends among them takes them all. In other words: a topic is in the
    # head where those with more traffic than it together hold less than the first share, in the tail where they hold
    # the second or more. `counts`: (N,): how often each was asked; 0 or more. `cuts`: shares between 0 and 1, the first
    # the smaller.
    if len(cuts) != 2 or not 0 < cuts[0] < cuts[1] < 1:
        raise InputError(f"the cuts {cuts} of traffic make no sense", fix="two shares that rise, such as (0.5, 0.9)")
    values = np.asarray(counts, dtype=np.float64)
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if len(wrong):
        raise InputError(f"a topic has the traffic {wrong[0]:g}", fix="give counts of 0 or more")
    if not values.any():
        raise InputError("no topic has any traffic", fix="give how often each query was asked")
    levels, level_of = np.unique(-values, return_inverse=True)
    held = np.bincount(level_of, weights=values, minlength=len(levels))
    more = np.concatenate(([0.0], np.cumsum(held)[:-1]))
    total = math.fsum(values.tolist())
    reached = np.stack([more >= cut * total - _ROUNDING * total for cut in cuts])
    return [FREQUENCY[at] for at in reached.sum(axis=0)[level_of].tolist()]


MINIMUM = 10
"""Topics: a mean of fewer is not a finding."""

_TEXTS, _TRAFFIC = "the topics' texts (queries)", "how often each query was asked, as an attribute traffic"
DERIVED = {
    **dict.fromkeys(("relevant", "relevant_band", "judged"), "qrels"),
    **dict.fromkeys(("words", "length", "kind", "script"), _TEXTS),
    "language": f"{_TEXTS}, and install py3langid: pip install 'judged[language]'",
    **dict.fromkeys(("frequency", "traffic_share"), _TRAFFIC),
    **dict.fromkeys(("freshness", "freshness_band"), "documents with a date"),
    "novelty": "queries that are known (seen)",
    "first_relevant": "a single run, from whose results it follows",
}
"""What `judged.slicing.derived.derive` makes each attribute of."""

_MANY = 12  # values: a text with more makes no slices, a number with more is cut into thirds


@dataclass(frozen=True)
class Slice:
    """Some topics, and why.

    Parameters
    ----------
    name
        How results call it.
    expression
        Which topics: see `judged.data.expression.Expression`.
    min_topics
        With fewer topics it is shown, and never tested, ranked or gated.
    owner
        Who is told when it fails.

    Raises
    ------
    InputError
        If the name is empty, the expression cannot be read, or the minimum is below 1.

    Examples
    --------
    >>> Slice("hard", "year <= 1999 and words > 4").min_topics
    10
    """

    name: str
    expression: str
    min_topics: int = MINIMUM
    owner: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("a slice has no name", fix="give it one")
        if self.min_topics < 1:
            problem = f"slice {self.name!r}: a minimum of {self.min_topics} topics makes no sense"
            raise InputError(problem, fix="1 or more")
        try:
            Expression(self.expression)
        except InputError as error:
            raise InputError(f"slice {self.name!r}: {error.problem}", fix=error.fix) from None


@dataclass(frozen=True, eq=False)
class Slicing(ReadOnly):
    """Slices of T topics.

    Attributes
    ----------
    slices : tuple of G Slice
    query_ids : tuple of T str
    members : (G, T) bool
        Which topics are in which slice. A topic may be in several, or in none.
    attributes : Attributes
        Of these topics, in this order.

    Examples
    --------
    >>> known = {"q1": {"kind": "news"}, "q2": {"kind": "law"}, "q3": {"kind": "law"}}
    >>> sliced = slice_topics(known, "kind", min_topics=2)
    >>> sliced.names, sliced.n.tolist(), sliced.small.tolist()
    (('kind=law', 'kind=news'), [2, 1], [False, True])
    >>> sliced.mask("kind=law").tolist()
    [False, True, True]
    """

    slices: tuple[Slice, ...]
    query_ids: tuple[str, ...]
    members: Bools
    attributes: Attributes

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the slices."""
        return tuple(one.name for one in self.slices)

    @property
    def n(self) -> Ints:
        """How many topics each slice has: (G,)."""
        return self.members.sum(axis=1)

    @property
    def small(self) -> Bools:
        """Which slices have fewer topics than they are judged by: (G,)."""
        return self.n < np.array([one.min_topics for one in self.slices], dtype=np.int64)

    @property
    def disjoint(self) -> bool:
        """Whether no topic is in two slices."""
        return bool((self.members.sum(axis=0) <= 1).all())

    def mask(self, name: str) -> Bools:
        """Mark the topics of one slice: (T,).

        Raises
        ------
        InputError
            If there is no such slice.
        """
        if name not in self.names:
            raise InputError(f"no slice {name!r}", fix=f"use one of {', '.join(self.names)}")
        return self.members[self.names.index(name)]

    def over(self, query_ids: Sequence[str]) -> Slicing:
        """Give the same slices over other topics; those of which nothing is known satisfy no comparison."""
        return _sliced(self.slices, self.attributes.over(query_ids))

    def crossed(self, other: Slicing) -> Slicing:
        """Give every slice of this one within every slice of another; combinations without topics are left out."""
        known = self.attributes.joined(other.attributes).over(self.query_ids)
        made = tuple(
            Slice(
                f"{one.name}, {two.name}",
                " and ".join(f"({part.expression})" for part in (one, two) if part.expression.strip()),
                max(one.min_topics, two.min_topics),
                one.owner or two.owner,
            )
            for one in self.slices
            for two in other.slices
        )
        found = _sliced(made, known)
        return found.chosen(np.flatnonzero(found.n > 0).tolist())

    def chosen(self, which: Sequence[int]) -> Slicing:
        """Keep some slices, by their places."""
        rows = list(which)
        return replace(self, slices=tuple(self.slices[at] for at in rows), members=self.members[rows])

    def table(self) -> Table:
        """Lay out one row per slice: its expression, the least number of topics, and how many it has."""
        counts = Column("n", self.n.tolist(), COUNT, "topics"), Column("small", self.small.tolist(), YES_NO)
        rules = columns_of(self.slices, "name", "expression", "min_topics", "owner")
        return Table("slices", (*rules, *counts), only="data")

    def notes(self) -> Iterator[Note]:
        """Say how many topics are in no slice."""
        if outside := int((~self.members.any(axis=0)).sum()):
            yield Note("topics-in-no-slice", f"{outside} of {counted(len(self.query_ids), 'topic')} are in no slice")

    def __len__(self) -> int:
        return len(self.slices)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {n}" for name, n in zip(self.names, self.n.tolist(), strict=True))
        return f"Slicing({len(self.query_ids)} topics: {counts})"


def slice_topics(
    attributes: Any,
    by: str | Iterable[str] | None = None,
    *,
    slices: Any = None,
    min_topics: int | None = None,
    query_ids: Sequence[str] | None = None,
) -> Slicing:
    """Cut topics into slices.

    Parameters
    ----------
    attributes
        `Attributes`, or whatever `Attributes.of` takes.
    by
        Attributes, each of which makes one slice a value; numbers with more than 12 values are cut into thirds.
        Topics without a value make a slice ``missing``, where there are any.
    slices
        Besides, or instead: `Slice`s, dicts ``{"name": ..., "expression": ...}``, or a TOML file with ``[[slice]]``.
    min_topics
        The least number of topics of each slice of `by`; and of those of `slices` that are given as dicts or in a
        file and have none of their own. None: 10.
    query_ids
        The topics; None: those of the attributes.

    Raises
    ------
    InputError
        If an attribute does not exist or has too many values, no slice is asked for, or two have one name.

    Examples
    --------
    >>> known = {f"q{at}": {"words": at} for at in range(30)}
    >>> slice_topics(known, "words").names
    ('words<10', 'words 10 to 19', 'words>=20')
    """
    known = Attributes.of(attributes)
    known = known if query_ids is None else known.over(query_ids)
    names = [by] if isinstance(by, str) else list(by or ())
    least = MINIMUM if min_topics is None else min_topics
    made = [one for name in names for one in _by_value(known, name.strip(), least)]
    if slices is not None:
        made += read_slices(slices, least) if isinstance(slices, (str, Path)) else slices_of(slices, least)
    if not made:
        raise InputError("there is nothing to slice by", fix="name an attribute, or give slices")
    where = str(slices) if isinstance(slices, (str, Path)) else ""
    found = [one.name for one in made]
    if twice := [name for name in found if found.count(name) > 1]:
        raise InputError(f"two slices are called {twice[0]!r}", fix="give each its own name", path=where)
    try:
        return _sliced(tuple(made), known)
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=error.path or where) from None


def slicing_given(given: Any) -> Slicing:
    """Take slices, or cut topics by the one attribute of a table; refuse the rest, such as the name of an attribute."""
    if isinstance(given, Slicing):
        return given
    if isinstance(given, str) and not exists(given) and not Path(given).suffix:
        fix = f"make one: slice_topics(attributes, {given!r:.60})"
        raise InputError(f"{given!r:.60} does not slice topics", fix=fix)
    known = Attributes.of(given)
    if len(known.names) != 1:
        table = repr(str(given)) if isinstance(given, (str, Path)) else "attributes"
        fewest = min(known.names, key=lambda name: len(known.column(name).unique()), default="kind")
        raise InputError(
            f"a table of {len(known.names)} attributes does not say by which to slice",
            fix=f"choose one of {', '.join(known.names)}: slice_topics({table}, {fewest!r})",
            path=known.where,
        )
    return slice_topics(known, known.names)


def slices_of(data: Any, min_topics: int = MINIMUM) -> tuple[Slice, ...]:
    """Take slices, or dicts of their fields.

    >>> slices_of([{"name": "long", "expression": "words > 4"}])
    (Slice(name='long', expression='words > 4', min_topics=10, owner=''),)
    """
    return tuple(one if isinstance(one, Slice) else _slice(one, min_topics) for one in data)


def read_slices(path: str | Path, min_topics: int = MINIMUM) -> tuple[Slice, ...]:
    """Read the ``[[slice]]`` tables of a TOML file."""
    found = parse_toml(read_toml(path), str(path)).get("slice")
    if not isinstance(found, list) or not found:
        raise InputError("no [[slice]] in it", fix="write [[slice]], name = and expression =", path=str(path))
    try:
        return slices_of(cast("list[Any]", found), min_topics)
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None


def _slice(data: Any, min_topics: int) -> Slice:
    if not isinstance(data, Mapping):
        raise InputError(f"{data!r:.60} is not a slice", fix='give {"name": "long", "expression": "words > 4"}')
    given = cast("Mapping[str, Any]", data)
    names = [field.name for field in fields(Slice)]
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, 1)
            fix = f"did you mean {near[0]}" if near else f"a slice has {', '.join(names)}"
            raise InputError(f"a slice has no {name!r}", fix=fix)
    known: dict[str, Any] = {"min_topics": min_topics, **given}
    for name, kind, what in (("name", str, "text"), ("expression", str, "text"), ("min_topics", int, "whole number")):
        if type(known.get(name)) is not kind:
            problem = f"a slice has no {name} that is a {what}: {dict(given)!r:.60}"
            raise InputError(problem, fix=f"write {name} = and a {what}")
    return Slice(known["name"], known["expression"], known["min_topics"], str(known.get("owner", "")))


def _by_value(known: Attributes, name: str, min_topics: int) -> list[Slice]:
    """Make one slice a value of an attribute, or thirds of a number."""
    try:
        column = known.column(name)
    except InputError as error:
        fix = f"make it with derive, of {DERIVED[name]}" if name in DERIVED else error.fix
        raise InputError(error.problem, fix=fix, path=error.path) from None
    values = [value for value in column.to_pylist() if value is not None]
    if not values:
        raise InputError(f"no topic has a value of {name}", fix="check that both files use the same query ids")
    several = str(column.type).startswith("list")
    each = [text for texts in values for text in texts] if several else values
    distinct = in_order(name, list(set(each))) if several or str(column.type) == "string" else sorted(set(each))
    if str(column.type) == "double" and len(distinct) > _MANY:
        made = _thirds(name, np.array(values), min_topics)
    elif len(distinct) > _MANY:
        raise InputError(
            f"{name} has {len(distinct)} different values: too many for slices",
            fix="write slices that name several of them: kind in ('a', 'b'); or give query_ids=",
        )
    else:
        wrote = name_in(name)
        made = [Slice(f"{name}={written(value)}", f"{wrote} == {_literal(value)}", min_topics) for value in distinct]
    if len(values) < len(known):
        made.append(Slice(f"{name} missing", f"missing({name_in(name)})", min_topics))
    return made


def _thirds(name: str, values: np.ndarray[Any, np.dtype[np.float64]], min_topics: int) -> list[Slice]:
    """Cut a number where a third and two thirds of the topics lie below."""
    wrote = name_in(name)
    low, high = np.quantile(values, [1 / 3, 2 / 3], method="higher").tolist()
    least, most = _literal(low), _literal(high)
    rules = [(f"{name}<{low:g}", f"{wrote} < {least}")] if (values < low).any() else []
    if low < high:
        top = values[(values >= low) & (values < high)].max()
        middle = f"{name} {low:g} to {top:g}" if top > low else f"{name}={low:g}"
        rules += [(middle, f"{least} <= {wrote} < {most}"), (f"{name}>={high:g}", f"{wrote} >= {most}")]
    else:  # so many topics share one value that the thirds fall together
        rules.append((f"{name}={low:g}", f"{wrote} == {least}"))
        rules += [(f"{name}>{low:g}", f"{wrote} > {least}")] if (values > low).any() else []
    return [Slice(title, expression, min_topics) for title, expression in rules]


def _literal(value: Any) -> str:
    """Write a value as it stands in an expression: whole numbers without a fraction."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _sliced(slices: tuple[Slice, ...], known: Attributes) -> Slicing:
    rows: list[Bools] = []
    for one in slices:
        try:
            rows.append(Expression(one.expression).mask(known))
        except InputError as error:
            raise InputError(f"slice {one.name!r}: {error.problem}", fix=error.fix, path=error.path) from None
    members = np.stack(rows) if rows else np.zeros((0, len(known)), dtype=np.bool_)
    return Slicing(slices, known.query_ids, members, known)
