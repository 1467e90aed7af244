"""Estimators of another policy's clicks: against enumeration, planted truths and a published log, and refusals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from judged.clicks import off_policy
from judged.errors import InputError
from judged.online import read_log
from judged.stats.off_policy import ESTIMATORS, cascade, independent, pseudo_inverse, self_normalised, whole_list
from shared_data import SHARED, needs_shared
from typed_logs import typed_log

DOCS, RANKS = 3, 2
LOGGED = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])  # each rank is filled independently
OTHER = np.array([[0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
WORTH = np.array([[0.9, 0.5, 0.1], [0.4, 0.8, 0.2]])  # of a document at a rank


def additive(page):
    return np.array([WORTH[rank, doc] for rank, doc in enumerate(page)])


def downwards(page):
    """A result is clicked less below a good one."""
    return np.array([WORTH[0, page[0]], WORTH[1, page[1]] * (1 - WORTH[0, page[0]])])


def upwards(page):
    """And less above one: no estimator but that of whole lists allows for it."""
    return np.array([WORTH[0, page[0]] * (1 - WORTH[1, page[1]]), WORTH[1, page[1]]])


def expectation(weigh, clicks):
    """Give what an estimator tends to, over all pages that may be logged, less what the other policy gets."""
    estimate = truth = 0.0
    for page in product(range(DOCS), repeat=RANKS):
        logged, other = (np.array([policy[rank, doc] for rank, doc in enumerate(page)]) for policy in (LOGGED, OTHER))
        rewards = clicks(page)[None]
        estimate += logged.prod() * weigh((other / logged)[None], rewards)[0]
        truth += other.prod() * rewards.sum()
    return estimate - truth


@pytest.mark.parametrize(
    ("weigh", "holds"),
    [
        (independent, (True, False, False)),
        (cascade, (True, True, False)),
        (pseudo_inverse, (True, False, False)),
        (whole_list, (True, True, True)),
    ],
)
def test_each_is_unbiased_where_its_assumption_holds_and_biased_where_it_does_not(weigh, holds):
    for clicks, right in zip((additive, downwards, upwards), holds, strict=True):
        assert (abs(expectation(weigh, clicks)) < 1e-12) == right, clicks.__name__


def test_the_pseudo_inverse_needs_the_sum_of_a_page_alone():
    """The same sums, told of other ranks: the first is as before, and weights by rank are wrong."""

    def moved(page):
        return additive(page)[::-1]

    assert abs(expectation(pseudo_inverse, moved)) < 1e-12
    assert abs(expectation(independent, moved)) > 0.01


def test_self_normalised_by_hand():
    weights, rewards = np.array([[2.0], [1.0], [0.0], [1.0]]), np.array([[1.0], [0.0], [1.0], [1.0]])
    value, influence = self_normalised(weights, rewards)
    assert value == pytest.approx(3 / 4)
    np.testing.assert_allclose(influence, np.array([2 * 0.25, -0.75, 0.0, 0.25]))


def logged(pages, *, users=400, seed=0, propensity=None, policy=LOGGED):
    """Log pages of two ranks, each result with how likely it was shown; users like clicking more or less."""
    rng = np.random.default_rng(seed)
    liking = rng.beta(8, 2, users)
    serp, shown, events = [], [], []
    drawn = np.stack([rng.choice(DOCS, pages, p=policy[rank]) for rank in range(RANKS)], axis=1).tolist()
    for page in range(pages):
        user = page % users
        about = {"session": page, "user": user, "time_ms": page * 1000}
        serp.append({"serp": page, **about, "query": "q", "query_norm": "q", "n_shown": 2})
        for rank, doc in enumerate((drawn[page][0], drawn[page][1] + DOCS)):  # a page shows no document twice
            known = policy[rank, doc % DOCS] if propensity is None else propensity
            shown.append({"serp": page, "rank": rank + 1, "object_id": f"d{doc}", "propensity": known})
            if rng.random() < WORTH[rank, doc % DOCS] * liking[user]:
                events.append({"serp": page, **about, "action": "click", "object_id": f"d{doc}", "rank": rank + 1})
    return typed_log(serp, events, shown=shown)


def policy_of(other):
    return [
        {"rank": rank + 1, "doc_id": f"d{doc + DOCS * rank}", "probability": float(other[rank, doc])}
        for rank, doc in product(range(RANKS), range(DOCS))
    ]


def test_all_are_near_the_truth_and_their_intervals_cover_it():
    truth = float((OTHER * WORTH).sum() * 0.8)
    covered = dict.fromkeys(("independent", "self-normalised", "doubly robust", "pseudo-inverse", "direct"), 0)
    for seed in range(20):
        rows = {one.estimator: one for one in off_policy(logged(1200, seed=seed), policy_of(OTHER), depth=2).rows}
        for name in covered:
            low, high = rows[name].ci
            covered[name] += low <= truth <= high
    assert min(covered[name] for name in covered if name != "direct") >= 17  # P(fewer | 0.95) < 0.02
    assert (
        rows["self-normalised"].ci[1] - rows["self-normalised"].ci[0]
        < rows["whole list"].ci[1] - rows["whole list"].ci[0]
    )
    assert rows["clipped"].value <= rows["independent"].value + 1e-12


def test_a_run_is_a_policy_that_shows_one_document():
    log = logged(2000)
    found = off_policy(log, {"q": {"d0": 2.0, "d4": 1.0}}, topics={"q": "q"}, depth=2)
    rows = {one.estimator: one for one in found.rows}
    assert rows["independent"].value == pytest.approx((0.9 + 0.8) * 0.8, abs=0.15)
    same = off_policy(log, policy_of(LOGGED), depth=2)
    assert {round(one.difference, 12) for one in same.rows if one.estimator in ESTIMATORS} == {0.0}


def test_nothing_is_said_where_the_log_does_not_show_what_the_run_would():
    log = logged(1500)
    never = off_policy(log, {"q": {"x": 2.0, "d4": 1.0}}, topics={"q": "q"}, depth=2)
    assert never.weights[0].never == 1.0
    assert not any(one.value == one.value for one in never.rows if one.estimator != "direct")
    wrong = off_policy(logged(1500, propensity=0.9), policy_of(OTHER), depth=2)
    assert "not 1" in wrong.rows[0].refused
    assert (
        not off_policy(logged(40, users=40), {"q": {"d2": 2.0, "d5": 1.0}}, topics={"q": "q"}, depth=2).rows[-1].value
        >= 0
    )


def test_what_is_no_log_for_this_is_refused():
    log = logged(50)
    with pytest.raises(InputError, match="no page has a topic"):
        off_policy(log, {"z": {"d0": 1.0}}, topics={"z": "q2"}, depth=2)
    with pytest.raises(InputError, match="clip"):
        off_policy(log, policy_of(OTHER), clip=0.5)
    with pytest.raises(InputError, match="cannot be read"):
        off_policy(log, [{"rank": "first", "doc_id": "d0", "probability": 1}], depth=2)


def test_a_policy_may_be_a_file_or_a_frame_and_a_file_that_is_not_there_is_said(tmp_path):
    log, rows = logged(200), policy_of(OTHER)
    expected = off_policy(log, rows, depth=2).json()
    frame = pa.Table.from_pylist(rows)
    pa.csv.write_csv(frame, tmp_path / "policy.csv")
    found = [off_policy(log, one, depth=2) for one in (frame, tmp_path / "policy.csv")]
    assert [one.json() for one in found] == [expected] * 2
    with pytest.raises(InputError, match="no such file"):
        off_policy(log, tmp_path / "none.csv", depth=2)


@needs_shared
def test_of_a_published_log_that_was_filled_at_random_the_other_ones_clicks_are_found():
    """Open Bandit, men: pages filled at random say what the policy BTS got on pages of its own: 0.0069 clicks."""
    random, bts = (read_log(SHARED / "logs" / "open_bandit" / f"{name}.men.csv.gz") for name in ("random", "bts"))
    shares = bts.engine.rows(f"""
        SELECT rank, doc_id, n / sum(n) OVER (PARTITION BY rank) AS probability FROM (
            SELECT rank, object_id AS doc_id, count(*) AS n FROM {bts.shown} GROUP BY rank, object_id)""")
    found = off_policy(random, shares, depth=3, unit="session")
    rows = {one.estimator: one for one in found.rows}
    assert found.logged == 0.0046
    for name in ("independent", "self-normalised", "doubly robust"):
        low, high = rows[name].ci
        assert low <= 0.0069 <= high
        assert rows[name].value == pytest.approx(0.0057, abs=0.0002)
    assert all(abs(one.mean - 1) < 3 * one.error for one in found.weights)
