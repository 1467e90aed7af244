"""Guardrails: numbers from scores or from a table of runs, compared with limits without a test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.slicing.derived import OUTCOME, read_topic_attributes
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.attributes import Attributes
from judged.data.expression import Expression
from judged.data.records import read_records
from judged.data.toml_files import SettingError, suggest_name
from judged.diagnosis.gates.check_result import format_number
from judged.diagnosis.gates.config_file import parse_measure
from judged.errors import InputError
from judged.results.decimals import read_number
from judged.results.spelling import use_one_of
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
    """Result of a guardrail: both numbers, the limits, and the status."""

    config_table: ClassVar[str] = "guardrail"

    guardrail: Guardrail  # limits from the configuration
    baseline: float  # NaN if the limits do not depend on it
    candidate: float
    limits: tuple[str, ...]  # as text, such as "at most 110"
    status: Status  # `pass` or `fail`

    @property
    def name(self) -> str:
        """Limited number."""
        return self.guardrail.name

    @property
    def line(self) -> int | None:
        """Line number in the configuration file."""
        return self.guardrail.line

    @property
    def blocks(self) -> bool:
        """Whether the gate fails because of this guardrail."""
        return self.status == "fail"

    @property
    def sentence(self) -> str:
        """Both numbers, the limits, and the status as text."""
        comparison = "" if math.isnan(self.baseline) else f" (baseline {format_number(self.baseline)})"
        if self.guardrail.at_most_ratio is not None and self.baseline:
            comparison = f", {self.candidate / self.baseline:.3g} times the baseline's {format_number(self.baseline)}"
        outcome = "passed" if self.status == "pass" else "failed"
        numbers = f"the candidate has {format_number(self.candidate)}{comparison}"
        return f"{self.name}: {outcome}: {numbers}; allowed: {', '.join(self.limits)}."


def check_guardrail(guardrail: Guardrail, scores: Scores, pair: Sequence[int], folder: Path) -> GuardrailResult:
    """Compare two runs, given by their positions in `scores`, with the limits of a guardrail."""
    if guardrail.missing_topics is not None:
        baseline, candidate = math.nan, float(len(find_lost_topics(scores, pair)))
    elif guardrail.table is not None:
        run_names = [scores.run_names[run] for run in pair]
        baseline, candidate = _table_numbers(guardrail, run_names, folder / guardrail.table)
    else:
        baseline, candidate = _judged_shares(guardrail, scores, pair)
    limits = list(_iter_limits(guardrail, baseline))
    is_within_limits = all(
        candidate >= limit - ROUNDING if is_minimum else candidate <= limit + ROUNDING * abs(limit)
        for is_minimum, limit, _ in limits
    )
    texts = tuple(
        f"at {'least' if minimum else 'most'} {format_number(limit)}{basis}" for minimum, limit, basis in limits
    )
    return GuardrailResult(guardrail, baseline, candidate, texts, "pass" if is_within_limits else "fail")


def _iter_limits(guardrail: Guardrail, baseline: float) -> Iterator[tuple[bool, float, str]]:
    """Yield for each limit whether it is a minimum, its value, and its derivation from the baseline."""
    if guardrail.at_least is not None:
        yield True, guardrail.at_least, ""
    if (decrease := guardrail.at_most_below_baseline) is not None:
        yield True, baseline - decrease, f" ({format_number(decrease)} below the baseline)"
    for maximum in (guardrail.missing_topics, guardrail.at_most):
        if maximum is not None:
            yield False, maximum, ""
    if (ratio := guardrail.at_most_ratio) is not None:
        yield False, ratio * baseline, f" ({format_number(ratio)} times the baseline)"


def _judged_shares(guardrail: Guardrail, scores: Scores, pair: Sequence[int]) -> list[float]:
    row = measure_row(scores, str(guardrail.measure))
    if scores.measures[row].entry.name != "Judged":
        raise InputError(
            f"{guardrail.measure} is an estimate over topics, but a guardrail compares numbers without a test",
            fix="use a [[check]] with a margin; the measure of a guardrail must be Judged@k, such as Judged@10",
        )
    defined = [values[~np.isnan(values)] for values in scores.values[list(pair), row]]
    return [float(values.mean()) if len(values) else math.nan for values in defined]


def measure_row(scores: Scores, name: str) -> int:
    """Return the row of a measure in `scores`."""
    # A custom dialect has no entry in DIALECTS: then the name is parsed by the default rules.
    measure = parse_measure(name, DIALECTS.get(scores.policies.dialect, DIALECTS["judged"]), scores.qrels.grades)
    if str(measure) not in scores.measure_names:
        raise InputError(f"{name} was not evaluated", fix=use_one_of(scores.measure_names))
    return scores.measure_names.index(str(measure))


def find_lost_topics(scores: Scores, pair: Sequence[int]) -> list[str]:
    """Return the topics of the qrels with results from the baseline but none from the candidate."""
    missing_in_baseline, missing_in_candidate = (scores.runs[run].missing_topics for run in pair)
    excluded = set(missing_in_baseline)
    return [topic for topic in missing_in_candidate if topic not in excluded]


def _table_numbers(guardrail: Guardrail, run_names: Sequence[str], path: Path) -> list[float]:
    """Return the numbers of both runs. Without a row, the baseline's is NaN unless a limit depends on it."""
    numbers = numbers_by_run(path, guardrail.column or "")
    needs_baseline = guardrail.at_most_ratio is not None or numbers.keys() & {run_names[0], "baseline"}
    baseline = _run_number(guardrail, numbers, run_names[0], "baseline", str(path)) if needs_baseline else math.nan
    return [baseline, _run_number(guardrail, numbers, run_names[1], "candidate", str(path))]


def _run_number(guardrail: Guardrail, by_run: dict[str, list[float]], name: str, role: str, path: str) -> float:
    """Return the number of one run, whose rows have its name or its role."""
    key = name if name in by_run else role
    numbers = sorted(by_run.get(key, []))
    if not numbers:
        available = ", ".join(sorted(by_run)) or "no numbers"
        fix = f"use {name} or {role} in the column 'run'; the table has {available}"
        raise InputError(f"no number for the {role} {name!r}", fix=fix, path=path)
    if guardrail.quantile is not None:
        # The smallest number that at least this share of the rows does not exceed: the inverse of the empirical
        # distribution function. 1 - ROUNDING corrects products such as 0.07 * 100 = 7.000000000000001.
        return numbers[max(math.ceil(guardrail.quantile * len(numbers) * (1 - ROUNDING)), 1) - 1]
    if len(numbers) > 1:
        problem = f"column {guardrail.column} has {len(numbers)} rows for {key!r}"
        raise InputError(problem, fix="set quantile = 0.95 in the [[guardrail]], or use one row per run", path=path)
    return numbers[0]


_RUN_COLUMNS = ("run", "run_id", "system", "name")
_FORMATS = "use CSV, TSV, JSON (a list of records), JSONL or Parquet, with a column 'run' and a column of numbers"


def numbers_by_run(path: Path, column: str) -> dict[str, list[float]]:
    """Read a column of numbers and group it by run. Empty cells are skipped."""
    rows = list(read_records(path))
    if not rows:
        raise InputError("there are no rows", fix=_FORMATS, path=str(path))
    columns = list(dict.fromkeys(name for _, row in rows for name in row))
    run_column = next((name for name in _RUN_COLUMNS if name in columns), None)
    if run_column is None:
        problem = f"no column 'run' among {', '.join(columns)}"
        raise InputError(problem, fix="add a column 'run' with the names of the runs", path=str(path))
    if column not in columns:
        fix = suggest_name(column, [name for name in columns if name != run_column])
        raise InputError(f"no column {column!r}", fix=fix, path=str(path))
    numbers: dict[str, list[float]] = {}
    for line, row in rows:
        value = row.get(column)
        if value is not None and str(value).strip():
            run = str(row.get(run_column)).strip()
            numbers.setdefault(run, []).append(_parse_number(value, column, str(path), line))
    return numbers


def _parse_number(value: Any, column: str, path: str, line: int | None) -> float:
    try:
        number = read_number(value)
    except ValueError as error:
        raise InputError(f"{column}: {value!r:.60} {error}", fix="use a number", path=path, line=line) from None
    if math.isinf(number):
        raise InputError(f"{column} is {value!r}", fix="use a finite number", path=path, line=line)
    return number


def config_slicing(config: GateConfig, attributes: Any = None, qrels: Qrels | None = None) -> Slicing | None:
    """Assign topics to the slices of the configuration. Return None if it has no slices."""
    # With `qrels`, attributes that the tables lack are derived from the judgments.
    file_keys = ("queries", "attributes") if attributes is None else ("queries",)
    files = {key: _attribute_file(config, key) for key in file_keys}
    if not config.slices and config.by is None:
        return None
    by = [] if config.by is None else [config.by]
    check_no_outcome(by, "the slices of a gate must not depend on")
    places = config.source_lines
    places.map_tables("slice", config.slices, check_slice)
    table = files["attributes"] if attributes is None else attributes
    with places.locate_errors():
        if qrels is not None:
            names = [*by, *(name for part in config.slices for name in Expression(part.expression).names)]
            known_attributes = read_topic_attributes(qrels, attributes=table, queries=files["queries"], needed=names)
        elif table is not None:
            known_attributes = Attributes.of(table)
        else:
            fix = 'set attributes = "topics.csv", a table with a column query_id'
            raise InputError("the slices need attributes, and no topic has any", fix=fix)
    places.map_tables("slice", config.slices, lambda part: Expression(part.expression).mask(known_attributes))
    with places.locate_errors("class"):
        return slice_topics(known_attributes, by, slices=config.slices)


def _attribute_file(config: GateConfig, name: str) -> Path | None:
    """Return the path of a file that the configuration refers to, or None if it is not set."""
    path = getattr(config, name)
    if path is None:
        return None
    with config.source_lines.locate_errors():
        if not (config_folder(config) / path).is_file():
            fix = "correct the path, which is relative to the folder of the configuration file"
            raise SettingError(name, f"{name}: there is no file {config_folder(config) / path}", fix)
    return config_folder(config) / path


def align_slicing(slicing: Slicing, query_ids: tuple[str, ...], config: GateConfig) -> Slicing:
    """Return the slices restricted to `query_ids`."""
    if slicing.slices and not set(slicing.query_ids) & set(query_ids):
        scored_id, attribute_id = next(iter(query_ids), "none"), next(iter(slicing.query_ids), "none")
        raise InputError(
            f"no topic has attributes: the first topic is {scored_id!r}, and the first topic of"
            f" the attributes is {attribute_id!r}",
            fix="check that the runs and the attributes use the same query ids",
            path=config.path,
        )
    return slicing.over(query_ids)


def check_slice(topic_slice: Slice) -> None:
    """Raise InputError if the slice depends on the outcome of a run."""
    check_no_outcome(Expression(topic_slice.expression).names, f"the slice {topic_slice.name!r} must not depend on")


def check_no_outcome(names: Iterable[str], usage: str) -> None:
    """Raise InputError if an attribute is the outcome of a run; `usage` starts the message."""
    if any(name.strip().casefold() == OUTCOME for name in names):
        raise InputError(
            f"{usage} {OUTCOME}, which is computed from the results of a run; the best topics of a run are partly due"
            " to chance, so other runs score lower on these topics (regression to the mean)",
            fix="slice by attributes that no run affects, such as `relevant` (number of relevant documents) or `words`"
            " (number of words of the query)",
        )


def config_folder(config: GateConfig) -> Path:
    """Return the folder that relative paths of a configuration start at."""
    return Path(config.path).parent if config.path else Path()
