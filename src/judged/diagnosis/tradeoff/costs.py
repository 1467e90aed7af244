"""What runs cost: latency, memory, labelling; one row a run, one column a cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data.ids import id_text
from judged.data.records import records_of
from judged.data.topic_records import refuse_wide
from judged.decimals import meant_as_number, read_number
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUN = ("run", "run_id", "run_name", "system", "system_id", "name")
_FIX = "give a column run, and a column of numbers for each cost"


@dataclass(frozen=True)
class Costs:
    """Costs by run. Immutable.

    >>> costs = Costs.of({"bm25": {"latency_ms": 12.5, "memory_gb": 1}, "rrf": {"latency_ms": 30, "memory_gb": None}})
    >>> costs.names, costs.by_run["rrf"]
    (('latency_ms', 'memory_gb'), {'latency_ms': 30.0})
    """

    names: tuple[str, ...]  # the costs, in the order in which they were given
    # `{run: {cost: number}}`; a cost that is not known of a run is not in it
    by_run: Mapping[str, Mapping[str, float]] = field(repr=False)
    left_out: tuple[str, ...] = ()  # columns without a number, which are no costs
    where: str = "<costs>"

    @classmethod
    def of(cls, data: Any) -> Costs:
        """Take ``{run: {cost: number}}``, a data frame, a list of dicts, or a CSV, TSV, JSON, JSONL or Parquet file."""
        # A table has a column `run`; what is empty, None or NaN is not known.
        if isinstance(data, cls):
            return data
        where = str(data) if isinstance(data, (str, Path)) else "<costs>"
        try:
            return _made(_rows(data, where), where)
        except pa.ArrowException as error:
            raise InputError(f"costs cannot be read from it ({error})", fix=_FIX, path=where) from None


def _made(rows: Iterable[tuple[str, Mapping[str, Any]]], where: str) -> Costs:
    given: dict[str, dict[str, Any]] = {}
    for run, costs in rows:
        if run in given:
            raise InputError(f"run {run} stands in it twice", fix="keep one row a run", path=where)
        given[run] = {name: value for name, value in _named(costs, where).items() if not _empty(value)}
    names = list(dict.fromkeys(name for costs in given.values() for name in costs))
    refuse_wide(len(names), where)
    columns = {name: {run: costs[name] for run, costs in given.items() if name in costs} for name in names}
    numbers = {name: {run: _number(value) for run, value in column.items()} for name, column in columns.items()}
    costly = [name for name in names if any(isinstance(value, float) for value in numbers[name].values())]
    for name in names:
        for run, value in numbers[name].items():
            almost = isinstance(value, str) and meant_as_number(str(columns[name][run]))
            if almost or (name in costly and (isinstance(value, str) or math.isinf(value))):
                told = value if isinstance(value, str) else "is not finite"
                problem = f"the {name} of run {run}, {columns[name][run]!r}, {told}"
                raise InputError(problem, fix="write a finite number, or nothing where it is not known", path=where)
    if not costly:
        raise InputError("no cost in it", fix=_FIX, path=where)
    by_run = {run: {name: numbers[name][run] for name in costly if run in numbers[name]} for run in given}
    left_out = tuple(name for name in names if name not in costly)
    return Costs(tuple(costly), cast("dict[str, dict[str, float]]", by_run), left_out, where)


def _empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip() or value.strip() == "-"
    return value is None or (isinstance(value, float) and math.isnan(value))


def _named(costs: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Give costs by their names as text, of which each stands once."""
    named = {str(name).strip(): value for name, value in costs.items()}
    if len(named) < len(costs):
        raise InputError(f"a name stands twice among {', '.join(map(str, costs))}", fix="name each once", path=where)
    return named


def _number(value: Any) -> float | str:
    """Give a number, or why it is none."""
    try:
        return read_number(value)
    except ValueError as error:
        return str(error)


def _rows(data: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(data, Mapping):
        yield from _by_run(cast("Mapping[Any, Any]", data), where)
        return
    for _, row in records_of(data, where, "costs", _FIX, key="run"):
        named = _named(row, where)
        column = next((name for usual in _RUN for name in named if name.lower() == usual), None)
        if column is None:
            raise InputError(f"no column run among {', '.join(named)[:80]}", fix=_FIX, path=where)
        yield id_text(named.pop(column), "run", path=where).strip(), named


def _by_run(data: Mapping[Any, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for run, costs in data.items():
        if not isinstance(costs, Mapping):
            raise InputError(f"{costs!r:.40} are no costs of run {run}", fix='write {"latency_ms": 12.5}', path=where)
        yield id_text(run, "run", path=where), cast("Mapping[str, Any]", costs)
