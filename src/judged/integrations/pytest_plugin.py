"""Plugin of pytest with the fixture `judged_gate`, which fails a test if a run is significantly worse than a baseline.

pytest loads this module at each start, so it imports no other module of judged until a test uses the fixture.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from judged.diagnosis.gates import GateResult

_WIDTH = 100  # columns of a failure message


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting of the plugin."""
    parser.addini("judged_qrels", "judgments for the fixture judged_gate: a file, relative to the root folder")
    parser.getgroup("judged").addoption(
        "--judged-update",
        action="store_true",
        help="write the baselines of judged_gate.snapshot instead of comparing with them",
    )


@pytest.fixture(scope="session")
def judged_qrels(pytestconfig: pytest.Config) -> Any:
    """Judgments of `judged_gate`, from the setting ``judged_qrels``; a test suite can define this fixture itself."""
    from judged.data import Qrels

    path = pytestconfig.getini("judged_qrels")
    if not path:
        pytest.fail("no judgments. Fix: pass qrels=..., or set judged_qrels in the configuration of pytest", False)
    return Qrels.read(pytestconfig.rootpath / path)


@pytest.fixture
def judged_gate(request: pytest.FixtureRequest) -> GateFixture:
    """Function that fails the test if a candidate is significantly worse than its baseline."""
    return GateFixture(request)


class GateFixture:
    """`judged.gate` as an assertion, and baselines that are kept beside the tests."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __call__(self, baseline: Any, candidate: Any, *, qrels: Any = None, **options: Any) -> GateResult:
        """Fail the test if a check or guardrail of the gate fails; warn if one is inconclusive.

        Parameters
        ----------
        baseline, candidate
            Runs, as for `judged.gate`.
        qrels
            Judgments. None: those of the fixture `judged_qrels`.
        options
            Options of `judged.gate`: ``measures`` and ``margin``, or ``config``.

        Returns
        -------
        GateResult
        """
        from judged.diagnosis.gates import gate
        from judged.errors import JudgedError, JudgedWarning

        try:
            judgments = self._request.getfixturevalue("judged_qrels") if qrels is None else qrels
            result = gate(judgments, baseline, candidate, **options)
        except JudgedError as error:
            pytest.fail(str(error), pytrace=False)
        if not result.passed:
            pytest.fail(_format_failure(result), pytrace=False)
        if result.status == "inconclusive":
            warnings.warn(result.verdict, JudgedWarning, stacklevel=2)
        return result

    def snapshot(self, name: str, run: Any, **options: Any) -> GateResult | None:
        """Compare a run with the baseline ``judged_snapshots/NAME.run`` beside the file of the test.

        With ``pytest --judged-update``, the run is written as the new baseline, and None is returned.

        Parameters
        ----------
        name
            Name of the baseline.
        run
            Run, as for `judged.gate`.
        options
            Judgments and options of the gate, as for a call.

        Returns
        -------
        GateResult or None
        """
        from judged.data import Run
        from judged.data.write import write_run
        from judged.errors import JudgedError

        path: Path = self._request.path.parent / "judged_snapshots" / f"{name}.run"
        try:
            candidate = Run.of(run, name=name)
        except JudgedError as error:
            pytest.fail(str(error), pytrace=False)
        if self._request.config.getoption("judged_update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_run(candidate, path)
            return None
        if not path.exists():
            pytest.fail(f"{path}: this baseline does not exist. Fix: run pytest --judged-update, and commit it", False)
        return self(Run.read(path, name=f"{name} (snapshot)"), candidate, **options)


def _format_failure(result: GateResult) -> str:
    from judged.results.text_formats import text

    blocks = [block for block in result.blocks() if block.name in {"verdict", "checks", "guardrails", "open"}]
    return text(blocks, _WIDTH)
