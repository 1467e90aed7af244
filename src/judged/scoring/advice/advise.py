"""`advise`: from judgments, runs and a task to measures, pairs, warnings and the next command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import judged
from judged.data.files import exists
from judged.data.qrels import Qrels
from judged.data.sources import source_name
from judged.results import Answer, Block, Code, Column, Sentences, Table, columns_of
from judged.scoring.advice.profile import profile_of
from judged.scoring.advice.rules import RULES, SOURCES, alternatives, checked, fact, inferred, written
from judged.scoring.evaluation import runs_of
from judged.scoring.judging import Judged
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from judged.scoring.advice.profile import Profile
    from judged.scoring.advice.rules import Kind, Rule, Task

_FURTHEST = 100  # cutoffs up to here are taken back to the end of the lists; R@1000 of shorter ones is recall of all
_RECOMMENDS: tuple[Kind, ...] = ("recommend", "pair")
_IN_SHORT: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("caution", "Caution", ("caution",)),
    ("report", "Report", _RECOMMENDS),
    ("avoid_here", "Avoid here", ("avoid",)),
)
_IN_FULL: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("why_report", "Why report these", _RECOMMENDS),
    ("why_avoid", "Why avoid those here", ("avoid",)),
    ("know", "Know when reading", ("caution", "note")),
)


@dataclass(frozen=True)
class Recommendation:
    """One rule that holds, with the numbers of the data."""

    # rule, kind: the rule's id, and whether it says recommend, pair, avoid, caution or note
    rule: str
    kind: Kind
    # the measures, at the lowest relevant grade, the highest grade and the list length of the data
    measures: tuple[Measure, ...]
    here: str  # the numbers of the data that it goes by; empty for one that rests on the task alone
    why: str  # the reason, without the data
    facts: tuple[str, ...]  # the facts that it rests on, as sentences; none for one that rests on the task alone
    sources: tuple[str, ...]  # the papers it goes back to, as keys of `judged.scoring.advice.rules.SOURCES`
    disputed: str = ""  # who sees it otherwise

    @property
    def named(self) -> str:
        """The measures; those that belong together with a plus between them."""
        return (" + " if self.kind == "pair" else ", ").join(map(str, self.measures))

    @property
    def reason(self) -> str:
        """Why, with the numbers of the data."""
        return f"{self.here} {self.why}".strip()

    @property
    def short(self) -> str:
        """What it says in short, without sources; of what it recommends the numbers of the data, or the reason."""
        told = self.reason if self.kind in ("avoid", "caution") else self.here or self.why
        return f"{self.named}: {told}" if self.measures else told

    @property
    def sentence(self) -> str:
        """What it says, with who sees it otherwise, its rule and its sources."""
        disputed = f" Disputed: {self.disputed}" if self.disputed else ""
        head = f"{self.named}: " if self.measures else ""
        return f"{head}{self.reason}{disputed} [{self.rule}: {'; '.join(self.sources)}]"


@dataclass(frozen=True, repr=False)
class Advice(Answer):
    """What to measure here, what not, and why.

    Attributes
    ----------
    profile : Profile
        The facts about judgments and runs.
    task : Task
        What the system is for.
    given : bool
        Whether the caller said so; else it was taken from the data.
    entries : tuple of Recommendation
        Every rule that holds, in the order of the advice.
    inputs : tuple of str
        The qrels and runs as they are written on a command line.
    options : tuple of str
        Further options of the command that reads them.
    """

    kind: ClassVar[str] = "advice"

    profile: Profile
    task: Task
    given: bool
    entries: tuple[Recommendation, ...]
    inputs: tuple[str, ...]
    options: tuple[str, ...] = ()

    def about(self, task: str) -> Advice:
        """Give the advice on the same data for another task; the data are not read again.

        Raises
        ------
        InputError
            If there is no such task.

        Examples
        --------
        >>> advise({"q1": {"d1": 1}}).about("set").task.name
        'set'
        """
        chosen = checked(task)
        return replace(self, task=chosen, given=True, entries=_entries(self.profile, chosen))

    @property
    def others(self) -> tuple[Task, ...]:
        """The other tasks that the data do not speak against."""
        return alternatives(self.profile, self.task)

    def of(self, *kinds: Kind) -> tuple[Recommendation, ...]:
        """Give the entries of some kinds."""
        return tuple(entry for entry in self.entries if entry.kind in kinds)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures to report, each once; first those that matter most."""
        return tuple(dict.fromkeys(one for entry in self.of(*_RECOMMENDS) for one in entry.measures))

    @property
    def avoid(self) -> tuple[Measure, ...]:
        """The measures that do not suit these data, each once."""
        return tuple(dict.fromkeys(one for entry in self.of("avoid") for one in entry.measures))

    @property
    def command(self) -> str:
        """The command that computes the measures."""
        named = [text for one in self.measures for text in ("-m", str(one))]
        return shlex.join(["judged", "evaluate", *self.inputs, *self.options, *named])

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the advice is for, why that, and what else it could be for."""
        head = f"For the task {self.task.name}: {self.task.what}."
        if self.given:
            return (head,)
        _, why = inferred(self.profile)
        others = ", ".join(task.name for task in self.others)
        return (
            (
                f"{head} No task was given; this one is taken from the data, as {why}. The data cannot say what the"
                f" system is for. It could be, with --task: {others}."
            ),
        )

    def facts(self) -> dict[str, Any]:
        """Give task, measures, what to avoid, the profile of the data, and the command."""
        return {
            "judged": judged.__version__,
            "task": {"name": self.task.name, "what": self.task.what, "given": self.given},
            "others": [{"name": task.name, "what": task.what} for task in self.others],
            "measures": self.measures,
            "avoid": self.avoid,
            "profile": self.profile,
            "command": self.command,
        }

    def blocks(self) -> tuple[Block, ...]:
        """Give the task, what to report and to avoid in short, and the next command; reasons and facts are folded."""
        short = [
            Sentences(tuple(entry.short for entry in entries), name, title)
            for name, title, kinds in _IN_SHORT
            if (entries := self.of(*kinds))
        ]
        full = [
            Sentences(tuple(entry.sentence for entry in entries), name, title, folded=True)
            for name, title, kinds in _IN_FULL
            if (entries := self.of(*kinds))
        ]
        cited = sorted({source for entry in self.entries for source in entry.sources}, key=str.lower)
        return (
            Sentences(self.sentences),
            *short,
            *full,
            Sentences(self._facts(), "facts", "It rests on these facts", folded=True),
            Sentences(tuple(f"{source}: {SOURCES[source]}" for source in cited), "sources", "Sources", folded=True),
            Code((self.command,), "next", "Next"),
            self._entries(),
        )

    def _facts(self) -> tuple[str, ...]:
        """List each fact once, with the rules that rest on it; then the rules that rest on the task alone."""
        rules: dict[str, list[str]] = {}
        for entry in self.entries:
            for known in entry.facts or ("the task alone",):
                rules.setdefault(known, []).append(entry.rule)
        ordered = sorted(rules.items(), key=lambda item: item[0] == "the task alone")
        return tuple(f"{known} ({', '.join(names)})" for known, names in ordered)

    def _entries(self) -> Table:
        entries = self.entries
        sources = [{source: SOURCES[source] for source in entry.sources} for entry in entries]
        columns = columns_of(entries, "rule", "kind", "measures", "reason", "facts", "disputed")
        return Table("entries", (*columns, Column("sources", sources, only="json")), only="data")


def advise(qrels: Any, runs: Any = (), task: str | None = None, *, rel: float | None = None) -> Advice:
    """Say which measures suit the judgments and runs at hand.

    Parameters
    ----------
    qrels
        A `Qrels`, or anything that `Qrels.of` takes.
    runs
        Runs as `evaluate` takes them, or each as `judge` gives it; none for advice on the judgments alone.
    task
        What the system is for: single-answer, many-relevant, graded, coverage, first-stage, rag, recommendation,
        diversity, assessors, preferences, set. None to take what the data show.
    rel
        The grade from which a document is relevant; None to choose by the scale.

    Returns
    -------
    Advice

    Raises
    ------
    InputError
        If something cannot be read, there is no such task, or a run has no topic in common with the qrels.

    Examples
    --------
    >>> advice = advise({"q1": {"d1": 1}, "q2": {"d2": 1}})
    >>> advice.task.name, [str(measure) for measure in advice.measures]
    ('single-answer', ['RR@10', 'Success@10', 'R@100', 'R@1000'])
    >>> print(advice.command)
    judged evaluate QRELS RUN -m RR@10 -m Success@10 -m R@100 -m R@1000
    """
    named = None if task is None else checked(task)
    judgments = Qrels.of(qrels)
    judged = [one for one in runs if isinstance(one, Judged)] if isinstance(runs, (tuple, list)) else []
    nothing = runs is None or (isinstance(runs, (tuple, list)) and not runs)
    listed = [one.run for one in judged] or ([] if nothing else runs_of(runs))
    profile = profile_of(judgments, judged or listed, rel=rel)
    chosen = named or inferred(profile)[0]
    paths = [(run.name, run.where) for run in listed if exists(run.where)]
    written_runs = [path if name == source_name(path) else f"{name}={path}" for name, path in paths]
    placeholders = ["RUN"] * max(len(listed) - len(paths), not listed)
    return Advice(
        profile=profile,
        task=chosen,
        given=named is not None,
        entries=_entries(profile, chosen),
        inputs=(judgments.where if exists(judgments.where) else "QRELS", *written_runs, *placeholders),
    )


def fitted(measure: Measure, profile: Profile, *, cut: bool = True) -> Measure:
    """Put the lowest relevant grade, the highest grade and, to ``cut``, the end of the lists into a rule's measure."""
    has = {parameter.name for parameter in measure.entry.all_parameters}
    changes: dict[str, Any] = {}
    if "rel" in has and profile.rel != 1:
        changes["rel"] = profile.rel
    if "max" in has and getattr(measure, "max", None) is not None and profile.positive:
        changes["max"] = profile.positive[-1]
    cutoff, longest = getattr(measure, "cutoff", None), profile.longest
    if cut and cutoff is not None and longest is not None and longest < cutoff and longest <= _FURTHEST:
        changes["cutoff"] = max(longest, 1)
    return measure.replace(**changes) if changes else measure


def _entries(profile: Profile, task: Task) -> tuple[Recommendation, ...]:
    """Apply the rules. What one of them speaks against, none recommends."""
    holding = [rule for rule in RULES if rule.holds(profile, task.name)]
    against = {one for rule in holding if rule.kind == "avoid" for one in _measures(rule, profile)}
    entries: list[Recommendation] = []
    for rule in holding:
        measures, kind = _measures(rule, profile), rule.kind
        if kind in _RECOMMENDS:
            measures = tuple(one for one in measures if one not in against and _computable(one, profile))
            kind = kind if len(measures) > 1 else "recommend"
        if measures or kind not in _RECOMMENDS:
            here = written(rule.here, profile)
            facts = tuple(fact(name, profile) for name in rule.facts)
            entries.append(Recommendation(rule.id, kind, measures, here, rule.why, facts, rule.sources, rule.disputed))
    return tuple(entries)


def _measures(rule: Rule, profile: Profile) -> tuple[Measure, ...]:
    """Give a rule's measures as they suit the data; those that become one are one."""
    # What is to be avoided is named as it is commonly reported, also where the lists end before its cutoff.
    cut = rule.kind in _RECOMMENDS
    return tuple(dict.fromkeys(fitted(parse(name), profile, cut=cut) for name in rule.measures))


def _computable(measure: Measure, profile: Profile) -> bool:
    """Whether every run has what the measure needs: ranks, unless it is one of sets."""
    return not profile.sets or not (measure.properties.needs_ranking or getattr(measure, "cutoff", None) is not None)
