"""Provider for ir_measures: after ``import judged.scoring.compat.ir_measures``, ir_measures computes with judged.

::

    import ir_measures
    import judged.scoring.compat.ir_measures
    from ir_measures import AP, ERR, RR

    ir_measures.calc_aggregate([AP, RR @ 10, ERR @ 20], qrels, run)

Calls through PyTerrier use it too. The provider is the first in the default pipeline, and is also available as
``ir_measures.providers.registry["judged_evaluation"]``.

All measures of a call use the ranking of pytrec_eval: by descending score (compared as 32-bit numbers), then by
descending document id. In ir_measures, the order of ties depends on the provider. As in ir_measures, all topics of the
qrels count, and a topic that is missing in the run scores 0.

The scores are those of ir_measures 0.4.3, with these exceptions:

- Ties, and scores that are equal as 32-bit numbers, if the provider was not pytrec_eval.
- ``ERR`` and ``nDCG(dcg="exp-log2")`` are not rounded to 5 decimals, do not require Perl, and support any query ids. As
  in ir_measures, the highest grade for ``ERR`` is 4.
- ``Compat`` is that of its authors' script; ir_measures uses a smaller depth, and compares scores with 0.
- ``Accuracy`` of a ranking without a wrong pair is 1; ir_measures divides by zero.
- ``RBP`` uses the full ranking; ir_measures stops at 1000.
- If a document is judged several times for a topic, the highest grade is used, not the last. A document that is
  returned twice raises an error.
- ``judged_only`` works for diversity measures, and several of them in a call do not change each other's scores.

Also supported: ``RR(judged_only=True)@10``, ``RBP(rel=1)@10``, ``nDCG(dcg="exp-log2")`` and ``ERR`` without a cutoff,
``NumRel(rel=2)``, fractional grades.

As in ir_measures, the ``beta`` of ``SetF`` is not squared. `judged.measures.parse` parses the same text as a measure
that squares it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from judged.data.index import id_text
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import MeasureError, MissingExtraError
from judged.scoring.judging import Judged, judge
from judged.scoring.measures.accuracy import PairAccuracy
from judged.scoring.measures.aggregates import count_relevant_returned
from judged.scoring.measures.base import Measure
from judged.scoring.measures.cwl import UserModel
from judged.scoring.measures.grammar import find, translate_parameters


def _import_ir_measures() -> Any:
    # a dynamic import, because ir_measures has no stubs and is optional
    try:
        return importlib.import_module("ir_measures")
    except ModuleNotFoundError as error:
        if error.name != "ir_measures":
            raise
        raise MissingExtraError("ir_measures") from None


_ir_measures: Any = _import_ir_measures()

_SUPPORTED = (
    *("P", "R", "Rprec", "AP", "RR", "Success", "nDCG", "ERR", "RBP", "Bpref", "infAP", "IPrec", "Judged", "Accuracy"),
    *("SetP", "SetR", "SetF", "SetAP", "NumRet", "NumRel", "NumQ", "Compat"),
    *("BPM", "SDCG", "NERR8", "NERR9", "NERR10", "NERR11", "INST", "INSQ"),
    *("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"),
)
_RENAMED = {"Accuracy": "PairAccuracy"}
_FIXED_PARAMETERS: dict[str, dict[str, Any]] = {"ERR": {"max": 4}, "IPrec": {"rounding": "up"}}


def to_judged_measure(measure: Any) -> Measure:
    """Return the measure of `judged` for a measure of ir_measures."""
    if measure.NAME not in _SUPPORTED:
        raise MeasureError(
            f"judged does not compute {measure} of ir_measures. Fix: use another provider of ir_measures"
        )
    not_provided = _ir_measures.providers.base.NOT_PROVIDED
    parameters = {name: measure[name] for name in measure.SUPPORTED_PARAMS if measure[name] is not not_provided}
    if measure.NAME == "SetF":
        parameters["beta"] = math.sqrt(parameters["beta"])
    if measure.NAME == "RBP" and "rel" not in parameters:
        raise MeasureError(f"{measure} requires `rel`. Fix: write RBP(rel=1)")
    if parameters.get("dcg") == "exp-log2" and "gains" in parameters:
        raise MeasureError(f"{measure} has both `dcg` and `gains`. Fix: use only `gains`")
    entry, values = find(_RENAMED.get(measure.NAME, measure.NAME))
    name, judged_parameters = translate_parameters(
        entry, {**values, **parameters, **_FIXED_PARAMETERS.get(measure.NAME, {})}
    )
    return find(name)[0].cls(**judged_parameters).require_cutoff()


class JudgedProvider(_ir_measures.providers.Provider):
    """Provider of ir_measures that computes with judged."""

    NAME = "judged_evaluation"

    def supports(self, measure: Any) -> bool:
        """Whether judged computes the measure."""
        measure.validate_params()
        try:
            to_judged_measure(measure)
        except MeasureError:
            return False
        return True

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> JudgedEvaluator:
        return JudgedEvaluator(measures, qrels)

    def qrel_inputs(self, measures: Iterable[Any]) -> list[str]:
        """Return the required columns of judgments, including the subtopic for diversity measures."""
        columns = ["query_id", "doc_id", "relevance"]
        needs_subtopics = any(to_judged_measure(measure).entry.family == "diversity" for measure in measures)
        return [*columns, "iteration"] if needs_subtopics else columns


class JudgedEvaluator(_ir_measures.providers.Evaluator):
    """Evaluator of runs, with judgments and measures."""

    def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
        # the order of a set differs between processes
        measure_list = sorted(measures, key=str) if isinstance(measures, (set, frozenset)) else list(measures)
        self._pairs = [(measure, to_judged_measure(measure)) for measure in measure_list]
        judgments, query_ids = _read_qrels(qrels)
        highest = math.inf if judgments is None else judgments.grades.max()
        max_grades = {_max_grade(measure) for _, measure in self._pairs}
        limited = {top: _limit_grades(judgments, top) for top in max_grades if top is not None and top < highest}
        self._qrels: dict[float | None, Qrels | None] = {None: judgments, **limited}
        super().__init__(measure_list, query_ids)

    def iter_calc(self, run: Any) -> Iterator[Any]:
        """Yield one value per topic of the judgments and measure, topics of the run first."""
        rankings = _read_run(run)
        judged_by_max = {max_grade: _judge_run(qrels, rankings) for max_grade, qrels in self._qrels.items()}
        query_ids: tuple[str, ...] = ()
        if (judged := judged_by_max[None]) is not None:
            query_ids = judged.query_ids
            columns = [
                _values(measure, judged_by_max.get(_max_grade(measure), judged) or judged) for _, measure in self._pairs
            ]
            for i, query_id in enumerate(query_ids):
                for (original, _), values in zip(self._pairs, columns, strict=True):
                    if not math.isnan(values[i]):
                        yield _ir_measures.Metric(query_id=query_id, measure=original, value=values[i])
        for query_id in sorted(self.qrel_qids - set(query_ids)):
            for original, measure in self._pairs:
                if not isinstance(measure, PairAccuracy):
                    yield _ir_measures.Metric(query_id=query_id, measure=original, value=original.DEFAULT)


def _max_grade(measure: Measure) -> float | None:
    """Return the highest grade of a measure, to which ir_measures lowers higher grades, or None."""
    return measure.max if isinstance(measure, UserModel) else None


def _judge_run(qrels: Qrels | None, rankings: Run | None) -> Judged | None:
    if qrels is None or rankings is None:
        return None
    return judge(qrels, rankings, precision="single").over("both")


def _values(measure: Measure, judged: Judged) -> list[float]:
    """Return the score of each topic; NaN for Accuracy without a relevant document, which ir_measures omits."""
    scores = measure(judged)
    if isinstance(measure, PairAccuracy):
        scores = np.where(count_relevant_returned(judged, measure.rel, measure.cutoff) > 0, scores, np.nan)
    return scores.tolist()


def _limit_grades(qrels: Qrels | None, max_grade: float) -> Qrels | None:
    return None if qrels is None else qrels.regraded(np.minimum(qrels.grades, max_grade))


def _read_qrels(data: Any) -> tuple[Qrels | None, set[str]]:
    """Read judgments in a format of ir_measures. Return also all query ids, including those without judgments."""
    if isinstance(data, Mapping):
        query_ids = {id_text(query, "query id") for query in data}
        return (Qrels.of(data) if any(data.values()) else None), query_ids
    rows = _select_columns(data, ("query_id", "doc_id", "relevance", "iteration"))
    if rows is None:
        rows = list(data)
    if len(rows) == 0:
        return None, set()
    qrels = Qrels.of(rows)
    return qrels, set(qrels.topics)


def _read_run(data: Any) -> Run | None:
    """Read a run in a format of ir_measures; None if it is empty."""
    if not isinstance(data, Mapping):
        rows = _select_columns(data, ("query_id", "doc_id", "score"))
        data = list(data) if rows is None else rows
    return Run.of(data) if len(data) else None


def _select_columns(data: Any, columns: tuple[str, ...]) -> Any:
    """Return the available columns of a data frame; None if `data` is not a data frame."""
    if not hasattr(data, "itertuples"):
        return None
    return data[[name for name in columns if name in data.columns]]


provider = JudgedProvider()
if JudgedProvider.NAME not in _ir_measures.providers.registry:
    _ir_measures.DefaultPipeline.providers.insert(0, provider)
_ir_measures.providers.register(provider)
