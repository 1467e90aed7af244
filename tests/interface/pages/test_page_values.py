"""Random numbers of pages equal those of the Python functions, and a pair of runs has one p-value on all pages."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

import judged
from judged.comparison.slicing import slice_topics
from judged.data import sample as shipped
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Values: TypeAlias = Iterator[tuple[str | float, float]]  # of a page, formatted or exact, and of Python

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::judged.JudgedWarning")]

VALUES = 200
SEED = 54
RUNS = tuple(run.name for run in shipped.runs())
MEASURES = ("nDCG@10", "AP", "RR", "P@5", "R@100", "Bpref")
CLASSES = ("", "how-to", "known-item")  # empty: all topics


@cache
def qrels_of(kind: str) -> Any:
    """Return the judgments of the topics of a class."""
    rows = shipped.topics().table.to_pylist() if kind else ()
    qrels = shipped.qrels()
    return qrels.over([row["query_id"] for row in rows if row["query_class"] == kind]) if kind else qrels


@cache
def scores_of(measure: str, kind: str) -> Any:
    return judged.evaluate(qrels_of(kind), shipped.runs(), measure)


@cache
def compared(measure: str, baseline: str, kind: str) -> Any:
    return judged.compare(qrels_of(kind), shipped.runs(), measure, baseline=baseline)


@cache
def sliced(measure: str, run: str) -> Any:
    """Return the scores of a run by class of topics."""
    runs = [other for other in shipped.runs() if other.name == run]
    return judged.evaluate(qrels_of(""), runs, measure).by_slice(slice_topics(shipped.topics(), "query_class"))


@cache
def slices_compared(measure: str, first: str, second: str) -> Any:
    scores = judged.evaluate(qrels_of(""), [run for run in shipped.runs() if run.name in {first, second}], measure)
    return scores.compare_slices(slice_topics(shipped.topics(), "query_class"), first)


class Pages:
    """The workbench, with the numbers that its pages show."""

    def __init__(self, workspace: Any) -> None:
        self.client = TestClient(make_app(workspace), base_url="http://127.0.0.1")

    def html(self, path: str, **query: Any) -> str:
        answer = self.client.get(path, params={name: value for name, value in query.items() if value})
        assert answer.status_code == 200, answer.text[:2000]
        return answer.text

    def json(self, path: str, **query: Any) -> Any:
        answer = self.client.get(f"/api/v1{path}", params={name: value for name, value in query.items() if value})
        assert answer.status_code == 200, answer.text[:2000]
        return answer.json()

    def headline(self, path: str, **query: Any) -> tuple[str, list[str]]:
        """Return the number of a headline, and the limits of its interval."""
        page = self.html(path, **query)
        limits = re.findall(r"CI ([\d.−+e-]+) to ([\d.−+e-]+)", page.split('class="headline"', 1)[1])
        return text_of(re.findall(r'class="figure"><b>(.*?)</b>', page)[0]), list(limits[0]) if limits else []

    def rows(self, name: str, path: str, **query: Any) -> dict[str, dict[str, str]]:
        """Return the cells of a table by the name of the row and the title of the column."""
        table = self.html(path, **query).split(f'data-table="{name}"', 1)[1].split("</table>", 1)[0]
        titles = [text_of(title).strip("↓↑ ↕") for title in re.findall(r"<th scope=\"col\".*?>(.*?)</th>", table)]
        rows = [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>", 1)[1], re.DOTALL)
        ]
        # the first name of a cell; menus and links follow it
        names = [(re.findall(r"<bdi[^>]*>(.*?)</bdi>", row[0]) or [text_of(row[0])])[0] for row in rows]
        return {
            unescape(name): dict(zip(titles, map(text_of, row), strict=True))
            for name, row in zip(names, rows, strict=True)
        }


def text_of(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", markup)).strip()


def where_of(kind: str) -> str:
    return kind and f"query_class == '{kind}'"


@pytest.fixture(scope="module")
def pages(sample: Any) -> Pages:
    return Pages(sample)


def leaderboard(pages: Pages, random: Random) -> Values:
    measure, kind, baseline, run = random.choice(MEASURES), random.choice(CLASSES), *random.sample(RUNS, 2)
    row = pages.rows("board", "/leaderboard", measures=measure, where=where_of(kind), baseline=baseline)[run]
    result = compared(measure, baseline, kind)
    yield row[measure].rstrip("†‡"), scores_of(measure, kind).aggregate()[run][measure]
    yield row["adjusted p"], result.pair(baseline, run).adjusted


def home(pages: Pages, random: Random) -> Values:
    run = random.choice(RUNS)
    yield pages.rows("runs", "/")[run]["nDCG@10"], scores_of("nDCG@10", "").aggregate()[run]["nDCG@10"]


def compare(pages: Pages, random: Random) -> Values:
    measure, kind, first, second = random.choice(MEASURES), random.choice(CLASSES), *random.sample(RUNS, 2)
    query = {"first": first, "second": second, "measure": measure, "where": where_of(kind)}
    pair, (value, limits) = compared(measure, first, kind).pair(first, second), pages.headline("/compare", **query)
    yield value, pair.shown_difference
    yield from zip(limits, pair.shown_interval, strict=True)
    yield pages.rows("by_difference", "/compare", **query)[measure]["p"], pair.adjusted


def change(pages: Pages, random: Random) -> Values:
    first, second = random.sample(RUNS, 2)
    pair = compared("nDCG@10", first, "").pair(first, second)
    yield pages.headline("/change", first=first, second=second)[0], pair.shown_difference


def topics(pages: Pages, random: Random) -> Values:
    measure, kind, run = random.choice(MEASURES), random.choice(CLASSES), random.choice(RUNS)
    scores = scores_of(measure, kind).per_topic()
    topic = random.choice(qrels_of(kind).topics)
    row = pages.rows("topics", "/topics", measure=measure, where=where_of(kind), runs=run)[topic]
    yield row[run], scores[run][measure][topic]


def topic(pages: Pages, random: Random) -> Values:
    measure, topic, first, second = random.choice(MEASURES), random.choice(qrels_of("").topics), *random.sample(RUNS, 2)
    scores = scores_of(measure, "").per_topic()
    value, _ = pages.headline("/topic", topic=topic, measure=measure, first=first, second=second)
    yield value, scores[second][measure][topic] - scores[first][measure][topic]


def slices(pages: Pages, random: Random) -> Values:
    measure, kind, run = random.choice(MEASURES), random.choice(CLASSES[1:]), random.choice(RUNS)
    rows = pages.rows(f"{run} by slice", "/slices", by="query_class", measures=measure, run=run)
    yield rows[f"query_class={kind}"][measure], scores_of(measure, kind).aggregate()[run][measure]
    yield (
        rows[f"query_class={kind}"]["p"],
        next(
            row.adjusted
            for row in sliced(measure, run).displayed_estimates(run, measure)
            if row.part == f"query_class={kind}"
        ),
    )


def slice_differences(pages: Pages, random: Random) -> Values:
    measure, kind, first, second = random.choice(MEASURES), random.choice(CLASSES[1:]), *random.sample(RUNS, 2)
    query = {"by": "query_class", "measures": measure, "run": second, "baseline": first}
    row = pages.rows(f"{measure} against {first}", "/slices", **query)[f"query_class={kind}"]
    expected = slices_compared(measure, first, second).row(f"query_class={kind}", second=second)
    yield row[f"{second} - {first}"], expected.difference
    yield row["p"], expected.pair.adjusted


def matrix(pages: Pages, random: Random) -> Values:
    (x, y), run = random.sample(MEASURES, 2), random.choice(RUNS)
    point = pages.rows("points", "/matrix", x=x, y=y, run=run)["all topics"]
    for measure in (x, y):
        yield point[measure], scores_of(measure, "").aggregate()[run][measure]


def evaluator(pages: Pages, random: Random) -> Values:
    grades = [random.randrange(4) for _ in range(random.randrange(3, 9))] + [1]
    shown = pages.json("/evaluator", list=",".join(map(str, grades)), cutoff=5)["measures"]
    values = {row["name"]: row["value"] for row in shown}
    documents = {f"d{i}": grade for i, grade in enumerate(grades)}
    expected = judged.evaluate({"q": documents}, {"list": {"q": list(documents)}}, ["nDCG@5", "AP", "RR", "P@5"])
    for measure, value in expected.aggregate()["list"].items():
        yield values[measure], value


def traces(pages: Pages, random: Random) -> Values:
    stage = random.choice(("bm25", "tfidf_char", "rrf"))
    yield pages.rows("stages", "/traces")[stage]["nDCG@10"], scores_of("nDCG@10", "").aggregate()[stage]["nDCG@10"]


PAGES = (
    leaderboard, home, compare, change, topics, topic, slices, slice_differences, matrix, evaluator, traces
)  # fmt: skip


def is_shown(shown: str | float, value: float) -> bool:
    """Return whether a page shows a value: exactly, or correct in all digits shown."""
    if not isinstance(shown, str):
        return shown == pytest.approx(value, abs=1e-12)
    text = shown.replace("−", "-").replace(",", "")
    if text.startswith("<"):
        return value < float(text[1:])
    digits, _, exponent = text.partition("e")  # such as -8.3e-05
    return abs(float(text) - value) <= 0.500001 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def test_random_values_equal_those_of_python(pages: Pages) -> None:
    random, checked = Random(SEED), 0  # noqa: S311 - no secret
    while checked < VALUES:
        page = random.choice(PAGES)
        for shown, value in page(pages, random):
            assert is_shown(shown, value), (page.__name__, shown, value)
            checked += 1


PAIRS = (("rrf", "bm25_nostem"), ("bm25", "tfidf"), ("bm25_title", "tfidf_char"))


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("where", ["", "length > 5"])
def test_pair_has_one_p_value_on_all_pages(pages: Pages, first: str, second: str, where: str) -> None:
    pair, measures = {"baseline": first, "run": second, "where": where}, ("nDCG@10", "R@100")
    board = pages.json("/leaderboard", measures=",".join(measures), **pair)["board"]
    row = next(row for row in board if row["run"] == second)
    changes = pages.json("/matrix", x="R@100", y="nDCG@10", **pair)["changes"]
    all_runs = pages.json("/slices", by="query_class", measures=",".join(measures), baseline=first, where=where)
    one_run = pages.json("/slices", by="query_class", measures=",".join(measures), **pair)
    for measure in measures:
        p = row[f"{measure} adjusted p"]
        compared = pages.json("/compare", first=first, second=second, measure=measure, where=where, by="query_class")
        parts = [*compared["pairs"], *compared["slices"]["results"]]
        for answer in (all_runs, one_run):
            parts += [row for row in answer["comparison"]["results"] if row["second"] == second]
        values = {
            part["adjusted"]
            for part in parts
            if part["measure"] == measure and part.get("slice", "all topics") == "all topics"
        }
        values |= {
            change["adjusted"] for change in changes if (change["slice"], change["part"]) == ("all topics", measure)
        }
        assert values == {p}, measure


def test_change_has_the_p_value_of_the_leaderboard(pages: Pages) -> None:
    first, second = "rrf", "bm25_nostem"
    rows = pages.rows("slices", "/change", first=first, second=second)
    board = pages.rows("board", "/leaderboard", baseline=first)
    assert is_shown(rows["all topics"]["adjusted p"], compared("nDCG@10", first, "").pair(first, second).adjusted)
    assert float(rows["all topics"]["adjusted p"]) == pytest.approx(float(board[second]["adjusted p"]), abs=1e-3)
