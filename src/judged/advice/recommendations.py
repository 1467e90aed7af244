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
    """One rule that holds, with the numbers of the data.

    Parameters
    ----------
    rule, kind
        The rule's id, and whether it says recommend, pair, avoid or note.
    measures
        The measures, at the relevance level, the highest grade and the list length of the data.
    reason
        Why, with the numbers of the data.
    facts
        The facts that it rests on, as sentences; none for one that rests on the task alone.
    sources
        The papers it goes back to, as keys of `judged.advice.sources.SOURCES`.
    disputed
        Who sees it otherwise.
    """

    rule: str
    kind: Kind
    measures: tuple[Measure, ...]
    reason: str
    facts: tuple[str, ...]
    sources: tuple[str, ...]
    disputed: str = ""


@dataclass(frozen=True)
class Recommendations:
    """All that is recommended for some data: the part of an advice that its forms stand on.

    Parameters
    ----------
    profile
        The facts about judgments and runs.
    task
        What the system is for.
    given
        Whether the caller said so; else it was taken from the data.
    others
        The other tasks that the data do not speak against.
    entries
        Every rule that holds, in the order of the advice.
    inputs
        The qrels and runs as they are written on a command line.
    options
        Further options of the command that reads them.
    """

    profile: Profile
    task: Task
    given: bool
    others: tuple[Task, ...]
    entries: tuple[Recommendation, ...]
    inputs: tuple[str, ...]
    options: tuple[str, ...] = ()

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
