"""Generated answers of the configurations of an experiment, with their verdicts, as one folder of tables."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.json_rows import check_shape, load_json
from judged.errors import InputError
from judged.pipelines.experiments.worker import ANSWERS
from judged.pipelines.rag.generation import GENERATED, merge_systems
from judged.pipelines.rag.readers import read_responses
from judged.pipelines.rag.responses import TABLES, Responses, write_responses
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation import evaluate, measures_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results.types import Table
    from judged.scoring.evaluation import Scores

FOLDER = "responses"


def read_experiment_responses(folders: Mapping[str, Path], folder: Path) -> Responses | None:
    """Return the generated answers with their nuggets and verdicts; None if no configuration generates answers.

    Nuggets and verdicts are read from the folder ``responses``. A verdict is dropped if its answer has changed.
    """
    files = {run: responses_folder / ANSWERS for run, responses_folder in folders.items()}
    tables = {run: _read_tables(file) for run, file in files.items() if file.exists()}
    if not any(table["answers"] for table in tables.values()):
        return None
    responses, responses_folder = Responses.of(merge_systems(tables)), folder / FOLDER
    if not (responses_folder / "answers.jsonl").exists():
        return responses
    earlier = read_responses(responses_folder)
    earlier_rows, current_rows = _rows_by_answer(earlier), _rows_by_answer(responses)
    unchanged = {key for key, rows in earlier_rows.items() if current_rows.get(key) == rows}
    return replace(responses, where=str(responses_folder), tables={
        **{name: table if "run_id" not in TABLES[name].names
           else table.filter(pa.array([key in unchanged for key in _answer_keys(table)], pa.bool_()))
           for name, table in earlier.tables.items()},
        **responses.tables,
    })  # fmt: skip


def _read_tables(file: Path) -> Any:
    tables = load_json(file, str(file))
    try:
        check_shape(tables, {str: [dict]}, "the tables")
        check_shape(tables, dict.fromkeys(GENERATED, list), "the tables")
    except ValueError as error:
        raise InputError(str(error), fix="run the experiment again", path=str(file)) from None
    return tables


def write_answers(responses: Responses, folder: Path) -> None:
    """Write answers to the folder ``responses``; a table that loses verdicts is kept as ``earlier.NAME``."""
    responses_folder = folder / FOLDER
    names: list[str] = list(GENERATED)
    if (responses_folder / "answers.jsonl").exists():
        for name, table in read_responses(responses_folder).tables.items():
            if name not in GENERATED and responses[name].num_rows < table.num_rows:
                file = next(file for file in responses_folder.iterdir() if file.name.partition(".")[0] == name)
                file.replace(responses_folder / f"earlier.{file.name}")
                names.append(name)
    write_responses(responses, responses_folder, names)


def score_runs(qrels: Qrels, runs: list[Run], measures: Any, responses: Responses | None) -> Scores:
    """Score runs, and generated answers if a measure needs them, over the judged topics.

    Raises
    ------
    InputError
        If a measure of answers is requested and there are none.
    """
    from judged.pipelines.rag.scoring import evaluate as evaluate_answers

    measure_list = measures_of(measures)
    answer_measures = [measure for measure in measure_list if measure.properties.reads == "answers"]
    run_measures = [measure for measure in measure_list if measure.properties.reads == "rankings"]
    scores = evaluate(qrels, runs, run_measures or DEFAULT_MEASURE)
    if not answer_measures:
        return scores
    if responses is None:
        fix = "add a pipeline with a generator to the plan, or remove the measure"
        raise InputError(f"{answer_measures[0]} requires generated answers, and there are none", fix=fix)
    answer_scores = evaluate_answers(responses, answer_measures, qrels=qrels, unjudged=False)
    values = np.full((len(scores.runs), len(answer_measures), len(scores.query_ids)), np.nan)
    topic_indices = {topic: i for i, topic in enumerate(scores.query_ids)}
    judged_indices = [i for i, topic in enumerate(answer_scores.query_ids) if topic in topic_indices]
    for run, row in zip(answer_scores.run_names, answer_scores.values, strict=True):
        run_index = scores.run_names.index(run)
        columns = [topic_indices[answer_scores.query_ids[i]] for i in judged_indices]
        values[run_index][:, columns] = row[:, judged_indices]
    all_measures = [*run_measures, *answer_measures] if run_measures else answer_measures
    all_values = np.concatenate([scores.values, values], axis=1) if run_measures else values
    order = [all_measures.index(measure) for measure in measure_list]
    return replace(
        scores, measures=measure_list, values=all_values[:, order], notes=(*scores.notes, *answer_scores.notes)
    )


def _answer_keys(table: Table) -> list[tuple[str, str]]:
    return list(zip(table["query_id"].to_pylist(), table["run_id"].to_pylist(), strict=True))


def _rows_by_answer(responses: Responses) -> dict[tuple[str, str], set[tuple[Any, ...]]]:
    """Return all generated rows by topic and system."""
    rows: dict[tuple[str, str], set[tuple[Any, ...]]] = defaultdict(set)
    for name in GENERATED:
        for key, row in zip(_answer_keys(responses[name]), responses[name].to_pylist(), strict=True):
            rows[key].add((name, *row.values()))
    return rows
