"""Scores of several calls as one: the same judgments, policies and measures, other runs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from judged.errors import InputError
from judged.results.decimals import listed
from judged.results.notes import Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.scoring.evaluation.facts import QrelsFacts
    from judged.scoring.evaluation.scores import Scores

    Several = TypeVar("Several", bound=Scores)

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
