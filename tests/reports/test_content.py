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
    report_section = report.section(name)
    assert report_section is not None
    return report_section


def notes(report: Report, title: str) -> tuple[str, ...]:
    parts = section(report, "method").blocks
    return next((part.texts for part in parts if isinstance(part, Sentences) and part.title == title), ())


def test_sections_stand_in_order(sample_report: Report) -> None:
    assert names(sample_report) == ALL
    assert len({chart.name for chart in sample_report.charts().values()}) == len(sample_report.charts()) == 7
    assert section(sample_report, "summary").sentences == sample_report.sentences
    assert sample_report.section("nothing") is None


def test_the_leaderboard_is_that_of_compare(sample_report: Report, report_input: dict[str, Any]) -> None:
    comparison = compare(report_input["qrels"], report_input["runs"], REPORTED_MEASURES, baseline="old")
    assert sample_report.table("board").grid().rows == comparison.leaderboard().grid().rows
    assert sample_report.comparison is not None
    assert sample_report.comparison.to_dict() == comparison.to_dict()
    part = next(part for part in section(sample_report, "leaderboard").blocks if isinstance(part, Table))
    assert part.note == comparison.caption
    assert section(sample_report, "leaderboard").sentences == tuple(
        comparison.pair("old", "<i>third</i>", measure).sentence for measure in REPORTED_MEASURES
    )
    scores = evaluate(report_input["qrels"], report_input["runs"], REPORTED_MEASURES)
    assert np.array_equal(sample_report.scores.values, scores.values)


def test_the_summary_has_the_numbers(sample_report: Report, report_input: dict[str, Any]) -> None:
    estimates = {
        estimate.run: estimate
        for estimate in evaluate(report_input["qrels"], report_input["runs"], "nDCG@10").estimates()
    }
    best = max(estimates.values(), key=lambda estimate: estimate.value)
    assert best.run == "<i>third</i>"
    assert best.ci is not None
    assert sample_report.sentences[0] == (
        "3 runs were evaluated on 24 topics with 72 judgments (qrels), by nDCG@10, AP and R@100."
    )
    assert sample_report.sentences[1] == (
        f"<i>third</i> has the best nDCG@10, {best.value:.4f} (95% CI [{best.ci[0]:.3f}, {best.ci[1]:.3f}])."
    )
    pair = compare(report_input["qrels"], report_input["runs"], REPORTED_MEASURES, baseline="old").pair(
        "old", "<i>third</i>"
    )
    assert f"a true difference of {pair.detectable:.3f} in nDCG@10 between" in sample_report.sentences[3]


def test_differences_by_topic(sample_report: Report) -> None:
    chart = next(chart for chart in sample_report.charts().values() if chart.name == "topics")
    scores = sample_report.scores.per_topic()
    gains = {
        q: scores["<i>third</i>"]["nDCG@10"][q] - scores["old"]["nDCG@10"][q] for q in sample_report.scores.query_ids
    }
    rows = {row[0]: row for row in chart.table.grid().rows}
    assert rows.keys() == gains.keys()
    plotted_gains = [float(row[-1]) for row in chart.table.grid().rows]
    assert plotted_gains == sorted(plotted_gains, reverse=True)
    for q, row in rows.items():
        assert float(row[-1]) == pytest.approx(gains[q], abs=0.00005)
        assert row[2] == f"{scores['old']['nDCG@10'][q]:.4f}"
        assert row[3] == f"{scores['<i>third</i>']['nDCG@10'][q]:.4f}"
    won, lost = sum(gain > 0 for gain in gains.values()), sum(gain < 0 for gain in gains.values())
    assert (
        section(sample_report, "topics")
        .sentences[0]
        .startswith(f"<i>third</i> is better than old on {won} topics, worse on {lost}, and equal on {24 - won - lost}")
    )
    bars = next(layer for layer in sample_report.chart(chart.name).to_dict()["layer"] if layer["mark"]["type"] == "bar")
    values = sample_report.chart(chart.name).to_dict()["datasets"][bars["data"]["name"]]
    assert [row["x"] for row in values] == sorted(gains.values(), reverse=True)


def test_the_lowest_topics(sample_report: Report) -> None:
    table = next(part.grid() for part in section(sample_report, "lowest").blocks if isinstance(part, Table))
    assert table.header == ("topic", "query", "<i>third</i>", "old", "median run", "best run")
    topic_scores = sample_report.scores.per_topic()["<i>third</i>"]["nDCG@10"]
    assert [float(row[2]) for row in table.rows] == [
        pytest.approx(value, abs=5e-5) for value in sorted(topic_scores.values())[:10]
    ]
    column = sample_report.scores.values[:, 0, sample_report.scores.query_ids.index(table.rows[0][0])]
    assert table.rows[0][4:] == (f"{np.median(column):.4f}", f"{column.max():.4f}")


def test_judged_lists(make: Callable[..., Report], evil: str) -> None:
    report = make(runs={"old": {"q00": ["good", "bad"]}, "new": {"q00": ["x", "bad", "good"]}}, baseline="old",
                  qrels={"q00": {"good": 2, "fair": 1, "bad": 0}}, attributes=None)  # fmt: skip
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    assert part.title.startswith("Loss, topic q00: query q00 </script>")
    old, new = part.rankings
    assert (old.name, new.name) == ("old", "new")
    assert [(item.rank, item.doc_id, item.grade, item.relevant) for item in new.items] == [
        ("1", "x", "", None), ("2", "bad", "0", False), ("3", "good", "2", True),
    ]  # fmt: skip
    assert [item.change.split(",")[0] for item in new.items] == ["new", "same rank", "from 1"]
    assert [item.change for item in old.items] == ["to 3", "same rank"]
    ideal = 2 + 1 / np.log2(3)
    assert new.items[2].change == f"from 1, {(2 / np.log2(4) - 2) / ideal:+.4f}"
    assert new.items[2].text == evil.replace("\u2028", " ")
    assert old.sentence == f"nDCG@10 {2 / ideal:.4f}"


def test_relevant_documents_that_are_not_shown_are_named(make: Callable[..., Report]) -> None:
    far = [f"x{i}" for i in range(14)]
    grades = {"a": 3, "b": 2, "c": 2, "d": 1, "e": 1, "f": 1, "no": 0}
    report = make(qrels={"q00": grades}, runs={"old": {"q00": ["a", "b"]}, "new": {"q00": ["d", *far, "b"]}},
                  baseline="old", attributes=None, texts=None)  # fmt: skip
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    assert part.sentences[1] == (
        "5 relevant documents are not in the top 10 of new: a (grade 3, not returned), b (grade 2, rank 16),"
        " c (grade 2, not returned), e (grade 1, not returned) and 1 other."
    )


def test_without_a_baseline_the_two_best_are_looked_at(make: Callable[..., Report]) -> None:
    report = make()
    order = report.comparison.measures[0].order() if report.comparison else []
    best, second = (report.scores.run_names[i] for i in order[:2])
    assert section(report, "topics").sentences[0].startswith(f"{best} is better than {second} on ")
    assert report.table("board").grid().header[:2] == ("", "run")


def test_the_baseline_may_be_the_best(make: Callable[..., Report]) -> None:
    report = make(baseline="<i>third</i>")
    assert "against <i>third</i>" in next(chart.title for chart in report.charts().values() if chart.name == "topics")


def test_one_run(make: Callable[..., Report], report_input: dict[str, Any]) -> None:
    report = make(runs={"old": report_input["runs"]["old"]})
    assert names(report) == [name for name in ALL if name != "topics"]
    assert report.comparison is None
    value = evaluate(report_input["qrels"], report_input["runs"]["old"], "nDCG@10").value("nDCG@10")
    assert report.sentences[1].startswith(f"old has nDCG@10 = {value:.4f} (95% CI ")
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    assert len(part.rankings) == 1
    assert part.rankings[0].items[0].change == ""


def test_one_run_is_held_against_its_own_means(make: Callable[..., Report], report_input: dict[str, Any]) -> None:
    summary = " ".join(make(runs={"old": report_input["runs"]["old"]}).sentences)
    assert "topics, old is below its own mean over all topics in nDCG@10, in R@100, or in both measures. " in summary
    assert "of old" not in summary


def test_what_is_below_a_mean_is_said_of_which_axis(sample_report: Report) -> None:
    matrix = sample_report.results["matrix"]
    counts = matrix.counts("<i>third</i>")
    short = counts["ranking problem"] + counts["coverage problem"] + counts["both problems"]
    (headline,) = [sentence for sentence in sample_report.sentences if "is below the mean" in sentence]
    assert headline.startswith(
        f"On {short} of 24 topics, <i>third</i> is below the mean of old over all topics in nDCG@10, in R@100,"
    )


def test_gains_are_counted_beside_losses(sample_report: Report) -> None:
    scores = sample_report.scores.per_topic()
    gains = [scores["<i>third</i>"]["nDCG@10"][q] - scores["old"]["nDCG@10"][q] for q in sample_report.scores.query_ids]
    won, lost = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    same = 24 - won - lost
    expected_sentence = (
        f"<i>third</i> is better than old on {won} topics, worse on {lost}, and"
        f" equal on {same}, by nDCG@10. The largest losses"
    )
    assert expected_sentence in " ".join(sample_report.sentences)


@pytest.mark.parametrize("baseline", [None, "old"])
def test_runs_without_a_difference(
    make: Callable[..., Report], report_input: dict[str, Any], baseline: str | None
) -> None:
    """Copies do not differ: nothing is left to luck."""
    report = make(runs={"old": report_input["runs"]["old"], "copy": report_input["runs"]["old"]}, baseline=baseline)
    both = "old and copy"
    assert any(sentence.startswith(f"{both} have the same nDCG@10 on every topic: 0.") for sentence in report.sentences)
    summary = " ".join(report.sentences)
    assert "luck" not in summary
    assert "significantly" not in summary
    assert "80% power" not in summary
    part = section(report, "topics")
    assert len(part.blocks) == 1
    assert part.sentences[0].endswith("have the same nDCG@10 on all 24 topics.")


def test_a_copy_is_not_what_the_baseline_is_held_against(
    make: Callable[..., Report], report_input: dict[str, Any]
) -> None:
    runs = {
        "old": report_input["runs"]["old"],
        "copy": report_input["runs"]["old"],
        "other": report_input["runs"]["other"],
    }
    report = make(runs=runs, baseline="old")
    assert section(report, "topics").sentences[0].startswith("other is better than old on ")
    assert any("equal scores on every topic: copy" in sentence for sentence in report.sentences)
    free = make(runs=runs)
    assert any("equal scores on every topic: " in sentence for sentence in free.sentences[2:3])


def test_one_topic_is_not_tested(make: Callable[..., Report], report_input: dict[str, Any]) -> None:
    report = make(qrels={"q01": report_input["qrels"]["q01"]}, attributes=None)
    summary = " ".join(report.sentences)
    assert "luck" not in summary
    assert "a test requires at least two topics" in summary
    chart = next(chart for chart in report.charts().values() if chart.name == "topics")
    assert chart.sentence.startswith("Improvement of ")


def test_what_is_shown_of_the_reference_is_folded(sample_report: Report) -> None:
    """The candidate comes first; the sentences about the reference alone are there for who unfolds them."""
    part = section(sample_report, "matrix")
    (about,) = [row for row in part.blocks if isinstance(row, Sentences) and row.title]
    assert about.title == "Performance matrix of old"
    assert about.folded
    assert any("run old" in row for row in about.texts)
    assert not any(
        row.startswith(("old, ", "Slices of old ")) or "topics of the run old" in row for row in part.sentences
    )
    assert {*part.sentences, *about.texts} == set(sample_report.results["matrix"].sentences)
    assert not any(row.startswith("old scores ") for row in section(sample_report, "stages").sentences)
    assert "<summary>Performance matrix of old</summary>" in sample_report.html()
    assert "### Performance matrix of old" in sample_report.markdown()


def test_many_runs_are_tested_by_the_first_measure(make: Callable[..., Report], report_input: dict[str, Any]) -> None:
    runs = {f"run{i:02}": report_input["runs"]["old" if i % 2 else "other"] for i in range(16)}
    report = make(runs=runs, attributes=None, queries=None, texts=None)
    comparison = compare(report_input["qrels"], runs, ["nDCG@10"])
    assert report.comparison is not None
    tested = report.comparison.measures[0].by_runs
    expected = comparison.measures[0].by_runs
    assert {two: record.result.decisive_p for two, record in tested.items()} == {
        two: record.result.decisive_p for two, record in expected.items()
    }
    assert [len(record.pairs) for record in report.comparison.measures] == [120, 0, 0]
    board = report.table("board").grid()
    assert [row[2] for row in board.rows] == [row[2] for row in comparison.leaderboard().grid().rows]
    first_comparison = compare(report_input["qrels"], runs, ["AP"]).measures[0]
    assert {row[1]: row[3].rsplit("]", 1)[0] for row in board.rows} == {
        record.run: f"{record.value:.4f} [{record.ci[0]:.3f}, {record.ci[1]:.3f}"
        for record in first_comparison.estimates
        if record.ci
    }


def test_slices(make: Callable[..., Report], sample_report: Report) -> None:
    chart = next(chart for chart in sample_report.charts().values() if chart.name == "slices")
    assert [row[0].split(" (")[0] for row in chart.table.grid().rows][:3] == ["all topics", "kind=even", "kind=odd <b>"]
    derived = make(attributes=None, baseline="old")
    rows = next(chart for chart in derived.charts().values() if chart.name == "slices").table.grid().rows
    assert any(row[0].startswith("length=") for row in rows)
    by_band = make(by="relevant_band", baseline="old")
    assert any(row[0].startswith("relevant_band=") for row in list(by_band.charts().values())[2].table.grid().rows)
    assert "slices" not in names(make(attributes=None, queries=None, baseline="old"))
    outcome = make(by=["first_relevant"], baseline="old")
    assert any("first_relevant" in text and "(regression to the mean)" in text for text in outcome.warnings)
    with pytest.raises(InputError, match="nosuch"):
        make(by="nosuch")
    with pytest.raises(InputError, match="no topic in common with the qrels"):
        make(attributes={"other": {"kind": "x"}})


def test_measures_and_policies(make: Callable[..., Report], report_input: dict[str, Any]) -> None:
    report = make(measures=["RR", "P@5"], baseline="old", topics="both", depth=2)
    assert report.scores.policies.depth == 2
    assert report.scores.measure_names == ("RR", "P@5")
    expected = evaluate(report_input["qrels"], report_input["runs"], ["RR", "P@5"], topics="both", depth=2)
    assert np.array_equal(report.scores.values, expected.values)
    assert "lists" not in names(report)
    left_out = tuple(f"{name}: depth=2 truncates the rankings." for name in ("losses by stage", "ranked lists"))
    assert notes(report, "Omitted sections") == left_out
    assert notes(report, "Rules")[0].endswith("; first 2 documents")


def test_a_dialect(make: Callable[..., Report], report_input: dict[str, Any]) -> None:
    report = make(dialect="trec_eval-9", measures=["ndcg_cut_10", "map"], baseline="old")
    expected = evaluate(report_input["qrels"], report_input["runs"], ["ndcg_cut_10", "map"], dialect="trec_eval-9")
    assert np.array_equal(report.scores.values, expected.values)
    assert notes(report, "Rules")[0].startswith("trec_eval-9: ")
    part = section(report, "lists").blocks[1]
    assert isinstance(part, RankedLists)
    i = expected.query_ids.index(re.findall(r"topic (q\d\d)", part.title)[0])
    assert part.rankings[0].sentence.endswith(f" {expected.values[0, 0, i]:.4f}")


def test_no_single_order_of_documents(make: Callable[..., Report]) -> None:
    report = make(ties="expected", baseline="old")
    reason = "ties='expected' does not define one order of documents for each topic."
    assert notes(report, "Omitted sections") == (f"losses by stage: {reason}", f"ranked lists: {reason}")
    assert {"matrix", "cutoffs"} <= set(names(report))


def test_measures_that_cannot_be_split_are_named(make: Callable[..., Report]) -> None:
    report = make(measures=["SetF"], baseline="old")
    assert "stages" not in names(report)
    assert any(text.startswith("losses by stage: ") and "SetF" in text for text in notes(report, "Omitted sections"))
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
    assert "Lower scores are better" in section(report, "topics").sentences[0]


def test_a_sum_is_shown_and_not_tested(make: Callable[..., Report]) -> None:
    report = make(measures=["NumRelRet"], baseline="old")
    assert "NumRelRet is a sum over topics, and was not tested." in report.sentences
    assert report.table("board").grid().header == ("run", "NumRelRet")
    assert any(text.startswith("matrix: NumRelRet has no mean") for text in notes(report, "Omitted sections"))


def _candidate(report: Report) -> str:
    return section(report, "topics").sentences[0].split(" is better")[0]


def test_warnings_and_provenance(
    make: Callable[..., Report], sample_report: Report, report_input: dict[str, Any]
) -> None:
    report = make(runs={"part": {"q01": ["good"]}, "old": report_input["runs"]["old"]}, baseline="old")
    assert any("part: no documents returned for 23 of 24 topics" in text for text in report.warnings)
    assert notes(report, "Warnings") == report.warnings
    assert report.sentences[-1].startswith(f"Before you use these numbers, read {len(report.warnings)} warnings in")
    commands = [part.texts for part in section(sample_report, "method").blocks if isinstance(part, Code)]
    assert commands == [("judged report qrels.txt 'a b.run'",)]
    assert f"judged {sample_report.scores.versions['judged']}" in notes(sample_report, "Versions")
    assert f"altair {version('altair')}" in notes(sample_report, "Versions")
    files = next(part for part in section(sample_report, "method").blocks if isinstance(part, Table))
    assert [row[1] for row in files.grid().rows] == ["qrels", "old", "<i>third</i>", "other"]


def test_ties_are_warned_of_once_and_unjudged_documents_too(
    make: Callable[..., Report], report_input: dict[str, Any]
) -> None:
    tied = {q: {"good": 1.0, "bad": 1.0, "y1": 1.0, "y2": 0.5} for q in report_input["qrels"]}
    also = {q: {"bad": 1.0, "fair": 1.0} for q in report_input["qrels"]}
    report = make(runs={"old": report_input["runs"]["old"], "tied": tied, "also": also}, baseline="old")
    assert len([warning for warning in report.warnings if warning.startswith("ties among the judged documents")]) == 1
    assert any(warning.startswith("old: ") and "61% of" in warning for warning in report.warnings)


def test_errors(make: Callable[..., Report]) -> None:
    with pytest.raises(InputError, match=r"no run 'nosuch' to use as the baseline.*one of old, <i>third"):
        make(baseline="nosuch")
    with pytest.raises(MeasureError):
        make(measures="nosuch")


def test_every_chart_says_what_it_shows(sample_report: Report) -> None:
    for chart in sample_report.charts().values():
        assert isinstance(chart, Chart)
        assert chart.sentence.endswith(".")
        assert chart.table.grid().rows
        assert (
            sample_report.chart(chart.name).to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        )
