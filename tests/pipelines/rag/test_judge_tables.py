"""Results about judges: limits of biases and variances, sentences, tables, and confusion tables by hand."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.pipelines.rag.judge_bias import _few_topics, judge_bias, within_margin
from judged.pipelines.rag.judge_error import (
    JudgedMean,
    JudgeVariance,
    VerdictAgreement,
    VerdictCalibration,
    _scores_of_repeated,
    _variance_interval,
    calibrate,
    verdict_labels,
)
from judged.pipelines.rag.responses import Responses
from judged.results import Column, Table
from judged.results.table import COUNT
from judged.stats.sensitivity import few_topics

NAN = math.nan


@pytest.mark.parametrize(
    ("n", "ci", "p", "expected"),
    [
        (25, (-0.05, 0.05), NAN, "yes"), (24, (-0.05, 0.05), NAN, "not tested"), (25, None, NAN, "not tested"),
        (25, (-0.051, 0.05), NAN, "undecided"), (25, (-0.05, 0.051), NAN, "undecided"),
        (25, (0.05, 0.2), NAN, "undecided"), (25, (0.051, 0.2), NAN, "no"), (25, (-0.2, -0.05), NAN, "undecided"),
        (25, (-0.2, -0.051), NAN, "no"), (25, (0.0, 0.0), 0.05, "undecided"), (25, (0.0, 0.0), 0.0501, "yes"),
        (25, (0.1, 0.2), 0.01, "no"), (25, (-0.2, 0.2), 0.01, "undecided"),
    ],
)  # fmt: skip
def test_verdicts_about_a_bias_with_a_margin_of_a_twentieth(n: int, ci: Any, p: float, expected: str) -> None:
    assert within_margin(n, ci, 0.05, selection_p=p) == expected
    assert within_margin(n, ci, 0.05, selection_p=p, alpha=0.05) == expected


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_bias_of_a_judge_equals_scipy(level: float) -> None:
    rng = np.random.default_rng(1)
    people, model, others = rng.random(30), rng.random(30), rng.random(11) + 0.1
    bias = judge_bias(people, model, others, margin=0.5, level=level)
    errors = model - people
    assert (bias.n, bias.mean) == (30, pytest.approx(errors.mean()))
    assert bias.ci == pytest.approx(stats.t.interval(level, 29, errors.mean(), stats.sem(errors)))
    assert bias.selection_p == pytest.approx(stats.ttest_ind(model, others, equal_var=False).pvalue)
    assert bias.within_margin == "yes"
    if level == 0.95:
        assert judge_bias(people, model, others, margin=0.5) == bias
    for n_people, n_others, has_test in ((6, 6, True), (5, 6, False), (6, 5, False)):
        smaller = judge_bias(people[:n_people], model[:n_people], others[:n_others], margin=0.5)
        assert math.isnan(smaller.selection_p) == (not has_test)
        assert (smaller.within_margin, smaller.few_topics) == ("not tested", ())
    assert math.isnan(judge_bias(people, np.full(30, 0.5), others, margin=0.5).selection_p)
    assert math.isnan(judge_bias(people, model, np.full(9, 0.5), margin=0.5).selection_p)
    empty = judge_bias(people[:0], model[:0], others, margin=0.5)
    assert (empty.n, empty.ci, empty.within_margin) == (0, None, "not tested")
    assert math.isnan(empty.mean)
    # people's topics differ from the others: significant at a level of 90%, not at 95%
    p = judge_bias(people, model, others, margin=0.5).selection_p
    shifted = judge_bias(people, model, others + 0.12, margin=0.5, level=level)
    assert p > shifted.selection_p
    assert (shifted.within_margin == "undecided") == (shifted.selection_p <= 1 - level)


def test_few_topics_that_could_change_the_verdict_about_a_bias() -> None:
    """If one topic with an error of 1 among 48 of 0.01 were rarer or more frequent, the bias would cross the margin."""
    errors = np.array([*np.tile([0.0, 0.02], 24), 1.0])
    alpha = 0.05
    assert _few_topics(errors, "yes", 0.05, alpha) == tuple(few_topics(0.05 - errors, alpha).tolist()) == (48,)
    assert _few_topics(-errors, "yes", 0.05, alpha) == (48,)
    two_outliers = np.array([*errors, -1.0])
    assert _few_topics(two_outliers, "yes", 0.05, alpha) == (48, 49)
    assert _few_topics(errors, "no", 0.011, alpha) == _few_topics(-errors, "no", 0.011, alpha) == (48,)
    assert _few_topics(errors, "undecided", 0.05, alpha) == _few_topics(errors, "not tested", 0.05, alpha) == ()
    assert _few_topics(np.tile([0.0, 0.02], 24), "yes", 0.05, alpha) == ()
    assert judge_bias(0 * errors, errors, errors[:0], margin=0.08).few_topics == (48,)


def test_the_judges_own_variance_at_its_limits() -> None:
    """Differences of 0.2 and 0: half the mean square is 0.01, half of the scores' variance of 0.02."""
    first, second = np.array([[0.5, 0.5]]), np.array([[0.7, 0.5]])
    estimate = JudgeVariance.of(first, second, np.array([0.4, 0.6]))
    assert (estimate.topics, estimate.variance, estimate.share, estimate.share_ci) == (
        2,
        pytest.approx(0.01),
        pytest.approx(0.5),
        None,
    )
    complete = JudgeVariance.of(first, second, np.array([0.5, 0.6]))  # a variance of 0.005: the share is truncated to 1
    assert complete.share == 1.0
    for scores in ([0.5], [], [0.5, 0.5]):
        without_share = JudgeVariance.of(first, second, np.array(scores))
        assert (without_share.topics, without_share.variance, without_share.share_ci) == (2, pytest.approx(0.01), None)
        assert math.isnan(without_share.share)
    empty = JudgeVariance.of(np.empty((1, 0)), np.empty((1, 0)), np.array([0.4, 0.6]))
    assert (empty.topics, empty.share_ci) == (0, None)
    assert np.isnan([empty.variance, empty.share]).all()
    rng = np.random.default_rng(2)
    first, second = rng.random((2, 1, 12))
    scores = rng.random(20)
    wide, complete = (JudgeVariance.of(first, second, factor * scores) for factor in (1.0, 0.6))
    assert wide.share_ci is not None
    assert 0 < wide.share_ci[0] < wide.share < 1.0
    assert (wide.share_ci[1], complete.share, complete.share_ci) == (1.0, 1.0, (1.0, 1.0))
    assert JudgeVariance.of(first[:, :11], second[:, :11], rng.random(20)).share_ci is None


def test_degrees_of_freedom_of_a_variance() -> None:
    """Even differences of 12 topics and 4 systems have n times systems degrees of freedom, uneven ones fewer."""
    even = np.array([0.9, 1.0, 1.1] * 4)
    freedom = 48
    limits = freedom * even.mean() / stats.chi2.ppf([0.95, 0.05], freedom)
    assert _variance_interval(even, 4, 0.9) == pytest.approx(tuple(limits))
    assert _variance_interval(np.ones(12), 4, 0.9) is None  # no variance
    assert _variance_interval(even[:11], 4, 0.9) is None
    assert _variance_interval(even[:0], 4, 0.9) is None
    outlier = np.array([1.0] + [0.0] * 11)
    relative_variance = (12 * np.var(outlier, ddof=1) * 144 + 5 * 5.0) / 17
    freedom = 24 / relative_variance
    limits = freedom / 12 / stats.chi2.ppf([0.95, 0.05], freedom)
    assert _variance_interval(outlier, 1, 0.9) == pytest.approx(tuple(limits))


MEAN = JudgedMean(
    judge="m", measure="SupportP", run="a", labeled=40, people=0.5, model=0.625, model_judged=0.5625, bias=0.0625,
    bias_ci=(0.03, 0.095), within_margin="yes", few_topics=(), selection_p=0.5, value=0.55, ci=(0.5, 0.6), weight=0.75,
    repeated=20, judge_sd=0.125, judge_variance_share=0.25, judge_variance_share_ci=(0.2, 0.375),
)  # fmt: skip
AGREEMENT = VerdictAgreement("m", "support", 1234, 1001, 0.755, 0.5, (0.25, 0.75), 0.625, -0.125)


def answer(
    *means: JudgedMean, agreement: Any = (AGREEMENT,), grades: Any = None, level: float = 0.95
) -> VerdictCalibration:
    return VerdictCalibration(0.05, level, tuple(agreement), means, grades or {})


def test_sentences_of_judges() -> None:
    second = replace(AGREEMENT, judge="n", verdicts="assignments", shared=1, failed=0, same=1.0, kappa=NAN)
    assert answer(agreement=(AGREEMENT, second)).sentences == (
        "m agrees with people on 76% of 1,234 verdicts on support (kappa 0.500); 1,001 verdicts failed.",
        "n agrees with people on 100% of 1 verdict on assignments (kappa nan); 0 verdicts failed.",
    )
    means = (
        MEAN, replace(MEAN, run="b", labeled=25, judge_variance_share=NAN, repeated=21),
        replace(MEAN, run="c", within_margin="no", labeled=9, judge_variance_share=0.5,
                few_topics=("q1", "q2", "q3", "q4")),
        replace(MEAN, run="d", within_margin="undecided", selection_p=0.0123, judge_variance_share=NAN),
        replace(MEAN, run="e", within_margin="not tested", selection_p=0.05, judge_variance_share=NAN),
        replace(MEAN, run="f", within_margin="not tested", labeled=24, judge_variance_share=NAN),
        replace(MEAN, judge="n", run="a", within_margin="no", judge_variance_share=NAN, selection_p=NAN),
        replace(MEAN, judge="o", run="a", within_margin="undecided", repeated=1, selection_p=0.051),
    )  # fmt: skip
    # 1 - 0.05^(1/25): errors on more topics are in the sample in 95 of 100 samples
    missed = f"{1 - 0.05 ** (1 / 25):.0%} of all topics"
    unseen = (
        f"A sample of 25 topics can miss errors that affect up to {missed} (at 95% confidence), so the bias can"
        " be larger."
    )
    not_random = "the judged topics differ from the other topics, so the bias on the other topics is unknown."
    expected = f"""
        The bias of m is within the margin of 0.05 for these scores: SupportP of a and SupportP of b. {unseen}
        The bias of m is beyond the margin of 0.05 for these scores, so do not replace people's scores: SupportP of c.
        It is undecided whether the bias of m is within the margin of 0.05 for these scores: SupportP of d.
        The bias of m was not tested for these scores, because people judged fewer than 25 topics: SupportP of f.
        The bias of m was not tested for these scores, because all errors of m are equal: SupportP of e.
        The result for SupportP of c by m is sensitive to a few topics: it can change if topics such as q1, q2 and q3 \
are rarer or more frequent than in the sample.
        SupportP of d by m is 0.562 on the topics that people judged, and 0.625 on all topics (p = 0.0123): {not_random}
        SupportP of e by m is 0.562 on the topics that people judged, and 0.625 on all topics (p = 0.0500): {not_random}
        Differences between repeated verdicts of m cause 25% to 50% of the variance of a mean score, estimated from \
21 topics that m judged twice.
        The bias of n is beyond the margin of 0.05 for these scores, so do not replace people's scores: SupportP of a.
        It is undecided whether the bias of o is within the margin of 0.05 for these scores: SupportP of a.
        Differences between repeated verdicts of o cause 25% of the variance of a mean score, estimated from \
1 topic that o judged twice.
    """
    assert answer(*means).sentences[1:] == tuple(line.strip() for line in expected.strip().splitlines())
    assert "differ from the other topics" in " ".join(answer(means[7], level=0.9).sentences)


def test_tables_of_judges() -> None:
    confusion = Table("support", (Column("people", [1], COUNT),))
    grades = {("m", "support"): confusion, ("m", "assignments"): confusion}
    result = answer(replace(MEAN, few_topics=("q1", "q2")), grades=grades)
    sentences, agreement, means, *other_blocks = result.blocks()
    assert sentences.name == "sentences"
    assert other_blocks == [confusion, confusion]
    assert (agreement.labels, means.labels) == (2, 3)  # type: ignore[attr-defined]
    grid = agreement.grid()  # type: ignore[attr-defined]
    assert grid.header == (
        "judge", "verdicts", "shared items", "failed", "same verdict", "kappa", "quadratic kappa", "mean difference",
    )  # fmt: skip
    assert [tuple(map(str, row)) for row in grid.rows] == [
        ("m", "support", "1234", "1001", "76%", "0.500", "0.625", "-0.125")
    ]
    assert agreement.records()[0]["kappa_ci"] == [0.25, 0.75]  # type: ignore[attr-defined]
    grid = means.grid()  # type: ignore[attr-defined]
    assert grid.header == (
        "judge", "measure", "run", "topics", "people", "model", "bias", "within margin", "few topics", "selection p",
        "corrected", "weight", "repeated", "judge sd", "judge share",
    )  # fmt: skip
    assert [tuple(map(str, row)) for row in grid.rows] == [
        ("m", "SupportP", "a", "40", "0.5000", "0.6250", "+0.0625", "yes", "q1, q2", "0.5000", "0.5500 [0.500, 0.600]",
         "0.75", "20", "0.1250", "25%"),
    ]  # fmt: skip
    row = means.records()[0]  # type: ignore[attr-defined]
    assert (row["bias_ci"], row["judge_variance_share_ci"]) == ([0.03, 0.095], [0.2, 0.375])
    two_judges = {("m", "support"): confusion, ("n", "support"): confusion}
    assert [block.name for block in answer(grades=two_judges).blocks()] == ["sentences", "agreement"]
    assert result.facts() == {"margin": 0.05, "level": 0.95, "grades": ["contradicts", "not", "partial", "support"]}


SUPPORTS = [
    # query, sentence, person's verdict, the model's first and second one
    ("q1", 1, "support", "support", "support"), ("q1", 2, "support", "partial", "support"),
    ("q2", 1, "not", "contradicts", None), ("q2", 2, "partial", "failed", None), ("q3", 1, "not", "not", "partial"),
    ("q4", 1, "failed", "support", None), ("q5", 1, None, "support", None), ("q6", 1, "contradicts", None, None),
]  # fmt: skip


def supports() -> Responses:
    keys = [{"query_id": query, "sentence": sentence, "doc_id": "d"} for query, sentence, *_ in SUPPORTS]
    rows = [
        {**key, "judge": judge, "repeat": repeat, "verdict": verdict}
        for key, (_, _, person, first, second) in zip(keys, SUPPORTS, strict=True)
        for judge, repeat, verdict in (("ann", 0, person), ("m", 0, first), ("m", 1, second))
        if verdict is not None
    ]
    return Responses.of(
        {"answers": [{"query_id": f"q{number}"} for number in range(1, 7)], "citations": keys, "support": rows}
    )


def test_agreement_and_confusion_table_by_hand() -> None:
    """Both judged q1, q2, and q3: of five verdicts of the model one failed, and two of four are equal.

    Grades of people 3 3 1 1, of the model 3 2 0 1: the mean shift is -1/2.
    """
    result = calibrate(supports(), "ann", ())
    (agreement,) = result.agreement
    assert (agreement.judge, agreement.verdicts, agreement.shared, agreement.failed, agreement.same) == (
        "m",
        "support",
        4,
        1,
        0.5,
    )
    assert agreement.shift == pytest.approx(-0.5)
    # expected by chance: 3 of 2/4 * 1/4 and 1 of 2/4 * 1/4
    assert agreement.kappa == pytest.approx((0.5 - 0.25) / 0.75)
    # squared distances: 0 1 1 0; expected by chance: the mean over all 16 pairs
    by_chance = np.mean(
        [(people_grade - model_grade) ** 2 for people_grade in (3, 3, 1, 1) for model_grade in (3, 2, 0, 1)]
    )
    assert agreement.quadratic == pytest.approx(1 - 0.5 / by_chance)
    table = result.grades["m", "support"]
    assert (table.name, table.title, table.folded) == (
        "support",
        "Verdicts of m on support, by verdict of people",
        True,
    )
    assert [tuple(row.values()) for row in table.records()] == [
        ("contradicts", 0, 0, 0, 0, 0), ("not", 1, 1, 0, 0, 0), ("partial", 0, 0, 0, 0, 1), ("support", 0, 0, 1, 1, 0),
    ]  # fmt: skip
    assert [column.name for column in table.columns] == ["people", "contradicts", "not", "partial", "support", "failed"]
    assert (result.margin, result.level, result.means, result.notes) == (0.05, 0.95, (), supports().notes)
    assert result.blocks()[-1] is table


def test_means_of_people_and_of_a_model_by_hand() -> None:
    """SupportP by people and model: q1 1 and 3/4, q2 1/4 and 0, q3 0 and 0; the model repeated q1 and q3."""
    result = calibrate(supports(), ["ann"], "SupportP")
    (mean,) = result.means
    assert (mean.judge, mean.measure, mean.run, mean.labeled) == ("m", "SupportP", "run", 3)
    assert mean.people == pytest.approx((1 + 1 / 4 + 0) / 3)
    assert mean.model_judged == pytest.approx((3 / 4 + 0 + 0) / 3)
    assert mean.model == pytest.approx((3 / 4 + 0 + 0 + 1 + 1) / 5)
    assert mean.bias == pytest.approx(-1 / 6)
    errors = np.array([-1 / 4, -1 / 4, 0])
    assert mean.bias_ci == pytest.approx(stats.t.interval(0.95, 2, errors.mean(), stats.sem(errors)))
    assert (mean.within_margin, mean.few_topics, math.isnan(mean.selection_p)) == ("not tested", (), True)
    assert mean.repeated == 2  # q1 from 3/4 to 1, q3 from 0 to 1/2
    variance = ((1 / 4) ** 2 + (1 / 2) ** 2) / 4
    assert mean.judge_sd == pytest.approx(math.sqrt(variance))
    assert mean.judge_variance_share == pytest.approx(variance / np.var([3 / 4, 0, 0, 1, 1], ddof=1))
    assert mean.judge_variance_share_ci is None
    assert not math.isnan(mean.value)
    (note,) = [note for note in result.notes if note.rule == "few-topics"]
    assert note.text.startswith(
        "Not enough data: 3 topics, at least 25 are required. Therefore, confidence intervals may be too narrow"
    )
    labeled_only = calibrate(supports(), "ann", "SupportP", labeled=["q1", "q2", "other"])
    assert labeled_only.means[0].labeled == 2
    assert labeled_only.means[0].people == pytest.approx(5 / 8)
    assert (labeled_only.means[0].ci, math.isnan(labeled_only.means[0].value)) == (None, True)
    assert "Therefore, there are no confidence intervals, and" in labeled_only.notes[-1].text
    assert labeled_only.agreement == result.agreement
    defaults = {name: parameter.default for name, parameter in inspect.signature(calibrate).parameters.items()}
    assert [defaults[name] for name in ("margin", "level", "resamples", "seed")] == [0.05, 0.95, 1000, 0]
    with pytest.raises(InputError, match="`margin` must be above 0, got 0"):
        calibrate(supports(), "ann", "SupportP", margin=0.0)


def test_topics_that_were_scored_twice_for_all_systems() -> None:
    """q1 lacks a first score of one system, q2 a second one; q4 was not repeated; the order differs."""
    first: Any = SimpleNamespace(run_names=("a", "b"), query_ids=("q1", "q2", "q3", "q4"), values=np.array(
        [[[NAN, 0.1, 0.2, 0.3]], [[0.5, 0.6, 0.7, 0.8]]]))  # fmt: skip
    repeated: Any = SimpleNamespace(run_names=("a", "b"), query_ids=("q3", "q2", "q1"), values=np.array(
        [[[0.25, 0.15, 0.05]], [[0.75, NAN, 0.45]]]))  # fmt: skip
    first_scores, second_scores = _scores_of_repeated(first, repeated)
    assert (first_scores.tolist(), second_scores.tolist()) == ([[0.2], [0.7]], [[0.25], [0.75]])
    missing_system: Any = SimpleNamespace(**{**vars(repeated), "run_names": ("a",)})
    for unusable in (None, missing_system):
        assert [scores.shape for scores in _scores_of_repeated(first, unusable)] == [(1, 0), (1, 0)]


def test_labels_of_verdicts() -> None:
    labels = verdict_labels(supports(), "support", "model")
    assert labels is not None
    rows = [row for row in labels.table.to_pylist() if row["query_id"] == "q2"]
    assert [(row["judge"], row["grade"], row["valid"], row["repeat"]) for row in rows] == [
        ("ann", 1.0, True, 0), ("m", 0.0, True, 0), ("ann", 2.0, True, 0), ("m", None, False, 0),
    ]  # fmt: skip
    assert len({row["doc_id"] for row in rows}) == 2
    assert {row["kind"] for row in rows} == {"model"}
    assert verdict_labels(supports(), "assignments", "human") is None
