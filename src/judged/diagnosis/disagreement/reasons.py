"""Reasons why two measures order two lists differently: documents that affect one measure but not the other.

To find out which documents affect a measure, it scores lists with some of the documents only. This module repeats no
formula of a measure.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from judged.results.decimals import counted, decimal
from judged.results.types import cached_property
from judged.scoring.judging.judged import place_hits
from judged.stats.inputs import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

_ABOVE_ZERO = math.ulp(0.0)
_LOW_RANK = 10  # compared with rank 1 to find out whether a measure depends on ranks


@dataclass(frozen=True)
class Reason:
    """Property of two judged lists that one measure rewards, for the system that this measure prefers."""

    # `below the cutoff`: one list has more relevant documents at ranks that only the deeper measure counts
    # `across the cutoff`: documents of both lists are above the smaller cutoff in one list, below it in the other
    # `first relevant`: one measure depends only on the first relevant document
    # `grades`: the lists differ in grades, which the measures weight differently
    # `count or rank`: one list has more relevant documents, the other has them at higher ranks
    # `order in the top k`: the same documents are at other ranks, which the measures weight differently
    # `unjudged documents`: one list has more unjudged documents above the cutoff of one measure
    kind: str
    measure: str  # the measure that depends on it
    system: str  # the system that it favors
    documents: tuple[str, ...]
    text: str


@dataclass(frozen=True, eq=False)
class ListScorer:
    """Measure, and its scores of two lists."""

    measure: Measure
    lists: tuple[Judged, Judged]

    @cached_property
    def name(self) -> str:
        """Name of the measure."""
        return str(self.measure)

    @cached_property
    def depth(self) -> float:
        """Cutoff of the measure; infinite without one."""
        cutoff = getattr(self.measure, "cutoff", None)
        return cutoff if isinstance(cutoff, int) else math.inf

    @cached_property
    def rel(self) -> float:
        """Lowest relevant grade."""
        rel = getattr(self.measure, "rel", None)
        return max(float(rel), _ABOVE_ZERO) if isinstance(rel, (int, float)) else _ABOVE_ZERO

    @cached_property
    def judged_only(self) -> bool:
        """Whether the measure removes unjudged documents."""
        return bool(getattr(self.measure, "judged_only", False))

    @cached_property
    def preference(self) -> int:
        """1 if the measure prefers the second list, -1 if the first, 0 if neither."""
        first, second = (float(self.measure(judged)[0]) for judged in self.lists)
        return self.sign_of_gain(second - first)

    def sign_of_gain(self, difference: float) -> int:
        """Return 1 if a difference favors the second list, -1 if the first, 0 if neither."""
        if math.isnan(difference) or abs(difference) <= ROUNDING:
            return 0
        return 1 if (difference > 0) != (self.measure.properties.higher_is_better is False) else -1


@dataclass(frozen=True)
class JudgedList:
    """Judged list of one topic."""

    judged: Judged
    name: str
    rel: float  # lowest relevant grade

    @cached_property
    def relevant(self) -> dict[str, int]:
        """Rank of each relevant document, in rank order."""
        return {doc: rank for doc, (rank, grade) in self.judged_documents.items() if grade >= self.rel}

    @cached_property
    def judged_documents(self) -> dict[str, tuple[int, float]]:
        """Rank and grade of each judged document, in rank order."""
        pairs = zip(self.judged.rank.tolist(), self.judged.grade.tolist(), strict=True)
        return dict(zip(self.judged.doc, pairs, strict=True))

    def within(self, depth: float, after: float = 0, rel: float = 0) -> dict[str, int]:
        """Return the relevant documents of at least grade `rel` at ranks after `after`, up to `depth`."""
        return {doc: rank for doc, rank in self.relevant.items() if after < rank <= depth and self.grade(doc) >= rel}

    def grade(self, doc: str) -> float:
        """Return the grade of a judged document."""
        return self.judged_documents[doc][1]

    def unjudged(self, depth: float) -> tuple[str, ...]:
        """Return the unjudged documents up to a rank."""
        all_documents = self.judged.returned_docs
        doc_ids = all_documents.doc.take(np.flatnonzero(all_documents.rank <= depth)).to_pylist()
        return tuple(doc for doc in doc_ids if doc not in self.judged_documents)

    def score(self, measure: Measure, docs: Sequence[str], ranks: Sequence[int]) -> float:
        """Score a list that has only these documents, at these ranks."""
        rows = {doc: i for i, doc in enumerate(self.judged_documents)}
        selected = np.array([rows[doc] for doc in docs], dtype=np.int64)
        topics = np.zeros(len(selected), dtype=np.int64)
        score = place_hits(self.judged, np.zeros(1, dtype=np.int64), topics, selected, np.array(ranks, dtype=np.int64))
        return float(measure(score)[0])


@dataclass(frozen=True)
class ListPair:
    """Two lists and two measures."""

    lists: tuple[JudgedList, JudgedList]
    scorers: tuple[ListScorer, ListScorer]

    @property
    def depth(self) -> float:
        """Depth that both measures depend on."""
        return min(scorer.depth for scorer in self.scorers)

    @property
    def depth_text(self) -> str:
        """Depth as text."""
        return "In the whole lists" if math.isinf(self.depth) else f"In the top {self.depth}"

    @property
    def scorer_orders(self) -> tuple[tuple[ListScorer, ListScorer], tuple[ListScorer, ListScorer]]:
        """Both orders of the two measures."""
        first, second = self.scorers
        return (first, second), (second, first)

    def winner_and_loser(self, side: int) -> tuple[JudgedList, JudgedList]:
        """Return the list on a side, then the other one."""
        return (self.lists[1], self.lists[0]) if side > 0 else self.lists

    def longer_list(self, select: Callable[[JudgedList, JudgedList], list[str]]) -> tuple[int, list[str], list[str]]:
        """Return the side of the list with more selected documents (1: second), its documents, and the other's."""
        first, second = select(*self.lists), select(*self.lists[::-1])
        side = int(np.sign(len(second) - len(first)))
        return (side, second, first) if side > 0 else (side, first, second)

    def score_of_ranks(self, scorer: ListScorer, *ranks: int) -> float:
        """Score a list that has relevant documents at these ranks only; NaN without such a document."""
        for judged in self.lists:
            if docs := list(judged.within(math.inf, rel=scorer.rel))[:1]:
                return judged.score(scorer.measure, docs * len(ranks), ranks)
        return math.nan

    def depends_on_rank(self, scorer: ListScorer) -> bool:
        """Return whether the measure distinguishes a high rank from a low one."""
        low_rank = int(min(scorer.depth, _LOW_RANK))
        return abs(self.score_of_ranks(scorer, 1) - self.score_of_ranks(scorer, low_rank)) > ROUNDING

    def counts_first_only(self, scorer: ListScorer) -> bool:
        """Return whether the measure depends only on the first relevant document."""
        return scorer.depth >= 2 and abs(self.score_of_ranks(scorer, 1, 2) - self.score_of_ranks(scorer, 1)) <= ROUNDING

    def depends_on(self, scorer: ListScorer, judged: JudgedList, docs: Sequence[str]) -> bool:
        """Return whether the score changes without these documents."""
        others = {doc: rank for doc, rank in judged.relevant.items() if doc not in docs}
        score = judged.score(scorer.measure, list(judged.relevant), list(judged.relevant.values()))
        return abs(score - judged.score(scorer.measure, list(others), list(others.values()))) > ROUNDING


def reasons(lists: tuple[Judged, Judged], measures: tuple[Measure, Measure]) -> tuple[Reason, ...]:
    """Find the documents in two judged lists that explain the preferences of two measures.

    >>> from judged import judge
    >>> from judged.scoring.measures import parse
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0}}
    >>> ranked = [{"q": {doc: -i for i, doc in enumerate(docs)}} for docs in (["a", "x"], ["x", "a", "y", "b", "c"])]
    >>> lists = tuple(judge(qrels, run) for run in ranked)
    >>> [(reason.kind, reason.documents) for reason in reasons(lists, (parse("P@1"), parse("R@5")))]
    [('below the cutoff', ('b', 'c')), ('across the cutoff', ('a',))]
    """
    # A reason must support the preference of its measure, and the other measure must ignore it or weight it
    # differently. Several reasons may apply, or none.
    scorers = ListScorer(measures[0], lists), ListScorer(measures[1], lists)
    rel = min(scorer.rel for scorer in scorers)
    names = [judged.run.name for judged in lists]
    names = names if names[0] != names[1] else ["the first run", "the second run"]
    condense = all(scorer.judged_only for scorer in scorers)
    first, second = (
        JudgedList(judged.condensed if condense else judged, name, rel)
        for judged, name in zip(lists, names, strict=True)
    )
    rules = (_below_cutoff, _across_cutoff, _first_relevant, _grades, _thresholds, _count_or_rank, _order, _unjudged)
    return tuple(chain.from_iterable(rule(ListPair((first, second), scorers)) for rule in rules))


# Each rule below yields at most one reason. `side` is 1 for the second list and -1 for the first, as in `preference`.


def _below_cutoff(pair: ListPair) -> Iterator[Reason]:
    shallow, deep = sorted(pair.scorers, key=lambda scorer: scorer.depth)
    side, docs, others = pair.longer_list(
        lambda judged, other: [
            doc for doc in judged.within(deep.depth, shallow.depth, deep.rel) if doc not in other.within(deep.depth)
        ]
    )
    winner, _ = pair.winner_and_loser(side)
    if shallow.depth < deep.depth and side and side == deep.preference and pair.depends_on(deep, winner, docs):
        count = counted(len(docs) - len(others), "more relevant document")
        text = f"{winner.name} has {count} at ranks deeper than {shallow.depth}: {deep.name} counts these"
        text += f" documents, but {shallow.name} does not"
        yield Reason("below the cutoff", deep.name, winner.name, tuple(docs), text)


def _across_cutoff(pair: ListPair) -> Iterator[Reason]:
    shallow, deep = sorted(pair.scorers, key=lambda scorer: scorer.depth)
    in_both = pair.lists[0].within(deep.depth).keys() & pair.lists[1].within(deep.depth).keys()
    side, docs, opposite_docs = pair.longer_list(
        lambda judged, other: [
            doc
            for doc in judged.within(shallow.depth, 0, shallow.rel)
            if doc in in_both and doc not in other.within(shallow.depth)
        ]
    )
    winner, loser = pair.winner_and_loser(side)
    is_reason = shallow.depth < deep.depth and side and shallow.preference == side != deep.preference
    if not is_reason or not pair.depends_on(shallow, winner, docs):
        return
    if pair.counts_first_only(deep):
        explanation = "depends only on the first relevant document"
    elif not pair.depends_on(deep, winner, docs):
        explanation = "does not depend on these documents"
    else:
        explanation = "depends on their ranks" if pair.depends_on_rank(deep) else "counts them equally"
    opposite = (
        f", and {loser.name} has {counted(len(opposite_docs), 'relevant document')} in the top {shallow.depth} that"
        f" {winner.name} ranks lower"
        if opposite_docs
        else ""
    )
    text = (
        f"{winner.name} has {counted(len(docs), 'relevant document')} in the top {shallow.depth} that {loser.name}"
        f" ranks lower{opposite}. {shallow.name} counts only documents in the top {shallow.depth}, but {deep.name}"
        f" {explanation}"
    )
    yield Reason("across the cutoff", shallow.name, winner.name, tuple(docs), text)


def _first_relevant(pair: ListPair) -> Iterator[Reason]:
    for scorer, other in pair.scorer_orders:
        winner, loser = pair.winner_and_loser(scorer.preference)
        (doc, rank), (_, loser_rank) = (
            next(iter(judged.within(scorer.depth, 0, scorer.rel).items()), ("", math.inf)) for judged in (winner, loser)
        )
        if scorer.preference == 0 or not pair.counts_first_only(scorer) or rank >= loser_rank:
            continue
        kind = "relevant document" if scorer.rel <= 1 else f"document of grade {scorer.rel:g} or better"
        loser_text = f"at rank {loser_rank} of {loser.name}"
        if math.isinf(loser_rank):
            loser_text = f"{loser.name} has no {kind}" + (
                "" if math.isinf(scorer.depth) else f" in the top {scorer.depth}"
            )
        text = (
            f"The first {kind} is at rank {rank} of {winner.name}, and {loser_text}: {scorer.name} depends only on the"
            f" first {kind}"
        )
        favored, other_list = pair.winner_and_loser(other.preference)
        other_ranks = other_list.within(other.depth)
        favored_ranks = favored.within(other.depth, 0, other.rel) if other.preference else {}
        higher = [key for key in favored_ranks if key != doc and favored_ranks[key] < other_ranks.get(key, math.inf)]
        if higher and pair.depends_on(other, favored, higher):
            text += (
                f"; {other.name} also counts {counted(len(higher), 'other document')} that {favored.name} ranks higher"
            )
        yield Reason("first relevant", scorer.name, winner.name, tuple(dict.fromkeys((doc, *higher))), text)
        return


def _grades(pair: ListPair) -> Iterator[Reason]:
    """Compare grades: one list has more documents, the other has better ones."""
    scorer, other = pair.scorers
    is_graded = [scorer.measure.properties.graded for scorer in pair.scorers]
    grading, counting = (scorer, other) if is_graded[0] else (other, scorer)
    gains = [getattr(scorer.measure, "gain", 0) for scorer in pair.scorers]
    same_weights = is_graded[0] == is_graded[1] and gains[0] == gains[1]
    if same_weights or grading.preference in {0, counting.preference} or pair.counts_first_only(counting):
        return
    relevant = [judged.within(pair.depth) for judged in pair.lists]
    first, second = (Counter(map(judged.grade, docs)) for judged, docs in zip(pair.lists, relevant, strict=True))
    excess = {grade: second[grade] - first[grade] for grade in sorted(first | second)}
    second_more, first_more = (
        [
            f"{counted(abs(count), 'more document')} of grade {grade:g}"
            for grade, count in excess.items()
            if count * sign > 0
        ]
        for sign in (1, -1)
    )
    if second_more and first_more:
        counting_text = "weights grades differently" if all(is_graded) else "uses only binary relevance"
        text = (
            f"{pair.depth_text}, {pair.lists[1].name} has {' and '.join(second_more)}, and"
            f" {pair.lists[0].name} has {' and '.join(first_more)}: {grading.name} weights grades, but"
            f" {counting.name} {counting_text}"
        )
        exclusive = [doc for docs, other in (relevant, relevant[::-1]) for doc in docs if doc not in other]
        yield Reason("grades", grading.name, pair.winner_and_loser(grading.preference)[0].name, tuple(exclusive), text)


def _thresholds(pair: ListPair) -> Iterator[Reason]:
    """Compare thresholds: one measure counts grades that are not relevant for the other."""
    lenient, strict = sorted(pair.scorers, key=lambda scorer: scorer.rel)
    side, docs, others = pair.longer_list(
        lambda judged, _: [doc for doc in judged.within(lenient.depth) if judged.grade(doc) < strict.rel]
    )
    if lenient.rel < strict.rel and side and lenient.preference == side != strict.preference:
        winner, _ = pair.winner_and_loser(side)
        text = (
            f"{winner.name} has {counted(len(docs) - len(others), 'more document')} of a grade below {strict.rel:g}:"
            f" {lenient.name} counts documents of these grades, but {strict.name} does not"
        )
        yield Reason("grades", lenient.name, winner.name, tuple(docs), text)


def _count_or_rank(pair: ListPair) -> Iterator[Reason]:
    for ranking, counting in pair.scorer_orders:
        side, docs, others = pair.longer_list(lambda judged, _, rel=counting.rel: [*judged.within(pair.depth, 0, rel)])
        is_reason = side and others and counting.preference == side == -ranking.preference
        if not is_reason or pair.depends_on_rank(counting) or pair.counts_first_only(ranking):
            continue
        if not pair.depends_on_rank(ranking):
            continue
        longer, shorter = pair.winner_and_loser(side)
        late_rank, early_rank = (
            next(iter(judged.within(pair.depth, 0, ranking.rel).values()), math.inf) for judged in (longer, shorter)
        )
        if early_rank < late_rank < math.inf:
            text = (
                f"{pair.depth_text}, {longer.name} has {counted(len(docs) - len(others), 'more relevant document')},"
                f" but the first relevant document is at rank {early_rank} of {shorter.name}, and at rank {late_rank}"
                f" of {longer.name}. {counting.name} counts relevant documents, but {ranking.name} depends on"
                " their ranks"
            )
            yield Reason("count or rank", ranking.name, shorter.name, tuple(shorter.within(pair.depth)), text)
            return


def _order(pair: ListPair) -> Iterator[Reason]:
    """Compare the scores of both measures if the common documents are moved to their ranks in the second list."""
    ranks_in_first, ranks_in_second = (judged.within(pair.depth) for judged in pair.lists)
    common = [doc for doc in ranks_in_first if doc in ranks_in_second]
    moved = [doc for doc in common if ranks_in_first[doc] != ranks_in_second[doc]]
    if not moved:
        return
    gains: dict[ListScorer, float] = {}
    reordered = sorted(common, key=ranks_in_second.__getitem__)
    for scorer in pair.scorers:
        before = pair.lists[0].score(scorer.measure, common, [ranks_in_first[doc] for doc in common])
        after = pair.lists[0].score(scorer.measure, reordered, [ranks_in_second[doc] for doc in reordered])
        gains[scorer] = after - before
    for scorer, other in pair.scorer_orders:
        gain, other_gain, side = gains[scorer], gains[other], scorer.preference
        if side in {0, other.sign_of_gain(other_gain), other.preference} or pair.counts_first_only(scorer):
            continue
        if scorer.sign_of_gain(gain) != side:
            continue
        other_text = f"by {decimal(other_gain, 3, '+')}" if pair.depends_on_rank(other) else "not at all"
        text = (
            f"{pair.depth_text}, {pair.lists[1].name} ranks {counted(len(moved), 'shared relevant document')}"
            f" differently: this changes {scorer.name} by {decimal(gain, 3, '+')}, and {other.name} {other_text}"
        )
        winner, _ = pair.winner_and_loser(side)
        yield Reason("order in the top k", scorer.name, winner.name, tuple(moved), text)
        return


def _unjudged(pair: ListPair) -> Iterator[Reason]:
    for scorer, other in pair.scorer_orders:
        if scorer.preference in {0, other.preference} or scorer.judged_only or math.isinf(scorer.depth):
            continue
        winner, loser = pair.winner_and_loser(scorer.preference)
        loser_unjudged, winner_unjudged = loser.unjudged(scorer.depth), winner.unjudged(scorer.depth)
        if len(loser_unjudged) > len(winner_unjudged) and (scorer.depth != other.depth or other.judged_only):
            text = (
                f"In the top {scorer.depth}, {loser.name} has {counted(len(loser_unjudged), 'unjudged document')}, and"
                f" {winner.name} has {len(winner_unjudged)}. {scorer.name} counts unjudged documents as not relevant,"
                " although some may be relevant"
            )
            yield Reason("unjudged documents", scorer.name, winner.name, loser_unjudged, text)
            return
