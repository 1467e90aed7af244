"""Write docs/dl19.md, about the 37 official passage runs of TREC Deep Learning 2019: ``dl19.py DATA``.

It shows their order, its uncertainty, and its dependence on assessors. DATA is a folder with ``dl19_passage`` and in it
``qrels``, ``runs``, and ``alt_qrels`` (eight assessors, language models). If the data is available, the tests compare
the page with the output.
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

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dl19.md"
QRELS = "dl19_passage/qrels/qrels.dl19-passage.txt"
MEASURE, ALPHA = "nDCG@10", 0.05
MODELS = {
    "GPT-4 (UMBRELA, graded)": ("umbrella_gpt-4_zeroshot_dl19", None),
    "GPT-4 (binary)": ("binary_gpt4_dl19", {"NIST": 2}),
    "GPT-4o (binary)": ("binary_gpt4o_dl19", {"NIST": 2}),
    "Llama 3.2 (binary)": ("binary_llama3.2_dl19", {"NIST": 2}),
    "EXAM (mean of self-rated grades)": ("qrels.mean.exam_selfrate_graded_dl19", None),
}


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Build the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        runs = sorted((data / "dl19_passage" / "runs").glob("*.gz"))
        scores = judged.evaluate(data / QRELS, runs, MEASURE)
        parts = [HEAD, order(scores), sureness(scores), judges(data, runs), TAIL]
    return "\n\n".join(parts) + "\n"


def order(scores: judged.Scores) -> str:
    """Report the ranking with intervals, and the last rank without a significant difference."""
    values, names = scores.values[:, 0, :], scores.run_names
    tests = judged.stats.randomized_tukey(values, resamples=100_000, seed=0)
    estimates = scores.estimates()
    ranking = sorted(range(len(names)), key=lambda run_index: -estimates[run_index].value)
    rows: list[tuple[str, ...]] = []
    for rank, run_index in enumerate(ranking, 1):
        low, high = estimates[run_index].ci or (0.0, 0.0)
        indistinguishable = [other for other in ranking if other != run_index and tests.p[run_index, other] >= ALPHA]
        last_rank = max([ranking.index(other) + 1 for other in indistinguishable], default=rank)
        if rank % 5 and 3 < rank <= len(ranking) - 3:
            continue
        rows.append(
            (
                str(rank),
                names[run_index],
                f"{estimates[run_index].value:.4f}",
                f"{low:.3f} to {high:.3f}",
                str(last_rank),
            )
        )
    pairs = np.triu(tests.p < ALPHA, 1).sum()
    head = ("place", "run", MEASURE, "95% interval", "no significant difference down to place")
    introduction = (
        f"{len(names)} runs, {scores.values.shape[2]} topics, {MEASURE}. Of {len(names) * (len(names) - 1) // 2} pairs,"
        f" {pairs} differ significantly by the randomized Tukey test (100,000 permutations within topics, seed 0,"
        f" family-wise alpha {ALPHA}). The table has the first three runs, every fifth run, and the last three."
    )
    return f"## Ranking\n\n{wrapped(introduction)}\n\n" + TextTable(head, tuple(rows), labels=2).markdown()


def sureness(scores: judged.Scores) -> str:
    """Report the detectable difference, and the reliability of the ranking."""
    values = scores.values[:, 0, :]
    results = [
        judged.stats.plan(values),
        judged.stats.reliability(values),
        judged.stats.stability(values, resamples=1000, seed=0),
    ]
    lines = [wrapped(f"- {result.sentence}", "  ") for result in results]
    return "## Reliability of the ranking\n\n" + "\n".join(lines)


def judges(data: Path, runs: list[Path]) -> str:
    """Compare rankings by the official judgments with rankings by other judges, on pairs that both judged."""
    folder = data / "dl19_passage" / "alt_qrels"
    official = judged.Qrels.read(data / QRELS)
    official = judged.Qrels(official.table, "NIST", official.where)
    people = sorted((folder / "human_main").glob("*.txt"))
    judge_files = [(f"assessor {number}", path, None) for number, path in enumerate(people, 1)]
    judge_files += [(name, folder / "llm" / f"{stem}.txt.gz", rel) for name, (stem, rel) in MODELS.items()]
    rows: list[tuple[str, ...]] = []
    for name, path, rel in judge_files:
        other = judged.Qrels.read(path)
        agreement = judged.agree(
            official, judged.Qrels(other.table, name, other.where), runs=runs, measures=MEASURE,
            rel=None if rel is None else {"NIST": 2, name: 1},
        )  # fmt: skip
        pair, effect = agreement.pairs[0], agreement.systems[0]
        alpha = pair.alpha
        low, high = alpha.interval or (float("nan"),) * 2
        rows.append(
            (name, str(effect.n), f"{alpha.value:.3f} [{low:.2f}, {high:.2f}]", f"{effect.tau.value:.3f}",
             f"{effect.tau_ap.value:.3f}", str(effect.tau.discordant), f"{effect.largest_change:.3f}")
        )  # fmt: skip
    head = ("judge", "topics", "alpha with NIST", "tau", "tau_AP", "reversed pairs", "largest change of a mean")
    introduction = (
        "The grades of each judge replace the official grades, on documents that both judged. Alpha is Krippendorff's"
        " alpha for ordinal grades; for binary judges, official grades of 2 and 3 are relevant. tau and tau_AP compare"
        " the two rankings of the 37 systems."
    )
    return f"## Other judges\n\n{wrapped(introduction)}\n\n" + TextTable(head, tuple(rows)).markdown()


def wrapped(text: str, indent: str = "") -> str:
    """Wrap a paragraph or a list item."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_on_hyphens=False)


HEAD = """# Case study: 37 systems of TREC Deep Learning 2019

**Question**: how reliable is the ranking of the 37 official passage runs, and how much does it depend on the judges?

**Data**: the first 100 documents of each topic in the official runs, the official judgments, and those of eight other
assessors and five language models. **Method**: confidence intervals, a randomized Tukey test of all pairs, split-half
stability, and a comparison of rankings under different judgments. `tools/dl19.py` writes this page."""

TAIL = """## Conclusion and limits

- Adjacent runs, except the last two, do not differ significantly. Differences below the detectable one are mostly
  chance, so the ranking orders groups of systems, not single systems.
- Assessors disagree far more about documents than about systems. Even with a low alpha, most of the ranking remains.
  The order of the best systems changes most: tau_AP, which weights the top, is lower than tau.
- The other assessors judged only 9 to 15 topics each.

To repeat the study: `python tools/dl19.py DATA`, with runs and judgments in `DATA/dl19_passage`."""


if __name__ == "__main__":
    sys.exit(main())
