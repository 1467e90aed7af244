"""What came of each trial: how well, how fast, and how it was liked."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency
from judged.studies.crossed import Trials, dummies
from judged.studies.questionnaires import scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.data.qrels import Qrels
    from judged.results.types import Floats, Ints, Table
    from judged.scoring.evaluation.scores import Scores
    from judged.stats.sufficiency import Insufficiency
    from judged.studies.design import Design
    from judged.studies.records import StudyRecords


Better: TypeAlias = Literal["more", "less", ""]
_MINUTE = 60_000
BEHAVIOR: Mapping[str, Better] = {
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
        values = np.array([one.value for one in self.values])
        return Trials(values, system, person, topic, position), tuple(map(str, names))


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
    return (*found, *(Outcome(name, better, tuple(done[name])) for name, better in BEHAVIOR.items() if name in done))


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


_NONE = 1e-12
FEWEST = 3
"""Trials, of all people or of one, from which a correlation is told."""


class Agreement(NamedTuple):
    """Pearson's correlation of a measure with an outcome.

    ``pooled``: over all trials; ``within``: of what differs from each person's means, which is free of how people use
    scales; ``rank``: Kendall's tau-b within persons, over all their pairs of trials. Intervals are over people (see
    `_jackknife_interval`); None where there are too few people, and ``reason`` then says so.
    """

    measure: str
    outcome: str
    trials: int
    people: int
    pooled: float
    ci: tuple[float, float] | None
    within: float
    within_ci: tuple[float, float] | None
    rank: float
    persons: tuple[float, ...]
    reason: str = ""


def measure_agreement(
    outcome: Outcome, measured: Mapping[tuple[str, int], float], measure: str, *, level: float = 0.95
) -> Agreement:
    """Correlate an outcome with a measure of the list of each trial.

    Parameters
    ----------
    outcome
        For example satisfaction.
    measured
        The measure by participant and position; trials without it do not count.
    measure
        Its name.

    Raises
    ------
    InputError
        If fewer than three trials have both.
    """
    rows = [(one, measured[one.participant, one.position]) for one in outcome.values
            if (one.participant, one.position) in measured]  # fmt: skip
    if len(rows) < FEWEST:
        raise InputError(f"{len(rows)} trials have {measure} and {outcome.name}", fix="give scores of the lists shown")
    x, y = np.array([score for _, score in rows]), np.array([one.value for one, _ in rows])
    names, person = np.unique([one.participant for one, _ in rows], return_inverse=True)
    sums, centered = _sums(x, y, person, centered=False), _sums(x, y, person, centered=True)
    (ci, lacking), (within_ci, _) = (_jackknife_interval(table, level) for table in (sums, centered))
    own = _r(sums[sums[:, 0] >= FEWEST]).tolist()
    return Agreement(
        measure, outcome.name, len(rows), len(names),
        float(_r(sums.sum(axis=0))), ci, float(_r(centered.sum(axis=0))), within_ci,
        _tau(x, y, person), tuple(sorted(one for one in own if not math.isnan(one))),
        lacking.sentence("participant") if lacking else "",
    )  # fmt: skip


def measured_trials(outcome: Outcome, scores: Scores, measure: str) -> dict[tuple[str, int], float]:
    """Give the score of each trial's list, its system being a run and its topic a topic of the scores."""
    found = dict[tuple[str, int], float]()
    by_run = scores.per_topic()
    for one in outcome.values:
        score = by_run.get(one.system, {}).get(measure, {}).get(one.query_id, math.nan)
        if not math.isnan(score):
            found[one.participant, one.position] = score
    return found


def _sums(x: Floats, y: Floats, person: Ints, *, centered: bool) -> Floats:
    """Give n and the sums of x, y, their squares and product, by person."""
    members = dummies(person)
    if centered:
        x, y = (values - members @ (values @ members / members.sum(axis=0)) for values in (x, y))
    return members.T @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def _r(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
    return np.where(spread > _NONE, (n * xy - x * y) / np.sqrt(np.maximum(spread, _NONE)), np.nan)


def _jackknife_interval(sums: Floats, level: float) -> tuple[tuple[float, float] | None, Insufficiency | None]:
    """Return an interval for the correlation of sums by person, (P, 6), or why there is none.

    Student's t interval of Fisher's z, whose standard error is that of the jackknife over people. Percentiles of a
    bootstrap over people cover 80 to 85% with few people.
    """
    people, total = len(sums), sums.sum(axis=0)
    weights = sums[:, 0]
    if lacking := insufficiency(people, weights=weights):
        return None, lacking
    r, without = float(_r(total)), _r(total - sums)
    if math.isnan(r) or np.isnan(without).any() or max(abs(r), float(np.abs(without).max())) >= 1 - _NONE:
        return None, insufficiency(people, variance=0.0)
    z, z_without = math.atanh(r), np.arctanh(without)
    error = math.sqrt((people - 1) * float(z_without.var()))
    if lacking := insufficiency(people, variance=error if error > _NONE else 0.0):
        return None, lacking
    far = student_quantile((1 + level) / 2, people - 1) * error
    return (math.tanh(z - far), math.tanh(z + far)), None


def _tau(x: Floats, y: Floats, person: Ints) -> float:
    agreed, unequal = 0.0, np.zeros(2)
    for code in range(int(person.max()) + 1):
        own = person == code
        signs = [np.sign(values[own][:, None] - values[own]) for values in (x, y)]
        agreed += float((signs[0] * signs[1]).sum())
        unequal += [np.count_nonzero(sign) for sign in signs]
    below = math.sqrt(float(unequal.prod()))  # each pair counts twice, above and below
    return agreed / below if below else math.nan
