"""Evaluator of sentence-transformers with confidence intervals and scores by query.

::

    from judged.integrations.sentence_transformers import RetrievalEvaluator

    evaluator = RetrievalEvaluator(queries, corpus, relevant_docs, name="dev")
    evaluator(model)  # or SentenceTransformerTrainer(..., evaluator=evaluator)
    evaluator.scores.compare()  # all pairs of evaluated checkpoints
"""

from __future__ import annotations

import csv
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data import Qrels, Texts, Topics
from judged.errors import MissingExtraError
from judged.scoring.evaluation import measures_of
from judged.scoring.evaluation.embeddings import evaluate_embeddings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure

MEASURES = (
    *("nDCG@10", "RR@10", "AP(norm=cutoff)@100"),
    *(f"{name}@{cutoff}" for name in ("Success", "P", "R") for cutoff in (1, 3, 5, 10)),
)
"""Measures of `InformationRetrievalEvaluator`, with its default cutoffs."""

_LABELS = {
    "nDCG": "NDCG",
    "RR": "MRR",
    "AP(norm=cutoff)": "MAP",
    "Success": "Accuracy",
    "P": "Precision",
    "R": "Recall",
}
"""Names of measures in sentence-transformers."""


def _import_base_evaluator() -> Any:
    # a dynamic import, because the package is optional; version 6 moved its evaluators
    for module, name in (("base.evaluation", "BaseEvaluator"), ("evaluation", "SentenceEvaluator")):
        with suppress(ModuleNotFoundError):
            return getattr(import_module(f"sentence_transformers.{module}"), name)
    raise MissingExtraError("sentence-transformers")


_BaseEvaluator: Any = _import_base_evaluator()


class RetrievalEvaluator(_BaseEvaluator):
    """Evaluator of retrieval, as `InformationRetrievalEvaluator`, with intervals and scores by query.

    Results have the same keys, such as ``dev_cosine_ndcg@10``, and for each the ends of its 95% confidence interval
    over queries, such as ``dev_cosine_ndcg@10_low`` and ``dev_cosine_ndcg@10_high``. Documents with equal similarity
    are in ascending order of their ids.

    Parameters
    ----------
    queries, documents
        Texts by id.
    qrels
        Relevant ids by query, ``{query_id: {doc_id: grade}}``, or other judgments, as for `judged.evaluate`. Queries
        without a text are ignored.
    measures
        Measures; the first one is the primary metric. Default: those of `InformationRetrievalEvaluator`.
    name
        Name in the results and in the name of the CSV file.
    similarity
        ``cosine`` or ``dot``. None: the similarity of the model.
    query_options, document_options
        Options of ``model.encode_query`` and ``model.encode_document``, such as ``batch_size`` and ``prompt``.
    write_csv
        Whether a call with an output folder adds a line to a CSV file in this folder.
    options
        Options of `judged.evaluate_embeddings`, such as ``cutoff``.

    Attributes
    ----------
    scores : Scores or None
        Scores by query of all calls; each call adds one run, named by its epoch and step.

    Raises
    ------
    InputError
        If an input is invalid, or no query is judged.
    """

    def __init__(
        self,
        queries: Any,
        documents: Any,
        qrels: Any,
        measures: Any = MEASURES,
        *,
        name: str = "",
        similarity: str | None = None,
        query_options: Mapping[str, Any] | None = None,
        document_options: Mapping[str, Any] | None = None,
        write_csv: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        self.name, self.similarity, self.write_csv = name, similarity, write_csv
        self.topics, self.texts = Topics.of(queries), Texts.of(documents)
        self.qrels = Qrels.of(qrels).over(self.topics.table["query_id"].to_pylist())
        self.measures = measures_of(measures)
        self.greater_is_better = self.measures[0].properties.higher_is_better is not False
        self.encode_options = {"query": query_options or {}, "document": document_options or {}}
        self.options: dict[str, Any] = {"ties": "docid-rising", **options}
        self.scores: Scores | None = None
        self.csv_file = f"Retrieval_evaluation{name and f'_{name}'}_results.csv"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate a model.

        Parameters
        ----------
        model
            A `SentenceTransformer`.
        output_path
            Folder of the CSV file; None: no file is written.
        epoch, steps
            State of the training; -1 outside of a training.

        Returns
        -------
        dict
            Value and ends of the interval of each measure.
        """
        similarity: Any = self.similarity or model.similarity_fn_name
        scores = evaluate_embeddings(
            self._encoder(model, "document"),
            self.topics,
            self.texts,
            self.qrels,
            self.measures,
            encode_queries=self._encoder(model, "query"),
            similarity=similarity,
            name=self._run_name(epoch, steps),
            **self.options,
        )
        self.scores = scores if self.scores is None else self.scores.join(scores)
        values: dict[str, float] = {}
        for measure, estimate in zip(scores.measures, scores.estimates(), strict=True):
            label = f"{similarity}-{_label(measure)}"
            values[label] = estimate.value
            if estimate.ci:
                values[f"{label}_low"], values[f"{label}_high"] = estimate.ci
        if output_path is not None and self.write_csv:
            _append_row(Path(output_path, self.csv_file), {"epoch": epoch, "steps": steps, **values})
        self.primary_metric = f"{similarity}_{_label(self.measures[0]).lower()}"
        by_key = {label.replace("-", "_", 1).lower(): value for label, value in values.items()}
        metrics = self.prefix_name_to_metrics(by_key, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    def _encoder(self, model: Any, kind: str) -> Callable[[list[str]], Any]:
        encode = getattr(model, f"encode_{kind}", model.encode)  # versions before 5 have only `encode`
        return partial(encode, **{"show_progress_bar": False, **self.encode_options[kind]})

    def _run_name(self, epoch: float, steps: int) -> str:
        parts = [f"{name} {value:.12g}" for name, value in (("epoch", epoch), ("step", steps)) if value != -1]
        name = ", ".join(parts) or "model"
        calls = sum(run.split("#")[0] == name for run in self.scores.run_names) if self.scores else 0
        return f"{name}#{calls + 1}" if calls else name


def _label(measure: Measure) -> str:
    """Return the name of a measure in sentence-transformers; the name in judged if there is none."""
    name, at, cutoff = str(measure).rpartition("@")
    return f"{_LABELS.get(name, name)}{at}{cutoff}"


def _append_row(path: Path, row: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row)
        if is_new:
            writer.writeheader()
        writer.writerow(row)
