"""Paired tests of input at the edge, and the words that results are put into."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from judged import InputError
from judged.results.decimals import p_text
from judged.stats.paired import TESTS, paired_test, paired_tests

ALTERNATIVES = ("two-sided", "greater", "less")
RESAMPLED = ("randomization", "bootstrap", "bca", "studentized", "ratio")
LIMITS = {"bounded": {"max_difference": 1.0}}  # what a method needs beside the scores
BY_MEAN = ("t", "bootstrap", "bca", "studentized", "bayes")
TENTHS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=9)


def _pair(topics: int, seed: int = 0, shift: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    first = rng.beta(0.8, 1.6, topics)
    return first, np.clip(first + rng.normal(shift, 0.1, topics), 0, 1)


# --- Input at the edge


@pytest.mark.parametrize("method", TESTS)
def test_no_topic_and_one_topic_give_no_p(method: str) -> None:
    none = paired_test([math.nan, 0.5], [0.5, math.nan], method)
    assert (none.n, none.left_out, none.interval) == (0, 2, None)
    assert math.isnan(none.p + none.difference)
    one = paired_test([0.25, 0.5], [0.5, math.nan], method)
    assert (one.n, one.left_out, one.interval) == (1, 1, None)
    assert math.isnan(one.p)
    assert math.isnan(one.effect)
    assert one.difference == pytest.approx(0.25 if method != "ratio" else math.log(2))
    assert not one.significant


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("method", TESTS)
def test_systems_that_are_the_same_but_for_rounding(method: str, alternative: str) -> None:
    result = paired_test(
        [0.3, 0.7, 0.6], [0.1 + 0.2, 0.7, 0.2 * 3], method, alternative=alternative, **LIMITS.get(method, {})
    )
    assert result.p == pytest.approx(1.0 if method != "bayes" else math.nan, nan_ok=True)
    assert (result.difference, result.n) == (0.0, 3)
    assert math.isnan(result.effect)
    if method in {"wilcoxon", "sign"}:
        assert result.interval is None
    else:
        low, high = result.interval
        assert low <= 0.0 <= high
        assert 0.0 in {low, high} or method == "bounded"
    if method == "bayes":
        assert (result.posterior.equivalent, result.posterior.higher) == (1.0, 0.5)


@pytest.mark.parametrize("method", [method for method in TESTS if method != "bounded"])
def test_the_same_difference_on_all_topics(method: str) -> None:
    """0.1 on each of 8 topics: 2/256 where signs count, as they do in place of a test by how differences vary."""
    first = np.arange(8) / 10
    result = (
        paired_test(first, first + 0.1, method) if method != "ratio" else paired_test(first + 1, 2 * first + 2, method)
    )
    if method == "bayes":
        assert math.isnan(result.p)
        assert result.interval is None
        assert "requires variation" in result.note
    else:
        assert result.p == pytest.approx(2 / 256)
        assert (result.test, bool(result.note)) == (("randomization", True) if method in BY_MEAN else (method, False))
    assert math.isnan(result.effect)


@pytest.mark.parametrize("method", TESTS)
@pytest.mark.parametrize("scale", [1e-140, 1e90])
def test_scores_of_unusual_size(method: str, scale: float) -> None:
    first, second = _pair(20)
    how = {"resamples": 500, "rope": 0.0}
    plain = paired_test(first, second, method, floor=1e-5, max_difference=1.0, **how)
    scaled = paired_test(first * scale, second * scale, method, floor=1e-5 * scale, max_difference=scale, **how)
    assert scaled.p == pytest.approx(plain.p, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("method", RESAMPLED)
def test_resampling_never_gives_p_0(method: str) -> None:
    first = np.linspace(0.01, 0.02, 200)
    result = paired_test(first, first * 50 + 0.3, method, resamples=999)
    assert 1 / 1000 <= result.p <= 2 / 1000


def test_a_p_too_small_for_a_float_is_bounded() -> None:
    rng = np.random.default_rng(0)
    result = paired_test(np.zeros(5000), 1 + rng.normal(0, 0.01, 5000), "t")
    assert result.p < 1e-300
    assert p_text(result.p, 0.05) == "< 1e-300"


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.0125, 0.001])
@pytest.mark.parametrize("off", [-0.01, -1e-4, -1e-7, 0.0, 1e-7, 1e-4, 0.01])
def test_a_printed_p_never_stands_on_the_other_side_of_alpha(alpha: float, off: float) -> None:
    p = alpha * (1 + off)
    result = replace(paired_test([0.1, 0.2, 0.4] * 2, [0.3, 0.5, 0.6] * 2, "t", level=1 - alpha), p=p)
    printed = float(p_text(result.p, alpha).removeprefix("= "))
    assert (printed <= alpha, printed == alpha) == (result.significant, off == 0)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0.1], [0.1, 0.2]), {}, "shapes"),
        (([[0.1]], [[0.1]]), {}, "shapes"),
        (([math.inf, 0], [0, 0]), {}, "finite"),
        (([0, 0], [1, 1]), {"test": "anova"}, "unknown paired test: 'anova'"),
        (([0, 0], [1, 1]), {"alternative": "both"}, "unknown `alternative`"),
        (([0, 0], [1, 1]), {"level": 95}, "`level`.*95"),
        (([0, 0], [1, 1]), {"level": 0.5, "alternative": "less"}, r"between 0\.5 and 1"),
        (([0, 0], [1, 1]), {"resamples": 99}, "100 resamples are required, got 99"),
        (([0, 0], [1, 1]), {"seed": -1}, "seed"),
        (([0, 0], [1, 1]), {"rope": -0.1}, "`rope`"),
        (([0, 0], [1, 1]), {"floor": 0}, "floor"),
        (([0, -0.1], [1, 1]), {"test": "ratio"}, "0 or more"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments: tuple, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        paired_test(*arguments, **options)


def test_pairs_name_rows_that_are_there() -> None:
    for pair in ((0, 2), (-1, 0)):
        with pytest.raises(InputError, match="row indices from 0 to 1"):
            paired_tests(np.zeros((2, 3)), [pair])
    assert paired_tests(np.zeros((2, 3)), []) == ()


def test_other_spellings() -> None:
    first, second = _pair(8)
    assert (
        paired_test(first, second, "randomization")
        == paired_test(first, second, "fisher")
        == paired_test(first, second)
    )
    assert paired_test(*_pair(100), "studentized").test == "studentized"


def test_a_correction_decides() -> None:
    first = np.linspace(0.1, 0.6, 10)
    result = paired_test(first, first + np.linspace(0.0, 0.15, 10))
    corrected = result.corrected(0.2, "holm")
    assert result.significant
    assert not corrected.significant
    assert (corrected.p, corrected.adjusted, corrected.decisive_p) == (result.p, 0.2, 0.2)
