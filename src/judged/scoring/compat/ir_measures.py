"""A provider for ir_measures: after ``import judged.scoring.compat.ir_measures``, ir_measures computes with judged.

::

    import ir_measures
    import judged.scoring.compat.ir_measures
    from ir_measures import AP, ERR, RR

    ir_measures.calc_aggregate([AP, RR @ 10, ERR @ 20], qrels, run)

Nothing else changes, for those who call ir_measures through PyTerrier neither. The provider stands first in the
default pipeline and can be called by itself: ``ir_measures.providers.registry["judged_evaluation"]``.

All measures of a call see one ranking: that of pytrec_eval, by descending score (compared as 32-bit numbers), then by
descending document id. In ir_measures each provider ranks ties in its own way. Topics are treated as there: all of the
qrels count, and one that the run lacks scores 0.

Numbers are those of ir_measures 0.4.3, with these exceptions:

- Ties, and scores that are equal as 32-bit numbers, where another provider than pytrec_eval computed.
- ``ERR`` and ``nDCG(dcg="exp-log2")`` are not rounded to 5 decimals, need no perl, and take any query ids. As there,
  4 is the highest grade that ``ERR`` takes.
- ``Compat`` is the number of its authors' script: ir_measures looks less deep, and compares scores with 0.
- ``Accuracy`` of a ranking without a wrong pair is 1; ir_measures divides by zero.
- ``RBP`` looks as deep as the ranking goes; ir_measures stops at 1000.
- Of a document that is judged several times for a topic the highest grade counts, not the last. A document that is
  returned twice is refused.
- ``judged_only`` works for measures of diversity, and asking for several of them does not change their numbers.

More works than there: ``RR(judged_only=True)@10``, ``RBP(rel=1)@10``, ``nDCG(dcg="exp-log2")`` without a cutoff,
``ERR`` without a cutoff, ``NumRel(rel=2)``, fractional grades.

The ``beta`` of ``SetF`` is not squared, as in ir_measures; `judged.measures.parse` reads the same text as our
measure, which squares it.
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


class _NotInstalledError(MissingExtraError):
    """ir_measures is not there; it is not an extra of ours, since whoever imports this has chosen it already."""

    def __init__(self) -> None:
        ImportError.__init__(self, "ir_measures is not installed. Fix: pip install ir_measures.")


def _library() -> Any:
    """Import ir_measures; it has no stubs, and is not there where it is not used."""
    try:
        return importlib.import_module("ir_measures")
    except ModuleNotFoundError as error:
        if error.name != "ir_measures":
            raise
        raise _NotInstalledError from None


_theirs: Any = _library()

_NAMES = (
    *("P", "R", "Rprec", "AP", "RR", "Success", "nDCG", "ERR", "RBP", "Bpref", "infAP", "IPrec", "Judged", "Accuracy"),
    *("SetP", "SetR", "SetF", "SetAP", "NumRet", "NumRel", "NumQ", "Compat"),
    *("BPM", "SDCG", "NERR8", "NERR9", "NERR10", "NERR11", "INST", "INSQ"),
    *("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"),
)
_OTHER_NAMES = {"Accuracy": "PairAccuracy"}
_IMPLIED: dict[str, dict[str, Any]] = {"ERR": {"max": 4}, "IPrec": {"rounding": "up"}}


def our_measure(measure: Any) -> Measure:
    """Give our measure for one of ir_measures."""
    if measure.NAME not in _NAMES:
        raise MeasureError(f"judged does not compute {measure} of ir_measures. Fix: leave it to another provider")
    unset = _theirs.providers.base.NOT_PROVIDED
    given = {name: measure[name] for name in measure.SUPPORTED_PARAMS if measure[name] is not unset}
    if measure.NAME == "SetF":
        given["beta"] = math.sqrt(given["beta"])
    if measure.NAME == "RBP" and "rel" not in given:
        raise MeasureError(f"{measure} does not say how grades become gains. Fix: write RBP(rel=1)")
    if given.get("dcg") == "exp-log2" and "gains" in given:
        raise MeasureError(f"{measure} names two kinds of gain. Fix: write the table of gains alone")
    entry, values = find(_OTHER_NAMES.get(measure.NAME, measure.NAME))
    name, ours = translate_parameters(entry, {**values, **given, **_IMPLIED.get(measure.NAME, {})})
    return find(name)[0].cls(**ours).require_cutoff()


class JudgedProvider(_theirs.providers.Provider):
    """Computes ir_measures' measures with judged."""

    NAME = "judged_evaluation"

    def supports(self, measure: Any) -> bool:
        """Whether we compute this measure."""
        measure.validate_params()
        try:
            our_measure(measure)
        except MeasureError:
            return False
        return True

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> JudgedEvaluator:
        return JudgedEvaluator(measures, qrels)

    def qrel_inputs(self, measures: Iterable[Any]) -> list[str]:
        """Name the columns of judgments that are needed: for diversity the subtopic too."""
        needed = ["query_id", "doc_id", "relevance"]
        diverse = any(our_measure(measure).entry.family == "diversity" for measure in measures)
        return [*needed, "iteration"] if diverse else needed


class JudgedEvaluator(_theirs.providers.Evaluator):
    """Judgments and measures, ready to score runs."""

    def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
        # a set has no order of its own, and results should not change it from one process to the next
        given = sorted(measures, key=str) if isinstance(measures, (set, frozenset)) else list(measures)
        self._pairs = [(measure, our_measure(measure)) for measure in given]
        judgments, query_ids = _qrels_of(qrels)
        highest = math.inf if judgments is None else judgments.grades.max()
        tops = {_top(ours) for _, ours in self._pairs} - {None}
        cut = {top: _cut(judgments, top) for top in tops if top is not None and top < highest}
        self._qrels: dict[float | None, Qrels | None] = {None: judgments, **cut}
        super().__init__(given, query_ids)

    def iter_calc(self, run: Any) -> Iterator[Any]:
        """Give one value for each topic of the judgments and each measure, topics of the run first."""
        rankings = _run_of(run)
        lists = {top: _judged(qrels, rankings) for top, qrels in self._qrels.items()}
        found: tuple[str, ...] = ()
        if (first := lists[None]) is not None:
            found = first.query_ids
            columns = [_values(ours, lists.get(_top(ours), first) or first) for _, ours in self._pairs]
            for at, query in enumerate(found):
                for (theirs, _), values in zip(self._pairs, columns, strict=True):
                    if not math.isnan(values[at]):
                        yield _theirs.Metric(query_id=query, measure=theirs, value=values[at])
        for query in sorted(self.qrel_qids - set(found)):
            for theirs, ours in self._pairs:
                if not isinstance(ours, PairAccuracy):
                    yield _theirs.Metric(query_id=query, measure=theirs, value=theirs.DEFAULT)


def _top(measure: Measure) -> float | None:
    """Give the top of the scale to which ir_measures lowers grades for a measure; None where it does not."""
    return measure.max if isinstance(measure, UserModel) else None


def _judged(qrels: Qrels | None, rankings: Run | None) -> Judged | None:
    """Rank a run; None where there is nothing to rank or nothing judged."""
    if qrels is None or rankings is None:
        return None
    return judge(qrels, rankings, precision="single").over("both")


def _values(measure: Measure, judged: Judged) -> list[float]:
    """Score every topic; NaN where ir_measures has no value: its Accuracy without a relevant document."""
    scores = measure(judged)
    if isinstance(measure, PairAccuracy):
        scores = np.where(count_relevant_returned(judged, measure.rel, measure.cutoff) > 0, scores, np.nan)
    return scores.tolist()


def _cut(qrels: Qrels | None, top: float) -> Qrels | None:
    """Lower the grades above the top of a scale to it, as ir_measures does."""
    return None if qrels is None else qrels.regraded(np.minimum(qrels.grades, top))


def _qrels_of(data: Any) -> tuple[Qrels | None, set[str]]:
    """Take judgments in the forms of ir_measures, with all topics, also those without a judgment."""
    if isinstance(data, Mapping):
        query_ids = {id_text(query, "query id") for query in data}
        return (Qrels.of(data) if any(data.values()) else None), query_ids
    rows = _frame(data, ("query_id", "doc_id", "relevance", "iteration"))
    if rows is None:
        rows = list(data)
    if len(rows) == 0:
        return None, set()
    qrels = Qrels.of(rows)
    return qrels, set(qrels.topics)


def _run_of(data: Any) -> Run | None:
    """Take a run in the forms of ir_measures; None where it is empty."""
    if not isinstance(data, Mapping):
        rows = _frame(data, ("query_id", "doc_id", "score"))
        data = list(data) if rows is None else rows
    return Run.of(data) if len(data) else None


def _frame(data: Any, columns: tuple[str, ...]) -> Any:
    """Take the columns that count of a data frame; None if it is none."""
    if not hasattr(data, "itertuples"):
        return None
    return data[[name for name in columns if name in data.columns]]


provider = JudgedProvider()
if JudgedProvider.NAME not in _theirs.providers.registry:
    _theirs.DefaultPipeline.providers.insert(0, provider)
_theirs.providers.register(provider)
