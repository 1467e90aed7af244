"""What a system may be for, and what the data at hand allow to be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.scoring.advice.conditions import CONDITIONS
from judged.scoring.advice.rules import DATA

if TYPE_CHECKING:
    from judged.scoring.advice.profile import Profile


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
