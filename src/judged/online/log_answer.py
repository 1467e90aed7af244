"""What all answers about a log share: whose they are, over what their intervals are made, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.answer import Answer, Sentences
from judged.online.findings import are_of_nobody, doubts
from judged.online.trouble import unfit

if TYPE_CHECKING:
    from judged.notes import Note
    from judged.online.log import InteractionLog


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LogAnswer(Answer):
    """An answer about a log.

    Parameters
    ----------
    log
        The log's name.
    unit, level
        What intervals are made over, and how wide they are.
    policies
        What was chosen, name to value.
    notes
        Why the log should not be trusted as it is.
    """

    asked: ClassVar[tuple[str, ...]] = ()
    """Fields that JSON repeats."""

    log: str
    unit: str
    level: float
    policies: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...] = ()

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for."""
        names = ("log", *self.asked, "unit", "level")
        return {name: getattr(self, name) for name in names} | {"policies": dict(self.policies)}

    def made(self, *said: str) -> Sentences:
        """Say how it was made, for those who ask."""
        rules = (*said, *(f"{name}: {value}" for name, value in self.policies))
        return Sentences(rules, "rules", "How this was made", folded=True)


def about(
    log: InteractionLog, unit: str, level: float, first: Mapping[str, str], settings: Any = None
) -> dict[str, Any]:
    """Give the fields that every answer about a log has; policies that are empty are none."""
    chosen = [(name, value) for name, value in first.items() if value]
    policies = (*chosen, *log.policies, *(settings.policies() if settings else ()), *taken_as_users(log))
    over = "session" if are_of_nobody(log.findings) else unit
    notes = unfit(log.name, doubts(log.accounts, log.findings))
    return {"log": log.name, "unit": over, "level": level, "policies": policies, "notes": notes}


def taken_as_users(log: InteractionLog) -> tuple[tuple[str, str], ...]:
    """Say what stands for users where the log names none: a choice that intervals hang on."""
    taken = "each session" if "sessions" in log.has else "each page"
    return (("users", f"none is logged, so {taken} counts as one"),) if are_of_nobody(log.findings) else ()
