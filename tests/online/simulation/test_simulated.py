"""Simulated logs: small worlds by hand, the truth counted again from what was written, damage, forms, and chance."""

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
    Arm,
    Bots,
    Broken,
    Collection,
    Dbn,
    Drift,
    OnThePage,
    PositionBased,
    SimulatedLog,
    SimulationPlan,
    Users,
    Visits,
    population,
    simulate,
    why_not_closed,
)
from judged.online.simulation.rows import event_columns, query_columns
from judged.online.simulation.rows import name as names_of
from judged.online.simulation.simulated import write_large
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from pathlib import Path

ALONE = Visits(after_failure=0, after_zero=0, after_success=0)
SMALL = SimulationPlan(users=Users(number=60))
DAMAGED = Broken(
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
TWO = {"primary-search": 0.7, "type-ahead": 0.3}
EVERYTHING = SimulationPlan(
    arms=(Arm("control", "a", 1.0, 0.6), Arm("treatment", "b", 0.3, 0.4)),
    users=Users(number=80, together=0.4),
    browsing=Dbn(),
    visits=Visits(next_page=0.3, churn=0.2),
    page=OnThePage(heartbeat=10.0, copy=0.2, filtered=0.1),
    applications=TWO,
    drift=(Drift("attractiveness", 5, 0.5),),
    fresh_days=7,
    bots=Bots(rate=0.05, pages=40, clicks=0.02),
    broken=DAMAGED,
)


@pytest.fixture(scope="module")
def damaged() -> SimulatedLog:
    return simulate(EVERYTHING, 7)


def rows_of(log: SimulatedLog) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    names, written = names_of(log.drawn), log.drawn.broken()
    events = event_columns(log.drawn, names, written)
    events["time_ms"] = pa.array(events["time_ms"].to_numpy(), mask=events["unreadable"].to_numpy(False))
    return pa.table(query_columns(log.drawn, names, written)).to_pylist(), pa.table(events).to_pylist()


def test_a_certain_world_gives_exact_clicks() -> None:
    """Of four results, in ideal order, half are relevant: exactly these are clicked."""
    plan = SimulationPlan(
        collection=Collection(
            topics=3, documents=4, grades=(0.5, 0.5), attractiveness=(0, 1), satisfaction=(0, 1),
            short=0, misspelt=0, zero=0, zero_misspelt=0,
        ),
        arms=(Arm("only", "ideal", 0.0, 1.0),),
        browsing=PositionBased((1.0,)),
        users=Users(number=5, least=2, tail=1e9, propensity=None),
        visits=replace(ALONE, again=0),
        page=OnThePage(size=4, hover=0, cart_satisfied=1, cart_not=0, purchase=1),
    )  # fmt: skip
    log = simulate(plan, 3)
    queries, events = rows_of(log)
    grades = {(one["query_id"], one["doc_id"]): one["relevance"] for one in log.qrels().table.to_pylist()}
    assert len(queries) == 10 == log.truth.counts["pages"] == log.truth.counts["sessions"]
    for query in queries:
        relevant = [grades[query["query"], document] for document in query["hit_ids"]]
        assert relevant == sorted(relevant, reverse=True)
        own = [one for one in events if one["query_id"] == query["query_id"]]
        clicked = [one["position"] for one in own if one["action"] == "click"]
        assert clicked == [rank for rank, grade in enumerate(relevant, 1) if grade == 1]
        assert [one["position"] for one in own if one["action"] == "impression"] == [1, 2, 3, 4]
        assert [one["position"] for one in own if one["action"] == "purchase"] == clicked
        assert ("page_exit" in {one["action"] for one in own}) == (4 not in clicked)
        assert [one["object_id"] for one in own if one["action"] == "click"] == query["hit_ids"][: len(clicked)]
    assert log.truth.ratios["AddToCart"] == log.truth.ratios["Conversion"]
    assert log.truth.ratios["AddToCart"].numerator == log.truth.ratios["PageCTR"].numerator


def test_the_truth_is_what_a_recount_of_the_sound_log_gives() -> None:
    log = simulate(replace(SMALL, browsing=Dbn(), visits=Visits(next_page=0.2)), 11)
    queries, events = rows_of(log)
    truth = log.truth
    clicks = [one for one in events if one["action"] == "click"]
    by_page = Counter(one["query_id"] for one in clicks)
    answered = [one for one in queries if one["n_total"] > 0]
    assert truth.ratios["PageCTR"].numerator == len(by_page)
    assert truth.ratios["PageCTR"].denominator == len(answered)
    assert truth.ratios["ImpressionCTR"].denominator == sum(len(one["hit_ids"]) for one in queries)
    assert truth.ratios["ClicksPerPage"].numerator == len(clicks) == truth.clicks.num_rows
    front = [one for one in queries if one["page"] == 1]
    assert truth.ratios["ZeroResults"].numerator == sum(one["n_total"] == 0 for one in front)
    assert truth.ratios["ZeroResults"].denominator == len(front) < len(queries)
    firsts = {one["query_id"]: one["position"] for one in reversed(clicks)}  # events are in the order of time
    assert truth.ratios["FirstClickRR"].numerator == pytest.approx(sum(1 / rank for rank in firsts.values()))
    assert [one.numerator for one in truth.ctr_by_rank[:10]] == [
        Counter(one["position"] for one in clicks)[rank] for rank in range(1, 11)
    ]
    assert truth.ratios["AddToCart"].numerator == len(
        {one["query_id"] for one in events if one["action"] == "add_to_cart"}
    )
    assert truth.counts["sessions"] == len({one["session_id"] for one in queries})
    assert truth.counts["users"] == len({one["user_id"] for one in queries}) == 60
    assert truth.counts["events"] == len(events)
    assert {one["action"] for one in events} <= set(ACTIONS)


def test_dwell_and_sessions_can_be_read_from_times() -> None:
    """The next sign of the user ends a visit at its true length; only sessions are 30 minutes apart."""
    log = simulate(replace(SMALL, page=OnThePage(heartbeat=20.0)), 2)
    queries, events = rows_of(log)
    after_the_click = {"heartbeat", "add_to_cart", "purchase"}
    signs: dict[str, list[int]] = {}
    for one in [*queries, *events]:
        if one.get("action") not in after_the_click:
            signs.setdefault(one["session_id"], []).append(one["time_ms"])
    true = {(one["query_id"], one["rank"]): one for one in log.truth.clicks.to_pylist()}
    for one in events:
        if one["action"] == "click":
            later = [time for time in signs[one["session_id"]] if time > one["time_ms"]]
            known = true[one["query_id"], one["position"]]
            assert known["censored"] == (not later)
            if later:
                assert min(later) - one["time_ms"] == known["dwell_ms"]
    moments: dict[str, list[tuple[int, str]]] = {}
    for one in [*queries, *events]:
        moments.setdefault(one["user_id"], []).append((one["time_ms"], one["session_id"]))
    for each in moments.values():
        each.sort()
        for (before, session), (time, following) in pairwise(each):
            assert (time - before > 1_800_000) == (session != following)


def test_reformulations_are_told_by_their_texts() -> None:
    log = simulate(SMALL, 4)
    kinds = Counter[str]()
    by_session: dict[str, list[dict[str, Any]]] = {}
    for one in rows_of(log)[0]:
        by_session.setdefault(one["session_id"], []).append(one)
    for session in by_session.values():
        for one, following in pairwise(session):
            if following["time_ms"] - one["time_ms"] <= 300_000:
                kinds[_kind(one["query"].split(), following["query"].split())] += 1
    for kind in ("spelling", "specialize", "generalize", "substitute"):
        assert log.truth.ratios[f"{kind.capitalize()}Reformulation"].numerator == kinds[kind] > 0
    assert kinds["new"] > 0
    assert log.truth.ratios["Reformulation"].numerator == kinds.total() - kinds["new"]


def _kind(one: list[str], other: list[str]) -> str:
    if len(one) != len(other):
        return "new" if not set(one) & set(other) else ("specialize" if len(other) > len(one) else "generalize")
    different = [at for at in range(len(one)) if one[at] != other[at]]
    return {(0,): "spelling", (1,): "substitute"}.get(tuple(different), "new")


@pytest.mark.parametrize("browsing", [PositionBased(), Dbn(0.8)], ids=["pbm", "dbn"])
def test_realized_values_lie_about_the_closed_forms(browsing: PositionBased | Dbn) -> None:
    plan = SimulationPlan(users=Users(number=2500), visits=ALONE, browsing=browsing)
    closed, run = (
        population(plan, users=0),
        population(replace(plan, visits=replace(ALONE, after_zero=1e-12)), users=2500),
    )
    truth = simulate(plan, 1).truth
    for name, one in closed.items():
        if name in truth.ratios:
            assert one.how == "closed form"
            assert abs(truth.value(name) - one.value) <= 4 * run[name].error, name
            assert abs(run[name].value - one.value) <= 4 * run[name].error, name
            assert 0 < run[name].error < 0.03
    for rank, (clicks, looks) in enumerate(zip(truth.ctr_by_rank, truth.examination, strict=True), 1):
        assert clicks.value == pytest.approx(closed[f"CTR at rank {rank}"].value, abs=0.025)
        assert looks.value == pytest.approx(closed[f"Examination at rank {rank}"].value, abs=0.025)
    if isinstance(browsing, PositionBased):
        assert closed["Examination at rank 3"].value == pytest.approx(0.64, abs=1e-12)


def test_users_differ_only_where_a_propensity_makes_them() -> None:
    """The mean of Beta(4, 2) is 2/3, and the CTR at rank 1 is that share of what it is without propensities."""
    with_, without = (
        population(SimulationPlan(visits=ALONE, users=Users(propensity=given)), users=0) for given in ((4.0, 2.0), None)
    )
    for name in ("ClicksPerPage", "ImpressionCTR", "CTR at rank 1", "CTR at rank 7"):
        assert with_[name].value == pytest.approx(2 / 3 * without[name].value, abs=1e-12)
    assert with_["PageCTR"].value > 2 / 3 * without["PageCTR"].value


def test_a_closed_form_is_refused_where_there_is_none() -> None:
    assert why_not_closed(SimulationPlan(visits=ALONE)) == ()
    assert len(why_not_closed(EVERYTHING)) == 6
    assert population(EVERYTHING, users=0) == {}


def test_damage_is_counted_exactly_and_changes_nothing_else(damaged: SimulatedLog) -> None:
    sound = damaged.unbroken()
    queries, events = rows_of(damaged)
    clean_queries, clean_events = rows_of(sound)
    found = damaged.truth.broken
    assert min(found.values()) > 0
    assert sound.truth.ratios == damaged.truth.ratios
    assert set(sound.truth.broken.values()) == {0}
    rows = Counter(one["query_id"] for one in queries)
    assert sum(one["size"] == 0 for one in queries) == found["facet_requests"]
    assert all(one["hit_ids"] == [] for one in queries if one["size"] == 0)
    assert sum(count == 2 for count in rows.values()) == found["facet_requests"] + found["duplicated_queries"]
    assert len(clean_queries) - len(rows) == found["lost_queries"]
    ids = Counter(one["event_id"] for one in events)
    assert sum(count == 2 for count in ids.values()) == found["duplicated_events"]
    assert len(clean_events) - len(ids) == found["lost_events"]
    assert sum(one["time_ms"] is None for one in events) == found["unreadable_times"]
    end = max(one["time_ms"] for one in clean_events)
    assert sum(one["time_ms"] is not None and one["time_ms"] > end for one in events) == found["future_events"]
    asked = {one["query_id"]: one["time_ms"] for one in clean_queries}
    early = [one for one in events if one["time_ms"] is not None and one["time_ms"] < asked[one["query_id"]]]
    assert len(early) == found["events_before_their_query"]
    assert sum(one["query_id"] not in rows for one in events) == found["orphaned_events"]
    placed = [one for one in events if one["position"] is not None]
    assert sum(one["application"] == "type-ahead" for one in placed) == found["zero_based_ranks"]
    least = {name: min(one["position"] for one in placed if one["application"] == name) for name in TWO}
    assert least == {"primary-search": 1, "type-ahead": 0}


def test_bots_are_known_and_out_of_the_truth(damaged: SimulatedLog) -> None:
    bots = damaged.truth.bots
    queries, events = rows_of(damaged)
    assert len(bots) == 4
    assert sum(one["user_id"] in bots for one in queries) == damaged.truth.bot_queries > 140
    assert sum(one["user_id"] in bots for one in events) == damaged.truth.bot_events > 0
    declared = {one["user_id"] for one in queries if "bot" in one["user_agent"]}
    assert len(declared) == 2
    assert declared < bots
    assert not bots & set(damaged.truth.pages["user_id"].to_pylist())
    times = sorted(one["time_ms"] for one in rows_of(damaged.unbroken())[0] if one["user_id"] == min(bots))
    assert {after - before for before, after in pairwise(times)} == {1000}
    alone = simulate(replace(EVERYTHING, bots=Bots()), 7).truth
    assert alone.ratios == damaged.truth.ratios
    assert alone.clicks.equals(damaged.truth.clicks)


def test_the_same_seed_gives_the_same_bits(damaged: SimulatedLog) -> None:
    again = simulate(EVERYTHING, 7)
    assert again.queries.equals(damaged.queries)
    assert again.events.equals(damaged.events)
    other = simulate(EVERYTHING, 8)
    assert not other.queries.equals(damaged.queries)
    assert np.array_equal(other.drawn.world.grades, damaged.drawn.world.grades)  # one collection, other users
    moved = simulate(replace(EVERYTHING, collection=replace(EVERYTHING.collection, seed=1)), 7)
    assert not np.array_equal(moved.drawn.world.grades, damaged.drawn.world.grades)


def test_drift_churn_and_freshness_do_what_they_say() -> None:
    start = SimulationPlan(users=Users(number=1500), visits=ALONE)
    half = simulate(replace(start, drift=(Drift("attractiveness", 14, 0.5), Drift("latency", 14, 3.0))), 1)
    pages = half.truth.pages
    late = pc.greater_equal(pages["time_ms"], start.start + 14 * 86_400_000)
    before, after = pages.filter(pc.invert(late)), pages.filter(late)
    clicks = [pc.sum(part["clicks"]).as_py() / part.num_rows for part in (before, after)]
    assert clicks[1] / clicks[0] == pytest.approx(0.5, abs=0.05)
    waits = [pc.mean(part["latency"]).as_py() for part in (before, after)]
    assert waits[1] / waits[0] == pytest.approx(3.0, rel=0.05)
    stay, leave = (simulate(replace(start, visits=replace(ALONE, churn=rate)), 1).truth for rate in (0.0, 1.0))
    assert leave.counts["pages"] < 0.8 * stay.counts["pages"]
    assert stay.counts["users"] == leave.counts["users"]
    few = replace(start, users=Users(number=200))
    assert most_lists(simulate(replace(few, fresh_days=7), 1)) == start.collection.versions
    assert most_lists(simulate(few, 1)) == 1


def most_lists(log: SimulatedLog) -> int:
    """How many different lists one text has got."""
    asked = zip(log.queries["user_query"].to_pylist(), log.queries["query_response_hit_ids"].to_pylist(), strict=True)
    return max(Counter(text for text, _ in {(text, tuple(shown)) for text, shown in asked if shown}).values())


@needs_shared
def test_the_written_log_is_valid_ubi(damaged: SimulatedLog, tmp_path: Path) -> None:
    import jsonschema

    schemas = {
        "ubi_queries": json.loads((SHARED / "ubi_schema_1.3.0" / "query.request.schema.json").read_text()),
        "ubi_events": json.loads((SHARED / "ubi_schema_1.3.0" / "event.schema.json").read_text()),
    }
    names = schemas["ubi_events"]["properties"]["action_name"]
    names["anyOf"] = names.pop(
        "oneOf"
    )  # as published, UBI's own names of actions match both branches, and none is valid
    for path in damaged.unbroken().write(tmp_path, "ndjson"):
        check = jsonschema.Draft202012Validator(schemas[path.stem], format_checker=jsonschema.FormatChecker())
        lines = path.read_text().splitlines()
        assert len(lines) > 300
        for line in lines[::7]:
            check.validate(json.loads(line))


def test_every_form_holds_the_same_rows(damaged: SimulatedLog, tmp_path: Path) -> None:
    sound = damaged.unbroken()
    made = {form: sound.write(tmp_path / form, form) for form in ("parquet", "ndjson", "bulk", "csv")}
    assert [len(paths) for paths in made.values()] == [2, 2, 1, 2]
    tables = [pq.read_table(path) for path in made["parquet"]]
    assert [one.num_rows for one in tables] == [sound.queries.num_rows, sound.events.num_rows]
    lines = [path.read_text().splitlines() for path in made["ndjson"]]
    bulk = made["bulk"][0].read_text().splitlines()
    assert bulk[1::2] == [*lines[0], *lines[1]]
    assert Counter(bulk[::2]) == {
        '{"index": {"_index": "ubi_queries"}}': len(lines[0]),
        '{"index": {"_index": "ubi_events"}}': len(lines[1]),
    }
    first = json.loads(lines[0][0])
    assert first["timestamp"].endswith("Z")
    assert first["query_response_hit_ids"] == tables[0]["query_response_hit_ids"][0].as_py()
    assert [table.num_rows for table in map(pyarrow.csv.read_csv, made["csv"])] == [one.num_rows for one in tables]
    cut = damaged.write(tmp_path / "cut", "ndjson")[1].read_text()
    assert not cut.endswith("\n")
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut.splitlines()[-1])
    assert len(cut.splitlines()) == damaged.events.num_rows


def test_a_large_log_comes_in_row_groups(tmp_path: Path) -> None:
    made = write_large(tmp_path, events=3000, plan=SMALL, seed=1)
    queries, events = (pq.ParquetFile(path) for path in made.files)
    assert 3000 <= made.events == events.metadata.num_rows < 6000
    assert events.metadata.num_row_groups == queries.metadata.num_row_groups > 1
    assert made.queries == queries.metadata.num_rows
    again = write_large(tmp_path / "again", events=3000, plan=SMALL, seed=1)
    assert [path.read_bytes() for path in again.files] == [path.read_bytes() for path in made.files]
    rows = queries.read()
    assert len(set(rows["query_id"].to_pylist())) == made.queries
    assert rows.schema.field("client_id").type == pa.string()
    assert len(set(rows["client_id"].to_pylist())) == made.users
    assert set(events.read()["query_id"].to_pylist()) <= set(rows["query_id"].to_pylist())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SimulationPlan(arms=(Arm("a", "r", 1, 0.5), Arm("b", "r", 1, 0.4))), "arms add up to 0.9"),
        (lambda: SimulationPlan(arms=(Arm("a", "r", 1, 0.5), Arm("a", "r", 1, 0.5))), "two arms have one name"),
        (lambda: SimulationPlan(broken=Broken(lost_events=1.5)), "lost_events is 1.5"),
        (lambda: SimulationPlan(collection=Collection(satisfaction=(0.1,))), "1 values for 4 grades"),
        (lambda: SimulationPlan(collection=Collection(documents=5)), "do not fill 10 ranks"),
        (lambda: SimulationPlan(page=OnThePage(longest=4000)), "below 30 minutes"),
        (lambda: write_large("x", events=0), "are no log"),
    ],
)
def test_plans_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
