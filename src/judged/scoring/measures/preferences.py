"""How far a ranking keeps to what users prefer. A preference is kept if the better document stands above the worse.

Documents that were not returned rank below all that were. `ties="docid-rising"` breaks ties as trec_eval does in
these measures, and only in these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.pairs import Pairs, preferences
from judged.scoring.judging.ranking import segment_sum
from judged.scoring.measures.aggregates import all_relevant, divide, for_each_hit
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import REL, UNDEFINED, Parameter, one_of
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from typing import Literal

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.judging.pairs import Preferences
    from judged.scoring.measures.parameters import Undefined


_OVER_VALUES = ("all", "implied", "retrieved")
OVER = Parameter(
    "Which preferences are looked at: all; those of which at least one document was returned (the missing one counts"
    " as behind it); or those of which both were.",
    "all",
    one_of(*_OVER_VALUES),
)
OF = Parameter(
    "What is counted: the preferences that are kept, or all that could be.", "kept", one_of("kept", "possible")
)
MEAN = Parameter(
    "What counts alike: preferences; pairs of documents, each with the share of its users who agree with the ranking;"
    " or users, each with the share of the own preferences that are kept.",
    "preferences",
    one_of("preferences", "pairs", "users"),
)
BALANCED_OVER = Parameter(
    "Which preferences are looked at: all, or those of which both documents were returned.",
    "all",
    one_of("all", "retrieved"),
)
_FEW = 20  # preferences that are shown one by one
_LEAST_RETURNED = {"all": 0, "implied": 1, "retrieved": 2}


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (prefs); Carterette et al. 2008",
    use="To see how many preferences the other numbers rest on, and how many are kept.",
    misleads="A topic has many more preferences than documents, so a few large topics are most of the sum.",
    aliases={
        "prefs_num_prefs_ful": {},
        "prefs_num_prefs_ful_ret": {"over": "retrieved"},
        "prefs_num_prefs_poss": {"of": "possible"},
    },
    aggregate="sum",
    properties=Properties(every_label=True, high=None, graded=True, monotone=False, higher_is_better=None),
    tools={"trec_eval": "prefs_num_prefs_ful, prefs_num_prefs_ful_ret, prefs_num_prefs_poss"},
)
class NumPrefs(Measure):
    r"""Number of preferences that the ranking keeps.

    .. math:: \mathrm{NumPrefs} = |\{(u, a, b): u \text{ prefers } a \text{ to } b,\ a \text{ stands above } b\}|

    Of two documents that were not returned neither stands above the other.

    Examples
    --------
    >>> NumPrefs().of_list([1, 3, 0]), NumPrefs(of="possible").of_list([1, 3, 0])
    (2.0, 3.0)
    """

    of: Literal["kept", "possible"] = param(OF)
    over: Literal["all", "implied", "retrieved"] = param(OVER)

    def score(self, judged: Judged) -> Floats:
        """Add up what each user prefers."""
        found = preferences(judged)
        kept, possible = _shown_tally(found, self.over)
        if len(found.code) > 1:
            _show_users(found, {"kept": kept, "possible": possible})
        kept, possible = (segment_sum(column, found.topic, len(judged)) for column in (kept, possible))
        if self.of == "possible":
            return judged.step(self, possible, "possible", possible=possible)
        return judged.step(self, kept, "kept", kept=kept)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (prefs); Carterette et al. 2008",
    use="Assessors said which of two documents is better, or grades are trusted only as an order.",
    misleads="Users who disagree keep any ranking below 1, and a pair at the top counts like one at the bottom.",
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
    properties=Properties(every_label=True, graded=True, monotone=False),
    tools={"trec_eval": "prefs_simp, prefs_pair, prefs_avgjg (each also with _ret and _imp)"},
)
class PrefShare(Measure):
    r"""Share of the preferences that the ranking keeps.

    .. math:: \mathrm{PrefShare} = \frac{|\{\text{preferences kept}\}|}{|\{\text{preferences}\}|}

    A user prefers each document to all of a lower grade: in the same subgroup, if the iteration of the qrels is
    ``user subgroup``, and with what follows from several subgroups (a before b, b before c: a before c). Only the
    order of grades counts. A qrels without iterations is one user.

    A document that was not returned ranks below all that were; a preference between two such documents is not
    kept. With ``mean=users`` a user without preferences counts as 0.

    Examples
    --------
    Three grades, three preferences. Second over first is not kept:

    >>> round(PrefShare().of_list([1, 3, 0]), 3)
    0.667

    Two users, who agree about nothing. The ranking keeps both preferences of the first, none of the second's three:

    >>> for mean in ("preferences", "pairs", "users"):
    ...     print(round(PrefShare(mean=mean).of_list([(1, 1), (0, 2), (0, 3)]), 3))
    0.4
    0.333
    0.5
    """

    mean: Literal["preferences", "pairs", "users"] = param(MEAN)
    over: Literal["all", "implied", "retrieved"] = param(OVER)

    def score(self, judged: Judged) -> Floats:
        """Average over preferences, pairs or users."""
        found = preferences(judged)
        if self.mean == "pairs":
            return _share_by_pair(self, found)
        kept, possible = _shown_tally(found, self.over)
        if self.mean == "users":
            shares = divide(kept, possible)
            _show_users(found, {"kept": kept, "possible": possible, "share": shares}, share="kept / possible")
            return _mean_of_users(self, found, shares)
        if len(found.code) > 1:
            _show_users(found, {"kept": kept, "possible": possible})
        kept, possible = (segment_sum(column, found.topic, len(judged)) for column in (kept, possible))
        return judged.step(self, divide(kept, possible), "kept / possible", kept=kept, possible=possible)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (prefs_avgjg_Rnonrel)",
    use="Users judged many documents as not relevant, and these should not outweigh the relevant ones.",
    misleads="A topic where some user finds nothing relevant scores 0, whatever the others say, as in trec_eval; so"
    " does one of which such a user has nothing returned, with over=retrieved.",
    aliases={"prefs_avgjg_Rnonrel": {}, "prefs_avgjg_Rnonrel_ret": {"over": "retrieved"}},
    properties=Properties(every_label=True, graded=True, monotone=False),
    tools={"trec_eval": "prefs_avgjg_Rnonrel, prefs_avgjg_Rnonrel_ret"},
)
class BalancedPrefShare(Measure):
    r"""Share of each user's preferences kept, as if there were as many not relevant documents as relevant ones.

    .. math:: \frac{1}{|U|} \sum_{u} \frac{\text{kept}_u + r_u \max(0, R_u - N_u)}
        {\text{possible}_u + R_u \max(0, R_u - N_u)}

    R and N are the documents to which the user gave more than 0, and 0; r are the relevant ones returned. Where N is
    greater, only the first R documents of grade 0, in the order of the ranking, take part.

    These are trec_eval's rules, side effects included. Where documents of grade 0 are left out, and the user
    has no more than one subgroup, each document of grade 0 is also compared with those that take part, itself among
    them. With ``over=retrieved`` R and N count returned documents, except in the divisor above, and for users of
    several subgroups, where R documents of grade 0 take part and R counts all.

    Negative grades count in N for a user of one subgroup, but only documents of the lowest grade are left out. For a
    user of several subgroups they count in neither R nor N. Where fewer than R documents have the lowest grade,
    trec_eval reads memory that it never set; here all of them take part.

    Examples
    --------
    One relevant document at rank 2, and three others. The first of these takes part, and stands above it. Each of
    the three is also compared with it, which is never kept:

    >>> BalancedPrefShare().of_list([0, 1, 0], missing=[0])
    0.0
    >>> BalancedPrefShare().of_list([1, 0, 0], missing=[0])
    0.25
    """

    over: Literal["all", "retrieved"] = param(BALANCED_OVER)

    def score(self, judged: Judged) -> Floats:
        """Average over users."""
        found = preferences(judged)
        with np.errstate(invalid="ignore"):
            return _mean_of_users(self, found, _balanced(found, self.over))


def _mean_of_users(measure: Measure, found: Preferences, shares: Floats) -> Floats:
    """Average one share a user; 0 where a user's is 0/0, as in C: (U,) to (T,)."""
    topics = len(found.judged)
    total, users = segment_sum(shares, found.topic, topics), np.bincount(found.topic, minlength=topics)
    mean = np.nan_to_num(divide(total, users))
    return found.judged.step(measure, mean, "shares / users", shares=np.nan_to_num(total), users=users)


def _show_users(found: Preferences, columns: dict[str, Floats], **how: str) -> None:
    if found.judged.working is not None:
        names = {"user": found.users} if len(found.code) > 1 else {}
        found.judged.rows("preferences of each user" if names else "", {**names, **columns}, **how)


def _shown_tally(found: Preferences, over: str) -> tuple[Floats, Floats]:
    """Count as `_tally` does, and show each preference where they are few: (U,) each."""
    kept, possible = _tally(found, over)
    if found.judged.working is not None and 0 < possible.sum() <= _FEW:
        for pairs in found.pairs(np.ones(len(found.topic), dtype=np.bool_)):
            counted = np.flatnonzero(_returned(found, pairs) >= _LEAST_RETURNED[over])
            order = counted[np.lexsort((pairs.worse[counted], pairs.better[counted], pairs.user[counted]))]
            found.judged.rows("preferences", found.named(Pairs(*(column[order] for column in pairs))))
    return kept, possible


def _returned(found: Preferences, pairs: Pairs) -> Ints:
    """Count how many of the two documents of each preference were returned."""
    return found.returned[pairs.better].astype(np.int64) + found.returned[pairs.worse]


def _tally(found: Preferences, over: str, among: Bools | None = None) -> tuple[Floats, Floats]:
    """Count each user's preferences, kept and possible, among all labels or some: (U,) each."""
    among = np.ones(len(found.doc), dtype=np.bool_) if among is None else among
    returned = found.returned[found.doc]
    if over == "retrieved":
        return found.counts(among & returned)
    kept, possible = found.counts(among)
    return kept, possible - (found.counts(among & ~returned)[1] if over == "implied" else 0.0)


def _balanced(found: Preferences, over: str) -> Floats:
    """Give each user's share of the preferences over as many documents of grade 0 as relevant ones: (U,)."""
    users, docs = len(found.topic), len(found.row)
    labelled, at = np.unique(found.user * docs + found.doc, return_index=True)
    user, returned, level = labelled // docs, found.returned[labelled % docs], found.grade[at]
    # trec_eval counts a negative level as not relevant for users of one subgroup, and not at all for the others.
    several = found.several[user]
    positive, zero = level > 0, np.where(several, level == 0, level <= 0)
    lowest = np.full(users, np.inf)
    np.minimum.at(lowest, user, level)
    last = zero & (several | (level == lowest[user]))  # of these some are left out
    all_relevant, all_zero, all_last = (segment_sum(mask, user, users) for mask in (positive, zero, last))
    relevant_returned, zero_returned, last_returned = (
        segment_sum(mask & returned, user, users) for mask in (positive, zero, last)
    )
    if over == "all":
        relevant, zeros, lasts = all_relevant, all_zero, all_last
    else:
        relevant, zeros, lasts = relevant_returned, zero_returned, last_returned
    added = np.maximum(relevant - zeros, 0.0)
    least = np.where(found.several, all_relevant, relevant)  # how many of the last take part where zeros are more
    last_user = user[last]
    place = np.arange(len(last_user)) - np.searchsorted(last_user, last_user)
    left_out = labelled[last][(place >= least[last_user]) & (zeros > relevant)[last_user]]
    kept, possible = _tally(found, over, ~np.isin(found.user * docs + found.doc, left_out))
    among_last = (zeros > relevant) & ~found.several
    taking_part = np.minimum(relevant, lasts)
    above = np.minimum(taking_part, last_returned)
    kept_among_last = above * (above - 1) / 2 + above * (taking_part - above)
    more_kept, more_possible = kept_among_last * among_last, lasts * taking_part * among_last
    all_kept = kept + relevant_returned * added + more_kept
    all_possible = possible + all_relevant * added + more_possible
    columns = {
        "R": all_relevant,
        "N": all_zero,
        "r": relevant_returned,
        "added": added,
        "stated_kept": kept,
        "stated": possible,
        "among_zeros_kept": more_kept,
        "among_zeros": more_possible,
        "kept": all_kept,
        "possible": all_possible,
        "share": all_kept / all_possible,
    }
    _show_users(
        found,
        columns,
        R="documents with a grade above 0",
        N="documents of grade 0 or below",
        r="returned documents with a grade above 0",
        added="max(0, R - N)" + ("" if over == "all" else " of returned documents"),
        kept="stated_kept + r * added + among_zeros_kept",
        possible="stated + R * added + among_zeros",
        share="kept / possible",
    )
    return columns["share"]


def _share_by_pair(measure: PrefShare, found: Preferences) -> Floats:
    """Average over pairs of documents the share of the users with a preference who agree with the ranking: (T,)."""
    topics, docs = len(found.judged), len(found.row)
    # where there is one user, each preference is a pair of its own
    kept, possible = (segment_sum(column, found.topic, topics) for column in _shown_tally(found, measure.over))
    shared = np.bincount(found.topic, minlength=topics) > 1
    kept[shared], possible[shared] = 0.0, 0.0
    for pairs in found.pairs(shared[found.topic]):
        returned = _returned(found, pairs)
        counted = returned >= _LEAST_RETURNED[measure.over]
        upper, lower = np.minimum(pairs.better, pairs.worse), np.maximum(pairs.better, pairs.worse)
        keys = ((2 - returned) * docs + upper) * docs + lower  # trec_eval adds up pairs of two returned documents first
        distinct, which = np.unique(keys[counted], return_inverse=True)
        agree = segment_sum(found.keeps(pairs)[counted], which, len(distinct)) / np.bincount(which)
        topic = found.judged.label_topic[found.row[distinct // docs % docs]]
        kept += segment_sum(agree, topic, topics)
        possible += np.bincount(topic, minlength=topics)
        if found.judged.working is not None and 0 < len(distinct) <= _FEW:
            _show_pairs(found, distinct // docs % docs, distinct % docs, np.bincount(which), agree)
    share = divide(kept, possible)
    return found.judged.step(measure, share, "agreement / pairs", agreement=kept, pairs=possible)


def _show_pairs(found: Preferences, upper: Ints, lower: Ints, users: Ints, agree: Floats) -> None:
    columns = {
        "document": found.ids(upper),
        "other": found.ids(lower),
        "users with a preference": users,
        "share that agrees": agree,
    }
    found.judged.rows("pairs of documents", columns)


@measure(
    category="incomplete judgments",
    cite="Buckley and Voorhees 2004, as corrected in trec_eval 8",
    use="The pool is shallow or old, and unjudged documents must not count as not relevant.",
    misleads="It sees only judged documents, so a run full of unjudged ones can score well; look at Judged@k.",
    properties=Properties(perfect=1.0, judged_better_first=True),
    tools={"trec_eval": "bpref", "ir_measures": "Bpref", "ranx": "bpref"},
)
class Bpref(Measure):
    r"""Binary preference: how rarely a document judged not relevant is ranked above a relevant one.

    .. math:: \mathrm{Bpref} = \frac{1}{R} \sum_{\text{relevant, returned}}
        \left(1 - \frac{\min(n, R)}{\min(N, R)}\right)

    n is the number of documents judged not relevant above the relevant one, N their number in the qrels.
    Documents without a judgment, or with a negative grade, are skipped.

    Examples
    --------
    >>> Bpref().of_list([1, 0, None, 1], missing=[0])  # second relevant: n=1, R=2, N=2
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Sum the preferences that hold over the relevant documents, and divide by R."""
        relevant, known = judged.relevant(self.rel), all_relevant(judged, self.rel)
        not_relevant = (judged.grade >= 0) & ~relevant
        all_not_relevant = judged.sum_labels(judged.label_grade >= 0) - known
        judged.step("N", all_not_relevant, "documents judged not relevant in the qrels")
        most, others = for_each_hit(judged, known), for_each_hit(judged, all_not_relevant)
        above = judged.count_so_far(not_relevant)
        judged.column("n", above, "judged not relevant above", where=relevant)
        preference = 1.0 - divide(np.minimum(above, most), np.minimum(others, most))
        judged.column("preference", preference, "1 - min(n, R) / min(N, R)", where=relevant, n=above, R=most, N=others)
        total = judged.total("sum of preference", preference, "preference", where=relevant)
        return judged.step(self, divide(total, known), "sum_of_preference / R", sum_of_preference=total, R=known)


@measure(
    category="incomplete judgments",
    cite="trec_eval; Robertson 2006 for the mean",
    use="Like GMAP, where the judgments are incomplete.",
    misleads="One topic that scores 0 pulls the mean down like a score of 0.00001, the floor that trec_eval set.",
    aliases={"gm_bpref": {}},
    aggregate="geometric mean",
    properties=Properties(perfect=1.0, judged_better_first=True),
    tools={"trec_eval": "gm_bpref"},
)
class GMBpref(Measure):
    r"""Binary preference, with the geometric mean over the topics.

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
        """Bpref of each topic."""
        bpref = Bpref(rel=self.rel, undefined=0.0).score(judged)
        return judged.step(self, bpref, "Bpref", Bpref=bpref)
