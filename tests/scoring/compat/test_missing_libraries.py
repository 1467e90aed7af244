"""What the doors say where the library behind them is not installed."""

from __future__ import annotations

import importlib
import sys

import pytest

from judged import MissingExtraError


def test_without_ir_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)  # an import of it fails now
    monkeypatch.delitem(sys.modules, "judged.scoring.compat.ir_measures", raising=False)
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module("judged.scoring.compat.ir_measures")
    assert str(caught.value) == "ir_measures is not installed. Fix: pip install ir_measures."
