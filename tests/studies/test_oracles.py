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
from judged.studies.effects import SystemEffect, learning_effects, system_effects, variance_components
from judged.studies.outcomes import Outcome, TrialValue, measure_agreement, outcomes
from judged.studies.preference import (
    FEATURES,
    bradley_terry,
    bradley_terry_errors,
    pair_preferences,
    preference_strengths,
    search_behavior,
    search_strategy,
    side_bias,
)
from judged.studies.questionnaires import item_agreement
from judged.studies.records import StudyRecords
from judged.studies.study_report import effect_verdict
from studies_made import crossed, sample_values


def outcome_from(values: Any, where: Any, better: Any = "more") -> Outcome:
    rows = zip(*(where[name].tolist() for name in ("person", "position", "topic", "system")), values, strict=True)
    return Outcome("made", better, tuple(
        TrialValue(f"p{person:02}", position + 1, f"t{topic:02}", "abc"[system], "", float(value))
        for person, position, topic, system, value in rows
    ))  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_a_mixed_model_of_crossed_factors_is_that_of_statsmodels(seed: int) -> None:
    """Unbalanced: an eighth of the trials is missing. Factors are variance components of one group."""
    where, rng = crossed(12, 6), np.random.default_rng(seed)
    values = 2 * sample_values(rng, where, 0.5)
    is_used = rng.random(len(values)) > 0.125
    values, person, topic, system = (of[is_used] for of in (values, where["person"], where["topic"], where["system"]))
    fixed = np.column_stack([np.ones(len(values)), system])
    fit = mixed_model(values, fixed, (person, topic))
    members = [(codes[:, None] == np.arange(codes.max() + 1)) * 1.0 for codes in (person, topic)]
    columns = [[[str(level) for level in range(indicators.shape[1])]] for indicators in members]
    components = VCSpec(["people", "topics"], columns, [[indicators] for indicators in members])
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
    for i in range(15):
        for first, second in ((0, 1), (0, 2), (1, 2)) * (1 + i % 2):
            won = rng.random() < 1 / (1 + math.exp(true[second] - true[first]))
            wins[i, first if won else second, second if won else first] += 1
            row = np.zeros(3)
            row[[first, second]] = 1, -1
            rows.append((*(row - 0)[:2] - row[2], won))  # strengths sum to 0: the third is less the two others
            person.append(i)
    table = np.array(rows)
    # x1 s1 + x2 s2 + x3 s3 with s3 = -s1 - s2 is (x1 - x3) s1 + (x2 - x3) s2
    fit = sm.Logit(table[:, 2], table[:, :2]).fit(disp=False)
    robust = sm.Logit(table[:, 2], table[:, :2]).fit(
        disp=False, cov_type="cluster", cov_kwds={"groups": np.array(person), "use_correction": False}
    )
    strengths = bradley_terry(wins.sum(axis=0))
    assert strengths[:2] == pytest.approx(fit.params, abs=1e-6)
    assert strengths.sum() == pytest.approx(0, abs=1e-9)
    errors = np.array([*np.diag(robust.cov_params()), np.ones(2) @ robust.cov_params() @ np.ones(2)])
    assert bradley_terry_errors(wins, strengths) ** 2 == pytest.approx(errors * 15 / 14, rel=1e-4)


def test_strengths_from_records_count_ties_half_and_have_t_intervals() -> None:
    """Each of 8 people compares each pair once, so all weigh alike: Student's t with 7 degrees of freedom."""
    rng = np.random.default_rng(1)
    rows, wins = [], np.zeros((8, 3, 3))
    for i in range(8):
        for pair in ((0, 1), (1, 2), (2, 0)):
            choice = rng.integers(0, 3)  # left, right, or neither
            share = (1.0, 0.0, 0.5)[choice]
            wins[i, pair[0], pair[1]] += share
            wins[i, pair[1], pair[0]] += 1 - share
            left, right = ("abc"[record] for record in pair)
            rows.append({"participant": f"p{i}", "query_id": "q", "left": left, "right": right,
                         "preferred": (left, right, "")[choice]})  # fmt: skip
    strengths = preference_strengths(StudyRecords.of({"participants": [{"participant": f"p{i}"} for i in range(8)],
                                          "preferences": rows}), level=0.9)  # fmt: skip
    expected = bradley_terry(wins.sum(axis=0))
    far = stats.t.ppf(0.95, 7) * bradley_terry_errors(wins, expected)
    assert [record.system for record in strengths] == ["a", "b", "c"]
    assert [record.strength for record in strengths] == pytest.approx(expected)
    for row, value, half in zip(strengths, expected, far, strict=True):
        assert row.ci == pytest.approx((value - half, value + half), rel=1e-4)


def preferences(*rows: tuple[str, str, str, str]) -> StudyRecords:
    people = [{"participant": name} for name in sorted({row[0] for row in rows})]
    comparisons = [
        {**dict(zip(("participant", "left", "right", "preferred"), row, strict=True)), "query_id": f"q{number}"}
        for number, row in enumerate(rows)
    ]
    return StudyRecords.of({"participants": people, "preferences": comparisons})


def test_preferences_by_hand() -> None:
    """Seven people: p0 compares twice, once each way; the others prefer b, but p6 neither."""
    rows = [("p0", "a", "b", "a"), ("p0", "b", "a", "b"), ("p6", "a", "b", "")]
    rows += [(f"p{i}", *(("a", "b") if i % 2 else ("b", "a")), "b") for i in range(1, 6)]
    (preference,) = pair_preferences(preferences(*rows))
    assert (preference.first, preference.second, preference.people, preference.comparisons) == ("a", "b", 7, 8)
    assert (preference.wins, preference.losses) == (6, 1)
    assert preference.value == pytest.approx((0.5 + 0.5 + 5) / 7)
    assert preference.p == pytest.approx(2 / 2**5)  # five signs alike; of p0 and p6 nothing is left
    assert preference.reason == ""
    (few,) = pair_preferences(preferences(*rows[:2]))
    assert math.isnan(few.p)
    assert few.reason == "Not enough data: 1 participant, at least 3 are required."


@pytest.mark.parametrize(("people", "left", "is_preferred"), [(6, 6, True), (6, 5, False), (5, 5, False), (7, 0, True)])
def test_the_side_that_is_preferred_needs_six_signs(people: int, left: int, is_preferred: bool) -> None:
    """Six of six have p = 2 / 64, five of six 14 / 64."""
    rows = [(f"p{i}", "a", "b", "a" if i < left else "b") for i in range(people)]
    bias = side_bias(preferences(*rows, (f"p{people - 1}", "a", "b", "")))
    assert bias is not None
    assert (bias.comparisons, bias.people, bias.left) == (people, people, left / people)
    assert bias.p == pytest.approx(stats.binomtest(left, people).pvalue)
    assert bias.preferred is is_preferred
    assert side_bias(preferences(("p", "a", "b", ""))) is None
    loose = side_bias(preferences(*rows), level=0.7)
    assert loose is not None
    assert loose.preferred == (people >= 6 and bias.p <= 0.3)


def test_correlations_of_measures_are_those_of_scipy() -> None:
    rng = np.random.default_rng(7)
    people, trials = 9, 6
    person = np.repeat(np.arange(people), trials)
    x = rng.normal(size=len(person)).round(1)
    y = (x + rng.normal(size=len(person)) + rng.normal(size=people)[person]).round(1)
    rows = tuple(
        TrialValue(f"p{participant}", i % trials + 1, "t", "a", "", value)
        for i, (participant, value) in enumerate(zip(person, y, strict=True))
    )
    measured = {(row.participant, row.position): score for row, score in zip(rows, x, strict=True)}
    agreement = measure_agreement(Outcome("liked", "more", rows), measured, "nDCG@10", level=0.9)
    assert (agreement.trials, agreement.people, agreement.reason) == (54, 9, "")
    assert agreement.pooled == pytest.approx(stats.pearsonr(x, y).statistic)
    centered = [
        values - np.array([values[person == participant].mean() for participant in range(people)])[person]
        for values in (x, y)
    ]
    assert agreement.within == pytest.approx(stats.pearsonr(*centered).statistic)
    person_correlations = [
        stats.pearsonr(x[person == participant], y[person == participant]).statistic for participant in range(people)
    ]
    assert agreement.persons == pytest.approx(sorted(person_correlations))
    for value, interval, pair in (
        (agreement.pooled, agreement.ci, (x, y)),
        (agreement.within, agreement.within_ci, centered),
    ):
        z = [
            math.atanh(stats.pearsonr(*(record[person != participant] for record in pair)).statistic)
            for participant in range(people)
        ]
        error = math.sqrt((people - 1) ** 2 / people * np.var(z, ddof=1))
        half = stats.t.ppf(0.95, people - 1) * error
        assert interval == pytest.approx((math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)))
    (single,) = {stats.kendalltau(x[:trials], y[:trials]).statistic}
    alone = measure_agreement(Outcome("liked", "more", rows[:trials]), measured, "m")
    assert alone.tau == pytest.approx(single)
    assert (alone.ci, alone.within_ci) == (None, None)
    assert alone.reason == "Not enough data: 1 participant, at least 3 are required."


def test_cronbachs_alpha_is_that_of_its_formula() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(20, 1)) + rng.normal(size=(20, 4))
    alpha = 4 / 3 * (1 - values.var(axis=0, ddof=1).sum() / values.sum(axis=1).var(ddof=1))
    estimated_alpha, (low, high) = item_agreement(np.vstack([values, [[1, 2, math.nan, 3]]]), level=0.9)
    assert estimated_alpha == pytest.approx(alpha)
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
        ([event("query"), event("query", page=2), CLICK], {"short query"}),  # pages of all queries are numbered
        ([event("query"), event("query", page=2, rank=11), CLICK], {"short query", "deep results"}),
        ([event("query"), event("click", doc_id="d", rank=10)], {"short query"}),
        ([event("query"), event("click", doc_id="d", rank=11)], {"short query", "deep results"}),
        ([event("query"), event("click", doc_id="d")], {"short query"}),
        ([event("query"), event("save", doc_id="d", rank=11)], {"short query", "saved unread"}),
        ([event("query"), CLICK, event("save", doc_id="d")], {"short query"}),
        ([event("query"), CLICK, event("save", doc_id="e")], {"short query", "saved unread"}),
        ([event("query")], {"short query", "abandoned"}),
        ([event("query"), event("back", doc_id="d")], {"short query", "abandoned"}),
    ],
)
def test_ways_of_searching(events: list[dict[str, Any]], way: set[str]) -> None:
    assert search_strategy(events) == way
    assert search_strategy(events, [1.0, 1.5]) == way | {"raised terms"}
    assert search_strategy(events, [0.5, 1.0]) == way | {"lowered terms"}


def test_flexibility_is_counted_by_hand() -> None:
    """Of system a: three trials of two people, in two ways, of which one is taken twice."""
    trials, events = [], []
    for person, position, system, query, practiced in (
        ("p1", 1, "a", "one", False), ("p1", 2, "a", "three words here", False), ("p2", 1, "a", "one", False),
        ("p2", 2, "b", "one", False), ("p2", 3, "b", "two", True),
    ):  # fmt: skip
        of = {"participant": person, "position": position}
        trials.append({**of, "query_id": "q", "system": system, "practice": practiced})
        events.append({**of, "time": 1, "action": "query", "query": query, "page": 1, "shown": ["d"]})
    people = [{"participant": name, "group": "g"} for name in ("p1", "p2")]
    first, second = search_behavior(StudyRecords.of({"participants": people, "trials": trials, "events": events}))
    assert (first.system, first.group, first.people, first.trials, first.strategies) == ("a", "g", 2, 3, 2)
    assert first.effective_strategies == pytest.approx(math.exp(stats.entropy([2 / 3, 1 / 3])))
    assert first.strategies_per_person == pytest.approx((2 + 1) / 2)
    expected = dict.fromkeys(FEATURES, 0.0) | {"short query": 2 / 3, "abandoned": 1.0}
    assert first.shares == pytest.approx(expected)
    assert (second.system, second.people, second.trials, second.strategies, second.strategies_per_person) == (
        "b",
        1,
        1,
        1,
        1.0,
    )


def test_outcomes_are_counted_by_hand() -> None:
    trials, answers, events, saved = [], [], [], []
    for person, position, minutes, clicks, saved_docs in (
        ("p1", 1, 3, [2, 7, 4], ["r", "n", "u"]), ("p1", 2, None, [], []),
        ("p2", 1, 1, [1], ["u"]), ("p2", 2, 5, [9], ["r"]),
    ):  # fmt: skip
        of = {"participant": person, "position": position}
        practiced = (person, position) == ("p2", 2)
        trials.append({**of, "query_id": "q", "system": "ab"[position - 1], "practice": practiced, "started": 60_000,
                       "ended": None if minutes is None else 60_000 * (1 + minutes)})  # fmt: skip
        answers += [{**of, "questionnaire": "liked", "item": str(item), "value": value}
                    for item, value in enumerate((position, None if minutes is None else 4.0))]  # fmt: skip
        events += [{**of, "time": i, "action": "query", "query": query, "page": 1, "shown": ["d"]}
                   for i, query in enumerate(["x", "y", "x"][: 1 + len(clicks)])]  # fmt: skip
        events += [
            {**of, "time": 10 + rank, "action": "click", "query": "x", "doc_id": "d", "rank": rank} for rank in clicks
        ]
        saved += [{**of, "time": 20, "doc_id": doc} for doc in saved_docs]
    people = [{"participant": name} for name in ("p1", "p2")]
    records = StudyRecords.of(
        {"participants": people, "trials": trials, "answers": answers, "events": events, "saved": saved}
    )
    by_name = {record.name: record for record in outcomes(records, qrels=Qrels.of({"q": {"r": 2, "n": 1}}), level=2)}
    values = {
        name: {(record.participant, record.position): record.value for record in row.values}
        for name, row in by_name.items()
    }
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
        "strategies": {("p1", 0): 1.0, ("p2", 0): 1.0},
    }
    assert {name: row.better for name, row in by_name.items() if row.better != "more"} == {
        "minutes": "less", "saved": "", "queries": "", "clicks": "", "deepest click": "", "strategies": "",
    }  # fmt: skip


def effect(difference: float, adjusted: float, better: str = "more", reason: str = "") -> SystemEffect:
    nan = math.nan
    return SystemEffect("o", better, "a", "b", (0, 0), (9, 9), difference, "within", 9, 9, (nan, nan), (nan, nan), nan,
                  adjusted, nan, nan, nan, nan, reason)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (effect(1, 0.05), "better"),
        (effect(-1, 0.05), "worse"),
        (effect(1, 0.05, "less"), "worse"),
        (effect(-1, 0.05, "less"), "better"),
        (effect(1, 0.05, ""), "different"),
        (effect(1, 0.0501), "undecided"),
        (effect(1, math.nan), "no verdict"),
        (effect(1, 0.01, reason="few"), "no verdict"),
    ],
)
def test_what_is_said_of_a_difference(row: SystemEffect, expected: str) -> None:
    assert effect_verdict(row, 0.95) == expected


@pytest.mark.parametrize("seed", [0, 1])
def test_estimates_of_effects_and_practice_are_least_squares(seed: int) -> None:
    """Ordinary least squares of statsmodels with people, topics, positions, and systems."""
    where = crossed(12, 6)
    values = sample_values(np.random.default_rng(seed), where, 1.0)
    (effect,) = system_effects(outcome_from(values, where))
    position = where["position"]

    def design(*columns: Any) -> Any:
        codes = [(where[name][:, None] == np.arange(where[name].max() + 1)) * 1.0 for name in ("person", "topic")]
        return np.column_stack([*columns, *codes])

    places = (position[:, None] == np.arange(1, 6)) * 1.0
    expected = np.linalg.lstsq(design(where["system"], places), values, rcond=None)[0][0]
    linear = np.linalg.lstsq(design(where["system"], position), values, rcond=None)[0]
    assert effect.difference == pytest.approx(expected) or effect.difference == pytest.approx(linear[0])
    assert effect.means == pytest.approx([values[where["system"] == code].mean() for code in (0, 1)])
    assert (effect.counts, effect.people, effect.n, effect.adjusted) == ((36, 36), 12, 6, effect.p)
    rows = learning_effects(outcome_from(values, where))[0]
    assert rows.change == pytest.approx(linear[1])
    assert (rows.first, rows.last) == pytest.approx([values[position == i].mean() for i in (0, 5)])
    assert (rows.system, rows.people) == ("", 12)


def test_parts_are_standard_deviations_of_the_mixed_model() -> None:
    where = crossed(12, 6)
    values = sample_values(np.random.default_rng(5), where, 1.0, interaction=1.0)
    components = variance_components(outcome_from(values, where))
    assert components is not None
    person, topic, system = where["person"], where["topic"], where["system"]
    fixed = np.column_stack([system == 0, system == 1, where["position"] - where["position"].mean()]) * 1.0
    fit = mixed_model(values, fixed, (person, topic, 2 * topic + system, 2 * person + system))
    expected = [*np.sqrt(fit.variances), math.sqrt(fit.residual)]
    deviations = (
        components.by_person,
        components.by_topic,
        components.topics_by_system,
        components.people_by_system,
        components.trials,
    )
    assert deviations == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert variance_components(outcome_from(values, {**where, "system": np.zeros_like(system)})) is None
    assert variance_components(outcome_from(np.ones_like(values), where)) is None
    two = topic < 2
    assert variance_components(outcome_from(values[two], {name: of[two] for name, of in where.items()})) is None
