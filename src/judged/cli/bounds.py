"""Bounds of every option that takes a number: what no command can work with is refused before any work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 2**31 - 1
_MOST_OF = {"seed": 2**63 - 1, "resamples": 1_000_000}


def bounded(command: click.Command) -> click.Command:
    """Let a command, and those below it, refuse numbers that are none, endless, or too large to mean anything."""
    for param in command.params:
        if isinstance(param.type, click.types.IntParamType | click.types.FloatParamType):
            param.callback = _checked(param.callback)
    for below in getattr(command, "commands", {}).values():
        bounded(below)
    return command


def _checked(callback: Callable[..., Any] | None) -> Callable[..., Any]:
    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        most = _MOST_OF.get(param.name or "", _MOST)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise click.BadParameter(f"{number} is no number to work with.", ctx, param)
            if isinstance(number, int) and abs(number) > most:
                raise click.BadParameter(f"{number} is more than {most:,}.", ctx, param)
        return value if callback is None else callback(ctx, param, value)

    return check
