"""Stand-ins for tools that judged works with: the part of their interfaces that it uses."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from judged import Scores

WORDS = [f"w{i}" for i in range(40)]


class Grade(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class SubtopicGrade(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


class Query(NamedTuple):
    query_id: str
    title: str
    description: str

    def default_text(self):
        return self.title


class Document(NamedTuple):
    doc_id: str
    title: str
    url: str
    body: str

    def default_text(self):
        return f"{self.title} {self.body}"


class Result(NamedTuple):
    query_id: str
    doc_id: str
    score: float


class Dataset:
    """What judged uses of ``ir_datasets.Dataset``."""

    def __init__(self, name="", **parts):
        self.parts = parts
        for part in ("qrels", "queries", "docs", "scoreddocs"):
            setattr(self, f"has_{part}", lambda part=part: part in parts)
            setattr(self, f"{part}_iter", lambda part=part: iter(parts[part]))
        if name:
            self.dataset_id = lambda: name

    def docs_store(self):
        return SimpleNamespace(get_many_iter=lambda ids: (doc for doc in self.parts["docs"] if doc.doc_id in ids))


PETS = Dataset(
    "local/pets",
    qrels=[Grade("q1", "d1", 1, "0"), Grade("q1", "d2", 0, "0"), Grade("q2", "d2", 2, "0")],
    queries=[Query("q1", "cat", "Which cats?"), Query("q2", "dog", "Which dogs?")],
    docs=[Document("d1", "Cats", "u1", "They sleep."), Document("d2", "", "u2", "Dogs bark.")],
    scoreddocs=[Result("q1", "d2", 2.0), Result("q1", "d1", 1.5), Result("q2", "d2", 0.5)],
)


class BaseEvaluator:
    """What sentence-transformers 6.2.0 defines."""

    def __init__(self):
        self.greater_is_better = True
        self.primary_metric = None

    def prefix_name_to_metrics(self, metrics, name):
        if not name:
            return dict(metrics)
        if self.primary_metric is not None and not self.primary_metric.startswith(name + "_"):
            self.primary_metric = name + "_" + self.primary_metric
        return {name + "_" + key: value for key, value in metrics.items()}

    def store_metrics_in_model_card_data(self, model, metrics, epoch=0, step=0):
        model.stored = (metrics, epoch, step)


class Model:
    """Vectors of texts are sums of the vectors of their words."""

    similarity_fn_name = "cosine"

    def __init__(self, seed=0, size=8):
        self.vectors = dict(zip(WORDS, np.random.default_rng(seed).normal(size=(len(WORDS), size)), strict=True))
        self.calls = []

    def encode(self, texts, show_progress_bar=None):  # noqa: ARG002  an option that judged passes
        return np.array([sum(self.vectors[word] for word in text.split()) for text in texts])

    def encode_query(self, texts, **options):
        self.calls.append(("query", options))
        return self.encode(texts)

    def encode_document(self, texts, **options):
        self.calls.append(("document", options))
        return self.encode(texts)


class Mlflow:
    """The part of MLflow 3.17.2 that is used, as a module and as a client, with its check of names."""

    def __init__(self, folder: Path, active="active"):
        self.folder, self.active, self.metrics = folder, active, []

    def log_metric(self, key, value, step=None, run_id=None):
        assert re.fullmatch(r"[/\w.\- ]*", key)
        assert posixpath.normpath(key) == key
        self.metrics.append((run_id or self.active, key, value, step))

    def log_artifact(self, local_path, artifact_path=None, run_id=None):
        target = self.folder / (run_id or self.active) / artifact_path
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(local_path, target)


class WandbRun:
    """The part of a run of wandb 0.31.0 that is used."""

    def __init__(self):
        self.logged, self.artifacts = [], []

    def log(self, data, step=None):
        self.logged.append((data, step))

    def log_artifact(self, artifact_or_path, name=None, type=None):
        self.artifacts.append((Scores.load(artifact_or_path), name, type))
