"""What `rules.toml` holds: the rules, in the order in which their advice is given, the facts, tasks and papers."""

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

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.scoring.advice.profile import Profile, RunProfile


Kind: TypeAlias = Literal["recommend", "pair", "avoid", "caution", "note"]


_SHOWN = 4  # runs


@dataclass(frozen=True)
class Condition:
    """A named question about the facts."""

    name: str  # as a clause: "topics have one relevant document"
    test: Callable[[Profile], bool]  # the question
    facts: tuple[str, ...]  # which facts it looks at, by their names in `judged.scoring.advice.rules.FACTS`
    otherwise: str = ""  # the clause for the opposite

    def __call__(self, profile: Profile) -> bool:
        """Answer it."""
        return self.test(profile)

    def __invert__(self) -> Condition:
        """Give the opposite question."""
        name = self.otherwise or f"not: {self.name}"
        return Condition(name, lambda profile: not self.test(profile), self.facts, self.name)


@dataclass(frozen=True)
class Rule:
    """One piece of advice."""

    id: str  # a short name that does not change
    # `recommend`: report these measures. `pair`: report them side by side. `avoid`: not these here. `caution`:
    # what forbids to conclude. `note`: what to know when reading any of them.
    kind: Kind
    why: str  # the reason, in plain words and without the data
    sources: tuple[str, ...]  # keys of `judged.scoring.advice.rules.SOURCES`
    # what must be true of the facts. A rule that recommends is silent, too, where the runs have no scores and its
    # measures need ranks.
    when: tuple[Condition, ...] = ()
    tasks: tuple[str, ...] = ()  # for which tasks it holds; for all where there are none
    # their names, at the lowest relevant grade 1; the advice puts in that grade and the highest grade of the data
    measures: tuple[str, ...] = ()
    # a sentence with the numbers of the data: a format string in which `p` is the `Profile`. A count with a word behind
    # the colon is written with it, `{p.n:topic}`.
    here: str = ""
    about: tuple[str, ...] = ()  # facts that the sentence names beside those of the conditions
    disputed: str = ""  # who sees it otherwise, and what they say

    def holds(self, profile: Profile, task: str) -> bool:
        """Whether the task is one of its own and every condition is true."""
        return (not self.tasks or task in self.tasks) and all(condition(profile) for condition in self.when)

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of the facts it rests on, each once."""
        asked = [name for condition in self.when for name in condition.facts]
        return tuple(dict.fromkeys((*asked, *self.about)))


class _Writer(string.Formatter):
    """Writes counts with their nouns, values one after the other, and of runs the field that is named."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, tuple):
            return _of_runs(value, format_spec) if format_spec else listed(value)
        if isinstance(value, int) and len(format_spec) > 1 and format_spec.replace(" ", "").isalpha():
            return counted(value, format_spec)
        if isinstance(value, float) and (read := re.fullmatch(r"\.(\d)([f%])", format_spec)):
            return (decimal if read[2] == "f" else percent)(value, int(read[1]))
        return super().format_field(value, format_spec or ("," if isinstance(value, int) else ""))


def _of_runs(runs: tuple[RunProfile, ...], field: str) -> str:
    """Write what each run has of a field; with ``+`` or ``-`` before its name from the least or the most on."""
    name = field.lstrip("+-")
    if field != name:
        runs = tuple(sorted(runs, key=attrgetter(name), reverse=field[0] == "-"))
    values = [getattr(run, name) for run in runs]
    shown = [percent(value) if isinstance(value, float) else str(value) for value in values]
    texts = [text if name == "name" else f"{run.name} {text}" for run, text in zip(runs, shown, strict=True)]
    more = [f"... ({len(texts)} in all)"] if len(texts) > _SHOWN else []
    return ("; " if name == "returned" else ", ").join([*texts[:_SHOWN], *more]) or "no run"


def listed(values: tuple[Any, ...], most: int = 8) -> str:
    """Write numbers or names one after the other; of many, the first, the last and how many there are.

    >>> listed((0.0, 0.5)), listed(("a", "b", "c"), most=2)
    ('0, 0.5', 'a to c (3 in all)')
    """
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(texts) if len(texts) <= most else f"{texts[0]} to {texts[-1]} ({len(texts)} in all)"


def written(text: str, profile: Profile) -> str:
    """Put the numbers of the data into a sentence.

    >>> from judged.scoring.advice.profile import profile_of
    >>> written("{p.n:topic}, from {p.rel:g}", profile_of({"q1": {"a": 1}}))
    '1 topic, from 1'
    >>> written("{p.single} of {p.n:topic}", profile_of({str(at): {"a": 1} for at in range(1000)}))
    '1,000 of 1,000 topics'
    """
    return _Writer().format(text, p=profile)


WELL_JUDGED = 0.9  # Judged@10 below this: the holes may decide
HALF = 0.5  # Judged@100 below this: measures that look far down see little
FEW_JUDGED = 50  # judged documents a topic, where there is no run to look at
GAP = 0.1  # of Judged@10 between two runs
TIED = 0.01  # share of the judged first 10
CLEARLY = 0.9  # a perfect ranking should come to so much at least
NEARLY = 0.95  # of the topics: nearly all
MOSTLY = 0.8  # of the topics: most
_FEW_TOPICS = 25  # the least that Buckley and Voorhees (2000) find enough to tell systems apart

CONDITIONS: dict[str, Condition] = {
    "runs": Condition("runs are given", lambda p: bool(p.runs), ("runs",), "no run is given"),
    "sets": Condition("a run has no scores", lambda p: bool(p.sets), ("scores",), "every run has scores"),
    "one_answer": Condition(
        "nearly every topic has one relevant document",
        lambda p: p.with_relevant > 0 and p.single >= MOSTLY * p.with_relevant,
        ("single",),
        "topics have several relevant documents",
    ),
    "only_one": Condition(
        "no topic has more than one relevant document",
        lambda p: p.relevant.most == 1,
        ("relevant",),
        "some topic has several relevant documents",
    ),
    "two_or_more": Condition(
        "most topics have two relevant documents or more",
        lambda p: p.relevant.median >= 2,
        ("relevant",),
        "many topics have one relevant document at most",
    ),
    "few_for_10": Condition(
        "many topics have fewer than 10 relevant documents",
        lambda p: p.under_10 > 0 and p.best_p10 < CLEARLY * p.with_relevant / p.n,
        ("under_10",),
        "nearly all topics have 10 relevant documents",
    ),
    "many_for_10": Condition(
        "topics have more than 10 relevant documents",
        lambda p: p.over_10 > 0 and p.best_r10 < CLEARLY * p.with_relevant / p.n,
        ("over_10",),
        "few topics have more than 10 relevant documents",
    ),
    "many_for_100": Condition(
        "topics have more than 100 relevant documents",
        lambda p: p.over_100 > 0 and p.best_r100 < CLEARLY * p.with_relevant / p.n,
        ("over_100",),
        "few topics have more than 100 relevant documents",
    ),
    "uneven_topics": Condition(
        "topics differ tenfold in how many documents are relevant",
        lambda p: p.relevant.most >= 10 * max(p.relevant.least, 1),
        ("relevant",),
        "topics have about equally many relevant documents",
    ),
    "few_topics": Condition("there are fewer than 25 topics", lambda p: p.n < _FEW_TOPICS, ("n",)),
    "several_topics": Condition("there are several topics", lambda p: p.n > 1, ("n", "relevant")),
    "barren": Condition("topics have no relevant document", lambda p: p.barren > 0, ("barren",)),
    "graded": Condition(
        "relevant documents have different grades",
        lambda p: len(p.positive) > 1,
        ("grades",),
        "all relevant documents have one grade",
    ),
    "fine_grades": Condition(
        "grades are many, or fractional",
        lambda p: len(p.positive) > 5 or (len(p.positive) > 1 and any(grade % 1 for grade in p.positive)),
        ("grades",),
        "grades are few whole numbers",
    ),
    "steep": Condition(
        "the scale has three grades above 0 or more",
        lambda p: 2 < len(p.positive) <= 5 and 3 <= p.positive[-1] <= 10,
        ("grades",),
    ),
    "four_levels": Condition(
        "the scale is 0 to 3", lambda p: p.positive == (1, 2, 3), ("grades", "rel"), "the scale is another"
    ),
    "level_loses": Condition(
        "some topics have only documents below the lowest relevant grade",
        lambda p: p.lost > 0,
        ("rel", "lost"),
        "no topic is lost to it",
    ),
    "weak": Condition(
        "many of the documents above 0 have the lowest grade",
        lambda p: len(p.positive) > 1 and p.weakest >= 0.4,
        ("weakest",),
    ),
    "below_best": Condition("topics lack the highest grade", lambda p: p.below_best > 0, ("below_best",)),
    "negative": Condition("there are negative grades", lambda p: p.negative > 0, ("negative",)),
    "one_sided": Condition(
        "nothing is judged not relevant",
        lambda p: p.with_relevant > 0 and p.one_sided >= NEARLY * p.with_relevant,
        ("not_relevant",),
        "some documents are judged not relevant",
    ),
    "holes": Condition(
        "the first 10 are not fully judged",
        lambda p: bool(p.runs) and not p.sets and p.least["judged_10"].judged_10 < WELL_JUDGED,
        ("judged_10", "judged_depth"),
        "the first 10 are judged",
    ),
    "uneven_holes": Condition(
        "the runs are judged to different degrees",
        lambda p: (
            len(p.runs) > 1 and not p.sets and p.most["judged_10"].judged_10 - p.least["judged_10"].judged_10 >= GAP
        ),
        ("judged_10",),
    ),
    "shallow": Condition(
        "the judgments do not go deep",
        lambda p: p.least["judged_100"].judged_100 < HALF if p.runs and not p.sets else p.judged.median < FEW_JUDGED,
        ("judged", "judged_100"),
        "the judgments go deep",
    ),
    "ties": Condition(
        "scores are tied among the first 10",
        lambda p: bool(p.runs) and p.most["tied_10"].tied_10 >= TIED,
        ("ties",),
    ),
    "uneven_lists": Condition(
        "the runs return lists of different lengths",
        lambda p: (
            len(p.runs) > 1
            and p.most["returned.median"].returned.median > 1.1 * p.least["returned.median"].returned.median
        ),
        ("lengths",),
        "the runs return equally many documents",
    ),
    "short_lists": Condition(
        "no list holds 1000 documents", lambda p: p.longest is not None and p.longest < 1000, ("lengths",)
    ),
    "past_100": Condition(
        "lists go beyond rank 100",
        lambda p: p.longest is None or p.longest > 100,
        ("lengths",),
        "lists end at rank 100",
    ),
    "missing": Condition(
        "topics have no results", lambda p: bool(p.runs) and p.most["missing"].missing > 0, ("missing",)
    ),
    "subtopics": Condition(
        "pairs are judged for several subtopics",
        lambda p: p.labels == "subtopics",
        ("labels",),
        "no subtopics are named",
    ),
    "assessors": Condition(
        "pairs are judged by several assessors",
        lambda p: p.labels == "assessors",
        ("labels",),
        "assessors are not told apart",
    ),
    "preferences": Condition("users said what they prefer", lambda p: p.labels == "preferences", ("labels",)),
    "several_labels": Condition(
        "pairs have several judgments", lambda p: p.repeated > 0, ("labels",), "every pair has one judgment"
    ),
}
CONDITIONS["several"] = ~CONDITIONS["one_answer"]


def _one_line(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _one_line(part) for key, part in value.items()}
    if isinstance(value, list):
        return tuple(map(_one_line, value))
    return " ".join(value.split())


DATA: dict[str, Any] = _one_line(
    tomllib.loads(files("judged.scoring.advice").joinpath("rules.toml").read_text("utf-8"))
)
FACTS: dict[str, str] = DATA["facts"]
"""What a piece of advice may rest on, in words."""
SOURCES: dict[str, str] = DATA["sources"]
"""What the rules cite."""


def _rule(when: tuple[str, ...] = (), unless: tuple[str, ...] = (), **keys: Any) -> Rule:
    return Rule(**keys, when=(*(CONDITIONS[name] for name in when), *(~CONDITIONS[name] for name in unless)))


RULES = tuple(_rule(**keys) for keys in DATA["rule"])


def fact(name: str, profile: Profile) -> str:
    """Say one fact.

    >>> from judged.scoring.advice.profile import profile_of
    >>> fact("grades", profile_of({"q1": {"a": 2, "b": 0}}))
    'grades 0, 2'
    """
    return written(FACTS[name], profile)


@dataclass(frozen=True)
class Task:
    """What a system is for."""

    name: str  # as it is given to `advise`
    what: str  # when it is one's own task
    needs: str = ""  # the condition without which the data speak against it

    def fits(self, profile: Profile) -> bool:
        """Whether the data do not speak against it."""
        return not self.needs or CONDITIONS[self.needs](profile)


TASKS = {task["name"]: Task(**task) for task in DATA["task"]}

# What is tried where no task is given: what the data say most plainly comes first.
_TRIED = ("set", "preferences", "diversity", "assessors", "graded", "single-answer")


def checked(name: str) -> Task:
    """Give the task of a name."""
    if name not in TASKS:
        raise InputError(f"no task {name!r}", fix=f"use one of {', '.join(sorted(TASKS))}")
    return TASKS[name]


def inferred(profile: Profile) -> tuple[Task, str]:
    """Give the first task that the data show, and what shows it."""
    for name in _TRIED:
        if TASKS[name].fits(profile):
            return TASKS[name], CONDITIONS[TASKS[name].needs].name
    return TASKS["many-relevant"], "nothing in them speaks for another"


def alternatives(profile: Profile, chosen: Task) -> tuple[Task, ...]:
    """Give the other tasks that the data do not speak against."""
    return tuple(task for task in TASKS.values() if task != chosen and task.fits(profile))
