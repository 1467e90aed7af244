"""Compare every real run with all that trec_eval 10.0-rc3 printed (``-q -m all_trec``), to the last digit.

``.c`` files were made with ``-c``, ``.l2`` files with ``-l 2``, ``.v9.0.8`` files with trec_eval 9.0.8. Files of their
own list where the two versions differ; every line of these is compared with our rules for version 9.
"""

from __future__ import annotations

import gzip
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import judged
from judged import Qrels, Run
from judged.scoring.measures.counts import relstring
from judged.scoring.peers.trec_eval import OutputLine, Version, expand
from shared_data import SHARED, needs_shared

QRELS = {
    "robust03": "robust03_qrels.txt",
    "dl19_passage": None,
    "codec": None,
    "cranfield": "cranfield.graded.qrels",
    "cisi": None,
    "cacm": None,
    "web2012": None,
}
FOLDER = {"d100": "runs_d100", "full": "runs_fulldepth_judged", "unmodified": "runs_unmodified", "": "runs"}


class RunSettings(NamedTuple):
    """Inputs and options from which a file of expected numbers was made."""

    qrels: Path
    run: Path
    level: int
    complete: bool
    dialect: Version


def read_settings(expected: Path) -> RunSettings:
    """Parse from a file's name the qrels, run, and options that it was made with."""
    folder = expected.parents[1]
    stem = expected.name.removesuffix(".gz").removesuffix(".trec_eval.txt")
    level, complete, folder_suffix, dialect = 1, False, "", "trec_eval-10"
    while True:
        for suffix in ("l2", "c", "v9.0.8", "d100", "full", "unmodified"):
            if stem.endswith(f".{suffix}") and not (folder / "runs" / f"{stem}.run.gz").exists():
                stem = stem.removesuffix(f".{suffix}")
                level = 2 if suffix == "l2" else level
                complete = complete or suffix == "c"
                dialect = "trec_eval-9" if suffix == "v9.0.8" else dialect
                folder_suffix = suffix if suffix in FOLDER else folder_suffix
                break
        else:
            break
    runs = folder / FOLDER[folder_suffix]
    run = next(path for path in runs.iterdir() if path.name.removesuffix(".gz").removesuffix(".run") == stem)
    qrels_name = QRELS[folder.name]
    qrels = folder / "qrels" / qrels_name if qrels_name else only_qrels(folder)
    return RunSettings(qrels, run, level, complete, dialect)  # type: ignore[arg-type]


def only_qrels(folder: Path) -> Path:
    paths = [path for path in sorted((folder / "qrels").iterdir()) if "binary" not in path.name]
    assert len(paths) == 1, paths
    return paths[0]


def expected_files() -> list[Path]:
    return [path for name in QRELS for path in sorted((SHARED / name / "expected").glob("*.trec_eval.txt*"))]


def difference_files() -> list[Path]:
    return [path for name in QRELS for path in sorted((SHARED / name / "expected").glob("DIFF_*.tsv.gz"))]


def read(expected: Path) -> dict[tuple[str, str], str]:
    open_text = gzip.open if expected.suffix == ".gz" else open
    with open_text(expected, "rt") as lines:
        return {(fields[0].strip(), fields[1]): fields[2].strip() for fields in (line.split("\t") for line in lines)}


def computed(settings: RunSettings, lines: list[OutputLine]) -> dict[tuple[str, str], str]:
    """Return our values of these lines in trec_eval's format."""
    measures = [(line, str(line.measure)) for line in lines if line.kind != "text"]
    policies: dict[str, Any] = {"topics": "qrels" if settings.complete else "both"}
    if settings.dialect == "trec_eval-9":
        policies["precision"] = "single"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", judged.JudgedWarning)
        names = list(dict.fromkeys(name for _, name in measures))
        scores = judged.evaluate(Qrels.read(settings.qrels), Run.scan(settings.run), names, **policies)
    per_topic, means = scores.per_topic()[scores.run_names[0]], scores.aggregate()[scores.run_names[0]]
    formatted: dict[tuple[str, str], str] = {}
    for line, name in measures:
        form = ".0f" if line.kind == "integer" else ".4f"
        if line.scope != "topics":
            formatted[line.name, "all"] = format(means[name], form)
        if line.scope != "summary":
            formatted |= {(line.name, topic): format(score, form) for topic, score in per_topic[name].items()}
    return formatted


def strings(settings: RunSettings) -> dict[tuple[str, str], str]:
    """Return the grades of the first ten documents; topics without any have no line."""
    ranking: dict[str, Any] = {"precision": "single"} if settings.dialect == "trec_eval-9" else {}
    judged_run = judged.judge(Qrels.read(settings.qrels), Run.scan(settings.run), **ranking)
    judged_run = judged_run if settings.complete else judged_run.over("both")
    texts = zip(judged_run.query_ids, relstring(judged_run), strict=True)
    return {("relstring", topic): f"'{text}'" for topic, text in texts}


@needs_shared
@pytest.mark.parametrize("expected", expected_files(), ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_every_number_as_printed(expected: Path) -> None:
    """All but ``runid``, which is not a number."""
    settings = read_settings(expected)
    printed = {key: value for key, value in read(expected).items() if key[0] != "runid"}
    ours = computed(settings, expand("all_trec", level=settings.level, dialect=settings.dialect)) | strings(settings)
    mismatches = {key: (value, ours.get(key)) for key, value in printed.items() if ours.get(key) != value}
    assert not mismatches, (len(mismatches), list(mismatches.items())[:10])
    assert set(printed) == set(ours)  # no measure and no topic more or less
    assert len({name for name, _ in printed}) == (94 if settings.dialect == "trec_eval-9" else 99)


@needs_shared
@pytest.mark.parametrize("differences", difference_files(), ids=lambda path: path.parents[1].name)
def test_where_versions_differ_both_are_met(differences: Path) -> None:
    rows: dict[str, list[list[str]]] = defaultdict(list)
    with gzip.open(differences, "rt") as lines:
        for line in list(lines)[1:]:
            rows[line.split("\t")[0]].append(line.rstrip("\n").split("\t"))
    assert rows
    for run, differing in rows.items():
        settings = read_settings(differences.with_name(f"{run}.trec_eval.txt"))
        names = {name for _, name, *_ in differing}
        for dialect, column in (("trec_eval-10", 3), ("trec_eval-9", 4)):
            lines = [line for line in expand("all_trec", level=settings.level, dialect=dialect) if line.name in names]
            ours = computed(settings._replace(dialect=dialect), lines)
            mismatches = [row for row in differing if ours[row[1], row[2]] != row[column]]
            assert not mismatches, (dialect, len(mismatches), mismatches[:10])


@needs_shared
def test_nothing_is_left_out() -> None:
    assert len(expected_files()) >= 175
    assert len(difference_files()) == len(QRELS)
