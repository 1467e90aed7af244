"""Which queries of a log become topics, with how likely each was chosen and what it then counts."""

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
from judged.labels.pooling import allocated
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
    """What `choose_topics` returns; as CSV a file of topics, whose weights are attributes.

    Attributes
    ----------
    topics : Arrow table
        ``query_id, text, count, stratum, probability, weight, query_weight``, most frequent first. With ``weight`` a
        weighted mean is that over searches, with ``query_weight`` that over different queries.
    scheme : str
    queries, searches : int
        How many there are to choose from.
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
        """How many were chosen of how many."""
        return f"{counted(self.topics.num_rows, 'topic')} of {counted(self.queries, 'query', 'queries')}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """How they were chosen, and what the weights are for."""
        share = float(self.topics["count"].to_numpy().sum()) / self.searches
        return (
            f"{self.title}, which are {share:.1%} of the searches. {_HOW[self.scheme]}",
            "Means weighted by `weight` estimate the mean over searches, by `query_weight` that over queries.",
        )

    def facts(self) -> dict[str, Any]:
        """Give how they were chosen."""
        return {name: getattr(self, name) for name in ("scheme", "queries", "searches", "seed")}

    def blocks(self) -> tuple[Block, ...]:
        """Give the topics with their weights."""
        shows = {"text": truncated(60), "query_id": TEXT, "stratum": TEXT, "count": COUNT}
        made = [
            Column(name, self.topics[name].to_pylist(), shows.get(name, significant(4)), "topic" if at == 0 else None)
            for at, name in enumerate(self.topics.column_names)
        ]
        return Table("topics", tuple(made), labels=2), Sentences(self.sentences)


_HOW: dict[Scheme, str] = {
    "traffic": "They were drawn with probabilities proportional to their searches, without replacement: systematically"
    " from a random order (Hartley and Rao 1962); those that would have more than 1 are in for sure. The probabilities"
    " are exact.",
    "strata": "Of head, torso and tail, which have a part of all searches each, about as many were drawn, at random"
    " without replacement.",
    "random": "Each set of so many queries was as likely as any other.",
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
    """Choose queries of a log as topics, each with a known probability.

    Parameters
    ----------
    queries
        ``{query: count}``, a table or a path of one: a column of queries (and of ids, if there are any) and one of how
        often each was asked.
    n
        How many.
    scheme
        ``traffic``: proportional to how often they were asked; ``strata``: as many of head, torso and tail; or
        ``random``.
    column
        The column that says how often.
    cuts
        The shares of all searches at which head and torso end.
    seed
        Of the choice.

    Raises
    ------
    InputError
        If there are fewer queries, or a count is not above 0.

    Examples
    --------
    >>> asked = {"cats": 70, "dogs": 20, "birds": 5, "cat food": 5}
    >>> chosen = choose_topics(asked, 2).topics
    >>> chosen["text"].to_pylist(), chosen["probability"].to_pylist()[0], chosen["weight"].to_pylist()
    (['cats', 'cat food'], 1.0, [70.0, 30.0])
    """
    one_of("scheme", scheme, SCHEMES)
    ids, texts, counts = _read(queries, column)
    if not 1 <= n <= len(counts):
        raise InputError(f"{n} of {counted(len(counts), 'query', 'queries')} cannot be chosen", fix="ask for fewer")
    if seed < 0:
        raise InputError(f"the seed {seed} is below 0", fix="give a whole number from 0")
    if len(cuts) != len(_BANDS) - 1 or not 0 < cuts[0] < cuts[-1] < 1:
        raise InputError(f"the cuts {cuts} make no sense", fix="give two shares that rise, such as 0.33, 0.67")
    order = np.argsort(-counts, kind="stable")
    ids, texts, counts = [ids[at] for at in order], [texts[at] for at in order], counts[order]
    before = (np.cumsum(counts) - counts) / counts.sum()
    band = np.searchsorted(cuts, before, side="right")
    random = np.random.default_rng(seed)
    if scheme == "traffic":
        odds = proportional(counts, n)
        rows = _systematic(odds, random)
    else:
        strata = band if scheme == "strata" else np.zeros(len(band), dtype=np.int64)
        kinds, stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)
        drawn = allocated(n, sizes, 1.0 / sizes) if len(kinds) > 1 else np.array([n])
        rows = np.sort(
            np.concatenate(
                [random.choice(np.flatnonzero(stratum == at), k, replace=False) for at, k in enumerate(drawn)]
            )
        )
        odds = (drawn / sizes)[stratum]
    if ids == texts:  # a text is no good id: formats of runs divide at blanks
        ids = [f"q{at}" for at in range(1, len(texts) + 1)]
    table = pa.table(
        {
            "query_id": [ids[row] for row in rows],
            "text": [texts[row] for row in rows],
            "count": counts[rows],
            "stratum": [_BANDS[band[row]] for row in rows],
            "probability": odds[rows],
            "weight": counts[rows] / odds[rows],
            "query_weight": 1 / odds[rows],
        }
    )
    return ChosenTopics(table, scheme, len(counts), float(counts.sum()), seed)


def proportional(counts: Floats, n: int) -> Floats:
    """Give probabilities proportional to counts that add up to n, none above 1.

    >>> proportional(np.array([70.0, 20.0, 5.0, 5.0]), 2).round(3).tolist()
    [1.0, 0.667, 0.167, 0.167]
    """
    odds, sure = np.ones(len(counts)), np.zeros(len(counts), dtype=np.bool_)
    while not sure.all():
        rest = ~sure
        odds[rest] = (n - sure.sum()) * counts[rest] / counts[rest].sum()
        above = rest & (odds >= 1)
        if not above.any():
            break
        odds[above], sure = 1.0, sure | above
    return odds


def _systematic(odds: Floats, random: np.random.Generator) -> Ints:
    """Draw at equal steps from a random order, so that each comes in with its probability exactly."""
    sure, rest = np.flatnonzero(odds >= 1), random.permutation(np.flatnonzero(odds < 1))
    many = round(float(odds[rest].sum()))
    ends = np.cumsum(odds[rest])
    steps = np.minimum(np.searchsorted(ends, random.random() + np.arange(many), side="right"), len(rest) - 1)
    return np.sort(np.concatenate([sure, rest[steps]])).astype(np.int64)


def _read(queries: Any, column: str) -> tuple[list[str], list[str], Floats]:
    """Give ids, texts and counts of queries."""
    where = str(queries) if isinstance(queries, (str, Path)) else "<queries>"
    if isinstance(queries, Mapping):
        table: ArrowTable = pa.table({"query": list(map(str, queries)), column: list(queries.values())})
    else:
        table = read_attributes(queries) if isinstance(queries, (str, Path)) else table_of(queries)
    table = typed_attributes(table, "query_id", where)
    check_unique_ids(table, "query_id", where)
    if column not in table.column_names or not pa.types.is_floating(table[column].type):
        fix = "name the column that says how often each query was asked"
        raise InputError(f"there is no column {column} of numbers", fix=fix, path=where)
    counts = table[column].to_numpy()
    if not (counts > 0).all() or not np.isfinite(counts).all():
        raise InputError("a query was not asked once", fix="leave out queries without a count above 0", path=where)
    ids = table["query_id"].to_pylist()
    text = next((name for name in ("text", "query") if name in table.column_names), "query_id")
    return ids, table[text].to_pylist(), counts
