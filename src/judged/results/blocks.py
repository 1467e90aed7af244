"""What an answer is made of, beside typed tables: sentences, charts, ranked lists, commands, and sections of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from judged.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence


Severity: TypeAlias = Literal["error", "warning"]
"""``error``: the numbers of the subject mean nothing. ``warning``: they are to be read with it in mind."""

SEVERAL = 3
"""From so many subjects on, notes of one rule are one line."""


@dataclass(frozen=True)
class Note:
    """What should be known before numbers are used.

    >>> print(Note("missing-topics", "nothing returned for 1 of 4 topics", "bm25", 1))
    bm25: nothing returned for 1 of 4 topics
    """

    rule: str  # what kind of note it is: a short name that does not change, such as `missing-topics`
    text: str  # what is said, without its subject
    subject: str = ""  # of what, such as the name of a run; empty where it is of all of them
    weight: float = 0.0  # how much the subject is affected, against others by the same rule
    severity: Severity = "warning"  # whether numbers mean nothing, or are to be read with it in mind
    of: str = "runs"  # what its subject is one of

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


def lines(notes: Iterable[Note]) -> tuple[str, ...]:
    """Write notes for people, errors first: what is said of three subjects or more in one line for each rule.

    >>> lines([Note("missing-topics", f"{at} topics missing", f"run{at}", at) for at in range(1, 60)])
    ('59 runs, worst run59, run58, run57; for run59: 59 topics missing',)
    >>> lines([Note("extra-topics", "no judgments for 12 topics", run, 12) for run in "abcdefgh"])
    ('8 runs, such as a, b, c: no judgments for 12 topics',)
    >>> lines([Note("left-out", f"{at} topics left out", run) for run in "ab" for at in (3, 4)])
    ('a: 3 topics left out', 'a: 4 topics left out', 'b: 3 topics left out', 'b: 4 topics left out')
    """
    return tuple(text for _, text in with_severity(notes))


def with_severity(notes: Iterable[Note]) -> tuple[tuple[Severity, str], ...]:
    """Write notes as `lines` does, each line with its severity.

    >>> with_severity([Note("a", "ties"), Note("b", "no ranking", severity="error")])
    (('error', 'no ranking'), ('warning', 'ties'))
    """
    ordered = sorted(notes, key=lambda note: note.severity != "error")
    times = Counter(rule for rule, _ in {(note.rule, note.subject) for note in ordered if note.subject})
    kinds: dict[str | Note, list[Note]] = {}
    for note in ordered:
        grouped = note.subject and times[note.rule] >= SEVERAL
        kinds.setdefault(note.rule if grouped else note, []).append(note)
    return tuple((alike[0].severity, _line(alike)) for alike in kinds.values())


def first_few(names: Sequence[str], most: int = 5) -> str:
    """Name some of many, and count them; never is one alone left out.

    >>> first_few(["q1", "q2", "q3"], most=2), first_few(["q1", "q2", "q3"], most=1)
    ('q1, q2, q3', 'q1, ... (3 in all)')
    """
    return ", ".join(names) if len(names) <= most + 1 else f"{', '.join(names[:most])}, ... ({len(names)} in all)"


def _line(alike: Sequence[Note]) -> str:
    """Count the subjects, name three of those most affected, and say what is said of all, or else of the first."""
    if len(alike) < SEVERAL:
        return str(alike[0])
    worst = sorted(alike, key=lambda note: -note.weight)
    names = list(dict.fromkeys(note.subject for note in worst))
    shown = len(names) if len(names) <= SEVERAL + 1 else SEVERAL
    which = "worst" if worst[0].weight > worst[-1].weight else "such as" if shown < len(names) else "namely"
    subjects = f"{len(names)} {worst[0].of}, {which} {', '.join(names[:shown])}"
    same = all(note.text == worst[0].text for note in alike)
    return f"{subjects}: {worst[0].text}" if same else f"{subjects}; for {worst[0]}"


@dataclass(frozen=True, eq=False, repr=False)
class Sentences:
    """Texts under a title; what stands in backticks is code."""

    texts: tuple[str, ...]
    name: str = "sentences"
    title: str = ""
    folded: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Code:
    """Commands or files, to be copied as they stand."""

    texts: tuple[str, ...]
    name: str = "commands"
    title: str = ""
    folded: bool = False


class Line(NamedTuple):
    """A reference line across a chart."""

    axis: Literal["x", "y"]
    value: float
    dashed: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """A picture that is drawn from a table, with what it says in words.

    Rows without a number are not drawn. The interval of a column is drawn with it; what people see of the table is what
    a tooltip says.

    Parameters
    ----------
    name
        One word of letters and digits; also the name of its file.
    title
        What is drawn, and `subtitle` how.
    table
        What is drawn.
    sentence
        What someone who cannot see the chart should learn from it.
    kind
        ``dots``, with intervals, one below the other; ``bars`` likewise; ``columns``, which stand side by side without
        names; ``points`` of two numbers each; ``lines``.
    x, y
        Columns across and up; of dots and bars `y` holds names. Axes are called by the titles of their columns, or by
        `x_title` and `y_title`. Bars may go from `x` to `x2`.
    colour
        The column of the series, in order of appearance or of `colours`, which may choose colours by name.
    loud
        Of dots and lines: the series that stand out, while the others are grey. Where none does, and there are more
        than eight, each has a panel of its own.
    legend
        Whether colours are explained.
    hollow
        A column of true and false: which marks are hollow.
    label
        The column of names beside points.
    faint
        A column of true and false: which points are many, and so small, grey and without a name.
    facet
        The column of the panels, which stand side by side on the same axes.
    corners
        Of points: what the corners mean: right above and below, left above and below.
    diagonal
        Of points: whether the line on which both numbers are the same is drawn.
    path
        A column of true and false: which points are joined by `steps`, as Vega-Lite calls them.
    lines
        Reference lines.
    band
        Of points: a column whose intervals lie behind them as an area.
    spread
        How `x` is spread: ``cutoff`` for whole numbers from first to last, ``amount`` for what may be logarithmic,
        ``time`` for milliseconds since 1970, in UTC.
    percent
        The axes of shares, ``x``, ``y`` or ``xy``: their numbers are written in per cent.
    from_zero
        Whether 0 is on the axis `x`.
    reach
        What lies on the axis ``x`` or ``y`` in any case.
    width, height
        Pixels; None for a height that fits.
    numbers
        What people read of the numbers, where the table is too long for that; None for the table.
    draw
        Draws it with altair in place of the above, where no kind does. Only forms that have pictures call it.
    folded
        Whether it is drawn only for those who ask for it.
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
    colour: str = ""
    colours: Mapping[str, str] = field(default_factory=dict[str, str])
    loud: tuple[str, ...] = ()
    legend: bool = True
    hollow: str = ""
    label: str = ""
    faint: str = ""
    facet: str = ""
    corners: tuple[str, ...] = ()
    diagonal: bool = False
    path: str = ""
    steps: str = "step-after"
    lines: tuple[Line, ...] = ()
    band: str = ""
    spread: Literal["", "cutoff", "amount", "time"] = ""
    percent: str = ""
    from_zero: bool = False
    reach: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    subtitle: str = ""
    width: int = 460
    height: int | None = None
    numbers: Table | None = None
    draw: Callable[[], Any] | None = None
    folded: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Item:
    """One document of a ranked list."""

    rank: str
    doc_id: str
    grade: str = ""  # empty where there is no judgment
    relevant: bool | None = None  # None where it is not judged
    best: bool = False  # whether no document of the topics has a higher grade
    change: str = ""  # where it stands in the other list, in a word or two
    sign: str = ""  # the same for narrow columns: ``↑2``
    text: str = ""  # the beginning of its text, where that is known


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """One ranked list: the name of the run, what is said of it, and its first documents."""

    name: str
    sentence: str
    items: tuple[Item, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Lists:
    """Ranked lists of one topic next to each other."""

    name: str
    title: str
    sentences: tuple[str, ...]
    rankings: tuple[Ranking, ...]
    folded: bool = False
    only: Literal["", "people"] = ""  # ``people`` where a table has the same for data


@dataclass(frozen=True, eq=False, repr=False)
class Section:
    """One question and its answer, of several that stand together."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    folded: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """Its answer in words: the sentences that have no title."""
        return next((block.texts for block in self.blocks if isinstance(block, Sentences) and not block.title), ())


Block: TypeAlias = Table | Chart | Lists | Sentences | Code | Section


def rounded(blocks: Iterable[Block], digits: int | None) -> tuple[Block, ...]:
    """Give blocks whose tables have so many decimals for people; None: as they are."""

    def one(block: Block) -> Block:
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

    return tuple(blocks) if digits is None else tuple(map(one, blocks))


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """Give all blocks, those of sections in their place."""
    for block in blocks:
        if isinstance(block, Section):
            yield from flat(block.blocks)
        else:
            yield block
