"""`fit_model`: one click model of a log, with what it says of documents and of how far users look."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, logit

from judged.errors import InputError
from judged.online.clicks.cells import cells_of, patterns_of
from judged.online.clicks.fitting import Fit, Shrink, data_of, fit, pair_posteriors
from judged.online.clicks.looked_at import LookedAt, model_of
from judged.online.clicks.posteriors import Posterior, totals
from judged.online.layout import UNITS, percent
from judged.online.log import LogAnswer, about, need
from judged.results import COUNT, TEXT, Chart, Column, Sentences, Table, counted, number
from judged.results.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.online.clicks.cells import Patterns
    from judged.online.clicks.fitting import Data
    from judged.online.clicks.looked_at import ClickModel
    from judged.online.clicks.posteriors import Parameters
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.results.types import Table as ArrowTable

_P = number(3)
_ROWS = 20  # pairs that people see


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelFit(LogAnswer):
    """A click model fitted to a log.

    Attributes
    ----------
    model : ClickModel
        The model, and what it takes for granted.
    by : str
        The column that tells queries apart.
    shrink : str
        ``empirical`` or ``none``.
    results, clicks : int
        What it was fitted to.
    iterations, converged : int, bool
        Steps, and whether nothing moved any more after them.
    loglik : float
        The logarithm of the probability of all clicks, over results, in nats.
    values, errors : dict of arrays
        Parameters by name, and their standard errors: ``attractiveness`` (P,) and so on.
    priors : dict
        Pseudo-clicks and pseudo-passes that values of pairs were drawn towards, by name.
    pairs : pyarrow.Table
        ``query`` and ``doc_id`` of each pair.
    shown, clicked : arrays
        (P,): pages that showed the pair, and on which it was clicked.
    looked, shown_at : arrays
        (K,): results looked at by rank, given the clicks above, and results shown.
    resamples : int
        Of users, where errors are of a bootstrap; 0: they are of observed information.
    posteriors : dict of Posterior
        What is known of parameters of pairs, by name; none of a bootstrap.
    """

    kind: ClassVar[str] = "click-model"
    answers: ClassVar[str] = "{model.name}, {model.title}: {log}"
    main: ClassVar[str] = "attractiveness"
    asked: ClassVar[tuple[str, ...]] = (
        "by", "shrink", "results", "clicks", "iterations", "converged", "loglik", "resamples",
    )  # fmt: skip

    model: ClickModel
    by: str
    shrink: Shrink
    results: int
    clicks: int
    iterations: int
    converged: bool
    loglik: float
    values: Parameters
    errors: Parameters
    priors: dict[str, tuple[float, float]]
    pairs: ArrowTable
    shown: Floats
    clicked: Floats
    looked: Floats
    shown_at: Floats
    resamples: int
    posteriors: dict[str, Posterior] = field(default_factory=dict[str, Posterior])

    def facts(self) -> dict[str, Any]:
        """Give the model, and how it was fitted."""
        priors = {name: {"clicks": a, "passes": b} for name, (a, b) in self.priors.items()}
        about_it = {name: getattr(self.model, name) for name in ("name", "title", "source", "assumes")}
        return {**super().facts(), "model": about_it, "priors": priors}

    def blocks(self) -> tuple[Block, ...]:
        """Give how far users look, what all pages share, the pairs that are shown most, and what that says."""
        pairs = self._pairs()
        most = np.argsort(-self.shown, kind="stable")[:_ROWS].tolist()
        shared = self._shared()
        return (
            Sentences(self.sentences),
            *(self._looks() if self.model.examined or self.model.go_on else ()),
            *((shared,) if len(shared) else ()),
            *((Table(pairs.name, pairs.columns, only="data"), self._most(pairs.take(most))) if self._own() else ()),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was fitted to what, on which scale, and how sure it is."""
        rate = self.clicks / self.results
        fitted = (
            f"{self.model.name} takes it that {self.model.assumes}. It was fitted to {self.results:,} results of"
            f" {len(self.pairs):,} pairs of query ({self.by}) and document, {rate:.1%} of them clicked, in"
            f" {counted(self.iterations, 'step')}; the log-likelihood is {self.loglik:.4f} a result."
        )
        said = [fitted]
        if self.model.attractive and self.model.examined:
            said.append(
                "Clicks tell only the product of both: attractiveness is the probability of a click on what is looked"
                " at as often as the topmost rank, whose examination is 1."
            )
        for name in filter(self.priors.get, self._own()):
            a, b = self.priors[name]
            said.append(
                f"Values of {name} are drawn towards {a / (a + b):.3f} as by {a + b:.1f} pages more of each pair"
                " (empirical Bayes)."
            )
        if self.priors:
            said.append("What all pages share is drawn towards its mean as by one trial more.")
        level = percent(self.level)
        if self.resamples:
            how = f"a bootstrap of {self.unit}s ({self.resamples} resamples), on the scale of log odds"
            return (*said, f"{level} intervals are of {how}.")
        common = "are of observed information"
        if self.posteriors:
            prior = (
                "the fitted prior" if self.priors else "the prior of Jeffreys, if they were tried five times or more"
            )
            common = (
                f"of pairs are of their posterior distribution with {prior}; those of what all pages share {common}"
            )
        return (*said, f"{level} intervals {common}.", "Both take pages for independent, and the model for right.")

    def _own(self) -> list[str]:
        return list(filter(self.model.is_of_pairs, self.values))

    def limits(self, name: str) -> list[tuple[float, float] | None]:
        """Return the intervals of a parameter; None where too little is known."""
        if name in self.posteriors:
            low, high = self.posteriors[name].low, self.posteriors[name].high
        else:
            low, high = logit_interval(self.values[name], self.errors[name], self.level)
        return [
            None if math.isnan(start) else (start, end) for start, end in zip(low.tolist(), high.tolist(), strict=True)
        ]

    def _pairs(self) -> Table:
        """Lay out what is known of every pair."""
        columns = [Column(name, self.pairs[name].to_pylist(), TEXT) for name in ("query", "doc_id")]
        columns += [
            Column("shown", self.shown.astype(int).tolist(), COUNT),
            Column("clicks", self.clicked.astype(int).tolist(), COUNT),
        ]
        for name in self._own():
            key = "value" if name == "attractiveness" else name
            columns.append(Column(key, self.values[name].tolist(), _P, name, self.limits(name)))
            columns.append(Column("se" if key == "value" else f"{key}_se", self.errors[name].tolist(), _P, only="data"))
        return Table("attractiveness", tuple(columns), labels=2)

    def _most(self, pairs: Table) -> Table:
        """Show the pairs that are shown most."""
        more = len(self.pairs) - len(pairs)
        note = f"the pairs shown most; {more:,} more in the other forms" if more > 0 else ""
        return Table("shown_most", pairs.columns, "By query and document", note, labels=2, only="people")

    def _shared(self) -> Table:
        """Lay out the parameters that all pages share, those in use."""
        rows: list[tuple[str, int | None, int | None, float, float, tuple[float, float] | None]] = []
        for name, values in self.values.items():
            if self.model.is_of_pairs(name):
                continue
            named = self.model.continuation if name == "continuation" else ()
            limits = self.limits(name)
            for at, (value, error) in enumerate(zip(values.tolist(), self.errors[name].tolist(), strict=True)):
                rank, last = (at, None) if not named else (None, None)
                if name == "examination" and self.model.examined == "rank and last click":
                    rank, last = divmod(at, len(self.looked) + 1)
                    if last > rank or self.shown_at[rank] == 0:
                        continue
                label = f"goes on: {named[at]}" if named else name
                rows.append((label, None if rank is None else rank + 1, last, value, error, limits[at]))
        kind, rank, last, value, error, limits = (list(one) for one in zip(*rows, strict=True)) if rows else [[]] * 6
        columns = [Column("parameter", kind, TEXT)]
        columns += [Column("rank", rank, COUNT)] if any(one is not None for one in rank) else []
        columns += [Column("last_click", last, COUNT, "last click")] if any(one is not None for one in last) else []
        columns += [Column("value", value, _P, ci=limits), Column("se", error, _P, only="data")]
        return Table("parameters", tuple(columns), "What all pages share", labels=1)

    def _looks(self) -> tuple[Block, ...]:
        """Draw how many of the results at each rank are looked at."""
        return looks((self.model.name,), (self.looked,), (self.shown_at,), self.title)


def looks(
    names: tuple[str, ...], looked: tuple[Floats, ...], shown: tuple[Floats, ...], title: str
) -> tuple[Block, ...]:
    """Lay out and draw how many results models say are looked at, by rank."""
    rows = [
        (name, rank, of, many / of)
        for name, seen, there in zip(names, looked, shown, strict=True)
        for rank, (many, of) in enumerate(zip(seen.tolist(), there.tolist(), strict=True), 1)
        if of
    ]
    model, rank, of, share = (list(one) for one in zip(*rows, strict=True))
    columns = (
        Column("model", model, TEXT, only="" if len(names) > 1 else "data"), Column("rank", rank, COUNT),
        Column("shown", of, UNITS), Column("looked_at", share, _P, "looked at"),
    )  # fmt: skip
    table = Table("examination", columns, "How much is looked at", labels=1, only="" if len(names) == 1 else "data")
    said = "The share of results that are looked at, by rank, given the clicks above: what the models say."
    drawn = Chart(
        "looks", title, table, said, kind="lines", x="rank", y="looked_at", color="model" if len(names) > 1 else "",
        y_title="looked at", spread="cutoff", from_zero=True, reach={"y": (0.0, 1.0)}, subtitle="results looked at",
        numbers=table,
    )  # fmt: skip
    return (table, drawn)


def fit_model(
    log: InteractionLog,
    model: str = "UBM",
    *,
    by: str | None = None,
    shrink: Shrink = "empirical",
    pages: Literal["first", "all"] = "first",
    where: str | None = None,
    depth: int = 10,
    iterations: int = 1000,
    resamples: int = 0,
    seed: int = 0,
    unit: Literal["user", "session"] = "user",
    level: float = 0.95,
    progress: Callable[[str, float | None], None] | None = None,
) -> ModelFit:
    """Fit a click model to a log.

    Parameters
    ----------
    log
        What users did.
    model
        A name of `judged.online.clicks.MODELS`: ``RCTR``, ``DCTR``, ``PBM``, ``CM``, ``DCM``, ``CCM``, ``UBM``,
        ``DBN``, ``SDBN``.
    by, pages, where, depth
        As of `cells_of`.
    shrink
        ``empirical``: attractiveness and satisfaction of pairs that are seldom shown are drawn towards a beta
        distribution that is fitted to all pairs; ``none``: every pair stands for itself (maximum likelihood).
    iterations
        At most so many steps; a fit that has not settled then has a note.
    resamples
        Of users, for standard errors by bootstrap; 0: by observed information.
    seed
        Of the bootstrap.
    unit
        What the bootstrap draws: ``user`` or ``session``.
    level
        Of the intervals.
    progress
        Called with what is being done and the share of it that is done.

    Returns
    -------
    ModelFit

    Raises
    ------
    InputError
        If there is no such model, an option makes no sense, the log has no clicks at ranks, or ranks share no results,
        so that nothing tells how much more one is looked at than another.

    Notes
    -----
    Expectation maximization with exact expectations (docs/click-models.md). All values are probabilities. A model that
    fits is no proof that users do as it says: `compare_models` tells which predicts best.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, simulate
    >>> found = fit_model(simulate(SimulationPlan(), seed=1).log(), "DBN")
    >>> found.converged, found.by, sorted(found.values)
    (True, 'query_norm', ['attractiveness', 'continuation', 'satisfaction'])
    """
    chosen = model_of(model)
    need(unit=unit, level=level, depth=depth)
    need_counts(1, iterations=iterations)
    need_counts(0, seed=seed)
    if resamples:
        need(resamples=resamples)
    if shrink not in {"empirical", "none"}:
        raise InputError(f"shrink is {shrink!r:.60}", fix="take empirical or none")
    tell = None if progress is None else lambda share: progress(f"fitting {chosen.name}", share)
    common: dict[str, Any] = {"by": by, "pages": pages, "where": where, "depth": depth}
    patterns: Patterns | None = None
    if chosen.go_on or resamples:
        patterns = patterns_of(log, unit=unit, **common)
        data, column, pairs = data_of(chosen, patterns, patterns.counts()), patterns.by, patterns.pairs
        shown, clicked = _by_pair(patterns)
    else:
        cells = cells_of(log, last=chosen.examined == "rank and last click", **common)
        data, column, pairs = LookedAt.of_cells(chosen, cells), cells.by, cells.pairs
        shown, clicked = (totals(cells.pair, one, len(cells.pairs)) for one in (cells.shown, cells.clicked))
    if not clicked.any():
        raise InputError(f"nothing is clicked on the pages of {log.name} that count", fix="count other pages")
    data.need_connected()
    found = fit(data, shrink=shrink, iterations=iterations, tell=tell)
    posteriors: dict[str, Posterior] = {}
    if patterns is not None and resamples:
        errors = _resampled(found, patterns, shrink, resamples, seed, progress)
    else:
        posteriors = pair_posteriors(data, found, level)
        errors = data.information(found.parameters).errors(found.parameters, found.priors)
        errors |= {name: known.sd for name, known in posteriors.items()}
    given = about(log, unit, level, {"queries": f"told apart by {column}", "where": where or ""})
    given["notes"] += unsettled(found)
    looked, shown_at = data.examination(found.parameters)
    return ModelFit(
        **given, model=chosen, by=column, shrink=shrink, results=int(shown.sum()), clicks=int(clicked.sum()),
        iterations=found.iterations, converged=found.converged, values=found.parameters, errors=errors,
        loglik=data.loglik(found.parameters) / float(shown.sum()), priors=found.priors, pairs=pairs, shown=shown,
        clicked=clicked, looked=looked, shown_at=shown_at, resamples=resamples, posteriors=posteriors,
    )  # fmt: skip


def logit_interval(value: Floats, error: Floats, level: float) -> tuple[Floats, Floats]:
    """Return intervals that are symmetric on the scale of log odds; NaN at 0 and at 1, and where there is no error.

    >>> [round(float(end[0]), 3) for end in logit_interval(np.array([0.2]), np.array([0.05]), 0.95)]
    [0.119, 0.316]
    """
    known = (value > 0) & (value < 1) & np.isfinite(error)
    inside = np.where(known, value, 0.5)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.where(known, error, 0.0) / (inside * (1 - inside))
    low, high = (np.where(known, expit(logit(inside) + side * half), np.nan) for side in (-1, 1))
    return low, high


def unsettled(found: Fit) -> tuple[Note, ...]:
    """Say that a fit has not converged, where it has not."""
    if found.converged:
        return ()
    text = f"not converged: after {found.iterations} steps a probability still moves by {found.moved:.1g} a step"
    return (Note("not-converged", text, found.model.name, found.moved, of="models"),)


def need_counts(least: int, **given: Any) -> None:
    """Refuse what is no whole number, or less than it may be."""
    for name, value in given.items():
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} is {value!r:.60}", fix=f"give a whole number, {least} or more")


def _by_pair(patterns: Patterns) -> tuple[Floats, Floats]:
    """Count the pages that show every pair, and those on which it is clicked."""
    there, counts = patterns.pair >= 0, patterns.counts()
    weight, pair = np.broadcast_to(counts[:, None], there.shape)[there], patterns.pair[there]
    shown, clicked = (totals(pair, one, len(patterns.pairs)) for one in (weight, weight * patterns.clicked[there]))
    return shown, clicked


def _resampled(found: Fit, patterns: Patterns, shrink: Shrink, resamples: int, seed: int, progress: Any) -> Parameters:
    """Fit the model to users drawn with replacement, and give the spread of its parameters."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[Floats]] = {name: [] for name in found.parameters}
    for at in range(resamples):
        if progress is not None:
            progress(f"bootstrap of {found.model.name}", at / resamples)
        times: Ints = rng.multinomial(patterns.units, np.full(patterns.units, 1 / patterns.units))
        data: Data = data_of(found.model, patterns, patterns.counts(times.astype(float)))
        for name, values in fit(
            data, shrink=shrink, iterations=200, start=found.parameters, rounds=1
        ).parameters.items():
            drawn[name].append(values)
    return {name: np.std(values, axis=0, ddof=1) for name, values in drawn.items()}
