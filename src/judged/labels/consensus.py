"""Aggregation of labels from several judges to one grade per pair: majority, mean, or Dawid and Skene's model."""

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
"""Aggregation rules; the name of a judge is also allowed."""


def qrels_of(
    labels: Any,
    *,
    by: str = "majority",
    kinds: Collection[Kind] | None = None,
    min_judges: int = 1,
    smoothing: float = 0.0,
) -> Qrels:
    """Aggregate labels to qrels.

    The first of a judge's repeated labels of a pair counts. Pairs without a grade stay unjudged. If the judge
    ``adjudicator``, who settles disagreements, graded a pair, this is its grade for every rule.

    Parameters
    ----------
    labels
        As `Labels.of` accepts them.
    by
        Name of a judge; or ``majority``: the most frequent grade, the lowest in a tie, so that a document is not more
        relevant than a majority of judges supports; ``mean``; ``dawid-skene``: the most probable grade in Dawid and
        Skene's model, which weights judges by their errors; ``dawid-skene-mean``: the expected grade in this model.
    kinds
        Kinds of labels that count: ``human``, ``model`` or ``click``. None: for a rule human labels if there are any,
        else all labels.
    min_judges
        Pairs with grades from fewer judges stay unjudged.
    smoothing
        As in `judged.labels.consensus.dawid_skene`.

    Returns
    -------
    Qrels
        `origin` contains the rule and the judges.

    Raises
    ------
    InputError
        If no pair remains, or `by` is neither a rule nor a judge.

    Examples
    --------
    >>> labels = Labels.of({"ann": {"q": {"a": 2, "b": 1}}, "bob": {"q": {"a": 2, "b": 0}}, "cy": {"q": {"a": 0}}})
    >>> qrels = qrels_of(labels)
    >>> qrels.table["relevance"].to_pylist(), qrels.origin.human, qrels.origin.tied
    ([2.0, 0.0], 5, 1)
    >>> qrels_of(labels, by="mean", min_judges=3).table.to_pylist()
    [{'query_id': 'q', 'doc_id': 'a', 'relevance': 1.3333333333333333}]
    """
    if isinstance(labels, (str, Path)) and is_store(labels):
        from judged.labels.store import LabelStore

        with LabelStore.open(labels, new=False) as store:
            return qrels_of(store, by=by, kinds=kinds, min_judges=min_judges, smoothing=smoothing)
    # Only a store has topics, and so knows which queries are synthetic.
    store_topics = getattr(labels, "topics", tuple)()
    synthetic = {row["query_id"] for row in store_topics if row["synthetic"]}
    if kinds is not None and (unknown := sorted({*kinds} - {*KINDS})):
        raise InputError(f"unknown type of judge {unknown[0]!r}", fix=f"use {', '.join(KINDS)}")
    selected = Labels.of(labels)
    # Human labels are the default reference: models count only if requested or without human labels.
    if kinds is None and by in RULES and "human" in selected.table["kind"].unique().to_pylist():
        kinds = ("human",)
    selected = selected if kinds is None else selected.of_kind(*kinds)
    if by not in RULES and by not in selected.judges:
        fix = f"use one of the rules {', '.join(RULES)}, or one of the judges {', '.join(selected.judges)}"
        raise InputError(
            f"`by` must be an aggregation rule or the name of a judge, got {by!r}", fix=fix, path=selected.where
        )
    selected = selected if by in RULES else selected.of_judges([by])
    no_final = np.full(selected.pairs.num_rows, np.nan)
    votes, final = _votes_and_final(selected) if by in RULES else (selected.grades, no_final)
    is_final = ~np.isnan(final)
    is_counted = ((~np.isnan(votes)).sum(axis=1) >= max(min_judges, 1)) | is_final
    if not is_counted.any():
        problem = (
            "no pair of topic and document has a grade"
            if min_judges <= 1
            else f"no pair of topic and document has grades from {min_judges} judges"
        )
        raise InputError(problem, fix="add labels, or use a smaller `min_judges`", path=selected.where)
    relevance, tied, converged = _aggregate(votes[is_counted], by, smoothing)
    relevance = np.where(is_final[is_counted], final[is_counted], relevance)
    tied &= ~is_final[is_counted]
    table = selected.pairs.filter(pa.array(is_counted)).select(["query_id", "doc_id"]).combine_chunks()
    synthetic &= set(table["query_id"].unique().to_pylist())
    rule = by if by in RULES else "judge"
    origin = _origin(selected, is_counted, rule)
    origin = replace(origin, synthetic=len(synthetic), tied=int(tied.sum()), converged=converged)
    return Qrels(table.append_column("relevance", pa.array(relevance)), selected.name, selected.where, origin=origin)


def _votes_and_final(labels: Labels) -> tuple[Floats, Floats]:
    """Split grades into votes, (pairs, judges), and final grades of the adjudicator, (pairs,); NaN if missing."""
    grades, no_grades = labels.grades, np.full(labels.pairs.num_rows, np.nan)
    if ADJUDICATOR not in labels.judges or len(labels.judges) == 1:
        return grades, no_grades
    column = labels.judges.index(ADJUDICATOR)
    votes, final = np.delete(grades, column, axis=1), grades[:, column]
    # A pair with a final grade only needs a vote, or it would count as unjudged.
    only_final = np.isnan(votes).all(axis=1)
    votes[only_final, 0] = final[only_final]
    return votes, final


def _aggregate(grades: Floats, by: str, smoothing: float) -> tuple[Floats, Bools, bool]:
    """Return the grade of each pair, whether the majority is tied, and whether the estimate converged."""
    classes, codes = encode_grades(grades)
    votes = np.stack([(codes == code).sum(axis=1) for code in range(len(classes))], axis=1)
    # argmax returns the first maximum, which is the lowest grade of a tie.
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    if by.startswith("dawid-skene"):
        model = dawid_skene(grades, smoothing=smoothing)
        return (model.mean if by.endswith("mean") else model.mode), np.zeros_like(tied), model.converged
    if by == "majority":
        return classes[votes.argmax(axis=1)], tied, True
    return np.nanmean(grades, axis=1), np.zeros_like(tied), True


def _origin(labels: Labels, is_counted: Bools, rule: str) -> Origin:
    """Build the origin of qrels from the labels that count; its hash does not depend on their order."""
    first = labels.graded.filter(pc.equal(labels.graded["repeat"], 0))
    counted_labels = first.filter(pa.array(is_counted[labels.row_of(first)]))
    names = ["query_id", "doc_id", "judge", "kind", "grade"]
    # Sorted, so that the hash does not depend on the order of labels.
    rows = sorted(zip(*(counted_labels[name].to_pylist() for name in names), strict=True))
    counts = {kind: pc.sum(pc.equal(counted_labels["kind"], kind)).as_py() for kind in ("human", "model", "click")}
    return Origin(
        rule,
        **counts,
        judges=tuple(sorted(counted_labels["judge"].unique().to_pylist())),
        last=max(counted_labels["time"].to_pylist(), default=""),
        sha256=sha256(repr(rows).encode()).hexdigest(),
    )


def consensus_notes(origin: Origin) -> tuple[Note, ...]:
    """Return notes about ties and convergence for the user who builds qrels."""
    texts: dict[str, str] = {}
    if origin.tied:
        pairs = counted(origin.tied, "pair has", "pairs have")
        texts["tied-majority"] = f"{pairs} a tie between the most frequent grades; the lowest of them counts"
    if not origin.converged:
        texts["not-converged"] = "Dawid and Skene's model did not converge. Fix: use more judges per pair"
    return tuple(Note(name, text) for name, text in texts.items())


@dataclass(frozen=True, eq=False)
class DawidSkene(ReadOnly):
    """Estimates for U items, J judges and C classes."""

    classes: Floats  # (C,): grades in increasing order
    priors: Floats  # (C,): prevalence of each class
    confusion: Floats = field(repr=False)  # (J, C, C): P(grade | judge, true class): judge, class, grade
    posterior: Floats = field(repr=False)  # (U, C): probability of each class for an item
    log_likelihoods: Floats = field(repr=False)  # by iteration; nondecreasing without smoothing
    converged: bool  # whether the last change of posteriors was within tolerance

    @property
    def mode(self) -> Floats:
        """Most probable class of each item, the lowest in a tie: (U,)."""
        return self.classes[np.argmax(self.posterior, axis=1)]

    @property
    def mean(self) -> Floats:
        """Expected class of each item: (U,)."""
        return self.posterior @ self.classes


def dawid_skene(
    grades: Floats,
    *,
    owner: Ints | None = None,
    smoothing: float = 0.0,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> DawidSkene:
    """Estimate item classes and judge errors by maximum likelihood with the EM algorithm.

    The start values are the shares of each class among the grades of an item, so the result is deterministic.

    Parameters
    ----------
    grades
        (U, J): one row per item, one column per judge; NaN without a grade.
    owner
        (J,): judge of each column, as a code from 0, if a judge has several columns; None: one column per judge.
    smoothing
        Pseudocount for each cell of a judge's confusion matrix. 0 gives the maximum of the likelihood. A positive value
        avoids that judges with few grades appear to be without errors.
    tolerance, max_iterations
        Stop if no posterior probability changes by more than this, or after this number of iterations.

    Raises
    ------
    InputError
        If an item has no grade, or an option is out of range.

    References
    ----------
    Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, Applied Statistics
    28 (1979), 20-28.

    Examples
    --------
    >>> nan = np.nan
    >>> model = dawid_skene(np.array([[1, 1, 0], [0, 0, 1], [1, 1, nan], [0, 0, 0], [1, nan, 1]]))
    >>> model.mode, model.converged, model.priors.round(2)
    (array([1., 0., 1., 0., 1.]), True, array([0.4, 0.6]))
    """
    table = np.asarray(grades, dtype=np.float64)
    if table.ndim != 2 or np.isnan(table).all(axis=1).any() or not table.size:
        raise InputError("each item must have a grade", fix="leave out items without grades")
    if not 0 <= smoothing < np.inf or not tolerance > 0 or max_iterations < 1:
        raise InputError(
            "`smoothing` must be 0 or more, `tolerance` positive, `max_iterations` at least 1", fix="use the defaults"
        )
    classes, codes = encode_grades(table)
    item, column = np.nonzero(codes >= 0)
    judge = column if owner is None else np.asarray(owner)[column]
    shape = (int(judge.max()) + 1 if owner is not None else table.shape[1], len(classes), len(classes))
    grade = codes[item, column]
    cell = judge * len(classes) + grade
    # Start values: shares of votes, as in the paper.
    posterior = _sum_by_group(np.eye(len(classes))[grade], item, len(table))
    posterior /= posterior.sum(axis=1, keepdims=True)
    log_likelihoods, converged, priors, confusion = list[float](), False, posterior, np.empty(shape)
    while not converged and len(log_likelihoods) < max_iterations:
        priors = posterior.mean(axis=0)
        # M step: error rates by judge, equation 2.3 of the paper. `counts`: (J * grade, true class).
        counts = _sum_by_group(posterior[item], cell, shape[0] * shape[2]) + smoothing
        confusion = counts.reshape(shape).transpose(0, 2, 1)
        totals = confusion.sum(axis=2, keepdims=True)
        # A judge without items of a class has no estimate for it; the likelihood does not depend on these cells.
        confusion = np.where(totals > 0, confusion / np.where(totals > 0, totals, 1), 1 / len(classes))
        with np.errstate(divide="ignore"):
            logs, log_priors = np.log(confusion), np.log(priors)
        # E step, equation 2.5, in logs: products over many judges would underflow.
        joint = log_priors + _sum_by_group(logs[judge, :, grade], item, len(table))
        # Log-sum-exp.
        top = joint.max(axis=1, keepdims=True)
        likelihood = np.exp(joint - top).sum(axis=1, keepdims=True)
        before, posterior = posterior, np.exp(joint - top) / likelihood
        log_likelihoods.append(float((top + np.log(likelihood)).sum()))
        converged = bool(np.abs(posterior - before).max() <= tolerance)
    return DawidSkene(classes, priors, confusion, posterior, np.array(log_likelihoods), converged)


def _sum_by_group(rows: Floats, group: Ints, groups: int) -> Floats:
    """Sum rows by group: (L, C) to (groups, C)."""
    sums = [np.bincount(group, weights=column, minlength=groups) for column in rows.T]
    return np.stack(sums, axis=1).astype(np.float64)
