"""Watches from configuration and files: alarms, stored data, deployments."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import date, timedelta

import numpy as np
import pytest

from command_line import process
from judged.data import sample
from judged.errors import InputError
from judged.online.simulation import Drift, SimulationPlan, Users, simulate
from judged.online.watch import read_watch, watch
from judged.online.watch.config import CanarySeries, Event, LogSeries, SeriesKind, TableSeries, WatchConfig, parse_watch
from judged.online.watch.watched import DailySeries, watch_series

FIRST = date(2026, 3, 2)


def write_reviews(path, p_by_day, *, seed=0, slices=("",)):
    """Write a table of 4,000 reviewed results per day and slice, with a probability by day."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["date", "numerator", "denominator", "slice"])
        for i, p in enumerate(p_by_day):
            for slice_name in slices:
                rows.writerow([FIRST + timedelta(i), rng.binomial(4000, p), 4000, slice_name])


def watch_config(folder, *events, better="less"):
    """Return the configuration of a watch on that table."""
    return WatchConfig(
        FIRST,
        FIRST + timedelta(27),
        series=(TableSeries("false positives", "review.csv", better),),
        event=events,
        margin_relative=0.1,
        path=str(folder / "watch.toml"),
        state="watch.json",
    )


def test_a_rise_is_found_where_less_is_better_and_not_where_more_is(tmp_path):
    write_reviews(tmp_path / "review.csv", [0.1] * 40 + [0.14] * 20)
    (series,) = watch(watch_config(tmp_path)).watched
    assert series.state == "alarm"
    assert abs((series.since - FIRST).days - 40) <= 3
    assert series.center == pytest.approx(0.1, abs=0.01)
    assert series.level == pytest.approx(0.14, abs=0.01)
    assert watch(watch_config(tmp_path, better="more")).is_healthy
    assert not watch(watch_config(tmp_path, better="either")).is_healthy


def test_what_was_seen_is_remembered_and_twice_is_once(tmp_path):
    write_reviews(tmp_path / "review.csv", [0.1] * 60)
    first = watch(watch_config(tmp_path))
    state = (tmp_path / "watch.json").read_bytes()
    assert watch(watch_config(tmp_path)).json() == first.json()
    assert (tmp_path / "watch.json").read_bytes() == state
    (tmp_path / "review.csv").write_text("date,numerator,denominator\n2026-05-01,300,1000\n")
    later = watch(watch_config(tmp_path), keep=False)
    assert later.today == date(2026, 5, 1)
    assert (tmp_path / "watch.json").read_bytes() == state
    (tmp_path / "watch.json").write_text("{}")
    with pytest.raises(InputError, match="not a state file of 'judged watch'"):
        watch(watch_config(tmp_path))


def test_days_that_are_left_out_give_no_alarm(tmp_path):
    write_reviews(tmp_path / "review.csv", [0.1] * 40 + [0.3] * 7 + [0.1] * 20)
    days = FIRST + timedelta(40), FIRST + timedelta(46)
    complete, with_event = (
        watch(watch_config(tmp_path)),
        watch(watch_config(tmp_path, Event(days[0], "a campaign", days[1]))),
    )
    alarms = [[point.start for point in result.watched[0].points if point.alarm] for result in (complete, with_event)]
    assert days[0] in alarms[0]
    assert not alarms[1]


@pytest.mark.parametrize(
    ("after", "decision"), [(0.16, "roll back"), (0.1, "keep"), (0.112, "keep watching"), (0.05, "keep")]
)
def test_a_deployment_is_taken_back_where_it_surely_harms(tmp_path, after, decision):
    write_reviews(tmp_path / "review.csv", [0.1] * 40 + [after] * 20)
    (rollback,) = watch(watch_config(tmp_path, Event(FIRST + timedelta(40), "ranker 2", deploy=True))).rollbacks
    assert rollback.decision == decision
    (guard,) = rollback.guards
    assert guard.ci[0] <= after / 0.1 - 1 <= guard.ci[1]
    if decision != "keep":
        assert guard.loss_per_day == pytest.approx(4000 * (after - 0.1), abs=48)


def test_equal_deployments_are_seldom_taken_back_on_any_day(tmp_path):
    """30 equal systems, each looked at on 30 days: at most 5 % are called harmed at a margin of 0."""
    harmed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        write_reviews(tmp_path / "review.csv", 0.1 + 0.01 * rng.standard_normal(58), seed=seed)
        lines = (tmp_path / "review.csv").read_text().splitlines(keepends=True)
        config = WatchConfig(**{**vars(watch_config(tmp_path)), "margin_relative": 1e-9, "event": (
            Event(FIRST + timedelta(28), "the same", deploy=True),)})  # fmt: skip
        for day in range(30, 59):
            (tmp_path / "review.csv").write_text("".join(lines[:day]))
            (tmp_path / "watch.json").unlink(missing_ok=True)
            if any(rollback.decision == "roll back" for rollback in watch(config).rollbacks):
                harmed += 1
                break
    assert harmed <= 4  # P(more | 0.05 * 30) < 0.02


def write_profits(path, means, sd=1.0, seed=3):
    """Write a table of profit by day: 100 orders with these means, which may be negative, and their standard error."""
    rng = np.random.default_rng(seed)
    lines = ["date,numerator,denominator,error"]
    for i, mean in enumerate(means):
        lines.append(f"{FIRST + timedelta(i)},{100 * (mean + 0.1 * sd * rng.standard_normal()):.6f},100,{0.1 * sd}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("before", "after", "better", "decision", "relative"),
    [
        (-10.0, -20.0, "more", "roll back", -1.0),
        (-10.0, -5.0, "more", "keep", 0.5),
        (-10.0, -5.0, "less", "roll back", 0.5),
        (10.0, 5.0, "more", "roll back", -0.5),
        (0.0, -5.0, "more", "roll back", None),
        (0.0, 5.0, "more", "keep", None),
        (0.0, 0.0, "more", "keep watching", None),
    ],
)
def test_a_loss_is_a_loss_whatever_the_sign_of_the_baseline(tmp_path, before, after, better, decision, relative):
    write_profits(tmp_path / "review.csv", [before] * 40 + [after] * 10)
    (rollback,) = watch(
        watch_config(tmp_path, Event(FIRST + timedelta(40), "ranker 2", deploy=True), better=better)
    ).rollbacks
    assert rollback.decision == decision
    (guard,) = rollback.guards
    if relative is None:  # the baseline's interval holds 0
        assert np.isnan([guard.relative, *guard.ci]).all()
    else:
        assert guard.relative == pytest.approx(relative, abs=0.05)
        assert guard.ci[0] < guard.relative < guard.ci[1]


@pytest.mark.parametrize(("before", "is_decided"), [(7, False), (8, True)])
def test_a_deployment_is_judged_from_eight_points_before_it(tmp_path, before, is_decided):
    write_reviews(tmp_path / "review.csv", [0.1] * 40 + [0.3] * 5)
    first = Event(FIRST + timedelta(10), "a campaign", FIRST + timedelta(39 - before))
    (rollback,) = watch(watch_config(tmp_path, first, Event(FIRST + timedelta(40), "ranker 2", deploy=True))).rollbacks
    assert rollback.decision == ("roll back" if is_decided else "no data")


def test_a_roll_back_and_nothing_is_off_are_never_said_together(tmp_path):
    write_reviews(tmp_path / "review.csv", [0.1] * 40 + [0.16] * 2)
    for event in ((), (Event(FIRST + timedelta(40), "ranker 2", deploy=True),)):
        for days in (40, 41, 42):
            lines = (tmp_path / "review.csv").read_text().splitlines(keepends=True)
            (tmp_path / "review.csv").write_text("".join(lines[: days + 1]))
            (tmp_path / "watch.json").unlink(missing_ok=True)
            result = watch(watch_config(tmp_path, *event))
            texts = result.blocks()[0].texts
            assert any(text.startswith("No alarm in") for text in texts) == result.is_healthy
            write_reviews(tmp_path / "review.csv", [0.1] * 40 + [0.16] * 2)
    assert result.rollbacks[0].decision == "roll back"


def test_the_change_of_a_series_below_0_has_its_own_sign(tmp_path):
    write_profits(tmp_path / "review.csv", [-10.0] * 40 + [-20.0] * 20)
    result = watch(watch_config(tmp_path, better="more"))
    (row,) = json.loads(result.json())["series"]
    assert (row["state"], row["relative"]) == ("alarm", pytest.approx(-1.0, abs=0.05))


def test_a_baseline_of_a_week_is_too_short_for_any_series():
    for days, is_long_enough in ((7, False), (8, True)):
        text = f"[watch]\nbaseline_from = 2026-09-01\nbaseline_to = 2026-09-0{days}\n[log]\nmetrics = ['PageCTR']\n"
        if is_long_enough:
            assert parse_watch(text).baseline_to == date(2026, 9, 8)
        else:
            with pytest.raises(InputError, match="at least 8 days, got 7") as error:
                parse_watch(text, "watch.toml")
            assert error.value.line == 3


def test_canaries_that_change_are_off_without_judgments_too(tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n")
    run_text = "q1 Q0 a 1 3 x\nq1 Q0 c 2 2 x\nq2 Q0 d 1 3 x\nq2 Q0 b 2 2 x\n"
    for i in range(14):
        text = run_text.replace("c 2 2", "e 2 2") if i >= 12 else run_text
        (tmp_path / f"canary-{FIRST + timedelta(i)}.run").write_text(text)
    config = f"[watch]\nbaseline_from = {FIRST}\nbaseline_to = {FIRST + timedelta(9)}\n[[canary]]\n"
    (tmp_path / "watch.toml").write_text(config + 'qrels = "qrels.txt"\nruns = "canary-*.run"\nmeasures = ["RR"]\n')
    score, overlap = watch(tmp_path / "watch.toml").watched
    assert (score.series, score.state, score.level) == ("RR of canaries", "ok", 0.75)
    assert (overlap.series, overlap.state, overlap.since) == ("RBO of canaries", "alarm", FIRST + timedelta(12))


def test_canaries_that_never_varied_but_by_rounding_are_off_from_the_day_they_change(tmp_path):
    sample.copy(tmp_path / "sample")
    folder = tmp_path / "sample" / "runs"
    for i in range(14):
        text = gzip.decompress((folder / f"{'tfidf' if i == 13 else 'bm25'}.run.gz").read_bytes())
        (tmp_path / f"canary-{FIRST + timedelta(i)}.run").write_bytes(text)
    lines = gzip.decompress((folder / "bm25.run.gz").read_bytes()).decode().splitlines(keepends=True)
    canary = CanarySeries("sample/qrels.txt", "canary-*.run")
    config = WatchConfig(FIRST, FIRST + timedelta(9), canary=(canary,), path=str(tmp_path / "watch.toml"))
    assert [series.since for series in watch(config).watched] == [FIRST + timedelta(13)] * 2
    (tmp_path / f"canary-{FIRST + timedelta(13)}.run").write_text("".join(lines[:8]))
    overlap = watch(config).watched[1]  # one of 48 queries is answered as before, the others not at all
    assert 0 < overlap.level <= overlap.center / 48 * 1.02


def test_the_command_from_a_log_to_a_drop_in_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = SimulationPlan(users=Users(number=1500), days=60, drift=(Drift("attractiveness", 45.0, 0.7),))
    logs = [str(path) for path in simulate(plan, seed=1).write(tmp_path, form="ndjson")]
    assert process("watch", "w.toml", *logs, "--init").code == 0
    text = (tmp_path / "w.toml").read_text()
    assert read_watch("w.toml").state == "w.json"  # another one beside it does not mix with what this one saw
    repeated = process("watch", "w.toml", *logs, "--init")
    assert (repeated.code, "--force" in repeated.err, (tmp_path / "w.toml").read_text()) == (2, True, text)
    (tmp_path / "w.toml").write_text(
        text + '[[event]]\ndate = 2025-03-01\nuntil = 2026-01-01\ndescription = "the end"\n'
    )
    ended = process("watch", "w.toml", *logs, "--format", "json", "--prometheus", "p.txt")
    rows = {row["series"]: row for row in json.loads(ended.out)["series"] if not row["part"]}
    assert ended.code == 1
    assert rows["SatisfiedPageCTR"]["state"] == "alarm"
    assert "2025-02-12" <= rows["SatisfiedPageCTR"]["since"] <= "2025-02-20"
    assert 'judged_watch_alarm{series="SatisfiedPageCTR",part=""} 1\n' in (tmp_path / "p.txt").read_text()
    assert process("watch", "w.toml").code == 1  # the state knows


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[watch]\nbaseline_from = 2026-01-01\n[log]\nmetrics = ['PageCTR']\n", 1, "the key baseline_to is missing"),
        ("[watch]\nbaseline_from = '2026-01-01'\n", 2, "is not a date"),
        ("[watch]\nalarms = 1\n", 2, "alarms"),
        ("[watch]\nbaseline_from = 2026-01-01\nbaseline_to = 2026-02-01\n", 1, "has no series"),
        ("[watch]\nbaseline_from = 2026-02-01\nbaseline_to = 2026-01-01\n", 3, "must be after"),
        ("[[series]]\nname = 'x'\n", 1, "the key table is missing"),
        ("[[series]]\nname = 'x'\ntable = 'y'\nbetter = 'up'\n", 4, "better is 'up'"),
        ("[wacth]\n", 1, "wacth"),
        ("[[event]]\ndescription = 'x'\ndate = 2026-02-01\nuntil = 2026-01-01\n", 4, "must not be before"),
        ("[[event]]\ndescription = 'x'\ndate = 2026-02-01\n", 1, "no effect"),
    ],
)
def test_what_is_wrong_in_a_configuration_is_said_with_its_line(text, line, problem):
    with pytest.raises(InputError, match=problem) as error:
        parse_watch(text, "watch.toml")
    assert (error.value.path, error.value.line) == ("watch.toml", line)


def test_a_table_of_one_slice_is_watched(tmp_path):
    write_reviews(tmp_path / "review.csv", [0.1] * 40 + [0.2] * 5, slices=("shoes",))
    (series,) = watch(watch_config(tmp_path)).watched
    assert (series.part, series.state) == ("shoes", "alarm")


def test_a_series_that_varies_without_known_errors_is_no_constant():
    """Quantiles of few pages have no error: what strays as it always did is no alarm."""
    values = np.tile([0.05, 0.08, 0.06, 0.07], 15)
    without_errors = DailySeries(FIRST, values, np.full(60, np.nan), np.full(60, 5.0))
    config = WatchConfig(FIRST, FIRST + timedelta(27), log=LogSeries(("PageCTR",)))
    assert watch_series(("x", ""), without_errors, SeriesKind(-1), config, 0.01).state == "not monitored"


def test_logs_of_one_day_each_lose_no_day(tmp_path, monkeypatch):
    """Few pages, none at night: the log of a day begins late and ends early."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.toml").write_text(
        "[watch]\nbaseline_from = 2026-03-02\nbaseline_to = 2026-03-20\nstate = 'w.json'\n"
        "[log]\nmetrics = ['ZeroResultQueries']\n"
    )
    for day in ("2026-03-02", "2026-03-03"):
        rows = [
            {"query_id": f"{day}-{hour}", "client_id": f"u{hour}", "user_query": "a", "query_response_hit_ids": ["d"],
             "timestamp": f"{day}T{hour}:00:00Z"} for hour in range(10, 20)
        ]  # fmt: skip
        (tmp_path / "log.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert process("watch", "w.toml", "log.ndjson").code == 0
    points = json.loads((tmp_path / "w.json").read_text())["points"]
    assert [(row[0], row[2]) for row in points] == [
        ("ZeroResultQueries", "2026-03-02"),
        ("ZeroResultQueries", "2026-03-03"),
    ]


@pytest.mark.parametrize(
    "row", ['["r", "", "abc", 1, 1, 1, 1]', '["r", "", "2026-03-02", "x", 1, 1, 1]', '["r", ""]', "{}"]
)
def test_states_that_are_none_are_refused(tmp_path, row):
    write_reviews(tmp_path / "review.csv", [0.1] * 40)
    (tmp_path / "watch.json").write_text(f'{{"watch": 1, "points": [{row}]}}')
    with pytest.raises(InputError, match="not a state file of 'judged watch'"):
        watch(watch_config(tmp_path))


@pytest.mark.parametrize("row", ["2026-03-03,nan,10,", "2026-03-03,1,inf,", "2026-03-03,1,10,-1", "2026-03-02,1,10,"])
def test_rows_that_cannot_be_are_refused_with_their_line(tmp_path, row):
    (tmp_path / "review.csv").write_text(f"date,numerator,denominator,error\n2026-03-02,1,10,\n{row}\n")
    with pytest.raises(InputError) as error:
        watch(watch_config(tmp_path))
    assert error.value.line == 3


def test_rows_that_cannot_be_read_and_baselines_without_days(tmp_path):
    (tmp_path / "review.csv").write_text("date,numerator,denominator\nyesterday,1,2\n")
    with pytest.raises(InputError) as error:
        watch(watch_config(tmp_path))
    assert error.value.line == 2
    write_reviews(tmp_path / "review.csv", [0.1] * 5)
    (series,) = watch(watch_config(tmp_path)).watched
    assert series.state == "not monitored"
    with pytest.raises(InputError, match="cannot be read"):
        read_watch(tmp_path / "none.toml")


def test_classes_of_another_slice_are_not_mixed_in(tmp_path):
    def config_by(by):
        log = LogSeries(("SatisfiedPageCTR",), by)
        return WatchConfig(date(2025, 1, 1), date(2025, 1, 14), log=log, state="s.json", path=str(tmp_path / "w"))

    log = simulate(SimulationPlan(users=Users(number=600), days=24), seed=2).log()
    by_device = watch(config_by("device"), log)
    assert {series.part for series in by_device.watched} >= {"", "mix", "device=desktop", "device=mobile"}
    by_language = watch(config_by("language"), log)
    assert not [series for series in by_language.watched if series.part.startswith("device=")]
    assert watch(config_by("device")).json() == by_device.json()


@pytest.mark.parametrize(("error", "days"), [(0.2, 1), (0.5, 7), (1.0, 14), (2.0, 0)])
def test_points_of_money_have_as_many_days_as_bring_ten_equal_sums(error: float, days: int) -> None:
    """An error of half the value is that of 4 equal sums a day: 28 a week. 28 days with 1 / 4 of one a day are 7."""
    n_days = 28 * 10
    values = 1.0 + error * np.random.default_rng(3).normal(size=n_days)
    series = DailySeries(date(2026, 1, 1), values - values.mean() + 1.0, np.full(n_days, error), np.ones(n_days))
    config = WatchConfig(
        date(2026, 1, 1), date(2026, 1, 1) + timedelta(n_days - 1), log=LogSeries(("RevenuePerSearch",))
    )
    result = watch_series(("RevenuePerSearch", ""), series, SeriesKind(1, amount=True), config, 0.01)
    assert (result.state == "not monitored") is (days == 0)
    assert not days or result.days == days
    assert watch_series(("RevenuePerSearch", ""), series, SeriesKind(1), config, 0.01).days == 1
