"""The questions of a review: what each needs, what was found, and how it is filled in where nothing was given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.diagnosis.gates.guardrails import find_lost_topics, numbers_by_run
from judged.errors import InputError
from judged.pipelines.traces.failure_tests import CLASS
from judged.pipelines.traces.failures import FAILURES
from judged.pipelines.traces.steps import compare_with_rest
from judged.reports.material import quoted, shortened
from judged.results import ANY, CHANGE, COUNT, NUMBER, P_VALUE, SHARE, TEXT, Column, Table, columns_of, counted, listed
from judged.results.decimals import decimal
from judged.stats.correction import adjust, clopper_pearson_intervals
from judged.stats.inputs import spread
from judged.stats.paired import paired_test
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from pathlib import Path

    from judged.comparison import Comparison
    from judged.comparison.pair import Pair
    from judged.comparison.slicing.comparison import SliceComparison
    from judged.data.topics import Topics
    from judged.diagnosis.disagreement.answer import Disagreement
    from judged.diagnosis.gates import GateResult
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.ab_tests.differences import Verdict
    from judged.online.clicks.off_policy_estimates import OffPolicyEstimates
    from judged.online.interleaving_analysis.analysis import Interleaving
    from judged.online.watch.watch import Watch
    from judged.pipelines.traces import Failures
    from judged.results import Block
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores


State: TypeAlias = Literal["good", "bad", "undecided", "look", "not tested", "blank"]
_WORST = 5


@dataclass(frozen=True)
class Question:
    """One row of the sheet.

    ``state``: ``good`` and ``bad`` are answers; ``undecided``: a test shows neither; ``look``: there is something to
    look at; ``not tested``: the data do not support a test, so that nothing is known; ``blank``: nothing was given.
    ``said``: what was found, or why nothing was tested, or, of a blank, the option that fills it.
    """

    question: str
    state: State
    said: str
    blocks: tuple[Block, ...] = ()


def is_better(compared: Comparison) -> Iterator[Question]:
    """Say of the first measure whether the candidate is better, and of all what they differ by."""
    pairs = [pair for measure in compared.measures for pair in measure.pairs]
    first = pairs[0]
    state: State = "undecided" if not first.significant else "good" if first.better == first.second else "bad"
    said = first.sentence
    if lacking := insufficiency(first.result.n, "verdict"):
        state, said = "not tested", f"{lacking.sentence('topic')} {_difference(first)}"
    table = quoted(compared.pair_table(), "measures", title="All measures")
    yield Question("Is it better?", state, said, (table,))


def _difference(pair: Pair) -> str:
    return f"{pair.second} - {pair.first}: {decimal(pair.result.difference, 4, '+')}."


def worst(scores: Scores, topics: Topics | None) -> Question:
    """Name the topics that lost most: to look at first."""
    gains = scores.values[1, 0] - scores.values[0, 0]
    lower = scores.measures[0].properties.higher_is_better is False
    gains = -gains if lower else gains
    order = [int(at) for at in np.argsort(gains, kind="stable")[:_WORST] if gains[at] < 0]
    measure = scores.measure_names[0]
    if not order:
        return Question("What to look at first?", "good", f"No topic loses {measure}.")
    ids = [scores.query_ids[at] for at in order]
    table = Table(
        "losses",
        (
            Column("query_id", ids, TEXT, "topic"),
            Column("query", [shortened(topics.text(one) or "", 60) if topics else "" for one in ids], TEXT),
            *(
                Column(role, [float(scores.values[run, 0, at]) for at in order], NUMBER, scores.run_names[run])
                for run, role in enumerate(("baseline", "candidate"))
            ),
            Column("difference", [float(scores.values[1, 0, at] - scores.values[0, 0, at]) for at in order], CHANGE),
        ),
        f"Topics that lose most {measure}",
    )
    said = f"{int((gains < 0).sum())} of {counted(len(gains), 'topic')} lose {measure}, most of all {listed(ids)}."
    return Question("What to look at first?", "look", said, (table,))


def slices(found: SliceComparison) -> Question:
    """Say which slices improved and which paid, after correction."""
    tested = [row for row in found.rows_of() if row.pair and not insufficiency(row.pair.result.n, "verdict")]
    rows = [row for row in tested if row.better]
    better = [row.slice for row in rows if row.better == row.second]
    worse = [row.slice for row in rows if row.better == row.first]
    said = [f"{what}: {listed(names)}." for what, names in (("Improved", better), ("Paid", worse)) if names]
    state: State = "bad" if worse else "good" if better else "undecided"
    shown = " ".join(said) or f"No slice is shown to ({counted(len(tested), 'slice')} tested)."
    if not tested:
        state, shown = "not tested", "No slice has enough topics to be tested."
    table = quoted(found.overview(), "slices", title="By slice")
    return Question("Which slice improved, which paid?", state, shown, (table,))


def disagreement(found: Disagreement) -> Question:
    """Say whether two measures prefer different systems, over all topics and by class."""
    first, second = found.means
    apart = first.side * second.side < 0
    return Question("Do measures agree?", "look" if apart else "good", " ".join(found.sentences[:1]))


def costs(path: Path, names: Sequence[str], columns: Sequence[str]) -> Question:
    """Set costs of both runs side by side: the mean of each column of a table of runs."""
    means = {
        column: [float(np.mean(known.get(name, known.get(role, [np.nan]))))
                 for name, role in zip(names, ("baseline", "candidate"), strict=True)]
        for column in columns
        for known in [numbers_by_run(path, column)]
    }  # fmt: skip
    if unknown := [column for column, both in means.items() if not np.isfinite(both).all()]:
        fix = f"name {listed(names)} in its column run, or baseline and candidate"
        raise InputError(f"{listed(unknown)} of a run is not there", fix=fix, path=str(path))
    rises = [column for column, (old, new) in means.items() if new > old]
    table = Table(
        "costs",
        (
            Column("cost", list(means), TEXT),
            Column("baseline", [old for old, _ in means.values()], NUMBER),
            Column("candidate", [new for _, new in means.values()], NUMBER),
            Column("relative", [new / old - 1 if old else np.nan for old, new in means.values()], SHARE, "change"),
        ),
        "Costs",
        note="means over the rows of a run, as they stand: nothing is tested",
    )
    said = f"{listed(rises)} {'rises' if len(rises) == 1 else 'rise'}." if rises else "No cost rises."
    return Question("Which cost rises?", "bad" if rises else "good", said, (table,))


def false_positives(path: Path, names: Sequence[str]) -> Question:
    """Set the shares of reviewed results that were wrong side by side."""
    wrong, reviewed = (numbers_by_run(path, column) for column in ("wrong", "reviewed"))
    counts = [
        tuple(int(sum(known.get(name, known.get(role, [])))) for known in (wrong, reviewed))
        for name, role in zip(names, ("baseline", "candidate"), strict=True)
    ]
    if not all(0 <= bad <= of and of > 0 for bad, of in counts):
        fix = f"name {listed(names)} in its column run, and give 0 <= wrong <= reviewed"
        raise InputError("no number of reviewed results, or more wrong than reviewed", fix=fix, path=str(path))
    bad, sizes = (np.array([one[side] for one in counts], dtype=np.int64) for side in (0, 1))
    low, high = clopper_pearson_intervals(bad, sizes, 0.95)
    shares = [one / of if of else np.nan for one, of in counts]
    state: State = "bad" if low[1] > high[0] else "good" if high[1] < low[0] else "undecided"
    lacking = insufficiency(min(of for _, of in counts), "verdict")
    state = "not tested" if lacking else state
    ends = [
        None if insufficiency(of) else (least, most)
        for (_, of), least, most in zip(counts, low.tolist(), high.tolist(), strict=True)
    ]
    columns = (
        Column("run", list(names), TEXT),
        Column("wrong", bad.tolist(), COUNT),
        Column("reviewed", sizes.tolist(), COUNT),
        Column("share", shares, SHARE, ci=ends),
    )
    note = "95% intervals of each share; state by whether they overlap, which is cautious"
    table = Table("false_positives", columns, "False positives in review", note=note)
    said = f"{bad[1]} of {sizes[1]}, was {bad[0]} of {sizes[0]}."
    said += f" {lacking.sentence('reviewed result')}" if lacking else ""
    return Question("Are fewer results wrong in review?", state, said, (table,))


def nothing_found(scores: Scores) -> Question:
    """Say for how many topics each run returns nothing."""
    lost = find_lost_topics(scores, [0, 1])
    said = f"Nothing is returned any more for {listed(lost)}." if lost else "No topic lost all its results."
    return Question("Are there more queries without results?", "bad" if lost else "good", said)


def gated(found: GateResult) -> Question:
    """Give the gate's decision."""
    states: Mapping[str, State] = {"pass": "good", "fail": "bad"}
    table = quoted(found.table("checks"), "gate", title="Gate")
    return Question("Does the gate let it pass?", states.get(found.status, "undecided"), found.verdict, (table,))


def tested(found: ABTest, verdict: Verdict) -> Question:
    """Give the verdict of the A/B test of the candidate's arm."""
    states: Mapping[str, State] = {"ship": "good", "do not ship": "bad", "broken": "bad"}
    table = quoted(found.table("differences"), "users", title="What differs for users")
    return Question("Do users fare better?", states.get(verdict.decision, "undecided"), str(verdict), (table,))


def preferred(found: Interleaving) -> Question:
    """Give what mixed lists say."""
    states: Mapping[str, State] = {"preferred": "good", "not preferred": "bad"}
    said = f"{found.other}: {found.decision}. {' '.join(found.reasons)}"
    table = quoted(found.table("preferences"), "preferences", title="What clicks prefer in mixed lists")
    return Question("Do users prefer it in one list?", states.get(found.decision, "undecided"), said, (table,))


def rolled_back(found: Watch) -> Question:
    """Say of the last deployment whether it should be taken back."""
    question = "Should it be taken back?"
    if not found.rollbacks:
        return Question(question, "blank", "Name the deployment in the watch's file: [[event]], deploy = true.")
    last = found.rollbacks[-1]
    states: Mapping[str, State] = {"roll back": "bad", "keep": "good"}
    table = quoted(found.table("deployments"), "deployments", title="Deployments")
    return Question(question, states.get(last.decision, "undecided"), str(last), (table,))


_ALPHA = 0.05


def mended(before: Failures, after: Failures, meant: str | None) -> Question:
    """Test for each kind of failure whether less is lost by it, and whether the one that was meant was mended."""
    both = [topic for topic in before.funnel.query_ids if topic in set(after.funnel.query_ids)]
    rows = [_loss_change(kind, before, after, both) for kind in before.recoverable if kind in after.recoverable]
    shifts = list(_shifts(before, after, both))
    table = Table(
        "kinds",
        (
            *columns_of(rows, ("kind", TEXT), ("n", COUNT, "topics"), ("before", NUMBER), ("after", NUMBER)),
            Column("difference", [row.difference for row in rows], CHANGE, ci=[row.interval for row in rows]),
            *columns_of(rows, ("p", P_VALUE)),
        ),
        f"What is lost of {before.funnel.measure}, by kind of failure",
        note="means over the topics of which both losses are known; p of a paired test, each for itself",
    )
    blocks: tuple[Block, ...] = (table, _shifts_table(shifts)) if shifts else (table,)
    question = "Did it mend what it was meant to?"
    if meant is None:
        return Question(question, "look", "No kind of failure was named.", blocks)
    if FAILURES[meant].over_topics:
        state, said = _mended_over_topics(before, after, meant, shifts)
        return Question(question, state, said, blocks)
    row = next((row for row in rows if row.kind == meant), None)
    if row is None:
        said = f"{meant} was not tested: {_reasons(before, after, meant)}."
        return Question(question, "not tested", said, blocks)
    if lacking := insufficiency(row.n, "verdict"):
        return Question(question, "not tested", f"{meant} was not tested. {lacking.sentence('topic')}", blocks)
    state = "undecided" if not row.p <= _ALPHA else "good" if row.difference < 0 else "bad"
    n = counted(row.n, "topic")
    said = f"{meant} loses {decimal(row.after)} where it lost {decimal(row.before)} (p = {row.p:.2g}, {n})."
    return Question(question, state, said, blocks)


class _LossChange(NamedTuple):
    """What a kind of failure loses before and after."""

    kind: str
    n: int
    before: float
    after: float
    difference: float
    interval: tuple[float, float] | None
    p: float


def _loss_change(kind: str, before: Failures, after: Failures, topics: Sequence[str]) -> _LossChange:
    sides: list[Floats] = []
    for one in (before, after):
        place = {topic: at for at, topic in enumerate(one.funnel.query_ids)}
        sides.append(np.asarray(one.recoverable[kind], dtype=np.float64)[[place[topic] for topic in topics]])
    known = ~np.isnan(sides[0] + sides[1])
    old, new = (side[known] for side in sides)
    if not len(old):
        return _LossChange(kind, 0, math.nan, math.nan, math.nan, None, math.nan)
    difference, interval, p = _paired(old, new)
    p = math.nan if insufficiency(len(old), "verdict") else p
    return _LossChange(kind, len(old), float(old.mean()), float(new.mean()), difference, interval, p)


def _paired(old: Floats, new: Floats) -> tuple[float, tuple[float, float] | None, float]:
    """Return the mean difference, its interval where there is enough data for one, and the p-value."""
    test = paired_test(old, new)
    interval = None if insufficiency(len(old), variance=spread(new - old)) else test.interval
    return test.difference, interval, test.p


class _Shift(NamedTuple):
    """How far what a test over topics measures changed."""

    failure: str
    where: str
    what: str
    n: int
    found_before: bool
    found_after: bool
    difference: float
    interval: tuple[float, float] | None
    p: float
    adjusted: float = math.nan

    @property
    def is_less(self) -> bool:
        """Whether it is shown to be less of a failure than before."""
        return self.adjusted <= _ALPHA and self.difference < 0


def _shifts(before: Failures, after: Failures, topics: Sequence[str]) -> Iterator[_Shift]:
    """Test the change of each quantity that is tested before and after, topic by topic; p by Holm."""
    later = {(test.where, test.what): test for test in after.tests}
    pairs = [(test, later[test.where, test.what]) for test in before.tests if (test.where, test.what) in later]
    made: list[_Shift] = []
    for old, new in pairs:
        shared = [topic for topic in topics if topic in old.values and topic in new.values]
        one, two = (np.array([test.values[topic] for topic in shared]) for test in (old, new))
        if old.members is not None:
            mask = np.array([topic in old.members for topic in shared], dtype=np.bool_)
            (rest,) = compare_with_rest(two - one, [mask], level=1 - _ALPHA)
            if rest is not None:
                tested = (rest.n, rest.difference, rest.interval, rest.p)
            elif np.any(two != one):
                continue
            else:  # no topic changed
                tested = (int(mask.sum()), 0.0, None, 1.0)
        elif insufficiency(len(shared), "verdict"):
            continue
        else:
            tested = (len(shared), *_paired(one, two))
        n, difference, interval, p = tested
        made.append(_Shift(old.failure, old.where, old.what, n, old.found, new.found, difference, interval, p))
    adjusted = adjust([one.p for one in made], "holm").tolist() if made else []
    yield from (one._replace(adjusted=p) for one, p in zip(made, adjusted, strict=True))


def _shifts_table(shifts: Sequence[_Shift]) -> Table:
    return Table(
        "shifts",
        (
            *columns_of(shifts, ("failure", TEXT), ("where", TEXT), ("n", COUNT, "topics")),
            *columns_of(shifts, ("found_before", ANY, "shown before"), ("found_after", ANY, "shown after")),
            Column("difference", [one.difference for one in shifts], CHANGE, ci=[one.interval for one in shifts]),
            Column("p", [one.p for one in shifts], P_VALUE, only="data"),
            *columns_of(shifts, ("adjusted", P_VALUE, "adjusted p")),
            Column("what", [one.what for one in shifts], TEXT, "change of", below=True),
        ),
        "Kinds that show over topics",
        labels=2,
        note="shown: by the tests of 'judged traces failures'; change: after less before on the same topics, of classes"
        " against all other topics; p by Holm",
    )


def _mended_over_topics(before: Failures, after: Failures, meant: str, shifts: Sequence[_Shift]) -> tuple[State, str]:
    """Say whether a kind that shows over topics only was mended: shown before, and less of it after."""
    kinds = {meant} | ({CLASS} if meant == "intent" else set())
    own = [one for one in shifts if one.failure in kinds]
    if not own:
        return "not tested", f"{meant} was not tested: {_reasons(before, after, meant)}."
    also = [one for one in dict.fromkeys((*before.alternatives, *after.alternatives)) if one != meant]
    classes = meant == "intent" and any(one.where != "subtopics" for one in own)
    doubt = f" It could also be {listed(also, 'or')}." if also and classes else ""
    shown = [one for one in own if one.found_before]
    if not shown:
        before_said = f"Before, {meant} is not shown ({counted(len(own), 'test')})"
        return "undecided", f"{before_said}, so nothing shows it mended.{doubt}"
    if all(one.failure == CLASS for one in own):
        meant = f"a loss of a {CLASS}"
    named = listed([f"{one.where} {decimal(one.difference, 3, '+')} (p = {one.adjusted:.2g})" for one in shown])
    less, still = all(one.is_less for one in shown), [one.where for one in own if one.found_after]
    state: State = ("look" if less else "bad") if still else "good" if less else "undecided"
    after_said = f"after, it is still shown ({listed(still)})" if still else "after, it is not shown"
    return state, f"Before, {meant} is shown; {after_said}. Change: {named}.{doubt}"


def _reasons(before: Failures, after: Failures, meant: str) -> str:
    """Say why a kind was not tested, before or after."""
    reasons = [one.reason for side in (before, after) for one in side.untested if one.failure == meant]
    return "; ".join(dict.fromkeys(reason.rstrip(".") for reason in reasons)) or (
        "there are not the same tests before and after"
    )


Says: TypeAlias = Literal["better", "worse", "undecided"]
_PREFERRED = ("doubly robust", "cascade", "whole list")
"""Estimators in the order in which they are taken; which are right depends on the log's propensities."""


@dataclass(frozen=True)
class Evidence:
    """What one method says: ``about`` is what it measures, ``number`` of ``units`` what it took."""

    method: str
    says: Says
    number: int
    units: str
    days: float
    about: str


def told(
    compared: Comparison,
    test: tuple[ABTest, Verdict] | None,
    mixed: Interleaving | None,
    logged: OffPolicyEstimates | None,
) -> Iterator[Evidence]:
    """Give the methods, from what is nearest to users to what is farthest."""
    if test is not None:
        says: dict[str, Says] = {"ship": "better", "do not ship": "worse"}
        about = "what users do over the days of the test, with one ranker each"
        users, verdict = test[0].assignment, test[1]
        yield Evidence(
            "A/B test", says.get(verdict.decision, "undecided"), users.total_users, "users", users.days, about
        )
    if mixed is not None:
        prefers: dict[str, Says] = {"preferred": "better", "not preferred": "worse"}
        about = "which ranker's results are clicked more in one list; nothing that follows"
        decided = prefers.get(mixed.decision, "undecided")
        yield Evidence("interleaving", decided, mixed.users, "users", math.nan, about)
    if logged is not None:
        rows = {row.estimator: row for row in logged.rows}
        row = next((rows[name] for name in _PREFERRED if rows[name].difference_ci), rows[_PREFERRED[0]])
        about = "clicks on lists that nobody saw, under the assumptions of its estimators"
        logs = "undecided" if insufficiency(logged.users, "verdict") else _side(row.difference_ci)
        yield Evidence("off-policy", logs, logged.users, "users", math.nan, about)
    pair = compared.measures[0].pairs[0]
    side: Says = "undecided" if not pair.significant else "better" if pair.better == pair.second else "worse"
    side = "undecided" if insufficiency(pair.result.n, "verdict") else side
    about = f"{compared.measures[0].measure} by judgments; no user, and no document that is not judged"
    yield Evidence("offline", side, pair.result.n, "topics", math.nan, about)


def _side(ci: tuple[float, float] | None) -> Says:
    if ci is None or ci[0] <= 0 <= ci[1]:
        return "undecided"
    return "better" if ci[0] > 0 else "worse"


def agreement(found: Sequence[Evidence]) -> Question:
    """Say whether those that decide agree; where they do not, the first of them is nearest to users."""
    question = "Do offline and online agree?"
    decided = [one for one in found if one.says != "undecided"]
    table = Table(
        "evidence",
        (
            *columns_of(found, ("method", TEXT), ("says", TEXT), ("number", COUNT, "took"), ("units", TEXT, "of")),
            *columns_of(found, ("days", COUNT), ("about", TEXT)),
        ),
        "What each method says",
        note="from what is nearest to users to what is farthest; interleaving and A/B may be looked at on any day",
    )
    names = {side: listed([one.method for one in decided if one.says == side]) for side in ("better", "worse")}
    if len(decided) < 2:
        only = f"Only {decided[0].method} decides: {decided[0].says}." if decided else "None decides."
        return Question(question, "undecided", only, (table,))
    if names["better"] and names["worse"]:
        nearest = f"{decided[0].method} is nearest to users"
        return Question(question, "look", f"{names['better']} say better, {names['worse']} worse; {nearest}.", (table,))
    return Question(question, "good", f"{listed([one.method for one in decided])} say {decided[0].says}.", (table,))
