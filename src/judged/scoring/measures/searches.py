"""Measures of the searches of an agent: retrieved evidence, and wasted searches."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from judged.scoring.judging.trajectories import positions
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.base import Properties, TrajectoryMeasure, param
from judged.scoring.measures.gain import GAIN, discounts, gains
from judged.scoring.measures.parameters import REL, Parameter, boolean, choice, integer
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.trajectories import JudgedTrajectories
    from judged.scoring.measures.gain import Gain, GainAttribute

SEARCHES = Parameter("Only the first k searches of each trial count.", None, integer(1))
SHARE = Parameter("Whether the score is the share of the searches instead of their number.", False, boolean)
_SHARE = Properties(reads="trajectories", needs_ranking=False)
_COUNT = replace(_SHARE, high=None, higher_is_better=False, monotone=False)
_COUNT_OF_ANY = replace(_COUNT, depends_on_relevance=False, monotone=True)
_DEFINED = "Järvelin et al. 2008, for sessions of searches; the definition is ours"
search_measure = partial(measure, category="agent searches", cite=_DEFINED)


@search_measure(
    cite="Chen et al. 2025 (BrowseComp-Plus), for all searches",
    use="You want to know whether the searches of an agent found the evidence, whatever the agent did with it.",
    misleads="A document counts even if the agent never opened it.",
    properties=_SHARE,
)
class SeenR(TrajectoryMeasure):
    r"""Seen recall: the share of the relevant documents that the first k searches returned.

    .. math:: \mathrm{SeenR}@k = \frac{|\mathrm{seen}(k) \cap \mathrm{relevant}|}{|\mathrm{relevant}|}

    Questions without a relevant document are excluded.

    Examples
    --------
    >>> SeenR().of_trial([["a", "x"], ["a", "b"]], {"a": 1, "b": 1})
    1.0
    >>> SeenR(cutoff=1).of_trial([["a", "x"], ["a", "b"]], {"a": 1, "b": 1})
    0.5
    """

    cutoff: int | None = param(SEARCHES)
    rel: float = param(REL)

    @property
    def properties(self) -> Properties:
        """Properties: with a cutoff, a relevant document of a later search lowers the score of the first k."""
        return replace(super().properties, monotone=self.cutoff is None)

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Divide the relevant documents of the first k searches by all relevant documents."""
        return divide(judged.seen_relevant(self.rel, self.cutoff), judged.num_relevant(self.rel), np.nan)


@search_measure(
    use="You want to know how many of the documents that the agent has to read are relevant.",
    misleads="One search with few documents can score 1 although most of the evidence is missing.",
    properties=_SHARE,
)
class SeenP(TrajectoryMeasure):
    r"""Seen precision: the share of the documents of the first k searches that are relevant.

    .. math:: \mathrm{SeenP}@k = \frac{|\mathrm{seen}(k) \cap \mathrm{relevant}|}{|\mathrm{seen}(k)|}

    A document that several searches returned counts once. The score is 0 if no document was returned.

    Examples
    --------
    >>> SeenP().of_trial([["a", "x"], ["a", "b"]], {"a": 1, "b": 1})
    0.6666666666666666
    """

    cutoff: int | None = param(SEARCHES)
    rel: float = param(REL)

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Divide the relevant documents of the first k searches by their distinct documents."""
        new = np.bincount(judged.search, judged.is_new, minlength=len(judged.search_trial))
        n_returned = judged.by_trial((new * judged.within(self.cutoff)).astype(np.float64))
        return divide(judged.seen_relevant(self.rel, self.cutoff), n_returned, 0.0)


@search_measure(
    cite="Järvelin and Kekäläinen 2002, for the measure of a list",
    use="You want to know whether the agent saw the best documents early.",
    misleads="A search for another part of the evidence starts deep in the list, so its first document counts little.",
    properties=Properties(reads="trajectories", graded=True, monotone=False),
)
class SeennDCG(TrajectoryMeasure):
    r"""Seen nDCG: nDCG of the documents of the first k searches in the order in which the agent saw them first.

    .. math:: \mathrm{SeennDCG}@k = \frac{\mathrm{DCG}(\mathrm{seen}(k))}{\mathrm{DCG}(\mathrm{ideal})}

    The ideal list has all judged documents, best first. Questions without a relevant document are excluded.

    Examples
    --------
    >>> round(SeennDCG().of_trial([["x", "a"], ["a", "b"]], {"a": 1, "b": 1}), 4)  # ranks 2 and 3 of x, a, b
    0.6934
    """

    cutoff: int | None = param(SEARCHES)
    gain: GainAttribute = param(GAIN)

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Divide the DCG of the documents in order of first sight by that of the ideal list."""
        rows = np.flatnonzero(judged.is_new & judged.within(self.cutoff)[judged.search])
        trial = judged.trial[rows]
        gain = gains(np.nan_to_num(judged.grade[rows]), self.gain)
        dcg = np.bincount(trial, gain / discounts(positions(trial), "log2", 2.0), minlength=judged.n_trials)
        return divide(dcg, ideal_dcg(judged, self.gain), np.nan)


def ideal_dcg(judged: JudgedTrajectories, gain: Gain) -> Floats:
    """Return the DCG of the best list for the question of each trial, with filled-in grades: (N,)."""
    owner, grades = ideal_grades(judged)
    gain_of = gains(grades, gain)
    order = np.lexsort((-gain_of, owner))
    ranks = positions(owner[order])
    weighted = gain_of[order] / discounts(ranks, "log2", 2.0)
    return np.bincount(owner[order], weighted, judged.n_trials).astype(np.float64)


def ideal_grades(judged: JudgedTrajectories) -> tuple[Ints, Floats]:
    """Return the trial and the grade of every judged document of its question, and of documents that were filled in."""
    owner, labels = judged.rows_by_trial(judged.label_question)
    filled = np.flatnonzero(judged.is_new & ~judged.is_judged & ~np.isnan(judged.grade))
    return (
        np.concatenate([owner, judged.trial[filled]]),
        np.concatenate([judged.label_grade[labels], judged.grade[filled]]),
    )


@search_measure(
    use="You want to know how much a search contributes on average, to compare agents that search often with others.",
    misleads="An agent that stops after one good search scores best, even if most of the evidence is missing.",
    properties=_SHARE,
)
class RecallPerSearch(TrajectoryMeasure):
    r"""Recall per search: the mean gain in recall of a search.

    .. math:: \frac{1}{T} \sum_{t=1}^{T} \left(\mathrm{SeenR}@t - \mathrm{SeenR}@(t-1)\right)
        = \frac{\mathrm{SeenR}@T}{T}

    T is the number of searches. Trials without a search, and questions without a relevant document, are excluded.

    Examples
    --------
    >>> RecallPerSearch().of_trial([["a"], ["a"], ["b"], []], {"a": 1, "b": 1})
    0.25
    """

    rel: float = param(REL)

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Divide the recall by the number of searches."""
        recall = divide(judged.seen_relevant(self.rel), judged.num_relevant(self.rel), np.nan)
        return divide(recall, judged.num_searches, np.nan)


@search_measure(
    cite="Chen et al. 2025 (BrowseComp-Plus)",
    use="You want to know the effort of an agent, to compare it with the accuracy.",
    misleads="Few searches can mean that the agent stopped too early.",
    properties=_COUNT_OF_ANY,
)
class NumSearches(TrajectoryMeasure):
    r"""Number of searches, including those that failed.

    .. math:: T

    Examples
    --------
    >>> NumSearches().of_trial([["a"], [], ["b"]])
    3.0
    """

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Count the searches of each trial."""
        return judged.num_searches


@search_measure(
    use="You want to know how many searches an agent needs until it finds evidence.",
    misleads="A trial that never finds the evidence counts only one search more than it made.",
    properties=_COUNT,
)
class SearchesToEvidence(TrajectoryMeasure):
    r"""Searches to evidence: the number of searches until the first relevant document, or until all, were returned.

    .. math:: \min \{t : |\mathrm{seen}(t) \cap \mathrm{relevant}| \ge n\}

    n is 1; with `all`, the number of relevant documents. For a trial that never gets there, the score is one more than
    its number of searches. Questions without a relevant document are excluded.

    Examples
    --------
    >>> SearchesToEvidence().of_trial([["x"], ["a"], ["b"]], {"a": 1, "b": 1})
    2.0
    >>> SearchesToEvidence(all=True).of_trial([["x"], ["a"], ["x"]], {"a": 1, "b": 1})
    4.0
    """

    all: bool = param(Parameter("Whether all relevant documents are required instead of one.", False, boolean))
    rel: float = param(REL)

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Count the searches after which evidence was still missing, and add one."""
        relevant = judged.num_relevant(self.rel)
        needed = relevant if self.all else np.ones(judged.n_trials)
        is_missing = judged.relevant_so_far(self.rel) < needed[judged.search_trial]
        return np.where(relevant > 0, judged.by_trial(is_missing) + 1, np.nan)


class WastedSearches(TrajectoryMeasure):
    """Base of the measures that count searches of one kind."""

    def wasted(self, judged: JudgedTrajectories) -> Bools:
        """Mark the searches of this kind: (S,)."""
        raise NotImplementedError

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Count the marked searches of each trial, or divide their number by that of all searches."""
        counts = judged.by_trial(self.wasted(judged))
        is_share: bool = self.share  # type: ignore[attr-defined]
        return divide(counts, judged.num_searches, np.nan) if is_share else counts


@search_measure(
    use="You want to know how many searches found nothing new although evidence was missing.",
    misleads="A search without new evidence can still help the agent to formulate the next query.",
    properties=_COUNT,
)
class RedundantSearches(WastedSearches):
    r"""Redundant searches: those that return no new relevant document although some are missing.

    .. math:: |\{t : \mathrm{SeenR}@t = \mathrm{SeenR}@(t-1) < 1\}|

    Searches that failed, or whose documents are not recorded, are not counted.

    Examples
    --------
    >>> RedundantSearches().of_trial([["a"], ["a", "x"], ["b"], ["b"]], {"a": 1, "b": 1})
    1.0
    """

    share: bool = param(SHARE)
    rel: float = param(REL)

    def wasted(self, judged: JudgedTrajectories) -> Bools:
        """Mark the searches without a new relevant document while one is missing."""
        n_new, so_far = judged.new_relevant(self.rel), judged.relevant_so_far(self.rel)
        missing = so_far < judged.num_relevant(self.rel)[judged.search_trial]
        return (n_new == 0) & missing & judged.recorded & ~judged.failed


@search_measure(
    use="You want to find agents that loop.",
    misleads="Queries that differ in one word are not recognized as repeated, unless they return the same list.",
    properties=_COUNT_OF_ANY,
)
class RepeatedSearches(WastedSearches):
    r"""Repeated searches: those with the query, or with the list of documents, of an earlier search of the trial.

    .. math:: |\{t : q_t = q_u\ \text{or}\ \mathrm{list}_t = \mathrm{list}_u\ \text{for some}\ u < t\}|

    Queries are compared in lower case and with single spaces. A search that failed is not compared: its repetition is
    a retry. Empty lists are not compared either.

    Examples
    --------
    >>> RepeatedSearches().of_trial([["a"], ["x"], ["x"]], queries=["cat", "dog", "cat"])
    1.0
    """

    share: bool = param(SHARE)

    def wasted(self, judged: JudgedTrajectories) -> Bools:
        """Mark the repeated searches."""
        return judged.repeated


@search_measure(
    use="You want to know whether an agent continues to search after it has found everything.",
    misleads="An agent does not know that no evidence is missing, and needs some searches to be sure.",
    properties=_COUNT,
)
class LateSearches(WastedSearches):
    r"""Late searches: those after all relevant documents were returned.

    .. math:: |\{t : \mathrm{SeenR}@(t-1) = 1\}|

    Examples
    --------
    >>> LateSearches().of_trial([["a", "b"], ["x"], ["y"]], {"a": 1, "b": 1})
    2.0
    """

    share: bool = param(SHARE)
    rel: float = param(REL)

    def wasted(self, judged: JudgedTrajectories) -> Bools:
        """Mark the searches before which no relevant document was missing."""
        before = judged.relevant_so_far(self.rel) - judged.new_relevant(self.rel)
        relevant = judged.num_relevant(self.rel)[judged.search_trial]
        return (relevant > 0) & (before >= relevant)


@search_measure(
    use="You want to know how many searches contributed nothing that the agent opened or cited.",
    misleads="An agent may use the text of a result without opening or citing it.",
    properties=_COUNT_OF_ANY,
)
class UnusedSearches(WastedSearches):
    r"""Unused searches: those that returned no document that the trial opened or cited.

    .. math:: |\{t : \mathrm{list}_t \cap (\mathrm{opened} \cup \mathrm{cited}) = \emptyset\}|

    No trial has a score if neither opened nor cited documents are recorded.

    Examples
    --------
    >>> UnusedSearches().of_trial([["a", "x"], ["b"], []], cited=["a"])
    2.0
    """

    share: bool = param(SHARE)

    def wasted(self, judged: JudgedTrajectories) -> Bools:
        """Mark the searches without a used document."""
        return ~judged.used

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Count the marked searches, if the use of documents is recorded."""
        return super().trial_scores(judged) if judged.records_use else np.full(judged.n_trials, np.nan)


@search_measure(
    use="You want to compare the evidence that agents find with their tokens or cost.",
    misleads="An agent that finds one document at once and stops has a high yield.",
    properties=Properties(reads="trajectories", needs_ranking=False, high=None),
)
class EvidenceYield(TrajectoryMeasure):
    r"""Evidence yield: the number of relevant documents that were returned per 1,000 tokens, or per dollar.

    .. math:: \frac{1000 \cdot |\mathrm{seen} \cap \mathrm{relevant}|}{\mathrm{tokens}}
        \quad \text{or} \quad \frac{|\mathrm{seen} \cap \mathrm{relevant}|}{\mathrm{dollars}}

    Trials without a record of tokens or of the cost, or with 0, are excluded.

    Examples
    --------
    >>> EvidenceYield().of_trial([["a", "b"]], {"a": 1, "b": 1}, tokens=4000)
    0.5
    """

    per: Literal["tokens", "cost"] = param(
        Parameter("The unit: 1,000 tokens, or a dollar of cost.", "tokens", choice("tokens", "cost"))
    )
    rel: float = param(REL)

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Divide the number of relevant documents by the effort."""
        effort = judged.tokens / 1000 if self.per == "tokens" else judged.cost
        return divide(judged.seen_relevant(self.rel), np.where(effort > 0, effort, np.nan), np.nan)


@search_measure(
    cite="Trivedi et al. 2022 (MuSiQue, for questions with several hops); the definition is ours",
    use="The answer requires several pieces of evidence, and each of them is in several documents.",
    misleads="The order of the hops is ignored.",
    aliases={"HopCompleteness": {"complete": True}},
    properties=replace(_SHARE, depends_on_relevance=False),
)
class HopRecall(TrajectoryMeasure):
    r"""Hop recall: the share of the required pieces of evidence (hops) of which a search returned a document.

    .. math:: \frac{|\{h : \mathrm{seen} \cap \mathrm{documents}_h \ne \emptyset\}|}{|\mathrm{hops}|}

    With `complete`, the score is 1 if no hop is missing, otherwise 0. Questions without hops are excluded.

    Examples
    --------
    >>> HopRecall().of_trial([["a", "x"]], hops=[["a", "b"], ["c"]])
    0.5
    >>> HopRecall(complete=True).of_trial([["a", "x"]], hops=[["a", "b"], ["c"]])
    0.0
    """

    cutoff: int | None = param(SEARCHES)
    complete: bool = param(Parameter("Whether only trials with all hops score.", False, boolean))

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Divide the number of found hops by that of all hops."""
        limit = np.inf if self.cutoff is None else self.cutoff
        is_found = (judged.hop_search > 0) & (judged.hop_search <= limit)
        n_found, n_hops = (
            np.bincount(judged.hop_trial, weights, minlength=judged.n_trials) for weights in (is_found, None)
        )
        share = divide(n_found, n_hops, np.nan)
        return np.floor(share) if self.complete else share
