"""What a report says: its numbers are those of evaluate and compare, and it names what it left out."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from judged import InputError, MeasureError, compare, evaluate
from judged.results import Chart, Code, RankedLists, Sentences, Table
from judged.scoring.default_measures import REPORTED_MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.reports import Report
    from judged.results import Section

ALL = ["summary", "leaderboard", "topics", "slices", "matrix", "stages", "lowest", "lists", "cutoffs", "method"]


def names(report: Report) -> list[str]:
    return [section.name for section in report.sections]


def section(report: Report, name: str) -> Section:
    found = report.section(name)
    assert found is not None
    return found


def notes(report: Report, title: str) -> tuple[str, ...]:
    parts = section(report, "method").blocks
    return next((part.texts for part in parts if isinstance(part, Sentences) and part.title == title), ())


def test_sections_stand_in_order(made: Report) -> None:
    assert names(made) == ALL
    assert len({chart.name for chart in made.charts().values()}) == len(made.charts()) == 7
    assert section(made, "summary").sentences == made.sentences
    assert made.section("nothing") is None


def test_the_leaderboard_is_that_of_compare(made: Report, given: dict[str, Any]) -> None:
    found = compare(given["qrels"], given["runs"], REPORTED_MEASURES, baseline="old")
    assert made.table("board").grid().rows == found.leaderboard().grid().rows
    assert made.comparison is not None
    assert made.comparison.to_dict() == found.to_dict()
    part = next(part for part in section(made, "leaderboard").blocks if isinstance(part, Table))
    assert part.note == found.caption
    assert section(made, "leaderboard").sentences == tuple(
        found.pair("old", "<i>third</i>", measure).sentence for measure in REPORTED_MEASURES
    )
    scores = evaluate(given["qrels"], given["runs"], REPORTED_MEASURES)
    assert np.array_equal(made.scores.values, scores.values)


def test_the_summary_has_the_numbers(made: Report, given: dict[str, Any]) -> None:
    estimates = {one.run: one for one in evaluate(given["qrels"], given["runs"], "nDCG@10").estimates()}
    best = max(estimates.values(), key=lambda one: one.value)
    assert best.run == "<i>third</i>"
    assert best.ci is not None
    assert made.sentences[0] == (
        "3 runs were evaluated on 24 topics with 72 judgments (qrels), by nDCG@10, AP and R@100."
    )
    assert made.sentences[1] == (
        f"<i>third</i> has the best nDCG@10, {best.value:.4f} (95% interval {best.ci[0]:.3f} to {best.ci[1]:.3f})."
    )
    pair = compare(given["qrels"], given["runs"], REPORTED_MEASURES, baseline="old").pair("old", "<i>third</i>")
    assert f"a true difference in nDCG@10 of {pair.detectable:.3f} between" in made.sentences[3]


def test_differences_by_topic(made: Report) -> None:
    chart = next(chart for chart in made.charts().values() if chart.name == "topics")
    scores = made.scores.per_topic()
    gains = {q: scores["<i>third</i>"]["nDCG@10"][q] - scores["old"]["nDCG@10"][q] for q in made.scores.query_ids}
    rows = {row[0]: row for row in chart.table.grid().rows}
    assert rows.keys() == gains.keys()
    shown = [float(row[-1]) for row in chart.table.grid().rows]
    assert shown == sorted(shown, reverse=True)
    for q, row in rows.items():
        assert float(row[-1]) == pytest.approx(gains[q], abs=0.00005)
        assert row[2] == f"{scores['old']['nDCG@10'][q]:.4f}"
        assert row[3] == f"{scores['<i>third</i>']['nDCG@10'][q]:.4f}"
    won, lost = sum(gain > 0 for gain in gains.values()), sum(gain < 0 for gain in gains.values())
    assert (
        section(made, "topics")
        .sentences[0]
        .startswith(f"<i>third</i> is better than old on {won} topics, worse on {lost}, and equal on {24 - won - lost}")
    )
    bars = next(layer for layer in made.chart(chart.name).to_dict()["layer"] if layer["mark"]["type"] == "bar")
    values = made.chart(chart.name).to_dict()["datasets"][bars["data"]["name"]]
    assert [row["x"] for row in values] == sorted(gains.values(), reverse=True)


def test_the_lowest_topics(made: Report) -> None:
    table = next(part.grid() for part in section(made, "lowest").blocks if isinstance(part, Table))
    assert table.header == ("topic", "query", "<i>third</i>", "old", "median run", "best run")
    own = made.scores.per_topic()["<i>third</i>"]["nDCG@10"]
    assert [float(row[2]) for row in table.rows] == [
        pytest.approx(value, abs=5e-5) for value in sorted(own.values())[:10]
    ]
    column = made.scores.values[:, 0, made.scores.query_ids.index(table.rows[0][0])]
    assert table.rows[0][4:] == (f"{np.median(column):.4f}", f"{column.max():.4f}")


def test_judged_lists(make: Callable[..., Report], evil: str) -> None:
    report = make(runs={"old": {"q00": ["good", "bad"]}, "new": {"q00": ["x", "bad", "good"]}}, baseline="old",
                  qrels={"q00": {"good": 2, "fair": 1, "bad": 0}}, attributes=None)  # fmt: skip
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    assert part.title.startswith("Loss, topic q00: query q00 </script>")
    old, new = part.rankings
    assert (old.name, new.name) == ("old", "new")
    assert [(one.rank, one.doc_id, one.grade, one.relevant) for one in new.items] == [
        ("1", "x", "", None), ("2", "bad", "0", False), ("3", "good", "2", True),
    ]  # fmt: skip
    assert [one.change.split(",")[0] for one in new.items] == ["new", "same rank", "from 1"]
    assert [one.change for one in old.items] == ["to 3", "same rank"]
    ideal = 2 + 1 / np.log2(3)
    assert new.items[2].change == f"from 1, {(2 / np.log2(4) - 2) / ideal:+.4f}"
    assert new.items[2].text == evil.replace("\u2028", " ")
    assert old.sentence == f"nDCG@10 {2 / ideal:.4f}"


def test_relevant_documents_that_are_not_shown_are_named(make: Callable[..., Report]) -> None:
    far = [f"x{at}" for at in range(14)]
    grades = {"a": 3, "b": 2, "c": 2, "d": 1, "e": 1, "f": 1, "no": 0}
    report = make(qrels={"q00": grades}, runs={"old": {"q00": ["a", "b"]}, "new": {"q00": ["d", *far, "b"]}},
                  baseline="old", attributes=None, texts=None)  # fmt: skip
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    assert part.sentences[1] == (
        "5 relevant documents are not among the first 10 of new: a (grade 3, not returned), b (grade 2, rank 16),"
        " c (grade 2, not returned), e (grade 1, not returned) and 1 other."
    )


def test_without_a_baseline_the_two_best_are_looked_at(make: Callable[..., Report]) -> None:
    report = make()
    order = report.comparison.measures[0].order() if report.comparison else []
    best, second = (report.scores.run_names[at] for at in order[:2])
    assert section(report, "topics").sentences[0].startswith(f"{best} is better than {second} on ")
    assert report.table("board").grid().header[:2] == ("", "run")


def test_the_baseline_may_be_the_best(make: Callable[..., Report]) -> None:
    report = make(baseline="<i>third</i>")
    assert "against <i>third</i>" in next(chart.title for chart in report.charts().values() if chart.name == "topics")


def test_one_run(make: Callable[..., Report], given: dict[str, Any]) -> None:
    report = make(runs={"old": given["runs"]["old"]})
    assert names(report) == [name for name in ALL if name != "topics"]
    assert report.comparison is None
    value = evaluate(given["qrels"], given["runs"]["old"], "nDCG@10").value("nDCG@10")
    assert report.sentences[1].startswith(f"old has nDCG@10 {value:.4f} (95% interval ")
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    assert len(part.rankings) == 1
    assert part.rankings[0].items[0].change == ""


def test_one_run_is_held_against_its_own_means(make: Callable[..., Report], given: dict[str, Any]) -> None:
    said = " ".join(make(runs={"old": given["runs"]["old"]}).sentences)
    assert "topics, old is below its own mean in nDCG@10, in R@100, or in both: on" in said
    assert "of old" not in said


def test_what_is_below_a_mean_is_said_of_which_axis(made: Report) -> None:
    found = made.results["matrix"]
    counts = found.counts("<i>third</i>")
    short = counts["ranking problem"] + counts["coverage problem"] + counts["both problems"]
    (said,) = [one for one in made.sentences if "is below the mean" in one]
    assert said.startswith(
        f"On {short} of 24 topics, <i>third</i> is below the mean of old in nDCG@10, in R@100, or in both: on"
    )


def test_gains_are_counted_beside_losses(made: Report) -> None:
    scores = made.scores.per_topic()
    gains = [scores["<i>third</i>"]["nDCG@10"][q] - scores["old"]["nDCG@10"][q] for q in made.scores.query_ids]
    won, lost = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    same = 24 - won - lost
    said = (
        f"<i>third</i> is better than old on {won} topics, worse on {lost}, and equal on {same}, by nDCG@10; it loses"
    )
    assert said in " ".join(made.sentences)


@pytest.mark.parametrize("baseline", [None, "old"])
def test_runs_without_a_difference(make: Callable[..., Report], given: dict[str, Any], baseline: str | None) -> None:
    """Copies do not differ: nothing is left to luck."""
    report = make(runs={"old": given["runs"]["old"], "copy": given["runs"]["old"]}, baseline=baseline)
    both = "old and copy"
    assert any(one.startswith(f"{both} have the same nDCG@10 on every topic: 0.") for one in report.sentences)
    summary = " ".join(report.sentences)
    assert "luck" not in summary
    assert "significantly" not in summary
    assert "would be found four times out of five" not in summary
    part = section(report, "topics")
    assert len(part.blocks) == 1
    assert part.sentences[0].endswith("have the same nDCG@10 on every one of 24 topics.")


def test_a_copy_is_not_what_the_baseline_is_held_against(make: Callable[..., Report], given: dict[str, Any]) -> None:
    runs = {"old": given["runs"]["old"], "copy": given["runs"]["old"], "other": given["runs"]["other"]}
    report = make(runs=runs, baseline="old")
    assert section(report, "topics").sentences[0].startswith("other is better than old on ")
    assert any("the same on every topic: copy" in one for one in report.sentences)
    free = make(runs=runs)
    assert any("the same on every topic: " in one for one in free.sentences[2:3])


def test_one_topic_is_not_tested(make: Callable[..., Report], given: dict[str, Any]) -> None:
    report = make(qrels={"q01": given["qrels"]["q01"]}, attributes=None)
    summary = " ".join(report.sentences)
    assert "luck" not in summary
    assert "With fewer than two topics to compare on, nothing was tested" in summary
    chart = next(chart for chart in report.charts().values() if chart.name == "topics")
    assert chart.sentence.startswith("By how much ")


def test_what_is_shown_of_the_reference_is_folded(made: Report) -> None:
    """The candidate comes first; the sentences about the reference alone are there for who unfolds them."""
    part = section(made, "matrix")
    (about,) = [one for one in part.blocks if isinstance(one, Sentences) and one.title]
    assert about.title == "What the matrix shows of old"
    assert about.folded
    assert any(" of old, by quadrant: " in one for one in about.texts)
    assert not any(one.startswith("old, ") or " of old, by quadrant: " in one for one in part.sentences)
    assert {*part.sentences, *about.texts} == set(made.results["matrix"].sentences)
    assert not any(one.startswith("old scores ") for one in section(made, "stages").sentences)
    assert "<summary>What the matrix shows of old</summary>" in made.html()
    assert "### What the matrix shows of old" in made.markdown()


def test_many_runs_are_tested_by_the_first_measure(make: Callable[..., Report], given: dict[str, Any]) -> None:
    runs = {f"run{at:02}": given["runs"]["old" if at % 2 else "other"] for at in range(16)}
    report = make(runs=runs, attributes=None, queries=None, texts=None)
    found = compare(given["qrels"], runs, ["nDCG@10"])
    assert report.comparison is not None
    tested = report.comparison.measures[0].by_runs
    expected = found.measures[0].by_runs
    assert {two: one.result.decisive_p for two, one in tested.items()} == {
        two: one.result.decisive_p for two, one in expected.items()
    }
    assert [len(one.pairs) for one in report.comparison.measures] == [120, 0, 0]
    board = report.table("board").grid()
    assert [row[2] for row in board.rows] == [row[2] for row in found.leaderboard().grid().rows]
    whole = compare(given["qrels"], runs, ["AP"]).measures[0]
    assert {row[1]: row[3].rsplit("]", 1)[0] for row in board.rows} == {
        one.run: f"{one.value:.4f} [{one.ci[0]:.3f}, {one.ci[1]:.3f}" for one in whole.estimates if one.ci
    }


def test_slices(make: Callable[..., Report], made: Report) -> None:
    chart = next(chart for chart in made.charts().values() if chart.name == "slices")
    assert [row[0].split(" (")[0] for row in chart.table.grid().rows][:3] == ["all topics", "kind=even", "kind=odd <b>"]
    derived = make(attributes=None, baseline="old")
    rows = next(chart for chart in derived.charts().values() if chart.name == "slices").table.grid().rows
    assert any(row[0].startswith("length=") for row in rows)
    asked = make(by="relevant_band", baseline="old")
    assert any(row[0].startswith("relevant_band=") for row in list(asked.charts().values())[2].table.grid().rows)
    assert "slices" not in names(make(attributes=None, queries=None, baseline="old"))
    outcome = make(by=["first_relevant"], baseline="old")
    assert any("first_relevant" in text and "(regression to the mean)" in text for text in outcome.warnings)
    with pytest.raises(InputError, match="nosuch"):
        make(by="nosuch")
    with pytest.raises(InputError, match="no topic in common with the qrels"):
        make(attributes={"other": {"kind": "x"}})


def test_measures_and_policies(make: Callable[..., Report], given: dict[str, Any]) -> None:
    report = make(measures=["RR", "P@5"], baseline="old", topics="both", depth=2)
    assert report.scores.policies.depth == 2
    assert report.scores.measure_names == ("RR", "P@5")
    expected = evaluate(given["qrels"], given["runs"], ["RR", "P@5"], topics="both", depth=2)
    assert np.array_equal(report.scores.values, expected.values)
    assert "lists" not in names(report)
    left_out = tuple(f"{name}: depth=2 cuts the rankings." for name in ("where it is lost", "judged lists"))
    assert notes(report, "Left out") == left_out
    assert notes(report, "Rules")[0].endswith("; first 2 documents")


def test_a_dialect(make: Callable[..., Report], given: dict[str, Any]) -> None:
    report = make(dialect="trec_eval-9", measures=["ndcg_cut_10", "map"], baseline="old")
    expected = evaluate(given["qrels"], given["runs"], ["ndcg_cut_10", "map"], dialect="trec_eval-9")
    assert np.array_equal(report.scores.values, expected.values)
    assert notes(report, "Rules")[0].startswith("trec_eval-9: ")
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    at = expected.query_ids.index(re.findall(r"topic (q\d\d)", part.title)[0])
    assert part.rankings[0].sentence.endswith(f" {expected.values[0, 0, at]:.4f}")


def test_no_single_order_of_documents(make: Callable[..., Report]) -> None:
    report = make(ties="expected", baseline="old")
    reason = "ties='expected' has no single order of documents."
    assert notes(report, "Left out") == (f"where it is lost: {reason}", f"judged lists: {reason}")
    assert {"matrix", "cutoffs"} <= set(names(report))


def test_measures_that_cannot_be_split_are_named(make: Callable[..., Report]) -> None:
    report = make(measures=["SetF"], baseline="old")
    assert "stages" not in names(report)
    assert any(text.startswith("where it is lost: SetF") for text in notes(report, "Left out"))
    assert [chart.name for chart in report.charts().values() if chart.name.startswith("cutoffs")] == [
        "cutoffs1",
        "cutoffs2",
    ]


def test_lower_is_better(make: Callable[..., Report]) -> None:
    """Of a fallout the smaller number is the better one: gains turn round."""
    report = make(measures=["Fallout(n=1000)@2"], baseline="old")
    values = report.scores.values[:, 0]
    candidate, old = (values[report.scores.run_names.index(name)] for name in (_candidate(report), "old"))
    won, lost = int((candidate < old).sum()), int((candidate > old).sum())
    assert f"worse on {lost}" in section(report, "topics").sentences[0]
    assert f"on {won} topic" in section(report, "topics").sentences[0]
    assert "Lower is better here" in section(report, "topics").sentences[0]


def test_a_sum_is_shown_and_not_tested(make: Callable[..., Report]) -> None:
    report = make(measures=["NumRelRet"], baseline="old")
    assert "NumRelRet is a sum over the topics: it is shown, and not tested." in report.sentences
    assert report.table("board").grid().header == ("run", "NumRelRet")
    assert any(text.startswith("matrix: NumRelRet has no mean") for text in notes(report, "Left out"))


def _candidate(report: Report) -> str:
    return section(report, "topics").sentences[0].split(" is better")[0]


def test_warnings_and_provenance(make: Callable[..., Report], made: Report, given: dict[str, Any]) -> None:
    report = make(runs={"part": {"q01": ["good"]}, "old": given["runs"]["old"]}, baseline="old")
    assert any("part: nothing returned for 23 of 24 topics" in text for text in report.warnings)
    assert notes(report, "What to know before the numbers are used") == report.warnings
    assert report.sentences[-1].startswith(f"{len(report.warnings)} warnings stand under 'How this was computed'")
    commands = [part.texts for part in section(made, "method").blocks if isinstance(part, Code)]
    assert commands == [("judged report qrels.txt 'a b.run'",)]
    assert f"judged {made.scores.versions['judged']}" in notes(made, "Versions")
    assert f"altair {version('altair')}" in notes(made, "Versions")
    files = next(part for part in section(made, "method").blocks if isinstance(part, Table))
    assert [row[1] for row in files.grid().rows] == ["qrels", "old", "<i>third</i>", "other"]


def test_ties_are_warned_of_once_and_unjudged_documents_too(make: Callable[..., Report], given: dict[str, Any]) -> None:
    tied = {q: {"good": 1.0, "bad": 1.0, "y1": 1.0, "y2": 0.5} for q in given["qrels"]}
    also = {q: {"bad": 1.0, "fair": 1.0} for q in given["qrels"]}
    report = make(runs={"old": given["runs"]["old"], "tied": tied, "also": also}, baseline="old")
    assert len([one for one in report.warnings if one.startswith("ties among the judged documents")]) == 1
    assert any(one.startswith("old: 61% of its first 10 documents are judged") for one in report.warnings)


def test_errors(make: Callable[..., Report]) -> None:
    with pytest.raises(InputError, match=r"no run 'nosuch' to use as the baseline.*one of old, <i>third"):
        make(baseline="nosuch")
    with pytest.raises(MeasureError):
        make(measures="nosuch")


def test_every_chart_says_what_it_shows(made: Report) -> None:
    for chart in made.charts().values():
        assert isinstance(chart, Chart)
        assert chart.sentence.endswith(".")
        assert chart.table.grid().rows
        assert made.chart(chart.name).to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
