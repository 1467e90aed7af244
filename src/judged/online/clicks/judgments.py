"""Graded judgments from clicks, with standard errors."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Origin, Qrels
from judged.data.write import write_trec
from judged.errors import InputError
from judged.labels.labels import Labels
from judged.online.clicks.clicks_over_expected import compute_coec, read_curve_and_replicates, select_clicks
from judged.online.clicks.impression_counts import count_impressions, replace_queries_by_topics, topic_column_and_texts
from judged.online.log import FieldAnswer, validate
from judged.results import COUNT, SHARE, TEXT, Column, Sentences, Table, counted, number
from judged.results.blocks import Note

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats
    from judged.results.types import Table as ArrowTable

Grading: TypeAlias = Literal["value", "lower", "human"]
"""Conversion of values to grades: unchanged; by lower confidence limit; as predicted human grades."""

_COUNTING = {"coec": "clicks", "sat": "satisfied", "purchase": "purchases"}
_THREE = number(3)
_N_FOLDS, _MIN_SHARED = 5, 20
_QUANTILES = (0.5, 0.75, 0.9)  # of lower limits: cut points between grades 0, 1, 2, and 3


class PairValues(NamedTuple):
    """Values of pairs from one source: (P,) each."""

    value: Floats  # from the clicks of the pair, without shrinkage
    se: Floats  # standard error of `value`, always above 0
    low: Floats  # interval of the true value; NaN with too few data
    high: Floats
    shrunk: Floats  # value with shrinkage toward all pairs
    sd: Floats  # posterior standard deviation around `shrunk`
    weight: Floats  # between 0 and 1, weight of `value` in `shrunk`
    impressions: Floats
    clicks: Floats
    rank: Floats  # mean rank of impressions


@dataclass(frozen=True, eq=False, repr=False)
class ClickJudgments(FieldAnswer):
    """Result of `judge_clicks`. Its CSV can be read as judgments, and as labels of kind ``click``."""

    kind: ClassVar[str] = "click-judgments"
    title_format: ClassVar[str] = "Judgments from clicks ({by}): {log}"
    fact_fields: ClassVar[tuple[str, ...]] = (
        "log", "by", "grading", "level", "min_shown", "cuts", "excluded_pairs", "pairs_without_topic",
        "shared_pairs",
    )  # fmt: skip

    log: str
    by: str
    grading: Grading
    level: float
    min_shown: int
    cuts: tuple[float, ...]  # lower limits between grades
    excluded_pairs: int  # pairs with fewer impressions
    pairs_without_topic: int  # pairs whose query has no topic
    shared_pairs: int  # pairs with human grades, used to predict grades
    pairs: ArrowTable  # query_id, doc_id
    grade: Floats
    sd: Floats | None  # of the true grade; None for grades by lower limit
    values: PairValues
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Number of judgments, their source, and uncertainty."""
        n_topics = len(pc.unique(self.pairs["query_id"]))
        description = {
            "value": "grades are estimates that are shrunk toward the mean of all pairs",
            "lower": f"a grade is the number of cut points ({', '.join(f'{cut:.3g}' for cut in self.cuts)}) below"
            " the"
            f" lower limit of the {self.level:.0%} CI",
            "human": f"grades are predicted human grades, based on {counted(self.shared_pairs, 'pair')} with human"
            " grades",
        }[self.grading]
        spread = "" if self.sd is None else f", with a mean standard deviation of {float(np.mean(self.sd)):.2f}"
        weight = float(np.mean(self.values.weight))
        return (
            f"{counted(len(self.grade), 'judgment')} for {counted(n_topics, 'topic')}: {description}{spread}.",
            (
                f"In an estimate after shrinkage, the clicks of the pair itself have a weight of {weight:.0%} on"
                f" average, and the mean of all pairs has a weight of {1 - weight:.0%}."
            ),
            f"Excluded: {counted(self.excluded_pairs, 'pair')} with fewer than {self.min_shown} impressions.",
        )

    @property
    def qrels(self) -> Qrels:
        """Judgments with additional columns ``weight``, ``value``, ``se``, and ``sd`` (if grades have it).

        Predicted human grades have no ``value`` and ``se``: a prediction error is not a measurement error.
        """
        values_by_name = {"relevance": self.grade, "sd": self.sd, "weight": self.values.weight}
        values_by_name |= {} if self.grading == "human" else {"value": self.values.value, "se": self.values.se}
        table = self.pairs
        for name, column in values_by_name.items():
            if column is not None:
                table = table.append_column(name, pa.array(column, pa.float64()))
        digest = sha256(repr(table.to_pylist()).encode()).hexdigest()
        origin = Origin(f"clicks: {self.by}", click=len(self.grade), judges=(self.by,), sha256=digest)
        return Qrels(table, f"{self.log} {self.by}", origin=origin)

    @property
    def labels(self) -> Labels:
        """Judgments as labels of kind ``click``, with the source as judge."""
        return Labels.of(self.to_arrow(), kind="click")

    def trec(self) -> str:
        """Return TREC qrels with grades only."""
        buffer = io.StringIO()
        write_trec(self.qrels.table, "qrels", buffer, self.log)
        return buffer.getvalue()

    def blocks(self) -> tuple[Block, ...]:
        """Return all pairs by topic and decreasing grade."""
        n_pairs, values = len(self.grade), self.values
        limits = zip(values.low.tolist(), values.high.tolist(), strict=True)
        intervals = [None if self.grading == "human" or math.isnan(low) else (low, high) for low, high in limits]
        order = np.lexsort((-self.grade, np.unique(self.pairs["query_id"].to_pylist(), return_inverse=True)[1]))
        only = "data" if self.grading == "human" else ""
        columns = (
            Column("query_id", self.pairs["query_id"].to_pylist(), TEXT, "topic"),
            Column("doc_id", self.pairs["doc_id"].to_pylist(), TEXT, "document"),
            Column("grade", self.grade.tolist(), number(0 if self.sd is None else 2)),
            Column("sd", [None] * n_pairs if self.sd is None else self.sd.tolist(), number(2)),
            Column("weight", values.weight.tolist(), SHARE),
            Column("value", values.value.tolist(), _THREE, ci=intervals, only=only),
            Column("se", [None] * n_pairs if only else values.se.tolist(), _THREE, only=only),
            Column("shown", values.impressions.tolist(), COUNT, "impressions"),
            Column("clicks", values.clicks.tolist(), COUNT),
            Column("rank", values.rank.tolist(), number(1), "mean rank"),
            Column("judge", [self.by] * n_pairs, TEXT, only="data"),
            Column("kind", ["click"] * n_pairs, TEXT, only="data"),
        )
        table = Table("judgments", columns, labels=2, title="Judgments", folded=n_pairs > 1000)
        return Sentences(self.sentences), table.take(order.tolist())


def judge_clicks(
    log: InteractionLog,
    *,
    by: str = "coec",
    grading: Grading | None = None,
    gold: Any = None,
    propensities: Any = None,
    min_shown: int = 10,
    cuts: tuple[float, ...] | None = None,
    topics: Any = None,
    where: str | None = None,
    depth: int = 10,
    dwell: float = 30.0,
    level: float = 0.95,
) -> ClickJudgments:
    """Convert clicks to graded judgments.

    Parameters
    ----------
    log
        Interaction log.
    by
        ``coec``: clicks over expected clicks; ``sat``: the same for satisfied clicks; ``purchase``: for purchases; or a
        click model such as ``PBM`` (`judged.online.clicks.fit_model`): attractiveness.
    grading
        ``value``: the grade is the value. ``lower``: an integer grade by the lower confidence limit. ``human``: the
        expected human grade for the value, by isotonic regression on `gold`. None: ``human`` with `gold`, otherwise
        ``value``.
    gold
        Human judgments of some of the pairs, as in `Qrels.of`.
    propensities
        Examination propensities, as in `read_propensities`, instead of click-through rates of ranks, which include
        relevance. For ``coec``, ``sat``, and ``purchase``.
    min_shown
        Minimum number of impressions; other pairs stay unjudged.
    cuts
        For ``lower``: limits between grades 0, 1, 2, and so on. None: the quantiles 0.5, 0.75, and 0.9.
    topics
        Mapping of pages to topics, as in `judged.online.against_qrels`. None: the text of the query is the topic.
    where, depth
        As in `count_impressions`.
    dwell
        Seconds of a satisfied click, for ``sat``.
    level
        Confidence level of the intervals.

    Raises
    ------
    InputError
        If no pair is selected, the source is unknown, or too few pairs of `gold` were shown.

    Notes
    -----
    Each pair has an unshrunk ``value`` with standard error ``se`` (used by `evaluate_uncertain`), and a grade that is
    shrunk toward the mean of all pairs: the fewer data, the smaller ``weight``. ``sd`` is the standard deviation of
    the true grade around it. For ``human``, it is that of human grades around their prediction, by 5-fold
    cross-validation over topics; negative grades count as 0. Errors assume independent clicks: repeated clicks of a
    user count each time.

    Examples
    --------
    >>> from judged.online import read_log
    >>> from judged.data.sample import LOG
    >>> judgments = judge_clicks(read_log(LOG), min_shown=30)
    >>> judgments.qrels.table.column_names
    ['query_id', 'doc_id', 'relevance', 'sd', 'weight', 'value', 'se']
    """
    validate(log=log, level=level, dwell=dwell)
    grading_rule: Grading = grading or ("value" if gold is None else "human")
    if grading_rule not in {"value", "lower", "human"}:
        raise InputError(f"`grading` must be value, lower, or human, got {grading_rule!r}", fix="use grading=value")
    if (grading_rule == "human") != (gold is not None):
        raise InputError(
            "`gold` requires grading=human, and grading=human requires `gold`",
            fix="use `gold` together with grading=human, or omit `gold` and grading=human",
        )
    topic_column, topic_by_text = topic_column_and_texts(log, topics)
    pairs, values, notes = _read_values(log, by, propensities, dwell, level, by=topic_column, where=where, depth=depth)
    topic_pairs = replace_queries_by_topics(pairs, topic_by_text)
    has_no_topic = np.asarray(pc.equal(topic_pairs["query"], ""))
    is_selected = (values.impressions >= min_shown) & ~has_no_topic
    if not is_selected.any():
        raise InputError(
            f"no pair of topic and document has {min_shown} or more impressions",
            fix="use a lower min_shown (--min-shown)",
            path=log.name,
        )
    topic_pairs = topic_pairs.filter(pa.array(is_selected)).rename_columns(["query_id", "doc_id"])
    values = PairValues(*(column[is_selected] for column in values))
    grade, sd, n_shared, cut_points = values.shrunk, values.sd, 0, tuple[float, ...]()
    if grading_rule == "lower":
        # A grade by lower limit is conservative: pairs with few data get low grades.
        lower_limits = np.nan_to_num(values.low)  # without an interval, the limit is 0
        cut_points = tuple(cuts or np.unique(np.quantile(lower_limits, _QUANTILES)).tolist())
        grade, sd = np.searchsorted(cut_points, lower_limits, side="left").astype(np.float64), None
    elif grading_rule == "human":
        grade, sd, n_shared = _predict_human_grades(topic_pairs, values, Qrels.of(gold))
    return ClickJudgments(
        log.name, by, grading_rule, level, min_shown, cut_points, int((~is_selected & ~has_no_topic).sum()),
        int(has_no_topic.sum()), n_shared, topic_pairs, grade, sd, values, notes,
    )  # fmt: skip


def _read_values(
    log: InteractionLog, source: str, propensities: Any, dwell: float, level: float, **selection: Any
) -> tuple[ArrowTable, PairValues, tuple[Note, ...]]:
    """Return pairs and their values from a source, with notes."""
    cells = count_impressions(log, **selection)
    n_pairs = cells.pairs.num_rows
    impressions = np.bincount(cells.pair, cells.impressions, n_pairs).astype(np.float64)
    rank = np.bincount(cells.pair, cells.impressions * cells.rank, n_pairs) / impressions
    if source in _COUNTING:
        counting = _COUNTING[source]
        if counting != "clicks":
            cells = count_impressions(select_clicks(log, counting, dwell), **selection)
        curve, replicates = read_curve_and_replicates(log, propensities, selection.get("where"))
        coec = compute_coec(cells, log.name, counting, level, propensities=curve, replicates=replicates)
        prior = coec.shrunk.prior
        # Weight of the data in the gamma posterior mean (c + a) / (e + a); 0 without differences between pairs.
        weight = coec.expected / (coec.expected + prior) if np.isfinite(prior) else np.zeros(n_pairs)
        values = PairValues(*coec.ratios, *coec.shrunk[:2], weight, impressions, coec.clicks, rank)
        return cells.pairs, values, coec.notes
    if propensities is not None:
        raise InputError(
            f"the click model {source} estimates examination and accepts no propensities", fix="omit propensities"
        )
    from judged.online.clicks import fit_model

    shrunk_fit = fit_model(log, source.upper(), level=level, shrink="empirical", **selection)
    unshrunk_fit = fit_model(log, source.upper(), level=level, shrink="none", **selection)
    if "attractiveness" not in shrunk_fit.values:
        raise InputError(
            f"the click model {source} has no attractiveness parameter", fix="use another model, such as PBM"
        )
    shrunk, unshrunk = shrunk_fit.values["attractiveness"], unshrunk_fit.values["attractiveness"]
    sd = _fill_errors(shrunk_fit.errors["attractiveness"], shrunk, impressions)
    se = _fill_errors(unshrunk_fit.errors["attractiveness"], shrunk, impressions)
    low, high = np.array([interval or (np.nan, np.nan) for interval in unshrunk_fit.intervals("attractiveness")]).T
    variance = max(float(np.var(shrunk)), 1e-300)
    # Reliability: between-pair variance over total variance.
    weight = variance / (variance + sd**2)
    values = PairValues(unshrunk, se, low, high, shrunk, sd, weight, impressions, shrunk_fit.pair_clicks, rank)
    return shrunk_fit.pairs, values, shrunk_fit.notes


def _fill_errors(errors: Floats, values: Floats, impressions: Floats) -> Floats:
    # At 0 and 1 a model has no standard error: use that of a proportion.
    return np.where(np.isfinite(errors), errors, np.sqrt(values * (1 - values) / impressions))


def _predict_human_grades(pairs: ArrowTable, values: PairValues, gold: Qrels) -> tuple[Floats, Floats, int]:
    """Return expected human grades, their cross-validated standard deviation, and the number of graded pairs."""
    index = Qrels(pairs.append_column("relevance", pa.array(np.arange(len(pairs)), pa.float64()))).index
    row, human = index.grade.astype(np.int64), human_grades(pairs, gold)
    topic = np.empty(len(pairs), dtype=np.int64)
    topic[row] = index.topic
    is_graded = ~np.isnan(human)
    if is_graded.sum() < _MIN_SHARED:
        problem = f"grading=human requires at least {_MIN_SHARED} pairs with human grades, got {int(is_graded.sum())}"
        raise InputError(
            problem, fix="collect human grades of more query-document pairs, or use grading=lower", path=gold.where
        )
    x, y = values.shrunk[is_graded], np.maximum(human[is_graded], 0)
    grade = _isotonic_regression(x, y, values.shrunk)
    folds = np.unique(topic[is_graded], return_inverse=True)[1] % _N_FOLDS
    residuals = np.empty(len(y))
    for fold in np.unique(folds).tolist():
        is_held_out = folds == fold
        # Cross-validation over topics: grades of one topic are correlated.
        train = ~is_held_out
        predicted = _isotonic_regression(x[train], y[train], x[is_held_out]) if train.any() else y.mean()
        residuals[is_held_out] = y[is_held_out] - predicted
    return grade, np.full(len(grade), float(np.sqrt(np.mean(residuals**2)))), int(is_graded.sum())


def human_grades(pairs: ArrowTable, gold: Qrels) -> Floats:
    """Return human grades of pairs, (P,); NaN if not judged."""
    index, n_docs = gold.index, len(gold.index.docs)
    topic = pc.index_in(pairs["query_id"], value_set=pa.array(index.topics, pa.string()))
    doc = pc.index_in(pairs["doc_id"], value_set=index.docs)
    is_known = np.asarray(pc.and_(pc.is_valid(topic), pc.is_valid(doc)))
    topic_codes, doc_codes = (np.asarray(pc.fill_null(codes, 0), dtype=np.int64) for codes in (topic, doc))
    # Join by one integer key per (topic, document).
    keys = topic_codes * n_docs + doc_codes
    gold_keys = index.topic * n_docs + index.doc
    order = np.argsort(gold_keys)
    index_in_order = np.minimum(np.searchsorted(gold_keys[order], keys), len(order) - 1)
    return np.where(is_known & (gold_keys[order][index_in_order] == keys), index.grade[order][index_in_order], np.nan)


def _isotonic_regression(x: Floats, y: Floats, new_x: Floats) -> Floats:
    """Fit a non-decreasing curve (isotonic calibration), and interpolate it linearly at `new_x`."""
    from scipy.optimize import isotonic_regression

    # Ties must be averaged before isotonic regression, which needs distinct x.
    knots, knot_index, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(knot_index.ravel(), y) / counts
    return np.interp(new_x, knots, isotonic_regression(means, weights=counts).x)
