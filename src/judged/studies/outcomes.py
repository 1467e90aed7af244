"""What came of each trial: how well, how fast, and how it was liked."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.stats.crossed import Trials
from judged.studies.scoring import scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged._types import Table
    from judged.data.qrels import Qrels
    from judged.studies.design import Design
    from judged.studies.records import StudyRecords

Better: TypeAlias = Literal["more", "less", ""]
_MINUTE = 60_000
BEHAVIOUR: Mapping[str, Better] = {
    "relevant saved": "more",
    "precision of saved": "more",
    "saved": "",
    "finished": "more",
    "minutes": "less",
    "queries": "",
    "clicks": "",
    "deepest click": "",
}
"""What is told of trials by what people did, and what of it is better."""


class Value(NamedTuple):
    """What came of one trial; position 0 and an empty topic where it is of a system as a whole."""

    participant: str
    position: int
    query_id: str
    system: str
    variant: str
    value: float


@dataclass(frozen=True)
class Outcome:
    """One kind of result of all trials that have it; practice does not count."""

    name: str
    better: Better
    values: tuple[Value, ...]

    def trials(self, by: Literal["system", "variant"] = "system") -> tuple[Trials, tuple[str, ...]]:
        """Give the values as numbers, with systems (or variants) as codes in the order of their names."""
        names, system = np.unique([getattr(one, by) for one in self.values], return_inverse=True)
        person, topic = (
            np.unique([getattr(one, name) for one in self.values], return_inverse=True)[1]
            for name in ("participant", "query_id")
        )
        position = np.array([max(one.position - 1, 0) for one in self.values])
        return Trials(np.array([one.value for one in self.values]), system, person, topic, position), tuple(
            map(str, names)
        )


def outcomes(
    records: StudyRecords, design: Design | None = None, *, qrels: Qrels | None = None, level: float = 1.0
) -> tuple[Outcome, ...]:
    """Give everything that can be told of the trials: those with no value in any trial are left out.

    Parameters
    ----------
    records
        Of the study.
    design
        Says how questionnaires are scored; without it, the score is the mean of the items, and more is better.
    qrels
        With them: relevant documents saved, and their share of what was saved and is judged.
    level
        The lowest grade that is relevant.
    """
    trials = {(row["participant"], row["position"]): row for row in records["trials"].to_pylist()}
    less = {one.name for one in design.questionnaires if not one.higher_is_better} if design else set[str]()
    found = list(_answered(_means(records) if design is None else scores(records, design), trials, less))
    events, saved = records.by_trial("events"), records.by_trial("saved")
    grades = {} if qrels is None else _grades(qrels)
    done = defaultdict[str, list[Value]](list)
    for key, row in trials.items():
        if row["practice"]:
            continue
        did = _told(row, events[key] if events else None, saved[key] if saved else None)
        if saved and qrels is not None:
            known = grades.get(row["query_id"], {})
            relevant = [known[one["doc_id"]] >= level for one in saved[key] if one["doc_id"] in known]
            did["relevant saved"] = float(sum(relevant))
            if relevant:
                did["precision of saved"] = sum(relevant) / len(relevant)
        for name, value in did.items():
            done[name].append(Value(*key, row["query_id"], row["system"], row["variant"], value))
    if {one.value for one in done["finished"]} == {1.0} or "minutes" not in done:
        del done["finished"]
    return (*found, *(Outcome(name, better, tuple(done[name])) for name, better in BEHAVIOUR.items() if name in done))


def _told(trial: Any, events: list[Any] | None, saved: list[Any] | None) -> dict[str, float]:
    """Give what a trial's times and actions say; nothing of actions where the study has none."""
    ended = trial["started"] is not None and trial["ended"] is not None
    told = {"finished": float(ended)}
    if ended:
        told["minutes"] = (trial["ended"] - trial["started"]) / _MINUTE
    if saved is not None:
        told["saved"] = float(len(saved))
    if events is not None:
        clicks = [one for one in events if one["action"] == "click"]
        told["queries"] = float(len({one["query"] for one in events if one["action"] == "query"}))
        told["clicks"] = float(len(clicks))
        if clicks:
            told["deepest click"] = float(max(one["rank"] or 0 for one in clicks))
    return told


def outcome_of(found: Iterable[Outcome], name: str) -> Outcome:
    """Give the outcome of this name.

    Raises
    ------
    InputError
        If there is none.
    """
    known = {one.name: one for one in found}
    if name not in known:
        raise InputError(f"the study has no outcome {name!r}", fix=f"use one of {', '.join(known)}")
    return known[name]


def _means(records: StudyRecords) -> Table:
    """The mean of each questionnaire's items, where all of them have a number."""
    import pyarrow as pa

    key = ("participant", "position", "system", "questionnaire")
    groups = defaultdict[tuple[Any, ...], list[float | None]](list)
    for row in records["answers"].to_pylist():
        if row["value"] is not None or row["text"] is None:
            groups[tuple(row[name] for name in key)].append(row["value"])
    whole = [(*where, sum(map(float, got)) / len(got)) for where, got in groups.items() if None not in got]  # type: ignore[arg-type]
    return pa.Table.from_pylist([dict(zip((*key, "score"), row, strict=True)) for row in whole])


def _answered(scores: Table, trials: dict[tuple[str, int], Any], less: set[str]) -> Iterable[Outcome]:
    """One outcome for each questionnaire; of a whole study nothing can be said of systems."""
    found = defaultdict[str, list[Value]](list)
    for row in scores.to_pylist():
        trial = trials.get((row["participant"], row["position"]))
        score = row["score"]
        if score is None or math.isnan(score) or not (trial or row["system"]) or (trial and trial["practice"]):
            continue
        of = trial or {"query_id": "", "system": row["system"], "variant": ""}
        value = Value(row["participant"], row["position"], of["query_id"], of["system"], of["variant"], score)
        found[row["questionnaire"]].append(value)
    for name, values in found.items():
        yield Outcome(name, "less" if name in less else "more", tuple(values))


def _grades(qrels: Qrels) -> dict[str, dict[str, float]]:
    found = defaultdict[str, dict[str, float]](dict)
    for row in qrels.table.to_pylist():
        found[row["query_id"]][row["doc_id"]] = row["relevance"]
    return found
