"""Drop-in replacement for ranx's `evaluate`, `Qrels`, and `Run`, with topics joined by id and deterministic ties.

>>> from judged.scoring.compat import ranx
>>> qrels = {"q1": {"d1": 5, "d2": 3}, "q2": {"d3": 1}}
>>> run = {"q2": {"d3": 0.3, "d1": 0.2}, "q1": {"d9": 0.9, "d1": 0.8}}
>>> ranx.evaluate(qrels, run, ["ndcg@5", "map", "mrr-l4"])
{'ndcg@5': 0.7288368792759476, 'map': 0.625, 'mrr-l4': 0.25}

As in ranx, grades below a level (``-l2``) have gain 0, and a document with a negative grade is judged not relevant.

Intentional differences from ranx 0.3.21:

- Topics are joined by id. ranx joins two dicts by position, so that dicts in different order give wrong scores
  without a warning.
- Documents with equal scores are ordered by descending id. ranx uses an unstable sort, and identifies documents by a
  53-bit hash.
- ``bpref`` of a topic whose judged documents are all relevant is that of trec_eval; in ranx, it is NaN.
- There is no compilation, so that the first call is as fast as later calls. ``threads`` has no effect.
- ``return_mean=False`` with a cutoff or level and one metric returns its scores; ranx raises a KeyError.
- Grades may be fractions, which ranx truncates. Ids may be integers. Rankings may be empty.
- ``make_comparable`` also works on dicts, and does not change the caller's run.
- Scores may differ in the last digits, because sums are in a different order.

``nb.typed.List`` and arrays are not supported. `Qrels` and `Run` of ranx are, by their ``to_dict``. ranx's `compare`,
`fuse`, and other functions are not available.
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
from judged.scoring.peers.names import check_names, parse_ranx_name, parse_ranx_rbp

if TYPE_CHECKING:
    from judged.results.types import Floats, Table

__all__ = ["Qrels", "Run", "evaluate"]

_RANX = DIALECTS["ranx"]
_MAX_NAME_LENGTH = 60  # characters of a metric's name


class _TopicMapping:
    """Base class of `Qrels` and `Run`: a dict of dicts."""

    def __init__(self, topics: Mapping[Any, Mapping[Any, Any]] | None = None, name: str | None = None) -> None:
        self._topics = _to_mapping({} if topics is None else topics, type(self).__name__)
        self.name = name

    @classmethod
    def from_dict(cls, d: Mapping[Any, Mapping[Any, Any]], name: str | None = None) -> Self:
        """Create from ``{query_id: {doc_id: value}}``."""
        return cls(d, name)

    def to_dict(self) -> Mapping[Any, Mapping[Any, Any]]:
        """Return ``{query_id: {doc_id: value}}``."""
        return self._topics

    def keys(self) -> list[Any]:
        """Return the query ids."""
        return list(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


class Qrels(_TopicMapping):
    """Judgments, ``{query_id: {doc_id: grade}}``.

    >>> evaluate(Qrels({"q": {"a": 1}}), Run({"q": {"b": 2.0, "a": 1.0}}, name="mine"), "mrr")
    0.5
    """

    @classmethod
    def from_file(cls, path: str, kind: str | None = None) -> Self:
        """Read a file in any format of `judged`; `kind` is ignored."""
        del kind
        return cls(_nested_dict(data.Qrels.read(path).table, "relevance", path))


class Run(_TopicMapping):
    """Rankings, ``{query_id: {doc_id: score}}``, with the scores that `evaluate` stores."""

    def __init__(self, run: Mapping[Any, Mapping[Any, Any]] | None = None, name: str | None = None) -> None:
        super().__init__(run, name)
        self.scores: defaultdict[str, dict[Any, float]] = defaultdict(dict)
        self.mean_scores: dict[str, float] = {}
        self.std_scores: dict[str, float] = {}

    @classmethod
    def from_file(cls, path: str, kind: str | None = None, name: str | None = None) -> Self:
        """Read a file in any format of `judged`; `kind` is ignored."""
        del kind
        run = data.Run.read(path, name=name)
        return cls(_nested_dict(run.table, "score", path), run.name)


def _nested_dict(table: Table, value: str, path: str) -> dict[str, dict[str, float]]:
    """Convert a table to a dict of dicts; integral grades become integers."""
    if value not in table.column_names:
        raise InputError(f"no column {value}", fix="use a file with this column", path=str(path))
    by_query: dict[str, dict[str, float]] = {}
    values = table[value].to_pylist()
    for query, doc, cell in zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), values, strict=True):
        docs = by_query.setdefault(query, {})
        if doc in docs:
            raise InputError(f"document {doc} appears twice for topic {query}", fix="keep one", path=str(path))
        docs[doc] = int(cell) if value == "relevance" and float(cell).is_integer() else cell
    return by_query


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
    """Evaluate a run like ranx.

    Parameters
    ----------
    qrels, run
        Dicts of dicts, or `Qrels` and `Run` of this module or of ranx.
    metrics
        Names of ranx: ``ndcg@10``, ``map@100``, ``mrr``, ``hits@5``, ``rbp.95``, ``precision-l2``.
    return_mean
        Whether to return the mean over topics, or else an array of scores by topic, in the order of the qrels.
    return_std
        Whether to return ``{"mean": ..., "std": ...}``.
    threads
        Ignored.
    save_results_in_run
        Whether to store the scores in a `Run`.
    make_comparable
        Whether to drop topics without judgments from the run, and to add missing topics as empty rankings.

    Returns
    -------
    float, array or dict
        The value of a single metric, or else a dict by metric.

    Raises
    ------
    InputError
        If run and qrels have different topics, without `make_comparable`.
    MeasureError
        If ranx does not have the metric.

    Examples
    --------
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"x": 2, "a": 1}}, "recall@2", return_mean=False)
    array([0.5])
    """
    del threads
    names = _check_metrics(metrics)
    judgments, rankings = _to_mapping(qrels, "qrels"), _to_mapping(run, "run")
    if not make_comparable:
        _check_same_topics(judgments, rankings)
    judged = judge(_RANX.prepare_qrels(data.Qrels.of(judgments)), rankings)
    index_by_query = {query: i for i, query in enumerate(judged.query_ids)}
    order = [index_by_query.get(id_text(query, "query id"), -1) for query in judgments]
    scores = {
        name: np.append(_score(name, judged), 0.0)[order] for name in names
    }  # index -1, a topic without judgments, scores 0
    if save_results_in_run and hasattr(run, "mean_scores"):
        _save_scores(run, scores, list(judgments), with_std=return_mean and return_std)
    results = {name: _result(values, return_mean, return_std) for name, values in scores.items()}
    return results[names[0]] if len(names) == 1 else results


def _check_metrics(metrics: object) -> list[str]:
    names = check_names(metrics, "metric", "'ndcg@10'")
    for name in names:
        if len(name) > _MAX_NAME_LENGTH:
            raise MeasureError(f"ranx has no metric {name[:20]!r}... Fix: write fewer digits, as in ndcg@10")
    return names


def _score(name: str, judged: Judged) -> Floats:
    grades = sorted({float(grade) for grade in judged.label_grade.tolist()})
    if (rbp := parse_ranx_rbp(name, grades)) is not None:
        measure, factor = rbp
        return measure(judged) * factor
    if (measures := parse_ranx_name(name, grades)) is None:
        raise MeasureError(f"ranx has no metric {name!r}. Fix: use a ranx name, such as ndcg@10, map-l2, rbp.95")
    return measures[0](judged)


def _result(scores: Floats, mean: bool, std: bool) -> Any:
    if not mean:
        return scores
    return {"mean": float(np.mean(scores)), "std": float(np.std(scores))} if std else float(np.mean(scores))


def _to_mapping(data: Any, noun: str) -> Mapping[Any, Mapping[Any, Any]]:
    converted = data.to_dict() if hasattr(data, "to_dict") else data
    if not isinstance(converted, Mapping):
        problem = f"a dict of dicts is required for the {noun}, got {type(data).__name__}"
        raise InputError(problem, fix="use a dict of dicts, or an object of ranx")
    return converted


def _check_same_topics(qrels: Mapping[Any, Any], run: Mapping[Any, Any]) -> None:
    judged, returned = ({id_text(query, "query id") for query in topics} for topics in (qrels, run))
    if judged != returned:
        raise InputError(
            f"qrels and run have different topics: {len(judged - returned)} are only in the qrels,"
            f" {len(returned - judged)} only in the run",
            fix="use make_comparable=True, or correct the qrels or the run",
        )


def _save_scores(run: Any, scores: Mapping[str, Floats], queries: Iterable[Any], *, with_std: bool) -> None:
    for name, values in scores.items():
        run.mean_scores[name] = np.mean(values)
        if with_std:
            run.std_scores[name] = np.std(values)
        run.scores[name] = dict(zip(queries, values.tolist(), strict=True))
