"""One grade of several judges for each pair: qrels as a view of labels, chosen when they are made."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.origin import Origin
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.labels.exchange import is_store
from judged.labels.labels import ADJUDICATOR, KINDS, Labels
from judged.results.decimals import counted
from judged.results.notes import Note
from judged.stats.dawid_skene import dawid_skene
from judged.stats.grade_counts import coded

if TYPE_CHECKING:
    from collections.abc import Collection

    from judged._types import Bools, Floats
    from judged.labels.labels import Kind

RULES = ("majority", "mean", "dawid-skene", "dawid-skene-mean")
"""How several grades become one, besides the name of one judge."""


def qrels_of(
    labels: Any,
    *,
    by: str = "majority",
    kinds: Collection[Kind] | None = None,
    min_judges: int = 1,
    smoothing: float = 0.0,
) -> Qrels:
    """Make qrels of labels.

    Of a judge's repeated labels of a pair the first one counts. Pairs that nobody graded stay unjudged. Where the
    judge ``adjudicator``, who settles disagreements, gave a label, no rule is asked: it is the grade.

    Parameters
    ----------
    labels
        A `Labels`, or anything that `Labels.of` takes.
    by
        A judge's name; or ``majority``: the grade that most judges gave, the lowest of equally frequent ones, so that
        a document is as relevant only as more judges say than deny; ``mean``; ``dawid-skene``: the most probable grade
        by Dawid and Skene's model, which weighs judges by how they err; ``dawid-skene-mean``: the expected one.
    kinds
        Count only labels of ``human``, ``model`` or ``click``; None: a rule counts people's where there are any, and
        all otherwise.
    min_judges
        Pairs with fewer judges stay unjudged.
    smoothing
        Of `judged.stats.dawid_skene.dawid_skene`.

    Returns
    -------
    Qrels
        Their `origin` says how they were made, of whose labels.

    Raises
    ------
    InputError
        If nothing is left, or `by` is neither a rule nor a judge.

    Examples
    --------
    >>> labels = Labels.of({"ann": {"q": {"a": 2, "b": 1}}, "bob": {"q": {"a": 2, "b": 0}}, "cy": {"q": {"a": 0}}})
    >>> made = qrels_of(labels)
    >>> made.table["relevance"].to_pylist(), made.origin.human, made.origin.tied
    ([2.0, 0.0], 5, 1)
    >>> qrels_of(labels, by="mean", min_judges=3).table.to_pylist()
    [{'query_id': 'q', 'doc_id': 'a', 'relevance': 1.3333333333333333}]
    """
    if isinstance(labels, (str, Path)) and is_store(labels):
        return _of_store(labels, by=by, kinds=kinds, min_judges=min_judges, smoothing=smoothing)
    topics = getattr(labels, "topics", tuple)()  # of a store
    synthetic = {row["query_id"] for row in topics if row["synthetic"]}
    if kinds is not None and (strange := sorted({*kinds} - {*KINDS})):
        raise InputError(f"no kind of label {strange[0]!r}", fix=f"give some of {', '.join(KINDS)}")
    given = Labels.of(labels)
    if kinds is None and by in RULES and "human" in given.table["kind"].unique().to_pylist():
        kinds = ("human",)
    given = given if kinds is None else given.of_kind(*kinds)
    if by not in RULES and by not in given.judges:
        fix = f"use {', '.join(RULES)}, or a judge: {', '.join(given.judges)}"
        raise InputError(f"no rule and no judge is called {by!r}", fix=fix, path=given.where)
    given = given if by in RULES else given.of_judges([by])
    votes, final = _apart(given) if by in RULES else (given.grades, np.full(given.pairs.num_rows, np.nan))
    settled = ~np.isnan(final)
    enough = ((~np.isnan(votes)).sum(axis=1) >= max(min_judges, 1)) | settled
    if not enough.any():
        problem = "no pair has a grade" if min_judges <= 1 else f"no pair has grades of {min_judges} judges"
        raise InputError(problem, fix="judge more, or ask for less", path=given.where)
    relevance, tied, converged = _one_grade(votes[enough], by, smoothing)
    relevance = np.where(settled[enough], final[enough], relevance)
    tied &= ~settled[enough]
    table = given.pairs.filter(pa.array(enough)).select(["query_id", "doc_id"]).combine_chunks()
    synthetic &= set(table["query_id"].unique().to_pylist())
    how = by if by in RULES else "judge"
    origin = replace(_origin(given, enough, how), synthetic=len(synthetic), tied=int(tied.sum()), converged=converged)
    return Qrels(table.append_column("relevance", pa.array(relevance)), given.name, given.where, origin=origin)


def _of_store(where: str | Path, **options: Any) -> Qrels:
    from judged.labels.store import LabelStore

    with LabelStore.open(where, new=False) as store:
        return qrels_of(store, **options)


def _apart(labels: Labels) -> tuple[Floats, Floats]:
    """Give the votes of judges, (pairs, judges), and the grades that settled disagreements, (pairs,); NaN: none."""
    grades, none = labels.grades, np.full(labels.pairs.num_rows, np.nan)
    if ADJUDICATOR not in labels.judges or len(labels.judges) == 1:
        return grades, none
    at = labels.judges.index(ADJUDICATOR)
    votes, final = np.delete(grades, at, axis=1), grades[:, at]
    lone = np.isnan(votes).all(axis=1)
    votes[lone, 0] = final[lone]
    return votes, final


def _one_grade(grades: Floats, by: str, smoothing: float) -> tuple[Floats, Bools, bool]:
    """Give the grade of each pair, whether several grades have most votes, and whether an estimate settled."""
    classes, codes = coded(grades)
    votes = np.stack([(codes == code).sum(axis=1) for code in range(len(classes))], axis=1)
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    if by.startswith("dawid-skene"):
        made = dawid_skene(grades, smoothing=smoothing)
        return (made.mean if by.endswith("mean") else made.mode), np.zeros_like(tied), made.converged
    if by == "majority":
        return classes[votes.argmax(axis=1)], tied, True
    return np.nanmean(grades, axis=1), np.zeros_like(tied), True  # of one judge: that grade


def _origin(labels: Labels, enough: Bools, how: str) -> Origin:
    """Tell of whose labels the chosen pairs have their grades; the hash does not depend on the order of labels."""
    first = labels.graded.filter(pc.equal(labels.graded["repeat"], 0))
    used = first.filter(pa.array(enough[labels.row_of(first)]))
    names = ["query_id", "doc_id", "judge", "kind", "grade"]
    rows = sorted(zip(*(used[name].to_pylist() for name in names), strict=True))
    counts = {kind: pc.sum(pc.equal(used["kind"], kind)).as_py() for kind in ("human", "model", "click")}
    return Origin(
        how,
        **counts,
        judges=tuple(sorted(used["judge"].unique().to_pylist())),
        last=max(used["at"].to_pylist(), default=""),
        sha256=sha256(repr(rows).encode()).hexdigest(),
    )


def consensus_notes(origin: Origin) -> tuple[Note, ...]:
    """Say what whoever makes qrels should know of how the grades were found."""
    said: dict[str, str] = {}
    if origin.tied:
        pairs = counted(origin.tied, "pair has", "pairs have")
        said["tied-majority"] = f"{pairs} no grade with more votes than every other: the lowest counts"
    if not origin.converged:
        said["not-converged"] = "the estimate by Dawid and Skene's model had not settled; give each pair more judges"
    return tuple(Note(rule, text) for rule, text in said.items())
