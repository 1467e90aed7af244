"""Interleaving commands on the sample, and the comparison with its A/B test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from judged.data import sample
from judged.online import abtest, interleaving, plan_interleaving, read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

LOG = str(sample.INTERLEAVED)


def test_exit_codes(run: Callable[..., Ended]) -> None:
    assert run("online", "interleaving", LOG).code == 1
    assert run("online", "interleaving", LOG, "--one-day").code == 0
    assert run("online", "interleaving", LOG, "--one-day", "--baseline", "bm25").code == 1
    assert run("online", "interleaving", str(sample.LOG)).code == 2


def test_slices_and_conditions(run: Callable[..., Ended]) -> None:
    data = json.loads(run("online", "interleaving", LOG, "--by", "device", "--format", "json").out)
    overall, slices = data["preferences"][0], data["slices"]
    assert sum(row["lists"] for row in slices) == overall["lists"]
    assert sum(row["wins"] for row in slices) == overall["wins"]
    mobile = json.loads(run("online", "interleaving", LOG, "--where", "device == 'mobile'", "--format", "json").out)[
        "preferences"
    ][0]
    assert mobile["wins"] == next(row["wins"] for row in slices if row["slice"] == "mobile")


def test_comparison_with_an_ab_test_of_the_same_change() -> None:
    interleaved, test = interleaving(read_log(sample.INTERLEAVED)), abtest(read_log(sample.LOG), "SessionSuccess")
    pair = plan_interleaving(read_log(sample.INTERLEAVED), past=[(interleaved, test)]).pairs[0]
    primary, preference, z2 = test.differences[0], interleaved.overall, 2.801585**2
    assert (pair.preference, pair.gain) == (preference.value, -primary.relative.value)  # the test's baseline is bm25
    assert round(pair.users_interleaving) == round(z2 * interleaved.users * (preference.error / preference.value) ** 2)
    assert round(pair.users_abtest) == round(z2 * 300 * (primary.adjusted.error / primary.difference.value) ** 2)
    assert pair.agree not in {"yes", "no"}
