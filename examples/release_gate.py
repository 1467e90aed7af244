"""Compare a release candidate with the production system, decide, and write a report.

    python examples/release_gate.py CANDIDATE FOLDER

CANDIDATE is a run of the sample, such as rrf or tfidf. FOLDER gets gate.md for the pull request, gate.xml (JUnit) for
CI, and report.html. The exit code is that of the gate: 0 pass, 1 fail, 2 invalid input.
"""

from __future__ import annotations

import sys
from pathlib import Path

import judged
from judged.data import sample

CONFIG = {
    "gate": {"alpha": 0.05, "correction": "holm"},
    "slice": [{"name": "known-item", "expression": "query_class == 'known-item'"}],
    "check": [
        {"measure": "nDCG@10", "margin": 0.02},
        {"measure": "R(rel=2)@50", "margin": 0.03},
        {"measure": "RR(rel=2)", "margin": 0.05, "slice": "known-item"},
    ],
}


def main(candidate: str = "rrf", folder: str = "release") -> int:
    """Decide, write the reports, and return the exit code."""
    output_folder = Path(folder)
    output_folder.mkdir(parents=True, exist_ok=True)
    runs = {name: sample.FOLDER / "runs" / f"{name}.run.gz" for name in ("bm25", candidate)}
    queries = sample.FOLDER / "queries.jsonl"

    decision = judged.gate(sample.qrels(), runs["bm25"], runs[candidate], CONFIG, attributes=queries)
    (output_folder / "gate.md").write_text(decision.markdown(), encoding="utf-8")
    (output_folder / "gate.xml").write_text(decision.junit(), encoding="utf-8")

    report = judged.report(sample.qrels(), runs, queries=queries, baseline="bm25", title=f"{candidate} after bm25")
    report.save(output_folder / "report.html")

    print(decision.sentences[0])
    return decision.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
