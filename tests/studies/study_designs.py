"""Designs for the tests of studies."""

from __future__ import annotations

from typing import Any

from judged.studies.design import Design, System, Task, Variant


def made(systems: int = 2, topics: int = 4, *, practice: int = 0, interfaces: int = 1, **more: Any) -> Design:
    """Make a design of so many systems, topics and interface variants."""
    every = tuple(Task(f"t{at}", f"query {at}", "Find it.", 5.0, 2) for at in range(topics + practice))
    several = tuple(Variant(f"v{at}") for at in range(interfaces)) if interfaces > 1 else (Variant(),)
    searched = tuple(System(f"s{at}", "docs.jsonl", f"s{at}.run") for at in range(systems))
    return Design("A study", searched, every[:topics], every[topics:], interfaces=several, **more)
