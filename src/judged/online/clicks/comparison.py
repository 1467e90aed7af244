"""`compare_models`: which click model predicts what held-out users click, and is worth its parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import logit

from judged.errors import InputError
from judged.online.clicks.cells import patterns_of
from judged.online.clicks.fitted import looks, need_counts, unsettled
from judged.online.clicks.fitting import data_of, fit, predict
from judged.online.clicks.looked_at import MODELS, model_of
from judged.online.clicks.posteriors import totals
from judged.online.layout import UNITS, percent, sentence
from judged.online.log import LogAnswer, about, names_of, need
from judged.online.offline.concordance import UNKNOWN, Estimate, by_unit, ratio_estimate
from judged.results import COUNT, TEXT, Chart, Column, Sentences, Table, columns_of, counted, number
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.online.clicks.cells import Patterns
    from judged.online.clicks.fitting import Data, Fit
    from judged.online.clicks.looked_at import ClickModel
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats

_GROUPS = 2_000  # of predictions, by their log odds, before they are joined to bins
_LEAST_ODDS, _MOST_ODDS = -14.0, 14.0


@dataclass(frozen=True)
class ModelRow:
    """How one model does on users that it was not fitted to.

    Parameters
    ----------
    model
        Its name.
    parameters
        Probabilities that the log has something to say of.
    loglik
        Mean log-likelihood of a held-out page, in nats; NaN where some page cannot happen.
    difference
        From the best model, by page, with its interval over users.
    perplexity
        Of a click before any of the page is known: 2 to the power of the mean of -log2 of the probability of what
        happened, over held-out results; 2 is a coin, 1 is certain.
    conditional
        The same, where the clicks above are known.
    impossible
        Held-out pages that cannot happen under the model.
    iterations, converged
        Of the fit to all users.
    chosen
        It is worth its parameters, and no plainer one does as well.
    """

    model: str
    parameters: int
    loglik: float
    difference: Estimate
    perplexity: float
    conditional: float
    impossible: int
    iterations: int
    converged: bool
    chosen: bool = False


@dataclass(frozen=True)
class RankRow:
    """Perplexity of one model at one rank."""

    model: str
    rank: int
    shown: int
    perplexity: float
    conditional: float


@dataclass(frozen=True)
class ModelCalibration:
    """Held-out results by their predicted probability of a click, given the clicks above."""

    model: str
    results: int
    predicted: float
    clicked: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison(LogAnswer):
    """Click models side by side.

    Attributes
    ----------
    by : str
        The column that tells queries apart.
    folds, units, pages : int
        Parts of the users, of which each is predicted by the others; users or sessions; and pages.
    rows : tuple of ModelRow
        By held-out likelihood, best first.
    ranks : tuple of RankRow
        By model, then rank.
    calibration : tuple of ModelCalibration
        By model, then prediction.
    refused : tuple of (str, str)
        Models that cannot be fitted to this log, with the reason.
    """

    kind: ClassVar[str] = "click-models"
    answers: ClassVar[str] = "Which click model fits: {log}"
    main: ClassVar[str] = "models"
    asked: ClassVar[tuple[str, ...]] = ("by", "folds", "pages", "units")

    by: str
    folds: int
    pages: int
    units: int
    rows: tuple[ModelRow, ...]
    ranks: tuple[RankRow, ...]
    calibration: tuple[ModelCalibration, ...]
    looked: dict[str, tuple[Floats, Floats]]
    refused: tuple[tuple[str, str], ...]

    @property
    def chosen(self) -> str:
        """The model that is worth its parameters."""
        return next(row.model for row in self.rows if row.chosen)

    def facts(self) -> dict[str, Any]:
        """Give what was compared and what could not be."""
        return {**super().facts(), "chosen": self.chosen, "refused": dict(self.refused)}

    def blocks(self) -> tuple[Block, ...]:
        """Give the models, what they say of looking, how wrong they are by rank, and how far they are calibrated."""
        differences = [row.difference for row in self.rows]
        limits = [(one.low, one.high) if one.known else None for one in differences]
        exact = number(4)
        table = Table(
            "models",
            (
                *columns_of(self.rows, ("model", TEXT), ("parameters", UNITS), ("loglik", exact, "log-likelihood")),
                Column("difference", [one.value for one in differences], number(4, "+"), "from the best", limits),
                *columns_of(self.rows, ("perplexity", exact), ("conditional", exact, "clicks above known")),
                *columns_of(self.rows, ("impossible", UNITS, "impossible pages"), ("iterations", COUNT, "steps")),
                *columns_of(self.rows, "converged", "chosen"),
            ),
            note=f"log-likelihood in nats a page, of {self.unit}s that the model was not fitted to, in {self.folds}"
            f" parts; perplexity a result; {percent(self.level)} intervals over {self.unit}s",
            kinds=["chosen" if row.chosen else "" for row in self.rows],
        )
        going = [name for name in self.looked if MODELS[name].examined or MODELS[name].go_on]
        seen, shown = (tuple(self.looked[name][at] for name in going) for at in (0, 1))
        return (
            Sentences(self.sentences),
            table,
            *(looks(tuple(going), seen, shown, "How far users look") if going else ()),
            *self._by_rank(),
            *self._calibrated(),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which model is worth its parameters, and what may not be concluded."""
        best, chosen = self.rows[0], next(row for row in self.rows if row.chosen)
        units = f"{self.units:,} {self.unit}s"
        first = (
            f"{best.model} predicts the clicks of held-out {self.unit}s best, over {self.pages:,} pages of {units}: it"
            f" takes it that {MODELS[best.model].assumes}."
        )
        said = [first]
        if chosen is not best:
            low, high = chosen.difference.low, chosen.difference.high
            limits = f" [{low:+.4f}, {high:+.4f}]" if chosen.difference.known else ""
            said.append(
                f"{chosen.model} has {chosen.parameters:,} parameters in place of {best.parameters:,}, and that it"
                f" predicts less well is not shown (difference {chosen.difference.value:+.4f} a page{limits}):"
                " it is worth its parameters."
            )
        elif min(row.parameters for row in self.rows) < best.parameters:
            said.append(f"Every model with fewer parameters predicts less well: {best.model} is worth its own.")
        said += [
            f"{row.model} cannot explain {row.impossible:,} of the held-out pages, and has no likelihood."
            for row in self.rows
            if row.impossible
        ]
        said += [f"Not fitted: {sentence(why)}." for _, why in self.refused]
        said.append(
            "That a model predicts better than the others does not make its assumption true, nor what it calls"
            " attractive relevant."
        )
        return tuple(said)

    def _by_rank(self) -> tuple[Block, ...]:
        rows = self.ranks
        columns = columns_of(rows, ("model", TEXT), ("rank", COUNT), ("shown", UNITS), ("perplexity", number(4)))
        table = Table("ranks", (*columns, *columns_of(rows, ("conditional", number(4)))), labels=1, only="data")
        said = "Perplexity by rank, before any click of the page is known: 1 is certain."
        drawn = Chart(
            "perplexity", "How surprising clicks are, by rank", table, said, kind="lines", x="rank", y="perplexity",
            color="model", spread="cutoff", subtitle="perplexity of held-out clicks",
        )  # fmt: skip
        return (table, drawn)

    def _calibrated(self) -> tuple[Block, ...]:
        rows = self.calibration
        show = number(3)
        columns = (
            *columns_of(rows, ("model", TEXT), ("results", UNITS)),
            *columns_of(rows, ("predicted", show), ("clicked", show)),
        )
        table = Table("calibration", columns, labels=1, only="data")
        own = table.take([at for at, row in enumerate(rows) if row.model == self.chosen])
        said = f"Results by the predicted probability of a click, and the share clicked, of {self.chosen}."
        drawn = Chart(
            "calibration", f"Predicted and actual clicks, {self.chosen}", own, said, kind="points", x="predicted",
            y="clicked", diagonal=True, percent="xy", subtitle="held-out results in groups of equal size", height=300,
        )  # fmt: skip
        return (table, drawn)


class _Held(NamedTuple):
    """What a model says of pages that it was not fitted to: sums over folds."""

    by_unit: Floats  # (U,) log-likelihood
    impossible: float
    surprise: Floats  # (2, K): -log2 before any click is known, and given those above
    shown: Floats  # (K,)
    groups: Floats  # (3, _GROUPS): results, sums of predictions, clicks


def compare_models(
    log: InteractionLog,
    models: Sequence[str] | str | None = None,
    *,
    by: str | None = None,
    pages: Literal["first", "all"] = "first",
    where: str | None = None,
    depth: int = 10,
    folds: int = 5,
    iterations: int = 1000,
    bins: int = 10,
    unit: Literal["user", "session"] = "user",
    level: float = 0.95,
    seed: int = 0,
    progress: Callable[[str, float | None], None] | None = None,
) -> ModelComparison:
    """Fit click models to some users, predict the clicks of the others, and say which is worth its parameters.

    Parameters
    ----------
    log
        What users did.
    models
        Names of `judged.online.clicks.MODELS`, one or several; None: all.
    by, pages, where, depth
        As of `cells_of`.
    folds
        Users are cut at random into so many parts; each is predicted from the others.
    iterations
        At most so many steps a fit.
    bins
        Of the calibration.
    unit
        What is held out, and what intervals are made over: ``user`` or ``session``.
    level
        Of the intervals.
    seed
        Of the parts.
    progress
        Called with what is being done and the share of it that is done.

    Returns
    -------
    ModelComparison

    Raises
    ------
    InputError
        If there is no such model, none can be fitted, an option makes no sense, or there are too few users.

    Notes
    -----
    All models are fitted with ``shrink="empirical"``: without, one click on what was never clicked before would be
    impossible. The chosen model has the fewest parameters of those of which it is not shown, at `level`, that they
    predict worse than the best; with fewer units than a verdict requires (`judged.stats.inputs`) it is shown of
    none. A model that takes a page for impossible is never chosen.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, simulate
    >>> found = compare_models(simulate(SimulationPlan(), seed=1).log(), ["RCTR", "DCTR"], folds=2)
    >>> found.chosen
    'RCTR'
    """
    names = names_of(rules=models) if models else list(MODELS)
    chosen = [model_of(name) for name in names]
    need(unit=unit, level=level, bins=bins)
    need_counts(0, seed=seed)
    need_counts(1, iterations=iterations)
    need_counts(2, folds=folds)
    patterns = patterns_of(log, by=by, unit=unit, pages=pages, where=where, depth=depth)
    if patterns.units < folds:
        fix = "give fewer folds" if patterns.units > 1 else "take a longer log"
        fix += ", or take sessions for units (unit=session)" if unit == "user" else ""
        raise InputError(f"{log.name} has {counted(patterns.units, unit)} for {folds} parts", fix=fix)
    part = np.random.default_rng(seed).permutation(patterns.units) % folds
    held: dict[str, _Held] = {}
    fits: dict[str, tuple[Data, Fit]] = {}
    refused: list[tuple[str, str]] = []
    notes: list[Note] = []
    for at, model in enumerate(chosen):

        def tell(share: float, at: int = at, name: str = model.name) -> None:
            if progress is not None:
                progress(f"fitting {name}", (at + share) / len(chosen))

        tell(0.0)
        data = data_of(model, patterns, patterns.counts())
        try:
            data.need_connected()
        except InputError as error:
            refused.append((model.name, error.problem))
            continue
        found = fit(data, iterations=iterations)
        fits[model.name] = data, found
        notes += unsettled(found)
        held[model.name] = _held_out(model, patterns, part, folds, found, iterations, tell)
    if not held:
        raise InputError(refused[0][1], fix="take a model that needs no chain of ranks, such as DBN", path=log.name)
    given = about(log, unit, level, {"queries": f"told apart by {patterns.by}", "where": where or ""})
    given["notes"] += tuple(notes)
    rows = _rows(patterns, held, fits, level)
    return ModelComparison(
        **given, by=patterns.by, folds=folds, pages=len(patterns.pattern), units=patterns.units, rows=rows,
        ranks=tuple(row for one in rows for row in _ranks(one.model, held[one.model])),
        calibration=tuple(row for one in rows for row in _bins(one.model, held[one.model].groups, bins)),
        looked={name: data.examination(found.parameters) for name, (data, found) in fits.items()},
        refused=tuple(refused),
    )  # fmt: skip


def _held_out(
    model: ClickModel,
    patterns: Patterns,
    part: Any,
    folds: int,
    whole: Fit,
    iterations: int,
    tell: Callable[[float], None],
) -> _Held:
    """Fit a model to all parts but one in turn, beginning where all of them led, and predict that one."""
    depth = patterns.pair.shape[1]
    by_units, impossible = np.zeros(patterns.units), 0.0
    surprise, shown, groups = np.zeros((2, depth)), np.zeros(depth), np.zeros((3, _GROUPS))
    there = patterns.pair >= 0
    for fold in range(folds):
        tell((1 + fold) / (1 + folds))
        own = (part == fold) * 1.0
        found = fit(
            data_of(model, patterns, patterns.counts(1 - own)), iterations=iterations, start=whole.parameters, rounds=1
        )
        given, before = predict(model, patterns, found.parameters)
        counts = patterns.counts(own)
        with np.errstate(divide="ignore"):
            logs = [np.where(there, np.log(np.where(patterns.clicked, one, 1 - one)), 0.0) for one in (before, given)]
        pages = logs[1].sum(axis=1)
        mine = own[patterns.unit] > 0
        by_units += totals(patterns.unit[mine], pages[patterns.pattern[mine]], patterns.units)
        impossible += float(counts @ ~np.isfinite(pages))
        rows = counts > 0
        surprise -= np.stack([counts[rows] @ one[rows] for one in logs]) / np.log(2)
        shown += counts @ there
        p, weight = given[rows][there[rows]], np.broadcast_to(counts[rows, None], there[rows].shape)[there[rows]]
        odds = np.clip(logit(p), _LEAST_ODDS, _MOST_ODDS - 1e-9)
        group = ((odds - _LEAST_ODDS) / (_MOST_ODDS - _LEAST_ODDS) * _GROUPS).astype(np.int64)
        clicks = weight * patterns.clicked[rows][there[rows]]
        groups += [totals(group, one, _GROUPS) for one in (weight, weight * p, clicks)]
    return _Held(by_units, impossible, surprise, shown, groups)


def _rows(
    patterns: Patterns, held: dict[str, _Held], fits: dict[str, tuple[Data, Fit]], level: float
) -> tuple[ModelRow, ...]:
    """Put models in order, and choose one."""
    pages = by_unit(patterns.unit, np.ones(len(patterns.unit)))
    likely = {name: float(one.by_unit.sum()) / float(pages.sum()) for name, one in held.items()}
    order = sorted(held, key=lambda name: -likely[name])
    best = held[order[0]].by_unit
    made: list[ModelRow] = []
    for name in order:
        own, found = held[name], fits[name][1]
        possible = np.isfinite(likely[name])
        compared = possible and name != order[0]
        perplexity, conditional = (float(2 ** (one.sum() / own.shown.sum())) for one in own.surprise)
        row = ModelRow(
            model=name,
            parameters=_count(found),
            loglik=likely[name] if possible else float("nan"),
            difference=ratio_estimate(own.by_unit - best, pages, level, signed=True) if compared else UNKNOWN,
            perplexity=perplexity,
            conditional=conditional if possible else float("nan"),
            impossible=round(own.impossible),
            iterations=found.iterations,
            converged=found.converged,
        )
        made.append(row)
    few = insufficiency(patterns.units, "verdict") is not None
    alike = [row for row in made[1:] if not np.isnan(row.loglik) and (few or not row.difference.excludes(0.0))]
    least = min((made[0], *alike), key=lambda row: row.parameters)
    return tuple(replace(row, chosen=row is least) for row in made)


def _count(found: Fit) -> int:
    """Count the parameters that were tried at all, but for those that are fixed."""
    fixed = int(found.model.attractive and bool(found.model.examined))
    used = sum(int((trials > 0).sum()) for _, trials in found.sums.values())
    priors = 2 * sum(map(found.model.is_of_pairs, found.priors))
    return used - fixed + priors


def _ranks(name: str, held: _Held) -> list[RankRow]:
    with np.errstate(divide="ignore", invalid="ignore"):
        before, given = np.where(np.isfinite(held.surprise), 2 ** (held.surprise / held.shown), np.nan)
    return [
        RankRow(name, rank, round(shown), float(one), float(two))
        for rank, (shown, one, two) in enumerate(zip(held.shown.tolist(), before, given, strict=True), 1)
        if shown
    ]


def _bins(name: str, groups: Floats, bins: int) -> list[ModelCalibration]:
    """Join groups of neighboring predictions to bins of about equally many results."""
    results, predicted, clicks = groups
    middle = np.cumsum(results) - results / 2
    place = np.minimum((middle / results.sum() * bins).astype(int), bins - 1)
    sums = np.stack([totals(place, one, bins) for one in (results, predicted, clicks)])
    return [
        ModelCalibration(name, round(many), above / many, clicked / many)
        for many, above, clicked in sums.T.tolist()
        if many
    ]
