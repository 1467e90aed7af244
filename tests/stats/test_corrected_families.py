"""Corrected families of tests: how often any of them errs where nothing differs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judged.stats.correction import adjust
from judged.stats.paired import paired_tests

SYSTEMS, TOPICS, FAMILIES = 5, 30, 400
PAIRS = list(itertools.combinations(range(SYSTEMS), 2))


@pytest.fixture(scope="module")
def families() -> np.ndarray:
    """Give the p-values of all pairs in each of many families of systems that are alike: (FAMILIES, pairs)."""
    rng = np.random.default_rng(20)
    made = rng.normal(size=(FAMILIES, SYSTEMS, TOPICS)) + rng.normal(size=(FAMILIES, 1, TOPICS))
    return np.array([[one.p for one in paired_tests(values, PAIRS, "t")] for values in made])


def test_without_correction_many_families_err(families: np.ndarray) -> None:
    assert (families.min(axis=1) <= 0.05).mean() > 0.2


@pytest.mark.parametrize("method", ["bonferroni", "holm", "hochberg", "bh", "by"])
def test_at_most_one_family_in_twenty_errs(families: np.ndarray, method: str) -> None:
    """Under the complete null each of these keeps the share of families with an error at alpha: 3 standard errors."""
    errs = np.mean([(adjust(p_values, method) <= 0.05).any() for p_values in families])
    assert errs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / FAMILIES)


@pytest.mark.parametrize("method", ["bonferroni", "holm", "hochberg", "bh"])
def test_the_correction_is_not_far_too_strict(families: np.ndarray, method: str) -> None:
    errs = np.mean([(adjust(p_values, method) <= 0.05).any() for p_values in families])
    assert errs >= 0.01
