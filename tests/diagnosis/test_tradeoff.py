"""Pareto front of score and cost: fronts, changes and gains per unit by hand, and dominance by definition."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import judged
from judged.diagnosis.tradeoff.answer import dominators
from judged.diagnosis.tradeoff.tradeoff import Costs
from judged.errors import InputError, MeasureError
from judged.scoring.evaluation import Scores
from judged.stats.paired import paired_test

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = [f"q{i:02d}" for i in range(20)]


def scores_of_ranks(**ranks: list[int]) -> judged.Scores:
    """Evaluate runs with the only relevant document at these ranks, by topic."""
    qrels = {topic: {"r": 1} for topic in TOPICS}
    runs = {
        name: {
            topic: [*(f"n{i}" for i in range(1, rank)), "r"] for topic, rank in zip(TOPICS, ranks_by_topic, strict=True)
        }
        for name, ranks_by_topic in ranks.items()
    }
    return judged.evaluate(qrels, runs, ["RR", "P@1"])


# RR of slow: 1; of mid: 1/2; of luck: 1/2 but for one topic with 1; of bad: 1/4
SCORES = scores_of_ranks(slow=[1] * 20, mid=[2] * 20, luck=[1] + [2] * 19, bad=[4] * 20)
COSTS = {"slow": {"ms": 50, "gb": 4}, "mid": {"ms": 10, "gb": 1}, "luck": {"ms": 20, "gb": 1}, "bad": {"ms": 20}}


def test_the_front_by_hand() -> None:
    result = SCORES.tradeoff(COSTS, cost="ms")
    assert result.front == ("mid", "luck", "slow")
    assert [row.run for row in result.rows] == ["mid", "luck", "bad", "slow"]  # cheapest first, then the better
    assert result.baseline == "mid"
    bad = result.row("bad")
    assert (bad.front, bad.certain, bad.rivals) == (False, True, ("luck", "mid"))
    assert (result.row("slow").front, result.row("slow").certain, result.row("slow").rivals) == (True, True, ())
    # luck is better than mid on one topic of 20: its interval includes 0, so its place is not sure
    assert (result.row("luck").front, result.row("luck").certain, result.row("luck").rivals) == (True, False, ("mid",))


def with_values(values: np.ndarray) -> judged.Scores:
    """Return scores of as many runs with these values by topic, (runs, topics)."""
    topics, run_names = [f"q{i:03}" for i in range(values.shape[1])], [f"r{i:02}" for i in range(len(values))]
    scores = judged.evaluate(
        {topic: {"d": 1} for topic in topics}, {name: {topic: ["d"] for topic in topics} for name in run_names}, "DCG"
    )
    return replace(scores, values=values[:, None])


def test_of_equal_runs_none_is_dominated_more_often_than_tests_may_err() -> None:
    """12 runs, 20 topics, 100 samples: 5 %, and 3 errors of that. Without a correction for 66 pairs: 8 of 10."""
    rng, errors = np.random.default_rng(4), 0
    for _ in range(100):
        scores = with_values(10 + rng.normal(size=20) + rng.normal(size=(12, 20)))
        costs = {name: {"ms": 1} for name in scores.run_names}
        errors += len(scores.tradeoff(costs, resamples=999).front) < 12
    assert errors <= 11


def test_of_many_runs_the_best_dominates_however_few_resamples_are_asked_for() -> None:
    """Of 780 pairs p-values of 100 resamples, at least 1 / 101, would all be 1 after a correction."""
    values = 10 + np.random.default_rng(5).normal(size=(40, 30))
    values[3] += 5
    scores = with_values(values)
    assert scores.tradeoff({name: {"ms": 1} for name in scores.run_names}, resamples=100).front == ("r03",)


def test_gain_cost_change_and_gain_a_unit_by_hand() -> None:
    result = SCORES.tradeoff(COSTS, baseline="luck")
    slow, mid, bad = (result.row(name) for name in ("slow", "mid", "bad"))
    assert slow.gain == pytest.approx(0.475)  # 1 - (1 + 19/2)/20
    assert dict(slow.cost_change) == {"ms": 30, "gb": 3}
    assert dict(slow.per_unit) == {"ms": pytest.approx(0.475 / 30), "gb": pytest.approx(0.475 / 3)}
    assert mid.gain == pytest.approx(-0.025)
    assert dict(mid.cost_change) == {"ms": -10, "gb": 0}
    assert dict(mid.per_unit) == {"ms": pytest.approx(0.0025), "gb": None}  # what each ms saved costs
    assert dict(bad.cost_change) == {"ms": 0, "gb": None}
    assert dict(bad.per_unit) == {"ms": None, "gb": None}
    luck = result.row("luck")
    assert (luck.gain, luck.gain_interval, set(luck.cost_change.values())) == (None, None, {None})


def test_gains_are_those_of_the_paired_test_in_both_directions() -> None:
    rr = SCORES.per_topic()
    for baseline in ("slow", "bad"):
        result = SCORES.tradeoff(COSTS, baseline=baseline)
        for row in result.rows:
            if row.run != baseline:
                first, second = (list(rr[run]["RR"].values()) for run in (baseline, row.run))
                expected = paired_test(first, second, resamples=10_000)
                assert row.gain == pytest.approx(expected.difference)
                assert row.gain_interval == pytest.approx(expected.interval, abs=2e-3)
    estimate = next(row for row in SCORES.estimates() if (row.run, row.measure) == ("luck", "RR"))
    assert SCORES.tradeoff(COSTS).row("luck").interval == estimate.ci


def test_what_is_not_known_is_no_zero() -> None:
    result = SCORES.tradeoff({"slow": {"ms": 50}, "mid": {"ms": None}, "bad": {"ms": float("nan")}})
    assert result.front == ("slow",)
    for name in ("mid", "luck", "bad"):
        row = result.row(name)
        assert (row.front, row.costs["ms"], row.cost_change["ms"]) == (None, None, None)
    rows = {row[0]: row for row in result.table().grid().rows}
    assert rows["mid"][3:] == ("-", "-", "-")
    warning = "runs not compared with the Pareto front, because a cost or the score is unknown: luck, mid, bad"
    assert warning in result.warnings
    assert "Not compared with the Pareto front, because ms is unknown: luck, mid, bad." in result.sentences


def test_more_of_some_costs_is_better() -> None:
    costs = {"slow": {"qps": 20}, "mid": {"qps": 100}, "luck": {"qps": 20}, "bad": {"qps": 300}}
    assert SCORES.tradeoff(costs).front == ("slow",)
    result = SCORES.tradeoff(costs, higher_is_better="qps")
    assert result.front == ("bad", "mid", "slow")
    assert result.baseline == "bad"
    assert result.row("mid").cost_change["qps"] == -200
    assert result.row("mid").per_unit["qps"] == pytest.approx(0.25 / 200)


def test_a_measure_that_is_better_low() -> None:
    low = "Fallout(n=100)@5"
    qrels = {topic: {"r": 1, "n": 0, "m": 0} for topic in TOPICS}
    scores = judged.evaluate(
        qrels, {"clean": {topic: ["r"] for topic in TOPICS}, "noisy": {topic: ["n", "r"] for topic in TOPICS}}, low
    )
    result = scores.tradeoff({"clean": {"ms": 2}, "noisy": {"ms": 3}})
    assert (result.front, result.row("noisy").certain) == (("clean",), True)
    assert scores.tradeoff({"clean": {"ms": 3}, "noisy": {"ms": 2}}).front == ("noisy", "clean")


def test_runs_with_the_same_scores_are_told_apart_by_cost_beyond_doubt() -> None:
    scores = scores_of_ranks(one=[2] * 20, two=[2] * 20, three=[2] * 20)
    result = scores.tradeoff({"one": {"ms": 1}, "two": {"ms": 1}, "three": {"ms": 2}})
    assert result.front == ("one", "two")
    assert (result.row("three").certain, result.row("three").rivals) == (True, ("one", "two"))
    assert (result.row("one").certain, result.row("one").rivals) == (True, ())
    assert [result.row(name).equivalent for name in ("one", "two", "three")] == [("two",), ("one",), ()]


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_a_run_that_finds_nothing_is_never_on_the_front() -> None:
    qrels = {topic: {"r": 1} for topic in TOPICS}
    runs = {name: {topic: [doc] for topic in TOPICS} for name, doc in (("wrong", "other"), ("right", "r"))}
    scores = judged.evaluate(qrels, runs, ["RR", "Fallout(n=100)@5"])
    costs = {"wrong": {"ms": 1}, "right": {"ms": 2}}
    result = scores.tradeoff(costs, measure="RR")
    assert result.front == ("right",)
    wrong = result.row("wrong")
    assert (wrong.scores_as_empty, wrong.front, wrong.fronts, wrong.certain, wrong.rivals) == (
        True,
        False,
        {"ms": False},
        True,
        (),
    )
    # of a measure that is better low nothing returned is the best
    assert not any(row.scores_as_empty for row in scores.tradeoff(costs, measure="Fallout(n=100)@5").rows)
    assert scores.tradeoff(costs, measure="RR", empty_score=1.0).front == ()
    assert scores.tradeoff(costs, measure="RR", empty_score=0.5).front == ("right",)


@pytest.mark.parametrize(("topics", "dominated"), [(5, False), (6, True)])
def test_dominance_in_quality_takes_six_topics(topics: int, dominated: bool) -> None:
    qrels = {topic: {"r": 1} for topic in TOPICS[:topics]}
    runs = {name: dict.fromkeys(qrels, docs) for name, docs in (("good", ["r"]), ("bad", ["x", "r"]))}
    result = judged.evaluate(qrels, runs, "RR").tradeoff({"good": {"ms": 1}, "bad": {"ms": 1}})
    assert result.row("bad").front is not dominated


def test_dominance_that_is_not_sure_is_said() -> None:
    scores = scores_of_ranks(cheap=[1, 3] * 10, dear=[2, 1, 3, 2] * 5)
    result = scores.tradeoff({"cheap": {"ms": 1}, "dear": {"ms": 2}})
    dear = result.row("dear")
    assert dear.gain is not None
    assert dear.gain < 0
    assert (dear.front, dear.certain, dear.rivals) == (False, False, ("cheap",))
    dear, same = (scores.tradeoff({"cheap": {"ms": 1}, "dear": {"ms": ms}}, cost_intervals=ends).row("dear")
                  for ms, ends in ((2, {"cheap": {"ms": (0.5, 1.5)}, "dear": {"ms": (1.6, 3)}}),
                                   (2, {"cheap": {"ms": (0.5, 1.7)}, "dear": {"ms": (1.6, 3)}})))  # fmt: skip
    assert (dear.front, dear.certain) == (False, False)  # cheap is faster beyond the noise
    assert (same.front, same.certain, same.rivals) == (True, False, ("cheap",))  # neither is faster nor better
    assert result.table().grid().rows[1][-1] == "no (uncertain)"


points = st.lists(st.tuples(*[st.sampled_from((0.0, 0.25, 0.5, 1.0))] * 3), min_size=1, max_size=7)


@given(points)
@settings(max_examples=200)
def test_dominators_by_definition(points: list[tuple[float, float, float]]) -> None:
    values, cost_matrix = np.array([point[0] for point in points]), np.array([point[1:] for point in points])
    for row, (value, *run_costs) in enumerate(points):
        expected = [
            other_value >= value and all(other <= cost for other, cost in zip(other_costs, run_costs, strict=True))
            and (other_value > value or any(other < cost for other, cost in zip(other_costs, run_costs, strict=True)))
            for other_value, *other_costs in points
        ]  # fmt: skip
        assert dominators(row, values, cost_matrix).tolist() == expected
    front = [row for row in range(len(points)) if not dominators(row, values, cost_matrix).any()]
    assert front  # a finite set has a front, and what is off it is dominated by something on it
    assert all(dominators(row, values, cost_matrix)[front].any() for row in set(range(len(points))) - set(front))


def test_many_runs_are_named_in_few_words() -> None:
    runs = {f"r{i}": [i] * 20 for i in range(1, 11)}
    result = scores_of_ranks(**runs).tradeoff({run: {"ms": i} for i, run in enumerate(runs)})
    assert result.front == ("r1",)
    listing = ", ".join(f"r{i} (by r1)" for i in range(2, 8))
    assert any(f"{listing} and 3 more" in sentence for sentence in result.sentences)


def test_forms_say_the_same(tmp_path: Path) -> None:
    result = SCORES.tradeoff(COSTS)
    document = json.loads(json.dumps(result.to_dict()))
    assert document["front"] == list(result.front)
    assert [row["run"] for row in document["results"]] == [row.run for row in result.rows]
    assert (document["results"][-1]["cost_ms"], document["results"][-1]["cost_gb"]) == (50, 4)
    assert document["baseline"] == "mid"
    lines = result.csv().splitlines()
    assert lines[0].startswith(
        "run,measure,value,ci_low,ci_high,n,gain,gain_low,gain_high,cost_ms,change_ms,per_unit_ms"
    )
    assert len(lines) == 1 + len(result.rows)
    bad = next(line for line in lines if line.startswith("bad"))
    assert ",20.0,10.0,,,,,,false," in bad  # gb is not known: nothing is written
    assert result.markdown().count("\n|") == len(result.rows) + 1
    assert all(row in " ".join(result.text().split()) for row in result.sentences)
    SCORES.save(tmp_path / "s.parquet")
    assert Scores.load(str(tmp_path / "s.parquet")).tradeoff(COSTS).to_dict() == result.to_dict()


def test_an_interval_without_limits_is_none_in_json() -> None:
    """With two topics, the limits of the paired interval are infinite."""
    scores = judged.evaluate({"p": {"a": 1}, "q": {"a": 1}}, {
        "one": {"p": ["x", "a"], "q": ["x", "y", "a"]}, "two": {"p": ["a"], "q": ["a"]}}, "RR")  # fmt: skip
    result = scores.tradeoff({"one": {"ms": 1}, "two": {"ms": 2}})
    assert result.row("two").gain_interval == (-np.inf, np.inf)
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert next(row for row in document["results"] if row["run"] == "two")["gain_ci"] == [None, None]


def test_what_is_lost_for_a_unit_is_not_called_a_gain() -> None:
    """Against slow, mid loses a half of RR: for 80 requests a second more, and for 40 ms less."""
    costs = {"slow": {"ms": 50, "qps": 20}, "mid": {"ms": 10, "qps": 100}}
    from_slow = " ".join(SCORES.tradeoff(costs, baseline="slow", higher_is_better="qps").sentences)
    assert "mid against slow: RR -0.5000 (95% CI [-0.500, -0.500]); ms -40 (0.0125 RR per unit of ms);" in from_slow
    assert "qps +80 (0.00625 RR per unit of qps)." in from_slow
    from_mid = " ".join(SCORES.tradeoff(costs, baseline="mid", higher_is_better="qps").sentences)
    assert "ms +40 (0.0125 RR per unit of ms); qps -80 (0.00625 RR per unit of qps)." in from_mid
    table = SCORES.tradeoff(costs, baseline="slow", higher_is_better="qps").table().grid()
    assert table.header == ("run", "RR", "gain", "ms", "per ms", "qps", "per qps", "front")
    row = next(row for row in table.rows if row[0] == "mid")
    assert row[3:] == ("10 (-40)", "-0.0125", "100 (+80)", "-0.00625", "yes")


def test_a_narrow_terminal_has_one_table_and_says_what_it_lacks() -> None:
    result = SCORES.tradeoff(COSTS, cost="ms")
    wide = result.text(width=200).split("\n\n")
    assert wide[0] == result.table().text()
    assert "There is no room" not in wide[1]
    for width, missing in ((75, "the intervals of RR"), (58, "the intervals")):
        table, sentence, _ = result.text(width=width).split("\n\n")
        assert max(map(len, table.splitlines())) <= width
        assert all(row.run in table for row in result.rows)
        assert " ".join(sentence.split()).startswith(
            f"The table is too wide to show {missing}. All formats except text show these intervals."
        )


def test_the_head_of_the_document_is_that_of_evaluate() -> None:
    document, expected = SCORES.tradeoff(COSTS).to_dict(), SCORES.to_dict()
    for name in ("judged", "versions", "qrels", "runs"):
        assert document[name] == expected[name]
    assert document["policies"] == {name: value for name, value in expected["policies"].items() if name != "ci"}


def chart_data(spec: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    data = next(layer for layer in spec["layer"] if layer["mark"]["type"] == mark)["data"]
    return data["values"] if "values" in data else spec["datasets"][data["name"]]


def test_a_chart_has_a_point_a_run_and_the_front_of_one_cost() -> None:
    result = SCORES.tradeoff(COSTS)
    spec = result.chart("gb").to_dict()
    points = chart_data(spec, "point")
    assert {point["label"]: point["color"] for point in points} == {
        "slow": "on the front",
        "mid": "on the front",  # luck costs no more memory, but is better on one topic of twenty only
        "luck": "on the front",
    }
    assert sorted(point["label"] for point in chart_data(spec, "line")) == ["luck", "slow"]
    assert len(chart_data(result.chart().to_dict(), "point")) == 4
    with pytest.raises(InputError, match="no chart 'x'"):
        result.chart("x")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"measure": "AP"}, InputError, "AP was not evaluated"),
        ({"baseline": "x"}, InputError, "no run 'x'"),
        ({"cost": "x"}, InputError, "no cost 'x'"),
        ({"higher_is_better": ["x"]}, InputError, "no cost 'x'"),
        ({"test": "sign"}, InputError, "no confidence interval"),
        ({"costs": {"other": {"ms": 3}}}, InputError, "no scored run has a value of ms"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SCORES.tradeoff(options.pop("costs", COSTS), **options)


def test_measures_without_a_mean_are_refused() -> None:
    scores = judged.evaluate({"q": {"a": 1}}, {"one": {"q": ["a"]}}, ["GMAP", "NumRet"])
    for name in ("GMAP", "NumRet"):
        with pytest.raises(MeasureError, match=name):
            scores.tradeoff({"one": {"ms": 1}}, measure=name)


def test_one_run_and_one_topic() -> None:
    result = judged.evaluate({"q": {"a": 1}}, {"one": {"q": ["a"]}}, "RR").tradeoff({"one": {"ms": 1}})
    assert (result.front, result.row("one").certain) == (("one",), True)
    two = judged.evaluate({"q": {"a": 1, "b": 0}}, {"one": {"q": ["a"]}, "two": {"q": ["b"]}}, "RR")
    result = two.tradeoff({"one": {"ms": 1}, "two": {"ms": 2}})
    assert (result.row("two").front, result.row("two").certain, result.row("two").gain) == (False, True, -1.0)
    assert (result.row("two").scores_as_empty, result.row("two").rivals) == (True, ())


EXPECTED = {"bm25": {"ms": 12.5, "gb": 1.0}, "007": {"ms": 30.0}}


def test_costs_of_every_form(tmp_path: Path) -> None:
    records = [{"run": "bm25", "ms": 12.5, "gb": 1, "cpu": "fast"}, {"run": "007", "ms": "30", "gb": None}]
    texts = {
        "a.csv": "\ufeffms,run,gb,cpu\n12.5,bm25,1,fast\n30,007,,\n\n",
        "b.tsv": "run\tms\tgb\tcpu\nbm25\t12.5\t1\tfast\n007\t30\t-\n",
        "c.json": json.dumps(records),
        "d.jsonl": "\n".join(map(json.dumps, records)),
        "e.json": json.dumps({"bm25": {"ms": 12.5, "gb": 1, "cpu": "fast"}, "007": {"ms": 30}}),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    table = pa.table({"system": ["bm25", "007"], "ms": [12.5, 30], "gb": [1, None], "cpu": ["fast", None]})
    parquet.write_table(table, tmp_path / "f.parquet")
    for source in (*(tmp_path / name for name in (*texts, "f.parquet")), table, records):
        costs = Costs.of(source)
        assert costs.by_run == EXPECTED
        assert set(costs.names) == {"ms", "gb"}
        assert costs.left_out == ("cpu",)
    assert SCORES.tradeoff(COSTS).to_dict() == SCORES.tradeoff(Costs.of(COSTS)).to_dict()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,ms\na,fast\nb,2\n", r"the ms of run a, 'fast'"),
        ("run,ms\na,inf\n", "the ms of run a, 'inf'"),
        ("run,ms\na,1\na,2\n", "run a has two rows"),
        ("ms,gb\n1,2\n", "no column 'run' among ms, gb"),
        ("run,cpu\na,fast\n", "no column has numbers"),
        ("run,ms,ms\na,1,2\n", "two columns are called 'ms'"),
        ('[{"run": "a", "ms": 1, "ms": 2}]', "the key 'ms' appears twice"),
        ('{"a": {"run": "b", "ms": 1}}', "'run'"),
        ("run,ms,gb\na,1_000,2\n", "1_000"),
        ("run;ms;gb\na;1,5;2\nb;2,5;3\n", "1,5"),
        ('[{"run": "a", "ms": 1e999}]', "1e999"),
        ("run,ms\na,1,2\n", r"costs.csv:2: 3 fields, expected 2"),
        ('{"a": 3}', "run a must be an object, got 3"),
        ("[3]", "record 1 must be an object, got 3"),
    ],
)
def test_refused_costs(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "costs.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        Costs.of(tmp_path / "costs.csv")


def test_other_costs_are_refused() -> None:
    with pytest.raises(InputError, match="contains no costs"):
        Costs.of(3)
    assert SCORES.tradeoff({**COSTS, "other": {"ms": 1}}).warnings[-1] == "costs of runs that were not scored: other"


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_a_run_of_another_collection_is_said_first() -> None:
    """Its ids match no judgment, so it scores 0 everywhere, and a gain over it is meaningless."""
    qrels = {f"q{i}": {"d": 1} for i in range(4)}
    runs = {name: {topic: [doc] for topic in qrels} for name, doc in (("old", "other-d"), ("new", "d"))}
    scores = judged.evaluate(qrels, runs, "RR")
    result = scores.tradeoff({"old": {"ms": 1}, "new": {"ms": 2}})
    assert result.warnings[0].startswith("old: no score")
