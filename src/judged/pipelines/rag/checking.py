"""What `judged rag check` finds: what is there of answers, what is missing, and what can then not be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from judged.data.compute import pc
from judged.data.findings import Finding, Findings, of_error
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.rag.responses import FAILED, VERDICTS, VITAL, Responses
from judged.results.decimals import percent
from judged.results.notes import first_few
from judged.scoring.evaluation import runs_of

if TYPE_CHECKING:
    from judged.data.findings import Severity

_NEEDED = {
    "sentences": "support, and what is said without a citation",
    "context": "what the generator was given: its recall, and whether citations come from it",
    "citations": "what answers cite, and whether it supports them",
    "support": "whether citations and context support what is said",
    "nuggets": "what answers should say, and nugget recall",
    "evidence": "the way of a nugget from the corpus to the answer",
    "assignments": "which nuggets answers say",
    "references": "which questions can be answered at all",
    "correctness": "whether answers are correct",
    "feedback": "whether users are satisfied",
}
_Found: TypeAlias = "tuple[Severity, str, str, str, int]"
_Pairs: TypeAlias = set[tuple[Any, ...]]


def check_responses(
    responses: Any, qrels: Any = None, *, runs: Any = None, corpus: Iterable[str] | None = None
) -> Findings:
    """Say what is missing or does not go together, and what follows for what can be measured.

    Parameters
    ----------
    responses
        What `Responses.of` takes.
    qrels, runs, corpus
        What ids of documents are looked for in.

    Examples
    --------
    >>> found = check_responses({"answers": [{"query_id": "q", "text": "7"}],
    ...                          "citations": [{"query_id": "q", "sentence": 1, "doc_id": "x"}]}, {"q": {"a": 1}})
    >>> [finding.rule for finding in found if finding.severity == "error"]
    ['foreign-ids']
    """
    try:
        given = Responses.of(responses)
    except InputError as error:
        finding = of_error(error, str(responses))
        if finding is None or (isinstance(responses, (str, Path)) and not Path(responses).exists()):
            raise
        return Findings((finding,))
    known = {} if qrels is None else {"the qrels": _pairs(Qrels.of(qrels).table)}
    if runs is not None:
        known["the runs"] = {pair for run in runs_of(runs) for pair in _pairs(run.table)}
    noted: Iterator[_Found] = (("warning", note.rule, note.text, "", 1) for note in given.notes)
    found = (*noted, *_tables(given), *_answers(given, known), *_verdicts(given), *_documents(given, known, corpus))
    order = ("error", "warning", "info")
    made = [Finding(severity, given.where, None, rule, problem, fix, count)
            for severity, rule, problem, fix, count in sorted(found, key=lambda one: order.index(one[0]))]  # fmt: skip
    return Findings(tuple(made))


def _pairs(table: Any, *names: str) -> _Pairs:
    columns = [table[name].to_pylist() for name in names or ("query_id", "doc_id")]
    return set(zip(*columns, strict=True))


def _tables(given: Responses) -> Iterator[_Found]:
    """Name the tables that nobody made."""
    for name, what in _NEEDED.items():
        if not given[name].num_rows:
            yield "info", "no-table", f"nothing is recorded of {name}: unknown is {what}", "", 1


def _answers(given: Responses, known: dict[str, _Pairs]) -> Iterator[_Found]:
    """Look for answers, sentences, contexts and nuggets that are not there."""
    key = ("query_id", "run_id")
    answers, topics = _pairs(given["answers"], *key), _pairs(given["answers"], "query_id")
    every = {(topic, run) for (topic,) in topics for run in given.run_names}
    nuggets = _pairs(given["nuggets"], "query_id")
    vital = _pairs(given["nuggets"].filter(pc.equal(given["nuggets"]["importance"], VITAL)), "query_id")
    judged = {pair[:1] for pair in known.get("the qrels", ())}
    bare = [row for row in given["sentences"].to_pylist() if not row["text"]]
    cases: tuple[tuple[str, str, str, Iterable[Any]], ...] = (
        ("missing-answers", "answers that some systems gave and others did not", "", every - answers),
        ("empty-contexts", "answers without any context, although others have one",
         "say whether nothing was found, or it was not recorded",
         answers - _pairs(given["context"], *key) if given["context"].num_rows else ()),
        ("no-nuggets", "answered topics without nuggets, which no measure of nuggets counts", "",
         topics - nuggets if nuggets else ()),
        ("no-vital-nuggets", "topics whose nuggets are all okay, none vital: their vital recall does not exist", "",
         nuggets - vital),
        ("not-judged", "answered topics that the qrels do not have", "", topics - judged if judged else ()),
        ("not-answered", "judged topics that nobody answered", "", judged - topics),
        ("no-text", "sentences without text, which nobody can judge", "give their texts",
         {(row["query_id"], row["run_id"], row["sentence"]) for row in bare}),
    )  # fmt: skip
    for rule, problem, fix, some in cases:
        if names := sorted(" ".join(map(str, one)) for one in some):
            yield "warning", rule, f"{problem} ({len(names):,}): {first_few(names)}", fix, len(names)


def _verdicts(given: Responses) -> Iterator[_Found]:
    """Count the verdicts that failed, by judge, and those that nobody gave."""
    for name in VERDICTS:
        rows = given[name].to_pylist()
        asked = Counter(row["judge"] for row in rows)
        failed = Counter(row["judge"] for row in rows if row["verdict"] == FAILED)
        for judge, count in failed.items():
            text = f"{name}: {count:,} of {asked[judge]:,} verdicts of {judge} failed ({percent(count / asked[judge])})"
            yield "warning", "failed-verdicts", f"{text}: they are unjudged, not zero", "ask again", count
    cited = _pairs(given["citations"], "query_id", "run_id", "sentence", "doc_id")
    answers = _pairs(given["answers"], "query_id", "run_id")
    wanted = {(*one, nugget) for topic, nugget in _pairs(given["nuggets"], "query_id", "nugget_id")
              for one in answers if one[0] == topic}  # fmt: skip
    for name, all_, key in (
        ("support", cited, ("query_id", "run_id", "sentence", "doc_id")),
        ("assignments", wanted, ("query_id", "run_id", "nugget_id")),
    ):
        absent = all_ - _pairs(given[name], *key) if given[name].num_rows else set[Any]()
        if absent:
            text = f"{name}: {len(absent):,} of {len(all_):,} have no verdict: they are unjudged, not zero"
            yield "warning", "absent-verdicts", text, "", len(absent)


def _documents(given: Responses, known: dict[str, _Pairs], corpus: Iterable[str] | None) -> Iterator[_Found]:
    """Look for documents of contexts and citations elsewhere."""
    context = _pairs(given["context"], "query_id", "run_id", "doc_id")
    cited = _pairs(given["citations"], "query_id", "run_id", "doc_id")
    if context and (outside := cited - context):
        text = f"{len(outside):,} of {len(cited):,} cited documents were not in the context"
        yield "warning", "cited-from-elsewhere", text, "", len(outside)
    there = None if corpus is None else frozenset(corpus)
    for table, triples in (("context", context), ("citations", cited)):
        pairs = {(topic, doc) for topic, _, doc in triples}
        sources = {name: pairs - ids for name, ids in known.items()}
        if there is not None:
            sources["the corpus"] = {pair for pair in pairs if pair[1] not in there}
        for where, absent in sources.items():
            if not absent:
                continue
            text = f"{table}: {len(absent):,} of {len(pairs):,} documents are not in {where}"
            if len(absent) == len(pairs):
                fix = "name documents, or those of chunks, alike"
                yield "error", "foreign-ids", f"{text}: the ids are others", fix, len(absent)
            else:
                mild: Sequence[Severity] = ("info", "warning")
                yield mild[where != "the qrels"], "unknown-documents", text, "", len(absent)
