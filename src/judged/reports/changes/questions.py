"""Questions of a review: each function answers a question from the results of one analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.diagnosis.gates.guardrails import find_lost_topics, numbers_by_run
from judged.errors import InputError
from judged.pipelines.traces.funnel_answer import SCORE, format_step
from judged.reports.report_data import embed_block, join_names, shorten_line
from judged.results import (
    CHANGE,
    COUNT,
    NUMBER,
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
from judged.stats.correction import clopper_pearson_intervals
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
    from judged.pipelines.traces import TraceDiff
    from judged.pipelines.traces.settings import ChangedSetting
    from judged.results import Block
    from judged.results.headline import Status
    from judged.scoring.evaluation import Scores


QuestionState: TypeAlias = Literal["good", "bad", "undecided", "inspect", "not tested", "no data"]
_STATUSES: dict[QuestionState, Status] = {
    "good": "better",
    "bad": "worse",
    "undecided": "same",
    "inspect": "info",
    "not tested": "unknown",
    "no data": "unknown",
}
_MAX_WORST_TOPICS = 5  # listed in the finding and in the short table


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


def answer_settings(changed: Sequence[ChangedSetting]) -> ReviewQuestion:
    """Answer which settings changed."""
    question = "Which settings changed?"
    if not changed:
        return ReviewQuestion(question, "inspect", "No setting changed.")
    columns = columns_of(changed, ("setting", TEXT), ("before", TEXT), ("after", TEXT))
    table = Table("settings", columns, "Changed settings", note="-: the setting is missing")
    names = join_names([row.setting for row in changed])
    return ReviewQuestion(question, "inspect", f"{counted(len(changed), 'setting')} changed: {names}.", (table,))


def answer_steps(diff: TraceDiff) -> ReviewQuestion:
    """Answer which steps of the pipeline changed the score."""
    parts = [change for change in diff.changes if change.is_overall and change.part != SCORE]
    signs = {change.result.difference > 0 for change in parts if change.significant}
    is_tested = any(not math.isnan(change.result.p) for change in parts)
    state: QuestionState = "not tested" if not is_tested else "undecided" if not signs else "inspect"
    if len(signs) == 1:
        state = "good" if True in signs else "bad"
    steps = embed_block(diff.table("changes"), "steps", title="Change by step", only="")
    stages = embed_block(diff.table("stages"), "stages", title="Stages", only="")
    return ReviewQuestion("Which steps changed the score?", state, " ".join(diff.sentences), (steps, stages))


def answer_worst_topics(scores: Scores, topics: Topics | None, diff: TraceDiff | None = None) -> ReviewQuestion:
    """Answer which topics lost, with the change by step if there are traces."""
    gains = scores.values[1, 0] - scores.values[0, 0]
    lower_is_better = scores.measures[0].properties.higher_is_better is False
    # Positive gains are improvements for any measure.
    gains = -gains if lower_is_better else gains
    worst = [int(i) for i in np.argsort(gains, kind="stable") if gains[i] < 0]
    measure = scores.measure_names[0]
    ids = [scores.query_ids[i] for i in worst]
    steps = (
        {}
        if diff is None
        else {
            name: dict(zip(diff.other.query_ids, gain.tolist(), strict=True))
            for name, gain in diff.gains.items()
            if name != SCORE
        }
    )
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
            *(
                Column(f"change_{name}", [by_topic.get(id_, math.nan) for id_ in ids], CHANGE, format_step(name))
                for name, by_topic in steps.items()
            ),
        ),
        f"Topics with a loss of {measure}",
    )
    question, largest = "Which topics lost most?", ids[:_MAX_WORST_TOPICS]
    if not worst:
        finding = f"{measure} is worse on no topic."
        tables = (replace(table, folded=True),)
        return ReviewQuestion(question, "good", finding, tables, Headline("info", "no loss", finding))
    tables = (table,)
    if len(ids) > len(largest):
        title = f"Topics with the largest loss of {measure}"
        first = replace(table.take(range(len(largest))), name="largest_losses", title=title, only="people")
        tables = (first, replace(table, folded=True))
    finding = (
        f"On {len(worst)} of {counted(len(gains), 'topic')}, {measure} is worse. The largest"
        f" {'loss is' if len(largest) == 1 else 'losses are'} on {listed(largest)}."
    )
    sentence = f"{measure} is worse on {len(worst)} of {counted(len(gains), 'topic')}."
    loss = float(table.column("difference").values[0])
    headline = Headline("info", "inspect", sentence, f"{measure}, largest loss: topic {ids[0]}", loss, CHANGE)
    return ReviewQuestion(question, "inspect", finding, tables, headline)


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
        column: [
            float(np.mean(by_run.get(name, by_run.get(role, [np.nan]))))
            for name, role in zip(names, ("baseline", "candidate"), strict=True)
        ]
        for column in columns
        for by_run in [numbers_by_run(path, column)]
    }
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
