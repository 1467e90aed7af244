"""Attention-weighted rank fairness: whom a ranking gives the attention of its readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.measures.arithmetic import divide
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.gain import discounts
from judged.measures.parameters import CUTOFF, REL, UNDEFINED, Parameter, real, shares, spell

if TYPE_CHECKING:
    from judged._types import Floats, Ints, Strings
    from judged.data.documents import Documents
    from judged.judging import Judged

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
    values="number from 0 to 1",
)
TARGET = Parameter(
    "The share of attention that each group should have: its share among the topic's relevant documents, among all"
    " documents that something is known of (collection), or as the table says.",
    "relevant",
    _target,
    values="relevant, collection, or a table such as {a:0.5,b:0.5}",
)


@measure(
    family="facts about documents",
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
    target: Target = param(TARGET)
    rel: float = param(REL)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """One minus the divergence of the attention from the target."""
        shown, seen = _text(judged.fact("group", self)), judged.everything
        groups = self._groups(judged)
        attention = self._attention(seen.rank)
        exposure = _shares(seen.topic, pc.index_in(shown, groups), attention, (len(judged), len(groups)))
        target = self._due(judged, groups)
        comparable = (exposure > 0).any(axis=1) & (target > 0).any(axis=1)
        return np.where(comparable, 1.0 - _divergence(exposure, target), 0.0)

    def _attention(self, rank: Ints) -> Floats:
        paid = 1.0 / discounts(rank, "original", 2.0) if self.p is None else np.power(self.p, rank - 1.0)
        return np.where(rank <= (self.cutoff or np.inf), paid, 0.0)

    def _groups(self, judged: Judged) -> Strings:
        """Name all groups: those of the documents, and those of the target."""
        known = pc.unique(_known_groups(judged))
        named = [] if isinstance(self.target, str) else [name for name, _ in self.target]
        return pc.unique(pa.concat_arrays([known, pa.array(named, pa.string())]))

    def _due(self, judged: Judged, groups: Strings) -> Floats:
        """Give the share that is due to each group: (T, groups), or (1, groups) where all topics have the same."""
        if self.target == "relevant":
            rows = np.flatnonzero(judged.relevant_labels(self.rel))
            names = judged.qrels.index.row_names
            docs = pa.array([names[row] for row in judged.label_row[rows].tolist()], pa.string())
            code = pc.index_in(_text(_documents(judged).column("group", docs)), groups)
            return _shares(judged.label_topic[rows], code, np.ones(len(rows)), (len(judged), len(groups)))
        if isinstance(self.target, str):
            members = _known_groups(judged)
            weight = np.ones(len(members))
        else:
            members = pa.array([name for name, _ in self.target], pa.string())
            weight = np.array([share for _, share in self.target])
        return _shares(np.zeros(len(members), dtype=np.int64), pc.index_in(members, groups), weight, (1, len(groups)))

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


def _shares(topic: Ints, group: Any, weight: Floats, shape: tuple[int, int]) -> Floats:
    """Add up the weights of each topic and group, as shares of the topic's; 0 where it has none."""
    at = topic * shape[1] + group.to_numpy()
    total = np.bincount(at, weights=weight, minlength=shape[0] * shape[1]).reshape(shape)
    return divide(total, total.sum(axis=1)[:, None])


def _divergence(one: Floats, other: Floats) -> Floats:
    """Give the divergence of Jensen and Shannon of each row, in natural units."""
    middle = (one + other) / 2.0
    parts = [side * np.log(np.where(side > 0, divide(side, middle), 1.0)) for side in np.broadcast_arrays(one, other)]
    return (parts[0].sum(axis=1) + parts[1].sum(axis=1)) / 2.0
