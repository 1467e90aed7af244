"""Attention-weighted rank fairness: whom a ranking gives the attention of its readers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.errors import MeasureError
from judged.scoring.judging.ranking import segment_sum
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.gain import MOST_SHOWN, TopRanks, discounts
from judged.scoring.measures.parameters import CUTOFF, REL, UNDEFINED, Parameter, real, shares, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from judged.data.documents import Documents
    from judged.results.types import Floats, Ints, Strings
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Takes, Undefined

Target: TypeAlias = str | tuple[tuple[str, float], ...]


def _group(given: Any) -> str:
    name = spell(given).strip()
    if not name or set(name) & set(",:{}"):
        raise ValueError
    return name


def _target(given: Any) -> Target:
    if isinstance(given, str) and given in {"relevant", "collection"}:
        return given
    return shares(given, _group, "relevant, collection, or groups with", "{a:0.5,b:0.5}")


PATIENCE = Parameter(
    "The chance that a reader goes on to the next rank: the attention at rank r is p^(r-1). Left out, it is"
    " 1 / max(1, log2(r)).",
    None,
    real(0, 1),
)
TARGET = Parameter(
    "The share of attention that each group should have: its share among the topic's relevant documents, among all"
    " documents with known groups (collection), or as the table says.",
    "relevant",
    _target,
    values="relevant, collection, or a table such as {a:0.5,b:0.5}",
)

UNDEFINED_TARGET = Parameter(
    "With target=relevant, the score of a topic without relevant documents, even one outside the range; skip leaves it"
    " out of the mean. With another target every topic has one, and this cannot be given.",
    UNDEFINED.default,
    UNDEFINED.accept,
    values=UNDEFINED.values,
)


@measure(
    category="facts about documents",
    cite="Sapiezynski et al. 2019 and Raj and Ekstrand 2022 (geometric attention); TREC Fair Ranking 2021 and 2022"
    " (logarithmic attention, divergence)",
    use="Whether groups of documents, such as authors, regions or sellers, get the attention that is due to them.",
    misleads="It does not see relevance: a useless ranking can be fair. Means over few topics or short lists are"
    " coarse, and who is in which group, and what is due, are decisions outside the number.",
    properties=Properties(ignores_unjudged_tail=False, monotone=False),
    tools={"TREC Fair Ranking 2022 script": "AWRF (one group a document)"},
)
class AWRF(Measure):
    r"""Attention-weighted rank fairness: how near the attention that groups get is to the attention due to them.

    .. math:: \mathrm{AWRF}@k = 1 - \mathrm{JS}(e, t), \quad
        \mathrm{JS}(e, t) = \tfrac{1}{2} \sum_g e_g \ln \frac{2 e_g}{e_g + t_g} + t_g \ln \frac{2 t_g}{e_g + t_g}

    e is each group's share of the attention to the first k ranks, t the target. The divergence of Jensen and
    Shannon is taken with natural logarithms, as at TREC: 1 is perfectly fair, and the least, for groups
    that have nothing in common, is 1 - ln 2 = 0.307. A topic for which nothing was returned scores 0.

    Every returned document, and with ``target=relevant`` every relevant one, must have one ``group`` in the
    table of documents.

    Examples
    --------
    Attention 1 to group a and 1/2 to group b, where both are due the same:

    >>> fair = AWRF(p=0.5, target={"a": 0.5, "b": 0.5})
    >>> round(fair.of_list([1, 0], facts={"group": ["a", "b"]}), 4)
    0.9856
    >>> fair.of_list([1, 0], facts={"group": ["a", "a"]}) < 0.8
    True
    >>> AWRF().of_list([1, 1], facts={"group": ["a", "b"]})  # ranks 1 and 2 get the same attention
    1.0
    """

    cutoff: int | None = param(CUTOFF)
    p: float | None = param(PATIENCE)
    target: Takes[Literal["relevant", "collection"] | Mapping[str, float], Target] = param(TARGET)
    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED_TARGET)

    def verify(self) -> None:
        """Refuse a score of topics without a target where every topic has one.

        Raises
        ------
        MeasureError
            If `undefined` is given with a target that does not depend on the topic.
        """
        if self.target != "relevant" and self.undefined != UNDEFINED.default:
            problem = f"AWRF: with target={spell(self.target)} every topic is defined, and undefined has no effect"
            raise MeasureError(f"{problem}. Fix: leave out undefined={spell(self.undefined)}")

    def score(self, judged: Judged) -> Floats:
        """One minus the divergence of the attention from the target."""
        shown, seen = _text(judged.fact("group", self)), judged.everything
        groups = self._groups(judged)
        attention = self._attention(seen.rank)
        # A group below the cutoff would be one more summand.
        within = np.flatnonzero(seen.rank <= (self.cutoff or np.inf))
        paid = _cells(
            seen.topic[within], pc.index_in(shown.take(within), groups), attention[within], len(judged), len(groups)
        )
        due = self._due(judged, groups)
        comparison = _compared(paid, due, len(groups))
        comparable = (paid.total > 0) & (due.total > 0)
        fairness = np.where(comparable, 1.0 - comparison.divergence, 0.0)
        if judged.working is not None:
            self._write_attention(judged, shown, attention, paid)
            _write_groups(judged, groups, comparison, paid, due)
            how, parts = comparison.formula()
            if not comparable[0]:
                how = "nothing is due to any group" if paid.total[0] else "nothing was returned"
            judged.step(self, fairness, how, **parts)
        return fairness

    def _write_attention(self, judged: Judged, shown: Strings, attention: Floats, paid: _Cells) -> None:
        """Write down the group of each document, and the attention to its rank."""
        count = min(len(attention), self.cutoff or len(attention), MOST_SHOWN)
        if count:
            top = TopRanks(judged, count)
            top.column("group", np.array(shown.to_pylist()))
            how = "1 / max(1, log2(rank))" if self.p is None else f"{spell(self.p)}^(rank - 1)"
            top.column("attention", attention, how)
            top.add_up("total attention", attention, paid.total, "attention")

    def _attention(self, rank: Ints) -> Floats:
        paid = 1.0 / discounts(rank, "original", 2.0) if self.p is None else np.power(self.p, rank - 1.0)
        return np.where(rank <= (self.cutoff or np.inf), paid, 0.0)

    def _groups(self, judged: Judged) -> Strings:
        """Name all groups: those of the documents, and those of the target."""
        known = pc.unique(_known_groups(judged))
        named = [] if isinstance(self.target, str) else [name for name, _ in self.target]
        return pc.unique(pa.concat_arrays([known, pa.array(named, pa.string())]))

    def _due(self, judged: Judged, groups: Strings) -> _Cells:
        """Give what is due to each group: of every topic, or of one where all topics have the same."""
        if self.target == "relevant":
            rows = np.flatnonzero(judged.relevant_labels(self.rel))
            names = judged.qrels.index.row_names
            docs = pa.array([names[row] for row in judged.label_row[rows].tolist()], pa.string())
            code = pc.index_in(_text(_documents(judged).column("group", docs)), groups)
            return _cells(judged.label_topic[rows], code, np.ones(len(rows)), len(judged), len(groups))
        if isinstance(self.target, str):
            members = _known_groups(judged)
            weight = np.ones(len(members))
        else:
            members = pa.array([name for name, _ in self.target], pa.string())
            weight = np.array([share for _, share in self.target])
        none = np.zeros(len(members), dtype=np.int64)
        return _cells(none, pc.index_in(members, groups), weight, 1, len(groups))

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics that have a target."""
        return super().is_defined(judged) if self.target == "relevant" else np.ones(len(judged), dtype=np.bool_)


def _documents(judged: Judged) -> Documents:
    assert judged.documents is not None  # noqa: S101 - the facts of the returned documents came from there
    return judged.documents


def _known_groups(judged: Judged) -> Strings:
    return _text(_documents(judged).table["group"].drop_null())


def _text(groups: Any) -> Strings:
    whole = groups.combine_chunks() if isinstance(groups, pa.ChunkedArray) else groups
    return pc.cast(whole, pa.string())


class _Cells(NamedTuple):
    """What the groups of each topic get, listed only where a group stands in a topic: there may be many of both.

    The key is the topic times the number of groups plus the group, rising; the total is the topic's.
    """

    key: Ints
    weight: Floats
    total: Floats


def _cells(topic: Ints, group: Any, weight: Floats, topics: int, groups: int) -> _Cells:
    """Add up the weights of each topic and group."""
    key, cell = np.unique(topic * groups + group.to_numpy(), return_inverse=True)
    added = segment_sum(weight, cell, len(key))
    return _Cells(key, added, segment_sum(added, key // groups, topics))


class _Comparison(NamedTuple):
    """The shares of attention and target, cell by cell of the attention, and what follows for each topic.

    The target weights are those of the cells; the parts are what each share adds to twice the divergence, and their
    totals are of (T,), as is unmet: the share of the target that is due to groups without attention.
    """

    due: Floats
    shares: tuple[Floats, Floats]
    parts: tuple[Floats, Floats]
    part_totals: tuple[Floats, Floats]
    unmet: Floats

    @property
    def divergence(self) -> Floats:
        """The divergence of Jensen and Shannon, in natural units: (T,)."""
        return (self.part_totals[0] + (self.part_totals[1] + self.unmet * math.log(2.0))) / 2.0

    def formula(self) -> tuple[str, dict[str, Floats]]:
        """Give one minus the divergence of the only topic as a formula, and its parts."""
        parts = {"e_parts": self.part_totals[0], "t_parts": self.part_totals[1]}
        if not self.unmet[0]:
            return "1 - (e_parts + t_parts) / 2", parts
        return "1 - (e_parts + t_parts + unmet * ln(2)) / 2", {**parts, "unmet": self.unmet}


def _compared(one: _Cells, other: _Cells, groups: int) -> _Comparison:
    """Compare each topic's shares."""
    # The other may be of one topic, for all. Each of its groups that does not stand in the first adds its share times
    # ln 2.
    topic, topics = one.key // groups, len(one.total)
    whose = topic if len(other.total) == topics else np.zeros_like(topic)
    key = whose * groups + one.key % groups
    at = np.minimum(np.searchsorted(other.key, key), max(len(other.key) - 1, 0))
    weight = np.where(other.key[at] == key, other.weight[at], 0.0) if len(other.key) else np.zeros(len(key))
    shares = divide(one.weight, one.total[topic]), divide(weight, other.total[whose])
    middle = (shares[0] + shares[1]) / 2.0
    e, t = (side * np.log(np.where(side > 0, divide(side, middle), 1.0)) for side in shares)
    totals = segment_sum(e, topic, topics), segment_sum(t, topic, topics)
    unmet = divide(other.total - segment_sum(weight, topic, topics), other.total)  # added in one order: never below 0
    return _Comparison(weight, shares, (e, t), totals, unmet)


def _write_groups(judged: Judged, groups: Strings, made: _Comparison, paid: _Cells, due: _Cells) -> None:
    """Write down what each group of the only topic gets and what is due to it; the groups that get nothing last."""
    left = np.setdiff1d(due.key, paid.key)[:MOST_SHOWN]
    weight = due.weight[np.searchsorted(due.key, left)]
    none, zero = [None] * len(left), np.zeros(len(left))
    columns = {
        "group": groups.take(pa.array(np.concatenate((paid.key, left)))).to_pylist(),
        "attention": [*paid.weight, *zero],
        "due": [*made.due, *weight],
        "e": [*made.shares[0], *zero],
        "t": [*made.shares[1], *divide(weight, due.total[0])],
        "e part": [*made.parts[0], *none],
        "t part": [*made.parts[1], *none],
    }
    how = {"e": "attention / total attention", "t": "due / total due"}
    how |= {f"{side} part": f"{side} * ln(2 * {side} / (e + t))" for side in "et"}
    judged.rows("groups", columns, **how)
    judged.step("total due", due.total, "due to all groups, added up")
    for side, total in zip("et", made.part_totals, strict=True):
        judged.step(f"{side} parts", total, f"{side} part of all groups, added up")
    if made.unmet[0]:
        judged.step("unmet", made.unmet, "t of all groups without attention, added up")
