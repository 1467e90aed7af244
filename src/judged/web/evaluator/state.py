"""The state of the evaluator: two lists, what is missing, and what measures are to assume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from judged.errors import InputError, MeasureError
from judged.judging import judge
from judged.measures import parse
from judged.measures.dcg import CG, DCG
from judged.measures.parameters import spell
from judged.web.evaluator.lists import (
    MOST_MISSING,
    Item,
    read_list,
    read_missing,
    read_other,
    write_list,
    write_missing,
)

if TYPE_CHECKING:
    from judged.measures.gain import Gain
    from judged.web.evaluator.asked import Asked
    from judged.web.workspace import Workspace

SHOWN = 20
"""Documents that are taken from a run."""
_EXAMPLE, _EXAMPLE_K, _EXAMPLE_GAIN = "3,0,2,1,0", 5, "exp2"


class Options(NamedTuple):
    """What measures are to assume, where they have such a parameter."""

    k: int
    gain: Gain
    discount: str
    base: float  # that of the original discount; 2 for others, which have none
    rel: float
    max: float  # the highest grade of the scale


@dataclass(frozen=True)
class Source:
    """Where the lists come from."""

    run: str
    topic: str
    query: str  # the text of the query; empty where it is not known
    other_run: str | None


@dataclass(frozen=True)
class State:
    """The lists, with one grade a document, and the options."""

    items: tuple[Item, ...]  # the list
    other: tuple[Item, ...] | None
    before: tuple[Item, ...] | None
    # missing, before_missing: grades of judged documents that were not returned: now, and before the last change
    missing: tuple[float, ...]
    before_missing: tuple[float, ...]
    asked_relevant: int | None  # the number of relevant documents, where it was given
    asked_max: float | None
    options: Options
    source: Source | None

    def is_relevant(self, grade: float) -> bool:
        """Whether a grade counts as relevant."""
        return grade >= self.options.rel and grade >= 0

    @property
    def labels(self) -> dict[str, float]:
        """The grades of the judged documents with a name."""
        return {item.doc: item.grade for item in (*self.items, *(self.other or ())) if item.grade is not None}

    @property
    def known(self) -> int:
        """How many relevant documents are known: the least that there can be."""
        return sum(map(self.is_relevant, (*self.labels.values(), *self.missing)))

    @property
    def relevant(self) -> int:
        """How many relevant documents there are."""
        return self.known if self.asked_relevant is None else self.asked_relevant

    def facts(self) -> dict[str, Any]:
        """Spell it out, without the lists."""
        return {
            "missing": self.missing,
            "relevant": self.relevant,
            "relevant_given": self.asked_relevant,
            "known_relevant": self.known,
            **self.options._asdict(),
            "gain": spell(self.options.gain),
            "max_given": self.asked_max,
            "source": self.source,
        }

    def query(self) -> str:
        """Write the query of the address, in one form for equal states; without what was before."""
        options, source = self.options, self.source
        pairs: list[tuple[str, str | None]] = [
            ("list", write_list(self.items)),
            ("other", None if self.other is None else write_list(self.other, named=True)),
            ("missing", write_missing(self.missing) or None),
            ("relevant", None if self.asked_relevant is None else str(self.asked_relevant)),
            ("k", str(options.k)),
            ("gain", spell(options.gain)),
            ("discount", None if options.discount == "log2" else options.discount),
            ("base", spell(options.base) if options.discount == "original" and options.base != 2 else None),
            ("rel", None if options.rel == 1 else spell(options.rel)),
            ("max", None if self.asked_max is None else spell(self.asked_max)),
            ("run", source.run if source else None),
            ("topic", source.topic if source else None),
            ("other_run", source.other_run if source else None),
        ]
        return urlencode([(name, value) for name, value in pairs if value is not None], safe=",:*{}")


def read_state(workspace: Workspace, asked: Asked) -> State:
    """Read what was asked."""
    items, other, missing, source = _lists(workspace, asked)
    example = asked.typed is None and source is None
    before = None if asked.before is None else read_list(asked.before, "before")
    gone = missing if asked.before_missing is None else read_missing(asked.before_missing)
    grades = [item.grade for item in (*items, *(other or ())) if item.grade is not None]
    highest = max(1.0, asked.rel, *grades, *missing) if asked.max is None else asked.max
    if highest < max((*grades, *missing), default=0.0):
        raise InputError(f"a grade is above max={spell(highest)}, the highest of the scale", fix="give a higher max")
    if example:
        k = asked.k if "k" in asked.model_fields_set else _EXAMPLE_K
        gain = asked.gain if "gain" in asked.model_fields_set else _EXAMPLE_GAIN
        asked = asked.model_copy(update={"k": k, "gain": gain})
    discounted = DCG(discount=asked.discount, base=asked.base if asked.discount == "original" else 2.0)  # checks both
    options = Options(asked.k, _read_gain(asked.gain), discounted.discount, discounted.base, asked.rel, highest)
    state = State(items, other, before, missing, gone, asked.relevant, asked.max, options, source)
    if state.relevant < state.known:
        raise InputError(
            f"{state.known} relevant documents are known, and relevant={state.relevant}",
            fix=f"give at least relevant={state.known}, or leave it out",
        )
    return state


def _read_gain(text: str) -> Gain:
    """Read a gain as measures take it, and nothing else that could stand between the brackets of a name."""
    try:
        made = parse(f"CG(gain={text})")
    except MeasureError:
        made = None
    if not isinstance(made, CG) or made != CG(gain=made.gain) or ("," in text and not text.startswith("{")):
        raise MeasureError(f"{text[:80]!a} is no gain. Fix: linear, exp2, or a table of gains such as {{1:1,2:3}}")
    return made.gain


def _lists(
    workspace: Workspace, asked: Asked
) -> tuple[tuple[Item, ...], tuple[Item, ...] | None, tuple[float, ...], Source | None]:
    """Give both lists, with one grade a document, the grades of missing documents, and where they come from."""
    missing = read_missing(asked.missing or "")
    source = None
    if asked.run is not None and asked.topic is not None:
        source = Source(asked.run, asked.topic, workspace.query(asked.topic), asked.other_run)
    elif not asked.run is asked.topic is asked.other_run is None:
        raise InputError("a run and a topic go together", fix="give run= and topic=")
    if asked.typed is None and source is not None:
        return *_opened(workspace, source), source
    items = read_list(_EXAMPLE if asked.typed is None else asked.typed, "list")
    other = None if asked.other is None else read_other(asked.other, items, "other")
    return items, other, missing, source


def _opened(
    workspace: Workspace, source: Source
) -> tuple[tuple[Item, ...], tuple[Item, ...] | None, tuple[float, ...]]:
    """Take the first documents of a topic, and of a second run the same."""
    names = [source.run] if source.other_run is None else [source.run, source.other_run]
    lists: list[tuple[Item, ...]] = []
    for name in names:
        workspace.judged(name)  # refuses an unknown run
    qrels, runs = workspace.one_topic(source.topic, names)
    judged = [judge(qrels, run) for run in runs]
    grades = dict(zip(qrels.index.row_names, judged[0].label_grade.tolist(), strict=True))
    for one in judged:
        every = one.everything
        first = every.doc.take(np.argsort(every.rank, kind="stable")[:SHOWN]).to_pylist()
        lists.append(tuple(Item(doc, grades.get(doc)) for doc in first))
    shown = {item.doc for items in lists for item in items}
    missing = sorted((grade for doc, grade in grades.items() if doc not in shown), reverse=True)[:MOST_MISSING]
    return lists[0], lists[1] if len(lists) > 1 else None, tuple(missing)
