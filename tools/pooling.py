"""Write the measured part of docs/pooling-methods.md from two TREC collections: ``pooling.py DATA [--times N]``.

DATA is a folder with ``robust03`` and ``dl19_passage``. The tool does not change text above the line `MARK`.
The tests compare one line of each table with the code.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
PAGE = ROOT / "docs" / "pooling-methods.md"
MARK = "<!-- below: written by tools/pooling.py -->"
DEPTHS = (1, 5, 20, 50)
SIZES = (10, 20, 50, 100)
STRATA, RATES = (10, 30), (4.0, 2.0, 1.0)
MEASURES = ("P@10", "DCG@10", "RBP(p=0.8)", "NumRelRet", "NumRel", "R@100", "AP")
SHOWN_SIZES, SHOWN_MEASURES = (10, 50), ("P@10", "NumRel", "R@100", "AP")
RUNS = ("InexpC2", "SABIR03BASE", "UIUC03Rd1", "pircRBa1", "rutcor03100")  # of different quality


class Collection(NamedTuple):
    """Collection whose pool counts as fully judged: unjudged documents are not relevant."""

    name: str
    runs: list[str]
    rel: float
    grades: Mapping[tuple[str, str], float]


def collection(name: str, data: Path) -> Collection:
    """Read one of the collections."""
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
    """Return the order in which MaxMean judges the pool of each topic."""
    pool, orders = candidates(runs, depth, queries=queries), list[list[str]]()
    for query_id, arms in zip(pool.query_ids, topic_bandits(pool.lists, retention, seed), strict=True):
        order, row = list[str](), next(arms, None)
        while row is not None:
            order.append(pool.doc[row])
            row = next_row(arms, relevant(query_id, order[-1]))
        orders.append(order)
    return orders


def pool_rows(source: Collection, depths: Sequence[int] = DEPTHS) -> Iterator[list[str]]:
    """Yield rows that compare depth pools with MaxMean at the same number of labels per topic."""
    judged_topics = {topic for topic, _ in source.grades}
    queries = dict.fromkeys(sorted(judged_topics), "")
    judged_pool = candidates(source.runs, 100, queries=queries)
    relevant = lambda topic, doc: source.grades.get((topic, doc), 0) >= source.rel  # noqa: E731
    by_topic: defaultdict[str, list[tuple[int, bool]]] = defaultdict(list)
    for code, doc, best_rank in zip(
        judged_pool.topic.tolist(), judged_pool.doc, judged_pool.best_rank.tolist(), strict=True
    ):
        topic = judged_pool.query_ids[code]
        by_topic[topic].append((best_rank, relevant(topic, doc)))
    n_relevant = sum(is_relevant for rows in by_topic.values() for _, is_relevant in rows)
    orders = {
        retention: dict(
            zip(
                judged_pool.query_ids,
                maxmean_order(source.runs, relevant, queries=queries, retention=retention),
                strict=True,
            )
        )
        for retention in (1.0, 0.0)
    }
    for depth in depths:
        sizes = {topic: sum(best_rank <= depth for best_rank, _ in rows) for topic, rows in by_topic.items()}
        labels = sum(sizes.values())
        counts = [sum(hit for rows in by_topic.values() for best_rank, hit in rows if best_rank <= depth)]
        counts += [
            sum(relevant(topic, doc) for topic, size in sizes.items() for doc in order[topic][:size])
            for order in orders.values()
        ]
        cells = [f"{count:,} ({percent(count / n_relevant)})" for count in counts]
        yield [source.name, str(depth), f"{labels:,}", *cells, f"{counts[1] / counts[0]:.2f}"]


class JudgedPool(NamedTuple):
    """Fully judged pool of Robust03."""

    pool: Candidates
    lists: dict[str, Any]  # by run
    pool_row: Any  # position of each judged pair in the pool, of shape (L,)


def judge_pool(source: Collection, topics: int | None = None, runs: Sequence[str] = RUNS) -> JudgedPool:
    """Judge each document of the pool; `topics` is the number of evenly spaced topics."""
    names = sorted({topic for topic, _ in source.grades})
    selected_topics = names if topics is None else names[:: len(names) // topics][:topics]
    pool = candidates(source.runs, 100, queries=dict.fromkeys(selected_topics, ""))
    qrels: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for code, doc in zip(pool.topic.tolist(), pool.doc, strict=True):
        topic = pool.query_ids[code]
        qrels[topic][doc] = max(source.grades.get((topic, doc), 0), 0)
    full_qrels = Qrels.of(qrels)
    lists = {Path(run).name.partition(".")[0]: judge(full_qrels, run) for run in source.runs}
    first_list = next(iter(lists.values()))
    row_of = {
        (pool.query_ids[code], doc): row for row, (code, doc) in enumerate(zip(pool.topic, pool.doc, strict=True))
    }
    pairs = zip(first_list.label_topic.tolist(), first_list.label_row.tolist(), strict=True)
    pair_rows = [row_of[first_list.query_ids[topic], first_list.qrels.index.row_names[row]] for topic, row in pairs]
    return JudgedPool(pool, {name: lists[name] for name in runs}, np.array(pair_rows))


class SimulatedEstimates(NamedTuple):
    """Estimates of a measure from many samples, of shape (runs, times), and the true values, of shape (runs,)."""

    truth: Any
    values: Any
    errors: Any
    covered: Any


def simulate(
    judged_pool: JudgedPool,
    size: int,
    measures: Sequence[str],
    times: int,
    strata: Sequence[int] = STRATA,
    rates: Sequence[float] = RATES,
    seed: int = 0,
) -> dict[str, SimulatedEstimates]:
    """Sample `size` documents per topic many times, and estimate the measures from each sample."""
    bands, stratum, sizes = assign_strata(judged_pool.pool, (*strata, 100))
    first_rows = np.unique(stratum, return_index=True)[1]
    sample_sizes = allocate(size * len(judged_pool.pool.query_ids), sizes, np.array(rates)[bands])
    rng, topic = np.random.default_rng(seed), judged_pool.pool.topic[first_rows]
    parsed = {name: parse(name) for name in measures}
    results = {name: np.zeros((3, len(judged_pool.lists), times)) for name in measures}
    truth = {
        name: [true_value(measure, judged) for judged in judged_pool.lists.values()] for name, measure in parsed.items()
    }
    for trial in range(times):
        is_sampled = np.zeros(len(stratum), dtype=np.bool_)
        is_sampled[draw(stratum, sample_sizes, rng)] = True
        is_label_sampled = is_sampled[judged_pool.pool_row]
        design = StratifiedSample(
            stratum[judged_pool.pool_row[is_label_sampled]], sizes, topic, len(judged_pool.pool.query_ids)
        )
        for run_index, judged in enumerate(judged_pool.lists.values()):
            visible = select_labels(judged, is_label_sampled)
            for name, measure in parsed.items():
                if name == "InfAP":
                    grades = np.where(is_label_sampled, judged.label_grade, -1.0)
                    unknown = replace(judged, label_grade=grades, grade=grades[judged.row])
                    results[name][:, run_index, trial] = measure(unknown).mean(), np.nan, np.nan
                    continue
                estimate = estimate_mean(measure, visible, design)
                limits = estimate.limits
                is_covered = np.nan if limits is None else limits[0] <= truth[name][run_index] <= limits[1]
                results[name][:, run_index, trial] = estimate.value, estimate.error, is_covered
    return {name: SimulatedEstimates(np.array(truth[name]), *values) for name, values in results.items()}


def true_value(measure: Any, judged: Any) -> float:
    """Return the aggregate over the fully judged pool; for InfAP, the aggregate of AP."""
    scores = (parse("AP") if measure.entry.name == "InfAP" else measure)(judged)
    return float(scores.sum() if measure.entry.aggregate == "sum" else scores.mean())


def simulated_rows(
    judged_pool: JudgedPool,
    size: int,
    measures: Sequence[str],
    times: int,
    strata: Sequence[int] = STRATA,
    rates: Sequence[float] = RATES,
) -> Iterator[list[str]]:
    """Yield bias and coverage of each measure, for the mean over runs and for the worst run."""
    for name, result in simulate(judged_pool, size, measures, times, strata, rates).items():
        bias = result.values.mean(axis=1) - result.truth
        noise = result.values.std(axis=1, ddof=1) / np.sqrt(times)
        worst = int(np.abs(bias / result.truth).argmax())
        has_interval = ~np.isnan(result.covered)
        covered = np.nansum(result.covered, axis=1) / np.maximum(has_interval.sum(axis=1), 1)
        form = "ratio" if name == "InfAP" else estimator_of(parse(name))
        coverage_texts = (
            ["-", "-"]
            if not has_interval.any()
            else [percent(covered.mean()), percent(covered[np.abs(covered - 0.95).argmax()])]
        )
        spread = result.values.std(axis=1, ddof=1) / result.truth
        yield [
            str(len(judged_pool.pool.query_ids)), str(size), name, form, f"{bias[worst] / result.truth[worst]:+.2%}",
            f"{np.abs(bias / noise).max():.1f}", f"{spread.mean():.1%}", *coverage_texts,
        ]  # fmt: skip


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--times", type=int, default=1000)
    options = parser.parse_args()
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
    PAGE.write_text(
        f"{head}\n\n{MARK}\n\n" + "\n\n".join(measured_part(options.data, options.times)) + "\n", encoding="utf-8"
    )
    return 0


def measured_part(data: Path, times: int) -> Iterator[str]:
    """Yield the measured part of the page."""
    robust, dl19 = (collection(name, data) for name in ("Robust03", "DL19"))
    yield "## Measured: MaxMean and pools by depth"
    yield MAXMEAN_TEXT
    header = ("collection", "depth", "labels", "pool by depth", "MaxMean, retention 1", "MaxMean, retention 0", "ratio")
    yield markdown_table(header, [row for source in (robust, dl19) for row in pool_rows(source)])
    yield "## Measured: estimates from samples"
    yield ESTIMATES_TEXT.format(times=f"{times:,}", noise=f"{1.96 * (0.95 * 0.05 / times) ** 0.5:.1%}")
    rows: list[list[str]] = []
    for topics in (None, 10):
        judged_pool = judge_pool(robust, topics)
        for size in SIZES:
            rows += simulated_rows(judged_pool, size, MEASURES, times)
    yield estimates_table(row for row in rows if int(row[1]) in SHOWN_SIZES and row[2] in SHOWN_MEASURES)
    yield COVERAGE_TEXT
    yield coverage_table(rows)
    yield "## Measured: AP and InfAP from uniform samples"
    yield INFAP_TEXT
    judged_pool = judge_pool(robust)
    yield estimates_table(
        row for size in SHOWN_SIZES for row in simulated_rows(judged_pool, size, ("AP", "InfAP"), times, (), (1.0,))
    )


def estimates_table(rows: Iterable[Sequence[str]]) -> str:
    """Format the main columns of `simulated_rows`."""
    header = ("topics", "documents per topic", "measure", "bias", "spread", "coverage")
    return markdown_table(header, [[row[i] for i in (0, 1, 2, 4, 6, 8)] for row in rows])


def coverage_table(rows: Sequence[Sequence[str]]) -> str:
    """Format the coverage of intervals of sums by sample size: minimum and maximum over measures."""
    ranges: defaultdict[str, list[str]] = defaultdict(list)
    for topics, size in dict.fromkeys((row[0], row[1]) for row in rows):
        coverages = [int(row[-1].rstrip("%")) for row in rows if (row[0], row[1], row[3]) == (topics, size, "sum")]
        ranges[topics].append(f"{min(coverages)}% to {max(coverages)}%")
    header = ("topics", *(f"{size} documents" for size in SIZES))
    return markdown_table(header, [[topics, *cells] for topics, cells in ranges.items()])


MAXMEAN_TEXT = """\
Relevant documents found, and their share of those in the depth-100 pool, with as many labels per topic as the pool by
depth. Robust03 has 17 runs, 100 topics, and relevant grades from 1; DL19 has 37 runs, 43 topics, and relevant grades
from 2. The ratio compares retention 1 and the pool by depth."""
ESTIMATES_TEXT = """\
The depth-100 pool of Robust03 (17 runs, about 495 documents per topic) counts as fully judged. {times} samples were
drawn, for all 100 topics and for 10 of them, and five runs were estimated. Strata are best ranks 1-10, 11-30, and
31-100, sampled at rates 4, 2, and 1. All rows use the same random numbers, so their errors are correlated.

Bias is the relative error of the mean estimate, for the run with the largest one. Spread is the standard deviation of
the estimates relative to the true value. Coverage is the share of 95% intervals that contain the true value, for the
run furthest from 95%; its own 95% margin is {noise}. Coverage of recall and AP is so low that `estimate` shows no
interval."""
COVERAGE_TEXT = """\
Lowest and highest coverage of five sums (P@10, DCG@10, RBP, NumRelRet, and NumRel), by documents per topic:"""
INFAP_TEXT = """\
The same 100 topics, with one stratum per topic. For InfAP, documents outside the sample have negative grades."""

if __name__ == "__main__":
    raise SystemExit(main())
