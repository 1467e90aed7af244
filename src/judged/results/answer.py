"""An answer: what every result of judged is, and the forms in which it comes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError, MissingExtraError
from judged.results.blocks import Chart, Lists, Sentences, flat, lines, rounded
from judged.results.escaping import isolated, visible
from judged.results.files import replaced
from judged.results.table import Table, asked, plain
from judged.results.text_formats import latex, markdown, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from judged.results.blocks import Block, Note
    from judged.results.types import Table as ArrowTable


PICTURES = ("png", "svg", "pdf")
FORMS = ("table", "markdown", "latex", "csv", "json", "html", *PICTURES, "parquet")
"""What every answer can be written as: the text of a terminal, and the others."""
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


def form_by_name(path: str | Path, known: Mapping[str, str], what: str, *, ask: str = "a form") -> str:
    """Tell a form by the end of a file's name.

    Parameters
    ----------
    path
        The file.
    known
        The form of each ending.
    what
        What is written, and `ask`, how else its form can be said: both for the message.

    Raises
    ------
    InputError
        If nothing is known by this end.

    Examples
    --------
    >>> form_by_name("out/report.MD", {".md": "markdown", ".html": "html"}, "a report")
    'markdown'
    """
    suffix = Path(path).suffix.lower()
    if suffix in known:
        return known[suffix]
    ends = ", ".join(filter(None, known))
    raise InputError(
        f"no form of {what} is known by {suffix or 'no ending'}",
        fix=f"give {ask}, or a name that ends in {ends}",
        path=str(path),
    )


_LABELS = "<style>th.label, td.label { text-align: left !important }</style>"  # notebooks know none of our classes

_FORMS = dict.fromkeys(("to_df", "to_frame", "to_dataframe"), "to_pandas to_polars")
"""Names that other libraries give to forms, where they are not ours with to_ before them."""


class Answer:
    """What every result is: blocks for people, tables for data, notes, and what it rests on.

    A subclass is a frozen data class of the result itself. It gives `blocks` and, for JSON, `facts`; every form is
    inherited.

    Attributes
    ----------
    kind : str
        One word for the kind of answer: with `version` the schema of its JSON.
    notes : tuple of Note
        What should be known before the numbers are used.
    provenance : Provenance or None
        What the numbers rest on, as the head of JSON has it.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    main: ClassVar[str] = ""
    """The table that CSV and data frames hold where none is named; empty for the first one."""
    stacked: ClassVar[bool] = False
    """Whether its charts belong together: a picture shows all of them, below one another, where none is named."""
    notes: tuple[Note, ...] = ()
    provenance: Any = None

    @property
    def title(self) -> str:
        """What it answers, as a page is headed."""
        return self.kind.capitalize()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        return ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes as texts; what is said of many subjects is one line."""
        return lines(self.notes)

    def blocks(self) -> tuple[Block, ...]:
        """Give all that people see, in order; what is folded is shown to those who ask for it."""
        raise NotImplementedError

    def facts(self) -> Mapping[str, Any]:
        """Give what JSON says of the answer as a whole, before its tables."""
        return {}

    def tables(self) -> dict[str, Table]:
        """Give the tables of CSV, JSON and data frames by name: those that are shown, and those that are drawn."""
        return _tables(list(flat(self.blocks())))

    def table(self, name: str | None = None) -> Table:
        """Give a table by its name; the main one for None.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        tables = self.tables()
        chosen = name or self.main or next(iter(tables), "")
        if chosen not in tables:
            raise InputError(f"no table {chosen!r} in this answer", fix=f"use one of {', '.join(tables)}")
        return tables[chosen]

    def _seen(self, digits: int | None) -> tuple[Block, ...]:
        """Give what people see, with so many decimals; and of which topics that is, where not all count."""
        where = getattr(self.provenance, "where", "")
        over = (Sentences((f"Over the topics where {where}.",)),) if where else ()
        return (*rounded(self.blocks(), digits), *over)

    def text(
        self,
        width: int | None = None,
        *,
        unfold: Iterable[str] = (),
        digits: int | None = None,
        colour: bool = False,
    ) -> str:
        """Write for a terminal of this width; with what is folded, by the names of blocks, and so many decimals."""
        return text(self._seen(digits), width, unfold, colour=colour)

    def markdown(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Write as Markdown, the numbers of tables with so many decimals."""
        return markdown(self._seen(digits), unfold)

    def latex(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Write the tables as LaTeX (package booktabs), their numbers with so many decimals."""
        where = getattr(self.provenance, "where", "")
        said = f"\n% over the topics where {visible(where)}" if where else ""
        return latex(rounded(self.blocks(), digits), unfold) + said

    def html(self, *, digits: int | None = None) -> str:
        """Write as a page of HTML that fetches nothing, the numbers of tables with so many decimals."""
        from judged.results.html import page

        return page(self.title, (), self._seen(digits), self.notes)

    def csv(self, table: str | None = None) -> str:
        """Write a table in full precision, the main one for None."""
        return self.table(table).csv()

    def to_arrow(self, table: str | None = None) -> ArrowTable:
        """Give a table as an Arrow table, the main one for None."""
        return self.table(table).to_arrow()

    def to_pandas(self, table: str | None = None) -> Any:
        """Give a table as a data frame of pandas, the main one for None.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise MissingExtraError("pandas", "pandas")
        return self.to_arrow(table).to_pandas()

    def to_polars(self, table: str | None = None) -> Any:
        """Give a table as a data frame of Polars, the main one for None.

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
            """Tell who asks for a form by pandas' name for it what it is called here."""
            forms = _FORMS.get(name, name.removeprefix("to_") if name.startswith("to_") else "").split()
            meant = [f"{form}()" for form in forms if hasattr(Answer, form)]
            hint = f": write {', '.join(meant)} or save(path)" if meant else ""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: None for what is not known."""
        made: dict[str, Any] = {"schema": f"judged.{self.kind}/{self.version}"}
        made |= {} if self.provenance is None else self.provenance.to_dict()
        made |= plain(self.facts())
        blocks = list(flat(self.blocks()))
        made |= {name: table.records() for name, table in _tables(blocks).items()}
        for block in blocks:
            if isinstance(block, Lists) and block.only != "people":
                made[block.name] = plain(_lists(block))
        if self.sentences:
            made["sentences"] = list(self.sentences)
        made["notes"] = [plain(vars(note)) for note in self.notes]
        return made

    def json(self) -> str:
        """Write `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def charts(self) -> dict[str, Chart]:
        """Give all charts by name."""
        return {block.name: block for block in flat(self.blocks()) if isinstance(block, Chart)}

    def chart(self, name: str | None = None, **changes: Any) -> Any:
        """Draw a chart by its name with altair; ``width`` and others of `Chart` may be changed.

        Without a name it is the first one, or all of them where they belong together.

        Raises
        ------
        InputError
            If there is none.
        MissingExtraError
            If altair is not installed.
        """
        charts = self.charts()
        chosen = name or next(iter(charts), "")
        if chosen not in charts:
            problem = f"no chart {chosen!r} in this answer" if charts else "there is no chart of this"
            raise InputError(problem, fix=f"use one of {', '.join(charts)}" if charts else "take another form")
        from judged.results.chart_drawings import drawn

        shown = charts.values() if name is None and self.stacked else [charts[chosen]]
        return drawn(*(replace(chart, **changes) for chart in shown))

    def written(
        self,
        form: str,
        *,
        unfold: Iterable[str] = (),
        table: str | None = None,
        chart: str | None = None,
        digits: int | None = None,
    ) -> str | bytes:
        """Write in one of the forms: a text, or the bytes of a picture or of Parquet.

        Parameters
        ----------
        form
            Its name, such as ``latex``.
        unfold
            Names of blocks that are shown only to those who ask for them.
        table, chart
            Which table CSV and Parquet hold, and which chart a picture shows; None for the main one.
        digits
            Decimals of the numbers and intervals of tables for people; data have all of them. None: as each column
            says, mostly 4. More are written where a number would seem to be a 0 or 1 that it is not; p-values, counts
            and percentages have rules of their own.

        Raises
        ------
        InputError
            If there is no such form.
        MissingExtraError
            If a library is not installed that it takes.
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

            head = {name: value for name, value in self.to_dict().items() if name not in self.tables()}
            stored = self.to_arrow(table).replace_schema_metadata({"judged": json.dumps(head)})
            target = pa.BufferOutputStream()
            parquet.write_table(stored, target)
            return target.getvalue().to_pybytes()
        if form not in forms:
            raise InputError(f"no form {form!r} is known", fix=f"use one of {', '.join(FORMS)}")
        return forms[form]()

    def save(self, path: str | Path, form: str | None = None, **options: Any) -> None:
        """Write to a file, whole or not at all, in the form that its name ends in; options are those of `written`.

        Raises
        ------
        InputError
            If no form is known by the name, or the file cannot be written.
        """
        made = self.written(form or form_by_name(path, SUFFIXES, "a result"), **options)
        with replaced(path) as temporary:
            if isinstance(made, bytes):
                temporary.write_bytes(made)
            else:
                temporary.write_text(made + "\n", encoding="utf-8", errors="backslashreplace")

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        from judged.results.html import html, sentences

        blocks = asked(flat(asked(self._seen(None), ())), ())
        shown = [block for block in blocks if isinstance(block, (Table, Sentences))]
        return isolated("\n".join([_LABELS, html(shown), sentences(self.warnings)]))


@dataclass(frozen=True, eq=False, repr=False)
class Several(Answer):
    """Answers to one question each, one below the other; their tables are numbered: ``1.steps``."""

    kind: ClassVar[str] = "several"

    answers: tuple[Answer, ...]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What they answer."""
        return "; ".join(answer.title for answer in self.answers)

    def blocks(self) -> tuple[Block, ...]:
        """Give the blocks of each."""
        return tuple(block for answer in self.answers for block in answer.blocks())

    def tables(self) -> dict[str, Table]:
        """Give the tables of each, by its number and their names."""
        return {
            f"{at}.{name}": table
            for at, answer in enumerate(self.answers, 1)
            for name, table in answer.tables().items()
        }

    def table(self, name: str | None = None) -> Table:
        """Give a table by its number and name.

        Raises
        ------
        InputError
            If there is none of this name, or none was named.
        """
        if name is None:
            raise InputError(f"there are {len(self.answers)} answers, and one table holds one", fix="ask for one")
        return super().table(name)

    def to_dict(self) -> dict[str, Any]:
        """Give all answers as plain Python values, ready for JSON."""
        return {"schema": f"judged.{self.kind}/{self.version}", "answers": [part.to_dict() for part in self.answers]}


def _tables(blocks: list[Block]) -> dict[str, Table]:
    shown = {block.name: block for block in blocks if isinstance(block, Table)}
    drawn = {block.table.name: block.table for block in blocks if isinstance(block, Chart)}
    return {name: table for name, table in (shown | (drawn | shown)).items() if table.only != "people"}


def _lists(block: Lists) -> dict[str, Any]:
    rankings = [
        {"name": ranking.name, "sentence": ranking.sentence, "documents": [dict(vars(item)) for item in ranking.items]}
        for ranking in block.rankings
    ]
    return {"title": block.title, "sentences": block.sentences, "lists": rankings}
