"""Questions of a review: each function answers a question from the results of one analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.diagnosis.gates.guardrails import find_lost_topics, numbers_by_run
from judged.errors import InputError
from judged.pipelines.traces.failure_tests import SLICE_TEST
from judged.pipelines.traces.failures import FAILURES
from judged.pipelines.traces.steps import compare_with_rest
from judged.reports.report_data import embed_block, shorten_line
from judged.results import (
    ANY,
    CHANGE,
    COUNT,
    NUMBER,
    P_VALUE,
    SHARE,
    TEXT,
    Column,
    Headline,
    Table,
    columns_of,
    counted,
    listed,
)
from judged.results.decimals import decimal
from judged.results.headline import MAX_WORDS
from judged.stats.correction import adjust, clopper_pearson_intervals
from judged.stats.inputs import spread
from judged.stats.paired import paired_test
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from pathlib import Path

    from judged.comparison import Comparison
    from judged.comparison.pair import Pair
    from judged.comparison.slicing.comparison import SliceComparison, SlicePair
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
    from judged.results.headline import Status
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores


QuestionState: TypeAlias = Literal["good", "bad", "undecided", "inspect", "not tested", "no data"]
_STATUSES: dict[QuestionState, Status] = {
    "good": "better", "bad": "worse", "undecided": "same", "inspect": "info", "not tested": "unknown",
    "no data": "unknown",
}  # fmt: skip
_MAX_WORST_TOPICS = 5


@dataclass(frozen=True)
class ReviewQuestion:
    """Question of a review with its answer.

    ``state``: ``good`` and ``bad`` are answers; ``undecided``: a test without a significant result; ``inspect``: a
    result to inspect; ``not tested``: not enough data for a test; ``no data``: no input. ``finding``: the result, the
    reason for a missing test, or the option that provides the input. ``headline``: the result in short, for a page;
    None: the state and the beginning of the finding.
    """

    question: str
    state: QuestionState
    finding: str
    blocks: tuple[Block, ...] = ()
    headline: Headline | None = None

    @property
    def card(self) -> Headline:
        """Status, main number, and short sentence of the answer."""
        words = self.finding.split()
        sentence = " ".join(words[:MAX_WORDS]) + "…" if len(words) > MAX_WORDS else self.finding
        return self.headline or Headline(_STATUSES[self.state], self.state, sentence)


def answer_better(comparison: Comparison) -> ReviewQuestion:
    """Answer whether the candidate is better by the first measure, with the differences in all measures."""
    pair = comparison.measures[0].pairs[0]
    state: QuestionState = "undecided" if not pair.significant else "good" if pair.better == pair.second else "bad"
    finding = pair.sentence
    if missing := insufficiency(pair.result.n, "verdict"):
        state, finding = "not tested", f"{missing.sentence('topic')} {_difference_sentence(pair)}"
    table = embed_block(comparison.pair_table(), "measures", title="All measures")
    headline = comparison.measures[0].headline(pair)
    return ReviewQuestion("Is the candidate better?", state, finding, (table,), headline)


def _difference_sentence(pair: Pair) -> str:
    return f"{pair.second} - {pair.first}: {decimal(pair.result.difference, 4, '+')}."


def answer_worst_topics(scores: Scores, topics: Topics | None) -> ReviewQuestion:
    """Answer which topics lost most."""
    gains = scores.values[1, 0] - scores.values[0, 0]
    lower_is_better = scores.measures[0].properties.higher_is_better is False
    # Positive gains are improvements for any measure.
    gains = -gains if lower_is_better else gains
    worst = [int(i) for i in np.argsort(gains, kind="stable")[:_MAX_WORST_TOPICS] if gains[i] < 0]
    measure = scores.measure_names[0]
    if not worst:
        finding = f"{measure} is worse on no topic."
        return ReviewQuestion("Which topics lost most?", "good", finding, (), Headline("info", "no loss", finding))
    ids = [scores.query_ids[i] for i in worst]
    table = Table(
        "losses",
        (
            Column("query_id", ids, TEXT, "topic"),
            Column("query", [shorten_line(topics.text(id_) or "", 60) if topics else "" for id_ in ids], TEXT),
            *(
                Column(role, [float(scores.values[run, 0, i]) for i in worst], NUMBER, scores.run_names[run])
                for run, role in enumerate(("baseline", "candidate"))
            ),
            Column("difference", [float(scores.values[1, 0, i] - scores.values[0, 0, i]) for i in worst], CHANGE),
        ),
        f"Topics with the largest loss of {measure}",
    )
    n_worse = int((gains < 0).sum())
    finding = (
        f"On {n_worse} of {counted(len(gains), 'topic')}, {measure} is worse. The largest"
        f" {'loss is' if len(ids) == 1 else 'losses are'} on {listed(ids)}."
    )
    sentence = f"{measure} is worse on {n_worse} of {counted(len(gains), 'topic')}."
    loss = float(table.column("difference").values[0])
    headline = Headline("info", "inspect", sentence, f"{measure}, largest loss: topic {ids[0]}", loss, CHANGE)
    return ReviewQuestion("Which topics lost most?", "inspect", finding, (table,), headline)


def answer_slices(comparison: SliceComparison) -> ReviewQuestion:
    """Answer which slices improved and which got worse, after correction."""
    tested = [row for row in comparison.rows_of() if row.pair and not insufficiency(row.pair.result.n, "verdict")]
    significant = [row for row in tested if row.better]
    better = [row.slice for row in significant if row.better == row.second]
    worse = [row.slice for row in significant if row.better == row.first]
    state: QuestionState = "bad" if worse else "good" if better else "undecided"
    sentences = [f"{verb}: {listed(names)}." for verb, names in (("Improved", better), ("Worse", worse)) if names]
    finding = " ".join(sentences) or f"No significant difference on any slice ({counted(len(tested), 'slice')} tested)."
    if not tested:
        state, finding = "not tested", "No slice was tested, because all slices have too few topics."
    table = embed_block(comparison.overview(), "slices", title="Slices")
    headline = _slices_headline(state, tested, better, worse)
    return ReviewQuestion("Which slices improved or got worse?", state, finding, (table,), headline)


def _slices_headline(
    state: QuestionState, tested: Sequence[SlicePair], better: Sequence[str], worse: Sequence[str]
) -> Headline:
    """Return the numbers of better and worse slices, and the difference of the one that changed most."""
    if not tested:
        return Headline("unknown", state, "No slice was tested, because all slices have too few topics.")
    changed = [row for row in tested if row.slice in (worse or better)]
    total = counted(len(tested), "slice")
    if not changed:
        return Headline("same", "no significant difference", f"No significant difference on any of {total} tested.")
    sentence = f"Of {total} tested, {len(better)} improved and {len(worse)} got worse."
    row = max(changed, key=lambda row: abs(row.difference))
    label = f"{row.measure}, {row.second} - {row.first} on {row.slice}"
    level = row.pair.result.level if row.pair else 0.95
    status: Status = "worse" if worse else "better"
    return Headline(status, status, sentence, label, row.difference, CHANGE, row.interval, level, reference=0.0)


def answer_measure_agreement(disagreement: Disagreement) -> ReviewQuestion:
    """Answer whether two measures prefer the same system."""
    first, second = disagreement.means
    state: QuestionState = "inspect" if first.side * second.side < 0 else "good"
    finding = " ".join(disagreement.sentences[:1])
    runs = "the same run" if state == "good" else "different runs"
    sentence = f"The means of {first.measure} and {second.measure} prefer {runs}."
    headline = Headline("info", "agree" if state == "good" else "disagree", sentence)
    return ReviewQuestion("Do the measures prefer the same run?", state, finding, headline=headline)


def answer_costs(path: Path, names: Sequence[str], columns: Sequence[str]) -> ReviewQuestion:
    """Answer which costs rise: compare the means of both runs in each column of a table."""
    means = {
        column: [float(np.mean(by_run.get(name, by_run.get(role, [np.nan]))))
                 for name, role in zip(names, ("baseline", "candidate"), strict=True)]
        for column in columns
        for by_run in [numbers_by_run(path, column)]
    }  # fmt: skip
    if missing := [column for column, run_means in means.items() if not np.isfinite(run_means).all()]:
        problem = f"each of the two runs must have at least one number in the column {listed(missing)}"
        fix = f"write {listed(names)}, or `baseline` and `candidate`, in the column `run`"
        raise InputError(problem, fix=fix, path=str(path))
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
        note="means over the rows of each run in the table of costs; no significance test was done",
    )
    increases = f"Costs with a higher mean for the candidate (no significance test was done): {listed(rises)}."
    finding = increases if rises else "No cost has a higher mean for the candidate (no significance test was done)."
    sentence = f"{len(rises)} of {counted(len(means), 'cost')} have a higher mean; no significance test was done."
    headline = Headline("info", "higher" if rises else "not higher", sentence)
    return ReviewQuestion("Did any cost increase?", "bad" if rises else "good", finding, (table,), headline)


def answer_false_positives(path: Path, names: Sequence[str]) -> ReviewQuestion:
    """Answer whether the candidate has a lower share of wrong results in a review by people."""
    wrong_by_run, reviewed_by_run = (numbers_by_run(path, column) for column in ("wrong", "reviewed"))
    counts = [
        tuple(int(sum(by_run.get(name, by_run.get(role, [])))) for by_run in (wrong_by_run, reviewed_by_run))
        for name, role in zip(names, ("baseline", "candidate"), strict=True)
    ]
    if not all(0 <= wrong <= reviewed and reviewed > 0 for wrong, reviewed in counts):
        problem = "for each of the two runs, `reviewed` must be above 0, and `wrong` must be from 0 to `reviewed`"
        fix = (
            f"write {listed(names)}, or `baseline` and `candidate`, in the column `run`, and correct the numbers in the"
            " columns `wrong` and `reviewed`"
        )
        raise InputError(problem, fix=fix, path=str(path))
    wrong, reviewed = np.array(counts, dtype=np.int64).T
    # Two separate 95% intervals that do not overlap are a conservative test of the difference.
    low, high = clopper_pearson_intervals(wrong, reviewed, 0.95)
    state: QuestionState = "bad" if low[1] > high[0] else "good" if high[1] < low[0] else "undecided"
    missing = insufficiency(int(reviewed.min()), "verdict")
    state = "not tested" if missing else state
    intervals = [
        None if insufficiency(count) else (lower, upper)
        for count, lower, upper in zip(reviewed.tolist(), low.tolist(), high.tolist(), strict=True)
    ]
    columns = (
        Column("run", list(names), TEXT),
        Column("wrong", wrong.tolist(), COUNT),
        Column("reviewed", reviewed.tolist(), COUNT),
        Column("share", (wrong / reviewed).tolist(), SHARE, ci=intervals),
    )
    note = (
        "share: wrong results among the reviewed results, with a 95% CI; two shares differ significantly if their"
        " CIs do not overlap (a conservative test)"
    )
    table = Table("false_positives", columns, "Wrong results in the manual review", note=note)
    finding = (
        f"In the manual review, {wrong[1]} of {reviewed[1]} results of the candidate are wrong, and {wrong[0]} of"
        f" {reviewed[0]} results of the baseline."
    )
    finding += f" {missing.sentence('reviewed result')}" if missing else ""
    sentence = (
        f"Wrong: {wrong[1]} of {reviewed[1]} results of the candidate, {wrong[0]} of {reviewed[0]} of the baseline."
    )
    shares, label = columns[-1].values, "wrong results of the candidate"
    headline = Headline(_STATUSES[state], state, sentence, label, shares[1], SHARE, intervals[1])
    return ReviewQuestion("Are fewer results wrong in the manual review?", state, finding, (table,), headline)


def answer_lost_topics(scores: Scores) -> ReviewQuestion:
    """Answer whether the candidate returns no results for topics for which the baseline does."""
    lost = find_lost_topics(scores, [0, 1])
    finding = (
        f"The candidate returns no results for {listed(lost)}."
        if lost
        else "The candidate returns results for every topic for which the baseline returns results."
    )
    count = counted(len(lost), "topic") if lost else "no topic"
    sentence = f"The baseline returns results, and the candidate does not, for {count}."
    headline = Headline("info", "lost topics" if lost else "no lost topic", sentence)
    question = "Does the candidate return results wherever the baseline returns results?"
    return ReviewQuestion(question, "bad" if lost else "good", finding, headline=headline)


def answer_gate(gate: GateResult) -> ReviewQuestion:
    """Answer whether the candidate passes the gate."""
    states: Mapping[str, QuestionState] = {"pass": "good", "fail": "bad"}
    table = embed_block(gate.table("checks"), "gate", title="Gate")
    counts = [sum(part.status == status for part in gate.parts) for status in ("pass", "inconclusive")]
    failed = len(gate.parts) - sum(counts)
    sentence = (
        f"Of {counted(len(gate.parts), 'check')}, {counts[0]} passed, {failed} failed, {counts[1]} are inconclusive."
    )
    statuses: Mapping[str, Status] = {"pass": "better", "fail": "worse"}
    headline = Headline(statuses.get(gate.status, "unknown"), gate.status, sentence)
    return ReviewQuestion("Does the gate pass?", states.get(gate.status, "undecided"), gate.verdict, (table,), headline)


def answer_ab_test(test: ABTest, verdict: Verdict) -> ReviewQuestion:
    """Answer with the verdict of the A/B test on the candidate's arm."""
    states: Mapping[str, QuestionState] = {"ship": "good", "do not ship": "bad", "invalid": "bad"}
    table = embed_block(test.table("differences"), "users", title="Metrics of the A/B test")
    state: QuestionState = states.get(verdict.decision, "undecided")
    headline = test.headline_of(verdict)
    return ReviewQuestion("Is the candidate better in the A/B test?", state, str(verdict), (table,), headline)


def answer_interleaving(result: Interleaving) -> ReviewQuestion:
    """Answer whether users prefer the candidate's results in interleaved lists."""
    states: Mapping[str, QuestionState] = {"preferred": "good", "not preferred": "bad"}
    decision = result.decision.replace("running", "running the test")
    finding = f"{result.other}: {decision}. {' '.join(result.reasons)}"
    table = embed_block(result.table("preferences"), "preferences", title="Preferences in interleaved lists")
    state: QuestionState = states.get(result.decision, "undecided")
    question = "Do users prefer the candidate in interleaved lists?"
    return ReviewQuestion(question, state, finding, (table,), result.headline)


def answer_rollback(watch: Watch) -> ReviewQuestion:
    """Answer whether the last deployment should be rolled back."""
    question = "Should the deployment be rolled back?"
    if not watch.rollbacks:
        return ReviewQuestion(
            question, "no data", "Add the deployment to the watch file: `[[event]]` with `deploy = true`."
        )
    last = watch.rollbacks[-1]
    states: Mapping[str, QuestionState] = {"roll back": "bad", "keep": "good"}
    table = embed_block(watch.table("deployments"), "deployments", title="Deployments")
    state: QuestionState = states.get(last.decision, "undecided")
    return ReviewQuestion(question, state, str(last), (table,), last.headline)


_ALPHA = 0.05


def answer_fixed(before: Failures, after: Failures, target: str | None) -> ReviewQuestion:
    """Answer whether the kind of failure `target` was fixed, with the changes of all kinds."""
    common = [topic for topic in before.funnel.query_ids if topic in set(after.funnel.query_ids)]
    rows = [_loss_change(kind, before, after, common) for kind in before.recoverable if kind in after.recoverable]
    shifts = list(_shifts(before, after, common))
    table = Table(
        "kinds",
        (
            *columns_of(rows, ("kind", TEXT), ("n", COUNT, "topics"), ("before", NUMBER), ("after", NUMBER)),
            Column("difference", [row.difference for row in rows], CHANGE, ci=[row.interval for row in rows]),
            *columns_of(rows, ("p", P_VALUE)),
        ),
        f"Loss of {before.funnel.measure} by kind of failure",
        note="means over the topics whose loss is known before and after the change; p: paired test, not corrected for"
        " multiple tests",
    )
    blocks: tuple[Block, ...] = (table, _shifts_table(shifts)) if shifts else (table,)
    question = "Does the change fix the target failure?"
    if target is None:
        return ReviewQuestion(
            question, "inspect", "The target failure was not specified. Fix: use --target-failure KIND.", blocks
        )
    if FAILURES[target].over_topics:
        state, finding = _answer_fixed_over_topics(before, after, target, shifts)
        return ReviewQuestion(question, state, finding, blocks)
    row = next((row for row in rows if row.kind == target), None)
    if row is None:
        finding = f"{target} was not tested: {_untested_reasons(before, after, target)}."
        return ReviewQuestion(question, "not tested", finding, blocks)
    if missing := insufficiency(row.n, "verdict"):
        return ReviewQuestion(question, "not tested", f"{target} was not tested. {missing.sentence('topic')}", blocks)
    # NaN compares as False, so a missing p-value is undecided.
    state = "undecided" if not row.p <= _ALPHA else "good" if row.difference < 0 else "bad"
    change = f"changed from {decimal(row.before)} to {decimal(row.after)}"
    finding = f"The mean loss due to {target} failures {change} (p = {row.p:.2g}, n = {counted(row.n, 'topic')})."
    return ReviewQuestion(question, state, finding, blocks)


class _LossChange(NamedTuple):
    """Mean loss by a kind of failure before and after the change."""

    kind: str
    n: int
    before: float
    after: float
    difference: float
    interval: tuple[float, float] | None
    p: float


def _loss_change(kind: str, before: Failures, after: Failures, topics: Sequence[str]) -> _LossChange:
    losses: list[Floats] = []
    for result in (before, after):
        index = {topic: i for i, topic in enumerate(result.funnel.query_ids)}
        losses.append(np.asarray(result.recoverable[kind], dtype=np.float64)[[index[topic] for topic in topics]])
    has_both = ~np.isnan(losses[0] + losses[1])
    old, new = (loss[has_both] for loss in losses)
    if not len(old):
        return _LossChange(kind, 0, math.nan, math.nan, math.nan, None, math.nan)
    difference, interval, p = _paired(old, new)
    # Too few topics for a verdict: report the means, and no p-value.
    p = math.nan if insufficiency(len(old), "verdict") else p
    return _LossChange(kind, len(old), float(old.mean()), float(new.mean()), difference, interval, p)


def _paired(old: Floats, new: Floats) -> tuple[float, tuple[float, float] | None, float]:
    """Return the mean difference, its interval (None without enough data), and the p-value."""
    test = paired_test(old, new)
    interval = None if insufficiency(len(old), variance=spread(new - old)) else test.interval
    return test.difference, interval, test.p


class _Shift(NamedTuple):
    """Change of a quantity that a test over topics measures."""

    failure: str
    where: str
    quantity: str
    n: int
    detected_before: bool
    detected_after: bool
    difference: float
    interval: tuple[float, float] | None
    p: float
    adjusted: float = math.nan

    @property
    def is_lower(self) -> bool:
        """Whether the failure is significantly less than before."""
        return self.adjusted <= _ALPHA and self.difference < 0


def _shifts(before: Failures, after: Failures, topics: Sequence[str]) -> Iterator[_Shift]:
    """Test the change of each quantity that was tested before and after, on the same topics; p adjusted by Holm."""
    later = {(test.where, test.quantity): test for test in after.tests}
    pairs = [(test, later[test.where, test.quantity]) for test in before.tests if (test.where, test.quantity) in later]
    shifts: list[_Shift] = []
    for old, new in pairs:
        shared = [topic for topic in topics if topic in old.values and topic in new.values]
        old_values, new_values = (np.array([test.values[topic] for topic in shared]) for test in (old, new))
        if old.members is not None:  # a class of topics is compared with all other topics
            is_member = np.array([topic in old.members for topic in shared], dtype=np.bool_)
            (contrast,) = compare_with_rest(new_values - old_values, [is_member], level=1 - _ALPHA)
            if contrast is not None:
                test = (contrast.n, contrast.difference, contrast.interval, contrast.p)
            elif np.any(new_values != old_values):
                continue
            else:  # no topic changed
                test = (int(is_member.sum()), 0.0, None, 1.0)
        elif insufficiency(len(shared), "verdict"):
            continue
        else:
            test = (len(shared), *_paired(old_values, new_values))
        n, difference, interval, p = test
        shifts.append(
            _Shift(old.failure, old.where, old.quantity, n, old.significant, new.significant, difference, interval, p)
        )
    adjusted = adjust([shift.p for shift in shifts], "holm").tolist() if shifts else []
    yield from (shift._replace(adjusted=p) for shift, p in zip(shifts, adjusted, strict=True))


def _shifts_table(shifts: Sequence[_Shift]) -> Table:
    return Table(
        "shifts",
        (
            *columns_of(shifts, ("failure", TEXT), ("where", TEXT), ("n", COUNT, "topics")),
            *columns_of(shifts, ("detected_before", ANY, "detected before"), ("detected_after", ANY, "detected after")),
            Column("difference", [row.difference for row in shifts], CHANGE, ci=[row.interval for row in shifts]),
            Column("p", [shift.p for shift in shifts], P_VALUE, only="data"),
            *columns_of(shifts, ("adjusted", P_VALUE, "adjusted p")),
            Column("quantity", [shift.quantity for shift in shifts], TEXT, below=True),
        ),
        "Kinds of failure that are detected by tests over topics",
        labels=2,
        note="detected: whether the test in 'judged traces failures' is significant; difference: value after the"
        " change minus value before, on the same topics (for a class of topics, relative to all other topics);"
        " p-values are Holm-corrected",
    )


def _answer_fixed_over_topics(
    before: Failures, after: Failures, target: str, shifts: Sequence[_Shift]
) -> tuple[QuestionState, str]:
    """Answer whether a failure that only tests over topics detect was detected before, and is less after."""
    kinds = {target} | ({SLICE_TEST} if target == "intent" else set())
    relevant = [shift for shift in shifts if shift.failure in kinds]
    if not relevant:
        return "not tested", f"{target} was not tested: {_untested_reasons(before, after, target)}."
    subject = f"The failure '{target}'"
    # A class of topics that loses more can have other causes than its intent.
    alternatives = [kind for kind in dict.fromkeys((*before.alternatives, *after.alternatives)) if kind != target]
    is_class = target == "intent" and any(shift.where != "subtopics" for shift in relevant)
    caveat = f" Other possible causes: {listed(alternatives, 'or')}." if alternatives and is_class else ""
    detected = [shift for shift in relevant if shift.detected_before]
    if not detected:
        tests = counted(len(relevant), "test")
        return (
            "undecided",
            f"{subject} was not detected before the change ({tests}), so a fix cannot be shown.{caveat}",
        )
    if all(shift.failure == SLICE_TEST for shift in relevant):
        subject = f"A higher loss in a {SLICE_TEST}"
    changes = [f"{shift.where} {decimal(shift.difference, 3, '+')} (p = {shift.adjusted:.2g})" for shift in detected]
    is_lower, remaining = (
        all(shift.is_lower for shift in detected),
        [row.where for row in relevant if row.detected_after],
    )
    state: QuestionState = ("inspect" if is_lower else "bad") if remaining else "good" if is_lower else "undecided"
    result = f"still detected ({listed(remaining)})" if remaining else "not detected"
    finding = f"{subject} was detected before the change, and is {result} after the change."
    return state, f"{finding} Difference: {listed(changes)}.{caveat}"


def _untested_reasons(before: Failures, after: Failures, target: str) -> str:
    reasons = [row.reason for result in (before, after) for row in result.untested if row.failure == target]
    unique_reasons = "; ".join(dict.fromkeys(reason.rstrip(".") for reason in reasons))
    return unique_reasons or "no quantity was measured on enough common topics before and after the change"


MethodVerdict: TypeAlias = Literal["better", "worse", "undecided"]
_ESTIMATORS = ("doubly robust", "cascade", "whole list")
"""Off-policy estimators in order of preference: the first with an interval is used."""


@dataclass(frozen=True)
class Evidence:
    """Verdict of one method, with the measured quantity and the sample size ``n`` in ``unit``."""

    method: str
    verdict: MethodVerdict
    n: int
    unit: str
    days: float
    quantity: str


def collect_evidence(
    comparison: Comparison,
    test: tuple[ABTest, Verdict] | None,
    mixed: Interleaving | None,
    logged: OffPolicyEstimates | None,
) -> Iterator[Evidence]:
    """Yield the verdicts of the methods, from the most to the least direct measurement of users."""
    if test is not None:
        verdicts: dict[str, MethodVerdict] = {"ship": "better", "do not ship": "worse"}
        quantity = "behavior of users on all days of the test; each user sees one ranker"
        users, verdict = test[0].assignment, verdicts.get(test[1].decision, "undecided")
        yield Evidence("A/B test", verdict, users.total_users, "users", users.days, quantity)
    if mixed is not None:
        preferences: dict[str, MethodVerdict] = {"preferred": "better", "not preferred": "worse"}
        quantity = "clicks on lists that mix the results of both rankers; later behavior is not measured"
        preference = preferences.get(mixed.decision, "undecided")
        yield Evidence("interleaving", preference, mixed.users, "users", math.nan, quantity)
    if logged is not None:
        rows = {row.estimator: row for row in logged.rows}
        # Which estimator applies depends on the propensities in the log.
        row = next((rows[name] for name in _ESTIMATORS if rows[name].difference_ci), rows[_ESTIMATORS[0]])
        quantity = "clicks on lists that were not shown, estimated under the assumptions of the estimator"
        verdict = "undecided" if insufficiency(logged.users, "verdict") else _interval_verdict(row.difference_ci)
        yield Evidence("off-policy", verdict, logged.users, "users", math.nan, quantity)
    pair = comparison.measures[0].pairs[0]
    is_tested = pair.significant and not insufficiency(pair.result.n, "verdict")
    offline: MethodVerdict = "undecided" if not is_tested else "better" if pair.better == pair.second else "worse"
    quantity = (
        f"{comparison.measures[0].measure} from relevance judgments; user behavior and unjudged documents"
        " are not measured"
    )
    yield Evidence("offline", offline, pair.result.n, "topics", math.nan, quantity)


def _interval_verdict(ci: tuple[float, float] | None) -> MethodVerdict:
    if ci is None or ci[0] <= 0 <= ci[1]:
        return "undecided"
    return "better" if ci[0] > 0 else "worse"


def answer_agreement(evidence: Sequence[Evidence]) -> ReviewQuestion:
    """Answer whether the methods with a verdict agree."""
    question = "Do the offline and the online evaluation agree?"
    # The rows are sorted by how directly a method measures users.
    decided = [row for row in evidence if row.verdict != "undecided"]
    table = Table(
        "evidence",
        (
            *columns_of(evidence, ("method", TEXT), ("verdict", TEXT)),
            *columns_of(evidence, ("n", COUNT), ("unit", TEXT), ("days", COUNT), ("quantity", TEXT)),
        ),
        "Verdict of each evaluation method",
        note="methods are sorted by how directly the method measures the behavior of users; interleaving and A/B tests"
        " with anytime-valid intervals may be evaluated on any day of the test",
    )
    better, worse = (listed([row.method for row in decided if row.verdict == side]) for side in ("better", "worse"))
    if len(decided) < 2:
        subject = f"Only one evaluation method ({decided[0].method}) is" if decided else "No evaluation method is"
        verdict = f": the candidate is {decided[0].verdict}" if decided else ""
        finding = f"{subject} conclusive{verdict}."
        return ReviewQuestion(question, "undecided", finding, (table,), Headline("unknown", "undecided", finding))
    if better and worse:
        # The rows are sorted by how directly a method measures users.
        most_direct = f"Of these evaluation methods, {decided[0].method} measures the behavior of users most directly"
        finding = (
            f"The evaluation methods disagree: the candidate is better in {better}, and worse in {worse}."
            f" {most_direct}."
        )
        sentence = f"The candidate is better in {better}, and worse in {worse}."
        return ReviewQuestion(question, "inspect", finding, (table,), Headline("info", "disagree", sentence))
    finding = f"All conclusive evaluations agree that the candidate is {decided[0].verdict}: {better or worse}."
    return ReviewQuestion(question, "good", finding, (table,), Headline("info", "agree", finding))
