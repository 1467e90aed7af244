"""What `rules.toml` holds: the rules, in the order in which their advice is given, the facts, tasks and papers."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from judged.scoring.advice.conditions import CONDITIONS
from judged.scoring.advice.definition import Rule, written

if TYPE_CHECKING:
    from judged.scoring.advice.profile import Profile


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
