"""Conversion of tool calls and texts of an agent to the steps and the answer of a trial."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from judged.errors import InputError
from judged.pipelines.traces.attributes import answer_text, first_value, parse_json, query_text
from judged.pipelines.traces.conventions import documents_of
from judged.pipelines.trajectories.trajectories import STEP_KINDS
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.pipelines.trajectories.trajectories import StepKind

Row = Mapping[str, Any]

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_KINDS: Mapping[StepKind, str] = {  # the first whose pattern occurs in the words of a tool's name
    "answer": r"(^|_)(final|submit)_answer$",
    "search": r"(?<!re)search|(^|_)(retriev|quer(y|ies)|look_?up)",
    "open": r"(^|_)((open|fetch|read|visit|browse)(s|er)?|get_(.*_)?doc(uments?)?|doc(uments?)?_(.*_)?get)(_|$)",
}

_ID_KEYS = ("docid", "doc_id", "document_id", "id", "_id", "id_", "file_id")
_ADDRESSES = ("url", "uri", "link", "source")
_DOCUMENT_IDS = (*_ID_KEYS, *(f"metadata.{key}" for key in _ID_KEYS), *_ADDRESSES, "metadata.url", "metadata.source")
_OPENED_IDS = (*_ID_KEYS, *(f"{key}s" for key in _ID_KEYS[:4]), *_ADDRESSES, "urls", "path")
_LISTS = (
    "results", "documents", "docs", "hits.hits", "hits", "chunks", "passages", "matches", "items", "nodes",
    "source_nodes", "sources",
)  # fmt: skip
_ENVELOPES = ("result", "output", "response", "content", "data", "text", "structured_content", "structuredContent")
_DOCUMENT_ID_IN_TEXT = r"\b(?:doc(?:ument)?[ _-]?id|docno)"
_VALUE_IN_TEXT = r"""[\\"'*]*\s*[:=]\s*[\\"'*]*([^\s\\"'*,;<>()\[\]{}]+)"""
_CITATIONS = re.compile(r"\[([^\[\]\n]+)\](?!\()|【([^【】\n]+)】")
_CONFIDENCE = re.compile(r"confidence[^\d%\n]{0,20}(\d{1,3}(?:\.\d+)?)\s*\\?%", re.IGNORECASE)


@dataclass(frozen=True)
class ToolRules:
    """Rules of conversion, and counts of irregular records.

    Parameters
    ----------
    tools
        Kind of step by name of a tool; other tools have the kind that their name suggests.
    id_from
        Key of a document with its id; None: the usual keys.
    topic_from
        Field or attribute with the query id; None: ``query_id``.
    counts
        Irregularities that are counted for notes.
    """

    tools: Mapping[str, StepKind] = field(default_factory=dict[str, Any])
    id_from: str | None = None
    topic_from: str | None = None
    counts: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        for tool, kind in self.tools.items():
            if kind not in STEP_KINDS:
                raise InputError(f"the tool {tool!r} has the unknown kind {kind!r}", fix=use_one_of(STEP_KINDS))

    def kind(self, tool: str | None) -> StepKind:
        """Return the kind of step of a tool.

        >>> [ToolRules().kind(tool) for tool in ("web_search", "getDocument", "openai_chat", "final_answer")]
        ['search', 'open', 'other', 'answer']
        """
        if tool is not None and tool in self.tools:
            return self.tools[tool]
        name = "_".join(_WORDS.findall(tool or "")).lower()
        kinds: list[StepKind] = [kind for kind, pattern in _KINDS.items() if re.search(pattern, name)]
        return kinds[0] if kinds else "other"

    def documents(self, output: Any, levels: int = 5) -> list[str] | None:
        r"""Return the ids of documents in the output of a tool, by rank; None if none are recorded.

        The list of documents can be inside of `levels` objects and texts.

        >>> rules = ToolRules()
        >>> rules.documents('[{"docid": "7", "score": 1.5}, {"docid": "3"}]'), rules.documents({"results": []})
        (['7', '3'], [])
        >>> rules.documents("docid: 7\nSome text\ndocid: 3"), rules.documents("Nothing.")
        (['7', '3'], None)
        """
        if not levels:
            return None
        if isinstance(output, str):
            value = _parsed(output)
            return self._ids_in_text(output) if value is output else self.documents(value, levels - 1)
        if isinstance(output, Mapping):
            lists = [value for path in _LISTS if isinstance(value := first_value(output, path), list)]
            if lists or _is_error(output):
                return self.documents(lists[0], levels - 1) if lists else None
            is_document = self._id(output) is not None
            return self.documents([output] if is_document else first_value(output, *_ENVELOPES), levels - 1)
        if not isinstance(output, (list, tuple)):
            return None
        elements = cast("list[Any]", list(output))
        texts = [text for element in elements if (text := _text_of_block(element)) is not None]
        if elements and len(texts) == len(elements):
            return self.documents("\n".join(texts), levels - 1)
        ids = [(element, self._id(element)) for element in elements]
        rows = [element if doc_id is None and self.id_from is None else {"id": doc_id} for element, doc_id in ids]
        documents = documents_of(list(enumerate(rows, 1)), self.counts)
        return None if documents is None else [document.doc_id for document in documents]

    def _id(self, element: Any) -> Any:
        """Return the id of a document; None if it is missing."""
        if not isinstance(element, Mapping):
            return None
        inner = next((element[key] for key in ("node", "kwargs") if isinstance(element.get(key), Mapping)), element)
        key = self.id_from
        return first_value(inner, *(_DOCUMENT_IDS if key is None else (key, f"metadata.{key}")))

    def _ids_in_text(self, text: str) -> list[str] | None:
        names = (_DOCUMENT_ID_IN_TEXT, r"\bid") if self.id_from is None else (rf"\b{re.escape(self.id_from)}",)
        for name in names:
            if ids := re.findall(name + _VALUE_IN_TEXT, text, re.IGNORECASE):
                return list(dict.fromkeys(ids))
        return None

    def opened(self, arguments: Any) -> list[str] | None:
        """Return the ids of the documents that a call opens; None if its arguments have none."""
        value = _parsed(arguments)
        if isinstance(value, Mapping):
            only = next(iter(value.values())) if len(value) == 1 else None
            value = first_value(value, *([self.id_from] if self.id_from else ()), *_OPENED_IDS) or only
        values = cast("list[Any]", value if isinstance(value, list) else [value])
        ids = [str(element) for element in values if isinstance(element, (str, int)) and element != ""]
        return ids or None

    def step(self, logged: LoggedStep) -> dict[str, Any]:
        """Convert a step to a row; a failed call has no documents."""
        kind = self.kind(logged.tool) if logged.kind is None or logged.tool in self.tools else logged.kind
        query = _query(logged.arguments) if kind == "search" else None
        step: dict[str, Any] = {"kind": kind, "tool": logged.tool, "query": query, **logged.effort}
        outputs = logged.outputs if kind in ("search", "open") else ()
        documents = next((ids for ids in map(self.documents, outputs) if ids is not None), None)
        if logged.failed or (documents is None and any(map(_is_error, logged.outputs))):
            return step | {"failed": True, "documents": []}
        return step | {"documents": (kind == "open" and self.opened(logged.arguments)) or documents}


@dataclass
class LoggedStep:
    """Call of a tool with its outputs, of which the first with documents counts; or reasoning."""

    tool: str | None = None
    arguments: Any = None
    outputs: tuple[Any, ...] = ()
    failed: bool = False
    effort: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kind: StepKind | None = None  # if it differs from the kind that the name of the tool suggests
    call_id: str | None = None
    is_pending: bool = False  # whether its result follows


class TrialLog:
    """Steps and texts of one trial, in the order of its log."""

    def __init__(self, rules: ToolRules) -> None:
        self.rules = rules
        self.question: str | None = None
        self.steps: list[LoggedStep] = []
        self.tokens: int | None = None
        self._texts: list[str] = []  # of the agent, since the last step

    def ask(self, text: str) -> None:
        """Add a text of the user: the first is the question."""
        self._end_text()
        self.rules.counts["texts of users after the question"] += self.question is not None
        self.question = self.question or text

    def say(self, text: str) -> None:
        """Add a text of the agent: the last is the answer, others are reasoning."""
        if text.strip():
            self._texts.append(text)

    def add(self, step: LoggedStep) -> None:
        """Add a step."""
        self._end_text()
        self.steps.append(step)

    def _end_text(self) -> None:
        if self._texts:
            self.steps.append(LoggedStep(kind="reason"))
            self._texts.clear()

    def add_result(self, call_id: str | None, tool: str | None, *outputs: Any, failed: bool = False) -> None:
        """Add the result of a call. Without an id, it belongs to the first call without a result."""
        self._end_text()
        self.rules.counts["results without the id of their call, in the order of the calls"] += call_id is None
        pending = (step for step in self.steps if step.is_pending)
        step = next((step for step in pending if call_id is None or step.call_id in (None, call_id)), None)
        if step is None:
            self.rules.counts["results without their call"] += 1
            self.steps.append(step := LoggedStep(tool))
        step.outputs, step.failed, step.is_pending = outputs, failed, False

    def add_tokens(self, usage: Any) -> None:
        """Add the tokens of a request."""
        tokens = tokens_of(usage)
        self.tokens = self.tokens if tokens is None else (self.tokens or 0) + tokens

    @property
    def answer(self) -> str | None:
        """Text after the last call, or else the argument of a tool for answers."""
        if text := "\n".join(self._texts).strip():
            return text
        calls = [step for step in self.steps if step.kind != "reason"]
        if not calls or self.rules.kind(calls[-1].tool) != "answer":
            return None
        return answer_text(calls[-1].arguments) or _query(calls[-1].arguments)

    def record(self, fields: Row) -> dict[str, Any]:
        """Return the record of the trial; `fields` are those that its log states."""
        answer, counts = self.answer, self.rules.counts
        counts["calls without a result"] += sum(step.is_pending for step in self.steps)
        steps = [*map(self.rules.step, self.steps), *([{"kind": "answer"}] if self._texts else [])]
        record: dict[str, Any] = {"question": self.question, "tokens": self.tokens, "answer": answer, "steps": steps}
        if answer is not None:
            record |= answer_facts(answer, steps, counts)
        elif steps:
            record["status"] = "incomplete"
            counts["logs that end without an answer (status: incomplete)"] += "status" not in fields
        return record | dict(fields)


def answer_facts(answer: str, steps: Iterable[Row], counts: Counter[str]) -> dict[str, Any]:
    r"""Return the documents that an answer cites, and the confidence that it states.

    Citations are ids of returned documents in brackets; other texts in brackets are counted.

    >>> steps = [{"kind": "search", "documents": ["d1", "d2"]}]
    >>> answer_facts("Seven [d2, d1] 【d1】 [9].\nConfidence: 85%", steps, Counter())
    {'citations': ['d2', 'd1'], 'confidence': 0.85}
    """
    returned = {document for step in steps for document in step.get("documents") or ()}
    bracketed = [part for groups in _CITATIONS.findall(answer) for part in "".join(groups).split(",")]
    ids = [part.split("†")[0].strip() for part in bracketed]
    unknown = [doc_id for doc_id in ids if doc_id and " " not in doc_id and doc_id not in returned]
    counts["citations of documents that no call returned"] += len(unknown)
    stated = [float(share) / 100 for share in _CONFIDENCE.findall(answer)]
    confidence = stated[-1] if stated and stated[-1] <= 1 else None
    return {"citations": [doc_id for doc_id in dict.fromkeys(ids) if doc_id in returned], "confidence": confidence}


def tokens_of(usage: Any) -> int | None:
    """Return the number of tokens in a record of usage; None if it is missing.

    >>> tokens_of({"input_tokens": 90, "output_tokens": 10}), tokens_of({"total_tokens": 7}), tokens_of({})
    (100, 7, None)
    """
    if not isinstance(usage, Mapping):
        return None
    parts = ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")
    values: list[Any] = [usage.get(name) for name in (("total_tokens",) if usage.get("total_tokens") else parts)]
    counts = [int(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return sum(counts) if counts else None


def _query(arguments: Any) -> str | None:
    """Return the query of a call: usual keys, or else all texts of its arguments."""
    if text := query_text(arguments):
        return text
    value = _parsed(arguments)
    values = cast("list[Any]", list(value.values()) if isinstance(value, Mapping) else [value])
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    return "; ".join(text for text in texts if isinstance(text, str)) or None


def _parsed(data: Any) -> Any:
    """Parse a text that is JSON, or several objects that follow each other; other data are unchanged."""
    if not isinstance(data, str):
        return data
    value = parse_json(data)
    if value is None and data.lstrip().startswith("{"):
        value = parse_json("[" + re.sub(r"}\s*{", "},{", data) + "]")
    return data if value is None else value


def _text_of_block(element: Any) -> str | None:
    """Return the text of a block of content, or a text that is no id."""
    if isinstance(element, Mapping):
        kind, text = element.get("type", element.get("block_type")), element.get("text")
        return text if kind in ("text", "output_text", "input_text") and isinstance(text, str) else None
    return element if isinstance(element, str) and (" " in element.strip() or "\n" in element) else None


def _is_error(output: Any) -> bool:
    value = _parsed(output)
    return isinstance(value, Mapping) and bool(value.get("error") or value.get("isError") or value.get("is_error"))
