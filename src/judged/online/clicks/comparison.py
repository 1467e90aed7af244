"""`compare_models`: cross-validated comparison of click models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import logit

from judged.errors import InputError
from judged.online.clicks.fitting import build_data, fit, predict
from judged.online.clicks.impression_counts import count_page_patterns
from judged.online.clicks.model_fit import check_integers, convergence_notes, examination_blocks
from judged.online.clicks.posteriors import totals
from judged.online.clicks.rank_models import MODELS, model_of
from judged.online.layout import UNITS, clip_words, percent
from judged.online.log import LogAnswer, answer_fields, parse_names, validate
from judged.online.offline.concordance import NO_ESTIMATE, IntervalEstimate, ratio_estimate, unit_sums
from judged.results import COUNT, TEXT, Axis, Chart, Column, Headline, Sentences, Table, columns_of, counted, number
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.online.clicks.fitting import Fit, PageData
    from judged.online.clicks.impression_counts import PagePatterns
    from judged.online.clicks.rank_models import ClickModel
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats

_N_GROUPS = 2_000  # fine groups of predictions by logit, merged to calibration bins at the end
_MIN_LOGIT, _MAX_LOGIT = -14.0, 14.0


@dataclass(frozen=True)
class ModelRow:
    """Performance of one model on held-out users.

    Parameters
    ----------
    model
        Name of the model.
    parameters
        Number of identified parameters.
    loglik
        Mean log-likelihood of a held-out page, in nats; NaN if a page is impossible.
    difference
        Log-likelihood minus that of the best model, per page, with its interval over users.
    perplexity
        2 to the power of the mean of -log2 p over held-out results, for the marginal probability p of the observed
        click or skip. 1 is perfect, 2 is a coin flip.
    conditional
        Perplexity of conditional probabilities given the clicks above.
    impossible
        Number of held-out pages with probability 0 under the model.
    iterations, converged
        Steps and convergence of the fit to all users.
    selected
        Whether it is the model with the fewest parameters that is not shown to be worse than the best.
    """

    model: str
    parameters: int
    loglik: float
    difference: IntervalEstimate
    perplexity: float
    conditional: float
    impossible: int
    iterations: int
    converged: bool
    selected: bool = False


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
    """Held-out results by conditional click probability."""

    model: str
    results: int
    predicted: float
    clicked: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison(LogAnswer):
    """Cross-validated comparison of click models.

    Attributes
    ----------
    by : str
        Column that identifies queries.
    folds, units, pages : int
        Number of folds, of users or sessions, and of pages.
    rows : tuple of ModelRow
        Models by held-out likelihood, best first.
    ranks : tuple of RankRow
        By model, then rank.
    calibration : tuple of ModelCalibration
        By model, then prediction.
    refused : tuple of (str, str)
        Models that cannot be fitted to this log, and the reasons.
    """

    kind: ClassVar[str] = "click-models"
    title_format: ClassVar[str] = "Comparison of click models: {log}"
    main: ClassVar[str] = "models"
    fact_fields: ClassVar[tuple[str, ...]] = ("by", "folds", "pages", "units")

    by: str
    folds: int
    pages: int
    units: int
    rows: tuple[ModelRow, ...]
    ranks: tuple[RankRow, ...]
    calibration: tuple[ModelCalibration, ...]
    examination: dict[str, tuple[Floats, Floats]]
    refused: tuple[tuple[str, str], ...]

    @property
    def selected(self) -> str:
        """Name of the selected model."""
        return next(row.model for row in self.rows if row.selected)

    @property
    def headline(self) -> Headline:
        """Selected model, and its perplexity."""
        row = next(row for row in self.rows if row.selected)
        if missing := insufficiency(self.units, "verdict"):
            sentence = f"A selection requires at least {missing.required:g} {self.unit}s, got {self.units}."
            return Headline("unknown", "not enough data", sentence)
        models = "models that do not predict significantly worse than the best"
        sentence = f"{row.model} has the fewest parameters of all {models}."
        label = f"perplexity of {row.model} (1: perfect, 2: coin flip)"
        return Headline("info", f"selected: {row.model}", sentence, label, row.perplexity, number(4))

    def facts(self) -> dict[str, Any]:
        """Return the facts of the comparison, with the chosen and refused models."""
        return {**super().facts(), "selected": self.selected, "refused": dict(self.refused)}

    def blocks(self) -> tuple[Block, ...]:
        """Return the models, examination by rank, perplexity by rank, and calibration."""
        differences = [row.difference for row in self.rows]
        limits = [estimate.interval for estimate in differences]
        four = number(4)
        values = [estimate.value for estimate in differences]
        columns = (
            *columns_of(self.rows, ("model", TEXT), ("parameters", UNITS), ("loglik", four, "log-likelihood")),
            Column(
                "difference",
                values,
                number(4, "+"),
                "difference from best",
                limits,
                axis=Axis.over(values, limits, f"{percent(self.level)} CI", 0.0),
            ),
            *columns_of(self.rows, ("perplexity", four), ("conditional", four, "conditional perplexity")),
            *columns_of(
                self.rows, ("impossible", UNITS, "pages with probability 0"), ("iterations", COUNT, "EM steps")
            ),
            *columns_of(self.rows, "converged", "selected"),
        )
        table = Table(
            "models", columns,
            note=f"Log-likelihood in nats per page and perplexity per result, from {self.folds}-fold cross-validation"
            " over"
            f" {self.unit}s. For the conditional perplexity, each click is predicted from the clicks at higher ranks."
            f" {percent(self.level)} CIs over {self.unit}s.",
            kinds=["selected" if row.selected else "" for row in self.rows],
        )  # fmt: skip
        names = [name for name in self.examination if MODELS[name].examined or MODELS[name].continuation_probabilities]
        examinations, impressions = (tuple(self.examination[name][i] for name in names) for i in (0, 1))
        return (
            Sentences(self.sentences),
            table,
            *(examination_blocks(tuple(names), examinations, impressions, "Examination by rank") if names else ()),
            *self._by_rank(),
            *self._calibrated(),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Conclusions and limits."""
        best, selected = self.rows[0], next(row for row in self.rows if row.selected)
        prediction = (
            f"{best.model} predicts the clicks of held-out {self.unit}s best (n = {self.pages:,} pages of"
            f" {self.units:,}"
            f" {self.unit}s). {best.model} assumes that {MODELS[best.model].assumption}."
        )
        sentences = [prediction]
        if selected is not best:
            low, high = selected.difference.low, selected.difference.high
            interval = (
                f", {percent(self.level)} CI [{low:+.4f}, {high:+.4f}]" if selected.difference.has_interval else ""
            )
            sentences.append(
                f"{selected.model} is selected: it has {selected.parameters:,} parameters instead of"
                f" {best.parameters:,}, and its"
                f" predictions are not significantly worse (log-likelihood {selected.difference.value:+.4f} per"
                f" page{interval})."
            )
        elif min(row.parameters for row in self.rows) < best.parameters:
            sentences.append(
                f"{best.model} is selected: all models with fewer parameters are significantly worse or"
                " predict a probability of 0 for a held-out page."
            )
        impossible = [(row.model, f"{row.impossible:,} of the held-out pages") for row in self.rows if row.impossible]
        sentences += [
            f"{model} predicts a probability of 0 for {pages}, so the log-likelihood of {model} is not finite."
            for model, pages in impossible
        ]
        sentences += [f"Not fitted: {clip_words(reason)}." for _, reason in self.refused]
        sentences.append(
            "The model with the best predictions can still have wrong assumptions, and results with a high"
            " estimated attractiveness can be irrelevant."
        )
        return tuple(sentences)

    def _by_rank(self) -> tuple[Block, ...]:
        rows = self.ranks
        columns = columns_of(
            rows, ("model", TEXT), ("rank", COUNT), ("shown", UNITS, "impressions"), ("perplexity", number(4))
        )
        table = Table("ranks", (*columns, *columns_of(rows, ("conditional", number(4)))), labels=1, only="data")
        drawn = tuple(dict.fromkeys((self.selected, self.rows[0].model)))
        description = (
            "Perplexity of held-out clicks by rank. Each click is predicted without the other clicks on the page. A"
            f" perfect prediction has perplexity 1. Gray: models other than {' and '.join(drawn)}."
        )
        chart = Chart(
            "perplexity", "Perplexity by rank", table, description, kind="lines", x="rank",
            y="perplexity", color="model", spread="cutoff", subtitle="perplexity of held-out clicks",
            highlighted=drawn,
        )  # fmt: skip
        return (table, chart)

    def _calibrated(self) -> tuple[Block, ...]:
        rows = self.calibration
        shares = ("predicted", number(3)), ("clicked", number(3))
        columns = columns_of(rows, ("model", TEXT), ("results", UNITS), *shares)
        table = Table("calibration", columns, labels=1, only="data")
        selected_rows = table.take([i for i, row in enumerate(rows) if row.model == self.selected])
        description = f"Predicted click probability ({self.selected}) and observed click rate of held-out results."
        chart = Chart(
            "calibration", f"Calibration of {self.selected}", selected_rows, description, kind="points",
            x="predicted", y="clicked", diagonal=True, percent="xy",
            subtitle="held-out results in bins with equal numbers of results", height=300,
        )  # fmt: skip
        return (table, chart)


class _HeldOutSums(NamedTuple):
    """Sums over held-out pages of all folds."""

    log_likelihood: Floats  # (U,) log-likelihood
    impossible: float
    surprise: Floats  # (2, K): sums of -log2 p by rank, of marginal and conditional probabilities
    impressions: Floats  # (K,)
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
    """Compare click models by cross-validation over users.

    Parameters
    ----------
    log
        Interaction log.
    models
        Names in `judged.online.clicks.MODELS`. None: all.
    by, pages, where, depth
        As in `count_impressions`.
    folds
        Number of random parts of the users.
    iterations
        Maximum number of EM steps per fit.
    bins
        Number of calibration bins.
    unit
        Unit of cross-validation and of intervals: ``user`` or ``session``.
    level
        Confidence level of the intervals.
    seed
        Seed of the folds.
    progress
        Called with a description and the completed fraction.

    Returns
    -------
    ModelComparison

    Raises
    ------
    InputError
        If a model is unknown, no model can be fitted, an option is invalid, or there are too few users.

    Notes
    -----
    All models are fitted with ``shrink="empirical"``; otherwise a first click on a pair would have probability 0.
    The chosen model has the fewest parameters among the models that are not significantly worse than the best at
    `level`. With fewer units than a verdict needs (`judged.stats.inputs`), no difference counts as significant. A model
    with an impossible page is never chosen.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, simulate
    >>> comparison = compare_models(simulate(SimulationPlan(), seed=1).log(), ["RCTR", "DCTR"], folds=2)
    >>> comparison.selected
    'RCTR'
    """
    names = parse_names(rules=models) if models else list(MODELS)
    selected = [model_of(name) for name in names]
    validate(unit=unit, level=level, bins=bins)
    check_integers(0, seed=seed)
    check_integers(1, iterations=iterations)
    check_integers(2, folds=folds)
    patterns = count_page_patterns(log, by=by, unit=unit, pages=pages, where=where, depth=depth)
    if patterns.n_units < folds:
        fix = "use fewer folds" if patterns.n_units > 1 else "use a longer log"
        fix += ", or unit=session" if unit == "user" else ""
        problem = (
            f"{folds} folds require at least {folds} {unit}s, but {log.name} has {counted(patterns.n_units, unit)}"
        )
        raise InputError(problem, fix=fix)
    unit_folds = np.random.default_rng(seed).permutation(patterns.n_units) % folds
    held_out: dict[str, _HeldOutSums] = {}
    fits: dict[str, tuple[PageData, Fit]] = {}
    refused: list[tuple[str, str]] = []
    notes: list[Note] = []
    for i, model in enumerate(selected):

        def report(fraction: float, i: int = i, name: str = model.name) -> None:
            if progress is not None:
                progress(f"fitting {name}", (i + fraction) / len(selected))

        report(0.0)
        data = build_data(model, patterns, patterns.counts())
        try:
            data.check_connected()
        except InputError as error:
            refused.append((model.name, error.problem))
            continue
        fitted = fit(data, iterations=iterations)
        fits[model.name] = data, fitted
        notes += convergence_notes(fitted)
        held_out[model.name] = _cross_validate(model, patterns, unit_folds, folds, fitted, iterations, report)
    if not held_out:
        raise InputError(refused[0][1], fix="use a model without examination parameters, such as DBN", path=log.name)
    fields = answer_fields(log, unit, level, {"queries": f"identified by {patterns.by}", "where": where or ""})
    fields["notes"] += tuple(notes)
    rows = _model_rows(patterns, held_out, fits, level)
    return ModelComparison(
        **fields, by=patterns.by, folds=folds, pages=len(patterns.pattern), units=patterns.n_units, rows=rows,
        ranks=tuple(rank for row in rows for rank in _rank_rows(row.model, held_out[row.model])),
        calibration=tuple(
            group for row in rows for group in _calibration_rows(row.model, held_out[row.model].groups, bins)
        ),
        examination={name: data.examination_counts(fitted.parameters) for name, (data, fitted) in fits.items()},
        refused=tuple(refused),
    )  # fmt: skip


def _cross_validate(
    model: ClickModel,
    patterns: PagePatterns,
    unit_folds: Any,
    folds: int,
    full_fit: Fit,
    iterations: int,
    report: Callable[[float], None],
) -> _HeldOutSums:
    """Fit a model to the other folds, starting from the full fit, and predict each fold."""
    depth = patterns.pair.shape[1]
    log_likelihood, impossible = np.zeros(patterns.n_units), 0.0
    surprise, impressions, groups = np.zeros((2, depth)), np.zeros(depth), np.zeros((3, _N_GROUPS))
    has_result = patterns.pair >= 0
    for fold in range(folds):
        report((1 + fold) / (1 + folds))
        held_out = (unit_folds == fold) * 1.0
        data = build_data(model, patterns, patterns.counts(1 - held_out))
        # The full fit is only a starting point that saves EM steps: the converged fit does not depend on it.
        fitted = fit(data, iterations=iterations, start=full_fit.parameters, prior_rounds=1)
        conditional, marginal = predict(model, patterns, fitted.parameters)
        counts = patterns.counts(held_out)
        with np.errstate(divide="ignore"):
            # Probability of the observed click or skip.
            p_observed = [np.where(patterns.clicked, p, 1 - p) for p in (marginal, conditional)]
            log_p = [np.where(has_result, np.log(p), 0.0) for p in p_observed]
        page_loglik = log_p[1].sum(axis=1)
        test_pages = held_out[patterns.unit] > 0
        log_likelihood += totals(patterns.unit[test_pages], page_loglik[patterns.pattern[test_pages]], patterns.n_units)
        # A page with probability 0 makes the total log-likelihood minus infinity.
        impossible += float(counts @ ~np.isfinite(page_loglik))
        rows = counts > 0
        # Perplexity of a rank: 2**(-mean log2 p) over held-out results (Dupret and Piwowarski, SIGIR 2008).
        surprise -= np.stack([counts[rows] @ log_probability[rows] for log_probability in log_p]) / np.log(2)
        impressions += counts @ has_result
        is_shown = has_result[rows]
        p, weights = conditional[rows][is_shown], np.broadcast_to(counts[rows, None], is_shown.shape)[is_shown]
        logits = np.clip(logit(p), _MIN_LOGIT, _MAX_LOGIT - 1e-9)
        group = ((logits - _MIN_LOGIT) / (_MAX_LOGIT - _MIN_LOGIT) * _N_GROUPS).astype(np.int64)
        clicks = weights * patterns.clicked[rows][is_shown]
        groups += [totals(group, column, _N_GROUPS) for column in (weights, weights * p, clicks)]
    return _HeldOutSums(log_likelihood, impossible, surprise, impressions, groups)


def _model_rows(
    patterns: PagePatterns, held_out: dict[str, _HeldOutSums], fits: dict[str, tuple[PageData, Fit]], level: float
) -> tuple[ModelRow, ...]:
    """Return the rows of models, best first, with one chosen."""
    page_counts = unit_sums(patterns.unit, np.ones(len(patterns.unit)))
    n_pages = float(page_counts.sum())
    loglik = {name: float(sums.log_likelihood.sum()) / n_pages for name, sums in held_out.items()}
    order = sorted(held_out, key=lambda name: -loglik[name])
    best = held_out[order[0]].log_likelihood
    rows: list[ModelRow] = []
    for name in order:
        sums, fitted = held_out[name], fits[name][1]
        is_possible, difference = np.isfinite(loglik[name]), NO_ESTIMATE
        # Page sums by user are the clusters of the interval.
        if is_possible and name != order[0]:
            difference = ratio_estimate(sums.log_likelihood - best, page_counts, level, signed=True)
        perplexity, conditional = (float(2 ** (bits.sum() / sums.impressions.sum())) for bits in sums.surprise)
        mean_loglik, conditional = (loglik[name], conditional) if is_possible else (np.nan, np.nan)
        rows.append(ModelRow(
            name, _count_parameters(fitted), mean_loglik, difference, perplexity, conditional,
            round(sums.impossible), fitted.iterations, fitted.converged,
        ))  # fmt: skip
    # With too few units no difference counts as significant: the simplest possible model is chosen.
    has_few_units = insufficiency(patterns.n_units, "verdict") is not None
    possible = [row for row in rows[1:] if not np.isnan(row.loglik)]
    not_worse = [row for row in possible if has_few_units or not row.difference.excludes(0.0)]
    simplest = min((rows[0], *not_worse), key=lambda row: row.parameters)
    return tuple(replace(row, selected=row is simplest) for row in rows)


def _count_parameters(fitted: Fit) -> int:
    """Return the number of parameters with trials, without fixed ones, with two for each prior."""
    # The examination of the first rank is fixed at 1 in models with attractiveness.
    n_fixed = int(fitted.model.attractive and bool(fitted.model.examined))
    n_used = sum(int((trials > 0).sum()) for _, trials in fitted.expected_counts.values())
    n_prior = 2 * sum(map(fitted.model.is_of_pairs, fitted.priors))
    return n_used - n_fixed + n_prior


def _rank_rows(name: str, sums: _HeldOutSums) -> list[RankRow]:
    with np.errstate(divide="ignore", invalid="ignore"):
        marginal, conditional = np.where(np.isfinite(sums.surprise), 2 ** (sums.surprise / sums.impressions), np.nan)
    rows, n = np.flatnonzero(sums.impressions).tolist(), sums.impressions
    return [RankRow(name, row + 1, round(n[row]), float(marginal[row]), float(conditional[row])) for row in rows]


def _calibration_rows(name: str, groups: Floats, bins: int) -> list[ModelCalibration]:
    """Merge groups of predictions to bins with about the same number of results."""
    results, predicted, clicks = groups
    # Bins of about equal numbers of results, by the midpoint of each group.
    midpoints = np.cumsum(results) - results / 2
    bin_index = np.minimum((midpoints / results.sum() * bins).astype(int), bins - 1)
    bin_sums = np.stack([totals(bin_index, column, bins) for column in (results, predicted, clicks)])
    rows = (sums for sums in bin_sums.T.tolist() if sums[0])
    return [ModelCalibration(name, round(n), predicted / n, clicked / n) for n, predicted, clicked in rows]
