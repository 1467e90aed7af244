"""What came of each trial: how well, how fast, and how it was liked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.stats.crossed import Trials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from judged._types import Table
    from judged.data.qrels import Qrels
    from judged.studies.records import StudyRecords

Better: TypeAlias = Literal["more", "less", ""]
_MINUTE = 60_000


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
        codes = {
            name: np.unique([getattr(one, name) for one in self.values], return_inverse=True)
            for name in (by, "participant", "query_id")
        }
        return Trials(
            np.array([one.value for one in self.values]),
            *(codes[name][1] for name in (by, "participant", "query_id")),
            np.array([max(one.position - 1, 0) for one in self.values]),
        ), tuple(map(str, codes[by][0]))


def outcomes(
    records: StudyRecords, *, scores: Table | None = None, qrels: Qrels | None = None, level: float = 1.0
) -> tuple[Outcome, ...]:
    """Give everything that can be told of the trials: those with no value in any trial are left out.

    Parameters
    ----------
    records
        Of the study.
    scores
        Scored questionnaires (`judged.studies.questionnaires.scores`); without them, the mean of each one's items.
    qrels
        With them: relevant documents saved, and their share of what was saved and is judged.
    level
        The lowest grade that is relevant.
    """
    trials = {(row["participant"], row["position"]): row for row in records["trials"].to_pylist()}
    counted = {key: row for key, row in trials.items() if not row["practice"]}
    found = list(_answered(scores if scores is not None else _means(records), trials))
    events, saved = _by_trial(records["events"]), _by_trial(records["saved"])
    grades = {} if qrels is None else _grades(qrels)

    def each(name: str, better: Better, value: Callable[[tuple[str, int], Any], float | None]) -> None:
        got = [(key, row, value(key, row)) for key, row in counted.items()]
        rows = tuple(Value(*key, row["query_id"], row["system"], row["variant"], float(one))
                     for key, row, one in got if one is not None)  # fmt: skip
        if rows:
            found.append(Outcome(name, better, rows))

    def ended(row: Any) -> bool:
        return row["ended"] is not None and row["started"] is not None

    def actions(key: tuple[str, int], name: str) -> list[Any]:
        return [row for row in events[key] if row["action"] == name]

    def judged_saved(key: tuple[str, int], row: Any) -> list[bool]:
        known = grades.get(row["query_id"], {})
        return [known[one["doc_id"]] >= level for one in saved[key] if one["doc_id"] in known]

    if qrels is not None and saved:
        each("relevant saved", "more", lambda key, row: sum(judged_saved(key, row)))
        each("precision of saved", "more", lambda key, row: _mean(judged_saved(key, row)))
    if saved:
        each("saved", "", lambda key, row: len(saved[key]))
    each("minutes", "less", lambda key, row: (row["ended"] - row["started"]) / _MINUTE if ended(row) else None)
    if any(row["ended"] is None for row in counted.values()) and any(map(ended, counted.values())):
        each("finished", "more", lambda key, row: float(ended(row)))
    if events:
        each("queries", "", lambda key, row: len({one["query"] for one in actions(key, "query")}))
        each("clicks", "", lambda key, row: len(actions(key, "click")))
        each("deepest click", "", lambda key, row: max((one["rank"] or 0 for one in actions(key, "click")), default=None))
    return tuple(found)


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


def _answered(scores: Table, trials: dict[tuple[str, int], Any]) -> Iterable[Outcome]:
    """One outcome for each questionnaire; of a whole study nothing can be said of systems."""
    found = defaultdict[str, list[Value]](list)
    for row in scores.to_pylist():
        trial = trials.get((row["participant"], row["position"]))
        score = row["score"]
        if score is None or score != score or (trial is None and not row["system"]) or (trial and trial["practice"]):
            continue
        query, system, variant = (trial["query_id"], trial["system"], trial["variant"]) if trial else ("", row["system"], "")
        found[row["questionnaire"]].append(Value(row["participant"], row["position"], query, system, variant, score))
    for name, values in found.items():
        yield Outcome(name, "less" if name in LESS_IS_BETTER else "more", tuple(values))


LESS_IS_BETTER = frozenset({"NASA-TLX"})
"""Questionnaires whose high scores say that it was hard."""


def _by_trial(table: Table) -> defaultdict[tuple[str, int], list[Any]]:
    found = defaultdict[tuple[str, int], list[Any]](list)
    for row in table.to_pylist():
        found[row["participant"], row["position"]].append(row)
    return found


def _grades(qrels: Qrels) -> dict[str, dict[str, float]]:
    found = defaultdict[str, dict[str, float]](dict)
    for row in qrels.table.to_pylist():
        found[row["query_id"]][row["doc_id"]] = row["relevance"]
    return found


def _mean(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
