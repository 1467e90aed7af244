"""Serve one function as a page and as JSON, and build tables that several pages share."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from http import HTTPStatus
from inspect import Parameter, Signature, signature, unwrap
from itertools import compress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from fastapi import APIRouter, Request

from judged.comparison.slicing import Expression, Slicing, slice_topics
from judged.comparison.slicing.derived import MEANINGS, OUTCOME, SOURCES
from judged.data.compute import pc
from judged.data.query_text import has_language_detector
from judged.errors import InputError, JudgedError, MissingExtraError
from judged.interface.arguments import outcome_note
from judged.interface.pages.answers import page
from judged.interface.pages.pagination import Paging
from judged.interface.pages.problems import PROBLEMS, Parameters
from judged.interface.pages.workspace import Workspace, cached_in_workspace
from judged.results import TEXT, Answer, Block, Column, Section, Sentences, Table, columns_of, truncated
from judged.results.blocks import Note
from judged.results.text_formats import full_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fastapi.responses import HTMLResponse

    from judged.interface.pages.slices import SlicedQuery

    PageFunction = TypeVar("PageFunction", bound=Callable[..., Answer])


_KINDS = {"double": "number", "bool": "true or false", "string": "text"}
_MAX_VALUES = 12  # of a text attribute that can be sliced by
_SHOWN_VALUES = 5  # shown as examples


@cached_in_workspace
def attributes(workspace: Workspace) -> Table:
    """Return the table of topic attributes: those of the input, then derived ones."""
    topic_attributes, rows = workspace.topic_attributes(), list[dict[str, Any]]()
    for name in topic_attributes.names:
        column = topic_attributes.column(name)
        kind, values = _KINDS[str(column.type)], sorted(pc.unique(column.drop_null()).to_pylist())
        meaning = ", ".join(map(_format_value, values[:_SHOWN_VALUES])) + ", ..." * (len(values) > _SHOWN_VALUES)
        if kind == "number" and values:
            meaning = f"{_format_value(values[0])} to {_format_value(values[-1])}"
        is_sliceable = bool(values) and (kind != "text" or len(values) <= _MAX_VALUES)
        row = {"name": name, "source": "input", "kind": kind, "meaning": meaning}
        rows.append({**row, "values": len(values), "slices": is_sliceable})
    is_available = (True, workspace.topics is not None, "traffic" in topic_attributes.names, bool(workspace.lists))
    available: dict[str, bool] = dict(zip(SOURCES, is_available, strict=True))
    for name, (source, kind, meaning) in MEANINGS.items():
        if available[source] and name not in topic_attributes.names and (name != "language" or has_language_detector()):
            row = {"name": name, "source": source, "kind": kind, "meaning": meaning}
            rows.append({**row, "values": None, "slices": True})
    columns = columns_of(
        rows,
        ("name", TEXT, "Attribute"),
        ("source", TEXT, "Source"),
        ("kind", TEXT, "Type"),
        ("meaning", TEXT, "Description"),  # for input attributes, example values
        "values",  # number of distinct values of an input attribute
        "slices",  # whether topics can be sliced by it: a text with too many values cannot
    )
    return Table("attributes", columns, "Attributes")


def _format_value(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
    return truncated(40).write(text)


@cached_in_workspace
def slices_by_attribute(workspace: Workspace) -> dict[str, list[tuple[str, str, int]]]:
    """Return the slices (name, expression, size) of each attribute that topics can be sliced by."""
    try:
        attributes = workspace.topic_attributes(("relevant_band",))
    except InputError:
        attributes = workspace.topic_attributes()
    slices: dict[str, list[tuple[str, str, int]]] = {}
    for name in attributes.names:
        try:
            slicing = slice_topics(attributes, name, query_ids=workspace.query_ids)
        except InputError:  # too many values, or none
            continue
        sizes = zip(slicing.slices, slicing.n.tolist(), strict=True)
        parts = [(part.name, part.expression, n) for part, n in sizes if n]
        if 1 < len(parts) <= _MAX_VALUES:
            slices[name] = parts
    return slices


def conditions(workspace: Workspace) -> Table:
    """Return conditions that select topics: one per slice, and one without a number per numeric attribute."""
    conditions = [(expression, n) for parts in slices_by_attribute(workspace).values() for _, expression, n in parts]
    conditions += [(f"{row['name']} >= ", None) for row in attributes(workspace).records() if row["kind"] == "number"]
    rows = [{"expression": expression, "topics": n} for expression, n in conditions]
    return Table("conditions", columns_of(rows, ("expression", TEXT), "topics"))


def default_attribute(workspace: Workspace) -> str:
    """Return the attribute to slice by if the query names none."""
    rows = attributes(workspace).records()
    return next((row["name"] for row in rows if row["slices"] and row["kind"] == "text"), "relevant_band")


def build_slicing(workspace: Workspace, query: SlicedQuery) -> Slicing:
    """Slice the topics that satisfy the query by its attributes."""
    return _build_slicing(workspace, query.names, query.where.strip(), query.tested_size)


@cached_in_workspace
def _build_slicing(workspace: Workspace, names: tuple[str, ...], where: str, min_topics: int) -> Slicing:
    query_ids = list(compress(workspace.query_ids, workspace.mask(where)))
    attributes = workspace.topic_attributes((*names, *Expression(where).names))
    by = list(dict.fromkeys(map(attributes.spelled, names)))
    return slice_topics(attributes, by, min_topics=min_topics, query_ids=query_ids)


def slices_with_conditions(query: SlicedQuery, slicing: Slicing) -> Table:
    """Return the table of slices, each with a condition that selects its topics."""
    table, where = slicing.table(), [conjunction(query.where, part.expression) for part in slicing.slices]
    return replace(table, columns=(*table.columns, Column("where", where)))


def conjunction(where: str, expression: str) -> str:
    """Return the expression that is true where two expressions are; an empty one is ignored.

    >>> conjunction("", "kind == 'law'"), conjunction("words < 5", "kind == 'law'")
    ("kind == 'law'", "(words < 5) and (kind == 'law')")
    """
    parts = [part for part in (where.strip(), expression.strip()) if part]
    return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)


def page_notes(workspace: Workspace, query: SlicedQuery, topics: int, run_notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """Return the notes on slicing and on excluded topics, before the notes on runs."""
    notes: list[Note] = []
    if OUTCOME in (*query.names, *Expression(query.where).names):
        first = workspace.run_names[0] if workspace.lists else "the first run"
        notes.append(Note("sliced-by-outcome", outcome_note(first)))
    return (*notes, *workspace.notes_over(topics, run_notes))


class NotOpenError(InputError):
    """The data that an answer needs is not open. Programs get an error; pages show the command that opens it.

    >>> print(NotOpenError("no log is open", "judged serve QRELS RUN --log LOG"))
    no log is open. Fix: start with: judged serve QRELS RUN --log LOG.
    """

    def __init__(
        self, problem: str, command: str = "", about: str = "Start the workbench with judgments and runs:"
    ) -> None:
        self.about, self.command = about, command  # without a command, a page links to /open
        super().__init__(problem, fix=f"start with: {command or 'judged serve QRELS RUN RUN'}")


_MAX_NOTE = 30  # words of a note that is shown below its table; longer ones are in the folded details


def _split_details(answer: Answer, blocks: Iterable[Block]) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Return the blocks of a page, and those of its folded details, if there is a headline.

    Details are untitled sentences, and long notes of tables.
    """
    if answer.headline is None:
        return tuple(blocks), ()
    shown: list[Block] = []
    details: list[Block] = []
    for block in blocks:
        if isinstance(block, Section):
            parts, more = _split_details(answer, block.blocks)
            shown.append(replace(block, blocks=parts))
            details += [replace(part, title=block.title) if isinstance(part, Sentences) else part for part in more]
        elif isinstance(block, Sentences) and not (block.title or block.folded):
            details.append(block)
        elif isinstance(block, Table) and len(block.note.split()) > _MAX_NOTE:
            shown.append(replace(block, note=""))
            note = full_stop(block.note[:1].upper() + block.note[1:])
            details.append(Sentences((note,), f"{block.name}_note", block.title or block.name.capitalize()))
        else:
            shown.append(block)
    return tuple(shown), tuple(details)


def answer_page(
    router: APIRouter,
    template: str,
    path: str,
    title: str,
    summary: str,
    page_values: Callable[[Workspace, Any, Any], Mapping[str, Any]] | None = None,
    **values: Any,
) -> Callable[[PageFunction], PageFunction]:
    """Serve a function of the workspace and the query as a page, and as JSON below ``/api/v1``.

    ``page_values`` returns more values for the template, from the workspace, the query, and the answer or None. Its
    value ``block_changes`` replaces or removes blocks, as in `replace_blocks`.
    """

    def register(function: PageFunction) -> PageFunction:
        @wraps(function)
        def as_json(**arguments: Any) -> dict[str, Any]:
            return function(**arguments).to_dict()

        @wraps(function)
        def as_page(request: Request, **arguments: Any) -> HTMLResponse:
            # By convention, the parameter of the workspace has this name; that of the query may have any.
            workspace = arguments["workspace"]
            query = next((value for value in arguments.values() if isinstance(value, Parameters)), ())
            context: dict[str, Any] = {"query": query, "title": title, "blocks": (), **values}
            context |= dict.fromkeys(("answer", "problem", "closed"))
            try:
                context["answer"] = function(**arguments)
            except MissingExtraError:
                raise
            except NotOpenError as error:
                context["closed"] = error
            except JudgedError as error:
                context["problem"] = error
            context["attributes"] = attributes(workspace).records()
            context["status"] = HTTPStatus.OK if context["problem"] is None else HTTPStatus.BAD_REQUEST
            if page_values is not None and context["closed"] is None:
                context |= page_values(workspace, query, context["answer"])
            answer: Answer | None = context["answer"]
            if answer is not None and not context["blocks"]:
                blocks = replace_blocks(answer.blocks(), context.pop("block_changes", {}))
                context["blocks"], context["details_blocks"] = _split_details(answer, blocks)
            return page(request, template, **context)

        # FastAPI reads the parameters of a request from the signature of its handler. Both handlers take `**arguments`,
        # so their signature is set to that of `function`, with its annotations resolved in the module of `function`.
        parameters = _parameters(function)
        request = Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
        as_json.__signature__ = Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        as_page.__signature__ = Signature([request, *parameters])  # pyright: ignore[reportAttributeAccessIssue]
        api_options: dict[str, Any] = {"summary": summary, "responses": PROBLEMS, "response_model": dict[str, Any]}
        router.get(f"/api/v1{path}", **api_options)(as_json)
        router.get(path, include_in_schema=False, response_model=None)(as_page)
        return function

    return register


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function with resolved types, which FastAPI needs instead of their names."""
    annotations = {name: annotation for name, annotation in function.__annotations__.items() if name != "return"}
    holder = SimpleNamespace(__annotations__=annotations)
    types = get_type_hints(holder, unwrap(function).__globals__, include_extras=True)
    return [parameter.replace(annotation=types[name]) for name, parameter in signature(function).parameters.items()]


def replace_blocks(blocks: Iterable[Block], changes: Mapping[str, Callable[[Any], Block | None]]) -> Iterator[Block]:
    """Replace blocks by name, including those in sections; None removes a block."""
    for block in blocks:
        changed = changes[block.name](block) if block.name in changes else block
        if isinstance(changed, Section):
            yield replace(changed, blocks=tuple(replace_blocks(changed.blocks, changes)))
        elif changed is not None:
            yield changed


def with_links(table: Table, column: str, address: Callable[[Mapping[str, Any]], str]) -> Table:
    """Link the cells of a column: `address` maps a row, as in JSON, to an address, or to an empty string."""
    return table.changed(column, links=[address(row) for row in table.records()])


def topic_columns(workspace: Workspace, ids: Sequence[str], links: Sequence[str] = ()) -> tuple[Column, Column]:
    """Return a column of topic ids, and one of their query texts, for data only if no text is known."""
    query_column = Column("query", [workspace.query(topic) for topic in ids], truncated(200), "Query")
    id_column = Column("query_id", ids, TEXT, "Topic", links=links)
    return id_column, query_column if workspace.topics is not None else replace(query_column, only="data")


def rows_of_page(table: Table, page: int) -> Table:
    """Return the rows of a page of a long table, at most of its last page; the title says which rows these are."""
    paging = Paging.for_page(page, len(table))
    rows = f", rows {paging.first_shown} to {paging.last_shown} of {len(table):,}" if paging.last > 1 else ""
    return replace(table.take(paging.of(range(len(table)))), title=f"{table.title}{rows}")


def listed_page(table: Table, page: int, *tables: Table) -> dict[str, Any]:
    """Return the rows of a page of a long list, and its paging, for a template with `ui.pages`.

    The paging is also that of other `tables`, which are shown by `rows_of_page`.
    """
    paging = Paging.for_page(page, max(map(len, (table, *tables))))
    return {"listed": replace(rows_of_page(table, page), title=table.title, folded=False), "paging": paging}
