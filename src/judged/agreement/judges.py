"""The judgments of several judges side by side: one row a judged pair, one column a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from judged._types import ReadOnly
from judged.data import Qrels, is_ids
from judged.data.ids import id_text
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools, Floats


@dataclass(frozen=True, eq=False)
class Judges(ReadOnly):
    """Several judges' grades of the same pairs of topic and document."""

    names: tuple[str, ...]  # J
    everything: Qrels = field(repr=False)  # every pair that some judge judged, with grade 0: for joining runs once
    # (P, J): in the order of `everything.index`; NaN where a judge did not judge the pair
    grades: Floats = field(repr=False)
    levels: tuple[float | None, ...]  # the grade from which each judge's grades were made 1, if they were

    def fractional(self, *judges: int) -> bool:
        """Whether one of these judges gave grades that are no whole numbers: a measurement, not a category."""
        grades = self.grades[:, list(judges)]
        return bool((grades[~np.isnan(grades)] % 1 != 0).any())

    def both(self, one: int, other: int) -> Bools:
        """Mark the pairs that both judged; (P,)."""
        return ~np.isnan(self.grades[:, one]) & ~np.isnan(self.grades[:, other])

    def scale(self, judge: int) -> tuple[float, ...]:
        """Give the different grades of one judge, rising."""
        grades = self.grades[:, judge]
        return tuple(np.unique(grades[~np.isnan(grades)]).tolist())


def _is_named(given: Any) -> bool:
    """Whether something is ``{name: judgments}`` and not ``{query_id: {doc_id: grade}}``."""
    if not isinstance(given, Mapping) or not given:
        return False
    first = next(iter(cast("Mapping[Any, Any]", given).values()))
    if isinstance(first, Mapping):
        return isinstance(next(iter(cast("Mapping[Any, Any]", first).values()), None), (Mapping, list, set, frozenset))
    return not is_ids(first)


def judges_of(given: Sequence[Any], rel: float | Mapping[str, float] | None) -> Judges:
    """Put judgments side by side."""
    if len(given) == 1 and _is_named(given[0]):
        several = [replace(Qrels.of(one), name=id_text(name, "name")) for name, one in given[0].items()]
    else:
        several = [Qrels.of(one, name=f"judge{at}") for at, one in enumerate(given, 1)]
    if len(several) < 2:
        raise InputError(f"{len(several)} judges cannot be compared", fix="give the judgments of at least two")
    names = _distinct(several)
    levels = _levels(names, rel)
    everything = _union(several)
    grades = np.full((len(everything), len(several)), np.nan)
    for at, (qrels, level) in enumerate(zip(several, levels, strict=True)):
        index = qrels.index
        codes = np.array([everything.index.codes[name] for name in index.topics], dtype=np.int64)
        rows = everything.index.rows_of(codes[index.topic], pa.array(index.row_names, pa.string()))
        own = index.grade if level is None else ((index.grade >= level) & (index.grade >= 0)).astype(np.float64)
        grades[rows, at] = own
    return Judges(names, everything, grades, levels)


def _distinct(several: Sequence[Qrels]) -> tuple[str, ...]:
    """Give each judge a name of its own: with the folder, then with a number, where names repeat."""
    names = [one.name for one in several]
    names = [
        f"{Path(one.where).parent.name}/{name}" if names.count(name) > 1 and Path(one.where).parent.name else name
        for one, name in zip(several, names, strict=True)
    ]
    made: list[str] = []
    for name in names:
        free = (other for at in count(2) if (other := f"{name}#{at}") not in {*made, *names})
        made.append(next(free) if name in made else name)
    return tuple(made)


def _levels(names: tuple[str, ...], rel: float | Mapping[str, float] | None) -> tuple[float | None, ...]:
    if not isinstance(rel, Mapping):
        return (rel,) * len(names)
    for name in rel:
        if name not in names:
            raise InputError(f"no judge is called {name!r}", fix=f"one of {', '.join(names)}")
    return tuple(rel.get(name) for name in names)


def _union(several: Sequence[Qrels]) -> Qrels:
    pairs = pa.concat_tables([one.table.select(["query_id", "doc_id"]) for one in several])
    distinct = pairs.group_by(["query_id", "doc_id"]).aggregate([])
    nothing = pa.array(np.zeros(distinct.num_rows))
    return Qrels(distinct.append_column("relevance", nothing), "all judges", several[0].where)
