"""Models in which users go down the page: exact passes over what was shown and clicked, for all pages at once.

Once the clicks of a page are known, what is not known is where the user stopped: at the last click, or on the way down
behind it. The sums over these are products from below; nothing is approximated, and tests hold every one of them to
the enumeration of all that may have happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.online.clicks.posteriors import Evidence, Information, evidence_of, totals
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.online.clicks.cells import Patterns
    from judged.online.clicks.looked_at import ClickModel
    from judged.online.clicks.posteriors import Parameters, Sums
    from judged.results.types import Bools, Floats, Ints

_AT_ONCE = 16_384  # pages whose numbers fit into a processor's memory of its own
_TINY = 1e-300


class _Use(NamedTuple):
    """Where a parameter is used: (K, N) places, or one place, with expected successes and trials at each."""

    name: str
    place: Any
    successes: Any
    trials: Any


class _Part(NamedTuple):
    """Some pages, (K, N) but for counts, (N,)."""

    pair: Ints
    clicked: Bools
    counts: Floats
    there: Bools
    above: Bools  # a click stands below, so that the user went on
    followed: Bools  # another result stands below


@dataclass(frozen=True, eq=False)
class Chain:
    """Pages that a model is fitted to.

    Parameters
    ----------
    model
        One that says when users go on.
    patterns
        What was shown and clicked.
    weights
        (N,): how often each counts.
    """

    model: ClickModel
    patterns: Patterns
    weights: Floats

    @cached_property
    def parts(self) -> list[_Part]:
        """The pages that count, cut into parts."""
        rows = np.flatnonzero(self.weights)
        cuts = [rows[at : at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE)]
        return [part_of(self.patterns.pair[cut], self.patterns.clicked[cut], self.weights[cut]) for cut in cuts]

    def start(self) -> Parameters:
        """Give values to begin with."""
        pairs, depth = len(self.patterns.pairs), self.patterns.pair.shape[1]
        made: Parameters = {"attractiveness": np.full(pairs, 0.5)}
        if self.model.satisfied in {"pair", "rank"}:
            made["satisfaction"] = np.full(pairs if self.model.satisfied == "pair" else depth, 0.5)
        if self.model.continuation:
            made["continuation"] = np.full(len(self.model.continuation), 0.5)
        return made

    def fixed(self) -> dict[str, int]:
        """Fix nothing: the topmost result is looked at in all of these models."""
        return {}

    def need_connected(self) -> None:
        """Refuse nothing: what was clicked tells how far users came."""

    def sums(self, yes: Parameters, no: Parameters) -> Sums:
        """Add up expected successes and trials of every parameter, of its weights for either outcome."""
        found: Sums = {name: (np.zeros(len(one)), np.zeros(len(one))) for name, one in yes.items()}
        for part in self.parts:
            weight = np.broadcast_to(part.counts, part.pair.shape)
            for use in uses(self.model, part, yes, no):
                sums = found[use.name]
                if np.ndim(use.place) == 0:
                    sums[0][use.place] += float((use.successes @ part.counts).sum())
                    sums[1][use.place] += float((use.trials @ part.counts).sum())
                    continue
                kept = part.there  # what is not there has no parameter
                place = use.place[kept]
                begin, end = int(place.min()), int(place.max()) + 1
                for total, column in zip(sums, (use.successes, use.trials), strict=True):
                    total[begin:end] += totals(place - begin, (column * weight)[kept], end - begin)
        return found

    def loglik(self, parameters: Parameters) -> float:
        """Give the logarithm of the probability of all clicks."""
        total = 0.0
        for part in self.parts:
            given, _, _ = predicted(self.model, part, parameters)
            with np.errstate(divide="ignore"):
                total += float(np.log(np.where(part.clicked, given, 1 - given)).sum(axis=0) @ part.counts)
        return total

    def evidence(self, parameters: Parameters) -> dict[str, Evidence]:
        """Return what single pages say of the parameters of pairs."""
        no = {name: 1 - one for name, one in parameters.items()}
        found: dict[str, list[tuple[Ints, Floats, Floats, Floats]]] = {}
        for part in self.parts:
            weight = np.broadcast_to(part.counts, part.pair.shape)
            for use in uses(self.model, part, parameters, no):
                if self.model.is_of_pairs(use.name):
                    kept = part.there & (use.trials > 0)
                    columns = use.place[kept], use.successes[kept], use.trials[kept], weight[kept]
                    found.setdefault(use.name, []).append(columns)
        made: dict[str, Evidence] = {}
        for name, parts in found.items():
            pair, successes, trials, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
            made[name] = evidence_of(pair, successes, trials, weight, parameters[name])
        return made

    def information(self, parameters: Parameters) -> Information:
        """Give the outer products of what every page says of the parameters."""
        common = [name for name in parameters if not self.model.is_of_pairs(name)]
        sizes = np.cumsum([0, *(len(parameters[name]) for name in common)])
        begin = dict(zip(common, sizes.tolist(), strict=False))
        count, pairs = int(sizes[-1]), len(self.patterns.pairs)
        own = {name: np.zeros(pairs) for name in parameters if self.model.is_of_pairs(name)}
        cross = {name: np.zeros((pairs, count)) for name in own} if count else {}
        shared, no = np.zeros((count, count)), {name: 1 - one for name, one in parameters.items()}
        for part in self.parts:
            scores = np.zeros((count, len(part.counts)))
            squares = {name: np.zeros(part.pair.shape) for name in own}
            for use in uses(self.model, part, parameters, no):
                value = parameters[use.name][use.place]
                with np.errstate(divide="ignore", invalid="ignore"):
                    score = (use.successes - value * use.trials) / (value * (1 - value))
                score = np.where((use.trials > 0) & np.isfinite(score), score, 0.0)
                if use.name in own:
                    squares[use.name] += score
                elif np.ndim(use.place) == 0:
                    scores[begin[use.name] + use.place] += score.sum(axis=0)
                else:
                    scores[begin[use.name] : begin[use.name] + len(score)] += score
            shared += (scores * part.counts) @ scores.T
            there, place = part.there, part.pair[part.there]
            for name, score in squares.items():
                weighted = score * part.counts
                own[name] += totals(place, (weighted * score)[there], pairs)
                for at in range(count):
                    cross[name][:, at] += totals(place, (weighted * scores[at])[there], pairs)
        told = np.diag(shared) > 0
        free = {name: np.flatnonzero(told[begin[name] :][: len(parameters[name])]) for name in common}
        kept = {name: one[:, told] for name, one in cross.items()}
        return Information(own, free, shared[np.ix_(told, told)], kept)

    def examination(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Add up by rank how many results are looked at, given the clicks above, and how many are shown."""
        found = np.zeros((2, self.patterns.pair.shape[1]))
        for part in self.parts:
            _, _, looks = predicted(self.model, part, parameters)
            found += [(column * part.there) @ part.counts for column in (looks, np.ones_like(looks))]
        return found[0], found[1]


def part_of(pair: Ints, clicked: Bools, counts: Floats) -> _Part:
    """Turn pages, (N, K), so that what stands at one rank is one row."""
    turned, clicks = np.ascontiguousarray(pair.T), np.ascontiguousarray(clicked.T)
    there = turned >= 0
    below = np.cumsum(clicks[::-1], axis=0)[::-1] - clicks  # clicks further down
    followed = (np.cumsum(there[::-1], axis=0)[::-1] - there) > 0
    return _Part(turned, clicks, counts, there, below > 0, followed)


def _satisfying(model: ClickModel, part: _Part, parameters: Parameters) -> Any:
    """Give the probability that a click satisfies, (K, N), or one number for all."""
    match model.satisfied:
        case "pair":
            return parameters["satisfaction"][part.pair]
        case "rank":
            return parameters["satisfaction"][: len(part.pair), None]
        case "attractiveness":
            return parameters["attractiveness"][part.pair]
        case _:
            return 1.0


def _went(model: ClickModel, parameters: Parameters) -> tuple[float, float, float]:
    names = model.continuation
    values = [parameters["continuation"][names.index(one)] if isinstance(one, str) else one for one in model.go_on]
    return values[0], values[1], values[2]


def uses(model: ClickModel, part: _Part, yes: Parameters, no: Parameters) -> Iterator[_Use]:
    """Give what is expected of every parameter on every page, once its clicks are known.

    Where a click stands below, the user went on for certain. Elsewhere he went on and clicked nothing more, or stopped:
    the probability of the former follows from the bottom up, and that he looked at a result from the top down.

    Parameters
    ----------
    yes, no
        The weights of either outcome: the parameters and their complements, or what stands for them.
    """
    clicked, there = part.clicked, part.there
    skip, unsatisfied, satisfied = _went(model, yes)
    missed = np.where(there, no["attractiveness"][part.pair], 1.0)
    content, not_content = (
        _satisfying(model, part, yes),
        0.0 if model.satisfied == "always" else _satisfying(model, part, no),
    )
    on = np.where(clicked, content * satisfied + not_content * unsatisfied, np.where(there, skip, 1.0))
    off = np.where(clicked, content * (1 - satisfied) + not_content * (1 - unsatisfied), np.where(there, 1 - skip, 0.0))
    silent = np.ones((len(clicked) + 1, clicked.shape[1]))  # nothing is clicked from here on, if it is looked at
    for at in range(len(clicked) - 1, -1, -1):
        silent[at] = missed[at] * (off[at] + on[at] * silent[at + 1])
    stopped, went = np.where(part.above, 0.0, 1.0), np.where(part.above, 1.0, silent[1:])  # what is seen, given either
    seen = np.maximum(off * stopped + on * went, _TINY)
    passed = on * went / seen
    looks = np.ones_like(missed)
    np.cumprod(passed[:-1], axis=0, out=looks[1:])
    looks = np.where(there, looks, 0.0)
    yield _Use("attractiveness", part.pair, clicked * looks, looks)  # in the cascade a second click was not seen
    rated = clicked & part.followed  # below the last result nobody can go on
    happy = np.where(rated, content * ((1 - satisfied) * stopped + satisfied * went) / seen, 0.0)
    if model.satisfied != "always":
        name = "attractiveness" if model.satisfied == "attractiveness" else "satisfaction"
        place = np.arange(len(clicked))[:, None] + 0 * part.pair if model.satisfied == "rank" else part.pair
        yield _Use(name, place, happy, rated * 1.0)
    skipped = np.where(~clicked & there & part.followed, looks, 0.0)
    went_on = (
        (skipped * passed, skipped),
        (np.where(rated, not_content * unsatisfied * went / seen, 0.0), rated - happy),
        (np.where(rated, content * satisfied * went / seen, 0.0), happy),
    )
    for name, (successes, trials) in zip(model.go_on, went_on, strict=True):
        if isinstance(name, str):
            yield _Use("continuation", model.continuation.index(name), successes, trials)


def predicted(model: ClickModel, part: _Part, parameters: Parameters) -> tuple[Floats, Floats, Floats]:
    """Give the probability of every click given those above it, before any is known, and of a look given those."""
    skip, unsatisfied, satisfied = _went(model, parameters)
    alpha = np.where(part.there, parameters["attractiveness"][part.pair], 0.0)
    content = _satisfying(model, part, parameters)
    after = np.broadcast_to(content * satisfied + (1 - content) * unsatisfied, alpha.shape)
    skipped = np.where(part.there, skip, 1.0)
    given, before, looks = (np.zeros_like(alpha) for _ in range(3))
    look = likely = np.ones(alpha.shape[1])
    for at in range(len(alpha)):
        looks[at], given[at], before[at] = look, look * alpha[at], likely * alpha[at]
        unclicked = look * (1 - alpha[at]) / np.maximum(1 - look * alpha[at], _TINY)
        look = np.where(part.clicked[at], after[at], unclicked * skipped[at])
        likely = likely * ((1 - alpha[at]) * skipped[at] + alpha[at] * after[at])
    return given, before, looks
