"""Defaults of options, and the limits that calibrated intervals rest on, as the documentation states them."""

from __future__ import annotations

from judged.clicks import (
    against,
    cells,
    comparison,
    counterfactual,
    examination,
    expected,
    fitted,
    fitting,
    judgments,
    logged_policy,
    off_policy_estimates,
    uncertain,
)
from usual_options import unusual

MODULES = (
    against, cells, comparison, counterfactual, examination, expected, fitted, fitting, judgments, logged_policy,
    off_policy_estimates, uncertain,
)  # fmt: skip


def test_usual_options() -> None:
    usual = {"depth": 10, "dwell": 30.0, "folds": 5, "bins": 10, "iterations": 1000, "min_shown": 10, "clip": 10.0}
    assert unusual(MODULES, **usual) == [
        ("ips", "clip", None),  # values are unbiased without
        ("ips_of", "clip", None),
    ]


def test_intervals_of_off_policy_estimates_need_as_many_users_as_documented() -> None:
    assert (off_policy_estimates.LIMITS, off_policy_estimates.LIMITS_OF_LISTS) == ((50, 10), (100, 25))
    assert off_policy_estimates.MIN_EFFECTIVE_CLICKING == 15


def test_propensities_leave_out_at_most_fifty_groups_and_need_ten() -> None:
    assert (examination.GROUPS, examination._LEAST) == (50, 10)
