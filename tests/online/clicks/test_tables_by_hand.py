"""Tables of answers about one small log, whose counts and values are calculated by hand.

48 pages of query q show a and b, 36 times in this order: a is clicked at rank 1 on 12 of these 36 and never at rank 2,
b on all 12 at rank 1 and on 6 of 36 at rank 2. 12 pages of query r show c, d, e; c is clicked on 4.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, norm

from judged.errors import InputError
from judged.online.clicks import (
    against_people,
    coec,
    compare_models,
    evaluate_uncertain,
    fit_model,
    ips,
    judge_clicks,
    propensities,
)
from judged.online.clicks.fitted import logit_interval
from online.offline.pages_made import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})
SHOWN, CLICKS = [48, 48, 12, 12, 12], [12, 18, 4, 0, 0]  # of a, b, c, d, e
EXPECTED = [36 * 28 / 60 + 12 * 6 / 60, 12 * 28 / 60 + 36 * 6 / 60, 12 * 28 / 60, 12 * 6 / 60, 0.0]
PEOPLE = {"q": {"a": 1, "b": 2}, "r": {"c": 2, "d": 1, "e": 0}}
RUNS = {"one": {"q": ["a", "b"], "r": ["c", "d"]}, "two": {"q": ["b", "a"], "r": ["e", "d"]}}


@pytest.fixture(scope="module")
def log():
    pages = []
    for at in range(48):
        shown = ["a", "b"] if at % 4 else ["b", "a"]
        clicks = [shown[0]] * (at % 2 == 0) + [shown[1]] * (at % 8 == 1)
        pages.append({"query": "q", "shown": shown, "clicks": clicks, "user": at})
    pages += [{"query": "r", "shown": ["c", "d", "e"], "clicks": ["c"] * (at % 3 == 0), "user": 100 + at}
              for at in range(12)]  # fmt: skip
    return log_of(pages, has=HAS)


def table(answer, name):
    return next(block for block in answer.blocks() if block.name == name)


def lines(block):
    """Return the words of every row as people see them."""
    return [line.split() for line in block.text(300).split("\n")[1:] if line.strip()]


def headings(block):
    return [column.heading for column in block.shown]


def digits(block, name):
    """Return how many decimals a column shows of numbers and of the ends of intervals."""
    show = block.column(name).show
    return tuple(len(write(0.5).partition(".")[2]) for write in (show.write, show.limit or show.write))


def test_clicks_over_expected_clicks(log):
    made = coec(log)
    ranks, pairs = table(made, "ranks"), table(made, "pairs")
    assert lines(ranks) == [["1", "60", "28", "0.4667"], ["2", "60", "6", "0.1000"], ["3", "12", "0", "0.0000"]]
    assert (ranks.labels, pairs.labels) == (1, 2)
    order = [1, 0, 2, 3, 4]  # by the lower ends of intervals, which are 0 without clicks
    assert pairs.column("doc_id").values == ["b", "a", "c", "d", "e"]
    assert pairs.column("shown").values == [SHOWN[at] for at in order]
    assert pairs.column("clicks").values == [CLICKS[at] for at in order]
    assert pairs.column("expected").values == pytest.approx([EXPECTED[at] for at in order])
    assert [digits(pairs, name) for name in ("expected", "raw", "value")] == [(2, 1)] * 3
    raw = pairs.column("raw")
    assert raw.values[:4] == pytest.approx([18 / 9.2, 12 / 18, 4 / 5.6, 0])
    assert math.isnan(raw.values[4])  # no clicks are expected at rank 3
    assert raw.ci[4] is None
    assert [low > 0 for low, _ in raw.ci[:4]] == [True, True, True, False]
    assert "sd" not in headings(pairs)
    a = made.prior
    shrunk = [(CLICKS[at] + a) / (EXPECTED[at] + a) for at in order]
    assert pairs.column("value").values == pytest.approx(shrunk)
    sd = [math.sqrt(CLICKS[at] + a) / (EXPECTED[at] + a) for at in order]
    assert pairs.column("sd").values == pytest.approx(sd)
    assert made.facts() == {"log": "made", "counting": "clicks", "level": 0.95, "prior": a}
    above, below = (made.ratios.low > 1).sum(), (made.ratios.high < 1).sum()
    assert (above, below) == (1, 1)
    assert "Of 5 pairs 1 " in made.sentences[0]
    assert f"{a**-0.5:.2f}" in made.sentences[1]


def test_the_error_of_a_ratio_is_that_of_its_clicks_and_of_those_expected(log):
    """The variance of the log of a rate of k clicks of n is (1 - k / (n + 1)) / k; half a click stands for none.

    Of the clicks of rank 1, 36 / 60 are expected of a, and 12 of its clicks are among them.
    """
    made = coec(log)
    shares = {1: 36 / 60, 2: 12 / 60}
    clicks, rate = {1: 28, 2: 6}, {1: 28 / 60, 2: 6 / 60}
    common = sum(share**2 * clicks[rank] * (1 - rate[rank]) for rank, share in shares.items()) / 18**2
    own = shares[1] * 12 * (36 - 12 + 0.5) / 37  # at rank 2 there are no clicks
    error = common - 2 * own / (12 * 18)
    assert made.ratios.se[0] == pytest.approx(12 / 18 * math.sqrt((1 - 12 / 49) / 12 + error))
    common = (12 / 60) ** 2 * 6 * (1 - 0.1) / 1.2**2  # of d, which has no clicks
    assert made.ratios.se[3] == pytest.approx(0.5 / 1.2 * math.sqrt((1 - 0.5 / 13) / 0.5 + common))
    assert made.ratios.se[4] == pytest.approx(math.sqrt((1 - 0.5 / 13) / 0.5))  # half a click is expected of e
    jeffreys = beta(0.5, 12.5)
    middle, high = 0.5 / 13, jeffreys.ppf(0.975)
    far = math.sqrt(math.log(high / middle) ** 2 + norm.ppf(0.975) ** 2 * common)
    assert made.ratios.high[3] == pytest.approx(middle * math.exp(far) * 12 / 1.2)


def test_known_propensities_share_out_all_clicks(log):
    made = coec(log, propensities=[1.0, 0.5, 0.2])
    looks = [36 + 6, 12 + 18, 12, 6, 2.4]
    assert made.expected == pytest.approx([34 * look / sum(looks) for look in looks])
    assert [(row.rank, row.shown, row.clicks) for row in made.ranks] == [(1, 60, 28), (2, 60, 6), (3, 12, 0)]
    # 34 clicks were shared out, the own ones among them
    assert made.ratios.se[2] == pytest.approx(4 / made.expected[2] * math.sqrt((1 - 4 / 13) / 4 - 1 / 34))


def test_propensities_of_two_ranks(log):
    """Both documents weigh 36 * 12 / 48 = 9: rates 1/3 and 1 at rank 1, 0 and 1/6 at rank 2."""
    made = propensities(log, depth=2)
    ranks, links = table(made, "ranks"), table(made, "links")
    assert (ranks.labels, links.labels, links.folded) == (1, 2, True)
    first, second = made.ranks
    assert (first.rank, first.value, first.ci, first.shown, first.naive) == (1, 1.0, None, 60, 1.0)
    assert (second.rank, second.shown) == (2, 60)
    assert (second.value, second.naive) == pytest.approx((1.5 / 12, 6 / 28))
    assert lines(ranks)[0] == ["1", "1.000", "60", "1.000"]
    assert [digits(ranks, name)[0] for name in ("value", "naive")] == [3, 3]
    assert lines(links) == [["1", "2", "2", "1.5"]]
    assert made.of().tolist() == [row.value for row in made.ranks]
    low, high = second.ci
    assert math.sqrt(low * high) == pytest.approx(second.value)
    assert f"0.125 [{low:.3f}, {high:.3f}]" in made.sentences[0]
    assert "0.214" in made.sentences[1]
    assert not made.randomized
    assert made.facts() == {"log": "made", "randomized": False, "stratum": None, "level": 0.95}
    chart = table(made, "examination")
    assert (chart.x, chart.y, chart.color, chart.spread) == ("rank", "value", "", "cutoff")


def test_judgments_made_of_clicks(log):
    made = judge_clicks(log)
    rows = table(made, "judgments")
    prior = coec(log).prior
    weight = [expected / (expected + prior) for expected in EXPECTED]
    assert rows.column("query_id").values == ["q", "q", "r", "r", "r"]
    assert rows.column("doc_id").values == ["b", "a", "e", "c", "d"]  # by grade
    order = [1, 0, 4, 2, 3]
    assert rows.column("weight").values == pytest.approx([weight[at] for at in order])
    assert rows.column("rank").values == pytest.approx([1.75, 1.25, 3, 1, 2])
    assert (rows.labels, rows.folded) == (2, False)
    shown = {"grade": 2, "sd": 2, "value": 3, "se": 3, "rank": 1}
    assert {name: digits(rows, name)[0] for name in shown} == shown
    assert {"judge", "kind"}.isdisjoint(headings(rows))
    assert (rows.column("judge").values[0], rows.column("kind").values[0]) == ("coec", "click")
    assert rows.column("value").ci[0] == (made.values.low[1], made.values.high[1])
    assert f"{np.mean(weight):.0%}" in made.sentences[1]
    assert "0 pairs" in made.sentences[2]
    assert (made.left_out, made.nameless, made.shared, made.min_shown, made.cuts) == (0, 0, 0, 10, ())
    few = judge_clicks(log, min_shown=13)
    assert (few.left_out, few.pairs["doc_id"].to_pylist()) == (3, ["a", "b"])
    assert judge_clicks(log, min_shown=12).left_out == 0


def test_grades_by_lower_ends_are_whole_numbers(log):
    made = judge_clicks(log, grading="lower")
    rows = table(made, "judgments")
    low = np.array([0.43, 1.34, 0.28, 0.0, 0.0])  # rounded
    assert made.values.low == pytest.approx(low, abs=0.006)
    assert made.cuts == pytest.approx(np.quantile(made.values.low, [0.5, 0.75, 0.9]))
    assert dict(zip(made.pairs["doc_id"].to_pylist(), made.grade.tolist(), strict=True)) == {
        "a": 1, "b": 3, "c": 0, "d": 0, "e": 0}  # fmt: skip
    assert lines(rows)[0][:4] == ["q", "b", "3", "-"]
    assert made.sd is None


def test_order_of_documents_by_clicks_and_by_people(log):
    """People: b > a, c > d > e; judgments: b > a, e > c > d; clicks an impression: b > a, c > d = e; rank: a, c first.

    Kendall's tau with the logged rank: judgments agree on c and d alone, -2 of 4; clicks on 2 pairs, not on 1.
    """
    made = against_people(judge_clicks(log), PEOPLE)
    orders, feedback, ranks = (table(made, name) for name in ("orders", "feedback", "ranks"))
    assert lines(orders) == [
        ["judgments", "2", "4", "0.500", "-0.3750"],
        ["clicks", "an", "impression", "2", "4", "0.875", "+0.0000"],
        ["rank", "alone", "2", "4", "0.750", "-0.1250"],
    ]
    own, raw = made.feedback
    assert (own.tau, own.partial) == pytest.approx((-0.5, -0.5 / math.sqrt(0.75)))
    with_grade, tau = 3 / math.sqrt(12), 1 / math.sqrt(12)
    assert raw.tau == pytest.approx(tau)
    assert raw.partial == pytest.approx((tau - with_grade * 0.5) / math.sqrt((1 - with_grade**2) * 0.75))
    assert lines(feedback)[0] == ["judgments", "-0.500", "-0.577"]
    grade = dict(zip("abcde", made_grades(log), strict=True))
    first, second = (grade["a"] + grade["c"]) / 2, (grade["b"] + grade["d"] + grade["e"]) / 3
    assert lines(ranks) == [
        ["1", "2", "1.50", f"{first:.2f}", "0.267"], ["2", "to", "3", "3", "1.00", f"{second:.2f}", "0.250"]
    ]  # fmt: skip
    assert (orders.labels, ranks.labels, made.shared, made.systems) == (1, 1, 5, 0)
    assert all(row.ci is None and row.gain_ci is None for row in made.orders)  # two topics
    for ci, words in (
        ((0.1, 0.2), "Feedback failure: they go with"),
        ((-0.2, -0.1), "They go against"),
        ((-0.1, 0.1), "not shown that they go with"),
        ((0.0, 0.1), "not shown that they go with"),
    ):
        told = replace(made, feedback=(own._replace(ci=ci), raw)).sentences[1]
        assert words in told
        assert "-0.577" in told
        assert "-0.333" in told
    assert math.isnan(made.tau)
    assert math.isnan(made.clicks_a_label)
    assert len(made.sentences) == 1
    assert "0.500 of 4 pairs" in made.sentences[0]
    facts = made.facts()
    assert (facts["measure"], facts["systems"], facts["level"]) == ("nDCG@10", 0, 0.95)


def made_grades(log):
    """Return the grades of a to e."""
    made = judge_clicks(log)
    return [dict(zip(made.pairs["doc_id"].to_pylist(), made.grade.tolist(), strict=True))[doc] for doc in "abcde"]


def test_orders_over_twelve_topics_have_jackknife_intervals():
    """Each topic has two documents in swapped orders; in three topics people grade them the other way round."""
    pages, people = [], {}
    for topic in range(12):
        for at in range(20):
            shown = ["a", "b"] if at % 2 else ["b", "a"]
            clicks = ["a"] * (at < 10) + ["b"] * (at < 4)
            pages.append({"query": f"t{topic:02}", "shown": shown, "clicks": clicks, "user": (topic, at)})
        people[f"t{topic:02}"] = {"a": 0, "b": 1} if topic < 3 else {"a": 2, "b": 1}
    pages = [page | {"user": at} for at, page in enumerate(pages)]
    made = against_people(judge_clicks(log_of(pages, has=HAS)), people)
    own, raw, rank = made.orders
    left = [(9 - (topic >= 3)) / 11 for topic in range(12)]
    error = math.sqrt(11 / 12 * sum((share - np.mean(left)) ** 2 for share in left))
    half = 2.200985 * error  # Student's t, 11 degrees of freedom
    assert (own.n, own.compared, own.value) == (12, 12, 0.75)
    assert own.ci == pytest.approx((0.75 - half, 0.75 + half), rel=1e-6)
    assert (own.gain, own.gain_ci, raw.gain_ci) == (0.0, (0.0, 0.0), None)
    assert (rank.value, rank.gain) == (0.5, -0.25)  # all stood at 1.5 in the mean
    assert "nothing is shown to be gained" in made.sentences[0]


def test_two_systems_by_clicks_and_by_people(log):
    made = against_people(judge_clicks(log), PEOPLE, RUNS, "DCG@2")
    assert (made.systems, made.measure) == (2, "DCG@2")
    assert "2 systems" in made.sentences[1]
    assert made.facts()["tau"] == made.tau


def test_clicks_weighted_by_their_propensities(log):
    """Weights 1 and 1.5, cut from 2: 24 clicks at rank 1, 6 at rank 2, on 48 pages of the runs' topic."""
    runs = {"one": {"q": ["a", "b"]}, "two": {"q": ["b", "a"]}}
    made = ips(log, runs, [1, 0.5, 0.2], ["P@1", "DCG@2"], clip=1.5)
    second = 1 / math.log2(3)
    a, b = 12, 12 + 6 * 1.5
    values = [a, a + b * second, b, b + a * second]
    assert [row.value for row in made.rows] == pytest.approx([value / 48 for value in values])
    assert [row.normalized for row in made.rows] == pytest.approx([value / (a + b) for value in values])
    assert [row.difference for row in made.rows] == pytest.approx([0, 0, (b - a) / 48, (values[3] - values[1]) / 48])
    assert (made.pages, made.other, made.clicks, made.clipped, made.units) == (48, 12, 30, 6, 48)
    assert made.effective == pytest.approx(33**2 / (24 + 6 * 1.5**2))
    runs_table = table(made, "runs")
    assert runs_table.labels == 2
    assert [row[:2] for row in lines(runs_table)] == [
        ["one", "P@1"],
        ["one", "DCG@2"],
        ["two", "P@1"],
        ["two", "DCG@2"],
    ]
    assert made.rows[0].difference_ci is None  # it does not differ from itself
    assert made.rows[2].difference_ci[0] < 0.1875 < made.rows[2].difference_ci[1]
    assert "6 of them" in made.sentences[0]
    assert "29 of equal" in made.sentences[0]
    assert made.facts()["estimated"] is made.estimated is False
    with_all = ips(log, runs, [1, 0.5, 0.2], "P@1")
    assert (with_all.clipped, with_all.rows[1].value) == (0, pytest.approx(24 / 48))
    assert "with a weight" not in with_all.sentences[0]
    assert ips(log, runs, [1, 0.5, 0.2], "P@1", clip=1).rows[1].value == pytest.approx(18 / 48)


def test_weights_of_which_few_count_have_a_note(log):
    """One click of weight 1,000 and 29 of weight 1 are as good as 1.06 of equal weight: less than a tenth of 30."""
    runs = {"one": {"q": ["a", "b"]}}
    assert ips(log, runs, [1, 0.5, 0.2], "P@1").notes == ()
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": ["a" if at else "b"], "user": at} for at in range(30)]
    made = ips(log_of(pages, has=HAS), runs, [1, 0.001], "P@1")
    assert made.effective == pytest.approx(1029**2 / (29 + 1000**2))
    assert [note.rule for note in made.notes] == ["few-effective"]


def test_click_through_rates_by_rank(log):
    """One more trial with the share of all, 34 of 132, at each rank: (28 + 34/132) / 61 and so on."""
    made = fit_model(log, "RCTR")
    mean = 34 / 132
    clicks, shown = np.array([28, 6, 0]), np.array([60, 60, 12])
    p = (clicks + mean) / (shown + 1)
    error = ((clicks + mean) / p**2 + (shown - clicks + 1 - mean) / (1 - p) ** 2) ** -0.5
    assert made.values["examination"] == pytest.approx(p, abs=1e-6)
    assert made.errors["examination"] == pytest.approx(error, rel=1e-5)
    likely = clicks @ np.log(p) + (shown - clicks) @ np.log(1 - p)
    assert made.loglik == pytest.approx(likely / 132, abs=1e-8)
    assert (made.results, made.clicks) == (132, 34)
    looks, parameters = table(made, "examination"), table(made, "parameters")
    assert [row[:2] for row in lines(looks)] == [["1", "60"], ["2", "60"], ["3", "12"]]
    assert looks.column("looked_at").values == pytest.approx(p.tolist(), abs=1e-6)
    low, high = logit_interval(p, error, 0.95)
    assert [list(ends) for ends in parameters.column("value").ci] == [
        pytest.approx(two, rel=1e-4) for two in zip(low.tolist(), high.tolist(), strict=True)
    ]
    assert parameters.column("rank").values == [1, 2, 3]
    assert set(parameters.column("parameter").values) == {"examination"}
    assert not [block for block in made.blocks() if block.name == "attractiveness"]
    assert "25.8%" in made.sentences[0]
    assert "132 results of 5 pairs" in made.sentences[0]


def test_examination_by_rank_and_last_click(log):
    """Down to rank 2, without shrinkage: b is always clicked at rank 1, so that of 24 pages where it stands at rank 2
    below no click 6 tell that a quarter looks there, and below a click nobody does."""
    made = fit_model(log, "UBM", depth=2, shrink="none")
    parameters = table(made, "parameters")
    assert parameters.column("rank").values == [1, 2, 2]
    assert parameters.column("last_click").values == [0, 0, 1]
    assert parameters.column("value").values == pytest.approx([1, 0.25, 0], abs=1e-4)
    assert dict(zip("abcd", made.values["attractiveness"], strict=True)) == pytest.approx(
        {"a": 1 / 3, "b": 1, "c": 1 / 3, "d": 0}, abs=1e-4
    )
    pairs = table(made, "shown_most")
    assert [row[:4] for row in lines(pairs)] == [
        ["q", "a", "48", "12"], ["q", "b", "48", "18"], ["r", "c", "12", "4"], ["r", "d", "12", "0"]
    ]  # fmt: skip
    assert (pairs.labels, pairs.note, pairs.only) == (2, "", "people")
    assert any("whose examination is 1" in sentence for sentence in made.sentences)
    looks = table(made, "examination")
    # at rank 2: 36 - 12 pages of q and 8 of r below no click, of which a quarter is looked at, of 60
    assert looks.column("looked_at").values == pytest.approx([1, (24 + 8) / 4 / 60], abs=1e-4)


def test_without_shrinkage_pairs_have_intervals_by_the_prior_of_jeffreys(log):
    """Of k clicks in n pages the posterior is Beta(k + 1/2, n - k + 1/2); its interval holds the share k / n."""
    made = fit_model(log, "DCTR", shrink="none")
    limits = made.limits("attractiveness")
    for at in range(5):
        known = beta(CLICKS[at] + 0.5, SHOWN[at] - CLICKS[at] + 0.5)
        low, high = limits[at]
        assert known.cdf(high) == pytest.approx(0.975, abs=0.004)
        assert low == 0 if not CLICKS[at] else known.cdf(low) == pytest.approx(0.025, abs=0.004)
    few = fit_model(log_of([{"query": "q", "shown": ["a", "b"][: 1 + (at > 0)], "clicks": ["a"], "user": at}
                            for at in range(5)], has=HAS), "DCTR", shrink="none")  # fmt: skip
    assert [limits is None for limits in few.limits("attractiveness")] == [False, True]  # shown 5 and 4 times


def test_parameters_of_going_on_are_named(log):
    made = fit_model(log, "CCM")
    parameters = table(made, "parameters")
    assert headings(parameters) == ["parameter", "value"]
    assert [text.partition(": ")[2] for text in parameters.column("parameter").values] == [
        "after no click", "after an unsatisfying click", "after a satisfying click"]  # fmt: skip
    dbn = table(fit_model(log, "DBN"), "shown_most")
    assert headings(dbn)[-2:] == ["attractiveness", "satisfaction"]
    facts = made.facts()
    assert facts["model"]["name"] == "CCM"
    assert set(facts["priors"]) == {"attractiveness", "continuation"}
    sums = made.priors["attractiveness"]
    assert f"{sums[0] / sum(sums):.3f} as by {sum(sums):.1f} " in " ".join(made.sentences)


def test_models_side_by_side(log):
    """Parameters: three ranks; five pairs and a prior of two; of DBN also three pairs that were clicked above another
    result, one chance to go on, and a second prior."""
    made = compare_models(log, ["RCTR", "DCTR", "DBN"], folds=2)
    models = table(made, "models")
    count = dict(zip(models.column("model").values, models.column("parameters").values, strict=True))
    assert count == {"RCTR": 3, "DCTR": 5 + 2, "DBN": 5 + 3 + 1 + 2 * 2}
    assert models.kinds == ["chosen", "", ""]
    first, *others = made.rows
    assert np.isnan(first.difference.value)
    assert [row.difference.value for row in others] == pytest.approx([row.loglik - first.loglik for row in others])
    assert models.column("difference").ci[0] is None
    assert all(low < row.difference.value < high for row, (low, high) in
               zip(others, models.column("difference").ci[1:], strict=True))  # fmt: skip
    assert [digits(models, name)[0] for name in ("loglik", "difference", "perplexity")] == [4, 4, 4]
    assert (made.pages, made.units, made.folds, made.refused) == (60, 60, 2, ())
    ranks = table(made, "ranks")
    assert ranks.column("rank").values == [1, 2, 3] * 3
    assert ranks.column("shown").values == [60, 60, 12] * 3
    for row in made.rows:  # the perplexity of all results is the geometric mean of those by rank
        logs = [one.shown * math.log(one.perplexity) for one in made.ranks if one.model == row.model]
        assert row.perplexity == pytest.approx(math.exp(sum(logs) / 132))
        given = [one.shown * math.log(one.conditional) for one in made.ranks if one.model == row.model]
        assert math.exp(sum(given) / 132) == pytest.approx(row.conditional)
        bins = [one for one in made.calibration if one.model == row.model]
        assert sum(one.results for one in bins) == 132
        assert sum(one.results * one.clicked for one in bins) == pytest.approx(34)
        assert [one.predicted for one in bins] == sorted(one.predicted for one in bins)
    assert made.facts()["chosen"] == made.chosen == "DBN"
    own = next(block for block in made.blocks() if block.name == "calibration" and not hasattr(block, "columns"))
    assert set(own.table.column("model").values) == {"DBN"}
    assert (own.percent, own.diagonal, own.height) == ("xy", True, 300)


def test_scores_by_uncertain_judgments_have_a_row_for_each_run_and_measure():
    grades = [{"query_id": f"q{at}", "doc_id": doc, "grade": value, "value": value, "se": 0.2}
              for at in range(8) for doc, value in (("a", 1.0 + at), ("b", 2.0))]  # fmt: skip
    runs = {"one": {f"q{at}": ["a", "b"] for at in range(8)}, "two": {f"q{at}": ["b"] for at in range(8)}}
    made = evaluate_uncertain(grades, runs, ["DCG@1", "DCG@2"])
    assert (made.n, made.judgments, made.level, made.resamples, made.seed) == (8, 16, 0.95, 200, 0)
    rows, topics = table(made, "runs"), table(made, "topics")
    assert [row[:2] for row in lines(rows)] == [["one", "DCG@1"], ["one", "DCG@2"], ["two", "DCG@1"], ["two", "DCG@2"]]
    assert [row.plain for row in made.rows] == pytest.approx([4.5, 4.5 + 2 / math.log2(3), 2.0, 2.0])
    assert [row.difference for row in made.rows[:2]] == [0, 0]
    assert made.rows[2].difference == pytest.approx(-2.5, abs=0.15)
    assert (rows.labels, topics.labels, topics.only) == (2, 3, "data")
    assert [column.name for column in topics.columns] == ["run", "measure", "query_id", "value", "sd"]
    assert len(topics) == 2 * 2 * 8
    sd = topics.column("sd").values
    assert np.mean(sd[:8]) == pytest.approx(0.2, rel=0.1)  # DCG@1 is the value of a
    clear = [row.difference_ci is not None and not row.difference_ci[0] <= 0 <= row.difference_ci[1]
             for row in made.rows[2:]]  # fmt: skip
    assert f"{sum(clear)} of 2 differences" in made.sentences[1]
    assert json.loads(made.json())["resamples"] == 200


def test_grades_of_people_hide_what_was_measured():
    """25 pairs that people graded: a is clicked more than b, and they give a 1 and b 0; z was graded -1, which is 0."""
    pages, people = [], {}
    for topic in range(12):
        pages += [{"query": f"t{topic}", "shown": ["ab", "ba"][at % 2], "clicks": ["a"] * (at < 8) + ["b"] * (at < 2)}
                  for at in range(12)]  # fmt: skip
        people[f"t{topic}"] = {"a": 1, "b": 0}
    pages += [{"query": "u", "shown": ["z"], "clicks": []} for _ in range(12)]
    people["u"] = {"z": -1}
    log = log_of([page | {"user": at} for at, page in enumerate(pages)], has=HAS)
    made = judge_clicks(log, gold=people)
    rows = table(made, "judgments")
    assert (made.grading, made.shared) == ("people", 25)
    assert {"value", "se"}.isdisjoint(headings(rows))
    assert set(rows.column("se").values) == {None}
    assert rows.column("value").ci == [None] * 25
    by_doc = dict(zip(made.pairs["doc_id"].to_pylist(), made.grade.tolist(), strict=True))
    assert by_doc["a"] > by_doc["b"] >= 0
    assert by_doc["z"] == 0
    assert f"{made.sd[0]:.2f}" in made.sentences[0]
    assert "25 pairs" in made.sentences[0]
    measured = judge_clicks(log)
    assert {"value", "se"} <= set(headings(table(measured, "judgments")))
    fewer = {topic: grades for topic, grades in people.items() if topic < "t6"}
    with pytest.raises(InputError, match="people graded"):
        judge_clicks(log, gold=dict(list(fewer.items())[:8]))


def test_mean_ranks_are_put_together_in_bands():
    """Twelve documents in one order: ranks 1, 2 and 3, 4 and 5, 6 to 10, 11 and below."""
    docs = [f"d{rank:02}" for rank in range(1, 14)]
    pages = [{"query": "q", "shown": docs, "clicks": [docs[at % 13]], "user": at} for at in range(26)]
    judgments = judge_clicks(log_of(pages, has=HAS), depth=13)
    made = against_people(judgments, {"q": {doc: int(doc[1:]) % 3 for doc in docs}})
    assert [(row.ranks, row.documents) for row in made.ranks] == [
        ("1", 1), ("2 to 3", 2), ("4 to 5", 2), ("6 to 10", 5), ("11 and below", 3)
    ]  # fmt: skip
    assert [row.ctr for row in made.ranks] == pytest.approx([1 / 13] * 5)
    assert [row.people for row in made.ranks] == pytest.approx([1, 1, 1.5, (0 + 1 + 2 + 0 + 1) / 5, 1])
