"""Write docs/where.md, four studies of where systems fail, on real runs: ``where.py DATA``.

DATA is a folder with ``robust03``, ``codec``, ``dl19_passage``, and ``web2012``: qrels, runs, topics. If the data is
available, the tests compare the page with the output.
"""

from __future__ import annotations

import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np

import judged
from judged.errors import JudgedWarning
from judged.results.escaping import TextTable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "where.md"
ALPHA = 0.05


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Build the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        parts = [HEAD, robust(data / "robust03"), codec(data / "codec"), dl19(data / "dl19_passage"),
                 web(data / "web2012"), TAIL]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def robust(folder: Path) -> str:
    """Compare old, hard topics with new ones, for every run, and the two orders of runs."""
    qrels, runs = folder / "qrels" / "robust03_qrels.txt", sorted((folder / "runs_d100").glob("*.gz"))
    scores = judged.evaluate(qrels, runs, ["AP", "nDCG@10"])
    slicing = judged.slice_topics(folder / "topics" / "slices.tsv", "topic_set")
    slice_scores = scores.by_slice(slicing)
    names = slicing.names
    means = {name: np.array([slice_scores.value(name, run, "AP") for run in scores.run_names]) for name in names}
    order = np.argsort(-scores.values[:, 0].mean(axis=1))
    rows = tuple(
        (
            scores.run_names[run_index],
            *(f"{slice_scores.value(name, scores.run_names[run_index], 'AP'):.4f}" for name in names),
        )
        for run_index in order.tolist()
    )
    tau = judged.stats.kendall_tau(*means.values())
    n_worse = sum(finding.significant and finding.part == "topic_set=old_hard" for finding in slice_scores.findings)
    best_runs = [scores.run_names[run_index] for run_index in order[:2].tolist()]
    pair = select_runs(scores, best_runs).compare_slices(slicing, best_runs[1])
    introduction = (
        "TREC's Robust track of 2003 took 50 topics on which earlier systems had failed, and 50 new ones"
        f" ({len(scores.runs)} runs, their first 100 documents). One mean over both hides two collections: on the old,"
        f" hard topics average precision is {means[names[1]].mean():.3f} on average over the runs, on the new ones"
        f" {means[names[0]].mean():.3f}. {n_worse} of {2 * len(scores.runs)} tests (two measures, {len(scores.runs)}"
        " runs) find the old topics worse than the new ones after Holm's correction. How alike the two halves order the"
        f" runs: {tau.sentence}"
    )
    table = TextTable(("run", *(f"AP, {name}" for name in names)), rows)
    best_scores = judged.evaluate(
        qrels, [path for path in runs if path.name.startswith(f"{best_runs[0]}.")], ["R@100", "nDCG@10"]
    )
    matrix = best_scores.matrix(slicing=slicing)
    parts = ["## Old and new topics", wrapped(introduction), table.markdown(), listed(pair.sentences), wrapped(MATRIX)]
    return "\n\n".join([*parts, matrix.table().markdown(), listed(matrix.sentences)])


def listed(sentences: tuple[str, ...]) -> str:
    """Format sentences as a list."""
    return "\n".join(textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ") for text in sentences)


def wrapped(text: str) -> str:
    """Wrap a paragraph."""
    return textwrap.fill(text, 120, break_on_hyphens=False)


def codec(folder: Path) -> str:
    """Compare three domains, and find the stage that the reranker improves."""
    first, second = (
        judged.Run.scan(folder / "runs_d100" / f"document_{stem}.run.gz", name=name)
        for stem, name in (("bm25-tuned", "BM25"), ("bm25-tuned+t5-maxp", "BM25+T5"))
    )
    qrels = judged.Qrels.read(folder / "qrels" / "document_ndcg.qrels")
    topics = judged.Topics.read(folder / "topics" / "topics.json")
    slicing = judged.slice_topics(topics, "domain")
    comparison = judged.evaluate(qrels, [first, second], "nDCG@10").compare_slices(slicing, "BM25")
    loss_by_stage = judged.stages(qrels, second, baseline=first, slicing=slicing)
    introduction = (
        "CODEC asks about finance, history and politics (14 essay-like questions each). BM25, and BM25 reranked by T5,"
        " by domain. What a run loses against a perfect one splits exactly: into what is not among its first 100"
        " documents, and what is there, but ranked badly."
    )
    parts = [
        "## Three domains, two stages",
        wrapped(introduction),
        comparison.overview().markdown(),
        listed(comparison.sentences),
    ]
    parts += [loss_by_stage.table().markdown(), loss_by_stage.table("changes").markdown()]
    return "\n\n".join([*parts, listed(loss_by_stage.sentences)])


def dl19(folder: Path) -> str:
    """Check whether each of eight assessors sees the same difference."""
    first, second = (folder / "runs" / f"{name}.run.gz" for name in ("bm25base_p", "idst_bert_p1"))
    rows: list[tuple[str, ...]] = []
    tests: list[judged.stats.Difference] = []
    for path in sorted((folder / "alt_qrels" / "human_main").glob("*.txt")):
        scores = judged.evaluate(path, [first, second], "nDCG@10")
        tests.append(judged.stats.paired_test(scores.values[0, 0], scores.values[1, 0]))
        rows.append((str(tests[-1].n), *(f"{value:.3f}" for value in np.nanmean(scores.values[:, 0], axis=1).tolist())))
    adjusted = judged.stats.adjust([test.p for test in tests], "holm")
    table_rows = tuple(
        (
            f"assessor {number}",
            *row,
            f"{test.difference:+.3f} [{test.interval[0]:.2f}, {test.interval[1]:.2f}]",
            format_p(p),
        )
        for number, (row, test, p) in enumerate(zip(rows, tests, adjusted.tolist(), strict=True), 1)
        if test.interval
    )
    head = ("judged by", "topics", "bm25base_p", "idst_bert_p1", "difference [95 % interval]", "p after Holm")
    convinced = int((adjusted <= ALPHA).sum())
    introduction = (
        "Eight people judged parts of TREC Deep Learning 2019 again, two people each part. Is a neural run better"
        f" than BM25 whoever judges? nDCG@10 by each one's own grades, on their own topics: {convinced} of {len(tests)}"
        " see the difference beyond luck. How far the eight agree about documents, and about all 37 systems, is on"
        " [another page](dl19.md)."
    )
    return "\n\n".join(["## Eight assessors", wrapped(introduction), TextTable(head, table_rows).markdown()])


def web(folder: Path) -> str:
    """Compare runs with and without spam filter: losses by stage, and judged shares."""
    qrels = folder / "qrels" / "qrels.web.151-200.txt"
    stems = ("ql_cata", "rm_cata", "ql_catb", "rm_catb")
    rows: list[tuple[str, ...]] = []
    for stem in stems:
        unfiltered, filtered = (
            judged.Run.scan(folder / "runs" / f"indri_{stem}{end}.run.gz", name=f"{stem}{end}")
            for end in ("", "-filtered")
        )
        loss_by_stage = judged.stages(qrels, filtered, baseline=unfiltered)
        changes = [
            f"{change.result.difference:+.4f} (p {format_p(change.result.decisive_p)})"
            for change in loss_by_stage.changes
        ]
        shares = judged.evaluate(qrels, [unfiltered, filtered], "Judged@10").aggregate()
        judged_shares = " to ".join(f"{share['Judged@10']:.0%}" for share in shares.values())
        rows.append((stem, *changes, judged_shares))
    introduction = (
        "Four Indri runs over ClueWeb09 for the Web track of 2012, before and after a spam filter: the change of"
        " nDCG@10, and its exact split; then how much of the first 10 is judged, before and after. In parentheses the"
        " p-value of the randomization test; of the parts after Holm."
    )
    head = ("run", "nDCG@10", "by candidates", "by ranking", "judged of the first 10")
    return "\n\n".join(
        ["## With and without spam", wrapped(introduction), TextTable(head, tuple(rows)).markdown(), WEB]
    )


def format_p(p: float) -> str:
    """Format a p-value."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def select_runs(scores: judged.Scores, names: list[str]) -> judged.Scores:
    """Select some runs."""
    from dataclasses import replace

    rows = [scores.run_names.index(name) for name in names]
    return replace(
        scores,
        runs=tuple(scores.runs[row] for row in rows),
        values=scores.values[rows],
        counted=scores.counted[rows],
    )


HEAD = """# Where systems fail: four studies

Generated by `tools/where.py` from real runs and judgments. Each study begins with one mean and ends with the topics,
the documents or the stage that it hides. How to do the same with your own files:
[slices and diagnosis](diagnosis.md)."""

MATRIX = (
    "Is the best run's trouble with the old topics that relevant documents are not found, or that they are ranked too"
    " low? Recall@100 against nDCG@10, with the run's own means as cuts:"
)

WEB = """Over category A the filtered runs score higher, over category B no difference is shown. All of the gain is
attributed to the candidates, but it is not shown that the two parts differ: they move against each other, since the
more relevant documents are among the candidates, the more of them can be ranked badly. And the filter changes what is
judged: of the unfiltered first 10 less than half is, and what is not judged counts as not relevant. Part of the gain
may be due to that."""

TAIL = """## Reading it

A slice that looks different is not a finding: with 14 topics a slice can only show differences that are large, and the
more slices one looks at, the more of them look odd. What is called significant here was corrected for the number of
slices that were looked at; what is not significant is not therefore equal: the tables say which difference would have
been seen."""


if __name__ == "__main__":
    sys.exit(main())
