"""The engine: sums without rounding, the same resamples whatever else is asked, order statistics."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.stats import resampling
from judged.stats.resampling import ResampledTopics, SignFlips, kth_smallest, resampled_sums, to_integers


def _sums(weights: resampling.Weights, *tables: np.ndarray) -> list[np.ndarray]:
    parts = [[block.copy() for block in sums] for _, sums in resampled_sums(weights, *tables)]
    return [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]


@pytest.mark.parametrize("topics", [1, 2, 3, 7])
def test_listed_signs_and_their_negatives_are_all_there_are(topics: int) -> None:
    flips = SignFlips(topics, 1 << topics, 0)
    rows = [tuple(row) for block in flips.blocks() for row in block.tolist()]
    assert flips.exact
    assert len(rows) == flips.count
    both = rows + [tuple(-sign for sign in row) for row in rows]
    assert sorted(both) == sorted(itertools.product((-1.0, 1.0), repeat=topics))


def test_signs_are_drawn_where_there_are_more_than_asked_for() -> None:
    assert SignFlips(7, 128, 0).exact
    assert not SignFlips(7, 127, 0).exact
    assert not SignFlips(10_000, 10**9, 0).exact


def test_drawn_signs_are_fair_and_independent() -> None:
    signs = np.concatenate(list(SignFlips(20, 40_000, 3).blocks()))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    products = signs.T @ signs / len(signs)
    assert np.abs(products - np.eye(20)).max() < 5 / math.sqrt(len(signs))
    assert np.abs(signs.mean(axis=0)).max() < 5 / math.sqrt(len(signs))


def test_topics_are_drawn_with_replacement_as_many_as_there_are() -> None:
    times = np.concatenate(list(ResampledTopics(6, 60_000, 1).blocks()))
    assert np.all(times.sum(axis=1) == 6)
    expected = [math.comb(6, k) * (1 / 6) ** k * (5 / 6) ** (6 - k) for k in range(7)]
    for k, chance in enumerate(expected):
        bound = 5 * math.sqrt(chance * (1 - chance) / len(times))
        assert np.abs((times == k).mean(axis=0) - chance).max() <= bound


@pytest.mark.parametrize("kind", [SignFlips, ResampledTopics])
def test_sums_do_not_depend_on_blocks_or_company(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: the whole numbers leave nothing to the order of addition."""
    rng = np.random.default_rng(5)
    numbers, _ = to_integers(rng.standard_normal((9, 31)) * 10.0 ** rng.integers(-3, 3, (9, 31)), 31)
    weights = kind(31, 3000, 2)
    (together,) = _sums(weights, numbers)
    alone = [_sums(weights, numbers[row : row + 1])[0][0] for row in range(9)]
    assert np.array_equal(together, np.stack(alone))
    backwards = np.concatenate(list(weights.blocks()))[:, ::-1] @ numbers[:, ::-1].T
    assert np.array_equal(together, backwards.T)
    monkeypatch.setattr(resampling, "_MAX_SUMS", 7000)
    monkeypatch.setattr(resampling, "_MAX_CACHED_WEIGHTS", 0)
    assert np.array_equal(together, _sums(weights, numbers)[0])
    assert all(np.array_equal(together, again) for again in _sums(weights, numbers, numbers))


def test_many_blocks_of_resamples_make_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_BLOCK_WEIGHTS", 100)
    for weights in (SignFlips(11, 1000, 0), SignFlips(6, 64, 0), ResampledTopics(11, 1000, 0)):
        rows = np.concatenate(list(weights.blocks()))
        assert len(rows) == weights.count
        values, _ = to_integers(np.linspace(-1, 2, weights.n)[None], weights.n)
        assert np.array_equal(_sums(weights, values)[0][0], rows @ values[0])


@given(
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda x: abs(x) > 1e-9), min_size=1, max_size=40),
    st.integers(1, 50),
)
def test_whole_numbers_add_up_exactly_and_lose_nothing(values: list[float], times: int) -> None:
    numbers, units = to_integers(np.array([values]), times)
    whole = [int(number) for number in numbers[0]]
    assert [float(number) for number in whole] == numbers[0].tolist()
    assert times * sum(map(abs, whole)) < 1 << 53
    assert np.abs(numbers[0] * units[0] - values).max() <= units[0] / 2 <= times * np.abs(values).sum() * 2.0**-52


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=200), st.data())
def test_least_is_what_sorting_gives(values: list[int], data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, len(values)))
    assert kth_smallest(np.array(values, dtype=float), rank) == sorted(values)[rank - 1]
    assert kth_smallest(np.array(values, dtype=float), 0) == -math.inf


def test_least_of_many_in_any_order() -> None:
    """The bound guessed from the first values is too low where they are the lowest: then all are looked at."""
    rising = np.arange(100_000.0)
    for values in (rising, rising[::-1], np.random.default_rng(0).permutation(rising)):
        for rank in (1, 37, 2500, 50_000, 100_000):
            assert kth_smallest(values, rank) == rank - 1
