"""Unless something else is asked for, intervals are of 95% and tests at 5%."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from judged.studies import crossed, effects, outcomes, planning, preference, study_report
from judged.studies import crossed as mixed_model
from judged.studies import outcomes as measures
from judged.studies import questionnaires as scoring

_OTHER = {"outcomes"}  # its level is a grade


@pytest.mark.parametrize(
    "module", [crossed, effects, measures, mixed_model, outcomes, planning, preference, scoring, study_report]
)
def test_levels_and_alphas_are_the_usual_ones(module: Any) -> None:
    functions = [
        function
        for owner in (module, *(value for value in vars(module).values() if inspect.isclass(value)))
        for name, function in inspect.getmembers(owner, inspect.isfunction)
        if function.__module__ == module.__name__ and name not in _OTHER
    ]
    usual = {"level": 0.95, "alpha": 0.05, "power": 0.8, "seed": 0}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            if name in usual and parameter.default is not parameter.empty:
                assert parameter.default == usual[name], (function.__qualname__, name)
