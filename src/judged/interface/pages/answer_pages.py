"""A page and its twin in JSON from one function: parameters in, an answer out, its blocks below a form."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from http import HTTPStatus
from inspect import Parameter, Signature, signature, unwrap
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from fastapi import Request

from judged.errors import InputError, JudgedError, MissingExtraError
from judged.interface.pages.answers import page
from judged.interface.pages.attributes import attributes
from judged.interface.pages.problems import PROBLEMS
from judged.results import TEXT, Answer, Column, Section, Table, beginning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fastapi import APIRouter
    from fastapi.responses import HTMLResponse

    from judged.interface.pages.workspace import Workspace
    from judged.results import Block

    Made = TypeVar("Made", bound=Callable[..., Answer])

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
