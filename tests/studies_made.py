"""Studies with known effects, drawn by a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from judged.studies.records import StudyRecords


def crossed(people: int, topics: int, systems: int = 2, *, between: bool = False) -> dict[str, Any]:
    """Return persons, topics, positions, and systems of a study in which each person has each topic once."""
    person = np.repeat(np.arange(people), topics)
    position = np.tile(np.arange(topics), people)
    topic = (person // systems + position) % topics
    system = person % systems if between else (topic + person) % systems
    return {"person": person, "topic": topic, "position": position, "system": system}


def sample_values(
    rng: np.random.Generator, design: dict[str, Any], effect: float = 0.0, *, interaction: float = 0.0
) -> Any:
    """Sample values with effects of people, topics, order, and system; `interaction` scales system interactions."""
    people, topics, systems = (int(design[name].max()) + 1 for name in ("person", "topic", "system"))
    return (
        rng.normal(size=people)[design["person"]]
        + rng.normal(size=topics)[design["topic"]]
        + 0.3 * design["position"]
        + interaction * rng.normal(size=(people, systems))[design["person"], design["system"]]
        + interaction * rng.normal(size=(topics, systems))[design["topic"], design["system"]]
        + rng.normal(size=len(design["person"]))
        + effect * design["system"]
    )


def records(seed: int = 0, people: int = 12, topics: int = 8, effect: float = 1.0) -> StudyRecords:
    """Create records of a study of systems a and b, with satisfaction, times, actions, and preferences."""
    rng, design = np.random.default_rng(seed), crossed(people, topics)
    satisfaction = sample_values(rng, design, effect)
    trials, answers, events, saved = (list[dict[str, Any]]() for _ in range(4))
    columns = (design[name].tolist() for name in ("person", "topic", "position", "system"))
    for i, (person, topic, position, system) in enumerate(zip(*columns, strict=True)):
        key = {"participant": f"p{person:02}", "position": position + 1}
        start, query = 1_700_000_000_000 + i * 600_000, f"words of {topic}"
        ended = start + 60_000 * (1 + i % 5)
        trials.append({**key, "query_id": f"t{topic}", "system": "ab"[system], "started": start, "ended": ended})
        answers.append({**key, "questionnaire": "satisfaction", "item": "1", "value": float(satisfaction[i])})
        events.append({**key, "time": start, "action": "query", "query": query, "page": 1, "shown": ["d1", "d2"]})
        for rank in range(1, i % 3 + 1):
            click = {**key, "time": start + rank * 1000, "query": query, "doc_id": f"d{rank}", "rank": rank}
            events.append({**click, "action": "click"})
            saved.append(click)
    names = [f"p{person:02}" for person in range(people)]
    sides = [("a", "b") if n % 2 else ("b", "a") for n in range(people)]
    preferences = [
        {"participant": name, "query_id": "t0", "left": left, "right": right, "preferred": "b" * (n % 4 > 0)}
        for n, (name, (left, right)) in enumerate(zip(names, sides, strict=True))
    ]
    people_table = [{"participant": name, "group": "novice" if n % 3 else "expert"} for n, name in enumerate(names)]
    return StudyRecords.of({"participants": people_table, "trials": trials, "answers": answers, "events": events,
                            "saved": saved, "preferences": preferences})  # fmt: skip
