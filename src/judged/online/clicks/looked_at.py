"""Models in which the rank decides what is looked at: fitted to counts by query, document, rank and last click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.special import xlogy

from judged.errors import InputError
from judged.online.clicks.posteriors import Evidence, Information, evidence_of, totals
from judged.results.spelling import one_of
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.online.clicks.cells import Cells, Patterns
    from judged.online.clicks.posteriors import Parameters, Sums
    from judged.results.types import Floats, Ints


@dataclass(frozen=True)
class ClickModel:
    """A result is clicked if it is looked at and attractive: a model says what decides that it is looked at.

    Either the rank does (`examined`), or users go down the page and may stop at every result (`go_on`).

    Parameters
    ----------
    name, title, source
        What it is called, and where it is from.
    assumes
        Its assumption, in a clause.
    attractive
        Whether results differ; otherwise every result that is looked at is clicked.
    examined
        What decides that a result is looked at: nothing (all are), its rank, or its rank and the last click above.
    satisfied
        Of models that go down the page: whose a click's probability to satisfy is; ``always``: it is 1;
        ``attractiveness``: it is that of the result.
    go_on
        The probability to go on to the next result after none was clicked, after a click that did not satisfy, and
        after one that did: a number, or the name of a parameter. Empty for the other models.
    """

    name: str
    title: str
    source: str
    assumes: str
    attractive: bool = True
    examined: Literal["", "rank", "rank and last click"] = ""
    satisfied: Literal["", "always", "pair", "rank", "attractiveness"] = ""
    go_on: tuple[float | str, ...] = ()

    @property
    def continuation(self) -> tuple[str, ...]:
        """Names of its parameters of going on, each once."""
        return tuple(dict.fromkeys(name for name in self.go_on if isinstance(name, str)))

    def is_of_pairs(self, name: str) -> bool:
        """Say whether every pair of query and document has its own value of a parameter."""
        return name == "attractiveness" or (name == "satisfaction" and self.satisfied == "pair")


_BOOK = "Chuklin, Markov and de Rijke, Click Models for Web Search, 2015"
_ALL = (
    ClickModel(
        "RCTR", "click-through rate by rank", f"{_BOOK}, 3.1",
        "the rank alone decides, whatever stands there", attractive=False, examined="rank",
    ),
    ClickModel(
        "DCTR", "click-through rate by document", f"{_BOOK}, 3.1",
        "all results are looked at",
    ),
    ClickModel(
        "PBM", "position-based model", "Craswell et al., WSDM 2008",
        "the rank decides whether a result is looked at", examined="rank",
    ),
    ClickModel(
        "CM", "cascade model", "Craswell et al., WSDM 2008",
        "users go down to their first click, and stop there", satisfied="always", go_on=(1.0, 0.0, 0.0),
    ),
    ClickModel(
        "DCM", "dependent click model", "Guo, Liu and Wang, WSDM 2009",
        "users go down, and after a click the rank decides whether they go on",
        satisfied="rank", go_on=(1.0, 1.0, 0.0),
    ),
    ClickModel(
        "CCM", "click chain model", "Guo et al., WWW 2009",
        "users go down, and go on with three probabilities: after no click, and after clicks by how good the result is",
        satisfied="attractiveness", go_on=("after no click", "after an unsatisfying click", "after a satisfying click"),
    ),
    ClickModel(
        "UBM", "user browsing model", "Dupret and Piwowarski, SIGIR 2008",
        "the rank and the last click above decide whether a result is looked at", examined="rank and last click",
    ),
    ClickModel(
        "DBN", "dynamic Bayesian network", "Chapelle and Zhang, WWW 2009",
        "users go down, stop when a click satisfies, and otherwise go on with one probability",
        satisfied="pair", go_on=("not satisfied", "not satisfied", 0.0),
    ),
    ClickModel(
        "SDBN", "simplified dynamic Bayesian network", "Chapelle and Zhang, WWW 2009",
        "users go down until a click satisfies", satisfied="pair", go_on=(1.0, 1.0, 0.0),
    ),
)  # fmt: skip

MODELS: dict[str, ClickModel] = {model.name: model for model in _ALL}
"""Name to model, the plainest first."""


def model_of(name: str) -> ClickModel:
    """Give a model by its name.

    Examples
    --------
    >>> model_of("PBM").title
    'position-based model'

    Raises
    ------
    InputError
        If there is none.
    """
    return MODELS[one_of("model", name, MODELS)]


_TINY = 1e-100  # its square is a number, too


def nodes_of(rank: Ints, last: Ints, model: ClickModel, depth: int) -> Ints:
    """Number what decides that a result is looked at: ranks, or ranks and last clicks, each from 0."""
    if model.examined == "rank and last click":
        return (rank - 1) * (depth + 1) + last
    return rank - 1 if model.examined else np.zeros_like(rank)


@dataclass(frozen=True, eq=False)
class LookedAt:
    """Counts that a model is fitted to.

    Parameters
    ----------
    model
        One that says what is examined, or nothing.
    pairs, depth
        How many pairs of query and document, and ranks, there are.
    pair, node
        (C,): in order of pairs.
    shown, clicked
        (C,): counts.
    """

    model: ClickModel
    pairs: int
    depth: int
    pair: Ints
    node: Ints
    shown: Floats
    clicked: Floats

    @classmethod
    def of_patterns(cls, model: ClickModel, patterns: Patterns, counts: Floats) -> LookedAt:
        """Add up pages that are counted so often each, (N,)."""
        rows = np.flatnonzero(counts)
        pair, clicked = patterns.pair[rows], patterns.clicked[rows]
        depth = pair.shape[1]
        there = pair >= 0
        rank = np.broadcast_to(np.arange(1, depth + 1), pair.shape)
        node = nodes_of(rank, last_clicks(clicked), model, depth)
        size = depth * (depth + 1)
        cell, place = np.unique(pair[there] * size + node[there], return_inverse=True)
        weight = np.broadcast_to(counts[rows, None], pair.shape)[there]
        shown, clicks = totals(place, weight, len(cell)), totals(place, weight * clicked[there], len(cell))
        return cls(model, len(patterns.pairs), depth, cell // size, cell % size, shown, clicks)

    @classmethod
    def of_cells(cls, model: ClickModel, cells: Cells) -> LookedAt:
        """Take cells as they are, counted by the last click above where the model asks for it."""
        depth = int(cells.rank.max())
        node = nodes_of(cells.rank, cells.last, model, depth)
        shown, clicked = cells.shown.astype(np.float64), cells.clicked.astype(np.float64)
        return cls(model, len(cells.pairs), depth, cells.pair, node, shown, clicked)

    @property
    def nodes(self) -> int:
        """How many numbers of `node` there may be."""
        return {"": 1, "rank": self.depth}.get(self.model.examined, self.depth * (self.depth + 1))

    def start(self) -> Parameters:
        """Give values to begin with; what is not looked at by rank, or does not differ, has no parameter."""
        made: Parameters = {"attractiveness": np.full(self.pairs, 0.5)} if self.model.attractive else {}
        return made | ({"examination": np.full(self.nodes, 0.5)} if self.model.examined else {})

    def fixed(self) -> dict[str, int]:
        """Fix the scale: what stands topmost is looked at, so that the rest is relative to it."""
        both = self.model.attractive and self.model.examined
        return {"examination": int(self.node.min())} if both else {}

    def sums(self, yes: Parameters, no: Parameters) -> Sums:
        """Give expected successes and trials of every parameter: clicks of looks, and looks of what is shown."""
        missed = no["attractiveness"][self.pair] if self.model.attractive else 0.0
        gamma = yes["examination"][self.node] if self.model.examined else 1.0
        skipped = gamma * missed
        looks = self.clicked + (self.shown - self.clicked) * skipped / np.maximum(1 - gamma + skipped, _TINY)
        found: Sums = {}
        if self.model.attractive:
            found["attractiveness"] = (self._clicked, self._by_pair(looks))
        if self.model.examined:
            found["examination"] = (self._by_node(looks), self._shown)
        return found

    def loglik(self, parameters: Parameters) -> float:
        """Give the logarithm of the probability of all clicks; minus infinity where what happened cannot happen."""
        _, _, p = self._at(parameters)
        return float(xlogy(self.clicked, p).sum() + xlogy(self.shown - self.clicked, 1 - p).sum())

    def evidence(self, parameters: Parameters) -> dict[str, Evidence]:
        """Return what single results say of the parameters of pairs."""
        if not self.model.attractive:
            return {}
        alpha, gamma, p = self._at(parameters)
        looks = gamma * (1 - alpha) / np.maximum(1 - p, _TINY)
        sure, missed = np.ones_like(p), self.shown - self.clicked
        pair, weight = np.tile(self.pair, 2), np.concatenate([self.clicked, missed])
        columns = np.concatenate([sure, np.zeros_like(p)]), np.concatenate([sure, np.clip(looks, 0, 1)])
        return {"attractiveness": evidence_of(pair, *columns, weight, parameters["attractiveness"])}

    def information(self, parameters: Parameters) -> Information:
        """Give the outer products of what every result says of its parameters."""
        alpha, gamma, p = self._at(parameters)
        missed, rest = self.shown - self.clicked, np.maximum(1 - p, _TINY)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = self._by_pair(self.clicked / alpha**2 + missed * (gamma / rest) ** 2)
            shared = self._by_node(self.clicked / gamma**2 + missed * (alpha / rest) ** 2)
            both = self.clicked / np.maximum(p, _TINY) + missed * p / rest**2
        free = np.flatnonzero(np.isfinite(shared) & (shared > 0))
        if not self.model.attractive:
            return Information({}, {"examination": free}, np.diag(shared[free]))
        if not self.model.examined:
            return Information({"attractiveness": own}, {}, np.zeros((0, 0)))
        free = free[free != self.fixed()["examination"]]
        place = np.full(self.nodes, -1)
        place[free] = np.arange(len(free))
        kept = place[self.node] >= 0
        cross = coo_array((both[kept], (self.pair[kept], place[self.node[kept]])), (self.pairs, len(free))).tocsr()
        return Information(
            {"attractiveness": own}, {"examination": free}, np.diag(shared[free]), {"attractiveness": cross}
        )

    def examination(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Add up by rank how many results are looked at, given the clicks above, and how many are shown."""
        rank = self.node // (self.depth + 1) if self.model.examined == "rank and last click" else self.node
        _, gamma, _ = self._at(parameters)
        return totals(rank, self.shown * gamma, self.depth), totals(rank, self.shown, self.depth)

    def _at(self, parameters: Parameters) -> tuple[Any, Any, Floats]:
        alpha = parameters["attractiveness"][self.pair] if self.model.attractive else np.ones(len(self.pair))
        gamma = parameters["examination"][self.node] if self.model.examined else np.ones(len(self.pair))
        return alpha, gamma, alpha * gamma

    @cached_property
    def _clicked(self) -> Floats:
        return self._by_pair(self.clicked)

    @cached_property
    def _shown(self) -> Floats:
        return self._by_node(self.shown)

    @cached_property
    def _begins(self) -> Ints:
        """Where the cells of each pair begin: they stand in order."""
        return np.flatnonzero(np.diff(self.pair, prepend=-1))

    def _by_pair(self, column: Floats) -> Floats:
        made = np.zeros(self.pairs)
        made[self.pair[self._begins]] = np.add.reduceat(column, self._begins)
        return made

    def _by_node(self, column: Floats) -> Floats:
        return totals(self.node, column, self.nodes)

    def need_connected(self) -> None:
        """Refuse counts in which some ranks share no result with the others.

        How much more one rank is looked at than another shows only in results that were clicked, and shown at both.
        """
        if not (self.model.attractive and self.model.examined):
            return
        from scipy.sparse.csgraph import connected_components

        told = self._by_pair(self.clicked)[self.pair] > 0
        pair, node = self.pair[told], self.node[told]
        graph = coo_array((np.ones(len(pair)), (pair, node + self.pairs)), [self.pairs + self.nodes] * 2)
        _, part = connected_components(graph, directed=False)
        used = np.flatnonzero(self._by_node(self.shown))
        apart = used[part[self.pairs + used] != part[self.pairs + self.node.min()]]
        if not len(apart):
            return
        raise InputError(
            f"{self.model.name} cannot tell how much {self._named(int(apart[0]))} is looked at against"
            f" {self._named(int(self.node.min()))}: no chain of results that were clicked, and shown at both, leads"
            f" from one to the other ({len(apart)} of {len(used)} such places are cut off)",
            fix="look less deep, join queries (by=), or collect pages whose order differs",
        )

    def _named(self, node: int) -> str:
        if self.model.examined == "rank":
            return f"rank {node + 1}"
        rank, last = divmod(node, self.depth + 1)
        return f"rank {rank + 1} {f'below a last click at {last}' if last else 'with no click above'}"


def last_clicks(clicked: Any) -> Ints:
    """Give the rank of the last click above each result, 0 where there is none: (N, K)."""
    place = np.where(clicked, np.arange(1, clicked.shape[1] + 1), 0)
    above = np.zeros_like(place)
    np.maximum.accumulate(place[:, :-1], axis=1, out=above[:, 1:])
    return above


def predictions(model: ClickModel, patterns: Patterns, parameters: Parameters) -> tuple[Floats, Floats]:
    """Give the probability of every click given the clicks above it, and before any is known: (N, K) each."""
    pair = patterns.pair
    depth = pair.shape[1]
    there = pair >= 0
    alpha = np.where(there, parameters["attractiveness"][pair] if model.attractive else 1.0, 0.0)
    if model.examined != "rank and last click":
        gamma = parameters["examination"] if model.examined else np.ones(depth)
        return alpha * gamma, alpha * gamma
    table = parameters["examination"].reshape(depth, depth + 1)
    given = alpha * table[np.arange(depth), last_clicks(patterns.clicked)]
    before = np.zeros_like(alpha)
    last = np.zeros((len(pair), depth + 1))  # the probability that the last click is at each rank
    last[:, 0] = 1
    for at in range(depth):
        clicks = last[:, : at + 1] * (table[at, : at + 1] * alpha[:, at, None])
        before[:, at] = clicks.sum(axis=1)
        last[:, : at + 1] -= clicks
        last[:, at + 1] = before[:, at]
    return given, before
