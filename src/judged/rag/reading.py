"""One answer as its user saw it: sentences with what supports them, the context, and the nuggets that it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.answer import COUNT, TEXT, Answer, Column, Lists, Sentences, Table
from judged.answer.blocks import Item, Ranking
from judged.data.compute import pc
from judged.errors import InputError
from judged.rag.responses import CONTRADICTS, FAILED, NOT, PARTIAL, SUPPORT, Responses
from judged.rag.verdicts import middle_verdicts

if TYPE_CHECKING:
    from judged.answer import Block

_KINDS = {SUPPORT: "good", NOT: "bad", CONTRADICTS: "bad"}
_SUPPORTED = {SUPPORT: "supported", NOT: "not supported", CONTRADICTS: "contradicted", "": "–"}
_COVERED = {SUPPORT: "yes", NOT: "no"}
_WORDS = {PARTIAL: "in part", FAILED: "no verdict"}


@dataclass(frozen=True, eq=False, repr=False)
class AnswerRead(Answer):
    """What one system answered to one topic, and what is known of it.

    Attributes
    ----------
    own : Responses
        Of this system and topic alone.
    run, query_id, query : str
    grades : dict of float
        Of judged documents.
    """

    kind: ClassVar[str] = "answer"

    own: Responses
    run: str
    query_id: str
    query: str
    grades: Mapping[str, float]

    @property
    def title(self) -> str:
        """The question."""
        return f"{self.query_id}: {self.query}" if self.query else self.query_id

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was answered, or that it was not, and what came of it."""
        answer, *_ = self.own["answers"].to_pylist()
        text = answer["text"] or " ".join(row["text"] or "" for row in self.own["sentences"].to_pylist())
        correct = middle_verdicts(self.own["correctness"], "query_id").get((self.query_id,))
        outcomes = {SUPPORT: "correct", PARTIAL: "correct in part", NOT: "not correct"}
        said = [f"The answer is {outcomes[correct]}." if correct != FAILED else "There is no verdict on the answer."
                ] if correct else []  # fmt: skip
        return (text, *(["It says that it cannot answer."] if answer["abstained"] else []), *said)

    def facts(self) -> Mapping[str, Any]:
        """Give whose answer to what it is."""
        return {"run": self.run, "query_id": self.query_id, "query": self.query}

    def blocks(self) -> tuple[Block, ...]:
        """Give the answer, its sentences, its nuggets and its context; what is not recorded is left out."""
        made = [Sentences(self.sentences), self._sentences(), self._nuggets()]
        return (*(block for block in made if not isinstance(block, Table) or len(block)), *self._context())

    def _sentences(self) -> Table:
        rows = sorted(self.own["sentences"].to_pylist(), key=lambda row: row["sentence"])
        support = middle_verdicts(self.own["support"], "sentence", "doc_id")
        cited: dict[int, list[str]] = {}
        for row in sorted(self.own["citations"].to_pylist(), key=lambda row: (row["sentence"], row["place"])):
            cited.setdefault(row["sentence"], []).append(row["doc_id"])
        order = (SUPPORT, PARTIAL, CONTRADICTS, NOT, FAILED)
        verdicts = [
            min((support.get((row["sentence"], doc), FAILED) for doc in cited.get(row["sentence"], ())),
                key=order.index, default="")
            for row in rows
        ]  # fmt: skip
        whole = [support.get((row["sentence"], ""), "") for row in rows]
        columns = (
            Column("sentence", [row["sentence"] for row in rows], COUNT, ""),
            Column("text", [row["text"] or "" for row in rows], TEXT, "says"),
            _verdicts("supported", verdicts, "by a citation", _SUPPORTED),
            _verdicts("grounded", whole, "by the context", _SUPPORTED),
            Column("cites", [", ".join(cited.get(row["sentence"], ())) or "nothing" for row in rows], TEXT),
        )
        return Table("said", columns, "Sentence by sentence", labels=3)

    def _nuggets(self) -> Table:
        nuggets = self.own["nuggets"].to_pylist()
        assigned = middle_verdicts(self.own["assignments"], "nugget_id")
        evidence: dict[str, list[str]] = {}
        for row in self.own["evidence"].to_pylist():
            evidence.setdefault(row["nugget_id"], []).append(row["doc_id"])
        columns = (
            Column("nugget_id", [row["nugget_id"] for row in nuggets], TEXT, only="data"),
            Column("text", [row["text"] or row["nugget_id"] for row in nuggets], TEXT, "should say"),
            Column("importance", [row["importance"] for row in nuggets], TEXT),
            _verdicts("covered", [assigned.get((row["nugget_id"],), FAILED) for row in nuggets], "says it", _COVERED),
            Column("evidence", [", ".join(evidence.get(row["nugget_id"], ())) for row in nuggets], TEXT, "stands in"),
        )
        return Table("nuggets", columns, "Nuggets")

    def _context(self) -> tuple[Block, ...]:
        rows = sorted(self.own["context"].to_pylist(), key=lambda row: row["rank"] or 0)
        cited = set(self.own["citations"]["doc_id"].to_pylist())
        items = tuple(
            Item(
                str(row["rank"]),
                row["doc_id"],
                f"{self.grades[row['doc_id']]:g}" if row["doc_id"] in self.grades else "",
                self.grades[row["doc_id"]] > 0 if row["doc_id"] in self.grades else None,
                change="cited" if row["doc_id"] in cited else "",
                text=row["text"] or "",
            )
            for row in rows
        )
        listed = Lists("context", "What it was given", (), (Ranking(self.run, "", items),))
        return (listed,) if items else ()


def _verdicts(name: str, verdicts: list[str], title: str, words: dict[str, str]) -> Column:
    """Set verdicts off as good or bad; those of which there is none at all are left out for people."""
    texts, kinds = (
        [(words | _WORDS)[verdict] for verdict in verdicts],
        [_KINDS.get(verdict, "") for verdict in verdicts],
    )
    marks = ["●" if kind else "" for kind in kinds]
    return Column(name, texts, TEXT, title, mark=marks, kinds=kinds, only="" if any(verdicts) else "data")


def read_answer(responses: Any, run: str, topic: str, *, qrels: Any = None, queries: Any = None) -> AnswerRead:
    """Lay one answer out: what it says, what supports that, what it was given, and what it should say.

    Parameters
    ----------
    responses
        What `Responses.of` takes.
    run, topic
        The system and the topic.
    qrels, queries
        Judgments of documents, and texts of topics.

    Raises
    ------
    InputError
        If the system did not answer the topic.

    Examples
    --------
    >>> made = read_answer({"answers": [{"query_id": "q", "text": "It is 7."}]}, "run", "q")
    >>> made.sentences
    ('It is 7.',)
    """
    from judged.data.qrels import Qrels
    from judged.data.topics import Topics

    own = Responses.of(responses).of_run(run)
    answered = own["answers"]["query_id"].to_pylist()
    if topic not in answered:
        raise InputError(f"{run} did not answer {topic!r}", fix=f"use one of {', '.join(answered[:5])}, and so on")
    grades: dict[str, float] = {}
    if qrels is not None:
        table = Qrels.of(qrels).table
        rows = table.filter(pc.equal(table["query_id"], topic)).to_pylist()
        grades = {row["doc_id"]: row["relevance"] for row in rows}
    text = "" if queries is None else Topics.of(queries).text(topic)
    return AnswerRead(own.of_topics((topic,)), run, topic, text, grades)
