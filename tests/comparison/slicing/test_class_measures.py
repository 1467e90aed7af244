"""Classes with their own measures: declarations, scores by hand, tests as one family, and no average over classes."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from judged import InputError, evaluate, slice_topics, slices
from judged.comparison.slicing.class_measures import NO_AVERAGE, parse_class_measures, read_class_measures
from judged.stats.correction import adjust
from slices_made import scores_of, slicing_of

if TYPE_CHECKING:
    from pathlib import Path

    from judged.comparison.slicing import Slicing

# two relevant documents per topic; the run finds them at these ranks
RANKS = {"a1": (1, 2), "a2": (3, 7), "a3": (6, 8), "b1": (1, 9), "b2": (4,), "c1": (1, 2)}
QRELS = {query: {"r1": 1, "r2": 1} for query in RANKS}
KINDS = {query: {"kind": query[0]} for query in RANKS}
OWN = {"a": "P@5", "b": "R@8"}


def ranking(ranks: tuple[int, ...]) -> list[str]:
    documents = [f"x{rank}" for rank in range(1, 11)]
    for i, rank in enumerate(ranks, 1):
        documents[rank - 1] = f"r{i}"
    return documents


RUN = {query: ranking(ranks) for query, ranks in RANKS.items()}
OTHER = {query: ranking((10,)) for query in RANKS}
FAMILIES = ["x"] * 20 + ["y"] * 15 + ["z"] * 12 + ["few"] * 4


def classes(default: str = "", min_topics: int = 1) -> Slicing:
    return slice_topics(KINDS, "kind", min_topics=min_topics).with_measures(OWN, default)


def random_scores(seed: int = 0, effect: float = 0.1) -> Any:
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.2, 0.8, (2, len(FAMILIES)))
    runs = {name: base + rng.normal(0, 0.05, base.shape) for name in ("old", "new", "other")}
    runs["new"][:, :20] += effect
    return scores_of(runs, "P@5", "R@100")


def own_slicing() -> Slicing:
    return slicing_of(FAMILIES).with_measures({"x": "P@5", "y": "R@100", "z": "P@5", "few": "R@100"})


def test_scores_of_each_class_by_hand() -> None:
    result = slices(QRELS, {"run": RUN}, classes(), ci="none")
    # P@5: (2 + 1 + 0) / 5 / 3; R@8: (1/2 + 1/2) / 2
    rows = {(row.part, row.measure): row.value for row in result.estimates}
    assert rows == {("kind=a", "P@5"): pytest.approx(0.2), ("kind=b", "R@8"): pytest.approx(0.5)}
    assert (result.value("kind=a"), result.value("kind=b")) == tuple(rows.values())
    assert (result.averages, result.tested, result.tests) == ((), (), 0)
    assert [(row.n, row.size) for row in result.estimates] == [(3, 3), (2, 2)]
    by_default = slices(QRELS, {"run": RUN, "other": OTHER}, classes("RR"), ci="none")
    assert by_default.value("kind=c", "run", "RR") == 1
    assert by_default.value("kind=c", "other") == 0.1
    assert len(by_default.estimates) == 6


def test_intervals_are_those_of_the_topics_of_the_class() -> None:
    scores, slicing = random_scores(), own_slicing()
    rows = {(row.part, row.run): row for row in scores.by_slice(slicing).estimates}
    assert len(rows) == 4 * 3
    for (name, run), row in rows.items():
        alone = {(e.run, e.measure): e for e in scores.over_topics(slicing.mask(name)).estimates()}
        assert (row.value, row.ci, row.n) == (alone[run, row.measure].value, alone[run, row.measure].ci, row.size)


def test_p_values_are_those_of_one_measure_on_one_slice_in_one_family() -> None:
    scores, slicing = random_scores(), own_slicing()
    result = scores.compare_slices(slicing, "old", correction="bonferroni", resamples=5000)
    tested = [row for row in result.rows if row.pair]
    assert len(tested) == 3 * 2  # three classes that are not small, two pairs
    assert set(result.families.values()) == {6}
    plain = slicing_of(FAMILIES)
    for row in tested:
        assert row.pair
        one_slice = plain.select([plain.names.index(row.slice)])
        alone = scores.compare_slices(
            one_slice, "old", measures=row.measure, correction="none", alpha=0.05 / len(tested), resamples=5000
        )
        expected = alone.row(row.slice, second=row.second).pair
        assert expected
        assert row.pair.result.p == expected.result.p
        assert row.pair.result.interval == expected.result.interval
        assert row.contrast is None
    holm = [row for row in scores.compare_slices(slicing, "old", resamples=5000).rows if row.pair]
    raw = [row.pair.result.p for row in holm if row.pair]
    assert [row.pair.result.adjusted for row in holm if row.pair] == pytest.approx(adjust(raw, "holm").tolist())
    assert raw == [row.pair.result.p for row in tested if row.pair]
    assert {row.slice: row.better for row in holm if row.second == "new"}["group=x"] == "new"


def test_classes_are_corrected_within_their_measure_if_asked() -> None:
    result = random_scores().compare_slices(own_slicing(), "old", family="measure", resamples=1000)
    assert result.families == {"P@5": 4, "R@100": 2}


def test_a_small_class_is_shown_and_not_tested() -> None:
    result = random_scores().compare_slices(own_slicing(), "old", resamples=1000)
    small = [row for row in result.rows if row.slice == "group=few"]
    assert [(row.measure, row.n, row.pair, row.small) for row in small] == [("R@100", 4, None, True)] * 2
    assert result.rows_of()[-1].slice == "group=few"
    estimate = random_scores().by_slice(own_slicing()).estimate("group=few")
    assert estimate.small
    assert not math.isnan(estimate.value)


@pytest.mark.parametrize("compare", [False, True])
def test_no_format_has_an_average_over_classes(compare: bool) -> None:
    scores, slicing = random_scores(), own_slicing()
    result: Any = scores.compare_slices(slicing, "old", resamples=5000) if compare else scores.by_slice(slicing)
    means = {f"{scores.value(measure, run):.4f}"[1:] for measure in ("P@5", "R@100") for run in scores.run_names}
    texts = [result.text(), result.markdown(), result.latex(), result.csv(), result.json(), result.html()]
    for text in texts:
        assert not re.search(r"^(\| )?all topics|>all topics|\"all topics\"", text, re.MULTILINE)
        assert "mean of slices" not in text
        assert not [mean for mean in means if mean in text]
    assert NO_AVERAGE in result.sentences
    data = json.loads(result.json())
    names = {(row["slice"], row["measure"]) for row in data["results"]}
    assert names == {("group=x", "P@5"), ("group=y", "R@100"), ("group=z", "P@5"), ("group=few", "R@100")}
    assert data.get("averages", []) == []
    assert data.get("between", []) == []
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    assert {(row["slice"], row["measure"]) for row in rows} == names
    table = next(block for block in result.blocks() if block.only == "people")
    assert len(table) == 4
    assert sorted(table.column("measure").values) == ["P@5", "P@5", "R@100", "R@100"]


def test_geometric_means_have_a_table_of_their_own() -> None:
    topics = [f"q{i}" for i in range(24)]
    qrels = {query: {"r": 1} for query in topics}
    runs = {
        "old": {query: ["x", "r"] for query in topics},
        "new": {query: ["r"] if i % 3 else ["x", "r"] for i, query in enumerate(topics)},
    }
    kinds = {query: {"kind": "a" if i < 12 else "b"} for i, query in enumerate(topics)}
    slicing = slice_topics(kinds, "kind").with_measures({"a": "GMAP", "b": "RR"})
    result = evaluate(qrels, runs, ["GMAP", "RR"]).compare_slices(slicing, "old")
    tables = [block for block in result.blocks() if getattr(block, "only", "") == "people"]
    assert [len(table) for table in tables] == [1, 1]
    assert result.row("kind=a", "GMAP").difference == pytest.approx(2 ** (8 / 12))
    assert result.row("kind=b", "RR").difference == pytest.approx(1 / 3)


def test_topics_of_overlapping_classes_count_in_each() -> None:
    rules = [{"name": "all a", "expression": "kind == 'a'"}, {"name": "a or b", "expression": "kind in ('a', 'b')"}]
    slicing = slice_topics(KINDS, slices=rules, min_topics=1).with_measures({"all a": "P@5", "a or b": "R@8"})
    result = slices(QRELS, {"run": RUN}, slicing, ci="none")
    # R@8 of a1, a2, a3, b1, b2: 1, 1, 1, 1/2, 1/2
    assert [row.value for row in result.estimates] == pytest.approx([0.2, 0.8])
    assert NO_AVERAGE in result.sentences


def test_notes_count_the_topics_without_a_measure() -> None:
    for default, words in (("", "left out"), ("RR", "RR")):
        notes = [note for note in classes(default).notes() if note.rule == "no-class-measure"]
        assert len(notes) == 1
        assert notes[0].text.startswith("1 topic ")
        assert words in notes[0].text
        assert "kind=c" in notes[0].text
    every = slice_topics(KINDS, "kind").with_measures({**OWN, "c": "RR"})
    assert not list(every.notes())
    assert not list(slice_topics(KINDS, "kind").with_measures({}, "RR").notes())


def test_rel_and_dialect_apply_to_names_without_a_level() -> None:
    qrels = {query: {"r1": 2, "r2": 1} for query in RANKS}
    slicing = slice_topics(KINDS, "kind", min_topics=1).with_measures({"a": "P@5", "b": "R(rel=1)@8"})
    result = slices(qrels, {"run": RUN}, slicing, rel=2, ci="none")
    assert {row.part: row.measure for row in result.estimates} == {"kind=a": "P(rel=2)@5", "kind=b": "R@8"}
    assert result.value("kind=a") == pytest.approx(2 / 15)  # r1 in the top 5 for a1 and a2
    with pytest.raises(InputError, match="P@5 is ambiguous"):
        slices(qrels, {"run": RUN}, slicing.with_measures({"b": "P(rel=1)@5"}), rel=2)
    by_tool = slice_topics(KINDS, "kind", min_topics=1).with_measures({"a": "ndcg@5"})
    tool = slices(QRELS, {"run": RUN}, by_tool, dialect="gdeval", ci="none")
    assert {row.measure for row in tool.estimates} == {"nDCG(gain=exp2,undefined=skip)@5"}


def test_measures_that_were_not_evaluated_are_an_error() -> None:
    scores = evaluate(QRELS, {"run": RUN, "other": OTHER}, "RR")
    for call in (scores.by_slice, scores.compare_slices):
        with pytest.raises(InputError, match=r"P@5 was not evaluated"):
            call(classes())


@pytest.mark.parametrize(
    ("measures", "problem"),
    [
        ({"nav": "P@5"}, "no class 'nav'"),
        ({"a": "P5"}, "'kind=a'"),
        ({"a": "P@5,10"}, "'kind=a'"),
        ("a", "cannot be read"),
        ("a=P@5,=RR", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_wrong_declarations(measures: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        slice_topics(KINDS, "kind").with_measures(measures)
    assert problem in str(caught.value)
    if "no class" in problem:
        assert all(name in caught.value.fix for name in ("kind=a", "kind=b", "kind=c"))


def test_a_value_of_two_attributes_requires_the_name_of_the_slice() -> None:
    table = {query: {"kind": "law", "field": "law"} for query in RANKS}
    slicing = slice_topics(table, ["kind", "field"])
    with pytest.raises(InputError, match="several classes"):
        slicing.with_measures({"law": "P@5"})
    assert slicing.with_measures({"field=law": "P@5"}).class_measures == ("", "P@5")


def test_texts_and_files_declare_the_same(tmp_path: Path) -> None:
    assert parse_class_measures(" a = P@5 , b= R@8") == OWN
    path = tmp_path / "classes.toml"
    path.write_text('[class]\nby = "kind"\nmargin = 0.05\n[class.measures]\na = "P@5"\n"b" = "R@8"\n')
    declared = read_class_measures(path)
    assert (declared.measures, declared.by, declared.margin) == (OWN, "kind", 0.05)
    expected = classes().class_measures
    assert expected == ("P@5", "R@8", "")
    for source in (path, str(path), "a=P@5,b=R@8"):
        assert slice_topics(KINDS, "kind").with_measures(source).class_measures == expected


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("[class]\nby = 1\n[class.measures]\na = 'RR'\n", "by is 1", 2),
        ("[class]\nbuy = 'kind'\n[class.measures]\na = 'RR'\n", "no key 'buy'", 2),
        ("[class]\nby = 'kind'\n", "no measures", 1),
        ("[[slice]]\nname = 'a'\n", "no measures", None),
        ("[class]\nby = 'kind'\nmeasures = {}\n", "no measures", 3),
    ],
)
def test_wrong_files_are_reported_with_their_line(tmp_path: Path, text: str, problem: str, line: int | None) -> None:
    path = tmp_path / "classes.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem) as caught:
        read_class_measures(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
    with pytest.raises(InputError, match=r"missing\.toml"):
        read_class_measures(tmp_path / "missing.toml")


def test_the_same_slices_of_other_topics_keep_their_measures() -> None:
    part = classes("RR").over(["b1", "c1"])
    assert (part.class_measures, part.default_measure) == (("P@5", "R@8", "RR"), "RR")
    assert part.n.tolist() == [0, 1, 1]


@pytest.mark.slow
def test_false_differences_over_all_classes_are_at_most_alpha() -> None:
    """Without true differences, 5% of the calls find one on any of three classes by two measures."""
    found, trials, slicing = 0, 400, own_slicing()
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        base = rng.uniform(0, 1, (2, len(FAMILIES)))
        runs = {name: base + rng.normal(0, 0.1, base.shape) for name in ("old", "new")}
        result = scores_of(runs, "P@5", "R@100").compare_slices(slicing, resamples=1000)
        found += any(row.pair is not None and row.pair.significant for row in result.rows)
    assert 4 <= found <= 32  # 5% of 400 is 20; binomial standard deviation 4.4; Hall's test makes it conservative
