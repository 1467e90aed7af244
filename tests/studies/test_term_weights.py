"""Weights of query terms: the ranking, the pages, and the log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from judged.data import sample
from judged.data.texts import Texts
from judged.errors import InputError
from judged.pipelines.experiments.engines.databases import SqliteFts5
from judged.studies import StudyRecords, first_design, read_design
from judged.studies.pages import Study
from judged.studies.records import StudyLists, ubi_records, weights_by_page
from judged.studies.storage import Action, StudyStore
from studies.test_pages import Person
from study_made import DESIGN, design_in, store_of

QUERY = "most common elements of a list"


def built(documents: dict[str, str], folder: Path) -> SqliteFts5:
    engine = SqliteFts5()
    settings = {name: setting.default for name, setting in engine.settings.items()}
    engine.build(Texts.of(documents).documents, settings, folder)
    return engine


@pytest.mark.parametrize("query", [QUERY, "list", "list lists", "the", "x_y z", "open a file, and read its lines"])
def test_weights_of_1_are_the_ranking_of_the_engine(query: str, tmp_path: Path) -> None:
    documents = Texts.read(sample.FOLDER / "docs.jsonl.gz").documents
    engine = built({doc: text.text for doc, text in documents.items()}, tmp_path)
    for k in (3, 1000):
        assert engine.search_weighted(dict.fromkeys(engine.terms(query), 1.0), k) == engine.search(query, k)


def test_scores_are_weighted_sums(tmp_path: Path) -> None:
    engine = built({"a": "cat cat dog", "b": "dog", "c": "cat", "d": "bird", "e": "bird"}, tmp_path)
    cat, dog = (dict(engine.search(word, 9)) for word in ("cat", "dog"))
    assert dict(engine.search_weighted({"cat": 3.0, "dog": 0.5}, 9)) == pytest.approx(
        {"a": 3 * cat["a"] + 0.5 * dog["a"], "b": 0.5 * dog["b"], "c": 3 * cat["c"]}
    )
    assert [doc for doc, _ in engine.search_weighted({"cat": 0.0, "dog": 1.0}, 9)] == ["b", "a"]
    assert engine.search_weighted({"cat": 0.0, "dog": 0.0}, 9) == engine.search_weighted({}, 9) == []


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    """Let one participant do two tasks, the first with term weights."""
    (tmp_path / "study.toml").write_text(first_design(term_weights=True))
    design, store = read_design(tmp_path / "study.toml"), StudyStore.open(tmp_path / "store.db", "design", new=True)
    trial = {"participant": "p1", "group": "novice", "system": "bm25", "practice": False}
    variants = enumerate(("weights", "plain"), 1)
    store.enroll([{**trial, "position": i, "query_id": f"t0{i}", "variant": name} for i, name in variants])
    yield Study(design, store, StudyLists.of(design))
    store.close()


def sliders(text: str) -> list[tuple[str, str, str]]:
    """Return terms and weights of sliders, and the weights written beside them."""
    return re.findall(
        r'<label for="weight-\d+">(.*?)</label>\s.*? name="w" .*? value="(.*?)">\s.*?>(.*?)</output>', text
    )


def test_each_change_of_weights_is_in_the_log_with_its_ranking(study: Study) -> None:
    person = Person(study)
    person.go_to("search")
    assert sliders(person.get()) == []
    text = person.get("?q=sort+a+list")
    assert sliders(text) == [("sort", "1.0", "1"), ("a", "1.0", "1"), ("list", "1.0", "1")]
    for weights in ("&w=1&w=0&w=1", "&w=1&w=0&w=1", "&w=5&w=0&w=0.5", "&w=5&w=0&w=0.5&first=11"):
        text = person.get(f"?q=sort+a+list{weights}")
    assert "w=5&amp;w=0&amp;w=0.5" in text  # the link to other result pages
    doc = re.findall(r"document\?page=\d+&amp;id=([^\"&]+)", text)[0]
    person.get(f"/document?page=4&id={doc}")
    # Back from a document, and from anywhere else, the weights are those of the last page, in the order of the query.
    assert sliders(person.get()) == [("sort", "5.0", "5"), ("a", "0.0", "0"), ("list", "0.5", "0.5")]
    person.get("?q=sort")  # a new query
    person.send()
    person.go_to("search")
    assert sliders(person.get("?q=sort&w=3")) == []  # the other variant has no weights
    person.send()
    records = study.store.records()
    pages = [row for row in records["events"].to_pylist() if row["action"] == "query"]
    weights = weights_by_page(records["weights"].to_pylist())
    logged = [(row["query"], row["rank"], weights.get(("p1", row["position"], row["page"]))) for row in pages]
    every = {"sort": 5.0, "a": 0.0, "list": 0.5}
    assert logged == [
        ("sort a list", 1, {"sort": 1.0, "a": 1.0, "list": 1.0}),
        ("sort a list", 1, {"sort": 1.0, "a": 0.0, "list": 1.0}),
        ("sort a list", 1, every), ("sort a list", 11, every), ("sort", 1, {"sort": 1.0}), ("sort", 1, None),
    ]  # fmt: skip
    index = study.lists.systems["bm25"].text_index
    assert index is not None
    for row, (_, first, page_weights) in zip(pages[:5], logged[:5], strict=True):
        ranking = [doc for doc, _ in index.search_weighted(page_weights or {}, 100)]
        assert row["shown"] == ranking[first - 1 : first + 9] != []
    assert pages[1]["shown"] != pages[2]["shown"]
    ubi = [row["query_attributes"].get("weights") for row in ubi_records(records) if "query_attributes" in row]
    assert ubi == [page_weights for _, _, page_weights in logged]
    records.write(Path(study.store.where).parent / "recorded")
    again = StudyRecords.read(Path(study.store.where).parent / "recorded")
    assert weights_by_page(again["weights"].to_pylist()) == weights


@pytest.mark.parametrize("weights", ["w=1", "w=1&w=1&w=1", "w=6&w=1", "w=-1&w=1", "w=nan&w=1", "w=x&w=1"])
def test_weights_that_fit_no_term_are_refused(study: Study, weights: str) -> None:
    person = Person(study)
    person.go_to("search")
    answer = person.client.get(f"{person.home}/{person.step}?q=sort+list&{weights}")
    assert answer.status_code in {400, 422}
    assert study.store.records()["events"].num_rows == 0


def test_a_query_without_words_and_weights_of_0_have_no_results(study: Study) -> None:
    person = Person(study)
    person.go_to("search")
    for query in ("?q=%3F", "?q=%3F", "?q=sort&w=0"):
        assert "No results" in person.get(query)
    pages = [row for row in study.store.records()["events"].to_pylist() if row["action"] == "query"]
    assert [(row["query"], row["shown"]) for row in pages] == [("?", []), ("sort", [])]


def test_term_weights_need_an_engine(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="alpha and beta"):
        design_in(tmp_path, f'{DESIGN}\n[[variant]]\nname = "w"\nterm_weights = true\n')
    with pytest.raises(InputError, match="engine"):
        design_in(tmp_path, DESIGN.replace('run = "alpha.run"', 'engine = "none"'))


def test_stores_of_earlier_versions_get_the_table_of_weights(tmp_path: Path) -> None:
    store = store_of(design_in(tmp_path), tmp_path / "store.db")
    with store.engine.begin() as connection:
        connection.exec_driver_sql("drop table weights")
    store.close()
    again = StudyStore.open(tmp_path / "store.db")
    again.record_action("p1", 1, Action("query", query="a", rank=1, shown=("d",), weights={"a": 2.0}))
    assert again.actions("p1", 1)[0].weights == {"a": 2.0}
    again.close()
