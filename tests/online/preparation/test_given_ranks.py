"""Logged ranks: lists with gaps, results without an ID, and pages that begin at a deeper rank."""

from __future__ import annotations

from judged.online.findings import unfit_reasons
from made_log import findings_by_rule, prepared_log, rows
from raw_made import event, query


def test_results_have_their_logged_ranks() -> None:
    log = prepared_log([query("1", hits=["a", "e"], ranks=[1, 5])], [event("1", "click", 1, "e", position=5)])
    assert rows(log.shown, "object_id", "rank") == [("a", 1), ("e", 5)]
    assert rows(log.event, "rank") == [(5,)]
    assert rows(log.serp, "first_rank", "n_shown", "ranks") == [(1, 2, [1, 5])]
    assert not log.findings


def test_consecutive_ranks_need_no_list() -> None:
    log = prepared_log([query("1", hits=["a", "b"], ranks=[3, 4])])
    assert rows(log.serp, "first_rank", "ranks") == [(3, None)]
    assert rows(log.shown, "object_id", "rank") == [("a", 3), ("b", 4)]


def test_clicks_get_the_rank_of_a_list_with_gaps() -> None:
    events = [
        event("1", "click", 1, "e"),
        event("1", "click", 2, "z", position=3),
        event("1", "click", 3, "z", position=9),
    ]
    log = prepared_log([query("1", hits=["a", "e"], ranks=[1, 5])], events)
    assert rows(log.event, "object_id", "rank") == [("e", 5), ("z", 3), ("z", 9)]
    assert findings_by_rule(log)["event", "rank-beyond-list"] == (1, 3, "kept")


def test_a_result_without_an_id_keeps_its_rank() -> None:
    log = prepared_log([query("1", hits=[None, "b"])], [event("1", "click", 1, "b", position=2)])  # type: ignore[list-item]
    assert rows(log.shown, "object_id", "rank") == [("b", 2)]
    assert rows(log.serp, "n_shown", "zero_results") == [(2, False)]
    assert rows(log.event, "rank") == [(2,)]
    assert not log.findings


def test_results_after_the_last_id_do_not_count_and_a_list_without_ids_is_unknown() -> None:
    log = prepared_log([query("1", hits=["a", None, None]), query("2", hits=[None]), query("3", hits=[])])  # type: ignore[list-item]
    assert rows(log.serp, "query_id", "n_returned", "zero_results") == [
        ("1", 1, False), ("2", None, None), ("3", 0, True),
    ]  # fmt: skip


def test_the_position_decides_which_of_two_equal_results_was_clicked() -> None:
    log = prepared_log([query("1", hits=["a", "b", "a"])], [event("1", "click", 1, "a", position=3)])
    assert rows(log.event, "rank") == [(3,)]
    assert not log.findings


def test_impressions_have_their_positions_or_unknown_ranks() -> None:
    impressions = [event("1", "impression", rank, name, position=rank) for rank, name in ((1, "p"), (5, "q"))]
    log = prepared_log([query("1", hits=None), query("2", hits=None)], [*impressions, event("2", "impression", 9, "x")])
    assert rows(log.shown, "object_id", "rank") == [("p", 1), ("q", 5)]
    assert rows(log.serp, "query_id", "n_shown", "ranks") == [("1", 2, [1, 5]), ("2", 1, [])]


def on_the_second_page(*places: int, shift: int = 10, **fields: object) -> tuple[list[dict[str, object]], ...]:
    names = "abcdefghij"
    events = [
        event("1", "click", time, names[place - 1], position=place + shift) for time, place in enumerate(places, 1)
    ]
    return [query("1", hits=list(names), **fields)], events


def test_positions_with_the_same_shift_determine_the_first_rank() -> None:
    log = prepared_log(*on_the_second_page(1, 3, 10))
    assert rows(log.serp, "first_rank", "page") == [(11, 2)]
    assert rows(log.event, "rank") == [(11,), (13,), (20,)]
    assert rows(log.shown, "rank")[0] == (11,)
    assert findings_by_rule(log) == {("query", "first-rank-from-positions"): (1, 1, "kept")}


def test_one_position_after_the_end_of_the_list_is_enough_but_not_one_within_it() -> None:
    assert rows(prepared_log(*on_the_second_page(3)).serp, "first_rank", "page") == [(11, 2)]
    within = prepared_log(*on_the_second_page(3, shift=2))
    assert rows(within.serp, "first_rank", "page") == [(1, 1)]
    assert findings_by_rule(within)["event", "rank-disagrees"] == (1, 1, "repaired")


def test_a_logged_page_number_takes_precedence() -> None:
    log = prepared_log(*on_the_second_page(1, 3, shift=20, page=2, size=10))
    assert rows(log.serp, "first_rank") == [(11,)]
    assert findings_by_rule(log)["event", "rank-disagrees"] == (2, 2, "repaired")


def test_positions_in_another_order_do_not_determine_the_first_rank() -> None:
    queries, events = on_the_second_page(1, 3)
    events[1]["position"] = 12
    log = prepared_log(queries, events)
    assert rows(log.serp, "first_rank") == [(1,)]
    assert findings_by_rule(log)["event", "rank-disagrees"] == (2, 2, "repaired")


def test_a_log_with_many_repaired_rows_is_not_fit() -> None:
    events = [event("1", "click", time, "a", position=1) for time in range(1, 20)]
    wrong = event("1", "click", 40, "c", position=1)
    few_repaired = prepared_log([query("1")], [*events, wrong])
    assert findings_by_rule(few_repaired)["event", "rank-disagrees"] == (1, 20, "repaired")
    assert not unfit_reasons(few_repaired.accounts, few_repaired.findings)
    many_repaired = prepared_log([query("1")], [*events, wrong, {**wrong, "time_ms": wrong["time_ms"] + 1}])
    (reason,) = unfit_reasons(many_repaired.accounts, many_repaired.findings)
    assert "2 of 21" in reason
    assert "rank-disagrees" in reason


def test_positions_from_0_do_not_make_a_log_unfit() -> None:
    events = [event("1", "click", rank, name, position=rank) for rank, name in enumerate("abc")]
    log = prepared_log([query("1")], events)
    assert ("event", "zero-based-ranks") in findings_by_rule(log)
    assert not unfit_reasons(log.accounts, log.findings)
