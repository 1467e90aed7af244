"""Readers of configurations, designs of studies, and saved results."""

from __future__ import annotations

import json
import shutil
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import every_command
import studies_made
import study_made
from fuzz.originals import Original, gates
from fuzz.readers import Reader
from judged.diagnosis.gates.config_file import read_config
from judged.errors import InputError
from judged.online.clicks.examination import read_propensities
from judged.online.watch import watch
from judged.online.watch.config import DayPoint, read_state, read_watch, write_state
from judged.pipelines.experiments import Plan, load
from judged.studies import check_design, first_design, read_design, report
from judged.studies.records import StudyRecords

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PLAN = """
documents = "docs.jsonl"
queries = "queries.jsonl"
qrels = "qrels.txt"
measures = ["nDCG@5", "AP"]
design = "full"
depth = 100
rounds = 3
warm_up = 20
seed = 1
concurrency = 2
build_seconds = 60
query_seconds = 5
[control]
engine = "sqlite"
stemmer = "none"
[factors]
engine = ["sqlite", "two"]
stemmer = ["none", "english"]
title_weight = [1, 2.5]
[[forbidden]]
stemmer = "none"
title_weight = 2.5
[pipelines.two]
engine = "fusion"
lists = ["sqlite", "bm25s"]
algorithm = "rrf"
"""
_WATCH = """
[watch]
baseline_from = 2026-03-01
baseline_to = 2026-03-20
alarms_per_month = 0.5
margin_relative = 0.05
[[series]]
name = "bad"
table = "review.csv"
better = "less"
[[event]]
date = 2026-03-10
description = "new index"
deploy = true
"""


def setting_readers(folder: Path) -> list[Reader]:
    """Return a reader for each configuration, with intact other files."""
    every_command.write_files(folder)
    plans = [Original(".toml", plan.encode()) for plan in (every_command._PLAN, _PLAN)]
    return [
        Reader("plan", partial(_beside, folder, _planned), plans),
        Reader("watch", partial(_beside, folder, _watched), [Original(".toml", _WATCH.encode())]),
        Reader("gate", read_config, gates()),
    ]  # fmt: skip


def study_readers(folder: Path) -> list[Reader]:
    """Return a reader for designs, and a reader for records of studies."""
    designed, recorded = folder / "designed", folder / "recorded"
    designed.mkdir()
    study_made.design_in(designed)
    every_command.write_files(folder / "first")
    studies_made.records(people=6, topics=4).write(recorded)
    first = [Original(".toml", first_design("x.toml").encode())]
    others = folder / "others"
    return [
        Reader("design", partial(_beside, designed, _designed), [Original(".toml", study_made.DESIGN.encode())]),
        Reader("first design", partial(_beside, folder / "first", _designed), first),
        *(
            Reader(f"study/{file.name}", partial(_recorded, file, others), [Original(file.suffix, file.read_bytes())])
            for file in sorted(recorded.iterdir())
        ),
    ]  # fmt: skip


def saved_readers(folder: Path) -> list[Reader]:
    """Return a reader for each saved result."""
    base = folder / "made"
    every_command.write_files(base)
    results = base / "results"
    read = {".json", ".parquet"}
    files = [file for file in sorted(results.rglob("*")) if file.suffix in read and file.name != "job.json"]
    state = folder / "state.json"
    write_state(state, [DayPoint("bad", "", f"2026-03-0{day}", 0.1, 0.01, 10.0, 100.0) for day in range(1, 9)])
    ranks = [{"rank": i, "value": 1.0 / i, "stratum": ""} for i in range(1, 6)]
    curves = [
        Original(".csv", b"rank,value\n1,1\n2,0.5\n3,0.25\n"),
        Original(".json", json.dumps({"ranks": ranks}).encode()),
    ]
    return [
        *(
            Reader(
                f"results/{file.name}", partial(_loaded, results, folder / "others", file.relative_to(results)),
                [Original(file.suffix, file.read_bytes())],
            )
            for file in files
        ),
        Reader("state of a watch", read_state, [Original(".json", state.read_bytes())]),
        Reader("propensities", read_propensities, [*curves, Original(".json", json.dumps(ranks).encode())]),
    ]  # fmt: skip


def _beside(folder: Path, read: Callable[[Path], object], path: Path) -> None:
    """Read a configuration in the folder of its files; an error may name any of them."""
    place = folder / f"damaged{path.suffix}"
    shutil.copyfile(path, place)
    try:
        read(place)
    except InputError as error:
        if not str(error.path):
            raise
        raise InputError(error.problem, fix=error.fix, path=str(path)) from None
    finally:
        place.unlink()


def _planned(path: Path) -> None:
    repr(Plan.read(path))


def _watched(path: Path) -> None:
    read_watch(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch(path, keep=False).text(width=80)


def _designed(path: Path) -> None:
    check_design(read_design(path)).text(width=80)


def _recorded(intact: Path, folder: Path, path: Path) -> None:
    """Replace a table of a study by a damaged one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(intact.parent, folder)
    shutil.copyfile(path, folder / intact.name)
    try:
        records = StudyRecords.read(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report(records).text(width=80)
    except InputError as error:
        _error_naming(error, path)


def _loaded(intact_folder: Path, folder: Path, name: Path, path: Path) -> None:
    """Replace a file of the results of an experiment by a damaged one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(intact_folder, folder)
    shutil.copyfile(path, folder / name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load(folder).scores.aggregate()
    except InputError as error:
        _error_naming(error, path)


def _error_naming(error: InputError, path: Path) -> Any:
    if not error.path:  # else it is the folder, or a file that is named in what is damaged
        raise error
    raise InputError(error.problem, fix=error.fix, path=str(path)) from None
