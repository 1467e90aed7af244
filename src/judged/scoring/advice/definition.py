"""What a rule of advice is: data, with a condition over the facts and a sentence for the reader."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

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
