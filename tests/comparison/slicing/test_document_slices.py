"""Judgments and scores by group of documents."""

from __future__ import annotations

import csv
import io
import json
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged import InputError, JudgedWarning, Qrels, by_document, evaluate
from judged.comparison.slicing import document_slices
from judged.comparison.slicing.by_document import ALL
from judged.data.freshness import AFTER, dated_documents

QRELS = {
    "q1": {"w1": 2, "m1": 1, "w2": 0, "m2": -1, "u1": 1},
    "q2": {"m1": 1, "m3": 1},
    "q3": {"w1": 1},
    "q4": {"w1": 0},
}
FACTS = {
    "w1": {"source": "web", "date": "2024-01-01", "new": True, "level": 1},
    "w2": {"source": "web", "date": "2024-05-30", "new": True, "level": 2},
    "m1": {"source": "mail", "date": "2024-05-31", "new": False, "level": 2},
    "m2": {"source": "mail", "new": False},
    "m3": {"source": "mail", "date": "2024-05-20", "new": True, "level": 2.5},
}
RUNS = {
    "a": {"q1": ["m1", "x", "w1"], "q2": ["m1", "m3"], "q3": ["x", "w1"], "q4": ["x"]},
    "b": {"q1": ["w1"], "q3": ["w1"]},
}


def grades(qrels: Qrels) -> dict[str, dict[str, float]]:
    output: dict[str, dict[str, float]] = {}
    for row in qrels.table.to_pylist():
        output.setdefault(row["query_id"], {})[row["doc_id"]] = row["relevance"]
    return output


def test_only_documents_of_one_group_are_relevant() -> None:
    result = document_slices(QRELS, FACTS, "source")
    assert {group: grades(judged) for group, judged in result.items()} == {
        "mail": {"q1": {"w1": 0, "m1": 1, "w2": 0, "m2": -1, "u1": 0}, "q2": {"m1": 1, "m3": 1}},
        "web": {"q1": {"w1": 2, "m1": 0, "w2": 0, "m2": -1, "u1": 0}, "q3": {"w1": 1}},
        "unknown": {"q1": {"w1": 0, "m1": 0, "w2": 0, "m2": -1, "u1": 1}},
    }
    assert list(result) == ["mail", "web", "unknown"]  # 3, 2 and 1 relevant pairs; unknown is last
    assert result["mail"].name == "qrels, source=mail"


def test_the_level_of_relevance_decides_which_topics_stay() -> None:
    result = document_slices(QRELS, FACTS, "source", rel=2)
    assert {group: grades(judged) for group, judged in result.items()} == {
        "web": {"q1": {"w1": 2, "m1": 0, "w2": 0, "m2": -1, "u1": 0}}
    }
    with pytest.raises(InputError, match="no document has grade 3 or higher"):
        document_slices(QRELS, FACTS, "source", rel=3)


def test_groups_are_texts_truth_few_numbers_or_ages() -> None:
    assert list(document_slices(QRELS, FACTS, "new")) == ["true", "false", "unknown"]
    assert list(document_slices(QRELS, FACTS, "level")) == ["1", "2", "2.5", "unknown"]
    # ages on 2024-05-31: 0, 1, 11, and 151 days; of four documents, the thirds end with the second and the third
    ages = document_slices(QRELS, FACTS, "freshness")
    assert {group: sorted(grades(judged)) for group, judged in ages.items()} == {
        "0 to 1 days": ["q1", "q2"],
        "2 to 11 days": ["q2"],
        "over 11 days": ["q1", "q3"],
        "no date": ["q1"],
    }
    assert list(ages) == ["0 to 1 days", "2 to 11 days", "over 11 days", "no date"]
    ages = document_slices(QRELS, dated_documents(FACTS, as_of="2024-05-21", bands="1,30"), "freshness")
    assert list(ages) == [AFTER, "0 to 1 days", "over 30 days", "no date"]
    many = {f"d{i}": {"x": i, "title": f"t{i}", "date": "2024-01-01"} for i in range(51)}
    for by, problem in {
        "x": "a column may have at most 12 distinct values, x has 51. Fix: use a column with fewer values, or",
        "title": "a column may have at most 50 distinct values, title has 51",
        "nope": "no column 'nope'. Fix: use one of x, title, date",
    }.items():
        with pytest.raises(InputError) as raised:
            document_slices({"q": {"d1": 1}}, many, by)
        assert problem in str(raised.value)
    with pytest.raises(InputError, match="no column of dates: the columns are source"):
        document_slices(QRELS, {"w1": {"source": "web"}}, "freshness")


def test_subtopics_stay() -> None:
    table = pa.table(
        {
            "query_id": ["q", "q", "q"],
            "doc_id": ["w1", "w1", "m1"],
            "relevance": [1.0, 0.0, 1.0],
            "iteration": ["1", "2", "2"],
        }
    )
    result = document_slices(table, FACTS, "source")["web"].table
    assert result.column_names == table.column_names
    assert result["relevance"].to_pylist() == [1.0, 0.0, 0.0]


@given(st.integers(0, 2**32 - 1))
def test_relevant_documents_are_dealt_out_to_the_groups(seed: int) -> None:
    """Each relevant judgment is relevant in exactly one group, and negative grades are unchanged."""
    rng = np.random.default_rng(seed)
    qrels = {f"q{t}": {f"d{d}": int(rng.integers(-1, 3)) for d in range(6)} for t in range(4)}
    qrels["q0"]["d0"] = 1
    facts = {f"d{d}": {"s": str(rng.integers(3))} for d in range(5)}
    result = {group: grades(judged) for group, judged in document_slices(qrels, facts, "s").items()}
    for query, docs in qrels.items():
        for doc, grade in docs.items():
            got = {group: judged[query][doc] for group, judged in result.items() if query in judged}
            group = facts.get(doc, {}).get("s", "unknown")
            assert got == {name: grade if grade < 0 or name == group else 0 for name in got}
            assert grade < 1 or group in got
    for judged in result.values():
        assert all(max(docs.values()) >= 1 and len(docs) == 6 for docs in judged.values())


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_scores_by_group_by_hand() -> None:
    result = by_document(QRELS, RUNS, ["R@2", "RR"], FACTS, "source", ci="none", min_topics=2)
    assert result.names == (ALL, "mail", "web", "unknown")
    values = {(estimate.part, estimate.run, estimate.measure): estimate.value for estimate in result.estimates}
    # mail: q1 {m1}, q2 {m1, m3}; web: q1 {w1}, q3 {w1}; unknown: q1 {u1}
    expected = {
        ("mail", "a", "R@2"): 1.0,
        ("mail", "a", "RR"): 1.0,
        ("mail", "b", "R@2"): 0.0,
        ("mail", "b", "RR"): 0.0,
        ("web", "a", "R@2"): 0.5,
        ("web", "a", "RR"): (1 / 3 + 1 / 2) / 2,
        ("web", "b", "R@2"): 1.0,
        ("web", "b", "RR"): 1.0,
        ("unknown", "a", "R@2"): 0.0,
        ("unknown", "b", "RR"): 0.0,
        (ALL, "a", "RR"): (1 + 1 + 1 / 2 + 0) / 4,
    }
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=1e-15)
    counts = {estimate.part: (estimate.size, estimate.relevant, estimate.small) for estimate in result.estimates}
    assert counts == {ALL: (4, 6, False), "mail": (2, 3, False), "web": (2, 2, False), "unknown": (1, 1, True)}
    assert result.estimate("web", "b").value == 1.0
    assert "the source of 1 of 6 relevant documents (17%) is unknown" in result.warnings
    assert "groups with fewer than 2 topics have unreliable means: unknown" in result.warnings


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_every_number_is_that_of_evaluate_on_the_groups_judgments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    docs = [f"d{i}" for i in range(8)]
    qrels = {f"q{t}": {doc: int(rng.integers(-1, 3)) for doc in docs[:6]} for t in range(5)}
    qrels["q0"]["d0"] = 1
    facts = {doc: {"s": str(rng.integers(3))} for doc in docs[:5]}
    runs = {name: {query: list(rng.permutation(docs)) for query in qrels} for name in ("a", "b")}
    measures = ["nDCG@5", "AP", "P@3", "Bpref", "NumRel"]
    result = by_document(qrels, runs, measures, facts, "s", ci="t")
    groups = document_slices(qrels, facts, "s")
    assert result.names == (ALL, *groups)
    for group, judged in {ALL: Qrels.of(qrels), **groups}.items():
        alone = evaluate(judged, runs, measures).estimates(ci="t")
        mine = [estimate for estimate in result.estimates if estimate.part == group]
        assert [(row.run, row.measure, row.value, row.ci, row.n) for row in mine] == [
            (row.run, row.measure, row.value, row.ci, row.n) for row in alone
        ]
        assert {row.size for row in mine} == {len(judged.topics)}


def test_a_run_without_the_topics_of_a_group_scores_zero_there() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", JudgedWarning)
        with pytest.raises(JudgedWarning, match="b: no documents returned for 2 of 4 topics"):
            by_document(QRELS, RUNS, "RR", FACTS, "source")
    with pytest.warns(JudgedWarning) as caught:
        result = by_document(QRELS, {"b": {"q3": ["w1"]}}, "RR", FACTS, "source", ci="none")
    assert len(caught) == 1  # one warning, not one per group
    assert result.estimate("mail").value == 0.0
    assert result.estimate("web").value == 0.5


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_all_forms_show_the_same_numbers() -> None:
    result = by_document(QRELS, RUNS, ["R@2", "RR"], FACTS, "source", ci="t", min_topics=2)
    table = result.overview("RR").grid()
    assert table.header == ("RR", "topics", "relevant", "a", "b")
    assert [row[:3] for row in table.rows] == [
        (ALL, "4", "6"), ("mail", "2", "3"), ("web", "2", "2"), ("unknown (few)", "1", "1"),
    ]  # fmt: skip
    assert table.rows[3][3] == "0.0000"
    assert result.overview(run="b").grid().header == ("group", "topics", "relevant", "R@2", "RR")
    assert result.overview("RR").text() in result.text()
    assert result.overview("R@2").markdown() in result.markdown()
    assert all(sentence in result.markdown() for sentence in result.sentences)
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(result.csv())))
    assert len(rows) == len(document["results"]) == 16
    for row, element, estimate in zip(rows, document["results"], result.estimates, strict=True):
        assert float(row["value"]) == element["value"] == estimate.value
        assert row["group"] == element["group"] == estimate.part
        assert (element["ci"] is None) == (row["ci_low"] == "") == (estimate.ci is None)
    text = " ".join(result.sentences)
    assert "a has its lowest R@2 where source is web: 0.5000 over 2 topics and 2 relevant documents." in text
    assert "b has its lowest R@2 where source is mail: 0.0000" in text
    assert "not rows with each other" in text
    assert "Rows marked (few) have fewer than 2 topics." in text
    assert repr(result).endswith(f"warning: {result.warnings[-1]}")
    assert "<table>" in result._repr_html_()


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_errors() -> None:
    result = by_document(QRELS, RUNS, "RR", FACTS, "source", ci="none")
    for options, message in [
        ({"name": "x"}, "unknown group: 'x'. Fix: use one of all documents, mail, web, unknown"),
        ({"run": "x"}, "no run 'x'. Fix: use one of a, b"),
        ({"measure": "AP"}, "AP was not evaluated. Fix: use RR"),
    ]:
        with pytest.raises(InputError) as raised:
            result.estimate(**options)
        assert message in str(raised.value)
    with pytest.raises(InputError, match="the group name 'all documents' is reserved"):
        by_document({"q": {"d": 1}}, {"q": ["d"]}, "RR", {"d": {"s": ALL}}, "s")


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_the_chart_draws_every_number_of_a_measure() -> None:
    result = by_document(QRELS, RUNS, ["R@2", "RR"], FACTS, "source", ci="t", min_topics=2)
    resampled = result.chart("RR", width=300).to_dict()
    points = {(record["group"], record["run"]): record for record in result.charts()["RR"].table.records()}
    expected = [estimate for estimate in result.estimates if estimate.measure == "RR"]
    assert len(points) == len(expected) == 8
    for row in expected:
        point = points[f"{row.part} ({row.size})", row.run]
        assert (point["value"], point["small"]) == (row.value, row.small)
        assert point["ci"] == (None if row.ci is None else list(row.ci))
    assert resampled["title"]["subtitle"].endswith(
        "only documents with one value of source count as relevant; hollow: too few topics"
    )
    with pytest.raises(InputError, match="no chart 'x'"):
        result.chart("x")
