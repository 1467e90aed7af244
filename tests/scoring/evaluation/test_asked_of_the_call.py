"""What a call asks of all its measures: a level of relevance; and measures over some of the topics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from judged import InputError, compare, evaluate

QRELS = {f"q{at}": {"a": 2, "b": 1} for at in range(8)}
ONE = {query: {"b": 2.0, "a": 1.0} for query in QRELS}
OTHER = {query: {"a": 2.0} for query in QRELS}
KINDS = {query: {"kind": "law" if at < 3 else "news"} for at, query in enumerate(QRELS)}


def test_a_level_for_the_call_goes_to_measures_that_have_one_and_do_not_say_it() -> None:
    scores = evaluate(QRELS, ONE, ["RR, P@1 nDCG@1", "AP(rel=1)", "mrr@5-l1"], rel=2)
    assert scores.measure_names == ("RR(rel=2)", "P(rel=2)@1", "nDCG@1", "AP", "RR@5")
    assert scores.aggregate()["run"] == {"RR(rel=2)": 0.5, "P(rel=2)@1": 0.0, "nDCG@1": 0.5, "AP": 1.0, "RR@5": 1.0}
    assert [note.rule for note in scores.notes if note.rule in {"rel-without-effect", "merged-grades"}] == [
        "rel-without-effect"
    ]
    assert "rel-without-effect" not in {note.rule for note in evaluate(QRELS, ONE, "RR", rel=2).notes}


def test_a_level_under_a_dialect() -> None:
    assert evaluate(QRELS, ONE, "map P.5", dialect="trec_eval-9", rel=2).measure_names == ("AP(rel=2)", "P(rel=2)@5")


def test_a_measure_over_some_topics_is_that_of_a_table_of_these_topics() -> None:
    measures = ["RR(rel=2)", "RR(rel=2) where kind == 'law'", "P@1 where not kind == 'law'"]
    runs = {"one": {**ONE, "q0": OTHER["q0"]}, "other": OTHER}
    scores = evaluate(QRELS, runs, measures, attributes=KINDS, ties="bounds", unjudged=True)
    law = evaluate({query: QRELS[query] for query in ("q0", "q1", "q2")}, runs, measures[0])
    for run in runs:
        found = {one.measure: one for one in scores.estimates() if one.run == run}
        alone = law.estimates()[law.run_names.index(run)]
        within = found[measures[1]]
        assert (within.value, within.ci, within.n) == (alone.value, alone.ci, 3)
        assert found[measures[2]].n == 5
    assert np.isnan(scores.values[:, 1]).tolist() == [[False] * 3 + [True] * 5] * 2
    assert all(np.isnan(span.low[:, 1, 3:]).all() and not np.isnan(span.low[:, 1, :3]).any() for span in scores.ranges)


def test_a_comparison_counts_the_topics_of_the_condition() -> None:
    measures = ["RR(rel=2)", "RR(rel=2) where kind == 'law'"]
    runs = {"one": {**ONE, "q1": OTHER["q1"]}, "other": OTHER}
    found = next(
        one.result for one in compare(QRELS, runs, measures, attributes=KINDS).pairs if one.measure == measures[1]
    )
    law = {query: QRELS[query] for query in ("q0", "q1", "q2")}
    alone = compare(law, runs, measures[0]).pairs[0].result
    assert (found.n, found.difference, found.interval) == (3, alone.difference, alone.interval)


@pytest.mark.parametrize(
    ("attributes", "where", "message"),
    [
        (KINDS, "knd == 'law'", "no attribute 'knd'. Fix: use one of kind, query_id."),
        (None, "kind == 'law'", "Fix: use one of query_id; or pass attributes= "),
        (KINDS, "kind == 'sport'", "no topic satisfies"),
        (KINDS, "kind == 3", "is a text, but is compared with 3"),
    ],
)
def test_conditions_that_make_no_sense(attributes: Any, where: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(QRELS, ONE, f"P@5 where {where}", attributes=attributes)
    assert message in str(caught.value)
    assert str(caught.value).startswith("P@5 where ")


def test_topics_by_their_ids_need_no_attributes_and_scores_are_read_back(tmp_path: Any) -> None:
    scores = evaluate(QRELS, ONE, "P@5 where query_id in ('q1', 'q2')")
    assert scores.estimates()[0].n == 2
    scores.save(tmp_path / "scores.parquet")
    assert type(scores).load(tmp_path / "scores.parquet").aggregate() == scores.aggregate()


def test_topics_of_which_an_attribute_is_not_known_are_counted() -> None:
    notes = evaluate(QRELS, ONE, "P@5 where kind == 'law'", attributes={"q1": {"kind": "law"}}).notes
    assert [note.rule for note in notes if note.rule == "topics-without-attribute"] == ["topics-without-attribute"]
