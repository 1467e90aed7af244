"""A model asked, and its replies as rows of a table: what is not in the form that was asked for is failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from judged.comparison.slicing.queries import normalised
from judged.errors import InputError
from judged.labels.asking.asking import Asked, answered_rows, notes_of
from judged.labels.asking.budget import Budget
from judged.labels.asking.parsing import read, text_of, why_none
from judged.labels.asking.replies import Tally
from judged.pipelines.rag.asking.questions import MOST_WORDS, Filling
from judged.pipelines.rag.responses import FAILED, KEYS, OKAY, VERDICTS, VITAL, Responses, table_of_records
from judged.results import COUNT, TEXT, Column, Table, counted
from judged.results.notes import Note, first_few

if TYPE_CHECKING:
    from judged.labels.asking.client import Reply
    from judged.labels.asking.parsing import Invalid
    from judged.labels.asking.preparation import Row
    from judged.results import Block

_NUGGET = re.compile(r"(vital|okay) *\| *(\d{1,3}(?: *, *\d{1,3})*) *\| *(\S[^|\r\n]*)", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class Filled(Asked):
    """What `fill` returns.

    Attributes
    ----------
    responses
        The answers with the table that was filled.
    fills
        Its name.
    """

    kind: ClassVar[str] = "filled"
    main: ClassVar[str] = "filled"

    responses: Responses | None = None
    fills: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()

    def more(self) -> tuple[Block, ...]:
        """Give how often each verdict was given; of nuggets, how many are vital and okay."""
        title = f"What {self.prepared.judge} said: {self.fills}"
        if self.fills == "nuggets":
            times = Counter(row["importance"] for row in self.rows if "importance" in row)
            columns = [Column("importance", [VITAL, OKAY], TEXT), Column("count", [times[VITAL], times[OKAY]], COUNT)]
            return (Table("filled", tuple(columns), title),)
        words = VERDICTS[self.fills]
        columns = [Column("verdict", list(words), TEXT)]
        for name, repeat in (("count", 0), ("again", 1)):
            times = Counter(row["verdict"] for row in self.rows if row["repeat"] == repeat)
            columns.append(Column(name, [times[word] for word in words], COUNT))
        return (Table("filled", tuple(columns), title),)


def fill(
    prepared: Filling,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Filled:
    """Send what was prepared, and put what comes back into the table.

    A reply in any other form than the one that was asked for is counted, and what it was about is `failed`. What is not
    answered yet has no row; the same calls of `prepare_table` and `fill` go on with what is left, if the store is a
    file. Rows that the same judge gave before for the same are replaced. The parameters are those of
    `judged.labels.asking.ask`.

    Raises
    ------
    InputError
        If there is no key, or the budget is in money and prices or lengths are not known.
    MissingExtraError
        If httpx is not installed.
    """
    responses, table = prepared.responses, prepared.fills
    if responses is None:
        raise InputError("nothing was prepared", fix="use what prepare_table gave")
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    made, without = list[dict[str, Any]](), list[str]()
    for about in prepared.unasked:
        made += _verdicts(table, prepared.judge, about, None)
    for answered, rows in answered_rows(prepared, tally, progress):
        for at, about in enumerate(rows):
            if table == "nuggets":
                query, docs, _ = about
                found, invalid = nuggets_of(answered.reply, docs, int(prepared.prompt.values["limit"]))
                made += ({"query_id": query, **row} for row in found)
                without += [] if found else [query]
            elif table == "assignments":
                given, invalid = verdicts_of(answered.reply, len(about[2]), prepared.prompt.forms)
                made += _verdicts(table, prepared.judge, about, given)
            else:
                form, invalid = read(answered.reply, prepared.prompt.forms)
                made += _verdicts(table, prepared.judge, about, None if form is None else [form])
            if invalid and not at:
                tally.invalid[invalid] += 1
    notes = notes_of(prepared, tally)
    if without:
        text = f"no nuggets for {counted(len(without), 'topic')}: {first_few(sorted(without))}"
        notes = (*notes, Note("no-nuggets", text))
    tables = ("nuggets", "evidence") if table == "nuggets" else (table,)
    parts = {name: _with_rows(responses, name, made) for name in tables}
    return Filled(prepared, tally, notes, responses.with_tables(**parts), table, tuple(made))


def nuggets_of(reply: Reply, docs: Sequence[str], limit: int) -> tuple[list[dict[str, Any]], Invalid | None]:
    """Read nuggets and the documents they stand in strictly: one line other than asked for, and there are none.

    >>> from judged.labels.asking.client import Reply
    >>> nuggets_of(Reply("vital | 2 | Goethe wrote Faust"), ["a", "b"], 5)[0][0]
    {'nugget_id': '1', 'text': 'Goethe wrote Faust', 'importance': 'vital'}
    >>> nuggets_of(Reply("- Goethe wrote Faust"), ["a", "b"], 5)
    ([], 'no answer')
    """
    text, invalid = text_of(reply)
    if invalid:
        return [], invalid
    if text == "NONE":
        return [], None
    known: dict[str, tuple[str, str, set[int]]] = {}
    for line in filter(str.strip, text.split("\n")):
        match = _NUGGET.fullmatch(line.strip())
        places = [int(number) for number in match[2].split(",")] if match else []
        if match is None or not all(1 <= place <= len(docs) for place in places) or len(match[3].split()) > MOST_WORDS:
            return [], "another form" if match else why_none(text, ())
        nugget = match[3].strip()
        known.setdefault(normalised(nugget), (nugget, match[1].casefold(), set()))[2].update(places)
    if len(known) > limit:
        return [], "another form"
    rows: list[dict[str, Any]] = []
    for at, (nugget, importance, places) in enumerate(known.values(), 1):
        rows.append({"nugget_id": str(at), "text": nugget, "importance": importance})
        rows += ({"nugget_id": str(at), "doc_id": docs[place - 1]} for place in sorted(places))
    return rows, None


def verdicts_of(reply: Reply, n: int, forms: Sequence[str]) -> tuple[list[str] | None, Invalid | None]:
    r"""Read a verdict for each of `n` numbered facts strictly: all of them, in order, and nothing else.

    >>> from judged.labels.asking.client import Reply
    >>> verdicts_of(Reply("1: support\n2: not"), 2, ("support", "not"))
    (['support', 'not'], None)
    >>> verdicts_of(Reply("1: support"), 2, ("support", "not"))
    (None, 'another form')
    """
    text, invalid = text_of(reply)
    if invalid:
        return None, invalid
    lines = [line.strip().casefold() for line in text.split("\n") if line.strip()]
    numbers = [line.partition(":")[0].strip() for line in lines]
    words = [line.partition(":")[2].strip() for line in lines]
    if numbers == [str(at) for at in range(1, n + 1)] and set(words) <= set(forms):
        return words, None
    return None, "another form" if ":" in text else why_none(text, ())


def _verdicts(table: str, judge: str, about: Row, verdicts: Sequence[str] | None) -> list[dict[str, Any]]:
    """Give the rows of a reply; None: there is no verdict."""
    names = [name for name in KEYS[table] if name not in ("judge", "repeat")]
    *key, repeat = about
    keys = [(*key[:-1], nugget) for nugget in key[-1]] if table == "assignments" else [tuple(key)]
    usual = {"judge": judge, "repeat": repeat}
    given = verdicts or [FAILED] * len(keys)
    return [
        {**dict(zip(names, one, strict=True)), **usual, "verdict": verdict}
        for one, verdict in zip(keys, given, strict=True)
    ]


def _with_rows(responses: Responses, table: str, made: Sequence[Mapping[str, Any]]) -> Any:
    """Put rows beside those of a table, or in the place of those with the same key."""
    own = [row for row in made if table not in ("nuggets", "evidence") or ("doc_id" in row) == (table == "evidence")]
    added = table_of_records(table, ((None, dict(row)) for row in own), f"<{table}>")
    kept = responses[table].join(added.select(KEYS[table]), list(KEYS[table]), join_type="left anti")
    whole = pa.concat_tables([kept.select(added.column_names), added])
    return whole.sort_by([(name, "ascending") for name in KEYS[table]])  # replies come in any order
