"""Which class each thing has, and how each judge errs, from what several judges said: Dawid and Skene's model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from judged._types import ReadOnly
from judged.errors import InputError
from judged.stats.grade_counts import coded

if TYPE_CHECKING:
    from judged._types import Floats, Ints


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
    classes, codes = coded(table)
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
