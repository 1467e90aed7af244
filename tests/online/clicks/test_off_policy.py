"""Clicks of a target policy from logged propensities: exact logs, simulated logs, a published log, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from calibration import off_policy as simulation
from scipy.stats import t as student_t

from judged.errors import InputError
from judged.online import read_log
from judged.online.clicks import off_policy
from judged.online.clicks.importance_weighting import ESTIMATORS
from shared_data import SHARED, needs_shared
from typed_logs import typed_log

DOCS, RANKS = 3, 2
LOGGING = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])  # each rank is filled independently
TARGET = np.array([[0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
ATTRACTION = np.array([[0.9, 0.5, 0.1], [0.4, 0.8, 0.2]])  # of a document at a rank
NAMES = tuple(ESTIMATORS)


def log_of(pages, convention):
    """Log pages of (user, documents, propensities, clicked ranks from 0)."""
    serp, results, events = [], [], []
    for i, (user, documents, propensities, clicked) in enumerate(pages):
        page_fields = {"session": i, "user": user, "time_ms": i * 1000}
        serp.append({"serp": i, **page_fields, "query": "q", "query_norm": "q", "n_shown": len(documents)})
        for rank, (document, propensity) in enumerate(zip(documents, propensities, strict=True)):
            row = {"serp": i, "rank": rank + 1, "object_id": document}
            results.append(row | {"propensity": propensity})
            if rank in clicked:
                events.append({**row, **page_fields, "action": "click"})
    return typed_log(serp, events, shown=results, propensity_convention=convention)


def estimates_by_name(log, run, **options):
    options = {"depth": 3, "topics": {"q": "q"} if isinstance(run, dict) else None} | options
    return {row.estimator: row for row in off_policy(log, run, **options).rows}


def permutation_log(convention):
    """Log all 24 lists of 3 of 4 documents, with each click pattern in proportion to its probability.

    Examination by rank is 1, 1/2, 1/4, and attractiveness by document is 1, 1/2, 1/2, 0: products are multiples of 1/8.
    """
    examination, attract = (1.0, 0.5, 0.25), {"a": 1.0, "b": 0.5, "c": 0.5, "d": 0.0}
    propensities = {"marginal": (1 / 4, 1 / 4, 1 / 4), "conditional": (1 / 4, 1 / 3, 1 / 2)}
    pages = []
    for documents in permutations("abcd", 3):
        for clicked in product((0, 1), repeat=3):
            p = [examination[k] * attract[document] for k, document in enumerate(documents)]
            probability = math.prod(q if click else 1 - q for q, click in zip(p, clicked, strict=True))
            ranks = [k for k in range(3) if clicked[k]]
            for _ in range(round(probability * 64)):
                pages.append((len(pages), documents, propensities.get(convention, (1 / 4,) * 3), ranks))
    assert len(pages) == 24 * 64
    return log_of(pages, convention)


@pytest.fixture(scope="module")
def permuted():
    return {convention: permutation_log(convention) for convention in ("marginal", "conditional", "independent", "")}


def test_permutations_are_estimated_by_the_estimators_of_their_convention(permuted):
    """The run (a, b, c) gets 1 + 1/2 * 1/2 + 1/4 * 1/2 = 1.375 clicks a page; the whole list has 1/24 of all pages."""
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    rows = estimates_by_name(permuted["marginal"], run)
    for name in ("item-position", "self-normalized", "direct", "doubly robust"):
        assert rows[name].value == pytest.approx(1.375, abs=0.01 if name == "doubly robust" else 1e-12), name
    assert {name for name in NAMES if rows[name].refused} == {"pseudo-inverse", "cascade", "whole list"}
    assert all(math.isnan(rows[name].value) for name in ("cascade", "whole list"))
    rows = estimates_by_name(permuted["conditional"], run)
    for name in ("cascade", "whole list", "direct"):
        assert rows[name].value == pytest.approx(1.375, abs=1e-12), name
    refused = {"item-position", "self-normalized", "clipped", "doubly robust", "pseudo-inverse"}
    assert {name for name in NAMES if rows[name].refused} == refused


def test_weights_by_rank(permuted):
    """Marginal: 4 on a quarter of 1,536 pages; conditional: of the top-k lists, 4, 12 and 24."""
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    for convention, largest_weights in (("marginal", (4, 4, 4)), ("conditional", (4, 12, 24))):
        estimates = off_policy(permuted[convention], run, topics={"q": "q"}, depth=3)
        assert (estimates.pages, estimates.users, estimates.convention) == (1536, 1536, convention)
        for row, largest in zip(estimates.weights, largest_weights, strict=True):
            assert (row.pages, row.unsupported) == (1536, 0.0)
            assert (row.mean, row.largest) == pytest.approx((1.0, largest))
            assert row.effective_users == pytest.approx(1536 / largest)
            assert row.error == pytest.approx(math.sqrt((largest - 1) / 1535))
        # mean attractiveness 1/2 times examination: (1 + 1/2 + 1/4) / 2
        assert estimates.logged_clicks == pytest.approx(0.875)
    rows = {row.estimator: row for row in estimates.rows}
    assert rows["whole list"].effective_users == pytest.approx(64)
    assert rows["whole list"].difference == pytest.approx(1.375 - 0.875)
    assert rows["whole list"].ci is None  # of 100 effective users


def test_permutations_declared_as_independent_ranks_are_refused(permuted):
    """The product of marginal weights is 64 on 1/24 of pages: a mean of 2.67, where 1 is expected."""
    rows = estimates_by_name(permuted["independent"], {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    for name in ("pseudo-inverse", "cascade", "whole list"):
        assert "mean importance weight" in rows[name].refused
    assert rows["item-position"].value == pytest.approx(1.375)


def test_without_a_declared_convention_only_direct_has_an_estimate(permuted):
    estimates = off_policy(permuted[""], {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, topics={"q": "q"}, depth=3)
    assert {row.estimator for row in estimates.rows if not row.refused} == {"direct"}
    assert not estimates.overlaps
    assert estimates.weights == ()
    reasons = {row.estimator: row.refused for row in estimates.rows}
    assert "propensity_convention = 'marginal' or 'independent'" in reasons["item-position"]
    assert "propensity_convention = 'independent' " in reasons["pseudo-inverse"]


def test_list_estimators_need_independent_ranks_of_a_policy_table(permuted):
    table = [{"rank": rank, "doc_id": doc, "probability": 0.25} for rank in (1, 2, 3) for doc in "abcd"]
    rows = estimates_by_name(permuted["conditional"], table)
    assert {name for name in NAMES if not rows[name].refused} == {"direct"}
    # lists that repeat a document are never logged: 24 of 64 are, each with weight (1/64) / (1/24)
    rows = estimates_by_name(permuted["conditional"], table, independent_ranks=True)
    assert "mean importance weight" in rows["whole list"].refused


def test_click_rank_identifies_a_document_shown_twice():
    """Both ranks are filled at random from a and b; a click on (a, a) counts at its rank."""
    pages = []
    for documents in product("ab", repeat=2):
        for i in range(200):
            pages.append((len(pages), documents, (0.5, 0.5), [0] if i % 2 else [1] if i % 4 == 0 else []))
    table = [{"rank": rank, "doc_id": "a", "probability": 1.0} for rank in (1, 2)]
    rows = estimates_by_name(log_of(pages, "independent"), table, depth=2, independent_ranks=True)
    for name in set(NAMES) - {"doubly robust"}:  # the first rank is clicked in 1/2, the second in 1/4 of pages
        assert rows[name].value == pytest.approx(0.75, abs=1e-12), name
    assert rows["doubly robust"].value == pytest.approx(0.75, abs=0.01)
    assert rows["item-position"].difference == pytest.approx(0.0, abs=1e-12)


def test_unsupported_probability_widens_the_interval():
    """15% of rank 1 goes to x, which has no support: the truth is 0 to 0.15 above the supported clicks."""
    rng = np.random.default_rng(3)
    pages = []
    for user in range(3000):
        document = "ab"[int(rng.random() < 0.5)]
        pages.append((user, [document], (0.5,), [0] if rng.random() < {"a": 0.4, "b": 0.2}[document] else []))
    log = log_of(pages, "independent")
    probabilities = [("a", 0.5), ("b", 0.35), ("x", 0.15)]
    run = [{"rank": 1, "doc_id": doc, "probability": probability} for doc, probability in probabilities]
    estimates = off_policy(log, run, depth=1, independent_ranks=True)
    assert estimates.weights[0].unsupported == pytest.approx(0.15)
    supported_clicks = 0.5 * 0.4 + 0.35 * 0.2
    for row in estimates.rows:
        assert not row.refused, row
        factor = 1 + estimates.logged_clicks if row.estimator == "pseudo-inverse" else 1.0
        assert row.unsupported_clicks == pytest.approx(0.15 * factor), row
        low, high = row.ci
        assert low < supported_clicks < supported_clicks + 0.15 < high
        assert high - low > row.unsupported_clicks
        if row.estimator != "pseudo-inverse":  # it assumes 0.15 of the logged clicks on unsupported documents
            assert row.value == pytest.approx(supported_clicks, abs=0.03)


def test_lists_without_a_logged_prefix_are_unknown():
    """(a, b) has a conditional propensity of 1/2 * 1/2, and was logged; (a, c, ...) of the run never was."""
    lists = ("a", "b"), ("b", "a")
    pages = [(user, lists[user % 2], (0.5, 1.0), [0, 1]) for user in range(400)]
    rows = estimates_by_name(log_of(pages, "conditional"), {"q": {"a": 2.0, "c": 1.0}}, depth=2)
    assert (rows["whole list"].value, rows["whole list"].unsupported_clicks) == (0.0, 2.0)
    assert (rows["cascade"].value, rows["cascade"].unsupported_clicks) == pytest.approx((1.0, 1.0))
    assert rows["cascade"].ci[1] >= 2.0
    logged_list = estimates_by_name(log_of(pages, "conditional"), {"q": {"a": 2.0, "b": 1.0}}, depth=2)
    assert (logged_list["whole list"].value, logged_list["whole list"].unsupported_clicks) == pytest.approx((2.0, 0.0))


def test_list_estimators_refuse_pages_with_a_missing_rank():
    log = log_of([(user, ["a", "b", "c"], (0.5,) * 3, [0]) for user in range(100)], "independent")
    for missing_rank in (1, 2):
        without_rank = log.shown.where(f"NOT (serp = 3 AND rank = {missing_rank})")
        rows = estimates_by_name(replace(log, shown=without_rank), {"q": {"a": 2.0, "b": 1.0, "c": 0.0}})
        for name in ("cascade", "whole list", "pseudo-inverse"):
            assert rows[name].refused.startswith("on 1 page, a rank without a result is above other results")
    truncated = log.shown.where("NOT (serp = 3 AND rank > 1)")  # a page that ends earlier lacks nothing
    assert "lack" not in estimates_by_name(replace(log, shown=truncated), {"q": {"a": 2.0}})["cascade"].refused


def test_direct_is_the_mean_click_with_an_interval_over_users():
    """One document at one rank, shown on every page: the direct estimate is the mean click, with its t interval."""
    pages = [(user, ["a"], (1.0,), [0] if user < 61 else []) for user in range(200)]
    row = estimates_by_name(log_of(pages, "marginal"), {"q": {"a": 1.0}}, depth=1)["direct"]
    clicks = np.arange(200) < 61
    influence = 0.305 + (clicks - 0.305) * 200 / 199  # k / (k - 1) corrects for the fitted mean of k = 200 users
    effective = np.abs(influence).sum() ** 2 / (influence**2).sum()
    half_width = student_t.ppf(0.975, math.floor(effective - 1)) * influence.std(ddof=1) / math.sqrt(200)
    assert row.value == pytest.approx(0.305, abs=1e-12)
    assert row.ci == pytest.approx((0.305 - half_width, 0.305 + half_width), rel=1e-4)
    assert row.difference == pytest.approx(0.0, abs=1e-12)


def test_item_position_by_hand():
    """400 users see a or b; a is clicked by 120 of 200, b by 60 of 200; the target policy shows a.

    The weights are 2 and 0. Clicks per page are 2 * 120 / 400 = 0.6, logged 180 / 400. Residuals 2 c - 0.6 of users:
    1.4 (120 users) and -0.6 (280). The effective number of users is 200, by clicks 120.
    """
    pages = [(user, ["ab"[user % 2]], (0.5,), [0] if user // 2 < (120, 60)[user % 2] else []) for user in range(400)]
    estimates = off_policy(log_of(pages, "marginal"), {"q": {"a": 1.0}}, topics={"q": "q"}, depth=1)
    assert estimates.logged_clicks == pytest.approx(0.45)
    row = {row.estimator: row for row in estimates.rows}["item-position"]
    error = math.sqrt((120 * 1.4**2 + 280 * 0.6**2) / 399 / 400)
    half_width = student_t.ppf(0.975, 119) * error
    assert (row.value, row.effective_users) == pytest.approx((0.6, 200))
    assert row.ci == pytest.approx((0.6 - half_width, 0.6 + half_width), rel=1e-9)
    # differences: a clicked 2 - 1, b clicked 0 - 1, of mean 0.15
    difference_error = math.sqrt((120 * 0.85**2 + 60 * 1.15**2 + 220 * 0.15**2) / 399 / 400)
    half_width = student_t.ppf(0.975, 119) * difference_error
    assert row.difference == pytest.approx(0.15)
    assert row.difference_ci == pytest.approx((0.15 - half_width, 0.15 + half_width), rel=1e-9)
    tables = {block.name: block for block in estimates.blocks() if hasattr(block, "columns")}
    assert tables["estimates"].column("estimator").values == list(NAMES)
    assert tables["assumptions"].folded
    required = dict(zip(NAMES, tables["assumptions"].column("propensities").values, strict=True))
    assert (required["item-position"], required["direct"]) == ("marginal or independent", "none")
    assert [line.split()[0] for line in tables["weights"].text(200).splitlines()[1:]] == ["1"]
    (weights,) = estimates.weights
    assert (weights.rank, weights.pages, weights.mean, weights.largest, weights.unsupported) == (1, 400, 1.0, 2.0, 0.0)
    assert weights.error == pytest.approx(1 / math.sqrt(399))
    assert estimates.overlaps
    assert (estimates.depth, estimates.clip, estimates.run) == (1, 10.0, estimates.run)
    clipped = off_policy(log_of(pages, "marginal"), {"q": {"a": 1.0}}, topics={"q": "q"}, depth=1, clip=1.5)
    clipped_row = {row.estimator: row for row in clipped.rows}["clipped"]
    assert (clipped_row.value, clipped_row.unsupported_clicks) == pytest.approx((1.5 * 120 / 400, 0.5 * 200 / 400))


@pytest.mark.parametrize(("n_clickers", "has_interval"), [(14, False), (15, True)])
def test_fifteen_effective_users_must_click(n_clickers, has_interval):
    pages = [(user, ["a"], (1.0,), [0] if user < n_clickers else []) for user in range(200)]
    row = estimates_by_name(log_of(pages, "marginal"), {"q": {"a": 1.0}}, depth=1)["item-position"]
    assert (row.ci is not None) == has_interval


@pytest.mark.parametrize(("n_users", "has_interval"), [(49, False), (50, True)])
def test_fifty_effective_users_are_needed(n_users, has_interval):
    pages = [(user, ["a"], (1.0,), [0] if user % 2 else []) for user in range(n_users)]
    row = estimates_by_name(log_of(pages, "marginal"), {"q": {"a": 1.0}}, depth=1)["item-position"]
    assert (row.ci is not None) == has_interval
    pages += [(user + n_users, *fields) for user, *fields in pages]
    list_row = estimates_by_name(log_of(pages, "conditional"), {"q": {"a": 1.0}}, depth=1)["whole list"]
    assert (list_row.ci is not None) == has_interval  # twice as many are needed


def simulate_log(n_pages, *, n_users=400, seed=0, propensity=None, policy=LOGGING, convention="independent"):
    """Simulate pages of two ranks with propensities. Users differ in their click rates."""
    rng = np.random.default_rng(seed)
    click_rate = rng.beta(8, 2, n_users)
    serp, results, events = [], [], []
    documents = np.stack([rng.choice(DOCS, n_pages, p=policy[rank]) for rank in range(RANKS)], axis=1).tolist()
    for page in range(n_pages):
        user = page % n_users
        fields = {"session": page, "user": user, "time_ms": page * 1000}
        serp.append({"serp": page, **fields, "query": "q", "query_norm": "q", "n_shown": 2})
        for rank, doc in enumerate((documents[page][0], documents[page][1] + DOCS)):  # a page shows no document twice
            logged_propensity = policy[rank, doc % DOCS] if propensity is None else propensity
            results.append({"serp": page, "rank": rank + 1, "object_id": f"d{doc}", "propensity": logged_propensity})
            if rng.random() < ATTRACTION[rank, doc % DOCS] * click_rate[user]:
                events.append({"serp": page, **fields, "action": "click", "object_id": f"d{doc}", "rank": rank + 1})
    return typed_log(serp, events, shown=results, propensity_convention=convention)


def policy_table(policy):
    return [
        {"rank": rank + 1, "doc_id": f"d{doc + DOCS * rank}", "probability": float(policy[rank, doc])}
        for rank, doc in product(range(RANKS), range(DOCS))
    ]


@pytest.mark.parametrize(
    ("situation", "users", "names"),
    [("equal users", 200, NAMES), ("heavy-tailed users", 600, NAMES[:6]), ("large weights", 600, NAMES[:5])],
)
def test_intervals_cover_the_truth(situation, users, names):
    """Of 80 intervals of 95%, fewer than 70 cover it with probability below 0.003."""
    rng, n_covered, n_intervals = np.random.default_rng(4), dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for _ in range(80):
        rows, truth = simulation.simulate(situation, users, rng)
        for row in rows:
            if row.estimator in n_covered and row.ci is not None:
                assert row.ci[0] < row.value < row.ci[1]
                n_intervals[row.estimator] += 1
                n_covered[row.estimator] += row.ci[0] <= truth <= row.ci[1]
    assert min(n_intervals.values()) >= 70
    assert all(n_covered[name] >= n_intervals[name] - 10 for name in names), n_covered


def test_a_few_large_weights_have_no_interval_over_lists():
    """The product of weights is 100 on 3 of 1,800 pages: intervals that miss them would have 80% coverage."""
    rng, n_intervals = np.random.default_rng(4), {"cascade": 0, "whole list": 0}
    for _ in range(40):
        for row in simulation.simulate("large weights", 600, rng)[0]:
            if row.estimator in n_intervals:
                n_intervals[row.estimator] += row.ci is not None
    assert max(n_intervals.values()) <= 10


def test_a_run_is_a_deterministic_policy():
    log = simulate_log(2000)
    rows = estimates_by_name(log, {"q": {"d0": 2.0, "d4": 1.0}}, depth=2)
    assert rows["item-position"].value == pytest.approx((0.9 + 0.8) * 0.8, abs=0.15)
    unchanged = estimates_by_name(log, policy_table(LOGGING), depth=2, independent_ranks=True)
    exact = set(NAMES) - {"direct", "doubly robust"}
    assert {round(unchanged[name].difference, 12) for name in exact} == {0.0}
    assert all(unchanged[name].difference_ci is None for name in exact - {"self-normalized"})  # nothing varies


def test_wrong_propensities_are_refused():
    rows = estimates_by_name(simulate_log(1500, propensity=0.9), policy_table(TARGET), depth=2, independent_ranks=True)
    assert {name for name in NAMES if not rows[name].refused} == {"direct"}
    assert "mean importance weight of rank 1" in rows["item-position"].refused
    assert "mean importance weight of the top-1 list" in rows["whole list"].refused


def test_a_run_without_support_is_unknown():
    rows = estimates_by_name(simulate_log(1500), {"q": {"x": 2.0, "d4": 1.0}}, depth=2)
    assert rows["item-position"].unsupported_clicks == 1.0
    assert (rows["whole list"].value, rows["whole list"].unsupported_clicks) == (0.0, 2.0)
    assert rows["whole list"].ci is None


def test_few_users_have_no_interval():
    """40 users with one page each: fewer than the 50 effective users that are required."""
    estimates = off_policy(simulate_log(40, n_users=40), policy_table(LOGGING), depth=2, independent_ranks=True)
    for row in estimates.rows:
        assert row.ci is None
        assert row.value == row.value
        minimum = 100 if row.estimator in {"cascade", "whole list"} else 50
        assert f"at least {minimum} " in row.insufficient
    assert not estimates.overlaps


def test_few_clicks_have_no_interval():
    """200 users, of whom 10 click once: 10 effective users by their weighted clicks, of the 15 that are required."""
    pages = [(user, ["ab"[user % 2]], (0.5,), [0] if user < 10 else []) for user in range(200)]
    table = [{"rank": 1, "doc_id": doc, "probability": 0.5} for doc in "ab"]
    row = estimates_by_name(log_of(pages, "marginal"), table, depth=1)["item-position"]
    assert (row.value, row.ci) == (pytest.approx(0.05), None)
    assert "the effective number of users is 10, at least 15" in row.insufficient


def test_excluded_pages_are_reported():
    pages = [(user, ["a"], (0.5,), [0] if user % 2 else []) for user in range(60)]
    log = log_of([*pages, (60, ["b"], (None,), [])], "marginal")
    estimates = off_policy(log, {"q": {"a": 1.0}}, topics={"q": "q"}, depth=1)
    assert (estimates.pages, estimates.pages_without_propensity, estimates.pages_without_topic) == (60, 1, 0)


def test_invalid_input():
    log = simulate_log(50)
    for propensities, message in (
        ((0.5, None), "must have a propensity"),
        ((0.5, 1.5), "got 1.5"),
        ((0.0, 1.0), "got 0"),
    ):
        with pytest.raises(InputError, match=message):
            off_policy(log_of([(1, ["a", "b"], propensities, [])], "marginal"), policy_table(TARGET), depth=2)
    with pytest.raises(InputError, match="no propensities"):
        off_policy(log_of([(1, ["a"], (None,), [])], "marginal"), policy_table(TARGET), depth=2)
    with pytest.raises(InputError, match="no page has a topic"):
        off_policy(log, {"z": {"d0": 1.0}}, topics={"z": "q2"}, depth=2)
    with pytest.raises(InputError, match="clip"):
        off_policy(log, policy_table(TARGET), clip=0.5)
    with pytest.raises(InputError, match="must be numbers"):
        off_policy(log, [{"rank": "first", "doc_id": "d0", "probability": 1}], depth=2)
    with pytest.raises(InputError, match=r"rank 2 must add up to 1, got 0\.3"):
        off_policy(
            log, [row | {"probability": 0.3 if row["rank"] == 2 else 1.0} for row in policy_table(TARGET)[::3]], depth=2
        )
    with pytest.raises(InputError, match="between 0 and 1"):
        off_policy(log, [{"rank": 1, "doc_id": "d0", "probability": -1}], depth=2)


def test_a_policy_can_be_a_file_or_a_data_frame(tmp_path):
    log, rows = simulate_log(200), policy_table(TARGET)
    expected = off_policy(log, rows, depth=2).json()
    frame = pa.Table.from_pylist(rows)
    pa.csv.write_csv(frame, tmp_path / "policy.csv")
    results = [off_policy(log, run, depth=2) for run in (frame, tmp_path / "policy.csv")]
    assert [result.json() for result in results] == [expected] * 2
    with pytest.raises(InputError, match="no such file"):
        off_policy(log, tmp_path / "none.csv", depth=2)


@needs_shared
def test_open_bandit_random_log_predicts_the_clicks_of_bts():
    """Open Bandit, men: a uniform random log estimates the clicks of BTS, which are 0.0069 per page in its own log."""
    random, bts = (read_log(SHARED / "logs" / "open_bandit" / f"{name}.men.csv.gz") for name in ("random", "bts"))
    bts_policy = bts.engine.rows(f"""
        SELECT rank, doc_id, n / sum(n) OVER (PARTITION BY rank) AS probability FROM (
            SELECT rank, object_id AS doc_id, count(*) AS n FROM {bts.shown} GROUP BY rank, object_id)""")
    estimates = off_policy(random, bts_policy, depth=3, unit="session")
    rows = {row.estimator: row for row in estimates.rows}
    assert estimates.convention == "marginal"
    assert estimates.logged_clicks == 0.0046
    for name in ("item-position", "self-normalized", "direct", "doubly robust"):
        assert rows[name].value == pytest.approx(0.0057, abs=0.0002)
    assert all(abs(row.mean - 1) < 3 * row.error for row in estimates.weights)


def test_doubly_robust_uses_cross_fitting():
    """One rank: click rates by document from the other half of the users (even, odd), with ten pseudo-observations."""
    rng = np.random.default_rng(12)
    shown_docs = ["ab"[int(x)] for x in rng.random(300) < 0.4]
    clicked = (rng.random(300) < np.where(np.array(shown_docs) == "a", 0.5, 0.2)).astype(float)
    pages = [(user, [doc], ({"a": 0.6, "b": 0.4}[doc],), [0] if click else [])
             for user, (doc, click) in enumerate(zip(shown_docs, clicked.tolist(), strict=True))]  # fmt: skip
    table = [{"rank": 1, "doc_id": "a", "probability": 0.3}, {"rank": 1, "doc_id": "b", "probability": 0.7}]
    rows = estimates_by_name(log_of(pages, "marginal"), table, depth=1)
    values = []
    for user in range(300):
        is_other_half = np.arange(300) % 2 != user % 2
        mean = clicked[is_other_half].mean()
        rates = {doc: (clicked[is_other_half & (np.array(shown_docs) == doc)].sum() + 10 * mean)
                 / ((is_other_half & (np.array(shown_docs) == doc)).sum() + 10) for doc in "ab"}  # fmt: skip
        weights = {"a": 0.3 / 0.6, "b": 0.7 / 0.4}[shown_docs[user]]
        values.append(0.3 * rates["a"] + 0.7 * rates["b"] + weights * (clicked[user] - rates[shown_docs[user]]))
    assert rows["doubly robust"].value == pytest.approx(np.mean(values), rel=1e-12)
    by_doc = [clicked[np.array(shown_docs) == doc].mean() for doc in "ab"]
    assert rows["direct"].value == pytest.approx(0.3 * by_doc[0] + 0.7 * by_doc[1], rel=1e-12)


def test_a_missing_rank_has_weight_1():
    """Half of 400 pages end at rank 1. The run shows the logged documents, so that all weights are equal."""
    pages = [
        (user, ["a", "b"][: 1 + user % 2], (1.0,) * (1 + user % 2), [0] if user < 90 else []) for user in range(400)
    ]
    rows = estimates_by_name(log_of(pages, "marginal"), {"q": {"a": 2.0, "b": 1.0}}, depth=2)
    assert rows["direct"].effective_users == pytest.approx(400)
    assert rows["direct"].value == pytest.approx(90 / 400)
