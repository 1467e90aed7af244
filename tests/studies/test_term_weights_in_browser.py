"""Four people move the weights of query terms in a browser, one of them without scripts."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from browsing import served
from judged.studies import first_design, read_design
from judged.studies.assignment import assignments
from judged.studies.pages import Study, make_study_app
from judged.studies.records import StudyLists, weights_by_page
from judged.studies.storage import StudyStore

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from judged.pipelines.experiments.engines.databases import SqliteFts5

QUERIES = ("most common elements of a list", "sort a list of numbers", "read lines of a file", "split a path")
Ranking = tuple[dict[str, float], list[str]]


def ranking(page: Any) -> Ranking:
    """Return the weights of the sliders and the documents that the page shows."""
    terms = page.locator("#weights label").all_inner_texts()
    weights = [float(slider.input_value()) for slider in page.locator("#weights input[type=range]").all()]
    links = [link.get_attribute("href") for link in page.locator(".results h2 a").all()]
    return dict(zip(terms, weights, strict=True)), [parse_qs(urlsplit(link).query)["id"][0] for link in links]


def change_weights(page: Any, index: int, *, scripts: bool) -> list[Ranking]:
    """Move two sliders by the keyboard; return the ranking after each change."""
    rankings = [ranking(page)]
    # The first participant presses each key at once, so that requests queue up.
    for term, keys in ((0, ["ArrowRight"] * (2 + index)), (1, ["ArrowLeft"] * 2)):
        slider = page.locator("#weights input[type=range]").nth(term)
        for key in keys:
            slider.press(key)
            if not scripts:
                page.get_by_role("button", name="Rank again").click()
            page.wait_for_url(re.compile(rf"(w=[\d.]+&?){{{len(rankings[0][0])}}}"))
            expected = "&".join(f"w={weight:g}" for weight in ranking(page)[0].values())
            page.wait_for_url(lambda url, end=expected: url.replace(".0&", "&").removesuffix(".0").endswith(end))
            rankings.append(ranking(page))
            assert page.locator("#weights output").nth(term).inner_text() == f"{slider.input_value()}"
    return rankings


def take_part(page: Any, index: int, *, scripts: bool) -> dict[int, list[Ranking]]:
    """Do all tasks; return the rankings with weights by position."""
    seen: dict[int, list[Ranking]] = {}
    while "thanks" not in page.url:
        if position := re.search(r"/search-(\d+)", page.url):
            page.fill("#q", QUERIES[index])
            page.get_by_role("button", name="Search", exact=True).click()
            page.locator(".results").wait_for()
            if page.locator("#weights").count():
                seen[int(position[1])] = change_weights(page, index, scripts=scripts)
            page.locator(".save-form button").first.click()
            page.locator(".is-saved").wait_for()
            if int(position[1]) in seen:
                assert ranking(page) == seen[int(position[1])][-1]
            page.get_by_role("button", name="I am done").click()
        else:
            for choices in page.locator("fieldset").all():
                choices.locator("input").first.check()
            page.locator("main form button").click()
        page.wait_for_load_state()
    return seen


@contextmanager
def running(folder: Path, participants: dict[str, str]) -> Generator[tuple[Study, str]]:
    """Run a study of two tasks, one with term weights; yield it with its address."""
    text = re.sub(r"use = .*", 'use = ["t01", "t02"]', first_design(term_weights=True))
    (folder / "study.toml").write_text(re.sub(r"practice = .*", "", text))
    design, store = read_design(folder / "study.toml"), StudyStore.open(folder / "store.db", "design", new=True)
    store.enroll(assignments(design, participants).to_pylist())
    study = Study(design, store, StudyLists.of(design))
    with served(make_study_app(study)) as address:
        yield study, address
    store.close()


def test_four_people_weight_terms(browser: Any, tmp_path: Path) -> None:
    groups = {f"p{i}": ("novice", "expert")[i % 2] for i in range(4)}
    seen: dict[tuple[str, int], list[Ranking]] = {}
    with running(tmp_path, groups) as (study, address):
        for i, person in enumerate(groups):
            page = browser.new_context(java_script_enabled=i != 3).new_page()
            page.goto(f"{address}/s/{study.store.token(person)}")
            seen |= {(person, position): rows for position, rows in take_part(page, i, scripts=i != 3).items()}
            page.context.close()
        records, index = study.store.records(), study.lists.systems["bm25"].text_index
    logged: dict[tuple[str, int], list[Ranking]] = {}
    weights = weights_by_page(records["weights"].to_pylist())
    for row in records["events"].to_pylist():
        key = row["participant"], row["position"]
        if row["action"] == "query" and (page_weights := weights.get((*key, row["page"]))):
            logged.setdefault(key, []).append((page_weights, row["shown"]))
    assert [len(rankings) for rankings in seen.values()] == [5, 6, 7, 8]  # the first one, and one for each change
    assert logged == seen
    assert records["trials"]["ended"].null_count == 0
    assert index is not None
    for rankings in logged.values():
        assert [shown for _, shown in rankings] == [expected_ranking(index, weights) for weights, _ in rankings]
        assert len({tuple(shown) for _, shown in rankings}) > 1


def expected_ranking(index: SqliteFts5, weights: dict[str, float]) -> list[str]:
    """Return the first ten documents by the weighted sum of the scores for single terms."""
    scores: dict[str, float] = {}
    for term, weight in weights.items():
        for doc, score in index.search(term, 10_000) if weight else ():
            scores[doc] = scores.get(doc, 0.0) + weight * score
    return sorted(scores, key=lambda doc: (-scores[doc], doc))[:10]


def test_sliders_fit_and_are_accessible(tab: Callable[..., Any], tmp_path: Path) -> None:
    with running(tmp_path, {"p1": "novice"}) as (study, address):
        trials = study.store.trials("p1")
        position = next(trial["position"] for trial in trials if trial["variant"] == "weights")
        before = ("task-1", "search-1", "questions-1-satisfaction", "task-2")[: 3 * position - 2]
        for step in ("consent", "instruction", *before):
            study.store.complete_step("p1", step)
        view = tab(f"{address}/s/{study.store.token('p1')}", width=360)
        view.page.goto(f"{view.page.url}?q=most+common+elements+of+a+list")
        assert view.page.locator("#weights input[type=range]").count() == 6
        view.accessible()
        view.fits()
        view.clean()
