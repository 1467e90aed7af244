"""`advise`: from judgments, runs and a task to measures, pairs, warnings and the next command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from judged.advice import layout
from judged.advice.facts import fact
from judged.advice.profile import profile_of
from judged.advice.recommendations import Recommendation, Recommendations
from judged.advice.rule import written
from judged.advice.rules import RULES
from judged.advice.tasks import alternatives, checked, inferred
from judged.data import Qrels
from judged.data.sources import source_name
from judged.evaluation import runs_of
from judged.measures import Measure, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.advice.profile import Profile
    from judged.advice.rule import Kind, Rule
    from judged.advice.tasks import Task

_FURTHEST = 100  # cutoffs up to here are taken back to the end of the lists; R@1000 of shorter ones is recall of all


@dataclass(frozen=True)
class Advice(Recommendations):
    """What to measure here, what not, and why.

    Its parameters are those of `Recommendations`.
    """

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
        return replace(
            self,
            task=chosen,
            given=True,
            others=alternatives(self.profile, chosen),
            entries=_entries(self.profile, chosen),
        )

    def text(self, width: int = 100) -> str:
        """Lay it out for a terminal."""
        return layout.text(self, width)

    def markdown(self) -> str:
        """Lay it out as Markdown."""
        return layout.markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """Lay it out as plain values, ready for JSON."""
        return layout.plain(self)

    def __str__(self) -> str:
        return self.text()


def advise(qrels: Any, runs: Any = (), task: str | None = None, *, rel: float | None = None) -> Advice:
    """Say which measures suit the judgments and runs at hand.

    Parameters
    ----------
    qrels
        A `Qrels`, or anything that `Qrels.of` takes.
    runs
        Runs as `evaluate` takes them; none for advice on the judgments alone.
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
    listed = () if runs is None or (isinstance(runs, (tuple, list)) and not runs) else tuple(runs_of(runs))
    profile = profile_of(judgments, listed, rel=rel)
    chosen = named or inferred(profile)
    return Advice(
        profile=profile,
        task=chosen,
        given=named is not None,
        others=alternatives(profile, chosen),
        entries=_entries(profile, chosen),
        inputs=(_given(judgments.where, "QRELS"), *([_run(run.name, run.where) for run in listed] or ["RUN"])),
    )


def fitted(measure: Measure, profile: Profile, *, cut: bool = True) -> Measure:
    """Put the relevance level, the highest grade and, to ``cut``, the end of the lists into a rule's measure."""
    has = {parameter.name for parameter in measure.entry.all_parameters}
    changes: dict[str, Any] = {}
    if "rel" in has and profile.level != 1:
        changes["rel"] = profile.level
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
    found = (_entry(rule, profile, against) for rule in holding)
    return tuple(entry for entry in found if entry is not None)


def _entry(rule: Rule, profile: Profile, against: Iterable[Measure]) -> Recommendation | None:
    measures = _measures(rule, profile)
    if rule.kind in {"recommend", "pair"}:
        measures = tuple(one for one in measures if one not in against and _computable(one, profile))
        if not measures:
            return None
    kind: Kind = "recommend" if rule.kind == "pair" and len(measures) < 2 else rule.kind
    reason = " ".join(filter(None, [written(rule.here, profile), rule.why]))
    facts = tuple(fact(name, profile) for name in rule.facts)
    return Recommendation(rule.id, kind, measures, reason, facts, rule.sources, rule.disputed)


def _measures(rule: Rule, profile: Profile) -> tuple[Measure, ...]:
    """Give a rule's measures as they suit the data; those that become one are one."""
    # What is to be avoided is named as it is commonly reported, also where the lists end before its cutoff.
    cut = rule.kind in {"recommend", "pair"}
    return tuple(dict.fromkeys(fitted(parse(name), profile, cut=cut) for name in rule.measures))


def _computable(measure: Measure, profile: Profile) -> bool:
    """Whether every run has what the measure needs: ranks, unless it is one of sets."""
    return not profile.sets or not (measure.properties.needs_ranking or getattr(measure, "cutoff", None) is not None)


def _given(where: str, placeholder: str) -> str:
    """Give the path of an input, or a word in its place where it came from memory."""
    return placeholder if where.startswith("<") else where


def _run(name: str, where: str) -> str:
    path = _given(where, "RUN")
    return path if path == "RUN" or name == source_name(where) else f"{name}={path}"
