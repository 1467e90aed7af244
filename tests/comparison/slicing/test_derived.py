"""Attributes that follow from the data: counts, words, traffic, novelty, first relevant document, ages, sources."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import Documents, InputError, MissingExtraError, Qrels, Topics, judge
from judged.comparison.slicing.by_document import day_of
from judged.comparison.slicing.derived import derive, known_topics
from judged.comparison.slicing.topic_slices import AGE, FIRST_RELEVANT, LENGTH, RELEVANT, frequency_bands, slice_topics
from judged.data.attributes import Attributes
from judged.data.query_text import _model, kind_of, languages_of, normalised, script_of, word_count

QRELS = {"q1": {"d1": 2, "d2": 1, "d3": 0, "d4": -2}, "q2": {"d2": 1}, "q3": {"d5": 0}}
needs_py3langid = pytest.mark.skipif(importlib.util.find_spec("py3langid") is None, reason="needs py3langid")


def columns(found: Attributes) -> dict[str, list[Any]]:
    return {name: found.column(name).to_pylist() for name in found.names}


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
        (AGE, [0, 1, 2, 7, 8, 30, 31, 365, 366], "0-1 0-1 2-7 2-7 8-30 8-30 31-365 31-365 366+"),
    ],
)
def test_bands_end_where_their_names_say(bands: Any, values: list[int], names: str) -> None:
    assert bands.all_of(values) == names.split()
    assert bands.of(None) is None
    assert AGE.of(-1) == "after today"


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
    assert {text: kind_of(text) for text in texts} == dict.fromkeys(texts, kind)


def test_words_and_scripts() -> None:
    counts = {"income tax": 2, "the UK's  C-4 law ?": 4, "北京": None, "ประเทศไทย": None, "налог на доход": 3, "-": 0,
              "": 0, "한국 음식": 2, "2024": 1}  # fmt: skip
    assert {text: word_count(text) for text in counts} == counts
    scripts = {"tax налог на": "Cyrillic", "ab бв": "Latin", "бв ab": "Cyrillic", "\uff34\uff21\uff38": "Latin",
               "かな": "Japanese",
               "北京": "Han", "京のラーメン": "Japanese", "Ωμέγα": "Greek", "हिन्दी": "Devanagari", "አማርኛ": "Ethiopic",
               "עברית": "Hebrew", "తెలుగు": "Telugu", "42 -": None, "": None, "々": "Han"}  # fmt: skip
    assert {text: script_of(text) for text in scripts} == scripts
    assert kind_of("?!") is None


@given(st.text(max_size=30))
def test_no_text_breaks_the_rules(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)
    assert normalised(f" {text.upper().lower()}\n") == normalised(text.upper().lower())
    assert kind_of(text) in {None, "address", "quoted", "question", "identifier", "keywords"}
    assert (word_count(text) or 0) <= max(len(text.split()), 0)
    assert (script_of(text) is None) <= (word_count(text) is not None)


def test_texts_make_attributes_and_topics_without_one_have_none() -> None:
    found = derive(QRELS, queries={"q1": "who is it", "q2": "北京", "q9": "tax"}, languages=())
    assert found.query_ids == ("q1", "q2", "q3", "q9")
    made = columns(found)
    assert made["relevant"] == [2.0, 1.0, 0.0, None]
    assert made["words"] == [3.0, None, None, 1.0]
    assert made["length"] == ["2-3", None, None, "1"]
    assert made["kind"] == ["question", "keywords", None, "keywords"]
    assert made["script"] == ["Latin", "Han", None, "Latin"]
    assert "language" not in made


@needs_py3langid
def test_a_language_is_named_where_it_is_sure() -> None:
    texts = ["How has the open banking regulation benefited challenger banks?", "was ist ein nierenstein", "x1", ""]
    assert languages_of(texts) == ["en", "de", None, None]
    assert languages_of(texts, ("en", "de"))[:2] == ["en", "de"]
    assert languages_of(texts) == ["en", "de", None, None]  # the restriction was of that call alone
    assert languages_of(["comment faire une tarte"]) == ["fr"]
    assert languages_of(["comment faire une tarte"], ("en", "de")) != ["fr"]  # what is not named cannot be found
    topics = {"q1": texts[0], "q2": texts[1]}
    for given_languages in (None, "any", ("en", "de")):
        assert columns(derive(queries=topics, languages=given_languages))["language"] == ["en", "de"]
    with pytest.raises(InputError, match=r"no language 'xx'\. Fix: give two or more codes"):
        derive(queries=topics, languages=("en", "xx"))
    with pytest.raises(InputError, match="one language leaves nothing to guess"):
        derive(queries=topics, languages=["en"])
    with pytest.raises(InputError, match="languages='en' is not a list"):
        derive(queries=topics, languages="en")
    with pytest.raises(InputError, match=r"languages= are guessed from texts\. Fix: give topics too"):
        derive(QRELS, languages="any")


def test_without_the_library_there_is_no_language_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _model.cache_clear()
    for name in ("py3langid", "py3langid.langid"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("judged.comparison.slicing.derived.can_guess", lambda: False)
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
    """By enumeration: the fewest topics that hold the share, and the equals of the least of them."""
    bands = frequency_bands(counts, cuts)
    for at, cut in enumerate(cuts):
        need = round(cut * 10) * sum(counts)
        sizes = (
            size
            for size in range(len(counts) + 1)
            if any(10 * sum(chosen) >= need for chosen in itertools.combinations(counts, size))
        )
        least = sorted(counts, reverse=True)[next(sizes) - 1]
        inside = [band in ("head", "torso")[: at + 1] for band in bands]
        assert inside == [count >= least for count in counts]


def test_traffic_comes_from_an_attribute_a_dict_or_a_table() -> None:
    counts = {"q1": 6, "q2": 2, "q3": 2}
    wanted = {"traffic_share": [0.6, 0.2, 0.2], "frequency": ["head", "torso", "torso"]}
    table = Attributes.of({query: {"hits": count, "kind": "x"} for query, count in counts.items()})
    for found in (
        derive(QRELS, traffic=counts),
        derive(QRELS, traffic=table),
        derive(QRELS, attributes=table, traffic="hits"),
    ):
        made = columns(found)
        assert {name: made[name] for name in wanted} == wanted
    assert columns(derive(traffic=counts)) == wanted
    more = columns(derive(QRELS, traffic={"q1": 2, "other": 18}))  # of all traffic, not only that of our topics
    assert (more["traffic_share"], more["frequency"]) == ([0.1, None, None], ["tail", None, None])
    assert columns(derive(traffic=counts, cuts=(0.7, 0.9)))["frequency"] == ["head", "head", "head"]


def test_traffic_that_makes_no_sense_is_refused() -> None:
    table = Attributes.of({"q1": {"a": 1, "b": 2, "kind": "x"}})
    for given_traffic, known, message in [
        ({"q1": -1}, None, "a topic has the traffic -1. Fix: give counts of 0 or more"),
        ({"q1": float("nan")}, None, "no topic has any traffic"),
        ({"q1": 0}, None, "no topic has any traffic"),
        ({"q1": "many"}, None, "the attribute traffic is not a number"),
        ({"q1": None}, None, "the attribute traffic is not a number"),
        ([1], None, "a list cannot be read as traffic"),
        (table, None, "which of a, b, kind is the traffic?"),
        ("a", None, "no attributes that 'a' could be one of. Fix: give attributes= too"),
        ("kind", table, "the attribute kind is not a number"),
        ("c", table, "no attribute 'c'. Fix: use one of a, b, kind"),
    ]:
        with pytest.raises(InputError) as raised:
            derive(QRELS, traffic=given_traffic, attributes=known)
        assert message in str(raised.value)
    for cuts in ((0.9, 0.5), (0, 0.5), (0.5, 1), (0.5,)):
        with pytest.raises(InputError, match="make no sense"):
            frequency_bands([1], cuts)  # type: ignore[arg-type]


def test_known_queries_are_found_by_normalised_text_or_id(tmp_path: Path) -> None:
    topics = {"q1": "Income   TAX", "q2": "Stra\u00dfe", "q3": "\uff34ax", "q4": "new one"}

    def novelty(seen: Any, topics: Any = topics) -> str:
        found = columns(derive(QRELS | {"q4": {"d": 1}}, queries=topics, seen=seen, languages=()))["novelty"]
        return "".join(str(at) for at, one in enumerate(found, 1) if one == "seen")

    assert novelty(["income tax ", "STRASSE", "tax"]) == "123"
    assert novelty(["q4", "income tax"]) == "14"
    assert novelty({"q4": "income tax"}) == "1"  # ids of two sets of topics coincide by chance
    assert novelty(Topics.of({"q4": "income tax"})) == "1"
    assert novelty({"q4": "income tax"}, {"q1": "income tax"}) == "14"  # where no text is known, by id
    assert novelty({"q4": "x", "q2": "y"}, None) == "24"
    assert novelty([]) == ""
    (tmp_path / "train.tsv").write_text("9\tincome tax\n")
    assert novelty(tmp_path / "train.tsv") == "1"
    with pytest.raises(InputError, match="a int holds no known queries"):
        derive(QRELS, seen=3)


def test_the_first_relevant_document_of_the_baseline() -> None:
    qrels = {f"q{at}": {"d": 2, "e": 1} for at in range(7)} | {"q9": {"d": 0}}
    ranks = [1, 2, 4, 11, 101, None]
    run = {
        f"q{at}": [*(f"x{one}" for one in range((rank or 6) - 1)), "d" if rank else "y"]
        for at, rank in enumerate(ranks)
    }
    found = derive(qrels, run={**run, "q9": ["d"]}).column("first_relevant").to_pylist()
    assert found == [
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
    with pytest.raises(InputError, match=r"tell nothing of topics without judgments\. Fix: give qrels too"):
        derive(queries={"q": "x"}, run=run)


@given(st.integers(0, 2**32 - 1))
def test_the_band_is_that_of_the_first_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    docs = [f"d{at}" for at in range(14)]
    qrels = {f"q{at}": {doc: int(rng.integers(-1, 3)) for doc in docs[:5]} for at in range(4)}
    run = {query: list(rng.permutation(docs)) for query in qrels}
    found = derive(qrels, run=run).column("first_relevant").to_pylist()
    judged = judge(qrels, run)
    first = judged.first_rank(judged.relevant(1)).tolist()
    for rank, band, query in zip(first, found, judged.query_ids, strict=True):
        by_hand = next((at for at, doc in enumerate(run[query], 1) if qrels[query].get(doc, 0) >= 1), 0)
        assert rank == by_hand
        assert band == (FIRST_RELEVANT.of(by_hand) if max(qrels[query].values()) >= 1 else None)


FACTS = {
    "d1": {"source": "web", "date": "2024-05-01", "length": 3, "title": "a"},
    "d2": {"source": "mail", "date": "2024-05-31T10:00:00Z"},
    "d3": {"source": "web", "date": "2025-01-01"},  # never relevant
    "d6": {"source": "mail", "date": None},
}


def test_relevant_documents_tell_of_their_topic() -> None:
    qrels = {"q1": {"d1": 1, "d2": 1, "d3": 0}, "q2": {"d1": 1}, "q3": {"d2": 1, "d6": 2, "d1": 1}, "q4": {"zz": 1}}
    found = columns(derive(qrels, documents=FACTS))
    assert found["freshness"] == [215.0, 245.0, 215.0, None]  # against 2025-01-01, the newest of the table
    assert found["freshness_band"] == ["31-365", "31-365", "31-365", None]
    assert found["relevant_source"] == ["mixed", "web", "mail", None]
    assert "relevant_length" not in found
    negative = derive({"q": {"d1": -1, "d2": 0}}, documents=FACTS, rel=-1)
    assert negative.column("relevant_source").to_pylist() == ["mail"]  # a negative grade is never relevant
    found = columns(derive(qrels, documents=FACTS, today="2024-06-01", rel=2))
    assert found["freshness"] == [None, None, None, None]
    assert found["relevant_source"] == [None, None, "mail", None]
    found = columns(derive(qrels, documents=FACTS, today=date(2024, 5, 30)))
    assert found["freshness"] == [-1.0, 29.0, -1.0, None]
    assert found["freshness_band"] == ["after today", "8-30", "after today", None]
    renamed = [{"doc_id": doc, "day": known["date"]} for doc, known in FACTS.items()]
    assert derive(qrels, documents=renamed, date="day", today="2024-06-01").column("freshness").to_pylist()[0] == 1.0


def test_columns_of_texts_make_no_groups() -> None:
    facts = {f"d{at}": {"title": f"t{at}", "source": f"s{at % 50}"} for at in range(51)}
    assert derive({"q": {"d1": 1}}, documents=facts).names[-1] == "relevant_source"


def test_documents_that_cannot_be_used_are_refused() -> None:
    for documents, more, message in [
        (FACTS | {"d9": {"date": "yesterday"}}, {}, "the date of document d9 is 'yesterday', no date"),
        (FACTS, {"today": "soon"}, "today is 'soon', no date. Fix: write 2024-05-31"),
        ({"d1": {"source": "web"}}, {"today": "2024-01-01"}, "there is no column 'date' to count ages from"),
        (FACTS, {"date": "published"}, "there is no column 'published' to count ages from (there is source, date"),
        ({"d1": {"band": "a"}}, {}, "two attributes would be called relevant_band. Fix: rename band of the documents"),
    ]:
        with pytest.raises(InputError) as raised:
            derive(QRELS, documents=documents, **more)
        assert message in str(raised.value)


def test_days_are_read_from_many_forms() -> None:
    day = date(2024, 5, 31)
    for value in (day, datetime(2024, 5, 31, 23, 59), "2024-05-31", " 2024-05-31 10:00", "20240531", 20240531.0,  # noqa: DTZ001
                  "20240531T101010", "2024-05-31T23:59:59+14:00"):  # fmt: skip
        assert day_of(value, "today") == day
    for value in ("31.05.2024", "2024", 2024.0, "", True, "2024-02-30", 1.7e9):
        with pytest.raises(InputError, match="no date"):
            day_of(value, "today")
    frame = pa.table({"doc_id": ["d1"], "date": pa.array([day])})
    assert derive(QRELS, documents=Documents.of(frame)).column("freshness").to_pylist()[0] == 0.0


def test_what_is_known_goes_before_what_is_derived() -> None:
    known = {"q2": {"kind": "law", "relevant": 99}, "q8": {"kind": "tax"}}
    found = derive(QRELS, attributes=known, queries={"q1": "who is it"}, languages=())
    assert found.query_ids == ("q1", "q2", "q3", "q8")
    assert found.names[:2] == ("kind", "relevant")
    assert found.column("relevant").to_pylist() == [None, 99.0, None, None]
    assert found.column("judged").to_pylist() == [4.0, 1.0, 1.0, None]


def test_nothing_comes_of_nothing() -> None:
    with pytest.raises(InputError, match="nothing is given that topics could be found in"):
        derive()
    with pytest.raises(InputError, match="nothing is given that topics could be found in"):
        derive(seen=["a"])


def test_bands_stand_by_their_size() -> None:
    qrels = {
        f"q{at:02}": {f"d{one}": 1 for one in range(count)} or {"d": 0} for at, count in enumerate((0, 1, 30, 7, 3))
    }
    ranked = {query: [*(f"x{one}" for one in range(at * at)), "d0"][:15] for at, query in enumerate(qrels)}
    known = derive(qrels, run=ranked)
    for name, bands in (
        ("relevant_band", ("none", "1", "2-5", "6-20", "21+")),
        ("first_relevant", ("2-3", "4-10", "none", "missing")),  # q01, q02, q03 has it below; q00 has nothing relevant
    ):
        assert [one.split(name)[1].strip(" =") for one in slice_topics(known, name).names] == list(bands)


def test_what_could_be_derived_is_pointed_to() -> None:
    with pytest.raises(InputError, match=r"no attribute 'relevant_band'. Fix: make it with derive, of qrels"):
        slice_topics({"q": {"kind": "law"}}, "relevant_band")
    with pytest.raises(InputError, match=r"no attribute 'odd'\. Fix: use one of kind"):
        slice_topics({"q": {"kind": "law"}}, "odd")


def test_values_are_counted_over_the_topics_of_the_qrels_and_not_the_whole_table() -> None:
    """A table of many queries, of which few are judged, seemed to have too many values for slices."""
    table = {f"q{at}": {"intent": f"intent {at}"} for at in range(400)}
    qrels = Qrels.of({"q1": {"a": 1}, "q2": {"a": 1}, "q9": {"a": 0}, "other": {"a": 1}})
    known = known_topics(qrels, attributes=table)
    assert sorted(known.query_ids) == ["other", "q1", "q2", "q9"]
    names = slice_topics(known, "intent").names
    assert names == ("intent=intent 1", "intent=intent 2", "intent=intent 9", "intent missing")
    assert len(slice_topics(table, "intent", query_ids=["q1", "q2"])) == 2
