"""A drop-in for pytrec_eval: the same names, the same numbers to the last bit but for ``set_F``, without its crashes.

>>> from judged.scoring.compat import pytrec_eval
>>> evaluator = pytrec_eval.RelevanceEvaluator({"q1": {"d1": 1, "d2": 0}}, {"map", "P.5,10", "ndcg_cut_3"})
>>> evaluator.evaluate({"q1": {"d2": 0.9, "d1": 0.8}})
{'q1': {'map': 0.5, 'P_5': 0.2, 'P_10': 0.1, 'ndcg_cut_3': 0.6309297535714575}}

The rules are those of trec_eval 9: scores are compared as 32-bit numbers, ties are ordered by descending document id,
and only topics that run and qrels have in common are scored, in the order of the run.

What differs, all on purpose (checked against pytrec_eval-terrier 0.5.11):

- Where pytrec_eval ends the interpreter, there is an error that says what to do: ``P_0``, ``ndcg_10``, ``G.1``. Ids
  with a lone surrogate end it too; here they are like others in a run, and refused in judgments. ``ndcg.1=3`` and
  ``utility.1,-1,0,0`` give the numbers of trec_eval; there the one ends the interpreter and the other gives 0.
- A parameter that pytrec_eval would ignore is refused: ``recip_rank_10`` (there it is the reciprocal rank without a
  cutoff), ``set_P_5``, ``P_5x``. So are two parameters of ``set_F``, of which it keeps one.
- Scores may be any numbers, NumPy's too; grades may be fractions; ids may be integers; any mapping will do. Ids are
  compared whole, also behind a NUL character. A level of 0 is allowed.
- NaN as a score is refused; there it gives an order by chance.
- Topics whose judgments are all negative, or empty, are scored like others, and nothing carries over from one call
  to the next.
- ``set_F.0.5`` may differ in the last bit, and so may every weight that is not the square of a double: its square root,
  rounded, is kept here. Weights such as 1, 4 and 0.25 give the same bits.
- Where nothing is left of a ranking, interpolated precision is 0 and not NaN.
- ``relstring`` is text and ``runid`` no number: both are 0.0 here; there ``runid`` is whatever stood in memory.

``gm_map`` and ``gm_bpref`` are logarithms by topic, as they are there: `compute_aggregated_measure` makes the mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from judged.data.index import id_text
from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.scoring.judging import Judged, judge
from judged.scoring.measures.aggregates import logarithms
from judged.scoring.peers.names import names_of
from judged.scoring.peers.trec_eval import NICKNAMES, Printed, TrecEvalError, expand, roots

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

Number = TypeVar("Number")

_LATER = set(roots("all_trec", "trec_eval-10")) - set(roots("all_trec", "trec_eval-9"))

supported_measures: set[str] = set(roots("all_trec", "trec_eval-9"))
"""The measures that can be asked for, without parameters."""

supported_nicknames: dict[str, set[str]] = {name: set(several) - _LATER for name, several in NICKNAMES.items()}
"""Names that stand for several measures."""

_BY_CUTOFF = {"P", "recall", "ndcg_cut", "map_cut", "relative_P", "success"}
_BY_NUMBER = {"iprec_at_recall", "Rprec_mult", "11pt_avg", "set_F", "utility", "relstring"}
_BY_GAIN = {"ndcg", "ndcg_rel", "Rndcg", "G"}
_AT_ONCE = {"11pt_avg", "set_F", "utility", "relstring"}
"""Measures whose parameters make one number together, and do not show in its name."""

_LONGEST = 300
"""How many characters a parameter may have; Python reads no whole number beyond 4300."""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PARAMETERS = {
    **dict.fromkeys(_BY_CUTOFF, re.compile(r"[0-9]+(?:,[0-9]+)*")),
    **dict.fromkeys(_BY_NUMBER, re.compile(rf"{_NUMBER}(?:,{_NUMBER})*")),
    **dict.fromkeys(_BY_GAIN, re.compile(rf"[0-9]+={_NUMBER}(?:,[0-9]+={_NUMBER})*")),
}


class RelevanceEvaluator:
    """Judgments and measures, ready to score runs.

    Parameters
    ----------
    query_relevance
        ``{query_id: {doc_id: grade}}``; topics without judgments are left out.
    measures
        Names, one or more: ``map``, ``P``, ``P_5``, ``P.5,10``, and the nicknames.
    relevance_level
        The lowest grade that counts as relevant.
    judged_docs_only_flag
        Whether documents without a judgment are taken out of each ranking first.

    Raises
    ------
    MeasureError
        If a measure is not supported, or takes no such parameters.
    InputError
        If the judgments cannot be read.
    """

    def __init__(
        self,
        query_relevance: Mapping[Any, Mapping[Any, Any]],
        measures: Iterable[str],
        relevance_level: float = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        self._lines = _lines(names_of(measures, "measure", "{'map', 'P_5'}"), _level(relevance_level))
        judgments = {query: docs for query, docs in _topics(query_relevance, "relevance").items() if docs}
        self._qrels = Qrels.of(judgments) if judgments else None
        self._judged_only = bool(judged_docs_only_flag)

    def evaluate(self, scores: Mapping[Any, Mapping[Any, Any]]) -> dict[Any, dict[str, float]]:
        """Score a run, ``{query_id: {doc_id: score}}``: one dict of values for each topic that has judgments.

        Raises
        ------
        InputError
            If a score is not a number.
        """
        if not _topics(scores, "score") or self._qrels is None:
            return {}
        judged = judge(self._qrels, scores, precision="single").over("both")
        if self._judged_only:
            judged = judged.condensed
        columns = [_values(line, judged) for line in self._lines]
        names = [_key(line) for line in self._lines]
        rows = zip(*columns, strict=True) if columns else [()] * len(judged)
        by_topic = dict(zip(judged.query_ids, rows, strict=True))
        found = ((query, by_topic.get(id_text(query, "query id"))) for query in scores)
        return {query: dict(zip(names, values, strict=True)) for query, values in found if values is not None}


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read the lines of a TREC run: ``query Q0 doc rank score tag``.

    Raises
    ------
    InputError
        If a line has another number of fields, its score is not a number, or a document comes twice.
    """
    return _parsed(f_run, "query Q0 document rank score tag", 4, float)


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read the lines of TREC judgments: ``query 0 doc grade``.

    Raises
    ------
    InputError
        If a line has another number of fields, its grade is not a whole number, or a document comes twice.
    """
    return _parsed(f_qrel, "query 0 document grade", 3, int)


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Put the values of all topics together: counts are added up, ``gm_`` makes the geometric mean, else the mean.

    >>> compute_aggregated_measure("num_ret", [2.0, 3.0]), compute_aggregated_measure("map", [0.5, 1.0])
    (5.0, 0.75)
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values))


def _level(given: object) -> float:
    if not isinstance(given, (int, float, np.integer, np.floating)):
        raise InputError(f"the relevance level {given!r} is not a number", fix="give a number from 0, such as 1")
    level = float(given)
    if not level >= 0:
        raise InputError(f"the relevance level {given} is negative or no number", fix="give 0 or more")
    return level


def _topics(given: object, value: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{type(given).__name__} is given, not a dict", fix=f"give {{query_id: {{doc_id: {value}}}}}")
    return given


def _lines(measures: Iterable[str], level: float) -> list[Printed]:
    """Make the lines of trec_eval 9's table that the names ask for, each once, in its order."""
    wanted: dict[str, list[str]] = {}
    for name in measures:
        for one in sorted(supported_nicknames.get(name, (name,))):
            root, parameters = _split(one)
            wanted.setdefault(root, []).extend(parameters)
    found: list[str] = []
    for root, parameters in wanted.items():
        if root not in supported_measures:
            raise MeasureError(f"unsupported measure {root}. Fix: use one of {', '.join(sorted(supported_measures))}")
        if root in {"set_F", "relstring"} and len(set(parameters)) > 1:
            raise MeasureError(f"{root} takes one parameter, not {', '.join(parameters)}. Fix: ask for one at a time")
        if any(len(one) > _LONGEST for one in parameters):
            raise MeasureError(f"{root}.{parameters[0][:9]}... has too many digits. Fix: give at most {_LONGEST}")
        kept = {(int(one) if root in _BY_CUTOFF else one): None for one in parameters}  # each once
        written = ",".join(parameters if root == "utility" else map(str, kept))
        found.append(f"{root}.{written}" if parameters else root)
    try:
        lines = expand(*found, level=level, dialect="trec_eval-9") if found else []
        return [line for line in lines if line.measure or line.kind == "text"]  # which refuses parameters now
    except TrecEvalError as error:
        raise MeasureError(str(error)) from None


def _split(name: str) -> tuple[str, list[str]]:
    """Cut a name such as ``P_5`` or ``P.5,10`` into the measure and its parameters."""
    if name in supported_measures:
        return name, []
    bases = [base for base in supported_measures if name.startswith((f"{base}_", f"{base}."))]
    if not bases:
        raise MeasureError(f"unsupported measure {name}. Fix: use one of {', '.join(sorted(supported_measures))}")
    base = max(bases, key=len)
    written = name[len(base) + 1 :]
    form = _PARAMETERS.get(base)
    if form is None or not form.fullmatch(written):
        example = {**dict.fromkeys(_BY_CUTOFF, ".5,10"), **dict.fromkeys(_BY_NUMBER, ".0.5")}.get(base, "")
        hint = f"; with a cutoff it is {base}_cut_{written}" if base in {"map", "ndcg"} and written.isdecimal() else ""
        raise MeasureError(f"{base} takes no parameter {written!r}. Fix: write {base}{example}{hint}")
    return base, written.split(",")


def _key(line: Printed) -> str:
    return line.root if line.root in _AT_ONCE else line.name


def _values(line: Printed, judged: Judged) -> list[float]:
    if line.measure is None:
        return [0.0] * len(judged)
    scores = line.measure(judged)
    return (logarithms(scores) if line.measure.entry.aggregate == "geometric mean" else scores).tolist()


def _parsed(lines: Iterable[str], layout: str, at: int, read: Callable[[str], Number]) -> dict[str, dict[str, Number]]:
    made: dict[str, dict[str, Number]] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != len(layout.split()):
            raise InputError(f"{len(fields)} fields", fix=f"write {layout}", path="<lines>", line=number)
        query, doc = fields[0], fields[2]
        if doc in made.setdefault(query, {}):
            raise InputError(
                f"document {doc} appears twice for topic {query}", fix="keep one", path="<lines>", line=number
            )
        try:
            made[query][doc] = read(fields[at])
        except ValueError:
            raise InputError(
                f"{fields[at]!r} is not a number", fix=f"write {layout}", path="<lines>", line=number
            ) from None
    return made
