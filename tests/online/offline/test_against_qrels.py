"""Judgments against user behavior: by hand, and simulated with known truth."""

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
from judged.online.offline.outcome_prediction import outcomes_of
from judged.results.blocks import Note
from online.offline.page_logs import log_of

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


def test_ten_pages_by_hand() -> None:
    result = ten_pages()
    assert (result.pages, result.pages_used, result.units) == (10, 5, 3)
    assert dict(result.excluded_pages) == {
        "that are later pages of a result list": 1,
        "without results": 1,
        "without a topic": 1,
        "without judgments of the topic": 1,
        "where less than 80% of the top 10 results are judged": 1,
    }
    assert result.pages == result.pages_used + sum(n_pages for _, n_pages in result.excluded_pages)
    assert result.judged == 1.0
    clicked = result.of("P@2", "clicked")  # scores 1, 0, .5, .5, 0; only the second page has no click
    assert (clicked.pages, clicked.units, clicked.n, clicked.mean) == (5, 3, 2, 0.8)
    assert clicked.probability.value == 3.5 / 4
    assert clicked.within_topics.value == 1.0  # only t1: 1 and .5 against 0
    assert clicked.slope.value == pytest.approx(0.4 / 0.7)
    satisfied = result.of("P@2", "satisfied")  # the first and fourth page
    assert (satisfied.mean, satisfied.probability.value, satisfied.within_topics.value) == (
        0.4, pytest.approx(5.5 / 6), 1.0)  # fmt: skip
    first_click = result.of(
        "P@2", "first click RR"
    )  # 1, 0, .5, 1, 1: of 7 untied pairs, 4 are concordant and 2 have tied scores
    assert first_click.probability.value == pytest.approx(5 / 7)
    assert first_click.tau.value == pytest.approx((4 - 1) / math.sqrt(7 * 8))
    assert result.of("RR", "clicked").probability.value == 3.5 / 4  # 1, 1/3, 1, 1, 1/3
    assert result.slices == (("(not known)", 1), ("new", 2), ("old", 2))
    old_slice = result.of("P@2", "clicked", "old")
    assert (old_slice.pages, old_slice.units, old_slice.probability.value) == (2, 2, 1.0)
    assert math.isnan(result.of("P@2", "clicked", "new").probability.value)  # clicks on both
    assert result.topics == ()  # too few topics
    bins = result.bins("P@2", "clicked")
    assert [(bin_.low, bin_.high, bin_.pages, bin_.units, bin_.mean.value) for bin_ in bins] == [
        (0.0, 0.0, 2, 2, 0.5), (0.5, 0.5, 2, 1, 1.0), (1.0, 1.0, 1, 1, 1.0)]  # fmt: skip


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_scores_equal_evaluate() -> None:
    rng = np.random.default_rng(2)
    docs = [f"d{i}" for i in range(30)]
    qrels = {f"t{i}": {doc: int(rng.integers(-1, 4)) for doc in docs} for i in range(4)}
    pages = [{"topic": f"t{i % 4}", "shown": rng.permutation(docs)[: 3 + i % 9].tolist(), "clicks": [], "user": i}
             for i in range(12)]  # fmt: skip
    pages += [dict(page, user=50 + i) for i, page in enumerate(pages[:5])]  # repeated lists
    for page in pages[::2]:
        page["clicks"] = page["shown"][:1]
    names = ["nDCG@10", "AP", "ERR(max=3)@5", "P@5", "Bpref", "R@10"]
    result = against_qrels(log_of(pages), qrels, measures=names, outcomes="clicked")
    clicked = np.array([bool(page["clicks"]) * 1.0 for page in pages])
    for name in names:
        scores = [judged.evaluate({topic: qrels[topic]}, {topic: page["shown"]}, name).value(name)
                 for page in pages for topic in [page["topic"]]]  # fmt: skip
        assert result.of(name, "clicked").tau.value == pytest.approx(judged.stats.kendall_tau(scores, clicked).value)


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_one_list_per_topic_has_no_pairs_within_topics() -> None:
    """Lists of two rankers are compared within topics; lists of one ranker are all equal."""
    lists = {"one": (["a", "b"], ["x", "y"]), "two": (["c", "a"], ["y", "x"])}
    rows = [("one", 0, 1), ("one", 0, 0), ("one", 1, 1), ("two", 0, 0), ("two", 1, 0)]  # ranker, topic, clicks
    pages = [{"topic": f"t{1 + topic}", "shown": lists[kind][topic], "clicks": lists[kind][topic][:clicks],
              "user": user, "ranker": kind} for user, (kind, topic, clicks) in enumerate(rows)]  # fmt: skip
    result = against_qrels(log_of(pages), QRELS, measures="RR", outcomes="clicked", by="ranker")
    all_pages, ranker_one, ranker_two = (result.of("RR", "clicked", kind) for kind in (None, "one", "two"))
    assert (all_pages.pairs, all_pages.pairs_within_topics, all_pages.within_topics.value) == (
        4,
        2,
        pytest.approx(2.5 / 3),
    )
    assert (ranker_one.pairs, ranker_one.pairs_within_topics, ranker_two.pairs) == (0, 0, 0)
    assert all(
        math.isnan(estimate.value)
        for estimate in (ranker_one.probability, ranker_one.within_topics, ranker_one.tau, ranker_two.probability)
    )
    assert "because no two pages differ" in result.text()
    assert [row["pairs_within_topics"] for row in result.to_dict()["relations"]] == [2, 0, 0]
    assert (
        result.to_dict()["relations"][1]["within_topics"],
        result.to_dict()["relations"][1]["within_topics_ci"],
    ) == (None, None)


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_a_log_without_users_has_a_note() -> None:
    log = log_of(PAGES, findings=(LogFinding("no-user", "query", 10, 10, "kept", "pages of nobody", "log them"),))
    note = Note(
        "no-users", "the log has no user IDs: each session counts as a user, and so does each page without a session"
    )
    assert note in against_qrels(log, QRELS, outcomes="clicked").notes
    assert note not in against_qrels(log, QRELS, outcomes="clicked", unit="session").notes
    assert note not in against_qrels(log_of(PAGES), QRELS, outcomes="clicked").notes
    assert against_qrels(log, QRELS, outcomes="clicked").to_dict()["unit"] == "session"
    assert "generalize to other sessions" in " ".join(against_qrels(log, QRELS, outcomes="clicked").sentences)
    assert preference_agreement(log, QRELS).to_dict()["unit"] == "session"


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_batches_do_not_change_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(PAGES)
    in_one_batch = against_qrels(log, QRELS, measures=["nDCG@10", "AP"], outcomes="clicked").to_dict()
    monkeypatch.setattr("judged.online.offline.outcome_prediction._MAX_JUDGED_PAIRS", 5)
    assert against_qrels(log, QRELS, measures=["nDCG@10", "AP"], outcomes="clicked").to_dict() == in_one_batch


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_a_repeated_document_counts_at_its_first_rank() -> None:
    pages = [{"topic": "t1", "shown": doc_ids, "clicks": clicks, "user": user} for user, doc_ids, clicks in
             ((0, ["a", "a", "c"], ["a"]), (1, ["c", "d", "a"], []))]  # fmt: skip
    result = against_qrels(log_of(pages), QRELS, measures="P@2", outcomes="clicked")
    assert [relation.score for relation in result.bins("P@2", "clicked")] == [0.0, 0.5]  # a, c of the first page


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_topics_by_text_column_and_page_name() -> None:
    texts = {"t1": "Income  tax", "t2": "peace", "t3": "PEACE "}
    pages = [{"query": query, "shown": ["a", "c"], "clicks": clicks, "number": number, "user": user}
             for user, (query, clicks, number) in enumerate((("income tax", ["a"], "t1"), (" INCOME\ttax", [], "t1"),
                                                             ("peace", [], "t2"), (None, [], None)))]  # fmt: skip
    log = log_of(pages)
    by_text = against_qrels(log, {"t1": QRELS["t1"], "t2": {"a": 1, "c": 0}}, topics=texts, outcomes="clicked")
    assert (by_text.pages_used, dict(by_text.excluded_pages)) == (
        2,
        {"without a topic": 2},
    )  # peace is the text of two topics
    assert "by the query text" in by_text.topic_source
    by_column = against_qrels(log, {"t1": QRELS["t1"], "t2": {"a": 1, "c": 0}}, topics="number", outcomes="clicked")
    assert by_column.pages_used == 3
    by_page = against_qrels(log, {"p0": QRELS["t1"], "p1": QRELS["t1"]}, outcomes="clicked")
    assert (by_page.pages_used, by_page.topic_source) == (2, "by the name of the page (query_id)")


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_later_pages_are_separate_rankings() -> None:
    result = against_qrels(log_of(PAGES), QRELS, measures="P@2", pages="all", outcomes="clicked")
    assert result.pages_used == 6
    assert result.bins("P@2", "clicked")[-1].pages == 2  # the second page shows a and b first


def test_direction_of_outcomes() -> None:
    result = ten_pages()
    clicked, abandoned = (result.of("P@2", name) for name in ("clicked", "abandoned"))
    for first, second in ((clicked.probability, abandoned.probability), (clicked.tau, abandoned.tau)):
        limits = [(estimate.value, estimate.low, estimate.high) for estimate in (first, second)]
        assert limits[0] == pytest.approx(limits[1], nan_ok=True)
    assert clicked.slope.value == pytest.approx(-abandoned.slope.value)
    assert result.lower_is_better == ("abandoned",)


def test_satisfied_needs_a_clock() -> None:
    log = log_of(PAGES[:5], has_time=False)
    assert [outcome.name for outcome in outcomes_of(None, log)] == ["clicked", "first click RR"]
    with pytest.raises(InputError, match="requires timestamps"):
        against_qrels(log, QRELS, outcomes="satisfied")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "nonsense"}, "neither a column of the log"),
        ({"by": "nonsense"}, "no column 'nonsense'"),
        ({"outcomes": "joy"}, "unknown outcome 'joy'"),
        ({"outcomes": []}, "`outcomes` is empty"),
        ({"measures": "Judged@10"}, "no direction"),
        ({"unit": "page"}, "unit is 'page'"),
        ({"pages": "second"}, "pages is 'second'"),
        ({"min_judged": 2}, "min_judged"),
        ({"bins": 0}, "bins is 0"),
        ({"level": 95}, "level is 95"),
        ({"dwell": -1}, "dwell"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(JudgedError, match=message):
        against_qrels(log_of(PAGES), QRELS, **options)


def test_no_judged_pages_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"no page of made has a judged topic \(excluded pages: 1 that are later pages"
    ):
        against_qrels(log_of(PAGES), {"other": {"a": 1}})
    with pytest.raises(InputError, match="no column topic"):
        against_qrels(log_of([{"shown": ["a"]}]), QRELS)
    with pytest.raises(InputError, match="judged"):
        against_qrels(log_of([{"topic": "t1", "shown": ["q"]}]), QRELS)


def simulate_log(rng: np.random.Generator, click_model: str, n_pages: int = 240) -> tuple[Any, Any]:
    """Simulate lists in random order with clicks by score, at random, or by topic."""
    qrels = {f"t{i}": {f"d{n}": int(n < 5) for n in range(10)} for i in range(12)}
    log_pages = []
    for i in range(n_pages):
        order = rng.permutation(10)
        share_relevant = (order[:5] < 5).mean()
        topic = i % 12
        probability = {"score": float(share_relevant > 0.5), "random": 0.5, "topic": topic / 11}[click_model]
        clicks = [f"d{order[0]}"] if rng.random() < probability else []
        log_pages.append({"topic": f"t{topic}", "shown": [f"d{n}" for n in order], "clicks": clicks, "user": i // 4})
    return log_of(log_pages), qrels


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_only_clicks_by_score_are_predicted() -> None:
    rng = np.random.default_rng(4)
    log, qrels = simulate_log(rng, "score")
    perfect = against_qrels(log, qrels, measures="P@5", outcomes="clicked").of("P@5", "clicked")
    assert (perfect.probability.value, perfect.within_topics.value) == (1.0, 1.0)
    for click_model in ("random", "topic"):
        log, qrels = simulate_log(rng, click_model)
        result = against_qrels(log, qrels, measures="P@5", outcomes="clicked")
        relation = result.of("P@5", "clicked")
        assert relation.probability.value == pytest.approx(0.5, abs=0.1)
        assert not relation.within_topics.excludes(0.5)
        assert result.topics[0].n == 12


@pytest.mark.usefixtures("clicked_outcome_from_events")
def test_rank_correlation_of_topic_means() -> None:
    pages = []
    for topic in range(6):  # topic k: k of 5 pages have the good result first, and are clicked
        for i in range(5):
            is_good = i < topic
            pages.append({"topic": f"t{topic}", "shown": ["g", "b"] if is_good else ["b", "g"],
                          "clicks": ["g"] if is_good else [], "user": i})  # fmt: skip
    qrels = {f"t{i}": {"g": 1, "b": 0} for i in range(6)}
    result = against_qrels(log_of(pages), qrels, measures="P@1", outcomes="clicked")
    assert (result.topics[0].n, result.topics[0].pages, result.topics[0].rho.value) == (6, 30, 1.0)
    assert against_qrels(log_of(pages), qrels, measures="P@1", outcomes="clicked", min_pages=6).topics == ()


def test_output_formats() -> None:
    result = ten_pages()
    assert "0.875" in result.text()
    assert result.markdown().count("| P@2 | clicked | all | 5 | 3 |") == 1
    head = "measure,outcome,slice,pages,units,n,mean,probability,probability_low,probability_high,within_topics,"
    assert result.csv().splitlines()[0].startswith(head)
    assert len(result.csv().splitlines()) == 1 + 2 * 5 * 4
    assert repr(result) == result.text()
    assert "5 of 10 pages of made" in result.sentences[0]
    assert len(result.chart().to_dict()["concat"]) == 5
    assert {row["measure"] for row in result.charts()["calibration"].table.records()} == {"P@2"}
    with pytest.raises(KeyError):
        result.of("AP", "clicked")
