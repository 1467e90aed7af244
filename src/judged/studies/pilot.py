"""How much an outcome varies from person to person and from topic to topic, from the records of a pilot."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.notes import Note
from judged.studies.planning import Spreads
from judged.studies.scoring import scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats
    from judged.studies.design import Design
    from judged.studies.records import StudyRecords

_SAME = 1e-9
_FEW = 8  # people or topics: with fewer a pilot says little of how much they vary


def pilot_spreads(records: StudyRecords, design: Design, outcome: str) -> tuple[Spreads, tuple[Note, ...]]:
    """Estimate how much an outcome varies, and say what the estimate is worth.

    Parameters
    ----------
    records, design
        Of the pilot; practice does not count.
    outcome
        ``minutes``, ``saved``, or the name of a questionnaire that is asked after each task.

    Raises
    ------
    InputError
        If there is no such outcome, or too few trials have one.
    """
    trials = {
        (row["participant"], row["position"]): row for row in records["trials"].to_pylist() if not row["practice"]
    }
    values = {key: value for key, value in _values(records, design, outcome, trials).items() if key in trials}
    if not values:
        known = ["minutes", "saved", *(one.name for one in design.questionnaires if one.after == "task" and one.scored)]
        problem = f"no trial of the pilot has an outcome {outcome!r}"
        raise InputError(problem, fix=f"use one of {', '.join(known)}", path=records.where)
    rows = [trials[key] for key in values]
    people, topics = [row["participant"] for row in rows], [row["query_id"] for row in rows]
    found, below = spreads_of(list(values.values()), people, topics, [(row["system"], row["variant"]) for row in rows])
    notes: list[Note] = []
    if min(len(set(people)), len(set(topics))) < _FEW:
        text = f"a pilot of {len(set(people))} people and {len(set(topics))} topics says little of how much they vary"
        notes.append(Note("small-pilot", f"{text}: plan with larger spreads too"))
    notes += [Note("no-spread", f"{name.replace('_', ' ')}: no more than chance, taken as 0") for name in below]
    return found, tuple(notes)


def _values(
    records: StudyRecords, design: Design, outcome: str, trials: dict[tuple[str, int], Any]
) -> dict[Any, float]:
    if outcome == "minutes":
        known = {key: (row["started"], row["ended"]) for key, row in trials.items()}
        return {key: (end - start) / 60_000 for key, (start, end) in known.items() if None not in (start, end)}
    if outcome == "saved":
        counts = Counter((row["participant"], row["position"]) for row in records["saved"].to_pylist())
        return {key: float(counts[key]) for key in trials}
    rows = scores(records, design).to_pylist()
    wanted = [row for row in rows if row["questionnaire"] == outcome and row["score"] is not None]
    return {(row["participant"], row["position"]): row["score"] for row in wanted}


def spreads_of(
    values: Sequence[float], people: Sequence[Any], topics: Sequence[Any], conditions: Sequence[Any]
) -> tuple[Spreads, list[str]]:
    """Estimate variance components by fitting constants, and name those that come out below 0.

    What one factor adds to the others takes away a sum of squares, which is set equal to what is expected (Henderson's
    method 3, Biometrics 1953). Where each person has one condition, all that people differ in counts as their level.

    Raises
    ------
    InputError
        If nothing is left to tell single trials by.
    """
    y, person, topic = np.array(values, float), _dummies(people), _dummies(topics)
    by_person = _dummies(list(zip(people, conditions, strict=True)))
    by_topic = _dummies(list(zip(topics, conditions, strict=True)))
    full = _basis(by_person, by_topic)
    if (left := len(y) - full.shape[1]) < 1:
        raise InputError("the pilot has too few trials", fix="take more people, or state what you expect")
    rest = float((_beyond(full, y) ** 2).sum())
    trials, below = rest / left, list[str]()

    def component(name: str, less: Floats, members: Floats, more: float = 0.0) -> float:
        """Give the variance of a factor, by what a model without it leaves; `more` is expected there beside it."""
        squares, df = float((_beyond(less, y) ** 2).sum()) - rest, full.shape[1] - less.shape[1]
        times = float((_beyond(less, members) ** 2).sum())
        if times < _SAME * len(y):
            return 0.0
        found = (squares - trials * df - more) / times
        below.extend([name] * (found < 0))
        return max(found, 0.0)

    of_people = component("people_by_system", _basis(person, by_topic), by_person)
    of_topics = component("topics_by_system", _basis(by_person, topic), by_topic)
    only = _basis(by_topic)
    beside = of_people * float((_beyond(only, by_person) ** 2).sum())
    level = component("people", only, person, beside)
    return Spreads(*np.sqrt([level, of_people, of_topics, trials]).tolist()), below


def _dummies(codes: Sequence[Any]) -> Floats:
    _, at = np.unique([repr(code) for code in codes], return_inverse=True)
    return (at[:, None] == np.arange(int(at.max()) + 1)) * 1.0


def _basis(*columns: Floats) -> Floats:
    left, sizes, _ = np.linalg.svd(np.hstack(columns), full_matrices=False)
    return left[:, sizes > _SAME * sizes[0]]


def _beyond(basis: Floats, values: Floats) -> Floats:
    return values - basis @ (basis.T @ values)
