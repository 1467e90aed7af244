"""Names that were given stay, and every aggregate is shown as what it is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import judged
from judged.scoring.evaluation import runs_of

QRELS = {"q1": {"a": 1}, "q2": {"b": 1}}


def run_file(folder: Path, name: str, doc: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(f"q1 Q0 {doc} 1 1.0 t\nq2 Q0 b 1 1.0 t\n".encode()))
    return path


def test_a_given_name_stays_and_a_files_own_makes_room(tmp_path: Path) -> None:
    first, second = run_file(tmp_path, "one.run.gz", "a"), run_file(tmp_path, "bm25.run.gz", "x")
    named = [judged.Run.scan(first, name="bm25"), judged.Run.scan(second)]
    scores = judged.evaluate(QRELS, named, "P@1")
    assert scores.aggregate() == {"bm25": {"P@1": 1.0}, "bm25#2": {"P@1": 0.5}}
    assert [run.name for run in runs_of(named[::-1])] == ["bm25#2", "bm25"]


def test_two_given_names_that_are_one_are_numbered(tmp_path: Path) -> None:
    runs = [judged.Run.scan(run_file(tmp_path, name, "a"), name="x") for name in ("one.run.gz", "two.run.gz")]
    assert [run.name for run in runs_of(runs)] == ["x", "x#2"]


def test_files_of_one_stem_are_told_apart_by_folder(tmp_path: Path) -> None:
    runs = [run_file(tmp_path, f"{folder}/bm25.run.gz", "a") for folder in ("old", "new")]
    assert [run.name for run in runs_of(runs)] == ["old/bm25", "new/bm25"]


def test_a_geometric_mean_is_shown_as_one() -> None:
    scores = judged.evaluate(QRELS, {"q1": {"a": 1.0}, "q2": {"x": 2.0, "b": 1.0}}, ["GMAP", "NumRel"])
    assert scores.value("GMAP") == pytest.approx(0.5**0.5, rel=1e-15)  # of 1 and 1/2
    text = scores.summary(ci="none").runs().text()
    assert "0.7071" in text
    assert text.split()[-1] == "2"  # a count has no decimals
    (geometric, count) = scores.estimates()
    assert geometric.ci is not None
    assert 1e-5 * 0.999 <= geometric.ci[0] <= geometric.value <= geometric.ci[1] <= 1  # no score counts as less
    assert count.ci is None


def test_the_warning_about_levels_names_only_what_has_one() -> None:
    qrels = {"q": {"a": 1, "b": 2}}
    scores = judged.evaluate(qrels, {"q": {"a": 1.0}}, ["RBP(p=0.8,gain=graded,max=2)", "RBP(p=0.8)@5", "nDCG"])
    assert scores.warnings == (
        (
            "RBP(p=0.8)@5: grades 1, 2 all count as relevant; to change this, set the lowest relevant grade with rel=,"
            " for example RBP(p=0.8,rel=2)@5"
        ),
    )


@pytest.mark.parametrize(
    ("measures", "warned"),
    [
        (["AP", "P@5", "RR(rel=2)"], "AP, P@5"),
        (["AP(rel=1)", "P@5", "RR"], "P@5, RR"),
        (["P@5", "mrr@5-l2"], "P@5"),
        (["AP(rel=1)", "nDCG"], ""),
        (["AP(rel=2)", judged.RR(rel=2), judged.Success(cutoff=5)], "Success@5"),
    ],
)
def test_a_level_that_was_chosen_for_one_measure_leaves_the_warning_to_the_others(measures, warned) -> None:
    scores = judged.evaluate({"q": {"a": 1, "b": 2}}, {"q": {"a": 1.0}}, measures)
    assert [text.partition(": grades")[0] for text in scores.warnings] == ([warned] if warned else [])
