"""Intervals that go with corrected p-values: they leave out 0 just where the difference is significant."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from judged.stats.correction import CORRECTIONS, adjust, corrected_family, interval_alphas
from judged.stats.paired import paired_tests

SYSTEMS = np.array([0.0, 0.0, 0.1, 0.12, 0.3])
PAIRS = list(combinations(range(5), 2))


@pytest.mark.parametrize("method", CORRECTIONS)
def test_p_is_held_against_the_alpha_of_its_interval(method: str) -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 40):
        for _ in range(40):
            p = rng.random(size) ** rng.integers(1, 8)
            p[rng.random(size) < 0.1] = np.nan
            result = adjust(p, method) <= 0.05
            assert ((p <= interval_alphas(p, method, 0.05)) == result).all()


@pytest.mark.parametrize("test", ["randomization", "t", "bootstrap", "studentized"])
@pytest.mark.parametrize("method", CORRECTIONS)
def test_an_interval_leaves_out_0_just_where_the_corrected_p_is_significant(method: str, test: str) -> None:
    """Uncorrected intervals leave out 0 where a corrected p says that nothing is shown."""
    rng, seen = np.random.default_rng(8), {True: 0, False: 0}
    for _ in range(6):
        values = rng.beta(2, 3, (1, 45)) + rng.normal(SYSTEMS[:, None], 0.25, (5, 45))

        def again(places: list[int], level: float, values=values):
            return paired_tests(values, [PAIRS[at] for at in places], test, level=level, resamples=1999)

        for one in corrected_family(again(list(range(10)), 0.95), method, 0.05, again):
            low, high = one.interval
            assert one.significant == (low > 0 or high < 0)
            seen[one.significant] += 1
    assert min(seen.values()) > 5


def test_they_hold_all_true_differences_together() -> None:
    """Five systems, of which some differ, Holm: 95 % of families of ten intervals hold, later steps included."""
    rng, trials, held, later = np.random.default_rng(4), 500, 0, 0
    truth = np.array([SYSTEMS[two] - SYSTEMS[one] for one, two in PAIRS])
    for _ in range(trials):
        values = rng.normal(SYSTEMS[:, None], 0.2, (5, 30))

        def again(places: list[int], level: float, values=values):
            return paired_tests(values, [PAIRS[at] for at in places], "t", level=level)

        family = corrected_family(again(list(range(10)), 1 - 0.05 / 10), "holm", 0.05, again)
        low, high = np.array([one.interval for one in family]).T
        held += bool(((low <= truth) & (truth <= high)).all())
        later += len({one.level for one in family}) > 1
    assert held / trials >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / trials)
    assert later > trials / 10
