"""`judge` against the plainest reference, in every form that a run can have."""

from __future__ import annotations

import copy
import gzip
import hashlib
import math
import random
from contextlib import ExitStack, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import judged
from judged import InputError, Judged, judge
from judged.data.layout import Layout
from judged.data.rows import MappingRows, TableRows
from judged.data.text_rows import TextRows
from judged.scoring.judging import judge_list
from judged.scoring.judging import scan as buckets
from judged.scoring.judging import scan as scanning
from strategies import Qrels, Run, collections, ranked, rows_of, with_integers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TREC = Layout(("query_id", "", "doc_id", "rank", "score", ""), " ")


class Hit(NamedTuple):
    topic: str
    rank: int
    doc: str
    grade: float
    score: float
    tie_first: int
    tie_last: int


def expected_hits(qrels: Qrels, run: Run, depth: int | None = None) -> list[Hit]:
    hits: list[Hit] = []
    for topic in sorted(qrels, key=str.encode):
        order = ranked(run.get(topic, {}))
        values = [run[topic][doc] for doc in order]
        for rank, (doc, value) in enumerate(zip(order, values, strict=True), 1):
            if doc in qrels[topic] and (depth is None or rank <= depth):
                equals = [at for at, other in enumerate(values, 1) if other == value]
                hits.append(Hit(topic, rank, doc, qrels[topic][doc], value, min(equals), max(equals)))
    return hits


def hits_of(found: Judged) -> list[Hit]:
    return [
        Hit(found.query_ids[topic], *rest)
        for topic, *rest in zip(
            found.topic.tolist(),
            found.rank.tolist(),
            found.doc,
            found.grade.tolist(),
            found.score.tolist(),
            found.tie_first.tolist(),
            found.tie_last.tolist(),
            strict=True,
        )
    ]


def assert_as_expected(found: Judged, qrels: Qrels, run: Run, depth: int | None = None) -> None:
    most = math.inf if depth is None else depth
    topics = sorted(qrels, key=str.encode)
    extra = sorted(set(run) - set(qrels), key=str.encode)
    assert list(found.query_ids) == topics
    assert hits_of(found) == expected_hits(qrels, run, depth)
    assert found.returned.tolist() == [min(most, len(run.get(topic, {}))) for topic in topics]
    assert found.present.tolist() == [topic in run for topic in topics]
    assert list(found.extra) == extra
    assert found.extra_returned.tolist() == [min(most, len(run[topic])) for topic in extra]
    labels = [(topic, doc) for topic in topics for doc in qrels[topic]]
    names = [(found.query_ids[t], found.qrels.index.row_names[r])
             for t, r in zip(found.label_topic.tolist(), found.label_row.tolist(), strict=True)]  # fmt: skip
    assert sorted(names) == sorted(labels)
    assert [qrels[topic][doc] for topic, doc in names] == found.label_grade.tolist()
    assert [names[row] for row in found.row.tolist()] == [(hit.topic, hit.doc) for hit in hits_of(found)]


def trec_file(path: Path, rows: Sequence[tuple[str, str, float]]) -> Path:
    path.write_text("".join(f"{topic} Q0 {doc} {at} {score!r} tag\n" for at, (topic, doc, score) in enumerate(rows)))
    return path


def text_run(path: Path, rows: Sequence[tuple[str, str, float]], block: int = 64) -> judged.Run:
    return judged.Run(TextRows(trec_file(path, rows), TREC, str(path), block), "file")


def table_run(rows: Sequence[tuple[str, str, float]]) -> judged.Run:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.string(), pa.string(), pa.float64())
    columns[2] = [float(score) for score in columns[2]]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return judged.Run(TableRows(pa.table(arrays, names=["query_id", "doc_id", "score"])), "table")


@contextmanager
def small_pieces(held: int = 7, edge: int = 3, part: int = 5) -> Iterator[None]:
    """Let files and tables come in many small pieces, so that topics cross their ends."""
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(buckets, _MAX_ROWS_IN_MEMORY=held, _MAX_SHARE_ROWS=held))
        stack.enter_context(patch.object(scanning, "_MAX_EDGE_ROWS", edge))
        stack.enter_context(patch("judged.data.rows.SLICE", part))
        yield


def filled(run: Run) -> Run:
    """Leave out the topics without documents: a table or file cannot name them."""
    return {topic: docs for topic, docs in run.items() if docs}


@given(collections(), st.one_of(st.none(), st.integers(1, 6)))
def test_a_dict_is_judged_as_the_reference_does(pair: tuple[Qrels, Run], depth: int | None) -> None:
    qrels, run = pair
    assert_as_expected(judge(qrels, run, depth=depth), qrels, run, depth)


@given(collections())
def test_integers_are_the_ids_that_they_spell(pair: tuple[Qrels, Run]) -> None:
    qrels, run = pair
    assert_as_expected(judge(qrels, with_integers(run)), qrels, run)
    assert_as_expected(judge(with_integers(qrels), run), qrels, run)
    assert_as_expected(judge(with_integers(qrels), with_integers(run)), qrels, run)


@pytest.mark.parametrize("number", [-5, 0, 10**25, np.int64(7), np.uint8(7)])
def test_an_integer_id_of_any_size_is_found(number: int) -> None:
    assert judge({"q": {str(number): 1}}, {"q": {number: 1.0, "x": 2.0}}).rank.tolist() == [2]
    assert judge({"q": {number: 1}}, {"q": {str(number): 1.0, "x": 2.0}}).rank.tolist() == [2]


@settings(max_examples=60)
@given(collections(), st.randoms(use_true_random=False), st.one_of(st.none(), st.integers(1, 6)))
def test_a_table_gives_the_same(pair: tuple[Qrels, Run], chance: random.Random, depth: int | None) -> None:
    qrels, run = pair[0], filled(pair[1])
    grouped = rows_of(run)
    shuffled = rows_of({topic: dict(chance.sample(list(docs.items()), len(docs))) for topic, docs in run.items()})
    scattered = chance.sample(grouped, len(grouped))
    for rows in (grouped, shuffled, scattered):
        assert_as_expected(judge(qrels, table_run(rows), depth=depth), qrels, run, depth)
        with small_pieces():
            assert_as_expected(judge(qrels, table_run(rows), depth=depth), qrels, run, depth)


@settings(max_examples=50)
@given(pair=collections(), chance=st.randoms(use_true_random=False), block=st.sampled_from([16, 64, 200]))
def test_a_file_gives_the_same(
    pair: tuple[Qrels, Run], chance: random.Random, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    qrels, run = pair[0], filled(pair[1])
    assume(run)
    path = tmp_path_factory.mktemp("runs") / "a.run"
    grouped = rows_of(run)
    sorted_rows = [(topic, doc, run[topic][doc]) for topic in run for doc in ranked(run[topic])]
    scattered = chance.sample(grouped, len(grouped))
    for rows in (sorted_rows, grouped, scattered):
        with small_pieces():
            found = judge(qrels, text_run(path, rows, block))
        assert_as_expected(found, qrels, run)
        assert found.file_hash.hexdigest == hashlib.sha256(path.read_bytes()).hexdigest()


@given(collections(), st.randoms(use_true_random=False))
def test_one_hash_for_all_ids_changes_nothing(pair: tuple[Qrels, Run], chance: random.Random) -> None:
    qrels, run = pair[0], filled(pair[1])
    rows = rows_of(run)

    def constant(ids: Any) -> np.ndarray[Any, Any]:
        return np.zeros(len(ids), dtype=np.uint64)

    with patch("judged.scoring.judging.ranking.hash_ids", constant), patch("judged.data.index.hash_ids", constant):
        for ordered in (rows, chance.sample(rows, len(rows))):
            assert_as_expected(judge(qrels, table_run(ordered)), qrels, run)
        assert_as_expected(judge(qrels, run), qrels, run)


def test_one_hash_for_all_ids_still_finds_the_duplicate() -> None:
    rows = [("q", "a", 3.0), ("q", "b", 2.0), ("r", "a", 2.0), ("q", "a", 1.0)]
    with (
        patch("judged.scoring.judging.ranking.hash_ids", lambda ids: np.zeros(len(ids), dtype=np.uint64)),
        pytest.raises(InputError, match="document a is returned twice for topic q"),
    ):
        judge({"q": {"a": 1}}, table_run(rows))


# --- many topics over many blocks -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("order", ["sorted", "grouped", "scattered", "interleaved"])
def test_topics_that_cross_many_blocks(order: str, tmp_path: Path) -> None:
    chance = random.Random(5)  # noqa: S311 - any numbers will do
    run = {
        f"t{topic}": {f"d{doc}": chance.choice([0.5, 1.0, 2.5, 3.0]) for doc in chance.sample(range(90), 40)}
        for topic in range(23)
    }
    qrels = {f"t{topic}": {f"d{doc}": doc % 4 - 1 for doc in range(topic, topic + 30)} for topic in range(3, 26)}
    rows = {
        "sorted": [(topic, doc, docs[doc]) for topic, docs in run.items() for doc in ranked(docs)],
        "grouped": rows_of(run),
        "scattered": chance.sample(rows_of(run), 23 * 40),
        "interleaved": [(topic, *list(docs.items())[at]) for at in range(40) for topic, docs in run.items()],
    }[order]
    for block in (50, 333, 5000, 1 << 20):
        with small_pieces(held=200, edge=60, part=33):
            assert_as_expected(judge(qrels, text_run(tmp_path / "a.run", rows, block)), qrels, run)
            assert_as_expected(judge(qrels, table_run(rows)), qrels, run)


@pytest.mark.parametrize(("held", "together"), [(1000, 1000), (130, 1000), (130, 4), (1, 1)])
def test_the_buckets_give_back_every_row_by_topic(held: int, together: int) -> None:
    rows = pa.record_batch({"query_id": [f"t{at % 50}" for at in range(500)], "row": list(range(500))})
    with patch.multiple(buckets, _MAX_ROWS_IN_MEMORY=held, _MAX_SHARE_ROWS=together), buckets.Buckets() as bucketed:
        for at in range(0, 500, 20):
            bucketed.add(buckets.by_bucket(rows.slice(at, 20)))
            assert sum(piece.rows.num_rows for piece in bucketed._in_memory) <= held
        parts = [part().to_pylist() for part in bucketed.topics()]
    topics = [topic for part in parts for topic, _ in groupby(part, itemgetter("query_id"))]
    assert len(topics) == len(set(topics)) == 50  # each in one piece
    for part in parts:
        for topic, of_topic in groupby(part, itemgetter("query_id")):
            assert [row["row"] for row in of_topic] == list(range(int(topic[1:]), 500, 50))


# --- duplicates -------------------------------------------------------------------------------------

JUDGMENTS = {"q1": {"d1": 1, "d3": 0}, "q2": {"d9": 1}}


def duplicate_rows(doc: str, *, far: bool, scattered: bool) -> tuple[list[tuple[str, str, float]], int]:
    """Make rows in which ``doc`` appears twice for q1; give them and the line of the second."""
    between = 60 if far else 0
    rows = [("q1", doc, 9.0), *(("q1", f"x{at}", 8.0 - at / 100) for at in range(between))]
    if scattered:
        rows += [("q2", "d9", 1.0)]
    rows += [("q1", doc, 1.0)]
    return [*rows, ("q3", "z", 1.0)], len(rows)


@pytest.mark.parametrize("doc", ["d1", "unjudged"])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("scattered", [False, True])
def test_a_duplicate_is_refused(doc: str, far: bool, scattered: bool, tmp_path: Path) -> None:
    rows, line = duplicate_rows(doc, far=far, scattered=scattered)
    path = tmp_path / "twice.run"
    message = f"document {doc} is returned twice for topic q1"
    for block in (64, 1 << 20):
        with small_pieces(), pytest.raises(InputError) as caught:
            judge(JUDGMENTS, text_run(path, rows, block))
        assert str(caught.value).startswith(f"{path}:{line}: {message}. Fix: ")
        assert caught.value.line == line
    with pytest.raises(InputError, match=message):
        judge(JUDGMENTS, table_run(rows))
    with pytest.raises(InputError, match=message):
        judge(JUDGMENTS, table_run(rows), depth=1)  # also below the depth: the file is wrong


@pytest.mark.parametrize("number", [7, 8])
def test_text_and_integer_are_one_id_in_a_dict(number: int) -> None:
    with pytest.raises(InputError, match=f"document {number} is returned twice for topic q"):
        judge({"q": {"7": 1}}, {"q": {number: 1.0, "a": 2.0, str(number): 3.0}})
    with pytest.raises(InputError, match="topic 7 appears twice"):
        judge({"7": {"7": 1}}, {"7": {"a": 1.0}, 7: {"a": 1.0}})


def test_a_duplicate_in_a_topic_that_the_qrels_lack_is_refused() -> None:
    with pytest.raises(InputError, match="document d is returned twice for topic other"):
        judge(JUDGMENTS, table_run([("q1", "d1", 1.0), ("other", "d", 1.0), ("other", "d", 2.0)]))


def test_one_document_in_two_topics_is_no_duplicate() -> None:
    assert judge(JUDGMENTS, table_run([("q1", "d9", 1.0), ("q2", "d9", 1.0)])).rank.tolist() == [1]


def test_unicode_forms_of_one_letter_are_two_documents() -> None:
    found = judge({"q": {"é": 1}}, {"q": {"e\u0301": 2.0, "é": 1.0}})
    assert found.rank.tolist() == [2]
    assert judge({"q": {"é": 1}}, table_run([("q", "e\u0301", 2.0), ("q", "é", 1.0)])).rank.tolist() == [2]


@pytest.mark.parametrize("bad", [None, "0.5", "x", b"1.0", math.nan, np.float32("nan"), 10**400, [1.0], 1j])
@pytest.mark.parametrize("doc", ["d1", "unjudged"])
def test_what_is_no_score_is_refused(bad: Any, doc: str) -> None:
    with pytest.raises(InputError, match=f"topic q1, document {doc} is not a number.*Fix: ") as caught:
        judge(JUDGMENTS, {"q1": {"x": 1.0, doc: bad}})
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("score", [3, 3.0, True, np.float32(3), np.int8(3), np.float64(3), np.array(3.0)])
def test_numbers_of_other_libraries_are_scores(score: Any) -> None:
    assert judge(JUDGMENTS, {"q1": {"d1": score, "x": 0.5}}).rank.tolist() == [1]


@pytest.mark.parametrize("bad", [None, 7.0, math.nan, ("a",), b"d1", True])
def test_what_is_no_id_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="use texts or integers as ids"):
        judge(JUDGMENTS, {"q1": {bad: 1.0, "d1": 2.0}})
    with pytest.raises(InputError, match="use texts or integers as ids"):
        judge(JUDGMENTS, {bad: {"d1": 2.0}, "q1": {"d1": 2.0}})


def test_nan_in_a_table_and_in_a_file_is_refused(tmp_path: Path) -> None:
    rows = [("q1", "d1", 2.0), ("q1", "x", math.nan)]
    with pytest.raises(InputError, match="got NaN for topic q1, document x"):
        judge(JUDGMENTS, table_run(rows))
    path = tmp_path / "a.run"
    with pytest.raises(InputError, match="the score 'nan' is not a number") as caught:
        judge(JUDGMENTS, text_run(path, rows))
    assert (caught.value.path, caught.value.line) == (str(path), 2)


# --- depth and options ------------------------------------------------------------------------------


def test_depth_cuts_the_ranking() -> None:
    run = {"q1": {"a": 5.0, "d1": 4.0, "b": 3.0, "d3": 2.0}, "q2": {"d9": 1.0}}
    found = judge(JUDGMENTS, run, depth=3)
    assert found.rank.tolist() == [2, 1]
    assert found.returned.tolist() == [3, 1]
    assert judge(JUDGMENTS, run, depth=1).rank.tolist() == [1]


@pytest.mark.parametrize("depth", [0, -1, 2.5, math.nan, "3", True])
def test_a_depth_that_makes_no_sense_is_refused(depth: Any) -> None:
    with pytest.raises(InputError, match=r"`depth` must be a positive integer, got .* Fix: use a number such as 10"):
        judge(JUDGMENTS, {"q1": {"d1": 1.0}}, depth=depth)


def test_an_unknown_tie_policy_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown value of `ties`: 'random'\. Fix: use one of docid"):
        judge(JUDGMENTS, {"q1": {"d1": 1.0}}, ties="random")  # type: ignore[arg-type]


@given(collections())
def test_the_inputs_stay_as_they_are(pair: tuple[Qrels, Run]) -> None:
    qrels, run = pair
    kept = copy.deepcopy((qrels, run))
    table = table_run(rows_of(filled(run)))
    columns = table.table.to_pydict() if filled(run) else {}
    judge(qrels, run).over("run")
    judge(qrels, table)
    assert (qrels, run) == kept
    assert [list(docs) for docs in run.values()] == [list(docs) for docs in kept[1].values()]
    assert (table.table.to_pydict() if filled(run) else {}) == columns


def test_numpy_columns_stay_as_they_are() -> None:
    scores = np.array([1.0, 3.0, 2.0])
    table = pa.table({"query_id": ["q1"] * 3, "doc_id": ["d1", "d3", "x"], "score": scores})
    found = judge(JUDGMENTS, table)
    assert found.rank.tolist() == [1, 3]
    assert scores.tolist() == [1.0, 3.0, 2.0]
    assert table["score"].to_pylist() == [1.0, 3.0, 2.0]


# --- the judged list itself -------------------------------------------------------------------------


def small() -> Judged:
    """Topics a, b, c, d; c is missing from the run, and e is only there."""
    qrels = {"b": {"x": 2, "y": 0, "z": 1}, "a": {"x": 1}, "c": {"x": 3}, "d": {"y": -1, "z": 1}}
    run = {"e": {"x": 1.0, "y": 0.5}, "b": {"u": 9.0, "z": 8.0, "x": 7.0}, "d": {"y": 3.0, "u": 2.0, "z": 1.0}, "a": {}}
    return judge(qrels, run)


def test_over_the_topics_of_the_qrels() -> None:
    found = small()
    assert found.over("qrels") is found
    assert found.query_ids == ("a", "b", "c", "d")
    assert found.present.tolist() == [True, True, False, True]
    assert found.returned.tolist() == [0, 3, 0, 3]
    assert found.extra == ("e",)


def test_over_the_topics_that_both_have() -> None:
    found = small().over("both")
    assert found.query_ids == ("a", "b", "d")
    assert found.returned.tolist() == [0, 3, 3]
    assert [(hit.topic, hit.rank, hit.doc) for hit in hits_of(found)] == [
        ("b", 2, "z"), ("b", 3, "x"), ("d", 1, "y"), ("d", 3, "z"),
    ]  # fmt: skip
    assert found.sum_labels(found.relevant_labels(1)).tolist() == [1, 2, 1]
    assert found.ideal.grade.tolist() == [1, 2, 1, 0, 1]
    assert found.ideal.doc == ["x", "x", "z", "y", "z"]


def test_over_the_topics_of_the_run() -> None:
    found = small().over("run")
    assert found.query_ids == ("a", "b", "d", "e")
    assert found.returned.tolist() == [0, 3, 3, 2]
    assert found.sum_labels(found.relevant_labels(1)).tolist() == [1, 2, 1, 0]
    assert found.topic.tolist() == [1, 1, 2, 2]
    assert found.over("run").query_ids == found.query_ids


def test_an_unknown_topic_policy_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown value of `topics`: 'all'\. Fix: use one of qrels, run, both"):
        small().over("all")  # type: ignore[arg-type]


@given(collections(), st.sampled_from(["qrels", "both", "run"]))
def test_over_is_judging_a_smaller_collection(pair: tuple[Qrels, Run], policy: Any) -> None:
    qrels, run = pair
    found = judge(qrels, run).over(policy)
    topics = {"qrels": set(qrels), "both": set(qrels) & set(run), "run": set(run)}[policy]
    assert list(found.query_ids) == sorted(topics, key=str.encode)
    assert hits_of(found) == expected_hits({t: d for t, d in qrels.items() if t in topics}, run)
    assert found.returned.tolist() == [len(run.get(topic, {})) for topic in found.query_ids]
    ideal = {topic: sorted((g for g in qrels.get(topic, {}).values() if g >= 0), reverse=True) for topic in topics}
    assert found.ideal.grade.tolist() == [grade for topic in found.query_ids for grade in ideal[topic]]
    assert found.ideal.rank.tolist() == [at for t in found.query_ids for at in range(1, len(ideal[t]) + 1)]
    assert found.ideal.returned.tolist() == [len(ideal[topic]) for topic in found.query_ids]


@given(collections())
def test_condensed_is_the_run_without_unjudged_documents(pair: tuple[Qrels, Run]) -> None:
    qrels, run = pair
    kept = {
        topic: {doc: score for doc, score in docs.items() if qrels.get(topic, {}).get(doc, -1) >= 0}
        for topic, docs in run.items()
    }
    found, again = judge(qrels, run).condensed, judge(qrels, kept)
    assert [(h.topic, h.rank, h.doc, h.grade, h.score) for h in hits_of(found)] == [
        (h.topic, h.rank, h.doc, h.grade, h.score) for h in hits_of(again)
    ]
    assert found.returned.tolist() == again.returned.tolist()


def test_ideal_by_any_value() -> None:
    found = judge_list([0, None, 3], missing=[2, -1])
    assert sorted(found.label_grade.tolist()) == [-1, 0, 2, 3]
    least_first = found.ideal_by(-found.label_grade)
    assert least_first.grade.tolist() == [-1, 0, 2, 3]
    assert least_first.rank.tolist() == [1, 2, 3, 4]
    only_good = found.ideal_by(np.where(found.label_grade >= 2, found.label_grade, -np.inf))
    assert only_good.grade.tolist() == [3, 2]
    assert only_good.returned.tolist() == [2]


def test_count_so_far_and_first_rank_start_anew_with_each_topic() -> None:
    found = small()  # hits: b z, b x, d y, d z
    mask = np.array([True, True, False, True])
    assert found.count_so_far(mask).tolist() == [1, 2, 0, 1]
    assert found.first_rank(mask).tolist() == [0, 2, 0, 3]
    assert found.first_rank(~mask).tolist() == [0, 0, 0, 1]
    assert found.sum(mask).tolist() == [0, 2, 0, 1]
    assert found.starts.tolist() == [0, 0, 2, 2, 4]
    assert found.within(2).tolist() == [True, False, True, False]
    assert found.relevant(0).tolist() == [True, True, False, True]  # y of d has the grade -1


def test_a_typed_list() -> None:
    found = judge_list([3, None, 0, -1], missing=[1])
    assert found.rank.tolist() == [1, 3, 4]
    assert found.grade.tolist() == [3, 0, -1]
    assert found.returned.tolist() == [4]
    with pytest.raises(InputError, match="at least one grade is required"):
        judge_list([None, None])


def test_a_long_typed_list_keeps_its_order() -> None:
    grades = [at % 5 for at in range(300)]
    found = judge_list(grades)
    assert found.grade.tolist() == grades
    assert found.rank.tolist() == list(range(1, 301))


# --- cases that trec_eval settles -------------------------------------------------------------------


def order_of(run: dict[str, float]) -> list[str]:
    found = judge({"q": dict.fromkeys(run, 1)}, {"q": run})
    assert found.rank.tolist() == list(range(1, len(run) + 1))
    table = judge({"q": dict.fromkeys(run, 1)}, table_run([("q", doc, score) for doc, score in run.items()]))
    assert table.doc == found.doc
    return found.doc


def test_tied_documents_stand_in_falling_byte_order() -> None:
    ids = ("Z", "a", "é", "doc10", "doc9")
    assert order_of(dict.fromkeys(ids, 1.0)) == ["é", "doc9", "doc10", "a", "Z"]
    found = judge({"q": {doc: grade for grade, doc in enumerate(ids)}}, {"q": dict.fromkeys(ids, 0.0)})
    assert "".join(f"{grade:g}" for grade in found.grade) == "24310"  # trec_eval's relstring


def test_byte_order_is_not_utf16_order() -> None:
    assert order_of({"\ufffd": 1.0, "\U0001d4b3": 1.0}) == [
        "\U0001d4b3",
        "\ufffd",
    ]  # UTF-16 would have it the other way


def test_an_id_that_begins_another_comes_after_it() -> None:
    assert order_of({"doc": 1.0, "doc1": 1.0, "doc10": 1.0}) == ["doc10", "doc1", "doc"]


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ({"a": 0.100000002, "z": 0.100000001}, ["a", "z"]),  # equal in single precision
        ({"a": 16777217, "z": 16777216}, ["a", "z"]),  # the same
        ({"a": 16777217.0, "z": 16777216.0}, ["a", "z"]),
        ({"a": 0.0, "z": -0.0}, ["z", "a"]),
        ({"a": -0.0, "z": 0.0}, ["z", "a"]),
        ({"a": math.inf, "b": 1e308, "z": -math.inf}, ["a", "b", "z"]),
        ({"a": math.inf, "z": math.inf, "b": 1.0}, ["z", "a", "b"]),
        ({"a": 5e-324, "z": 0.0}, ["a", "z"]),
        ({"a": 1e-300, "z": 0.0, "y": -1e-300}, ["a", "z", "y"]),
        ({"a": 2.0**53 + 1, "z": 2.0**53}, ["z", "a"]),  # one double: a tie
    ],
)
def test_scores_are_compared_as_doubles(scores: dict[str, float], order: list[str]) -> None:
    assert order_of(scores) == order


def test_short_lists() -> None:
    """Returned < k, returned < R, R < k: 3 returned, relevant at 1 and 3 of R = 4, then of R = 2."""
    short = {"P@5": 2 / 5, "R@5": 2 / 4, "Rprec": 2 / 4, "AP@5": (1 + 2 / 3) / 4, "SetP": 2 / 3, "Success@5": 1.0}
    for name, value in short.items():
        assert judged.measures.parse(name).of_list([1, 0, 1], missing=[1, 1]) == value, name
    dcg, ideal = 1 + 1 / 2, 1 + 1 / math.log2(3) + 1 / 2 + 1 / math.log2(5)
    assert judged.nDCG(cutoff=5).of_list([1, 0, 1], missing=[1, 1]) == pytest.approx(dcg / ideal, rel=1e-15)
    few = {"P@5": 2 / 5, "R@5": 1.0, "Rprec": 1 / 2, "AP@5": (1 + 2 / 3) / 2, "R@2": 1 / 2, "AP@2": 1 / 2}
    for name, value in few.items():
        assert judged.measures.parse(name).of_list([1, 0, 1]) == value, name


def test_levels_above_all_grades_and_level_zero() -> None:
    graded = [1, 0, -1, None, 1]
    for name in ("AP(rel=2)", "RR(rel=3)", "P(rel=2)@5", "R(rel=2)@5", "Rprec(rel=2)", "Bpref(rel=2)"):
        assert judged.measures.parse(name).of_list(graded) == 0.0, name
    assert judged.measures.parse("P(rel=0)@5").of_list(graded) == 3 / 5  # grades 1, 0, 1; a negative one never is
    assert judged.measures.parse("NumRel(rel=0)").of_list(graded) == 3


def test_means_are_summed_in_byte_order_of_the_topics() -> None:
    chance = random.Random(2)  # noqa: S311 - any numbers will do
    topics = [str(number) for number in range(1, 400)]
    orders: set[float] = set()
    for _ in range(8):
        qrels = {t: {f"d{d}": 1 for d in range(chance.randint(1, 7))} for t in topics}
        run = {t: {f"d{d}": chance.random() for d in range(15)} for t in chance.sample(topics, len(topics))}
        scores = judged.evaluate(qrels, run, ["AP"])
        by_topic = scores.per_topic()["run"]["AP"]
        assert list(by_topic) == sorted(topics)
        assert list(by_topic)[:3] == ["1", "10", "100"]
        assert scores.value("AP") == scores.aggregate()["run"]["AP"] == mean_of(by_topic, sorted(topics))
        orders |= {mean_of(by_topic, order) - scores.value("AP") for order in (topics, topics[::-1])}
    assert len(orders) > 1  # another order shows in the last bit


def mean_of(values: dict[str, float], order: list[str]) -> float:
    total = 0.0
    for topic in order:
        total += values[topic]
    return total / len(order)


@pytest.mark.parametrize(
    "text",
    [
        "q1 Q0 a 1 2.0 t\nq1 Q0 d1 2 1.0 t\nq2 Q0 d9 1 3 t\n",
        "q1 Q0 a 1 2.0 t\r\nq1 Q0 d1 2 1.0 t\r\nq2 Q0 d9 1 3 t\r\n",
        "\ufeffq1 Q0 a 1 2.0 t\nq1 Q0 d1 2 1.0 t\nq2 Q0 d9 1 3 t",
        "q1\tQ0\ta\t1\t2.0\tt\nq1\tQ0\td1\t2\t1.0\tt\nq2\tQ0\td9\t1\t3\tt",
        "  q1  Q0 a 1  2.0 t\n\n# a comment\n q1 Q0\td1 2 1e0 t  \nq2 Q0 d9 1 +3. t\n\n\n",
        "# first\nq1 Q0 a 1 2.0 t\n#\nq1 Q0 d1 2 1.0 t\nq2 Q0 d9 1 3 t\n# last",
        "q1 Q0 a 1 2.0\nq1 Q0 d1 2 1.0\nq2 Q0 d9 1 3\n",
        "q1 Q0 a 1 2.0 t more\nq1 Q0 d1 2 1.0 t x\nq2 Q0 d9 1 3 t y\n",
    ],
    ids=["plain", "crlf", "bom", "tabs", "blanks", "comments", "five columns", "seven columns"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_may_look_many_ways(text: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = judge(JUDGMENTS, judged.Run.scan(path))
    assert hits_of(found) == [Hit("q1", 2, "d1", 1.0, 1.0, 2, 2), Hit("q2", 1, "d9", 1.0, 3.0, 1, 1)]
    assert found.returned.tolist() == [2, 1]
    assert found.extra == ()
    assert found.file_hash.hexdigest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_scattered_file_of_many_blocks_has_the_hash_of_its_bytes(tmp_path: Path) -> None:
    rows = [(f"q{at % 5}", f"d{at}", float(-at)) for at in range(5000)]
    run = text_run(tmp_path / "a.run", rows, block=1000)
    seen: list[int] = []
    found = judge({"q1": {"d1": 1, "d6": 1}}, run, progress=seen.append)
    assert found.rank.tolist() == [1, 2]
    assert found.file_hash.hexdigest == hashlib.sha256(Path(run.where).read_bytes()).hexdigest()
    assert sum(seen) >= Path(run.where).stat().st_size


def test_odd_sizes() -> None:
    assert judge(JUDGMENTS, {}).returned.tolist() == [0, 0]
    assert judge(JUDGMENTS, {"q1": {}}).present.tolist() == [True, False]
    assert judge({"q": {"d": 1}}, {"q": {"d": 0.0}}).rank.tolist() == [1]
    assert judge(JUDGMENTS, table_run([])).returned.tolist() == [0, 0]
    assert len(judge(JUDGMENTS, {"elsewhere": {"d1": 1.0}}).topic) == 0
    with pytest.raises(InputError, match="there are no rows"):
        judge({}, {"q": {"d": 1.0}})


def test_a_hundred_thousand_topics() -> None:
    count = 100_000
    ids = pa.array(np.arange(count)).cast(pa.string())
    qrels = judged.Qrels.of(pa.table({"query_id": ids, "doc_id": ids, "relevance": np.ones(count)}))
    run = pa.table({"query_id": ids.take(pa.array(np.arange(count)[::-1])), "doc_id": ids, "score": np.ones(count)})
    found = judge(qrels, run)
    assert len(found) == count
    assert found.returned.tolist() == [1] * count
    assert len(found.topic) == 0  # the ids run against each other, and the number of topics is even
    assert len(judge(qrels, pa.table({"query_id": ids, "doc_id": ids, "score": np.ones(count)})).topic) == count


def test_a_run_without_scores_is_no_ranking() -> None:
    found = judge(JUDGMENTS, pa.table({"query_id": ["q1", "q1"], "doc_id": ["d1", "x"]}))
    assert not found.ranked
    assert found.returned.tolist() == [2, 0]
    assert found.doc == ["d1"]


def test_the_reader_of_dicts_is_used_for_dicts() -> None:
    assert isinstance(judged.Run.of({"q": {"d": 1.0}}).rows, MappingRows)
