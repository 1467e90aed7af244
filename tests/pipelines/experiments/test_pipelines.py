"""Pipelines: what is fused is what `fuse` makes of the lists, what is reranked stands in the order of the scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judged.comparison.fusion import fuse
from judged.data.texts import Text
from judged.errors import InputError
from judged.pipelines.experiments import Candidate
from judged.pipelines.experiments.configurations import FULL, Choices
from judged.pipelines.experiments.pipelines import Asked, Part, read_synonyms, system_of, widened
from pipelines.experiments.made import DOCUMENTS

TEXTS = {doc: Text("", text) for doc, text in DOCUMENTS.items()}
ASKED = ("pears and fruit", "networks", "connections of the tree", "nothing here")


def system(folder: Path, name: str, pipelines: dict[str, Any], **control: Any) -> Any:
    part, _ = Choices({"engine": name, **control}, {}, (), pipelines, FULL, folder).part(name, control)
    made = system_of(part)
    made.build(TEXTS, folder)
    return made


def lengths(query: str, candidates: list[Candidate]) -> list[float]:
    """Rank short documents first."""
    assert query in ASKED
    return [-float(len(one.text)) for one in candidates]


def reranked(folder: Path, function: Any) -> Any:
    """Put the first two of SQLite's list in another order."""
    folder.mkdir(exist_ok=True)
    below, _ = Choices({}, {}, (), {}, FULL, folder).part("sqlite", {})
    made = system_of(Part("again", "rerank", {"function": function, "cutoff": 2}, (below,)))
    made.build(TEXTS, folder)
    return made


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rrf_k": 5.0, "weights": [0.2, 0.8]},
        {"algorithm": "sum", "normalize": "z-score"},
        {"algorithm": "mnz", "missing": "last"},
        {"algorithm": "borda", "depth": 2},
    ],
)
def test_a_fusion_is_that_of_the_runs_of_its_lists(options: dict[str, Any], tmp_path: Path) -> None:
    pipelines = {
        "words": {"engine": "sqlite", "stemmer": "none"},
        "grams": {"engine": "sqlite", "stemmer": "none", "tokens": "trigrams"},
        "both": {"engine": "fusion", "lists": ["words", "grams"], **options},
    }
    runs = {}
    for name in ("words", "grams"):
        (tmp_path / name).mkdir()
        alone = system(tmp_path / name, name, pipelines)
        runs[name] = {query: dict(alone.search(query, 5)) for query in ASKED}
    (tmp_path / "both").mkdir()
    both = system(tmp_path / "both", "both", pipelines)
    table = fuse(runs, cutoff=5, **options).table.to_pylist()
    expected = {query: [(row["doc_id"], row["score"]) for row in table if row["query_id"] == query] for query in ASKED}
    assert {query: both.search(query, 5) for query in ASKED} == expected
    assert expected["nothing here"] == []
    assert len(both.engines()) == 2


def test_what_is_reranked_stands_before_what_is_not(tmp_path: Path) -> None:
    made = reranked(tmp_path, lengths)
    told: list[Asked] = []
    hits = made.search(ASKED[0], 5, told)
    assert [doc for doc, _ in told[0].hits] == ["d1", "d3", "d5", "d2"]  # these two alike: as runs have them
    assert hits == [("d3", -10.0), ("d1", -26.0), ("d5", -27.0), ("d2", -28.0)]
    assert made.search(ASKED[0], 1) == [("d3", -10.0)]  # two are asked for all the same
    assert [(one.name, one.kind, one.parents) for one in told] == [
        ("sqlite", "candidates", ()), ("again", "rerank", ("sqlite",)),
    ]  # fmt: skip
    wrong = reranked(tmp_path / "wrong", lambda query, given: [float(len(query + str(given)))])
    with pytest.raises(InputError, match=r"1 scores.*for 2 candidates"):
        wrong.search(ASKED[0], 5)


def test_parts_of_one_name_are_one(tmp_path: Path) -> None:
    """A list, and the same list in another order: there is one index."""
    pipelines = {
        "both": {"engine": "fusion", "lists": ["sqlite", "again"]},
        "again": {"engine": "rerank", "of": "sqlite", "function": "math:sqrt"},
    }
    made = system(tmp_path, "both", pipelines)
    assert len(made.engines()) == len(list(tmp_path.rglob("index.sqlite"))) == 1


def test_queries_are_rewritten_then_widened(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("# groups\nvehicle, pears, Fruit # food\n\nsea side,networks\n")
    assert read_synonyms(str(words)) == (("vehicle", "pears", "Fruit"), ("sea side", "networks"))
    (tmp_path / "index").mkdir()
    made = system(tmp_path / "index", "sqlite", {}, synonyms=str(words), rewrite="builtins:str")
    told: list[Asked] = []
    hits = made.search("Sea side vehicle", 5, told)
    assert told[0].query == "Sea side vehicle pears Fruit networks"
    assert {doc for doc, _ in hits} == {"d1", "d2", "d3", "d4", "d5"}
    assert widened("seaside vehicles", read_synonyms(str(words))) == "seaside vehicles"
    words.write_text("car\n")
    with pytest.raises(InputError, match=r"words.txt:1: 'car' stands alone"):
        read_synonyms(str(words))


def test_a_refused_query_finds_nothing_and_the_others_count(tmp_path: Path) -> None:
    pipelines = {
        "grams": {"engine": "sqlite", "stemmer": "none", "tokens": "trigrams"},
        "both": {"engine": "fusion", "lists": ["sqlite", "grams"]},
    }
    both = system(tmp_path, "both", pipelines)
    told: list[Asked] = []
    assert [doc for doc, _ in both.search("of", 5, told)]
    assert [(one.name, one.refused) for one in told] == [
        ("sqlite", ""), ("grams", "the query has no word"), ("both", ""),
    ]  # fmt: skip
    assert both.search("?", 5) == []
