"""Another ranker's clicks from logged propensities: exact logs, planted truths, a published log, and refusals."""

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
LOGGED = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])  # each rank is filled independently
OTHER = np.array([[0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
WORTH = np.array([[0.9, 0.5, 0.1], [0.4, 0.8, 0.2]])  # of a document at a rank
NAMES = tuple(ESTIMATORS)


def log_of(pages, convention):
    """Log pages of (user, documents, propensities, clicked ranks from 0)."""
    serp, shown, events = [], [], []
    for at, (user, documents, propensities, clicked) in enumerate(pages):
        about = {"session": at, "user": user, "time_ms": at * 1000}
        serp.append({"serp": at, **about, "query": "q", "query_norm": "q", "n_shown": len(documents)})
        for rank, (document, propensity) in enumerate(zip(documents, propensities, strict=True)):
            row = {"serp": at, "rank": rank + 1, "object_id": document}
            shown.append(row | {"propensity": propensity})
            if rank in clicked:
                events.append({**row, **about, "action": "click"})
    return typed_log(serp, events, shown=shown, propensity_convention=convention)


def rows_of(log, run, **options):
    options = {"depth": 3, "topics": {"q": "q"} if isinstance(run, dict) else None} | options
    return {row.estimator: row for row in off_policy(log, run, **options).rows}


def every_permutation(convention):
    """Log all 24 lists of 3 of 4 documents, with every outcome of clicks as often as it comes.

    Rank k is looked at with 1, 1/2, 1/4, and document d attracts with 1, 1/2, 1/2, 0: multiples of 1/8.
    """
    look, attract = (1.0, 0.5, 0.25), {"a": 1.0, "b": 0.5, "c": 0.5, "d": 0.0}
    chances = {"marginal": (1 / 4, 1 / 4, 1 / 4), "conditional": (1 / 4, 1 / 3, 1 / 2)}
    pages = []
    for documents in permutations("abcd", 3):
        for clicked in product((0, 1), repeat=3):
            p = [look[k] * attract[document] for k, document in enumerate(documents)]
            chance = math.prod(q if click else 1 - q for q, click in zip(p, clicked, strict=True))
            ranks = [k for k in range(3) if clicked[k]]
            for _ in range(round(chance * 64)):
                pages.append((len(pages), documents, chances.get(convention, (1 / 4,) * 3), ranks))
    assert len(pages) == 24 * 64
    return log_of(pages, convention)


@pytest.fixture(scope="module")
def permuted():
    return {name: every_permutation(name) for name in ("marginal", "conditional", "independent", "")}


def test_of_lists_without_repetition_each_convention_has_its_estimators(permuted):
    """The run (a, b, c) gets 1 + 1/2 * 1/2 + 1/4 * 1/2 = 1.375 clicks a page; the whole list has 1/24 of all pages."""
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    rows = rows_of(permuted["marginal"], run)
    for name in ("item-position", "self-normalized", "direct", "doubly robust"):
        assert rows[name].value == pytest.approx(1.375, abs=0.01 if name == "doubly robust" else 1e-12), name
    assert {name for name in NAMES if rows[name].refused} == {"pseudo-inverse", "cascade", "whole list"}
    assert all(math.isnan(rows[name].value) for name in ("cascade", "whole list"))
    rows = rows_of(permuted["conditional"], run)
    for name in ("cascade", "whole list", "direct"):
        assert rows[name].value == pytest.approx(1.375, abs=1e-12), name
    refused = {"item-position", "self-normalized", "clipped", "doubly robust", "pseudo-inverse"}
    assert {name for name in NAMES if rows[name].refused} == refused


def test_weights_by_rank(permuted):
    """Marginal: 4 on a quarter of 1,536 pages; conditional: of the list down to the rank, 4, 12 and 24."""
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    for name, most in (("marginal", (4, 4, 4)), ("conditional", (4, 12, 24))):
        found = off_policy(permuted[name], run, topics={"q": "q"}, depth=3)
        assert (found.pages, found.users, found.convention) == (1536, 1536, name)
        for row, largest in zip(found.weights, most, strict=True):
            assert (row.pages, row.never) == (1536, 0.0)
            assert (row.mean, row.most) == pytest.approx((1.0, largest))
            assert row.effective == pytest.approx(1536 / largest)
            assert row.error == pytest.approx(math.sqrt((largest - 1) / 1535))
        # every document is clicked at rank k with half of how often the rank is looked at: (1 + 1/2 + 1/4) / 2
        assert found.logged == pytest.approx(0.875)
    rows = {row.estimator: row for row in found.rows}
    assert rows["whole list"].effective == pytest.approx(64)
    assert rows["whole list"].difference == pytest.approx(1.375 - 0.875)
    assert rows["whole list"].ci is None  # of 100 effective users


def test_independent_ranks_that_never_repeat_a_document_are_contradicted_by_their_weights(permuted):
    """The product of marginal weights is 64 on 1/24 of pages: a mean of 2.67, where 1 is expected."""
    rows = rows_of(permuted["independent"], {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    for name in ("pseudo-inverse", "cascade", "whole list"):
        assert "mean weight" in rows[name].refused
    assert rows["item-position"].value == pytest.approx(1.375)


def test_without_a_declared_convention_only_the_direct_estimate_is_given(permuted):
    found = off_policy(permuted[""], {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, topics={"q": "q"}, depth=3)
    assert {row.estimator for row in found.rows if not row.refused} == {"direct"}
    assert not found.overlaps
    assert found.weights == ()
    reasons = {row.estimator: row.refused for row in found.rows}
    assert "propensity_convention = 'marginal' or 'independent'" in reasons["item-position"]
    assert "propensity_convention = 'independent' " in reasons["pseudo-inverse"]


def test_a_table_of_probabilities_says_nothing_of_lists_unless_it_is_declared(permuted):
    table = [{"rank": rank, "doc_id": doc, "probability": 0.25} for rank in (1, 2, 3) for doc in "abcd"]
    rows = rows_of(permuted["conditional"], table)
    assert {name for name in NAMES if not rows[name].refused} == {"direct"}
    # lists that repeat a document are never logged: 24 of 64 are, each with weight (1/64) / (1/24)
    rows = rows_of(permuted["conditional"], table, independent_ranks=True)
    assert "mean weight" in rows["whole list"].refused


def test_a_document_that_is_shown_twice_is_clicked_where_it_was_clicked():
    """Both ranks are filled by a coin; a click on (a, a) is told apart by its rank."""
    pages = []
    for documents in product("ab", repeat=2):
        for at in range(200):
            pages.append((len(pages), documents, (0.5, 0.5), [0] if at % 2 else [1] if at % 4 == 0 else []))
    table = [{"rank": rank, "doc_id": "a", "probability": 1.0} for rank in (1, 2)]
    rows = rows_of(log_of(pages, "independent"), table, depth=2, independent_ranks=True)
    for name in set(NAMES) - {"doubly robust"}:  # the first rank is clicked in 1/2, the second in 1/4 of pages
        assert rows[name].value == pytest.approx(0.75, abs=1e-12), name
    assert rows["doubly robust"].value == pytest.approx(0.75, abs=0.01)
    assert rows["item-position"].difference == pytest.approx(0.0, abs=1e-12)


def test_what_is_known_to_be_never_shown_widens_the_interval():
    """15 % of rank 1 goes to x, which the log never shows: the truth is the value and 0 to 0.15 clicks more."""
    rng = np.random.default_rng(3)
    pages = []
    for user in range(3000):
        document = "ab"[int(rng.random() < 0.5)]
        pages.append((user, [document], (0.5,), [0] if rng.random() < {"a": 0.4, "b": 0.2}[document] else []))
    log = log_of(pages, "independent")
    table = [("a", 0.5), ("b", 0.35), ("x", 0.15)]
    run = [{"rank": 1, "doc_id": doc, "probability": chance} for doc, chance in table]
    found = off_policy(log, run, depth=1, independent_ranks=True)
    assert found.weights[0].never == pytest.approx(0.15)
    known = 0.5 * 0.4 + 0.35 * 0.2
    for row in found.rows:
        assert not row.refused, row
        factor = 1 + found.logged if row.estimator == "pseudo-inverse" else 1.0
        assert row.unknown == pytest.approx(0.15 * factor), row
        low, high = row.ci
        assert low < known < known + 0.15 < high
        assert high - low > row.unknown
        if row.estimator != "pseudo-inverse":  # it takes 0.15 of logged clicks for what is never shown
            assert row.value == pytest.approx(known, abs=0.03)


def test_the_beginning_of_a_list_that_was_never_logged_is_unknown():
    """(a, b) has a conditional propensity of 1/2 * 1/2, and was logged; (a, c, ...) of the run never was."""
    lists = ("a", "b"), ("b", "a")
    pages = [(user, lists[user % 2], (0.5, 1.0), [0, 1]) for user in range(400)]
    rows = rows_of(log_of(pages, "conditional"), {"q": {"a": 2.0, "c": 1.0}}, depth=2)
    assert (rows["whole list"].value, rows["whole list"].unknown) == (0.0, 2.0)
    assert (rows["cascade"].value, rows["cascade"].unknown) == pytest.approx((1.0, 1.0))
    assert rows["cascade"].ci[1] >= 2.0
    shown = rows_of(log_of(pages, "conditional"), {"q": {"a": 2.0, "b": 1.0}}, depth=2)
    assert (shown["whole list"].value, shown["whole list"].unknown) == pytest.approx((2.0, 0.0))


def test_a_missing_rank_leaves_the_probability_of_a_list_unknown():
    log = log_of([(user, ["a", "b", "c"], (0.5,) * 3, [0]) for user in range(100)], "independent")
    for lacking in (1, 2):
        shown = log.shown.where(f"NOT (serp = 3 AND rank = {lacking})")
        rows = rows_of(replace(log, shown=shown), {"q": {"a": 2.0, "b": 1.0, "c": 0.0}})
        for name in ("cascade", "whole list", "pseudo-inverse"):
            assert rows[name].refused.startswith("1 page lack")
    short = log.shown.where("NOT (serp = 3 AND rank > 1)")  # a page that ends earlier lacks nothing
    assert "lack" not in rows_of(replace(log, shown=short), {"q": {"a": 2.0}})["cascade"].refused


def test_direct_is_the_sum_of_mean_clicks_and_its_error_that_of_users():
    """One document at one rank, shown on every page: the direct estimate is the mean click, with its t interval."""
    pages = [(user, ["a"], (1.0,), [0] if user < 61 else []) for user in range(200)]
    row = rows_of(log_of(pages, "marginal"), {"q": {"a": 1.0}}, depth=1)["direct"]
    clicks = np.arange(200) < 61
    own = 0.305 + (clicks - 0.305) * 200 / 199  # less the error of the mean, which each user is a part of
    effective = np.abs(own).sum() ** 2 / (own**2).sum()
    half = student_t.ppf(0.975, math.floor(effective - 1)) * own.std(ddof=1) / math.sqrt(200)
    assert row.value == pytest.approx(0.305, abs=1e-12)
    assert row.ci == pytest.approx((0.305 - half, 0.305 + half), rel=1e-4)
    assert row.difference == pytest.approx(0.0, abs=1e-12)


def test_estimates_that_differ_from_what_was_logged():
    """A coin shows a or b to 400 users; a is clicked by 120 of 200, b by 60 of 200; the other ranker shows a.

    Weights 2 and 0: clicks a page 2 * 120 / 400 = 0.6, as logged 180 / 400. Squares of 2 c - 0.6 over users: 120 of
    1.4, 280 of 0.6. The effective number of users is 200, by clicks 120.
    """
    pages = [(user, ["ab"[user % 2]], (0.5,), [0] if user // 2 < (120, 60)[user % 2] else []) for user in range(400)]
    found = off_policy(log_of(pages, "marginal"), {"q": {"a": 1.0}}, topics={"q": "q"}, depth=1)
    assert found.logged == pytest.approx(0.45)
    row = {one.estimator: one for one in found.rows}["item-position"]
    error = math.sqrt((120 * 1.4**2 + 280 * 0.6**2) / 399 / 400)
    half = student_t.ppf(0.975, 119) * error
    assert (row.value, row.effective) == pytest.approx((0.6, 200))
    assert row.ci == pytest.approx((0.6 - half, 0.6 + half), rel=1e-9)
    # differences: a clicked 2 - 1, b clicked 0 - 1, of mean 0.15
    gap_error = math.sqrt((120 * 0.85**2 + 60 * 1.15**2 + 220 * 0.15**2) / 399 / 400)
    half = student_t.ppf(0.975, 119) * gap_error
    assert row.difference == pytest.approx(0.15)
    assert row.difference_ci == pytest.approx((0.15 - half, 0.15 + half), rel=1e-9)
    tables = {block.name: block for block in found.blocks() if hasattr(block, "columns")}
    assert tables["estimates"].column("estimator").values == list(NAMES)
    assert tables["assumptions"].folded
    needed = dict(zip(NAMES, tables["assumptions"].column("propensities").values, strict=True))
    assert (needed["item-position"], needed["direct"]) == ("marginal or independent", "none")
    assert [line.split()[0] for line in tables["weights"].text(200).splitlines()[1:]] == ["1"]
    (weights,) = found.weights
    assert (weights.rank, weights.pages, weights.mean, weights.most, weights.never) == (1, 400, 1.0, 2.0, 0.0)
    assert weights.error == pytest.approx(1 / math.sqrt(399))
    assert found.overlaps
    assert (found.depth, found.clip, found.run) == (1, 10.0, found.run)
    clipped = off_policy(log_of(pages, "marginal"), {"q": {"a": 1.0}}, topics={"q": "q"}, depth=1, clip=1.5)
    cut = {one.estimator: one for one in clipped.rows}["clipped"]
    assert (cut.value, cut.unknown) == pytest.approx((1.5 * 120 / 400, 0.5 * 200 / 400))


@pytest.mark.parametrize(("clicking", "known"), [(14, False), (15, True)])
def test_fifteen_effective_users_must_click(clicking, known):
    pages = [(user, ["a"], (1.0,), [0] if user < clicking else []) for user in range(200)]
    row = rows_of(log_of(pages, "marginal"), {"q": {"a": 1.0}}, depth=1)["item-position"]
    assert (row.ci is not None) == known


@pytest.mark.parametrize(("users", "known"), [(49, False), (50, True)])
def test_fifty_effective_users_are_needed(users, known):
    pages = [(user, ["a"], (1.0,), [0] if user % 2 else []) for user in range(users)]
    row = rows_of(log_of(pages, "marginal"), {"q": {"a": 1.0}}, depth=1)["item-position"]
    assert (row.ci is not None) == known
    of_lists = rows_of(log_of([*pages, *((user + users, *rest) for user, *rest in pages)], "conditional"),
                       {"q": {"a": 1.0}}, depth=1)["whole list"]  # fmt: skip
    assert (of_lists.ci is not None) == known  # twice as many are needed


def logged(pages, *, users=400, seed=0, propensity=None, policy=LOGGED, convention="independent"):
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
    return typed_log(serp, events, shown=shown, propensity_convention=convention)


def policy_of(other):
    return [
        {"rank": rank + 1, "doc_id": f"d{doc + DOCS * rank}", "probability": float(other[rank, doc])}
        for rank, doc in product(range(RANKS), range(DOCS))
    ]


@pytest.mark.parametrize(
    ("situation", "users", "names"),
    [("equal users", 200, NAMES), ("heavy-tailed users", 600, NAMES[:6]), ("large weights", 600, NAMES[:5])],
)
def test_intervals_hold_the_truth(situation, users, names):
    """Of 80 intervals of 95 %, fewer than 70 hold it with a probability below 0.003."""
    rng, held, given = np.random.default_rng(4), dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for _ in range(80):
        rows, truth = simulation.simulate(situation, users, rng)
        for row in rows:
            if row.estimator in held and row.ci is not None:
                assert row.ci[0] < row.value < row.ci[1]
                given[row.estimator] += 1
                held[row.estimator] += row.ci[0] <= truth <= row.ci[1]
    assert min(given.values()) >= 70
    assert all(held[name] >= given[name] - 10 for name in names), held


def test_a_few_large_weights_have_no_interval_over_lists():
    """The product of weights is 100 on 3 of 1,800 pages: intervals without these would hold the truth in 80 %."""
    rng, given = np.random.default_rng(4), {"cascade": 0, "whole list": 0}
    for _ in range(40):
        for row in simulation.simulate("large weights", 600, rng)[0]:
            if row.estimator in given:
                given[row.estimator] += row.ci is not None
    assert max(given.values()) <= 10


def test_a_run_is_a_policy_that_shows_one_document():
    log = logged(2000)
    rows = rows_of(log, {"q": {"d0": 2.0, "d4": 1.0}}, depth=2)
    assert rows["item-position"].value == pytest.approx((0.9 + 0.8) * 0.8, abs=0.15)
    same = rows_of(log, policy_of(LOGGED), depth=2, independent_ranks=True)
    exact = set(NAMES) - {"direct", "doubly robust"}
    assert {round(same[name].difference, 12) for name in exact} == {0.0}
    assert all(same[name].difference_ci is None for name in exact - {"self-normalized"})  # nothing varies


def test_wrong_propensities_are_refused():
    rows = rows_of(logged(1500, propensity=0.9), policy_of(OTHER), depth=2, independent_ranks=True)
    assert {name for name in NAMES if not rows[name].refused} == {"direct"}
    assert "mean weight of rank 1" in rows["item-position"].refused
    assert "mean weight of the list down to rank 1" in rows["whole list"].refused


def test_what_is_never_shown_at_all_may_be_anything():
    rows = rows_of(logged(1500), {"q": {"x": 2.0, "d4": 1.0}}, depth=2)
    assert rows["item-position"].unknown == 1.0
    assert (rows["whole list"].value, rows["whole list"].unknown) == (0.0, 2.0)
    assert rows["whole list"].ci is None


def test_few_users_have_no_interval():
    """40 users of a page each: less than the 50 effective users that are required."""
    found = off_policy(logged(40, users=40), policy_of(LOGGED), depth=2, independent_ranks=True)
    for row in found.rows:
        assert row.ci is None
        assert row.value == row.value
        least = 100 if row.estimator in {"cascade", "whole list"} else 50
        assert f"at least {least} are" in row.insufficient
    assert not found.overlaps


def test_few_clicks_have_no_interval():
    """200 users, of whom 10 click once: 10 effective users by their weighted clicks, of the 15 that are required."""
    pages = [(user, ["ab"[user % 2]], (0.5,), [0] if user < 10 else []) for user in range(200)]
    table = [{"rank": 1, "doc_id": doc, "probability": 0.5} for doc in "ab"]
    row = rows_of(log_of(pages, "marginal"), table, depth=1)["item-position"]
    assert (row.value, row.ci) == (pytest.approx(0.05), None)
    assert "10 effective users, at least 15" in row.insufficient


def test_pages_that_do_not_count_are_counted():
    pages = [(user, ["a"], (0.5,), [0] if user % 2 else []) for user in range(60)]
    log = log_of([*pages, (60, ["b"], (None,), [])], "marginal")
    found = off_policy(log, {"q": {"a": 1.0}}, topics={"q": "q"}, depth=1)
    assert (found.pages, found.bare, found.other) == (60, 1, 0)


def test_what_is_no_log_for_this_is_refused():
    log = logged(50)
    for propensities, why in (((0.5, None), "have no propensity"), ((0.5, 1.5), "got 1.5"), ((0.0, 1.0), "got 0")):
        with pytest.raises(InputError, match=why):
            off_policy(log_of([(1, ["a", "b"], propensities, [])], "marginal"), policy_of(OTHER), depth=2)
    with pytest.raises(InputError, match="no propensities"):
        off_policy(log_of([(1, ["a"], (None,), [])], "marginal"), policy_of(OTHER), depth=2)
    with pytest.raises(InputError, match="no page has a topic"):
        off_policy(log, {"z": {"d0": 1.0}}, topics={"z": "q2"}, depth=2)
    with pytest.raises(InputError, match="clip"):
        off_policy(log, policy_of(OTHER), clip=0.5)
    with pytest.raises(InputError, match="cannot be read"):
        off_policy(log, [{"rank": "first", "doc_id": "d0", "probability": 1}], depth=2)
    with pytest.raises(InputError, match=r"rank 2 must add up to 1, got 0\.3"):
        off_policy(
            log, [row | {"probability": 0.3 if row["rank"] == 2 else 1.0} for row in policy_of(OTHER)[::3]], depth=2
        )
    with pytest.raises(InputError, match="between 0 and 1"):
        off_policy(log, [{"rank": 1, "doc_id": "d0", "probability": -1}], depth=2)


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
    rows = {row.estimator: row for row in found.rows}
    assert found.convention == "marginal"
    assert found.logged == 0.0046
    for name in ("item-position", "self-normalized", "direct", "doubly robust"):
        assert rows[name].value == pytest.approx(0.0057, abs=0.0002)
    assert all(abs(one.mean - 1) < 3 * one.error for one in found.weights)


def test_doubly_robust_values_use_rates_of_the_other_half_of_the_users():
    """One rank: of each half of the users (even, odd), rates by document, with ten clicks' worth of their mean."""
    rng = np.random.default_rng(12)
    shown = ["ab"[int(x)] for x in rng.random(300) < 0.4]
    clicked = (rng.random(300) < np.where(np.array(shown) == "a", 0.5, 0.2)).astype(float)
    pages = [(user, [doc], ({"a": 0.6, "b": 0.4}[doc],), [0] if click else [])
             for user, (doc, click) in enumerate(zip(shown, clicked.tolist(), strict=True))]  # fmt: skip
    table = [{"rank": 1, "doc_id": "a", "probability": 0.3}, {"rank": 1, "doc_id": "b", "probability": 0.7}]
    rows = rows_of(log_of(pages, "marginal"), table, depth=1)
    values = []
    for user in range(300):
        other = np.arange(300) % 2 != user % 2
        mean = clicked[other].mean()
        rates = {doc: (clicked[other & (np.array(shown) == doc)].sum() + 10 * mean)
                 / ((other & (np.array(shown) == doc)).sum() + 10) for doc in "ab"}  # fmt: skip
        weight = {"a": 0.3 / 0.6, "b": 0.7 / 0.4}[shown[user]]
        values.append(0.3 * rates["a"] + 0.7 * rates["b"] + weight * (clicked[user] - rates[shown[user]]))
    assert rows["doubly robust"].value == pytest.approx(np.mean(values), rel=1e-12)
    by_doc = [clicked[np.array(shown) == doc].mean() for doc in "ab"]
    assert rows["direct"].value == pytest.approx(0.3 * by_doc[0] + 0.7 * by_doc[1], rel=1e-12)


def test_a_rank_that_a_page_lacks_weighs_as_what_the_other_ranker_shows_there():
    """Half of 400 pages end at rank 1; the run shows what was logged, so that all users count alike."""
    pages = [
        (user, ["a", "b"][: 1 + user % 2], (1.0,) * (1 + user % 2), [0] if user < 90 else []) for user in range(400)
    ]
    rows = rows_of(log_of(pages, "marginal"), {"q": {"a": 2.0, "b": 1.0}}, depth=2)
    assert rows["direct"].effective == pytest.approx(400)
    assert rows["direct"].value == pytest.approx(90 / 400)
