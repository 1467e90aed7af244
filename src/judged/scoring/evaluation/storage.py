"""Scores in a Parquet file: the long table, and in its metadata all that the numbers rest on."""

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
    Several = TypeVar("Several", bound=Scores)


_KEY, _DIGEST = b"judged", b"judged sha256"


def parquet_of(scores: Scores) -> bytes:
    """Write scores and their provenance."""
    facts = {
        "runs": [{"name": run.name, **run.to_dict()} for run in scores.runs],
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
    runs = tuple(_run_facts(**_with_tuples(run)) for run in facts["runs"])
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


def _run_facts(sha256: str | None, **known: Any) -> RunFacts:
    return RunFacts(file_hash=files.FileHash(digest=sha256), **known)


def _with_tuples(facts: dict[str, Any]) -> dict[str, Any]:
    """Undo what JSON did to tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}


_AGAIN = "evaluate all runs in one way"


def same_judgments(first: QrelsFacts, other: QrelsFacts) -> bool:
    """Whether judgments are the same, wherever they were read from."""
    return replace(first, name="", path="") == replace(other, name="", path="")


def joined(first: Several, *others: Several) -> Several:
    """Put the runs of several tables into one, as one call would have scored them."""
    parts = [first, *(_alike(first, other) for other in others)]
    runs = tuple(run for part in parts for run in part.runs)
    names = [run.name for run in runs]
    if twice := [name for name in names if names.count(name) > 1]:
        fix = "name one of them when it is evaluated: {'other': run}, or OTHER=FILE"
        raise InputError(f"two runs are called {twice[0]!r}", fix=fix)
    query_ids = tuple(sorted({query for part in parts for query in part.query_ids}))
    place = {query: column for column, query in enumerate(query_ids)}
    columns = [[place[query] for query in part.query_ids] for part in parts]

    def stacked(tables: Sequence[Any], empty: Any) -> Any:
        """Put tables of runs by topics below each other, over the topics of all."""
        wide = [np.full((*table.shape[:-1], len(query_ids)), empty, dtype=table.dtype) for table in tables]
        for table, narrow, where in zip(wide, tables, columns, strict=True):
            table[..., where] = narrow
        return np.concatenate(wide)

    ranges = tuple(
        replace(
            same[0],
            low=stacked([part.low for part in same], np.nan),
            high=stacked([part.high for part in same], np.nan),
            kind=stacked([part.kind for part in same], "exact"),
            judged=np.concatenate([part.judged for part in same]),
        )
        for same in zip(*(part.ranges for part in parts), strict=True)
    )
    return replace(
        first,
        runs=runs,
        query_ids=query_ids,
        values=stacked([part.values for part in parts], np.nan),
        counted=stacked([part.counted for part in parts], False),
        notes=tuple(dict.fromkeys((*(note for part in parts for note in part.notes), *_versions(parts)))),
        ranges=ranges,
    )


def _alike(first: Several, other: Several) -> Several:
    """Refuse scores that were made in another way, by what differs; give others in the order of the measures."""
    theirs = f"the scores of {listed(other.run_names)} and of {listed(first.run_names)}"
    if not same_judgments(first.qrels, other.qrels):
        paths = f"{other.qrels.path} and {first.qrels.path}"
        raise InputError(f"{theirs} are by different judgments ({paths})", fix=_AGAIN)
    for policy in fields(first.policies):
        own, its = (getattr(part.policies, policy.name) for part in (first, other))
        if own != its:
            raise InputError(f"{theirs} differ in {policy.name}: {its} and {own}", fix=_AGAIN)
    if [part.reason for part in first.ranges] != [part.reason for part in other.ranges]:
        raise InputError(f"{theirs} differ in unjudged: ranges stand beside some alone", fix=_AGAIN)
    if set(first.measures) != set(other.measures):
        apart = listed(sorted(set(first.measure_names) ^ set(other.measure_names)))
        raise InputError(f"{theirs} differ in their measures: {apart}", fix=_AGAIN)
    if first.policies.topics == "qrels" and first.query_ids != other.query_ids:
        raise InputError(f"{theirs} are over different topics", fix=_AGAIN)
    rows = [other.measures.index(measure) for measure in first.measures]
    ranges = tuple(part.of_measures(rows) for part in other.ranges)
    return replace(other, measures=first.measures, values=other.values[:, rows], ranges=ranges)


def _versions(parts: Sequence[Scores]) -> Iterator[Note]:
    made = dict.fromkeys(part.versions.get("judged", "") for part in parts)
    if len(made) > 1:
        yield Note("versions-differ", f"the scores were made by judged {listed(list(made))}")
