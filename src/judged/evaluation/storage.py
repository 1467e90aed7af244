"""Scores in a Parquet file: the long table, and in its metadata all that the numbers rest on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from judged.data import replaced
from judged.errors import InputError
from judged.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges
from judged.measures import parse

if TYPE_CHECKING:
    from judged._types import Floats, Ints, Table
    from judged.evaluation.score_table import ScoreTable

    S = TypeVar("S", bound=ScoreTable)

_KEY = b"judged"


def save(scores: ScoreTable, path: str | Path) -> None:
    """Write scores; an existing file is replaced only when the new one is complete."""
    facts = {
        "runs": [dataclasses.asdict(run) for run in scores.runs],
        "measures": list(scores.measure_names),
        "query_ids": list(scores.query_ids),
        "policies": dataclasses.asdict(scores.policies),
        "qrels": dataclasses.asdict(scores.qrels),
        "notes": list(scores.notes),
        "versions": scores.versions,
        "ranges": {one.reason: one.judged.tolist() for one in scores.ranges},
    }
    from pyarrow import parquet  # it takes a while, and most calls save nothing

    table = scores.to_arrow().replace_schema_metadata({_KEY: json.dumps(facts)})
    with replaced(path) as temporary:
        parquet.write_table(table, temporary)


def load(cls: type[S], path: str | Path) -> S:
    """Read scores back.

    Raises
    ------
    InputError
        If the file is not a Parquet file that `save` wrote.
    """
    from pyarrow import parquet

    if not Path(path).is_file():
        raise InputError("there is no such file", fix="check the path", path=str(path))
    try:
        table = parquet.read_table(path)
        facts: dict[str, Any] = json.loads((table.schema.metadata or {})[_KEY])
    except (OSError, pa.ArrowInvalid, KeyError):
        raise InputError(
            "this is no file of scores", fix="give a file that Scores.save wrote", path=str(path)
        ) from None
    runs = tuple(RunFacts(**_with_tuples(run)) for run in facts["runs"])
    names = tuple(run.name for run in runs)
    measures, query_ids = tuple(map(parse, facts["measures"])), tuple(facts["query_ids"])
    values = np.full((len(runs), len(measures), len(query_ids)), np.nan)
    at = tuple(
        _codes(table[column], known)
        for column, known in (("run", names), ("measure", facts["measures"]), ("query_id", query_ids))
    )
    values[at] = table["value"].to_numpy()
    counted = np.zeros((len(runs), len(query_ids)), dtype=np.bool_)
    counted[at[0], at[2]] = True
    return cls(
        runs=runs,
        measures=measures,
        query_ids=query_ids,
        values=values,
        counted=counted,
        policies=Policies(**facts["policies"]),
        qrels=QrelsFacts(**_with_tuples(facts["qrels"])),
        notes=tuple(facts["notes"]),
        versions=facts["versions"],
        ranges=tuple(
            _ranges(table, reason, at, np.array(shares), values.shape) for reason, shares in facts["ranges"].items()
        ),
    )


def _ranges(table: Table, reason: str, at: tuple[Ints, ...], shares: Floats, shape: tuple[int, ...]) -> TopicRanges:
    low, high, kind = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, "exact", dtype="<U7")
    low[at], high[at] = table[f"{reason}_low"].to_numpy(), table[f"{reason}_high"].to_numpy()
    kind[at] = table[f"{reason}_kind"].to_pylist()
    return TopicRanges(reason, low, high, kind, shares)


def _codes(column: Any, known: Any) -> Any:
    place = {name: at for at, name in enumerate(known)}
    return np.array([place[name] for name in column.to_pylist()], dtype=np.int64)


def _with_tuples(facts: dict[str, Any]) -> dict[str, Any]:
    """Undo what JSON did to tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
