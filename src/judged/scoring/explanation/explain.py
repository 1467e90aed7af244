"""`explain`: where a score comes from, rank by rank, as an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.texts import Texts, shortened
from judged.errors import InputError
from judged.results import TEXT, Answer, Column, Section, Sentences, Show, Table, columns_of
from judged.results.spelling import hinting
from judged.scoring.explanation.sheets import bare, number, readable, sheets
from judged.scoring.judging import Judged, judge
from judged.scoring.judging.calculation import Calculation, CalculationStep
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from judged.results import Block
    from judged.scoring.explanation.sheets import Cell, Line, Sheet
    from judged.scoring.judging import Ranking

_FEW = 2  # unjudged documents in a row that are still shown one by one
_MANY = 10  # documents at the end that change no digit shown, and are still shown one by one
_LABELS = {"rank", "document"}
_TITLE = 40  # characters
_BY_ZERO = re.compile(r"/ 0(?![.\d])")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Answer):
    """How a score came about; its main table has one step of the calculation a row.

    Attributes
    ----------
    measure : Measure
    query_id, run : str
    ranking : Ranking
        How the documents were ranked.
    sheets : tuple of Sheet
        Tables with the lines below them, in the order of the calculation.
    score : float
        The score, which is also the last number of the last sheet.
    query : str
        The text of the topic, where it is known.
    titles : dict of str
        What the documents are called, by id, where that is known.
    """

    kind: ClassVar[str] = "explanation"

    measure: Measure
    query_id: str
    run: str
    ranking: Ranking
    sheets: tuple[Sheet, ...]
    score: float
    query: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    def titled(self, texts: Any) -> Explanation:
        """Show the titles of documents beside their ids, or their texts where they have none: what `Texts.of` takes."""
        places = [(sheet.header.index("document"), sheet.rows) for sheet in self.sheets if "document" in sheet.header]
        ids = {str(row[at]) for at, rows in places for row in rows if row[at] is not None}
        known = Texts.of(texts, ids)
        return replace(self, titles={doc: shortened(known.caption(doc), _TITLE) for doc in sorted(ids) if doc in known})

    @property
    def title(self) -> str:
        """What is explained."""
        return title(str(self.measure), self.query_id, self.run)

    @property
    def parts(self) -> list[tuple[str, Table, list[str]]]:
        """Title, table and lines of each sheet, as people read them."""
        return [(sheet.title, sheet_table(sheet, self.titles), sheet_lines(sheet)) for sheet in self.sheets]

    def blocks(self) -> tuple[Block, ...]:
        """Give each sheet as people read it, with its lines, and all lines as data."""
        shown: list[Block] = [Sentences((f"query: {self.query}",))] if self.query else []
        for _, table, lines in self.parts:
            shown += [table] if table.columns else []
            shown += [Sentences(tuple(lines))] if lines else []
        numbered = [{**vars(line), "sheet": at} for at, sheet in enumerate(self.sheets, 1) for line in sheet.lines]
        columns = columns_of(numbered, "sheet", "name", "how", "numbers", "value", "summed")
        steps = Table("steps", columns, only="data")
        return Section("explanation", self.title, tuple(shown)), steps

    def facts(self) -> dict[str, Any]:
        """Give what is explained, its score, and the sheets without the lines below them."""
        names = ("ties", "depth", "precision")
        facts = {"measure": str(self.measure), "query_id": self.query_id, "run": self.run}
        facts |= {"query": self.query} if self.query else {}
        facts |= {"titles": dict(self.titles)} if self.titles else {}
        return facts | {
            "ranking": {name: getattr(self.ranking, name) for name in names},
            "score": self.score,
            "sheets": [
                {"title": sheet.title, "columns": sheet.header, "rows": sheet.rows, "how": sheet.how}
                for sheet in self.sheets
            ],
        }


def title(measure: str, query_id: str, run: str) -> str:
    """Say what is explained; a list that was typed by hand has no names that say anything."""
    typed = (query_id, run) == ("list", "run")
    return measure if typed else f"{measure} of topic {query_id}, run {run}"


def sheet_lines(sheet: Sheet) -> list[str]:
    """Write what stands below the table of a sheet: formulas with names, then with numbers."""
    legend = [f"{readable(name)} = {readable(how)}" for name, how in sheet.how.items()]
    return [*legend, *map(_line_text, sheet.lines)]


def _line_text(line: Line) -> str:
    """Write one line of the calculation; a formula that is a number already is not said twice."""
    bits = [line.name]
    for bit in (readable(line.how), line.numbers, number(line.value)):
        if bit and bit != bits[-1]:
            bits.append(bit)
    return " = ".join(bits) + (" (a division by 0 counts as 0)" if _BY_ZERO.search(line.numbers) else "")


def sheet_table(sheet: Sheet, titles: Mapping[str, str] | None = None) -> Table:
    """Lay out the table of a sheet as people read it; documents that change nothing are put together."""
    named = [name in _LABELS or _is_text(row[at] for row in sheet.rows) for at, name in enumerate(sheet.header)]
    rows = list(_rows(sheet))
    columns = tuple(
        Column(name, [row[at] for row in rows], TEXT if name == "document" else Show(str), readable(name))
        for at, name in enumerate(sheet.header)
    )
    labels = named.index(False) if False in named else len(named)
    if titles and "document" in sheet.header:
        place = sheet.header.index("document")
        said = [titles.get(row[place], "") for row in rows]
        columns = (*columns[: place + 1], Column("title", said, TEXT), *columns[place + 1 :])
        labels += 1
    return Table("sheet", columns, sheet.title or "The calculation", labels=labels, only="people")


def _is_text(cells: Iterable[Cell]) -> bool:
    return all(isinstance(cell, str) for cell in cells)


def _rows(sheet: Sheet) -> Iterator[tuple[str, ...]]:
    """Write the rows; of many in a row that are unjudged and count nowhere, only how many; and so of a long tail."""
    behind = _behind(sheet)
    for empty, group in groupby(sheet.rows[:behind], _is_empty):
        rows = list(group)
        if empty and len(rows) > _FEW:
            yield _folded(rows, f"({len(rows)} without a judgment)", len(sheet.header))
        else:
            yield from (tuple(_cell(cell, name) for cell, name in zip(row, sheet.header, strict=True)) for row in rows)
    if tail := list(sheet.rows[behind:]):
        yield _folded(tail, f"({len(tail)} that change no digit shown)", len(sheet.header))


def _behind(sheet: Sheet) -> int:
    """Find the row from which on the running sum stays as it is shown, if there are many of them."""
    # A relevant document that adds nothing at all is a part of the story, and never left out.
    if "so far" not in sheet.header:
        return len(sheet.rows)
    at = sheet.header.index("so far")
    sums = [_cell(row[at], "so far") for row in sheet.rows]
    last = next((text for text in reversed(sums) if text), "")
    first = next((place for place, text in enumerate(sums) if text == last), 0) + 1
    told = [place for place, row in enumerate(sheet.rows) if _is_positive(row[2]) and row[at - 1] == 0]
    first = max(first, told[-1] + 1) if told else first
    return first if len(sums) - first > _MANY else len(sums)


def _is_positive(cell: Cell) -> bool:
    return isinstance(cell, float) and cell > 0


def _folded(rows: list[tuple[Cell, ...]], text: str, width: int) -> tuple[str, ...]:
    span = f"{_cell(rows[0][0], 'rank')}-{_cell(rows[-1][0], 'rank')}"
    return (span, text, *("",) * (width - 2))


def _is_empty(row: tuple[Cell, ...]) -> bool:
    return len(row) > 2 and all(cell is None for cell in row[2:])  # a table of two columns is not a ranking


def _cell(cell: Cell, name: str) -> str:
    if cell is None:
        return "-" if name == "grade" else ""
    return cell if isinstance(cell, str) else number(cell)


@hinting
def explain(
    qrels: Any, run: Any, measure: str | Measure, *, topic: str | None = None, texts: Any = None
) -> Explanation:
    """Show how a measure comes to its score for one topic.

    The measure itself writes down its intermediate numbers while it computes: what is shown is what was computed,
    and the last number is the score, to the last bit.

    Parameters
    ----------
    qrels, run
        As `evaluate` takes them.
    measure
        A measure or its name.
    topic
        The query id; None where there is only one topic.
    texts
        Titles or texts of documents, shown beside their ids: `Texts`, a path, or ``{doc_id: text}``.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        If there is no such topic, or several and none was named.
    MeasureError
        If there is no such measure, or it needs a ranking where the run is a set.

    Examples
    --------
    >>> explain({"q": {"a": 1, "b": 1}}, {"q": ["x", "a"]}, "RR").score
    0.5
    """
    made = explain_list(judge(qrels, run), measure, topic)
    return made if texts is None else made.titled(texts)


def explain_list(judged: Judged, measure: str | Measure, topic: str | None = None) -> Explanation:
    """Show as `explain` how a measure comes to its score for a list that is judged: what `judge` or `judge_list` gave.

    Parameters
    ----------
    judged
        One topic, or several.
    measure, topic
        As for `explain`.

    Examples
    --------
    >>> from judged.scoring.judging import judge_list
    >>> explain_list(judge_list([3, 0, 2, 1, 0]), "nDCG(gain=exp2)@5")
    == nDCG(gain=exp2)@5 ==
    <BLANKLINE>
    == ranking ==
    <BLANKLINE>
    rank  document  grade  gain  discount  gain / discount  so far
    1     d1            3     7         1                7       7
    2     d2            0     0    1.5850                0       7
    3     d3            2     3         2           1.5000  8.5000
    4     d4            1     1    2.3219           0.4307  8.9307
    5     d5            0     0    2.5850                0  8.9307
    <BLANKLINE>
    gain = 2^grade - 1
    discount = log2(rank + 1)
    DCG(gain=exp2)@5 = sum of gain / discount = 8.9307
    <BLANKLINE>
    == ideal ranking ==
    <BLANKLINE>
    rank  document  grade  gain  discount  gain / discount  so far
    1     d1            3     7         1                7       7
    2     d3            2     3    1.5850           1.8928  8.8928
    3     d4            1     1         2           0.5000  9.3928
    4     d2            0     0    2.3219                0  9.3928
    5     d5            0     0    2.5850                0  9.3928
    <BLANKLINE>
    gain = 2^grade - 1
    discount = log2(rank + 1)
    IdealDCG(gain=exp2)@5 = sum of gain / discount = 9.3928
    nDCG(gain=exp2)@5 = DCG / IdealDCG = 8.9307 / 9.3928 = 0.9508
    """
    if topic is None and len(judged) != 1:
        some = ", ".join(judged.query_ids[:5])
        raise InputError(f"there are {len(judged)} topics", fix=f"name one of {some}, and so on")
    one = judged.only(judged.query_ids[0] if topic is None else topic)
    wanted = parse(measure)
    working = Calculation()
    score = float(wanted(replace(one, calculation=working))[0])
    written = bool(working.entries)
    last = working.entries[-1] if written else None
    if not (
        isinstance(last, CalculationStep) and last.name == str(wanted)
    ):  # a measure that writes nothing down, or not all
        working.entries.append(CalculationStep(str(wanted), np.array([score]), "", {}, one))
    shown = sheets(working, _cutoff(wanted))
    return Explanation(
        measure=wanted,
        query_id=one.query_ids[0],
        run=one.run.name,
        ranking=one.ranking,
        sheets=shown if written else (bare(one), *shown),
        score=score,
    )


def _cutoff(measure: Measure) -> int | None:
    cutoff = getattr(measure, "cutoff", None)
    return cutoff if isinstance(cutoff, int) else None
