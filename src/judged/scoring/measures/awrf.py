"""Attention-weighted rank fairness: the distribution of attention over groups of documents."""

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
from judged.scoring.measures.gain import MAX_SHOWN, TopRanks, discounts
from judged.scoring.measures.parameters import CUTOFF, REL, UNDEFINED, Parameter, format_value, parse_shares, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from judged.data.documents import Documents
    from judged.results.types import Floats, Ints, Strings
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import ConvertedAttribute, Undefined

Target: TypeAlias = str | tuple[tuple[str, float], ...]


def _parse_group(value: Any) -> str:
    name = format_value(value).strip()
    if not name or set(name) & set(",:{}"):
        raise ValueError
    return name


def _parse_target(value: Any) -> Target:
    if isinstance(value, str) and value in {"relevant", "collection"}:
        return value
    return parse_shares(
        value, _parse_group, "the word relevant or collection, or a table of groups with", "{a:0.5,b:0.5}"
    )


CONTINUATION_FORMULA = Parameter(
    "The probability of reading on to the next rank: the attention at rank r is p^(r-1). Without `p`, the attention"
    " is 1 / max(1, log2(r)).",
    None,
    real(0, 1),
)
TARGET = Parameter(
    "The target share of attention of each group. `relevant`: the group's share of the topic's relevant documents."
    " `collection`: the group's share of all documents that have a group. A table lists the target share of each"
    " group.",
    "relevant",
    _parse_target,
    values="relevant, collection, or a table such as {a:0.5,b:0.5}",
)

UNDEFINED_TARGET = Parameter(
    "With target=relevant, the score of a topic without relevant documents: any number, even outside the range of the"
    " measure, or `skip` to exclude the topic from the mean. With any other target, every topic has a score, and this"
    " parameter is not allowed.",
    UNDEFINED.default,
    UNDEFINED.accept,
    values=UNDEFINED.values,
)


@measure(
    category="facts about documents",
    cite="Sapiezynski et al. 2019 and Raj and Ekstrand 2022 (geometric attention); TREC Fair Ranking 2021 and 2022"
    " (logarithmic attention, divergence)",
    use="You want to know whether groups of documents, such as authors, regions, or sellers, get their target share"
    " of attention.",
    misleads="The measure ignores relevance: a useless ranking can be fair. Means over few topics or short lists are"
    " imprecise. You choose the groups and the target; the score does not show whether these choices are right.",
    properties=Properties(ignores_unjudged_tail=False, monotone=False),
    tools={"TREC Fair Ranking 2022 script": "AWRF (one group per document)"},
)
class AWRF(Measure):
    r"""Attention-weighted rank fairness: the similarity of the attention that groups get to a target distribution.

    .. math:: \mathrm{AWRF}@k = 1 - \mathrm{JS}(e, t), \quad
        \mathrm{JS}(e, t) = \tfrac{1}{2} \sum_g e_g \ln \frac{2 e_g}{e_g + t_g} + t_g \ln \frac{2 t_g}{e_g + t_g}

    e is each group's share of the attention at the first k ranks, t the target. The Jensen-Shannon divergence uses
    natural logarithms, as at TREC. A score of 1 is perfectly fair. The minimum, for disjoint groups, is
    1 - ln 2 = 0.307. A topic with an empty ranking scores 0.

    Every returned document, and with ``target=relevant`` every relevant document, must have one ``group`` in the
    table of documents.

    Examples
    --------
    Attention is 1 for group a and 1/2 for group b. The target is the same for both groups:

    >>> fair = AWRF(p=0.5, target={"a": 0.5, "b": 0.5})
    >>> round(fair.of_list([1, 0], facts={"group": ["a", "b"]}), 4)
    0.9856
    >>> fair.of_list([1, 0], facts={"group": ["a", "a"]}) < 0.8
    True
    >>> AWRF().of_list([1, 1], facts={"group": ["a", "b"]})  # ranks 1 and 2 get the same attention
    1.0
    """

    cutoff: int | None = param(CUTOFF)
    p: float | None = param(CONTINUATION_FORMULA)
    target: ConvertedAttribute[Literal["relevant", "collection"] | Mapping[str, float], Target] = param(TARGET)
    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED_TARGET)

    def verify(self) -> None:
        """Raise if `undefined` is set although every topic has a target.

        Raises
        ------
        MeasureError
            If `undefined` is set with a target that does not depend on the topic.
        """
        if self.target != "relevant" and self.undefined != UNDEFINED.default:
            target, undefined = format_value(self.target), format_value(self.undefined)
            raise MeasureError(
                f"AWRF: the parameter undefined has no effect with target={target}. Fix: omit undefined={undefined}"
            )

    def score(self, judged: Judged) -> Floats:
        """Return 1 minus the divergence of the attention from the target."""
        doc_groups, returned = _to_text(judged.fact("group", self)), judged.returned_docs
        groups = self._groups(judged)
        attention = self._attention(returned.rank)
        # Attention below the cutoff is 0, but a group that occurs only there would add a term to the divergence.
        within = np.flatnonzero(returned.rank <= (self.cutoff or np.inf))
        code = pc.index_in(doc_groups.take(within), groups)
        actual = _sum_by_group(returned.topic[within], code, attention[within], len(judged), len(groups))
        target = self._target_weights(judged, groups)
        comparison = _compare(actual, target, len(groups))
        is_comparable = (actual.total > 0) & (target.total > 0)
        fairness = np.where(is_comparable, 1.0 - comparison.divergence, 0.0)
        if judged.calculation is not None:
            self._explain_attention(judged, doc_groups, attention, actual)
            _explain_groups(judged, groups, comparison, actual, target)
            how, parts = comparison.formula()
            if not is_comparable[0]:
                how = "no group has a target share" if actual.total[0] else "no documents returned"
            judged.step(self, fairness, how, **parts)
        return fairness

    def _explain_attention(self, judged: Judged, doc_groups: Strings, attention: Floats, actual: _GroupWeights) -> None:
        """Show the group of each document and the attention at its rank."""
        count = min(len(attention), self.cutoff or len(attention), MAX_SHOWN)
        if count:
            top = TopRanks(judged, count)
            top.column("group", np.array(doc_groups.to_pylist()))
            how = "1 / max(1, log2(rank))" if self.p is None else f"{format_value(self.p)}^(rank - 1)"
            top.column("attention", attention, how)
            top.add_up("total attention", attention, actual.total, "attention")

    def _attention(self, rank: Ints) -> Floats:
        attention = 1.0 / discounts(rank, "original", 2.0) if self.p is None else np.power(self.p, rank - 1.0)
        return np.where(rank <= (self.cutoff or np.inf), attention, 0.0)

    def _groups(self, judged: Judged) -> Strings:
        """Return the names of all groups: those of the documents, and those of the target."""
        document_groups = pc.unique(_document_groups(judged))
        target_groups = [] if isinstance(self.target, str) else [name for name, _ in self.target]
        return pc.unique(pa.concat_arrays([document_groups, pa.array(target_groups, pa.string())]))

    def _target_weights(self, judged: Judged, groups: Strings) -> _GroupWeights:
        """Return the target weights of the groups, for each topic or for one topic that stands for all."""
        if self.target == "relevant":
            rows = np.flatnonzero(judged.relevant_labels(self.rel))
            names = judged.qrels.index.row_names
            docs = pa.array([names[row] for row in judged.label_row[rows].tolist()], pa.string())
            code = pc.index_in(_to_text(_documents(judged).column("group", docs)), groups)
            return _sum_by_group(judged.label_topic[rows], code, np.ones(len(rows)), len(judged), len(groups))
        if isinstance(self.target, str):
            members = _document_groups(judged)
            weight = np.ones(len(members))
        else:
            members = pa.array([name for name, _ in self.target], pa.string())
            weight = np.array([share for _, share in self.target])
        topic = np.zeros(len(members), dtype=np.int64)
        return _sum_by_group(topic, pc.index_in(members, groups), weight, 1, len(groups))

    def is_defined(self, judged: Judged) -> Any:
        """Return whether each topic has a target: (T,) bool."""
        return super().is_defined(judged) if self.target == "relevant" else np.ones(len(judged), dtype=np.bool_)


def _documents(judged: Judged) -> Documents:
    assert judged.documents is not None  # noqa: S101 - `judged.fact` raised if there are none
    return judged.documents


def _document_groups(judged: Judged) -> Strings:
    return _to_text(_documents(judged).table["group"].drop_null())


def _to_text(groups: Any) -> Strings:
    array = groups.combine_chunks() if isinstance(groups, pa.ChunkedArray) else groups
    return pc.cast(array, pa.string())


class _GroupWeights(NamedTuple):
    """Weights of the groups of each topic, in sparse form, because there may be many topics and many groups."""

    key: Ints  # topic * number of groups + group, ascending
    weight: Floats
    total: Floats  # (T,): sum of the weights of each topic


def _sum_by_group(topic: Ints, group: Any, weight: Floats, topics: int, groups: int) -> _GroupWeights:
    """Sum the weights of each topic and group."""
    key, index = np.unique(topic * groups + group.to_numpy(), return_inverse=True)
    sums = segment_sum(weight, index, len(key))
    return _GroupWeights(key, sums, segment_sum(sums, key // groups, topics))


class _Comparison(NamedTuple):
    """Shares of actual and target attention by topic and group, and the parts of the divergence.

    The first three fields have one value per key of the actual weights. A part is the term of a share in twice the
    divergence.
    """

    target_weight: Floats
    shares: tuple[Floats, Floats]
    parts: tuple[Floats, Floats]
    part_totals: tuple[Floats, Floats]  # (T,)
    unmet: Floats  # (T,): target share of the groups without attention

    @property
    def divergence(self) -> Floats:
        """Jensen-Shannon divergence with natural logarithms: (T,)."""
        # A group without attention has the term t * ln(2 t / t) = t * ln(2).
        return (self.part_totals[0] + (self.part_totals[1] + self.unmet * math.log(2.0))) / 2.0

    def formula(self) -> tuple[str, dict[str, Floats]]:
        """Return the formula of the score of the only topic, and its parts."""
        parts = {"e_parts": self.part_totals[0], "t_parts": self.part_totals[1]}
        if not self.unmet[0]:
            return "1 - (e_parts + t_parts) / 2", parts
        return "1 - (e_parts + t_parts + unmet * ln(2)) / 2", {**parts, "unmet": self.unmet}


def _compare(actual: _GroupWeights, target: _GroupWeights, groups: int) -> _Comparison:
    """Compare the shares of each topic. The target may consist of one topic that stands for all."""
    topic, topics = actual.key // groups, len(actual.total)
    target_topic = topic if len(target.total) == topics else np.zeros_like(topic)
    key = target_topic * groups + actual.key % groups
    position = np.minimum(np.searchsorted(target.key, key), max(len(target.key) - 1, 0))
    weight = np.zeros(len(key))
    if len(target.key):
        weight = np.where(target.key[position] == key, target.weight[position], 0.0)
    shares = divide(actual.weight, actual.total[topic]), divide(weight, target.total[target_topic])
    middle = (shares[0] + shares[1]) / 2.0
    # A share of 0 adds 0: x ln(x) tends to 0. The inner `where` avoids the logarithm of 0.
    e, t = (share * np.log(np.where(share > 0, divide(share, middle), 1.0)) for share in shares)
    totals = segment_sum(e, topic, topics), segment_sum(t, topic, topics)
    # The difference is never below 0, because both sums add the weights in the same order.
    unmet = divide(target.total - segment_sum(weight, topic, topics), target.total)
    return _Comparison(weight, shares, (e, t), totals, unmet)


def _explain_groups(
    judged: Judged, groups: Strings, comparison: _Comparison, actual: _GroupWeights, target: _GroupWeights
) -> None:
    """Show the actual and the target attention of each group of the only topic, groups without attention last."""
    missed = np.setdiff1d(target.key, actual.key)[:MAX_SHOWN]
    weight = target.weight[np.searchsorted(target.key, missed)]
    blanks, zeros = [None] * len(missed), np.zeros(len(missed))
    columns = {
        "group": groups.take(pa.array(np.concatenate((actual.key, missed)))).to_pylist(),
        "attention": [*actual.weight, *zeros],
        "target": [*comparison.target_weight, *weight],
        "e": [*comparison.shares[0], *zeros],
        "t": [*comparison.shares[1], *divide(weight, target.total[0])],
        "e part": [*comparison.parts[0], *blanks],
        "t part": [*comparison.parts[1], *blanks],
    }
    how = {"e": "attention / total attention", "t": "target / total target"}
    how |= {f"{symbol} part": f"{symbol} * ln(2 * {symbol} / (e + t))" for symbol in "et"}
    judged.rows("groups", columns, **how)
    judged.step("total target", target.total, "sum of target over all groups")
    for symbol, total in zip("et", comparison.part_totals, strict=True):
        judged.step(f"{symbol} parts", total, f"sum of {symbol} part over all groups")
    if comparison.unmet[0]:
        judged.step("unmet", comparison.unmet, "sum of t over all groups without attention")
