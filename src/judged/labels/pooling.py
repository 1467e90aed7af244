"""Which documents to judge: pools by depth, by a budget that follows what is found, or by a sample with known odds."""

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
from judged.scoring.judging.ranking import Ranking

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.results.types import Table as ArrowTable
    from judged.scoring.judging.ranking import TiePolicy


_MOST_OFTEN = 1e9  # times that a stratum may be drawn as often as another
SCHEMA = pa.schema(
    {
        "query_id": pa.string(),
        "doc_id": pa.string(),
        "stratum": pa.string(),
        "probability": pa.float64(),  # that it came into the sample; null where nobody knows (MaxMean)
        "best_rank": pa.int64(),  # over the runs
        "runs": pa.int64(),  # how many have it within the depth
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class Pool(Answer):
    """What `pool` returns: the pairs to be judged, with how likely each came in.

    Attributes
    ----------
    pairs : Arrow table
        The columns of ``judged.labels.pooling.SCHEMA``, topic by topic. Judges should see neither ranks nor runs.
    method : str
        How they were chosen, in words.

    Examples
    --------
    >>> from judged.labels import pool
    >>> chosen = pool([{"q": ["a", "b", "c"]}, {"q": ["b", "d", "a"]}], depth=2)
    >>> chosen.pairs["doc_id"].to_pylist(), chosen.pairs["best_rank"].to_pylist(), chosen.pairs["runs"].to_pylist()
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
            If it cannot be read, lacks a column, or has a probability that is none.
        """
        try:
            kept = csv.ConvertOptions(column_types=SCHEMA, include_columns=SCHEMA.names, strings_can_be_null=False)
            table = unescape_csv(csv.read_csv(path, convert_options=kept))
        except (OSError, pa.ArrowException) as error:
            fix = f"give a CSV file of judged pool, with the columns {', '.join(SCHEMA.names)}"
            raise InputError(f"this is no pool: {error}", fix=fix, path=str(path)) from None
        odds = table["probability"].drop_null().to_numpy()
        if not ((odds > 0) & (odds <= 1)).all():
            raise InputError("a probability is not above 0 and up to 1", fix="give that of the sample", path=str(path))
        return cls(table, f"Read from {path}.")

    @property
    def title(self) -> str:
        """How much is to be judged."""
        topics = len(self.pairs["query_id"].unique())
        return f"{counted(len(self), 'document')} to judge for {counted(topics, 'topic')}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much it is, and how it was chosen."""
        return (f"{self.title}. {self.method}",)

    def __len__(self) -> int:
        return self.pairs.num_rows

    @cached_property
    def sizes(self) -> ArrowTable:
        """How many documents of each topic and stratum are to be judged, ``drawn``, of how many: ``of``."""
        # Of a sample within strata the reciprocals of the probabilities add up to the size of the stratum.
        weights = self.pairs.append_column("of", pc.divide(1.0, self.pairs["probability"]))
        grouped = weights.group_by(["query_id", "stratum"], use_threads=False)
        made = grouped.aggregate([("doc_id", "count"), ("of", "sum")])
        return made.rename_columns(["query_id", "stratum", "drawn", "of"])

    def blocks(self) -> tuple[Block, ...]:
        """Give counts by stratum and by topic, and the pairs."""
        ids = [Column(name, self.pairs[name].to_pylist(), TEXT, title) for name, title in _IDS]
        odds = Column("probability", self.pairs["probability"].to_pylist(), NUMBER)
        unseen = [Column(name, self.pairs[name].to_pylist(), COUNT, only="data") for name in ("best_rank", "runs")]
        pairs = Table("pairs", (*ids, odds, *unseen), labels=3, folded=True)
        strata = self._counts("stratum", "strata", TEXT)
        return Sentences(self.sentences), strata, self._counts("query_id", "topics", TEXT, folded=True), pairs

    def _counts(self, by: str, name: str, show: Any, *, folded: bool = False) -> Table:
        made = self.sizes.group_by([by], use_threads=False).aggregate([("drawn", "sum"), ("of", "sum")])
        of = [None if size is None else round(size) for size in made["of_sum"].to_pylist()]
        head = Column(by, made[by].to_pylist(), show, "topic" if by == "query_id" else None)
        drawn = Column("drawn", made["drawn_sum"].to_pylist(), COUNT, "to judge")
        return Table(name, (head, drawn, Column("of", of, COUNT, "of the pool's")), folded=folded)


_IDS = (("query_id", "topic"), ("doc_id", "document"), ("stratum", "stratum"))


class Candidates(NamedTuple):
    """The first documents of several runs: D pairs, topic by topic, in each by best rank and then by id."""

    query_ids: tuple[str, ...]
    topic: Ints  # (D,)
    doc: list[str]
    best: Ints  # (D,): the best rank over the runs
    runs: Ints  # (D,): how many have it
    lists: list[list[Ints]]  # by topic and run: positions in these columns, in the order of the run

    def table(self, rows: Ints, stratum: Sequence[str], probability: Floats | None) -> ArrowTable:
        """Give some of the pairs as a table of `SCHEMA`."""
        names = [self.query_ids[code] for code in self.topic[rows].tolist()]
        odds = pa.nulls(len(rows), pa.float64()) if probability is None else pa.array(probability)
        docs = [self.doc[row] for row in rows.tolist()]
        return pa.table([names, docs, pa.array(stratum, pa.string()), odds, self.best[rows], self.runs[rows]], SCHEMA)


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
    """Choose which documents of several runs to judge: all of the first, the most promising, or a sample.

    Parameters
    ----------
    runs
        ``{name: run}``, or a list of runs or paths.
    depth
        How many documents of each run and topic are in the pool. Without `budget` and `sample` all of them are chosen.
    budget
        So many labels in all, with those that there are: each topic's next document is that of the run which found
        most (MaxMean: Losada, Parapar and Barreiro 2016, 2017). Topics take turns.
    sample
        So many documents in all, drawn at random within strata of each topic; `estimate` uses them.
    qrels
        With a budget: the labels so far, as qrels. What has a label is not asked for again.
    queries
        Only the topics of these; all topics of the runs if left out.
    batch
        With a budget: how many documents of each topic are asked for before their labels are known. The more, the less
        each choice can know.
    retention
        With a budget: how much of what is known of a run remains when another of its documents is judged: 1 for all,
        the stationary variant; 0 for the last document alone, the non-stationary one (docs/pooling.md compares them).
    rel
        The lowest grade that is relevant.
    strata
        Of a sample: the best ranks at which strata end, rising; one more ends at the depth.
    rates
        Of a sample: how many times as often a document of each stratum is drawn; if left out, twice as often as
        those of the next. Of each stratum at least two are drawn, or all.
    ties
        How equal scores are ordered, as in `judge`.
    seed
        Of the sample, or of the choice between runs that found the same.

    Raises
    ------
    InputError
        If a number makes no sense, a run has no ranking, the sample is too small, or the budget is spent.

    Examples
    --------
    >>> runs = [{"q": ["a", "b", "c", "d"]}, {"q": ["e", "f", "g", "h"]}]
    >>> pool(runs, budget=5, qrels={"q": {"a": 0, "e": 1}}).pairs["doc_id"].to_pylist()  # the run that found something
    ['f']
    >>> drawn = pool(runs, sample=6, strata=[2], rates=[1, 1]).pairs
    >>> drawn["stratum"].to_pylist(), drawn["probability"].to_pylist()[::3]
    (['1-2', '1-2', '1-2', '3-100', '3-100', '3-100'], [0.75, 0.75])
    """
    for name, number in (("depth", depth), ("budget", budget), ("sample", sample), ("batch", batch)):
        if number is not None and number < 1:
            raise InputError(f"the {name} {number} makes no sense", fix="give a whole number from 1")
    if seed < 0:
        raise InputError(f"the seed {seed} is below 0", fix="give a whole number from 0")
    if budget is not None and sample is not None:
        raise InputError("a budget and a sample are two ways", fix="give one of them")
    if not 0 <= retention <= 1:
        raise InputError(f"the retention {retention:g} makes no sense", fix="give 0, 1, or a number between")
    found = candidates(runs, depth, queries=queries, ties=ties)
    if sample is not None:
        return _sampled(found, sample, depth, tuple(strata), rates, seed)
    if budget is None:
        every = np.arange(len(found.doc))
        table = found.table(every, [f"1-{depth}"] * len(every), np.ones(len(every)))
        return Pool(table, f"All documents among the first {depth} of a run.")
    labels = {} if qrels is None else _answers(qrels, found, rel)
    left = budget - len(labels)
    if left < 1:
        raise InputError(f"the budget of {budget} is spent", fix="give a larger one")
    turns = [iter(asked(arms, labels, batch)) for arms in arms_of(found.lists, retention, seed)]
    rows = np.array([row for each in _in_turn(turns, left) for row in each], dtype=np.int64)
    how = f"The next by MaxMean (retention {retention:g}) among the first {depth} of a run; {len(labels)} have a label."
    return Pool(found.table(rows, [f"1-{depth}"] * len(rows), None), how)


def candidates(runs: Any, depth: int, *, queries: Any = None, ties: TiePolicy = "docid") -> Candidates:
    """Put the first documents of several runs together."""
    given, ranking = runs_of(runs), Ranking(ties, depth)
    for run in given:
        if not run.has_scores and not run.has_ranks:
            raise InputError(f"the run {run.name} has no ranking, so no first documents", fix="leave it out")
        ranking.check_run(run)
    named = [Topics.of(queries).table["query_id"]] if queries is not None else [run.table["query_id"] for run in given]
    query_ids = tuple(sorted({str(name) for column in named for name in column.unique().to_pylist()}))
    parts = [rank_all(run, query_ids, ranking) for run in given]
    doc = pa.chunked_array([part.doc.cast(pa.string()) for part in parts], pa.string()).combine_chunks()
    if not len(doc):
        raise InputError("the runs have no document for these topics", fix="check the ids of topics")
    encoded = doc.dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), dtype=object)
    code, topic = encoded.indices.to_numpy(), np.concatenate([part.topic for part in parts])
    rank, of = (
        np.concatenate([part.rank for part in parts]),
        np.repeat(np.arange(len(parts)), [len(p[0]) for p in parts]),
    )
    _, first, pair = np.unique(topic * len(names) + code, return_index=True, return_inverse=True)
    best = np.full(len(first), depth)
    np.minimum.at(best, pair, rank)
    by_name = np.empty(len(names), dtype=np.int64)
    by_name[np.argsort(names)] = np.arange(len(names))
    order = np.lexsort((by_name[code[first]], best, topic[first]))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    row = place[pair]
    cells = np.lexsort((rank, of, topic))
    ends = np.searchsorted((topic * len(parts) + of)[cells], np.arange(1, len(query_ids) * len(parts)))
    lists = np.split(row[cells], ends)
    by_topic = [lists[at : at + len(parts)] for at in range(0, len(lists), len(parts))]
    docs = names[code[first][order]].tolist()
    return Candidates(query_ids, topic[first][order], docs, best[order], np.bincount(row), by_topic)


def _in_turn(turns: Sequence[Any], most: int) -> list[list[int]]:
    """Take one of each in turn until so many are taken; give those of each."""
    taken: list[list[int]] = [[] for _ in turns]
    going, count = list(range(len(turns))), 0
    while going and count < most:
        for at in list(going):
            if count < most and (row := next(turns[at], None)) is not None:
                taken[at].append(row)
                count += 1
            elif count < most:
                going.remove(at)
    return taken


def _answers(qrels: Any, found: Candidates, rel: float) -> dict[int, bool]:
    """Look up which rows have a label, and whether it says relevant."""
    table = Qrels.of(qrels).table
    known = dict(zip(zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True),
                     table["relevance"].to_pylist(), strict=True))  # fmt: skip
    asked = ((found.query_ids[code], doc) for code, doc in zip(found.topic.tolist(), found.doc, strict=True))
    return {row: known[pair] >= rel for row, pair in enumerate(asked) if pair in known}


def _sampled(
    found: Candidates, sample: int, depth: int, ends: tuple[int, ...], rates: Sequence[float] | None, seed: int
) -> Pool:
    """Draw within strata of best ranks, each topic's by itself."""
    if any(low >= high for low, high in zip((0, *ends), ends, strict=False)):
        raise InputError("strata do not rise", fix="give the best ranks at which they end, such as 10, 30")
    ends = (*(end for end in ends if end < depth), depth)
    rates = tuple(2.0 ** np.arange(len(ends))[::-1]) if rates is None else tuple(rates)
    if len(rates) != len(ends) or not 0 < min(rates) <= max(rates) < _MOST_OFTEN * min(rates):
        fix = f"give one above 0 for each stratum, none {_MOST_OFTEN:g} times another"
        raise InputError(f"{len(rates)} rates for {len(ends)} strata: {', '.join(map(str, rates))}", fix=fix)
    kinds, stratum, sizes = strata_of(found, ends)
    drawn = allocated(sample, sizes, np.array(rates)[kinds])
    rows = draw(stratum, drawn, np.random.default_rng(seed))
    names = [f"{low + 1}-{high}" for low, high in zip((0, *ends), ends, strict=False)]
    labels = [names[kind] for kind in kinds[stratum[rows]].tolist()]
    table = found.table(rows, labels, (drawn / sizes)[stratum[rows]])
    how = f"Drawn at random within strata of best ranks, of {counted(len(stratum), 'document')} among the first {depth}"
    return Pool(table, f"{how} of a run; seed {seed}.")


def strata_of(found: Candidates, ends: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Give the band of best ranks and the size of each stratum, (H,), and the stratum of each pair, (D,), between."""
    code = found.topic * len(ends) + np.searchsorted(ends, found.best)
    kinds, stratum, sizes = np.unique(code, return_inverse=True, return_counts=True)
    return kinds % len(ends), stratum.ravel(), sizes


def draw(stratum: Ints, drawn: Ints, random: np.random.Generator) -> Ints:
    """Draw so many of each stratum, each set as likely as any other; give their rows, rising."""
    order = np.lexsort((random.random(len(stratum)), stratum))
    sizes = np.bincount(stratum)
    within = np.arange(len(stratum)) - (np.cumsum(sizes) - sizes)[stratum[order]]
    return np.sort(order[within < drawn[stratum[order]]])


def allocated(count: int, sizes: Ints, rates: Floats) -> Ints:
    """Divide a sample among strata by size and rate: at least two of each or all it has, and the sum as asked.

    >>> allocated(10, np.array([1, 4, 20]), np.ones(3)).tolist()
    [1, 2, 7]
    """
    least = np.minimum(sizes, 2)
    if count < least.sum():
        raise InputError(
            f"a sample of {count} is too small: two of each topic and stratum are {least.sum()}",
            fix="give a larger one, or fewer strata",
        )
    count = min(count, int(sizes.sum()))
    low, high = 0.0, float((sizes / rates).max() + 1) * count
    for _ in range(80):  # the factor with which rates become shares, by halving
        middle = (low + high) / 2
        whole = np.clip(middle * rates * sizes, least, sizes).sum()
        low, high = (middle, high) if whole < count else (low, middle)
    exact = np.clip(high * rates * sizes, least, sizes)
    drawn = np.floor(exact + 1e-9).astype(np.int64)
    rest = np.argsort(drawn - exact, kind="stable")
    rest = rest[drawn[rest] < sizes[rest]]
    drawn[rest[: count - int(drawn.sum())]] += 1
    return drawn


Arms: TypeAlias = Generator[int, bool | None, None]
"""Gives the row to be judged next, and is sent whether it was relevant."""


def arms_of(lists: Sequence[Sequence[Ints]], retention: float, seed: int) -> list[Arms]:
    """Give one bandit a topic: it gives the row to be judged next, and is sent whether it was relevant."""
    return [_maxmean(own, retention, np.random.default_rng([seed, at])) for at, own in enumerate(lists)]


def _maxmean(lists: Sequence[Ints], retention: float, random: np.random.Generator) -> Arms:
    """Judge next the first document left of the run with the highest mean: each has a Beta(1, 1) before anything."""
    rows = np.unique(np.concatenate(lists))
    has = np.zeros((len(lists), len(rows)), dtype=np.bool_)
    own = [np.searchsorted(rows, one) for one in lists]
    for run, one in enumerate(own):
        has[run, one] = True
    relevant, seen, at = np.zeros(len(lists)), np.zeros(len(lists)), [0] * len(lists)
    done = np.zeros(len(rows), dtype=np.bool_)
    for _ in range(len(rows)):
        for run, one in enumerate(own):
            while at[run] < len(one) and done[one[at[run]]]:
                at[run] += 1
        ended = np.array([place == len(one) for place, one in zip(at, own, strict=True)])
        means = np.where(ended, -1.0, (1 + relevant) / (2 + seen))
        run = int(random.choice(np.flatnonzero(means == means.max())))
        chosen = own[run][at[run]]
        answer = yield int(rows[chosen])
        done[chosen] = True
        if answer is not None:
            those = has[:, chosen]
            relevant[those] = retention * relevant[those] + answer
            seen[those] = retention * seen[those] + 1


def after(arms: Arms, answer: bool | None) -> int | None:
    """Tell what came of the row that was judged, and give the next one; None if there is none."""
    try:
        return arms.send(answer)
    except StopIteration:
        return None


def asked(arms: Arms, labels: Mapping[int, bool], most: int) -> Generator[int, None, None]:
    """Give the rows that a topic asks for: at most so many of which the answer is not known."""
    row, waiting = next(arms, None), 0
    while row is not None and waiting < most:
        if (answer := labels.get(row)) is None:
            waiting += 1
            yield row
        row = after(arms, answer)
