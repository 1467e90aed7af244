"""Scores of the questionnaires that participants filled in, and how far the items of each agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.stats.topic_reliability import reliability
from judged.studies.questionnaires import sus_of_umux_lite

if TYPE_CHECKING:
    from judged._types import Floats, Table
    from judged.studies.design import Design
    from judged.studies.questionnaires import Questionnaire
    from judged.studies.records import StudyRecords

SCORES = pa.schema(
    {
        "participant": pa.string(),
        "position": pa.int64(),
        "system": pa.string(),
        "questionnaire": pa.string(),
        "score": pa.float64(),
        "low": pa.float64(),
        "high": pa.float64(),
        "items": pa.int64(),
        "sus": pa.float64(),
    }
)
"""Columns of `scores`: ``score`` is empty where an item is missing; ``low`` and ``high`` are what it would be at least
and at most, whatever was answered there; ``items`` were answered; ``sus``: the score as one of SUS, of SUS and, by
regression, of UMUX-Lite."""


def scores(records: StudyRecords, design: Design) -> Table:
    """Score every questionnaire that was filled in, as a table with the columns of `SCORES`.

    A questionnaire with an item that is missing, or is no value of its scale, has no score: never one that takes it as
    0, or as the mean of the others. Those without a score by their nature (open texts) are left out.
    """
    known = {questionnaire.name: questionnaire for questionnaire in design.questionnaires if questionnaire.scored}
    rows: list[dict[str, Any]] = []
    for key, values in _filled_in(records, known).items():
        questionnaire, given = known[key[-1]], np.array(values)
        low, high = questionnaire.bounds(given)
        answered, score = int((~np.isnan(given)).sum()), questionnaire.score(given)
        sus = {"sus": score, "umux-lite": sus_of_umux_lite(score)}.get(questionnaire.of, math.nan)
        numbers = {"score": score, "low": low, "high": high, "items": answered, "sus": sus}
        named = dict(zip(("participant", "position", "system", "questionnaire"), key, strict=True))
        rows.append(named | {name: None if math.isnan(number) else number for name, number in numbers.items()})
    return pa.Table.from_pylist(rows, schema=SCORES)


def _filled_in(records: StudyRecords, known: dict[str, Questionnaire]) -> dict[tuple[str, int, str, str], list[float]]:
    """Give the values of the scored items of each questionnaire that was filled in; NaN where there is none.

    A questionnaire after a task is of the system that the task was done with.
    """
    of = {(row["participant"], row["position"]): row["system"] for row in records["trials"].to_pylist()}
    places = {name: {item.name: at for at, item in enumerate(one.scored)} for name, one in known.items()}
    found: dict[tuple[str, int, str, str], list[float]] = {}
    for row in records["answers"].to_pylist():
        if (name := row["questionnaire"]) in known:
            trial = row["participant"], row["position"]
            values = found.setdefault((*trial, of.get(trial, row["system"]), name), [math.nan] * len(places[name]))
            at = places[name].get(row["item"])
            if at is not None and row["value"] in known[name].scored[at].values:
                values[at] = row["value"]
    return found


@dataclass(frozen=True)
class Agreement:
    """How far the items of a questionnaire agree: Cronbach's alpha, of so many that were filled in whole."""

    questionnaire: str
    alpha: float
    ci: tuple[float, float]
    filled_in: int
    left_out: int


def item_agreement(values: Floats, *, level: float = 0.95) -> tuple[float, tuple[float, float]]:
    """Give Cronbach's alpha of items (n, k) with the interval of Feldt (1965); NaN for fewer than two of either.

    Alpha is the generalisability of persons over items (Hoyt 1941); below 0 it is taken as 0.

    >>> values = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> round(item_agreement(values)[0], 4)
    0.9093
    """
    whole = values[~np.isnan(values).any(axis=1)]
    if min(whole.shape) < 2:
        return math.nan, (math.nan, math.nan)
    found = reliability(whole, level=level).generalisability
    return found.value, found.interval or (math.nan, math.nan)


def agreement(records: StudyRecords, design: Design, *, level: float = 0.95) -> tuple[Agreement, ...]:
    """Say how far the items of each questionnaire with several agree.

    What one person filled in several times counts as if it were of several: the interval is then too narrow.
    """
    known = {one.name: one for one in design.questionnaires if len(one.scored) > 1}
    filled_in = _filled_in(records, known)
    found: list[Agreement] = []
    for name, questionnaire in known.items():
        given = [values for key, values in filled_in.items() if key[-1] == name]
        values = questionnaire.shares(np.array(given).reshape(len(given), len(questionnaire.scored)))
        whole = int((~np.isnan(values).any(axis=1)).sum())
        found.append(Agreement(name, *item_agreement(values, level=level), whole, len(values) - whole))
    return tuple(found)
