"""Write docs/where.md, four studies of where systems fail, on real runs: ``where.py DATA``.

DATA is a folder with ``robust03``, ``codec``, ``dl19_passage`` and ``web2012``: qrels, runs, topics. The tests compare
the page with what this makes where the data is at hand.
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
    """Make the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        parts = [HEAD, robust(data / "robust03"), codec(data / "codec"), dl19(data / "dl19_passage"),
                 web(data / "web2012"), TAIL]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def robust(folder: Path) -> str:
    """Old, hard topics against new ones: every run, and whether the two orders agree."""
    qrels, runs = folder / "qrels" / "robust03_qrels.txt", sorted((folder / "runs_d100").glob("*.gz"))
    scores = judged.evaluate(qrels, runs, ["AP", "nDCG@10"])
    slicing = judged.slice_topics(folder / "topics" / "slices.tsv", "topic_set")
    found = scores.by_slice(slicing)
    names = slicing.names
    means = {name: np.array([found.value(name, run, "AP") for run in scores.run_names]) for name in names}
    order = np.argsort(-scores.values[:, 0].mean(axis=1))
    rows = tuple(
        (scores.run_names[at], *(f"{found.value(name, scores.run_names[at], 'AP'):.4f}" for name in names))
        for at in order.tolist()
    )
    tau = judged.stats.kendall_tau(*means.values())
    worse = sum(one.significant and one.part == "topic_set=old_hard" for one in found.findings)
    best = [scores.run_names[at] for at in order[:2].tolist()]
    pair = chosen(scores, best).compare_slices(slicing, best[1])
    said = (
        "TREC's Robust track of 2003 took 50 topics on which earlier systems had failed, and 50 new ones"
        f" ({len(scores.runs)} runs, their first 100 documents). One mean over both hides two collections: on the old,"
        f" hard topics average precision is {means[names[1]].mean():.3f} on average over the runs, on the new ones"
        f" {means[names[0]].mean():.3f}. {worse} of {2 * len(scores.runs)} tests (two measures, {len(scores.runs)}"
        " runs) find the old topics worse than the new ones after Holm's correction. How alike the two halves order the"
        f" runs: {tau.sentence}"
    )
    table = TextTable(("run", *(f"AP, {name}" for name in names)), rows)
    both = judged.evaluate(qrels, [path for path in runs if path.name.startswith(f"{best[0]}.")], ["R@100", "nDCG@10"])
    matrix = both.matrix(slicing=slicing)
    parts = ["## Old and new topics", wrapped(said), table.markdown(), listed(pair.sentences), wrapped(MATRIX)]
    return "\n\n".join([*parts, matrix.table().markdown(), listed(matrix.sentences)])


def listed(sentences: tuple[str, ...]) -> str:
    """Write sentences as a list."""
    return "\n".join(textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ") for text in sentences)


def wrapped(text: str) -> str:
    """Break a paragraph into lines."""
    return textwrap.fill(text, 120, break_on_hyphens=False)


def codec(folder: Path) -> str:
    """Three domains, and which part of the system the reranker mends."""
    first, second = (
        judged.Run.scan(folder / "runs_d100" / f"document_{stem}.run.gz", name=name)
        for stem, name in (("bm25-tuned", "BM25"), ("bm25-tuned+t5-maxp", "BM25+T5"))
    )
    qrels = judged.Qrels.read(folder / "qrels" / "document_ndcg.qrels")
    topics = judged.Topics.read(folder / "topics" / "topics.json")
    slicing = judged.slice_topics(topics, "domain")
    tested = judged.evaluate(qrels, [first, second], "nDCG@10").compare_slices(slicing, "BM25")
    staged = judged.stages(qrels, second, baseline=first, slicing=slicing)
    said = (
        "CODEC asks about finance, history and politics (14 essay-like questions each). BM25, and BM25 reranked by T5,"
        " by domain. What a run loses against a perfect one splits exactly: into what is not among its first 100"
        " documents, and what is there, but ranked badly."
    )
    parts = ["## Three domains, two stages", wrapped(said), tested.overview().markdown(), listed(tested.sentences)]
    parts += [staged.table().markdown(), staged.table("changes").markdown()]
    return "\n\n".join([*parts, listed(staged.sentences)])


def dl19(folder: Path) -> str:
    """Eight assessors: whether the same difference is seen by each."""
    first, second = (folder / "runs" / f"{name}.run.gz" for name in ("bm25base_p", "idst_bert_p1"))
    rows: list[tuple[str, ...]] = []
    tests: list[judged.stats.Difference] = []
    for path in sorted((folder / "alt_qrels" / "human_main").glob("*.txt")):
        scores = judged.evaluate(path, [first, second], "nDCG@10")
        tests.append(judged.stats.paired_test(scores.values[0, 0], scores.values[1, 0]))
        rows.append((str(tests[-1].n), *(f"{value:.3f}" for value in np.nanmean(scores.values[:, 0], axis=1).tolist())))
    adjusted = judged.stats.adjust([one.p for one in tests], "holm")
    shown = tuple(
        (f"assessor {at}", *row, f"{one.difference:+.3f} [{one.interval[0]:.2f}, {one.interval[1]:.2f}]", shown_p(p))
        for at, (row, one, p) in enumerate(zip(rows, tests, adjusted.tolist(), strict=True), 1)
        if one.interval
    )
    head = ("judged by", "topics", "bm25base_p", "idst_bert_p1", "difference [95 % interval]", "p after Holm")
    convinced = int((adjusted <= ALPHA).sum())
    said = (
        "Eight people judged parts of TREC Deep Learning 2019 again, two people each part. Is a neural run better"
        f" than BM25 whoever judges? nDCG@10 by each one's own grades, on their own topics: {convinced} of {len(tests)}"
        " see the difference beyond luck. How far the eight agree about documents, and about all 37 systems, is on"
        " [another page](dl19.md)."
    )
    return "\n\n".join(["## Eight assessors", wrapped(said), TextTable(head, shown).markdown()])


def web(folder: Path) -> str:
    """Spam filtered or not: which part of the loss the filter changes, and how much of it is known."""
    qrels = folder / "qrels" / "qrels.web.151-200.txt"
    stems = ("ql_cata", "rm_cata", "ql_catb", "rm_catb")
    rows: list[tuple[str, ...]] = []
    for stem in stems:
        plain, filtered = (
            judged.Run.scan(folder / "runs" / f"indri_{stem}{end}.run.gz", name=f"{stem}{end}")
            for end in ("", "-filtered")
        )
        found = judged.stages(qrels, filtered, baseline=plain)
        changes = [f"{one.result.difference:+.4f} (p {shown_p(one.result.decisive_p)})" for one in found.changes]
        shares = judged.evaluate(qrels, [plain, filtered], "Judged@10").aggregate()
        known = " to ".join(f"{share['Judged@10']:.0%}" for share in shares.values())
        rows.append((stem, *changes, known))
    said = (
        "Four Indri runs over ClueWeb09 for the Web track of 2012, before and after a spam filter: the change of"
        " nDCG@10, and its exact split; then how much of the first 10 is judged, before and after. In parentheses the"
        " p-value of the randomization test; of the parts after Holm."
    )
    head = ("run", "nDCG@10", "by candidates", "by ranking", "judged of the first 10")
    return "\n\n".join(["## With and without spam", wrapped(said), TextTable(head, tuple(rows)).markdown(), WEB])


def shown_p(p: float) -> str:
    """Write a p-value for a table."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def chosen(scores: judged.Scores, names: list[str]) -> judged.Scores:
    """Leave some runs."""
    from dataclasses import replace

    rows = [scores.run_names.index(name) for name in names]
    return replace(
        scores,
        runs=tuple(scores.runs[at] for at in rows),
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
