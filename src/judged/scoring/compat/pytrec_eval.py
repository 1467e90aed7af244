"""Drop-in replacement for pytrec_eval: same names, identical scores except for ``set_F``, and no crashes.

>>> from judged.scoring.compat import pytrec_eval
>>> evaluator = pytrec_eval.RelevanceEvaluator({"q1": {"d1": 1, "d2": 0}}, {"map", "P.5,10", "ndcg_cut_3"})
>>> evaluator.evaluate({"q1": {"d2": 0.9, "d1": 0.8}})
{'q1': {'map': 0.5, 'P_5': 0.2, 'P_10': 0.1, 'ndcg_cut_3': 0.6309297535714575}}

The rules are those of trec_eval 9: scores are compared as 32-bit numbers, ties are ordered by descending document id,
and only the topics in both run and qrels are scored, in the order of the run.

Intentional differences from pytrec_eval-terrier 0.5.11:

- Names that crash the interpreter there, such as ``P_0``, ``ndcg_10``, and ``G.1``, raise an error. An id with an
  unpaired surrogate is valid in a run and raises an error in judgments. ``ndcg.1=3`` and ``utility.1,-1,0,0`` have the
  values of trec_eval.
- A parameter that pytrec_eval ignores raises an error: ``recip_rank_10`` (there, the reciprocal rank without a
  cutoff), ``set_P_5``, ``P_5x``. So do two parameters of ``set_F``, of which it uses one.
- Scores may be of any number type, including NumPy's. Grades may be fractions, ids may be integers, and inputs may be
  any mappings. Ids are compared beyond a NUL character. A level of 0 is allowed.
- A score of NaN raises an error; there, the order is undefined.
- Topics with only negative judgments, or without judgments, are scored like others, and calls are independent.
- ``set_F.0.5`` may differ in the last bit, because the rounded square root of the weight is stored. Weights that are
  squares of doubles, such as 1, 4, and 0.25, are exact.
- For an empty ranking, interpolated precision is 0, not NaN.
- ``relstring`` and ``runid`` are 0.0, because they are not numbers. There, ``runid`` is uninitialized memory.

``gm_map`` and ``gm_bpref`` are logarithms by topic, as in pytrec_eval: `compute_aggregated_measure` averages them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from judged.data.index import id_text
from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.results.spelling import use_one_of
from judged.scoring.judging import Judged, judge
from judged.scoring.measures.aggregates import logarithms
from judged.scoring.peers.names import check_names
from judged.scoring.peers.trec_eval import NICKNAMES, OutputLine, TrecEvalError, expand, roots

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

Number = TypeVar("Number")

_NEW_IN_10 = set(roots("all_trec", "trec_eval-10")) - set(roots("all_trec", "trec_eval-9"))

supported_measures: set[str] = set(roots("all_trec", "trec_eval-9"))
"""Names of measures, without parameters."""

supported_nicknames: dict[str, set[str]] = {name: set(members) - _NEW_IN_10 for name, members in NICKNAMES.items()}
"""Names of groups of measures."""

_CUTOFF_MEASURES = {"P", "recall", "ndcg_cut", "map_cut", "relative_P", "success"}
_NUMBER_MEASURES = {"iprec_at_recall", "Rprec_mult", "11pt_avg", "set_F", "utility", "relstring"}
_GAIN_MEASURES = {"ndcg", "ndcg_rel", "Rndcg", "G"}
_JOINT_PARAMETER_MEASURES = {"11pt_avg", "set_F", "utility", "relstring"}
"""Measures with a single score that uses all parameters. The name of the score does not contain the parameters."""

_MAX_LENGTH = 300
"""Maximum length of a parameter in characters. Python cannot parse integers of more than 4300 digits."""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PARAMETERS = {
    **dict.fromkeys(_CUTOFF_MEASURES, re.compile(r"[0-9]+(?:,[0-9]+)*")),
    **dict.fromkeys(_NUMBER_MEASURES, re.compile(rf"{_NUMBER}(?:,{_NUMBER})*")),
    **dict.fromkeys(_GAIN_MEASURES, re.compile(rf"[0-9]+={_NUMBER}(?:,[0-9]+={_NUMBER})*")),
}


class RelevanceEvaluator:
    """Evaluator of runs, with judgments and measures.

    Parameters
    ----------
    query_relevance
        ``{query_id: {doc_id: grade}}``. Topics without judgments are omitted.
    measures
        Names of measures, ``map``, ``P``, ``P_5``, ``P.5,10``, or nicknames.
    relevance_level
        Lowest relevant grade.
    judged_docs_only_flag
        Whether to remove unjudged documents from each ranking.

    Raises
    ------
    MeasureError
        If a measure or its parameter is not supported.
    InputError
        If the judgments are invalid.
    """

    def __init__(
        self,
        query_relevance: Mapping[Any, Mapping[Any, Any]],
        measures: Iterable[str],
        relevance_level: float = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        self._lines = _output_lines(check_names(measures, "measure", "{'map', 'P_5'}"), _check_level(relevance_level))
        judgments = {query: docs for query, docs in _check_topics(query_relevance, "relevance").items() if docs}
        self._qrels = Qrels.of(judgments) if judgments else None
        self._judged_only = bool(judged_docs_only_flag)

    def evaluate(self, scores: Mapping[Any, Mapping[Any, Any]]) -> dict[Any, dict[str, float]]:
        """Evaluate a run, ``{query_id: {doc_id: score}}``. Return a dict of scores for each topic with judgments.

        Raises
        ------
        InputError
            If a score is not a number.
        """
        if not _check_topics(scores, "score") or self._qrels is None:
            return {}
        judged = judge(self._qrels, scores, precision="single").over("both")
        if self._judged_only:
            judged = judged.condensed
        columns = [_values(line, judged) for line in self._lines]
        names = [_key(line) for line in self._lines]
        rows = zip(*columns, strict=True) if columns else [()] * len(judged)
        by_topic = dict(zip(judged.query_ids, rows, strict=True))
        pairs = ((query, by_topic.get(id_text(query, "query id"))) for query in scores)
        return {query: dict(zip(names, values, strict=True)) for query, values in pairs if values is not None}


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Parse the lines of a TREC run: ``query Q0 doc rank score tag``.

    Raises
    ------
    InputError
        If the number of fields is wrong, a score is not a number, or a document occurs twice for a topic.
    """
    return _parse(f_run, "query Q0 document rank score tag", 4, float)


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Parse the lines of TREC judgments: ``query 0 doc grade``.

    Raises
    ------
    InputError
        If the number of fields is wrong, a grade is not an integer, or a document occurs twice for a topic.
    """
    return _parse(f_qrel, "query 0 document grade", 3, int)


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Compute the aggregate over topics: the sum of a count, the geometric mean for ``gm_``, or else the mean.

    >>> compute_aggregated_measure("num_ret", [2.0, 3.0]), compute_aggregated_measure("map", [0.5, 1.0])
    (5.0, 0.75)
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values))


def _check_level(value: object) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"`relevance_level` must be a number, got {value!r}", fix="use 1")
    level = float(value)
    if not level >= 0:
        raise InputError(f"`relevance_level` must be 0 or more, got {value}", fix="use 1")
    return level


def _check_topics(topics: object, label: str) -> Mapping[Any, Any]:
    if not isinstance(topics, Mapping):
        problem = f"a dict is required, got {type(topics).__name__}"
        raise InputError(problem, fix=f"use {{query_id: {{doc_id: {label}}}}}")
    return topics


def _output_lines(measures: Iterable[str], level: float) -> list[OutputLine]:
    """Return the distinct output lines of trec_eval 9 for the names, in its order."""
    parameters_by_root: dict[str, list[str]] = {}
    for name in measures:
        for spec in sorted(supported_nicknames.get(name, (name,))):
            root, parameters = _split_name(spec)
            parameters_by_root.setdefault(root, []).extend(parameters)
    specs: list[str] = []
    for root, parameters in parameters_by_root.items():
        if root not in supported_measures:
            raise MeasureError(f"unsupported measure {root}. Fix: {use_one_of(sorted(supported_measures))}")
        if root in {"set_F", "relstring"} and len(set(parameters)) > 1:
            raise MeasureError(
                f"{root} takes one parameter, got {', '.join(parameters)}. Fix: use one parameter per call"
            )
        if any(len(parameter) > _MAX_LENGTH for parameter in parameters):
            raise MeasureError(
                f"{root}.{parameters[0][:9]}... has too many digits. Fix: use at most {_MAX_LENGTH} digits"
            )
        distinct = dict.fromkeys(map(int, parameters) if root in _CUTOFF_MEASURES else parameters)
        text = ",".join(parameters if root == "utility" else map(str, distinct))
        specs.append(f"{root}.{text}" if parameters else root)
    try:
        lines = expand(*specs, level=level, dialect="trec_eval-9") if specs else []
        return [line for line in lines if line.measure or line.kind == "text"]  # `measure` checks the parameters
    except TrecEvalError as error:
        raise MeasureError(str(error)) from None


def _split_name(name: str) -> tuple[str, list[str]]:
    """Split a name such as ``P_5`` or ``P.5,10`` into the measure and its parameters."""
    if name in supported_measures:
        return name, []
    bases = [base for base in supported_measures if name.startswith((f"{base}_", f"{base}."))]
    if not bases:
        raise MeasureError(f"unsupported measure {name}. Fix: {use_one_of(sorted(supported_measures))}")
    base = max(bases, key=len)
    parameters = name[len(base) + 1 :]
    pattern = _PARAMETERS.get(base)
    if pattern is None or not pattern.fullmatch(parameters):
        example = {**dict.fromkeys(_CUTOFF_MEASURES, ".5,10"), **dict.fromkeys(_NUMBER_MEASURES, ".0.5")}.get(base, "")
        has_cutoff = base in {"map", "ndcg"} and parameters.isdecimal()
        hint = f"; with a cutoff, the name is {base}_cut_{parameters}" if has_cutoff else ""
        raise MeasureError(f"{base} takes no parameter {parameters!r}. Fix: write {base}{example}{hint}")
    return base, parameters.split(",")


def _key(line: OutputLine) -> str:
    return line.root if line.root in _JOINT_PARAMETER_MEASURES else line.name


def _values(line: OutputLine, judged: Judged) -> list[float]:
    if line.measure is None:
        return [0.0] * len(judged)
    scores = line.measure(judged)
    return (logarithms(scores) if line.measure.entry.aggregate == "geometric mean" else scores).tolist()


def _parse(
    lines: Iterable[str], layout: str, field: int, cast: Callable[[str], Number]
) -> dict[str, dict[str, Number]]:
    by_query: dict[str, dict[str, Number]] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != len(layout.split()):
            raise InputError(f"{len(fields)} fields", fix=f"write {layout}", path="<lines>", line=number)
        query, doc = fields[0], fields[2]
        if doc in by_query.setdefault(query, {}):
            raise InputError(
                f"document {doc} appears twice for topic {query}", fix="keep one", path="<lines>", line=number
            )
        try:
            by_query[query][doc] = cast(fields[field])
        except ValueError:
            raise InputError(
                f"{fields[field]!r} is not a number", fix=f"write {layout}", path="<lines>", line=number
            ) from None
    return by_query
