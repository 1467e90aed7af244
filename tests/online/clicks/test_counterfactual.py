"""IPS scores of runs: by hand, and against simulated users."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import ips as simulation
from scipy.stats import t

import judged
import planted_clicks
from judged.errors import InputError, MeasureError
from judged.online.clicks import ips, propensities
from judged.online.clicks.counterfactual import IpsStratum, compute_ips
from judged.scoring.evaluation.inputs import measures_of, runs_of
from online.offline.page_logs import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})
PAGES = [
    {"query": "q", "shown": ["a", "b"], "clicks": ["b"], "user": 1},
    {"query": "q", "shown": ["a", "b"], "clicks": ["a", "b"], "user": 2},
    {"query": "other", "shown": ["z"], "clicks": ["z"], "user": 3},
]


def test_by_hand():
    scores = ips(log_of(PAGES, has=HAS), {"q": ["b", "x"]}, [1, 0.25], ["DCG@2", "P@1"])
    dcg, p = scores.rows
    # two clicks on b at rank 2 with propensity 1/4, on two pages; b is first in the run
    assert (dcg.value, p.value) == (4 * 2 / 2, 4 * 2 / 2)
    assert dcg.normalized == pytest.approx(8 / 9)  # the click on a has weight 1
    assert (scores.pages, scores.pages_without_topic, scores.clicks, scores.effective_clicks) == (2, 1, 3, 81 / 33)
    clipped = ips(log_of(PAGES, has=HAS), {"q": ["b", "x"]}, [1, 0.25], "P@1", clip=3)
    assert (clipped.rows[0].value, clipped.clipped) == (3, 2)
    scores_by_text = ips(log_of(PAGES, has=HAS), {"7": ["b"]}, [1, 0.25], "P@1", topics={"7": "Q"})
    assert scores_by_text.rows[0].value == 4


def test_coverage_for_good_and_bad_runs():
    is_covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        plan = planted_clicks.rank_documents(rng, 40)
        attractiveness = plan.attractive
        log = planted_clicks.sample_pages(plan, 4000, 300, rng)
        orders = {
            "good": np.argsort(-(attractiveness + 0.4 * rng.standard_normal(attractiveness.shape))),
            "bad": np.argsort(attractiveness),
        }
        runs = {
            run: {f"q{q:04}": [f"d{d:02}" for d in row] for q, row in enumerate(order.tolist())}
            for run, order in orders.items()
        }
        scores = compute_ips([IpsStratum(log, planted_clicks.EXAMINED)], runs_of(runs), measures_of(["DCG@5", "P@3"]))
        assert [row.ci is not None for row in scores.rows] == [True] * 4
        discount = {"DCG@5": 1 / np.log2(np.arange(5) + 2), "P@3": np.full(3, 1 / 3)}
        for row in scores.rows:
            weights = discount[row.measure]
            expected = float(
                (np.take_along_axis(attractiveness, orders[row.run], 1)[:, : len(weights)] @ weights).mean()
            )
            is_covered.append(row.ci[0] <= expected <= row.ci[1])
            expected_share = expected / weights[0] / attractiveness.sum(axis=1).mean()
            is_covered.append(row.normalized_ci[0] <= expected_share <= row.normalized_ci[1])
    assert 0.92 <= np.mean(is_covered) <= 0.99


@pytest.mark.parametrize("situation", simulation.SITUATIONS)
def test_coverage_with_propensities_from_the_same_log(situation):
    rng = np.random.default_rng(17)
    is_covered = [covered for _ in range(12) for _, covered in simulation.simulate(situation, 100, rng)]
    assert 0.92 <= np.mean(is_covered) <= 0.995


def swapped_pages():
    """Return pages of twenty users with two documents in alternating order."""
    return [
        {"query": f"q{i % 3}", "shown": ["a", "b"] if i % 2 else ["b", "a"], "user": i % 20, "device": "phone",
         "clicks": (["a"] if i % 3 else ["b"]) if i % 7 < 4 else []}
        for i in range(180)
    ]  # fmt: skip


def test_intervals_include_the_error_of_propensities_from_the_same_log(tmp_path):
    log, runs = log_of(swapped_pages(), has=HAS), {f"q{i}": ["b", "a"] for i in range(3)}
    estimated = propensities(log)
    estimated.save(tmp_path / "own.csv")
    default, from_object, from_file = (
        ips(log, runs, source, "P@1") for source in (None, estimated, tmp_path / "own.csv")
    )
    by_device = ips(log, runs, propensities(log, stratum="device"), "P@1", stratum="device")
    from_elsewhere = ips(log, runs, estimated.of() * [1, 1.00001], "P@1")
    assert default.rows == from_object.rows == from_file.rows == by_device.rows
    assert [
        result.propensities_estimated for result in (default, from_object, from_file, by_device, from_elsewhere)
    ] == [True] * 4 + [False]
    assert default.rows[0].value == pytest.approx(from_elsewhere.rows[0].value, rel=1e-4)
    assert default.rows[0].ci[1] - default.rows[0].ci[0] > 1.05 * (
        from_elsewhere.rows[0].ci[1] - from_elsewhere.rows[0].ci[0]
    )


def test_jackknife_equals_ips_without_each_user():
    """Each of twenty users is a group: both steps, on twenty logs without one user."""
    pages, runs = swapped_pages(), {f"q{i}": ["b", "a"] for i in range(3)}
    row = ips(log_of(pages, has=HAS), runs, None, "P@1").rows[0]
    leave_one_out = []
    for user in range(20):
        other_users = log_of([page for page in pages if page["user"] != user], has=HAS)
        leave_one_out.append(ips(other_users, runs, None, "P@1").rows[0].value)
    error = np.sqrt(19 / 20 * ((leave_one_out - np.mean(leave_one_out)) ** 2).sum())
    half_width = np.log(row.ci[1] / row.value)
    assert half_width == pytest.approx(t.ppf(0.975, 19) * error / row.value, rel=1e-6)


def test_fewer_than_ten_users_have_no_interval():
    pages = [{**page, "user": page["user"] % 9} for page in swapped_pages()]
    scores = ips(log_of(pages, has=HAS), {"q0": ["a"]}, None, "P@1")
    assert scores.propensities_estimated
    assert scores.rows[0].ci is None


def test_without_position_bias_ips_is_the_mean_score_by_clicks():
    scores = ips(log_of(PAGES, has=HAS), {"q": ["x", "a", "b"]}, [1, 1], "DCG@3")
    pages = [{"b": 1}, {"a": 1, "b": 1}]
    dcg = [judged.evaluate({"q": page}, {"q": ["x", "a", "b"]}, "DCG@3").value("DCG@3") for page in pages]
    assert scores.rows[0].value == pytest.approx(np.mean(dcg))


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "RR"])
def test_measures_that_are_not_additive_are_refused(measure):
    with pytest.raises(MeasureError, match="not a sum"):
        ips(log_of(PAGES, has=HAS), {"q": ["b"]}, [1, 0.5], measure)


def test_invalid_input_is_refused():
    log = log_of(PAGES, has=HAS)
    with pytest.raises(InputError, match="require 2 propensities, got 1"):
        ips(log, {"q": ["b"]}, [1])
    with pytest.raises(InputError, match="no page has a topic"):
        ips(log, {"nothing": ["b"]}, [1, 0.5])
    with pytest.raises(InputError, match="`clip` must be"):
        ips(log, {"q": ["b"]}, [1, 0.5], clip=0.5)
    with pytest.raises(InputError, match="no propensities for pages without a stratum"):
        ips(log, {"q": ["b"]}, {"phone": [1, 0.5]})
