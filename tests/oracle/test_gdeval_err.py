"""ERR against what gdeval printed for the eight runs of TREC Web 2012.

Its highest grade is 4. It counts the topics with a positive grade, and of these only the ones that the run has.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import judged
from judged import Qrels, Run
from shared_data import SHARED, needs_shared

FOLDER = SHARED / "web2012"
EXPECTED = sorted((FOLDER / "expected").glob("*.gdeval.csv"))
NAME = "ERR(max=4,undefined=skip)@20"


@needs_shared
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.name.removesuffix(".gdeval.csv"))
def test_every_number_as_printed(expected: Path) -> None:
    run = FOLDER / "runs" / expected.name.replace(".gdeval.csv", ".run.gz")
    with expected.open() as lines:
        printed = {row["topic"]: row["err@20"] for row in csv.DictReader(lines)}
    mean = printed.pop("amean")
    scores = judged.evaluate(
        Qrels.read(FOLDER / "qrels" / "qrels.web.151-200.txt"), Run.scan(run), [NAME, "ERR(max=5)@20"], topics="both"
    )
    ours = scores.per_topic()[scores.run_names[0]]
    found = {topic: f"{value:.5f}" for topic, value in ours[NAME].items() if value == value}  # noqa: PLR0124 - NaN: skipped
    assert found == printed
    assert f"{scores.value(NAME):.5f}" == mean
    assert sum(ours[NAME][topic] != ours["ERR(max=5)@20"][topic] for topic in printed) > 10  # the scale matters


@needs_shared
def test_nothing_is_left_out() -> None:
    assert len(EXPECTED) == 8
