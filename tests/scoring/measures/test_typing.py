"""Type checking of measures: names and types of their parameters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = """
from judged import AP, P, RBP, RR, nDCG
nDCG(cutoff=10, gain={1: 1, 2: 5}, discount="ln", judged_only=True, undefined="skip")
table: str | tuple[tuple[float, float], ...] = nDCG(gain="exp2").gain
measures: list[nDCG | AP | P | RR] = [nDCG(cutoff=5), nDCG @ 10, AP(rel=2), P(rel=2) @ 5, RR(which="last", rel=2)]
RBP(p=0.8, gain="graded", max="topic")
"""
WRONG = ("nDCG(cutof=10)", "nDCG(cutoff='ten')", "nDCG(discount='log3')", "nDCG(10)", "nDCG(gain=3)", "AP(rel='2')")


@pytest.mark.slow
def test_a_type_checker_knows_the_parameters_of_measures(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text("\n".join(["from judged import AP, nDCG", *WRONG]))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [
        (Path(diagnostic["file"]).name, diagnostic["range"]["start"]["line"])
        for diagnostic in json.loads(answer.stdout)["generalDiagnostics"]
        if diagnostic["severity"] == "error"
    ]
    assert sorted(errors) == [("wrong.py", line) for line in range(1, len(WRONG) + 1)]
