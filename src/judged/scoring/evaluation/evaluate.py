"""`evaluate`: compute scores from qrels, runs and measures; and functions of runs that evaluate first."""

from __future__ import annotations

import inspect
import re
import warnings
from contextlib import closing
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from judged.data.column_names import use_columns
from judged.data.qrels import Qrels
from judged.errors import InputError, JudgedWarning
from judged.results.blocks import lines
from judged.results.spelling import hint, with_parameter_hints
from judged.scoring.default_measures import TESTED_MEASURES
from judged.scoring.evaluation.dialects import Dialect, dialect_of, without_self
from judged.scoring.evaluation.facts import Policies, check_common_topics, qrels_facts, run_facts, versions
from judged.scoring.evaluation.inputs import (
    DEFAULT_MEASURES,
    apply_conditions,
    filter_topics,
    index_of_measure,
    measures_of,
    measures_with_level,
    runs_of,
)
from judged.scoring.evaluation.notes import (
    dialect_notes,
    level_notes,
    list_notes,
    notes_of_runs,
    qrels_notes,
    sample_notes,
    self_notes,
)
from judged.scoring.evaluation.scores import Scores
from judged.scoring.evaluation.summary import RangeOptions, all_ranges
from judged.scoring.judging import Judged, Precision, RankingRules, TopicPolicy
from judged.scoring.judging.join import judge_each
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import list_measures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import QrelsFacts, TieTreatment
    from judged.scoring.evaluation.summary import SampledTopics

    Result = TypeVar("Result")


_WARNING_RULES = {"matched-ids", "missing-topics", "nothing-judged"}  # notes that are also Python warnings


@with_parameter_hints
def evaluate(
    qrels: Any,
    runs: Any,
    measures: Any = DEFAULT_MEASURES,
    *,
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    unjudged: bool = False,
    documents: Any = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    seed: int = 0,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Scores:
    """Score runs against judgments.

    Parameters
    ----------
    qrels
        A `Qrels`, a path, a dict of dicts, a data frame, named tuples, or lists of relevant ids.
    runs
        A `Run`, a path, a dict of dicts, a data frame, named tuples, ranked lists of ids; or a list of
        these, or ``{name: run}``; a table with a column ``run_id`` holds several.
    measures
        Measures or names, one or several.
    dialect
        Follow the rules of a tool: ``trec_eval-10``, ``trec_eval-9``, ``gdeval``, ``ndeval``, ``msmarco``, ``beir`` or
        ``ranx``. It sets the policies below, and names of measures are parsed as in the tool. Policies that you
        pass have precedence.
    topics
        ``qrels``: all topics of the qrels; a topic missing from the run scores as an empty ranking (default of
        ``judged``). ``both``: topics in qrels and run. ``run``: all topics of the run, judged or not.
    ties
        ``docid``: equal scores are ordered by descending document id, as in trec_eval (default of ``judged``).
        ``docid-rising``; ``stable``: in the order of the run; ``rank``: the rank column orders all documents.
        ``expected``: each score is the mean over all orders of the tied documents; ``bounds``: as ``docid``, with
        the least and the greatest score over all these orders.
    depth
        Number of documents per topic that count; None for all.
    precision
        Precision in which scores are compared: ``double`` (default of ``judged``), or ``single`` as in trec_eval
        before version 10.
    exclude_self
        Whether returned documents with the id of their topic are removed, for collections in which queries are
        documents; None: as the dialect.
    unjudged
        Whether to compute the least and the greatest score over all grades, up to the highest, of the returned
        documents without a judgment.
    documents
        Attributes of the documents, for the few measures that need them: a `Documents`, a path, a data
        frame or ``{doc_id: {"length": 120}}``.
    rel
        The lowest relevant grade, for measures with a level of relevance that is not set in the name.
    attributes
        Attributes of the topics, for `where` and for measures over a part of them (``P@5 where kind == 'law'``):
        `Attributes`, a path, a data frame or ``{query_id: {"kind": "law"}}``.
    where
        Use only these topics of the qrels, such as ``kind == 'law' and words < 5`` or ``query_id in ('q1', 'q2')``.
    seed
        Seed of the samples that ``ties="expected"`` and ``"bounds"`` use if there are too many orders.
    processes
        Number of processes that judge runs from files; the scores do not depend on it. A script must call this
        under ``if __name__ == "__main__":``.
    columns
        Names of columns in tables: ``{"doc_id": "sku"}`` reads ``doc_id`` from the column ``sku``.
    normalize_ids
        Whether ids in files are read without differences in case, Unicode form, leading zeros, and a final ``.0``.
    progress
        Called while files are read and ranked, with the run's name and the number of bytes done since the last call.

    Returns
    -------
    Scores

    Raises
    ------
    InputError
        If an input cannot be read, or run and qrels have no topic in common.
    MeasureError
        If a measure does not exist, or requires a ranking but a run has no scores.

    Warns
    -----
    JudgedWarning
        If topics are missing from runs, or none of their returned documents is judged.

    Examples
    --------
    >>> evaluate({"q1": {"d1": 1, "d2": 0}}, {"q1": {"d2": 0.9, "d1": 0.8}}, "RR").value("RR")
    0.5
    >>> qrels = {"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 2}}
    >>> run = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0}}
    >>> scores = evaluate(qrels, run, ["RR", "RR where kind == 'law'"], rel=2, attributes={"q1": {"kind": "law"}})
    >>> scores.aggregate()["run"]
    {'RR(rel=2)': 0.75, "RR(rel=2) where kind == 'law'": 0.5}
    """
    rules = dialect_of(dialect)
    if measures is DEFAULT_MEASURES and rules.defaults:
        measures = rules.defaults
    measures = list_measures(measures)
    policies = rules.policies(topics, ties, depth, precision, exclude_self)
    if columns or normalize_ids:
        with use_columns(columns, normalize_ids=normalize_ids):
            qrels, runs = Qrels.of(qrels), runs_of(runs)
    original, attribute_notes = filter_topics(Qrels.of(qrels), where, attributes)
    if original.selected_by and policies.topics == "run":
        problem = "`where` selects topics of the qrels, so it cannot be combined with topics=run"
        raise InputError(problem, fix="omit `where`, or omit topics=run")
    judgments = rules.prepare_qrels(original)
    facts = qrels_facts(judgments)
    parse_names = partial(rules.measures, grades=facts.grades)
    parsed_measures = measures_of(measures, parse_names, rel)
    if documents is not None:
        from judged.data.documents import Documents  # few calls need it

        documents = Documents.of(documents)
    options = RangeOptions(policies.ties, unjudged, policies.depth, seed)
    lists: list[Judged] = []
    input_runs = map(without_self, runs_of(runs)) if policies.exclude_self else runs_of(runs)
    ranking = RankingRules(**options.judging(), precision=policies.precision)
    with closing(judge_each(judgments, input_runs, ranking, documents, processes, progress)) as judging:
        for judged in judging:
            check_common_topics(judged)
            lists.append(judged)
    # Measures with conditions are computed over all topics first: several conditions then share the scores.
    unconditional = tuple(dict.fromkeys(measure.without_condition for measure in parsed_measures))
    present_only = rules.present_only if topics is None else frozenset[str]()
    input_notes = (*attribute_notes, *dialect_notes(rules, original, judgments), *self_notes(judgments, policies))

    def notes() -> tuple[Note, ...]:
        with_level = measures_with_level(measures, parse_names) if rel is None else unconditional
        measures_to_skip = {measure.without_condition for measure in with_level}
        level = (*qrels_notes(judgments, unconditional, measures_to_skip), *level_notes(unconditional, rel))
        return (*input_notes, *level)

    scores = _score_all(lists, unconditional, policies, facts, options, notes, present_only)
    scores = apply_conditions(scores, parsed_measures, attributes)
    if any(judged.ids_matched or (judged.returned == 0).any() or not len(judged.topic) for judged in lists):
        of_present = [measure for measure in unconditional if measure.entry.name in present_only]
        run_notes = notes_of_runs(lists, policies.topics, of_present)
        for text in lines(note for note in run_notes if note.rule in _WARNING_RULES):
            warnings.warn(text, JudgedWarning, stacklevel=3)
    return scores


def score_lists(lists: Sequence[Judged], measures: Any = DEFAULT_MEASURES, *, topics: TopicPolicy = "qrels") -> Scores:
    """Score runs that are judged already, without reading a file again.

    Parameters
    ----------
    lists
        Results of `judge` for each run, all with the same qrels and ranked by the same rules.
    measures
        Measures or names, one or several.
    topics
        Topics that count, as for `evaluate`.

    Returns
    -------
    Scores
        The same as `evaluate` returns for these qrels, runs and policies.

    Raises
    ------
    InputError
        If there is no list, or they have different qrels or rankings.
    MeasureError
        If a measure does not exist, or requires a ranking but a run has no scores.

    Examples
    --------
    >>> from judged import Run, judge
    >>> qrels = Qrels.of({"q1": {"d1": 1, "d2": 0}})
    >>> lists = [judge(qrels, Run.of({"q1": {"d2": 0.9, "d1": 0.8}}, name="mine"))]
    >>> score_lists(lists, "RR").aggregate(), score_lists(lists, "P@1").aggregate()
    ({'mine': {'RR': 0.5}}, {'mine': {'P@1': 0.0}})
    """
    if not lists:
        raise InputError("at least one result of `judge` is required", fix="pass the result of `judge` for each run")
    judgments, ranking = lists[0].qrels, lists[0].ranking
    if any(judged.qrels is not judgments or judged.ranking != ranking for judged in lists):
        raise InputError(
            "all runs must be judged with the same qrels and the same options",
            fix="call `judge` with the same arguments for all runs",
        )
    parsed_measures = measures_of(measures)
    policies = Policies(topics, ranking.ties, ranking.depth, ranking.precision)
    notes = partial(qrels_notes, judgments, parsed_measures, measures_with_level(measures))
    options = RangeOptions(ranking.ties, False, ranking.depth, 0)
    return _score_all(lists, parsed_measures, policies, qrels_facts(judgments), options, notes)


def _score_all(
    lists: Sequence[Judged],
    measures: tuple[Measure, ...],
    policies: Policies,
    qrels: QrelsFacts,
    options: RangeOptions,
    notes: Callable[[], tuple[Note, ...]],
    present_only: frozenset[str] = frozenset(),
) -> Scores:
    """Score all lists by all measures over the topics of all lists.

    For the measures in `present_only`, a topic that a run lacks does not count, whatever the policy.
    """
    selected = [judged.over(policies.topics) for judged in lists]
    query_ids = selected[0].query_ids
    if any(judged.query_ids != query_ids for judged in selected):
        query_ids = tuple(sorted({topic for judged in selected for topic in judged.query_ids}))
    column_of = {topic: column for column, topic in enumerate(query_ids)}
    values = np.full((len(lists), len(measures), len(query_ids)), np.nan)
    counted = np.zeros((len(lists), len(query_ids)), dtype=np.bool_)
    left_out = np.zeros(values.shape, dtype=np.bool_)
    of_present = [measure for measure in measures if measure.entry.name in present_only]
    samples: dict[str, list[tuple[Measure, SampledTopics]]] = {}
    for run, judged in enumerate(selected):
        has_all_topics = judged.query_ids == query_ids
        columns = slice(None) if has_all_topics else [column_of[topic] for topic in judged.query_ids]
        counted[run, columns] = True
        for row, measure in enumerate(measures):
            values[run, row, columns], sample = options.score(judged, measure)
            if measure in of_present:
                left_out[run, row, columns] = ~judged.present
            if sample.n:
                samples.setdefault(judged.run.name, []).append((measure, sample))
    values[left_out] = np.nan
    ranges = all_ranges(options, selected, measures, query_ids)
    # Notes take longer than a small evaluation, and are seldom read, so they are computed at the first access. Until
    # then the hits are stored, but not the runs, which may be large, and which the caller may change.
    reads_run = any("returned_docs" in vars(judged) for judged in selected)
    stored = lists if reads_run else [replace(judged, run=judged.run.emptied(), documents=None) for judged in lists]

    def all_notes() -> tuple[Note, ...]:
        run_notes = notes_of_runs(stored, policies.topics, of_present)
        about_lists = list_notes(stored, policies, measures)
        return (*notes(), *about_lists, *sample_notes(samples, options.seed), *run_notes)

    return Scores(
        runs=tuple(map(run_facts, lists)),
        measures=measures,
        query_ids=query_ids,
        values=values,
        counted=counted,
        policies=policies,
        qrels=qrels,
        notes=all_notes() if reads_run else all_notes,  # type: ignore[arg-type]
        versions=versions(),
        ranges=tuple(part.without(left_out) for part in ranges),
    )


def select_measures(scores: Scores, measures: Any) -> Scores:
    """Select measures of scores."""
    rows = [index_of_measure(measure, scores.measures) for measure in measures_of(measures)]
    selected = tuple(scores.measures[row] for row in rows)
    return replace(scores, measures=selected, values=scores.values[:, rows], ranges=())


_MAX_DEFAULTS = 3
_RUNS = "qrels, runs\n    The same values as in `evaluate`."
_MEASURES = (
    "measures\n    The same values as in `evaluate`. Default: the default measures of the dialect if there are at most"
    f" {_MAX_DEFAULTS}, otherwise nDCG@10 and AP."
)
_POLICIES = "{}\n    Policies, as `evaluate` takes them."
_PARAMETER = re.compile(r"\n(?=\S)")  # separates parameters, whose descriptions are indented
_REPLACED = {"scores", "qrels", "runs", "measures", "documents"}  # parameters of a function of scores
_MEASURE_PARAMETERS = {"measure", "x", "y"}


def evaluate_without_warnings(qrels: Any, runs: Any, measures: Any = None, **policies: Any) -> Scores:
    """Evaluate runs for a result that shows the warnings as notes."""
    measures = _default_measures(policies.get("dialect")) if measures is None else measures
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        return evaluate(qrels, runs, measures, **policies)


def _default_measures(dialect: Any) -> tuple[str, ...]:
    """Return the defaults of a dialect if they are few, else those of tests."""
    rules = dialect_of(dialect)
    count = len(rules.measures(list(rules.defaults), (0.0, 1.0))) if rules.defaults else 0
    return rules.defaults if 0 < count <= _MAX_DEFAULTS else TESTED_MEASURES


# Seven functions have two forms: of scores, and of qrels and runs. The second is derived from the first here, because
# each would repeat fifteen parameters of `evaluate` and sixty lines of docstring. `help()` and errors show the
# signature and the docstring set here; type checkers read the signature in the stubs that tools/docs.py writes.
def build_run_function(
    function: Callable[..., Result],
    name: str,
    *,
    examples: str,
    measures: Any = None,
    prepare: Callable[[Qrels, dict[str, Any]], tuple[Qrels, tuple[Note, ...]]] | None = None,
) -> Callable[..., Result]:
    """Build a function `name` of qrels and runs from a function of scores: it evaluates, then calls that function.

    It has the parameters of `evaluate` and of the function. If the function has parameters ``qrels``, ``runs`` or
    ``documents``, these are passed on. ``measures`` are the default, or a function of the options that returns them:
    then the new function has no such parameter. ``prepare`` may change the judgments first, and return notes.
    """
    of_function = inspect.signature(function).parameters
    of_evaluate = inspect.signature(evaluate).parameters
    positional = [p for p in of_function.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in _REPLACED]
    options = [p for p in of_function.values() if p.kind is p.KEYWORD_ONLY and p.name not in _REPLACED]
    keywords = (p for p in of_evaluate.values() if p.kind is p.KEYWORD_ONLY)
    policies = [p for p in keywords if p.name not in {*of_function, "unjudged", "seed"}]
    policies += [of_evaluate["documents"]] if "documents" in of_function else []
    with_measures = [] if callable(measures) else [of_evaluate["measures"].replace(default=measures)]
    parameters = [of_evaluate["qrels"], of_evaluate["runs"], *positional, *with_measures, *options, *policies]
    signature = inspect.Signature(parameters, return_annotation=inspect.signature(function).return_annotation)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(hint(name, kwargs, signature.parameters) or f"{name}() {error}") from None
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        with use_columns(arguments["columns"], normalize_ids=arguments["normalize_ids"]):
            judgments, runs = Qrels.of(arguments.pop("qrels")), runs_of(arguments.pop("runs"))
        judgments, notes = (judgments, ()) if prepare is None else prepare(judgments, arguments)
        evaluated = measures(arguments) if callable(measures) else arguments.pop("measures")
        values = {policy.name: arguments.pop(policy.name) for policy in policies}
        judgments, attribute_notes = filter_topics(judgments, values.pop("where"), values["attributes"])
        inputs = {"qrels": judgments, "runs": runs, "documents": values.get("documents")}
        own_inputs = {key: value for key, value in inputs.items() if key in of_function}
        for key in _MEASURE_PARAMETERS & {key for key, value in arguments.items() if value is not None}:
            parsed = measures_of(arguments[key], rel=values["rel"])  # as `evaluate` parses it
            arguments |= {key: parsed[0]} if len(parsed) == 1 else {}
        scores = evaluate_without_warnings(judgments, runs, evaluated, **values)
        scores = replace(scores, notes=(*notes, *attribute_notes, *scores.notes))
        return function(scores, **arguments, **own_inputs)

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name
    names = [policy.name for policy in policies]
    call.__doc__ = _docstring(function, names, examples, has_measures=bool(with_measures))
    return call


def _docstring(function: Callable[..., Any], policies: list[str], examples: str, *, has_measures: bool) -> str:
    """Derive a docstring from that of the function: parameters of the evaluation replace the scores."""
    page, _, _ = (inspect.getdoc(function) or "").partition("\nExamples\n")
    summary, title, sections = page.partition("Parameters\n----------\n")
    described, *after = re.split(r"\n\n(?=[A-Z]\w+\n---)", sections.rstrip(), maxsplit=1)
    blocks = [text for text in _PARAMETER.split(described) if not set(text.partition("\n")[0].split(", ")) <= _REPLACED]
    parameters = (_RUNS, *([_MEASURES] if has_measures else []), *blocks, _POLICIES.format(", ".join(policies)))
    example = f"\n\nExamples\n--------\n{inspect.cleandoc(examples)}\n"
    return "\n\n".join([summary + title + "\n".join(parameters), *after]) + example
