"""Published logs split at random: p-values of one day are uniform, as nothing differs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, norm

from judged.online import FactSettings, read_log
from judged.online.ab_tests.differences import EQUAL_USERS
from judged.online.differences import comparable_metrics, headline_metrics
from judged.online.estimation.online_metrics import sums_of_units
from judged.online.estimation.sums import metric_pages, unit_sums
from judged.stats.ratio import ratio_errors
from shared_data import SHARED, needs_shared


@needs_shared
@pytest.mark.parametrize(
    ("name", "metrics_tested"),
    [("ubi_esci/ubi_queries_events.ndjson.gz", 0), ("ubi_chorus/log_events.zip", 7), ("open_bandit/bts.men.csv.gz", 4)],
)
def test_p_values_of_equal_arms_are_uniform(name: str, metrics_tested: int) -> None:
    log = read_log(SHARED / "logs" / name)
    supported = comparable_metrics(["PageCTR", "ImpressionCTR", *headline_metrics(log)], log, "user")[0]
    rng, tested = np.random.default_rng(0), 0
    for sums, metrics in unit_sums(metric_pages(log, supported, FactSettings()), supported, "user", sliced=False):
        for n, d in zip(*(sums_of_side.T for sums_of_side in sums_of_units(sums, metrics)), strict=True):
            if (n > 0).sum() < 50 or d.sum() ** 2 / (d * d).sum() < 2 * EQUAL_USERS:
                continue  # no verdict either
            columns = np.stack([np.ones_like(n), n, d, n * n, d * d, n * d])
            first_half = columns @ (rng.random((len(n), 1000)) < 0.5)
            halves = np.stack([first_half, columns.sum(axis=1, keepdims=True) - first_half], axis=2)
            errors, ratios = ratio_errors(*halves), halves[1] / halves[2]
            t = (ratios[:, 1] - ratios[:, 0]) / np.hypot(*errors.T)
            assert kstest(2 * norm.sf(abs(t)), "uniform").pvalue > 1e-3
            tested += 1
    assert tested == metrics_tested
