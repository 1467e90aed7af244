"""Documented defaults of options, and minimums for calibrated intervals."""

from __future__ import annotations

from typing import Any

import pytest

from judged.data import sample
from judged.errors import InputError
from judged.online import read_log
from judged.online.clicks import (
    clicks_over_expected,
    comparison,
    counterfactual,
    examination,
    fitting,
    human_agreement,
    importance_weighting,
    impression_counts,
    judgments,
    model_fit,
    off_policy_estimates,
    uncertain_scores,
)
from usual_options import unusual

MODULES = (
    clicks_over_expected, comparison, counterfactual, examination, fitting, human_agreement, importance_weighting,
    impression_counts, judgments, model_fit, off_policy_estimates, uncertain_scores,
)  # fmt: skip


def test_usual_options() -> None:
    usual = {"depth": 10, "dwell": 30.0, "folds": 5, "bins": 10, "iterations": 1000, "min_shown": 10, "clip": 10.0}
    assert unusual(MODULES, **usual) == [
        ("compute_ips", "clip", None),  # values are unbiased without clipping
        ("ips", "clip", None),
    ]


def test_intervals_of_off_policy_estimates_need_as_many_users_as_documented() -> None:
    assert (off_policy_estimates.MINIMUMS, off_policy_estimates.LIST_MINIMUMS) == ((50, 10), (100, 25))
    assert off_policy_estimates.MIN_EFFECTIVE_CLICKERS == 15


def test_jackknife_of_propensities_has_ten_to_fifty_groups() -> None:
    assert (examination.MAX_GROUPS, examination._MIN_GROUPS) == (50, 10)


@pytest.fixture(scope="module")
def log() -> Any:
    return read_log(sample.LOG)


GRADES = [{"query_id": "q", "doc_id": "d", "grade": 1, "value": 1.0, "se": 0.1}]
FUNCTIONS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "coec": (clicks_over_expected.coec, {"level": [0, 1], "dwell": [-1.0], "counting": ["views"], "depth": [0, 51]}),
    "judge_clicks": (judgments.judge_clicks, {"level": [1.5], "dwell": [-1.0], "depth": [0], "grading": ["best"]}),
    "propensities": (examination.propensities, {"level": [1.0], "depth": [0], "stratum": ["nothing"]}),
    "fit_model": (
        lambda log, **options: model_fit.fit_model(log, **{"model": "DCTR"} | options),
        {"level": [1.0], "depth": [0], "unit": ["page"], "iterations": [0], "seed": [-1], "shrink": ["much"],
         "resamples": [3], "model": ["XYZ"]},
    ),
    "compare_models": (
        lambda log, **options: comparison.compare_models(log, **{"models": ["DCTR"]} | options),
        {"level": [1.0], "unit": ["page"], "bins": [0], "folds": [1], "iterations": [0], "seed": [-1], "depth": [0]},
    ),
    "ips": (
        lambda log, **options: counterfactual.ips(log, sample.runs(), **options),
        {"level": [1.0], "depth": [0], "clip": [0.5]},
    ),
    "off_policy": (
        lambda log, **options: off_policy_estimates.off_policy(log, sample.runs()[0], **options),
        {"level": [1.0], "unit": ["page"], "clip": [0.5, float("nan")]},
    ),
    "evaluate_uncertain": (
        lambda _, **options: uncertain_scores.evaluate_uncertain(GRADES, {"q": ["d"]}, "DCG@1", **options),
        {"level": [1.0], "resamples": [0], "seed": [-1]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [(name, option, value) for name, (_, options) in FUNCTIONS.items() for option, values in options.items()
     for value in values],
)  # fmt: skip
def test_values_outside_their_range_are_refused(log: Any, name: str, option: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        FUNCTIONS[name][0](log, **{option: value})
    assert option in str(caught.value) or str(value) in str(caught.value)


def test_level_of_human_agreement_is_between_0_and_1() -> None:
    with pytest.raises(InputError, match="level"):
        human_agreement.against_people(None, {"q": {"d": 1}}, level=1.0)  # type: ignore[arg-type]
