"""A printed number never seems to be a bound that it did not reach."""

from __future__ import annotations

import math

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from judged.cli.main import app
from judged.interface.pages.filters import score, signed
from judged.results.decimals import decimal
from judged.scoring.explanation.sheets import format_number


@given(st.floats(-2, 2), st.integers(1, 6))
def test_only_a_bound_is_written_as_one(value: float, digits: int) -> None:
    written = float(decimal(value, digits))
    assert math.isclose(written, value, rel_tol=0.06, abs_tol=0.5 * 10.0**-digits)
    for bound in (0.0, 1.0, -1.0):
        near = 0 < abs(value - bound) <= 1e-11
        if not near and value != bound:
            assert written != bound


@pytest.mark.parametrize(("value", "seems"), [(0.99999, 1.0), (0.00001, 0.0), (1 - 1e-9, 1.0), (-0.00002, 0.0)])
def test_every_face_writes_so(value: float, seems: float) -> None:
    for written in (decimal(value), decimal(value, 3), score(value), signed(value), format_number(value)):
        assert float(written.replace("\N{MINUS SIGN}", "-")) != seems


def test_an_accuracy_just_below_1_and_the_digits_that_are_asked_for(tmp_path) -> None:
    """It printed as 1.0000."""
    (tmp_path / "a.qrels").write_text("q 0 a 1\n")
    (tmp_path / "a.run").write_text("q Q0 b 1 1 t\n")
    asked = ["evaluate", str(tmp_path / "a.qrels"), str(tmp_path / "a.run"), "-m", "Accuracy(n=200000)", "--ci", "none"]
    assert "0.99999" in CliRunner().invoke(app, asked).output
    assert "1.0000" not in CliRunner().invoke(app, asked).output
    (tmp_path / "a.run").write_text("q Q0 a 1 1 t\n")
    output = CliRunner().invoke(app, [*asked[:3], "-m", "P@3", "--ci", "none", "--digits", "9"]).output
    assert "0.333333333" in output
    assert "0.3333333333" not in output
