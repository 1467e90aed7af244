"""Measures of preferences compared with trec_eval's functions, with a plain implementation, and by hand."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trec_eval_c
from judged import Judged, MeasureError, Qrels, judge
from judged.scoring.judging.pairs import preferences
from judged.scoring.measures import parse

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Row = tuple[str, str, str, float]  # topic, "user subgroup", document, level


def qrels_of(rows: Iterable[Row]) -> Qrels:
    query, iteration, doc, level = zip(*rows, strict=True)
    return Qrels(pa.table({"query_id": query, "iteration": iteration, "doc_id": doc, "relevance": level}))


def of_topic(levels: dict[str, str], ranking: str) -> Judged:
    """Judge one topic: for each ``user subgroup`` documents and their levels, as ``a9 b8``."""
    rows = [
        ("q", iteration, text[0], float(text[1:]))
        for iteration, documents in levels.items()
        for text in documents.split()
    ]
    return judge(qrels_of(rows), {"q": {doc: -float(position) for position, doc in enumerate(ranking)}})


# --- trec_eval's own test collection ------------------------------------------------------------------

# trec_eval 9.0.8 and 10.0 print these numbers for their test files prefs.test and prefs.results.test;
# here the documents of each topic have one letter, in the order of that run, and capitals were not returned.
ONCE = {"0 0": "a0 b1 c0 R5", "1 0": "a4 b6 c6 R5", "2 0": "a9 b8 c7 R5"}
PRINTED: dict[str, tuple[dict[str, str], str, str]] = {
    "2.EC.A": (
        {"0 0": "a1 R0"},
        "a",
        "1 1 0 1.0000 0.0000 1.0000 1.0000 0.0000 1.0000 1.0000 0.0000 1.0000 1.0000 1.0000",
    ),
    "6.EC.noRel": (
        {"0 0": "a0 b0"},
        "ab",
        "0 0 0 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000",
    ),
    "24.EC.mg": (
        ONCE,
        "abc",
        "16 9 4 0.5625 0.5714 0.5625 0.5833 0.6111 0.5833 0.5333 0.5000 0.5333 0.5616 0.4810",
    ),
    "35.PA.mgmx": (
        {**ONCE, "0 1": "a0 b1"},
        "abc",
        "16 9 4 0.5625 0.5714 0.5625 0.5833 0.6111 0.5833 0.5333 0.5000 0.5333 0.5616 0.6476",
    ),
    "40.PA.tran": (
        {"0 0": "a5 b9 c4 d3 R6 S0", "0 1": "c7 e6 T1"},
        "abcde",
        "24 17 8 0.7083 0.8889 0.7727 0.7083 0.8889 0.7727 0.7083 0.8889 0.7727 0.7121 0.7500",
    ),
}


@pytest.mark.parametrize("topic", PRINTED)
def test_what_trec_eval_prints_for_its_own_tests(topic: str) -> None:
    levels, ranking, printed = PRINTED[topic]
    judged_list = of_topic(levels, ranking)
    for name, value in zip(trec_eval_c.PREFERENCES, printed.split(), strict=True):
        number = parse(name)(judged_list)[0]
        assert (f"{number:.0f}" if "_num_" in name else f"{number:.4f}") == value, name


# --- trec_eval's own functions on generated collections -----------------------------------------------


def collection(seed: int) -> tuple[list[Row], list[tuple[str, str, float]]]:
    """Users of one or several subgroups, who never contradict themselves: trec_eval aborts at that."""
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    rows, run = list[Row](), list[tuple[str, str, float]]()
    for number in range(8):
        topic = trec_eval_c.topic_name(f"{seed}.{number}")
        docs = [f"{chance.choice('aZé')}{index}" for index in range(chance.randint(1, 9))]
        levels = chance.choice([[0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 2.5], [1.0, 2.0, 3.0, 4.0]])
        for user in chance.sample(["u0", "u1", "u10", "b"], chance.randint(1, 4)):
            level = {doc: chance.choice(levels) for doc in docs}
            for subgroup in range(chance.choice([1, 1, 2, 3])):
                labeled = chance.sample(docs, chance.randint(1, len(docs)))
                rows += [(topic, f"{user} s{subgroup}", doc, level[doc] * (subgroup + 1)) for doc in labeled]
        returned = [*chance.sample(docs, chance.randint(0, len(docs))), *"xyz"[: chance.randint(1, 3)]]
        run += [(topic, doc, float(chance.randint(1, 8))) for doc in returned]
    return rows, run


@pytest.mark.parametrize("seed", range(30))
def test_every_double_is_the_same(seed: int, tmp_path: Path) -> None:
    rows, run = collection(seed)
    prefs = tmp_path / "prefs"
    prefs.write_text(
        "".join(f"{topic} {iteration} {doc} {level!r}\n" for topic, iteration, doc, level in rows), "utf-8"
    )
    theirs = trec_eval_c.trec_eval(prefs, trec_eval_c.run_file(tmp_path / "run", run), "prefs", trec_eval_c.PREFERENCES)
    compare(theirs, judge(qrels_of(rows), scores_of(run), ties="docid-rising"))


def test_pairs_may_be_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part holds whole topics: with room for one pair, each topic that has several is a part of its own."""
    rows, run = collection(100)
    judged_list = judge(qrels_of(rows), scores_of(run))
    all_users = np.ones(len(preferences(judged_list).topic), dtype=np.bool_)
    at_once = list(preferences(judged_list).pairs(all_users))
    by_pairs = parse("prefs_pair")(judged_list).tolist()
    monkeypatch.setattr("judged.scoring.judging.pairs._PART", 1)
    parts = list(preferences(judged_list).pairs(all_users))
    assert len(at_once) == 1
    assert len(parts) > 2
    assert sorted(zip(*at_once[0], strict=True)) == sorted(row for part in parts for row in zip(*part, strict=True))
    assert parse("prefs_pair")(judged_list).tolist() == by_pairs


def test_plain_qrels_are_the_preferences_of_one_user(tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - any numbers will do
    topics = [trec_eval_c.topic_name(f"plain{number}") for number in range(6)]
    rows = [(topic, "0", f"d{doc}", float(chance.choice([0, 0, 0, 1, 2]))) for topic in topics for doc in range(300)]
    run = [(topic, f"d{doc}", chance.random()) for topic in topics for doc in chance.sample(range(400), 250)]
    path = tmp_path / "qrels"
    path.write_text(
        "".join(f"{topic} {iteration} {doc} {level:.0f}\n" for topic, iteration, doc, level in rows), "utf-8"
    )
    theirs = trec_eval_c.trec_eval(
        path, trec_eval_c.run_file(tmp_path / "run", run), "qrels_prefs", trec_eval_c.PREFERENCES
    )
    compare(theirs, judge(Qrels.read(path), scores_of(run), precision="double"))


def scores_of(run: list[tuple[str, str, float]]) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for topic, doc, score in run:
        scores.setdefault(topic, {})[doc] = score
    return scores


def compare(theirs: dict[str, dict[str, float]], ours: Judged) -> None:
    assert set(theirs) == set(ours.query_ids)
    for name in trec_eval_c.PREFERENCES:
        expected = [theirs[topic][name] for topic in ours.query_ids]
        assert parse(name)(ours).tolist() == expected, name


# --- the rules, the plain way -------------------------------------------------------------------------

OVER = {"all": 0, "implied": 1, "retrieved": 2}
LEAST = 1e-13


def plain_pairs(subgroups: dict[str, dict[str, float]]) -> set[tuple[str, str]]:
    """Return the preferences of one user: those in each subgroup, and their transitive closure."""
    pairs = {(a, b) for levels in subgroups.values() for a, b in product(levels, levels) if levels[a] > levels[b]}
    while implied := {(a, d) for (a, b), (c, d) in product(pairs, pairs) if b == c} - pairs:
        pairs |= implied
    return pairs


def plain(users: dict[str, dict[str, dict[str, float]]], ranking: list[str], over: str) -> dict[str, float]:
    """One topic of users, subgroups, documents and levels."""
    positions = {doc: position for position, doc in enumerate(ranking)}
    kept_count, possible = dict.fromkeys(users, 0), dict.fromkeys(users, 0)
    votes: dict[frozenset[str], list[bool]] = {}
    for user, subgroups in users.items():
        for better, worse in plain_pairs(subgroups):
            if (better in positions) + (worse in positions) < OVER[over]:
                continue
            agrees = better in positions and positions[better] < positions.get(worse, len(ranking))
            kept_count[user] += agrees
            possible[user] += 1
            votes.setdefault(frozenset((better, worse)), []).append(agrees)
    shares = [sum(agreed) / len(agreed) for agreed in votes.values()]
    return {
        "NumPrefs": sum(kept_count.values()),
        "NumPrefs(of=possible)": sum(possible.values()),
        "PrefShare": sum(kept_count.values()) / max(sum(possible.values()), 1),
        "PrefShare(mean=pairs)": sum(shares) / max(len(shares), 1),
        "PrefShare(mean=users)": sum(kept_count[user] / max(possible[user], 1) for user in users) / len(users),
    }


docs = st.sampled_from("abcdef")


@st.composite
def opinions(draw: st.DrawFn) -> dict[str, dict[str, dict[str, float]]]:
    """Some users, each with a level of their own for each document, said in some subgroups on any scale."""
    users: dict[str, dict[str, dict[str, float]]] = {}
    for user in draw(st.sets(st.sampled_from(["u", "u2", "é"]), min_size=1)):
        level = draw(st.fixed_dictionaries({doc: st.sampled_from([0.0, 1.0, 1.5, 4.0]) for doc in "abcdef"}))
        groups = draw(st.lists(st.sets(docs, min_size=1), min_size=1, max_size=3))
        users[user] = {
            f"s{index}": {doc: level[doc] * scale for doc in labeled}
            for index, (labeled, scale) in enumerate((labeled, draw(st.sampled_from([1.0, 2.0]))) for labeled in groups)
        }
    return users


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from(["1", "2", "10"]), st.tuples(opinions(), st.lists(docs, unique=True)), min_size=1),
    st.sampled_from(list(OVER)),
)
def test_preferences_follow_the_rules(topics: dict[str, tuple[Any, list[str]]], over: str) -> None:
    rows = [
        (topic, f"{user} {subgroup}", doc, level)
        for topic, (users, _) in topics.items()
        for user, subgroups in users.items()
        for subgroup, levels in subgroups.items()
        for doc, level in levels.items()
    ]
    run = {
        topic: {doc: -float(position) for position, doc in enumerate(ranking)} for topic, (_, ranking) in topics.items()
    }
    judged_list = judge(qrels_of(rows), run)
    expected = [plain(*topics[topic], over) for topic in judged_list.query_ids]
    for name in expected[0]:
        values = parse(name).replace(over=over)(judged_list).tolist()
        assert values == pytest.approx([topic_scores[name] for topic_scores in expected], rel=LEAST), name


# --- by hand ------------------------------------------------------------------------------------------


def test_a_user_who_says_it_in_several_subgroups_says_it_once() -> None:
    """a over b twice, and b over c: a over c follows. The ranking is c a b: one of three is kept."""
    judged_list = of_topic({"u 1": "a2 b1", "u 2": "a3 b1", "u 3": "b2 c1"}, "cab")
    assert parse("prefs_num_prefs_poss")(judged_list)[0] == 3
    assert parse("prefs_simp")(judged_list)[0] == 1 / 3


def test_users_are_told_apart_by_what_stands_before_the_blank() -> None:
    """Two users disagree: 1 of 2 is kept, whatever the order. One user in two subgroups may not."""
    assert parse("prefs_simp")(of_topic({"u 1": "a2 b1", "v 1": "a1 b2"}, "ab"))[0] == 1 / 2
    assert parse("prefs_simp")(of_topic({"u": "a2 b1", "u2": "a1 b2"}, "ab"))[0] == 1 / 2
    with pytest.raises(
        MeasureError, match=r"topic q: user u: preferences must not be cyclic, got a cycle with a, b\. Fix: correct"
    ):
        parse("prefs_simp")(of_topic({"u 1": "a2 b1", "u 2": "a1 b2"}, "ab"))


def test_no_topics_have_no_scores() -> None:
    none = judge({"q": {"a": 1, "b": 0}}, {"r": {"a": 1.0}}).over("both")
    for name in trec_eval_c.PREFERENCES:
        assert parse(name)(none).tolist() == []


def test_a_long_circle_is_found() -> None:
    levels = {"v 1": "a1 b2", "u 1": "a2 b1", "u 2": "b2 c1", "u 3": "c2 a1"}
    with pytest.raises(MeasureError, match="topic q: user u: preferences must not be cyclic, got a cycle with c, a, b"):
        parse("prefs_pair")(of_topic(levels, "cab"))


def test_not_relevant_is_not_relevant_in_every_subgroup() -> None:
    with pytest.raises(
        MeasureError, match="topic q: user u: b has grade 0 in one subgroup and a higher grade in another"
    ):
        parse("prefs_avgjg")(of_topic({"u 1": "a2 b1", "u 2": "b0 c0"}, "abc"))


def test_more_pairs_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two users of three grades have six preferences, listed for mean=pairs only; the topic with one user has none."""
    rows = [(topic, user, doc, level) for topic, user in [("1", "u"), ("2", "u"), ("2", "v")]
            for level, doc in enumerate("abc")]  # fmt: skip
    judged_list = judge(qrels_of(rows), {"1": {"a": 1.0}, "2": {"a": 1.0}})
    monkeypatch.setattr("judged.scoring.judging.pairs._MOST_PAIRS", 6)
    assert parse("prefs_pair")(judged_list).tolist() == [0.0, 0.0]
    monkeypatch.setattr("judged.scoring.judging.pairs._MOST_PAIRS", 5)
    with pytest.raises(MeasureError, match=r"at most 5 preferences, got 6 for 3 .* of topic 2\. Fix: use mean="):
        parse("prefs_pair")(judged_list)
    assert parse("prefs_num_prefs_poss")(judged_list).tolist() == [3.0, 6.0]


@pytest.mark.parametrize(("most", "limit"), [("_MOST_DOCS", 2), ("_MOST_PAIRS", 1), ("_MOST_PAIRS", 2)])
def test_more_than_can_be_put_together_is_refused(monkeypatch: pytest.MonkeyPatch, most: str, limit: int) -> None:
    """Two subgroups say one preference each, and a third follows."""
    judged_list = of_topic({"u 1": "a2 b1", "u 2": "b2 c1"}, "abc")
    assert parse("prefs_num_prefs_poss")(judged_list)[0] == 3.0
    monkeypatch.setattr(f"judged.scoring.judging.pairs.{most}", limit)
    with pytest.raises(MeasureError, match=r"topic q: user u: .* got 3 and [23]\. Fix: put all"):
        parse("prefs_simp")(judged_list)


def test_only_the_order_of_levels_counts() -> None:
    near, far = of_topic({"u": "a3 b2 c0"}, "bac"), of_topic({"u": "a0.3 b0.2 c0"}, "bac")
    for name in trec_eval_c.PREFERENCES:
        assert parse(name)(near).tolist() == parse(name)(far).tolist()


def test_documents_not_returned_stand_behind_and_have_no_order() -> None:
    """a over b and c, b over c; only b was returned: b over c is kept, a over b is not, a over c cannot be."""
    judged_list = of_topic({"u": "a3 b2 c1"}, "b")
    values = {name: parse(name)(judged_list)[0] for name in ("prefs_simp", "prefs_simp_imp", "prefs_simp_ret")}
    assert values == {"prefs_simp": 1 / 3, "prefs_simp_imp": 1 / 2, "prefs_simp_ret": 0.0}


def test_ties_are_broken_by_rising_ids_in_these_measures_of_trec_eval(tmp_path: Path) -> None:
    """Elsewhere trec_eval takes the greater id first."""
    topic = trec_eval_c.topic_name("tied")
    rows, run = [(topic, "u s", "a", 2.0), (topic, "u s", "b", 1.0)], [(topic, "a", 1.0), (topic, "b", 1.0)]
    path = tmp_path / "prefs"
    path.write_text("".join(f"{query} {iteration} {doc} {level}\n" for query, iteration, doc, level in rows))
    theirs = trec_eval_c.trec_eval(path, trec_eval_c.run_file(tmp_path / "run", run), "prefs", ["prefs_simp"])
    simp = {ties: parse("prefs_simp")(judge(qrels_of(rows), scores_of(run), ties=ties))[0]
            for ties in ("docid", "docid-rising")}  # fmt: skip
    assert simp == {"docid": 0.0, "docid-rising": 1.0}
    assert theirs == {topic: {"prefs_simp": 1.0}}


def test_one_user_without_relevant_documents_makes_the_balanced_share_0() -> None:
    assert parse("prefs_avgjg_Rnonrel")(of_topic({"u": "a1 b0"}, "ab"))[0] == 1.0
    assert parse("prefs_avgjg_Rnonrel")(of_topic({"u": "a1 b0", "v": "a0 b0"}, "ab"))[0] == 0.0


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("prefs_num_prefs_poss", "NumPrefs(of=possible)"),
        ("prefs_num_prefs_ful", "NumPrefs"),
        ("prefs_num_prefs_ful_ret", "NumPrefs(over=retrieved)"),
        ("prefs_simp", "PrefShare"),
        ("prefs_pair_imp", "PrefShare(mean=pairs,over=implied)"),
        ("prefs_avgjg_ret", "PrefShare(mean=users,over=retrieved)"),
        ("prefs_avgjg_Rnonrel_ret", "BalancedPrefShare(over=retrieved)"),
    ],
)
def test_names_of_trec_eval_are_understood(theirs: str, ours: str) -> None:
    assert str(parse(theirs)) == ours


def test_negative_levels_against_trec_eval_itself(tmp_path: Path) -> None:
    """400 topics of one user; those are left out in which trec_eval reads memory that it never set."""
    random_levels = random.Random(3)  # noqa: S311
    rows: list[Row] = []
    run: list[tuple[str, str, float]] = []
    for number in range(400):
        topic = trec_eval_c.topic_name(f"negative{number}")
        docs = "abcdefgh"[: random_levels.randint(2, 8)]
        levels = {doc: float(random_levels.choice([-2, -1, -1, 0, 0, 1, 2])) for doc in docs}
        positive = sum(level > 0 for level in levels.values())
        if sum(level == min(levels.values()) for level in levels.values()) < positive:
            continue
        rows += [(topic, "u s", doc, level) for doc, level in levels.items()]
        returned = random_levels.sample(docs, random_levels.randint(1, len(docs)))
        run += [(topic, doc, float(-rank)) for rank, doc in enumerate(returned)]
    path = tmp_path / "prefs"
    path.write_text("".join(f"{topic} {user} {doc} {level:g}\n" for topic, user, doc, level in rows))
    names = ("prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret", "prefs_avgjg", "prefs_simp")
    theirs = trec_eval_c.trec_eval(path, trec_eval_c.run_file(tmp_path / "run", run), "prefs", names)
    judged_list = judge(qrels_of(rows), scores_of(run), ties="docid-rising")
    assert len(theirs) > 200
    for name in names:
        ours = dict(zip(judged_list.query_ids, parse(name)(judged_list).tolist(), strict=True))
        expected = {topic: np.nan_to_num(topic_scores[name]) for topic, topic_scores in theirs.items()}
        assert ours == pytest.approx(expected, abs=1e-12), name
