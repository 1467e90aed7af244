"""Correction of p-values over metrics, and interactions of differences with slices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy.stats import chi2

from judged.online.ab_tests.differences import slice_interactions, with_correction
from online.ab_tests.arms import difference


def test_only_metrics_that_were_not_declared_are_corrected_and_all_of_them_together() -> None:
    """Holm of 0.01, 0.02 and 0.04: 3 * 0.01, 2 * 0.02, and no less than that."""
    roles = (("primary", 0.03), ("other", 0.02), ("guardrail", 0.04), ("other", 0.01), ("other", 0.04))
    rows = [difference(1.0, 2.0, role=role) for role, _ in roles]
    rows = [replace(row, p=p, difference=replace(row.difference, p=p)) for row, (_, p) in zip(rows, roles, strict=True)]
    assert [row.p for row in with_correction(rows, "holm")] == pytest.approx([0.03, 0.04, 0.04, 0.03, 0.04])
    assert [row.p for row in with_correction(rows, "bonferroni")] == pytest.approx([0.03, 0.06, 0.04, 0.03, 0.12])
    assert with_correction(rows[:1], "holm")[0].p == 0.03


def test_cochrans_q_has_one_degree_of_freedom_less_than_there_are_slices() -> None:
    """Differences 1, 2 and 4 with errors 1, 0.5 and 1: weights 1, 4, 1, mean 13 / 6."""
    differences = [
        difference(0.0, value, error, slice_name=str(value)) for value, error in ((1.0, 1.0), (2.0, 0.5), (4.0, 1.0))
    ]
    (interaction,) = slice_interactions(differences)
    q = (1 - 13 / 6) ** 2 + 4 * (2 - 13 / 6) ** 2 + (4 - 13 / 6) ** 2
    assert (interaction.q, interaction.slices, interaction.arm) == (pytest.approx(q), 3, "b")
    assert interaction.p == pytest.approx(float(chi2.sf(q, 2)))
    (of_two_slices,) = slice_interactions(
        [*differences[:2], difference(0.0, 9.0, 0.0, slice_name="9.0")]
    )  # one without variance does not count
    assert of_two_slices.p == pytest.approx(float(chi2.sf(1.0 / (1.0 + 0.25), 1)))
    assert slice_interactions(differences[:1]) == []
