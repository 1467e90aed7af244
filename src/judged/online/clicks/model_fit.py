"""`fit_model`: a click model fitted to a log: attractiveness of documents and examination of ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, logit

from judged.errors import InputError
from judged.online.clicks.fitting import Fit, Shrink, build_data, fit, pair_posteriors
from judged.online.clicks.impression_counts import count_impressions, count_page_patterns
from judged.online.clicks.posteriors import PairPosterior, totals
from judged.online.clicks.rank_models import RankModelCounts, model_of
from judged.online.layout import UNITS, percent
from judged.online.log import LogAnswer, answer_fields, validate
from judged.results import COUNT, TEXT, Chart, Column, Sentences, Table, counted, number
from judged.results.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.online.clicks.fitting import PageData
    from judged.online.clicks.impression_counts import PagePatterns
    from judged.online.clicks.posteriors import Parameters
    from judged.online.clicks.rank_models import ClickModel
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.results.types import Table as ArrowTable

_THREE = number(3)
_MAX_ROWS = 20  # pairs in text output


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelFit(LogAnswer):
    """A click model fitted to a log.

    Attributes
    ----------
    model : ClickModel
        Click model.
    by : str
        Column that identifies queries.
    shrink : str
        ``empirical`` or ``none``.
    results, clicks : int
        Numbers of impressions and clicks.
    iterations, converged : int, bool
        Number of EM steps, and whether the last one changed nothing.
    loglik : float
        Log-likelihood per impression, in nats.
    values, errors : dict of arrays
        Parameters and standard errors by name: ``attractiveness`` (P,) and so on.
    priors : dict
        Pseudo-successes and pseudo-failures of beta priors by name.
    pairs : pyarrow.Table
        ``query`` and ``doc_id`` of each pair.
    impressions, pair_clicks : arrays
        (P,), pages with the pair, and pages on which it was clicked.
    examinations, rank_impressions : arrays
        (K,), expected examinations (given the clicks above) and impressions by rank.
    resamples : int
        Bootstrap samples of units; 0: standard errors from the observed information.
    posteriors : dict of PairPosterior
        Posteriors of pair parameters by name; empty with a bootstrap.
    """

    kind: ClassVar[str] = "click-model"
    title_format: ClassVar[str] = "{model.name}, {model.title}: {log}"
    main: ClassVar[str] = "attractiveness"
    fact_fields: ClassVar[tuple[str, ...]] = (
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
    impressions: Floats
    pair_clicks: Floats
    examinations: Floats
    rank_impressions: Floats
    resamples: int
    posteriors: dict[str, PairPosterior] = field(default_factory=dict[str, PairPosterior])

    def facts(self) -> dict[str, Any]:
        """Return the facts of the fit, with the model and the priors."""
        priors = {name: {"pseudo_clicks": a, "pseudo_skips": b} for name, (a, b) in self.priors.items()}
        model_facts = {name: getattr(self.model, name) for name in ("name", "title", "source", "assumption")}
        return {**super().facts(), "model": model_facts, "priors": priors}

    def blocks(self) -> tuple[Block, ...]:
        """Return examination by rank, shared parameters, and the pairs with most impressions."""
        pair_table = self._pair_table()
        top_rows = np.argsort(-self.impressions, kind="stable")[:_MAX_ROWS].tolist()
        all_pairs = Table(pair_table.name, pair_table.columns, only="data")
        pair_blocks = all_pairs, self._top_pairs_table(pair_table.take(top_rows))
        shared_table = self._shared_table()
        return (
            Sentences(self.sentences),
            *(self._examination_blocks() if self.model.examined or self.model.continuation_probabilities else ()),
            *((shared_table,) if len(shared_table) else ()),
            *(pair_blocks if self._pair_parameters() else ()),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Data, model, scale, and source of the intervals."""
        rate = self.clicks / self.results
        summary = (
            f"{self.model.name} assumes that {self.model.assumption}. {self.model.name} was fitted to"
            f" {self.results:,} impressions ({rate:.1%} clicked) of {len(self.pairs):,} pairs of query"
            f" ({self.by}) and document, in {counted(self.iterations, 'EM step')}. The"
            f" log-likelihood per impression is {self.loglik:.4f}."
        )
        sentences = [summary]
        if self.model.attractive and self.model.examined:
            sentences.append(
                "Clicks identify only the product of attractiveness and examination. Attractiveness is the click"
                " probability"
                " at the first rank, whose examination is fixed at 1."
            )
        for name in filter(self.priors.get, self._pair_parameters()):
            a, b = self.priors[name]
            sentences.append(
                f"Values of {name} are shrunk toward {a / (a + b):.3f}, as if each pair had {a + b:.1f} more trials"
                f" with this mean (empirical Bayes)."
            )
        if self.priors:
            sentences.append(
                "Parameters that all pairs share, such as examination (one value per rank) or continuation, are shrunk"
                " toward the mean of all values of the same parameter, with the weight of one trial."
            )
        level = percent(self.level)
        if self.resamples:
            method = f"a bootstrap of {self.unit}s ({self.resamples} resamples), on the logit scale"
            return (*sentences, f"{level} CIs come from {method}.")
        source = "come from the observed information"
        if self.posteriors:
            jeffreys = "the Jeffreys prior; pairs with fewer than five trials have no CI"
            prior_name = "the fitted prior" if self.priors else jeffreys
            source = (
                f"of shared parameters {source}. {level} CIs of pair parameters come from the posterior distribution"
                f" with {prior_name}"
            )
        return (
            *sentences,
            f"{level} CIs {source}.",
            "All CIs assume that pages are independent and that the model is correct.",
        )

    def _pair_parameters(self) -> list[str]:
        return list(filter(self.model.is_of_pairs, self.values))

    def intervals(self, name: str) -> list[tuple[float, float] | None]:
        """Return the intervals of a parameter, with None for pairs with too few data."""
        if name in self.posteriors:
            low, high = self.posteriors[name].low, self.posteriors[name].high
        else:
            low, high = logit_interval(self.values[name], self.errors[name], self.level)
        limits = zip(low.tolist(), high.tolist(), strict=True)
        return [None if math.isnan(lower) else (lower, upper) for lower, upper in limits]

    def _pair_table(self) -> Table:
        columns = [Column(name, self.pairs[name].to_pylist(), TEXT) for name in ("query", "doc_id")]
        columns.append(Column("shown", self.impressions.astype(int).tolist(), COUNT, "impressions"))
        columns.append(Column("clicks", self.pair_clicks.astype(int).tolist(), COUNT))
        for name in self._pair_parameters():
            key = "value" if name == "attractiveness" else name
            error_key = "se" if key == "value" else f"{key}_se"
            columns.append(Column(key, self.values[name].tolist(), _THREE, name, self.intervals(name)))
            columns.append(Column(error_key, self.errors[name].tolist(), _THREE, only="data"))
        return Table("attractiveness", tuple(columns), labels=2)

    def _top_pairs_table(self, pairs: Table) -> Table:
        n_more = len(self.pairs) - len(pairs)
        note = (
            f"The pairs with the most impressions. CSV and JSON contain {counted(n_more, 'more pair')}."
            if n_more > 0
            else ""
        )
        return Table("top_pairs", pairs.columns, "By query and document", note, labels=2, only="people")

    def _shared_table(self) -> Table:
        rows: list[tuple[str, int | None, int | None, float, float, tuple[float, float] | None]] = []
        for name, values in self.values.items():
            if self.model.is_of_pairs(name):
                continue
            continuation_names = self.model.continuation_names if name == "continuation" else ()
            intervals = self.intervals(name)
            for i, (value, error) in enumerate(zip(values.tolist(), self.errors[name].tolist(), strict=True)):
                row, last_click = (i, None) if not continuation_names else (None, None)
                if name == "examination" and self.model.examined == "rank and last click":
                    row, last_click = divmod(i, len(self.examinations) + 1)
                    # A last click is above the result, and unused ranks have no parameter.
                    if last_click > row or self.rank_impressions[row] == 0:
                        continue
                label = f"continuation {continuation_names[i]}" if continuation_names else name
                rows.append((label, None if row is None else row + 1, last_click, value, error, intervals[i]))
        labels, ranks, last_clicks, values, errors, intervals = map(list, zip(*rows, strict=True)) if rows else [[]] * 6
        columns = [Column("parameter", labels, TEXT)]
        columns += [Column("rank", ranks, COUNT)] if any(rank is not None for rank in ranks) else []
        if any(last_click is not None for last_click in last_clicks):
            columns.append(Column("last_click", last_clicks, COUNT, "last click"))
        columns += [Column("value", values, _THREE, ci=intervals), Column("se", errors, _THREE, only="data")]
        return Table("parameters", tuple(columns), "Shared parameters", labels=1)

    def _examination_blocks(self) -> tuple[Block, ...]:
        return examination_blocks((self.model.name,), (self.examinations,), (self.rank_impressions,), self.title)


def examination_blocks(
    names: tuple[str, ...], examinations: tuple[Floats, ...], impressions: tuple[Floats, ...], title: str
) -> tuple[Block, ...]:
    """Return a table and a chart of the share of examined results by model and rank."""
    rows = [
        (name, rank, total, examined / total)
        for name, examined_by_rank, total_by_rank in zip(names, examinations, impressions, strict=True)
        for rank, (examined, total) in enumerate(zip(examined_by_rank.tolist(), total_by_rank.tolist(), strict=True), 1)
        if total
    ]
    models, ranks, impression_counts, shares = map(list, zip(*rows, strict=True))
    columns = (
        Column("model", models, TEXT, only="" if len(names) > 1 else "data"), Column("rank", ranks, COUNT),
        Column("shown", impression_counts, UNITS, "impressions"), Column("examined", shares, _THREE),
    )  # fmt: skip
    table = Table("examination", columns, "Examination by rank", labels=1, only="" if len(names) == 1 else "data")
    description = "Estimated share of results that users examine, by rank, given the clicks on higher ranks."
    chart = Chart(
        "examination_by_rank", title, table, description, kind="lines", x="rank", y="examined",
        color="model" if len(names) > 1 else "", y_title="examined", spread="cutoff", from_zero=True,
        includes={"y": (0.0, 1.0)}, subtitle="share of examined results",
        numbers=table,
    )  # fmt: skip
    return (table, chart)


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
        Interaction log.
    model
        Name in `judged.online.clicks.MODELS`: ``RCTR``, ``DCTR``, ``PBM``, ``CM``, ``DCM``, ``CCM``, ``UBM``,
        ``DBN``, ``SDBN``.
    by, pages, where, depth
        As in `count_impressions`.
    shrink
        ``empirical``: attractiveness and satisfaction of pairs with few impressions are shrunk toward a beta prior
        that is fitted to all pairs; ``none``: maximum likelihood.
    iterations
        Maximum number of EM steps. A note reports a fit that has not converged.
    resamples
        Bootstrap samples for standard errors; 0: from the observed information.
    seed
        Seed of the bootstrap.
    unit
        Unit of the bootstrap: ``user`` or ``session``.
    level
        Confidence level of the intervals.
    progress
        Called with a description and the completed fraction.

    Returns
    -------
    ModelFit

    Raises
    ------
    InputError
        If the model is unknown, an option is invalid, the log has no clicks at ranks, or the examination of ranks is
        not identified because they share no clicked results.

    Notes
    -----
    Fitted by expectation maximization with exact expectations (docs/click-models.md). All values are probabilities. A
    converged fit does not show that the model is adequate: use `compare_models` to compare predictions.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, simulate
    >>> dbn = fit_model(simulate(SimulationPlan(), seed=1).log(), "DBN")
    >>> dbn.converged, dbn.by, sorted(dbn.values)
    (True, 'query_norm', ['attractiveness', 'continuation', 'satisfaction'])
    """
    click_model = model_of(model)
    validate(unit=unit, level=level, depth=depth)
    check_integers(1, iterations=iterations)
    check_integers(0, seed=seed)
    if resamples:
        validate(resamples=resamples)
    if shrink not in {"empirical", "none"}:
        raise InputError(f"`shrink` must be empirical or none, got {shrink!r:.60}", fix="use shrink=empirical")
    report = None if progress is None else lambda share: progress(f"fitting {click_model.name}", share)
    selection: dict[str, Any] = {"by": by, "pages": pages, "where": where, "depth": depth}
    patterns: PagePatterns | None = None
    # Cascade models and the bootstrap need whole pages; the other models need only cells, which are fewer.
    if click_model.continuation_probabilities or resamples:
        patterns = count_page_patterns(log, unit=unit, **selection)
        data, query_column, pairs = build_data(click_model, patterns, patterns.counts()), patterns.by, patterns.pairs
        impressions, clicks = _pair_counts(patterns)
    else:
        cells = count_impressions(log, by_last_click=click_model.examined == "rank and last click", **selection)
        data, query_column, pairs = RankModelCounts.of_cells(click_model, cells), cells.by, cells.pairs
        impressions = totals(cells.pair, cells.impressions, len(pairs))
        clicks = totals(cells.pair, cells.clicks, len(pairs))
    if not clicks.any():
        raise InputError(
            f"the selected pages of {log.name} have no clicks", fix="select other pages with `where` or `pages`"
        )
    data.check_connected()
    fitted = fit(data, shrink=shrink, iterations=iterations, report=report)
    posteriors: dict[str, PairPosterior] = {}
    if patterns is not None and resamples:
        errors = _bootstrap_errors(fitted, patterns, shrink, resamples, seed, progress)
    else:
        posteriors = pair_posteriors(data, fitted, level)
        errors = data.information(fitted.parameters).standard_errors(fitted.parameters, fitted.priors)
        errors |= {name: posterior.sd for name, posterior in posteriors.items()}
    fields = answer_fields(log, unit, level, {"queries": f"identified by {query_column}", "where": where or ""})
    fields["notes"] += convergence_notes(fitted)
    examinations, rank_impressions = data.examination_counts(fitted.parameters)
    return ModelFit(
        **fields, model=click_model, by=query_column, shrink=shrink, results=int(impressions.sum()),
        clicks=int(clicks.sum()), iterations=fitted.iterations, converged=fitted.converged, values=fitted.parameters,
        errors=errors, loglik=data.log_likelihood(fitted.parameters) / float(impressions.sum()), priors=fitted.priors,
        pairs=pairs, impressions=impressions, pair_clicks=clicks, examinations=examinations,
        rank_impressions=rank_impressions, resamples=resamples, posteriors=posteriors,
    )  # fmt: skip


def logit_interval(value: Floats, error: Floats, level: float) -> tuple[Floats, Floats]:
    """Return intervals that are symmetric on the logit scale; NaN at 0 and 1, and without a standard error.

    >>> [round(float(end[0]), 3) for end in logit_interval(np.array([0.2]), np.array([0.05]), 0.95)]
    [0.119, 0.316]
    """
    # The logit and its standard error se / (p (1 - p)) are undefined at 0 and 1.
    is_defined = (value > 0) & (value < 1) & np.isfinite(error)
    p = np.where(is_defined, value, 0.5)
    half_width = NormalDist().inv_cdf((1 + level) / 2) * np.where(is_defined, error, 0.0) / (p * (1 - p))
    low, high = (np.where(is_defined, expit(logit(p) + sign * half_width), np.nan) for sign in (-1, 1))
    return low, high


def convergence_notes(fitted: Fit) -> tuple[Note, ...]:
    """Return a note if the fit has not converged."""
    if fitted.converged:
        return ()
    change = f"{fitted.last_change:.1g}"
    text = f"the fit has not converged: the last of {fitted.iterations} steps changed a probability by {change}"
    return (Note("not-converged", text, fitted.model.name, fitted.last_change, of="models"),)


def check_integers(minimum: int, **values: Any) -> None:
    """Raise InputError if a value is not an integer of at least `minimum`."""
    for name, value in values.items():
        if not isinstance(value, int) or value < minimum:
            problem = f"`{name}` must be an integer of at least {minimum}, got {value!r:.60}"
            raise InputError(problem, fix=f"use {name}={minimum} or more")


def _pair_counts(patterns: PagePatterns) -> tuple[Floats, Floats]:
    """Return the pages with each pair, and the pages on which it was clicked."""
    has_result, counts = patterns.pair >= 0, patterns.counts()
    weights, pair = np.broadcast_to(counts[:, None], has_result.shape)[has_result], patterns.pair[has_result]
    clicks = totals(pair, weights * patterns.clicked[has_result], len(patterns.pairs))
    return totals(pair, weights, len(patterns.pairs)), clicks


def _bootstrap_errors(
    fitted: Fit, patterns: PagePatterns, shrink: Shrink, resamples: int, seed: int, progress: Any
) -> Parameters:
    """Return bootstrap standard errors of the parameters over users."""
    rng = np.random.default_rng(seed)
    samples: dict[str, list[Floats]] = {name: [] for name in fitted.parameters}
    for i in range(resamples):
        if progress is not None:
            progress(f"bootstrap of {fitted.model.name}", i / resamples)
        # A bootstrap sample of users is a vector of counts: pages need not be copied.
        unit_counts: Ints = rng.multinomial(patterns.n_units, np.full(patterns.n_units, 1 / patterns.n_units))
        data: PageData = build_data(fitted.model, patterns, patterns.counts(unit_counts.astype(float)))
        for name, values in fit(
            data, shrink=shrink, iterations=200, start=fitted.parameters, prior_rounds=1
        ).parameters.items():
            samples[name].append(values)
    return {name: np.std(values, axis=0, ddof=1) for name, values in samples.items()}
