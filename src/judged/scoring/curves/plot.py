"""Curves drawn with characters: fine lines of braille dots, and on each line the letter of its run."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np

from judged.results import TEXT, Column, Table
from judged.results.charts import Scale, by_cutoff, even, round_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.results.types import Floats
    from judged.scoring.curves.answer import Curves

_LETTERS = ascii_lowercase + ascii_uppercase
_SEVERAL = "*"
_DOTS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))
"""The bits of a braille character, from the lowest row of dots up, left and right."""
_COLOURS = (36, 33, 35, 32, 34, 31)  # of terminals, those that show on black and on white
_APART = 14  # columns between two letters on one line
_LEAST_WIDTH, _LEAST_HEIGHT = 24, 6


@dataclass(frozen=True)
class _Frame:
    """The axes, and how large the area between them is, in characters."""

    across: Scale
    up: Scale
    columns: int
    rows: int

    def place(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Give columns and rows, as fractions: (K,) and (K,) without the points that are missing."""
        known = ~(np.isnan(x) | np.isnan(y))
        return self.across.share(x[known]) * (self.columns - 1), self.up.share(y[known]) * (self.rows - 1)


class _Canvas:
    """A grid of characters; each keeps which run it belongs to."""

    def __init__(self, columns: int, rows: int) -> None:
        self.dots = np.zeros((rows, columns), dtype=np.int64)
        self.letters = np.full((rows, columns), "", dtype=object)
        self.owner = np.full((rows, columns), -1, dtype=np.int64)

    def draw(self, column: Floats, row: Floats, run: int) -> None:
        """Draw a line through points in dots; later runs go over earlier ones."""
        x, y = (column + 0.5) * 2, (row + 0.5) * 4
        for across, up in _steps(x, y):
            cell = int(up) // 4, int(across) // 2
            self.dots[cell] |= _DOTS[int(up) % 4][int(across) % 2]
            self.owner[cell] = run

    def trace(self, column: Floats, row: Floats, letter: str, run: int) -> None:
        """Draw a line through points in letters; the first run that was there stays."""
        for across, up in _steps(column + 0.5, row + 0.5):
            if not self.letters[int(up), int(across)]:
                self.letters[int(up), int(across)], self.owner[int(up), int(across)] = letter, run

    def mark(self, column: Floats, row: Floats, letter: str, run: int) -> None:
        """Put a letter on points; an asterisk where there is another letter already."""
        for cell in dict.fromkeys(
            zip((row + 0.5).astype(int).tolist(), (column + 0.5).astype(int).tolist(), strict=True)
        ):
            taken = self.letters[cell] not in {"", ".", letter}
            self.letters[cell], self.owner[cell] = (_SEVERAL, -1) if taken else (letter, run)

    def lines(self, *, colour: bool) -> list[str]:
        """Give the rows from the top down."""
        return [
            "".join(self._cell(row, at, colour=colour) for at in range(self.dots.shape[1])).rstrip()
            for row in reversed(range(len(self.dots)))
        ]

    def _cell(self, row: int, column: int, *, colour: bool) -> str:
        letter, dots, owner = self.letters[row, column], int(self.dots[row, column]), int(self.owner[row, column])
        text = letter or (chr(0x2800 + dots) if dots else " ")
        return _coloured(text, owner, bold=bool(letter)) if colour and owner >= 0 else text


def plot(curves: Curves, width: int, height: int, *, ascii_only: bool, colour: bool) -> str:
    """Draw curves with axes, and below them which letter is which run, with some of the numbers."""
    frame, left = _frame(curves, max(width, _LEAST_WIDTH), max(height, _LEAST_HEIGHT))
    canvas = _Canvas(frame.columns, frame.rows)
    places = [frame.place(x, mean) for x, mean in zip(curves.x, curves.mean, strict=True)]
    for run, place in enumerate(places):
        sparse = len(place[0]) <= frame.columns // 6
        if ascii_only:
            canvas.trace(*place, "." if sparse else _letter(run), run)
        else:
            canvas.draw(*place, run)
    for run, place in enumerate(places):
        canvas.mark(*_marked(place, run, len(places), frame.columns), _letter(run), run)
    drawn = _with_axes(frame, canvas.lines(colour=colour), left, curves.labels, ascii_only=ascii_only)
    several = [f"{_SEVERAL}  several runs"] if (canvas.letters == _SEVERAL).any() else []
    return "\n".join([*drawn, "", *_legend(curves, width, colour=colour), *several])


def _frame(curves: Curves, width: int, height: int) -> tuple[_Frame, int]:
    """Choose the axes so that each number on the left one has a row of its own; and the width of these numbers."""
    up = even(curves.mean, max(1, (height - 3) // 3))
    if curves.how == "cutoff":
        across = by_cutoff(curves.points)
    else:
        across = even(np.array([0.0, 1.0]) if curves.how == "interpolated" else np.append(curves.x, 0.0), 5)
    steps = len(up.ticks) - 1
    left = max(map(len, _numbers(up)))
    columns = width - left - 3 - len(curves.labels[0]) - 1
    return _Frame(across, up, columns, steps * max(1, (height - 4) // steps) + 1), left


def _marked(place: tuple[Floats, Floats], run: int, runs: int, columns: int) -> tuple[Floats, Floats]:
    """Choose where the letter of a run stands: at its points, or where there are many, now and then on the line."""
    column, row = place
    if len(column) <= columns // 6:
        return place
    apart = max(_APART, 2 * runs)
    at = np.arange(apart * (2 * run + 1) // (2 * runs), columns, apart, dtype=np.float64)
    at = at[(at >= column[0]) & (at <= column[-1])]
    return (at, np.interp(at, column, row)) if len(at) else (column[-1:], row[-1:])


def _with_axes(frame: _Frame, lines: list[str], left: int, labels: tuple[str, str], *, ascii_only: bool) -> list[str]:
    side, tick, corner, level, notch = "|++-+" if ascii_only else "│┤└─┬"
    rows = np.rint(frame.up.share(np.array(frame.up.ticks)) * (frame.rows - 1)).astype(int).tolist()
    named = {frame.rows - 1 - row: text for row, text in zip(rows, _numbers(frame.up), strict=True)}
    drawn = [labels[1]] + [
        f"{named.get(at, ''):>{left}} {tick if at in named else side} {line}".rstrip() for at, line in enumerate(lines)
    ]
    places = np.rint(frame.across.share(np.array(frame.across.ticks)) * (frame.columns - 1)).astype(int).tolist()
    axis, below, free = [level] * frame.columns, [" "] * (left + 3 + frame.columns + left), 0
    for at, text in sorted(zip(places, _numbers(frame.across), strict=True)):
        start = left + 3 + at - (len(text) - 1) // 2
        if start >= free:
            axis[at] = notch
            below[start : start + len(text)] = text
            free = start + len(text) + 1
    return [*drawn, f"{'':>{left}} {corner}{level}{''.join(axis)} {labels[0]}", "".join(below).rstrip()]


def _legend(curves: Curves, width: int, *, colour: bool) -> list[str]:
    """Say which letter is which run, and give as many numbers as fit."""
    known = np.flatnonzero(~np.isnan(curves.mean).any(axis=0))
    some = known[round_of(curves.points[known], 3)].tolist() if len(known) else []
    wishes = (some[:1] + some[len(some) // 2 :][:1] + some[-1:], some[:1] + some[-1:], some[-1:])
    tables = (_legend_of(curves, list(dict.fromkeys(wish))) for wish in wishes if wish)
    fitting = (lines for lines in tables if max(map(len, lines)) <= width)
    lines = next(fitting, None) or _legend_of(curves, [])[1:]
    if colour:
        at = len(lines) - len(curves.run_names)
        lines[at:] = [_coloured(line[0], run, bold=True) + line[1:] for run, line in enumerate(lines[at:])]
    return lines


def _legend_of(curves: Curves, shown: list[int]) -> list[str]:
    """Write a table of runs with the numbers at some points."""
    head = {"cutoff": "k", "interpolated": "recall", "raw": "precision, k"}[curves.how]
    runs = range(len(curves.run_names))
    columns = [Column("letter", [_letter(run) for run in runs], TEXT, ""), Column("run", curves.run_names, TEXT)]
    columns += [curves.values("value", (slice(None), at), f"{head}={curves.points[at]:.12g}") for at in shown]
    return Table("legend", tuple(columns), labels=2).text().splitlines()


def _numbers(scale: Scale) -> list[str]:
    """Write the numbers of an axis, all with the same decimals."""
    return [f"{tick:.{scale.decimals}f}" for tick in scale.ticks]


def _steps(x: Floats, y: Floats) -> Iterable[tuple[float, float]]:
    """Walk along a line through points in steps of at most one."""
    yield from zip(x[:1].tolist(), y[:1].tolist(), strict=True)
    for at in range(1, len(x)):
        count = max(1, int(np.ceil(max(abs(x[at] - x[at - 1]), abs(y[at] - y[at - 1])))))
        part = np.arange(1, count + 1) / count
        yield from zip(
            (x[at - 1] + part * (x[at] - x[at - 1])).tolist(),
            (y[at - 1] + part * (y[at] - y[at - 1])).tolist(),
            strict=True,
        )


def _letter(run: int) -> str:
    return _LETTERS[run % len(_LETTERS)]


def _coloured(text: str, run: int, *, bold: bool) -> str:
    return f"\x1b[{'1;' * bold}{_COLOURS[run % len(_COLOURS)]}m{text}\x1b[0m"
