"""Scores in a Parquet file: the long table, and in its metadata all that the numbers rest on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import parquet_table
from judged.data.origin import Origin
from judged.errors import InputError
from judged.results.notes import Note
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from judged._types import Floats, Ints, Table
    from judged.scoring.evaluation.scores import Scores

    S = TypeVar("S", bound=Scores)

_KEY, _DIGEST = b"judged", b"judged sha256"


def parquet_of(scores: Scores) -> bytes:
    """Write scores and their provenance."""
    facts = {
        "runs": [dataclasses.asdict(run) for run in scores.runs],
        "measures": list(scores.measure_names),
        "query_ids": list(scores.query_ids),
        "policies": dataclasses.asdict(scores.policies),
        "qrels": dataclasses.asdict(scores.qrels),
        "notes": list(map(dataclasses.asdict, scores.notes)),
        "versions": scores.versions,
        "ranges": {span.reason: span.judged.tolist() for span in scores.ranges},
    }
    from pyarrow import parquet  # it takes a while, and most calls save nothing

    table, text = scores.to_arrow(), json.dumps(facts).encode()
    table = table.replace_schema_metadata({_KEY: text, _DIGEST: _digest(table, text)})
    target = pa.BufferOutputStream()
    parquet.write_table(table, target)
    return target.getvalue().to_pybytes()


def load(cls: type[S], path: str | Path) -> S:
    """Read scores back."""
    where = str(path)
    if files.head(path, 4) != b"PAR1":
        fix = "give one that was saved as Parquet: judged evaluate ... -o scores.parquet, or scores.save(...)"
        raise InputError("these scores cannot be read again from this file", fix=fix, path=where)
    table = parquet_table(Path(path), where)
    known = table.schema.metadata or {}
    if not {_DIGEST, _KEY} <= known.keys():
        what = "another result than scores" if _KEY in known else "not a file of scores"
        raise InputError(f"this is {what}", fix="give a file that Scores.save wrote", path=where)
    if known.get(_DIGEST) != _digest(table, known[_KEY]):
        problem = "its scores, or what they rest on, are not those that Scores.save wrote"
        raise InputError(problem, fix="make or fetch the file again", path=where)
    try:
        return _scores(cls, table, json.loads(known[_KEY]))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"another version of judged wrote it ({error})"
        raise InputError(problem, fix="read it with that version, or evaluate again", path=where) from None


def _digest(table: Table, facts: bytes) -> bytes:
    """Hash what a file says, so that no change of it goes unseen; NaN is NaN, whatever its bits."""
    digest = hashlib.sha256(facts)
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"\0{name}\0{column.type}\0".encode())
        if pa.types.is_floating(column.type):
            numbers = column.to_numpy()
            digest.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())
        else:
            digest.update("\0".join(map(str, column.to_pylist())).encode())
    return digest.hexdigest().encode()


def _scores(cls: type[S], table: Table, facts: dict[str, Any]) -> S:
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
        qrels=_qrels(facts["qrels"]),
        notes=tuple(Note(**note) for note in facts["notes"]),
        versions=facts["versions"],
        queries=_texts(table) if "query" in table.column_names else None,
        ranges=tuple(
            _ranges(table, reason, at, np.array(shares), values.shape) for reason, shares in facts["ranges"].items()
        ),
    )


def _texts(table: Table) -> dict[str, str]:
    return dict(zip(table["query_id"].to_pylist(), table["query"].to_pylist(), strict=True))


def _ranges(table: Table, reason: str, at: tuple[Ints, ...], shares: Floats, shape: tuple[int, ...]) -> TopicRanges:
    low, high, kind = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, "exact", dtype="<U7")
    low[at], high[at] = table[f"{reason}_low"].to_numpy(), table[f"{reason}_high"].to_numpy()
    kind[at] = table[f"{reason}_kind"].to_pylist()
    return TopicRanges(reason, low, high, kind, shares)


def _codes(column: Any, known: Any) -> Any:
    place = {name: at for at, name in enumerate(known)}
    return np.array([place[name] for name in column.to_pylist()], dtype=np.int64)


def _qrels(facts: dict[str, Any]) -> QrelsFacts:
    origin = facts.pop("origin", None)
    return QrelsFacts(**_with_tuples(facts), origin=None if origin is None else Origin.of(origin))


def _with_tuples(facts: dict[str, Any]) -> dict[str, Any]:
    """Undo what JSON did to tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
