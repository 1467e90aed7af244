"""What the rules recommend, as values: one recommendation a rule that holds, and all of them for some data."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judged.advice.profile import Profile
    from judged.advice.rule import Kind
    from judged.advice.tasks import Task
    from judged.measures import Measure


@dataclass(frozen=True)
class Recommendation:
    """One rule that holds, with the numbers of the data."""

    # rule, kind: the rule's id, and whether it says recommend, pair, avoid or note
    rule: str
    kind: Kind
    # the measures, at the relevance level, the highest grade and the list length of the data
    measures: tuple[Measure, ...]
    reason: str  # why, with the numbers of the data
    facts: tuple[str, ...]  # the facts that it rests on, as sentences; none for one that rests on the task alone
    sources: tuple[str, ...]  # the papers it goes back to, as keys of `judged.advice.sources.SOURCES`
    disputed: str = ""  # who sees it otherwise


@dataclass(frozen=True)
class Recommendations:
    """All that is recommended for some data: the part of an advice that its forms stand on."""

    profile: Profile  # the facts about judgments and runs
    task: Task  # what the system is for
    given: bool  # whether the caller said so; else it was taken from the data
    others: tuple[Task, ...]  # the other tasks that the data do not speak against
    entries: tuple[Recommendation, ...]  # every rule that holds, in the order of the advice
    inputs: tuple[str, ...]  # the qrels and runs as they are written on a command line
    options: tuple[str, ...] = ()  # further options of the command that reads them

    def of(self, *kinds: Kind) -> tuple[Recommendation, ...]:
        """Give the entries of some kinds."""
        return tuple(entry for entry in self.entries if entry.kind in kinds)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures to report, each once; first those that matter most."""
        return tuple(dict.fromkeys(one for entry in self.of("recommend", "pair") for one in entry.measures))

    @property
    def avoid(self) -> tuple[Measure, ...]:
        """The measures that do not suit these data, each once."""
        return tuple(dict.fromkeys(one for entry in self.of("avoid") for one in entry.measures))

    @property
    def command(self) -> str:
        """The command that computes the measures."""
        named = [text for one in self.measures for text in ("-m", str(one))]
        return shlex.join(["judged", "evaluate", *self.inputs, *self.options, *named])
