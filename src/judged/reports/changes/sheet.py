"""`review`: answers to the questions about a change of a system, and the decision to ship it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.comparison.slicing.derived import read_topic_attributes
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.diagnosis.gates import gate
from judged.errors import InputError
from judged.pipelines.traces.diff import diff
from judged.pipelines.traces.failures import FAILURES, failures
from judged.pipelines.traces.settings import changed_settings, read_settings, recorded_settings
from judged.reports import report
from judged.reports.changes.failure_changes import answer_fixed, answer_kinds, failure_changes
from judged.reports.changes.questions import (
    ReviewQuestion,
    answer_ab_test,
    answer_agreement,
    answer_better,
    answer_costs,
    answer_false_positives,
    answer_gate,
    answer_interleaving,
    answer_lost_topics,
    answer_measure_agreement,
    answer_rollback,
    answer_settings,
    answer_slices,
    answer_steps,
    answer_worst_topics,
    collect_evidence,
)
from judged.results import TEXT, Answer, Headline, Sentences, Table, columns_of, counted, listed
from judged.results.blocks import Note
from judged.results.spelling import one_of
from judged.scoring.evaluation.inputs import run_pair

if TYPE_CHECKING:
    from judged.comparison import Comparison
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.run import Run
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.ab_tests.differences import Verdict
    from judged.online.clicks.off_policy_estimates import OffPolicyEstimates
    from judged.online.interleaving_analysis.analysis import Interleaving
    from judged.online.watch.watch import Watch
    from judged.pipelines.traces import Traces
    from judged.results import Block
    from judged.scoring.evaluation.facts import Provenance

ChangeDecision: TypeAlias = Literal["ship", "do not ship", "undecided"]
# Answers that decide on a release. All other answers explain, and never block it.
_DECISIVE = {
    "Does the gate pass?": "the gate",
    "Is the candidate better in the A/B test?": "the A/B test",
    "Should the deployment be rolled back?": "monitoring",
}
_INPUT_OPTIONS = {
    "Which settings changed?": "Add files of settings: `--settings BEFORE AFTER`. Or add traces that record settings.",
    "Which steps changed the score?": "Add traces: `--traces BASELINE CANDIDATE`.",
    "Which kinds of failure changed?": "Add traces: `--traces BASELINE CANDIDATE`.",
    "Does the change fix the target failure?": "Add traces: `--traces BASELINE CANDIDATE --target-failure KIND`.",
    "Which slices improved or got worse?": "Add query texts or attributes of topics: `--queries FILE` or `--attributes"
    " FILE`.",
    "Are fewer results wrong in the manual review?": "Add a table with the number of wrong results and"
    " the number of reviewed results: `--reviewed FILE`.",
    "Did any cost increase?": "Add a table with a column for each cost: `--costs FILE --cost COLUMN`.",
    "Does the gate pass?": "Create a configuration with `judged gate init`, and add `--gate FILE`.",
    "Do users prefer the candidate in interleaved lists?": "Add a log of interleaved lists: `--interleaved FILE`.",
    "Is the candidate better in the A/B test?": "Add the log of an A/B test: `--log FILE --arm NAME`.",
    "Should the deployment be rolled back?": "Add the configuration file of 'judged watch' that contains"
    " the deployment of the candidate: `--watch FILE`.",
}


@dataclass(frozen=True, eq=False, repr=False)
class Change(Answer):
    """Review of a change: questions with their answers.

    Attributes
    ----------
    baseline, candidate : str
        Names of the runs.
    questions : tuple of ReviewQuestion
        Questions with their answers, or with the option that provides the input.
    notes : tuple of Note
    """

    kind: ClassVar[str] = "change"
    main: ClassVar[str] = "questions"

    baseline: str
    candidate: str
    questions: tuple[ReviewQuestion, ...]
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Names of the two runs."""
        return f"Change from {self.baseline} to {self.candidate}"

    @property
    def decision(self) -> ChangeDecision:
        """Decision to ship: "ship" if a decisive answer is good and none is bad.

        Gate, A/B test, and watch are decisive; all other answers explain.
        """
        states = [row.state for row in self.questions if row.question in _DECISIVE]
        return "do not ship" if "bad" in states else "ship" if "good" in states else "undecided"

    @property
    def headline(self) -> Headline:
        """Decision, with the number of the first question that it rests on, or of the first question."""
        status, state = {"ship": ("better", "good"), "do not ship": ("worse", "bad")}.get(
            self.decision, ("unknown", "")
        )
        rows = [row for row in self.questions if row.question in _DECISIVE and row.state == state]
        if status == "worse" and all(row.card.status == "unknown" for row in rows):  # an invalid test
            status = "unknown"
        sources = listed([_DECISIVE[row.question] for row in rows])
        verb, do = ("is", "does") if len(rows) == 1 else ("are", "do")
        sentence = {
            "ship": f"{sources[:1].upper()}{sources[1:]} {verb} favorable to {self.candidate}; none is unfavorable.",
            "do not ship": f"{sources[:1].upper()}{sources[1:]} {do} not support {self.candidate}.",
            "undecided": "Neither a gate, an A/B test, nor monitoring of a deployment gives a decision.",
        }[self.decision]
        return replace((rows or self.questions)[0].card, status=status, word=self.decision, sentence=sentence)

    @property
    def cards(self) -> tuple[ReviewQuestion, ...]:
        """Questions in the order of a page: those without data are last."""
        return tuple(sorted(self.questions, key=lambda row: row.state == "no data"))

    def blocks(self) -> tuple[Block, ...]:
        """Return the decision, the questions, and the tables behind the answers."""
        rows = self.questions
        columns = columns_of(rows, ("question", TEXT), ("state", TEXT), ("finding", TEXT))
        return (
            Sentences((self._decision_sentence(),)),
            Sentences(tuple(f"{row.question} [{row.state}] {row.finding}" for row in rows), "answers"),
            Table("questions", columns, only="data"),
            *(block for row in rows for block in row.blocks),
        )

    def facts(self) -> Mapping[str, Any]:
        """Return the metadata: runs, decision, and open questions."""
        states = ("no data", "not tested")
        no_data, untested = ([row.question for row in self.questions if row.state == state] for state in states)
        names = {"baseline": self.baseline, "candidate": self.candidate}
        return {**names, "decision": self.decision, "no_data": no_data, "not_tested": untested}

    def _decision_sentence(self) -> str:
        failed = [f'"{row.question}"' for row in self.questions if row.question in _DECISIVE and row.state == "bad"]
        no_data, untested = (sum(row.state == state for row in self.questions) for state in ("no data", "not tested"))
        unanswered = f" {no_data} of {len(self.questions)} questions have no data." if no_data else ""
        unanswered += f" {counted(untested, 'question')} could not be tested." if untested else ""
        if self.decision == "do not ship":
            noun = "Question" if len(failed) == 1 else "Questions"
            return f"Do not ship {self.candidate}. {noun} with an unfavorable answer: {', '.join(failed)}.{unanswered}"
        if self.decision == "ship":
            return (
                f"Ship {self.candidate}: the gate, the A/B test, and 'judged watch' give no unfavorable"
                f" result.{unanswered}"
            )
        return f"Undecided: neither the gate, the A/B test, nor 'judged watch' gives a decision.{unanswered}"


def review(
    qrels: Any,
    baseline: Any = None,
    candidate: Any = None,
    measures: Any = None,
    *,
    queries: Any = None,
    attributes: Any = None,
    by: str | Iterable[str] | None = None,
    config: Any = None,
    comparison: Comparison | None = None,
    traces: tuple[Traces, Traces] | None = None,
    settings: tuple[Any, Any] | None = None,
    target_failure: str | None = None,
    corpus: Any = None,
    documents: Any = None,
    clicks: Any = None,
    costs_of: tuple[str | Path, Iterable[str]] | None = None,
    reviewed: str | Path | None = None,
    test: ABTest | None = None,
    arm: str | None = None,
    mixed: Interleaving | None = None,
    logged: OffPolicyEstimates | None = None,
    watch: Watch | None = None,
    seed: int = 0,
    **policies: Any,
) -> Change:
    """Review a change of a system: answer the questions for which there is data on baseline and candidate.

    Parameters
    ----------
    qrels, baseline, candidate, measures
        Input of `judged.reports.report`, one run each. The first measure decides which run is better; a disagreement
        with the second is reported. Default of the runs: the lists that users saw, from `traces`.
    queries, attributes, by
        Texts and attributes of topics, and attributes to slice by, as for `report`.
    config
        Configuration of the gate, as for `judged.diagnosis.gates.gate`.
    comparison
        Comparison that tested both runs by the same first measure, for example with other candidates, and corrects for
        all of them. Default: a comparison of the two runs.
    traces
        Traces of both systems, as for `judged.pipelines.traces.failures`. Their recorded settings are compared.
    settings
        Settings of both systems: mappings, or TOML or JSON files. Default: those in the traces.
    target_failure
        Kind of failure that the change should fix, of `judged.pipelines.traces.FAILURES`. Kinds that only tests over
        topics can detect need data: ``freshness`` `documents`, ``feedback`` `clicks`, ``intent`` `by`; otherwise they
        are not tested. ``missing content`` needs `corpus`.
    corpus, documents, clicks
        As for `judged.pipelines.traces.failures`. A tuple of two corpora or of two tables of clicks has those of the
        baseline and of the candidate; otherwise both have the same.
    costs_of
        Table with a column ``run``, whose values are run names or ``baseline`` and ``candidate``, and names of its cost
        columns: latency, memory, labels.
    reviewed
        Table with ``run``, ``wrong``, and ``reviewed``: numbers of wrong and of all results that people reviewed.
    test, arm
        Result of `judged.online.abtest`, and the candidate's arm. Default: the arm with its name, or the first.
    mixed, logged
        Result of `judged.online.interleaving`, with the candidate as the other ranker, and of
        `judged.online.clicks.off_policy` for the candidate.
    watch
        Result of `judged.online.watch.watch`.
    seed
        Seed of all random numbers.
    policies
        Policies of `evaluate`.

    Raises
    ------
    InputError
        If a file cannot be read, a kind of failure or an arm does not exist, or a test has the candidate as baseline.

    Examples
    --------
    >>> qrels = {f"q{i}": {"d": 1} for i in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> checks = {"check": [{"measure": "RR", "margin": 0.1}]}
    >>> change = review(qrels, {"old": good}, {"new": bad}, "RR,R@10", config=checks)
    >>> change.decision, change.questions[0].state, sum(row.state == "no data" for row in change.questions)
    ('do not ship', 'bad', 10)
    """
    if target_failure is not None:
        one_of("target failure", target_failure, FAILURES)
    judgments, trace_notes = qrels, tuple[Note, ...]()
    if traces is not None and baseline is None and candidate is None:
        baseline, candidate = final_lists(traces)
        judgments, trace_notes = _recorded_judgments(Qrels.of(qrels), traces)
    runs = run_pair(baseline, candidate)
    topic_options: dict[str, Any] = {"queries": queries, "attributes": attributes, "by": by}
    full_report = report(judgments, runs, measures, baseline=runs[0].name, seed=seed, **topic_options, **policies)
    scores, names = full_report.scores, full_report.scores.run_names
    tested: Comparison = comparison or full_report.results["comparison"]
    # The order of the answers is the order of the questions in the review.
    answers: list[ReviewQuestion] = [answer_better(tested), *_answer_settings(settings, traces)]
    step_diff = None if traces is None else diff(qrels, *traces, scores.measure_names[0], seed=seed)
    if traces is not None and step_diff is not None:
        slicing = None if by is None else _slice_by(Qrels.of(qrels), runs[0], by, queries, attributes)
        options: dict[str, Any] = {"documents": documents, "seed": seed}
        click_pair = clicks if isinstance(clicks, tuple) else (clicks, clicks)
        corpora = corpus if isinstance(corpus, tuple) and not any(isinstance(ids, str) for ids in corpus) else [corpus]
        corpus_pair = [None if ids is None else frozenset(ids) for ids in corpora]
        before, after = (
            failures(qrels, side, scores.measure_names[0], clicks=rows, corpus=ids, slicing=slicing, **options)
            for side, rows, ids in zip(traces, click_pair, (corpus_pair[0], corpus_pair[-1]), strict=True)
        )
        changes = failure_changes(before, after)
        answers += [answer_steps(step_diff), answer_kinds(changes, before, after)]
        answers += [] if target_failure is None else [answer_fixed(changes, before, after, target_failure)]
    answers.append(answer_worst_topics(scores, Topics.of(queries) if queries is not None else None, step_diff))
    if "slice comparison" in full_report.results:
        answers.append(answer_slices(full_report.results["slice comparison"].with_overall(tested)))
    if len(scores.measures) > 1:
        answers.append(answer_measure_agreement(scores.disagree(measures=scores.measure_names[:2])))
    answers.append(answer_lost_topics(scores))
    if reviewed is not None:
        answers.append(answer_false_positives(Path(reviewed), names))
    if costs_of is not None:
        answers.append(answer_costs(Path(costs_of[0]), names, tuple(costs_of[1])))
    if config is not None:
        answers.append(answer_gate(gate(judgments, runs[0], runs[1], config, attributes=attributes)))
    answers += _answer_online(tested, names, test, arm, mixed, logged, watch)
    answered = {row.question for row in answers}
    blanks = {question: option for question, option in _INPUT_OPTIONS.items() if question not in answered}
    answers += [ReviewQuestion(question, "no data", option) for question, option in blanks.items()]
    return Change(names[0], names[1], tuple(answers), scores.provenance, (*full_report.notes, *trace_notes))


def final_lists(traces: tuple[Traces, Traces]) -> tuple[Run, Run]:
    """Return the lists that users saw as runs, with the names of the traces."""
    baseline, candidate = ({side.name: side.run(side.final.name)} for side in traces)
    return run_pair(baseline, candidate)


def _recorded_judgments(qrels: Qrels, traces: tuple[Traces, Traces]) -> tuple[Qrels, tuple[Note, ...]]:
    """Select the topics whose lists are recorded in both traces; a note counts the others."""
    unrecorded = [
        topic for topic in qrels.topics if any(side.documents(topic, side.final.name) is None for side in traces)
    ]
    if not unrecorded:
        return qrels, ()
    topics = [topic for topic in qrels.topics if topic not in set(unrecorded)]
    if not topics:
        raise InputError(
            "no judged topic has a recorded final list in both traces", fix="pass the runs of both systems"
        )
    text = f"the comparison of the runs leaves out {counted(len(unrecorded), 'topic')}: the final list is not recorded"
    return qrels.over(topics), (Note("unrecorded-stages", text),)


def _answer_settings(settings: tuple[Any, Any] | None, traces: tuple[Traces, Traces] | None) -> list[ReviewQuestion]:
    """Answer which settings changed, if settings are given or recorded, or the stages differ."""
    recorded = [{}, {}] if traces is None else [recorded_settings(side.spans) for side in traces]
    given = [{}, {}] if settings is None else [read_settings(side) for side in settings]
    changed = changed_settings(*(side | more for side, more in zip(recorded, given, strict=True)))
    has_settings = settings is not None or any(span.settings for side in traces or () for span in side.spans)
    return [answer_settings(changed)] if changed or has_settings else []


def _slice_by(qrels: Qrels, run: Run, by: str | Iterable[str], queries: Any, attributes: Any) -> Slicing:
    names = [by] if isinstance(by, str) else list(by)
    topic_attributes = read_topic_attributes(qrels, needed=names, run=run, queries=queries, attributes=attributes)
    return slice_topics(topic_attributes, names, query_ids=qrels.topics)


def _verdict(test: ABTest, arm: str | None, names: Sequence[str]) -> Verdict:
    """Return the verdict on the candidate's arm; check that the baseline of the test is the baseline run."""
    # The first arm of a test is its control.
    control = test.assignment.arms[0]
    if control == (arm or names[1]) or (control != names[0] and names[0] in test.assignment.arms):
        problem = f"the control arm of the A/B test must be the baseline, got {control}"
        raise InputError(problem, fix="pass the arm of the baseline: abtest(..., baseline=...)")
    arms = [verdict.arm for verdict in test.verdicts]
    if arm is not None:
        one_of("arm", arm, arms)
    return test.verdicts[arms.index(arm or (names[1] if names[1] in arms else arms[0]))]


def _answer_online(
    comparison: Comparison,
    names: Sequence[str],
    test: ABTest | None,
    arm: str | None,
    mixed: Interleaving | None,
    logged: OffPolicyEstimates | None,
    watch: Watch | None,
) -> Iterator[ReviewQuestion]:
    """Yield the answers from online data."""
    ab_test = None if test is None else (test, _verdict(test, arm, names))
    if ab_test is not None:
        yield answer_ab_test(*ab_test)
    if mixed is not None:
        if mixed.baseline == names[1] or mixed.other == names[0]:
            problem = f"the baseline of the interleaving must be {names[0]}, got {mixed.baseline}"
            raise InputError(
                problem, fix=f"pass the other ranker as the baseline: interleaving(..., baseline={mixed.other!r})"
            )
        yield answer_interleaving(mixed)
    if test is not None or mixed is not None or logged is not None:
        yield answer_agreement(list(collect_evidence(comparison, ab_test, mixed, logged)))
    if watch is not None:
        yield answer_rollback(watch)
