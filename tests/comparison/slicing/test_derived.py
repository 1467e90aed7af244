"""Derived attributes: counts, words, traffic, novelty, first relevant document, ages, sources."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import InputError, MissingExtraError, Qrels, Topics, judge
from judged.comparison.slicing.derived import derive, read_topic_attributes
from judged.comparison.slicing.topic_slices import FIRST_RELEVANT, LENGTH, RELEVANT, frequency_bands, slice_topics
from judged.data.attributes import Attributes
from judged.data.column_names import use_columns
from judged.data.freshness import AFTER, dated_documents
from judged.data.query_text import (
    _model,
    detect_languages,
    normalize_query,
    query_kind,
    query_script,
    word_count,
)

QRELS = {"q1": {"d1": 2, "d2": 1, "d3": 0, "d4": -2}, "q2": {"d2": 1}, "q3": {"d5": 0}}
needs_py3langid = pytest.mark.skipif(importlib.util.find_spec("py3langid") is None, reason="needs py3langid")


def columns(result: Attributes) -> dict[str, list[Any]]:
    return {name: result.column(name).to_pylist() for name in result.names}


def test_judgments_are_counted() -> None:
    assert columns(derive(QRELS)) == {
        "relevant": [2.0, 1.0, 0.0],
        "relevant_band": ["2-5", "1", "none"],
        "judged": [4.0, 1.0, 1.0],
    }
    assert columns(derive(QRELS, rel=2))["relevant"] == [1.0, 0.0, 0.0]
    assert columns(derive({"q": {"a": -1, "b": 0}}, rel=-1))["relevant"] == [1.0]  # a negative grade is never relevant
    twice = pa.table({"query_id": ["q", "q"], "doc_id": ["a", "a"], "relevance": [1.0, 1.0], "iteration": ["1", "2"]})
    assert columns(derive(twice))["relevant"] == [1.0]  # one document of two subtopics


@pytest.mark.parametrize(
    ("bands", "values", "names"),
    [
        (RELEVANT, [0, 1, 2, 5, 6, 20, 21, 900], "none 1 2-5 2-5 6-20 6-20 21+ 21+"),
        (LENGTH, [1, 2, 3, 4, 6, 7, 30], "1 2-3 2-3 4-6 4-6 7+ 7+"),
        (FIRST_RELEVANT, [0, 1, 2, 3, 4, 10, 11, 100, 101], "none 1 2-3 2-3 4-10 4-10 11-100 11-100 101+"),
    ],
)
def test_bands_end_where_their_names_say(bands: Any, values: list[int], names: str) -> None:
    assert bands.labels(values) == names.split()
    assert bands.label(None) is None


@pytest.mark.parametrize(
    ("kind", "texts"),
    {
        "address": ["irs.gov", "www.irs", "https://x.y/z?q=1", "IRS.GOV/forms", "me@example.org", "bbc.co.uk"],
        "quoted": ['"to be or not to be"', "who sang “let it be”", "„Faust“ Goethe", "«guerre» paix", '"a" irs.gov'],
        "question": ["how tall", "What is it", "who's there", "is the moon made of cheese", "don't we all know that",
                     "seo?", "wo ist das?", "谁是总统\uff1f", "where\u2019s waldo", "irs.gov down?"],
        "identifier": ["SKU-4711", "2024", "978-3 16 148410-0", "bm25", "covid-19", "AB12/7#3", "2024-05-31"],
        "keywords": ["income tax", "can opener", "will smith", "who", "tax 2024", "node.js", "1", "a1", 'say "',
                     "is this it", "c++", "5 % off"],
    }.items(),
)  # fmt: skip
def test_kinds_of_queries_follow_fixed_rules(kind: str, texts: list[str]) -> None:
    assert {text: query_kind(text) for text in texts} == dict.fromkeys(texts, kind)


def test_words_and_scripts() -> None:
    counts = {"income tax": 2, "the UK's  C-4 law ?": 4, "北京": None, "ประเทศไทย": None, "налог на доход": 3, "-": 0,
              "": 0, "한국 음식": 2, "2024": 1}  # fmt: skip
    assert {text: word_count(text) for text in counts} == counts
    scripts = {"tax налог на": "Cyrillic", "ab бв": "Latin", "бв ab": "Cyrillic", "\uff34\uff21\uff38": "Latin",
               "かな": "Japanese",
               "北京": "Han", "京のラーメン": "Japanese", "Ωμέγα": "Greek", "हिन्दी": "Devanagari", "አማርኛ": "Ethiopic",
               "עברית": "Hebrew", "తెలుగు": "Telugu", "42 -": None, "": None, "々": "Han"}  # fmt: skip
    assert {text: query_script(text) for text in scripts} == scripts
    assert query_kind("?!") is None


@given(st.text(max_size=30))
def test_no_text_breaks_the_rules(text: str) -> None:
    assert normalize_query(normalize_query(text)) == normalize_query(text)
    assert normalize_query(f" {text.upper().lower()}\n") == normalize_query(text.upper().lower())
    assert query_kind(text) in {None, "address", "quoted", "question", "identifier", "keywords"}
    assert (word_count(text) or 0) <= max(len(text.split()), 0)
    assert (query_script(text) is None) <= (word_count(text) is not None)


def test_texts_make_attributes_and_topics_without_one_have_none() -> None:
    result = derive(QRELS, queries={"q1": "who is it", "q2": "北京", "q9": "tax"}, languages=())
    assert result.query_ids == ("q1", "q2", "q3", "q9")
    output = columns(result)
    assert output["relevant"] == [2.0, 1.0, 0.0, None]
    assert output["words"] == [3.0, None, None, 1.0]
    assert output["length"] == ["2-3", None, None, "1"]
    assert output["kind"] == ["question", "keywords", None, "keywords"]
    assert output["script"] == ["Latin", "Han", None, "Latin"]
    assert "language" not in output


@needs_py3langid
def test_a_language_is_named_where_it_is_sure() -> None:
    texts = ["How has the open banking regulation benefited challenger banks?", "was ist ein nierenstein", "x1", ""]
    assert detect_languages(texts) == ["en", "de", None, None]
    assert detect_languages(texts, ("en", "de"))[:2] == ["en", "de"]
    assert detect_languages(texts) == ["en", "de", None, None]  # the restriction applied to that call only
    assert detect_languages(["comment faire une tarte"]) == ["fr"]
    assert detect_languages(["comment faire une tarte"], ("en", "de")) != ["fr"]  # excluded languages are not detected
    topics = {"q1": texts[0], "q2": texts[1]}
    for given_languages in (None, "any", ("en", "de")):
        assert columns(derive(queries=topics, languages=given_languages))["language"] == ["en", "de"]
    with pytest.raises(InputError, match=r"no language 'xx'\. Fix: use two or more codes"):
        derive(queries=topics, languages=("en", "xx"))
    with pytest.raises(InputError, match="at least two languages are required, got 1"):
        derive(queries=topics, languages=["en"])
    with pytest.raises(InputError, match="languages must be a list, got 'en'"):
        derive(queries=topics, languages="en")
    with pytest.raises(InputError, match=r"languages= requires query texts\. Fix: pass queries"):
        derive(QRELS, languages="any")


def test_without_the_library_there_is_no_language_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _model.cache_clear()
    for name in ("py3langid", "py3langid.langid"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("judged.comparison.slicing.derived.has_language_detector", lambda: False)
    assert "language" not in derive(queries={"q": "income tax"}).names
    with pytest.raises(MissingExtraError, match=r"py3langid is not installed\. Fix: pip install 'judged\[language\]'"):
        derive(queries={"q": "income tax"}, languages=("en", "de"))


@pytest.mark.parametrize(
    ("counts", "bands"),
    [
        ([50, 30, 10, 5, 5], "head torso torso tail tail"),  # 50 of 100; 90 of 100
        ([49, 31, 10, 5, 5], "head head torso tail tail"),  # 49 are too few
        ([5, 10, 5, 50, 30], "tail torso tail head torso"),  # the order does not matter
        ([100], "head"),
        ([95, 5], "head tail"),  # one topic may be head and all of the torso's share
        ([1, 1, 1, 1], "head head head head"),  # equal traffic, equal band
        ([3, 3, 3, 1], "head head head tail"),  # 3 hold 30 %, so the next is needed, and its equals come with it
        ([6, 2, 2, 0], "head torso torso tail"),  # 6 of 10; 8 of 10; 10 of 10; nothing
        ([63, 7], "head tail"),  # 63 is exactly 90 % of 70
        ([0.7, 0.2, 0.1], "head torso tail"),  # 0.7 + 0.2 is 0.9, but not in floating point
        ([0.3, 0.1, 0.1], "head torso torso"),
        ([45, 45, 9, 1], "head head tail tail"),
    ],
)
def test_head_torso_and_tail_by_hand(counts: list[float], bands: str) -> None:
    assert frequency_bands(counts) == bands.split()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=7).filter(any), st.sampled_from([(0.5, 0.9), (0.2, 0.6)]))
def test_the_head_is_the_smallest_set_of_the_most_frequent(counts: list[int], cuts: tuple[float, float]) -> None:
    """By enumeration: the smallest set of topics with the share, plus ties of its last topic."""
    bands = frequency_bands(counts, cuts)
    for i, cut in enumerate(cuts):
        need = round(cut * 10) * sum(counts)
        sizes = (
            size
            for size in range(len(counts) + 1)
            if any(10 * sum(chosen) >= need for chosen in itertools.combinations(counts, size))
        )
        least = sorted(counts, reverse=True)[next(sizes) - 1]
        inside = [band in ("head", "torso")[: i + 1] for band in bands]
        assert inside == [count >= least for count in counts]


def test_traffic_comes_from_an_attribute_a_dict_or_a_table() -> None:
    counts = {"q1": 6, "q2": 2, "q3": 2}
    expected = {"traffic_share": [0.6, 0.2, 0.2], "frequency": ["head", "torso", "torso"]}
    table = Attributes.of({query: {"hits": count, "kind": "x"} for query, count in counts.items()})
    for result in (
        derive(QRELS, traffic=counts),
        derive(QRELS, traffic=table),
        derive(QRELS, attributes=table, traffic="hits"),
    ):
        output = columns(result)
        assert {name: output[name] for name in expected} == expected
    assert columns(derive(traffic=counts)) == expected
    more = columns(derive(QRELS, traffic={"q1": 2, "other": 18}))  # of all traffic, not only that of our topics
    assert (more["traffic_share"], more["frequency"]) == ([0.1, None, None], ["tail", None, None])
    assert columns(derive(traffic=counts, cuts=(0.7, 0.9)))["frequency"] == ["head", "head", "head"]


def test_invalid_traffic() -> None:
    table = Attributes.of({"q1": {"a": 1, "b": 2, "kind": "x"}})
    for given_traffic, attributes, message in [
        ({"q1": -1}, None, "traffic must be a finite number >= 0, got -1"),
        ({"q1": float("nan")}, None, "the traffic of all topics is 0"),
        ({"q1": 0}, None, "the traffic of all topics is 0"),
        ({"q1": "many"}, None, "the attribute traffic is not a number"),
        ({"q1": None}, None, "the attribute traffic is not a number"),
        ([1], None, "traffic must be counts or an attribute, got list"),
        (table, None, "it is unclear which column contains the traffic: a, b, kind"),
        ("a", None, "traffic='a' requires attributes. Fix: pass attributes="),
        ("kind", table, "the attribute kind is not a number"),
        ("c", table, "no attribute 'c'. Fix: use one of a, b, kind"),
    ]:
        with pytest.raises(InputError) as raised:
            derive(QRELS, traffic=given_traffic, attributes=attributes)
        assert message in str(raised.value)
    for cuts in ((0.9, 0.5), (0, 0.5), (0.5, 1), (0.5,)):
        with pytest.raises(InputError, match="must be two ascending shares between 0 and 1"):
            frequency_bands([1], cuts)  # type: ignore[arg-type]


def test_known_queries_are_found_by_normalized_text_or_id(tmp_path: Path) -> None:
    topics = {"q1": "Income   TAX", "q2": "Stra\u00dfe", "q3": "\uff34ax", "q4": "new one"}

    def novelty(seen: Any, topics: Any = topics) -> str:
        result = columns(derive(QRELS | {"q4": {"d": 1}}, queries=topics, seen=seen, languages=()))["novelty"]
        return "".join(str(i) for i, row in enumerate(result, 1) if row == "seen")

    assert novelty(["income tax ", "STRASSE", "tax"]) == "123"
    assert novelty(["q4", "income tax"]) == "14"
    assert novelty({"q4": "income tax"}) == "1"  # ids of two sets of topics coincide by chance
    assert novelty(Topics.of({"q4": "income tax"})) == "1"
    assert novelty({"q4": "income tax"}, {"q1": "income tax"}) == "14"  # where no text is known, by id
    assert novelty({"q4": "x", "q2": "y"}, None) == "24"
    assert novelty([]) == ""
    (tmp_path / "train.tsv").write_text("9\tincome tax\n")
    assert novelty(tmp_path / "train.tsv") == "1"
    with pytest.raises(InputError, match="must be texts, ids, or topics, got int"):
        derive(QRELS, seen=3)


def test_the_first_relevant_document_of_the_baseline() -> None:
    qrels = {f"q{i}": {"d": 2, "e": 1} for i in range(7)} | {"q9": {"d": 0}}
    ranks = [1, 2, 4, 11, 101, None]
    run = {
        f"q{i}": [*(f"x{row}" for row in range((rank or 6) - 1)), "d" if rank else "y"] for i, rank in enumerate(ranks)
    }
    result = derive(qrels, run={**run, "q9": ["d"]}).column("first_relevant").to_pylist()
    assert result == [
        "1",
        "2-3",
        "4-10",
        "11-100",
        "101+",
        "none",
        "none",
        None,
    ]  # q6 is missing; q9 has nothing to find
    run = {"q0": ["e", "x", "x2", "d"]}
    assert derive(qrels, run=run, rel=2).column("first_relevant").to_pylist()[0] == "4-10"
    with pytest.raises(InputError, match="the run has no topic in common with the qrels"):
        derive(qrels, run={"z": ["d"]})
    with pytest.raises(InputError, match="the run has no scores"):
        derive(qrels, run=pa.table({"query_id": ["q0"], "doc_id": ["d"]}))
    with pytest.raises(InputError, match=r"run= and documents= require qrels\. Fix: pass qrels"):
        derive(queries={"q": "x"}, run=run)


@given(st.integers(0, 2**32 - 1))
def test_the_band_is_that_of_the_first_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    docs = [f"d{i}" for i in range(14)]
    qrels = {f"q{i}": {doc: int(rng.integers(-1, 3)) for doc in docs[:5]} for i in range(4)}
    run = {query: list(rng.permutation(docs)) for query in qrels}
    result = derive(qrels, run=run).column("first_relevant").to_pylist()
    judged = judge(qrels, run)
    first = judged.first_rank(judged.relevant(1)).tolist()
    for rank, band, query in zip(first, result, judged.query_ids, strict=True):
        by_hand = next((i for i, doc in enumerate(run[query], 1) if qrels[query].get(doc, 0) >= 1), 0)
        assert rank == by_hand
        assert band == (FIRST_RELEVANT.label(by_hand) if max(qrels[query].values()) >= 1 else None)


FACTS = {
    "d1": {"source": "web", "date": "2024-05-01", "length": 3, "title": "a"},
    "d2": {"source": "mail", "date": "2024-05-31T10:00:00Z"},
    "d3": {"source": "web", "date": "2025-01-01"},  # never relevant
    "d6": {"source": "mail", "date": None},
}


def test_relevant_documents_tell_of_their_topic() -> None:
    qrels = {"q1": {"d1": 1, "d2": 1, "d3": 0}, "q2": {"d1": 1}, "q3": {"d2": 1, "d6": 2, "d1": 1}, "q4": {"zz": 1}}
    result = columns(derive(qrels, documents=FACTS))
    assert result["freshness_days"] == [215.0, 245.0, 215.0, None]  # against 2025-01-01, the newest of the table
    # thirds of 0, 215, 245: one document in each; zz has no date
    assert result["freshness"] == ["1 to 215 days", "over 215 days", "1 to 215 days", "no date"]
    assert result["relevant_source"] == ["mixed", "web", "mail", None]
    assert "relevant_length" not in result
    negative = derive({"q": {"d1": -1, "d2": 0}}, documents=FACTS, rel=-1)
    assert negative.column("relevant_source").to_pylist() == ["mail"]  # a negative grade is never relevant
    result = columns(derive(qrels, documents=dated_documents(FACTS, as_of="2024-06-01"), rel=2))
    assert result["freshness_days"] == [None, None, None, None]
    assert result["freshness"] == [None, None, "no date", None]  # without a relevant document, there is no age
    assert result["relevant_source"] == [None, None, "mail", None]
    result = columns(derive(qrels, documents=dated_documents(FACTS, as_of=date(2024, 5, 30), bands=(7, 28))))
    assert result["freshness_days"] == [-1.0, 29.0, -1.0, None]
    assert result["freshness"] == [AFTER, "over 28 days", AFTER, "no date"]
    renamed = [{"doc_id": doc, "when": attributes["date"]} for doc, attributes in FACTS.items()]
    assert "freshness" not in derive(qrels, documents=renamed).names
    with use_columns({"date": "when"}):
        assert derive(qrels, documents=renamed).column("freshness_days").to_pylist()[0] == 215.0


def test_columns_of_texts_make_no_groups() -> None:
    facts = {f"d{i}": {"title": f"t{i}", "source": f"s{i % 50}"} for i in range(51)}
    assert derive({"q": {"d1": 1}}, documents=facts).names[-1] == "relevant_source"


def test_documents_that_cannot_be_used_are_refused() -> None:
    for documents, selected, message in [
        ({"d9": {"date": "yesterday"}}, {"date": "date"}, "the column date has no valid date"),
        (
            {"d1": {"band": "a"}},
            {},
            "attribute names must be unique, got relevant_band twice. Fix: rename the column band",
        ),
    ]:
        with pytest.raises(InputError) as raised, use_columns(selected):
            derive(QRELS, documents=documents)
        assert message in str(raised.value)


def test_what_is_known_goes_before_what_is_derived() -> None:
    attributes = {"q2": {"kind": "law", "relevant": 99}, "q8": {"kind": "tax"}}
    result = derive(QRELS, attributes=attributes, queries={"q1": "who is it"}, languages=())
    assert result.query_ids == ("q1", "q2", "q3", "q8")
    assert result.names[:2] == ("kind", "relevant")
    assert result.column("relevant").to_pylist() == [None, 99.0, None, None]
    assert result.column("judged").to_pylist() == [4.0, 1.0, 1.0, None]


def test_at_least_one_source_is_required() -> None:
    with pytest.raises(InputError, match="at least one source of topics is required"):
        derive()
    with pytest.raises(InputError, match="at least one source of topics is required"):
        derive(seen=["a"])


def test_bands_stand_by_their_size() -> None:
    qrels = {f"q{i:02}": {f"d{row}": 1 for row in range(count)} or {"d": 0} for i, count in enumerate((0, 1, 30, 7, 3))}
    ranked = {query: [*(f"x{row}" for row in range(i * i)), "d0"][:15] for i, query in enumerate(qrels)}
    attributes = derive(qrels, run=ranked)
    for name, bands in (
        ("relevant_band", ("none", "1", "2-5", "6-20", "21+")),
        ("first_relevant", ("2-3", "4-10", "none", "missing")),  # q01, q02, q03 has it below; q00 has nothing relevant
    ):
        assert [row.split(name)[1].strip(" =") for row in slice_topics(attributes, name).names] == list(bands)


def test_what_could_be_derived_is_pointed_to() -> None:
    with pytest.raises(
        InputError, match=r"no attribute 'relevant_band'. Fix: compute the attribute with `derive` from qrels"
    ):
        slice_topics({"q": {"kind": "law"}}, "relevant_band")
    with pytest.raises(InputError, match=r"no attribute 'odd'\. Fix: use one of kind"):
        slice_topics({"q": {"kind": "law"}}, "odd")


def test_values_are_counted_over_the_topics_of_the_qrels_and_not_the_whole_table() -> None:
    """A table of many queries, of which few are judged, seemed to have too many values for slices."""
    table = {f"q{i}": {"intent": f"intent {i}"} for i in range(400)}
    qrels = Qrels.of({"q1": {"a": 1}, "q2": {"a": 1}, "q9": {"a": 0}, "other": {"a": 1}})
    attributes = read_topic_attributes(qrels, attributes=table)
    assert sorted(attributes.query_ids) == ["other", "q1", "q2", "q9"]
    names = slice_topics(attributes, "intent").names
    assert names == ("intent=intent 1", "intent=intent 2", "intent=intent 9", "intent missing")
    assert len(slice_topics(table, "intent", query_ids=["q1", "q2"])) == 2
