"""Integer scores: scores of a run if the columns say so; large integers keep their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import judged
from judged import InputError, Run

LARGE = 2**53
SCORES = [1.0, 1.0, 1.0, 2.0, 2.0, 0.0]
PAIRS = {"query_id": ["q"] * 6, "doc_id": list("abcdef")}
BEIR = {"query-id": ["q"] * 6, "corpus-id": list("abcdef")}


def written(path: Path, columns: dict[str, Any]) -> Path:
    (parquet.write_table if path.suffix == ".parquet" else feather.write_feather)(pa.table(columns), path)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize(
    "columns",
    [
        {**PAIRS, "score": SCORES},
        {**PAIRS, "score": pa.array(SCORES, pa.float32())},
        {**PAIRS, "score": [int(score) for score in SCORES], "run_id": ["mine"] * 6},
        {**PAIRS, "score": [int(score) for score in SCORES], "rank": [3, 4, 5, 1, 2, 6]},
        {**BEIR, "score": SCORES, "run_id": ["mine"] * 6},
    ],
)
def test_runs_with_whole_scores_are_runs(name: str, columns: dict[str, Any], tmp_path: Path) -> None:
    """By descending id among equal scores the order is e, d, c, b, a, f: the reciprocal rank of c is 1/3."""
    path = written(tmp_path / name, columns)
    assert judged.evaluate({"q": {"c": 1}}, path, "RR").value("RR") == 1 / 3


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("columns", [{**PAIRS, "score": [int(score) for score in SCORES]}, {**BEIR, "score": SCORES}])
def test_what_may_be_grades_is_still_refused(name: str, columns: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        judged.evaluate({"q": {"c": 1}}, written(tmp_path / name, columns), "RR")
    assert caught.value.rule == "looks-like-qrels"


TIED = [LARGE, LARGE + 1]


@pytest.mark.parametrize(
    "scores",
    [
        TIED,
        [-LARGE - 1, -LARGE],
        [1.5, *TIED],
        [2**70, 2**70 + 1],
        np.array(TIED),
        np.array(TIED, dtype=np.uint64),
    ],
)
def test_whole_scores_that_are_equal_as_doubles_are_refused(scores: Any) -> None:
    run = {"q": {f"d{number}": score for number, score in enumerate(scores)}}
    with pytest.raises(InputError) as caught:
        judged.evaluate({"q": {"d1": 1}}, run, "RR")
    assert caught.value.rule == "bad-score"


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_files_with_such_scores_are_refused(kind: Any, name: str, tmp_path: Path) -> None:
    columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": pa.array(TIED, kind)}
    with pytest.raises(InputError) as caught:
        judged.evaluate({"q": {"a": 1}}, written(tmp_path / name, columns), "RR")
    assert caught.value.rule == "bad-score"
    assert str(LARGE + 1) in caught.value.problem


@pytest.mark.parametrize("scores", [[LARGE - 1, LARGE], [2**60, 2**60 + 4096], [LARGE + 2, LARGE + 2], [-LARGE, LARGE]])
def test_large_scores_that_doubles_tell_apart_are_kept(scores: list[int]) -> None:
    run = {"q": {"a": scores[0], "b": scores[1]}}
    assert judged.evaluate({"q": {"b": 1}}, run, "RR").value("RR") == 1.0
    table = pa.table({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": pa.array(scores, pa.int64())})
    assert Run.of(table).table["score"].to_pylist() == [float(score) for score in scores]
