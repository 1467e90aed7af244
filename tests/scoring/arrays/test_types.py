"""Types of scores and grades: lengths, half precision, infinite scores and integers, in every array library."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from judged import InputError
from judged.scoring import arrays

Functions = dict[str, Any]
FUNCTIONS: Functions = {
    "dcg": arrays.dcg,
    "ndcg": arrays.ndcg,
    "ndcg exp2": partial(arrays.ndcg, gain="exp2"),
    "precision": arrays.precision,
    "recall": arrays.recall,
    "success": arrays.success,
    "reciprocal_rank": arrays.reciprocal_rank,
    "average_precision": arrays.average_precision,
    "err": partial(arrays.err, max=4),
    "rbp": partial(arrays.rbp, p=0.999),
    "rbp graded": partial(arrays.rbp, p=0.8, max=4),
}
LIBRARIES = ["numpy", "array_api_strict", "jax", "torch"]
TYPES = ["float16", "bfloat16", "float32", "float64"]
LENGTHS = [1, 10, 3_000, 100_000]
ALL_TYPES = [(library, kind, length) for library in ("numpy", "torch") for kind in TYPES for length in LENGTHS]
ALL_TYPES += [("array_api_strict", kind, length) for kind in ("float32", "float64") for length in LENGTHS]
ALL_TYPES += [("jax", "float16", 3_000), ("jax", "bfloat16", 3_000), ("jax", "float32", 100_000)]  # it compiles each


def library_of(name: str) -> Any:
    return pytest.importorskip("jax.numpy" if name == "jax" else name)


def array(xp: Any, values: Any, type_name: str = "") -> Any:
    """Make an array of a type, or skip a type that the library does not have."""
    if not type_name:
        return xp.asarray(values)
    if not hasattr(xp, type_name) or (xp.__name__ == "jax.numpy" and type_name in {"float64", "int64"}):
        pytest.skip(f"no {type_name}")
    return xp.asarray(values, dtype=getattr(xp, type_name))


def as_float64(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


def graded_lists(length: int, queries: int = 2) -> Any:
    """Make grades from 0 to 4, most of them above 0, in the order of the ranking."""
    return np.random.default_rng(length).choice(5, (queries, length), p=[0.1, 0.4, 0.3, 0.1, 0.1])


def expected_scores(grades: Any, k: int) -> dict[str, Any]:
    """Compute each measure in float64 from grades in the order of the ranking, in one NumPy expression each."""
    ranks = np.arange(1, grades.shape[1] + 1)
    relevant = grades >= 1
    log2 = np.log2(ranks + 1)
    best = -np.sort(-grades, axis=1)
    satisfied = (2.0**grades - 1) / 16
    unsatisfied = np.cumprod(np.concatenate((np.ones((len(grades), 1)), 1 - satisfied), axis=1), axis=1)[:, :-1]
    first = np.where(relevant.any(axis=1), relevant.argmax(axis=1) + 1, np.inf)
    precision = np.cumsum(relevant, axis=1) / ranks
    return {
        "dcg": (grades / log2)[:, :k].sum(axis=1),
        "ndcg": (grades / log2)[:, :k].sum(axis=1) / (best / log2)[:, :k].sum(axis=1),
        "ndcg exp2": ((2.0**grades - 1) / log2)[:, :k].sum(axis=1) / ((2.0**best - 1) / log2)[:, :k].sum(axis=1),
        "precision": relevant[:, :k].mean(axis=1),
        "recall": relevant[:, :k].sum(axis=1) / relevant.sum(axis=1),
        "success": (first <= k) * 1.0,
        "reciprocal_rank": np.where(first <= k, 1 / first, 0),
        "average_precision": (relevant * precision)[:, :k].sum(axis=1) / relevant.sum(axis=1),
        "err": (satisfied * unsatisfied / ranks)[:, :k].sum(axis=1),
        "rbp": 0.001 * (relevant * 0.999 ** (ranks - 1))[:, :k].sum(axis=1),
        "rbp graded": 0.2 * (grades / 4 * 0.8 ** (ranks - 1))[:, :k].sum(axis=1),
    }


@pytest.mark.parametrize(("library", "type_name", "length"), ALL_TYPES)
def test_numbers_are_right_to_a_millionth_whatever_the_type_and_length(
    library: str, type_name: str, length: int
) -> None:
    """Scores of -1, -2, ... tie in half precision beyond rank 2,048 (256 in bfloat16): position breaks the ties."""
    xp, grades = library_of(library), graded_lists(length)
    scores = -np.minimum(np.arange(1, length + 1), 60_000.0) * np.ones_like(grades)
    given, judgments = array(xp, scores, type_name), array(xp, grades, type_name)
    expected = expected_scores(grades.astype(np.float64), length)
    for name, function in FUNCTIONS.items():
        found = function(given, judgments, cutoff=length)
        np.testing.assert_allclose(as_float64(found), expected[name], rtol=1e-6, atol=0, err_msg=name)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("type_name", ["", *TYPES])
def test_results_have_the_type_of_the_scores_but_at_least_32_bits(library: str, type_name: str) -> None:
    xp = library_of(library)
    scores = array(xp, [[0.3, 0.2, 0.1]], type_name) if type_name else xp.asarray([[3, 2, 1]])
    wanted = {"": xp.asarray(0.0).dtype, "float64": xp.float64}.get(type_name, xp.float32)
    for function in FUNCTIONS.values():
        assert function(scores, xp.asarray([[1, 0, 2]]), cutoff=2).dtype == wanted


@pytest.mark.parametrize("library", LIBRARIES)
def test_high_grades_in_half_precision(library: str) -> None:
    """2^20 - 1 has no float16: nDCG of grades 1, 20 is (1 + (2^20 - 1) / log2(3)) / (2^20 - 1 + 1 / log2(3))."""
    xp = library_of(library)
    scores, grades = array(xp, [[0.9, 0.1]], "float16"), array(xp, [[1.0, 20.0]], "float16")
    most, discount = 2.0**20 - 1, np.log2(3)
    found = as_float64(arrays.ndcg(scores, grades, gain="exp2"))
    np.testing.assert_allclose(found, [(1 + most / discount) / (most + 1 / discount)], rtol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("type_name", ["float16", "bfloat16", "float32"])
def test_a_level_is_compared_in_the_type_of_the_grades(library: str, type_name: str) -> None:
    """0.7 as float32 is 0.69999999: a document with that grade is relevant from 0.7 on, as it was written."""
    xp = library_of(library)
    scores, grades = array(xp, [[0.9, 0.8, 0.7]], "float32"), array(xp, [[0.7, 0.6, 0.9]], type_name)
    assert as_float64(arrays.precision(scores, grades, cutoff=1, rel=0.7)).tolist() == [1.0]
    np.testing.assert_allclose(as_float64(arrays.recall(scores, grades, cutoff=2, rel=0.7)), [0.5])


@pytest.mark.parametrize(("library", "width"), [*((name, 3) for name in LIBRARIES), ("numpy", 80)])  # 80: another sort
@pytest.mark.parametrize("ties", ["position", "averaged"])
def test_a_masked_document_has_no_rank_beside_scores_of_minus_infinity(library: str, ties: Any, width: int) -> None:
    """One document is masked; behind 0.9 stands the relevant document, whose score is -inf."""
    xp, scores = library_of(library), np.full((1, width), -np.inf)
    scores[0, 0], scores[0, 2] = 0.0, 0.9
    grades, where = np.zeros((1, width)), np.zeros((1, width), dtype=bool)
    grades[0, 1], where[0, 1], where[0, 2] = 1, True, True
    given = tuple(map(xp.asarray, (scores.astype(np.float32), grades)))
    call = {name: partial(function, *given, where=xp.asarray(where)) for name, function in FUNCTIONS.items()}
    assert as_float64(call["reciprocal_rank"](ties=ties)).tolist() == [0.5]
    assert as_float64(call["precision"](cutoff=2, ties=ties)).tolist() == [0.5]
    assert as_float64(call["average_precision"](ties=ties)).tolist() == [0.5]
    assert as_float64(call["success"](cutoff=1, ties=ties)).tolist() == [0.0]
    assert as_float64(call["success"](cutoff=2, ties=ties)).tolist() == [1.0]
    assert as_float64(call["ndcg"](ties=ties)).tolist() == pytest.approx([1 / np.log2(3)], rel=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("ties", ["position", "averaged"])
def test_infinite_scores_are_first_last_and_tied_with_each_other(library: str, ties: Any) -> None:
    """inf, 1, -inf, -inf: of the two tied documents at ranks 3 and 4 the second is relevant."""
    xp = library_of(library)
    scores = xp.asarray([[1.0, -np.inf, np.inf, -np.inf]])
    found = arrays.reciprocal_rank(scores, xp.asarray([[0, 0, 0, 1]]), ties=ties)
    expected = 1 / 4 if ties == "position" else (1 / 3 + 1 / 4) / 2
    assert as_float64(found).tolist() == pytest.approx([expected], rel=1e-6)
    assert as_float64(arrays.precision(scores, xp.asarray([[0, 0, 1, 0]]), cutoff=1, ties=ties)).tolist() == [1.0]


NOT_NUMBERS = [
    ([[0.5, np.nan], [0.5, 0.4]], [[1.0, 0.0], [1.0, 0.0]]),
    ([[0.5, 0.4], [0.5, 0.4]], [[1.0, np.nan], [1.0, 0.0]]),
    ([[0.5, 0.4], [0.5, 0.4]], [[1.0, np.inf], [1.0, 0.0]]),
]


@pytest.mark.parametrize(("scores", "grades"), NOT_NUMBERS)
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_a_query_with_nan_has_no_number_outside_numpy(library: str, scores: Any, grades: Any) -> None:
    xp, cutoff = library_of(library), [1, 2]
    there = np.array([[True, False], [True, True]])
    for name, function in FUNCTIONS.items():
        found = as_float64(function(xp.asarray(scores), xp.asarray(grades), cutoff=cutoff))
        assert np.isnan(found[0]).all(), name
        assert not np.isnan(found[1]).any(), name
        masked = as_float64(function(xp.asarray(scores), xp.asarray(grades), where=xp.asarray(there), cutoff=cutoff))
        assert not np.isnan(masked).any(), name


def test_a_query_with_nan_has_no_number_in_jax() -> None:
    xp = library_of("jax")
    found = as_float64(arrays.ndcg(xp.asarray([[0.5, np.nan], [0.5, 0.4]]), xp.asarray([[1.0, 0.0], [1.0, np.inf]])))
    assert np.isnan(found).all()


@pytest.mark.parametrize(("scores", "grades"), NOT_NUMBERS)
def test_numpy_refuses_nan(scores: Any, grades: Any) -> None:
    there = np.array([[True, False], [True, True]])
    for function in FUNCTIONS.values():
        with pytest.raises(InputError):
            function(np.asarray(scores), np.asarray(grades), cutoff=2)
        function(np.asarray(scores), np.asarray(grades), where=there, cutoff=2)


WHOLE = [
    (library, kind, ties)
    for library in ("numpy", "array_api_strict", "torch")
    for kind in ("int8", "uint8", "int32", "int64")
    for ties in ("position", "averaged")
]


@pytest.mark.parametrize(("library", "type_name", "ties"), [*WHOLE, ("jax", "int32", "averaged")])
def test_whole_scores_keep_all_digits(library: str, type_name: str, ties: Any) -> None:
    """The highest and lowest of their type, and its neighbors; the first document is masked."""
    xp = library_of(library)
    info = np.iinfo(type_name)
    scores = array(xp, [[info.min, info.min, info.max - 1, info.max, info.min]], type_name)
    where = xp.asarray([[False, True, True, True, True]])
    call = partial(arrays.reciprocal_rank, scores, where=where, ties=ties)
    assert as_float64(call(xp.asarray([[0, 0, 0, 1, 0]]))).tolist() == [1.0]
    assert as_float64(call(xp.asarray([[0, 0, 1, 0, 0]]))).tolist() == [0.5]
    last = 1 / 3 if ties == "position" else (1 / 3 + 1 / 4) / 2
    assert as_float64(call(xp.asarray([[0, 1, 0, 0, 0]]))).tolist() == pytest.approx([last], rel=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_true_and_false_may_be_grades_and_scores(library: str) -> None:
    xp = library_of(library)
    found = arrays.reciprocal_rank(xp.asarray([[False, True]]), xp.asarray([[True, False]]))
    assert as_float64(found).tolist() == [0.5]


def test_averaged_ties_of_long_lists_in_jax() -> None:
    """All 100,000 documents share one score: precision at 10 is the share of the relevant ones."""
    xp = library_of("jax")
    grades = graded_lists(100_000)
    scores = xp.zeros(grades.shape, dtype=xp.float32)
    found = as_float64(arrays.precision(scores, xp.asarray(grades), cutoff=10, ties="averaged"))
    np.testing.assert_allclose(found, (grades >= 1).mean(axis=1), rtol=1e-6)
    discount = (1 / np.log2(np.arange(2, 12))).sum()
    ideal = 4 * discount
    found = as_float64(arrays.ndcg(scores, xp.asarray(grades), cutoff=10, ties="averaged"))
    np.testing.assert_allclose(found, grades.mean(axis=1) * discount / ideal, rtol=1e-6)
