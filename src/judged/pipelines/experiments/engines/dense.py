"""Vectors: documents by the cosine of what an embedding makes of them and of the query, searched exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError, MissingExtraError
from judged.pipelines.experiments.engines.base import Engine, QueryRefusedError, Setting, called, folder_size, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Configuration, Hit

_BATCH = 512  # texts that are embedded at a time


class Dense(Engine):
    """Exact search by cosine, in NumPy."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "embed": Setting("", (), "module:function that makes vectors (n, d) of texts; empty: WordLlama's"),
        "dimensions": Setting(256, (64, 128, 256), "of WordLlama's vectors"),
    }
    libraries = ("wordllama",)

    def build(self, documents: Mapping[str, Text], configuration: Configuration, folder: Path) -> None:
        """Embed titles and texts."""
        given = configuration["embed"]
        self._embed = called(given) if given else _wordllama(int(configuration["dimensions"]))
        self._ids = list(documents)
        texts = [whole(text) for text in documents.values()]
        parts = [self._unit(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        self._vectors = np.concatenate(parts)
        np.save(folder / "vectors.npy", self._vectors)
        self._folder = folder

    def _unit(self, texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Make vectors of length 1; of a text that says nothing one of 0."""
        vectors = np.asarray(self._embed(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            problem = f"embed made an array of shape {vectors.shape} of {len(texts)} texts, or one with no numbers"
            raise InputError(problem, fix="give one row of finite numbers a text")
        length = np.sqrt((vectors**2).sum(axis=1, keepdims=True, dtype=np.float32))
        return (vectors / np.where(length > 0, length, 1)).astype(np.float32)

    def size(self) -> int:
        """Give the size of the vectors."""
        return folder_size(self._folder)

    def search(self, query: str, k: int) -> list[Hit]:
        """Give the nearest documents; of equal ones those that were indexed first."""
        asked = self._unit([query])[0]
        if not asked.any():
            raise QueryRefusedError("the query has no vector")
        cosine = self._vectors @ asked
        return [(self._ids[at], float(cosine[at])) for at in np.argsort(-cosine, kind="stable")[:k].tolist()]


def _wordllama(dimensions: int) -> Callable[[list[str]], Any]:
    """Load static vectors whose weights are in their package: nothing is downloaded."""
    try:
        import wordllama
    except ImportError:
        raise MissingExtraError("wordllama", "engines") from None
    package = Path(wordllama.__file__).parent
    model: Any = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    return lambda texts: model.embed(texts)[:, :dimensions]
