# Written by tools/docs.py: names that `judged` exports and imports at first use.

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from judged import data as data
from judged import online as online
from judged import stats as stats
from judged.comparison import slicing as slicing
from judged.comparison.agreement.agree import agree as agree
from judged.comparison.agreement.reproduce import reproduce as reproduce
from judged.comparison.answer import Comparison
from judged.comparison.choices import Family
from judged.comparison.collections import compare_collections as compare_collections
from judged.comparison.fusion.fuse import fuse as fuse
from judged.comparison.plans import Plans
from judged.comparison.slicing.by_document import by_document as by_document
from judged.comparison.slicing.derived import derive as derive
from judged.comparison.slicing.scores import SlicedScores
from judged.comparison.slicing.topic_slices import Slice as Slice
from judged.comparison.slicing.topic_slices import Slicing
from judged.comparison.slicing.topic_slices import Slicing as Slicing
from judged.comparison.slicing.topic_slices import slice_topics as slice_topics
from judged.data.attributes import Attributes as Attributes
from judged.data.check_files import check as check
from judged.data.convert_files import convert as convert
from judged.data.documents import Documents as Documents
from judged.data.qrels import Qrels as Qrels
from judged.data.run import Run as Run
from judged.data.texts import Texts as Texts
from judged.data.topics import Topics as Topics
from judged.diagnosis.diff.diff import diff as diff
from judged.diagnosis.disagreement.answer import Disagreement
from judged.diagnosis.gates.config import GateConfig as GateConfig
from judged.diagnosis.gates.gate import gate as gate
from judged.diagnosis.matrix.answer import Matrix
from judged.diagnosis.needs.answer import Needs
from judged.diagnosis.needs.needs import expand_qrels as expand_qrels
from judged.diagnosis.review.answer import apply_review as apply_review
from judged.diagnosis.review.review import review as review
from judged.diagnosis.stages.stages import stages as stages
from judged.diagnosis.tradeoff.answer import Tradeoff
from judged.errors import InputError as InputError
from judged.errors import JudgedError as JudgedError
from judged.errors import JudgedWarning as JudgedWarning
from judged.errors import MeasureError as MeasureError
from judged.errors import MissingExtraError as MissingExtraError
from judged.labels.pooling import pool as pool
from judged.reports.build import report as report
from judged.scoring import arrays as arrays
from judged.scoring import measures as measures
from judged.scoring import uncertainty as uncertainty
from judged.scoring.advice.advise import advise as advise
from judged.scoring.curves.curve import curve as curve
from judged.scoring.curves.curve import precision_recall as precision_recall
from judged.scoring.evaluation import Scores
from judged.scoring.evaluation.dialects import Dialect
from judged.scoring.evaluation.embeddings import evaluate_embeddings as evaluate_embeddings
from judged.scoring.evaluation.evaluate import evaluate as evaluate
from judged.scoring.evaluation.facts import TieTreatment
from judged.scoring.evaluation.scores import Scores
from judged.scoring.evaluation.scores import Scores as Scores
from judged.scoring.explanation.explain import explain as explain
from judged.scoring.explanation.explain import explain_list as explain_list
from judged.scoring.explanation.other_tools import compare_tools as compare_tools
from judged.scoring.judging import Precision
from judged.scoring.judging import TopicPolicy
from judged.scoring.judging.join import judge as judge
from judged.scoring.judging.join import judge_list as judge_list
from judged.scoring.judging.judged import Judged as Judged
from judged.scoring.measures.ap import AP as AP
from judged.scoring.measures.ap import GMAP as GMAP
from judged.scoring.measures.ap import InfAP as InfAP
from judged.scoring.measures.base import Measure
from judged.scoring.measures.counts import JudgedShare as JudgedShare
from judged.scoring.measures.dcg import DCG as DCG
from judged.scoring.measures.dcg import nDCG as nDCG
from judged.scoring.measures.err import ERR as ERR
from judged.scoring.measures.precision import F as F
from judged.scoring.measures.precision import P as P
from judged.scoring.measures.precision import R as R
from judged.scoring.measures.precision import Rprec as Rprec
from judged.scoring.measures.precision import SetF as SetF
from judged.scoring.measures.precision import SetP as SetP
from judged.scoring.measures.precision import SetR as SetR
from judged.scoring.measures.precision import Success as Success
from judged.scoring.measures.preferences import Bpref as Bpref
from judged.scoring.measures.rbp import RBP as RBP
from judged.scoring.measures.rr import RR as RR
from judged.scoring.uncertainty.pools import leave_one_out as leave_one_out
from judged.stats.interval import IntervalName

def compare(
    qrels: Any,
    runs: Any,
    measures: Any = None,
    *,
    baseline: str | None = None,
    test: str | None = None,
    correction: str = "holm",
    family: Family = "measure",
    alpha: float = 0.05,
    resamples: int | None = None,
    seed: int = 0,
    min_difference: float = 0.0,
    margin: float | None = None,
    ci: IntervalName = "adjusted",
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    documents: Any = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Comparison: ...
def power(
    qrels: Any,
    runs: Any,
    measures: Any = None,
    *,
    difference: float | None = None,
    n: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    documents: Any = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Plans: ...
def slices(
    qrels: Any,
    runs: Any,
    slicing: Slicing,
    measures: Any = None,
    *,
    weights: Any = None,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    documents: Any = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> SlicedScores: ...
def disagree(
    qrels: Any,
    runs: Any,
    measures: Any = ("nDCG@10", "R@100"),
    *,
    pair: tuple[str, str] | None = None,
    slicing: Slicing | None = None,
    limit: int = 5,
    queries: Any = None,
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
    documents: Any = None,
) -> Disagreement: ...
def matrix(
    qrels: Any,
    runs: Any,
    *,
    x: str | Measure = "R@100",
    y: str | Measure = "nDCG@10",
    slicing: Slicing | None = None,
    baseline: str | None = None,
    cuts: tuple[float, float] | None = None,
    level: float = 0.95,
    fdr: float = 0.1,
    resamples: int | None = None,
    seed: int = 0,
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    documents: Any = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Matrix: ...
def needs(
    qrels: Any,
    runs: Any,
    needs: Any,
    measures: Any = None,
    *,
    column: str | None = None,
    cutoff: int = 10,
    rbo_p: float = 0.9,
    baseline: str | None = None,
    limit: int = 10,
    level: float = 0.95,
    seed: int = 0,
    queries: Any = None,
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    documents: Any = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Needs: ...
def tradeoff(
    qrels: Any,
    runs: Any,
    costs: Any,
    measures: Any = None,
    *,
    measure: str | Measure | None = None,
    baseline: str | None = None,
    cost: str | Iterable[str] | None = None,
    higher_is_better: str | Iterable[str] = (),
    level: float = 0.95,
    test: str = "randomization",
    resamples: int = 10000,
    seed: int = 0,
    cost_intervals: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
    empty_score: float | None = None,
    dialect: str | Dialect | None = None,
    topics: TopicPolicy | None = None,
    ties: TieTreatment | None = None,
    depth: int | None = None,
    precision: Precision | None = None,
    exclude_self: bool | None = None,
    documents: Any = None,
    rel: float | None = None,
    attributes: Any = None,
    where: str | None = None,
    processes: int = 1,
    columns: Mapping[str, str] | None = None,
    normalize_ids: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Tradeoff: ...

__version__: str
