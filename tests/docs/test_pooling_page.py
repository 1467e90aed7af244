"""docs/pooling-methods.md says what MaxMean finds and how right estimates are on TREC's collections."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pooling
import pytest

from shared_data import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "pooling-methods.md"


@needs_shared
@pytest.mark.parametrize("name", ["Robust03", "DL19"])
def test_maxmean_finds_more_relevant_documents_with_the_same_labels_than_depth(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for row in pooling.pool_rows(pooling.collection(name, SHARED), (1, 5, 20)):
        assert float(row[-1]) > 1.1
        assert f"| {' | '.join(row)} |" in page, "run tools/pooling.py"


@needs_shared
def test_sums_are_unbiased_on_robust03_and_their_intervals_cover() -> None:
    whole, times = pooling.judge_pool(pooling.collection("Robust03", SHARED)), 400
    found = pooling.simulate(whole, 50, ("P@10", "RBP(p=0.8)", "NumRel"), times, seed=1)
    for name, one in found.items():
        apart = one.values - one.truth[:, None]
        assert (np.abs(apart.mean(axis=1)) < 3 * apart.std(axis=1) / np.sqrt(times)).all(), name
        assert 0.93 <= one.covered.mean() <= 0.97, name
        # the standard errors that are reported are those that estimates have
        assert np.sqrt((one.errors**2).mean(axis=1)) == pytest.approx(apart.std(axis=1), rel=0.15), name


@needs_shared
def test_ratios_are_measured_to_be_biased_less_than_infap() -> None:
    whole = pooling.judge_pool(pooling.collection("Robust03", SHARED), 20)
    found = pooling.simulate(whole, 50, ("AP", "InfAP"), 60, (), (1.0,))
    bias = {name: np.abs(one.values.mean(axis=1) - one.truth).mean() for name, one in found.items()}
    assert bias["AP"] < bias["InfAP"]


def test_the_page_has_all_its_tables() -> None:
    measured = PAGE.read_text(encoding="utf-8").partition("<!-- below: written by tools/pooling.py -->")[2]
    assert measured.count("\n| :--") == 4
