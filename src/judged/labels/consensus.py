"""One grade of several judges for each pair: qrels as a view of labels, chosen when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Origin, Qrels
from judged.errors import InputError
from judged.labels.exchange import is_store
from judged.labels.labels import ADJUDICATOR, KINDS, Labels
from judged.results.blocks import Note
from judged.results.decimals import counted
from judged.results.types import ReadOnly
from judged.stats.agreement import encode_grades

if TYPE_CHECKING:
    from collections.abc import Collection

    from judged.labels.labels import Kind
    from judged.results.types import Bools, Floats, Ints


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
        Of `judged.labels.consensus.dawid_skene`.

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
    classes, codes = encode_grades(grades)
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


@dataclass(frozen=True, eq=False)
class DawidSkene(ReadOnly):
    """What was estimated of U things, J judges and C classes."""

    classes: Floats  # (C,): the grades that were given, rising
    priors: Floats  # (C,): how frequent each class is
    confusion: Floats = field(repr=False)  # (J, C, C): how a judge (first) grades (last) a thing of a class (middle)
    posterior: Floats = field(repr=False)  # (U, C): the probability that a thing has a class
    log_likelihoods: Floats = field(repr=False)  # by iteration; without smoothing they never fall
    converged: bool  # whether the last iteration changed no posterior probability by more than the tolerance

    @property
    def mode(self) -> Floats:
        """The most probable class of each thing, the lowest of equally probable ones: (U,)."""
        return self.classes[np.argmax(self.posterior, axis=1)]

    @property
    def mean(self) -> Floats:
        """The expected class of each thing: (U,)."""
        return self.posterior @ self.classes


def dawid_skene(
    grades: Floats,
    *,
    owner: Ints | None = None,
    smoothing: float = 0.0,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> DawidSkene:
    """Estimate the class of things and the errors of judges by maximum likelihood, with the EM algorithm.

    It begins with the share of each class among the grades of a thing, so that the same grades give the same numbers.

    Parameters
    ----------
    grades
        (U, J): a row a thing, a column a judge, NaN where there is no grade.
    owner
        (J,): the judge of each column as a code from 0, where some judges have several; None: one each.
    smoothing
        What is added to each count of a judge's confusion matrix before it is made into shares. 0 is the maximum of
        the likelihood; more keeps judges of few grades from counting as without error.
    tolerance, max_iterations
        It ends when no posterior probability changes by more than this, or after so many iterations.

    Raises
    ------
    InputError
        If there is no grade, a thing has none, or an option makes no sense.

    References
    ----------
    Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, Applied Statistics
    28 (1979), 20-28.

    Examples
    --------
    >>> nan = np.nan
    >>> made = dawid_skene(np.array([[1, 1, 0], [0, 0, 1], [1, 1, nan], [0, 0, 0], [1, nan, 1]]))
    >>> made.mode, made.converged, made.priors.round(2)
    (array([1., 0., 1., 0., 1.]), True, array([0.4, 0.6]))
    """
    table = np.asarray(grades, dtype=np.float64)
    if table.ndim != 2 or np.isnan(table).all(axis=1).any() or not table.size:
        raise InputError("there is a thing without a grade", fix="leave it out")
    if not 0 <= smoothing < np.inf or not tolerance > 0 or max_iterations < 1:
        raise InputError(
            "smoothing is no number from 0, or nothing can be iterated", fix="leave the options as they are"
        )
    classes, codes = encode_grades(table)
    thing, column = np.nonzero(codes >= 0)
    judge = column if owner is None else np.asarray(owner)[column]
    shape = (int(judge.max()) + 1 if owner is not None else table.shape[1], len(classes), len(classes))
    given = codes[thing, column]
    cell = judge * len(classes) + given
    posterior = _summed(np.eye(len(classes))[given], thing, len(table))
    posterior /= posterior.sum(axis=1, keepdims=True)
    log_likelihoods, converged, priors, confusion = list[float](), False, posterior, np.empty(shape)
    while not converged and len(log_likelihoods) < max_iterations:
        priors = posterior.mean(axis=0)
        counts = _summed(posterior[thing], cell, shape[0] * shape[2]) + smoothing  # (J * given, true)
        confusion = counts.reshape(shape).transpose(0, 2, 1)
        totals = confusion.sum(axis=2, keepdims=True)
        # A judge who saw nothing of a class may do anything with it: no likelihood depends on it.
        confusion = np.where(totals > 0, confusion / np.where(totals > 0, totals, 1), 1 / len(classes))
        with np.errstate(divide="ignore"):
            logs, log_priors = np.log(confusion), np.log(priors)
        joint = log_priors + _summed(logs[judge, :, given], thing, len(table))
        top = joint.max(axis=1, keepdims=True)
        likelihood = np.exp(joint - top).sum(axis=1, keepdims=True)
        before, posterior = posterior, np.exp(joint - top) / likelihood
        log_likelihoods.append(float((top + np.log(likelihood)).sum()))
        converged = bool(np.abs(posterior - before).max() <= tolerance)
    return DawidSkene(classes, priors, confusion, posterior, np.array(log_likelihoods), converged)


def _summed(rows: Floats, group: Ints, groups: int) -> Floats:
    """Add rows by group: (L, C) to (groups, C)."""
    sums = [np.bincount(group, weights=column, minlength=groups) for column in rows.T]
    return np.stack(sums, axis=1).astype(np.float64)
