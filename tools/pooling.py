"""Write the measured part of docs/pooling.md from two TREC collections: ``pooling.py DATA [--times N]``.

DATA is a folder with ``robust03`` and ``dl19_passage``. What stands above the line of `MARK` is written by hand and
stays. The tests hold one line of each table to the code.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tabled import markdown_table

from judged.data import Qrels
from judged.labels.estimation import StratifiedSample, estimate_mean, estimator_of
from judged.labels.pooling import Candidates, allocate, assign_strata, candidates, draw, next_row, topic_bandits
from judged.results.decimals import percent
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import select_labels
from judged.scoring.measures import parse

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "pooling.md"
MARK = "<!-- below: written by tools/pooling.py -->"
DEPTHS = (1, 2, 3, 5, 10, 20, 50)
SIZES = (10, 20, 50, 100)
STRATA, RATES = (10, 30), (4.0, 2.0, 1.0)
MEASURES = ("P@10", "DCG@10", "RBP(p=0.8)", "NumRelRet", "NumRel", "R@100", "AP")
RUNS = ("InexpC2", "SABIR03BASE", "UIUC03Rd1", "pircRBa1", "rutcor03100")  # of several places among the 17


class Collection(NamedTuple):
    """A collection whose pool is taken as fully judged: what has no judgment counts as not relevant."""

    name: str
    runs: list[str]
    rel: float
    grades: Mapping[tuple[str, str], float]


def collection(name: str, data: Path) -> Collection:
    """Read one of the two."""
    folder, file, runs, rel = {
        "Robust03": ("robust03", "robust03_qrels.txt", "runs_d100", 1),
        "DL19": ("dl19_passage", "qrels.dl19-passage.txt", "runs", 2),
    }[name]
    table = Qrels.read(data / folder / "qrels" / file).table
    pairs = zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
    grades = dict(zip(pairs, table["relevance"].to_pylist(), strict=True))
    return Collection(name, sorted(map(str, (data / folder / runs).glob("*.run.gz"))), rel, grades)


def maxmean_order(
    runs: Any,
    relevant: Callable[[str, str], bool],
    *,
    depth: int = 100,
    queries: Any = None,
    retention: float = 1.0,
    seed: int = 0,
) -> list[list[str]]:
    """Give the order in which MaxMean would judge each topic's whole pool, where every answer is known."""
    found, orders = candidates(runs, depth, queries=queries), list[list[str]]()
    for query_id, arms in zip(found.query_ids, topic_bandits(found.lists, retention, seed), strict=True):
        order, row = list[str](), next(arms, None)
        while row is not None:
            order.append(found.doc[row])
            row = next_row(arms, relevant(query_id, order[-1]))
        orders.append(order)
    return orders


def found_rows(given: Collection, depths: Sequence[int] = DEPTHS) -> Iterator[list[str]]:
    """Compare pools by depth with MaxMean at the same number of labels for each topic, in relevant documents found."""
    judged_topics = {topic for topic, _ in given.grades}
    queries = dict.fromkeys(sorted(judged_topics), "")
    whole = candidates(given.runs, 100, queries=queries)
    relevant = lambda topic, doc: given.grades.get((topic, doc), 0) >= given.rel  # noqa: E731
    by_topic: defaultdict[str, list[tuple[int, bool]]] = defaultdict(list)
    for code, doc, best in zip(whole.topic.tolist(), whole.doc, whole.best.tolist(), strict=True):
        topic = whole.query_ids[code]
        by_topic[topic].append((best, relevant(topic, doc)))
    every = sum(is_relevant for rows in by_topic.values() for _, is_relevant in rows)
    orders = {
        retention: dict(
            zip(whole.query_ids, maxmean_order(given.runs, relevant, queries=queries, retention=retention), strict=True)
        )
        for retention in (1.0, 0.0)
    }
    for depth in depths:
        sizes = {topic: sum(best <= depth for best, _ in rows) for topic, rows in by_topic.items()}
        labels = sum(sizes.values())
        counts = [sum(hit for rows in by_topic.values() for best, hit in rows if best <= depth)]
        counts += [
            sum(relevant(topic, doc) for topic, size in sizes.items() for doc in order[topic][:size])
            for order in orders.values()
        ]
        cells = [f"{count:,} ({percent(count / every)})" for count in counts]
        yield [given.name, str(depth), f"{labels:,}", *cells, f"{counts[1] / counts[0]:.2f}"]


class Full(NamedTuple):
    """The fully judged pool of Robust03."""

    pool: Candidates
    lists: dict[str, Any]  # by run
    place: Any  # (L,): the position in the pool of each judged pair


def full(given: Collection, topics: int | None = None, runs: Sequence[str] = RUNS) -> Full:
    """Judge every document of the pool; with some of the topics, evenly from all."""
    names = sorted({topic for topic, _ in given.grades})
    chosen = names if topics is None else names[:: len(names) // topics][:topics]
    found = candidates(given.runs, 100, queries=dict.fromkeys(chosen, ""))
    qrels: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for code, doc in zip(found.topic.tolist(), found.doc, strict=True):
        topic = found.query_ids[code]
        qrels[topic][doc] = max(given.grades.get((topic, doc), 0), 0)
    known = Qrels.of(qrels)
    lists = {Path(run).name.partition(".")[0]: judge(known, run) for run in given.runs}
    one = next(iter(lists.values()))
    row_of = {
        (found.query_ids[code], doc): at for at, (code, doc) in enumerate(zip(found.topic, found.doc, strict=True))
    }
    pairs = zip(one.label_topic.tolist(), one.label_row.tolist(), strict=True)
    place = [row_of[one.query_ids[topic], one.qrels.index.row_names[row]] for topic, row in pairs]
    return Full(found, {name: lists[name] for name in runs}, np.array(place))


class Simulated(NamedTuple):
    """What many samples gave for a measure: (runs, times) each, and the truth, (runs,)."""

    truth: Any
    values: Any
    errors: Any
    covered: Any


def simulate(
    whole: Full,
    size: int,
    measures: Sequence[str],
    times: int,
    strata: Sequence[int] = STRATA,
    rates: Sequence[float] = RATES,
    seed: int = 0,
) -> dict[str, Simulated]:
    """Draw many samples of so many documents a topic, and estimate each time."""
    bands, stratum, sizes = assign_strata(whole.pool, (*strata, 100))
    first = np.unique(stratum, return_index=True)[1]
    drawn = allocate(size * len(whole.pool.query_ids), sizes, np.array(rates)[bands])
    random, topic = np.random.default_rng(seed), whole.pool.topic[first]
    parsed = {name: parse(name) for name in measures}
    gathered = {name: np.zeros((3, len(whole.lists), times)) for name in measures}
    truth = {name: [truth_of(one, judged) for judged in whole.lists.values()] for name, one in parsed.items()}
    for time in range(times):
        inside = np.zeros(len(stratum), dtype=np.bool_)
        inside[draw(stratum, drawn, random)] = True
        kept = inside[whole.place]
        design = StratifiedSample(stratum[whole.place[kept]], sizes, topic, len(whole.pool.query_ids))
        for at, judged in enumerate(whole.lists.values()):
            seen = select_labels(judged, kept)
            for name, one in parsed.items():
                if name == "InfAP":
                    grades = np.where(kept, judged.label_grade, -1.0)
                    unknown = replace(judged, label_grade=grades, grade=grades[judged.row])
                    gathered[name][:, at, time] = one(unknown).mean(), np.nan, np.nan
                    continue
                found = estimate_mean(one, seen, design)
                ends = found.limits
                inside_ = np.nan if ends is None else ends[0] <= truth[name][at] <= ends[1]
                gathered[name][:, at, time] = found.value, found.error, inside_
    return {name: Simulated(np.array(truth[name]), *values) for name, values in gathered.items()}


def truth_of(measure: Any, judged: Any) -> float:
    """Give the aggregate over the fully judged pool; InfAP stands for AP."""
    scores = (parse("AP") if measure.entry.name == "InfAP" else measure)(judged)
    return float(scores.sum() if measure.entry.aggregate == "sum" else scores.mean())


def simulated_rows(
    whole: Full,
    size: int,
    measures: Sequence[str],
    times: int,
    ends: Sequence[int] = STRATA,
    rates: Sequence[float] = RATES,
) -> Iterator[list[str]]:
    """Say of each measure how biased it was and how often its intervals covered, in the mean and the worst run."""
    for name, found in simulate(whole, size, measures, times, ends, rates).items():
        bias = found.values.mean(axis=1) - found.truth
        noise = found.values.std(axis=1, ddof=1) / np.sqrt(times)
        worst = int(np.abs(bias / found.truth).argmax())
        given = ~np.isnan(found.covered)  # of the samples that have an interval
        covered = np.nansum(found.covered, axis=1) / np.maximum(given.sum(axis=1), 1)
        form = "ratio" if name == "InfAP" else estimator_of(parse(name))
        said = (
            ["-", "-"]
            if not given.any()
            else [percent(covered.mean()), percent(covered[np.abs(covered - 0.95).argmax()])]
        )
        spread = found.values.std(axis=1, ddof=1) / found.truth
        yield [
            str(len(whole.pool.query_ids)), str(size), name, form, f"{bias[worst] / found.truth[worst]:+.2%}",
            f"{np.abs(bias / noise).max():.1f}", f"{spread.mean():.1%}", *said,
        ]  # fmt: skip


def main() -> int:
    """Write the page."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("data", type=Path)
    asked.add_argument("--times", type=int, default=1000)
    given = asked.parse_args()
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
    PAGE.write_text(f"{head}\n\n{MARK}\n\n" + "\n\n".join(measured(given.data, given.times)) + "\n", encoding="utf-8")
    return 0


def measured(data: Path, times: int) -> Iterator[str]:
    """Give the measured part of the page."""
    robust, dl19 = (collection(name, data) for name in ("Robust03", "DL19"))
    yield "## Measured: MaxMean against depth"
    yield FOUND
    header = ("collection", "depth", "labels", "pool by depth", "MaxMean, retention 1", "MaxMean, retention 0", "ratio")
    yield markdown_table(header, [row for one in (robust, dl19) for row in found_rows(one)])
    yield "## Measured: estimates from samples"
    yield ESTIMATED.format(times=f"{times:,}", noise=f"{1.96 * (0.95 * 0.05 / times) ** 0.5:.1%}")
    header = (
        "topics", "documents a topic", "measure", "form", "bias, largest", "in standard errors", "spread",
        "covered, mean", "covered, worst",
    )  # fmt: skip
    rows: list[list[str]] = []
    for topics in (None, 10):
        whole = full(robust, topics)
        for size in SIZES:
            rows += simulated_rows(whole, size, MEASURES, times)
    yield markdown_table(header, rows)
    yield from covered(rows)
    yield "## Measured: AP from uniform samples, against InfAP"
    yield INFERRED
    whole = full(robust)
    rows = [row for size in SIZES for row in simulated_rows(whole, size, ("AP", "InfAP"), times, (), (1.0,))]
    yield markdown_table(header, rows)


def covered(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Say how often intervals of sums held the truth, by how much was judged: least and most of all measures."""
    said: list[str] = []
    for topics, size in dict.fromkeys((row[0], row[1]) for row in rows):
        parts = [int(row[-1].rstrip("%")) for row in rows if (row[0], row[1], row[3]) == (topics, size, "sum")]
        said.append(f"{topics} topics with {size} documents each, {min(parts)} to {max(parts)} %")
    yield "Of sums, intervals held the truth, in the run furthest from 95 % of each measure: " + "; ".join(said) + "."


FOUND = """The same number of labels for each topic as the pool by depth has; relevant documents found, and their share
of those in the pool of depth 100 (Robust03: 17 runs, 100 topics, grades from 1; DL19: 37 runs, 43 topics, grades from
2). The ratio is MaxMean with retention 1 over the pool by depth."""
ESTIMATED = """The pool of depth 100 of Robust03 (17 runs, some 495 documents a topic) is taken as fully judged, what
has no judgment as not relevant. Of it {times} samples were drawn in strata of best ranks 1-10, 11-30 and 31-100, whose
documents come in four times, twice and once as often, of each two at least; five runs; all topics, or 10 of them. Bias:
the mean of the estimates minus the truth, as a share of the truth, of the run where it is largest; and the largest of
any run in standard errors of the simulation. Spread: the standard deviation of the estimates over the truth. Covered:
how often 95 % intervals held the truth, over the runs and for the run furthest from 95 %; of one run this is known to
{noise}. Of ratios it is why `estimate` gives no interval.
All sizes are drawn with the same random numbers, so their errors go the same way."""
INFERRED = """The same, with each topic one stratum. InfAP is given the documents that were not drawn with a negative
grade, as it wants them; it has no interval here."""

if __name__ == "__main__":
    raise SystemExit(main())
