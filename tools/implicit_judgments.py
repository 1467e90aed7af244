"""Write docs/implicit-judgments.md, how near clicks come to people's judgments: ``implicit_judgments.py DATA``.

DATA is a folder with ``logs/trec_session`` and ``logs/session2014_graphcm``. The third log is of simulated users, and
ships with judged. The tests compare the page with the output where the data is available.
"""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from offline_online import labeled, wrapped

from judged.data import Qrels, sample
from judged.errors import InputError, JudgedWarning
from judged.online import InteractionLog, read_log
from judged.online.clicks import against_people, evaluate_uncertain, judge_clicks, propensities
from judged.results.escaping import TextTable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "implicit-judgments.md"
MODELS = ("PBM", "DBN") if find_spec("judged.online.clicks.model_fit") else ()
LEAST = 2  # impressions of a pair of the real logs, of which most have one


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Make the page."""
    folder = data / "logs" / "trec_session"
    first = read_log(folder / "sessiontrack2012.xml.gz", name="TREC Session 2012", bots="keep")
    second, labels = labeled(data / "logs" / "session2014_graphcm" / "normalized_with_labels.jsonl.gz")
    second = replace(second, name="TREC Session 2014", has=frozenset({"shown", "clicks", "ranks", "unclicked"}))
    simulated = replace(read_log(sample.LOG), name="sample (simulated)")
    people = Qrels.read(folder / "qrels" / "session2012.qrels")
    logs = ((first, people, LEAST), (second, labels, LEAST), (simulated, sample.qrels(), 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        parts = [HEAD, evidence(logs), orders(logs), curves(logs), systems(simulated)]
    return "\n\n".join([*parts, TAIL]) + "\n"


def evidence(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Say how much there is to learn from."""
    rows: list[tuple[str, ...]] = []
    for log, _, least in logs:
        every, kept = judge_clicks(log, min_shown=1), judge_clicks(log, min_shown=least)
        pages = log.engine.rows(f"SELECT count(*) AS n FROM {log.serp}")[0]["n"]  # noqa: S608
        shown, clicks = (int(getattr(every.values, name).sum()) for name in ("impressions", "clicks"))
        own = f"{float(every.values.weight.mean()):.0%}"
        pairs = f"{len(every.grade):,}"
        rows.append((log.name, f"{pages:,}", f"{shown:,}", f"{clicks:,}", pairs, f"{len(kept.grade):,}", own))
    head = ("log", "pages", "results", "clicks", "pairs", "shown often enough", "own evidence")
    said = (
        "*Own evidence* is the mean weight of a pair's own clicks in its shrunk COEC. At 0%, documents differ in clicks"
        " no more than by chance: every COEC is 1, and the log gives no judgments. The tables below exclude pairs shown"
        " fewer than twice (in the sample, ten times)."
    )
    return f"## Data\n\n{wrapped(said)}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def sources(log: InteractionLog, people: Qrels, least: int) -> list[tuple[str, Any]]:
    """Make judgments of a log in every way, and set them against people's."""
    ways: list[tuple[str, dict[str, Any]]] = [("COEC", {})]
    if log.has_time:
        ways.append(("COEC of satisfied clicks", {"by": "sat"}))
    with suppress(InputError):  # of ranks that nothing joins: the page says so
        ways.append(("COEC with propensities", {"propensities": propensities(log)}))
    ways += [(name, {"by": name}) for name in MODELS]
    made: list[tuple[str, Any]] = []
    for name, how in ways:
        with suppress(InputError):  # of a model whose ranks nothing joins
            made.append((name, against_people(judge_clicks(log, min_shown=least, **how), people)))
    return made


def orders(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Compare orders of documents, and report the position bias that remains."""
    rows: list[tuple[str, ...]] = []
    for log, people, least in logs:
        made = sources(log, people, least)
        _, raw, rank = made[0][1].orders
        named = [("rank only", rank, None), ("clicks per impression", raw, made[0][1].feedback[1])]
        for name, row, bias in [*named, *((name, one.orders[0], one.feedback[0]) for name, one in made)]:
            share, gain = (interval(*two) for two in ((row.value, row.ci, ""), (row.gain, row.gain_ci, "+")))
            tau = "" if bias is None else interval(bias.partial, bias.ci, "+")
            gain = "" if name.startswith("clicks") else gain
            rows.append((log.name, name, share, gain, tau))
    head = ("log", "source", "agreement", "gain over clicks per impression", "partial tau")
    said = (
        "*Agreement*: of two documents of a topic with different human grades, the share that the source orders"
        " correctly (0.5 is chance; ties count half). *Partial tau*: Kendall's tau with the logged rank within topics,"
        " given the human grades. Above 0, position bias remains; below 0, the correction is too strong. Shrinkage"
        " explains a part of the latter, because pairs at low ranks have less evidence. 95% intervals are by a"
        " jackknife over topics."
    )
    return (
        f"## Agreement with human judgments\n\n{wrapped(said)}\n\n" + TextTable(head, tuple(rows), labels=2).markdown()
    )


def curves(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Report how often users examine each rank, or why it cannot be estimated."""
    said: list[str] = []
    for log, *_ in logs:
        try:
            made = propensities(log)
        except InputError:
            said.append(f"- {log.name}: refused, because no chain of clicked documents connects all ranks.")
        else:
            known = ", ".join(interval(row.value, row.ci, "") for row in made.ranks[1:5])
            said.append(f"- {log.name}: users examine ranks 2 to 5 {known} times as often as rank 1.")
    listed = "\n".join(wrapped(one).replace("\n", "\n  ") for one in said)
    return f"## Examination by rank\n\n{listed}"


def systems(log: InteractionLog) -> str:
    """Score the sample's runs by both."""
    people, runs = sample.qrels(), sample.runs()
    judgments = judge_clicks(log, propensities=propensities(log))
    shown = set(judgments.pairs["query_id"].to_pylist())
    by_people = evaluate_means(people.over(shown), runs)
    found, agreed = evaluate_uncertain(judgments, runs, "nDCG@10"), against_people(judgments, people, runs)
    rows = tuple(
        (row.run, f"{by_people[row.run]:.3f}", f"{row.uncorrected:.3f}", interval(row.value, row.ci, ""))
        for row in found.rows
    )
    head = ("run", "human grades", "clicks, shrunk grades", "clicks, corrected")
    said = (
        "nDCG@10 of the sample's runs on the searched topics, by human grades and by COEC of simulated clicks."
        f" Kendall's tau of both orders is {agreed.tau:.3f}. The means are on different scales, because attraction is"
        " not a grade. Shrunk grades make runs look similar and good. The corrected means and their intervals allow for"
        " noise in the judgments and for the choice of topics."
    )
    return f"## Scores of systems\n\n{wrapped(said)}\n\n" + TextTable(head, rows, labels=1).markdown()


def evaluate_means(qrels: Qrels, runs: Any) -> dict[str, float]:
    """Give the mean of each run."""
    from judged import evaluate

    return {run: means["nDCG@10"] for run, means in evaluate(qrels, runs, "nDCG@10").aggregate().items()}


def interval(value: float, ci: tuple[float, float] | None, sign: str) -> str:
    """Write a value with its interval."""
    if math.isnan(value):
        return "-"
    return f"{value:{sign}.3f}" + ("" if ci is None else f" [{ci[0]:{sign}.3f}, {ci[1]:{sign}.3f}]")


HEAD = """# Judgments from clicks: a case study

How well do judgments from clicks agree with human judgments, and does a correction for position bias help? `judged
clicks against` compares both on two TREC logs, and on the simulated log that ships with judged. On that log, users
click by the sample's grades. [Relevance from clicks](click-models.md) shows the commands for your own log."""

TAIL = """## Conclusions

- The two real logs are too small to judge documents: most pairs were shown once or twice. All intervals of the gain
  include 0, so the logs do not show whether the correction helps.
- On the simulated log, corrections change the agreement by at most 0.029, and all intervals of the gain include 0.
- Without propensities, COEC corrects too strongly, because better documents are at higher ranks. Check the partial
  tau before you train a ranker on the grades.
- A click shows that a result looked attractive. Satisfied clicks and purchases are closer to user needs, but rarer.
- Documents that were never shown have no judgment and count as not relevant, so runs that find new documents look
  worse than they are. IPS is a lower bound for them.

## Error rates in simulations

With 300,000 pages of three rankers, estimated propensities have a root mean square error of at most 0.005; that of
click rates is above 0.1. Their 95% intervals hold the truth in 92% to 98.5% of cases. Noisy judgments make the ideal
ranking look better: a mean nDCG is wrong by up to 0.14 with two expected clicks per pair, and by 0.04 with eight. The
correction reduces this to 0.03 and 0.001 ([decision 022](decisions/022-clicks.md)). Intervals of corrected means held
the truth in 93 to 97% of 240 logs. Calibration has the rates for [COEC](calibration.md#clicks-over-expected-clicks)
and [IPS](calibration.md#values-by-inverse-propensities).

## Repeat

`python tools/implicit_judgments.py DATA` writes this page. `DATA` holds the logs and qrels of the TREC Session tracks
of 2012 and 2014.
"""

if __name__ == "__main__":
    sys.exit(main())
