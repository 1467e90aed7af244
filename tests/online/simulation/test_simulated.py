"""Simulated logs: small cases by hand, true values recomputed from the rows, damage, formats, and randomness."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from judged.errors import InputError
from judged.online.log import ACTIONS
from judged.online.simulation import (
    Bots,
    Dbn,
    Drift,
    LogDamage,
    PageBehavior,
    PositionBased,
    SimulatedArm,
    SimulatedCollection,
    SimulatedLog,
    SimulationPlan,
    Users,
    Visits,
    closed_form_obstacles,
    population,
    simulate,
)
from judged.online.simulation.rows import assign_ids, event_columns, query_columns
from judged.online.simulation.simulated import write_large
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from pathlib import Path

ALONE = Visits(after_failure=0, after_zero=0, after_success=0)
SMALL = SimulationPlan(users=Users(number=60))
DAMAGED = LogDamage(
    duplicated_events=0.03,
    lost_events=0.03,
    future_events=0.01,
    unreadable_times=0.02,
    duplicated_queries=0.05,
    facet_requests=0.2,
    lost_queries=0.03,
    zero_based="type-ahead",
    skewed_users=0.1,
    truncated=True,
)
APPLICATIONS = {"primary-search": 0.7, "type-ahead": 0.3}
EVERYTHING = SimulationPlan(
    arms=(SimulatedArm("control", "a", 1.0, 0.6), SimulatedArm("treatment", "b", 0.3, 0.4)),
    users=Users(number=80, correlation=0.4),
    browsing=Dbn(),
    visits=Visits(next_page=0.3, churn=0.2),
    page=PageBehavior(heartbeat=10.0, copy=0.2, filtered=0.1),
    applications=APPLICATIONS,
    drift=(Drift("attractiveness", 5, 0.5),),
    fresh_days=7,
    bots=Bots(rate=0.05, pages=40, clicks=0.02),
    damage=DAMAGED,
)


@pytest.fixture(scope="module")
def damaged() -> SimulatedLog:
    return simulate(EVERYTHING, 7)


def rows_of(log: SimulatedLog) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    ids, written = assign_ids(log.sample), log.sample.written_rows()
    events = event_columns(log.sample, ids, written)
    events["time_ms"] = pa.array(events["time_ms"].to_numpy(), mask=events["unreadable"].to_numpy(False))
    return pa.table(query_columns(log.sample, ids, written)).to_pylist(), pa.table(events).to_pylist()


def test_a_certain_world_gives_exact_clicks() -> None:
    """In ideal order, two of four results are relevant; exactly these are clicked."""
    plan = SimulationPlan(
        collection=SimulatedCollection(
            topics=3, documents=4, grades=(0.5, 0.5), attractiveness=(0, 1), satisfaction=(0, 1),
            short=0, misspelt=0, zero=0, zero_misspelt=0,
        ),
        arms=(SimulatedArm("only", "ideal", 0.0, 1.0),),
        browsing=PositionBased((1.0,)),
        users=Users(number=5, least=2, tail=1e9, propensity=None),
        visits=replace(ALONE, again=0),
        page=PageBehavior(size=4, hover=0, cart_satisfied=1, cart_not=0, purchase=1),
    )  # fmt: skip
    log = simulate(plan, 3)
    queries, events = rows_of(log)
    grades = {(row["query_id"], row["doc_id"]): row["relevance"] for row in log.qrels().table.to_pylist()}
    assert len(queries) == 10 == log.truth.counts["pages"] == log.truth.counts["sessions"]
    for query in queries:
        relevant = [grades[query["query"], document] for document in query["hit_ids"]]
        assert relevant == sorted(relevant, reverse=True)
        page_events = [event for event in events if event["query_id"] == query["query_id"]]
        clicked = [event["position"] for event in page_events if event["action"] == "click"]
        assert clicked == [rank for rank, grade in enumerate(relevant, 1) if grade == 1]
        assert [event["position"] for event in page_events if event["action"] == "impression"] == [1, 2, 3, 4]
        assert [event["position"] for event in page_events if event["action"] == "purchase"] == clicked
        assert ("page_exit" in {event["action"] for event in page_events}) == (4 not in clicked)
        assert [event["object_id"] for event in page_events if event["action"] == "click"] == query["hit_ids"][
            : len(clicked)
        ]
    assert log.truth.ratios["AddToCart"] == log.truth.ratios["Conversion"]
    assert log.truth.ratios["AddToCart"].numerator == log.truth.ratios["PageCTR"].numerator


def test_true_values_equal_a_recount_of_the_rows() -> None:
    log = simulate(replace(SMALL, browsing=Dbn(), visits=Visits(next_page=0.2)), 11)
    queries, events = rows_of(log)
    truth = log.truth
    clicks = [row for row in events if row["action"] == "click"]
    by_page = Counter(row["query_id"] for row in clicks)
    answered = [row for row in queries if row["n_total"] > 0]
    assert truth.ratios["PageCTR"].numerator == len(by_page)
    assert truth.ratios["PageCTR"].denominator == len(answered)
    assert truth.ratios["ImpressionCTR"].denominator == sum(len(row["hit_ids"]) for row in queries)
    assert truth.ratios["ClicksPerPage"].numerator == len(clicks) == truth.clicks.num_rows
    first_pages = [row for row in queries if row["page"] == 1]
    assert truth.ratios["ZeroResults"].numerator == sum(row["n_total"] == 0 for row in first_pages)
    assert truth.ratios["ZeroResults"].denominator == len(first_pages) < len(queries)
    first_clicks = {row["query_id"]: row["position"] for row in reversed(clicks)}  # events are ordered by time
    assert truth.ratios["FirstClickRR"].numerator == pytest.approx(sum(1 / rank for rank in first_clicks.values()))
    assert [ratio.numerator for ratio in truth.ctr_by_rank[:10]] == [
        Counter(row["position"] for row in clicks)[rank] for rank in range(1, 11)
    ]
    assert truth.ratios["AddToCart"].numerator == len(
        {row["query_id"] for row in events if row["action"] == "add_to_cart"}
    )
    assert truth.counts["sessions"] == len({row["session_id"] for row in queries})
    assert truth.counts["users"] == len({row["user_id"] for row in queries}) == 60
    assert truth.counts["events"] == len(events)
    assert {row["action"] for row in events} <= set(ACTIONS)


def test_dwell_and_sessions_can_be_read_from_times() -> None:
    """The next action of the user ends a visit at its true length, and sessions are at least 30 minutes apart."""
    log = simulate(replace(SMALL, page=PageBehavior(heartbeat=20.0)), 2)
    queries, events = rows_of(log)
    actions_on_result = {"heartbeat", "add_to_cart", "purchase"}
    action_times: dict[str, list[int]] = {}
    for row in [*queries, *events]:
        if row.get("action") not in actions_on_result:
            action_times.setdefault(row["session_id"], []).append(row["time_ms"])
    visits = {(row["query_id"], row["rank"]): row for row in log.truth.clicks.to_pylist()}
    for row in events:
        if row["action"] == "click":
            later = [time for time in action_times[row["session_id"]] if time > row["time_ms"]]
            visit = visits[row["query_id"], row["position"]]
            assert visit["censored"] == (not later)
            if later:
                assert min(later) - row["time_ms"] == visit["dwell_ms"]
    times_by_user: dict[str, list[tuple[int, str]]] = {}
    for row in [*queries, *events]:
        times_by_user.setdefault(row["user_id"], []).append((row["time_ms"], row["session_id"]))
    for times in times_by_user.values():
        times.sort()
        for (before, session), (time, following) in pairwise(times):
            assert (time - before > 1_800_000) == (session != following)


def test_reformulations_can_be_classified_by_their_texts() -> None:
    log = simulate(SMALL, 4)
    kinds = Counter[str]()
    by_session: dict[str, list[dict[str, Any]]] = {}
    for query in rows_of(log)[0]:
        by_session.setdefault(query["session_id"], []).append(query)
    for session in by_session.values():
        for query, following in pairwise(session):
            if following["time_ms"] - query["time_ms"] <= 300_000:
                kinds[_kind(query["query"].split(), following["query"].split())] += 1
    for kind in ("spelling", "specialize", "generalize", "substitute"):
        assert log.truth.ratios[f"{kind.capitalize()}Reformulation"].numerator == kinds[kind] > 0
    assert kinds["new"] > 0
    assert log.truth.ratios["Reformulation"].numerator == kinds.total() - kinds["new"]


def _kind(words: list[str], next_words: list[str]) -> str:
    if len(words) != len(next_words):
        return (
            "new"
            if not set(words) & set(next_words)
            else ("specialize" if len(next_words) > len(words) else "generalize")
        )
    different = [i for i in range(len(words)) if words[i] != next_words[i]]
    return {(0,): "spelling", (1,): "substitute"}.get(tuple(different), "new")


@pytest.mark.parametrize("browsing", [PositionBased(), Dbn(0.8)], ids=["pbm", "dbn"])
def test_samples_agree_with_the_closed_forms(browsing: PositionBased | Dbn) -> None:
    plan = SimulationPlan(users=Users(number=2500), visits=ALONE, browsing=browsing)
    closed, simulated = (
        population(plan, users=0),
        population(replace(plan, visits=replace(ALONE, after_zero=1e-12)), users=2500),
    )
    truth = simulate(plan, 1).truth
    for name, expected in closed.items():
        if name in truth.ratios:
            assert expected.how == "closed form"
            assert abs(truth.value(name) - expected.value) <= 4 * simulated[name].error, name
            assert abs(simulated[name].value - expected.value) <= 4 * simulated[name].error, name
            assert 0 < simulated[name].error < 0.03
    for rank, (clicks, examinations) in enumerate(zip(truth.ctr_by_rank, truth.examination, strict=True), 1):
        assert clicks.value == pytest.approx(closed[f"CTR at rank {rank}"].value, abs=0.025)
        assert examinations.value == pytest.approx(closed[f"Examination at rank {rank}"].value, abs=0.025)
    if isinstance(browsing, PositionBased):
        assert closed["Examination at rank 3"].value == pytest.approx(0.64, abs=1e-12)


def test_the_propensity_scales_click_rates() -> None:
    """The mean of Beta(4, 2) is 2/3, so the CTR at rank 1 is 2/3 of the CTR without propensities."""
    with_propensity, without = (
        population(SimulationPlan(visits=ALONE, users=Users(propensity=parameters)), users=0)
        for parameters in ((4.0, 2.0), None)
    )
    for name in ("ClicksPerPage", "ImpressionCTR", "CTR at rank 1", "CTR at rank 7"):
        assert with_propensity[name].value == pytest.approx(2 / 3 * without[name].value, abs=1e-12)
    assert with_propensity["PageCTR"].value > 2 / 3 * without["PageCTR"].value


def test_plans_without_a_closed_form() -> None:
    assert closed_form_obstacles(SimulationPlan(visits=ALONE)) == ()
    assert len(closed_form_obstacles(EVERYTHING)) == 6
    assert population(EVERYTHING, users=0) == {}


def test_damage_is_counted_exactly_and_does_not_change_other_rows(damaged: SimulatedLog) -> None:
    undamaged = damaged.without_damage()
    queries, events = rows_of(damaged)
    clean_queries, clean_events = rows_of(undamaged)
    counts = damaged.truth.damage_counts
    assert min(counts.values()) > 0
    assert undamaged.truth.ratios == damaged.truth.ratios
    assert set(undamaged.truth.damage_counts.values()) == {0}
    rows = Counter(row["query_id"] for row in queries)
    assert sum(row["size"] == 0 for row in queries) == counts["facet_requests"]
    assert all(row["hit_ids"] == [] for row in queries if row["size"] == 0)
    assert sum(count == 2 for count in rows.values()) == counts["facet_requests"] + counts["duplicated_queries"]
    assert len(clean_queries) - len(rows) == counts["lost_queries"]
    ids = Counter(row["event_id"] for row in events)
    assert sum(count == 2 for count in ids.values()) == counts["duplicated_events"]
    assert len(clean_events) - len(ids) == counts["lost_events"]
    assert sum(row["time_ms"] is None for row in events) == counts["unreadable_times"]
    end = max(row["time_ms"] for row in clean_events)
    assert sum(row["time_ms"] is not None and row["time_ms"] > end for row in events) == counts["future_events"]
    query_times = {query["query_id"]: query["time_ms"] for query in clean_queries}
    early = [row for row in events if row["time_ms"] is not None and row["time_ms"] < query_times[row["query_id"]]]
    assert len(early) == counts["events_before_their_query"]
    assert sum(row["query_id"] not in rows for row in events) == counts["orphaned_events"]
    with_position = [row for row in events if row["position"] is not None]
    assert sum(row["application"] == "type-ahead" for row in with_position) == counts["zero_based_ranks"]
    lowest_positions = {
        name: min(row["position"] for row in with_position if row["application"] == name) for name in APPLICATIONS
    }
    assert lowest_positions == {"primary-search": 1, "type-ahead": 0}


def test_bots_are_excluded_from_the_true_values(damaged: SimulatedLog) -> None:
    bots = damaged.truth.bots
    queries, events = rows_of(damaged)
    assert len(bots) == 4
    assert sum(row["user_id"] in bots for row in queries) == damaged.truth.bot_queries > 140
    assert sum(row["user_id"] in bots for row in events) == damaged.truth.bot_events > 0
    declared = {row["user_id"] for row in queries if "bot" in row["user_agent"]}
    assert len(declared) == 2
    assert declared < bots
    assert not bots & set(damaged.truth.pages["user_id"].to_pylist())
    times = sorted(row["time_ms"] for row in rows_of(damaged.without_damage())[0] if row["user_id"] == min(bots))
    assert {after - before for before, after in pairwise(times)} == {1000}
    without_bots = simulate(replace(EVERYTHING, bots=Bots()), 7).truth
    assert without_bots.ratios == damaged.truth.ratios
    assert without_bots.clicks.equals(damaged.truth.clicks)


def test_results_are_reproducible(damaged: SimulatedLog) -> None:
    repeated = simulate(EVERYTHING, 7)
    assert repeated.queries.equals(damaged.queries)
    assert repeated.events.equals(damaged.events)
    other = simulate(EVERYTHING, 8)
    assert not other.queries.equals(damaged.queries)
    assert np.array_equal(other.sample.world.grades, damaged.sample.world.grades)  # one collection, other users
    other_collection = simulate(replace(EVERYTHING, collection=replace(EVERYTHING.collection, seed=1)), 7)
    assert not np.array_equal(other_collection.sample.world.grades, damaged.sample.world.grades)


def test_drift_churn_and_changing_lists() -> None:
    start = SimulationPlan(users=Users(number=1500), visits=ALONE)
    drifting = simulate(replace(start, drift=(Drift("attractiveness", 14, 0.5), Drift("latency", 14, 3.0))), 1)
    pages = drifting.truth.pages
    late = pc.greater_equal(pages["time_ms"], start.start + 14 * 86_400_000)
    before, after = pages.filter(pc.invert(late)), pages.filter(late)
    clicks = [pc.sum(period["clicks"]).as_py() / period.num_rows for period in (before, after)]
    assert clicks[1] / clicks[0] == pytest.approx(0.5, abs=0.05)
    latencies = [pc.mean(period["latency"]).as_py() for period in (before, after)]
    assert latencies[1] / latencies[0] == pytest.approx(3.0, rel=0.05)
    without_churn, with_churn = (
        simulate(replace(start, visits=replace(ALONE, churn=rate)), 1).truth for rate in (0.0, 1.0)
    )
    assert with_churn.counts["pages"] < 0.8 * without_churn.counts["pages"]
    assert without_churn.counts["users"] == with_churn.counts["users"]
    few_users = replace(start, users=Users(number=200))
    assert max_lists_per_query(simulate(replace(few_users, fresh_days=7), 1)) == start.collection.versions
    assert max_lists_per_query(simulate(few_users, 1)) == 1


def max_lists_per_query(log: SimulatedLog) -> int:
    """Return the largest number of different lists of one query."""
    pages = zip(log.queries["user_query"].to_pylist(), log.queries["query_response_hit_ids"].to_pylist(), strict=True)
    return max(Counter(text for text, _ in {(text, tuple(hits)) for text, hits in pages if hits}).values())


@needs_shared
def test_the_written_log_is_valid_ubi(damaged: SimulatedLog, tmp_path: Path) -> None:
    import jsonschema

    schemas = {
        "ubi_queries": json.loads((SHARED / "ubi_schema_1.3.0" / "query.request.schema.json").read_text()),
        "ubi_events": json.loads((SHARED / "ubi_schema_1.3.0" / "event.schema.json").read_text()),
    }
    action_names = schemas["ubi_events"]["properties"]["action_name"]
    action_names["anyOf"] = action_names.pop(
        "oneOf"
    )  # as published, UBI's own names of actions match both branches, and none is valid
    for path in damaged.without_damage().write(tmp_path, "ndjson"):
        validator = jsonschema.Draft202012Validator(schemas[path.stem], format_checker=jsonschema.FormatChecker())
        lines = path.read_text().splitlines()
        assert len(lines) > 300
        for line in lines[::7]:
            validator.validate(json.loads(line))


def test_all_formats_have_the_same_rows(damaged: SimulatedLog, tmp_path: Path) -> None:
    undamaged = damaged.without_damage()
    paths_by_format = {form: undamaged.write(tmp_path / form, form) for form in ("parquet", "ndjson", "bulk", "csv")}
    assert [len(paths) for paths in paths_by_format.values()] == [2, 2, 1, 2]
    tables = [pq.read_table(path) for path in paths_by_format["parquet"]]
    assert [table.num_rows for table in tables] == [undamaged.queries.num_rows, undamaged.events.num_rows]
    lines = [path.read_text().splitlines() for path in paths_by_format["ndjson"]]
    bulk = paths_by_format["bulk"][0].read_text().splitlines()
    assert bulk[1::2] == [*lines[0], *lines[1]]
    assert Counter(bulk[::2]) == {
        '{"index": {"_index": "ubi_queries"}}': len(lines[0]),
        '{"index": {"_index": "ubi_events"}}': len(lines[1]),
    }
    first = json.loads(lines[0][0])
    assert first["timestamp"].endswith("Z")
    assert first["query_response_hit_ids"] == tables[0]["query_response_hit_ids"][0].as_py()
    assert [table.num_rows for table in map(pyarrow.csv.read_csv, paths_by_format["csv"])] == [
        table.num_rows for table in tables
    ]
    truncated = damaged.write(tmp_path / "cut", "ndjson")[1].read_text()
    assert not truncated.endswith("\n")
    with pytest.raises(json.JSONDecodeError):
        json.loads(truncated.splitlines()[-1])
    assert len(truncated.splitlines()) == damaged.events.num_rows


def test_a_large_log_is_written_in_row_groups(tmp_path: Path) -> None:
    large = write_large(tmp_path, events=3000, plan=SMALL, seed=1)
    queries, events = (pq.ParquetFile(path) for path in large.files)
    assert 3000 <= large.events == events.metadata.num_rows < 6000
    assert events.metadata.num_row_groups == queries.metadata.num_row_groups > 1
    assert large.queries == queries.metadata.num_rows
    repeated = write_large(tmp_path / "again", events=3000, plan=SMALL, seed=1)
    assert [path.read_bytes() for path in repeated.files] == [path.read_bytes() for path in large.files]
    rows = queries.read()
    assert len(set(rows["query_id"].to_pylist())) == large.queries
    assert rows.schema.field("client_id").type == pa.string()
    assert len(set(rows["client_id"].to_pylist())) == large.users
    assert set(events.read()["query_id"].to_pylist()) <= set(rows["query_id"].to_pylist())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SimulationPlan(arms=(SimulatedArm("a", "r", 1, 0.5), SimulatedArm("b", "r", 1, 0.4))),
            "arms add up to 0.9",
        ),
        (
            lambda: SimulationPlan(arms=(SimulatedArm("a", "r", 1, 0.5), SimulatedArm("a", "r", 1, 0.5))),
            "two arms have the same name",
        ),
        (lambda: SimulationPlan(damage=LogDamage(lost_events=1.5)), "lost_events must be between 0 and 1, got 1.5"),
        (lambda: SimulationPlan(collection=SimulatedCollection(satisfaction=(0.1,))), "1 values for 4 grades"),
        (lambda: SimulationPlan(collection=SimulatedCollection(documents=5)), "do not fill 10 ranks"),
        (lambda: SimulationPlan(page=PageBehavior(longest=4000)), "below 30 minutes"),
        (lambda: write_large("x", events=0), "must be at least 1, got 0"),
    ],
)
def test_invalid_plans(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
