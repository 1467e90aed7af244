"""The results table of a paper: five systems against a baseline, tested and corrected, in LaTeX.

    python examples/paper_table.py > table.tex

Daggers mark significant differences from the baseline after correction; the caption names the test. Replace the paths
of the sample with your own.
"""

from __future__ import annotations

import sys

import judged
from judged.data import sample

SYSTEMS = ("bm25", "bm25_prf", "lm_dirichlet", "rrf", "tfidf")


def main() -> None:
    """Write the table to standard output, and non-significant differences to standard error."""
    runs = {name: sample.FOLDER / "runs" / f"{name}.run.gz" for name in SYSTEMS}
    measures = ["nDCG@10", "AP(rel=2)", "R(rel=2)@50"]
    comparison = judged.compare(sample.qrels(), runs, measures, baseline="bm25", test="t", correction="holm")
    print(f"% {comparison.caption}")
    print(
        comparison.leaderboard().latex()
    )  # comparison.latex() also has all pairs, with p and the detectable difference
    for table in comparison.measures:
        for pair in table.pairs:
            if not pair.significant:
                print(
                    f"{table.measure}, {pair.second} against {pair.first}: no significant difference", file=sys.stderr
                )


if __name__ == "__main__":
    main()
