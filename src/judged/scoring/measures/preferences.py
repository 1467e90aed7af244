"""Measures of preferences. A ranking satisfies a preference if it ranks the better document above the worse one.

A document that was not returned is below all returned documents. Only with `ties="docid-rising"` are ties broken as in
trec_eval's code for these measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.pairs import PreferencePairs, preferences
from judged.scoring.judging.ranking import segment_sum
from judged.scoring.measures.aggregates import count_relevant, divide, expand_to_hits, explained_ratio
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import REL, UNDEFINED, Parameter, choice
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from typing import Literal

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.judging.pairs import Preferences
    from judged.scoring.measures.parameters import Undefined


_OVER_VALUES = ("all", "implied", "retrieved")
OVER = Parameter(
    "The preferences that the measure uses. `all`: all preferences. `implied`: preferences with at least one"
    " returned document"
    " (documents that were not returned rank below returned documents). `retrieved`: preferences with two returned"
    " documents.",
    "all",
    choice(*_OVER_VALUES),
)
OF = Parameter(
    "What the score counts. `satisfied`: preferences that the ranking satisfies. `possible`: all preferences.",
    "satisfied",
    choice("satisfied", "possible"),
)
MEAN = Parameter(
    "The unit with equal weight in the score. `preferences`: each preference. `pairs`: each pair of documents, with the"
    " share of users who agree with the ranking. `users`: each user, with the share of this user's preferences that"
    " the ranking satisfies.",
    "preferences",
    choice("preferences", "pairs", "users"),
)
BALANCED_OVER = Parameter(
    "The preferences that the measure uses. `all`: all preferences. `retrieved`: preferences with two returned"
    " documents.",
    "all",
    choice("all", "retrieved"),
)
_MAX_SHOWN = 20  # preferences that an explanation shows one by one
_MIN_RETURNED = {"all": 0, "implied": 1, "retrieved": 2}


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (prefs); Carterette et al. 2008",
    use="You want to check how many preferences the scores of preference measures are based on, and how many of these"
    " preferences the ranking satisfies.",
    misleads="A topic has many more preferences than documents, so a few large topics dominate the sum.",
    aliases={
        "prefs_num_prefs_ful": {},
        "prefs_num_prefs_ful_ret": {"over": "retrieved"},
        "prefs_num_prefs_poss": {"of": "possible"},
    },
    aggregate="sum",
    properties=Properties(uses_all_labels=True, high=None, graded=True, monotone=False, higher_is_better=None),
    tools={"trec_eval": "prefs_num_prefs_ful, prefs_num_prefs_ful_ret, prefs_num_prefs_poss"},
)
class NumPrefs(Measure):
    r"""Number of preferences that the ranking satisfies: the better document is above the worse one.

    .. math:: \mathrm{NumPrefs} = |\{(u, a, b): u \text{ prefers } a \text{ to } b,\ a \text{ is ranked above } b\}|

    If neither document was returned, neither is above the other.

    Examples
    --------
    >>> NumPrefs().of_list([1, 3, 0]), NumPrefs(of="possible").of_list([1, 3, 0])
    (2.0, 3.0)
    """

    of: Literal["satisfied", "possible"] = param(OF)
    over: Literal["all", "implied", "retrieved"] = param(OVER)

    def score(self, judged: Judged) -> Floats:
        """Count the preferences of all users."""
        judgments = preferences(judged)
        satisfied, possible = _explained_tally(judgments, self.over)
        if len(judgments.code) > 1:
            _explain_users(judgments, {"satisfied": satisfied, "possible": possible})
        satisfied, possible = (segment_sum(count, judgments.topic, len(judged)) for count in (satisfied, possible))
        if self.of == "possible":
            return judged.step(self, possible, "possible", possible=possible)
        return judged.step(self, satisfied, "satisfied", satisfied=satisfied)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (prefs); Carterette et al. 2008",
    use="Assessors stated which of two documents is better, or only the order of the grades is reliable.",
    misleads="If users disagree, no ranking can reach 1. Pairs at the top and at the bottom have equal weight.",
    aliases={
        "prefs_simp": {},
        "prefs_simp_imp": {"over": "implied"},
        "prefs_simp_ret": {"over": "retrieved"},
        "prefs_pair": {"mean": "pairs"},
        "prefs_pair_imp": {"mean": "pairs", "over": "implied"},
        "prefs_pair_ret": {"mean": "pairs", "over": "retrieved"},
        "prefs_avgjg": {"mean": "users"},
        "prefs_avgjg_imp": {"mean": "users", "over": "implied"},
        "prefs_avgjg_ret": {"mean": "users", "over": "retrieved"},
    },
    properties=Properties(uses_all_labels=True, graded=True, monotone=False),
    tools={"trec_eval": "prefs_simp, prefs_pair, prefs_avgjg (each also with _ret and _imp)"},
)
class PrefShare(Measure):
    r"""Share of the preferences that the ranking satisfies.

    .. math:: \mathrm{PrefShare} = \frac{|\{\text{preferences satisfied}\}|}{|\{\text{preferences}\}|}

    A user prefers each document to all documents of a lower grade. If the iteration of the qrels is ``user subgroup``,
    the documents must be in the same subgroup, and preferences are transitive over subgroups (a before b, b before c:
    a before c). Only the order of the grades counts. Qrels without iterations count as the judgments of one user.

    A document that was not returned is below all returned documents. A preference between two such documents is not
    satisfied. With ``mean=users``, a user without preferences counts as 0.

    Examples
    --------
    Three grades, so three preferences. The ranking does not satisfy the preference for the second document over
    the first:

    >>> round(PrefShare().of_list([1, 3, 0]), 3)
    0.667

    Two users who always disagree. The ranking satisfies both preferences of the first user and
    none of the three of the second user:

    >>> for mean in ("preferences", "pairs", "users"):
    ...     print(round(PrefShare(mean=mean).of_list([(1, 1), (0, 2), (0, 3)]), 3))
    0.4
    0.333
    0.5
    """

    mean: Literal["preferences", "pairs", "users"] = param(MEAN)
    over: Literal["all", "implied", "retrieved"] = param(OVER)

    def score(self, judged: Judged) -> Floats:
        """Average over preferences, pairs, or users."""
        judgments = preferences(judged)
        if self.mean == "pairs":
            return _share_by_pair(self, judgments)
        satisfied, possible = _explained_tally(judgments, self.over)
        if self.mean == "users":
            shares = divide(satisfied, possible)
            _explain_users(
                judgments, {"satisfied": satisfied, "possible": possible, "share": shares}, share="satisfied / possible"
            )
            return _mean_over_users(self, judgments, shares)
        if len(judgments.code) > 1:
            _explain_users(judgments, {"satisfied": satisfied, "possible": possible})
        satisfied, possible = (segment_sum(count, judgments.topic, len(judged)) for count in (satisfied, possible))
        return explained_ratio(judged, self, satisfied=satisfied, possible=possible)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (prefs_avgjg_Rnonrel)",
    use="Users judged many documents as not relevant, and preferences over these documents should not dominate the"
    " score.",
    misleads="As in trec_eval, the topic scores 0 if any user has no relevant document, even if other users have"
    " relevant documents. With over=retrieved, the topic also scores 0 if none of the documents that a user"
    " judged was returned.",
    aliases={"prefs_avgjg_Rnonrel": {}, "prefs_avgjg_Rnonrel_ret": {"over": "retrieved"}},
    properties=Properties(uses_all_labels=True, graded=True, monotone=False),
    tools={"trec_eval": "prefs_avgjg_Rnonrel, prefs_avgjg_Rnonrel_ret"},
)
class BalancedPrefShare(Measure):
    r"""Share of satisfied preferences per user, over equal numbers of relevant and nonrelevant documents.

    .. math:: \frac{1}{|U|} \sum_{u} \frac{\text{satisfied}_u + r_u \max(0, R_u - N_u)}
        {\text{possible}_u + R_u \max(0, R_u - N_u)}

    R and N are the numbers of documents with a positive grade and with grade 0 from the user. r is the number of
    relevant documents returned. If N is greater than R, only the first R documents of grade 0 in the ranking count.

    These are trec_eval's rules, including its side effects. If documents of grade 0 are excluded and the user has one
    subgroup, each document of grade 0 is also compared with the documents that count, including itself. With
    ``over=retrieved``, R and N count returned documents, except in the divisor above and for users of several
    subgroups, for whom R documents of grade 0 count and R includes all relevant documents.

    Negative grades count in N for a user of one subgroup, but only documents of the lowest grade are excluded. For a
    user of several subgroups they count in neither R nor N. If fewer than R documents have the lowest grade,
    trec_eval reads uninitialized memory; here all of them count.

    Examples
    --------
    One relevant document at rank 2, and three others. The first of these counts and is above it. Each of the three is
    also compared with it, which is never satisfied:

    >>> BalancedPrefShare().of_list([0, 1, 0], missing=[0])
    0.0
    >>> BalancedPrefShare().of_list([1, 0, 0], missing=[0])
    0.25
    """

    over: Literal["all", "retrieved"] = param(BALANCED_OVER)

    def score(self, judged: Judged) -> Floats:
        """Average over users."""
        judgments = preferences(judged)
        with np.errstate(invalid="ignore"):
            return _mean_over_users(self, judgments, _balanced_shares(judgments, self.over))


def _mean_over_users(measure: Measure, judgments: Preferences, shares: Floats) -> Floats:
    """Average the shares of users: (U,) to (T,). The mean is 0 if a share is 0/0, as in trec_eval."""
    topics = len(judgments.judged)
    total, users = segment_sum(shares, judgments.topic, topics), np.bincount(judgments.topic, minlength=topics)
    mean = np.nan_to_num(divide(total, users))
    return judgments.judged.step(measure, mean, "shares / users", shares=np.nan_to_num(total), users=users)


def _explain_users(judgments: Preferences, columns: dict[str, Floats], **how: str) -> None:
    if judgments.judged.calculation is not None:
        names = {"user": judgments.users} if len(judgments.code) > 1 else {}
        judgments.judged.rows("preferences of each user" if names else "", {**names, **columns}, **how)


def _explained_tally(judgments: Preferences, over: str) -> tuple[Floats, Floats]:
    """Return `_tally`. An explanation lists the preferences if there are at most `_MAX_SHOWN`."""
    satisfied, possible = _tally(judgments, over)
    if judgments.judged.calculation is not None and 0 < possible.sum() <= _MAX_SHOWN:
        for pairs in judgments.pairs(np.ones(len(judgments.topic), dtype=np.bool_)):
            counted = np.flatnonzero(_count_returned(judgments, pairs) >= _MIN_RETURNED[over])
            order = counted[np.lexsort((pairs.worse[counted], pairs.better[counted], pairs.user[counted]))]
            judgments.judged.rows(
                "preferences", judgments.to_columns(PreferencePairs(*(column[order] for column in pairs)))
            )
    return satisfied, possible


def _count_returned(judgments: Preferences, pairs: PreferencePairs) -> Ints:
    return judgments.returned[pairs.better].astype(np.int64) + judgments.returned[pairs.worse]


def _tally(judgments: Preferences, over: str, among: Bools | None = None) -> tuple[Floats, Floats]:
    """Count each user's preferences that are satisfied and possible, among all or some labels: (U,) each."""
    among = np.ones(len(judgments.doc), dtype=np.bool_) if among is None else among
    is_returned = judgments.returned[judgments.doc]
    if over == "retrieved":
        return judgments.count_satisfied(among & is_returned)
    satisfied, possible = judgments.count_satisfied(among)
    return satisfied, possible - (judgments.count_satisfied(among & ~is_returned)[1] if over == "implied" else 0.0)


def _balanced_shares(judgments: Preferences, over: str) -> Floats:
    """Return each user's share of the preferences over as many documents of grade 0 as relevant ones: (U,)."""
    users, docs = len(judgments.topic), len(judgments.row)
    user_docs, label = np.unique(judgments.user * docs + judgments.doc, return_index=True)
    user, returned, grade = user_docs // docs, judgments.returned[user_docs % docs], judgments.grade[label]
    # trec_eval counts a negative grade as not relevant for users of one subgroup, and ignores it for other users.
    has_subgroups = judgments.several[user]
    is_relevant, is_zero = grade > 0, np.where(has_subgroups, grade == 0, grade <= 0)
    lowest_grade = np.full(users, np.inf)
    np.minimum.at(lowest_grade, user, grade)
    is_lowest = is_zero & (has_subgroups | (grade == lowest_grade[user]))  # candidates for exclusion
    masks = (is_relevant, is_zero, is_lowest)
    all_relevant, all_zeros, all_lowest = (segment_sum(mask, user, users) for mask in masks)
    relevant_returned, zeros_returned, lowest_returned = (segment_sum(mask & returned, user, users) for mask in masks)
    if over == "all":
        relevant, zeros, lowest = all_relevant, all_zeros, all_lowest
    else:
        relevant, zeros, lowest = relevant_returned, zeros_returned, lowest_returned
    added = np.maximum(relevant - zeros, 0.0)
    limit = np.where(judgments.several, all_relevant, relevant)  # number of lowest that count if zeros exceed relevant
    lowest_user = user[is_lowest]
    position = np.arange(len(lowest_user)) - np.searchsorted(lowest_user, lowest_user)
    excluded = user_docs[is_lowest][(position >= limit[lowest_user]) & (zeros > relevant)[lowest_user]]
    satisfied, possible = _tally(judgments, over, ~np.isin(judgments.user * docs + judgments.doc, excluded))
    # trec_eval also compares each lowest document with those that count, itself included: a side effect of its loop.
    compares_lowest = (zeros > relevant) & ~judgments.several
    counted_lowest = np.minimum(relevant, lowest)
    counted_returned = np.minimum(counted_lowest, lowest_returned)
    satisfied_pairs = counted_returned * (counted_returned - 1) / 2 + counted_returned * (
        counted_lowest - counted_returned
    )
    lowest_satisfied, lowest_possible = satisfied_pairs * compares_lowest, lowest * counted_lowest * compares_lowest
    all_satisfied = satisfied + relevant_returned * added + lowest_satisfied
    all_possible = possible + all_relevant * added + lowest_possible
    columns = {
        "R": all_relevant,
        "N": all_zeros,
        "r": relevant_returned,
        "added": added,
        "stated_satisfied": satisfied,
        "stated": possible,
        "among_zeros_satisfied": lowest_satisfied,
        "among_zeros": lowest_possible,
        "satisfied": all_satisfied,
        "possible": all_possible,
        "share": all_satisfied / all_possible,
    }
    _explain_users(
        judgments,
        columns,
        R="documents with a grade above 0",
        N="documents that count as not relevant",
        r="returned documents with a grade above 0",
        added="max(0, R - N)" + ("" if over == "all" else " of returned documents"),
        satisfied="stated_satisfied + r * added + among_zeros_satisfied",
        possible="stated + R * added + among_zeros",
        share="satisfied / possible",
    )
    return columns["share"]


def _share_by_pair(measure: PrefShare, judgments: Preferences) -> Floats:
    """Average the share of users who agree with the ranking over the pairs of documents: (T,)."""
    topics, docs = len(judgments.judged), len(judgments.row)
    # In a topic with one user, each pair has one preference, so the tally is the result.
    satisfied, possible = (
        segment_sum(count, judgments.topic, topics) for count in _explained_tally(judgments, measure.over)
    )
    has_users = np.bincount(judgments.topic, minlength=topics) > 1
    satisfied[has_users], possible[has_users] = 0.0, 0.0
    for pairs in judgments.pairs(has_users[judgments.topic]):
        returned = _count_returned(judgments, pairs)
        counted = returned >= _MIN_RETURNED[measure.over]
        first, second = np.minimum(pairs.better, pairs.worse), np.maximum(pairs.better, pairs.worse)
        keys = ((2 - returned) * docs + first) * docs + second  # trec_eval sums pairs of two returned documents first
        distinct, pair = np.unique(keys[counted], return_inverse=True)
        agreement = segment_sum(judgments.is_satisfied(pairs)[counted], pair, len(distinct)) / np.bincount(pair)
        topic = judgments.judged.label_topic[judgments.row[distinct // docs % docs]]
        satisfied += segment_sum(agreement, topic, topics)
        possible += np.bincount(topic, minlength=topics)
        if judgments.judged.calculation is not None and 0 < len(distinct) <= _MAX_SHOWN:
            _explain_pairs(judgments, distinct // docs % docs, distinct % docs, np.bincount(pair), agreement)
    return explained_ratio(judgments.judged, measure, agreement=satisfied, pairs=possible)


def _explain_pairs(judgments: Preferences, first: Ints, second: Ints, users: Ints, agreement: Floats) -> None:
    columns = {
        "document": judgments.ids(first),
        "other": judgments.ids(second),
        "users with a preference": users,
        "share that agrees": agreement,
    }
    judgments.judged.rows("pairs of documents", columns)


@measure(
    category="incomplete judgments",
    cite="Buckley and Voorhees 2004, as corrected in trec_eval 8",
    use="The pool is shallow or old, so unjudged documents should not count as not relevant.",
    misleads="The measure uses only judged documents, so a run of mostly unjudged documents can score high. Check"
    " Judged@k.",
    properties=Properties(perfect=1.0, judged_better_first=True),
    tools={"trec_eval": "bpref", "ir_measures": "Bpref", "ranx": "bpref"},
)
class Bpref(Measure):
    r"""Binary preference: how rarely a document judged not relevant is above a relevant document.

    .. math:: \mathrm{Bpref} = \frac{1}{R} \sum_{\text{relevant, returned}}
        \left(1 - \frac{\min(n, R)}{\min(N, R)}\right)

    n is the number of documents above the relevant document that are judged not relevant. N is the number of documents
    in the qrels that are judged not relevant.
    Documents without a judgment, or with a negative grade, are ignored.

    Examples
    --------
    >>> Bpref().of_list([1, 0, None, 1], missing=[0])  # second relevant document: n=1, R=2, N=2
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Sum the share of preferences that hold for each relevant document, and divide by R."""
        is_relevant, relevant = judged.relevant(self.rel), count_relevant(judged, self.rel)
        is_nonrelevant = (judged.grade >= 0) & ~is_relevant
        nonrelevant = judged.sum_labels(judged.label_grade >= 0) - relevant
        judged.step("N", nonrelevant, "documents judged not relevant in the qrels")
        hit_r, hit_n = expand_to_hits(judged, relevant), expand_to_hits(judged, nonrelevant)
        above = judged.count_so_far(is_nonrelevant)
        judged.column("n", above, "higher-ranked documents that are judged not relevant", where=is_relevant)
        # The divisor min(N, R) is the correction of trec_eval 8; with R alone, a topic with few judged nonrelevant
        # documents could not score 0.
        share = 1.0 - divide(np.minimum(above, hit_r), np.minimum(hit_n, hit_r))
        how, parts = "1 - min(n, R) / min(N, R)", {"n": above, "R": hit_r, "N": hit_n}
        judged.column("preference", share, how, where=is_relevant, **parts)
        total = judged.total("sum of preference", share, "preference", where=is_relevant)
        return explained_ratio(judged, self, sum_of_preference=total, R=relevant)


@measure(
    category="incomplete judgments",
    cite="trec_eval; Robertson 2006 for the mean",
    use="Use this measure instead of GMAP if the judgments are incomplete.",
    misleads="A topic with a score of 0 counts as 0.00001, as in trec_eval, and lowers the mean considerably.",
    aliases={"gm_bpref": {}},
    aggregate="geometric mean",
    properties=Properties(perfect=1.0, judged_better_first=True),
    tools={"trec_eval": "gm_bpref"},
)
class GMBpref(Measure):
    r"""Binary preference, aggregated by the geometric mean over topics.

    .. math:: \mathrm{GMBpref} = \exp\left(\frac{1}{T} \sum_t \ln \max(\mathrm{Bpref}_t, 0.00001)\right)

    The score of a topic is its Bpref.

    Examples
    --------
    >>> GMBpref().of_list([1, 0, None, 1], missing=[0])
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Compute the Bpref of each topic."""
        bpref = Bpref(rel=self.rel, undefined=0.0).score(judged)
        return judged.step(self, bpref, "Bpref", Bpref=bpref)
