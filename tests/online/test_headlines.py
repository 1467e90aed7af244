"""Headlines of results about users: a case for each status, and the number and interval of the result."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from judged.data import sample
from judged.online import abtest, read_log
from judged.online.ab_tests.abtest import ABTest
from judged.online.ab_tests.differences import verdict
from judged.online.clicks import against_people, compare_models, judge_clicks, propensities
from judged.online.clicks.human_agreement import ClickAgreement, DocumentOrderAgreement, FeedbackTest
from judged.online.interleaving_analysis.analysis import Interleaving, Preference, _verdict
from judged.online.watch.config import Event
from judged.online.watch.watch import Watch
from judged.online.watch.watched import Guard, Rollback, WatchedSeries
from judged.results.headline import MAX_WORDS, Headline
from online.ab_tests.arms import difference, users
from online.interleaving_analysis.test_verdict import MIXED, overall
from online.watch.test_points import config

NAN = math.nan


@pytest.fixture(scope="module")
def log() -> Any:
    return read_log(sample.LOG)


def state(headline: Headline) -> tuple[str, str]:
    """Return status and word; the sentence must be short."""
    assert len(headline.sentence.split()) <= MAX_WORDS, headline.sentence
    return headline.status, headline.word


BETTER, WORSE = difference(10.0, 20.0, 0.5), difference(10.0, 5.0, 0.5)
OPEN = difference(10.0, 10.05, 0.5)
LOSS, MAYBE = (difference(10.0, other, 0.5, metric="OrderValue", role="guardrail") for other in (5.0, 9.9))


def test_of(*rows: Any, **user_counts: Any) -> ABTest:
    assignment = users(**user_counts)
    decision = verdict("b", rows, assignment, 0.02, 200)
    fields: dict[str, Any] = {"log": "log", "unit": "user", "level": 0.95, "policies": ()}
    return ABTest(
        **fields, assignment=assignment, differences=rows, verdicts=(decision,), margin_relative=0.02, any_day=False
    )


test_of.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("rows", "counts", "expected", "deciding"),
    [
        ((BETTER,), {}, ("better", "ship"), BETTER),
        ((WORSE,), {}, ("worse", "do not ship"), WORSE),
        ((BETTER, LOSS), {}, ("worse", "do not ship"), LOSS),
        ((difference(10.0, 10.0, 0.01, base_error=0.0),), {}, ("same", "do not ship"), None),
        ((OPEN,), {}, ("same", "keep running"), OPEN),
        ((BETTER, MAYBE), {}, ("unknown", "keep running"), MAYBE),
        ((BETTER,), {"a": 199}, ("unknown", "keep running"), BETTER),
        ((difference(10.0, 20.0, 0.5, effective=49.0),), {}, ("unknown", "keep running"), None),
        ((BETTER,), {"uneven_fields": ("device",)}, ("unknown", "invalid"), BETTER),
    ],
)
def test_an_ab_test_has_the_status_of_its_verdict(
    rows: tuple[Any, ...], counts: dict[str, Any], expected: tuple[str, str], deciding: Any
) -> None:
    result = test_of(*rows, **counts)
    headline = result.headline
    row = deciding or rows[0]
    assert state(headline) == expected
    assert (headline.value, headline.ci) == (row.difference.value, (row.difference.low, row.difference.high))
    assert headline.label.startswith(f"{row.metric}, b - a")
    statuses = result.table("differences").column("relative").statuses
    is_decided = counts == {}
    assert all(status == "unknown" for status in statuses) != is_decided or expected[0] == "unknown"


def test_the_status_of_a_difference_is_its_corrected_test() -> None:
    assert [row.status for row in (BETTER, WORSE, OPEN)] == ["better", "worse", "same"]
    assert replace(BETTER, p=0.0501).status == "same"
    assert replace(BETTER, p=0.05).status == "better"
    assert replace(BETTER, p=NAN).status == "unknown"
    assert difference(10.0, 20.0, 0.5, metric="Abandonment").status == "info"
    assert difference(10.0, 20.0, 0.5, metric="ZeroResults").status == "worse"


def test_the_first_arm_to_ship_is_first() -> None:
    result = test_of(BETTER)
    (shipped,) = result.verdicts
    other = replace(shipped, arm="c", decision="keep running", status="unknown", metric="")
    assert state(replace(result, verdicts=(other, shipped)).headline) == ("better", "ship")


def test_the_sample_has_too_few_users(log: Any) -> None:
    result = abtest(log)
    row = result.differences[0]
    assert state(result.headline) == ("unknown", "keep running")
    assert result.headline.ci == (row.difference.low, row.difference.high)
    assert set(result.table("differences").column("relative").statuses) == {"unknown"}


GUARD = Guard("faults", "", 0.2, (0.1, 0.3), "harmed", 5.0)
EVENT = Event(date(2026, 3, 20), "v2", deploy=True)


@pytest.mark.parametrize(
    ("decision", "guards", "status"),
    [
        ("roll back", (GUARD, replace(GUARD, relative=0.1)), "worse"),
        ("keep", (replace(GUARD, state="ok", relative=-0.1, ci=(-0.2, 0.01)),), "better"),
        ("keep watching", (replace(GUARD, state="inconclusive"),), "unknown"),
        ("no data", (), "unknown"),
    ],
)
def test_a_deployment_has_the_status_of_its_decision(decision: Any, guards: tuple[Guard, ...], status: str) -> None:
    headline = Rollback(EVENT, decision, guards, 0.05).headline
    assert state(headline) == (status, decision)
    assert (headline.value, headline.ci) == ((guards[0].relative, guards[0].ci) if guards else (None, None))


def watched(tmp_path: Any, *series: WatchedSeries, rollbacks: tuple[Rollback, ...] = ()) -> Watch:
    return Watch(config(tmp_path), series, rollbacks, date(2026, 3, 31))


def test_a_watch_is_as_bad_as_its_worst_series(tmp_path: Any) -> None:
    fine = WatchedSeries("a", "", "ok", center=0.1, level=0.1, better=-1, detection_days=12.0)
    alarm = replace(fine, series="b", state="alarm", level=0.15, since=date(2026, 3, 30))
    unmonitored = WatchedSeries("c", "", "not monitored", "too few events")
    assert state(watched(tmp_path, fine, unmonitored).headline) == ("same", "no alarm")
    assert state(watched(tmp_path, unmonitored).headline) == ("unknown", "not monitored")
    headline = watched(tmp_path, fine, alarm, replace(alarm, series="d", level=0.11)).headline
    assert state(headline) == ("worse", "alarm")
    assert headline.value == pytest.approx(0.5)
    assert headline.label.startswith("b,")
    assert state(watched(tmp_path, replace(alarm, better=0)).headline) == ("info", "alarm")
    rollback = Rollback(EVENT, "roll back", (GUARD,), 0.05)
    assert state(watched(tmp_path, fine, alarm, rollbacks=(rollback,)).headline) == ("worse", "roll back")
    statuses = watched(tmp_path, fine, alarm, unmonitored).table("series").column("state").statuses
    assert statuses == ["same", "worse", "unknown"]


@pytest.mark.parametrize(
    ("count", "interval", "invalid", "expected"),
    [
        (200, (0.01, 0.1), (), ("better", "preferred")),
        (200, (-0.1, -0.01), (), ("worse", "not preferred")),
        (200, (-0.1, 0.1), (), ("same", "keep running")),
        (199, (0.01, 0.1), (), ("unknown", "keep running")),
        (200, (NAN, NAN), (), ("unknown", "keep running")),
        (200, (0.01, 0.1), ("coins",), ("unknown", "invalid")),
    ],
)
def test_interleaving_has_the_status_of_its_preference(
    count: int, interval: tuple[float, float], invalid: Any, expected: tuple[str, str]
) -> None:
    preference: Preference = overall(count, *interval)
    decision, reasons, status = _verdict(MIXED, preference, invalid, 200)
    headline = Interleaving(
        log="log", unit="user", level=0.95, policies=(), baseline="old", other="new", method="team draft", lists=count,
        users=count, decision=decision, reasons=reasons, overall=preference, ranks=(), status=status,
    ).headline  # fmt: skip
    assert state(headline) == expected
    assert headline.value == preference.value
    assert headline.ci == (None if math.isnan(interval[0]) else interval)


def agreement(gain_ci: Any, feedback_ci: Any = (-0.2, 0.1)) -> ClickAgreement:
    orders = (DocumentOrderAgreement("click judgments", "", 20, 90, 0.8, (0.7, 0.9), 0.05, gain_ci),)
    feedback = tuple(FeedbackTest(name, 0.2, 0.1, feedback_ci) for name in ("click judgments", "click-through rate"))
    return ClickAgreement("log", "coec", 0.95, 90, orders, (), feedback, "nDCG@10", 0, NAN, NAN, NAN, None, NAN)


@pytest.mark.parametrize(
    ("gain_ci", "status", "word"),
    [
        ((0.01, 0.1), "better", "better than CTR"),
        ((-0.1, -0.01), "worse", "worse than CTR"),
        ((-0.1, 0.1), "same", "no significant difference"),
        (None, "unknown", "not enough data"),
    ],
)
def test_click_judgments_are_compared_with_raw_clicks(gain_ci: Any, status: str, word: str) -> None:
    headline = agreement(gain_ci).headline
    assert state(headline) == (status, word)
    assert (headline.value, headline.ci) == (0.05, gain_ci)
    failure = agreement(gain_ci, (0.01, 0.3)).headline
    assert state(failure) == ("worse", "feedback failure")
    assert (failure.value, failure.ci) == (0.1, (0.01, 0.3))
    assert state(agreement(gain_ci, (-0.3, -0.1)).headline) == (status, word)


def test_headlines_of_the_sample_have_the_numbers_of_the_results(log: Any) -> None:
    result = against_people(judge_clicks(log), sample.qrels())
    assert (result.headline.value, result.headline.ci) == (result.orders[0].gain, result.orders[0].gain_ci)
    ranks = propensities(log)
    assert state(ranks.headline) == ("info", "estimate")
    assert (ranks.headline.value, ranks.headline.ci) == (ranks.ranks[-1].value, ranks.ranks[-1].ci)
    without = replace(ranks, ranks=(*ranks.ranks[:-1], ranks.ranks[-1]._replace(ci=None)))
    assert state(without.headline) == ("unknown", "not enough data")
    models = compare_models(log, ["RCTR", "DCTR"], folds=2, iterations=20)
    selected = next(row for row in models.rows if row.selected)
    assert state(models.headline) == ("info", f"selected: {selected.model}")
    assert models.headline.value == selected.perplexity
    assert state(replace(models, units=5).headline) == ("unknown", "not enough data")
