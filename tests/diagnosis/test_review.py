"""`review`: kinds and order by hand, and changes against an evaluation with the changed label."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import judged
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.texts import Texts
from judged.diagnosis.review.answer import KINDS, ReviewList, apply_review
from judged.diagnosis.review.review import review
from judged.errors import InputError, MeasureError
from judged.scoring.evaluation.notes import few_topics_note
from strategies import BINARY, collections

pytestmark = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")  # topics missing from generated runs

MEASURES = ("nDCG@10", "nDCG@2", "AP", "P@5", "RR", "ERR(max=4)", "Bpref", "nDCG(judged_only=true)@3", "R@2", "SetF")

QRELS = {"q1": {"a": 2, "b": 0, "c": 1, "d": 0}, "q2": {"e": 1, "f": 1}, "q3": {"g": 0}}
RUN = {"q1": ["b", "x", "c", "a"], "q2": ["e", "y"]}


def keys(result: ReviewList) -> list[tuple[str, str, str]]:
    return [(item.query_id, item.doc_id, item.kind) for item in result.items]


def by_kind(result: ReviewList) -> dict[str, set[tuple[str, str]]]:
    return {kind: {(topic, doc) for topic, doc, item_kind in keys(result) if item_kind == kind} for kind in KINDS}


def test_kinds_ranks_and_grades_by_hand() -> None:
    result = review(QRELS, RUN, measure="P@2")
    assert by_kind(result) == {
        "false positive": {("q1", "b")},
        "false negative": {("q1", "a"), ("q1", "c"), ("q2", "f")},  # a and c stand lower, f was not returned
        "unjudged": {("q1", "x"), ("q2", "y")},
    }
    items = {(item.query_id, item.doc_id): item for item in result.items}
    assert (items["q1", "b"].grade, items["q1", "b"].other_grade, dict(items["q1", "b"].ranks)) == (0, 2, {"run": 1})
    assert (items["q1", "a"].grade, items["q1", "a"].other_grade, items["q1", "a"].missed) == (2, 0, ())
    assert (items["q2", "f"].ranks["run"], items["q2", "f"].missed) == (None, ("run",))
    assert (items["q2", "y"].grade, items["q2", "y"].other_grade) == (None, 2)
    assert result.counts_by_kind == {"false positive": 1, "false negative": 3, "unjudged": 2}
    assert (result.cutoff, result.rel, result.highest) == (2, 1, 2)


def test_the_most_informative_label_is_known_by_hand() -> None:
    # RR of q: 1/4 with d at rank 4; the irrelevant a at rank 1 would make it 1 (+3/4), b at rank 2 1/2 (+1/4),
    # the unjudged x at rank 3 1/3 (+1/12); if d were not relevant it would be 0 (-1/4), but d is shown, so not wrong.
    result = review({"q": {"a": 0, "b": 0, "d": 1}}, {"q": ["a", "b", "x", "d"]}, measure="RR", cutoff=4)
    assert [(item.doc_id, item.change["run"]) for item in result.items] == [
        ("a", 0.75),
        ("b", 0.25),
        ("x", pytest.approx(1 / 12)),
    ]


def test_equally_informative_labels_stand_by_topic_and_document() -> None:
    qrels = {"q2": {"b": 0, "a": 0, "z": 1}, "q1": {"d": 0, "c": 0, "z": 1}}
    result = review(qrels, {"q2": ["b", "a"], "q1": ["d", "c"]}, measure="P@2", kinds="false positive")
    assert [(item.query_id, item.doc_id) for item in result.items] == [
        ("q1", "c"),
        ("q1", "d"),
        ("q2", "a"),
        ("q2", "b"),
    ]
    assert {item.change["run"] for item in result.items} == {0.5}


def test_what_turns_the_order_of_two_runs_comes_first() -> None:
    # On q1, RR of old is 1/2 and of new 1/3. b stands first in new alone and would make it 1, so new becomes better.
    # On q2 both lack everything; z would give both 1: a larger change than any on q1, but nothing turns.
    qrels = {"q1": {"a": 1, "b": 0, "c": 0}, "q2": {"z": 0, "r": 1}}
    old = {"q1": ["c", "a", "b"], "q2": ["z", "y"]}
    new = {"q1": ["b", "c", "a"], "q2": ["z", "w"]}
    result = review(qrels, {"old": old, "new": new}, measure="RR", kinds="false positive", cutoff=1)
    assert [(item.doc_id, item.reverses_order) for item in result.items] == [("b", True), ("z", False), ("c", False)]
    first = result.items[0]
    assert dict(first.change) == {"old": 0, "new": pytest.approx(2 / 3)}
    assert first.difference == pytest.approx(2 / 3)
    assert dict(first.ranks) == {"old": 3, "new": 1}
    assert result.n_reversed == 1
    assert result.items[2].difference == pytest.approx(0.5 - 1 / 3 - 0.5)  # c: old from 1/2 to 1, new from 1/3 to 1/2


def test_a_tie_is_not_turned() -> None:
    result = review({"q": {"a": 0, "b": 0}}, {"old": {"q": ["a"]}, "new": {"q": ["b"]}}, measure="P@1")
    assert [item.reverses_order for item in result.items] == [False, False]
    assert {item.difference for item in result.items} == {-1.0, 1.0}


def test_what_is_neither_better_high_nor_low_turns_nothing() -> None:
    runs = {"old": {"q": ["a", "b"]}, "new": {"q": ["b", "x", "y"]}}
    qrels = {"q": {"a": 1, "b": 0}}
    assert review(qrels, runs, measure="NumRelRet", cutoff=3).n_reversed == 0
    assert review(qrels, runs, measure="P@1", cutoff=3, kinds="false positive").n_reversed == 0  # b would make a tie


grade = st.sampled_from((-1.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0))


@pytest.mark.parametrize("measure", MEASURES)
@given(
    collection=collections(grade=grade, score=st.sampled_from((0.0, 1.0, 2.0, 0.5, -1.0))),
    k=st.integers(1, 12),
    rel=st.sampled_from((1.0, 2.0)),
)
@settings(max_examples=25)
def test_the_change_is_that_of_evaluation_with_the_label_really_changed(
    measure: str, collection: tuple[dict[str, Any], dict[str, Any]], k: int, rel: float
) -> None:
    qrels, run = collection
    assume(rel <= max(1, *(value for docs in qrels.values() for value in docs.values())))
    result = review(qrels, run, measure=measure, cutoff=k, rel=rel)
    base = scores(qrels, run, measure)
    for item in result.items:
        other = {**qrels, item.query_id: {**qrels[item.query_id], item.doc_id: item.other_grade}}
        expected = scores(other, run, measure)[item.query_id] - base[item.query_id]
        assert item.change["run"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "Bpref"])
@given(collection=collections(grade=grade), other_collection=collections(), k=st.integers(1, 4))
@settings(max_examples=25)
def test_changes_of_two_runs_and_of_their_difference(
    measure: str, collection: Any, other_collection: Any, k: int
) -> None:
    qrels, first = collection
    second = {topic: other_collection[1].get(topic, dict(docs)) for topic, docs in first.items()}
    second = {topic: {doc: -score for doc, score in docs.items()} for topic, docs in second.items()}
    result = review(qrels, {"first": first, "second": second}, measure=measure, cutoff=k)
    base = [scores(qrels, run, measure) for run in (first, second)]
    for item in result.items:
        topic = item.query_id
        changed = {**qrels, topic: {**qrels[topic], item.doc_id: item.other_grade}}
        old = [run_scores[topic] for run_scores in base]
        new = [scores(changed, run, measure)[topic] for run in (first, second)]
        assert list(item.change.values()) == pytest.approx([new[0] - old[0], new[1] - old[1]], abs=1e-12)
        assert item.difference == pytest.approx((new[1] - new[0]) - (old[1] - old[0]), abs=1e-12)
        if min(abs(old[1] - old[0]), abs(new[1] - new[0])) > 1e-9 or old[0] == old[1]:
            assert item.reverses_order == ((old[1] - old[0]) * (new[1] - new[0]) < 0)
        all_documents = [judged.judge(qrels, run).only(topic).returned_docs for run in (first, second)]
        ranks = [
            dict(zip(documents.doc.to_pylist(), documents.rank.tolist(), strict=True)) for documents in all_documents
        ]
        assert list(item.ranks.values()) == [run_ranks.get(item.doc_id) for run_ranks in ranks]
    assert [item.reverses_order for item in result.items] == sorted(
        (item.reverses_order for item in result.items), reverse=True
    )


def scores(qrels: Any, run: Any, measure: str) -> dict[str, float]:
    return judged.evaluate(qrels, run, measure).per_topic()["run"][str(judged.measures.parse(measure))]


@given(collection=collections(grade=grade), k=st.integers(1, 8), rel=st.sampled_from((1.0, 2.0)))
@settings(max_examples=60)
def test_kinds_and_counts_against_a_plain_count(collection: tuple[Any, Any], k: int, rel: float) -> None:
    qrels, run = collection
    assume(rel <= max(1, *(value for docs in qrels.values() for value in docs.values())))
    result = review(qrels, run, measure="nDCG@10", cutoff=k, rel=rel)
    all_documents = judged.judge(qrels, run).returned_docs
    topics, rows = (
        judged.Qrels.of(qrels).topics,
        zip(all_documents.topic, all_documents.rank, all_documents.doc.to_pylist(), strict=True),
    )
    first = {(topics[topic], doc) for topic, rank, doc in rows if rank <= k}
    grades_in_top = {(topic, doc): qrels[topic].get(doc) for topic, doc in first}
    relevant = {(topic, doc) for topic, docs in qrels.items() for doc, value in docs.items() if value >= rel}
    assert by_kind(result) == {
        "false positive": {pair for pair, value in grades_in_top.items() if value is not None and value < rel},
        "false negative": relevant - first,
        "unjudged": {pair for pair, value in grades_in_top.items() if value is None},
    }
    (rates,) = result.rates
    assert rates.returned == len(first)
    assert rates.returned == rates.false_positives + rates.unjudged + len(relevant & first)
    assert (rates.relevant, rates.false_negatives) == (len(relevant), len(relevant - first))
    assert rates.false_negatives >= rates.unreachable
    assert result.counts_by_kind == {kind: len(pairs) for kind, pairs in by_kind(result).items()}
    sizes = [abs(item.change["run"]) for item in result.items]
    assert all(larger >= smaller - 1e-11 for larger, smaller in pairwise(sizes))


@given(collection=collections(grade=st.sampled_from(BINARY)), limit=st.integers(0, 4))
@settings(max_examples=30)
def test_limit_and_kinds_take_from_the_same_list(collection: tuple[Any, Any], limit: int) -> None:
    qrels, run = collection
    full = review(qrels, run, measure="AP", cutoff=3)
    assert keys(review(qrels, run, measure="AP", cutoff=3, limit=limit)) == keys(full)[:limit]
    for kind in KINDS:
        of_kind = review(qrels, run, measure="AP", cutoff=3, kinds=kind)
        assert keys(of_kind) == [key for key in keys(full) if key[2] == kind]
        assert of_kind.counts_by_kind == full.counts_by_kind


def test_many_variants_are_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = review(QRELS, RUN, measure="nDCG@3")
    monkeypatch.setattr(sys.modules["judged.diagnosis.review.review"], "_MAX_BLOCK_ROWS", 3)
    assert review(QRELS, RUN, measure="nDCG@3").to_dict() == expected.to_dict()


def test_a_measure_that_asks_for_facts_of_every_document() -> None:
    facts = {doc: {"length": 40 + i} for i, doc in enumerate("abcdefgxy")}
    result = review(QRELS, RUN, measure="TBG", cutoff=2, documents=facts)
    base = judged.evaluate(QRELS, RUN, "TBG", documents=facts).per_topic()["run"]["TBG"]
    for item in result.items:
        other = {**QRELS, item.query_id: {**QRELS[item.query_id], item.doc_id: item.other_grade}}
        changed_scores = judged.evaluate(other, RUN, "TBG", documents=facts).per_topic()["run"]["TBG"]
        assert item.change["run"] == pytest.approx(changed_scores[item.query_id] - base[item.query_id], abs=1e-12)
    assert any(item.change["run"] for item in result.items)


def test_rates_by_slice() -> None:
    kinds = {"q1": {"kind": "law"}, "q2": {"kind": "news"}, "q3": {"kind": "news"}}
    result = review(QRELS, RUN, measure="P@2", slicing=slice_topics(kinds, "kind", min_topics=2))
    rates = {row.slice: row for row in result.rates}
    assert (rates["kind=law"].n, rates["kind=law"].small) == (1, True)
    assert (rates["kind=law"].returned, rates["kind=law"].false_positives, rates["kind=law"].unjudged) == (2, 1, 1)
    assert (rates["kind=law"].relevant, rates["kind=law"].ranked_lower, rates["kind=law"].not_returned) == (2, 2, 0)
    assert (rates["kind=news"].n, rates["kind=news"].returned, rates["kind=news"].unjudged) == (2, 2, 1)
    assert rates["kind=news"].miss_rate == 0.5
    assert rates[""].false_positive_rate == 1 / 4
    assert {item.slices for item in result.items if item.query_id == "q1"} == {("kind=law",)}
    assert "kind=law (few topics)" in result.table("rates").text()
    assert "run: no documents returned for 1 of 3 topics (score 0): q3" in result.warnings


def test_slices_with_enough_topics_are_named_and_small_ones_not() -> None:
    qrels = {f"q{i}": {"r": 1, "n": 0} for i in range(7)}
    run = {f"q{i}": ["n"] if i < 2 or i == 6 else ["r"] for i in range(7)}
    kinds = {f"q{i}": {"kind": "bad" if i < 2 else "good" if i < 6 else "few"} for i in range(7)}
    slicing = slice_topics(kinds, "kind", min_topics=2)
    result = review(qrels, run, measure="P@1", slicing=slicing)
    text = next(sentence for sentence in result.sentences if "slices with enough topics" in sentence)
    assert "of documents judged not relevant is in kind=bad (2 of 2, 2 topics)" in text
    assert "not in the top 1 is in kind=bad (2 of 2, 2 topics)" in text
    assert "kind=few" not in text
    assert not any(
        "slices with" in sentence
        for sentence in review(qrels, {topic: ["r"] for topic in qrels}, slicing=slicing).sentences
    )


def test_documents_without_a_place() -> None:
    result = review({"q": {"a": 1, "b": 1, "c": 1}}, {"q": ["a", "b"]}, measure="P@1")
    (rates,) = result.rates
    assert (rates.relevant, rates.ranked_lower, rates.not_returned, rates.unreachable) == (3, 1, 1, 2)


def test_undefined_scores_have_no_change_and_come_last() -> None:
    result = review(
        {"q1": {"a": 0}, "q2": {"b": 0, "c": 1}}, {"q1": ["a"], "q2": ["b"]}, measure="AP(undefined=skip)@1"
    )
    # c is all that is relevant to q2, and b could be relevant; a would make q1 count, which does not now
    unknown = [(item.doc_id, math.isnan(item.change["run"])) for item in result.items]
    assert unknown == [("b", False), ("a", True), ("c", True)]
    assert result.to_dict()["items"][-1]["change run"] is None
    assert result.table().grid().rows[-1][-1] == "-"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoff": 0}, "cutoff must be an integer of at least 1"),
        ({"rel": 0}, "above 0, got 0"),
        ({"rel": math.nan}, "above 0, got nan"),
        ({"rel": 9}, "grade 9 or higher: the highest grade is 2"),
        ({"limit": -1}, "limit must be an integer of at least 0"),
        ({"kinds": "wrong"}, "unknown kind of label: 'wrong'"),
        ({"kinds": ()}, "`kinds` is empty"),
        ({"ties": "rank"}, "the run has no rank column"),
    ],
)
def test_refused_options(options: dict[str, Any], message: str) -> None:
    run = {"q1": {"a": 1.0}}
    with pytest.raises(InputError, match=message):
        review(QRELS, run, **options)


def test_refused_measures_and_runs() -> None:
    with pytest.raises(MeasureError, match="every label"):
        review(QRELS, RUN, measure="alpha_nDCG@10")
    with pytest.raises(MeasureError, match="all topics"):
        review(QRELS, RUN, measure="Hole@10")
    with pytest.raises(InputError, match="without scores"):
        review(QRELS, {"q1": {"a", "b"}})


def with_texts(**options: Any) -> ReviewList:
    queries = {"q1": "income tax", "q2": {"text": "peace", "kind": "news"}}
    docs = {"b": {"title": "the title", "text": "one\ttwo\nthree " + "long " * 300}, "x": "an unjudged one"}
    return review(QRELS, RUN, measure="P@2", queries=queries, texts=docs, **options)


def test_texts_are_carried_by_items_and_forms() -> None:
    result = with_texts()
    items = {item.doc_id: item for item in result.items}
    assert (items["b"].query, items["b"].title) == ("income tax", "the title")
    assert (items["x"].title, items["x"].text) == ("", "an unjudged one")
    assert "    query: income tax" in result.text()
    assert "    text: the title: one two three long" in result.text(width=60)
    assert "| an unjudged one |" in result.markdown()
    assert Texts.of({"a": "x"}).documents.keys() == {"a"}


def test_csv_and_jsonl_hold_everything() -> None:
    result = with_texts()
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    records = [json.loads(line) for line in result.jsonl().splitlines()]
    assert (
        [row["doc_id"] for row in rows]
        == [item["doc_id"] for item in records]
        == [item.doc_id for item in result.items]
    )
    for row, record, item in zip(rows, records, result.items, strict=True):
        assert float(row["change run"]) == record["change run"] == item.change["run"]
        assert (row["grade"] or None) == (None if item.grade is None else str(item.grade))
        assert (row["rank run"] or None) == (None if item.ranks["run"] is None else str(record["rank run"]))
        assert row["text"] == record["text"] == item.text
    assert json.loads(json.dumps(result.to_dict()))["items"] == records


def test_the_form_is_blind_and_comes_back() -> None:
    result = with_texts()
    rows = list(csv.DictReader(io.StringIO(result.tsv()), delimiter="\t"))
    assert list(rows[0]) == ["query_id", "doc_id", "relevance", "new_grade", "query", "title", "text"]
    assert [(row["query_id"], row["doc_id"]) for row in rows] == [(item.query_id, item.doc_id) for item in result.items]
    assert {row["new_grade"] for row in rows} == {""}
    assert max(len(row["text"]) for row in rows) <= 1000


def filled(result: ReviewList, grades: dict[tuple[str, str], object]) -> str:
    rows = list(csv.DictReader(io.StringIO(result.tsv()), delimiter="\t"))
    for row in rows:
        row["new_grade"] = str(grades.get((row["query_id"], row["doc_id"]), ""))
    target = io.StringIO()
    writer = csv.DictWriter(target, list(rows[0]), delimiter="\t")
    writer.writeheader()
    writer.writerows(rows)
    return target.getvalue()


def test_new_grades_are_put_into_the_judgments(tmp_path: Any) -> None:
    path = tmp_path / "reviewed.tsv"
    path.write_text(filled(with_texts(), {("q1", "b"): 3, ("q1", "x"): 0, ("q2", "f"): "0.5"}), encoding="utf-8-sig")
    qrels = judged.Qrels.of(QRELS)
    new = apply_review(qrels, path)
    expected = {"q1": {"a": 2, "b": 3, "c": 1, "d": 0, "x": 0}, "q2": {"e": 1, "f": 0.5}, "q3": {"g": 0}}
    assert as_dict(new) == expected
    assert as_dict(qrels) == QRELS
    path.write_text(path.read_text(encoding="utf-8-sig").replace("\t", ","))
    assert as_dict(apply_review(QRELS, path)) == expected


def as_dict(qrels: judged.Qrels) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = {}
    for row in qrels.table.to_pylist():
        grades.setdefault(row["query_id"], {})[row["doc_id"]] = row["relevance"]
    return grades


@given(collection=collections(grade=grade), data=st.data())
@settings(max_examples=40)
def test_any_form_comes_back_whatever_the_ids(collection: tuple[Any, Any], data: st.DataObject) -> None:
    qrels, run = collection
    result = review(qrels, run, measure="P@3")
    pairs = [(item.query_id, item.doc_id) for item in result.items]
    if not pairs:
        return
    selected = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    rows = list(csv.DictReader(io.StringIO(filled(result, dict.fromkeys(selected, 7))), delimiter="\t"))
    new = as_dict(apply_review(qrels, rows))
    expected = {topic: dict(docs) for topic, docs in qrels.items()}
    for query, doc in selected:
        expected[query][doc] = 7
    assert new == expected


def test_the_scores_of_reviewed_judgments_change_as_the_list_said() -> None:
    result = review(QRELS, RUN, measure="nDCG@2")
    base = scores(QRELS, RUN, "nDCG@2")
    for item in result.items:
        new = apply_review(QRELS, [{**vars(item), "relevance": item.grade, "new_grade": item.other_grade}])
        assert scores(new, RUN, "nDCG@2")[item.query_id] - base[item.query_id] == pytest.approx(item.change["run"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"doc_id": "a", "new_grade": 1}, "no column query_id"),
        ({"query_id": "q1", "doc_id": "a"}, "no column new_grade"),
        ({"query_id": "q1", "doc_id": "a", "new_grade": ""}, "no new grade is filled in"),
        ({"query_id": "q1", "doc_id": "a", "new_grade": "good"}, "'good' is not a number"),
        ({"query_id": "q1", "doc_id": "a", "new_grade": "1_000"}, "'1_000' is not a number"),
        ({"query_id": "q1", "doc_id": "a", "new_grade": "1,5"}, "a decimal point, not a comma"),
        ({"query_id": "q1", "doc_id": "a", "new_grade": "inf"}, "'inf' is infinite"),
        ({"query_id": "q9", "doc_id": "a", "new_grade": 1}, "no topic 'q9'"),
        (
            {"query_id": "q1", "doc_id": "a", "relevance": 1, "new_grade": 1},
            "has grade 1 in the list, but 2 in the qrels",
        ),
        (
            {"query_id": "q1", "doc_id": "a", "relevance": "", "new_grade": 1},
            "has grade none in the list, but 2 in the qrels",
        ),
        (
            {"query_id": "q1", "doc_id": "x", "relevance": 0, "new_grade": 1},
            "has grade 0 in the list, but none in the qrels",
        ),
        ({"query_id": "q1", "doc_id": "a", "relevance": "two", "new_grade": 1}, "has grade nan"),
    ],
)
def test_what_does_not_fit_is_refused(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        apply_review(QRELS, [row])


def test_more_that_does_not_fit(tmp_path: Any) -> None:
    row = {"query_id": "q1", "doc_id": "a", "new_grade": 1}
    with pytest.raises(InputError, match=r"two new grades, 1 and 3"):
        apply_review(QRELS, [row, {**row, "new_grade": 3}])
    several = judged.Qrels.of([{"query_id": "q1", "doc_id": "a", "iteration": i, "relevance": 1} for i in "12"])
    with pytest.raises(InputError, match="several labels"):
        apply_review(several, [row])
    with pytest.raises(InputError, match="contains no reviewed labels"):
        apply_review(QRELS, 3)
    path = tmp_path / "form.tsv"
    path.write_bytes(b"query_id\tdoc_id\tnew_grade\nq1\ta\t\xff\n")
    with pytest.raises(InputError, match="UTF-8"):
        apply_review(QRELS, path)
    path.write_text("query_id\tdoc_id\tnew_grade\nq1\ta\t1\nq9\ta\t1\n")
    with pytest.raises(InputError, match=r"form.tsv:3: the qrels have no topic"):
        apply_review(QRELS, path)


def test_sentences_give_every_count() -> None:
    text = " ".join(review(QRELS, RUN, measure="P@2", limit=2).sentences)
    assert "of the 4 documents in the top 2 of 3 topics, 1 (25.0%) are judged not relevant and 2 (50.0%)" in text
    assert (
        "Of 4 relevant documents, 3 (75.0%) are not in the top 2: 2 are ranked lower, and 1 were not returned"
    ) in text
    assert "1 false positive, 3 false negatives, 2 unjudged; the 2 most informative are listed" in text


def test_many_runs_are_summed_up() -> None:
    runs = {f"r{i}": {"q": ["b", "a"] if i < 2 else ["a", "b"]} for i in range(6)}
    result = review({"q": {"a": 1, "b": 0}}, runs, measure="RR", cutoff=1)
    grid = result.table().grid()
    assert grid.header == ("topic", "document", "kind", "grade", "other", "in the top 1", "largest change",
                           "difference", "reverses_order")  # fmt: skip
    assert grid.rows == (
        # without a, RR falls from 1 to 0 for four runs, and from 1/2 for two
        ("q", "a", "false negative", "1", "0", "4 of 6 runs", "-1.0000", "+0.0000", ""),
        ("q", "b", "false positive", "0", "1", "2 of 6 runs", "+0.5000", "+0.0000", ""),
    )
    text = " ".join(result.sentences)
    assert "r1: of the 1 document in the top 1 of 1 topic, 1 (100.0%) are judged not relevant" in text
    assert "r2: of" not in text
    assert "The 4 other runs are in the table of rates." in text
    assert len(result.rates) == 6


def test_depth_and_ties_are_those_of_judge() -> None:
    run = {"q1": {"a": 1.0, "b": 1.0, "c": 0.5, "x": 0.25}}  # by falling id b stands before a
    ranks = {
        entry.doc_id: entry.ranks["run"] for entry in review(QRELS, run, measure="P@1", kinds="false positive").items
    }
    assert ranks == {"b": 1}
    rising = review(QRELS, run, measure="P@1", ties="docid-rising")
    assert [entry.doc_id for entry in rising.items if entry.kind == "false positive"] == []
    shallow = {
        (entry.query_id, entry.doc_id): entry for entry in review(QRELS, run, measure="AP", cutoff=10, depth=2).items
    }
    assert shallow["q1", "c"].missed == ("run",)
    assert ("q1", "x") not in shallow
    base = judged.evaluate(QRELS, run, "AP", depth=2).per_topic()["run"]["AP"]["q1"]
    new = judged.evaluate({"q1": {**QRELS["q1"], "b": 2}}, run, "AP", depth=2).per_topic()["run"]["AP"]["q1"]
    assert shallow["q1", "b"].change["run"] == pytest.approx(new - base)


def test_a_run_of_other_topics_is_refused() -> None:
    with pytest.raises(InputError, match="no topic in common with the qrels: the first topic of the run is 'z1'"):
        review(QRELS, {"z1": ["a"]})


def test_warnings_are_those_of_evaluate() -> None:
    foreign = review(QRELS, {"q1": ["D1"], "q2": ["D2"], "q3": ["D3"]}, measure="P@2")
    assert foreign.warnings == (
        (
            "run: no score: none of the returned documents is judged. Check that the run uses the document ids"
            " of the qrels ('judged check')"
        ),
        "P@2: 1 of 3 topics have no relevant document: q3",
        few_topics_note(3),
        (
            "many of the first 10 documents are not judged and count as not relevant; share of unjudged documents:"
            " run 100%"
        ),
    )
    tied = review(QRELS, {"q1": {"a": 1.0, "b": 1.0, "x": 0.5}, "q2": {"e": 1.0}, "q3": {"g": 1.0}}, measure="P@1")
    (ties,) = [entry for entry in tied.warnings if entry.startswith("ties among the judged documents")]
    assert "run 50%" in ties  # a and b of four judged documents; x, which is listed for review, has no judgment
    assert "P@1 of run is between" in ties


def test_the_head_of_the_document_is_that_of_evaluate() -> None:
    document = review(QRELS, RUN, measure="P@2").to_dict()
    expected = judged.evaluate(QRELS, RUN, "P@2").to_dict()
    for name in ("judged", "versions", "qrels", "runs"):
        assert document[name] == expected[name]
    assert document["policies"] == {name: value for name, value in expected["policies"].items() if name != "ci"}


def test_one_is_not_called_several() -> None:
    text = " ".join(review(QRELS, RUN, measure="P@2", limit=1).sentences)
    assert "the 1 most informative are listed" in text
    single = " ".join(review({"q": {"a": 1}}, {"q": ["a"]}, measure="P@1").sentences)
    assert "of the 1 document in the top 1 of 1 topic, 0 (0.0%) are judged not relevant" in single
    assert "Of 1 relevant document, 0 (0.0%) are not in the top 1" in single


def test_texts_stand_below_their_rows_and_rates_by_slice() -> None:
    lines = with_texts().text(width=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[lines.index("    query: income tax") + 1].startswith("    text: ")
    kinds = {"q1": {"kind": "law"}, "q2": {"kind": "news"}, "q3": {"kind": "news"}}
    rows = (
        review(QRELS, RUN, measure="P@2", slicing=slice_topics(kinds, "kind", min_topics=2)).table("rates").grid().rows
    )
    assert [row[:3] for row in rows] == [
        ("run", "all", "3"), ("run", "kind=law (few topics)", "1"), ("run", "kind=news", "2"),
    ]  # fmt: skip
    assert rows[0][4:6] == ("1 (25.0%)", "2 (50.0%)")
