"""Write docs/satisfaction.md, what a published study says of nDCG and of five layouts: ``satisfaction.py DATA``.

DATA is a folder with ``study_chiir24``. The tests compare the page with what this makes where the data is at hand.
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
ALPHA = 0.05
TEXT = """\
# nDCG and satisfaction: a published study

165 people searched for one or two of four topics each, with one of five layouts of the result page, and rated
{trials:,} pages of results from 1 to 6. Beside each rating stands nDCG@10 of its page (CHIIR 2024,
KanaadPathak/presentation-performance-satisfaction, CC0). This page is made from these ratings by
`tools/satisfaction.py`, which calls `judged.studies.report(records, measured=..., measure="nDCG@10")`.

## Does nDCG@10 go with satisfaction?

Somewhat. Over all ratings Pearson's r is {pooled}, drawing people again. Some people rate everything high,
others everything low: of what differs from a person's own means r is {within}. It is above 0 in {above} of
the {persons} people with three ratings or more that vary. Kendall's tau-b over all pairs of pages of one person
is {rank:.3f}. So pages that are better by nDCG are liked better on average; of one person and one page that
says little.

| layout | people | ratings | r, pooled |
|---|---:|---:|---|
{agreed}

## Do layouts differ?

Each person saw one layout, so layouts are compared between people, and a person's ratings are one cluster, however
many there are. Of other topics four topics tell hardly anything.

| first | second | means | difference | these topics | other topics | p | Holm |
|---|---|---|---|---|---|---:|---:|
{layouts}

No pair has a verdict, better or undecided, for other topics: with {n} topics there are intervals, but too little
data to test ({least} topics are required). The smallest p of the {pairs} pairs, before Holm's correction, is {p:.3f},
of {first} and {second}. Each difference within an interval is still possible.

## What is left open

People chose which pages to look at, one after another. Nothing here says what they would have said of the same results
in another order, and whatever else differs between the layouts is in their differences too.
"""


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Make the page."""
    records, lists = study(data)
    (outcome,) = outcomes(records)
    found = report(records, measured=lists, measure="nDCG@10")
    (agreed,) = found.agreements
    rows = list[str]()
    for name in records.systems:
        own = Outcome(name, "more", tuple(one for one in outcome.values if one.system == name))
        one = measure_agreement(own, lists, "nDCG@10")
        rows.append(f"| {name} | {one.people} | {one.trials} | {_r(one.pooled, one.ci)} |")
    least = min(found.decisive, key=lambda one: one.p)
    return TEXT.format(
        trials=agreed.trials,
        pooled=_r(agreed.pooled, agreed.ci),
        within=_r(agreed.within, agreed.within_ci),
        above=sum(one > 0 for one in agreed.persons),
        persons=len(agreed.persons),
        rank=agreed.rank,
        agreed="\n".join(rows),
        layouts=_layouts(found),
        n=found.n,
        least=MIN_UNITS["verdict"],
        pairs=len(found.decisive),
        p=least.p,
        first=least.first,
        second=least.second,
    )


def _r(value: float, ci: tuple[float, float] | None) -> str:
    return f"{value:.3f}" if ci is None else f"{value:.3f} [{ci[0]:.2f}, {ci[1]:.2f}]"


def _layouts(found: StudyReport) -> str:
    """Write the pairs of layouts, for other people with these topics and for other people and topics."""
    rows = list[str]()
    for one in found.decisive:
        limits = [f"[{low:+.2f}, {high:+.2f}]" for low, high in (one.people_ci, one.ci)]
        numbers = (", ".join(f"{mean:.2f}" for mean in one.means), f"{one.difference:+.2f}", *limits)
        rows.append("| " + " | ".join((one.first, one.second, *numbers, f"{one.p:.3f}", f"{one.adjusted:.2f}")) + " |")
    return "\n".join(rows)


def study(data: Path) -> tuple[StudyRecords, dict[tuple[str, int], float]]:
    """Read the ratings as records of a study, and nDCG@10 of each rated page."""
    with (data / "study_chiir24" / "query_feedback.csv").open(encoding="utf-8") as file:
        ratings = sorted(csv.DictReader(file), key=lambda row: (int(row["user"]), int(row["id"])))
    place, trials, lists = Counter[str](), list[dict[str, object]](), dict[tuple[str, int], float]()
    for row in ratings:
        place[row["user"]] += 1
        key = {"participant": row["user"], "position": place[row["user"]]}
        of = {"query_id": row["topic_id"], "system": row["interface_type"], "value": float(row["feedback"])}
        trials.append({**key, **of})
        lists[row["user"], place[row["user"]]] = float(row["ndcg_10"])
    answers = [{**row, "questionnaire": "satisfaction", "item": "1"} for row in trials]
    people = [{"participant": name} for name in place]
    return StudyRecords.of({"participants": people, "trials": trials, "answers": answers}), lists


if __name__ == "__main__":
    sys.exit(main())
