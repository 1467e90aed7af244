"""Measures over arrays give what the registry gives, on every array library."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

import judged
from judged import InputError
from judged.scoring import arrays, measures

BATCHES = 10_000
QUERIES = 2
CUTOFF = 3
PAIRS = {  # what each is in the registry, with the options that differ
    "dcg": (partial(arrays.dcg, gain="exp2"), measures.DCG(cutoff=CUTOFF, gain="exp2")),
    "ndcg": (arrays.ndcg, measures.nDCG(cutoff=CUTOFF)),
    "ndcg exp2": (partial(arrays.ndcg, gain="exp2"), measures.nDCG(cutoff=CUTOFF, gain="exp2")),
    "precision": (arrays.precision, measures.P(cutoff=CUTOFF)),
    "recall": (partial(arrays.recall, rel=2), measures.R(cutoff=CUTOFF, rel=2)),
    "success": (arrays.success, measures.Success(cutoff=CUTOFF)),
    "reciprocal_rank": (arrays.reciprocal_rank, measures.RR(cutoff=CUTOFF)),
    "average_precision": (arrays.average_precision, measures.AP(cutoff=CUTOFF)),
    "err": (partial(arrays.err, max=3), measures.ERR(cutoff=CUTOFF, max=3)),
    "rbp": (partial(arrays.rbp, p=0.8), measures.RBP(p=0.8, cutoff=CUTOFF)),
    "rbp graded": (partial(arrays.rbp, p=0.8, max=3), measures.RBP(p=0.8, gain="graded", max=3, cutoff=CUTOFF)),
}
AVERAGED = sorted(PAIRS.keys() - {"err"})


def test_every_measure_is_held_to_the_registry():
    assert {name.split()[0] for name in PAIRS} == set(arrays.__all__) - {"padded"}


@pytest.fixture(scope="module")
def batches():
    """10,000 batches with ties, negative grades and masks, by their width; and the same as the registry has it."""
    rng = np.random.default_rng(25)
    made, qrels, run = {}, {}, {}
    for width in range(1, 9):
        shape = (BATCHES // 8 * QUERIES, width)
        scores = rng.integers(0, 6, shape) / 4
        grades = rng.integers(-1, 4, shape).astype(np.float64)
        where = rng.random(shape) < 0.8
        where[:, 0] = True  # the registry leaves out queries without documents
        made[width] = scores, grades, where
        for query, order in enumerate(np.argsort(-scores, axis=1, kind="stable").tolist()):
            name = f"{width} {query:06}"
            there = [doc for doc in order if where[query, doc]]
            qrels[name] = {str(doc): grades[query, doc] for doc in there}
            run[name] = {str(doc): -float(rank) for rank, doc in enumerate(there)}
    return made, judged.judge(qrels, run)


@pytest.mark.parametrize("name", PAIRS)
def test_numpy_gives_the_registry_s_numbers_to_the_bit(batches, name):
    made, registry = batches
    function, measure = PAIRS[name]
    ours = [
        function(scores[at : at + QUERIES], grades[at : at + QUERIES], where=where[at : at + QUERIES], cutoff=CUTOFF)
        for scores, grades, where in made.values()
        for at in range(0, len(scores), QUERIES)
    ]
    assert len(ours) == BATCHES
    np.testing.assert_array_equal(np.concatenate(ours), measure.score(registry))


@pytest.mark.parametrize("name", PAIRS)
def test_long_lists_with_ties_give_the_registry_s_numbers_to_the_bit(name):
    rng = np.random.default_rng(5)
    scores, grades = rng.integers(0, 40, (30, 300)) / 4, rng.integers(-1, 4, (30, 300)).astype(np.float64)
    there = rng.random(scores.shape) < 0.8
    function, measure = PAIRS[name]
    docs = [np.flatnonzero(row)[np.argsort(-scores[at, row], kind="stable")] for at, row in enumerate(there)]
    qrels = {f"{at:02}": {str(doc): grades[at, doc] for doc in row} for at, row in enumerate(docs)}
    run = {f"{at:02}": {str(doc): -float(rank) for rank, doc in enumerate(row)} for at, row in enumerate(docs)}
    ours = function(scores, grades, where=there, cutoff=CUTOFF)
    np.testing.assert_array_equal(ours, measure.score(judged.judge(qrels, run)))
    if name in AVERAGED:  # what is below the cutoff matters only where it is tied with what is above
        several = function(scores, grades, where=there, cutoff=[CUTOFF, 300], ties="averaged")
        alone = function(scores, grades, where=there, cutoff=CUTOFF, ties="averaged")
        np.testing.assert_allclose(alone, several[:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("library", ["array_api_strict", "jax", "torch"])
def test_other_libraries_give_the_registry_s_numbers(batches, name, library):
    xp = pytest.importorskip("jax.numpy" if library == "jax" else library)
    made, registry = batches
    function, measure = PAIRS[name]
    call = partial(function, cutoff=CUTOFF)
    if library == "jax":
        jax = pytest.importorskip("jax")
        call = jax.jit(call)
    ours = [
        np.asarray(call(*(xp.asarray(part, dtype=xp.float32) for part in (scores, grades)), where=xp.asarray(where)))
        for scores, grades, where in made.values()
    ]
    np.testing.assert_allclose(np.concatenate(ours), measure.score(registry), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "jax"])
@pytest.mark.parametrize("name", AVERAGED)
def test_averaged_ties_are_the_mean_over_all_orders(name, library):
    xp = pytest.importorskip("jax.numpy" if library == "jax" else library)
    rng = np.random.default_rng(7)
    scores = rng.integers(0, 2, (200, 5)) / 2
    grades = rng.integers(-1, 4, (200, 5)).astype(np.float64)
    where = rng.random((200, 5)) < 0.8
    function = PAIRS[name][0]
    orders = [
        function(scores[:, order], grades[:, order], where=where[:, order], cutoff=[1, 3, 5])
        for order in map(list, permutations(range(5)))
    ]
    given = map(xp.asarray, (scores, grades))
    ours = function(*given, where=xp.asarray(where), cutoff=[1, 3, 5], ties="averaged")
    off = 1e-6 if library == "jax" else 1e-12
    np.testing.assert_allclose(np.asarray(ours), np.mean(orders, axis=0), rtol=off, atol=off)


@pytest.mark.parametrize("name", PAIRS)
def test_several_cutoffs_and_offsets_give_what_one_call_each_gives(name):
    rng = np.random.default_rng(3)
    scores, grades, offsets = rng.random(12), rng.integers(0, 4, 12), np.array([0, 3, 3, 10, 12, 12])
    function = PAIRS[name][0]
    *given, where = arrays.padded(scores, grades, offsets)
    several = function(*given, where=where, cutoff=[1, 4, 20])
    for at, cutoff in enumerate([1, 4, 20]):
        np.testing.assert_array_equal(several[:, at], function(*given, where=where, cutoff=cutoff))
    for query, (first, last) in enumerate(pairwise(offsets.tolist())):
        alone = function(scores[None, first:last], grades[None, first:last], cutoff=[1, 4, 20])
        np.testing.assert_array_equal(several[query], alone[0])


def test_a_query_without_relevant_documents_has_the_value_that_is_asked_for():
    scores, grades = np.array([[0.5, 0.2]]), np.array([[0, 0]])
    for name, (function, _) in PAIRS.items():
        if name not in ("dcg", "err"):
            assert np.isnan(function(scores, grades, cutoff=2, undefined=np.nan)).all()
        assert function(scores, grades, cutoff=2).tolist() == [0.0]


@pytest.mark.parametrize(
    ("scores", "grades", "options"),
    [
        ([[np.nan]], [[1]], {}),
        ([[0.5]], [[np.inf]], {}),
        ([[0.5]], [[np.nan]], {}),
        ([[0.5, 0.1]], [[1]], {}),
        ([[0.5]], [[1]], {"cutoff": 0}),
        ([[0.5]], [[1]], {"ties": "random"}),
        ([[0.5]], [[1]], {"where": np.array([True])}),
    ],
)
def test_what_does_not_fit_is_refused(scores, grades, options):
    with pytest.raises(InputError):
        arrays.ndcg(np.array(scores), np.array(grades), **options)


def test_levels_scales_and_lengths_that_would_give_another_number_are_refused():
    scores, grades = np.array([[0.5]]), np.array([[3]])
    with pytest.raises(InputError):
        arrays.recall(scores, grades, rel=0)
    with pytest.raises(InputError):
        arrays.err(scores, grades, max=2)
    with pytest.raises(InputError):
        arrays.padded(np.zeros(3), np.zeros(3), np.array([0, 3]), longest=2)
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(InputError):
        arrays.padded(*(strict.asarray(part) for part in ([0.1], [1], [0, 1])))


def class_of_the_docs(name):
    text = (Path(__file__).parents[3] / "docs" / "arrays.md").read_text(encoding="utf-8")
    code = next(block for block in text.split("```python")[1:] if f"class {name}" in block).split("```")[0]
    names = {"arrays": arrays}
    exec(code, names)  # noqa: S102
    return names[name]


@pytest.mark.parametrize("library", ["numpy", "torch", "torchmetrics"])
def test_the_metric_classes_of_the_docs_give_the_mean_of_all_queries(library):
    pytest.importorskip(library)
    xp = pytest.importorskip("numpy" if library == "numpy" else "torch")
    metric = class_of_the_docs("MeanNDCG" if library == "torchmetrics" else "NDCG")
    scores, grades = xp.asarray([[0.5, 0.5], [0.9, 0.1], [0.3, 0.2]]), xp.asarray([[1, 0], [0, 1], [0, 0]])
    one, other = metric(10), metric(10)
    one.update(scores[:1], grades[:1])
    other.update(scores[1:], grades[1:])
    (one.merge_state if library == "torchmetrics" else one.merge)(other)
    discounted = 1 / np.log2(3)
    assert float(one.compute()) == pytest.approx(((1 + discounted) / 2 + discounted) / 2, abs=1e-6)


@pytest.mark.filterwarnings("ignore:Dynamo detected")
@pytest.mark.parametrize("name", AVERAGED)
def test_torch_compiles_it(name):
    torch = pytest.importorskip("torch", minversion="2.0")
    rng = np.random.default_rng(9)
    given = rng.integers(0, 6, (20, 12)) / 4, rng.integers(0, 4, (20, 12)).astype(np.float64)
    where = rng.random((20, 12)) < 0.8
    call = partial(PAIRS[name][0], cutoff=[1, 5], ties="averaged")
    compiled = torch.compile(call, backend="eager")(*map(torch.asarray, given), where=torch.asarray(where))
    np.testing.assert_allclose(compiled.numpy(), call(*given, where=where), rtol=1e-12)


def test_cutoffs_may_be_numbers_of_numpy() -> None:
    scores, grades = np.array([[0.3, 0.2, 0.1]]), np.array([[1, 0, 2]])
    assert arrays.ndcg(scores, grades, cutoff=np.int64(2)) == arrays.ndcg(scores, grades, cutoff=2)  # type: ignore[arg-type]
    several = arrays.precision(scores, grades, cutoff=np.array([1, 3]))  # type: ignore[arg-type]
    np.testing.assert_array_equal(several, arrays.precision(scores, grades, cutoff=[1, 3]))


@pytest.mark.parametrize(
    "odd",
    [
        {"cutoff": []},
        {"cutoff": 2.5},
        {"cutoff": "x"},
        {"cutoff": [1, 0]},
        {"where": np.ones((1, 2), int)},
        {"gain": "x"},
    ],
)
def test_odd_options_are_refused(odd: dict[str, object]) -> None:
    with pytest.raises(InputError):
        arrays.ndcg(np.array([[0.3, 0.2]]), np.array([[1, 0]]), **odd)  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [{"p": 2}, {"p": np.nan}, {"p": 0.5, "max": 0}, {"p": 0.5, "max": 0.5}])
def test_persistence_and_scale_are_checked(odd: dict[str, float]) -> None:
    with pytest.raises(InputError):
        arrays.rbp(np.array([[0.3, 0.2]]), np.array([[1, 0]]), **odd)  # type: ignore[arg-type]


@pytest.mark.parametrize("offsets", [[0, 5], [0, 1], []])
def test_offsets_that_do_not_fit_the_documents_are_refused(offsets: list[int]) -> None:
    with pytest.raises(InputError, match="offsets"):
        arrays.padded(np.array([0.1, 0.2]), np.array([1, 2]), np.array(offsets, dtype=np.int64))
