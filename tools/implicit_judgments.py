"""Write docs/implicit-judgments.md, about the agreement of clicks with human judgments: ``implicit_judgments.py DATA``.

DATA is a folder with ``logs/trec_session`` and ``logs/session2014_graphcm``. The third log has simulated users and
ships with judged. If the data is available, the tests compare the page with the output.
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

from offline_online import read_labeled_log, wrapped

from judged.data import Qrels, sample
from judged.errors import InputError, JudgedWarning
from judged.online import InteractionLog, read_log
from judged.online.clicks import against_people, evaluate_uncertain, judge_clicks, propensities
from judged.results.escaping import TextTable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "implicit-judgments.md"
MODELS = ("PBM", "DBN") if find_spec("judged.online.clicks.model_fit") else ()
MIN_SHOWN = 2  # impressions of a pair of the real logs; most pairs have one


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Build the page."""
    folder = data / "logs" / "trec_session"
    first = read_log(folder / "sessiontrack2012.xml.gz", name="TREC Session 2012", bots="keep")
    second, labels = read_labeled_log(data / "logs" / "session2014_graphcm" / "normalized_with_labels.jsonl.gz")
    second = replace(second, name="TREC Session 2014", has=frozenset({"shown", "clicks", "ranks", "unclicked"}))
    simulated = replace(read_log(sample.LOG), name="sample (simulated)")
    people = Qrels.read(folder / "qrels" / "session2012.qrels")
    logs = ((first, people, MIN_SHOWN), (second, labels, MIN_SHOWN), (simulated, sample.qrels(), 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        parts = [
            HEAD,
            data_section(logs),
            agreement_section(logs),
            examination_section(logs),
            system_section(simulated),
        ]
    return "\n\n".join([*parts, TAIL]) + "\n"


def data_section(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Report the size of each log, and the evidence of its pairs."""
    rows: list[tuple[str, ...]] = []
    for log, _, min_shown in logs:
        all_judgments, judgments = judge_clicks(log, min_shown=1), judge_clicks(log, min_shown=min_shown)
        pages = log.engine.rows(f"SELECT count(*) AS n FROM {log.serp}")[0]["n"]  # noqa: S608
        impressions, clicks = (int(getattr(all_judgments.values, name).sum()) for name in ("impressions", "clicks"))
        evidence_weight = f"{float(all_judgments.values.weight.mean()):.0%}"
        pairs = f"{len(all_judgments.grade):,}"
        rows.append(
            (
                log.name,
                f"{pages:,}",
                f"{impressions:,}",
                f"{clicks:,}",
                pairs,
                f"{len(judgments.grade):,}",
                evidence_weight,
            )
        )
    head = ("log", "pages", "results", "clicks", "pairs", "pairs with enough impressions", "own evidence")
    introduction = (
        "*Own evidence* is the mean weight of a pair's own clicks in its shrunk COEC. At 0%, documents differ in clicks"
        " no more than by chance: every COEC is 1, and the log gives no judgments. The tables below exclude pairs shown"
        " fewer than twice (in the sample, ten times)."
    )
    return f"## Data\n\n{wrapped(introduction)}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def compare_with_people(log: InteractionLog, people: Qrels, min_shown: int) -> list[tuple[str, Any]]:
    """Compare each kind of judgments from a log with human judgments."""
    configurations: list[tuple[str, dict[str, Any]]] = [("COEC", {})]
    if log.has_time:
        configurations.append(("COEC of satisfied clicks", {"by": "sat"}))
    with suppress(InputError):  # if no clicked documents connect the ranks; the page states this
        configurations.append(("COEC with propensities", {"propensities": propensities(log)}))
    configurations += [(name, {"by": name}) for name in MODELS]
    results: list[tuple[str, Any]] = []
    for name, options in configurations:
        with suppress(InputError):  # if no clicked documents connect the ranks of the model
            results.append((name, against_people(judge_clicks(log, min_shown=min_shown, **options), people)))
    return results


def agreement_section(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Report the agreement of document orders, and the remaining position bias."""
    rows: list[tuple[str, ...]] = []
    for log, people, min_shown in logs:
        results = compare_with_people(log, people, min_shown)
        _, raw, rank = results[0][1].orders
        baselines = [("rank only", rank, None), ("CTR", raw, results[0][1].feedback[1])]
        for name, row, bias in [
            *baselines,
            *((name, result.orders[0], result.feedback[0]) for name, result in results),
        ]:
            share, gain = (
                format_interval(*estimate) for estimate in ((row.value, row.ci, ""), (row.gain, row.gain_ci, "+"))
            )
            tau = "" if bias is None else format_interval(bias.partial, bias.ci, "+")
            gain = "" if name == "CTR" else gain
            rows.append((log.name, name, share, gain, tau))
    head = ("log", "source", "agreement", "difference from CTR", "partial tau")
    introduction = (
        "*Agreement*: of two documents of a topic with different human grades, the share that the source orders"
        " correctly (0.5 is chance; ties count half). *Partial tau*: Kendall's tau with the logged rank within topics,"
        " given the human grades. Above 0, position bias remains; below 0, the correction is too strong. Shrinkage"
        " explains a part of the latter, because pairs at low ranks have less evidence. 95% intervals are by a"
        " jackknife over topics."
    )
    return (
        f"## Agreement with human judgments\n\n{wrapped(introduction)}\n\n"
        + TextTable(head, tuple(rows), labels=2).markdown()
    )


def examination_section(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Report how often users examine each rank, or the reason why it cannot be estimated."""
    lines: list[str] = []
    for log, *_ in logs:
        try:
            estimates = propensities(log)
        except InputError:
            lines.append(f"- {log.name}: no estimate, because no chain of clicked documents connects all ranks.")
        else:
            values = ", ".join(format_interval(row.value, row.ci, "") for row in estimates.ranks[1:5])
            lines.append(f"- {log.name}: users examine ranks 2 to 5 {values} times as often as rank 1.")
    text = "\n".join(wrapped(line).replace("\n", "\n  ") for line in lines)
    return f"## Examination by rank\n\n{text}"


def system_section(log: InteractionLog) -> str:
    """Report scores of the sample's runs by human grades and by clicks."""
    people, runs = sample.qrels(), sample.runs()
    judgments = judge_clicks(log, propensities=propensities(log))
    topics = set(judgments.pairs["query_id"].to_pylist())
    human_means = evaluate_means(people.over(topics), runs)
    corrected, agreement = evaluate_uncertain(judgments, runs, "nDCG@10"), against_people(judgments, people, runs)
    rows = tuple(
        (row.run, f"{human_means[row.run]:.3f}", f"{row.uncorrected:.3f}", format_interval(row.value, row.ci, ""))
        for row in corrected.rows
    )
    head = ("run", "human grades", "clicks, shrunk grades", "clicks, corrected")
    introduction = (
        "nDCG@10 of the sample's runs on the searched topics, by human grades and by COEC of simulated clicks."
        f" Kendall's tau of both orders is {agreement.tau:.3f}. The means are on different scales, because attraction"
        " is not a grade. Shrunk grades make runs look similar and good. The corrected means and their intervals allow"
        " for noise in the judgments and for the choice of topics."
    )
    return f"## Scores of systems\n\n{wrapped(introduction)}\n\n" + TextTable(head, rows, labels=1).markdown()


def evaluate_means(qrels: Qrels, runs: Any) -> dict[str, float]:
    """Return the mean of each run."""
    from judged import evaluate

    return {run: means["nDCG@10"] for run, means in evaluate(qrels, runs, "nDCG@10").aggregate().items()}


def format_interval(value: float, ci: tuple[float, float] | None, sign: str) -> str:
    """Format a value with its interval."""
    if math.isnan(value):
        return "-"
    return f"{value:{sign}.3f}" + ("" if ci is None else f" [{ci[0]:{sign}.3f}, {ci[1]:{sign}.3f}]")


HEAD = """# Judgments from clicks: a case study

How well do judgments from clicks agree with human judgments, and does a correction for position bias help? `judged
clicks against` compares both on two TREC logs, and on the simulated log that ships with judged. On that log, users
click by the sample's grades. [Relevance from clicks](click-models.md) shows the commands for your own log."""

TAIL = """## Conclusions

- The two real logs are too small to judge documents: most pairs were shown once or twice. All intervals of the
  difference from CTR include 0, so the logs do not show whether the correction helps.
- On the simulated log, corrections change the agreement by at most 0.029, and all intervals of the change include 0.
- Without propensities, COEC corrects too strongly, because better documents are at higher ranks. Check the partial
  tau before you train a ranker on the grades.
- A click shows that a result looked attractive. Satisfied clicks and purchases are closer to user needs, but rarer.
- Documents that were never shown have no judgment and count as not relevant, so runs that find new documents look
  worse than they are. IPS is a lower bound for them.

## Error rates in simulations

With 300,000 pages of three rankers, estimated propensities have a root mean square error of at most 0.005; that of
click rates is above 0.1. Their 95% intervals contain the true value in 92% to 98.5% of cases. Noisy judgments make the
ideal ranking look better: a mean nDCG is wrong by up to 0.14 with two expected clicks per pair, and by 0.04 with eight.
The correction reduces this to 0.03 and 0.001 ([decision 022](decisions/022-clicks.md)). Intervals of corrected means
contained the true value in 93 to 97% of 240 logs. Calibration has the rates for
[COEC](calibration.md#clicks-over-expected-clicks) and [IPS](calibration.md#values-by-inverse-propensities).

## Repeat

`python tools/implicit_judgments.py DATA` writes this page. `DATA` holds the logs and qrels of the TREC Session tracks
of 2012 and 2014.
"""

if __name__ == "__main__":
    sys.exit(main())
