"""Slices by columns and attributes: texts, booleans, numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.online.slicing import slice_names
from judged.online.slicing.columns import equal_parts
from online.slicing.sliced_logs import logs, refused, sliced


def test_values_of_a_text_column_are_slices_and_blanks_are_unknown():
    log = logs([{"device": device} for device in ("phone", None, "desktop", " ", "phone", " phone")])
    slices, values, note = sliced(log, "device")
    assert slices == ["phone", "unknown", "desktop", "unknown", "phone", "phone"]
    assert values == ("desktop", "phone", "unknown")
    assert not note
    assert sliced(logs([{"application": "type-ahead"}]), "Source_Type")[0] == ["type-ahead"]


def test_a_column_without_any_value_says_so():
    assert sliced(logs([{}, {}]), "variant") == (["unknown"] * 2, ("unknown",), "no page has a value of variant")
    assert sliced(logs([]), "device") == ([], (), "")


def test_a_language_is_one_however_its_tag_is_written():
    pages = [{"language": tag} for tag in ("en", "EN", "en-US", "en_us", "pt-BR", None, " ")]
    slices, values, note = sliced(logs(pages), "language")
    assert slices == ["en", "en", "en-us", "en-us", "pt-br", "unknown", "unknown"]
    assert values == ("en", "en-us", "pt-br", "unknown")
    assert not note
    assert sliced(logs(pages), "Language")[0] == slices
    assert (
        sliced(logs([{}]), "language")[2]
        == "no page has a value of language; slice by script, which is detected from the query text"
    )


def test_of_many_values_the_largest_are_kept():
    names = [f"v{i:02}" for i in range(31)]
    counts = [3 if i in {7, 30} else 1 if i in {4, 5} else 2 for i in range(31)]
    pages = [{"shop": name} for name, count in zip(names, counts, strict=True) for _ in range(count)]
    log = logs([*pages, {}], attributes={"shop": pa.string()})
    slices, values, note = sliced(log, "shop")
    frequent = [name for name in names if name not in {"v04", "v05"}]
    assert values == (*frequent, "other", "unknown")
    assert [slice_name for slice_name, page in zip(slices, pages, strict=False) if page["shop"] in {"v04", "v05"}] == [
        "other"
    ] * 2
    assert note == "shop has 31 values: the 29 most frequent have a slice each, and the slice other has the rest"
    fewer = [page for page in pages if page["shop"] != "v04"]
    assert len(sliced(logs([*fewer, {}], attributes={"shop": pa.string()}), "shop")[1]) == 31  # 30, and unknown


def test_equally_frequent_values_are_kept_by_the_alphabet():
    log = logs([{"shop": f"{i:02}"} for i in range(40)], attributes={"shop": pa.string()})
    assert sliced(log, "shop")[1] == (*(f"{i:02}" for i in range(29)), "other")


def test_truth_values():
    log = logs([{"zero_results": value} for value in (True, False, None, False)])
    assert sliced(log, "zero_results")[:2] == (["true", "false", "unknown", "false"], ("false", "true", "unknown"))


PRICES = [5.0, 10.0, 99.5, 100.0, None, float("nan"), -1.0, float("inf")]


@pytest.mark.parametrize("kind", [pa.float64(), pa.string()])
def test_numbers_are_cut_at_bounds_also_where_they_are_texts(kind):
    prices = PRICES if kind == pa.float64() else ["5", "10.0", "99.5", "100", None, "cheap", "-1", "1e9"]
    log = logs([{"price": price} for price in prices], attributes={"price": kind})
    slices, values, _ = sliced(log, "price:10,100")
    low, middle, high = "<10", "10 to <100", ">=100"
    assert slices == [low, middle, middle, high, "unknown", "unknown", low, high]
    assert values == (low, middle, high, "unknown")
    assert sliced(log, "price:10")[1] == ("<10", ">=10", "unknown")


def test_few_numbers_make_a_slice_each_in_their_order():
    stars = [10, 9, None, 10]
    log = logs([{"stars": number} for number in stars], attributes={"stars": pa.int32()})
    assert sliced(log, "stars")[:2] == (["10", "9", "unknown", "10"], ("9", "10", "unknown"))


def test_many_numbers_are_cut_into_equal_parts():
    log = logs([{"price": i / 8} for i in range(40)], attributes={"price": pa.float64()})
    slices, values, note = sliced(log, "price")
    assert values == ("<1.25", "1.25 to <2.5", "2.5 to <3.75", ">=3.75")
    assert [slices.count(value) for value in values] == [10, 10, 10, 10]
    assert note == "price has 40 distinct values: split into groups of equal size"
    assert sliced(log, "price/2")[1:] == (("<2.5", ">=2.5"), "")


def test_pages_with_the_same_number_stay_together():
    prices = [0] * 8 + [1, 2]
    log = logs([{"price": price} for price in prices], attributes={"price": pa.int64()})
    slices, values, note = sliced(log, "price/4")
    assert slices == ["<1"] * 8 + [">=1"] * 2
    assert values == ("<1", ">=1")
    assert note == "many pages have the same value of price, so there are 2 groups instead of 4"
    constant = logs([{"price": 3}, {"price": 3}, {}], attributes={"price": pa.int64()})
    assert sliced(constant, "price/2")[0] == ["all", "all", "unknown"]
    assert sliced(log, "price/10")[1] == ("<1", "1 to <2", ">=2")


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(2, 9))
def test_equal_parts_are_as_equal_as_equal_numbers_allow(numbers, parts):
    values, counts = np.unique(np.array(numbers, dtype=np.float64), return_counts=True)
    cuts = equal_parts(values, counts, parts)
    assert set(cuts) <= set(values.tolist()) - {min(numbers)}
    assert len(cuts) < parts
    if len(values) == len(numbers) >= parts:  # all differ: parts differ by at most one page
        sizes = np.diff([0, *np.searchsorted(np.sort(values), cuts), len(values)])
        assert len(sizes) == parts
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("by", ["price:", "price:a", "price:10,5", "price:1,1", "price:inf", "price:nan,2", "price/1"])
def test_cuts_that_make_no_sense(by):
    log = logs([{"price": 1.0}], attributes={"price": pa.float64()})
    assert "price" in refused(log, by)


def test_what_cannot_be_sliced_by_names_what_can():
    log = logs([{}], attributes={"price": pa.float64(), "tags": pa.list_(pa.string())})
    assert "did you mean traffic" in refused(log, "trafic")
    text = refused(log, "nonsense")
    assert all(name in text for name in slice_names(log))
    assert {"price", "traffic", "query class", "first click", "hour", "device"} <= set(slice_names(log))
    assert "must hold texts, numbers, or booleans" in refused(log, "tags")
    assert "cannot be sliced by 'query_id'" in refused(log, "query_id")  # no two pages share one
    assert "cannot be sliced by 'words:3'" in refused(log, "words:3")


def test_an_attribute_goes_before_what_is_derived_under_its_name():
    log = logs([{"words": "many"}], attributes={"words": pa.string()})
    assert sliced(log, "words")[0] == ["many"]


def test_a_column_that_follows_another_in_its_name_is_found():
    log = logs([{"size": "a", "size:eu": "b"}], attributes={"size": pa.string(), "size:eu": pa.string()})
    assert sliced(log, "size:eu")[0] == ["b"]
