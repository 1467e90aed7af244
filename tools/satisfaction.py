"""Write docs/satisfaction.md, on nDCG and five layouts in a published study: ``satisfaction.py DATA``.

DATA is a folder with ``study_chiir24``. If the data is available, the tests compare the page with the output.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

from judged.stats.sufficiency import MIN_UNITS
from judged.studies import StudyRecords, StudyReport, measure_agreement, report
from judged.studies.outcomes import Outcome, outcomes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "satisfaction.md"
N_PAIRS = 3  # in the table of layouts
TEXT = """\
# Case study: nDCG and satisfaction

**Question**: does nDCG@10 of a result page correlate with the satisfaction of the people who see it? Do layouts of the
page differ in satisfaction?

**Data**: 165 people searched for one or two of four topics, with one of five layouts. They rated {trials:,} result
pages from 1 to 6. The published ratings include nDCG@10 of each page (CHIIR 2024,
KanaadPathak/presentation-performance-satisfaction, CC0).

**Method**: `tools/satisfaction.py` calls `judged.studies.report(records, measured=..., measure="nDCG@10")`. Intervals
of correlations resample people. Each person saw one layout, so layouts are compared between people, and the ratings of
a person are one cluster.

## nDCG@10 and satisfaction

Over all ratings, Pearson's r is {pooled}.
Within people (each person's means subtracted), r is {within}. It is
positive for {above} of the {persons} people with at least three ratings that vary. Kendall's tau-b over all pairs of
pages of one person is {rank:.3f}.

| layout | people | ratings | r, pooled |
|---|---:|---:|---|
{agreed}

## Layouts

| first | second | means | difference | these topics | other topics | p | Holm |
|---|---|---|---|---|---|---:|---:|
{layouts}

The table shows the {shown} of {pairs} pairs with the smallest p-values. *These topics* is the interval for other people
with these topics; *other topics* is that for other people and other topics. With {n} topics there are intervals but no
verdict, since {least} topics are required.

## Conclusion and limits

On average, pages with a higher nDCG@10 satisfy people more. For a single person and page, nDCG@10 predicts little. No
difference between layouts is significant, and all differences within an interval remain possible.

People chose which pages to view, one after another. The study does not show how they would rate the same results in
another order. Differences between layouts include everything in which the layouts differ.

To repeat the study: `python tools/satisfaction.py DATA`, with the published files in `DATA/study_chiir24`.
"""


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Build the page."""
    records, lists = study(data)
    (outcome,) = outcomes(records)
    study_report = report(records, measured=lists, measure="nDCG@10")
    (overall,) = study_report.agreements
    rows = list[str]()
    for name in records.systems:
        layout_outcome = Outcome(name, "more", tuple(row for row in outcome.values if row.system == name))
        layout = measure_agreement(layout_outcome, lists, "nDCG@10")
        rows.append(f"| {name} | {layout.people} | {layout.trials} | {_r(layout.pooled, layout.ci)} |")
    return TEXT.format(
        trials=overall.trials,
        pooled=_r(overall.pooled, overall.ci),
        within=_r(overall.within, overall.within_ci),
        above=sum(correlation > 0 for correlation in overall.persons),
        persons=len(overall.persons),
        rank=overall.tau,
        agreed="\n".join(rows),
        layouts=_layouts(study_report),
        n=study_report.n,
        least=MIN_UNITS["verdict"],
        pairs=len(study_report.primary_effects),
        shown=N_PAIRS,
    )


def _r(value: float, ci: tuple[float, float] | None) -> str:
    return f"{value:.3f}" if ci is None else f"{value:.3f} [{ci[0]:.2f}, {ci[1]:.2f}]"


def _layouts(study_report: StudyReport) -> str:
    """Format pairs of layouts, with intervals for new people, and for new people and topics."""
    rows = list[str]()
    for pair in sorted(study_report.primary_effects, key=lambda pair: pair.p)[:N_PAIRS]:
        limits = [f"[{low:+.2f}, {high:+.2f}]" for low, high in (pair.people_ci, pair.ci)]
        numbers = (", ".join(f"{mean:.2f}" for mean in pair.means), f"{pair.difference:+.2f}", *limits)
        rows.append(
            "| " + " | ".join((pair.first, pair.second, *numbers, f"{pair.p:.3f}", f"{pair.adjusted:.2f}")) + " |"
        )
    return "\n".join(rows)


def study(data: Path) -> tuple[StudyRecords, dict[tuple[str, int], float]]:
    """Read the ratings as records of a study, and nDCG@10 of each rated page."""
    with (data / "study_chiir24" / "query_feedback.csv").open(encoding="utf-8") as file:
        ratings = sorted(csv.DictReader(file), key=lambda row: (int(row["user"]), int(row["id"])))
    page_count, trials, lists = Counter[str](), list[dict[str, object]](), dict[tuple[str, int], float]()
    for row in ratings:
        page_count[row["user"]] += 1
        key = {"participant": row["user"], "position": page_count[row["user"]]}
        trial_fields = {"query_id": row["topic_id"], "system": row["interface_type"], "value": float(row["feedback"])}
        trials.append({**key, **trial_fields})
        lists[row["user"], page_count[row["user"]]] = float(row["ndcg_10"])
    answers = [{**row, "questionnaire": "satisfaction", "item": "1"} for row in trials]
    people = [{"participant": name} for name in page_count]
    return StudyRecords.of({"participants": people, "trials": trials, "answers": answers}), lists


if __name__ == "__main__":
    sys.exit(main())
