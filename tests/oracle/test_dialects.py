"""Dialects against what the tools themselves printed, per topic and mean, to the last digit.

trec_eval 10.0-rc3 and 9.0.8, gdeval.pl of trec-web-2014, ndeval 4.5.
"""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import pytest

from judged import Qrels, Run, evaluate
from judged.scoring.evaluation import DIALECTS
from judged.scoring.peers.trec_eval import expand
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_shared, pytest.mark.filterwarnings("ignore::judged.JudgedWarning")]

GDEVAL = sorted((SHARED / "web2012" / "expected").glob("*.gdeval.csv"))
NDEVAL = sorted((SHARED / "web_ndeval" / "expected").glob("*.ndeval.csv"))


def run_of(expected: Path, folder: str, ending: str) -> Path:
    return expected.parents[1] / folder / expected.name.replace(ending, ".run.gz")


def compared(qrels: Path, run: Path, expected: Path, dialect: str) -> int:
    """Compare all columns of a table that gdeval or ndeval printed with the dialect's; give how many numbers."""
    with expected.open() as lines:
        rows = [{name: value for name, value in row.items() if name != "runid"} for row in csv.DictReader(lines)]
    names = [name for name in rows[0] if name != "topic"]
    scores = evaluate(Qrels.read(qrels), Run.scan(run), names, dialect=dialect)
    shown = DIALECTS[dialect].format_value
    by_topic = scores.per_topic()[scores.run_names[0]]
    for name in names:
        ours = str(DIALECTS[dialect].measures(name)[0])
        found = {topic: shown(value) for topic, value in by_topic[ours].items() if value == value}  # noqa: PLR0124
        assert found | {"amean": shown(scores.value(name))} == {row["topic"]: row[name] for row in rows}, name
    assert evaluate(Qrels.read(qrels), Run.scan(run), dialect=dialect).measure_names == scores.measure_names
    return len(names) * len(rows)


@pytest.mark.parametrize("expected", GDEVAL, ids=lambda path: path.name)
def test_gdeval(expected: Path) -> None:
    qrels = SHARED / "web2012" / "qrels" / "qrels.web.151-200.txt"
    assert compared(qrels, run_of(expected, "runs", ".gdeval.csv"), expected, "gdeval") >= 2 * 48


@pytest.mark.parametrize("expected", NDEVAL, ids=lambda path: path.name)
def test_ndeval(expected: Path) -> None:
    qrels = SHARED / "web_ndeval" / "qrels" / "qrels.web.201-250.ndeval.txt.gz"
    assert compared(qrels, run_of(expected, "runs_SYNTHETIC", ".ndeval.csv"), expected, "ndeval") == 21 * 51


def test_nothing_is_left_out() -> None:
    assert (len(GDEVAL), len(NDEVAL)) == (8, 6)


TREC = [  # the qrels, the run, what was printed, and by which version
    ("cranfield/qrels/cranfield.graded.qrels", "cranfield/runs/WRONG_query_ids", ".v9.0.8", "trec_eval-9"),
    ("cranfield/qrels/cranfield.graded.qrels", "cranfield/runs/WRONG_query_ids", ".c", "trec_eval-10"),
    ("cranfield/qrels/cranfield.graded.qrels", "cranfield/runs/coord_match", "", "trec_eval-10"),
    ("cranfield/qrels/cranfield.graded.qrels", "cranfield/runs/lsi_100", "", "trec_eval-10"),
]


@pytest.mark.parametrize(("qrels", "run", "suffix", "dialect"), TREC)
def test_trec_eval(qrels: str, run: str, suffix: str, dialect: str) -> None:
    """The 60 and some measures of all_trec; -c zeroes some measures of missing topics by name, which is left out."""
    path = SHARED / f"{run}.run.gz"
    printed = path.parents[1] / "expected" / f"{path.name.removesuffix('.run.gz')}{suffix}.trec_eval.txt.gz"
    wanted = {tuple(map(str.strip, line.split("\t")[:2])): line.split("\t")[2].strip() for line in lines(printed)}
    scores = evaluate(SHARED / qrels, path, "all_trec", dialect=dialect)
    by_topic, means = scores.per_topic()[scores.run_names[0]], scores.aggregate()[scores.run_names[0]]
    returned = {topic for topic, count in by_topic["NumRet"].items() if count}
    checked = 0
    for line in expand("all_trec", dialect=dialect):
        if line.measure is None or line.root in {"rbp", "rbp_resid"}:  # rbp's digits are undefined in trec_eval 10
            continue
        name, form = str(line.measure), "{:.0f}" if line.kind == "integer" else "{:.4f}"
        found = {topic: form.format(value) for topic, value in by_topic[name].items() if topic in returned}
        found = {} if line.summary_only else found
        if len(returned) == len(scores.query_ids) or line.root != "unj":
            found["all"] = form.format(means[name])
        wrong = {topic: (wanted[line.name, topic], value) for topic, value in found.items()
                 if wanted[line.name, topic] != value}  # fmt: skip
        assert not wrong, line.name
        checked += len(found)
    assert checked > 80 * len(returned)


def lines(path: Path) -> list[str]:
    with gzip.open(path, "rt") as file:
        return file.read().splitlines()


@pytest.mark.parametrize(
    ("folder", "qrels", "run"),
    [
        ("dl19_passage", "qrels.dl19-passage.txt", "TUA1-1"),
        ("robust03", "robust03_qrels.txt", "SABIR03BASE"),
    ],
)
def test_where_the_versions_of_trec_eval_differ(folder: str, qrels: str, run: str) -> None:
    """Every number that versions 9 and 10 print differently: near ties, and recall levels."""
    path = SHARED / folder / "expected" / "DIFF_v10_vs_v9.0.8.tsv.gz"
    rows = [row for row in csv.DictReader(lines(path), delimiter="\t") if row["run"] == run]
    where = SHARED / folder / "runs" / f"{run}.run.gz"
    for dialect, column in (("trec_eval-9", "v9.0.8"), ("trec_eval-10", "v10.0-rc3")):
        scores = evaluate(SHARED / folder / "qrels" / qrels, where, "all_trec", dialect=dialect, topics="both")
        by_topic, means = scores.per_topic()[scores.run_names[0]], scores.aggregate()[scores.run_names[0]]
        names = {line.name: str(line.measure) for line in expand("all_trec", dialect=dialect) if line.measure}
        for row in rows:
            name = names[row["measure"]]
            value = means[name] if row["qid"] == "all" else by_topic[name][row["qid"]]
            assert f"{value:.4f}" == row[column], row
    assert len(rows) > 70
