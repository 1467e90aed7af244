"""The sample's mixed lists through the command line, and beside its A/B test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from judged.data import sample
from judged.online import abtest, interleaving, plan_interleaving, read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

LOG = str(sample.INTERLEAVED)


def test_exit_codes_say_what_follows(run: Callable[..., Ended]) -> None:
    assert run("online", "interleaving", LOG).code == 1
    assert run("online", "interleaving", LOG, "--one-day").code == 0
    assert run("online", "interleaving", LOG, "--one-day", "--baseline", "bm25").code == 1
    assert run("online", "interleaving", str(sample.LOG)).code == 2


def test_slices_and_conditions_part_the_lists(run: Callable[..., Ended]) -> None:
    made = json.loads(run("online", "interleaving", LOG, "--by", "device", "--format", "json").out)
    whole, parts = made["preferences"][0], made["slices"]
    assert sum(row["lists"] for row in parts) == whole["lists"]
    assert sum(row["wins"] for row in parts) == whole["wins"]
    mobile = json.loads(run("online", "interleaving", LOG, "--where", "device == 'mobile'", "--format", "json").out)[
        "preferences"
    ][0]
    assert mobile["wins"] == next(row["wins"] for row in parts if row["slice"] == "mobile")


def test_what_an_ab_test_of_the_same_change_took() -> None:
    mixed, parted = interleaving(read_log(sample.INTERLEAVED)), abtest(read_log(sample.LOG), "SessionSuccess")
    pair = plan_interleaving(read_log(sample.INTERLEAVED), past=[(mixed, parted)]).pairs[0]
    goal, seen, z2 = parted.differences[0], mixed.overall, 2.801585**2
    assert (pair.preference, pair.gain) == (seen.value, -goal.relative.value)  # the test's baseline is bm25
    assert round(pair.users_interleaving) == round(z2 * mixed.users * (seen.error / seen.value) ** 2)
    assert round(pair.users_abtest) == round(z2 * 300 * (goal.adjusted.error / goal.difference.value) ** 2)
    assert pair.agree not in {"yes", "no"}
