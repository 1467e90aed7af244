"""Trials of one agent joined with judgments: the input of measures of trajectories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class JudgedTrajectories:
    """Trials of one system for T questions, joined with judgments; the counterpart of `Judged`.

    With N trials, S searches in order of trial and step, and D returned documents in order of search and rank.
    Relevant documents are counted once, at the first search of the trial that returned them.
    """

    query_ids: tuple[str, ...]  # T
    name: str
    question: Ints  # (N,): position in `query_ids`
    search_trial: Ints  # (S,)
    failed: Bools  # (S,): whether the tool failed
    recorded: Bools  # (S,): whether the returned documents are known
    query: Ints  # (S,): code of the normalized query; -1 without a query
    search: Ints  # (D,)
    doc: Ints  # (D,): code of the document
    rank: Ints  # (D,): from 1
    grade: Floats  # (D,): NaN without a judgment
    is_judged: Bools  # (D,): whether it has a judgment; stays the same where grades are filled in
    label_question: Ints  # (L,): judged documents of the questions, returned or not
    label_grade: Floats  # (L,)
    opened: Bools  # (D,): whether the trial opened the document, in any step
    cited: Bools  # (D,): whether the answer cites the document
    hop_trial: Ints  # (K,): required pieces of evidence (hops) of each trial
    hop_search: Ints  # (K,): number of the search that first returned a document of the hop; 0 for none
    tokens: Floats  # (N,): NaN if not recorded, as cost in dollars, and latency in milliseconds
    cost: Floats
    latency_ms: Floats
    confidence: Floats  # (N,): stated probability that the answer is right; NaN if not stated
    right: Floats  # (N,): 1 or 0; NaN if unknown
    records_use: bool = True  # whether opened or cited documents are recorded in any trial

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def n_trials(self) -> int:
        """Number of trials."""
        return len(self.question)

    @cached_property
    def num_searches(self) -> Floats:
        """Number of searches of each trial: (N,)."""
        return np.bincount(self.search_trial, minlength=self.n_trials).astype(np.float64)

    @cached_property
    def number(self) -> Ints:
        """Number of each search within its trial, from 1: (S,)."""
        return positions(self.search_trial)

    @cached_property
    def trial(self) -> Ints:
        """Trial of each returned document: (D,)."""
        return self.search_trial[self.search]

    @cached_property
    def is_new(self) -> Bools:
        """Whether each returned document was not returned before in its trial: (D,)."""
        return first_of(self.trial * (self.doc.max(initial=0) + 1) + self.doc)

    @cached_property
    def repeated(self) -> Bools:
        """Whether an earlier search of the trial had the same query, or returned the same list: (S,).

        Searches that failed, and empty lists, are not compared.
        """
        is_first = np.ones(len(self.search_trial), dtype=np.bool_)
        # A hash of each list: a sum over documents of random numbers of document and rank, modulo 2**64.
        random = np.random.default_rng(0).integers(1, 2**63, (2, 1), dtype=np.uint64)
        mixed = (self.doc.astype(np.uint64) + random[0]) * random[1]
        mixed ^= mixed >> np.uint64(29)
        hashes = np.zeros(len(self.search_trial), dtype=np.uint64)
        np.add.at(hashes, self.search, mixed * (2 * self.rank.astype(np.uint64) + 1))
        has_documents = np.bincount(self.search, minlength=len(hashes)) > 0
        for keys, counts in ((self.query, self.query >= 0), (hashes, has_documents)):
            compared = np.flatnonzero(counts & ~self.failed)
            _, codes = np.unique(keys[compared], return_inverse=True)
            is_first[compared] &= first_of(self.search_trial[compared] * (len(codes) + 1) + codes)
        return ~is_first

    @cached_property
    def used(self) -> Bools:
        """Whether the trial opened or cited a document that the search returned: (S,)."""
        return np.bincount(self.search, self.opened | self.cited, minlength=len(self.search_trial)) > 0

    def relevant(self, rel: float) -> Bools:
        """Mark new documents with at least grade `rel`: (D,)."""
        return (self.grade >= rel) & self.is_new

    def new_relevant(self, rel: float) -> Floats:
        """Count the new relevant documents of each search: (S,)."""
        return np.bincount(self.search, self.relevant(rel), minlength=len(self.search_trial)).astype(np.float64)

    def relevant_so_far(self, rel: float) -> Floats:
        """Count the relevant documents that the trial returned up to and including each search: (S,)."""
        return running_total(self.new_relevant(rel), self.search_trial)

    def seen_relevant(self, rel: float, cutoff: int | None = None) -> Floats:
        """Count the relevant documents of each trial's first `cutoff` searches: (N,)."""
        return self.by_trial(self.new_relevant(rel) * self.within(cutoff))

    def num_relevant(self, rel: float) -> Floats:
        """Count the relevant documents of each trial's question, and those that were filled in: (N,)."""
        counts = np.bincount(self.label_question, self.label_grade >= rel, minlength=len(self)).astype(np.float64)
        filled = self.relevant(rel) & ~self.is_judged
        return counts[self.question] + np.bincount(self.trial, filled, minlength=self.n_trials)

    def within(self, cutoff: int | None) -> Bools:
        """Mark the first `cutoff` searches of each trial; all for None: (S,)."""
        return np.ones(len(self.number), dtype=np.bool_) if cutoff is None else self.number <= cutoff

    def by_trial(self, values: Floats | Bools) -> Floats:
        """Sum one value per search over each trial: (S,) to (N,)."""
        return np.bincount(self.search_trial, values, minlength=self.n_trials).astype(np.float64)

    def by_question(self, values: Floats) -> Floats:
        """Average one value per trial over each question, without NaN: (N,) to (T,); NaN if no trial has a value."""
        has_value = ~np.isnan(values)
        total = np.bincount(self.question[has_value], values[has_value], minlength=len(self))
        count = np.bincount(self.question[has_value], minlength=len(self))
        return np.divide(total, count, out=np.full(len(self), np.nan), where=count > 0)

    def rows_by_trial(self, question: Ints) -> tuple[Ints, Ints]:
        """Return the trial and the row of each row of a table about questions, repeated for each trial.

        Parameters
        ----------
        question
            (L,): question of each row, in ascending order.
        """
        starts = np.searchsorted(question, np.arange(len(self) + 1))
        trial = np.repeat(np.arange(self.n_trials), np.diff(starts)[self.question])
        return trial, starts[self.question][trial] + positions(trial) - 1

    def fill_unjudged(self, grade: float) -> JudgedTrajectories:
        """Return trials in which all unjudged documents have this grade."""
        filled = replace(self, grade=np.where(self.is_judged, self.grade, grade))
        # values that do not depend on grades are not computed again
        vars(filled).update({name: getattr(self, name) for name in ("number", "trial", "is_new")})
        return filled

    @property
    def highest(self) -> float:
        """Highest grade that an unjudged document can have."""
        return max(1.0, float(self.label_grade.max(initial=1.0)))


def positions(group: Ints) -> Ints:
    """Return the position of each element within its group, from 1; groups are contiguous.

    >>> positions(np.array([0, 0, 2, 2, 2])).tolist()
    [1, 2, 1, 2, 3]
    """
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(np.append(starts, len(group)))
    return np.arange(1, len(group) + 1) - np.repeat(starts, lengths)


def first_of(keys: Ints) -> Bools:
    """Mark the first element with each key.

    >>> first_of(np.array([5, 3, 5])).tolist()
    [True, True, False]
    """
    order = np.argsort(keys, kind="stable")
    is_first, in_order = np.ones(len(keys), dtype=np.bool_), keys[order]
    is_first[order[1:]] = in_order[1:] != in_order[:-1]
    return is_first


def running_total(values: Floats, group: Ints) -> Floats:
    """Sum the values of each contiguous group up to and including each element.

    >>> running_total(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1])).tolist()
    [1.0, 3.0, 4.0]
    """
    total = np.cumsum(values)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(np.append(starts, len(group)))
    return total - np.repeat((total - values)[starts], lengths)


def judge_trial(
    searches: Sequence[Sequence[str] | None] = (),
    grades: Mapping[str, float] | None = None,
    *,
    queries: Sequence[str] = (),
    failed: Sequence[int] = (),
    opened: Sequence[str] = (),
    cited: Sequence[str] = (),
    hops: Sequence[Sequence[str]] = (),
    tokens: float = np.nan,
    cost: float = np.nan,
    right: bool | Sequence[bool | None] | None = None,
    confidence: float | Sequence[float] = np.nan,
) -> JudgedTrajectories:
    """Build the judged trials of one question by hand.

    Parameters
    ----------
    searches
        Documents that each search returned, in order; None: not recorded.
    grades
        Judgments of documents.
    queries
        Query of each search. Default: no queries.
    failed
        Numbers of the searches that failed, from 1.
    opened, cited
        Documents that the trial opened, and that the answer cites.
    hops
        Documents of each required piece of evidence.
    tokens, cost
        Effort of the trial.
    right, confidence
        Whether the answer is right, and its stated confidence. A list: one trial for each value, with equal searches.
    """
    rights: list[Any] = list(right) if isinstance(right, Sequence) else [right]
    n, count, labels = len(rights), len(searches), dict(grades or {})
    rows = [(i, rank, doc) for i, docs in enumerate(searches) for rank, doc in enumerate(docs or (), 1)]
    firsts = [min((i + 1 for i, _, doc in rows if doc in hop), default=0) for hop in hops]
    docs = [doc for _, _, doc in rows] * n
    grade = np.array([labels.get(doc, np.nan) for doc in docs], dtype=np.float64)
    return JudgedTrajectories(
        query_ids=("question",),
        name="agent",
        question=np.zeros(n, dtype=np.int64),
        search_trial=np.repeat(np.arange(n), count),
        failed=np.tile([i + 1 in failed for i in range(count)], n).astype(np.bool_),
        recorded=np.tile([docs is not None for docs in searches], n).astype(np.bool_),
        query=np.tile(np.unique(queries, return_inverse=True)[1] if queries else [-1] * count, n).astype(np.int64),
        search=np.array([i + t * count for t in range(n) for i, _, _ in rows], dtype=np.int64),
        doc=np.unique(docs, return_inverse=True)[1].astype(np.int64),
        rank=np.array([rank for _, rank, _ in rows] * n, dtype=np.int64),
        grade=grade,
        is_judged=~np.isnan(grade),
        label_question=np.zeros(len(labels), dtype=np.int64),
        label_grade=np.array(list(labels.values()), dtype=np.float64),
        opened=np.isin(docs, opened),
        cited=np.isin(docs, cited),
        hop_trial=np.repeat(np.arange(n), len(firsts)),
        hop_search=np.tile(np.array(firsts, dtype=np.int64), n),
        tokens=np.full(n, tokens),
        cost=np.full(n, cost),
        latency_ms=np.full(n, np.nan),
        confidence=np.broadcast_to(np.asarray(confidence, dtype=np.float64), n),
        right=np.array([np.nan if value is None else float(value) for value in rights]),
        records_use=bool(opened or cited),
    )
