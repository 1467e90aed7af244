"""Designs for the tests of studies."""

from __future__ import annotations

from typing import Any

from judged.studies.design import Design, StudySystem, Task, Variant


def make_design(systems: int = 2, topics: int = 4, *, practice: int = 0, interfaces: int = 1, **fields: Any) -> Design:
    """Create a design with these numbers of systems, topics, and interface variants."""
    tasks = tuple(Task(f"t{i}", f"query {i}", "Find it.", 5.0, 2) for i in range(topics + practice))
    several = tuple(Variant(f"v{i}") for i in range(interfaces)) if interfaces > 1 else (Variant(),)
    searched = tuple(StudySystem(f"s{i}", "docs.jsonl", f"s{i}.run") for i in range(systems))
    return Design("A study", searched, tasks[:topics], tasks[topics:], interfaces=several, **fields)
