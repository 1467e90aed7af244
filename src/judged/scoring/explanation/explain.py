"""`explain`: the calculation of one score, rank by rank."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.texts import Texts, shorten
from judged.errors import InputError
from judged.results import TEXT, Answer, Column, Section, Sentences, Show, Table, columns_of
from judged.results.spelling import with_parameter_hints
from judged.scoring.explanation.sheets import build_sheets, format_number, ranking_sheet, replace_underscores
from judged.scoring.judging import Judged, judge, judge_list
from judged.scoring.judging.calculation import Calculation, CalculationStep
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from judged.results import Block
    from judged.scoring.explanation.sheets import Cell, Sheet, SheetLine
    from judged.scoring.judging import RankingRules
    from judged.scoring.judging.join import Grades

_MAX_UNJUDGED_ROWS = 2  # longest series of unjudged documents that gets one row per document
_MAX_TAIL_ROWS = 10  # most documents at the end that do not change the displayed sum and still get one row each
_LABEL_COLUMNS = {"rank", "document"}
_MAX_TITLE_LENGTH = 40  # characters
_BY_ZERO = re.compile(r"/ 0(?![.\d])")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Answer):
    """Calculation of one score. The main table has one row per step.

    Attributes
    ----------
    measure : Measure
    query_id, run : str
    ranking : RankingRules
        Policies that ranked the documents.
    sheets : tuple of Sheet
        Tables with their calculation lines, in the order of the calculation.
    score : float
        The score. It is also the last number of the last sheet.
    query : str
        Text of the topic, if available.
    titles : dict of str
        Titles of documents by id, if available.
    """

    kind: ClassVar[str] = "explanation"

    measure: Measure
    query_id: str
    run: str
    ranking: RankingRules
    sheets: tuple[Sheet, ...]
    score: float
    query: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    def with_titles(self, texts: Any) -> Explanation:
        """Return a copy with a title, or else the text, for each document id. `texts` is an input of `Texts.of`."""
        tables = [(sheet.header.index("document"), sheet.rows) for sheet in self.sheets if "document" in sheet.header]
        ids = {str(row[column]) for column, rows in tables for row in rows if row[column] is not None}
        by_id = Texts.of(texts, ids)
        titles = {doc: shorten(by_id.caption(doc), _MAX_TITLE_LENGTH) for doc in sorted(ids) if doc in by_id}
        return replace(self, titles=titles)

    @property
    def title(self) -> str:
        """Measure, topic, and run."""
        return explanation_title(str(self.measure), self.query_id, self.run)

    @property
    def parts(self) -> list[tuple[str, Table, list[str]]]:
        """Title, display table, and calculation lines of each sheet."""
        return [(sheet.title, sheet_table(sheet, self.titles), format_lines(sheet)) for sheet in self.sheets]

    def blocks(self) -> tuple[Block, ...]:
        """Return the sheets for display, and all calculation lines as a data table."""
        blocks: list[Block] = [Sentences((f"query: {self.query}",))] if self.query else []
        for _, table, lines in self.parts:
            blocks += [table] if table.columns else []
            blocks += [Sentences(tuple(lines))] if lines else []
        records = [{**vars(line), "sheet": i} for i, sheet in enumerate(self.sheets, 1) for line in sheet.lines]
        columns = columns_of(records, "sheet", "name", "formula", "numbers", "value", "summed")
        steps = Table("steps", columns, only="data")
        return Section("explanation", self.title, tuple(blocks)), steps

    def facts(self) -> dict[str, Any]:
        """Return measure, topic, run, ranking policies, score, and the tables of the sheets."""
        names = ("ties", "depth", "precision")
        facts = {"measure": str(self.measure), "query_id": self.query_id, "run": self.run}
        facts |= {"query": self.query} if self.query else {}
        facts |= {"titles": dict(self.titles)} if self.titles else {}
        return facts | {
            "ranking": {name: getattr(self.ranking, name) for name in names},
            "score": self.score,
            "sheets": [
                {"title": sheet.title, "columns": sheet.header, "rows": sheet.rows, "formulas": sheet.formulas}
                for sheet in self.sheets
            ],
        }


def explanation_title(measure: str, query_id: str, run: str) -> str:
    """Return measure, topic, and run; only the measure for the result of `judge_list`, whose names mean nothing."""
    is_typed_list = (query_id, run) == ("list", "run")
    return measure if is_typed_list else f"{measure} of topic {query_id}, run {run}"


def format_lines(sheet: Sheet) -> list[str]:
    """Format the formulas of the columns of a sheet, then its calculation lines."""
    legend = [
        f"{replace_underscores(name)} = {replace_underscores(formula)}" for name, formula in sheet.formulas.items()
    ]
    return [*legend, *map(_format_line, sheet.lines)]


def _format_line(line: SheetLine) -> str:
    parts = [line.name]
    for part in (replace_underscores(line.formula), line.numbers, format_number(line.value)):
        if part and part != parts[-1]:
            parts.append(part)
    return " = ".join(parts) + (" (a division by 0 counts as 0)" if _BY_ZERO.search(line.numbers) else "")


def sheet_table(sheet: Sheet, titles: Mapping[str, str] | None = None) -> Table:
    """Return the display table of a sheet. Series of unjudged documents and long tails are merged into one row."""
    is_label = [name in _LABEL_COLUMNS or _is_text(row[i] for row in sheet.rows) for i, name in enumerate(sheet.header)]
    rows = list(_format_rows(sheet))
    columns = tuple(
        Column(name, [row[i] for row in rows], TEXT if name == "document" else Show(str), replace_underscores(name))
        for i, name in enumerate(sheet.header)
    )
    labels = is_label.index(False) if False in is_label else len(is_label)
    if titles and "document" in sheet.header:
        position = sheet.header.index("document")
        document_titles = [titles.get(row[position], "") for row in rows]
        columns = (*columns[: position + 1], Column("title", document_titles, TEXT), *columns[position + 1 :])
        labels += 1
    return Table("sheet", columns, sheet.title or "The calculation", labels=labels, only="people")


def _is_text(cells: Iterable[Cell]) -> bool:
    return all(isinstance(cell, str) for cell in cells)


def _format_rows(sheet: Sheet) -> Iterator[tuple[str, ...]]:
    tail_start = _tail_start(sheet)
    for is_unjudged, group in groupby(sheet.rows[:tail_start], _is_unjudged):
        rows = list(group)
        if is_unjudged and len(rows) > _MAX_UNJUDGED_ROWS:
            yield _summary_row(rows, f"({len(rows)} unjudged documents)", len(sheet.header))
        else:
            yield from (tuple(map(_format_cell, row, sheet.header)) for row in rows)
    if tail := list(sheet.rows[tail_start:]):
        yield _summary_row(tail, f"({len(tail)} more rows, which do not change the digits shown)", len(sheet.header))


def _tail_start(sheet: Sheet) -> int:
    """Return the first row of the tail to merge: the rows that do not change the displayed running sum."""
    # Never merge a relevant document whose gain is 0: the reader needs to see that it added nothing.
    if "so far" not in sheet.header:
        return len(sheet.rows)
    sum_column = sheet.header.index("so far")
    sums = [_format_cell(row[sum_column], "so far") for row in sheet.rows]
    last = next((text for text in reversed(sums) if text), "")
    tail_start = next((position for position, text in enumerate(sums) if text == last), 0) + 1
    zero_gains = [i for i, row in enumerate(sheet.rows) if _is_positive(row[2]) and row[sum_column - 1] == 0]
    tail_start = max(tail_start, zero_gains[-1] + 1) if zero_gains else tail_start
    return tail_start if len(sums) - tail_start > _MAX_TAIL_ROWS else len(sums)


def _is_positive(cell: Cell) -> bool:
    return isinstance(cell, float) and cell > 0


def _summary_row(rows: list[tuple[Cell, ...]], text: str, width: int) -> tuple[str, ...]:
    span = f"{_format_cell(rows[0][0], 'rank')}-{_format_cell(rows[-1][0], 'rank')}"
    return (span, text, *("",) * (width - 2))


def _is_unjudged(row: tuple[Cell, ...]) -> bool:
    return len(row) > 2 and all(cell is None for cell in row[2:])  # a table of two columns is not a ranking


def _format_cell(cell: Cell, name: str) -> str:
    if cell is None:
        return "-" if name == "grade" else ""
    return cell if isinstance(cell, str) else format_number(cell)


@with_parameter_hints
def explain(
    qrels: Any, run: Any, measure: str | Measure, *, topic: str | None = None, texts: Any = None
) -> Explanation:
    """Return the calculation of the score of one topic.

    The measure records its intermediate numbers during the computation. The last number equals the score exactly.

    Parameters
    ----------
    qrels, run
        As for `evaluate`.
    measure
        A measure or its name.
    topic
        Query id. Default: the only topic.
    texts
        Titles or texts of documents to show next to their ids: `Texts`, a path, or ``{doc_id: text}``.

    Raises
    ------
    InputError
        If the topic does not exist, or if `topic` is None and there are several topics.
    MeasureError
        If the measure does not exist, or if it requires a ranking and the run is a set.

    Examples
    --------
    >>> explain({"q": {"a": 1, "b": 1}}, {"q": ["x", "a"]}, "RR").score
    0.5
    """
    explanation = explain_list(judge(qrels, run), measure, topic)
    return explanation if texts is None else explanation.with_titles(texts)


def explain_list(judged: Judged | Grades | str, measure: str | Measure, topic: str | None = None) -> Explanation:
    """Return the calculation of the score of one topic of a `Judged`, or of a list of grades.

    Parameters
    ----------
    judged
        Result of `judge` or `judge_list`, with one or more topics; or grades as for `judge_list`.
    measure, topic
        As for `explain`.

    Raises
    ------
    MeasureError
        If the measure does not exist or cannot be explained.
    InputError
        If the topic does not exist, or is missing where there are several.

    Examples
    --------
    >>> explain_list([3, 0, 2, 1, 0], "nDCG(gain=exp2)@5")
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
    if not isinstance(judged, Judged):
        judged = judge_list(judged)
    if topic is None and len(judged) != 1:
        topics = ", ".join(judged.query_ids[:5])
        raise InputError(f"`topic` is required: there are {len(judged)} topics", fix=f"use one of {topics}, ...")
    hits = judged.only(judged.query_ids[0] if topic is None else topic)
    parsed = parse(measure)
    working = Calculation()
    score = float(parsed(replace(hits, calculation=working))[0])
    has_calculation = bool(working.entries)
    last = working.entries[-1] if has_calculation else None
    if not (isinstance(last, CalculationStep) and last.name == str(parsed)):  # the measure did not record its last step
        working.entries.append(CalculationStep(str(parsed), np.array([score]), "", {}, hits))
    computed_sheets = build_sheets(working, _cutoff(parsed))
    return Explanation(
        measure=parsed,
        query_id=hits.query_ids[0],
        run=hits.run.name,
        ranking=hits.ranking,
        sheets=computed_sheets if has_calculation else (ranking_sheet(hits), *computed_sheets),
        score=score,
    )


def _cutoff(measure: Measure) -> int | None:
    cutoff = getattr(measure, "cutoff", None)
    return cutoff if isinstance(cutoff, int) else None
