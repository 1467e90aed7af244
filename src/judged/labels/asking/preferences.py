"""Which of two documents a model prefers, asked in both orders: what it says in one alone is a matter of position.

Preferences are no labels of a document and are not kept as such: they are a table that is returned. The answers are in
the store, so that the same call gives the same table without asking anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from judged.labels.asking.asking import Asked, answered_rows, notes_of
from judged.labels.asking.budget import Budget
from judged.labels.asking.parsing import read
from judged.labels.asking.preparation import Make, Prepared, Row, Source, prepared
from judged.labels.asking.prompts import Prompt
from judged.labels.asking.replies import Tally, request_key
from judged.results import COUNT, TEXT, Column, Sentences, Table, counted

if TYPE_CHECKING:
    from judged.labels.asking.client import Endpoint
    from judged.labels.store import LabelStore
    from judged.results import Block

_FORMS = ("A", "B", "C")


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Asked):
    """What a model prefers.

    Attributes
    ----------
    pairs
        (topic, document, other document, answer, answer in the other order) of each pair, with a place in the pair as
        an answer: 1, 2, or 0 for neither; None where there is no valid answer.
    """

    kind: ClassVar[str] = "preferences"
    main: ClassVar[str] = "preferences"

    pairs: tuple[tuple[str, str, str, int | None, int | None], ...] = ()

    @property
    def by_position(self) -> tuple[int, int]:
        """How often the document that was shown first, or second, was preferred in both orders, whichever it was."""
        decided = [(a, b) for *_, a, b in self.pairs]
        return decided.count((1, 2)), decided.count((2, 1))

    def more(self) -> tuple[Block, ...]:
        """Give each pair, and what position did."""
        first, second = self.by_position
        both = [(a, b) for *_, a, b in self.pairs if a is not None and b is not None]
        same = sum(a == b for a, b in both)
        said = (
            f"Of {counted(len(both), 'pair')} with both answers {same:,} have the same in both orders; whichever"
            f" document was shown first was preferred in {first:,}, whichever was shown second in {second:,}."
        )
        names = ("query_id", "doc_id", "other_doc_id")
        columns = [Column(name, [row[at] for row in self.pairs], TEXT) for at, name in enumerate(names)]
        columns += [
            Column("preferred", [a if a == b else None for *_, a, b in self.pairs], COUNT),
            Column("in_order", [row[3] for row in self.pairs], COUNT, "in this order"),
            Column("in_other_order", [row[4] for row in self.pairs], COUNT, "in the other order"),
        ]
        note = "1 is the first document, 2 the other one, 0 neither; preferred is what both orders agree on"
        return Sentences((said,), "position"), Table("preferences", tuple(columns), note=note, labels=3)


def prepare_preferences(
    store: LabelStore,
    endpoint: Endpoint,
    pairs: Iterable[tuple[str, str, str]],
    *,
    judge: str = "",
    texts: Any = None,
    characters: int | None = None,
) -> Prepared:
    """Write the requests about pairs of (topic, document, other document), each in both orders.

    The other parameters are those of `prepare`.
    """
    source, prompt = Source(store, texts, characters), Prompt.read("pairwise", _FORMS)
    requests, rows = dict[str, Make](), dict[str, list[Row]]()
    for query, doc, other in dict.fromkeys(pairs):
        if not source.has(query, doc, other):
            continue
        for order, docs in enumerate(((doc, other), (other, doc))):
            make = partial(source.body, endpoint, prompt, query, docs, 0)
            key = request_key(make())
            requests[key] = make
            rows.setdefault(key, []).append((query, doc, other, order))
    return prepared(source, endpoint, judge or endpoint.model, prompt, requests, rows)


def ask_preferences(
    prepared: Prepared,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Preferences:
    """Send what `prepare_preferences` gave; the parameters are those of `ask`."""
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    said: dict[tuple[str, str, str], list[int | None]] = {}
    for rows in prepared.rows.values():
        said |= {tuple(row[:3]): [None, None] for row in rows}
    for answered, rows in answered_rows(prepared, tally, progress):
        reading = read(answered.reply, _FORMS)
        if reading.invalid:
            tally.invalid[reading.invalid] += 1
            continue
        place = (1, 2, 0)[_FORMS.index(reading.form or "C")]
        for *pair, order in rows:
            said[tuple(pair)][order] = 3 - place if order and place else place
    pairs = tuple((*pair, *places) for pair, places in said.items())
    return Preferences(prepared, tally, notes_of(prepared, tally), pairs)  # pyright: ignore[reportArgumentType]
