"""`evaluate`: from qrels, runs and measures to scores; and scores of what other functions are given."""

from __future__ import annotations

import inspect
import re
import warnings
from contextlib import closing
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError, JudgedWarning
from judged.results.blocks import lines
from judged.results.spelling import hint, hinting
from judged.scoring.default_measures import TESTED_MEASURES
from judged.scoring.evaluation.dialects import Dialect, dialect_of, without_self
from judged.scoring.evaluation.facts import Policies, qrels_facts, refuse_foreign, run_facts, versions
from judged.scoring.evaluation.inputs import (
    DEFAULT_MEASURES,
    chosen_levels,
    measures_of,
    narrowed,
    place_of,
    runs_of,
    where_asked,
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
from judged.scoring.evaluation.summary import Movement, all_ranges
from judged.scoring.judging import Judged, Precision, Ranking, TopicPolicy
from judged.scoring.judging.join import judge_each
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import list_measures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import QrelsFacts, TieTreatment
    from judged.scoring.evaluation.summary import Sampled

    Answered = TypeVar("Answered")


_WARNED = {"missing-topics", "nothing-judged"}


@hinting
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
        Go by the rules of a tool: ``trec_eval-10``, ``trec_eval-9``, ``gdeval``, ``ndeval``, ``msmarco``, ``beir`` or
        ``ranx``. It sets the policies below, and names of measures are read as the tool means them. A policy that
        is given all the same goes before the dialect's.
    topics
        ``qrels``: all topics of the qrels count, a missing one scores as an empty ranking; this is our own rule.
        ``both``: those that the run has too. ``run``: those of the run, judged or not.
    ties
        ``docid``: equal scores are ordered by descending document id, as trec_eval does; this is our own rule.
        ``docid-rising``; ``stable``: as the run lists them; ``rank``: the rank column orders all documents.
        ``expected``: each score is the mean over all orders of the tied documents; ``bounds``: as ``docid``, and the
        least and the greatest score over all these orders stand beside it.
    depth
        How many documents of each topic count; None for all.
    precision
        What of the scores is compared: ``double``, our own rule, or ``single`` as trec_eval did before version 10.
    exclude_self
        Whether returned documents whose id is that of their topic are left out, as where queries are documents of the
        collection; None: as the dialect does.
    unjudged
        Whether the least and the greatest score that the returned documents without a judgment leave open stand
        beside each score: each of them may have any grade up to the highest.
    documents
        Facts about the documents, for the few measures that need them: a `Documents`, a path, a data
        frame or ``{doc_id: {"length": 120}}``.
    rel
        The lowest grade that is relevant, for every measure that has such a level and whose name says none.
    attributes
        Attributes of the topics, for `where` and for measures over some of them (``P@5 where kind == 'law'``):
        `Attributes`, a path, a data frame or ``{query_id: {"kind": "law"}}``.
    where
        Use these topics of the qrels only, such as ``kind == 'law' and words < 5`` or ``query_id in ('q1', 'q2')``.
    seed
        Of the samples that ``ties="expected"`` and ``"bounds"`` draw where there are too many orders.
    processes
        How many runs that are files are judged side by side, each in a process; the scores are the same for any
        number. A script does such work under ``if __name__ == "__main__":``.
    progress
        Called while files are read and ranked, with the run's name and the number of bytes done since the last call.

    Returns
    -------
    Scores

    Raises
    ------
    InputError
        If something cannot be read, or run and qrels have no topic in common.
    MeasureError
        If a measure does not exist, or needs a ranking where a run is a set.

    Warns
    -----
    JudgedWarning
        If topics are missing from runs, or nothing that they returned is judged.

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
    chosen = rules.policies(topics, ties, depth, precision, exclude_self)
    given, lacking = narrowed(Qrels.of(qrels), where, attributes)
    if given.chosen_by and chosen.topics == "run":
        problem = "where chooses among the topics of the qrels, and the policy topics = run counts others"
        raise InputError(problem, fix="leave out one of them")
    judgments = rules.prepare_qrels(given)
    facts = qrels_facts(judgments)
    read = partial(rules.measures, grades=facts.grades)
    wanted = measures_of(measures, read, rel)
    if documents is not None:
        from judged.data.documents import Documents  # few calls need it

        documents = Documents.of(documents)
    movement = Movement(chosen.ties, unjudged, chosen.depth, seed)
    lists: list[Judged] = []
    given_runs = map(without_self, runs_of(runs)) if chosen.exclude_self else runs_of(runs)
    ranking = Ranking(**movement.judging(), precision=chosen.precision)
    with closing(judge_each(judgments, given_runs, ranking, documents, processes, progress)) as judging:
        for judged in judging:
            refuse_foreign(judged)
            lists.append(judged)
    plain = tuple(dict.fromkeys(measure.without_condition for measure in wanted))
    present_only = rules.present_only if topics is None else frozenset[str]()
    noted = (*lacking, *dialect_notes(rules, given, judgments), *self_notes(judgments, chosen))

    def notes() -> tuple[Note, ...]:
        written = chosen_levels(measures, read) if rel is None else plain
        known = {measure.without_condition for measure in written}
        return (*noted, *qrels_notes(judgments, plain, known), *level_notes(plain, rel))

    scored = _scored(lists, plain, chosen, facts, movement, notes, present_only)
    scores = where_asked(scored, wanted, attributes)
    if any(run.missing_topics or not run.returned_judged for run in scores.runs):
        of_present = [measure for measure in plain if measure.entry.name in present_only]
        for text in lines(note for note in notes_of_runs(lists, chosen.topics, of_present) if note.rule in _WARNED):
            warnings.warn(text, JudgedWarning, stacklevel=3)
    return scores


def score_lists(lists: Sequence[Judged], measures: Any = DEFAULT_MEASURES, *, topics: TopicPolicy = "qrels") -> Scores:
    """Score runs that are judged already: no file is read again, however many measures are asked for.

    Parameters
    ----------
    lists
        What `judge` gave for each run, all with the same qrels and ranked by the same rules.
    measures
        Measures or names, one or several.
    topics
        Which topics count, as for `evaluate`.

    Returns
    -------
    Scores
        As `evaluate` gives them for these qrels, runs and policies.

    Raises
    ------
    InputError
        If there is no list, or they were judged by other qrels or ranked by other rules.
    MeasureError
        If a measure does not exist, or needs a ranking where a run is a set.

    Examples
    --------
    >>> from judged import Run, judge
    >>> qrels = Qrels.of({"q1": {"d1": 1, "d2": 0}})
    >>> lists = [judge(qrels, Run.of({"q1": {"d2": 0.9, "d1": 0.8}}, name="mine"))]
    >>> score_lists(lists, "RR").aggregate(), score_lists(lists, "P@1").aggregate()
    ({'mine': {'RR': 0.5}}, {'mine': {'P@1': 0.0}})
    """
    if not lists:
        raise InputError("no judged list is given", fix="give what judge returns for each run")
    judgments, ranking = lists[0].qrels, lists[0].ranking
    if any(judged.qrels is not judgments or judged.ranking != ranking for judged in lists):
        raise InputError(
            "the lists were judged by other qrels, or ranked by other rules", fix="judge all runs in one way"
        )
    wanted = measures_of(measures)
    chosen = Policies(topics, ranking.ties, ranking.depth, ranking.precision)
    notes = partial(qrels_notes, judgments, wanted, chosen_levels(measures))
    movement = Movement(ranking.ties, False, ranking.depth, 0)
    return _scored(lists, wanted, chosen, qrels_facts(judgments), movement, notes)


def _scored(
    lists: Sequence[Judged],
    measures: tuple[Measure, ...],
    policies: Policies,
    qrels: QrelsFacts,
    movement: Movement,
    notes: Callable[[], tuple[Note, ...]],
    present_only: frozenset[str] = frozenset(),
) -> Scores:
    """Score every list by every measure over the topics of all lists, and record what the numbers rest on.

    A topic that a run lacks is left out of the measures named by `present_only`, whatever the policy.
    """
    counting = [judged.over(policies.topics) for judged in lists]
    query_ids = counting[0].query_ids
    if any(judged.query_ids != query_ids for judged in counting):
        query_ids = tuple(sorted({topic for judged in counting for topic in judged.query_ids}))
    place = {topic: column for column, topic in enumerate(query_ids)}
    values = np.full((len(lists), len(measures), len(query_ids)), np.nan)
    counted = np.zeros((len(lists), len(query_ids)), dtype=np.bool_)
    left_out = np.zeros(values.shape, dtype=np.bool_)
    of_present = [measure for measure in measures if measure.entry.name in present_only]
    sampled: dict[str, list[tuple[Measure, Sampled]]] = {}
    for run, judged in enumerate(counting):
        all_topics = judged.query_ids == query_ids
        columns = slice(None) if all_topics else [place[topic] for topic in judged.query_ids]
        counted[run, columns] = True
        for row, measure in enumerate(measures):
            values[run, row, columns], sample = movement.score(judged, measure)
            if measure in of_present:
                left_out[run, row, columns] = ~judged.present
            if sample.n:
                sampled.setdefault(judged.run.name, []).append((measure, sample))
    values[left_out] = np.nan
    ranges = all_ranges(movement, counting, measures, query_ids)
    # Notes take longer than a small evaluation, and few are read: they are made when someone looks. Until then the hits
    # are kept, and not the run, which may be large, and is the caller's to change.
    reads_run = any("everything" in vars(judged) for judged in counting)
    kept = lists if reads_run else [replace(judged, run=judged.run.emptied(), documents=None) for judged in lists]

    def all_notes() -> tuple[Note, ...]:
        about_runs = (*sample_notes(sampled, movement.seed), *notes_of_runs(kept, policies.topics, of_present))
        return (*notes(), *list_notes(kept, policies, measures), *about_runs)

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


def chosen_measures(scores: Scores, measures: Any) -> Scores:
    """Give the same scores with some of their measures."""
    wanted = measures_of(measures)
    rows = [place_of(measure, scores.measures) for measure in wanted]
    chosen = tuple(scores.measures[row] for row in rows)
    return replace(scores, measures=chosen, values=scores.values[:, rows], ranges=())


_FEW = 3
_RUNS = "qrels, runs\n    As `evaluate` takes them."
_MEASURES = "measures\n    As `evaluate` takes them; None: nDCG@10 and AP, or those of the dialect."
_POLICIES = "{}\n    Policies, as `evaluate` takes them."
_BLOCK = re.compile(r"\n(?=\S)")  # between parameters: what is said of each is indented
_GIVEN = {"scores", "qrels", "runs", "measures", "documents"}
_NAMING = {"measure", "x", "y"}  # parameters that name one of the measures


def scored(qrels: Any, runs: Any, measures: Any = None, **policies: Any) -> Scores:
    """Evaluate runs for a result that has its warnings among its own notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        return evaluate(qrels, runs, _usual(policies.get("dialect")) if measures is None else measures, **policies)


def _usual(dialect: Any) -> tuple[str, ...]:
    """Take a dialect's own measures where they are few."""
    rules = dialect_of(dialect)
    count = len(rules.measures(list(rules.defaults), (0.0, 1.0))) if rules.defaults else 0
    return rules.defaults if 0 < count <= _FEW else TESTED_MEASURES


# Seven functions have two forms: of scores, and of qrels and runs. The second is made of the first here, as each would
# repeat fifteen parameters of `evaluate` and sixty lines of docstring. `help()` and errors show the signature and the
# docstring that this sets; type checkers read the signature in the stubs that tools/docs.py writes.
def of_runs(
    function: Callable[..., Answered],
    name: str,
    *,
    examples: str,
    measures: Any = None,
    prepare: Callable[[Qrels, dict[str, Any]], tuple[Qrels, tuple[Note, ...]]] | None = None,
) -> Callable[..., Answered]:
    """Make the function `name` of qrels and runs out of one of scores: it evaluates, and asks that function.

    It takes what `evaluate` and the function take. Whatever else the function has parameters for
    (``qrels``, ``runs``, ``documents``) it is given. ``measures`` are the default, or a function of the options that
    names them: then the new function has no such parameter. ``prepare`` may change the judgments first, and say so.
    """
    own = inspect.signature(function).parameters
    known = inspect.signature(evaluate).parameters
    front = [p for p in own.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in _GIVEN]
    options = [p for p in own.values() if p.kind is p.KEYWORD_ONLY and p.name not in _GIVEN]
    policies = [p for p in known.values() if p.kind is p.KEYWORD_ONLY and p.name not in {*own, "unjudged", "seed"}]
    policies += [known["documents"]] if "documents" in own else []
    asked = [] if callable(measures) else [known["measures"].replace(default=measures)]
    shape = inspect.Signature([known["qrels"], known["runs"], *front, *asked, *options, *policies])

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            bound = shape.bind(*args, **given)
        except TypeError as error:
            raise TypeError(hint(name, given, shape.parameters) or f"{name}() {error}") from None
        bound.apply_defaults()
        asking = dict(bound.arguments)
        judgments, runs = Qrels.of(asking.pop("qrels")), runs_of(asking.pop("runs"))
        judgments, notes = (judgments, ()) if prepare is None else prepare(judgments, asking)
        wanted = measures(asking) if callable(measures) else asking.pop("measures")
        how = {policy.name: asking.pop(policy.name) for policy in policies}
        judgments, lacking = narrowed(judgments, how.pop("where"), how["attributes"])
        besides = {"qrels": judgments, "runs": runs, "documents": how.get("documents")}
        told = {key: value for key, value in besides.items() if key in own}
        for key in _NAMING & {key for key, value in asking.items() if value is not None}:
            read = measures_of(asking[key], rel=how["rel"])  # as `evaluate` reads it
            asking |= {key: read[0]} if len(read) == 1 else {}
        scores = scored(judgments, runs, wanted, **how)
        return function(replace(scores, notes=(*notes, *lacking, *scores.notes)), **asking, **told)

    call.__signature__ = shape  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = _documented(function, [policy.name for policy in policies], examples, asked=bool(asked))
    return call


def _documented(function: Callable[..., Any], policies: list[str], examples: str, *, asked: bool) -> str:
    """Give the function's own page, with what is evaluated in place of the scores."""
    page, _, _ = (inspect.getdoc(function) or "").partition("\nExamples\n")
    before, title, rest = page.partition("Parameters\n----------\n")
    given, returns, after = rest.partition("\n\nReturns\n")
    own = [block for block in _BLOCK.split(given) if not set(block.partition("\n")[0].split(", ")) <= _GIVEN]
    parameters = (_RUNS, *([_MEASURES] if asked else []), *own, _POLICIES.format(", ".join(policies)))
    shown = f"\nExamples\n--------\n{inspect.cleandoc(examples)}\n"
    return before + title + "\n".join(parameters) + returns + after + shown
