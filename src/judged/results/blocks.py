"""Blocks of an answer besides tables: sentences, charts, ranked lists, commands, and sections; and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from judged.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence


Severity: TypeAlias = Literal["error", "warning"]
"""``error``: the numbers of the subject are invalid. ``warning``: they require caution."""

MIN_GROUPED = 3
"""Number of subjects from which notes with the same rule are combined into one line."""


@dataclass(frozen=True)
class Note:
    """Warning or error about the numbers of a result.

    >>> print(Note("missing-topics", "no documents returned for 1 of 4 topics", "bm25", 1))
    bm25: no documents returned for 1 of 4 topics
    """

    rule: str  # stable short name of the kind of note, such as `missing-topics`
    text: str  # message without the subject
    subject: str = ""  # such as the name of a run; empty for the result as a whole
    weight: float = 0.0  # how much the subject is affected, compared with others of the same rule
    severity: Severity = "warning"
    of: str = "runs"  # plural noun for subjects

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


def lines(notes: Iterable[Note]) -> tuple[str, ...]:
    """Format notes, errors first; notes of one rule about three subjects or more are one line.

    >>> lines([Note("missing-topics", f"{n} topics missing", f"run{n}", n) for n in range(1, 60)])
    ('59 runs, worst run59, run58, run57; for run59: 59 topics missing',)
    >>> lines([Note("extra-topics", "no judgments for 12 topics", run, 12) for run in "abcdefgh"])
    ('8 runs, such as a, b, c: no judgments for 12 topics',)
    >>> lines([Note("left-out", f"{n} topics left out", run) for run in "ab" for n in (3, 4)])
    ('a: 3 topics left out', 'a: 4 topics left out', 'b: 3 topics left out', 'b: 4 topics left out')
    """
    return tuple(text for _, text in with_severity(notes))


def with_severity(notes: Iterable[Note]) -> tuple[tuple[Severity, str], ...]:
    """Format notes as in `lines`, and return each line with its severity.

    >>> with_severity([Note("a", "ties"), Note("b", "no ranking", severity="error")])
    (('error', 'no ranking'), ('warning', 'ties'))
    """
    ordered = sorted(notes, key=lambda note: note.severity != "error")
    subjects_per_rule = Counter(rule for rule, _ in {(note.rule, note.subject) for note in ordered if note.subject})
    groups: dict[str | Note, list[Note]] = {}
    for note in ordered:
        is_grouped = note.subject and subjects_per_rule[note.rule] >= MIN_GROUPED
        groups.setdefault(note.rule if is_grouped else note, []).append(note)
    return tuple((group[0].severity, _grouped_line(group)) for group in groups.values())


def first_few(names: Sequence[str], limit: int = 5) -> str:
    """List some of many names and their number; a single name is never left out.

    >>> first_few(["q1", "q2", "q3"], 2), first_few(["q1", "q2", "q3"], 1)
    ('q1, q2, q3', 'q1, ... (3 in all)')
    """
    return ", ".join(names) if len(names) <= limit + 1 else f"{', '.join(names[:limit])}, ... ({len(names)} in all)"


def _grouped_line(group: Sequence[Note]) -> str:
    """Format notes of one rule: number of subjects, the three most affected, and the common or the worst text."""
    if len(group) < MIN_GROUPED:
        return str(group[0])
    worst = sorted(group, key=lambda note: -note.weight)
    names = list(dict.fromkeys(note.subject for note in worst))
    n_names = len(names) if len(names) <= MIN_GROUPED + 1 else MIN_GROUPED
    relation = "worst" if worst[0].weight > worst[-1].weight else "such as" if n_names < len(names) else "namely"
    subjects = f"{len(names)} {worst[0].of}, {relation} {', '.join(names[:n_names])}"
    is_same_text = all(note.text == worst[0].text for note in group)
    return f"{subjects}: {worst[0].text}" if is_same_text else f"{subjects}; for {worst[0]}"


@dataclass(frozen=True, eq=False, repr=False)
class Sentences:
    """Sentences with a title; text in backticks is code."""

    texts: tuple[str, ...]
    name: str = "sentences"
    title: str = ""
    folded: bool = False  # whether it is hidden unless requested by name


@dataclass(frozen=True, eq=False, repr=False)
class Code:
    """Commands or files to copy."""

    texts: tuple[str, ...]
    name: str = "commands"
    title: str = ""
    folded: bool = False  # whether it is hidden unless requested by name


class ReferenceLine(NamedTuple):
    """Reference line across a chart."""

    axis: Literal["x", "y"]
    value: float
    dashed: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """Chart of a table, with its message as a sentence.

    Rows without a number are omitted. Intervals of the columns are drawn; tooltips show the visible columns.

    Parameters
    ----------
    name
        One word of letters and digits; also its file name.
    title, subtitle
        Content of the chart, and explanation.
    table
        Data.
    sentence
        Text alternative: the main message.
    kind
        ``dots`` with intervals and ``bars`` (horizontal, one row per name), ``columns`` (vertical, without names),
        ``points`` (two numbers), or ``lines``.
    x, y
        Columns of the axes; for dots and bars `y` has names.
    x2
        Column of the ends of bars that extend from `x`.
    x_title, y_title
        Titles of the axes. Default: headings of the columns.
    color, colors
        Column of the series, and colors by name, which set the order of the series.
    highlighted
        Series of dots and lines that are drawn in color, the others in gray. If it is empty and there are more than
        eight series, each has a panel.
    legend
        Whether there is a legend of colors.
    hollow
        Boolean column: which marks are hollow.
    label
        Column of point labels.
    faint
        Boolean column: which points are small, gray, and without label.
    facet
        Column of panels, which share their axes.
    corners
        Labels of the corners of points: upper right, lower right, upper left, lower left.
    diagonal
        Whether points have a line of equal numbers.
    path
        Boolean column: which points are joined by a line with the Vega-Lite interpolation `steps`.
    lines
        Reference lines.
    band
        Column of points with intervals that are drawn as an area.
    spread
        Scale of `x`: ``cutoff`` for integers from first to last, ``amount`` (logarithmic if the range is wide), or
        ``time`` for milliseconds since 1970 in UTC.
    logarithmic
        Whether the axis `y` is logarithmic, if all values are at least 1.
    percent
        Axes in percent: ``x``, ``y``, or ``xy``.
    from_zero
        Whether the axis `x` includes 0.
    includes
        Values that the axis ``x`` or ``y`` must include.
    width, height
        In pixels; None for an automatic height.
    numbers
        Shorter table for people. Default: `table`.
    draw
        Function that draws the chart with altair instead of `kind`; called only for pictures.
    folded
        Whether it is hidden unless requested by name.
    """

    name: str
    title: str
    table: Table
    sentence: str
    kind: Literal["dots", "bars", "columns", "points", "lines"] = "dots"
    x: str = "value"
    y: str = ""
    x2: str = ""
    x_title: str = ""
    y_title: str = ""
    color: str = ""
    colors: Mapping[str, str] = field(default_factory=dict[str, str])
    highlighted: tuple[str, ...] = ()
    legend: bool = True
    hollow: str = ""
    label: str = ""
    faint: str = ""
    facet: str = ""
    corners: tuple[str, ...] = ()
    diagonal: bool = False
    path: str = ""
    steps: str = "step-after"
    lines: tuple[ReferenceLine, ...] = ()
    band: str = ""
    spread: Literal["", "cutoff", "amount", "time"] = ""
    logarithmic: bool = False
    percent: str = ""
    from_zero: bool = False
    includes: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    subtitle: str = ""
    width: int = 460
    height: int | None = None
    numbers: Table | None = None
    draw: Callable[[], Any] | None = None
    folded: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class RankedDocument:
    """Document of a ranked list."""

    rank: str  # formatted rank
    doc_id: str
    grade: str = ""  # empty if it is unjudged
    relevant: bool | None = None  # None if it is unjudged
    best: bool = False  # whether it has the highest grade of the topic
    change: str = ""  # position in the other list, in a few words
    sign: str = ""  # the same for narrow columns: ``↑2``
    text: str = ""  # beginning of its text, if known


@dataclass(frozen=True, eq=False, repr=False)
class RankedList:
    """Ranked list: name of the run, comment, and first documents."""

    name: str
    sentence: str  # comment below the name
    items: tuple[RankedDocument, ...]  # in rank order


@dataclass(frozen=True, eq=False, repr=False)
class RankedLists:
    """Ranked lists of one topic, side by side."""

    name: str
    title: str
    sentences: tuple[str, ...]  # comments above the lists
    rankings: tuple[RankedList, ...]  # from left to right
    folded: bool = False  # whether it is hidden unless requested by name
    only: Literal["", "people"] = ""  # ``people`` if a table has the same data


@dataclass(frozen=True, eq=False, repr=False)
class Section:
    """Question and its answer, one of several."""

    name: str
    title: str
    blocks: tuple[Block, ...]  # content in reading order
    folded: bool = False  # whether it is hidden unless requested by name

    @property
    def sentences(self) -> tuple[str, ...]:
        """Answer in words: the sentences without a title."""
        return next((block.texts for block in self.blocks if isinstance(block, Sentences) and not block.title), ())


Block: TypeAlias = Table | Chart | RankedLists | Sentences | Code | Section


def rounded(blocks: Iterable[Block], digits: int | None) -> tuple[Block, ...]:
    """Return the blocks with `digits` decimals in tables for people; None: unchanged."""

    def rounded_block(block: Block) -> Block:
        match block:
            case Table():
                return block.rounded(digits)
            case Chart():
                numbers = None if block.numbers is None else block.numbers.rounded(digits)
                return replace(block, table=block.table.rounded(digits), numbers=numbers)
            case Section():
                return replace(block, blocks=rounded(block.blocks, digits))
            case _:
                return block

    return tuple(blocks) if digits is None else tuple(map(rounded_block, blocks))


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield all blocks, with sections replaced by their blocks."""
    for block in blocks:
        if isinstance(block, Section):
            yield from flat(block.blocks)
        else:
            yield block
