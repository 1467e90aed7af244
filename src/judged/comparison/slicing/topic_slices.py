"""Slices of topics: a name, an expression, and a minimum number of topics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judged.comparison.slicing.class_measures import read_class_measures
from judged.data.attributes import Attributes, Bands
from judged.data.expression import Expression, quote_attribute
from judged.data.files import exists
from judged.data.freshness import AFTER, NO_DATE
from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError, JudgedError
from judged.results import COUNT, YES_NO, Column, Table, columns_of, counted
from judged.results.blocks import Note, first_few
from judged.results.spelling import use_one_of
from judged.results.types import ReadOnly
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.results.types import Bools, Ints


LENGTH = Bands((2, 4, 7), ("1", "2-3", "4-6", "7+"))
"""Words of a query."""

RELEVANT = Bands((1, 2, 6, 21), ("none", "1", "2-5", "6-20", "21+"))
"""Relevant documents of a topic."""

FIRST_RELEVANT = Bands((1, 2, 4, 11, 101), ("none", "1", "2-3", "4-10", "11-100", "101+"))
"""Rank of the first relevant document; 0 if none was returned."""

FREQUENCY = ("head", "torso", "tail")
_ROUNDING = 1e-12  # relative to all traffic: 0.9 * total is inexact in floating point
_BAND_NAMES = (LENGTH.names, RELEVANT.names, (*FIRST_RELEVANT.names[1:], FIRST_RELEVANT.names[0]), FREQUENCY)
_RANGE = re.compile(r"(?:over )?(\d+(?:\.\d+)?)(?:\+|\s*(?:-|to)\s*\d+(?:\.\d+)?)?(?: days?)?")


def format_value(value: Any) -> str:
    """Format a value as in the names of slices and groups.

    >>> format_value(True), format_value(2.0), format_value("law")
    ('true', '2', 'law')
    """
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def sort_slice_values(name: str, values: Sequence[str]) -> list[str]:
    """Sort names of ranges by their numbers, and other values alphabetically.

    >>> sort_slice_values("relevant_band", ["2-5", "21+", "6-20", "none"]), sort_slice_values("kind", ["news", "law"])
    (['none', '2-5', '6-20', '21+'], ['law', 'news'])
    >>> sort_slice_values("first_relevant", ["4-10", "none", "101+"])
    ['4-10', '101+', 'none']
    >>> sort_slice_values("freshness", ["no date", "over 30 days", "0 to 7 days", "8 to 30 days"])
    ['0 to 7 days', '8 to 30 days', 'over 30 days', 'no date']
    """
    # 'none' comes last for `first_relevant` (no relevant document at any rank), but first for counts.
    for names in _BAND_NAMES[2:] if name == "first_relevant" else _BAND_NAMES:
        if set(values) <= set(names):
            return sorted(values, key=names.index)
    matches = {value: _RANGE.fullmatch(value) for value in values}
    numbers = {value: float(match[1]) for value, match in matches.items() if match is not None}
    numbers |= {value: number for value, number in {AFTER: -1, NO_DATE: math.inf}.items() if value in matches}
    return sorted(values, key=lambda value: (numbers[value], value)) if len(numbers) == len(matches) else sorted(values)


def frequency_bands(counts: Sequence[float], cuts: tuple[float, float] = (0.5, 0.9)) -> list[str]:
    """Assign topics to head, torso, and tail by cumulative traffic.

    >>> frequency_bands([50, 30, 10, 5, 5])  # 50 of 100 are the head, 50 + 30 + 10 hold 90 of 100
    ['head', 'torso', 'torso', 'tail', 'tail']
    >>> frequency_bands([3, 3, 3, 1])  # topics of equal traffic get the same band
    ['head', 'head', 'head', 'tail']
    """
    # `counts`: (N,), non-negative numbers of requests. `cuts`: two ascending shares between 0 and 1. A topic belongs to
    # the head if the topics with more traffic have less than the first share in total, and to the tail if they have at
    # least the second share. Topics with equal traffic are never separated, so the result does not depend on ids.
    if len(cuts) != 2 or not 0 < cuts[0] < cuts[1] < 1:
        raise InputError(f"`cuts` must be two ascending shares between 0 and 1, got {cuts}", fix="use (0.5, 0.9)")
    values = np.asarray(counts, dtype=np.float64)
    invalid = values[~(np.isfinite(values) & (values >= 0))]
    if len(invalid):
        raise InputError(f"traffic must be a finite number >= 0, got {invalid[0]:g}", fix="correct the counts")
    if not values.any():
        raise InputError("the traffic of all topics is 0", fix="pass the number of requests of each query")
    # negated, so that the most frequent topics come first
    levels, level_of = np.unique(-values, return_inverse=True)
    level_traffic = np.bincount(level_of, weights=values, minlength=len(levels))
    traffic_above = np.concatenate(([0.0], np.cumsum(level_traffic)[:-1]))
    total = math.fsum(values.tolist())
    passed = np.stack([traffic_above >= cut * total - _ROUNDING * total for cut in cuts])
    return [FREQUENCY[band] for band in passed.sum(axis=0)[level_of].tolist()]


DEFAULT_MIN_TOPICS = 10
"""Default minimum of topics: means over fewer are not reliable."""

_QUERY_TEXTS, _TRAFFIC = "the texts of the topics (queries)", "the number of requests of each query (traffic)"
DERIVED = {
    **dict.fromkeys(("relevant", "relevant_band", "judged"), "qrels"),
    **dict.fromkeys(("words", "length", "kind", "script"), _QUERY_TEXTS),
    "language": f"{_QUERY_TEXTS}, and install py3langid: pip install 'judged[language]'",
    **dict.fromkeys(("frequency", "traffic_share"), _TRAFFIC),
    **dict.fromkeys(("freshness", "freshness_days"), "documents with a date"),
    "novelty": "known queries (seen)",
    "first_relevant": "a single run",
}
"""Source from which `derive` computes each attribute."""

_MAX_VALUES = 12  # text with more values is an error, numbers with more values are split into thirds


@dataclass(frozen=True)
class Slice:
    """Set of topics, defined by an expression.

    Parameters
    ----------
    name
        Name in results.
    expression
        Condition on attributes: see `judged.data.expression.Expression`.
    min_topics
        A slice with fewer topics is shown, but never tested, ranked, or gated.
    owner
        Person or team to notify of failures.
    measure
        Measure of the slice alone. Empty: the measures of the call.

    Raises
    ------
    InputError
        If the name is empty, the expression or the measure is invalid, or `min_topics` is below 1.

    Examples
    --------
    >>> Slice("hard", "year <= 1999 and words > 4").min_topics
    10
    """

    name: str
    expression: str
    min_topics: int = DEFAULT_MIN_TOPICS
    owner: str = ""
    measure: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("the name of a slice must not be empty", fix="add a name")
        if self.min_topics < 1:
            problem = f"slice {self.name!r}: `min_topics` must be at least 1, got {self.min_topics}"
            raise InputError(problem, fix="use 10, for example")
        try:
            Expression(self.expression)
            if self.measure:
                parse(self.measure)
        except JudgedError as error:
            problem, fix = error.parts
            raise InputError(f"slice {self.name!r}: {problem}", fix=fix) from None


@dataclass(frozen=True, eq=False)
class Slicing(ReadOnly):
    """Slices of T topics.

    Attributes
    ----------
    slices : tuple of G Slice
    query_ids : tuple of T str
    members : (G, T) bool
        Membership of topics in slices. Slices may overlap, and a topic may be in none.
    attributes : Attributes
        Attributes of these topics, in the same order.
    default_measure : str
        Measure of the slices without their own, if others have one. Empty: these slices are left out.

    Examples
    --------
    >>> attributes = {"q1": {"kind": "news"}, "q2": {"kind": "law"}, "q3": {"kind": "law"}}
    >>> slicing = slice_topics(attributes, "kind", min_topics=2)
    >>> slicing.names, slicing.n.tolist(), slicing.small.tolist()
    (('kind=law', 'kind=news'), [2, 1], [False, True])
    >>> slicing.mask("kind=law").tolist()
    [False, True, True]
    """

    slices: tuple[Slice, ...]
    query_ids: tuple[str, ...]
    members: Bools
    attributes: Attributes
    default_measure: str = ""

    @property
    def class_measures(self) -> tuple[str, ...]:
        """Measure of each slice, empty text if a slice has none; no element if no slice has a measure of its own."""
        own = [slice_.measure for slice_ in self.slices]
        return tuple(measure or self.default_measure for measure in own) if any(own) else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the slices."""
        return tuple(slice_.name for slice_ in self.slices)

    @property
    def n(self) -> Ints:
        """Number of topics of each slice: (G,)."""
        return self.members.sum(axis=1)

    @property
    def small(self) -> Bools:
        """Whether each slice has fewer topics than its minimum: (G,)."""
        return self.n < np.array([slice_.min_topics for slice_ in self.slices], dtype=np.int64)

    @property
    def disjoint(self) -> bool:
        """Whether no topic is in more than one slice."""
        return bool((self.members.sum(axis=0) <= 1).all())

    def mask(self, name: str) -> Bools:
        """Return a mask of the topics of one slice: (T,).

        Raises
        ------
        InputError
            If there is no such slice.
        """
        if name not in self.names:
            raise InputError(f"no slice {name!r}", fix=use_one_of(self.names))
        return self.members[self.names.index(name)]

    def over(self, query_ids: Sequence[str]) -> Slicing:
        """Return the same slices of other topics; topics without attributes satisfy no comparison."""
        return _build_slicing(self.slices, self.attributes.over(query_ids), self.default_measure)

    def cross(self, other: Slicing) -> Slicing:
        """Return the non-empty intersections of the slices of this and another slicing."""
        attributes = self.attributes.joined(other.attributes).over(self.query_ids)
        pairs = tuple(
            Slice(
                f"{first.name}, {second.name}",
                " and ".join(f"({slice_.expression})" for slice_ in (first, second) if slice_.expression.strip()),
                max(first.min_topics, second.min_topics),
                first.owner or second.owner,
            )
            for first in self.slices
            for second in other.slices
        )
        slicing = _build_slicing(pairs, attributes)
        return slicing.select(np.flatnonzero(slicing.n > 0).tolist())

    def select(self, indices: Sequence[int]) -> Slicing:
        """Return a subset of the slices, by index."""
        rows = list(indices)
        return replace(self, slices=tuple(self.slices[i] for i in rows), members=self.members[rows])

    def with_measures(self, class_measures: Any, default_measure: str = "") -> Slicing:
        """Return the same slices with their own measures: tables and tests then have only rows of these.

        Parameters
        ----------
        class_measures
            Measures by the name of the slice or the value of its attribute: a dict such as ``{"known-item": "P@5"}``,
            a text such as ``known-item=P@5,explore=R@100``, or a TOML file with ``[class.measures]``.
        default_measure
            Measure of the other slices. Empty: they are left out.

        Raises
        ------
        InputError
            If there is no such slice, several slices have the value, or a measure does not exist.

        Examples
        --------
        >>> kinds = slice_topics({"q1": {"kind": "news"}, "q2": {"kind": "law"}}, "kind")
        >>> kinds.with_measures({"law": "R@100"}, "P@5").class_measures
        ('R@100', 'P@5')
        """
        slices = list(self.slices)
        for label, measure in read_class_measures(class_measures).measures.items():
            names = [label] if label in self.names else [name for name in self.names if name.endswith(f"={label}")]
            if len(names) != 1:
                problem = f"several classes have the value {label!r}" if names else f"no class {label!r}"
                raise InputError(problem, fix=use_one_of(names or self.names))
            index = self.names.index(names[0])
            slices[index] = replace(slices[index], measure=measure)
        return replace(self, slices=tuple(slices), default_measure=default_measure)

    def table(self) -> Table:
        """Return a table with one row per slice."""
        counts = Column("n", self.n.tolist(), COUNT, "topics"), Column("small", self.small.tolist(), YES_NO)
        measure = ["measure"] if self.class_measures else []
        rules = columns_of(self.slices, "name", "expression", "min_topics", "owner", *measure)
        return Table("slices", (*rules, *counts), only="data")

    def notes(self) -> Iterator[Note]:
        """Yield notes on the attributes of the slices, on slices without a measure, and on topics in no slice."""
        used = {name for slice_ in self.slices for name in Expression(slice_.expression).names}
        yield from dict.fromkeys(note for name, note in self.attributes.notes.items() if name in used)
        others = [i for i, slice_ in enumerate(self.slices) if not slice_.measure] if self.class_measures else []
        if others:
            topics = counted(int(self.members[others].any(axis=0).sum()), "topic")
            names = first_few([self.names[i] for i in others])
            use = f"use the default measure {self.default_measure}" if self.default_measure else "are left out"
            yield Note("no-class-measure", f"{topics} of classes without their own measure ({names}) {use}")
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
    """Divide topics into slices.

    Parameters
    ----------
    attributes
        `Attributes`, or any input of `Attributes.of`.
    by
        Attributes; each value becomes a slice. Numbers with more than 12 values are split into thirds. Topics without
        a value form the slice ``missing``, if there are any.
    slices
        More slices: `Slice`s, dicts ``{"name": ..., "expression": ...}``, or a TOML file with ``[[slice]]``.
    min_topics
        Minimum number of topics of the slices of `by`, and of `slices` from dicts or files that do not set it.
        None: 10.
    query_ids
        Topics to divide; None: those of the attributes.

    Raises
    ------
    InputError
        If an attribute does not exist or has too many values, there are no slices, or two have the same name.

    Examples
    --------
    >>> attributes = {f"q{i}": {"words": i} for i in range(30)}
    >>> slice_topics(attributes, "words").names
    ('words<10', 'words 10 to 19', 'words>=20')
    """
    table = Attributes.of(attributes)
    table = table if query_ids is None else table.over(query_ids)
    names = [by] if isinstance(by, str) else list(by or ())
    minimum = DEFAULT_MIN_TOPICS if min_topics is None else min_topics
    result = [slice_ for name in names for slice_ in _slices_by_value(table, name.strip(), minimum)]
    if slices is not None:
        result += read_slices(slices, minimum) if isinstance(slices, (str, Path)) else parse_slices(slices, minimum)
    if not result:
        raise InputError("no slicing attribute", fix="pass `by` or `slices`")
    where = str(slices) if isinstance(slices, (str, Path)) else ""
    slice_names = [slice_.name for slice_ in result]
    if duplicates := [name for name in slice_names if slice_names.count(name) > 1]:
        problem = f"slice names must be unique, got {duplicates[0]!r} twice"
        raise InputError(problem, fix="rename one of the two slices", path=where)
    try:
        return _build_slicing(tuple(result), table)
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=error.path or where) from None


def as_slicing(source: Any) -> Slicing:
    """Return a Slicing as it is, or slice topics by the only attribute of a table; raise InputError otherwise."""
    if isinstance(source, Slicing):
        return source
    # the name of an attribute is a frequent mistake: without this check it would be read as a path
    if isinstance(source, str) and not exists(source) and not Path(source).suffix:
        fix = f"create slices: slice_topics(attributes, {source!r:.60})"
        raise InputError(f"`slicing` must be slices or a table, got {source!r:.60}", fix=fix)
    attributes = Attributes.of(source)
    if len(attributes.names) != 1:
        table = repr(str(source)) if isinstance(source, (str, Path)) else "attributes"
        suggested = min(attributes.names, key=lambda name: len(attributes.column(name).unique()), default="kind")
        raise InputError(
            f"`slicing` must be slices or a table with one attribute, got {len(attributes.names)} attributes",
            fix=f"choose one of {', '.join(attributes.names)}: slice_topics({table}, {suggested!r})",
            path=attributes.where,
        )
    return slice_topics(attributes, attributes.names)


def parse_slices(data: Any, min_topics: int = DEFAULT_MIN_TOPICS) -> tuple[Slice, ...]:
    """Convert dicts to slices; slices are returned unchanged.

    >>> parse_slices([{"name": "long", "expression": "words > 4"}])
    (Slice(name='long', expression='words > 4', min_topics=10, owner='', measure=''),)
    """
    return tuple(record if isinstance(record, Slice) else _parse_slice(record, min_topics) for record in data)


def read_slices(path: str | Path, min_topics: int = DEFAULT_MIN_TOPICS) -> tuple[Slice, ...]:
    """Read the ``[[slice]]`` tables of a TOML file."""
    tables = parse_toml(read_toml(path), str(path)).get("slice")
    if not isinstance(tables, list) or not tables:
        raise InputError("no [[slice]] table", fix="add [[slice]] with name = and expression =", path=str(path))
    try:
        return parse_slices(cast("list[Any]", tables), min_topics)
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None


def _parse_slice(data: Any, min_topics: int) -> Slice:
    if not isinstance(data, Mapping):
        fix = 'use {"name": "long", "expression": "words > 4"}'
        raise InputError(f"a slice must be a dict, got {data!r:.60}", fix=fix)
    keys = cast("Mapping[str, Any]", data)
    names = [field.name for field in fields(Slice) if field.name != "measure"]  # which [class.measures] declares
    for name in keys:
        if name not in names:
            matches = get_close_matches(name, names, 1)
            fix = f"did you mean {matches[0]}" if matches else use_one_of(names)
            raise InputError(f"unknown key {name!r} of a slice", fix=fix)
    settings: dict[str, Any] = {"min_topics": min_topics, **keys}
    for name, kind, type_name in (("name", str, "text"), ("expression", str, "text"), ("min_topics", int, "integer")):
        if type(settings.get(name)) is not kind:
            problem = f"`{name}` of a slice must be {type_name}, got {dict(keys)!r:.60}"
            raise InputError(problem, fix=f"set {name} to a value of type {type_name}")
    return Slice(settings["name"], settings["expression"], settings["min_topics"], str(settings.get("owner", "")))


def _slices_by_value(attributes: Attributes, name: str, min_topics: int) -> list[Slice]:
    """Create a slice per value of an attribute; numbers with many values are split into thirds."""
    try:
        column = attributes.column(name)
    except InputError as error:
        fix = f"compute the attribute with `derive` from {DERIVED[name]}" if name in DERIVED else error.fix
        raise InputError(error.problem, fix=fix, path=error.path) from None
    values = [value for value in column.to_pylist() if value is not None]
    if not values:
        raise InputError(f"no topic has a value of {name}", fix="use the same query ids in both files")
    is_list = str(column.type).startswith("list")
    scalars = [text for texts in values for text in texts] if is_list else values
    is_text = is_list or str(column.type) == "string"
    distinct = sort_slice_values(name, list(set(scalars))) if is_text else sorted(set(scalars))
    if str(column.type) == "double" and len(distinct) > _MAX_VALUES:
        slices = _slices_by_thirds(name, np.array(values), min_topics)
    elif len(distinct) > _MAX_VALUES:
        raise InputError(
            f"an attribute may have at most {_MAX_VALUES} distinct values, {name} has {len(distinct)}",
            fix="define slices that combine several values, such as kind in ('a', 'b'), or pass query_ids=",
        )
    else:
        rules = [(format_value(value), f"{quote_attribute(name)} == {_literal(value)}") for value in distinct]
        slices = [Slice(f"{name}={text}", expression, min_topics) for text, expression in rules]
    if len(values) < len(attributes):
        slices.append(Slice(f"{name} missing", f"missing({quote_attribute(name)})", min_topics))
    return slices


def _slices_by_thirds(attribute: str, values: np.ndarray[Any, np.dtype[np.float64]], min_topics: int) -> list[Slice]:
    identifier = quote_attribute(attribute)
    # method "higher" returns observed values, so that slice names show numbers of the data
    low, high = np.quantile(values, [1 / 3, 2 / 3], method="higher").tolist()
    low_text, high_text = _literal(low), _literal(high)
    rules = [(f"{attribute}<{low:g}", f"{identifier} < {low_text}")] if (values < low).any() else []
    if low < high:
        middle_max = values[(values >= low) & (values < high)].max()
        middle = f"{attribute} {low:g} to {middle_max:g}" if middle_max > low else f"{attribute}={low:g}"
        rules.append((middle, f"{low_text} <= {identifier} < {high_text}"))
        rules.append((f"{attribute}>={high:g}", f"{identifier} >= {high_text}"))
    else:  # one value has more than a third of the topics: both limits are equal
        rules.append((f"{attribute}={low:g}", f"{identifier} == {low_text}"))
        rules += [(f"{attribute}>{low:g}", f"{identifier} > {low_text}")] if (values > low).any() else []
    return [Slice(name, expression, min_topics) for name, expression in rules]


def _literal(value: Any) -> str:
    """Format a value as a literal of an expression; whole numbers have no fraction."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _build_slicing(slices: tuple[Slice, ...], attributes: Attributes, default_measure: str = "") -> Slicing:
    rows: list[Bools] = []
    for slice_ in slices:
        try:
            rows.append(Expression(slice_.expression).mask(attributes))
        except InputError as error:
            raise InputError(f"slice {slice_.name!r}: {error.problem}", fix=error.fix, path=error.path) from None
    members = np.stack(rows) if rows else np.zeros((0, len(attributes)), dtype=np.bool_)
    return Slicing(slices, attributes.query_ids, members, attributes, default_measure)
