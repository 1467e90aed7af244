"""What clicks say of rankings that nobody saw: by hand, and against the truth of simulated users."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import ips as simulation
from scipy.stats import t

import judged
import planted_clicks
from judged.errors import InputError, MeasureError
from judged.online.clicks import ips, propensities
from judged.online.clicks.counterfactual import IpsPart, ips_of
from judged.scoring.evaluation.inputs import measures_of, runs_of
from online.offline.pages_made import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})
PAGES = [
    {"query": "q", "shown": ["a", "b"], "clicks": ["b"], "user": 1},
    {"query": "q", "shown": ["a", "b"], "clicks": ["a", "b"], "user": 2},
    {"query": "other", "shown": ["z"], "clicks": ["z"], "user": 3},
]


def test_by_hand():
    made = ips(log_of(PAGES, has=HAS), {"q": ["b", "x"]}, [1, 0.25], ["DCG@2", "P@1"])
    dcg, p = made.rows
    # two clicks on b at rank 2, which is looked at a quarter of the time, on two pages; b stands first in the run
    assert (dcg.value, p.value) == (4 * 2 / 2, 4 * 2 / 2)
    assert dcg.normalized == pytest.approx(8 / 9)  # the click on a has a weight of 1
    assert (made.pages, made.other, made.clicks, made.effective) == (2, 1, 3, 81 / 33)
    cut = ips(log_of(PAGES, has=HAS), {"q": ["b", "x"]}, [1, 0.25], "P@1", clip=3)
    assert (cut.rows[0].value, cut.clipped) == (3, 2)
    by_text = ips(log_of(PAGES, has=HAS), {"7": ["b"]}, [1, 0.25], "P@1", topics={"7": "Q"})
    assert by_text.rows[0].value == 4


def test_intervals_cover_the_truth_for_good_and_bad_rankings():
    held = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        made = planted_clicks.planted(rng, 40)
        worth = made.attractive
        log = planted_clicks.patterns(made, 4000, 300, rng)
        orders = {"good": np.argsort(-(worth + 0.4 * rng.standard_normal(worth.shape))), "bad": np.argsort(worth)}
        runs = {
            run: {f"q{q:04}": [f"d{d:02}" for d in row] for q, row in enumerate(order.tolist())}
            for run, order in orders.items()
        }
        found = ips_of([IpsPart(log, planted_clicks.EXAMINED)], runs_of(runs), measures_of(["DCG@5", "P@3"]))
        assert [row.ci is not None for row in found.rows] == [True] * 4
        discount = {"DCG@5": 1 / np.log2(np.arange(5) + 2), "P@3": np.full(3, 1 / 3)}
        for row in found.rows:
            weight = discount[row.measure]
            true = float((np.take_along_axis(worth, orders[row.run], 1)[:, : len(weight)] @ weight).mean())
            held.append(row.ci[0] <= true <= row.ci[1])
            share = true / weight[0] / worth.sum(axis=1).mean()
            held.append(row.normalized_ci[0] <= share <= row.normalized_ci[1])
    assert 0.92 <= np.mean(held) <= 0.99


@pytest.mark.parametrize("situation", simulation.SITUATIONS)
def test_intervals_hold_the_truth_where_propensities_are_of_the_same_log(situation):
    rng = np.random.default_rng(17)
    held = [inside for _ in range(12) for _, inside in simulation.simulate(situation, 100, rng)]
    assert 0.92 <= np.mean(held) <= 0.995


def swapped_pages():
    """Two documents that change places on every other page, of twenty users."""
    return [
        {"query": f"q{at % 3}", "shown": ["a", "b"] if at % 2 else ["b", "a"], "user": at % 20, "device": "phone",
         "clicks": (["a"] if at % 3 else ["b"]) if at % 7 < 4 else []}
        for at in range(180)
    ]  # fmt: skip


def test_propensities_of_the_same_log_are_recognized_and_their_error_propagated(tmp_path):
    log, runs = log_of(swapped_pages(), has=HAS), {f"q{at}": ["b", "a"] for at in range(3)}
    own = propensities(log)
    own.save(tmp_path / "own.csv")
    default, named, file = (ips(log, runs, given, "P@1") for given in (None, own, tmp_path / "own.csv"))
    by_device = ips(log, runs, propensities(log, stratum="device"), "P@1", stratum="device")
    known = ips(log, runs, own.of() * [1, 1.00001], "P@1")
    assert default.rows == named.rows == file.rows == by_device.rows
    assert [made.estimated for made in (default, named, file, by_device, known)] == [True] * 4 + [False]
    assert default.rows[0].value == pytest.approx(known.rows[0].value, rel=1e-4)
    assert default.rows[0].ci[1] - default.rows[0].ci[0] > 1.05 * (known.rows[0].ci[1] - known.rows[0].ci[0])


def test_the_jackknife_is_that_of_whole_logs_without_each_group():
    """Of twenty users, each is a group: twenty logs without one of them, through both steps."""
    pages, runs = swapped_pages(), {f"q{at}": ["b", "a"] for at in range(3)}
    row = ips(log_of(pages, has=HAS), runs, None, "P@1").rows[0]
    left = []
    for user in range(20):
        rest = log_of([page for page in pages if page["user"] != user], has=HAS)
        left.append(ips(rest, runs, None, "P@1").rows[0].value)
    error = np.sqrt(19 / 20 * ((left - np.mean(left)) ** 2).sum())
    half = np.log(row.ci[1] / row.value)
    assert half == pytest.approx(t.ppf(0.975, 19) * error / row.value, rel=1e-6)


def test_of_fewer_than_ten_users_propensities_leave_no_interval():
    pages = [{**page, "user": page["user"] % 9} for page in swapped_pages()]
    made = ips(log_of(pages, has=HAS), {"q0": ["a"]}, None, "P@1")
    assert made.estimated
    assert made.rows[0].ci is None


def test_of_clicks_without_position_bias_it_is_the_mean_score_by_clicks():
    made = ips(log_of(PAGES, has=HAS), {"q": ["x", "a", "b"]}, [1, 1], "DCG@3")
    pages = [{"b": 1}, {"a": 1, "b": 1}]
    scores = [judged.evaluate({"q": page}, {"q": ["x", "a", "b"]}, "DCG@3").value("DCG@3") for page in pages]
    assert made.rows[0].value == pytest.approx(np.mean(scores))


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "RR"])
def test_measures_that_need_more_than_the_rank_are_refused(measure):
    with pytest.raises(MeasureError, match="more than a sum"):
        ips(log_of(PAGES, has=HAS), {"q": ["b"]}, [1, 0.5], measure)


def test_what_cannot_be_computed_is_refused():
    log = log_of(PAGES, has=HAS)
    with pytest.raises(InputError, match="propensities of 1 rank"):
        ips(log, {"q": ["b"]}, [1])
    with pytest.raises(InputError, match="no page has a topic"):
        ips(log, {"nothing": ["b"]}, [1, 0.5])
    with pytest.raises(InputError, match="clip is"):
        ips(log, {"q": ["b"]}, [1, 0.5], clip=0.5)
    with pytest.raises(InputError, match="no propensities of all pages"):
        ips(log, {"q": ["b"]}, {"phone": [1, 0.5]})
