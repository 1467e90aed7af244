"""Input values are used unchanged or raise an error; none is changed, dropped or invented silently."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from judged import InputError, Qrels, Run, evaluate
from judged.data.check_files import check_run
from judged.errors import JudgedWarning
from judged.results.decimals import read_number

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {"q": {"a": 1, "b": 0}}


def table(**columns: Any) -> Any:
    return pa.table({"query_id": ["q", "q"], "doc_id": ["a", "b"], **columns})


# ---- ranks


def test_a_rank_that_is_null_is_refused() -> None:
    """It came first, and RR was 1."""
    run = table(score=[1.0, 2.0], rank=pa.array([None, 1], pa.int64()))
    for data in (run, run.to_pandas(), run.to_pylist()):
        with pytest.raises(InputError, match=r"row 0 has (no rank|the rank nan)|rank"):
            evaluate(QRELS, data, "RR", ties="rank")


@pytest.mark.parametrize("rank", [1.5, float("nan"), float("inf"), 2.0**60])
def test_a_rank_that_is_no_whole_number_is_refused(rank: float) -> None:
    with pytest.raises(InputError, match="rank"):
        Run.of(table(rank=[1.0, rank]))


def test_ranks_of_named_tuples_count() -> None:
    row = namedtuple("row", "query_id doc_id score rank")  # noqa: PYI024 - as ir_datasets makes them
    run = [row("q", "a", 1.0, 1), row("q", "b", 2.0, 2)]
    assert evaluate(QRELS, run, "RR", ties="rank").value("RR") == 1.0


# ---- numbers that no double holds


@pytest.mark.parametrize(
    "number", ["1e999", "1e400", "-1e999", "1" + "0" * 310, "1e-999", "0.1e-400", "1E-999", "0." + "0" * 330 + "1"]
)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("q Q0 a 1 {} t\nq Q0 b 2 0 t\n", 1),
        ("query_id,doc_id,score\nq,a,{}\nq,b,0\n", 2),
        ('{{"q": {{"a": {}, "b": 0}}}}', None),
        ('{{"query_id": "q", "doc_id": "a", "score": {}}}\n{{"query_id": "q", "doc_id": "b", "score": 0}}\n', 1),
    ],
)
def test_a_score_that_no_double_holds_is_refused(tmp_path: Path, text: str, line: int | None, number: str) -> None:
    """They became infinite or 0, and tied."""
    path = tmp_path / "a.run"
    path.write_text(text.format(number))
    with pytest.raises(InputError, match=r"too (large|close to 0)") as raised:
        assert len(Run.read(path).table)
    assert raised.value.line == line


def test_extreme_scores_that_a_double_holds_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q Q0 a 1 inf t\nq Q0 b 2 1e308 t\nq Q0 c 3 5e-324 t\nq Q0 d 4 0e-999 t\nq Q0 e1e400 5 -inf t\n")
    assert Run.read(path).table["score"].to_pylist() == [np.inf, 1e308, 5e-324, 0.0, -np.inf]


def test_whole_numbers_beyond_64_bits() -> None:
    assert Qrels.of({"q": {"a": 2**70, "b": 0}}).grades.tolist() == [2.0**70, 0.0]
    for grade in (10**400, -(10**400)):
        with pytest.raises(InputError, match=r"grade -?1000.*too large"):
            Qrels.of({"q": {"a": grade}})
    with pytest.raises(InputError, match=r"the score 1000.* does not fit in a double"):
        Run.of([namedtuple("row", "query_id doc_id score")("q", "a", 10**400)])  # noqa: PYI024


# ---- keys and columns


def test_a_later_key_of_a_record_counts() -> None:
    """Only the keys of the first record counted, and the scores of the others vanished."""
    records = [{"query_id": "q", "doc_id": "a"}, {"query_id": "q", "doc_id": "b", "score": 2.0}]
    with pytest.raises(InputError, match="row 0 has no score"):
        Run.of(records)
    records[0]["score"] = 1.0
    with pytest.warns(JudgedWarning, match="columns that are not used: comment"):
        assert evaluate(QRELS, [{"comment": "x", **records[0]}, records[1]], "RR").value("RR") == 0.5


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (Qrels, {"relevance": [1, 0], "label": [0, 1]}),
        (Qrels, {"relevance": [1, 0], "grade": [0, 1], "score": [0, 0]}),
        (Qrels, {"relevance": [1, 0], "subtopic": ["1", "1"], "assessor": ["x", "y"]}),
        (Run, {"score": [1.0, 2.0], "sim": [2.0, 1.0]}),
        (Run, {"rank": [1, 2], "position": [2, 1]}),
        (Run, {"score": [1.0, 2.0], "docno": ["b", "a"]}),
    ],
)
def test_two_columns_that_mean_the_same_are_refused(tmp_path: Path, kind: Any, columns: dict[str, Any]) -> None:
    """The first of them won."""
    arrow_table = table(**columns)
    frame = arrow_table.to_pandas()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "a.parquet")
    for data in (
        arrow_table,
        frame,
        arrow_table.to_pylist(),
        *(tmp_path / f"a.{end}" for end in ("csv", "jsonl", "parquet")),
    ):
        with pytest.raises(InputError, match="both contain the"):
            kind.of(data)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = pa.table([["q"], ["a"], [1.0], [2.0]], names=["query_id", "doc_id", "score", "score"])
    with pytest.raises(InputError, match="two columns are called 'score'"):
        Run.of(twice)
    (tmp_path / "a.csv").write_text("query_id,doc_id,score,score\nq,a,1,2\n")
    with pytest.raises(InputError, match=r"a\.csv:1: two columns are called 'score'"):
        Run.read(tmp_path / "a.csv")
    (tmp_path / "a.json").write_text('[{"query_id": "q", "doc_id": "a", "score": 1, "score": 2}]')
    with pytest.raises(InputError, match="'score' appears twice"):
        Run.read(tmp_path / "a.json")


def test_frames_of_pyterrier_have_the_text_of_the_query_and_numbers_of_documents_beside_their_ids() -> None:
    frame = pd.DataFrame({
        "qid": ["q", "q"], "docid": [7, 8], "docno": ["a", "b"], "rank": [0, 1], "score": [2.0, 1.0],
        "query": ["x", "x"],
    })  # fmt: skip
    with pytest.warns(JudgedWarning, match="columns that are not used: docid, query"):
        assert Run.of(frame).table["doc_id"].to_pylist() == ["a", "b"]
    with pytest.warns(JudgedWarning, match="columns that are not used: docid, query"):
        assert evaluate(QRELS, frame, "RR").value("RR") == 1.0


def test_what_is_read_as_a_number() -> None:
    assert [read_number(text) for text in ("1.", ".5", "-1E5", 3, np.float32(0.5), "-inf")] == [
        1,
        0.5,
        -1e5,
        3,
        0.5,
        -np.inf,
    ]
    for odd in ("1_000", "1,5", "\u0661", "0x1", "nan", "", "1e", float("nan"), None, True, b"1", [1], "1 0"):
        with pytest.raises(ValueError, match="is not a number"):
            read_number(odd)


def test_check_names_a_number_out_of_range(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q Q0 a 1 1e999 t\nq Q0 b 2 1e-999 t\nq Q0 c 3 0.5 t\n")
    findings = [finding for finding in check_run(tmp_path / "a.run") if finding.rule == "bad-score"]
    assert [(finding.line, finding.count) for finding in findings] == [(1, 2)]
