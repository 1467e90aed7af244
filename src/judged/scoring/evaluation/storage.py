"""Scores in a Parquet file: the long table of scores, with their provenance in the metadata."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import parquet_table
from judged.data.qrels import Origin
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.decimals import listed
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts, TopicRanges
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.results.types import Floats, Ints, Table
    from judged.scoring.evaluation.scores import Scores

    S = TypeVar("S", bound=Scores)
    AnyScores = TypeVar("AnyScores", bound=Scores)


_KEY, _DIGEST = b"judged", b"judged sha256"


def to_parquet(scores: Scores) -> bytes:
    """Serialize scores and their provenance."""
    facts = {
        "runs": [{"name": run.name, **run.to_dict()} for run in scores.runs],
        "measures": list(scores.measure_names),
        "query_ids": list(scores.query_ids),
        "policies": dataclasses.asdict(scores.policies),
        "qrels": dataclasses.asdict(scores.qrels),
        "notes": list(map(dataclasses.asdict, scores.notes)),
        "versions": scores.versions,
        "ranges": {ranges.reason: ranges.judged.tolist() for ranges in scores.ranges},
    }
    from pyarrow import parquet  # slow to import, and most calls save nothing

    table, text = scores.to_arrow(), json.dumps(facts).encode()
    table = table.replace_schema_metadata({_KEY: text, _DIGEST: _digest(table, text)})
    target = pa.BufferOutputStream()
    parquet.write_table(table, target)
    return target.getvalue().to_pybytes()


def load(cls: type[S], path: str | Path) -> S:
    """Read saved scores. Raise InputError if the file was not written by `Scores.save`, or was changed."""
    where = str(path)
    if files.head(path, 4) != b"PAR1":
        fix = "save scores as Parquet: judged evaluate ... -o scores.parquet, or scores.save(...)"
        raise InputError("saved scores must be a Parquet file", fix=fix, path=where)
    return of_parquet(cls, parquet_table(Path(path), where), where)


def of_parquet(cls: type[S], table: Table, where: str) -> S:
    """Read saved scores from their table, as `load` reads a file."""
    metadata = table.schema.metadata or {}
    if not {_DIGEST, _KEY} <= metadata.keys():
        content = "a result other than scores" if _KEY in metadata else "not a file of saved scores"
        raise InputError(f"this is {content}", fix="use a file that Scores.save wrote", path=where)
    if metadata.get(_DIGEST) != _digest(table, metadata[_KEY]):
        problem = "the scores or their provenance were changed after Scores.save wrote the file"
        raise InputError(problem, fix="save or download the file again", path=where)
    try:
        return _scores(cls, table, json.loads(metadata[_KEY]))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"another version of judged wrote the file ({error})"
        raise InputError(problem, fix="read the file with that version, or evaluate again", path=where) from None


def _digest(table: Table, facts: bytes) -> bytes:
    # Detects any change of the file. All NaN values are equal, whatever their bits.
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
    runs = tuple(_run_facts(**_with_tuples(run)) for run in facts["runs"])
    names = tuple(run.name for run in runs)
    measures, query_ids = tuple(map(parse, facts["measures"])), tuple(facts["query_ids"])
    values = np.full((len(runs), len(measures), len(query_ids)), np.nan)
    cells = tuple(
        _codes(table[column], names_of_column)
        for column, names_of_column in (("run", names), ("measure", facts["measures"]), ("query_id", query_ids))
    )
    values[cells] = table["value"].to_numpy()
    counted = np.zeros((len(runs), len(query_ids)), dtype=np.bool_)
    counted[cells[0], cells[2]] = True
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
            _ranges(table, reason, cells, np.array(shares), values.shape) for reason, shares in facts["ranges"].items()
        ),
    )


def _texts(table: Table) -> dict[str, str]:
    return dict(zip(table["query_id"].to_pylist(), table["query"].to_pylist(), strict=True))


def _ranges(table: Table, reason: str, cells: tuple[Ints, ...], shares: Floats, shape: tuple[int, ...]) -> TopicRanges:
    low, high, kind = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, "exact", dtype="<U7")
    low[cells], high[cells] = table[f"{reason}_low"].to_numpy(), table[f"{reason}_high"].to_numpy()
    kind[cells] = table[f"{reason}_kind"].to_pylist()
    return TopicRanges(reason, low, high, kind, shares)


def _codes(column: Any, names: Any) -> Any:
    code_of = {name: code for code, name in enumerate(names)}
    return np.array([code_of[name] for name in column.to_pylist()], dtype=np.int64)


def _qrels(facts: dict[str, Any]) -> QrelsFacts:
    origin = facts.pop("origin", None)
    return QrelsFacts(**_with_tuples(facts), origin=None if origin is None else Origin.of(origin))


def _run_facts(sha256: str | None, **attributes: Any) -> RunFacts:
    return RunFacts(file_hash=files.FileHash(digest=sha256), **attributes)


def _with_tuples(facts: dict[str, Any]) -> dict[str, Any]:
    """Convert lists, as read from JSON, back to tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}


_FIX_DIFFERENCE = "evaluate all runs with the same options"


def same_judgments(first: QrelsFacts, second: QrelsFacts) -> bool:
    """Return whether judgments are the same, even if they were read from different files."""
    return replace(first, name="", path="") == replace(second, name="", path="")


def join_scores(first: AnyScores, *others: AnyScores) -> AnyScores:
    """Combine the runs of several tables of scores, as if one call had scored them."""
    tables = [first, *(_check_comparable(first, other) for other in others)]
    runs = tuple(run for table in tables for run in table.runs)
    names = [run.name for run in runs]
    if duplicates := [name for name in names if names.count(name) > 1]:
        fix = "evaluate one of these runs under another name: {'other': run}, or OTHER=FILE"
        raise InputError(f"run names must be unique, got two runs called {duplicates[0]!r}", fix=fix)
    query_ids = tuple(sorted({query for table in tables for query in table.query_ids}))
    column_of = {query: column for column, query in enumerate(query_ids)}
    columns = [[column_of[query] for query in table.query_ids] for table in tables]

    def concatenate(arrays: Sequence[Any], fill_value: Any) -> Any:
        """Concatenate arrays of runs by topics, extended to the topics of all tables."""
        extended = [np.full((*array.shape[:-1], len(query_ids)), fill_value, dtype=array.dtype) for array in arrays]
        for target, array, own_columns in zip(extended, arrays, columns, strict=True):
            target[..., own_columns] = array
        return np.concatenate(extended)

    ranges = tuple(
        replace(
            of_reason[0],
            low=concatenate([part.low for part in of_reason], np.nan),
            high=concatenate([part.high for part in of_reason], np.nan),
            kind=concatenate([part.kind for part in of_reason], "exact"),
            judged=np.concatenate([part.judged for part in of_reason]),
        )
        for of_reason in zip(*(table.ranges for table in tables), strict=True)
    )
    return replace(
        first,
        runs=runs,
        query_ids=query_ids,
        values=concatenate([table.values for table in tables], np.nan),
        counted=concatenate([table.counted for table in tables], False),
        notes=tuple(dict.fromkeys((*(note for table in tables for note in table.notes), *_version_notes(tables)))),
        ranges=ranges,
    )


def _check_comparable(first: AnyScores, other: AnyScores) -> AnyScores:
    """Raise InputError if scores are not comparable. Return `other` with its measures in the order of `first`."""
    subject = f"the scores of {listed(other.run_names)} and of {listed(first.run_names)}"
    if not same_judgments(first.qrels, other.qrels):
        paths = f"{other.qrels.path} and {first.qrels.path}"
        raise InputError(f"{subject} must have the same judgments, got {paths}", fix=_FIX_DIFFERENCE)
    for policy in fields(first.policies):
        first_value, other_value = (getattr(scores.policies, policy.name) for scores in (first, other))
        if first_value != other_value:
            problem = f"{subject} must have the same {policy.name}, got {other_value} and {first_value}"
            raise InputError(problem, fix=_FIX_DIFFERENCE)
    if [ranges.reason for ranges in first.ranges] != [ranges.reason for ranges in other.ranges]:
        raise InputError(
            f"{subject} must either all have score ranges (unjudged=True) or all have none", fix=_FIX_DIFFERENCE
        )
    if set(first.measures) != set(other.measures):
        difference = listed(sorted(set(first.measure_names) ^ set(other.measure_names)))
        raise InputError(f"{subject} must have the same measures, but only one has {difference}", fix=_FIX_DIFFERENCE)
    if first.policies.topics == "qrels" and first.query_ids != other.query_ids:
        raise InputError(f"{subject} must have the same topics", fix=_FIX_DIFFERENCE)
    rows = [other.measures.index(measure) for measure in first.measures]
    ranges = tuple(part.select_measures(rows) for part in other.ranges)
    return replace(other, measures=first.measures, values=other.values[:, rows], ranges=ranges)


def _version_notes(tables: Sequence[Scores]) -> Iterator[Note]:
    versions = dict.fromkeys(table.versions.get("judged", "") for table in tables)
    if len(versions) > 1:
        yield Note(
            "versions-differ", f"the scores were computed by different versions of judged: {listed(list(versions))}"
        )
