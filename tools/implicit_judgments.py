"""Write docs/implicit-judgments.md, how near clicks come to people's judgments: ``implicit_judgments.py DATA``.

DATA is a folder with ``logs/trec_session`` and ``logs/session2014_graphcm``. Beside these real logs stands the one of
simulated users that ships with judged. The tests compare the page with what this makes where the data is at hand.
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
MODELS = ("PBM", "UBM", "DBN") if find_spec("judged.online.clicks.model_fit") else ()
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
    simulated = replace(read_log(sample.LOG), name="the sample (simulated users)")
    people = Qrels.read(folder / "qrels" / "session2012.qrels")
    logs = ((first, people, LEAST), (second, labels, LEAST), (simulated, sample.qrels(), 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        parts = [HEAD, evidence(logs), orders(logs), positions(logs), curves(logs), systems(simulated)]
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
        "*Own evidence* is how much of a shrunk COEC, in the mean over pairs, comes from the clicks of the pair; the"
        " rest is what pairs are in general. Pairs shown fewer than twice (of the sample ten times) are left out below."
        " At 0 % clicks differ between documents no more than chance would have them: every COEC is 1, and such a log"
        " makes no judgments."
    )
    return f"## How much there is\n\n{wrapped(said)}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def sources(log: InteractionLog, people: Qrels, least: int) -> list[tuple[str, Any]]:
    """Make judgments of a log in every way, and set them against people's."""
    ways: list[tuple[str, dict[str, Any]]] = [("COEC", {})]
    if log.has_time:
        ways.append(("COEC of satisfied clicks", {"by": "sat"}))
    with suppress(InputError):  # of ranks that nothing joins: the page says so
        ways.append(("COEC by harvested propensities", {"propensities": propensities(log)}))
    ways += [(name, {"by": name}) for name in MODELS]
    made: list[tuple[str, Any]] = []
    for name, how in ways:
        with suppress(InputError):  # of a model whose ranks nothing joins
            made.append((name, against_people(judge_clicks(log, min_shown=least, **how), people)))
    return made


def orders(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Compare orders of documents."""
    rows: list[tuple[str, ...]] = []
    for log, people, least in logs:
        made = sources(log, people, least)
        _, raw, rank = made[0][1].orders
        named = [("rank alone", rank), ("clicks an impression", raw), *((name, one.orders[0]) for name, one in made)]
        for name, row in named:
            share, gain = (interval(*two) for two in ((row.value, row.ci, ""), (row.gain, row.gain_ci, "+")))
            rows.append(
                (log.name, name, str(row.n), f"{row.compared:,}", share, "" if name.startswith("clicks") else gain)
            )
    head = ("log", "judgments by", "topics", "pairs", "ordered as people do", "more than clicks an impression")
    said = (
        "Of two documents of one topic that people grade differently: how often a source puts the better one first (0.5"
        " is a coin; what a source ties counts half). Intervals of 95 % are by a jackknife over topics."
    )
    return (
        f"## Does debiasing bring clicks nearer to the judges?\n\n{wrapped(said)}\n\n"
        + TextTable(head, tuple(rows), labels=2).markdown()
    )


def positions(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Say what is left of position."""
    rows: list[tuple[str, ...]] = []
    for log, people, least in logs:
        made = sources(log, people, least)
        raw = made[0][1].feedback[1]
        for name, row in [("clicks an impression", raw), *((name, one.feedback[0]) for name, one in made)]:
            rows.append((log.name, name, interval(row.tau, None, "+"), interval(row.partial, row.ci, "+")))
    head = ("log", "judgments by", "tau with the rank", "partial tau, grades held fast")
    said = (
        "Kendall's tau of a source with the logged rank, within topics: above 0 where what stood higher comes out"
        " better. With people's grades held fast, what is left above 0 is a *feedback failure*; what is below 0 is"
        " taken out too much. A little of the latter is how shrinkage works: what stood low has less evidence, and is"
        " drawn towards the mean from below."
    )
    return f"## What is left of position\n\n{wrapped(said)}\n\n" + TextTable(head, tuple(rows), labels=2).markdown()


def curves(logs: tuple[tuple[InteractionLog, Qrels, int], ...]) -> str:
    """Say how often ranks are looked at, or why that cannot be known."""
    said: list[str] = []
    for log, *_ in logs:
        try:
            made = propensities(log)
        except InputError as error:
            said.append(f"- {log.name}: refused. {error.problem[0].upper()}{error.problem[1:]}.")
        else:
            known = ", ".join(interval(row.value, row.ci, "") for row in made.ranks[1:5])
            said.append(f"- {log.name}: ranks 2 to 5 are looked at {known} times as often as rank 1.")
    listed = "\n".join(wrapped(one).replace("\n", "\n  ") for one in said)
    return f"## How often ranks are looked at\n\n{listed}"


def systems(log: InteractionLog) -> str:
    """Score the sample's runs by both."""
    people, runs = sample.qrels(), sample.runs()
    judgments = judge_clicks(log, propensities=propensities(log))
    shown = set(judgments.pairs["query_id"].to_pylist())
    by_people = evaluate_means(people.over(shown), runs)
    found, agreed = evaluate_uncertain(judgments, runs, "nDCG@10"), against_people(judgments, people, runs)
    rows = tuple(
        (row.run, f"{by_people[row.run]:.3f}", f"{row.plain:.3f}", interval(row.value, row.ci, ""), f"{row.share:.0%}")
        for row in found.rows
    )
    head = ("run", "people", "clicks, grades as they stand", "clicks, corrected", "variance by judgments")
    said = (
        "nDCG@10 of the sample's runs on the topics that were searched, by people's grades and by COEC of simulated"
        " clicks."
        f" Both order the runs alike with a tau of {agreed.tau:.3f}. Means are on other scales: what is attractive to a"
        " click is no grade. Grades as they stand are drawn towards their mean, and make runs look alike and good; the"
        " corrected means and their intervals allow for noise in the judgments as well as for the choice of topics."
    )
    return f"## What both say of systems\n\n{wrapped(said)}\n\n" + TextTable(head, rows, labels=1).markdown()


def evaluate_means(qrels: Qrels, runs: Any) -> dict[str, float]:
    """Give the mean of each run."""
    from judged import evaluate

    return {run: means["nDCG@10"] for run, means in evaluate(qrels, runs, "nDCG@10").aggregate().items()}


def interval(value: float, ci: tuple[float, float] | None, sign: str) -> str:
    """Write a value with its interval."""
    if math.isnan(value):
        return "-"
    return f"{value:{sign}.3f}" + ("" if ci is None else f" [{ci[0]:{sign}.3f}, {ci[1]:{sign}.3f}]")


HEAD = """# Judgments made of clicks

Made by `tools/implicit_judgments.py` from two logs of TREC with judgments, and from the log of simulated users that
ships with judged, whose clicks follow the sample's grades. With your own log:

```sh
judged clicks propensities LOG -o propensities.csv       # how often each rank is looked at
judged clicks judge LOG --propensities propensities.csv -o judgments.csv
judged clicks against LOG people.qrels bm25.run new.run  # how near they come to people, and what they are worth
judged clicks evaluate judgments.csv bm25.run new.run    # intervals that hold topics and judgments
judged clicks ips LOG bm25.run new.run                   # by propensities that LOG gives, and their error
judged labels import labels.db judgments.csv             # as labels of the kind click
```

`judgments.csv` is a table that every command reads as qrels. Each row has the *value* that was measured of the pair
without bias, its standard error *se* and interval, the *grade*, which is drawn towards what pairs are in general, with
the standard deviation *sd* of the true one around it, and *weight*: how much of the grade is the pair's own evidence.
Pairs of results, of which clicks prefer one (skip above and others), are what `judged online offline --preferences`
compares with judgments ([another page](offline-online.md))."""

TAIL = """## What may not be concluded

- The two real logs are too small to judge documents: most pairs were shown once or twice. That an interval of a gain
  holds 0 says that they cannot tell, not that debiasing is of no use.
- The sample's users were made to look at ranks and to like what people graded well. That debiasing helps there shows
  that the code does what it says; it says nothing of your users.
- COEC expects of a rank what it gets, and what stands high is often better: without propensities it takes out too much.
  Compare *what is left of position* before grades are used to train a ranker.
- A click says that a result looked attractive. Satisfied clicks and purchases are nearer to what people wanted, and
  rarer.
- Documents that were never shown have no judgment, and unjudged documents count as not relevant: runs that find new
  ones look worse than they are. The same holds of IPS, which is a lower bound for them.

## How far the statistics hold

By simulation, in the tests: harvested propensities are off by at most 0.005 (root of the mean square) with 300,000
pages of three rankers, where rates of clicks are off by more than 0.1; their intervals of 95 % hold the truth in 92 %
to 98.5 % of cases. How often those of [COEC](calibration.md#clicks-over-expected-clicks), of
[IPS](calibration.md#values-by-inverse-propensities) and of [click models](calibration.md#click-models) hold stands on
another page. Those of means by uncertain judgments held in 93 to 97 % of 240 logs. A mean of nDCG by noisy values is
wrong by up to 0.14 with two expected clicks a pair, by 0.04 with eight: noise makes the ideal ranking look better. The
correction leaves 0.03 and 0.001 of that ([decision 022](decisions/022-clicks.md)).
"""

if __name__ == "__main__":
    sys.exit(main())
