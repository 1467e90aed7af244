"""Studies against statsmodels, SciPy, and what is counted by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

from judged import Qrels
from judged.studies.crossed import mixed_model
from judged.studies.effects import Effect, effects, parts, practice
from judged.studies.outcomes import Outcome, Value, measure_agreement, outcomes
from judged.studies.preference import (
    FEATURES,
    preferred,
    searching,
    sides,
    strength_errors,
    strengths,
    strengths_of,
    way_of,
)
from judged.studies.questionnaires import item_agreement
from judged.studies.records import StudyRecords
from judged.studies.study_report import says
from studies_made import crossed, drawn


def outcome_from(values: Any, where: Any, better: Any = "more") -> Outcome:
    rows = zip(*(where[name].tolist() for name in ("person", "position", "topic", "system")), values, strict=True)
    return Outcome("made", better, tuple(
        Value(f"p{person:02}", position + 1, f"t{topic:02}", "abc"[system], "", float(value))
        for person, position, topic, system, value in rows
    ))  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_a_mixed_model_of_crossed_factors_is_that_of_statsmodels(seed: int) -> None:
    """Unbalanced: an eighth of the trials is missing. Factors are variance components of one group."""
    where, rng = crossed(12, 6), np.random.default_rng(seed)
    values = 2 * drawn(rng, where, 0.5)
    kept = rng.random(len(values)) > 0.125
    values, person, topic, system = (of[kept] for of in (values, where["person"], where["topic"], where["system"]))
    fixed = np.column_stack([np.ones(len(values)), system])
    fit = mixed_model(values, fixed, (person, topic))
    members = [(codes[:, None] == np.arange(codes.max() + 1)) * 1.0 for codes in (person, topic)]
    columns = [[[str(level) for level in range(one.shape[1])]] for one in members]
    components = VCSpec(["people", "topics"], columns, [[one] for one in members])
    model = MixedLM(values, fixed, groups=np.zeros(len(values), int), exog_vc=components)
    expected = model.fit(reml=True)
    assert fit.effects == pytest.approx(expected.fe_params, abs=2e-3)
    assert fit.residual == pytest.approx(expected.scale, rel=2e-3)
    assert fit.variances == pytest.approx(expected.vcomp, rel=1e-2)
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(np.sqrt(np.diag(expected.cov_params()))[:2], rel=5e-3)


def test_strengths_are_those_of_a_logistic_regression_clustered_by_person() -> None:
    """Of three systems; statsmodels' clustered errors with their factor P / (P - 1) * (n - 1) / (n - k) undone."""
    rng = np.random.default_rng(4)
    true, rows, person, wins = np.array([0.5, 0.0, -0.5]), [], [], np.zeros((15, 3, 3))
    for who in range(15):
        for first, second in ((0, 1), (0, 2), (1, 2)) * (1 + who % 2):
            won = rng.random() < 1 / (1 + math.exp(true[second] - true[first]))
            wins[who, first if won else second, second if won else first] += 1
            row = np.zeros(3)
            row[[first, second]] = 1, -1
            rows.append((*(row - 0)[:2] - row[2], won))  # strengths sum to 0: the third is less the two others
            person.append(who)
    table = np.array(rows)
    # x1 s1 + x2 s2 + x3 s3 with s3 = -s1 - s2 is (x1 - x3) s1 + (x2 - x3) s2
    fit = sm.Logit(table[:, 2], table[:, :2]).fit(disp=False)
    robust = sm.Logit(table[:, 2], table[:, :2]).fit(
        disp=False, cov_type="cluster", cov_kwds={"groups": np.array(person), "use_correction": False}
    )
    found = strengths(wins.sum(axis=0))
    assert found[:2] == pytest.approx(fit.params, abs=1e-6)
    assert found.sum() == pytest.approx(0, abs=1e-9)
    errors = np.array([*np.diag(robust.cov_params()), np.ones(2) @ robust.cov_params() @ np.ones(2)])
    assert strength_errors(wins, found) ** 2 == pytest.approx(errors * 15 / 14, rel=1e-4)


def test_strengths_from_records_count_ties_half_and_have_t_intervals() -> None:
    """Each of 8 people compares each pair once, so all weigh alike: Student's t with 7 degrees of freedom."""
    rng = np.random.default_rng(1)
    rows, wins = [], np.zeros((8, 3, 3))
    for who in range(8):
        for pair in ((0, 1), (1, 2), (2, 0)):
            choice = rng.integers(0, 3)  # left, right, or neither
            share = (1.0, 0.0, 0.5)[choice]
            wins[who, pair[0], pair[1]] += share
            wins[who, pair[1], pair[0]] += 1 - share
            left, right = ("abc"[one] for one in pair)
            rows.append({"participant": f"p{who}", "query_id": "q", "left": left, "right": right,
                         "preferred": (left, right, "")[choice]})  # fmt: skip
    found = strengths_of(StudyRecords.of({"participants": [{"participant": f"p{who}"} for who in range(8)],
                                          "preferences": rows}), level=0.9)  # fmt: skip
    expected = strengths(wins.sum(axis=0))
    far = stats.t.ppf(0.95, 7) * strength_errors(wins, expected)
    assert [one.system for one in found] == ["a", "b", "c"]
    assert [one.strength for one in found] == pytest.approx(expected)
    for row, value, half in zip(found, expected, far, strict=True):
        assert row.ci == pytest.approx((value - half, value + half), rel=1e-4)


def preferences(*rows: tuple[str, str, str, str]) -> StudyRecords:
    people = [{"participant": name} for name in sorted({row[0] for row in rows})]
    named = [
        {**dict(zip(("participant", "left", "right", "preferred"), row, strict=True)), "query_id": f"q{number}"}
        for number, row in enumerate(rows)
    ]
    return StudyRecords.of({"participants": people, "preferences": named})


def test_preferences_by_hand() -> None:
    """Seven people: p0 compares twice, once each way; the others prefer b, but p6 neither."""
    rows = [("p0", "a", "b", "a"), ("p0", "b", "a", "b"), ("p6", "a", "b", "")]
    rows += [(f"p{who}", *(("a", "b") if who % 2 else ("b", "a")), "b") for who in range(1, 6)]
    (found,) = preferred(preferences(*rows))
    assert (found.first, found.second, found.people, found.comparisons) == ("a", "b", 7, 8)
    assert (found.wins, found.losses) == (6, 1)
    assert found.value == pytest.approx((0.5 + 0.5 + 5) / 7)
    assert found.p == pytest.approx(2 / 2**5)  # five signs alike; of p0 and p6 nothing is left
    assert found.reason == ""
    (few,) = preferred(preferences(*rows[:2]))
    assert math.isnan(few.p)
    assert few.reason == "Not enough data: 1 participant, at least 3 are required."


@pytest.mark.parametrize(("people", "left", "is_preferred"), [(6, 6, True), (6, 5, False), (5, 5, False), (7, 0, True)])
def test_the_side_that_is_preferred_needs_six_signs(people: int, left: int, is_preferred: bool) -> None:
    """Six of six have p = 2 / 64, five of six 14 / 64."""
    rows = [(f"p{who}", "a", "b", "a" if who < left else "b") for who in range(people)]
    found = sides(preferences(*rows, (f"p{people - 1}", "a", "b", "")))
    assert found is not None
    assert (found.comparisons, found.people, found.left) == (people, people, left / people)
    assert found.p == pytest.approx(stats.binomtest(left, people).pvalue)
    assert found.preferred is is_preferred
    assert sides(preferences(("p", "a", "b", ""))) is None
    loose = sides(preferences(*rows), level=0.7)
    assert loose is not None
    assert loose.preferred == (people >= 6 and found.p <= 0.3)


def test_correlations_of_measures_are_those_of_scipy() -> None:
    rng = np.random.default_rng(7)
    people, trials = 9, 6
    person = np.repeat(np.arange(people), trials)
    x = rng.normal(size=len(person)).round(1)
    y = (x + rng.normal(size=len(person)) + rng.normal(size=people)[person]).round(1)
    rows = tuple(
        Value(f"p{who}", at % trials + 1, "t", "a", "", value)
        for at, (who, value) in enumerate(zip(person, y, strict=True))
    )
    measured = {(row.participant, row.position): score for row, score in zip(rows, x, strict=True)}
    found = measure_agreement(Outcome("liked", "more", rows), measured, "nDCG@10", level=0.9)
    assert (found.trials, found.people, found.reason) == (54, 9, "")
    assert found.pooled == pytest.approx(stats.pearsonr(x, y).statistic)
    centered = [values - np.array([values[person == who].mean() for who in range(people)])[person] for values in (x, y)]
    assert found.within == pytest.approx(stats.pearsonr(*centered).statistic)
    own = [stats.pearsonr(x[person == who], y[person == who]).statistic for who in range(people)]
    assert found.persons == pytest.approx(sorted(own))
    for value, interval, pair in ((found.pooled, found.ci, (x, y)), (found.within, found.within_ci, centered)):
        z = [math.atanh(stats.pearsonr(*(one[person != who] for one in pair)).statistic) for who in range(people)]
        error = math.sqrt((people - 1) ** 2 / people * np.var(z, ddof=1))
        half = stats.t.ppf(0.95, people - 1) * error
        assert interval == pytest.approx((math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)))
    (single,) = {stats.kendalltau(x[:trials], y[:trials]).statistic}
    alone = measure_agreement(Outcome("liked", "more", rows[:trials]), measured, "m")
    assert alone.rank == pytest.approx(single)
    assert (alone.ci, alone.within_ci) == (None, None)
    assert alone.reason == "Not enough data: 1 participant, at least 3 are required."


def test_cronbachs_alpha_is_that_of_its_formula() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(20, 1)) + rng.normal(size=(20, 4))
    alpha = 4 / 3 * (1 - values.var(axis=0, ddof=1).sum() / values.sum(axis=1).var(ddof=1))
    found, (low, high) = item_agreement(np.vstack([values, [[1, 2, math.nan, 3]]]), level=0.9)
    assert found == pytest.approx(alpha)
    f = stats.f(19, 57)  # Feldt (1965)
    assert (low, high) == pytest.approx((1 - (1 - alpha) * f.ppf(0.95), 1 - (1 - alpha) * f.ppf(0.05)))
    assert math.isnan(item_agreement(values[:1])[0])
    assert math.isnan(item_agreement(values[:, :1])[0])
    assert not math.isnan(item_agreement(values[:2])[0])


def event(action: str, query: str = "two words", **more: Any) -> dict[str, Any]:
    return {"action": action, "query": query, "page": 1, "doc_id": None, "rank": None, **more}


CLICK = event("click", doc_id="d", rank=1)


@pytest.mark.parametrize(
    ("events", "way"),
    [
        ([event("query"), CLICK], {"short query"}),
        ([event("query", "one"), CLICK], {"short query"}),
        ([event("query", "three words now"), CLICK], set()),
        ([event("query", "what is this"), CLICK], {"question"}),
        ([event("query", "whatever it is"), CLICK], set()),
        ([event("query", "it rains there ? "), CLICK], {"question"}),
        ([event("query", "cats AND big dogs"), CLICK], {"operators"}),
        ([event("query", 'say "cheese" for me'), CLICK], {"operators"}),
        ([event("query", ""), CLICK], set()),
        ([CLICK], set()),
        ([event("query"), event("query", "two"), CLICK], {"short query", "changed query"}),
        ([event("query"), event("query"), CLICK], {"short query"}),
        ([event("query"), event("query", page=2), CLICK], {"short query", "looked deep"}),
        ([event("query"), event("click", doc_id="d", rank=10)], {"short query"}),
        ([event("query"), event("click", doc_id="d", rank=11)], {"short query", "looked deep"}),
        ([event("query"), event("click", doc_id="d")], {"short query"}),
        ([event("query"), event("save", doc_id="d", rank=11)], {"short query", "saved unread"}),
        ([event("query"), CLICK, event("save", doc_id="d")], {"short query"}),
        ([event("query"), CLICK, event("save", doc_id="e")], {"short query", "saved unread"}),
        ([event("query")], {"short query", "abandoned"}),
        ([event("query"), event("back", doc_id="d")], {"short query", "abandoned"}),
    ],
)
def test_ways_of_searching(events: list[dict[str, Any]], way: set[str]) -> None:
    assert way_of(events) == way


def test_flexibility_is_counted_by_hand() -> None:
    """Of system a: three trials of two people, in two ways, of which one is taken twice."""
    trials, events = [], []
    for person, position, system, query, practiced in (
        ("p1", 1, "a", "one", False), ("p1", 2, "a", "three words here", False), ("p2", 1, "a", "one", False),
        ("p2", 2, "b", "one", False), ("p2", 3, "b", "two", True),
    ):  # fmt: skip
        of = {"participant": person, "position": position}
        trials.append({**of, "query_id": "q", "system": system, "practice": practiced})
        events.append({**of, "at": 1, "action": "query", "query": query, "page": 1, "shown": ["d"]})
    people = [{"participant": name, "group": "g"} for name in ("p1", "p2")]
    first, second = searching(StudyRecords.of({"participants": people, "trials": trials, "events": events}))
    assert (first.system, first.group, first.people, first.trials, first.ways) == ("a", "g", 2, 3, 2)
    assert first.effective == pytest.approx(math.exp(stats.entropy([2 / 3, 1 / 3])))
    assert first.own == pytest.approx((2 + 1) / 2)
    expected = dict.fromkeys(FEATURES, 0.0) | {"short query": 2 / 3, "abandoned": 1.0}
    assert first.shares == pytest.approx(expected)
    assert (second.system, second.people, second.trials, second.ways, second.own) == ("b", 1, 1, 1, 1.0)


def test_outcomes_are_counted_by_hand() -> None:
    trials, answers, events, saved = [], [], [], []
    for person, position, minutes, clicks, kept in (
        ("p1", 1, 3, [2, 7, 4], ["r", "n", "u"]), ("p1", 2, None, [], []),
        ("p2", 1, 1, [1], ["u"]), ("p2", 2, 5, [9], ["r"]),
    ):  # fmt: skip
        of = {"participant": person, "position": position}
        practiced = (person, position) == ("p2", 2)
        trials.append({**of, "query_id": "q", "system": "ab"[position - 1], "practice": practiced, "started": 60_000,
                       "ended": None if minutes is None else 60_000 * (1 + minutes)})  # fmt: skip
        answers += [{**of, "questionnaire": "liked", "item": str(item), "value": value}
                    for item, value in enumerate((position, None if minutes is None else 4.0))]  # fmt: skip
        events += [{**of, "at": at, "action": "query", "query": query, "page": 1, "shown": ["d"]}
                   for at, query in enumerate(["x", "y", "x"][: 1 + len(clicks)])]  # fmt: skip
        events += [
            {**of, "at": 10 + rank, "action": "click", "query": "x", "doc_id": "d", "rank": rank} for rank in clicks
        ]
        saved += [{**of, "at": 20, "doc_id": doc} for doc in kept]
    people = [{"participant": name} for name in ("p1", "p2")]
    records = StudyRecords.of(
        {"participants": people, "trials": trials, "answers": answers, "events": events, "saved": saved}
    )
    found = {one.name: one for one in outcomes(records, qrels=Qrels.of({"q": {"r": 2, "n": 1}}), level=2)}
    values = {name: {(one.participant, one.position): one.value for one in row.values} for name, row in found.items()}
    assert values == {
        "liked": {("p1", 1): 2.5, ("p2", 1): 2.5},
        "relevant saved": {("p1", 1): 1.0, ("p1", 2): 0.0, ("p2", 1): 0.0},
        "precision of saved": {("p1", 1): 0.5},
        "saved": {("p1", 1): 3.0, ("p1", 2): 0.0, ("p2", 1): 1.0},
        "finished": {("p1", 1): 1.0, ("p1", 2): 0.0, ("p2", 1): 1.0},
        "minutes": {("p1", 1): 3.0, ("p2", 1): 1.0},
        "queries": {("p1", 1): 2.0, ("p1", 2): 1.0, ("p2", 1): 2.0},
        "clicks": {("p1", 1): 3.0, ("p1", 2): 0.0, ("p2", 1): 1.0},
        "deepest click": {("p1", 1): 7.0, ("p2", 1): 1.0},
    }
    assert {name: row.better for name, row in found.items() if row.better != "more"} == {
        "minutes": "less", "saved": "", "queries": "", "clicks": "", "deepest click": "",
    }  # fmt: skip


def effect(difference: float, adjusted: float, better: str = "more", reason: str = "") -> Effect:
    nan = math.nan
    return Effect("o", better, "a", "b", (0, 0), (9, 9), difference, "within", 9, 9, (nan, nan), (nan, nan), nan,
                  adjusted, nan, nan, nan, nan, reason)  # fmt: skip


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (effect(1, 0.05), "better"),
        (effect(-1, 0.05), "worse"),
        (effect(1, 0.05, "less"), "worse"),
        (effect(-1, 0.05, "less"), "better"),
        (effect(1, 0.05, ""), "different"),
        (effect(1, 0.0501), "undecided"),
        (effect(1, math.nan), "not tested"),
        (effect(1, 0.01, reason="few"), "not tested"),
    ],
)
def test_what_is_said_of_a_difference(one: Effect, expected: str) -> None:
    assert says(one, 0.95) == expected


@pytest.mark.parametrize("seed", [0, 1])
def test_estimates_of_effects_and_practice_are_least_squares(seed: int) -> None:
    """Ordinary least squares of statsmodels with people, topics, positions, and systems."""
    where = crossed(12, 6)
    values = drawn(np.random.default_rng(seed), where, 1.0)
    (found,) = effects(outcome_from(values, where))
    position = where["position"]

    def design(*columns: Any) -> Any:
        codes = [(where[name][:, None] == np.arange(where[name].max() + 1)) * 1.0 for name in ("person", "topic")]
        return np.column_stack([*columns, *codes])

    places = (position[:, None] == np.arange(1, 6)) * 1.0
    expected = np.linalg.lstsq(design(where["system"], places), values, rcond=None)[0][0]
    linear = np.linalg.lstsq(design(where["system"], position), values, rcond=None)[0]
    assert found.difference == pytest.approx(expected) or found.difference == pytest.approx(linear[0])
    assert found.means == pytest.approx([values[where["system"] == code].mean() for code in (0, 1)])
    assert (found.counts, found.people, found.n, found.adjusted) == ((36, 36), 12, 6, found.p)
    whole = practice(outcome_from(values, where))[0]
    assert whole.change == pytest.approx(linear[1])
    assert (whole.first, whole.last) == pytest.approx([values[position == at].mean() for at in (0, 5)])
    assert (whole.system, whole.people) == ("", 12)


def test_parts_are_standard_deviations_of_the_mixed_model() -> None:
    where = crossed(12, 6)
    values = drawn(np.random.default_rng(5), where, 1.0, own=1.0)
    found = parts(outcome_from(values, where))
    assert found is not None
    person, topic, system = where["person"], where["topic"], where["system"]
    fixed = np.column_stack([system == 0, system == 1, where["position"] - where["position"].mean()]) * 1.0
    fit = mixed_model(values, fixed, (person, topic, 2 * topic + system, 2 * person + system))
    expected = [*np.sqrt(fit.variances), math.sqrt(fit.residual)]
    named = (found.by_person, found.by_topic, found.topics_by_system, found.people_by_system, found.trials)
    assert named == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert parts(outcome_from(values, {**where, "system": np.zeros_like(system)})) is None
    assert parts(outcome_from(np.ones_like(values), where)) is None
    two = topic < 2
    assert parts(outcome_from(values[two], {name: of[two] for name, of in where.items()})) is None
