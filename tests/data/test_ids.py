"""Identifiers: conversion to text, and hashes that depend only on the text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import InputError, Qrels
from judged.data.index import hash_ids, id_column, id_text

IDS = st.lists(st.text(max_size=40), min_size=1, max_size=30)


@given(IDS)
def test_a_hash_depends_on_nothing_but_the_id(ids: list[str]) -> None:
    joint_hashes = hash_ids(pa.array(ids, pa.string())).tolist()
    single_hashes = [int(hash_ids(pa.array([doc_id], pa.string()))[0]) for doc_id in ids]
    assert joint_hashes == single_hashes


@given(IDS, st.integers(0, 5))
def test_slices_hash_as_their_strings(ids: list[str], start: int) -> None:
    padded = pa.array(["before" * 3] * start + ids, pa.string())
    assert hash_ids(padded.slice(start)).tolist() == hash_ids(pa.array(ids, pa.string())).tolist()


def test_close_ids_hash_apart() -> None:
    ids = [f"{prefix}{number}" for prefix in ("", "d", "doc-0000000", "LA0") for number in range(20_000)]
    assert len(set(hash_ids(pa.array(ids)).tolist())) == len(ids)
    low_halves = {value & 0xFFFFFFFF for value in hash_ids(pa.array(ids[:20_000])).tolist()}
    assert len(low_halves) > 19_990


def test_ids_keep_their_bytes() -> None:
    assert id_column(pa.chunked_array([["007", "NA", '"x"', ""]]), "doc_id").to_pylist() == [
        "007",
        "NA",
        '"x"',
        "",
    ]
    assert id_column(pa.chunked_array([[7, -3]]), "doc_id").to_pylist() == ["7", "-3"]
    assert id_column(pa.array(["a", "b"]).dictionary_encode(), "doc_id").to_pylist() == ["a", "b"]


@pytest.mark.parametrize("value", [1.0, None, True, b"d1", ["d1"]])
def test_other_ids_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="use texts or integers as ids"):
        id_text(value, "document id")


def test_float_and_missing_ids_are_refused() -> None:
    with pytest.raises(InputError, match="got the data type double"):
        id_column(pa.chunked_array([[1.0, 2.0]]), "doc_id")
    with pytest.raises(InputError, match="row 1 has no doc_id"):
        id_column(pa.chunked_array([["a", None]]), "doc_id")


@pytest.mark.parametrize(
    "qrels",
    [
        {"q": {"a\ud800": 1}},
        {"q\ud800": {"a": 1}},
        {"q": ["a\ud800"]},
        [{"query_id": "q", "doc_id": "a\ud800", "relevance": 1}],
    ],
)
def test_half_a_character_is_refused(qrels: Any) -> None:
    with pytest.raises(InputError, match=r"has an unpaired surrogate \(invalid Unicode\)\. Fix: decode the ids"):
        Qrels.of(qrels)
