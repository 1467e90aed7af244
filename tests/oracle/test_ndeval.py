"""Measures of diversity against what ndeval printed for TREC Web 2013, all 21 columns, to the last digit.

ndeval orders a run by its rank column and averages over the topics that the run and the qrels share.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

import judged
from judged import Qrels, Run
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from pathlib import Path

    from judged.scoring.judging import TiePolicy

FOLDER = SHARED / "web_ndeval"
EXPECTED = sorted((FOLDER / "expected").glob("*.ndeval.csv"))
QRELS = FOLDER / "qrels" / "qrels.web.201-250.ndeval.txt.gz"
COLUMNS = [
    *(f"{name}@{k}" for name in ("ERR-IA", "nERR-IA", "alpha-DCG", "alpha-nDCG") for k in (5, 10, 20)),
    *("NRBP", "nNRBP", "MAP-IA"),
    *(f"{name}@{k}" for name in ("P-IA", "strec") for k in (5, 10, 20)),
]


def evaluated(expected: Path, ties: TiePolicy) -> dict[tuple[str, str], str]:
    run = FOLDER / "runs_SYNTHETIC" / expected.name.replace(".ndeval.csv", ".run.gz")
    scores = judged.evaluate(Qrels.read(QRELS), Run.scan(run), COLUMNS, topics="both", ties=ties)
    per_topic, means = scores.per_topic()[scores.run_names[0]], scores.aggregate()[scores.run_names[0]]
    found: dict[tuple[str, str], str] = {}
    for column in COLUMNS:
        name = str(judged.measures.parse(column))
        found["amean", column] = f"{means[name]:.6f}"
        found |= {(topic, column): f"{value:.6f}" for topic, value in per_topic[name].items()}
    return found


def printed(expected: Path) -> dict[tuple[str, str], str]:
    with expected.open() as lines:
        return {(row["topic"], column): row[column] for row in csv.DictReader(lines) for column in COLUMNS}


@needs_shared
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.name.removesuffix(".ndeval.csv"))
def test_every_number_as_printed(expected: Path) -> None:
    wanted = printed(expected)
    assert len(wanted) == 51 * 21
    assert evaluated(expected, "rank") == wanted


@needs_shared
def test_another_way_to_break_ties_gives_other_numbers() -> None:
    assert evaluated(EXPECTED[0], "docid") != printed(EXPECTED[0])


@needs_shared
def test_nothing_is_left_out() -> None:
    assert len(EXPECTED) == 6
    with EXPECTED[0].open() as lines:
        assert next(csv.reader(lines))[2:] == COLUMNS
