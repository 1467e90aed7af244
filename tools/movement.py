"""Write the part of docs/uncertainty.md on real runs, by evaluating them: ``movement.py DATA``.

DATA is a folder with ``robust03`` (TREC Robust 2003), ``cisi``, and ``dl19_passage`` (TREC Deep Learning 2019), each
with ``qrels`` and ``runs``. If the data is available, the tests compare the page with the output.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import judged
from judged.errors import JudgedWarning
from judged.results.escaping import TextTable

if TYPE_CHECKING:
    from judged import Scores

PAGE = Path(__file__).resolve().parents[1] / "docs" / "uncertainty.md"
_MARKS = re.compile(
    r"(<!-- written by tools/movement.py: begin -->\n).*?(<!-- written by tools/movement.py: end -->)", re.DOTALL
)

TIED = {
    "rutcor03100 (TREC Robust 2003)": ("robust03/qrels/robust03_qrels.txt", "robust03/runs/rutcor03100.run.gz"),
    "bm25l (CISI)": ("cisi/qrels/cisi.qrels", "cisi/runs/bm25l.run.gz"),
}
QRELS = "dl19_passage/qrels/qrels.dl19-passage.txt"
UNJUDGED = {
    "ICT-CKNRM_B50": "dl19_passage/runs_unmodified/ICT-CKNRM_B50.run.gz",
    "idst_bert_p1": "dl19_passage/runs_fulldepth_judged/idst_bert_p1.run.gz",
}
MEASURES = ("nDCG@10", "AP")
GRADED = ("nDCG@10", "AP(rel=2)", "R(rel=2)@100")


def main() -> int:
    """Update the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Return the page with an updated part on real runs."""
    text = PAGE.read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        new_text = f"{ties(data)}\n\n{unjudged(data)}\n"
    return _MARKS.sub(lambda match: match[1] + new_text + match[2], text)


def ties(data: Path) -> str:
    """Report how much the order of ties can change the scores of some runs."""
    rows: list[tuple[str, ...]] = []
    shares: list[str] = []
    for name, (qrels, run) in TIED.items():
        files = data / qrels, data / run
        tie_finding = next(finding for finding in judged.data.check_run(files[1]) if finding.rule == "ties")
        shares.append(f"{name.split()[0]}: {tie_finding.problem}.")
        bounds = judged.evaluate(*files, MEASURES, ties="bounds")
        mean = judged.evaluate(*files, MEASURES, ties="expected").aggregate()
        for row in bounds.estimates():
            score_range, (low, high), expected = row.ranges[0], row.ci or (0.0, 0.0), mean[row.run][row.measure]
            range_text = f"{score_range.low:.4f} to {score_range.high:.4f}"
            rows.append(
                (name, row.measure, f"{row.value:.4f}", f"{low:.3f} to {high:.3f}", f"{expected:.4f}", range_text)
            )
    head = ("run", "measure", "by document id", "95% CI over topics", "mean over all orders", "lowest to highest")
    return (
        "Ties of two runs. " + " ".join(shares) + "\n\n" + TextTable(head, tuple(rows), labels=2).markdown() + "\n\n"
        "If nearly all documents are tied, the order of the ids matters more than the choice of topics. If 1% are tied,"
        " at low ranks, the order has no effect."
    )


def unjudged(data: Path) -> str:
    """Report the share of judged documents, and the effect of unjudged documents on scores."""
    shares: list[tuple[str, ...]] = []
    rows: list[tuple[str, ...]] = []
    for run, path in UNJUDGED.items():
        files = data / QRELS, data / path
        judged_at = judged.evaluate(*files, ["Judged@10", "Judged@50", "Judged"]).aggregate()[run]
        shares.append((run, *(f"{value:.1%}" for value in judged_at.values())))
        scores = judged.evaluate(*files, GRADED, unjudged=True)
        condensed = _condensed(files, run)
        for row in scores.estimates(ci="none"):
            score_range = row.ranges[0]
            range_text = f"{score_range.low:.4f} to {score_range.high:.4f}" + (
                "" if score_range.kind == "exact" else f" ({score_range.kind})"
            )
            rows.append((run, row.measure, f"{row.value:.4f}", f"{condensed[row.measure]:.4f}", range_text))
    head = ("run", "judged: top 10", "top 50", "all returned documents")
    names = ("run", "measure", "unjudged = not relevant", "judged documents only", "lowest to highest")
    return (
        "Judged documents of two runs of TREC Deep Learning 2019 (passages):\n\n"
        + TextTable(head, tuple(shares)).markdown()
        + "\n\nScores of these runs, with bounds for the unjudged documents:\n\n"
        + TextTable(names, tuple(rows), labels=2).markdown()
        + "\n\nThe top 10 are judged, so nDCG@10 can only be lower: relevant documents at lower ranks would improve the"
        " ideal ranking. AP and recall include ranks where few documents are judged."
    )


def _condensed(files: tuple[Path, Path], run: str) -> dict[str, float]:
    condensed_measures = [judged.measures.parse(name).replace(judged_only=True) for name in GRADED]
    scores: Scores = judged.evaluate(*files, condensed_measures)
    return dict(zip(GRADED, scores.aggregate()[run].values(), strict=True))


if __name__ == "__main__":
    sys.exit(main())
