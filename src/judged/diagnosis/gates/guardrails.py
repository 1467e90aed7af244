"""Guardrails: numbers of both runs that are known, from scores or from a table of runs, and compared as they stand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.slicing.derived import OUTCOME, topic_attributes
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.attributes import Attributes
from judged.data.expression import Expression
from judged.data.records import read_records
from judged.data.toml_files import SettingError, nearest
from judged.diagnosis.gates.check_result import number
from judged.diagnosis.gates.config import measure_of
from judged.errors import InputError
from judged.results.decimals import read_number
from judged.scoring.evaluation import DIALECTS
from judged.stats.inputs import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slice, Slicing
    from judged.data.qrels import Qrels
    from judged.diagnosis.gates.check_result import Status
    from judged.diagnosis.gates.config import GateConfig, Guardrail
    from judged.scoring.evaluation import Scores


@dataclass(frozen=True)
class GuardrailResult:
    """What a guardrail found: numbers that are compared as they stand."""

    table: ClassVar[str] = "guardrail"  # of the configuration

    guardrail: Guardrail  # what was asked
    baseline: float  # NaN where a number plays no part
    candidate: float
    limits: tuple[str, ...]  # what was allowed, in words
    status: Status  # `pass` or `fail`

    @property
    def name(self) -> str:
        """What is limited."""
        return self.guardrail.name

    @property
    def line(self) -> int | None:
        """Where it stands in the file of the configuration."""
        return self.guardrail.line

    @property
    def blocks(self) -> bool:
        """Whether the gate fails because of it."""
        return self.status == "fail"

    @property
    def sentence(self) -> str:
        """What was found."""
        against = "" if math.isnan(self.baseline) else f" (baseline {number(self.baseline)})"
        if self.guardrail.at_most_ratio is not None and self.baseline:
            against = f", {self.candidate / self.baseline:.3g} times the baseline's {number(self.baseline)}"
        found = (
            f"{'passed' if self.status == 'pass' else 'failed'}: the candidate has {number(self.candidate)}{against}"
        )
        return f"{self.name}: {found}; allowed: {', '.join(self.limits)}."


def guarded(guardrail: Guardrail, scores: Scores, at: Sequence[int], folder: Path) -> GuardrailResult:
    """Compare what a guardrail limits: of two runs, by their places, with tables seen from a folder."""
    if guardrail.missing_topics is not None:
        baseline, candidate = math.nan, float(len(lost_topics(scores, at)))
    elif guardrail.table is not None:
        names = [scores.run_names[run] for run in at]
        baseline, candidate = _table_numbers(guardrail, names, folder / guardrail.table)
    else:
        baseline, candidate = _judged_shares(guardrail, scores, at)
    limits = list(_limits(guardrail, baseline))
    fine = all(
        candidate >= limit - ROUNDING if least else candidate <= limit + ROUNDING * abs(limit)
        for least, limit, _ in limits
    )
    texts = tuple(f"at {'least' if least else 'most'} {number(limit)}{why}" for least, limit, why in limits)
    return GuardrailResult(guardrail, baseline, candidate, texts, "pass" if fine else "fail")


def _limits(guardrail: Guardrail, baseline: float) -> Iterator[tuple[bool, float, str]]:
    """Give each limit: whether it is the least that is allowed, the number, and how the baseline makes it."""
    if guardrail.at_least is not None:
        yield True, guardrail.at_least, ""
    if (below := guardrail.at_most_below_baseline) is not None:
        yield True, baseline - below, f" ({number(below)} below the baseline)"
    for most in (guardrail.missing_topics, guardrail.at_most):
        if most is not None:
            yield False, most, ""
    if (ratio := guardrail.at_most_ratio) is not None:
        yield False, ratio * baseline, f" ({number(ratio)} times the baseline)"


def _judged_shares(guardrail: Guardrail, scores: Scores, at: Sequence[int]) -> list[float]:
    """Give the mean share of judged documents of both runs."""
    row = row_of(scores, str(guardrail.measure))
    if scores.measures[row].entry.name != "Judged":
        raise InputError(
            f"{guardrail.measure} is an estimate over topics, but a guardrail compares numbers as they are",
            fix="write it as a [[check]] with a margin; guardrails take Judged@10",
        )
    known = [values[~np.isnan(values)] for values in scores.values[list(at), row]]
    return [float(values.mean()) if len(values) else math.nan for values in known]


def row_of(scores: Scores, name: str) -> int:
    """Find a measure in scores; a dialect of the caller's own is not known by its name."""
    measure = measure_of(name, DIALECTS.get(scores.policies.dialect, DIALECTS["judged"]), scores.qrels.grades)
    if str(measure) not in scores.measure_names:
        raise InputError(f"{name} was not evaluated", fix=f"use one of {', '.join(scores.measure_names)}")
    return scores.measure_names.index(str(measure))


def lost_topics(scores: Scores, at: Sequence[int]) -> list[str]:
    """Name the topics of the qrels that only the baseline returned something for."""
    baseline, candidate = (scores.runs[run].missing_topics for run in at)
    theirs = set(baseline)
    return [topic for topic in candidate if topic not in theirs]


def _table_numbers(guardrail: Guardrail, names: Sequence[str], path: Path) -> list[float]:
    """Give the numbers of both runs from a table; that of the baseline may be missing where nothing rests on it."""
    known = numbers_by_run(path, guardrail.column or "")
    needed = guardrail.at_most_ratio is not None or known.keys() & {names[0], "baseline"}
    baseline = _of_run(guardrail, known, names[0], "baseline", str(path)) if needed else math.nan
    return [baseline, _of_run(guardrail, known, names[1], "candidate", str(path))]


def _of_run(guardrail: Guardrail, known: dict[str, list[float]], name: str, role: str, path: str) -> float:
    """Give the number of one run, which the table calls by its name or its role."""
    key = name if name in known else role
    numbers = sorted(known.get(key, []))
    if not numbers:
        there = ", ".join(sorted(known)) or "no numbers"
        fix = f"name it so in the column run, or call it {role}; the table has {there}"
        raise InputError(f"no number for the {role} {name!r}", fix=fix, path=path)
    if guardrail.quantile is not None:
        return numbers[max(math.ceil(guardrail.quantile * len(numbers) * (1 - ROUNDING)), 1) - 1]
    if len(numbers) > 1:
        problem = f"column {guardrail.column} has {len(numbers)} rows for {key!r}"
        raise InputError(problem, fix="give quantile = 0.95 in the [[guardrail]], or one row per run", path=path)
    return numbers[0]


_OF_RUN = ("run", "run_id", "system", "name")
_FORMATS = "give CSV, TSV, JSON (a list of records), JSONL or Parquet, with a column run and a column of numbers"


def numbers_by_run(path: Path, column: str) -> dict[str, list[float]]:
    """Read one column of numbers, by the run that each row names; empty cells are left out."""
    rows = list(read_records(path))
    if not rows:
        raise InputError("there are no rows", fix=_FORMATS, path=str(path))
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    run = next((name for name in _OF_RUN if name in names), None)
    if run is None:
        raise InputError(f"no column run among {', '.join(names)}", fix="name the runs in a column run", path=str(path))
    if column not in names:
        raise InputError(
            f"no column {column!r}", fix=nearest(column, [name for name in names if name != run]), path=str(path)
        )
    found: dict[str, list[float]] = {}
    for line, row in rows:
        value = row.get(column)
        if value is not None and str(value).strip():
            found.setdefault(str(row.get(run)).strip(), []).append(_number(value, column, str(path), line))
    return found


def _number(value: Any, column: str, path: str, line: int | None) -> float:
    try:
        number = read_number(value)
    except ValueError as error:
        raise InputError(f"{column}: {value!r:.60} {error}", fix="give a number", path=path, line=line) from None
    if math.isinf(number):
        raise InputError(f"{column} is {value!r}", fix="give a finite number", path=path, line=line)
    return number


def sliced(config: GateConfig, attributes: Any = None, qrels: Qrels | None = None) -> Slicing | None:
    """Cut the topics into the slices of the configuration; None where it has none."""
    # `qrels`: the topics, and what can be derived from their judgments. None: all must be in the attributes.
    files = {name: _file(config, name) for name in ("queries", *(["attributes"] if attributes is None else []))}
    if not config.slices:
        return None
    config.places.each("slice", config.slices, refuse_outcome)
    given = files["attributes"] if attributes is None else attributes
    with config.places.part():
        if qrels is not None:
            needed = [name for one in config.slices for name in Expression(one.expression).names]
            known = topic_attributes(qrels, attributes=given, queries=files["queries"], needed=needed)
        elif given is not None:
            known = Attributes.of(given)
        else:
            fix = 'give attributes = "topics.csv", a table with a column query_id'
            raise InputError("slices are named, and no topic has attributes", fix=fix)
    config.places.each("slice", config.slices, lambda one: Expression(one.expression).mask(known))
    return slice_topics(known, slices=config.slices)


def _file(config: GateConfig, name: str) -> Path | None:
    """Give a file that a configuration names, seen from the folder of the configuration."""
    path = getattr(config, name)
    if path is None:
        return None
    with config.places.part():
        if not (folder(config) / path).is_file():
            fix = "correct the path; it is seen from the folder of the configuration"
            raise SettingError(name, f"{name}: there is no file {folder(config) / path}", fix)
    return folder(config) / path


def over_these(slicing: Slicing, query_ids: tuple[str, ...], config: GateConfig) -> Slicing:
    """Give the slices of these topics."""
    if slicing.slices and not set(slicing.query_ids) & set(query_ids):
        ours, theirs = next(iter(query_ids), "none"), next(iter(slicing.query_ids), "none")
        raise InputError(
            f"no topic has attributes: the first one is {ours!r}, that of the attributes {theirs!r}",
            fix="check that both use the same query ids",
            path=config.path,
        )
    return slicing.over(query_ids)


def refuse_outcome(one: Slice) -> None:
    """Refuse a slice by the outcome of a run."""
    refuse_outcomes(Expression(one.expression).names, f"the slice {one.name!r} is cut by")


def refuse_outcomes(names: Iterable[str], what: str) -> None:
    """Refuse attributes that are what a run achieved."""
    if any(name.strip().casefold() == OUTCOME for name in names):
        raise InputError(
            f"{what} {OUTCOME}, an outcome of a run",
            fix="cut by what is known before any run, such as relevant or words: where a run did best it did so partly"
            " by luck, and any other does worse there (regression to the mean)",
        )


def folder(config: GateConfig) -> Path:
    """Give the folder from which the paths of a configuration are seen."""
    return Path(config.path).parent if config.path else Path()
