"""Judgments against users: counted by hand, and simulated where the truth is known."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import judged
from judged.errors import InputError, JudgedError
from judged.online.findings import LogFinding
from judged.online.offline import against_qrels, preference_agreement
from judged.online.offline.against import outcomes_of
from judged.results.blocks import Note
from online.offline.pages_made import log_of

if TYPE_CHECKING:
    from judged.online.offline import OfflineOnline

QRELS = {"t1": {"a": 2, "b": 1, "c": 0, "d": 0}, "t2": {"x": 1, "y": 0, "z": 0}}
PAGES: list[dict[str, Any]] = [
    {"topic": "t1", "shown": ["a", "b", "c", "d"], "clicks": [("a", 40)], "user": 0, "kind": "new"},
    {"topic": "t1", "shown": ["c", "d", "a", "b"], "clicks": [], "user": 0, "kind": "old"},
    {"topic": "t1", "shown": ["a", "c", "b", "d"], "clicks": [("c", 5)], "user": 1, "kind": "old"},
    {"topic": "t2", "shown": ["x", "y", "z"], "clicks": [("x", 31)], "user": 1, "kind": "new"},
    {"topic": "t2", "shown": ["y", "z", "x"], "clicks": [("y", 2)], "user": 2},
    {"topic": "t2", "shown": [], "user": 2},
    {"shown": ["a"], "user": 2},
    {"topic": "t9", "shown": ["a"], "user": 2},
    {"topic": "t1", "shown": ["a", "b"], "clicks": ["a"], "user": 3, "page": 2},
    {"topic": "t1", "shown": ["q1", "q2", "q3", "a"], "clicks": ["a"], "user": 3},
]


@cache
def ten_pages() -> OfflineOnline:
    outcomes = ["satisfied", "clicked", "first click RR", "opened", "abandoned"]
    return against_qrels(log_of(PAGES), QRELS, measures=["P@2", "RR"], outcomes=outcomes, by="kind")


def test_every_number_of_ten_pages() -> None:
    found = ten_pages()
    assert (found.pages, found.joined, found.units) == (10, 5, 3)
    assert dict(found.left_out) == {
        "not the first page of a result list": 1,
        "nothing shown": 1,
        "no topic": 1,
        "topic not judged": 1,
        "under 80% of the first 10 results judged": 1,
    }
    assert found.pages == found.joined + sum(count for _, count in found.left_out)
    assert found.judged == 1.0
    clicked = found.of("P@2", "clicked")  # scores 1, 0, .5, .5, 0; the second page alone has no click
    assert (clicked.pages, clicked.units, clicked.n, clicked.mean) == (5, 3, 2, 0.8)
    assert clicked.probability.value == 3.5 / 4
    assert clicked.within.value == 1.0  # of t1 alone: 1 and .5 against 0
    assert clicked.slope.value == pytest.approx(0.4 / 0.7)
    satisfied = found.of("P@2", "satisfied")  # the first and fourth page
    assert (satisfied.mean, satisfied.probability.value, satisfied.within.value) == (
        0.4, pytest.approx(5.5 / 6), 1.0)  # fmt: skip
    first = found.of("P@2", "first click RR")  # 1, 0, .5, 1, 1: of 7 pairs that differ 4 are right, 2 tied
    assert first.probability.value == pytest.approx(5 / 7)
    assert first.tau.value == pytest.approx((4 - 1) / math.sqrt(7 * 8))
    assert found.of("RR", "clicked").probability.value == 3.5 / 4  # 1, 1/3, 1, 1, 1/3
    assert found.slices == (("(not known)", 1), ("new", 2), ("old", 2))
    old = found.of("P@2", "clicked", "old")
    assert (old.pages, old.units, old.probability.value) == (2, 2, 1.0)
    assert math.isnan(found.of("P@2", "clicked", "new").probability.value)  # clicks on both
    assert found.topics == ()  # two topics tell no order
    bins = found.bins("P@2", "clicked")
    assert [(one.low, one.high, one.pages, one.units, one.mean.value) for one in bins] == [
        (0.0, 0.0, 2, 2, 0.5), (0.5, 0.5, 2, 1, 1.0), (1.0, 1.0, 1, 1, 1.0)]  # fmt: skip


@pytest.mark.usefixtures("clicked_alone")
def test_scores_are_those_of_evaluate_for_every_list() -> None:
    rng = np.random.default_rng(2)
    docs = [f"d{at}" for at in range(30)]
    qrels = {f"t{at}": {doc: int(rng.integers(-1, 4)) for doc in docs} for at in range(4)}
    pages = [{"topic": f"t{at % 4}", "shown": rng.permutation(docs)[: 3 + at % 9].tolist(), "clicks": [], "user": at}
             for at in range(12)]  # fmt: skip
    pages += [dict(page, user=50 + at) for at, page in enumerate(pages[:5])]  # the same lists once more
    for page in pages[::2]:
        page["clicks"] = page["shown"][:1]
    names = ["nDCG@10", "AP", "ERR(max=3)@5", "P@5", "Bpref", "R@10"]
    found = against_qrels(log_of(pages), qrels, measures=names, outcomes="clicked")
    clicked = np.array([bool(page["clicks"]) * 1.0 for page in pages])
    for name in names:
        alone = [judged.evaluate({topic: qrels[topic]}, {topic: page["shown"]}, name).value(name)
                 for page in pages for topic in [page["topic"]]]  # fmt: skip
        assert found.of(name, "clicked").tau.value == pytest.approx(judged.stats.kendall_tau(alone, clicked).value)


@pytest.mark.usefixtures("clicked_alone")
def test_one_list_a_topic_compares_nothing_within_topics() -> None:
    """Two rankers: within topics their lists are compared, and with one of them alone nothing is."""
    shown = {"one": (["a", "b"], ["x", "y"]), "two": (["c", "a"], ["y", "x"])}
    rows = [("one", 0, 1), ("one", 0, 0), ("one", 1, 1), ("two", 0, 0), ("two", 1, 0)]  # ranker, topic, clicks
    pages = [{"topic": f"t{1 + topic}", "shown": shown[kind][topic], "clicks": shown[kind][topic][:clicks],
              "user": user, "ranker": kind} for user, (kind, topic, clicks) in enumerate(rows)]  # fmt: skip
    found = against_qrels(log_of(pages), QRELS, measures="RR", outcomes="clicked", by="ranker")
    both, alone, other = (found.of("RR", "clicked", kind) for kind in (None, "one", "two"))
    assert (both.pairs, both.pairs_within, both.within.value) == (4, 2, pytest.approx(2.5 / 3))
    assert (alone.pairs, alone.pairs_within, other.pairs) == (0, 0, 0)
    assert all(math.isnan(one.value) for one in (alone.probability, alone.within, alone.tau, other.probability))
    assert "A dash stands where nothing was compared" in found.text()
    assert [row["pairs_within"] for row in found.to_dict()["relations"]] == [2, 0, 0]
    assert (found.to_dict()["relations"][1]["within"], found.to_dict()["relations"][1]["within_ci"]) == (None, None)


@pytest.mark.usefixtures("clicked_alone")
def test_a_log_without_users_says_what_stands_for_them() -> None:
    log = log_of(PAGES, findings=(LogFinding("no-user", "query", 10, 10, "kept", "pages of nobody", "log them"),))
    said = Note("no-users", "the log names no users: each session, or page where it names none, counts as one")
    assert said in against_qrels(log, QRELS, outcomes="clicked").notes
    assert said not in against_qrels(log, QRELS, outcomes="clicked", unit="session").notes
    assert said not in against_qrels(log_of(PAGES), QRELS, outcomes="clicked").notes
    assert against_qrels(log, QRELS, outcomes="clicked").to_dict()["unit"] == "session"
    assert "take whole sessions for what varies" in " ".join(against_qrels(log, QRELS, outcomes="clicked").sentences)
    assert preference_agreement(log, QRELS).to_dict()["unit"] == "session"


@pytest.mark.usefixtures("clicked_alone")
def test_lists_are_scored_in_parts_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(PAGES)
    whole = against_qrels(log, QRELS, measures=["nDCG@10", "AP"], outcomes="clicked").to_dict()
    monkeypatch.setattr("judged.online.offline.against._JUDGED", 5)
    assert against_qrels(log, QRELS, measures=["nDCG@10", "AP"], outcomes="clicked").to_dict() == whole


@pytest.mark.usefixtures("clicked_alone")
def test_a_result_shown_twice_counts_where_it_is_first() -> None:
    pages = [{"topic": "t1", "shown": shown, "clicks": clicks, "user": user} for user, shown, clicks in
             ((0, ["a", "a", "c"], ["a"]), (1, ["c", "d", "a"], []))]  # fmt: skip
    found = against_qrels(log_of(pages), QRELS, measures="P@2", outcomes="clicked")
    assert [one.score for one in found.bins("P@2", "clicked")] == [0.0, 0.5]  # a, c of the first page


@pytest.mark.usefixtures("clicked_alone")
def test_topics_are_found_by_text_by_column_and_by_page() -> None:
    texts = {"t1": "Income  tax", "t2": "peace", "t3": "PEACE "}
    pages = [{"query": query, "shown": ["a", "c"], "clicks": clicks, "number": number, "user": user}
             for user, (query, clicks, number) in enumerate((("income tax", ["a"], "t1"), (" INCOME\ttax", [], "t1"),
                                                             ("peace", [], "t2"), (None, [], None)))]  # fmt: skip
    log = log_of(pages)
    by_text = against_qrels(log, {"t1": QRELS["t1"], "t2": {"a": 1, "c": 0}}, topics=texts, outcomes="clicked")
    assert (by_text.joined, dict(by_text.left_out)) == (2, {"no topic": 2})  # peace is the text of two topics
    assert "by the text of the query" in by_text.how
    by_column = against_qrels(log, {"t1": QRELS["t1"], "t2": {"a": 1, "c": 0}}, topics="number", outcomes="clicked")
    assert by_column.joined == 3
    by_page = against_qrels(log, {"p0": QRELS["t1"], "p1": QRELS["t1"]}, outcomes="clicked")
    assert (by_page.joined, by_page.how) == (2, "by the name of the page (query_id)")


@pytest.mark.usefixtures("clicked_alone")
def test_later_pages_count_by_wish_each_as_a_ranking_of_its_own() -> None:
    found = against_qrels(log_of(PAGES), QRELS, measures="P@2", pages="all", outcomes="clicked")
    assert found.joined == 6
    assert found.bins("P@2", "clicked")[-1].pages == 2  # the second page shows a and b first


def test_less_of_a_bad_outcome_is_better() -> None:
    found = ten_pages()
    one, other = (found.of("P@2", name) for name in ("clicked", "abandoned"))
    for ours, theirs in ((one.probability, other.probability), (one.tau, other.tau)):
        ends = [(estimate.value, estimate.low, estimate.high) for estimate in (ours, theirs)]
        assert ends[0] == pytest.approx(ends[1], nan_ok=True)
    assert one.slope.value == pytest.approx(-other.slope.value)
    assert found.worse == ("abandoned",)


def test_a_log_without_a_clock_says_nothing_of_satisfaction() -> None:
    log = log_of(PAGES[:5], has_time=False)
    assert [one.name for one in outcomes_of(None, log)] == ["clicked", "first click RR"]
    with pytest.raises(InputError, match="no clock"):
        against_qrels(log, QRELS, outcomes="satisfied")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topics": "nonsense"}, "no column of the log"),
        ({"by": "nonsense"}, "no column 'nonsense'"),
        ({"outcomes": "joy"}, "no outcome 'joy'"),
        ({"outcomes": []}, "no outcome is given"),
        ({"measures": "Judged@10"}, "neither better high nor low"),
        ({"unit": "page"}, "unit is 'page'"),
        ({"pages": "second"}, "pages is 'second'"),
        ({"least_judged": 2}, "least_judged"),
        ({"bins": 0}, "bins is 0"),
        ({"level": 95}, "level is 95"),
        ({"dwell": -1}, "dwell"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(JudgedError, match=said):
        against_qrels(log_of(PAGES), QRELS, **options)


def test_nothing_in_common_is_said() -> None:
    with pytest.raises(InputError, match=r"no page of made has a judged topic \(1 not the first"):
        against_qrels(log_of(PAGES), {"other": {"a": 1}})
    with pytest.raises(InputError, match="says which topic"):
        against_qrels(log_of([{"shown": ["a"]}]), QRELS)
    with pytest.raises(InputError, match="judged"):
        against_qrels(log_of([{"topic": "t1", "shown": ["q"]}]), QRELS)


def simulated(rng: np.random.Generator, way: str, pages: int = 240) -> tuple[Any, Any]:
    """Lists in any order, and clicks by score, at random, or by topic alone; truth is known."""
    qrels = {f"t{at}": {f"d{n}": int(n < 5) for n in range(10)} for at in range(12)}
    made = []
    for at in range(pages):
        order = rng.permutation(10)
        good = (order[:5] < 5).mean()
        topic = at % 12
        chance = {"score": float(good > 0.5), "random": 0.5, "topic": topic / 11}[way]
        clicks = [f"d{order[0]}"] if rng.random() < chance else []
        made.append({"topic": f"t{topic}", "shown": [f"d{n}" for n in order], "clicks": clicks, "user": at // 4})
    return log_of(made), qrels


@pytest.mark.usefixtures("clicked_alone")
def test_clicks_that_follow_the_score_are_predicted_and_others_are_not() -> None:
    rng = np.random.default_rng(4)
    log, qrels = simulated(rng, "score")
    perfect = against_qrels(log, qrels, measures="P@5", outcomes="clicked").of("P@5", "clicked")
    assert (perfect.probability.value, perfect.within.value) == (1.0, 1.0)
    for way in ("random", "topic"):
        log, qrels = simulated(rng, way)
        found = against_qrels(log, qrels, measures="P@5", outcomes="clicked")
        one = found.of("P@5", "clicked")
        assert one.probability.value == pytest.approx(0.5, abs=0.1)
        assert not one.within.excludes(0.5)
        assert found.topics[0].n == 12


@pytest.mark.usefixtures("clicked_alone")
def test_topics_are_compared_by_their_means() -> None:
    pages = []
    for topic in range(6):  # topic k: k of 5 pages have the good result first, and are clicked
        for at in range(5):
            good = at < topic
            pages.append({"topic": f"t{topic}", "shown": ["g", "b"] if good else ["b", "g"],
                          "clicks": ["g"] if good else [], "user": at})  # fmt: skip
    qrels = {f"t{at}": {"g": 1, "b": 0} for at in range(6)}
    found = against_qrels(log_of(pages), qrels, measures="P@1", outcomes="clicked")
    assert (found.topics[0].n, found.topics[0].pages, found.topics[0].rho.value) == (6, 30, 1.0)
    assert against_qrels(log_of(pages), qrels, measures="P@1", outcomes="clicked", least_pages=6).topics == ()


def test_forms() -> None:
    found = ten_pages()
    assert "0.875" in found.text()
    assert found.markdown().count("| P@2 | clicked | all | 5 | 3 |") == 1
    head = "measure,outcome,slice,pages,units,n,mean,probability,probability_low,probability_high,within,"
    assert found.csv().splitlines()[0].startswith(head)
    assert len(found.csv().splitlines()) == 1 + 2 * 5 * 4
    assert repr(found) == found.text()
    assert "5 of 10 pages of made" in found.sentences[0]
    assert len(found.chart().to_dict()["concat"]) == 5
    assert {row["measure"] for row in found.charts()["calibration"].table.records()} == {"P@2"}
    with pytest.raises(KeyError):
        found.of("AP", "clicked")
