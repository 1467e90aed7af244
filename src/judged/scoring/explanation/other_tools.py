"""One topic's score as other tools print it, and which of their rules makes the difference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.rows import TableRows
from judged.data.run import Run
from judged.errors import MeasureError
from judged.results import TEXT, Answer, Column, Section, Sentences, Table, columns_of
from judged.scoring.evaluation.dialects import DIALECTS, without_self
from judged.scoring.explanation.explain import title
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.parameters import format_value
from judged.scoring.peers.names import ranx_rbp
from judged.scoring.peers.readings import TOOLS, tool_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from judged.results import Block
    from judged.results.types import Floats
    from judged.scoring.evaluation.dialects import Dialect
    from judged.scoring.judging import Precision, TiePolicy
    from judged.scoring.measures.base import Measure
    from judged.scoring.peers.readings import Reading, Tool

_OWN_TIES = "but it orders equal scores in its own way, and this topic has some"


@dataclass(frozen=True)
class Rule:
    """One rule of a tool that is not ours, and the score once it is applied to all before it."""

    rule: str
    score: float  # NaN where the topic does not count any more
    matters: bool  # whether it changed the score


@dataclass(frozen=True)
class Opinion:
    """What one tool reports."""

    # tool, called: the tool, and what the measure is called there; empty where it has none of this name
    tool: str
    called: str
    measure: str  # our name for its number
    score: float  # NaN where the topic does not count for it, or it has no such measure
    printed: str  # the score in as many digits as the tool prints
    # its rules that differ from ours, one applied after the other: the last gives its score
    rules: tuple[Rule, ...] = ()
    remark: str = ""  # what is special about its measure
    caveat: str = ""  # why its number may be another all the same


@dataclass(frozen=True, eq=False, repr=False)
class ToolComparison(Answer):
    """One topic's score, ours and other tools'."""

    kind: ClassVar[str] = "tools"

    query_id: str
    run: str
    measure: str
    score: float
    opinions: tuple[Opinion, ...]
    query: str = ""  # the text of the topic, where it is known

    @property
    def title(self) -> str:
        """What is compared."""
        return f"{title(self.measure, self.query_id, self.run)}, as other tools report it"

    def blocks(self) -> tuple[Block, ...]:
        """Give a row for each tool, ours first."""
        said = (Sentences((f"query: {self.query}",)),) if self.query else ()
        rows = [Opinion("judged", self.measure, self.measure, self.score, repr(self.score)), *self.opinions]
        columns = columns_of(
            rows,
            ("tool", TEXT),
            ("called", TEXT, "its name"),
            ("measure", TEXT, "our name"),
            ("printed", TEXT, "score"),
            *("score", "remark", "caveat"),
        )
        why = Column("why", ["", *map(_why, self.opinions)], TEXT, "which rule makes the difference")
        rules = Column("rules", [row.rules for row in rows], only="json")
        table = Table("tools", (*columns, why, rules), labels=5)
        return (Section("opinions", self.title, (*said, table)),)

    def facts(self) -> dict[str, Any]:
        """Give what is compared, and our score."""
        names = ("measure", "query_id", "run", "score", *(("query",) if self.query else ()))
        return {name: getattr(self, name) for name in names}


def compare_tools(
    qrels: Any,
    run: Any,
    topic: str,
    measure: str | Measure,
    tools: str | Sequence[str] = "all",
    *,
    rel: float | None = None,
) -> ToolComparison:
    """Show what other tools report for one topic, and which of their rules makes the difference.

    Their rules are applied one after the other to our own: how judgments and runs are read, order and ties, the
    formula parameter by parameter, and whether the topic counts at all. A rule that changes the number is named.

    Parameters
    ----------
    qrels, run
        As `evaluate` takes them.
    topic
        The query id.
    measure
        A measure or its name. A tool is asked for its measure of that name, with its own defaults.
    tools
        Names of tools: ``trec_eval-10``, ``trec_eval-9``, ``pytrec_eval``, ``gdeval``, ``ndeval``, ``msmarco``,
        ``beir``, ``ranx``, ``ir_measures``, ``trectools``, ``scikit-learn``, ``torchmetrics``, ``cwl_eval``,
        ``lenskit``; one or several, one text with commas, or ``all``.
    rel
        The lowest relevant grade that the tools are given (trec_eval's ``-l``); None for that of the measure, or 1.

    Raises
    ------
    InputError
        If there is no such tool or topic.

    Examples
    --------
    >>> found = compare_tools({"q": {"a": 3, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}}, "q", "nDCG@5", "trec_eval-9,gdeval")
    >>> [(one.tool, one.called, one.printed) for one in found.opinions]
    [('trec_eval-9', 'ndcg_cut.5', '0.7967'), ('gdeval', 'ndcg@5', '0.70981')]
    >>> [rule.rule for rule in found.opinions[1].rules if rule.matters]
    ['gain=exp2 in place of linear']
    """
    asked_for = tools.split(",") if isinstance(tools, str) else list(tools)
    names = [name for one in asked_for for name in (TOOLS if one.strip() == "all" else [one])]
    qrels, run, ours = Qrels.of(qrels), Run.of(run), parse(measure)
    score = float(ours(judge(qrels, run).only(topic))[0])
    chosen = float(getattr(ours, "rel", 1.0) if rel is None else rel)
    asked = [_Asking(qrels, run, topic, ours, score, tool_of(name.strip()), chosen) for name in names]
    opinions = tuple(one.opinion() for one in asked)
    return ToolComparison(topic, run.name, str(ours), score, opinions)


@dataclass(frozen=True)
class _Asking:
    """One tool, and what it is asked."""

    qrels: Qrels
    run: Run
    topic: str
    ours: Measure
    score: float
    tool: Tool
    rel: float

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.tool.dialect]

    def opinion(self) -> Opinion:
        """Apply the tool's rules one after the other."""
        reading = self.tool.reading(self.ours)
        if reading is None:
            return Opinion(self.tool.name, "", "", np.nan, "-")
        measure, factor = self._measure(reading)
        rules = tuple(self._rules(measure, factor))
        score = rules[-1].score if rules else self.score
        printed = "does not count" if np.isnan(score) else self.dialect.format_value(score)
        caveat = _OWN_TIES if self.tool.orders_ties_otherwise(self.ours) and self._has_ties() else ""
        called = self._called(reading)
        return Opinion(self.tool.name, called, str(measure), score, printed, rules, reading.rule, caveat)

    def _has_ties(self) -> bool:
        one = judge(self.qrels, self.run).only(self.topic)
        return bool((one.tie_last > one.tie_first).any())

    def _measure(self, reading: Reading) -> tuple[Measure, float]:
        """Find our measure for the tool's number, and what it is multiplied by."""
        grades = self.qrels.distinct_grades
        called = self._called(reading)
        if self.dialect.name == "ranx" and (rbp := ranx_rbp(called, grades)) is not None:
            return rbp
        if not reading.measure:
            return self._with_rel(self.dialect.measures(called, grades)[0]), 1.0
        highest = format_value(float(max((1.0, *grades))))
        return self._with_rel(parse(reading.measure.replace("{highest}", highest))), 1.0

    def _called(self, reading: Reading) -> str:
        """Write the name as the tool is asked for it; ranx takes that grade in it."""
        return reading.called + (f"-l{format_value(self.rel)}" if self.dialect.name == "ranx" and self.rel != 1 else "")

    def _with_rel(self, measure: Measure) -> Measure:
        takes = getattr(measure, "rel", None) == 1.0 and getattr(measure, "gain", "binary") == "binary"
        return measure.replace(rel=self.rel) if takes and self.tool.takes_rel else measure

    def _rules(self, theirs: Measure, factor: float) -> Iterator[Rule]:
        """Give each rule that is not ours with the score that it leads to, the measure's rules last but the topics'."""
        last = self.score
        state = _State(self.qrels, self.run)
        for rule, change in [*self._reading_rules(), *self._order_rules()]:
            state = change(state)
            score = state.score(self.topic, self.ours)
            yield Rule(rule, score, _differ(score, last))
            last = score
        for rule, measure in _on_the_way(self.ours, theirs):
            score = state.score(self.topic, measure)
            yield Rule(rule, score, _differ(score, last))
            last = score
        if factor != 1.0:
            yield Rule(f"the grades are not scaled: times {factor:g}", last * factor, matters=last != 0)
        topics = self.tool.topics or self.dialect.topics_of(theirs)
        if topics != "qrels" and not state.counts(self.topic):
            yield Rule("a topic that the run lacks does not count", np.nan, matters=True)

    def _reading_rules(self) -> Iterator[tuple[str, Callable[[_State], _State]]]:
        prepared = self.dialect.prepare_qrels(self.qrels)
        if prepared is not self.qrels:
            yield self.dialect.regrades, lambda state: replace(state, qrels=prepared)
        if self.dialect.exclude_self:
            rule = "a document with the id of the topic is left out"
            yield rule, lambda state: replace(state, run=without_self(state.run))
        if self.tool.returned_only:
            yield "judgments of documents that were not returned are not seen", lambda state: state.cut(self.topic)
        if self.tool.finds_positive_only(self.ours):
            yield "a document whose score is 0 or below counts as not found", lambda state: state.above_zero(self.topic)

    def _order_rules(self) -> Iterator[tuple[str, Callable[[_State], _State]]]:
        chosen = self.dialect.policies(precision=self.tool.precision)
        if chosen.precision == "single":
            yield "scores are compared as 32-bit numbers", lambda state: replace(state, precision="single")
        if chosen.ties == "rank" and self.run.has_ranks:
            yield "documents stand in the order of the rank column", lambda state: replace(state, ties="rank")


@dataclass(frozen=True)
class _State:
    """Judgments, run and order after some rules."""

    qrels: Qrels
    run: Run
    ties: TiePolicy = "docid"
    precision: Precision = "double"

    def score(self, topic: str, measure: Measure) -> float:
        judged = judge(self.qrels, self.run, ties=self.ties, precision=self.precision)
        return float(measure(judged.only(topic))[0])

    def counts(self, topic: str) -> bool:
        return bool(judge(self.qrels, self.run).only(topic).present[0])

    def above_zero(self, topic: str) -> _State:
        """Leave out the topic's documents whose score is 0 or below; they are the last of its ranking."""
        if not self.run.has_scores:
            return self
        rows = self.run.table.filter(pc.equal(self.run.table["query_id"], topic))
        scores = rows["score"].to_numpy()
        if _stand_for_ranks(scores):
            return self
        return replace(self, run=Run(TableRows(rows.filter(pa.array(scores > 0)), self.run.where), self.run.name))

    def cut(self, topic: str) -> _State:
        """Leave the judgments of the documents that were returned."""
        one = judge(self.qrels, self.run).only(topic)
        grades = dict(zip(one.doc, one.grade.tolist(), strict=True))
        return replace(self, qrels=Qrels.of({topic: grades or {"none": 0}}))


def _stand_for_ranks(scores: Floats) -> bool:
    """Whether scores were made of ranks, of a list of ids or a run without scores: -1, -2, and so on."""
    falling = -np.sort(scores)[::-1]
    return any(np.array_equal(falling, np.arange(first, first + len(falling))) for first in (0, 1))


def _on_the_way(ours: Measure, theirs: Measure) -> Iterator[tuple[str, Measure]]:
    """Change our measure into theirs, one parameter after the other where it is the same measure."""
    if ours.entry.name != theirs.entry.name:
        if ours != theirs:
            yield f"it is another measure: {theirs}", theirs
        return
    changed = [one.name for one in ours.entry.all_parameters if getattr(ours, one.name) != getattr(theirs, one.name)]
    steps = _stepwise(ours, theirs, changed)
    yield from steps or ([(f"{theirs} in place of {ours}", theirs)] if changed else [])


def _stepwise(ours: Measure, theirs: Measure, changed: Sequence[str]) -> list[tuple[str, Measure]]:
    """Change one parameter after the other; nothing where some do not go without the others."""
    measure, steps = ours, list[tuple[str, "Measure"]]()
    for name in changed:
        try:
            measure = measure.replace(**{name: getattr(theirs, name)})
        except MeasureError:
            return []
        was = getattr(ours, name)
        put = f"{name}={format_value(getattr(theirs, name))}"
        steps.append((f"{put} in place of {format_value(was)}" if was is not None else put, measure))
    return steps


def _differ(one: float, other: float) -> bool:
    return one != other and not (np.isnan(one) and np.isnan(other))


def _why(one: Opinion) -> str:
    """Name the rules that matter, with the score after each where there are several; else say what is special."""
    if not one.called:
        return "it has no such measure"
    decisive = [rule for rule in one.rules if rule.matters]
    if len(decisive) == 1:
        why = decisive[0].rule
    elif decisive:
        why = "; ".join(f"{rule.rule} ({rule.score:.6g})" for rule in decisive)
    else:
        why = f"none: the same number ({one.remark})" if one.remark else "none: the same number"
    return f"{why}; {one.caveat}" if one.caveat else why
