"""What the configurations of an experiment answered, as one folder of tables to which verdicts are added."""

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


def responses_of(places: Mapping[str, Path], folder: Path) -> Responses | None:
    """Give what configurations answered, each in its place, with what is known of it; None where none generates.

    Nuggets, verdicts and so on are those that somebody put into the folder ``responses``; a verdict on an answer that
    is no longer the same is none.
    """
    files = {run: place / ANSWERS for run, place in places.items()}
    tables = {run: _read_tables(file) for run, file in files.items() if file.exists()}
    if not any(of["answers"] for of in tables.values()):
        return None
    made, place = Responses.of(merge_systems(tables)), folder / FOLDER
    if not (place / "answers.jsonl").exists():
        return made
    before = read_responses(place)
    then, now = _by_answer(before), _by_answer(made)
    same = {key for key, rows in then.items() if now.get(key) == rows}
    return replace(made, where=str(place), tables={
        **{name: table if "run_id" not in TABLES[name].names
           else table.filter(pa.array([key in same for key in _keys(table)], pa.bool_()))
           for name, table in before.tables.items()},
        **made.tables,
    })  # fmt: skip


def _read_tables(file: Path) -> Any:
    tables = load_json(file, str(file))
    try:
        check_shape(tables, {str: [dict]}, "the tables")
        check_shape(tables, dict.fromkeys(GENERATED, list), "the tables")
    except ValueError as error:
        raise InputError(str(error), fix="run the experiment again", path=str(file)) from None
    return tables


def keep(responses: Responses, folder: Path) -> None:
    """Write answers to the folder ``responses``; what lost verdicts there stays as ``earlier.NAME``."""
    place = folder / FOLDER
    names: list[str] = list(GENERATED)
    if (place / "answers.jsonl").exists():
        for name, table in read_responses(place).tables.items():
            if name not in GENERATED and responses[name].num_rows < table.num_rows:
                file = next(file for file in place.iterdir() if file.name.partition(".")[0] == name)
                file.replace(place / f"earlier.{file.name}")
                names.append(name)
    write_responses(responses, place, names)


def scored(qrels: Qrels, runs: list[Run], measures: Any, responses: Responses | None) -> Scores:
    """Score runs, and by measures of answers what was answered, over the topics of the judgments.

    Raises
    ------
    InputError
        If a measure needs what there is not.
    """
    from judged.pipelines.rag.scoring import evaluate as evaluate_answers

    wanted = measures_of(measures)
    of_answers = [measure for measure in wanted if measure.properties.reads_answers]
    of_runs = [measure for measure in wanted if not measure.properties.reads_answers]
    scores = evaluate(qrels, runs, of_runs or DEFAULT_MEASURE)
    if not of_answers:
        return scores
    if responses is None:
        fix = "generate in a pipeline of the plan, or leave it out"
        raise InputError(f"{of_answers[0]} is of answers, which no configuration gives", fix=fix)
    found = evaluate_answers(responses, of_answers, qrels=qrels, unjudged=False)
    values = np.full((len(scores.runs), len(of_answers), len(scores.query_ids)), np.nan)
    topics = {topic: at for at, topic in enumerate(scores.query_ids)}
    known = [at for at, topic in enumerate(found.query_ids) if topic in topics]
    for run, row in zip(found.run_names, found.values, strict=True):
        place = scores.run_names.index(run)
        values[place][:, [topics[found.query_ids[at]] for at in known]] = row[:, known]
    both = [*of_runs, *of_answers] if of_runs else of_answers
    every = np.concatenate([scores.values, values], axis=1) if of_runs else values
    order = [both.index(measure) for measure in wanted]
    return replace(scores, measures=wanted, values=every[:, order], notes=(*scores.notes, *found.notes))


def _keys(table: Table) -> list[tuple[str, str]]:
    return list(zip(table["query_id"].to_pylist(), table["run_id"].to_pylist(), strict=True))


def _by_answer(responses: Responses) -> dict[tuple[str, str], set[tuple[Any, ...]]]:
    """Give everything that a generator said, by topic and system."""
    rows: dict[tuple[str, str], set[tuple[Any, ...]]] = defaultdict(set)
    for name in GENERATED:
        for key, row in zip(_keys(responses[name]), responses[name].to_pylist(), strict=True):
            rows[key].add((name, *row.values()))
    return rows
