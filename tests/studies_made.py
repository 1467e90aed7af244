"""Studies with known effects, drawn by a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from judged.studies.records import StudyRecords


def crossed(people: int, topics: int, systems: int = 2, *, between: bool = False) -> dict[str, Any]:
    """Give persons, topics, positions and systems of a study in which everybody tries every topic once."""
    person = np.repeat(np.arange(people), topics)
    position = np.tile(np.arange(topics), people)
    topic = (person // systems + position) % topics
    system = person % systems if between else (topic + person) % systems
    return {"person": person, "topic": topic, "position": position, "system": system}


def drawn(rng: np.random.Generator, where: dict[str, Any], effect: float = 0.0, *, own: float = 0.0) -> Any:
    """Draw values in which people, topics and order matter; `own`: what systems are to each person and topic."""
    people, topics, systems = (int(where[name].max()) + 1 for name in ("person", "topic", "system"))
    return (
        rng.normal(size=people)[where["person"]]
        + rng.normal(size=topics)[where["topic"]]
        + 0.3 * where["position"]
        + own * rng.normal(size=(people, systems))[where["person"], where["system"]]
        + own * rng.normal(size=(topics, systems))[where["topic"], where["system"]]
        + rng.normal(size=len(where["person"]))
        + effect * where["system"]
    )


def records(seed: int = 0, people: int = 12, topics: int = 8, effect: float = 1.0) -> StudyRecords:
    """Make the records of a study of the systems a and b with satisfaction, times, actions and preferences."""
    rng, where = np.random.default_rng(seed), crossed(people, topics)
    liked = drawn(rng, where, effect)
    trials, answers, events, saved = (list[dict[str, Any]]() for _ in range(4))
    columns = (where[name].tolist() for name in ("person", "topic", "position", "system"))
    for at, (person, topic, position, system) in enumerate(zip(*columns, strict=True)):
        of = {"participant": f"p{person:02}", "position": position + 1}
        start, query = 1_700_000_000_000 + at * 600_000, f"words of {topic}"
        ended = start + 60_000 * (1 + at % 5)
        trials.append({**of, "query_id": f"t{topic}", "system": "ab"[system], "started": start, "ended": ended})
        answers.append({**of, "questionnaire": "satisfaction", "item": "1", "value": float(liked[at])})
        events.append({**of, "time": start, "action": "query", "query": query, "page": 1, "shown": ["d1", "d2"]})
        for rank in range(1, at % 3 + 1):
            click = {**of, "time": start + rank * 1000, "query": query, "doc_id": f"d{rank}", "rank": rank}
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
