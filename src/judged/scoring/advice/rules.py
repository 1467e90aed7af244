"""Contents of `rules.toml`: rules in the order of the advice, facts, tasks, and sources."""

from __future__ import annotations

import re
import string
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.errors import InputError
from judged.results.decimals import counted, decimal, percent
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.scoring.advice.profile import Profile, RunProfile


Kind: TypeAlias = Literal["recommend", "pair", "avoid", "caution", "note"]


_MAX_RUNS = 4  # runs


@dataclass(frozen=True)
class Predicate:
    """Named predicate on a profile."""

    name: str  # a clause, such as "topics have one relevant document"
    test: Callable[[Profile], bool]
    facts: tuple[str, ...]  # names in `FACTS` of the facts that it uses
    opposite: str = ""  # the clause for the negation

    def __call__(self, profile: Profile) -> bool:
        """Return whether the condition is true."""
        return self.test(profile)

    def __invert__(self) -> Predicate:
        """Return the negation."""
        name = self.opposite or f"not: {self.name}"
        return Predicate(name, lambda profile: not self.test(profile), self.facts, self.name)


@dataclass(frozen=True)
class Rule:
    """Rule that gives one piece of advice."""

    id: str  # short permanent name
    # `recommend`: report these measures. `pair`: report them side by side. `avoid`: do not report them for these data.
    # `caution`: a reason not to draw conclusions. `note`: information for reading the scores.
    kind: Kind
    rationale: str  # the reason, independent of the data
    sources: tuple[str, ...]  # keys of `SOURCES`
    # conditions that must all be true. `advise` also drops measures that need ranks if a run has no scores.
    when: tuple[Predicate, ...] = ()
    tasks: tuple[str, ...] = ()  # tasks that the rule applies to; empty for all tasks
    # names of measures for the lowest relevant grade 1; `fit_to_profile` sets `rel` and `max` to those of the data
    measures: tuple[str, ...] = ()
    # format string for a sentence with numbers of the data; `p` is the `Profile`. A noun as the format of a count
    # appends it in singular or plural: `{p.n:topic}`
    evidence: str = ""
    extra_facts: tuple[str, ...] = ()  # facts in that sentence which no condition uses
    disputed: str = ""  # who disagrees, with their argument

    def holds(self, profile: Profile, task: str) -> bool:
        """Whether the rule applies to the task and all its conditions are true."""
        return (not self.tasks or task in self.tasks) and all(condition(profile) for condition in self.when)

    @property
    def facts(self) -> tuple[str, ...]:
        """Distinct names of the facts that the rule uses."""
        names = [name for condition in self.when for name in condition.facts]
        return tuple(dict.fromkeys((*names, *self.extra_facts)))


class _NumberFormatter(string.Formatter):
    """Formatter of counts with nouns, of tuples of values, and of a field of several runs."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, tuple):
            return _format_runs(value, format_spec) if format_spec else join_values(value)
        if isinstance(value, int) and len(format_spec) > 1 and format_spec.replace(" ", "").isalpha():
            return counted(value, format_spec)
        if isinstance(value, float) and (match := re.fullmatch(r"\.(\d)([f%])", format_spec)):
            return (decimal if match[2] == "f" else percent)(value, int(match[1]))
        return super().format_field(value, format_spec or ("," if isinstance(value, int) else ""))


def _format_runs(runs: tuple[RunProfile, ...], field: str) -> str:
    """Format a field of several runs, sorted by it if its name starts with ``+`` (ascending) or ``-`` (descending)."""
    name = field.lstrip("+-")
    if field != name:
        runs = tuple(sorted(runs, key=attrgetter(name), reverse=field[0] == "-"))
    values = [getattr(run, name) for run in runs]
    texts = [percent(value) if isinstance(value, float) else str(value) for value in values]
    labeled = [text if name == "name" else f"{run.name} {text}" for run, text in zip(runs, texts, strict=True)]
    remainder = [f"... ({len(labeled)} in all)"] if len(labeled) > _MAX_RUNS else []
    return ("; " if name == "returned" else ", ").join([*labeled[:_MAX_RUNS], *remainder]) or "no runs"


def join_values(values: tuple[Any, ...], limit: int = 8) -> str:
    """Join numbers or names by commas; return the first, the last, and the count if there are more than `limit`.

    >>> join_values((0.0, 0.5)), join_values(("a", "b", "c"), limit=2)
    ('0, 0.5', 'a to c (3 in all)')
    """
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(texts) if len(texts) <= limit else f"{texts[0]} to {texts[-1]} ({len(texts)} in all)"


def insert_numbers(text: str, profile: Profile) -> str:
    """Replace the format fields of a sentence by numbers of the profile.

    >>> from judged.scoring.advice.profile import build_profile
    >>> insert_numbers("{p.n:topic}, from {p.rel:g}", build_profile({"q1": {"a": 1}}))
    '1 topic, from 1'
    >>> insert_numbers("{p.one_relevant} of {p.n:topic}", build_profile({str(i): {"a": 1} for i in range(1000)}))
    '1,000 of 1,000 topics'
    """
    return _NumberFormatter().format(text, p=profile)


MIN_JUDGED_10 = 0.9  # of Judged@10: below it, unjudged documents may change the order of runs
MIN_JUDGED_100 = 0.5  # of Judged@100: below it, deep measures have too few judgments
MIN_JUDGED = 50  # judged documents per topic, used if there is no run
MAX_GAP = 0.1  # of Judged@10 between two runs
MAX_TIED = 0.01  # share of the judged documents in the top 10
MIN_PERFECT_SCORE = 0.9  # lowest mean score of a perfect ranking with which a measure is still recommended
NEARLY_ALL = 0.95  # share of topics
MOST = 0.8  # share of topics
_MIN_TOPICS = 25  # fewest topics that Buckley and Voorhees (2000) accept for a comparison of systems

CONDITIONS: dict[str, Predicate] = {
    "runs": Predicate("there are runs", lambda p: bool(p.runs), ("runs",), "there are no runs"),
    "sets": Predicate(
        "at least one run has no scores", lambda p: bool(p.set_runs), ("scores",), "every run has scores"
    ),
    "one_answer": Predicate(
        "most topics have exactly one relevant document",
        lambda p: p.with_relevant > 0 and p.one_relevant >= MOST * p.with_relevant,
        ("single",),
        "many topics have several relevant documents",
    ),
    "only_one": Predicate(
        "no topic has more than one relevant document",
        lambda p: p.relevant.most == 1,
        ("relevant",),
        "at least one topic has several relevant documents",
    ),
    "two_or_more": Predicate(
        "most topics have at least two relevant documents",
        lambda p: p.relevant.median >= 2,
        ("relevant",),
        "many topics have at most one relevant document",
    ),
    "few_for_10": Predicate(
        "many topics have fewer than 10 relevant documents",
        lambda p: p.under_10 > 0 and p.best_p10 < MIN_PERFECT_SCORE * p.with_relevant / p.n,
        ("under_10",),
        "nearly all topics have at least 10 relevant documents",
    ),
    "many_for_10": Predicate(
        "many topics have more than 10 relevant documents",
        lambda p: p.over_10 > 0 and p.best_r10 < MIN_PERFECT_SCORE * p.with_relevant / p.n,
        ("over_10",),
        "few topics have more than 10 relevant documents",
    ),
    "many_for_100": Predicate(
        "many topics have more than 100 relevant documents",
        lambda p: p.over_100 > 0 and p.best_r100 < MIN_PERFECT_SCORE * p.with_relevant / p.n,
        ("over_100",),
        "few topics have more than 100 relevant documents",
    ),
    "uneven_topics": Predicate(
        "the number of relevant documents differs by a factor of 10 or more between topics",
        lambda p: p.relevant.most >= 10 * max(p.relevant.least, 1),
        ("relevant",),
        "the number of relevant documents differs by less than a factor of 10 between topics",
    ),
    "few_topics": Predicate("there are fewer than 25 topics", lambda p: p.n < _MIN_TOPICS, ("n",)),
    "several_topics": Predicate("there are several topics", lambda p: p.n > 1, ("n", "relevant")),
    "without_relevant": Predicate(
        "some topics have no relevant document", lambda p: p.without_relevant > 0, ("without_relevant",)
    ),
    "graded": Predicate(
        "relevant documents have different grades",
        lambda p: len(p.positive) > 1,
        ("grades",),
        "all relevant documents have the same grade",
    ),
    "fine_grades": Predicate(
        "there are more than 5 grades above 0, or fractional grades",
        lambda p: len(p.positive) > 5 or (len(p.positive) > 1 and any(grade % 1 for grade in p.positive)),
        ("grades",),
        "there are at most 5 grades above 0, all of them integers",
    ),
    "steep": Predicate(
        "the scale has 3 to 5 grades above 0",
        lambda p: 2 < len(p.positive) <= 5 and 3 <= p.positive[-1] <= 10,
        ("grades",),
    ),
    "four_levels": Predicate(
        "the scale is 0 to 3", lambda p: p.positive == (1, 2, 3), ("grades", "rel"), "the scale is not 0 to 3"
    ),
    "level_loses": Predicate(
        "some topics have documents above grade 0, but no document of the lowest relevant grade or more",
        lambda p: p.below_rel > 0,
        ("rel", "below_rel"),
        "every topic with a document above grade 0 has a relevant document",
    ),
    "weak": Predicate(
        "at least 40% of the documents with a positive grade have the lowest positive grade",
        lambda p: len(p.positive) > 1 and p.lowest_grade_share >= 0.4,
        ("lowest_grade_share",),
    ),
    "without_highest_grade": Predicate(
        "some topics have no document of the highest grade",
        lambda p: p.without_highest_grade > 0,
        ("without_highest_grade",),
    ),
    "negative": Predicate("there are negative grades", lambda p: p.negative > 0, ("negative",)),
    "without_nonrelevant": Predicate(
        "in nearly all topics with relevant documents, every judged document is relevant",
        lambda p: p.with_relevant > 0 and p.without_nonrelevant >= NEARLY_ALL * p.with_relevant,
        ("not_relevant",),
        "some topics have documents that are judged not relevant",
    ),
    "holes": Predicate(
        "in at least one run, more than 10% of the first 10 documents are unjudged",
        lambda p: bool(p.runs) and not p.set_runs and p.min_run["judged_10"].judged_10 < MIN_JUDGED_10,
        ("judged_10", "judged_depth"),
        "nearly all of the first 10 documents are judged",
    ),
    "uneven_holes": Predicate(
        "the share of judged documents in the first 10 differs by 10 percentage points or more between runs",
        lambda p: (
            len(p.runs) > 1
            and not p.set_runs
            and p.max_run["judged_10"].judged_10 - p.min_run["judged_10"].judged_10 >= MAX_GAP
        ),
        ("judged_10",),
    ),
    "shallow": Predicate(
        "few documents are judged at deep ranks",
        lambda p: (
            p.min_run["judged_100"].judged_100 < MIN_JUDGED_100
            if p.runs and not p.set_runs
            else p.judged.median < MIN_JUDGED
        ),
        ("judged", "judged_100"),
        "many documents are judged at deep ranks",
    ),
    "ties": Predicate(
        "some of the first 10 documents have equal scores",
        lambda p: bool(p.runs) and p.max_run["tied_10"].tied_10 >= MAX_TIED,
        ("ties",),
    ),
    "uneven_lists": Predicate(
        "the median number of returned documents differs by more than 10% between runs",
        lambda p: (
            len(p.runs) > 1
            and p.max_run["returned.median"].returned.median > 1.1 * p.min_run["returned.median"].returned.median
        ),
        ("lengths",),
        "the runs return similar numbers of documents",
    ),
    "short_lists": Predicate(
        "every list has fewer than 1000 documents",
        lambda p: p.max_list_length is not None and p.max_list_length < 1000,
        ("lengths",),
    ),
    "past_100": Predicate(
        "some lists have more than 100 documents",
        lambda p: p.max_list_length is None or p.max_list_length > 100,
        ("lengths",),
        "all lists have at most 100 documents",
    ),
    "missing": Predicate(
        "some topics have no results", lambda p: bool(p.runs) and p.max_run["missing"].missing > 0, ("missing",)
    ),
    "subtopics": Predicate(
        "documents are judged for several subtopics",
        lambda p: p.labels == "subtopics",
        ("labels",),
        "the iteration column of the qrels does not identify subtopics",
    ),
    "assessors": Predicate(
        "documents are judged by several assessors",
        lambda p: p.labels == "assessors",
        ("labels",),
        "the iteration column of the qrels does not identify assessors",
    ),
    "preferences": Predicate("users stated preferences", lambda p: p.labels == "preferences", ("labels",)),
    "several_labels": Predicate(
        "some pairs of topic and document have several judgments",
        lambda p: p.repeated > 0,
        ("labels",),
        "every pair of topic and document has one judgment",
    ),
}
CONDITIONS["several"] = ~CONDITIONS["one_answer"]


def _join_lines(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _join_lines(part) for key, part in value.items()}
    if isinstance(value, list):
        return tuple(map(_join_lines, value))
    return " ".join(value.split())


DATA: dict[str, Any] = _join_lines(
    tomllib.loads(files("judged.scoring.advice").joinpath("rules.toml").read_text("utf-8"))
)
FACTS: dict[str, str] = DATA["facts"]
"""Sentences about the profile, by the name of the fact."""
SOURCES: dict[str, str] = DATA["sources"]
"""References by citation key."""


def _rule(when: tuple[str, ...] = (), unless: tuple[str, ...] = (), **keys: Any) -> Rule:
    return Rule(**keys, when=(*(CONDITIONS[name] for name in when), *(~CONDITIONS[name] for name in unless)))


RULES = tuple(_rule(**keys) for keys in DATA["rule"])


def fact_text(name: str, profile: Profile) -> str:
    """Return the sentence of a fact.

    >>> from judged.scoring.advice.profile import build_profile
    >>> fact_text("grades", build_profile({"q1": {"a": 2, "b": 0}}))
    'grades: 0, 2'
    """
    return insert_numbers(FACTS[name], profile)


@dataclass(frozen=True)
class EvaluationTask:
    """Purpose of a system."""

    name: str  # value of the parameter `task` of `advise`
    description: str  # completes "Use this task if ..."
    condition: str = ""  # name of the condition that the data must fulfill; empty for none

    def fits(self, profile: Profile) -> bool:
        """Whether the data are compatible with the task."""
        return not self.condition or CONDITIONS[self.condition](profile)


TASKS = {task["name"]: EvaluationTask(**task) for task in DATA["task"]}

# Tasks to try if the caller gives none; the most specific conditions come first.
_INFERRED_TASKS = ("set", "preferences", "diversity", "assessors", "graded", "single-answer")


def find_task(name: str) -> EvaluationTask:
    """Return the task with this name."""
    if name not in TASKS:
        raise InputError(f"no task {name!r}", fix=use_one_of(sorted(TASKS)))
    return TASKS[name]


def infer_task(profile: Profile) -> tuple[EvaluationTask, str]:
    """Return the first task whose condition is true, and the name of the condition."""
    for name in _INFERRED_TASKS:
        if TASKS[name].fits(profile):
            return TASKS[name], CONDITIONS[TASKS[name].condition].name
    return TASKS["many-relevant"], "the data match none of the more specific tasks"


def other_tasks(profile: Profile, excluded: EvaluationTask) -> tuple[EvaluationTask, ...]:
    """Return the other tasks that are compatible with the data."""
    return tuple(task for task in TASKS.values() if task != excluded and task.fits(profile))
