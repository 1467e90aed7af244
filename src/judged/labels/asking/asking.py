"""A model asked for the grades of pairs: its labels in the store, and what became of each request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.labels.asking.budget import Budget
from judged.labels.asking.injections import ADDRESSED
from judged.labels.asking.parsing import first_token, read
from judged.labels.asking.replies import Answered, Tally, answers
from judged.results import COUNT, TEXT, Answer, Column, Sentences, Table, counted, listed, significant
from judged.results.notes import Note

if TYPE_CHECKING:
    from judged.labels.asking.preparation import Prepared
    from judged.results import Block

_WHY = {
    "budget": "the budget does not allow the next request",
    "endpoint": "the endpoint answered nothing more, or refuses whoever asks",
}


@dataclass(frozen=True, eq=False, repr=False)
class Asked(Answer):
    """What came of asking a model.

    Attributes
    ----------
    prepared
        What was asked.
    tally
        Requests answered, found in the store, refused, and left; calls, tokens, money and seconds; and the answers that
        were none, by why.
    stopped
        Why it ended before its end: ``budget`` or ``endpoint``; empty where it did not.
    """

    kind: ClassVar[str] = "asked"

    prepared: Prepared
    tally: Tally
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Who was asked."""
        return f"What {self.prepared.judge} answered"

    @property
    def stopped(self) -> str:
        """Why it ended before its end."""
        return self.tally.stopped

    @property
    def left(self) -> int:
        """How many requests have no answer yet."""
        return self.tally.left

    @property
    def cost(self) -> float | None:
        """What was spent at most: None where prices are not known."""
        return self.tally.budget.money if self.prepared.endpoint.priced else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What came of it, and how to go on."""
        tally, invalid = self.tally, sum(self.tally.invalid.values())
        calls = f"{counted(tally.budget.calls, 'call')} to {self.prepared.endpoint.host}"
        parts = f"{tally.answered:,} were answered now, {tally.cached:,} before, and {tally.left:,} are left"
        said = [f"Of {counted(tally.requests, 'request')} {parts}; {calls}."]
        if invalid:
            kinds = listed([f"{count:,} {kind}" for kind, count in tally.invalid.most_common()])
            said.append(f"{counted(invalid, 'answer')} not in the form that was asked for, and so no label: {kinds}.")
        if tally.left:
            why = f"Stopped: {_WHY[tally.stopped]}. " if tally.stopped else ""
            said.append(f"{why}Nothing that was answered is lost: the same call goes on with what is left.")
        return tuple(said)

    def facts(self) -> Mapping[str, Any]:
        """Give who was asked, and why it ended."""
        return {**self.prepared.facts(), "stopped": self.stopped}

    def blocks(self) -> tuple[Block, ...]:
        """Give the sentences and all counts."""
        tally = self.tally
        counts = {
            "requests": tally.requests, "answered": tally.answered, "cached": tally.cached, "left": tally.left,
            "refused": tally.refused.total(), "unanswered": tally.unanswered.total(), "calls": tally.budget.calls,
            "tokens_in": tally.budget.tokens_in, "tokens_out": tally.budget.tokens_out,
        }  # fmt: skip
        numbers = [Column(name, [count], COUNT, name.replace("_", " ")) for name, count in counts.items()]
        numbers += [Column("cost", [self.cost], significant(4)), Column("seconds", [tally.seconds], significant(3))]
        kinds = tally.invalid.most_common()
        invalid = Table(
            "invalid",
            (
                Column("kind", [kind for kind, _ in kinds], TEXT, "no label"),
                Column("count", [count for _, count in kinds], COUNT, "answers"),
            ),
        )
        return (
            Sentences(self.sentences),
            Table("asked", tuple(numbers), labels=0),
            *((invalid,) if kinds else ()),
            *self.more(),
        )

    def more(self) -> tuple[Block, ...]:
        """Give what else was made of the answers."""
        return ()


def ask(
    prepared: Prepared,
    *,
    budget_calls: int | None = None,
    budget_money: float | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Asked:
    """Send what was prepared, and put what comes back into the store as labels.

    Each answer is kept before anything else happens; after a stop, `prepare` and `ask` go on with what is left.

    Parameters
    ----------
    prepared
        What `prepare` gave.
    budget_calls, budget_money
        The most requests that are sent, those sent again among them, and the most that they may cost; None: no limit.
    progress
        Called after each answer with what has happened so far.

    Raises
    ------
    InputError
        If there is no key, or the budget is in money and prices or lengths are not known.
    MissingExtraError
        If httpx is not installed.
    """
    tally = Tally(Budget(prepared.endpoint, budget_calls, budget_money))
    store, prompt = prepared.store, prepared.prompt
    for answered, rows in answered_rows(prepared, tally, progress):
        reading = read(answered.reply, prompt.forms)
        if reading.invalid:
            tally.invalid[reading.invalid] += 1
        usual = {
            "judge": prepared.judge, "kind": "model", "model": prepared.endpoint.model, "prompt": prompt.id,
            "grade": None if reading.form is None else float(reading.form), "valid": reading.form is not None,
            "seconds": answered.reply.seconds, "logprobs": first_token(answered.reply.top, prompt.forms),
        }  # fmt: skip
        store.add_many(
            usual | {
                "query_id": query, "doc_id": doc, "repeat": repeat, "seed": prepared.endpoint.seed + repeat,
                "note": reading.invalid or (ADDRESSED if doc in prepared.addressed else ""),
            }
            for query, doc, repeat in rows
        )  # fmt: skip
    return Asked(prepared, tally, notes_of(prepared, tally))


def notes_of(prepared: Prepared, tally: Tally) -> tuple[Note, ...]:
    """Say what was found before, and what the endpoint said in place of answers."""
    failures = (tally.refused + tally.unanswered).most_common()
    said = (Note("no-answer", f"{counted(count, 'request')} not answered: {why}") for why, count in failures)
    return (*prepared.notes, *said)


def answered_rows(
    prepared: Prepared, tally: Tally, progress: Callable[[Tally], None] | None
) -> Iterator[tuple[Answered, Any]]:
    """Give the answers with what each is about."""
    for answered in answers(prepared.store, prepared.endpoint, prepared.requests, tally, progress):
        yield answered, prepared.rows[answered.request]
