"""Outcomes of trials: behavior and answers, and their correlation with a measure of the lists."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.results.spelling import use_one_of
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency
from judged.studies.crossed import TrialArrays, dummies
from judged.studies.preference import strategy_counts
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
    "strategies": "",
}
"""Outcomes of participants' actions, and whether higher (more) or lower (less) values are better."""


class TrialValue(NamedTuple):
    """Value of one trial; position 0 and an empty topic if the value concerns a system, not a single trial."""

    participant: str
    position: int
    query_id: str
    system: str
    variant: str
    value: float


@dataclass(frozen=True)
class Outcome:
    """Values of all trials that have an outcome, practice excluded."""

    name: str
    better: Better
    values: tuple[TrialValue, ...]

    def trials(self, by: Literal["system", "variant"] = "system") -> tuple[TrialArrays, tuple[str, ...]]:
        """Return the values as arrays, and the names of the systems (or variants) in the order of their codes."""
        names, system = np.unique([getattr(trial, by) for trial in self.values], return_inverse=True)
        person, topic = (
            np.unique([getattr(trial, name) for trial in self.values], return_inverse=True)[1]
            for name in ("participant", "query_id")
        )
        position = np.array([max(trial.position - 1, 0) for trial in self.values])
        values = np.array([trial.value for trial in self.values])
        return TrialArrays(values, system, person, topic, position), tuple(map(str, names))


def outcomes(
    records: StudyRecords, design: Design | None = None, *, qrels: Qrels | None = None, level: float = 1.0
) -> tuple[Outcome, ...]:
    """Compute all outcomes that have a value in at least one trial.

    Parameters
    ----------
    records
        Records of the study.
    design
        Design with the scoring of questionnaires. Default: the score is the mean of the items, and more is better.
    qrels
        Judgments, which add the outcomes "relevant saved" and "precision of saved" (among judged documents).
    level
        Lowest relevant grade.
    """
    trials = {(row["participant"], row["position"]): row for row in records["trials"].to_pylist()}
    questionnaires = design.questionnaires if design else ()
    lower_is_better = {form.name for form in questionnaires if not form.higher_is_better}
    score_table = scores(records, design) if design else _item_means(records)
    answered = _answer_outcomes(score_table, trials, lower_is_better)
    events, saved = records.by_trial("events"), records.by_trial("saved")
    grades = defaultdict[str, dict[str, float]](dict)
    for row in [] if qrels is None else qrels.table.to_pylist():
        grades[row["query_id"]][row["doc_id"]] = row["relevance"]
    values = defaultdict[str, list[TrialValue]](list)
    for key, row in trials.items():
        if row["practice"]:
            continue
        behavior = _trial_behavior(row, events[key] if events else None, saved[key] if saved else None)
        if saved and qrels is not None:
            judged = grades.get(row["query_id"], {})
            relevant = [judged[document["doc_id"]] >= level for document in saved[key] if document["doc_id"] in judged]
            behavior["relevant saved"] = float(sum(relevant))
            if relevant:
                behavior["precision of saved"] = sum(relevant) / len(relevant)
        for name, value in behavior.items():
            values[name].append(TrialValue(*key, row["query_id"], row["system"], row["variant"], value))
    for (person, system, variant), count in strategy_counts(records).items():
        values["strategies"].append(TrialValue(person, 0, "", system, variant, count))
    # If all trials are finished, or none (because there are no times), "finished" has no information.
    if {trial.value for trial in values["finished"]} == {1.0} or "minutes" not in values:
        del values["finished"]
    observed = (Outcome(name, better, tuple(values[name])) for name, better in BEHAVIOR.items() if name in values)
    return (*answered, *observed)


def _trial_behavior(trial: Any, events: list[Any] | None, saved: list[Any] | None) -> dict[str, float]:
    is_finished = trial["started"] is not None and trial["ended"] is not None
    behavior = {"finished": float(is_finished)}
    if is_finished:
        behavior["minutes"] = (trial["ended"] - trial["started"]) / _MINUTE
    if saved is not None:
        behavior["saved"] = float(len(saved))
    if events is not None:
        clicks = [event for event in events if event["action"] == "click"]
        behavior["queries"] = float(len({event["query"] for event in events if event["action"] == "query"}))
        behavior["clicks"] = float(len(clicks))
        if clicks:
            behavior["deepest click"] = float(max(click["rank"] or 0 for click in clicks))
    return behavior


def find_outcome(study_outcomes: Iterable[Outcome], name: str) -> Outcome:
    """Return the outcome with this name.

    Raises
    ------
    InputError
        If no outcome has the name.
    """
    by_name = {outcome.name: outcome for outcome in study_outcomes}
    if name not in by_name:
        raise InputError(f"unknown outcome {name!r}", fix=use_one_of(by_name))
    return by_name[name]


def _item_means(records: StudyRecords) -> Table:
    """Compute the mean of each questionnaire's items, if all of them have a number."""
    import pyarrow as pa

    key = ("participant", "position", "system", "questionnaire")
    groups = defaultdict[tuple[Any, ...], list[float | None]](list)
    for row in records["answers"].to_pylist():
        if row["value"] is not None or row["text"] is None:
            groups[tuple(row[name] for name in key)].append(row["value"])
    # A missing item makes the mean incomparable, so the questionnaire has no score.
    means = [(*group, sum(map(float, values)) / len(values)) for group, values in groups.items() if None not in values]  # type: ignore[arg-type]
    return pa.Table.from_pylist([dict(zip((*key, "score"), row, strict=True)) for row in means])


def _answer_outcomes(scores: Table, trials: dict[tuple[str, int], Any], lower_is_better: set[str]) -> Iterable[Outcome]:
    by_questionnaire = defaultdict[str, list[TrialValue]](list)
    for row in scores.to_pylist():
        trial = trials.get((row["participant"], row["position"]))
        score = row["score"]
        # An answer about the study as a whole belongs to no system.
        if score is None or math.isnan(score) or not (trial or row["system"]) or (trial and trial["practice"]):
            continue
        facts = trial or {"query_id": "", "system": row["system"], "variant": ""}
        topic, system, variant = facts["query_id"], facts["system"], facts["variant"]
        value = TrialValue(row["participant"], row["position"], topic, system, variant, score)
        by_questionnaire[row["questionnaire"]].append(value)
    for name, values in by_questionnaire.items():
        yield Outcome(name, "less" if name in lower_is_better else "more", tuple(values))


_ROUNDING = 1e-12
MIN_CORRELATED = 3
"""Minimum number of trials for a correlation, over all participants or within one."""


class MeasureAgreement(NamedTuple):
    """Pearson's correlation of a measure with an outcome.

    ``pooled``: over all trials; ``within``: of deviations from each person's means, which removes how people use
    scales; ``tau``: Kendall's tau-b within persons, over all their pairs of trials; ``persons``: sorted correlations
    of single persons. Intervals are over people (see `_jackknife_interval`); None, with a ``reason``, for too few.
    """

    measure: str
    outcome: str
    trials: int
    people: int
    pooled: float
    ci: tuple[float, float] | None
    within: float
    within_ci: tuple[float, float] | None
    tau: float
    persons: tuple[float, ...]
    reason: str = ""


def measure_agreement(
    outcome: Outcome, measured: Mapping[tuple[str, int], float], measure: str, *, level: float = 0.95
) -> MeasureAgreement:
    """Correlate an outcome with a measure of the list of each trial.

    Parameters
    ----------
    outcome
        Outcome, for example satisfaction.
    measured
        Score of the measure by participant and position; trials without a score are ignored.
    measure
        Name of the measure.

    Raises
    ------
    InputError
        If fewer than three trials have both.
    """
    rows = [(trial, measured[trial.participant, trial.position]) for trial in outcome.values
            if (trial.participant, trial.position) in measured]  # fmt: skip
    if len(rows) < MIN_CORRELATED:
        problem = f"at least {MIN_CORRELATED} trials must have both {measure} and {outcome.name}, got {len(rows)}"
        raise InputError(problem, fix="pass scores of the lists that participants saw")
    x, y = np.array([score for _, score in rows]), np.array([trial.value for trial, _ in rows])
    names, person = np.unique([trial.participant for trial, _ in rows], return_inverse=True)
    sums, centered = _sums_by_person(x, y, person, centered=False), _sums_by_person(x, y, person, centered=True)
    (ci, missing), (within_ci, _) = (_jackknife_interval(table, level) for table in (sums, centered))
    persons = _pearson_r(sums[sums[:, 0] >= MIN_CORRELATED]).tolist()
    return MeasureAgreement(
        measure, outcome.name, len(rows), len(names),
        float(_pearson_r(sums.sum(axis=0))), ci, float(_pearson_r(centered.sum(axis=0))), within_ci,
        _kendall_tau_b(x, y, person), tuple(sorted(r for r in persons if not math.isnan(r))),
        missing.sentence("participant") if missing else "",
    )  # fmt: skip


def measured_trials(outcome: Outcome, scores: Scores, measure: str) -> dict[tuple[str, int], float]:
    """Return the score of each trial's list: that of the run named like its system, for its topic."""
    measured = dict[tuple[str, int], float]()
    by_run = scores.per_topic()
    for trial in outcome.values:
        score = by_run.get(trial.system, {}).get(measure, {}).get(trial.query_id, math.nan)
        if not math.isnan(score):
            measured[trial.participant, trial.position] = score
    return measured


def _sums_by_person(x: Floats, y: Floats, person: Ints, *, centered: bool) -> Floats:
    """Return n and the sums of x, y, their squares and product, by person: (P, 6)."""
    members = dummies(person)
    # Centering by person leaves the association within persons (a fixed-effects correlation).
    if centered:
        x, y = (values - members @ (values @ members / members.sum(axis=0)) for values in (x, y))
    return members.T @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def _pearson_r(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    squared = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)  # square of the denominator
    return np.where(squared > _ROUNDING, (n * xy - x * y) / np.sqrt(np.maximum(squared, _ROUNDING)), np.nan)


def _jackknife_interval(sums: Floats, level: float) -> tuple[tuple[float, float] | None, Insufficiency | None]:
    """Compute an interval for the correlation from sums by person, or the reason why it is missing.

    Student's t interval of Fisher's z, with the standard error of the jackknife over people. A percentile bootstrap
    over people covers only 80 to 85% with few people.
    """
    people, total = len(sums), sums.sum(axis=0)
    weights = sums[:, 0]
    if missing := insufficiency(people, weights=weights):
        return None, missing
    r, leave_one_out = float(_pearson_r(total)), _pearson_r(total - sums)
    is_defined = not math.isnan(r) and not np.isnan(leave_one_out).any()
    if not is_defined or max(abs(r), float(np.abs(leave_one_out).max())) >= 1 - _ROUNDING:
        return None, insufficiency(people, variance=0.0)
    # Fisher's z makes the distribution symmetric; it is infinite for |r| = 1, which was excluded above.
    z, z_leave_one_out = math.atanh(r), np.arctanh(leave_one_out)
    # Jackknife variance: (n - 1) / n times the sum of squares, which is (n - 1) times the mean of squares.
    error = math.sqrt((people - 1) * float(z_leave_one_out.var()))
    if missing := insufficiency(people, variance=error if error > _ROUNDING else 0.0):
        return None, missing
    half_width = student_quantile((1 + level) / 2, people - 1) * error
    return (math.tanh(z - half_width), math.tanh(z + half_width)), None


def _kendall_tau_b(x: Floats, y: Floats, person: Ints) -> float:
    concordant_minus_discordant, untied_pairs = 0.0, np.zeros(2)
    for code in range(int(person.max()) + 1):
        is_person = person == code
        signs = [np.sign(values[is_person][:, None] - values[is_person]) for values in (x, y)]
        concordant_minus_discordant += float((signs[0] * signs[1]).sum())
        untied_pairs += [np.count_nonzero(sign) for sign in signs]
    denominator = math.sqrt(float(untied_pairs.prod()))  # numerator and denominator count each pair twice
    return concordant_minus_discordant / denominator if denominator else math.nan
