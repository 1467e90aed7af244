"""Gain against cost: fronts, changes and gains a unit by hand, the front against its definition."""

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

TOPICS = [f"q{at:02d}" for at in range(20)]


def scored(**ranks: list[int]) -> judged.Scores:
    """Evaluate runs whose only relevant document stands at these ranks, topic by topic."""
    qrels = {topic: {"r": 1} for topic in TOPICS}
    runs = {
        name: {topic: [*(f"n{at}" for at in range(1, rank)), "r"] for topic, rank in zip(TOPICS, places, strict=True)}
        for name, places in ranks.items()
    }
    return judged.evaluate(qrels, runs, ["RR", "P@1"])


# RR of slow: 1; of mid: 1/2; of luck: 1/2 but for one topic with 1; of bad: 1/4
SCORES = scored(slow=[1] * 20, mid=[2] * 20, luck=[1] + [2] * 19, bad=[4] * 20)
COSTS = {"slow": {"ms": 50, "gb": 4}, "mid": {"ms": 10, "gb": 1}, "luck": {"ms": 20, "gb": 1}, "bad": {"ms": 20}}


def test_the_front_by_hand() -> None:
    found = SCORES.tradeoff(COSTS, cost="ms")
    assert found.front == ("mid", "luck", "slow")
    assert [one.run for one in found.rows] == ["mid", "luck", "bad", "slow"]  # cheapest first, then the better
    assert found.baseline == "mid"
    bad = found.row("bad")
    assert (bad.front, bad.sure, bad.rivals) == (False, True, ("luck", "mid"))
    assert (found.row("slow").front, found.row("slow").sure, found.row("slow").rivals) == (True, True, ())
    # luck is better than mid on one topic of 20: its interval includes 0, so its place is not sure
    assert (found.row("luck").front, found.row("luck").sure, found.row("luck").rivals) == (True, False, ("mid",))


def with_values(values: np.ndarray) -> judged.Scores:
    """Return scores of as many runs with these values by topic, (runs, topics)."""
    queries, names = [f"q{at:03}" for at in range(values.shape[1])], [f"r{at:02}" for at in range(len(values))]
    made = judged.evaluate({q: {"d": 1} for q in queries}, {name: {q: ["d"] for q in queries} for name in names}, "DCG")
    return replace(made, values=values[:, None])


def test_of_equal_runs_none_is_dominated_more_often_than_tests_may_err() -> None:
    """12 runs, 20 topics, 100 samples: 5 %, and 3 errors of that. Without a correction for 66 pairs: 8 of 10."""
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(100):
        found = with_values(10 + rng.normal(size=20) + rng.normal(size=(12, 20)))
        costs = {name: {"ms": 1} for name in found.run_names}
        wrong += len(found.tradeoff(costs, resamples=999).front) < 12
    assert wrong <= 11


def test_of_many_runs_the_best_dominates_however_few_resamples_are_asked_for() -> None:
    """Of 780 pairs p-values of 100 resamples, at least 1 / 101, would all be 1 after a correction."""
    values = 10 + np.random.default_rng(5).normal(size=(40, 30))
    values[3] += 5
    found = with_values(values)
    assert found.tradeoff({name: {"ms": 1} for name in found.run_names}, resamples=100).front == ("r03",)


def test_gain_cost_change_and_gain_a_unit_by_hand() -> None:
    found = SCORES.tradeoff(COSTS, baseline="luck")
    slow, mid, bad = (found.row(name) for name in ("slow", "mid", "bad"))
    assert slow.gain == pytest.approx(0.475)  # 1 - (1 + 19/2)/20
    assert dict(slow.cost_change) == {"ms": 30, "gb": 3}
    assert dict(slow.per_unit) == {"ms": pytest.approx(0.475 / 30), "gb": pytest.approx(0.475 / 3)}
    assert mid.gain == pytest.approx(-0.025)
    assert dict(mid.cost_change) == {"ms": -10, "gb": 0}
    assert dict(mid.per_unit) == {"ms": pytest.approx(0.0025), "gb": None}  # what each ms saved costs
    assert dict(bad.cost_change) == {"ms": 0, "gb": None}
    assert dict(bad.per_unit) == {"ms": None, "gb": None}
    luck = found.row("luck")
    assert (luck.gain, luck.gain_interval, set(luck.cost_change.values())) == (None, None, {None})


def test_gains_are_those_of_the_paired_test_in_both_directions() -> None:
    rr = SCORES.per_topic()
    for baseline in ("slow", "bad"):
        found = SCORES.tradeoff(COSTS, baseline=baseline)
        for one in found.rows:
            if one.run != baseline:
                first, second = (list(rr[run]["RR"].values()) for run in (baseline, one.run))
                expected = paired_test(first, second, resamples=10_000)
                assert one.gain == pytest.approx(expected.difference)
                assert one.gain_interval == pytest.approx(expected.interval, abs=2e-3)
    estimate = next(one for one in SCORES.estimates() if (one.run, one.measure) == ("luck", "RR"))
    assert SCORES.tradeoff(COSTS).row("luck").interval == estimate.ci


def test_what_is_not_known_is_no_zero() -> None:
    found = SCORES.tradeoff({"slow": {"ms": 50}, "mid": {"ms": None}, "bad": {"ms": float("nan")}})
    assert found.front == ("slow",)
    for name in ("mid", "luck", "bad"):
        one = found.row(name)
        assert (one.front, one.costs["ms"], one.cost_change["ms"]) == (None, None, None)
    rows = {row[0]: row for row in found.table().grid().rows}
    assert rows["mid"][3:] == ("-", "-", "-")
    assert "without all costs, and so not on the front: luck, mid, bad" in found.warnings
    assert "Not placed, as ms is not known: luck, mid, bad." in found.sentences


def test_more_of_some_costs_is_better() -> None:
    costs = {"slow": {"qps": 20}, "mid": {"qps": 100}, "luck": {"qps": 20}, "bad": {"qps": 300}}
    assert SCORES.tradeoff(costs).front == ("slow",)
    found = SCORES.tradeoff(costs, higher_is_better="qps")
    assert found.front == ("bad", "mid", "slow")
    assert found.baseline == "bad"
    assert found.row("mid").cost_change["qps"] == -200
    assert found.row("mid").per_unit["qps"] == pytest.approx(0.25 / 200)


def test_a_measure_that_is_better_low() -> None:
    low = "Fallout(n=100)@5"
    qrels = {topic: {"r": 1, "n": 0, "m": 0} for topic in TOPICS}
    scores = judged.evaluate(
        qrels, {"clean": {topic: ["r"] for topic in TOPICS}, "noisy": {topic: ["n", "r"] for topic in TOPICS}}, low
    )
    found = scores.tradeoff({"clean": {"ms": 2}, "noisy": {"ms": 3}})
    assert (found.front, found.row("noisy").sure) == (("clean",), True)
    assert scores.tradeoff({"clean": {"ms": 3}, "noisy": {"ms": 2}}).front == ("noisy", "clean")


def test_runs_with_the_same_scores_are_told_apart_by_cost_beyond_doubt() -> None:
    scores = scored(one=[2] * 20, two=[2] * 20, three=[2] * 20)
    found = scores.tradeoff({"one": {"ms": 1}, "two": {"ms": 1}, "three": {"ms": 2}})
    assert found.front == ("one", "two")
    assert (found.row("three").sure, found.row("three").rivals) == (True, ("one", "two"))
    assert (found.row("one").sure, found.row("one").rivals) == (True, ())
    assert [found.row(name).equivalent for name in ("one", "two", "three")] == [("two",), ("one",), ()]


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_a_run_that_finds_nothing_is_never_on_the_front() -> None:
    qrels = {topic: {"r": 1} for topic in TOPICS}
    runs = {name: {topic: [doc] for topic in TOPICS} for name, doc in (("wrong", "other"), ("right", "r"))}
    scores = judged.evaluate(qrels, runs, ["RR", "Fallout(n=100)@5"])
    costs = {"wrong": {"ms": 1}, "right": {"ms": 2}}
    found = scores.tradeoff(costs, measure="RR")
    assert found.front == ("right",)
    wrong = found.row("wrong")
    assert (wrong.useless, wrong.front, wrong.fronts, wrong.sure, wrong.rivals) == (
        True,
        False,
        {"ms": False},
        True,
        (),
    )
    # of a measure that is better low nothing returned is the best
    assert not any(row.useless for row in scores.tradeoff(costs, measure="Fallout(n=100)@5").rows)
    assert scores.tradeoff(costs, measure="RR", empty_score=1.0).front == ()
    assert scores.tradeoff(costs, measure="RR", empty_score=0.5).front == ("right",)


@pytest.mark.parametrize(("topics", "dominated"), [(5, False), (6, True)])
def test_dominance_in_quality_takes_six_topics(topics: int, dominated: bool) -> None:
    qrels = {topic: {"r": 1} for topic in TOPICS[:topics]}
    runs = {name: dict.fromkeys(qrels, docs) for name, docs in (("good", ["r"]), ("bad", ["x", "r"]))}
    found = judged.evaluate(qrels, runs, "RR").tradeoff({"good": {"ms": 1}, "bad": {"ms": 1}})
    assert found.row("bad").front is not dominated


def test_dominance_that_is_not_sure_is_said() -> None:
    scores = scored(cheap=[1, 3] * 10, dear=[2, 1, 3, 2] * 5)
    found = scores.tradeoff({"cheap": {"ms": 1}, "dear": {"ms": 2}})
    dear = found.row("dear")
    assert dear.gain is not None
    assert dear.gain < 0
    assert (dear.front, dear.sure, dear.rivals) == (False, False, ("cheap",))
    dear, same = (scores.tradeoff({"cheap": {"ms": 1}, "dear": {"ms": ms}}, cost_intervals=ends).row("dear")
                  for ms, ends in ((2, {"cheap": {"ms": (0.5, 1.5)}, "dear": {"ms": (1.6, 3)}}),
                                   (2, {"cheap": {"ms": (0.5, 1.7)}, "dear": {"ms": (1.6, 3)}})))  # fmt: skip
    assert (dear.front, dear.sure) == (False, False)  # cheap is faster beyond the noise
    assert (same.front, same.sure, same.rivals) == (True, False, ("cheap",))  # neither is faster nor better
    assert found.table().grid().rows[1][-1] == "no (not sure)"


points = st.lists(st.tuples(*[st.sampled_from((0.0, 0.25, 0.5, 1.0))] * 3), min_size=1, max_size=7)


@given(points)
@settings(max_examples=200)
def test_dominators_by_definition(made: list[tuple[float, float, float]]) -> None:
    values, dearer = np.array([one[0] for one in made]), np.array([one[1:] for one in made])
    for row, (value, *costs) in enumerate(made):
        expected = [
            v >= value and all(c <= d for c, d in zip(other, costs, strict=True))
            and (v > value or any(c < d for c, d in zip(other, costs, strict=True)))
            for v, *other in made
        ]  # fmt: skip
        assert dominators(row, values, dearer).tolist() == expected
    front = [row for row in range(len(made)) if not dominators(row, values, dearer).any()]
    assert front  # a finite set has a front, and what is off it is dominated by something on it
    assert all(dominators(row, values, dearer)[front].any() for row in set(range(len(made))) - set(front))


def test_many_runs_are_named_in_few_words() -> None:
    runs = {f"r{at}": [at] * 20 for at in range(1, 11)}
    found = scored(**runs).tradeoff({run: {"ms": at} for at, run in enumerate(runs)})
    assert found.front == ("r1",)
    named = ", ".join(f"r{at} (by r1)" for at in range(2, 8))
    assert any(f"{named} and 3 more" in sentence for sentence in found.sentences)


def test_forms_say_the_same(tmp_path: Path) -> None:
    found = SCORES.tradeoff(COSTS)
    made = json.loads(json.dumps(found.to_dict()))
    assert made["front"] == list(found.front)
    assert [one["run"] for one in made["results"]] == [one.run for one in found.rows]
    assert (made["results"][-1]["cost_ms"], made["results"][-1]["cost_gb"]) == (50, 4)
    assert made["baseline"] == "mid"
    lines = found.csv().splitlines()
    assert lines[0].startswith(
        "run,measure,value,ci_low,ci_high,n,gain,gain_low,gain_high,cost_ms,change_ms,per_unit_ms"
    )
    assert len(lines) == 1 + len(found.rows)
    bad = next(line for line in lines if line.startswith("bad"))
    assert ",20.0,10.0,,,,,,false," in bad  # gb is not known: nothing is written
    assert found.markdown().count("\n|") == len(found.rows) + 1
    assert all(one in " ".join(found.text().split()) for one in found.sentences)
    SCORES.save(tmp_path / "s.parquet")
    assert Scores.load(str(tmp_path / "s.parquet")).tradeoff(COSTS).to_dict() == found.to_dict()


def test_an_interval_without_limits_is_none_in_json() -> None:
    """Two topics rule out nothing: the limits of the paired interval are infinite."""
    scores = judged.evaluate({"p": {"a": 1}, "q": {"a": 1}}, {
        "one": {"p": ["x", "a"], "q": ["x", "y", "a"]}, "two": {"p": ["a"], "q": ["a"]}}, "RR")  # fmt: skip
    found = scores.tradeoff({"one": {"ms": 1}, "two": {"ms": 2}})
    assert found.row("two").gain_interval == (-np.inf, np.inf)
    made = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert next(one for one in made["results"] if one["run"] == "two")["gain_ci"] == [None, None]


def test_what_is_lost_for_a_unit_is_not_called_a_gain() -> None:
    """Against slow, mid loses a half of RR: for 80 requests a second more, and for 40 ms less."""
    costs = {"slow": {"ms": 50, "qps": 20}, "mid": {"ms": 10, "qps": 100}}
    back = " ".join(SCORES.tradeoff(costs, baseline="slow", higher_is_better="qps").sentences)
    assert "mid against slow: RR -0.5000 (-0.500 to -0.500); ms -40 (0.0125 for one unit of ms);" in back
    assert "qps +80 (0.00625 for one unit of qps)." in back
    there = " ".join(SCORES.tradeoff(costs, baseline="mid", higher_is_better="qps").sentences)
    assert "ms +40 (0.0125 for one unit of ms); qps -80 (0.00625 for one unit of qps)." in there
    table = SCORES.tradeoff(costs, baseline="slow", higher_is_better="qps").table().grid()
    assert table.header == ("run", "RR", "gain", "ms", "per ms", "qps", "per qps", "front")
    row = next(row for row in table.rows if row[0] == "mid")
    assert row[3:] == ("10 (-40)", "-0.0125", "100 (+80)", "-0.00625", "yes")


def test_a_narrow_terminal_has_one_table_and_says_what_it_lacks() -> None:
    found = SCORES.tradeoff(COSTS, cost="ms")
    wide = found.text(width=200).split("\n\n")
    assert wide[0] == found.table().text()
    assert "There is no room" not in wide[1]
    for width, lacks in ((75, "the intervals of RR"), (58, "the intervals")):
        table, said, _ = found.text(width=width).split("\n\n")
        assert max(map(len, table.splitlines())) <= width
        assert all(one.run in table for one in found.rows)
        assert " ".join(said.split()).startswith(f"There is no room for {lacks}: the other forms have them.")


def test_the_head_of_the_document_is_that_of_evaluate() -> None:
    made, expected = SCORES.tradeoff(COSTS).to_dict(), SCORES.to_dict()
    for name in ("judged", "versions", "qrels", "runs"):
        assert made[name] == expected[name]
    assert made["policies"] == {name: value for name, value in expected["policies"].items() if name != "ci"}


def drawn(spec: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    data = next(layer for layer in spec["layer"] if layer["mark"]["type"] == mark)["data"]
    return data["values"] if "values" in data else spec["datasets"][data["name"]]


def test_a_chart_has_a_point_a_run_and_the_front_of_one_cost() -> None:
    found = SCORES.tradeoff(COSTS)
    spec = found.chart("gb").to_dict()
    points = drawn(spec, "point")
    assert {one["label"]: one["colour"] for one in points} == {
        "slow": "on the front",
        "mid": "on the front",  # luck costs no more memory, but is better on one topic of twenty only
        "luck": "on the front",
    }
    assert sorted(one["label"] for one in drawn(spec, "line")) == ["luck", "slow"]
    assert len(drawn(found.chart().to_dict(), "point")) == 4
    with pytest.raises(InputError, match="no chart 'x'"):
        found.chart("x")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"measure": "AP"}, InputError, "AP was not evaluated"),
        ({"baseline": "x"}, InputError, "no run 'x'"),
        ({"cost": "x"}, InputError, "no cost 'x'"),
        ({"higher_is_better": ["x"]}, InputError, "no cost 'x'"),
        ({"test": "sign"}, InputError, "no interval"),
        ({"costs": {"other": {"ms": 3}}}, InputError, "no run that was scored"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        SCORES.tradeoff(options.pop("costs", COSTS), **options)


def test_measures_without_a_mean_are_refused() -> None:
    scores = judged.evaluate({"q": {"a": 1}}, {"one": {"q": ["a"]}}, ["GMAP", "NumRet"])
    for name in ("GMAP", "NumRet"):
        with pytest.raises(MeasureError, match=name):
            scores.tradeoff({"one": {"ms": 1}}, measure=name)


def test_one_run_and_one_topic() -> None:
    found = judged.evaluate({"q": {"a": 1}}, {"one": {"q": ["a"]}}, "RR").tradeoff({"one": {"ms": 1}})
    assert (found.front, found.row("one").sure) == (("one",), True)
    two = judged.evaluate({"q": {"a": 1, "b": 0}}, {"one": {"q": ["a"]}, "two": {"q": ["b"]}}, "RR")
    found = two.tradeoff({"one": {"ms": 1}, "two": {"ms": 2}})
    assert (found.row("two").front, found.row("two").sure, found.row("two").gain) == (False, True, -1.0)
    assert (found.row("two").useless, found.row("two").rivals) == (True, ())


EXPECTED = {"bm25": {"ms": 12.5, "gb": 1.0}, "007": {"ms": 30.0}}


def test_costs_of_every_form(tmp_path: Path) -> None:
    records = [{"run": "bm25", "ms": 12.5, "gb": 1, "cpu": "fast"}, {"run": "007", "ms": "30", "gb": None}]
    made = {
        "a.csv": "\ufeffms,run,gb,cpu\n12.5,bm25,1,fast\n30,007,,\n\n",
        "b.tsv": "run\tms\tgb\tcpu\nbm25\t12.5\t1\tfast\n007\t30\t-\n",
        "c.json": json.dumps(records),
        "d.jsonl": "\n".join(map(json.dumps, records)),
        "e.json": json.dumps({"bm25": {"ms": 12.5, "gb": 1, "cpu": "fast"}, "007": {"ms": 30}}),
    }
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    table = pa.table({"system": ["bm25", "007"], "ms": [12.5, 30], "gb": [1, None], "cpu": ["fast", None]})
    parquet.write_table(table, tmp_path / "f.parquet")
    for given_costs in (*(tmp_path / name for name in (*made, "f.parquet")), table, records):
        found = Costs.of(given_costs)
        assert found.by_run == EXPECTED
        assert set(found.names) == {"ms", "gb"}
        assert found.left_out == ("cpu",)
    assert SCORES.tradeoff(COSTS).to_dict() == SCORES.tradeoff(Costs.of(COSTS)).to_dict()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run,ms\na,fast\nb,2\n", r"the ms of run a, 'fast'"),
        ("run,ms\na,inf\n", "the ms of run a, 'inf'"),
        ("run,ms\na,1\na,2\n", "run a appears in it twice"),
        ("ms,gb\n1,2\n", "no column run among ms, gb"),
        ("run,cpu\na,fast\n", "there is no column of costs"),
        ("run,ms,ms\na,1,2\n", "two columns are called 'ms'"),
        ('[{"run": "a", "ms": 1, "ms": 2}]', "the key 'ms' appears twice"),
        ('{"a": {"run": "b", "ms": 1}}', "'run'"),
        ("run,ms,gb\na,1_000,2\n", "1_000"),
        ("run;ms;gb\na;1,5;2\nb;2,5;3\n", "1,5"),
        ('[{"run": "a", "ms": 1e999}]', "1e999"),
        ("run,ms\na,1,2\n", r"costs.csv:2: 3 fields where 2"),
        ('{"a": 3}', "run a: 3 is not a record"),
        ("[3]", "record 1: 3 is not a record"),
    ],
)
def test_refused_costs(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "costs.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        Costs.of(tmp_path / "costs.csv")


def test_other_costs_are_refused() -> None:
    with pytest.raises(InputError, match="holds no costs"):
        Costs.of(3)
    assert SCORES.tradeoff({**COSTS, "other": {"ms": 1}}).warnings[-1] == "costs of runs that were not scored: other"


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_a_run_of_another_collection_is_said_first() -> None:
    """Its ids match no judgment: it scores 0 everywhere, and a gain against it means nothing."""
    qrels = {f"q{at}": {"d": 1} for at in range(4)}
    runs = {name: {topic: [doc] for topic in qrels} for name, doc in (("old", "other-d"), ("new", "d"))}
    scores = judged.evaluate(qrels, runs, "RR")
    found = scores.tradeoff({"old": {"ms": 1}, "new": {"ms": 2}})
    assert found.warnings[0].startswith("old: nothing was measured")
