"""Selection of documents to judge: pools by depth, MaxMean with a budget, or samples with known probabilities."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import csv

from judged.data.compute import pc, unescape_csv
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.errors import InputError
from judged.results import COUNT, NUMBER, TEXT, Answer, Column, Sentences, Table, counted
from judged.results.types import cached_property
from judged.scoring.evaluation.inputs import runs_of
from judged.scoring.judging.align import rank_all
from judged.scoring.judging.ranking import RankingRules

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.results.types import Table as ArrowTable
    from judged.scoring.judging.ranking import TiePolicy


_MAX_RATE_RATIO = 1e9  # of the sampling rates of two strata
SCHEMA = pa.schema(
    {
        "query_id": pa.string(),
        "doc_id": pa.string(),
        "stratum": pa.string(),
        "probability": pa.float64(),  # inclusion probability; null if unknown (MaxMean)
        "best_rank": pa.int64(),  # best rank over the runs
        "runs": pa.int64(),  # number of runs that return it within the depth
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class Pool(Answer):
    """Result of `pool`: the pairs to judge, with their inclusion probabilities.

    Attributes
    ----------
    pairs : Arrow table
        The columns of ``judged.labels.pooling.SCHEMA``, ordered by topic. Do not show ranks or runs to judges.
    method : str
        Description of the selection.

    Examples
    --------
    >>> from judged.labels import pool
    >>> pairs = pool([{"q": ["a", "b", "c"]}, {"q": ["b", "d", "a"]}], depth=2).pairs
    >>> pairs["doc_id"].to_pylist(), pairs["best_rank"].to_pylist(), pairs["runs"].to_pylist()
    (['a', 'b', 'd'], [1, 1, 2], [1, 2, 1])
    """

    kind: ClassVar[str] = "pooling"
    main: ClassVar[str] = "pairs"

    pairs: ArrowTable
    method: str

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a pool that was saved as CSV.

        Raises
        ------
        InputError
            If the file cannot be read, a column is missing, or a value is not a probability.
        """
        try:
            options = csv.ConvertOptions(column_types=SCHEMA, include_columns=SCHEMA.names, strings_can_be_null=False)
            # An empty probability is null (MaxMean), but an ID such as "NA" must stay a text.
            table = unescape_csv(csv.read_csv(path, convert_options=options))
        except (OSError, pa.ArrowException) as error:
            fix = f"use a CSV file of 'judged pool', with the columns {', '.join(SCHEMA.names)}"
            raise InputError(f"the file is not a pool: {error}", fix=fix, path=str(path)) from None
        probabilities = table["probability"].drop_null().to_numpy()
        if not ((probabilities > 0) & (probabilities <= 1)).all():
            fix = "use the unchanged file of 'judged pool'"
            raise InputError("a probability must be above 0 and at most 1", fix=fix, path=str(path))
        return cls(table, f"Read from {path}.")

    @property
    def title(self) -> str:
        """Number of documents and topics to judge."""
        topics = len(self.pairs["query_id"].unique())
        return f"{counted(len(self), 'document')} to judge for {counted(topics, 'topic')}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Size of the pool, and how it was selected."""
        return (f"{self.title}. {self.method}",)

    def __len__(self) -> int:
        return self.pairs.num_rows

    @cached_property
    def sizes(self) -> ArrowTable:
        """Number of documents of each topic and stratum: ``selected``: to be judged; ``size``: in the stratum."""
        # In a stratified sample the reciprocals of the probabilities in a stratum add up to its size.
        weights = self.pairs.append_column("size", pc.divide(1.0, self.pairs["probability"]))
        grouped = weights.group_by(["query_id", "stratum"], use_threads=False)
        counts = grouped.aggregate([("doc_id", "count"), ("size", "sum")])
        return counts.rename_columns(["query_id", "stratum", "selected", "size"])

    def blocks(self) -> tuple[Block, ...]:
        """Return counts by stratum and by topic, and the pairs."""
        ids = [Column(name, self.pairs[name].to_pylist(), TEXT, title) for name, title in _ID_COLUMNS]
        probability = Column("probability", self.pairs["probability"].to_pylist(), NUMBER)
        # Ranks and runs are not part of the text output, because they could influence judges.
        hidden = [Column(name, self.pairs[name].to_pylist(), COUNT, only="data") for name in ("best_rank", "runs")]
        pairs = Table("pairs", (*ids, probability, *hidden), labels=3, folded=True)
        strata = self._counts("stratum", "strata", TEXT)
        return Sentences(self.sentences), strata, self._counts("query_id", "topics", TEXT, folded=True), pairs

    def _counts(self, key: str, name: str, show: Any, *, folded: bool = False) -> Table:
        counts = self.sizes.group_by([key], use_threads=False).aggregate([("selected", "sum"), ("size", "sum")])
        sizes = [None if size is None else round(size) for size in counts["size_sum"].to_pylist()]
        keys = Column(key, counts[key].to_pylist(), show, "topic" if key == "query_id" else None)
        sampled = Column("selected", counts["selected_sum"].to_pylist(), COUNT, "documents to judge")
        return Table(name, (keys, sampled, Column("size", sizes, COUNT, "documents in pool")), folded=folded)


_ID_COLUMNS = (("query_id", "topic"), ("doc_id", "document"), ("stratum", "stratum"))


class Candidates(NamedTuple):
    """The top documents of several runs: D pairs, ordered by topic, best rank, and document ID."""

    query_ids: tuple[str, ...]
    topic: Ints  # (D,)
    doc: list[str]
    best_rank: Ints  # (D,): best rank over the runs; the first rank is 1
    runs: Ints  # (D,): number of runs that return the document
    lists: list[list[Ints]]  # by topic, then run: rows in these columns, in rank order

    def table(self, rows: Ints, stratum: Sequence[str], probability: Floats | None) -> ArrowTable:
        """Return some of the pairs as a table with the columns of `SCHEMA`."""
        names = [self.query_ids[code] for code in self.topic[rows].tolist()]
        probabilities = pa.nulls(len(rows), pa.float64()) if probability is None else pa.array(probability)
        docs = [self.doc[row] for row in rows.tolist()]
        strata = pa.array(stratum, pa.string())
        return pa.table([names, docs, strata, probabilities, self.best_rank[rows], self.runs[rows]], SCHEMA)


def pool(
    runs: Any,
    *,
    depth: int = 100,
    budget: int | None = None,
    sample: int | None = None,
    qrels: Any = None,
    queries: Any = None,
    batch: int = 1,
    retention: float = 1.0,
    rel: float = 1,
    strata: Sequence[int] = (10, 30),
    rates: Sequence[float] | None = None,
    ties: TiePolicy = "docid",
    seed: int = 0,
) -> Pool:
    """Select which documents of several runs to judge: all top documents, the most promising, or a random sample.

    Parameters
    ----------
    runs
        ``{name: run}``, or a list of runs or paths.
    depth
        Number of documents of each run and topic in the pool. Without `budget` and `sample`, all of them are selected.
    budget
        Total number of labels, including existing ones. MaxMean selects the next document of a topic from the run
        with the highest mean relevance so far (Losada, Parapar and Barreiro 2016, 2017). Topics take turns.
    sample
        Total number of documents to draw at random within strata of each topic, for `estimate`.
    qrels
        With a budget: the labels so far, as qrels. Labeled documents are not selected again.
    queries
        Restrict the pool to the topics of these. Default: all topics of the runs.
    batch
        With a budget: number of documents of each topic to select before their labels are known. In a larger batch,
        each selection uses fewer labels.
    retention
        With a budget: weight of a run's earlier labels when another of its documents is judged: 1 for the stationary
        variant; 0 for the last document only, the non-stationary one (docs/pooling-methods.md compares them).
    rel
        Lowest relevant grade.
    strata
        For a sample: best ranks at which strata end, in increasing order. The last stratum ends at `depth`.
    rates
        For a sample: relative sampling rate of each stratum. Default: each stratum twice the rate of the next.
        At least two documents of each stratum are drawn, or all.
    ties
        Order of equal scores, as in `judge`.
    seed
        Seed of the sample, or of the choice between runs with equal means.

    Raises
    ------
    InputError
        If a number is out of range, a run has no ranking, the sample is too small, or the budget is used up.

    Examples
    --------
    >>> runs = [{"q": ["a", "b", "c", "d"]}, {"q": ["e", "f", "g", "h"]}]
    >>> pool(runs, budget=5, qrels={"q": {"a": 0, "e": 1}}).pairs["doc_id"].to_pylist()
    ['f']
    >>> drawn = pool(runs, sample=6, strata=[2], rates=[1, 1]).pairs
    >>> drawn["stratum"].to_pylist(), drawn["probability"].to_pylist()[::3]
    (['1-2', '1-2', '1-2', '3-100', '3-100', '3-100'], [0.75, 0.75])
    """
    for name, number in (("depth", depth), ("budget", budget), ("sample", sample), ("batch", batch)):
        if number is not None and number < 1:
            raise InputError(f"`{name}` must be a positive integer, got {number}", fix=f"use {name}=10, for example")
    if seed < 0:
        raise InputError(f"`seed` must be 0 or a positive integer, got {seed}", fix="use seed=0")
    if budget is not None and sample is not None:
        raise InputError("`budget` and `sample` cannot be combined", fix="use either `budget` or `sample`")
    if not 0 <= retention <= 1:
        raise InputError(f"`retention` must be from 0 to 1, got {retention:g}", fix="use 1 or 0")
    documents = candidates(runs, depth, queries=queries, ties=ties)
    if sample is not None:
        return _draw_sample(documents, sample, depth, tuple(strata), rates, seed)
    if budget is None:
        all_rows = np.arange(len(documents.doc))
        table = documents.table(all_rows, [f"1-{depth}"] * len(all_rows), np.ones(len(all_rows)))
        return Pool(table, f"The pool contains the top {depth} documents of each run.")
    # The budget includes existing labels, so that repeated calls with the same budget end.
    labels = {} if qrels is None else _known_labels(qrels, documents, rel)
    remaining = budget - len(labels)
    if remaining < 1:
        problem = f"`budget` must be above {len(labels)}, the number of documents with a label, got {budget}"
        raise InputError(problem, fix="use a larger budget")
    turns = [iter(unlabeled_rows(bandit, labels, batch)) for bandit in topic_bandits(documents.lists, retention, seed)]
    rows = np.array([row for topic_rows in _take_turns(turns, remaining) for row in topic_rows], dtype=np.int64)
    method = (
        f"The bandit method MaxMean (retention {retention:g}) selected the documents among the top {depth} documents"
        " of each run"
    )
    pairs = documents.table(rows, [f"1-{depth}"] * len(rows), None)
    return Pool(pairs, f"{method}; {counted(len(labels), 'document')} already had a label.")


def candidates(runs: Any, depth: int, *, queries: Any = None, ties: TiePolicy = "docid") -> Candidates:
    """Merge the top `depth` documents of several runs."""
    run_list, rules = runs_of(runs), RankingRules(ties, depth)
    for run in run_list:
        if not run.has_scores and not run.has_ranks:
            raise InputError(f"the run {run.name} has neither scores nor ranks", fix="leave the run out of the pool")
        rules.check_run(run)
    tables = [run.table for run in run_list] if queries is None else [Topics.of(queries).table]
    id_columns = [table["query_id"] for table in tables]
    query_ids = tuple(sorted({str(query_id) for column in id_columns for query_id in column.unique().to_pylist()}))
    rankings = [rank_all(run, query_ids, rules) for run in run_list]
    doc_ids = pa.chunked_array([ranking.doc.cast(pa.string()) for ranking in rankings], pa.string()).combine_chunks()
    if not len(doc_ids):
        raise InputError("the runs have no documents for these topics", fix="check the topic IDs")
    encoded = doc_ids.dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), dtype=object)
    doc_code, topic = encoded.indices.to_numpy(), np.concatenate([ranking.topic for ranking in rankings])
    rank = np.concatenate([ranking.rank for ranking in rankings])
    run_code = np.repeat(np.arange(len(rankings)), [len(ranking.topic) for ranking in rankings])
    # One number per pair of topic and document, to find the pairs that several runs share.
    _, first_row, pair_code = np.unique(topic * len(names) + doc_code, return_index=True, return_inverse=True)
    best_rank = np.full(len(first_row), depth)
    np.minimum.at(best_rank, pair_code, rank)
    # Positions of documents in the order of IDs, to sort by ID without comparing texts.
    doc_order = np.empty(len(names), dtype=np.int64)
    doc_order[np.argsort(names)] = np.arange(len(names))
    order = np.lexsort((doc_order[doc_code[first_row]], best_rank, topic[first_row]))
    new_row = np.empty_like(order)
    new_row[order] = np.arange(len(order))
    rows = new_row[pair_code]
    list_order = np.lexsort((rank, run_code, topic))
    ends = np.searchsorted((topic * len(rankings) + run_code)[list_order], np.arange(1, len(query_ids) * len(rankings)))
    lists = np.split(rows[list_order], ends)
    by_topic = [lists[start : start + len(rankings)] for start in range(0, len(lists), len(rankings))]
    docs = names[doc_code[first_row][order]].tolist()
    return Candidates(query_ids, topic[first_row][order], docs, best_rank[order], np.bincount(rows), by_topic)


def _take_turns(selectors: Sequence[Any], limit: int) -> list[list[int]]:
    """Draw up to `limit` rows from the selectors, one at a time from each in turn; return them by selector."""
    rows: list[list[int]] = [[] for _ in selectors]
    active, count = list(range(len(selectors))), 0
    while active and count < limit:
        # A copy, because exhausted selectors are removed in the loop.
        for i in list(active):
            if count < limit and (row := next(selectors[i], None)) is not None:
                rows[i].append(row)
                count += 1
            elif count < limit:
                active.remove(i)
    return rows


def _known_labels(qrels: Any, documents: Candidates, rel: float) -> dict[int, bool]:
    """Return whether the document of each labeled row is relevant."""
    table = Qrels.of(qrels).table
    grades = dict(zip(zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True),
                     table["relevance"].to_pylist(), strict=True))  # fmt: skip
    query_ids = (documents.query_ids[code] for code in documents.topic.tolist())
    pairs = zip(query_ids, documents.doc, strict=True)
    return {row: grades[pair] >= rel for row, pair in enumerate(pairs) if pair in grades}


def _draw_sample(
    documents: Candidates, sample: int, depth: int, ends: tuple[int, ...], rates: Sequence[float] | None, seed: int
) -> Pool:
    """Draw a stratified sample: strata are bands of best ranks in each topic."""
    if any(low >= high for low, high in zip((0, *ends), ends, strict=False)):
        got = ", ".join(map(str, ends))
        raise InputError(f"`strata` must be increasing, got {got}", fix="use ranks such as 10, 30")
    # Strata below the depth are merged into the last one.
    ends = (*(end for end in ends if end < depth), depth)
    rates = tuple(2.0 ** np.arange(len(ends))[::-1]) if rates is None else tuple(rates)
    if len(rates) != len(ends) or not 0 < min(rates) <= max(rates) < _MAX_RATE_RATIO * min(rates):
        fix = f"use one rate per stratum; the largest rate must be below {_MAX_RATE_RATIO:g} times the smallest rate"
        got = ", ".join(map(str, rates))
        raise InputError(f"`rates` must have one positive number per stratum ({len(ends)}), got {got}", fix=fix)
    bands, stratum, sizes = assign_strata(documents, ends)
    sample_sizes = allocate(sample, sizes, np.array(rates)[bands])
    rows = draw(stratum, sample_sizes, np.random.default_rng(seed))
    names = [f"{low + 1}-{high}" for low, high in zip((0, *ends), ends, strict=False)]
    labels = [names[band] for band in bands[stratum[rows]].tolist()]
    table = documents.table(rows, labels, (sample_sizes / sizes)[stratum[rows]])
    method = f"The documents are a random sample, stratified by best rank, of {counted(len(stratum), 'document')}"
    return Pool(table, f"{method} from the top {depth} of each run (seed {seed}).")


def assign_strata(documents: Candidates, ends: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Return the rank band and size of each stratum, both (H,), and the stratum of each pair, (D,), in between."""
    code = documents.topic * len(ends) + np.searchsorted(ends, documents.best_rank)
    bands, stratum, sizes = np.unique(code, return_inverse=True, return_counts=True)
    return bands % len(ends), stratum.ravel(), sizes


def draw(stratum: Ints, sample_sizes: Ints, random: np.random.Generator) -> Ints:
    """Draw a simple random sample from each stratum and return its rows in increasing order."""
    # Random order within each stratum; the first units of each are the sample.
    order = np.lexsort((random.random(len(stratum)), stratum))
    sizes = np.bincount(stratum)
    position = np.arange(len(stratum)) - (np.cumsum(sizes) - sizes)[stratum[order]]
    return np.sort(order[position < sample_sizes[stratum[order]]])


def allocate(count: int, sizes: Ints, rates: Floats) -> Ints:
    """Allocate a sample to strata by size and rate: at least two units of each, or all, with the exact total.

    >>> allocate(10, np.array([1, 4, 20]), np.ones(3)).tolist()
    [1, 2, 7]
    """
    minimum = np.minimum(sizes, 2)
    if count < minimum.sum():
        problem = f"the sample must have at least {minimum.sum()} documents, two of each topic and stratum, got {count}"
        raise InputError(problem, fix="use a larger sample or fewer strata")
    count = min(count, int(sizes.sum()))
    low, high = 0.0, float((sizes / rates).max() + 1) * count
    for _ in range(80):  # bisection for the factor that turns rates into sampling fractions
        middle = (low + high) / 2
        total = np.clip(middle * rates * sizes, minimum, sizes).sum()
        low, high = (middle, high) if total < count else (low, middle)
    expected = np.clip(high * rates * sizes, minimum, sizes)
    # Largest remainders: the total is exact, and 1e-9 absorbs rounding errors of the bisection.
    allocated = np.floor(expected + 1e-9).astype(np.int64)
    open_strata = np.argsort(allocated - expected, kind="stable")
    open_strata = open_strata[allocated[open_strata] < sizes[open_strata]]
    allocated[open_strata[: count - int(allocated.sum())]] += 1
    return allocated


Bandit: TypeAlias = Generator[int, bool | None, None]
"""Yields the row to judge next; receives whether it is relevant, or None if unknown."""


def topic_bandits(lists: Sequence[Sequence[Ints]], retention: float, seed: int) -> list[Bandit]:
    """Return the MaxMean bandit of each topic."""
    return [_maxmean(topic_lists, retention, np.random.default_rng([seed, i])) for i, topic_lists in enumerate(lists)]


def _maxmean(lists: Sequence[Ints], retention: float, random: np.random.Generator) -> Bandit:
    """Yield first the next unjudged document of the run with the highest posterior mean (MaxMean; prior Beta(1, 1))."""
    rows = np.unique(np.concatenate(lists))
    returns = np.zeros((len(lists), len(rows)), dtype=np.bool_)
    rankings = [np.searchsorted(rows, run_rows) for run_rows in lists]  # columns of `returns`, in rank order
    for run, ranking in enumerate(rankings):
        returns[run, ranking] = True
    relevant, judged_counts = np.zeros(len(lists)), np.zeros(len(lists))
    next_rank, lengths = [0] * len(lists), np.array([len(ranking) for ranking in rankings])
    is_judged = np.zeros(len(rows), dtype=np.bool_)
    for _ in range(len(rows)):
        for run, ranking in enumerate(rankings):
            while next_rank[run] < len(ranking) and is_judged[ranking[next_rank[run]]]:
                next_rank[run] += 1
        means = np.where(next_rank == lengths, -1.0, (1 + relevant) / (2 + judged_counts))
        # Ties are broken at random: with equal means, a fixed order would favor the runs that come first.
        run = int(random.choice(np.flatnonzero(means == means.max())))
        column = rankings[run][next_rank[run]]
        label = yield int(rows[column])
        is_judged[column] = True
        if label is not None:
            # A label counts for all runs that return the document; older labels fade if `retention` is below 1.
            runs_with_it = returns[:, column]
            relevant[runs_with_it] = retention * relevant[runs_with_it] + label
            judged_counts[runs_with_it] = retention * judged_counts[runs_with_it] + 1


def next_row(bandit: Bandit, label: bool | None) -> int | None:
    """Send the label of the last row to the bandit and return the next row; None if all are judged."""
    try:
        return bandit.send(label)
    except StopIteration:
        return None


def unlabeled_rows(bandit: Bandit, labels: Mapping[int, bool], limit: int) -> Generator[int, None, None]:
    """Yield the rows that a topic's bandit selects, at most `limit` of them without a label."""
    row, unlabeled = next(bandit, None), 0
    while row is not None and unlabeled < limit:
        if (label := labels.get(row)) is None:
            unlabeled += 1
            yield row
        # Without a label the bandit continues with unchanged means, as in a batch.
        row = next_row(bandit, label)
