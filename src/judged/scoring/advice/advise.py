"""`advise`: select measures, warnings, and the next command for judgments, runs, and a task."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import judged
from judged.data.files import exists
from judged.data.qrels import Qrels
from judged.data.sources import source_name
from judged.results import Answer, Block, Code, Column, Sentences, Table, columns_of
from judged.scoring.advice.profile import build_profile
from judged.scoring.advice.rules import RULES, SOURCES, fact_text, find_task, infer_task, insert_numbers, other_tasks
from judged.scoring.evaluation import runs_of
from judged.scoring.judging import Judged
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from judged.scoring.advice.profile import Profile
    from judged.scoring.advice.rules import EvaluationTask, Kind, Rule

_MAX_LIST_LENGTH = 100  # longer lists do not limit cutoffs: R@1000 of a list of 500 is the recall of the full list
_RECOMMENDS: tuple[Kind, ...] = ("recommend", "pair")
_SUMMARY_SECTIONS: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("caution", "Caution", ("caution",)),
    ("recommended", "Recommended", _RECOMMENDS),
    ("not_recommended", "Not recommended", ("avoid",)),
)
_DETAIL_SECTIONS: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("reasons_for", "Reasons to report these measures", _RECOMMENDS),
    ("reasons_against", "Reasons not to report these measures", ("avoid",)),
    ("notes", "Notes on interpretation", ("caution", "note")),
)


@dataclass(frozen=True)
class Recommendation:
    """Applicable rule, with numbers of the data."""

    rule: str  # the rule's id
    kind: Kind
    # measures with `rel`, `max`, and cutoff fitted to the data
    measures: tuple[Measure, ...]
    evidence: str  # sentence with numbers of the data; empty if the rule depends only on the task
    rationale: str  # the reason, independent of the data
    facts: tuple[str, ...]  # sentences of the facts that the rule uses; empty if it depends only on the task
    sources: tuple[str, ...]  # keys of `judged.scoring.advice.rules.SOURCES`
    disputed: str = ""  # who disagrees, with their argument

    @property
    def measure_names(self) -> str:
        """Names of the measures, joined by " + " for a pair."""
        return (" + " if self.kind == "pair" else ", ").join(map(str, self.measures))

    @property
    def reason(self) -> str:
        """Evidence and rationale."""
        return f"{self.evidence} {self.rationale}".strip()

    @property
    def summary(self) -> str:
        """Measures with the evidence, or else the rationale; both for `avoid` and `caution`."""
        text = self.reason if self.kind in ("avoid", "caution") else self.evidence or self.rationale
        return f"{self.measure_names}: {text}" if self.measures else text

    @property
    def sentence(self) -> str:
        """Measures, reason, dispute, rule, and sources."""
        disputed = f" Disputed: {self.disputed}" if self.disputed else ""
        head = f"{self.measure_names}: " if self.measures else ""
        return f"{head}{self.reason}{disputed} [{self.rule}: {'; '.join(self.sources)}]"


@dataclass(frozen=True, repr=False)
class Advice(Answer):
    """Measures to report and to avoid, with reasons.

    Attributes
    ----------
    profile : Profile
        Facts about judgments and runs.
    task : EvaluationTask
        Purpose of the system.
    has_explicit_task : bool
        Whether the caller chose the task; otherwise it was inferred from the data.
    recommendations : tuple of Recommendation
        All applicable rules, in the order of the advice.
    inputs : tuple of str
        Command-line arguments for the qrels and runs.
    options : tuple of str
        Other options of that command.
    """

    kind: ClassVar[str] = "advice"

    profile: Profile
    task: EvaluationTask
    has_explicit_task: bool
    recommendations: tuple[Recommendation, ...]
    inputs: tuple[str, ...]
    options: tuple[str, ...] = ()

    def for_task(self, task: str) -> Advice:
        """Return the advice for another task, without reading the data again.

        Raises
        ------
        InputError
            If the task does not exist.

        Examples
        --------
        >>> advise({"q1": {"d1": 1}}).for_task("set").task.name
        'set'
        """
        new_task = find_task(task)
        return replace(
            self, task=new_task, has_explicit_task=True, recommendations=_apply_rules(self.profile, new_task)
        )

    @property
    def other_tasks(self) -> tuple[EvaluationTask, ...]:
        """Other tasks that are compatible with the data."""
        return other_tasks(self.profile, self.task)

    def select(self, *kinds: Kind) -> tuple[Recommendation, ...]:
        """Return the recommendations of these kinds."""
        return tuple(recommendation for recommendation in self.recommendations if recommendation.kind in kinds)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Distinct measures to report, the most important first."""
        return self._distinct_measures(*_RECOMMENDS)

    @property
    def avoid(self) -> tuple[Measure, ...]:
        """Distinct measures that do not suit the data."""
        return self._distinct_measures("avoid")

    def _distinct_measures(self, *kinds: Kind) -> tuple[Measure, ...]:
        return tuple(dict.fromkeys(measure for advised in self.select(*kinds) for measure in advised.measures))

    @property
    def command(self) -> str:
        """Shell command that computes the measures."""
        options = [text for measure in self.measures for text in ("-m", str(measure))]
        return shlex.join(["judged", "evaluate", *self.inputs, *self.options, *options])

    @property
    def sentences(self) -> tuple[str, ...]:
        """The task; if it was inferred, also the reason and the alternatives."""
        head = f"The task is `{self.task.name}`: {self.task.description}."
        if self.has_explicit_task:
            return (head,)
        _, condition = infer_task(self.profile)
        others = ", ".join(task.name for task in self.other_tasks)
        inferred = f"No task was selected, so judged inferred the task from the data: {condition}."
        return (f"{head} {inferred} The data do not show the purpose of the system. Other tasks (--task): {others}.",)

    def facts(self) -> dict[str, Any]:
        """Return task, measures, measures to avoid, profile, and command."""
        return {
            "judged": judged.__version__,
            "task": {
                "name": self.task.name,
                "description": self.task.description,
                "is_explicit": self.has_explicit_task,
            },
            "other_tasks": [{"name": task.name, "description": task.description} for task in self.other_tasks],
            "measures": self.measures,
            "avoid": self.avoid,
            "profile": self.profile,
            "command": self.command,
        }

    def blocks(self) -> tuple[Block, ...]:
        """Return the summary and the next command, with reasons, facts, and sources folded."""
        short = [
            Sentences(tuple(recommendation.summary for recommendation in recommendations), name, title)
            for name, title, kinds in _SUMMARY_SECTIONS
            if (recommendations := self.select(*kinds))
        ]
        details = [
            Sentences(tuple(recommendation.sentence for recommendation in recommendations), name, title, folded=True)
            for name, title, kinds in _DETAIL_SECTIONS
            if (recommendations := self.select(*kinds))
        ]
        cited = sorted({source for rule in self.recommendations for source in rule.sources}, key=str.lower)
        return (
            Sentences(self.sentences),
            *short,
            *details,
            Sentences(self._fact_sentences(), "facts", "Facts about the data", folded=True),
            Sentences(tuple(f"{source}: {SOURCES[source]}" for source in cited), "sources", "Sources", folded=True),
            Code((self.command,), "next", "Next"),
            self._entries_table(),
        )

    def _fact_sentences(self) -> tuple[str, ...]:
        """Return each fact with the rules that use it, and last the rules that depend only on the task."""
        rules: dict[str, list[str]] = {}
        for recommendation in self.recommendations:
            for fact in recommendation.facts or ("the task only",):
                rules.setdefault(fact, []).append(recommendation.rule)
        ordered = sorted(rules.items(), key=lambda fact_rules: fact_rules[0] == "the task only")
        return tuple(f"{fact} (rules: {', '.join(names)})" for fact, names in ordered)

    def _entries_table(self) -> Table:
        recommendations = self.recommendations
        sources = [{source: SOURCES[source] for source in recommendation.sources} for recommendation in recommendations]
        columns = columns_of(recommendations, "rule", "kind", "measures", "reason", "facts", "disputed")
        return Table("entries", (*columns, Column("sources", sources, only="json")), only="data")


def advise(qrels: Any, runs: Any = (), task: str | None = None, *, rel: float | None = None) -> Advice:
    """Recommend measures for these judgments and runs.

    Parameters
    ----------
    qrels
        A `Qrels`, or any input of `Qrels.of`.
    runs
        Runs as for `evaluate`, or results of `judge`. Default: advice on the judgments only.
    task
        Purpose of the system: single-answer, many-relevant, graded, coverage, first-stage, rag, recommendation,
        diversity, assessors, preferences, set. Default: inferred from the data.
    rel
        Lowest relevant grade. Default: chosen by the scale of the grades.

    Returns
    -------
    Advice

    Raises
    ------
    InputError
        If an input cannot be read, the task does not exist, or a run has no topic in common with the qrels.

    Examples
    --------
    >>> advice = advise({"q1": {"d1": 1}, "q2": {"d2": 1}})
    >>> advice.task.name, [str(measure) for measure in advice.measures]
    ('single-answer', ['RR@10', 'Success@10', 'R@100', 'R@1000'])
    >>> print(advice.command)
    judged evaluate QRELS RUN -m RR@10 -m Success@10 -m R@100 -m R@1000
    """
    explicit_task = None if task is None else find_task(task)
    judgments = Qrels.of(qrels)
    judged_runs = [run for run in runs if isinstance(run, Judged)] if isinstance(runs, (tuple, list)) else []
    has_no_runs = runs is None or (isinstance(runs, (tuple, list)) and not runs)
    run_list = [run.run for run in judged_runs] or ([] if has_no_runs else runs_of(runs))
    profile = build_profile(judgments, judged_runs or run_list, rel=rel)
    selected_task = explicit_task or infer_task(profile)[0]
    paths = [(run.name, run.where) for run in run_list if exists(run.where)]
    run_arguments = [path if name == source_name(path) else f"{name}={path}" for name, path in paths]
    placeholders = ["RUN"] * max(len(run_list) - len(paths), not run_list)
    return Advice(
        profile=profile,
        task=selected_task,
        has_explicit_task=explicit_task is not None,
        recommendations=_apply_rules(profile, selected_task),
        inputs=(judgments.where if exists(judgments.where) else "QRELS", *run_arguments, *placeholders),
    )


def fit_to_profile(measure: Measure, profile: Profile, *, limit_cutoff: bool = True) -> Measure:
    """Set `rel`, `max`, and, with `limit_cutoff`, a cutoff beyond the longest list to the values of the profile."""
    parameter_names = {parameter.name for parameter in measure.entry.all_parameters}
    changes: dict[str, Any] = {}
    if "rel" in parameter_names and profile.rel != 1:
        changes["rel"] = profile.rel
    if "max" in parameter_names and getattr(measure, "max", None) is not None and profile.positive:
        changes["max"] = profile.positive[-1]
    cutoff, length = getattr(measure, "cutoff", None), profile.max_list_length
    if limit_cutoff and cutoff is not None and length is not None and length < cutoff and length <= _MAX_LIST_LENGTH:
        changes["cutoff"] = max(length, 1)
    return measure.replace(**changes) if changes else measure


def _apply_rules(profile: Profile, task: EvaluationTask) -> tuple[Recommendation, ...]:
    """Apply the rules. A measure that one rule advises against is not recommended by others."""
    applicable = [rule for rule in RULES if rule.holds(profile, task.name)]
    to_avoid = {measure for rule in applicable if rule.kind == "avoid" for measure in _measures(rule, profile)}
    result: list[Recommendation] = []
    for rule in applicable:
        measures, kind = _measures(rule, profile), rule.kind
        if kind in _RECOMMENDS:
            measures = tuple(m for m in measures if m not in to_avoid and _is_computable(m, profile))
            kind = kind if len(measures) > 1 else "recommend"
        if measures or kind not in _RECOMMENDS:
            evidence = insert_numbers(rule.evidence, profile)
            facts = tuple(fact_text(name, profile) for name in rule.facts)
            result.append(
                Recommendation(rule.id, kind, measures, evidence, rule.rationale, facts, rule.sources, rule.disputed)
            )
    return tuple(result)


def _measures(rule: Rule, profile: Profile) -> tuple[Measure, ...]:
    # A measure to avoid keeps its usual cutoff, even if the lists are shorter: readers know it by this name.
    limit_cutoff = rule.kind in _RECOMMENDS
    measures = (fit_to_profile(parse(name), profile, limit_cutoff=limit_cutoff) for name in rule.measures)
    return tuple(dict.fromkeys(measures))  # the profile can make two measures equal


def _is_computable(measure: Measure, profile: Profile) -> bool:
    """Whether all runs have ranks, or the measure works on sets."""
    needs_ranking = measure.properties.needs_ranking or getattr(measure, "cutoff", None) is not None
    return not (profile.set_runs and needs_ranking)
