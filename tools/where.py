"""Write docs/where.md, four studies of failures in real runs: ``where.py DATA``.

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
    """Compare scores of each run, and the rankings of runs, on old hard topics and on new topics."""
    qrels, runs = folder / "qrels" / "robust03_qrels.txt", sorted((folder / "runs_d100").glob("*.gz"))
    scores = judged.evaluate(qrels, runs, ["AP", "nDCG@10"])
    slicing = judged.slice_topics(folder / "topics" / "slices.tsv", "topic_set")
    slice_scores = scores.by_slice(slicing)
    names = slicing.names
    means = {name: np.array([slice_scores.value(name, run, "AP") for run in scores.run_names]) for name in names}
    order = np.argsort(-scores.values[:, 0].mean(axis=1))
    best_runs = [scores.run_names[run_index] for run_index in order[:3].tolist()]
    rows = [("mean of all runs", *(f"{means[name].mean():.3f}" for name in names))]
    rows += [(run, *(f"{slice_scores.value(name, run, 'AP'):.4f}" for name in names)) for run in best_runs]
    tau = judged.stats.kendall_tau(*means.values())
    n_worse = sum(finding.significant and finding.part == "topic_set=old_hard" for finding in slice_scores.tested)
    introduction = (
        "The TREC Robust track of 2003 used 50 topics on which earlier systems had failed, and 50 new ones"
        f" ({len(scores.runs)} runs, the first 100 documents). A mean over all topics hides the difference. {n_worse}"
        f" of {2 * len(scores.runs)} tests (two measures, {len(scores.runs)} runs, Holm's correction) find"
        f" significantly lower scores on the old topics. Agreement of the two rankings of the runs: {tau.sentence}"
    )
    table = TextTable(("run", *(f"AP, {name}" for name in names)), tuple(rows))
    best_scores = judged.evaluate(
        qrels, [path for path in runs if path.name.startswith(f"{best_runs[0]}.")], ["R@100", "nDCG@10"]
    )
    matrix = best_scores.matrix(slicing=slicing)
    parts = ["## Old and new topics", wrapped(introduction), table.markdown(), wrapped(MATRIX)]
    return "\n\n".join([*parts, matrix.table().markdown(), listed(matrix.sentences)])


def listed(sentences: tuple[str, ...]) -> str:
    """Format sentences as a list."""
    return "\n".join(textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ") for text in sentences)


def wrapped(text: str) -> str:
    """Wrap a paragraph."""
    return textwrap.fill(text, 120, break_on_hyphens=False)


def codec(folder: Path) -> str:
    """Compare three domains, and the two stages that the reranker can improve."""
    first, second = (
        judged.Run.scan(folder / "runs_d100" / f"document_{stem}.run.gz", name=name)
        for stem, name in (("bm25-tuned", "BM25"), ("bm25-tuned+t5-maxp", "BM25+T5"))
    )
    qrels = judged.Qrels.read(folder / "qrels" / "document_ndcg.qrels")
    topics = judged.Topics.read(folder / "topics" / "topics.json")
    slicing = judged.slice_topics(topics, "domain")
    loss_by_stage = judged.stages(qrels, second, baseline=first, slicing=slicing)
    introduction = (
        "CODEC has 14 essay questions each about finance, history, and politics. T5 reranks the documents of BM25. The"
        " loss of nDCG@10 splits exactly into two parts: relevant documents that are not among the first 100 documents"
        " (candidates), and documents in a bad order (ranking)."
    )
    table = loss_by_stage.table("changes").markdown()
    return "\n\n".join(["## Three domains, two stages", wrapped(introduction), table, CODEC])


def dl19(folder: Path) -> str:
    """Compare the difference of two runs by the grades of each of eight assessors."""
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
    head = ("judge", "topics", "bm25base_p", "idst_bert_p1", "difference [95% interval]", "p after Holm")
    convinced = int((adjusted <= ALPHA).sum())
    introduction = (
        "Eight assessors judged parts of TREC Deep Learning 2019 again, two assessors each part. The table compares a"
        f" neural run with BM25 by the grades of each assessor. For {convinced} of {len(tests)} assessors, the neural"
        " run is significantly better. [Another case study](dl19.md) compares the assessors."
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
        "The table compares four Indri runs of the Web track of 2012 (ClueWeb09) before and after a spam filter: the"
        " change of nDCG@10, its two parts, and the judged share of the first 10 documents. p-values are of"
        " randomization tests, with Holm's correction for the parts."
    )
    head = ("run", "nDCG@10", "by candidates", "by ranking", "judged share of the first 10")
    return "\n\n".join(
        ["## With and without spam", wrapped(introduction), TextTable(head, tuple(rows)).markdown(), WEB]
    )


def format_p(p: float) -> str:
    """Format a p-value."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


HEAD = """# Case study: failures by slice, stage, judge, and spam filter

**Question**: which topics, stages, or judges explain a difference of means? **Data**: four collections with public
runs and judgments. **Method**: [slices, matrix, and stages](diagnosis.md), with tests corrected for the number of
slices. `tools/where.py` writes this page."""

MATRIX = (
    "Do the old topics fail because relevant documents are not returned, or because they are ranked too low? The matrix"
    " of the best run compares R@100 and nDCG@10 with the means of the run:"
)

CODEC = """The reranker improves both parts over all topics. The nDCG@10 gain is significant for finance and history,
but no significant difference between domains was found. With 14 topics, a domain has a detectable difference
of 0.18 to 0.21."""

WEB = """Over category A, the filtered runs have significantly higher scores. Over category B, no difference is
significant. The split attributes all of the gain to the candidates, without evidence that the two parts
differ. The filter also changes the judged share: less than half of the unfiltered first 10 documents are
judged, and unjudged documents count as not relevant. Part of the gain may be an artifact."""

TAIL = """## Conclusion and limits

Each mean hides a different cause: hard topics with low recall, a domain, a judge, or unjudged documents. A difference
on one slice is not evidence of a difference between slices. Small slices detect only large differences, and a
nonsignificant result does not mean that systems are equal.

To repeat the study: `python tools/where.py DATA`, with folders `robust03`, `codec`, `dl19_passage`, and `web2012`."""


if __name__ == "__main__":
    sys.exit(main())
