"""The drop-in command against the whole output of trec_eval 10.0-rc3 and 9.0.8 (``-q -m all_trec``), byte for byte.

Only the lines of rbp are left out: trec_eval 10 scales its gains by a number that it never sets.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from judged.scoring.compat.trec_eval.command import trec_eval
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
FOLDERS = {"d100": "runs_d100", "full": "runs_fulldepth_judged", "unmodified": "runs_unmodified"}
FLAGS = {"l2": ["-l2"], "c": ["-c"], "v9.0.8": ["--dialect", "trec_eval-9"]}
RBP = re.compile(r"^rbp  .*\n", re.MULTILINE)
ENDING = re.compile(rf"^(.+)\.({'|'.join(map(re.escape, (*FOLDERS, *FLAGS)))})$")


def expected_files() -> list[Path]:
    return [path for name in QRELS for path in sorted((SHARED / name / "expected").glob("*.trec_eval.txt*"))]


def arguments(expected: Path) -> list[str]:
    """Tell by its name with which arguments a file was made."""
    folder = expected.parents[1]
    stem = expected.name.removesuffix(".gz").removesuffix(".trec_eval.txt")
    flags, where = ["-q", "-m", "all_trec"], "runs"
    while ending := ENDING.match(stem):
        stem, name = ending.groups()
        flags += FLAGS.get(name, [])
        where = FOLDERS.get(name, where)
    runs = [path for path in (folder / where).iterdir() if path.name.removesuffix(".gz").removesuffix(".run") == stem]
    qrels = [path for path in sorted((folder / "qrels").iterdir()) if "binary" not in path.name]
    chosen = QRELS[folder.name]
    assert len(runs) == 1
    assert chosen or len(qrels) == 1
    return [*flags, str(folder / "qrels" / chosen if chosen else qrels[0]), str(runs[0])]


@needs_shared
@pytest.mark.parametrize("expected", expected_files(), ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_every_byte_as_printed(expected: Path) -> None:
    opened = gzip.open if expected.suffix == ".gz" else open
    with opened(expected, "rt", encoding="utf-8") as file:
        printed = file.read()
    outcome = trec_eval(arguments(expected))
    assert (outcome.code, outcome.message) == (0, "")
    ours, theirs = RBP.sub("", outcome.output), RBP.sub("", printed)
    wrong = [pair for pair in zip(ours.splitlines(), theirs.splitlines(), strict=False) if pair[0] != pair[1]]
    assert not wrong, wrong[:10]
    assert ours == theirs
    assert len(outcome.output) == len(printed)  # the lines of rbp are there too


@needs_shared
def test_nothing_is_left_out() -> None:
    files = expected_files()
    assert len(files) >= 175
    assert {name for path in files for name in FLAGS if f".{name}." in path.name} == set(FLAGS)


def differences(folder: Path) -> dict[tuple[str, str, str], str]:
    """Read which lines 9.0.8 prints with another number than 10: by run, line and topic."""
    with gzip.open(folder / "expected" / "DIFF_v10_vs_v9.0.8.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return {(run, name, topic): old for run, name, topic, _, old in rows}


@needs_shared
@pytest.mark.parametrize("name", QRELS)
def test_the_old_dialect(name: str) -> None:
    """9.0.8 prints what 10 prints, without the measures that are new, and but for the differences on record."""
    old = differences(SHARED / name)
    files = [path for path in expected_files() if path.parents[1].name == name and ".v9.0.8." not in path.name]
    with_c = [path for path in files if ".c." in path.name]
    replaced = 0
    for expected in {*files[::4], *with_c}:  # all of them agree; a quarter keeps the test short
        stem = expected.name.removesuffix(".gz").removesuffix(".trec_eval.txt")
        opened = gzip.open if expected.suffix == ".gz" else open
        with opened(expected, "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith(("rbp", "unj"))]
        missing = {topic for name, topic, value in lines if name.strip() == "num_ret" and value == "0"}
        lines = [line for line in lines if line[1] not in missing]  # with -c, 9.0.8 prints nothing for them
        replaced += sum((stem, line[0].strip(), line[1]) in old for line in lines)
        wanted = [[*line[:2], old.get((stem, line[0].strip(), line[1]), line[2])] for line in lines]
        outcome = trec_eval(["--dialect", "trec_eval-9", *arguments(expected)])
        assert outcome.code == 0
        assert [line.split("\t") for line in outcome.output.splitlines()] == wanted, stem
    assert replaced > 50
