"""Two runs as a contest over labels: how far the difference of their means can go, whatever the open ones are graded.

The score of a topic is a sum of gains weighed by rank, or such a sum as a share of the ideal's. So the difference is a
sum too, in which each document weighs what it does in the first run minus what it does in the second, and a document
that both return has one grade in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError, MeasureError
from judged.scoring.judging import judge
from judged.scoring.measures.dcg import CG, DCG
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.ndcg import NCG, nDCG
from judged.scoring.measures.precision import P
from judged.scoring.measures.rbp import RBP
from judged.scoring.uncertainty.ratio import Parts
from judged.scoring.uncertainty.unjudged import levels_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Bools, Floats, Ints
    from judged.data.qrels import Qrels
    from judged.scoring.judging import Judged, TopicPolicy
    from judged.scoring.measures.base import Measure

_SUMS, _RATIOS = (P, CG, DCG, RBP), {nDCG: DCG, NCG: CG}
_ROUNDING = 1e-12
_STRENGTH = 5.0  # how many labels outweigh what is believed of a document without them


@dataclass(frozen=True, eq=False)
class Contest:
    """The documents that either run has up to the cutoff, and what a label of each could do."""

    measure: Measure
    topics: tuple[str, ...]  # T
    docs: tuple[tuple[str, ...], ...]  # of each topic, at most W
    # (T, W) each; beyond W there may be columns of documents outside both, which nobody labels and which weigh nothing
    exists: Bools
    weight: Floats  # in the first run minus in the second
    ranks: Ints  # (2, T, W): in each run; 0 where it is not among the first
    level: Ints  # the place of its grade in `levels`; -1 without one
    levels: Floats  # (S,): the grades that there may be, rising from 0
    worth: Floats  # (S,): what each gains, from 0 to 1
    reach: Ints  # (T, S - 1): labels outside both with at least each grade above 0
    ideal: Floats  # (K + 1,): the weights of the first 0, 1, ... ranks, added up; empty for a sum

    def bounds(self, topic: Ints, level: Ints) -> Floats:
        """Give the least and the greatest difference of topics, (V,), with labels, (V, W): (2, V)."""
        # The greatest difference gives better grades to documents with more weight, as the ideal does not see which
        # has which; so the search for the greatest ratio finds it, with weights below 0 as well.
        exists, weight = self.exists[topic], self.weight[topic]
        known = exists & (level >= 0)
        is_open = exists & (level < 0)
        count, steps = is_open.sum(axis=1), np.diff(self.worth)
        above = self.reach[topic] + (known[:, :, np.newaxis] & (level[:, :, np.newaxis] >= self._places)).sum(axis=1)
        if len(self.ideal):
            places = above.T[:, :, np.newaxis] + np.arange(level.shape[1] + 1)
            ideal = steps[:, np.newaxis, np.newaxis] * self.ideal[np.minimum(places, len(self.ideal) - 1)]
        else:
            ideal = np.zeros((len(steps), len(topic), level.shape[1] + 1))
        gained = (np.where(known, self.worth[level], 0.0) * weight).sum(axis=1)
        fixed = np.full(len(topic), 0.0 if len(self.ideal) else 1.0)
        ends = np.empty((2, len(topic)))
        for end, sign in ((0, -1.0), (1, 1.0)):
            ordered = -np.sort(np.where(is_open, -sign * weight, np.inf), axis=1)
            summed = np.zeros((len(topic), level.shape[1] + 1))
            np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1, out=summed[:, 1:])
            parts = Parts(count, count, steps, summed, ideal, (sign * gained, fixed))
            rows, nothing = np.arange(len(topic)), np.zeros((len(topic), len(steps)), dtype=np.int64)
            reached = np.maximum(parts.reached(rows, parts.greatest()), parts.reached(rows, nothing))
            ends[end] = sign * reached
        return ends

    @property
    def _places(self) -> Ints:
        return np.arange(1, len(self.levels))

    @property
    def open(self) -> Bools:
        """Mark what may be labelled and is not: (T, W)."""
        return (self.ranks > 0).any(axis=0) & (self.level < 0)

    def steps(self, topics: Ints, level: Ints) -> Floats:
        """Give what each grade of each open document adds to the least, and takes from the greatest: (2, T, W, S)."""
        # Of these topics, (T,); `level`: (T, W), what is known of them.
        at, doc = np.nonzero((self.ranks[:, topics] > 0).any(axis=0) & (level < 0))
        size = len(self.levels)
        tried = np.repeat(level[at], size, axis=0)
        tried[np.arange(len(tried)), np.repeat(doc, size)] = np.tile(np.arange(size), len(at))
        moved = np.zeros((2, *level.shape, size))
        now = self.bounds(topics, level)
        then = self.bounds(np.repeat(topics[at], size), tried).reshape(2, len(at), size)
        moved[0, at, doc] = then[0] - now[0, at, np.newaxis]
        moved[1, at, doc] = now[1, at, np.newaxis] - then[1]
        return moved

    def chances(self, level: Ints) -> Floats:
        """Give the probability of each grade of each document, from ranks and from what is known: (T, W, S)."""
        # Half of all documents are believed to have grade 0 as long as nothing is known. Grades are counted by how
        # early the document stands, and in how many of the two runs; then by topic.
        listed = (self.ranks > 0).any(axis=0)
        best = np.where(self.ranks > 0, self.ranks, np.iinfo(np.int64).max).min(axis=0)
        stratum = np.searchsorted((1, 3, 6, 11), best) * 2 + (self.ranks > 0).all(axis=0)
        known, size = listed & (level >= 0), len(self.levels)
        at, doc = np.nonzero(known)
        usual = np.append(0.5, np.full(size - 1, 0.5 / (size - 1)))
        counts = np.zeros((stratum.max() + 1, size))
        np.add.at(counts, (stratum[at, doc], level[at, doc]), 1.0)
        usual = _shrunk(counts.sum(axis=0), usual)
        of_stratum = _shrunk(counts, usual)
        counts = np.zeros((len(level), size))
        np.add.at(counts, (at, level[at, doc]), 1.0)
        return _shrunk(counts[:, np.newaxis, :], of_stratum[stratum])

    def leader(self, level: Ints, chances: Floats) -> int:
        """Tell which run is expected to be better: 0 the first, 1 the second."""
        size, listed = len(self.worth), (self.ranks > 0).any(axis=0)
        known = np.eye(size)[level][..., :] * (level >= 0)[..., np.newaxis] + chances * (level < 0)[..., np.newaxis]
        gain = (known @ self.worth) * listed
        top = -np.sort(-gain, axis=1)[:, : len(self.ideal) - 1] if len(self.ideal) else gain[:, :0]
        best = (top * np.diff(self.ideal)[: top.shape[1]]).sum(axis=1) if len(self.ideal) else np.ones(len(gain))
        return int(((gain * self.weight).sum(axis=1) / np.maximum(best, _ROUNDING)).sum() < 0)

    def priority(self, level: Ints, moved: Floats) -> Floats:
        """Give by how much a label is expected to move the end that decides, in the mean: (T, W)."""
        chances = self.chances(level)
        return (chances * moved[self.leader(level, chances)]).sum(axis=2) / len(self.topics)


def _shrunk(counts: Floats, believed: Floats) -> Floats:
    return (counts + _STRENGTH * believed) / (counts.sum(axis=-1, keepdims=True) + _STRENGTH)


def winner(ends: Floats) -> int | None:
    """Say who is better whatever the open labels are: 0 the first, 1 the second; None as long as it is open."""
    low, high = ends.mean(axis=1)
    return 0 if low > _ROUNDING else 1 if high < -_ROUNDING else None


def contest(
    qrels: Qrels,
    first: Any,
    second: Any,
    measure: str | Measure,
    *,
    highest: float | None = None,
    topics: TopicPolicy = "qrels",
    outside: int = 0,
    policies: Mapping[str, Any] | None = None,
) -> Contest:
    """Lay two runs next to each other, with `outside` further documents of each topic that nobody labels."""
    measure, cutoff = _summed(measure)
    how: dict[str, Any] = {"depth": cutoff, **(policies or {})}
    lists = [judge(qrels, run, **how) for run in (first, second)]
    names = _topics(qrels, lists, topics)
    levels = levels_of(lists[0], measure, highest)
    if (most := float(qrels.grades.max())) > levels[-1]:
        raise InputError(f"the grade {most:g} is above the highest, {levels[-1]:g}", fix="give a higher one")
    everything = (
        judge({name: {"": 0} for name in names}, first, **how),
        judge({name: {"": 0} for name in names}, second, **how),
    )
    docs: list[dict[str, None]] = [{} for _ in names]
    for one in everything:
        for topic, doc in zip(one.everything.topic.tolist(), one.everything.doc.to_pylist(), strict=True):
            docs[topic].setdefault(doc)
    width = max(1, *map(len, docs)) + outside
    weights, worth = _weights(measure, cutoff, levels)
    ranks = np.zeros((2, len(names), width), dtype=np.int64)
    places = [{doc: at for at, doc in enumerate(found)} for found in docs]
    for run, one in enumerate(everything):
        rows = one.everything
        for topic, rank, doc in zip(rows.topic.tolist(), rows.rank.tolist(), rows.doc.to_pylist(), strict=True):
            ranks[run, topic, places[topic][doc]] = rank
    level, reach = np.full((len(names), width), -1), np.zeros((len(names), len(levels) - 1), dtype=np.int64)
    codes = {name: at for at, name in enumerate(names)}
    index = qrels.index
    grade = np.searchsorted(levels, np.maximum(index.grade, 0.0))
    for topic, doc, place in zip(index.topic.tolist(), index.row_names, grade.tolist(), strict=True):
        if (row := codes.get(index.topics[topic])) is None:
            continue
        if (column := places[row].get(doc)) is None:
            reach[row, :place] += 1
        else:
            level[row, column] = place
    exists: Bools = np.any(ranks > 0, axis=0)
    exists[:, width - outside :] = True
    ideal = np.cumsum(weights) if type(measure) in _RATIOS else np.zeros(0)
    weight = weights[ranks[0]] - weights[ranks[1]]
    return Contest(
        measure, tuple(names), tuple(map(tuple, docs)), exists, weight, ranks, level, levels, worth, reach, ideal
    )


def _topics(qrels: Qrels, lists: list[Judged], topics: TopicPolicy) -> list[str]:
    """Name the topics that count."""
    names = list(qrels.topics)
    if topics != "qrels":
        runs = set(lists[0].extra).union(lists[1].extra, *(np.array(names)[one.present].tolist() for one in lists))
        names = sorted(runs if topics == "run" else runs & set(names))
    if not names:
        raise InputError("no topic is left", fix="use other topics, or runs of these")
    return names


def _summed(measure: str | Measure) -> tuple[Measure, int]:
    """Refuse measures that are no sums over documents up to a cutoff, nor such sums as a share of the ideal's."""
    measure = parse(measure)
    cutoff: int | None = getattr(measure, "cutoff", None)
    refused = type(measure) not in (*_SUMS, *_RATIOS) or measure.judged_only  # type: ignore[attr-defined]
    if refused or getattr(measure, "undefined", 0.0) != 0.0 or not isinstance(getattr(measure, "gain", ""), str):
        raise MeasureError(f"nothing is known of what labels decide by {measure}. Fix: use one such as nDCG@10, P@10")
    if cutoff is None:
        raise MeasureError(f"{measure} looks at every rank. Fix: give it a cutoff, such as nDCG@10")
    return measure, cutoff


def _weights(measure: Measure, cutoff: int, levels: Floats) -> tuple[Floats, Floats]:
    """Ask the measure what each rank weighs, (K + 1,) with 0 for none, and what each grade gains, (S,)."""
    if kind := _RATIOS.get(type(measure)):  # type: ignore[arg-type]
        shared = ("cutoff", "gain", *(("discount", "base") if kind is DCG else ()))
        measure = kind(**{name: getattr(measure, name) for name in shared})
    cells = [(rank, levels[-1]) for rank in range(1, cutoff + 1)] + [(1, float(grade)) for grade in levels]
    qrels = {f"{at:09d}": {"d": grade} for at, (_, grade) in enumerate(cells)}
    run = {f"{at:09d}": [*map(str, range(1, rank)), "d"] for at, (rank, _) in enumerate(cells)}
    scores = measure(judge(qrels, run))
    return np.append(0.0, scores[:cutoff]), scores[cutoff:] / (scores[0] or 1.0)
