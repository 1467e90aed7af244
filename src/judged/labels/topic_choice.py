"""Sampling of queries from a log as topics, with inclusion probabilities and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from judged.data.attribute_files import read_attributes, typed_attributes
from judged.data.documents import check_unique_ids
from judged.data.rows import table_of
from judged.errors import InputError
from judged.labels.pooling import allocate
from judged.results import COUNT, TEXT, Answer, Column, Sentences, Table, counted, significant, truncated
from judged.results.spelling import one_of

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.results.types import Table as ArrowTable

Scheme: TypeAlias = Literal["traffic", "strata", "random"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
_BANDS = ("head", "torso", "tail")


@dataclass(frozen=True, eq=False, repr=False)
class ChosenTopics(Answer):
    """Result of `choose_topics`. Saved as CSV, it is a topics file with the weights as attributes.

    Attributes
    ----------
    topics : Arrow table
        ``query_id, text, count, stratum, probability, weight, query_weight``, most frequent first. A mean weighted by
        ``weight`` estimates the mean over searches; weighted by ``query_weight``, over distinct queries.
    scheme : str
    queries, searches : int
        Number of distinct queries and of searches in the log.
    seed : int
    """

    kind: ClassVar[str] = "topics"
    main: ClassVar[str] = "topics"

    topics: ArrowTable
    scheme: Scheme
    queries: int
    searches: float
    seed: int

    @property
    def title(self) -> str:
        """Number of sampled topics and of queries."""
        return f"{counted(self.topics.num_rows, 'topic')} sampled from {counted(self.queries, 'query', 'queries')}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sampling scheme and use of the weights."""
        share = float(self.topics["count"].to_numpy().sum()) / self.searches
        return (
            f"{self.title}. The sampled topics account for {share:.1%} of the searches. {_DESCRIPTIONS[self.scheme]}",
            (
                "To estimate a mean over searches, weight topics by `weight`. To estimate a mean over distinct queries,"
                " weight topics by `query_weight`."
            ),
        )

    def facts(self) -> dict[str, Any]:
        """Return the sampling scheme and its numbers."""
        return {name: getattr(self, name) for name in ("scheme", "queries", "searches", "seed")}

    def blocks(self) -> tuple[Block, ...]:
        """Return the topics with their weights."""
        formats = {"text": truncated(60), "query_id": TEXT, "stratum": TEXT, "count": COUNT}
        columns = [
            Column(name, self.topics[name].to_pylist(), formats.get(name, significant(4)), "topic" if i == 0 else None)
            for i, name in enumerate(self.topics.column_names)
        ]
        return Table("topics", tuple(columns), labels=2), Sentences(self.sentences)


_DESCRIPTIONS: dict[Scheme, str] = {
    "traffic": "The sampling probability of a query is proportional to its number of searches (systematic sampling"
    " from a random order, without replacement; Hartley and Rao 1962). Queries whose probability would exceed 1 are"
    " always selected.",
    "strata": "The sample has about equal numbers of head, torso, and tail queries, selected at random without"
    " replacement.",
    "random": "All queries had the same sampling probability.",
}


def choose_topics(
    queries: Any,
    n: int,
    scheme: Scheme = "traffic",
    *,
    column: str = "count",
    cuts: Sequence[float] = (1 / 3, 2 / 3),
    seed: int = 0,
) -> ChosenTopics:
    """Sample queries of a log as topics, each with a known inclusion probability.

    Parameters
    ----------
    queries
        ``{query: count}``, or a table or its path, with a column of queries (and optionally of IDs) and a column of
        numbers of searches.
    n
        Number of topics.
    scheme
        ``traffic``: probability proportional to the number of searches; ``strata``: equally many of head, torso and
        tail; or ``random``.
    column
        Name of the column with the number of searches.
    cuts
        Cumulative shares of all searches at which head and torso end.
    seed
        Seed of the sample.

    Raises
    ------
    InputError
        If there are fewer than `n` queries, or a count is not positive.

    Examples
    --------
    >>> searches = {"cats": 70, "dogs": 20, "birds": 5, "cat food": 5}
    >>> topics = choose_topics(searches, 2).topics
    >>> topics["text"].to_pylist(), topics["probability"].to_pylist()[0], topics["weight"].to_pylist()
    (['cats', 'cat food'], 1.0, [70.0, 30.0])
    """
    one_of("scheme", scheme, SCHEMES)
    ids, texts, counts = _read(queries, column)
    if not 1 <= n <= len(counts):
        problem = f"`n` must be from 1 to {len(counts)}, the number of queries, got {n}"
        raise InputError(problem, fix="use a smaller `n`")
    if seed < 0:
        raise InputError(f"`seed` must be 0 or a positive integer, got {seed}", fix="use seed=0")
    if len(cuts) != len(_BANDS) - 1 or not 0 < cuts[0] < cuts[-1] < 1:
        raise InputError(
            f"`cuts` must be two increasing shares of searches between 0 and 1, got {cuts}", fix="use 0.33, 0.67"
        )
    # Most frequent first: head, torso, and tail are ranges of cumulative searches.
    order = np.argsort(-counts, kind="stable")
    ids, texts, counts = [ids[i] for i in order], [texts[i] for i in order], counts[order]
    earlier_share = (np.cumsum(counts) - counts) / counts.sum()
    band = np.searchsorted(cuts, earlier_share, side="right")
    random = np.random.default_rng(seed)
    if scheme == "traffic":
        probabilities = proportional(counts, n)
        rows = _systematic(probabilities, random)
    else:
        strata = band if scheme == "strata" else np.zeros(len(band), dtype=np.int64)
        codes, stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)
        sample_sizes = allocate(n, sizes, 1.0 / sizes) if len(codes) > 1 else np.array([n])
        samples = [random.choice(np.flatnonzero(stratum == i), k, replace=False) for i, k in enumerate(sample_sizes)]
        rows = np.sort(np.concatenate(samples))
        probabilities = (sample_sizes / sizes)[stratum]
    if ids == texts:  # texts cannot be IDs: file formats of runs are separated by blanks
        ids = [f"q{i}" for i in range(1, len(texts) + 1)]
    table = pa.table(
        {
            "query_id": [ids[row] for row in rows],
            "text": [texts[row] for row in rows],
            "count": counts[rows],
            "stratum": [_BANDS[band[row]] for row in rows],
            "probability": probabilities[rows],
            "weight": counts[rows] / probabilities[rows],
            "query_weight": 1 / probabilities[rows],
        }
    )
    return ChosenTopics(table, scheme, len(counts), float(counts.sum()), seed)


def proportional(counts: Floats, n: int) -> Floats:
    """Compute inclusion probabilities proportional to `counts` that sum to `n`, none above 1.

    >>> proportional(np.array([70.0, 20.0, 5.0, 5.0]), 2).round(3).tolist()
    [1.0, 0.667, 0.167, 0.167]
    """
    probabilities, is_certain = np.ones(len(counts)), np.zeros(len(counts), dtype=np.bool_)
    # Each query fixed at probability 1 raises the probabilities of the others, so repeat until none exceeds 1.
    while not is_certain.all():
        others = ~is_certain
        probabilities[others] = (n - is_certain.sum()) * counts[others] / counts[others].sum()
        exceeds = others & (probabilities >= 1)
        if not exceeds.any():
            break
        probabilities[exceeds], is_certain = 1.0, is_certain | exceeds
    return probabilities


def _systematic(probabilities: Floats, random: np.random.Generator) -> Ints:
    """Sample systematically from a random order: each inclusion probability is exact (Hartley and Rao 1962)."""
    certain, others = np.flatnonzero(probabilities >= 1), random.permutation(np.flatnonzero(probabilities < 1))
    size = round(float(probabilities[others].sum()))
    ends = np.cumsum(probabilities[others])
    # The minimum guards against rounding errors of the cumulative sum.
    steps = np.minimum(np.searchsorted(ends, random.random() + np.arange(size), side="right"), len(others) - 1)
    return np.sort(np.concatenate([certain, others[steps]])).astype(np.int64)


def _read(queries: Any, column: str) -> tuple[list[str], list[str], Floats]:
    """Return IDs, texts and counts of queries."""
    where = str(queries) if isinstance(queries, (str, Path)) else "<queries>"
    if isinstance(queries, Mapping):
        table: ArrowTable = pa.table({"query": list(map(str, queries)), column: list(queries.values())})
    else:
        table = read_attributes(queries) if isinstance(queries, (str, Path)) else table_of(queries)
    table = typed_attributes(table, "query_id", where)
    check_unique_ids(table, "query_id", where)
    if column not in table.column_names or not pa.types.is_floating(table[column].type):
        fix = "use --column to name the column with the number of searches"
        raise InputError(f"the table has no numeric column {column}", fix=fix, path=where)
    counts = table[column].to_numpy()
    if not (counts > 0).all() or not np.isfinite(counts).all():
        raise InputError("numbers of searches must be positive", fix="remove queries without searches", path=where)
    ids = table["query_id"].to_pylist()
    text_column = next((name for name in ("text", "query") if name in table.column_names), "query_id")
    return ids, table[text_column].to_pylist(), counts
