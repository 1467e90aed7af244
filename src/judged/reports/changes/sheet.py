"""`review`: what is known of a change, question by question, what is blank, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.comparison.slicing.derived import read_topic_attributes
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.diagnosis.gates import gate
from judged.errors import InputError
from judged.pipelines.traces.failures import FAILURES, failures
from judged.reports import report
from judged.reports.changes.questions import (
    Question,
    agreement,
    costs,
    disagreement,
    false_positives,
    gated,
    is_better,
    mended,
    nothing_found,
    preferred,
    rolled_back,
    slices,
    tested,
    told,
    worst,
)
from judged.results import TEXT, Answer, Sentences, Table, columns_of
from judged.results.spelling import one_of
from judged.scoring.evaluation import runs_of

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
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance

Decision: TypeAlias = Literal["ship", "do not ship", "undecided"]
_DECISIVE = ("Does the gate let it pass?", "Do users fare better?", "Should it be taken back?")
_BLANKS = {
    "Did it mend what it was meant to?": "Traces of both: `--traces BASELINE CANDIDATE`, and `--meant KIND`.",
    "Which slice improved, which paid?": "Attributes of topics: `--queries FILE` or `--attributes FILE`.",
    "Are fewer results wrong in review?": "A table with `run`, `wrong` and `reviewed`: `--reviewed FILE`.",
    "Which cost rises?": "A table with `run` and a column for each cost: `--costs FILE --cost COLUMN`.",
    "Does the gate let it pass?": "A configuration: `judged gate init`, then `--gate FILE`.",
    "Do users prefer it in one list?": "A log of mixed lists, see `judged online interleaving`: `--interleaved FILE`.",
    "Do users fare better?": "A log with arms, as `judged online abtest` reads it: `--log FILE --arm NAME`.",
    "Should it be taken back?": "A watch with its deployment: `--watch FILE`.",
}


@dataclass(frozen=True, eq=False, repr=False)
class Change(Answer):
    """The sheet of a change.

    Attributes
    ----------
    baseline, candidate : str
        The names of the runs.
    questions : tuple of Question
        Each with its answer, or what would fill it.
    notes : tuple of Note
    """

    kind: ClassVar[str] = "change"
    main: ClassVar[str] = "sheet"

    baseline: str
    candidate: str
    questions: tuple[Question, ...]
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Which change."""
        return f"{self.candidate} in the place of {self.baseline}"

    @property
    def decision(self) -> Decision:
        """What follows: a change ships where nothing that decides is bad, and something is good.

        Gate, A/B test and watch decide; everything else explains.
        """
        states = [one.state for one in self.questions if one.question in _DECISIVE]
        return "do not ship" if "bad" in states else "ship" if "good" in states else "undecided"

    def blocks(self) -> tuple[Block, ...]:
        """Give what follows, the sheet, and the tables that its answers rest on."""
        rows = self.questions
        columns = columns_of(rows, ("question", TEXT), ("state", TEXT), ("said", TEXT))
        sheet = Sentences(tuple(f"[{one.state}] {one.question} {one.said}" for one in rows), "questions")
        return (
            Sentences((self._said(),)),
            sheet,
            Table("sheet", columns, only="data"),
            *(block for one in rows for block in one.blocks),
        )

    def facts(self) -> Mapping[str, Any]:
        """Give what was compared, and what follows."""
        blank, untested = (
            [one.question for one in self.questions if one.state == state] for state in ("blank", "not tested")
        )
        names = {"baseline": self.baseline, "candidate": self.candidate}
        return {**names, "decision": self.decision, "blank": blank, "not_tested": untested}

    def _said(self) -> str:
        why = [one.question for one in self.questions if one.question in _DECISIVE and one.state == "bad"]
        blank, untested = (sum(one.state == state for one in self.questions) for state in ("blank", "not tested"))
        unasked = f" {blank} of {len(self.questions)} questions are blank." if blank else ""
        unasked += f" {untested} could not be tested." if untested else ""
        if self.decision == "do not ship":
            return f"Do not ship {self.candidate}. What decides is bad: {' '.join(why)}{unasked}"
        if self.decision == "ship":
            return f"{self.candidate} may ship: nothing that decides is bad.{unasked}"
        return f"Undecided: neither gate, users nor watch decide.{unasked}"


def review(
    qrels: Any,
    baseline: Any,
    candidate: Any,
    measures: Any = None,
    *,
    queries: Any = None,
    attributes: Any = None,
    by: str | Iterable[str] | None = None,
    config: Any = None,
    comparison: Comparison | None = None,
    traces: tuple[Traces, Traces] | None = None,
    meant: str | None = None,
    documents: Any = None,
    date: str = "date",
    today: Any = None,
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
    """Fill in the sheet of a change, from whatever is known of its baseline and candidate.

    Parameters
    ----------
    qrels, baseline, candidate, measures
        As `judged.reports.report` takes them; one run each. The first measure says which is better, and it is held
        against the second.
    queries, attributes, by
        Of topics, for slices, as for `report`.
    config
        Of the gate, as for `judged.diagnosis.gates.gate`.
    comparison
        A comparison in which both runs were tested, by the same first measure, such as one of several candidates: its
        p-values are corrected for all of them. None: the two runs are tested alone.
    traces
        Of both, as `judged.pipelines.traces.failures` takes them.
    meant
        The kind of failure that the change was meant to mend: of `judged.pipelines.traces.FAILURES`. Those that show
        over topics only need data: ``freshness`` `documents`, ``feedback`` `clicks`, ``intent`` `by`. Without them the
        answer is that it was not tested.
    documents, date, today, clicks
        As for `judged.pipelines.traces.failures`. A pair of clicks is that of the baseline's lists and of the
        candidate's; one table is held against both.
    costs_of
        A table with a column ``run``, which names the runs or calls them ``baseline`` and ``candidate``, and the
        columns of costs: latency, memory, labels.
    reviewed
        A table with ``run``, ``wrong`` and ``reviewed``: how many results that people reviewed were wrong.
    test, arm
        What `judged.online.abtest` said, and the candidate's arm; None: the one with its name, or else the first.
    mixed, logged
        What `judged.online.interleaving` said, with the candidate as the other ranker, and
        `judged.online.clicks.off_policy` of the candidate.
    watch
        What `judged.online.watch.watch` said.
    seed
        Of everything that draws at random.
    policies
        Of `evaluate`.

    Raises
    ------
    InputError
        If something cannot be read, there is no such kind of failure or arm, or a test is of the baseline against the
        candidate.

    Examples
    --------
    >>> qrels = {f"q{at}": {"d": 1} for at in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> checks = {"check": [{"measure": "RR", "margin": 0.1}]}
    >>> made = review(qrels, {"old": good}, {"new": bad}, "RR,R@10", config=checks)
    >>> made.decision, made.questions[0].state, sum(one.state == "blank" for one in made.questions)
    ('do not ship', 'bad', 7)
    """
    if meant is not None:
        one_of("meant", meant, FAILURES)
    runs = [_one(baseline, "baseline"), _one(candidate, "candidate")]
    known: dict[str, Any] = {"queries": queries, "attributes": attributes, "by": by}
    whole = report(qrels, runs, measures, baseline=runs[0].name, seed=seed, **known, **policies)
    scores, names = whole.scores, whole.scores.run_names
    compared: Comparison = comparison or whole.results["comparison"]
    found: list[Question] = [*is_better(compared)]
    if traces is not None:
        slicing = None if by is None else _classes(Qrels.of(qrels), runs[0], by, queries, attributes)
        given: dict[str, Any] = {"documents": documents, "date": date, "today": today, "slicing": slicing, "seed": seed}
        both = clicks if isinstance(clicks, tuple) else (clicks, clicks)
        before, after = (
            failures(qrels, one, scores.measure_names[0], clicks=clicked, **given)
            for one, clicked in zip(traces, both, strict=True)
        )
        found.append(mended(before, after, meant))
    found.append(worst(scores, Topics.of(queries) if queries is not None else None))
    if "slice comparison" in whole.results:
        found.append(slices(whole.results["slice comparison"]))
    if len(scores.measures) > 1:
        found.append(disagreement(scores.disagree(measures=scores.measure_names[:2])))
    found.append(nothing_found(scores))
    if reviewed is not None:
        found.append(false_positives(Path(reviewed), names))
    if costs_of is not None:
        found.append(costs(Path(costs_of[0]), names, tuple(costs_of[1])))
    if config is not None:
        found.append(gated(gate(qrels, runs[0], runs[1], config, attributes=attributes)))
    found += _of_users(compared, names, test, arm, mixed, logged, watch)
    asked = {one.question for one in found}
    found += [Question(question, "blank", fill) for question, fill in _BLANKS.items() if question not in asked]
    return Change(names[0], names[1], tuple(found), scores.provenance, whole.notes)


def _one(given: Any, role: str) -> Run:
    """Give the one run of a role."""
    runs = runs_of(given)
    if len(runs) != 1:
        raise InputError(f"the {role} is {len(runs)} runs", fix="give one")
    return runs[0]


def _classes(qrels: Qrels, run: Run, by: str | Iterable[str], queries: Any, attributes: Any) -> Slicing:
    """Cut topics into classes by their attributes."""
    names = [by] if isinstance(by, str) else list(by)
    known = read_topic_attributes(qrels, needed=names, run=run, queries=queries, attributes=attributes)
    return slice_topics(known, names, query_ids=qrels.topics)


def _verdict(test: ABTest, arm: str | None, names: Sequence[str]) -> Verdict:
    """Give the verdict of the candidate's arm, which must not be the one that others are compared with."""
    against = test.assignment.arms[0]
    if against == (arm or names[1]) or (against != names[0] and names[0] in test.assignment.arms):
        problem = f"the test compares with {against}, and not with the baseline"
        raise InputError(problem, fix="name the baseline's arm: abtest(..., baseline=...)")
    arms = [one.arm for one in test.verdicts]
    if arm is not None:
        one_of("arm", arm, arms)
    return test.verdicts[arms.index(arm or (names[1] if names[1] in arms else arms[0]))]


def _of_users(
    compared: Comparison,
    names: Sequence[str],
    test: ABTest | None,
    arm: str | None,
    mixed: Interleaving | None,
    logged: OffPolicyEstimates | None,
    watch: Watch | None,
) -> Iterator[Question]:
    """Give what users did, by whatever is known of them."""
    ours = None if test is None else (test, _verdict(test, arm, names))
    if ours is not None:
        yield tested(*ours)
    if mixed is not None:
        if mixed.baseline == names[1] or mixed.other == names[0]:
            problem = f"mixed lists are read for {mixed.other} against {mixed.baseline}"
            raise InputError(
                problem, fix=f"take the other for the baseline: interleaving(..., baseline={mixed.other!r})"
            )
        yield preferred(mixed)
    if any(one is not None for one in (test, mixed, logged)):
        yield agreement(list(told(compared, ours, mixed, logged)))
    if watch is not None:
        yield rolled_back(watch)
