"""What runs cost: latency, memory, labelling; one row a run, one column a cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from judged.data.ids import id_text
from judged.data.records import records_of
from judged.data.topic_records import refuse_wide
from judged.decimals import meant_as_number, read_number
from judged.errors import InputError

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
        if isinstance(data, Mapping):
            runs = cast("Mapping[Any, Any]", data).items()
            data = [{"run": run, **costs} if isinstance(costs, Mapping) else costs for run, costs in runs]
        given: dict[str, dict[str, Any]] = {}
        try:
            for _, row in records_of(data, where, "costs", _FIX, key="run"):
                costs = {str(name).strip(): value for name, value in row.items() if not _empty(value)}
                column = next((name for usual in _RUN for name in costs if name.lower() == usual), None)
                if column is None:
                    raise InputError(f"no column run among {', '.join(map(str, row))[:80]}", fix=_FIX, path=where)
                run = id_text(costs.pop(column), "run", path=where).strip()
                if given.setdefault(run, costs) is not costs:
                    raise InputError(f"run {run} stands in it twice", fix="keep one row a run", path=where)
        except pa.ArrowException as error:
            raise InputError(f"costs cannot be read from it ({error})", fix=_FIX, path=where) from None
        return cls._of(given, where)

    @classmethod
    def _of(cls, given: Mapping[str, Mapping[str, Any]], where: str) -> Costs:
        """Take the columns that hold a number; whatever else stands in one of these is refused."""
        names = list(dict.fromkeys(name for costs in given.values() for name in costs))
        refuse_wide(len(names), where)
        by_run: dict[str, dict[str, float]] = {run: {} for run in given}
        costly: list[str] = []
        for name in names:
            numbers = {run: _number(costs[name]) for run, costs in given.items() if name in costs}
            costly += [name] if any(isinstance(number, float) for number in numbers.values()) else []
            for run, number in numbers.items():
                value = given[run][name]
                if isinstance(number, float) and math.isfinite(number):
                    by_run[run][name] = number
                elif name in costly or meant_as_number(str(value)):
                    why = number if isinstance(number, str) else "is not finite"
                    problem = f"the {name} of run {run}, {value!r}, {why}"
                    raise InputError(problem, fix="write a finite number, or nothing where it is not known", path=where)
        if not costly:
            raise InputError("no cost in it", fix=_FIX, path=where)
        return cls(tuple(costly), by_run, tuple(name for name in names if name not in costly), where)


def _empty(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in {"", "-"}
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(value: Any) -> float | str:
    """Give a number, or why it is none."""
    try:
        return read_number(value)
    except ValueError as error:
        return str(error)
