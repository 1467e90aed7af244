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
from judged.scoring.explanation.explain import explanation_title
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.parameters import format_value
from judged.scoring.peers.names import parse_ranx_rbp
from judged.scoring.peers.tool_measures import TOOLS, find_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from judged.results import Block
    from judged.results.types import Floats
    from judged.scoring.evaluation.dialects import Dialect
    from judged.scoring.judging import Precision, TiePolicy
    from judged.scoring.measures.base import Measure
    from judged.scoring.peers.tool_measures import Alias, Tool

_TIE_CAVEAT = "the tool's actual score may differ, because the tool orders documents with equal scores differently"


@dataclass(frozen=True)
class ToolRule:
    """Rule of a tool that differs from those of `judged`, and the score after this and all preceding rules."""

    rule: str
    score: float  # NaN if the rule excludes the topic
    matters: bool  # whether the rule changed the score


@dataclass(frozen=True)
class ToolScore:
    """Score that one tool reports."""

    tool: str
    tool_measure: str  # the tool's name of the measure; empty if it does not have the measure
    measure: str  # the equivalent measure of `judged`
    score: float  # NaN if the tool excludes the topic or does not have the measure
    printed: str  # the score with the number of digits that the tool prints
    # the tool's rules that differ from those of `judged`, in the order of application; the last has the final score
    rules: tuple[ToolRule, ...] = ()
    remark: str = ""  # how the tool's definition differs
    caveat: str = ""  # why the tool's actual score may still differ


@dataclass(frozen=True, eq=False, repr=False)
class ToolComparison(Answer):
    """Score of one topic by `judged` and by other tools."""

    kind: ClassVar[str] = "tools"

    query_id: str
    run: str
    measure: str
    score: float  # judged's score
    tool_scores: tuple[ToolScore, ...]  # in the order of the request
    query: str = ""  # the text of the topic, if available

    @property
    def title(self) -> str:
        """Measure, topic, and run."""
        return f"{explanation_title(self.measure, self.query_id, self.run)}, compared with other tools"

    def blocks(self) -> tuple[Block, ...]:
        """Return a table with one row per tool, `judged` first."""
        query_text = (Sentences((f"query: {self.query}",)),) if self.query else ()
        rows = [ToolScore("judged", self.measure, self.measure, self.score, repr(self.score)), *self.tool_scores]
        columns = columns_of(
            rows,
            ("tool", TEXT),
            ("tool_measure", TEXT, "name in the tool"),
            ("measure", TEXT, "name in judged"),
            ("printed", TEXT, "score"),
            *("score", "remark", "caveat"),
        )
        reasons = Column("reason", ["", *map(_reason, self.tool_scores)], TEXT, "reason for the difference")
        rules = Column("rules", [row.rules for row in rows], only="json")
        table = Table("tools", (*columns, reasons, rules), labels=5)
        return (Section("opinions", self.title, (*query_text, table)),)

    def facts(self) -> dict[str, Any]:
        """Return topic, run, measure, and the score of `judged`."""
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
    """Compute the scores that other tools report for one topic, and find the rules that explain the differences.

    The rules of a tool are applied one after the other: how it reads judgments and runs, its order of documents and
    ties, each parameter of the formula, and whether it includes the topic. Each rule that changes the score is listed.

    Parameters
    ----------
    qrels, run
        As for `evaluate`.
    topic
        The query id.
    measure
        A measure or its name. Each tool computes its measure of that name with its own defaults.
    tools
        Names of tools: ``trec_eval-10``, ``trec_eval-9``, ``pytrec_eval``, ``gdeval``, ``ndeval``, ``msmarco``,
        ``beir``, ``ranx``, ``ir_measures``, ``trectools``, ``scikit-learn``, ``torchmetrics``, ``cwl_eval``,
        ``lenskit``. A list, a comma-separated string, or ``all``.
    rel
        Lowest relevant grade, as for trec_eval's ``-l``. Default: that of the measure, or 1.

    Raises
    ------
    InputError
        If the tool or the topic does not exist.

    Examples
    --------
    >>> qrels, run = {"q": {"a": 3, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}}
    >>> comparison = compare_tools(qrels, run, "q", "nDCG@5", "trec_eval-9,gdeval")
    >>> [(score.tool, score.tool_measure, score.printed) for score in comparison.tool_scores]
    [('trec_eval-9', 'ndcg_cut.5', '0.7967'), ('gdeval', 'ndcg@5', '0.70981')]
    >>> [rule.rule for rule in comparison.tool_scores[1].rules if rule.matters]
    ['gain=exp2 instead of linear']
    """
    tool_names = tools.split(",") if isinstance(tools, str) else list(tools)
    names = [name for tool_name in tool_names for name in (TOOLS if tool_name.strip() == "all" else [tool_name])]
    qrels, run, parsed = Qrels.of(qrels), Run.of(run), parse(measure)
    score = float(parsed(judge(qrels, run).only(topic))[0])
    tool_rel = float(getattr(parsed, "rel", 1.0) if rel is None else rel)
    requests = [_ToolRequest(qrels, run, topic, parsed, score, find_tool(name.strip()), tool_rel) for name in names]
    tool_scores = tuple(tool_name.tool_score() for tool_name in requests)
    return ToolComparison(topic, run.name, str(parsed), score, tool_scores)


@dataclass(frozen=True)
class _ToolRequest:
    """Tool, and the topic and measure to compute."""

    qrels: Qrels
    run: Run
    topic: str
    measure: Measure
    score: float
    tool: Tool
    rel: float

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.tool.dialect]

    def tool_score(self) -> ToolScore:
        alias = self.tool.find_alias(self.measure)
        if alias is None:
            return ToolScore(self.tool.name, "", "", np.nan, "-")
        measure, factor = self._equivalent_measure(alias)
        rules = tuple(self._rules(measure, factor))
        score = rules[-1].score if rules else self.score
        printed = "does not count" if np.isnan(score) else self.dialect.format_value(score)
        caveat = _TIE_CAVEAT if self.tool.has_unmodeled_ties(self.measure) and self._has_ties() else ""
        tool_name = self._measure_name(alias)
        return ToolScore(self.tool.name, tool_name, str(measure), score, printed, rules, alias.note, caveat)

    def _has_ties(self) -> bool:
        hits = judge(self.qrels, self.run).only(self.topic)
        return bool((hits.tie_last > hits.tie_first).any())

    def _equivalent_measure(self, alias: Alias) -> tuple[Measure, float]:
        """Return the equivalent measure of `judged`, and the factor by which to multiply it."""
        grades = self.qrels.distinct_grades
        tool_name = self._measure_name(alias)
        if self.dialect.name == "ranx" and (rbp := parse_ranx_rbp(tool_name, grades)) is not None:
            return rbp
        if not alias.measure:
            return self._with_rel(self.dialect.measures(tool_name, grades)[0]), 1.0
        highest = format_value(float(max((1.0, *grades))))
        return self._with_rel(parse(alias.measure.replace("{highest}", highest))), 1.0

    def _measure_name(self, alias: Alias) -> str:
        # ranx has no option for the lowest relevant grade: it is a suffix of the measure's name.
        return alias.name + (f"-l{format_value(self.rel)}" if self.dialect.name == "ranx" and self.rel != 1 else "")

    def _with_rel(self, measure: Measure) -> Measure:
        has_default_rel = getattr(measure, "rel", None) == 1.0 and getattr(measure, "gain", "binary") == "binary"
        return measure.replace(rel=self.rel) if has_default_rel and self.tool.has_rel_option else measure

    def _rules(self, target: Measure, factor: float) -> Iterator[ToolRule]:
        # Order: judgments and run, formula, topics. Each rule is applied to the result of the preceding rules.
        previous = self.score
        inputs = _RuleInputs(self.qrels, self.run)
        for rule, change in [*self._input_rules(), *self._order_rules()]:
            inputs = change(inputs)
            score = inputs.score(self.topic, self.measure)
            yield ToolRule(rule, score, _differ(score, previous))
            previous = score
        for rule, measure in _measure_changes(self.measure, target):
            score = inputs.score(self.topic, measure)
            yield ToolRule(rule, score, _differ(score, previous))
            previous = score
        if factor != 1.0:
            yield ToolRule(
                f"the tool does not scale grades: the score is multiplied by {factor:g}",
                previous * factor,
                matters=previous != 0,
            )
        topics = self.tool.topics or self.dialect.topics_of(target)
        if topics != "qrels" and not inputs.has_topic(self.topic):
            yield ToolRule("topics missing from the run do not count", np.nan, matters=True)

    def _input_rules(self) -> Iterator[tuple[str, Callable[[_RuleInputs], _RuleInputs]]]:
        prepared = self.dialect.prepare_qrels(self.qrels)
        if prepared is not self.qrels:
            yield self.dialect.regrades, lambda inputs: replace(inputs, qrels=prepared)
        if self.dialect.exclude_self:
            rule = "a document whose id equals the topic id is removed"
            yield rule, lambda inputs: replace(inputs, run=without_self(inputs.run))
        if self.tool.returned_only:
            rule = "judgments of documents that were not returned are ignored"
            yield rule, lambda inputs: inputs.without_unreturned(self.topic)
        if self.tool.ignores_nonpositive(self.measure):
            rule = "a document whose score is 0 or below counts as not returned"
            yield rule, lambda inputs: inputs.without_nonpositive(self.topic)

    def _order_rules(self) -> Iterator[tuple[str, Callable[[_RuleInputs], _RuleInputs]]]:
        policies = self.dialect.policies(precision=self.tool.precision)
        if policies.precision == "single":
            yield "scores are compared as 32-bit numbers", lambda inputs: replace(inputs, precision="single")
        if policies.ties == "rank" and self.run.has_ranks:
            yield "documents are ordered by the rank column", lambda inputs: replace(inputs, ties="rank")


@dataclass(frozen=True)
class _RuleInputs:
    """Judgments, run, and ranking policies after the rules applied so far."""

    qrels: Qrels
    run: Run
    ties: TiePolicy = "docid"
    precision: Precision = "double"

    def score(self, topic: str, measure: Measure) -> float:
        judged = judge(self.qrels, self.run, ties=self.ties, precision=self.precision)
        return float(measure(judged.only(topic))[0])

    def has_topic(self, topic: str) -> bool:
        return bool(judge(self.qrels, self.run).only(topic).present[0])

    def without_nonpositive(self, topic: str) -> _RuleInputs:
        """Remove the topic's documents with a score of 0 or less; they are the last of its ranking."""
        if not self.run.has_scores:
            return self
        rows = self.run.table.filter(pc.equal(self.run.table["query_id"], topic))
        scores = rows["score"].to_numpy()
        if _are_negated_ranks(scores):
            return self
        return replace(self, run=Run(TableRows(rows.filter(pa.array(scores > 0)), self.run.where), self.run.name))

    def without_unreturned(self, topic: str) -> _RuleInputs:
        """Remove judgments of documents that the run did not return."""
        hits = judge(self.qrels, self.run).only(topic)
        grades = dict(zip(hits.doc, hits.grade.tolist(), strict=True))
        return replace(self, qrels=Qrels.of({topic: grades or {"none": 0}}))


def _are_negated_ranks(scores: Floats) -> bool:
    # A list of ids, or a run without scores, gets the scores -1, -2, ... (or 0, -1, ...): they are not real scores.
    falling = -np.sort(scores)[::-1]
    return any(np.array_equal(falling, np.arange(start, start + len(falling))) for start in (0, 1))


def _measure_changes(source: Measure, target: Measure) -> Iterator[tuple[str, Measure]]:
    if source.entry.name != target.entry.name:
        if source != target:
            yield f"the tool computes another measure: {target}", target
        return
    names = [parameter.name for parameter in source.entry.all_parameters]
    differing = [name for name in names if getattr(source, name) != getattr(target, name)]
    steps = _parameter_changes(source, target, differing)
    yield from steps or ([(f"{target} instead of {source}", target)] if differing else [])


def _parameter_changes(source: Measure, target: Measure, names: Sequence[str]) -> list[tuple[str, Measure]]:
    # Some parameters are valid only together: then return no steps, and the caller lists one change of measure.
    measure, steps = source, list[tuple[str, "Measure"]]()
    for name in names:
        try:
            measure = measure.replace(**{name: getattr(target, name)})
        except MeasureError:
            return []
        old = getattr(source, name)
        new = f"{name}={format_value(getattr(target, name))}"
        steps.append((f"{new} instead of {format_value(old)}" if old is not None else new, measure))
    return steps


def _differ(first: float, second: float) -> bool:
    return first != second and not (np.isnan(first) and np.isnan(second))


def _reason(tool_score: ToolScore) -> str:
    if not tool_score.tool_measure:
        return "the tool does not have this measure"
    decisive = [rule for rule in tool_score.rules if rule.matters]
    if len(decisive) == 1:
        reason = decisive[0].rule
    elif decisive:
        reason = "; ".join(f"{rule.rule} ({rule.score:.6g})" for rule in decisive)
    else:
        reason = "no difference in this score" + (
            f"; note on the tool: {tool_score.remark}" if tool_score.remark else ""
        )
    return f"{reason}; {tool_score.caveat}" if tool_score.caveat else reason
