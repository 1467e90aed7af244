"""Everything that `evaluate` takes gives the same numbers, and no run is lost or merged."""

from __future__ import annotations

import gzip
import json
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import judged
from judged import InputError, MeasureError, Qrels, Run, evaluate
from judged.scoring.evaluation import DEFAULT_MEASURES, measures_of, runs_of

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "007": {"1": 1}}
RUN = {"q1": {"d2": 0.9, "d1": 0.8, "x": 0.7, "d3": 0.1}, "q2": {"y": 3.0, "d4": 2.0}, "007": {"1": 1.0, "01": 0.5}}
MEASURES = ("AP", "RR", "nDCG@10", "NumRet")
EXPECTED = {"AP": ((1 / 2 + 2 / 4) / 2 + 1 / 2 + 1) / 3, "RR": (1 / 2 + 1 / 2 + 1) / 3, "NumRet": 8.0}

JUDGMENTS = [(topic, doc, grade) for topic, docs in QRELS.items() for doc, grade in docs.items()]
RESULTS = [(topic, doc, score) for topic, docs in RUN.items() for doc, score in docs.items()]
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")  # noqa: PYI024 - as ir_datasets gives them
Scored = namedtuple("Scored", "query_id doc_id score")  # noqa: PYI024

QRELS_TABLE = dict(zip(("query_id", "doc_id", "relevance"), map(list, zip(*JUDGMENTS, strict=True)), strict=True))
RUN_TABLE = dict(zip(("query_id", "doc_id", "score"), map(list, zip(*RESULTS, strict=True)), strict=True))
TREC_QRELS = "".join(f"{topic} 0 {doc} {grade}\n" for topic, doc, grade in JUDGMENTS)
TREC_RUN = "".join(f"{topic} Q0 {doc} 0 {score} tag\n" for topic, doc, score in RESULTS)


def forms_of_qrels(folder: Path) -> dict[str, Any]:
    (folder / "qrels.txt").write_text(TREC_QRELS)
    return {
        "path": folder / "qrels.txt",
        "text path": str(folder / "qrels.txt"),
        "Qrels": Qrels.of(QRELS),
        "dict": QRELS,
        "floats": {topic: {doc: float(grade) for doc, grade in docs.items()} for topic, docs in QRELS.items()},
        "arrow": pa.table(QRELS_TABLE),
        "polars": pl.DataFrame(QRELS_TABLE),
        "pandas": pd.DataFrame(QRELS_TABLE),
        "records": [Qrel(*row, "0") for row in JUDGMENTS],
        "generator": (Qrel(*row, "0") for row in JUDGMENTS),
    }


def forms_of_run(folder: Path) -> dict[str, Any]:
    (folder / "a.run").write_text(TREC_RUN)
    (folder / "a.run.gz").write_bytes(gzip.compress(TREC_RUN.encode()))
    (folder / "a.json").write_text(json.dumps(RUN))
    parquet.write_table(pa.table(RUN_TABLE), folder / "a.parquet")
    return {
        "path": folder / "a.run",
        "text path": str(folder / "a.run"),
        "gz": folder / "a.run.gz",
        "json": folder / "a.json",
        "parquet": folder / "a.parquet",
        "read": Run.read(folder / "a.run"),
        "scan": Run.scan(folder / "a.run"),
        "Run": Run.of(RUN),
        "dict": RUN,
        "arrow": pa.table(RUN_TABLE),
        "batch": pa.table(RUN_TABLE).to_batches()[0],
        "polars": pl.DataFrame(RUN_TABLE),
        "pandas": pd.DataFrame(RUN_TABLE),
        "pandas categories": pd.DataFrame(RUN_TABLE).astype({"query_id": "category"}),
        "records": [Scored(*row) for row in RESULTS],
        "other columns": pa.table({**RUN_TABLE, "rank": [9] * len(RESULTS), "text": ["t"] * len(RESULTS)}),
        "other names": pa.table(dict(zip(("qid", "docno", "sim"), RUN_TABLE.values(), strict=True))),
        "list of one": [RUN],
        "named": {"mine": RUN},
    }


QRELS_FORMS = ["path", "text path", "Qrels", "dict", "floats", "arrow", "polars", "pandas", "records", "generator"]
RUN_FORMS = ["path", "text path", "gz", "json", "parquet", "read", "scan", "Run", "dict", "arrow", "batch",
             "polars", "pandas", "pandas categories", "records", "other columns", "other names", "list of one",
             "named"]  # fmt: skip


def assert_expected(scores: judged.Scores) -> None:
    (found,) = scores.aggregate().values()
    for name, value in EXPECTED.items():
        assert found[name] == pytest.approx(value, rel=1e-15), name
    assert scores.query_ids == ("007", "q1", "q2")


@pytest.mark.parametrize("form", QRELS_FORMS)
def test_every_form_of_qrels(form: str, tmp_path: Path) -> None:
    forms = forms_of_qrels(tmp_path)
    assert list(forms) == QRELS_FORMS
    assert_expected(evaluate(forms[form], RUN, MEASURES))


@pytest.mark.filterwarnings("ignore:.*columns that are not used. text:judged.errors.JudgedWarning")
@pytest.mark.parametrize("form", RUN_FORMS)
def test_every_form_of_a_run(form: str, tmp_path: Path) -> None:
    forms = forms_of_run(tmp_path)
    assert list(forms) == RUN_FORMS
    scores = evaluate(QRELS, forms[form], MEASURES)
    assert_expected(scores)
    from_file = "path" in form or form in {"gz", "json", "parquet", "read", "scan"}
    assert scores.run_names == ("mine" if form == "named" else "a" if from_file else "run",)


@pytest.mark.filterwarnings("ignore:.*columns that are not used. text:judged.errors.JudgedWarning")
def test_all_forms_at_once_have_names_of_their_own(tmp_path: Path) -> None:
    several = {"list of one", "named", "records"}  # these are not runs within a list
    forms = [form for name, form in forms_of_run(tmp_path).items() if name not in several]
    scores = evaluate(QRELS, forms, MEASURES)
    assert len(set(scores.run_names)) == len(forms)
    for found in scores.per_topic().values():
        assert found == scores.per_topic()[scores.run_names[0]]


def test_integer_ids_of_frames_are_their_text() -> None:
    frame = pd.DataFrame({"query_id": [1, 1, 2], "doc_id": [10, 9, 10], "score": [1, 1, 1]})
    assert evaluate({"1": {"9": 1}, "2": {"10": 1}}, frame, "RR").per_topic()["run"]["RR"] == {"1": 1.0, "2": 1.0}
    assert evaluate({1: {9: 1}, 2: {10: 1}}, pl.DataFrame(frame.to_dict("list")), "RR").value("RR") == 1.0


def test_lists_of_ids_as_recommenders_have_them() -> None:
    """Actual [[a, b], [c]], predicted [[x, a, b], [c]]: RR 1/2 and 1; AP (1/2 + 2/3) / 2 and 1."""
    scores = evaluate([["a", "b"], ["c"]], [["x", "a", "b"], ["c"]], ["RR", "AP"])
    assert scores.query_ids == ("0", "1")
    assert scores.per_topic()["run"]["RR"] == {"0": 0.5, "1": 1.0}
    assert scores.per_topic()["run"]["AP"] == {"0": (1 / 2 + 2 / 3) / 2, "1": 1.0}
    assert evaluate(["a", "b"], [["x", "a"]], "RR").value("RR") == 0.5  # relevant ids of one topic
    assert evaluate([[1, 2]], [[3, 1]], "RR").value("RR") == 0.5


def test_more_than_ten_ranked_lists_keep_their_order() -> None:
    actual = [[f"d{at}"] for at in range(12)]
    predicted = [[*(f"x{n}" for n in range(at)), f"d{at}"] for at in range(12)]
    found = evaluate(actual, predicted, "RR").per_topic()["run"]["RR"]
    assert found == {str(at): 1 / (at + 1) for at in range(12)}


def test_a_table_with_run_id_holds_several_runs() -> None:
    rows = {"query_id": ["q1"] * 4, "doc_id": ["d1", "x", "x", "d1"], "score": [2.0, 1.0, 2.0, 1.0],
            "run_id": ["good", "good", "bad", "bad"]}  # fmt: skip
    for table in (pa.table(rows), pl.DataFrame(rows), pd.DataFrame(rows)):
        scores = evaluate({"q1": {"d1": 1}}, table, "RR")
        assert scores.run_names == ("good", "bad")
        assert [scores.value("RR", name) for name in ("good", "bad")] == [1.0, 0.5]
    named = evaluate({"q1": {"d1": 1}}, {"a": pa.table(rows), "b": {"q1": {"d1": 1.0}}}, "RR")
    assert named.run_names == ("a/good", "a/bad", "b")
    with pytest.raises(
        InputError, match=r"2 runs in one table: good, bad\. Fix: use judged\.scoring\.evaluation\.runs_of"
    ):
        Run.of(pa.table(rows))


def test_a_csv_with_run_id_holds_several_runs(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text("run_id,query_id,doc_id,score\ngood,q1,d1,2.5\nbad,q1,x,2.5\ngood,q1,x,1.5\nbad,q1,d1,1.5\n")
    scores = evaluate({"q1": {"d1": 1}}, path, "RR")
    assert [scores.value("RR", name) for name in ("good", "bad")] == [1.0, 0.5]


def test_the_tag_of_a_trec_file_divides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 2.5 one\nq1 Q0 d2 2 1.5 two\n")
    assert evaluate({"q1": {"d2": 1}}, path, "RR").aggregate() == {"a": {"RR": 0.5}}


def test_runs_of_one_name_are_told_apart_and_not_merged(tmp_path: Path) -> None:
    for folder, doc in (("old", "d1"), ("new", "x")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bm25.run").write_text(f"q1 Q0 {doc} 1 2.5 indri\nq1 Q0 d2 2 1.5 indri\n")
    paths = [tmp_path / "old" / "bm25.run", tmp_path / "new" / "bm25.run", tmp_path / "old" / "bm25.run"]
    scores = evaluate({"q1": {"d1": 1, "x": 0}}, paths, "RR")
    assert scores.run_names == ("old/bm25", "new/bm25", "old/bm25#2")
    assert [scores.value("RR", name) for name in scores.run_names] == [1.0, 0.0, 1.0]
    assert list(scores.aggregate()) == list(scores.per_topic()) == list(scores.run_names)


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "b#2"]), min_size=1, max_size=7))
def test_names_are_always_distinct(names: list[str]) -> None:
    found = [run.name for run in runs_of([Run.of({"q": {"d": 1.0}}, name=name) for name in names])]
    assert len(set(found)) == len(names)
    assert found[0] == names[0]
    for name, own in zip(names, found, strict=True):
        assert own == name or own.startswith(f"{name}#")


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ({"q1": {"d1": 1.0}}, ["run"]),
        ({"q1": {}}, ["run"]),
        ({"q1": {}, "q2": {"d": 1.0}}, ["run"]),
        ({"A": {"q1": {"d1": 1.0}}}, ["A"]),
        ({"A": {"q1": {}}}, ["A"]),
        ({"A": {}, "B": {"q1": {"d1": 1.0}}}, ["A", "B"]),
        ({1: {"q1": {"d1": 1.0}}, 2: {"q1": {"d1": 1.0}}}, ["1", "2"]),
        ([{"q1": {"d1": 1.0}}], ["run"]),
        ([{"q1": {"d1": 1.0}}] * 2, ["run1", "run2"]),
        (({"q1": {"d1": 1.0}},), ["run"]),
        (Run.of({"q1": {"d1": 1.0}}, name="mine"), ["mine"]),
        ([["d1", "d2"]], ["run"]),
    ],
)
def test_what_is_a_run_and_what_is_several(data: Any, names: list[str]) -> None:
    assert [run.name for run in runs_of(data)] == names


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "an object of type int cannot be read as run. Fix: use a path, a dict of dicts, a data frame"),
        (None, "cannot be read as run"),
        ({"q1": 3}, "Fix: "),
        ("nowhere.run", "nowhere.run: there is no such file. Fix: check the path"),
        (["nowhere.run"], "there is no such file"),
        (pa.table({"query_id": ["q"], "score": [1.0]}), "no column doc_id among query_id, score. Fix: rename"),
        (pa.table({"query_id": ["q"], "doc_id": ["d"], "relevance": [1]}), "this looks like qrels"),
        (pa.table({"query_id": [1.5], "doc_id": ["d"], "score": [1.0]}), "use texts or integers as ids"),
        (pa.table({"query_id": ["q"], "doc_id": [None], "score": [1.0]}), "row 0 has no doc_id"),
        (pa.table({"query_id": ["q"], "doc_id": ["d"], "score": [None]}), "score"),
        (
            pa.table({"query_id": ["q"], "doc_id": ["d"], "score": ["high"]}),
            "the column score must contain numbers, got string",
        ),
    ],
)
def test_what_is_no_run_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(QRELS, data, "AP")
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [{}, [], {"q1": {}}, 7, None, {"q1": {"d1": float("nan")}}, {"q1": {"d1": "2"}}])
def test_what_is_no_qrels_is_refused(data: Any) -> None:
    with pytest.raises(InputError, match="Fix: "):
        evaluate(data, RUN, "AP")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"x1": {"d1": 1.0}},
            "the run has no topic in common with the qrels: the first topic of the run is 'x1', and the first",
        ),
        ({"x1": {}}, "no topic in common"),
        ({}, "no topic in common with the qrels: the run has no topics"),
        ({"Q1": {"d1": 1.0}}, "the first topic of the run is 'Q1', and the first topic of the qrels is '007'"),
    ],
)
def test_a_run_without_a_common_topic_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(QRELS, data, "AP")
    assert message in str(caught.value)
    assert "Fix: check that both files use the same query ids" in str(caught.value)


def test_measures_in_every_form() -> None:
    ap, ndcg = judged.AP(), judged.nDCG(cutoff=10)
    for given_measures in ("AP", ap, judged.AP, ["AP"], (ap,), iter(["MAP"]), ["AP", "map", judged.AP]):
        assert measures_of(given_measures) == (ap,)
    assert measures_of(["nDCG@10", "P@1,2"]) == (ndcg, judged.P(cutoff=1), judged.P(cutoff=2))
    assert [str(one) for one in measures_of(DEFAULT_MEASURES)] == list(DEFAULT_MEASURES)
    assert evaluate(QRELS, RUN).measure_names == DEFAULT_MEASURES
    with pytest.raises(InputError, match=r"at least one measure is required\. Fix: use names such as nDCG@10"):
        evaluate(QRELS, RUN, [])
    with pytest.raises(MeasureError, match="there is no measure 'nope'"):
        evaluate(QRELS, RUN, ["AP", "nope"])


@pytest.mark.parametrize("chosen", [["AP(rel=1)"], ["AP(rel=2)"], ["map-l1"], iter(["AP(rel=1)"])])
def test_who_chose_a_level_is_not_told_about_levels(chosen: Any) -> None:
    assert not any("choose a level" in text for text in evaluate(QRELS, RUN, chosen).warnings)


def test_inputs_stay_as_they_are() -> None:
    qrels, run = json.loads(json.dumps(QRELS)), json.loads(json.dumps(RUN))
    frame = pd.DataFrame(RUN_TABLE)
    kept = frame.copy()
    evaluate(qrels, run, MEASURES)
    evaluate(qrels, frame, MEASURES)
    assert (qrels, run) == (QRELS, RUN)
    assert frame.equals(kept)


def test_a_read_only_frame_is_read() -> None:
    scores = np.array(RUN_TABLE["score"])
    scores.flags.writeable = False
    assert_expected(evaluate(QRELS, pa.table({**RUN_TABLE, "score": scores}), MEASURES))


def test_records_of_any_class() -> None:
    records = [SimpleNamespace(query_id=topic, doc_id=doc, score=score) for topic, doc, score in RESULTS]
    assert_expected(evaluate(QRELS, records, MEASURES))


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 4, 5, 0, 1, 2], [0, 3, 1, 4, 2, 5]])
def test_a_table_is_divided_by_run_whether_its_rows_stand_together_or_not(order: list[int]) -> None:
    rows = [
        ("b", "q1", "d1"),
        ("b", "q1", "d2"),
        ("b", "q2", "d1"),
        ("a", "q1", "d3"),
        ("a", "q2", "d4"),
        ("a", "q3", "d"),
    ]
    columns = zip(*(rows[at] for at in order), strict=True)
    table = pa.table(
        dict(zip(("run_id", "query_id", "doc_id"), map(list, columns), strict=True)) | {"score": [1.0] * 6}
    )
    found = {run.name: run.table.num_rows and set(run.table["doc_id"].to_pylist()) for run in runs_of(table)}
    assert found == {"a": {"d3", "d4", "d"}, "b": {"d1", "d2"}}


def test_each_file_of_a_pattern_or_a_folder_is_a_run(tmp_path: Path) -> None:
    for name in ("b.run", "a.run", "_notes"):
        (tmp_path / name).write_text("q1 Q0 d1 1 2.5 tag\n")
    for path in (tmp_path, tmp_path / "*.run", str(tmp_path / "[ab].run")):
        assert [run.name for run in runs_of(path)] == ["a", "b"]
    assert [run.name for run in runs_of({"mine": tmp_path / "*.run"})] == ["mine/a", "mine/b"]
    with pytest.raises(InputError, match=r"\*\.gz"):
        runs_of(tmp_path / "*.gz")


def test_the_parts_of_one_table_are_no_runs(tmp_path: Path) -> None:
    for at in range(2):
        (tmp_path / f"part-0000{at}.run").write_text("q1 Q0 d1 1 2 x\n")
    with pytest.raises(InputError, match="parts of one table"):
        evaluate({"q1": {"d1": 1}}, tmp_path / "part-*")
