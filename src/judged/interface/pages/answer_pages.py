"""A page and its twin in JSON from one function: parameters in, an answer out, its blocks below a form."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from http import HTTPStatus
from inspect import Parameter, Signature, signature, unwrap
from itertools import compress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from fastapi import Request

from judged.comparison.slicing import Expression, Slicing, slice_topics
from judged.comparison.slicing.derived import MEANINGS, OUTCOME, SOURCES
from judged.data.compute import pc
from judged.data.query_text import has_language_detector
from judged.errors import InputError, JudgedError, MissingExtraError
from judged.interface.pages.answers import page
from judged.interface.pages.problems import PROBLEMS
from judged.interface.pages.workspace import remembered
from judged.results import TEXT, Answer, Column, Section, Table, beginning, columns_of
from judged.results.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fastapi import APIRouter
    from fastapi.responses import HTMLResponse

    from judged.interface.pages.slices import Sliced
    from judged.interface.pages.workspace import Workspace
    from judged.results import Block

    Made = TypeVar("Made", bound=Callable[..., Answer])


_KINDS = {"double": "number", "bool": "true or false", "string": "text"}
_MANY = 12  # values: a text with more makes no slices
_SHOWN = 5  # values that stand for all


@remembered
def attributes(workspace: Workspace) -> Table:
    """Lay out the attributes of the topics: those that were given, then those that follow from the data."""
    known, rows = workspace.known(), list[dict[str, Any]]()
    for name in known.names:
        column = known.column(name)
        kind, values = _KINDS[str(column.type)], sorted(pc.unique(column.drop_null()).to_pylist())
        meaning = ", ".join(map(_written, values[:_SHOWN])) + ", ..." * (len(values) > _SHOWN)
        if kind == "number" and values:
            meaning = f"{_written(values[0])} to {_written(values[-1])}"
        slices = bool(values) and (kind != "text" or len(values) <= _MANY)
        row = {"name": name, "source": "given", "kind": kind, "meaning": meaning}
        rows.append({**row, "values": len(values), "slices": slices})
    given = (True, workspace.topics is not None, "traffic" in known.names, bool(workspace.lists))
    there: dict[str, bool] = dict(zip(SOURCES, given, strict=True))
    for name, (source, kind, meaning) in MEANINGS.items():
        if there[source] and name not in known.names and (name != "language" or has_language_detector()):
            row = {"name": name, "source": source, "kind": kind, "meaning": meaning}
            rows.append({**row, "values": None, "slices": True})
    columns = columns_of(
        rows,
        ("name", TEXT, "Attribute"),
        ("source", TEXT, "From"),
        ("kind", TEXT, "Kind"),
        ("meaning", TEXT, "What it says"),  # of a given one, some of its values
        "values",  # how many different ones a given one has
        "slices",  # whether it makes slices as it stands: a text of too many values does not
    )
    return Table("attributes", columns, "Attributes")


def _written(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    return beginning(40).write(text)


@remembered
def slices_of(workspace: Workspace) -> dict[str, list[tuple[str, str, int]]]:
    """Cut the topics by each attribute that makes slices: give the name, expression and size of each slice."""
    try:
        known = workspace.known(("relevant_band",))
    except InputError:
        known = workspace.known()
    found: dict[str, list[tuple[str, str, int]]] = {}
    for name in known.names:
        try:
            cut = slice_topics(known, name, query_ids=workspace.query_ids)
        except InputError:  # too many values, or none
            continue
        made = [(part.name, part.expression, n) for part, n in zip(cut.slices, cut.n.tolist(), strict=True) if n]
        if 1 < len(made) <= _MANY:
            found[name] = made
    return found


def conditions(workspace: Workspace) -> Table:
    """Give conditions that choose topics: one a slice, and the beginning of one for each number."""
    made = [(expression, n) for parts in slices_of(workspace).values() for _, expression, n in parts]
    made += [(f"{row['name']} >= ", None) for row in attributes(workspace).records() if row["kind"] == "number"]
    rows = [{"expression": expression, "topics": n} for expression, n in made]
    return Table("conditions", columns_of(rows, ("expression", TEXT), "topics"))


def usual(workspace: Workspace) -> str:
    """Name the attribute by which topics are sliced, if none is asked for."""
    rows = attributes(workspace).records()
    return next((row["name"] for row in rows if row["slices"] and row["kind"] == "text"), "relevant_band")


def cut(workspace: Workspace, asked: Sliced) -> Slicing:
    """Cut the topics that count into the slices that are asked for."""
    return _cut(workspace, asked.names, asked.where.strip(), asked.least)


@remembered
def _cut(workspace: Workspace, names: tuple[str, ...], where: str, least: int) -> Slicing:
    kept = list(compress(workspace.query_ids, workspace.mask(where)))
    known = workspace.known((*names, *Expression(where).names))
    by = list(dict.fromkeys(map(known.spelled, names)))
    return slice_topics(known, by, min_topics=least, query_ids=kept)


def with_conditions(asked: Sliced, slicing: Slicing) -> Table:
    """Lay out the slices, each with what selects its topics."""
    table, where = slicing.table(), [both(asked.where, part.expression) for part in slicing.slices]
    return replace(table, columns=(*table.columns, Column("where", where)))


def both(where: str, expression: str) -> str:
    """Put two expressions together: the topics that satisfy both.

    >>> both("", "kind == 'law'"), both("words < 5", "kind == 'law'")
    ("kind == 'law'", "(words < 5) and (kind == 'law')")
    """
    parts = [part for part in (where.strip(), expression.strip()) if part]
    return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)


def notes_of(workspace: Workspace, asked: Sliced, kept: int, known: tuple[Note, ...]) -> tuple[Note, ...]:
    """Give the notes on the topics that are kept and on how they are cut, before the notes on runs."""
    notes: list[Note] = []
    if OUTCOME in (*asked.names, *Expression(asked.where).names):
        first = workspace.run_names[0] if workspace.lists else "the first run"
        text = f"{OUTCOME} is taken from {first}: on topics where that run did badly, any other run does better"
        notes.append(Note("sliced-by-outcome", f"{text} by luck alone (regression to the mean)"))
    return (*notes, *workspace.notes_over(kept, known))


_ROWS = 100  # of a long table on a page; the twin has all


class NotOpenError(InputError):
    """What an answer is made of is not open: a program is refused, and a page says how to open it.

    >>> print(NotOpenError("no log is open", "judged serve QRELS RUN --log LOG"))
    no log is open. Fix: start with: judged serve QRELS RUN --log LOG.
    """

    def __init__(self, problem: str, command: str = "", about: str = "Open it, with judgments and runs:") -> None:
        self.about, self.command = about, command  # without a command, a page leads to where runs are opened
        super().__init__(problem, fix=f"start with: {command or 'judged serve QRELS RUN RUN'}")


def answer_page(
    router: APIRouter,
    template: str,
    path: str,
    title: str,
    summary: str,
    shown: Callable[[Workspace, Any, Any], Mapping[str, Any]] | None = None,
    **values: Any,
) -> Callable[[Made], Made]:
    """Make a page, and its twin below ``/api/v1``, of a function of the workspace and of what is asked.

    ``shown`` gives values for the template beside ``values``, of the workspace, what is asked, and the answer or None.
    """

    def register(make: Made) -> Made:
        @wraps(make)
        def twin(**given: Any) -> dict[str, Any]:
            return make(**given).to_dict()

        @wraps(make)
        def show(request: Request, **given: Any) -> HTMLResponse:
            workspace, asked = given["workspace"], given.get("asked", ())
            known: dict[str, Any] = {"asked": asked, "title": title, "blocks": (), **values}
            known |= dict.fromkeys(("answer", "problem", "closed"))
            try:
                answer = known["answer"] = make(**given)
                known["blocks"] = answer.blocks()
            except MissingExtraError:
                raise
            except NotOpenError as error:
                known["closed"] = error
            except JudgedError as error:
                known["problem"] = error
            known["attributes"] = attributes(workspace).records()
            known["status"] = HTTPStatus.OK if known["problem"] is None else HTTPStatus.BAD_REQUEST
            if shown is not None and known["closed"] is None:
                known |= shown(workspace, asked, known["answer"])
            return page(request, template, **known)

        # FastAPI learns from a handler's signature which parameters a request has. Both handlers serve functions with
        # any parameters, and so take `**given`: each is given the signature of `make`, with types in place of the names
        # of types, which are known in the file of `make` alone.
        parameters = _parameters(make)
        request = Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
        twin.__signature__ = Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        show.__signature__ = Signature([request, *parameters])  # pyright: ignore[reportAttributeAccessIssue]
        as_json: dict[str, Any] = {"summary": summary, "responses": PROBLEMS, "response_model": dict[str, Any]}
        router.get(f"/api/v1{path}", **as_json)(twin)
        router.get(path, include_in_schema=False, response_model=None)(show)
        return make

    return register


def _parameters(make: Callable[..., Any]) -> list[Parameter]:
    """Give the parameters of a function with their types, not the names of these, which are known in its file alone."""
    named = {name: kind for name, kind in make.__annotations__.items() if name != "return"}
    kinds = get_type_hints(SimpleNamespace(__annotations__=named), unwrap(make).__globals__, include_extras=True)
    return [one.replace(annotation=kinds[name]) for name, one in signature(make).parameters.items()]


def with_tables(blocks: Iterable[Block], **changes: Callable[[Table], Table]) -> list[Block]:
    """Change tables among the blocks of an answer, and within their sections, by their names."""
    made: list[Block] = []
    for block in blocks:
        if isinstance(block, Section):
            made.append(replace(block, blocks=tuple(with_tables(block.blocks, **changes))))
        elif isinstance(block, Table) and block.name in changes:
            made.append(changes[block.name](block))
        else:
            made.append(block)
    return made


def leading(table: Table, column: str, address: Callable[[Mapping[str, Any]], str]) -> Table:
    """Lead from the cells of a column elsewhere: to an address by the row as JSON has it, nowhere without one."""
    return table.changed(column, links=[address(row) for row in table.records()])


def topic_columns(workspace: Workspace, ids: Sequence[str], links: Sequence[str] = ()) -> tuple[Column, Column]:
    """Give the ids of topics and, where they are known, the texts of their queries."""
    texts = Column("query", [workspace.query(topic) for topic in ids], beginning(200), "Query")
    ways = Column("query_id", ids, TEXT, "Topic", links=links)
    return ways, texts if workspace.topics is not None else replace(texts, only="data")


def first_rows(table: Table) -> Table:
    """Show the first rows of a long table, and say so."""
    more = f"the first {_ROWS} of {len(table):,}" if len(table) > _ROWS else ""
    return replace(table, note=more).take(range(min(len(table), _ROWS)))
