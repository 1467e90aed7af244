"""Tables of results of one small log, calculated by hand.

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
from judged.online.clicks.model_fit import logit_interval
from online.offline.page_logs import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})
SHOWN, CLICKS = [48, 48, 12, 12, 12], [12, 18, 4, 0, 0]  # of a, b, c, d, e
EXPECTED = [36 * 28 / 60 + 12 * 6 / 60, 12 * 28 / 60 + 36 * 6 / 60, 12 * 28 / 60, 12 * 6 / 60, 0.0]
PEOPLE = {"q": {"a": 1, "b": 2}, "r": {"c": 2, "d": 1, "e": 0}}
RUNS = {"one": {"q": ["a", "b"], "r": ["c", "d"]}, "two": {"q": ["b", "a"], "r": ["e", "d"]}}


@pytest.fixture(scope="module")
def log():
    pages = []
    for i in range(48):
        shown_docs = ["a", "b"] if i % 4 else ["b", "a"]
        clicks = [shown_docs[0]] * (i % 2 == 0) + [shown_docs[1]] * (i % 8 == 1)
        pages.append({"query": "q", "shown": shown_docs, "clicks": clicks, "user": i})
    pages += [{"query": "r", "shown": ["c", "d", "e"], "clicks": ["c"] * (i % 3 == 0), "user": 100 + i}
              for i in range(12)]  # fmt: skip
    return log_of(pages, has=HAS)


def table(answer, name):
    return next(block for block in answer.blocks() if block.name == name)


def text_rows(block):
    """Return the words of each row of the text output."""
    return [line.split() for line in block.text(300).split("\n")[1:] if line.strip()]


def headings(block):
    return [column.heading for column in block.shown]


def decimals(block, name):
    """Return the decimals of numbers and of limits of intervals in a column."""
    formats = block.column(name).show
    return tuple(len(write(0.5).partition(".")[2]) for write in (formats.write, formats.limit or formats.write))


def test_clicks_over_expected_clicks(log):
    coec_result = coec(log)
    ranks, pairs = table(coec_result, "ranks"), table(coec_result, "pairs")
    assert text_rows(ranks) == [["1", "60", "28", "0.4667"], ["2", "60", "6", "0.1000"], ["3", "12", "0", "0.0000"]]
    assert (ranks.labels, pairs.labels) == (1, 2)
    order = [1, 0, 2, 3, 4]  # by lower limits, which are 0 without clicks
    assert pairs.column("doc_id").values == ["b", "a", "c", "d", "e"]
    assert pairs.column("shown").values == [SHOWN[i] for i in order]
    assert pairs.column("clicks").values == [CLICKS[i] for i in order]
    assert pairs.column("expected").values == pytest.approx([EXPECTED[i] for i in order])
    assert [decimals(pairs, name) for name in ("expected", "raw", "value")] == [(2, 1)] * 3
    raw = pairs.column("raw")
    assert raw.values[:4] == pytest.approx([18 / 9.2, 12 / 18, 4 / 5.6, 0])
    assert math.isnan(raw.values[4])  # no clicks are expected at rank 3
    assert raw.ci[4] is None
    assert [low > 0 for low, _ in raw.ci[:4]] == [True, True, True, False]
    assert "sd" not in headings(pairs)
    a = coec_result.prior
    shrunk = [(CLICKS[i] + a) / (EXPECTED[i] + a) for i in order]
    assert pairs.column("value").values == pytest.approx(shrunk)
    sd = [math.sqrt(CLICKS[i] + a) / (EXPECTED[i] + a) for i in order]
    assert pairs.column("sd").values == pytest.approx(sd)
    assert coec_result.facts() == {"log": "made", "counting": "clicks", "level": 0.95, "prior": a}
    n_above, n_below = (coec_result.ratios.low > 1).sum(), (coec_result.ratios.high < 1).sum()
    assert (n_above, n_below) == (1, 1)
    assert "is above 1 for 1 of 5 pairs, and below 1 for 1." in coec_result.sentences[0]
    assert f"{a**-0.5:.2f}" in coec_result.sentences[1]


def test_error_of_a_ratio_includes_the_error_of_expected_clicks(log):
    """The variance of a log rate of k clicks of n is (1 - k / (n + 1)) / k, with half a click instead of none.

    Pair a has 36 of the 60 impressions of rank 1, and 12 of its clicks.
    """
    result = coec(log)
    shares = {1: 36 / 60, 2: 12 / 60}
    clicks, ctr = {1: 28, 2: 6}, {1: 28 / 60, 2: 6 / 60}
    variance = sum(share**2 * clicks[rank] * (1 - ctr[rank]) for rank, share in shares.items()) / 18**2
    covariance = shares[1] * 12 * (36 - 12 + 0.5) / 37  # at rank 2 there are no clicks
    error = variance - 2 * covariance / (12 * 18)
    assert result.ratios.se[0] == pytest.approx(12 / 18 * math.sqrt((1 - 12 / 49) / 12 + error))
    variance = (12 / 60) ** 2 * 6 * (1 - 0.1) / 1.2**2  # d has no clicks
    assert result.ratios.se[3] == pytest.approx(0.5 / 1.2 * math.sqrt((1 - 0.5 / 13) / 0.5 + variance))
    assert result.ratios.se[4] == pytest.approx(math.sqrt((1 - 0.5 / 13) / 0.5))  # half a click is expected of e
    jeffreys = beta(0.5, 12.5)
    mean, high = 0.5 / 13, jeffreys.ppf(0.975)
    distance = math.sqrt(math.log(high / mean) ** 2 + norm.ppf(0.975) ** 2 * variance)
    assert result.ratios.high[3] == pytest.approx(mean * math.exp(distance) * 12 / 1.2)


def test_expected_clicks_with_known_propensities(log):
    result = coec(log, propensities=[1.0, 0.5, 0.2])
    examinations = [36 + 6, 12 + 18, 12, 6, 2.4]
    assert result.expected == pytest.approx([34 * examination / sum(examinations) for examination in examinations])
    assert [(row.rank, row.shown, row.clicks) for row in result.ranks] == [(1, 60, 28), (2, 60, 6), (3, 12, 0)]
    # the 34 distributed clicks include those of the pair
    assert result.ratios.se[2] == pytest.approx(4 / result.expected[2] * math.sqrt((1 - 4 / 13) / 4 - 1 / 34))


def test_propensities_of_two_ranks(log):
    """Both documents have weight 36 * 12 / 48 = 9: rates 1/3 and 1 at rank 1, 0 and 1/6 at rank 2."""
    result = propensities(log, depth=2)
    ranks, links = table(result, "ranks"), table(result, "links")
    assert (ranks.labels, links.labels, links.folded) == (1, 2, True)
    first, second = result.ranks
    assert (first.rank, first.value, first.ci, first.shown, first.naive) == (1, 1.0, None, 60, 1.0)
    assert (second.rank, second.shown) == (2, 60)
    assert (second.value, second.naive) == pytest.approx((1.5 / 12, 6 / 28))
    assert text_rows(ranks)[0] == ["1", "1.000", "60", "1.000"]
    assert [decimals(ranks, name)[0] for name in ("value", "naive")] == [3, 3]
    assert text_rows(links) == [["1", "2", "2", "1.5"]]
    assert result.of().tolist() == [row.value for row in result.ranks]
    low, high = second.ci
    assert math.sqrt(low * high) == pytest.approx(second.value)
    assert f"0.125, 95% CI [{low:.3f}, {high:.3f}]" in result.sentences[0]
    assert "0.214" in result.sentences[1]
    assert not result.randomized
    assert result.facts() == {"log": "made", "randomized": False, "stratum": None, "level": 0.95}
    chart = table(result, "examination")
    assert (chart.x, chart.y, chart.color, chart.spread) == ("rank", "value", "", "cutoff")


def test_click_judgments(log):
    result = judge_clicks(log)
    rows = table(result, "judgments")
    prior = coec(log).prior
    weight = [expected / (expected + prior) for expected in EXPECTED]
    assert rows.column("query_id").values == ["q", "q", "r", "r", "r"]
    assert rows.column("doc_id").values == ["b", "a", "e", "c", "d"]  # by grade
    order = [1, 0, 4, 2, 3]
    assert rows.column("weight").values == pytest.approx([weight[i] for i in order])
    assert rows.column("rank").values == pytest.approx([1.75, 1.25, 3, 1, 2])
    assert (rows.labels, rows.folded) == (2, False)
    expected_decimals = {"grade": 2, "sd": 2, "value": 3, "se": 3, "rank": 1}
    assert {name: decimals(rows, name)[0] for name in expected_decimals} == expected_decimals
    assert {"judge", "kind"}.isdisjoint(headings(rows))
    assert (rows.column("judge").values[0], rows.column("kind").values[0]) == ("coec", "click")
    assert rows.column("value").ci[0] == (result.values.low[1], result.values.high[1])
    assert f"{np.mean(weight):.0%}" in result.sentences[1]
    assert "0 pairs" in result.sentences[2]
    assert (result.excluded_pairs, result.pairs_without_topic, result.shared_pairs, result.min_shown, result.cuts) == (
        0,
        0,
        0,
        10,
        (),
    )
    fewer = judge_clicks(log, min_shown=13)
    assert (fewer.excluded_pairs, fewer.pairs["doc_id"].to_pylist()) == (3, ["a", "b"])
    assert judge_clicks(log, min_shown=12).excluded_pairs == 0


def test_grades_by_lower_limit(log):
    result = judge_clicks(log, grading="lower")
    rows = table(result, "judgments")
    low = np.array([0.43, 1.34, 0.28, 0.0, 0.0])  # rounded
    assert result.values.low == pytest.approx(low, abs=0.006)
    assert result.cuts == pytest.approx(np.quantile(result.values.low, [0.5, 0.75, 0.9]))
    assert dict(zip(result.pairs["doc_id"].to_pylist(), result.grade.tolist(), strict=True)) == {
        "a": 1, "b": 3, "c": 0, "d": 0, "e": 0}  # fmt: skip
    assert text_rows(rows)[0][:4] == ["q", "b", "3", "-"]
    assert result.sd is None


def test_agreement_with_human_grades(log):
    """People: b > a, c > d > e; judgments: b > a, e > c > d; clicks an impression: b > a, c > d = e; rank: a, c first.

    Kendall's tau with the logged rank: judgments agree on c and d alone, -2 of 4; clicks on 2 pairs, not on 1.
    """
    agreement = against_people(judge_clicks(log), PEOPLE)
    orders, feedback, ranks = (table(agreement, name) for name in ("orders", "feedback", "ranks"))
    assert text_rows(orders) == [
        ["click", "judgments", "2", "4", "0.500", "-0.3750"],
        ["click-through", "rate", "2", "4", "0.875", "+0.0000"],
        ["logged", "rank", "2", "4", "0.750", "-0.1250"],
    ]
    coec, ctr = agreement.feedback
    assert (coec.tau, coec.partial) == pytest.approx((-0.5, -0.5 / math.sqrt(0.75)))
    tau_rank_grade, tau = 3 / math.sqrt(12), 1 / math.sqrt(12)
    assert ctr.tau == pytest.approx(tau)
    assert ctr.partial == pytest.approx((tau - tau_rank_grade * 0.5) / math.sqrt((1 - tau_rank_grade**2) * 0.75))
    assert text_rows(feedback)[0] == ["click", "judgments", "-0.500", "-0.577"]
    grade = dict(zip("abcde", grades_a_to_e(log), strict=True))
    mean_rank_1, mean_ranks_2_3 = (grade["a"] + grade["c"]) / 2, (grade["b"] + grade["d"] + grade["e"]) / 3
    assert text_rows(ranks) == [
        ["1", "2", "1.50", f"{mean_rank_1:.2f}", "0.267"],
        ["2", "to", "3", "3", "1.00", f"{mean_ranks_2_3:.2f}", "0.250"],
    ]  # fmt: skip
    assert (orders.labels, ranks.labels, agreement.shared_pairs, agreement.systems) == (1, 1, 5, 0)
    assert all(row.ci is None and row.gain_ci is None for row in agreement.orders)  # only two topics
    for ci, words in (
        ((0.1, 0.2), "Feedback failure: positive correlation"),
        ((-0.2, -0.1), "Negative correlation"),
        ((-0.1, 0.1), "No significant correlation"),
        ((0.0, 0.1), "No significant correlation"),
    ):
        sentence = replace(agreement, feedback=(coec._replace(ci=ci), ctr)).sentences[2]
        assert words in sentence
        assert "-0.577" in sentence
        assert "-0.333" in sentence
    assert math.isnan(agreement.tau)
    assert math.isnan(agreement.clicks_per_label)
    assert len(agreement.sentences) == 2
    assert "0.500 (n = 4 document pairs in 2 topics)" in agreement.sentences[0]
    facts = agreement.facts()
    assert (facts["measure"], facts["systems"], facts["level"]) == ("nDCG@10", 0, 0.95)


def grades_a_to_e(log):
    """Return the grades of documents a to e."""
    result = judge_clicks(log)
    return [dict(zip(result.pairs["doc_id"].to_pylist(), result.grade.tolist(), strict=True))[doc] for doc in "abcde"]


def test_orders_over_twelve_topics_have_jackknife_intervals():
    """Each topic has two documents in alternating order; human grades are reversed in three topics."""
    pages, people = [], {}
    for topic in range(12):
        for i in range(20):
            shown_docs = ["a", "b"] if i % 2 else ["b", "a"]
            clicks = ["a"] * (i < 10) + ["b"] * (i < 4)
            pages.append({"query": f"t{topic:02}", "shown": shown_docs, "clicks": clicks, "user": (topic, i)})
        people[f"t{topic:02}"] = {"a": 0, "b": 1} if topic < 3 else {"a": 2, "b": 1}
    pages = [page | {"user": i} for i, page in enumerate(pages)]
    agreement = against_people(judge_clicks(log_of(pages, has=HAS)), people)
    coec, ctr, rank = agreement.orders
    leave_one_out = [(9 - (topic >= 3)) / 11 for topic in range(12)]
    error = math.sqrt(11 / 12 * sum((share - np.mean(leave_one_out)) ** 2 for share in leave_one_out))
    half_width = 2.200985 * error  # Student's t, 11 degrees of freedom
    assert (coec.n, coec.document_pairs, coec.value) == (12, 12, 0.75)
    assert coec.ci == pytest.approx((0.75 - half_width, 0.75 + half_width), rel=1e-6)
    assert (coec.gain, coec.gain_ci, ctr.gain_ci) == (0.0, (0.0, 0.0), None)
    assert (rank.value, rank.gain) == (0.5, -0.25)  # all mean ranks are 1.5
    assert "does not differ significantly between click judgments and raw click-through rates" in agreement.sentences[1]


def test_order_of_two_systems(log):
    result = against_people(judge_clicks(log), PEOPLE, RUNS, "DCG@2")
    assert (result.systems, result.measure) == (2, "DCG@2")
    assert "2 systems" in result.sentences[2]
    assert result.facts()["tau"] == result.tau


def test_ips_with_clipping(log):
    """Weights 1 and 1.5 (clipped from 2): 24 clicks at rank 1, 6 at rank 2, on 48 pages of the topic of the runs."""
    runs = {"one": {"q": ["a", "b"]}, "two": {"q": ["b", "a"]}}
    result = ips(log, runs, [1, 0.5, 0.2], ["P@1", "DCG@2"], clip=1.5)
    discount = 1 / math.log2(3)
    a, b = 12, 12 + 6 * 1.5
    values = [a, a + b * discount, b, b + a * discount]
    assert [row.value for row in result.rows] == pytest.approx([value / 48 for value in values])
    assert [row.normalized for row in result.rows] == pytest.approx([value / (a + b) for value in values])
    assert [row.difference for row in result.rows] == pytest.approx([0, 0, (b - a) / 48, (values[3] - values[1]) / 48])
    assert (result.pages, result.pages_without_topic, result.clicks, result.clipped, result.units) == (
        48,
        12,
        30,
        6,
        48,
    )
    assert result.effective_clicks == pytest.approx(33**2 / (24 + 6 * 1.5**2))
    runs_table = table(result, "runs")
    assert runs_table.labels == 2
    assert [row[:2] for row in text_rows(runs_table)] == [
        ["one", "P@1"],
        ["one", "DCG@2"],
        ["two", "P@1"],
        ["two", "DCG@2"],
    ]
    assert result.rows[0].difference_ci is None  # the first run is the baseline
    assert result.rows[2].difference_ci[0] < 0.1875 < result.rows[2].difference_ci[1]
    assert "the weights of 6 clicks are clipped" in result.sentences[0]
    assert "Effective number of clicks: 29" in result.sentences[0]
    assert result.facts()["propensities_estimated"] is result.propensities_estimated is False
    unclipped = ips(log, runs, [1, 0.5, 0.2], "P@1")
    assert (unclipped.clipped, unclipped.rows[1].value) == (0, pytest.approx(24 / 48))
    assert "clipped" not in unclipped.sentences[0]
    assert ips(log, runs, [1, 0.5, 0.2], "P@1", clip=1).rows[1].value == pytest.approx(18 / 48)


def test_a_small_effective_number_of_clicks_has_a_note(log):
    """One click of weight 1,000 and 29 of weight 1: the effective number is 1.06, less than a tenth of 30."""
    runs = {"one": {"q": ["a", "b"]}}
    assert ips(log, runs, [1, 0.5, 0.2], "P@1").notes == ()
    pages = [{"query": "q", "shown": ["a", "b"], "clicks": ["a" if i else "b"], "user": i} for i in range(30)]
    result = ips(log_of(pages, has=HAS), runs, [1, 0.001], "P@1")
    assert result.effective_clicks == pytest.approx(1029**2 / (29 + 1000**2))
    assert [note.rule for note in result.notes] == ["few-effective"]


def test_click_through_rates_by_rank(log):
    """Each rank has one pseudo-trial with the overall rate 34 / 132: (28 + 34/132) / 61 and so on."""
    result = fit_model(log, "RCTR")
    mean = 34 / 132
    clicks, impressions = np.array([28, 6, 0]), np.array([60, 60, 12])
    p = (clicks + mean) / (impressions + 1)
    error = ((clicks + mean) / p**2 + (impressions - clicks + 1 - mean) / (1 - p) ** 2) ** -0.5
    assert result.values["examination"] == pytest.approx(p, abs=1e-6)
    assert result.errors["examination"] == pytest.approx(error, rel=1e-5)
    log_likelihood = clicks @ np.log(p) + (impressions - clicks) @ np.log(1 - p)
    assert result.loglik == pytest.approx(log_likelihood / 132, abs=1e-8)
    assert (result.results, result.clicks) == (132, 34)
    examination, parameters = table(result, "examination"), table(result, "parameters")
    assert [row[:2] for row in text_rows(examination)] == [["1", "60"], ["2", "60"], ["3", "12"]]
    assert examination.column("examined").values == pytest.approx(p.tolist(), abs=1e-6)
    low, high = logit_interval(p, error, 0.95)
    assert [list(interval) for interval in parameters.column("value").ci] == [
        pytest.approx(limits, rel=1e-4) for limits in zip(low.tolist(), high.tolist(), strict=True)
    ]
    assert parameters.column("rank").values == [1, 2, 3]
    assert set(parameters.column("parameter").values) == {"examination"}
    assert not [block for block in result.blocks() if block.name == "attractiveness"]
    assert "25.8%" in result.sentences[0]
    assert "132 impressions (25.8% clicked) of 5 pairs" in result.sentences[0]


def test_examination_by_rank_and_last_click(log):
    """Depth 2, without shrinkage: b is always clicked at rank 1. At rank 2, without a click above, it is clicked on 6
    of 24 pages, so that examination is 1/4; below a click it is never clicked."""
    result = fit_model(log, "UBM", depth=2, shrink="none")
    parameters = table(result, "parameters")
    assert parameters.column("rank").values == [1, 2, 2]
    assert parameters.column("last_click").values == [0, 0, 1]
    assert parameters.column("value").values == pytest.approx([1, 0.25, 0], abs=1e-4)
    assert dict(zip("abcd", result.values["attractiveness"], strict=True)) == pytest.approx(
        {"a": 1 / 3, "b": 1, "c": 1 / 3, "d": 0}, abs=1e-4
    )
    pairs = table(result, "top_pairs")
    assert [row[:4] for row in text_rows(pairs)] == [
        ["q", "a", "48", "12"], ["q", "b", "48", "18"], ["r", "c", "12", "4"], ["r", "d", "12", "0"]
    ]  # fmt: skip
    assert (pairs.labels, pairs.note, pairs.only) == (2, "", "people")
    assert any("whose examination is fixed at 1" in sentence for sentence in result.sentences)
    examination = table(result, "examination")
    # rank 2: 36 - 12 pages of q and 8 of r without a click above, with examination 1/4, of 60 pages
    assert examination.column("examined").values == pytest.approx([1, (24 + 8) / 4 / 60], abs=1e-4)


def test_unshrunk_pairs_have_jeffreys_intervals(log):
    """The posterior is Beta(k + 1/2, n - k + 1/2) for k clicks on n pages; the interval includes k / n."""
    result = fit_model(log, "DCTR", shrink="none")
    intervals = result.intervals("attractiveness")
    for i in range(5):
        posterior = beta(CLICKS[i] + 0.5, SHOWN[i] - CLICKS[i] + 0.5)
        low, high = intervals[i]
        assert posterior.cdf(high) == pytest.approx(0.975, abs=0.004)
        assert low == 0 if not CLICKS[i] else posterior.cdf(low) == pytest.approx(0.025, abs=0.004)
    few_pages = fit_model(log_of([{"query": "q", "shown": ["a", "b"][: 1 + (i > 0)], "clicks": ["a"], "user": i}
                            for i in range(5)], has=HAS), "DCTR", shrink="none")  # fmt: skip
    assert [intervals is None for intervals in few_pages.intervals("attractiveness")] == [
        False,
        True,
    ]  # 5 and 4 impressions


def test_continuation_parameters_are_named(log):
    result = fit_model(log, "CCM")
    parameters = table(result, "parameters")
    assert headings(parameters) == ["parameter", "value"]
    assert [text.partition(" ")[2] for text in parameters.column("parameter").values] == [
        "after no click", "after an unsatisfying click", "after a satisfying click"]  # fmt: skip
    dbn = table(fit_model(log, "DBN"), "top_pairs")
    assert headings(dbn)[-2:] == ["attractiveness", "satisfaction"]
    facts = result.facts()
    assert facts["model"]["name"] == "CCM"
    assert set(facts["priors"]) == {"attractiveness", "continuation"}
    pseudo_counts = result.priors["attractiveness"]
    assert (
        f"{pseudo_counts[0] / sum(pseudo_counts):.3f}, as if each pair had {sum(pseudo_counts):.1f} more "
        in " ".join(result.sentences)
    )


def test_model_comparison(log):
    """Parameters: three ranks; five pairs and a prior of two; DBN also has satisfaction of three pairs with a click
    above another result, one continuation, and a second prior."""
    result = compare_models(log, ["RCTR", "DCTR", "DBN"], folds=2)
    models = table(result, "models")
    parameter_counts = dict(zip(models.column("model").values, models.column("parameters").values, strict=True))
    assert parameter_counts == {"RCTR": 3, "DCTR": 5 + 2, "DBN": 5 + 3 + 1 + 2 * 2}
    assert models.kinds == ["selected", "", ""]
    best, *others = result.rows
    assert np.isnan(best.difference.value)
    assert [row.difference.value for row in others] == pytest.approx([row.loglik - best.loglik for row in others])
    assert models.column("difference").ci[0] is None
    assert all(low < row.difference.value < high for row, (low, high) in
               zip(others, models.column("difference").ci[1:], strict=True))  # fmt: skip
    assert [decimals(models, name)[0] for name in ("loglik", "difference", "perplexity")] == [4, 4, 4]
    assert (result.pages, result.units, result.folds, result.refused) == (60, 60, 2, ())
    ranks = table(result, "ranks")
    assert ranks.column("rank").values == [1, 2, 3] * 3
    assert ranks.column("shown").values == [60, 60, 12] * 3
    for row in result.rows:  # the total perplexity is the geometric mean over results
        log_perplexities = [rank.shown * math.log(rank.perplexity) for rank in result.ranks if rank.model == row.model]
        assert row.perplexity == pytest.approx(math.exp(sum(log_perplexities) / 132))
        conditional_logs = [rank.shown * math.log(rank.conditional) for rank in result.ranks if rank.model == row.model]
        assert math.exp(sum(conditional_logs) / 132) == pytest.approx(row.conditional)
        bins = [group for group in result.calibration if group.model == row.model]
        assert sum(group.results for group in bins) == 132
        assert sum(group.results * group.clicked for group in bins) == pytest.approx(34)
        assert [group.predicted for group in bins] == sorted(group.predicted for group in bins)
    assert result.facts()["selected"] == result.selected == "DBN"
    chart = next(block for block in result.blocks() if block.name == "calibration" and not hasattr(block, "columns"))
    assert set(chart.table.column("model").values) == {"DBN"}
    assert (chart.percent, chart.diagonal, chart.height) == ("xy", True, 300)


def test_uncertain_scores_by_run_and_measure():
    grades = [{"query_id": f"q{i}", "doc_id": doc, "grade": value, "value": value, "se": 0.2}
              for i in range(8) for doc, value in (("a", 1.0 + i), ("b", 2.0))]  # fmt: skip
    runs = {"one": {f"q{i}": ["a", "b"] for i in range(8)}, "two": {f"q{i}": ["b"] for i in range(8)}}
    result = evaluate_uncertain(grades, runs, ["DCG@1", "DCG@2"])
    assert (result.n, result.judgments, result.level, result.resamples, result.seed) == (8, 16, 0.95, 200, 0)
    rows, topics = table(result, "runs"), table(result, "topics")
    assert [row[:2] for row in text_rows(rows)] == [
        ["one", "DCG@1"],
        ["one", "DCG@2"],
        ["two", "DCG@1"],
        ["two", "DCG@2"],
    ]
    assert [row.uncorrected for row in result.rows] == pytest.approx([4.5, 4.5 + 2 / math.log2(3), 2.0, 2.0])
    assert [row.difference for row in result.rows[:2]] == [0, 0]
    assert result.rows[2].difference == pytest.approx(-2.5, abs=0.15)
    assert (rows.labels, topics.labels, topics.only) == (2, 3, "data")
    assert [column.name for column in topics.columns] == ["run", "measure", "query_id", "value", "sd"]
    assert len(topics) == 2 * 2 * 8
    sd = topics.column("sd").values
    assert np.mean(sd[:8]) == pytest.approx(0.2, rel=0.1)  # DCG@1 is the value of a
    is_significant = [row.difference_ci is not None and not row.difference_ci[0] <= 0 <= row.difference_ci[1]
             for row in result.rows[2:]]  # fmt: skip
    assert f"{sum(is_significant)} of 2 differences" in result.sentences[1]
    assert json.loads(result.json())["resamples"] == 200


def test_predicted_human_grades_have_no_value_and_se():
    """25 human-graded pairs: a has more clicks than b and grade 1, b has 0; z has -1, which counts as 0."""
    pages, people = [], {}
    for topic in range(12):
        pages += [{"query": f"t{topic}", "shown": ["ab", "ba"][i % 2], "clicks": ["a"] * (i < 8) + ["b"] * (i < 2)}
                  for i in range(12)]  # fmt: skip
        people[f"t{topic}"] = {"a": 1, "b": 0}
    pages += [{"query": "u", "shown": ["z"], "clicks": []} for _ in range(12)]
    people["u"] = {"z": -1}
    log = log_of([page | {"user": i} for i, page in enumerate(pages)], has=HAS)
    result = judge_clicks(log, gold=people)
    rows = table(result, "judgments")
    assert (result.grading, result.shared_pairs) == ("human", 25)
    assert {"value", "se"}.isdisjoint(headings(rows))
    assert set(rows.column("se").values) == {None}
    assert rows.column("value").ci == [None] * 25
    by_doc = dict(zip(result.pairs["doc_id"].to_pylist(), result.grade.tolist(), strict=True))
    assert by_doc["a"] > by_doc["b"] >= 0
    assert by_doc["z"] == 0
    assert f"{result.sd[0]:.2f}" in result.sentences[0]
    assert "25 pairs" in result.sentences[0]
    unpredicted = judge_clicks(log)
    assert {"value", "se"} <= set(headings(table(unpredicted, "judgments")))
    fewer = {topic: grades for topic, grades in people.items() if topic < "t6"}
    with pytest.raises(InputError, match="at least 20 pairs with human grades"):
        judge_clicks(log, gold=dict(list(fewer.items())[:8]))


def test_rank_bands():
    """Thirteen documents in one order: ranks 1, 2 and 3, 4 and 5, 6 to 10, 11 and below."""
    docs = [f"d{rank:02}" for rank in range(1, 14)]
    pages = [{"query": "q", "shown": docs, "clicks": [docs[i % 13]], "user": i} for i in range(26)]
    judgments = judge_clicks(log_of(pages, has=HAS), depth=13)
    result = against_people(judgments, {"q": {doc: int(doc[1:]) % 3 for doc in docs}})
    assert [(row.ranks, row.documents) for row in result.ranks] == [
        ("1", 1), ("2 to 3", 2), ("4 to 5", 2), ("6 to 10", 5), ("11 or deeper", 3)
    ]  # fmt: skip
    assert [row.ctr for row in result.ranks] == pytest.approx([1 / 13] * 5)
    assert [row.human_grade for row in result.ranks] == pytest.approx([1, 1, 1.5, (0 + 1 + 2 + 0 + 1) / 5, 1])
