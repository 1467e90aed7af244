"""A rank that the log gives is a fact: lists with gaps, results without an id, and pages that begin further down."""

from __future__ import annotations

from judged.online.findings import doubts
from made_log import found, made, rows
from raw_made import event, query


def test_results_stay_at_the_ranks_that_the_log_gives_them() -> None:
    log = made([query("1", hits=["a", "e"], ranks=[1, 5])], [event("1", "click", 1, "e", position=5)])
    assert rows(log.shown, "object_id", "rank") == [("a", 1), ("e", 5)]
    assert rows(log.event, "rank") == [(5,)]
    assert rows(log.serp, "first_rank", "n_shown", "ranks") == [(1, 2, [1, 5])]
    assert not log.findings


def test_ranks_that_count_up_by_one_need_no_list() -> None:
    log = made([query("1", hits=["a", "b"], ranks=[3, 4])])
    assert rows(log.serp, "first_rank", "ranks") == [(3, None)]
    assert rows(log.shown, "object_id", "rank") == [("a", 3), ("b", 4)]


def test_a_click_is_at_the_rank_of_its_list_with_gaps_whether_it_says_so_or_not() -> None:
    events = [
        event("1", "click", 1, "e"),
        event("1", "click", 2, "z", position=3),
        event("1", "click", 3, "z", position=9),
    ]
    log = made([query("1", hits=["a", "e"], ranks=[1, 5])], events)
    assert rows(log.event, "object_id", "rank") == [("e", 5), ("z", 3), ("z", 9)]
    assert found(log)["event", "rank-beyond-list"] == (1, 3, "kept")


def test_a_result_without_an_id_keeps_its_place() -> None:
    log = made([query("1", hits=[None, "b"])], [event("1", "click", 1, "b", position=2)])  # type: ignore[list-item]
    assert rows(log.shown, "object_id", "rank") == [("b", 2)]
    assert rows(log.serp, "n_shown", "zero_results") == [(2, False)]
    assert rows(log.event, "rank") == [(2,)]
    assert not log.findings


def test_what_is_behind_the_last_id_is_no_result_and_a_list_without_ids_tells_nothing() -> None:
    log = made([query("1", hits=["a", None, None]), query("2", hits=[None]), query("3", hits=[])])  # type: ignore[list-item]
    assert rows(log.serp, "query_id", "n_returned", "zero_results") == [
        ("1", 1, False), ("2", None, None), ("3", 0, True),
    ]  # fmt: skip


def test_of_a_result_that_stands_twice_in_a_list_the_one_at_the_position_was_clicked() -> None:
    log = made([query("1", hits=["a", "b", "a"])], [event("1", "click", 1, "a", position=3)])
    assert rows(log.event, "rank") == [(3,)]
    assert not log.findings


def test_impressions_stand_where_they_say_with_gaps_and_unknown_where_they_say_nothing() -> None:
    seen = [event("1", "impression", at, name, position=at) for at, name in ((1, "p"), (5, "q"))]
    log = made([query("1", hits=None), query("2", hits=None)], [*seen, event("2", "impression", 9, "x")])
    assert rows(log.shown, "object_id", "rank") == [("p", 1), ("q", 5)]
    assert rows(log.serp, "query_id", "n_shown", "ranks") == [("1", 2, [1, 5]), ("2", 1, [])]


def on_the_second_page(*places: int, by: int = 10, **more: object) -> tuple[list[dict[str, object]], ...]:
    names = "abcdefghij"
    events = [event("1", "click", at, names[place - 1], position=place + by) for at, place in enumerate(places, 1)]
    return [query("1", hits=list(names), **more)], events


def test_positions_that_are_all_as_far_behind_say_where_the_page_begins() -> None:
    log = made(*on_the_second_page(1, 3, 10))
    assert rows(log.serp, "first_rank", "page") == [(11, 2)]
    assert rows(log.event, "rank") == [(11,), (13,), (20,)]
    assert rows(log.shown, "rank")[0] == (11,)
    assert found(log) == {("query", "first-rank-from-positions"): (1, 1, "kept")}


def test_one_position_behind_the_end_of_the_list_is_enough_and_one_within_it_is_not() -> None:
    assert rows(made(*on_the_second_page(3)).serp, "first_rank", "page") == [(11, 2)]
    within = made(*on_the_second_page(3, by=2))
    assert rows(within.serp, "first_rank", "page") == [(1, 1)]
    assert found(within)["event", "rank-disagrees"] == (1, 1, "repaired")


def test_a_page_that_says_where_it_begins_is_believed() -> None:
    log = made(*on_the_second_page(1, 3, by=20, page=2, size=10))
    assert rows(log.serp, "first_rank") == [(11,)]
    assert found(log)["event", "rank-disagrees"] == (2, 2, "repaired")


def test_positions_in_another_order_say_nothing_of_the_page() -> None:
    queries, events = on_the_second_page(1, 3)
    events[1]["position"] = 12
    log = made(queries, events)
    assert rows(log.serp, "first_rank") == [(1,)]
    assert found(log)["event", "rank-disagrees"] == (2, 2, "repaired")


def test_a_log_in_which_much_was_repaired_is_not_fit() -> None:
    events = [event("1", "click", at, "a", position=1) for at in range(1, 20)]
    wrong = event("1", "click", 40, "c", position=1)
    few = made([query("1")], [*events, wrong])
    assert found(few)["event", "rank-disagrees"] == (1, 20, "repaired")
    assert not doubts(few.accounts, few.findings)
    more = made([query("1")], [*events, wrong, {**wrong, "time_ms": wrong["time_ms"] + 1}])
    (said,) = doubts(more.accounts, more.findings)
    assert "2 of 21" in said
    assert "rank-disagrees" in said


def test_counting_from_0_is_a_way_of_counting_and_no_fault() -> None:
    events = [event("1", "click", at, name, position=at) for at, name in enumerate("abc")]
    log = made([query("1")], events)
    assert ("event", "zero-based-ranks") in found(log)
    assert not doubts(log.accounts, log.findings)
