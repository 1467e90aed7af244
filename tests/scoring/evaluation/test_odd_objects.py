"""Python objects of every kind: each is read as what it means, or refused in a sentence that says what to give."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest

from judged import InputError, JudgedError, MeasureError, Qrels, agree, evaluate, judge
from judged.data.attributes import Attributes
from judged.scoring.explanation import explain, explain_list

if TYPE_CHECKING:
    from collections.abc import Callable

QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}}
RUN = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0}}
ROWS = {"query_id": ["1", "1", "2"], "doc_id": ["a", "b", "a"], "relevance": [1, 0, 2]}
POLARS, PANDAS = pl.DataFrame(ROWS), pd.DataFrame(ROWS)


@pytest.mark.parametrize(
    "frame",
    [
        POLARS.with_columns(pl.col("relevance").cast(pl.Int128)),
        POLARS.with_columns(pl.col("query_id").cast(pl.Int128)),
        POLARS.with_columns(extra=pl.col("relevance").cast(pl.Int128)),
        POLARS.with_columns(pl.col("query_id", "doc_id").cast(pl.Categorical)),
        POLARS.with_columns(pl.col("query_id").cast(pl.Enum(["2", "1"]))),
        POLARS.with_columns(pl.col("relevance").cast(pl.Decimal(10, 2))),
        PANDAS.astype({"query_id": "category", "doc_id": "category"}),
        PANDAS.assign(query_id=[1, "1", 2]),
        PANDAS.assign(extra=[1, "x", None]),
        PANDAS.assign(relevance=[Decimal(1), Decimal(0), Decimal(2)]),
        [{"query_id": 1, "doc_id": "a", "relevance": 1}, {"query_id": "1", "doc_id": "b", "relevance": 0},
         {"query_id": "2", "doc_id": "a", "relevance": 2}],
    ],
)  # fmt: skip
def test_what_holds_the_rows_is_read(frame: Any) -> None:
    assert Qrels.of(frame).table.to_pydict() == ROWS


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (PANDAS.assign(relevance=[1, "x", 2]), "relevance must contain numbers, got string"),
        (pd.concat([PANDAS, PANDAS[["relevance"]]], axis=1), "two columns are called 'relevance'"),
        (PANDAS["relevance"], "an object of type Series is not a table"),
        (POLARS["relevance"], "an object of type Series is not a table"),
        (PANDAS.assign(doc_id=["a", 1.5, "b"]), "the column doc_id has values of type float, str"),
        ([{"query_id": "q", "doc_id": "d", "relevance": object()}], "column relevance has values of type object"),
        ([{"query_id": "q", "doc_id": "d", "relevance": "x"}, {"query_id": "q", "doc_id": "e", "relevance": 1}],
         "relevance must contain numbers, got string"),
        ([{1: "q", "doc_id": "d", "relevance": 1}], "no column query_id among 1, doc_id, relevance"),
        ({10**5000: {"d": 1}}, "a number with too many digits"),
        (b"bytes", "an object of type bytes cannot be read as qrels"),
    ],
)  # fmt: skip
def test_what_is_no_judgments_is_refused_in_words(data: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Qrels.of(data)


def test_attributes_of_categories_are_texts() -> None:
    frame = pl.DataFrame({"query_id": ["1", "2"], "kind": ["law", "news"]}, schema_overrides={"kind": pl.Categorical})
    assert Attributes.of(frame).column("kind").to_pylist() == ["law", "news"]


@pytest.mark.parametrize("measures", [None, 3, [None]])
def test_what_is_no_measure_is_refused_in_words(measures: Any) -> None:
    with pytest.raises(MeasureError, match="is not a measure"):
        evaluate(QRELS, RUN, measures)


@pytest.mark.parametrize("depth", [10**30, 2**63, 10**5000], ids=["1e30", "2^63", "1e5000"])
def test_a_depth_beyond_every_ranking_is_refused(depth: int) -> None:
    with pytest.raises(InputError, match=r"`depth` must be at most 2\^62\. Fix: use a number"):
        evaluate(QRELS, RUN, ["AP"], depth=depth)


@pytest.mark.parametrize("measure", ["DCG(gain={1:1e308,2:1e308})@10", "nDCG(gain={1:1e308})", "Q(gain={2:1e308})"])
def test_gains_whose_sum_is_infinite_are_refused(measure: str) -> None:
    with pytest.raises(MeasureError, match=r"the gain 1e\+308 is too large"):
        evaluate(QRELS, RUN, measure)


def test_scores_are_a_frame() -> None:
    scores = evaluate(QRELS, RUN, ["AP"])
    assert pl.DataFrame(scores).rows() == [("run", "AP", "q1", 1.0), ("run", "AP", "q2", 1.0)]


def test_explain_takes_qrels_and_a_run() -> None:
    assert str(explain(QRELS, RUN, "nDCG@10", topic="q2")) == str(explain_list(judge(QRELS, RUN), "nDCG@10", "q2"))
    with pytest.raises(InputError, match="there are 2 topics"):
        explain(QRELS, RUN, "nDCG@10")


def test_judges_may_be_named_in_a_dict() -> None:
    found = agree({"ann": QRELS, "bob": {"q1": {"d1": 1, "d2": 1}}})
    assert (found.judges, found.pairs[0].shared) == (("ann", "bob"), 2)
    with pytest.raises(InputError, match="at least two judges are required, got 1"):
        agree(QRELS)


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b"])
@pytest.mark.parametrize("read", [Qrels.read, Attributes.read])
def test_a_text_that_is_no_path_is_refused(read: Callable[[str], object], path: str) -> None:
    with pytest.raises(JudgedError, match="this is not a valid file name"):
        read(path)


@pytest.mark.parametrize("number", [10**400, 10**5000], ids=["400 digits", "5000 digits"])
def test_a_whole_number_beyond_every_double_is_refused(number: int) -> None:
    for give in (lambda: Qrels.of({"q": {"d": number}}), lambda: evaluate(QRELS, {"q1": {"d1": number}})):
        with pytest.raises(InputError, match=r"of topic q1?, document d"):
            give()
