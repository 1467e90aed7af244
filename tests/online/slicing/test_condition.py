"""Selection of pages by a condition: the same semantics as for topics, and metrics within the whole log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dozen_sessions import pages_and_events
from judged.data.attributes import Attributes
from judged.data.expression import Expression
from judged.errors import InputError
from judged.online import online_metrics, over_time
from judged.online.dwell import dwell_times
from judged.online.engine import Database
from typed_logs import typed_log

ENGINE = Database()
TEXTS = st.sampled_from(["law", "it's", 'a "b"', "new law", "", "Z", "é"])
VALUES = st.fixed_dictionaries({}, optional={
    "kind": TEXTS, "other kind": TEXTS, "words": st.integers(-2, 4).map(float),
    "size": st.sampled_from([0.5, 1.0, 2.0]), "new": st.booleans(),
})  # fmt: skip
SIGNS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
NUMBERS = st.sampled_from(["-1", "0", "0.5", "2", "3e0"])
WORDS = TEXTS.map(repr)
ATOMS = st.one_of(
    st.builds("kind {} {}".format, SIGNS, WORDS),
    st.builds("{} {} `other kind`".format, WORDS, SIGNS),
    st.builds("kind {} `other kind`".format, SIGNS),
    st.builds("{} {} words {} {}".format, NUMBERS, SIGNS, SIGNS, NUMBERS),
    st.builds("words {} size".format, SIGNS),
    st.builds("kind {} [{}]".format, st.sampled_from(["in", "not in"]), st.lists(WORDS, max_size=3).map(", ".join)),
    st.builds("contains(kind, {})".format, WORDS),
    st.sampled_from(["new", "new == True", "new != False", "missing(kind)", "missing(words)", "missing(new)"]),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("not ({})".format, inner),
        st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner),
    ),
    max_leaves=5,
)
FULL = {"kind": "law", "other kind": "law", "words": 1.0, "size": 1.0, "new": True}
KINDS = {"kind": "O", "other kind": "O", "words": "f", "size": "f", "new": "b"}


@given(EXPRESSIONS, st.lists(VALUES, min_size=1, max_size=6))
def test_sql_marks_what_the_mask_marks(text: str, rows: list[dict[str, Any]]) -> None:
    rows = [*rows, FULL]  # so that each column has its type
    expression = Expression(text)
    mask = expression.mask(Attributes.of({f"q{i}": row for i, row in enumerate(rows)}))
    types = {"O": pa.string(), "f": pa.float64(), "b": pa.bool_()}
    table = pa.table({name: pa.array([row.get(name) for row in rows], types[kind]) for name, kind in KINDS.items()})
    result = ENGINE.arrow(f"SELECT {expression.sql(KINDS)} AS met FROM {ENGINE.register(table)}")
    assert result["met"].to_pylist() == mask.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [("speed > 3", "no attribute 'speed'"), ("kind > 3", "is a text, but is compared with 3"),
     ("words in ('a', 'b')", "is a number"), ("kind", "is not true or false"),
     ("contains(words, 'a')", "is not a text"), ("words == kind", "different types")],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Expression(text).sql(KINDS)


def desktop(name: str, attribute: Callable[[Any], float]) -> tuple[float, float]:
    """Return an attribute of the estimate for the slice, and for a condition that selects the same pages."""
    log = typed_log(*pages_and_events())
    sliced = online_metrics(log, name, by="device").of(name, "desktop")
    return attribute(sliced), attribute(online_metrics(log, name, where="device == 'desktop'").of(name))


@pytest.mark.parametrize(
    "name", ["PageCTR", "SatisfiedClicks", "DwellTime", "DwellTime(q=0.5)", "ReturnRate(d=1)", "BadAbandonment",
             "SessionSuccess", "QueriesPerSession", "RevenuePerUser", "Latency(q=0.5)", "ExitRate"],
)  # fmt: skip
def test_pages_that_meet_a_condition_are_those_of_the_slice(name: str) -> None:
    for attribute in (
        lambda estimate: estimate.value,
        lambda estimate: estimate.error,
        lambda estimate: estimate.denominator,
        lambda estimate: estimate.units,
    ):
        assert desktop(name, attribute)[0] == pytest.approx(desktop(name, attribute)[1], rel=1e-9, nan_ok=True)


def test_what_follows_a_page_is_looked_for_in_the_whole_log() -> None:
    """Page 0 alone: its clicks end at the next page, which does not match, and its query was reformulated."""
    log = typed_log(*pages_and_events())
    scores = online_metrics(log, ["ObservedVisits", "Reformulation"], where="query == 'red shoes'")
    assert [(estimate.numerator, estimate.denominator) for estimate in scores.estimates] == [(2, 2), (1, 1)]
    assert dict(scores.counts) == {"pages": 1, "events": 3, "sessions": 1, "users": 1}
    assert ("where", "query == 'red shoes': 1 of 22 pages") in scores.policies


def test_conditions_go_with_slices_dwell_and_time() -> None:
    log = typed_log(*pages_and_events())
    scores = online_metrics(log, "PageCTR", by="device", where="page == 1 and latency_ms < 110")
    assert scores.slices == (("desktop", 5), ("mobile", 4))
    assert dwell_times(log, where="device == 'mobile'").median.observed == 4  # type: ignore[union-attr]
    assert over_time(log, "PageCTR", where="device == 'mobile'").scores.value("PageCTR") == pytest.approx(3 / 7)


def test_no_page_is_no_result() -> None:
    log = typed_log(*pages_and_events())
    with pytest.raises(InputError, match="no page matches the condition"):
        online_metrics(log, "PageCTR", where="device == 'watch'")
    with pytest.raises(InputError, match="no attribute 'ranks'"):
        online_metrics(log, "PageCTR", where="ranks == 1")
