"""Slices by query text: the same definitions as for topics."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from judged.comparison.slicing import derive
from judged.comparison.slicing.topic_slices import frequency_bands
from judged.online.slicing import results as module
from online.slicing.sliced_logs import logs, refused, sliced

QUERIES = [
    "shoes", "red shoes", "red running shoes", "4 words are here", "who is the uk's prime minister ?", "東京天気", "--",
    "irs.gov", 'the "who" band', "sku-4711", "налог", "ab_cd x1", "", "2024 05", "naïve café", "a  b", "___ a",
]  # fmt: skip


@pytest.mark.parametrize(
    ("by", "attribute"), [("length", "length"), ("query class", "kind"), ("kind", "kind"), ("script", "script")]
)
def test_texts_are_cut_as_topics_are(by, attribute, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_TEXTS", 4)
    topics = {f"{i:02}": text for i, text in enumerate(QUERIES)}
    expected = derive(queries={key: text or "--" for key, text in topics.items()}, languages=()).column(attribute)
    log = logs([{"query_norm": text} for text in [*QUERIES, QUERIES[0]]])
    slices = sliced(log, by)[0]
    assert slices[:-1] == [name or "unknown" for name in expected.to_pylist()]
    assert slices[-1] == slices[0]


def test_words_in_finer_bands():
    queries = ["a", "a b", "a b c", "a b c d", "a b c d e", "a b c d e f", "東京", None, "?!"]
    slices, values, _ = sliced(logs([{"query_norm": query} for query in queries]), "words")
    assert slices == ["1", "2", "3-4", "3-4", "5+", "5+", "unknown", "unknown", "unknown"]
    assert values == ("1", "2", "3-4", "5+", "unknown")


def test_no_text_at_all():
    log = logs([{}, {}])
    for by in ("words", "query class", "traffic", "seen"):
        assert sliced(log, by)[:2] == (["unknown"] * 2, ("unknown",))


def test_traffic_by_hand():
    # 50 + 30 + 10 + 5 + 5, and a page without a text, which counts for nothing
    counts = {"a": 50, "b": 30, "c": 10, "d": 5, "e": 5}
    pages = [{"query_norm": text} for text, count in counts.items() for _ in range(count)]
    log = logs([*pages, {}])
    slices, values, _ = sliced(log, "traffic")
    assert slices == ["head"] * 50 + ["torso"] * 40 + ["tail"] * 10 + ["unknown"]
    assert values == ("head", "torso", "tail", "unknown")
    assert sliced(log, "traffic:40,60")[0] == ["head"] * 50 + ["torso"] * 30 + ["tail"] * 20 + ["unknown"]
    assert sliced(log, "frequency:90.5,99")[0][:100] == ["head"] * 100  # of d and e, equal, log are needed


def test_traffic_is_that_of_topics():
    rng = random.Random(5)  # noqa: S311 - a test's data
    texts = [f"q{min(int(rng.paretovariate(0.7)), 60)}" for _ in range(400)]
    names = sorted(set(texts))
    for cuts in ((50, 90), (10, 20), (1, 99)):
        bands = frequency_bands([texts.count(name) for name in names], (cuts[0] / 100, cuts[1] / 100))
        expected = [dict(zip(names, bands, strict=True))[text] for text in texts]
        log = logs([{"query_norm": text} for text in texts])
        assert sliced(log, f"traffic:{cuts[0]},{cuts[1]}")[0] == expected


@pytest.mark.parametrize("cuts", ["90,50", "50", "0,50", "50,100", "a,b", "50,nan", "1,2,3"])
def test_traffic_cuts_that_make_no_sense(cuts):
    assert "traffic:50,90" in refused(logs([{"query_norm": "a"}]), f"traffic:{cuts}")


def test_seen_is_asked_before_by_another_session():
    pages = [
        {"query_norm": "a", "session": 1, "time_ms": 5},  # the first
        {"query_norm": "a", "session": 1, "time_ms": 6, "page": 2},  # only itself had asked
        {"query_norm": "a", "session": 2, "time_ms": 7},  # seen
        {"query_norm": "a", "session": 1, "time_ms": 7},  # at that same time: nobody before
        {"query_norm": "a", "session": 1, "time_ms": 8},  # another had asked since
        {"query_norm": "b", "session": 3, "time_ms": 5},  # log at once: log new
        {"query_norm": "b", "session": 2, "time_ms": 5},
        {"query_norm": "b", "session": 2, "time_ms": 6},
        {"query_norm": None, "session": 2, "time_ms": 6},
    ]
    slices, values, note = sliced(logs(pages), "seen")
    assert slices == ["new", "new", "seen", "new", "seen", "new", "new", "seen", "unknown"]
    assert values == ("new", "seen", "unknown")
    assert "first days of the log" in note


def test_seen_against_a_look_at_every_pair_of_pages():
    rng = random.Random(9)  # noqa: S311 - a test's data
    pages = [
        {"query_norm": rng.choice("abcdefgh"), "session": rng.randrange(6), "time_ms": rng.randrange(40)}
        for _ in range(120)
    ]
    expected = [
        "seen"
        if any(
            other["query_norm"] == page["query_norm"]
            and other["session"] != page["session"]
            and other["time_ms"] < page["time_ms"]
            for other in pages
        )
        else "new"
        for page in pages
    ]
    assert sliced(logs(pages), "novelty")[0] == expected
    assert {"seen", "new"} == set(expected)


def test_queries_are_a_column_like_others():
    log = logs([{"query_norm": query} for query in ("b", "a", "b")], attributes={"x": pa.string()})
    assert sliced(log, "query")[:2] == (["b", "a", "b"], ("a", "b"))
