"""The plugin of pytest: a test fails if the gate fails, and baselines are kept beside the tests."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from judged import Run, gate
from stand_ins import PYTEST_PLUGIN

pytest_plugins = ["pytester"]
PLUGIN = "judged.integrations.pytest_plugin"
TESTS = """
import pytest
QRELS = {f"q{i}": {"d": 1} for i in range(30)}
GOOD = {topic: ["d"] for topic in QRELS}
BAD = {topic: ["x", "d"] for topic in QRELS}
"""


@pytest.fixture(scope="module", autouse=True)
def _imported():
    """Import all that a gate needs: `pytester` forgets what is imported inside, and NumPy is imported only once."""
    gate({f"q{i}": {"d": 1} for i in range(12)}, {"q1": ["d"]}, {"q1": ["d"]}, measures="RR", margin=0.01)


@pytest.fixture
def run(pytester):
    """Run a test file whose body is given, in a folder of its own."""

    def run_tests(body: str, *options: str, head: str = TESTS) -> pytest.RunResult:
        pytester.makepyfile(test_search=head + body)
        return pytester.runpytest_inprocess(*PYTEST_PLUGIN, "-p", "no:cacheprovider", "-W", "default", *options)

    return run_tests


def test_a_loss_fails_with_the_table_and_an_equal_run_passes(run):
    result = run(
        """
def test_bad(judged_gate):
    judged_gate(GOOD, BAD, qrels=QRELS, measures="RR", margin=0.1)

def test_good(judged_gate):
    assert judged_gate(GOOD, GOOD, qrels=QRELS, measures="RR", margin=0.1).status == "pass"

def test_within_the_margin(judged_gate):
    judged_gate(GOOD, BAD, qrels=QRELS, measures="RR", margin=0.6)
"""
    )
    result.assert_outcomes(passed=2, failed=1)
    row = "fail    RR       all * 1.0000 * 0.5000 *-0.5000*"
    result.stdout.fnmatch_lines(["FAIL: *", "status  measure  slice*", row])
    assert "Traceback" not in result.stdout.str()
    assert "pytest_plugin.py" not in result.stdout.str()  # no source of the plugin


def test_an_inconclusive_gate_warns(run):
    body = """
def test_unclear(judged_gate):
    mixed = {topic: BAD[topic] if i < 6 else GOOD[topic] for i, topic in enumerate(QRELS)}
    result = judged_gate(GOOD, mixed, qrels=QRELS, measures="RR", margin=0.1)
    assert result.status == "inconclusive"
"""
    result = run(body)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*JudgedWarning: INCONCLUSIVE*"])
    run(body, "-W", "error::judged.JudgedWarning").assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('GOOD, {"other": ["d"]}, qrels={"q": {"d": 1}}, measures="RR", margin=0.1', "*Fix: *"),
        ('GOOD, BAD, qrels=QRELS, measures="RX", margin=0.1', "*RX*Fix: *"),
        ('GOOD, BAD, measures="RR", margin=0.1', "no judgments. Fix: pass qrels=*"),
        ('GOOD, BAD, qrels="no.txt", measures="RR", margin=0.1', "no.txt: *Fix: *"),
    ],
)
def test_invalid_input_fails_with_one_line(run, arguments, message):
    result = run(f"def test_input(judged_gate):\n    judged_gate({arguments})\n")
    assert result.ret == 1
    result.stdout.fnmatch_lines([message])
    assert not [line for line in result.outlines if line.startswith(">")]  # no source lines of a traceback


def test_snapshot_of_a_missing_run_fails_with_one_line_and_names_may_have_folders(run, pytester):
    body = """
def test_missing(judged_gate):
    judged_gate.snapshot("a", "no.run", qrels=QRELS, measures="RR", margin=0.1)

def test_folder(judged_gate):
    judged_gate.snapshot("fast/bm25", GOOD, qrels=QRELS, measures="RR", margin=0.1)
"""
    result = run(body, "--judged-update")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["no.run: *Fix: *"])
    assert (pytester.path / "judged_snapshots" / "fast" / "bm25.run").is_file()


def test_judgments_of_the_setting_or_of_an_own_fixture(run, pytester):
    test = """
def test_search(judged_gate):
    judged_gate(GOOD, GOOD, measures="RR", margin=0.1)
"""
    (pytester.path / "data").mkdir()
    (pytester.path / "data" / "qrels.txt").write_text("".join(f"q{i} 0 d 1\n" for i in range(30)))
    run(test, "-o", "judged_qrels=data/qrels.txt").assert_outcomes(passed=1)
    own = "\n@pytest.fixture\ndef judged_qrels():\n    return QRELS\n"
    run(own + test).assert_outcomes(passed=1)


def test_a_baseline_is_written_compared_and_updated(run, pytester):
    def test(run_name):
        return f"""
def test_search(judged_gate):
    judged_gate.snapshot("search", {run_name}, qrels=QRELS, measures="RR", margin=0.1)
"""

    path = pytester.path / "judged_snapshots" / "search.run"
    missing = run(test("GOOD"))
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*search.run: *Fix: run pytest --judged-update*"])
    assert not path.exists()

    run(test("GOOD"), "--judged-update").assert_outcomes(passed=1)
    good = path.read_bytes()
    assert Run.read(path).table.select(["query_id", "doc_id"]).num_rows == 30
    run(test("GOOD")).assert_outcomes(passed=1)

    worse = run(test("BAD"))
    worse.assert_outcomes(failed=1)
    worse.stdout.fnmatch_lines(["FAIL: search against search (snapshot): *"])
    assert path.read_bytes() == good  # a failure does not change the baseline

    run(test("BAD"), "--judged-update").assert_outcomes(passed=1)
    assert path.read_bytes() != good
    run(test("BAD")).assert_outcomes(passed=1)


def test_scores_and_ties_of_a_baseline_are_kept(run, pytester):
    body = """
SCORES = {topic: {"x": 0.1 + 0.2, "d": 0.3, "e": 0.3} for topic in QRELS}
def test_search(judged_gate):
    judged_gate.snapshot("ties", SCORES, qrels=QRELS, measures="RR", margin=0.1)
"""
    run(body, "--judged-update")
    baseline = Run.read(pytester.path / "judged_snapshots" / "ties.run")
    assert baseline.table["score"].to_pylist()[:3] == [0.1 + 0.2, 0.3, 0.3]


def test_nothing_of_judged_is_imported_until_a_test_uses_it(tmp_path):
    (tmp_path / "test_own.py").write_text(
        "import sys\n\n"
        "def test_modules():\n"
        "    print(sorted(name for name in sys.modules if name.startswith(('judged', 'numpy'))))\n"
    )
    command = [sys.executable, "-m", "pytest", *PYTEST_PLUGIN, "-p", "no:cacheprovider", "-s", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert f"{['judged', 'judged.components', 'judged.integrations', PLUGIN]}" in done.stdout
