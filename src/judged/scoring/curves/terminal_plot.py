"""Render curves for a terminal with braille dots or letters."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np

from judged.results import TEXT, Column, Table
from judged.results.charts import Scale, cutoff_scale, even_scale, round_positions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.results.types import Floats
    from judged.scoring.curves.answer import Curves

_LETTERS = ascii_lowercase + ascii_uppercase
_OVERLAP = "*"
_BRAILLE_BITS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))
"""Bits of the dots of a braille character, by row from the bottom and by column."""
_ANSI_COLORS = (36, 33, 35, 32, 34, 31)  # readable on black and on white
_MIN_SPACING = 14  # columns between two letters on one curve
_MIN_WIDTH, _MIN_HEIGHT = 24, 6


@dataclass(frozen=True)
class _Frame:
    """Scales of the axes, and the size of the plot area in characters."""

    x_scale: Scale
    y_scale: Scale
    columns: int
    rows: int

    def position(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return fractional columns and rows of the points that are not NaN."""
        mask = ~(np.isnan(x) | np.isnan(y))
        return self.x_scale.share(x[mask]) * (self.columns - 1), self.y_scale.share(y[mask]) * (self.rows - 1)


class _Canvas:
    """Grid of characters, each with the index of the run that it belongs to."""

    def __init__(self, columns: int, rows: int) -> None:
        self.dots = np.zeros((rows, columns), dtype=np.int64)
        self.letters = np.full((rows, columns), "", dtype=object)
        self.owner = np.full((rows, columns), -1, dtype=np.int64)

    def draw(self, columns: Floats, rows: Floats, run_index: int) -> None:
        """Draw a line in braille dots; a later run overwrites an earlier one."""
        x, y = (columns + 0.5) * 2, (rows + 0.5) * 4
        for dot_x, dot_y in _interpolate(x, y):
            cell = int(dot_y) // 4, int(dot_x) // 2
            self.dots[cell] |= _BRAILLE_BITS[int(dot_y) % 4][int(dot_x) % 2]
            self.owner[cell] = run_index

    def trace(self, columns: Floats, rows: Floats, letter: str, run_index: int) -> None:
        """Draw a line in letters; an earlier run is not overwritten."""
        for cell_x, cell_y in _interpolate(columns + 0.5, rows + 0.5):
            if not self.letters[int(cell_y), int(cell_x)]:
                self.letters[int(cell_y), int(cell_x)], self.owner[int(cell_y), int(cell_x)] = letter, run_index

    def mark(self, columns: Floats, rows: Floats, letter: str, run_index: int) -> None:
        """Draw a letter at points, or an asterisk if another letter is there."""
        for cell in dict.fromkeys(
            zip((rows + 0.5).astype(int).tolist(), (columns + 0.5).astype(int).tolist(), strict=True)
        ):
            is_occupied = self.letters[cell] not in {"", ".", letter}
            self.letters[cell], self.owner[cell] = (_OVERLAP, -1) if is_occupied else (letter, run_index)

    def lines(self, *, color: bool) -> list[str]:
        """Return the rows from top to bottom."""
        return [
            "".join(self._cell(row, column, color=color) for column in range(self.dots.shape[1])).rstrip()
            for row in reversed(range(len(self.dots)))
        ]

    def _cell(self, row: int, column: int, *, color: bool) -> str:
        letter, dots, owner = self.letters[row, column], int(self.dots[row, column]), int(self.owner[row, column])
        text = letter or (chr(0x2800 + dots) if dots else " ")
        return _color(text, owner, bold=bool(letter)) if color and owner >= 0 else text


def render(curves: Curves, width: int, height: int, *, ascii_only: bool, color: bool) -> str:
    """Render curves with axes, and below them a legend with the values at some points."""
    frame, tick_width = _frame(curves, max(width, _MIN_WIDTH), max(height, _MIN_HEIGHT))
    canvas = _Canvas(frame.columns, frame.rows)
    run_points = [frame.position(x, mean) for x, mean in zip(curves.x, curves.mean, strict=True)]
    for run, points in enumerate(run_points):
        is_sparse = len(points[0]) <= frame.columns // 6
        if ascii_only:
            canvas.trace(*points, "." if is_sparse else _letter(run), run)
        else:
            canvas.draw(*points, run)
    for run, points in enumerate(run_points):
        canvas.mark(*_letter_positions(points, run, len(run_points), frame.columns), _letter(run), run)
    plot_lines = _add_axes(frame, canvas.lines(color=color), tick_width, curves.labels, ascii_only=ascii_only)
    overlap_note = [f"{_OVERLAP}  several runs"] if (canvas.letters == _OVERLAP).any() else []
    return "\n".join([*plot_lines, "", *_legend(curves, width, color=color), *overlap_note])


def _frame(curves: Curves, width: int, height: int) -> tuple[_Frame, int]:
    """Return the frame, with at least one row between two ticks of the y-axis, and the width of the tick labels."""
    y_scale = even_scale(curves.mean, max(1, (height - 3) // 3))
    if curves.how == "cutoff":
        x_scale = cutoff_scale(curves.points)
    else:
        x_scale = even_scale(np.array([0.0, 1.0]) if curves.how == "interpolated" else np.append(curves.x, 0.0), 5)
    steps = len(y_scale.ticks) - 1
    tick_width = max(map(len, _tick_texts(y_scale)))
    columns = width - tick_width - 3 - len(curves.labels[0]) - 1
    return _Frame(x_scale, y_scale, columns, steps * max(1, (height - 4) // steps) + 1), tick_width


def _letter_positions(points: tuple[Floats, Floats], run: int, runs: int, columns: int) -> tuple[Floats, Floats]:
    """Return where to draw the letter of a run: at its points, or at intervals on the line if there are many."""
    column, row = points
    if len(column) <= columns // 6:
        return points
    spacing = max(_MIN_SPACING, 2 * runs)
    marked = np.arange(spacing * (2 * run + 1) // (2 * runs), columns, spacing, dtype=np.float64)
    marked = marked[(marked >= column[0]) & (marked <= column[-1])]
    return (marked, np.interp(marked, column, row)) if len(marked) else (column[-1:], row[-1:])


def _add_axes(frame: _Frame, lines: list[str], width: int, labels: tuple[str, str], *, ascii_only: bool) -> list[str]:
    # `width`: characters of the tick labels at the y-axis
    side, tick, corner, horizontal, notch = "|++-+" if ascii_only else "│┤└─┬"
    rows = np.rint(frame.y_scale.share(np.array(frame.y_scale.ticks)) * (frame.rows - 1)).astype(int).tolist()
    texts = {frame.rows - 1 - row: text for row, text in zip(rows, _tick_texts(frame.y_scale), strict=True)}
    plot = [labels[1]] + [
        f"{texts.get(i, ''):>{width}} {tick if i in texts else side} {line}".rstrip() for i, line in enumerate(lines)
    ]
    columns = np.rint(frame.x_scale.share(np.array(frame.x_scale.ticks)) * (frame.columns - 1)).astype(int).tolist()
    axis, tick_line, next_free = [horizontal] * frame.columns, [" "] * (width + 3 + frame.columns + width), 0
    for column, text in sorted(zip(columns, _tick_texts(frame.x_scale), strict=True)):
        start = width + 3 + column - (len(text) - 1) // 2
        if start >= next_free:
            axis[column] = notch
            tick_line[start : start + len(text)] = text
            next_free = start + len(text) + 1
    return [*plot, f"{'':>{width}} {corner}{horizontal}{''.join(axis)} {labels[0]}", "".join(tick_line).rstrip()]


def _legend(curves: Curves, width: int, *, color: bool) -> list[str]:
    """Return the legend, with values at as many of three points as fit into the width."""
    complete = np.flatnonzero(~np.isnan(curves.mean).any(axis=0))
    points = complete[round_positions(curves.points[complete], 3)].tolist() if len(complete) else []
    candidates = (points[:1] + points[len(points) // 2 :][:1] + points[-1:], points[:1] + points[-1:], points[-1:])
    tables = (_legend_table(curves, list(dict.fromkeys(candidate))) for candidate in candidates if candidate)
    fitting = (lines for lines in tables if max(map(len, lines)) <= width)
    lines = next(fitting, None) or _legend_table(curves, [])[1:]
    if color:
        first_run = len(lines) - len(curves.run_names)
        lines[first_run:] = [_color(line[0], run, bold=True) + line[1:] for run, line in enumerate(lines[first_run:])]
    return lines


def _legend_table(curves: Curves, points: list[int]) -> list[str]:
    head = {"cutoff": "k", "interpolated": "recall", "raw": "precision, k"}[curves.how]
    runs = range(len(curves.run_names))
    columns = [Column("letter", [_letter(run) for run in runs], TEXT, ""), Column("run", curves.run_names, TEXT)]
    columns += [
        curves.value_column("value", (slice(None), point), f"{head}={curves.points[point]:.12g}") for point in points
    ]
    return Table("legend", tuple(columns), labels=2).text().splitlines()


def _tick_texts(scale: Scale) -> list[str]:
    return [f"{tick:.{scale.decimals}f}" for tick in scale.ticks]


def _interpolate(x: Floats, y: Floats) -> Iterable[tuple[float, float]]:
    """Yield points on a line, at most 1 apart in each coordinate."""
    yield from zip(x[:1].tolist(), y[:1].tolist(), strict=True)
    for i in range(1, len(x)):
        num_steps = max(1, int(np.ceil(max(abs(x[i] - x[i - 1]), abs(y[i] - y[i - 1])))))
        fractions = np.arange(1, num_steps + 1) / num_steps
        yield from zip(
            (x[i - 1] + fractions * (x[i] - x[i - 1])).tolist(),
            (y[i - 1] + fractions * (y[i] - y[i - 1])).tolist(),
            strict=True,
        )


def _letter(run: int) -> str:
    return _LETTERS[run % len(_LETTERS)]


def _color(text: str, run: int, *, bold: bool) -> str:
    return f"\x1b[{'1;' * bold}{_ANSI_COLORS[run % len(_ANSI_COLORS)]}m{text}\x1b[0m"
