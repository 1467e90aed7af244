"""What a system may be for, and what the data at hand allow to be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.advice import conditions as are
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.advice.profile import Profile
    from judged.advice.rule import Condition


@dataclass(frozen=True)
class Task:
    """What a system is for."""

    name: str  # as it is given to `advise`
    what: str  # when it is one's own task
    # what must be true of the data for it to be inferred; never inferred for None: the data do not show it
    allowed: tuple[Condition, ...] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Go by name from process to process: conditions are functions."""
        return checked, (self.name,)


TASKS = {
    task.name: task
    for task in (
        Task("single-answer", "one document answers, and the user stops at it", (are.ONE_ANSWER,)),
        Task("many-relevant", "several documents are relevant or many, each as much as the next", ()),
        Task("graded", "documents are relevant to different degrees, and the first page counts", (are.GRADED,)),
        Task("coverage", "everything relevant is wanted: reviews, patents, legal search"),
        Task("first-stage", "the ranking feeds a reranker"),
        Task("rag", "the first documents are read by a language model"),
        Task("recommendation", "the topics are users, and the list was not asked for"),
        Task("diversity", "a query has several meanings, and the page should serve them all", (are.SUBTOPICS,)),
        Task("assessors", "several people judged, and their disagreement should count", (are.ASSESSORS,)),
        Task("preferences", "users said which document is better, not how good each is", (are.PREFERENCES,)),
        Task("set", "a Boolean search or a filter gives documents without an order", (are.SETS,)),
    )
}

# What is tried where no task is given: what the data say most plainly comes first, and what is always true last.
_TRIED = ("set", "preferences", "diversity", "assessors", "graded", "single-answer", "many-relevant")
_NEEDS = {
    "diversity": are.SUBTOPICS,
    "assessors": are.ASSESSORS,
    "set": are.SETS,
    "preferences": are.PREFERENCES,
    "graded": are.GRADED,
    "single-answer": are.ONE_ANSWER,
    "many-relevant": are.SEVERAL,
}


def checked(name: str) -> Task:
    """Give the task of a name."""
    if name not in TASKS:
        raise InputError(f"no task {name!r}", fix=f"one of {', '.join(sorted(TASKS))}")
    return TASKS[name]


def inferred(profile: Profile) -> Task:
    """Give the first task that the data allow."""
    tried = (TASKS[name] for name in _TRIED)
    return next(task for task in tried if all(condition(profile) for condition in task.allowed or ()))


def alternatives(profile: Profile, chosen: Task) -> tuple[Task, ...]:
    """Give the other tasks that the data do not speak against."""
    return tuple(
        task
        for task in TASKS.values()
        if task is not chosen and (task.name not in _NEEDS or _NEEDS[task.name](profile))
    )
