"""ranx's `evaluate`, `Qrels` and `Run`: the same call and numbers, joined by key, with ties that are not chance.

>>> from judged.scoring.compat import ranx
>>> qrels = {"q1": {"d1": 5, "d2": 3}, "q2": {"d3": 1}}
>>> run = {"q2": {"d3": 0.3, "d1": 0.2}, "q1": {"d9": 0.9, "d1": 0.8}}
>>> ranx.evaluate(qrels, run, ["ndcg@5", "map", "mrr-l4"])
{'ndcg@5': 0.7288368792759476, 'map': 0.625, 'mrr-l4': 0.25}

A level (``-l2``) takes away the gain of lower grades too, and a negative grade is a judged document that is not
relevant, as there.

What differs, all on purpose (checked against ranx 0.3.21):

- Topics are joined by their ids. ranx joins two dicts by position, so that dicts in different order give wrong
  numbers without a word.
- Documents with the same score are ordered by falling id. ranx sorts by a method that leaves their order to chance,
  and finds documents by a hash of 53 bits.
- ``bpref`` of a topic in which every judged document is relevant is trec_eval's number; ranx gives NaN.
- Nothing is compiled: the first call takes as long as the second. ``threads`` is accepted and does nothing.
- ``return_mean=False`` with a cutoff or level and one metric gives its scores; ranx ends with a KeyError.
- Grades may be fractions, which ranx cuts to whole numbers; ids may be integers; rankings may be empty.
- ``make_comparable`` works on dicts too, and never changes the caller's run.
- Numbers may differ in the last digits, as sums run in another order.

``nb.typed.List`` and arrays are not taken; `Qrels` and `Run` of ranx are, by their ``to_dict``, as are the thin ones
here. ranx's `compare`, `fuse` and the rest are not there (yet).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from judged import data
from judged.data.index import id_text
from judged.errors import InputError, MeasureError
from judged.scoring.evaluation import DIALECTS
from judged.scoring.judging import Judged, judge
from judged.scoring.peers.names import names_of, ranx, ranx_rbp

if TYPE_CHECKING:
    from judged.results.types import Floats, Table

__all__ = ["Qrels", "Run", "evaluate"]

_RANX = DIALECTS["ranx"]
_LONGEST = 60  # characters of a metric's name: no cutoff is longer


class _Topics:
    """What `Qrels` and `Run` have in common: a dict of dicts, and the files that it comes from."""

    def __init__(self, given: Mapping[Any, Mapping[Any, Any]] | None = None, name: str | None = None) -> None:
        self._topics = _dict({} if given is None else given, type(self).__name__)
        self.name = name

    @classmethod
    def from_dict(cls, d: Mapping[Any, Mapping[Any, Any]], name: str | None = None) -> Self:
        """Take ``{query_id: {doc_id: value}}``."""
        return cls(d, name)

    def to_dict(self) -> Mapping[Any, Mapping[Any, Any]]:
        """Give ``{query_id: {doc_id: value}}``."""
        return self._topics

    def keys(self) -> list[Any]:
        """Give the ids of the topics."""
        return list(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


class Qrels(_Topics):
    """Judgments, ``{query_id: {doc_id: grade}}``.

    >>> evaluate(Qrels({"q": {"a": 1}}), Run({"q": {"b": 2.0, "a": 1.0}}, name="mine"), "mrr")
    0.5
    """

    @classmethod
    def from_file(cls, path: str, kind: str | None = None) -> Self:
        """Read a file in any form that judged reads; `kind` is not needed."""
        del kind
        return cls(_nested(data.Qrels.read(path).table, "relevance", path))


class Run(_Topics):
    """Rankings, ``{query_id: {doc_id: score}}``, with the scores that `evaluate` writes into it."""

    def __init__(self, run: Mapping[Any, Mapping[Any, Any]] | None = None, name: str | None = None) -> None:
        super().__init__(run, name)
        self.scores: defaultdict[str, dict[Any, float]] = defaultdict(dict)
        self.mean_scores: dict[str, float] = {}
        self.std_scores: dict[str, float] = {}

    @classmethod
    def from_file(cls, path: str, kind: str | None = None, name: str | None = None) -> Self:
        """Read a file in any form that judged reads; `kind` is not needed."""
        del kind
        run = data.Run.read(path, name=name)
        return cls(_nested(run.table, "score", path), run.name)


def _nested(table: Table, value: str, path: str) -> dict[str, dict[str, float]]:
    """Make a dict of dicts of a table; whole grades become whole numbers."""
    if value not in table.column_names:
        raise InputError(f"there is no column {value}", fix="give a file with one", path=str(path))
    made: dict[str, dict[str, float]] = {}
    values = table[value].to_pylist()
    for query, doc, number in zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), values, strict=True):
        docs = made.setdefault(query, {})
        if doc in docs:
            raise InputError(f"document {doc} appears twice for topic {query}", fix="keep one", path=str(path))
        docs[doc] = int(number) if value == "relevance" and float(number).is_integer() else number
    return made


def evaluate(
    qrels: Any,
    run: Any,
    metrics: str | Iterable[str],
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
) -> Any:
    """Score a run as ranx does.

    Parameters
    ----------
    qrels, run
        Dicts of dicts, or `Qrels` and `Run`, ranx's or those here.
    metrics
        ranx's names: ``ndcg@10``, ``map@100``, ``mrr``, ``hits@5``, ``rbp.95``, ``precision-l2``.
    return_mean
        Give the mean over topics; if not, an array with one score per topic, in the order of the qrels.
    return_std
        Give ``{"mean": ..., "std": ...}``.
    threads
        Nothing.
    save_results_in_run
        Write the scores into a `Run`, as ranx does.
    make_comparable
        Leave out topics of the run that have no judgments, and let those that it lacks be empty rankings.

    Returns
    -------
    float, array or dict
        For one metric its value, else a dict by metric.

    Raises
    ------
    InputError
        If run and qrels have different topics and are not to be made comparable.
    MeasureError
        If ranx has no such metric.

    Examples
    --------
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"x": 2, "a": 1}}, "recall@2", return_mean=False)
    array([0.5])
    """
    del threads
    names = _names(metrics)
    judgments, rankings = _dict(qrels, "qrels"), _dict(run, "run")
    if not make_comparable:
        _refuse_different(judgments, rankings)
    judged = judge(_RANX.prepare_qrels(data.Qrels.of(judgments)), rankings)
    place = {query: at for at, query in enumerate(judged.query_ids)}
    order = [place.get(id_text(query, "query id"), -1) for query in judgments]
    scores = {name: np.append(_score(name, judged), 0.0)[order] for name in names}  # nothing judged scores 0
    if save_results_in_run and hasattr(run, "mean_scores"):
        _save(run, scores, list(judgments), with_std=return_mean and return_std)
    results = {name: _result(values, return_mean, return_std) for name, values in scores.items()}
    return results[names[0]] if len(names) == 1 else results


def _names(metrics: object) -> list[str]:
    names = names_of(metrics, "metric", "'ndcg@10'")
    for name in names:
        if len(name) > _LONGEST:
            raise MeasureError(f"ranx has no metric {name[:20]!r}... Fix: write fewer digits, as in ndcg@10")
    return names


def _score(name: str, judged: Judged) -> Floats:
    """Score every topic by one metric."""
    grades = sorted({float(grade) for grade in judged.label_grade.tolist()})
    if (rbp := ranx_rbp(name, grades)) is not None:
        measure, factor = rbp
        return measure(judged) * factor
    if (known := ranx(name, grades)) is None:
        raise MeasureError(f"ranx has no metric {name!r}. Fix: use one of its names, such as ndcg@10, map-l2, rbp.95")
    return known[0](judged)


def _result(scores: Floats, mean: bool, std: bool) -> Any:
    if not mean:
        return scores
    return {"mean": float(np.mean(scores)), "std": float(np.std(scores))} if std else float(np.mean(scores))


def _dict(data: Any, what: str) -> Mapping[Any, Mapping[Any, Any]]:
    """Take a dict, or what ranx's objects give as one."""
    made = data.to_dict() if hasattr(data, "to_dict") else data
    if not isinstance(made, Mapping):
        raise InputError(f"the {what} are {type(data).__name__}", fix="give a dict of dicts, or ranx's own object")
    return made


def _refuse_different(qrels: Mapping[Any, Any], run: Mapping[Any, Any]) -> None:
    judged, returned = ({id_text(query, "query id") for query in one} for one in (qrels, run))
    if judged != returned:
        raise InputError(
            f"qrels and run have different topics: {len(judged - returned)} are only in the qrels,"
            f" {len(returned - judged)} only in the run",
            fix="write make_comparable=True, or correct one of them",
        )


def _save(run: Any, scores: Mapping[str, Floats], queries: Iterable[Any], *, with_std: bool) -> None:
    """Write scores where ranx's `Run` keeps them."""
    for name, values in scores.items():
        run.mean_scores[name] = np.mean(values)
        if with_std:
            run.std_scores[name] = np.std(values)
        run.scores[name] = dict(zip(queries, values.tolist(), strict=True))
