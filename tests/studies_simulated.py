"""Simulated studies of term weights with known effects of practice, condition, and experience."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from judged.studies.assignment import assignments
from judged.studies.design import first_design, parse_design
from judged.studies.records import StudyRecords

_SAVED = 3


@cache
def assigned() -> list[dict[str, Any]]:
    """Return the trials of 24 people, 12 novices and 12 experts, without practice."""
    rows = assignments(parse_design(first_design(term_weights=True))).to_pylist()
    return [row for row in rows if not row["practice"]]


def simulate(
    rng: np.random.Generator,
    *,
    learning: float = 0.0,
    faster: float = 0.0,
    interaction: float = 0.0,
    raised: float = 0.0,
) -> StudyRecords:
    """Simulate a study in which people, topics, and their interactions with conditions differ at random.

    `learning` is the change per task: of minutes (less), in standard deviations of single trials, and of the log odds
    to save a document (more). `faster` is added to it with weights. `interaction` is the additional advantage of
    experts over novices with weights. With weights, people raise a term in the share `raised` of their trials.
    """
    rows = assigned()
    people, topics = ({row[name]: rng.normal(size=4) for row in rows} for name in ("participant", "query_id"))
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("trials", "saved", "events", "weights")}
    for row in rows:
        weighted, expert = row["variant"] == "weights", row["group"] == "expert"
        person, topic = people[row["participant"]], topics[row["query_id"]]
        gain = person[0] + topic[0] + 0.3 * (person[1] + topic[1]) * (1 if weighted else -1)
        gain += (learning + faster * weighted + 0.1 * person[2]) * row["position"] + interaction * weighted * expert
        minutes = 10 - gain + rng.normal()
        key = {"participant": row["participant"], "position": row["position"]}
        condition = {name: row[name] for name in ("query_id", "system", "variant")}
        tables["trials"].append({**key, **condition, "started": 0, "ended": max(1, round(60_000 * minutes))})
        count = rng.binomial(_SAVED, 1 / (1 + np.exp(person[0] - gain)))
        tables["saved"] += [{**key, "doc_id": f"{row['query_id']}-{i}"} for i in range(count)]
        query = "short" if rng.random() < 1 / (1 + np.exp(-person[3])) else "a longer query"
        tables["events"].append({**key, "time": 0, "action": "query", "query": query, "page": 1})
        weight = 2.0 if weighted and rng.random() < raised else 1.0
        tables["weights"].append({**key, "page": 1, "term": "short", "weight": weight})
    groups = {row["participant"]: row["group"] for row in rows}
    participants = [{"participant": name, "group": group} for name, group in groups.items()]
    return StudyRecords.of({"participants": participants, **tables})
