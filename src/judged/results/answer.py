"""Base class of results, with all output formats."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError, MissingExtraError
from judged.results.blocks import Chart, RankedLists, Sentences, flat, lines, rounded
from judged.results.escaping import escape_controls
from judged.results.files import atomic_write
from judged.results.spelling import use_one_of
from judged.results.table import Table, plain
from judged.results.text_formats import latex, markdown, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from judged.results.blocks import Block, Note
    from judged.results.headline import Headline
    from judged.results.types import Table as ArrowTable


PICTURES = ("png", "svg", "pdf")
FORMS = ("table", "markdown", "latex", "csv", "json", "html", *PICTURES, "parquet")
"""Output formats of every answer; ``table`` is the text of a terminal."""
SUFFIXES = {
    "": "table",
    ".txt": "table",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".png": "png",
    ".svg": "svg",
    ".pdf": "pdf",
    ".parquet": "parquet",
}


def form_by_suffix(
    path: str | Path, forms: Mapping[str, str], noun: str, *, alternative: str = "another format"
) -> str:
    """Return the format for a file name's suffix.

    Parameters
    ----------
    path
        The file.
    forms
        Format of each suffix.
    noun, alternative
        Noun for the output, and another way to choose the format, for the error message.

    Raises
    ------
    InputError
        If the suffix is unknown.

    Examples
    --------
    >>> form_by_suffix("out/report.MD", {".md": "markdown", ".html": "html"}, "a report")
    'markdown'
    """
    suffix = Path(path).suffix.lower()
    if suffix in forms:
        return forms[suffix]
    suffixes = ", ".join(filter(None, forms))
    raise InputError(
        f"the format of {noun} is unknown for {suffix or 'a name without suffix'}",
        fix=f"use {alternative}, or a name that ends in {suffixes}",
        path=str(path),
    )


_CONVERSIONS = dict.fromkeys(("to_df", "to_frame", "to_dataframe"), "to_pandas to_polars")
"""Methods for the conversion names of other libraries, if they differ from ours with to_ before them."""


class Answer:
    """Base class of results: blocks for people, tables for data, notes, and provenance.

    A subclass is a frozen data class of the result. It defines `blocks` and, for JSON, `facts`, and inherits all output
    formats.

    Attributes
    ----------
    kind : str
        One word for the kind of answer; with `version` it names the JSON schema.
    notes : tuple of Note
        Warnings about the numbers.
    provenance : Provenance or None
        Inputs and settings, written at the head of JSON.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    main: ClassVar[str] = ""
    """Default table of CSV and data frames; empty: the first one."""
    stacked: ClassVar[bool] = False
    """Whether a picture shows all charts by default, one below the other."""
    notes: tuple[Note, ...] = ()
    provenance: Any = None

    @property
    def title(self) -> str:
        """Title of a page."""
        return self.kind.capitalize()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Conclusions and their limits."""
        return ()

    @property
    def headline(self) -> Headline | None:
        """Status, main number, and short sentence, which a page shows first; None without them."""
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes as texts; a note about many subjects is one line."""
        return lines(self.notes)

    def blocks(self) -> tuple[Block, ...]:
        """Return all blocks for people, in order, including folded ones."""
        raise NotImplementedError

    def facts(self) -> Mapping[str, Any]:
        """Return the values of JSON about the answer as a whole, before its tables."""
        return {}

    def tables(self) -> dict[str, Table]:
        """Return the tables of CSV, JSON, and data frames by name, including those of charts."""
        return _tables(list(flat(self.blocks())))

    def table(self, name: str | None = None) -> Table:
        """Return a table by name. Default: the main table.

        Raises
        ------
        InputError
            If no table has this name.
        """
        tables = self.tables()
        name = name or self.main or next(iter(tables), "")
        if name not in tables:
            raise InputError(f"no table {name!r} in this result", fix=use_one_of(tables))
        return tables[name]

    def _visible_blocks(self, digits: int | None) -> tuple[Block, ...]:
        """Return the blocks for people with `digits` decimals, and the condition on topics if there is one."""
        where = getattr(self.provenance, "where", "")
        condition = (Sentences((f"Only topics where {where} are included.",)),) if where else ()
        return (*rounded(self.blocks(), digits), *condition)

    def text(
        self, width: int | None = None, *, unfold: Iterable[str] = (), digits: int | None = None, color: bool = False
    ) -> str:
        """Render for a terminal of this width, including the folded blocks named in `unfold`."""
        return text(self._visible_blocks(digits), width, unfold, color=color)

    def markdown(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Render as Markdown, with `digits` decimals in tables."""
        return markdown(self._visible_blocks(digits), unfold)

    def latex(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Render the tables as LaTeX (package booktabs), with `digits` decimals."""
        where = getattr(self.provenance, "where", "")
        condition = f"\n% Only topics where {escape_controls(where)} are included." if where else ""
        return latex(rounded(self.blocks(), digits), unfold) + condition

    def html(self, *, digits: int | None = None) -> str:
        """Render as a self-contained HTML page, with `digits` decimals in tables."""
        from judged.results.html import page

        return page(self.title, (), self._visible_blocks(digits), self.notes)

    def csv(self, table: str | None = None) -> str:
        """Render a table as CSV in full precision. Default: the main table."""
        return self.table(table).csv()

    def to_arrow(self, table: str | None = None) -> ArrowTable:
        """Return a table as an Arrow table. Default: the main table."""
        return self.table(table).to_arrow()

    def to_pandas(self, table: str | None = None) -> Any:
        """Return a table as a pandas data frame. Default: the main table.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise MissingExtraError("pandas", "pandas")
        return self.to_arrow(table).to_pandas()

    def to_polars(self, table: str | None = None) -> Any:
        """Return a table as a Polars data frame. Default: the main table.

        Raises
        ------
        MissingExtraError
            If Polars is not installed.
        """
        if find_spec("polars") is None:
            raise MissingExtraError("polars", "polars")
        return import_module("polars").from_arrow(self.to_arrow(table))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError with a hint for conversion names of other libraries."""
            names = _CONVERSIONS.get(name, name.removeprefix("to_") if name.startswith("to_") else "").split()
            methods = [f"{method}()" for method in names if hasattr(Answer, method)]
            hint = f": write {', '.join(methods)} or save(path)" if methods else ""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)

    def to_dict(self) -> dict[str, Any]:
        """Convert everything to plain Python values for JSON; None for missing values."""
        record: dict[str, Any] = {"schema": f"judged.{self.kind}/{self.version}"}
        record |= {} if self.provenance is None else self.provenance.to_dict()
        record |= plain(self.facts())
        if (headline := self.headline) is not None:
            record["headline"] = plain(headline.to_dict())
        blocks = list(flat(self.blocks()))
        record |= {name: table.records() for name, table in _tables(blocks).items()}
        for block in blocks:
            if isinstance(block, RankedLists) and block.only != "people":
                record[block.name] = plain(_list_records(block))
        if self.sentences:
            record["sentences"] = list(self.sentences)
        record["notes"] = [plain(vars(note)) for note in self.notes]
        return record

    def json(self) -> str:
        """Render `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def charts(self) -> dict[str, Chart]:
        """Return all charts by name."""
        return {block.name: block for block in flat(self.blocks()) if isinstance(block, Chart)}

    def chart(self, name: str | None = None, **changes: Any) -> Any:
        """Draw a chart with altair; `changes` are attributes of `Chart` such as ``width``.

        Default: the first chart, or all of them if the answer is `stacked`.

        Raises
        ------
        InputError
            If there is no such chart.
        MissingExtraError
            If altair is not installed.
        """
        charts = self.charts()
        selected = name or next(iter(charts), "")
        if selected not in charts:
            problem = f"no chart {selected!r} in this result" if charts else "this result has no chart"
            raise InputError(problem, fix=use_one_of(charts) if charts else "use another format")
        from judged.results.chart_drawings import draw_charts

        chart_list = charts.values() if name is None and self.stacked else [charts[selected]]
        return draw_charts(*(replace(chart, **changes) for chart in chart_list))

    def written(
        self,
        form: str,
        *,
        unfold: Iterable[str] = (),
        table: str | None = None,
        chart: str | None = None,
        digits: int | None = None,
    ) -> str | bytes:
        """Render in one of the formats: a text, or the bytes of a picture or of Parquet.

        Parameters
        ----------
        form
            Name in `FORMS`, such as ``latex``.
        unfold
            Names of folded blocks to include.
        table, chart
            Table of CSV and Parquet, chart of a picture. Default: the main one.
        digits
            Decimals of numbers and intervals in tables for people; data have full precision. None: the format of each
            column, usually 4. More are used if a number would otherwise look like 0 or 1. p-values, counts, and
            percentages have fixed formats.

        Raises
        ------
        InputError
            If the format is unknown.
        MissingExtraError
            If a required library is not installed.
        """
        forms: dict[str, Callable[[], str]] = {
            "table": lambda: self.text(unfold=unfold, digits=digits),
            "markdown": lambda: self.markdown(unfold=unfold, digits=digits),
            "latex": lambda: self.latex(unfold=unfold, digits=digits),
            "csv": lambda: self.csv(table),
            "json": self.json,
            "html": lambda: self.html(digits=digits),
        }
        if form in PICTURES:
            from judged.results.charts import picture

            return picture(self.chart(chart), form)
        if form == "parquet":
            import pyarrow as pa
            from pyarrow import parquet

            metadata = {name: value for name, value in self.to_dict().items() if name not in self.tables()}
            arrow = self.to_arrow(table).replace_schema_metadata({"judged": json.dumps(metadata)})
            target = pa.BufferOutputStream()
            parquet.write_table(arrow, target)
            return target.getvalue().to_pybytes()
        if form not in forms:
            raise InputError(f"unknown format {form!r}", fix=use_one_of(FORMS))
        return forms[form]()

    def save(self, path: str | Path, form: str | None = None, **options: Any) -> None:
        """Write to a file atomically, in the format of its suffix; `options` are those of `written`.

        Raises
        ------
        InputError
            If the suffix is unknown, or the file cannot be written.
        """
        content = self.written(form or form_by_suffix(path, SUFFIXES, "a result"), **options)
        with atomic_write(path) as temporary:
            if isinstance(content, bytes):
                temporary.write_bytes(content)
            else:
                temporary.write_text(content + "\n", encoding="utf-8", errors="backslashreplace")

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        from judged.results.notebook import cell_html

        return cell_html(self._visible_blocks(None), self.notes, self.headline)


@dataclass(frozen=True, eq=False, repr=False)
class AnswerList(Answer):
    """Several answers, one below the other; their tables are numbered: ``1.steps``."""

    kind: ClassVar[str] = "answers"

    answers: tuple[Answer, ...]  # shown one below the other
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Titles of the answers."""
        return "; ".join(answer.title for answer in self.answers)

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks of all answers."""
        return tuple(block for answer in self.answers for block in answer.blocks())

    def tables(self) -> dict[str, Table]:
        """Return the tables of all answers, by number and name."""
        return {
            f"{number}.{name}": table
            for number, answer in enumerate(self.answers, 1)
            for name, table in answer.tables().items()
        }

    def table(self, name: str | None = None) -> Table:
        """Return a table by number and name.

        Raises
        ------
        InputError
            If no table has this name, or `name` is None.
        """
        if name is None:
            raise InputError(
                f"the result has {len(self.answers)} answers, so a table name is required",
                fix=f"select one answer; in Python, a table name such as {next(iter(self.tables()))!r} also works",
            )
        return super().table(name)

    def to_dict(self) -> dict[str, Any]:
        """Convert all answers to plain Python values for JSON."""
        return {
            "schema": f"judged.{self.kind}/{self.version}",
            "answers": [answer.to_dict() for answer in self.answers],
        }


def _tables(blocks: list[Block]) -> dict[str, Table]:
    tables = {block.name: block for block in blocks if isinstance(block, Table)}
    chart_tables = {block.table.name: block.table for block in blocks if isinstance(block, Chart)}
    return {name: table for name, table in (tables | (chart_tables | tables)).items() if table.only != "people"}


def _list_records(block: RankedLists) -> dict[str, Any]:
    rankings = [
        {"name": ranking.name, "sentence": ranking.sentence, "documents": [dict(vars(item)) for item in ranking.items]}
        for ranking in block.rankings
    ]
    return {"title": block.title, "sentences": block.sentences, "lists": rankings}
