"""Learning pages: numbers match the public functions, and formulas are MathML."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape, unescape
from typing import TYPE_CHECKING, get_args
from urllib.parse import quote

import pytest

import judged
from judged.interface.pages.learn import catalog
from judged.interface.pages.learn.advice import ANSWERS as IN_WORDS
from judged.interface.pages.learn.advice import (
    DESCRIBED_FACTS,
    AdviceQuery,
    advise_on_description,
    example_of,
    synthesize,
)
from judged.interface.pages.learn.catalog import measure_page
from judged.interface.pages.learn.lessons import LESSONS, blocks, formula, lesson_page, prose
from judged.interface.pages.workspace import open_workspace
from judged.scoring.advice import RULES, advise
from judged.scoring.advice.rules import TASKS
from judged.scoring.measures import parse
from judged.scoring.measures.pages import FAMILIES, definition, families
from judged.scoring.measures.registry import REGISTRY
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = sorted(name for name in REGISTRY if REGISTRY[name].cls.__module__.startswith("judged."))
OF_RANKINGS = [name for name in NAMES if REGISTRY[name].properties.reads == "rankings"]


@pytest.fixture(scope="module")
def client(sample):
    from fastapi.testclient import TestClient

    return TestClient(make_app(sample), follow_redirects=False)


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


# formulas


def parsed(mathml: str) -> ET.Element:
    return ET.fromstring(unescape(str(mathml).replace("&lt;", "&amp;lt;")))  # noqa: S314  made by ourselves


def rendered(latex: str) -> str:
    """Return the words of a formula, from left to right."""
    return " ".join("".join(parsed(formula(latex)).itertext()).replace("\u2061", " ").split())


def test_measure_names_in_formulas_are_upright_words():
    mathml = formula(r"\mathrm{P}@k = \frac{1}{\mathrm{nDCG}}")
    assert "<mi>nDCG</mi>" in mathml
    assert '<mi mathvariant="normal">P</mi>' in mathml
    assert rendered(r"\mathrm{ERR\text{-}IA}@k") == "ERR-IA@k"


@pytest.mark.parametrize("latex", [r"\nothing{2}", "a & b", r"\left(a", "{a", r"\href{javascript:x}{y}", "<b>$"])
def test_unsupported_formulas_are_shown_as_source(latex):
    assert formula(latex) == f"<code>{escape(latex)}</code>"


@pytest.mark.parametrize(
    "markdown", ["$$a = 1, \\quad b = 2$$", "$$a = 1 \\quad (i < k), \\qquad b = 2$$", "$$\na = 1, \\quad\nb\n$$"]
)
def test_formulas_side_by_side_become_two(markdown):
    assert [len(block.formulas) for block in blocks(markdown)] == [2]


@pytest.mark.parametrize("name", NAMES)
def test_every_formula_of_the_registry_becomes_mathml(name):
    """Whatever is not a command stands in the result."""
    for block in blocks(definition(REGISTRY[name])):
        if block.kind != "formula":
            assert not re.search(r"[\\$`]", text_of(prose(block.text)))
            continue
        assert block.formulas, block.text
        trees = [parsed(latex) for latex in block.formulas]
        assert {tree.tag for tree in trees} == {"math"}
        assert not re.search(r"\\| style=", "".join(block.formulas))
        source = re.sub(r"\\(?!text|mathrm|log|ln|exp|min|max)[A-Za-z]+|\\(text|mathrm)", "", block.text)
        formula_text = "".join(text for tree in trees for text in tree.itertext())
        assert sorted(re.findall("[A-Za-z0-9]", formula_text)) == sorted(re.findall("[A-Za-z0-9]", source))


# a measure's page


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_has_a_page_with_its_value(client, name):
    answer = client.get(f"/learn/{name}")
    assert answer.status_code == 200
    entry, page_text = REGISTRY[name], text_of(answer.text)
    example = example_of(entry)
    assert (example is None) is (entry.properties.reads != "rankings")
    assert example is None or f"{example.measure} {example.score:.4f}" in page_text
    for text in (entry.use, entry.misleads, entry.cite):
        assert text_of(str(prose(text))) in page_text
    for parameter in entry.all_parameters:
        assert f"<code>{parameter.name}</code>" in answer.text
    assert ' style="' not in answer.text
    math = definition(entry).count("$$") // 2
    assert answer.text.count('<math display="block">') >= math
    assert "\\" not in "".join(re.findall(r"<math.*?</math>", answer.text, re.DOTALL))


@pytest.mark.parametrize("name", OF_RANKINGS)
def test_the_example_is_the_public_value(name):
    example = example_of(REGISTRY[name])
    if example.typed:
        grades = [None if grade == "-" else float(grade) for grade in example.typed.split(",")]
        missing = [float(grade) for grade in example.missing.split(",")] if example.missing else []
        assert example.score == parse(example.measure).of_list(grades, missing=missing)
    last = example.explanation.sheets[-1].lines[-1]
    assert (last.name, last.value) == (example.measure, example.score)


def test_editable_examples_are_valid_evaluator_lists(client):
    """It answers for the measures that it lists, in the forms in which it lists them."""
    editable = [example for name in OF_RANKINGS if not (example := example_of(REGISTRY[name])).fixed]
    assert len(editable) == len(OF_RANKINGS) - 21
    for example in [*editable, *(lesson_page(lesson.key).about["example"] for lesson in LESSONS.values())]:
        gain = "exp2" if "exp2" in example.measure else "linear"
        parameters = {
            "list": example.typed,
            "missing": example.missing,
            "measure": example.measure,
            "cutoff": 5,
            "gain": gain,
        }
        answer = client.get("/api/v1/evaluator/measure", params=parameters)
        assert answer.status_code == 200, answer.text
        assert answer.json()["lists"][0]["value"] == example.score


def test_known_examples():
    values = {
        name: measure_page(REGISTRY[name].cls).about["example"].score for name in ("AP", "P", "R", "RR", "Success")
    }
    assert values == {"AP": pytest.approx((1 + 2 / 3 + 3 / 5) / 4), "P": 0.6, "R": 0.75, "RR": 0.5, "Success": 1.0}


def test_measures_that_need_more_than_grades_have_fixed_examples(client):
    page_text = client.get("/learn/AlphanDCG").text
    assert "data-example" not in page_text
    assert "requires judgments by subtopic" in page_text
    value = judged.measures.AlphanDCG(cutoff=5).of_list([(1, 0), (0, 0), (1, 1)])
    assert f"<b>{value:.4f}</b>" in page_text
    facts = client.get("/learn/TBG").text
    assert "length 600" in facts
    value = judged.measures.TBG().of_list([1, 0, 1], facts={"length": [600, 300, 900]})
    assert f"<b>{value:.4f}</b>" in facts


def test_other_tools_numbers_are_those_of_compare_tools():
    page = measure_page(REGISTRY["nDCG"].cls)
    by_tool = {row["tool"]: row for row in page.table("tool_scores").records()}
    ours = judged.nDCG(cutoff=5)
    assert page.about["example"].score == ours.of_list([3, 0, 2, 1, 0], missing=[2])
    assert by_tool["gdeval"]["score"] == pytest.approx(ours.replace(gain="exp2").of_list([3, 0, 2, 1, 0], missing=[2]))
    assert by_tool["scikit-learn"]["score"] == pytest.approx(ours.of_list([3, 0, 2, 1, 0]))
    assert {tool: row["differs"] for tool, row in by_tool.items()} == {
        "trec_eval-10": False, "trec_eval-9": False, "pytrec_eval": False, "gdeval": True, "beir": False, "ranx": False,
        "ir_measures": False, "trectools": False, "scikit-learn": True, "torchmetrics": True, "cwl_eval": True,
    }  # fmt: skip


def test_related_measures_are_linked_in_both_directions():
    pages = {name: measure_page(REGISTRY[name].cls) for name in ("RBP", "GMAP", "AP", "Fallout")}
    related = {name: page.table("related").column("name").values for name, page in pages.items()}
    assert related["RBP"][0] == "RBPResidual"
    assert "AP" in related["GMAP"]
    assert "GMAP" in related["AP"]
    assert related["Fallout"] == []  # "Unjudged documents count as not relevant" speaks of no measure


@pytest.mark.parametrize(
    ("typed", "measure_name"),
    [
        ("MAP", "AP"), ("map", "AP"), ("ap", "AP"), ("ndcg", "nDCG"), ("nDCG@10", "nDCG"), ("ndcg_cut_10", "nDCG"),
        ("mrr", "RR"), ("RBP(p=0.8)@10", "RBP"), ("alpha-nDCG@20", "AlphanDCG"), ("precision", "P"),
    ],
)  # fmt: skip
def test_other_names_redirect_to_the_page(client, typed, measure_name):
    answer = client.get(f"/learn/{typed}")
    assert (answer.status_code, answer.headers["location"]) == (307, f"/learn/{measure_name}")
    twin = client.get(f"/api/v1/measures/{typed}")
    assert (twin.status_code, twin.json()["name"]) == (200, measure_name)


@pytest.mark.parametrize("name", ["nDGC", "Prefshare2", "<script>alert(1)</script>", "%00", "a" * 100, "(((("])
def test_errors_on_unknown_names_suggest_similar_ones(client, name):
    for path in ("/learn", "/api/v1/measures"):
        answer = client.get(f"{path}/{name}")
        assert answer.status_code == 404
    assert "<script>alert" not in client.get(f"/learn/{name}").text
    if name == "nDGC":
        assert "nDCG" in client.get("/learn/nDGC").text
        assert "nDCG" in client.get("/api/v1/measures/nDGC").json()["fix"]


def test_names_may_not_be_endless(client):
    assert client.get("/learn/" + "a" * 101).status_code == 422


def test_json_has_the_numbers_of_the_page(client):
    data = client.get("/api/v1/measures/AP").json()
    assert (data["title"], data["use"]) == ("AP, AP@k", REGISTRY["AP"].use)
    assert data["example"]["score"] == pytest.approx(0.5666666666666667)
    assert data["definition"][0]["kind"] == "formula"
    assert [row["name"] for row in data["settings"]] == ["cutoff", "rel", "norm", "judged_only", "undefined"]


# the catalog


def named(**parameters) -> list[str]:
    return list(catalog.catalog(catalog.CatalogQuery(**parameters)).table().column("name").values)


@pytest.mark.parametrize(
    ("q", "best"),
    [
        ("ndcg_cut_10", "nDCG"), ("mrr@10", "RR"), ("recip_rank", "RR"), ("R_cap@10", "RelP"),
        ("hit_rate@5", "Success"),
        ("get_ndcg(depth=10)", "nDCG"), ("retrieval_normalized_dcg", "nDCG"), ("err@20", "ERR"), ("MAP", "AP"),
        ("NDCG@10", "nDCG"), ("top_k_accuracy@5", "Success"), ("11pt_avg", "AP11"), ("rbp.95", "RBP"), ("P_10", "P"),
    ],
)  # fmt: skip
def test_search_by_names_in_other_tools(q, best):
    assert catalog.catalog(catalog.CatalogQuery(q=q)).about["best"] == best
    assert best in named(q=q)


def test_search_by_words_of_descriptions():
    assert named(q="persistence") == ["RBP", "NERR10"]
    assert "RR" in named(q="first relevant")
    assert "RR" not in named(q="elevant first")  # words begin where words begin
    assert named(q="xyzzy") == []


def test_filters_go_by_the_declared_properties():
    entries = [REGISTRY[name] for name in NAMES]
    assert set(named(grades="graded")) & set(NAMES) == {entry.name for entry in entries if entry.properties.graded}
    assert set(named(order="set")) & set(NAMES) == {
        entry.name for entry in entries if not entry.properties.needs_ranking
    }
    tail = {entry.name for entry in entries if entry.properties.ignores_unjudged_tail}
    assert set(named(unjudged="ignored")) & set(NAMES) == tail
    assert set(named(grades="graded", order="set")) & set(NAMES) == {"IdealDCG"}
    assert set(named(needs="more")) >= {"TBG", "AlphanDCG", "APjg", "PrefShare"}


def test_measures_are_listed_once_and_families_are_described():
    listed_names = [name for name in named() if name in NAMES]
    assert sorted(listed_names) == NAMES
    ours = {REGISTRY[name].family for name in NAMES}
    assert ours == set(FAMILIES)
    assert list(families())[: len(ours)] == list(FAMILIES)


def test_properties_of_common_measures_match_textbooks():
    table = catalog.common_measures_table()
    expected = {
        row["measure"].removesuffix("@k"): (row["judgments"], row["order"], row["normalized"])
        for row in table.records()
    }
    assert {name for name, (judgments, _, _) in expected.items() if judgments == "graded"} == {
        "CG",
        "DCG",
        "nDCG",
        "Q",
        "ERR",
    }
    assert {name for name, (_, order, _) in expected.items() if not order} == {
        "P", "R", "F", "Success", "SetP", "SetR", "CG",
    }  # fmt: skip
    assert {name for name, (_, _, normalized) in expected.items() if not normalized} == {
        "P", "R", "F", "CG", "DCG", "ERR", "RBP",
    }  # fmt: skip
    assert list(table.column("use").values) == [REGISTRY[name].use for name in expected]


def test_page_of_search_results(client):
    page_text = client.get("/learn?q=mrr%4010")
    assert 'mrr@10</b> is called <a href="/learn/RR">RR</a> here' in page_text.text
    assert "Start here" not in page_text.text
    assert "No matches" in client.get("/learn?q=xyzzy").text
    hostile = client.get('/learn?q="><script>alert(1)</script>').text
    assert "<script>alert" not in hostile
    assert client.get("/learn?grades=many").status_code == 422
    assert client.get("/learn?q=" + "a" * 201).status_code == 422
    twin = client.get("/api/v1/measures?q=mrr%4010").json()
    assert (twin["best"], twin["n_matches"]) == ("RR", 1)


# lessons


@pytest.mark.parametrize("key", list(LESSONS))
def test_every_lesson_has_a_page_and_its_numbers(client, key):
    answer = client.get(f"/learn/lessons/{key}")
    assert answer.status_code == 200
    lesson, page_text = lesson_page(key), text_of(answer.text)
    example = lesson.about["example"]
    assert f"{example.measure} {example.score:.4f}" in page_text
    rows = lesson.table().records()
    for row in rows:
        numbers = f"{row['before']:.3f} {row['after']:.3f}"
        assert f"{row['measure']} {numbers} {'yes' if row['changed'] else 'no'}" in page_text
    assert any(row["changed"] for row in rows)
    assert any(not row["changed"] for row in rows) or key in {"ties", "unjudged"}
    assert "{" not in text_of("".join(re.findall(r"<p.*?</p>", answer.text, re.DOTALL)))
    assert client.get(f"/api/v1/lessons/{key}").json()["title"] == lesson.about["title"]


def test_numbers_are_not_typed():
    """A number with decimals in a lesson's text comes from a computation, or is a parameter of a name."""
    for lesson in LESSONS.values():
        of_errors = [error[name] for error in lesson.errors for name in ("wrong", "right")]
        for text in (*lesson.text, lesson.answer, *of_errors):
            bare = re.sub(r"`[^`]*`|\{[^}]*\}|p = 0\.\d+", "", text)
            assert not re.search(r"\d\.\d", bare), bare
            assert "{" not in lesson.filled(text)
        cells = [cell for error in lesson.errors for row in error.get("rows", ()) for cell in row[1:]]
        assert not [cell for cell in cells if re.fullmatch(r"[\d.]+", cell)]


def decimals(text: str) -> list[float]:
    """Return the numbers with decimals of a text that are not in names of measures."""
    return [float(number) for number in re.findall(r"(?<![\d.=])\d+\.\d+", text)]


def test_numbers_of_known_errors_are_correct():
    """Those of common teaching material, by hand."""
    errors = {
        key: [(decimals(error["wrong"]), decimals(error["right"])) for error in lesson_page(key).about["errors"]]
        for key in LESSONS
    }
    assert errors["relevant-or-graded"] == [([], [0.7366])]  # 1.8869 / 2.5616: gains at ranks 1, 3, 5; ideal 1 to 4
    assert errors["precision-and-recall"] == [([], [0.75])]
    assert errors["rank-matters"] == [
        ([0.756], [0.567]),  # (1 + 2/3 + 3/5) / 4
        ([0.40, 0.43], []),  # 2/5, 3/7
        ([0.22], [0.225, 0.22, 0.23]),
    ]
    assert errors["gain-and-discount"] == [
        ([1.00], [0.969, 10.484, 10.823]),
        ([], []),
        ([], [9.61, 8.32, 0.88, 0.92]),
        ([], []),
        ([], [0.8, 0.8, 0.29, 0.13]),  # 1 / log2(11), 0.8^9
        ([0.387, 0.409], [0.387, 0.409, 0.481, 0.631]),
    ]


def log_sum(gains: list[float], log: Callable[[float], float]) -> float:
    return sum(gain / log(rank + 1) for rank, gain in enumerate(gains, 1))


def original_sum(gains: list[float], base: float) -> float:
    return sum(gain / max(1, math.log(rank, base)) for rank, gain in enumerate(gains, 1))


BASES = [("2", 2, math.log2), ("e", math.e, math.log), ("10", 10, math.log10)]
GIVEN, IDEAL = [3, 2, 0, 1, 2], [3, 2, 2, 1, 0]
RANK_2 = 1 / math.log2(3)
TABLES_OF_ERRORS = {
    ("rank-matters", "precisions"): [
        ["P@1", None, 1], ["P@4", None, 2 / 4], ["P@5", 2 / 5, 3 / 5], ["P@7", 3 / 7, 4 / 7],
        ["AP@8", None, (1 + 2 / 4 + 3 / 5 + 4 / 7) / 4],
    ],
    ("rank-matters", "rounding"): [["P@5", 1 / 5], ["P@8", 2 / 8], ["AP@8", (1 / 5 + 2 / 8) / 2]],
    ("gain-and-discount", "bases"): [
        [name, log_sum(GIVEN, log), log_sum(GIVEN, math.log2) / log_sum(IDEAL, math.log2),
         original_sum(GIVEN, base) / original_sum(IDEAL, base)]
        for name, base, log in BASES
    ],
    ("gain-and-discount", "weights"): [[str(r), 1 / math.log2(1 + r), 0.8 ** (r - 1)] for r in range(1, 11)],
    ("gain-and-discount", "ideals"): [
        ["0, 4; not returned: 4", 4 * RANK_2 / (4 + 4 * RANK_2), 15 * RANK_2 / (15 + 15 * RANK_2)],
        ["0, 4", RANK_2, RANK_2],
        ["0, 7, 2, 4, 6, 1, 4, 3", 7 * RANK_2 / (7 + 6 * RANK_2), 127 * RANK_2 / (127 + 63 * RANK_2)],
        ["0, 7", RANK_2, RANK_2],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("key", "name"), list(TABLES_OF_ERRORS))
def test_tables_of_errors_match_a_calculation_by_hand(client, key, name):
    rows = [list(row.values()) for row in client.get(f"/api/v1/lessons/{key}").json()[name]]
    expected = TABLES_OF_ERRORS[key, name]
    assert [row[0] for row in rows] == [row[0] for row in expected]
    for row, expected_row in zip(rows, expected, strict=True):
        assert row[1:] == [None if n is None else pytest.approx(n, rel=1e-12) for n in expected_row[1:]]
    page_text = text_of(client.get(f"/learn/lessons/{key}").text)
    for label, *numbers in expected:
        assert " ".join([label, *("–" if n is None else f"{n:.3f}" for n in numbers)]) in page_text


def test_the_base_of_the_logarithm_cancels_in_ndcg_except_with_the_original_discount():
    table = lesson_page("gain-and-discount").table("bases")
    dcg, ndcg, original = (table.column(name).values for name in ("dcg", "ndcg", "original"))
    assert [value / dcg[0] for value in dcg] == pytest.approx([1, 1 / math.log(2), math.log2(10)])
    assert ndcg == pytest.approx([ndcg[0]] * 3, rel=1e-12)
    assert len({round(value, 3) for value in original}) == 3
    assert original[2] == 1  # no rank up to 10 is discounted


def test_lists_of_errors_are_shown_with_the_document_that_was_not_returned():
    shown = {
        error["table"]: ([row["grade"] for row in error["rows"]], list(error["missing_grades"]))
        for key in LESSONS
        for error in lesson_page(key).about["errors"]
        if "rows" in error
    }
    assert shown == {
        "precisions": (list("10011010"), []),
        "rounding": (list("00001001"), []),
        "bases": (list("32012"), []),
        "ideals": (list("04"), ["4"]),
    }


def test_texts_of_errors_are_short():
    for lesson in LESSONS.values():
        for error in lesson.errors:
            assert len(lesson.filled(f"{error['wrong']} {error['right']}").split()) <= 120


def test_surprising_claims_are_true():
    rows = lesson_page("rank-matters").table().records()
    moved = {row["measure"]: (round(row["before"], 4), round(row["after"], 4)) for row in rows}
    assert moved["AP"] == (0.5667, 0.4417)  # (1/2 + 2/3 + 3/5) / 4
    assert moved["P@5"] == (0.6, 0.6)
    assert moved["RR"] == (1.0, 0.5)
    original = {row["measure"]: row["changed"] for row in lesson_page("gain-and-discount").table().records()}
    assert original["DCG(discount=original)@5"] is False
    assert original["DCG@5"] is True
    readers = {row["measure"]: row["after"] - row["before"] for row in lesson_page("user-models").table().records()}
    assert readers["RBP(p=0.5)"] < 0 < readers["RBP(p=0.95)"]
    assert readers["P@10"] == 0
    assert "0.761, 0.206, and 0.182" in lesson_page("means-and-luck").about["text"][0]
    assert "is 0.383" in lesson_page("means-and-luck").about["text"][0]
    assert "0.00, 0.25, 0.25, 0.50, 0.75, 0.75, 1.00, 1.00" in lesson_page("precision-and-recall").about["text"][0]
    assert "precision of 0.9 and a recall of 0.1, F1 is 0.18" in lesson_page("precision-and-recall").about["text"][1]
    assert decimals(lesson_page("ties").about["text"][1]) == [0.333, 0.611]  # 1/3, (1 + 1/2 + 1/3) / 3


@pytest.mark.parametrize("key", list(LESSONS))
def test_every_lesson_ends_in_the_evaluator_with_its_list(client, key):
    """And leads to the change: at each address the measures of the lesson have the lesson's values."""
    page = lesson_page(key)
    page_text = unescape(client.get(f"/learn/lessons/{key}").text)
    for address, score in ((page.about["evaluator"], "before"), (page.about["changed"]["evaluator"], "after")):
        assert f'href="{address}"' in page_text
        data = client.get(f"/api/v1{address}").json()
        values = {row["name"]: row["value"] for row in data["measures"]}
        scored_rows = [row for row in page.table().records() if row["measure"] in values]
        assert scored_rows
        assert all(row[score] == pytest.approx(values[row["measure"]]) for row in scored_rows)


def test_lessons_link_to_the_next_one(client):
    key, visited = next(iter(LESSONS)), []
    while True:
        visited.append(key)
        onward = re.search(r'rel="next" href="/learn/lessons/([a-z-]+)"', client.get(f"/learn/lessons/{key}").text)
        if onward is None:
            break
        key = onward[1]
    assert visited == list(LESSONS)
    assert [lesson["key"] for lesson in client.get("/api/v1/lessons").json()] == visited
    assert client.get("/learn/lessons/nothing").status_code == 404
    assert client.get("/api/v1/lessons/nothing").status_code == 404
    assert client.get("/learn/lessons").headers["location"] == "/learn#start"


def test_all_links_work(client):
    paths = [
        "/learn",
        "/choose",
        *(f"/learn/lessons/{lesson.key}" for lesson in LESSONS.values()),
        *(f"/learn/{name}" for name in NAMES),
    ]
    links = {
        link for path in paths for link in re.findall(r'href="(/learn[^"#?]*|/choose[^"#?]*)', client.get(path).text)
    }
    assert len(links) > len(NAMES) + len(LESSONS)
    assert [link for link in links if client.get(link).status_code != 200] == []


# the chooser


@pytest.mark.parametrize("task", ["", *TASKS])
def test_advice_on_open_data_equals_advise(client, sample, task):
    expected = advise(sample.qrels, [one.run for one in sample.lists.values()], task or None)
    data = client.get("/api/v1/advice", params={"task": task}).json()
    assert data["entries"] == expected.to_dict()["entries"]
    assert data["measures"] == [str(one) for one in expected.measures]
    assert (data["task"]["name"], data["task"]["is_explicit"]) == (expected.task.name, bool(task))
    page_text = text_of(client.get("/choose", params={"task": task}).text)
    for one in expected.recommendations:
        assert " ".join(one.reason.split()) in page_text
    assert {one["name"] for one in data["tasks"] if one["fits"]} == {
        expected.task.name,
        *(one.name for one in expected.other_tasks),
    }


def test_advice_links_to_the_leaderboard_with_its_measures(client):
    data = client.get("/api/v1/advice?task=rag").json()
    assert data["leaderboard"] == ",".join(data["measures"])
    assert f'href="/leaderboard?measures={quote(data["leaderboard"], safe="")}"' in client.get("/choose?task=rag").text


ANSWERS = [
    {},
    {"relevant": "one", "judged": "positives", "length": "1000"},
    {"grades": "four", "relevant": "many", "judged": "deep", "length": "1000"},
    {"grades": "fine", "relevant": "hundreds", "judged": "holes", "length": "10"},
    {"grades": "three", "relevant": "one", "judged": "top", "task": "graded"},
    {"task": "set"},
    {"task": "diversity"},
    {"task": "assessors"},
    {"task": "preferences"},
]


@pytest.mark.parametrize("answers", ANSWERS)
def test_described_data_are_as_they_are_described(answers):
    query = AdviceQuery(about="described", **answers)
    qrels, run = synthesize(query)
    profile = advise(qrels, run, query.task or None).profile
    relevant = {"one": (1, 1), "few": (2, 9), "many": (10, 99), "hundreds": (101, 10**6)}[query.relevant]
    assert relevant[0] <= profile.relevant.least <= profile.relevant.most <= relevant[1]
    assert profile.without_relevant == 0
    assert (len(profile.positive) > 1) == (query.grades != "binary")
    assert profile.max_list_length == int(query.length)
    assert (profile.not_relevant == 0) == (query.judged == "positives")
    if query.task != "set":
        first, deep = profile.runs[0].judged_10, profile.runs[0].judged_100
        assert (first == 1) == (query.judged in {"deep", "top"})
        assert query.judged != "deep" or deep == 1
        assert not (query.judged == "top" and query.length == "1000") or deep < 0.5
    assert bool(profile.set_runs) == (query.task == "set")
    labels = {"diversity": "subtopics", "assessors": "assessors", "preferences": "preferences"}
    assert profile.labels == labels.get(query.task, "")


@pytest.mark.parametrize("answers", ANSWERS)
def test_advice_on_described_data_uses_only_described_facts(client, answers):
    query = AdviceQuery(about="described", **answers)
    qrels, run = synthesize(query)
    expected = advise(qrels, run, query.task or None)
    excluded = {rule.id for rule in RULES if not {name for one in rule.when for name in one.facts} <= DESCRIBED_FACTS}
    applicable = [one for one in expected.recommendations if one.rule not in excluded]
    reasons = {rule.id: (rule.rationale, tuple(one.name for one in rule.when)) for rule in RULES}
    rows = [(*reasons[one.rule], one) for one in applicable]
    assert advise_on_description(query).recommendations == tuple(
        replace(one, evidence="", facts=facts) for _, facts, one in rows
    )
    data = client.get("/api/v1/advice", params=query.model_dump()).json()
    assert data["measures"] == [
        str(one) for one in dict.fromkeys(m for e in applicable if e.kind in {"recommend", "pair"} for m in e.measures)
    ]
    assert [one["reason"] for one in data["entries"]] == [reasons[one.rule][0] for one in applicable]
    assert "profile" not in data
    assert data["data_facts"] == []
    assert data["leaderboard"] == ""


def test_hand_calculation_with_one_relevant_document_per_query(client):
    data = client.get("/api/v1/advice?about=described&relevant=one&judged=positives&length=1000").json()
    assert data["task"]["name"] == "single-answer"
    assert data["measures"] == ["RR@10", "Success@10", "R@100", "R@1000", "Judged@10"]
    assert "nDCG@10" in data["avoid"]


def test_every_question_shows_its_answers(client):
    page_text = client.get("/choose?about=described&grades=three").text
    for name, answers in IN_WORDS.items():
        field = AdviceQuery.model_fields[name]
        assert field.description in page_text
        assert tuple(answers) == get_args(field.annotation)
        assert all(answer in page_text for answer in answers.values())
    assert 'value="three" selected' in page_text
    assert client.get("/choose?task=nothing").status_code == 422
    assert client.get("/api/v1/advice?grades=five").status_code == 422


def test_without_a_run_advice_is_on_the_judgments_alone():
    from fastapi.testclient import TestClient

    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    client = TestClient(make_app(open_workspace(qrels, [])))
    data = client.get("/api/v1/advice").json()
    assert data["measures"] == [str(measure) for measure in advise(qrels).measures]
    assert data["leaderboard"] == ""
    assert client.get("/choose").status_code == 200
    assert "leaderboard?measures" not in client.get("/learn/AP").text
